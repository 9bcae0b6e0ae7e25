// What a training step costs inside the library: within budgets, by a plan and online, against keeping
// everything; against the same kernels called by hand; and reversed chains against Revolve's closed form.
// The network, its plans and its rehearsal are those of examples/01_train_text.c. All rows take turns, a
// step each; times are processor time; ratios are medians of ratios within a round.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main

enum { ROUNDS = 60, WARM_ROUNDS = 3 };
enum { PLAN_ROWS = 4, ONLINE_ROWS = PLAN_ROWS - 1, STEP_ROWS = PLAN_ROWS + ONLINE_ROWS + 2 };

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_run: %s\n", env->error.text); exit(1); }
}

static void *must_have(void *memory) {
    if (!memory) { fprintf(stderr, "bench_run: no memory\n"); exit(1); }
    return memory;
}

static double find_median(const double *values, int count) {
    static uint64_t sorted[ROUNDS];
    int i;
    for (i = 0; i < count; i++) sorted[i] = (uint64_t)(values[i] * 1e6);
    return (double)training_find_quantile(sorted, (size_t)count, 1, 2) * 1e-6;
}

// -- by hand: the same kernels on buffers that are there once --

typedef struct hand_node {
    const tl_kernel *kernel;      // NULL = an input
    tl_kernel_call   forward, backward;
    tl_operand       inputs[2], input_grads[2], output, output_grad;
    uint64_t         output_bytes;
} hand_node;

typedef struct hand {
    char      *memory;
    tl_kernel  kernels[KERNEL_COUNT];
    hand_node *nodes;             // [node_count]
} hand;

// Bytes on a multiple of 64, as the library's are.
static tl_operand carve(char **at, uint64_t bytes) {
    tl_operand operand;
    memset(&operand, 0, sizeof operand);
    if (!bytes) return operand;
    operand.host = *at;
    operand.range.bytes = bytes;
    *at += (bytes + 63) / 64 * 64;
    return operand;
}

static void open_hand(hand *h, training *t) {
    const tl_graph *graph = &t->m->graph;
    uint64_t bytes = 64;
    char *at;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        bytes += 2 * graph->outputs[id].bytes + node->saved_bytes + node->fwork_bytes + node->bwork_bytes + 5 * 64;
    }
    h->memory = at = (char *)must_have(malloc((size_t)bytes));
    h->nodes = (hand_node *)must_have(calloc((size_t)graph->node_count, sizeof *h->nodes));
    memset(h->memory, 0, (size_t)bytes);
    at += (64 - (uintptr_t)at % 64) % 64;
    set_kernels(h->kernels, &t->network);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        hand_node *n = &h->nodes[id];
        tl_kernel_call *call = &n->forward;
        n->kernel = node->is_input ? NULL : &h->kernels[t->m->nodes[id].op - 1];
        n->output_bytes = graph->outputs[id].bytes;
        n->output = carve(&at, n->output_bytes);
        n->output_grad = carve(&at, node->has_grad ? n->output_bytes : 0);
        for (i = 0; i < node->input_count; i++) {
            const hand_node *from = &h->nodes[graph->inputs[node->first_input + i].tensor];  // one output each
            n->inputs[i] = from->output;
            n->input_grads[i] = from->output_grad;
        }
        call->graph = graph;
        call->node = id;
        call->inputs = n->inputs;
        call->outputs = &n->output;
        call->output_grads = &n->output_grad;
        call->input_grads = n->input_grads;
        call->saved = carve(&at, node->saved_bytes);
        n->backward = *call;
        call->kind = node->saved_bytes ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD;
        call->scratch = carve(&at, node->fwork_bytes);
        n->backward.kind = TL_STEP_BACKWARD;
        n->backward.scratch = carve(&at, node->bwork_bytes);
    }
}

static void close_hand(hand *h) {
    free(h->memory);
    free(h->nodes);
}

// The same windows as load_batch, straight into the inputs.
static void load_by_hand(hand *h, const training *t) {
    const training_dims *s = &t->m->size;
    int32_t *tokens = (int32_t *)h->nodes[t->m->tokens].output.host;
    int32_t *targets = (int32_t *)h->nodes[t->m->targets].output.host;
    uint64_t b, k, places = t->t->length - s->T;
    for (b = 0; b < s->B; b++) {
        const uint8_t *at = t->t->ids + nn_hash(t->seed ^ 0x74657874u, t->step * s->B + b) % places;
        for (k = 0; k < s->T; k++) {
            tokens[b * s->T + k] = at[k];
            targets[b * s->T + k] = at[k + 1];
        }
    }
}

