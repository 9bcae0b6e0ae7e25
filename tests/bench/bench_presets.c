// What each of the six presets does with the network of examples/01_train_text.c and its f32 kernels: bytes, time, loss,
// what is fused, made again and kept from step to step, without a budget and within 60 % of what keeping all of a training step
// takes. All rows take turns, a step each; times are processor time; ratios are medians of ratios within a round. Presets with
// gradients train, and their gradients and losses must be the same to the bit; those without compute the loss of the untrained
// network, on each batch twice in a row, and that must be the same, too. So every other step an inference can use again what comes
// before the first dropout, whose random numbers are new in each step.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main
#include "presets.h"
#include "text_run.h"

enum { ROUNDS = 40, WARM_ROUNDS = 3, BUDGET_PERCENT = 60 };

typedef struct bench {
    program    p;
    training   trainings[PRESET_ROWS];
    preset_row rows[PRESET_ROWS];
} bench;

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_presets: %s\n", env->error.text); exit(1); }
}

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
    if (t->m->nodes[node].op == TRAINING_DROPOUT) return 0;
    return t->m->graph.nodes[node].is_input ? 1 + t->step / 2 : 1;
}

// A training whose run is made from the preset.
static void open_row(bench *b, int k) {
    training *t = &b->trainings[k];
    preset_row *row = &b->rows[k];
    program *p = &b->p;
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    tl_result result;
    must(&p->env, begin_text_run(p, t, &p->m, &p->o, row->budget, kernels, &desc));
    desc.strategy = &row->strategy;
    desc.budget_bytes = row->budget;
    if (!row->strategy.gradient.computes) {
        desc.load = load_twice;
        desc.version = version_of;
        desc.version_user = t;
    }
    result = tl_init_run(&p->env, &desc, &t->run);
    if (result == TL_ERROR_INFEASIBLE) row->least = tl_find_least_budget(&p->env.error);
    else must(&p->env, result);
}

// A step of a preset without gradients: as train_step, but for what belongs to the optimizer.
static tl_result evaluate_step(training *t) {
    uint64_t start = now_ns(NULL);
    tl_tensor loss = { 0, 0 };
    tl_result result = tl_run_plan(t->run);
    loss.node = t->m->loss;
    if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
    t->step++;
    t->step_ns = now_ns(NULL) - start;
    return result;
}

static void run_row(bench *b, int k) {
    training *t = &b->trainings[k];
    preset_row *row = &b->rows[k];
    must(&b->p.env, row->strategy.gradient.computes ? train_step(t) : evaluate_step(t));
    note_step(row, t->run);
    row->loss = t->loss;
}

// Of rows that train the gradients and the loss, of the others the loss, must be those of the first such row.
static void compare_rows(const bench *b) {
    const training *first[2] = { NULL, NULL };
    int k;
    for (k = 0; k < PRESET_ROWS; k++) {
        const training *t = &b->trainings[k];
        int trains = b->rows[k].strategy.gradient.computes;
        if (!runs(&b->rows[k])) continue;
        if (!first[trains]) first[trains] = t;
        if (memcmp(t->grads, first[trains]->grads, (size_t)b->p.m.param_count * sizeof(float)) == 0 &&
            bits_of(t->loss) == bits_of(first[trains]->loss))
            continue;
        fprintf(stderr, "bench_presets: %s: not the loss or the gradients of the others\n", b->rows[k].name);
        exit(1);
    }
}

static void run_rounds(bench *b) {
    int round, k;
    for (round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
        int at = round < WARM_ROUNDS ? 0 : round - WARM_ROUNDS;
        for (k = 0; k < PRESET_ROWS; k++) {
            int turn = (round + k * (1 + round % 12)) % PRESET_ROWS;  // strides prime to the 13 rows: who runs before whom changes
            if (!runs(&b->rows[turn])) continue;
            run_row(b, turn);
            b->rows[turn].ns[at] = (double)b->trainings[turn].step_ns;
        }
        compare_rows(b);
        note_round(b->rows, at);
    }
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
    list_presets(b.rows, p->keep_all.peak_bytes / 100 * BUDGET_PERCENT);
    for (k = 0; k < PRESET_ROWS; k++) open_row(&b, k);
    run_rounds(&b);
    printf("\nkeeping all of a training step takes %llu bytes; the budget is %d %% of them; loss after %d steps\n",
           (unsigned long long)p->keep_all.peak_bytes, BUDGET_PERCENT, WARM_ROUNDS + ROUNDS);
    print_presets(b.rows, ROUNDS);
    close_text(p, b.trainings, PRESET_ROWS);
    return 0;
}
