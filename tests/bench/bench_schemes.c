// Whether costs that were measured predict the order of strategies: both networks of examples/05_quantize.c, forward only, by
// strategies that are compiled (f32, 16 bits as far as the bytes ask for it, the batch in parts) and by the example's choices of
// schemes (everything in one of them, the exact choice within a loss), as graphs with conversions. All of them are runs of the
// library; costs are those of tl_measure_profiles on this machine, what a split costs is measured on a quarter of the batch.
// All rows take turns, a pass each, in an order that changes; times are processor time. What a run answers must be what the example
// answers, to the bit.
#define main quantize_main
#include "../../examples/05_quantize.c"
#undef main
#include "strategies.h"

enum { TURNS = 160, WARM_TURNS = 3, MOST_PARTS = 4, SAMPLES = 61, ALIGNMENT = 64, MOST_KERNELS = 11 };

// A row: compiled by what it asks for, or a choice of the example.
typedef struct wish {
    const char *name;
    int         percent;            // of the bytes of f32; 0 = no budget
    int         may_split;
    uint32_t    schemes;            // of precision mixed, beside f32; 0 = all f32
    tl_scheme   uniform;            // not f32: everything in it, as far as it goes
    double      tolerance;          // > 0: the exact choice within so much of the loss
} wish;

static const wish wishes[] = {
    { "f32",                  0,  0, 0,                    TL_SCHEME_F32,        0 },
    { "60 %, in parts",       60, 1, 0,                    TL_SCHEME_F32,        0 },
    { "30 %, in parts",       30, 1, 0,                    TL_SCHEME_F32,        0 },
    { "80 %, bf16",           80, 0, 1u << TL_SCHEME_BF16, TL_SCHEME_F32,        0 },
    { "60 %, bf16",           60, 0, 1u << TL_SCHEME_BF16, TL_SCHEME_F32,        0 },
    { "60 %, f16",            60, 0, 1u << TL_SCHEME_F16,  TL_SCHEME_F32,        0 },
    { "all bf16",             0,  0, 0,                    TL_SCHEME_BF16,       0 },
    { "all i16",              0,  0, 0,                    TL_SCHEME_I16,        0 },
    { "all w8a16",            0,  0, 0,                    TL_SCHEME_W8A16,      0 },
    { "all dynamic",          0,  0, 0,                    TL_SCHEME_DYNAMIC,    0 },
    { "all i8, by channel",   0,  0, 0,                    TL_SCHEME_I8_CHANNEL, 0 },
    { "exact, 0.1 % of loss", 0,  0, 0,                    TL_SCHEME_F32,        0.001 },
    { "exact, 1 % of loss",   0,  0, 0,                    TL_SCHEME_F32,        0.01 },
};
enum { WISHES = sizeof wishes / sizeof wishes[0] };

// A run of a row, and what its kernels see.
typedef struct engine {
    quantize_net   *net;
    const tl_precision_graph *applied;   // NULL: the graph of the net, each format in its own scheme
    const char     *input;               // of the whole batch
    float          *logits;              // of the last part
    tl_backend      backend;
    tl_compiled_plan compiled;
    tl_plan         plan;                // of applied
    tl_run         *run;
} engine;

typedef struct bench {
    options      options[MOST_PARTS + 1];
    study        nets[MOST_PARTS + 1];   // [n]: the network for a batch split in n parts; [1] is the whole
    tl_graph     timed;                  // that of the whole, in ns of f32
    tl_node     *nodes;                  // of timed
    uint64_t     split_cost, outside_ns; // of each part after the first; of a pass, beside the nodes
    uint64_t     base_bytes;             // that f32 takes
    engine       engines[WISHES];
    strategy_row rows[WISHES];
} bench;

static void must(const tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "bench_schemes: %s\n", env->error.text); exit(1); }
}

static void must_do(int code) {
    if (code) exit(code);
}

// -- kernels --

