#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [1] CORE (implementation)
// ============================================================================
//
// Helpers that every later part uses: bytes, checked arithmetic, 16-bit floats, wide integers,
// logarithms, a text writer, error sentences, memory, the arena env and random numbers. In names,
// u64, f32, f16 and bf16 are types, and mul and sub stand for multiply and subtract.

// -- bytes --
//
// Only memcpy, memset and memcmp are used, which compilers call on their own account in any case.

#if defined(__GNUC__) || defined(__clang__)
#define TLI_MEMCPY(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define TLI_MEMSET(to, value, bytes) __builtin_memset(to, value, bytes)
#define TLI_MEMCMP(a, b, bytes) __builtin_memcmp(a, b, bytes)
#else
#include <string.h>
#define TLI_MEMCPY(to, from, bytes) memcpy(to, from, bytes)
#define TLI_MEMSET(to, value, bytes) memset(to, value, bytes)
#define TLI_MEMCMP(a, b, bytes) memcmp(a, b, bytes)
#endif

static void tli_zero(void *to, size_t bytes) { if (bytes) TLI_MEMSET(to, 0, bytes); }

static void tli_copy(void *to, const void *from, size_t bytes) { if (bytes) TLI_MEMCPY(to, from, bytes); }

static size_t tli_text_length(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

static int tli_same_text(const char *a, const char *b) {
    while (*a && *a == *b) { a++; b++; }
    return *a == *b;
}

// -- UTF-8 --

#ifndef TL_NO_TEXT
// The length in bytes of the UTF-8 character at the start, and its code point; 0 if it is not valid
// UTF-8.
static size_t tli_utf8_length(const char *at, const char *end, uint32_t *code) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };  // by length: less is an overlong form
    unsigned char first = (unsigned char)*at;
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, i;
    if ((first >= 0x80 && first < 0xc0) || first >= 0xf8 || length > (size_t)(end - at)) return 0;
    *code = length == 1 ? first : first & (0x7fu >> length);
    for (i = 1; i < length; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | ((unsigned char)at[i] & 0x3fu);
    }
    if (*code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff)) return 0;
    return length;
}
#endif

// The length of a text without a character that is cut off at its end.
static size_t tli_whole_characters(const char *text, size_t length) {
    size_t at = length, needed;
    while (at > 0 && length - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80) at--;
    if (!at || (unsigned char)text[at - 1] < 0xc0) return length;
    at--;
    needed = (unsigned char)text[at] < 0xe0 ? 2 : (unsigned char)text[at] < 0xf0 ? 3 : 4;
    return length - at < needed ? at : length;
}

#ifndef TL_NO_TEXT
// Whether a character may stand in a name: no control character, no space of any width, and none that is
// invisible or changes the direction of the text, with which two names could look the same.
static int tli_is_visible(uint32_t code) {
    if (code <= ' ' || (code >= 0x7f && code <= 0xa0) || code == 0xad) return 0;
    if (code == 0x1680 || code == 0x180e || code == 0x3000 || code == 0xfeff) return 0;
    if (code >= 0x2000 && code <= 0x206f)
        return (code > 0x200f && code < 0x2028) || (code > 0x202f && code < 0x205f);
    if (code == 0x34f || code == 0x61c || code == 0x115f || code == 0x1160 || code == 0x3164 || code == 0xffa0)
        return 0;
    if (code >= 0xfe00 && code <= 0xfe0f) return 0;     // variation selectors
    if (code >= 0xe0000 && code <= 0xe01ef) return 0;   // tags, and more of these
    return (code & 0xfffe) != 0xfffe;                   // what Unicode and XML exclude
}
#endif

// -- checked arithmetic --
//
// tli_add_u64 and tli_mul_u64 return 1 and the result, or 0 if the result does not fit 64 bits.

static uint64_t tli_larger_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

#ifndef TL_ONLY_TABLES
// The next multiple of a power of two.
static uint64_t tli_align_u64(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) & ~(alignment - 1);
}
#endif

static int tli_add_u64(uint64_t a, uint64_t b, uint64_t *sum) {
    *sum = a + b;
    return *sum >= a;
}

static int tli_mul_u64(uint64_t a, uint64_t b, uint64_t *product) {
    *product = a * b;
    return !a || *product / a == b;
}

#ifndef TL_ONLY_TABLES
static uint64_t tli_divide_up(uint64_t a, uint64_t b) { return a / b + (a % b > 0); }
#endif

