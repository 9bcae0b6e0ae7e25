#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- profiles --
//
// The table of losses by op, used where nothing was measured, and the search for the row of a node. Losses are
// derived from word lengths, as the comments below say; they are not measurements. Speed-ups are all 1.

static uint64_t tli_count_elements(uint64_t bytes) { return bytes / 4 + (bytes % 4 != 0); }

// The noise power that storing in a format adds, divided by the power of the signal.
//
// Floats of p binary digits: the error is uniform over a step of 2^(1-p) times the power of two below the
// number, and the mantissa m has density proportional to 1 / m (Benford): 4^(1-p) / 12 x E[1 / m^2], where
// E[1 / m^2] = 3 / (8 ln 2).
#define TLI_NOISE_F16   4.30e-8
#define TLI_NOISE_BF16  2.75e-6
// Integers, for tensors of Laplace distribution (long tails) that are clipped at a, where the sum of both
// errors is least: a^2 / (6 x 4^bits) of rounding + exp(-a) of clipping, a = 9.90 and 20.27: 35.2 and 77.6
// dB.
#define TLI_NOISE_I8    2.99e-4
#define TLI_NOISE_I16   1.75e-8
// Integers, for weights of normal distribution: a = 3.92 and 5.94, 40.6 dB in 8 bits. With one scale for all
// channels a typical channel uses half of the range: it loses a bit, 6.02 dB, 4 times the noise.
#define TLI_NOISE_W8    8.71e-5
#define TLI_NOISE_W8_TENSOR  (4 * TLI_NOISE_W8)
#define TLI_NOISE_W16_TENSOR (4 * 2.88e-9)
// Integers of -7 .. 7 for groups of 32 such weights, the largest magnitude m of a group on 7: it alone loses
// nothing, 31 / 32 x m^2 / (12 x 7^2) of rounding where E[m^2] = 5.71, and 1 % more for factors that are
// rounded up: 20.2 dB.
#define TLI_NOISE_W4    9.5e-3

// Independent noise adds up over the tensors that a node reads or makes, `tensors` in number, and its
// weights. (A tensor is counted by its producer and by its readers: an upper estimate.) `factor` is by how
// much the op amplifies noise.
#define TLI_LOSSES(factor, tensors) \
    { 0, (factor) * (tensors) * TLI_NOISE_F16, (factor) * (tensors) * TLI_NOISE_BF16, \
      (factor) * (tensors) * TLI_NOISE_I16, (factor) * (tensors) * TLI_NOISE_I8, 0, 0, 0, \
      (factor) * (tensors) * TLI_NOISE_I8 }
#define TLI_LOSSES_OF_WEIGHTS \
    { 0, 3 * TLI_NOISE_F16, 3 * TLI_NOISE_BF16, 2 * TLI_NOISE_I16 + TLI_NOISE_W16_TENSOR, \
      2 * TLI_NOISE_I8 + TLI_NOISE_W8_TENSOR, 2 * TLI_NOISE_I8 + TLI_NOISE_W8, \
      2 * TLI_NOISE_I16 + TLI_NOISE_W8, TLI_NOISE_I8 + TLI_NOISE_W8_TENSOR, \
      2 * TLI_NOISE_I8 + TLI_NOISE_W8_TENSOR, 2 * TLI_NOISE_I8 + TLI_NOISE_W4 }

// No speed-up is built in. A linear layer with the integer kernels of examples/ runs 0.6 to 1.8 times as fast
// as in f32, by scheme and machine, where word lengths promise 2 to 4: any figure here would be wrong
// somewhere, and a plan proven by it could be slower than f32. So every scheme is as fast as f32 until a device
// or a measured table says otherwise.
#define TLI_SPEEDUPS { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }

#define TLI_BIT(scheme) ((uint32_t)1 << (scheme))
#define TLI_FLOAT_SCHEMES (TLI_BIT(TL_SCHEME_F32) | TLI_BIT(TL_SCHEME_F16) | TLI_BIT(TL_SCHEME_BF16))
#define TLI_TENSOR_SCHEMES \
    (TLI_FLOAT_SCHEMES | TLI_BIT(TL_SCHEME_I16) | TLI_BIT(TL_SCHEME_I8) | TLI_BIT(TL_SCHEME_FAKE))
