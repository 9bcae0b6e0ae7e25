// [1] CORE: results, errors, allocators, arena, writer, reader, random numbers, number text, JSON.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TLI_NO_BUILTINS  // what compilers without them get is tested here, the builtins by all other programs
#include "../tl_strategy.h"

#include "support/support.h"

#include <float.h>
#include <math.h>

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static tli_word word_of(const char *text) {
    tli_word word;
    word.text = text;
    word.length = strlen(text);
    return word;
}

// -- version, results, errors --

static void version_is_the_one_of_the_macros(void **state) {
    (void)state;
    assert_int_equal(tl_version(), TL_VERSION);
    assert_int_equal(TL_VERSION, TL_VERSION_MAJOR * 10000 + TL_VERSION_MINOR * 100 + TL_VERSION_PATCH);
}

static void every_result_has_a_name_and_an_explanation(void **state) {
    static const char *const names[] = {
        "ok", "not ready", "invalid argument", "no memory", "overflow", "unsupported", "parse error",
        "invalid plan", "infeasible", "over budget", "not found", "stale", "kernel failed",
        "backend failed", "device lost", "corrupt", "mismatch", "i/o error", "peer lost"
    };
    int i, k;
    (void)state;
    assert_int_equal(TL_OK, 0);
    assert_int_equal(TL_RESULT_COUNT, sizeof names / sizeof *names);
    for (i = 0; i < TL_RESULT_COUNT; i++) {
        assert_string_equal(tl_name_result((tl_result)i), names[i]);
        assert_true(strlen(tl_explain_result((tl_result)i)) > 5);
        for (k = 0; k < i; k++)
            assert_string_not_equal(tl_explain_result((tl_result)i), tl_explain_result((tl_result)k));
    }
    assert_string_equal(tl_explain_result(TL_OK), "success");
    assert_string_equal(tl_name_result(TL_RESULT_COUNT), "?");
    assert_string_equal(tl_explain_result(TL_RESULT_COUNT), "?");
    assert_string_equal(tli_name(names, 18, -1), "?");
}

static char logged[300];
static void log_text(void *user, const char *text) { ++*(int *)user; snprintf(logged, sizeof logged, "%s", text); }

static void errors_are_one_sentence_in_the_env_and_in_the_log(void **state) {
    char text[400];
    int count = 0;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    env.log = log_text;
    env.user = &count;
    assert_int_equal(tl_record_error(&env, TL_ERROR_STALE, "tl_x", "key: too old"), TL_ERROR_STALE);
    assert_int_equal(env.error.code, TL_ERROR_STALE);
    assert_string_equal(env.error.text, "tl_x: key: too old");
    assert_string_equal(logged, env.error.text);
    assert_int_equal(count, 1);
    assert_int_equal(tli_fail_line(&env, TL_ERROR_PARSE, TLI_IN(PARSE_SCHEDULE), 12, TLI_RULE(TEXT_AFTER_SUMMARY)),
                     TL_ERROR_PARSE);
    assert_string_equal(env.error.text, "tl_parse_schedule: line 12: text after the summary");
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = 0;
    tl_record_error(&env, TL_ERROR_IO, "tl_x", text);
    assert_int_equal(strlen(env.error.text), sizeof env.error.text - 1);
    assert_int_equal(count, 3);
    assert_int_equal(tl_record_error(NULL, TL_ERROR_IO, "tl_x", text), TL_ERROR_IO);
    env.log = NULL;
    assert_int_equal(tl_record_error(&env, TL_ERROR_IO, "tl_x", text), TL_ERROR_IO);
    assert_int_equal(count, 3);
}

static void memory_for_a_backend_is_zeroed_counted_and_refused_with_null(void **state) {
    failing_alloc f;
    tl_env env;
    unsigned char *memory;
    size_t i;
    (void)state;
    memset(&f, 0, sizeof f);
    env = failing_env(&f, 1);
    memory = (unsigned char *)tl_add_memory(&env, 1000);
    assert_non_null(memory);
    for (i = 0; i < 1000; i++) assert_int_equal(memory[i], 0);
    assert_int_equal(f.live, 1);
    assert_null(tl_add_memory(&env, 1));         // the allocator has none left
    assert_null(tl_add_memory(&env, 0));
    assert_null(tl_add_memory(&env, SIZE_MAX));
    assert_int_equal(f.count, 2);                // neither 0 bytes nor too many were asked for
    tl_free_memory(&env, memory);
    tl_free_memory(&env, NULL);
    assert_int_equal(f.live, 0);
    memory = (unsigned char *)tl_add_memory(NULL, 16);
    assert_non_null(memory);
    tl_free_memory(NULL, memory);
}

static void an_error_of_a_backend_is_recorded_like_one_of_the_library(void **state) {
    int count = 0;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    env.log = log_text;
    env.user = &count;
    assert_int_equal(tl_record_error(&env, TL_ERROR_BACKEND, "copy", "to: overlaps from"), TL_ERROR_BACKEND);
    assert_int_equal(env.error.code, TL_ERROR_BACKEND);
    assert_string_equal(env.error.text, "copy: to: overlaps from");
    assert_string_equal(logged, env.error.text);
    assert_int_equal(count, 1);
    assert_int_equal(tl_record_error(NULL, TL_NOT_READY, "map", "range: is in a frame"), TL_NOT_READY);
}

// -- bytes, checked arithmetic --

static void a_sentence_that_is_too_long_ends_with_a_whole_character(void **state) {
    static const struct { const char *unit; int lead; size_t length; } rows[] = {
        { "z", 0, 247 }, { "\xc3\xb6", 0, 247 }, { "\xc3\xb6", 1, 246 }, { "\xe5\xb1\xa4", 0, 246 }, { "\xe5\xb1\xa4", 1, 247 }, { "\xe5\xb1\xa4", 2, 245 },
        { "\xf0\x9f\x98\x80", 0, 247 }, { "\xf0\x9f\x98\x80", 1, 244 }, { "\xf0\x9f\x98\x80", 2, 245 }, { "\xf0\x9f\x98\x80", 3, 246 },
        { "\x80", 0, 247 }    // no UTF-8: cut anywhere
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        char rule[600] = "";
        int k;
        for (k = 0; k < rows[i].lead; k++) strcat(rule, "a");
        for (k = 0; k < 130; k++) strcat(rule, rows[i].unit);
        if (!rows[i].unit[1]) memset(rule + strlen(rule), rows[i].unit[0], 200);
        tl_record_error(&env, TL_ERROR_KERNEL, "f", rule);    // "tl_parse_strategy_json: " and the rule
        assert_int_equal(strlen(env.error.text), rows[i].length);
        assert_memory_equal(env.error.text + 3, rule, rows[i].length - 3);
    }
}

