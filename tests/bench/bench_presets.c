// What each of the six presets does with the network of examples/01_train_text.c and its f32 kernels on the CPU: bytes, time,
// loss, what is fused, made again and kept from step to step, without a budget and within 60 % of what keeping all of a
// training step takes. Times are processor time; ratios are medians of ratios within a round.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main
#include "presets.h"
#include "text_run.h"
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
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    must(&p->env, begin_text_run(p, t, &p->m, &p->o, row->budget, kernels, &desc));
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

int main(int count, char **argv) {
    static bench b;  // zero
    program *p = &b.p;
    int k, code;
    (void)count;
    set_defaults(&p->o, 0);
    p->o.outside = 1;    // plans of activations
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
    close_text(p, b.trainings, PRESET_ROWS);
    return 0;
}
