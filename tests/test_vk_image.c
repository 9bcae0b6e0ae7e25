// Tests of examples/vk_image.h: every kernel against nn_image.h on the host, bit by bit, over random shapes, windows,
// strides, ranges of rows, and images that are there as a whole or in rings, shifted and wrapped; and what they refuse.
//
//     cc -std=c99 -Iexamples tests/test_vk_image.c -lcmocka -lm -ldl -o test_vk_image && ./test_vk_image
//
// All operands of a case lie in one block of random floats, on the device and on the host. Afterwards the whole block is
// compared: a kernel that writes elsewhere, or reads a row that is not where tl_find_row says, shows. Sums of vk_image.h
// are not fused and have the order of the host, so equal means equal; only zeros may have another sign.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "support/vk_support.h"
#include "support/vk_shared.h"
#include "support/walks.h"

#include "nn_image.h"
#include "vk_image.h"

// -- the device, opened once, and a block --

enum { FLOATS = 1 << 15, TALLEST = 8, WIDEST = 32, CASES = 250 };

static struct {
    shared_device device;
    vk_image      vi;
    tl_range      block;
    uint64_t      alignment;
    uint64_t      seed, drawn;      // of the case at hand
    uint64_t      end;              // bytes of the block that have operands
    float         before[FLOATS], expected[FLOATS], after[FLOATS];
} g;

static void ok(tl_result result) {
    if (result == TL_ERROR_INVALID_ARG && g.vi.refusal[0]) fail_msg("seed %d: %s", (int)g.seed, g.vi.refusal);
    shared_ok(&g.device, result);
}

static int has_device(const char *test) {
    const tl_backend *b = &g.device.backend;
    tl_backend_limits limits;
    if (!vkt_has_vulkan(test)) return 0;
    if (!shared_open(&g.device)) return 1;
    ok(vk_image_init(b, &g.vi));
    memset(&limits, 0, sizeof limits);
    b->limits(b->self, &limits);
    g.alignment = limits.alignment_bytes;
    g.block.bytes = FLOATS * sizeof(float);
    ok(b->add_block(b->self, TL_TIER_DEVICE, g.block.bytes, &g.block.block));
    ok(b->claim(b->self, g.block));
    return 1;
}

static int close_device(void **state) {
    const tl_backend *b = &g.device.backend;
    tl_ticket ticket;
    (void)state;
    if (!g.device.is_open) return 0;
    ok(b->submit(b->self, &ticket));
    ok(b->wait(b->self, ticket));
    ok(b->release(b->self, g.block));
    ok(b->free_block(b->self, g.block.block));
    vk_image_free(&g.vi);
    return shared_close(&g.device);
}

#define NEED_DEVICE() do { if (!has_device(__func__)) skip(); } while (0)

static void move(float *floats, tl_map_mode mode) {
    const tl_backend *b = &g.device.backend;
    const tl_access access = { g.block, mode == TL_MAP_WRITE };
    void *mapped;
    ok(b->order(b->self, &access, 1));
    ok(b->map(b->self, g.block, mode, &mapped));
    if (mode == TL_MAP_WRITE) memcpy(mapped, floats, sizeof g.before);
    else memcpy(floats, mapped, sizeof g.before);
    ok(b->unmap(b->self, g.block, mode, mapped));
}

// -- cases --

// A number below n.
static uint64_t draw(uint64_t n) { return nn_hash(g.seed, g.drawn++) % n; }

// Begin a case: random floats, here and there a zero, on both sides.
static void begin(uint64_t seed) {
    size_t i;
    g.seed = seed;
    g.drawn = 0;
    g.end = 0;
    for (i = 0; i < FLOATS; i++) {
        uint64_t bits = nn_hash(seed + 1000, i);
        g.before[i] = bits % 16 ? (float)((double)(bits >> 40) / (1 << 23) - 1.0) * (bits % 8 ? 1.0f : 16.0f) : 0.0f;
    }
    memcpy(g.expected, g.before, sizeof g.before);
    move(g.before, TL_MAP_WRITE);
}

