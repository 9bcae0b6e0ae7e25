// tiny_model.h -- weights, ranges and geometry of a network beside its graph: a part of tl_plan.c
//
// A graph (.tlg) has bytes and costs. What else an inference needs stands in two files of the same importer: weights
// in F.safetensors, shapes, ranges and geometry in F.ranges (ranges.h). Here both are read and held against the graph,
// and every constant of it is made as its scheme stores it:
//
//     f32         weights and biases as they are
//     i8          weights  q = round(w / s), s = max |w| / 127, one s for the tensor; i8-channel, w8a16: one a channel
//                 biases   int32 of scale (scale of input 0) s. Where one does not fit beside the largest sum of
//                          products, s grows until it does, and a sentence says so (onnxruntime#25278)
//                 factors  (scale of input 0) s / (scale of the output) as multiplier 2^(shift - 31), int32 each
//     w4a8        the same but for
//                 weights  q = round(w / (s f)), -7 .. 7, two a byte as nn_tiny.h has them
//                 f        int8 for each 32 terms of a channel, the least 0 .. 127 with max |w| <= 7 s f there;
//                          s = max |w| / 7 / 127 of the channel
//
// Weights that a model has in 8 bits already, with their scales, are taken as they are; i16 and w4a8 quantise the
// numbers anew that they stand for. A channel of zeros has the scale 2^-23. Tensors in i8 have the scale and the zero point of F.ranges, or those of their range there, affine
// on -128 .. 127; in i16 symmetric on -32768 .. 32767. What sigmoid and softmax make in i8 has 1/256 and -128, what tanh
// makes 1/128 and 0, unless F.ranges has a scale for it. What a pool, a pad or an upsampling makes has the scale of what
// it reads, because their kernels move integers.
//
// Used behind fail() and read_text() of tl_plan.c. Whatever is wrong is a sentence with the file and the node.
#ifndef TINY_MODEL_H
#define TINY_MODEL_H

#include "ranges.h"
#include "safetensors.h"

// id, op in a graph, inputs at least and at most, the axis of channels in its weights (0 = first, 1 = last; -1 = has none)
#define TINY_OPS(X) \
    X(TINY_CONV2D, "conv2d", 1, 1, 0)        X(TINY_DEPTHWISE, "depthwise", 1, 1, 1)  X(TINY_LINEAR, "linear", 1, 1, 0) \
    X(TINY_AVGPOOL, "avgpool", 1, 1, -1)     X(TINY_MAXPOOL, "maxpool", 1, 1, -1)     X(TINY_GAVGPOOL, "gavgpool", 1, 1, -1) \
    X(TINY_ADD, "add", 2, 2, -1)             X(TINY_MUL, "mul", 2, 2, -1)             X(TINY_CONCAT, "concat", 2, 16, -1) \
    X(TINY_SOFTMAX, "softmax", 1, 1, -1)     X(TINY_SIGMOID, "sigmoid", 1, 1, -1)     X(TINY_TANH, "tanh", 1, 1, -1) \
    X(TINY_HARDSWISH, "hardswish", 1, 1, -1) X(TINY_RELU, "relu", 1, 1, -1)           X(TINY_RELU6, "relu6", 1, 1, -1) \
    X(TINY_REQUANTIZE, "requantize", 1, 1, -1) X(TINY_UPSAMPLE, "upsample", 1, 1, -1)   X(TINY_PAD, "pad", 1, 1, -1)             X(TINY_CONVERT, "convert", 1, 1, -1)

#define TINY_ENUM(id, name, least, most, axis) id,
typedef enum tiny_op { TINY_OPS(TINY_ENUM) TINY_OP_COUNT } tiny_op;
#undef TINY_ENUM

typedef struct tiny_op_row { const char *name; int32_t least, most, axis; } tiny_op_row;
#define TINY_ROW(id, name, least, most, axis) { name, least, most, axis },
static const tiny_op_row tiny_ops[] = { TINY_OPS(TINY_ROW) };
#undef TINY_ROW

typedef enum tiny_kernels { TINY_KERNELS_NONE, TINY_KERNELS_OWN, TINY_KERNELS_CMSIS } tiny_kernels;

enum { TINY_WEIGHTS, TINY_BIASES, TINY_MULTIPLIERS, TINY_SHIFTS, TINY_FACTORS, TINY_MOST_CONSTANTS };

// w4a8: terms that share a factor, and how many a sum has at most.
enum { TINY_GROUP = 32, TINY_MOST_W4_TERMS = 8192 };

// A node of the graph that is written, with its output.
typedef struct tiny_node {
    tiny_op          op;            // TINY_OP_COUNT = one that nothing is known of
    tl_scheme        scheme;
    int32_t          model_node;    // of the model; a conversion's is that whose output it converts
    int              is_conversion;
    int32_t          shape[3];      // of the output: height, width, channels; 0 = not known
    tl_format        format;        // of the output
    tl_quantization  as;            // of the output; scale 0 = numbers
    rg_node          geometry;      // what F.ranges says, or its defaults
    int              has_geometry;
    int32_t          channels, terms;   // of weights: outputs, and products of a sum; 0 = has none
    const st_tensor *weights, *biases, *scales;     // scales: of weights in 8 bits
    const unsigned char *constants[TINY_MOST_CONSTANTS];   // [bytes of tl_stored] in tiny_model.bytes
} tiny_node;

typedef struct tiny_model {
    const tl_graph *model;          // in f32, as schemes were chosen for it
    const tl_graph *graph;          // that is written: the same, or with schemes and conversions
    const tl_precision_graph *applied;  // NULL = all is f32
    const char     *weights_path, *ranges_path;     // NULL = not given
    char           *weights_text, *ranges_text;     // of the files
    st_tensor      *tensors;        // [tensor_count] of the first
    int32_t         tensor_count;
    rg_ranges       ranges;         // of the second
    tiny_node      *nodes;          // [nodes of graph]
    unsigned char  *bytes;          // constants, one behind the other
    uint64_t        byte_count;
    float          *numbers;        // [the most weights of a node] scratch
    tl_quantization *channels;      // [the most channels] scratch
} tiny_model;

