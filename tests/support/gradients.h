// What a plan computes: the gradients of two training steps with kernels that mix bits. Include after run_support.h.
#ifndef TESTS_GRADIENTS_H
#define TESTS_GRADIENTS_H

static inline tl_result load_inputs(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = tl_find_run_graph(run);
    unsigned char bytes[512];
    uint64_t k;
    int32_t i;
    mixer_start_pass((mixer *)user);
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        tl_tensor tensor;
        if (!graph->nodes[output->node].is_input) continue;
        for (k = 0; k < output->bytes; k++) bytes[k] = (unsigned char)tl_mix_u64((uint64_t)(micro_batch + i), k);
        tensor.node = output->node;
        tensor.output = output->output;
        if (tl_write_tensor(run, tensor, bytes, output->bytes)) return TL_ERROR_IO;
    }
    return TL_OK;
}

// Two training steps under a plan: the checksum of every gradient, and the measured peak.
static inline uint64_t gradients_of(const tl_graph *graph, const tl_plan *plan, uint64_t *peak) {
    static mixer m;
    static spy s;
    static tl_kernel kernels[MIXER_NODES];
    tl_env env;
    tl_backend backend;
    tl_run_desc desc;
    tl_run_report report;
    tl_run *run;
    uint64_t sum = 0;
    int32_t i;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    mixer_init(&m);
    backend = spy_open(&env, BACKEND_CHECKED, 1, 1, &s);
    desc.graph = graph;
    desc.backend = &backend;
    desc.plan = plan;
    desc.kernels = kernels;
    desc.kernel_count = mixer_kernels(graph, &m, kernels);
    desc.load = load_inputs;
    desc.load_user = &m;
    desc.seed = 42;
    if (tl_init_run(&env, &desc, &run) || tl_run_plan(run) || tl_run_plan(run)) fail_msg("%s", env.error.text);
    tl_measure_run(run, &report);
    *peak = report.measured_peak_bytes;
    for (i = 0; i < graph->node_count; i++) sum = tl_mix_u64(sum, m.gradients[i]);
    tl_free_run(run);
    spy_close(&env, &s);
    return sum;
}

#endif
