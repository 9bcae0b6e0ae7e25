// [6] REMAT: no answer contradicts another. Random graphs of 40 to 5000 nodes, each planned at 12 budgets from below the floor to
// keep-all, with every policy, and once more with a shared pool; every plan is replayed by the rules alone.
//
//     GRAPH=k        only graph k of each sweep, with a line for each call
//     FIRST=k        from graph k on
//     GRAPHS=n       up to graph n - 1, instead of as far as a sweep goes by itself
//     TL_EXPORT=DIR  graphs and plans of what broke, and of every tenth graph, with an index.csv for tests/replay_exported.py
#define _POSIX_C_SOURCE 199309L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/planner_graphs.h"
#include "support/replay.h"
#include "bench/timing.h"

typedef unsigned long long ull;

enum { BUDGETS = 12, KINDS = TL_POLICY_CHAIN + 1, CALLS = 2 * BUDGETS + 8 };

// What is counted. id, what it must be, text. A policy may take more work than a call is given, so no plan need be as cheap as
// that of a policy where little work is allowed.
enum { FIGURE, NEVER, NEVER_AT_DEFAULT_WORK, AIM };     // AIM: 0 is aimed at; independent calls know nothing of each other

#define COUNTERS(X) \
    X(GRAPHS, FIGURE, "graphs") \
    X(CALLS, FIGURE, "calls of the planner") \
    X(PLANS, FIGURE, "plans") \
    X(PROVEN, FIGURE, "plans proven optimal") \
    X(POLICIES, FIGURE, "plans of policies") \
    X(PAIRS, FIGURE, "pairs of independent plans of one graph") \
    X(INVALID, NEVER, "plans that the rules refuse, or whose figures are others") \
    X(OVER, NEVER, "plans over their budget") \
    X(ERRORS, NEVER, "other errors") \
    X(BOUND_ABOVE, NEVER, "bounds above a cost reached within that budget") \
    X(FLOOR_ABOVE, NEVER, "bounds of the least budget above a peak reached") \
    X(DEARER, NEVER_AT_DEFAULT_WORK, "dearer than a policy") \
    X(NO_PLAN, NEVER_AT_DEFAULT_WORK, "no plan where a policy has one") \
    X(DEARER_HOST, NEVER, "dearer with a host than without") \
    X(LEAST_LOST, NEVER, "no plan at the least budget found") \
    X(LEAST_OTHER, NEVER, "another least budget than that of the first call") \
    X(LEAST_ABOVE, AIM, "least budgets above a peak reached elsewhere") \
    X(BROKEN_PAIRS, AIM, "pairs of independent calls that break monotony") \
    X(OVERWORK, AIM, "calls that worked a tenth and a setting up above their limit") \
    X(POOL_CALLS, FIGURE, "calls with a shared pool") \
    X(POOL_DEARER, NEVER, "cost rose with the budget, or when asked again") \
    X(POOL_ALONE, FIGURE, "dearer with the pool than without") \
    X(POOL_LEAST, NEVER, "least budgets above a peak returned before")

#define COUNTER_ENUM(id, must, text) COUNT_##id,
#define COUNTER_MUST(id, must, text) must,
#define COUNTER_TEXT(id, must, text) text,
typedef enum counter { COUNTERS(COUNTER_ENUM) COUNTER_COUNT } counter;
static const int counter_must[] = { COUNTERS(COUNTER_MUST) };
static const char *const counter_texts[] = { COUNTERS(COUNTER_TEXT) };

typedef struct sweep {
    uint64_t seed, work_limit;
    int32_t  graph_count, largest;  // nodes of the largest graph
    int32_t  policy_every;          // policies at each n-th budget
    long     counts[COUNTER_COUNT], by_policy[KINDS], by_shape[COUNTER_COUNT][PLANNER_SHAPE_COUNT];
    double   ms, policy_ms, slowest_ms, worst_gap;
    uint64_t most_work;
    char     slowest[128], worst[128];
} sweep;

