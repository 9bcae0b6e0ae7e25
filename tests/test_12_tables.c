// [12] RUN with TL_ONLY_TABLES and TL_SMALL_SIZES: the same plans, to the bit, as in the full library; what they leave
// out is refused.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/narrow.h"
#include "support/table_run.h"


static int simulated(const tl_graph *graph, const tl_plan *plan, tl_report *report) {
    tl_env env;
    tl_simulate_desc desc;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    return tl_simulate_plan(&env, &desc, report) == TL_OK;
}

// Places in one bank or in two, of which the first holds half.
static tl_result place(tl_env *env, const tl_graph *graph, uint64_t alignment, uint64_t first_bytes, tl_plan *plan) {
    tl_device device;
    tl_bank banks[2];
    tl_places_desc desc;
    memset(&device, 0, sizeof device);
    memset(banks, 0, sizeof banks);
    memset(&desc, 0, sizeof desc);
    device.alignment_bytes = alignment;
    banks[0].capacity_bytes = first_bytes;
    banks[0].alignment = banks[1].alignment = alignment;
    banks[1].price = 3;
    desc.graph = graph;
    desc.device = &device;
    desc.work_limit = 20000;
    desc.banks = first_bytes ? banks : NULL;
    desc.bank_count = first_bytes ? 2 : 0;
    return tl_plan_places(env, &desc, plan, NULL);
}

static void expect_same(const table_outcome *full, const table_outcome *other) {
    int32_t i;
    if (full->result != other->result || full->sum != other->sum)
        fail_msg("%s, but %s", full->text, other->text);
    assert_int_equal(full->forwards, other->forwards);
    assert_int_equal(full->recomputes, other->recomputes);
    assert_int_equal(full->backwards, other->backwards);
    assert_int_equal(full->saves_alone, other->saves_alone);
    assert_int_equal(full->refusals, other->refusals);
    for (i = 0; i < 5; i++) assert_int_equal(full->counts[i], other->counts[i]);
}

static void run_everywhere(const table_case *c, table_outcome *full) {
    table_outcome tables, small_sizes;
    table_run(c, full);
    if (full->result) fail_msg("%s", full->text);
    run_tables(c, &tables);
    expect_same(full, &tables);
    run_small(c, &small_sizes);
    expect_same(full, &small_sizes);
}

static void expect_unsupported(const table_case *c, const char *words) {
    table_outcome out;
    run_tables(c, &out);
    assert_int_equal(out.result, TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(out.text, words));
    run_small(c, &out);
    assert_int_equal(out.result, TL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(out.text, words));
}

typedef struct tally { long runs, refused, banked, narrow, slots, inplace, saves, recomputed, waits, fails, states, pieces; } tally;

static void count_kinds(const tl_plan *plan, tally *t) {
    int32_t i, inplace = 0, saves = 0;
    for (i = 0; i < plan->step_count; i++) {
        tl_step step = tl_find_step(plan, i);
        inplace |= step.kind == TL_STEP_FORWARD_INPLACE;
        saves |= step.kind == TL_STEP_FORWARD_SAVE;
    }
    t->inplace += inplace;
    t->saves += saves;
}

static int has_copies(const tl_plan *plan) {
    int32_t i;
    for (i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind > TL_STEP_DROP_SAVED) return 1;
    return 0;
}

static int has_states(const tl_graph *graph) {
    int32_t i, states = 0;
    for (i = 0; i < graph->node_count; i++) states |= graph->nodes[i].state != TL_STATE_NONE;
    return states;
}

// A graph that owns weights, now and then in pieces, and a plan within less than keep all takes.
static void make_states(tl_env *env, tl_random *random, tl_graph *graph, tl_plan *plan, tally *t) {
    tl_graph plain = *graph;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan all;
    memset(&desc, 0, sizeof desc);
    if (random_add_states(env, random, &plain, random_count(random, 1, 6), graph)) fail_msg("%s", "no states");
    tl_free_graph(env, &plain);
    t->pieces += random_train_in_pieces(env, random, graph) > 0;
    t->states++;
    if (tl_plan_keep_all(env, graph, 0, &all)) fail_msg("%s", env->error.text);
    desc.graph = graph;
    desc.work_limit = 20000;
    desc.budget_bytes = 1 + all.peak_bytes - tl_next_random_below(random, all.peak_bytes / 4);
    tl_free_plan(env, &all);
    if (tl_plan_remat(env, &desc, plan, &report) && tl_plan_keep_all(env, graph, 0, plan)) fail_msg("%s", env->error.text);
}

