// [6] REMAT, plans of the form once: a set of kept items determines them, and no set gives a cheaper one.
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


static tl_remat_desc desc_of(const tl_graph *graph, uint64_t budget, tl_remat_form form, uint64_t work) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.form = form;
    desc.work_limit = work;
    return desc;
}

// Whether a plan has the form: forwards in listing order, once each, then backwards, with one more forward at most.
static int is_once(const tl_graph *graph, const tl_plan *plan) {
    int *runs = (int *)calloc((size_t)graph->node_count, sizeof *runs), ok = 1, is_first = 1;
    int32_t i, last = -1;
    for (i = 0; i < plan->step_count && ok; i++) {
        int32_t node = plan->steps[i].node;
        int kind = plan->steps[i].kind;
        if (kind == TL_STEP_DROP || kind == TL_STEP_DROP_SAVED || kind == TL_STEP_BACKWARD) continue;
        is_first &= node > last;            // the first pass ends where a node comes that is not behind the one before
        if (is_first) last = node;
        if (kind != TL_STEP_FORWARD && kind != TL_STEP_FORWARD_SAVE) ok = 0;
        if (++runs[node] > 1 + !is_first || (!is_first && runs[node] == 1)) ok = 0;
    }
    free(runs);
    return ok;
}

static tl_result plan_checked(const tl_remat_desc *desc, tl_env *env, tl_plan *plan, tl_remat_report *report) {
    tl_simulate_desc replay;
    tl_report simulated;
    tl_result result;
    memset(env, 0, sizeof *env);
    result = tl_plan_remat(env, desc, plan, report);
    if (result) {
        assert_true(is_zero(plan, sizeof *plan));
        assert_int_equal(env->error.code, result);
    }
    if (result == TL_ERROR_INFEASIBLE) {
        assert_true(report->least_budget_bytes > desc->budget_bytes);
        assert_true(report->bound_budget_bytes <= report->least_budget_bytes);
    }
    if (result) return result;
    memset(&replay, 0, sizeof replay);
    replay.graph = desc->graph;
    replay.plan = plan;
    if (tl_simulate_plan(NULL, &replay, &simulated)) fail_msg("%s", "the plan is not valid");
    assert_int_equal(plan->peak_bytes, simulated.peak_bytes);
    assert_int_equal(plan->cost, simulated.cost);
    assert_true(plan->peak_bytes + plan->base_bytes <= desc->budget_bytes);
    assert_true(report->bound_cost <= report->cost);
    assert_int_equal(report->proven, report->cost == report->bound_cost);
    assert_true(desc->inference || is_once(desc->graph, plan));
    return result;
}

// -- brute force: every kept set, by the definition, with a simulation of its own --

typedef struct brute_once {
    const tl_graph *graph;
    int bits, items, item_of[64], here[64], copy[64], again[32], runs[32];
    int made[64][2], used[64][2], calls[96], kinds[96], count, first;  // of the first and the second copy
    uint64_t bytes[64];
} brute_once;

static int has_grad(const brute_once *b, int v) { return b->graph->nodes[v].has_grad; }

static void begin_brute(brute_once *b, const tl_graph *g) {
    int v, k, read[64] = { 0 };
    memset(b, 0, sizeof *b);
    b->graph = g;
    b->items = g->tensor_count + g->node_count;
    for (v = g->node_count; v-- > 0;) {
        const tl_node *n = &g->nodes[v];
        b->runs[v] |= !n->is_input && (n->has_grad || n->keep);
        if (n->is_input) b->runs[v] = 0;
        for (k = n->first_input; k < n->first_input + n->input_count; k++) {
            if (b->runs[v]) b->runs[g->outputs[g->inputs[k].tensor].node] = 1;
            if (b->runs[v]) read[g->inputs[k].tensor] = 1;
        }
        for (k = n->first_output; k < n->first_output + n->output_count; k++) {
            b->bytes[k] = g->outputs[k].bytes;
            if (b->runs[v] && !n->keep && !n->once && (read[k] || g->outputs[k].needed)) b->item_of[b->bits++] = k;
        }
        b->bytes[g->tensor_count + v] = n->saved_bytes;
        if (n->has_grad && n->saved_bytes && !n->once) b->item_of[b->bits++] = g->tensor_count + v;
    }
}

static void use_item(brute_once *b, int item) { b->used[item][b->copy[item]] = b->count; }

