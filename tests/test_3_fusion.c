// [3] GRAPH: fusion of elementwise chains, and runs that show that it changes no bit.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support.h"
#include "random_graph.h"

static tl_env silent(void) {
    tl_env env;
    memset(&env, 0, sizeof env);
    return env;
}

static tl_fusion_desc fusion_desc(const tl_graph *graph) {
    tl_fusion_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    return desc;
}

static tl_graph parsed(const char *text) {
    tl_env env = silent();
    tl_graph graph;
    tl_result result = tl_parse_graph(&env, text, strlen(text), &graph);
    if (result) print_error("%s\n", env.error.text);
    assert_int_equal(result, TL_OK);
    return graph;
}

static void fused(const tl_fusion_desc *desc, tl_fusion_plan *plan) {
    tl_env env = silent();
    tl_result result = tl_plan_fusion(&env, desc, plan);
    if (result) print_error("%s\n", env.error.text);
    assert_int_equal(result, TL_OK);
    assert_int_equal(tl_check_graph(&env, &plan->graph), TL_OK);
}

// Fuse what desc says about this text, and compare with the other text.
static void assert_fuses(tl_fusion_desc desc, const char *text, const char *expected) {
    tl_graph graph = parsed(text);
    tl_fusion_plan plan;
    char out[4096];
    desc.graph = &graph;
    fused(&desc, &plan);
    assert_true(tl_print_graph(&plan.graph, out, sizeof out) < sizeof out);
    assert_string_equal(out, expected);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static tl_fusion_desc plain(void) { return fusion_desc(NULL); }

// -- which nodes --

static void a_chain_becomes_one_node(void **state) {
    tl_fusion_desc desc = plain();
    (void)state;
    // gelu reads its input, the sum: backward makes it again from what add reads. 5 + 5 for the forward of add.
    assert_fuses(desc,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
        "node 3 c gelu fwd=7 bwd=8 out=640 needs=in in=2 fwork=3\n"
        "node 4 d dropout fwd=1 bwd=2 out=640 needs=none in=3 bwork=4\n"
        "node 5 e loss fwd=1 bwd=1 out=4 needs=in in=4\n",
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 d fused fwd=13 bwd=21 out=640 needs=in in=1,0 fwork=1283 bwork=1924\n"
        "node 3 e loss fwd=1 bwd=1 out=4 needs=in in=2\n");
    desc.block_bytes = 128;
    desc.op = "chain";
    // relu reads its output, which is that of the node: nothing is made again.
    assert_fuses(desc,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
        "node 3 c relu fwd=7 bwd=8 out=640 needs=out in=2 keep\n",
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 c chain fwd=12 bwd=14 out=640 needs=out in=1,0 fwork=128 bwork=128 keep\n");
}

// -- runs --

#define ELEMENTS 700
#define NODES 64
#define WEIGHTS 16

// What the kernels of one run share. The fused ones call those of their members.
typedef struct lab {
    const tl_graph *graph;            // the old one
    const tl_fusion_plan *fusion;     // 0 = the run is over the old graph
    float    weights[NODES][WEIGHTS];
    float    gradients[NODES][WEIGHTS];
    uint32_t traces[NODES];           // of the gradients that arrive at a node that is not elementwise
    float    loss[NODES];
} lab;

static int32_t old_node(const lab *l, const tl_kernel_call *call) {
    return l->fusion ? l->fusion->members[l->fusion->first_members[call->node + 1] - 1] : call->node;
}

// A division instead of exp: exact to the bit everywhere.
static float squash(float x) { return x / (1 + (x < 0 ? -x : x)); }
static float squash_slope(float x) {
    float d = 1 + (x < 0 ? -x : x);
    return 1 / (d * d);
}

static float dropped(int32_t node, uint64_t element) {
    return tl_mix_u64((uint64_t)node, element) & 1 ? 2.0f : 0.0f;
}

// Elements first .. first + count - 1 of an elementwise node: pointers are to the first of them.
static void compute_elements(const char *op, int32_t node, const float *const *in, int32_t inputs, float *out,
                             uint64_t first, uint64_t count) {
    uint64_t i;
    int32_t k;
    for (i = 0; i < count; i++) {
        float x = in[0][i], y = x;
        if (!strcmp(op, "relu")) y = x > 0 ? x : 0;
        else if (!strcmp(op, "tanh")) y = squash(x);
        else if (!strcmp(op, "gelu")) y = x * (squash(x) + 1);
        else if (!strcmp(op, "scale")) y = x * 1.25f;
        else if (!strcmp(op, "dropout")) y = x * dropped(node, first + i);
        for (k = 1; k < inputs; k++) {
            if (!strcmp(op, "add")) y += in[k][i];
            if (!strcmp(op, "sub")) y -= in[k][i];
            if (!strcmp(op, "mul")) y *= in[k][i];
        }
        out[i] = y;
    }
}

// Add the gradients of one elementwise node. An input or output that its backward does not read is NULL.
static void add_gradients(const char *op, int32_t node, const float *const *in, int32_t inputs, const float *out,
                          const float *grad, float *const *grads, uint64_t first, uint64_t count) {
    uint64_t i;
    int32_t k;
    for (i = 0; i < count; i++)
        for (k = 0; k < inputs; k++) {
            float slope = 1;
            if (!grads[k]) continue;
            if (!strcmp(op, "relu")) slope = out[i] > 0 ? 1.0f : 0.0f;
            else if (!strcmp(op, "tanh")) { float d = 1 - (out[i] < 0 ? -out[i] : out[i]); slope = d * d; }
            else if (!strcmp(op, "gelu")) slope = squash(in[0][i]) + 1 + in[0][i] * squash_slope(in[0][i]);
            else if (!strcmp(op, "scale")) slope = 1.25f;
            else if (!strcmp(op, "dropout")) slope = dropped(node, first + i);
            else if (!strcmp(op, "sub")) slope = k ? -1.0f : 1.0f;
            else if (!strcmp(op, "mul")) slope = in[1 - k][i];
            grads[k][i] += grad[i] * slope;
        }
}

static tl_result elements_forward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    const float *in[8];
    int32_t k, count = call->graph->nodes[call->node].input_count;
    for (k = 0; k < count; k++) in[k] = (const float *)call->inputs[k].host;
    compute_elements(tl_name_op(call->graph, call->node), old_node(l, call), in, count, (float *)call->outputs[0].host,
                     0, call->outputs[0].range.bytes / 4);
    return TL_OK;
}

static tl_result elements_backward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    const float *in[8];
    float *grads[8];
    int32_t k, count = call->graph->nodes[call->node].input_count;
    for (k = 0; k < count; k++) {
        in[k] = (const float *)call->inputs[k].host;
        grads[k] = (float *)call->input_grads[k].host;
    }
    add_gradients(tl_name_op(call->graph, call->node), old_node(l, call), in, count,
                  (const float *)call->outputs[0].host, (const float *)call->output_grads[0].host, grads, 0,
                  call->output_grads[0].range.bytes / 4);
    return TL_OK;
}

