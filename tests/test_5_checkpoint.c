// [5] PLAN, checkpoint configs: constructors, rules, kept layers, plans and their effect, the dynamic search, JSON, summary;
// the defects of the seed, list C, each by its number; the seed's own tests and golden rows.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/texts.h"
#include "support/keep_all.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// -- what the tests share --

// Ratios are equal up to what a machine with wider registers rounds differently.
static int near(double a, double b) { return fabs(a - b) < 1e-14; }

static void assert_text(const tl_env *env, const char *text) {
    if (strcmp(env->error.text, text)) fail_msg("\"%s\", not \"%s\"", env->error.text, text);
}

// Equal layers of one byte; backward costs twice the forward, as tl_measure_checkpoints has it.
static tl_graph equal_layers(int32_t layer_count, const char *needs) {
    tl_env env = silent_env();
    tl_chain_desc desc;
    tl_graph graph;
    uint64_t costs[1024];
    int32_t i;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < 1024; i++) costs[i] = 2;
    desc.layer_count = layer_count;
    desc.input_bytes = 1;
    desc.bwd_costs = costs;
    desc.needs = needs;
    if (tl_add_chain(&env, &graph, &desc)) fail_msg("%s", env.error.text);
    return graph;
}

static tl_checkpoint_config dynamic(uint64_t layer_count, double memory_fraction) {
    tl_env env = silent_env();
    tl_checkpoint_config config;
    if (tl_checkpoint_dynamic(&env, layer_count, memory_fraction, &config)) fail_msg("%s", env.error.text);
    return config;
}

static tl_checkpoint_effect effect_of(const tl_graph *graph, uint64_t layer_count, const tl_checkpoint_config *config) {
    tl_env env = silent_env();
    tl_checkpoint_effect effect;
    if (tl_measure_checkpoints(&env, graph, layer_count, config, &effect)) fail_msg("%s", env.error.text);
    return effect;
}

static tl_plan plan_of(const tl_graph *graph, const tl_checkpoint_config *config) {
    tl_env env = silent_env();
    tl_plan plan;
    if (tl_plan_checkpoints(&env, graph, config, &plan)) fail_msg("%s", env.error.text);
    return plan;
}

static void assert_same_plan(const tl_plan *a, const tl_plan *b) {
    assert_int_equal(a->step_count, b->step_count);
    assert_memory_equal(a->steps, b->steps, (size_t)a->step_count * sizeof *a->steps);
    assert_true(a->peak_bytes == b->peak_bytes && a->cost == b->cost && a->base_cost == b->base_cost);
}

// The nodes that a plan calls forward more than once: "2 3 5".
static const char *recomputed(const tl_graph *graph, const tl_plan *plan) {
    static char text[1024];
    int32_t id, i;
    size_t length = 0;
    text[0] = 0;
    for (id = 0; id < graph->node_count; id++) {
        int times = 0;
        for (i = 0; i < plan->step_count; i++) times += plan->steps[i].node == id && plan->steps[i].kind < TL_STEP_BACKWARD;
        if (times > 1 && length + 16 < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%d", length ? " " : "", id);
    }
    return text;
}

static void assert_recomputed(const tl_graph *graph, const tl_checkpoint_config *config, const char *nodes) {
    tl_plan plan = plan_of(graph, config);
    if (strcmp(recomputed(graph, &plan), nodes)) fail_msg("made again: \"%s\", not \"%s\"", recomputed(graph, &plan), nodes);
    tl_free_plan(NULL, &plan);
}

static void assert_kept(const tl_graph *graph, const tl_checkpoint_config *config, const char *ones) {
    tl_env env = silent_env();
    uint8_t kept[64];
    char text[65];
    size_t count = strlen(ones), i;
    if (tl_find_kept_layers(&env, graph, config, kept, count)) fail_msg("%s", env.error.text);
    for (i = 0; i < count; i++) text[i] = (char)('0' + kept[i]);
    text[count] = 0;
    assert_string_equal(text, ones);
}

static uint64_t random_u64(tl_random *random, uint64_t least, uint64_t most) {
    return least + tl_next_random_below(random, most - least + 1);
}

static int spaced(const uint8_t *kept, int32_t count, uint64_t interval) {
    int64_t last = -1;
    int32_t i;
    for (i = 0; i < count; i++) {
        if (!kept[i]) continue;
        if (last >= 0 && (uint64_t)(i - last) < interval) return 0;
        last = i;
    }
    return 1;
}

// Two transformer layers between an embedding and a loss. Inner: qkv, att, mid, up, down; out is read by the next layer.
static const char *const transformer =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 emb embedding fwd=1 bwd=1 out=10 needs=in in=0\n"
    "node 2 qkv0 linear fwd=2 bwd=4 out=30 needs=in in=1 layer=0 unit=attention\n"
    "node 3 att0 sdpa fwd=3 bwd=6 out=10 needs=in in=2 saved=5 layer=0 unit=attention\n"
    "node 4 mid0 add fwd=1 bwd=1 out=10 needs=none in=1,3 layer=0 unit=other\n"
    "node 5 up0 linear fwd=4 bwd=8 out=40 needs=in in=4 layer=0 unit=ffn\n"
    "node 6 down0 linear fwd=4 bwd=8 out=10 needs=in in=5 layer=0 unit=ffn\n"
    "node 7 out0 add fwd=1 bwd=1 out=10 needs=none in=4,6 layer=0\n"
    "node 8 qkv1 linear fwd=2 bwd=4 out=30 needs=in in=7 layer=1 unit=attention\n"
    "node 9 att1 sdpa fwd=3 bwd=6 out=10 needs=in in=8 saved=5 layer=1 unit=attention\n"
    "node 10 mid1 add fwd=1 bwd=1 out=10 needs=none in=7,9 layer=1\n"
    "node 11 up1 linear fwd=4 bwd=8 out=40 needs=in in=10 layer=1 unit=ffn\n"
    "node 12 down1 linear fwd=4 bwd=8 out=10 needs=in in=11 layer=1 unit=ffn\n"
    "node 13 out1 add fwd=1 bwd=1 out=10 needs=none in=10,12 layer=1\n"
    "node 14 loss ce fwd=1 bwd=1 out=1 needs=in in=13 keep\n";

// A chain of layers with every attribute.
static tl_graph random_chain(tl_random *random, int32_t layer_count) {
    static const char *const needs[] = { "in", "out", "in,out", "none" };
    uint64_t numbers[6][64];
    tl_env env = silent_env();
    tl_chain_desc desc;
    tl_graph graph;
    int32_t i, k;
    for (k = 0; k < 6; k++)
        for (i = 0; i < layer_count; i++)
            numbers[k][i] = k < 3 && random_chance(random, 70) ? 0 : random_u64(random, 0, 20);
    memset(&desc, 0, sizeof desc);
    desc.layer_count = layer_count;
    desc.input_bytes = random_u64(random, 0, 20);
    desc.saved_bytes = numbers[0]; desc.fwork_bytes = numbers[1]; desc.bwork_bytes = numbers[2];
    desc.output_bytes = numbers[3]; desc.fwd_costs = numbers[4]; desc.bwd_costs = numbers[5];
    desc.needs = needs[random_u64(random, 0, 9) % 4];
    if (tl_add_chain(&env, &graph, &desc)) fail_msg("%s", env.error.text);
    return graph;
}

// Layers of one to four nodes, with units, residuals inside, now and then an embedding before and a loss behind them.
// far: some nodes read from layers far below, too.
static tl_graph random_layers(tl_random *random, int32_t layer_count, int far) {
    static const char *const needs[] = { "in", "out", "in0,out", "none" };
    static const char *const units[] = { "attention", "ffn", "other", NULL };
    tl_env env = silent_env();
    tl_graph graph;
    int32_t l, k, last = 0, below = 0, first;
    tl_init_graph(&graph);
    for (l = -2; l <= layer_count; l++) {
        int32_t node_count = l < 0 || l == layer_count ? 1 : random_count(random, 1, 4);
        if ((l == -1 || l == layer_count) && random_chance(random, 50)) continue;
        first = last;
        for (k = 0; k < node_count; k++) {
            tl_node_desc desc;
            tl_tensor inputs[3];
            uint64_t bytes = random_u64(random, 0, 20);
            memset(&desc, 0, sizeof desc);
            memset(inputs, 0, sizeof inputs);
            inputs[0].node = last; inputs[1].node = random_count(random, first, last); inputs[2].node = below;
            desc.op = l == -2 ? "input" : "op";
            desc.inputs = inputs;
            desc.input_count = l == -2 ? 0 : l < 0 || l == layer_count ? 1 : random_count(random, 1, 2);
            if (far && l > 0 && l < layer_count && random_chance(random, 25)) desc.input_count = 3;
            desc.output_bytes = &bytes;
            desc.output_count = 1;
            if (l > -2) {
                desc.fwd_cost = random_u64(random, 0, 20);
                desc.bwd_cost = random_u64(random, 0, 20);
                desc.needs = needs[random_u64(random, 0, 3)];
                if (random_chance(random, 25)) desc.saved_bytes = random_u64(random, 1, 20);
                if (random_chance(random, 25)) desc.fwork_bytes = random_u64(random, 1, 20);
                if (random_chance(random, 25)) desc.bwork_bytes = random_u64(random, 1, 20);
            }
            if (l >= 0 && l < layer_count) { desc.layer = l + 1; desc.unit = units[random_u64(random, 0, 3)]; }
            desc.keep = l == layer_count;
            if (tl_add_node(&env, &graph, &desc, &last)) fail_msg("%s", env.error.text);
        }
        if (random_chance(random, 25)) below = last;
    }
    return graph;
}

// -- constructors and rules --

static void constructors_fill_in_what_the_seed_fills_in(void **state) {
    static const uint64_t layers[] = { 0, 3 };
    tl_checkpoint_config config = tl_checkpoint_none();
    (void)state;
    assert_true(config.policy.kind == TL_POLICY_KEEP_ALL && !config.checkpoint_attention && !config.checkpoint_ffn);
    assert_true(config.min_checkpoint_interval == 1 && !config.memory);
    config = tl_checkpoint_uniform(7);
    assert_true(config.policy.kind == TL_POLICY_EVERY_N && config.policy.as.every_n.interval == 7);
    assert_true(config.checkpoint_attention == 1 && config.checkpoint_ffn == 1 && config.min_checkpoint_interval == 1);
    config = tl_checkpoint_selective(layers, 2);
    assert_true(config.policy.kind == TL_POLICY_LAYERS && config.policy.as.layers.list == layers);
    assert_true(config.policy.as.layers.count == 2 && config.checkpoint_attention == 1 && config.checkpoint_ffn == 1);
    config = dynamic(12, 0.25);
    assert_true(config.policy.kind == TL_POLICY_FRACTION && config.policy.as.fraction.layer_count == 12);
    assert_true(config.policy.as.fraction.memory_fraction == 0.25);
    assert_true(config.checkpoint_attention == 1 && config.checkpoint_ffn == 1 && config.min_checkpoint_interval == 1);
    tl_free_checkpoint_config(NULL, &config);
    assert_true(config.policy.kind == TL_POLICY_KEEP_ALL && !config.memory);
    tl_free_checkpoint_config(NULL, &config);
}

static void builders_switch_both_ways(void **state) {
    tl_checkpoint_config config = tl_with_min_interval(tl_with_checkpoint_attention(tl_checkpoint_uniform(2), 0), 9);
    (void)state;
    assert_true(!config.checkpoint_attention && config.checkpoint_ffn && config.min_checkpoint_interval == 9);
    config = tl_with_checkpoint_attention(tl_with_checkpoint_ffn(config, 0), 5);
    assert_true(config.checkpoint_attention == 1 && !config.checkpoint_ffn);
    config = tl_with_checkpoint_ffn(config, -1);
    assert_true(config.checkpoint_ffn == 1 && config.policy.as.every_n.interval == 2);
}

// The names that the seed has for the policies of configs; NULL for the others.
static const char *seed_name(tl_policy_kind kind) {
    return kind == TL_POLICY_KEEP_ALL ? "None" : kind == TL_POLICY_EVERY_N ? "Uniform"
         : kind == TL_POLICY_LAYERS ? "Selective" : kind == TL_POLICY_FRACTION ? "Dynamic" : NULL;
}

static tl_policy_kind kind_of_seed(const char *name) {
    int kind;
    for (kind = 0; kind < TL_POLICY_COUNT; kind++)
        if (seed_name((tl_policy_kind)kind) && !strcmp(seed_name((tl_policy_kind)kind), name)) return (tl_policy_kind)kind;
    fail_msg("no strategy of the seed: %s", name);
    return TL_POLICY_COUNT;
}

// A config of a policy that it does not carry out is refused, keeps no layer, and has no text.
static void configs_take_four_policies(void **state) {
    int kind, taken = 0;
    (void)state;
    for (kind = 0; kind < TL_POLICY_COUNT; kind++) {
        tl_checkpoint_config config = tl_checkpoint_none();
        const char *name = seed_name((tl_policy_kind)kind);
        char text[256], sentence[256];
        tl_env env;
        tl_plan plan;
        tl_graph graph = equal_layers(4, "in");
        config.policy.kind = (tl_policy_kind)kind;
        memset(&env, 0, sizeof env);
        tl_print_checkpoint_config_json(&config, text, sizeof text);
        snprintf(sentence, sizeof sentence, "{\"strategy\":%s\"%s\"", name && kind ? "{" : "", name ? name : "?");
        assert_int_equal(strncmp(text, sentence, strlen(sentence)), 0);
        if (name) {
            taken++;
        } else {
            snprintf(sentence, sizeof sentence, "tl_check_checkpoint_config: policy: must be keep-all, every-n, layers or fraction");
            assert_int_equal(tl_check_checkpoint_config(&env, &config, 0), TL_ERROR_INVALID_ARG);
            assert_text(&env, sentence);
            assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INVALID_ARG);
            assert_text(&env, sentence);
            assert_int_equal(tl_keeps_layer(&config, 0), 0);
            assert_int_equal(tl_print_checkpoint_config(&config, text, sizeof text), 0);
            assert_int_equal(tl_parse_checkpoint_config_json(&env, text, strlen(text), &config), TL_ERROR_PARSE);
        }
        tl_free_graph(NULL, &graph);
    }
    assert_int_equal(taken, 4);
}