// An answer of the planner or of a policy.
typedef struct answer {
    tl_result result;
    uint64_t  budget, cost, bound, peak, least, floor;  // least, floor: of a refusal
} answer;

// One graph in one mode.
typedef struct question {
    sweep         *s;
    tl_graph       graph;
    planner_shape  shape;
    int32_t        index;
    uint8_t        shown[COUNTER_COUNT];
    int            inference, host, verbose, exports, export_count;
    tl_device      device;
    uint64_t       host_budget, keep_all;
    tl_remat_pool *pool;
    answer         answers[CALLS], rules[BUDGETS * KINDS];  // of the planner, of policies
    int            answer_count, rule_count;
} question;

// -- a pool that calls on one graph share --

static tl_remat_pool *pool_open(void) {
    tl_remat_pool *pool;
    assert_int_equal(tl_init_remat_pool(NULL, &pool), TL_OK);
    return pool;
}

// -- counting --

static void name_question(const question *q, char *text, size_t size) {
    snprintf(text, size, "graph %d, %s, %d nodes%s%s", (int)q->index, planner_shape_names[q->shape], (int)q->graph.node_count,
             q->inference ? ", inference" : "", q->host ? ", host" : "");
}

static void export_plan(question *q, const tl_plan *plan, uint64_t budget);

static void add_count(question *q, counter id) {
    q->s->counts[id]++;
    q->s->by_shape[id][q->shape]++;
}

// Count what must not be; the first of its kind in each graph is named.
static void add_fault(question *q, counter id, uint64_t budget, ull is, ull should) {
    char name[128];
    add_count(q, id);
    if (q->shown[id] && !q->verbose) return;
    q->shown[id] = 1;
    name_question(q, name, sizeof name);
    printf("    %s, budget %llu: %s (%llu, %llu)\n", name, (ull)budget, counter_texts[id], is, should);
    export_plan(q, NULL, budget);
}

// -- export --

static FILE *export_file(const char *name, const char *mode) {
    char path[1024];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", getenv("TL_EXPORT"), name);
    file = fopen(path, mode);
    if (!file) fail_msg("cannot write %s", path);
    return file;
}

static void export_text(const question *q, const char *name, const tl_plan *plan) {
    size_t size = plan ? tl_print_schedule(plan, NULL, 0) : tl_print_graph(&q->graph, NULL, 0);
    char *text = (char *)malloc(size + 1);
    FILE *file = export_file(name, "w");
    assert_non_null(text);
    if (plan) tl_print_schedule(plan, text, size + 1);
    else tl_print_graph(&q->graph, text, size + 1);
    fwrite(text, 1, size, file);
    fclose(file);
    free(text);
}

// The graph, and a plan with what it should be replayed to; without a plan the graph alone.
static void export_plan(question *q, const tl_plan *plan, uint64_t budget) {
    char name[128];
    FILE *index;
    if (!getenv("TL_EXPORT")) return;
    snprintf(name, sizeof name, "g%llu_%d.tlg", (ull)q->s->seed, (int)q->index);
    export_text(q, name, NULL);
    if (!plan) return;
    snprintf(name, sizeof name, "g%llu_%d_%d.sched", (ull)q->s->seed, (int)q->index, q->export_count++);
    export_text(q, name, plan);
    index = export_file("index.csv", "a");
    fprintf(index, "g%llu_%d.tlg,%s,%d,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n", (ull)q->s->seed, (int)q->index, name, q->inference,
            (ull)budget, (ull)(q->host ? q->host_budget : 0), (ull)q->device.link_bytes_per_second, (ull)q->device.link_latency_ns,
            (ull)plan->peak_bytes, (ull)plan->host_peak_bytes, (ull)plan->cost);
    fclose(index);
}

// -- one answer --

