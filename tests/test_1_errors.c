// [1] CORE, errors: sites, values and what they say. With and without text they are compared in tests/build/no_error_text.c.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"

typedef struct listed { uint32_t number; const char *name, *sentence, *values; } listed;

#define LISTED_RULE(id, sentence, values) { TLI_RULE_##id, #id, sentence, values },
#define LISTED_FUNCTION(id, name) { TLI_IN_##id, #id, name, "" },
static const listed rules[] = { TLI_RULES(LISTED_RULE) };
static const listed functions[] = { TLI_FUNCTIONS(LISTED_FUNCTION) };

#define RULE_COUNT (sizeof rules / sizeof *rules)
#define FUNCTION_COUNT (sizeof functions / sizeof *functions)

static tl_error error_at(uint32_t function, uint32_t rule, uint64_t first, uint64_t second) {
    tl_error error;
    memset(&error, 0, sizeof error);
    error.site = function << 16 | rule;
    error.values[0] = first;
    error.values[1] = second;
    return error;
}

static const char *explained(tl_error error) {
    static char text[512];
    assert_true(tl_explain_error(&error, text, sizeof text) < sizeof text);
    return text;
}

static tl_graph equal_layers(int32_t count) {
    tl_chain_desc chain;
    tl_graph graph;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = count;
    chain.input_bytes = 1;
    assert_int_equal(tl_add_chain(NULL, &graph, &chain), TL_OK);
    return graph;
}

static void every_rule_is_explained_by_its_sentence(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < RULE_COUNT; i++) {
        const char *text = explained(error_at(functions[0].number, rules[i].number, 40, 96));
        size_t whole = strcspn(rules[i].sentence, "%");
        if (rules[i].number == TLI_RULE_OF_A_BACKEND) continue;
        assert_true(strncmp(text, "tl_init_arena: ", 15) == 0 && strncmp(text + 15, rules[i].sentence, whole) == 0);
        assert_null(strchr(text, '%'));
        assert_true(!*rules[i].values || strstr(text, " 40"));
    }
    assert_true(i > 500);
}

static void every_function_is_explained_by_its_name(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < FUNCTION_COUNT; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "%s: layer_count: must be > 0", functions[i].sentence);
        assert_string_equal(explained(error_at(functions[i].number, TLI_RULE_LAYER_COUNT_MUST_BE_POSITIVE, 0, 0)), expected);
    }
}

static void numbers_and_sentences_are_unique(void **state) {
    size_t i, k;
    (void)state;
    for (i = 0; i < RULE_COUNT; i++)
        for (k = 0; k < i; k++) {
            assert_int_not_equal(rules[i].number, rules[k].number);
            assert_string_not_equal(rules[i].sentence, rules[k].sentence);
        }
    for (i = 0; i < FUNCTION_COUNT; i++)
        for (k = 0; k < i; k++) {
            assert_int_not_equal(functions[i].number, functions[k].number);
            assert_string_not_equal(functions[i].sentence, functions[k].sentence);
        }
}

static void a_sentence_has_no_placeholder_but_values_that_have_names_and_texts(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < RULE_COUNT; i++) {
        const char *comma = strchr(rules[i].values, ','), *at = rules[i].sentence;
        while ((at = strchr(at, '%')) != NULL) {
            at++;
            assert_non_null(strchr("01s", *at));
            assert_true(*at != '0' || *rules[i].values);
            assert_true(*at != '1' || comma);
        }
        assert_true(!comma || (comma[1] == ' ' && comma[2] && !strchr(comma + 1, ',')));
        assert_true(rules[i].number >> 8 >= 1 && rules[i].number >> 8 <= 13);
    }
}