static void every_rule_of_a_config_has_its_sentence(void **state) {
    static const uint64_t twice[] = { 7, 0, 3, 7 }, far[] = { 0, 12 }, last[] = { 11, 0 };
    tl_env env = silent_env();
    tl_checkpoint_config config;
    (void)state;
#define REFUSES(layer_count, sentence)                                                               \
    assert_int_equal(tl_check_checkpoint_config(&env, &config, layer_count), TL_ERROR_INVALID_ARG); \
    assert_text(&env, "tl_check_checkpoint_config: " sentence)
    config = tl_checkpoint_uniform(0);
    REFUSES(0, "every-n: interval: must be > 0");
    config = tl_checkpoint_uniform(1);
    config.checkpoint_attention = 2;
    REFUSES(0, "checkpoint_attention, checkpoint_ffn: must be 0 or 1");
    config = tl_checkpoint_none();
    config.checkpoint_ffn = -1;
    REFUSES(0, "checkpoint_attention, checkpoint_ffn: must be 0 or 1");
    config = tl_checkpoint_selective(twice, 4);
    REFUSES(0, "layers: 7 is listed twice");
    config = tl_checkpoint_selective(NULL, 1);
    REFUSES(0, "layers: missing");
    config = tl_checkpoint_selective(far, 2);
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 0), TL_OK);
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 13), TL_OK);
    REFUSES(12, "layers: 12 is not below the number of layers");
    config = tl_checkpoint_selective(last, 2);
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 12), TL_OK);
    config = tl_checkpoint_selective(NULL, 0);
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 12), TL_OK);
    config = dynamic(12, 1.0);
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 0), TL_OK);
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 12), TL_OK);
    REFUSES(13, "fraction: layer_count: must be the number of layers, 13");
    config.policy.as.fraction.memory_fraction = 1.0000000000000002;
    REFUSES(0, "fraction: memory_fraction: must be in [0, 1]");
    config.policy.as.fraction.memory_fraction = -5e-324;
    REFUSES(0, "fraction: memory_fraction: must be in [0, 1]");
    config.policy.as.fraction.memory_fraction = -0.0;
    assert_int_equal(tl_check_checkpoint_config(&env, &config, 0), TL_OK);
    config.policy.as.fraction.layer_count = 0;
    REFUSES(0, "fraction: layer_count: must be > 0");
    config = tl_checkpoint_none();
    config.policy.kind = TL_POLICY_COUNT;
    REFUSES(0, "policy: must be keep-all, every-n, layers or fraction");
    config.policy.kind = (tl_policy_kind)77;
    REFUSES(0, "policy: must be keep-all, every-n, layers or fraction");
    assert_int_equal(tl_keeps_layer(&config, 0), 0);
#undef REFUSES
}

static void duplicates_are_found_wherever_they_stand(void **state) {
    tl_random random = { 4 };
    uint64_t layers[64];
    int round, i, k;
    (void)state;
    for (round = 0; round < 2000; round++) {
        int count = random_count(&random, 1, 64), expected = 0;
        tl_env env = silent_env();
        tl_checkpoint_config config = tl_checkpoint_selective(layers, (uint64_t)count);
        for (i = 0; i < count; i++) layers[i] = random_u64(&random, 0, (uint64_t)count * (uint64_t)count);
        for (i = 0; i < count; i++)
            for (k = 0; k < i; k++) expected |= layers[i] == layers[k];
        assert_int_equal(tl_check_checkpoint_config(&env, &config, 0), expected ? TL_ERROR_INVALID_ARG : TL_OK);
    }
}

// -- kept layers --

// What tl_keeps_layer must say, step by step upwards.
static void walk(const tl_checkpoint_config *config, uint8_t *kept, uint64_t layer_count) {
    const tl_policy *c = &config->policy;
    uint64_t l, i, last = 0;
    int any = 0;
    for (l = 0; l < layer_count; l++) {
        int wanted = c->kind == TL_POLICY_EVERY_N && l % c->as.every_n.interval == 0;
        if (c->kind == TL_POLICY_LAYERS)
            for (i = 0; i < c->as.layers.count; i++) wanted |= c->as.layers.list[i] == l;
        kept[l] = wanted && (!any || l - last >= config->min_checkpoint_interval);
        if (kept[l]) { any = 1; last = l; }
    }
}

static void kept_layers_follow_the_walk_whatever_the_order_of_the_list(void **state) {
    tl_random random = { 1 };
    int round;
    (void)state;
    for (round = 0; round < scaled(2000); round++) {
        uint64_t layers[40], count = random_u64(&random, 1, 40), listed = 0, l, i;
        uint8_t walked[40], found[40];
        tl_graph graph;
        tl_checkpoint_config config;
        for (l = 0; l < count; l++)
            if (random_chance(&random, 50)) layers[listed++] = l;
        for (i = 1; i < listed && round % 2; i++) {
            uint64_t k = random_u64(&random, 0, i), swap = layers[i];
            layers[i] = layers[k]; layers[k] = swap;
        }
        config = round % 3 ? tl_checkpoint_selective(layers, listed) : tl_checkpoint_uniform(random_u64(&random, 1, 12));
        config.min_checkpoint_interval = random_u64(&random, 0, 12);
        walk(&config, walked, count);
        for (l = 0; l < count; l++) assert_int_equal(tl_keeps_layer(&config, l), walked[l]);
        if (round % 10) continue;
        graph = equal_layers((int32_t)count, "in");
        assert_int_equal(tl_find_kept_layers(NULL, &graph, &config, found, count), TL_OK);
        assert_memory_equal(found, walked, (size_t)count);
        tl_free_graph(NULL, &graph);
    }
}

static void kept_layers_are_right_at_the_ends_of_64_bits(void **state) {
    static const uint64_t layers[] = { UINT64_MAX, 5, UINT64_MAX - 1 };
    tl_checkpoint_config config = tl_checkpoint_uniform(UINT64_MAX);
    (void)state;
    assert_true(tl_keeps_layer(&config, 0) && tl_keeps_layer(&config, UINT64_MAX) && !tl_keeps_layer(&config, UINT64_MAX - 1));
    config = tl_with_min_interval(tl_checkpoint_uniform(3), UINT64_MAX);
    assert_true(tl_keeps_layer(&config, 0) && tl_keeps_layer(&config, UINT64_MAX) && !tl_keeps_layer(&config, 3));
    config = tl_with_min_interval(tl_checkpoint_uniform(UINT64_MAX - 1), UINT64_MAX);
    assert_true(tl_keeps_layer(&config, 0) && !tl_keeps_layer(&config, UINT64_MAX - 1));
    config = tl_checkpoint_selective(layers, 3);
    assert_true(tl_keeps_layer(&config, 5) && tl_keeps_layer(&config, UINT64_MAX) && tl_keeps_layer(&config, UINT64_MAX - 1));
    config = tl_with_min_interval(config, 2);
    assert_true(tl_keeps_layer(&config, 5) && tl_keeps_layer(&config, UINT64_MAX - 1) && !tl_keeps_layer(&config, UINT64_MAX));
    config = tl_with_min_interval(config, UINT64_MAX - 5);
    assert_true(tl_keeps_layer(&config, 5) && !tl_keeps_layer(&config, UINT64_MAX - 1) && tl_keeps_layer(&config, UINT64_MAX));
    config = tl_with_min_interval(config, UINT64_MAX);
    assert_true(tl_keeps_layer(&config, 5) && !tl_keeps_layer(&config, UINT64_MAX));
}

static void an_ascending_list_of_a_million_layers_is_walked_once(void **state) {
    uint64_t count = 1000000, i, *layers = (uint64_t *)malloc((size_t)count * sizeof *layers);
    tl_checkpoint_config config;
    (void)state;
    assert_non_null(layers);
    for (i = 0; i < count; i++) layers[i] = i;
    config = tl_with_min_interval(tl_checkpoint_selective(layers, count), 2);
    assert_int_equal(tl_keeps_layer(&config, count - 2), 1);
    assert_int_equal(tl_keeps_layer(&config, count - 1), 0);
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, count), TL_OK);
    free(layers);
}

// -- plans --

static void flags_and_layers_decide_which_tensors_are_made_again(void **state) {
    static const uint64_t last[] = { 1 };
    tl_graph graph = graph_of(transformer);
    tl_checkpoint_config config = tl_checkpoint_uniform(1), off;
    (void)state;
    assert_recomputed(&graph, &config, "2 3 5 8 9 11");  // att for its saved bytes; down is read by an add, which needs nothing
    config = tl_with_checkpoint_ffn(config, 0);
    assert_recomputed(&graph, &config, "2 3 8 9");
    config = tl_with_checkpoint_attention(tl_with_checkpoint_ffn(config, 1), 0);
    assert_recomputed(&graph, &config, "5 11");
    off = tl_with_checkpoint_ffn(config, 0);
    assert_recomputed(&graph, &off, "");
    // Layer 1 is not kept: its result and its mid, which belongs to neither unit, are made again.
    config = tl_checkpoint_uniform(2);
    assert_recomputed(&graph, &config, "2 3 5 8 9 10 11 12 13");
    config = tl_with_checkpoint_attention(tl_with_checkpoint_ffn(config, 0), 0);
    assert_recomputed(&graph, &config, "10 13");
    config = tl_with_checkpoint_attention(tl_with_checkpoint_ffn(tl_checkpoint_selective(last, 1), 0), 0);
    assert_recomputed(&graph, &config, "4 7");
    // None keeps all, whatever the flags.
    config = tl_with_checkpoint_attention(tl_with_checkpoint_ffn(tl_checkpoint_none(), 1), 1);
    assert_recomputed(&graph, &config, "");
    tl_free_graph(NULL, &graph);
}

static void a_tensor_that_nobody_reads_or_that_leaves_its_layer_is_no_inner_one(void **state) {
    tl_graph graph = graph_of(
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
        "node 1 a op fwd=1 bwd=1 out=4 needs=out in=0 layer=0 unit=ffn\n"        // read inside and by a node of no layer
        "node 2 b op fwd=1 bwd=1 out=4 needs=out in=1 layer=0 unit=ffn\n"        // read by nobody
        "node 3 c op fwd=1 bwd=1 out=4 needs=out in=1\n"                          // of no layer: always kept
        "node 4 d op fwd=1 bwd=1 out=4,4 needs=out in=0 layer=1 unit=ffn\n"      // d.0 inner, d.1 read by a later layer
        "node 5 e op fwd=1 bwd=1 out=4 needs=out in=4.0 layer=1\n"
        "node 6 f op fwd=1 bwd=1 out=4 needs=out in=4.1,5 layer=2\n");
    static const uint64_t all[] = { 0, 1, 2 }, first[] = { 0 };
    tl_checkpoint_config config = tl_checkpoint_selective(all, 3);
    (void)state;
    assert_recomputed(&graph, &config, "4");
    config = tl_with_checkpoint_ffn(config, 0);
    assert_recomputed(&graph, &config, "");
    config = tl_checkpoint_selective(first, 1);
    assert_recomputed(&graph, &config, "4 5 6");
    config = tl_checkpoint_selective(NULL, 0);
    assert_recomputed(&graph, &config, "1 2 4 5 6");
    tl_free_graph(NULL, &graph);
}

static void none_and_keeping_every_layer_are_the_keep_all_plan(void **state) {
    tl_random random = { 8 };
    int round;
    (void)state;
    for (round = 0; round < 100; round++) {
        tl_graph graph = random_layers(&random, random_count(&random, 1, 8), 1);
        tl_checkpoint_config none = tl_checkpoint_none();
        tl_checkpoint_config every = tl_with_checkpoint_attention(tl_with_checkpoint_ffn(tl_checkpoint_uniform(1), 0), 0);
        tl_plan all, a = plan_of(&graph, &none), b = plan_of(&graph, &every);
        tl_checkpoint_effect effect = effect_of(&graph, 0, &none);
        assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &all), TL_OK);
        assert_same_plan(&a, &all);
        assert_same_plan(&b, &all);
        assert_true(effect.peak_bytes == all.peak_bytes && effect.keep_all_peak_bytes == all.peak_bytes);
        assert_true(near(effect.memory_savings_ratio, 0.0) && near(effect.compute_overhead_ratio, 1.0));
        tl_free_plan(NULL, &all);
        tl_free_plan(NULL, &a);
        tl_free_plan(NULL, &b);
        tl_free_graph(NULL, &graph);
    }
}

static void effects_are_those_worked_by_hand(void **state) {
    // Twelve equal layers. Keep all, at B of the last: x, 11 results, two gradients = 14. Every third kept, at B of layer 8:
    // x, 0, 3, 6 kept, 7 made again, two gradients, and 8 dropped already = 8 at most; made again: 1 2 4 5 7 8 10.
    tl_checkpoint_config config = tl_checkpoint_uniform(3);
    tl_checkpoint_effect effect = effect_of(NULL, 12, &config);
    tl_graph graph = equal_layers(12, "in");
    (void)state;
    assert_int_equal(effect.keep_all_peak_bytes, 14);
    assert_int_equal(effect.peak_bytes, 8);
    assert_int_equal(effect.kept_count, 4);
    assert_true(near(effect.memory_savings_ratio, (1.0 - 8.0 / 14.0)));
    assert_true(near(effect.compute_overhead_ratio, 43.0 / 36.0));
    assert_recomputed(&graph, &config, "2 3 5 6 8 9 11");
    effect = effect_of(&graph, 12, &config);
    assert_true(near(effect.compute_overhead_ratio, 43.0 / 36.0) && effect.peak_bytes == 8);
    tl_free_graph(NULL, &graph);
}

static void no_layers_have_nothing_to_save(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    tl_checkpoint_effect effect = effect_of(NULL, 0, &config);
    (void)state;
    assert_true(near(effect.memory_savings_ratio, 0.0) && near(effect.compute_overhead_ratio, 1.0));
    assert_true(!effect.peak_bytes && !effect.kept_count);
}

static void a_graph_without_bytes_or_costs_has_ratios_all_the_same(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=0 needs=none in=-\n"
                            "node 1 a op fwd=0 bwd=0 out=0 needs=in in=0 layer=0\n");
    tl_checkpoint_config config = tl_checkpoint_uniform(1);
    tl_checkpoint_effect effect = effect_of(&graph, 1, &config);
    (void)state;
    assert_true(near(effect.memory_savings_ratio, 0.0) && near(effect.compute_overhead_ratio, 1.0) && effect.kept_count == 1);
    config = dynamic(1, 0.0);
    assert_kept(&graph, &config, "1");
    tl_free_graph(NULL, &graph);
}

