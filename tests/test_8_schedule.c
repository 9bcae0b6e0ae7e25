// [8] PARALLEL: what each rank does, in which order, and when.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

#define EVENTS 1024

static tl_pipeline_desc desc_of(tl_pipeline kind, int32_t ranks, int32_t chunks, int32_t micro_batches) {
    tl_pipeline_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = kind;
    desc.rank_count = ranks;
    desc.chunk_count = chunks;
    desc.micro_batch_count = micro_batches;
    return desc;
}

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

// -- orders --

// Every micro-batch goes through every chunk once there and once back, backwards of a chunk in rising order. Returns the
// most that are in flight at a time.
static int32_t check_order(const tl_pipeline_desc *desc, const tl_pipeline_event *events) {
    int32_t count = tl_count_pipeline_events(desc), chunks = desc->chunk_count ? desc->chunk_count : 1;
    int32_t flying = 0, most = 0, i, forwards[8] = {0}, backwards[8] = {0};
    for (i = 0; i < count; i++) {
        const tl_pipeline_event *event = &events[i];
        int32_t *next = event->is_backward ? backwards : forwards;
        assert_in_range(event->chunk, 0, chunks - 1);
        assert_int_equal(event->micro_batch, next[event->chunk]++);
        assert_true(backwards[event->chunk] <= forwards[event->chunk]);
        flying += event->is_backward ? -1 : 1;
        if (flying > most) most = flying;
        assert_true(!event->start_ns && !event->end_ns);
    }
    for (i = 0; i < chunks; i++) assert_true(forwards[i] == desc->micro_batch_count && backwards[i] == forwards[i]);
    return most;
}

static void a_stage_of_1f1b_keeps_no_more_than_the_stages_after_it(void **state) {
    tl_pipeline_event events[EVENTS];
    int32_t ranks, m, rank;
    (void)state;
    for (ranks = 1; ranks <= 7; ranks++)
        for (m = 1; m <= 20; m++)
            for (rank = 0; rank < ranks; rank++) {
                tl_pipeline_desc desc = desc_of(TL_PIPELINE_1F1B, ranks, 0, m);
                assert_int_equal(tl_list_pipeline(NULL, &desc, rank, events), TL_OK);
                assert_int_equal(check_order(&desc, events), least(m, ranks - rank));
                desc.kind = TL_PIPELINE_GPIPE;
                assert_int_equal(tl_list_pipeline(NULL, &desc, rank, events), TL_OK);
                assert_int_equal(check_order(&desc, events), m);
            }
}

static void interleaved_ranks_keep_what_their_lead_says(void **state) {
    tl_pipeline_event events[EVENTS];
    int32_t ranks, chunks, groups, rank;
    (void)state;
    for (ranks = 1; ranks <= 5; ranks++)
        for (chunks = 2; chunks <= 4; chunks++)
            for (groups = 1; groups <= 4; groups++)
                for (rank = 0; rank < ranks; rank++) {
                    tl_pipeline_desc desc = desc_of(TL_PIPELINE_INTERLEAVED, ranks, chunks, groups * ranks);
                    int32_t lead = 2 * (ranks - 1 - rank) + (chunks - 1) * ranks, all = groups * ranks * chunks;
                    assert_int_equal(tl_list_pipeline(NULL, &desc, rank, events), TL_OK);
                    assert_int_equal(check_order(&desc, events), least(lead + 1, all));
                }
}

// The order of rank 1 of 4, 1f1b with 4 micro-batches: two warm up, then turns.
static void an_order_by_hand(void **state) {
    static const char *const calls[] = { "F0", "F1", "F2", "B0", "F3", "B1", "B2", "B3" };
    tl_pipeline_desc desc = desc_of(TL_PIPELINE_1F1B, 4, 0, 4);
    tl_pipeline_event events[8];
    int i;
    (void)state;
    assert_int_equal(tl_count_pipeline_events(&desc), 8);
    assert_int_equal(tl_list_pipeline(NULL, &desc, 1, events), TL_OK);
    for (i = 0; i < 8; i++) {
        assert_int_equal(events[i].is_backward, calls[i][0] == 'B');
        assert_int_equal(events[i].micro_batch, calls[i][1] - '0');
    }
}

static void wrong_fields_are_named(void **state) {
    static const struct { tl_pipeline kind; int32_t ranks, chunks, m, rank; const char *text; } rows[] = {
        { TL_PIPELINE_COUNT, 1, 0, 1, 0, "kind" },            { TL_PIPELINE_1F1B, 0, 0, 1, 0, "rank_count" },
        { TL_PIPELINE_1F1B, 1, 2, 1, 0, "chunk_count" },      { TL_PIPELINE_INTERLEAVED, 1, 1, 1, 0, "chunk_count" },
        { TL_PIPELINE_1F1B, 1, 0, 0, 0, "micro_batch_count" }, { TL_PIPELINE_INTERLEAVED, 2, 2, 3, 0, "3 is not a multiple of 2" },
        { TL_PIPELINE_1F1B, 2, 0, 1, 2, "rank: there" },      { TL_PIPELINE_1F1B, 2, 0, 1, -1, "rank: there" },
        { TL_PIPELINE_1F1B, 1, -1, 1, 0, "chunk_count" },     { TL_PIPELINE_1F1B, 1, 0, INT32_MAX, 0, "31 bits" },
    };
    tl_pipeline_event events[EVENTS];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_pipeline_desc desc = desc_of(rows[i].kind, rows[i].ranks, rows[i].chunks, rows[i].m);
        tl_env env = silent_env();
        assert_true(tl_list_pipeline(&env, &desc, rows[i].rank, events) != TL_OK);
        if (!strstr(env.error.text, rows[i].text)) fail_msg("%s", env.error.text);
    }
}

static void every_kind_has_a_name_that_parses(void **state) {
    int i;
    tl_pipeline kind;
    (void)state;
    for (i = 0; i < TL_PIPELINE_COUNT; i++)
        assert_true(tl_parse_pipeline(tl_name_pipeline((tl_pipeline)i), &kind) && (int)kind == i);
    assert_false(tl_parse_pipeline("zero bubble", &kind));
    assert_string_equal(tl_name_pipeline(TL_PIPELINE_COUNT), "?");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_of_1f1b_keeps_no_more_than_the_stages_after_it),
        cmocka_unit_test(interleaved_ranks_keep_what_their_lead_says),
        cmocka_unit_test(an_order_by_hand),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(every_kind_has_a_name_that_parses),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