// Numbers are for good: who reads the report of an old device must find the same rule.
static void a_few_numbers_are_what_they_always_were(void **state) {
    (void)state;
    assert_int_equal(TLI_IN_INIT_ARENA, 1);
    assert_int_equal(TLI_IN_CHECK_GRAPH, 10);
    assert_int_equal(TLI_IN_PLAN_REMAT, 50);
    assert_int_equal(TLI_IN_INIT_RUN, 110);
    assert_int_equal(TLI_IN_FINISH_FILE_SINK, 129);
    assert_int_equal(TLI_RULE_OF_A_BACKEND, 0x0101);
    assert_int_equal(TLI_RULE_MODE_UNKNOWN_VALUE, 0x0201);
    assert_int_equal(TLI_RULE_NAME_MUST_BE_UNIQUE, 0x0324);
    assert_int_equal(TLI_RULE_INPUT_IS_NOT_RESIDENT, 0x050D);
    assert_int_equal(TLI_RULE_BYTES_ARE_TOO_FEW_FOR_ANY_PLAN, 0x0601);
    assert_int_equal(TLI_RULE_SCALE_MUST_BE_FINITE_AND_POSITIVE, 0x070C);
    assert_int_equal(TLI_RULE_RUN_NO_MEMORY, 0x0C4E);
}

static void a_site_that_nobody_has_explains_to_nothing(void **state) {
    static const uint32_t sites[] = { 0, 1, 0xFFFFFFFF, 0x00010000, 0x000100FF, 0x00010100, 0x0001FFFF, 0x7FFF0101, 0xFFFF0102, 0x00000102 };
    char text[16];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof sites / sizeof *sites; i++) {
        tl_error error = error_at(sites[i] >> 16, sites[i] & 0xFFFF, 1, 2);
        strcpy(text, "before");
        assert_int_equal(tl_explain_error(&error, text, sizeof text), 0);
        assert_string_equal(text, "");
    }
}

static void a_value_that_is_not_known_is_none(void **state) {
    tl_error error = error_at(TLI_IN_ADD_NODE, TLI_RULE_NAME_MUST_BE_UNIQUE, UINT64_MAX, UINT64_MAX - 1);
    (void)state;
    assert_string_equal(explained(error), "tl_add_node: name: must be unique (node none, line 18446744073709551614)");
}

// Bits 24 to 31 of the site are the limit, where the rule is about a budget, and mean nothing elsewhere.
static void an_explanation_names_the_limit(void **state) {
    static const char *const fields[] = { "budget_bytes", "device_capacity_bytes", "backend: capacity_bytes", "host_budget_bytes",
                                          "host_capacity_bytes", "backend: host capacity_bytes", "memory_fraction" };
    tl_error error = error_at(TLI_IN_INIT_RUN, TLI_RULE_PLAN_TAKES_BYTES, 40, 96), other;
    uint32_t limit;
    (void)state;
    assert_int_equal(sizeof fields / sizeof *fields, TL_LIMIT_COUNT);
    for (limit = 0; limit < 256; limit++) {
        char text[160];
        other = error_at(TLI_IN_ADD_NODE, TLI_RULE_NAME_MUST_BE_UNIQUE, 1, 2);
        error.site = (error.site & 0xFFFFFF) | limit << 24;
        other.site |= limit << 24;
        snprintf(text, sizeof text, "tl_init_run: %s: the plan takes 96 bytes... (budget 40, least budget 96)",
                 limit < TL_LIMIT_COUNT ? fields[limit] : "");
        assert_string_equal(explained(error), limit < TL_LIMIT_COUNT ? text : "");
        assert_int_equal(tl_find_limit(&error), limit < TL_LIMIT_COUNT ? limit : TL_LIMIT_BUDGET);
        assert_int_equal(tl_find_limit(&other), TL_LIMIT_BUDGET);
        assert_int_equal(!*explained(other), limit > 0);
    }
}

// A graph that was no text has no lines. Any other number may be 0.
static void an_explanation_has_no_line_0(void **state) {
    uint32_t in = TLI_IN_CHECK_GRAPH, rule = TLI_RULE_PIECES_HAVE_ONE_READER;
    const char *sentence = "tl_check_graph: in: a state in pieces is read once";
    char text[160];
    (void)state;
    snprintf(text, sizeof text, "%s (node 0)", sentence);
    assert_string_equal(explained(error_at(in, rule, 0, 0)), text);
    snprintf(text, sizeof text, "%s (node 0, line 7)", sentence);
    assert_string_equal(explained(error_at(in, rule, 0, 7)), text);
    assert_string_equal(explained(error_at(in, TLI_RULE_NEEDS_VALUE, 0, 0)), "tl_check_graph: needs a value");
}