static void tiny_free(tiny_model *t) {
    free(t->weights_text);
    free(t->ranges_text);
    free(t->tensors);
    free(t->ranges.tensors);
    free(t->ranges.nodes);
    free(t->nodes);
    free(t->bytes);
    free(t->numbers);
    free(t->channels);
    memset(t, 0, sizeof *t);
}

// The constants of a node, which follow each other; their number.
static int32_t tiny_find_stored(const tl_graph *graph, int32_t id, const tl_stored **first) {
    const tl_attributes *a = graph->attributes;
    int32_t i = 0, count = 0;
    while (a && i < a->stored_count && a->stored[i].node != id) i++;
    while (a && i + count < a->stored_count && a->stored[i + count].node == id) count++;
    *first = count ? &a->stored[i] : NULL;
    return count;
}

static const char *tiny_name(const tiny_model *t, int32_t id) { return tl_name_node(t->graph, id); }

// The model of a graph, for F.ranges.
static uint64_t tiny_hash_model(const tl_graph *graph) {
    uint64_t hash = RG_MODEL;
    int32_t i;
    for (i = 0; i < graph->node_count; i++)
        hash = rg_add_to_model(hash, tl_name_node(graph, i), tl_name_op(graph, i), graph->outputs[graph->nodes[i].first_output].bytes);
    return hash;
}

// -- files --

