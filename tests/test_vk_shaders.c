// [5] of tl_vk_backend.h: every shader against the host, bit for bit, without the backend.
//
// What a shader writes lies between canaries that it could reach. SOAK=1 compresses all 2^32 f32.
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_support.h"
#include "support/support.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

// -- help --

#define CANARY_BYTES 256  // before and after; also a multiple of every alignment that Vulkan allows
#define CANARY 0xC5

static const uint32_t workgroup_sizes[] = { 32, 64, 128, 256 };

#define SHADER_NAME(id, name) #name,
static const char *const shader_names[] = { TLI_VK_SHADERS(SHADER_NAME) };

typedef struct fixture {
    vkt v;
    vkt_buffer to, from;     // data from CANARY_BYTES on, on both sides
    vkt_kernel kernel;       // the one that was used last
    tli_vk_shader shader;
    uint32_t workgroup_size; // 0 = there is no kernel yet
    size_t to_bytes;         // of the output, in whole words
    uint64_t random;
} fixture;

static void open_shaders(fixture *f, uint64_t bytes) {
    vkt_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(f, 0, sizeof *f);
    f->random = 1;
    vkt_open(&desc, &f->v);
    vkt_make_buffer(&f->v, bytes + 2 * CANARY_BYTES, &f->to);
    vkt_make_buffer(&f->v, bytes + 2 * CANARY_BYTES, &f->from);
    memset(f->from.mapped, CANARY, bytes + 2 * CANARY_BYTES);
}

static void close_shaders(fixture *f) {
    if (f->workgroup_size) vkt_free_kernel(&f->v, &f->kernel);
    vkt_free_buffer(&f->v, &f->to);
    vkt_free_buffer(&f->v, &f->from);
    vkt_close(&f->v);
    assert_int_equal(vkt_messages(&f->v), 0);
}

static uint32_t next_random(fixture *f) {
    f->random = f->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->random >> 32);
}

static uint32_t *words_of(const vkt_buffer *buffer) {
    return (uint32_t *)(void *)(buffer->mapped + CANARY_BYTES);
}

// Set the output up: canaries on both sides, and inside what no shader writes by chance.
static void clear_output(fixture *f, size_t bytes) {
    f->to_bytes = (bytes + 3) / 4 * 4;
    assert_true(f->to_bytes + 2 * CANARY_BYTES <= f->to.bytes);
    memset(f->to.mapped, CANARY, f->to_bytes + 2 * CANARY_BYTES);
}

static uint32_t divide_up(uint32_t value, uint32_t by) { return value / by + (value % by != 0); }

static uint32_t group_count(tli_vk_shader shader, uint32_t count, uint32_t workgroup_size) {
    if (shader == TLI_VK_SHADER_COPY) return divide_up(count, 4 * workgroup_size);
    if (shader == TLI_VK_SHADER_TO_Q8) return divide_up(divide_up(count, 32), workgroup_size);
    if (shader >= TLI_VK_SHADER_TO_F16 && shader <= TLI_VK_SHADER_FROM_BF16)
        return divide_up(divide_up(count, 2), workgroup_size);
    return divide_up(count, workgroup_size);
}

typedef struct job {
    tli_vk_shader shader;
    uint32_t workgroup_size;
    uint32_t push[3];       // count, word, tail
    size_t   from_bytes;    // 0 = no input
    uint32_t groups_x;      // most groups in a row; 0 = 65535
    uint32_t group_count;   // 0 = as many as the count needs
} job;

static void use_kernel(fixture *f, const job *j) {
    tli_vk_words words = tli_vk_words_of((int)j->shader);
    if (f->workgroup_size == j->workgroup_size && f->shader == j->shader) return;
    if (f->workgroup_size) vkt_free_kernel(&f->v, &f->kernel);
    vkt_make_kernel(&f->v, words.words, words.count * 4, j->shader == TLI_VK_SHADER_FILL ? 1 : 2, 12,
                    j->workgroup_size, &f->kernel);
    f->shader = j->shader;
    f->workgroup_size = j->workgroup_size;
}