static tl_scheme find_call_scheme(const engine *e, const tl_kernel_call *call) {
    if (e->applied) return (tl_scheme)e->applied->schemes[call->node];
    return call->outputs[0].format == TL_FORMAT_BF16  ? TL_SCHEME_BF16
           : call->outputs[0].format == TL_FORMAT_F16 ? TL_SCHEME_F16 : TL_SCHEME_F32;
}

static tl_result run_call(const tl_kernel_call *call, void *user) {
    const engine *e = (const engine *)user;
    int32_t id = e->applied ? e->applied->nodes[call->node] : call->node, i;
    tl_scheme scheme = find_call_scheme(e, call);
    const void *in[2] = { NULL, NULL };
    quantize_weights *weights;
    tl_result result = quantize_prepare(e->net, id, scheme, &weights);
    if (result) return result;
    for (i = 0; i < e->net->nodes[id].from_count; i++) in[i] = call->inputs[i].host;
    if (!quantize_run_integers(e->net, id, scheme, weights, in, call->outputs[0].host))
        quantize_run_floats(e->net, id, tl_find_scheme_format(scheme), weights, in, call->outputs[0].host);
    return TL_OK;
}

// The conversions of the example, which were measured.
static tl_result convert_call(const tl_kernel_call *call, void *user) {
    const engine *e = (const engine *)user;
    int32_t id = e->applied->nodes[call->node];
    tl_format from = call->inputs[0].format, to = call->outputs[0].format;
    float *floats = to == TL_FORMAT_F32 ? (float *)call->outputs[0].host : e->net->scratch[0];
    const float *made = floats;
    if (from == TL_FORMAT_F32) made = (const float *)call->inputs[0].host;
    else quantize_to_floats(e->net, id, from, call->inputs[0].host, floats);
    if (to != TL_FORMAT_F32) quantize_from_floats(e->net, id, to, made, call->outputs[0].host);
    return TL_OK;
}

static tl_result load_part(tl_run *run, int32_t micro_batch, void *user) {
    const engine *e = (const engine *)user;
    uint64_t bytes = e->net->nodes[0].elements * sizeof(float);
    tl_tensor input = { 0, 0 };
    return tl_write_tensor(run, input, e->input + (uint64_t)micro_batch * bytes, bytes);
}

// -- networks and costs --

static void build_net(bench *b, int parts, int is_text, const training_text *text) {
    study *s = &b->nets[parts];
    b->options[parts] = b->options[1];
    b->options[parts].batch /= (uint64_t)parts;
    b->options[parts].images /= (uint64_t)parts;
    s->o = &b->options[parts];
    s->net.env = &s->env;
    s->net.seed = s->o->seed;
    must_do(is_text ? build_text(s, text) : build_images(s));
}

// The whole network, trained and measured; and those for a part of the batch, with its weights.
static void prepare_nets(bench *b, int is_text, const training_text *text) {
    study *whole = &b->nets[1];
    int parts;
    build_net(b, 1, is_text, text);
    must_do(train(whole, is_text ? whole->o->steps : whole->o->image_steps, is_text ? 0.5f : 0.4f));
    must_do(load_batches(whole));
    must_do(measure_sensitivity(whole));
    must_do(measure_costs(whole));
    for (parts = 2; parts <= MOST_PARTS; parts *= 2) {
        build_net(b, parts, is_text, text);
        memcpy(b->nets[parts].net.params, whole->net.params, whole->net.param_count * sizeof(float));
    }
}

// The processor time of a pass of the example in f32.
static double time_pass(study *s) {
    uint8_t *schemes = (uint8_t *)calloc((size_t)s->net.graph.node_count, 1);
    const float *logits;
    uint64_t start = now_ns();
    if (!schemes) exit(training_fail(TRAINING_INPUT, "no memory"));
    must(&s->env, quantize_run_from(&s->net, &s->fresh[0], schemes, 0, &logits));
    free(schemes);
    return (double)(now_ns() - start);
}

