// One way to run a plan that every build knows: the full library, TL_ONLY_TABLES (tables_run.c) and TL_SMALL_SIZES
// (small_run.c), each in a file of its own. What they compute must be the same. Include after cmocka and the header.
#ifndef TESTS_TABLE_RUN_H
#define TESTS_TABLE_RUN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "mixer.h"

enum { TABLE_SLOTS = 3, TABLE_STEPS = 2 };

// Only types that no option changes.
typedef struct table_case {
    const tl_graph *graph;
    const tl_plan  *plan;
    int32_t  repeat_count;
    int32_t  by_steps;      // 1 = the steps are pulled
    int32_t  waits;         // 1 = no kernel is ready when it is asked first
    int32_t  streams;       // 1 = random numbers from a stream, under the hook
    int32_t  has_users;     // 1 = kernels are given their user by node
    uint64_t alignment;
    int32_t  fail_at;       // call number of a kernel that fails once, in the first step; -1 = none
    const tl_run_desc *asks;  // more that is asked for; NULL = nothing
    int32_t  kernel_count;  // only so many kernels; 0 = all
    int32_t  user_count;    // only so many users; 0 = all
    int32_t  no_backward;   // 1 = kernels have none
    long     allocations;   // that succeed; 0 = all
    uint64_t less_bytes;    // by which bank 0 is too small
} table_case;

typedef struct table_outcome {
    tl_result result;       // the first that is not TL_OK
    uint32_t  site;
    char      text[248];
    uint64_t  sum;          // of gradients, seeds and results
    long      forwards, recomputes, backwards, saves_alone, refusals;
    int32_t   counts[5];    // by the report of the last pass
} table_outcome;

void run_tables(const table_case *c, table_outcome *out);
void run_small(const table_case *c, table_outcome *out);
int32_t requantize_small(int32_t sum, int32_t multiplier, int32_t exponent, int32_t zero_point);  // tl_requantize

typedef struct table_bed {
    const table_case *c;
    tl_env      env;
    tl_backend  backend;
    mixer       mixers[TABLE_SLOTS];    // of each slot
    void       *users[MIXER_NODES];
    tl_kernel   kernels[MIXER_NODES];
    tl_run     *run;
    void       *memory[TL_MOST_BANKS];
    long        refusals, calls;
    long        allocations;
} table_bed;

static inline void *table_alloc(void *user, size_t bytes) {
    table_bed *b = (table_bed *)user;
    return b->c->allocations && b->allocations++ >= b->c->allocations ? NULL : malloc(bytes);
}

static inline void table_release(void *user, void *memory) {
    (void)user;
    free(memory);
}

static inline mixer *table_mixer(table_bed *b, int32_t micro_batch) {
    return &b->mixers[micro_batch % (b->c->plan->slot_count ? b->c->plan->slot_count : 1)];
}

static tl_result table_forward(const tl_kernel_call *call, void *user) {
    table_bed *b = (table_bed *)user;
    if (b->c->waits && !call->polled) { b->refusals++; return TL_NOT_READY; }
    if (b->calls++ == b->c->fail_at) return TL_ERROR_CORRUPT;
    return mixer_forward(call, table_mixer(b, call->micro_batch));
}

static tl_result table_backward(const tl_kernel_call *call, void *user) {
    table_bed *b = (table_bed *)user;
    if (b->c->waits && !call->polled) { b->refusals++; return TL_NOT_READY; }
    if (b->calls++ == b->c->fail_at) return TL_ERROR_CORRUPT;
    return mixer_backward(call, table_mixer(b, call->micro_batch));
}

static inline void table_random(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user) {
    mixer_random_hook(moment, node, micro_batch, table_mixer((table_bed *)user, micro_batch));
}

static inline tl_result table_load(tl_run *run, int32_t micro_batch, void *user) {
    table_bed *b = (table_bed *)user;
    mixer_start_pass(table_mixer(b, micro_batch));
    return write_inputs(run, b->c->graph, micro_batch);
}

