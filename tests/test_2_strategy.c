// [2] STRATEGY: fields, presets, builders, rules, rules of thumb, summary and JSON both ways, the seed's vectors.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"

#include <float.h>

static const tl_strategy zero;

static void assert_same(const tl_strategy *a, const tl_strategy *b) {
    char first[400], second[400];
    tl_print_strategy_json(a, first, sizeof first);
    tl_print_strategy_json(b, second, sizeof second);
    assert_string_equal(first, second);
    assert_true(tl_equals_strategy(a, b));
}

static tl_gradient gradient_of(int computes, int checkpointed, uint64_t interval, uint64_t steps) {
    tl_gradient g;
    memset(&g, 0, sizeof g);
    g.computes = computes;
    g.checkpointed = checkpointed;
    g.checkpoint_interval = interval;
    g.accumulation_steps = steps;
    return g;
}

// The index-th of all valid strategies of a few numbers; 0 past the last one.
static int strategy_at(long index, tl_strategy *s) {
    static const uint64_t numbers[] = { 1, 4, UINT64_MAX };
    const tl_gradient gradients[] = {
        tl_gradient_none(), tl_gradient_full(), tl_gradient_checkpointed(1), tl_gradient_checkpointed(UINT64_MAX),
        tl_gradient_accumulated(1), tl_gradient_accumulated(7), gradient_of(1, 1, 5, 4), gradient_of(1, 1, UINT64_MAX, UINT64_MAX),
        tl_gradient_checkpointed(0), gradient_of(1, 1, 0, 3)  // 0 = the planner's optimum: only JSON can say it
    };
    long p;
    *s = tl_strategy_new();
    s->mode = (tl_mode)(index % TL_MODE_COUNT); index /= TL_MODE_COUNT;
    s->precision = (tl_precision)(index % TL_PRECISION_COUNT); index /= TL_PRECISION_COUNT;
    s->memory = (tl_memory)(index % TL_MEMORY_COUNT); index /= TL_MEMORY_COUNT;
    s->enable_fusion = (int32_t)(index % 2); index /= 2;
    s->enable_profiling = (int32_t)(index % 2); index /= 2;
    p = index % 11; index /= 11;
    if (p == 1) s->parallelism = tl_parallelism_automatic();
    else if (p > 7) s->parallelism = tl_parallelism_pipeline(numbers[p - 8]);
    else if (p > 4) s->parallelism = tl_parallelism_model(numbers[p - 5]);
    else if (p > 1) s->parallelism = tl_parallelism_data(numbers[p - 2]);
    if (index >= (long)(sizeof gradients / sizeof *gradients)) return 0;
    s->gradient = gradients[index];
    return 1;
}

// -- the seed's own tests --

static void seed_execution_strategy_presets(void **state) {
    tl_strategy training = tl_strategy_training(), inference = tl_strategy_inference(), efficient = tl_strategy_memory_efficient();
    tl_strategy throughput = tl_strategy_high_throughput(), debug = tl_strategy_debug();
    (void)state;
    assert_true(tl_computes_gradients(&training) && training.enable_fusion);
    assert_true(!tl_computes_gradients(&inference) && tl_is_inference_mode(&inference));
    assert_true(tl_uses_checkpointing(&efficient));
    assert_true(tl_find_worker_count(&throughput, 1) > 1);
    assert_true(debug.enable_profiling);
}

static void seed_execution_strategy_builder(void **state) {
    tl_strategy s = tl_with_precision(tl_with_mode(tl_strategy_new(), TL_MODE_LAZY), TL_PRECISION_SINGLE);
    (void)state;
    s = tl_with_profiling(tl_with_fusion(s, 1), 1);
    assert_true(s.mode == TL_MODE_LAZY && s.precision == TL_PRECISION_SINGLE && s.enable_fusion && s.enable_profiling);
}

static void seed_gradient_strategies(void **state) {
    tl_strategy s = tl_with_gradient(tl_strategy_new(), tl_gradient_none());
    uint64_t number;
    (void)state;
    assert_false(tl_computes_gradients(&s));
    s = tl_with_gradient(s, tl_gradient_full());
    assert_true(tl_computes_gradients(&s));
    s = tl_with_gradient(s, tl_gradient_checkpointed(10));
    assert_true(tl_uses_checkpointing(&s));
    assert_true(tl_find_checkpoint_interval(&s, &number) && number == 10);
    s = tl_with_gradient(s, tl_gradient_accumulated(4));
    assert_true(tl_find_accumulation_steps(&s, &number) && number == 4);
}

static void seed_parallelism_strategies(void **state) {
    tl_strategy s = tl_with_parallelism(tl_strategy_new(), tl_parallelism_none());
    (void)state;
    assert_int_equal(tl_find_worker_count(&s, 16), 1);
    s = tl_with_parallelism(s, tl_parallelism_data(4));
    assert_int_equal(tl_find_worker_count(&s, 16), 4);
    s = tl_with_parallelism(s, tl_parallelism_automatic());
    assert_true(tl_find_worker_count(&s, 16) >= 1);
}

static void seed_strategy_optimizer_recommendations(void **state) {
    tl_strategy s;
    uint64_t number;
    (void)state;
    assert_int_equal(tl_recommend_quick(NULL, 32, 1000, 2000, 1, &s), TL_OK);
    assert_true(tl_computes_gradients(&s));
    assert_int_equal(tl_recommend_quick(NULL, 64, 2000, 2000, 1, &s), TL_OK);
    assert_true(tl_uses_checkpointing(&s) || tl_find_accumulation_steps(&s, &number));
    assert_int_equal(tl_recommend_quick(NULL, 64, 500, 4000, 0, &s), TL_OK);
    assert_false(tl_computes_gradients(&s));
    assert_int_equal(tl_recommend_quick(NULL, 8, 500, 4000, 0, &s), TL_OK);
    assert_false(tl_computes_gradients(&s));
}

static void seed_memory_overhead_estimation(void **state) {
    tl_strategy plain = tl_strategy_new(), training = tl_strategy_training(), efficient = tl_strategy_memory_efficient();
    (void)state;
    assert_true(tl_estimate_overhead_quick(&plain) == 1.0);
    assert_true(tl_estimate_overhead_quick(&training) > 2.0);
    assert_true(tl_estimate_overhead_quick(&efficient) < tl_estimate_overhead_quick(&training));
}

static void seed_execution_modes(void **state) {
    tl_strategy eager = tl_strategy_new(), lazy = tl_with_mode(eager, TL_MODE_LAZY);
    (void)state;
    assert_true(tl_equals_strategy(&eager, &eager));
    assert_false(tl_equals_strategy(&eager, &lazy));
}

static void seed_precision_modes(void **state) {
    int i;
    (void)state;
    for (i = 0; i < TL_PRECISION_COUNT; i++)
        assert_int_equal(tl_with_precision(tl_strategy_new(), (tl_precision)i).precision, i);
}

static void seed_strategy_summary(void **state) {
    tl_strategy s = tl_strategy_training();
    char text[400];
    (void)state;
    tl_print_strategy(&s, text, sizeof text);
    assert_non_null(strstr(text, "Execution Strategy"));
    assert_non_null(strstr(text, "Mode"));
    assert_non_null(strstr(text, "Gradient"));
    assert_non_null(strstr(text, "Precision"));
}

// -- fields --

