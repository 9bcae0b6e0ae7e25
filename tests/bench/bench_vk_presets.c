// What each of the six presets does on a Vulkan device, with the network of examples/03_vulkan_engine.c and its kernels: bytes,
// time, loss and what is made again, without a budget and within 60 % of what keeping all of a training step takes. The
// engine renders its scene once; then each frame holds one whole pass and is waited for. All rows take turns, a frame each. Where
// the device computes on the host, times are processor time of all threads, else wall time. Presets without gradients compute the
// loss of the network as it began.
#define main engine_main
#include "../../examples/03_vulkan_engine.c"
#undef main
#include "presets.h"

enum { ROUNDS = 40, WARM_ROUNDS = 3, BUDGET_PERCENT = 60, BATCH = 2048 };

// A network of its own: its trainer has backend, kernels, ranges and run.
typedef struct row_trainer {
    trainer  t;
    uint64_t block;               // the picture of frame 0, as this backend knows it
} row_trainer;

typedef struct bench {
    engine      e;
    row_trainer trainers[PRESET_ROWS];
    preset_row  rows[PRESET_ROWS];
} bench;

static void must(int code) {
    if (code) exit(code);
}

static void must_run(const trainer *t, tl_result result) {
    if (result) exit(fail_library(t, "bench_vk_presets"));
}

static double frame_ns(const bench *b) {
    return b->e.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? processor_ns() : wall_ns();
}

// The picture that all networks learn.
static void render_once(bench *b) {
    frame *f = &b->e.frames[0];
    must(begin_commands(f->commands));
    render_scene(&b->e, f);
    must(check_vk(vk.EndCommandBuffer(f->commands), "vkEndCommandBuffer"));
    must(submit_commands(&b->e, f));
    must(wait_frame(&b->e, f));
    f->is_submitted = 0;
}

// As make_trainer, but for the run.
static void open_network(bench *b, int k) {
    trainer *t = &b->trainers[k].t;
    t->batch = BATCH;
    t->pixels = b->e.width * b->e.height;
    t->width = b->e.width;
    t->rate = 0.006f;
    must(make_backend(t, &b->e));
    b->trainers[k].block = b->e.frames[0].block;
    must(make_kernels(t));
    must(add_range(t, 3 * NETWORK_FLOATS * 4, &t->states[0]));
    must(add_range(t, 3 * NETWORK_FLOATS * 4, &t->states[1]));
    must(add_range(t, NETWORK_FLOATS * 4, &t->gradient));
    must(add_range(t, WIDTH * 4, &t->frequencies));
    must(make_graph(t));
    must(start_network(t, &b->e));
}

// As make_run, but from the preset.
static void open_run(bench *b, int k) {
    trainer *t = &b->trainers[k].t;
    preset_row *row = &b->rows[k];
    tl_kernel kernels[4] = { { "encode", run_encode, NULL, NULL }, { "target", run_target, NULL, NULL },
                             { "dense", run_dense, run_dense_backward, NULL }, { "loss", run_loss, run_loss_backward, NULL } };
    tl_run_desc desc = { 0 };
    tl_result result;
    int i;
    for (i = 0; i < 4; i++) kernels[i].user = t;
    t->budget_bytes = row->budget ? row->budget : UINT64_MAX;
    desc.graph = &t->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = 4;
    desc.strategy = &row->strategy;
    desc.budget_bytes = row->budget;
    result = tl_init_run(&t->env, &desc, &t->run);
    if (result == TL_ERROR_INFEASIBLE) row->least = tl_find_least_budget(&t->env.error);
    else must_run(t, result);
}

// A whole pass, and where the preset trains the optimizer's step.
static tl_result record_pass(bench *b, int k, frame *f) {
    trainer *t = &b->trainers[k].t;
    tl_run_step step;
    int32_t done = 0;
    tl_result result = begin_training(t);
    if (!result) result = tl_start_pass(t->run, 0);
    while (!result && !done) {
        result = tl_next_step(t->run, &step, &done);
        if (!result && step.is_compute) result = tl_run_step_kernel(t->run, &step);
    }
    note_step(&b->rows[k], t->run);
    if (!result && b->rows[k].strategy.gradient.computes) result = run_adam(t);
    return result ? result : copy_loss(t, &b->e, f);
}

static void run_frame_of(bench *b, int k) {
    trainer *t = &b->trainers[k].t;
    frame *f = &b->e.frames[0];
    must(begin_commands(f->commands));
    must_run(t, tl_vk_start_frame(&t->backend, f->commands, &f->ticket));
    t->picture.block = b->trainers[k].block;
    t->picture.offset = 0;
    t->picture.bytes = picture_bytes(&b->e);
    must_run(t, record_pass(b, k, f));
    must_run(t, tl_vk_end_frame(&t->backend));
    put_barrier(f->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_HOST_READ_BIT);
    must(check_vk(vk.EndCommandBuffer(f->commands), "vkEndCommandBuffer"));
    must(submit_commands(&b->e, f));
    must(wait_frame(&b->e, f));
    f->is_submitted = 0;
    must_run(t, tl_vk_retire_frame(&t->backend, f->ticket));
    memcpy(&b->rows[k].loss, (const char *)f->readback.mapped + 2 * picture_bytes(&b->e), sizeof(float));
}

// The losses of rows that train must be the same to the bit, and so must those of the others.
static void compare_rows(const bench *b) {
    const preset_row *first[2] = { NULL, NULL };
    int k;
    for (k = 0; k < PRESET_ROWS; k++) {
        const preset_row *row = &b->rows[k];
        int trains = row->strategy.gradient.computes;
        if (!runs(row)) continue;
        if (!first[trains]) first[trains] = row;
        if (memcmp(&row->loss, &first[trains]->loss, sizeof(float)) == 0) continue;
        fprintf(stderr, "bench_vk_presets: %s: not the loss of the others\n", row->name);
        exit(1);
    }
}

static void run_rounds(bench *b) {
    int round, k;
    for (round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
        int at = round < WARM_ROUNDS ? 0 : round - WARM_ROUNDS;
        for (k = 0; k < PRESET_ROWS; k++) {
            int turn = (round + k * (1 + round % 12)) % PRESET_ROWS;  // strides prime to the 13 rows: who runs before whom changes
            double begin = frame_ns(b);
            if (!runs(&b->rows[turn])) continue;
            run_frame_of(b, turn);
            b->rows[turn].ns[at] = frame_ns(b) - begin;
        }
        compare_rows(b);
        note_round(b->rows, at);
    }
}

static void close_bench(bench *b) {
    int k;
    for (k = 0; k < PRESET_ROWS; k++) free_trainer(&b->trainers[k].t);
    free_engine(&b->e);
}

int main(void) {
    static bench b;  // zero
    uint64_t keep_all;
    int k;
    b.e.width = 120;
    b.e.height = 90;
    must(make_engine(&b.e, 0, 0));
    render_once(&b);
    for (k = 0; k < PRESET_ROWS; k++) open_network(&b, k);
    keep_all = b.trainers[0].t.keep_all_bytes;
    list_presets(b.rows, keep_all / 100 * BUDGET_PERCENT);
    for (k = 0; k < PRESET_ROWS; k++) open_run(&b, k);
    run_rounds(&b);
    printf("%s; %d pixels a step; keeping all of a training step takes %llu bytes; the budget is %d %% of them;\n"
           "loss after %d steps\n",
           b.e.properties.deviceName, BATCH, (unsigned long long)keep_all, BUDGET_PERCENT, WARM_ROUNDS + ROUNDS);
    print_presets(b.rows, ROUNDS);
    close_bench(&b);
    return 0;
}
