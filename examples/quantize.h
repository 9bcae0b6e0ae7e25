/* quantize.h - a network every node of which runs in any scheme, for 05_quantize.c

   One network type for both examples, a transformer and a convolution net: nodes with one tensor
   each, the same ids as in its tl_graph. It trains in f32, and runs with a scheme for each node:

       integer kernels   linear, conv2d, gelu, relu, add, pools in i8; linear and conv2d in
                         i8-channel, w8a16, i16, and dynamic                       (nn_int.h)
       storage alone     everything else: a tensor in 16 or 8 bits is made to floats before the
                         f32 kernel and back behind it                    (nn.h, nn_image.h)

   A tensor that is read in another format than that of its node is converted once for each format,
   which is what tl_plan_precision counts.

   LETTERS     B = sequences or images in a batch, R = rows of a product, K = its terms, N = its
               columns, H, W, C = of an image that is read

   CONTENTS    (search for "// -- ")
               network    f32    training    observe    weights    conversions    schemes    passes
               losses
*/
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include "training.h"
#include "nn_image.h"
#include "nn_int.h"

// -- network --

typedef enum quantize_op {
    QUANTIZE_INPUT, QUANTIZE_EMBED, QUANTIZE_NORM, QUANTIZE_LINEAR, QUANTIZE_ATTENTION,
    QUANTIZE_GELU, QUANTIZE_ADD, QUANTIZE_CONV2D, QUANTIZE_RELU, QUANTIZE_MAX_POOL,
    QUANTIZE_MEAN_POOL
} quantize_op;

typedef struct quantize_node {
    quantize_op op;
    int32_t from[2];              // nodes it reads
    int32_t from_count;
    size_t  elements;             // of its tensor
    size_t  R, K, N;              // linear, conv2d; norm, embed, attention: rows and channels R, N
    size_t  H, W, C, size;        // conv2d, pools: the image that is read, side of the square
    size_t  weight, weight_count; // place among the params
    size_t  bias, bias_count;
} quantize_node;

// The weights of one node, made ready for one scheme.
typedef struct quantize_weights {
    int     is_ready;
    nn_int_linear linear;         // linear, conv2d
    float  *dynamic_scales;
    void   *half;                 // f16, bf16: weights, then biases
    int8_t  table[256];           // gelu, relu
    nn_int_add add;
} quantize_weights;

// One batch of data, and what the network made of it in f32.
typedef struct quantize_batch {
    void    *input;               // tokens or pixels
    int32_t *targets;             // [rows]
    float  **tensors;             // [node_count] in f32; NULL before quantize_keep_tensors
} quantize_batch;

typedef struct quantize_net quantize_net;
struct quantize_net {
    const char *name;
    tl_env  *env;
    tl_graph graph;               // what is planned; owned
    quantize_node *nodes;         // [graph.node_count]
    size_t   B, T, heads;         // T, heads: tokens of context and heads of attention
    size_t   rows, classes;       // of the logits
    int32_t  logits;              // node
    size_t   param_count;
    float   *params, *grads, *means, *squares;  // [param_count]; both states of AdamW
    void   (*load)(const quantize_net *net, uint64_t first, void *input, int32_t *targets);
    const void *data;             // for load
    int      has_tokens;          // 1 = what it reads are no numbers
    uint64_t seed;

    float  **saved, **dtensors;   // [node_count] of training: for backward, gradients
    int      trains;              // 1 = forward saves
    tl_quantization *narrow, *wide;  // [node_count] of each tensor in i8 and in i16
    quantize_weights *weights;    // [node_count x TL_SCHEME_COUNT]
    void   **buffers;             // [node_count x TL_FORMAT_COUNT] made when first needed
    const void **views;           // the same: where a tensor is in a format now; NULL = it is not
    uint8_t *formats;             // [node_count] in which its node made it
    int64_t  conversions;         // made since this was set to 0
    float   *scratch[3];          // two inputs and the output, in f32
    float   *weight_scratch, *work_scratch;

    void   **blocks;              // all memory, for quantize_free_net
    size_t   block_count, block_capacity;
};

// Memory that lives as long as the network; there is no going on without it.
static inline void *quantize_take(quantize_net *net, size_t count, size_t bytes) {
    void *block = calloc(count ? count : 1, bytes);
    if (block && net->block_count == net->block_capacity) {
        size_t capacity = 2 * net->block_capacity + 64;
        void **grown = (void **)realloc(net->blocks, capacity * sizeof *grown);
        if (!grown) {
            free(block);
            block = NULL;
        } else {
            net->blocks = grown;
            net->block_capacity = capacity;
        }
    }
    if (!block) exit(training_fail(TRAINING_INPUT, "no memory for %zu bytes", count * bytes));
    net->blocks[net->block_count++] = block;
    return block;
}

static inline float *quantize_take_floats(quantize_net *net, size_t count) {
    return (float *)quantize_take(net, count, sizeof(float));
}