static void every_value_has_a_name_that_parses_back(void **state) {
    static const char *const modes[] = { "eager", "lazy", "hybrid" }, *const precisions[] = { "full", "f32", "mixed", "f16", "bf16", "f64" };
    static const char *const memories[] = { "standard", "pooled", "cached", "minimal-peak" };
    static const char *const kinds[] = { "none", "data", "model", "pipeline", "automatic" };
    static const char *const wrong[] = { "", "?", "Lazy", "lazy ", " lazy", "laz", "lazyy", "Half", "f8", "minimal_peak", "Data" };
    tl_mode mode;
    tl_precision precision;
    tl_memory memory;
    tl_parallelism_kind kind;
    int i;
    (void)state;
    assert_int_equal(TL_MODE_COUNT, 3);
    assert_int_equal(TL_PRECISION_COUNT, 6);
    assert_int_equal(TL_MEMORY_COUNT, 4);
    assert_int_equal(TL_PARALLELISM_COUNT, 5);
    for (i = 0; i < TL_MODE_COUNT; i++) {
        assert_string_equal(tl_name_mode((tl_mode)i), modes[i]);
        assert_true(tl_parse_mode(modes[i], &mode) && (int)mode == i);
    }
    for (i = 0; i < TL_PRECISION_COUNT; i++) {
        assert_string_equal(tl_name_precision((tl_precision)i), precisions[i]);
        assert_true(tl_parse_precision(precisions[i], &precision) && (int)precision == i);
    }
    for (i = 0; i < TL_MEMORY_COUNT; i++) {
        assert_string_equal(tl_name_memory((tl_memory)i), memories[i]);
        assert_true(tl_parse_memory(memories[i], &memory) && (int)memory == i);
    }
    for (i = 0; i < TL_PARALLELISM_COUNT; i++) {
        assert_string_equal(tl_name_parallelism((tl_parallelism_kind)i), kinds[i]);
        assert_true(tl_parse_parallelism(kinds[i], &kind) && (int)kind == i);
    }
    for (i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++) {
        mode = TL_MODE_HYBRID; precision = TL_PRECISION_HALF; memory = TL_MEMORY_CACHED; kind = TL_PARALLELISM_DATA;
        assert_false(tl_parse_mode(wrong[i], &mode) || mode);
        assert_false(tl_parse_precision(wrong[i], &precision) || precision);
        assert_false(tl_parse_memory(wrong[i], &memory) || memory);
        assert_false(tl_parse_parallelism(wrong[i], &kind) || kind);
    }
    assert_string_equal(tl_name_mode(TL_MODE_COUNT), "?");
    assert_string_equal(tl_name_precision(TL_PRECISION_COUNT), "?");
    assert_string_equal(tl_name_memory(TL_MEMORY_COUNT), "?");
    assert_string_equal(tl_name_parallelism(TL_PARALLELISM_COUNT), "?");
}

static void all_zero_is_the_plain_strategy_and_valid(void **state) {
    tl_strategy s = tl_strategy_new();
    (void)state;
    assert_same(&s, &zero);
    assert_true(s.mode == TL_MODE_EAGER && s.precision == TL_PRECISION_FULL && s.memory == TL_MEMORY_STANDARD);
    assert_true(s.parallelism.kind == TL_PARALLELISM_NONE && !s.gradient.computes && !s.enable_fusion && !s.enable_profiling);
    assert_int_equal(tl_check_strategy(NULL, &s), TL_OK);
}

static void presets_print_as_documented(void **state) {
    const tl_strategy presets[] = { tl_strategy_new(), tl_strategy_training(), tl_strategy_inference(),
        tl_strategy_memory_efficient(), tl_strategy_high_throughput(), tl_strategy_debug() };
    static const char *const summaries[] = {
        "Execution Strategy:\n- Mode: Eager\n- Gradient: None\n- Precision: Full\n- Memory: Standard\n"
        "- Parallelism: None\n- Fusion: false\n- Profiling: false",
        "Execution Strategy:\n- Mode: Lazy\n- Gradient: Full\n- Precision: Single\n- Memory: Pooled\n"
        "- Parallelism: Automatic\n- Fusion: true\n- Profiling: true",
        "Execution Strategy:\n- Mode: Eager\n- Gradient: None\n- Precision: Single\n- Memory: Cached\n"
        "- Parallelism: Automatic\n- Fusion: true\n- Profiling: false",
        "Execution Strategy:\n- Mode: Hybrid\n- Gradient: Checkpointed { checkpoint_interval: 10 }\n- Precision: Mixed\n"
        "- Memory: MinimalPeak\n- Parallelism: None\n- Fusion: false\n- Profiling: false",
        "Execution Strategy:\n- Mode: Lazy\n- Gradient: None\n- Precision: Single\n- Memory: Pooled\n"
        "- Parallelism: DataParallel { num_workers: 4 }\n- Fusion: true\n- Profiling: false",
        "Execution Strategy:\n- Mode: Eager\n- Gradient: Full\n- Precision: Full\n- Memory: Standard\n"
        "- Parallelism: None\n- Fusion: false\n- Profiling: true"
    };
    char text[400];
    int i;
    (void)state;
    for (i = 0; i < 6; i++) {
        assert_int_equal(tl_check_strategy(NULL, &presets[i]), TL_OK);
        assert_int_equal(tl_print_strategy(&presets[i], text, sizeof text), strlen(summaries[i]));
        assert_string_equal(text, summaries[i]);
    }
}

static void builders_change_one_field(void **state) {
    tl_strategy base = tl_strategy_training(), s = tl_with_mode(base, TL_MODE_HYBRID);
    (void)state;
    assert_true(s.mode == TL_MODE_HYBRID);
    s.mode = base.mode; assert_same(&s, &base);
    s = tl_with_gradient(base, tl_gradient_checkpointed(3));
    assert_true(s.gradient.checkpoint_interval == 3 && s.gradient.checkpointed && s.gradient.computes);
    s.gradient = base.gradient; assert_same(&s, &base);
    s = tl_with_precision(base, TL_PRECISION_BF16);
    assert_true(s.precision == TL_PRECISION_BF16);
    s.precision = base.precision; assert_same(&s, &base);
    s = tl_with_memory(base, TL_MEMORY_MINIMAL_PEAK);
    assert_true(s.memory == TL_MEMORY_MINIMAL_PEAK);
    s.memory = base.memory; assert_same(&s, &base);
    s = tl_with_parallelism(base, tl_parallelism_pipeline(3));
    assert_true(s.parallelism.kind == TL_PARALLELISM_PIPELINE && s.parallelism.as.pipeline.stage_count == 3);
    s.parallelism = base.parallelism; assert_same(&s, &base);
    s = tl_with_fusion(base, 0);
    assert_true(!s.enable_fusion);
    s.enable_fusion = 1; assert_same(&s, &base);
    s = tl_with_profiling(base, 0);
    assert_true(!s.enable_profiling);
    s.enable_profiling = 1; assert_same(&s, &base);
    assert_int_equal(tl_with_fusion(base, 17).enable_fusion, 1);
    assert_int_equal(tl_with_profiling(base, -1).enable_profiling, 1);
}

static void equality_sees_every_field_and_only_the_number_of_the_kind(void **state) {
    tl_strategy a = tl_with_parallelism(tl_strategy_training(), tl_parallelism_data(4)), b = a;
    (void)state;
    b.gradient.computes = 0; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.gradient.checkpointed = 1; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.gradient.checkpoint_interval = 1; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.gradient.accumulation_steps = 1; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.mode = TL_MODE_EAGER; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.precision = TL_PRECISION_HALF; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.memory = TL_MEMORY_CACHED; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.parallelism = tl_parallelism_data(5); assert_false(tl_equals_strategy(&a, &b));
    b.parallelism = tl_parallelism_model(4); assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.enable_fusion = 0; assert_false(tl_equals_strategy(&a, &b)); b = a;
    b.enable_profiling = 0; assert_false(tl_equals_strategy(&a, &b)); b = a;
    assert_true(tl_equals_strategy(&a, &b));
    a.parallelism.kind = b.parallelism.kind = TL_PARALLELISM_NONE;
    b.parallelism.as.data.worker_count = 9;
    assert_true(tl_equals_strategy(&a, &b));
}

static void predicates_give_0_where_there_is_no_such_number(void **state) {
    tl_strategy s = tl_strategy_training();
    uint64_t number = 9;
    (void)state;
    assert_false(tl_find_checkpoint_interval(&s, &number));
    assert_true(number == 0);
    number = 9;
    assert_false(tl_find_accumulation_steps(&s, &number));
    assert_true(number == 0);
    s.gradient = tl_gradient_accumulated(1);
    assert_true(tl_find_accumulation_steps(&s, &number) && number == 1);
    s.gradient.checkpoint_interval = 5;  // not checkpointed: not an interval
    assert_false(tl_find_checkpoint_interval(&s, &number));
    assert_true(number == 0);
    assert_int_equal(tl_find_worker_count(&s, 4), 4);
    assert_int_equal(tl_find_worker_count(&s, 8), 8);
    assert_int_equal(tl_find_worker_count(&s, 9), 8);
    assert_int_equal(tl_find_worker_count(&s, 0), 1);
    s.parallelism = tl_parallelism_model(3);
    assert_int_equal(tl_find_worker_count(&s, 1), 3);
}

// -- rules --

