// The rules of accounts, which every backend that has them must keep. Include after cmocka and the implementation.
#ifndef TESTS_ACCOUNT_CHECKS_H
#define TESTS_ACCOUNT_CHECKS_H

// Two accounts of a fresh backend: counted and limited apart and together. Nothing is left behind.
static inline void check_accounts(const tl_backend *b) {
    const uint64_t limits[TL_TIER_COUNT] = { 3000, 0 }, none[TL_TIER_COUNT] = { 0, 0 };
    uint64_t first, second, third, step;
    tl_range ranges[3], host;
    tl_account_counters c;
    tl_backend_counters all;
    tl_backend_limits l;
    int i;
    b->limits(b->self, &l);
    step = (1000 + l.alignment_bytes - 1) / l.alignment_bytes * l.alignment_bytes;
    memset(ranges, 0, sizeof ranges);
    memset(&host, 0, sizeof host);
    assert_int_equal(b->add_block(b->self, TL_TIER_DEVICE, 4 * step, &ranges[0].block), TL_OK);
    assert_int_equal(b->add_block(b->self, TL_TIER_HOST, 500, &host.block), TL_OK);
    host.bytes = 500;
    for (i = 0; i < 3; i++) {
        ranges[i].block = ranges[0].block;
        ranges[i].offset = (uint64_t)i * step;
        ranges[i].bytes = 1000;
    }
    assert_int_equal(b->open_account(b->self, limits, &first), TL_OK);
    assert_int_equal(b->open_account(b->self, none, &second), TL_OK);
    assert_true(first && second && first != second);
    assert_int_equal(b->claim_on(b->self, first, ranges[0]), TL_OK);
    assert_int_equal(b->claim_on(b->self, first, ranges[2]), TL_OK);
    assert_int_equal(b->claim_on(b->self, second, ranges[1]), TL_OK);
    assert_int_equal(b->claim_on(b->self, first, host), TL_OK);
    assert_int_equal(b->measure_account(b->self, first, 0, &c), TL_OK);
    assert_int_equal(c.live_bytes[TL_TIER_DEVICE], 2000);
    assert_int_equal(c.live_bytes[TL_TIER_HOST], 500);
    assert_int_equal(c.claim_count[TL_TIER_DEVICE], 2);
    assert_int_equal(c.claim_count[TL_TIER_HOST], 1);
    assert_int_equal(c.arena_bytes, 3 * step);
    assert_int_equal(b->measure_account(b->self, second, 0, &c), TL_OK);
    assert_int_equal(c.live_bytes[TL_TIER_DEVICE], 1000);
    assert_int_equal(c.peak_bytes[TL_TIER_DEVICE], 1000);
    assert_int_equal(c.arena_bytes, 2 * step);
    b->counters(b->self, &all);
    assert_int_equal(all.live_bytes[TL_TIER_DEVICE], 3000);

    // Peaks are reset one by one.
    assert_int_equal(b->release_on(b->self, first, ranges[2]), TL_OK);
    assert_int_equal(b->measure_account(b->self, first, 0, &c), TL_OK);
    assert_int_equal(c.peak_bytes[TL_TIER_DEVICE], 2000);
    assert_int_equal(b->measure_account(b->self, first, 1, &c), TL_OK);
    assert_int_equal(c.peak_bytes[TL_TIER_DEVICE], 1000);
    assert_int_equal(c.peak_bytes[TL_TIER_HOST], 500);
    assert_int_equal(c.arena_bytes, 0);
    assert_int_equal(b->measure_account(b->self, second, 0, &c), TL_OK);
    assert_int_equal(c.arena_bytes, 2 * step);

    // A range is released on its own account only.
    ranges[2].bytes = 1001;
    assert_int_equal(b->claim_on(b->self, first, ranges[2]), TL_OK);
    assert_int_equal(b->release_on(b->self, second, ranges[2]), TL_ERROR_INVALID_ARG);
    assert_int_equal(b->release_on(b->self, first, ranges[2]), TL_OK);

    // Each has a limit of its own, to the byte.
    assert_int_equal(b->release_on(b->self, second, ranges[1]), TL_OK);
    ranges[2].offset = step;
    ranges[2].bytes = 2001;
    assert_int_equal(b->claim_on(b->self, first, ranges[2]), TL_ERROR_OVER_BUDGET);
    ranges[2].bytes = 2000;
    assert_int_equal(b->claim_on(b->self, first, ranges[2]), TL_OK);
    ranges[1].offset = 3 * step;
    assert_int_equal(b->release_on(b->self, second, ranges[2]), TL_ERROR_INVALID_ARG);  // not its own
    assert_int_equal(b->release_on(b->self, first, ranges[2]), TL_OK);
    ranges[2].bytes = 0;
    assert_int_equal(b->claim_on(b->self, first, ranges[2]), TL_OK);  // no bytes
    assert_int_equal(b->release_on(b->self, first, ranges[2]), TL_OK);

    // A closed account is none; what was claimed on it stays claimed, on no account.
    assert_int_equal(b->close_account(b->self, first), TL_OK);
    assert_int_equal(b->close_account(b->self, first), TL_ERROR_STALE);
    assert_int_equal(b->close_account(b->self, 0), TL_ERROR_STALE);
    assert_int_equal(b->open_account(b->self, none, &third), TL_OK);
    assert_true(third != first);
    assert_int_equal(b->claim_on(b->self, first, ranges[1]), TL_ERROR_STALE);
    assert_int_equal(b->release_on(b->self, first, ranges[0]), TL_ERROR_STALE);
    assert_int_equal(b->measure_account(b->self, first, 0, &c), TL_ERROR_STALE);
    assert_int_equal(c.live_bytes[TL_TIER_HOST], 0);
    assert_int_equal(b->measure_account(b->self, third, 0, &c), TL_OK);
    assert_int_equal(c.live_bytes[TL_TIER_DEVICE] + c.live_bytes[TL_TIER_HOST] + c.peak_bytes[TL_TIER_DEVICE], 0);
    assert_int_equal(b->release(b->self, ranges[0]), TL_OK);
    assert_int_equal(b->release(b->self, host), TL_OK);
    assert_int_equal(b->free_block(b->self, ranges[0].block), TL_OK);
    assert_int_equal(b->free_block(b->self, host.block), TL_OK);
    assert_int_equal(b->close_account(b->self, second), TL_OK);
    assert_int_equal(b->close_account(b->self, third), TL_OK);
}

#endif