static void check_plan(question *q, const tl_plan *plan, uint64_t budget) {
    replay r;
    int valid = replay_plan(&q->graph, plan, q->host ? &q->device : NULL, &r);
    if (!valid) printf("    step %d: %s\n", (int)r.step, r.broken);
    if (!valid || r.peak != plan->peak_bytes || r.host_peak != plan->host_peak_bytes || r.cost != plan->cost) {
        add_fault(q, COUNT_INVALID, budget, (ull)r.cost, (ull)plan->cost);
        export_plan(q, plan, budget);
    }
    if (r.peak > budget || (q->host && r.host_peak > q->host_budget) || (!q->host && r.host_peak))
        add_fault(q, COUNT_OVER, budget, (ull)r.peak, (ull)r.host_peak);
    if (q->exports) export_plan(q, plan, budget);
}

static void note_time(question *q, double ms, uint64_t budget, const tl_remat_report *report) {
    sweep *s = q->s;
    char name[100];
    name_question(q, name, sizeof name);
    s->ms += ms;
    if (ms > s->slowest_ms) { s->slowest_ms = ms; snprintf(s->slowest, sizeof s->slowest, "%s, budget %llu", name, (ull)budget); }
    if (report->work > s->most_work) s->most_work = report->work;
    if (report->gap_ratio > s->worst_gap) {
        s->worst_gap = report->gap_ratio;
        snprintf(s->worst, sizeof s->worst, "%s, budget %llu", name, (ull)budget);
    }
    if (s->work_limit && report->work > s->work_limit + s->work_limit / 10 + 1000000 + 1000 * (uint64_t)q->graph.node_count)
        add_fault(q, COUNT_OVERWORK, budget, (ull)report->work, (ull)s->work_limit);
    if (q->verbose)
        printf("  budget %12llu cost %12llu bound %12llu least %12llu floor %12llu work %10llu %8.1f ms%s\n", (ull)budget,
               (ull)report->cost, (ull)report->bound_cost, (ull)report->least_budget_bytes, (ull)report->bound_budget_bytes,
               (ull)report->work, ms, q->pool ? " (pool)" : "");
}

static answer ask_planner(question *q, uint64_t budget) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_env env = silent_env();
    answer a;
    double start = processor_ms();
    memset(&desc, 0, sizeof desc);
    memset(&a, 0, sizeof a);
    desc.graph = &q->graph;
    desc.live = 1;
    desc.budget_bytes = a.budget = budget;
    desc.inference = q->inference;
    desc.work_limit = q->s->work_limit;
    if (q->host) { desc.device = &q->device; desc.host_budget_bytes = q->host_budget; }
    desc.pool = q->pool;
    a.result = tl_plan_remat(&env, &desc, &plan, &report);
    note_time(q, processor_ms() - start, budget, &report);
    add_count(q, q->pool ? COUNT_POOL_CALLS : COUNT_CALLS);
    if (a.result == TL_ERROR_INFEASIBLE) {
        a.least = report.least_budget_bytes;
        a.floor = report.bound_budget_bytes;
        if (a.least <= budget || a.floor > a.least) add_fault(q, COUNT_LEAST_LOST, budget, (ull)a.least, (ull)a.floor);
    } else if (a.result) {
        add_fault(q, COUNT_ERRORS, budget, (ull)a.result, 0);
        printf("    %s\n", env.error.text);
    } else {
        a.cost = plan.cost;
        a.peak = plan.peak_bytes;
        a.bound = report.bound_cost;
        add_count(q, COUNT_PLANS);
        if (report.proven) add_count(q, COUNT_PROVEN);
        check_plan(q, &plan, budget);
    }
    tl_free_plan(&env, &plan);
    return a;
}