static void every_broken_rule_has_its_sentence(void **state) {
    tl_strategy broken[16];
    static const char *const sentences[] = {
        "mode: unknown value", "gradient.computes: must be 0 or 1", "gradient.computes: must be 0 or 1",
        "gradient.checkpointed: must be 0 or 1", "gradient.checkpointed: needs gradients to be computed",
        "gradient.checkpoint_interval: needs checkpointed to be 1", "gradient.accumulation_steps: needs gradients to be computed",
        "precision: unknown value", "memory: unknown value", "parallelism: worker_count must be > 0",
        "parallelism: device_count must be > 0", "parallelism: stage_count must be > 0", "parallelism: unknown kind",
        "enable_fusion: must be 0 or 1", "enable_profiling: must be 0 or 1", "enable_profiling: must be 0 or 1"
    };
    char expected[200];
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < 16; i++) broken[i] = i < 7 ? tl_strategy_new() : tl_strategy_training();
    broken[0].mode = TL_MODE_COUNT;
    broken[1].gradient.computes = 2;
    broken[2].gradient.computes = -1;
    broken[3].gradient = gradient_of(1, 2, 0, 0);
    broken[4].gradient = gradient_of(0, 1, 0, 0);
    broken[5].gradient = gradient_of(1, 0, 1, 0);
    broken[6].gradient = gradient_of(0, 0, 0, 1);
    broken[7].precision = TL_PRECISION_COUNT;
    broken[8].memory = TL_MEMORY_COUNT;
    broken[9].parallelism = tl_parallelism_data(0);
    broken[10].parallelism = tl_parallelism_model(0);
    broken[11].parallelism = tl_parallelism_pipeline(0);
    broken[12].parallelism.kind = TL_PARALLELISM_COUNT;
    broken[13].enable_fusion = 2;
    broken[14].enable_profiling = -1;
    broken[15].enable_profiling = INT32_MAX;
    for (i = 0; i < 16; i++) {
        assert_int_equal(tl_check_strategy(&env, &broken[i]), TL_ERROR_INVALID_ARG);
        assert_int_equal(env.error.code, TL_ERROR_INVALID_ARG);
        snprintf(expected, sizeof expected, "tl_check_strategy: %s", sentences[i]);
        assert_string_equal(env.error.text, expected);
        assert_int_equal(tl_check_strategy(NULL, &broken[i]), TL_ERROR_INVALID_ARG);
    }
}

static void every_mix_of_valid_fields_is_valid_prints_and_parses_back(void **state) {
    failing_alloc f;
    tl_env env;
    long i;
    (void)state;
    memset(&f, 0, sizeof f);
    env = failing_env(&f, 0);
    for (i = 0; ; i++) {
        tl_strategy s, back;
        char text[500];
        size_t length;
        if (!strategy_at(i, &s)) break;
        assert_int_equal(tl_check_strategy(&env, &s), TL_OK);
        length = tl_print_strategy_json(&s, text, sizeof text);
        assert_int_equal(length, strlen(text));
        if (tl_parse_strategy_json(&env, text, length, &back)) fail_msg("%s: %s", text, env.error.text);
        if (!tl_equals_strategy(&s, &back)) fail_msg("%s reads back different", text);
        length = tl_print_strategy(&s, text, sizeof text);
        assert_int_equal(length, strlen(text));
        if (s.gradient.checkpointed && !s.gradient.checkpoint_interval) {
            assert_int_equal(tl_parse_strategy(&env, text, length, &back), TL_ERROR_PARSE);
            continue;
        }
        if (tl_parse_strategy(&env, text, length, &back)) fail_msg("%s: %s", text, env.error.text);
        if (!tl_equals_strategy(&s, &back)) fail_msg("%s reads back different", text);
    }
    assert_int_equal(i, 3 * 6 * 4 * 2 * 2 * 11 * 10);
    assert_int_equal(f.count, 0);  // nothing here allocates: no allocation that could fail
}

static void printing_truncates_like_snprintf(void **state) {
    tl_strategy s = tl_strategy_memory_efficient();
    char whole[2][400], buf[400];
    size_t length[2], size;
    int form;
    (void)state;
    s.gradient.accumulation_steps = 4;
    s.parallelism = tl_parallelism_data(2);
    length[0] = tl_print_strategy(&s, whole[0], sizeof whole[0]);
    length[1] = tl_print_strategy_json(&s, whole[1], sizeof whole[1]);
    for (form = 0; form < 2; form++)
        for (size = 0; size <= length[form] + 2; size++) {
            memset(buf, '#', sizeof buf);
            assert_int_equal(form ? tl_print_strategy_json(&s, size ? buf : NULL, size) : tl_print_strategy(&s, size ? buf : NULL, size),
                             length[form]);
            if (size) {
                size_t kept = size - 1 < length[form] ? size - 1 : length[form];
                assert_memory_equal(buf, whole[form], kept);
                assert_int_equal(buf[kept], 0);
                assert_int_equal(buf[kept + 1], '#');
            }
        }
}

// -- summary, read --

static void summaries_are_read_with_free_space_and_line_ends(void **state) {
    static const char text[] = "Execution Strategy:\r\n- Mode:   Lazy\r\n-\tGradient: Checkpointed { checkpoint_interval: 5, accumulation_steps: 4 }\r\n"
        "- Precision: BFloat16\r\n- Memory: MinimalPeak\r\n- Parallelism: PipelineParallel { num_stages: 3 } \r\n- Fusion: true\r\n- Profiling: false\r\n\r\n";
    tl_strategy s, expected = tl_strategy_new();
    char marked[400];
    (void)state;
    expected.mode = TL_MODE_LAZY;
    expected.gradient = gradient_of(1, 1, 5, 4);
    expected.precision = TL_PRECISION_BF16;
    expected.memory = TL_MEMORY_MINIMAL_PEAK;
    expected.parallelism = tl_parallelism_pipeline(3);
    expected.enable_fusion = 1;
    assert_int_equal(tl_parse_strategy(NULL, text, strlen(text), &s), TL_OK);
    assert_same(&s, &expected);
    snprintf(marked, sizeof marked, "\xEF\xBB\xBF%s", text);
    assert_int_equal(tl_parse_strategy(NULL, marked, strlen(marked), &s), TL_OK);
    assert_same(&s, &expected);
    snprintf(marked, sizeof marked, "\xEF\xBB\xBF{\"mode\":\"lazy\"}");
    assert_int_equal(tl_parse_strategy_json(NULL, marked, strlen(marked), &s), TL_OK);
    assert_int_equal(s.mode, TL_MODE_LAZY);
}