static void graphs_and_counts_that_do_not_fit_are_errors(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(3, "in"), bare, broken;
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    tl_checkpoint_effect effect, no_effect;
    tl_plan plan, no_plan;
    uint8_t kept[4] = { 9, 9, 9, 9 };
    (void)state;
    memset(&no_effect, 0, sizeof no_effect);
    memset(&no_plan, 0, sizeof no_plan);
    assert_int_equal(tl_find_kept_layers(&env, &graph, &config, kept, 4), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_find_kept_layers: layer_count: must be that of the graph, 3");
    assert_memory_equal(kept, "\0\0\0\0", 4);
    assert_int_equal(tl_measure_checkpoints(&env, &graph, 2, &config, &effect), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_measure_checkpoints: layer_count: must be that of the graph, 3");
    assert_memory_equal(&effect, &no_effect, sizeof effect);
    assert_int_equal(tl_measure_checkpoints(&env, NULL, INT32_MAX, &config, &effect), TL_ERROR_OVERFLOW);
    assert_text(&env, "tl_measure_checkpoints: layer_count: must be below 2^31 - 1");
    assert_int_equal(tl_measure_checkpoints(&env, NULL, UINT64_MAX, &config, &effect), TL_ERROR_OVERFLOW);
    config.policy.as.every_n.interval = 0;
    memset(&plan, 7, sizeof plan);
    assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INVALID_ARG);
    assert_memory_equal(&plan, &no_plan, sizeof plan);
    assert_int_equal(tl_measure_checkpoints(&env, &graph, 3, &config, &effect), TL_ERROR_INVALID_ARG);
    config = tl_checkpoint_uniform(1);
    bare = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n");
    assert_int_equal(tl_plan_checkpoints(&env, &bare, &config, &plan), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_plan_checkpoints: graph: no node carries a layer number");
    config = tl_checkpoint_none();
    assert_int_equal(tl_find_kept_layers(&env, &bare, &config, NULL, 0), TL_OK);
    assert_int_equal(tl_plan_checkpoints(&env, &bare, &config, &plan), TL_OK);
    tl_free_plan(&env, &plan);
    broken = graph;
    broken.node_count = 0;
    assert_int_equal(tl_plan_checkpoints(&env, &broken, &config, &plan), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_find_kept_layers(&env, &broken, &config, kept, 3), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_measure_checkpoints(&env, &broken, 3, &config, &effect), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_measure_checkpoints(&env, &broken, 0, &config, &effect), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_check_graph: nodes: missing, or fewer than one");
    tl_free_graph(&env, &bare);
    tl_free_graph(&env, &graph);
}

// -- dynamic --

enum { MOST_CHOICES = 15 };     // for brute force; up to 12 the library tries all, too

typedef struct brute { int found; uint64_t cost, least_peak; int32_t choice_count; } brute;

// How near the search comes where it does not try all.
static struct { int searched, found, missed, dearer; double lost; } nearness;

// What may be kept or not: layers, and behind them the inner tensors whose flag is on. choice_of: -1 = always kept.
static int32_t find_choices(const tl_graph *graph, int32_t layer_count, const tl_checkpoint_config *config, int32_t *choice_of) {
    int32_t i, id, k, count = layer_count;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[i].node];
        const char *unit = tl_name_unit(graph, graph->outputs[i].node);
        int inside = 0, outside = 0, flag = !strcmp(unit, "attention") ? config->checkpoint_attention : config->checkpoint_ffn;
        for (id = 0; id < graph->node_count; id++)
            for (k = 0; k < graph->nodes[id].input_count; k++)
                if (graph->inputs[graph->nodes[id].first_input + k].tensor == i) {
                    if (graph->nodes[id].layer == maker->layer) inside = 1; else outside = 1;
                }
        choice_of[i] = maker->layer;
        if (maker->layer >= 0 && inside && !outside && (!strcmp(unit, "attention") || !strcmp(unit, "ffn")))
            choice_of[i] = flag ? count++ : -1;
    }
    return count;
}

// All kept sets that the config's minimal interval allows, planned one by one.
static brute brute_force(const tl_graph *graph, int32_t layer_count, const tl_checkpoint_config *config, uint64_t limit) {
    int32_t choice_of[256], count, i;
    brute best;
    uint32_t set;
    assert_true(graph->tensor_count <= 256);
    count = find_choices(graph, layer_count, config, choice_of);
    memset(&best, 0, sizeof best);
    best.least_peak = UINT64_MAX;
    best.choice_count = count;
    for (set = 0; count <= MOST_CHOICES && set < (uint32_t)1 << count; set++) {
        uint8_t kept[MOST_CHOICES], keep[256];
        tl_env env = silent_env();
        tl_plan plan;
        for (i = 0; i < count; i++) kept[i] = set >> i & 1;
        if (!spaced(kept, layer_count, config->min_checkpoint_interval)) continue;
        for (i = 0; i < graph->tensor_count; i++) keep[i] = choice_of[i] < 0 || kept[choice_of[i]];
        if (tl_plan_kept_set(&env, graph, keep, &plan)) fail_msg("%s", env.error.text);
        if (plan.peak_bytes < best.least_peak) best.least_peak = plan.peak_bytes;
        if (plan.peak_bytes <= limit && (!best.found || plan.cost < best.cost)) { best.found = 1; best.cost = plan.cost; }
        tl_free_plan(NULL, &plan);
    }
    return best;
}

static uint64_t limit_of(const tl_graph *graph, double fraction) {
    volatile double product = (double)keep_all_peak(graph, 0) * fraction;
    uint64_t limit = 0;
    while ((double)(limit + 1) <= product) limit++;
    return limit;
}

static void assert_names_least(const tl_env *env, uint64_t limit, uint64_t least) {
    char text[160];
    snprintf(text, sizeof text, "tl_plan_checkpoints: memory_fraction: no kept set has a peak of at most %lu bytes, the least found is %lu, at node ",
             (unsigned long)limit, (unsigned long)least);
    if (strncmp(env->error.text, text, strlen(text))) fail_msg("\"%s\", not \"%s\"", env->error.text, text);
    assert_int_equal(tl_find_limit(&env->error), TL_LIMIT_FRACTION);
    assert_int_equal(tl_find_least_budget(&env->error), least);
}

// The plan of a dynamic config, against brute force: the same where all is tried; returns 1 where there is one.
static int assert_dynamic_is_best(const tl_graph *graph, int32_t layer_count, const tl_checkpoint_config *config) {
    tl_env env = silent_env();
    tl_plan plan;
    uint64_t limit = limit_of(graph, config->policy.as.fraction.memory_fraction);
    brute best = brute_force(graph, layer_count, config, limit);
    int is_exact = best.choice_count <= 12;
    tl_result result = tl_plan_checkpoints(&env, graph, config, &plan);
    if (!result) {
        uint8_t kept[16];
        assert_true(plan.peak_bytes <= limit);
        assert_int_equal(tl_find_kept_layers(&env, graph, config, kept, (uint64_t)layer_count), TL_OK);
        assert_true(spaced(kept, layer_count, config->min_checkpoint_interval));
    } else assert_int_equal(result, TL_ERROR_INFEASIBLE);
    if (best.choice_count <= MOST_CHOICES) {
        if (is_exact && result) assert_names_least(&env, limit, best.least_peak);
        if (is_exact) assert_int_equal(!result, best.found);
        if (!result) assert_true(best.found && (is_exact ? plan.cost == best.cost : plan.cost >= best.cost));
        nearness.searched += !is_exact;
        nearness.found += !is_exact && best.found;
        nearness.missed += !is_exact && best.found && result;
        nearness.dearer += !is_exact && !result && plan.cost > best.cost;
        if (!result && best.cost) nearness.lost += (double)plan.cost / (double)best.cost - 1;
    }
    tl_free_plan(NULL, &plan);
    return !result;
}

static void random_flags(tl_random *random, tl_checkpoint_config *config) {
    config->checkpoint_attention = random_chance(random, 50);
    config->checkpoint_ffn = random_chance(random, 50);
    config->min_checkpoint_interval = random_chance(random, 60) ? 1 : random_u64(random, 0, 4);
}

static void dynamic_is_the_optimum_of_all_kept_sets_on_chains(void **state) {
    tl_random random = { 11 };
    int round, found = 0;
    (void)state;
    for (round = 0; round < scaled(120); round++) {
        int32_t count = random_count(&random, 1, 9);
        tl_graph graph = random_chain(&random, count);
        tl_checkpoint_config config = dynamic((uint64_t)count, (double)random_count(&random, 40, 100) / 100);
        random_flags(&random, &config);
        found += assert_dynamic_is_best(&graph, count, &config);
        tl_free_graph(NULL, &graph);
    }
    assert_true(found > round / 10 && found < round);
}

static void dynamic_is_the_optimum_of_all_kept_sets_on_layered_graphs(void **state) {
    tl_random random = { 12 };
    int round, found = 0;
    (void)state;
    for (round = 0; round < scaled(120); round++) {
        int32_t count = random_count(&random, 1, 9);
        tl_graph graph = random_layers(&random, count, round % 2);
        tl_checkpoint_config config = dynamic((uint64_t)count, (double)random_count(&random, 40, 100) / 100);
        random_flags(&random, &config);
        found += assert_dynamic_is_best(&graph, count, &config);
        tl_free_graph(NULL, &graph);
    }
    assert_true(found > round / 10 && found < round);
}

// More choices than are tried all: what is found holds, and is near.
static void dynamic_of_many_inner_tensors_is_near_the_optimum(void **state) {
    tl_random random = { 18 };
    int round;
    (void)state;
    memset(&nearness, 0, sizeof nearness);
    for (round = 0; nearness.searched < scaled(60); round++) {
        int32_t count = random_count(&random, 3, 6), choice_of[256], choices;
        tl_graph graph = random_layers(&random, count, round % 2);
        tl_checkpoint_config config = dynamic((uint64_t)count, (double)random_count(&random, 50, 95) / 100);
        config.min_checkpoint_interval = random_chance(&random, 70) ? 1 : 2;
        choices = find_choices(&graph, count, &config, choice_of);
        if (choices > 12 && choices <= MOST_CHOICES) assert_dynamic_is_best(&graph, count, &config);
        tl_free_graph(NULL, &graph);
    }
    if (!is_thinned()) {    // of many alone an average says something
        assert_true(nearness.missed * 20 <= nearness.found);      // 1 of 54
        assert_true(nearness.lost * 100 <= nearness.found);        // by 0.53 % on average
    }
    printf("%d graphs: %d with a plan, %d missed, %d dearer, by %.3f %% on average\n", nearness.searched, nearness.found, nearness.missed,
           nearness.dearer, 100 * nearness.lost / nearness.found);
}

// As many layers of attention and ffn units with residuals around them; every forward costs 10, every backward 20.
static tl_graph units_of(int32_t layer_count) {
    static char text[65536];
    size_t at = (size_t)snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=100 needs=none in=-\n");
    int32_t l, id = 0, below = 0;
    for (l = 0; l < layer_count; l++) {
        static const char *const nodes[] = {
            "out=300 needs=in in=%d layer=%d unit=attention", "out=700 needs=in in=%d layer=%d unit=attention",
            "out=100 needs=in in=%d layer=%d unit=attention", "out=100 needs=none in=%d,%d layer=%d",
            "out=400 needs=in in=%d layer=%d unit=ffn", "out=400 needs=in in=%d layer=%d unit=ffn",
            "out=100 needs=in in=%d layer=%d unit=ffn", "out=100 needs=none in=%d,%d layer=%d"
        };
        int k;
        for (k = 0; k < 8; k++, id++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "node %d n%d f fwd=10 bwd=20 ", id + 1, id + 1);
            if (k % 4 == 3) at += (size_t)snprintf(text + at, sizeof text - at, nodes[k], below, id, l);
            else at += (size_t)snprintf(text + at, sizeof text - at, nodes[k], id, l);
            at += (size_t)snprintf(text + at, sizeof text - at, l + 1 == layer_count && k == 7 ? " keep\n" : "\n");
            if (k % 4 == 3) below = id + 1;
        }
    }
    return graph_of(text);
}

