// What tl_recommend finds, beside random strategies that are compiled for the same bytes: the recommended one should be the
// cheapest of all. Public networks, three devices, two budgets.
//
//     bench_recommend [--random N] [MODEL.tlg ...]      without models: those of the reference data, $TL_SHARED/models or
//                                                       ../shared/models, and examples/residual.tlg
//
// A cell is a network, a device and a budget. Costs of the networks are FLOP; a device makes nanoseconds of them. A unit of the
// unit chains is 100 MFLOP and a MiB. Each random strategy gets as much work as each candidate of tl_recommend: an eighth of
// compile.work_limit. Random ones that are drawn twice in a cell are compiled once; their modes are left out, because a mode
// changes a run and not a compiled plan. Kernels compute f32 and mixed, bf16 as fast as f32, with no limit of the loss.
// At last, what is recommended for the same network with about a MiB of bytes runs on the checked backend, with no byte more than
// the budget, by kernels that read and write every byte: it must take the planned bytes, and give the gradients that keeping all
// in the same formats gives, to the bit.
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

enum { ALIGNMENT = 8, RUN_BYTES = 1 << 20, MOST_OPS = 64 };
enum { DEVICES = 3, BUDGETS = 2, MOST_RANDOM = 5000, UNIT_BYTES = 1 << 20, UNIT_FLOP = 100000000 };

static const uint64_t work_limit = 100000000;

static const struct { const char *name; double flops; uint64_t memory, link, latency; int has_host; } machines[DEVICES] = {
    { "Cortex-M", 1e8, 100000000, 0, 0, 0 },
    { "Pi", 1e10, 4000000000, 0, 0, 0 },
    { "desktop", 1e12, 50000000000, 12000000000, 10000, 1 },
};

static const double shares[BUDGETS] = { 0.6, 0.35 };

typedef struct network {
    tl_env    env;
    tl_graph  graph;          // as it was read; with bytes of units
    tl_node  *nodes;          // [node_count] of timed
    tl_node_output *outputs;  // [tensor_count] the same
    tl_graph  timed;          // the same graph in nanoseconds of a device
    tl_device device;
    uint64_t  peak;           // keeping all
} network;

typedef struct sums {
    int    cells, none, refused, best, equal;  // none: nobody finds a plan; refused: random ones find one, tl_recommend none
    int    ran;                 // cells whose recommended plan ran
    int    best_alike;          // cells where it is the best with no more work than a random one
    double worst, worst_alike, beaten;  // ratios; sum over cells
    long   drawn, compiled, fit;
    double recommend_ms, random_ms;
} sums;

static void must(const network *n, tl_result result) {
    if (!result) return;
    fprintf(stderr, "bench_recommend: %s\n", n->env.error.text);
    exit(1);
}

static void *must_have(void *memory) {
    if (!memory) { fprintf(stderr, "bench_recommend: no memory\n"); exit(1); }
    return memory;
}

// -- networks and devices --

static void open_network(network *n, const char *path) {
    int32_t id;
    int has_units;
    tl_plan plan;
    memset(n, 0, sizeof *n);
    must(n, tl_read_graph(&n->env, path, &n->graph));
    n->nodes = (tl_node *)must_have(malloc((size_t)n->graph.node_count * sizeof *n->nodes));
    n->outputs = (tl_node_output *)must_have(malloc((size_t)n->graph.tensor_count * sizeof *n->outputs));
    memcpy(n->outputs, n->graph.outputs, (size_t)n->graph.tensor_count * sizeof *n->outputs);
    has_units = n->graph.node_count > 1 && strcmp(tl_name_op(&n->graph, 1), "unit") == 0;
    for (id = 0; has_units && id < n->graph.tensor_count; id++) n->outputs[id].bytes *= UNIT_BYTES;
    n->timed = n->graph;
    n->timed.nodes = n->nodes;
    n->timed.outputs = n->outputs;
    memcpy(n->nodes, n->graph.nodes, (size_t)n->graph.node_count * sizeof *n->nodes);
    must(n, tl_plan_keep_all(&n->env, &n->timed, 0, &plan));
    n->peak = plan.peak_bytes;
    tl_free_plan(&n->env, &plan);
}

static void close_network(network *n) {
    free(n->nodes);
    free(n->outputs);
    tl_free_graph(&n->env, &n->graph);
}

static uint64_t time_of(double flop, double flops) { return (uint64_t)ceil(flop * 1e9 / flops); }