// What each part of the batch after the first adds to the nodes, in the median over turns.
static void measure_split(bench *b) {
    study *whole = &b->nets[1], *part = &b->nets[MOST_PARTS];
    double differences[SAMPLES], cost;
    int turn;
    must(&part->env, quantize_init_batch(&part->net, unseen, &part->fresh[0]));
    for (turn = 0; turn < SAMPLES; turn++) {
        double ns = time_pass(whole);
        differences[turn] = MOST_PARTS * time_pass(part) - ns;
    }
    cost = median(differences, SAMPLES) / (MOST_PARTS - 1);
    b->split_cost = cost > 0 ? (uint64_t)cost : 0;
}

// The graph in the nanoseconds of f32.
static void take_costs(bench *b) {
    study *s = &b->nets[1];
    int32_t count = s->net.graph.node_count, id;
    b->timed = s->net.graph;
    b->nodes = (tl_node *)quantize_take(&s->net, (size_t)count, sizeof *b->nodes);
    memcpy(b->nodes, s->net.graph.nodes, (size_t)count * sizeof *b->nodes);
    for (id = 1; id < count; id++) b->nodes[id].fwd_cost = s->costs[id * TL_SCHEME_COUNT];
    b->timed.nodes = b->nodes;
}

// -- rows --

static uint64_t read_wall_clock(void *user) {
    (void)user;
    return training_wall_ns();
}

// What every run needs. kernels: of the ops, and room for one more.
static tl_run_desc begin_run(bench *b, engine *e, int parts, tl_kernel kernels[MOST_KERNELS]) {
    static const char *const ops[] = { "embed", "norm", "linear", "attention", "gelu", "add",
                                       "conv2d", "relu", "maxpool", "avgpool" };
    study *whole = &b->nets[1];
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    size_t i;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    e->net = &b->nets[parts].net;
    e->input = (const char *)whole->fresh[0].input;
    e->logits = quantize_take_floats(e->net, e->net->nodes[e->net->logits].elements);
    cpu.alignment_bytes = ALIGNMENT;
    cpu.now_ns = read_wall_clock;
    must(&whole->env, tl_init_cpu_backend(&whole->env, &cpu, &e->backend));
    for (i = 0; i < sizeof ops / sizeof *ops; i++) {
        memset(&kernels[i], 0, sizeof kernels[i]);
        kernels[i].op = ops[i];
        kernels[i].forward = run_call;
        kernels[i].user = e;
    }
    desc.backend = &e->backend;
    desc.kernels = kernels;
    desc.kernel_count = (int32_t)i;
    desc.load = load_part;
    desc.load_user = e;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    return desc;
}

static void compile_row(bench *b, const wish *w, tl_compiled_plan *compiled) {
    study *whole = &b->nets[1];
    tl_strategy strategy = tl_with_mode(tl_with_memory(tl_strategy_new(), TL_MEMORY_POOLED), TL_MODE_LAZY);
    tl_precision_desc precision;
    tl_compile_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(&precision, 0, sizeof precision);
    precision.loss_limit = (double)INFINITY;
    precision.schemes = w->schemes | 1u << TL_SCHEME_F32;
    precision.node_schemes = whole->schemes;
    precision.costs = whole->costs;
    precision.allow_sensitive = precision.allow_unknown = precision.allow_f16 = 1;
    strategy.precision = w->schemes ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE;
    desc.graph = &b->timed;
    desc.strategy = &strategy;
    desc.device = &whole->measured.device;
    desc.alignment_bytes = ALIGNMENT;
    desc.budget_bytes = b->base_bytes / 100 * (uint64_t)w->percent;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    if (w->schemes) desc.precision = &precision;
    desc.may_split = w->may_split;
    desc.split_cost = b->split_cost;
    must(&whole->env, tl_compile(&whole->env, &desc, compiled));
}