static inline void quantize_free_net(quantize_net *net) {
    size_t i;
    for (i = 0; i < net->block_count; i++) free(net->blocks[i]);
    free(net->blocks);
    tl_free_graph(net->env, &net->graph);
    memset(net, 0, sizeof *net);
}

static inline size_t quantize_max(size_t a, size_t b) { return a > b ? a : b; }

// Multiply-adds of a node: its product, if it is one.
static inline uint64_t quantize_count_products(const quantize_node *n) {
    return n->op == QUANTIZE_LINEAR || n->op == QUANTIZE_CONV2D ? (uint64_t)n->R * n->K * n->N : 0;
}

// What the net needs besides nodes and params: buffers, scratch, states.
static inline void quantize_finish_net(quantize_net *net) {
    size_t count = (size_t)net->graph.node_count, elements = 1, weights = 1, work = 1, i;
    for (i = 0; i < count; i++) {
        const quantize_node *n = &net->nodes[i];
        size_t windows = n->H * n->W * n->K, scores = net->B * net->heads * net->T * net->T;
        elements = quantize_max(elements, n->elements);
        weights = quantize_max(weights, n->weight_count + n->bias_count);
        work = quantize_max(work, n->op == QUANTIZE_CONV2D ? 2 * windows : n->R * n->K);
        if (n->op == QUANTIZE_ATTENTION) work = quantize_max(work, scores);
    }
    for (i = 0; i < 3; i++) net->scratch[i] = quantize_take_floats(net, elements);
    net->weight_scratch = quantize_take_floats(net, weights);
    net->work_scratch = quantize_take_floats(net, work);
    net->params = quantize_take_floats(net, net->param_count);
    net->grads = quantize_take_floats(net, net->param_count);
    net->means = quantize_take_floats(net, net->param_count);
    net->squares = quantize_take_floats(net, net->param_count);
    net->saved = (float **)quantize_take(net, count, sizeof(float *));
    net->dtensors = (float **)quantize_take(net, count, sizeof(float *));
    net->narrow = (tl_quantization *)quantize_take(net, count, sizeof(tl_quantization));
    net->wide = (tl_quantization *)quantize_take(net, count, sizeof(tl_quantization));
    net->weights = (quantize_weights *)quantize_take(net, count * TL_SCHEME_COUNT,
                                                     sizeof(quantize_weights));
    net->buffers = (void **)quantize_take(net, count * TL_FORMAT_COUNT, sizeof(void *));
    net->views = (const void **)quantize_take(net, count * TL_FORMAT_COUNT, sizeof(void *));
    net->formats = (uint8_t *)quantize_take(net, count, 1);
}

static inline void *quantize_get_buffer(quantize_net *net, int32_t id, tl_format format) {
    void **buffer = &net->buffers[id * TL_FORMAT_COUNT + (int32_t)format];
    if (!*buffer) *buffer = quantize_take(net, net->nodes[id].elements, sizeof(float));
    return *buffer;
}

static inline const void *quantize_get_view(const quantize_net *net, int32_t id, tl_format format) {
    return net->views[id * TL_FORMAT_COUNT + (int32_t)format];
}

// The tensor of a node is here, in this format and in no other.
static inline void quantize_set_view(quantize_net *net, int32_t id, tl_format format,
                                     const void *at) {
    int32_t i;
    for (i = 0; i < TL_FORMAT_COUNT; i++) net->views[id * TL_FORMAT_COUNT + i] = NULL;
    net->views[id * TL_FORMAT_COUNT + (int32_t)format] = at;
    net->formats[id] = (uint8_t)format;
}

// -- f32 --

// One node in f32. b: of add alone; weight and bias: those of the node, or a copy of them.
static inline void quantize_compute(const quantize_net *net, int32_t id, float *out, const void *in,
                                    const float *b, const float *weight, const float *bias) {
    const quantize_node *n = &net->nodes[id];
    const float *a = (const float *)in;
    float *saved = net->trains ? net->saved[id] : NULL, *work = net->work_scratch;
    switch (n->op) {
    case QUANTIZE_INPUT: break;
    case QUANTIZE_EMBED:
        nn_embed_forward(out, (const int32_t *)in, weight, bias, net->B, net->T, n->N);
        break;
    case QUANTIZE_NORM: nn_norm_forward(out, saved, a, weight, bias, n->R, n->N); break;
    case QUANTIZE_LINEAR: nn_linear_forward(out, a, weight, bias, n->R, n->K, n->N); break;
    case QUANTIZE_ATTENTION:
        nn_attention_forward(out, saved, a, work, net->B, net->T, n->N, net->heads);
        break;
    case QUANTIZE_GELU: nn_gelu_forward(out, a, n->elements); break;
    case QUANTIZE_ADD: nn_add_forward(out, a, b, n->elements); break;
    case QUANTIZE_CONV2D:
        nn_conv2d_forward(out, a, weight, bias, work, net->B, n->H, n->W, n->C, n->N, n->size);
        break;
    case QUANTIZE_RELU: nn_relu_forward(out, a, n->elements); break;
    case QUANTIZE_MAX_POOL:
        nn_max_pool_forward(out, a, net->B, n->H, n->W, n->C, n->size);
        break;
    case QUANTIZE_MEAN_POOL:
        nn_mean_pool_forward(out, a, net->B, n->H, n->W, n->C, n->size);
        break;
    }
}