// One pass, step by step.
static inline tl_result table_pull(table_bed *b, int32_t micro_batch) {
    int32_t done = 0, slot, slots = b->c->plan->slot_count ? b->c->plan->slot_count : 1;
    tl_result result = TL_OK;
    for (slot = 0; slot < slots && !result; slot++) {
        result = tl_choose_slot(b->run, slot);
        if (!result) result = table_load(b->run, micro_batch + slot, b);
    }
    (void)tl_choose_slot(b->run, 0);
    if (!result) result = tl_start_pass(b->run, micro_batch);
    while (!result && !done) {
        tl_run_step step, next;
        result = tl_next_step(b->run, &step, &done);
        if (result || done || !step.is_compute) continue;
        assert_true(step.depends_on <= step.index && step.depends_on >= -1);     // = of a further call of the step
        assert_int_equal(tl_next_step(b->run, &next, &done), TL_ERROR_INVALID_ARG);  // it was not carried out
        do result = tl_run_step_kernel(b->run, &step); while (result == TL_NOT_READY);
        if (!result) assert_int_equal(tl_finish_step(b->run, &step), TL_ERROR_STALE);
    }
    return result;
}

static inline tl_result table_step(table_bed *b) {
    int32_t pass, slots = b->c->plan->slot_count ? b->c->plan->slot_count : 1;
    tl_result result;
    if (!b->c->by_steps) {
        do result = tl_run_plan(b->run); while (result == TL_NOT_READY);
        return result;
    }
    for (pass = 0, result = TL_OK; pass < b->c->repeat_count && !result; pass++) result = table_pull(b, pass * slots);
    return result;
}

// Each bank is as large as the plan's blocks in it, to the byte.
static inline tl_result table_open(table_bed *b) {
    const tl_plan *plan = b->c->plan;
    tl_cpu_backend_desc desc;
    tl_cpu_bank banks[TL_MOST_BANKS];
    uint64_t bytes[TL_MOST_BANKS];
    int32_t k, count = 1;
    memset(&desc, 0, sizeof desc);
    memset(banks, 0, sizeof banks);
    memset(bytes, 0, sizeof bytes);
    if (!plan->block_count) bytes[0] = plan->arena_bytes;
    for (k = 0; k < plan->block_count; k++) {
        bytes[plan->blocks[k].bank] += plan->blocks[k].bytes;
        if (plan->blocks[k].bank >= count) count = plan->blocks[k].bank + 1;
    }
    for (k = 0; k < count; k++) {
        uint64_t whole = (bytes[k] + b->c->alignment - 1) / b->c->alignment * b->c->alignment;
        if (!whole) whole = b->c->alignment;
        if (!k) whole -= b->c->less_bytes;
        b->memory[k] = malloc((size_t)whole);
        if (k) banks[k - 1].memory = b->memory[k];
        if (k) banks[k - 1].memory_bytes = whole;
        else desc.memory_bytes = whole;
    }
    desc.memory = b->memory[0];
    desc.banks = banks;
    desc.bank_count = count - 1;
    desc.alignment_bytes = b->c->alignment;
    b->env.alloc = table_alloc;
    b->env.release = table_release;
    b->env.user = b;
    return tl_init_cpu_backend(&b->env, &desc, &b->backend);
}

static inline void table_close(table_bed *b) {
    int32_t k;
    tl_free_run(b->run);
    if (tl_free_cpu_backend(&b->env, &b->backend)) fail_msg("%s", b->env.error.text);
    for (k = 0; k < TL_MOST_BANKS; k++) free(b->memory[k]);
}