static void assert_expected(const char *what) {
    size_t i;
    move(g.after, TL_MAP_READ);
    for (i = 0; i < FLOATS; i++)
        if (memcmp(&g.after[i], &g.expected[i], sizeof g.after[i]) && !(g.after[i] == 0.0f && g.expected[i] == 0.0f))
            fail_msg("%s, seed %d: float %d of the block (operands have %d bytes) is %.9g, expected %.9g, was %.9g", what,
                     (int)g.seed, (int)i, (int)g.end, (double)g.after[i], (double)g.expected[i], (double)g.before[i]);
}

// The next range of the block, behind a gap.
static tl_range place(uint64_t floats) {
    tl_range range = g.block;
    range.offset = (g.end + g.alignment - 1) / g.alignment * g.alignment + g.alignment * draw(3);
    range.bytes = floats * sizeof(float);
    g.end = range.offset + range.bytes;
    assert_true(g.end <= sizeof g.before);
    return range;
}

static float *on_host(tl_range range) { return g.expected + range.offset / sizeof(float); }

typedef struct image {
    tl_operand operand;
    size_t H, W, C;
} image;

// An image as a whole, or in a ring that has room for so many rows of it.
static image make(size_t H, size_t W, size_t C, uint64_t least) {
    image m;
    memset(&m, 0, sizeof m);
    m.H = H;
    m.W = W;
    m.C = C;
    if (draw(3)) {
        m.operand.rows = least + draw(3);
        m.operand.shift = draw(3 * m.operand.rows);
        m.operand.row_bytes = (W * C + (draw(2) ? draw(7) : 0)) * sizeof(float);
        m.operand.range = place(m.operand.rows * m.operand.row_bytes / sizeof(float));
    } else {
        m.operand.range = place(H * W * C);
    }
    m.operand.host = on_host(m.operand.range);
    return m;
}

static float *row_of(const image *m, int64_t row) {
    if (row < 0 || row >= (int64_t)m->H) return NULL;
    return (float *)tl_find_row(&m->operand, (uint64_t)row, m->W * m->C * sizeof(float));
}

static vk_image_rows on_device(const image *m) { return vk_image_of(&m->operand, m->H, m->W, m->C); }

// Rows of a result, and those of an input under their windows.
typedef struct span { uint64_t first, count, top, end; } span;

static span draw_rows(uint64_t H, uint64_t in_H, uint64_t size, uint64_t stride, uint64_t above, uint64_t most) {
    span s;
    s.first = draw(H);
    s.count = 1 + draw(H - s.first);
    if (s.count > most) s.count = most;
    s.top = s.first * stride > above ? s.first * stride - above : 0;
    s.end = (s.first + s.count - 1) * stride + size;
    s.end = s.end > above ? s.end - above : 0;
    if (s.end > in_H) s.end = in_H;
    return s;
}

static void find_window(const image *in, int64_t top, uint64_t size, const float *rows[TALLEST]) {
    uint64_t k;
    for (k = 0; k < size; k++) rows[k] = row_of(in, top + (int64_t)k);
}

static void bound_row(float *row, size_t n, vk_image_bound bound) {
    if (bound == VK_IMAGE_RELU) nn_relu_forward(row, row, n);
    if (bound == VK_IMAGE_RELU6) nn_relu6_forward(row, row, n);
}

// What convolutions draw.
typedef struct convolution {
    size_t size, stride;
    vk_image_bound bound;
    tl_range weight, bias;
    span s;
    image in, out;
} convolution;

static tl_range place_bias(size_t N) { return draw(2) ? place(N) : vk_nn_no_range(); }

static const float *bias_of(tl_range bias) { return bias.bytes ? on_host(bias) : NULL; }

static void draw_windows(convolution *c) {
    c->size = 1 + 2 * (size_t)draw(4);
    c->stride = 1 + (size_t)draw(3);
    c->bound = (vk_image_bound)draw(3);
}

// -- each kernel against the host --

