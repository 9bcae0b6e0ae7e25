// [5] PLAN: places in banks, and in arenas that are cut into blocks. Rows by hand, every placement of small plans
// tried, random plans, and bad input.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/sink_support.h"
#include "support/texts.h"


// x, a and b live together; a frees nothing before b is made, and c takes the place of x's neighbour.
static const char *const three =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a conv fwd=1 bwd=1 out=32 needs=none in=0\n"
    "node 2 b conv fwd=1 bwd=1 out=16 needs=none in=1\n"
    "node 3 c conv fwd=1 bwd=1 out=32 needs=none in=2,0 keep\n";
static const char *const three_steps = "F 1\nF 2\nD 1\nF 3\nD 2\n";

// A plan of `three` with these offsets of x, a, b and c, and these blocks.
static tl_plan placed(const uint64_t *offsets, const tl_plan_block *blocks, int32_t block_count) {
    tl_plan plan = schedule_of(three_steps);
    plan.inference = 1;
    plan.offsets = offsets;
    plan.offset_count = 4;
    plan.blocks = blocks;
    plan.block_count = block_count;
    plan.alignment_bytes = 16;
    return plan;
}

static tl_result simulate(tl_env *env, const tl_graph *graph, const tl_plan *plan, uint64_t *block_bytes, tl_report *report) {
    tl_simulate_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    desc.block_bytes = block_bytes;
    return tl_simulate_plan(env, &desc, report);
}

// -- the simulator --