static void broken_summaries_are_refused_with_their_line(void **state) {
    static const struct { int line; const char *text, *why; } bad[] = {
        { 1, "Execution Strategy", "expected \"Execution Strategy:\"" }, { 1, "Execution Strategy: x", "expected \"Execution Strategy:\"" },
        { 1, "", "expected \"Execution Strategy:\"" }, { 1, "Mode", "expected \"Execution Strategy:\"" },
        { 2, "- Mode: Fast", "expected \"- Mode:\"" }, { 2, "- Mode:", "expected \"- Mode:\"" }, { 2, "Mode: Lazy", "expected \"- Mode:\"" },
        { 2, "- Mode: lazy", "expected \"- Mode:\"" }, { 2, "- Mode: Lazy Lazy", "expected \"- Mode:\"" }, { 2, "- Memory: Pooled", "expected \"- Mode:\"" },
        { 2, "", "expected \"- Mode:\"" }, { 2, "+ Mode: Lazy", "expected \"- Mode:\"" },
        { 3, "- Gradient: Some", "expected \"- Gradient:\"" }, { 3, "- Gradient: None None", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed", "expected \"- Gradient:\"" }, { 3, "- Gradient: Checkpointed { checkpoint_interval: 0 }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Accumulated { accumulation_steps: 0 }", "expected \"- Gradient:\"" }, { 3, "- Gradient: Accumulated { accumulation_steps: -1 }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Accumulated { accumulation_steps: 4, }", "expected \"- Gradient:\"" }, { 3, "- Gradient: Accumulated { accumulation_steps: 4", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Accumulated { accumulation_steps: }", "expected \"- Gradient:\"" }, { 3, "- Gradient: Accumulated { checkpoint_interval: 4 }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed { accumulation_steps: 4 }", "expected \"- Gradient:\"" }, { 3, "- Gradient: Checkpointed { checkpoint_interval: 4, }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed { checkpoint_interval: 4 accumulation_steps: 4 }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed { checkpoint_interval: 4, accumulation_steps: 0 }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed { checkpoint_interval: 4, accumulation_steps: 4, }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed { checkpoint_interval: 4 } x", "expected \"- Gradient:\"" }, { 3, "- Gradient: Checkpointed ( checkpoint_interval: 4 )", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Checkpointed { checkpoint_interval: 18446744073709551616 }", "expected \"- Gradient:\"" }, { 3, "- Gradient: Full { accumulation_steps: 4 }", "expected \"- Gradient:\"" },
        { 3, "- Gradient: Partial { accumulation_steps: 4 }", "expected \"- Gradient:\"" }, { 3, "- Gradient: Checkpointed { checkpoint_interval: ,", "expected \"- Gradient:\"" },
        { 4, "- Precision: Quadruple", "expected \"- Precision:\"" }, { 4, "- Precision: BFloat16,", "expected \"- Precision:\"" },
        { 5, "- Memory: Minimal", "expected \"- Memory:\"" }, { 6, "- Parallelism: DataParallel", "expected \"- Parallelism:\"" },
        { 6, "- Parallelism: DataParallel { num_workers: 0 }", "expected \"- Parallelism:\"" }, { 6, "- Parallelism: DataParallel { num_stages: 1 }", "expected \"- Parallelism:\"" },
        { 6, "- Parallelism: ModelParallel { num_devices: 0 }", "expected \"- Parallelism:\"" }, { 6, "- Parallelism: PipelineParallel { num_stages: 0 }", "expected \"- Parallelism:\"" },
        { 6, "- Parallelism: None { num_workers: 1 }", "expected \"- Parallelism:\"" }, { 6, "- Parallelism: DataParallel { num_workers: 1, }", "expected \"- Parallelism:\"" },
        { 6, "- Parallelism: Auto", "expected \"- Parallelism:\"" }, { 6, "- Parallelism: DataParallel num_workers: 1", "expected \"- Parallelism:\"" },
        { 7, "- Fusion: yes", "expected \"- Fusion:\"" }, { 7, "- Fusion: 1", "expected \"- Fusion:\"" }, { 8, "- Profiling: off", "expected \"- Profiling:\"" },
        { 9, "- Extra: true", "text after the summary" }, { 10, "\nx", "text after the summary" }
    };
    static const char *const lines[] = { "Execution Strategy:", "- Mode: Lazy", "- Gradient: Full", "- Precision: Single", "- Memory: Pooled",
                                         "- Parallelism: None", "- Fusion: true", "- Profiling: true", "" };
    size_t i;
    int line;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        tl_strategy s = tl_strategy_training();
        char text[600] = "", expected[200];
        for (line = 1; line <= 9; line++) {
            strcat(text, line == bad[i].line || (line == 9 && bad[i].line > 9) ? bad[i].text : lines[line - 1]);
            strcat(text, "\n");
        }
        if (tl_parse_strategy(&env, text, strlen(text), &s) != TL_ERROR_PARSE) fail_msg("accepted: %s", bad[i].text);
        assert_int_equal(env.error.code, TL_ERROR_PARSE);
        snprintf(expected, sizeof expected, "tl_parse_strategy: line %d: %s", bad[i].line, bad[i].why);
        if (strncmp(env.error.text, expected, strlen(expected))) fail_msg("%s: %s", bad[i].text, env.error.text);
        assert_same(&s, &zero);
    }
}

static void texts_cut_anywhere_are_refused(void **state) {
    tl_strategy s = tl_with_gradient(tl_strategy_training(), gradient_of(1, 1, 5, 4)), back;
    char text[400];
    size_t length, i;
    int form;
    (void)state;
    for (form = 0; form < 2; form++) {
        length = form ? tl_print_strategy_json(&s, text, sizeof text) : tl_print_strategy(&s, text, sizeof text);
        for (i = 0; i < length; i++) {
            char *cut = (char *)malloc(i + 1);
            memcpy(cut, text, i);
            assert_int_equal(form ? tl_parse_strategy_json(NULL, cut, i, &back) : tl_parse_strategy(NULL, cut, i, &back), TL_ERROR_PARSE);
            assert_same(&back, &zero);
            free(cut);
        }
    }
}

// -- JSON --

static void json_is_one_line_of_known_form(void **state) {
    tl_strategy s = tl_strategy_new();
    char text[400];
    (void)state;
    s.mode = TL_MODE_LAZY;
    s.gradient = gradient_of(1, 1, 5, 1);
    s.precision = TL_PRECISION_SINGLE;
    s.memory = TL_MEMORY_POOLED;
    s.parallelism = tl_parallelism_data(4);
    s.enable_fusion = 1;
    tl_print_strategy_json(&s, text, sizeof text);
    assert_string_equal(text, "{\"mode\":\"lazy\",\"gradient\":{\"computes\":true,\"checkpointed\":true,\"checkpoint_interval\":5,"
        "\"accumulation_steps\":1},\"precision\":\"f32\",\"memory\":\"pooled\",\"parallelism\":{\"kind\":\"data\",\"count\":4},"
        "\"fusion\":true,\"profiling\":false}");
    tl_print_strategy_json(&zero, text, sizeof text);
    assert_string_equal(text, "{\"mode\":\"eager\",\"gradient\":{\"computes\":false,\"checkpointed\":false,\"checkpoint_interval\":0,"
        "\"accumulation_steps\":0},\"precision\":\"full\",\"memory\":\"standard\",\"parallelism\":{\"kind\":\"none\"},"
        "\"fusion\":false,\"profiling\":false}");
}

static void json_keys_come_in_any_order_unknown_ones_are_skipped_missing_ones_are_default(void **state) {
    static const char text[] = " {\"profiling\" : true, \"x\": [1, {\"mode\": \"hybrid\"}, null], \"parallelism\":{\"count\":3,\"kind\":\"model\",\"n\":0},\n"
        "\"gradient\":{\"accumulation_steps\":2,\"why\":\"\\\"}\",\"computes\":true}, \"m\\u006fde\" : \"l\\u0061zy\"} ";
    tl_strategy s, expected = tl_strategy_new();
    (void)state;
    assert_int_equal(tl_parse_strategy_json(NULL, text, strlen(text), &s), TL_OK);
    expected.mode = TL_MODE_LAZY;
    expected.gradient = tl_gradient_accumulated(2);
    expected.parallelism = tl_parallelism_model(3);
    expected.enable_profiling = 1;
    assert_same(&s, &expected);
    assert_int_equal(tl_parse_strategy_json(NULL, "{}", 2, &s), TL_OK);
    assert_same(&s, &zero);
    assert_int_equal(tl_parse_strategy_json(NULL, "{\"parallelism\":{},\"gradient\":{}}", 32, &s), TL_OK);
    assert_same(&s, &zero);
}

static void broken_json_is_refused_with_its_place_or_its_rule(void **state) {
    static const struct { tl_result result; const char *text, *error; } bad[] = {
        { TL_ERROR_PARSE, "", "line 1, column 1: expected an object" }, { TL_ERROR_PARSE, "[]", "line 1, column 1: expected an object" },
        { TL_ERROR_PARSE, "{\"mode\":\"Lazy\"}", "line 1, column 10: unknown name" }, { TL_ERROR_PARSE, "{\"mode\":1}", "line 1, column 9: expected a string" },
        { TL_ERROR_PARSE, "{\"mode\":\"lazy\",\"mode\":\"lazy\"}", "line 1, column 17: this key comes twice" },
        { TL_ERROR_PARSE, "{\"precision\":\"f8\"}", "line 1, column 15: unknown name" }, { TL_ERROR_PARSE, "{\"memory\":\"\"}", "line 1, column 12: unknown name" },
        { TL_ERROR_PARSE, "{\"fusion\":1}", "line 1, column 11: expected true or false" }, { TL_ERROR_PARSE, "{\"profiling\":null}", "line 1, column 14: expected true or false" },
        { TL_ERROR_PARSE, "{\"gradient\":true}", "line 1, column 13: expected an object" }, { TL_ERROR_PARSE, "{\"gradient\":{\"computes\":1}}", "line 1, column 25: expected true or false" },
        { TL_ERROR_PARSE, "{\"gradient\":{\"checkpointed\":0}}", "line 1, column 29: expected true or false" },
        { TL_ERROR_PARSE, "{\"gradient\":{\"checkpoint_interval\":-1}}", "line 1, column 36: expected a whole number from 0 to 2^64 - 1" },
        { TL_ERROR_PARSE, "{\"gradient\":{\"accumulation_steps\":1.5}}", "line 1, column 35: expected a whole number from 0 to 2^64 - 1" },
        { TL_ERROR_PARSE, "{\"gradient\":{\"computes\":true,\"computes\":true}}", "line 1, column 31: this key comes twice" },
        { TL_ERROR_PARSE, "{\"parallelism\":\"data\"}", "line 1, column 16: expected an object" }, { TL_ERROR_PARSE, "{\"parallelism\":{\"kind\":\"Data\"}}", "line 1, column 25: unknown name" },
        { TL_ERROR_PARSE, "{\"parallelism\":{\"count\":4}}", "line 1, column 27: this kind has no count" },
        { TL_ERROR_PARSE, "{\"parallelism\":{\"kind\":\"automatic\",\"count\":4}}", "line 1, column 46: this kind has no count" },
        { TL_ERROR_PARSE, "{\"mode\":\"lazy\",}", "line 1, column 16: expected a string" }, { TL_ERROR_PARSE, "{} {}", "line 1, column 4: text after the value" },
        { TL_ERROR_PARSE, "{\"mode\":\"lazy\"\n\"fusion\":true}", "line 2, column 1: expected , or }" },
        { TL_ERROR_INVALID_ARG, "{\"parallelism\":{\"kind\":\"data\"}}", "parallelism: worker_count must be > 0" },
        { TL_ERROR_INVALID_ARG, "{\"parallelism\":{\"kind\":\"pipeline\",\"count\":0}}", "parallelism: stage_count must be > 0" },
        { TL_ERROR_INVALID_ARG, "{\"gradient\":{\"checkpointed\":true}}", "gradient.checkpointed: needs gradients to be computed" },
        { TL_ERROR_INVALID_ARG, "{\"gradient\":{\"computes\":true,\"checkpoint_interval\":3}}", "gradient.checkpoint_interval: needs checkpointed to be 1" },
        { TL_ERROR_INVALID_ARG, "{\"gradient\":{\"accumulation_steps\":3}}", "gradient.accumulation_steps: needs gradients to be computed" }
    };
    char expected[200];
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        tl_strategy s = tl_strategy_training();
        assert_int_equal(tl_parse_strategy_json(&env, bad[i].text, strlen(bad[i].text), &s), bad[i].result);
        assert_int_equal(env.error.code, bad[i].result);
        snprintf(expected, sizeof expected, "tl_parse_strategy_json: %s", bad[i].error);
        assert_string_equal(env.error.text, expected);
        assert_same(&s, &zero);
        assert_int_equal(tl_parse_strategy_json(NULL, bad[i].text, strlen(bad[i].text), &s), bad[i].result);
    }
}