// Both sides are bound with what lies behind them: a shader that goes too far would meet it.
static void run_job(fixture *f, const job *j) {
    uint32_t groups = j->group_count ? j->group_count : group_count(j->shader, j->push[0], j->workgroup_size);
    uint32_t most = j->groups_x ? j->groups_x : 65535, rows = divide_up(groups, most);
    VkDescriptorBufferInfo parts[2];
    size_t i;
    use_kernel(f, j);
    parts[0].buffer = f->to.buffer;
    parts[1].buffer = f->from.buffer;
    parts[0].offset = parts[1].offset = CANARY_BYTES;
    parts[0].range = f->to_bytes + CANARY_BYTES;
    parts[1].range = (j->from_bytes + 3) / 4 * 4 + CANARY_BYTES;
    vkt_bind(&f->v, &f->kernel, parts);
    vkt_dispatch(&f->v, vkt_begin(&f->v), &f->kernel, j->push, rows > 1 ? most : groups, rows);
    vkt_submit_wait(&f->v);
    for (i = 0; i < CANARY_BYTES; i++) {
        if (f->to.mapped[i] == CANARY && f->to.mapped[CANARY_BYTES + f->to_bytes + i] == CANARY) continue;
        fail_msg("%s: a canary died, count %u, workgroup %u", shader_names[j->shader],
                 (unsigned)j->push[0], (unsigned)j->workgroup_size);
    }
}

static void expect_output(const fixture *f, const job *j, const void *expected) {
    const unsigned char *want = (const unsigned char *)expected, *got = f->to.mapped + CANARY_BYTES;
    size_t i = 0;
    if (!memcmp(want, got, f->to_bytes)) return;
    while (want[i] == got[i]) i++;
    fail_msg("%s: byte %lu is %02x, not %02x: count %u, tail %u, workgroup %u", shader_names[j->shader],
             (unsigned long)i, got[i], want[i], (unsigned)j->push[0], (unsigned)j->push[2],
             (unsigned)j->workgroup_size);
}

static job make_job(tli_vk_shader shader, uint32_t workgroup_size, uint32_t count, size_t from_bytes) {
    job j;
    memset(&j, 0, sizeof j);
    j.shader = shader;
    j.workgroup_size = workgroup_size;
    j.push[0] = count;
    j.from_bytes = from_bytes;
    return j;
}

static void *allocate(size_t bytes) {
    void *made = calloc(bytes ? bytes : 1, 1);
    assert_non_null(made);
    return made;
}

// -- codecs --

static size_t packed_bytes(tl_codec codec, size_t count) {
    return codec == TL_CODEC_Q8 ? count + divide_up((uint32_t)count, 32) * 4 : 2 * count;
}

static tli_vk_shader compressor(tl_codec codec) {
    return codec == TL_CODEC_F16 ? TLI_VK_SHADER_TO_F16 : codec == TL_CODEC_BF16 ? TLI_VK_SHADER_TO_BF16
                                                                                : TLI_VK_SHADER_TO_Q8;
}

static tli_vk_shader expander(tl_codec codec) { return (tli_vk_shader)(compressor(codec) + 1); }

// Compress what lies in `from`: bytes of f32, of which the last may be partial. What follows is not zero.
static void check_compress(fixture *f, tl_codec codec, uint32_t workgroup_size, size_t bytes,
                           uint32_t groups_x) {
    uint32_t count = divide_up((uint32_t)bytes, 4);
    size_t packed = packed_bytes(codec, count);
    unsigned char *expected = (unsigned char *)allocate(packed + 3);
    job j = make_job(compressor(codec), workgroup_size, count, bytes);
    tl_compress_bytes(codec, expected, words_of(&f->from), bytes);
    clear_output(f, packed);
    j.push[2] = (uint32_t)(bytes % 4);
    j.groups_x = groups_x;
    run_job(f, &j);
    expect_output(f, &j, expected);
    free(expected);
}

// Expand what lies in `from`, count f32.
static void check_expand(fixture *f, tl_codec codec, uint32_t workgroup_size, uint32_t count,
                         uint32_t groups_x) {
    unsigned char *expected = (unsigned char *)allocate((size_t)count * 4);
    job j = make_job(expander(codec), workgroup_size, count, packed_bytes(codec, count));
    tl_expand_bytes(codec, expected, words_of(&f->from), (uint64_t)count * 4);
    clear_output(f, (size_t)count * 4);
    j.groups_x = groups_x;
    run_job(f, &j);
    expect_output(f, &j, expected);
    free(expected);
}