static void sums_and_products_report_overflow_at_the_edge(void **state) {
    uint64_t v;
    (void)state;
    assert_true(tli_add_u64(0, 0, &v) && v == 0);
    assert_true(tli_add_u64(UINT64_MAX, 0, &v) && v == UINT64_MAX);
    assert_true(tli_add_u64(0, UINT64_MAX, &v) && v == UINT64_MAX);
    assert_true(tli_add_u64(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
    assert_false(tli_add_u64(UINT64_MAX, 1, &v));
    assert_false(tli_add_u64(1, UINT64_MAX, &v));
    assert_false(tli_add_u64(UINT64_MAX, UINT64_MAX, &v));
    assert_true(tli_mul_u64(0, UINT64_MAX, &v) && v == 0);
    assert_true(tli_mul_u64(UINT64_MAX, 0, &v) && v == 0);
    assert_true(tli_mul_u64(UINT64_MAX, 1, &v) && v == UINT64_MAX);
    assert_true(tli_mul_u64(UINT32_MAX, (uint64_t)UINT32_MAX + 2, &v) && v == UINT64_MAX);
    assert_true(tli_mul_u64(3, UINT64_MAX / 3, &v) && v == UINT64_MAX);
    assert_false(tli_mul_u64(3, UINT64_MAX / 3 + 1, &v));
    assert_false(tli_mul_u64((uint64_t)1 << 32, (uint64_t)1 << 32, &v));
    assert_false(tli_mul_u64(UINT64_MAX, UINT64_MAX, &v));
    assert_false(tli_mul_u64(2, (uint64_t)1 << 63, &v));
    assert_true(tli_mul_u64(2, ((uint64_t)1 << 63) - 1, &v) && v == UINT64_MAX - 1);
}

static void bytes_and_texts_are_compared_copied_and_cleared(void **state) {
    char bytes[4] = { 1, 2, 3, 4 }, copy[4] = { 0, 0, 0, 0 };
    (void)state;
    tli_copy(copy, bytes, 3);
    assert_memory_equal(copy, "\1\2\3\0", 4);
    tli_zero(copy, 2);
    assert_memory_equal(copy, "\0\0\3\0", 4);
    tli_copy(NULL, NULL, 0);
    tli_zero(NULL, 0);
    assert_int_equal(tli_text_length(""), 0);
    assert_int_equal(tli_text_length("abc"), 3);
    assert_true(tli_same_text("", "") && tli_same_text("ab", "ab"));
    assert_false(tli_same_text("ab", "a") || tli_same_text("a", "ab") || tli_same_text("ab", "ac"));
    assert_int_equal(tli_round_up(0, 16), 0);
    assert_int_equal(tli_round_up(1, 16), 16);
    assert_int_equal(tli_round_up(16, 16), 16);
}

// -- allocation --

static void an_array_is_zero_and_too_large_ones_are_refused(void **state) {
    failing_alloc f;
    tl_env env;
    uint32_t *array;
    int i;
    (void)state;
    memset(&f, 0, sizeof f);
    env = failing_env(&f, -1);
    array = (uint32_t *)tli_alloc_array(&env, 100, sizeof *array);  // the allocator fills with 0xA5
    for (i = 0; i < 100; i++) assert_int_equal(array[i], 0);
    tli_release(&env, array);
    assert_null(tli_alloc_array(&env, UINT64_MAX, 2));
    assert_null(tli_alloc_array(&env, UINT64_MAX, 1));
    assert_null(tli_alloc_array(&env, (uint64_t)SIZE_MAX / 2 + 1, 1));
    assert_int_equal(f.count, 1);
    array = (uint32_t *)tli_alloc_array(&env, 0, sizeof *array);
    assert_non_null(array);
    tli_release(&env, array);
    tli_release(&env, NULL);
    assert_int_equal(f.live, 0);
    array = (uint32_t *)tli_alloc_array(NULL, 3, sizeof *array);
    assert_int_equal(array[2], 0);
    tli_release(NULL, array);
}

static void a_growing_array_keeps_its_items(void **state) {
    failing_alloc f;
    tl_env env;
    int64_t *items = NULL;
    void *array = NULL;
    int32_t capacity = 0, used;
    (void)state;
    memset(&f, 0, sizeof f);
    env = failing_env(&f, -1);
    for (used = 0; used < 1000; used++) {
        assert_true(tli_grow(&env, &array, &capacity, used, (int64_t)used + 1, sizeof *items));
        items = (int64_t *)array;
        assert_int_equal(items[used], 0);
        items[used] = used;
        if (used) assert_int_equal(items[used / 2], used / 2);
    }
    assert_int_equal(capacity, 1024);
    assert_int_equal(f.count, 8);
    assert_true(tli_grow(&env, &array, &capacity, used, 1024, sizeof *items));
    f.fail_at = f.count;
    assert_false(tli_grow(&env, &array, &capacity, used, 1025, sizeof *items));
    assert_false(tli_grow(&env, &array, &capacity, used, (int64_t)INT32_MAX + 1, sizeof *items));
    assert_ptr_equal(array, items);
    assert_int_equal(capacity, 1024);
    tli_release(&env, array);
    assert_int_equal(f.live, 0);
}

// -- arena --

#define ARENA_BYTES 65536

// A multiple of 16 on every machine.
static char *arena_memory(void) {
    static char room[ARENA_BYTES + 16];
    return room + (16 - (uintptr_t)room % 16) % 16;
}

static size_t arena_head(void) { return tli_round_up(sizeof(tli_arena), 16); }

static void an_arena_needs_room_for_its_bookkeeping(void **state) {
    tl_env env;
    size_t least = arena_head() + 2 * tli_piece_head(), used, peak;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_true(least <= 64);
    assert_int_equal(tl_init_arena(&env, arena_memory(), least - 1), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_init_arena: bytes: too few for the bookkeeping");
    assert_null(env.alloc);
    assert_int_equal(tl_init_arena(&env, arena_memory(), 0), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_init_arena(&env, arena_memory(), least), TL_OK);
    tl_measure_arena(&env, &used, &peak);
    assert_int_equal(used, arena_head());
    assert_int_equal(peak, used);
    tl_measure_arena(&env, NULL, NULL);
    memset(&env, 0, sizeof env);
    tl_measure_arena(&env, &used, &peak);       // no arena: nothing to measure
    assert_true(!used && !peak);
}

static void an_arena_serves_an_exact_fit_and_refuses_one_byte_more(void **state) {
    size_t head = arena_head() + tli_piece_head(), size, used, peak;
    (void)state;
    for (size = 16; size <= 256; size += 16) {
        tl_env env;
        void *all;
        assert_int_equal(tl_init_arena(&env, arena_memory(), head + size), TL_OK);
        assert_null(tli_alloc(&env, size + 1));
        all = tli_alloc(&env, size);
        assert_non_null(all);
        assert_true((char *)all + size <= arena_memory() + head + size);
        assert_null(tli_alloc(&env, 1));
        tl_measure_arena(&env, &used, &peak);
        assert_int_equal(used, head + size);
        tli_release(&env, all);
        tl_measure_arena(&env, &used, &peak);
        assert_int_equal(used, arena_head());
        assert_int_equal(peak, head + size);
        if (size > 16) {  // one byte short: what is left over is no aligned room for it
            assert_int_equal(tl_init_arena(&env, arena_memory(), head + size - 1), TL_OK);
            assert_null(tli_alloc(&env, size));
            assert_non_null(tli_alloc(&env, size - 16));
        }
    }
}

static void an_arena_refuses_sizes_that_would_wrap(void **state) {
    tl_env env;
    size_t cut;
    (void)state;
    assert_int_equal(tl_init_arena(&env, arena_memory(), 4096), TL_OK);
    for (cut = 0; cut < 64; cut++) assert_null(env.alloc(env.user, SIZE_MAX - cut));
    assert_null(env.alloc(env.user, SIZE_MAX / 2));
    assert_null(tli_alloc(&env, 4096));
    assert_non_null(tli_alloc(&env, 0));
}

static void an_arena_aligns_whatever_its_memory_begins_at(void **state) {
    size_t shift;
    (void)state;
    for (shift = 0; shift < 32; shift++) {
        tl_env env;
        char *a, *b;
        assert_int_equal(tl_init_arena(&env, arena_memory() + shift, 512), TL_OK);
        a = (char *)tli_alloc(&env, 3);
        b = (char *)tli_alloc(&env, 5);
        assert_int_equal((uintptr_t)a % 16, 0);
        assert_int_equal((uintptr_t)b % 16, 0);
        assert_true(a >= arena_memory() + shift && b > a && b + 5 <= arena_memory() + shift + 512);
    }
}

static void an_arena_joins_free_neighbours_in_any_order(void **state) {
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    int o, i;
    (void)state;
    for (o = 0; o < 6; o++) {
        size_t piece = tli_piece_head() + 64, used;
        void *p[3];
        tl_env env;
        assert_int_equal(tl_init_arena(&env, arena_memory(), arena_head() + 3 * piece), TL_OK);
        for (i = 0; i < 3; i++) assert_non_null(p[i] = tli_alloc(&env, 64));
        assert_null(tli_alloc(&env, 1));
        tli_release(&env, p[orders[o][0]]);
        assert_null(tli_alloc(&env, 65));
        tli_release(&env, p[orders[o][1]]);
        if (orders[o][2] != 1) {  // two neighbours: joined, so one larger piece fits, and goes back
            void *two = tli_alloc(&env, 2 * piece - tli_piece_head());
            assert_non_null(two);
            tli_release(&env, two);
        } else {  // two pieces apart: fragmented, room enough but not in one piece
            assert_null(tli_alloc(&env, 65));
        }
        tli_release(&env, p[orders[o][2]]);
        tl_measure_arena(&env, &used, NULL);
        assert_int_equal(used, arena_head());
        assert_non_null(tli_alloc(&env, 3 * piece - tli_piece_head()));
    }
}

static void an_arena_uses_the_first_piece_that_fits(void **state) {
    tl_env env;
    void *a, *b, *c;
    (void)state;
    assert_int_equal(tl_init_arena(&env, arena_memory(), 4096), TL_OK);
    a = tli_alloc(&env, 100);
    b = tli_alloc(&env, 100);
    c = tli_alloc(&env, 100);
    tli_release(&env, a);
    assert_ptr_equal(tli_alloc(&env, 100), a);
    tli_release(&env, b);
    assert_ptr_equal(tli_alloc(&env, 112), b);
    assert_true((char *)tli_alloc(&env, 16) > (char *)c);
}

static void an_arena_under_random_use_never_overlaps_and_ends_in_one_piece(void **state) {
    enum { COUNT = 40 };
    struct { unsigned char *at; size_t size; unsigned char mark; } live[COUNT];
    tl_random random = { 7 };
    size_t used, peak, most = 0, i;
    tl_env env;
    int round, n = scaled(20000);
    (void)state;
    memset(live, 0, sizeof live);
    assert_int_equal(tl_init_arena(&env, arena_memory(), 8192), TL_OK);
    for (round = 0; round < n; round++) {
        size_t k = (size_t)tl_next_random_below(&random, COUNT);
        if (live[k].at) {
            for (i = 0; i < live[k].size; i++) assert_int_equal(live[k].at[i], live[k].mark);
            tli_release(&env, live[k].at);
            live[k].at = NULL;
        } else {
            live[k].size = (size_t)tl_next_random_below(&random, 600);
            live[k].mark = (unsigned char)round;
            live[k].at = (unsigned char *)tli_alloc(&env, live[k].size);
            if (live[k].at && live[k].size) memset(live[k].at, live[k].mark, live[k].size);
        }
        tl_measure_arena(&env, &used, &peak);
        if (used > most) most = used;
        assert_int_equal(peak, most > arena_head() ? most : arena_head());
        assert_true(used <= 8192);
    }
    for (i = 0; i < COUNT; i++) tli_release(&env, live[i].at);
    tl_measure_arena(&env, &used, NULL);
    assert_int_equal(used, arena_head());
    assert_non_null(tli_alloc(&env, 8192 - arena_head() - tli_piece_head()));
}

// -- writer and reader --

static size_t print_sample(char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    tli_put(&w, "a ");
    tli_put_u64(&w, UINT64_MAX);
    tli_put(&w, " ");
    tli_put_i64(&w, INT64_MIN);
    tli_put_bytes(&w, "xyz", 2);
    return tli_finish(&w);
}

static void a_writer_truncates_like_snprintf(void **state) {
    static const char whole[] = "a 18446744073709551615 -9223372036854775808xy";
    char buf[80], expected[80];
    size_t size, i;
    (void)state;
    assert_int_equal(print_sample(NULL, 0), strlen(whole));
    assert_int_equal(print_sample(NULL, 10), strlen(whole));
    for (size = 0; size < sizeof buf; size++) {
        memset(buf, '#', sizeof buf);
        memset(expected, '#', sizeof expected);
        assert_int_equal(print_sample(buf, size), strlen(whole));
        if (size) {
            size_t kept = size - 1 < strlen(whole) ? size - 1 : strlen(whole);
            memcpy(expected, whole, kept);
            expected[kept] = 0;
        }
        for (i = 0; i < sizeof buf; i++) assert_int_equal(buf[i], expected[i]);
    }
}

static void whole_numbers_print_at_their_limits(void **state) {
    static const int64_t values[] = { 0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN };
    char buf[32], expected[32];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof values / sizeof *values; i++) {
        tli_writer w = tli_writer_of(buf, sizeof buf);
        tli_put_i64(&w, values[i]);
        tli_finish(&w);
        snprintf(expected, sizeof expected, "%lld", (long long)values[i]);
        assert_string_equal(buf, expected);
    }
}

static void a_reader_cuts_lines_into_words(void **state) {
    static const char text[] = "  one two=2\t# rest\n\r\n=x y=\n#\nlast";
    tli_reader r = tli_reader_of(text, strlen(text));
    tli_word word, key, value;
    (void)state;
    assert_true(tli_next_line(&r) && r.line == 1);
    assert_true(tli_next_word(&r, &word) && tli_word_is(word, "one"));
    assert_false(tli_cut_word(word, &key, &value));
    assert_true(tli_word_is(key, "one") && value.length == 0);
    assert_true(tli_next_word(&r, &word) && tli_cut_word(word, &key, &value));
    assert_true(tli_word_is(key, "two") && tli_word_is(value, "2"));
    assert_false(tli_next_word(&r, &word));
    assert_int_equal(word.length, 0);
    assert_true(tli_next_line(&r) && r.line == 2 && !tli_next_word(&r, &word));
    assert_true(tli_next_line(&r) && tli_next_word(&r, &word) && tli_cut_word(word, &key, &value));
    assert_true(key.length == 0 && tli_word_is(value, "x"));
    assert_true(tli_next_line(&r) && r.line == 4 && !tli_next_word(&r, &word));  // "y=" was left unread
    assert_true(tli_next_line(&r) && tli_next_word(&r, &word) && tli_word_is(word, "last"));
    assert_false(tli_word_is(word, "las"));
    assert_false(tli_word_is(word, "lasting"));
    assert_false(tli_next_line(&r));
    r = tli_reader_of(text, 0);
    assert_false(tli_next_line(&r));
}

static void whole_numbers_are_read_exactly_or_not_at_all(void **state) {
    static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1e3", "a",
                                       "18446744073709551616", "99999999999999999999", "184467440737095516150" };
    uint64_t v;
    int32_t n;
    size_t i;
    (void)state;
    assert_true(tli_read_u64(word_of("0"), &v) && v == 0);
    assert_true(tli_read_u64(word_of("007"), &v) && v == 7);
    assert_true(tli_read_u64(word_of("18446744073709551615"), &v) && v == UINT64_MAX);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(tli_read_u64(word_of(bad[i]), &v));
    assert_true(tli_read_i32(word_of("2147483647"), &n) && n == INT32_MAX);
    assert_false(tli_read_i32(word_of("2147483648"), &n));
    assert_int_equal(n, 0);
    assert_false(tli_read_i32(word_of("-1"), &n));
}

static void a_name_is_found_as_a_whole(void **state) {
    static const char *const names[] = { "one", "two", "twofold" };
    int32_t value;
    (void)state;
    assert_true(tli_parse_name(names, 3, "two", 3, &value) && value == 1);
    assert_true(tli_parse_name(names, 3, "twofold", 7, &value) && value == 2);
    assert_false(tli_parse_name(names, 3, "twof", 4, &value));
    assert_int_equal(value, 0);
    assert_false(tli_parse_name(names, 3, "", 0, &value));
    assert_false(tli_parse_name(names, 3, "Two", 3, &value));
}

// -- random numbers: these values define the generator --

static void random_numbers_have_fixed_values(void **state) {
    static const uint64_t of_0[] = { UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                     UINT64_C(0x06c45d188009454f), UINT64_C(0xf88bb8a8724c81ec) };
    static const uint64_t of_1234567[] = { UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                           UINT64_C(9817491932198370423), UINT64_C(4593380528125082431) };
    tl_random a = { 0 }, b = { 1234567 };
    int i;
    (void)state;
    for (i = 0; i < 4; i++) {
        assert_true(tl_next_random(&a) == of_0[i]);
        assert_true(tl_next_random(&b) == of_1234567[i]);
    }
    a.state = UINT64_MAX;
    assert_true(tl_next_random(&a) == UINT64_C(0xe4d971771b652c20));
    assert_true(a.state == UINT64_C(0x9e3779b97f4a7c14));
}

static void mixing_is_the_generator_by_counter(void **state) {
    tl_random random = { 99 };
    uint64_t i;
    (void)state;
    for (i = 0; i < 100; i++) assert_true(tl_mix_u64(99, i) == tl_next_random(&random));
    assert_true(tl_mix_u64(1, 2) != tl_mix_u64(2, 1));
    assert_true(tl_mix_u64(0, 0) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(tl_mix_u64(1, 2) == UINT64_C(0xf893a2eefb32555e));
}

static void a_random_ratio_is_at_least_0_and_below_1(void **state) {
    tl_random random = { 0 };
    double sum = 0, value, least = 1, most = 0;
    int i;
    (void)state;
    assert_true(bits_of(tl_next_random_ratio(&random)) == UINT64_C(0x3fec4415072f63b9));
    for (i = 0; i < 100000; i++) {
        value = tl_next_random_ratio(&random);
        assert_true(value >= 0 && value < 1);
        if (value < least) least = value;
        if (value > most) most = value;
        sum += value;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005 && least < 0.001 && most > 0.999);
}

static void a_random_number_below_a_limit_is_unbiased(void **state) {
    static const uint64_t limits[] = { 1, 2, 3, 6, 7, 10, 100 };
    tl_random random = { 3 };
    uint64_t third = UINT64_C(1) << 62;
    size_t i;
    int k, low = 0, n = 60000;
    (void)state;
    assert_true(tl_next_random_below(&random, 0) == 0);
    for (i = 0; i < sizeof limits / sizeof *limits; i++) {
        uint64_t limit = limits[i], c;
        int counts[100] = { 0 };
        double chi = 0, expected = (double)n / (double)limit;
        for (k = 0; k < n; k++) {
            uint64_t value = tl_next_random_below(&random, limit);
            assert_true(value < limit);
            counts[value]++;
        }
        for (c = 0; c < limit; c++) chi += (counts[c] - expected) * (counts[c] - expected) / expected;
        assert_true(chi < (double)(limit - 1) + 6 * sqrt(2 * (double)limit));
    }
    // 3 x 2^62: a plain remainder would draw the lowest third twice as often
    for (k = 0; k < n; k++) low += tl_next_random_below(&random, 3 * third) < third;
    assert_true(fabs(low - n / 3.0) < 700);
    for (k = 0; k < 100; k++) assert_true(tl_next_random_below(&random, UINT64_MAX) < UINT64_MAX);
}

// -- number text --

static size_t print_f64(double value, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    tli_put_f64(&w, value);
    return tli_finish(&w);
}

static void numbers_print_in_the_forms_of_serde_json(void **state) {
    static const struct { double value; const char *text; } cases[] = {
        { 0.0, "0.0" }, { 1.0, "1.0" }, { -1.0, "-1.0" }, { 0.5, "0.5" }, { 0.1, "0.1" }, { 10.0, "10.0" },
        { 123.456, "123.456" }, { 1.7600000000000002, "1.7600000000000002" }, { 100000.0, "100000.0" },
        { 1e15, "1000000000000000.0" }, { 1e16, "1e16" }, { 1.5e16, "1.5e16" }, { 1234567890123456.0, "1234567890123456.0" },
        { 123456789012345.6, "123456789012345.6" }, { 12345678901234567.0, "1.2345678901234568e16" },
        { 0.0001, "0.0001" }, { 0.00001, "0.00001" }, { 0.000012, "0.000012" }, { 1e-6, "1e-6" }, { 1e-7, "1e-7" },
        { 1.25e-7, "1.25e-7" }, { 0.3, "0.3" }, { 0.30000000000000004, "0.30000000000000004" }, { 1.0 / 3.0, "0.3333333333333333" },
        { 9007199254740993.0, "9007199254740992.0" }, { 9.5e-5, "0.000095" }, { 1e21, "1e21" }, { 1e22, "1e22" },
        { 1e23, "1e23" }, { 9.999999999999997e22, "9.999999999999997e22" }, { 2e-308, "2e-308" },
        { DBL_MAX, "1.7976931348623157e308" }, { DBL_MIN, "2.2250738585072014e-308" }, { DBL_EPSILON, "2.220446049250313e-16" },
        { 5e-324, "5e-324" }, { -5e-324, "-5e-324" }, { 2.225073858507201e-308, "2.225073858507201e-308" }
    };
    char buf[64];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(print_f64(cases[i].value, buf, sizeof buf), strlen(cases[i].text));
        assert_string_equal(buf, cases[i].text);
    }
    print_f64(of_bits(UINT64_C(1) << 63), buf, sizeof buf);
    assert_string_equal(buf, "-0.0");
    assert_int_equal(print_f64(123.456, buf, 4), 7);
    assert_string_equal(buf, "123");
}

// Digits and exponent of a text as 0.d1d2.. x 10^point, zeros at both ends cut off.
static int digits_of(const char *text, char *digits, long *point) {
    int count = 0, after = 0, seen = 0;
    *point = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '-') continue;
        if (*text == '.') { after = 1; continue; }
        if (*text != '0') seen = 1;
        if (seen) digits[count++] = *text;
        if (seen && !after) ++*point;
        if (!seen && after) --*point;
    }
    if (*text == 'e') *point += strtol(text + 1, NULL, 10);
    while (count && digits[count - 1] == '0') count--;
    digits[count] = 0;
    return count;
}

