// [7] of tl_strategy.h on a device: integers of a quantisation and back, extremes of channels, observers. Bit for bit
// what the CPU makes of the same data.
//
// SOAK=1 quantises 2^24 numbers of any bits under any quantisation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))
#define CANARY 0xC5

// -- help --

static void open_world(world *w, const vkshim_config *config, const tl_vk_backend_desc *desc) {
    vkt_desc device;
    vkshim_config plain;
    tl_vk_device made;
    memset(&device, 0, sizeof device);
    vkshim_default(&plain, VKSHIM_MACHINE_REAL);
    open_device(w, config ? config : &plain, &device);
    made = w->desc.device;
    if (desc) w->desc = *desc;
    w->desc.device = made;
    open_backend(w);
}

static void close_world(world *w) {
    expect_idle(w, "at the end");
    close_backend(w, "at the end");
    close_device(w);
}

static tl_range add(world *w, uint64_t bytes) {
    tl_range range;
    expect_ok(w, add_range(w, TL_TIER_DEVICE, bytes ? bytes : 1, &range), "add_range");
    range.bytes = bytes;
    return range;
}

static void drop(world *w, tl_range *range) {
    if (!range->bytes) range->bytes = 1;
    free_range(w, range);
}

static tl_range add_with(world *w, const void *bytes, uint64_t count) {
    tl_range range = add(w, count);
    if (count) expect_ok(w, write_range(w, range, bytes), "write_range");
    return range;
}

static void *allocate(uint64_t bytes) {
    void *made = calloc(bytes ? (size_t)bytes : 1, 1);
    assert_non_null(made);
    return made;
}

static uint32_t any_bits(tl_random *random) { return (uint32_t)(tl_next_random(random) >> 32); }

static tl_quantization make_quantization(float scale, int32_t zero_point, int32_t low, int32_t high,
                                         tl_rounding rounding) {
    tl_quantization q = quantization_of(scale, zero_point, low, high);
    q.rounding = rounding;
    return q;
}

static uint64_t width_of(tl_format format) { return format == TL_FORMAT_I8 ? 1 : 2; }

// A tensor, its quantisations and what becomes of it.
typedef struct work {
    const tl_quantization *quantizations;
    int32_t   channel_count;
    uint64_t  inner_count, count;
    tl_format format;
} work;

static void fail_at(const work *k, uint64_t i, const char *what, int64_t got, int64_t expected, uint32_t bits) {
    const tl_quantization *q = &k->quantizations[i / k->inner_count % (uint64_t)k->channel_count];
    fail_msg("%s %d of %d, from %08x: %lld, not %lld; scale %08x, zero point %d, %d .. %d, rounding %d", what, (int)i,
             (int)k->count, (unsigned)bits, (long long)got, (long long)expected, (unsigned)bits_of_float(q->scale),
             (int)q->zero_point, (int)q->low, (int)q->high, (int)q->rounding);
}

static int64_t integer_at(const void *integers, tl_format format, uint64_t i) {
    int16_t wide;
    if (format == TL_FORMAT_I8) return ((const int8_t *)integers)[i];
    memcpy(&wide, (const char *)integers + 2 * i, 2);
    return wide;
}

// Quantise on both sides.
static void check_quantize(world *w, const work *k, const float *plain) {
    uint64_t bytes = k->count * width_of(k->format), i;
    void *expected = allocate(bytes), *got = allocate(bytes);
    tl_range from = add_with(w, plain, 4 * k->count), to = add(w, bytes);
    expect_ok(w, tl_quantize(&w->env, k->quantizations, k->channel_count, k->inner_count, k->format, plain, expected,
                             k->count), "tl_quantize");
    expect_ok(w, tl_vk_record_quantize(&w->backend, to, from, k->quantizations, k->channel_count, k->inner_count,
                                       k->format), "tl_vk_record_quantize");
    if (bytes) expect_ok(w, read_range(w, to, got), "read_range");
    for (i = 0; i < k->count && memcmp(got, expected, (size_t)bytes); i++)
        if (integer_at(got, k->format, i) != integer_at(expected, k->format, i))
            fail_at(k, i, "integer", integer_at(got, k->format, i), integer_at(expected, k->format, i),
                    bits_of_float(plain[i]));
    drop(w, &from);
    drop(w, &to);
    free(expected);
    free(got);
}

// And back, from any integers.
static void check_dequantize(world *w, const work *k, const void *integers) {
    uint64_t i;
    float *expected = (float *)allocate(4 * k->count), *got = (float *)allocate(4 * k->count);
    tl_range from = add_with(w, integers, k->count * width_of(k->format)), to = add(w, 4 * k->count);
    expect_ok(w, tl_dequantize(&w->env, k->quantizations, k->channel_count, k->inner_count, k->format, integers,
                               expected, k->count), "tl_dequantize");
    expect_ok(w, tl_vk_record_dequantize(&w->backend, to, from, k->quantizations, k->channel_count, k->inner_count,
                                         k->format), "tl_vk_record_dequantize");
    if (k->count) expect_ok(w, read_range(w, to, got), "read_range");
    for (i = 0; i < k->count && memcmp(got, expected, (size_t)(4 * k->count)); i++)
        if (bits_of_float(got[i]) != bits_of_float(expected[i]))
            fail_at(k, i, "f32", bits_of_float(got[i]), bits_of_float(expected[i]),
                    (uint32_t)integer_at(integers, k->format, i));
    drop(w, &from);
    drop(w, &to);
    free(expected);
    free(got);
}

// -- integers --

typedef struct kind { int32_t low, high, zero_point; tl_format format; } kind;

static const kind kinds[] = {
    { -128, 127, 0, TL_FORMAT_I8 },     { -128, 127, -37, TL_FORMAT_I8 },      { -127, 127, 0, TL_FORMAT_I8 },
    { 0, 255, 0, TL_FORMAT_I8 },        { 0, 255, 201, TL_FORMAT_I8 },         { -8, 7, 7, TL_FORMAT_I8 },
    { -32767, 32767, 0, TL_FORMAT_I16 }, { -32768, 32767, 32767, TL_FORMAT_I16 }, { 0, 65535, 40000, TL_FORMAT_I16 }
};

// From the least denormal to the largest number; some that are no powers of two, and one next to one.
static const uint32_t scales[] = {
    0x3DCCCCCDu, 0x3C008081u, 0x3F800000u, 0x3F7FFFFFu, 0x3F800001u, 0x34000000u, 0x4B7FFFFFu, 0x00000001u,
    0x00000003u, 0x007FFFFFu, 0x00800000u, 0x7F7FFFFFu, 0x7F000000u, 0x2A123457u, 0x55555555u
};

static tl_quantization swept_quantization(int k, int s, int rounding) {
    return make_quantization(float_of_bits(scales[s]), kinds[k].zero_point, kinds[k].low, kinds[k].high,
                             (tl_rounding)rounding);
}

// One quantisation for all of a tensor.
static work whole_tensor(const tl_quantization *q, uint64_t count, tl_format format) {
    work job;
    job.quantizations = q;
    job.channel_count = 1;
    job.inner_count = 1;
    job.count = count;
    job.format = format;
    return job;
}

