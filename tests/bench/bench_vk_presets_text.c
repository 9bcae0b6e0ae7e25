// What each of the six presets does on a Vulkan device with the network of examples/01_train_text.c, by the kernels of
// examples/02_vulkan_train.c: the table of bench_presets. Where the device computes on the host, times are processor time of
// all threads, else wall time.
#define main train_main
#include "../../examples/02_vulkan_train.c"
#undef main
#include "presets.h"
#include "presets_text.h"

typedef struct bench {
    program      p;
    training     trainings[PRESET_ROWS];
    preset_bench presets;
} bench;

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_vk_presets_text: %s\n", env->error.text); exit(1); }
}

// A training whose run is made from the preset.
static void open_row(bench *b, int k) {
    training *t = &b->trainings[k];
    program *p = &b->p;
    tl_kernel kernels[KERNEL_COUNT];
    tl_plan plan;
    t->step_max = WARM_ROUNDS + ROUNDS;
    must(&p->env, tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan));
    must(&p->env, init_training(p, t, ROW_KEEP_ALL, "preset", &plan, 0));
    tl_free_run(t->run);
    t->run = NULL;
    set_kernels(t, kernels);
    must(&p->env, init_preset_run(&p->env, t, kernels, KERNEL_COUNT, p->o.seed, &b->presets.rows[k]));
    if (t->run) must(&p->env, write_states(t));
}

static double clock_ns(const void *self) {
    const bench *b = (const bench *)self;
    return b->p.info.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? processor_ns() : wall_ns();
}

static void step_row(void *self, int k) {
    bench *b = (bench *)self;
    must(&b->p.env, step_preset(&b->trainings[k], &b->presets.rows[k]));
}

static uint64_t digest_row(void *self, int k) {
    bench *b = (bench *)self;
    training *t = &b->trainings[k];
    size_t count = 3 * (size_t)t->m->param_count;
    float *states = (float *)calloc(count, sizeof *states);
    uint64_t digest;
    must(&b->p.env, states ? training_move_states(t->m, t->run, states, 0) : TL_ERROR_NO_MEMORY);
    digest = digest_floats(states, count);
    free(states);
    return digest;
}

// As prepare, but for costs and rows; the sizes are those of 01.
static int prepare_network(program *p, const char *path) {
    tl_result result;
    int code = open_device(p);
    if (!code) code = training_read_text(NULL, path, p->o.context, NULL, &p->t);
    if (!code) code = set_alignment(p);
    if (code) return code;
    p->m.size.L = p->o.layers;
    p->m.size.C = p->o.width;
    p->m.size.T = p->o.context;
    p->m.size.B = p->o.batch;
    p->m.size.V = (uint64_t)p->t.V;
    p->m.trains = 1;
    p->m.owns_weights = 1;
    p->m.dropout = 0.05f;
    p->m.add_bytes = add_bytes;
    result = training_build_model(&p->env, &p->m);
    if (!result) result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->keep_all);
    return result ? training_fail_result(&p->env, "graph", result) : TRAINING_OK;
}

static void close_bench(bench *b) {
    program *p = &b->p;
    int k;
    for (k = 0; k < PRESET_ROWS; k++) free_training(&p->env, &b->trainings[k]);
    tl_vk_free_device(&p->env, &p->device);
    tl_free_plan(&p->env, &p->keep_all);
    training_free_model(&p->env, &p->m);
    free(p->t.ids);
}

int main(int count, char **argv) {
    static bench b;  // zero
    program *p = &b.p;
    char where[320];
    int k, code;
    (void)count;
    set_defaults(&p->o, 0);
    p->o.layers = 6;
    p->o.width = 48;
    p->o.context = 32;
    p->o.batch = 4;
    code = prepare_network(p, argv[0]);
    if (code) return code;
    b.presets.program = "bench_vk_presets_text";
    b.presets.self = &b;
    b.presets.clock_ns = clock_ns;
    b.presets.step = step_row;
    b.presets.digest = digest_row;
    list_presets(b.presets.rows, p->keep_all.peak_bytes);
    for (k = 0; k < PRESET_ROWS; k++) open_row(&b, k);
    run_presets(&b.presets);
    snprintf(where, sizeof where, "the network of 01 on %s", p->info.name);
    print_presets(&b.presets, where, p->keep_all.peak_bytes);
    close_bench(&b);
    return 0;
}
