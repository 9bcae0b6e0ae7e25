// [7] PRECISION: a plan applied to a graph, walked again by other means.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_graph.h"
#include "support/texts.h"
#include "support/word_lengths.h"

// A plan by hand: schemes by their names, one a node, all of speed-up 1 or as given.
#define MOST_NODES 64
typedef struct made_plan {
    tl_precision_plan plan;
    tl_precision_node nodes[MOST_NODES];
} made_plan;

static void make_plan(made_plan *made, const tl_graph *graph, const uint8_t *schemes) {
    int32_t i;
    assert_true(graph->node_count <= MOST_NODES);
    memset(made, 0, sizeof *made);
    made->plan.nodes = made->nodes;
    made->plan.node_count = graph->node_count;
    for (i = 0; i < graph->node_count; i++) {
        made->nodes[i].scheme = (tl_scheme)schemes[i];
        made->nodes[i].speedup = 1;
    }
}

static tl_apply_desc apply_desc(const tl_graph *graph, const made_plan *made) {
    tl_apply_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = &made->plan;
    return desc;
}

static void applied_to(const tl_apply_desc *desc, tl_precision_graph *applied) {
    tl_env env = silent_env();
    if (tl_apply_precision(&env, desc, applied)) fail_msg("%s", env.error.text);
}

// Apply these schemes to this text, and compare with the other text.
static void assert_applies(const char *text, const uint8_t *schemes, tl_apply_desc desc, const char *expected) {
    tl_graph graph = graph_of(text);
    made_plan made;
    tl_precision_graph applied;
    char out[4096];
    make_plan(&made, &graph, schemes);
    desc.graph = &graph;
    desc.plan = &made.plan;
    applied_to(&desc, &applied);
    assert_true(tl_print_graph(&applied.graph, out, sizeof out) < sizeof out);
    assert_written(out, expected);
    tl_free_precision_graph(NULL, &applied);
    tl_free_graph(NULL, &graph);
}

#define F32 TL_SCHEME_F32
#define F16 TL_SCHEME_F16
#define BF16 TL_SCHEME_BF16
#define I16 TL_SCHEME_I16
#define I8 TL_SCHEME_I8

static tl_apply_desc plain(void) {
    tl_apply_desc desc;
    memset(&desc, 0, sizeof desc);
    return desc;
}

static void each_format_is_converted_to_once(void **state) {
    static const uint8_t schemes[] = { F32, I8, I8, F32, TL_SCHEME_I8_CHANNEL };
    (void)state;
    assert_applies(
        "tlg 1\n"
        "batch 7\n"
        "node 0 x input fwd=0 bwd=0 out=400 needs=none in=- fixed\n"
        "node 1 a conv fwd=90 bwd=0 out=400 needs=none in=0 fwork=5 param=42 layer=0 unit=ffn grad=no\n"
        "node 2 b conv fwd=90 bwd=0 out=400 needs=none in=0 grad=no\n"
        "node 3 c add fwd=5 bwd=0 out=400 needs=none in=1,2 inplace=1 grad=no takes_blocks\n"
        "node 4 d conv fwd=90 bwd=0 out=40 needs=none in=2 grad=no keep\n",
        schemes, plain(),
        "tlg 1\n"
        "batch 7\n"
        "node 0 x input fwd=0 bwd=0 out=400 needs=none in=- fixed\n"
        "node 1 x_i8 convert fwd=100 bwd=0 out=100 needs=none in=0 grad=no fixed\n"
        "node 2 a conv fwd=90 bwd=0 out=100 needs=none in=1 fwork=5 param=11 layer=0 unit=ffn grad=no\n"
        "node 3 b conv fwd=90 bwd=0 out=100 needs=none in=1 grad=no\n"
        "node 4 a_f32 convert fwd=100 bwd=0 out=400 needs=none in=2 layer=0 unit=ffn grad=no\n"
        "node 5 b_f32 convert fwd=100 bwd=0 out=400 needs=none in=3 grad=no\n"
        "node 6 c add fwd=5 bwd=0 out=400 needs=none in=4,5 inplace=1 grad=no takes_blocks\n"
        "node 7 d conv fwd=90 bwd=0 out=10 needs=none in=3 grad=no\n"
        "node 8 d_f32 convert fwd=10 bwd=0 out=40 needs=none in=7 grad=no keep\n");
}


// -- gradients and results --

#define TRAINED                                                             \
    "tlg 1\n"                                                               \
    "node 0 x input fwd=0 bwd=0 out=40 needs=none in=-\n"                   \
    "node 1 a conv fwd=9 bwd=19 out=41,8 needs=in,out in=0 saved=7 fwork=3 bwork=5 swork=0 param=6 layer=2 unit=ffn once\n" \
    "node 2 b conv fwd=9 bwd=19 out=16 needs=in0 in=1.0,1.1\n"              \
    "node 3 c relu fwd=2 bwd=3 out=41 needs=out in=1 inplace=0\n"           \
    "node 4 d probe fwd=2 bwd=0 out=8 needs=none in=1 grad=no\n"            \
    "node 5 e loss fwd=2 bwd=3 out=4 needs=in in=2,3 keep\n"

static void a_conversion_has_a_gradient_where_one_leads_on(void **state) {
    static const uint8_t schemes[] = { F32, F16, F32, BF16, F32, F16 };
    tl_apply_desc desc = plain();
    (void)state;
    desc.training = 1;
    // a.0 goes to b and d in f32: b has a gradient. The result starts backward in f32, in its own conversion.
    assert_applies(TRAINED, schemes, desc,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=40 needs=none in=-\n"
        "node 1 x_f16 convert fwd=10 bwd=0 out=20 needs=none in=0 grad=no\n"
        "node 2 a conv fwd=9 bwd=19 out=22,4 needs=in,out in=1 saved=4 fwork=3 bwork=5 swork=0 param=4 layer=2 unit=ffn once\n"
        "node 3 a.0_f32 convert fwd=11 bwd=11 out=41 needs=none in=2.0 layer=2 unit=ffn\n"
        "node 4 a.1_f32 convert fwd=2 bwd=2 out=8 needs=none in=2.1 layer=2 unit=ffn\n"
        "node 5 b conv fwd=9 bwd=19 out=16 needs=in0 in=3,4\n"
        "node 6 a.0_bf16 convert fwd=11 bwd=11 out=22 needs=none in=2.0 layer=2 unit=ffn\n"
        "node 7 c relu fwd=2 bwd=3 out=22 needs=out in=6 inplace=0\n"
        "node 8 d probe fwd=2 bwd=0 out=8 needs=none in=3 grad=no\n"
        "node 9 b_f16 convert fwd=4 bwd=4 out=8 needs=none in=5\n"
        "node 10 c_f16 convert fwd=11 bwd=11 out=22 needs=none in=7\n"
        "node 11 e loss fwd=2 bwd=3 out=2 needs=in in=9,10\n"
        "node 12 e_f32 convert fwd=1 bwd=1 out=4 needs=none in=11 keep\n");
}

static void without_training_gradients_end_at_conversions(void **state) {
    static const uint8_t schemes[] = { F32, F32, F32, F16, F32, F16 };
    tl_apply_desc desc = plain();
    (void)state;
    desc.any_result = 1;
    assert_applies(TRAINED, schemes, desc,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=40 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=19 out=41,8 needs=in,out in=0 saved=7 fwork=3 bwork=5 swork=0 param=6 layer=2 unit=ffn once\n"
        "node 2 b conv fwd=9 bwd=19 out=16 needs=in0 in=1.0,1.1\n"
        "node 3 a.0_f16 convert fwd=11 bwd=0 out=22 needs=none in=1.0 layer=2 unit=ffn grad=no\n"
        "node 4 c relu fwd=2 bwd=3 out=22 needs=out in=3 inplace=0\n"
        "node 5 d probe fwd=2 bwd=0 out=8 needs=none in=1.0 grad=no\n"
        "node 6 b_f16 convert fwd=4 bwd=0 out=8 needs=none in=2 grad=no\n"
        "node 7 e loss fwd=2 bwd=3 out=2 needs=in in=6,4 keep\n");
}

