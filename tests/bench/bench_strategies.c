// Whether costs that were measured predict the order of strategies: the network of examples/01_train_text.c, trained by strategies
// that keep, drop, split, fuse and narrow, each predicted by what was compiled for it, and each run. Costs are those that the
// example rehearses, node by node, in f32 and in bf16; copies and codecs are timed by tl_measure_device, what a split costs by
// taking turns with the same batch in four parts. All rows take turns, a step each, in an order that changes; times are processor time. The gradients of
// rows in f32 that split nothing must be the same to the bit.
#define main train_main
#include "../../examples/01_train_text.c"
#undef main
#include "strategies.h"
#include "text_run.h"

enum { TURNS = 120, WARM_TURNS = 3, MOST_PARTS = 4, SAMPLES = 61, COPY_BYTES = 1 << 20 };

// What a row asks for.
typedef struct wish {
    const char *name;
    int         checkpointed, interval;   // gradients: kept, or by the planner, or at an interval
    int         percent;                  // of what keeping all takes; 0 = no budget
    tl_memory   memory;
    int         fuses, is_mixed, parts;   // parts: 0 = the batch is not split
} wish;

static const wish wishes[] = {
    { "keep all",                0, 0, 0,  TL_MEMORY_POOLED,       0, 0, 0 },
    { "90 %",                    1, 0, 90, TL_MEMORY_POOLED,       0, 0, 0 },
    { "70 %",                    1, 0, 70, TL_MEMORY_POOLED,       0, 0, 0 },
    { "50 %",                    1, 0, 50, TL_MEMORY_POOLED,       0, 0, 0 },
    { "35 %",                    1, 0, 35, TL_MEMORY_POOLED,       0, 0, 0 },
    { "every second layer",      1, 2, 0,  TL_MEMORY_POOLED,       0, 0, 0 },
    { "every third layer",       1, 3, 0,  TL_MEMORY_POOLED,       0, 0, 0 },
    { "25 %, minimal peak",      1, 0, 25, TL_MEMORY_MINIMAL_PEAK, 0, 0, 0 },
    { "keep all, fused",         0, 0, 0,  TL_MEMORY_POOLED,       1, 0, 0 },
    { "35 %, fused",             1, 0, 35, TL_MEMORY_POOLED,       1, 0, 0 },
    { "70 %, kept, bf16",        0, 0, 70, TL_MEMORY_POOLED,       0, 1, 0 },
    { "35 %, bf16",              1, 0, 35, TL_MEMORY_POOLED,       0, 1, 0 },
    { "keep all, in 2 parts",    0, 0, 0,  TL_MEMORY_POOLED,       0, 0, 2 },
    { "keep all, in 4 parts",    0, 0, 0,  TL_MEMORY_POOLED,       0, 0, 4 },
};
enum { WISHES = sizeof wishes / sizeof wishes[0] };

typedef struct bench {
    program        p;
    training_model mixed;                   // the graph in f32, with the scratch of kernels that expand 16 bits
    training_model parts[MOST_PARTS + 1];   // [n]: what kernels see of a batch split in n parts
    options        part_options[MOST_PARTS + 1];
    uint64_t      *costs;                   // [node_count x TL_SCHEME_COUNT] ns of a forward and a backward
    uint32_t      *schemes;                 // [node_count]
    tl_device      device;
    uint64_t       split_cost;
    training       trainings[WISHES];
    strategy_row   rows[WISHES];
} bench;

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_strategies: %s\n", env->error.text); exit(1); }
}

static void *must_have(void *memory) {
    if (!memory) { fprintf(stderr, "bench_strategies: no memory\n"); exit(1); }
    return memory;
}

// -- models --

// The scratch of kernels that expand 16 bits, and the rest as in f32: saved bytes are narrowed with their node.
static void add_mixed_bytes(const training_model *m, const training_node *n, tl_node_desc *desc) {
    training_model narrow = *m;
    training_node narrow_node = *n;
    tl_node_desc wide;
    memset(&wide, 0, sizeof wide);
    narrow.format = narrow_node.format = TL_FORMAT_BF16;
    add_bytes(&narrow, &narrow_node, desc);
    add_bytes(m, n, &wide);
    desc->saved_bytes = wide.saved_bytes;
}

// The network of the program in another form.
static void build_like(program *p, training_model *m, uint64_t B, tl_format format,
                       void (*bytes)(const training_model *, const training_node *, tl_node_desc *), const uint64_t *node_ns) {
    memset(m, 0, sizeof *m);
    m->size = p->m.size;
    m->size.B = B;
    m->trains = 1;
    m->alignment_bytes = ALIGNMENT;
    m->dropout = p->m.dropout;
    m->add_bytes = bytes;
    m->format = format;
    m->node_ns = node_ns;
    must(&p->env, training_build_model(&p->env, m));
}

