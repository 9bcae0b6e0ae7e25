// [7] PRECISION: RAM, flash, loss and cost as limits of one choice, against every choice there is.
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_graph.h"
#include "support/texts.h"

enum { MOST_NODES = 64 };

// A problem: a graph, what its nodes lose and cost in each scheme, and limits.
typedef struct problem {
    tl_graph graph;
    double   losses[MOST_NODES * TL_SCHEME_COUNT];
    uint64_t costs[MOST_NODES * TL_SCHEME_COUNT];
    uint32_t inputs[MOST_NODES], nodes[MOST_NODES];
    uint8_t  slots[MOST_NODES];
    tl_fit_desc desc;
} problem;

typedef struct amounts {
    uint64_t ram, flash, cost;
    double   loss;
} amounts;

// -- amounts of a choice, by the functions that a caller would use --

// Forwards run in place where their node says so and nothing reads the input behind them: I in the place of F and D.
static void use_places_again(const tl_graph *graph, tl_plan *plan) {
    tl_step *steps = (tl_step *)plan->steps;
    int32_t i, k, at, last;
    for (i = 0; i < plan->step_count; i++) {
        const tl_node *node = &graph->nodes[steps[i].node];
        if (steps[i].kind != TL_STEP_FORWARD || node->inplace < 0) continue;
        at = graph->inputs[node->first_input + node->inplace].tensor;
        if (graph->nodes[graph->outputs[at].node].is_input || graph->nodes[graph->outputs[at].node].keep) continue;
        for (last = -1, k = 0; k < graph->input_count; k++)
            if (graph->inputs[k].tensor == at) last = k;
        if (last < node->first_input || last >= node->first_input + node->input_count) continue;
        for (k = 0; k < node->input_count && (k == node->inplace || graph->inputs[node->first_input + k].tensor != at);) k++;
        if (k < node->input_count) continue;
        for (k = i + 1; graph->nodes[steps[k].node].first_output + steps[k].output != at || steps[k].kind != TL_STEP_DROP;) k++;
        steps[i].kind = TL_STEP_FORWARD_INPLACE;
        memmove(steps + k, steps + k + 1, (size_t)(plan->step_count-- - k - 1) * sizeof *steps);
    }
}

static uint64_t place(const tl_graph *graph, uint64_t alignment) {
    tl_env env = silent_env();
    tl_device device;
    tl_places_desc places;
    tl_places_report report;
    tl_plan plan;
    memset(&device, 0, sizeof device);
    memset(&places, 0, sizeof places);
    device.alignment_bytes = alignment;
    places.graph = graph;
    places.device = &device;
    assert_int_equal(tl_plan_keep_all(&env, graph, 1, &plan), TL_OK);
    use_places_again(graph, &plan);
    assert_int_equal(tl_plan_places(&env, &places, &plan, &report), TL_OK);
    tl_free_plan(NULL, &plan);
    return report.arena_bytes;
}

static uint64_t place_in_rows(const tl_graph *graph, const uint8_t *in_slots, uint64_t alignment) {
    tl_env env = silent_env();
    tl_rows_desc desc;
    tl_rows_plan rows;
    uint64_t bytes;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.in_slots = in_slots;
    desc.alignment_bytes = alignment;
    assert_int_equal(tl_plan_rows(&env, &desc, &rows), TL_OK);
    bytes = place(&rows.graph, alignment);
    tl_free_rows_plan(NULL, &rows);
    return bytes;
}

static void apply(const problem *p, const tl_scheme *schemes, tl_precision_graph *applied) {
    static tl_precision_node nodes[MOST_NODES];
    tl_env env = silent_env();
    tl_precision_plan plan;
    tl_apply_desc desc;
    int32_t i;
    memset(&plan, 0, sizeof plan);
    memset(&desc, 0, sizeof desc);
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < p->graph.node_count; i++) { nodes[i].scheme = schemes[i]; nodes[i].speedup = 1; }
    plan.nodes = nodes;
    plan.node_count = p->graph.node_count;
    desc.graph = &p->graph;
    desc.plan = &plan;
    desc.any_input = 1;
    desc.any_result = p->desc.precision.any_result;
    if (tl_apply_precision(&env, &desc, applied)) fail_msg("%s", env.error.text);
}

static amounts measure(const problem *p, const tl_scheme *schemes) {
    static uint8_t slots[4 * MOST_NODES];
    tl_precision_graph applied;
    amounts a;
    int32_t i;
    memset(&a, 0, sizeof a);
    apply(p, schemes, &applied);
    for (i = 0; i < applied.graph.node_count; i++)
        slots[i] = p->slots[applied.nodes[i]] && applied.new_nodes[applied.nodes[i]] == i;
    a.ram = p->desc.may_cut_rows ? place_in_rows(&applied.graph, slots, p->desc.alignment_bytes)
                                 : place(&applied.graph, p->desc.alignment_bytes);
    for (i = 0; i < applied.graph.node_count; i++) {
        a.flash += applied.graph.nodes[i].param_bytes;
        if (applied.new_nodes[applied.nodes[i]] != i) a.cost += applied.graph.nodes[i].fwd_cost;
    }
    for (i = 0; applied.graph.attributes && i < applied.graph.attributes->stored_count; i++)
        a.flash += applied.graph.attributes->stored[i].bytes;
    for (i = 0; i < p->graph.node_count; i++) {
        a.cost += p->costs[i * TL_SCHEME_COUNT + (int32_t)schemes[i]];
        if (schemes[i] != TL_SCHEME_F32) a.loss += p->losses[i * TL_SCHEME_COUNT + (int32_t)schemes[i]];
    }
    tl_free_precision_graph(NULL, &applied);
    return a;
}