// -- rules of thumb --

static void the_quick_rule_changes_exactly_at_its_thresholds(void **state) {
    tl_strategy s;
    uint64_t available, product, n;
    (void)state;
    for (available = 1; available < 60; available++)
        for (product = 1; product < 60; product++) {
            volatile double pressure = (double)product / (double)available, limit = 0.8;  // as the seed, on x87 too
            assert_int_equal(tl_recommend_quick(NULL, 1, product, available, 1, &s), TL_OK);
            assert_int_equal(tl_uses_checkpointing(&s), pressure > limit);
        }
    for (n = 62; n < 67; n++) {
        assert_int_equal(tl_recommend_quick(NULL, n, 1, 1000, 1, &s), TL_OK);
        assert_int_equal(tl_find_accumulation_steps(&s, &product), n >= 64);
        assert_int_equal(product, n >= 64 ? 4 : 0);
    }
    for (n = 30; n < 35; n++) {
        tl_strategy expected = n >= 32 ? tl_strategy_high_throughput() : tl_strategy_inference();
        assert_int_equal(tl_recommend_quick(NULL, n, 1, 1000, 0, &s), TL_OK);
        assert_same(&s, &expected);
    }
    assert_int_equal(tl_recommend_quick(NULL, 1, UINT64_MAX, UINT64_MAX, 1, &s), TL_OK);
    assert_true(tl_uses_checkpointing(&s));
    assert_int_equal(tl_recommend_quick(NULL, 1, UINT64_MAX / 5 * 4, UINT64_MAX, 1, &s), TL_OK);
    assert_false(tl_uses_checkpointing(&s));
    assert_int_equal(tl_recommend_quick(NULL, 1, UINT64_MAX / 5 * 4 + 1, UINT64_MAX, 1, &s), TL_OK);
    assert_true(tl_uses_checkpointing(&s));
}

static void the_quick_overhead_has_the_factors_of_the_seed(void **state) {
    static const double modes[] = { 1.0, 1.2, 1.1 }, memories[] = { 1.0, 1.1, 1.3, 0.8 };
    tl_strategy s = tl_strategy_new();
    int i;
    (void)state;
    for (i = 0; i < TL_MODE_COUNT; i++) { s.mode = (tl_mode)i; assert_true(tl_estimate_overhead_quick(&s) == modes[i]); }
    s.mode = TL_MODE_EAGER;
    for (i = 0; i < TL_MEMORY_COUNT; i++) { s.memory = (tl_memory)i; assert_true(tl_estimate_overhead_quick(&s) == memories[i]); }
    s.memory = TL_MEMORY_STANDARD;
    s.gradient = tl_gradient_full(); assert_true(tl_estimate_overhead_quick(&s) == 3.0);
    s.gradient = tl_gradient_checkpointed(0); assert_true(tl_estimate_overhead_quick(&s) == 2.0);
    s.gradient = tl_gradient_accumulated(2); assert_true(tl_estimate_overhead_quick(&s) == 3.5);
    s.gradient = gradient_of(1, 1, 5, 4); assert_true(tl_estimate_overhead_quick(&s) == 2.5);
    s.mode = TL_MODE_COUNT; s.memory = TL_MEMORY_COUNT;  // refused by tl_check_strategy; here they are nothing
    assert_true(tl_estimate_overhead_quick(&s) == 2.5);
}

// -- counter-tests: what the seed did, and what is done here --

static void s1_the_quick_rule_sees_weights_times_batch_only(void **state) {
    tl_strategy s;
    (void)state;
    assert_int_equal(tl_recommend_quick(NULL, 32, 1024, 24576, 1, &s), TL_OK);  // fits easily, and yet:
    assert_true(tl_uses_checkpointing(&s));  // the limit that the comment names; the graph planners know better
}

static void s2_a_product_that_overflows_is_an_error(void **state) {
    tl_strategy s = tl_strategy_training();
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_recommend_quick(&env, (uint64_t)1 << 33, (uint64_t)1 << 32, 1, 1, &s), TL_ERROR_OVERFLOW);
    assert_string_equal(env.error.text, "tl_recommend_quick: model_mib: times batch_size exceeds 64 bits");
    assert_same(&s, &zero);
    s = tl_strategy_training();
    assert_int_equal(tl_recommend_quick(NULL, UINT64_MAX, 2, 1000, 0, &s), TL_ERROR_OVERFLOW);
    assert_same(&s, &zero);
    assert_int_equal(tl_recommend_quick(NULL, 3, UINT64_MAX / 3, 1000, 1, &s), TL_OK);
    assert_true(tl_uses_checkpointing(&s));
    assert_int_equal(tl_recommend_quick(NULL, 3, UINT64_MAX / 3 + 1, 1000, 1, &s), TL_ERROR_OVERFLOW);
}

static void s3_zero_is_an_error_and_never_a_recommendation(void **state) {
    static const struct { uint64_t batch, model, available; const char *error; } rows[] = {
        { 0, 1, 1, "tl_recommend_quick: batch_size: must be > 0" }, { 1, 0, 1, "tl_recommend_quick: model_mib: must be > 0" },
        { 1, 1, 0, "tl_recommend_quick: available_mib: must be > 0" }, { 0, 0, 0, "tl_recommend_quick: batch_size: must be > 0" },
        { UINT64_MAX, UINT64_MAX, 0, "tl_recommend_quick: available_mib: must be > 0" }
    };
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < 10; i++) {
        tl_strategy s = tl_strategy_training();
        assert_int_equal(tl_recommend_quick(&env, rows[i / 2].batch, rows[i / 2].model, rows[i / 2].available, i % 2, &s), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, rows[i / 2].error);
        assert_same(&s, &zero);
    }
}

static void s4_accumulation_can_be_asked_for_when_memory_is_short(void **state) {
    tl_strategy s;
    uint64_t steps;
    (void)state;
    assert_int_equal(tl_recommend_quick(NULL, 128, 1000, 1000, 1, &s), TL_OK);
    assert_false(tl_find_accumulation_steps(&s, &steps));  // the rule of thumb never does
    s.gradient.accumulation_steps = 8;                     // any number, on top of what it chose
    assert_int_equal(tl_check_strategy(NULL, &s), TL_OK);
    assert_true(tl_find_accumulation_steps(&s, &steps) && steps == 8 && tl_uses_checkpointing(&s));
}