#ifndef TL_ONLY_TABLES
// ceil(bytes * 10^9 / rate); 0 on overflow. The remainder of bytes / rate is multiplied bit by bit,
// so that nothing is wider than 64 bits.
static int tli_find_time(uint64_t bytes, uint64_t rate, uint64_t *ns) {
    uint64_t whole = bytes / rate, rest = bytes % rate, left = 0, part = 0, bit;
    for (bit = UINT64_C(1) << 29; bit; bit >>= 1) {  // part + left / rate = rest * (bits done) / rate
        part *= 2;
        if (left >= rate - left) { left -= rate - left; part++; } else left += left;
        if (!(UINT64_C(1000000000) & bit)) continue;
        if (left >= rate - rest) { left -= rate - rest; part++; } else left += rest;
    }
    return tli_mul_u64(whole, UINT64_C(1000000000), ns) && tli_add_u64(*ns, part + (left > 0), ns);
}
#endif

// Whether an enum, a flag or an index is in 0 .. count-1. int64_t holds every width and sign of
// enum.
static int tli_is_below(int64_t value, int64_t count) { return value >= 0 && value < count; }

// floor(log2(value)); 0 for 0. The builtin is one instruction: it makes a heap that sorts free
// ranges by powers of two almost twice as fast. TLI_NO_BUILTINS: a test compiles what other compilers get.
static int32_t tli_log2_u64(uint64_t value) {
#if (defined(__GNUC__) || defined(__clang__)) && !defined(TLI_NO_BUILTINS)
    return value ? 63 - __builtin_clzll(value) : 0;
#else
    uint32_t high = (uint32_t)(value >> 32), half = high ? high : (uint32_t)value;
    int32_t bit = high ? 32 : 0, step;
    for (step = 16; step; step /= 2)
        if (half >> step) { half >>= step; bit += step; }
    return bit;
#endif
}

// -- bits of floats --
//
// Special values are recognised by their bits, because every comparison with NaN is false.

#ifndef TL_NO_PRECISION
static uint32_t tli_bits_of_f32(float value) {
    uint32_t bits;
    tli_copy(&bits, &value, sizeof bits);
    return bits;
}

static float tli_f32_of_bits(uint32_t bits) {
    float value;
    tli_copy(&value, &bits, sizeof value);
    return value;
}

static int tli_is_finite_f32(float value) { return (tli_bits_of_f32(value) & 0x7F800000u) != 0x7F800000u; }
#endif

// -- 16-bit floats --
//
// Conversions are integer arithmetic on the bits, so every compiler and machine gives the same
// result.

#ifndef TL_ONLY_TABLES
// value / 2^shift, rounded to nearest, ties to even; shift >= 1. sticky = 1 says that bits below
// value were not 0.
static uint32_t tli_round_shift(uint32_t value, int32_t shift, int sticky) {
    uint32_t kept, rest, half;
    if (shift > 31) return 0;
    kept = value >> shift;
    rest = value & (((uint32_t)1 << shift) - 1);
    half = (uint32_t)1 << (shift - 1);
    return kept + (rest > half || (rest == half && (sticky || (kept & 1))));
}

static uint16_t tli_f16_of(uint32_t bits) {
    uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu, half;
    if (size > 0x7F800000u) half = 0x7E00u | (size >> 13 & 0x3FFu);
    else if (size >= 0x477FF000u) half = 0x7C00u;  // 65520 is half way to 2^16
    else if (size >= 0x38800000u) half = tli_round_shift(size - 0x38000000u, 13, 0);
    else half = tli_round_shift((size & 0x7FFFFFu) | 0x800000u, 126 - (int32_t)(size >> 23), 0);
    return (uint16_t)(sign | half);
}

#if !defined(TL_NO_CODECS) || (!defined(TL_NO_PRECISION) && !defined(TL_NO_PLANNERS))
static uint32_t tli_f32_of_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31u, mantissa = half & 0x3FFu;
    if (exponent == 31) return sign | 0x7F800000u | (mantissa ? 0x400000u | mantissa << 13 : 0);
    if (exponent) return sign | (exponent + 112) << 23 | mantissa << 13;
    if (!mantissa) return sign;
    for (exponent = 113; !(mantissa & 0x400u); exponent--) mantissa <<= 1;
    return sign | exponent << 23 | (mantissa & 0x3FFu) << 13;
}
#endif

static uint16_t tli_bf16_of(uint32_t bits) {
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
#endif

#if !defined(TL_NO_CODECS) || (!defined(TL_NO_PRECISION) && !defined(TL_NO_PLANNERS))
static uint32_t tli_f32_of_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : bits;
}
#endif

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// -- 128-bit integers --

typedef struct tli_u128 { uint64_t high, low; } tli_u128;

static tli_u128 tli_mul_u128(uint64_t a, uint64_t b) {
    uint64_t low = (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu), left = (a >> 32) * (b & 0xFFFFFFFFu);
    uint64_t right = (a & 0xFFFFFFFFu) * (b >> 32);
    uint64_t middle = (low >> 32) + (left & 0xFFFFFFFFu) + (right & 0xFFFFFFFFu);
    tli_u128 product;
    product.low = middle << 32 | (low & 0xFFFFFFFFu);
    product.high = (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32);
    return product;
}

