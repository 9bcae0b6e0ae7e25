// Nodes that take blocks on Vulkan: tensors larger than a kernel can bind are computed range by range, by the shaders
// of examples/vk_nn.h, and to the bit as on a machine that binds them whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"
#include "vk_nn.h"

enum {
    COUNT = 50003,              // floats of each tensor
    BYTES = 4 * COUNT,
    RANGE = 50000,              // bytes that the small machine binds
    GRADIENTS = 2               // nodes whose gradient is looked at
};

#define LINE(number, name, op, needs, in, more) \
    "node " number " " name " " op " fwd=9 bwd=9 out=200012 needs=" needs " in=" in more "\n"
#define NET(takes_blocks) \
    "tlg 1\nnode 0 x input fwd=0 bwd=0 out=200012 needs=none in=-\n" \
    LINE("1", "s", "tap", "none", "0", takes_blocks) LINE("2", "g", "gelu", "in", "1", takes_blocks) \
    LINE("3", "t", "tap", "none", "2", takes_blocks) LINE("4", "d", "dropout", "none", "3", takes_blocks) \
    LINE("5", "a", "add", "none", "4,1", takes_blocks) LINE("6", "h", "gelu", "in", "5", takes_blocks) \
    LINE("7", "e", "dropout", "none", "6", " keep" takes_blocks)

typedef struct blocks {
    world       w;
    vk_nn       nn;
    vk_nn_net   net;
    vk_nn_node  nodes[8];
    tl_range    gradients[GRADIENTS];  // of nodes 1 and 3
    tl_kernel   kernels[VK_NN_OP_COUNT + 1];
    uint64_t    most_bytes;            // of a call
    long        calls;
    float       result[COUNT], seen[GRADIENTS][COUNT];
} blocks;

static void note_call(blocks *b, const tl_kernel_call *call) {
    const tl_range *range = call->kind == TL_STEP_BACKWARD ? &call->output_grads[0].range : &call->outputs[0].range;
    assert_int_equal(range->bytes, 4 * call->count);
    if (range->bytes > b->most_bytes) b->most_bytes = range->bytes;
    b->calls++;
}

// out = in, and backward keeps the gradient for the test to see.
static tl_result tap_forward(const tl_kernel_call *call, void *user) {
    blocks *b = (blocks *)user;
    note_call(b, call);
    return b->w.backend.copy(b->w.backend.self, call->outputs[0].range, call->inputs[0].range);
}

static tl_result tap_backward(const tl_kernel_call *call, void *user) {
    blocks *b = (blocks *)user;
    tl_range to = b->gradients[call->node / 2];
    note_call(b, call);
    to.offset += 4 * call->first;
    to.bytes = 4 * call->count;
    if (call->input_grads[0].range.bytes) {
        tl_result result = vk_nn_add_backward(&b->nn, call->input_grads[0].range, vk_nn_no_range(),
                                              call->output_grads[0].range, (uint32_t)call->count);
        if (result) return result;
    }
    return b->w.backend.copy(b->w.backend.self, to, call->output_grads[0].range);
}

static void open_blocks(blocks *b, uint32_t range_bytes) {
    vkshim_config config;
    vkt_desc device = {0};
    int i;
    memset(b, 0, sizeof *b);
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    if (range_bytes) config.storage_range = range_bytes;
    open_device(&b->w, &config, &device);
    open_backend(&b->w);
    if (vk_nn_init(&b->w.backend, &b->nn)) fail_msg("%s", b->w.env.error.text);
    for (i = 0; i < GRADIENTS; i++) expect_ok(&b->w, add_range(&b->w, TL_TIER_DEVICE, BYTES, &b->gradients[i]), "range");
    b->net.nn = &b->nn;
    b->net.nodes = b->nodes;
    b->net.dropout = 0.25f;
    vk_nn_set_kernels(b->kernels, &b->net);
    b->kernels[VK_NN_OP_COUNT].op = "tap";
    b->kernels[VK_NN_OP_COUNT].forward = tap_forward;
    b->kernels[VK_NN_OP_COUNT].backward = tap_backward;
    b->kernels[VK_NN_OP_COUNT].user = b;
}

static void close_blocks(blocks *b) {
    tl_ticket ticket;
    int i;
    for (i = 0; i < GRADIENTS; i++) free_range(&b->w, &b->gradients[i]);
    expect_ok(&b->w, b->w.backend.submit(b->w.backend.self, &ticket), "submit");
    expect_ok(&b->w, b->w.backend.wait(b->w.backend.self, ticket), "wait");
    vk_nn_free(&b->nn);
    close_backend(&b->w, "blocks");
    close_device(&b->w);
}

