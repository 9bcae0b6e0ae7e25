// [6] REMAT with a host tier: spills and fetches beside recomputation, and how far from the optimum they can be.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/gradients.h"
#include "support/replay.h"
#include "support/brute_offload.h"
#include "support/texts.h"
#include "support/progress.h"

#define FEW 1000000     // steps of work where time matters more than the last percent

static tl_remat_desc desc_of(const tl_graph *graph, uint64_t budget, const tl_device *device, uint64_t host_budget) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.device = device;
    desc.host_budget_bytes = host_budget;
    desc.work_limit = FEW;
    return desc;
}

// What was compressed, and what is made of it, is read by backwards and by forwards that ran before: results are exact.
static void check_exact(const tl_graph *graph, const tl_plan *plan) {
    uint8_t lossy[256] = { 0 }, ran[256] = { 0 };
    int32_t i, k;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        const tl_node *node = &graph->nodes[step->node];
        int is_lossy = 0;
        if (step->kind == TL_STEP_COMPRESS) lossy[node->first_output + step->output] = 1;
        if (step->kind >= TL_STEP_BACKWARD) continue;
        for (k = node->first_input; k < node->first_input + node->input_count; k++) is_lossy |= lossy[graph->inputs[k].tensor];
        assert_false(is_lossy && (!ran[step->node] || node->keep));
        for (k = node->first_output; k < node->first_output + node->output_count; k++) lossy[k] = (uint8_t)is_lossy;
        ran[step->node] = 1;
    }
}

// A replay by the rules of the header alone says the same, copies and waits included.
static void check_by_rules(const tl_remat_desc *desc, const tl_plan *plan) {
    replay r;
    if (!replay_plan(desc->graph, plan, desc->device, &r)) fail_msg("%s", r.broken);
    assert_int_equal(r.cost, plan->cost);
    assert_int_equal(r.peak, plan->peak_bytes);
    assert_int_equal(r.host_peak, plan->host_peak_bytes);
}

// What every answer must hold, whatever the graph.
static void check_answer(const tl_remat_desc *desc, const tl_env *env, tl_result result, const tl_plan *plan,
                         const tl_remat_report *report) {
    uint64_t budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    tl_simulate_desc replay;
    tl_report simulated;
    if (desc->device && desc->device->device_capacity_bytes && desc->device->device_capacity_bytes < budget)
        budget = desc->device->device_capacity_bytes;
    if (result) {
        assert_int_equal(env->error.code, result);
        assert_true(!plan->steps && !plan->step_count);
    }
    if (result == TL_ERROR_INFEASIBLE) {
        assert_true(report->least_budget_bytes > budget);
        assert_true(report->bound_budget_bytes <= report->least_budget_bytes);
        assert_true(!report->proven || report->bound_budget_bytes > budget);
        return;
    }
    if (result) return;
    memset(&replay, 0, sizeof replay);
    replay.graph = desc->graph;
    replay.plan = plan;
    replay.device = desc->device;
    if (tl_simulate_plan(NULL, &replay, &simulated)) fail_msg("%s", "the plan is not valid");
    assert_true(plan->peak_bytes <= budget && plan->base_bytes <= budget - plan->peak_bytes);
    assert_true(plan->host_peak_bytes <= desc->host_budget_bytes);
    assert_int_equal(plan->peak_bytes, simulated.peak_bytes);
    assert_int_equal(plan->host_peak_bytes, simulated.host_peak_bytes);
    assert_int_equal(plan->cost, simulated.cost);
    assert_int_equal(plan->base_cost, simulated.base_cost);
    assert_int_equal(simulated.end_host_bytes, 0);
    assert_int_equal(report->cost, plan->cost);
    assert_int_equal(report->bound_cost, plan->bound_cost);
    assert_true(report->bound_cost <= report->cost);
    assert_int_equal(report->proven, report->cost == report->bound_cost);
    if (desc->codec) check_exact(desc->graph, plan);
    else check_by_rules(desc, plan);
}

static tl_result plan_checked(const tl_remat_desc *desc, tl_env *env, tl_plan *plan, tl_remat_report *report) {
    tl_result result;
    memset(env, 0, sizeof *env);
    result = tl_plan_remat(env, desc, plan, report);
    check_answer(desc, env, result, plan, report);
    return result;
}

// -- against brute force --

static void random_device(tl_random *random, tl_device *device) {
    tl_random other = { tl_mix_u64(random->state, 1) };     // of channels and waits
    static const uint64_t rates[] = { 0, 300000000, 500000000, 1000000000, 1500000000, 2000000000, 5000000000 };
    memset(device, 0, sizeof *device);
    device->link_bytes_per_second = rates[tl_next_random_below(random, 7)];
    device->link_latency_ns = tl_next_random_below(random, 4);
    device->copy_channels = random_count(&other, -1, 2);
    if (random_chance(&other, 30)) device->wait_latency_ns = tl_next_random_below(&other, 3);
    if (random_chance(&other, 40)) device->upload_bytes_per_second = rates[tl_next_random_below(&other, 7)];
}