static int is_within(const tl_fit_desc *d, const amounts *a) {
    return (!d->ram_bytes || a->ram <= d->ram_bytes) && (!d->flash_bytes || a->flash <= d->flash_bytes) &&
           (!d->cost_limit || a->cost <= d->cost_limit) && a->loss <= d->precision.loss_limit;
}

static double value_of(const tl_fit_desc *d, const amounts *a) {
    return d->minimized == TL_MEASURE_RAM ? (double)a->ram : d->minimized == TL_MEASURE_FLASH ? (double)a->flash
         : d->minimized == TL_MEASURE_COST ? (double)a->cost : a->loss;
}

// -- every choice --

// Whether the constants of a node let it have w4a8: channels of equal length, up to 8192.
static int may_have_groups(const tl_graph *graph, int32_t id) {
    const tl_stored *stored = graph->attributes ? graph->attributes->stored : NULL;
    int32_t i;
    for (i = 0; stored && i + 1 < graph->attributes->stored_count; i++)
        if (stored[i].node == id)   // of two
            return stored[i].bytes % stored[i + 1].bytes == 0 && stored[i].bytes / stored[i + 1].bytes <= 8192;
    return 1;
}

static uint32_t allowed(const problem *p, int32_t id) {
    if (p->graph.nodes[id].is_input) return p->inputs[id] ? p->inputs[id] : 1u << TL_SCHEME_F32;
    return may_have_groups(&p->graph, id) ? p->nodes[id] : p->nodes[id] & ~(1u << TL_SCHEME_W4A8);
}

// The next choice in lexical order; 0 = that was the last one.
static int step(const problem *p, tl_scheme *schemes) {
    int32_t id, k;
    for (id = 0; id < p->graph.node_count; id++) {
        for (k = (int32_t)schemes[id] + 1; k < TL_SCHEME_COUNT && !(allowed(p, id) >> k & 1);) k++;
        if (k < TL_SCHEME_COUNT) { schemes[id] = (tl_scheme)k; return 1; }
        for (k = 0; !(allowed(p, id) >> k & 1);) k++;
        schemes[id] = (tl_scheme)k;
    }
    return 0;
}

static void set_first(const problem *p, tl_scheme *schemes) {
    int32_t id, k;
    for (id = 0; id < p->graph.node_count; id++) {
        for (k = 0; !(allowed(p, id) >> k & 1);) k++;
        schemes[id] = (tl_scheme)k;
    }
}

static void set_random(const problem *p, tl_random *random, tl_scheme *schemes) {
    int32_t id;
    for (id = 0; id < p->graph.node_count; id++)
        do schemes[id] = (tl_scheme)tl_next_random_below(random, TL_SCHEME_COUNT);
        while (!(allowed(p, id) >> schemes[id] & 1));
}

static double count_choices(const problem *p) {
    double all = 1;
    int32_t id, k, own;
    for (id = 0; id < p->graph.node_count; id++) {
        for (own = 0, k = 0; k < TL_SCHEME_COUNT; k++) own += (int)(allowed(p, id) >> k & 1);
        all *= own;
    }
    return all;
}

// -- random problems --

// Weights and biases: mostly whole channels of any length, now and then more than a sum of w4a8 may have.
static void make_constants(tl_random *random, tl_stored *stored) {
    uint64_t channels = 1 + tl_next_random_below(random, 10), terms = 1 + tl_next_random_below(random, 100);
    if (random_chance(random, 5)) terms = 8190 + tl_next_random_below(random, 5);
    stored[0].bytes = 4 * (channels * terms + (random_chance(random, 15) ? tl_next_random_below(random, 3) : 0));
    stored[1].bytes = 4 * channels;
}

// A graph of an inference: a chain with skips, now and then two outputs, in place, scratch, inputs that die or stay.
static void make_graph(tl_random *random, int32_t count, tl_graph *graph) {
    tl_env env = silent_env();
    int32_t id, k;
    tl_init_graph(graph);
    for (id = 0; id < count; id++) {
        int is_input = id == 0 || (id == 1 && random_chance(random, 20));
        tl_stored stored[2] = { { 0, 0, TL_TENSOR_FORMAT_F32 }, { 0, 0, TL_TENSOR_FORMAT_F32 } };
        uint64_t bytes[2] = { 4 * (1 + tl_next_random_below(random, random_chance(random, 30) ? 200 : 30)), 8 };
        tl_tensor inputs[2];
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.op = is_input ? "input" : "linear";
        desc.no_grad = 1;
        desc.output_bytes = bytes;
        desc.output_count = random_chance(random, 10) ? 2 : 1;
        desc.inputs = inputs;
        desc.dies = is_input && random_chance(random, 60);
        if (!is_input) {
            desc.input_count = id > 1 && random_chance(random, 40) ? 2 : 1;
            for (k = 0; k < desc.input_count; k++) {
                inputs[k].node = k || random_chance(random, 15) ? random_count(random, 0, id - 1) : id - 1;
                inputs[k].output = random_count(random, 0, graph->nodes[inputs[k].node].output_count - 1);
            }
            desc.fwd_cost = 1 + tl_next_random_below(random, 1000);
            if (random_chance(random, 20)) desc.fwork_bytes = tl_next_random_below(random, 100);
            if (random_chance(random, 25) && !graph->nodes[inputs[0].node].is_input) {
                desc.inplace = 1;
                bytes[0] = graph->outputs[graph->nodes[inputs[0].node].first_output + inputs[0].output].bytes;
            }
            desc.keep = random_chance(random, 15);
            if (random_chance(random, 60)) {
                make_constants(random, stored);
                desc.stored = stored;
                desc.stored_count = 2;
            } else desc.param_bytes = 4 * tl_next_random_below(random, 200);
        }
        if (tl_add_node(&env, graph, &desc, NULL)) fail_msg("%s", env.error.text);
    }
}

