#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [2] STRATEGY (implementation)
// ============================================================================
//
// Constructors, presets, rules and the two texts of a strategy: the seed's summary, and JSON.

static const char *const tli_mode_names[] = { TL_MODES(TLI_NAME4) };
static const char *const tli_precision_names[] = { TL_PRECISIONS(TLI_NAME4) };
static const char *const tli_memory_names[] = { TL_MEMORIES(TLI_NAME4) };
static const char *const tli_parallelism_names[] = { TL_PARALLELISMS(TLI_NAME4) };

TLI_IMPL const char *tl_name_mode(tl_mode mode) {
    return tli_name(tli_mode_names, TL_MODE_COUNT, (int64_t)mode);
}

TLI_IMPL const char *tl_name_precision(tl_precision precision) {
    return tli_name(tli_precision_names, TL_PRECISION_COUNT, (int64_t)precision);
}

TLI_IMPL const char *tl_name_memory(tl_memory memory) {
    return tli_name(tli_memory_names, TL_MEMORY_COUNT, (int64_t)memory);
}

TLI_IMPL const char *tl_name_parallelism(tl_parallelism_kind kind) {
    return tli_name(tli_parallelism_names, TL_PARALLELISM_COUNT, (int64_t)kind);
}

// -- variants --

TLI_IMPL tl_gradient tl_gradient_none(void) {
    tl_gradient gradient;
    tli_zero(&gradient, sizeof gradient);
    return gradient;
}

TLI_IMPL tl_gradient tl_gradient_full(void) {
    tl_gradient gradient = tl_gradient_none();
    gradient.computes = 1;
    return gradient;
}

TLI_IMPL tl_gradient tl_gradient_checkpointed(uint64_t interval) {
    tl_gradient gradient = tl_gradient_full();
    gradient.checkpointed = 1;
    gradient.checkpoint_interval = interval;
    return gradient;
}

TLI_IMPL tl_gradient tl_gradient_accumulated(uint64_t steps) {
    tl_gradient gradient = tl_gradient_full();
    gradient.accumulation_steps = steps;
    return gradient;
}

// The count that belongs to the kind of parallelism; NULL if the kind has none.
static uint64_t *tli_parallelism_number(tl_parallelism *parallelism) {
    switch (parallelism->kind) {
        case TL_PARALLELISM_DATA:     return &parallelism->as.data.worker_count;
        case TL_PARALLELISM_MODEL:    return &parallelism->as.model.device_count;
        case TL_PARALLELISM_PIPELINE: return &parallelism->as.pipeline.stage_count;
        case TL_PARALLELISM_NONE: case TL_PARALLELISM_AUTOMATIC: case TL_PARALLELISM_COUNT: break;
    }
    return NULL;
}

static tl_parallelism tli_parallelism(tl_parallelism_kind kind, uint64_t number) {
    tl_parallelism parallelism;
    tli_zero(&parallelism, sizeof parallelism);
    parallelism.kind = kind;
    if (tli_parallelism_number(&parallelism)) *tli_parallelism_number(&parallelism) = number;
    return parallelism;
}

TLI_IMPL tl_parallelism tl_parallelism_none(void) {
    return tli_parallelism(TL_PARALLELISM_NONE, 0);
}

TLI_IMPL tl_parallelism tl_parallelism_data(uint64_t worker_count) {
    return tli_parallelism(TL_PARALLELISM_DATA, worker_count);
}

TLI_IMPL tl_parallelism tl_parallelism_model(uint64_t device_count) {
    return tli_parallelism(TL_PARALLELISM_MODEL, device_count);
}

TLI_IMPL tl_parallelism tl_parallelism_pipeline(uint64_t stage_count) {
    return tli_parallelism(TL_PARALLELISM_PIPELINE, stage_count);
}

TLI_IMPL tl_parallelism tl_parallelism_automatic(void) {
    return tli_parallelism(TL_PARALLELISM_AUTOMATIC, 0);
}

// -- presets --