static void check_conv2d(uint64_t seed) {
    const float *rows[TALLEST];
    convolution c;
    size_t H, W, C, N;
    uint64_t row;
    begin(seed);
    draw_windows(&c);
    H = 1 + (size_t)draw(9);
    W = 1 + (size_t)draw(11);
    C = 1 + (size_t)draw(6);
    N = 1 + (size_t)draw(10);
    c.s = draw_rows(nn_find_row_width(H, c.stride), H, c.size, c.stride, c.size / 2, H);
    c.in = make(H, W, C, c.s.end - c.s.top);
    c.out = make(nn_find_row_width(H, c.stride), nn_find_row_width(W, c.stride), N, c.s.count);
    c.weight = place(c.size * c.size * C * N);
    c.bias = place_bias(N);
    for (row = c.s.first; row < c.s.first + c.s.count; row++) {
        float *out = row_of(&c.out, (int64_t)row);
        find_window(&c.in, (int64_t)(row * c.stride) - (int64_t)(c.size / 2), c.size, rows);
        nn_conv2d_row(out, rows, on_host(c.weight), bias_of(c.bias), W, C, N, c.size, c.stride);
        bound_row(out, c.out.W * N, c.bound);
    }
    ok(vk_image_conv2d(&g.vi, on_device(&c.out), on_device(&c.in), c.weight, c.bias, c.s.first, c.s.count, c.size, c.stride,
                       c.bound));
    assert_expected("conv2d");
}

static void run_depthwise(convolution *c, const char *what) {
    const float *rows[TALLEST];
    float first[WIDEST];
    uint64_t row;
    for (row = c->s.first; row < c->s.first + c->s.count; row++) {
        float *out = row_of(&c->out, (int64_t)row);
        find_window(&c->in, (int64_t)(row * c->stride) - (int64_t)(c->size / 2), c->size, rows);
        nn_depthwise_row(out, rows, on_host(c->weight), bias_of(c->bias), first, c->in.W, c->in.C, c->size, c->stride);
        bound_row(out, c->out.W * c->in.C, c->bound);
    }
    ok(vk_image_depthwise(&g.vi, on_device(&c->out), on_device(&c->in), c->weight, c->bias, c->s.first, c->s.count, c->size,
                          c->stride, c->bound));
    assert_expected(what);
}

static void check_depthwise(uint64_t seed) {
    convolution c;
    size_t H, W, C;
    begin(seed);
    draw_windows(&c);
    H = 1 + (size_t)draw(9);
    W = 1 + (size_t)draw(11);
    C = 1 + (size_t)draw(70);
    c.s = draw_rows(nn_find_row_width(H, c.stride), H, c.size, c.stride, c.size / 2, H);
    c.in = make(H, W, C, c.s.end - c.s.top);
    c.out = make(nn_find_row_width(H, c.stride), nn_find_row_width(W, c.stride), C, c.s.count);
    c.weight = place(c.size * c.size * C);
    c.bias = place_bias(C);
    run_depthwise(&c, "depthwise");
}

// One row, written over the first row under its windows: where that is above the image, where it would be in the ring.
static void check_depthwise_slot(uint64_t seed) {
    convolution c;
    size_t H, W, C;
    uint64_t rows;
    begin(seed);
    draw_windows(&c);
    H = 1 + (size_t)draw(9);
    W = 1 + (size_t)draw(20);
    C = 1 + (size_t)draw(70);
    c.s = draw_rows(nn_find_row_width(H, c.stride), H, c.size, c.stride, c.size / 2, 1);
    do {
        g.end = 0;
        c.in = make(H, W, C, c.s.end + c.size / 2 - c.s.first * c.stride);
    } while (!c.in.operand.rows);
    c.out = c.in;
    c.out.H = nn_find_row_width(H, c.stride);
    c.out.W = nn_find_row_width(W, c.stride);
    rows = c.in.operand.rows;
    c.out.operand.shift = (c.in.operand.shift + c.s.first * c.stride + rows * (c.s.first + c.size) - c.size / 2 - c.s.first) % rows;
    c.weight = place(c.size * c.size * C);
    c.bias = place_bias(C);
    run_depthwise(&c, "depthwise in a slot");
}

