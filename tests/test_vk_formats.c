// Graphs whose tensors have formats, run on a device: what they leave is, bit for bit, what the CPU backend leaves, and
// the peak that was planned is the one that the backend counts. Conversions are carried out by the run, or, where the
// host does not see the device's memory, by a kernel that records them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"

enum {
    COUNT = 1001,           // elements of every tensor: no whole number of words in 16 bits
    NODES = 16,
    TENSORS = 16
};

// -- a machine: the CPU, or a device --

typedef struct machine {
    world       w;          // of the device
    tl_env      env;
    tl_backend  backend;
    int         is_device;
    tl_range    sum, term;  // f32 [COUNT] that kernels compute in
    tl_range    gradients[NODES];  // f32 [COUNT] of the parameters of each node
} machine;

static void ok(machine *m, tl_result result, const char *what) {
    const tl_env *env = m->is_device ? &m->w.env : &m->env;
    if (result) fail_msg("%s: %s: %s", what, tl_name_result(result), env->error.text);
}

static tl_env *env_of(machine *m) { return m->is_device ? &m->w.env : &m->env; }

static tl_range claim_floats(machine *m) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = 4 * COUNT;
    ok(m, m->backend.add_block(m->backend.self, TL_TIER_DEVICE, range.bytes, &range.block), "add_block");
    ok(m, m->backend.claim(m->backend.self, range), "claim");
    return range;
}

static void claim_all(machine *m) {
    int i;
    m->sum = claim_floats(m);
    m->term = claim_floats(m);
    for (i = 0; i < NODES; i++) m->gradients[i] = claim_floats(m);
}

static void release_range(machine *m, tl_range range) {
    ok(m, m->backend.release(m->backend.self, range), "release");
    ok(m, m->backend.free_block(m->backend.self, range.block), "free_block");
}

static void release_all(machine *m) {
    int i;
    release_range(m, m->sum);
    release_range(m, m->term);
    for (i = 0; i < NODES; i++) release_range(m, m->gradients[i]);
}

static void open_cpu(machine *m) {
    tl_cpu_backend_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(m, 0, sizeof *m);
    ok(m, tl_init_cpu_backend(&m->env, &desc, &m->backend), "tl_init_cpu_backend");
    claim_all(m);
}

static void close_cpu(machine *m) {
    release_all(m);
    tl_free_cpu_backend(&m->env, &m->backend);
}

static void open_vulkan(machine *m, const variant *kind) {
    memset(m, 0, sizeof *m);
    open_variant(&m->w, kind);
    open_backend(&m->w);
    m->backend = m->w.backend;
    m->is_device = 1;
    claim_all(m);
}

static void close_vulkan(machine *m) {
    release_all(m);
    expect_idle(&m->w, "at the end");
    close_backend(&m->w, "at the end");
    close_device(&m->w);
}

// -- kernels: sums, in f32, rounded to the format of what they write --

static tl_codec codec_of(tl_format format) {
    return format == TL_FORMAT_F16 ? TL_CODEC_F16 : format == TL_FORMAT_BF16 ? TL_CODEC_BF16 : TL_CODEC_NONE;
}

static tl_result order(machine *m, tl_range to, tl_range from) {
    tl_access accesses[2];
    accesses[0].range = to;
    accesses[0].writes = 1;
    accesses[1].range = from;
    accesses[1].writes = 0;
    return m->backend.order(m->backend.self, accesses, 2);
}

// to += from, both f32, one after the other on either machine.
static tl_result add_floats(machine *m, tl_range to, tl_range from) {
    const tl_backend *b = &m->backend;
    float *sum, *term;
    tl_result result;
    int i;
    if (m->is_device) return tl_vk_record_add(b, to, from);
    result = order(m, to, from);
    if (!result) result = b->map(b->self, to, TL_MAP_CHANGE, (void **)&sum);
    if (!result) result = b->map(b->self, from, TL_MAP_READ, (void **)&term);
    if (result) return result;
    for (i = 0; i < COUNT; i++) sum[i] += term[i];
    result = b->unmap(b->self, from, TL_MAP_READ, term);
    return result ? result : b->unmap(b->self, to, TL_MAP_CHANGE, sum);
}