static void make_item(brute_once *b, int item) {
    b->made[item][b->copy[item]] = b->count;
    b->used[item][b->copy[item]] = b->count;
    b->here[item] = 1;
}

// kind: 0 first forward, 1 again, 2 backward; + 4 = makes saved bytes.
static void call(brute_once *b, int v, int kind, const char *keep) {
    const tl_graph *g = b->graph;
    const tl_node *n = &g->nodes[v];
    int k;
    for (k = n->first_input; k < n->first_input + n->input_count; k++)
        if (kind % 4 < 2 || g->inputs[k].needed) use_item(b, g->inputs[k].tensor);
    for (k = n->first_output; k < n->first_output + n->output_count; k++) {
        if (kind % 4 == 2) { if (g->outputs[k].needed) use_item(b, k); }
        else if (!(kind % 4) || !keep[k]) { if (kind % 4) b->copy[k] = 1; make_item(b, k); }
    }
    if (kind & 4) { if (kind % 4) b->copy[g->tensor_count + v] = 1; make_item(b, g->tensor_count + v); }
    if (kind % 4 == 2 && n->saved_bytes) use_item(b, g->tensor_count + v);
    b->calls[b->count] = v;
    b->kinds[b->count++] = kind;
}

static void run_again(brute_once *b, int v, const char *keep) {
    const tl_graph *g = b->graph;
    const tl_node *n = &g->nodes[v];
    int k, saves = has_grad(b, v) && n->saved_bytes && !b->here[g->tensor_count + v];
    if (b->again[v]) return;
    b->again[v] = 1;
    for (k = n->first_input; k < n->first_input + n->input_count; k++)
        if (!b->here[g->inputs[k].tensor]) run_again(b, g->outputs[g->inputs[k].tensor].node, keep);
    call(b, v, saves ? 5 : 1, keep);
}

// Cost and peak of the plan of a set of bits.
static uint64_t weigh_set(brute_once *b, uint64_t set, uint64_t *peak) {
    const tl_graph *g = b->graph;
    char keep[64] = { 0 }, live_gradient[64] = { 0 };
    uint64_t cost = 0, gradients = 0;
    int v, k, at, item;
    memset(b->copy, 0, sizeof b->copy);
    memset(b->again, 0, sizeof b->again);
    memset(b->made, -1, sizeof b->made);
    memset(b->used, -1, sizeof b->used);
    b->count = 0;
    for (k = 0; k < b->bits; k++) keep[b->item_of[k]] = set >> k & 1;
    for (k = 0; k < g->tensor_count; k++) keep[k] |= g->nodes[g->outputs[k].node].keep | g->nodes[g->outputs[k].node].once;
    for (v = 0; v < g->node_count; v++) keep[g->tensor_count + v] |= g->nodes[v].once && g->nodes[v].saved_bytes;
    for (k = 0; k < b->items; k++) b->here[k] = k < g->tensor_count && g->nodes[g->outputs[k].node].is_input;
    for (v = 0; v < g->node_count; v++)
        if (b->runs[v]) call(b, v, g->nodes[v].has_grad && keep[g->tensor_count + v] && g->nodes[v].saved_bytes ? 4 : 0, keep);
    for (k = 0; k < b->items; k++)
        if (!keep[k] && !(k < g->tensor_count && g->nodes[g->outputs[k].node].is_input)) b->here[k] = 0;
    for (v = g->node_count; v-- > 0;) {
        const tl_node *n = &g->nodes[v];
        int missing = n->saved_bytes && !b->here[g->tensor_count + v];
        if (!has_grad(b, v)) continue;
        for (k = n->first_output; k < n->first_output + n->output_count; k++) missing |= g->outputs[k].needed && !b->here[k];
        for (k = n->first_input; k < n->first_input + n->input_count; k++)
            if (g->inputs[k].needed && !b->here[g->inputs[k].tensor]) run_again(b, g->outputs[g->inputs[k].tensor].node, keep);
        if (missing) run_again(b, v, keep);
        call(b, v, 2, keep);
    }
    for (k = 0; k < g->tensor_count; k++) if (g->nodes[g->outputs[k].node].keep) b->used[k][0] = b->count;
    for (k = 0, *peak = 0; k < g->tensor_count; k++) if (g->nodes[g->outputs[k].node].is_input) *peak += b->bytes[k];
    for (at = 0; at < b->count; at++) {
        const tl_node *n = &g->nodes[v = b->calls[at]];
        int kind = b->kinds[at] % 4, are_here = b->kinds[at] == 5;
        uint64_t sum = 0;
        for (item = 0; item < b->items; item++) {
            if (item < g->tensor_count && g->nodes[g->outputs[item].node].is_input) { sum += b->bytes[item]; continue; }
            for (k = 0; k < 2; k++) if (b->made[item][k] >= 0 && b->made[item][k] <= at && b->used[item][k] >= at) sum += b->bytes[item];
        }
        for (k = n->first_output; k < n->first_output + n->output_count; k++) are_here &= keep[k] && b->used[k][0] > at;
        for (k = n->first_output; k < n->first_output + n->output_count; k++)
            if (kind == 1 && keep[k] && !are_here) sum += b->bytes[k];  // made again beside the copy that stays
        for (k = n->first_output; k < n->first_output + n->output_count && kind == 2; k++)
            if (!live_gradient[k]) { live_gradient[k] = 1; gradients += b->bytes[k]; }
        for (k = n->first_input; k < n->first_input + n->input_count && kind == 2; k++) {
            int t = g->inputs[k].tensor;
            if (!live_gradient[t] && has_grad(b, g->outputs[t].node)) { live_gradient[t] = 1; gradients += b->bytes[t]; }
        }
        sum += gradients + (kind == 2 ? n->bwork_bytes : b->kinds[at] & 4 ? n->swork_bytes : n->fwork_bytes);
        cost += kind == 2 ? n->bwd_cost : n->fwd_cost;
        if (sum > *peak) *peak = sum;
        for (k = n->first_output; k < n->first_output + n->output_count && kind == 2; k++) gradients -= b->bytes[k];
    }
    return cost;
}