// The flags allow, the fraction decides: plans differ, are within the fraction, and no bound of [6] is undercut.
static void a_fraction_trades_inner_tensors_for_time(void **state) {
    static const int32_t layer_counts[] = { 6, 14 };
    static const double fractions[] = { 1.0, 0.7, 0.5, 0.3 };
    static const uint64_t costs[2][4] = { { 1440, 1500, 1560, 1630 }, { 3360, 3490, 3620, 3760 } };
    size_t c, i;
    (void)state;
    for (c = 0; c < (is_slow() ? 1 : COUNT_OF(layer_counts)); c++) {
        tl_graph graph = units_of(layer_counts[c]);
        uint64_t all = keep_all_peak(&graph, 0), last = 0;
        for (i = 0; i < COUNT_OF(fractions); i++) {
            tl_checkpoint_config config = dynamic((uint64_t)layer_counts[c], fractions[i]);
            tl_plan plan = plan_of(&graph, &config), reference;
            tl_remat_desc desc;
            tl_remat_report report;
            tl_env env = silent_env();
            assert_true((double)plan.peak_bytes <= fractions[i] * (double)all);
            assert_true(plan.cost > last);
            last = plan.cost;
            if (plan.cost != costs[c][i]) fail_msg("%d layers at %.1f cost %d", (int)layer_counts[c], fractions[i], (int)plan.cost);
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.budget_bytes = plan.peak_bytes;
            desc.live = 1;
            if (tl_plan_remat(&env, &desc, &reference, &report)) fail_msg("%s", env.error.text);
            assert_true(plan.cost >= report.bound_cost);
            tl_free_plan(NULL, &reference);
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

// With one flag off nothing inside those units runs again; with both only layers are left to drop.
static void inner_tensors_whose_flag_is_off_are_kept(void **state) {
    tl_graph graph = units_of(6);
    int attention, ffn;
    (void)state;
    for (attention = 0; attention < 2; attention++)
        for (ffn = 0; ffn < 2; ffn++) {
            tl_checkpoint_config config = dynamic(6, attention | ffn ? 0.75 : 1.0);
            tl_plan plan;
            const char *again;
            int32_t id, k, times[2] = { 0, 0 };
            config.checkpoint_attention = attention;
            config.checkpoint_ffn = ffn;
            plan = plan_of(&graph, &config);
            again = recomputed(&graph, &plan);
            for (id = 1; id < graph.node_count; id++) {
                char word[16];
                snprintf(word, sizeof word, " %d ", (int)id);
                for (k = 0; k < 2; k++) {
                    char padded[1040];
                    snprintf(padded, sizeof padded, " %s ", again);
                    times[k] += !strcmp(tl_name_unit(&graph, id), k ? "ffn" : "attention") && strstr(padded, word) != NULL;
                }
            }
            assert_true(attention || !times[0]);
            assert_true(ffn || !times[1]);
            assert_true(!(attention | ffn) || times[0] + times[1] > 0);
            tl_free_plan(NULL, &plan);
        }
    tl_free_graph(NULL, &graph);
}

// 13 layers are the first that are not searched exhaustively.
static void dynamic_of_thirteen_layers_is_the_optimum_where_layers_read_the_one_below(void **state) {
    tl_random random = { 13 };
    int round;
    (void)state;
    for (round = 0; round < scaled(6); round++) {    // 8192 sets each
        tl_graph graph = round % 2 ? random_layers(&random, 13, 0) : random_chain(&random, 13);
        tl_checkpoint_config config = dynamic(13, 0.45 + 0.1 * (round % 6));
        random_flags(&random, &config);
        if (config.policy.as.fraction.memory_fraction > 1) config.policy.as.fraction.memory_fraction = 0.7;
        assert_dynamic_is_best(&graph, 13, &config);
        tl_free_graph(NULL, &graph);
    }
}

// Either search on its own, past the choice by the number of layers.
static tli_search search_with(tl_result (*search)(tli_search *), const tl_graph *graph, const tl_checkpoint_config *config, uint64_t limit) {
    tl_env env = silent_env();
    tli_search s;
    tli_layers layers;
    tl_plan all;
    uint8_t kept[4 * 256];
    assert_int_equal(tl_plan_keep_all(NULL, graph, 0, &all), TL_OK);
    assert_int_equal(tli_init_layers(&env, &layers, TLI_IN(FIND_KEPT_LAYERS), graph, config), TL_OK);
    memset(&s, 0, sizeof s);
    s.layers = &layers;
    s.limit = limit;
    s.base_cost = all.cost;
    s.least_peak = UINT64_MAX;
    s.kept = kept; s.best = kept + layers.choice_count;
    s.least = s.best + layers.choice_count; s.start = s.least + layers.choice_count;
    if (search(&s)) fail_msg("%s", env.error.text);
    tli_free_layers(&layers);
    tl_free_plan(NULL, &all);
    return s;
}

static void the_search_for_many_layers_agrees_with_all_kept_sets_of_few(void **state) {
    tl_random random = { 14 };
    int round;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        int32_t count = random_count(&random, 1, 9);
        tl_graph graph = round % 2 ? random_layers(&random, count, 0) : random_chain(&random, count);
        tl_checkpoint_config config = tl_checkpoint_uniform(1);
        uint64_t limit = keep_all_peak(&graph, 0) * random_u64(&random, 40, 100) / 100;
        tli_search few, many;
        random_flags(&random, &config);
        few = search_with(tli_search_all, &graph, &config, limit);
        many = search_with(tli_search_segments, &graph, &config, limit);
        assert_int_equal(few.found, many.found);
        if (few.found) assert_true(few.best_cost == many.best_cost);
        else assert_true(few.least_peak == many.least_peak);
        tl_free_graph(NULL, &graph);
    }
}

// Where layers read from far below, segments depend on more than their ends: what is found holds, and is near.
static void the_search_for_many_layers_is_near_where_layers_read_from_far_below(void **state) {
    tl_random random = { 17 };
    int round, found = 0, missed = 0, worse = 0;
    double lost = 0;
    (void)state;
    for (round = 0; round < 1500; round++) {
        int32_t count = random_count(&random, 5, 8);
        tl_graph graph = random_layers(&random, count, 1);
        tl_checkpoint_config config = tl_checkpoint_uniform(1);
        uint64_t limit = keep_all_peak(&graph, 0) * random_u64(&random, 50, 95) / 100;
        tli_search few = search_with(tli_search_all, &graph, &config, limit), many;
        if (few.found) {
            many = search_with(tli_search_segments, &graph, &config, limit);
            found++;
            missed += !many.found;
            if (many.found) {
                assert_true(many.best_cost >= few.best_cost);
                worse += many.best_cost > few.best_cost;
                lost += (double)many.best_cost / (double)few.best_cost - 1;
            }
        }
        tl_free_graph(NULL, &graph);
    }
    assert_true(found > 1000);
    assert_true(missed * 200 <= found);       // 5 of 1092
    assert_true(worse * 23 <= found);         // 46 of 1092
    assert_true(lost * 500 <= found);         // by 0.11 % on average
}

static void dynamic_of_many_layers_is_no_worse_than_any_uniform_interval(void **state) {
    tl_random random = { 15 };
    int round;
    (void)state;
    for (round = 0; round < 6; round++) {
        int32_t count = random_count(&random, 14, 60);
        tl_graph graph = round % 2 ? random_layers(&random, count, round > 3) : random_chain(&random, count);
        tl_checkpoint_config config = dynamic((uint64_t)count, 0.3 + 0.1 * round), uniform;
        uint64_t limit = limit_of(&graph, config.policy.as.fraction.memory_fraction), interval;
        tl_env env = silent_env();
        tl_plan plan, again;
        tl_result result = tl_plan_checkpoints(&env, &graph, &config, &plan);
        if (!result) {
            assert_true(plan.peak_bytes <= limit);
            again = plan_of(&graph, &config);
            assert_same_plan(&plan, &again);
            tl_free_plan(NULL, &again);
        } else {
            assert_int_equal(result, TL_ERROR_INFEASIBLE);
        }
        for (interval = 1; interval <= (uint64_t)count; interval++) {
            tl_plan other;
            uniform = tl_checkpoint_uniform(interval);
            other = plan_of(&graph, &uniform);
            if (other.peak_bytes <= limit) assert_true(!result && plan.cost <= other.cost);
            tl_free_plan(NULL, &other);
        }
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

static void dynamic_of_equal_layers_has_known_values(void **state) {
    // keeping all n layers peaks at n + 2
    static const struct { uint64_t layer_count; double fraction; uint64_t peak, made_again; } rows[] = {
        { 12, 1.0, 14, 0 }, { 12, 0.5, 7, 7 }, { 24, 0.5, 13, 13 }, { 96, 0.5, 49, 49 }, { 96, 0.3, 29, 69 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(rows); i++) {
        tl_checkpoint_config config = dynamic(rows[i].layer_count, rows[i].fraction);
        tl_checkpoint_effect effect = effect_of(NULL, rows[i].layer_count, &config);
        assert_int_equal(effect.keep_all_peak_bytes, rows[i].layer_count + 2);
        assert_int_equal(effect.peak_bytes, rows[i].peak);
        assert_true(near(effect.compute_overhead_ratio, (double)(3 * rows[i].layer_count + rows[i].made_again) / (double)(3 * rows[i].layer_count)));
    }
}

static void an_infeasible_fraction_names_the_least_peak_and_its_node(void **state) {
    tl_env env = silent_env();
    tl_graph graph = equal_layers(12, "in");
    tl_checkpoint_config config = dynamic(12, 0.1);
    tl_checkpoint_effect effect, no_effect;
    tl_plan plan, no_plan;
    uint8_t kept[13];
    (void)state;
    memset(&no_effect, 0, sizeof no_effect);
    memset(&no_plan, 0, sizeof no_plan);
    memset(kept, 9, sizeof kept);
    assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INFEASIBLE);
    assert_text(&env, "tl_plan_checkpoints: memory_fraction: no kept set has a peak of at most 1 bytes, the least found is 7, at node 12 (n12)");
    assert_memory_equal(&plan, &no_plan, sizeof plan);
    assert_int_equal(tl_find_kept_layers(&env, &graph, &config, kept, 12), TL_ERROR_INFEASIBLE);
    assert_memory_equal(kept, "\0\0\0\0\0\0\0\0\0\0\0\0\x9", 13);
    tl_free_graph(&env, &graph);
    config = dynamic(96, 0.1);
    assert_int_equal(tl_measure_checkpoints(&env, NULL, 96, &config, &effect), TL_ERROR_INFEASIBLE);
    assert_text(&env, "tl_measure_checkpoints: memory_fraction: no kept set has a peak of at most 9 bytes, the least found is 16, at node 95 (n95)");
    assert_memory_equal(&effect, &no_effect, sizeof effect);
}

static void the_named_least_peak_is_feasible(void **state) {
    static const uint64_t counts[] = { 5, 12, 13, 30 };
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(counts); i++) {
        tl_graph graph = equal_layers((int32_t)counts[i], "in,out");
        uint64_t all = keep_all_peak(&graph, 0), least;
        tl_env env = silent_env();
        tl_checkpoint_config config = dynamic(counts[i], 0.0);
        tl_plan plan;
        assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INFEASIBLE);
        least = (uint64_t)strtoul(strstr(env.error.text, "least found is ") + 15, NULL, 10);
        config = dynamic(counts[i], ((double)least + 0.5) / (double)all);
        plan = plan_of(&graph, &config);
        assert_true(plan.peak_bytes == least);
        tl_free_plan(NULL, &plan);
        config = dynamic(counts[i], ((double)least - 0.5) / (double)all);
        assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INFEASIBLE);
        tl_free_graph(NULL, &graph);
    }
}

static void fractions_are_taken_of_the_peak_as_doubles(void **state) {
    (void)state;
    assert_true(tli_take_fraction(10, 0.3) == 3 && tli_take_fraction(10, 0.29999999) == 2 && tli_take_fraction(0, 1.0) == 0);
    assert_true(tli_take_fraction(UINT64_MAX, 1.0) == UINT64_MAX && tli_take_fraction(UINT64_MAX, 0.0) == 0);
    assert_true(tli_take_fraction((UINT64_C(1) << 53) + 1, 1.0) == (UINT64_C(1) << 53) + 1);
    assert_true(tli_take_fraction(UINT64_MAX, 0.9999999999999999) == UINT64_MAX - 2047);
    assert_true(tli_take_fraction(UINT64_C(0x20000000000003), 0.9999999999999999) <= UINT64_C(0x20000000000003));
}

static void a_wide_minimal_interval_still_finds_plans(void **state) {
    static const uint64_t intervals[] = { 2, 5, 50, 119, 5000, UINT64_MAX };
    tl_graph graph = equal_layers(120, "in");
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(intervals); i += is_slow() ? 3 : 1) {
        tl_env env = silent_env();
        tl_checkpoint_config config = tl_with_min_interval(dynamic(120, 1.0), intervals[i]);
        uint8_t kept[120];
        if (tl_find_kept_layers(&env, &graph, &config, kept, 120)) fail_msg("%s", env.error.text);
        assert_true(spaced(kept, 120, intervals[i]));
    }
    tl_free_graph(NULL, &graph);
}

static void the_search_stops_when_longer_segments_are_of_no_use(void **state) {
    static const double fractions[] = { 1.0, 0.9, 0.3 };
    static const long most[] = { 200, 3000, 20000 };  // allocations: a plan makes a dozen or two
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        failing_alloc f;
        tl_env env;
        tl_checkpoint_effect effect;
        tl_checkpoint_config config = dynamic(96, fractions[i]);
        memset(&f, 0, sizeof f);
        env = failing_env(&f, -1);
        assert_int_equal(tl_measure_checkpoints(&env, NULL, 96, &config, &effect), TL_OK);
        assert_true(f.count < most[i]);
    }
}

static void labels_stay_sorted_and_within_their_number(void **state) {
    tl_random random = { 16 };
    tli_label labels[TLI_SEGMENT_LABELS], label;
    uint64_t count = 0, least = UINT64_MAX, cheapest = UINT64_MAX, i, k;
    (void)state;
    memset(&label, 0, sizeof label);
    for (i = 0; i < 100000; i++) {
        label.bytes = random_u64(&random, 0, 100000);
        label.cost = 100000 - label.bytes + random_u64(&random, 0, i % 7 ? 100 : 100000);
        if (label.bytes < least) least = label.bytes;
        if (label.cost < cheapest) cheapest = label.cost;
        tli_add_label(labels, &count, label);
        assert_true(count > 0 && count <= TLI_SEGMENT_LABELS);
        assert_true(labels[0].bytes == least && labels[count - 1].cost == cheapest);
        for (k = 1; k < count && i % 100 == 0; k++)
            assert_true(labels[k - 1].bytes < labels[k].bytes && labels[k - 1].cost > labels[k].cost);
    }
}

// -- every allocation of every entry point fails in turn --