// -- training --

static inline float *quantize_get_tensor(quantize_net *net, int32_t id) {
    return (float *)quantize_get_buffer(net, id, TL_FORMAT_F32);
}

static inline void quantize_backpropagate(quantize_net *net, int32_t id) {
    const quantize_node *n = &net->nodes[id];
    const float *in = quantize_get_tensor(net, n->from[0]), *dout = net->dtensors[id];
    const float *weight = net->params + n->weight;
    float *din = net->dtensors[n->from[0]], *work = net->work_scratch;
    float *dweight = net->grads + n->weight, *dbias = net->grads + n->bias;
    switch (n->op) {
    case QUANTIZE_INPUT: break;
    case QUANTIZE_EMBED:
        nn_embed_backward(dweight, dbias, dout, (const int32_t *)(const void *)in, net->B, net->T,
                          n->N);
        break;
    case QUANTIZE_NORM:
        nn_norm_backward(din, dweight, dbias, dout, net->saved[id], in, weight, n->R, n->N);
        break;
    case QUANTIZE_LINEAR:
        nn_linear_backward(din, dweight, dbias, dout, in, weight, n->R, n->K, n->N);
        break;
    case QUANTIZE_ATTENTION:
        nn_attention_backward(din, dout, net->saved[id], in, work, net->B, net->T, n->N,
                              net->heads);
        break;
    case QUANTIZE_GELU: nn_gelu_backward(din, dout, in, n->elements); break;
    case QUANTIZE_ADD: nn_add_backward(din, net->dtensors[n->from[1]], dout, n->elements); break;
    case QUANTIZE_CONV2D:
        nn_conv2d_backward(din, dweight, dbias, dout, in, weight, work, net->B, n->H, n->W, n->C,
                           n->N, n->size);
        break;
    case QUANTIZE_RELU: nn_relu_backward(din, dout, in, n->elements); break;
    case QUANTIZE_MAX_POOL:
        nn_max_pool_backward(din, dout, in, net->B, n->H, n->W, n->C, n->size);
        break;
    case QUANTIZE_MEAN_POOL:
        nn_mean_pool_backward(din, dout, net->B, n->H, n->W, n->C, n->size);
        break;
    }
}

// Room for what backward reads, and for gradients; an input has none.
static inline void quantize_start_training(quantize_net *net) {
    int32_t id;
    for (id = 0; id < net->graph.node_count; id++) {
        const quantize_node *n = &net->nodes[id];
        size_t saved = 0;
        if (n->op == QUANTIZE_NORM) saved = nn_norm_saved_bytes(n->R);
        if (n->op == QUANTIZE_ATTENTION)
            saved = nn_attention_saved_bytes(net->B, net->heads, net->T);
        if (saved) net->saved[id] = (float *)quantize_take(net, saved, 1);
        if (n->op != QUANTIZE_INPUT) net->dtensors[id] = quantize_take_floats(net, n->elements);
    }
}

// Forward and backward in f32 on the input that is in tensor 0; returns the loss.
static inline float quantize_run_backward(quantize_net *net, const int32_t *targets) {
    int32_t id, last = net->logits;
    float loss;
    net->trains = 1;
    for (id = 0; id <= last; id++) {
        const quantize_node *n = &net->nodes[id];
        if (n->op != QUANTIZE_INPUT)
            quantize_compute(net, id, quantize_get_tensor(net, id),
                             quantize_get_tensor(net, n->from[0]),
                             quantize_get_tensor(net, n->from[1]), net->params + n->weight,
                             net->params + n->bias);
        if (net->dtensors[id]) memset(net->dtensors[id], 0, n->elements * sizeof(float));
    }
    nn_cross_entropy_forward(&loss, NULL, quantize_get_tensor(net, last), targets, net->rows,
                             net->classes);
    memset(net->grads, 0, net->param_count * sizeof(float));
    nn_cross_entropy_backward(net->dtensors[last], 1.0f, quantize_get_tensor(net, last), targets,
                              net->rows, net->classes);
    for (id = last; id >= 0; id--) quantize_backpropagate(net, id);
    net->trains = 0;
    return loss;
}

// One step on batch number `step`, counted from 1; returns the loss before it.
static inline float quantize_train_step(quantize_net *net, uint64_t step, float rate,
                                        int32_t *targets) {
    nn_adamw opt = { 0.0f, 0.9f, 0.99f, 1e-8f, 0.0f };
    float loss;
    opt.rate = rate;
    net->load(net, step * net->B, quantize_get_tensor(net, 0), targets);
    loss = quantize_run_backward(net, targets);
    nn_adamw_update(net->params, net->means, net->squares, net->grads, net->param_count, step,
                    &opt);
    return loss;
}