static char *tiny_read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *text;
    if (!file) {
        fail(CODE_INPUT, "%s: cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    text = read_text(file, path, size);
    fclose(file);
    return text;
}

static int tiny_read_weights(tiny_model *t) {
    char sentence[ST_SENTENCE];
    size_t size;
    t->weights_text = tiny_read_file(t->weights_path, &size);
    if (!t->weights_text) return CODE_INPUT;
    t->tensors = (st_tensor *)calloc(ST_MOST_TENSORS, sizeof *t->tensors);
    if (!t->tensors) return fail(CODE_INPUT, "no memory for --weights");
    if (st_read(t->weights_text, size, t->tensors, ST_MOST_TENSORS, &t->tensor_count, sentence))
        return fail(CODE_INPUT, "%s: %s", t->weights_path, sentence);
    return CODE_OK;
}

// Read the ranges of a model, once. hash: tiny_hash_model of the graph as it was read.
static int tiny_read_ranges(tiny_model *t, uint64_t hash) {
    char sentence[RG_SENTENCE];
    size_t size;
    if (t->ranges_text) return CODE_OK;
    t->ranges_text = tiny_read_file(t->ranges_path, &size);
    if (!t->ranges_text) return CODE_INPUT;
    t->ranges.tensor_capacity = t->ranges.node_capacity = RG_MOST;
    t->ranges.tensors = (rg_tensor *)calloc(RG_MOST, sizeof *t->ranges.tensors);
    t->ranges.nodes = (rg_node *)calloc(RG_MOST, sizeof *t->ranges.nodes);
    if (!t->ranges.tensors || !t->ranges.nodes) return fail(CODE_INPUT, "no memory for --ranges");
    if (rg_read(t->ranges_text, size, &t->ranges, sentence) || rg_check_model(&t->ranges, hash, sentence))
        return fail(CODE_INPUT, "%s: %s", t->ranges_path, sentence);
    return CODE_OK;
}

static int tiny_has_node(const tl_graph *graph, const char *name) {
    int32_t i;
    for (i = 0; i < graph->node_count; i++)
        if (strcmp(tl_name_node(graph, i), name) == 0) return 1;
    return 0;
}

// Lines of names that the graph has not.
static int tiny_check_names(const tiny_model *t) {
    int32_t i, tensors = t->ranges.tensor_count;
    for (i = 0; i < tensors + t->ranges.node_count; i++) {
        const rg_tensor *tensor = &t->ranges.tensors[i < tensors ? i : 0];
        const rg_node *node = &t->ranges.nodes[i < tensors ? 0 : i - tensors];
        const char *name = i < tensors ? tensor->name : node->name;
        int bytes = (int)(i < tensors ? tensor->name_bytes : node->name_bytes);
        char text[RG_MOST_NAME + 1];
        memcpy(text, name, (size_t)bytes);
        text[bytes] = 0;
        if (!tiny_has_node(t->model, text))
            return fail(CODE_INPUT, "%s: ranges: line %d: the graph has no node %s", t->ranges_path,
                        (int)(i < tensors ? tensor->line : node->line), text);
    }
    return CODE_OK;
}

// -- nodes: what they are --

static tiny_op tiny_find_op(const char *name) {
    int k;
    for (k = 0; k < TINY_OP_COUNT; k++)
        if (strcmp(tiny_ops[k].name, name) == 0) break;
    return (tiny_op)k;
}

static int tiny_has_window(tiny_op op) {
    return op == TINY_CONV2D || op == TINY_DEPTHWISE || op == TINY_AVGPOOL || op == TINY_MAXPOOL;
}

// The node that makes input i.
static int32_t tiny_input(const tiny_model *t, int32_t id, int32_t i) {
    return t->graph->outputs[t->graph->inputs[t->graph->nodes[id].first_input + i].tensor].node;
}

static uint64_t tiny_elements_of(const int32_t shape[3]) { return (uint64_t)shape[0] * (uint64_t)shape[1] * (uint64_t)shape[2]; }

// Take over shape and geometry, where they are given; the shape must have as many elements as the tensor.
static int tiny_describe(tiny_model *t, int32_t id) {
    tiny_node *n = &t->nodes[id];
    const tl_node *node = &t->graph->nodes[id];
    const tl_node_output *output = &t->graph->outputs[node->first_output];
    const char *name = tl_name_node(t->model, n->model_node);
    const rg_tensor *tensor = t->ranges_path ? rg_find_tensor(&t->ranges, name) : NULL;
    const rg_node *geometry = t->ranges_path && !n->is_conversion ? rg_find_node(&t->ranges, name) : NULL;
    int k;
    for (k = 0; k < 2; k++) n->geometry.kernel[k] = n->geometry.stride[k] = n->geometry.dilation[k] = 1;
    n->geometry.multiplier = 1;
    n->geometry.axis = 2;
    if (geometry) n->geometry = *geometry;
    n->has_geometry = geometry != NULL;
    n->format = t->applied ? (tl_format)t->applied->formats[node->first_output] : TL_FORMAT_F32;
    if (!t->applied && output->format == TL_TENSOR_FORMAT_I8) n->format = TL_FORMAT_I8;
    if (!tensor) return CODE_OK;
    memcpy(n->shape, tensor->shape, sizeof n->shape);
    if (tensor->axis_count == 1) n->geometry.axis = 2;      // its only one
    if (tl_find_format_bytes(n->format, 4 * tiny_elements_of(n->shape)) != output->bytes)
        return fail(CODE_INPUT, "%s: tensor %s: has a shape of %llu elements, in the graph %llu bytes of %s", t->ranges_path, name,
                    (ull)tiny_elements_of(n->shape), (ull)output->bytes, tl_name_format(n->format));
    return CODE_OK;
}

static int tiny_list_nodes(tiny_model *t) {
    int32_t id;
    int code = CODE_OK;
    t->nodes = (tiny_node *)calloc((size_t)t->graph->node_count, sizeof *t->nodes);
    if (!t->nodes) return fail(CODE_INPUT, "no memory for --weights");
    for (id = 0; id < t->graph->node_count && !code; id++) {
        tiny_node *n = &t->nodes[id];
        if (t->graph->nodes[id].output_count != 1)
            return fail(CODE_INPUT, "--weights: node %s has several outputs, which no kernel here has", tiny_name(t, id));
        n->op = t->graph->nodes[id].is_input ? TINY_OP_COUNT : tiny_find_op(tl_name_op(t->graph, id));
        n->model_node = t->applied ? t->applied->nodes[id] : id;
        n->is_conversion = t->applied && t->applied->new_nodes[n->model_node] != id;
        n->scheme = t->applied ? (tl_scheme)t->applied->schemes[id] : TL_SCHEME_F32;
        code = tiny_describe(t, id);
    }
    return code;
}

// -- scales of tensors --

static int tiny_is_integer(tl_format format) { return format == TL_FORMAT_I8 || format == TL_FORMAT_I16; }

// Whether a node moves integers, so that its output has the scale of what it reads.
static int tiny_moves(const tiny_node *n) {
    return !n->is_conversion && (n->op == TINY_AVGPOOL || n->op == TINY_MAXPOOL || n->op == TINY_UPSAMPLE || n->op == TINY_PAD);
}

// The output of a function whose range is known: as TensorFlow Lite has it.
static int tiny_find_fixed(const tiny_node *n, tl_quantization *as) {
    float steps = n->format == TL_FORMAT_I8 ? 256.0f : 65536.0f;
    if (n->is_conversion || (n->op != TINY_SOFTMAX && n->op != TINY_SIGMOID && n->op != TINY_TANH)) return 0;
    as->scale = n->op == TINY_TANH || n->format == TL_FORMAT_I16 ? 2 / steps : 1 / steps;
    as->zero_point = n->op == TINY_TANH || n->format == TL_FORMAT_I16 ? 0 : -128;
    return 1;
}

// Find scale and zero point of an output in i8 or i16.
static int tiny_quantize_output(tiny_model *t, int32_t id) {
    tiny_node *n = &t->nodes[id];
    const char *name = tl_name_node(t->model, n->model_node);
    const rg_tensor *tensor = t->ranges_path ? rg_find_tensor(&t->ranges, name) : NULL;
    tl_range_rule rule = n->format == TL_FORMAT_I8 ? TL_RANGE_AFFINE : TL_RANGE_WIDE;
    int32_t low = n->format == TL_FORMAT_I8 ? -128 : -32768, high = n->format == TL_FORMAT_I8 ? 127 : 32767;
    float least, most;
    tl_env env;
    memset(&env, 0, sizeof env);
    n->as.low = low;
    n->as.high = high;
    if (tiny_moves(n)) {
        const tiny_node *from = &t->nodes[tiny_input(t, id, 0)];
        if (tensor && tensor->has_scale && n->format == TL_FORMAT_I8 &&
            (tensor->scale != from->as.scale || tensor->zero != from->as.zero_point))
            return fail(CODE_INPUT, "%s: tensor %s: %s moves integers, and has another scale or zero than what it reads",
                        t->ranges_path, name, tiny_ops[n->op].name);
        n->as = from->as;
        return CODE_OK;
    }
    if (tensor && tensor->has_scale && n->format == TL_FORMAT_I8) {
        n->as.scale = tensor->scale;
        n->as.zero_point = tensor->zero;
        return CODE_OK;
    }
    if (tiny_find_fixed(n, &n->as)) return CODE_OK;
    if (!tensor || (!tensor->has_range && !tensor->has_scale))
        return fail(CODE_INPUT, "%s: tensor %s: is stored in %s, and neither its range is given nor its scale",
                    t->ranges_path ? t->ranges_path : "--ranges", name, tl_name_format(n->format));
    least = tensor->has_range ? tensor->low : (float)(-128 - tensor->zero) * tensor->scale;
    most = tensor->has_range ? tensor->high : (float)(127 - tensor->zero) * tensor->scale;
    if (tl_find_quantization(&env, rule, least, most, low, high, &n->as))
        return fail(CODE_INPUT, "%s: tensor %s: %s", t->ranges_path, name, env.error.text);
    return CODE_OK;
}

// -- constants: which tensors of the file they are --

// The tensor NODE.WHAT; NULL = there is none.
static const st_tensor *tiny_find_tensor(const tiny_model *t, const char *node, const char *what) {
    char name[RG_MOST_NAME + 16];
    snprintf(name, sizeof name, "%s.%s", node, what);
    return st_find(t->tensors, t->tensor_count, name);
}

// Whether a model has weights with a scale for each channel: these cannot have one for all.
static int tiny_has_channel_scales(const tiny_model *t, const char *node) {
    const st_tensor *scales = tiny_find_tensor(t, node, "scale");
    return scales && scales->bytes > sizeof(float);
}

// Whether a model has a node in 8 bits already: its weights, or the scale of its output.
static int tiny_is_quantised(const tiny_model *t, const char *node) {
    const st_tensor *weights = tiny_find_tensor(t, node, "weights");
    const rg_tensor *output = t->ranges_path ? rg_find_tensor(&t->ranges, node) : NULL;
    return (weights && weights->dtype == ST_I8) || (output && output->has_scale);
}

// Whether a tensor has this shape.
static int tiny_has_shape(const st_tensor *tensor, const int64_t *shape, int32_t count) {
    int32_t k;
    if (tensor->axis_count != count) return 0;
    for (k = 0; k < count; k++)
        if (tensor->shape[k] != (uint64_t)shape[k]) return 0;
    return 1;
}

// Write a shape as "64x3x3x16".
static void tiny_put_shape(char *text, size_t size, const int64_t *shape, int32_t count) {
    size_t length = 0;
    int32_t k;
    for (text[0] = 0, k = 0; k < count && length < size; k++)
        length += (size_t)snprintf(text + length, size - length, k ? "x%lld" : "%lld", (long long)shape[k]);
}

// The shape that the weights of a node have, and how many axes it has; 0 = nothing tells it.
static int32_t tiny_shape_weights(const tiny_model *t, int32_t id, int64_t shape[4]) {
    const tiny_node *n = &t->nodes[id], *in = &t->nodes[tiny_input(t, id, 0)];
    uint64_t elements;
    if (!tiny_elements_of(n->shape) || !tiny_elements_of(in->shape)) return 0;
    switch (n->op) {
    case TINY_CONV2D:
        shape[0] = n->shape[2];
        shape[1] = n->geometry.kernel[0];
        shape[2] = n->geometry.kernel[1];
        shape[3] = in->shape[2];
        return 4;
    case TINY_DEPTHWISE:
        shape[0] = n->geometry.kernel[0];
        shape[1] = n->geometry.kernel[1];
        shape[2] = n->shape[2];
        return 3;
    case TINY_LINEAR:
        elements = (uint64_t)n->shape[0] * (uint64_t)n->shape[1];      // rows of a matrix
        shape[0] = n->shape[2];
        shape[1] = (int64_t)(tiny_elements_of(in->shape) / elements);
        return 2;
    case TINY_AVGPOOL: case TINY_MAXPOOL: case TINY_GAVGPOOL: case TINY_ADD: case TINY_MUL: case TINY_CONCAT: case TINY_SOFTMAX:
    case TINY_SIGMOID: case TINY_TANH: case TINY_HARDSWISH: case TINY_RELU: case TINY_RELU6: case TINY_REQUANTIZE: case TINY_UPSAMPLE: case TINY_PAD:
    case TINY_CONVERT: case TINY_OP_COUNT: break;
    }
    return 0;
}

static int tiny_fail_node(const tiny_model *t, int32_t id, const char *why) {
    return fail(CODE_INPUT, "%s: node %s: %s", t->weights_path, tiny_name(t, id), why);
}

// Weights in 8 bits: F32 scales, one or as many as channels, and biases in 32 bits.
static int tiny_check_scales(const tiny_model *t, int32_t id) {
    const tiny_node *n = &t->nodes[id];
    const rg_tensor *in = t->ranges_path ? rg_find_tensor(&t->ranges, tl_name_node(t->model, t->nodes[tiny_input(t, id, 0)].model_node)) : NULL;
    uint64_t i, count = n->scales ? n->scales->bytes / 4 : 0;
    if (!n->scales || n->scales->dtype != ST_F32 || (count != 1 && count != (uint64_t)n->channels))
        return tiny_fail_node(t, id, "its weights are in 8 bits, and .scale is not F32 of one number, or of one for each channel");
    for (i = 0; i < count; i++) {
        float scale;
        memcpy(&scale, n->scales->data + 4 * i, 4);
        if (!(scale >= 1.17549435e-38f && scale <= 3.4028234e38f)) return tiny_fail_node(t, id, "a number of .scale is not finite and > 0");
    }
    if (n->biases->dtype != ST_I32) return tiny_fail_node(t, id, "its weights are in 8 bits, and .bias is not I32");
    if (!in || !in->has_scale)
        return tiny_fail_node(t, id, "its weights are in 8 bits, and --ranges does not give the scale of what it reads");
    if (count > 1 && n->scheme == TL_SCHEME_I8)
        return tiny_fail_node(t, id, "its weights have a scale for each channel: the scheme must be i8-channel, not i8");
    return CODE_OK;
}

// Find weights and biases of a node, and hold them against its shape.
static int tiny_match(tiny_model *t, int32_t id) {
    tiny_node *n = &t->nodes[id];
    const char *name = tl_name_node(t->model, n->model_node);
    int64_t shape[4];
    int32_t axes;
    char text[96];
    n->weights = tiny_find_tensor(t, name, "weights");
    n->biases = tiny_find_tensor(t, name, "bias");
    n->scales = tiny_find_tensor(t, name, "scale");
    if (!n->weights || !n->biases) return tiny_fail_node(t, id, n->weights ? "there is no .bias" : "there are no .weights");
    axes = tiny_shape_weights(t, id, shape);
    if (!axes) return tiny_fail_node(t, id, "no shape in --ranges tells what shape its weights have, or its op has none here");
    tiny_put_shape(text, sizeof text, shape, axes);
    if (!tiny_has_shape(n->weights, shape, axes))
        return fail(CODE_INPUT, "%s: node %s: .weights must have the shape %s", t->weights_path, tiny_name(t, id), text);
    n->channels = (int32_t)shape[n->op == TINY_DEPTHWISE ? 2 : 0];
    if (!tiny_has_shape(n->biases, shape + (n->op == TINY_DEPTHWISE ? 2 : 0), 1))
        return fail(CODE_INPUT, "%s: node %s: .bias must have the shape %d", t->weights_path, tiny_name(t, id), (int)n->channels);
    n->terms = (int32_t)(n->weights->bytes / (n->weights->dtype == ST_F32 ? 4 : 1) / (uint64_t)n->channels);
    if (n->weights->dtype == ST_I8) return tiny_check_scales(t, id);
    if (n->weights->dtype != ST_F32 || n->biases->dtype != ST_F32)
        return tiny_fail_node(t, id, ".weights and .bias must be F32, or I8 and I32 with .scale");
    return CODE_OK;
}

static int32_t tiny_count_groups(const tiny_node *n) { return (n->terms + TINY_GROUP - 1) / TINY_GROUP; }

// The bytes of the constants that a scheme has here; their number, 0 = it has none.
static int32_t tiny_size_constants(const tiny_node *n, uint64_t bytes[TINY_MOST_CONSTANTS]) {
    uint64_t channels = (uint64_t)n->channels, terms = (uint64_t)n->terms;
    bytes[TINY_WEIGHTS] = channels * terms;
    bytes[TINY_BIASES] = bytes[TINY_MULTIPLIERS] = bytes[TINY_SHIFTS] = 4 * channels;
    if (n->scheme == TL_SCHEME_I8 || n->scheme == TL_SCHEME_I16) bytes[TINY_MULTIPLIERS] = bytes[TINY_SHIFTS] = 4;
    if (n->scheme == TL_SCHEME_F32) bytes[TINY_WEIGHTS] *= 4;
    else if (n->scheme == TL_SCHEME_I16) bytes[TINY_WEIGHTS] *= 2;
    else if (n->scheme == TL_SCHEME_W4A8) {
        bytes[TINY_WEIGHTS] = channels * ((terms + 1) / 2);
        bytes[TINY_FACTORS] = channels * (uint64_t)tiny_count_groups(n);
        return 5;
    } else if (n->scheme != TL_SCHEME_I8 && n->scheme != TL_SCHEME_I8_CHANNEL && n->scheme != TL_SCHEME_W8A16) return 0;
    return n->scheme == TL_SCHEME_F32 ? 2 : 4;
}

// Hold the constants that a graph declares against those that its scheme has here.
static int tiny_check_stored(const tiny_model *t, int32_t id, const tl_stored *stored, int32_t count) {
    const tiny_node *n = &t->nodes[id];
    uint64_t bytes[TINY_MOST_CONSTANTS];
    int32_t k, expected = tiny_size_constants(n, bytes);
    if (!expected)
        return fail(CODE_INPUT, "--weights: node %s: is in %s; constants are written in f32, i8, i8-channel, w8a16, i16 and w4a8",
                    tiny_name(t, id), tl_name_scheme(n->scheme));
    for (k = 0; k < count && count == expected && stored[k].bytes == bytes[k];) k++;
    if (k < expected)
        return fail(CODE_INPUT, "%s: node %s: stored= must be its weights and its biases, %llu:f32,%llu:f32", t->weights_path,
                    tiny_name(t, id), 4 * (ull)n->channels * (ull)n->terms, 4 * (ull)n->channels);
    return CODE_OK;
}

// -- constants: how they are stored --

static float tiny_float_at(const unsigned char *at) {
    uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int32_t tiny_integer_at(const unsigned char *at) {
    return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}

// Little endian, as the targets are.
static void tiny_put_integer(unsigned char *to, int32_t value, int bytes) {
    int k;
    for (k = 0; k < bytes; k++) to[k] = (unsigned char)((uint32_t)value >> 8 * k);
}

static void tiny_put_float(unsigned char *to, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    tiny_put_integer(to, (int32_t)bits, 4);
}

// Which channel weight i of a node belongs to.
static int32_t tiny_channel_of(const tiny_node *n, int64_t i) {
    return (int32_t)(n->op == TINY_DEPTHWISE ? i % n->channels : i / n->terms);
}

// The scale of the integers that a model has, of a channel.
static float tiny_scale_of(const tiny_node *n, int32_t channel) {
    return tiny_float_at(n->scales->data + (n->scales->bytes > 4 ? 4 * (size_t)channel : 0));
}

// Which weight of a node term k of a channel is.
static int64_t tiny_weight_at(const tiny_node *n, int32_t channel, int32_t k) {
    return n->op == TINY_DEPTHWISE ? (int64_t)k * n->channels + channel : (int64_t)channel * n->terms + k;
}

// Whether the integers are those of the model.
static int tiny_keeps_integers(const tiny_node *n) {
    return n->weights->dtype == ST_I8 && n->scheme != TL_SCHEME_I16 && n->scheme != TL_SCHEME_W4A8;
}

// Read the weights as numbers.
static int tiny_read_numbers(tiny_model *t, int32_t id) {
    const tiny_node *n = &t->nodes[id];
    int64_t i, count = (int64_t)n->channels * n->terms;
    for (i = 0; i < count; i++) {
        float value = n->weights->dtype == ST_F32 ? tiny_float_at(n->weights->data + 4 * i)
                                                  : (float)(int8_t)n->weights->data[i] * tiny_scale_of(n, tiny_channel_of(n, i));
        if (value - value != 0) return tiny_fail_node(t, id, "a number of .weights is not finite");
        t->numbers[i] = value;
    }
    return CODE_OK;
}

// A bias as a number; of 32 bits with the scales that the model has.
static double tiny_bias_of(const tiny_model *t, int32_t id, int32_t channel) {
    const tiny_node *n = &t->nodes[id];
    const rg_tensor *in;
    if (n->biases->dtype == ST_F32) return tiny_float_at(n->biases->data + 4 * (size_t)channel);
    in = rg_find_tensor(&t->ranges, tl_name_node(t->model, t->nodes[tiny_input(t, id, 0)].model_node));
    return (double)in->scale * tiny_scale_of(n, channel) * tiny_integer_at(n->biases->data + 4 * (size_t)channel);
}

// Find the scale of each channel of the weights, or one for all.
static int tiny_scale_weights(tiny_model *t, int32_t id) {
    const tiny_node *n = &t->nodes[id];
    int32_t high = n->scheme == TL_SCHEME_I16 ? 32767 : 127;
    int is_one = n->scheme == TL_SCHEME_I8 || n->scheme == TL_SCHEME_I16;
    int64_t i, count = (int64_t)n->channels * n->terms;
    int32_t c;
    tl_env env;
    memset(&env, 0, sizeof env);
    for (c = 0; c < n->channels; c++) t->channels[c].scale = 0;     // the largest magnitude, first
    for (i = 0; i < count; i++) {
        float *most = &t->channels[is_one ? 0 : tiny_channel_of(n, i)].scale, value = t->numbers[i] < 0 ? -t->numbers[i] : t->numbers[i];
        if (value > *most) *most = value;
    }
    for (c = 0; c < n->channels; c++) {
        float most = t->channels[is_one ? 0 : c].scale;
        if (n->scheme == TL_SCHEME_W4A8) most /= 7;
        if (is_one && c) t->channels[c] = t->channels[0];
        else if (tl_find_quantization(&env, TL_RANGE_NARROW, -most, most, -high - 1, high, &t->channels[c])) return tiny_fail_node(t, id, env.error.text);
        if (tiny_keeps_integers(n)) t->channels[c].scale = tiny_scale_of(n, c);
    }
    return CODE_OK;
}

// The largest bias that leaves room for a sum of products in 32 bits. Sums of i16 have 64.
static double tiny_most_bias(const tiny_node *n) {
    double most = INT32_MAX, product = 255.0 * 127.0 * (n->scheme == TL_SCHEME_W4A8 ? 7 : 1);
    return n->format == TL_FORMAT_I8 ? most - product * n->terms : most;
}

// Let a scale of weights grow until the biases fit, and say so.
static int tiny_fit_biases(tiny_model *t, int32_t id) {
    tiny_node *n = &t->nodes[id];
    int is_one = n->scheme == TL_SCHEME_I8 || n->scheme == TL_SCHEME_I16;
    double in = t->nodes[tiny_input(t, id, 0)].as.scale, most = tiny_most_bias(n);
    int32_t c, k, grown = 0, worst = 0;
    if (n->scheme == TL_SCHEME_W4A8 && n->terms > TINY_MOST_W4_TERMS)
        return tiny_fail_node(t, id, "a sum of w4a8 has more than 8192 products, which 32 bits do not hold");
    if (most <= 0) return tiny_fail_node(t, id, "a sum has more than 65536 products, which 32 bits do not hold");
    for (c = 0; c < n->channels; c++) {
        double bias = tiny_bias_of(t, id, c), magnitude = bias < 0 ? -bias : bias, scale;
        if (!(magnitude <= 3.4e38)) return tiny_fail_node(t, id, "a number of .bias is not finite");
        if (magnitude <= most * in * t->channels[c].scale) continue;
        if (tiny_keeps_integers(n))
            return tiny_fail_node(t, id, "a bias of the model leaves no room for a sum in 32 bits");
        scale = magnitude / (most * in) * (1 + 1e-6);       // above what rounding to f32 takes
        if (!(scale < 3e38)) return tiny_fail_node(t, id, "a number of .bias is too large for any scale");
        for (k = is_one ? 0 : c; k < (is_one ? n->channels : c + 1); k++) t->channels[k].scale = (float)scale;
        worst = grown++ ? worst : c;
    }
    if (grown)
        fprintf(stderr, "tl_plan: node %s: %d of its biases, that of channel %d first, do not fit 32 bits: a larger scale of weights is taken\n",
                tiny_name(t, id), (int)grown, (int)worst);
    return CODE_OK;
}

// Round weight i of a node to an integer of steps of this size.
static int tiny_round_weight(const tiny_model *t, int32_t id, int64_t i, const tl_quantization *as, int16_t *value) {
    tl_env env;
    memset(&env, 0, sizeof env);
    return tl_quantize(&env, as, 1, 1, TL_FORMAT_I16, &t->numbers[i], value, 1) ? tiny_fail_node(t, id, env.error.text) : CODE_OK;
}

static int tiny_store_weights(tiny_model *t, int32_t id, unsigned char *to) {
    const tiny_node *n = &t->nodes[id];
    int wide = n->scheme == TL_SCHEME_I16 ? 2 : 1, code = CODE_OK;
    int64_t i, count = (int64_t)n->channels * n->terms;
    for (i = 0; i < count && !code; i++) {
        int16_t value = 0;
        if (tiny_keeps_integers(n)) value = (int8_t)n->weights->data[i];
        else code = tiny_round_weight(t, id, i, &t->channels[tiny_channel_of(n, i)], &value);
        tiny_put_integer(to + wide * i, value, wide);
    }
    return code;
}

// The factor of terms first .. end - 1 of a channel: the least with which none of them is beyond 7 steps.
static int32_t tiny_find_factor(const tiny_model *t, const tiny_node *n, int32_t channel, int32_t first, int32_t end) {
    float most = 0;
    double scale = t->channels[channel].scale, step;
    int32_t k, factor;
    for (k = first; k < end; k++) {
        float x = t->numbers[tiny_weight_at(n, channel, k)];
        if (x < 0) x = -x;
        most = x > most ? x : most;
    }
    step = most / 7;
    for (factor = (int32_t)(step / scale); factor < 127 && factor * scale < step;) factor++;
    return factor;
}

// Put q of term k of K into the weights of its channel.
static void tiny_put_nibble(unsigned char *to, int32_t k, int32_t K, int32_t q) {
    int32_t block = k / 8 * 8, i = k % 8;
    int is_full = block + 8 <= K, is_high = is_full ? i >= 4 : i % 2;
    unsigned char *byte = to + block / 2 + (is_full ? i % 4 : i / 2);
    *byte = (unsigned char)(*byte | (q & 15) << (is_high ? 4 : 0));
}

// Write the weights and factors of a channel of w4a8; bytes of them are 0 before.
static int tiny_store_channel(tiny_model *t, int32_t id, int32_t channel, unsigned char *weights, unsigned char *factors) {
    const tiny_node *n = &t->nodes[id];
    tl_quantization as = t->channels[channel];
    int32_t k, first, factor;
    int code = CODE_OK;
    as.low = -7;
    as.high = 7;
    for (first = 0; first < n->terms; first += TINY_GROUP) {
        int32_t end = n->terms - first < TINY_GROUP ? n->terms : first + TINY_GROUP;
        *factors++ = (unsigned char)(factor = tiny_find_factor(t, n, channel, first, end));
        as.scale = t->channels[channel].scale * (float)factor;
        for (k = first; k < end && factor && !code; k++) {
            int16_t value = 0;
            code = tiny_round_weight(t, id, tiny_weight_at(n, channel, k), &as, &value);
            if (!code) tiny_put_nibble(weights, k, n->terms, value);
        }
    }
    return code;
}

static int tiny_store_quarters(tiny_model *t, int32_t id, unsigned char *const to[TINY_MOST_CONSTANTS]) {
    const tiny_node *n = &t->nodes[id];
    int32_t c, row = (n->terms + 1) / 2, groups = tiny_count_groups(n);
    int code = CODE_OK;
    for (c = 0; c < n->channels && !code; c++)
        code = tiny_store_channel(t, id, c, to[TINY_WEIGHTS] + (size_t)c * (size_t)row, to[TINY_FACTORS] + (size_t)c * (size_t)groups);
    return code;
}

// Write weights, biases, multipliers and shifts of a node in integers.
static int tiny_store_integers(tiny_model *t, int32_t id, unsigned char *const to[TINY_MOST_CONSTANTS], int32_t factors) {
    tiny_node *n = &t->nodes[id];
    float in = t->nodes[tiny_input(t, id, 0)].as.scale;
    int code = tiny_scale_weights(t, id);
    int32_t c;
    tl_env env;
    memset(&env, 0, sizeof env);
    if (!code) code = tiny_fit_biases(t, id);
    if (!code) code = n->scheme == TL_SCHEME_W4A8 ? tiny_store_quarters(t, id, to) : tiny_store_weights(t, id, to[TINY_WEIGHTS]);
    if (code) return code;
    for (c = 0; c < n->channels; c++) {
        double bias = tiny_bias_of(t, id, c) / ((double)in * t->channels[c].scale);
        tiny_put_integer(to[TINY_BIASES] + 4 * c, (int32_t)(bias + (bias < 0 ? -0.5 : 0.5)), 4);
    }
    for (c = 0; c < factors; c++) {
        tl_multiplier m;
        if (tl_find_multiplier(&env, in, t->channels[c].scale, n->as.scale, &m)) return tiny_fail_node(t, id, env.error.text);
        if (m.exponent > 30) return tiny_fail_node(t, id, "scale of input x scale of weights / scale of output is 2^30 or more");
        tiny_put_integer(to[TINY_MULTIPLIERS] + 4 * c, m.multiplier, 4);
        tiny_put_integer(to[TINY_SHIFTS] + 4 * c, m.exponent, 4);
    }
    return CODE_OK;
}

static int tiny_store_floats(tiny_model *t, int32_t id, unsigned char *const to[TINY_MOST_CONSTANTS]) {
    const tiny_node *n = &t->nodes[id];
    int64_t i, count = (int64_t)n->channels * n->terms;
    for (i = 0; i < count; i++) tiny_put_float(to[TINY_WEIGHTS] + 4 * i, t->numbers[i]);
    for (i = 0; i < n->channels; i++) {
        float bias = (float)tiny_bias_of(t, id, (int32_t)i);
        if (bias - bias != 0) return tiny_fail_node(t, id, "a number of .bias is not finite");
        tiny_put_float(to[TINY_BIASES] + 4 * i, bias);
    }
    return CODE_OK;
}

// Make the constants of a node at `at`.
static int tiny_store(tiny_model *t, int32_t id, unsigned char *at) {
    tiny_node *n = &t->nodes[id];
    const tl_stored *stored;
    int32_t count = tiny_find_stored(t->graph, id, &stored), k;
    unsigned char *to[TINY_MOST_CONSTANTS] = { NULL, NULL, NULL, NULL, NULL };
    int code;
    if (!count) return CODE_OK;
    code = tiny_match(t, id);
    if (!code) code = tiny_check_stored(t, id, stored, count);
    if (!code) code = tiny_read_numbers(t, id);
    if (code) return code;
    for (k = 0; k < count; k++) {
        n->constants[k] = to[k] = at;
        at += stored[k].bytes;
    }
    return n->scheme == TL_SCHEME_F32 ? tiny_store_floats(t, id, to) : tiny_store_integers(t, id, to, (int32_t)(stored[2].bytes / 4));
}

// -- geometry --

static int tiny_fail_geometry(const tiny_model *t, int32_t id, const char *why) {
    return fail(CODE_INPUT, "%s: node %s: %s", t->ranges_path ? t->ranges_path : "--ranges", tiny_name(t, id), why);
}

// Hold the geometry of a window against the shapes.
static int tiny_check_window(const tiny_model *t, int32_t id) {
    const tiny_node *n = &t->nodes[id], *in = &t->nodes[tiny_input(t, id, 0)];
    const rg_node *g = &n->geometry;
    int k;
    for (k = 0; k < 2; k++) {
        int64_t reach = (int64_t)g->dilation[k] * (g->kernel[k] - 1) + 1;
        int64_t inside = (int64_t)in->shape[k] + g->pad[k] + g->pad[k + 2] - reach;
        if (g->pad[k] >= reach || g->pad[k + 2] >= reach) return tiny_fail_geometry(t, id, "pad: is as large as what its kernel reaches, or larger");
        if (inside < 0 || inside / g->stride[k] + 1 != n->shape[k])
            return tiny_fail_geometry(t, id, k ? "kernel, stride and pad make another width than its shape has"
                                               : "kernel, stride and pad make another height than its shape has");
        if (g->dilation[k] != 1 && n->op != TINY_CONV2D && n->op != TINY_DEPTHWISE) return tiny_fail_geometry(t, id, "a pool has no dilation");
    }
    if (n->op == TINY_DEPTHWISE ? n->shape[2] != (int64_t)in->shape[2] * g->multiplier : n->op != TINY_CONV2D && n->shape[2] != in->shape[2])
        return tiny_fail_geometry(t, id, "its channels are not those of what it reads, times multiplier");
    return CODE_OK;
}

// Hold a node of which a kernel is written against what it reads.
static int tiny_check_node(const tiny_model *t, int32_t id) {
    const tiny_node *n = &t->nodes[id];
    int32_t count = t->graph->nodes[id].input_count, i;
    if (t->graph->nodes[id].is_input) return CODE_OK;
    if (n->op == TINY_OP_COUNT)
        return fail(CODE_INPUT, "--kernels: node %s: op %s has no kernel there", tiny_name(t, id), tl_name_op(t->graph, id));
    if (count < tiny_ops[n->op].least || count > tiny_ops[n->op].most)
        return fail(CODE_INPUT, "--kernels: node %s: a kernel of %s reads %d tensors, not %d", tiny_name(t, id), tiny_ops[n->op].name,
                    (int)tiny_ops[n->op].least, (int)count);
    if (!tiny_elements_of(n->shape)) return tiny_fail_geometry(t, id, "its shape is not given");
    for (i = 0; i < count; i++)
        if (!tiny_elements_of(t->nodes[tiny_input(t, id, i)].shape)) return tiny_fail_geometry(t, id, "the shape of what it reads is not given");
    if (!tiny_has_window(n->op)) return CODE_OK;
    if (!n->has_geometry) return tiny_fail_geometry(t, id, "has a window, and no line tells of it");
    return tiny_check_window(t, id);
}

// -- all of it --

// Room for all constants, and for the largest of a node as numbers.
static int tiny_alloc(tiny_model *t) {
    const tl_attributes *a = t->graph->attributes;
    uint64_t most = 1;
    int32_t i;
    for (i = 0; a && i < a->stored_count; i++) {
        t->byte_count += a->stored[i].bytes;
        most = a->stored[i].bytes > most ? a->stored[i].bytes : most;
    }
    if (t->byte_count > UINT32_MAX) return fail(CODE_INPUT, "--weights: the constants have more than 4 GiB");
    t->bytes = (unsigned char *)calloc((size_t)t->byte_count + 1, 1);
    t->numbers = (float *)calloc(2 * (size_t)most, sizeof *t->numbers);      // two weights a byte
    t->channels = (tl_quantization *)calloc((size_t)most, sizeof *t->channels);
    return t->bytes && t->numbers && t->channels ? CODE_OK : fail(CODE_INPUT, "no memory for --weights");
}

// Read ranges for a graph whose weights were read, and make its constants. hash: tiny_hash_model of the graph as it was
// read.
static int tiny_read(tiny_model *t, uint64_t hash) {
    uint64_t at = 0;
    int32_t id, k, count;
    int code = t->ranges_path ? tiny_read_ranges(t, hash) : CODE_OK;
    if (!code && t->ranges_path) code = tiny_check_names(t);
    if (!code) code = tiny_list_nodes(t);
    if (!code) code = tiny_alloc(t);
    for (id = 0; id < t->graph->node_count && !code; id++) {
        const tl_stored *stored;
        if (t->graph->nodes[id].param_bytes)
            return fail(CODE_INPUT, "--weights: node %s: its weights are param=; constants are stored=", tiny_name(t, id));
        if (tiny_is_integer(t->nodes[id].format)) code = tiny_quantize_output(t, id);
        if (!code) code = tiny_store(t, id, t->bytes + at);
        count = tiny_find_stored(t->graph, id, &stored);
        for (k = 0; k < count; k++) at += stored[k].bytes;
    }
    return code;
}

#endif
