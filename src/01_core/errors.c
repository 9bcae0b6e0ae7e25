#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- errors: recording --
//
// A failing call records code, site and values in the env, and the sentence "function: field: rule". Words
// beside the rule's sentence are written only where TLI_ERROR_TEXT is 1; compilers drop them where it is 0.

// The sentence of an error that is being written. Code, site and values are in the env already.
typedef struct tli_sentence {
    tli_writer      text;    // writes to env->error.text, or nowhere
    const char     *rest;    // the part of the rule's sentence that is not written yet
    const uint64_t *values;  // [2]
} tli_sentence;

// Record an error by its site, and begin its sentence with the name of a function.
static tli_sentence tli_begin_site(tl_env *env, tl_result code, uint32_t site, const char *function,
                                   const char *sentence, uint64_t first, uint64_t second) {
    tli_sentence s;
    s.text = tli_writer_of(NULL, 0);
    s.rest = "";
    s.values = NULL;
    if (!env) return s;
    env->error.code = code;
    env->error.site = site;
    env->error.values[0] = first;
    env->error.values[1] = second;
    env->error.text[0] = 0;
    if (!TLI_ERROR_TEXT) return s;
    s.text = tli_writer_of(env->error.text, sizeof env->error.text);
    s.rest = sentence;
    s.values = env->error.values;
    if (*function) { tli_put(&s.text, function); tli_put(&s.text, ": "); }
    return s;
}

static int tli_has_half_allocator(const tl_env *env) { return env && !env->alloc != !env->release; }

static tli_sentence tli_begin_error(tl_env *env, tl_result code, tli_function function, tli_rule rule,
                                    uint64_t first, uint64_t second) {
    if (code == TL_ERROR_NO_MEMORY && tli_has_half_allocator(env)) rule = TLI_RULE(ENV_HAS_HALF_AN_ALLOCATOR);
    return tli_begin_site(env, code, tli_number_function(function) << 16 | tli_number_rule(rule),
                          tli_name_function(function), tli_name_rule(rule), first, second);
}

// Write the rule's sentence up to its next %s, and return 1; or up to its end, and return 0.
static int tli_put_rule(tli_sentence *s) {
    const char *at = s->rest;
    while (TLI_ERROR_TEXT && *at) {
        if (*at != '%') { tli_put_bytes(&s->text, at++, 1); continue; }
        s->rest = at += 2;
        if (at[-1] == 's') return 1;
        tli_put_u64(&s->text, s->values[at[-1] - '0']);
    }
    s->rest = at;
    return 0;
}

#define TLI_LIMIT_FIELD(id, field, whose) field,
static const char *const tli_limit_fields[] = { TL_LIMITS(TLI_LIMIT_FIELD) };
#undef TLI_LIMIT_FIELD

// Write the rule's sentence up to its next %s, and a text instead of that.
static void tli_put_text(tli_sentence *s, const char *text) {
    tli_put_rule(s);
    tli_put(&s->text, text);
}

// The same with the field of a limit; the limit becomes part of the site.
static void tli_put_limit(tl_env *env, tli_sentence *s, tl_limit limit) {
    if (env) env->error.site |= (uint32_t)limit << 24;
    tli_put_text(s, tli_limit_fields[limit]);
}

// Write the rest of the sentence and log it. A sentence that is too long is cut between two characters.
static tl_result tli_end_error(tl_env *env, tli_sentence *s, tl_result code) {
    tli_writer *w = &s->text;
    tli_put_rule(s);
    if (w->size && w->length >= w->size) w->size = tli_whole_characters(w->buf, w->size - 1) + 1;
    tli_finish(w);
    if (TLI_ERROR_TEXT && env && env->log) (env->log)(env->user, env->error.text);
    return code;
}

static tl_result tli_fail_values(tl_env *env, tl_result code, tli_function function, tli_rule rule,
                                 uint64_t first, uint64_t second) {
    tli_sentence s = tli_begin_error(env, code, function, rule, first, second);
    return tli_end_error(env, &s, code);
}

static tl_result tli_fail(tl_env *env, tl_result code, tli_function function, tli_rule rule) {
    return tli_fail_values(env, code, function, rule, 0, 0);
}

#ifndef TL_ONLY_TABLES
// Write "3 (conv1)".
static void tli_put_named(tli_writer *w, int64_t number, const char *name) {
    tli_put_i64(w, number);
    tli_put(w, " (");
    tli_put(w, name);
    tli_put(w, ")");
}
#endif