// The least cost within a budget; UINT64_MAX = nothing fits. *least: the least peak.
static uint64_t brute_force(brute_once *b, uint64_t budget, uint64_t *least) {
    uint64_t set, best = UINT64_MAX, peak, cost;
    *least = UINT64_MAX;
    for (set = 0; set < (uint64_t)1 << b->bits; set++) {
        cost = weigh_set(b, set, &peak);
        if (peak < *least) *least = peak;
        if (peak <= budget && cost < best) best = cost;
    }
    return best;
}

static void every_set_of_small_graphs_is_compared(void **state) {
    tl_random random = { 71 };
    int times = scaled(600), i, proven = 0, fits = 0, dearer = 0;
    (void)state;
    for (i = 0; i < times; i++) {
        tl_graph graph;
        tl_plan all, plan, any;
        tl_remat_report report, general;
        tl_remat_desc desc;
        brute_once b;
        tl_env env;
        tl_result result;
        uint64_t least, cost;
        if (random_effect_graph(NULL, &random, 3 + i % 6, i % 3 * 20, &graph) || tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no graph");
        begin_brute(&b, &graph);
        if (graph.node_count > 9 || b.bits > 13) { tl_free_plan(NULL, &all); tl_free_graph(NULL, &graph); continue; }
        desc = desc_of(&graph, 1 + all.peak_bytes * (uint64_t)random_count(&random, 3, 10) / 10, TL_REMAT_FORM_ONCE, 0);
        result = plan_checked(&desc, &env, &plan, &report);
        cost = brute_force(&b, desc.budget_bytes, &least);
        if (result) {
            if (result != TL_ERROR_INFEASIBLE || cost != UINT64_MAX) fail_msg("graph %d: %s", i, env.error.text);
            assert_true(report.proven);
            assert_int_equal(report.least_budget_bytes, least);
            desc.budget_bytes = least;
            assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
            cost = brute_force(&b, least, &least);
        }
        if (plan.cost != cost) fail_msg("graph %d: cost %d, of all sets %d", i, (int)plan.cost, (int)cost);
        assert_true(report.proven && report.bound_cost == cost);
        desc.form = TL_REMAT_FORM_ANY;
        desc.work_limit = 3000000;
        if (tl_plan_remat(&env, &desc, &any, &general)) fail_msg("%s", env.error.text);
        assert_true(general.bound_cost <= cost);
        dearer += cost > any.cost;
        proven += report.proven;
        fits++;
        tl_free_plan(&env, &plan);
        tl_free_plan(&env, &any);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d of %d graphs, %d proven, in %d of them another form is cheaper\n", fits, times, proven, dearer);
    assert_true(is_thinned() || (fits * 2 > times && dearer > 0));
}

// A chain of so many layers behind an input.
static void chain_of(tl_random *random, int32_t layers, tl_graph *graph) {
    int32_t i;
    tl_init_graph(graph);
    for (i = 0; i <= layers; i++) {
        tl_tensor input = { i - 1, 0 };
        uint64_t bytes = 64 * (uint64_t)random_count(random, 1, 64);
        tl_node_desc node;
        memset(&node, 0, sizeof node);
        node.op = i ? "layer" : "input";
        node.needs = i ? "in" : "none";
        node.output_bytes = &bytes;
        node.output_count = 1;
        node.inputs = &input;
        node.input_count = i > 0;
        node.fwd_cost = node.bwd_cost = i ? (uint64_t)random_count(random, 1, 100) : 0;
        assert_int_equal(tl_add_node(NULL, graph, &node, NULL), TL_OK);
    }
}

// As many items as are tried in all combinations, and some more or less: what is called proven is the best of all sets.
static void chains_about_the_limit_of_all_sets_are_compared(void **state) {
    tl_random random = { 73 };
    int32_t layers, tenths, proven = 0;
    (void)state;
    for (layers = 18; layers <= (is_slow() ? 18 : 20 - is_thinned()); layers++)
        for (tenths = 10; tenths >= (is_slow() ? 10 : 7); tenths -= 3) {
            tl_graph graph;
            tl_plan all, plan;
            tl_remat_report report;
            tl_remat_desc desc;
            brute_once b;
            tl_env env;
            tl_result result;
            uint64_t least, cost;
            chain_of(&random, layers, &graph);
            assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &all), TL_OK);
            begin_brute(&b, &graph);
            desc = desc_of(&graph, all.peak_bytes * (uint64_t)tenths / 10 - 1, TL_REMAT_FORM_ONCE, UINT64_C(4000000000));
            result = plan_checked(&desc, &env, &plan, &report);
            cost = brute_force(&b, desc.budget_bytes, &least);
            if (result) fail_msg("%s", env.error.text);
            assert_true(report.bound_cost <= cost && cost <= plan.cost);
            assert_true(!report.proven || plan.cost == cost);
            proven += report.proven;
            tl_free_plan(&env, &plan);
            tl_free_plan(NULL, &all);
            tl_free_graph(NULL, &graph);
        }
    print_message("%d proven\n", (int)proven);
    assert_true(proven > (is_slow() ? 0 : 2));
}