static tl_result load_floats(machine *m, tl_range to, const tl_operand *from) {
    const tl_backend *b = &m->backend;
    tl_codec codec = codec_of(from->format);
    return codec ? b->expand(b->self, codec, to, from->range) : b->copy(b->self, to, from->range);
}

static tl_result store_floats(machine *m, const tl_operand *to, tl_range from) {
    const tl_backend *b = &m->backend;
    tl_codec codec = codec_of(to->format);
    return codec ? b->compress(b->self, codec, to->range, from) : b->copy(b->self, to->range, from);
}

// to += from, rounded once.
static tl_result add_operand(machine *m, const tl_operand *to, const tl_operand *from) {
    tl_result result;
    if (!to->range.bytes) return TL_OK;
    result = load_floats(m, m->sum, to);
    if (!result) result = load_floats(m, m->term, from);
    if (!result) result = add_floats(m, m->sum, m->term);
    return result ? result : store_floats(m, to, m->sum);
}

// The output is the sum of the inputs and of the first of them once more.
static tl_result sum_forward(const tl_kernel_call *call, void *user) {
    machine *m = (machine *)user;
    int32_t count = call->graph->nodes[call->node].input_count, i;
    tl_result result = load_floats(m, m->sum, &call->inputs[0]);
    for (i = 0; i < count && !result; i++) {
        result = load_floats(m, m->term, &call->inputs[i]);
        if (!result) result = add_floats(m, m->sum, m->term);
    }
    return result || call->outputs_ready ? result : store_floats(m, &call->outputs[0], m->sum);
}

// Gradients of parameters: that of the output and the first input, where it is needed.
static tl_result sum_backward(const tl_kernel_call *call, void *user) {
    machine *m = (machine *)user;
    int32_t count = call->graph->nodes[call->node].input_count, i;
    tl_result result = load_floats(m, m->term, &call->output_grads[0]);
    if (!result) result = add_floats(m, m->gradients[call->node], m->term);
    if (!result && call->inputs[0].range.bytes) {
        result = load_floats(m, m->term, &call->inputs[0]);
        if (!result) result = add_floats(m, m->gradients[call->node], m->term);
    }
    for (i = 0; i < count && !result; i++) {
        result = add_operand(m, &call->input_grads[i], &call->output_grads[0]);
        if (!i && !result) result = add_operand(m, &call->input_grads[i], &call->output_grads[0]);
    }
    return result;
}

// What a tensor is, before kernels are given it: the quantisations of the graph under way.
static const tl_quantization *quantizations_of_run;

static tl_result move_formats(machine *m, const tl_kernel_call *call, const tl_operand *to, const tl_operand *from) {
    const tl_node *node = &call->graph->nodes[call->node];
    const tl_backend *b = &m->backend;
    int32_t output = node->first_output, input = call->graph->inputs[node->first_input].tensor;
    if (to->format == TL_FORMAT_I8 || to->format == TL_FORMAT_I16)
        return tl_vk_record_quantize(b, to->range, from->range, &quantizations_of_run[output], 1, 1, to->format);
    if (from->format == TL_FORMAT_I8 || from->format == TL_FORMAT_I16)
        return tl_vk_record_dequantize(b, to->range, from->range, &quantizations_of_run[input], 1, 1, from->format);
    if (!codec_of(to->format)) return load_floats(m, to->range, from);
    if (!codec_of(from->format)) return store_floats(m, to, from->range);
    {
        tl_result result = load_floats(m, m->sum, from);
        return result ? result : store_floats(m, to, m->sum);
    }
}

static tl_result convert_forward(const tl_kernel_call *call, void *user) {
    if (call->outputs_ready) return TL_OK;
    return move_formats((machine *)user, call, &call->outputs[0], &call->inputs[0]);
}

static tl_result convert_backward(const tl_kernel_call *call, void *user) {
    return add_operand((machine *)user, &call->input_grads[0], &call->output_grads[0]);
}

// -- runs --