static void s5_checkpoints_and_accumulation_combine(void **state) {
    tl_strategy s = tl_with_gradient(tl_strategy_training(), gradient_of(1, 1, 5, 4)), back;
    char text[400];
    size_t length;
    uint64_t interval = 0, steps = 0;
    (void)state;
    assert_int_equal(tl_check_strategy(NULL, &s), TL_OK);
    assert_true(tl_find_checkpoint_interval(&s, &interval) && tl_find_accumulation_steps(&s, &steps));
    assert_true(interval == 5 && steps == 4);
    length = tl_print_strategy(&s, text, sizeof text);
    assert_non_null(strstr(text, "- Gradient: Checkpointed { checkpoint_interval: 5, accumulation_steps: 4 }\n"));
    assert_int_equal(tl_parse_strategy(NULL, text, length, &back), TL_OK);
    assert_same(&s, &back);
}

static void s6_the_quick_rule_for_inference_ignores_memory(void **state) {
    tl_strategy s, inference = tl_strategy_inference();
    (void)state;
    assert_int_equal(tl_recommend_quick(NULL, 1, 70000, 1, 0, &s), TL_OK);
    assert_same(&s, &inference);  // the limit that the comment names
}

static void s7_values_that_the_quick_rule_never_picks_can_be_asked_for(void **state) {
    tl_strategy s;
    (void)state;
    assert_int_equal(tl_recommend_quick(NULL, 1, 1, 1000, 1, &s), TL_OK);
    assert_int_equal(s.precision, TL_PRECISION_SINGLE);
    s = tl_with_memory(tl_with_precision(tl_with_mode(s, TL_MODE_HYBRID), TL_PRECISION_MIXED), TL_MEMORY_MINIMAL_PEAK);
    assert_int_equal(tl_check_strategy(NULL, &s), TL_OK);
}

static void s8_interval_0_leaves_the_interval_to_the_planner(void **state) {
    tl_strategy s = tl_with_gradient(tl_strategy_training(), tl_gradient_checkpointed(0));
    uint64_t interval = 9;
    (void)state;
    assert_int_equal(tl_check_strategy(NULL, &s), TL_OK);
    assert_true(tl_find_checkpoint_interval(&s, &interval) && interval == 0);
}

static void s9_the_quick_overhead_is_blind_to_five_fields(void **state) {
    tl_strategy s = tl_with_gradient(tl_strategy_training(), tl_gradient_checkpointed(2)), other = s;
    (void)state;
    other.precision = TL_PRECISION_HALF;
    other.gradient.checkpoint_interval = 100;
    other.parallelism = tl_parallelism_data(64);
    other.enable_fusion = other.enable_profiling = 0;
    assert_true(tl_estimate_overhead_quick(&s) == tl_estimate_overhead_quick(&other));  // the limit that the comment names
}

static void s10_no_strategy_has_zero_workers(void **state) {
    tl_strategy s = tl_with_parallelism(tl_strategy_new(), tl_parallelism_data(0));
    (void)state;
    assert_int_equal(tl_check_strategy(NULL, &s), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_find_worker_count(&s, 4), 1);
    s.parallelism = tl_parallelism_automatic();
    assert_int_equal(tl_find_worker_count(&s, 0), 1);
}

static void s11_fusion_and_profiling_switch_both_ways(void **state) {
    tl_strategy s = tl_strategy_training();
    (void)state;
    assert_false(tl_with_fusion(s, 0).enable_fusion);
    assert_false(tl_with_profiling(s, 0).enable_profiling);
    assert_true(tl_with_fusion(tl_strategy_new(), 1).enable_fusion);
    assert_true(tl_with_profiling(tl_strategy_new(), 1).enable_profiling);
}

static void s12_numbers_of_zero_are_refused(void **state) {
    static const char *const gradients[] = { "Checkpointed { checkpoint_interval: 0 }", "Accumulated { accumulation_steps: 0 }" };
    tl_strategy s = tl_with_parallelism(tl_strategy_new(), tl_parallelism_pipeline(0));
    char text[300];
    int i;
    (void)state;
    assert_int_equal(tl_check_strategy(NULL, &s), TL_ERROR_INVALID_ARG);
    for (i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "Execution Strategy:\n- Mode: Lazy\n- Gradient: %s\n- Precision: Full\n- Memory: Pooled\n"
                 "- Parallelism: None\n- Fusion: true\n- Profiling: true", gradients[i]);
        assert_int_equal(tl_parse_strategy(NULL, text, strlen(text), &s), TL_ERROR_PARSE);
    }
}

static void s13_bf16_is_a_precision(void **state) {
    tl_strategy s = tl_with_precision(tl_strategy_new(), TL_PRECISION_BF16);
    char text[300];
    (void)state;
    assert_int_equal(tl_check_strategy(NULL, &s), TL_OK);
    tl_print_strategy(&s, text, sizeof text);
    assert_non_null(strstr(text, "- Precision: BFloat16\n"));
}

static void s14_strategies_compare_and_are_stored(void **state) {
    tl_strategy s = tl_strategy_high_throughput(), back;
    char text[400];
    size_t length = tl_print_strategy_json(&s, text, sizeof text);
    (void)state;
    assert_int_equal(tl_parse_strategy_json(NULL, text, length, &back), TL_OK);
    assert_true(tl_equals_strategy(&s, &back));
}

static void s15_the_seeds_low_memory_case_takes_the_checkpoint_branch(void **state) {
    tl_strategy s, expected = tl_with_gradient(tl_strategy_training(), tl_gradient_checkpointed(5));
    (void)state;
    assert_int_equal(tl_recommend_quick(NULL, 32, 1000, 2000, 1, &s), TL_OK);
    assert_same(&s, &expected);
    assert_int_equal(tl_recommend_quick(NULL, 64, 2000, 2000, 1, &s), TL_OK);
    assert_same(&s, &expected);
}

// -- the seed's vectors --

typedef struct golden {
    char  *text, *at;
    char  *field[24];
    int    count;           // fields of this row
    int    row;             // from 1; 0 = the header
    int    agree, counter;  // rows
} golden;

static int open_golden(golden *g, const char *test, const char *name) {
    memset(g, 0, sizeof *g);
    g->row = -1;
    g->text = g->at = read_reference(test, name, NULL);
    return g->text != NULL;
}

// The next row, cut into fields; quotes are taken off.
static int next_row(golden *g) {
    if (!*g->at) return 0;
    g->row++;
    for (g->count = 0; g->count < 24; ) {
        char *end;
        if (*g->at == '"') {
            end = strchr(++g->at, '"');
            *end++ = 0;
        } else {
            end = g->at + strcspn(g->at, ",\n");
        }
        g->field[g->count++] = g->at;
        g->at = end + (*end != 0);
        if (*end != ',') { *end = 0; break; }
        *end = 0;
    }
    return 1;
}

static uint64_t field_u64(const golden *g, int at) { return strtoull(g->field[at], NULL, 10); }

static int same_field(const golden *g, int at, const char *text) { return !strcmp(g->field[at], text); }

// Ten columns from `at`: mode, gradient, its number, precision, memory, parallelism, its number, fusion, profiling.
static tl_strategy field_strategy(const golden *g, int at) {
    tl_strategy s;
    tl_env env;
    char text[500], gradient[100] = "", kind[100] = "";
    memset(&env, 0, sizeof env);
    if (*g->field[at + 2])  // a text with 0 would be refused: it is put in below
        snprintf(gradient, sizeof gradient, " { %s: %s }", same_field(g, at + 1, "Checkpointed") ? "checkpoint_interval" : "accumulation_steps",
                 same_field(g, at + 2, "0") ? "1" : g->field[at + 2]);
    if (*g->field[at + 6])
        snprintf(kind, sizeof kind, " { num_%s: %s }", same_field(g, at + 5, "DataParallel") ? "workers" :
                 same_field(g, at + 5, "ModelParallel") ? "devices" : "stages", g->field[at + 6]);
    snprintf(text, sizeof text, "Execution Strategy:\n- Mode: %s\n- Gradient: %s%s\n- Precision: %s\n- Memory: %s\n- Parallelism: %s%s\n- Fusion: %s\n- Profiling: %s",
             g->field[at], g->field[at + 1], gradient, g->field[at + 3], g->field[at + 4], g->field[at + 5], kind,
             same_field(g, at + 7, "1") ? "true" : "false", same_field(g, at + 8, "1") ? "true" : "false");
    if (tl_parse_strategy(&env, text, strlen(text), &s)) fail_msg("row %d: %s", g->row, env.error.text);
    if (same_field(g, at + 1, "Checkpointed")) s.gradient.checkpoint_interval = field_u64(g, at + 2);
    return s;
}

static int same_number(const golden *g, int at, int found, uint64_t number) {
    return found ? *g->field[at] && field_u64(g, at) == number : !*g->field[at] && number == 0;
}

