// tl_quantize and tl_dequantize of tl_strategy.h, bit for bit. Integers only: Vulkan allows a float division
// an error of 2.5 units in the last place, which would round half-way cases wrongly. Include after codec.glsl.

struct quantization { uint scale; int zero_point, low, high; uint rounds_away; };

layout(set = 0, binding = 2, std430) readonly buffer Quantizations { quantization quantizations[]; };

quantization quantization_of(uint i) {
    return quantizations[(first + i) / inner_count % channel_count];
}

// size / scale, rounded to an f32, then to an integer; 2^18, which exceeds all bounds, where it is larger.
// Both are the bits of an f32 > 0; size may be infinite.
uint round_quotient(uint size, uint scale, bool away) {
    if (size == 0x7F800000u) return 1u << 18;
    uint x, s;
    int exponent = split_f32(size, x);
    exponent -= split_f32(scale, s);
    if (x < s) { x <<= 1u; exponent--; }  // now x / s is in 1 .. 2: find 25 bits of it, eight at a time
    if (exponent > 17) return 1u << 18;
    if (exponent < -2) return 0u;
    uint quotient = 1u, rest = x - s;
    for (int i = 0; i < 3; i++) {
        rest <<= 8u;
        quotient = quotient << 8u | rest / s;
        rest %= s;
    }
    uint rounded = round_shift(quotient, 1, rest != 0u);
    if (away) return (rounded + (1u << 22 - exponent)) >> 23 - exponent;
    return round_shift(rounded, 23 - exponent, false);
}

int integer_of(uint bits, quantization q) {
    uint size = bits & 0x7FFFFFFFu;
    if (size == 0u || size > 0x7F800000u) return q.zero_point;
    int value = int(round_quotient(size, q.scale, q.rounds_away != 0u));
    return clamp(q.zero_point + (bits >> 31 != 0u ? -value : value), q.low, q.high);
}

uint f32_of_integer(int value, quantization q) {
    int steps = value - q.zero_point;
    if (steps == 0) return 0u;
    uint scale, high, low, sign = steps < 0 ? 0x80000000u : 0u;
    int exponent = split_f32(q.scale, scale) - 1;
    umulExtended(2u * scale, uint(abs(steps)), high, low);
    int shift = findMSB(high) + 1;  // 0 = the product fits in 32 bits
    bool sticky = (low & ((1u << shift) - 1u)) != 0u;
    if (shift != 0) low = high << 32 - shift | low >> shift;
    return sign | join_f32(low, exponent + shift, sticky);
}
