#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- precision plan: constants in a scheme --
//
// The first constant of a node is its weights, those in f32 behind it are its biases. What a node has to store
// beside its outputs follows from the scheme:
//
//     432:f32,64:f32  --i8-->          108:i8,64:i32,4:i32,4:i32      one multiplier and one shift
//                     --i8-channel-->  108:i8,64:i32,64:i32,64:i32    one of each for each bias
//                     --dynamic-->     108:i8,64:f32,64:f32           one scale for each bias
//
// so a channel is what has a bias of its own. Constants that are declared in another format than f32 stay.

#define TLI_MOST_FACTORS 2  // constants that a scheme adds to a node

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

// Whether a node lacks what a scheme needs: weights with a scale for each channel, and no bias that tells how
// many these are.
static int tli_lacks_channels(const tl_graph *graph, int32_t id, tl_scheme scheme) {
    const tl_stored *stored;
    int32_t count = tli_find_stored(graph, id, &stored);
    return tli_quantizes_weights(scheme, stored, count) && !tli_count_scales(scheme, stored, count);
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

// Find the constants of a node in a scheme, and return their number. `to` has room for count +
// TLI_MOST_FACTORS.
static int32_t tli_find_scheme_stored(const tl_graph *graph, int32_t id, tl_scheme scheme, tl_stored *to) {
    const tl_stored *from;
    int32_t count = tli_find_stored(graph, id, &from), k;
    tl_stored factor;
    for (k = 0; k < count; k++) to[k] = tli_convert_stored(scheme, from[k], !k);
    if (!tli_quantizes_weights(scheme, from, count)) return count;
    factor.bytes = 4 * tli_count_scales(scheme, from, count);
    factor.node = id;
    factor.format = TL_TENSOR_FORMAT_I32;
    if (scheme == TL_SCHEME_DYNAMIC) factor.format = TL_TENSOR_FORMAT_F32;
    to[count++] = factor;
    if (scheme != TL_SCHEME_DYNAMIC) to[count++] = factor;
    return count;
}

// The bytes of the constants of a node in a scheme.
static uint64_t tli_sum_scheme_stored(const tl_graph *graph, int32_t id, tl_scheme scheme) {
    const tl_stored *from;
    int32_t count = tli_find_stored(graph, id, &from), k;
    uint64_t sum = 0, scales;
    for (k = 0; k < count; k++) sum += tli_convert_stored(scheme, from[k], !k).bytes;
    if (!tli_quantizes_weights(scheme, from, count)) return sum;
    scales = 4 * tli_count_scales(scheme, from, count);
    return sum + (scheme == TL_SCHEME_DYNAMIC ? scales : 2 * scales);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