static void choose_machine(network *n, int machine) {
    double unit = n->graph.node_count > 1 && strcmp(tl_name_op(&n->graph, 1), "unit") == 0 ? UNIT_FLOP : 1;
    double flops = machines[machine].flops / unit;
    int32_t id;
    for (id = 0; id < n->graph.node_count; id++) {
        n->nodes[id].fwd_cost = time_of((double)n->graph.nodes[id].fwd_cost, flops);
        n->nodes[id].bwd_cost = time_of((double)n->graph.nodes[id].bwd_cost, flops);
    }
    memset(&n->device, 0, sizeof n->device);
    n->device.name = machines[machine].name;
    n->device.bytes_per_second = n->device.codec_bytes_per_second = machines[machine].memory;
    n->device.link_bytes_per_second = machines[machine].link;
    n->device.link_latency_ns = machines[machine].latency;
}

static tl_compile_desc describe_cell(const network *n, int machine, double share) {
    tl_compile_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = &n->timed;
    desc.device = &n->device;
    desc.budget_bytes = (uint64_t)((double)n->peak * share);
    desc.host_budget_bytes = machines[machine].has_host ? n->peak : 0;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    desc.work_limit = work_limit;
    return desc;
}

// -- random strategies --

static tl_strategy draw_strategy(tl_random *random) {
    static const tl_memory memories[] = { TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK, TL_MEMORY_STANDARD };
    tl_strategy strategy = tl_strategy_new();
    strategy.mode = TL_MODE_LAZY;
    strategy.memory = memories[tl_next_random(random) % 3];
    strategy.precision = tl_next_random(random) % 2 ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE;
    strategy.enable_fusion = (int32_t)(tl_next_random(random) % 2);
    switch (tl_next_random(random) % 3) {
    case 0: strategy.gradient = tl_gradient_full(); break;
    case 1: strategy.gradient = tl_gradient_checkpointed(1 + tl_next_random(random) % 20); break;
    default: strategy.gradient = tl_gradient_checkpointed(0); break;
    }
    return strategy;
}

static int is_same_strategy(const tl_strategy *a, const tl_strategy *b) {
    return a->memory == b->memory && a->precision == b->precision && a->enable_fusion == b->enable_fusion &&
           a->gradient.checkpointed == b->gradient.checkpointed &&
           a->gradient.checkpoint_interval == b->gradient.checkpoint_interval;
}

static void name_strategy(const tl_strategy *strategy, char text[64]) {
    char gradient[24] = "full";
    if (strategy->gradient.checkpointed)
        snprintf(gradient, sizeof gradient, "again %d", (int)strategy->gradient.checkpoint_interval);
    snprintf(text, 64, "%s, %s, %s%s", gradient, tl_name_memory(strategy->memory),
             strategy->precision == TL_PRECISION_MIXED ? "mixed" : "f32", strategy->enable_fusion ? ", fused" : "");
}

// What random strategies give in a cell.
typedef struct crowd {
    tl_strategy strategies[MOST_RANDOM];  // [count] that differ
    uint64_t    costs[MOST_RANDOM];       // 0 = does not fit
    int         draws[MOST_RANDOM];       // how often it was drawn
    int         count, best;              // best: -1 = none fits
} crowd;

static uint64_t compile_strategy(network *n, const tl_compile_desc *cell, const tl_strategy *strategy) {
    tl_compile_desc desc = *cell;
    tl_compiled_plan compiled;
    uint64_t cost = 0;
    tl_result result;
    desc.strategy = strategy;
    desc.work_limit = work_limit / 8 + 1;
    result = tl_compile(&n->env, &desc, &compiled);
    if (result != TL_ERROR_INFEASIBLE) must(n, result);
    if (!result) cost = compiled.choice.cost;
    tl_free_compiled_plan(&n->env, &compiled);
    return cost;
}

static void compile_crowd(network *n, const tl_compile_desc *cell, int draws, tl_random *random, crowd *c) {
    int draw, k;
    c->count = 0;
    c->best = -1;
    for (draw = 0; draw < draws; draw++) {
        tl_strategy strategy = draw_strategy(random);
        for (k = 0; k < c->count && !is_same_strategy(&c->strategies[k], &strategy); k++) { }
        if (k == c->count) {
            c->count++;
            c->draws[k] = 0;
            c->strategies[k] = strategy;
            c->costs[k] = compile_strategy(n, cell, &strategy);
            if (c->costs[k] && (c->best < 0 || c->costs[k] < c->costs[c->best])) c->best = k;
        }
        c->draws[k]++;
    }
}