static tl_result init_net(blocks *b, const tl_graph *graph, uint64_t budget, uint64_t host_budget, tl_run **run) {
    static const uint8_t converted[] = { TL_FORMAT_F32, TL_FORMAT_F32, TL_FORMAT_F16, TL_FORMAT_F32, TL_FORMAT_F32 };
    tl_run_desc desc;
    memset(&desc, 0, sizeof desc);
    if (graph->node_count == 5) desc.formats = converted;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    desc.graph = graph;
    desc.backend = &b->w.backend;
    desc.kernels = b->kernels;
    desc.kernel_count = VK_NN_OP_COUNT + 1;
    desc.budget_bytes = budget;
    desc.host_budget_bytes = host_budget;
    desc.seed = 11;
    return tl_init_run(&b->w.env, &desc, run);
}

// Two passes; then the result and the gradients.
static tl_run_report run_net(blocks *b, const tl_graph *graph, uint64_t budget, uint64_t host_budget) {
    tl_tensor input = {0}, last = {0};
    tl_run_report report;
    tl_run *run;
    int i;
    for (i = 0; i < COUNT; i++) b->result[i] = (float)(i % 1001) / 250.0f - 2.0f;
    last.node = graph->node_count - 1;
    if (init_net(b, graph, budget, host_budget, &run)) fail_msg("%s", b->w.env.error.text);
    if (tl_write_tensor(run, input, b->result, BYTES) || tl_run_plan(run) || tl_run_plan(run) ||
        tl_read_tensor(run, last, b->result, BYTES)) fail_msg("%s", b->w.env.error.text);
    tl_measure_run(run, &report);
    for (i = 0; i < GRADIENTS; i++) expect_ok(&b->w, read_range(&b->w, b->gradients[i], b->seen[i]), "read");
    tl_free_run(run);
    return report;
}

