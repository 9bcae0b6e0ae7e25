// [3] GRAPH: builder, rules, chain, views, names, device, base bytes, .tlg text.
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

#include <time.h>

static const char *program;  // argv[0]: files of this test stand beside it

static const char *const references[] = {
    "models/encoder2.tlg", "models/gpt2_small.tlg", "models/gpt2_small_rl.tlg", "models/mlp8.tlg",
    "models/mobilenet_v2.tlg", "models/mobilenet_v2_rl.tlg", "models/resnet18.tlg", "models/unet.tlg",
    "models/unit10.tlg", "models/unit20.tlg", "models/unit50.tlg", "models/unit100.tlg", "models/unit1000.tlg",
    "models/vgg16.tlg", "models/vgg16_rl.tlg",
    "small/bwork_floor.tlg", "small/chain_needs_out.tlg", "small/chain_unit.tlg", "small/checkpoint_dropped_early.tlg",
    "small/diamond.tlg", "small/fan_out_three.tlg", "small/forward_phase_recompute.tlg", "small/fwork_floor.tlg",
    "small/grad_no_branch.tlg", "small/grad_no_unread.tlg", "small/infeasible_above_every_step.tlg",
    "small/inplace_costs_a_recompute.tlg", "small/inplace_relu.tlg", "small/keep_result.tlg",
    "small/multi_output_made_again.tlg", "small/multi_output_partial_drop.tlg", "small/multi_output_unread_part.tlg",
    "small/needs_every_form.tlg", "small/needs_second_input.tlg", "small/one_choice.tlg",
    "small/recompute_attractive.tlg", "small/recompute_unattractive.tlg", "small/residual.tlg",
    "small/saved_beside_output.tlg", "small/saved_large.tlg", "small/tensor_level_beats_stages.tlg",
    "small/three_times.tlg", "small/two_inputs.tlg", "small/two_nodes.tlg", "small/two_sinks.tlg",
    "small/zero_bytes.tlg", "small/zero_cost.tlg"
};
#define REFERENCE_COUNT ((int)(sizeof references / sizeof *references))

// Every attribute in its canonical form.
static const char sample_text[] =
    "tlg 2\n"
    "batch 32\n"
    "node 0 x input fwd=0 bwd=0 out=8,1 needs=none in=- keep fixed\n"
    "node 1 frozen conv fwd=3 bwd=0 out=8 needs=none in=0.1 fwork=2 param=7 grad=no once\n"
    "node 2 split relu fwd=4 bwd=5 out=8,0,3 needs=in0,out2 in=1,0.0 saved=5 bwork=6 swork=4 inplace=0 layer=0 unit=ffn\n"
    "node 3 y ce fwd=1 bwd=2 out=9 needs=in,out in=2.0,2.2,2.2 layer=11 unit=attention keep\n"
    "end 4\n";

static char *printed(const tl_graph *graph) {
    size_t length = tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1);
    assert_non_null(text);
    assert_int_equal(tl_print_graph(graph, text, length + 1), length);
    assert_int_equal(strlen(text), length);
    return text;
}

static void assert_empty(const tl_graph *graph) {
    tl_graph empty;
    memset(&empty, 0, sizeof empty);
    assert_memory_equal(graph, &empty, sizeof empty);
}

// expected: of version 2, or of version 1, which has no last line.
static void assert_prints(const tl_graph *graph, const char *expected) {
    char *text = printed(graph), *whole = (char *)malloc(strlen(expected) + 30);
    assert_non_null(whole);
    strcpy(whole, expected);
    if (!strncmp(expected, "tlg 1\n", 6)) {
        whole[4] = '2';
        snprintf(whole + strlen(whole), 20, "end %d\n", (int)graph->node_count);
    }
    assert_string_equal(text, whole);
    free(whole);
    free(text);
}

static tl_node_desc node_desc(void) {
    static const uint64_t one = 1;
    tl_node_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.output_bytes = &one;
    desc.output_count = 1;
    return desc;
}

static tl_tensor tensor_of(int32_t node, int32_t output) {
    tl_tensor tensor;
    tensor.node = node;
    tensor.output = output;
    return tensor;
}

// -- builder --

static void init_makes_an_empty_graph_and_free_accepts_it(void **state) {
    tl_graph graph;
    (void)state;
    memset(&graph, 0xff, sizeof graph);
    tl_init_graph(&graph);
    assert_empty(&graph);
    tl_free_graph(NULL, &graph);
    tl_free_graph(NULL, NULL);
    assert_empty(&graph);
}

static void add_node_fills_every_field(void **state) {
    static const uint64_t in_bytes[] = { 8, 4 }, bytes[] = { 8, 0, 3 };
    tl_env env = silent_env();
    tl_graph graph;
    tl_node_desc desc = node_desc();
    tl_tensor inputs[2];
    const tl_node *node;
    int32_t id = -1;
    (void)state;
    tl_init_graph(&graph);
    desc.name = "x"; desc.op = "input"; desc.output_bytes = in_bytes; desc.output_count = 2;
    assert_int_equal(tl_add_node(&env, &graph, &desc, &id), TL_OK);
    assert_int_equal(id, 0);
    assert_true(graph.nodes[0].is_input && !graph.nodes[0].has_grad);

    desc = node_desc();
    desc.output_bytes = in_bytes;
    desc.name = "a"; desc.op = "conv"; desc.no_grad = 1;
    assert_int_equal(tl_add_node(&env, &graph, &desc, &id), TL_OK);
    assert_int_equal(id, 1);
    assert_true(!graph.nodes[1].is_input && !graph.nodes[1].has_grad);
    assert_int_equal(graph.nodes[1].input_count, 0);
    assert_true(graph.nodes[1].origin == 1 && !graph.nodes[1].once && !graph.nodes[1].swork_bytes);

    inputs[0] = tensor_of(0, 1); inputs[1] = tensor_of(1, 0);
    desc.name = "b"; desc.op = "relu"; desc.unit = "ffn"; desc.needs = "in0,out2";
    desc.inputs = inputs; desc.input_count = 2; desc.output_bytes = bytes; desc.output_count = 3;
    desc.fwd_cost = 11; desc.bwd_cost = 12; desc.saved_bytes = 13; desc.fwork_bytes = 14; desc.bwork_bytes = 15;
    desc.param_bytes = 16; desc.layer = 1; desc.inplace = 2; desc.no_grad = 0; desc.keep = 1; desc.fixed = 1;
    desc.once = 1; desc.origin = 8; desc.swork_bytes = 17;
    assert_int_equal(tl_add_node(&env, &graph, &desc, &id), TL_OK);
    node = &graph.nodes[2];
    assert_false(node->takes_blocks);
    assert_int_equal(id, 2);
    assert_string_equal(tl_name_node(&graph, 2), "b");
    assert_string_equal(tl_name_op(&graph, 2), "relu");
    assert_string_equal(tl_name_unit(&graph, 2), "ffn");
    assert_true(node->first_input == 0 && node->input_count == 2 && node->first_output == 3 && node->output_count == 3);
    assert_true(node->fwd_cost == 11 && node->bwd_cost == 12 && node->saved_bytes == 13 && node->fwork_bytes == 14 &&
                node->bwork_bytes == 15 && node->param_bytes == 16);
    assert_true(node->layer == 0 && node->inplace == 1 && node->has_grad && node->keep && node->fixed && !node->is_input);
    assert_true(node->once && node->origin == 7 && node->swork_bytes == 17);
    assert_true(graph.inputs[0].tensor == 1 && graph.inputs[0].needed == 1);
    assert_true(graph.inputs[1].tensor == 2 && graph.inputs[1].needed == 0);
    assert_true(graph.outputs[3].node == 2 && graph.outputs[3].output == 0 && graph.outputs[3].bytes == 8 && !graph.outputs[3].needed);
    assert_true(graph.outputs[5].node == 2 && graph.outputs[5].output == 2 && graph.outputs[5].bytes == 3 && graph.outputs[5].needed);
    assert_true(graph.node_count == 3 && graph.input_count == 2 && graph.tensor_count == 6);
    assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
    tl_free_graph(&env, &graph);
    assert_empty(&graph);
}

// 0 is the scratch of a plain forward; that there is none has a name of its own.
static void swork_is_fwork_unless_given(void **state) {
    static const uint64_t given[] = { 0, 3, TL_SCRATCH_NONE }, expected[] = { 14, 3, 0 };
    tl_graph graph;
    tl_node_desc desc = node_desc();
    int i;
    (void)state;
    tl_init_graph(&graph);
    desc.saved_bytes = 1; desc.fwork_bytes = 14;
    for (i = 0; i < 3; i++) {
        desc.swork_bytes = given[i];
        desc.origin = 1 - i;
        assert_int_equal(tl_add_node(NULL, &graph, &desc, NULL), TL_OK);
        assert_true(graph.nodes[i].swork_bytes == expected[i]);
    }
    assert_true(graph.nodes[0].origin == 0 && graph.nodes[1].origin == 1 && graph.nodes[2].origin == -1);
    tl_free_graph(NULL, &graph);
}

static void add_node_zero_means_default(void **state) {
    tl_graph graph;
    tl_node_desc desc = node_desc();
    (void)state;
    tl_init_graph(&graph);
    assert_int_equal(tl_add_node(NULL, &graph, &desc, NULL), TL_OK);
    assert_int_equal(tl_add_node(NULL, &graph, &desc, NULL), TL_OK);
    assert_string_equal(tl_name_node(&graph, 1), "n1");
    assert_string_equal(tl_name_op(&graph, 1), "op");
    assert_string_equal(tl_name_unit(&graph, 1), "");
    assert_int_equal(graph.nodes[1].unit, 0);
    assert_true(graph.nodes[1].layer == -1 && graph.nodes[1].inplace == -1 && graph.nodes[1].has_grad);
    assert_prints(&graph, "tlg 1\nnode 0 n0 op fwd=0 bwd=0 out=1 needs=none in=-\n"
                          "node 1 n1 op fwd=0 bwd=0 out=1 needs=none in=-\n");
    tl_free_graph(NULL, &graph);
}

static void names_out_of_range_are_question_marks(void **state) {
    tl_graph graph = graph_of(sample_text), garbage = graph, empty;
    (void)state;
    assert_string_equal(tl_name_node(&graph, -1), "?");
    assert_string_equal(tl_name_node(&graph, 4), "?");
    assert_string_equal(tl_name_op(&graph, INT32_MAX), "?");
    assert_string_equal(tl_name_unit(&graph, INT32_MIN), "?");
    garbage.text_bytes = graph.nodes[3].name + 1;  // ends inside the name
    assert_string_equal(tl_name_node(&garbage, 3), "?");
    tl_init_graph(&empty);
    assert_string_equal(tl_name_node(&empty, 0), "?");
    tl_free_graph(NULL, &graph);
}

// What a wrong desc is answered with; the graph stays as it was and *id is 0.
static void refuses(tl_graph *graph, const tl_node_desc *desc, tl_result code, const char *text) {
    tl_env env = silent_env();
    tl_graph before = *graph;
    int32_t id = 77;
    assert_int_equal(tl_add_node(&env, graph, desc, &id), code);
    if (!strstr(env.error.text, text)) print_error("got \"%s\", not \"%s\"\n", env.error.text, text);
    assert_non_null(strstr(env.error.text, text));
    assert_non_null(strstr(env.error.text, "tl_add_node: "));
    assert_int_equal(env.error.code, code);
    assert_int_equal(id, 0);
    assert_true(graph->node_count == before.node_count && graph->input_count == before.input_count &&
                graph->tensor_count == before.tensor_count && graph->text_bytes == before.text_bytes);
    assert_prints(graph, sample_text);
    assert_int_equal(tl_check_graph(&env, graph), TL_OK);
}