// One member of a fused node within one block, and where its operands are.
typedef struct member {
    int32_t      node, input_count;   // of the old graph
    const char  *op;
    const float *in[8];
    float       *grads[8];
    int32_t      outer[8];            // index among the inputs of the fused node; -1 = the member before it
} member;

#define MEMBERS 64

static int32_t find_members(const lab *l, const tl_kernel_call *call, member *members) {
    const tl_fusion_plan *fusion = l->fusion;
    int32_t first = fusion->first_members[call->node], count = fusion->first_members[call->node + 1] - first;
    int32_t i, k, outer = 0;
    assert_true(count <= MEMBERS);
    for (i = 0; i < count; i++) {
        member *m = &members[i];
        const tl_node *node = &l->graph->nodes[fusion->members[first + i]];
        m->node = fusion->members[first + i];
        m->op = tl_name_op(l->graph, m->node);
        m->input_count = node->input_count;
        for (k = 0; k < node->input_count; k++) {
            int32_t from = l->graph->outputs[l->graph->inputs[node->first_input + k].tensor].node;
            m->outer[k] = i && from == members[i - 1].node ? -1 : outer++;
        }
    }
    assert_int_equal(outer, call->graph->nodes[call->node].input_count);
    return count;
}

static void point_at_block(const tl_kernel_call *call, member *m, uint64_t first, const float *inner,
                           float *inner_grad) {
    int32_t k;
    for (k = 0; k < m->input_count; k++) {
        const float *in = m->outer[k] < 0 ? inner : (const float *)call->inputs[m->outer[k]].host;
        float *grad = m->outer[k] < 0 ? inner_grad : NULL;
        if (m->outer[k] >= 0 && in) in += first;
        if (m->outer[k] >= 0 && call->kind == TL_STEP_BACKWARD && call->input_grads[m->outer[k]].host)
            grad = (float *)call->input_grads[m->outer[k]].host + first;
        m->in[k] = in;
        m->grads[k] = grad;
    }
}