static void every_entry_point_survives_a_failing_allocator(void **state) {
    static const uint64_t layers[] = { 3, 1, 0 };
    tl_graph few = graph_of(transformer), many = equal_layers(14, "in"), inner = units_of(2);
    tl_checkpoint_config configs[6];
    tl_plan no_plan;
    tl_checkpoint_effect no_effect;
    int which;
    (void)state;
    memset(&no_plan, 0, sizeof no_plan);
    memset(&no_effect, 0, sizeof no_effect);
    configs[0] = tl_checkpoint_none();
    configs[1] = tl_checkpoint_selective(layers + 1, 2);
    configs[2] = dynamic(2, 1.0);
    configs[3] = dynamic(14, 0.6);
    configs[4] = dynamic(14, 0.01);
    configs[5] = dynamic(2, 0.6);
    for (which = 0; which < 6; which++) {
        const tl_graph *graph = which < 3 ? &few : which < 5 ? &many : &inner;
        tl_result wanted = which == 4 ? TL_ERROR_INFEASIBLE : TL_OK;
        int what, once;
        long at;
        for (what = 0; what < (which == 5 ? 4 : 5); what++)     // equal layers have no inner tensors
            for (once = 0; once < 2; once++)
                for (at = 0;; at += which < 3 || at < 60 ? 1 : 97) {
                    failing_alloc f;
                    tl_env env;
                    tl_plan plan;
                    tl_checkpoint_effect effect;
                    uint8_t kept[14];
                    uint64_t count = which < 3 || which == 5 ? 2 : 14;
                    tl_result result;
                    memset(&f, 0, sizeof f);
                    f.fails_once = once;
                    env = failing_env(&f, at);
                    memset(&plan, 7, sizeof plan);
                    memset(&effect, 7, sizeof effect);
                    memset(kept, 7, sizeof kept);
                    result = what == 0 ? tl_check_checkpoint_config(&env, &configs[which], count)
                           : what == 1 ? tl_find_kept_layers(&env, graph, &configs[which], kept, count)
                           : what == 2 ? tl_plan_checkpoints(&env, graph, &configs[which], &plan)
                           : what == 3 ? tl_measure_checkpoints(&env, graph, count, &configs[which], &effect)
                           : tl_measure_checkpoints(&env, NULL, count, &configs[which], &effect);
                    if (f.count > at) {
                        assert_int_equal(result, TL_ERROR_NO_MEMORY);
                        assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
                        if (what == 1) assert_memory_equal(kept, "\0\0\0\0\0\0\0\0\0\0\0\0\0", (size_t)count);
                        if (what == 2) assert_memory_equal(&plan, &no_plan, sizeof plan);
                        if (what >= 3) assert_memory_equal(&effect, &no_effect, sizeof effect);
                    } else {
                        assert_int_equal(result, what ? wanted : TL_OK);
                    }
                    if (what == 2) tl_free_plan(&env, &plan);
                    assert_int_equal(f.live, 0);
                    if (f.count <= at) break;
                }
    }
    tl_free_graph(NULL, &few);
    tl_free_graph(NULL, &many);
    tl_free_graph(NULL, &inner);
}

// -- JSON and the summary --

#define REST ",\"checkpoint_attention\":true,\"checkpoint_ffn\":true,\"min_checkpoint_interval\":1}"

static void assert_json(const tl_checkpoint_config *config, const char *text) {
    char buf[512];
    size_t length = tl_print_checkpoint_config_json(config, buf, sizeof buf), i;
    if (strcmp(buf, text)) fail_msg("%s, not %s", buf, text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(tl_print_checkpoint_config_json(config, NULL, 0), length);
    for (i = 1; i <= length; i++) {
        buf[i] = 'x';
        assert_int_equal(tl_print_checkpoint_config_json(config, buf, i), length);
        assert_true(!memcmp(buf, text, i - 1) && buf[i - 1] == 0 && buf[i] == 'x');
    }
}

static tl_checkpoint_config read_json(const char *text) {
    tl_env env = silent_env();
    tl_checkpoint_config config;
    if (tl_parse_checkpoint_config_json(&env, text, strlen(text), &config)) fail_msg("%s: %s", text, env.error.text);
    return config;
}

static int same_config(const tl_checkpoint_config *a, const tl_checkpoint_config *b) {
    const tl_policy *x = &a->policy, *y = &b->policy;
    if (x->kind != y->kind || a->checkpoint_attention != b->checkpoint_attention || a->checkpoint_ffn != b->checkpoint_ffn ||
        a->min_checkpoint_interval != b->min_checkpoint_interval) return 0;
    switch (x->kind) {
    case TL_POLICY_KEEP_ALL: return 1;
    case TL_POLICY_EVERY_N: return x->as.every_n.interval == y->as.every_n.interval;
    case TL_POLICY_LAYERS:
        return x->as.layers.count == y->as.layers.count &&
               (!x->as.layers.count || !memcmp(x->as.layers.list, y->as.layers.list,
                                             (size_t)x->as.layers.count * sizeof(uint64_t)));
    case TL_POLICY_FRACTION:
        return x->as.fraction.layer_count == y->as.fraction.layer_count &&
               tli_bits_of_f64(x->as.fraction.memory_fraction) == tli_bits_of_f64(y->as.fraction.memory_fraction);
    default: break;
    }
    return 0;
}

static void json_is_what_serde_json_writes(void **state) {
    static const uint64_t layers[] = { 0, 4, UINT64_MAX };
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    (void)state;
    assert_json(&config, "{\"strategy\":{\"Uniform\":{\"interval\":2}}" REST);
    config = tl_checkpoint_none();
    assert_json(&config, "{\"strategy\":\"None\",\"checkpoint_attention\":false,\"checkpoint_ffn\":false,\"min_checkpoint_interval\":1}");
    config = tl_with_checkpoint_ffn(tl_checkpoint_selective(layers, 3), 0);
    assert_json(&config, "{\"strategy\":{\"Selective\":{\"layers\":[0,4,18446744073709551615]}},\"checkpoint_attention\":true,\"checkpoint_ffn\":false,\"min_checkpoint_interval\":1}");
    config = tl_with_min_interval(tl_checkpoint_selective(NULL, 0), UINT64_MAX);
    assert_json(&config, "{\"strategy\":{\"Selective\":{\"layers\":[]}},\"checkpoint_attention\":true,\"checkpoint_ffn\":true,\"min_checkpoint_interval\":18446744073709551615}");
    config = dynamic(12, 0.5);
    assert_json(&config, "{\"strategy\":{\"Dynamic\":{\"num_layers\":12,\"memory_fraction\":0.5}}" REST);
    config.policy.as.fraction.memory_fraction = strtod("inf", NULL);
    assert_json(&config, "{\"strategy\":{\"Dynamic\":{\"num_layers\":12,\"memory_fraction\":null}}" REST);
    config.policy.kind = TL_POLICY_LAYERS;  // a list that is not there
    config.policy.as.layers.list = NULL;
    config.policy.as.layers.count = 3;
    assert_json(&config, "{\"strategy\":{\"Selective\":{\"layers\":[]}}" REST);
    assert_int_equal(tl_keeps_layer(&config, 0), 0);
}

static void json_floats_are_the_shortest_that_read_back(void **state) {
    static const struct { double value; const char *text; } rows[] = {
        { 0.5, "0.5" }, { 1.0, "1.0" }, { 0.0, "0.0" }, { -0.0, "-0.0" }, { 1e-300, "1e-300" }, { 0.3333333333333333, "0.3333333333333333" },
        { 0.1, "0.1" }, { 1e-5, "0.00001" }, { 1e-6, "1e-6" }, { 0.00012, "0.00012" }, { 5e-324, "5e-324" }, { 1.0000000000000002, "1.0000000000000002" },
        { 1e16, "1e16" }, { 123456789012345680.0, "1.2345678901234568e17" },
    };
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(rows); i++) {
        tl_checkpoint_config config = dynamic(1, 0.5), back;
        char text[256];
        config.policy.as.fraction.memory_fraction = rows[i].value;
        snprintf(text, sizeof text, "{\"strategy\":{\"Dynamic\":{\"num_layers\":1,\"memory_fraction\":%s}},\"checkpoint_attention\":true,"
                 "\"checkpoint_ffn\":true,\"min_checkpoint_interval\":1}", rows[i].text);
        assert_json(&config, text);
        back = read_json(text);
        assert_true(same_config(&config, &back));
        tl_free_checkpoint_config(NULL, &back);
    }
}

static void json_takes_keys_in_any_order_and_ignores_the_unknown(void **state) {
    tl_checkpoint_config config = read_json(
        " {\r\n\t\"min_checkpoint_interval\" : 18446744073709551615 , \"extra\": {\"strategy\": [1, {\"a\": null}], \"x\": \"\\u0000\"},\n"
        "\"checkpoint_ffn\":false, \"strategy\":{\"Dynamic\":{\"note\":[],\"memory_fraction\":1,\"num_layers\":18446744073709551615}},"
        "\"checkpoint_attention\":true}\n");
    (void)state;
    assert_true(config.min_checkpoint_interval == UINT64_MAX && config.checkpoint_attention == 1 && config.checkpoint_ffn == 0);
    assert_true(config.policy.kind == TL_POLICY_FRACTION && config.policy.as.fraction.layer_count == UINT64_MAX);
    assert_true(config.policy.as.fraction.memory_fraction == 1.0 && !config.memory);
    config = read_json("{\"strategy\":{\"None\":null},\"checkpoint_attention\":false,\"checkpoint_ffn\":true,\"min_checkpoint_interval\":0}");
    assert_true(config.policy.kind == TL_POLICY_KEEP_ALL && config.checkpoint_ffn == 1 && config.min_checkpoint_interval == 0);
    config = read_json("{\"strat\\u0065gy\":\"N\\u006fne\",\"checkpoint_attention\":false,\"checkpoint_ffn\":true,\"min_checkpoint_interval\":0}");
    assert_true(config.policy.kind == TL_POLICY_KEEP_ALL);
    config = read_json("{\"strategy\":{\"Selective\":{\"layers\":[ 8 ,0, 8]}},\"checkpoint_attention\":false,\"checkpoint_ffn\":true,\"min_checkpoint_interval\":0}");
    assert_true(config.policy.as.layers.count == 3 && config.policy.as.layers.list[0] == 8 && config.memory);
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, 0), TL_ERROR_INVALID_ARG);  // the rules are held there
    tl_free_checkpoint_config(NULL, &config);
    assert_true(!config.memory && !config.policy.as.layers.list);
}

static void json_with_an_error_names_the_place(void **state) {
    static const struct { const char *text, *sentence; } rows[] = {
        { "", "line 1, column 1: expected an object" },
        { "[]", "line 1, column 1: expected an object" },
        { "{}", "line 1, column 3: there must be strategy" },
        { "{\"strategy\":\"None\",\"checkpoint_attention\":true,\"checkpoint_ffn\":true}", "line 1, column 70: there must be min_checkpoint_interval" },
        { "{\"strategy\":\"None\",\"checkpoint_attention\":true,\"min_checkpoint_interval\":1}", "line 1, column 76: there must be checkpoint_ffn" },
        { "{\"strategy\":\"None\"" REST "x", "line 1, column 98: text after the value" },
        { "{\"strategy\":\"None\",\n\"strategy\":\"None\"" REST, "line 2, column 2: this key comes twice" },
        { "{\"strategy\":\"Uniform\"" REST, "line 1, column 22: this strategy must have its fields" },
        { "{\"strategy\":\"none\"" REST, "line 1, column 14: unknown name" },
        { "{\"strategy\":{\"uniform\":{\"interval\":1}}" REST, "line 1, column 15: unknown name" },
        { "{\"strategy\":{}" REST, "line 1, column 15: there must be a strategy" },
        { "{\"strategy\":{\"None\":false}" REST, "line 1, column 21: expected null" },
        { "{\"strategy\":{\"None\":nul}" REST, "line 1, column 21: expected null" },
        { "{\"strategy\":{\"Uniform\":{}}" REST, "line 1, column 26: there must be interval" },
        { "{\"strategy\":{\"Uniform\":{\"interval\":1,\"interval\":1}}" REST, "line 1, column 39: this key comes twice" },
        { "{\"strategy\":{\"Uniform\":{\"interval\":1},\"None\":null}" REST, "line 1, column 46: there must be one strategy only" },
        { "{\"strategy\":{\"Uniform\":[1]}" REST, "line 1, column 24: expected an object" },
        { "{\"strategy\":{\"Uniform\":{\"interval\":1.0}}" REST, "line 1, column 36: expected a whole number from 0 to 2^64 - 1" },
        { "{\"strategy\":{\"Uniform\":{\"interval\":-1}}" REST, "line 1, column 36: expected a whole number from 0 to 2^64 - 1" },
        { "{\"strategy\":{\"Uniform\":{\"interval\":18446744073709551616}}" REST, "line 1, column 36: expected a whole number from 0 to 2^64 - 1" },
        { "{\"strategy\":{\"Uniform\":{\"interval\":\"1\"}}" REST, "line 1, column 36: expected a number" },
        { "{\"strategy\":{\"Selective\":{\"layers\":3}}" REST, "line 1, column 36: expected an array" },
        { "{\"strategy\":{\"Selective\":{\"layers\":[1,2,]}}" REST, "line 1, column 41: expected a number" },
        { "{\"strategy\":{\"Selective\":{\"layers\":[1,2", "line 1, column 40: expected , or ]" },
        { "{\"strategy\":{\"Dynamic\":{\"num_layers\":1}}" REST, "line 1, column 40: there must be memory_fraction" },
        { "{\"strategy\":{\"Dynamic\":{\"memory_fraction\":1}}" REST, "line 1, column 45: there must be num_layers" },
        { "{\"strategy\":{\"Dynamic\":{\"num_layers\":1,\"memory_fraction\":null}}" REST, "line 1, column 58: expected a number" },
        { "{\"strategy\":{\"Dynamic\":{\"num_layers\":1,\"memory_fraction\":1e400}}" REST, "line 1, column 58: the number is too large" },
        { "{\"strategy\":\"None\",\"checkpoint_attention\":1", "line 1, column 43: expected true or false" },
        { "{\"strategy\":null" REST, "line 1, column 13: expected an object" },
    };
    tl_checkpoint_config zero, config;
    size_t i;
    (void)state;
    memset(&zero, 0, sizeof zero);
    for (i = 0; i < COUNT_OF(rows); i++) {
        failing_alloc f;
        tl_env env;
        char text[256];
        memset(&f, 0, sizeof f);
        env = failing_env(&f, -1);
        memset(&config, 7, sizeof config);
        assert_int_equal(tl_parse_checkpoint_config_json(&env, rows[i].text, strlen(rows[i].text), &config), TL_ERROR_PARSE);
        snprintf(text, sizeof text, "tl_parse_checkpoint_config_json: %s", rows[i].sentence);
        if (strcmp(env.error.text, text)) fail_msg("%s: \"%s\", not \"%s\"", rows[i].text, env.error.text, text);
        assert_memory_equal(&config, &zero, sizeof config);
        assert_int_equal(f.live, 0);
    }
}

static void every_cut_of_a_json_text_is_an_error(void **state) {
    static const char text[] = "{\"strategy\":{\"Selective\":{\"layers\":[0,14,8]}}" REST;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof text - 1; i++) {
        char *cut = (char *)malloc(i ? i : 1);  // so that a read behind the end is seen by a sanitizer
        tl_env env = silent_env();
        tl_checkpoint_config config;
        assert_non_null(cut);
        memcpy(cut, text, i);
        assert_int_equal(tl_parse_checkpoint_config_json(&env, cut, i, &config), TL_ERROR_PARSE);
        free(cut);
    }
}