// -- running --

// The network with fewer bytes.
typedef struct small_network {
    tl_graph graph;
    tl_node *nodes;
    tl_node_output *outputs;
    uint64_t peak;
} small_network;

// What kernels share: hashes of all that the backwards of each node of the source read.
typedef struct witness {
    const int32_t *sources;       // [nodes of the run's graph] of the source; NULL = the same
    uint64_t *gradients;          // [nodes of the source]
} witness;

static uint64_t shrink(uint64_t bytes, uint64_t divisor) {
    return bytes ? (bytes / divisor + ALIGNMENT) / ALIGNMENT * ALIGNMENT : 0;
}

static void open_small(network *n, small_network *s) {
    uint64_t divisor = n->peak / RUN_BYTES + 1;
    tl_plan plan;
    int32_t i;
    s->graph = n->timed;
    s->nodes = (tl_node *)must_have(malloc((size_t)n->timed.node_count * sizeof *s->nodes));
    s->outputs = (tl_node_output *)must_have(malloc((size_t)n->timed.tensor_count * sizeof *s->outputs));
    memcpy(s->nodes, n->timed.nodes, (size_t)n->timed.node_count * sizeof *s->nodes);
    memcpy(s->outputs, n->timed.outputs, (size_t)n->timed.tensor_count * sizeof *s->outputs);
    s->graph.nodes = s->nodes;
    s->graph.outputs = s->outputs;
    for (i = 0; i < n->timed.node_count; i++) {
        s->nodes[i].saved_bytes = shrink(s->nodes[i].saved_bytes, divisor);
        s->nodes[i].fwork_bytes = shrink(s->nodes[i].fwork_bytes, divisor);
        s->nodes[i].bwork_bytes = shrink(s->nodes[i].bwork_bytes, divisor);
    }
    for (i = 0; i < n->timed.tensor_count; i++) s->outputs[i].bytes = shrink(s->outputs[i].bytes, divisor);
    must(n, tl_plan_keep_all(&n->env, &s->graph, 0, &plan));
    s->peak = plan.peak_bytes;
    tl_free_plan(&n->env, &plan);
}

static uint64_t hash_operand(uint64_t sum, const tl_operand *operand) {
    const char *at = (const char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i += 4) {
        uint32_t word;
        memcpy(&word, at + i, 4);
        sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15) + (sum >> 29);
    }
    return sum;
}

// Write numbers from -1 to 1, or add them; formats are f32 and bf16.
static void write_operand(uint64_t sum, const tl_operand *operand, int adds) {
    uint64_t size = operand->format == TL_FORMAT_F32 ? 4 : 2, i;
    for (i = 0; i < operand->range.bytes / size; i++) {
        char *at = (char *)operand->host + i * size;
        uint32_t bits = 0;
        float value, before;
        sum = sum * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        value = (float)(int32_t)(sum >> 32) / 2147483648.0f;
        memcpy((char *)&bits, at, size);
        if (size == 2) bits <<= 16;
        memcpy(&before, &bits, 4);
        if (adds) value += before;
        memcpy(&bits, &value, 4);
        if (size == 2) bits >>= 16;
        memcpy(at, &bits, size);
    }
}

static uint64_t hash_call(const tl_kernel_call *call, uint64_t sum) {
    int32_t i;
    for (i = 0; i < call->graph->nodes[call->node].input_count; i++) sum = hash_operand(sum, &call->inputs[i]);
    return sum;
}

static int32_t source_of(const witness *w, int32_t node) { return w->sources ? w->sources[node] : node; }

static tl_result run_forward(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = hash_call(call, 1 + (uint64_t)source_of((const witness *)user, call->node));
    int32_t i;
    write_operand(sum, &call->scratch, 0);
    for (i = 0; i < node->output_count && !call->outputs_ready; i++) write_operand(sum + (uint64_t)i, &call->outputs[i], 0);
    write_operand(~sum, &call->saved, 0);
    return TL_OK;
}

static tl_result run_backward(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    witness *w = (witness *)user;
    uint64_t sum = hash_call(call, 3);
    int32_t i;
    for (i = 0; i < node->output_count; i++) sum = hash_operand(hash_operand(sum, &call->outputs[i]), &call->output_grads[i]);
    sum = hash_operand(sum, &call->saved);
    write_operand(sum, &call->scratch, 0);
    for (i = 0; i < node->input_count; i++) write_operand(sum + (uint64_t)i, &call->input_grads[i], 1);
    w->gradients[source_of(w, call->node)] += sum;
    return TL_OK;
}