// What each node may be, and what that loses and costs. Losses are multiples of 2^-20: their sums have no rounding.
static void make_schemes(tl_random *random, problem *p, int most_schemes) {
    static const tl_scheme some[] = { TL_SCHEME_F32, TL_SCHEME_I8, TL_SCHEME_I16, TL_SCHEME_F16, TL_SCHEME_I8_CHANNEL,
                                      TL_SCHEME_W4A8 };
    int32_t id, k;
    for (id = 0; id < p->graph.node_count; id++) {
        int count = random_count(random, 1, most_schemes);
        p->nodes[id] = p->inputs[id] = 0;
        do for (k = 0; k < count; k++) p->nodes[id] |= 1u << some[random_chance(random, 30) ? random_count(random, 0, 5) : k];
        while (!allowed(p, id));
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            p->losses[id * TL_SCHEME_COUNT + k] = k == TL_SCHEME_F32 ? 0 : (double)tl_next_random_below(random, 1 << 12) / 1048576;
            p->costs[id * TL_SCHEME_COUNT + k] = p->graph.nodes[id].is_input ? 0 : 1 + tl_next_random_below(random, 1000);
        }
        if (!p->graph.nodes[id].is_input) continue;
        p->nodes[id] = 0;
        if (random_chance(random, 50)) p->inputs[id] = 1u << TL_SCHEME_I8 | (random_chance(random, 50) ? 1u << TL_SCHEME_F32 : 0);
        for (k = 0; k < TL_SCHEME_COUNT; k++) p->losses[id * TL_SCHEME_COUNT + k] = 0;
    }
}

static void make_desc(tl_random *random, problem *p) {
    static const uint64_t alignments[] = { 0, 4, 16, 1 };
    tl_fit_desc *d = &p->desc;
    memset(d, 0, sizeof *d);
    d->precision.graph = &p->graph;
    d->precision.losses = p->losses;
    d->precision.costs = p->costs;
    d->precision.schemes = (1u << TL_SCHEME_COUNT) - 1;
    d->precision.node_schemes = p->nodes;
    d->precision.input_schemes = p->inputs;
    d->precision.any_result = random_chance(random, 50);
    d->precision.loss_limit = INFINITY;
    d->alignment_bytes = alignments[tl_next_random_below(random, 4)];
    d->minimized = (tl_measure)tl_next_random_below(random, TL_MEASURE_COUNT);
}

// Limits that some random choice meets, or narrowly does not.
static void make_limits(tl_random *random, problem *p) {
    tl_scheme schemes[MOST_NODES];
    amounts a;
    tl_fit_desc *d = &p->desc;
    set_random(p, random, schemes);
    a = measure(p, schemes);
    if (random_chance(random, 15)) { a.ram -= a.ram / 20; a.flash -= a.flash / 20; }
    if (random_chance(random, 60)) d->ram_bytes = a.ram ? a.ram : 1;
    if (random_chance(random, 60)) d->flash_bytes = a.flash ? a.flash : 1;
    if (random_chance(random, 40)) d->cost_limit = a.cost ? a.cost : 1;
    if (random_chance(random, 60)) d->precision.loss_limit = a.loss;
}

static long grouped_count;      // nodes in w4a8 in the choices that were checked

static void check_fit(const problem *p, const tl_precision_fit *fit) {
    tl_scheme schemes[MOST_NODES];
    amounts a;
    int32_t i;
    for (i = 0; i < p->graph.node_count; i++) {
        schemes[i] = fit->plan.nodes[i].scheme;
        assert_true(allowed(p, i) >> schemes[i] & 1);
        grouped_count += schemes[i] == TL_SCHEME_W4A8;
    }
    a = measure(p, schemes);
    assert_int_equal(a.ram, fit->ram_bytes);
    assert_int_equal(a.flash, fit->flash_bytes);
    assert_int_equal(a.cost, fit->cost);
    assert_int_equal(a.cost, fit->plan.cost);
    assert_true(fabs(a.loss - fit->loss) <= 1e-12);
    assert_true(is_within(&p->desc, &a));
}

// No arena is smaller than what is said to live in it: for each call, for each conversion, and for the whole choice.
static void check_bounds(const problem *p, const tl_scheme *schemes, uint64_t ram) {
    tl_env env = silent_env();
    uint8_t choice[2 * MOST_NODES + MOST_NODES];
    tli_limits f;
    int32_t i, k;
    assert_int_equal(tli_open_fit(&env, TLI_IN(FIT_PRECISION), &p->desc, &f), TL_OK);
    memset(choice, TL_SCHEME_F32, sizeof choice);
    for (i = 0; i < p->graph.node_count; i++) choice[i] = (uint8_t)schemes[i];
    for (i = 0; i < p->graph.node_count; i++)
        assert_true(tli_may_be_cut(&f, i) || tli_bound_call(&f, i, schemes[i]) <= ram);
    for (i = 0; i < f.p.net_count; i++) {
        int32_t maker = f.p.nets[i].producer, from = (int32_t)tl_find_scheme_format(schemes[maker]);
        uint32_t wanted = tli_may_be_cut(&f, maker) ? 0 : tli_find_wanted(&f.p.nets[i], choice);
        for (k = 0; k < TL_FORMAT_COUNT; k++)
            if (wanted >> k & 1) assert_true(tli_bound_conversion(&f, i, from, k) <= ram);
    }
    assert_true(tli_bound_live(&f, choice) <= ram);
    assert_true(tli_find_ram(&f, choice) == ram);
    tli_close_fit(&f);
}

