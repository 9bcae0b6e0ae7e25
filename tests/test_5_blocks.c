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

#define SOAK_TIMES(count) ((count) * (getenv("SOAK") ? 20 : 1))

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
        "    16,  // alignment_bytes\n    net_blocks, 3,\n};\n",
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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block_has_a_high_water_mark),
        cmocka_unit_test(host_copies_have_blocks_of_their_own),
        cmocka_unit_test(blocks_that_no_plan_can_have_are_refused),
        cmocka_unit_test(no_allocation_crosses_a_block),
        cmocka_unit_test(lifetimes_say_what_is_moved),
        cmocka_unit_test(copies_and_tables_have_the_blocks),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