// -- names, views, quantisations, costs --

// The name is taken by a node, by a view, is that of another tensor too, or is too long.
static void names_of_conversions_are_unique(void **state) {
    static const uint8_t schemes[] = { F32, I8, F32, F32, I8, I8, I8 };
    char text[2048], long_name[256];
    tl_env env = silent_env();
    tl_graph graph;
    tl_tensor of = { 3, 0 };
    made_plan made;
    tl_apply_desc desc;
    tl_precision_graph applied;
    (void)state;
    memset(long_name, 'q', 255);
    long_name[255] = 0;
    snprintf(text, sizeof text,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 %s conv fwd=1 bwd=0 out=4 needs=none in=0 grad=no\n"
        "node 2 x_i8 split fwd=1 bwd=0 out=4,4 needs=none in=1 grad=no\n"
        "node 3 x_i8.1 conv fwd=1 bwd=0 out=4 needs=none in=2.0,2.1 grad=no\n"
        "node 4 y conv fwd=1 bwd=0 out=4 needs=none in=3,2.1 grad=no\n"
        "node 5 z conv fwd=1 bwd=0 out=4 needs=none in=2.0 grad=no keep\n"
        "node 6 x_i8_1 conv fwd=1 bwd=0 out=4 needs=none in=1 grad=no\n", long_name);
    graph = graph_of(text);
    if (tl_add_view(&env, &graph, "z_f32", of, NULL)) fail_msg("%s", env.error.text);
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
    applied_to(&desc, &applied);
    assert_int_equal(tl_check_graph(&env, &applied.graph), TL_OK);
    assert_int_equal(applied.conversion_count, 6);
    assert_string_equal(tl_name_node(&applied.graph, 1), "x_i8_1_2");  // x_i8 and x_i8_1 are nodes
    assert_int_equal(strlen(tl_name_node(&applied.graph, 3)), 255);
    assert_string_equal(tl_name_node(&applied.graph, 3) + 248, "q_f32_3");
    assert_string_equal(tl_name_node(&applied.graph, 6), "x_i8.1_i8");
    assert_string_equal(tl_name_node(&applied.graph, 7), "x_i8.1_i8_7");  // output 1 of x_i8
    assert_string_equal(tl_name_node(&applied.graph, 9), "x_i8.0_i8");
    assert_string_equal(tl_name_node(&applied.graph, 12), "z_f32_12");
    tl_free_precision_graph(NULL, &applied);
    tl_free_graph(NULL, &graph);
}

static void names_of_conversions_are_cut_between_characters(void **state) {
    static const uint8_t schemes[] = { F32, I8, F32 };
    char text[1024], name[256] = "";
    tl_env env = silent_env();
    int lead;
    (void)state;
    for (lead = 0; lead < 3; lead++) {
        tl_graph graph;
        made_plan made;
        tl_apply_desc desc;
        tl_precision_graph applied;
        memset(name, 'q', (size_t)lead);
        name[lead] = 0;
        while (strlen(name) + 3 <= 255) strcat(name, "\xe5\xb1\xa4");
        snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                 "node 1 %s conv fwd=1 bwd=0 out=4 needs=none in=0 grad=no\nnode 2 y conv fwd=1 bwd=0 out=4 needs=none in=1 grad=no\n", name);
        graph = graph_of(text);
        make_plan(&made, &graph, schemes);
        desc = apply_desc(&graph, &made);
        applied_to(&desc, &applied);
        assert_int_equal(tl_check_graph(&env, &applied.graph), TL_OK);
        assert_true(applied.conversion_count == 2 && strlen(tl_name_node(&applied.graph, 3)) >= 253);
        assert_string_equal(strchr(tl_name_node(&applied.graph, 3), '_'), "_f32_3");
        tl_free_precision_graph(NULL, &applied);
        tl_free_graph(NULL, &graph);
    }
}

static void views_stand_for_the_same_tensors(void **state) {
    static const uint8_t schemes[] = { F32, I8, F16 };
    tl_env env = silent_env();
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a split fwd=1 bwd=0 out=4,8 needs=none in=0 grad=no\n"
        "node 2 b conv fwd=1 bwd=0 out=4 needs=none in=1.1 grad=no\n");
    tl_tensor of = { 1, 1 }, found;
    made_plan made;
    tl_apply_desc desc;
    tl_precision_graph applied;
    (void)state;
    if (tl_add_view(&env, &graph, "rows", of, NULL)) fail_msg("%s", env.error.text);
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
    applied_to(&desc, &applied);
    assert_int_equal(tl_find_tensor(&env, &applied.graph, "rows", &found), TL_OK);
    assert_int_equal(found.node, applied.new_nodes[1]);
    assert_int_equal(found.output, 1);
    tl_free_precision_graph(NULL, &applied);
    tl_free_graph(NULL, &graph);
}

static void integers_carry_their_quantisation(void **state) {
    static const uint8_t schemes[] = { F32, I8, I16, TL_SCHEME_W8A16 };
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a conv fwd=1 bwd=0 out=4 needs=none in=0 param=8 grad=no\n"
        "node 2 b conv fwd=1 bwd=0 out=4 needs=none in=1 param=8 grad=no\n"
        "node 3 c conv fwd=1 bwd=0 out=4 needs=none in=2 param=8 grad=no\n");
    tl_quantization narrow[4], wide[4];
    made_plan made;
    tl_apply_desc desc;
    tl_precision_graph applied;
    int i;
    (void)state;
    for (i = 0; i < 4; i++) {
        narrow[i] = quantization_of(1.0f + (float)i, 0, -128, 127);
        wide[i] = quantization_of(0.5f + (float)i, 0, -32767, 32767);
    }
    wide[3].scale = 0;
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
    desc.quantizations = narrow;
    desc.wide_quantizations = wide;
    applied_to(&desc, &applied);
    // x, x_i8, a, a_i16, b, c
    assert_int_equal(applied.graph.node_count, 6);
    assert_true(applied.quantizations[0].scale == 0);
    assert_true(applied.quantizations[1].scale == 1.0f && applied.quantizations[1].high == 127);
    assert_true(applied.quantizations[2].scale == 2.0f && applied.quantizations[2].low == -128);
    assert_true(applied.quantizations[3].scale == 1.5f && applied.quantizations[3].high == 32767);
    assert_true(applied.quantizations[4].scale == 2.5f);
    assert_true(is_zero(&applied.quantizations[5], sizeof applied.quantizations[5]));  // none known
    assert_int_equal(applied.graph.nodes[2].param_bytes, 2);
    assert_int_equal(applied.graph.nodes[4].param_bytes, 4);
    assert_int_equal(applied.graph.nodes[5].param_bytes, 2);
    tl_free_precision_graph(NULL, &applied);
    desc.quantizations = NULL;
    applied_to(&desc, &applied);
    assert_true(applied.quantizations[1].scale == 0 && applied.quantizations[3].scale == 1.5f);
    tl_free_precision_graph(NULL, &applied);
    tl_free_graph(NULL, &graph);
}