static tli_u128 tli_add_u128(tli_u128 a, tli_u128 b) {
    a.low += b.low;
    a.high += b.high + (a.low < b.low);
    return a;
}

static tli_u128 tli_sub_u128(tli_u128 a, tli_u128 b) {
    a.high -= b.high + (a.low < b.low);
    a.low -= b.low;
    return a;
}

static int tli_is_below_u128(tli_u128 a, tli_u128 b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

// -- logarithms --
//
// Without <math.h>, in integers.

// The fraction of log2(m / 2^63) in units of 2^-bits, rounded down; m >= 2^63, bits <= 62. Each
// squaring doubles the logarithm and shifts out its next bit. Truncating the products loses less
// than 2^-62 in all.
static uint64_t tli_log2_fraction(uint64_t m, int32_t bits) {
    uint64_t fraction = 0;
    for (; bits > 0; bits--) {
        tli_u128 square = tli_mul_u128(m, m);
        int carry = (int)(square.high >> 63);
        fraction = fraction << 1 | (uint64_t)carry;
        m = carry ? square.high : square.high << 1 | square.low >> 63;
    }
    return fraction;
}

// log2(value) in units of 2^-52; value finite and > 0. Integer arithmetic: the same on every
// machine.
static int64_t tli_log2_f64(double value) {
    uint64_t bits, mantissa;
    int64_t exponent;
    tli_copy(&bits, &value, sizeof bits);
    mantissa = bits << 11 & UINT64_MAX >> 1;
    exponent = (int64_t)(bits >> 52 & 0x7FF) - 1023;
    if (exponent > -1023) mantissa |= (uint64_t)1 << 63;
    else exponent = -1022;
    for (; !(mantissa >> 63); exponent--) mantissa <<= 1;
    return exponent * ((int64_t)1 << 52) + (int64_t)tli_log2_fraction(mantissa, 52);
}

// a * b, rounded to double. Compilers may contract a product and the sum that it is added to into
// one fused multiply-add, which rounds once instead of twice. The volatile variable prevents that,
// so that sums do not depend on the compiler.
static double tli_product(double a, double b) {
    volatile double product = a * b;
    return product;
}
#endif

// -- names --

#define TLI_NAME(id, name, help) name,        // undefined again at the end
#define TLI_HELP(id, name, help) help,
#define TLI_HELP_ROOM(id, name, help) char id[sizeof(help)];
#define TLI_NAME4(id, name, label, help) name,
#define TLI_LABEL4(id, name, label, help) label,

static const char *const tli_result_names[] = { TL_RESULTS(TLI_NAME) };
static const struct { TL_RESULTS(TLI_HELP_ROOM) } tli_result_helps = { TL_RESULTS(TLI_HELP) };

static const char *tli_name(const char *const *names, int32_t count, int64_t value) {
    return tli_is_below(value, count) ? names[value] : "?";
}

// Find one text of an object that holds them one after the other. Linkers drop the object together with its
// texts; the texts that a table points to they keep.
static const char *tli_help(const void *helps, int32_t count, int64_t value) {
    const char *at = (const char *)helps;
    if (!tli_is_below(value, count)) return "?";
    for (; value > 0; value--) at += tli_text_length(at) + 1;
    return at;
}

TLI_IMPL int tl_version(void) { return TL_VERSION; }

TLI_IMPL const char *tl_name_result(tl_result result) {
    return tli_name(tli_result_names, TL_RESULT_COUNT, (int64_t)result);
}

TLI_IMPL const char *tl_explain_result(tl_result result) {
    return tli_help(&tli_result_helps, TL_RESULT_COUNT, (int64_t)result);
}

// -- writer --
//
// It counts every byte and stores those that fit, so the same code prints a text and finds its
// length.

typedef struct tli_writer { char *buf; size_t size, length; } tli_writer;

static tli_writer tli_writer_of(char *buf, size_t size) {
    tli_writer w;
    w.buf = buf; w.size = buf ? size : 0; w.length = 0;
    return w;
}

static void tli_put_bytes(tli_writer *w, const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length; i++, w->length++)
        if (w->length + 1 < w->size) w->buf[w->length] = text[i];
}

static void tli_put(tli_writer *w, const char *text) { tli_put_bytes(w, text, tli_text_length(text)); }

static void tli_put_u64(tli_writer *w, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do { digits[--at] = (char)('0' + value % 10); value /= 10; } while (value);
    tli_put_bytes(w, digits + at, sizeof digits - at);
}

static void tli_put_i64(tli_writer *w, int64_t value) {
    if (value < 0) tli_put(w, "-");
    tli_put_u64(w, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

static size_t tli_finish(tli_writer *w) {
    if (w->size) w->buf[w->length < w->size ? w->length : w->size - 1] = 0;
    return w->length;
}
#endif  // TL_STRATEGY_IMPLEMENTATION

