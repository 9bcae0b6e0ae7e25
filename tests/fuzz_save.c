// make fuzz-save, or:
// clang -g -O1 -std=c99 -fsanitize=fuzzer,address,undefined tests/fuzz_save.c && ./a.out tests/corpus/fuzz_save
// clang -g -DWRITE_SEEDS tests/fuzz_save.c -o seeds && ./seeds tests/corpus/fuzz_save      the seeds: saved runs
//
// Hostile data loaded into a run, its states alone and all of it, with the checksum made right. What is refused leaves the run as it was: its next pass
// computes what it would have computed. What is taken over, a pass too, is run to its end or given up, and then the
// next pass as well. The first byte chooses the plan, and how many steps may be under way.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; truncate
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const graph_text =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8,4 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=12 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 b conv fwd=1 bwd=2 out=12 needs=out in=1 inplace=0\n"
    "node 3 s conv fwd=4 bwd=3 out=3,5,0 needs=out1 in=2,0.1\n"
    "node 4 c conv fwd=2 bwd=2 out=4 needs=in0 in=3.0,3.1,1 keep\n";

static const char *const schedules[] = {
    "S 1\nO 1\nF 2\nW 1\nF 3\nL 1\nD 2\nW 1\nDH 1\nF 4\nB 4\nF 2\nB 3\nB 2\nB 1\n",
    "S 1\nC 1 bf16\nX 1\nI 2\nF 3\nF 1\nF 4\nB 4\nB 3\nB 2\nB 1\n",
    "E 2.0\nS 1\nF 3\nF 4\nB 4\nB 3\nB 2\nD 2\nB 1\n",
    "S 1\nF 2 begin\nDH 1\nW 2\nF 3 begin\nO 1\nW 3\nF 4\nW 1\nB 4\nB 3 begin\nL 1\nW 1\nW 3\nB 2\nB 1\n",
};

enum { SCHEDULES = sizeof schedules / sizeof *schedules, BEGINS = 3 };  // the last begins calls

static void check(int ok) { if (!ok) abort(); }

// Every byte written depends on every byte read.
static uint64_t sum_operand(uint64_t sum, const tl_operand *operand) {
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) sum = tl_mix_u64(sum, ((const unsigned char *)operand->host)[i]);
    return sum;
}

static void spread(uint64_t sum, const tl_operand *operand, int adds) {
    unsigned char *at = (unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++)
        at[i] = (unsigned char)((adds ? 3u * at[i] : 0u) + (unsigned)(tl_mix_u64(sum, i) & 255));
}

static tl_result compute(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node), *total = (uint64_t *)user;
    int32_t i, backward = call->kind == TL_STEP_BACKWARD;
    if (call->node == 3 && call->polled < 2) return TL_NOT_READY;
    for (i = 0; i < node->input_count; i++) sum = sum_operand(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count && backward; i++) sum = sum_operand(sum, &call->output_grads[i]);
    for (i = 0; i < node->output_count && !backward && !call->outputs_ready; i++) spread(sum, &call->outputs[i], 0);
    if (backward) sum = sum_operand(sum, &call->saved);
    else spread(sum + 1, &call->saved, 0);
    spread(sum, &call->scratch, 0);
    for (i = 0; i < node->input_count && backward; i++) spread(sum, &call->input_grads[i], 1);
    *total = tl_mix_u64(*total, sum);
    return TL_OK;
}

typedef struct bed {
    tl_graph   graph;
    tl_plan    plan;
    tl_backend backend;
    tl_run    *run;
    tl_variable   state;
    uint64_t   total;       // the caller's state
} bed;