// A scheme has one name, a conversion those of both formats, whether it was made or its name was given to a node.
static void kernels_are_named_by_scheme_and_format(void **state) {
    static const uint8_t schemes[] = { F32, TL_SCHEME_I8_CHANNEL, TL_SCHEME_W8A16, F32 };
    static const char *const names[] = { "input", "convert_f32_i8", "conv_i8_channel", "convert_i8_i16", "convert_w8a16", "convert_i16_f32",
                                         "conv_f32" };
    tl_graph graph = graph_of("tlg 2\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a conv fwd=1 bwd=0 out=4 needs=none in=0 grad=no stored=8:f32,4:f32\n"
        "node 2 b convert fwd=1 bwd=0 out=4 needs=none in=1 grad=no\n"
        "node 3 c conv fwd=1 bwd=0 out=4 needs=none in=2 grad=no\nend 4\n");
    tl_precision_graph applied;
    tl_apply_desc desc;
    made_plan made;
    char text[64];
    int32_t i;
    (void)state;
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
    applied_to(&desc, &applied);
    assert_int_equal(applied.graph.node_count, 7);
    for (i = 0; i < 7; i++) {
        assert_int_equal(tl_print_kernel(&applied, i, text, sizeof text), strlen(names[i]));
        assert_string_equal(text, names[i]);
    }
    assert_int_equal(tl_print_kernel(&applied, 2, NULL, 0), strlen(names[2]));
    tl_free_precision_graph(NULL, &applied);
    tl_free_graph(NULL, &graph);
}

static void assert_refused(const tl_apply_desc *desc, tl_result code, const char *sentence) {
    tl_env env = silent_env();
    tl_precision_graph applied;
    memset(&applied, 0xA5, sizeof applied);
    assert_int_equal(tl_apply_precision(&env, desc, &applied), code);
    assert_string_equal(env.error.text, sentence);
    assert_true(is_zero(&applied, sizeof applied));
    tl_free_precision_graph(&env, &applied);
}

// Weights, biases and scales of what is stored, scheme by scheme, against a table.
static void constants_are_those_of_the_scheme(void **state) {
    static const char *const expected[TL_SCHEME_COUNT] = {
        "576:f32,64:f32,12:i8", "288:f16,32:f16,12:i8", "288:bf16,32:bf16,12:i8",
        "288:i16,64:i32,12:i8,4:i32,4:i32", "144:i8,64:i32,12:i8,4:i32,4:i32", "144:i8,64:i32,12:i8,64:i32,64:i32",
        "144:i8,64:i32,12:i8,64:i32,64:i32", "144:i8,64:f32,12:i8,64:f32", "576:f32,64:f32,12:i8",
        "80:i4,64:i32,12:i8,64:i32,64:i32,16:i8" };
    char line[128], out[4096], *at;
    int32_t k;
    (void)state;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        uint8_t schemes[2] = { 0, (uint8_t)k };
        tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
                                  "node 1 a conv2d fwd=9 bwd=0 out=64 needs=none in=0 grad=no"
                                  " stored=576:f32,64:f32,12:i8\nend 2\n");
        made_plan made;
        tl_apply_desc desc;
        tl_precision_graph applied;
        make_plan(&made, &graph, schemes);
        desc = apply_desc(&graph, &made);
        desc.any_result = 1;
        applied_to(&desc, &applied);
        tl_print_graph(&applied.graph, out, sizeof out);
        at = strstr(out, "stored=");
        assert_non_null(at);
        snprintf(line, sizeof line, "stored=%s", expected[k]);
        at[strcspn(at, " \n")] = 0;
        assert_string_equal(at, line);
        tl_free_precision_graph(NULL, &applied);
        tl_free_graph(NULL, &graph);
    }
}

static tl_graph graph_with_constants(uint64_t weights, uint64_t channels) {
    char text[512];
    snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
             "node 1 a conv2d fwd=9 bwd=0 out=64 needs=none in=0 grad=no stored=%llu:f32,%llu:f32\nend 2\n",
             (unsigned long long)(4 * weights), (unsigned long long)(4 * channels));
    return graph_of(text);
}

// w4a8: two weights a byte, each channel from a whole byte on, and a factor for each 32 weights of a channel; applied, and
// as the planner counts them.
static void weights_in_groups_take_whole_bytes(void **state) {
    static const uint8_t schemes[2] = { 0, TL_SCHEME_W4A8 };
    static const struct { uint64_t terms, channels, weight_bytes, factor_bytes; } rows[] = {
        { 1, 1, 1, 1 }, { 1, 7, 7, 7 }, { 2, 7, 7, 7 }, { 9, 16, 80, 16 }, { 31, 3, 48, 3 }, { 32, 3, 48, 3 }, { 33, 3, 51, 6 },
        { 63, 5, 160, 10 }, { 64, 5, 160, 10 }, { 65, 5, 165, 15 }, { 8191, 2, 8192, 512 }, { 8192, 2, 8192, 512 } };
    tl_env env = silent_env();
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_graph graph = graph_with_constants(rows[i].terms * rows[i].channels, rows[i].channels);
        uint64_t bytes[5] = { 0 }, scales = 4 * rows[i].channels;
        static const tl_tensor_format formats[5] = { TL_TENSOR_FORMAT_I4, TL_TENSOR_FORMAT_I32, TL_TENSOR_FORMAT_I32,
                                                     TL_TENSOR_FORMAT_I32, TL_TENSOR_FORMAT_I8 };
        const tl_stored *stored;
        made_plan made;
        tl_apply_desc apply;
        tl_precision_desc desc;
        tl_precision_plan plan;
        tl_precision_graph applied;
        int k;
        make_plan(&made, &graph, schemes);
        apply = apply_desc(&graph, &made);
        apply.any_result = 1;
        applied_to(&apply, &applied);
        bytes[0] = rows[i].weight_bytes;
        bytes[1] = bytes[2] = bytes[3] = scales;
        bytes[4] = rows[i].factor_bytes;
        assert_int_equal(applied.graph.attributes->stored_count, 5);
        for (stored = applied.graph.attributes->stored, k = 0; k < 5; k++) {
            assert_int_equal(stored[k].bytes, bytes[k]);
            assert_int_equal(stored[k].format, formats[k]);
            assert_int_equal(stored[k].node, applied.new_nodes[1]);
        }
        tl_free_precision_graph(NULL, &applied);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.objective = TL_OBJECTIVE_BYTES;
        desc.loss_limit = 1;
        desc.schemes = 1u << TL_SCHEME_W4A8;
        desc.any_result = 1;
        assert_int_equal(tl_plan_precision(&env, &desc, &plan), TL_OK);
        assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_W4A8);
        assert_int_equal(plan.bytes, 64 + 16 + 16 + rows[i].weight_bytes + 3 * scales + rows[i].factor_bytes);
        tl_free_precision_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

