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

// -- simulation --

#define STAGES 32

typedef struct times { uint64_t forward[STAGES], backward[STAGES], out[STAGES], activation[STAGES]; } times;

static tl_pipeline_report simulated(tl_pipeline_desc *desc, const times *t) {
    tl_env env = silent_env();
    tl_pipeline_report report;
    desc->forward_ns = t->forward;
    desc->backward_ns = t->backward;
    desc->output_bytes = t->out;
    desc->activation_bytes = t->activation;
    desc->keep_events = 1;
    if (tl_simulate_pipeline(&env, desc, &report)) fail_msg("%s", env.error.text);
    return report;
}

static times equal_times(uint64_t forward, uint64_t backward) {
    times t;
    int i;
    memset(&t, 0, sizeof t);
    for (i = 0; i < STAGES; i++) { t.forward[i] = forward; t.backward[i] = backward; t.activation[i] = 1; }
    return t;
}

static int is_ratio(double a, double b) { return a > b - 1e-12 && a < b + 1e-12; }

static void equal_stages_have_the_bubble_of_the_formula(void **state) {
    int32_t ranks, m, chunks;
    (void)state;
    for (ranks = 1; ranks <= 6; ranks++)
        for (m = 1; m <= 24; m++) {
            tl_pipeline_desc desc = desc_of(TL_PIPELINE_1F1B, ranks, 0, m);
            times t = equal_times(60, 120);
            tl_pipeline_report report = simulated(&desc, &t);
            assert_true(report.total_ns == (uint64_t)(m + ranks - 1) * 180);
            assert_true(is_ratio(report.bubble_ratio, (double)(ranks - 1) / (m + ranks - 1)));
            tl_free_pipeline_report(NULL, &report);
            desc.kind = TL_PIPELINE_GPIPE;
            report = simulated(&desc, &t);
            assert_true(report.total_ns == (uint64_t)(m + ranks - 1) * 180);
            tl_free_pipeline_report(NULL, &report);
            for (chunks = 2; chunks <= 4; chunks++) {   // the same network in chunks: the bubble is divided by their number
                if (m % ranks) continue;
                desc = desc_of(TL_PIPELINE_INTERLEAVED, ranks, chunks, m);
                t = equal_times(60 / (uint64_t)chunks, 120 / (uint64_t)chunks);
                report = simulated(&desc, &t);
                assert_true(report.total_ns == (uint64_t)m * 180 + (uint64_t)(ranks - 1) * 180 / (uint64_t)chunks);
                assert_true(report.bubble_ns == (uint64_t)ranks * (uint64_t)(ranks - 1) * 180 / (uint64_t)chunks);
                tl_free_pipeline_report(NULL, &report);
            }
        }
}

// All micro-batches forward through a flow line take sum + (m - 1) * largest, whatever the stages and links.
static void forwards_are_a_flow_line(void **state) {
    tl_random random = { 7 };
    int round;
    (void)state;
    for (round = 0; round < 500; round++) {
        int32_t ranks = 1 + (int32_t)tl_next_random_below(&random, 8), m = 1 + (int32_t)tl_next_random_below(&random, 12), i;
        tl_pipeline_desc desc = desc_of(TL_PIPELINE_GPIPE, ranks, 0, m);
        times t = equal_times(0, 0);
        tl_link link = { 1000000000, 3 };
        tl_pipeline_report report;
        uint64_t sum = 0, largest = 0;
        for (i = 0; i < ranks; i++) {
            t.forward[i] = tl_next_random_below(&random, 100);
            t.out[i] = tl_next_random_below(&random, 150);
            sum += t.forward[i] + (i + 1 < ranks ? t.out[i] + 3 : 0);
            if (t.forward[i] > largest) largest = t.forward[i];
            if (i + 1 < ranks && t.out[i] + 3 > largest) largest = t.out[i] + 3;
        }
        desc.link = &link;
        report = simulated(&desc, &t);
        for (i = 0; i < m; i++)
            assert_true(report.events[(ranks - 1) * report.event_count + i].end_ns <= sum + (uint64_t)i * largest);
        assert_true(report.events[(ranks - 1) * report.event_count + m - 1].end_ns == sum + (uint64_t)(m - 1) * largest);
        tl_free_pipeline_report(NULL, &report);
    }
}