static void try_plan(tl_env *env, tl_random *random, const tl_graph *graph, const tl_plan *plan, tally *t) {
    static const uint64_t alignments[] = { 1, 4, 8, 16 };
    tl_plan placed;
    tl_report report;
    table_case c;
    table_outcome full;
    narrow_form narrow;
    int is_narrow = random_chance(random, 50), in_banks = random_chance(random, 40);
    if (!simulated(graph, plan, &report)) return;
    memset(&c, 0, sizeof c);
    c.graph = graph;
    c.alignment = has_states(graph) ? 1 : alignments[tl_next_random_below(random, 4)];     // at which pieces begin
    c.repeat_count = has_states(graph) ? 1 : random_count(random, 1, 2);
    c.by_steps = random_chance(random, 30);
    c.waits = random_chance(random, 30);
    c.has_users = random_chance(random, 30);
    c.streams = plan->slot_count <= 1 && random_chance(random, 20);
    c.fail_at = -1;
    if (tl_copy_plan(env, plan, &placed)) fail_msg("%s", env->error.text);
    if (!in_banks || place(env, graph, c.alignment, report.peak_bytes / 2 + 64, &placed)) {
        in_banks = 0;
        if (place(env, graph, c.alignment, 0, &placed)) fail_msg("%s", env->error.text);
    }
    if (is_narrow) narrow_from(&placed, c.alignment, placed.slot_count > 1 ? 3 : 2, random_chance(random, 50), &narrow);
    c.plan = is_narrow ? &narrow.plan : &placed;
    if (has_copies(plan) || plan->entry_count || !placed.offset_count) {
        expect_unsupported(&c, "plan: TL_ONLY_TABLES takes one with places");
        t->refused++;
    } else {
        run_everywhere(&c, &full);
        count_kinds(c.plan, t);
        t->runs++;
        t->banked += in_banks && placed.block_count > 1;
        t->narrow += is_narrow;
        t->slots += placed.slot_count > 1;
        t->recomputed += full.recomputes > 0;
        t->waits += full.refusals > 0;
    }
    if (is_narrow) narrow_free(&narrow);
    tl_free_plan(env, &placed);
}

static void random_plans_compute_the_same(void **state) {
    tl_random random;
    tally t;
    (void)state;
    memset(&t, 0, sizeof t);
    random.state = 16;
    while (t.runs < scaled(500)) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        int owns = random_chance(&random, 25);
        memset(&env, 0, sizeof env);
        if (random_graph(&env, &random, 12, &graph)) fail_msg("%s", env.error.text);
        if (owns) make_states(&env, &random, &graph, &plan, &t);
        else if (random_chance(&random, 30)) (void)random_let_inputs_die(&random, &graph);
        if (owns) {
            try_plan(&env, &random, &graph, &plan, &t);
            tl_free_plan(&env, &plan);
            tl_free_graph(&env, &graph);
            continue;
        }
        if (random_slot_plan(&env, &random, &graph, random_chance(&random, 30) ? random_count(&random, 2, TABLE_SLOTS) : 0, &plan))
            fail_msg("%s", "out of memory");
        try_plan(&env, &random, &graph, &plan, &t);
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || (t.refused > 20 && t.banked > 20 && t.narrow > 100 && t.slots > 20 && t.inplace > 20 && t.saves > 20));
    assert_true(is_thinned() || (t.recomputed > 50 && t.waits > 50 && t.states > 50 && t.pieces > 8));
}

// -- one small plan: what is refused --

// x -> a -> b -> loss with the outputs of 4 bytes, and every tensor kept.
static void make_chain(tl_env *env, uint64_t bytes, tl_graph *graph, tl_plan *plan) {
    tl_chain_desc chain;
    memset(&chain, 0, sizeof chain);
    memset(graph, 0, sizeof *graph);
    chain.layer_count = 3;
    chain.input_bytes = bytes;
    if (tl_add_chain(env, graph, &chain)) fail_msg("%s", env->error.text);
    if (tl_plan_keep_all(env, graph, 0, plan)) fail_msg("%s", env->error.text);
    if (place(env, graph, 8, 0, plan)) fail_msg("%s", env->error.text);
}

static void case_of(table_case *c, const tl_graph *graph, const tl_plan *plan) {
    memset(c, 0, sizeof *c);
    c->graph = graph;
    c->plan = plan;
    c->alignment = 8;
    c->repeat_count = 1;
    c->fail_at = -1;
}