static inline tl_result table_init(table_bed *b) {
    const table_case *c = b->c;
    tl_run_desc desc;
    int32_t i;
    memset(&desc, 0, sizeof desc);
    if (c->asks) desc = *c->asks;
    for (i = 0; i < TABLE_SLOTS; i++) {
        mixer_init(&b->mixers[i]);
        b->mixers[i].uses_stream = c->streams;
    }
    desc.graph = c->graph;
    desc.plan = c->plan;
    desc.backend = &b->backend;
    desc.kernels = b->kernels;
    desc.kernel_count = mixer_kernels(c->graph, &b->mixers[0], b->kernels);
    for (i = 0; i < desc.kernel_count; i++) {
        b->kernels[i].forward = table_forward;
        b->kernels[i].backward = c->no_backward ? NULL : table_backward;
        b->kernels[i].user = c->has_users ? NULL : b;
    }
    for (i = 0; i < c->graph->node_count; i++) b->users[i] = b;
    if (c->has_users) desc.users = b->users;
    desc.user_count = c->user_count ? c->user_count : c->graph->node_count;
    if (c->kernel_count) desc.kernel_count = c->kernel_count;
    if (!desc.repeat_count) desc.repeat_count = c->repeat_count;
    desc.load = table_load;
    desc.load_user = b;
    if (c->streams) {
        desc.random = table_random;
        desc.random_user = b;
    }
    desc.seed = 42;
    desc.loss_gradient_word = 0x12345678u;
    return tl_init_run(&b->env, &desc, &b->run);
}

// What the results hold, in every slot.
static inline uint64_t table_results(table_bed *b, uint64_t sum) {
    const tl_graph *graph = b->c->graph;
    unsigned char bytes[512];
    int32_t slots = b->c->plan->slot_count ? b->c->plan->slot_count : 1, slot, i;
    uint64_t k, count;
    for (slot = 0; slot < slots; slot++) {
        if (tl_choose_slot(b->run, slot)) fail_msg("%s", b->env.error.text);
        for (i = 0; i < graph->tensor_count; i++) {
            tl_tensor tensor;
            tensor.node = graph->outputs[i].node;
            tensor.output = graph->outputs[i].output;
            if (tl_find_tensor_bytes(b->run, tensor, &count)) fail_msg("%s", b->env.error.text);
            assert_true(count == graph->outputs[i].bytes && count <= sizeof bytes);
            sum = tl_mix_u64(sum, (uint64_t)i);
            if (graph->nodes[tensor.node].is_input == 2) continue;        // which tables do not miss
            if (tl_read_tensor(b->run, tensor, bytes, count)) continue;   // not there
            for (k = 0; k < count; k++) sum = tl_mix_u64(sum, bytes[k]);
        }
    }
    (void)tl_choose_slot(b->run, 0);
    return sum;
}

static inline void table_run(const table_case *c, table_outcome *out) {
    static table_bed b;
    tl_run_report report;
    int32_t step, slot, i;
    memset(&b, 0, sizeof b);
    memset(out, 0, sizeof *out);
    b.c = c;
    out->result = table_open(&b);
    if (!out->result) out->result = table_init(&b);
    if (out->result) assert_null(b.run);
    for (step = 0; step < TABLE_STEPS && !out->result; step++) {
        tl_result result = table_step(&b);
        if (result && c->fail_at >= 0 && b.calls > c->fail_at) result = table_step(&b);  // the same step again
        out->result = result;
    }
    out->site = b.env.error.site;
    memcpy(out->text, b.env.error.text, sizeof b.env.error.text);
    if (!out->result) {
        for (slot = 0; slot < TABLE_SLOTS; slot++) {
            const mixer *m = &b.mixers[slot];
            for (i = 0; i < c->graph->node_count; i++)
                out->sum = tl_mix_u64(tl_mix_u64(out->sum, m->gradients[i]), c->streams ? 0 : m->seeds[i]);
            out->forwards += m->forwards;
            out->recomputes += m->recomputes;
            out->backwards += m->backwards;
            out->saves_alone += m->saves_alone;
        }
        out->refusals = b.refusals;
        out->sum = table_results(&b, out->sum);
        tl_measure_run(b.run, &report);
        out->counts[0] = report.forward_count;
        out->counts[1] = report.recompute_count;
        out->counts[2] = report.backward_count;
        out->counts[3] = report.step_count;
        out->counts[4] = report.kernel_count;
    }
    table_close(&b);
}

#endif