// It reads back the same, here and by strtod, and no shorter or nearer text does.
static void check_shortest(double value) {
    char buf[64], other[64], mine[64], theirs[64];
    long my_point, their_point;
    double back;
    int count, precision;
    print_f64(value, buf, sizeof buf);
    if (!tli_read_f64(word_of(buf), &back) || bits_of(back) != bits_of(value)) fail_msg("%s (%a) reads back as %a", buf, value, back);
    if (bits_of(strtod(buf, NULL)) != bits_of(value)) fail_msg("%s is not %a for strtod", buf, value);
    snprintf(other, sizeof other, "%.17g", value);
    if (!strchr(other, '.') || other[0] != '.') {
        assert_true(tli_read_f64(word_of(other), &back));
        if (bits_of(back) != bits_of(value)) fail_msg("%s reads as %a", other, back);
    }
    count = digits_of(buf, mine, &my_point);
    for (precision = count > 1 ? count - 2 : 0; precision < 17; precision++) {
        snprintf(other, sizeof other, "%.*e", precision, value);
        if (bits_of(strtod(other, NULL)) == bits_of(value)) break;
    }
    digits_of(other, theirs, &their_point);
    // at a power of two the range is wider above: a text that is not the nearest of its length may do
    if (!(bits_of(value) & ((UINT64_C(1) << 52) - 1)) && precision + 1 > count) return;
    if (strcmp(mine, theirs) || my_point != their_point) fail_msg("%s is not the shortest: %s", buf, other);
}