static void every_bf16_pattern_quantizes_like_the_host(void **state) {
    enum { COUNT = 65536 };
    float *plain = (float *)allocate(4 * COUNT);
    world w;
    int k, s, r;
    uint32_t i;
    (void)state;
    if (!vkt_has_vulkan("every_bf16_pattern_quantizes_like_the_host")) skip();
    open_world(&w, NULL, NULL);
    for (k = 0; k < COUNT_OF(kinds); k++)
        for (s = 0; s < COUNT_OF(scales); s++)
            for (r = 0; r < TL_ROUNDING_COUNT; r++) {
                tl_quantization q = swept_quantization(k, s, r);
                work job = whole_tensor(&q, COUNT, kinds[k].format);
                for (i = 0; i < COUNT; i++) {  // and what lies behind the patterns
                    uint32_t low = s % 3 == 0 ? 0 : s % 3 == 1 ? 1 : i * 40503u & 0xFFFFu;
                    plain[i] = float_of_bits(i << 16 | low);
                }
                check_quantize(&w, &job, plain);
            }
    free(plain);
    close_world(&w);
}

// (k + 1/2) scale and the numbers next to it, where the quotient has to be rounded twice.
static void halves_quantize_like_the_host(void **state) {
    enum { STEPS = 4096, SIDES = 7, COUNT = STEPS * SIDES };
    float *plain = (float *)allocate(4 * COUNT);
    world w;
    int k, s, r, i, side;
    (void)state;
    if (!vkt_has_vulkan("halves_quantize_like_the_host")) skip();
    open_world(&w, NULL, NULL);
    for (k = 0; k < COUNT_OF(kinds); k++)
        for (s = 0; s < COUNT_OF(scales); s++)
            for (r = 0; r < TL_ROUNDING_COUNT; r++) {
                tl_quantization q = swept_quantization(k, s, r);
                int32_t stride = kinds[k].format == TL_FORMAT_I8 ? 1 : 17;
                work job = whole_tensor(&q, COUNT, kinds[k].format);
                for (i = 0; i < STEPS; i++)
                    for (side = 0; side < SIDES; side++) {
                        double half = ((double)(i - STEPS / 2) * stride + 0.5) * (double)q.scale;
                        float near = half > 3e38 ? 3e38f : half < -3e38 ? -3e38f : (float)half;
                        plain[SIDES * i + side] = float_of_bits(bits_of_float(near) + (uint32_t)(side - SIDES / 2));
                    }
                check_quantize(&w, &job, plain);
            }
    free(plain);
    close_world(&w);
}

static void every_integer_dequantizes_like_the_host(void **state) {
    enum { COUNT = 65536 };
    uint16_t *integers = (uint16_t *)allocate(2 * COUNT);
    world w;
    int k, s;
    uint32_t i;
    (void)state;
    if (!vkt_has_vulkan("every_integer_dequantizes_like_the_host")) skip();
    open_world(&w, NULL, NULL);
    for (i = 0; i < COUNT; i++) integers[i] = (uint16_t)i;
    for (k = 0; k < COUNT_OF(kinds); k++)
        for (s = 0; s < COUNT_OF(scales); s++) {
            tl_quantization q = swept_quantization(k, s, 0);
            work job;
            job.quantizations = &q;
            job.channel_count = 1;
            job.inner_count = 1;
            job.count = COUNT;
            job.format = kinds[k].format;
            check_dequantize(&w, &job, integers);
        }
    free(integers);
    close_world(&w);
}

// Any quantisation that the format holds.
static tl_quantization any_quantization(tl_random *random, tl_format format) {
    int32_t half = format == TL_FORMAT_I8 ? 128 : 32768, low, high;
    uint32_t scale;
    low = -half + (int32_t)(any_bits(random) % (uint32_t)(2 * half - 1));
    high = low + 1 + (int32_t)(any_bits(random) % (uint32_t)(half - 1 - low));
    if (any_bits(random) % 4 == 0) {
        low = -half;
        high = half - 1;
    }
    if (any_bits(random) % 4 == 0) {  // unsigned
        low = 0;
        high = 2 * half - 1;
    }
    do {
        scale = any_bits(random) & 0x7FFFFFFFu;
        if (any_bits(random) % 4) scale = (scale & 0x07FFFFFFu) | 0x38000000u;
    } while (scale == 0 || scale >= 0x7F800000u);
    return make_quantization(float_of_bits(scale), low + (int32_t)(any_bits(random) % (uint32_t)(high - low + 1)), low, high,
                             (tl_rounding)(any_bits(random) % TL_ROUNDING_COUNT));
}

// A number of any bits, or one that the bounds do not clamp; at times half way between two.
static float any_number(tl_random *random, const tl_quantization *q) {
    uint32_t bits = any_bits(random);
    int32_t steps = (int32_t)(bits % 65536u) - 32768;
    double value;
    if (bits >> 30 == 0) return float_of_bits(any_bits(random));
    value = (double)steps / (bits >> 30 == 1 ? 2 : 256) * (double)q->scale;
    if (value > 3e38 || value < -3e38) return float_of_bits(any_bits(random));
    return float_of_bits(bits_of_float((float)value) + (bits >> 29 & 1u));
}

static void any_numbers_quantize_like_the_host(void **state) {
    enum { COUNT = 1 << 16 };
    long rounds = 8L * soaked(), round;
    float *plain = (float *)allocate(4 * COUNT);
    tl_random random;
    world w;
    (void)state;
    if (!vkt_has_vulkan("any_numbers_quantize_like_the_host")) skip();
    open_world(&w, NULL, NULL);
    random.state = 7;
    for (round = 0; round < rounds; round++) {
        tl_quantization q[16];
        work job;
        uint32_t i;
        job.quantizations = q;
        job.channel_count = 16;
        job.inner_count = COUNT / 64;
        job.count = COUNT;
        job.format = round % 2 ? TL_FORMAT_I16 : TL_FORMAT_I8;
        for (i = 0; i < 16; i++) q[i] = any_quantization(&random, job.format);
        for (i = 0; i < COUNT; i++) plain[i] = any_number(&random, &q[i / job.inner_count % 16]);
        check_quantize(&w, &job, plain);
        for (i = 0; i < COUNT; i++) plain[i] = float_of_bits(any_bits(&random));
        check_dequantize(&w, &job, plain);
    }
    free(plain);
    close_world(&w);
}

// -- shapes --

typedef struct shape { uint64_t outer; int32_t channel_count; uint64_t inner_count, count; } shape;

// Contiguous channels, strided ones, one of each, and ends inside a channel (count below the product).
static const shape shapes[] = {
    { 1, 1, 1, 1 },         { 1, 1, 7, 7 },       { 3, 1, 1, 3 },         { 1, 5, 1, 5 },          { 700, 3, 1, 2100 },
    { 1, 3, 700, 2100 },    { 2, 3, 64, 384 },    { 2, 3, 65, 389 },      { 2, 3, 63, 377 },       { 1, 300, 9, 2700 },
    { 9, 300, 1, 2700 },    { 5, 7, 11, 380 },    { 1, 2, 5000, 10000 },  { 40, 2, 129, 10319 },   { 3000, 4, 1, 12000 },
    { 1, 1000, 1, 999 },    { 1, 6, 1000, 1500 }, { 33, 17, 31, 17391 },  { 1, 2, 1, 1 },          { 2, 4000, 1, 8000 }
};

typedef void (*shape_check)(world *w, const shape *s, float *plain, tl_random *random);