static void json_survives_a_failing_allocator(void **state) {
    char text[4096] = "{\"strategy\":{\"Selective\":{\"layers\":[0", number[16];
    tl_checkpoint_config zero;
    long at;
    int i;
    (void)state;
    memset(&zero, 0, sizeof zero);
    for (i = 1; i < 100; i++) { snprintf(number, sizeof number, ",%d", i); strcat(text, number); }
    strcat(text, "]}}" REST);
    for (at = 0;; at++) {
        failing_alloc f;
        tl_env env;
        tl_checkpoint_config config;
        tl_result result;
        memset(&f, 0, sizeof f);
        env = failing_env(&f, at);
        result = tl_parse_checkpoint_config_json(&env, text, strlen(text), &config);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        if (result) {
            assert_text(&env, "tl_parse_checkpoint_config_json: no memory for the layers");
            assert_memory_equal(&config, &zero, sizeof config);
        } else {
            assert_int_equal(config.policy.as.layers.count, 100);
            assert_int_equal(config.policy.as.layers.list[99], 99);
        }
        tl_free_checkpoint_config(&env, &config);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 2);
}

static void random_configs_survive_the_round_trip(void **state) {
    tl_random random = { 21 };
    static const tl_policy_kind kinds[] = { TL_POLICY_KEEP_ALL, TL_POLICY_EVERY_N, TL_POLICY_LAYERS, TL_POLICY_FRACTION };
    int round;
    (void)state;
    for (round = 0; round < scaled(20000); round++) {
        uint64_t layers[20], i;
        char text[1024];
        tl_checkpoint_config config = tl_checkpoint_none(), back;
        config.policy.kind = kinds[random_u64(&random, 0, 3)];
        if (config.policy.kind == TL_POLICY_EVERY_N) config.policy.as.every_n.interval = tl_next_random(&random) >> (round % 64);
        if (config.policy.kind == TL_POLICY_LAYERS) {
            config.policy.as.layers.list = layers;
            config.policy.as.layers.count = random_u64(&random, 0, 20);
            for (i = 0; i < 20; i++) layers[i] = tl_next_random(&random) >> random_u64(&random, 0, 63);
        }
        if (config.policy.kind == TL_POLICY_FRACTION) {
            uint64_t bits = tl_next_random(&random);
            if ((bits >> 52 & 0x7ff) == 0x7ff) bits ^= UINT64_C(1) << 62;  // JSON has finite numbers only
            config.policy.as.fraction.layer_count = tl_next_random(&random);
            if (round % 2) config.policy.as.fraction.memory_fraction = tl_next_random_ratio(&random);
            else memcpy(&config.policy.as.fraction.memory_fraction, &bits, sizeof bits);
        }
        config.checkpoint_attention = random_chance(&random, 50);
        config.checkpoint_ffn = random_chance(&random, 50);
        config.min_checkpoint_interval = tl_next_random(&random) >> (round % 64);
        assert_true(tl_print_checkpoint_config_json(&config, text, sizeof text) < sizeof text);
        back = read_json(text);
        if (!same_config(&config, &back)) fail_msg("%s", text);
        tl_free_checkpoint_config(NULL, &back);
    }
}

static void summaries_round_percentages_as_rust_does(void **state) {
    static const struct { double fraction; const char *percent; } rows[] = {
        { 0.3, "30.0" }, { 0.0, "0.0" }, { -0.0, "-0.0" }, { 1.0, "100.0" }, { 0.3333333333333333, "33.3" }, { 0.05, "5.0" },
        { 0.9999, "100.0" }, { 0.99949, "99.9" }, { 0.00125, "0.1" }, { 0.0025, "0.2" }, { 0.1225, "12.2" }, { 0.1275, "12.8" },
        { 0.0125, "1.2" }, { 0.0015, "0.1" },
        { 1e-300, "0.0" }, { -0.1, "-10.0" }, { 1.5, "150.0" },
    };
    tl_checkpoint_config config = dynamic(12, 0.5);
    char buf[128], text[128];
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(rows); i++) {
        config.policy.as.fraction.memory_fraction = rows[i].fraction;
        snprintf(text, sizeof text, "Dynamic checkpointing (12 layers, %s%% memory target)", rows[i].percent);
        assert_int_equal(tl_print_checkpoint_config(&config, buf, sizeof buf), strlen(text));
        assert_string_equal(buf, text);
    }
    config = tl_checkpoint_none();
    assert_int_equal(tl_print_checkpoint_config(&config, buf, 5), 16);
    assert_string_equal(buf, "No c");
    config.policy.kind = TL_POLICY_COUNT;
    assert_int_equal(tl_print_checkpoint_config(&config, buf, 5), 0);
    assert_string_equal(buf, "");
}

// -- the seed's own tests, where they are right; the others are among the defects below --

static void seed_test_uniform_checkpointing(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    (void)state;
    assert_true(tl_keeps_layer(&config, 0) && !tl_keeps_layer(&config, 1) && tl_keeps_layer(&config, 2));
    assert_true(!tl_keeps_layer(&config, 3) && tl_keeps_layer(&config, 4));
}

static void seed_test_selective_checkpointing(void **state) {
    static const uint64_t layers[] = { 0, 3, 7 };
    tl_checkpoint_config config = tl_checkpoint_selective(layers, 3);
    (void)state;
    assert_true(tl_keeps_layer(&config, 0) && !tl_keeps_layer(&config, 1) && !tl_keeps_layer(&config, 2));
    assert_true(tl_keeps_layer(&config, 3) && !tl_keeps_layer(&config, 6) && tl_keeps_layer(&config, 7));
}

// The seed keeps some of 12 layers at 0.3; no kept set gets that low, and one that does get to 0.6 keeps some.
static void seed_test_dynamic_checkpointing(void **state) {
    tl_checkpoint_config config = dynamic(12, 0.3);
    tl_checkpoint_effect effect;
    tl_env env = silent_env();
    (void)state;
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, 12), TL_OK);
    assert_int_equal(tl_measure_checkpoints(&env, NULL, 12, &config, &effect), TL_ERROR_INFEASIBLE);
    config = dynamic(12, 0.6);
    effect = effect_of(NULL, 12, &config);
    assert_true(effect.kept_count > 0 && effect.kept_count < 12);
}

// The seed's predicate asks for checkpoints, of which none makes none; ours asks what is kept. It saves nothing in both.
static void seed_test_no_checkpointing(void **state) {
    tl_checkpoint_config config = tl_checkpoint_none();
    tl_checkpoint_effect effect = effect_of(NULL, 11, &config);
    (void)state;
    assert_true(tl_keeps_layer(&config, 0) && tl_keeps_layer(&config, 5) && tl_keeps_layer(&config, 10));
    assert_true(near(effect.memory_savings_ratio, 0.0) && near(effect.compute_overhead_ratio, 1.0) && effect.kept_count == 11);
}

static void seed_test_compute_overhead(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    double overhead = effect_of(NULL, 12, &config).compute_overhead_ratio;
    (void)state;
    assert_true(overhead >= 1.0 && overhead < 2.0);
}

static void seed_test_invalid_dynamic_memory_fraction(void **state) {
    tl_checkpoint_config config, none = tl_checkpoint_none();
    tl_env env = silent_env();
    (void)state;
    assert_int_equal(tl_checkpoint_dynamic(&env, 12, 1.5, &config), TL_ERROR_INVALID_ARG);
    assert_true(same_config(&config, &none));
    assert_int_equal(tl_checkpoint_dynamic(&env, 12, -0.1, &config), TL_ERROR_INVALID_ARG);
    assert_true(same_config(&config, &none));
}

static void seed_test_builder_pattern(void **state) {
    tl_checkpoint_config config = tl_with_min_interval(tl_with_checkpoint_ffn(tl_with_checkpoint_attention(tl_checkpoint_uniform(2), 0), 1), 2);
    (void)state;
    assert_true(!config.checkpoint_attention && config.checkpoint_ffn && config.min_checkpoint_interval == 2);
}

static void seed_test_validate_uniform(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    (void)state;
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, 0), TL_OK);
    config = tl_checkpoint_uniform(0);
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, 0), TL_ERROR_INVALID_ARG);
}

static void seed_test_validate_selective_duplicates(void **state) {
    static const uint64_t layers[] = { 0, 3, 3, 7 };
    tl_checkpoint_config config = tl_checkpoint_selective(layers, 4);
    (void)state;
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, 0), TL_ERROR_INVALID_ARG);
}

static void assert_summary(const tl_checkpoint_config *config, const char *text) {
    char buf[128];
    tl_print_checkpoint_config(config, buf, sizeof buf);
    assert_string_equal(buf, text);
}

static void seed_test_summary(void **state) {
    static const uint64_t layers[] = { 0, 3, 7 };
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    (void)state;
    assert_summary(&config, "Uniform checkpointing every 2 layers");
    config = tl_checkpoint_selective(layers, 3);
    assert_summary(&config, "Selective checkpointing at 3 layers");
    config = dynamic(12, 0.3);
    assert_summary(&config, "Dynamic checkpointing (12 layers, 30.0% memory target)");
}

// A zeroed config is none, too, as the default of the seed is.
static void seed_test_default(void **state) {
    tl_checkpoint_config config, none = tl_checkpoint_none();
    tl_graph graph = equal_layers(3, "in");
    tl_plan a, b;
    (void)state;
    memset(&config, 0, sizeof config);
    assert_int_equal(config.policy.kind, TL_POLICY_KEEP_ALL);
    a = plan_of(&graph, &config);
    b = plan_of(&graph, &none);
    assert_same_plan(&a, &b);
    tl_free_plan(NULL, &a);
    tl_free_plan(NULL, &b);
    tl_free_graph(NULL, &graph);
}

static void seed_test_zero_interval_uniform(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(0);
    (void)state;
    assert_true(!tl_keeps_layer(&config, 0) && !tl_keeps_layer(&config, 1));
}

static void seed_test_dynamic_zero_layers(void **state) {
    tl_checkpoint_config config;
    (void)state;
    assert_int_equal(tl_checkpoint_dynamic(NULL, 0, 0.5, &config), TL_ERROR_INVALID_ARG);
}

// The first of the seed's three edge cases; the other two are C5 and C6.
static void seed_test_memory_savings_edge_cases(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(2);
    (void)state;
    assert_true(near(effect_of(NULL, 0, &config).memory_savings_ratio, 0.0));
}

// -- the defects of the seed: SEED_DEFECTS, list C --

// What the seed computes.
static double seed_uniform_savings(uint64_t interval, uint64_t layer_count) {
    if (!interval || interval >= layer_count) return 0.0;
    return 1.0 - (double)((layer_count + interval - 1) / interval) / (double)layer_count;
}

static void defect_c1_a_smaller_fraction_never_takes_more_memory(void **state) {
    uint64_t last_peak = UINT64_MAX;
    double last_cost = 0;
    int percent;
    (void)state;
    for (percent = 100; percent > 50; percent -= 7) {
        tl_checkpoint_config config = dynamic(12, percent / 100.0);
        tl_checkpoint_effect effect = effect_of(NULL, 12, &config);
        assert_true(effect.peak_bytes <= last_peak && effect.compute_overhead_ratio >= last_cost);
        assert_true((double)effect.peak_bytes <= percent / 100.0 * (double)effect.keep_all_peak_bytes);
        last_peak = effect.peak_bytes;
        last_cost = effect.compute_overhead_ratio;
        if (percent == 100) assert_true(effect.kept_count == 12 && near(effect.memory_savings_ratio, 0.0));  // the seed keeps one
    }
    assert_true(last_peak < 10 && last_cost > 1.1);
}

static void defect_c2_savings_are_those_of_the_plan_not_of_the_target(void **state) {
    tl_checkpoint_config config = dynamic(24, 0.65);
    tl_graph graph = equal_layers(24, "in");
    tl_checkpoint_effect effect = effect_of(NULL, 24, &config);
    tl_plan plan = plan_of(&graph, &config);
    (void)state;
    assert_int_equal(plan.peak_bytes, 16);  // 0.65 of 26 is 16.9
    assert_true(near(effect.memory_savings_ratio, (1.0 - 16.0 / 26.0)) && effect.memory_savings_ratio >= 1.0 - 0.65);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Results resident at once, the input and gradients left out.
static int32_t most_results(const tl_graph *graph, const tl_plan *plan) {
    int32_t live = 0, most = 0, i;
    for (i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].kind < TL_STEP_BACKWARD) live++;
        if (plan->steps[i].kind == TL_STEP_DROP) live--;
        if (live > most) most = live;
    }
    assert_int_equal(graph->nodes[0].is_input, 1);
    return most;
}

