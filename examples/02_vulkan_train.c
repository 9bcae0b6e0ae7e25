// 02_vulkan_train.c -- the training of 01 on a Vulkan device, within a fixed number of bytes
//
// You learn: how the same graph, plans and executor run on a GPU. The kernels are compute shaders
// (vk_nn.h); weights, gradients, the moments of AdamW and activations live in ranges of one arena of
// the Vulkan backend, and each weight is updated where its gradient is complete. It prints what was
// planned, what the backend counted, what it cost, and whether the weights are equal to the last
// bit; it leaves build/memory.svg (device memory over one step), build/device.svg (what Vulkan
// allocated, beside what was planned, by the budget) and build/trace.json (every step, timed by the
// device: open it in ui.perfetto.dev).
//
// check: --quick --layers 2 --width 64 --batch 1 --out build/check
//
//     mkdir -p build && cc -O3 -o build/02_vulkan_train examples/02_vulkan_train.c -lm -ldl
//     build/02_vulkan_train --quick
//
// HOW IT WORKS   The same training runs from one seed, a step each in turn: with all kept; within
// 60, 40, 25 and 15 % of the peak of that and within the least there is, where dropped activations
// are computed again, by plans made layer by layer and by plans of the graph, tensor by tensor
// (tl_plan_remat); where that is less, within the least there is if gradients of weights are made in
// pieces, some rows at a time, each updated before the next (tl_apply_pieces), and if regions of nodes
// go over the batch in blocks of its rows (tl_choose_rows); within 40 and 25 %, where tensors
// may also be copied to the host and back, within 40 % by copies alone; and within 60 %, where they
// may also be compressed to f16. After every turn weights and moments of each, all of them, are
// compared with those of the first, byte by byte. Only f16 may differ, as it rounds: there the
// difference is printed. Before that a rehearsal is timed by the device, node by node: these
// nanoseconds are the costs by which plans are made; --estimate plans by FLOP instead. What copies
// take, and whether kernels run meanwhile, is measured, too (tl_measure_device): so plans know.
//
// CONTENTS       (search for "// -- ")
//                options    kernels    training    trace    rehearsal    rounds    table
//                pictures    devices    copies    command line    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, mkdir

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_OPEN_LOADER
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#define TRAINING_PROGRAM "02_vulkan_train"
#include "training.h"
#include "nn.h"
#include "vk_nn.h"

// -- options --

typedef struct options {
    const char *text, *out, *plan, *transfer;
    uint64_t    device, layers, width, context, batch, steps, seed;
    int         lists, validates, estimates;
    int         kinds[TRAINING_KIND_COUNT];  // 1 = the table has plans of this kind
} options;

// -- kernels --

// The rows of a node's weights by which its kernels make their gradient: 0 = as a whole alone, also
// where the offset that a device asks for leaves a gap before the bias.
static int32_t count_rows(const training_model *m, const training_node *n) {
    uint64_t count;
    if (n->op != TRAINING_LINEAR && n->op != TRAINING_EMBED) return 0;
    count = m->params[n->weight].count;
    return training_find_bias(m, n) == count ? (int32_t)((count + m->params[n->bias].count) / n->width) : 0;
}

// The bytes that the kernels of a node need besides its output, and the rows that they know.
static void add_bytes(const training_model *m, const training_node *n, tl_node_desc *desc) {
    size_t B = (size_t)m->size.B, T = (size_t)m->size.T, NH = (size_t)m->size.C / VK_NN_HEAD;
    desc->weight_rows = count_rows(m, n);
    if (n->op == TRAINING_NORM) desc->saved_bytes = vk_nn_norm_saved_bytes(B * T);
    if (n->op == TRAINING_LOSS) desc->fwork_bytes = vk_nn_cross_entropy_scratch_bytes(B * T);
    if (n->op != TRAINING_ATTENTION) return;
    desc->saved_bytes = vk_nn_attention_saved_bytes(B, NH, T);
    desc->bwork_bytes = vk_nn_attention_scratch_bytes(B, NH, T);
}

// -- training: one network, its memory on the device and its run --

typedef enum row_kind { ROW_KEEP_ALL, ROW_RECOMPUTE, ROW_COPIES, ROW_F16 } row_kind;

typedef struct training {
    const training_model *m;
    const training_text *t;
    const options *o;
    row_kind kind;
    char     label[24];
    uint64_t budget;              // for the whole step; 0 = keep all
    const tl_device *device;      // what costs are of; NULL = estimates, without a unit
    int      is_drawn;            // 1 = the picture shows it
    double   gap_ratio;           // no plan costs less than cost / (1 + this); < 0 = not known
    uint64_t step_max;            // training steps there is room for
    tl_plan  plan;                // owned
    tl_backend backend;
    vk_nn    nn;
    vk_nn_net net;
    vk_nn_node *nodes;            // [node_count]
    tl_run  *run;
    tl_run_report report;         // of the last step
    uint64_t step;                // training steps done
    int32_t *window;              // [2][B T] tokens and targets
    float    loss;                // of the last step

    // what the table says about it
    float   *losses;              // [step_max]
    uint64_t *rounds_ns;          // [step_max] a step from load to its end
    clockid_t clock;              // of these
    uint64_t submits, waits;      // of the last step
    int      equal;               // 1 = so far all weights, moments and losses are those of keep all
    double   difference;          // of the gradients of the first step, relative

    // the last pass, step by step
    tl_run_event *events;         // [plan.step_count]
    int32_t  event_count;
    int      times;               // 1 = the device wrote its time after every step
    tl_run_event *fastest;        // [plan.step_count] those of the fastest pass: for the picture
    uint64_t fastest_ns;
} training;

// Write the windows of a batch.
static tl_result load_batch(tl_run *run, int32_t micro_batch, void *user) {
    training *t = (training *)user;
    tl_result result = training_load_window(t->m, t->t, run, t->o->seed, t->step * t->m->size.B,
                                            t->window);
    (void)micro_batch;
    t->event_count = 0;
    t->times = tl_vk_record_time(&t->backend, 0) == TL_OK;
    return result;
}

// After every step: keep its event, and have the device write down when it is done with it.
static void observe(const tl_run_event *event, void *user) {
    training *t = (training *)user;
    if (t->event_count >= t->plan.step_count) return;
    t->events[t->event_count++] = *event;
    t->times = t->times && tl_vk_record_time(&t->backend, (uint32_t)t->event_count) == TL_OK;
}

static void free_training(tl_env *env, training *t) {
    tl_free_run(t->run);
    vk_nn_free(&t->nn);
    if (t->backend.self) tl_vk_free_backend(env, &t->backend);
    tl_free_plan(env, &t->plan);
    free(t->nodes);
    free(t->window);
    free(t->losses);
    free(t->rounds_ns);
    free(t->events);
    free(t->fastest);
    memset(t, 0, sizeof *t);
}