// -- simulation, by relaxation --
//
// The same rules as equations of all starts, ends and arrivals, which are raised until all hold.

typedef struct relaxed { uint64_t end[STAGES][EVENTS], sent[STAGES][EVENTS]; } relaxed;

static relaxed relax;

static int raise_to(uint64_t *value, uint64_t least_value) {
    if (*value >= least_value) return 0;
    *value = least_value;
    return 1;
}

// What a call of a rank waits for: the index of the call on another rank, or on this one; -1 = nothing.
static int32_t source_of(const tl_pipeline_desc *desc, const tl_pipeline_event *all, int32_t rank, int32_t index, int32_t *from) {
    int32_t count = tl_count_pipeline_events(desc), ranks = desc->rank_count, i;
    int32_t stages = ranks * (desc->chunk_count ? desc->chunk_count : 1);
    const tl_pipeline_event *event = &all[rank * count + index];
    int32_t stage = event->chunk * ranks + rank, wanted = event->is_backward ? stage + 1 : stage - 1;
    int is_backward = event->is_backward && wanted < stages;
    if (event->is_backward && wanted == stages) wanted = stage;
    if (wanted < 0) return -1;
    *from = wanted % ranks;
    for (i = 0; i < count; i++) {
        const tl_pipeline_event *other = &all[*from * count + i];
        if (other->micro_batch == event->micro_batch && other->is_backward == is_backward && other->chunk == wanted / ranks) return i;
    }
    fail();
    return -1;
}

static uint64_t relaxed_total(const tl_pipeline_desc *desc, const times *t, const tl_pipeline_event *all, const tl_link *link) {
    int32_t count = tl_count_pipeline_events(desc), ranks = desc->rank_count, rank, i, k;
    int32_t stages = ranks * (desc->chunk_count ? desc->chunk_count : 1);
    uint64_t total = 0;
    int changed = 1;
    memset(&relax, 0, sizeof relax);
    while (changed)
        for (changed = 0, rank = 0; rank < ranks; rank++)
            for (i = 0; i < count; i++) {
                const tl_pipeline_event *event = &all[rank * count + i];
                int32_t stage = event->chunk * ranks + rank, from = 0, source = source_of(desc, all, rank, i, &from);
                int32_t boundary = event->is_backward ? stage - 1 : stage, to = event->is_backward ? stage - 1 : stage + 1;
                uint64_t start = i ? relax.end[rank][i - 1] : 0, arrives = 0;
                if (source >= 0) arrives = from == rank ? relax.end[from][source] : relax.sent[from][source];
                if (arrives > start) start = arrives;
                changed |= raise_to(&relax.end[rank][i], start + (event->is_backward ? t->backward[stage] : t->forward[stage]));
                if (to < 0 || to == stages) continue;
                start = relax.end[rank][i];
                for (k = i - 1; k >= 0; k--) {      // the transfer before it on the same channel
                    if (all[rank * count + k].is_backward != event->is_backward || !relax.sent[rank][k]) continue;
                    if (relax.sent[rank][k] > start) start = relax.sent[rank][k];
                    break;
                }
                changed |= raise_to(&relax.sent[rank][i], start + (link ? t->out[boundary] + link->latency_ns : 0));
            }
    for (rank = 0; rank < ranks; rank++) if (relax.end[rank][count - 1] > total) total = relax.end[rank][count - 1];
    return total;
}