static const uint32_t special_values[] = {
    0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x00400000u, 0x007FFFFFu, 0x807FFFFFu,  // denormals
    0x00800000u, 0x80800000u, 0x3F800000u, 0xBF800000u, 0x3F800001u, 0x7F7FFFFFu, 0xFF7FFFFFu,
    0x7F800000u, 0xFF800000u, 0x7F800001u, 0xFF800001u, 0x7FC00000u, 0xFFC00000u, 0x7FFFFFFFu,  // Inf, NaN
    0xFFFFFFFFu, 0x7F802000u, 0x7FBFFFFFu, 0x7F80FFFFu, 0x7F810000u,
    0x33000000u, 0x33000001u, 0x32FFFFFFu, 0x33800000u, 0x33C00000u, 0x387FC000u, 0x387FE000u,  // f16 denormals
    0x387FDFFFu, 0x38800000u, 0x477FDFFFu, 0x477FE000u, 0x477FEFFFu, 0x477FF000u, 0x477FF001u,  // 65504, 65520
    0x47800000u, 0x7F7F7FFFu, 0x7F7F8000u, 0x7F7F8001u,
    0x7D0D3DCBu, 0x7D23D70Au  // 29 and 25 of these are nearest to 2^128
};
#define SPECIAL_COUNT (sizeof special_values / sizeof *special_values)

// A third special, a third of one magnitude, a third any bits.
static uint32_t any_value(fixture *f) {
    uint32_t pick = next_random(f) % 3, bits = next_random(f);
    if (!pick) return special_values[bits % SPECIAL_COUNT];
    return pick == 1 ? (bits & 0x81FFFFFFu) | 0x3E000000u : bits;
}

static void every_count_and_tail_converts_like_the_host(void **state) {
    static const uint32_t counts[] = { 1, 2, 3, 4, 5, 31, 32, 33, 36, 63, 64, 65, 127, 511, 512, 513, 4099 };
    fixture f;
    size_t c, w, i;
    uint32_t tail;
    int codec;
    (void)state;
    if (!vkt_has_vulkan("every_count_and_tail_converts_like_the_host")) skip();
    open_shaders(&f, 4 * 4099);
    for (codec = TL_CODEC_F16; codec < TL_CODEC_COUNT; codec++)
        for (w = 0; w < sizeof workgroup_sizes / sizeof *workgroup_sizes; w++) {
            for (c = 0; c < sizeof counts / sizeof *counts; c++)
                for (tail = 0; tail < 4; tail++) {
                    for (i = 0; i < counts[c]; i++) words_of(&f.from)[i] = any_value(&f);
                    check_compress(&f, (tl_codec)codec, workgroup_sizes[w], counts[c] * 4 - (4 - tail) % 4, 0);
                }
            for (c = 0; c < sizeof counts / sizeof *counts; c++) {
                for (i = 0; i < counts[c]; i++) words_of(&f.from)[i] = next_random(&f);
                check_expand(&f, (tl_codec)codec, workgroup_sizes[w], counts[c], 0);
            }
        }
    close_shaders(&f);
}

// All values that the short format has, the middles between them, and the f32 next to these.
static void halves_round_like_the_host(void **state) {
    fixture f;
    uint32_t i, count = 0;
    int codec;
    (void)state;
    if (!vkt_has_vulkan("halves_round_like_the_host")) skip();
    open_shaders(&f, 4 * 6 * 65536);
    for (codec = TL_CODEC_F16; codec <= TL_CODEC_BF16; codec++, count = 0) {
        uint32_t *values = words_of(&f.from);
        for (i = 0; i < 65536; i++) {
            uint16_t low[2] = {(uint16_t)i, 0};  // one is read; gcc cannot tell that it is not f32
            float between = (float)(2 * (i & 0x7FFF) + 1) / 33554432.0f;  // two denormals of f16
            uint32_t bits, middle;
            int32_t step;
            tl_expand_bytes((tl_codec)codec, &bits, low, 4);
            middle = bits + (codec == TL_CODEC_F16 ? 0x1000u : 0x8000u);
            if (codec == TL_CODEC_F16 && (i & 0x7FFF) < 0x400) {
                memcpy(&middle, &between, 4);
                middle |= (i & 0x8000u) << 16;
            }
            for (step = -1; step <= 1; step++) values[count++] = bits + (uint32_t)step;
            for (step = -1; step <= 1; step++) values[count++] = middle + (uint32_t)step;
        }
        check_compress(&f, (tl_codec)codec, 64, (size_t)count * 4, 0);
    }
    close_shaders(&f);
}