// -- observe: the range of each tensor, and from it how it is stored in i8 and in i16 --

// Pools hand on what they read: their integers mean the same.
static inline int quantize_is_pool(const quantize_node *n) {
    return n->op == QUANTIZE_MAX_POOL || n->op == QUANTIZE_MEAN_POOL;
}

// i8: affine, over the range that the kind of the observer finds; i16: all that was seen.
static inline tl_result quantize_observe_tensor(quantize_net *net, int32_t id,
                                                const tl_observer_desc *desc,
                                                const quantize_batch *batches, size_t count) {
    tl_observer *observer;
    tl_observation seen;
    size_t i;
    tl_result result = tl_init_observer(net->env, desc, &observer);
    for (i = 0; i < count && !result; i++)
        result = tl_observe_data(observer, batches[i].tensors[id], net->nodes[id].elements);
    if (!result) result = tl_measure_observer(observer, 0, &seen);
    if (!result)
        result = tl_find_observed_quantization(observer, 0, TL_RANGE_AFFINE, -128, 127,
                                               &net->narrow[id]);
    if (!result)
        result = tl_find_quantization(net->env, TL_RANGE_NARROW, seen.least, seen.most, -32768,
                                      32767, &net->wide[id]);
    tl_free_observer(observer);
    return result;
}

static inline tl_result quantize_observe(quantize_net *net, tl_observer_kind kind,
                                         const quantize_batch *batches, size_t count) {
    tl_observer_desc desc;
    tl_result result = TL_OK;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    desc.kind = kind;
    for (id = 0; id <= net->logits && !result; id++) {
        const quantize_node *n = &net->nodes[id];
        if (quantize_is_pool(n)) {
            net->narrow[id] = net->narrow[n->from[0]];
            net->wide[id] = net->wide[n->from[0]];
        } else if (n->op != QUANTIZE_INPUT || !net->has_tokens) {
            result = quantize_observe_tensor(net, id, &desc, batches, count);
        }
    }
    return result;
}

static inline nn_int_target quantize_target_of(const tl_quantization *q) {
    nn_int_target to;
    to.zero = q->zero_point;
    to.low = q->low;
    to.high = q->high;
    return to;
}

// -- weights: what a scheme makes of them, once --

static inline int quantize_is_narrow(tl_scheme scheme) {
    return scheme == TL_SCHEME_I8 || scheme == TL_SCHEME_I8_CHANNEL || scheme == TL_SCHEME_DYNAMIC;
}

// Scales of the weights, symmetric, for each output channel or for all of them.
static inline tl_result quantize_find_weight_scales(quantize_net *net, const quantize_node *n,
                                                    int32_t channels, int32_t high,
                                                    tl_quantization *scales) {
    tl_observer_desc desc;
    tl_observer *observer;
    tl_result result;
    int32_t j;
    memset(&desc, 0, sizeof desc);
    desc.kind = TL_OBSERVER_MIN_MAX;
    desc.channel_count = channels;  // weights are (K, N): neighbours are of different channels
    result = tl_init_observer(net->env, &desc, &observer);
    if (!result) result = tl_observe_data(observer, net->params + n->weight, n->weight_count);
    for (j = 0; j < channels && !result; j++)
        result = tl_find_observed_quantization(observer, j, TL_RANGE_NARROW, -high - 1, high,
                                               &scales[j]);
    tl_free_observer(observer);
    return result;
}

// (K, N) floats to (N, K) integers.
static inline tl_result quantize_make_integers(quantize_net *net, const quantize_node *n,
                                               const tl_quantization *scales, int32_t channels,
                                               int wide, void *to) {
    tl_format format = wide ? TL_FORMAT_I16 : TL_FORMAT_I8;
    tl_result result = tl_quantize(net->env, scales, channels, 1, format, net->params + n->weight,
                                   net->weight_scratch, n->weight_count);
    const void *from = net->weight_scratch;
    if (result) return result;
    if (wide) nn_int16_transpose((int16_t *)to, (const int16_t *)from, n->K, n->N);
    else nn_int8_transpose((int8_t *)to, (const int8_t *)from, n->K, n->N);
    return TL_OK;
}

// Biases as integers that are added to sums of products.
static inline void quantize_make_biases(const quantize_net *net, const quantize_node *n,
                                        float in_scale, const tl_quantization *scales, int step,
                                        int32_t *narrow, int64_t *wide) {
    size_t j;
    for (j = 0; j < n->N; j++) {
        double unit = (double)in_scale * (double)scales[step ? j : 0].scale;
        double bias = floor((double)net->params[n->bias + j] / unit + 0.5);
        wide[j] = bias > 1e15 ? (int64_t)1e15 : bias < -1e15 ? -(int64_t)1e15 : (int64_t)bias;
        narrow[j] = (int32_t)nn_int_clamp(wide[j], -(1 << 24), 1 << 24);
    }
}