// A sum of w4a8 has at most 8192 products, and its channels are of equal length: other nodes do not have it.
static void long_sums_do_not_have_weights_in_groups(void **state) {
    static const uint8_t schemes[2] = { 0, TL_SCHEME_W4A8 };
    static const struct { uint64_t weights, channels; const char *rule; } rows[] = {
        { 8193, 1, "a sum of w4a8 has more than 8192 products, which 32 bits do not hold" },
        { 3 * 8193, 3, "a sum of w4a8 has more than 8192 products, which 32 bits do not hold" },
        { 100, 3, "biases must tell how many channels the weights have" },
        { 3, 4, "biases must tell how many channels the weights have" } };
    tl_env env = silent_env();
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_graph graph = graph_with_constants(rows[i].weights, rows[i].channels);
        char sentence[160];
        made_plan made;
        tl_apply_desc apply;
        tl_precision_desc desc;
        tl_precision_plan plan;
        make_plan(&made, &graph, schemes);
        apply = apply_desc(&graph, &made);
        snprintf(sentence, sizeof sentence, "tl_apply_precision: node 1 (a): stored: %s", rows[i].rule);
        assert_refused(&apply, TL_ERROR_INVALID_ARG, sentence);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.objective = TL_OBJECTIVE_BYTES;
        desc.loss_limit = 1;
        desc.any_result = 1;
        desc.schemes = 1u << I16 | 1u << TL_SCHEME_W4A8;
        assert_int_equal(tl_plan_precision(&env, &desc, &plan), TL_OK);
        assert_int_equal(plan.nodes[1].scheme, I16);
        tl_free_precision_plan(NULL, &plan);
        desc.schemes = 1u << TL_SCHEME_W4A8;
        assert_int_equal(tl_plan_precision(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
        tl_free_graph(NULL, &graph);
    }
}

// DS-CNN of MLPerf Tiny: of its 22 604 bytes of weights and biases as integers of 8 bits, biases take four each,
// and each channel has a multiplier and a shift.
static void what_flash_holds_is_counted(void **state) {
    static const struct { int32_t weights, channels; } layers[] = {
        { 64 * 40, 64 }, { 64 * 9, 64 }, { 64 * 64, 64 }, { 64 * 9, 64 }, { 64 * 64, 64 },
        { 64 * 9, 64 }, { 64 * 64, 64 }, { 64 * 9, 64 }, { 64 * 64, 64 }, { 64 * 12, 12 } };
    enum { COUNT = sizeof layers / sizeof *layers };
    tl_env env = silent_env();
    tl_precision_desc desc;
    tl_precision_plan plan;
    char text[4096];
    int length = snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"), i;
    tl_graph graph;
    (void)state;
    for (i = 0; i < COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "node %d l%d linear fwd=1 bwd=0 out=4 needs=none in=%d grad=no stored=%d:f32,%d:f32\n",
                           i + 1, i, i, 4 * layers[i].weights, 4 * layers[i].channels);
    snprintf(text + length, sizeof text - (size_t)length, "end %d\n", COUNT + 1);
    graph = graph_of(text);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.objective = TL_OBJECTIVE_BYTES;
    desc.loss_limit = 1;
    desc.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_I8_CHANNEL;
    desc.any_result = 1;
    assert_int_equal(tl_plan_precision(&env, &desc, &plan), TL_OK);
    assert_int_equal(plan.scheme_counts[TL_SCHEME_I8_CHANNEL], COUNT);
    assert_int_equal(plan.bytes, 29072 + 4 + 1 + COUNT);      // x, its copy in i8, and outputs of 1 byte each
    assert_int_equal(plan.base_bytes, 4 * 22604 + 4 + 4 * COUNT);
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Weights with a scale for each channel, and no bias that tells how many these are.
static void channels_must_be_known(void **state) {
    static const uint8_t schemes[2] = { 0, TL_SCHEME_I8_CHANNEL };
    tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
                              "node 1 a conv2d fwd=9 bwd=0 out=64 needs=none in=0 grad=no stored=432:f32\nend 2\n");
    tl_env env = silent_env();
    tl_precision_desc desc;
    tl_precision_plan plan;
    tl_apply_desc apply;
    made_plan made;
    (void)state;
    make_plan(&made, &graph, schemes);
    apply = apply_desc(&graph, &made);
    assert_refused(&apply, TL_ERROR_INVALID_ARG,
                   "tl_apply_precision: node 1 (a): stored: biases must tell how many channels the weights have");
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.objective = TL_OBJECTIVE_BYTES;
    desc.loss_limit = 1;
    assert_int_equal(tl_plan_precision(&env, &desc, &plan), TL_OK);
    assert_int_equal(plan.nodes[1].scheme, TL_SCHEME_I8);     // one scale for all weights
    tl_free_precision_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void conversions_cost_what_they_move(void **state) {
    static const struct { uint8_t from, to; uint64_t rate, codec, expected; } rows[] = {
        { F32, I8, 0, 0, 25 }, { F32, I8, 1000000000, 0, 125 }, { F32, I8, 1000000000, 500000000, 125 },
        { F32, I8, 0, 500000000, 25 }, { F32, F16, 1000000000, 0, 150 }, { F32, F16, 1000000000, 500000000, 200 },
        { F32, BF16, 0, 500000000, 200 }, { F16, F32, 0, 300000000, 334 }, { F16, BF16, 1000000000, 500000000, 100 },
        { F16, BF16, 0, 500000000, 25 }, { I8, I16, 3000000000, 0, 25 }, { I8, F16, 700000000, 1, 108 } };
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=98 needs=none in=-\n"
        "node 1 a conv fwd=1 bwd=0 out=98 needs=none in=0 grad=no\n"
        "node 2 b conv fwd=1 bwd=0 out=98 needs=none in=1 grad=no\n");
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t schemes[3] = { F32 };
        made_plan made;
        tl_device device;
        tl_precision_graph applied;
        tl_apply_desc desc;
        schemes[1] = rows[i].from;
        schemes[2] = rows[i].to;
        memset(&device, 0, sizeof device);
        device.bytes_per_second = rows[i].rate;
        device.codec_bytes_per_second = rows[i].codec;
        make_plan(&made, &graph, schemes);
        desc = apply_desc(&graph, &made);
        desc.device = &device;
        applied_to(&desc, &applied);
        assert_int_equal(applied.graph.nodes[applied.new_nodes[2] - 1].fwd_cost, rows[i].expected);
        tl_free_precision_graph(NULL, &applied);
    }
    tl_free_graph(NULL, &graph);
}

static void costs_are_divided_and_their_sum_is_rounded_once(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a conv fwd=5 bwd=9 out=4 needs=none in=0\n");
    uint8_t schemes[2] = { F32, F32 };
    made_plan made;
    tl_apply_desc desc;
    tl_precision_graph applied;
    uint64_t cost;
    (void)state;
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
    made.nodes[1].speedup = 4;  // 1.25, 2.25, 3.5
    applied_to(&desc, &applied);
    assert_int_equal(applied.graph.nodes[1].fwd_cost, 1);
    assert_int_equal(applied.graph.nodes[1].bwd_cost, 2);
    tl_free_precision_graph(NULL, &applied);
    desc.training = 1;
    applied_to(&desc, &applied);
    assert_int_equal(applied.graph.nodes[1].fwd_cost, 1);
    assert_int_equal(applied.graph.nodes[1].bwd_cost, 3);
    tl_free_precision_graph(NULL, &applied);
    // What was divided by a cost gives that cost again.
    NODES(&graph)[1].fwd_cost = UINT64_C(987654321987);
    desc.training = 0;
    for (cost = 1; cost < 2000; cost++) {
        made.nodes[1].speedup = (double)graph.nodes[1].fwd_cost / (double)(cost * cost * 7 + 3);
        applied_to(&desc, &applied);
        assert_int_equal(applied.graph.nodes[1].fwd_cost, cost * cost * 7 + 3);
        tl_free_precision_graph(NULL, &applied);
    }
    tl_free_graph(NULL, &graph);
}

// -- random graphs, walked again --

static const tl_format format_of[TL_SCHEME_COUNT] = { TL_FORMAT_F32, TL_FORMAT_F16, TL_FORMAT_BF16, TL_FORMAT_I16,
    TL_FORMAT_I8, TL_FORMAT_I8, TL_FORMAT_I16, TL_FORMAT_F32, TL_FORMAT_F32, TL_FORMAT_I8 };