static void add_node_refuses_wrong_descs(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(sample_text);
    tl_tensor inputs[2] = { { 2, 0 }, { 0, 0 } };  // 8 bytes each
    tl_node_desc plain = node_desc(), desc;
    uint64_t large = UINT64_MAX;
    (void)state;
    plain.inputs = inputs; plain.input_count = 2;
    plain.needs = "in";
#define REFUSES(change, code, text) do { desc = plain; change; refuses(&graph, &desc, code, text); } while (0)
    REFUSES(desc.name = "", TL_ERROR_INVALID_ARG, "node 4 (): name: must be 1 to 255 bytes");
    REFUSES(desc.name = "a b", TL_ERROR_INVALID_ARG, "node 4 (a b): name: ");
    REFUSES(desc.name = "a#", TL_ERROR_INVALID_ARG, "name: ");
    REFUSES(desc.name = "a\nb", TL_ERROR_INVALID_ARG, "node 4 (a?b): name: ");
    REFUSES(desc.op = "x=1", TL_ERROR_INVALID_ARG, "node 4 (n4): op: ");
    REFUSES(desc.op = "", TL_ERROR_INVALID_ARG, "op: ");
    REFUSES(desc.unit = "f fn", TL_ERROR_INVALID_ARG, "unit: ");
    REFUSES(desc.input_count = -1, TL_ERROR_INVALID_ARG, "inputs: missing, or a negative count");
    REFUSES(desc.inputs = NULL, TL_ERROR_INVALID_ARG, "inputs: missing");
    REFUSES(desc.output_count = 0, TL_ERROR_INVALID_ARG, "outputs: there must be at least one");
    REFUSES(desc.output_count = -3, TL_ERROR_INVALID_ARG, "outputs: there must be at least one");
    REFUSES(desc.output_bytes = NULL, TL_ERROR_INVALID_ARG, "outputs: there must be at least one");
    REFUSES(desc.inplace = -1, TL_ERROR_INVALID_ARG, "inplace: there is no such input");
    REFUSES(desc.inplace = 3, TL_ERROR_INVALID_ARG, "inplace: there is no such input");
    REFUSES(desc.inplace = 1, TL_ERROR_INVALID_ARG, "inplace: the input must have the bytes of output 0");
    REFUSES(desc.inplace = 2, TL_ERROR_INVALID_ARG, "inplace: a graph input must not be overwritten");
    REFUSES(desc.layer = -1, TL_ERROR_INVALID_ARG, "layer: must not be negative");
    REFUSES(desc.keep = 2, TL_ERROR_INVALID_ARG, "no_grad, keep, fixed, takes_blocks, dynamic, dies: must be 0 or 1; once: TL_ONCE_LATE, too");
    REFUSES(desc.fixed = -1, TL_ERROR_INVALID_ARG, "must be 0 or 1");
    REFUSES(desc.takes_blocks = 2, TL_ERROR_INVALID_ARG, "takes_blocks, dynamic, dies: must be 0 or 1");
    REFUSES(desc.dynamic = 2, TL_ERROR_INVALID_ARG, "takes_blocks, dynamic, dies: must be 0 or 1");
    REFUSES(desc.no_grad = 256, TL_ERROR_INVALID_ARG, "must be 0 or 1");
    REFUSES(desc.no_grad = 1, TL_ERROR_INVALID_ARG, "needs: must be none where there is no gradient");
    REFUSES((desc.no_grad = 1, desc.needs = "out"), TL_ERROR_INVALID_ARG, "needs: must be none where there is no gradient");
    plain.needs = 0;
    REFUSES((desc.no_grad = 1, desc.bwd_cost = 1), TL_ERROR_INVALID_ARG, "bwd: must be 0 where there is no gradient");
    REFUSES((desc.no_grad = 1, desc.saved_bytes = 1), TL_ERROR_INVALID_ARG, "saved: must be 0 where");
    REFUSES((desc.no_grad = 1, desc.bwork_bytes = 1), TL_ERROR_INVALID_ARG, "bwork: must be 0 where");
    REFUSES(inputs[0].node = 4, TL_ERROR_INVALID_ARG, "inputs: 4.0 is not made by a node above it");
    REFUSES(inputs[0].node = -1, TL_ERROR_INVALID_ARG, "inputs: -1.0 is not made by a node above it");
    REFUSES((inputs[0].node = 2, inputs[0].output = 3), TL_ERROR_INVALID_ARG, "inputs: 2.3 is not made");
    REFUSES(inputs[0].output = INT32_MIN, TL_ERROR_INVALID_ARG, "inputs: 2.-2147483648 is not made");
    inputs[0].output = 0;
    REFUSES(desc.op = "input", TL_ERROR_INVALID_ARG, "inputs: an input must have none of its own");
    plain.input_count = 0;
    REFUSES((desc.op = "input", desc.fwd_cost = 1), TL_ERROR_INVALID_ARG, "fwd: must be 0 for an input");
    REFUSES((desc.op = "input", desc.bwd_cost = 1), TL_ERROR_INVALID_ARG, "bwd: must be 0");
    REFUSES((desc.op = "input", desc.fwork_bytes = 1), TL_ERROR_INVALID_ARG, "fwork: must be 0 for an input");
    REFUSES((desc.op = "input", desc.param_bytes = 1), TL_ERROR_INVALID_ARG, "param: must be 0 for an input");
    REFUSES((desc.op = "input", desc.swork_bytes = 1), TL_ERROR_INVALID_ARG, "swork: must be 0 for an input");
    REFUSES((desc.op = "input", desc.once = 1), TL_ERROR_INVALID_ARG, "once: an input has no forward");
    REFUSES(desc.once = TL_ONCE_LATE, TL_ERROR_INVALID_ARG, "late: is of a node whose backward needs all of its outputs, without saved bytes");
    REFUSES(desc.once = 3, TL_ERROR_INVALID_ARG, "no_grad, keep, fixed, takes_blocks, dynamic, dies: must be 0 or 1; once: TL_ONCE_LATE, too");
    REFUSES(desc.origin = -2, TL_ERROR_INVALID_ARG, "origin: must name a node, or be -1");
    REFUSES((desc.op = "input", desc.needs = "out"), TL_ERROR_INVALID_ARG, "needs: must be none");
    REFUSES(desc.output_bytes = &large, TL_ERROR_OVERFLOW, "out: the sum of all bytes, gradients included");
    REFUSES((desc.saved_bytes = large), TL_ERROR_OVERFLOW, "saved, fwork, swork, bwork: the sum of all bytes");
    REFUSES((desc.swork_bytes = large - 1), TL_ERROR_OVERFLOW, "saved, fwork, swork, bwork: the sum of all bytes");
    REFUSES((desc.fwd_cost = large, desc.bwd_cost = 1), TL_ERROR_OVERFLOW, "fwd, bwd: the sum of all costs");
#undef REFUSES
    tl_free_graph(&env, &graph);
}

static void needs_takes_every_form_and_nothing_else(void **state) {
    // what is set: inputs 0 and 1, then outputs 0, 1, 2
    static const struct { const char *text; int bits; } good[] = {
        { "none", 0 }, { "in", 3 }, { "out", 28 }, { "in,out", 31 }, { "out,in", 31 }, { "in0", 1 }, { "in1", 2 },
        { "out0", 4 }, { "out1,out2", 24 }, { "in1,out", 30 }, { "out2,in", 19 }, { "in,in", 3 }, { "in0,in", 3 },
        { "in01", 2 }, { "out0,out0", 4 }
    };
    static const char *const bad[] = {
        "", ",", "in,", ",in", "in,,out", "in2", "out3", "in-1", "in+1", "in0x", "in 0", "inn", "input", "ou", "o", "i",
        "outs", "IN", "none,in", "in,none", "in4294967296", "out99999999999999999999", "in0;out", "in.0", "nonee", "non"
    };
    static const uint64_t bytes[3] = { 1, 2, 3 };
    tl_tensor inputs[2] = { { 0, 0 }, { 0, 0 } };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof good / sizeof *good + sizeof bad / sizeof *bad; i++) {
        int is_good = i < sizeof good / sizeof *good;
        tl_env env = silent_env();
        tl_graph graph;
        tl_node_desc desc = node_desc();
        int32_t k;
        tl_init_graph(&graph);
        assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
        desc.inputs = inputs; desc.input_count = 2; desc.output_bytes = bytes; desc.output_count = 3;
        desc.needs = is_good ? good[i].text : bad[i - sizeof good / sizeof *good];
        assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), is_good ? TL_OK : TL_ERROR_INVALID_ARG);
        if (!is_good) assert_string_equal(env.error.text, "tl_add_node: node 1 (n1): needs: must be none, or a list of in, in<k>, out, out<k> that exist");
        for (k = 0; k < 5 && is_good; k++)
            assert_int_equal(k < 2 ? graph.inputs[k].needed : graph.outputs[k - 1].needed, good[i].bits >> k & 1);
        tl_free_graph(&env, &graph);
    }
}

static void needs_in_of_a_node_without_inputs_is_none(void **state) {
    tl_graph graph;
    tl_node_desc desc = node_desc();
    (void)state;
    tl_init_graph(&graph);
    desc.needs = "in";
    assert_int_equal(tl_add_node(NULL, &graph, &desc, NULL), TL_OK);
    assert_prints(&graph, "tlg 1\nnode 0 n0 op fwd=0 bwd=0 out=1 needs=none in=-\n");
    tl_free_graph(NULL, &graph);
}

static void names_are_visible_and_of_at_most_255_bytes(void **state) {
    char name[258] = "a?b";
    int c;
    (void)state;
    for (c = 1; c < 256; c++) {
        tl_graph graph;
        tl_node_desc desc = node_desc();
        tl_init_graph(&graph);
        name[1] = (char)c;
        desc.name = name;
        assert_int_equal(tl_add_node(NULL, &graph, &desc, NULL),
                         c > ' ' && c < 127 && c != '#' && c != '=' ? TL_OK : TL_ERROR_INVALID_ARG);
        tl_free_graph(NULL, &graph);
    }
    for (c = 255; c < 257; c++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_node_desc desc = node_desc();
        tl_init_graph(&graph);
        memset(name, 'z', sizeof name);
        name[c] = 0;
        desc.name = name;
        assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), c == 255 ? TL_OK : TL_ERROR_INVALID_ARG);
        if (c == 256) assert_non_null(strstr(env.error.text, "zzzz...): name: must be 1 to 255"));
        tl_free_graph(&env, &graph);
    }
}

// The result of adding a node of this name, op and unit, each alone.
static tl_result add_named(tl_env *env, const char *name) {
    tl_result results[3];
    int k;
    for (k = 0; k < 3; k++) {
        tl_graph graph;
        tl_node_desc desc = node_desc();
        tl_init_graph(&graph);
        if (k == 0) desc.op = name;
        else if (k == 1) desc.unit = name;
        else desc.name = name;
        results[k] = tl_add_node(env, &graph, &desc, NULL);
        if (!results[k]) assert_string_equal(k == 0 ? tl_name_op(&graph, 0) : k == 1 ? tl_name_unit(&graph, 0) : tl_name_node(&graph, 0), name);
        tl_free_graph(env, &graph);
    }
    assert_int_equal(results[0], results[1]);
    assert_int_equal(results[0], results[2]);
    return results[0];
}

static void names_may_be_utf8(void **state) {
    static const char *const good[] = {
        "gr\xc3\xb6\xc3\x9f\x65", "\xc2\xa1", "\xdf\xbf", "\xe0\xa0\x80", "\xe2\x80\x90", "\xe2\x80\xa7", "\xe2\x80\xb0", "\xe2\x81\x9e", "\xe2\x81\xb0",
        "\xe5\xb1\xa4_1", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbd"
    };
    static const char *const hostile[] = {
        "\x80", "\xbf", "a\xc3", "\xc3(", "\xe5\xb1", "\xe5\xb1(", "\xf0\x9f\x98", "\xf0\x9f\x98(",      // stray and truncated
        "\xc0\xa3", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",                              // overlong
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80",                              // surrogates
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff",            // beyond U+10FFFF
        "\xc2\x80", "\xc2\x9f", "\xc2\xa0", "\xc2\xad", "\xe1\x9a\x80", "\xe1\xa0\x8e", "\xe2\x80\x80", "\xe2\x80\x8b", "\xe2\x80\x8f",
        "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe2\x81\xa0", "\xe2\x81\xa7", "\xe2\x81\xaf",
        "\xcd\x8f", "\xd8\x9c", "\xe1\x85\x9f", "\xe3\x85\xa4", "\xef\xb8\x8f", "\xef\xbe\xa0", "\xf3\xa0\x81\xa1",
        "\xe3\x80\x80", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf", "\xf0\x9f\xbf\xbe", "\xf4\x8f\xbf\xbf"
    };
    tl_env env = silent_env();
    size_t i;
    (void)state;
    for (i = 0; i < sizeof good / sizeof *good; i++)
        if (add_named(&env, good[i])) fail_msg("%s: %s", good[i], env.error.text);
    for (i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s", hostile[i]);
        if (!add_named(&env, name)) fail_msg("hostile %d is accepted", (int)i);
        assert_int_equal(env.error.code, TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, "name: " TLI_NAME_RULE));
        snprintf(name, sizeof name, "a%s1", hostile[i]);
        assert_int_equal(add_named(&env, name), TL_ERROR_INVALID_ARG);
    }
}

static void utf8_names_print_parse_and_are_found(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 \xe5\xb1\xa4 gr\xc3\xb6\xc3\x9f\x65 fwd=1 bwd=2 out=4,4 needs=in in=0 unit=\xf0\x9f\x98\x80\n";
    tl_graph graph = graph_of(text);
    tl_graph marked = graph_of("\xEF\xBB\xBFtlg 1 # caf\xe9\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n");
    tl_tensor found;
    (void)state;
    assert_prints(&graph, text);
    assert_prints(&marked, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n");
    assert_int_equal(tl_find_tensor(NULL, &graph, "\xe5\xb1\xa4.1", &found), TL_OK);
    assert_true(found.node == 1 && found.output == 1);
    tl_free_graph(NULL, &graph);
    tl_free_graph(NULL, &marked);
}

static void sentences_hold_48_bytes_of_a_name_and_whole_characters(void **state) {
    static const struct { const char *unit; int count; const char *last; int whole; const char *after; } rows[] = {
        { "z", 47, "", 47, "" }, { "z", 48, "", 48, "" }, { "z", 49, "", 48, "..." },
        { "\xc3\xb6", 24, "", 24, "" }, { "\xc3\xb6", 25, "", 24, "..." }, { "\xe5\xb1\xa4", 16, "", 16, "" },
        { "z", 47, "\xc3\xb6", 47, "..." }, { "z", 46, "\xc3\xb6", 46, "\xc3\xb6" }, { "z", 47, "\x01", 47, "?" }, { "z", 48, "\x01", 48, "..." }
    };
    tl_env env = silent_env();
    tl_graph graph = graph_of(sample_text);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[128] = "", expected[248] = "tl_find_tensor: name: no tensor is called ";
        tl_tensor found;
        int k;
        for (k = 0; k < rows[i].count; k++) strcat(name, rows[i].unit);
        for (k = 0; k < rows[i].whole; k++) strcat(expected, rows[i].unit);
        strcat(name, rows[i].last);
        strcat(expected, rows[i].after);
        assert_int_equal(tl_find_tensor(&env, &graph, name, &found), TL_ERROR_NOT_FOUND);
        assert_string_equal(env.error.text, expected);
    }
    tl_free_graph(&env, &graph);
}

static void adding_nodes_allocates_ever_more_rarely(void **state) {
    failing_alloc f;
    tl_env env;
    tl_graph graph;
    tl_chain_desc chain;
    (void)state;
    memset(&f, 0, sizeof f);
    env = failing_env(&f, -1);
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 100000;
    assert_int_equal(tl_add_chain(&env, &graph, &chain), TL_OK);
    assert_true(f.count < 100);
    assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
    tl_free_graph(&env, &graph);
    assert_int_equal(f.live, 0);
}

