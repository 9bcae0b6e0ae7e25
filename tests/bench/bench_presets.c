// What each of the six presets does with the network of examples/01_train_text.c and its f32 kernels on the CPU: bytes, time,
// loss, what is fused, made again and kept from step to step, without a budget and within 60 % of what keeping all of a
// training step takes. Times are processor time; ratios are medians of ratios within a round.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main
#include "presets.h"
#include "presets_text.h"

typedef struct bench {
    program      p;
    training     trainings[PRESET_ROWS];
    preset_bench presets;
} bench;

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_presets: %s\n", env->error.text); exit(1); }
}

// A training whose run is made from the preset.
static void open_row(bench *b, int k) {
    training *t = &b->trainings[k];
    preset_row *row = &b->presets.rows[k];
    program *p = &b->p;
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[KERNEL_COUNT];
    tl_plan plan;
    must(&p->env, tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan));
    must(&p->env, init_training(&p->env, t, &p->m, &p->t, &p->o, &p->w, &plan, 0));
    tl_free_run(t->run);
    t->run = NULL;
    tl_free_cpu_backend(&t->memory, &t->backend);
    memset(&cpu, 0, sizeof cpu);
    cpu.now_ns = now_ns;
    cpu.alignment_bytes = p->m.alignment_bytes;
    cpu.capacity_bytes[TL_TIER_DEVICE] = row->budget;
    must(&t->memory, tl_init_cpu_backend(&t->memory, &cpu, &t->backend));
    set_kernels(kernels, &t->network);
    must(&p->env, init_preset_run(&p->env, t, kernels, KERNEL_COUNT, t->seed, row));
}

static double clock_ns(const void *self) {
    (void)self;
    return processor_ns();
}

static void step_row(void *self, int k) {
    bench *b = (bench *)self;
    must(&b->p.env, step_preset(&b->trainings[k], &b->presets.rows[k]));
}

static uint64_t digest_row(void *self, int k) {
    const bench *b = (const bench *)self;
    return digest_floats(b->trainings[k].grads, (size_t)b->p.m.param_count);
}

static void close_bench(bench *b) {
    program *p = &b->p;
    int k;
    for (k = 0; k < PRESET_ROWS; k++) free_training(&p->env, &b->trainings[k]);
    for (k = 0; k < p->row_count; k++) free_training(&p->env, &p->rows[k]);
    tl_free_trace(p->trace);
    tl_free_plan(&p->env, &p->keep_all);
    training_free_model(&p->env, &p->m);
    free(p->losses);
    free(p->node_ns);
    free(p->t.ids);
}

int main(int count, char **argv) {
    static bench b;  // zero
    program *p = &b.p;
    int k, code;
    (void)count;
    set_defaults(&p->o, 0);
    p->o.estimates = 1;  // plans by FLOP, the same on every machine
    for (k = 0; k < TRAINING_KIND_COUNT; k++) p->o.kinds[k] = 0;
    code = prepare(p, argv[0]);
    if (code) return code;
    b.presets.program = "bench_presets";
    b.presets.self = &b;
    b.presets.clock_ns = clock_ns;
    b.presets.step = step_row;
    b.presets.digest = digest_row;
    list_presets(b.presets.rows, p->keep_all.peak_bytes);
    for (k = 0; k < PRESET_ROWS; k++) open_row(&b, k);
    run_presets(&b.presets);
    print_presets(&b.presets, "the network of 01 on the CPU", p->keep_all.peak_bytes);
    close_bench(&b);
    return 0;
}