static void ask_policies(question *q, uint64_t budget) {
    double start = processor_ms();
    int k;
    for (k = 0; k < KINDS; k++) {
        tl_policy_desc desc;
        tl_env env = silent_env();
        tl_plan plan;
        answer a;
        memset(&desc, 0, sizeof desc);
        memset(&a, 0, sizeof a);
        if (q->inference && k != TL_POLICY_KEEP_ALL) continue;
        desc.graph = &q->graph;
        desc.live = 1;
        desc.policy.kind = (tl_policy_kind)k;
        desc.budget_bytes = a.budget = budget;
        desc.inference = q->inference;
        a.result = tl_plan_policy(&env, &desc, &plan);
        if (!a.result) {
            a.cost = plan.cost;
            a.peak = plan.peak_bytes;
            add_count(q, COUNT_POLICIES);
            check_plan(q, &plan, budget);
        } else if (a.result == TL_ERROR_OVERFLOW) {
            a.result = TL_ERROR_INFEASIBLE;     // a cost that does not fit is no plan
        } else if (a.result != TL_ERROR_INFEASIBLE) {
            add_fault(q, COUNT_ERRORS, budget, (ull)a.result, (ull)k);
        }
        a.bound = (uint64_t)k;
        q->rules[q->rule_count++] = a;
        tl_free_plan(&env, &plan);
    }
    q->s->policy_ms += processor_ms() - start;
}

// -- answers beside each other --

static void compare_policies(question *q, const answer *a) {
    int k, lost = 0;
    for (k = 0; k < q->rule_count; k++) {
        const answer *rule = &q->rules[k];
        if (rule->result || rule->peak > a->budget) continue;
        if (a->result == TL_ERROR_INFEASIBLE) {
            if (!lost++) add_fault(q, COUNT_NO_PLAN, a->budget, (ull)rule->peak, (ull)rule->bound);
        } else if (rule->cost < a->cost) {
            q->s->by_policy[rule->bound]++;
            if (!lost++) add_fault(q, COUNT_DEARER, a->budget, (ull)a->cost, (ull)rule->cost);
        }
        if (!a->result && a->bound > rule->cost) add_fault(q, COUNT_BOUND_ABOVE, a->budget, (ull)a->bound, (ull)rule->cost);
    }
}

// The lowest peak that anybody reached.
static uint64_t lowest_peak(const question *q) {
    uint64_t lowest = q->keep_all;
    int k;
    for (k = 0; k < q->answer_count; k++)
        if (!q->answers[k].result && q->answers[k].peak < lowest) lowest = q->answers[k].peak;
    for (k = 0; k < q->rule_count; k++)
        if (!q->rules[k].result && q->rules[k].peak < lowest) lowest = q->rules[k].peak;
    return lowest;
}

static void compare_refusal(question *q, const answer *a, uint64_t least, uint64_t lowest) {
    if (a->least != least) add_fault(q, COUNT_LEAST_OTHER, a->budget, (ull)a->least, (ull)least);
    if (a->least > lowest) add_fault(q, COUNT_LEAST_ABOVE, a->budget, (ull)a->least, (ull)lowest);
    if (a->floor > lowest) add_fault(q, COUNT_FLOOR_ABOVE, a->budget, (ull)a->floor, (ull)lowest);
}

// Two independent answers, a at the smaller budget.
static void compare_pair(question *q, const answer *a, const answer *b) {
    if (a->result) return;
    add_count(q, COUNT_PAIRS);
    if (b->result || b->cost > a->cost) add_fault(q, COUNT_BROKEN_PAIRS, b->budget, (ull)b->cost, (ull)a->cost);
    if (!b->result && b->bound > a->cost) add_fault(q, COUNT_BOUND_ABOVE, b->budget, (ull)b->bound, (ull)a->cost);
}

static void compare_answers(question *q, uint64_t least) {
    uint64_t lowest = lowest_peak(q);
    int i, k;
    for (i = 0; i < q->answer_count; i++) {
        const answer *a = &q->answers[i];
        compare_policies(q, a);
        if (a->result == TL_ERROR_INFEASIBLE) compare_refusal(q, a, least, lowest);
        if (a->result == TL_ERROR_INFEASIBLE && a->budget == least)
            add_fault(q, COUNT_LEAST_LOST, least, (ull)a->least, (ull)least);
        for (k = 0; k < i; k++) compare_pair(q, &q->answers[k], a);
    }
}