// So many nodes beside one input, few bytes, costs of the same order as the copies. unit: of the bytes of outputs.
static void tiny_graph_of(tl_random *random, int32_t count, uint64_t unit, tl_graph *graph) {
    int32_t i, k;
    tl_init_graph(graph);
    for (i = 0; i <= count; i++) {
        tl_node_desc node;
        tl_tensor inputs[2];
        uint64_t bytes[2];
        char needs[64];
        memset(&node, 0, sizeof node);
        node.op = i ? "op" : "input";
        node.inputs = inputs;
        node.input_count = i ? 1 + (i > 1 && random_chance(random, 35)) : 0;
        node.output_bytes = bytes;
        node.output_count = i && random_chance(random, 10) ? 2 : 1;
        for (k = 0; k < 2; k++) bytes[k] = unit * (1 + tl_next_random_below(random, 9));
        for (k = 0; k < node.input_count; k++) {
            inputs[k].node = random_chance(random, 70) ? i - 1 : random_count(random, 0, i - 1);
            inputs[k].output = random_count(random, 0, graph->nodes[inputs[k].node].output_count - 1);
        }
        node.keep = random_chance(random, 5);
        if (i) {
            node.fwd_cost = tl_next_random_below(random, 15);
            if (random_chance(random, 20)) node.fwork_bytes = tl_next_random_below(random, 4);
            node.no_grad = random_chance(random, 5);
            if (random_chance(random, 15) && inputs[0].node) {
                node.inplace = 1;
                bytes[0] = graph->outputs[graph->nodes[inputs[0].node].first_output + inputs[0].output].bytes;
            }
        }
        if (i && !node.no_grad) {
            random_needs(random, node.input_count, node.output_count, needs);
            node.needs = random_chance(random, 40) ? "in" : needs;
            node.bwd_cost = tl_next_random_below(random, 25);
            if (random_chance(random, 15)) node.saved_bytes = 1 + tl_next_random_below(random, 6);
            if (random_chance(random, 20)) node.bwork_bytes = tl_next_random_below(random, 4);
        }
        if (tl_add_node(NULL, graph, &node, NULL)) fail_msg("%s", "no node");
    }
    for (i = 1; i <= count && random->state % 3 == 0; i++) {  // in every third graph some run once only
        uint64_t bits = random->state >> 3 * (i % 20);
        NODES(graph)[i].once = (uint8_t)(bits & 1);
        if (NODES(graph)[i].saved_bytes) NODES(graph)[i].swork_bytes = bits >> 1 & 3;
    }
}

static void tiny_graph(tl_random *random, int32_t count, tl_graph *graph) { tiny_graph_of(random, count, 1, graph); }

static void alloc_brute(brute_offload *tables, uint32_t capacity) {
    tables->capacity = tables->heap_capacity = capacity;
    tables->heap_capacity *= 4;
    tables->table_size = 2 * capacity + 1;
    tables->states = (bo_state *)malloc(capacity * sizeof *tables->states);
    tables->now = (uint64_t *)malloc(capacity * sizeof *tables->now);
    tables->settled = (uint8_t *)malloc(capacity);
    tables->table = (uint32_t *)malloc(tables->table_size * sizeof *tables->table);
    tables->heap = (bo_entry *)malloc(tables->heap_capacity * sizeof *tables->heap);
    if (!tables->states || !tables->now || !tables->settled || !tables->table || !tables->heap) fail_msg("%s", "no memory");
}

static void free_brute(brute_offload *tables) {
    free(tables->states);
    free(tables->now);
    free(tables->settled);
    free(tables->table);
    free(tables->heap);
}

static void lend_tables(brute_offload *b, const brute_offload *tables) {
    b->states = tables->states; b->now = tables->now; b->settled = tables->settled; b->table = tables->table;
    b->heap = tables->heap; b->capacity = tables->capacity; b->heap_capacity = tables->heap_capacity;
    b->table_size = tables->table_size;
}

// A plan ends at `end`: no relaxation for that end, or for a later one, says that none ends before.
static void bound_is_below(const tl_remat_desc *desc, uint64_t end, int number) {
    tli_remat_watch watch;
    tli_bound_host host;
    int k;
    memset(&watch, 0, sizeof watch);
    watch.desc = desc;
    host.bytes = desc->host_budget_bytes;
    host.rate = tli_find_faster_rate(desc->device);
    for (k = 0; k < 4; k++) {
        uint64_t bound, work = 0;
        host.time = end + (uint64_t)(k / 2);
        host.is_even = k % 2;
        if (tli_remat_bound_host(NULL, desc->graph, desc->budget_bytes, &host, 0, &watch, FEW / 10, &bound, &work))
            fail_msg("graph %d: ruled out, ends at %d", number, (int)end);
        if (bound > end) fail_msg("graph %d: bound %d for %d, ends at %d", number, (int)bound, (int)host.time, (int)end);
    }
}

typedef struct tally { int tried[6], met[6], proven, copies, expanded, missed, infeasible, large; } tally;

// Whether the planner's answer is the optimum; every eighth time that brute force finds it, too.
static void compare_with_brute(brute_offload *b, const tl_remat_desc *desc, tl_result result, const tl_plan *plan,
                               const tl_remat_report *report, int number, tally *sums) {
    uint64_t least = 0, limit = result ? 1000 : plan->cost - (number % 8 > 0);
    int n = desc->graph->node_count - 1, solved, expands = 0, k;
    if (!result && !plan->cost) return;
    solved = bo_solve(b, desc->device, desc->budget_bytes, desc->host_budget_bytes, limit, &least);
    if (solved < 0) { sums->large++; return; }
    if (result) {
        if (solved && report->proven) fail_msg("graph %d: proven infeasible, ends at %d", number, (int)least);
        sums->missed += solved;
        sums->infeasible += !solved;
        return;
    }
    if (!solved && number % 8 == 0) fail_msg("graph %d: nothing ends by %d", number, (int)plan->cost);
    if (!solved) least = plan->cost;
    if (!desc->codec) bound_is_below(desc, least, number);
    if (least < report->bound_cost) fail_msg("graph %d: bound %d, optimum %d", number, (int)report->bound_cost, (int)least);
    sums->tried[n]++;
    sums->met[n] += least == plan->cost;
    sums->proven += report->proven;
    sums->copies += plan->host_peak_bytes > 0;
    for (k = 0; k < plan->step_count; k++) expands += plan->steps[k].kind == TL_STEP_EXPAND;
    sums->expanded += expands > 0;
    if (least < plan->cost && getenv("SHOW")) {
        char text[8192];
        tl_print_graph(desc->graph, text, sizeof text);
        printf("%s", text);
        tl_print_schedule(plan, text, sizeof text);
        for (n = 0; text[n]; n++) if (text[n] == '\n') text[n] = ' ';
        printf("%s\nbudget %d host %d rate %d latency %d cost %d optimum %d\n\n", text, (int)desc->budget_bytes,
               (int)desc->host_budget_bytes, (int)(desc->device->link_bytes_per_second / 1000000),
               (int)desc->device->link_latency_ns, (int)plan->cost, (int)least);
    }
}