static tl_result compute_by_hand(hand *h, const training *t) {
    const tl_graph *graph = &t->m->graph;
    uint64_t seed = tl_mix_u64(t->seed, t->step);
    float one = 1.0f;
    tl_result result = TL_OK;
    int32_t id, count = graph->node_count;
    for (id = 0; id < count && !result; id++) {
        hand_node *n = &h->nodes[id];
        if (!n->kernel) continue;
        n->forward.step = n->backward.step = t->step;
        n->forward.seed = n->backward.seed = tl_mix_u64(seed, (uint64_t)id);
        result = n->kernel->forward(&n->forward, n->kernel->user);
    }
    memcpy(h->nodes[t->m->loss].output_grad.host, &one, sizeof one);
    for (id = count - 1; id >= 0 && !result; id--) {
        hand_node *n = &h->nodes[id];
        if (!n->kernel) continue;
        result = n->kernel->backward(&n->backward, n->kernel->user);
        memset(n->output_grad.host, 0, (size_t)n->output_bytes);  // for the next step, while it is in the cache
    }
    return result;
}

// As train_step, without a run.
static tl_result step_by_hand(hand *h, training *t) {
    const training_model *m = t->m;
    uint64_t start = now_ns(NULL);
    nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.0f };
    int32_t i;
    tl_result result;
    memset(t->grads, 0, (size_t)m->param_count * sizeof *t->grads);
    load_by_hand(h, t);
    result = compute_by_hand(h, t);
    memcpy(&t->loss, h->nodes[m->loss].output.host, sizeof t->loss);
    adamw.rate = training_rate(t->step);
    t->step++;
    for (i = 0; i < m->param_kinds; i++) {
        const training_param *p = &m->params[i];
        float *param = t->floats + p->first;
        adamw.weight_decay = p->decays ? 0.05f : 0.0f;
        nn_adamw_update(param, param + m->param_count, param + 2 * m->param_count, t->grads + p->first,
                        (size_t)p->count, t->step, &adamw);
    }
    t->step_ns = now_ns(NULL) - start;
    return result;
}

// -- steps: all rows of the network, in turns --

typedef struct step_row {
    char      label[40];
    training *t;
    hand     *by_hand;            // NULL = the run of t
    double    predicted;          // ratio to keep all; 0 = none
    double    ns[ROUNDS], to_hand[ROUNDS], to_keep_all[ROUNDS];
} step_row;

// A training with everything kept, for a row that is none of the example's.
static void open_spare(program *p, training *t) {
    tl_plan plan;
    must(&p->env, tl_plan_keep_all(&p->env, &p->m.graph, 0, &plan));
    must(&p->env, init_training(&p->env, t, &p->m, &p->t, &p->o, &p->w, &plan, 0));
}

// Give a training another run, as init_training makes it: by its plan, or with nothing but a budget.
static void change_run(program *p, training *t, uint64_t budget, int32_t profiling) {
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    tl_free_run(t->run);
    t->run = NULL;
    tl_free_cpu_backend(&t->memory, &t->backend);
    cpu.capacity_bytes[TL_TIER_DEVICE] = budget;
    cpu.now_ns = now_ns;
    must(&t->memory, tl_init_cpu_backend(&t->memory, &cpu, &t->backend));
    set_kernels(kernels, &t->network);
    desc.graph = &p->m.graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = KERNEL_COUNT;
    desc.plan = budget ? NULL : &t->plan;
    desc.base_bytes = training_base_bytes(&p->m);
    desc.budget_bytes = budget ? budget + desc.base_bytes : 0;
    desc.load = load_batch;
    desc.load_user = t;
    desc.observe = profiling ? observe : NULL;
    desc.observe_user = t;
    desc.profiling = profiling;
    desc.seed = t->seed;
    desc.loss_gradient_word = bits_of(1.0f);
    must(&p->env, tl_init_run(&p->env, &desc, &t->run));
}

static step_row *add_step_row(step_row *rows, int *count, const char *label, training *t) {
    step_row *row = &rows[(*count)++];
    memset(row, 0, sizeof *row);
    snprintf(row->label, sizeof row->label, "%s", label);
    row->t = t;
    return row;
}

// By hand, keep all unprofiled, keep all; then each budget by its plan and online.
static void list_rows(program *p, training *spares, hand *h, step_row *rows) {
    int count = 0, k;
    char label[40];
    for (k = 0; k < ONLINE_ROWS + 2; k++) open_spare(p, &spares[k]);
    tl_free_run(spares[0].run);
    spares[0].run = NULL;
    open_hand(h, &spares[0]);
    add_step_row(rows, &count, "without the library", &spares[0])->by_hand = h;
    change_run(p, &spares[1], 0, 0);
    add_step_row(rows, &count, "keep all, not profiled", &spares[1]);
    for (k = 0; k < PLAN_ROWS; k++) {
        training *t = &p->rows[k];
        t->trace = NULL;
        snprintf(label, sizeof label, "%s%s", t->label, k ? " by its plan" : "");
        add_step_row(rows, &count, label, t)->predicted = t->predicted_ratio;
        if (!k) continue;
        change_run(p, &spares[1 + k], t->budget, 1);
        snprintf(label, sizeof label, "%s online", t->label);
        add_step_row(rows, &count, label, &spares[1 + k]);
    }
}