static void larger_graphs_keep_the_budget_and_the_form(void **state) {
    tl_random random = { 72 };
    int times = scaled(60), i, fits = 0, never = 0;
    (void)state;
    for (i = 0; i < times; i++) {
        tl_graph graph;
        tl_plan all, plan, again;
        tl_remat_report report;
        tl_remat_desc desc;
        tl_env env;
        tl_result result;
        if (random_effect_graph(NULL, &random, 60, i % 3 * 10, &graph) || tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no graph");
        desc = desc_of(&graph, 1 + all.peak_bytes * (uint64_t)random_count(&random, 4, 10) / 10, TL_REMAT_FORM_ONCE, 3000000);
        desc.base_bytes = 0;
        result = plan_checked(&desc, &env, &plan, &report);
        if (result == TL_ERROR_INFEASIBLE) {
            desc.budget_bytes = report.least_budget_bytes;
            result = plan_checked(&desc, &env, &plan, &report);
            never++;
        }
        assert_int_equal(result, TL_OK);
        assert_int_equal(plan_checked(&desc, &env, &again, &report), TL_OK);
        assert_int_equal(again.step_count, plan.step_count);
        assert_memory_equal(again.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps);
        fits++;
        tl_free_plan(&env, &again);
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    assert_true(fits == times && never > 0);
}

// The policies keep sets, too: none of theirs is cheaper.
static void no_policy_that_keeps_a_set_is_cheaper(void **state) {
    static const char *const models[] = { "resnet18", "unet", "mobilenet_v2_rl", "encoder2", "gpt2_small" };
    static const tl_policy_kind policies[] = { TL_POLICY_EVERY_N, TL_POLICY_CHEN_SQRT, TL_POLICY_CHEN_GREEDY, TL_POLICY_SELECTIVE };
    size_t m, k;
    uint64_t percent;
    (void)state;
    for (m = 0; m < (is_slow() ? 2 : sizeof models / sizeof models[0]); m++) {
        char name[64], *text;
        tl_graph graph;
        tl_plan all;
        snprintf(name, sizeof name, "models/%s.tlg", models[m]);
        text = read_reference("no_policy_that_keeps_a_set_is_cheaper", name, NULL);
        if (!text) skip();
        graph = graph_of(text);
        free(text);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        for (percent = 90; percent >= 50; percent -= is_thinned() ? 40 : 20) {
            tl_remat_desc desc = desc_of(&graph, all.peak_bytes / 100 * percent, TL_REMAT_FORM_ONCE, 0);
            tl_remat_report report;
            tl_plan plan, other;
            tl_env env;
            tl_result result = plan_checked(&desc, &env, &plan, &report);
            for (k = 0; k < sizeof policies / sizeof policies[0]; k++) {
                tl_policy_desc policy;
                memset(&policy, 0, sizeof policy);
                policy.graph = &graph;
                policy.live = 1;
                policy.policy.kind = policies[k];
                policy.budget_bytes = desc.budget_bytes;
                if (tl_plan_policy(NULL, &policy, &other)) continue;
                if (result) fail_msg("%s at %d %%: %s", models[m], (int)percent, env.error.text);
                if (plan.cost > other.cost)
                    fail_msg("%s at %d %%: %s costs %.0f, not %.0f", models[m], (int)percent, tl_name_policy(policies[k]),
                             (double)other.cost, (double)plan.cost);
                tl_free_plan(NULL, &other);
            }
            tl_free_plan(&env, &plan);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

static tl_graph small_chain(void) {
    return graph_of("tlg 1\n"
                    "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                    "node 1 a op fwd=5 bwd=10 out=8 needs=in in=0\n"
                    "node 2 b op fwd=1 bwd=2 out=8 needs=out in=1\n"
                    "node 3 c op fwd=5 bwd=10 out=8 needs=in in=2 saved=2\n"
                    "node 4 d op fwd=1 bwd=2 out=8 needs=out in=3\n"
                    "node 5 e op fwd=5 bwd=10 out=4 needs=in in=4\n");
}

static int stop_at_once(const tl_remat_progress *progress, void *user) {
    (void)progress;
    ++*(int *)user;
    return 1;
}

static void every_form_has_a_name_and_bad_ones_are_refused(void **state) {
    tl_graph graph = small_chain();
    tl_remat_desc desc = desc_of(&graph, 1000, TL_REMAT_FORM_COUNT, 0);
    tl_remat_report report;
    tl_remat_form form;
    tl_plan plan;
    tl_env env;
    int k, asked = 0;
    (void)state;
    for (k = 0; k < TL_REMAT_FORM_COUNT; k++) {
        assert_int_equal(tl_parse_remat_form(tl_name_remat_form((tl_remat_form)k), &form), 1);
        assert_int_equal(form, k);
    }
    assert_string_equal(tl_name_remat_form(TL_REMAT_FORM_COUNT), "?");
    assert_int_equal(tl_parse_remat_form("twice", &form), 0);
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_remat: form: there is no such one");
    desc.form = TL_REMAT_FORM_ONCE;
#ifndef TL_NO_OFFLOAD
    desc.host_budget_bytes = 100;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "host_budget_bytes: needs the form any"));
    desc.host_budget_bytes = 0;
#endif
    desc.inference = 1;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_int_equal(plan.cost, 17);
    tl_free_plan(&env, &plan);
    desc.inference = 0;
    desc.budget_bytes = 30;
    desc.progress = stop_at_once;
    desc.user = &asked;
    if (!plan_checked(&desc, &env, &plan, &report)) tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_fails_in_turn(void **state) {
    static const uint64_t budgets[] = { 5, 33, 40 };
    tl_graph graph = small_chain();
    size_t b;
    (void)state;
    for (b = 0; b < 6; b++) {
        long at;
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            tl_remat_desc desc = desc_of(&graph, budgets[b % 3], TL_REMAT_FORM_ONCE, b < 3 ? 0 : 2000);
            tl_remat_report report;
            tl_plan plan;
            tl_result result = tl_plan_remat(&env, &desc, &plan, &report);
            if (f.count > at) assert_int_equal(result, TL_ERROR_NO_MEMORY);
            tl_free_plan(&env, &plan);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_of_small_graphs_is_compared),
        cmocka_unit_test(chains_about_the_limit_of_all_sets_are_compared),
        cmocka_unit_test(larger_graphs_keep_the_budget_and_the_form),
        cmocka_unit_test(no_policy_that_keeps_a_set_is_cheaper),
        cmocka_unit_test(every_form_has_a_name_and_bad_ones_are_refused),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