static double random_f64(tl_random *random) {
    uint64_t bits;
    do bits = tl_next_random(random); while ((bits >> 52 & 0x7ff) == 0x7ff);
    return of_bits(bits);
}

static void random_doubles_print_shortest_and_read_back(void **state) {
    tl_random random = { 42 };
    int i, n = scaled(100000);
    (void)state;
    for (i = 0; i < n; i++) {
        double value = random_f64(&random);
        uint64_t bits = tl_next_random(&random);
        switch (i % 8) {
            case 0: value = of_bits(bits >> 12 | bits << 63); break;                     // denormals
            case 1: value = (double)(int64_t)(bits >> tl_next_random_below(&random, 64)); break;  // whole
            case 2: value = (double)(bits >> 40) + 0.5; break;                           // halves
            case 3: value = (double)(int64_t)(bits >> 44) / 1000.0; break;               // short decimals
            case 4: value = tl_next_random_ratio(&random); break;
            default: break;
        }
        check_shortest(value);
    }
}

static void powers_of_two_and_ten_and_their_neighbours_print_shortest_and_read_back(void **state) {
    uint64_t exponent;
    char text[16];
    int power;
    (void)state;
    for (exponent = 0; exponent < 2047; exponent++) {
        check_shortest(of_bits(exponent << 52));
        check_shortest(of_bits(exponent << 52 | 1));
        check_shortest(of_bits(exponent << 52 | (((uint64_t)1 << 52) - 1)));
    }
    for (exponent = 0; exponent < 52; exponent++) check_shortest(of_bits((uint64_t)1 << exponent));
    for (power = -323; power <= 308; power++) {
        uint64_t bits;
        double value;
        snprintf(text, sizeof text, "1e%d", power);
        assert_true(tli_read_f64(word_of(text), &value));
        bits = bits_of(value);
        assert_true(bits == bits_of(strtod(text, NULL)));
        check_shortest(of_bits(bits));
        check_shortest(of_bits(bits + 1));
        check_shortest(of_bits(bits - 1));
    }
}