static double amount_of(const tli_limits *f, uint64_t amount) {
    return f->desc.minimized == TL_MEASURE_LOSS ? tli_f64_of(amount) : (double)amount;
}

// The parts of the search by themselves: the bound of the relaxations is one, and the search in depth finds the best
// choice without any candidate.
static void check_parts(const problem *p, double best) {
    tl_env env = silent_env();
    tli_limits f;
    int part;
    for (part = 0; part < 2; part++) {
        assert_int_equal(tli_open_fit(&env, TLI_IN(FIT_PRECISION), &p->desc, &f), TL_OK);
        if (!part) {
            tli_find_width(&f);
            tli_relax_limits(&f);
            assert_true(best == INFINITY || !f.impossible);
            assert_true(amount_of(&f, f.bound) <= best * (1 + 1e-12));
        } else {
            assert_true(tli_search_in_depth(&f));
            assert_true((best < INFINITY) == (f.found && !f.excess));
            if (best < INFINITY) assert_true(fabs(amount_of(&f, f.amounts.of[f.desc.minimized]) - best) <= 1e-12);
        }
        tli_close_fit(&f);
    }
}

// Choose, and compare with every choice there is.
static void compare(problem *p, long *proven, long *refused) {
    tl_env env = silent_env();
    tl_scheme schemes[MOST_NODES];
    tl_precision_fit fit;
    double best = INFINITY;
    uint64_t least = UINT64_MAX;
    tl_result result;
    set_first(p, schemes);
    do {
        amounts a = measure(p, schemes), other = a;
        check_bounds(p, schemes, a.ram);
        if (is_within(&p->desc, &a) && value_of(&p->desc, &a) < best) best = value_of(&p->desc, &a);
        other.ram = 0;
        if (is_within(&p->desc, &other) && a.ram < least) least = a.ram;
    } while (step(p, schemes));
    check_parts(p, best);
    result = tl_fit_precision(&env, &p->desc, &fit);
    if (best == INFINITY) {
        assert_int_equal(result, TL_ERROR_INFEASIBLE);
        assert_int_equal(tl_find_least_budget(&env.error), least);
        assert_true(fit.plan.memory == NULL && fit.ram_bytes == 0);
        (*refused)++;
        return;
    }
    if (result)
        fail_msg("%s; limits %llu %llu %llu %g, %s, best %g", env.error.text, (unsigned long long)p->desc.ram_bytes,
                 (unsigned long long)p->desc.flash_bytes, (unsigned long long)p->desc.cost_limit,
                 p->desc.precision.loss_limit, tl_name_measure(p->desc.minimized), best);
    check_fit(p, &fit);
    if (fabs((p->desc.minimized == TL_MEASURE_LOSS ? fit.loss : p->desc.minimized == TL_MEASURE_RAM ? (double)fit.ram_bytes
              : p->desc.minimized == TL_MEASURE_FLASH ? (double)fit.flash_bytes : (double)fit.cost) - best) > 1e-12)
        fail_msg("%s: best %.17g", tl_name_measure(p->desc.minimized), best);
    assert_true(p->desc.minimized == TL_MEASURE_LOSS ? fit.bound_loss <= best + 1e-12 : (double)fit.bound <= best);
    assert_true(fit.proven == (fit.gap_ratio <= 0));
    *proven += fit.proven;
    tl_free_precision_fit(NULL, &fit);
}

static void every_choice_is_compared(void **state) {
    tl_random random = { 7401 };
    int round, rounds = scaled(300);
    long proven = 0, refused = 0;
    (void)state;
    grouped_count = 0;
    for (round = 0; round < rounds; round++) {
        static problem p;
        make_graph(&random, random_count(&random, 2, 8), &p.graph);
        make_desc(&random, &p);
        do make_schemes(&random, &p, 3);
        while (count_choices(&p) > 400);
        make_limits(&random, &p);
        compare(&p, &proven, &refused);
        tl_free_graph(NULL, &p.graph);
    }
    assert_true(proven + refused == rounds && (rounds < 200 || (refused > rounds / 100 && refused < rounds / 2)));
    assert_true(rounds < 200 || grouped_count > rounds / 20);
}

// -- networks for microcontrollers, against random choices and a local search from the best of them --

typedef struct net {
    tl_graph graph;
    tl_random random;
    int      with_rows, streams;
} net;

static int32_t add(net *n, const char *op, int32_t a, int32_t b, int32_t height, int32_t row_bytes, int kernel, int stride,
                   int32_t weights, int32_t channels) {
    tl_env env = silent_env();
    tl_stored stored[2] = { { 0, 0, TL_TENSOR_FORMAT_F32 }, { 0, 0, TL_TENSOR_FORMAT_F32 } };
    tl_tensor inputs[2];
    tl_relation relations[2];
    uint64_t bytes = (uint64_t)height * (uint64_t)row_bytes;
    tl_node_desc desc;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    memset(relations, 0, sizeof relations);
    memset(inputs, 0, sizeof inputs);
    inputs[0].node = a;
    inputs[1].node = b;
    desc.op = op;
    desc.no_grad = 1;
    desc.inputs = inputs;
    desc.input_count = (a >= 0) + (b >= 0);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.dies = a < 0;
    if (a >= 0) desc.fwd_cost = bytes / 4 * (uint64_t)(channels ? 2 * weights / channels : 1);
    stored[0].bytes = 4 * (uint64_t)weights;
    stored[1].bytes = 4 * (uint64_t)channels;
    desc.stored = stored;
    desc.stored_count = weights ? 2 : 0;
    if (a < 0 && n->streams) {
        desc.rows = (uint64_t)height;
        desc.stream = 1;
    }
    if (kernel && n->with_rows) {
        relations[0].kind = relations[1].kind = kernel > 1 ? TL_RELATION_WINDOW : TL_RELATION_SAME;
        if (kernel > 1) {
            relations[0].kernel = kernel;
            relations[0].stride = stride;
            relations[0].padding = stride == kernel ? 0 : kernel / 2;
        }
        desc.rows = (uint64_t)height;
        desc.row_unit = 1;
        desc.ordered = 1;
        desc.relations = relations;
    }
    if (tl_add_node(&env, &n->graph, &desc, &id)) fail_msg("%s", env.error.text);
    return id;
}