TLI_IMPL tl_result tl_record_error(tl_env *env, tl_result code, const char *function, const char *rule) {
    tli_sentence s;
    TL_ASSERT(function && rule);
    s = tli_begin_site(env, code, TLI_RULE_OF_A_BACKEND, function, "", 0, 0);
    tli_put(&s.text, rule);
    return tli_end_error(env, &s, code);
}

// Tell whether the values of a rule are a budget and the least one that would do. The sentence of such a rule
// begins with the field of the limit, as its first %s or spelled out.
static int tli_names_budget(uint32_t rule) {
    return rule == TLI_RULE_BUDGET_BYTES_DO_NOT_FIT_OF_ARE_IN_USE ||
           rule == TLI_RULE_LEAST_THAT_WORKS_IS_BYTES ||
           rule == TLI_RULE_POLICY_NEEDS_BYTES ||
           rule == TLI_RULE_NODE_NEEDS_BYTES_WITH_ALL_ELSE_EVICTED ||
           rule == TLI_RULE_NO_KEPT_SET_HAS_PEAK_OF_AT_MOST_BYTES ||
           rule == TLI_RULE_NO_PERSISTENT_SCHEDULE_FITS_BELOW ||
           rule == TLI_RULE_NO_PERSISTENT_SCHEDULE_FOUND_BELOW ||
           rule == TLI_RULE_BYTES_ARE_TOO_FEW_FOR_ANY_PLAN ||
           rule == TLI_RULE_NO_PLAN_WAS_FOUND_FOR_BYTES ||
           rule == TLI_RULE_NO_COMBINATION_FITS ||
           rule == TLI_RULE_NO_STRATEGY_FITS ||
           rule == TLI_RULE_NO_CUT_FITS ||
           rule == TLI_RULE_LIMITS_CANNOT_BE_HELD_TOGETHER ||
           rule == TLI_RULE_NO_REPLICAS_FIT ||
           rule == TLI_RULE_NO_PLACEMENT_FITS ||
           rule == TLI_RULE_NO_CHOICE_FITS ||
           rule == TLI_RULE_STAGE_DOES_NOT_FIT ||
           rule == TLI_RULE_PIECES_BUDGET_IS_TOO_SMALL ||
           rule == TLI_RULE_ROWS_BUDGET_IS_TOO_SMALL ||
           rule == TLI_RULE_ROWS_NO_DIVISION_FITS_LEAST_IS_BYTES ||
           rule == TLI_RULE_PLAN_TAKES_BYTES || rule == TLI_RULE_TABLES_AND_ARENA_TAKE_BYTES;
}

TLI_IMPL uint64_t tl_find_least_budget(const tl_error *error) {
    TL_ASSERT(error);
    return tli_names_budget(error->site & 0xFFFF) ? error->values[1] : UINT64_MAX;
}

TLI_IMPL tl_limit tl_find_limit(const tl_error *error) {
    uint32_t limit;
    TL_ASSERT(error);
    limit = error->site >> 24;
    return tli_names_budget(error->site & 0xFFFF) && limit < TL_LIMIT_COUNT ? (tl_limit)limit : TL_LIMIT_BUDGET;
}

#if !defined(TL_NO_TEXT) && !defined(TL_NO_ERROR_TEXT)
// -- errors: explanations --

#define TLI_FUNCTION_PLACE(id, name) &tli_in_##id,
#define TLI_RULE_PLACE(id, sentence, values) &tli_rule_##id,
#define TLI_RULE_VALUES(id, sentence, values) values,

static const void *const tli_all_functions[] = { TLI_FUNCTIONS(TLI_FUNCTION_PLACE) NULL };
static const void *const tli_all_rules[] = { TLI_RULES(TLI_RULE_PLACE) NULL };
static const char *const tli_all_values[] = { TLI_RULES(TLI_RULE_VALUES) NULL };

// Find the index of the text with a number; the index of the NULL at the end if there is none.
static int32_t tli_find_text(const void *const *texts, uint32_t number) {
    int32_t i = 0;
    while (texts[i] && tli_number_text(texts[i]) != number) i++;
    return i;
}

// Write " (budget 40, least budget 96)". names: "budget, least budget"; "" = nothing is written. What was never
// a text has no line.
static void tli_put_values(tli_writer *w, const char *names, const uint64_t *values) {
    const char *before = " (";
    int32_t i;
    for (i = 0; *names; i++) {
        size_t length = 0;
        while (names[length] && names[length] != ',') length++;
        if (values[i] || length != 4 || TLI_MEMCMP(names, "line", 4) != 0) {
            tli_put(w, before);
            tli_put_bytes(w, names, length);
            tli_put(w, " ");
            if (values[i] == UINT64_MAX) tli_put(w, "none");
            else tli_put_u64(w, values[i]);
            before = ", ";
        }
        names += length;
        if (*names) names += 2;
    }
    if (*before == ',') tli_put(w, ")");
}