static void check_fixed(double value, int32_t decimals) {
    char buf[512], expected[512];
    tli_writer w = tli_writer_of(buf, sizeof buf);
    tli_put_fixed(&w, value, decimals);
    tli_finish(&w);
    snprintf(expected, sizeof expected, "%.*f", (int)decimals, value);
    assert_string_equal(buf, expected);
}

static void fixed_decimals_round_the_exact_value_half_to_even(void **state) {
    static const struct { double value; int32_t decimals; const char *text; } cases[] = {
        { 0.0, 1, "0.0" }, { 50.0, 1, "50.0" }, { 0.25, 1, "0.2" }, { 0.75, 1, "0.8" }, { 0.35, 1, "0.3" },
        { 0.45, 1, "0.5" }, { -0.25, 1, "-0.2" }, { 9.95, 1, "9.9" }, { 9.96, 1, "10.0" }, { 99.99, 1, "100.0" },
        { 0.05, 1, "0.1" }, { 0.04, 1, "0.0" }, { -0.04, 1, "-0.0" }, { 33.333333333333336, 1, "33.3" },
        { 2.5, 3, "2.500" }, { 0.0005, 3, "0.001" }, { 0.00048828125, 3, "0.000" }, { 0.0009765625, 9, "0.000976562" },
        { 1e22, 1, "10000000000000000000000.0" }, { 1e-300, 2, "0.00" }, { 0.999, 2, "1.00" }, { 1e23, 1, "99999999999999991611392.0" }
    };
    tl_random random = { 5 };
    char buf[512];
    size_t i;
    int n = scaled(20000);
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tli_writer w = tli_writer_of(buf, sizeof buf);
        tli_put_fixed(&w, cases[i].value, cases[i].decimals);
        tli_finish(&w);
        assert_string_equal(buf, cases[i].text);
    }
    check_fixed(DBL_MAX, 99);
    check_fixed(5e-324, 99);
    while (n--) {
        int32_t decimals = 1 + (int32_t)tl_next_random_below(&random, n % 16 ? 4 : 99);
        check_fixed((double)(int64_t)(tl_next_random(&random) >> 44) / 64.0, decimals);
        check_fixed(tl_next_random_ratio(&random) * 100, decimals);
        check_fixed(-(double)tl_next_random_below(&random, 2000) / 16.0, decimals);
        if (n % 16 == 0) check_fixed(random_f64(&random), decimals);
    }
}

// A whole number as decimal digits, lowest first.
typedef struct decimal { int count; char digit[2000]; } decimal;

static void scale_decimal(decimal *d, int factor) {
    int i, carry = 0;
    for (i = 0; i < d->count || carry; i++) {
        carry += (i < d->count ? d->digit[i] : 0) * factor;
        d->digit[i] = (char)(carry % 10);
        carry /= 10;
    }
    if (i > d->count) d->count = i;
}

static void middles_between_two_doubles_round_to_even(void **state) {
    tl_random random = { 11 };
    int i, n = scaled(3000);
    (void)state;
    for (i = 0; i < n; i++) {
        uint64_t bits = tl_next_random(&random) >> 1, mantissa;
        int exponent, scale = 0, k;
        char text[2200], *at = text, *last;
        double value;
        decimal d;
        if (i % 4 == 0) bits &= ((uint64_t)1 << 54) - 1;      // denormal or nearly
        if (i % 4 == 1) bits = (uint64_t)1023 << 52 | bits >> 12;
        if (bits >> 52 >= 0x7fe) continue;
        mantissa = bits & (((uint64_t)1 << 52) - 1);
        if (bits >> 52) mantissa |= (uint64_t)1 << 52;
        exponent = (bits >> 52 ? (int)(bits >> 52) : 1) - 1075 - 1;  // the middle: (2 x mantissa + 1) x 2^exponent
        mantissa = mantissa * 2 + 1;
        for (d.count = 0; mantissa; mantissa /= 10) d.digit[d.count++] = (char)(mantissa % 10);
        for (k = 0; k < exponent; k++) scale_decimal(&d, 2);
        for (; exponent < 0; exponent++, scale++) scale_decimal(&d, 5);
        for (k = d.count; k--;) *at++ = (char)('0' + d.digit[k]);
        snprintf(at, 64, "e-%d", scale);
        assert_true(tli_read_f64(word_of(text), &value));
        assert_true(bits_of(value) == bits + (bits & 1));
        assert_true(bits_of(strtod(text, NULL)) == bits_of(value));
        snprintf(at, 128, "%0100de-%d", 1, scale + 100);     // a little more
        assert_true(tli_read_f64(word_of(text), &value));
        assert_true(bits_of(value) == bits + 1);
        for (last = at - 1; *last == '0'; last--) *last = '9';
        --*last;                                            // a little less
        snprintf(at, 64, "999e-%d", scale + 3);
        assert_true(tli_read_f64(word_of(text), &value));
        assert_true(bits_of(value) == bits);
    }
}