static void defect_c3_the_segment_being_made_again_counts(void **state) {
    static const int32_t truth[] = { 12, 7, 6, 6, 6, 7, 7, 8, 9, 10, 11, 12 };  // the intervals 1 to 12 on 12 layers
    tl_graph graph = equal_layers(12, "out");
    uint64_t interval;
    (void)state;
    for (interval = 1; interval <= 12; interval++) {
        tl_checkpoint_config config = tl_checkpoint_uniform(interval);
        tl_plan plan = plan_of(&graph, &config);
        assert_int_equal(most_results(&graph, &plan), truth[interval - 1]);
        if (interval > 2 && interval < 12) assert_true(seed_uniform_savings(interval, 12) > 1.0 - truth[interval - 1] / 12.0);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void defect_c4_overhead_is_work_done_again_over_work(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(8);
    tl_checkpoint_effect effect = effect_of(NULL, 96, &config);
    (void)state;
    // 84 of 96 layers are not kept; all but the last, which nobody reads, are made again; backward is two forwards
    assert_true(near(effect.compute_overhead_ratio, (3.0 * 96 + 83) / (3.0 * 96)));
    config = tl_checkpoint_uniform(1);
    assert_true(near(effect_of(NULL, 12, &config).compute_overhead_ratio, 1.0));  // the seed: 1.0417
}

static void defect_c5_intervals_beyond_the_layers_keep_the_first_and_make_the_rest_again(void **state) {
    static const uint64_t intervals[] = { 12, 13, 20, UINT64_MAX };
    tl_checkpoint_config config = tl_checkpoint_uniform(11);
    tl_checkpoint_effect before = effect_of(NULL, 12, &config), effect;
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(intervals); i++) {
        config = tl_checkpoint_uniform(intervals[i]);
        effect = effect_of(NULL, 12, &config);
        assert_true(effect.kept_count == 1 && near(effect.compute_overhead_ratio, 46.0 / 36.0));  // layers 1 to 10
        assert_true(effect.peak_bytes == before.peak_bytes);  // no jump
    }
}

static void defect_c6_lists_are_held_to_the_layers_there_are(void **state) {
    static const uint64_t many[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 }, far[] = { 100, 200 };
    tl_checkpoint_config config = tl_checkpoint_selective(many, 14);
    tl_checkpoint_effect effect;
    tl_env env = silent_env();
    (void)state;
    assert_int_equal(tl_measure_checkpoints(&env, NULL, 12, &config, &effect), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_check_checkpoint_config: layers: 12 is not below the number of layers");
    config = tl_checkpoint_selective(far, 2);
    assert_int_equal(tl_measure_checkpoints(&env, NULL, 12, &config, &effect), TL_ERROR_INVALID_ARG);
    config = tl_checkpoint_selective(NULL, 0);
    effect = effect_of(NULL, 12, &config);
    assert_true(effect.kept_count == 0 && near(effect.compute_overhead_ratio, 47.0 / 36.0));  // layers 0 to 10
}

static void defect_c7_interval_0_is_an_error_everywhere(void **state) {
    tl_checkpoint_config config = tl_checkpoint_uniform(0);
    tl_graph graph = equal_layers(3, "in");
    tl_checkpoint_effect effect;
    tl_plan plan;
    uint8_t kept[3];
    (void)state;
    assert_int_equal(tl_check_checkpoint_config(NULL, &config, 0), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_find_kept_layers(NULL, &graph, &config, kept, 3), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_plan_checkpoints(NULL, &graph, &config, &plan), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_measure_checkpoints(NULL, &graph, 3, &config, &effect), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_measure_checkpoints(NULL, NULL, 0, &config, &effect), TL_ERROR_INVALID_ARG);
    tl_free_graph(NULL, &graph);
}

static void defect_c8_positions_matter(void **state) {
    static const uint64_t low[] = { 0, 1, 2 }, apart[] = { 0, 4, 8 };
    tl_checkpoint_config a = tl_checkpoint_selective(low, 3), b = tl_checkpoint_selective(apart, 3);
    (void)state;
    assert_int_equal(effect_of(NULL, 12, &a).peak_bytes, 14);  // x, 0 to 10, two gradients: as much as keeping all
    assert_int_equal(effect_of(NULL, 12, &b).peak_bytes, 8);
}

static void defect_c9_each_flag_changes_the_plan(void **state) {
    tl_graph graph = graph_of(transformer);
    uint64_t peaks[4], costs[4];
    int flags;
    (void)state;
    for (flags = 0; flags < 4; flags++) {
        tl_checkpoint_config config = tl_with_checkpoint_ffn(tl_with_checkpoint_attention(tl_checkpoint_uniform(1), flags & 1), flags & 2);
        tl_plan plan = plan_of(&graph, &config);
        peaks[flags] = plan.peak_bytes;
        costs[flags] = plan.cost;
        tl_free_plan(NULL, &plan);
    }
    assert_true(costs[1] == costs[0] + 2 * (2 + 3) && costs[2] == costs[0] + 2 * 4 && costs[3] == costs[0] + 2 * (2 + 3 + 4));
    assert_true(peaks[1] < peaks[0] && peaks[2] < peaks[0] && peaks[3] < peaks[1] && peaks[3] < peaks[2]);
    tl_free_graph(NULL, &graph);
}

static void defect_c10_the_minimal_interval_binds_every_kind(void **state) {
    static const uint64_t layers[] = { 9, 0, 3, 4, 8 };
    tl_graph graph = equal_layers(12, "in");
    tl_checkpoint_config config = tl_with_min_interval(tl_checkpoint_uniform(1), 5);
    uint8_t kept[12];
    (void)state;
    assert_kept(&graph, &config, "100001000010");
    config = tl_with_min_interval(tl_checkpoint_uniform(2), 5);
    assert_kept(&graph, &config, "100000100000");
    config = tl_with_min_interval(tl_checkpoint_selective(layers, 5), 4);
    assert_kept(&graph, &config, "100010001000");
    config = tl_with_min_interval(dynamic(12, 1.0), 4);
    assert_int_equal(tl_find_kept_layers(NULL, &graph, &config, kept, 12), TL_OK);
    assert_true(spaced(kept, 12, 4));
    assert_true(effect_of(NULL, 12, &config).compute_overhead_ratio > 1.0);
    config = tl_with_min_interval(tl_checkpoint_uniform(1), 0);
    assert_kept(&graph, &config, "111111111111");
    tl_free_graph(NULL, &graph);
}

// "More frequent in deeper layers", says the seed and is uniform. With equal layers and little room the segments grow
// shorter towards the end, where most is held below them, and what comes out costs less than any uniform interval.
static void defect_c11_dynamic_is_free_to_space_unevenly(void **state) {
    tl_graph graph = equal_layers(24, "in");
    tl_checkpoint_config config = dynamic(24, 0.5);
    tl_checkpoint_effect effect = effect_of(&graph, 24, &config);
    uint64_t interval;
    (void)state;
    assert_int_equal(effect.peak_bytes, 13);
    for (interval = 1; interval <= 24; interval++) {
        tl_checkpoint_config uniform = tl_checkpoint_uniform(interval);
        tl_checkpoint_effect other = effect_of(&graph, 24, &uniform);
        if (other.peak_bytes > 13) continue;
        assert_true(effect.compute_overhead_ratio < other.compute_overhead_ratio);
    }
    tl_free_graph(NULL, &graph);
}

static void defect_c12_a_dynamic_config_is_for_its_layers_alone(void **state) {
    tl_checkpoint_config config = dynamic(12, 0.7);
    tl_checkpoint_effect effect;
    tl_env env = silent_env();
    (void)state;
    assert_int_equal(tl_measure_checkpoints(&env, NULL, 24, &config, &effect), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_check_checkpoint_config: fraction: layer_count: must be the number of layers, 24");
    assert_int_equal(tl_keeps_layer(&config, 12), 0);
    assert_int_equal(tl_keeps_layer(&config, UINT64_MAX), 0);
}

static void defect_c13_fields_set_by_hand_are_held_to_the_same_rules(void **state) {
    static const char *const fractions[] = { "nan", "inf", "-inf", "1.5", "-0.1" };
    tl_graph graph = equal_layers(12, "in");
    size_t i;
    (void)state;
    for (i = 0; i < COUNT_OF(fractions); i++) {
        tl_checkpoint_config config = dynamic(12, 0.5);
        tl_checkpoint_effect effect;
        tl_plan plan;
        tl_env env = silent_env();
        uint8_t kept[12];
        config.policy.as.fraction.memory_fraction = strtod(fractions[i], NULL);
        assert_int_equal(tl_check_checkpoint_config(&env, &config, 0), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_find_kept_layers(&env, &graph, &config, kept, 12), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_measure_checkpoints(&env, &graph, 12, &config, &effect), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_measure_checkpoints(&env, NULL, 12, &config, &effect), TL_ERROR_INVALID_ARG);
        assert_text(&env, "tl_check_checkpoint_config: fraction: memory_fraction: must be in [0, 1]");
    }
    tl_free_graph(NULL, &graph);
}

static void defect_c14_an_error_names_the_field_that_is_wrong(void **state) {
    tl_env env = silent_env();
    tl_checkpoint_config config;
    (void)state;
    assert_int_equal(tl_checkpoint_dynamic(&env, 12, 1.5, &config), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_checkpoint_dynamic: fraction: memory_fraction: must be in [0, 1]");
    assert_int_equal(tl_checkpoint_dynamic(&env, 0, 1.5, &config), TL_ERROR_INVALID_ARG);
    assert_text(&env, "tl_checkpoint_dynamic: fraction: layer_count: must be > 0");
}

static void defect_c15_dynamic_reports_and_the_config_is_usable_either_way(void **state) {
    tl_checkpoint_config config;
    tl_graph graph = equal_layers(3, "in");
    tl_plan plan;
    (void)state;
    memset(&config, 7, sizeof config);
    assert_int_equal(tl_checkpoint_dynamic(NULL, 3, 1.5, &config), TL_ERROR_INVALID_ARG);
    plan = plan_of(&graph, &config);  // none
    assert_true(plan.cost == plan.base_cost);
    tl_free_plan(NULL, &plan);
    tl_free_checkpoint_config(NULL, &config);
    assert_int_equal(tl_checkpoint_dynamic(NULL, 3, 1.0, &config), TL_OK);
    assert_int_equal(config.policy.kind, TL_POLICY_FRACTION);
    tl_free_graph(NULL, &graph);
}

// Large and cheap is dropped, small and dear is kept.
static void defect_c16_bytes_and_costs_of_the_layers_decide(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                            "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                            "node 1 a op fwd=90 bwd=1 out=1 needs=in in=0 layer=0\n"
                            "node 2 b op fwd=1 bwd=1 out=50 needs=in in=1 layer=1\n"
                            "node 3 c op fwd=90 bwd=1 out=1 needs=in in=2 layer=2\n"
                            "node 4 d op fwd=1 bwd=1 out=50 needs=in in=3 layer=3\n"
                            "node 5 e op fwd=90 bwd=1 out=1 needs=in in=4 layer=4\n");
    tl_checkpoint_config config = dynamic(5, 0.7);
    uint8_t kept[5];
    (void)state;
    assert_int_equal(tl_find_kept_layers(NULL, &graph, &config, kept, 5), TL_OK);
    assert_true(kept[0] && kept[2] && !(kept[1] && kept[3]));
    assert_recomputed(&graph, &config, "2");
    tl_free_graph(NULL, &graph);
}

// -- golden rows of the seed --

// Cut the next field of a CSV line out of it; quotes are taken off, there are none inside.
static char *next_field(char **line) {
    char *field = *line, *end;
    if (*field == '"') {
        end = strchr(++field, '"');
        assert_non_null(end);
        *end++ = 0;
    } else {
        end = field + strcspn(field, ",");
    }
    *line = *end ? end + 1 : end;
    *end = 0;
    return field;
}

static char *next_line(char **text) {
    char *line = *text;
    size_t length = strcspn(line, "\n");
    if (!*line) return NULL;
    *text = line + length + (line[length] == '\n');
    line[length] = 0;
    return line;
}

typedef struct golden_row {
    const char *id, *strategy, *err_context, *summary, *mask, *mask_far;
    tl_checkpoint_config config;
    uint64_t layers[16], query;
    double savings, overhead;
    int is_valid;
} golden_row;

static void read_golden_row(char *line, golden_row *row) {
    char *arg1, *arg2, *word;
    uint64_t count = 0, attention, ffn;
    row->id = next_field(&line);
    next_field(&line);
    row->strategy = next_field(&line);
    arg1 = next_field(&line);
    arg2 = next_field(&line);
    attention = strtoull(next_field(&line), NULL, 10);
    ffn = strtoull(next_field(&line), NULL, 10);
    row->config = tl_checkpoint_none();
    row->config.policy.kind = kind_of_seed(row->strategy);
    row->config.min_checkpoint_interval = strtoull(next_field(&line), NULL, 10);
    row->config.checkpoint_attention = (int32_t)attention;
    row->config.checkpoint_ffn = (int32_t)ffn;
    if (row->config.policy.kind == TL_POLICY_EVERY_N) row->config.policy.as.every_n.interval = strtoull(arg1, NULL, 10);
    if (row->config.policy.kind == TL_POLICY_LAYERS) {
        for (word = strtok(arg1, " "); word; word = strtok(NULL, " ")) row->layers[count++] = strtoull(word, NULL, 10);
        row->config.policy.as.layers.list = row->layers;
        row->config.policy.as.layers.count = count;
    }
    if (row->config.policy.kind == TL_POLICY_FRACTION) {
        row->config.policy.as.fraction.layer_count = strtoull(arg1, NULL, 10);
        row->config.policy.as.fraction.memory_fraction = strtod(arg2, NULL);
    }
    row->query = strtoull(next_field(&line), NULL, 10);
    row->savings = strtod(next_field(&line), NULL);
    next_field(&line);
    row->overhead = strtod(next_field(&line), NULL);
    next_field(&line);
    row->is_valid = !strcmp(next_field(&line), "ok");
    next_field(&line);
    next_field(&line);
    row->err_context = next_field(&line);
    row->summary = next_field(&line);
    row->mask = next_field(&line);
    row->mask_far = next_field(&line);
    assert_int_equal(strlen(row->mask), 64);
}

typedef struct golden_counts {
    int rows, none_mask;
    int mask_agrees, mask_defect[17];      // by number of the defect
    int effect_agrees, effect_defect[17];
} golden_counts;

static int seed_says(const golden_row *row, uint64_t layer) {
    return layer < 64 ? row->mask[layer] == '1' : layer == 1000000 ? row->mask_far[0] == '1' : row->mask_far[1] == '1';
}

// 0 = agrees, -1 = nothing explains it, else the number of the defect.
static int explain_mask(const golden_row *row, const uint8_t *kept) {
    const tl_policy *c = &row->config.policy;
    tl_checkpoint_config unbound = tl_with_min_interval(row->config, 1);
    int differs = 0, unbound_differs = 0, beyond = 0, i;
    for (i = 0; i < 66; i++) {
        uint64_t layer = i < 64 ? (uint64_t)i : i == 64 ? 1000000 : UINT64_MAX;
        int seed = seed_says(row, layer);
        if (c->kind == TL_POLICY_FRACTION) {
            if (layer >= c->as.fraction.layer_count) beyond |= seed;
            else if (kept && layer < 96) differs |= seed != kept[layer];
            continue;
        }
        differs |= seed != tl_keeps_layer(&row->config, layer);
        unbound_differs |= seed != tl_keeps_layer(&unbound, layer);
    }
    if (c->kind == TL_POLICY_FRACTION) {
        if (!row->is_valid) return 13;
        if (c->as.fraction.layer_count > 1000) return 12;
        return !kept || differs ? 1 : beyond ? 12 : 0;
    }
    if (!differs) return 0;
    return !unbound_differs && row->config.min_checkpoint_interval > 1 ? 10 : -1;
}

// The kept layers of a dynamic row, or NULL; the last answer is kept, rows of one config stand together.
static const uint8_t *kept_of_row(const golden_row *row) {
    static uint8_t kept[96];
    static tl_checkpoint_config last;
    static int found;
    const tl_policy *c = &row->config.policy;
    tl_graph graph;
    if (c->kind != TL_POLICY_FRACTION || !row->is_valid || c->as.fraction.layer_count > 96) return NULL;
    if (!same_config(&last, &row->config)) {
        last = row->config;
        graph = equal_layers((int32_t)c->as.fraction.layer_count, "in");
        found = !tl_find_kept_layers(NULL, &graph, &row->config, kept, c->as.fraction.layer_count);
        tl_free_graph(NULL, &graph);
    }
    return found ? kept : NULL;
}

// Equal layers of one byte that need their input, worked out without a schedule: at B of layer i live x, the kept results
// below i, those of its segment made again, the gradient of its result and, but for layer 0, of its input.
static void assert_effect_of_equal_layers(const tl_checkpoint_effect *effect, const uint8_t *kept, uint64_t count) {
    uint64_t peak = 0, kept_below = 0, run = 0, made_again = 0, kept_count = 0, i;
    for (i = 0; i < count; i++) {
        uint64_t forward = 1 + kept_below + (i > 0 && !kept[i - 1]) + 1, backward = 1 + kept_below + run + 1 + (i > 0);
        if (forward > peak) peak = forward;
        if (backward > peak) peak = backward;
        kept_below += kept[i];
        run = kept[i] ? 0 : run + 1;
        made_again += i + 1 < count && !kept[i];
        kept_count += kept[i];
    }
    assert_int_equal(effect->peak_bytes, peak);
    assert_int_equal(effect->keep_all_peak_bytes, count == 1 ? 2 : count + 2);
    assert_int_equal(effect->kept_count, kept_count);
    assert_true(near(effect->compute_overhead_ratio, (double)(3 * count + made_again) / (double)(3 * count)));
    assert_true(near(effect->memory_savings_ratio, (1.0 - (double)peak / (double)effect->keep_all_peak_bytes)));
}

static int explain_effect(const golden_row *row, const uint8_t *kept) {
    const tl_policy *c = &row->config.policy;
    tl_env env = silent_env();
    tl_checkpoint_effect effect;
    tl_checkpoint_config config = row->config;
    uint64_t layers[96], count = 0, l;
    tl_result result;
    for (l = 0; kept && l < c->as.fraction.layer_count; l++)
        if (kept[l]) layers[count++] = l;
    // a search was made already; its answer as a list has the same effect
    if (kept && row->query == c->as.fraction.layer_count) config = tl_checkpoint_selective(layers, count);
    result = tl_measure_checkpoints(&env, NULL, row->query, &config, &effect);
    int agrees;
    if (!result && row->query) {
        uint8_t walked[96];
        memset(walked, 1, sizeof walked);
        if (c->kind == TL_POLICY_EVERY_N || c->kind == TL_POLICY_LAYERS) walk(&row->config, walked, row->query);
        assert_effect_of_equal_layers(&effect, kept ? kept : walked, row->query);
    }
    agrees = !result && fabs(effect.memory_savings_ratio - row->savings) < 1e-12 && fabs(effect.compute_overhead_ratio - row->overhead) < 1e-12;
    if (agrees) return 0;
    switch (c->kind) {
    case TL_POLICY_KEEP_ALL: return -1;
    case TL_POLICY_EVERY_N:
        if (result) return c->as.every_n.interval ? -1 : 7;
        if (row->config.min_checkpoint_interval > c->as.every_n.interval) return 10;
        if (c->as.every_n.interval >= row->query) return 5;
        return fabs(effect.memory_savings_ratio - row->savings) < 1e-12 ? 4 : 3;
    case TL_POLICY_LAYERS:
        if (result) return result == TL_ERROR_INVALID_ARG ? 6 : -1;  // twice, or out of range
        return c->as.layers.count ? 8 : 6;
    case TL_POLICY_FRACTION:
        if (!row->is_valid) return result == TL_ERROR_INVALID_ARG ? 13 : -1;
        if (result == TL_ERROR_INVALID_ARG) return c->as.fraction.layer_count != row->query ? 12 : -1;
        return !result ? 2 : result == TL_ERROR_INFEASIBLE ? 1 : -1;
    default: break;
    }
    return -1;
}

static const char *meaning_of(const char *context) {
    if (!strcmp(context, "checkpoint interval must be > 0")) return "tl_check_checkpoint_config: every-n: interval: must be > 0";
    if (!strcmp(context, "num_layers must be > 0")) return "tl_check_checkpoint_config: fraction: layer_count: must be > 0";
    if (!strcmp(context, "duplicate layer indices in selective checkpointing")) return "tl_check_checkpoint_config: layers: 3 is listed twice";
    if (!strncmp(context, "memory_fraction must be in [0.0, 1.0], got ", 43)) return "tl_check_checkpoint_config: fraction: memory_fraction: must be in [0, 1]";
    return "?";
}

static void put_counts(char *text, size_t size, const int *counts) {
    int i;
    text[0] = 0;
    for (i = 1; i <= 16; i++)
        if (counts[i]) snprintf(text + strlen(text), size - strlen(text), "%sC%d %d", *text ? ", " : "", i, counts[i]);
}

static void golden_checkpoint_rows_agree_or_are_counter_examples(void **state) {
    char *csv = read_reference("golden_checkpoint_rows_agree_or_are_counter_examples", "golden/golden_checkpoint.csv", NULL), *at, *line;
    char masks[256], effects[256];
    golden_counts n;
    (void)state;
    if (!csv) skip();
    at = csv;
    memset(&n, 0, sizeof n);
    next_line(&at);
    while ((line = next_line(&at)) != NULL) {
        golden_row row;
        tl_env env = silent_env();
        const uint8_t *kept;
        int explained;
        read_golden_row(line, &row);
        n.rows++;
        if (is_slow() && n.rows % 100) continue;
        kept = kept_of_row(&row);
        assert_int_equal(tl_check_checkpoint_config(&env, &row.config, 0), row.is_valid ? TL_OK : TL_ERROR_INVALID_ARG);
        if (!row.is_valid) assert_text(&env, meaning_of(row.err_context));
        assert_summary(&row.config, row.summary);
        if (row.config.policy.kind == TL_POLICY_KEEP_ALL) {  // see seed_test_no_checkpointing
            assert_null(strchr(row.mask, '1'));
            assert_int_equal(tl_keeps_layer(&row.config, 0), 1);
            n.none_mask++;
        } else {
            explained = explain_mask(&row, kept);
            if (explained < 0) fail_msg("%s: nothing explains should_checkpoint", row.id);
            if (explained) n.mask_defect[explained]++; else n.mask_agrees++;
        }
        explained = explain_effect(&row, kept);
        if (explained < 0) fail_msg("%s: nothing explains savings or overhead", row.id);
        if (explained) n.effect_defect[explained]++; else n.effect_agrees++;
    }
    put_counts(masks, sizeof masks, n.mask_defect);
    put_counts(effects, sizeof effects, n.effect_defect);
    print_message("golden_checkpoint.csv: %d rows; validate and summary: %d agree; should_checkpoint: %d agree, %d of none say the same in "
                  "other words, counter-examples %s; savings and overhead: %d agree, counter-examples %s; unexplained 0\n",
                  n.rows, n.rows, n.mask_agrees, n.none_mask, masks, n.effect_agrees, effects);
    assert_int_equal(n.rows, 1810);
    free(csv);
}

static void golden_constructor_rows_agree(void **state) {
    char *csv = read_reference("golden_constructor_rows_agree", "golden/golden_checkpoint_ctor.csv", NULL), *at, *line;
    int rows = 0;
    (void)state;
    if (!csv) skip();
    at = csv;
    next_line(&at);
    while ((line = next_line(&at)) != NULL) {
        tl_env env = silent_env();
        tl_checkpoint_config config;
        uint64_t layer_count;
        double fraction;
        int is_valid;
        assert_string_equal(next_field(&line), "dynamic");
        layer_count = strtoull(next_field(&line), NULL, 10);
        fraction = strtod(next_field(&line), NULL);
        is_valid = !strcmp(next_field(&line), "ok");
        next_field(&line);
        next_field(&line);
        assert_int_equal(tl_checkpoint_dynamic(&env, layer_count, fraction, &config), is_valid ? TL_OK : TL_ERROR_INVALID_ARG);
        if (!is_valid) assert_string_equal(env.error.text + strlen("tl_checkpoint_dynamic: "), meaning_of(next_field(&line)) + strlen("tl_check_checkpoint_config: "));
        rows++;
    }
    print_message("golden_checkpoint_ctor.csv: %d rows; verdict and meaning: %d agree; unexplained 0\n", rows, rows);
    assert_int_equal(rows, 36);
    free(csv);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructors_fill_in_what_the_seed_fills_in),
        cmocka_unit_test(builders_switch_both_ways),
        cmocka_unit_test(configs_take_four_policies),
        cmocka_unit_test(every_rule_of_a_config_has_its_sentence),
        cmocka_unit_test(duplicates_are_found_wherever_they_stand),
        cmocka_unit_test(kept_layers_follow_the_walk_whatever_the_order_of_the_list),
        cmocka_unit_test(kept_layers_are_right_at_the_ends_of_64_bits),
        cmocka_unit_test(an_ascending_list_of_a_million_layers_is_walked_once),
        cmocka_unit_test(flags_and_layers_decide_which_tensors_are_made_again),
        cmocka_unit_test(a_tensor_that_nobody_reads_or_that_leaves_its_layer_is_no_inner_one),
        cmocka_unit_test(none_and_keeping_every_layer_are_the_keep_all_plan),
        cmocka_unit_test(effects_are_those_worked_by_hand),
        cmocka_unit_test(no_layers_have_nothing_to_save),
        cmocka_unit_test(a_graph_without_bytes_or_costs_has_ratios_all_the_same),
        cmocka_unit_test(graphs_and_counts_that_do_not_fit_are_errors),
        cmocka_unit_test(dynamic_is_the_optimum_of_all_kept_sets_on_chains),
        cmocka_unit_test(dynamic_is_the_optimum_of_all_kept_sets_on_layered_graphs),
        cmocka_unit_test(dynamic_of_many_inner_tensors_is_near_the_optimum),
        cmocka_unit_test(a_fraction_trades_inner_tensors_for_time),
        cmocka_unit_test(inner_tensors_whose_flag_is_off_are_kept),
        cmocka_unit_test(dynamic_of_thirteen_layers_is_the_optimum_where_layers_read_the_one_below),
        cmocka_unit_test(the_search_for_many_layers_agrees_with_all_kept_sets_of_few),
        cmocka_unit_test(the_search_for_many_layers_is_near_where_layers_read_from_far_below),
        cmocka_unit_test(dynamic_of_many_layers_is_no_worse_than_any_uniform_interval),
        cmocka_unit_test(dynamic_of_equal_layers_has_known_values),
        cmocka_unit_test(an_infeasible_fraction_names_the_least_peak_and_its_node),
        cmocka_unit_test(the_named_least_peak_is_feasible),
        cmocka_unit_test(fractions_are_taken_of_the_peak_as_doubles),
        cmocka_unit_test(a_wide_minimal_interval_still_finds_plans),
        cmocka_unit_test(the_search_stops_when_longer_segments_are_of_no_use),
        cmocka_unit_test(labels_stay_sorted_and_within_their_number),
        cmocka_unit_test(every_entry_point_survives_a_failing_allocator),
        cmocka_unit_test(json_is_what_serde_json_writes),
        cmocka_unit_test(json_floats_are_the_shortest_that_read_back),
        cmocka_unit_test(json_takes_keys_in_any_order_and_ignores_the_unknown),
        cmocka_unit_test(json_with_an_error_names_the_place),
        cmocka_unit_test(every_cut_of_a_json_text_is_an_error),
        cmocka_unit_test(json_survives_a_failing_allocator),
        cmocka_unit_test(random_configs_survive_the_round_trip),
        cmocka_unit_test(summaries_round_percentages_as_rust_does),
        cmocka_unit_test(seed_test_uniform_checkpointing),
        cmocka_unit_test(seed_test_selective_checkpointing),
        cmocka_unit_test(seed_test_dynamic_checkpointing),
        cmocka_unit_test(seed_test_no_checkpointing),
        cmocka_unit_test(seed_test_compute_overhead),
        cmocka_unit_test(seed_test_invalid_dynamic_memory_fraction),
        cmocka_unit_test(seed_test_builder_pattern),
        cmocka_unit_test(seed_test_validate_uniform),
        cmocka_unit_test(seed_test_validate_selective_duplicates),
        cmocka_unit_test(seed_test_summary),
        cmocka_unit_test(seed_test_default),
        cmocka_unit_test(seed_test_zero_interval_uniform),
        cmocka_unit_test(seed_test_dynamic_zero_layers),
        cmocka_unit_test(seed_test_memory_savings_edge_cases),
        cmocka_unit_test(defect_c1_a_smaller_fraction_never_takes_more_memory),
        cmocka_unit_test(defect_c2_savings_are_those_of_the_plan_not_of_the_target),
        cmocka_unit_test(defect_c3_the_segment_being_made_again_counts),
        cmocka_unit_test(defect_c4_overhead_is_work_done_again_over_work),
        cmocka_unit_test(defect_c5_intervals_beyond_the_layers_keep_the_first_and_make_the_rest_again),
        cmocka_unit_test(defect_c6_lists_are_held_to_the_layers_there_are),
        cmocka_unit_test(defect_c7_interval_0_is_an_error_everywhere),
        cmocka_unit_test(defect_c8_positions_matter),
        cmocka_unit_test(defect_c9_each_flag_changes_the_plan),
        cmocka_unit_test(defect_c10_the_minimal_interval_binds_every_kind),
        cmocka_unit_test(defect_c11_dynamic_is_free_to_space_unevenly),
        cmocka_unit_test(defect_c12_a_dynamic_config_is_for_its_layers_alone),
        cmocka_unit_test(defect_c13_fields_set_by_hand_are_held_to_the_same_rules),
        cmocka_unit_test(defect_c14_an_error_names_the_field_that_is_wrong),
        cmocka_unit_test(defect_c15_dynamic_reports_and_the_config_is_usable_either_way),
        cmocka_unit_test(defect_c16_bytes_and_costs_of_the_layers_decide),
        cmocka_unit_test(golden_checkpoint_rows_agree_or_are_counter_examples),
        cmocka_unit_test(golden_constructor_rows_agree),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