static void an_explanation_truncates_like_snprintf(void **state) {
    tl_error error = error_at(TLI_IN_ADD_CHAIN, TLI_RULE_LAYER_COUNT_MUST_BE_POSITIVE, 0, 0);
    static const char whole[] = "tl_add_chain: layer_count: must be > 0";
    char text[64];
    (void)state;
    assert_int_equal(tl_explain_error(&error, NULL, 0), sizeof whole - 1);
    assert_int_equal(tl_explain_error(&error, text, 10), sizeof whole - 1);
    assert_string_equal(text, "tl_add_ch");
    assert_int_equal(tl_explain_error(&error, text, sizeof text), sizeof whole - 1);
    assert_string_equal(text, whole);
}

static void what_a_backend_records_has_one_site_without_a_function(void **state) {
    tl_env env = silent_env();
    (void)state;
    assert_int_equal(tl_record_error(&env, TL_ERROR_BACKEND, "my_copy", "100 % of it failed: %s %0"), TL_ERROR_BACKEND);
    assert_string_equal(env.error.text, "my_copy: 100 % of it failed: %s %0");
    assert_int_equal(env.error.code, TL_ERROR_BACKEND);
    assert_int_equal(env.error.site, 0x0101);
    assert_true(!env.error.values[0] && !env.error.values[1]);
    assert_non_null(strstr(explained(env.error), "tl_record_error"));
}

static void an_error_says_where_as_numbers(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=z needs=in in=0\n";
    static const char json[] = "{\n  \"mode\": \"Fast\"}";
    tl_env env = silent_env();
    tl_strategy strategy;
    tl_graph graph;
    (void)state;
    assert_int_equal(tl_parse_graph(&env, text, sizeof text - 1, &graph), TL_ERROR_PARSE);
    assert_int_equal(env.error.values[0], 3);
    assert_int_equal(tl_parse_strategy_json(&env, json, sizeof json - 1, &strategy), TL_ERROR_PARSE);
    assert_true(env.error.values[0] == 2 && env.error.values[1] == 12);
    assert_string_equal(explained(env.error), "tl_parse_strategy_json: unknown name (line 2, column 12)");
}

static void a_step_that_breaks_a_rule_is_a_number(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(3);
    tl_simulate_desc desc;
    tl_report report;
    tl_plan plan;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    assert_int_equal(tl_parse_schedule(&env, "F 1\nF 3\n", 8, &plan), TL_OK);
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_PLAN);
    assert_int_equal(env.error.values[0], 1);
    assert_int_equal(env.error.values[1], 2);  // tensor 2 of the graph, output 0 of node 2
    assert_string_equal(explained(env.error), "tl_simulate_plan: input ... is not resident (step 1, tensor 2)");
    tl_free_plan(&env, &plan);
    assert_int_equal(tl_parse_schedule(&env, "F 1\n", 4, &plan), TL_OK);
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_PLAN);
    assert_int_equal(env.error.values[0], 1);  // after the last step
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void the_least_budget_of_a_graph_is_a_number_and_does(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(16);
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    uint64_t least;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.live = 1;
    desc.base_bytes = 100;
    desc.budget_bytes = 103;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    least = tl_find_least_budget(&env.error);
    assert_int_equal(env.error.values[0], 103);
    assert_int_equal(env.error.values[1], least);
    assert_int_equal(report.least_budget_bytes, least);
    assert_non_null(strstr(explained(env.error), "(budget 103, least budget "));
    desc.budget_bytes = least;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
    tl_free_plan(&env, &plan);
    desc.budget_bytes = least - 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INFEASIBLE);
    tl_free_graph(&env, &graph);
}