// Every shape on workgroups of three sizes; plain: room for the numbers of the largest.
static void check_shapes(const char *test, uint64_t seed, shape_check check) {
    static const uint32_t workgroup_sizes[] = { 32, 64, 256 };
    float *plain = (float *)allocate(4 * 17391);
    tl_random random;
    int g, s;
    if (!vkt_has_vulkan(test)) { free(plain); skip(); }
    random.state = seed;
    for (g = 0; g < COUNT_OF(workgroup_sizes); g++) {
        tl_vk_backend_desc desc;
        world w;
        memset(&desc, 0, sizeof desc);
        desc.workgroup_size = workgroup_sizes[g];
        desc.staging_bytes = g ? 1 << 16 : 4096;  // the most channels do not fit the smaller one
        open_world(&w, NULL, &desc);
        for (s = 0; s < COUNT_OF(shapes); s++) check(&w, &shapes[s], plain, &random);
        close_world(&w);
    }
    free(plain);
}

static void check_quantizations(world *w, const shape *s, float *plain, tl_random *random) {
    tl_quantization *q = (tl_quantization *)allocate(4000 * sizeof *q);
    uint64_t i;
    int format;
    for (format = TL_FORMAT_I16; format <= TL_FORMAT_I8; format++) {
        work job;
        job.quantizations = q;
        job.channel_count = s->channel_count;
        job.inner_count = s->inner_count;
        job.count = s->count;
        job.format = (tl_format)format;
        for (i = 0; i < (uint64_t)job.channel_count; i++) q[i] = any_quantization(random, job.format);
        for (i = 0; i < job.count; i++)
            plain[i] = any_number(random, &q[i / job.inner_count % (uint64_t)job.channel_count]);
        check_quantize(w, &job, plain);
        check_dequantize(w, &job, plain);
    }
    free(q);
}

static void channels_have_quantizations_of_their_own(void **state) {
    (void)state;
    check_shapes("channels_have_quantizations_of_their_own", 3, check_quantizations);
}

// -- extremes --

static void add_to_extremes(tl_vk_extremes *e, uint32_t bits) {
    uint32_t key = bits >> 31 ? ~bits : bits | 0x80000000u;
    if ((bits & 0x7FFFFFFFu) >= 0x7F800000u) { e->other_count++; return; }
    e->finite_count++;
    if (key < e->least_key) e->least_key = key;
    if (key > e->largest_key) e->largest_key = key;
}

static void check_extremes(world *w, const shape *s, const float *plain) {
    uint64_t bytes = (uint64_t)s->channel_count * sizeof(tl_vk_extremes), i;
    tl_vk_extremes *expected = (tl_vk_extremes *)allocate(bytes), *got = (tl_vk_extremes *)allocate(bytes);
    tl_range from = add_with(w, plain, 4 * s->count), to = add(w, bytes);
    for (i = 0; i < (uint64_t)s->channel_count; i++) expected[i].least_key = UINT32_MAX;
    for (i = 0; i < s->count; i++)
        add_to_extremes(&expected[i / s->inner_count % (uint64_t)s->channel_count], bits_of_float(plain[i]));
    expect_ok(w, tl_vk_record_min_max_channels(&w->backend, to, from, s->channel_count, s->inner_count),
              "tl_vk_record_min_max_channels");
    expect_ok(w, read_range(w, to, got), "read_range");
    for (i = 0; i < (uint64_t)s->channel_count; i++)
        if (memcmp(&got[i], &expected[i], sizeof *got))
            fail_msg("channel %d of %d x %d in %d: %08x %08x %d %d, not %08x %08x %d %d", (int)i,
                     (int)s->channel_count, (int)s->inner_count, (int)s->count, (unsigned)got[i].least_key,
                     (unsigned)got[i].largest_key, (int)got[i].finite_count, (int)got[i].other_count,
                     (unsigned)expected[i].least_key, (unsigned)expected[i].largest_key,
                     (int)expected[i].finite_count, (int)expected[i].other_count);
    drop(w, &from);
    drop(w, &to);
    free(expected);
    free(got);
}

// Of any bits; of finite ones; of none that are finite.
static void check_kinds_of_extremes(world *w, const shape *s, float *plain, tl_random *random) {
    uint64_t i;
    int kind;
    for (kind = 0; kind < 3; kind++) {
        for (i = 0; i < s->count; i++) {
            uint32_t any = any_bits(random);
            plain[i] = float_of_bits(kind == 0 ? any : kind == 1 ? (any & 0xBFFFFFFFu) | 0x20000000u : any | 0x7F800000u);
        }
        check_extremes(w, s, plain);
    }
}

static void extremes_of_channels_are_those_of_the_host(void **state) {
    (void)state;
    check_shapes("extremes_of_channels_are_those_of_the_host", 11, check_kinds_of_extremes);
}

// -- pieces --

static void refuse(world *w, tl_result result, tl_result code, const char *text) {
    if (result != code) fail_msg("%s where \"%s\" was expected", tl_name_result(result), text);
    if (strcmp(w->env.error.text, text)) fail_msg("\"%s\" where \"%s\" was expected", w->env.error.text, text);
}

static void refuse_channels(world *w, int32_t channel_count) {
    tl_range range = add(w, (uint64_t)channel_count * 16);
    refuse(w, tl_vk_record_min_max_channels(&w->backend, range, range, channel_count, 1), TL_ERROR_UNSUPPORTED,
           "tl_vk_record_min_max_channels: channel_count: more than the device binds");
    drop(w, &range);
}

// Descriptors and submits take a little at a time: a piece begins anywhere inside a channel.
static void pieces_keep_their_place_among_the_channels(void **state) {
    static const shape long_shapes[] = {
        { 1, 1, 1, 30001 },    { 1, 3, 10000, 30000 }, { 5, 6, 1000, 29999 },     { 400, 25, 3, 29998 },
        { 10000, 3, 1, 30000 }, { 1, 2000, 15, 30000 }, { 1, 2, 20000, 30000 },    { 7, 4100, 1, 28700 }
    };
    enum { MOST = 30001 };
    float *plain = (float *)allocate(4 * MOST);
    tl_quantization *q = (tl_quantization *)allocate(4100 * sizeof *q);
    tl_random random;
    int pass, s;
    (void)state;
    if (!vkt_has_vulkan("pieces_keep_their_place_among_the_channels")) skip();
    random.state = 5;
    for (pass = 0; pass < 3; pass++) {
        vkshim_config config;
        tl_vk_backend_desc desc;
        world w;
        memset(&desc, 0, sizeof desc);
        vkshim_default(&config, VKSHIM_MACHINE_REAL);
        if (pass != 0) config.storage_range = 66000;  // the parameters of 4100 channels would not fit less
        if (pass != 1) desc.submit_bytes = 1;
        if (pass == 2) config.workgroup_count[0] = config.workgroup_count[1] = 30;
        open_world(&w, &config, &desc);
        for (s = 0; s < COUNT_OF(long_shapes); s++) {
            uint64_t i;
            work job;
            job.quantizations = q;
            job.channel_count = long_shapes[s].channel_count;
            job.inner_count = long_shapes[s].inner_count;
            job.count = long_shapes[s].count;
            job.format = s % 2 ? TL_FORMAT_I16 : TL_FORMAT_I8;
            if (pass && 20 * job.channel_count > 66000) {
                refuse_channels(&w, job.channel_count);
                continue;
            }
            for (i = 0; i < (uint64_t)job.channel_count; i++) q[i] = any_quantization(&random, job.format);
            for (i = 0; i < job.count; i++)
                plain[i] = any_number(&random, &q[i / job.inner_count % (uint64_t)job.channel_count]);
            check_quantize(&w, &job, plain);
            check_dequantize(&w, &job, plain);
            check_extremes(&w, &long_shapes[s], plain);
        }
        close_world(&w);
    }
    free(plain);
    free(q);
}