static const uint64_t bytes_of[TL_FORMAT_COUNT] = { 4, 2, 2, 2, 1 };
static const uint64_t weight_bits[TL_SCHEME_COUNT] = { 32, 16, 16, 16, 8, 8, 8, 8, 32, 4 };

static uint64_t bytes_in(uint64_t bytes, uint64_t each) { return each == 4 ? bytes : (bytes + 3) / 4 * each; }
static uint64_t bits_in(uint64_t bytes, uint64_t each) { return each == 32 ? bytes : ((bytes + 3) / 4 * each + 7) / 8; }

// The old tensor that a tensor of the new graph holds; itself or a copy.
static int32_t old_tensor_of(const tl_graph *old, const tl_precision_graph *applied, int32_t tensor) {
    const tl_node_output *output = &applied->graph.outputs[tensor];
    int32_t node = applied->nodes[output->node];
    const tl_node_output *source;
    if (applied->new_nodes[node] == output->node) return old->nodes[node].first_output + output->output;
    source = &applied->graph.outputs[applied->graph.inputs[applied->graph.nodes[output->node].first_input].tensor];
    assert_int_equal(source->node, applied->new_nodes[node]);  // never a copy of a copy
    return old->nodes[node].first_output + source->output;
}

static void check_kept(const tl_apply_desc *desc, const tl_precision_graph *applied, int32_t id) {
    const tl_node *node = &desc->graph->nodes[id], *now = &applied->graph.nodes[applied->new_nodes[id]];
    const tl_precision_node *chosen = &desc->plan->nodes[id];
    tl_format format = format_of[chosen->scheme];
    int32_t k;
    assert_string_equal(tl_name_node(&applied->graph, applied->new_nodes[id]), tl_name_node(desc->graph, id));
    assert_string_equal(tl_name_op(&applied->graph, applied->new_nodes[id]), tl_name_op(desc->graph, id));
    assert_string_equal(tl_name_unit(&applied->graph, applied->new_nodes[id]), tl_name_unit(desc->graph, id));
    assert_int_equal(applied->schemes[applied->new_nodes[id]], chosen->scheme);
    assert_int_equal(now->input_count, node->input_count);
    assert_int_equal(now->output_count, node->output_count);
    assert_int_equal(now->inplace, node->inplace);
    assert_int_equal(now->layer, node->layer);
    assert_int_equal(now->is_input, node->is_input);
    assert_int_equal(now->has_grad, node->has_grad);
    assert_int_equal(now->fixed, node->fixed);
    assert_int_equal(now->takes_blocks, node->takes_blocks);
    assert_int_equal(now->keep, node->keep && (format == TL_FORMAT_F32 || desc->any_result));
    assert_int_equal(now->saved_bytes, bytes_in(node->saved_bytes, bytes_of[format]));
    assert_int_equal(now->param_bytes, bits_in(node->param_bytes, weight_bits[chosen->scheme]));
    assert_int_equal(now->fwork_bytes, node->fwork_bytes);
    assert_int_equal(now->bwork_bytes, node->bwork_bytes);
    assert_int_equal(now->swork_bytes, node->swork_bytes);
    assert_int_equal(now->once, node->once);
    assert_int_equal(now->origin, node->origin);
    for (k = 0; k < node->output_count; k++) {
        int32_t tensor = now->first_output + k;
        assert_int_equal(applied->formats[tensor], format);
        assert_int_equal(applied->graph.outputs[tensor].bytes,
                         bytes_in(desc->graph->outputs[node->first_output + k].bytes, bytes_of[format]));
        assert_int_equal(applied->graph.outputs[tensor].needed, desc->graph->outputs[node->first_output + k].needed);
    }
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &applied->graph.inputs[now->first_input + k];
        assert_int_equal(applied->formats[input->tensor], format);
        assert_int_equal(old_tensor_of(desc->graph, applied, input->tensor), desc->graph->inputs[node->first_input + k].tensor);
        assert_int_equal(input->needed, desc->graph->inputs[node->first_input + k].needed);
    }
}

// What the old graph says about a copy: who reads the tensor in this format, and whether a gradient comes back.
static void check_copy(const tl_apply_desc *desc, const tl_precision_graph *applied, int32_t id, uint8_t *seen) {
    const tl_graph *old = desc->graph, *graph = &applied->graph;
    const tl_node *now = &graph->nodes[id];
    int32_t tensor = old_tensor_of(old, applied, now->first_output), maker = old->outputs[tensor].node, i, k;
    const tl_node *node = &old->nodes[maker];
    tl_format format = (tl_format)applied->formats[now->first_output];
    uint64_t elements = (old->outputs[tensor].bytes + 3) / 4;
    int readers = 0, gradients = 0, is_read = 0, first = -1, is_result;
    assert_int_equal(seen[tensor * TL_FORMAT_COUNT + (int32_t)format]++, 0);
    for (i = 0; i < old->node_count; i++)
        for (k = 0; k < old->nodes[i].input_count; k++) {
            if (old->inputs[old->nodes[i].first_input + k].tensor != tensor) continue;
            is_read = 1;
            if (format_of[desc->plan->nodes[i].scheme] != format) continue;
            if (!readers++) first = i;
            gradients += old->nodes[i].has_grad;
        }
    is_result = node->keep && !desc->any_result && format == TL_FORMAT_F32;
    assert_true(format != format_of[desc->plan->nodes[maker].scheme]);
    assert_true(readers || is_result);
    assert_int_equal(now->keep, is_result);
    assert_int_equal(now->has_grad, desc->training && node->has_grad && (gradients || (is_result && !is_read)));
    assert_string_equal(tl_name_op(graph, id), "convert");
    assert_int_equal(now->input_count, 1);
    assert_int_equal(now->output_count, 1);
    assert_int_equal(now->fixed, node->fixed);
    assert_int_equal(now->takes_blocks, 0);
    assert_int_equal(now->layer, node->layer);
    assert_int_equal(graph->inputs[now->first_input].needed + graph->outputs[now->first_output].needed, 0);
    assert_int_equal(now->fwd_cost, elements);
    assert_int_equal(now->bwd_cost, now->has_grad ? elements : 0);
    assert_int_equal(now->saved_bytes + now->fwork_bytes + now->bwork_bytes + now->swork_bytes + now->param_bytes, 0);
    assert_true(!now->once && now->origin == -1);
    assert_int_equal(graph->outputs[now->first_output].bytes, bytes_in(old->outputs[tensor].bytes, bytes_of[format]));
    assert_int_equal(applied->schemes[id], F32);
    // Between it and its first reader stand conversions for that reader alone; those that nobody reads stand last.
    for (i = id + 1; i < graph->node_count && applied->new_nodes[applied->nodes[i]] != i; i++) {}
    assert_int_equal(i, first < 0 ? graph->node_count : applied->new_nodes[first]);
}