// A param among those of its node.
static tl_range find_part(const training_model *m, int32_t weight, int32_t param) {
    tl_range part;
    memset(&part, 0, sizeof part);
    if (param < 0) return part;
    part.offset = (m->params[param].first - m->params[weight].first) * sizeof(float);
    part.bytes = m->params[param].count * sizeof(float);
    return part;
}

static void find_weights(training *t) {
    int32_t i;
    for (i = 0; i < t->m->graph.node_count; i++) {
        const training_node *info = training_node_of(t->m, i);
        vk_nn_node *node = &t->nodes[i];
        node->in_width = (uint32_t)info->in_width;
        node->width = (uint32_t)info->width;
        node->weight = find_part(t->m, info->weight, info->weight);
        node->bias = find_part(t->m, info->weight, info->bias);
        node->decays[0] = info->weight >= 0 && t->m->params[info->weight].decays;
        node->decays[1] = info->bias >= 0 && t->m->params[info->bias].decays;
    }
}

// The numbers that every training starts with, from the seed; moments of zero.
static tl_result write_states(training *t) {
    float *floats = (float *)calloc(3 * (size_t)t->m->param_count, sizeof *floats);
    tl_result result = floats ? TL_OK : TL_ERROR_NO_MEMORY;
    if (floats) training_fill_params(t->m, t->o->seed, floats);
    if (!result) result = training_move_states(t->m, t->run, floats, 1);
    free(floats);
    return result;
}

// The backend has room for the budget, and not one byte more.
static tl_result init_memory(tl_env *env, training *t, const tl_vk_device *device) {
    size_t nodes = (size_t)t->m->graph.node_count;
    tl_vk_backend_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.device = *device;
    desc.capacity_bytes[TL_TIER_DEVICE] = t->budget;
    desc.chunk_bytes = (uint64_t)4 << 20;
    desc.time_count = (uint32_t)t->plan.step_count + 1;
    t->nodes = (vk_nn_node *)calloc(nodes, sizeof *t->nodes);
    t->window = (int32_t *)calloc((size_t)(2 * t->m->size.B * t->m->size.T), sizeof *t->window);
    t->losses = (float *)calloc((size_t)t->step_max, sizeof *t->losses);
    t->rounds_ns = (uint64_t *)calloc((size_t)t->step_max, sizeof *t->rounds_ns);
    t->events = (tl_run_event *)calloc((size_t)t->plan.step_count, sizeof *t->events);
    t->fastest = (tl_run_event *)calloc((size_t)t->plan.step_count, sizeof *t->fastest);
    if (!t->fastest) return TL_ERROR_NO_MEMORY;
    if (!t->nodes || !t->window || !t->losses || !t->rounds_ns || !t->events)
        return TL_ERROR_NO_MEMORY;
    result = tl_vk_init_backend(env, &desc, &t->backend);
    if (!result) result = vk_nn_init(&t->backend, &t->nn);
    if (!result) find_weights(t);
    return result;
}

enum { KERNEL_COUNT = VK_NN_OP_COUNT + 1 };

static void set_kernels(training *t, tl_kernel kernels[KERNEL_COUNT]) {
    static const vk_nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.05f };
    t->net.nn = &t->nn;
    t->net.nodes = t->nodes;
    t->net.B = (uint32_t)t->m->size.B;
    t->net.T = (uint32_t)t->m->size.T;
    t->net.C = (uint32_t)t->m->size.C;
    t->net.V = (uint32_t)t->m->size.V;
    t->net.dropout = t->m->dropout;
    t->net.owns_weights = 1;
    t->net.adamw = adamw;
    vk_nn_set_kernels(kernels, &t->net);
    memset(&kernels[VK_NN_OP_COUNT], 0, sizeof *kernels);
    kernels[VK_NN_OP_COUNT].op = "adamw";
    kernels[VK_NN_OP_COUNT].backward = vk_nn_run_adamw_update;
    kernels[VK_NN_OP_COUNT].user = &t->net;
}

// Make the run of the plan.
static tl_result init_run(tl_env *env, training *t) {
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    set_kernels(t, kernels);
    desc.graph = &t->m->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = KERNEL_COUNT;
    desc.plan = &t->plan;
    desc.rows = t->m->regions.rows.memory ? &t->m->regions.rows : NULL;
    desc.device = t->device;
    desc.budget_bytes = t->budget;
    desc.load = load_batch;
    desc.load_user = t;
    desc.observe = observe;
    desc.observe_user = t;
    desc.profiling = 1;
    desc.seed = t->o->seed;
    result = tl_init_run(env, &desc, &t->run);
    return result ? result : write_states(t);
}

// One training step; back when the device has finished it.
static tl_result train_step(training *t) {
    const tl_backend *b = &t->backend;
    tl_vk_counters before, after;
    uint64_t start = training_read_clock(t->clock);
    tl_tensor loss = { 0, 0 };
    tl_ticket ticket;
    tl_result result;
    loss.node = t->m->loss;
    tl_vk_measure(b, &before);
    t->net.adamw.rate = training_rate(t->step);
    t->net.step = t->step + 1;
    result = tl_run_plan(t->run);
    tl_measure_run(t->run, &t->report);
    if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
    if (!result) result = b->submit(b->self, &ticket);
    if (!result) result = b->wait(b->self, ticket);
    if (result) return result;
    tl_vk_measure(b, &after);
    t->submits = after.submit_count - before.submit_count;
    t->waits = after.host_wait_count - before.host_wait_count;
    t->rounds_ns[t->step] = training_read_clock(t->clock) - start;
    t->losses[t->step++] = t->loss;
    return TL_OK;
}

// -- trace: the device's times of every step --

// Where a copy was issued that a WAIT waited for.
static int32_t find_issue(const training *t, int32_t wait) {
    int32_t i = wait;
    while (i > 0) {
        const tl_step *step = &t->events[--i].step;
        int is_copy = step->kind == TL_STEP_SPILL || step->kind == TL_STEP_FETCH;
        if (is_copy && step->node == t->events[wait].step.node) return i;
    }
    return wait;
}

// Put the device's times into the events of the last pass: step i took from time i to time i + 1.
static tl_result patch_times(training *t) {
    size_t count = (size_t)t->event_count + 1;
    uint64_t *ns;
    int32_t i;
    tl_result result;
    if (!t->times) return TL_OK;  // the clock of the host has to do
    ns = (uint64_t *)calloc(count, sizeof *ns);
    if (!ns) return TL_ERROR_NO_MEMORY;
    result = tl_vk_read_times(&t->backend, 0, (uint32_t)count, ns);
    for (i = 0; i < t->event_count && !result; i++) {
        int is_wait = t->events[i].step.kind == TL_STEP_WAIT;
        t->events[i].start_ns = ns[is_wait ? find_issue(t, i) : i];
        t->events[i].end_ns = ns[i + 1];
    }
    free(ns);
    return result;
}