static void every_half_expands_like_the_host(void **state) {
    fixture f;
    uint32_t i;
    (void)state;
    if (!vkt_has_vulkan("every_half_expands_like_the_host")) skip();
    open_shaders(&f, 4 * 65536);
    for (i = 0; i < 65536; i++) {
        uint16_t low = (uint16_t)i;
        memcpy(f.from.mapped + CANARY_BYTES + 2 * i, &low, 2);
    }
    check_expand(&f, TL_CODEC_F16, 64, 65536, 0);
    check_expand(&f, TL_CODEC_BF16, 64, 65536, 0);
    close_shaders(&f);
}

// A block of one kind: zeros, signed zeros, nothing finite, denormals, one magnitude, ties, any bits.
static uint32_t block_value(fixture *f, uint32_t kind, uint32_t at, uint32_t scale) {
    uint32_t bits = next_random(f);
    float steps, unit;
    switch (kind) {
    case 0: return 0;
    case 1: return bits & 0x80000000u;
    case 2: return bits | 0x7F800000u;                                     // Inf and NaN only
    case 3: return bits & (0x80000000u | (scale & 0x7FFFFFu));             // denormals of all sizes
    case 4: return at == scale % 32 ? bits & 0x807FFFFFu : bits & 0x80000000u;  // one denormal among zeros
    case 5: return (bits & 0x81FFFFFFu) | (scale & 0x7E000000u);           // one magnitude, anywhere
    case 6:                                                                // k + 1/2 steps of 2^n
        unit = (float)(1u << scale % 20);
        steps = at ? (float)(int32_t)(bits % 254) - 126.5f : 127.0f;
        steps *= unit;
        memcpy(&bits, &steps, 4);
        return bits;
    case 7:
        if (at % 8 == scale % 8) return special_values[bits % SPECIAL_COUNT];
        return (bits & 0x80FFFFFFu) | 0x3F000000u;
    default: return bits;
    }
}

static void blocks_compress_like_the_host(void **state) {
    enum { BLOCKS = 9 * 2000 };
    fixture f;
    uint32_t b, i;
    (void)state;
    if (!vkt_has_vulkan("blocks_compress_like_the_host")) skip();
    open_shaders(&f, 128 * BLOCKS);
    for (b = 0; b < BLOCKS; b++) {
        uint32_t scale = next_random(&f);
        for (i = 0; i < 32; i++) words_of(&f.from)[32 * b + i] = block_value(&f, b % 9, i, scale);
    }
    check_compress(&f, TL_CODEC_Q8, 64, 128 * BLOCKS, 0);
    close_shaders(&f);
}

// Every byte under scales of every kind, also those that no compressor writes.
static void blocks_expand_like_the_host(void **state) {
    enum { SCALES = 1000 };
    fixture f;
    uint32_t s, i;
    (void)state;
    if (!vkt_has_vulkan("blocks_expand_like_the_host")) skip();
    open_shaders(&f, (size_t)SCALES * 256 * 4);
    for (s = 0; s < SCALES; s++) {
        uint32_t scale = s < SPECIAL_COUNT ? special_values[s] : next_random(&f);
        for (i = 0; i < 256; i++) {
            unsigned char *block = f.from.mapped + CANARY_BYTES + (s * 8 + i / 32) * 36;
            memcpy(block, &scale, 4);
            block[4 + i % 32] = (unsigned char)i;
        }
    }
    check_expand(&f, TL_CODEC_Q8, 64, SCALES * 256, 0);
    close_shaders(&f);
}

// Without SOAK every 1025th of them.
static void every_f32_compresses_like_the_host(void **state) {
    enum { CHUNK = 1 << 22 };
    uint32_t chunk, chunk_count = is_soaked() ? 1024 : 1, step = is_soaked() ? 1 : 1025, i;
    fixture f;
    (void)state;
    if (!vkt_has_vulkan("every_f32_compresses_like_the_host")) skip();
    open_shaders(&f, 4u * CHUNK);
    for (chunk = 0; chunk < chunk_count; chunk++) {
        for (i = 0; i < CHUNK; i++) words_of(&f.from)[i] = (chunk * CHUNK + i) * step;
        check_compress(&f, TL_CODEC_F16, 64, 4u * CHUNK, 0);
        check_compress(&f, TL_CODEC_BF16, 64, 4u * CHUNK, 0);
    }
    close_shaders(&f);
}