typedef struct outcome {
    float    gradients[NODES][COUNT];
    float    results[TENSORS][COUNT];
    tl_run_report report;
} outcome;

static void read_floats(machine *m, tl_range range, float *to) {
    const tl_backend *b = &m->backend;
    void *host;
    ok(m, b->map(b->self, range, TL_MAP_READ, &host), "map");
    memcpy(to, host, 4 * COUNT);
    ok(m, b->unmap(b->self, range, TL_MAP_READ, host), "unmap");
}

static void write_inputs(machine *m, tl_run *run, const tl_graph *graph) {
    float values[COUNT];
    int32_t i;
    uint64_t k;
    for (i = 0; i < graph->node_count; i++) {
        tl_tensor tensor;
        if (!graph->nodes[i].is_input) continue;
        tensor.node = i;
        tensor.output = 0;
        for (k = 0; k < COUNT; k++)
            values[k] = (float)((double)(int64_t)tl_mix_u64((uint64_t)i, k) / 9223372036854775808.0 * 8);
        ok(m, tl_write_tensor(run, tensor, values, sizeof values), "tl_write_tensor");
    }
}

typedef struct job {
    tl_graph graph;
    uint8_t  formats[TENSORS];
    const tl_quantization *quantizations;
    tl_plan  plan;
    int      inference;
} job;

static void fill_desc(machine *m, const job *j, int own_conversions, tl_kernel *kernels, tl_run_desc *desc) {
    memset(desc, 0, sizeof *desc);
    memset(kernels, 0, 2 * sizeof *kernels);
    kernels[0].op = "sum";
    kernels[0].forward = sum_forward;
    kernels[0].backward = sum_backward;
    kernels[0].user = m;
    kernels[1].op = "convert";
    kernels[1].forward = convert_forward;
    kernels[1].backward = convert_backward;
    kernels[1].user = m;
    quantizations_of_run = j->quantizations;
    desc->graph = &j->graph;
    desc->backend = &m->backend;
    desc->kernels = kernels;
    desc->kernel_count = own_conversions ? 2 : 1;
    desc->kernel_precisions = 1u << TL_PRECISION_MIXED;
    desc->plan = &j->plan;
    desc->budget_bytes = j->plan.arena_bytes + 64;      // the CPU takes up to that for its alignment
    desc->formats = j->formats;
    desc->quantizations = j->quantizations;
}

// Two training steps, or passes.
static void run_job(machine *m, const job *j, int own_conversions, outcome *out) {
    tl_kernel kernels[2];
    tl_run_desc desc;
    tl_run *run;
    int32_t i;
    memset(out, 0, sizeof *out);
    fill_desc(m, j, own_conversions, kernels, &desc);
    for (i = 0; i < NODES; i++) ok(m, m->backend.fill(m->backend.self, m->gradients[i], 0), "fill");
    ok(m, tl_init_run(env_of(m), &desc, &run), "tl_init_run");
    write_inputs(m, run, &j->graph);
    ok(m, tl_run_plan(run), "tl_run_plan");
    ok(m, tl_run_plan(run), "tl_run_plan");
    tl_measure_run(run, &out->report);
    for (i = 0; i < j->graph.node_count; i++) {
        tl_tensor tensor;
        if (!j->graph.nodes[i].keep) continue;
        tensor.node = i;
        tensor.output = 0;
        ok(m, tl_read_tensor(run, tensor, out->results[i], 4 * COUNT), "tl_read_tensor");
    }
    for (i = 0; i < NODES; i++) read_floats(m, m->gradients[i], out->gradients[i]);
    tl_free_run(run);
}

static void make_graph(job *j, const char *text) {
    tl_env env;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, text, strlen(text), &j->graph)) fail_msg("%s", env.error.text);
}