static void keep_fastest(training *t) {
    uint64_t ns = t->rounds_ns[t->step - 1];
    if (t->fastest_ns && ns >= t->fastest_ns) return;
    t->fastest_ns = ns;
    memcpy(t->fastest, t->events, (size_t)t->event_count * sizeof *t->events);
}

// -- rehearsal: measure every node --

enum { REHEARSAL_STEPS = 14, WARM_STEPS = 2 };

// Add what the nodes took in the last pass to a row of cost slots.
static void add_node_times(const training *t, uint64_t *row) {
    int32_t i;
    for (i = 0; i < t->event_count; i++) {
        const tl_run_event *e = &t->events[i];
        int backward = e->step.kind == TL_STEP_BACKWARD;
        if (backward || e->step.kind <= TL_STEP_FORWARD_SAVE)
            row[training_find_cost_slot(t->m, e->step.node, backward)] += e->end_ns - e->start_ns;
    }
}

// Train a few steps and note what the device says of a pass, and of each node: ns is [cost slots], or
// stays zero where the device has no clock; NULL = not wanted. What disturbs a step can only add to it:
// the lower quartile is steadier than the median.
static tl_result rehearse(training *t, uint64_t *ns, uint64_t *whole_ns) {
    size_t slots = ns ? training_count_cost_slots(t->m) : 0, i, step;
    uint64_t *samples = (uint64_t *)calloc((slots + 1) * REHEARSAL_STEPS, sizeof *samples);
    uint64_t column[REHEARSAL_STEPS], whole[REHEARSAL_STEPS];
    tl_result result = samples ? TL_OK : TL_ERROR_NO_MEMORY;
    for (step = 0; step < REHEARSAL_STEPS && !result; step++) {
        result = train_step(t);
        if (!result) result = patch_times(t);
        if (!result && t->times && ns) add_node_times(t, samples + step * slots);
        whole[step] = t->event_count ? t->events[t->event_count - 1].end_ns - t->events[0].start_ns : 0;
    }
    *whole_ns = training_find_quantile(whole + WARM_STEPS, REHEARSAL_STEPS - WARM_STEPS, 1, 4);
    for (i = 0; i < slots && !result; i++) {
        for (step = WARM_STEPS; step < REHEARSAL_STEPS; step++)
            column[step] = samples[step * slots + i];
        ns[i] = training_find_quantile(column + WARM_STEPS, REHEARSAL_STEPS - WARM_STEPS, 1, 4);
    }
    free(samples);
    return result;
}

// -- rounds: all trainings, a step each --

enum { ROW_MAX = 18, LOSS_STEPS = 10 };

static const double f16_limit = 0.05;  // relative difference of gradients: rounding stays far below

typedef struct program {
    tl_env   env;
    options  o;
    training_text t;
    training_model m;
    training_model in_pieces;     // the same with gradients in pieces; the graph alone is its own
    uint64_t row_unit;            // of regions of rows
    training_model by_rows;       // the same, whose regions of rows plans may cut
    training_model models[ROW_MAX];  // of the rows with regions: by_rows; the regions alone are their own
    tl_vk_device device;
    tl_vk_device_info info;
    tl_device limits;             // measured: what copies and conversions take; all zero = no time
    int      complaints;          // of the validation layer
    tl_plan  keep_all;            // with measured costs: what budgets are percents of
    uint64_t *node_ns;            // [cost slots] measured: the costs of the graph
    uint64_t row_ns;              // measured: of a further call of a kernel in a region of rows
    training rows[ROW_MAX];       // the first one keeps everything
    int32_t  row_count;
    float   *states[2];           // [3][param_count] weights and moments: of the first row, of another
    uint64_t rounds;              // finished
    tl_trace *trace;              // of the last round
    training_progress progress;
} program;

// |a - b| / |b|
static double find_difference(const float *a, const float *b, uint64_t count) {
    double apart = 0.0, size = 0.0;
    uint64_t i;
    for (i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0.0 ? sqrt(apart / size) : apart;
}

// Compare weights, moments and loss with those of keep all, which come first in a round. The first
// moments after one step are the gradients times a constant.
static tl_result compare_states(program *p, training *t) {
    const training *first = &p->rows[0];
    float *states = p->states[t != first];
    uint64_t count = p->m.param_count;
    tl_result result = training_move_states(t->m, t->run, states, 0);
    if (result) return result;
    if (memcmp(p->states[0], states, 3 * (size_t)count * sizeof *states) != 0 ||
        memcmp(&t->loss, &first->loss, sizeof t->loss) != 0)
        t->equal = 0;
    if (p->rounds == 0) t->difference = find_difference(states + count, p->states[0] + count, count);
    return TL_OK;
}

// Take turns until the steps are done or Ctrl-C; a round that was begun is finished.
static int train_rounds(program *p) {
    uint64_t start = training_wall_ns();
    while (p->rounds < p->o.steps && !training_interrupted) {
        int32_t k, i;
        double done_s;
        tl_reset_trace(p->trace);
        for (k = 0; k < p->row_count; k++) {
            training *t = &p->rows[k];
            tl_result result = train_step(t);
            if (!result) result = compare_states(p, t);
            if (!result) result = patch_times(t);
            if (result) {
                training_clear_progress(&p->progress);
                return training_fail_result(&p->env, t->label, result);
            }
            keep_fastest(t);
            for (i = 0; i < t->event_count; i++) {
                tl_run_event named = t->events[i];
                named.step.node = training_find_last(t->m, named.step.node);
                tl_record_event(&named, p->trace);
            }
        }
        p->rounds++;
        done_s = (double)(training_wall_ns() - start) * 1e-9;
        training_show_progress(&p->progress, "comparing", p->rounds, (double)p->rows[0].loss,
                               done_s / (double)p->rounds * (double)(p->o.steps - p->rounds));
    }
    training_clear_progress(&p->progress);
    return TRAINING_OK;
}

// -- table --

static const char *name_type(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:   return "GPU";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated GPU";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:    return "virtual GPU";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:            return "no GPU: computes on the host";
    case VK_PHYSICAL_DEVICE_TYPE_OTHER:
    case VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM:       break;
    }
    return "other";
}