// Eight columns from `at`: three predicates, interval, steps, workers at 4, overhead, its bits.
static int agrees(const golden *g, int at, const tl_strategy *s) {
    uint64_t number, bits;
    double overhead = tl_estimate_overhead_quick(s), expected;
    int found;
    if ((uint64_t)tl_computes_gradients(s) != field_u64(g, at) || (uint64_t)tl_uses_checkpointing(s) != field_u64(g, at + 1)) return 0;
    if ((uint64_t)tl_is_inference_mode(s) != field_u64(g, at + 2)) return 0;
    found = tl_find_checkpoint_interval(s, &number);
    if (!same_number(g, at + 3, found, number)) return 0;
    found = tl_find_accumulation_steps(s, &number);
    if (!same_number(g, at + 4, found, number)) return 0;
    if (tl_find_worker_count(s, 4) != field_u64(g, at + 5)) return 0;
    bits = strtoull(g->field[at + 7], NULL, 16);
    memcpy(&expected, &bits, sizeof expected);
    if (strtod(g->field[at + 6], NULL) != expected) return 0;
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 0
    return overhead == expected;
#else
    return overhead - expected < 1e-15 && expected - overhead < 1e-15;
#endif
}

static void count_row(golden *g, const char *file, int is_agreed, const char *defect) {
    if (is_agreed) g->agree++;
    else if (defect) g->counter++;
    else fail_msg("%s: row %d (%s, %s, %s, ..) is unexplained", file, g->row, g->field[0], g->field[1], g->field[2]);
}

static void close_golden(golden *g, const char *file, int rows, int agree, const char *why) {
    printf("%s: %d rows, %d agree, %d counter-examples%s, 0 unexplained\n", file, g->row, g->agree, g->counter, why);
    assert_int_equal(g->row, rows);
    assert_int_equal(g->agree, agree);
    assert_int_equal(g->agree + g->counter, rows);
    free(g->text);
}

static void golden_presets_agree(void **state) {
    static const char file[] = "golden/golden_strategy.csv";
    golden g;
    (void)state;
    if (!open_golden(&g, "golden_presets_agree", file)) skip();
    next_row(&g);
    while (next_row(&g)) {
        const char *name = g.field[0];
        tl_strategy s = field_strategy(&g, 1), preset = tl_strategy_new(), back;
        char summary[400], *from, *to;
        for (from = to = g.field[18]; *from; from++) {  // "\n" is written with two characters
            if (from[0] == '\\' && from[1] == 'n') { *to++ = '\n'; from++; }
            else *to++ = *from;
        }
        *to = 0;
        if (!strcmp(name, "preset:training")) preset = tl_strategy_training();
        if (!strcmp(name, "preset:inference")) preset = tl_strategy_inference();
        if (!strcmp(name, "preset:memory_efficient")) preset = tl_strategy_memory_efficient();
        if (!strcmp(name, "preset:high_throughput")) preset = tl_strategy_high_throughput();
        if (!strcmp(name, "preset:debug")) preset = tl_strategy_debug();
        if (!strcmp(name, "builder:all")) {
            preset = tl_with_precision(tl_with_gradient(tl_with_mode(preset, TL_MODE_LAZY), tl_gradient_accumulated(7)), TL_PRECISION_HALF);
            preset = tl_with_parallelism(tl_with_memory(preset, TL_MEMORY_CACHED), tl_parallelism_pipeline(3));
            preset = tl_with_profiling(tl_with_fusion(preset, 1), 1);
        }
        tl_print_strategy(&s, summary, sizeof summary);
        assert_string_equal(summary, g.field[18]);
        assert_int_equal(tl_parse_strategy(NULL, g.field[18], strlen(g.field[18]), &back), TL_OK);
        count_row(&g, file, tl_equals_strategy(&s, &preset) && tl_equals_strategy(&s, &back) && agrees(&g, 10, &preset), NULL);
    }
    close_golden(&g, file, 8, 8, "");
}

static void golden_overheads_agree(void **state) {
    static const char file[] = "golden/golden_strategy_overhead.csv";
    golden g;
    (void)state;
    if (!open_golden(&g, "golden_overheads_agree", file)) skip();
    next_row(&g);
    while (next_row(&g)) {
        tl_strategy s = field_strategy(&g, 1);
        count_row(&g, file, agrees(&g, 10, &s), NULL);
    }
    close_golden(&g, file, 1680, 1680, "");
}

static void golden_workers_agree_or_are_zero(void **state) {
    static const char file[] = "golden/golden_strategy_workers.csv";
    golden g;
    (void)state;
    if (!open_golden(&g, "golden_workers_agree_or_are_zero", file)) skip();
    next_row(&g);
    while (next_row(&g)) {
        tl_strategy s = tl_strategy_new();
        uint64_t number = field_u64(&g, 3), seed = field_u64(&g, 4), here;
        if (same_field(&g, 2, "Automatic")) s.parallelism = tl_parallelism_automatic();
        if (same_field(&g, 2, "DataParallel")) s.parallelism = tl_parallelism_data(number);
        if (same_field(&g, 2, "ModelParallel")) s.parallelism = tl_parallelism_model(number);
        if (same_field(&g, 2, "PipelineParallel")) s.parallelism = tl_parallelism_pipeline(number);
        here = tl_find_worker_count(&s, field_u64(&g, 1));
        if (s.parallelism.kind != TL_PARALLELISM_AUTOMATIC)
            assert_int_equal(tl_check_strategy(NULL, &s), seed ? TL_OK : TL_ERROR_INVALID_ARG);
        count_row(&g, file, here == seed, !seed && here == 1 ? "S10" : NULL);
    }
    close_golden(&g, file, 90, 59, " (S10: no workers)");
}

static void golden_recommendations_agree_or_have_a_zero(void **state) {
    static const char file[] = "golden/golden_strategy_recommend.csv";
    int s3 = 0, s12 = 0;
    char why[80];
    golden g;
    (void)state;
    if (!open_golden(&g, "golden_recommendations_agree_or_have_a_zero", file)) skip();
    next_row(&g);
    while (next_row(&g)) {
        uint64_t batch = field_u64(&g, 1), model = field_u64(&g, 2), available = field_u64(&g, 3);
        tl_strategy seed = field_strategy(&g, 6), s;
        tl_result r = tl_recommend_quick(NULL, batch, model, available, same_field(&g, 4, "1"), &s);
        const char *defect = r != TL_ERROR_INVALID_ARG ? NULL : !available ? "S3" : !batch || !model ? "S12" : NULL;
        if (defect) assert_same(&s, &zero);
        if (r) { s3 += !available; s12 += available != 0; }
        count_row(&g, file, !r && tl_equals_strategy(&s, &seed) && agrees(&g, 15, &s), defect);
    }
    snprintf(why, sizeof why, " (%d of S3: no memory, %d of S12: no batch or no model)", s3, s12);
    close_golden(&g, file, 2188, 1588, why);
}

static void golden_overflows_agree_or_overflow(void **state) {
    static const char file[] = "golden/golden_strategy_overflow.csv";
    golden g;
    (void)state;
    if (!open_golden(&g, "golden_overflows_agree_or_overflow", file)) skip();
    next_row(&g);
    while (next_row(&g)) {
        uint64_t batch = field_u64(&g, 1), model = field_u64(&g, 2), number, interval;
        tl_strategy s;
        tl_result r = tl_recommend_quick(NULL, batch, model, field_u64(&g, 3), same_field(&g, 4, "1"), &s);
        int same = 0;
        if (r == TL_OK && same_field(&g, 5, "Checkpointed")) same = tl_find_checkpoint_interval(&s, &interval) && interval == field_u64(&g, 6);
        if (r == TL_OK && same_field(&g, 5, "Accumulated")) same = tl_find_accumulation_steps(&s, &number) && number == field_u64(&g, 6);
        if (r == TL_OK && same_field(&g, 5, "None")) same = tl_is_inference_mode(&s);
        if (r == TL_OK && same_field(&g, 5, "Full")) same = tl_computes_gradients(&s) && !tl_uses_checkpointing(&s);
        count_row(&g, file, same, r == TL_ERROR_OVERFLOW && batch > UINT64_MAX / model ? "S2" : NULL);
    }
    close_golden(&g, file, 24, 4, " (S2: the product overflows)");
}

// -- policies --