// Keep all, or the least budget under which anything runs.
static void make_plan(job *j, int least) {
    tl_env env;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = &j->graph;
    desc.inference = j->inference;
    desc.alignment_bytes = 256;     // of most devices, and a multiple of what the others ask for
    if (!least) {
        if (tl_plan_remat(&env, &desc, &j->plan, &report)) fail_msg("%s", env.error.text);
        return;
    }
    desc.budget_bytes = 1;
    result = tl_plan_remat(&env, &desc, &j->plan, &report);
    assert_int_equal(result, TL_ERROR_INFEASIBLE);
    desc.budget_bytes = report.least_budget_bytes;
    if (tl_plan_remat(&env, &desc, &j->plan, &report)) fail_msg("%s", env.error.text);
}

static void free_job(job *j) {
    tl_free_plan(NULL, &j->plan);
    tl_free_graph(NULL, &j->graph);
}

static void expect_same(const outcome *a, const outcome *b, const char *what) {
    int i, k;
    for (i = 0; i < NODES; i++)
        for (k = 0; k < COUNT; k++) {
            if (memcmp(&a->gradients[i][k], &b->gradients[i][k], 4))
                fail_msg("%s: gradient %d of node %d is %a, not %a", what, k, i, (double)b->gradients[i][k],
                         (double)a->gradients[i][k]);
            if (memcmp(&a->results[i][k], &b->results[i][k], 4))
                fail_msg("%s: element %d of node %d is %a, not %a", what, k, i, (double)b->results[i][k],
                         (double)a->results[i][k]);
        }
}

static void expect_planned(const job *j, const outcome *out) {
    assert_int_equal(out->report.planned_peak_bytes, j->plan.peak_bytes);
    assert_int_equal(out->report.measured_peak_bytes, j->plan.peak_bytes);
}

static void expect_refusal(const job *j, const variant *kind, const char *text) {
    tl_kernel kernels[2];
    tl_run_desc desc;
    tl_run *run;
    machine m;
    open_vulkan(&m, kind);
    fill_desc(&m, j, 0, kernels, &desc);
    assert_int_equal(tl_init_run(env_of(&m), &desc, &run), TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(env_of(&m)->error.text, text));
    close_vulkan(&m);
}

// By the CPU, by devices with the conversions of the run, and with kernels for them. refusal: where the run says that
// it cannot convert on a device.
static void compare_machines(const job *j, const char *what, const char *refusal) {
    static outcome expected, got;
    int32_t i, k, differs = 0;
    machine m;
    open_cpu(&m);
    run_job(&m, j, 0, &expected);
    close_cpu(&m);
    expect_planned(j, &expected);
    assert_true(expected.report.convert_count > 0);
    for (i = 0; i < NODES; i++)
        for (k = 0; k < COUNT; k++) differs |= expected.results[i][k] != 0;
    assert_true(differs);
    for (k = 0; k < VARIANTS; k++) {
        for (i = refusal ? 1 : 0; i < 2; i++) {
            open_vulkan(&m, &variants[k]);
            run_job(&m, j, i, &got);
            close_vulkan(&m);
            expect_planned(j, &got);
            assert_int_equal(got.report.convert_count, i ? 0 : expected.report.convert_count);
            expect_same(&expected, &got, what);
        }
        if (refusal) expect_refusal(j, &variants[k], refusal);
    }
}

// -- graphs --

#define CONVERTED \
    "tlg 1\n" \
    "node 0 x input fwd=0 bwd=0 out=4004 needs=none in=-\n" \
    "node 1 a sum fwd=3 bwd=3 out=4004 needs=in in=0\n" \
    "node 2 s sum fwd=3 bwd=3 out=4004 needs=in in=1\n" \
    "node 3 a_bf16 convert fwd=1 bwd=1 out=2002 needs=none in=1\n" \
    "node 4 b sum fwd=3 bwd=3 out=2002 needs=in in=3\n" \
    "node 5 c sum fwd=3 bwd=3 out=2002 needs=in in=4,3\n" \
    "node 6 c_f16 convert fwd=1 bwd=1 out=2002 needs=none in=5 fwork=4004 bwork=4004\n" \
    "node 7 d sum fwd=3 bwd=3 out=2002 needs=in in=6\n"

// A tensor is converted once more after all its other readers, so that the run adds to no gradient; bf16 becomes f16
// through scratch.
static const char plain_text[] =
    CONVERTED
    "node 8 d_f32 convert fwd=1 bwd=1 out=4004 needs=none in=7\n"
    "node 9 e sum fwd=3 bwd=3 out=4004 needs=in in=8,2 keep\n";