static tl_result load_inputs(tl_run *run, int32_t micro_batch, void *user) {
    const tl_graph *graph = (const tl_graph *)user;
    int32_t i;
    tl_result result = TL_OK;
    (void)micro_batch;
    for (i = 0; i < graph->tensor_count && !result; i++) {
        tl_operand data;
        tl_tensor tensor = { 0, 0 };
        memset(&data, 0, sizeof data);
        tensor.node = graph->outputs[i].node;
        tensor.output = graph->outputs[i].output;
        if (!graph->nodes[tensor.node].is_input) continue;
        data.range.bytes = graph->outputs[i].bytes;
        data.host = must_have(malloc((size_t)data.range.bytes));
        write_operand(tl_mix_u64(7, data.range.bytes), &data, 0);
        result = tl_write_tensor(run, tensor, data.host, data.range.bytes);
        free(data.host);
    }
    return result;
}

static int32_t list_kernels(const tl_graph *graph, witness *w, tl_kernel kernels[MOST_OPS]) {
    int32_t id, count = 0, k;
    for (id = 0; id < graph->node_count; id++) {
        const char *op = tl_name_op(graph, id);
        for (k = 0; k < count && strcmp(kernels[k].op, op) != 0; k++) { }
        if (k < count || graph->nodes[id].is_input || strcmp(op, "convert") == 0) continue;
        if (count == MOST_OPS) exit(1);
        kernels[count].op = op;
        kernels[count].forward = run_forward;
        kernels[count].backward = run_backward;
        kernels[count++].user = w;
    }
    return count;
}

// Run one step of what desc says. capacity 0 = any number of bytes.
static void run_once(network *n, tl_run_desc *desc, witness *w, uint64_t capacity) {
    tl_env env;
    tl_backend backend;
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[MOST_OPS];
    tl_run_report report;
    tl_run *run;
    memset(&env, 0, sizeof env);
    memset(&cpu, 0, sizeof cpu);
    cpu.alignment_bytes = ALIGNMENT;
    cpu.checked = 1;
    cpu.capacity_bytes[TL_TIER_DEVICE] = capacity;
    must(n, tl_init_cpu_backend(&env, &cpu, &backend));
    desc->backend = &backend;
    desc->kernels = kernels;
    desc->kernel_count = list_kernels(desc->graph, w, kernels);
    desc->kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    desc->budget_bytes = capacity;
    desc->load = load_inputs;
    desc->load_user = (void *)(size_t)desc->graph;
    must(n, tl_init_run(&n->env, desc, &run));
    must(n, tl_run_plan(run));
    tl_measure_run(run, &report);
    if (report.measured_peak_bytes != report.planned_peak_bytes || report.measured_arena_bytes != report.planned_arena_bytes ||
        report.taken_bytes > report.planned_taken_bytes || (capacity && report.taken_bytes > capacity)) {
        fprintf(stderr, "bench_recommend: a run took other bytes than planned\n");
        exit(1);
    }
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
}

// Run a recommended plan, and its graph with everything kept; their gradients must be the same.
static void compare_runs(network *n, const small_network *s, const tl_compiled_plan *compiled, uint64_t budget) {
    size_t count = (size_t)s->graph.node_count, i;
    witness ours = { NULL, NULL }, kept = { NULL, NULL };
    int32_t *sources = (int32_t *)must_have(calloc((size_t)compiled->graph->node_count, sizeof *sources));
    tl_run_desc desc;
    tl_plan plan;
    ours.gradients = (uint64_t *)must_have(calloc(count, sizeof *ours.gradients));
    kept.gradients = (uint64_t *)must_have(calloc(count, sizeof *kept.gradients));
    memset(&desc, 0, sizeof desc);
    desc.graph = &s->graph;
    desc.compiled = compiled;
    desc.host_budget_bytes = s->peak;
    run_once(n, &desc, &ours, budget);
    for (i = 0; i < count; i++) sources[compiled->nodes ? compiled->nodes[i] : (int32_t)i] = (int32_t)i;
    kept.sources = sources;
    must(n, tl_plan_keep_all(&n->env, compiled->graph, 0, &plan));
    memset(&desc, 0, sizeof desc);
    desc.graph = compiled->graph;
    desc.formats = compiled->formats;
    desc.plan = &plan;
    run_once(n, &desc, &kept, 0);
    if (memcmp(ours.gradients, kept.gradients, count * sizeof *ours.gradients) != 0) {
        fprintf(stderr, "bench_recommend: gradients are not those of keeping all\n");
        exit(1);
    }
    tl_free_plan(&n->env, &plan);
    free(ours.gradients);
    free(kept.gradients);
    free(sources);
}