static void print_device(const char *label, const tl_vk_device_info *info) {
    printf("%s %s, Vulkan %u.%u, %s, %.1f GiB%s\n", label, info->name,
           VK_API_VERSION_MAJOR(info->api_version), VK_API_VERSION_MINOR(info->api_version),
           name_type(info->type), training_mib(info->device_bytes) / 1024.0,
           info->has_compute ? "" : ", cannot compute");
}

static double mean_loss(const program *p, const training *t) {
    uint64_t i, count = p->rounds < LOSS_STEPS ? p->rounds : (uint64_t)LOSS_STEPS;
    double sum = 0.0;
    for (i = 0; i < count; i++) sum += (double)t->losses[p->rounds - 1 - i];
    return sum / (double)count;
}

static void print_bytes(const program *p) {
    int32_t k;
    printf("\nbytes of one step     budget  planned peak  measured peak  on the host |"
           " VkDeviceMemory: arena    staging     chunks\n");
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        tl_vk_counters c;
        char budget[24] = "-";
        tl_vk_measure(&t->backend, &c);
        if (t->budget) snprintf(budget, sizeof budget, "%llu", (unsigned long long)t->budget);
        printf("%-16s %11s %13llu %14llu %12llu | %20llu %10llu %10llu\n", t->label, budget,
               (unsigned long long)t->report.planned_peak_bytes,
               (unsigned long long)t->report.measured_peak_bytes,
               (unsigned long long)t->report.measured_host_peak_bytes,
               (unsigned long long)c.arena_bytes, (unsigned long long)c.staging_bytes,
               (unsigned long long)(c.memory_bytes - c.arena_bytes - c.staging_bytes));
    }
    printf("peaks: live ranges; arena: of the run and of its copies on the host, taken when it is made;\n"
           "staging: for the host's reads and writes; chunks: anything else in the device tier\n");
}

static void print_work(const program *p) {
    int32_t k, gaps = 0;
    printf("\nwork of one step  made again  spilled  compressed  submits  waits   step ms  / keep"
           " all  predicted    loss  weights\n");
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k], *first = &p->rows[0];
        char again[24], equal[48];
        size_t rounds = (size_t)p->rounds;
        snprintf(again, sizeof again, "%d of %d", (int)t->report.recompute_count,
                 (int)(t->report.forward_count - t->report.recompute_count));
        if (k == 0) snprintf(equal, sizeof equal, "-");
        else if (t->kind == ROW_F16)
            snprintf(equal, sizeof equal, "%.1e off, loss %+.1e", t->difference,
                     mean_loss(p, t) - mean_loss(p, first));
        else snprintf(equal, sizeof equal, "%s", t->equal ? "equal" : "DIFFERENT");
        printf("%-16s %11s %8d %11d %8llu %6llu %9.2f %11.3f  %9.3f  %.4f  %s\n", t->label, again,
               (int)t->report.spill_count, (int)t->report.compress_count,
               (unsigned long long)t->submits, (unsigned long long)t->waits,
               training_find_median(t->rounds_ns, rounds) * 1e-6,
               training_find_ratio(t->rounds_ns, first->rounds_ns, rounds),
               (double)t->plan.cost / (double)first->plan.cost, mean_loss(p, t), equal);
    }
    printf("%llu steps each%s; times: medians, of %s; predicted: the cost of the plan / that of\n"
           "keep all; loss: mean of the last %d steps; equal: every weight, moment and loss after every\n"
           "step, bit for bit; off: gradients of the first step, relative\n",
           (unsigned long long)p->rounds, training_interrupted ? " (interrupted)" : "",
           p->rows[0].clock == CLOCK_MONOTONIC ? "the clock" : "processor time",
           p->rounds < LOSS_STEPS ? (int)p->rounds : LOSS_STEPS);
    for (k = 0; k < p->row_count; k++) training_print_gap(p->rows[k].gap_ratio, &gaps);
    training_end_gaps(gaps);
}

// Returns what the rows say: 0, or 3 where a weight or a peak is not as it must be.
static int print_table(const program *p) {
    int32_t k;
    if (!p->rounds) return TRAINING_OK;
    print_bytes(p);
    print_work(p);
    fflush(stdout);
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        const tl_run_report *r = &t->report;
        if (r->planned_peak_bytes != r->measured_peak_bytes)
            return training_fail(TRAINING_MISMATCH, "%s: measured peak is not the planned one",
                                 t->label);
        if (!t->equal && t->kind != ROW_F16)
            return training_fail(TRAINING_MISMATCH,
                                 "%s: weights, moments or losses are not those of keep all", t->label);
        if (!(t->difference <= f16_limit))
            return training_fail(TRAINING_MISMATCH,
                                 "%s: gradients are %.2g off, which no rounding explains", t->label,
                                 t->difference);
    }
    return TRAINING_OK;
}

// -- pictures --

// The curve of a row's fastest pass; live and times have room for its events.
static void draw_curve(const training *t, uint64_t *live, double *times, tl_memory_curve *curve) {
    double latest = 0.0;
    int32_t i;
    for (i = 0; i < t->event_count; i++) {
        double ms = (double)(t->fastest[i].end_ns - t->fastest[0].start_ns) * 1e-6;
        live[i] = t->fastest[i].device_bytes;
        times[i] = latest = ms > latest ? ms : latest;
    }
    curve->live_bytes = live;
    curve->times = latest > 0.0 ? times : NULL;  // without any clock: by steps
    curve->count = t->event_count;
}

static int write_pictures(program *p) {
    tl_memory_curve curves[ROW_MAX];
    char labels[ROW_MAX][64];
    uint64_t *live[ROW_MAX] = { NULL };
    double *times[ROW_MAX] = { NULL };
    training_pictures pictures;
    int32_t k;
    int code = TRAINING_OK;
    if (!p->rounds) return TRAINING_OK;
    memset(curves, 0, sizeof curves);
    memset(&pictures, 0, sizeof pictures);
    for (k = 0; k < p->row_count && !code; k++) {
        const training *t = &p->rows[k];
        if (!t->is_drawn) continue;
        live[k] = (uint64_t *)calloc((size_t)t->event_count + 1, sizeof **live);
        times[k] = (double *)calloc((size_t)t->event_count + 1, sizeof **times);
        if (!live[k] || !times[k]) code = training_fail(TRAINING_INPUT, "pictures: no memory");
        else draw_curve(t, live[k], times[k], &curves[pictures.count]);
        snprintf(labels[k], sizeof labels[k], "%s, %.2f MiB", t->label,
                 training_mib(t->report.measured_peak_bytes));
        curves[pictures.count++].label = labels[k];
    }
    pictures.curves = curves;
    pictures.style.title = "Memory of the device over one training step, measured";
    if (curves[0].times) pictures.style.time_label = p->rows[0].times ? "ms, by the device" : "ms";
    pictures.trace = p->trace;
    pictures.graph = &p->m.graph;
    if (!code) code = training_write_pictures(&p->env, &pictures, p->o.out);
    for (k = 0; k < p->row_count; k++) {
        free(live[k]);
        free(times[k]);
    }
    return code;
}