// Of each step the gradients and the loss must be those of the first row, bit for bit.
static void compare_rows(const program *p, const step_row *rows) {
    const training *first = rows[0].t;
    int k;
    for (k = 1; k < STEP_ROWS; k++) {
        const training *t = rows[k].t;
        if (memcmp(t->grads, first->grads, (size_t)p->m.param_count * sizeof(float)) == 0 &&
            bits_of(t->loss) == bits_of(first->loss))
            continue;
        fprintf(stderr, "bench_run: %s: gradients or loss of step %d are not those without the library\n",
                rows[k].label, (int)t->step);
        exit(1);
    }
}

static void run_rounds(program *p, step_row *rows) {
    static const int strides[6] = { 1, 2, 4, 5, 7, 8 };  // prime to the 9 rows: who runs before whom changes
    int round, k;
    for (round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
        int at = round < WARM_ROUNDS ? 0 : round - WARM_ROUNDS;
        for (k = 0; k < STEP_ROWS; k++) {
            step_row *row = &rows[(round + k * strides[round % 6]) % STEP_ROWS];
            must(&p->env, row->by_hand ? step_by_hand(row->by_hand, row->t) : train_step(row->t));
        }
        compare_rows(p, rows);
        for (k = 0; k < STEP_ROWS; k++) {
            rows[k].ns[at] = (double)rows[k].t->step_ns;
            rows[k].to_hand[at] = rows[k].ns[at] / (double)rows[0].t->step_ns;
            rows[k].to_keep_all[at] = rows[k].ns[at] / (double)p->rows[0].step_ns;
        }
    }
}

static void print_step_row(const program *p, const step_row *row) {
    const tl_run_report *report = &row->t->report;
    char predicted[16] = "-", peak[24] = "-", again[24] = "-";
    double ratio = row->predicted;
    if (!row->by_hand) {
        if (!ratio && report->recompute_count)  // online: what its record costs
            ratio = (double)(report->planned_cost + p->outside_ns) / (double)p->keep_all_ns;
        if (ratio) snprintf(predicted, sizeof predicted, "%.3f", ratio);
        snprintf(peak, sizeof peak, "%llu", (unsigned long long)report->measured_peak_bytes);
        snprintf(again, sizeof again, "%d", (int)report->recompute_count);
    }
    printf("%-24s %9.3f %11.3f %13.3f %10s %12s %11s   equal\n", row->label, find_median(row->ns, ROUNDS) * 1e-6,
           find_median(row->to_hand, ROUNDS), find_median(row->to_keep_all, ROUNDS), predicted, peak, again);
}

static int bench_steps(char *program_path) {
    static program p;  // zero
    static training spares[ONLINE_ROWS + 2];
    static step_row rows[STEP_ROWS];
    hand h;
    int k, code;
    p.start_ns = p.progress.shown_ns = training_wall_ns();
    set_defaults(&p.o, 0);
    p.o.outside = 1;     // plans of activations
    p.o.kinds[TRAINING_GRAPH] = 0;
    code = prepare(&p, program_path);
    if (code) return code;
    list_rows(&p, spares, &h, rows);
    run_rounds(&p, rows);
    printf("\n%-24s %9s %11s %13s %10s %12s %11s   %s\n", "a training step", "ms", "to without", "to keep all", "predicted",
           "peak bytes", "made again", "gradients");
    for (k = 0; k < STEP_ROWS; k++) print_step_row(&p, &rows[k]);
    printf("medians of %d steps each; equal: gradients and loss of every step are those without the library, bit for bit\n"
           "what the library costs: %.3f x; and %.3f x where every node is timed, as in all other rows of the library\n",
           ROUNDS, find_median(rows[1].to_hand, ROUNDS), find_median(rows[2].to_hand, ROUNDS));
    close_hand(&h);
    for (k = 0; k < ONLINE_ROWS + 2; k++) free_training(&p.env, &spares[k]);
    for (k = 0; k < p.row_count; k++) free_training(&p.env, &p.rows[k]);
    tl_free_trace(p.trace);
    tl_free_plan(&p.env, &p.keep_all);
    training_free_model(&p.env, &p.m);
    free(p.losses);
    free(p.node_ns);
    free(p.t.ids);
    return 0;
}

// -- chains: equal layers of one byte, kernels that do next to nothing --

enum { TURNS = 7, MANY_STEPS = 10000 };

typedef struct chain {
    tl_env     env;
    tl_graph   graph;
    tl_plan    plan;
    tl_backend backend;
    tl_run    *run;
    long       forwards;          // counted by the kernels
    double     ns[TURNS];         // per step
    uint8_t    gradient;          // of the first layer, in the last pass
} chain;