// Calls that share a pool, in rising order of budgets, then some of them again.
static void check_pool(question *q, const uint64_t *budgets) {
    answer before[CALLS];
    int i, k, count = 0;
    q->pool = pool_open();
    for (i = 0; i < BUDGETS + 4; i++) {
        int asked = i < BUDGETS ? i : (i - BUDGETS) * BUDGETS / 4;
        answer a = ask_planner(q, budgets[asked]);
        for (k = 0; k < count; k++) {
            const answer *b = &before[k];
            if (b->result) continue;
            if (a.result == TL_ERROR_INFEASIBLE && a.least > b->peak)
                add_fault(q, COUNT_POOL_LEAST, a.budget, (ull)a.least, (ull)b->peak);
            if (b->budget <= a.budget && (a.result || a.cost > b->cost))
                add_fault(q, COUNT_POOL_DEARER, a.budget, (ull)a.cost, (ull)b->cost);
            if (!a.result && b->budget <= a.budget && a.bound > b->cost)
                add_fault(q, COUNT_BOUND_ABOVE, a.budget, (ull)a.bound, (ull)b->cost);
        }
        for (k = 0; k < q->answer_count; k++)
            if (q->answers[k].budget == a.budget && !q->answers[k].result && (a.result || a.cost > q->answers[k].cost))
                add_fault(q, COUNT_POOL_ALONE, a.budget, (ull)a.cost, (ull)q->answers[k].cost);
        compare_policies(q, &a);
        before[count++] = a;
    }
    tl_free_remat_pool(q->pool);
    q->pool = NULL;
}

// A host adds plans and takes none away.
static void check_host(question *q, const uint64_t *budgets) {
    int i;
    for (i = 1; i < BUDGETS; i += 5) {
        answer with = q->answers[1 + i], without;
        q->host = 0;
        without = ask_planner(q, budgets[i]);
        q->host = 1;
        if (!without.result && (with.result || with.cost > without.cost))
            add_fault(q, COUNT_DEARER_HOST, budgets[i], (ull)with.cost, (ull)without.cost);
        if (!without.result && !with.result && with.bound > without.cost)
            add_fault(q, COUNT_BOUND_ABOVE, budgets[i], (ull)with.bound, (ull)without.cost);
    }
}

// From below the floor to keep-all; least and floor are what the first call names.
static void choose_budgets(const question *q, const answer *first, uint64_t *budgets) {
    static const uint64_t permille[] = { 0, 10, 30, 80, 150, 250, 400, 700, 1000 };
    uint64_t span = q->keep_all > first->least ? q->keep_all - first->least : 0;
    size_t k;
    budgets[0] = first->floor / 2 + 1;
    budgets[1] = first->floor > 1 ? first->floor - 1 : 1;
    budgets[2] = first->floor + (first->least - first->floor) / 2;
    for (k = 0; k < sizeof permille / sizeof permille[0]; k++)
        budgets[3 + k] = first->least + span / 1000 * permille[k] + span % 1000 * permille[k] / 1000;
}

static void check_graph(question *q) {
    uint64_t budgets[BUDGETS];
    tl_plan all;
    answer first;
    int i;
    assert_int_equal(tl_plan_keep_all(NULL, &q->graph, q->inference, &all), TL_OK);
    q->keep_all = all.peak_bytes;
    q->host_budget = q->keep_all / 4;
    tl_free_plan(NULL, &all);
    add_count(q, COUNT_GRAPHS);
    first = ask_planner(q, 1);
    if (first.result != TL_ERROR_INFEASIBLE) { add_fault(q, COUNT_ERRORS, 1, (ull)first.result, 0); return; }
    choose_budgets(q, &first, budgets);
    q->answers[q->answer_count++] = first;
    for (i = 0; i < BUDGETS; i++) {
        if ((i + q->index) % q->s->policy_every == 0) ask_policies(q, budgets[i]);
        q->answers[q->answer_count++] = ask_planner(q, budgets[i]);
    }
    compare_answers(q, first.least);
    check_pool(q, budgets);
    if (q->host) check_host(q, budgets);
}

