// A backend that can neither submit nor wait: it records into frames that the test opens, ends and retires, and
// nothing happens before its frame is retired. Around the plain CPU backend. Include after cmocka and the
// implementation.
#ifndef TESTS_RECORD_SUPPORT_H
#define TESTS_RECORD_SUPPORT_H

#include <stdlib.h>
#include <string.h>

typedef enum record_kind { RECORD_COPY, RECORD_COMPRESS, RECORD_EXPAND, RECORD_FILL, RECORD_FREE, RECORD_CALL } record_kind;

typedef struct record_op {
    record_kind kind;
    tl_range to, from;          // of a call: see below
    tl_codec codec;
    uint32_t word;
    uint64_t block;             // RECORD_FREE
    uint64_t frame;             // that it goes into
    void   (*call)(void *data); // RECORD_CALL; frees its data
    void    *data;
    tl_access accesses[40];     // of a call
    int32_t  access_count;
} record_op;

typedef struct recorder {
    tl_backend inner;
    record_op *ops;
    int32_t    op_count, op_capacity;
    uint64_t   frame;           // the one that is open, or the next
    uint64_t   retired;         // the last one whose work was done
    int        is_open;
    int        out_of_order;    // 1 = limits say so
    int        is_visible;      // 1 = limits say that the host maps operands
    int        refuses_maps;    // 1 = every map is not ready
    long       refuses_submits; // so many more submits are not ready
    long       submits, polls, waits, not_ready;
} recorder;

// -- frames --

static inline void record_start(recorder *r) {
    assert_false(r->is_open);
    r->is_open = 1;
}

static inline void record_end(recorder *r) {
    assert_true(r->is_open);
    r->is_open = 0;
    r->frame++;
}

static inline void record_do(recorder *r, record_op *op) {
    tl_backend *b = &r->inner;
    tl_result result = TL_OK;
    switch (op->kind) {
    case RECORD_COPY: result = b->copy(b->self, op->to, op->from); break;
    case RECORD_COMPRESS: result = b->compress(b->self, op->codec, op->to, op->from); break;
    case RECORD_EXPAND: result = b->expand(b->self, op->codec, op->to, op->from); break;
    case RECORD_FILL: result = b->fill(b->self, op->to, op->word); break;
    case RECORD_FREE: result = b->free_block(b->self, op->block); break;
    case RECORD_CALL: op->call(op->data); break;
    }
    assert_int_equal(result, TL_OK);
}

// Do the work of the frames up to this one, which have ended.
static inline void record_retire(recorder *r, uint64_t frame) {
    int32_t done = 0, i;
    assert_true(frame < r->frame);
    while (done < r->op_count && r->ops[done].frame <= frame) record_do(r, &r->ops[done++]);
    for (i = done; i < r->op_count; i++) r->ops[i - done] = r->ops[i];
    r->op_count -= done;
    r->retired = frame;
}

static inline void record_finish(recorder *r) {
    if (!r->is_open) record_start(r);
    record_end(r);
    record_retire(r, r->frame - 1);
    assert_int_equal(r->op_count, 0);
}

// -- the backend --