// A keyword network: a convolution and four pairs of a depthwise one and a pointwise one.
static void make_ds_cnn(net *n, int32_t channels) {
    int32_t at = add(n, "input", -1, -1, 49, 10 * 4, 0, 0, 0, 0), i;
    at = add(n, "conv2d", at, -1, 25, 5 * channels * 4, 0, 0, 40 * channels, channels);
    for (i = 0; i < 4; i++) {
        at = add(n, "conv2d", at, -1, 25, 5 * channels * 4, 3, 1, 9 * channels, channels);
        at = add(n, "conv2d", at, -1, 25, 5 * channels * 4, 1, 1, channels * channels, channels);
    }
    at = add(n, "avgpool", at, -1, 1, channels * 4, 0, 0, 0, 0);
    add(n, "linear", at, -1, 1, 12 * 4, 0, 0, channels * 12, 12);
}

// Residual blocks on images: what skips lives across two convolutions.
static void make_resnet(net *n, int32_t size, int32_t channels) {
    int32_t at = add(n, "input", -1, -1, size, size * 3 * 4, 0, 0, 0, 0), i;
    at = add(n, "conv2d", at, -1, size, size * channels * 4, 3, 1, 27 * channels, channels);
    for (i = 0; i < 3; i++) {
        int32_t skip = at, wide = channels << i, half = i ? size / 2 : size, from = i ? wide / 2 : wide;
        at = add(n, "conv2d", at, -1, half, half * wide * 4, 3, i ? 2 : 1, 9 * from * wide, wide);
        at = add(n, "conv2d", at, -1, half, half * wide * 4, 3, 1, 9 * wide * wide, wide);
        if (i) skip = add(n, "conv2d", skip, -1, half, half * wide * 4, 0, 0, from * wide, wide);
        at = add(n, "add", at, skip, half, half * wide * 4, 1, 1, 0, 0);
        size = half;
    }
    at = add(n, "avgpool", at, -1, 1, channels * 16, 0, 0, 0, 0);
    add(n, "linear", at, -1, 1, 40, 0, 0, channels * 40, 10);
}

static void make_autoencoder(net *n, int32_t width) {
    static const int32_t layers[] = { 128, 128, 128, 128, 8, 128, 128, 128, 128 };
    int32_t at = add(n, "input", -1, -1, 1, 640 * 4, 0, 0, 0, 0), from = 640, i;
    for (i = 0; i < 9; i++) {
        int32_t to = layers[i] * width / 128 + 1;
        at = add(n, "linear", at, -1, 1, to * 4, 0, 0, from * to, to);
        from = to;
    }
    add(n, "linear", at, -1, 1, 640 * 4, 0, 0, from * 640, 640);
}

static void make_mobilenet(net *n, int32_t size, int32_t channels) {
    int32_t at = add(n, "input", -1, -1, size, size * 12, 0, 0, 0, 0), i, from;
    size /= 2;
    at = add(n, "conv2d", at, -1, size, size * channels * 4, 3, 2, 27 * channels, channels);
    for (i = 0; i < 8; i++) {
        int stride = i % 2 ? 2 : 1;
        from = channels;
        size /= stride;
        at = add(n, "conv2d", at, -1, size, size * from * 4, 3, stride, 9 * from, from);
        channels = stride == 2 || i == 0 ? 2 * from : from;
        at = add(n, "conv2d", at, -1, size, size * channels * 4, 1, 1, from * channels, channels);
    }
    at = add(n, "avgpool", at, -1, 1, channels * 4, 0, 0, 0, 0);
    add(n, "linear", at, -1, 1, 8, 0, 0, channels * 2, 2);
}

static void make_network(int index, int with_rows, problem *p) {
    net n;
    memset(&n, 0, sizeof n);
    n.with_rows = with_rows;
    tl_init_graph(&n.graph);
    switch (index % 4) {
    case 0: make_ds_cnn(&n, 16 + 16 * (index / 4 % 4)); break;
    case 1: make_resnet(&n, 32, 8 + 8 * (index / 4 % 2)); break;
    case 2: make_autoencoder(&n, 64 + 64 * (index / 4 % 3)); break;
    default: make_mobilenet(&n, 48 + 48 * (index / 4 % 2), 8); break;
    }
    p->graph = n.graph;
}