static tally compare_tiny_graphs(uint64_t seed, int codecs) {
    tl_random random = { seed };
    brute_offload b, tables;
    tally sums;
    int i, count = scaled(getenv("CASES") ? atoi(getenv("CASES")) : 150);
    memset(&sums, 0, sizeof sums);
    alloc_brute(&tables, 1u << 18);
    for (i = 0; i < count; i++) {
        tl_graph graph;
        tl_device device;
        tl_plan all, plan;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_env env;
        tl_result result;
        uint64_t host = random_chance(&random, 60) ? TL_UNLIMITED : 1 + tl_next_random_below(&random, 20), floor, work = 0;
        int32_t node;
        tiny_graph_of(&random, 3 + i % 3, codecs ? 4 : 1, &graph);
        random_device(&random, &device);
        if (codecs) {
            device.codec_bytes_per_second = random_chance(&random, 20) ? 0 : UINT64_C(1000000000) << tl_next_random_below(&random, 4);
            device.link_bytes_per_second *= 4;
            if (random_chance(&random, 70)) host = 0;
        }
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        if (tli_remat_floor(NULL, &graph, 0, 1, &floor, &node, &work)) fail_msg("%s", "no floor");
        floor += tl_next_random_below(&random, all.peak_bytes - floor + 1);
        desc = desc_of(&graph, floor ? floor : 1, &device, host);
        if (codecs) desc.codec = random_chance(&random, 50) ? TL_CODEC_F16 : TL_CODEC_BF16;
        result = plan_checked(&desc, &env, &plan, &report);
        if (bo_init(&b, &graph, 0)) {
            lend_tables(&b, &tables);
            bo_use_codec(&b, desc.codec, device.codec_bytes_per_second);
            compare_with_brute(&b, &desc, result, &plan, &report, i, &sums);
        }
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    free_brute(&tables);
    print_message("optimum reached: 3 nodes %d of %d, 4 nodes %d of %d, 5 nodes %d of %d; %d proven, %d with copies, "
                  "%d compressed, %d infeasible, %d missed, %d too large\n", sums.met[3], sums.tried[3], sums.met[4],
                  sums.tried[4], sums.met[5], sums.tried[5], sums.proven, sums.copies, sums.expanded, sums.infeasible,
                  sums.missed, sums.large);
    return sums;
}

static void tiny_graphs_reach_the_optimum_of_brute_force(void **state) {
    tally sums = compare_tiny_graphs(61, 0);
    (void)state;
    assert_int_equal(sums.met[3], sums.tried[3]);
    assert_int_equal(sums.missed, 0);
    assert_true(100 * (sums.met[4] + sums.met[5]) >= 97 * (sums.tried[4] + sums.tried[5]));
    assert_true(sums.copies > 0 && sums.proven > 0);
}

static void with_a_codec_they_reach_it_too(void **state) {
    tally sums = compare_tiny_graphs(62, 1);
    (void)state;
    assert_true(sums.missed <= scaled(150) / 500);     // of 750 one is refused that a codec and 11 bytes on the host make fit
    assert_true(100 * (sums.met[3] + sums.met[4] + sums.met[5]) >= 97 * (sums.tried[3] + sums.tried[4] + sums.tried[5]));
    assert_true(sums.expanded > 0 && sums.proven > 0);
}

// -- what a codec is good for --

// A chain whose first tensor is not read from F 2 on until B 2: it is away meanwhile.
static tl_graph chain_with_a_gap(void) {
    return graph_of("tlg 1\n"
                    "node 0 in input fwd=0 bwd=0 out=1 needs=none in=-\n"
                    "node 1 a op fwd=50 bwd=50 out=8 needs=none in=0\n"
                    "node 2 b op fwd=10 bwd=10 out=4 needs=in in=1\n"
                    "node 3 c op fwd=10 bwd=20 out=8 needs=none in=2\n"
                    "node 4 d op fwd=10 bwd=20 out=8 needs=none in=3\n");
}

// At sizes that users have: never dearer than without, and where nothing fits, what is named does.
static void a_codec_never_makes_a_plan_dearer(void **state) {
    tl_random random = { 63 };
    int i, cheaper = 0, planned = 0, fewer = 0, count = scaled(60);
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        tl_device device = { 0 };
        tl_remat_report without, with;
        tl_plan all, plan, packed;
        tl_env env;
        tl_remat_desc desc;
        tl_result result;
        tiny_graph_of(&random, 10 + i % 60, 64, &graph);
        device.codec_bytes_per_second = UINT64_C(100000000000) << tl_next_random_below(&random, 6);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        desc = desc_of(&graph, all.peak_bytes / 4 + tl_next_random_below(&random, all.peak_bytes / 2) + 1, &device, 0);
        result = plan_checked(&desc, &env, &plan, &without);
        desc.codec = (tl_codec)(1 + i % 3);
        if (plan_checked(&desc, &env, &packed, &with) == TL_ERROR_INFEASIBLE) {
            assert_int_equal(result, TL_ERROR_INFEASIBLE);
            assert_true(with.least_budget_bytes <= without.least_budget_bytes);
            fewer += with.least_budget_bytes < without.least_budget_bytes;
            desc.budget_bytes = with.least_budget_bytes;
            assert_int_equal(plan_checked(&desc, &env, &packed, &with), TL_OK);
        } else if (!result) {
            planned++;
            assert_true(with.cost <= without.cost);
            cheaper += with.cost < without.cost;
        }
        tl_free_plan(&env, &packed);
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d planned, %d cheaper with a codec; %d lesser least budgets\n", planned, cheaper, fewer);
    assert_true(cheaper > 0 || count < 20);
}

static void a_codec_for_results_is_refused(void **state) {
    tl_graph graph = chain_with_a_gap();
    tl_remat_desc desc = desc_of(&graph, 21, NULL, 0);
    tl_plan plan;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    desc.codec = TL_CODEC_F16;
    desc.inference = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_remat: codec: needs training and the form any: results are never compressed");
    desc.inference = 0;
    desc.codec = TL_CODEC_COUNT;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_remat: codec: unknown kind of compression");
    tl_free_graph(NULL, &graph);
}

// A tensor that is marked is never compressed.
static void lossless_tensors_are_not_compressed(void **state) {
    tl_random random = { 64 };
    int i, k, seen = 0;
    (void)state;
    for (i = 0; i < 20; i++) {
        uint8_t lossless[256];
        tl_graph graph;
        tl_remat_desc desc;
        tl_plan all, plan;
        tl_env env;
        tiny_graph_of(&random, 20, 64, &graph);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        for (k = 0; k < graph.tensor_count; k++) lossless[k] = (uint8_t)(k % 2);
        desc = desc_of(&graph, all.peak_bytes / 2, NULL, 0);
        desc.codec = TL_CODEC_F16;
        desc.lossless = lossless;
        if (!tl_plan_remat(NULL, &desc, &plan, NULL)) {
            for (k = 0; k < plan.step_count; k++) {
                tl_step step = plan.steps[k];
                if (step.kind != TL_STEP_COMPRESS) continue;
                seen++;
                assert_false(lossless[graph.nodes[step.node].first_output + step.output]);
            }
        }
        memset(&env, 0, sizeof env);
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    assert_true(seen > 0);
}

// A node that takes blocks has outputs of as many bytes as its inputs; beside a compressed copy they need not be.
static void a_node_that_takes_blocks_may_be_lossless(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                               "node 1 a op fwd=90 bwd=1 out=400 needs=in in=0\nnode 2 b op fwd=90 bwd=1 out=400 needs=in in=1 takes_blocks\n"
                               "node 3 c op fwd=90 bwd=1 out=400 needs=in in=2\nnode 4 d op fwd=90 bwd=1 out=400 needs=in in=3\n";
    static const uint8_t lossless[5] = { 0, 0, 1, 0, 0 };
    uint64_t bytes;
    int planned = 0;
    (void)state;
    for (bytes = 1200; bytes < 2200; bytes += 50) {
        tl_graph graph;
        tl_remat_desc desc;
        tl_plan plan;
        tl_env env;
        tl_result result;
        memset(&env, 0, sizeof env);
        if (tl_parse_graph(&env, text, sizeof text - 1, &graph)) fail_msg("%s", env.error.text);
        desc = desc_of(&graph, bytes, NULL, 0);
        desc.codec = TL_CODEC_F16;
        desc.lossless = lossless;
        result = tl_plan_remat(&env, &desc, &plan, NULL);
        if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%lu bytes: %s", (unsigned long)bytes, env.error.text);
        planned += !result;
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(planned > 0);
}

// -- what the link is good for --

static tl_device link_of(uint64_t bytes_per_second, uint64_t latency) {
    tl_device device;
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = bytes_per_second;
    device.link_latency_ns = latency;
    return device;
}

// Make forwards cost so much that those of a plan that makes tensors again do not fit 64 bits, or a thousandth of that.
static void make_dear(tl_graph *graph, uint64_t seed, uint64_t divisor) {
    const uint64_t share = UINT64_MAX / 4 / (uint64_t)graph->node_count / divisor;
    tl_random random = { seed };
    int32_t n;
    for (n = 0; n < graph->node_count; n++)
        if (!graph->nodes[n].is_input)
            ((tl_node *)graph->nodes)[n].fwd_cost = share * (uint64_t)random_count(&random, 1, 4);
}

// The least budget, which is the same for any costs, is named only where costs are counted there. Where the plan behind it
// costs too much to be counted, the answer says so, though a call with that budget may find another one.
static void least_budget_of_large_costs_has_a_plan(void **state) {
    tl_random random = { 78 };
    int i, k, named = 0, refused = 0;
    (void)state;
    for (i = 0; i < scaled(60); i++) {
        tl_graph graph;
        if (random_graph(NULL, &random, i % 2 ? 12 : 30, &graph)) fail_msg("%s", "no graph");
        for (k = 0; k < 6; k += is_slow() ? 3 : 1) {
            tl_device device = link_of(k / 2 == 1 ? 1 : 1000000000, 0);
            tl_remat_desc desc = desc_of(&graph, 1, &device, k / 2 == 2 ? 0 : TL_UNLIMITED);
            tl_env env;
            tl_plan plan;
            tl_remat_report report;
            tl_result counted, result;
            uint64_t least;
            desc.codec = k / 2 == 2 ? TL_CODEC_F16 : TL_CODEC_NONE;
            desc.live = k & 1;
            make_dear(&graph, (uint64_t)i, 1000);
            assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
            least = report.least_budget_bytes;
            make_dear(&graph, (uint64_t)i, 1);
            desc.budget_bytes = least;
            counted = plan_checked(&desc, &env, &plan, &report);
            tl_free_plan(&env, &plan);
            desc.budget_bytes = 1;
            result = plan_checked(&desc, &env, &plan, &report);
            if (result == TL_ERROR_INFEASIBLE ? counted || report.least_budget_bytes != least
                                              : result != TL_ERROR_OVERFLOW)
                fail_msg("graph %d, %d: at %d %s, at 1 %s", i, k, (int)least, tl_name_result(counted), env.error.text);
            named += result == TL_ERROR_INFEASIBLE;
            refused += result == TL_ERROR_OVERFLOW;
        }
        tl_free_graph(NULL, &graph);
    }
    print_message("%d named, %d refused\n", named, refused);
    assert_true(is_thinned() || (named > 178 && refused > 100));    // copies take costs away
}

static void copies_that_hide_behind_calls_cost_nothing(void **state) {
    tl_graph graph = chain_with_a_gap();
    tl_device device = link_of(1000000000, 1);      // 8 bytes take 9 ns
    tl_remat_desc desc = desc_of(&graph, 21, &device, TL_UNLIMITED);
    tl_remat_report report;
    tl_plan plan, none;
    tl_env env;
    char text[256];
    (void)state;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_true(report.proven);
    assert_int_equal(plan.cost, plan.base_cost);
    assert_int_equal(plan.host_peak_bytes, 8);
    tl_print_schedule(&plan, text, sizeof text);
    assert_non_null(strstr(text, "F 1\nO 1.0\n"));       // begun as soon as it was made,
    assert_non_null(strstr(text, "W 1.0\nDH 1.0\nB 2\n"));  // awaited when it is wanted
    desc.host_budget_bytes = 7;                             // too few for the tensor
    assert_int_equal(plan_checked(&desc, &env, &none, &report), TL_OK);
    assert_int_equal(none.host_peak_bytes, 0);
    assert_int_equal(none.cost, plan.cost + 50);
    tl_free_plan(&env, &none);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_slower_link_never_gives_a_cheaper_plan(void **state) {
    static const uint64_t rates[] = { 1000000000, 400000000, 200000000, 100000000, 50000000, 1 };
    uint64_t last = 0;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof rates / sizeof rates[0]; k++) {
        tl_graph graph = chain_with_a_gap();
        tl_device device = link_of(rates[k], 0);
        tl_remat_desc desc = desc_of(&graph, 21, &device, TL_UNLIMITED);
        tl_remat_report report;
        tl_plan plan;
        tl_env env;
        assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
        assert_true(plan.cost >= last && plan.cost <= plan.base_cost + 50);
        last = plan.cost;
        if (rates[k] == 1) assert_int_equal(plan.host_peak_bytes, 0);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_int_equal(last, 230);
}

// A tensor of 8 bytes may go to the host while c runs, which takes 50 ns, and come back in its backward, or be made again.
static void check_gap(int32_t fwd_of_a, int32_t bwd_of_c, const tl_device *device, uint64_t cost) {
    char text[512];
    tl_graph graph;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_env env;
    snprintf(text, sizeof text, "tlg 1\n"
             "node 0 in input fwd=0 bwd=0 out=1 needs=none in=-\n"
             "node 1 a op fwd=%d bwd=0 out=8 needs=none in=0\n"
             "node 2 b op fwd=0 bwd=0 out=1 needs=in in=1\n"
             "node 3 c op fwd=50 bwd=%d out=1 needs=none in=2\n"
             "node 4 d op fwd=0 bwd=0 out=20 needs=none in=3\n", (int)fwd_of_a, (int)bwd_of_c);
    graph = graph_of(text);
    desc = desc_of(&graph, 22, device, TL_UNLIMITED);
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_int_equal(plan.cost, cost);
    assert_true(report.proven);
    bound_is_below(&desc, plan.cost, (int)cost);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

// A copy each way takes all of the time there is: the bound has nothing to spare.
static void a_link_that_is_just_fast_enough_is_used_and_not_ruled_out(void **state) {
    static const uint64_t rates[] = { 160000000, 159999999 };   // 8 bytes in 50 and in 51 ns
    uint64_t k;
    (void)state;
    for (k = 0; k < 2; k++) {
        tl_device device = link_of(rates[k], 0);
        check_gap(1, 50, &device, 101 + k);     // slower, and it is as cheap to make the tensor again
    }
}

static void the_faster_way_is_known(void **state) {
    tl_device device = link_of(0, 0);
    (void)state;
    assert_int_equal(tli_find_faster_rate(NULL), 0);
    device.upload_bytes_per_second = 5;
    assert_int_equal(tli_find_faster_rate(&device), 0);     // one way takes no time
    device.link_bytes_per_second = 7;
    assert_int_equal(tli_find_faster_rate(&device), 7);
    device.upload_bytes_per_second = 9;
    assert_int_equal(tli_find_faster_rate(&device), 9);
}

// The way back has a speed of its own, of which the bound has to take the faster one.
static void a_faster_way_back_is_used_and_not_ruled_out(void **state) {
    tl_device device = link_of(160000000, 0);       // 8 bytes in 50 ns
    (void)state;
    check_gap(9, 20, &device, 88);      // a is made again in 9
    device.upload_bytes_per_second = 320000000;
    check_gap(9, 20, &device, 84);      // waits for 5
}

// Without a device, and with one whose link is not known.
static void copies_over_an_unknown_link_take_no_time(void **state) {
    tl_graph graph = chain_with_a_gap();
    tl_device device = link_of(0, 1000);
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        tl_remat_desc desc = desc_of(&graph, 21, k ? &device : NULL, TL_UNLIMITED);
        tl_remat_report report;
        tl_plan plan;
        tl_env env;
        assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
        assert_true(report.proven && plan.host_peak_bytes == 8);
        assert_int_equal(plan.cost, plan.base_cost);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void capacities_of_the_device_limit_both_budgets(void **state) {
    tl_graph graph = chain_with_a_gap();
    tl_device device = link_of(1000000000, 0);
    tl_remat_desc desc = desc_of(&graph, 0, &device, TL_UNLIMITED);
    tl_remat_report report;
    tl_plan plan;
    tl_env env;
    (void)state;
    device.device_capacity_bytes = 21;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_true(plan.peak_bytes <= 21 && plan.host_peak_bytes == 8);
    tl_free_plan(&env, &plan);
    device.host_capacity_bytes = 7;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_true(plan.peak_bytes <= 21 && plan.host_peak_bytes == 0);
    tl_free_plan(&env, &plan);
    device.device_capacity_bytes = 5;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_true(report.proven);
    tl_free_graph(NULL, &graph);
}

// -- random graphs --

static void larger_random_graphs_are_valid_and_repeatable(void **state) {
    tl_random random = { 62 };
    int i, cheaper = 0, copies = 0;
    (void)state;
    for (i = 0; i < scaled(80); i++) {
        tl_graph graph;
        tl_device device;
        tl_plan all, plan, again, none;
        tl_env env;
        tl_remat_report report, same;
        tl_remat_desc desc;
        tl_result result, without;
        int inference = random_chance(&random, 15);
        if (random_effect_graph(NULL, &random, i % 2 ? 100 : 25, i % 3 * 10, &graph) || tl_plan_keep_all(NULL, &graph, inference, &all))
            fail_msg("%s", "no graph");
        random_device(&random, &device);
        desc = desc_of(&graph, 1 + all.peak_bytes - tl_next_random_below(&random, all.peak_bytes * 2 / 3 + 1), &device,
                       1 + tl_next_random_below(&random, all.peak_bytes + 1));
        desc.inference = inference;
        desc.base_bytes = tl_next_random_below(&random, 1000);
        desc.budget_bytes += desc.base_bytes;
        desc.work_limit = FEW;
        result = plan_checked(&desc, &env, &plan, &report);
        assert_int_equal(plan_checked(&desc, &env, &again, &same), result);
        assert_memory_equal(&report, &same, sizeof report);
        assert_int_equal(plan.step_count, again.step_count);
        if (plan.step_count) assert_memory_equal(plan.steps, again.steps, (size_t)plan.step_count * sizeof *plan.steps);
        desc.host_budget_bytes = 0;
        without = tl_plan_remat(&env, &desc, &none, &same);
        if (!without && (result || plan.cost > none.cost)) fail_msg("graph %d: dearer than without a host", i);
        copies += !result && plan.host_peak_bytes;
        cheaper += !result && !without && plan.cost < none.cost;
        tl_free_plan(&env, &none);
        tl_free_plan(&env, &again);
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d plans: %d with copies, %d cheaper than without\n", i, copies, cheaper);
    assert_true(is_thinned() || cheaper > 0);
}

// With places, too: where the arena with copies is too large, the plan without them is the answer.
static void a_host_takes_no_plan_away(void **state) {
    tl_random random = { 64 };
    int i, planned = 0;
    (void)state;
    for (i = 0; i < scaled(120); i++) {
        tl_graph graph;
        tl_device device;
        tl_plan all, plan, none;
        tl_env env;
        tl_remat_desc desc;
        memset(&env, 0, sizeof env);
        if (random_graph(NULL, &random, 20 + i % 50, &graph) || tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no graph");
        random_device(&random, &device);
        desc = desc_of(&graph, all.peak_bytes - tl_next_random_below(&random, all.peak_bytes / 2), &device, 0);
        desc.live = 0;
        desc.work_limit = FEW;
        if (!tl_plan_remat(&env, &desc, &none, NULL)) {
            desc.host_budget_bytes = 1 + tl_next_random_below(&random, all.peak_bytes / 10);
            if (tl_plan_remat(&env, &desc, &plan, NULL)) fail_msg("graph %d: %s", i, env.error.text);
            if (plan.cost > none.cost) fail_msg("graph %d: dearer than without a host", i);
            assert_true(plan.arena_bytes <= desc.budget_bytes && plan.host_arena_bytes <= desc.host_budget_bytes);
            tl_free_plan(&env, &plan);
            tl_free_plan(&env, &none);
            planned++;
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d plans\n", planned);
    assert_true(is_thinned() || planned > 30);
}

static void budgets_that_need_a_host_are_planned(void **state) {
    tl_random random = { 68 };
    int i, planned = 0, refused = 0;
    (void)state;
    for (i = 0; i < scaled(300); i++) {
        tl_graph graph;
        tl_device device;
        tl_plan plan;
        tl_env env;
        tl_remat_report report;
        tl_remat_desc desc;
        uint64_t floor, work = 0;
        int32_t node;
        tiny_graph(&random, 3 + i % 6, &graph);
        random_device(&random, &device);
        if (tli_remat_floor(NULL, &graph, 0, 1, &floor, &node, &work)) fail_msg("%s", "no floor");
        desc = desc_of(&graph, floor ? floor : 1, &device, 0);
        desc.work_limit = 100000;
        if (plan_checked(&desc, &env, &plan, &report) == TL_ERROR_INFEASIBLE && report.proven) {
            desc.host_budget_bytes = TL_UNLIMITED;
            if (plan_checked(&desc, &env, &plan, &report)) refused++;
            else planned++;
        }
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d planned, %d refused\n", planned, refused);
    assert_true(planned > 0);
}

static void without_a_host_budget_a_device_changes_nothing(void **state) {
    tl_random random = { 63 };
    int i;
    (void)state;
    for (i = 0; i < 20; i++) {
        tl_graph graph;
        tl_device device;
        tl_plan all, plan, same;
        tl_env env;
        tl_remat_desc desc;
        if (random_graph(NULL, &random, 60, &graph) || tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no graph");
        random_device(&random, &device);
        memset(&env, 0, sizeof env);
        desc = desc_of(&graph, all.peak_bytes * 3 / 4 + 1, NULL, 0);
        (void)tl_plan_remat(&env, &desc, &plan, NULL);
        desc.device = &device;
        (void)tl_plan_remat(&env, &desc, &same, NULL);
        assert_int_equal(plan.cost, same.cost);
        assert_int_equal(plan.step_count, same.step_count);
        if (plan.step_count) assert_memory_equal(plan.steps, same.steps, (size_t)plan.step_count * sizeof *plan.steps);
        tl_free_plan(&env, &same);
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

// Of a game GPU's roofline; the unit of cost is 0.1 ps: 12 GB/s are 1 200 000 bytes in 10^9 units.
static void a_public_model_gains_from_a_link(void **state) {
    char *text = read_reference("a_public_model_gains_from_a_link", "models/gpt2_small_rl.tlg", NULL);
    tl_device device = link_of(1200000, 0);
    tl_remat_report with, without;
    tl_plan all, plan, none;
    tl_remat_desc desc;
    tl_graph graph;
    tl_env env;
    (void)state;
    if (!text) skip();
    graph = graph_of(text);
    if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
    desc = desc_of(&graph, all.peak_bytes / 100 * 60, &device, TL_UNLIMITED);
    desc.work_limit = 60000000;
    assert_int_equal(plan_checked(&desc, &env, &plan, &with), TL_OK);
    desc.host_budget_bytes = 0;
    assert_int_equal(tl_plan_remat(&env, &desc, &none, &without), TL_OK);
    print_message("%.5f with a host, at most %.5f above the optimum; %.5f without\n", (double)plan.cost / (double)plan.base_cost,
                  with.gap_ratio, (double)none.cost / (double)none.base_cost);
    assert_true(plan.cost < none.cost - none.cost / 50);
    assert_true(with.gap_ratio < 0.01);
    tl_free_plan(&env, &none);
    tl_free_plan(&env, &plan);
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
    free(text);
}

// -- what is refused --

static void infeasible_with_a_host_names_what_works(void **state) {
    tl_random random = { 64 };
    int i, refused = 0;
    (void)state;
    for (i = 0; i < 40; i++) {
        tl_graph graph;
        tl_device device;
        tl_plan plan;
        tl_env env;
        tl_remat_report report, retry;
        tl_remat_desc desc;
        uint64_t floor, work = 0;
        int32_t node;
        tiny_graph(&random, 3 + i % 20, &graph);
        random_device(&random, &device);
        if (tli_remat_floor(NULL, &graph, 0, 1, &floor, &node, &work)) fail_msg("%s", "no floor");
        desc = desc_of(&graph, floor > 1 ? floor - 1 : 1, &device, TL_UNLIMITED);
        if (plan_checked(&desc, &env, &plan, &report) == TL_ERROR_INFEASIBLE) {
            assert_true(report.proven);
            assert_true(report.bound_budget_bytes == floor);
            desc.budget_bytes = report.least_budget_bytes;
            if (plan_checked(&desc, &env, &plan, &retry)) fail_msg("graph %d: %s", i, env.error.text);
            refused++;
        }
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(refused > 20);
}

static void a_broken_device_is_refused(void **state) {
    tl_graph graph = chain_with_a_gap();
    tl_device device = link_of(1000, 0);
    tl_remat_desc desc = desc_of(&graph, 21, &device, TL_UNLIMITED);
    tl_remat_report report;
    tl_plan plan;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    device.alignment_bytes = 3;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INVALID_ARG);
    assert_true(!plan.steps && !report.cost);
    tl_free_graph(NULL, &graph);
}

// Copies that would end beyond 64 bits are of no use; nothing overflows.
static void copies_that_take_for_ever_are_not_made(void **state) {
    tl_graph graph = chain_with_a_gap();
    tl_device device = link_of(1, UINT64_MAX);
    tl_remat_desc desc = desc_of(&graph, 21, &device, TL_UNLIMITED);
    tl_remat_report report;
    tl_plan plan;
    tl_env env;
    (void)state;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_int_equal(plan.host_peak_bytes, 0);
    assert_int_equal(plan.cost, plan.base_cost + 50);
    assert_true(report.proven);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void what_a_link_carries_is_rounded_down_and_ends_at_64_bits(void **state) {
    (void)state;
    assert_int_equal(tli_bound_find_copied(1000000000, 7), 7);
    assert_int_equal(tli_bound_find_copied(1500000000, 3), 4);
    assert_int_equal(tli_bound_find_copied(1, 999999999), 0);
    assert_int_equal(tli_bound_find_copied(1, 1000000000), 1);
    assert_int_equal(tli_bound_find_copied(2999999999u, 4000000001u), 11999999998u);
    assert_int_equal(tli_bound_find_copied(999999999, UINT64_MAX), UINT64_MAX - 18446744074u);
    assert_int_equal(tli_bound_find_copied(UINT64_MAX, 1000000000), UINT64_MAX);
    assert_int_equal(tli_bound_find_copied(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

static void every_allocation_fails_in_turn(void **state) {
    tl_random random = { 65 };
    int i;
    (void)state;
    for (i = 0; i < 8; i++) {
        tl_graph graph;
        tl_device device;
        tl_plan all;
        long at, step = is_slow() ? 211 : is_thinned() ? 7 : 1;
        int once;
        tiny_graph_of(&random, i < 4 ? 6 : 30, 4, &graph);
        random_device(&random, &device);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        for (once = 0; once < 2; once++)
            for (at = 0; ; at += step) {
                failing_alloc f = { 0, 0, 0, 0 };
                tl_env env = failing_env(&f, at);
                tl_remat_desc desc = desc_of(&graph, all.peak_bytes * 2 / 3 + 1, &device, TL_UNLIMITED);
                tl_plan plan;
                tl_remat_report report;
                tl_result result;
                desc.work_limit = 100000;
                if (i % 2) desc.codec = TL_CODEC_F16;      // with places, too: the plan without copies may follow
                desc.live = i % 4 < 2;
                f.fails_once = once;
                result = tl_plan_remat(&env, &desc, &plan, &report);
                assert_true(!result || result == TL_ERROR_NO_MEMORY || result == TL_ERROR_INFEASIBLE);
                check_answer(&desc, &env, result, &plan, &report);
                tl_free_plan(&env, &plan);
                assert_int_equal(f.live, 0);
                if (f.count <= at) break;
                if (at > 300 && step < 23) step = 23;
            }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

// -- progress --

static void progress_stops_with_the_best_so_far(void **state) {
    tl_random random = { 66 };
    long stop_at;
    (void)state;
    for (stop_at = -1; stop_at < 16; stop_at++) {
        tl_graph graph;
        tl_device device = link_of(1000000000, 0);
        tl_remat_desc desc;
        tl_remat_report report;
        tl_plan all, plan;
        watcher w;
        tl_env env;
        memset(&w, 0, sizeof w);
        w.stop_at = stop_at;
        random.state = 66;
        tiny_graph(&random, 80, &graph);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no plan");
        desc = desc_of(&graph, all.peak_bytes * 3 / 4, &device, TL_UNLIMITED);
        desc.work_limit = 20000000;
        desc.progress = watch_progress;
        desc.user = &w;
        // stopped before a first plan, it is refused
        if (plan_checked(&desc, &env, &plan, &report)) assert_true(stop_at >= 0 && stop_at < 8);
        assert_true(w.asked > 0 && (stop_at < 0 || w.asked <= stop_at + 1));
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

// -- run --

static void plans_with_copies_run_with_the_same_gradients(void **state) {
    tl_random random = { 67 };
    int ran = 0;
    (void)state;
    while (ran < 12) {
        tl_graph graph;
        tl_device device = link_of(1000000000, 1);
        tl_plan all, plan;
        tl_env env;
        tl_remat_report report;
        tl_remat_desc desc;
        uint64_t peak, expected;
        int id, grads = 0;
        if (random_effect_graph(NULL, &random, 30, ran % 2 * 20, &graph) || tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("%s", "no graph");
        for (id = 0; id < graph.node_count; id++) grads += graph.nodes[id].has_grad;
        desc = desc_of(&graph, all.peak_bytes * 4 / 5 + 1, &device, TL_UNLIMITED);
        if (grads && plan_checked(&desc, &env, &plan, &report) == TL_OK) {
            if (plan.host_peak_bytes) {
                expected = gradients_of(&graph, &all, &peak);
                if (gradients_of(&graph, &plan, &peak) != expected) fail_msg("%s", "other gradients");
                assert_int_equal(peak, plan.peak_bytes);
                ran++;
            }
            tl_free_plan(&env, &plan);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_graphs_reach_the_optimum_of_brute_force),
        cmocka_unit_test(with_a_codec_they_reach_it_too),
        cmocka_unit_test(a_codec_never_makes_a_plan_dearer),
        cmocka_unit_test(a_codec_for_results_is_refused),
        cmocka_unit_test(lossless_tensors_are_not_compressed),
        cmocka_unit_test(a_node_that_takes_blocks_may_be_lossless),
        cmocka_unit_test(copies_that_hide_behind_calls_cost_nothing),
        cmocka_unit_test(a_slower_link_never_gives_a_cheaper_plan),
        cmocka_unit_test(a_link_that_is_just_fast_enough_is_used_and_not_ruled_out),
        cmocka_unit_test(the_faster_way_is_known),
        cmocka_unit_test(a_faster_way_back_is_used_and_not_ruled_out),
        cmocka_unit_test(copies_over_an_unknown_link_take_no_time),
        cmocka_unit_test(capacities_of_the_device_limit_both_budgets),
        cmocka_unit_test(larger_random_graphs_are_valid_and_repeatable),
        cmocka_unit_test(least_budget_of_large_costs_has_a_plan),
        cmocka_unit_test(a_host_takes_no_plan_away),
        cmocka_unit_test(budgets_that_need_a_host_are_planned),
        cmocka_unit_test(without_a_host_budget_a_device_changes_nothing),
        cmocka_unit_test(a_public_model_gains_from_a_link),
        cmocka_unit_test(infeasible_with_a_host_names_what_works),
        cmocka_unit_test(a_broken_device_is_refused),
        cmocka_unit_test(copies_that_take_for_ever_are_not_made),
        cmocka_unit_test(what_a_link_carries_is_rounded_down_and_ends_at_64_bits),
        cmocka_unit_test(every_allocation_fails_in_turn),
        cmocka_unit_test(progress_stops_with_the_best_so_far),
        cmocka_unit_test(plans_with_copies_run_with_the_same_gradients),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