// -- sweeps --

static void run_graph(sweep *s, int32_t index, int verbose) {
    static question q;
    tl_random random;
    int32_t size;
    memset(&q, 0, sizeof q);
    random.state = s->seed * 1000003 + (uint64_t)index;
    q.s = s;
    q.index = index;
    q.verbose = verbose;
    q.exports = index % 10 == 0;
    q.shape = (planner_shape)(index % PLANNER_SHAPE_COUNT);
    q.inference = index / PLANNER_SHAPE_COUNT % 4 == 2;         // of four graphs of a shape, one
    q.host = index / PLANNER_SHAPE_COUNT % 8 == 1 || index / PLANNER_SHAPE_COUNT % 16 == 6;     // training, inference
#ifdef TL_NO_OFFLOAD
    q.host = 0;
#endif
    q.device.link_bytes_per_second = UINT64_C(1000000000) * (uint64_t)random_count(&random, 1, 32);
    q.device.link_latency_ns = (uint64_t)random_count(&random, 0, 1000);
    size = planner_size(&random);
    if (size > s->largest) size = PLANNER_LEAST + size % (s->largest - PLANNER_LEAST + 1);
    assert_int_equal(planner_graph(NULL, &random, q.shape, size, &q.graph), TL_OK);
    assert_int_equal(tl_check_graph(NULL, &q.graph), TL_OK);
    check_graph(&q);
    tl_free_graph(NULL, &q.graph);
}

static int is_broken(const sweep *s, int id) {
    return s->counts[id] && (counter_must[id] == NEVER || (counter_must[id] == NEVER_AT_DEFAULT_WORK && !s->work_limit));
}

static void print_counts(const sweep *s) {
    int i, k;
    printf("\n%-61s %8s", s->work_limit ? "" : "default work", "all");
    for (k = 0; k < PLANNER_SHAPE_COUNT; k++) printf(" %13s", planner_shape_names[k]);
    printf("\n");
    for (i = 0; i < COUNTER_COUNT; i++) {
        printf("%-61s %8ld", counter_texts[i], s->counts[i]);
        for (k = 0; k < PLANNER_SHAPE_COUNT; k++) printf(" %13ld", s->by_shape[i][k]);
        printf("%s\n", is_broken(s, i) ? "   must be 0" : counter_must[i] && s->counts[i] ? "   aim: 0" : "");
    }
    for (i = 0; i < KINDS; i++)
        if (s->by_policy[i]) printf("cheaper policies: %-12s %5ld\n", tl_name_policy((tl_policy_kind)i), s->by_policy[i]);
    printf("%.1f s of planning, %.1f s of policies; at most %.0f ms (%s) and %.0f million steps; largest gap %.2f %% (%s)\n\n",
           s->ms / 1000, s->policy_ms / 1000, s->slowest_ms, s->slowest, (double)s->most_work / 1e6, 100 * s->worst_gap, s->worst);
}

static void run_sweep(sweep *s) {
    const char *one = getenv("GRAPH"), *many = getenv("GRAPHS"), *first = getenv("FIRST");
    int32_t i = first ? (int32_t)strtol(first, NULL, 10) : 0;
    int broken = 0;
    if (many) s->graph_count = (int32_t)strtol(many, NULL, 10);
    if (one) run_graph(s, (int32_t)strtol(one, NULL, 10), 1);
    else for (; i < s->graph_count; i += thinned()) run_graph(s, i, 0);
    print_counts(s);
    for (i = 0; i < COUNTER_COUNT; i++) broken |= is_broken(s, i);
    assert_false(broken);
}