// -- observers --

static tl_observer *make_observer(world *w, tl_observer_kind observer, const shape *s) {
    tl_observer_desc desc;
    tl_observer *made;
    memset(&desc, 0, sizeof desc);
    desc.kind = observer;
    desc.channel_count = s->channel_count;
    desc.inner_count = s->inner_count;
    expect_ok(w, tl_init_observer(&w->env, &desc, &made), "tl_init_observer");
    return made;
}

// What a device finds out about a batch, for an observer.
static void find_extremes(world *w, const shape *s, const float *plain, tl_vk_extremes *extremes) {
    tl_range from = add_with(w, plain, 4 * s->count);
    tl_range to = add(w, (uint64_t)s->channel_count * sizeof *extremes);
    expect_ok(w, tl_vk_record_min_max_channels(&w->backend, to, from, s->channel_count, s->inner_count), "min_max");
    expect_ok(w, read_range(w, to, extremes), "read_range");
    drop(w, &from);
    drop(w, &to);
}

static void expect_same_ranges(const tl_observer *cpu, const tl_observer *device, const shape *s) {
    int32_t c;
    for (c = 0; c < s->channel_count; c++) {
        tl_observation a, b;
        assert_int_equal(tl_measure_observer(cpu, c, &a), TL_OK);
        assert_int_equal(tl_measure_observer(device, c, &b), TL_OK);
        assert_int_equal(a.count, b.count);
        if (memcmp(&a.least, &b.least, 4) || memcmp(&a.most, &b.most, 4) ||
            memcmp(&a.range_least, &b.range_least, 4) || memcmp(&a.range_most, &b.range_most, 4))
            fail_msg("channel %d: %a .. %a, range %a .. %a by the device, not %a .. %a, range %a .. %a", (int)c,
                     (double)b.least, (double)b.most, (double)b.range_least, (double)b.range_most, (double)a.least,
                     (double)a.most, (double)a.range_least, (double)a.range_most);
    }
}

// Numbers of all sizes, zeroes of both signs among them.
static float finite_number(tl_random *random) {
    uint32_t bits = any_bits(random), size = any_bits(random);
    if (size % 8 == 0) bits &= 0x80000000u;
    else if (size % 8 < 6) bits = (bits & 0x81FFFFFFu) | 0x3E000000u;
    if ((bits & 0x7F800000u) == 0x7F800000u) bits &= 0xBFFFFFFFu;
    return float_of_bits(bits);
}

static void observers_find_by_the_device_what_they_find_on_the_cpu(void **state) {
    enum { MOST = 17391, BATCHES = 4 };
    float *plain = (float *)allocate(4 * MOST);
    tl_vk_extremes *extremes = (tl_vk_extremes *)allocate(4000 * sizeof *extremes);
    tl_random random;
    world w;
    int s, kind_id, batch;
    (void)state;
    if (!vkt_has_vulkan("observers_find_by_the_device_what_they_find_on_the_cpu")) skip();
    open_world(&w, NULL, NULL);
    random.state = 77;
    for (s = 0; s < COUNT_OF(shapes); s++)
        for (kind_id = TL_OBSERVER_MIN_MAX; kind_id <= TL_OBSERVER_MOVING_AVERAGE; kind_id++) {
            tl_observer *cpu = make_observer(&w, (tl_observer_kind)kind_id, &shapes[s]);
            tl_observer *device = make_observer(&w, (tl_observer_kind)kind_id, &shapes[s]);
            for (batch = 0; batch < BATCHES; batch++) {
                uint64_t i;
                for (i = 0; i < shapes[s].count; i++) plain[i] = batch ? finite_number(&random) : i % 2 ? 0.0f : -0.0f;
                find_extremes(&w, &shapes[s], plain, extremes);
                expect_ok(&w, tl_observe_data(cpu, plain, shapes[s].count), "tl_observe_data");
                expect_ok(&w, tl_vk_observe_extremes(&w.env, device, extremes, shapes[s].channel_count),
                          "tl_vk_observe_extremes");
                expect_same_ranges(cpu, device, &shapes[s]);
            }
            tl_free_observer(cpu);
            tl_free_observer(device);
        }
    free(plain);
    free(extremes);
    close_world(&w);
}

static void a_batch_that_is_not_finite_is_refused_like_on_the_cpu(void **state) {
    static const shape s = { 5, 3, 4, 60 };
    static const uint32_t bad[] = { 0x7FC00000u, 0x7F800000u, 0xFF800000u, 0x7F800001u };
    float plain[60];
    tl_vk_extremes extremes[4];
    tl_observer *cpu, *device, *wrong;
    tl_observer_desc desc;
    tl_observation before, after;
    world w;
    int i, k;
    (void)state;
    if (!vkt_has_vulkan("a_batch_that_is_not_finite_is_refused_like_on_the_cpu")) skip();
    open_world(&w, NULL, NULL);
    cpu = make_observer(&w, TL_OBSERVER_MIN_MAX, &s);
    device = make_observer(&w, TL_OBSERVER_MIN_MAX, &s);
    for (i = 0; i < 60; i++) plain[i] = (float)(i - 20);
    find_extremes(&w, &s, plain, extremes);
    expect_ok(&w, tl_observe_data(cpu, plain, 60), "tl_observe_data");
    expect_ok(&w, tl_vk_observe_extremes(&w.env, device, extremes, 3), "tl_vk_observe_extremes");
    for (k = 0; k < COUNT_OF(bad); k++) {
        for (i = 0; i < 60; i++) plain[i] = 1000;
        plain[k * 17] = float_of_bits(bad[k]);
        find_extremes(&w, &s, plain, extremes);
        assert_int_equal(tl_observe_data(cpu, plain, 60), TL_ERROR_INVALID_ARG);
        refuse(&w, tl_vk_observe_extremes(&w.env, device, extremes, 3), TL_ERROR_INVALID_ARG,
               "tl_vk_observe_extremes: extremes: of values that are not finite");
        expect_same_ranges(cpu, device, &s);
    }
    for (i = 0; i < 60; i++) plain[i] = 1000;
    find_extremes(&w, &s, plain, extremes);
    extremes[3] = extremes[2];
    refuse(&w, tl_vk_observe_extremes(&w.env, device, extremes, 0), TL_ERROR_INVALID_ARG,
           "tl_vk_observe_extremes: channel_count: must be > 0");
    assert_int_equal(tl_measure_observer(device, 0, &before), TL_OK);
    assert_int_equal(tl_vk_observe_extremes(&w.env, device, extremes, 4), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_measure_observer(device, 0, &after), TL_OK);
    assert_int_equal(before.count, after.count);
    memset(&desc, 0, sizeof desc);
    desc.kind = TL_OBSERVER_PERCENTILE;
    desc.channel_count = 3;
    expect_ok(&w, tl_init_observer(&w.env, &desc, &wrong), "tl_init_observer");
    assert_int_equal(tl_vk_observe_extremes(&w.env, wrong, extremes, 3), TL_ERROR_UNSUPPORTED);
    tl_free_observer(wrong);
    find_extremes(&w, &s, plain, extremes);
    memset(&extremes[1], 0, sizeof extremes[1]);  // saw nothing: passed over
    expect_ok(&w, tl_vk_observe_extremes(&w.env, device, extremes, 3), "tl_vk_observe_extremes");
    assert_int_equal(tl_measure_observer(device, 1, &after), TL_OK);
    assert_int_equal(after.count, 20);
    assert_int_equal(tl_measure_observer(device, 2, &after), TL_OK);
    assert_int_equal(after.count, 40);
    tl_free_observer(cpu);
    tl_free_observer(device);
    close_world(&w);
}

