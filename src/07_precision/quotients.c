#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- exact quotients of integers and doubles, the same with every compiler --
//
// Losses, limits and ratios come as doubles; what decides is integers. These turn one into the other without an
// operation that compilers or flags may round in different ways.

// a x 2^shift / b, rounded down or up; UINT64_MAX if it does not fit. 0 < b < 2^63.
static uint64_t tli_divide_shifted(uint64_t a, int32_t shift, uint64_t b, int up) {
    uint64_t whole = a / b, rest = a % b;
    if (shift < 0) {
        int lost = rest != 0 || (shift <= -64 ? whole != 0 : (whole & ((UINT64_C(1) << -shift) - 1)) != 0);
        whole = shift <= -64 ? 0 : whole >> -shift;
        return whole + (uint64_t)(up && lost);
    }
    for (; shift > 0 && (whole | rest); shift--) {
        if (whole >> 63) return UINT64_MAX;
        whole *= 2;
        rest *= 2;
        if (rest >= b) { rest -= b; whole++; }
    }
    return whole + (uint64_t)(up && rest && whole != UINT64_MAX);
}

// Split a finite value > 0 into a mantissa and the exponent of two that is returned.
static int32_t tli_split_f64(double value, uint64_t *mantissa) {
    uint64_t bits = tli_bits_of_f64(value);
    int32_t biased = (int32_t)(bits >> 52 & 0x7ff);
    *mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (!biased) return -1074;
    *mantissa |= UINT64_C(1) << 52;
    return biased - 1075;
}

// a / value, rounded down or up; value finite and > 0.
static uint64_t tli_divide_by_f64(uint64_t a, double value, int up) {
    uint64_t mantissa;
    int32_t exponent = tli_split_f64(value, &mantissa);
    return tli_divide_shifted(a, -exponent, mantissa, up);
}

// The largest integer b for which a / b, rounded to a double, is not below the ratio. So a speed-up that a
// plan reports can be asked for again. Rounding up starts half a unit of the last place below the ratio, or a
// quarter if the ratio is a power of two.
static uint64_t tli_find_divisor(uint64_t a, double ratio) {
    uint64_t mantissa;
    int32_t exponent = tli_split_f64(ratio, &mantissa);
    uint64_t less = mantissa & (mantissa - 1) ? 511 : 255;
    return tli_divide_shifted(a, 10 - exponent, 1024 * mantissa - less, 0);
}

// a x 2^shift / b, rounded down or up; a finite and >= 0, b finite and > 0.
static uint64_t tli_divide_f64(double a, int32_t shift, double b, int up) {
    uint64_t above, below;
    int32_t exponent;
    if (!(a > 0)) return 0;
    exponent = tli_split_f64(a, &above) - tli_split_f64(b, &below);
    return tli_divide_shifted(above, exponent + shift, below, up);
}

// value x 2^exponent
static double tli_scale_f64(double value, int32_t exponent) {
    for (; exponent > 0; exponent--) value *= 2;
    for (; exponent < 0 && value > 0; exponent++) value /= 2;
    return value;
}

static double tli_f64_of(uint64_t bits) {
    double value;
    tli_copy(&value, &bits, sizeof value);
    return value;
}

static double tli_infinity(void) { return tli_f64_of(UINT64_C(0x7ff) << 52); }

static double tli_not_a_number(void) { return tli_f64_of(UINT64_C(0xfff) << 51); }

static double tli_find_gap(uint64_t value, uint64_t bound) {
    return value > bound ? (double)(value - bound) / (double)(bound ? bound : 1) : 0;
}

static double tli_find_speedup(uint64_t base, uint64_t cost) {
    if (base == cost) return 1;
    return (double)base / (double)(cost ? cost : 1);
}

// Whether a limit that was checked is infinite.
static int tli_is_unlimited(double limit) { return !tli_is_amount(limit); }
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
