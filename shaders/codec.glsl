// The codecs of tl_compress_bytes and tl_expand_bytes in tl_strategy.h, bit for bit. Each function here
// has its counterpart there, with tli_ before the name. Integers only.

// value / 2^shift, rounded to nearest, ties to even. sticky: bits below `value` were not all zero.
// 1 <= shift.
uint round_shift(uint value, int shift, bool sticky) {
    if (shift > 31) return 0u;
    uint kept = value >> shift;
    uint rest = value & ((1u << shift) - 1u);
    uint middle = 1u << (shift - 1);
    return kept + uint(rest > middle || (rest == middle && (sticky || (kept & 1u) != 0u)));
}

uint f16_of(uint bits) {
    uint sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu, low;
    if (size > 0x7F800000u) low = 0x7E00u | (size >> 13 & 0x3FFu);
    else if (size >= 0x477FF000u) low = 0x7C00u;
    else if (size >= 0x38800000u) low = round_shift(size - 0x38000000u, 13, false);
    else low = round_shift((size & 0x7FFFFFu) | 0x800000u, 126 - int(size >> 23), false);
    return sign | low;
}

uint f32_of_f16(uint bits) {
    uint sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, mantissa = bits & 0x3FFu;
    if (exponent == 31u)
        return sign | 0x7F800000u | (mantissa != 0u ? 0x400000u | mantissa << 13 : 0u);
    if (exponent != 0u) return sign | (exponent + 112u) << 23 | mantissa << 13;
    if (mantissa == 0u) return sign;
    int shift = 10 - findMSB(mantissa);
    return sign | uint(113 - shift) << 23 | (mantissa << shift & 0x3FFu) << 13;
}

uint bf16_of(uint bits) {
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bits >> 16 | 0x40u;
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

uint f32_of_bf16(uint low) {
    uint bits = low << 16;
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : bits;
}

// Split |x| = mantissa * 2^exponent, the mantissa of exactly 24 bits; x finite and not 0.
int split_f32(uint bits, out uint mantissa) {
    int exponent = int(bits >> 23 & 255u) - 150;
    mantissa = bits & 0x7FFFFFu;
    if (exponent > -150) { mantissa |= 0x800000u; return exponent; }
    int shift = 23 - findMSB(mantissa);
    mantissa <<= shift;
    return -149 - shift;
}

// The bits of the f32 nearest to value * 2^exponent, ties to even; sticky: the exact value is a little
// larger. value in 2^24 .. 2^32-1.
uint join_f32(uint value, int exponent, bool sticky) {
    int shift = findMSB(value) - 23;
    int field = exponent + shift + 150;
    if (field < 1) { shift += 1 - field; field = 1; }
    if (field > 254) return 0x7F7FFFFFu;
    return min((uint(field - 1) << 23) + round_shift(value, shift, sticky), 0x7F7FFFFFu);
}

uint q8_scale(uint largest) {
    if (largest == 0u) return 0u;
    uint m;
    int exponent = split_f32(largest, m);
    uint whole = (m << 7) / 127u, rest = (m << 7) % 127u * 4u;
    return join_f32(whole * 4u + rest / 127u, exponent - 9, rest % 127u != 0u);
}

// The quantised value, a signed byte in the low 8 bits. largest: bits of the largest |x| of the block.
uint q8_of(uint bits, uint largest) {
    uint size = bits & 0x7FFFFFFFu, value;
    if (size > 0x7F800000u) return 0x80u;
    if (size == 0x7F800000u) {
        value = 127u;
    } else if (size == 0u || largest == 0u) {
        return 0u;
    } else {
        uint mx, ml;
        int shift = split_f32(largest, ml);
        shift -= split_f32(size, mx);
        uint whole = mx * 127u / ml, rest = mx * 127u % ml * 2u;
        value = round_shift(whole * 2u + uint(rest >= ml), shift + 1, rest != ml && rest != 0u);
    }
    return (bits >> 31 != 0u ? 0u - value : value) & 255u;
}

// value: the signed byte in the low 8 bits.
uint f32_of_q8(uint value, uint scale) {
    bool negative = value >= 128u;
    uint size = negative ? 256u - value : value, sign = negative ? 0x80000000u : 0u, m;
    if (value == 128u) return 0x7FC00000u;
    if (size == 0u || (scale & 0x7FFFFFFFu) == 0u) return sign;
    int exponent = split_f32(scale & 0x7FFFFFFFu, m);
    return sign | join_f32(m * 2u * size, exponent - 1, false);
}