static void every_policy_has_a_name_that_parses_back(void **state) {
    tl_policy_kind parsed;
    int kind;
    (void)state;
    for (kind = 0; kind < TL_POLICY_COUNT; kind++) {
        assert_true(tl_parse_policy(tl_name_policy((tl_policy_kind)kind), &parsed));
        assert_int_equal(parsed, kind);
    }
    assert_string_equal(tl_name_policy(TL_POLICY_COUNT), "?");
    assert_string_equal(tl_name_policy((tl_policy_kind)-1), "?");
    assert_false(tl_parse_policy("Uniform", &parsed));      // the seed's names of configs are in their JSON alone
    assert_int_equal(parsed, TL_POLICY_KEEP_ALL);
}

static void a_zero_policy_keeps_all(void **state) {
    tl_policy made[4] = { tl_policy_keep_all(), tl_policy_none(), tl_policy_selective(7), tl_policy_every_n(3) }, none;
    (void)state;
    memset(&none, 0, sizeof none);
    assert_memory_equal(&made[0], &none, sizeof none);
    assert_int_equal(made[1].kind, TL_POLICY_NONE);
    assert_int_equal(made[2].kind, TL_POLICY_SELECTIVE);
    assert_int_equal(made[2].as.selective.cost_threshold, 7);
    assert_int_equal(made[3].kind, TL_POLICY_EVERY_N);
    assert_int_equal(made[3].as.every_n.interval, 3);
}

static void assert_policy_refused(const tl_policy *policy, const char *text) {
    tl_env env;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_check_policy(&env, policy), TL_ERROR_INVALID_ARG);
    if (strcmp(env.error.text, text)) fail_msg("\"%s\", not \"%s\"", env.error.text, text);
}

static void rules_of_policies_have_a_sentence_each(void **state) {
    uint64_t list[] = { 4, 2, 4 };
    tl_policy policy;
    int kind;
    (void)state;
    for (kind = 0; kind < TL_POLICY_FRACTION; kind++) {     // without numbers all but a fraction are right
        memset(&policy, 0, sizeof policy);
        policy.kind = (tl_policy_kind)kind;
        assert_int_equal(tl_check_policy(NULL, &policy), TL_OK);
    }
    policy.kind = TL_POLICY_COUNT;
    assert_policy_refused(&policy, "tl_check_policy: policy: there is no such one");
    policy.kind = TL_POLICY_LAYERS;
    policy.as.layers.count = 3;
    assert_policy_refused(&policy, "tl_check_policy: layers: missing");
    policy.as.layers.list = list;
    assert_policy_refused(&policy, "tl_check_policy: layers: 4 is listed twice");
    policy.as.layers.count = 2;
    assert_int_equal(tl_check_policy(NULL, &policy), TL_OK);
    memset(&policy, 0, sizeof policy);
    policy.kind = TL_POLICY_FRACTION;
    assert_policy_refused(&policy, "tl_check_policy: fraction: layer_count: must be > 0");
    policy.as.fraction.layer_count = 5;
    assert_int_equal(tl_check_policy(NULL, &policy), TL_OK);
    policy.as.fraction.memory_fraction = 1.5;
    assert_policy_refused(&policy, "tl_check_policy: fraction: memory_fraction: must be in [0, 1]");
}

static void a_list_of_layers_is_not_checked_without_memory(void **state) {
    uint64_t list[] = { 4, 2 };
    failing_alloc f = { 0, 0, 0, 0 };
    tl_env env = failing_env(&f, 0);
    tl_policy policy;
    (void)state;
    memset(&policy, 0, sizeof policy);
    policy.kind = TL_POLICY_LAYERS;
    policy.as.layers.list = list;
    policy.as.layers.count = 2;
    assert_int_equal(tl_check_policy(&env, &policy), TL_ERROR_NO_MEMORY);
    assert_int_equal(f.live, 0);
}

static void a_strategy_asks_for_a_policy_or_for_the_cheapest_plan(void **state) {
    tl_strategy strategy = tl_strategy_new();
    tl_policy policy = tl_policy_none();
    (void)state;
    assert_int_equal(tl_find_policy(&strategy, &policy), 0);
    assert_int_equal(policy.kind, TL_POLICY_KEEP_ALL);
    strategy.gradient = tl_gradient_full();
    policy = tl_policy_none();
    assert_int_equal(tl_find_policy(&strategy, &policy), 1);
    assert_int_equal(policy.kind, TL_POLICY_KEEP_ALL);
    strategy.gradient = tl_gradient_checkpointed(6);
    assert_int_equal(tl_find_policy(&strategy, &policy), 1);
    assert_int_equal(policy.kind, TL_POLICY_EVERY_N);
    assert_int_equal(policy.as.every_n.interval, 6);
    strategy.gradient = tl_gradient_checkpointed(0);
    assert_int_equal(tl_find_policy(&strategy, &policy), 0);
    assert_int_equal(policy.kind, TL_POLICY_KEEP_ALL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_execution_strategy_presets),
        cmocka_unit_test(seed_execution_strategy_builder),
        cmocka_unit_test(seed_gradient_strategies),
        cmocka_unit_test(seed_parallelism_strategies),
        cmocka_unit_test(seed_strategy_optimizer_recommendations),
        cmocka_unit_test(seed_memory_overhead_estimation),
        cmocka_unit_test(seed_execution_modes),
        cmocka_unit_test(seed_precision_modes),
        cmocka_unit_test(seed_strategy_summary),
        cmocka_unit_test(every_value_has_a_name_that_parses_back),
        cmocka_unit_test(all_zero_is_the_plain_strategy_and_valid),
        cmocka_unit_test(presets_print_as_documented),
        cmocka_unit_test(builders_change_one_field),
        cmocka_unit_test(equality_sees_every_field_and_only_the_number_of_the_kind),
        cmocka_unit_test(predicates_give_0_where_there_is_no_such_number),
        cmocka_unit_test(every_broken_rule_has_its_sentence),
        cmocka_unit_test(every_mix_of_valid_fields_is_valid_prints_and_parses_back),
        cmocka_unit_test(printing_truncates_like_snprintf),
        cmocka_unit_test(summaries_are_read_with_free_space_and_line_ends),
        cmocka_unit_test(broken_summaries_are_refused_with_their_line),
        cmocka_unit_test(texts_cut_anywhere_are_refused),
        cmocka_unit_test(json_is_one_line_of_known_form),
        cmocka_unit_test(json_keys_come_in_any_order_unknown_ones_are_skipped_missing_ones_are_default),
        cmocka_unit_test(broken_json_is_refused_with_its_place_or_its_rule),
        cmocka_unit_test(the_quick_rule_changes_exactly_at_its_thresholds),
        cmocka_unit_test(the_quick_overhead_has_the_factors_of_the_seed),
        cmocka_unit_test(s1_the_quick_rule_sees_weights_times_batch_only),
        cmocka_unit_test(s2_a_product_that_overflows_is_an_error),
        cmocka_unit_test(s3_zero_is_an_error_and_never_a_recommendation),
        cmocka_unit_test(s4_accumulation_can_be_asked_for_when_memory_is_short),
        cmocka_unit_test(s5_checkpoints_and_accumulation_combine),
        cmocka_unit_test(s6_the_quick_rule_for_inference_ignores_memory),
        cmocka_unit_test(s7_values_that_the_quick_rule_never_picks_can_be_asked_for),
        cmocka_unit_test(s8_interval_0_leaves_the_interval_to_the_planner),
        cmocka_unit_test(s9_the_quick_overhead_is_blind_to_five_fields),
        cmocka_unit_test(s10_no_strategy_has_zero_workers),
        cmocka_unit_test(s11_fusion_and_profiling_switch_both_ways),
        cmocka_unit_test(s12_numbers_of_zero_are_refused),
        cmocka_unit_test(s13_bf16_is_a_precision),
        cmocka_unit_test(s14_strategies_compare_and_are_stored),
        cmocka_unit_test(s15_the_seeds_low_memory_case_takes_the_checkpoint_branch),
        cmocka_unit_test(golden_presets_agree),
        cmocka_unit_test(golden_overheads_agree),
        cmocka_unit_test(golden_workers_agree_or_are_zero),
        cmocka_unit_test(golden_recommendations_agree_or_have_a_zero),
        cmocka_unit_test(golden_overflows_agree_or_overflow),
        cmocka_unit_test(every_policy_has_a_name_that_parses_back),
        cmocka_unit_test(a_zero_policy_keeps_all),
        cmocka_unit_test(rules_of_policies_have_a_sentence_each),
        cmocka_unit_test(a_list_of_layers_is_not_checked_without_memory),
        cmocka_unit_test(a_strategy_asks_for_a_policy_or_for_the_cheapest_plan),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("2 strategy", tests, NULL, NULL);
}