// VkDeviceMemory and the planned arena of the drawn rows that keep or compute again, a step of the
// curves each: the two fall together, and between them lies staging.
static int write_device_picture(program *p) {
    uint64_t device[ROW_MAX], arena[ROW_MAX];
    char rows[ROW_MAX * 20] = "";
    tl_memory_curve curves[2];
    training_pictures pictures;
    int32_t k, count = 0;
    size_t used = 0;
    for (k = 0; k < p->row_count && p->rounds; k++) {
        const training *t = &p->rows[k];
        tl_vk_counters c;
        if (!t->is_drawn || (t->kind != ROW_KEEP_ALL && t->kind != ROW_RECOMPUTE)) continue;
        tl_vk_measure(&t->backend, &c);
        device[count] = c.memory_bytes;
        arena[count++] = t->report.planned_arena_bytes;
        used += (size_t)snprintf(rows + used, sizeof rows - used, "%s%s", used ? ", " : "", t->label);
    }
    if (count < 2) return TRAINING_OK;
    memset(curves, 0, sizeof curves);
    memset(&pictures, 0, sizeof pictures);
    curves[0].label = "VkDeviceMemory, all of it";
    curves[0].live_bytes = device;
    curves[1].label = "arena, as planned";
    curves[1].live_bytes = arena;
    curves[0].count = curves[1].count = count;
    pictures.curves = curves;
    pictures.count = 2;
    pictures.style.title = "What Vulkan allocated for a training, by the budget of its plan";
    pictures.style.time_label = rows;
    k = training_write_picture(&p->env, &pictures, p->o.out, "device.svg", 0);
    if (!k) printf("wrote %s/device.svg\n", p->o.out);
    return k;
}

// -- devices --

enum { DEVICE_MAX = 16 };

static VKAPI_ATTR VkBool32 VKAPI_CALL
on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
           const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    program *p = (program *)user;
    (void)types;
    if (!(severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)) return VK_FALSE;
    p->complaints++;
    fprintf(stderr, "validation: %s\n", data->pMessage ? data->pMessage : "");
    return VK_FALSE;
}

static int is_gpu(const tl_vk_device_info *info) {
    return info->type != VK_PHYSICAL_DEVICE_TYPE_CPU && info->type != VK_PHYSICAL_DEVICE_TYPE_OTHER;
}

// List the devices, or open the one asked for: by default the first GPU, else any that computes.
static int open_device(program *p) {
    tl_vk_device_desc desc;
    tl_vk_device_info infos[DEVICE_MAX];
    int32_t count = 0, i, best = -1;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.validates = p->o.validates;
    desc.message = p->o.validates ? on_message : NULL;
    desc.message_user = p;
    result = tl_vk_read_devices(&p->env, &desc, infos, DEVICE_MAX, &count);
    if (result) return training_fail_result(&p->env, "devices", result);
    if (count > DEVICE_MAX) count = DEVICE_MAX;
    for (i = 0; i < count; i++) {
        char label[16];
        snprintf(label, sizeof label, "%3d ", (int)i + 1);
        if (p->o.lists) print_device(label, &infos[i]);
        if (infos[i].has_compute && (best < 0 || (!is_gpu(&infos[best]) && is_gpu(&infos[i]))))
            best = i;
    }
    if (p->o.lists) return TRAINING_OK;
    if (p->o.device > (uint64_t)count)
        return training_fail(TRAINING_INPUT, "--device %d: there are %d; --list shows them",
                             (int)p->o.device, (int)count);
    if (p->o.device) best = (int32_t)p->o.device - 1;
    if (best < 0)
        return training_fail(TRAINING_INPUT, "devices: none of %d can compute", (int)count);
    p->info = infos[best];
    desc.number = best + 1;
    desc.enable_transfer = !p->o.transfer || strcmp(p->o.transfer, "no") != 0;
    result = tl_vk_init_device(&p->env, &desc, &p->device);
    return result ? training_fail_result(&p->env, p->info.name, result) : TRAINING_OK;
}

// Tensors and params begin where the device lets a range begin, and rows come as its kernels sum them up.
static int set_alignment(program *p) {
    tl_vk_backend_desc desc;
    tl_backend backend;
    tl_backend_limits limits;
    tl_result result;
    vk_nn nn;
    memset(&desc, 0, sizeof desc);
    memset(&nn, 0, sizeof nn);
    desc.device = p->device;
    result = tl_vk_init_backend(&p->env, &desc, &backend);
    if (result) return training_fail_result(&p->env, "device", result);
    backend.limits(backend.self, &limits);
    tl_vk_free_backend(&p->env, &backend);
    nn.is_gpu = is_gpu(&p->info);
    p->row_unit = vk_nn_row_unit(&nn);
    p->m.alignment_bytes = limits.alignment_bytes;
    p->m.param_align = limits.alignment_bytes / sizeof(float);
    return TRAINING_OK;
}

// -- copies: what they take on the device, and plans that make them --

static uint64_t read_wall_ns(void *user) {
    (void)user;
    return training_wall_ns();
}

// Measure what copies to the host and back and conversions take.
static int measure_copies(program *p) {
    static const char *const channels[] = { "in turn with kernels", "beside kernels", "beside kernels",
                                            "beside kernels, both ways at once" };
    tl_measure_device_desc measure;
    tl_vk_backend_desc desc;
    tl_backend backend;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    memset(&measure, 0, sizeof measure);
    desc.device = p->device;
    desc.now_ns = read_wall_ns;
    measure.bytes = (uint64_t)16 << 20;
    measure.codecs = 1u << TL_CODEC_F16;
    result = tl_vk_init_backend(&p->env, &desc, &backend);
    if (!result) result = tl_measure_device(&p->env, &backend, &measure, &p->limits);
    if (backend.self) tl_vk_free_backend(&p->env, &backend);
    if (result) return training_fail_result(&p->env, "copies", result);
    printf("copies     %.2f GB/s to the host and back, %.0f us each beside that, %s; a wait takes %.0f us\n",
           (double)p->limits.link_bytes_per_second * 1e-9, (double)p->limits.link_latency_ns * 1e-3,
           channels[p->limits.copy_channels + 1], (double)p->limits.wait_latency_ns * 1e-3);
    return TRAINING_OK;
}