TLI_IMPL tl_strategy tl_strategy_new(void) {
    tl_strategy strategy;
    tli_zero(&strategy, sizeof strategy);
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_training(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_LAZY;
    strategy.gradient = tl_gradient_full();
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_POOLED;
    strategy.parallelism = tl_parallelism_automatic();
    strategy.enable_fusion = 1;
    strategy.enable_profiling = 1;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_inference(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_CACHED;
    strategy.parallelism = tl_parallelism_automatic();
    strategy.enable_fusion = 1;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_memory_efficient(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_HYBRID;
    strategy.gradient = tl_gradient_checkpointed(10);
    strategy.precision = TL_PRECISION_MIXED;
    strategy.memory = TL_MEMORY_MINIMAL_PEAK;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_high_throughput(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_LAZY;
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_POOLED;
    strategy.parallelism = tl_parallelism_data(4);
    strategy.enable_fusion = 1;
    return strategy;
}

TLI_IMPL tl_strategy tl_strategy_debug(void) {
    tl_strategy strategy = tl_strategy_new();
    strategy.gradient = tl_gradient_full();
    strategy.enable_profiling = 1;
    return strategy;
}

// -- builders --

TLI_IMPL tl_strategy tl_with_mode(tl_strategy strategy, tl_mode mode) {
    strategy.mode = mode;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_gradient(tl_strategy strategy, tl_gradient gradient) {
    strategy.gradient = gradient;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_precision(tl_strategy strategy, tl_precision precision) {
    strategy.precision = precision;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_memory(tl_strategy strategy, tl_memory memory) {
    strategy.memory = memory;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_parallelism(tl_strategy strategy, tl_parallelism parallelism) {
    strategy.parallelism = parallelism;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_fusion(tl_strategy strategy, int32_t on) {
    strategy.enable_fusion = on != 0;
    return strategy;
}

TLI_IMPL tl_strategy tl_with_profiling(tl_strategy strategy, int32_t on) {
    strategy.enable_profiling = on != 0;
    return strategy;
}

// -- predicates --

TLI_IMPL int tl_computes_gradients(const tl_strategy *strategy) {
    TL_ASSERT(strategy);
    return strategy->gradient.computes != 0;
}

TLI_IMPL int tl_uses_checkpointing(const tl_strategy *strategy) {
    TL_ASSERT(strategy);
    return strategy->gradient.checkpointed != 0;
}

TLI_IMPL int tl_is_inference_mode(const tl_strategy *strategy) {
    return !tl_computes_gradients(strategy);
}

TLI_IMPL int tl_find_checkpoint_interval(const tl_strategy *strategy, uint64_t *interval) {
    TL_ASSERT(strategy && interval);
    *interval = strategy->gradient.checkpointed ? strategy->gradient.checkpoint_interval : 0;
    return strategy->gradient.checkpointed != 0;
}

TLI_IMPL int tl_find_accumulation_steps(const tl_strategy *strategy, uint64_t *steps) {
    TL_ASSERT(strategy && steps);
    *steps = strategy->gradient.accumulation_steps;
    return *steps > 0;
}

// The count that belongs to the kind of parallelism; 0 if the kind has none.
static uint64_t tli_parallelism_count(const tl_parallelism *parallelism) {
    tl_parallelism copy = *parallelism;
    const uint64_t *number = tli_parallelism_number(&copy);
    return number ? *number : 0;
}

TLI_IMPL int tl_equals_strategy(const tl_strategy *a, const tl_strategy *b) {
    TL_ASSERT(a && b);
    return a->mode == b->mode && a->precision == b->precision && a->memory == b->memory
        && a->gradient.computes == b->gradient.computes
        && a->gradient.checkpointed == b->gradient.checkpointed
        && a->gradient.checkpoint_interval == b->gradient.checkpoint_interval
        && a->gradient.accumulation_steps == b->gradient.accumulation_steps
        && a->parallelism.kind == b->parallelism.kind
        && tli_parallelism_count(&a->parallelism) == tli_parallelism_count(&b->parallelism)
        && a->enable_fusion == b->enable_fusion && a->enable_profiling == b->enable_profiling;
}

TLI_IMPL uint64_t tl_find_worker_count(const tl_strategy *strategy, uint64_t device_worker_count) {
    uint64_t count;
    TL_ASSERT(strategy);
    count = tli_parallelism_count(&strategy->parallelism);
    if (strategy->parallelism.kind == TL_PARALLELISM_AUTOMATIC)
        count = device_worker_count < 8 ? device_worker_count : 8;
    return count ? count : 1;
}

// -- rules --

// The first rule that is broken; TLI_NO_RULE if all hold.
static tli_rule tli_strategy_rule(const tl_strategy *s) {
    const tl_gradient *g = &s->gradient;
    uint64_t count = tli_parallelism_count(&s->parallelism);
    if (!tli_is_below((int64_t)s->mode, TL_MODE_COUNT)) return TLI_RULE(MODE_UNKNOWN_VALUE);
    if (!tli_is_below(g->computes, 2)) return TLI_RULE(GRADIENT_COMPUTES_MUST_BE_0_OR_1);
    if (!tli_is_below(g->checkpointed, 2)) return TLI_RULE(GRADIENT_CHECKPOINTED_MUST_BE_0_OR_1);
    if (g->checkpointed && !g->computes)
        return TLI_RULE(GRADIENT_CHECKPOINTED_NEEDS_GRADIENTS);
    if (g->checkpoint_interval && !g->checkpointed)
        return TLI_RULE(GRADIENT_CHECKPOINT_INTERVAL_NEEDS);
    if (g->accumulation_steps && !g->computes)
        return TLI_RULE(GRADIENT_ACCUMULATION_STEPS_NEEDS);
    if (!tli_is_below((int64_t)s->precision, TL_PRECISION_COUNT)) return TLI_RULE(PRECISION_UNKNOWN_VALUE);
    if (!tli_is_below((int64_t)s->memory, TL_MEMORY_COUNT)) return TLI_RULE(MEMORY_UNKNOWN_VALUE);
    switch (s->parallelism.kind) {
        case TL_PARALLELISM_DATA:
            if (!count) return TLI_RULE(PARALLELISM_WORKER_COUNT);
            break;
        case TL_PARALLELISM_MODEL:
            if (!count) return TLI_RULE(PARALLELISM_DEVICE_COUNT);
            break;
        case TL_PARALLELISM_PIPELINE:
            if (!count) return TLI_RULE(PARALLELISM_STAGE_COUNT);
            break;
        case TL_PARALLELISM_NONE: case TL_PARALLELISM_AUTOMATIC: case TL_PARALLELISM_COUNT: break;
    }
    if (!tli_is_below((int64_t)s->parallelism.kind, TL_PARALLELISM_COUNT))
        return TLI_RULE(PARALLELISM_UNKNOWN_KIND);
    if (!tli_is_below(s->enable_fusion, 2)) return TLI_RULE(ENABLE_FUSION_MUST_BE_0_OR_1);
    if (!tli_is_below(s->enable_profiling, 2)) return TLI_RULE(ENABLE_PROFILING_MUST_BE_0_OR_1);
    return TLI_NO_RULE;
}

TLI_IMPL tl_result tl_check_strategy(tl_env *env, const tl_strategy *strategy) {
    tli_rule rule;
    TL_ASSERT(strategy);
    rule = tli_strategy_rule(strategy);
    return rule ? tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(CHECK_STRATEGY), rule) : TL_OK;
}

// -- rules of thumb --

TLI_IMPL tl_result tl_recommend_quick(tl_env *env, uint64_t batch_size, uint64_t model_mib,
                                      uint64_t available_mib, int training, tl_strategy *strategy) {
    uint64_t product, limit;
    TL_ASSERT(strategy);
    *strategy = tl_strategy_new();
    if (!batch_size || !model_mib || !available_mib)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(RECOMMEND_QUICK),
                        !batch_size ? TLI_RULE(BATCH_SIZE_MUST_BE_POSITIVE)
                        : !model_mib ? TLI_RULE(MODEL_MIB_MUST_BE_POSITIVE)
                            : TLI_RULE(AVAILABLE_MIB_MUST_BE_POSITIVE));
    if (!tli_mul_u64(batch_size, model_mib, &product))
        return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(RECOMMEND_QUICK),
                        TLI_RULE(MODEL_MIB_TIMES_BATCH_SIZE_EXCEEDS_64));
    if (!training) {
        *strategy = batch_size >= 32 ? tl_strategy_high_throughput() : tl_strategy_inference();
        return TL_OK;
    }
    *strategy = tl_strategy_training();
    limit = available_mib - available_mib / 5 - (available_mib % 5 > 0);  // 4/5 of it, rounded down
    if (product > limit) strategy->gradient = tl_gradient_checkpointed(5);
    else if (batch_size >= 64) strategy->gradient = tl_gradient_accumulated(4);
    return TL_OK;
}

static double tli_mode_factor(tl_mode mode) {
    switch (mode) {
        case TL_MODE_LAZY:   return 1.2;
        case TL_MODE_HYBRID: return 1.1;
        case TL_MODE_EAGER: case TL_MODE_COUNT: break;
    }
    return 1.0;
}

static double tli_memory_factor(tl_memory memory) {
    switch (memory) {
        case TL_MEMORY_POOLED:       return 1.1;
        case TL_MEMORY_CACHED:       return 1.3;
        case TL_MEMORY_MINIMAL_PEAK: return 0.8;
        case TL_MEMORY_STANDARD: case TL_MEMORY_COUNT: break;
    }
    return 1.0;
}

TLI_IMPL double tl_estimate_overhead_quick(const tl_strategy *strategy) {
    double gradient = 1.0;
    TL_ASSERT(strategy);
    if (strategy->gradient.computes) {
        gradient = strategy->gradient.checkpointed ? 2.0 : 3.0;
        if (strategy->gradient.accumulation_steps) gradient += 0.5;
    }
    return tli_mode_factor(strategy->mode) * gradient * tli_memory_factor(strategy->memory);
}

#ifndef TL_NO_TEXT
// -- names as text --

TLI_IMPL int tl_parse_mode(const char *text, tl_mode *mode) {
    int32_t value;
    int known = tli_parse_word(tli_mode_names, TL_MODE_COUNT, text, &value);
    TL_ASSERT(mode);
    *mode = (tl_mode)value;
    return known;
}

TLI_IMPL int tl_parse_precision(const char *text, tl_precision *precision) {
    int32_t value;
    int known = tli_parse_word(tli_precision_names, TL_PRECISION_COUNT, text, &value);
    TL_ASSERT(precision);
    *precision = (tl_precision)value;
    return known;
}

TLI_IMPL int tl_parse_memory(const char *text, tl_memory *memory) {
    int32_t value;
    int known = tli_parse_word(tli_memory_names, TL_MEMORY_COUNT, text, &value);
    TL_ASSERT(memory);
    *memory = (tl_memory)value;
    return known;
}

TLI_IMPL int tl_parse_parallelism(const char *text, tl_parallelism_kind *kind) {
    int32_t value;
    int known = tli_parse_word(tli_parallelism_names, TL_PARALLELISM_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_parallelism_kind)value;
    return known;
}

// -- the seed's summary --

static const char *const tli_mode_labels[] = { TL_MODES(TLI_LABEL4) };
static const char *const tli_precision_labels[] = { TL_PRECISIONS(TLI_LABEL4) };
static const char *const tli_memory_labels[] = { TL_MEMORIES(TLI_LABEL4) };
static const char *const tli_parallelism_labels[] = { TL_PARALLELISMS(TLI_LABEL4) };
static const char *const tli_number_labels[TL_PARALLELISM_COUNT] = {
    "", "num_workers:", "num_devices:", "num_stages:", ""
};
static const char *const tli_switch_labels[] = { "false", "true" };

static int tli_has_number(tl_parallelism_kind kind) {
    tl_parallelism parallelism = tli_parallelism(kind, 0);
    return tli_parallelism_number(&parallelism) != NULL;
}

static void tli_put_gradient(tli_writer *w, const tl_gradient *gradient) {
    int accumulates = gradient->accumulation_steps > 0;
    if (!gradient->computes) { tli_put(w, "None"); return; }
    if (!gradient->checkpointed && !accumulates) { tli_put(w, "Full"); return; }
    tli_put(w, gradient->checkpointed ? "Checkpointed { " : "Accumulated { ");
    if (gradient->checkpointed) {
        tli_put(w, "checkpoint_interval: ");
        tli_put_u64(w, gradient->checkpoint_interval);
        if (accumulates) tli_put(w, ", ");
    }
    if (accumulates) {
        tli_put(w, "accumulation_steps: ");
        tli_put_u64(w, gradient->accumulation_steps);
    }
    tli_put(w, " }");
}

TLI_IMPL size_t tl_print_strategy(const tl_strategy *strategy, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    tl_parallelism_kind kind;
    TL_ASSERT(strategy);
    kind = strategy->parallelism.kind;
    tli_put(&w, "Execution Strategy:\n- Mode: ");
    tli_put(&w, tli_name(tli_mode_labels, TL_MODE_COUNT, (int64_t)strategy->mode));
    tli_put(&w, "\n- Gradient: ");
    tli_put_gradient(&w, &strategy->gradient);
    tli_put(&w, "\n- Precision: ");
    tli_put(&w, tli_name(tli_precision_labels, TL_PRECISION_COUNT, (int64_t)strategy->precision));
    tli_put(&w, "\n- Memory: ");
    tli_put(&w, tli_name(tli_memory_labels, TL_MEMORY_COUNT, (int64_t)strategy->memory));
    tli_put(&w, "\n- Parallelism: ");
    tli_put(&w, tli_name(tli_parallelism_labels, TL_PARALLELISM_COUNT, (int64_t)kind));
    if (tli_has_number(kind)) {
        tli_put(&w, " { ");
        tli_put(&w, tli_number_labels[kind]);
        tli_put(&w, " ");
        tli_put_u64(&w, tli_parallelism_count(&strategy->parallelism));
        tli_put(&w, " }");
    }
    tli_put(&w, "\n- Fusion: ");
    tli_put(&w, tli_switch_labels[strategy->enable_fusion != 0]);
    tli_put(&w, "\n- Profiling: ");
    tli_put(&w, tli_switch_labels[strategy->enable_profiling != 0]);
    return tli_finish(&w);
}

// Read a line that begins with "- " and a label such as "Mode:"; *value is the word after it.
static int tli_read_label(tli_reader *r, const char *label, tli_word *value) {
    tli_word dash, name;
    return tli_next_line(r) && tli_next_word(r, &dash) && tli_word_is(dash, "-")
        && tli_next_word(r, &name) && tli_word_is(name, label) && tli_next_word(r, value);
}

static int tli_ends_line(tli_reader *r) {
    tli_word word;
    return !tli_next_word(r, &word);
}

// Read a whole line such as "- Mode: Lazy".
static int tli_read_choice(tli_reader *r, const char *label, const char *const *names,
                           int32_t count, int32_t *value) {
    tli_word word;
    return tli_read_label(r, label, &word)
        && tli_parse_name(names, count, word.text, word.length, value) && tli_ends_line(r);
}

// Read "name: 10 }", or "name: 10," if another field follows. As in the seed, 0 is refused.
static int tli_read_number(tli_reader *r, const char *name, uint64_t *value, int *more) {
    tli_word word;
    if (!tli_next_word(r, &word) || !tli_word_is(word, name) || !tli_next_word(r, &word)) return 0;
    *more = word.text[word.length - 1] == ',';
    word.length -= (size_t)*more;
    if (!tli_read_u64(word, value) || !*value) return 0;
    return *more || (tli_next_word(r, &word) && tli_word_is(word, "}"));
}

static int tli_read_gradient(tli_reader *r, tl_gradient *gradient) {
    tli_word kind, brace;
    int more = 0;
    if (!tli_read_label(r, "Gradient:", &kind)) return 0;
    *gradient = tl_gradient_full();
    if (tli_word_is(kind, "None")) gradient->computes = 0;
    if (tli_word_is(kind, "None") || tli_word_is(kind, "Full")) return tli_ends_line(r);
    if (!tli_next_word(r, &brace) || !tli_word_is(brace, "{")) return 0;
    if (tli_word_is(kind, "Checkpointed")) {
        gradient->checkpointed = 1;
        if (!tli_read_number(r, "checkpoint_interval:", &gradient->checkpoint_interval, &more))
            return 0;
        if (!more) return tli_ends_line(r);
    } else if (!tli_word_is(kind, "Accumulated")) {
        return 0;
    }
    return tli_read_number(r, "accumulation_steps:", &gradient->accumulation_steps, &more) && !more
        && tli_ends_line(r);
}

static int tli_read_parallelism(tli_reader *r, tl_parallelism *parallelism) {
    tli_word word;
    int32_t kind;
    int more = 0;
    if (!tli_read_label(r, "Parallelism:", &word)
        || !tli_parse_name(tli_parallelism_labels, TL_PARALLELISM_COUNT, word.text, word.length,
                           &kind))
        return 0;
    *parallelism = tli_parallelism((tl_parallelism_kind)kind, 0);
    if (!tli_has_number(parallelism->kind)) return tli_ends_line(r);
    if (!tli_next_word(r, &word) || !tli_word_is(word, "{")) return 0;
    return tli_read_number(r, tli_number_labels[kind], tli_parallelism_number(parallelism), &more)
        && !more && tli_ends_line(r);
}

// Read a summary. Returns TLI_NO_RULE, or what is wrong with the current line of the reader.
static tli_rule tli_read_strategy(tli_reader *r, tl_strategy *s) {
    tli_word word;
    int32_t value;
    if (!tli_next_line(r) || !tli_next_word(r, &word) || !tli_word_is(word, "Execution")
        || !tli_next_word(r, &word) || !tli_word_is(word, "Strategy:") || !tli_ends_line(r))
        return TLI_RULE(EXPECTED_EXECUTION_STRATEGY);
    if (!tli_read_choice(r, "Mode:", tli_mode_labels, TL_MODE_COUNT, &value))
        return TLI_RULE(EXPECTED_MODE_AND_ONE_OF_EAGER_LAZY);
    s->mode = (tl_mode)value;
    if (!tli_read_gradient(r, &s->gradient))
        return TLI_RULE(EXPECTED_GRADIENT_AND_NONE_FULL);
    if (!tli_read_choice(r, "Precision:", tli_precision_labels, TL_PRECISION_COUNT, &value))
        return TLI_RULE(EXPECTED_PRECISION_AND_ONE_OF_FULL);
    s->precision = (tl_precision)value;
    if (!tli_read_choice(r, "Memory:", tli_memory_labels, TL_MEMORY_COUNT, &value))
        return TLI_RULE(EXPECTED_MEMORY_AND_ONE_OF_STANDARD);
    s->memory = (tl_memory)value;
    if (!tli_read_parallelism(r, &s->parallelism))
        return TLI_RULE(EXPECTED_PARALLELISM_AND_ITS_KIND_SOME);
    if (!tli_read_choice(r, "Fusion:", tli_switch_labels, 2, &s->enable_fusion))
        return TLI_RULE(EXPECTED_FUSION_AND_TRUE_OR_FALSE);
    if (!tli_read_choice(r, "Profiling:", tli_switch_labels, 2, &s->enable_profiling))
        return TLI_RULE(EXPECTED_PROFILING_AND_TRUE_OR_FALSE);
    while (tli_next_line(r))
        if (!tli_ends_line(r)) return TLI_RULE(TEXT_AFTER_SUMMARY);
    return TLI_NO_RULE;
}

TLI_IMPL tl_result tl_parse_strategy(tl_env *env, const char *text, size_t length,
                                     tl_strategy *strategy) {
    tli_reader r = tli_reader_of(text, length);
    tli_rule wrong;
    TL_ASSERT(text && strategy);
    *strategy = tl_strategy_new();
    wrong = tli_read_strategy(&r, strategy);
    if (!wrong) return TL_OK;
    *strategy = tl_strategy_new();
    return tli_fail_line(env, TL_ERROR_PARSE, TLI_IN(PARSE_STRATEGY), r.line, wrong);
}

// -- JSON --

static const char *const tli_strategy_keys[] = {
    "mode", "gradient", "precision", "memory", "parallelism", "fusion", "profiling"
};
static const char *const tli_gradient_keys[] = {
    "computes", "checkpointed", "checkpoint_interval", "accumulation_steps"
};
static const char *const tli_parallelism_keys[] = { "kind", "count" };

// Write {"key": for the first key, and ,"key": for the others.
static void tli_put_key(tli_writer *w, const char *const *keys, int32_t key) {
    tli_put(w, key ? "," : "{");
    tli_put_json_text(w, keys[key]);
    tli_put(w, ":");
}

TLI_IMPL size_t tl_print_strategy_json(const tl_strategy *strategy, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_gradient *gradient;
    TL_ASSERT(strategy);
    gradient = &strategy->gradient;
    tli_put_key(&w, tli_strategy_keys, 0);
    tli_put_json_text(&w, tl_name_mode(strategy->mode));
    tli_put_key(&w, tli_strategy_keys, 1);
    tli_put_key(&w, tli_gradient_keys, 0);
    tli_put(&w, tli_switch_labels[gradient->computes != 0]);
    tli_put_key(&w, tli_gradient_keys, 1);
    tli_put(&w, tli_switch_labels[gradient->checkpointed != 0]);
    tli_put_key(&w, tli_gradient_keys, 2);
    tli_put_u64(&w, gradient->checkpoint_interval);
    tli_put_key(&w, tli_gradient_keys, 3);
    tli_put_u64(&w, gradient->accumulation_steps);
    tli_put(&w, "}");
    tli_put_key(&w, tli_strategy_keys, 2);
    tli_put_json_text(&w, tl_name_precision(strategy->precision));
    tli_put_key(&w, tli_strategy_keys, 3);
    tli_put_json_text(&w, tl_name_memory(strategy->memory));
    tli_put_key(&w, tli_strategy_keys, 4);
    tli_put_key(&w, tli_parallelism_keys, 0);
    tli_put_json_text(&w, tl_name_parallelism(strategy->parallelism.kind));
    if (tli_has_number(strategy->parallelism.kind)) {
        tli_put_key(&w, tli_parallelism_keys, 1);
        tli_put_u64(&w, tli_parallelism_count(&strategy->parallelism));
    }
    tli_put(&w, "}");
    tli_put_key(&w, tli_strategy_keys, 5);
    tli_put(&w, tli_switch_labels[strategy->enable_fusion != 0]);
    tli_put_key(&w, tli_strategy_keys, 6);
    tli_put(&w, tli_switch_labels[strategy->enable_profiling != 0]);
    tli_put(&w, "}");
    return tli_finish(&w);
}

static void tli_read_gradient_json(tli_json *j, tl_gradient *gradient) {
    uint32_t seen = 0;
    int32_t key;
    if (!tli_json_enter(j, '{')) return;
    while ((key = tli_json_next_key(j, tli_gradient_keys, 4, &seen)) >= 0) {
        if (key == 0) gradient->computes = tli_json_bool(j);
        else if (key == 1) gradient->checkpointed = tli_json_bool(j);
        else if (key == 2) gradient->checkpoint_interval = tli_json_u64(j);
        else gradient->accumulation_steps = tli_json_u64(j);
    }
}

static void tli_read_parallelism_json(tli_json *j, tl_parallelism *parallelism) {
    uint64_t count = 0;
    uint32_t seen = 0;
    int32_t key, kind = 0;
    if (!tli_json_enter(j, '{')) return;
    while ((key = tli_json_next_key(j, tli_parallelism_keys, 2, &seen)) >= 0) {
        if (key == 0) kind = tli_json_name(j, tli_parallelism_names, TL_PARALLELISM_COUNT);
        else count = tli_json_u64(j);
    }
    *parallelism = tli_parallelism((tl_parallelism_kind)kind, count);
    if (seen >> 1 && !tli_has_number(parallelism->kind)) tli_json_fail(j, TLI_RULE(THIS_KIND_HAS_NO_COUNT));
}

TLI_IMPL tl_result tl_parse_strategy_json(tl_env *env, const char *text, size_t length,
                                          tl_strategy *strategy) {
    const tli_function function = TLI_IN(PARSE_STRATEGY_JSON);
    tl_strategy s = tl_strategy_new();
    uint32_t seen = 0;
    int32_t key, mode = 0, precision = 0, memory = 0;
    tli_json j;
    tli_rule rule;
    TL_ASSERT(text && strategy);
    *strategy = s;
    j = tli_json_open(env, function, text, length);
    tli_json_enter(&j, '{');
    while ((key = tli_json_next_key(&j, tli_strategy_keys, 7, &seen)) >= 0)
        switch (key) {
            case 0: mode = tli_json_name(&j, tli_mode_names, TL_MODE_COUNT); break;
            case 1: tli_read_gradient_json(&j, &s.gradient); break;
            case 2: precision = tli_json_name(&j, tli_precision_names, TL_PRECISION_COUNT); break;
            case 3: memory = tli_json_name(&j, tli_memory_names, TL_MEMORY_COUNT); break;
            case 4: tli_read_parallelism_json(&j, &s.parallelism); break;
            case 5: s.enable_fusion = tli_json_bool(&j); break;
            case 6: s.enable_profiling = tli_json_bool(&j); break;
        }
    s.mode = (tl_mode)mode;
    s.precision = (tl_precision)precision;
    s.memory = (tl_memory)memory;
    if (tli_json_end(&j)) return TL_ERROR_PARSE;
    rule = tli_strategy_rule(&s);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    *strategy = s;
    return TL_OK;
}
#endif  // TL_NO_TEXT
#endif  // TL_STRATEGY_IMPLEMENTATION