// -- copy, fill, add --

static void copies_and_fills_write_exactly_their_words(void **state) {
    static const uint32_t counts[] = { 1, 2, 3, 5, 31, 32, 33, 64, 255, 256, 257, 1023, 1024, 1025, 3000 };
    fixture f;
    size_t c, w;
    uint32_t i;
    (void)state;
    if (!vkt_has_vulkan("copies_and_fills_write_exactly_their_words")) skip();
    open_shaders(&f, 16 * 3000);
    for (i = 0; i < 4 * 3000; i++) words_of(&f.from)[i] = next_random(&f);
    for (w = 0; w < sizeof workgroup_sizes / sizeof *workgroup_sizes; w++)
        for (c = 0; c < 3 * (sizeof counts / sizeof *counts); c++) {
            tli_vk_shader shader = (tli_vk_shader)(TLI_VK_SHADER_COPY + c % 3);
            uint32_t count = counts[c / 3], *filled = (uint32_t *)allocate(count * 4);
            size_t bytes = count * (shader == TLI_VK_SHADER_COPY ? 16u : 4u);
            job j = make_job(shader, workgroup_sizes[w], count, bytes);
            j.push[1] = 0x7FC01234u + count;
            for (i = 0; i < count; i++) filled[i] = j.push[1];
            clear_output(&f, bytes);
            run_job(&f, &j);
            expect_output(&f, &j, shader == TLI_VK_SHADER_FILL ? filled : words_of(&f.from));
            free(filled);
        }
    close_shaders(&f);
}

// Normal numbers and results: what becomes of denormals is the driver's choice.
static void sums_are_those_of_the_host(void **state) {
    enum { MOST = 5000 };
    static const uint32_t counts[] = { 1, 3, 64, 65, MOST };
    float expected[MOST];
    fixture f;
    size_t c, w;
    uint32_t i;
    (void)state;
    if (!vkt_has_vulkan("sums_are_those_of_the_host")) skip();
    open_shaders(&f, sizeof expected);
    for (w = 0; w < sizeof workgroup_sizes / sizeof *workgroup_sizes; w++)
        for (c = 0; c < sizeof counts / sizeof *counts; c++) {
            job j = make_job(TLI_VK_SHADER_ADD, workgroup_sizes[w], counts[c], counts[c] * 4);
            clear_output(&f, counts[c] * 4);
            for (i = 0; i < counts[c]; i++) {
                float a = (float)(int32_t)next_random(&f) / 65536.0f;
                float b = (float)(int32_t)next_random(&f) / 1024.0f;
                expected[i] = a + b;
                memcpy(&words_of(&f.to)[i], &a, 4);
                memcpy(&words_of(&f.from)[i], &b, 4);
            }
            run_job(&f, &j);
            expect_output(&f, &j, expected);
        }
    close_shaders(&f);
}

// -- reductions --

static uint32_t key_of(uint32_t bits) { return bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u); }

static void add_to_extremes(tl_vk_extremes *e, uint32_t bits) {
    uint32_t key = key_of(bits);
    if ((bits & 0x7FFFFFFFu) >= 0x7F800000u) { e->other_count++; return; }
    e->finite_count++;
    if (key < e->least_key) e->least_key = key;
    if (key > e->largest_key) e->largest_key = key;
}

static void check_extremes(fixture *f, uint32_t count, uint32_t workgroup_size, uint32_t groups,
                           uint32_t groups_x) {
    tl_vk_extremes none = { UINT32_MAX, 0, 0, 0 }, expected = none;
    job j = make_job(TLI_VK_SHADER_MIN_MAX, workgroup_size, count, (size_t)count * 4);
    uint32_t i;
    for (i = 0; i < count; i++) add_to_extremes(&expected, words_of(&f->from)[i]);
    clear_output(f, sizeof none);
    memcpy(words_of(&f->to), &none, sizeof none);
    j.group_count = groups;
    j.groups_x = groups_x;
    run_job(f, &j);
    expect_output(f, &j, &expected);
}