#define TLI_WEIGHT_SCHEMES (TLI_BIT(TL_SCHEME_COUNT) - 1)
// What schemes = 0 means: all but fake, which gains nothing, and those behind it, which are to be asked for.
#define TLI_USUAL_SCHEMES (TLI_BIT(TL_SCHEME_FAKE) - 1)
// The state of a recurrent cell passes through all steps of a sequence and collects errors: at least 16 bits.
#define TLI_CELL_SCHEMES (TLI_FLOAT_SCHEMES | TLI_BIT(TL_SCHEME_I16) | TLI_BIT(TL_SCHEME_W8A16) | \
                          TLI_BIT(TL_SCHEME_DYNAMIC))
// The inputs are ids, which must not be converted: only the table is quantised, with one scale.
#define TLI_TABLE_SCHEMES (TLI_BIT(TL_SCHEME_F32) | TLI_BIT(TL_SCHEME_DYNAMIC))
// Schemes with fewer than 16 bits in tensors or weights.
#define TLI_NARROW_SCHEMES (TLI_BIT(TL_SCHEME_I8) | TLI_BIT(TL_SCHEME_I8_CHANNEL) | TLI_BIT(TL_SCHEME_W8A16) | \
                            TLI_BIT(TL_SCHEME_DYNAMIC) | TLI_BIT(TL_SCHEME_FAKE) | TLI_BIT(TL_SCHEME_W4A8))

#define TLI_WEIGHTED(op) \
    { op, NULL, 0, 0, TLI_WEIGHT_SCHEMES, TLI_LOSSES_OF_WEIGHTS, TLI_SPEEDUPS, TL_SCHEME_I8_CHANNEL, 0, NULL }
#define TLI_CELL(op) \
    { op, NULL, 0, 0, TLI_CELL_SCHEMES, TLI_LOSSES_OF_WEIGHTS, TLI_SPEEDUPS, TL_SCHEME_W8A16, 0, NULL }
#define TLI_MOVED(op, factor, tensors) \
    { op, NULL, 0, 0, TLI_TENSOR_SCHEMES, TLI_LOSSES(factor, tensors), TLI_SPEEDUPS, TL_SCHEME_I8, 0, NULL }
#define TLI_SENSITIVE(op, factor, tensors) \
    { op, NULL, 0, 0, TLI_TENSOR_SCHEMES, TLI_LOSSES(factor, tensors), TLI_SPEEDUPS, TL_SCHEME_I16, 1, NULL }

static const tl_precision_profile tli_default_profiles[] = {
    TLI_WEIGHTED("linear"),
    TLI_WEIGHTED("conv2d"),  // also depthwise: [3] gives it the same op
    TLI_WEIGHTED("depthwise"),
    TLI_WEIGHTED("conv"),
    TLI_WEIGHTED("convt2d"),
    TLI_CELL("rnn"),
    TLI_CELL("gru"),
    TLI_CELL("lstm"),
    { "embedding", NULL, 0, 0, TLI_TABLE_SCHEMES, { 0, 0, 0, 0, 0, 0, 0, TLI_NOISE_W8_TENSOR, 0 },
      TLI_SPEEDUPS, TL_SCHEME_F32, 0, NULL },
    { "bmm", NULL, 0, 0, TLI_TENSOR_SCHEMES, TLI_LOSSES(1, 3), TLI_SPEEDUPS, TL_SCHEME_I8, 0, NULL },
    { "matmul", NULL, 0, 0, TLI_TENSOR_SCHEMES, TLI_LOSSES(1, 3), TLI_SPEEDUPS, TL_SCHEME_I8, 0, NULL },
    // exp turns an error added to a score into a factor: noise is multiplied by the power of the scores, 16
    // for scores with a standard deviation of 4
    TLI_SENSITIVE("attention", 16, 4),
    TLI_SENSITIVE("softmax", 16, 2),
    // noise stays while subtracting the mean makes the signal smaller: 4 times in power. With known statistics
    // bn is a scale and an addition for each channel, which tolerates 8 bits
    TLI_SENSITIVE("layernorm", 4, 2),
    TLI_MOVED("bn", 4, 2),
    TLI_MOVED("batchnorm", 4, 2),
    // f32 only: losses take little time, and labels must not be converted
    { "loss", NULL, 0, 0, TLI_BIT(TL_SCHEME_F32), TLI_LOSSES(0, 0), TLI_SPEEDUPS, TL_SCHEME_F32, 1, NULL },
    { "cross_entropy", NULL, 0, 0, TLI_BIT(TL_SCHEME_F32), TLI_LOSSES(0, 0), TLI_SPEEDUPS,
      TL_SCHEME_F32, 1, NULL },
    TLI_MOVED("relu", 1, 2),
    TLI_MOVED("relu6", 1, 2),
    TLI_MOVED("hardswish", 1, 2),
    TLI_MOVED("sigmoid", 1, 2),
    TLI_MOVED("tanh", 1, 2),
    TLI_MOVED("gelu", 1, 2),
    TLI_MOVED("silu", 1, 2),
    TLI_MOVED("scale", 1, 2),
    TLI_MOVED("dropout", 1, 2),
    TLI_MOVED("add", 1, 3),
    TLI_MOVED("sub", 2, 3),  // the difference of similar tensors is smaller than both: twice in power
    TLI_MOVED("mul", 1, 3),
    TLI_MOVED("maxpool", 1, 2),
    TLI_MOVED("avgpool", 1, 2),
    TLI_MOVED("gavgpool", 1, 2),
    TLI_MOVED("upsample", 1, 2),
    TLI_MOVED("pad", 1, 2),
    TLI_MOVED("requantize", 1, 2),
    TLI_MOVED("concat", 1, 2),
    TLI_MOVED("split", 1, 2),
    // unknown op: the losses of a norm with two inputs
    { "*", NULL, 0, 0, TLI_TENSOR_SCHEMES, TLI_LOSSES(4, 3), TLI_SPEEDUPS, TL_SCHEME_I16, 1, NULL },
};