static void counts_beyond_31_bits_are_an_overflow(void **state) {
    tl_graph graph = graph_of(sample_text), full;
    tl_env env = silent_env();
    tl_node_desc desc = node_desc();
    tl_tensor storage;
    tl_tensor input = { 0, 0 };
    (void)state;
    full = graph; full.node_count = INT32_MAX;
    assert_int_equal(tl_add_node(&env, &full, &desc, NULL), TL_ERROR_OVERFLOW);
    full = graph; full.tensor_count = INT32_MAX;
    assert_int_equal(tl_add_node(&env, &full, &desc, NULL), TL_ERROR_OVERFLOW);
    full = graph; full.text_bytes = INT32_MAX - 1;
    assert_int_equal(tl_add_node(&env, &full, &desc, NULL), TL_ERROR_OVERFLOW);
    full = graph; full.view_count = INT32_MAX;
    assert_int_equal(tl_add_view(&env, &full, "v", input, &storage), TL_ERROR_OVERFLOW);
    desc.inputs = &input; desc.input_count = INT32_MAX;
    assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_ERROR_OVERFLOW);
    assert_string_equal(env.error.text, "tl_add_node: graph: counts must stay below 2^31");
    assert_prints(&graph, sample_text);
    tl_free_graph(&env, &graph);
}

// -- check --

// A graph of its own for each broken rule; arrays that the change hides are freed all the same.
static void breaks(void (*change)(tl_graph *graph), tl_result code, const char *text) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(sample_text), kept;
    tl_tensor of = { 1, 0 };
    assert_int_equal(tl_add_view(&env, &graph, "v", of, NULL), TL_OK);
    assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
    kept = graph;
    change(&graph);
    assert_int_equal(tl_check_graph(&env, &graph), code);
    if (!strstr(env.error.text, text)) print_error("got \"%s\", not \"%s\"\n", env.error.text, text);
    assert_non_null(strstr(env.error.text, text));
    assert_ptr_equal(strstr(env.error.text, "tl_check_graph: "), env.error.text);
    tl_free_graph(&env, &kept);
}

// node 2 has inputs 1.0 and 0.0: inputs[1], inputs[2]; tensors: 0 1 | 2 | 3 4 5 | 6
#define BREAKS(X) \
    X(g->node_count = 0, "nodes: missing, or fewer than one") \
    X(g->node_count = -1, "nodes: missing, or fewer than one") \
    X(g->nodes = NULL, "nodes: missing, or fewer than one") \
    X(g->input_count = -1, "inputs: missing, or a negative count") \
    X(g->inputs = NULL, "inputs: missing") \
    X(g->outputs = NULL, "outputs: missing") \
    X(g->tensor_count = -5, "outputs: missing, or a negative count") \
    X(g->views = NULL, "views: missing") \
    X(g->view_count = -1, "views: missing, or a negative count") \
    X(g->text = NULL, "text: must end with 0") \
    X(g->text_bytes = 0, "text: must end with 0") \
    X(TEXT(g)[g->text_bytes - 1] = 'x', "text: must end with 0") \
    X(NODES(g)[0].first_input = 1, "node 0 (x): inputs: must follow those of the node above") \
    X(NODES(g)[2].first_input = -1, "node 2 (split): inputs: must follow") \
    X(NODES(g)[2].input_count = -1, "node 2 (split): inputs: must follow") \
    X(NODES(g)[1].input_count = 0, "node 2 (split): inputs: must follow") \
    X(NODES(g)[3].input_count = INT32_MAX, "node 3 (y): inputs: must follow") \
    X(g->input_count--, "node 3 (y): inputs: must follow") \
    X(g->input_count++, "inputs, outputs: each must belong to a node") \
    X(NODES(g)[3].input_count--, "inputs, outputs: each must belong to a node") \
    X(NODES(g)[2].output_count = 0, "node 2 (split): outputs: there must be at least one") \
    X(NODES(g)[2].output_count = -1, "outputs: there must be at least one") \
    X(NODES(g)[2].first_output = 2, "node 2 (split): outputs: must follow") \
    X(NODES(g)[3].output_count = INT32_MAX, "node 3 (y): outputs: must follow") \
    X(g->tensor_count--, "node 3 (y): outputs: must follow") \
    X(g->tensor_count = g->tensor_count + 1, "inputs, outputs: each must belong to a node") \
    X(NODES(g)[1].name = g->text_bytes, "node 1 (?): name: must be 1 to 255") \
    X(NODES(g)[1].name = UINT32_MAX, "node 1 (?): name: must be") \
    X(NODES(g)[1].name = 0, "node 1 (): name: must be") \
    X(TEXT(g)[NODES(g)[1].name] = ' ', "node 1 ( rozen): name: must be") \
    X(NODES(g)[1].op = g->text_bytes, "node 1 (frozen): op: must be 1 to 255") \
    X(NODES(g)[1].op = 0, "op: must be 1 to 255") \
    X(NODES(g)[1].unit = g->text_bytes + 7, "unit: must be 1 to 255") \
    X(TEXT(g)[NODES(g)[2].unit] = '#', "unit: must be 1 to 255") \
    X(NODES(g)[1].is_input = 3, "flags: must be 0 or 1") \
    X(NODES(g)[2].has_grad = 255, "flags: must be 0 or 1") \
    X(NODES(g)[2].keep = 2, "flags: must be 0 or 1") \
    X(NODES(g)[2].fixed = 2, "flags: must be 0 or 1") \
    X(NODES(g)[2].takes_blocks = 2, "flags: must be 0 or 1") \
    X(NODES(g)[2].dynamic = 2, "flags: must be 0 or 1") \
    X(NODES(g)[2].once = 3, "flags: must be 0 or 1") \
    X(NODES(g)[2].origin = -2, "origin: must name a node, or be -1") \
    X(NODES(g)[2].origin = INT32_MAX, "origin: must name a node, or be -1") \
    X(NODES(g)[0].swork_bytes = 1, "swork: must be 0 for an input") \
    X(NODES(g)[0].once = 1, "once: an input has no forward") \
    X(NODES(g)[1].is_input = 1, "op: must be input exactly for inputs") \
    X(NODES(g)[1].is_input = 2, "op: must be input exactly for inputs") \
    X(NODES(g)[0].is_input = 0, "op: must be input exactly for inputs") \
    X(NODES(g)[2].layer = -2, "layer: must be a number below") \
    X(NODES(g)[2].layer = INT32_MAX, "layer: must be a number below") \
    X(NODES(g)[0].has_grad = 1, "node 0 (x): grad: an input must have none") \
    X(NODES(g)[0].fwd_cost = 1, "fwd: must be 0 for an input") \
    X(NODES(g)[0].fwork_bytes = 1, "fwork: must be 0 for an input") \
    X(NODES(g)[0].param_bytes = 1, "param: must be 0 for an input") \
    X(NODES(g)[0].bwd_cost = 1, "bwd: must be 0 where there is no gradient") \
    X(NODES(g)[0].saved_bytes = 1, "saved: must be 0 where there is no gradient") \
    X(NODES(g)[0].bwork_bytes = 1, "bwork: must be 0 where there is no gradient") \
    X(OUTPUTS(g)[1].needed = 1, "node 0 (x): needs: must be none where there is no gradient") \
    X(NODES(g)[1].bwd_cost = 1, "node 1 (frozen): bwd: must be 0") \
    X(NODES(g)[1].saved_bytes = 1, "node 1 (frozen): saved: must be 0") \
    X(NODES(g)[1].bwork_bytes = 1, "node 1 (frozen): bwork: must be 0") \
    X(INPUTS(g)[0].needed = 1, "node 1 (frozen): needs: must be none") \
    X(OUTPUTS(g)[2].needed = 1, "node 1 (frozen): needs: must be none") \
    X(INPUTS(g)[1].needed = 2, "node 2 (split): needs: must be none") \
    X(INPUTS(g)[1].tensor = -1, "node 2 (split): inputs: each must be made by a node above it") \
    X(INPUTS(g)[1].tensor = 3, "node 2 (split): inputs: each must be made by a node above it") \
    X(INPUTS(g)[1].tensor = INT32_MAX, "node 2 (split): inputs: each must be made") \
    X(INPUTS(g)[0].tensor = 2, "node 1 (frozen): inputs: each must be made") \
    X(OUTPUTS(g)[4].node = 1, "node 2 (split): outputs: each must know its node and number") \
    X(OUTPUTS(g)[4].output = 0, "outputs: each must know its node and number") \
    X(NODES(g)[2].inplace = 2, "inplace: there is no such input") \
    X(NODES(g)[2].inplace = -2, "inplace: there is no such input") \
    X(NODES(g)[2].inplace = 1, "inplace: a graph input must not be overwritten") \
    X(OUTPUTS(g)[3].bytes = 7, "inplace: the input must have the bytes of output 0") \
    X(VIEWS(g)[0].name = 0, "view 0 (): name: must be") \
    X(VIEWS(g)[0].name = g->text_bytes, "view 0 (?): name: must be") \
    X(VIEWS(g)[0].tensor = -1, "view 0 (v): tensor: there is no such output") \
    X(VIEWS(g)[0].tensor = 7, "view 0 (v): tensor: there is no such output") \
    X(NODES(g)[3].name = NODES(g)[1].name, "node 3 (frozen): name: must be unique") \
    X((NODES(g)[3].name = NODES(g)[1].name, NODES(g)[2].name = NODES(g)[0].name), "node 2 (x): name: must be unique") \
    X(VIEWS(g)[0].name = NODES(g)[3].name, "view 0 (y): name: must be unique")

#define OVERFLOWS(X) \
    X(OUTPUTS(g)[6].bytes = UINT64_MAX / 2 + 1, "node 3 (y): out: the sum of all bytes") \
    X((OUTPUTS(g)[5].bytes = UINT64_MAX / 4, OUTPUTS(g)[6].bytes = UINT64_MAX / 4), "node 3 (y): out: the sum of all bytes") \
    X(NODES(g)[3].saved_bytes = UINT64_MAX - 74, "node 3 (y): saved, fwork, swork, bwork: the sum of all bytes") \
    X(NODES(g)[3].fwork_bytes = UINT64_MAX - 74, "node 3 (y): saved, fwork, swork, bwork: the sum of all bytes") \
    X(NODES(g)[3].swork_bytes = UINT64_MAX - 74, "node 3 (y): saved, fwork, swork, bwork: the sum of all bytes") \
    X(NODES(g)[3].bwork_bytes = UINT64_MAX - 74, "node 3 (y): saved, fwork, swork, bwork: the sum of all bytes") \
    X(NODES(g)[3].fwd_cost = UINT64_MAX - 11, "node 3 (y): fwd, bwd: the sum of all costs") \
    X(NODES(g)[3].bwd_cost = UINT64_MAX - 12, "node 3 (y): fwd, bwd: the sum of all costs") \
    X(NODES(g)[3].param_bytes = UINT64_MAX - 6, "node 3 (y): param: the sum of all weights")

static int broken_rule;

static void break_rule(tl_graph *g) {
    int i = 0;
#define BREAK(change, text) if (i++ == broken_rule) { change; }
    BREAKS(BREAK)
    OVERFLOWS(BREAK)
#undef BREAK
}

static void check_graph_holds_every_rule(void **state) {
    (void)state;
    broken_rule = 0;
#define BREAK(change, text) breaks(break_rule, TL_ERROR_INVALID_ARG, text); broken_rule++;
    BREAKS(BREAK)
#undef BREAK
#define BREAK(change, text) breaks(break_rule, TL_ERROR_OVERFLOW, text); broken_rule++;
    OVERFLOWS(BREAK)
#undef BREAK
}

static void check_graph_sums_fit_to_the_last_unit(void **state) {
    tl_graph graph = graph_of(sample_text);
    (void)state;
    // bytes: outputs 37 twice, saved 5, fwork 2, swork 4, bwork 6 = 91; costs 15; weights 7
    NODES(&graph)[3].saved_bytes = UINT64_MAX - 91;
    NODES(&graph)[3].fwd_cost += UINT64_MAX - 15;
    NODES(&graph)[3].param_bytes = UINT64_MAX - 7;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
    NODES(&graph)[3].saved_bytes++;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_ERROR_OVERFLOW);
    NODES(&graph)[3].saved_bytes--;
    NODES(&graph)[3].fwd_cost++;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_ERROR_OVERFLOW);
    NODES(&graph)[3].fwd_cost--;
    NODES(&graph)[3].param_bytes++;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_ERROR_OVERFLOW);
    tl_free_graph(NULL, &graph);
}