// Losses that grow with the bytes a scheme saves, and differ from node to node by a factor of 30.
static void make_network_schemes(tl_random *random, problem *p) {
    static const double noise[TL_SCHEME_COUNT] = { 0, 1e-6, 1e-5, 3e-6, 1e-3, 5e-4, 1e-4, 1, 1, 3e-3 };
    static const uint64_t time[TL_SCHEME_COUNT] = { 100, 100, 100, 60, 40, 42, 50, 1, 1, 41 };
    int32_t id, k;
    for (id = 0; id < p->graph.node_count; id++) {
        double own = exp(3.4 * tl_next_random_ratio(random));
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            p->losses[id * TL_SCHEME_COUNT + k] = noise[k] * own;
            p->costs[id * TL_SCHEME_COUNT + k] = p->graph.nodes[id].fwd_cost * time[k] / 100 + 1;
        }
        p->nodes[id] = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_I16 | 1u << TL_SCHEME_I8 | 1u << TL_SCHEME_I8_CHANNEL |
                       1u << TL_SCHEME_W4A8;
        p->inputs[id] = 0;
        if (!p->graph.nodes[id].is_input) continue;
        for (k = 0; k < TL_SCHEME_COUNT; k++) p->losses[id * TL_SCHEME_COUNT + k] = p->costs[id * TL_SCHEME_COUNT + k] = 0;
        p->inputs[id] = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_I8;
        p->nodes[id] = 0;
    }
}

// How much a choice exceeds its limits, as a sum of shares, then what it is to be minimised.
typedef struct score { double excess, value; } score;

static double exceed(double amount, double limit) { return amount > limit ? (amount - limit) / (limit > 0 ? limit : 1) : 0; }

static score score_of(const problem *p, const tl_scheme *schemes) {
    const tl_fit_desc *d = &p->desc;
    amounts a = measure(p, schemes);
    score s;
    s.excess = exceed(a.loss, d->precision.loss_limit);
    if (d->ram_bytes) s.excess += exceed((double)a.ram, (double)d->ram_bytes);
    if (d->flash_bytes) s.excess += exceed((double)a.flash, (double)d->flash_bytes);
    if (d->cost_limit) s.excess += exceed((double)a.cost, (double)d->cost_limit);
    s.value = value_of(d, &a);
    return s;
}

static int beats(score a, score b) { return a.excess < b.excess || (a.excess <= b.excess && a.value < b.value); }

// Change one node at a time as long as that is better.
static score climb(const problem *p, tl_scheme *schemes) {
    score best = score_of(p, schemes), s;
    int improved = 1;
    int32_t id, k;
    while (improved)
        for (improved = 0, id = 0; id < p->graph.node_count; id++)
            for (k = 0; k < TL_SCHEME_COUNT; k++) {
                tl_scheme before = schemes[id];
                if (k == (int32_t)before || !(allowed(p, id) >> k & 1)) continue;
                schemes[id] = (tl_scheme)k;
                s = score_of(p, schemes);
                if (beats(s, best)) { best = s; improved = 1; }
                else schemes[id] = before;
            }
    return best;
}

// The best of so many random choices, and of climbing from the best twenty.
static score find_rival(const problem *p, tl_random *random, int count) {
    enum { BEST = 20 };
    static tl_scheme best[BEST + 1][MOST_NODES];
    score scores[BEST + 1], s, rival = { INFINITY, INFINITY };
    int i, at, known = 0;
    for (i = 0; i < count; i++) {
        tl_scheme schemes[MOST_NODES];
        set_random(p, random, schemes);
        s = score_of(p, schemes);
        for (at = known; at > 0 && beats(s, scores[at - 1]); at--) {
            scores[at] = scores[at - 1];
            memcpy(best[at], best[at - 1], sizeof best[at]);
        }
        scores[at] = s;
        memcpy(best[at], schemes, sizeof schemes);
        if (known < BEST) known++;
    }
    for (i = 0; i < known; i++) {
        s = climb(p, best[i]);
        if (beats(s, rival)) rival = s;
    }
    return rival;
}

// Limits at shares of what all in f32 and all in 8 bits take.
static void make_network_limits(tl_random *random, problem *p) {
    tl_scheme wide[MOST_NODES], narrow[MOST_NODES];
    amounts most, least;
    double share[4];
    int32_t i;
    for (i = 0; i < p->graph.node_count; i++) {
        wide[i] = TL_SCHEME_F32;
        narrow[i] = TL_SCHEME_I8;
    }
    most = measure(p, wide);
    least = measure(p, narrow);
    for (i = 0; i < 4; i++) share[i] = 0.1 + 0.7 * tl_next_random_ratio(random);
    if (p->desc.minimized != TL_MEASURE_RAM) p->desc.ram_bytes = least.ram + (uint64_t)(share[0] * (double)(most.ram - least.ram));
    if (p->desc.minimized != TL_MEASURE_FLASH) p->desc.flash_bytes = least.flash + (uint64_t)(share[1] * (double)(most.flash - least.flash));
    if (p->desc.minimized != TL_MEASURE_LOSS) p->desc.precision.loss_limit = share[2] * least.loss;
}

static void compare_with_rival(int index, int with_rows, int count, long *won) {
    static problem p;
    tl_random random = { 7500 + (uint64_t)index };
    tl_env env = silent_env();
    tl_precision_fit fit;
    tl_result result;
    score own, rival;
    make_network(index, with_rows, &p);
    make_desc(&random, &p);
    p.desc.minimized = (tl_measure)(index / 4 % TL_MEASURE_COUNT);
    p.desc.alignment_bytes = 16;
    p.desc.precision.any_result = 1;
    p.desc.may_cut_rows = with_rows;
    make_network_schemes(&random, &p);
    make_network_limits(&random, &p);
    rival = find_rival(&p, &random, count);
    result = tl_fit_precision(&env, &p.desc, &fit);
    if (result) {
        assert_int_equal(result, TL_ERROR_INFEASIBLE);
        assert_true(rival.excess > 0);
        printf("network %2d: %s\n", index, env.error.text);
    } else {
        check_fit(&p, &fit);
        own.excess = 0;
        own.value = fit.minimized == TL_MEASURE_LOSS ? fit.loss : fit.minimized == TL_MEASURE_RAM ? (double)fit.ram_bytes
                  : fit.minimized == TL_MEASURE_FLASH ? (double)fit.flash_bytes : (double)fit.cost;
        printf("network %2d %s least %-5s %12.8g, rival %12.8g%s, gap %.4f, %d arenas\n", index, with_rows ? "rows" : "    ",
               tl_name_measure(fit.minimized), own.value, rival.value, rival.excess > 0 ? " above its limits" : "", fit.gap_ratio,
               (int)fit.arena_count);
        assert_false(beats(rival, own) && rival.value < own.value * (1 - 1e-9));
        *won += beats(own, rival);
    }
    tl_free_precision_fit(NULL, &fit);
    tl_free_graph(NULL, &p.graph);
}