// Calibrated, quantised and back on the device: what the CPU does with the same data.
static void a_device_calibrates_and_quantises_alone(void **state) {
    static const shape s = { 16, 8, 33, 4224 };
    float plain[4224];
    tl_vk_extremes extremes[8];
    tl_quantization q[8];
    tl_observer *cpu, *device;
    tl_random random;
    world w;
    work job;
    int32_t c;
    int i;
    (void)state;
    if (!vkt_has_vulkan("a_device_calibrates_and_quantises_alone")) skip();
    open_world(&w, NULL, NULL);
    random.state = 8;
    for (i = 0; i < 4224; i++) plain[i] = finite_number(&random) * 1e-20f;
    cpu = make_observer(&w, TL_OBSERVER_MIN_MAX, &s);
    device = make_observer(&w, TL_OBSERVER_MIN_MAX, &s);
    find_extremes(&w, &s, plain, extremes);
    expect_ok(&w, tl_observe_data(cpu, plain, s.count), "tl_observe_data");
    expect_ok(&w, tl_vk_observe_extremes(&w.env, device, extremes, 8), "tl_vk_observe_extremes");
    for (c = 0; c < 8; c++) {
        tl_quantization expected;
        expect_ok(&w, tl_find_observed_quantization(cpu, c, TL_RANGE_NARROW, -127, 127, &expected), "cpu");
        expect_ok(&w, tl_find_observed_quantization(device, c, TL_RANGE_NARROW, -127, 127, &q[c]), "device");
        assert_memory_equal(&q[c], &expected, sizeof expected);
    }
    job.quantizations = q;
    job.channel_count = 8;
    job.inner_count = 33;
    job.count = s.count;
    job.format = TL_FORMAT_I8;
    check_quantize(&w, &job, plain);
    tl_free_observer(cpu);
    tl_free_observer(device);
    close_world(&w);
}

// -- work under way --

enum { CHAIN = 40, CHAIN_COUNT = 777 };

// Whatever is enqueued one behind the other reads its own parameters and what was written before it, though the
// ring of staging goes round many times.
static void work_in_flight_keeps_its_parameters(void **state) {
    float plain[CHAIN_COUNT], expected[CHAIN_COUNT], got[CHAIN_COUNT];
    int8_t integers[CHAIN_COUNT];
    tl_vk_extremes extremes[7], wanted[7];
    tl_vk_backend_desc desc;
    tl_range there, packed, result;
    tl_random random;
    world w;
    int v, i, round;
    (void)state;
    if (!vkt_has_vulkan("work_in_flight_keeps_its_parameters")) skip();
    random.state = 21;
    for (v = 0; v < VARIANTS; v++) {
        vkshim_config config;
        vkshim_default(&config, variants[v].machine);
        config.delay_polls = 2;
        memset(&desc, 0, sizeof desc);
        desc.staging_bytes = 8192;
        open_world(&w, &config, &desc);
        for (i = 0; i < CHAIN_COUNT; i++) plain[i] = (float)(i - 300) / 64;
        memcpy(expected, plain, sizeof plain);
        there = add_with(&w, plain, sizeof plain);
        packed = add(&w, sizeof integers);
        result = add(&w, sizeof extremes);
        for (round = 0; round < CHAIN; round++) {
            tl_quantization q[7];
            for (i = 0; i < 7; i++) {
                q[i] = make_quantization((float)(1 + any_bits(&random) % 100) / 1024, (int32_t)(any_bits(&random) % 9), -128,
                                         127, TL_ROUNDING_EVEN);
            }
            expect_ok(&w, tl_vk_record_quantize(&w.backend, packed, there, q, 7, 3, TL_FORMAT_I8), "quantize");
            expect_ok(&w, tl_vk_record_dequantize(&w.backend, there, packed, q, 7, 3, TL_FORMAT_I8), "dequantize");
            expect_ok(&w, tl_vk_record_min_max_channels(&w.backend, result, there, 7, 3), "min_max");
            expect_ok(&w, tl_quantize(NULL, q, 7, 3, TL_FORMAT_I8, expected, integers, CHAIN_COUNT), "tl_quantize");
            expect_ok(&w, tl_dequantize(NULL, q, 7, 3, TL_FORMAT_I8, integers, expected, CHAIN_COUNT), "tl_dequantize");
        }
        expect_ok(&w, read_range(&w, there, got), "read_range");
        assert_memory_equal(got, expected, sizeof got);
        memset(wanted, 0, sizeof wanted);
        for (i = 0; i < 7; i++) wanted[i].least_key = UINT32_MAX;
        for (i = 0; i < CHAIN_COUNT; i++) add_to_extremes(&wanted[i / 3 % 7], bits_of_float(expected[i]));
        expect_ok(&w, read_range(&w, result, extremes), "read_range");
        assert_memory_equal(extremes, wanted, sizeof wanted);
        drop(&w, &there);
        drop(&w, &packed);
        drop(&w, &result);
        close_world(&w);
    }
}

typedef struct frame_world { world w; tl_ticket frame; } frame_world;

static void start_frame(frame_world *f) {
    expect_ok(&f->w, tl_vk_start_frame(&f->w.backend, vkt_begin(&f->w.v), &f->frame), "tl_vk_start_frame");
}

static void finish_frame(frame_world *f) {
    expect_ok(&f->w, tl_vk_end_frame(&f->w.backend), "tl_vk_end_frame");
    vkt_submit_wait(&f->w.v);
    expect_ok(&f->w, tl_vk_retire_frame(&f->w.backend, f->frame), "tl_vk_retire_frame");
}

static tl_result read_in_frame(frame_world *f, tl_range range, void *bytes) {
    tl_result result = read_range(&f->w, range, bytes);
    if (result != TL_NOT_READY) return result;
    start_frame(f);
    finish_frame(f);
    return read_range(&f->w, range, bytes);
}

static void open_frames(frame_world *f, vkshim_machine machine, uint64_t staging_bytes) {
    vkshim_config config;
    vkt_desc device;
    memset(&device, 0, sizeof device);
    vkshim_default(&config, machine);
    open_device(&f->w, &config, &device);
    f->w.desc.device.queue = VK_NULL_HANDLE;
    f->w.desc.staging_bytes = staging_bytes;
    open_backend(&f->w);
}