static void open_compiled(bench *b, const wish *w, engine *e, int is_timed) {
    study *whole = &b->nets[1];
    tl_kernel kernels[MOST_KERNELS];
    tl_run_desc desc;
    int32_t parts;
    compile_row(b, w, &e->compiled);
    parts = e->compiled.choice.part_count;
    if (parts > MOST_PARTS) exit(training_fail(TRAINING_INPUT, "%s: splits in %d parts", w->name, (int)parts));
    desc = begin_run(b, e, parts, kernels);
    desc.graph = &b->timed;
    desc.compiled = &e->compiled;
    desc.profiling = is_timed;
    must(&whole->env, tl_init_run(&whole->env, &desc, &e->run));
}

// A choice of the example, made before: its graph and its plan.
static void open_choice(bench *b, engine *e, const row *choice) {
    study *whole = &b->nets[1];
    tl_kernel kernels[MOST_KERNELS];
    tl_run_desc desc = begin_run(b, e, 1, kernels);
    tl_places_desc places;
    tl_device device;
    e->applied = &choice->applied;
    must(&whole->env, tl_plan_keep_all(&whole->env, &choice->applied.graph, 1, &e->plan));
    memset(&kernels[desc.kernel_count], 0, sizeof *kernels);
    kernels[desc.kernel_count].op = "convert";
    kernels[desc.kernel_count].forward = convert_call;
    kernels[desc.kernel_count++].user = e;
    memset(&places, 0, sizeof places);
    memset(&device, 0, sizeof device);
    device.alignment_bytes = ALIGNMENT;
    places.graph = &choice->applied.graph;
    places.device = &device;
    must(&whole->env, tl_plan_places(&whole->env, &places, &e->plan, NULL));
    desc.graph = &choice->applied.graph;
    desc.plan = &e->plan;
    desc.formats = choice->applied.formats;
    desc.quantizations = choice->applied.quantizations;
    must(&whole->env, tl_init_run(&whole->env, &desc, &e->run));
}

static void close_engine(study *whole, engine *e) {
    tl_free_run(e->run);
    tl_free_cpu_backend(&whole->env, &e->backend);
    tl_free_compiled_plan(&whole->env, &e->compiled);
    tl_free_plan(&whole->env, &e->plan);
}

// A pass; returns its time.
static uint64_t run_pass(const study *whole, engine *e, uint64_t (*clock)(void *)) {
    tl_tensor logits = { 0, 0 };
    uint64_t start = clock(NULL);
    logits.node = e->applied ? e->applied->graph.node_count - 1 : e->net->logits;
    must(&whole->env, tl_run_plan(e->run));
    must(&whole->env, tl_read_tensor(e->run, logits, e->logits, e->net->nodes[e->net->logits].elements * sizeof(float)));
    return clock(NULL) - start;
}

// What a pass takes besides its kernels: each part of a batch takes that, too.
static void measure_outside(bench *b) {
    study *whole = &b->nets[1];
    uint64_t samples[SAMPLES];
    engine e;
    int i;
    memset(&e, 0, sizeof e);
    open_compiled(b, &wishes[0], &e, 1);
    b->base_bytes = e.compiled.choice.arena_bytes;
    for (i = -1; i < SAMPLES; i++) {
        uint64_t ns = run_pass(whole, &e, read_wall_clock);
        tl_run_report report;
        tl_measure_run(e.run, &report);
        samples[i < 0 ? 0 : i] = ns - report.compute_ns;
    }
    b->outside_ns = training_find_quantile(samples, SAMPLES, 1, 4);
    b->split_cost += b->outside_ns;
    close_engine(whole, &e);
}