static void check_applied(const tl_apply_desc *desc, const tl_precision_graph *applied) {
    tl_env env = silent_env();
    uint8_t *seen = (uint8_t *)calloc((size_t)desc->graph->tensor_count * TL_FORMAT_COUNT, 1);
    tl_graph again;
    size_t length = tl_print_graph(&applied->graph, NULL, 0);
    char *text = (char *)malloc(length + 1), *second = (char *)malloc(length + 1);
    int32_t id, copies = 0, next = 0;
    if (tl_check_graph(&env, &applied->graph)) fail_msg("%s", env.error.text);
    assert_int_equal(applied->graph.batch, desc->graph->batch);
    for (id = 0; id < desc->graph->node_count; id++) check_kept(desc, applied, id);
    for (id = 0; id < applied->graph.node_count; id++) {
        if (applied->new_nodes[applied->nodes[id]] == id) {
            assert_int_equal(applied->nodes[id], next++);  // the old order
        } else {
            check_copy(desc, applied, id, seen);
            copies++;
        }
    }
    assert_int_equal(copies, applied->conversion_count);
    assert_int_equal(applied->graph.node_count, desc->graph->node_count + copies);
    for (id = 0; id < desc->graph->node_count; id++) {  // every result is one still
        const tl_node *node = &desc->graph->nodes[id];
        int32_t k;
        if (!node->keep || desc->any_result || format_of[desc->plan->nodes[id].scheme] == TL_FORMAT_F32) continue;
        for (k = node->first_output; k < node->first_output + node->output_count; k++)
            assert_int_equal(seen[k * TL_FORMAT_COUNT + TL_FORMAT_F32], 1);
    }
    tl_print_graph(&applied->graph, text, length + 1);
    if (tl_parse_graph(&env, text, length, &again)) fail_msg("%s\n%s", env.error.text, text);
    assert_int_equal(tl_print_graph(&again, second, length + 1), length);
    assert_string_equal(text, second);
    tl_free_graph(&env, &again);
    free(text);
    free(second);
    free(seen);
}

// -- bytes, counted by sets: what is alive while a call runs --

// The last call that reads a tensor: forwards are calls 0 .. n-1, backward of node i is call 2n-1-i.
static int32_t last_use_of(const tl_graph *graph, int32_t tensor) {
    int32_t n = graph->node_count, id, k, last = graph->outputs[tensor].node;
    if (graph->nodes[last].keep) return 2 * n;
    for (id = 0; id < n; id++)
        for (k = 0; k < graph->nodes[id].input_count; k++) {
            const tl_node_input *input = &graph->inputs[graph->nodes[id].first_input + k];
            int32_t use = input->needed ? 2 * n - 1 - id : id;
            if (input->tensor == tensor && use > last) last = use;
        }
    id = graph->outputs[tensor].node;
    if (graph->outputs[tensor].needed && 2 * n - 1 - id > last) last = 2 * n - 1 - id;
    return last;
}

// The first backward that writes its gradient; 2n where there is none.
static int32_t first_gradient_of(const tl_graph *graph, int32_t tensor) {
    int32_t n = graph->node_count, maker = graph->outputs[tensor].node, id, k;
    int32_t first = graph->nodes[maker].has_grad ? 2 * n - 1 - maker : 2 * n;
    for (id = 0; id < n && graph->nodes[maker].has_grad; id++)
        for (k = 0; k < graph->nodes[id].input_count; k++)
            if (graph->inputs[graph->nodes[id].first_input + k].tensor == tensor && graph->nodes[id].has_grad &&
                2 * n - 1 - id < first) first = 2 * n - 1 - id;
    return first;
}

static uint64_t peak_by_the_rules(const tl_graph *graph) {
    int32_t n = graph->node_count, call, i;
    uint64_t peak = 0;
    for (call = 0; call < 2 * n; call++) {
        int32_t id = call < n ? call : 2 * n - 1 - call;
        const tl_node *node = &graph->nodes[id];
        uint64_t live = call < n ? node->fwork_bytes : node->bwork_bytes;
        if (node->is_input || (call >= n && !node->has_grad)) live = 0;
        for (i = 0; i < n; i++)  // kept from its forward to its backward
            if (graph->nodes[i].has_grad && i <= call && call <= 2 * n - 1 - i) live += graph->nodes[i].saved_bytes;
        for (i = 0; i < graph->tensor_count; i++) {
            int32_t maker = graph->outputs[i].node;
            if (graph->nodes[maker].is_input || (maker <= call && call <= last_use_of(graph, i))) live += graph->outputs[i].bytes;
            if (first_gradient_of(graph, i) <= call && call <= 2 * n - 1 - maker) live += graph->outputs[i].bytes;
        }
        if (live > peak) peak = live;
    }
    return peak;
}

static void check_plans(const tl_precision_graph *applied, int with_remat) {
    tl_env env = silent_env();
    tl_plan plan;
    tl_remat_desc desc;
    uint64_t peak = peak_by_the_rules(&applied->graph);
    if (tl_plan_keep_all(&env, &applied->graph, 0, &plan)) fail_msg("%s", env.error.text);
    assert_int_equal(plan.peak_bytes, peak);
    tl_free_plan(&env, &plan);
    if (!with_remat) return;
    memset(&desc, 0, sizeof desc);
    desc.graph = &applied->graph;
    desc.live = 1;
    desc.budget_bytes = peak;
    desc.work_limit = 100000;
    if (tl_plan_remat(&env, &desc, &plan, NULL)) fail_msg("%s", env.error.text);
    assert_true(plan.peak_bytes <= peak);
    tl_free_plan(&env, &plan);
}

static void random_plans_are_applied_by_the_rules(void **state) {
    tl_random random = { 7101 };
    int round, rounds = scaled(6000), remats = rounds / 20;
    long copies = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        made_plan made;
        uint8_t schemes[MOST_NODES];
        tl_apply_desc desc;
        tl_precision_graph applied;
        int few = random_chance(&random, 50);
        int32_t i;
        if (random_graph(&env, &random, 14, &graph)) fail_msg("%s", env.error.text);
        for (i = 0; i < graph.node_count; i++) {
            schemes[i] = (uint8_t)tl_next_random_below(&random, few ? 3 : TL_SCHEME_COUNT);
            if (graph.nodes[i].is_input) schemes[i] = F32;
        }
        make_plan(&made, &graph, schemes);
        desc = apply_desc(&graph, &made);
        desc.training = random_chance(&random, 70);
        desc.any_result = random_chance(&random, 30);
        applied_to(&desc, &applied);
        check_applied(&desc, &applied);
        check_plans(&applied, round < remats);
        copies += applied.conversion_count;
        tl_free_precision_graph(NULL, &applied);
        tl_free_graph(NULL, &graph);
    }
    assert_true(copies > rounds);
}

// -- what tl_plan_precision says of a graph, and what the applied graph holds --

