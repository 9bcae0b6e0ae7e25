#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- quantisation: sums of products as integers --
//
// What kernels of a device call that only runs: in every build, also without the rest of [7].

// value / 2^shift, rounded half away from zero; 1 <= shift <= 32, |value| <= 2^31.
static int64_t tli_shift_rounded(int64_t value, int32_t shift) {
    int64_t half = (int64_t)1 << (shift - 1);
    return value < 0 ? -((half - value) >> shift) : (value + half) >> shift;
}

TLI_IMPL int32_t tl_requantize(int32_t sum, tl_multiplier multiplier, const tl_quantization *to) {
    const int64_t half = (int64_t)1 << 30;
    int64_t value = sum;
    int32_t shift;
    TL_ASSERT(to);
    for (shift = multiplier.exponent; shift > 0 && value && value <= INT32_MAX && value >= INT32_MIN; shift--)
        value *= 2;
    if (value > INT32_MAX) value = INT32_MAX;
    if (value < INT32_MIN) value = INT32_MIN;
    value *= multiplier.multiplier;
    value = (value + (value < 0 ? 1 - half : half)) / (2 * half);  // truncates, as TensorFlow Lite does
    if (multiplier.exponent < -32) value = 0;
    else if (multiplier.exponent < 0) value = tli_shift_rounded(value, -multiplier.exponent);
    value += to->zero_point;
    return value < to->low ? to->low : value > to->high ? to->high : (int32_t)value;
}
#endif  // TL_STRATEGY_IMPLEMENTATION