// The choices of the example come first: its rows move as they are added.
static void open_rows(bench *b) {
    study *whole = &b->nets[1];
    const row *next = whole->rows;
    int k;
    whole->objective = TL_OBJECTIVE_TIME;
    for (k = 0; k < WISHES; k++) {
        if (wishes[k].uniform) must_do(add_uniform_row(whole, wishes[k].uniform));
        if (wishes[k].tolerance > 0) must_do(add_ruled_row(whole, wishes[k].tolerance, RULE_EXACT));
    }
    for (k = 0; k < WISHES; k++) {
        const wish *w = &wishes[k];
        engine *e = &b->engines[k];
        b->rows[k].name = w->name;
        if (w->uniform || w->tolerance > 0) {
            open_choice(b, e, next);
            b->rows[k].predicted_ns = (double)next++->plan.cost;
        } else {
            open_compiled(b, w, e, 0);
            b->rows[k].predicted_ns = (double)e->compiled.choice.cost;
        }
        b->rows[k].predicted_ns += (double)b->outside_ns;
    }
}

// What the run answers is what the example answers, in the last part of the batch.
static void check_row(bench *b, int k) {
    study *whole = &b->nets[1];
    engine *e = &b->engines[k];
    size_t all = whole->net.nodes[whole->net.logits].elements, count = e->net->nodes[e->net->logits].elements;
    const float *expected = whole->fresh[0].tensors[whole->net.logits];
    if (wishes[k].schemes) return;   // the example does not run what was compiled
    if (e->applied) must(&whole->env, quantize_run_applied(&whole->net, &whole->fresh[0], e->applied, &expected));
    if (memcmp(e->logits, expected + all - count, count * sizeof(float)) == 0) return;
    exit(training_fail(TRAINING_MISMATCH, "%s: not the answers of the example", wishes[k].name));
}

static void run_turns(bench *b) {
    const study *whole = &b->nets[1];
    int turn, k;
    for (turn = -WARM_TURNS; turn < TURNS; turn++)
        for (k = 0; k < WISHES; k++) {
            int at = (k * (turn & 1 ? 3 : 5) + turn + WARM_TURNS) % WISHES;  // strides prime to the 13 rows
            b->rows[at].ns[turn < 0 ? 0 : turn] = (double)run_pass(whole, &b->engines[at], read_clock);
        }
    for (k = 0; k < WISHES; k++) {
        note_run(&b->rows[k], b->engines[k].run);
        if (b->engines[k].applied) b->rows[k].conversions = b->engines[k].applied->conversion_count;
        check_row(b, k);
    }
}

static void bench_network(const options *o, int is_text, const training_text *text) {
    bench *b = (bench *)calloc(1, sizeof *b);
    char what[40];
    int k, parts;
    if (!b) exit(training_fail(TRAINING_INPUT, "no memory"));
    b->options[1] = *o;
    prepare_nets(b, is_text, text);
    measure_split(b);
    take_costs(b);
    measure_outside(b);
    open_rows(b);
    printf("measured   conversions %.1f GB/s, 16-bit floats %.1f GB/s, each part after the first %.1f us, %.1f us of a pass outside"
           " of nodes\n", (double)b->nets[1].measured.device.bytes_per_second * 1e-9,
           (double)b->nets[1].measured.device.codec_bytes_per_second * 1e-9, (double)b->split_cost * 1e-3,
           (double)b->outside_ns * 1e-3);
    run_turns(b);
    snprintf(what, sizeof what, "the %s network of 05", is_text ? "text" : "image");
    print_order(what, b->rows, WISHES, TURNS);
    for (k = 0; k < WISHES; k++) close_engine(&b->nets[1], &b->engines[k]);
    free_rows(&b->nets[1]);
    for (parts = 1; parts <= MOST_PARTS; parts *= 2) {
        tl_free_measured_profiles(NULL, &b->nets[parts].measured);
        quantize_free_net(&b->nets[parts].net);
    }
    free(b);
}

int main(int count, char **argv) {
    static training_text text;  // zero
    options o;
    (void)count;
    set_defaults(&o, 0);
    must_do(training_read_text(NULL, argv[0], o.context, NULL, &text));
    bench_network(&o, 1, &text);
    bench_network(&o, 0, NULL);
    free(text.ids);
    return 0;
}