static void extremes_are_those_of_the_host(void **state) {
    static const uint32_t counts[] = { 1, 2, 63, 64, 65, 1000, 5000 };
    fixture f;
    size_t c, w;
    uint32_t i, kind;
    (void)state;
    if (!vkt_has_vulkan("extremes_are_those_of_the_host")) skip();
    open_shaders(&f, 4 * 5000);
    for (w = 0; w < sizeof workgroup_sizes / sizeof *workgroup_sizes; w++)
        for (c = 0; c < sizeof counts / sizeof *counts; c++)
            for (kind = 0; kind < 9; kind++) {
                for (i = 0; i < counts[c]; i++)
                    words_of(&f.from)[i] = block_value(&f, kind, i % 32, 0x3F812345u);
                check_extremes(&f, counts[c], workgroup_sizes[w], 0, 0);
                check_extremes(&f, counts[c], workgroup_sizes[w], 1, 0);   // one group takes all
                check_extremes(&f, counts[c], workgroup_sizes[w], 200, 7); // most have nothing to do
            }
    close_shaders(&f);
}

static void run_checksum(fixture *f, uint32_t count, uint32_t workgroup_size, uint32_t groups,
                         uint32_t groups_x, uint32_t sum[2]) {
    job j = make_job(TLI_VK_SHADER_CHECKSUM, workgroup_size, count, (size_t)count * 4);
    clear_output(f, 8);
    memset(words_of(&f->to), 0, 8);
    j.group_count = groups;
    j.groups_x = groups_x;
    run_job(f, &j);
    memcpy(sum, words_of(&f->to), 8);
}

static void checksums_are_those_of_the_host(void **state) {
    static const uint32_t counts[] = { 1, 2, 63, 64, 65, 1000, 5000 };
    fixture f;
    size_t c, w;
    uint32_t i, groups;
    (void)state;
    if (!vkt_has_vulkan("checksums_are_those_of_the_host")) skip();
    open_shaders(&f, 4 * 5000);
    for (i = 0; i < 5000; i++) words_of(&f.from)[i] = next_random(&f);
    for (w = 0; w < sizeof workgroup_sizes / sizeof *workgroup_sizes; w++)
        for (c = 0; c < sizeof counts / sizeof *counts; c++)
            for (groups = 0; groups < 300; groups += 150) {
                uint32_t expected[2], sum[2];
                tl_vk_checksum_bytes(words_of(&f.from), counts[c] * 4, expected);
                run_checksum(&f, counts[c], workgroup_sizes[w], groups, 11, sum);
                assert_memory_equal(sum, expected, 8);
            }
    close_shaders(&f);
}

// The index of the first word is a push constant, so a long range is summed part by part.
static void checksums_of_parts_add_up(void **state) {
    enum { PARTS = 3, WORDS_EACH = 256 };
    uint32_t words[PARTS * WORDS_EACH], expected[2], i, part;
    fixture f;
    (void)state;
    if (!vkt_has_vulkan("checksums_of_parts_add_up")) skip();
    open_shaders(&f, 4 * WORDS_EACH);
    for (i = 0; i < PARTS * WORDS_EACH; i++) words[i] = next_random(&f);
    tl_vk_checksum_bytes(words, sizeof words, expected);
    clear_output(&f, 8);
    memset(words_of(&f.to), 0, 8);
    for (part = PARTS; part-- > 0;) {
        job j = make_job(TLI_VK_SHADER_CHECKSUM, 64, WORDS_EACH, 4 * WORDS_EACH);
        memcpy(words_of(&f.from), words + part * WORDS_EACH, 4 * WORDS_EACH);
        j.push[1] = part * WORDS_EACH;
        run_job(&f, &j);
    }
    assert_memory_equal(words_of(&f.to), expected, 8);
    close_shaders(&f);
}

static void a_checksum_sees_every_bit_and_the_order(void **state) {
    uint32_t base[2], sum[2], i, bit;
    fixture f;
    (void)state;
    if (!vkt_has_vulkan("a_checksum_sees_every_bit_and_the_order")) skip();
    open_shaders(&f, 4 * 64);
    memset(words_of(&f.from), 0, 4 * 64);
    words_of(&f.from)[5] = 1;
    run_checksum(&f, 64, 64, 0, 0, base);
    for (i = 0; i < 64; i += 7)
        for (bit = 0; bit < 32; bit++) {
            words_of(&f.from)[i] ^= (uint32_t)1 << bit;
            run_checksum(&f, 64, 64, 0, 0, sum);
            words_of(&f.from)[i] ^= (uint32_t)1 << bit;
            assert_true(sum[0] != base[0] && sum[1] != base[1]);
        }
    words_of(&f.from)[5] = 0;
    words_of(&f.from)[6] = 1;
    run_checksum(&f, 64, 64, 0, 0, sum);
    assert_true(sum[0] != base[0] && sum[1] != base[1]);
    close_shaders(&f);
}