TLI_IMPL const tl_precision_profile *tl_find_default_profiles(int32_t *count) {
    TL_ASSERT(count);
    *count = (int32_t)(sizeof tli_default_profiles / sizeof tli_default_profiles[0]);
    return tli_default_profiles;
}

static char tli_lower_case(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

// Whether text equals `length` characters of part, ignoring case.
static int tli_is_same_op(const char *text, const char *part, size_t length) {
    size_t i;
    for (i = 0; i < length; i++)
        if (!text[i] || tli_lower_case(text[i]) != tli_lower_case(part[i])) return 0;
    return !text[length];
}

typedef struct tli_profiles {
    const tl_precision_profile *rows;
    int32_t     count;
    const char *device;    // NULL = not known
    uint64_t    elements;  // of the node's output 0
} tli_profiles;

static int tli_is_any_op(const tl_precision_profile *row) { return row->op[0] == '*' && !row->op[1]; }

static const tl_precision_profile *tli_find_row(const tli_profiles *p, const char *part, size_t length) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tl_precision_profile *row = &p->rows[i];
        if (row->device && (!p->device || !tli_same_text(row->device, p->device))) continue;
        if (p->elements < row->least_elements) continue;
        if (row->most_elements && p->elements > row->most_elements) continue;
        if (tli_is_same_op(row->op, part, length)) return row;
    }
    return NULL;
}

static const tl_precision_profile *tli_find_row_of_parts(const tli_profiles *p, const char *op) {
    const tl_precision_profile *found = NULL;
    size_t length = tli_text_length(op), at = 0, end;
    while (at <= length) {
        const tl_precision_profile *row;
        for (end = at; end < length && op[end] != '+'; end++) {}
        row = tli_find_row(p, op + at, end - at);
        if (!row || tli_is_any_op(row)) return NULL;
        if (!found || (row->sensitive && !found->sensitive)) found = row;
        at = end + 1;
    }
    return found;
}

TLI_IMPL const tl_precision_profile *tl_find_profile(const tl_precision_profile *profiles,
                                                     int32_t profile_count, const tl_graph *graph,
                                                     int32_t node, const tl_device *device) {
    const tl_precision_profile *row;
    tli_profiles p;
    const char *op;
    TL_ASSERT(graph && (profiles || profile_count <= 0));
    if (!tli_is_below(node, graph->node_count) || graph->nodes[node].is_input) return NULL;
    op = tl_name_op(graph, node);
    p.rows = profiles;
    p.count = profile_count;
    p.device = device ? device->name : NULL;
    p.elements = tli_count_elements(graph->outputs[graph->nodes[node].first_output].bytes);
    row = tli_find_row(&p, op, tli_text_length(op));
    if (!row) row = tli_find_row_of_parts(&p, op);
    return row ? row : tli_find_row(&p, "*", 1);
}

// Ops whose time goes into multiplying and adding. What a device says of its arithmetic speeds them up; the
// others wait for memory.
static const char *const tli_product_ops[] = {
    "linear", "conv2d", "depthwise", "conv", "convt2d", "rnn", "gru", "lstm", "bmm", "matmul", "attention"
};