// Frames of the caller: full staging is not ready, what a dropped frame was to write is stale.
static void frames_take_conversions_and_extremes(void **state) {
    enum { COUNT = 900, CHANNELS = 30 };
    static const vkshim_machine machines[] = { VKSHIM_MACHINE_REAL, VKSHIM_MACHINE_DISCRETE };
    float plain[COUNT], got[COUNT];
    int16_t expected[COUNT], integers[COUNT];
    tl_quantization q[CHANNELS];
    tl_vk_extremes extremes[CHANNELS];
    frame_world f;
    int m, i, taken;
    (void)state;
    if (!vkt_has_vulkan("frames_take_conversions_and_extremes")) skip();
    for (m = 0; m < 2; m++) {
        tl_range from, to, back, result;
        tl_result code = TL_OK;
        open_frames(&f, machines[m], 8192);
        for (i = 0; i < COUNT; i++) plain[i] = (float)(i % 77) - 38;
        for (i = 0; i < CHANNELS; i++) q[i] = make_quantization((float)(i + 1) / 64, 0, -32767, 32767, TL_ROUNDING_AWAY);
        from = add_with(&f.w, plain, sizeof plain);
        to = add(&f.w, sizeof expected);
        back = add(&f.w, sizeof plain);
        result = add(&f.w, sizeof extremes);
        start_frame(&f);
        expect_ok(&f.w, tl_vk_record_quantize(&f.w.backend, to, from, q, CHANNELS, 1, TL_FORMAT_I16), "quantize");
        expect_ok(&f.w, tl_vk_record_dequantize(&f.w.backend, back, to, q, CHANNELS, 1, TL_FORMAT_I16), "dequantize");
        expect_ok(&f.w, tl_vk_record_min_max_channels(&f.w.backend, result, from, CHANNELS, 1), "min_max");
        finish_frame(&f);
        expect_ok(&f.w, tl_quantize(NULL, q, CHANNELS, 1, TL_FORMAT_I16, plain, expected, COUNT), "tl_quantize");
        expect_ok(&f.w, read_in_frame(&f, to, integers), "read");
        assert_memory_equal(integers, expected, sizeof expected);
        expect_ok(&f.w, tl_dequantize(NULL, q, CHANNELS, 1, TL_FORMAT_I16, expected, plain, COUNT), "tl_dequantize");
        expect_ok(&f.w, read_in_frame(&f, back, got), "read");
        assert_memory_equal(got, plain, sizeof got);
        expect_ok(&f.w, read_in_frame(&f, result, extremes), "read");
        for (i = 0; i < CHANNELS; i++) assert_int_equal(extremes[i].finite_count, COUNT / CHANNELS);
        start_frame(&f);
        for (taken = 0; taken < 1000 && !code; taken++)
            code = tl_vk_record_quantize(&f.w.backend, to, from, q, CHANNELS, 1, TL_FORMAT_I16);
        assert_int_equal(code, TL_NOT_READY);
        assert_true(taken > 5);
        finish_frame(&f);
        start_frame(&f);
        expect_ok(&f.w, tl_vk_record_quantize(&f.w.backend, to, from, q, CHANNELS, 1, TL_FORMAT_I16), "once more");
        expect_ok(&f.w, tl_vk_record_min_max_channels(&f.w.backend, result, from, CHANNELS, 1), "once more");
        expect_ok(&f.w, tl_vk_drop_frame(&f.w.backend, f.frame), "tl_vk_drop_frame");
        assert_int_equal(tl_vk_record_dequantize(&f.w.backend, back, to, q, CHANNELS, 1, TL_FORMAT_I16), TL_ERROR_STALE);
        assert_int_equal(((tli_vk *)f.w.backend.self)->slot_count, 0);
        vkt_begin(&f.w.v);
        vkt_submit_wait(&f.w.v);
        drop(&f.w, &from);
        drop(&f.w, &to);
        drop(&f.w, &back);
        drop(&f.w, &result);
        close_world(&f.w);
    }
}

// With a queue for copies between the tiers: what it holds is handed back before it is converted. The shim holds the
// rules; the validation layer does not see both queues.
static void conversions_follow_copies_of_the_transfer_queue(void **state) {
    enum { COUNT = 5000, CHANNELS = 50, ROUNDS = 12 };
    float plain[COUNT], expected[COUNT], got[COUNT];
    int8_t integers[COUNT];
    tl_quantization q[CHANNELS];
    tl_vk_extremes extremes[CHANNELS];
    vkshim_config config;
    vkt_desc device;
    world w;
    tl_range spilled, there, packed, packed_host, back, result;
    int delay, i, round;
    (void)state;
    if (!vkt_has_vulkan("conversions_follow_copies_of_the_transfer_queue")) skip();
    memset(&device, 0, sizeof device);
    device.enable_transfer = 1;
    device.disable_validation = 1;
    for (i = 0; i < CHANNELS; i++) q[i] = make_quantization((float)(i + 1) / 128, i - 20, -128, 127, TL_ROUNDING_EVEN);
    for (delay = 0; delay < 2; delay++) {
        const tl_backend *b = &w.backend;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.transfer_family = config.strict_ownership = 1;
        config.delay_polls = delay ? 5 : 0;
        open_device(&w, &config, &device);
        open_backend(&w);
        assert_true(w.v.device.transfer_queue != VK_NULL_HANDLE);
        expect_ok(&w, add_range(&w, TL_TIER_HOST, sizeof plain, &spilled), "add_range");
        expect_ok(&w, add_range(&w, TL_TIER_HOST, sizeof integers, &packed_host), "add_range");
        there = add(&w, sizeof plain);
        packed = add(&w, sizeof integers);
        back = add(&w, sizeof plain);
        result = add(&w, sizeof extremes);
        for (round = 0; round < ROUNDS; round++) {
            for (i = 0; i < COUNT; i++) plain[i] = (float)((i * (round + 3)) % 997 - 400) / 64;
            expect_ok(&w, write_range(&w, spilled, plain), "write_range");
            expect_ok(&w, b->copy(b->self, there, spilled), "copy");
            expect_ok(&w, tl_vk_record_quantize(b, packed, there, q, CHANNELS, 1, TL_FORMAT_I8), "quantize");
            expect_ok(&w, tl_vk_record_min_max_channels(b, result, there, CHANNELS, 1), "min_max");
            expect_ok(&w, b->copy(b->self, packed_host, packed), "copy");
            expect_ok(&w, tl_vk_record_dequantize(b, back, packed, q, CHANNELS, 1, TL_FORMAT_I8), "dequantize");
            expect_ok(&w, tl_quantize(NULL, q, CHANNELS, 1, TL_FORMAT_I8, plain, integers, COUNT), "tl_quantize");
            expect_ok(&w, tl_dequantize(NULL, q, CHANNELS, 1, TL_FORMAT_I8, integers, expected, COUNT), "tl_dequantize");
            expect_ok(&w, read_range(&w, back, got), "read_range");
            assert_memory_equal(got, expected, sizeof got);
            expect_ok(&w, read_range(&w, packed_host, got), "read_range");
            assert_memory_equal(got, integers, sizeof integers);
            expect_ok(&w, read_range(&w, result, extremes), "read_range");
            for (i = 0; i < CHANNELS; i++) assert_int_equal(extremes[i].finite_count, COUNT / CHANNELS);
        }
        drop(&w, &spilled);
        drop(&w, &packed_host);
        drop(&w, &there);
        drop(&w, &packed);
        drop(&w, &back);
        drop(&w, &result);
        close_world(&w);
    }
}

