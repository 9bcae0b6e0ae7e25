// A run with all it needs: its backend behind the spy, kernels for every node, inputs that depend on the micro-batch.
// Include after run_support.h.
#ifndef TESTS_RUN_BED_H
#define TESTS_RUN_BED_H

// -- a run, its backend and its kernels --

// Of each plan that a run makes: tests of runs ask whether plans run, not whether they are the best.
#define BED_WORK 200000

typedef struct bed {
    tl_env      env;          // of the run
    tl_env      backend_env;
    spy         spy;
    tl_backend  backend;
    mixer       mixer;
    tl_kernel   kernels[MIXER_NODES];
    tl_run_desc desc;
    tl_run     *run;
    const tl_graph *graph;
    long        loads;
    long        logged;       // sentences about failures
    int32_t     load_fails_at;  // micro-batch; -1 = never
} bed;

// The inputs depend on the micro-batch.
static inline tl_result bed_load(tl_run *run, int32_t micro_batch, void *user) {
    bed *b = (bed *)user;
    unsigned char bytes[256];
    int32_t i;
    uint64_t k;
    mixer_start_pass(&b->mixer);
    b->loads++;
    if (micro_batch == b->load_fails_at) return TL_ERROR_IO;
    for (i = 0; i < b->graph->tensor_count; i++) {
        const tl_node_output *output = &b->graph->outputs[i];
        tl_tensor tensor;
        if (!b->graph->nodes[output->node].is_input) continue;
        if (b->graph->nodes[output->node].state && b->loads > 1) continue;     // states are written once
        assert_true(output->bytes <= sizeof bytes);
        for (k = 0; k < output->bytes; k++) bytes[k] = (unsigned char)tl_mix_u64((uint64_t)micro_batch * 1000 + (uint64_t)i, k);
        tensor.node = output->node;
        tensor.output = output->output;
        if (tl_write_tensor(run, tensor, bytes, output->bytes)) return TL_ERROR_IO;
    }
    return TL_OK;
}

static inline void bed_log(void *user, const char *text) {
    assert_true(strlen(text) > 10);
    ++*(long *)user;
}

static inline void bed_open(bed *b, const tl_graph *graph, int kind, uint64_t seed, uint64_t alignment) {
    memset(&b->env, 0, sizeof b->env);
    memset(&b->backend_env, 0, sizeof b->backend_env);
    memset(&b->desc, 0, sizeof b->desc);
    b->run = NULL;
    b->graph = graph;
    b->loads = b->logged = 0;
    b->env.log = bed_log;
    b->env.user = &b->logged;
    b->load_fails_at = -1;
    b->backend = spy_open(&b->backend_env, kind, seed, alignment, &b->spy);
    mixer_init(&b->mixer);
    b->desc.graph = graph;
    b->desc.backend = &b->backend;
    b->desc.kernels = b->kernels;
    b->desc.kernel_count = mixer_kernels(graph, &b->mixer, b->kernels);
    b->desc.load = bed_load;
    b->desc.load_user = b;
    b->desc.seed = 42;
    b->desc.work_limit = BED_WORK;
}

static inline tl_result bed_init(bed *b) { return tl_init_run(&b->env, &b->desc, &b->run); }

static inline void bed_must_init(bed *b) {
    if (bed_init(b)) fail_msg("%s", b->env.error.text);
}

static inline void bed_close(bed *b) {
    tl_free_run(b->run);
    b->run = NULL;
    spy_close(&b->backend_env, &b->spy);
}

static inline uint64_t input_bytes(const tl_graph *graph) {
    uint64_t bytes = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].is_input) bytes += graph->outputs[i].bytes;
    return bytes;
}

// The outputs that outlive a step: of kept nodes; where a forward pass has none of these, all of nodes that nobody reads.
static inline void bed_mark_results(const tl_graph *graph, int inference, uint8_t *results) {
    int32_t i, k;
    int any_keep = 0;
    for (i = 0; i < graph->node_count; i++) any_keep |= graph->nodes[i].keep;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        results[i] = (uint8_t)(any_keep ? node->keep : inference && !node->is_input);
        results[i] |= node->state != TL_STATE_NONE;
    }
    if (!inference || any_keep) return;
    for (i = 0; i < graph->input_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[graph->inputs[i].tensor].node];
        for (k = 0; k < maker->output_count; k++) results[maker->first_output + k] = 0;
    }
}

// What a step computed: every gradient checksum, and the bytes of the results.
static inline uint64_t bed_outcome(bed *b, int inference) {
    const tl_graph *graph = tl_find_run_graph(b->run);
    unsigned char bytes[512];
    uint8_t *results = (uint8_t *)calloc((size_t)graph->tensor_count, 1);
    uint64_t sum = 1, k;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) sum = tl_mix_u64(sum, b->mixer.gradients[i]);
    bed_mark_results(graph, inference, results);
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        tl_tensor tensor;
        if (!results[i]) continue;
        assert_true(output->bytes <= sizeof bytes);
        tensor.node = output->node;
        tensor.output = output->output;
        if (tl_read_tensor(b->run, tensor, bytes, output->bytes)) fail_msg("%s", b->env.error.text);
        for (k = 0; k < output->bytes; k++) sum = tl_mix_u64(sum, bytes[k]);
    }
    free(results);
    return sum;
}

static inline uint64_t bed_step(bed *b, int inference) {
    if (tl_run_plan(b->run)) fail_msg("%s", b->env.error.text);
    return bed_outcome(b, inference);
}

static inline tl_run_report bed_report(const bed *b) {
    tl_run_report report;
    tl_measure_run(b->run, &report);
    return report;
}

// What the system gave is what was planned; without accounts nobody counts it.
static inline void bed_check_taken(const tl_run_report *report) {
#ifdef TL_NO_ACCOUNTS
    assert_int_equal(report->taken_bytes, 0);
    assert_true(report->planned_taken_bytes > 0);
#else
    assert_int_equal(report->taken_bytes, report->planned_taken_bytes);
#endif
}

// Outcome of two training steps that keep everything, on the plain backend.
static inline uint64_t keep_all_outcome(const tl_graph *graph, int inference, int32_t repeat, uint64_t *peak) {
    static bed b;
    tl_plan plan;
    uint64_t sum;
    bed_open(&b, graph, 0, 0, 1);
    if (tl_plan_keep_all(&b.env, graph, inference, &plan)) fail_msg("%s", b.env.error.text);
    b.desc.plan = &plan;
    b.desc.repeat_count = repeat;
    bed_must_init(&b);
    (void)bed_step(&b, inference);
    sum = bed_step(&b, inference);
    if (peak) *peak = bed_report(&b).measured_peak_bytes;
    bed_close(&b);
    tl_free_plan(&b.env, &plan);
    return sum;
}

#endif