static void each_block_has_a_high_water_mark(void **state) {
    static const uint64_t offsets[4] = { 0, 64, 16, 64 };   // x, a, b, c
    static const tl_plan_block blocks[3] = { { 0, 64, 0, 0, 0 }, { 64, 100, 0, 3, 0 }, { 176, 16, 0, 1, 0 } };
    tl_graph graph = graph_of(three);
    tl_plan plan = placed(offsets, blocks, 3);
    tl_lifetimes lifetimes;
    uint64_t bytes[3];
    tl_report report;
    (void)state;
    assert_int_equal(simulate(NULL, &graph, &plan, bytes, &report), TL_OK);
    assert_true(bytes[0] == 32 && bytes[1] == 32 && bytes[2] == 0 && report.arena_bytes == 64);
    assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lifetimes), TL_OK);
    assert_int_equal(lifetimes.count, 4);
    assert_true(lifetimes.items[0].block == 0 && lifetimes.items[0].bank == 0);
    assert_true(lifetimes.items[1].block == 1 && lifetimes.items[1].bank == 3 && lifetimes.items[1].offset == 64);
    tl_free_lifetimes(NULL, &lifetimes);
    plan.block_count = 0;
    assert_int_equal(simulate(NULL, &graph, &plan, NULL, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 96);
    assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lifetimes), TL_OK);
    assert_true(lifetimes.items[1].block == -1 && lifetimes.items[1].bank == 0);
    tl_free_lifetimes(NULL, &lifetimes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void host_copies_have_blocks_of_their_own(void **state) {
    static const uint64_t host_offsets[2] = { 0, 48 };
    static const tl_plan_block blocks[3] = { { 0, 160, 0, 0, 0 }, { 0, 32, 1, 0, 0 }, { 48, 16, 1, 0, 0 } };
    tl_graph graph = graph_of(three);
    tl_plan plan = schedule_of("F 1\nF 2\nO 1\nW 1\nL 1\nW 1\nD 1\nO 2\nW 2\nL 2\nW 2\nF 3\n");
    uint64_t own[6] = { 0, 16, 48, 16, 80, 96 }, bytes[3];
    tl_report report;
    tl_lifetimes lifetimes;
    int32_t i, seen = 0;
    (void)state;
    plan.inference = 1;
    plan.offsets = own;
    plan.offset_count = 6;
    plan.host_offsets = host_offsets;
    plan.host_offset_count = 2;
    plan.blocks = blocks;
    plan.block_count = 3;
    assert_int_equal(simulate(NULL, &graph, &plan, bytes, &report), TL_OK);
    assert_true(bytes[1] == 32 && bytes[2] == 16 && report.host_arena_bytes == 48);
    assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lifetimes), TL_OK);
    for (i = 0; i < lifetimes.count; i++)
        if (lifetimes.items[i].use == TL_USE_HOST) assert_int_equal(lifetimes.items[i].block, 1 + seen++);
    assert_int_equal(seen, 2);
    tl_free_lifetimes(NULL, &lifetimes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void blocks_that_no_plan_can_have_are_refused(void **state) {
    static const struct { tl_plan_block blocks[2]; const char *says; } rows[] = {
        { { { 0, 64, 0, 0, 0 }, { 48, 64, 0, 0, 0 } }, "blocks: 1 does not begin behind the one before it" },
        { { { 64, 64, 0, 0, 0 }, { 0, 64, 0, 0, 0 } }, "blocks: 1 does not begin behind the one before it" },
        { { { 0, 64, 1, 0, 0 }, { 64, 64, 0, 0, 0 } }, "blocks: 1 does not begin behind the one before it" },
        { { { 0, 64, 0, 0, 0 }, { UINT64_MAX - 15, 16, 0, 0, 0 } }, "blocks: 1 is empty, is not aligned or leaves its tier" },
        { { { 0, 64, 0, 0, 0 }, { 72, 64, 0, 0, 0 } }, "blocks: 1 is empty, is not aligned or leaves its tier" },
        { { { 0, 0, 0, 0, 0 }, { 64, 64, 0, 0, 0 } }, "blocks: 0 is empty, is not aligned or leaves its tier" },
        { { { 0, 64, 0, TL_MOST_BANKS, 0 }, { 64, 64, 0, 0, 0 } }, "blocks: 0 is of no tier or bank that a plan can have" },
        { { { 0, 64, 0, 0, 0 }, { 64, 64, 2, 0, 0 } }, "blocks: 1 is of no tier or bank that a plan can have" },
        { { { 0, 64, 0, 0, 1 }, { 64, 64, 0, 0, 0 } }, "blocks: 0 is of no tier or bank that a plan can have" },
    };
    static const uint64_t offsets[4] = { 0, 64, 16, 64 };
    tl_graph graph = graph_of(three);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_env env = silent_env();
        tl_plan plan = placed(offsets, rows[i].blocks, 2), copy;
        tl_report report;
        assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, rows[i].says)) fail_msg("row %d: %s", (int)i, env.error.text);
        assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_ERROR_INVALID_ARG);
        assert_true(is_zero(&copy, sizeof copy));
        plan.blocks = NULL;
        assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_simulate_plan: block_count: must be the number of blocks");
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void no_allocation_crosses_a_block(void **state) {
    static const tl_plan_block blocks[2] = { { 0, 64, 0, 0, 0 }, { 64, 48, 0, 0, 0 } };
    static const uint64_t rows[3][4] = { { 0, 48, 16, 64 }, { 0, 64, 16, 96 }, { 0, 64, 112, 64 } };
    tl_graph graph = graph_of(three);
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        tl_env env = silent_env();
        tl_plan plan = placed(rows[i], blocks, 2);
        uint64_t bytes[2] = { 7, 7 };
        tl_report report;
        assert_int_equal(simulate(&env, &graph, &plan, bytes, &report), TL_ERROR_INVALID_PLAN);
        assert_non_null(strstr(env.error.text, "offsets: an allocation is not inside of one block"));
        assert_true(bytes[0] == 0 && bytes[1] == 0);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// -- what steps move --

static void lifetimes_say_what_is_moved(void **state) {
    static const struct { tl_use use; int32_t node, occurrence; uint64_t moved; } rows[] = {
        { TL_USE_INPUT, 0, 0, 8 + 8 },               // read by F and B of 1
        { TL_USE_OUTPUT, 1, 0, 32 + 32 },            // written, then overwritten in place by 2
        { TL_USE_SAVED, 1, 0, 16 + 16 }, { TL_USE_SCRATCH, 1, 0, 4 },
        { TL_USE_OUTPUT, 2, 0, 32 + 32 + 32 + 32 },  // written, read by F 3, spilled, and read by B 2 after that
        { TL_USE_OUTPUT, 3, 0, 4 }, { TL_USE_HOST, 2, 0, 32 + 32 }, { TL_USE_OUTPUT, 2, 1, 32 + 32 + 32 },
        { TL_USE_GRADIENT, 3, 0, 4 + 4 }, { TL_USE_GRADIENT, 2, 0, 32 + 32 }, { TL_USE_GRADIENT, 1, 0, 32 + 32 },
    };
    tl_graph graph = graph_of(
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
        "node 1 a conv fwd=3 bwd=5 out=32 needs=in in=0 saved=16 fwork=2\n"
        "node 2 b relu fwd=1 bwd=2 out=32 needs=out in=1 inplace=0\n"
        "node 3 c ce fwd=1 bwd=1 out=4 needs=in in=2\n");
    tl_plan plan = schedule_of("S 1\nI 2\nF 3\nO 2\nW 2\nL 2\nW 2\nB 3\nB 2\nB 1\n");
    tl_lifetimes lifetimes;
    int32_t i;
    size_t k;
    (void)state;
    assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lifetimes), TL_OK);
    for (i = 0; i < lifetimes.count; i++) {
        const tl_lifetime *l = &lifetimes.items[i];
        uint64_t moved = UINT64_MAX;
        for (k = 0; k < sizeof rows / sizeof rows[0]; k++)
            if (rows[k].use == l->use && rows[k].node == l->node && rows[k].occurrence == l->occurrence) moved = rows[k].moved;
        if (l->use == TL_USE_OUTPUT && l->node == 2 && !l->occurrence) moved = 3 * 32;  // B 2 reads what was fetched
        if (moved != l->moved_bytes)
            fail_msg("%s %d #%d: %d moved, %d expected", tl_name_use(l->use), (int)l->node, (int)l->occurrence, (int)l->moved_bytes, (int)moved);
    }
    tl_free_lifetimes(NULL, &lifetimes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- places --

// What the report says, worked out again from the lifetimes: each allocation in one block of its bank, no two over each
// other, blocks as large as what is in them. cost: 0 = moved bytes are free.
static void assert_places_hold(const tl_graph *graph, const tl_plan *plan, const tl_places_desc *desc, const tl_places_report *report) {
    tl_lifetimes lives;
    uint64_t high[64] = { 0 }, banks[TL_MOST_BANKS] = { 0 }, cost = 0, sum = 0;
    uint64_t alignment = plan->alignment_bytes ? plan->alignment_bytes : 1;
    int32_t i, k;
    tl_env env = silent_env();
    if (tl_find_lifetimes(&env, graph, plan, &lives)) fail_msg("%s", env.error.text);
    assert_true(plan->block_count <= 64);
    for (i = 0; i < lives.count; i++) {
        const tl_lifetime *a = &lives.items[i];
        const tl_plan_block *block = a->block < 0 ? NULL : &plan->blocks[a->block];
        uint64_t end = a->offset + a->bytes;
        assert_true(a->offset % alignment == 0);
        if (block) {
            assert_true(block->bank == a->bank && block->tier == (a->use == TL_USE_HOST));
            assert_true(a->offset >= block->offset && end <= block->offset + block->bytes);
            if (desc->block_bytes) assert_true(block->bytes <= desc->block_bytes);
            end = (end - block->offset + alignment - 1) / alignment * alignment;
            if (end > high[a->block]) high[a->block] = end;
        }
        if (a->use != TL_USE_HOST && desc->bank_count) cost += a->moved_bytes * desc->banks[a->bank].price;
        for (k = 0; k < i; k++) {
            const tl_lifetime *b = &lives.items[k];
            if ((a->use == TL_USE_HOST) != (b->use == TL_USE_HOST) || b->end_step <= a->first_step || a->end_step <= b->first_step) continue;
            assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
        }
    }
    for (k = 0; k < plan->block_count; k++) {
        assert_int_equal(high[k], plan->blocks[k].bytes);
        if (plan->blocks[k].tier) continue;
        banks[plan->blocks[k].bank] += high[k];
        sum += high[k];
    }
    if (plan->block_count && !plan->blocks[0].tier) assert_memory_equal(banks, report->bank_bytes, sizeof banks);
    if (plan->block_count && !plan->blocks[0].tier) assert_int_equal(sum, plan->arena_bytes);
    for (k = 0; k < desc->bank_count; k++)
        if (desc->banks[k].capacity_bytes) assert_true(banks[k] <= desc->banks[k].capacity_bytes);
    assert_true(cost == report->cost && report->bound_cost <= cost && report->bound_bytes <= plan->arena_bytes);
    assert_int_equal(report->block_count, plan->block_count);
    tl_free_lifetimes(NULL, &lives);
}

// A plan of a random graph: of all results, or within a budget, now and then with copies to a host.
static int random_planned(tl_env *env, tl_random *random, tl_graph *graph, tl_plan *plan) {
    tl_remat_desc remat;
    assert_int_equal(random_graph(env, random, random_count(random, 3, 24), graph), TL_OK);
    memset(&remat, 0, sizeof remat);
    remat.graph = graph;
    remat.inference = random_chance(random, 25);
    remat.work_limit = 20000;
    if (random_chance(random, 40)) return tl_plan_keep_all(env, graph, remat.inference, plan) == TL_OK;
    remat.budget_bytes = 1;
    remat.host_budget_bytes = random_chance(random, 50) ? UINT64_C(1) << 40 : 0;
    {
        tl_remat_report report;
        if (tl_plan_remat(env, &remat, plan, &report) != TL_ERROR_INFEASIBLE) { tl_free_plan(env, plan); return 0; }
        remat.budget_bytes = report.least_budget_bytes + tl_next_random_below(random, report.least_budget_bytes + 1);
        return tl_plan_remat(env, &remat, plan, &report) == TL_OK;
    }
}

static uint64_t largest_allocation(const tl_graph *graph, const tl_plan *plan) {
    tl_lifetimes lives;
    uint64_t largest = 1;
    int32_t i;
    assert_int_equal(tl_find_lifetimes(NULL, graph, plan, &lives), TL_OK);
    for (i = 0; i < lives.count; i++)
        if (lives.items[i].bytes > largest) largest = lives.items[i].bytes;
    tl_free_lifetimes(NULL, &lives);
    return largest;
}

static void random_plans_keep_to_banks_and_blocks(void **state) {
    tl_random random = { 11 };
    long round, cut = 0, many = 0, refused = 0, proven = 0, host = 0;
    (void)state;
    for (round = 0; round < scaled(300); round++) {
        static const uint64_t alignments[] = { 0, 1, 4, 16 };
        tl_env env = silent_env();
        tl_bank banks[4];
        tl_places_desc desc;
        tl_places_report report;
        tl_device device = { 0 };
        tl_graph graph;
        tl_plan plan;
        tl_result result;
        uint64_t largest;
        int32_t k;
        if (!random_planned(&env, &random, &graph, &plan)) { tl_free_graph(&env, &graph); continue; }
        largest = largest_allocation(&graph, &plan);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.work_limit = 20000;
        device.alignment_bytes = alignments[tl_next_random_below(&random, 4)];
        desc.device = &device;
        if (random_chance(&random, 60)) desc.block_bytes = (largest + 15) / 16 * 16 + tl_next_random_below(&random, 4 * largest);
        if (random_chance(&random, 60)) {
            desc.banks = banks;
            desc.bank_count = random_count(&random, 1, 4);
            for (k = 0; k < desc.bank_count; k++) {
                banks[k].capacity_bytes = k + 1 < desc.bank_count ? 1 + tl_next_random_below(&random, 3 * largest) : 0;
                banks[k].price = 1 + (uint64_t)k * tl_next_random_below(&random, 4);
                banks[k].alignment = alignments[tl_next_random_below(&random, 4)];
            }
        }
        result = tl_plan_places(&env, &desc, &plan, &report);
        if (result == TL_ERROR_INFEASIBLE) refused++;
        else if (result) fail_msg("round %ld: %s", round, env.error.text);
        else assert_places_hold(&graph, &plan, &desc, &report);
        cut += !result && desc.block_bytes && plan.block_count > 1;
        many += !result && desc.bank_count > 1;
        host += !result && plan.block_count && plan.blocks[plan.block_count - 1].tier;
        proven += !result && report.proven;
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    print_message("%ld plans cut, %ld in several banks, %ld with blocks on the host, %ld proven, %ld refused\n", cut, many, host, proven,
                  refused);
    assert_true(is_thinned() || (cut > 30 && many > 30 && host > 0 && refused < round / 10));
}

// Every offset of every allocation: blocks of `cut` bytes, allocation k in any block up to one more than those in use.
typedef struct tries {
    const tl_lifetimes *lives;
    uint64_t cut, best, offset[16], high[16];
    int32_t block[16];
} tries;

static void try_places(tries *t, int32_t k, int32_t used) {
    const tl_lifetime *a = &t->lives->items[k];
    uint64_t sum = 0, at;
    int32_t b, i;
    for (b = 0; b < used; b++) sum += t->high[b];
    if (sum >= t->best) return;
    if (k == t->lives->count) { t->best = sum; return; }
    for (b = 0; b <= used; b++)
        for (at = 0; at + a->bytes <= t->cut; at++) {
            uint64_t high = t->high[b];
            int fits = a->over < 0 || (t->block[a->over] == b && t->offset[a->over] == at);
            for (i = 0; i < k && fits; i++) {
                const tl_lifetime *c = &t->lives->items[i];
                fits = t->block[i] != b || c->end_step <= a->first_step || a->end_step <= c->first_step || t->offset[i] + c->bytes <= at ||
                       at + a->bytes <= t->offset[i];
            }
            if (!fits) continue;
            t->block[k] = b;
            t->offset[k] = at;
            if (at + a->bytes > high) t->high[b] = at + a->bytes;
            try_places(t, k + 1, b == used ? used + 1 : used);
            t->high[b] = high;
        }
}

static void small_plans_are_cut_as_well_as_any(void **state) {
    tl_random random = { 3 };
    long round, same = 0, tried = 0, cut = 0;
    static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    uint64_t above = 0, all = 0;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_places_desc desc;
        tl_places_report report;
        tl_node_desc node;
        tl_lifetimes lives;
        tries t;
        uint64_t bytes;
        int32_t id, count = random_count(&random, 3, 6);
        tl_init_graph(&graph);
        for (id = 0; id < count; id++) {
            tl_tensor inputs[2];
            memset(&node, 0, sizeof node);
            node.name = names[id];
            node.op = id ? "op" : "input";
            bytes = 1 + tl_next_random_below(&random, 5);
            node.output_bytes = &bytes;
            node.output_count = 1;
            node.inputs = inputs;
            node.input_count = id ? 1 + (id > 1 && random_chance(&random, 50)) : 0;
            inputs[0].node = id - 1;
            inputs[1].node = id > 1 ? (int32_t)tl_next_random_below(&random, (uint64_t)id - 1) : 0;
            inputs[0].output = inputs[1].output = 0;
            node.fwork_bytes = id && random_chance(&random, 40) ? 1 + tl_next_random_below(&random, 3) : 0;
            assert_int_equal(tl_add_node(&env, &graph, &node, NULL), TL_OK);
        }
        if (tl_plan_keep_all(&env, &graph, 1, &plan)) fail_msg("%s", env.error.text);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.block_bytes = largest_allocation(&graph, &plan) + tl_next_random_below(&random, 4);
        if (tl_plan_places(&env, &desc, &plan, &report)) fail_msg("%s", env.error.text);
        assert_places_hold(&graph, &plan, &desc, &report);
        assert_int_equal(tl_find_lifetimes(&env, &graph, &plan, &lives), TL_OK);
        if (lives.count <= 10) {
            memset(&t, 0, sizeof t);
            t.lives = &lives;
            t.cut = desc.block_bytes;
            t.best = plan.arena_bytes + 1;
            try_places(&t, 0, 0);
            tried++;
            cut += plan.block_count > 1;
            assert_true(t.best <= plan.arena_bytes);
            if (report.proven) assert_int_equal(t.best, plan.arena_bytes);
            same += t.best == plan.arena_bytes;
            above += plan.arena_bytes - t.best;
            all += t.best;
        }
        tl_free_lifetimes(&env, &lives);
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    print_message("%ld plans, %ld of them cut, %ld take the least, together %.3f %% above it\n", tried, cut, same,
                  100.0 * (double)above / (double)all);
    assert_true(is_thinned() || (cut > tried / 4 && same * 100 >= tried * 80));
}

static void banks_and_cuts_that_do_not_hold_a_plan_are_refused(void **state) {
    static const struct { tl_bank banks[2]; int32_t bank_count; uint64_t block_bytes; tl_result code; const char *says; } rows[] = {
        { { { 0, 1, 0 }, { 0, 0, 0 } }, -1, 0, TL_ERROR_INVALID_ARG, "tl_plan_places: bank_count: must be 0 to 8, the number of banks" },
        { { { 0, 1, 0 }, { 0, 0, 0 } }, TL_MOST_BANKS + 1, 0, TL_ERROR_INVALID_ARG, "bank_count: must be 0 to 8" },
        { { { 0, 1, 3 }, { 0, 0, 0 } }, 1, 0, TL_ERROR_INVALID_ARG, "tl_plan_banks: " },
        { { { 0, 1, 64 }, { 0, 0, 0 } }, 1, 32, TL_ERROR_INVALID_ARG, "block_bytes: 32 bytes are less than the alignment, 64" },
        { { { 0, 1, 0 }, { 0, 0, 0 } }, 0, 8, TL_ERROR_INVALID_ARG, "block_bytes: 8 bytes are less than the alignment, 16" },
        { { { 0, 1, 0 }, { 0, 0, 0 } }, 0, 31, TL_ERROR_INFEASIBLE,
          "tl_plan_places: block_bytes: an allocation of node 1 (a) takes 32 bytes, a block has 16" },
        { { { 16, 1, 0 }, { 31, 2, 0 } }, 2, 0, TL_ERROR_INFEASIBLE, "tl_plan_banks: " },
        { { { 64, 1, 0 }, { 0, UINT64_MAX, 0 } }, 2, 0, TL_ERROR_OVERFLOW, "tl_plan_banks: " },
    };
    tl_graph graph = graph_of(three);
    tl_device device = { 0 };
    tl_places_report report;
    size_t i;
    (void)state;
    device.alignment_bytes = 16;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_env env = silent_env();
        tl_plan plan = schedule_of(three_steps), before;
        tl_places_desc desc;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        plan.inference = 1;
        desc.graph = &graph;
        desc.device = &device;
        desc.banks = rows[i].banks;
        desc.bank_count = rows[i].bank_count;
        desc.block_bytes = rows[i].block_bytes;
        before = plan;
        result = tl_plan_places(&env, &desc, &plan, &report);
        if (result != rows[i].code || !strstr(env.error.text, rows[i].says)) fail_msg("row %d: %d, %s", (int)i, (int)result, env.error.text);
        assert_memory_equal(&before, &plan, sizeof plan);
        desc.banks = NULL;
        if (desc.bank_count) assert_int_equal(tl_plan_places(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void placing_survives_every_failed_allocation(void **state) {
    static const tl_bank banks[2] = { { 48, 1, 0 }, { 0, 5, 0 } };
    tl_graph graph = graph_of(three);
    long at;
    (void)state;
    for (at = 0;; at++) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, -1);
        tl_places_desc desc;
        tl_plan plan;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.banks = banks;
        desc.bank_count = 2;
        desc.block_bytes = 32;
        assert_int_equal(tl_plan_keep_all(&env, &graph, 1, &plan), TL_OK);
        f.count = 0;
        f.fail_at = at;
        result = tl_plan_places(&env, &desc, &plan, NULL);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        tl_free_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    tl_free_graph(NULL, &graph);
}

// A bank whose blocks do not hold what was chosen for it gets less: beside a bank without a limit there are places.
static void banks_that_are_cut_get_what_their_blocks_hold(void **state) {
    tl_random random = { 902 };
    int i, used = 0;
    (void)state;
    for (i = 0; i < 24; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_places_desc desc;
        tl_places_report report;
        tl_bank banks[2];
        uint64_t bytes[40], largest = 0;
        tl_chain_desc chain;
        int k;
        memset(&graph, 0, sizeof graph);
        memset(&chain, 0, sizeof chain);
        memset(&desc, 0, sizeof desc);
        memset(banks, 0, sizeof banks);
        for (k = 0; k < 40; k++) {
            bytes[k] = 64 + 64 * tl_next_random_below(&random, 13);
            if (bytes[k] > largest) largest = bytes[k];
        }
        chain.layer_count = 40;
        chain.input_bytes = 64;
        chain.output_bytes = bytes;
        assert_int_equal(tl_add_chain(&env, &graph, &chain), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
        banks[0].capacity_bytes = 1000 + 500 * (uint64_t)i;
        banks[0].price = 1;
        banks[1].price = 10;
        desc.graph = &graph;
        desc.banks = banks;
        desc.bank_count = 2;
        desc.block_bytes = largest + 70;
        desc.work_limit = 1000000;
        if (tl_plan_places(&env, &desc, &plan, &report)) fail_msg("%d: %s", i, env.error.text);
        assert_true(report.bank_bytes[0] <= banks[0].capacity_bytes && report.cost >= report.bound_cost);
        used += report.bank_bytes[0] > banks[0].capacity_bytes / 2;
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(used > 12);
}

// -- copies, text and tables --

static void copies_and_tables_have_the_blocks(void **state) {
    static const uint64_t offsets[4] = { 0, 64, 16, 64 };
    static const tl_plan_block blocks[3] = { { 0, 64, 0, 0, 0 }, { 64, 48, 0, 3, 0 }, { 112, 16, 0, 3, 0 } };
    static const char *const parts[] = {
        "#define NET_ARENA_BYTES 64\n", "#define NET_BLOCK_0_BYTES 32\n", "#define NET_BLOCK_1_BYTES 32\n", "#define NET_BLOCK_2_BYTES 0\n",
        "#define NET_BANK_0_BYTES 32\n#define NET_BANK_3_BYTES 32\n", "#define NET_BLOCKS 3\n",
        "#define NET_INPUT_X_OFFSET 0\n#define NET_INPUT_X_BLOCK 0\n#define NET_INPUT_X_BYTES 16\n",
        "#define NET_RESULT_C_OFFSET 0\n#define NET_RESULT_C_BLOCK 1\n",
        "static const tl_plan_block net_blocks[3] = {\n    { 0, 64, 0, 0, 0 },\n    { 64, 48, 0, 3, 0 },\n    { 112, 16, 0, 3, 0 },\n};\n",
        "    16,  // alignment_bytes\n    NULL, 0,\n    0,  // slot_count\n    net_blocks, 3,\n    0,  // in_flight\n    NULL,  // narrow\n};\n",
    };
    tl_graph graph = graph_of(three);
    tl_plan plan = placed(offsets, blocks, 3), copy;
    memory_sink m, words;
    tl_report report;
    tl_env env = silent_env();
    long at;
    size_t i;
    (void)state;
    assert_int_equal(tl_copy_plan(NULL, &plan, &copy), TL_OK);
    tl_free_plan(NULL, &plan);
    assert_true(copy.block_count == 3 && copy.blocks != blocks);
    assert_memory_equal(copy.blocks, blocks, sizeof blocks);
    assert_int_equal(simulate(NULL, &graph, &copy, NULL, &report), TL_OK);
    if (tl_write_plan_table(&env, &graph, &copy, "net", sink_of(&m, -1))) fail_msg("%s", env.error.text);
    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(m.text, parts[i])) fail_msg("%s is not in\n%s", parts[i], m.text);
    free(m.text);
    assert_int_equal(tl_explain_plan(NULL, &graph, &copy, sink_of(&words, -1)), TL_OK);
    assert_non_null(strstr(words.text, "arena: 64 bytes in 3 blocks of 2 banks\n"));
    free(words.text);
    for (at = 0;; at++) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env failing = failing_env(&f, at);
        tl_result result = tl_write_plan_table(&failing, &graph, &copy, "net", sink_of(&m, -1));
        free(m.text);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
    }
    tl_free_plan(NULL, &copy);
    tl_free_graph(NULL, &graph);
}

// Addresses between blocks are part of the axis: everything is drawn inside of it.
static void pictures_show_blocks_that_lie_apart(void **state) {
    static const uint64_t offsets[4] = { 0, 128, 16, 128 };
    static const tl_plan_block blocks[2] = { { 0, 64, 0, 0, 0 }, { 128, 64, 0, 1, 0 } };
    tl_graph graph = graph_of(three);
    tl_plan plan = placed(offsets, blocks, 2);
    tl_env env = silent_env();
    memory_sink m;
    (void)state;
    if (tl_write_plan_svg(&env, &graph, &plan, NULL, NULL, sink_of(&m, -1))) fail_msg("%s", env.error.text);
    if (!strstr(m.text, " at 128\n")) fail_msg("%s", strstr(m.text, "<title>"));
    assert_null(strstr(m.text, "y=\"-"));
    assert_null(strstr(m.text, "height=\"-"));
    free(m.text);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block_has_a_high_water_mark),
        cmocka_unit_test(host_copies_have_blocks_of_their_own),
        cmocka_unit_test(blocks_that_no_plan_can_have_are_refused),
        cmocka_unit_test(no_allocation_crosses_a_block),
        cmocka_unit_test(lifetimes_say_what_is_moved),
        cmocka_unit_test(random_plans_keep_to_banks_and_blocks),
        cmocka_unit_test(small_plans_are_cut_as_well_as_any),
        cmocka_unit_test(banks_and_cuts_that_do_not_hold_a_plan_are_refused),
        cmocka_unit_test(placing_survives_every_failed_allocation),
        cmocka_unit_test(banks_that_are_cut_get_what_their_blocks_hold),
        cmocka_unit_test(copies_and_tables_have_the_blocks),
        cmocka_unit_test(pictures_show_blocks_that_lie_apart),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