static void check_pools(uint64_t seed) {
    const float *rows[TALLEST];
    size_t size, H, W, C;
    image in, out;
    uint64_t row;
    int is_mean;
    span s;
    begin(seed);
    is_mean = (int)draw(2);
    size = 1 + (size_t)draw(4);
    H = size * (1 + (size_t)draw(4));
    W = size * (1 + (size_t)draw(5));
    C = 1 + (size_t)draw(9);
    s = draw_rows(H / size, H, size, size, 0, H);
    in = make(H, W, C, s.end - s.top);
    out = make(H / size, W / size, C, s.count);
    for (row = s.first; row < s.first + s.count; row++) {
        find_window(&in, (int64_t)(row * size), size, rows);
        if (is_mean) nn_mean_pool_row(row_of(&out, (int64_t)row), rows, W, C, size);
        else nn_max_pool_row(row_of(&out, (int64_t)row), rows, W, C, size);
    }
    ok(is_mean ? vk_image_mean_pool(&g.vi, on_device(&out), on_device(&in), s.first, s.count, size)
               : vk_image_max_pool(&g.vi, on_device(&out), on_device(&in), s.first, s.count, size));
    assert_expected(is_mean ? "mean pool" : "max pool");
}

static void check_concat_upsampled(uint64_t seed) {
    size_t scale, H, W, C, N;
    image in, wide, out;
    uint64_t row;
    span s;
    begin(seed);
    scale = 1 + (size_t)draw(3);
    H = 1 + (size_t)draw(9);
    W = 1 + (size_t)draw(9);
    C = 1 + (size_t)draw(6);
    N = 1 + (size_t)draw(6);
    s = draw_rows(H, H, 1, 1, 0, H);
    in = make(H, W, C, s.count);
    wide = make((H - 1) / scale + 1, (W - 1) / scale + 1, N, (s.first + s.count - 1) / scale - s.first / scale + 1);
    out = make(H, W, C + N, s.count);
    for (row = s.first; row < s.first + s.count; row++)
        nn_concat_upsampled_row(row_of(&out, (int64_t)row), row_of(&in, (int64_t)row), row_of(&wide, (int64_t)(row / scale)), W,
                                C, N, scale);
    ok(vk_image_concat_upsampled(&g.vi, on_device(&out), on_device(&in), on_device(&wide), s.first, s.count, scale));
    assert_expected("concat upsampled");
}

// The result in a place of its own, or in that of either input.
static void check_add_rows(uint64_t seed) {
    size_t H, W, C;
    image a, b, out;
    uint64_t row;
    span s;
    begin(seed);
    H = 1 + (size_t)draw(9);
    W = 1 + (size_t)draw(9);
    C = 1 + (size_t)draw(9);
    s = draw_rows(H, H, 1, 1, 0, H);
    a = make(H, W, C, s.count);
    b = make(H, W, C, s.count);
    out = make(H, W, C, s.count);
    if (draw(3) == 0) out = draw(2) ? a : b;
    for (row = s.first; row < s.first + s.count; row++)
        nn_add_forward(row_of(&out, (int64_t)row), row_of(&a, (int64_t)row), row_of(&b, (int64_t)row), W * C);
    ok(vk_image_add_rows(&g.vi, on_device(&out), on_device(&a), on_device(&b), s.first, s.count));
    assert_expected("add rows");
}

static void check_copy_rows(uint64_t seed) {
    size_t H, W, C;
    image in, out;
    uint64_t row;
    span s;
    begin(seed);
    H = 1 + (size_t)draw(9);
    W = 1 + (size_t)draw(9);
    C = 1 + (size_t)draw(9);
    s = draw_rows(H, H, 1, 1, 0, H);
    in = make(H, W, C, s.count);
    out = make(H, W, C, s.count);
    for (row = s.first; row < s.first + s.count; row++)
        memcpy(row_of(&out, (int64_t)row), row_of(&in, (int64_t)row), W * C * sizeof(float));
    ok(vk_image_copy_rows(&g.vi, on_device(&out), on_device(&in), s.first, s.count));
    assert_expected("copy rows");
}