static inline record_op *record_add(recorder *r, record_kind kind) {
    record_op *op;
    if (r->op_count == r->op_capacity) {
        r->op_capacity = r->op_capacity ? 2 * r->op_capacity : 64;
        r->ops = (record_op *)realloc(r->ops, (size_t)r->op_capacity * sizeof *r->ops);
        assert_non_null(r->ops);
    }
    op = &r->ops[r->op_count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->frame = r->frame;
    return op;
}

static inline int record_overlaps(tl_range a, tl_range b) {
    return a.bytes && b.bytes && a.block == b.block && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

static inline int record_touches(const record_op *op, tl_range range, int writes) {
    int32_t i;
    if (record_overlaps(op->to, range) || (writes && record_overlaps(op->from, range))) return 1;
    for (i = 0; i < op->access_count; i++)
        if ((writes || op->accesses[i].writes) && record_overlaps(op->accesses[i].range, range)) return 1;
    return 0;
}

static tl_result record_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *block) {
    recorder *r = (recorder *)self;
    return r->inner.add_block(r->inner.self, tier, bytes, block);
}
static tl_result record_free_block(void *self, uint64_t block) {
    recorder *r = (recorder *)self;
    int32_t i, k;
    for (i = 0; i < r->op_count; i++) {
        const record_op *op = &r->ops[i];
        int uses = op->to.block == block || op->from.block == block;
        for (k = 0; k < op->access_count; k++) uses |= op->accesses[k].range.block == block;
        if (!uses) continue;
        record_add(r, RECORD_FREE)->block = block;
        return TL_OK;
    }
    return r->inner.free_block(r->inner.self, block);
}
static tl_result record_claim(void *self, tl_range range) {
    recorder *r = (recorder *)self;
    return r->inner.claim(r->inner.self, range);
}
static tl_result record_release(void *self, tl_range range) {
    recorder *r = (recorder *)self;
    return r->inner.release(r->inner.self, range);
}
static tl_result record_copy(void *self, tl_range to, tl_range from) {
    record_op *op = record_add((recorder *)self, RECORD_COPY);
    op->to = to; op->from = from;
    return TL_OK;
}
static tl_result record_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    record_op *op = record_add((recorder *)self, RECORD_COMPRESS);
    op->to = to; op->from = from; op->codec = codec;
    return TL_OK;
}
static tl_result record_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    record_op *op = record_add((recorder *)self, RECORD_EXPAND);
    op->to = to; op->from = from; op->codec = codec;
    return TL_OK;
}
static tl_result record_fill(void *self, tl_range to, uint32_t word) {
    record_op *op = record_add((recorder *)self, RECORD_FILL);
    op->to = to; op->word = word;
    return TL_OK;
}
static tl_result record_order(void *self, const tl_access *accesses, int32_t count) {
    (void)self; (void)accesses; (void)count;  // a barrier
    return TL_OK;
}
static tl_result record_submit(void *self, tl_ticket *ticket) {
    recorder *r = (recorder *)self;
    if (r->refuses_submits) { r->refuses_submits--; return TL_NOT_READY; }
    r->submits++;
    ticket->value = r->frame;
    return TL_OK;
}
static tl_result record_poll(void *self, tl_ticket ticket) {
    recorder *r = (recorder *)self;
    r->polls++;
    return ticket.value <= r->retired ? TL_OK : TL_NOT_READY;
}
static tl_result record_wait(void *self, tl_ticket ticket) {
    recorder *r = (recorder *)self;
    r->waits++;
    return ticket.value <= r->retired ? TL_OK : TL_NOT_READY;
}
static tl_result record_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    recorder *r = (recorder *)self;
    int32_t i;
    *host = NULL;
    if (r->refuses_maps) return TL_NOT_READY;
    for (i = 0; i < r->op_count; i++)
        if (record_touches(&r->ops[i], range, mode != TL_MAP_READ)) { r->not_ready++; return TL_NOT_READY; }
    return r->inner.map(r->inner.self, range, mode, host);
}
static tl_result record_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    recorder *r = (recorder *)self;
    return r->inner.unmap(r->inner.self, range, mode, host);
}
static tl_result record_check(void *self) {
    recorder *r = (recorder *)self;
    return r->inner.check(r->inner.self);
}
static uint64_t record_now_ns(void *self) {
    recorder *r = (recorder *)self;
    return r->inner.now_ns(r->inner.self);
}
static void record_limits(void *self, tl_backend_limits *limits) {
    recorder *r = (recorder *)self;
    r->inner.limits(r->inner.self, limits);
    limits->host_visible = r->is_visible;
    limits->in_order = !r->out_of_order;
}
static void record_counters(void *self, tl_backend_counters *counters) {
    recorder *r = (recorder *)self;
    r->inner.counters(r->inner.self, counters);
}
static void record_reset_peaks(void *self) {
    recorder *r = (recorder *)self;
    r->inner.reset_peaks(r->inner.self);
}

static inline tl_backend record_open(recorder *r, const tl_backend *inner) {
    tl_backend b;
    memset(r, 0, sizeof *r);
    r->inner = *inner;
    r->frame = 1;
    memset(&b, 0, sizeof b);  // no accounts: a backend may do without
    b.self = r; b.add_block = record_add_block; b.free_block = record_free_block; b.claim = record_claim;
    b.release = record_release; b.copy = record_copy; b.compress = record_compress; b.expand = record_expand;
    b.fill = record_fill; b.order = record_order; b.submit = record_submit; b.poll = record_poll; b.wait = record_wait;
    b.map = record_map; b.unmap = record_unmap; b.check = record_check; b.now_ns = record_now_ns;
    b.limits = record_limits; b.counters = record_counters; b.reset_peaks = record_reset_peaks;
    return b;
}

// What is left is done, so that the blocks it keeps go.
static inline void record_close(recorder *r) {
    record_finish(r);
    free(r->ops);
}

#endif