static void check_graph_accepts_a_graph_made_by_hand(void **state) {
    static char text[] = "x\0input\0y\0op\0";  // the last 0 is the empty text
    tl_node nodes[2];
    tl_node_input input;
    tl_node_output outputs[2];
    tl_graph graph;
    (void)state;
    memset(nodes, 0, sizeof nodes);
    memset(&input, 0, sizeof input);
    memset(outputs, 0, sizeof outputs);
    tl_init_graph(&graph);
    nodes[0].op = 2; nodes[0].unit = 13; nodes[0].output_count = 1; nodes[0].is_input = 1;
    nodes[1].name = 8; nodes[1].op = 10; nodes[1].unit = 13; nodes[1].input_count = 1; nodes[1].first_output = 1;
    nodes[1].output_count = 1; nodes[1].has_grad = 1;
    nodes[0].inplace = nodes[1].inplace = nodes[0].layer = nodes[1].layer = -1;
    input.needed = 1;
    outputs[1].node = 1;
    graph.nodes = nodes; graph.node_count = 2; graph.inputs = &input; graph.input_count = 1;
    graph.outputs = outputs; graph.tensor_count = 2; graph.text = text; graph.text_bytes = sizeof text;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
    assert_prints(&graph, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=0 needs=none in=-\nnode 1 y op fwd=0 bwd=0 out=0 needs=in in=0\n");
}

static void check_graph_survives_garbage(void **state) {
    tl_random random = { 20240601 };
    int round, accepted = 0;
    (void)state;
    for (round = 0; round < 30000; round++) {
        tl_env env = silent_env();
        tl_graph graph, kept;
        tl_tensor of = { 0, 0 };
        void *arrays[6];
        size_t bytes[6];
        int changes;
        tl_result result;
        assert_int_equal(random_graph(&env, &random, 6, &graph), TL_OK);
        assert_int_equal(tl_add_view(&env, &graph, "v", of, NULL), TL_OK);
        kept = graph;
        arrays[0] = NODES(&graph);   bytes[0] = sizeof *graph.nodes * (size_t)graph.node_count;
        arrays[1] = INPUTS(&graph);  bytes[1] = sizeof *graph.inputs * (size_t)graph.input_count;
        arrays[2] = OUTPUTS(&graph); bytes[2] = sizeof *graph.outputs * (size_t)graph.tensor_count;
        arrays[3] = VIEWS(&graph);   bytes[3] = sizeof *graph.views;
        arrays[4] = TEXT(&graph);    bytes[4] = graph.text_bytes;
        arrays[5] = &graph.text_bytes; bytes[5] = 0;
        for (changes = random_count(&random, 1, 3); changes > 0; changes--) {
            int which = random_count(&random, 0, 5);
            if (bytes[which]) {  // one byte, sometimes a whole field of ones
                size_t at = (size_t)tl_next_random_below(&random, bytes[which]);
                ((unsigned char *)arrays[which])[at] = (unsigned char)tl_next_random(&random);
                if (random_chance(&random, 30) && at % 4 == 0 && at + 4 <= bytes[which])
                    memset((unsigned char *)arrays[which] + at, 0xff, 4);
            } else {  // counts may shrink: the arrays are not longer than they are
                if (random_chance(&random, 50)) graph.node_count = random_count(&random, -1, graph.node_count);
                else graph.text_bytes = (uint32_t)tl_next_random_below(&random, (uint64_t)graph.text_bytes + 1);
                if (!graph.text_bytes || graph.node_count < 1) break;
            }
        }
        result = tl_check_graph(&env, &graph);
        assert_true(result == TL_OK || result == TL_ERROR_INVALID_ARG || result == TL_ERROR_OVERFLOW);
        if (!result) { free(printed(&graph)); accepted++; }
        tl_free_graph(&env, &kept);
    }
    assert_in_range(accepted, 1000, 25000);  // costs and sizes may be any number, indices may not
}

// Whether a text is read; the graph prints as it then, and is the caller's. rule: why it must be refused; NULL = it is read.
static int is_read(const char *text, const char *rule, tl_graph *graph) {
    tl_env env = silent_env();
    tl_result result = tl_parse_graph(&env, text, strlen(text), graph);
    if (rule) {
        assert_int_equal(result, TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, rule)) fail_msg("%s", env.error.text);
        assert_int_equal(graph->node_count, 0);
        return 0;
    }
    if (result) fail_msg("%s", env.error.text);
    assert_prints(graph, text);
    return 1;
}

// takes_blocks: what a range of elements is must be known of every operand.
static void takes_blocks_is_for_nodes_whose_elements_correspond(void **state) {
    static const struct { const char *line, *rule; } lines[] = {
        { "node 3 y add fwd=1 bwd=1 out=8 needs=in in=1,2 fwork=5 bwork=3 inplace=1 takes_blocks", NULL },
        { "node 3 y add fwd=1 bwd=1 out=8,8 needs=in in=1,2 takes_blocks", NULL },
        { "node 3 y add fwd=1 bwd=1 out=8 needs=in in=2,0.0,0.1 takes_blocks", NULL },  // 3 bytes: given whole
        { "node 3 y add fwd=1 bwd=0 out=1 needs=none in=1,2 grad=no takes_blocks", NULL },
        { "node 3 y rand fwd=1 bwd=1 out=9 needs=none in=- takes_blocks", NULL },
        { "node 3 y add fwd=1 bwd=1 out=4 needs=none in=0.0,1 takes_blocks",
          "takes_blocks: inputs to which a gradient passes must have the bytes of the outputs" },
        { "node 3 y add fwd=1 bwd=1 out=8,4 needs=none in=1 takes_blocks",
          "takes_blocks: all outputs must have the same bytes" },
        { "node 3 y add fwd=1 bwd=1 out=8 needs=none in=1 saved=8 takes_blocks", "takes_blocks: saved must be 0" },
        { "node 3 y input fwd=0 bwd=0 out=8 needs=none in=- takes_blocks", "takes_blocks: an input has no kernels" }
    };
    int i;
    (void)state;
    for (i = 0; i < (int)(sizeof lines / sizeof *lines); i++) {
        tl_graph graph;
        char text[512];
        snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8,3 needs=none in=-\n"
                 "node 1 a conv fwd=1 bwd=1 out=8 needs=in in=0.0\n"
                 "node 2 b conv fwd=1 bwd=1 out=8 needs=in in=0.1\n%s\n", lines[i].line);
        if (!is_read(text, lines[i].rule, &graph)) continue;
        assert_true(graph.nodes[3].takes_blocks && !graph.nodes[2].takes_blocks);
        tl_free_graph(NULL, &graph);
    }
}

// dynamic: the bytes of the outputs are an upper bound.
static void dynamic_is_for_nodes_with_kernels_and_places_of_their_own(void **state) {
    static const struct { const char *line, *rule; } lines[] = {
        { "node 3 y pick fwd=1 bwd=1 out=8,3 needs=in in=1,2 saved=5 fwork=5 bwork=3 keep dynamic fixed", NULL },
        { "node 3 y pick fwd=1 bwd=0 out=8 needs=none in=2 grad=no dynamic", NULL },
        { "node 3 y relu fwd=1 bwd=1 out=8 needs=none in=1,2 inplace=0", NULL },
        { "node 3 y input fwd=0 bwd=0 out=8 needs=none in=- dynamic", "dynamic: an input has no kernels" },
        { "node 3 y relu fwd=1 bwd=1 out=8 needs=none in=1 dynamic takes_blocks", "dynamic: such a node takes no blocks" },
        { "node 3 y relu fwd=1 bwd=1 out=8 needs=none in=1 inplace=0 dynamic", "inplace: neither a dynamic node nor what one made" },
        { "node 3 y relu fwd=1 bwd=1 out=8 needs=none in=1,2 inplace=1", "inplace: neither a dynamic node nor what one made" }
    };
    int i;
    (void)state;
    for (i = 0; i < (int)(sizeof lines / sizeof *lines); i++) {
        tl_graph graph;
        char text[512];
        snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                 "node 1 a conv fwd=1 bwd=1 out=8 needs=in in=0\n"
                 "node 2 b pick fwd=1 bwd=1 out=8 needs=in in=0 dynamic\n%s\n", lines[i].line);
        if (!is_read(text, lines[i].rule, &graph)) continue;
        assert_true(graph.nodes[2].dynamic && !graph.nodes[1].dynamic);
        tl_free_graph(NULL, &graph);
    }
}

static void equal_names_are_found_anywhere(void **state) {
    enum { COUNT = 37 };
    int first, second, k;
    (void)state;
    for (first = 0; first < COUNT; first += 3)
        for (second = first + 1; second < COUNT; second += 2) {
            tl_env env = silent_env();
            tl_graph graph;
            char expected[64];
            tl_init_graph(&graph);
            for (k = 0; k < COUNT; k++) {
                tl_node_desc desc = node_desc();
                char name[16];
                snprintf(name, sizeof name, "%d", k * 7 % COUNT);
                if (k == first || k == second) strcpy(name, "same");
                desc.name = name;
                assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
            }
            assert_int_equal(tl_check_graph(&env, &graph), TL_ERROR_INVALID_ARG);
            snprintf(expected, sizeof expected, "tl_check_graph: node %d (same): name: must be unique", second);
            assert_string_equal(env.error.text, expected);
            tl_free_graph(&env, &graph);
        }
}

// -- chain --

static void chain_fills_every_field(void **state) {
    static const uint64_t out[] = { 10, 20, 30 }, saved[] = { 1, 2, 0 }, fwork[] = { 4, 0, 6 }, bwork[] = { 0, 8, 9 };
    static const uint64_t param[] = { 11, 12, 13 }, fwd[] = { 5, 6, 0 }, bwd[] = { 7, 8, 9 };
    tl_graph graph;
    tl_chain_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.layer_count = 3; desc.input_bytes = 99; desc.output_bytes = out; desc.saved_bytes = saved;
    desc.fwork_bytes = fwork; desc.bwork_bytes = bwork; desc.param_bytes = param; desc.fwd_costs = fwd; desc.bwd_costs = bwd;
    desc.needs = "in,out";
    assert_int_equal(tl_add_chain(NULL, &graph, &desc), TL_OK);
    assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
    assert_prints(&graph,
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=99 needs=none in=-\n"
        "node 1 n1 layer fwd=5 bwd=7 out=10 needs=in,out in=0 saved=1 fwork=4 param=11 layer=0\n"
        "node 2 n2 layer fwd=6 bwd=8 out=20 needs=in,out in=1 saved=2 bwork=8 param=12 layer=1\n"
        "node 3 n3 layer fwd=0 bwd=9 out=30 needs=in,out in=2 fwork=6 bwork=9 param=13 layer=2\n");
    tl_free_graph(NULL, &graph);
}

static void chain_zero_means_equal_layers(void **state) {
    tl_graph graph;
    tl_chain_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.layer_count = 2;
    assert_int_equal(tl_add_chain(NULL, &graph, &desc), TL_OK);
    assert_prints(&graph, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=0 needs=none in=-\n"
                          "node 1 n1 layer fwd=1 bwd=1 out=1 needs=in in=0 layer=0\n"
                          "node 2 n2 layer fwd=1 bwd=1 out=1 needs=in in=1 layer=1\n");
    tl_free_graph(NULL, &graph);
}

static void chain_refuses_wrong_descs(void **state) {
    uint64_t large[2] = { UINT64_MAX / 2 - 1, 2 };
    tl_env env = silent_env();
    tl_graph graph;
    tl_chain_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    memset(&graph, 0xff, sizeof graph);
    assert_int_equal(tl_add_chain(&env, &graph, &desc), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_add_chain: layer_count: must be > 0");
    assert_empty(&graph);
    desc.layer_count = -1;
    assert_int_equal(tl_add_chain(&env, &graph, &desc), TL_ERROR_INVALID_ARG);
    desc.layer_count = 2;
    desc.needs = "in1";
    assert_int_equal(tl_add_chain(&env, &graph, &desc), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "tl_add_chain: node 1 (n1): needs: "));
    assert_empty(&graph);
    desc.needs = "out";
    desc.output_bytes = large;
    assert_int_equal(tl_add_chain(&env, &graph, &desc), TL_ERROR_OVERFLOW);  // in the second layer only
    assert_non_null(strstr(env.error.text, "tl_add_chain: node 2 (n2): out: "));
    assert_empty(&graph);
}

// -- views and names --

static void views_resolve_to_their_storage(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(sample_text);
    tl_tensor found, storage;
    (void)state;
    assert_int_equal(tl_add_view(&env, &graph, "flat", tensor_of(2, 2), &storage), TL_OK);
    assert_true(storage.node == 2 && storage.output == 2);
    assert_int_equal(tl_find_tensor(&env, &graph, "flat", &found), TL_OK);
    assert_true(found.node == 2 && found.output == 2);
    assert_int_equal(tl_add_view(&env, &graph, "flat_t", found, &storage), TL_OK);  // a view of a view
    assert_true(storage.node == 2 && storage.output == 2);
    assert_int_equal(tl_find_tensor(&env, &graph, "flat_t", &found), TL_OK);
    assert_true(found.node == 2 && found.output == 2);
    assert_true(graph.view_count == 2 && graph.views[0].tensor == 5 && graph.views[1].tensor == 5);
    assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
    assert_prints(&graph, sample_text);
    tl_free_graph(&env, &graph);
}

static void views_of_nothing_are_refused(void **state) {
    static const struct { int32_t node, output; const char *name, *text; } rows[] = {
        { 4, 0, "v", "view 0 (v): of: there is no such tensor" }, { -1, 0, "v", "of: there is no such tensor" },
        { 1, 1, "v", "of: there is no such tensor" }, { 1, -1, "v", "of: there is no such tensor" },
        { 1, 0, "", "view 0 (): name: must be 1 to 255" }, { 1, 0, "a=b", "view 0 (a=b): name: must be 1 to 255" }
    };
    tl_graph graph = graph_of(sample_text);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_tensor storage = { 7, 7 };
        assert_int_equal(tl_add_view(&env, &graph, rows[i].name, tensor_of(rows[i].node, rows[i].output), &storage),
                         TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, rows[i].text));
        assert_true(storage.node == 0 && storage.output == 0 && graph.view_count == 0);
    }
    tl_free_graph(NULL, &graph);
}

static void find_tensor_takes_names_views_and_ids_in_this_order(void **state) {
    static const struct { const char *name; int32_t node, output; } rows[] = {
        { "x", 0, 0 }, { "x.1", 0, 1 }, { "split", 2, 0 }, { "split.0", 2, 0 }, { "split.2", 2, 2 }, { "3", 3, 0 },
        { "2.1", 2, 1 }, { "0.1", 0, 1 }, { "y", 3, 0 }, { "1", 4, 0 },   // node 4 is called "1"
        { "1.0", 5, 1 },                                                  // a view of 5.1 is called "1.0"
        { "a.b", 5, 0 }, { "a.b.1", 5, 1 }, { "5.1", 5, 1 }, { "0", 0, 0 }, { "0.0", 0, 0 }, { "00", 0, 0 }, { "2.0", 2, 0 }
    };
    static const char *const unknown[] = {
        "", "z", "split.3", "x.", ".1", "x.1.1", "9", "2.3", "-1", "3.-1", "2.", "split.1x", "frozen.1", "x1", "xx",
        "spli", "99999999999", "2.99999999999", "v.0", "."
    };
    static const uint64_t bytes[2] = { 1, 1 };
    tl_env env = silent_env();
    tl_graph graph = graph_of(sample_text);
    tl_node_desc desc = node_desc();
    size_t i;
    (void)state;
    desc.name = "1";
    assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
    desc.name = "a.b"; desc.output_bytes = bytes; desc.output_count = 2;
    assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
    assert_int_equal(tl_add_view(&env, &graph, "1.0", tensor_of(5, 1), NULL), TL_OK);
    assert_int_equal(tl_add_view(&env, &graph, "v", tensor_of(5, 1), NULL), TL_OK);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_tensor found = { -1, -1 };
        assert_int_equal(tl_find_tensor(&env, &graph, rows[i].name, &found), TL_OK);
        assert_int_equal(found.node, rows[i].node);
        assert_int_equal(found.output, rows[i].output);
    }
    for (i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        tl_tensor found = { 7, 7 };
        assert_int_equal(tl_find_tensor(&env, &graph, unknown[i], &found), TL_ERROR_NOT_FOUND);
        assert_true(found.node == 0 && found.output == 0);
        assert_ptr_equal(strstr(env.error.text, "tl_find_tensor: name: no tensor is called "), env.error.text);
    }
    tl_free_graph(&env, &graph);
}