static void what_was_left_out_is_refused(void **state) {
    static const char *const left_out = "desc: TL_ONLY_TABLES left out";
    tl_env env;
    tl_graph graph;
    tl_plan plan, other;
    tl_strategy strategy = tl_strategy_new();
    tl_run_desc asks;
    table_case c;
    tl_step steps[64];
    table_outcome out;
    char text[80];
    int32_t kind;
    (void)state;
    memset(&env, 0, sizeof env);
    make_chain(&env, 4, &graph, &plan);
    case_of(&c, &graph, &plan);
    run_everywhere(&c, &out);
    c.asks = &asks;
#define ASKS(field, value) \
    memset(&asks, 0, sizeof asks); \
    asks.field = value; \
    expect_unsupported(&c, left_out)
    ASKS(strategy, &strategy);
    ASKS(device, (const tl_device *)&plan);
    ASKS(host_budget_bytes, 1);
    ASKS(eviction, TL_EVICTION_OLDEST);
    ASKS(codec, TL_CODEC_BF16);
    ASKS(policy.kind, TL_POLICY_NONE);
    ASKS(profiling, 1);
    ASKS(in_flight, 2);
    ASKS(budget_ratio, 0.5);
    ASKS(may_split, 1);
    ASKS(kernel_precisions, 1u << TL_PRECISION_DOUBLE);
    ASKS(variables, (const tl_variable *)&asks);
#undef ASKS
    memset(&asks, 0, sizeof asks);
    asks.budget_bytes = plan.arena_bytes + 3;
    asks.base_bytes = 4;
    run_tables(&c, &out);
    assert_int_equal(out.result, TL_ERROR_INFEASIBLE);
    (void)snprintf(text, sizeof text, "tl_init_run: budget_bytes: the plan takes %d bytes", (int)plan.arena_bytes + 4);
    assert_string_equal(out.text, text);
    asks.base_bytes = 3;
    run_tables(&c, &out);
    assert_int_equal(out.result, TL_OK);
    asks.repeat_count = -1;
    run_small(&c, &out);
    assert_int_equal(out.result, TL_ERROR_INVALID_ARG);
    c.asks = NULL;
    other = plan;
    other.offset_count = 0;
    c.plan = &other;
    expect_unsupported(&c, "plan: TL_ONLY_TABLES takes one with places");
    other = plan;
    other.in_flight = 2;
    expect_unsupported(&c, "plan: TL_ONLY_TABLES takes one with places");
    for (kind = TL_STEP_SPILL; kind < TL_STEP_COUNT; kind++) {
        memcpy(steps, plan.steps, (size_t)plan.step_count * sizeof *steps);
        steps[plan.step_count - 1].kind = (uint8_t)kind;
        other = plan;
        other.steps = steps;
        expect_unsupported(&c, "plan: TL_ONLY_TABLES takes one with places");
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void expect_refusal(const table_case *c, tl_result result, const char *text) {
    table_outcome out;
    run_tables(c, &out);
    assert_int_equal(out.result, result);
    assert_string_equal(out.text, text);
    run_small(c, &out);
    assert_int_equal(out.result, result);
    assert_string_equal(out.text, text);
}

static void kernels_users_and_memory_are_asked_for(void **state) {
    tl_env env;
    tl_graph graph;
    tl_plan plan, other;
    tl_plan_block blocks[2];
    table_case c;
    table_outcome out;
    long allocations;
    (void)state;
    memset(&env, 0, sizeof env);
    make_chain(&env, 4, &graph, &plan);
    case_of(&c, &graph, &plan);
    c.kernel_count = -1;
    expect_refusal(&c, TL_ERROR_INVALID_ARG, "tl_init_run: kernel_count: must be >= 0, with kernels");
    c.kernel_count = 0;
    c.no_backward = 1;
    expect_refusal(&c, TL_ERROR_INVALID_ARG, "tl_init_run: kernels: forward or backward missing for op layer of node 1 (n1); that of a state is its update; inference, no_grad: no backward");
    c.no_backward = 0;
    c.has_users = 1;
    c.user_count = 2;
    expect_refusal(&c, TL_ERROR_INVALID_ARG, "tl_init_run: users: none for node n2, whose origin is 2");
    c.has_users = c.user_count = 0;
    for (allocations = 1; allocations < 10; allocations++) {
        c.allocations = allocations;
        run_small(&c, &out);
        if (!out.result) break;
        assert_int_equal(out.result, TL_ERROR_NO_MEMORY);
        run_tables(&c, &out);
        assert_int_equal(out.result, TL_ERROR_NO_MEMORY);
    }
    assert_int_equal(allocations, 2);   // a backend and a run, nothing else
    c.allocations = 0;
    c.less_bytes = 8;
    expect_refusal(&c, TL_ERROR_NO_MEMORY, "tl_init_run: backend: could not take the arena of 40 bytes");
    c.less_bytes = 0;
    c.plan = &other;
    other = plan;
    memset(blocks, 0, sizeof blocks);
    blocks[0].bytes = plan.arena_bytes;
    other.blocks = blocks;
    other.block_count = 1;
    run_everywhere(&c, &out);
    blocks[1].offset = blocks[1].bytes = plan.arena_bytes;
    other.block_count = 2;
    expect_refusal(&c, TL_ERROR_NO_MEMORY, "tl_init_run: backend: could not take the arena of 40 bytes");
    other = plan;
    other.alignment_bytes = (uint64_t)1 << 40;
    run_tables(&c, &out);
    assert_int_equal(out.result, TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(out.text, "backend: a block of the plan is not aligned to its"));
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void a_kernel_that_fails_stops_the_step_and_it_is_run_again(void **state) {
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    table_case c;
    table_outcome out;
    int32_t by_steps;
    (void)state;
    memset(&env, 0, sizeof env);
    make_chain(&env, 4, &graph, &plan);
    for (by_steps = 0; by_steps < 2; by_steps++) {
        case_of(&c, &graph, &plan);
        c.by_steps = by_steps;
        for (c.fail_at = 0; c.fail_at < 6; c.fail_at++) run_everywhere(&c, &out);
        for (c.fail_at = 0; c.fail_at < 6; c.fail_at++) {
            c.waits = 1;
            run_everywhere(&c, &out);
        }
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- 32 bits --

static void expect_overflow(const table_case *c) {
    table_outcome out;
    run_small(c, &out);
    assert_int_equal(out.result, TL_ERROR_OVERFLOW);
    assert_non_null(strstr(out.text, "do not fit the 32 bits of TL_SMALL_SIZES"));
}

static void sizes_beyond_32_bits_are_refused(void **state) {
    tl_env env;
    tl_graph graph, changed;
    tl_plan plan, other;
    tl_plan_block block;
    tl_node nodes[4];
    tl_node_output outputs[4];
    table_case c;
    table_outcome out;
    int32_t which;
    (void)state;
    memset(&env, 0, sizeof env);
    make_chain(&env, 4, &graph, &plan);
    case_of(&c, &changed, &plan);
    for (which = 0; which < 5; which++) {
        uint64_t *field;
        changed = graph;
        memcpy(nodes, graph.nodes, sizeof nodes);
        memcpy(outputs, graph.outputs, sizeof outputs);
        changed.nodes = nodes;
        changed.outputs = outputs;
        field = which == 0 ? &outputs[2].bytes : which == 1 ? &nodes[1].fwork_bytes : which == 2 ? &nodes[2].bwork_bytes
              : which == 3 ? &nodes[3].swork_bytes : &nodes[3].saved_bytes;
        *field = UINT32_MAX;
        expect_overflow(&c);
        *field = UINT64_MAX;
        expect_overflow(&c);
    }
    case_of(&c, &graph, &other);
    memset(&block, 0, sizeof block);
    other = plan;
    block.bytes = plan.arena_bytes;
    block.offset = UINT32_MAX - plan.arena_bytes + 1;
    other.blocks = &block;
    other.block_count = 1;
    expect_overflow(&c);
    block.offset = 0;
    run_everywhere(&c, &out);
    other.arena_bytes = (uint64_t)UINT32_MAX + 1;
    expect_overflow(&c);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// Kernels of integers have tl_requantize in every build.
static void sums_are_requantized_in_small_builds(void **state) {
    tl_random random = { 12900 };
    int round;
    (void)state;
    for (round = 0; round < 10000; round++) {
        tl_quantization to = { 1.0f, 0, -128, 127, TL_ROUNDING_EVEN };
        tl_multiplier factor;
        int32_t sum = (int32_t)(tl_next_random_below(&random, 1u << 24)) - (1 << 23);
        factor.multiplier = (int32_t)((1u << 30) + tl_next_random_below(&random, 1u << 30));
        factor.exponent = (int32_t)tl_next_random_below(&random, 24) - 20;
        to.zero_point = (int32_t)tl_next_random_below(&random, 256) - 128;
        assert_int_equal(requantize_small(sum, factor.multiplier, factor.exponent, to.zero_point),
                         tl_requantize(sum, factor, &to));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_compute_the_same),
        cmocka_unit_test(what_was_left_out_is_refused),
        cmocka_unit_test(kernels_users_and_memory_are_asked_for),
        cmocka_unit_test(a_kernel_that_fails_stops_the_step_and_it_is_run_again),
        cmocka_unit_test(sizes_beyond_32_bits_are_refused),
        cmocka_unit_test(sums_are_requantized_in_small_builds),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