static uint8_t *byte_of(tl_operand operand) { return (uint8_t *)operand.host; }

static tl_result chain_forward(const tl_kernel_call *call, void *user) {
    ((chain *)user)->forwards++;
    *byte_of(call->outputs[0]) = (uint8_t)(*byte_of(call->inputs[0]) + 1);
    return TL_OK;
}

static tl_result chain_backward(const tl_kernel_call *call, void *user) {
    uint8_t gradient = (uint8_t)(*byte_of(call->output_grads[0]) * 3 + *byte_of(call->inputs[0]));
    if (call->input_grads[0].host)
        *byte_of(call->input_grads[0]) = (uint8_t)(*byte_of(call->input_grads[0]) + gradient);
    ((chain *)user)->gradient = gradient;
    return TL_OK;
}

// budget 0 = by Revolve's plan.
static void open_chain(chain *c, int32_t layer_count, int32_t slots, uint64_t budget) {
    tl_chain_desc layers;
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_kernel kernel;
    memset(c, 0, sizeof *c);
    memset(&layers, 0, sizeof layers);
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    layers.layer_count = layer_count;
    layers.input_bytes = 1;
    must(&c->env, tl_add_chain(&c->env, &c->graph, &layers));
    must(&c->env, tl_plan_revolve(&c->env, &c->graph, slots, &c->plan));
    must(&c->env, tl_init_cpu_backend(&c->env, &cpu, &c->backend));
    kernel.op = "layer";
    kernel.forward = chain_forward;
    kernel.backward = chain_backward;
    kernel.user = c;
    desc.graph = &c->graph;
    desc.backend = &c->backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.plan = budget ? NULL : &c->plan;
    desc.budget_bytes = budget;
    must(&c->env, tl_init_run(&c->env, &desc, &c->run));
}

static void close_chain(chain *c) {
    tl_free_run(c->run);
    tl_free_cpu_backend(&c->env, &c->backend);
    tl_free_plan(&c->env, &c->plan);
    tl_free_graph(&c->env, &c->graph);
}

// Pass after pass until there were many steps; returns ns per step.
static double time_chain(chain *c) {
    tl_run_report report;
    long steps = 0;
    uint64_t start = now_ns(NULL);
    while (steps < MANY_STEPS) {
        c->forwards = 0;
        must(&c->env, tl_run_plan(c->run));
        tl_measure_run(c->run, &report);
        steps += report.step_count;
    }
    return (double)(now_ns(NULL) - start) / (double)steps;
}

static void bench_chain(int32_t layer_count, int32_t slots) {
    static chain planned, online;
    uint64_t advances, budget;
    double plan_ns, online_ns;
    int turn;
    open_chain(&planned, layer_count, slots, 0);
    must(&planned.env, tli_find_revolve_advances(&planned.env, (uint64_t)layer_count, (uint64_t)slots, &advances));
    budget = planned.plan.peak_bytes;  // slots + 3, where they are fewer than layers
    open_chain(&online, layer_count, slots, budget);
    for (turn = -1; turn < TURNS; turn++) {
        planned.ns[turn < 0 ? 0 : turn] = time_chain(&planned);
        online.ns[turn < 0 ? 0 : turn] = time_chain(&online);
    }
    plan_ns = find_median(planned.ns, TURNS);
    online_ns = find_median(online.ns, TURNS);
    printf("%6d %5d %6d %12ld %9ld %9ld %8.3f %8.3f %10.0f %10.0f %8.2f\n", (int)layer_count, (int)slots, (int)budget,
           (long)advances + 1, planned.forwards, online.forwards, (double)planned.forwards / (double)(advances + 1),
           (double)online.forwards / (double)(advances + 1), plan_ns, online_ns, online_ns / plan_ns);
    if (planned.gradient != online.gradient) { fprintf(stderr, "bench_run: gradients differ\n"); exit(1); }
    close_chain(&planned);
    close_chain(&online);
}

int main(int count, char **argv) {
    static const int32_t layer_counts[3] = { 10, 100, 1000 }, slot_counts[4] = { 2, 3, 5, 10 };
    int code = bench_steps(argv[0]), i, k;
    (void)count;
    if (code) return code;
    printf("\nchains (closed form: forwards of Revolve; to reach: plan 1.000, online <= 2; ns: bookkeeping per step)\n\n");
    printf("%6s %5s %6s %12s %9s %9s %8s %8s %10s %10s %8s\n", "layers", "slots", "bytes", "closed form", "plan", "online",
           "plan", "online", "plan ns", "online ns", "to plan");
    for (i = 0; i < 3; i++)
        for (k = 0; k < 4; k++) bench_chain(layer_counts[i], slot_counts[k]);
    return 0;
}