static void random_decimals_read_as_strtod_reads_them(void **state) {
    tl_random random = { 17 };
    int i, k, n = scaled(100000);
    (void)state;
    for (i = 0; i < n; i++) {
        char text[200], *at = text;
        int before = 1 + (int)tl_next_random_below(&random, i % 50 ? 20 : 80), after = (int)tl_next_random_below(&random, 25);
        double value = 1, expected;
        if (tl_next_random_below(&random, 2)) *at++ = '-';
        *at++ = (char)('1' + tl_next_random_below(&random, 9));
        for (k = 1; k < before; k++) *at++ = (char)('0' + tl_next_random_below(&random, 10));
        if (after) *at++ = '.';
        for (k = 0; k < after; k++) *at++ = (char)('0' + tl_next_random_below(&random, 10));
        *at = 0;
        if (tl_next_random_below(&random, 4))
            snprintf(at, 16, "%c%d", tl_next_random_below(&random, 2) ? 'e' : 'E',
                     (int)tl_next_random_below(&random, i % 2 ? 700 : 60) - (i % 2 ? 380 : 30));
        expected = strtod(text, NULL);
        if (isinf(expected)) {
            assert_false(tli_read_f64(word_of(text), &value));
            assert_true(bits_of(value) == 0);
        } else {
            assert_true(tli_read_f64(word_of(text), &value));
            if (bits_of(value) != bits_of(expected)) fail_msg("%s: %a, not %a", text, value, expected);
        }
    }
}

static void numbers_at_the_ends_of_the_range_are_read_right(void **state) {
    static const struct { const char *text; double value; } good[] = {
        { "0", 0 }, { "0.0", 0 }, { "0e5", 0 }, { "0e999999999999999999999", 0 }, { "1e-400", 0 }, { "1E+2", 100 },
        { "1e-99999999999999999999999", 0 }, { "2.4703282292062327e-324", 0 }, { "2.4703282292062328e-324", 5e-324 },
        { "1.7976931348623157e308", DBL_MAX }, { "1.7976931348623158e308", DBL_MAX }, { "2.2250738585072011e-308", 2.225073858507201e-308 },
        { "2.2250738585072012e-308", DBL_MIN }, { "0.000001e6", 1 }, { "1000000e-6", 1 }, { "9007199254740993", 9007199254740992.0 },
        { "9007199254740993.0000000000000000000000001", 9007199254740994.0 }, { "123456789012345678901234567890", 123456789012345678901234567890.0 }
    };
    static const char *const bad[] = {
        "", "-", "+1", ".5", "5.", "-.5", "1e", "1e+", "1e-", "e5", "0x1", "0x1p3", "nan", "NaN", "inf", "-inf", "Infinity",
        "01", "-01", "00", "1 ", " 1", "1_0", "1,5", "1e5.0", "1.5.5", "--1", "1e400", "-1e400", "1.7976931348623159e308",
        "1e99999999999999999999999999", "1.e5", "1f", "1\n"
    };
    double value;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(tli_read_f64(word_of(good[i].text), &value));
        if (bits_of(value) != bits_of(good[i].value)) fail_msg("%s: %a", good[i].text, value);
    }
    assert_true(tli_read_f64(word_of("-0"), &value) && bits_of(value) == (uint64_t)1 << 63);
    assert_true(tli_read_f64(word_of("-1e-400"), &value) && bits_of(value) == (uint64_t)1 << 63);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        value = 1;
        if (tli_read_f64(word_of(bad[i]), &value)) fail_msg("\"%s\" was read as %g", bad[i], value);
        assert_true(bits_of(value) == 0);
    }
}

static void numbers_of_many_digits_are_read_exactly(void **state) {
    static char text[200000];
    double value;
    size_t zeros = 100000;
    (void)state;
    text[0] = '0'; text[1] = '.';
    memset(text + 2, '0', zeros);
    strcpy(text + 2 + zeros, "25e100001");       // 0.[100000 zeros]25e100001 = 2.5
    assert_true(tli_read_f64(word_of(text), &value) && bits_of(value) == bits_of(2.5));
    text[0] = '3';
    memset(text + 1, '0', zeros);
    strcpy(text + 1 + zeros, "e-100000");
    assert_true(tli_read_f64(word_of(text), &value) && bits_of(value) == bits_of(3.0));
    strcpy(text, "9007199254740993.");           // the middle between two; the digit after 2000 zeros decides
    memset(text + 17, '0', 2000);
    strcpy(text + 2017, "0");
    assert_true(tli_read_f64(word_of(text), &value) && bits_of(value) == bits_of(9007199254740992.0));
    strcpy(text + 2017, "1");
    assert_true(tli_read_f64(word_of(text), &value) && bits_of(value) == bits_of(9007199254740994.0));
    memset(text, '9', 309);                      // the largest power of ten below, then too large
    text[309] = 0;
    assert_false(tli_read_f64(word_of(text), &value));
    text[308] = 0;
    assert_true(tli_read_f64(word_of(text), &value) && bits_of(value) == bits_of(1e308));
    memset(text, '1', 1500);
    strcpy(text + 1500, "e-1800");
    assert_true(tli_read_f64(word_of(text), &value) && bits_of(value) == bits_of(strtod(text, NULL)));
}

// -- JSON --

// Read one value of any kind; the result, and the error in env.
static tl_result read_json(tl_env *env, const char *text, size_t length) {
    tli_json j = tli_json_open(env, TLI_IN(PARSE_STRATEGY_JSON), text, length);
    tli_json_skip(&j);
    return tli_json_end(&j);
}

static void json_of_rfc_8259_is_accepted(void **state) {
    static const char *const good[] = {
        "0", "-0", "1.5e-7", "true", "false", "null", "\"\"", "[]", "{}", " [ ] ", "\t\r\n{ } \n", "[1]", "[1,2,[3,[]],{}]",
        "{\"\":0}", "{\"a\":{\"b\":[{\"c\":null}]},\"d\":\"e\"}", "{\"a\":1,\"a\":2}", "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"]",
        "\"\\ud83d\\uDE00\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\"", "\"\x7f\"", "\"\\u0000\"", "[-0.0e+1,1E5]", "\xef\xbb\xbf{}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"  // 32 levels
    };
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof good / sizeof *good; i++)
        if (read_json(&env, good[i], strlen(good[i]))) fail_msg("%s: %s", good[i], env.error.text);
}