static tl_result fused_forward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    member members[MEMBERS];
    int32_t count = find_members(l, call, members), i;
    uint64_t total = call->outputs[0].range.bytes / 4, block = l->fusion->block_bytes / 4, first;
    if (block > total) block = total;
    assert_int_equal(call->scratch.range.bytes, 4 * block * (count > 2 ? 2 : 1));
    for (first = 0; first < total; first += block) {
        uint64_t size = total - first < block ? total - first : block;
        const float *inner = NULL;
        for (i = 0; i < count; i++) {
            float *out = (float *)call->scratch.host + (uint64_t)(i & 1) * block;
            if (i + 1 == count) out = (float *)call->outputs[0].host + first;
            point_at_block(call, &members[i], first, inner, NULL);
            compute_elements(members[i].op, members[i].node, members[i].in, members[i].input_count, out, first, size);
            inner = out;
        }
    }
    return TL_OK;
}

static tl_result fused_backward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    member members[MEMBERS];
    int32_t count = find_members(l, call, members), remade = l->fusion->remade_counts[call->node], i;
    uint64_t total = call->output_grads[0].range.bytes / 4, block = l->fusion->block_bytes / 4, first;
    float *values = (float *)call->scratch.host, *turns;
    if (block > total) block = total;
    turns = values + block * (uint64_t)remade;
    assert_int_equal(call->scratch.range.bytes, 4 * block * (uint64_t)(remade + (count > 2 ? 2 : 1)));
    for (first = 0; first < total; first += block) {
        uint64_t size = total - first < block ? total - first : block;
        const float *grad = (const float *)call->output_grads[0].host + first;
        for (i = 0; i < remade; i++) {
            point_at_block(call, &members[i], first, i ? values + block * (uint64_t)(i - 1) : NULL, NULL);
            compute_elements(members[i].op, members[i].node, members[i].in, members[i].input_count,
                             values + block * (uint64_t)i, first, size);
        }
        for (i = count; i-- > 0;) {
            const float *out = i < remade ? values + block * (uint64_t)i : NULL;
            float *inner_grad = i ? turns + (uint64_t)(i & 1 && count > 2) * block : NULL;
            if (i + 1 == count && call->outputs[0].host) out = (const float *)call->outputs[0].host + first;
            if (inner_grad) memset(inner_grad, 0, (size_t)size * 4);
            point_at_block(call, &members[i], first,
                           i && i - 1 < remade ? values + block * (uint64_t)(i - 1) : NULL, inner_grad);
            add_gradients(members[i].op, members[i].node, members[i].in, members[i].input_count, out, grad,
                          members[i].grads, first, size);
            grad = inner_grad;
        }
    }
    return TL_OK;
}

// y[i] = w[i % 16] x[i] + x[n - 1 - i]: not elementwise, with weights.
static tl_result weigh_forward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    const float *x = (const float *)call->inputs[0].host, *w = l->weights[old_node(l, call)];
    float *y = (float *)call->outputs[0].host;
    int32_t i;
    for (i = 0; i < ELEMENTS; i++) y[i] = w[i % WEIGHTS] * x[i] + x[ELEMENTS - 1 - i];
    return TL_OK;
}

static uint32_t trace_of(const float *values, int32_t count, uint32_t trace) {
    int32_t i;
    for (i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        trace = (trace ^ bits) * 16777619u;
    }
    return trace;
}

static tl_result weigh_backward(const tl_kernel_call *call, void *user) {
    lab *l = (lab *)user;
    int32_t id = old_node(l, call), i;
    const float *x = (const float *)call->inputs[0].host, *g = (const float *)call->output_grads[0].host;
    float *gx = (float *)call->input_grads[0].host;
    l->traces[id] = trace_of(g, ELEMENTS, l->traces[id]);
    for (i = 0; i < ELEMENTS; i++) l->gradients[id][i % WEIGHTS] += g[i] * x[i];
    for (i = 0; gx && i < ELEMENTS; i++) gx[i] += l->weights[id][i % WEIGHTS] * g[i] + g[ELEMENTS - 1 - i];
    return TL_OK;
}