// -- base bytes and device --

static void base_bytes_follow_the_ratios(void **state) {
    static const struct { uint64_t param; double gradient, optimizer; uint64_t base; } rows[] = {
        { 100, 0, 0, 100 }, { 100, 1, 2, 400 }, { 100, 1, 0.5, 250 }, { 3, 0.5, 0.5, 7 },  // 1.5 and 1.5, each rounded up
        { 1, 0.25, 0, 2 }, { 0, 1e300, 1e300, 0 }, { UINT64_MAX, 0, 0, UINT64_MAX },
        { UINT64_MAX / 2, 1, 0, UINT64_MAX - 1 }, { (UINT64_C(1) << 62) + 2, 0.5, 0, (UINT64_C(3) << 61) + 3 },
        { UINT64_C(1) << 32, 1.0 / 4294967296.0, 0, (UINT64_C(1) << 32) + 1 },
        { 1000000, 1e-300, 0, 1000001 },
        { UINT64_C(0xffffffff00000001), 0, 0.00390625, UINT64_C(0xffffffff00000001) + UINT64_C(0xffffffff000000) + 1 }
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_node_desc desc = node_desc();
        uint64_t base = 0;
        tl_init_graph(&graph);
        desc.param_bytes = rows[i].param / 2;
        assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
        desc.param_bytes = rows[i].param - rows[i].param / 2;
        assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
        if (i == sizeof rows / sizeof *rows - 1) {
            assert_int_equal(tl_find_base_bytes(&env, &graph, 0, 0.00390625, &base), TL_ERROR_OVERFLOW);
            assert_int_equal(base, 0);
        } else {
            assert_int_equal(tl_find_base_bytes(&env, &graph, rows[i].gradient, rows[i].optimizer, &base), TL_OK);
            assert_true(base == rows[i].base);
        }
        tl_free_graph(&env, &graph);
    }
}

static void base_bytes_refuse_wrong_ratios(void **state) {
    static const double zero = 0;
    double bad[4];
    tl_graph graph = graph_of(sample_text);
    tl_env env = silent_env();
    uint64_t base;
    int i;
    (void)state;
    bad[0] = zero / zero; bad[1] = 1 / zero; bad[2] = -1 / zero; bad[3] = -0.5;
    for (i = 0; i < 8; i++) {
        base = 7;
        assert_int_equal(tl_find_base_bytes(&env, &graph, i < 4 ? bad[i] : 1, i < 4 ? 1 : bad[i - 4], &base), TL_ERROR_INVALID_ARG);
        assert_int_equal(base, 0);
    }
    assert_string_equal(env.error.text, "tl_find_base_bytes: gradient_ratio, optimizer_ratio: must be finite and not negative");
    for (i = 0; i < 2; i++) {
        base = 7;
        assert_int_equal(tl_find_base_bytes(&env, &graph, i ? 1e30 : 1.8e18, i ? 0 : 1.8e18, &base), TL_ERROR_OVERFLOW);
        assert_int_equal(base, 0);
    }
    tl_free_graph(&env, &graph);
}

static void device_rules_hold(void **state) {
    static const double zero = 0;
    static const uint64_t alignments[] = { 0, 1, 2, 256, UINT64_C(1) << 63 }, odd[] = { 3, 6, 255, UINT64_MAX };
    tl_env env = silent_env();
    tl_device device;
    double bad[3];
    int i, k;
    (void)state;
    memset(&device, 0, sizeof device);
    assert_int_equal(tl_check_device(&env, &device), TL_OK);
    bad[0] = zero / zero; bad[1] = 1 / zero; bad[2] = -1;
    for (i = 0; i < TL_PRECISION_COUNT; i++) {
        for (k = 0; k < 3; k++) {
            device.flops_per_second[i] = bad[k];
            assert_int_equal(tl_check_device(&env, &device), TL_ERROR_INVALID_ARG);
        }
        device.flops_per_second[i] = 1e13;
    }
    for (i = 0; i < 5; i++) {
        device.alignment_bytes = alignments[i];
        assert_int_equal(tl_check_device(&env, &device), TL_OK);
    }
    for (i = 0; i < 4; i++) {
        device.alignment_bytes = odd[i];
        assert_int_equal(tl_check_device(&env, &device), TL_ERROR_INVALID_ARG);
    }
    assert_string_equal(env.error.text, "tl_check_device: alignment_bytes: must be 0 or a power of two");
    device.alignment_bytes = 64;
    for (i = -3; i < 5; i++) {
        device.copy_channels = i;
        assert_int_equal(tl_check_device(&env, &device), i < TL_COPIES_IN_TURN || i > 2 ? TL_ERROR_INVALID_ARG : TL_OK);
    }
    assert_string_equal(env.error.text, "tl_check_device: copy_channels: must be 0, 1, 2 or TL_COPIES_IN_TURN");
    device.copy_channels = 0;
    device.supported = (1u << TL_PRECISION_COUNT) - 1;
    assert_int_equal(tl_check_device(&env, &device), TL_OK);
    device.supported = 1u << TL_PRECISION_COUNT;
    assert_int_equal(tl_check_device(&env, &device), TL_ERROR_INVALID_ARG);
}

// -- text --

static void print_graph_is_canonical_and_parses_back(void **state) {
    tl_graph graph = graph_of(sample_text);
    (void)state;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
    assert_int_equal(graph.batch, 32);
    assert_prints(&graph, sample_text);
    tl_free_graph(NULL, &graph);
}

static void print_graph_counts_like_snprintf(void **state) {
    tl_graph graph = graph_of(sample_text);
    size_t length = strlen(sample_text), size;
    char buf[sizeof sample_text + 8];
    (void)state;
    assert_int_equal(tl_print_graph(&graph, NULL, 0), length);
    for (size = 0; size < sizeof buf; size++) {
        memset(buf, '~', sizeof buf);
        assert_int_equal(tl_print_graph(&graph, buf, size), length);
        if (size) assert_memory_equal(buf, sample_text, size <= length ? size - 1 : length);
        if (size) assert_int_equal(buf[size <= length ? size - 1 : length], 0);
        if (size < sizeof buf) assert_int_equal(buf[size], '~');
    }
    tl_free_graph(NULL, &graph);
}

static void parse_graph_accepts_other_spellings(void **state) {
    tl_graph graph = graph_of(
        "\n  # a comment\r\n\ttlg  1 # with a comment \xe2\x82\xac\r\n\r\n"
        "batch\t032\r\n"
        "  node 0 x input fixed in=- out=8,1 keep bwd=0 needs=none fwd=000 saved=0\r\n"
        "node 1 frozen conv grad=no once fwork=2 param=7 in=0.1 fwd=3 bwd=0 out=8 needs=none#comment\n"
        "node 2 split relu inplace=0 bwork=6 swork=4 fwd=4 bwd=5 saved=5 out=8,0,3 in=1.0,0 layer=0 needs=out2,in0,in0 unit=ffn \n\n"
        "node 3 y ce keep unit=attention layer=11 fwd=1 bwd=2 out=9 needs=out0,in2,in0,in1 in=2,2.2,2.2");
    (void)state;
    assert_prints(&graph, sample_text);
    tl_free_graph(NULL, &graph);
}

#define HEAD "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8,1 needs=none in=-\n"
#define NODE HEAD "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0"

// The same in version 2, without its last line.
#define SECOND "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"

// A state in pieces of 16 bytes, and what is said about such and their readers.
#define PIECES "tlg 2\nstate 0 w adamw w=40 m=40 wrows=10 piece=4\n"
#define WROWS_ARE "wrows: are of param= and states"
#define WROWS_DIVIDE "wrows (weight_rows): must divide weight and moments"
#define PIECES_READER "in: reads a state in pieces without a backward, or in blocks"