// About 20 ms of work for each call in a long run, a tenth of that otherwise.
static void no_answer_contradicts_another_at_little_work(void **state) {
    static sweep s;
    (void)state;
    memset(&s, 0, sizeof s);
    s.seed = 1;
    s.work_limit = is_soaked() ? 8000000 : 800000;
    s.graph_count = 40 * soaked();
    s.largest = is_soaked() ? PLANNER_MOST : 1000;
    s.policy_every = is_soaked() ? 4 : BUDGETS;
    run_sweep(&s);
}

// Where walks are thinned, default work takes minutes for each graph: a part of it then.
static void no_answer_contradicts_another_at_default_work(void **state) {
    static sweep s;
    (void)state;
    memset(&s, 0, sizeof s);
    s.seed = 2;
    s.work_limit = is_thinned() ? 20000000 : 0;
    s.graph_count = 4 * soaked();
    s.largest = is_soaked() ? PLANNER_MOST : 60;
    s.policy_every = 2;
    run_sweep(&s);
}

// The replay that judges the plans refuses what breaks a rule.
static void the_replay_refuses_broken_plans(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\nnode 1 a conv fwd=3 bwd=5 out=8 needs=in in=0 saved=2 fwork=1\n"
        "node 2 b relu fwd=1 bwd=1 out=8 needs=out in=1 inplace=0\nnode 3 c conv fwd=2 bwd=4 out=2 needs=in in=2\n";
    static const struct { const char *steps; int valid; uint64_t peak, cost; } rows[] = {
        { "S 1\nI 2\nF 3\nB 3\nB 2\nB 1\n", 1, 32, 16 },
        { "S 1\nF 2\nF 3\nB 3\nB 2\nB 1\n", 1, 40, 16 },
        { "F 1\nI 2\nF 3\nB 3\nB 2\nS 1\nB 1\n", 1, 33, 19 },
        { "F 1\nI 2\nF 3\nB 3\nB 2\nB 1\n", 0, 0, 0 },          // saved bytes
        { "S 1\nI 2\nF 3\nB 3\nB 1\nB 2\n", 0, 0, 0 },          // order
        { "S 1\nI 2\nF 3\nB 3\nB 2\n", 0, 0, 0 },               // a backward is missing
        { "S 1\nI 2\nF 3\nD 2\nB 3\nB 2\nB 1\n", 0, 0, 0 },     // input of c
        { "S 1\nS 1\n", 0, 0, 0 }, { "F 2\n", 0, 0, 0 }, { "F 0\n", 0, 0, 0 }, { "D 1\n", 0, 0, 0 }, { "L 1\n", 0, 0, 0 },
        { "S 1\nF 2\nF 3\nO 1\nW 1\nB 3\nB 2\nL 1\nW 1\nDH 1\nB 1\n", 1, 32, 16 },
    };
    tl_graph graph;
    size_t k;
    (void)state;
    assert_int_equal(tl_parse_graph(NULL, text, sizeof text - 1, &graph), TL_OK);
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        tl_plan plan;
        replay r;
        assert_int_equal(tl_parse_schedule(NULL, rows[k].steps, strlen(rows[k].steps), &plan), TL_OK);
        if (replay_plan(&graph, &plan, NULL, &r) != rows[k].valid) fail_msg("row %d: %s", (int)k, r.broken ? r.broken : "valid");
        if (rows[k].valid && (r.peak != rows[k].peak || r.cost != rows[k].cost))
            fail_msg("row %d: peak %llu, cost %llu", (int)k, (ull)r.peak, (ull)r.cost);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_replay_refuses_broken_plans),
        cmocka_unit_test(no_answer_contradicts_another_at_little_work),
        cmocka_unit_test(no_answer_contradicts_another_at_default_work),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