// A plan within *budget whose tensors may be copied to the host, or compressed. alone: none is made
// again. Where no plan fits, *budget becomes the least.
static tl_result plan_copies(program *p, row_kind kind, int alone, uint64_t *budget, tl_plan *plan,
                             double *gap_ratio) {
    size_t count = (size_t)p->m.graph.node_count, i;
    tl_graph graph = p->m.graph;
    tl_node *nodes = (tl_node *)malloc(count * sizeof *nodes);
    tl_remat_desc desc;
    tl_remat_report report;
    tl_result result;
    if (!nodes) return TL_ERROR_NO_MEMORY;
    memcpy(nodes, graph.nodes, count * sizeof *nodes);
    for (i = 0; i < count && alone; i++) nodes[i].once = !nodes[i].is_input;
    graph.nodes = nodes;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.device = p->o.estimates ? NULL : &p->limits;
    desc.budget_bytes = *budget;
    desc.host_budget_bytes = kind == ROW_COPIES ? TL_UNLIMITED : 0;
    desc.codec = kind == ROW_F16 ? TL_CODEC_F16 : TL_CODEC_NONE;
    desc.alignment_bytes = p->m.alignment_bytes;
    desc.work_limit = TRAINING_WORK;
    result = tl_plan_remat(&p->env, &desc, plan, &report);
    if (result == TL_ERROR_INFEASIBLE && report.least_budget_bytes) {
        desc.budget_bytes = *budget = report.least_budget_bytes;
        result = tl_plan_remat(&p->env, &desc, plan, &report);
    }
    *gap_ratio = report.gap_ratio;
    free(nodes);
    return result;
}

// -- command line --

static const char *const usage =
    "02_vulkan_train: train a character-level transformer on a Vulkan device, within a fixed\n"
    "number of bytes\n"
    "\n"
    "  --device N         number in the list (the first GPU, else the first device)\n"
    "  --list             the devices of this machine\n"
    "  --text FILE        train on this text (examples/training_text.txt)\n"
    "  --steps N          steps of every row of the table (6)\n"
    "  --layers N --width N --context N --batch N    size of the network (8 16 32 64)\n"
    "  --seed N           of weights, batches and dropout (1)\n"
    "  --plan KIND        layers, graph, rows, all or none: what makes the plans of the table (all); rows:\n"
    "                     of the graph with regions of nodes that go over the batch in blocks of its rows;\n"
    "                     none: only the rows that keep, copy or compress all\n"
    "  --transfer no      copy on the queue of the kernels, though the device has one for copies\n"
    "  --estimate         plan by estimated FLOP, not by what was measured: the same plans each"
    " time\n"
    "  --out DIR          where memory.svg, device.svg and trace.json go (build)\n"
    "  --validate         with the Khronos validation layer: its errors are shown, and counted\n"
    "  --quick            a small network for a few steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input, no device, or a file that could not be written, 2 a budget is\n"
    "below the least possible, 3 measured differs from planned, weights are not equal, or the\n"
    "validation layer found errors\n";

static int read_options(options *o, int count, char **argv, int *done) {
    const training_option table[] = {
        { "--device", 1, 1000, &o->device, NULL, NULL },
        { "--steps", 1, 1000000, &o->steps, NULL, NULL },
        { "--layers", 1, 64, &o->layers, NULL, NULL },
        { "--width", VK_NN_HEAD, 1024, &o->width, NULL, NULL },
        { "--context", 2, 1024, &o->context, NULL, NULL },
        { "--batch", 1, 1024, &o->batch, NULL, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, NULL, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--out", 0, 0, NULL, &o->out, NULL },
        { "--plan", 0, 0, NULL, &o->plan, NULL },
        { "--transfer", 0, 0, NULL, &o->transfer, NULL },
        { "--list", 0, 0, NULL, NULL, &o->lists },
        { "--validate", 0, 0, NULL, NULL, &o->validates },
        { "--estimate", 0, 0, NULL, NULL, &o->estimates },
        { "--quick", 0, 0, NULL, NULL, NULL },
    };
    return training_parse_options(table, sizeof table / sizeof *table, usage, count, argv, done);
}

static void set_defaults(options *o, int quick) {
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = quick ? 6 : 8;
    o->width = 16;  // little beside the activations: what falls with the budget is seen
    o->context = quick ? 16 : 32;
    o->batch = quick ? 4 : 64;
    o->steps = quick ? 5 : 6;
    o->seed = 1;
    (void)training_parse_plan(NULL, o->kinds);
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int code;
    set_defaults(o, training_is_quick(count, argv));
    code = read_options(o, count, argv, done);
    if (code || *done) return code;
    code = training_parse_plan(o->plan, o->kinds);
    if (!code && o->transfer && strcmp(o->transfer, "no") != 0 && strcmp(o->transfer, "yes") != 0)
        return training_fail(TRAINING_INPUT, "--transfer %s: must be yes or no", o->transfer);
    return code ? code : training_check_multiple("--width", o->width, VK_NN_HEAD);
}

// -- main --

// Begin a training by a plan, which belongs to it then. Budget 0 = no limit. Where the device
// computes on the host, steps are measured in processor time: others on the machine do not show.
static tl_result init_training(program *p, training *t, row_kind kind, const char *label,
                               tl_plan *plan, uint64_t budget) {
    tl_result result;
    if (!t->m) t->m = &p->m;
    t->t = &p->t;
    t->o = &p->o;
    t->kind = kind;
    t->budget = budget;
    t->device = p->o.estimates ? NULL : &p->limits;
    t->equal = 1;
    t->is_drawn = 1;
    t->gap_ratio = -1.0;
    t->clock = p->info.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? CLOCK_PROCESS_CPUTIME_ID
                                                           : CLOCK_MONOTONIC;
    if (!t->step_max) t->step_max = p->o.steps;
    t->plan = *plan;
    memset(plan, 0, sizeof *plan);
    snprintf(t->label, sizeof t->label, "%s", label);
    result = init_memory(&p->env, t, &p->device);
    t->nn.is_gpu = is_gpu(&p->info);
    return result ? result : init_run(&p->env, t);
}

// Build the model that regions of rows are cut out of, with the costs that are known now.
static tl_result build_by_rows(program *p) {
    training_free_model(&p->env, &p->by_rows);
    p->by_rows = p->m;
    p->by_rows.row_unit = p->row_unit;
    p->by_rows.call_cost = p->row_ns;
    return training_build_model(&p->env, &p->by_rows);
}

// Measure what a further call costs in a region of rows; whole_ns: a pass without any.
static tl_result rehearse_rows(program *p, uint64_t whole_ns) {
    training_model cut;
    training t;
    tl_plan plan;
    uint64_t in_rows;
    tl_result result = build_by_rows(p);
    memset(&cut, 0, sizeof cut);
    memset(&t, 0, sizeof t);
    if (!result) result = training_cut_feed_forward(&p->env, &p->by_rows, &cut);
    if (!result) result = tl_plan_keep_all(&p->env, training_planned_graph(&cut), 0, &plan);
    t.m = &cut;
    t.step_max = REHEARSAL_STEPS;
    if (!result) result = init_training(p, &t, ROW_KEEP_ALL, "rehearsal", &plan, 0);
    if (!result) result = rehearse(&t, NULL, &in_rows);
    if (!result && t.times) p->row_ns = training_measure_rows(&cut, p->node_ns, whole_ns, in_rows);
    free_training(&p->env, &t);
    training_free_regions(&p->env, &cut.regions);
    return result;
}

// Measure the nodes and build the graph again with what they take; a device without a clock leaves
// the estimate in place.
static int prepare_costs(program *p) {
    training t;
    tl_plan plan;
    uint64_t whole_ns = 0;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan);
    memset(&t, 0, sizeof t);
    t.step_max = REHEARSAL_STEPS;
    p->node_ns = (uint64_t *)calloc(training_count_cost_slots(&p->m), sizeof *p->node_ns);
    if (!p->node_ns) result = TL_ERROR_NO_MEMORY;
    if (!result) result = init_training(p, &t, ROW_KEEP_ALL, "rehearsal", &plan, 0);
    if (!result) result = rehearse(&t, p->node_ns, &whole_ns);
    if (!result && t.times && p->o.kinds[TRAINING_REGIONS]) result = rehearse_rows(p, whole_ns);
    if (!result && t.times) {
        training_free_model(&p->env, &p->m);
        p->m.node_ns = p->node_ns;
        p->m.update_rate = training_find_update_rate(&p->m, p->node_ns[training_update_slot(&p->m)]);
        result = training_build_model(&p->env, &p->m);
    }
    free_training(&p->env, &t);
    return result ? training_fail_result(&p->env, "rehearsal", result) : TRAINING_OK;
}