static void the_least_budgets_of_chains_and_policies_are_numbers_and_do(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(16);
    tl_chain_plan_desc chain;
    tl_policy_desc policy;
    tl_plan plan;
    (void)state;
    memset(&chain, 0, sizeof chain);
    memset(&policy, 0, sizeof policy);
    chain.graph = policy.graph = &graph;
    chain.live = 1;
    chain.budget_bytes = policy.budget_bytes = 3;
    assert_int_equal(tl_plan_chain(&env, &chain, &plan, NULL), TL_ERROR_INFEASIBLE);
    assert_int_equal(env.error.values[0], 3);
    chain.budget_bytes = tl_find_least_budget(&env.error);
    assert_int_equal(tl_plan_chain(&env, &chain, &plan, NULL), TL_OK);
    tl_free_plan(&env, &plan);
    policy.policy.kind = TL_POLICY_CHEN_SQRT;
    assert_int_equal(tl_plan_policy(&env, &policy, &plan), TL_ERROR_INFEASIBLE);
    assert_int_equal(env.error.values[0], 3);
    policy.budget_bytes = tl_find_least_budget(&env.error);
    assert_int_equal(tl_plan_policy(&env, &policy, &plan), TL_OK);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void the_least_budget_of_a_config_is_a_number(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(16);
    tl_checkpoint_config config;
    char expected[64];
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_checkpoint_dynamic(&env, 16, 0.01, &config), TL_OK);
    assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INFEASIBLE);
    snprintf(expected, sizeof expected, "the least found is %d, at", (int)tl_find_least_budget(&env.error));
    assert_non_null(strstr(env.error.text, expected));
    tl_free_graph(&env, &graph);
}

static tl_result compute(const tl_kernel_call *call, void *user) { (void)call; (void)user; return TL_OK; }

static void the_least_budget_of_a_run_is_a_number_and_does(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(8);
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_kernel kernel;
    tl_run_desc desc;
    tl_plan plan;
    tl_run *run;
    uint64_t least;
    int planned;
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    memset(&kernel, 0, sizeof kernel);
    memset(&desc, 0, sizeof desc);
    cpu.alignment_bytes = 1;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
    kernel.op = "layer";
    kernel.forward = kernel.backward = compute;
    desc.graph = &graph;
    desc.backend = &backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.base_bytes = 50;
    for (planned = 0; planned < 2; planned++) {
        desc.plan = planned ? &plan : NULL;
        desc.budget_bytes = 52;
        assert_int_equal(tl_init_run(&env, &desc, &run), TL_ERROR_INFEASIBLE);
        least = tl_find_least_budget(&env.error);
        assert_int_equal(env.error.values[0], 52);
        assert_true(least > 52 && least < 100);
        desc.budget_bytes = least - 1;
        assert_int_equal(tl_init_run(&env, &desc, &run), TL_ERROR_INFEASIBLE);
        desc.budget_bytes = least;
        assert_int_equal(tl_init_run(&env, &desc, &run), TL_OK);
        tl_free_run(run);
    }
    tl_free_plan(&env, &plan);
    tl_free_cpu_backend(&env, &backend);
    tl_free_graph(&env, &graph);
}

static void a_manager_that_refuses_says_what_would_do(void **state) {
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_manager_desc desc;
    tl_manager *manager;
    tl_save_desc save;
    char data[64];
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    memset(&save, 0, sizeof save);
    memset(data, 1, sizeof data);
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    desc.device_budget_bytes = 48;
    assert_int_equal(tl_init_manager(&env, &backend, &desc, &manager), TL_OK);
    save.data = data;
    save.bytes = 24;
    save.keep = 1;
    assert_int_equal(tl_save_checkpoint(&env, manager, &save), TL_OK);
    save.key.node = 1;
    save.bytes = 40;
    assert_int_equal(tl_save_checkpoint(&env, manager, &save), TL_ERROR_OVER_BUDGET);
    assert_int_equal(env.error.values[0], 48);
    assert_int_equal(tl_find_least_budget(&env.error), 64);
    tl_free_manager(manager);
    tl_free_cpu_backend(&env, &backend);
}

static void only_budgets_have_a_least_budget(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < RULE_COUNT; i++) {
        tl_error error = error_at(1, rules[i].number, 40, 96);
        assert_true(tl_find_least_budget(&error) == (strcmp(rules[i].values, "budget, least budget") ? UINT64_MAX : 96));
    }
}