static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    lab *l = (lab *)user;
    const float *x = (const float *)call->inputs[0].host;
    float sum = 0;
    int32_t i;
    for (i = 0; i < ELEMENTS; i++) sum += x[i] * x[i];
    l->loss[old_node(l, call)] = *(float *)call->outputs[0].host = sum * 0.001f;
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    const float *x = (const float *)call->inputs[0].host;
    float *gx = (float *)call->input_grads[0].host, g = *(const float *)call->output_grads[0].host;
    int32_t i;
    (void)user;
    for (i = 0; gx && i < ELEMENTS; i++) gx[i] += g * 0.002f * x[i];
    return TL_OK;
}

static void lab_init(lab *l, const tl_graph *graph, const tl_fusion_plan *fusion) {
    tl_random random;
    int32_t i, k;
    memset(l, 0, sizeof *l);
    l->graph = graph;
    l->fusion = fusion;
    random.state = 5;
    for (i = 0; i < NODES; i++)
        for (k = 0; k < WEIGHTS; k++) l->weights[i][k] = (float)(tl_next_random_ratio(&random) - 0.5);
}

// One pass over the old or the fused graph under a plan, on the checked CPU backend.
static void lab_run(lab *l, const tl_plan *plan, tl_run_report *report) {
    static const char *const ops[] = { "relu", "tanh", "gelu", "scale", "dropout", "add", "sub", "mul" };
    const tl_graph *graph = l->fusion ? &l->fusion->graph : l->graph;
    tl_env env = silent();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_kernel kernels[11];
    tl_run_desc desc;
    tl_run *run;
    tl_tensor x;
    float data[ELEMENTS];
    int i;
    memset(&cpu, 0, sizeof cpu);
    cpu.checked = 1;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    for (i = 0; i < 11; i++) {
        kernels[i].op = i < 8 ? ops[i] : i == 8 ? "weigh" : i == 9 ? "loss" : "fused";
        kernels[i].forward = i < 8 ? elements_forward : i == 8 ? weigh_forward : i == 9 ? loss_forward : fused_forward;
        kernels[i].backward = i < 8 ? elements_backward
                                    : i == 8 ? weigh_backward : i == 9 ? loss_backward : fused_backward;
        kernels[i].user = l;
    }
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 11;
    desc.plan = plan;
    if (tl_init_run(&env, &desc, &run)) fail_msg("%s", env.error.text);
    for (i = 0; i < ELEMENTS; i++) data[i] = (float)((i * 37) % 101) / 50.0f - 1;
    x.node = x.output = 0;
    assert_int_equal(tl_write_tensor(run, x, data, sizeof data), TL_OK);
    if (tl_run_plan(run)) fail_msg("%s", env.error.text);
    tl_measure_run(run, report);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
}

// Two runs that must not differ in a bit: weights' gradients, what arrives at weights, losses.
static void assert_same_runs(const lab *a, const lab *b) {
    assert_memory_equal(a->gradients, b->gradients, sizeof a->gradients);
    assert_memory_equal(a->traces, b->traces, sizeof a->traces);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
}