static void networks_are_no_worse_than_a_rivals(void **state) {
    int index, count = scaled(6), choices = is_soaked() ? 10000 : 300;
    long won = 0;
    (void)state;
    for (index = 0; index < count && index < 60; index++) compare_with_rival(index * 3 % 60 + index / 20, 0, choices, &won);
    assert_true(won > 0);
}

static void networks_in_rows_are_no_worse_than_a_rivals(void **state) {
    int index, count = is_soaked() ? 32 : 3, choices = is_soaked() ? 1000 : 20;
    long won = 0;
    (void)state;
    for (index = 0; index < count; index++) compare_with_rival(is_soaked() ? index : 2 * index, 1, choices, &won);
    assert_true(won > 0);
}

// A chain of windows, with a skip now and then, whose rows may be cut.
static void make_row_net(tl_random *random, problem *p) {
    int32_t height = 8, at, skip, i, count = random_count(random, 2, 5), channels;
    net n;
    memset(&n, 0, sizeof n);
    n.streams = random_chance(random, 40);
    tl_init_graph(&n.graph);
    skip = at = add(&n, "input", -1, -1, height, 8 * 4, 0, 0, 0, 0);
    for (i = 0; i < count; i++) {
        int stride = height > 2 && random_chance(random, 30) ? 2 : 1;
        channels = random_count(random, 1, 8);
        if (i == count - 1 && stride == 1 && skip != at && random_chance(random, 50)) {
            uint64_t bytes = n.graph.outputs[n.graph.nodes[at].first_output].bytes;
            if (n.graph.outputs[n.graph.nodes[skip].first_output].bytes == bytes && !n.graph.nodes[skip].is_input) {
                at = add(&n, "add", at, skip, height, (int32_t)bytes / height, 1, 1, 0, 0);
                continue;
            }
        }
        skip = at;
        height /= stride;
        n.with_rows = i == 0 || random_chance(random, 70);
        at = add(&n, "conv2d", at, -1, height, 8 * channels * 4, stride > 1 || random_chance(random, 70) ? 3 : 1, stride, 9, channels);
        if (n.graph.nodes[at].inplace >= 0) fail_msg("in place");
    }
    p->graph = n.graph;
}

static void every_choice_in_rows_is_compared(void **state) {
    tl_random random = { 7402 };
    int round, rounds = scaled(60);
    long proven = 0, refused = 0, smaller = 0;
    int32_t k;
    (void)state;
    for (round = 0; round < rounds; round++) {
        static problem p;
        make_row_net(&random, &p);
        make_desc(&random, &p);
        p.desc.may_cut_rows = 1;
        for (k = 0; k < p.graph.node_count; k++) p.slots[k] = (uint8_t)random_chance(&random, 30);
        p.desc.in_slots = p.slots;
        smaller += place_in_rows(&p.graph, p.slots, 1) < place(&p.graph, 1);
        do make_schemes(&random, &p, 3);
        while (count_choices(&p) > 100);
        make_limits(&random, &p);
        compare(&p, &proven, &refused);
        tl_free_graph(NULL, &p.graph);
    }
    assert_true(proven + refused == rounds && (rounds < 20 || smaller > rounds / 4));
}

// -- what is refused, and what fails --

static void assert_refused(const tl_fit_desc *desc, tl_result code, const char *sentence) {
    tl_env env = silent_env();
    tl_precision_fit fit;
    memset(&fit, 0xff, sizeof fit);
    assert_int_equal(tl_fit_precision(&env, desc, &fit), code);
    assert_string_equal(env.error.text, sentence);
    assert_true(!fit.plan.memory && !fit.ram_bytes && !fit.proven);
}

static tl_graph small_graph(void) {
    return graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=400 needs=none in=- dies\n"
                    "node 1 a linear fwd=900 bwd=0 out=800 needs=none in=0 grad=no stored=4000:f32,80:f32\n"
                    "node 2 b linear fwd=900 bwd=0 out=40 needs=none in=1 grad=no stored=2000:f32,40:f32\nend 3\n");
}

static void broken_fields_are_refused(void **state) {
    tl_graph graph = small_graph();
    tl_fit_desc good, bad;
    const char *replaced = "tl_fit_precision: precision: training, criterion, objective, least_speedup, priorities and "
                           "evaluate must be 0";
    (void)state;
    memset(&good, 0, sizeof good);
    good.precision.graph = &graph;
    bad = good; bad.precision.training = 1;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, replaced);
    bad = good; bad.precision.criterion = TL_CRITERION_BALANCED;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, replaced);
    bad = good; bad.precision.objective = TL_OBJECTIVE_BYTES;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, replaced);
    bad = good; bad.precision.least_speedup = 2;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, replaced);
    bad = good; bad.precision.priorities[TL_SCHEME_I8] = 1;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, replaced);
    bad = good; bad.precision.round_limit = 1;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, replaced);
    bad = good; bad.precision.loss_limit = -1;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, "tl_fit_precision: loss_limit: must be >= 0 and a number");
    bad = good; bad.minimized = TL_MEASURE_COUNT;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, "tl_fit_precision: minimized: unknown");
    bad = good; bad.may_cut_rows = 2;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, "tl_fit_precision: may_cut_rows: must be 0 or 1");
    bad = good; bad.alignment_bytes = 3;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, "tl_fit_precision: alignment_bytes: must be 0 or a power of two");
    bad = good; bad.arena_limit = -1;
    assert_refused(&bad, TL_ERROR_INVALID_ARG, "tl_fit_precision: arena_limit: must be >= 0");
    tl_free_graph(NULL, &graph);
}