static void random_pipelines_agree_with_the_equations(void **state) {
    tl_random random = { 11 };
    int round;
    (void)state;
    for (round = 0; round < scaled(600); round++) {
        int32_t ranks = 1 + (int32_t)tl_next_random_below(&random, 5), m = 1 + (int32_t)tl_next_random_below(&random, 9), i, k;
        int32_t kind = (int32_t)tl_next_random_below(&random, 3), chunks = kind == TL_PIPELINE_INTERLEAVED ? 2 + round % 2 : 1;
        tl_pipeline_desc desc = desc_of((tl_pipeline)kind, ranks, chunks, chunks > 1 ? ranks * (1 + m % 3) : m);
        times t = equal_times(0, 0);
        tl_link link = { 1000000000, 0 };
        tl_pipeline_report report;
        for (i = 0; i < ranks * chunks; i++) {
            t.forward[i] = 1 + tl_next_random_below(&random, 50);
            t.backward[i] = 1 + tl_next_random_below(&random, 90);
            t.out[i] = tl_next_random_below(&random, round % 3 ? 20 : 200);
            t.activation[i] = tl_next_random_below(&random, 5);
        }
        link.latency_ns = 1 + tl_next_random_below(&random, 9);
        desc.link = round % 4 ? &link : NULL;
        report = simulated(&desc, &t);
        assert_true(report.total_ns == relaxed_total(&desc, &t, report.events, desc.link));
        if (chunks == 1) {                  // the stages before one pass the first micro-batch on, and the last one back
            uint64_t before = 0;
            for (i = 0; i < ranks; i++) {
                assert_true(report.total_ns >= before + (uint64_t)m * (t.forward[i] + t.backward[i]));
                before += t.forward[i] + t.backward[i];
            }
            assert_true(report.total_ns >= before);
        }
        for (i = 0; i < ranks; i++) {       // figures of a rank, from its events
            const tl_pipeline_event *events = &report.events[i * report.event_count];
            uint64_t busy = 0, bytes = 0, peak = 0;
            int32_t flying = 0, most = 0;
            for (k = 0; k < report.event_count; k++) {
                uint64_t held = t.activation[events[k].chunk * ranks + i];
                assert_true(relax.end[i][k] == events[k].end_ns && (!k || events[k].start_ns >= events[k - 1].end_ns));
                busy += events[k].end_ns - events[k].start_ns;
                if (events[k].is_backward) { flying--; bytes -= held; } else { flying++; bytes += held; }
                if (flying > most) most = flying;
                if (bytes > peak) peak = bytes;
            }
            assert_true(busy == report.ranks[i].busy_ns && peak == report.ranks[i].peak_bytes);
            assert_int_equal(most, report.ranks[i].in_flight_count);
            if (kind == TL_PIPELINE_1F1B) assert_int_equal(most, least(m, ranks - i));
        }
        tl_free_pipeline_report(NULL, &report);
    }
}

static void an_allocation_that_fails_is_an_error(void **state) {
    tl_pipeline_desc desc = desc_of(TL_PIPELINE_INTERLEAVED, 2, 2, 4);
    times t = equal_times(1, 2);
    int at;
    (void)state;
    desc.forward_ns = t.forward;
    desc.keep_events = 1;
    for (at = 0; ; at++) {
        failing_alloc f = {0, 0, 0, 0};
        tl_env env = failing_env(&f, at);
        tl_pipeline_report report;
        tl_result result = tl_simulate_pipeline(&env, &desc, &report);
        if (result) assert_true(result == TL_ERROR_NO_MEMORY && is_zero(&report, sizeof report));
        tl_free_pipeline_report(&env, &report);
        assert_int_equal(f.live, 0);
        if (f.count <= at) { assert_int_equal(result, TL_OK); break; }
    }
    assert_true(at >= 6);
}

static void times_that_do_not_fit_are_refused(void **state) {
    tl_pipeline_desc desc = desc_of(TL_PIPELINE_1F1B, 2, 0, 4);
    times t = equal_times(1, 2);
    tl_pipeline_report report;
    tl_link link = { 1, 0 };
    (void)state;
    desc.forward_ns = t.forward;
    t.forward[1] = UINT64_MAX / 4;
    assert_int_equal(tl_simulate_pipeline(NULL, &desc, &report), TL_ERROR_OVERFLOW);
    assert_true(is_zero(&report, sizeof report));
    t.forward[1] = 1;
    t.out[0] = UINT64_MAX / 8;
    desc.output_bytes = t.out;
    desc.link = &link;
    assert_int_equal(tl_simulate_pipeline(NULL, &desc, &report), TL_ERROR_OVERFLOW);
    link.bytes_per_second = 0;
    assert_int_equal(tl_simulate_pipeline(NULL, &desc, &report), TL_ERROR_INVALID_ARG);
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
        cmocka_unit_test(equal_stages_have_the_bubble_of_the_formula),
        cmocka_unit_test(forwards_are_a_flow_line),
        cmocka_unit_test(random_pipelines_agree_with_the_equations),
        cmocka_unit_test(an_allocation_that_fails_is_an_error),
        cmocka_unit_test(times_that_do_not_fit_are_refused),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(every_kind_has_a_name_that_parses),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