static void parse_graph_refuses_wrong_text(void **state) {
    static const struct { const char *text; tl_result code; const char *error; } rows[] = {
        { "", TL_ERROR_PARSE, "line 1: text: must start with tlg 1 or tlg 2" },
        { "\n\n#\n", TL_ERROR_PARSE, "line 3: text: must start with tlg 1 or tlg 2" },
        { "tlg", TL_ERROR_PARSE, "line 1: tlg: the version must be 1 or 2" },
        { "tlg 3", TL_ERROR_PARSE, "line 1: tlg: the version must be 1 or 2" },
        { "tlg 12", TL_ERROR_PARSE, "line 1: tlg: the version must be 1 or 2" },
        { "tlg 2", TL_ERROR_PARSE, "line 1: text: ends before the first node" },
        { SECOND, TL_ERROR_PARSE, "line 2: text: was cut: a tlg 2 ends with a line end and the number of nodes" },
        { SECOND "end 1", TL_ERROR_PARSE, "line 3: end: the text was cut: the last line has no line end" },
        { SECOND "end 1 # one", TL_ERROR_PARSE, "line 3: end: the text was cut: the last line has no line end" },
        { SECOND "end 1\r", TL_ERROR_PARSE, "line 3: end: the text was cut: the last line has no line end" },
        { SECOND "end\n", TL_ERROR_PARSE, "line 3: end: must be followed by the number of the nodes above" },
        { SECOND "end 2\n", TL_ERROR_PARSE, "line 3: end: must be followed by the number of the nodes above" },
        { SECOND "end 01 1\n", TL_ERROR_PARSE, "line 3: end: must be followed by the number of the nodes above" },
        { SECOND "end 1\nend 1\n", TL_ERROR_PARSE, "line 4: end: nothing may follow the line that starts with end" },
        { SECOND "end 1\nnode 1 a op\n", TL_ERROR_PARSE, "line 4: node: nothing may follow the line that starts with end" },
        { SECOND "end 1\nbatch 4\n", TL_ERROR_PARSE, "line 4: batch: nothing may follow the line that starts with end" },
        { HEAD "end 1\n", TL_ERROR_PARSE, "line 3: end: a line must start with node or batch" },
        { "tlg 01", TL_ERROR_PARSE, "line 1: tlg: the version must be 1 or 2" },
        { "tlg 1 node", TL_ERROR_PARSE, "line 1: tlg: the version must be 1 or 2" },
        { "tlg 1\n\n", TL_ERROR_PARSE, "line 2: text: ends before the first node" },
        { "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-", TL_ERROR_PARSE, "line 1: node: a graph must start with tlg 1 or tlg 2" },
        { HEAD "tlg 1", TL_ERROR_PARSE, "line 3: tlg: a line must start with node or batch" },
        { HEAD "edge 1", TL_ERROR_PARSE, "line 3: edge: a line must start with node or batch" },
        { HEAD "batch 3", TL_ERROR_PARSE, "line 3: batch: must stand once, and above the nodes" },
        { "tlg 1\nbatch 3\nbatch 3", TL_ERROR_PARSE, "line 3: batch: must stand once, and above the nodes" },
        { "tlg 1\nbatch", TL_ERROR_PARSE, "line 2: batch: must be one number from 1 to 2^64 - 1" },
        { "tlg 1\nbatch 0", TL_ERROR_PARSE, "line 2: batch: must be one number from 1 to 2^64 - 1" },
        { "tlg 1\nbatch -1", TL_ERROR_PARSE, "line 2: batch: must be one number from 1 to 2^64 - 1" },
        { "tlg 1\nbatch 1 2", TL_ERROR_PARSE, "line 2: batch: must be one number from 1 to 2^64 - 1" },
        { "tlg 1\nbatch 18446744073709551616", TL_ERROR_PARSE, "line 2: batch: must be one number from 1 to 2^64 - 1" },
        { "tlg 1\nnode 1000000000 x input", TL_ERROR_PARSE, "line 2: 1000000000: node ids must be 0, 1, 2, ... in this order" },
        { "tlg 1\nnode 4294967296 x input", TL_ERROR_PARSE, "line 2: 4294967296: node ids must be 0, 1, 2, ... in this order" },
        { "tlg 1\nnode 18446744073709551616 x", TL_ERROR_PARSE, "line 2: 18446744073709551616: node ids must be 0, 1, 2, ... in this order" },
        { "tlg 1\nnode -0 x", TL_ERROR_PARSE, "line 2: -0: node ids must be 0, 1, 2, ... in this order" },
        { "tlg 1\nnode", TL_ERROR_PARSE, "line 2: : node ids must be 0, 1, 2, ... in this order" },
        { HEAD "node 0 a op", TL_ERROR_PARSE, "line 3: 0: node ids must be 0, 1, 2, ... in this order" },
        { HEAD "node 2 a op", TL_ERROR_PARSE, "line 3: 2: node ids must be 0, 1, 2, ... in this order" },
        { HEAD "node 1", TL_ERROR_PARSE, "line 3: node: a name and an op must follow the id" },
        { HEAD "node 1 a", TL_ERROR_PARSE, "line 3: node: a name and an op must follow the id" },
        { HEAD "node 1 a # op", TL_ERROR_PARSE, "line 3: node: a name and an op must follow the id" },
        { HEAD "node 1 a op", TL_ERROR_PARSE, "line 3: fwd: is missing" },
        { HEAD "node 1 a op fwd=1 out=1 needs=none in=0", TL_ERROR_PARSE, "line 3: bwd: is missing" },
        { HEAD "node 1 a op fwd=1 bwd=1 needs=none in=0", TL_ERROR_PARSE, "line 3: out: is missing" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 in=0", TL_ERROR_PARSE, "line 3: needs: is missing" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none", TL_ERROR_PARSE, "line 3: in: is missing" },
        { "tlg 1\nstate 0 w adamw w=8", TL_ERROR_PARSE, "line 2: state: a line must start with node or batch" },
        { "tlg 2\nstate 1 w adamw w=8", TL_ERROR_PARSE, "line 2: 1: node ids must be 0, 1, 2, ... in this order" },
        { "tlg 2\nstate 0 w adamw", TL_ERROR_PARSE, "line 2: w: is missing" },
        { "tlg 2\nstate 0 w adamw w=8 fwd=1", TL_ERROR_PARSE, "line 2: fwd: there is no such attribute" },
        { "tlg 2\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=- hold", TL_ERROR_PARSE, "line 2: hold: there is no such attribute" },
        { "tlg 2\nstate 0 w adamw w=8 m=8,x", TL_ERROR_PARSE, "line 2: m: must be numbers below 2^64, with commas between them" },
        { "tlg 2\nstate 0 w adamw w=8 frozen stat", TL_ERROR_PARSE, "line 2: stat: a state is one of hold, frozen, stat and piece" },
        { "tlg 2\nstate 0 w adamw w=8 hold frozen", TL_ERROR_PARSE, "line 2: hold: a state is one of hold, frozen, stat and piece" },
        { "tlg 2\nstate 0 w adamw w=8 m=8 frozen", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): m: a state that is not trained has no moments" },
        { "tlg 2\nstate 0 w adamw w=8 upd=1 stat", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): bwd: must be 0 where there is no gradient" },
        { "tlg 2\nstate 0 w input w=8", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): op: that of a state is its update, not input" },
        { "tlg 2\nstate 0 w adamw w=8 m=8\nnode 1 a op fwd=1 bwd=1 out=1 needs=none in=0.1", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): in: moments of a state are read by its update alone" },
        { "tlg 1\nnode 0 a op fwd=1 bwd=1 out=1 needs=none in=- param=8 wrows=2", TL_ERROR_PARSE, "line 2: wrows: is an attribute of tlg 2" },
        { "tlg 2\nstate 0 w adamw w=8 wrows", TL_ERROR_PARSE, "line 2: wrows: needs a value" },
        { "tlg 2\nstate 0 w adamw w=8 wrows=0", TL_ERROR_PARSE, "line 2: wrows: must be a number from 1 to 2^31 - 1" },
        { "tlg 2\nstate 0 w adamw w=8 wrows=2147483648", TL_ERROR_PARSE, "line 2: wrows: must be a number from 1 to 2^31 - 1" },
        { "tlg 2\nstate 0 w adamw w=8 wrows=4 piece=0", TL_ERROR_PARSE, "line 2: piece: must be a number from 1 to 2^31 - 1" },
        { "tlg 2\nstate 0 w adamw w=8 wrows=4 piece=-1", TL_ERROR_PARSE, "line 2: piece: must be a number from 1 to 2^31 - 1" },
        { "tlg 2\nstate 0 w adamw w=8 wrows=4 piece=2 hold", TL_ERROR_PARSE, "line 2: piece: a state is one of hold, frozen, stat and piece" },
        { "tlg 2\nstate 0 w adamw w=8 wrows=4 piece=2 stat", TL_ERROR_PARSE, "line 2: piece: a state is one of hold, frozen, stat and piece" },
        { "tlg 2\nstate 0 w adamw w=9 m=8 wrows=4", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): " WROWS_DIVIDE },
        { "tlg 2\nstate 0 w adamw w=8 m=8,9 wrows=4", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): " WROWS_DIVIDE },
        { "tlg 2\nstate 0 w adamw w=8 m=9 wrows=4 piece=1", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): " WROWS_DIVIDE },
        { "tlg 2\nstate 0 w adamw w=8 wrows=4 piece=5", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): piece: must be 1 to wrows, of a state in pieces alone" },
        { "tlg 2\nstate 0 w adamw w=8 piece=1", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): piece: must be 1 to wrows, of a state in pieces alone" },
        { "tlg 2\nstate 0 w adamw w=8 upd=1 wrows=4 piece=2", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): bwd: must be 0 where there is no gradient" },
        { "tlg 2\nstate 0 w adamw w=8 uwork=1 wrows=4 piece=2", TL_ERROR_INVALID_ARG, "line 2: node 0 (w): bwork: must be 0 where there is no gradient" },
        { SECOND "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0 wrows=2", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): " WROWS_ARE },
        { SECOND "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0 param=9 wrows=2", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): " WROWS_DIVIDE },
        { SECOND "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0 param=8 wrows=2 piece=1", TL_ERROR_PARSE, "line 3: piece: there is no such attribute" },
        { PIECES "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0,0 bwork=16", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): in: a state in pieces is read once" },
        { PIECES "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0 bwork=16\nnode 2 b op fwd=1 bwd=1 out=8 needs=none in=1,0 bwork=16",
          TL_ERROR_INVALID_ARG, "line 4: node 2 (b): in: a state in pieces is read once" },
        { PIECES "node 1 a op fwd=1 bwd=0 out=8 needs=none in=0 grad=no", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): " PIECES_READER },
        { PIECES "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0 bwork=16 takes_blocks", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): " PIECES_READER },
        { PIECES "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0 bwork=15", TL_ERROR_INVALID_ARG,
          "line 3: node 1 (a): bwork: must hold a piece of a gradient" },
        { PIECES "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0.1 bwork=16", TL_ERROR_INVALID_ARG,
          "line 3: node 1 (a): in: moments of a state are read by its update alone" },
        { "tlg 2\nstate 0 w adamw w=8 m=8\n", TL_ERROR_PARSE, "line 2: text: was cut: a tlg 2 ends with a line end and the number of nodes" },
        { NODE " colour=red", TL_ERROR_PARSE, "line 3: colour: there is no such attribute" },
        { NODE " Fwd=1", TL_ERROR_PARSE, "line 3: Fwd: there is no such attribute" },
        { NODE " =1", TL_ERROR_PARSE, "line 3: : there is no such attribute" },
        { NODE " fwd=1", TL_ERROR_PARSE, "line 3: fwd: is given twice" },
        { NODE " keep keep", TL_ERROR_PARSE, "line 3: keep: is given twice" },
        { NODE " takes_blocks takes_blocks", TL_ERROR_PARSE, "line 3: takes_blocks: is given twice" },
        { NODE " dynamic dynamic", TL_ERROR_PARSE, "line 3: dynamic: is given twice" },
        { NODE " dynamic=1", TL_ERROR_PARSE, "line 3: dynamic: takes no value" },
        { NODE " once once", TL_ERROR_PARSE, "line 3: once: is given twice" },
        { NODE " once=1", TL_ERROR_PARSE, "line 3: once: takes no value" },
        { NODE " swork", TL_ERROR_PARSE, "line 3: swork: needs a value" },
        { NODE " swork=x", TL_ERROR_PARSE, "line 3: swork: must be a number below 2^64" },
        { NODE " swork=18446744073709551615", TL_ERROR_PARSE, "line 3: swork: must be a number below 2^64" },
        { NODE " takes_blocks=1", TL_ERROR_PARSE, "line 3: takes_blocks: takes no value" },
        { NODE " takes_blocks saved=1", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): takes_blocks: saved must be 0, nobody knows which part of it belongs to a range" },
        { NODE " keep=1", TL_ERROR_PARSE, "line 3: keep: takes no value" },
        { NODE " fixed=", TL_ERROR_PARSE, "line 3: fixed: takes no value" },
        { NODE " saved", TL_ERROR_PARSE, "line 3: saved: needs a value" },
        { NODE " saved=", TL_ERROR_PARSE, "line 3: saved: must be a number below 2^64" },
        { NODE " saved=-1", TL_ERROR_PARSE, "line 3: saved: must be a number below 2^64" },
        { NODE " fwork=+1", TL_ERROR_PARSE, "line 3: fwork: must be a number below 2^64" },
        { NODE " bwork=1e3", TL_ERROR_PARSE, "line 3: bwork: must be a number below 2^64" },
        { NODE " param=18446744073709551616", TL_ERROR_PARSE, "line 3: param: must be a number below 2^64" },
        { NODE " param=1_0", TL_ERROR_PARSE, "line 3: param: must be a number below 2^64" },
        { NODE " inplace=-1", TL_ERROR_PARSE, "line 3: inplace: must be a number below 2^31 - 1" },
        { NODE " inplace=2147483647", TL_ERROR_PARSE, "line 3: inplace: must be a number below 2^31 - 1" },
        { NODE " layer=4294967296", TL_ERROR_PARSE, "line 3: layer: must be a number below 2^31 - 1" },
        { NODE " unit=", TL_ERROR_PARSE, "line 3: unit: needs a value" },
        { NODE " grad=yes", TL_ERROR_PARSE, "line 3: grad: can only be no" },
        { NODE " grad=", TL_ERROR_PARSE, "line 3: grad: can only be no" },
        { HEAD "node 1 a op fwd=1 bwd=1 out= needs=none in=0", TL_ERROR_PARSE, "line 3: out: must be numbers below 2^64, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1, needs=none in=0", TL_ERROR_PARSE, "line 3: out: must be numbers below 2^64, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=-4 needs=none in=0", TL_ERROR_PARSE, "line 3: out: must be numbers below 2^64, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0,-", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0.", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=.0", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0.0.0", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=4294967296", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=x", TL_ERROR_PARSE, "line 3: in: must be - or tensors like 3 or 3.1, with commas between them" },
        // rules of the graph, with the line
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=1", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): inputs: 1.0 is not made by a node above it" },
        { HEAD "\n\nnode 1 a op fwd=1 bwd=1 out=1 needs=none in=2\nnode 2 b op fwd=1 bwd=1 out=1 needs=none in=1", TL_ERROR_INVALID_ARG, "line 5: node 1 (a): inputs: 2.0 is not made by a node above it" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0.2", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): inputs: 0.2 is not made by a node above it" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs=in1 in=0", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): needs: must be none, or a list of in, in<k>, out, out<k> that exist" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=1 needs= in=0", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): needs: must be none, or a list of in, in<k>, out, out<k> that exist" },
        { HEAD "node 1 a=b op fwd=1 bwd=1 out=1 needs=in in=0", TL_ERROR_INVALID_ARG, "line 3: node 1 (a=b): name: " TLI_NAME_RULE },
        { HEAD "node 1 a fwd=1 bwd=1 out=1 needs=in in=0 fwd=1", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): op: " TLI_NAME_RULE },
        { HEAD "node 1 gr\xf6\xdf\x65 op fwd=1 bwd=1 out=1 needs=in in=0", TL_ERROR_INVALID_ARG, "line 3: node 1 (gr??e): name: " TLI_NAME_RULE },
        { "\xEF\xBB\xBF\xEF\xBB\xBF" HEAD, TL_ERROR_PARSE, "line 1: ?tlg: a graph must start with tlg 1 or tlg 2" },
        { "\xEF\xBB" HEAD, TL_ERROR_PARSE, "line 1: ??tlg: a graph must start with tlg 1 or tlg 2" },
        { "\xFF\xFEt", TL_ERROR_PARSE, "line 1: ??t: a graph must start with tlg 1 or tlg 2" },
        { "\xEF\xBB\xBF", TL_ERROR_PARSE, "line 1: text: must start with tlg 1 or tlg 2" },
        { NODE " grad=no", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): bwd: must be 0 where there is no gradient" },
        { NODE " inplace=0", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): inplace: a graph input must not be overwritten" },
        { NODE " inplace=1", TL_ERROR_INVALID_ARG, "line 3: node 1 (a): inplace: there is no such input" },
        { HEAD "node 1 x op fwd=1 bwd=1 out=1 needs=in in=0 # second\n", TL_ERROR_INVALID_ARG, "line 3: node 1 (x): name: must be unique" },
        { "# a\ntlg 1\n#node\nbatch 7\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n\n  node 1 x op fwd=1 bwd=1 out=1 needs=in in=0\n\n", TL_ERROR_INVALID_ARG, "line 7: node 1 (x): name: must be unique" },
        { "tlg 1\nnode 0 x input fwd=1 bwd=0 out=1 needs=none in=-", TL_ERROR_INVALID_ARG, "line 2: node 0 (x): fwd: must be 0 for an input" },
        { NODE "\nnode 2 b op fwd=1 bwd=1 out=9223372036854775800 needs=none in=0", TL_ERROR_OVERFLOW, "line 4: node 2 (b): out: the sum of all bytes, gradients included, must fit 64 bits" },
        { NODE "\nnode 2 b op fwd=1 bwd=18446744073709551613 out=1 needs=none in=0", TL_ERROR_OVERFLOW, "line 4: node 2 (b): fwd, bwd: the sum of all costs must fit 64 bits" },
        // characters
        { "tlg 1\nnode 0 x\r input fwd=0", TL_ERROR_PARSE, "line 2: text: holds a control character" },
        { "tlg 1\n# \x01\n", TL_ERROR_PARSE, "line 2: text: holds a control character" },
        { "tlg 1\n\n\x0bnode 0", TL_ERROR_PARSE, "line 3: text: holds a control character" },
        { "tlg 1\x7f", TL_ERROR_PARSE, "line 1: text: holds a control character" },
        { "tlg\xc2\xa0" "1", TL_ERROR_PARSE, "line 1: tlg?1: a graph must start with tlg 1 or tlg 2" }
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        char expected[256];
        memset(&graph, 0xff, sizeof graph);
        snprintf(expected, sizeof expected, "tl_parse_graph: %s", rows[i].error);
        assert_int_equal(tl_parse_graph(&env, rows[i].text, strlen(rows[i].text), &graph), rows[i].code);
        assert_string_equal(env.error.text, expected);
        assert_empty(&graph);
    }
}