// -- costs --

// What may be bf16: not what reads tokens or targets, which are no numbers, and not norms, which save f32.
static int may_be_narrow(training_op op) {
    return op == TRAINING_LINEAR || op == TRAINING_ATTENTION || op == TRAINING_GELU || op == TRAINING_DROPOUT ||
           op == TRAINING_ADD;
}

static void measure_mixed(bench *b) {
    program *p = &b->p;
    training_model narrow;
    const training_model *rehearsed = &narrow;
    int32_t count = p->m.graph.node_count, id, k;
    uint64_t *node_ns = (uint64_t *)must_have(calloc(training_count_cost_slots(&p->m), sizeof *node_ns));
    uint64_t step_ns;
    tl_plan plan;
    b->costs = (uint64_t *)must_have(calloc((size_t)count * TL_SCHEME_COUNT, sizeof *b->costs));
    b->schemes = (uint32_t *)must_have(calloc((size_t)count, sizeof *b->schemes));
    build_like(p, &b->mixed, p->m.size.B, TL_FORMAT_F32, add_mixed_bytes, p->node_ns);
    build_like(p, &narrow, p->m.size.B, TL_FORMAT_BF16, add_bytes, NULL);
    must(&p->env, tl_plan_keep_all(&p->env, &narrow.graph, 0, &plan));
    must(&p->env, rehearse(&p->env, &rehearsed, &p->t, &p->o, &p->w, &plan, 1, node_ns, &step_ns));
    for (id = 0; id < count; id++) {
        uint64_t *costs = b->costs + (size_t)id * TL_SCHEME_COUNT;
        for (k = 0; k < TL_SCHEME_COUNT; k++) costs[k] = TL_FORBIDDEN;
        costs[TL_SCHEME_F32] = p->node_ns[2 * id] + p->node_ns[2 * id + 1];
        b->schemes[id] = 1u << TL_SCHEME_F32;
        if (!may_be_narrow(p->m.nodes[id].op)) continue;
        costs[TL_SCHEME_BF16] = node_ns[2 * id] + node_ns[2 * id + 1];
        b->schemes[id] |= 1u << TL_SCHEME_BF16;
    }
    training_free_model(&p->env, &narrow);
    free(node_ns);
}

static void build_parts(bench *b) {
    program *p = &b->p;
    int n;
    for (n = 2; n <= MOST_PARTS; n *= 2) {
        b->part_options[n] = p->o;
        b->part_options[n].micro_batches = (uint64_t)n;
        build_like(p, &b->parts[n], p->m.size.B / (uint64_t)n, TL_FORMAT_F32, add_bytes, NULL);
    }
}

// What each part after the first adds, in the median over turns: the same batch in four parts and whole. What the graph says to be
// the same for a part as for the whole is counted once for each part anyway.
static void measure_split(bench *b) {
    program *p = &b->p;
    training whole, parts;
    double differences[SAMPLES], fixed = 0, cost;
    tl_plan plans[2];
    int32_t id;
    int turn;
    build_parts(b);
    must(&p->env, tl_plan_keep_all(&p->env, &p->m.graph, 0, &plans[0]));
    must(&p->env, tl_plan_keep_all(&p->env, &b->parts[MOST_PARTS].graph, 0, &plans[1]));
    must(&p->env, init_training(&p->env, &whole, &p->m, &p->t, &p->o, &p->w, &plans[0], 0));
    must(&p->env, init_training(&p->env, &parts, &b->parts[MOST_PARTS], &p->t, &b->part_options[MOST_PARTS], &p->w, &plans[1], 0));
    for (turn = -WARM_TURNS; turn < SAMPLES; turn++) {
        must(&p->env, train_step(&whole));
        must(&p->env, train_step(&parts));
        differences[turn < 0 ? 0 : turn] = (double)parts.step_ns - (double)whole.step_ns;
    }
    for (id = 0; id < p->m.graph.node_count; id++)
        if (p->m.graph.nodes[id].fixed) fixed += (double)(p->node_ns[2 * id] + p->node_ns[2 * id + 1]);
    cost = median(differences, SAMPLES) / (MOST_PARTS - 1) - fixed;
    b->split_cost = cost > 0 ? (uint64_t)cost : 0;
    free_training(&p->env, &whole);
    free_training(&p->env, &parts);
}

