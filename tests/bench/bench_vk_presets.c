// What each of the six presets does with the network of examples/03_vulkan_engine.c, by its kernels on a Vulkan device and by
// those of field.h on the CPU: bytes, time, loss and what is made again, without a budget and within 60 % of what keeping all of
// a training step takes. The engine renders its scene once; on the device each frame then holds one whole pass and is waited
// for. Where the device computes on the host, times are processor time of all threads, else wall time. Presets without
// gradients compute the loss of the network as it began.
#define main engine_main
#include "../../examples/03_vulkan_engine.c"
#undef main
#include "presets.h"
#include "field.h"

enum { BATCH = 2048 };

// A network of its own: its trainer has backend, kernels, ranges and run.
typedef struct row_trainer {
    trainer  t;
    uint64_t block;               // the picture of frame 0, as this backend knows it
} row_trainer;

typedef struct bench {
    engine      e;
    row_trainer trainers[PRESET_ROWS];
    field       fields[PRESET_ROWS];
    float      *picture;
    preset_bench on_device, on_host;
} bench;

static void must(int code) {
    if (code) exit(code);
}

static void must_run(const trainer *t, tl_result result) {
    if (result) exit(fail_library(t, "bench_vk_presets"));
}

static double frame_ns(const void *self) {
    const bench *b = (const bench *)self;
    return b->e.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? processor_ns() : wall_ns();
}

// The picture that all networks learn.
static void render_once(bench *b) {
    frame *f = &b->e.frames[0];
    must(begin_commands(f->commands));
    render_scene(&b->e, f);
    copy_pictures(&b->e, f);
    put_barrier(f->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_HOST_READ_BIT);
    must(check_vk(vk.EndCommandBuffer(f->commands), "vkEndCommandBuffer"));
    must(submit_commands(&b->e, f));
    must(wait_frame(&b->e, f));
    f->is_submitted = 0;
    b->picture = (float *)malloc((size_t)picture_bytes(&b->e));
    if (!b->picture) exit(CODE_DEVICE);
    memcpy(b->picture, f->readback.mapped, (size_t)picture_bytes(&b->e));
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
    preset_row *row = &b->on_device.rows[k];
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
    note_step(&b->on_device.rows[k], t->run);
    if (!result && b->on_device.rows[k].strategy.gradient.computes) result = run_adam(t);
    return result ? result : copy_loss(t, &b->e, f);
}

static void run_frame_of(void *self, int k) {
    bench *b = (bench *)self;
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
    memcpy(&b->on_device.rows[k].loss, (const char *)f->readback.mapped + 2 * picture_bytes(&b->e), sizeof(float));
}

// -- on the host --

static void must_host(const field *t, tl_result result) {
    if (!result) return;
    fprintf(stderr, "bench_vk_presets: %s\n", t->env.error.text);
    exit(1);
}

// The network of a row of the device, on the CPU.
static void open_field(bench *b, int k) {
    const trainer *twin = &b->trainers[k].t;
    field *t = &b->fields[k];
    preset_row *row = &b->on_host.rows[k];
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[FIELD_KERNELS];
    tl_run_desc desc = { 0 };
    tl_result result;
    memset(&cpu, 0, sizeof cpu);
    t->picture = b->picture;
    t->batch = twin->batch;
    t->pixels = twin->pixels;
    t->width = twin->width;
    t->rate = twin->rate;
    field_start(t);
    cpu.alignment_bytes = 8;
    cpu.capacity_bytes[TL_TIER_DEVICE] = row->budget;
    must_host(t, tl_init_cpu_backend(&t->env, &cpu, &t->backend));
    field_set_kernels(kernels, t);
    desc.graph = &twin->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = FIELD_KERNELS;
    desc.strategy = &row->strategy;
    desc.budget_bytes = row->budget;
    result = tl_init_run(&t->env, &desc, &t->run);
    if (result == TL_ERROR_INFEASIBLE) row->least = tl_find_least_budget(&t->env.error);
    else must_host(t, result);
}

static double host_ns(const void *self) {
    (void)self;
    return processor_ns();
}

static void step_field(void *self, int k) {
    bench *b = (bench *)self;
    field *t = &b->fields[k];
    preset_row *row = &b->on_host.rows[k];
    tl_tensor loss = { LAYERS + 2, 0 };
    must_host(t, tl_run_plan(t->run));
    must_host(t, tl_read_tensor(t->run, loss, &row->loss, sizeof row->loss));
    if (row->strategy.gradient.computes) field_adam(t);
    note_step(row, t->run);
}

static uint64_t digest_field(void *self, int k) { return digest_floats(((bench *)self)->fields[k].gradient, NETWORK_FLOATS); }

// -- both --

// A frame leaves the gradients on the device: there losses alone are compared.
static void open_benches(bench *b) {
    uint64_t keep_all = b->trainers[0].t.keep_all_bytes;
    int k;
    b->on_device.program = b->on_host.program = "bench_vk_presets";
    b->on_device.self = b->on_host.self = b;
    b->on_device.clock_ns = frame_ns;
    b->on_device.step = run_frame_of;
    b->on_host.clock_ns = host_ns;
    b->on_host.step = step_field;
    b->on_host.digest = digest_field;
    list_presets(b->on_device.rows, keep_all);
    list_presets(b->on_host.rows, keep_all);
    for (k = 0; k < PRESET_ROWS; k++) {
        open_run(b, k);
        open_field(b, k);
    }
}

// Both begin with the same numbers and learn the same pixels: only roundings differ.
static void compare_devices(const bench *b) {
    int k;
    for (k = 0; k < PRESET_ROWS; k++) {
        const preset_row *device = &b->on_device.rows[k], *host = &b->on_host.rows[k];
        if (runs(device) == runs(host) && fabsf(device->loss - host->loss) <= 0.01f * host->loss) continue;
        fprintf(stderr, "bench_vk_presets: %s: the loss is %g on the device, %g on the CPU\n", host->name, (double)device->loss,
                (double)host->loss);
        exit(1);
    }
}

static void close_bench(bench *b) {
    int k;
    for (k = 0; k < PRESET_ROWS; k++) {
        tl_free_run(b->fields[k].run);
        must_host(&b->fields[k], tl_free_cpu_backend(&b->fields[k].env, &b->fields[k].backend));
        free_trainer(&b->trainers[k].t);
    }
    free_engine(&b->e);
    free(b->picture);
}

int main(void) {
    static bench b;  // zero
    uint64_t keep_all;
    char where[320];
    int k;
    b.e.width = 120;
    b.e.height = 90;
    must(make_engine(&b.e, 0, 0));
    render_once(&b);
    for (k = 0; k < PRESET_ROWS; k++) open_network(&b, k);
    keep_all = b.trainers[0].t.keep_all_bytes;
    open_benches(&b);
    run_presets(&b.on_device);
    run_presets(&b.on_host);
    compare_devices(&b);
    snprintf(where, sizeof where, "the network of 03, %d pixels a step, on %s", BATCH, b.e.properties.deviceName);
    print_presets(&b.on_device, where, keep_all);
    print_presets(&b.on_host, "the same on the CPU", keep_all);
    close_bench(&b);
    return 0;
}