// Lossless is all in f32; what that takes more than the limits allow is said for each.
static void limits_that_nothing_meets_are_named(void **state) {
    tl_graph graph = small_graph();
    tl_env env = silent_env();
    tl_precision_fit fit;
    tl_fit_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.precision.graph = &graph;
    desc.flash_bytes = 6119;
    assert_refused(&desc, TL_ERROR_INFEASIBLE, "tl_fit_precision: ram_bytes: no choice was found within all limits; the "
                   "least of each within the others: ram none, flash 6120, loss 4.652e-8, cost none");
    desc.flash_bytes = 6120;
    desc.ram_bytes = 1199;
    assert_refused(&desc, TL_ERROR_INFEASIBLE, "tl_fit_precision: ram_bytes: no choice was found within all limits; the "
                   "least of each within the others: ram 1200, flash none, loss 9.304e-8, cost none");
    desc.ram_bytes = 1200;
    assert_int_equal(tl_fit_precision(&env, &desc, &fit), TL_OK);
    assert_true(fit.proven && fit.ram_bytes == 1200 && fit.flash_bytes == 6120 && fit.cost == 1800 && fit.loss <= 0);
    tl_free_precision_fit(NULL, &fit);
    tl_free_precision_fit(NULL, &fit);
    tl_free_precision_fit(NULL, NULL);
    tl_free_graph(NULL, &graph);
}

static int stop_at_once(int32_t arena_count, int32_t arena_limit, void *user) {
    assert_true(arena_count > 0 && arena_count <= arena_limit);
    ++*(int *)user;
    return 1;
}

// A search that is stopped has what it found; its bound stays one.
static void a_search_may_be_stopped(void **state) {
    tl_env env = silent_env();
    tl_precision_fit whole, first;
    static problem p;
    tl_random random = { 7403 };
    int calls = 0;
    (void)state;
    make_network(0, 0, &p);
    make_desc(&random, &p);
    make_network_schemes(&random, &p);
    p.desc.minimized = TL_MEASURE_RAM;
    p.desc.precision.loss_limit = 0.01;
    assert_int_equal(tl_fit_precision(&env, &p.desc, &whole), TL_OK);
    p.desc.progress = stop_at_once;
    p.desc.user = &calls;
    assert_int_equal(tl_fit_precision(&env, &p.desc, &first), TL_OK);
    assert_true(calls == 1 && first.arena_count == 1 && first.bound <= whole.ram_bytes && first.ram_bytes >= whole.ram_bytes);
    tl_free_precision_fit(NULL, &first);
    p.desc.progress = NULL;
    p.desc.arena_limit = 2;
    assert_int_equal(tl_fit_precision(&env, &p.desc, &first), TL_OK);
    assert_true(first.arena_count <= 2);
    tl_free_precision_fit(NULL, &first);
    tl_free_precision_fit(NULL, &whole);
    tl_free_graph(NULL, &p.graph);
}

static void every_failing_allocation_is_survived(void **state) {
    static problem p;
    tl_random random = { 7404 };
    int rows;
    (void)state;
    for (rows = 0; rows < 2; rows++) {
        tl_result result = TL_ERROR_NO_MEMORY;
        long at;
        make_row_net(&random, &p);
        make_desc(&random, &p);
        make_schemes(&random, &p, 2);
        p.desc.may_cut_rows = rows;
        p.desc.minimized = TL_MEASURE_RAM;
        p.desc.arena_limit = 3;
        for (at = 0; result; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            tl_precision_fit fit;
            result = tl_fit_precision(&env, &p.desc, &fit);
            if (result) {
                assert_int_equal(result, TL_ERROR_NO_MEMORY);
                assert_true(is_zero(&fit, sizeof fit));
                assert_non_null(strstr(env.error.text, "no memory"));
            }
            tl_free_precision_fit(&env, &fit);
            assert_int_equal(f.live, 0);
        }
        assert_true(at > 20);
        tl_free_graph(NULL, &p.graph);
    }
}

static void measures_have_names(void **state) {
    tl_measure measure = TL_MEASURE_COUNT;
    int k;
    (void)state;
    for (k = 0; k < TL_MEASURE_COUNT; k++) {
        assert_int_equal(tl_parse_measure(tl_name_measure((tl_measure)k), &measure), 1);
        assert_int_equal(measure, k);
    }
    assert_int_equal(tl_parse_measure("Flash", &measure), 0);
    assert_string_equal(tl_name_measure(TL_MEASURE_COUNT), "?");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_is_compared),
        cmocka_unit_test(every_choice_in_rows_is_compared),
        cmocka_unit_test(broken_fields_are_refused),
        cmocka_unit_test(limits_that_nothing_meets_are_named),
        cmocka_unit_test(a_search_may_be_stopped),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(measures_have_names),
        cmocka_unit_test(networks_are_no_worse_than_a_rivals),
        cmocka_unit_test(networks_in_rows_are_no_worse_than_a_rivals),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