static void check_all(void (*check)(uint64_t seed)) {
    int seed, cases = is_slow() ? 30 : CASES * soaked();
    for (seed = 0; seed < cases; seed++) check((uint64_t)seed);
}

#define AGAINST_HOST(test, check)   \
    static void test(void **state) { \
        (void)state;                 \
        NEED_DEVICE();               \
        check_all(check);            \
    }
AGAINST_HOST(rows_of_conv2d_are_those_of_the_host, check_conv2d)
AGAINST_HOST(rows_of_depthwise_are_those_of_the_host, check_depthwise)
AGAINST_HOST(rows_of_depthwise_over_their_first_row_are_those_of_the_host, check_depthwise_slot)
AGAINST_HOST(rows_of_pools_are_those_of_the_host, check_pools)
AGAINST_HOST(rows_of_concat_upsampled_are_those_of_the_host, check_concat_upsampled)
AGAINST_HOST(rows_of_add_rows_are_those_of_the_host, check_add_rows)
AGAINST_HOST(copied_rows_are_those_of_the_host, check_copy_rows)

// -- images in rings, from row to row --

// An image that comes row by row into a ring of three rows, depthwise in its slots, and the result row by row out of them.
static void an_image_passes_through_slots_of_a_ring(void **state) {
    enum { H = 11, W = 13, C = 5, RING = 3 };
    image whole, ring, out, slots;
    tl_range weight;
    uint64_t row, next = 0, stride;
    (void)state;
    NEED_DEVICE();
    for (stride = 1; stride <= 2; stride++, next = 0) {
        const uint64_t rows = (H - 1) / stride + 1;
        begin(stride);
        memset(&whole, 0, sizeof whole);
        whole.H = H;
        whole.W = W;
        whole.C = C;
        ring = out = whole;
        whole.operand.range = place(H * W * C);
        whole.operand.host = on_host(whole.operand.range);
        ring.operand.range = place(RING * W * C);
        ring.operand.host = on_host(ring.operand.range);
        ring.operand.rows = RING;
        ring.operand.row_bytes = W * C * sizeof(float);
        out.H = rows;
        out.W = (W - 1) / stride + 1;
        out.operand.range = place(rows * out.W * C);
        out.operand.host = on_host(out.operand.range);
        weight = place(9 * C);
        for (row = 0; row < rows; row++) {
            const float *window[TALLEST];
            float first[WIDEST];
            slots = out;
            slots.operand = ring.operand;
            slots.operand.shift = (row * stride + RING * (row + 1) - 1 - row) % RING;
            for (; next < H && next <= row * stride + 1; next++) {
                memcpy(row_of(&ring, (int64_t)next), row_of(&whole, (int64_t)next), W * C * sizeof(float));
                ok(vk_image_copy_rows(&g.vi, on_device(&ring), on_device(&whole), next, 1));
            }
            find_window(&whole, (int64_t)(row * stride) - 1, 3, window);   // the ring has other bits where rows were made
            nn_depthwise_row(row_of(&out, (int64_t)row), window, on_host(weight), NULL, first, W, C, 3, (size_t)stride);
            memcpy(row_of(&slots, (int64_t)row), row_of(&out, (int64_t)row), out.W * C * sizeof(float));
            ok(vk_image_depthwise(&g.vi, on_device(&slots), on_device(&ring), weight, vk_nn_no_range(), row, 1, 3, stride,
                                  VK_IMAGE_PLAIN));
            ok(vk_image_copy_rows(&g.vi, on_device(&out), on_device(&slots), row, 1));
        }
        assert_expected("an image through slots");
    }
}

