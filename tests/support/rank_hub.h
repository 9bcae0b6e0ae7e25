// The ranks of a transport in one thread, in turns. Include after the implementation, cmocka and support.h.
#ifndef TESTS_RANK_HUB_H
#define TESTS_RANK_HUB_H

#include "transport_threads.h"

enum { MOST_HUB_RANKS = 8, MOST_HUB_TURNS = 1000000 };

// Between each rank and the hub: it answers TL_NOT_READY at random or fails on purpose, leaving in *request the number of a
// message of somebody else, and holds the run to what it was given.
typedef struct hub_side {
    tl_transport inner;
    struct rank_hub *hub;
    int32_t      pending[1024], count;   // requests of this rank that were taken and have not ended
} hub_side;

// Set before hub_open.
static int       hub_not_ready;          // of 100 calls of send, receive and poll, so many
static long      hub_fail_at = -1;       // the send or receive that fails, counted over all ranks; -1 = none
static tl_result hub_fail_code = TL_ERROR_IO;

typedef struct rank_hub {
    threads_hub  hub;
    hub_side     sides[MOST_HUB_RANKS];
    tl_transport transports[MOST_HUB_RANKS];
    int32_t      count;
    tl_random    random;
    long         begun, refused, failed, canceled;
} rank_hub;

static inline int hub_refuses(hub_side *side) {
    int refuses = hub_not_ready && (int)tl_next_random_below(&side->hub->random, 100) < hub_not_ready;
    side->hub->refused += refuses;
    return refuses;
}

// A number that this rank has no business with, if there is one.
static inline int32_t hub_foreign_request(const hub_side *side) {
    int32_t r;
    for (r = 0; r < side->hub->count; r++) {
        const hub_side *other = &side->hub->sides[r];
        if (other != side && other->count) return other->pending[0];
    }
    return 0;
}

static inline void hub_end_request(hub_side *side, int32_t request) {
    int32_t i = 0;
    while (i < side->count && side->pending[i] != request) i++;
    if (i == side->count) fail_msg("request %d is not one of this rank's", (int)request);
    side->pending[i] = side->pending[--side->count];
}

static inline tl_result hub_begin(hub_side *side, int sends, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request) {
    tl_result result = TL_OK;
    *request = hub_foreign_request(side);
    if (side->hub->begun++ == hub_fail_at) {
        side->hub->failed++;
        return hub_fail_code;
    }
    if (hub_refuses(side)) return TL_NOT_READY;
    result = sends ? side->inner.send(side->inner.self, peer, tag, data, bytes, request)
                   : side->inner.receive(side->inner.self, peer, tag, data, bytes, request);
    if (result) return result;
    assert_true(side->count < 1024);
    side->pending[side->count++] = *request;
    return TL_OK;
}

static inline tl_result hub_send(void *self, int32_t peer, uint32_t tag, const void *data, uint64_t bytes, int32_t *request) {
    return hub_begin((hub_side *)self, 1, peer, tag, (void *)(uintptr_t)data, bytes, request);
}

static inline tl_result hub_receive(void *self, int32_t peer, uint32_t tag, void *data, uint64_t bytes, int32_t *request) {
    return hub_begin((hub_side *)self, 0, peer, tag, data, bytes, request);
}

static inline tl_result hub_poll(void *self, int32_t request) {
    hub_side *side = (hub_side *)self;
    tl_result result;
    int32_t i = 0;
    while (i < side->count && side->pending[i] != request) i++;
    if (i == side->count) fail_msg("request %d is polled and is not one of this rank's", (int)request);
    if (hub_refuses(side)) return TL_NOT_READY;
    result = side->inner.poll(side->inner.self, request);
    if (result != TL_NOT_READY) hub_end_request(side, request);
    return result;
}

static inline void hub_cancel(void *self, int32_t request) {
    hub_side *side = (hub_side *)self;
    hub_end_request(side, request);
    side->hub->canceled++;
    side->inner.cancel(side->inner.self, request);
}

// link: 0 = messages take no time.
static inline void hub_open(rank_hub *h, int32_t count, uint64_t poll_limit, const tl_link *link) {
    threads_hub_desc desc;
    int32_t r;
    assert_true(count <= MOST_HUB_RANKS);
    memset(h, 0, sizeof *h);
    memset(&desc, 0, sizeof desc);
    desc.rank_count = h->count = count;
    desc.poll_limit = poll_limit;
    h->random.state = 77 + (uint64_t)count;
    assert_true(threads_hub_open(&h->hub, &desc));
    for (r = 0; r < count; r++) {
        h->sides[r].inner = h->transports[r] = threads_hub_join(&h->hub, r);
        h->sides[r].hub = h;
        h->transports[r].self = &h->sides[r];
        h->transports[r].send = hub_send;
        h->transports[r].receive = hub_receive;
        h->transports[r].poll = hub_poll;
        h->transports[r].cancel = hub_cancel;
        h->transports[r].link = link;
    }
}

// The runs are freed: none has left a message.
static inline void hub_close(rank_hub *h) {
    int32_t r;
    for (r = 0; r < h->count; r++) assert_int_equal(h->sides[r].count, 0);
    threads_hub_close(&h->hub);
}

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