// Conversions whose gradients meet those of other readers.
static const char shared_text[] =
    CONVERTED
    "node 8 c_f32 convert fwd=1 bwd=1 out=4004 needs=none in=5\n"
    "node 9 d_f32 convert fwd=1 bwd=1 out=4004 needs=none in=7\n"
    "node 10 e sum fwd=3 bwd=3 out=4004 needs=in in=9,8,2,1 keep\n";

static void set_mixed_formats(job *j) {
    memset(j->formats, TL_FORMAT_F32, sizeof j->formats);
    j->formats[3] = j->formats[4] = j->formats[5] = TL_FORMAT_BF16;
    j->formats[6] = j->formats[7] = TL_FORMAT_F16;
}

static void mixed_training_leaves_the_bytes_of_the_cpu(void **state) {
    uint64_t all_peak_bytes = 0;
    int least, shared;
    (void)state;
    if (!vkt_has_vulkan("mixed_training_leaves_the_bytes_of_the_cpu")) skip();
    for (shared = 0; shared < 2; shared++)
        for (least = 0; least < 2; least++) {
            job j;
            memset(&j, 0, sizeof j);
            make_graph(&j, shared ? shared_text : plain_text);
            set_mixed_formats(&j);
            make_plan(&j, least);
            if (least) assert_true(j.plan.peak_bytes < all_peak_bytes);
            all_peak_bytes = j.plan.peak_bytes;
            compare_machines(&j, least ? "within the least budget" : "all kept", shared ? "node 3 (a_bf16)" : NULL);
            free_job(&j);
        }
}

// Forward only: integers of 8 and 16 bits on the way.
static const char integer_text[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=4004 needs=none in=-\n"
    "node 1 a sum fwd=3 bwd=0 out=4004 needs=none in=0 grad=no\n"
    "node 2 a_i8 convert fwd=1 bwd=0 out=1001 needs=none in=1 grad=no\n"
    "node 3 a_back convert fwd=1 bwd=0 out=4004 needs=none in=2 grad=no\n"
    "node 4 a_i16 convert fwd=1 bwd=0 out=2002 needs=none in=1 grad=no\n"
    "node 5 a_wide convert fwd=1 bwd=0 out=4004 needs=none in=4 grad=no\n"
    "node 6 b sum fwd=3 bwd=0 out=4004 needs=none in=3,5 grad=no keep\n"
    "node 7 b_i8 convert fwd=1 bwd=0 out=1001 needs=none in=6 grad=no\n"
    "node 8 c convert fwd=1 bwd=0 out=4004 needs=none in=7 grad=no keep\n";

static void integers_on_the_way_leave_the_bytes_of_the_cpu(void **state) {
    tl_quantization q[TENSORS];
    job j;
    (void)state;
    if (!vkt_has_vulkan("integers_on_the_way_leave_the_bytes_of_the_cpu")) skip();
    memset(&j, 0, sizeof j);
    memset(q, 0, sizeof q);
    make_graph(&j, integer_text);
    memset(j.formats, TL_FORMAT_F32, sizeof j.formats);
    j.formats[2] = j.formats[7] = TL_FORMAT_I8;
    j.formats[4] = TL_FORMAT_I16;
    if (tl_find_quantization(NULL, TL_RANGE_AFFINE, -15, 16, -128, 127, &q[2])) fail();
    if (tl_find_quantization(NULL, TL_RANGE_NARROW, -16, 16, -32767, 32767, &q[4])) fail();
    if (tl_find_quantization(NULL, TL_RANGE_AFFINE, -20, 40, -128, 127, &q[7])) fail();
    j.quantizations = q;
    j.inference = 1;
    make_plan(&j, 0);
    compare_machines(&j, "integers", "node 2 (a_i8)");
    free_job(&j);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_training_leaves_the_bytes_of_the_cpu),
        cmocka_unit_test(integers_on_the_way_leave_the_bytes_of_the_cpu),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