static int add_row(program *p, row_kind kind, const char *label, tl_plan *plan, uint64_t budget) {
    tl_result result = init_training(p, &p->rows[p->row_count++], kind, label, plan, budget);
    return result ? training_fail_result(&p->env, label, result) : TRAINING_OK;
}

// Add a row that holds a percentage of the keep-all peak, or the least that it can, by moving
// tensors, and where that is not all it may do, by making them again.
static int add_moves_row(program *p, row_kind kind, int alone, unsigned percent, const char *how) {
    training *t = &p->rows[p->row_count];
    uint64_t asked = p->keep_all.peak_bytes / 100 * percent, budget = asked;
    double gap_ratio;
    char label[24];
    tl_plan plan;
    tl_result result = plan_copies(p, kind, alone, &budget, &plan, &gap_ratio);
    int code;
    if (result) return training_fail_result(&p->env, "plan", result);
    if (budget != asked)
        percent = (unsigned)((budget * 100 + p->keep_all.peak_bytes - 1) / p->keep_all.peak_bytes);
    snprintf(label, sizeof label, "%u %%%s %s", percent, budget != asked ? " least" : "", how);
    code = add_row(p, kind, label, &plan, budget);
    if (!alone) t->gap_ratio = gap_ratio;
    t->is_drawn = alone || kind == ROW_F16;     // eight curves are all that a picture has
    return code;
}

// Add a row whose plan cuts regions of rows, which belong to it then.
static int add_cut_row(program *p, const char *label, training_found *found, uint64_t budget) {
    training *t = &p->rows[p->row_count];
    training_model *m = &p->models[p->row_count];
    *m = p->by_rows;
    m->regions = found->regions;
    t->m = m;
    return add_row(p, ROW_RECOMPUTE, label, &found->plan, budget);
}

// Add a row that computes again; *is_least is 1 where it is the least that its kind can do.
static int add_found_row(program *p, const training_goal *goal, int *is_least) {
    training *t = &p->rows[p->row_count];
    training_found found;
    uint64_t budget;
    char label[16];
    int is_rows = goal->kind == TRAINING_REGIONS, code;
    tl_result result =
        training_find_row(&p->env, is_rows ? &p->by_rows : &p->m, goal, &found, &budget, label, is_least);
    if (result) return training_fail_result(&p->env, label, result);
    if (is_rows) code = add_cut_row(p, label, &found, budget);
    else code = add_row(p, ROW_RECOMPUTE, label, &found.plan, budget);
    if (goal->kind == TRAINING_GRAPH) t->gap_ratio = found.gap_ratio;
    t->is_drawn = goal->kind == TRAINING_GRAPH || !p->o.kinds[TRAINING_GRAPH];
    return code;
}

// Make the graph of the least budget: gradients of weights with rows are made in pieces there, as
// small as it takes.
static tl_result cut_gradients(program *p) {
    tl_remat_desc desc;
    tl_pieces_desc pieces;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    memset(&pieces, 0, sizeof pieces);
    desc.graph = pieces.graph = &p->m.graph;
    desc.budget_bytes = 1;  // which nothing fits: so it is the least that counts, not the costs
    desc.work_limit = TRAINING_WORK;
    desc.alignment_bytes = pieces.alignment_bytes = p->m.alignment_bytes;
    pieces.call_cost = p->limits.call_latency_ns;
    result = tl_choose_pieces(&p->env, &desc, pieces.call_cost, &pieces.piece_bytes, NULL);
    if (result && result != TL_ERROR_INFEASIBLE) return result;
    p->in_pieces = p->m;
    return tl_apply_pieces(&p->env, &pieces, &p->in_pieces.graph);
}

static uint64_t find_least_budget(const program *p) {
    uint64_t least = UINT64_MAX;
    int32_t k;
    for (k = 0; k < p->row_count; k++)
        if (p->rows[k].budget && p->rows[k].budget < least) least = p->rows[k].budget;
    return least;
}

// Add the row of the least bytes with gradients in pieces, where that is a hundredth less. It is not
// where weights are little beside activations, as in the network that is trained by default.
static int add_pieces_row(program *p, uint64_t least) {
    training *t = &p->rows[p->row_count];
    training_found found;
    tl_result result = cut_gradients(p);
    int code;
    memset(&found, 0, sizeof found);
    if (!result) result = training_find_least(&p->env, &p->in_pieces, TRAINING_GRAPH, 0, &found);
    if (result) return training_fail_result(&p->env, "pieces", result);
    if (found.plan.arena_bytes > least / 100 * 99) {
        tl_free_plan(&p->env, &found.plan);
        return TRAINING_OK;
    }
    t->m = &p->in_pieces;
    code = add_row(p, ROW_RECOMPUTE, "least pieces", &found.plan, found.plan.arena_bytes);
    t->gap_ratio = found.gap_ratio;
    t->is_drawn = 0;            // eight curves are all that a picture has
    return code;
}