static void parse_graph_ends_where_the_length_says(void **state) {
    static const char text[] = HEAD;
    size_t length, end = sizeof text - 1;
    (void)state;
    for (length = 0; length <= end; length++) {  // a copy of exactly that size: nothing may be read behind it
        char *copy = (char *)malloc(length ? length : 1);
        tl_graph graph;
        tl_result result;
        assert_non_null(copy);
        memcpy(copy, text, length);
        result = tl_parse_graph(NULL, copy, length, &graph);
        assert_int_equal(result, length + 1 >= end ? TL_OK : TL_ERROR_PARSE);
        tl_free_graph(NULL, &graph);
        free(copy);
    }
    {
        tl_env env = silent_env();
        tl_graph graph;
        assert_int_equal(tl_parse_graph(&env, HEAD "\0", sizeof HEAD, &graph), TL_ERROR_PARSE);  // a NUL byte
        assert_string_equal(env.error.text, "tl_parse_graph: line 3: text: holds a control character");
        assert_int_equal(tl_parse_graph(&env, NULL, 0, &graph), TL_ERROR_PARSE);
        assert_int_equal(tl_parse_graph(&env, text, ((size_t)1 << 30) + 1, &graph), TL_ERROR_PARSE);  // is not read at all
        assert_string_equal(env.error.text, "tl_parse_graph: length: must not exceed 2^30 bytes");
    }
}

// HEAD, then a node with the given text repeated in one place; parsed in time linear in it.
static tl_result parses_long(const char *before, const char *part, int count, const char *after, tl_env *env, tl_graph *graph) {
    size_t length = strlen(part), total = strlen(before) + (size_t)count * length + strlen(after);
    char *text = (char *)malloc(total + 1), *at = text;
    tl_result result;
    int i;
    assert_non_null(text);
    memcpy(at, before, strlen(before)); at += strlen(before);
    for (i = 0; i < count; i++, at += length) memcpy(at, part, length);
    memcpy(at, after, strlen(after) + 1);
    result = tl_parse_graph(env, text, total, graph);
    free(text);
    return result;
}

static void lines_of_a_megabyte_are_read_in_linear_time(void **state) {
    static const char end[] = "0 needs=in,out fwd=1 bwd=1";
    tl_env env = silent_env();
    tl_graph graph;
    clock_t start = clock();
    (void)state;
    assert_int_equal(parses_long(HEAD "node 1 a op out=1 in=", "0.1,", 300000, end, &env, &graph), TL_OK);
    assert_int_equal(graph.nodes[1].input_count, 300001);
    tl_free_graph(&env, &graph);
    assert_int_equal(parses_long(HEAD "node 1 a op in=0 out=", "1,", 500000, end, &env, &graph), TL_OK);
    assert_int_equal(graph.nodes[1].output_count, 500001);
    tl_free_graph(&env, &graph);
    assert_int_equal(parses_long(HEAD "node 1 a op out=1 fwd=1 bwd=1 in=0,0,0 needs=", "in,out,", 150000, "in2", &env, &graph), TL_OK);
    tl_free_graph(&env, &graph);
    assert_int_equal(parses_long(HEAD "node 1 ", "a", 1000000, " op", &env, &graph), TL_ERROR_PARSE);
    assert_int_equal(parses_long(NODE " unit=", "a", 1000000, "", &env, &graph), TL_ERROR_INVALID_ARG);
    assert_int_equal(parses_long(NODE " ", "a", 1000000, "=1", &env, &graph), TL_ERROR_PARSE);
    assert_non_null(strstr(env.error.text, "aaa...: there is no such attribute"));
    assert_int_equal(parses_long(NODE " saved=", "1", 1000000, "", &env, &graph), TL_ERROR_PARSE);
    assert_int_equal(parses_long(NODE "#", "a", 1000000, "", &env, &graph), TL_OK);
    tl_free_graph(&env, &graph);
    assert_int_equal(parses_long(HEAD, "\n", 1000000, "x", &env, &graph), TL_ERROR_PARSE);
    assert_string_equal(env.error.text, "tl_parse_graph: line 1000003: x: a line must start with node or batch");
    assert_int_equal(parses_long(HEAD "node 1 a op in=0,0 out=1 fwd=1 bwd=1 needs=", "in0,", 250000, "in2", &env, &graph), TL_ERROR_INVALID_ARG);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);  // a quadratic reader takes minutes
}

// All names share 240 bytes, in an order that is bad for most ways of sorting.
static void names_that_look_alike_are_compared_quickly(void **state) {
    enum { COUNT = 40000 };
    tl_env env = silent_env();
    tl_graph graph;
    char name[256];
    clock_t start = clock();
    uint32_t i;
    (void)state;
    tl_init_graph(&graph);
    memset(name, 'a', sizeof name);
    for (i = 0; i < COUNT; i++) {
        tl_node_desc desc = node_desc();
        snprintf(name + 240, 16, "%u", i * 7919u % COUNT);
        desc.name = name;
        assert_int_equal(tl_add_node(&env, &graph, &desc, NULL), TL_OK);
    }
    assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
    NODES(&graph)[COUNT - 1].name = NODES(&graph)[COUNT / 3].name;
    assert_int_equal(tl_check_graph(&env, &graph), TL_ERROR_INVALID_ARG);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);
    tl_free_graph(&env, &graph);
}

// Two graphs are the same, field by field, texts by what they say.
static void assert_same_graph(const tl_graph *a, const tl_graph *b) {
    int32_t i;
    assert_true(a->node_count == b->node_count && a->input_count == b->input_count && a->tensor_count == b->tensor_count);
    assert_true(a->batch == b->batch);
    for (i = 0; i < a->node_count; i++) {
        tl_node x = a->nodes[i], y = b->nodes[i];
        assert_string_equal(tl_name_node(a, i), tl_name_node(b, i));
        assert_string_equal(tl_name_op(a, i), tl_name_op(b, i));
        assert_string_equal(tl_name_unit(a, i), tl_name_unit(b, i));
        assert_true(x.first_input == y.first_input && x.input_count == y.input_count && x.first_output == y.first_output &&
                    x.output_count == y.output_count && x.inplace == y.inplace && x.layer == y.layer);
        assert_true(x.is_input == y.is_input && x.has_grad == y.has_grad && x.keep == y.keep && x.fixed == y.fixed &&
                    x.takes_blocks == y.takes_blocks && x.dynamic == y.dynamic && x.once == y.once && x.origin == y.origin &&
                    x.swork_bytes == y.swork_bytes);
        assert_true(x.fwd_cost == y.fwd_cost && x.bwd_cost == y.bwd_cost && x.saved_bytes == y.saved_bytes &&
                    x.fwork_bytes == y.fwork_bytes && x.bwork_bytes == y.bwork_bytes && x.param_bytes == y.param_bytes);
    }
    for (i = 0; i < a->input_count; i++)
        assert_true(a->inputs[i].tensor == b->inputs[i].tensor && a->inputs[i].needed == b->inputs[i].needed);
    for (i = 0; i < a->tensor_count; i++)
        assert_true(a->outputs[i].node == b->outputs[i].node && a->outputs[i].output == b->outputs[i].output &&
                    a->outputs[i].bytes == b->outputs[i].bytes && a->outputs[i].needed == b->outputs[i].needed);
}

// The same graph spelled differently: attributes shuffled, spaces, comments, line ends. free() it.
static char *respelled(tl_random *random, const char *text) {
    char *out = (char *)malloc(strlen(text) * 4 + 4096), *at = out;
    assert_non_null(out);
    while (*text) {
        const char *words[24], *line = text;
        size_t lengths[24];
        int count = 0, k, j;
        while (*line != '\n') {
            words[count] = line;
            lengths[count] = strcspn(line, " \n");
            line += lengths[count++];
            if (*line == ' ') line++;
        }
        for (k = count - 1; k > 4 && words[0][0] == 'n'; k--) {
            const char *word = words[k];
            size_t length = lengths[k];
            j = random_count(random, 4, k);
            words[k] = words[j]; lengths[k] = lengths[j];
            words[j] = word; lengths[j] = length;
        }
        for (k = 0; k < count; k++) {
            memcpy(at, words[k], lengths[k]);
            at += lengths[k];
            at += sprintf(at, "%s", words[0][0] == 't' || random_chance(random, 80) ? " " : random_chance(random, 50) ? "\t" : " \t ");
        }
        at += sprintf(at, "%s%s", random_chance(random, 10) ? "# node 7" : "",
                      random_chance(random, 30) ? "\r\n" : random_chance(random, 10) ? "\n\n" : "\n");
        text = line + 1;
    }
    *at = 0;
    return out;
}

static void random_graphs_come_back_the_same(void **state) {
    uint64_t seed = 20240602;
    tl_random random;
    int round;
    (void)state;
    random.state = seed;
    for (round = 0; round < 3000; round++) {
        tl_env env = silent_env();
        tl_graph graph, again;
        char *text, *other;
        tl_result result;
        assert_int_equal(random_graph(&env, &random, round % 50 + 2, &graph), TL_OK);
        assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
        text = printed(&graph);
        other = respelled(&random, text);
        result = tl_parse_graph(&env, other, strlen(other), &again);
        if (result) print_error("seed %llu round %d: %s\n%s", (unsigned long long)seed, round, env.error.text, other);
        assert_int_equal(result, TL_OK);
        assert_same_graph(&graph, &again);
        assert_prints(&again, text);
        tl_free_graph(&env, &again);
        tl_free_graph(&env, &graph);
        free(text);
        free(other);
    }
}

// What was written and cut anywhere, up to its last byte, is refused with a sentence; in other spellings, too.
static void a_text_that_was_cut_is_refused(void **state) {
    tl_random random = { 20241127 };
    long round, cuts = 0;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        tl_env env = silent_env();
        tl_graph graph, again;
        char *text, *other;
        const char *at, *last = NULL;
        size_t length, cut;
        assert_int_equal(random_graph(&env, &random, (int32_t)(round % 14) + 1, &graph), TL_OK);
        text = printed(&graph);
        other = respelled(&random, text);
        if (round % 2) strcpy(other, text);
        for (at = strstr(other, "\nend"); at; at = strstr(at + 1, "\nend")) last = at;
        assert_non_null(last);
        length = (size_t)(strchr(last + 1, '\n') - other);
        assert_int_equal(tl_parse_graph(&env, other, strlen(other), &again), TL_OK);
        tl_free_graph(&env, &again);
        assert_int_equal(tl_parse_graph(&env, other, length + 1, &again), TL_OK);
        tl_free_graph(&env, &again);
        for (cut = 0; cut <= length; cut++) {
            char *part = (char *)malloc(cut + 1);
            assert_non_null(part);
            memcpy(part, other, cut);
            env.error.text[0] = 0;
            if (tl_parse_graph(&env, part, cut, &again) == TL_OK) fail_msg("%d of %d bytes are a graph", (int)cut, (int)length + 1);
            assert_non_null(strstr(env.error.text, "tl_parse_graph: "));
            assert_empty(&again);
            free(part);
            cuts++;
        }
        tl_free_graph(&env, &graph);
        free(text);
        free(other);
    }
    printf("%ld cut texts refused\n", cuts);
}

static void random_graphs_have_every_attribute(void **state) {
    tl_random random = { 20240603 };
    int round, seen = 0;
    (void)state;
    for (round = 0; round < 200; round++) {
        tl_graph graph;
        int32_t i, k;
        assert_int_equal(random_graph(NULL, &random, 12, &graph), TL_OK);
        if (graph.batch) seen |= 1;
        for (i = 0; i < graph.node_count; i++) {
            const tl_node *node = &graph.nodes[i];
            seen |= (node->output_count > 1) << 1 | (node->saved_bytes > 0) << 2 | (node->fwork_bytes > 0) << 3 |
                    (node->bwork_bytes > 0) << 4 | (node->param_bytes > 0) << 5 | (node->inplace >= 0) << 6 |
                    (node->layer >= 0) << 7 | (*tl_name_unit(&graph, i) != 0) << 8 |
                    (!node->has_grad && !node->is_input) << 9 | node->keep << 10 | node->fixed << 11 |
                    (node->is_input && i > 0) << 12 | (node->input_count == 0 && !node->is_input) << 13;
            for (k = 1; k < node->input_count; k++)
                if (graph.inputs[node->first_input + k].tensor == graph.inputs[node->first_input].tensor) seen |= 1 << 14;
        }
        for (k = 0; k < graph.input_count; k++) seen |= graph.inputs[k].needed << 15;
        for (k = 0; k < graph.node_count; k++) seen |= graph.nodes[k].takes_blocks << 18;
        for (k = 0; k < graph.tensor_count; k++) seen |= graph.outputs[k].needed << 16 | (graph.outputs[k].bytes == 0) << 17;
        tl_free_graph(NULL, &graph);
    }
    assert_int_equal(seen, (1 << 19) - 1);
}

// -- reference data --

static void reference_graphs_come_back_the_same(void **state) {
    int i;
    (void)state;
    for (i = 0; i < REFERENCE_COUNT; i++) {
        tl_env env = silent_env();
        size_t length = 0;
        char *text = read_reference("reference_graphs_come_back_the_same", references[i], &length), *canonical;
        tl_graph graph, again;
        tl_result result;
        if (!text) skip();
        result = tl_parse_graph(&env, text, length, &graph);
        if (result) print_error("%s: %s\n", references[i], env.error.text);
        assert_int_equal(result, TL_OK);
        assert_int_equal(tl_check_graph(&env, &graph), TL_OK);
        canonical = printed(&graph);
        assert_int_equal(tl_parse_graph(&env, canonical, strlen(canonical), &again), TL_OK);
        assert_same_graph(&graph, &again);
        assert_prints(&again, canonical);
        tl_free_graph(&env, &graph);
        tl_free_graph(&env, &again);
        free(canonical);
        free(text);
    }
}