TLI_IMPL size_t tl_explain_error(const tl_error *error, char *buf, size_t size) {
    uint32_t limit;
    int32_t function, rule;
    tli_sentence s;
    TL_ASSERT(error);
    limit = error->site >> 24;
    function = tli_find_text(tli_all_functions, error->site >> 16 & 0xFF);
    rule = tli_find_text(tli_all_rules, error->site & 0xFFFF);
    s.text = tli_writer_of(buf, size);
    s.values = error->values;
    if (error->site == TLI_RULE_OF_A_BACKEND) {
        tli_put(&s.text, "tl_record_error: a sentence of the function that called it");
    } else if (tli_all_functions[function] && tli_all_rules[rule] && limit < TL_LIMIT_COUNT &&
               (!limit || tli_names_budget(error->site & 0xFFFF))) {
        s.rest = tli_name_rule((tli_rule)tli_all_rules[rule]);
        tli_put(&s.text, tli_name_function((tli_function)tli_all_functions[function]));
        tli_put(&s.text, ": ");
        if (tli_names_budget(error->site & 0xFFFF)) tli_put_text(&s, tli_limit_fields[limit]);
        while (tli_put_rule(&s)) tli_put(&s.text, "...");
        tli_put_values(&s.text, tli_all_values[rule], error->values);
    }
    return tli_finish(&s.text);
}
#endif

// -- attempts that may fail --

// While a call tries what may fail, such as a block where memory may be full, nothing is logged. If the attempt
// fails in the end, its last sentence is logged; otherwise the env's error is again what it was before: it
// changes only when the call of the user fails.
typedef struct tli_quiet {
    tl_env  *env;
    tl_error error;
    void   (*log)(void *user, const char *text);
} tli_quiet;

// A hook of the caller runs between these two calls. If it fails, the code is always TL_ERROR_KERNEL, and where
// a function of the library that the hook called failed on this env, that sentence is put behind the one about
// the hook. If it does not fail, and no such function did, the env's error code is as it was before.
static tl_result tli_begin_hook(tl_env *env) {
    tl_result before = env ? env->error.code : TL_OK;
    if (env) env->error.code = TL_OK;
    return before;
}

static tl_result tli_end_hook(tl_env *env, tl_result before, tl_result result, tli_function function,
                              tli_rule rule) {
    tl_error said;
    tli_sentence s;
    tli_zero(&said, sizeof said);
    if (env) said = env->error;
    if (env && !said.code) env->error.code = before;
    if (!result || result == TL_NOT_READY) return result;
    s = tli_begin_error(env, TL_ERROR_KERNEL, function, rule, 0, 0);
    tli_put_rule(&s);
    if (said.code && said.text[0]) {
        tli_put(&s.text, ": ");
        tli_put(&s.text, said.text);
    }
    return tli_end_error(env, &s, TL_ERROR_KERNEL);
}

#ifndef TL_ONLY_TABLES
// Record that a sink of the caller returned an error after it took `sent` bytes, and return that error.
static tl_result tli_fail_sink(tl_env *env, tl_result result, tli_function function, uint64_t sent) {
    tli_sentence s = tli_begin_error(env, result, function, TLI_RULE(SINK_STOPPED_WITH_AFTER_BYTES),
                                     (uint64_t)result, sent);
    tli_put_text(&s, tl_name_result(result));
    return tli_end_error(env, &s, result);
}

static tli_quiet tli_begin_quiet(tl_env *env) {
    tli_quiet quiet;
    quiet.env = env;
    quiet.log = NULL;
    if (!env) { tli_zero(&quiet.error, sizeof quiet.error); return quiet; }
    quiet.error = env->error;
    quiet.log = env->log;
    env->error.code = TL_OK;
    env->log = NULL;
    return quiet;
}

static void tli_end_quiet(const tli_quiet *quiet, tl_result result) {
    tl_env *env = quiet->env;
    if (!env) return;
    env->log = quiet->log;
    if (!result || !env->error.code) env->error = quiet->error;
    else if (TLI_ERROR_TEXT && env->log) (env->log)(env->user, env->error.text);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