// Recommend for the network with fewer bytes, and run the answer. Returns 1, or 0 where nothing fits.
static int run_cell(network *n, int machine, double share) {
    small_network s;
    tl_recommend_desc desc;
    tl_recommendation answer;
    tl_result result;
    open_small(n, &s);
    memset(&desc, 0, sizeof desc);
    desc.compile = describe_cell(n, machine, share);
    desc.compile.graph = &s.graph;
    desc.compile.budget_bytes = (uint64_t)((double)s.peak * share);
    if (desc.compile.host_budget_bytes) desc.compile.host_budget_bytes = s.peak;
    desc.compile.alignment_bytes = ALIGNMENT;
    result = tl_recommend(&n->env, &desc, &answer);
    if (result != TL_ERROR_INFEASIBLE) must(n, result);
    if (!result) compare_runs(n, &s, &answer.compiled, desc.compile.budget_bytes);
    tl_free_recommendation(&n->env, &answer);
    free(s.nodes);
    free(s.outputs);
    return !result;
}

// -- cells --

static void print_cost(uint64_t cost, uint64_t base) {
    if (cost) printf(" %9.4f", (double)cost / (double)base);
    else printf(" %9s", "none");
}

static uint64_t base_cost(const network *n) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < n->timed.node_count; id++) sum += n->timed.nodes[id].fwd_cost + n->timed.nodes[id].bwd_cost;
    return sum;
}

// ours: the cost of the recommended plan; alike: of the same strategy with as much work as a random one, 0 = none.
static void add_to_sums(sums *all, const crowd *c, uint64_t ours, uint64_t alike) {
    uint64_t best = c->best < 0 ? 0 : c->costs[c->best];
    int k, draws = 0, above = 0;
    all->cells++;
    for (k = 0; k < c->count; k++) {
        draws += c->draws[k];
        all->fit += c->costs[k] ? c->draws[k] : 0;
        above += !c->costs[k] || c->costs[k] > ours ? c->draws[k] : 0;
    }
    all->drawn += draws;
    all->compiled += c->count;
    if (!ours && !best) { all->none++; return; }
    if (!ours) { all->refused++; return; }
    all->beaten += draws ? (double)above / draws : 1;
    all->best += !best || ours <= best;
    all->equal += best && ours == best;
    all->best_alike += !best || (alike && alike <= best);
    if (best && (double)ours / (double)best > all->worst) all->worst = (double)ours / (double)best;
    if (best && alike && (double)alike / (double)best > all->worst_alike) all->worst_alike = (double)alike / (double)best;
}

static void measure_cell(network *n, const char *name, int machine, double share, int draws, tl_random *random, sums *all) {
    static crowd c;
    tl_recommend_desc desc;
    tl_recommendation answer;
    uint64_t ours = 0, alike = 0, base = base_cost(n);
    char text[64] = "-", rival[64] = "-";
    double begin = processor_ms(), ms;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.compile = describe_cell(n, machine, share);
    result = tl_recommend(&n->env, &desc, &answer);
    if (result != TL_ERROR_INFEASIBLE) must(n, result);
    ms = processor_ms() - begin;
    if (!result) {
        ours = answer.compiled.choice.cost;
        alike = compile_strategy(n, &desc.compile, &answer.strategy);
        name_strategy(&answer.strategy, text);
        if (answer.compiled.choice.arena_bytes > desc.compile.budget_bytes) {
            fprintf(stderr, "bench_recommend: %s: the recommended plan exceeds its budget\n", name);
            exit(1);
        }
    }
    tl_free_recommendation(&n->env, &answer);
    begin = processor_ms();
    compile_crowd(n, &desc.compile, draws, random, &c);
    all->recommend_ms += ms;
    all->random_ms += processor_ms() - begin;
    if (c.best >= 0) name_strategy(&c.strategies[c.best], rival);
    printf("%-16s %-9s %3.0f %%", name, machines[machine].name, 100 * share);
    print_cost(ours, base);
    print_cost(c.best < 0 ? 0 : c.costs[c.best], base);
    printf(" %6.0f  %-28s %s\n", ms, text, rival);
    fflush(stdout);
    add_to_sums(all, &c, ours, alike);
    all->ran += run_cell(n, machine, share);
}