// More invocations than one direction of a dispatch has.
static void rows_beyond_one_direction_of_a_dispatch_are_copied(void **state) {
    enum { H = 3, W = 1 << 15, C = 47 };     // 47 x 2^15 x 3 floats: 4 620 288, and 4 194 240 fit
    const tl_backend *b = &g.device.backend;
    tl_range ranges[2];
    size_t i, floats = (size_t)H * W * C, wrong = 0;
    tl_access access;
    void *mapped;
    int k;
    (void)state;
    NEED_DEVICE();
    memset(ranges, 0, sizeof ranges);
    for (k = 0; k < 2; k++) {
        ranges[k].bytes = floats * sizeof(float);
        ok(b->add_block(b->self, TL_TIER_DEVICE, ranges[k].bytes, &ranges[k].block));
        ok(b->claim(b->self, ranges[k]));
    }
    ok(b->map(b->self, ranges[0], TL_MAP_WRITE, &mapped));
    for (i = 0; i < floats; i++) ((float *)mapped)[i] = (float)i;
    ok(b->unmap(b->self, ranges[0], TL_MAP_WRITE, mapped));
    ok(vk_image_copy_rows(&g.vi, vk_image_whole(ranges[1], H, W, C), vk_image_whole(ranges[0], H, W, C), 0, H));
    access.range = ranges[1];
    access.writes = 0;
    ok(b->order(b->self, &access, 1));
    ok(b->map(b->self, ranges[1], TL_MAP_READ, &mapped));
    for (i = 0; i < floats; i++) wrong += ((const float *)mapped)[i] != (float)i;
    ok(b->unmap(b->self, ranges[1], TL_MAP_READ, mapped));
    assert_int_equal(wrong, 0);
    for (k = 0; k < 2; k++) {
        ok(b->release(b->self, ranges[k]));
        ok(b->free_block(b->self, ranges[k].block));
    }
}

// -- refusals --

// A call that is taken, of which each refusal changes something.
static struct {
    vk_image_rows out, in, other;
    tl_range weight, bias;
    uint64_t first, count, size, stride;
    vk_image_bound bound;
} r;

static void make_call(void) {
    begin(7);
    memset(&r, 0, sizeof r);
    r.in = vk_image_whole(place(8 * 8 * 4), 8, 8, 4);
    r.out = vk_image_whole(place(8 * 8 * 4), 8, 8, 4);
    r.other = vk_image_whole(place(8 * 8 * 4), 8, 8, 4);
    r.weight = place(9 * 4 * 4);
    r.bias = place(4);
    r.count = 4;
    r.size = 3;
    r.stride = 1;
}

typedef enum refused_kernel { CONV2D, DEPTHWISE, MAX_POOL, MEAN_POOL, CONCAT, ADD, COPY } refused_kernel;

static tl_result call_kernel(refused_kernel kernel) {
    switch (kernel) {
    case CONV2D:
        return vk_image_conv2d(&g.vi, r.out, r.in, r.weight, r.bias, r.first, r.count, r.size, r.stride, r.bound);
    case DEPTHWISE:
        return vk_image_depthwise(&g.vi, r.out, r.in, r.weight, r.bias, r.first, r.count, r.size, r.stride, r.bound);
    case MAX_POOL: return vk_image_max_pool(&g.vi, r.out, r.in, r.first, r.count, r.size);
    case MEAN_POOL: return vk_image_mean_pool(&g.vi, r.out, r.in, r.first, r.count, r.size);
    case CONCAT: return vk_image_concat_upsampled(&g.vi, r.out, r.in, r.other, r.first, r.count, r.size);
    case ADD: return vk_image_add_rows(&g.vi, r.out, r.in, r.other, r.first, r.count);
    case COPY: return vk_image_copy_rows(&g.vi, r.out, r.in, r.first, r.count);
    }
    return TL_OK;
}

static void expect_refusal(refused_kernel kernel, const char *text) {
    tl_vk_counters before, after;
    tl_vk_measure(&g.device.backend, &before);
    assert_int_equal(call_kernel(kernel), TL_ERROR_INVALID_ARG);
    tl_vk_measure(&g.device.backend, &after);
    assert_string_equal(g.vi.refusal, text);
    assert_int_equal(before.kernel_count, after.kernel_count);
    g.vi.refusal[0] = 0;
    make_call();
}