// The lines of tests/dump_graph.py.
static void list_graph(FILE *file, const char *name, const tl_graph *graph) {
    int32_t i, k, t;
    fprintf(file, "graph %s\n", name);
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *n = &graph->nodes[i];
        int any = 0;
        fprintf(file, "%d %s %s fwd=%llu bwd=%llu", i, tl_name_node(graph, i), tl_name_op(graph, i),
                (unsigned long long)n->fwd_cost, (unsigned long long)n->bwd_cost);
        for (k = 0; k < n->output_count; k++)
            fprintf(file, "%s%llu", k ? "," : " out=", (unsigned long long)graph->outputs[n->first_output + k].bytes);
        fprintf(file, " saved=%llu fwork=%llu bwork=%llu swork=%llu grad=%d keep=%d once=%d inplace=%d",
                (unsigned long long)n->saved_bytes, (unsigned long long)n->fwork_bytes, (unsigned long long)n->bwork_bytes,
                (unsigned long long)n->swork_bytes, n->has_grad, n->keep, n->once, n->inplace);
        for (k = 0; k < n->input_count; k++) {
            const tl_node_output *from = &graph->outputs[graph->inputs[n->first_input + k].tensor];
            fprintf(file, "%s%d.%d", k ? "," : " in=", from->node, from->output);
        }
        fprintf(file, "%s reads=", n->input_count ? "" : " in=-");
        for (t = 0; t < n->first_output + n->output_count; t++) {
            int read = t >= n->first_output && graph->outputs[t].needed;
            for (k = 0; k < n->input_count; k++)
                if (graph->inputs[n->first_input + k].tensor == t && graph->inputs[n->first_input + k].needed) read = 1;
            if (read) fprintf(file, "%s%d.%d", any++ ? "," : "", graph->outputs[t].node, graph->outputs[t].output);
        }
        fprintf(file, "%s\n", any ? "" : "-");
    }
}

static void the_independent_reader_reads_the_same(void **state) {
    const char *root = getenv("TL_SHARED");
    char command[16384], random_path[600], mine_path[600], other_path[600];
    tl_random random = { 20240604 };
    size_t used;
    FILE *texts, *mine;
    char *a, *b;
    int i;
    (void)state;
    if (!root) root = "../shared";
    snprintf(command, sizeof command, "%s/tools/check_schedule.py", root);
    texts = fopen(command, "rb");
    if (!texts) { printf("SKIPPED the_independent_reader_reads_the_same: no reference data\n"); skip(); return; }
    fclose(texts);
    if (system("python3 -c 1")) { printf("SKIPPED the_independent_reader_reads_the_same: no python3\n"); skip(); }
    snprintf(random_path, sizeof random_path, "%s.random.tlg", program);
    snprintf(mine_path, sizeof mine_path, "%s.mine.txt", program);
    snprintf(other_path, sizeof other_path, "%s.other.txt", program);
    texts = fopen(random_path, "wb");
    mine = fopen(mine_path, "wb");
    assert_true(texts && mine);
    used = (size_t)snprintf(command, sizeof command, "python3 tests/dump_graph.py '%s/tools'", root);
    for (i = 0; i < REFERENCE_COUNT + 500; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        size_t length = 0;
        if (i < REFERENCE_COUNT) {
            char *text = read_reference("the_independent_reader_reads_the_same", references[i], &length);
            assert_non_null(text);
            assert_int_equal(tl_parse_graph(&env, text, length, &graph), TL_OK);
            free(text);
            used += (size_t)snprintf(command + used, sizeof command - used, " '%s/%s'", root, references[i]);
            list_graph(mine, strrchr(references[i], '/') + 1, &graph);
        } else {
            char *text, *other;
            const char *name = strrchr(random_path, '/');
            assert_int_equal(random_graph(&env, &random, 20, &graph), TL_OK);
            text = printed(&graph);
            other = respelled(&random, text);
            fputs(other, texts);
            list_graph(mine, name ? name + 1 : random_path, &graph);
            free(text);
            free(other);
        }
        tl_free_graph(&env, &graph);
    }
    fclose(texts);
    fclose(mine);
    used += (size_t)snprintf(command + used, sizeof command - used, " '%s' > '%s'", random_path, other_path);
    assert_true(used < sizeof command);
    assert_int_equal(system(command), 0);
    a = read_text(mine_path, NULL);
    b = read_text(other_path, NULL);
    assert_true(a && b && strlen(a) > 100000);
    assert_string_equal(a, b);
    free(a);
    free(b);
    remove(random_path);
    remove(mine_path);
    remove(other_path);
}

// -- files --

static void graphs_are_written_and_read(void **state) {
    tl_env env = silent_env();
    tl_graph graph, again;
    tl_chain_desc chain;
    char path[600], *text;
    size_t length;
    (void)state;
    snprintf(path, sizeof path, "%s.tlg", program);
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 2000;  // more than one block of the reader
    assert_int_equal(tl_add_chain(&env, &graph, &chain), TL_OK);
    assert_int_equal(tl_write_graph(&env, &graph, path), TL_OK);
    text = read_text(path, &length);
    assert_non_null(text);
    assert_prints(&graph, text);
    assert_int_equal(tl_read_graph(&env, path, &again), TL_OK);
    assert_same_graph(&graph, &again);
    free(text);
    tl_free_graph(&env, &graph);
    tl_free_graph(&env, &again);
    remove(path);
}

static void files_that_fail_are_named(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(sample_text), read;
    char path[600];
    FILE *file;
    (void)state;
    memset(&read, 0xff, sizeof read);
    assert_int_equal(tl_read_graph(&env, "no/such/file.tlg", &read), TL_ERROR_IO);
    assert_string_equal(env.error.text, "tl_read_graph: path: cannot open no/such/file.tlg");
    assert_empty(&read);
    assert_int_equal(tl_write_graph(&env, &graph, "no/such/file.tlg"), TL_ERROR_IO);
    assert_string_equal(env.error.text, "tl_write_graph: path: cannot open no/such/file.tlg");
    snprintf(path, sizeof path, "%s.tlg", program);
    file = fopen(path, "wb");
    assert_non_null(file);
    fputs("tlg 1\nnode 1", file);
    fclose(file);
    assert_int_equal(tl_read_graph(&env, path, &read), TL_ERROR_PARSE);
    assert_string_equal(env.error.text, "tl_read_graph: line 2: 1: node ids must be 0, 1, 2, ... in this order");
    assert_empty(&read);
    remove(path);
#ifdef __linux__
    assert_int_equal(tl_read_graph(&env, ".", &read), TL_ERROR_IO);
    assert_string_equal(env.error.text, "tl_read_graph: path: cannot read .");
    file = fopen("/dev/full", "wb");
    if (file) {
        fclose(file);
        assert_int_equal(tl_write_graph(&env, &graph, "/dev/full"), TL_ERROR_IO);
        assert_string_equal(env.error.text, "tl_write_graph: path: cannot write /dev/full");
    }
#endif
    tl_free_graph(&env, &graph);
}

// -- failing allocations --

static void every_allocation_of_the_builder_may_fail(void **state) {
    int once;
    (void)state;
    for (once = 0; once < 2; once++) {
        long at;
        for (at = 0; ; at++) {
            failing_alloc f;
            tl_env env;
            tl_graph graph;
            tl_tensor inputs[3] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };
            int32_t i, failures = 0;
            memset(&f, 0, sizeof f);
            env = failing_env(&f, at);
            f.fails_once = once;
            tl_init_graph(&graph);
            for (i = 0; i < 40; i++) {
                tl_node_desc desc = node_desc();
                int32_t id = 7, before = graph.node_count;
                tl_result result;
                desc.inputs = inputs;
                desc.input_count = before ? 3 : 0;
                result = tl_add_node(&env, &graph, &desc, &id);
                assert_true(result == TL_OK || result == TL_ERROR_NO_MEMORY);
                assert_int_equal(graph.node_count, before + !result);
                assert_int_equal(id, result ? 0 : before);
                failures += result != TL_OK;
                if (!graph.node_count) continue;
                {
                    tl_tensor storage = { 7, 7 };
                    char name[16];
                    int32_t views = graph.view_count;
                    snprintf(name, sizeof name, "v%d", i);
                    result = tl_add_view(&env, &graph, name, tensor_of(0, 0), &storage);
                    assert_true(result == TL_OK || result == TL_ERROR_NO_MEMORY);
                    assert_int_equal(graph.view_count, views + !result);
                    assert_true(storage.node == 0 && storage.output == 0);
                    failures += result != TL_OK;
                }
            }
            if (graph.node_count) {
                tl_env plain = silent_env();
                assert_int_equal(tl_check_graph(&plain, &graph), TL_OK);
            }
            tl_free_graph(&env, &graph);
            assert_int_equal(f.live, 0);
            if (f.count <= at) { assert_int_equal(failures, 0); break; }
            assert_true(failures > 0);
        }
        assert_true(at > 10);
    }
}

enum { CALL_CHAIN, CALL_CHECK, CALL_PARSE, CALL_READ, CALL_WRITE, CALL_COUNT };

static tl_result call(tl_env *env, int which, const tl_graph *graph, const char *path, tl_graph *out) {
    tl_chain_desc chain;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 50;
    tl_init_graph(out);
    switch (which) {
    case CALL_CHAIN: return tl_add_chain(env, out, &chain);
    case CALL_CHECK: return tl_check_graph(env, graph);
    case CALL_PARSE: return tl_parse_graph(env, sample_text, strlen(sample_text), out);
    case CALL_READ:  return tl_read_graph(env, path, out);
    default:         return tl_write_graph(env, graph, path);
    }
}

static void every_allocation_of_every_call_may_fail(void **state) {
    tl_graph graph = graph_of(sample_text);
    char path[600];
    int which, once;
    (void)state;
    snprintf(path, sizeof path, "%s.tlg", program);
    assert_int_equal(tl_write_graph(NULL, &graph, path), TL_OK);
    for (which = 0; which < CALL_COUNT; which++)
        for (once = 0; once < 2; once++) {
            long at;
            for (at = 0; ; at++) {
                failing_alloc f;
                tl_env env;
                tl_graph out;
                tl_result result;
                memset(&f, 0, sizeof f);
                env = failing_env(&f, at);
                f.fails_once = once;
                result = call(&env, which, &graph, path, &out);
                assert_int_equal(result, f.count <= at ? TL_OK : TL_ERROR_NO_MEMORY);
                if (result) {
                    assert_empty(&out);
                    assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
                    assert_non_null(strstr(env.error.text, "no memory"));
                }
                tl_free_graph(&env, &out);
                assert_int_equal(f.live, 0);
                if (f.count <= at) break;
            }
            assert_true(at > 0);
        }
    remove(path);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_makes_an_empty_graph_and_free_accepts_it),
        cmocka_unit_test(add_node_fills_every_field),
            cmocka_unit_test(swork_is_fwork_unless_given),
        cmocka_unit_test(add_node_zero_means_default),
        cmocka_unit_test(names_out_of_range_are_question_marks),
        cmocka_unit_test(add_node_refuses_wrong_descs),
        cmocka_unit_test(needs_takes_every_form_and_nothing_else),
        cmocka_unit_test(needs_in_of_a_node_without_inputs_is_none),
        cmocka_unit_test(names_are_visible_and_of_at_most_255_bytes),
        cmocka_unit_test(names_may_be_utf8),
        cmocka_unit_test(utf8_names_print_parse_and_are_found),
        cmocka_unit_test(sentences_hold_48_bytes_of_a_name_and_whole_characters),
        cmocka_unit_test(adding_nodes_allocates_ever_more_rarely),
        cmocka_unit_test(counts_beyond_31_bits_are_an_overflow),
        cmocka_unit_test(check_graph_holds_every_rule),
        cmocka_unit_test(check_graph_sums_fit_to_the_last_unit),
        cmocka_unit_test(check_graph_accepts_a_graph_made_by_hand),
        cmocka_unit_test(check_graph_survives_garbage),
        cmocka_unit_test(takes_blocks_is_for_nodes_whose_elements_correspond),
        cmocka_unit_test(dynamic_is_for_nodes_with_kernels_and_places_of_their_own),
        cmocka_unit_test(equal_names_are_found_anywhere),
        cmocka_unit_test(chain_fills_every_field),
        cmocka_unit_test(chain_zero_means_equal_layers),
        cmocka_unit_test(chain_refuses_wrong_descs),
        cmocka_unit_test(views_resolve_to_their_storage),
        cmocka_unit_test(views_of_nothing_are_refused),
        cmocka_unit_test(find_tensor_takes_names_views_and_ids_in_this_order),
        cmocka_unit_test(base_bytes_follow_the_ratios),
        cmocka_unit_test(base_bytes_refuse_wrong_ratios),
        cmocka_unit_test(device_rules_hold),
        cmocka_unit_test(print_graph_is_canonical_and_parses_back),
        cmocka_unit_test(print_graph_counts_like_snprintf),
        cmocka_unit_test(parse_graph_accepts_other_spellings),
        cmocka_unit_test(parse_graph_refuses_wrong_text),
        cmocka_unit_test(parse_graph_ends_where_the_length_says),
        cmocka_unit_test(lines_of_a_megabyte_are_read_in_linear_time),
        cmocka_unit_test(names_that_look_alike_are_compared_quickly),
        cmocka_unit_test(random_graphs_come_back_the_same),
        cmocka_unit_test(a_text_that_was_cut_is_refused),
        cmocka_unit_test(random_graphs_have_every_attribute),
        cmocka_unit_test(reference_graphs_come_back_the_same),
        cmocka_unit_test(the_independent_reader_reads_the_same),
        cmocka_unit_test(graphs_are_written_and_read),
        cmocka_unit_test(files_that_fail_are_named),
        cmocka_unit_test(every_allocation_of_the_builder_may_fail),
        cmocka_unit_test(every_allocation_of_every_call_may_fail),
    };
    program = argv[0];
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