static void measure_network(const char *path, int draws, tl_random *random, sums *all) {
    network n;
    const char *slash = strrchr(path, '/');
    char name[64];
    size_t length;
    int machine, b;
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    length = strlen(name);
    if (length > 4 && !strcmp(name + length - 4, ".tlg")) name[length - 4] = 0;
    open_network(&n, path);
    for (machine = 0; machine < DEVICES; machine++) {
        choose_machine(&n, machine);
        for (b = 0; b < BUDGETS; b++) measure_cell(&n, name, machine, shares[b], draws, random, all);
    }
    close_network(&n);
}

static int has_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    fclose(file);
    return 1;
}

static void measure_defaults(int draws, tl_random *random, sums *all) {
    static const char *const names[] = { "encoder2", "gpt2_small", "gpt2_small_rl", "mlp8", "mobilenet_v2", "mobilenet_v2_rl",
        "resnet18", "unet", "vgg16", "vgg16_rl", "unit10", "unit20", "unit50", "unit100" };
    const char *root = getenv("TL_SHARED") ? getenv("TL_SHARED") : "../shared";
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/models/%s.tlg", root, names[i]);
        if (has_file(path)) measure_network(path, draws, random, all);
        else printf("%-16s no reference data\n", names[i]);
    }
    if (has_file("examples/residual.tlg")) measure_network("examples/residual.tlg", draws, random, all);
}

static void print_sums(const sums *all, int draws) {
    int found = all->cells - all->none - all->refused;
    if (!all->cells) return;
    printf("\n%d cells: a plan by nobody in %d, by random ones alone in %d; the recommended one is the best in %d, in %d of these\n"
           "as cheap as the best random one; at worst %.4f times the cost. With as much work as a random one it is the best in %d,\n"
           "at worst %.4f times the cost\n",
           all->cells, all->none, all->refused, all->best, all->equal, all->worst > 1 ? all->worst : 1.0, all->best_alike,
           all->worst_alike > 1 ? all->worst_alike : 1.0);
    printf("%d draws a cell, %ld compiled, the others had been drawn before; %.1f %% of the draws fit; the recommended one is\n"
           "cheaper than %.1f %% of the draws, or they do not fit\n", draws, all->compiled,
           all->drawn ? 100.0 * (double)all->fit / (double)all->drawn : 0.0, found ? 100 * all->beaten / found : 0.0);
    printf("%d recommended plans ran with about a MiB of bytes: within the budget, in the planned bytes, gradients as of keeping all\n",
           all->ran);
    printf("processor time: recommending %.0f ms a cell, the random ones %.0f ms\n", all->recommend_ms / all->cells,
           all->random_ms / all->cells);
}

int main(int argc, char **argv) {
    int draws = 200, i, models = 0;
    tl_random random;
    sums all;
    memset(&all, 0, sizeof all);
    random.state = 1;
    for (i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--random") != 0) continue;
        draws = atoi(argv[i + 1]);
        if (draws >= 1 && draws <= MOST_RANDOM) continue;
        fprintf(stderr, "bench_recommend: --random: must be 1 to %d\n", MOST_RANDOM);
        return 1;
    }
    for (i = 0; i < DEVICES; i++) {
        printf("%-9s %6.1f GFLOP/s, memory %5.1f GB/s, ", machines[i].name, machines[i].flops * 1e-9,
               (double)machines[i].memory * 1e-9);
        if (machines[i].has_host)
            printf("link %.0f GB/s, %.0f us a copy, host budget: keep-all peak\n", (double)machines[i].link * 1e-9,
                   (double)machines[i].latency * 1e-3);
        else printf("no link\n");
    }
    printf("costs of a step beside the time of all calls in f32; work limit %.0f million\n\n", (double)work_limit * 1e-6);
    printf("%-16s %-9s %5s %9s %9s %6s  %-28s %s\n", "network", "device", "bytes", "recomm.", "random", "ms", "recommended",
           "best random one");
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--random")) { i++; continue; }
        measure_network(argv[i], draws, &random, &all);
        models++;
    }
    if (!models) measure_defaults(draws, &random, &all);
    print_sums(&all, draws);
    return all.refused > 0;
}