// Elementwise nodes, weights now and then, and a loss: x is node 0.
static void random_lab_graph(tl_env *env, tl_random *random, int32_t max_nodes, tl_graph *graph) {
    static const char *const ops[] = { "relu", "tanh", "gelu", "scale", "dropout", "add", "sub", "mul" };
    static const char *const needs[] = { "out", "out", "in", "none", "none", "none", "none", "in" };
    int32_t count = random_count(random, 4, max_nodes), i, k;
    tl_init_graph(graph);
    for (i = 0; i < count; i++) {
        const uint64_t large = 4 * ELEMENTS, small = 4;
        int op = (int)tl_next_random_below(random, 8), weighs = random_chance(random, 15);
        tl_tensor inputs[4];
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.inputs = inputs;
        desc.output_bytes = i + 1 < count ? &large : &small;
        desc.output_count = 1;
        desc.fwd_cost = 1 + tl_next_random_below(random, 9);
        desc.bwd_cost = 1 + tl_next_random_below(random, 9);
        desc.input_count = weighs || op < 5 ? 1 : op == 5 ? random_count(random, 2, 4) : 2;
        desc.op = weighs ? "weigh" : ops[op];
        desc.needs = weighs ? "in" : needs[op];
        if (i == 0) {
            desc.op = "input";
            desc.fwd_cost = desc.bwd_cost = 0;
            desc.input_count = 0;
            desc.needs = NULL;
        } else if (i + 1 == count) {
            desc.op = "loss"; desc.input_count = 1; desc.needs = "in";
        } else if (!weighs && random_chance(random, 5)) {
            desc.no_grad = 1; desc.needs = NULL; desc.bwd_cost = 0;
        }
        if (i && i + 1 < count && random_chance(random, 4)) desc.keep = 1;
        if (i && random_chance(random, 10)) desc.layer = 1 + i / 4;
        for (k = 0; k < desc.input_count; k++) {
            inputs[k].node = k == 0 && random_chance(random, 80) ? i - 1 : random_count(random, 0, i - 1);
            inputs[k].output = 0;
        }
        assert_int_equal(tl_add_node(env, graph, &desc, NULL), TL_OK);
    }
}

static void assert_members_are_a_partition(const tl_graph *graph, const tl_fusion_plan *plan) {
    int32_t i, k, count = 0, fused_count = 0;
    uint64_t inner = 0, kept = 0;
    for (i = 0; i < plan->graph.node_count; i++) {
        assert_true(plan->first_members[i] < plan->first_members[i + 1]);
        fused_count += plan->first_members[i + 1] - plan->first_members[i] > 1;
        for (k = plan->first_members[i]; k < plan->first_members[i + 1]; k++, count++) {
            assert_int_equal(plan->nodes[plan->members[k]], i);
            if (k > plan->first_members[i]) assert_true(plan->members[k] > plan->members[k - 1]);
        }
        assert_string_equal(tl_name_node(&plan->graph, i), tl_name_node(graph, plan->members[k - 1]));
    }
    assert_int_equal(count, graph->node_count);
    assert_int_equal(fused_count, plan->fused_count);
    for (i = 0; i < graph->tensor_count; i++) inner += graph->outputs[i].bytes;
    for (i = 0; i < plan->graph.tensor_count; i++) kept += plan->graph.outputs[i].bytes;
    assert_int_equal(inner - kept, plan->inner_bytes);
}

static void fused_runs_equal_plain_ones_to_the_last_bit(void **state) {
    static const uint64_t blocks[] = { 64, 256, 1024, 0 };
    tl_random random;
    int i, count = getenv("SOAK") ? 5000 : 250, fused_graphs = 0, smaller = 0;
    (void)state;
    random.state = 3;
    for (i = 0; i < count; i++) {
        tl_env env = silent();
        tl_graph graph;
        tl_fusion_plan fusion;
        tl_fusion_desc desc;
        tl_plan before, after;
        tl_run_report report;
        static lab a, b;
        random_lab_graph(&env, &random, NODES, &graph);
        desc = fusion_desc(&graph);
        desc.block_bytes = blocks[i % 4];
        fused(&desc, &fusion);
        assert_members_are_a_partition(&graph, &fusion);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &before), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &fusion.graph, 0, &after), TL_OK);
        lab_init(&a, &graph, NULL);
        lab_run(&a, &before, &report);
        lab_init(&b, &graph, &fusion);
        lab_run(&b, &after, &report);
        assert_int_equal(report.measured_peak_bytes, after.peak_bytes);
        assert_same_runs(&a, &b);
        fused_graphs += fusion.fused_count > 0;
        smaller += after.peak_bytes < before.peak_bytes;
        tl_free_plan(&env, &before);
        tl_free_plan(&env, &after);
        tl_free_fusion_plan(&env, &fusion);
        tl_free_graph(&env, &graph);
    }
    print_message("%d graphs, %d fused, %d with a smaller peak\n", count, fused_graphs, smaller);
    assert_true(fused_graphs > count / 2 && smaller > count / 4);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_becomes_one_node),
        cmocka_unit_test(fused_runs_equal_plain_ones_to_the_last_bit),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