// -- errors --

static void wrong_arguments_are_refused(void **state) {
    const tl_result bad = TL_ERROR_INVALID_ARG;
    tl_quantization q[2];
    tl_range plain, packed, extremes, gone, odd;
    const tl_backend *b;
    world w;
    (void)state;
    if (!vkt_has_vulkan("wrong_arguments_are_refused")) skip();
    open_world(&w, NULL, NULL);
    b = &w.backend;
    q[0] = q[1] = make_quantization(1, 0, -128, 127, TL_ROUNDING_EVEN);
    plain = add(&w, 4000);
    packed = add(&w, 1000);
    extremes = add(&w, 32);
    gone = add(&w, 4000);
    odd = gone;
    drop(&w, &odd);
    odd = plain;
    odd.bytes = 3998;
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 1, 1, TL_FORMAT_F16), bad,
           "tl_quantize: format: must be i8 or i16");
    refuse(&w, tl_vk_record_dequantize(b, plain, packed, q, 1, 1, TL_FORMAT_COUNT), bad,
           "tl_dequantize: format: must be i8 or i16");
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 0, 1, TL_FORMAT_I8), bad,
           "tl_quantize: channel_count: must be > 0");
    refuse(&w, tl_vk_record_dequantize(b, plain, packed, q, -1, 1, TL_FORMAT_I8), bad,
           "tl_dequantize: channel_count: must be > 0");
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 1, 0, TL_FORMAT_I8), bad,
           "tl_quantize: inner_count: must be > 0");
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 2, UINT64_C(1) << 62, TL_FORMAT_I8), TL_ERROR_UNSUPPORTED,
           "tl_vk_record_quantize: inner_count: more than 2^30 elements in all channels");
    refuse(&w, tl_vk_record_quantize(b, packed, plain, NULL, 1, 1, TL_FORMAT_I8), bad,
           "tl_quantize: quantizations: must not be NULL");
    refuse(&w, tl_vk_record_quantize(b, packed, odd, q, 1, 1, TL_FORMAT_I8), bad,
           "tl_vk_record_quantize: to: bytes: do not fit those of from");
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 1, 1, TL_FORMAT_I16), bad,
           "tl_vk_record_quantize: to: bytes: do not fit those of from");
    refuse(&w, tl_vk_record_dequantize(b, odd, packed, q, 1, 1, TL_FORMAT_I8), bad,
           "tl_vk_record_dequantize: to: bytes: do not fit those of from");
    refuse(&w, tl_vk_record_quantize(b, packed, gone, q, 1, 1, TL_FORMAT_I8), TL_ERROR_STALE,
           "tl_vk_record_quantize: block: the handle is of a freed block or of another backend");
    refuse(&w, tl_vk_record_dequantize(b, gone, packed, q, 1, 1, TL_FORMAT_I8), TL_ERROR_STALE,
           "tl_vk_record_dequantize: block: the handle is of a freed block or of another backend");
    odd = plain;
    odd.bytes = 1000;
    refuse(&w, tl_vk_record_quantize(b, odd, plain, q, 1, 1, TL_FORMAT_I8), bad,
           "tl_vk_record_quantize: to: overlaps from");
    refuse(&w, tl_vk_record_dequantize(b, plain, odd, q, 1, 1, TL_FORMAT_I8), bad,
           "tl_vk_record_dequantize: to: overlaps from");
    odd.offset = 4;
    refuse(&w, tl_vk_record_quantize(b, odd, gone, q, 1, 1, TL_FORMAT_I8), bad,
           "tl_vk_record_quantize: range: offset: not a multiple of the alignment");
    q[1].high = 128;
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 2, 1, TL_FORMAT_I8), bad,
           "tl_quantize: quantizations[1]: low, high: are more than i8 holds");
    q[1] = make_quantization(1, 0, 0, 256, TL_ROUNDING_EVEN);
    refuse(&w, tl_vk_record_dequantize(b, plain, packed, q, 2, 1, TL_FORMAT_I8), bad,
           "tl_dequantize: quantizations[1]: low, high: are more than i8 holds");
    q[1] = make_quantization(1, 0, -129, 3, TL_ROUNDING_EVEN);
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 2, 1, TL_FORMAT_I8), bad,
           "tl_quantize: quantizations[1]: low, high: are more than i8 holds");
    q[1] = make_quantization(0, 0, -128, 127, TL_ROUNDING_EVEN);
    refuse(&w, tl_vk_record_quantize(b, packed, plain, q, 2, 1, TL_FORMAT_I8), bad,
           "tl_quantize: quantizations[1]: scale: must be finite and > 0");
    refuse(&w, tl_vk_record_min_max_channels(b, extremes, plain, 0, 1), bad,
           "tl_vk_record_min_max_channels: channel_count: must be > 0");
    refuse(&w, tl_vk_record_min_max_channels(b, extremes, plain, 2, 0), bad,
           "tl_vk_record_min_max_channels: inner_count: must be > 0");
    refuse(&w, tl_vk_record_min_max_channels(b, extremes, plain, 2, UINT64_C(1) << 30), TL_ERROR_UNSUPPORTED,
           "tl_vk_record_min_max_channels: inner_count: more than 2^30 elements in all channels");
    refuse(&w, tl_vk_record_min_max_channels(b, extremes, plain, 3, 1), bad,
           "tl_vk_record_min_max_channels: to: bytes: not what the result takes");
    refuse(&w, tl_vk_record_min_max_channels(b, extremes, gone, 2, 1), TL_ERROR_STALE,
           "tl_vk_record_min_max_channels: block: the handle is of a freed block or of another backend");
    odd = plain;
    odd.bytes = 32;
    refuse(&w, tl_vk_record_min_max_channels(b, odd, plain, 2, 1), bad,
           "tl_vk_record_min_max_channels: to: overlaps from");
    odd.bytes = 6;
    refuse(&w, tl_vk_record_min_max_channels(b, extremes, odd, 2, 1), bad,
           "tl_vk_record_min_max_channels: from: bytes: must be a multiple of 4");
    assert_int_equal(((tli_vk *)b->self)->slot_count, 0);
    q[1] = q[0];
    tl_vk_lose_device(b);
    assert_int_equal(tl_vk_record_quantize(b, packed, plain, q, 1, 1, TL_FORMAT_I8), TL_ERROR_DEVICE_LOST);
    assert_int_equal(tl_vk_record_dequantize(b, plain, packed, q, 1, 1, TL_FORMAT_I8), TL_ERROR_DEVICE_LOST);
    assert_int_equal(tl_vk_record_min_max_channels(b, extremes, plain, 2, 1), TL_ERROR_DEVICE_LOST);
    drop(&w, &plain);
    drop(&w, &packed);
    drop(&w, &extremes);
    close_world(&w);
}