static void sums_are_those_of_the_plan(void **state) {
    tl_random random = { 7105 };
    int round, rounds = scaled(1500);
    long copies = 0, narrow = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_device device;
        tl_precision_desc desc;
        tl_precision_plan plan;
        tl_apply_desc apply;
        tl_precision_graph applied;
        uint64_t cost = 0, bytes = 0;
        uint32_t inputs[MOST_NODES];
        int32_t *counts, i;
        if (random_graph(&env, &random, 12, &graph)) fail_msg("%s", env.error.text);
        memset(&device, 0, sizeof device);
        if (random_chance(&random, 50)) device.bytes_per_second = 1 + tl_next_random_below(&random, 9000000000u);
        if (random_chance(&random, 50)) device.codec_bytes_per_second = 1 + tl_next_random_below(&random, 9000000000u);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.device = &device;
        desc.loss_limit = tl_next_random_ratio(&random) * 0.02;
        desc.allow_unknown = 1;
        desc.profiles = word_length_profiles(&desc.profile_count);
        desc.training = random_chance(&random, 50);
        desc.allow_f16 = random_chance(&random, 50);
        desc.any_result = random_chance(&random, 30);
        desc.objective = random_chance(&random, 50) ? TL_OBJECTIVE_BYTES : TL_OBJECTIVE_TIME;
        for (i = 0; i < graph.node_count; i++) {
            NODES(&graph)[i].fwd_cost *= 1000;
            NODES(&graph)[i].bwd_cost *= 1000;
            // A plan prices a backward for every conversion of a tensor of which some reader has a gradient.
            if (desc.training && !graph.nodes[i].is_input) NODES(&graph)[i].has_grad = 1;
            NODES(&graph)[i].takes_blocks = 0;  // which was for the gradients that there were
        }
        for (i = 0; desc.training && i < graph.input_count; i++)
            NODES(&graph)[graph.outputs[graph.inputs[i].tensor].node].keep = 0;
        memset(inputs, 0, sizeof inputs);
        for (i = 0; i < graph.node_count; i++)      // inputs that the caller may write in other formats
            if (round % 2 && graph.nodes[i].is_input && !graph.nodes[i].state)
                inputs[i] = (uint32_t)tl_next_random_below(&random, 32) & (1u << F32 | 1u << F16 | 1u << BF16 | 1u << I16 | 1u << I8);
        if (round % 2) desc.input_schemes = inputs;
        if (tl_plan_precision(&env, &desc, &plan)) fail_msg("%s", env.error.text);
        for (i = 0; i < graph.node_count; i++) {
            if (!graph.nodes[i].is_input) continue;
            assert_true(inputs[i] ? inputs[i] >> plan.nodes[i].scheme & 1 : plan.nodes[i].scheme == F32);
            assert_true(plan.nodes[i].loss == 0);
            narrow += plan.nodes[i].scheme != F32;
        }
        memset(&apply, 0, sizeof apply);
        apply.any_input = round % 2;
        apply.graph = &graph;
        apply.plan = &plan;
        apply.device = &device;
        apply.training = desc.training;
        apply.any_result = desc.any_result;
        applied_to(&apply, &applied);
        counts = (int32_t *)calloc((size_t)graph.node_count, sizeof *counts);
        for (i = 0; i < applied.graph.node_count; i++) {
            cost += applied.graph.nodes[i].fwd_cost + (desc.training ? applied.graph.nodes[i].bwd_cost : 0);
            bytes += applied.graph.nodes[i].param_bytes;
            if (applied.new_nodes[applied.nodes[i]] != i) counts[applied.nodes[i]]++;
        }
        for (i = 0; i < applied.graph.tensor_count; i++) bytes += applied.graph.outputs[i].bytes;
        assert_int_equal(applied.conversion_count, plan.conversion_count);
        for (i = 0; i < graph.node_count; i++) assert_int_equal(counts[i], plan.nodes[i].conversion_count);
        assert_int_equal(bytes, plan.bytes);
        if (desc.objective == TL_OBJECTIVE_TIME) assert_int_equal(cost, plan.cost);
        copies += applied.conversion_count;
        free(counts);
        tl_free_precision_graph(NULL, &applied);
        tl_free_precision_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(copies > rounds && narrow > rounds / 8);
}

static void an_input_has_the_format_that_saves_most(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- dies format=f32\n"
                               "node 1 a conv2d fwd=9 bwd=1 out=64 needs=in in=0 param=36\nnode 2 b softmax fwd=1 bwd=1 out=64 needs=in in=1 keep\nend 3\n";
    static const uint32_t asked[] = { 0, 1u << I8, 1u << F32 | 1u << I8, 1u << F32, 1u << I16 };
    static const uint8_t got[] = { F32, I8, I8, F32, I16 };
    static const char *const first[] = { "out=64 needs=none in=- dies format=f32", "out=16 needs=none in=- dies format=i8",
                                         "out=16 needs=none in=- dies format=i8", "out=64 needs=none in=- dies format=f32",
                                         "out=32 needs=none in=- dies format=i16" };
    tl_graph graph = graph_of(text);
    uint32_t inputs[3] = { 0 };
    uint64_t costs[5];
    char sentence[200], out[2048];
    int i;
    (void)state;
    for (i = 0; i < 5; i++) {
        tl_env env = silent_env();
        tl_precision_desc desc;
        tl_precision_plan plan;
        tl_precision_graph applied;
        tl_apply_desc apply;
        memset(&desc, 0, sizeof desc);
        memset(&apply, 0, sizeof apply);
        inputs[0] = asked[i];
        desc.graph = apply.graph = &graph;
        desc.loss_limit = 1;
        desc.schemes = 1u << F32 | 1u << I8;
        desc.allow_sensitive = 1;
        desc.objective = TL_OBJECTIVE_BYTES;
        desc.input_schemes = inputs;
        if (tl_plan_precision(&env, &desc, &plan)) fail_msg("%s", env.error.text);
        assert_int_equal(plan.nodes[0].scheme, got[i]);
        costs[i] = plan.cost;
        tl_explain_precision_node(&graph, &plan, 0, sentence, sizeof sentence);
        if (i == 1) assert_non_null(strstr(sentence, "x is a graph input: i8"));
        apply.plan = &plan;
        apply.any_input = 1;
        applied_to(&apply, &applied);
        assert_true(tl_print_graph(&applied.graph, out, sizeof out) < sizeof out);
        assert_non_null(strstr(out, first[i]));
        assert_int_equal(applied.formats[0], tl_find_scheme_format((tl_scheme)got[i]));
        tl_free_precision_graph(NULL, &applied);
        apply.any_input = 0;
        assert_int_equal(tl_apply_precision(&env, &apply, &applied), got[i] == F32 ? TL_OK : TL_ERROR_INVALID_ARG);
        tl_free_precision_graph(NULL, &applied);
        tl_free_precision_plan(NULL, &plan);
    }
    assert_true(costs[2] == costs[1] && costs[0] == costs[3] && costs[1] < costs[0]);     // a choice is the best of its parts
    for (i = 0; i < 3; i++) {
        static const uint32_t bad[][2] = { { 0, 1u << TL_SCHEME_I8_CHANNEL }, { 0, 1u << 31 }, { 1, 1u << I8 } };
        tl_env env = silent_env();
        tl_precision_desc desc;
        tl_precision_plan plan;
        memset(inputs, 0, sizeof inputs);
        memset(&desc, 0, sizeof desc);
        inputs[bad[i][0]] = bad[i][1];
        desc.graph = &graph;
        desc.input_schemes = inputs;
        assert_int_equal(tl_plan_precision(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, "input_schemes: of graph inputs alone, f32, f16, bf16, i16 and i8"));
    }
    tl_free_graph(NULL, &graph);
}

// -- what is refused --