static void a_call_that_succeeds_leaves_the_error_of_an_earlier_one(void **state) {
    tl_env env = silent_env();
    tl_strategy strategy = tl_strategy_new();
    tl_error before;
    (void)state;
    strategy.mode = TL_MODE_COUNT;
    assert_int_equal(tl_check_strategy(&env, &strategy), TL_ERROR_INVALID_ARG);
    before = env.error;
    strategy.mode = TL_MODE_EAGER;
    assert_int_equal(tl_check_strategy(&env, &strategy), TL_OK);
    assert_memory_equal(&env.error, &before, sizeof before);
}

static void an_error_without_values_clears_those_of_an_earlier_one(void **state) {
    tl_env env = silent_env();
    tl_strategy strategy = tl_strategy_new();
    (void)state;
    env.error.values[0] = env.error.values[1] = 7;
    strategy.mode = TL_MODE_COUNT;
    assert_int_equal(tl_check_strategy(&env, &strategy), TL_ERROR_INVALID_ARG);
    assert_true(!env.error.values[0] && !env.error.values[1]);
}

static void *some_memory(void *user, size_t bytes) { (void)user; return malloc(bytes ? bytes : 1); }

static void no_memory_to_release(void *user, void *memory) { (void)user; (void)memory; fail_msg("%s", "memory of another is released"); }

// With alloc or release alone, memory of the one would go back to the other: whatever allocates is refused, and nothing is freed.
static void half_an_allocator_is_refused(void **state) {
    int half;
    (void)state;
    for (half = 0; half < 2; half++) {
        static const char says[] = "env: alloc and release: set both or neither";
        static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n";
        tl_graph graph = equal_layers(3), read;
        tl_remat_desc remat;
        tl_cpu_backend_desc memory;
        tl_backend cpu;
        tl_plan plan;
        tl_env env;
        memset(&env, 0, sizeof env);
        memset(&remat, 0, sizeof remat);
        memset(&memory, 0, sizeof memory);
        if (half) env.alloc = some_memory; else env.release = no_memory_to_release;
        remat.graph = &graph;
        remat.budget_bytes = 1000;
        assert_int_equal(tl_plan_remat(&env, &remat, &plan, NULL), TL_ERROR_NO_MEMORY);
        assert_non_null(strstr(env.error.text, says));
        assert_int_equal(tl_init_cpu_backend(&env, &memory, &cpu), TL_ERROR_NO_MEMORY);
        assert_non_null(strstr(env.error.text, says));
        assert_int_equal(tl_parse_graph(&env, text, sizeof text - 1, &read), TL_ERROR_NO_MEMORY);
        assert_non_null(strstr(explained(env.error), says));
        assert_null(tl_add_memory(&env, 16));
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_an_allocator_is_refused),
        cmocka_unit_test(every_rule_is_explained_by_its_sentence),
        cmocka_unit_test(every_function_is_explained_by_its_name),
        cmocka_unit_test(numbers_and_sentences_are_unique),
        cmocka_unit_test(a_sentence_has_no_placeholder_but_values_that_have_names_and_texts),
        cmocka_unit_test(a_few_numbers_are_what_they_always_were),
        cmocka_unit_test(a_site_that_nobody_has_explains_to_nothing),
        cmocka_unit_test(a_value_that_is_not_known_is_none),
        cmocka_unit_test(an_explanation_names_the_limit),
        cmocka_unit_test(an_explanation_has_no_line_0),
        cmocka_unit_test(an_explanation_truncates_like_snprintf),
        cmocka_unit_test(what_a_backend_records_has_one_site_without_a_function),
        cmocka_unit_test(an_error_says_where_as_numbers),
        cmocka_unit_test(a_step_that_breaks_a_rule_is_a_number),
        cmocka_unit_test(the_least_budget_of_a_graph_is_a_number_and_does),
        cmocka_unit_test(the_least_budgets_of_chains_and_policies_are_numbers_and_do),
        cmocka_unit_test(the_least_budget_of_a_config_is_a_number),
        cmocka_unit_test(the_least_budget_of_a_run_is_a_number_and_does),
        cmocka_unit_test(a_manager_that_refuses_says_what_would_do),
        cmocka_unit_test(only_budgets_have_a_least_budget),
        cmocka_unit_test(a_call_that_succeeds_leaves_the_error_of_an_earlier_one),
        cmocka_unit_test(an_error_without_values_clears_those_of_an_earlier_one),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("1 errors", tests, NULL, NULL);
}