static void keys_become_numbers_again(void **state) {
    static const float pairs[][2] = {
        { -0.0f, 0.0f }, { -1.5f, -0.25f }, { -3.0e38f, 3.0e38f }, { -1.0f, 1.0e-30f }, { 2.0f, 2.0f }
    };
    tl_vk_extremes extremes;
    float least, largest;
    size_t i, k;
    (void)state;
    for (i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        float numbers[2];
        memset(&extremes, 0, sizeof extremes);
        extremes.least_key = UINT32_MAX;
        for (k = 0; k < 2; k++) {
            uint32_t bits;
            memcpy(&bits, &pairs[i][k], 4);
            add_to_extremes(&extremes, bits);
        }
        assert_int_equal(tl_vk_read_extremes(&extremes, &numbers[0], &numbers[1]), 1);
        assert_memory_equal(numbers, pairs[i], sizeof numbers);
    }
    memset(&extremes, 0, sizeof extremes);
    extremes.least_key = UINT32_MAX;
    add_to_extremes(&extremes, 0x7FC00000u);
    assert_int_equal(tl_vk_read_extremes(&extremes, &least, &largest), 0);
}

static void every_shader_has_words_of_its_own(void **state) {
    int i, k;
    (void)state;
    for (i = 0; i < TLI_VK_SHADER_COUNT; i++) {
        assert_int_equal(tli_vk_words_of(i).words[0], 0x07230203u);
        assert_int_equal(tli_vk_words_of(i).words[1], 0x00010000u);  // SPIR-V 1.0
        for (k = 0; k < i; k++) {
            assert_ptr_not_equal(tli_vk_words_of(i).words, tli_vk_words_of(k).words);
        }
    }
}

// -- many groups, barriers --

// Workgroups of one invocation, 65537 of them and more, and small rows in which the last one is short.
static void more_groups_than_fit_a_row_are_spread_over_two_dimensions(void **state) {
    enum { GROUPS = 65537 };
    fixture f;
    size_t bytes = (size_t)GROUPS * 128;
    uint32_t i, shader, expected[2], sum[2];
    (void)state;
    if (!vkt_has_vulkan("more_groups_than_fit_a_row_are_spread_over_two_dimensions")) skip();
    open_shaders(&f, bytes);
    for (i = 0; i < bytes / 4; i++) words_of(&f.from)[i] = next_random(&f);
    for (shader = 0; shader < 3; shader++) {
        uint32_t count = shader == TLI_VK_SHADER_COPY ? 4 * GROUPS - 3 : GROUPS;
        size_t each = shader == TLI_VK_SHADER_COPY ? 16 : 4;
        job j = make_job((tli_vk_shader)shader, 1, count, count * each);
        clear_output(&f, j.from_bytes);
        run_job(&f, &j);
        if (shader != TLI_VK_SHADER_FILL) { expect_output(&f, &j, words_of(&f.from)); continue; }
        for (i = 0; i < count; i++) assert_int_equal(words_of(&f.to)[i], 0);
    }
    check_compress(&f, TL_CODEC_F16, 1, 8 * GROUPS - 5, 0);
    check_compress(&f, TL_CODEC_BF16, 1, 8 * GROUPS - 5, 0);
    check_compress(&f, TL_CODEC_Q8, 1, 128 * GROUPS - 5, 0);
    check_compress(&f, TL_CODEC_Q8, 64, 128 * GROUPS - 5, 10);
    check_expand(&f, TL_CODEC_F16, 1, 2 * GROUPS - 1, 0);
    check_expand(&f, TL_CODEC_BF16, 1, 2 * GROUPS - 1, 0);
    check_expand(&f, TL_CODEC_Q8, 1, GROUPS, 0);
    check_extremes(&f, GROUPS, 1, 0, 0);
    tl_vk_checksum_bytes(words_of(&f.from), 4 * GROUPS, expected);
    run_checksum(&f, GROUPS, 1, 0, 0, sum);
    assert_memory_equal(sum, expected, 8);
    close_shaders(&f);
}