static void nothing_converts_to_nothing(void **state) {
    tl_quantization q = make_quantization(1, 0, -128, 127, TL_ROUNDING_EVEN);
    tl_vk_extremes extremes[3];
    tl_range none, result, block, gone;
    float least, largest;
    world w;
    int i;
    (void)state;
    if (!vkt_has_vulkan("nothing_converts_to_nothing")) skip();
    open_world(&w, NULL, NULL);
    block = add(&w, 64);
    result = add(&w, sizeof extremes);
    none = block;
    none.bytes = 0;
    expect_ok(&w, tl_vk_record_quantize(&w.backend, none, none, &q, 1, 1, TL_FORMAT_I8), "quantize");
    expect_ok(&w, tl_vk_record_dequantize(&w.backend, none, none, &q, 1, 1, TL_FORMAT_I16), "dequantize");
    expect_ok(&w, tl_vk_record_min_max_channels(&w.backend, result, none, 3, 5), "min_max");
    expect_ok(&w, read_range(&w, result, extremes), "read_range");
    gone = result;
    drop(&w, &result);
    refuse(&w, tl_vk_record_min_max_channels(&w.backend, gone, none, 3, 5), TL_ERROR_STALE,
           "tl_vk_record_min_max_channels: block: the handle is of a freed block or of another backend");
    for (i = 0; i < 3; i++) {
        assert_int_equal(extremes[i].finite_count + extremes[i].other_count, 0);
        assert_int_equal(tl_vk_read_extremes(&extremes[i], &least, &largest), 0);
    }
    drop(&w, &block);
    close_world(&w);
}

// -- failures --

enum { FAULT_COUNT = 300, FAULT_CHANNELS = 20 };

// Numbers there and back, and the extremes of what came back: right, or an error.
static tl_result convert_once(world *w) {
    float plain[FAULT_COUNT], got[FAULT_COUNT], expected[FAULT_COUNT];
    int8_t integers[FAULT_COUNT];
    tl_vk_extremes extremes[FAULT_CHANNELS];
    tl_quantization q[FAULT_CHANNELS];
    tl_range r[4];
    tl_result result;
    int i;
    memset(r, 0, sizeof r);
    for (i = 0; i < FAULT_COUNT; i++) plain[i] = (float)i / 8 - 17;
    for (i = 0; i < FAULT_CHANNELS; i++) q[i] = make_quantization((float)(i + 3) / 32, i, -128, 127, TL_ROUNDING_EVEN);
    expect_ok(w, tl_quantize(NULL, q, FAULT_CHANNELS, 1, TL_FORMAT_I8, plain, integers, FAULT_COUNT), "tl_quantize");
    expect_ok(w, tl_dequantize(NULL, q, FAULT_CHANNELS, 1, TL_FORMAT_I8, integers, expected, FAULT_COUNT),
              "tl_dequantize");
    result = add_range(w, TL_TIER_DEVICE, sizeof plain, &r[0]);
    if (!result) result = write_range(w, r[0], plain);
    if (!result) result = add_range(w, TL_TIER_DEVICE, sizeof integers, &r[1]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, sizeof plain, &r[2]);
    if (!result) result = add_range(w, TL_TIER_DEVICE, sizeof extremes, &r[3]);
    if (!result) result = tl_vk_record_quantize(&w->backend, r[1], r[0], q, FAULT_CHANNELS, 1, TL_FORMAT_I8);
    if (!result) result = tl_vk_record_dequantize(&w->backend, r[2], r[1], q, FAULT_CHANNELS, 1, TL_FORMAT_I8);
    if (!result) result = tl_vk_record_min_max_channels(&w->backend, r[3], r[2], FAULT_CHANNELS, 1);
    if (!result) result = read_range(w, r[2], got);
    if (!result) result = read_range(w, r[3], extremes);
    if (!result && memcmp(got, expected, sizeof got)) result = TL_ERROR_CORRUPT;
    for (i = 0; i < FAULT_CHANNELS && !result; i++)
        if (extremes[i].finite_count != FAULT_COUNT / FAULT_CHANNELS) result = TL_ERROR_CORRUPT;
    for (i = 0; i < 4; i++) free_range(w, &r[i]);
    return result;
}

// 1 = the call number `at` was made; it failed, and what it was to do is right or an error.
static int convert_with_fault(world *w, fault_kind kind_id, long at) {
    uint64_t before = injected();
    tl_result result;
    int happened;
    plan_fault(w, kind_id, at);
    result = convert_once(w);
    happened = fault_happened(w, kind_id, at, before);
    calm(w);
    if (result && result != TL_ERROR_NO_MEMORY && result != TL_ERROR_STALE)
        fail_msg("fault %d at call %ld: %s: %s", (int)kind_id, at, tl_name_result(result), w->env.error.text);
    expect_ok(w, convert_once(w), "after a failure");
    finish(w);
    if (((tli_vk *)w->backend.self)->slot_count)
        fail_msg("fault %d at call %ld: staging is left", (int)kind_id, at);
    return happened;
}

// As if nothing had been converted before.
static void forget_shaders(world *w) {
    tli_vk *b = (tli_vk *)w->backend.self;
    int i;
    finish(w);
    for (i = TLI_VK_SHADER_QUANTIZE; i <= TLI_VK_SHADER_MIN_MAX_CHANNELS; i++) {
        tl_vk_free_kernel(&w->backend, b->shaders[i]);
        b->shaders[i] = NULL;
    }
}

// Staging that holds the parameters of a call, and staging that holds none; shaders that are there, and that are made.
static void conversions_survive_every_failure(void **state) {
    int v, fault, small, fresh;
    long cases[2] = { 0, 0 };
    (void)state;
    if (!vkt_has_vulkan("conversions_survive_every_failure")) skip();
    for (v = 0; v < VARIANTS; v++)
        for (small = 0; small < 2; small++) {
            world w;
            open_variant(&w, &variants[v]);
            if (small) w.desc.staging_bytes = 64;
            open_backend(&w);
            for (fresh = 0; fresh < 2 - (v || small); fresh++)
                for (fault = 0; fault < FAULT_KINDS; fault++) {
                    int happened = 1;
                    long at;
                    if (fresh && fault == FAULT_DEVICE) continue;  // as FAULT_HOST, and making shaders takes long
                    expect_ok(&w, convert_once(&w), "without a failure");
                    for (at = 1; happened; at += thinned()) {
                        if (fresh) forget_shaders(&w);
                        happened = convert_with_fault(&w, (fault_kind)fault, at);
                        cases[fresh] += happened;
                    }
                }
            expect_idle(&w, "at the end");
            close_backend(&w, "at the end");
            close_device(&w);
        }
    printf("%ld failures of conversions, %ld with the making of their shaders\n", cases[0], cases[1]);
    assert_true(cases[0] > 20 / thinned() && cases[1] > 20 / thinned());
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16_pattern_quantizes_like_the_host),
        cmocka_unit_test(halves_quantize_like_the_host),
        cmocka_unit_test(every_integer_dequantizes_like_the_host),
        cmocka_unit_test(any_numbers_quantize_like_the_host),
        cmocka_unit_test(channels_have_quantizations_of_their_own),
        cmocka_unit_test(extremes_of_channels_are_those_of_the_host),
        cmocka_unit_test(pieces_keep_their_place_among_the_channels),
        cmocka_unit_test(observers_find_by_the_device_what_they_find_on_the_cpu),
        cmocka_unit_test(a_batch_that_is_not_finite_is_refused_like_on_the_cpu),
        cmocka_unit_test(a_device_calibrates_and_quantises_alone),
        cmocka_unit_test(work_in_flight_keeps_its_parameters),
        cmocka_unit_test(frames_take_conversions_and_extremes),
        cmocka_unit_test(conversions_follow_copies_of_the_transfer_queue),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(nothing_converts_to_nothing),
        cmocka_unit_test(conversions_survive_every_failure),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
