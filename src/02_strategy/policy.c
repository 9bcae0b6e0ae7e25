#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// Policies: names, constructors, and rules. Who carries policies out gives the set of kinds that it takes, and
// the sentence that lists them.

static const char *const tli_policy_names[] = { TL_POLICIES(TLI_NAME) };

TLI_IMPL const char *tl_name_policy(tl_policy_kind kind) {
    return tli_name(tli_policy_names, TL_POLICY_COUNT, (int64_t)kind);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_policy(const char *text, tl_policy_kind *kind) {
    int32_t value;
    int known = tli_parse_word(tli_policy_names, TL_POLICY_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_policy_kind)value;
    return known;
}
#endif

static tl_policy tli_policy_of(tl_policy_kind kind) {
    tl_policy policy;
    tli_zero(&policy, sizeof policy);
    policy.kind = kind;
    return policy;
}

TLI_IMPL tl_policy tl_policy_keep_all(void) { return tli_policy_of(TL_POLICY_KEEP_ALL); }

TLI_IMPL tl_policy tl_policy_none(void) { return tli_policy_of(TL_POLICY_NONE); }

TLI_IMPL tl_policy tl_policy_selective(uint64_t cost_threshold) {
    tl_policy policy = tli_policy_of(TL_POLICY_SELECTIVE);
    policy.as.selective.cost_threshold = cost_threshold;
    return policy;
}

TLI_IMPL tl_policy tl_policy_every_n(uint64_t interval) {
    tl_policy policy = tli_policy_of(TL_POLICY_EVERY_N);
    policy.as.every_n.interval = interval;
    return policy;
}

TLI_IMPL int tl_find_policy(const tl_strategy *strategy, tl_policy *policy) {
    TL_ASSERT(strategy && policy);
    tli_zero(policy, sizeof *policy);
    if (!strategy->gradient.checkpoint_interval)
        return strategy->gradient.computes && !strategy->gradient.checkpointed;
    policy->kind = TL_POLICY_EVERY_N;
    policy->as.every_n.interval = strategy->gradient.checkpoint_interval;
    return 1;
}

// -- rules of policies --

#define TLI_POLICY(id) (UINT32_C(1) << TL_POLICY_##id)  // a kind in a set of kinds
#define TLI_POLICIES_ALL ((UINT32_C(1) << TL_POLICY_COUNT) - 1)

// Refuse a kind that does not exist or is not in the set `kinds`, with the sentence of the rule `others`.
static tl_result tli_check_policy_kind(tl_env *env, tli_function function, tl_policy_kind kind,
                                       uint32_t kinds, tli_rule others) {
    if ((uint32_t)kind < (uint32_t)TL_POLICY_COUNT && kinds >> kind & 1) return TL_OK;
    return tli_fail(env, TL_ERROR_INVALID_ARG, function, others);
}

// layer_count: as in tli_check_policy.
static tl_result tli_check_listed_layers(tl_env *env, tli_function function, const tl_policy *policy,
                                         uint64_t layer_count) {
    const uint64_t *layers = policy->as.layers.list;
    uint64_t count = policy->as.layers.count, *sorted, i;
    tl_result result = TL_OK;
    if (count && !layers) return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(LAYERS_MISSING));
    for (i = 0; i < count && layer_count; i++)
        if (layers[i] >= layer_count)
            return tli_fail_values(env, TL_ERROR_INVALID_ARG, function,
                                   TLI_RULE(LAYERS_IS_NOT_BELOW_NUMBER_OF_LAYERS), layers[i], 0);
    sorted = (uint64_t *)tli_alloc_array(env, count, sizeof *sorted);
    if (!sorted) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_TO_SORT_LAYERS));
    tli_copy(sorted, layers, (size_t)count * sizeof *sorted);
    tli_sort_u64(sorted, (size_t)count);
    for (i = 1; i < count && !result; i++)
        if (sorted[i] == sorted[i - 1])
            result = tli_fail_values(env, TL_ERROR_INVALID_ARG, function,
                                     TLI_RULE(LAYERS_IS_LISTED_TWICE), sorted[i], 0);
    tli_release(env, sorted);
    return result;
}

static tl_result tli_check_fraction(tl_env *env, tli_function function, const tl_policy *policy,
                                    uint64_t layer_count) {
    uint64_t count = policy->as.fraction.layer_count;
    double fraction = policy->as.fraction.memory_fraction;
    if (!count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(DYNAMIC_LAYER_COUNT_MUST_BE_POSITIVE));
    if (!(fraction >= 0.0 && fraction <= 1.0))  // NaN fails both
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(MEMORY_FRACTION_MUST_BE_IN_0_TO_1));
    if (!layer_count || count == layer_count) return TL_OK;
    return tli_fail_values(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(DYNAMIC_LAYER_COUNT_MUST_BE_NUMBER),
                           layer_count, 0);
}

// Check kind and parameters.
//
//   kinds         the set of those that the function takes
//   others        the rule that all other kinds break
//   layer_count   of the graph: listed layers must be below it, the layer_count of a fraction must be equal to
//                 it; 0 = not known: neither is compared with it
static tl_result tli_check_policy(tl_env *env, tli_function function, const tl_policy *policy, uint32_t kinds,
                                  tli_rule others, uint64_t layer_count) {
    tl_result result = tli_check_policy_kind(env, function, policy->kind, kinds, others);
    if (result) return result;
    if (policy->kind == TL_POLICY_LAYERS) return tli_check_listed_layers(env, function, policy, layer_count);
    if (policy->kind == TL_POLICY_FRACTION) return tli_check_fraction(env, function, policy, layer_count);
    return TL_OK;
}

TLI_IMPL tl_result tl_check_policy(tl_env *env, const tl_policy *policy) {
    TL_ASSERT(policy);
    return tli_check_policy(env, TLI_IN(CHECK_POLICY), policy, TLI_POLICIES_ALL,
                            TLI_RULE(POLICY_THERE_IS_NO_SUCH_ONE), 0);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