static void json_that_is_not_strict_is_refused_with_its_place(void **state) {
    static const struct { const char *text, *error; } bad[] = {
        { "", "line 1, column 1: expected a value" }, { "  ", "line 1, column 3: expected a value" },
        { "tru", "line 1, column 1: expected a value" }, { "True", "line 1, column 1: expected a value" },
        { "nul", "line 1, column 1: expected a value" }, { "nan", "line 1, column 1: expected a value" },
        { "Infinity", "line 1, column 1: expected a value" }, { "+1", "line 1, column 1: expected a value" },
        { ".5", "line 1, column 1: expected a value" }, { "-", "line 1, column 1: expected a number" },
        { "1.", "line 1, column 1: expected a number" }, { "01", "line 1, column 2: text after the value" },
        { "1 2", "line 1, column 3: text after the value" }, { "truex", "line 1, column 5: text after the value" },
        { "{}x", "line 1, column 3: text after the value" }, { "[]]", "line 1, column 3: text after the value" },
        { "[", "line 1, column 2: expected a value" }, { "[1", "line 1, column 3: expected , or ]" },
        { "[1,]", "line 1, column 4: expected a value" }, { "[,1]", "line 1, column 2: expected a value" },
        { "[1 2]", "line 1, column 4: expected , or ]" }, { "[1}", "line 1, column 3: expected , or ]" },
        { "{", "line 1, column 2: expected a string" }, { "{\"a\"", "line 1, column 5: expected :" },
        { "{\"a\":", "line 1, column 6: expected a value" }, { "{\"a\" 1}", "line 1, column 6: expected :" },
        { "{\"a\":1", "line 1, column 7: expected , or }" }, { "{\"a\":1,}", "line 1, column 8: expected a string" },
        { "{,\"a\":1}", "line 1, column 2: expected a string" }, { "{a:1}", "line 1, column 2: expected a string" },
        { "{'a':1}", "line 1, column 2: expected a string" }, { "{1:1}", "line 1, column 2: expected a string" },
        { "{\"a\":1]", "line 1, column 7: expected , or }" }, { "\"a", "line 1, column 3: the string does not end" },
        { "\"\\\"", "line 1, column 4: the string does not end" }, { "\"a\nb\"", "line 1, column 3: a string may not hold this" },
        { "\"\t\"", "line 1, column 2: a string may not hold this" }, { "\"\\x\"", "line 1, column 2: a string may not hold this" },
        { "\"\\", "line 1, column 2: a string may not hold this" }, { "\"\\u12\"", "line 1, column 2: a string may not hold this" },
        { "\"\\u12g4\"", "line 1, column 2: a string may not hold this" }, { "\"\\U0041\"", "line 1, column 2: a string may not hold this" },
        { "\"\\ud83d\"", "line 1, column 2: a string may not hold this" }, { "\"\\ud83d\\u0041\"", "line 1, column 2: a string may not hold this" },
        { "\"\\ud83dx\"", "line 1, column 2: a string may not hold this" }, { "\"\\ude00\"", "line 1, column 2: a string may not hold this" },
        { "\"\\ud83d\\ud83d\"", "line 1, column 2: a string may not hold this" }, { "\"\\ud83d\\ue000\"", "line 1, column 2: a string may not hold this" },
        { "\"\x80\"", "line 1, column 2: a string may not hold this" }, { "\"\xc3\"", "line 1, column 2: a string may not hold this" },
        { "\"\xc0\xaf\"", "line 1, column 2: a string may not hold this" }, { "\"\xe0\x80\xaf\"", "line 1, column 2: a string may not hold this" },
        { "\"\xed\xa0\x80\"", "line 1, column 2: a string may not hold this" }, { "\"\xf4\x90\x80\x80\"", "line 1, column 2: a string may not hold this" },
        { "\"\xff\"", "line 1, column 2: a string may not hold this" }, { "\"\xf0\x9f\x98", "line 1, column 2: a string may not hold this" },
        { "\xef\xbb\xbf\xef\xbb\xbf{}", "line 1, column 1: expected a value" },
        { "\xef\xbb {}", "line 1, column 1: expected a value" }, { "{\xef\xbb\xbf}", "line 1, column 2: expected a string" },
        { "\xef\xbb\xbf[x", "line 1, column 2: expected a value" }, { "\xef\xbb\xbf", "line 1, column 1: expected a value" }, { "[1,\n 2,\n  x]", "line 3, column 3: expected a value" },
        { "// c\n1", "line 1, column 1: expected a value" }, { "[1]\v", "line 1, column 4: text after the value" },
        { "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "line 1, column 33: nested deeper than 32 levels" }
    };
    static const char nul[] = "1\0", in_string[] = "\"\0\"";
    char expected[200];
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (read_json(&env, bad[i].text, strlen(bad[i].text)) != TL_ERROR_PARSE) fail_msg("accepted: %s", bad[i].text);
        snprintf(expected, sizeof expected, "tl_parse_strategy_json: %s", bad[i].error);
        if (strcmp(env.error.text, expected)) fail_msg("%s: %s", bad[i].text, env.error.text);
        assert_int_equal(read_json(NULL, bad[i].text, strlen(bad[i].text)), TL_ERROR_PARSE);
    }
    assert_int_equal(read_json(&env, nul, 2), TL_ERROR_PARSE);
    assert_int_equal(read_json(&env, in_string, 3), TL_ERROR_PARSE);
}

static void json_cut_anywhere_is_refused(void **state) {
    static const char text[] = "{\"a\":[1.5e-3,true,false,null,\"x\\u00e9\\ud83d\\ude00\\n\"],\"b\":{\"c\":{},\"d\":[]}}";
    size_t i;
    (void)state;
    assert_int_equal(read_json(NULL, text, strlen(text)), TL_OK);
    for (i = 0; i < strlen(text); i++) {
        char *cut = (char *)malloc(i + 1);  // its own block, so that reading past the end is seen
        memcpy(cut, text, i);
        assert_int_equal(read_json(NULL, cut, i), TL_ERROR_PARSE);
        free(cut);
    }
}

static void json_of_any_depth_is_refused_without_recursion(void **state) {
    size_t length = 1000000, i;
    char *text = (char *)malloc(length);
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(text, '[', length);
    assert_int_equal(read_json(&env, text, length), TL_ERROR_PARSE);
    assert_string_equal(env.error.text, "tl_parse_strategy_json: line 1, column 33: nested deeper than 32 levels");
    for (i = 0; i + 5 <= length; i += 5) memcpy(text + i, "{\"a\":", 5);
    assert_int_equal(read_json(&env, text, length), TL_ERROR_PARSE);
    assert_non_null(strstr(env.error.text, "nested deeper"));
    free(text);
    assert_int_equal(read_json(&env, "", TLI_TEXT_LIMIT + 1), TL_ERROR_PARSE);  // not looked at
    assert_string_equal(env.error.text, "tl_parse_strategy_json: line 1, column 1: the text is longer than 2^30 bytes");
}

typedef struct sample { uint64_t count; double ratio, sum; int on; int32_t name; uint32_t seen; } sample;

static tl_result read_sample(tl_env *env, const char *text, sample *s) {
    static const char *const keys[] = { "count", "ratio", "on", "name", "list" }, *const names[] = { "zero", "one" };
    tli_json j = tli_json_open(env, TLI_IN(PARSE_STRATEGY_JSON), text, strlen(text));
    int32_t key;
    memset(s, 0, sizeof *s);
    if (tli_json_enter(&j, '{'))
        while ((key = tli_json_next_key(&j, keys, 5, &s->seen)) >= 0) {
            if (key == 0) s->count = tli_json_u64(&j);
            else if (key == 1) s->ratio = tli_json_f64(&j);
            else if (key == 2) s->on = tli_json_bool(&j);
            else if (key == 3) s->name = tli_json_name(&j, names, 2);
            else if (tli_json_enter(&j, '['))
                while (tli_json_next(&j, NULL)) s->sum += tli_json_f64(&j);
        }
    return tli_json_end(&j);
}

static void json_values_are_read_in_any_order_and_unknown_ones_skipped(void **state) {
    sample s;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(read_sample(&env, "{\"x\":[1,{\"count\":9}],\"list\":[1,2.5,-3e1],\"on\":true,\"y\":null,"
                                       "\"n\\u0061me\":\"\\u006fne\",\"ratio\":0.5,\"count\":18446744073709551615,\"z\":\"\"}", &s), TL_OK);
    assert_true(s.count == UINT64_MAX && s.ratio == 0.5 && s.sum == -26.5 && s.on && s.name == 1 && s.seen == 31);
    assert_int_equal(read_sample(&env, "{}", &s), TL_OK);
    assert_int_equal(s.seen, 0);
    assert_int_equal(read_sample(&env, " {\"list\" : [ ] , \"on\" : false } ", &s), TL_OK);
    assert_int_equal(s.seen, 20);
}