static void what_is_taken_is_taken(void **state) {
    (void)state;
    NEED_DEVICE();
    make_call();
    ok(call_kernel(CONV2D));
    ok(call_kernel(DEPTHWISE));
    ok(call_kernel(ADD));
    ok(call_kernel(COPY));
    r.size = 1;
    ok(call_kernel(MAX_POOL));
    ok(call_kernel(MEAN_POOL));
    r.other.C = r.in.C = 2;
    ok(call_kernel(CONCAT));
}

static void convolutions_refuse_what_they_cannot_take(void **state) {
    (void)state;
    NEED_DEVICE();
    make_call();
    r.size = 2;
    expect_refusal(CONV2D, "vk_image_conv2d: size: must be odd and at most 31");
    r.size = 33;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: size: must be odd and at most 31");
    r.stride = 0;
    expect_refusal(CONV2D, "vk_image_conv2d: stride: must be 1 to 31");
    r.stride = 32;
    expect_refusal(CONV2D, "vk_image_conv2d: stride: must be 1 to 31");
    r.bound = (vk_image_bound)3;
    expect_refusal(CONV2D, "vk_image_conv2d: bound: is not known");
    r.stride = 2;
    expect_refusal(CONV2D, "vk_image_conv2d: out: must have a pixel for each stride-th of in");
    r.out.W = 7;
    expect_refusal(CONV2D, "vk_image_conv2d: out: must have a pixel for each stride-th of in");
    r.weight.bytes -= 4;
    expect_refusal(CONV2D, "vk_image_conv2d: weight: has too few bytes");
    r.weight.bytes = 9 * 4 * 4 - 4;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: weight: has too few bytes");
    r.bias.bytes -= 4;
    expect_refusal(CONV2D, "vk_image_conv2d: bias: has too few bytes");
    r.out.C = (uint64_t)1 << 40;
    expect_refusal(CONV2D, "vk_image_conv2d: weight: would have too many floats");
    r.in.C = r.out.C = 1 << 20;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: weight: would have too many floats");
    r.out.C = 3;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: out: must have the channels of in");
    r.out.range.offset = r.in.range.offset + r.in.range.bytes - 4;
    expect_refusal(CONV2D, "vk_image_conv2d: out: overlaps in");
}

static void rows_that_are_not_there_are_refused(void **state) {
    (void)state;
    NEED_DEVICE();
    make_call();
    r.count = 0;
    expect_refusal(CONV2D, "vk_image_conv2d: out: has other rows than those of the call");
    r.first = 5;
    expect_refusal(COPY, "vk_image_copy_rows: out: has other rows than those of the call");
    r.first = UINT64_MAX - 1;
    expect_refusal(ADD, "vk_image_add_rows: out: has other rows than those of the call");
    r.in.rows = 4;      // rows 0 to 4 are read
    expect_refusal(CONV2D, "vk_image_conv2d: in: its ring has fewer rows than the call reads or makes");
    r.in.rows = 5;      // rows 1 to 6
    r.first = 2;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: in: its ring has fewer rows than the call reads or makes");
    r.out.rows = 3;
    expect_refusal(ADD, "vk_image_add_rows: out: its ring has fewer rows than the call reads or makes");
    r.other.rows = 3;
    expect_refusal(ADD, "vk_image_add_rows: b: its ring has fewer rows than the call reads or makes");
    r.in.floats = 31;
    expect_refusal(CONV2D, "vk_image_conv2d: in: its rows overlap");
    r.in.range.bytes -= 4;
    expect_refusal(COPY, "vk_image_copy_rows: in: its range has fewer bytes than its rows");
    r.in.W = 0;
    expect_refusal(CONV2D, "vk_image_conv2d: in: has no rows, pixels or channels");
    r.in.rows = 0;
    expect_refusal(ADD, "vk_image_add_rows: a: has no rows, pixels or channels");
    r.out.H = (uint64_t)1 << 30;
    expect_refusal(COPY, "vk_image_copy_rows: out: has 2^30 floats, or a count of 2^30 or more");
    r.out.floats = (uint64_t)1 << 27;   // times 8 rows
    expect_refusal(COPY, "vk_image_copy_rows: out: has 2^30 floats, or a count of 2^30 or more");
    r.out.shift = (uint64_t)1 << 30;
    expect_refusal(COPY, "vk_image_copy_rows: out: has 2^30 floats, or a count of 2^30 or more");
}