static void open_bed(bed *b, unsigned choice) {
    const char *text = schedules[choice % 128 % SCHEDULES];
    tl_cpu_backend_desc cpu;
    tl_kernel kernel;
    tl_run_desc desc;
    memset(b, 0, sizeof *b);
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    check(!tl_parse_graph(NULL, graph_text, strlen(graph_text), &b->graph));
    check(!tl_parse_schedule(NULL, text, strlen(text), &b->plan));
    check(!tl_init_cpu_backend(NULL, &cpu, &b->backend));
    kernel.op = "conv";
    kernel.forward = kernel.backward = compute;
    kernel.user = &b->total;
    b->state.node = -1;
    b->state.kind = TL_VARIABLE_GRADIENT;
    b->state.host = &b->total;
    b->state.bytes = sizeof b->total;
    desc.graph = &b->graph;
    desc.plan = &b->plan;
    desc.backend = &b->backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.variables = &b->state;
    desc.variable_count = 1;
    desc.in_flight = choice % 128 % SCHEDULES == BEGINS ? 0 : (int32_t)(choice % 128 / SCHEDULES % 3);
    check(!tl_init_run(NULL, &desc, &b->run));
}

static void close_bed(bed *b) {
    tl_free_run(b->run);
    check(!tl_free_cpu_backend(NULL, &b->backend));
    tl_free_plan(NULL, &b->plan);
    tl_free_graph(NULL, &b->graph);
}

// Carry out so many steps of the pass under way. 1 = it is over.
static int run_steps(bed *b, int count) {
    int32_t done = 0;
    while (!done && count-- > 0) {
        tl_run_step step;
        tl_result result;
        while ((result = tl_next_step(b->run, &step, &done)) == TL_NOT_READY) { }
        if (result) { check(result == TL_ERROR_MISMATCH); return 1; }   // measured peaks that were not these
        if (!step.is_compute) continue;
        while ((result = tl_run_step_kernel(b->run, &step)) == TL_NOT_READY) { }
        check(!result);
    }
    return done;
}

static uint64_t run_pass(bed *b) {
    check(!tl_start_pass(b->run, 0));
    check(run_steps(b, 1000));
    return b->total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bed b;
    unsigned choice = size ? data[0] : 0;
    uint64_t sum = 0, expected;
    uint8_t *bytes;
    tl_saved saved;
    size_t i;
    tl_result result;
    if (!size) return 0;
    open_bed(&b, choice);
    expected = run_pass(&b);
    close_bed(&b);
    bytes = (uint8_t *)malloc(size + 7);
    memcpy(bytes, data + 1, size - 1);
    sum = tli_checksum_bytes(0, bytes, size - 1);
    for (i = 0; i < 8; i++) bytes[size - 1 + i] = (uint8_t)(sum >> (8 * i));
    saved.data = bytes;
    saved.length = size + 7;
    open_bed(&b, choice);
    result = tl_load_variables(b.run, &saved, 1);
    check(run_pass(&b) == expected || !result);
    close_bed(&b);
    open_bed(&b, choice);
    result = tl_load_run(b.run, bytes, size + 7);
    free(bytes);
    if (result) {
        check(run_pass(&b) == expected);
    } else {
        (void)tl_start_pass(b.run, 0);      // refused where a pass is under way: the steps are of that one
        (void)run_steps(&b, 1000 * (int)(choice >> 7));
        check(!tl_reset_run(b.run));
        (void)run_pass(&b);
    }
    close_bed(&b);
    return 0;
}

#ifdef WRITE_SEEDS
static tl_result write_file(void *user, const char *text, size_t length) {
    return fwrite(text, 1, length, (FILE *)user) == length ? TL_OK : TL_ERROR_IO;
}

// Saved runs of each plan, between passes and after some steps, without their checksums.
int main(int count, char **argv) {
    unsigned choice;
    int steps;
    check(count == 2);
    for (choice = 0; choice < 3 * SCHEDULES; choice++)
        for (steps = 0; steps < 16; steps += 5) {
            static bed b;
            char path[512];
            tl_sink sink;
            FILE *file;
            long length;
            int result;
            open_bed(&b, choice);
            if (steps) {
                check(!tl_start_pass(b.run, 0));
                (void)run_steps(&b, steps);
            }
            snprintf(path, sizeof path, "%s/run_%u_%d", argv[1], choice, steps);
            file = fopen(path, "wb+");
            check(file != NULL);
            fputc((int)(choice | (steps & 1 ? 128u : 0u)), file);
            sink.write = write_file;
            sink.user = file;
            result = (int)tl_save_run(b.run, sink);
            length = ftell(file);
            fclose(file);
            if (result || truncate(path, length - 8)) remove(path);
            close_bed(&b);
        }
    return 0;
}
#endif
