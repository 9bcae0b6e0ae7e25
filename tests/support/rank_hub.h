// The ranks of a transport in one thread, in turns. Include after the implementation, cmocka and support.h.
#ifndef TESTS_RANK_HUB_H
#define TESTS_RANK_HUB_H

#include "transport_threads.h"

enum { MOST_HUB_RANKS = 8, MOST_HUB_TURNS = 1000000 };

typedef struct rank_hub {
    threads_hub  hub;
    tl_transport transports[MOST_HUB_RANKS];
    int32_t      count;
} rank_hub;

// link: 0 = messages take no time.
static inline void hub_open(rank_hub *h, int32_t count, uint64_t poll_limit, const tl_link *link) {
    threads_hub_desc desc;
    int32_t r;
    assert_true(count <= MOST_HUB_RANKS);
    memset(&desc, 0, sizeof desc);
    desc.rank_count = h->count = count;
    desc.poll_limit = poll_limit;
    assert_true(threads_hub_open(&h->hub, &desc));
    for (r = 0; r < count; r++) {
        h->transports[r] = threads_hub_join(&h->hub, r);
        h->transports[r].link = link;
    }
}

static inline void hub_close(rank_hub *h) { threads_hub_close(&h->hub); }

// Call every rank until it has ended: `call` answers TL_OK or TL_NOT_READY. They come at random; NULL = one after the other.
static inline void hub_take_turns(const rank_hub *h, tl_random *random, tl_result (*call)(int32_t rank, void *user), void *user) {
    int32_t left = h->count, next = 0;
    int done[MOST_HUB_RANKS] = { 0 };
    long turns;
    for (turns = 0; left; turns++) {
        int32_t r = random ? (int32_t)tl_next_random_below(random, (uint64_t)h->count) : next++ % h->count;
        if (turns > MOST_HUB_TURNS) fail_msg("%s", "ranks wait for each other");
        if (done[r] || call(r, user) == TL_NOT_READY) continue;
        done[r] = 1;
        left--;
    }
}

#endif
