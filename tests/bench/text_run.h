// A training of examples/01_train_text.c whose run is made from a desc of the bench, not from a plan of the example. Include
// after the example.
#ifndef BENCH_TEXT_RUN_H
#define BENCH_TEXT_RUN_H

// Begin a training of a model, without a run: *desc says what every run of it needs, and takes what makes this one. Its kernels
// are `kernels`; the backend has room for so many bytes, 0 = no limit. free_training is due in any case.
static inline tl_result begin_text_run(program *p, training *t, const training_model *m, const options *o, uint64_t room,
                                       tl_kernel kernels[KERNEL_COUNT], tl_run_desc *desc) {
    tl_cpu_backend_desc cpu;
    tl_plan plan;
    tl_result result = tl_plan_keep_all(&p->env, &m->graph, 0, &plan);
    memset(&cpu, 0, sizeof cpu);
    memset(desc, 0, sizeof *desc);
    if (!result) result = init_training(&p->env, t, m, &p->t, o, &p->w, &plan, 0);
    if (result) return result;
    tl_free_run(t->run);
    t->run = NULL;
    tl_free_cpu_backend(&t->memory, &t->backend);
    cpu.now_ns = now_ns;
    cpu.alignment_bytes = m->alignment_bytes;
    cpu.capacity_bytes[TL_TIER_DEVICE] = room;
    set_kernels(kernels, &t->network);
    desc->graph = &m->graph;
    desc->backend = &t->backend;
    desc->kernels = kernels;
    desc->kernel_count = KERNEL_COUNT;
    desc->load = load_batch;
    desc->load_user = t;
    desc->seed = t->seed;
    desc->loss_gradient_word = bits_of(1.0f / (float)o->micro_batches);
    return tl_init_cpu_backend(&t->memory, &cpu, &t->backend);
}

// Release what prepare of the example and the trainings of the bench have made.
static inline void close_text(program *p, training *trainings, int count) {
    int k;
    for (k = 0; k < count; k++) free_training(&p->env, &trainings[k]);
    for (k = 0; k < p->row_count; k++) free_training(&p->env, &p->rows[k]);
    tl_free_trace(p->trace);
    tl_free_plan(&p->env, &p->keep_all);
    training_free_model(&p->env, &p->m);
    free(p->losses);
    free(p->node_ns);
    free(p->t.ids);
}

#endif
