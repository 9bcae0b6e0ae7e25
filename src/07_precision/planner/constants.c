#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- precision plan: constants in a scheme --
//
// The first constant of a node is its weights, those in f32 behind it are its biases. What a node has to store
// beside its outputs follows from the scheme, as of 16 channels with 9 weights each:
//
//     576:f32,64:f32  --i8-->          144:i8,64:i32,4:i32,4:i32          one multiplier and one shift
//                     --i8-channel-->  144:i8,64:i32,64:i32,64:i32        one of each for each bias
//                     --w4a8-->        80:i4,64:i32,64:i32,64:i32,16:i8   and a factor for each 32 weights
//                     --dynamic-->     144:i8,64:f32,64:f32               one scale for each bias
//
// so a channel is what has a bias of its own. Constants that are declared in another format than f32 stay.

#define TLI_MOST_FACTORS 3    // constants that a scheme adds to a node
#define TLI_GROUP_TERMS  32   // weights of a channel that have a factor of their own in w4a8
// Products of a sum in w4a8: (127 + 128) 7 127 is the most that one of them takes, less than 2^18.
#define TLI_MOST_W4_TERMS 8192

// The scales of the weights of a node in a scheme: 0 = it has none, or nothing tells how many channels there
// are.
static uint64_t tli_count_scales(tl_scheme scheme, const tl_stored *stored, int32_t count) {
    int32_t k;
    if (scheme == TL_SCHEME_I8 || scheme == TL_SCHEME_I16) return 1;
    for (k = 1; k < count; k++)
        if (stored[k].format == TL_TENSOR_FORMAT_F32) return tli_count_elements(stored[k].bytes);
    return 0;
}

// Whether a scheme makes integers of the weights of a node.
static int tli_quantizes_weights(tl_scheme scheme, const tl_stored *stored, int32_t count) {
    return tli_is_below((int64_t)scheme, TL_SCHEME_COUNT) && scheme != TL_SCHEME_FAKE &&
           !(TLI_FLOAT_SCHEMES >> scheme & 1) && count && stored->format == TL_TENSOR_FORMAT_F32;
}

// Why a node cannot have a scheme with its constants: where each channel of weights has a scale, a bias tells
// how many channels there are; in w4a8 all have the same number of weights, and not too many.
static tli_rule tli_find_constant_rule(const tl_graph *graph, int32_t id, tl_scheme scheme) {
    const tl_stored *stored;
    int32_t count = tli_find_stored(graph, id, &stored);
    uint64_t channels, weights;
    if (!tli_quantizes_weights(scheme, stored, count)) return TLI_NO_RULE;
    channels = tli_count_scales(scheme, stored, count);
    weights = scheme == TL_SCHEME_W4A8 ? tli_count_elements(stored->bytes) : 0;
    if (!channels || weights % channels) return TLI_RULE(STORED_CHANNELS_ARE_NOT_KNOWN);
    return weights / channels > TLI_MOST_W4_TERMS ? TLI_RULE(STORED_SUM_OF_W4A8_IS_TOO_LONG) : TLI_NO_RULE;
}

static uint8_t tli_declare_format(tl_format format) {
    switch (format) {
    case TL_FORMAT_F32: return TL_TENSOR_FORMAT_F32;
    case TL_FORMAT_F16: return TL_TENSOR_FORMAT_F16;
    case TL_FORMAT_BF16: return TL_TENSOR_FORMAT_BF16;
    case TL_FORMAT_I16: return TL_TENSOR_FORMAT_I16;
    case TL_FORMAT_I8: return TL_TENSOR_FORMAT_I8;
    case TL_FORMAT_COUNT: break;
    }
    return TL_TENSOR_FORMAT_NONE;
}

// A constant of a node, the first or one behind it, in a scheme.
static tl_stored tli_convert_stored(tl_scheme scheme, tl_stored stored, int is_first) {
    int keeps_biases = scheme == TL_SCHEME_DYNAMIC || scheme == TL_SCHEME_F32 || scheme == TL_SCHEME_FAKE;
    if (stored.format != TL_TENSOR_FORMAT_F32 || (!is_first && keeps_biases)) return stored;
    if (!is_first && !(TLI_FLOAT_SCHEMES >> scheme & 1)) {
        stored.bytes = tli_count_elements(stored.bytes) * 4;
        stored.format = TL_TENSOR_FORMAT_I32;
        return stored;
    }
    stored.bytes = tli_find_weight_bytes(scheme, stored.bytes);
    stored.format = tli_declare_format(tl_find_scheme_format(scheme));
    if (scheme == TL_SCHEME_W8A16 || scheme == TL_SCHEME_DYNAMIC) stored.format = TL_TENSOR_FORMAT_I8;
    return stored;
}

typedef struct tli_constants {
    tl_stored *to;         // [room for those of the graph + TLI_MOST_FACTORS]; NULL = they are only counted
    int32_t    count;
    uint64_t   bytes;      // of all of them
} tli_constants;

static void tli_add_constant(tli_constants *c, tl_stored stored) {
    if (c->to) c->to[c->count] = stored;
    c->count++;
    c->bytes += stored.bytes;
}

static void tli_add_factors(tli_constants *c, int32_t id, uint64_t bytes, tl_tensor_format format) {
    tl_stored factors;
    factors.bytes = bytes;
    factors.node = id;
    factors.format = (uint8_t)format;
    tli_add_constant(c, factors);
}

// Find the constants of a node in a scheme.
static tli_constants tli_find_scheme_constants(const tl_graph *graph, int32_t id, tl_scheme scheme,
                                               tl_stored *to) {
    int is_float = scheme == TL_SCHEME_DYNAMIC, is_grouped = scheme == TL_SCHEME_W4A8;
    const tl_stored *from;
    int32_t count = tli_find_stored(graph, id, &from), k;
    int adds = tli_quantizes_weights(scheme, from, count);
    uint64_t channels = adds ? tli_count_scales(scheme, from, count) : 0, terms = 0;
    tli_constants c = { to, 0, 0 };
    if (is_grouped && channels) terms = tli_count_elements(from->bytes) / channels;
    for (k = 0; k < count; k++) {
        tl_stored stored = tli_convert_stored(scheme, from[k], !k);
        if (!k && is_grouped && adds) {           // each channel begins at a whole byte
            stored.bytes = channels * ((terms + 1) / 2);
            stored.format = TL_TENSOR_FORMAT_I4;
        }
        tli_add_constant(&c, stored);
    }
    if (adds) tli_add_factors(&c, id, 4 * channels, is_float ? TL_TENSOR_FORMAT_F32 : TL_TENSOR_FORMAT_I32);
    if (adds && !is_float) tli_add_factors(&c, id, 4 * channels, TL_TENSOR_FORMAT_I32);
    terms = (terms + TLI_GROUP_TERMS - 1) / TLI_GROUP_TERMS;
    if (adds && is_grouped) tli_add_factors(&c, id, channels * terms, TL_TENSOR_FORMAT_I8);
    return c;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