// Add the row of the least budget with regions of rows, and before it one halfway between that and the least
// without, where that is a hundredth more: there the graph has no plan at all.
static int add_region_rows(program *p, training_goal goal, uint64_t least) {
    uint64_t bytes;
    training_found found;
    int is_least, code = TRAINING_OK;
    tl_result result = training_find_least(&p->env, &p->by_rows, TRAINING_REGIONS, 0, &found);
    if (result) return training_fail_result(&p->env, "rows", result);
    bytes = found.plan.arena_bytes;
    goal.kind = TRAINING_REGIONS;
    goal.percent = (unsigned)((least + bytes) / 2 * 100 / goal.keep_all_bytes);
    if (bytes > least / 100 * 99) {
        tl_free_plan(&p->env, &found.plan);
        training_free_regions(&p->env, &found.regions);
        return TRAINING_OK;
    }
    if (goal.keep_all_bytes / 100 * goal.percent > bytes) code = add_found_row(p, &goal, &is_least);
    if (!code) code = add_cut_row(p, "least rows", &found, bytes);
    p->rows[p->row_count - 1].is_drawn = 0;     // eight curves are all that a picture has
    return code;
}

// The rows of the table: keep all; 60, 40, 25 and 15 % of its bytes and the least there is,
// by each kind of plan, until it can do no less; gradients in pieces; regions of rows; and those that
// move tensors.
static int add_rows(program *p) {
    static const unsigned percents[] = { 60, 40, 25, 15, 0 };
    int done[TRAINING_KIND_COUNT] = { 0 }, k, kind, code;
    training_goal goal;
    uint64_t least;
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->keep_all);
    if (!result) result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan);
    if (result) return training_fail_result(&p->env, "keep all", result);
    code = add_row(p, ROW_KEEP_ALL, "keep all", &plan, 0);
    if (!code && p->o.kinds[TRAINING_REGIONS]) result = build_by_rows(p);
    if (result) return training_fail_result(&p->env, "rows", result);
    if (p->row_ns)
        printf("blocks     a further call of a kernel for some rows of the batch: %.1f us, measured\n",
               (double)p->row_ns * 1e-3);
    memset(&goal, 0, sizeof goal);
    goal.keep_all_bytes = p->keep_all.peak_bytes;
    done[TRAINING_REGIONS] = p->o.kinds[TRAINING_GRAPH];
    for (k = 0; k < 5; k++) {
        for (kind = 0; kind < TRAINING_KIND_COUNT && !code; kind++) {
            if (!p->o.kinds[kind] || done[kind]) continue;
            goal.kind = (training_kind)kind;
            goal.percent = percents[k];
            code = add_found_row(p, &goal, &done[kind]);
        }
    }
    least = find_least_budget(p);
    if (!code && p->o.kinds[TRAINING_GRAPH]) code = add_pieces_row(p, least);
    if (!code && p->o.kinds[TRAINING_GRAPH] && p->o.kinds[TRAINING_REGIONS])
        code = add_region_rows(p, goal, least);
    if (!code) code = add_moves_row(p, ROW_COPIES, 1, 40, "copies");
    if (!code) code = add_moves_row(p, ROW_COPIES, 0, 40, "both");
    if (!code) code = add_moves_row(p, ROW_COPIES, 0, 25, "both");
    if (!code) code = add_moves_row(p, ROW_F16, 0, 60, "f16");
    return code;
}

static int prepare(program *p, const char *program_path) {
    const options *o = &p->o;
    uint64_t V;
    int32_t k, events = 0;
    tl_result result;
    int code = open_device(p);
    if (!code) code = training_read_text(o->text, program_path, o->context, NULL, &p->t);
    if (!code) code = set_alignment(p);
    if (code) return code;
    p->m.size.L = o->layers;
    p->m.size.C = o->width;
    p->m.size.T = o->context;
    p->m.size.B = o->batch;
    p->m.size.V = V = (uint64_t)p->t.V;
    p->m.trains = 1;
    p->m.owns_weights = 1;
    p->m.dropout = 0.05f;
    p->m.add_bytes = add_bytes;
    if (o->batch * o->context * (4 * o->width > V ? 4 * o->width : V) >= (uint64_t)1 << 30)
        return training_fail(TRAINING_INPUT, "--batch --context --width: an activation must have"
                                             " less than 2^30 floats");
    result = training_build_model(&p->env, &p->m);
    if (result) return training_fail_result(&p->env, "graph", result);
    print_device("device    ", &p->info);
    training_print_text(&p->t);
    training_print_network(&p->m, 0);
    code = o->estimates ? TRAINING_OK : prepare_costs(p);
    if (code) return code;
    training_print_costs(&p->m);
    code = o->estimates ? TRAINING_OK : measure_copies(p);
    if (code) return code;
    code = add_rows(p);
    if (code) return code;
    for (k = 0; k < p->row_count; k++) events += p->rows[k].plan.step_count;
    for (k = 0; k < 2; k++) p->states[k] = (float *)calloc(3 * (size_t)p->m.param_count, sizeof *p->states[k]);
    result = p->states[0] && p->states[1] ? tl_init_trace(&p->env, events, &p->trace) : TL_ERROR_NO_MEMORY;
    return result ? training_fail_result(&p->env, "trace", result) : TRAINING_OK;
}

static int run(program *p, const char *program_path) {
    int code = p->o.lists ? open_device(p) : prepare(p, program_path), table, pictures;
    if (code || p->o.lists) return code;
    code = train_rounds(p);
    table = print_table(p);
    pictures = write_pictures(p);
    if (!pictures) pictures = write_device_picture(p);
    if (!code) code = table;
    return code ? code : pictures;
}

int main(int count, char **argv) {
    static program p;  // zero
    int done, k, code;
    p.progress.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p.o, count, argv, &done);
    if (code || done) return code;
    training_set_signals();
    code = run(&p, argv[0]);
    for (k = 0; k < p.row_count; k++) free_training(&p.env, &p.rows[k]);
    tl_vk_free_device(&p.env, &p.device);
    tl_free_trace(p.trace);
    for (k = 0; k < ROW_MAX; k++) training_free_regions(&p.env, &p.models[k].regions);
    training_free_model(&p.env, &p.by_rows);
    tl_free_graph(&p.env, &p.in_pieces.graph);
    training_free_model(&p.env, &p.m);
    tl_free_plan(&p.env, &p.keep_all);
    free(p.node_ns);
    free(p.states[0]);
    free(p.states[1]);
    free(p.t.ids);
    if (!code && p.complaints)
        code = training_fail(TRAINING_MISMATCH, "validation: %d errors", p.complaints);
    return training_finish(code);
}