static void every_shader_takes_every_workgroup_size(void **state) {
    static const uint32_t sizes[] = { 1, 2, 16, 48, 100, 128, 512, 1024 };
    fixture f;
    uint32_t i, most;
    size_t w;
    (void)state;
    if (!vkt_has_vulkan("every_shader_takes_every_workgroup_size")) skip();
    open_shaders(&f, 16 * 2000);
    most = f.v.properties.limits.maxComputeWorkGroupInvocations;
    if (most > f.v.properties.limits.maxComputeWorkGroupSize[0])
        most = f.v.properties.limits.maxComputeWorkGroupSize[0];
    for (i = 0; i < 8000; i++) words_of(&f.from)[i] = any_value(&f);
    for (w = 0; w < sizeof sizes / sizeof *sizes && sizes[w] <= most; w++) {
        uint32_t expected[2], sum[2];
        int codec;
        job j = make_job(TLI_VK_SHADER_COPY, sizes[w], 2000, 16 * 2000);
        clear_output(&f, 16 * 2000);
        run_job(&f, &j);
        expect_output(&f, &j, words_of(&f.from));
        for (codec = TL_CODEC_F16; codec < TL_CODEC_COUNT; codec++) {
            check_compress(&f, (tl_codec)codec, sizes[w], 7999, 3);
            check_expand(&f, (tl_codec)codec, sizes[w], 1999, 3);
        }
        check_extremes(&f, 1999, sizes[w], 0, 3);
        tl_vk_checksum_bytes(words_of(&f.from), 4 * 1999, expected);
        run_checksum(&f, 1999, sizes[w], 0, 3, sum);
        assert_memory_equal(sum, expected, 8);
    }
    close_shaders(&f);
}

// What the shaders read and write is declared, so that validation sees hazards of dispatches.
static void a_missing_barrier_before_a_dispatch_is_seen(void **state) {
    VkCommandBuffer commands;
    VkDescriptorBufferInfo parts[2];
    job j = make_job(TLI_VK_SHADER_COPY_UINT, 64, 256, 1024);
    fixture f;
    (void)state;
    if (!vkt_has_vulkan("a_missing_barrier_before_a_dispatch_is_seen")) skip();
    open_shaders(&f, 1024);
    if (!f.v.has_validation) {
        close_shaders(&f);
        printf("SKIPPED a_missing_barrier_before_a_dispatch_is_seen: no " VKT_LAYER "\n");
        skip();
    }
    use_kernel(&f, &j);
    parts[0].buffer = f.to.buffer;
    parts[1].buffer = f.from.buffer;
    parts[0].offset = parts[1].offset = CANARY_BYTES;
    parts[0].range = parts[1].range = 1024;
    vkt_bind(&f.v, &f.kernel, parts);
    vkt_expect(&f.v, "SYNC-HAZARD-READ");
    commands = vkt_begin(&f.v);
    f.v.vk.CmdFillBuffer(commands, f.from.buffer, CANARY_BYTES, 1024, 0);
    vkt_dispatch(&f.v, commands, &f.kernel, j.push, 4, 1);
    vkt_submit_wait(&f.v);
    assert_true(vkt_expected(&f.v) > 0);
    close_shaders(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_and_tail_converts_like_the_host),
        cmocka_unit_test(halves_round_like_the_host),
        cmocka_unit_test(every_half_expands_like_the_host),
        cmocka_unit_test(blocks_compress_like_the_host),
        cmocka_unit_test(blocks_expand_like_the_host),
        cmocka_unit_test(every_f32_compresses_like_the_host),
        cmocka_unit_test(copies_and_fills_write_exactly_their_words),
        cmocka_unit_test(sums_are_those_of_the_host),
        cmocka_unit_test(extremes_are_those_of_the_host),
        cmocka_unit_test(keys_become_numbers_again),
        cmocka_unit_test(every_shader_has_words_of_its_own),
        cmocka_unit_test(checksums_are_those_of_the_host),
        cmocka_unit_test(checksums_of_parts_add_up),
        cmocka_unit_test(a_checksum_sees_every_bit_and_the_order),
        cmocka_unit_test(more_groups_than_fit_a_row_are_spread_over_two_dimensions),
        cmocka_unit_test(every_shader_takes_every_workgroup_size),
        cmocka_unit_test(a_missing_barrier_before_a_dispatch_is_seen),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
