// 04_steps.c -- your own loop over the steps of a run
//
// You learn: a run may be pulled, a few steps a frame, by a loop of your own. Memory steps are carried out by
// tl_next_step; for a compute step you call the kernel, or record it, and say so with tl_finish_step. A loop
// that forgets a step gets an error that names it, and loses nothing. It runs y = w8 ... w2 w1 x forward and
// backward within 60 % of the bytes that keeping everything takes, and prints the gradient of w1.
// Read next: 03, where such a loop fills the frames of an engine on Vulkan.
//
// check:
//
//     mkdir -p build && cc -std=c99 -o build/04_steps examples/04_steps.c && build/04_steps

#include <stdio.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

enum { LAYERS = 8, COUNT = 64, STEPS_A_FRAME = 6 };

static float weight[LAYERS + 1], gradient[LAYERS + 1];  // by node; 0 is the input

static float *values(const tl_operand *operand) { return (float *)operand->host; }

// Called by the loop below; a run wants to know that there is a kernel for every op.
static tl_result forward(const tl_kernel_call *call, void *user) {
    int i;
    (void)user;
    for (i = 0; i < COUNT; i++) values(&call->outputs[0])[i] = weight[call->node] * values(&call->inputs[0])[i];
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    const float *x = values(&call->inputs[0]), *dy = values(&call->output_grads[0]);
    float *dx = values(&call->input_grads[0]);
    int i;
    (void)user;
    for (i = 0; i < COUNT; i++) gradient[call->node] += dy[i] * x[i];
    for (i = 0; i < COUNT && dx; i++) dx[i] += dy[i] * weight[call->node];  // nobody wants that of the input
    return TL_OK;
}

// A few steps, as many as a frame has time for. *done = 1: the pass is over, and was checked.
static tl_result run_frame(tl_run *run, int32_t *done) {
    tl_result result = TL_OK;
    int i;
    for (i = 0; i < STEPS_A_FRAME && !result && !*done; i++) {
        tl_run_step step;
        result = tl_next_step(run, &step, done);
        if (result || !step.is_compute) continue;
        result = tl_map_step(run, &step);  // the CPU's are mapped already; on a GPU this copies them to the host
        if (result) break;
        result = step.call.kind == TL_STEP_BACKWARD ? backward(&step.call, NULL) : forward(&step.call, NULL);
        if (!result) result = tl_finish_step(run, &step);
    }
    return result;
}

static tl_result run_pass(tl_env *env, const tl_backend *backend) {
    const tl_tensor input = { 0, 0 };
    tl_layer layers[LAYERS] = { { 0 } };
    tl_run_desc desc = { 0 };
    tl_run_report report;
    tl_run *run;
    float x[COUNT];
    int32_t done = 0, frames = 0, i;
    tl_result result;
    for (i = 0; i < LAYERS; i++) {
        layers[i].forward = forward;
        layers[i].backward = backward;
        layers[i].output_bytes = sizeof x;
        weight[i + 1] = 1.0f + (float)i / 16;
    }
    for (i = 0; i < COUNT; i++) x[i] = (float)i / COUNT;
    desc.backend = backend;
    desc.budget_bytes = 6 * sizeof x;
    result = tl_init_layer_run(env, &desc, layers, LAYERS, sizeof x, &run);
    if (result) return result;
    result = tl_write_tensor(run, input, x, sizeof x);
    if (!result) result = tl_start_pass(run, 0);
    for (; !result && !done; frames++) result = run_frame(run, &done);
    tl_measure_run(run, &report);
    if (!result)
        printf("%d frames, %d steps, %d forwards made again, peak %d bytes, gradient %.3f\n", (int)frames,
               (int)report.step_count, (int)report.recompute_count, (int)report.measured_peak_bytes,
               (double)gradient[1]);
    tl_free_run(run);
    return result;
}

int main(void) {
    tl_env env = { 0 };
    tl_cpu_backend_desc cpu = { 0 };
    tl_backend backend;
    tl_result result = tl_init_cpu_backend(&env, &cpu, &backend);
    if (!result) result = run_pass(&env, &backend);
    if (result) fprintf(stderr, "%s\n", env.error.text);
    return tl_free_cpu_backend(&env, &backend) || result;
}
