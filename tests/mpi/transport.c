// The transport of examples/transport_mpi.h between two processes: what arrives, and what is refused. tests/mpi.sh runs it.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; nanosleep
#include <stdio.h>
#include <time.h>
#define TL_STRATEGY_IMPLEMENTATION
#define TL_STRATEGY_STATIC
#include "../../tl_strategy.h"
#include "../../examples/transport_mpi.h"

enum { POLL_LIMIT = 2000, LARGE = 1 << 22 };

static int failures;

static void expect(int rank, const char *what, tl_result found, tl_result expected) {
    if (found == expected) return;
    failures++;
    fprintf(stderr, "rank %d: %s: %s, expected %s\n", rank, what, tl_name_result(found), tl_name_result(expected));
}

static tl_result finish(const tl_transport *t, int32_t request) {
    const struct timespec pause = { 0, 100000 };
    tl_result result;
    while ((result = t->poll(t->self, request)) == TL_NOT_READY) nanosleep(&pause, NULL);
    return result;
}

// Send from rank 0 to rank 1; the result of this rank's side.
static tl_result pass(const tl_transport *t, uint32_t tag, void *data, uint64_t sent, uint64_t received) {
    int32_t request = 0;
    tl_result result = t->rank ? t->receive(t->self, 0, tag, data, received, &request)
                               : t->send(t->self, 1, tag, data, sent, &request);
    return result ? result : finish(t, request);
}

// Both ranks send large messages before they receive: a transport that blocks waits here for good.
static void check_crossing(const tl_transport *t, unsigned char *data, unsigned char *other) {
    int32_t requests[2], i;
    for (i = 0; i < LARGE; i++) data[i] = (unsigned char)(i * 7 + t->rank);
    expect(t->rank, "send", t->send(t->self, 1 - t->rank, 1, data, LARGE, &requests[0]), TL_OK);
    expect(t->rank, "receive", t->receive(t->self, 1 - t->rank, 1, other, LARGE, &requests[1]), TL_OK);
    expect(t->rank, "large message sent", finish(t, requests[0]), TL_OK);
    expect(t->rank, "large message arrived", finish(t, requests[1]), TL_OK);
    for (i = 0; i < LARGE && other[i] == (unsigned char)(i * 7 + 1 - t->rank); i++) { }
    if (i < LARGE) expect(t->rank, "bytes of the large message", TL_ERROR_MISMATCH, TL_OK);
}

// Messages of one tag keep their order; of two tags they may be asked for in another one.
static void check_order(const tl_transport *t) {
    int32_t numbers[3] = { 10, 11, 12 }, requests[3], i;
    const uint32_t tags[3] = { 5, 5, 6 };
    if (!t->rank) {
        for (i = 0; i < 3; i++)
            expect(0, "send", t->send(t->self, 1, tags[i], &numbers[i], sizeof *numbers, &requests[i]), TL_OK);
    } else {
        for (i = 2; i >= 0; i--) {
            numbers[i] = 0;
            expect(1, "receive", t->receive(t->self, 0, tags[2 - i], &numbers[i], sizeof *numbers, &requests[i]), TL_OK);
        }
    }
    for (i = 0; i < 3; i++) expect(t->rank, "small message", finish(t, requests[i]), TL_OK);
    if (t->rank && (numbers[2] != 10 || numbers[1] != 11 || numbers[0] != 12))
        expect(1, "order of messages", TL_ERROR_MISMATCH, TL_OK);
}

static void check_refused(const tl_transport *t, int tag_limit, void *data) {
    int32_t request;
    expect(t->rank, "more bytes than MPI counts", t->send(t->self, 1 - t->rank, 1, data, (uint64_t)INT_MAX + 1, &request),
           TL_ERROR_UNSUPPORTED);
    expect(t->rank, "a tag above the limit", t->receive(t->self, 1 - t->rank, (uint32_t)tag_limit + 1, data, 4, &request),
           TL_ERROR_UNSUPPORTED);
    expect(t->rank, "a peer that is none", t->send(t->self, 2, 1, data, 4, &request), TL_ERROR_INVALID_ARG);
}

// Nobody sends: the receive is lost after its polls, and its place is free again, as often as there are places.
static void check_lost(const tl_transport *t, void *data) {
    int32_t request, i;
    for (i = 0; i < 12; i++) {
        expect(t->rank, "receive", t->receive(t->self, 1 - t->rank, 7, data, 4, &request), TL_OK);
        if (i == 0) expect(t->rank, "a silent peer", finish(t, request), TL_ERROR_PEER_LOST);
        else t->cancel(t->self, request);
    }
}

static void check_places(const tl_transport *t, void *data) {
    int32_t requests[8], i, other;
    for (i = 0; i < 8; i++) expect(t->rank, "receive", t->receive(t->self, 1 - t->rank, 8, data, 4, &requests[i]), TL_OK);
    expect(t->rank, "one more than there are places", t->receive(t->self, 1 - t->rank, 8, data, 4, &other),
           TL_ERROR_NO_MEMORY);
    for (i = 0; i < 8; i++) t->cancel(t->self, requests[i]);
}

int main(int count, char **argv) {
    mpi_hub_desc desc = { MPI_COMM_WORLD, 8, POLL_LIMIT, NULL };
    mpi_hub hub;
    tl_transport t;
    unsigned char *data = (unsigned char *)calloc(2, LARGE);
    MPI_Init(&count, &argv);
    if (!data || !mpi_hub_open(&hub, &desc) || hub.rank_count != 2) {
        fprintf(stderr, "no memory, or not two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    t = mpi_hub_join(&hub);
    check_crossing(&t, data, data + LARGE);
    check_order(&t);
    expect(t.rank, "no bytes", pass(&t, 2, data, 0, 0), TL_OK);
    expect(t.rank, "a message cut short", pass(&t, 3, data, 100, 128), t.rank ? TL_ERROR_MISMATCH : TL_OK);
    expect(t.rank, "a message too long", pass(&t, 4, data, 128, 100), t.rank ? TL_ERROR_MISMATCH : TL_OK);
    check_refused(&t, hub.tag_limit, data);
    check_lost(&t, data);
    check_places(&t, data);
    mpi_hub_close(&hub);
    free(data);
    if (!t.rank && !failures) printf("two processes: messages arrive, in order, or are refused\n");
    MPI_Finalize();
    return failures != 0;
}