static inline tl_result quantize_make_factors(quantize_net *net, float in_scale, float out_scale,
                                              const tl_quantization *scales, int32_t channels,
                                              nn_int_factor *factors) {
    tl_multiplier multiplier;
    int32_t j;
    for (j = 0; j < channels; j++) {
        tl_result result =
            tl_find_multiplier(net->env, in_scale, scales[j].scale, out_scale, &multiplier);
        if (result) return result;
        factors[j].multiplier = multiplier.multiplier;
        factors[j].exponent = multiplier.exponent;
    }
    return TL_OK;
}

// linear and conv2d as integers.
static inline tl_result quantize_prepare_product(quantize_net *net, int32_t id, tl_scheme scheme,
                                                 quantize_weights *w) {
    const quantize_node *n = &net->nodes[id];
    int wide = scheme == TL_SCHEME_I16, narrow = quantize_is_narrow(scheme);
    int per_channel = scheme != TL_SCHEME_I8 && scheme != TL_SCHEME_I16;
    int32_t channels = per_channel ? (int32_t)n->N : 1, j;
    const tl_quantization *in = (narrow ? net->narrow : net->wide) + n->from[0];
    const tl_quantization *out = (narrow ? net->narrow : net->wide) + id;
    tl_quantization *q = (tl_quantization *)quantize_take(net, (size_t)channels, sizeof *q);
    void *integers = quantize_take(net, n->weight_count, wide ? 2 : 1);
    int32_t *sums = (int32_t *)quantize_take(net, n->N, sizeof *sums);
    int32_t *bias = (int32_t *)quantize_take(net, n->N, sizeof *bias);
    int64_t *wide_bias = (int64_t *)quantize_take(net, n->N, sizeof *wide_bias);
    nn_int_factor *factors = (nn_int_factor *)quantize_take(net, n->N, sizeof *factors);
    float *scales = quantize_take_floats(net, n->N);
    tl_result result = quantize_find_weight_scales(net, n, channels, wide ? 32767 : 127, q);
    if (!result) result = quantize_make_integers(net, n, q, channels, wide, integers);
    if (!result && scheme != TL_SCHEME_DYNAMIC)
        result = quantize_make_factors(net, in->scale, out->scale, q, channels, factors);
    if (result) return result;
    for (j = 0; j < channels; j++) scales[j] = q[j].scale;
    if (!wide) nn_int_sum_weights(sums, (const int8_t *)integers, n->N, n->K);
    if (scheme != TL_SCHEME_DYNAMIC)
        quantize_make_biases(net, n, in->scale, q, per_channel, bias, wide_bias);
    w->linear.K = n->K;
    w->linear.N = n->N;
    w->linear.weight = integers;
    w->linear.weight_sums = sums;
    w->linear.bias = bias;
    w->linear.wide_bias = wide_bias;
    w->linear.factors = factors;
    w->linear.scales = scales;
    w->linear.float_bias = net->params + n->bias;
    w->linear.per_channel = per_channel;
    w->linear.in_zero = in->zero_point;
    w->linear.to = quantize_target_of(out);
    w->dynamic_scales = quantize_take_floats(net, n->N);
    return TL_OK;
}

static inline tl_codec quantize_codec_of(tl_format format) {
    return format == TL_FORMAT_F16 ? TL_CODEC_F16 : TL_CODEC_BF16;
}

static inline int quantize_is_half(tl_format format) {
    return format == TL_FORMAT_F16 || format == TL_FORMAT_BF16;
}

static inline void quantize_prepare_half(quantize_net *net, const quantize_node *n,
                                         tl_format format, quantize_weights *w) {
    unsigned char *to = (unsigned char *)quantize_take(net, n->weight_count + n->bias_count, 2);
    tl_codec codec = quantize_codec_of(format);
    tl_compress_bytes(codec, to, net->params + n->weight, 4 * (uint64_t)n->weight_count);
    tl_compress_bytes(codec, to + 2 * n->weight_count, net->params + n->bias,
                      4 * (uint64_t)n->bias_count);
    w->half = to;
}

static inline void quantize_prepare_add(const quantize_net *net, int32_t id, nn_int_add *add) {
    const tl_quantization *out = &net->narrow[id];
    const tl_quantization *a = &net->narrow[net->nodes[id].from[0]];
    const tl_quantization *b = &net->narrow[net->nodes[id].from[1]];
    add->a_weight = nn_int_find_add_weight(a->scale, out->scale);
    add->b_weight = nn_int_find_add_weight(b->scale, out->scale);
    add->a_zero = a->zero_point;
    add->b_zero = b->zero_point;
    add->to = quantize_target_of(out);
}