// Copies and codecs of tensors as large as those of the network.
static void measure_device(bench *b) {
    program *p = &b->p;
    tl_measure_device_desc desc;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    memset(&desc, 0, sizeof desc);
    memset(&cpu, 0, sizeof cpu);
    cpu.now_ns = node_clock_ns;
    desc.bytes = COPY_BYTES;
    desc.sample_count = 31;
    desc.codecs = 1u << TL_CODEC_BF16;
    must(&p->env, tl_init_cpu_backend(&p->env, &cpu, &backend));
    must(&p->env, tl_measure_device(&p->env, &backend, &desc, &b->device));
    tl_free_cpu_backend(&p->env, &backend);
    printf("measured   copies %.1f GB/s, codecs %.1f GB/s, each part after the first %.1f us, %.1f us of a step outside of nodes\n",
           (double)b->device.bytes_per_second * 1e-9, (double)b->device.codec_bytes_per_second * 1e-9,
           (double)b->split_cost * 1e-3, (double)p->outside_ns * 1e-3);
}

// -- rows --

static tl_strategy find_strategy(const wish *w) {
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    strategy.gradient = w->checkpointed ? tl_gradient_checkpointed((uint64_t)w->interval) : tl_gradient_full();
    strategy.gradient.accumulation_steps = (uint64_t)w->parts;
    strategy.memory = w->memory;
    strategy.precision = w->is_mixed ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE;
    strategy.enable_fusion = w->fuses;
    strategy.enable_profiling = 0;
    return strategy;
}

static void open_row(bench *b, int k) {
    const wish *w = &wishes[k];
    program *p = &b->p;
    training *t = &b->trainings[k];
    const training_model *seen = w->parts ? &b->parts[w->parts] : w->is_mixed ? &b->mixed : &p->m;
    tl_strategy strategy = find_strategy(w);
    tl_kernel kernels[KERNEL_COUNT];
    tl_precision_desc precision;
    tl_run_desc desc;
    memset(&precision, 0, sizeof precision);
    precision.loss_limit = (double)INFINITY;
    precision.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_BF16;
    precision.node_schemes = b->schemes;
    precision.costs = b->costs;
    precision.allow_sensitive = precision.allow_unknown = 1;
    must(&p->env, begin_text_run(p, t, seen, w->parts ? &b->part_options[w->parts] : &p->o, 0, kernels, &desc));
    desc.graph = w->is_mixed ? &b->mixed.graph : &p->m.graph;
    desc.strategy = &strategy;
    desc.device = &b->device;
    desc.budget_bytes = p->keep_all.peak_bytes / 100 * (uint64_t)w->percent;
    desc.may_split = w->parts > 0;
    desc.split_cost = b->split_cost;
    if (w->is_mixed) {
        desc.precision = &precision;
        desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    }
    must(&p->env, tl_init_run(&p->env, &desc, &t->run));
    b->rows[k].name = w->name;
    b->rows[k].predicted_ns = find_predicted_ns(t->run) + (double)p->outside_ns;
}

static void compare_gradients(const bench *b) {
    int k;
    for (k = 1; k < WISHES; k++) {
        if (wishes[k].is_mixed || wishes[k].parts) continue;
        if (memcmp(b->trainings[k].grads, b->trainings[0].grads, (size_t)b->p.m.param_count * sizeof(float)) == 0) continue;
        fprintf(stderr, "bench_strategies: %s: not the gradients of keeping all\n", wishes[k].name);
        exit(1);
    }
}

static void run_turns(bench *b) {
    int turn, k;
    for (turn = -WARM_TURNS; turn < TURNS; turn++) {
        for (k = 0; k < WISHES; k++) {
            int row = (k * (turn & 1 ? 3 : 5) + turn + WARM_TURNS) % WISHES;  // strides prime to the 14 rows
            must(&b->p.env, train_step(&b->trainings[row]));
            b->rows[row].ns[turn < 0 ? 0 : turn] = (double)b->trainings[row].step_ns;
        }
        compare_gradients(b);
    }
    for (k = 0; k < WISHES; k++) note_run(&b->rows[k], b->trainings[k].run);
}

static void close_bench(bench *b) {
    int n;
    close_text(&b->p, b->trainings, WISHES);
    training_free_model(&b->p.env, &b->mixed);
    for (n = 2; n <= MOST_PARTS; n *= 2) training_free_model(&b->p.env, &b->parts[n]);
    free(b->costs);
    free(b->schemes);
}

int main(int count, char **argv) {
    static bench b;  // zero
    program *p = &b.p;
    int k, code;
    (void)count;
    p->start_ns = p->progress.shown_ns = training_wall_ns();
    set_defaults(&p->o, 0);
    p->o.outside = 1;    // plans of activations
    for (k = 0; k < TRAINING_KIND_COUNT; k++) p->o.kinds[k] = 0;
    code = prepare(p, argv[0]);
    if (code) return code;
    measure_mixed(&b);
    measure_split(&b);
    measure_device(&b);
    for (k = 0; k < WISHES; k++) open_row(&b, k);
    run_turns(&b);
    print_order("training the network of 01", b.rows, WISHES, TURNS);
    close_bench(&b);
    return 0;
}