static void json_values_of_the_wrong_kind_are_refused(void **state) {
    static const struct { const char *text, *error; } bad[] = {
        { "[]", "line 1, column 1: expected an object" }, { "{\"list\":{}}", "line 1, column 9: expected an array" },
        { "{\"count\":-1}", "line 1, column 10: expected a whole number from 0 to 2^64 - 1" },
        { "{\"count\":1.0}", "line 1, column 10: expected a whole number from 0 to 2^64 - 1" },
        { "{\"count\":18446744073709551616}", "line 1, column 10: expected a whole number from 0 to 2^64 - 1" },
        { "{\"count\":\"1\"}", "line 1, column 10: expected a number" }, { "{\"count\":007}", "line 1, column 11: expected , or }" },
        { "{\"ratio\":1e999}", "line 1, column 10: the number is too large" }, { "{\"ratio\":NaN}", "line 1, column 10: expected a number" },
        { "{\"ratio\":null}", "line 1, column 10: expected a number" }, { "{\"on\":1}", "line 1, column 7: expected true or false" },
        { "{\"on\":\"true\"}", "line 1, column 7: expected true or false" }, { "{\"name\":\"two\"}", "line 1, column 10: unknown name" },
        { "{\"name\":\"ones\"}", "line 1, column 10: unknown name" }, { "{\"name\":\"on\"}", "line 1, column 10: unknown name" },
        { "{\"name\":1}", "line 1, column 9: expected a string" }, { "{\"on\":true,\"on\":true}", "line 1, column 13: this key comes twice" },
        { "{\"on\":true,\"\\u006fn\":true}", "line 1, column 13: this key comes twice" }, { "{\"on\":}", "line 1, column 7: expected true or false" },
        { "{\"list\":[1,]}", "line 1, column 12: expected a number" }, { "{\"on\":true", "line 1, column 11: expected , or }" },
        { "{\"on\":true}}", "line 1, column 12: text after the value" }, { "{\"x\":[}", "line 1, column 7: expected a value" }
    };
    char expected[200];
    sample s;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_sample(&env, bad[i].text, &s), TL_ERROR_PARSE);
        snprintf(expected, sizeof expected, "tl_parse_strategy_json: %s", bad[i].error);
        assert_string_equal(env.error.text, expected);
    }
}

static size_t print_json_text(const char *text, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    tli_put_json_text(&w, text);
    return tli_finish(&w);
}

static void any_text_prints_as_a_json_string(void **state) {
    static const struct { const char *text, *json; } cases[] = {
        { "", "\"\"" }, { "conv1", "\"conv1\"" }, { "a\"b\\c/", "\"a\\\"b\\\\c/\"" }, { "\n\t\x1f\x7f", "\"\\u000a\\u0009\\u001f\x7f\"" },
        { "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"" }, { "a\xff\xc3", "\"a\\ufffd\\ufffd\"" },
        { "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" }
    };
    tl_random random = { 1 };
    char text[20], buf[200];
    size_t i, k, length;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(print_json_text(cases[i].text, buf, sizeof buf), strlen(cases[i].json));
        assert_string_equal(buf, cases[i].json);
    }
    for (i = 0; i < 20000; i++) {
        const char *name = text;
        tli_word raw;
        int ascii = 1;
        length = (size_t)tl_next_random_below(&random, sizeof text);
        for (k = 0; k < length; k++) {
            text[k] = (char)(1 + tl_next_random_below(&random, i % 2 ? 127 : 255));
            ascii = ascii && (unsigned char)text[k] < 128;
        }
        text[length] = 0;
        length = print_json_text(text, buf, sizeof buf);
        assert_int_equal(read_json(NULL, buf, length), TL_OK);
        raw.text = buf + 1;
        raw.length = length - 2;
        if (ascii) assert_int_equal(tli_json_find(raw, &name, 1), 0);
    }
}

static void logarithms_without_builtins_are_those_of_the_highest_bit(void **state) {
    int k;
    (void)state;
    assert_int_equal(tli_log2_u64(0), 0);
    for (k = 0; k < 64; k++) {
        uint64_t bit = (uint64_t)1 << k;
        assert_int_equal(tli_log2_u64(bit), k);
        assert_int_equal(tli_log2_u64(bit | bit / 3), k);
        assert_int_equal(tli_log2_u64(bit | (bit - 1)), k);
    }
}

static void no_rule_is_number_0(void **state) {
    (void)state;
    assert_int_equal(tli_number_rule(TLI_NO_RULE), 0);
    assert_int_not_equal(tli_number_rule(TLI_RULE(TEXT_AFTER_SUMMARY)), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_the_one_of_the_macros),
        cmocka_unit_test(every_result_has_a_name_and_an_explanation),
        cmocka_unit_test(errors_are_one_sentence_in_the_env_and_in_the_log),
        cmocka_unit_test(memory_for_a_backend_is_zeroed_counted_and_refused_with_null),
        cmocka_unit_test(an_error_of_a_backend_is_recorded_like_one_of_the_library),
        cmocka_unit_test(a_sentence_that_is_too_long_ends_with_a_whole_character),
        cmocka_unit_test(sums_and_products_report_overflow_at_the_edge),
        cmocka_unit_test(bytes_and_texts_are_compared_copied_and_cleared),
        cmocka_unit_test(an_array_is_zero_and_too_large_ones_are_refused),
        cmocka_unit_test(a_growing_array_keeps_its_items),
        cmocka_unit_test(an_arena_needs_room_for_its_bookkeeping),
        cmocka_unit_test(an_arena_serves_an_exact_fit_and_refuses_one_byte_more),
        cmocka_unit_test(an_arena_refuses_sizes_that_would_wrap),
        cmocka_unit_test(an_arena_aligns_whatever_its_memory_begins_at),
        cmocka_unit_test(an_arena_joins_free_neighbours_in_any_order),
        cmocka_unit_test(an_arena_uses_the_first_piece_that_fits),
        cmocka_unit_test(an_arena_under_random_use_never_overlaps_and_ends_in_one_piece),
        cmocka_unit_test(a_writer_truncates_like_snprintf),
        cmocka_unit_test(whole_numbers_print_at_their_limits),
        cmocka_unit_test(a_reader_cuts_lines_into_words),
        cmocka_unit_test(whole_numbers_are_read_exactly_or_not_at_all),
        cmocka_unit_test(a_name_is_found_as_a_whole),
        cmocka_unit_test(random_numbers_have_fixed_values),
        cmocka_unit_test(mixing_is_the_generator_by_counter),
        cmocka_unit_test(a_random_ratio_is_at_least_0_and_below_1),
        cmocka_unit_test(a_random_number_below_a_limit_is_unbiased),
        cmocka_unit_test(numbers_print_in_the_forms_of_serde_json),
        cmocka_unit_test(random_doubles_print_shortest_and_read_back),
        cmocka_unit_test(powers_of_two_and_ten_and_their_neighbours_print_shortest_and_read_back),
        cmocka_unit_test(fixed_decimals_round_the_exact_value_half_to_even),
        cmocka_unit_test(middles_between_two_doubles_round_to_even),
        cmocka_unit_test(random_decimals_read_as_strtod_reads_them),
        cmocka_unit_test(numbers_at_the_ends_of_the_range_are_read_right),
        cmocka_unit_test(numbers_of_many_digits_are_read_exactly),
        cmocka_unit_test(json_of_rfc_8259_is_accepted),
        cmocka_unit_test(json_that_is_not_strict_is_refused_with_its_place),
        cmocka_unit_test(json_cut_anywhere_is_refused),
        cmocka_unit_test(json_of_any_depth_is_refused_without_recursion),
        cmocka_unit_test(json_values_are_read_in_any_order_and_unknown_ones_skipped),
        cmocka_unit_test(json_values_of_the_wrong_kind_are_refused),
        cmocka_unit_test(any_text_prints_as_a_json_string),
        cmocka_unit_test(logarithms_without_builtins_are_those_of_the_highest_bit),
        cmocka_unit_test(no_rule_is_number_0),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("1 core", tests, NULL, NULL);
}