static void broken_plans_are_refused(void **state) {
    static const uint8_t schemes[] = { F32, I8, I16 };
    double huge = 1e308;
    const double speedups[] = { 0.0, -1.0, huge * 10, -huge * 10 };
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a conv fwd=5 bwd=0 out=4 needs=none in=0 grad=no\n"
        "node 2 b conv fwd=5 bwd=0 out=4 needs=none in=1 grad=no\n");
    made_plan made;
    tl_apply_desc desc;
    tl_device device;
    volatile double zero = 0;
    int i;
    (void)state;
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
#define REFUSED(code, sentence) assert_refused(&desc, code, "tl_apply_precision: " sentence)
    made.plan.node_count = 2;
    REFUSED(TL_ERROR_INVALID_ARG, "plan: nodes: there must be one for each node of the graph");
    made.plan.node_count = 4;
    REFUSED(TL_ERROR_INVALID_ARG, "plan: nodes: there must be one for each node of the graph");
    made.plan.node_count = 3;
    made.plan.nodes = NULL;
    REFUSED(TL_ERROR_INVALID_ARG, "plan: nodes: there must be one for each node of the graph");
    made.plan.nodes = made.nodes;
    desc.training = 2;
    REFUSED(TL_ERROR_INVALID_ARG, "training, any_result, any_input: must be 0 or 1");
    desc.training = 0;
    desc.any_result = -1;
    REFUSED(TL_ERROR_INVALID_ARG, "training, any_result, any_input: must be 0 or 1");
    desc.any_result = 0;
    made.nodes[2].scheme = TL_SCHEME_COUNT;
    REFUSED(TL_ERROR_INVALID_ARG, "node 2 (b): scheme: there is no such");
    made.nodes[2].scheme = (tl_scheme)77;
    REFUSED(TL_ERROR_INVALID_ARG, "node 2 (b): scheme: there is no such");
    made.nodes[2].scheme = TL_SCHEME_I16;
    made.nodes[0].scheme = TL_SCHEME_F16;
    REFUSED(TL_ERROR_INVALID_ARG, "node 0 (x): scheme: a graph input must be f32");
    made.nodes[0].scheme = TL_SCHEME_F32;
    for (i = 0; i < 5; i++) {
        made.nodes[1].speedup = i < 4 ? speedups[i] : zero / zero;
        REFUSED(TL_ERROR_INVALID_ARG, "node 1 (a): speedup: must be finite and > 0");
    }
    made.nodes[1].speedup = 1e-300;
    REFUSED(TL_ERROR_OVERFLOW, "node 1 (a): speedup: the cost must fit 64 bits");
    made.nodes[1].speedup = made.nodes[2].speedup = 5.43e-19;  // 9.2e18 each, and the conversion of x
    OUTPUTS(&graph)[0].bytes = UINT64_C(1) << 60;
    REFUSED(TL_ERROR_OVERFLOW, "node 4 (b): fwd, bwd: the sum of all costs must fit 64 bits");
    made.nodes[1].speedup = made.nodes[2].speedup = 1;
    memset(&device, 0, sizeof device);
    device.alignment_bytes = 3;
    desc.device = &device;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_check_device: alignment_bytes: must be 0 or a power of two");
    device.alignment_bytes = 0;
    device.bytes_per_second = 1;
    OUTPUTS(&graph)[0].bytes = UINT64_C(1) << 60;
    REFUSED(TL_ERROR_OVERFLOW, "node 0 (x): device: the time of a conversion must fit 64 bits");
    OUTPUTS(&graph)[0].bytes = UINT64_C(7) << 60;
    desc.device = NULL;
    made.nodes[1].scheme = TL_SCHEME_F16;
    REFUSED(TL_ERROR_OVERFLOW, "node 1 (x_f16): out: the sum of all bytes, gradients included, must fit 64 bits");
    OUTPUTS(&graph)[0].node = 7;
    assert_refused(&desc, TL_ERROR_INVALID_ARG,
                   "tl_check_graph: node 0 (x): outputs: each must know its node and number");
    OUTPUTS(&graph)[0].node = 0;
    tl_free_graph(NULL, &graph);
}

static void broken_quantisations_are_refused(void **state) {
    static const struct { float scale; int32_t low, high, zero_point, rounding, wide; const char *rule; } rows[] = {
        { -1.0f, -128, 127, 0, 0, 0, "scale: must be finite and > 0" },
        { 0.0f, -128, 127, 0, 0, 0, "scale: must be finite and > 0" },
        { 3e38f, -128, 127, 128, 0, 0, "zero_point: must be within low .. high" },
        { 1.0f, -128, 127, 0, 2, 0, "rounding: no such rounding" },
        { 1.0f, -129, 127, 0, 0, 0, "low, high: are more than i8 holds" },
        { 1.0f, 0, 256, 0, 0, 0, "low, high: are more than i8 holds" },
        { 1.0f, -1, 32768, 0, 0, 1, "low, high: are more than i16 holds" } };
    static const uint8_t schemes[] = { F32, F32, I8, I16 };
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a conv fwd=5 bwd=0 out=4 needs=none in=0 grad=no\n"
        "node 2 b conv fwd=5 bwd=0 out=4 needs=none in=1 grad=no\n"
        "node 3 c conv fwd=5 bwd=0 out=4 needs=none in=1 grad=no\n");
    tl_quantization given[4];
    made_plan made;
    tl_apply_desc desc;
    char sentence[256];
    float huge = 1e38f;
    size_t i;
    (void)state;
    make_plan(&made, &graph, schemes);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        desc = apply_desc(&graph, &made);
        memset(given, 0, sizeof given);
        given[1] = quantization_of(rows[i].scale, 0, rows[i].low, rows[i].high);
        given[1].zero_point = rows[i].zero_point;
        given[1].rounding = (tl_rounding)rows[i].rounding;
        if (i == 1) given[1].scale = huge * 10;
        given[0] = quantization_of(-1.0f, 0, 7, 3);  // of a tensor that stays as it is: not read
        if (rows[i].wide) desc.wide_quantizations = given; else desc.quantizations = given;
        snprintf(sentence, sizeof sentence, "tl_apply_precision: node 1 (a): quantizations: %s", rows[i].rule);
        assert_refused(&desc, TL_ERROR_INVALID_ARG, sentence);
    }
    tl_free_graph(NULL, &graph);
}

static void every_failing_allocation_is_survived(void **state) {
    static const uint8_t schemes[] = { F32, F16, F32, BF16, F32, F16 };
    tl_graph graph = graph_of(TRAINED);
    tl_env plain_env = silent_env();
    tl_tensor of = { 1, 1 };
    made_plan made;
    tl_apply_desc desc;
    long at;
    (void)state;
    if (tl_add_view(&plain_env, &graph, "view", of, NULL)) fail_msg("%s", plain_env.error.text);
    make_plan(&made, &graph, schemes);
    desc = apply_desc(&graph, &made);
    desc.training = 1;
    for (at = 0;; at++) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_precision_graph applied;
        tl_result result = tl_apply_precision(&env, &desc, &applied);
        if (result) {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_true(is_zero(&applied, sizeof applied));
            assert_non_null(strstr(env.error.text, "no memory"));
        }
        tl_free_precision_graph(&env, &applied);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 8);
    tl_free_graph(NULL, &graph);
}

static void freeing_nothing_is_allowed(void **state) {
    tl_precision_graph applied;
    (void)state;
    memset(&applied, 0, sizeof applied);
    tl_free_precision_graph(NULL, &applied);
    tl_free_precision_graph(NULL, NULL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_format_is_converted_to_once),
        cmocka_unit_test(a_conversion_has_a_gradient_where_one_leads_on),
        cmocka_unit_test(without_training_gradients_end_at_conversions),
        cmocka_unit_test(names_of_conversions_are_unique),
        cmocka_unit_test(names_of_conversions_are_cut_between_characters),
        cmocka_unit_test(views_stand_for_the_same_tensors),
        cmocka_unit_test(integers_carry_their_quantisation),
        cmocka_unit_test(kernels_are_named_by_scheme_and_format),
        cmocka_unit_test(constants_are_those_of_the_scheme),
        cmocka_unit_test(what_flash_holds_is_counted),
        cmocka_unit_test(channels_must_be_known),
        cmocka_unit_test(weights_in_groups_take_whole_bytes),
        cmocka_unit_test(long_sums_do_not_have_weights_in_groups),
        cmocka_unit_test(conversions_cost_what_they_move),
        cmocka_unit_test(costs_are_divided_and_their_sum_is_rounded_once),
        cmocka_unit_test(random_plans_are_applied_by_the_rules),
        cmocka_unit_test(sums_are_those_of_the_plan),
        cmocka_unit_test(an_input_has_the_format_that_saves_most),
        cmocka_unit_test(broken_plans_are_refused),
        cmocka_unit_test(broken_quantisations_are_refused),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(freeing_nothing_is_allowed),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