// Make the weights of a node ready for a scheme, where they are not.
static inline tl_result quantize_prepare(quantize_net *net, int32_t id, tl_scheme scheme,
                                         quantize_weights **weights) {
    const quantize_node *n = &net->nodes[id];
    quantize_weights *w = &net->weights[id * TL_SCHEME_COUNT + (int32_t)scheme];
    tl_format format = tl_find_scheme_format(scheme);
    tl_result result = TL_OK;
    *weights = w;
    if (w->is_ready || scheme == TL_SCHEME_F32) return TL_OK;
    if (quantize_is_half(format)) {
        quantize_prepare_half(net, n, format, w);
    } else if (quantize_count_products(n)) {
        result = quantize_prepare_product(net, id, scheme, w);
    } else if (format == TL_FORMAT_I8 && (n->op == QUANTIZE_GELU || n->op == QUANTIZE_RELU)) {
        const tl_quantization *in = &net->narrow[n->from[0]];
        nn_int8_fill_table(w->table, n->op == QUANTIZE_GELU ? nn_gelu_forward : nn_relu_forward,
                           in->scale, in->zero_point, net->narrow[id].scale,
                           quantize_target_of(&net->narrow[id]));
    } else if (format == TL_FORMAT_I8 && n->op == QUANTIZE_ADD) {
        quantize_prepare_add(net, id, &w->add);
    }
    w->is_ready = !result;
    return result;
}

// -- conversions --

static inline void quantize_to_floats(const quantize_net *net, int32_t id, tl_format format,
                                      const void *from, float *to) {
    size_t n = net->nodes[id].elements;
    const tl_quantization *narrow = &net->narrow[id], *wide = &net->wide[id];
    switch (format) {
    case TL_FORMAT_F32: memcpy(to, from, n * sizeof *to); break;
    case TL_FORMAT_F16:
    case TL_FORMAT_BF16: tl_expand_bytes(quantize_codec_of(format), to, from, 4 * n); break;
    case TL_FORMAT_I16:
        nn_int16_dequantize(to, (const int16_t *)from, n, wide->scale, wide->zero_point);
        break;
    case TL_FORMAT_I8:
        nn_int8_dequantize(to, (const int8_t *)from, n, narrow->scale, narrow->zero_point);
        break;
    case TL_FORMAT_COUNT: break;
    }
}

static inline void quantize_from_floats(const quantize_net *net, int32_t id, tl_format format,
                                        const float *from, void *to) {
    size_t n = net->nodes[id].elements;
    const tl_quantization *narrow = &net->narrow[id], *wide = &net->wide[id];
    switch (format) {
    case TL_FORMAT_F32: memcpy(to, from, n * sizeof *from); break;
    case TL_FORMAT_F16:
    case TL_FORMAT_BF16: tl_compress_bytes(quantize_codec_of(format), to, from, 4 * n); break;
    case TL_FORMAT_I16:
        nn_int16_quantize((int16_t *)to, from, n, wide->scale, quantize_target_of(wide));
        break;
    case TL_FORMAT_I8:
        nn_int8_quantize((int8_t *)to, from, n, narrow->scale, quantize_target_of(narrow));
        break;
    case TL_FORMAT_COUNT: break;
    }
}

// The tensor of a node in a format; converted from the one it was made in, if it is not there yet.
static inline const void *quantize_convert(quantize_net *net, int32_t id, tl_format format) {
    const void *view = quantize_get_view(net, id, format);
    tl_format made = (tl_format)net->formats[id];
    const void *from = quantize_get_view(net, id, made);
    void *to;
    if (view) return view;
    to = quantize_get_buffer(net, id, format);
    net->conversions++;
    if (format == TL_FORMAT_F32) {
        quantize_to_floats(net, id, made, from, (float *)to);
    } else if (made == TL_FORMAT_F32) {
        quantize_from_floats(net, id, format, (const float *)from, to);
    } else {
        quantize_to_floats(net, id, made, from, net->scratch[0]);
        quantize_from_floats(net, id, format, net->scratch[0], to);
    }
    net->views[id * TL_FORMAT_COUNT + (int32_t)format] = to;
    return to;
}

// -- schemes: one node in one of them --

// Which a node can run in, as bits. Tokens are no numbers: what reads them stays in f32.
static inline uint32_t quantize_list_schemes(const quantize_node *n) {
    uint32_t tensors = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_F16 | 1u << TL_SCHEME_BF16 |
                       1u << TL_SCHEME_I16 | 1u << TL_SCHEME_I8;
    uint32_t products = 1u << TL_SCHEME_I8_CHANNEL | 1u << TL_SCHEME_W8A16 |
                        1u << TL_SCHEME_DYNAMIC;
    if (n->op == QUANTIZE_INPUT || n->op == QUANTIZE_EMBED) return 1u << TL_SCHEME_F32;
    return quantize_count_products(n) ? tensors | products : tensors;
}

static inline void quantize_run_dynamic(quantize_net *net, const quantize_node *n,
                                        const quantize_weights *w, const float *in, float *out) {
    int8_t *bytes = (int8_t *)net->work_scratch;
    if (n->op == QUANTIZE_LINEAR) {
        nn_dynamic_linear_forward(out, in, bytes, w->dynamic_scales, &w->linear, n->R);
    } else {
        nn_dynamic_conv2d_forward(out, in, bytes, (int8_t *)net->scratch[2], w->dynamic_scales,
                                  &w->linear, net->B, n->H, n->W, n->C, n->size);
    }
}

