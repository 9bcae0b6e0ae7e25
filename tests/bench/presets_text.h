// What the benches of presets share that run the network of examples/01_train_text.c, on the CPU or on Vulkan. Presets with
// gradients train; those without compute the loss of the untrained network, on each batch twice in a row. So every other step
// an inference can use again what comes before the first dropout, whose random numbers are new in each step. Include after
// the example, whose `training` and load_batch it uses, and after presets.h.
#ifndef BENCH_PRESETS_TEXT_H
#define BENCH_PRESETS_TEXT_H

// Of forward passes each batch comes twice, and is written where it changes.
static tl_result load_twice(tl_run *run, int32_t micro_batch, void *user) {
    training *t = (training *)user;
    uint64_t step = t->step;
    tl_result result;
    if (step % 2) return TL_OK;
    t->step = step / 2;
    result = load_batch(run, micro_batch, t);
    t->step = step;
    return result;
}

// Weights stay as they are; the batch is another one every other step, and random numbers in each.
static uint64_t version_of(int32_t node, int32_t micro_batch, void *user) {
    const training *t = (const training *)user;
    (void)micro_batch;
    if (!t->m->graph.nodes[node].state && training_node_of(t->m, node)->op == TRAINING_DROPOUT) return 0;
    return t->m->graph.nodes[node].is_input && !t->m->graph.nodes[node].state ? 1 + t->step / 2 : 1;
}

// The run of a preset, in the place of that of the example; where it does not fit, there is none, and row->least says what does.
static tl_result init_preset_run(tl_env *env, training *t, const tl_kernel *kernels, int32_t kernel_count, uint64_t seed,
                                 preset_row *row) {
    tl_run_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = &t->m->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = kernel_count;
    desc.strategy = &row->strategy;
    desc.budget_bytes = row->budget;
    desc.load = row->strategy.gradient.computes ? load_batch : load_twice;
    desc.load_user = t;
    if (!row->strategy.gradient.computes) desc.version = version_of;
    desc.version_user = t;
    desc.seed = seed;
    result = tl_init_run(env, &desc, &t->run);
    if (result != TL_ERROR_INFEASIBLE) return result;
    row->least = tl_find_least_budget(&env->error);
    return TL_OK;
}

// A step of a preset: as train_step, or without what belongs to the optimizer.
static tl_result step_preset(training *t, preset_row *row) {
    tl_tensor loss = { 0, 0 };
    tl_result result;
    if (row->strategy.gradient.computes) {
        result = train_step(t);
    } else {
        result = tl_run_plan(t->run);
        loss.node = t->m->loss;
        if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
        t->step++;
    }
    note_step(row, t->run);
    row->loss = t->loss;
    return result;
}

#endif