// Whether an op, or a part of "conv2d+relu", is one of these.
static int tli_has_product(const char *op) {
    size_t length = tli_text_length(op), at = 0, end, i;
    for (; at <= length; at = end + 1) {
        for (end = at; end < length && op[end] != '+'; end++) {}
        for (i = 0; i < sizeof tli_product_ops / sizeof tli_product_ops[0]; i++)
            if (tli_is_same_op(tli_product_ops[i], op + at, end - at)) return 1;
    }
    return 0;
}

static tli_rule tli_find_profile_rule(const tl_precision_profile *row) {
    int32_t k;
    if (!row->op || !row->op[0]) return TLI_RULE(OP_MUST_NOT_BE_EMPTY);
    if (row->most_elements && row->most_elements < row->least_elements)
        return TLI_RULE(MOST_ELEMENTS_MUST_BE_AT_LEAST);
    if (row->schemes >> TL_SCHEME_COUNT) return TLI_RULE(SCHEMES_UNKNOWN_BIT);
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (!(row->schemes >> k & 1)) continue;
        if (!tli_is_amount(row->loss[k])) return TLI_RULE(LOSS_MUST_BE_FINITE_AND_NOT_NEGATIVE);
        if (!tli_is_amount(row->speedup[k]) || row->speedup[k] <= 0)
            return TLI_RULE(SPEEDUP_MUST_BE_FINITE_AND_POSITIVE);
        if (k == TL_SCHEME_F32 && (row->loss[k] > 0 || row->speedup[k] < 1 || row->speedup[k] > 1))
            return TLI_RULE(LOSS_SPEEDUP_MUST_BE_0_AND_1_FOR_F32);
    }
    if (!tli_is_below((int64_t)row->recommended, TL_SCHEME_COUNT) ||
        (row->recommended != TL_SCHEME_F32 && !(row->schemes >> row->recommended & 1)))
        return TLI_RULE(RECOMMENDED_MUST_BE_ONE_OF_ITS_SCHEMES);
    if (row->sensitive & ~1) return TLI_RULE(SENSITIVE_MUST_BE_0_OR_1);
    return TLI_NO_RULE;
}

// Whether a row fits every node that the other one fits.
static int tli_covers(const tl_precision_profile *row, const tl_precision_profile *other) {
    if (!tli_is_same_op(row->op, other->op, tli_text_length(other->op))) return 0;
    if (row->device && (!other->device || !tli_same_text(row->device, other->device))) return 0;
    if (row->least_elements > other->least_elements) return 0;
    return !row->most_elements || (other->most_elements && row->most_elements >= other->most_elements);
}

static tl_result tli_fail_row(tl_env *env, tli_function function, int32_t index, const char *op,
                              tli_rule rule) {
    tli_sentence s = tli_begin_error(env, TL_ERROR_INVALID_ARG, function, rule, (uint64_t)index, 0);
    if (TLI_ERROR_TEXT) {
        tli_put(&s.text, "profiles: row ");
        tli_put_i64(&s.text, index);
        if (op) { tli_put(&s.text, " ("); tli_put(&s.text, op); tli_put(&s.text, ")"); }
        tli_put(&s.text, ": ");
    }
    return tli_end_error(env, &s, TL_ERROR_INVALID_ARG);
}

static tl_result tli_check_rows(tl_env *env, tli_function function, const tl_precision_profile *profiles,
                                int32_t profile_count) {
    int32_t i, k;
    if (profile_count < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(PROFILE_COUNT_MUST_BE_NOT_NEGATIVE));
    if (profile_count > 0 && !profiles)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(PROFILES_MUST_NOT_BE_NULL_WHERE_THERE));
    for (i = 0; i < profile_count; i++) {
        tli_rule rule = tli_find_profile_rule(&profiles[i]);
        if (rule) return tli_fail_row(env, function, i, profiles[i].op, rule);
        for (k = 0; k < i; k++)
            if (tli_covers(&profiles[k], &profiles[i]))
                return tli_fail_row(env, function, i, profiles[i].op,
                                    TLI_RULE(NEVER_FITS_ROW_ABOVE_IT_ALWAYS_DOES));
    }
    return TL_OK;
}

TLI_IMPL tl_result tl_check_profiles(tl_env *env, const tl_precision_profile *profiles, int32_t profile_count) {
    return tli_check_rows(env, TLI_IN(CHECK_PROFILES), profiles, profile_count);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