static inline void quantize_run_product(quantize_net *net, const quantize_node *n,
                                        const quantize_weights *w, tl_scheme scheme, const void *in,
                                        void *out) {
    int is_linear = n->op == QUANTIZE_LINEAR, wide = scheme == TL_SCHEME_I16;
    void *work = net->work_scratch;
    if (scheme == TL_SCHEME_DYNAMIC) {
        quantize_run_dynamic(net, n, w, (const float *)in, (float *)out);
    } else if (quantize_is_narrow(scheme)) {
        const int8_t *from = (const int8_t *)in;
        if (is_linear) nn_int8_linear_forward((int8_t *)out, from, &w->linear, n->R);
        else nn_int8_conv2d_forward((int8_t *)out, from, (int8_t *)work, &w->linear, net->B, n->H,
                                    n->W, n->C, n->size);
    } else {
        const int16_t *from = (const int16_t *)in;
        if (is_linear) nn_int16_linear_any((int16_t *)out, from, &w->linear, n->R, wide);
        else nn_int16_conv2d_forward((int16_t *)out, from, (int16_t *)work, &w->linear, net->B,
                                     n->H, n->W, n->C, n->size, wide);
    }
}

// 1 = there is an integer kernel, and it ran.
static inline int quantize_run_integers(quantize_net *net, int32_t id, tl_scheme scheme,
                                        const quantize_weights *w, const void *const *in,
                                        void *out) {
    const quantize_node *n = &net->nodes[id];
    const int8_t *a = (const int8_t *)in[0], *b = (const int8_t *)in[1];
    int8_t *bytes = (int8_t *)out;
    tl_format format = tl_find_scheme_format(scheme);
    if (scheme == TL_SCHEME_F32 || quantize_is_half(format)) return 0;
    if (quantize_count_products(n)) {
        quantize_run_product(net, n, w, scheme, in[0], out);
        return 1;
    }
    if (format != TL_FORMAT_I8) return 0;
    if (n->op == QUANTIZE_GELU || n->op == QUANTIZE_RELU)
        nn_int8_lookup_forward(bytes, a, w->table, n->elements);
    else if (n->op == QUANTIZE_ADD)
        nn_int8_add_forward(bytes, a, b, n->elements, &w->add);
    else if (n->op == QUANTIZE_MAX_POOL)
        nn_int8_max_pool_forward(bytes, a, net->B, n->H, n->W, n->C, n->size);
    else if (n->op == QUANTIZE_MEAN_POOL)
        nn_int8_mean_pool_forward(bytes, a, net->B, n->H, n->W, n->C, n->size,
                                  net->narrow[id].zero_point);
    else
        return 0;
    return 1;
}

// The f32 kernel between two conversions: narrow storage alone.
static inline void quantize_run_floats(quantize_net *net, int32_t id, tl_format format,
                                       const quantize_weights *w, const void *const *in,
                                       void *out) {
    const quantize_node *n = &net->nodes[id];
    const float *weight = net->params + n->weight, *bias = net->params + n->bias;
    int32_t i;
    if (format == TL_FORMAT_F32) {
        quantize_compute(net, id, (float *)out, in[0], (const float *)in[1], weight, bias);
        return;
    }
    if (w->half && n->weight_count) {
        weight = net->weight_scratch;
        bias = weight + n->weight_count;
        tl_expand_bytes(quantize_codec_of(format), net->weight_scratch, w->half,
                        4 * (uint64_t)(n->weight_count + n->bias_count));
    }
    for (i = 0; i < n->from_count; i++)
        quantize_to_floats(net, n->from[i], format, in[i], net->scratch[i]);
    quantize_compute(net, id, net->scratch[2], net->scratch[0], net->scratch[1], weight, bias);
    quantize_from_floats(net, id, format, net->scratch[2], out);
}

// Run a node in a scheme on inputs that are there in its format.
static inline tl_result quantize_run_node(quantize_net *net, int32_t id, tl_scheme scheme) {
    const quantize_node *n = &net->nodes[id];
    tl_format format = tl_find_scheme_format(scheme);
    void *out = quantize_get_buffer(net, id, format);
    const void *in[2] = { NULL, NULL };
    quantize_weights *w;
    int32_t i;
    tl_result result = quantize_prepare(net, id, scheme, &w);
    if (result) return result;
    for (i = 0; i < n->from_count; i++) {
        in[i] = quantize_get_view(net, n->from[i], format);
        if (!in[i]) return TL_ERROR_MISMATCH;
    }
    if (!in[0] || (n->op == QUANTIZE_ADD && !in[1])) return TL_ERROR_MISMATCH;
    if (!quantize_run_integers(net, id, scheme, w, in, out))
        quantize_run_floats(net, id, format, w, in, out);
    quantize_set_view(net, id, format, out);
    return TL_OK;
}

// -- passes --