static void shapes_that_do_not_fit_are_refused(void **state) {
    (void)state;
    NEED_DEVICE();
    make_call();
    r.size = 0;
    expect_refusal(MAX_POOL, "vk_image_max_pool: size: must be 1 to 1024");
    r.size = 1025;
    expect_refusal(MEAN_POOL, "vk_image_mean_pool: size: must be 1 to 1024");
    r.size = 2;
    expect_refusal(MAX_POOL, "vk_image_max_pool: out: must have a pixel for each square of in");
    r.size = 1;
    r.out.C = 2;
    expect_refusal(MEAN_POOL, "vk_image_mean_pool: out: must have a pixel for each square of in");
    r.size = 1;
    r.out.range = r.in.range;
    expect_refusal(MAX_POOL, "vk_image_max_pool: out: overlaps in");
    r.size = 0;
    expect_refusal(CONCAT, "vk_image_concat_upsampled: scale: must be 1 to 1024");
    r.size = 2;
    expect_refusal(CONCAT, "vk_image_concat_upsampled: wide: must have a pixel for each square of in");
    r.size = 1;
    expect_refusal(CONCAT, "vk_image_concat_upsampled: out: must have the pixels of in, and the channels of both");
    r.size = 1;
    r.other.C = r.in.C = 2;
    r.out.range = r.other.range;
    expect_refusal(CONCAT, "vk_image_concat_upsampled: out: overlaps wide");
    r.out.W = 4;
    expect_refusal(COPY, "vk_image_copy_rows: out: must have the shape of in");
    r.other.C = 3;
    expect_refusal(ADD, "vk_image_add_rows: out: must have the shape of a and of b");
}

// What is written over what is read: row by row, or not at all.
static void overlaps_in_other_places_are_refused(void **state) {
    (void)state;
    NEED_DEVICE();
    make_call();
    r.out = r.in;
    r.out.shift = 1;
    expect_refusal(ADD, "vk_image_add_rows: out: overlaps an input, and not row by row");
    r.out = r.other;
    r.out.rows = 7;
    expect_refusal(ADD, "vk_image_add_rows: out: overlaps an input, and not row by row");
    r.out = r.in;
    expect_refusal(COPY, "vk_image_copy_rows: out: overlaps in");
    r.out = r.in;
    r.out.shift = 7;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: count: must be 1 where out overlaps in");
    r.out = r.in;
    r.count = 1;        // the row above the image would be the last of the range
    expect_refusal(DEPTHWISE, "vk_image_depthwise: out: overlaps in, and not where the first row under its windows is");
    r.in.rows = 2;
    r.out = r.in;
    r.out.shift = 1;
    r.count = 1;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: in: its ring has no room for a row above the image");
    r.weight = g.block;
    r.out = r.in;
    r.out.shift = 4;
    r.size = 9;
    r.count = 1;
    expect_refusal(DEPTHWISE, "vk_image_depthwise: size: must be at most 7 where out overlaps in");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_conv2d_are_those_of_the_host),
        cmocka_unit_test(rows_of_depthwise_are_those_of_the_host),
        cmocka_unit_test(rows_of_depthwise_over_their_first_row_are_those_of_the_host),
        cmocka_unit_test(rows_of_pools_are_those_of_the_host),
        cmocka_unit_test(rows_of_concat_upsampled_are_those_of_the_host),
        cmocka_unit_test(rows_of_add_rows_are_those_of_the_host),
        cmocka_unit_test(copied_rows_are_those_of_the_host),
        cmocka_unit_test(an_image_passes_through_slots_of_a_ring),
        cmocka_unit_test(rows_beyond_one_direction_of_a_dispatch_are_copied),
        cmocka_unit_test(what_is_taken_is_taken),
        cmocka_unit_test(convolutions_refuse_what_they_cannot_take),
        cmocka_unit_test(rows_that_are_not_there_are_refused),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(overlaps_in_other_places_are_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, close_device);
}