static tl_graph net_graph(const char *text) {
    tl_env env = silent_env();
    tl_graph graph;
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

static void larger_tensors_than_bindings_are_computed_range_by_range(void **state) {
    static blocks whole, cut;
    tl_graph graph = net_graph(NET(" takes_blocks"));
    int budget;
    (void)state;
    if (!vkt_has_vulkan("larger_tensors_than_bindings_are_computed_range_by_range")) skip();
    // All kept; with forwards made again; with copies on the host.
    for (budget = 0; budget < 3; budget++) {
        uint64_t bytes = budget ? 5 * BYTES + 65536 : 0, host_bytes = budget == 2 ? 10 * BYTES : 0;
        tl_run_report one, many;
        open_blocks(&whole, 0);
        one = run_net(&whole, &graph, bytes, host_bytes);
        close_blocks(&whole);
        open_blocks(&cut, RANGE);
        many = run_net(&cut, &graph, bytes, host_bytes);
        close_blocks(&cut);
        assert_int_equal(one.kernel_count, one.forward_count + one.backward_count);
        assert_int_equal(many.kernel_count, 5 * one.kernel_count);  // 50003 floats, at most 12496 at a time
        assert_int_equal(many.step_count, one.step_count);
        if (budget == 1) assert_true(many.recompute_count > 0);
        if (budget == 2) assert_true(many.spill_count > 0);
        assert_int_equal(many.measured_peak_bytes, many.planned_peak_bytes);
        assert_int_equal(many.taken_bytes, one.taken_bytes);
        assert_int_equal(whole.most_bytes, BYTES);
        assert_true(cut.most_bytes <= RANGE && cut.calls == 5 * whole.calls);
        assert_memory_equal(whole.result, cut.result, sizeof cut.result);
        assert_memory_equal(whole.seen, cut.seen, sizeof cut.seen);
    }
    tl_free_graph(NULL, &graph);
}

// Conversions that the run carries out itself are the backend's: it cuts them on its own.
static void conversions_need_no_takes_blocks(void **state) {
    static blocks whole, cut;
    tl_graph graph = net_graph("tlg 1\nnode 0 x input fwd=0 bwd=0 out=200012 needs=none in=-\n"
        "node 1 s tap fwd=9 bwd=9 out=200012 needs=none in=0 takes_blocks\n"
        "node 2 c convert fwd=9 bwd=9 out=100006 needs=none in=1\n"
        "node 3 d convert fwd=9 bwd=9 out=200012 needs=none in=2\n"
        "node 4 h gelu fwd=9 bwd=9 out=200012 needs=in in=3 keep takes_blocks\n");
    tl_run_report report;
    (void)state;
    if (!vkt_has_vulkan("conversions_need_no_takes_blocks")) skip();
    open_blocks(&whole, 0);
    report = run_net(&whole, &graph, 0, 0);
    assert_int_equal(report.convert_count, 4);
    close_blocks(&whole);
    open_blocks(&cut, RANGE);
    report = run_net(&cut, &graph, 0, 0);
    assert_int_equal(report.convert_count, 4);
    assert_int_equal(report.kernel_count, 4 * 5);
    close_blocks(&cut);
    assert_memory_equal(whole.result, cut.result, sizeof cut.result);
    assert_memory_equal(whole.seen[0], cut.seen[0], sizeof cut.seen[0]);
    tl_free_graph(NULL, &graph);
}

static void without_takes_blocks_they_are_refused_at_init(void **state) {
    static blocks b;
    tl_graph graph = net_graph(NET(""));
    tl_backend_counters counters;
    tl_run *run;
    (void)state;
    if (!vkt_has_vulkan("without_takes_blocks_they_are_refused_at_init")) skip();
    open_blocks(&b, RANGE);
    assert_int_equal(init_net(&b, &graph, 0, 0, &run), TL_ERROR_UNSUPPORTED);
    assert_null(run);
    assert_string_equal(b.w.env.error.text, "tl_init_run: backend: its kernels can be given at most 50000 bytes at a time, "
                                            "and node 1 (s) has 200012 and is not cut: say takes_blocks, or rows");
    b.w.backend.counters(b.w.backend.self, &counters);
    assert_int_equal(counters.block_count[TL_TIER_DEVICE], GRADIENTS);
    close_blocks(&b);
    tl_free_graph(NULL, &graph);
}

// -- fused chains --

// Two passes of a chain under a strategy, with fusion or without; budget 0: none.
static tl_run_report run_chain(blocks *b, const tl_graph *graph, int fuses, uint64_t budget) {
    tl_tensor input = {0}, last = {0};
    tl_strategy strategy = tl_with_fusion(tl_with_parallelism(tl_strategy_training(), tl_parallelism_none()), fuses);
    tl_run_report report;
    tl_run_desc desc;
    tl_run *run;
    int i;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.strategy = &strategy;
    desc.backend = &b->w.backend;
    desc.kernels = b->kernels;
    desc.kernel_count = VK_NN_OP_COUNT + 1;
    desc.seed = 11;
    desc.budget_bytes = budget;
    for (i = 0; i < COUNT; i++) b->result[i] = (float)(i % 1001) / 250.0f - 2.0f;
    last.node = graph->node_count - 1;
    if (tl_init_run(&b->w.env, &desc, &run) || tl_write_tensor(run, input, b->result, BYTES) || tl_run_plan(run) ||
        tl_run_plan(run) || tl_read_tensor(run, last, b->result, BYTES)) fail_msg("%s", b->w.env.error.text);
    tl_measure_run(run, &report);
    expect_ok(&b->w, read_range(&b->w, b->gradients[0], b->seen[0]), "read");
    tl_free_run(run);
    return report;
}

// Twenty elementwise nodes and a second input that is read elsewhere, too: block by block in a fraction of the bytes,
// whole bindings or small ones, and to the bit what the nodes compute one by one.
static void a_fused_chain_is_computed_block_by_block(void **state) {
    static const char *const ops[] = { "gelu", "dropout", "add", "gelu" };
    static blocks plain, fused;
    static char text[8192];
    tl_graph graph;
    int i, length, small;
    (void)state;
    if (!vkt_has_vulkan("a_fused_chain_is_computed_block_by_block")) skip();
    length = snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=200012 needs=none in=-\n"
                      "node 1 s tap fwd=9 bwd=9 out=200012 needs=none in=0 takes_blocks\n");
    for (i = 2; i < 22; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "node %d n%d %s fwd=9 bwd=9 out=200012 needs=%s in=%d%s%s takes_blocks\n",
                           i, i, ops[i % 4], i % 4 == 0 || i % 4 == 3 ? "in" : "none", i - 1, i % 4 == 2 ? ",1" : "", i == 21 ? " keep" : "");
    graph = net_graph(text);
    for (small = 0; small < 2; small++) {
        tl_run_report before, after;
        open_blocks(&plain, small ? RANGE : 0);
        before = run_chain(&plain, &graph, 0, 0);
        close_blocks(&plain);
        open_blocks(&fused, small ? RANGE : 0);
        after = run_chain(&fused, &graph, 1, before.taken_bytes / 2);
        close_blocks(&fused);
        assert_int_equal(before.fused_count, 0);
        assert_int_equal(after.fused_count, 1);
        assert_int_equal(after.forward_count, 2);
        assert_true(after.kernel_count > 10 * before.kernel_count / (small ? 5 : 1));
        assert_int_equal(after.measured_peak_bytes, after.planned_peak_bytes);
        assert_true(2 * after.measured_peak_bytes < before.measured_peak_bytes);
        assert_true(2 * after.taken_bytes < before.taken_bytes);
        assert_memory_equal(plain.result, fused.result, sizeof fused.result);
        assert_memory_equal(plain.seen[0], fused.seen[0], sizeof fused.seen[0]);
        printf("taken %llu bytes unfused, %llu fused; calls %d, %d\n", (unsigned long long)before.taken_bytes,
               (unsigned long long)after.taken_bytes, (int)before.kernel_count, (int)after.kernel_count);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_tensors_than_bindings_are_computed_range_by_range),
        cmocka_unit_test(conversions_need_no_takes_blocks),
        cmocka_unit_test(without_takes_blocks_they_are_refused_at_init),
        cmocka_unit_test(a_fused_chain_is_computed_block_by_block),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