// Begin a pass at a node: the tensors before it are those of f32.
static inline void quantize_begin_pass(quantize_net *net, const quantize_batch *batch,
                                       int32_t start) {
    int32_t id;
    memset((void *)net->views, 0,
           (size_t)net->graph.node_count * TL_FORMAT_COUNT * sizeof *net->views);
    quantize_set_view(net, 0, TL_FORMAT_F32, batch->input);
    for (id = 1; id < start; id++) quantize_set_view(net, id, TL_FORMAT_F32, batch->tensors[id]);
}

// Run from a node on, with a scheme for each: conversions are made where they are wanted.
static inline tl_result quantize_run_from(quantize_net *net, const quantize_batch *batch,
                                          const uint8_t *schemes, int32_t start,
                                          const float **logits) {
    tl_result result = TL_OK;
    int32_t id, i;
    quantize_begin_pass(net, batch, start);
    for (id = start > 0 ? start : 1; id <= net->logits && !result; id++) {
        const quantize_node *n = &net->nodes[id];
        tl_format format = tl_find_scheme_format((tl_scheme)schemes[id]);
        for (i = 0; i < n->from_count; i++) (void)quantize_convert(net, n->from[i], format);
        result = quantize_run_node(net, id, (tl_scheme)schemes[id]);
    }
    *logits = result ? NULL : (const float *)quantize_convert(net, net->logits, TL_FORMAT_F32);
    return result;
}

// Run the graph of tl_apply_precision: the conversions are nodes of it, and there are no others.
static inline tl_result quantize_run_applied(quantize_net *net, const quantize_batch *batch,
                                             const tl_precision_graph *applied,
                                             const float **logits) {
    tl_result result = TL_OK;
    int32_t i;
    quantize_begin_pass(net, batch, 1);
    for (i = 0; i < applied->graph.node_count && !result; i++) {
        const tl_node *node = &applied->graph.nodes[i];
        if (node->is_input) continue;
        if (strcmp(applied->graph.text + node->op, "convert") == 0)
            (void)quantize_convert(net, applied->nodes[i],
                                   (tl_format)applied->formats[node->first_output]);
        else
            result = quantize_run_node(net, applied->nodes[i], (tl_scheme)applied->schemes[i]);
    }
    *logits = (const float *)quantize_get_view(net, net->logits, TL_FORMAT_F32);
    return result || *logits ? result : TL_ERROR_MISMATCH;
}

// Load a batch and keep all its tensors of f32.
static inline tl_result quantize_init_batch(quantize_net *net, uint64_t first,
                                            quantize_batch *batch) {
    size_t count = (size_t)net->graph.node_count;
    uint8_t *schemes = (uint8_t *)quantize_take(net, count, 1);  // all f32
    const float *logits;
    int32_t id;
    tl_result result;
    batch->input = quantize_take_floats(net, net->nodes[0].elements);
    batch->targets = (int32_t *)quantize_take(net, net->rows, sizeof(int32_t));
    batch->tensors = (float **)quantize_take(net, count, sizeof(float *));
    net->load(net, first, batch->input, batch->targets);
    batch->tensors[0] = (float *)batch->input;
    result = quantize_run_from(net, batch, schemes, 0, &logits);
    for (id = 1; id <= net->logits && !result; id++) {
        size_t elements = net->nodes[id].elements;
        batch->tensors[id] = quantize_take_floats(net, elements);
        memcpy(batch->tensors[id], quantize_get_view(net, id, TL_FORMAT_F32),
               elements * sizeof(float));
    }
    return result;
}

// -- losses --

// What a run of the network is worth, against its f32.
typedef struct quantize_loss {
    double divergence;            // Kullback-Leibler, of its answers from those of f32: nats a row
    double increase;              // of the cross entropy; chance makes it less than 0, too
    double increase_square;       // mean of squares over rows: how much of it is chance
    double correct;               // share of rows where the target got the most
} quantize_loss;

// ln of the sum of e^x.
static inline double quantize_log_sum(const float *x, size_t n) {
    double max = (double)nn_max(x, n), sum = 0.0;
    size_t i;
    for (i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return max + log(sum);
}

// Add the losses of one batch: `share` of all.
static inline void quantize_add_loss(const quantize_net *net, const quantize_batch *batch,
                                     const float *logits, double share, quantize_loss *loss) {
    size_t r, i, V = net->classes;
    share /= (double)net->rows;
    for (r = 0; r < net->rows; r++) {
        const float *x = batch->tensors[net->logits] + r * V, *y = logits + r * V;
        double x_sum = quantize_log_sum(x, V), y_sum = quantize_log_sum(y, V), divergence = 0.0;
        size_t target = (size_t)batch->targets[r], best = 0;
        double increase = (double)x[target] - x_sum - ((double)y[target] - y_sum);
        for (i = 0; i < V; i++) {
            double p = exp((double)x[i] - x_sum);
            divergence += p * ((double)x[i] - x_sum - ((double)y[i] - y_sum));
            best = y[i] > y[best] ? i : best;
        }
        loss->divergence += share * divergence;
        loss->increase += share * increase;
        loss->increase_square += share * increase * increase;
        loss->correct += best == target ? share : 0.0;
    }
}

#endif
