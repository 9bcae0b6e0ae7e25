#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// Layers: from the shape of its inputs and a tl_layer_desc, each call computes the bytes, costs,
// weights and needs of a node. The formulas stand in the public comments. Rules and overflow are
// collected in a tli_layer, so that formulas need no error checks: tli_finish_layer refuses a layer
// with a broken rule.

// -- steps common to all layers --

#define TLI_NEEDS(id, name, needs) needs,
static const char *const tli_elementwise_names[] = { TL_ELEMENTWISES(TLI_NAME) };
static const char *const tli_elementwise_needs[] = { TL_ELEMENTWISES(TLI_NEEDS) };
static const char *const tli_pool_names[] = { TL_POOLS(TLI_NAME) };
static const char *const tli_attention_names[] = { TL_ATTENTIONS(TLI_NAME) };
static const char *const tli_cell_names[] = { TL_CELLS(TLI_NAME) };
#undef TLI_NEEDS

// Fields of a desc that only some layers read, as bits in the order of the rules in
// tli_check_fields.
#define TLI_FIELD_ACTIVATION 1u
#define TLI_FIELD_INPLACE    2u
#define TLI_FIELD_BIAS       4u
#define TLI_FIELD_FLATTEN    8u
#define TLI_FIELD_CHANNELS   16u
#define TLI_FIELD_KERNEL     32u
#define TLI_FIELD_STRIDE     64u
#define TLI_FIELD_PADDING    128u
#define TLI_FIELD_DILATION   256u
#define TLI_FIELD_GROUPS     512u
#define TLI_FIELD_POSITIONS  1024u
#define TLI_FIELD_HEADS      2048u
#define TLI_FIELD_VOCABULARY 4096u
#define TLI_FIELD_EXTRA      8192u
#define TLI_FIELD_TAKES_BLOCKS 16384u
#define TLI_CONVOLUTION (TLI_FIELD_ACTIVATION | TLI_FIELD_BIAS | TLI_FIELD_CHANNELS | TLI_FIELD_KERNEL | \
                         TLI_FIELD_STRIDE | TLI_FIELD_PADDING | TLI_FIELD_DILATION | TLI_FIELD_GROUPS)

// A layer that is being made. The first broken rule is kept, be it an overflow or another.
typedef struct tli_layer {
    tli_graph_rules rules;
    tl_graph     *graph;
    tl_layer_desc desc;           // zero where the caller gave none
    tl_node_desc  node;           // the layer fills in costs, needs and bytes
    tl_value      out;            // precision and shape of the result
    tli_rule   rule;
    tl_result     code;
    int32_t       reads_in, reads_out;  // what backward reads
} tli_layer;

static void tli_break(tli_layer *layer, tl_result code, tli_rule rule) {
    if (layer->rule) return;
    layer->rule = rule;
    layer->code = code;
}

static void tli_break_rule(tli_layer *layer, tli_rule rule) { tli_break(layer, TL_ERROR_INVALID_ARG, rule); }

static uint64_t tli_layer_mul(tli_layer *layer, uint64_t a, uint64_t b) {
    uint64_t product;
    if (tli_mul_u64(a, b, &product)) return product;
    tli_break(layer, TL_ERROR_OVERFLOW, TLI_RULE(SHAPE_BYTES_AND_COSTS_MUST_FIT_64_BITS));
    return 0;
}

static uint64_t tli_layer_add(tli_layer *layer, uint64_t a, uint64_t b) {
    uint64_t sum;
    if (tli_add_u64(a, b, &sum)) return sum;
    tli_break(layer, TL_ERROR_OVERFLOW, TLI_RULE(SHAPE_BYTES_AND_COSTS_MUST_FIT_64_BITS));
    return 0;
}

static uint64_t tli_or_default(uint64_t value, uint64_t fallback) { return value ? value : fallback; }

static uint64_t tli_element_size(tl_precision precision) {
    switch (precision) {
    case TL_PRECISION_FULL:   case TL_PRECISION_DOUBLE: return 8;
    case TL_PRECISION_SINGLE: case TL_PRECISION_MIXED: return 4;
    case TL_PRECISION_HALF:   case TL_PRECISION_BF16:  return 2;
    case TL_PRECISION_COUNT:  break;
    }
    return 0;
}

static uint64_t tli_find_positions(tli_layer *layer, tl_shape shape) {
    return tli_layer_mul(layer, shape.batch, tli_layer_mul(layer, shape.height, shape.width));
}

static uint64_t tli_find_elements(tli_layer *layer, tl_shape shape) {
    return tli_layer_mul(layer, tli_find_positions(layer, shape), shape.channels);
}

// Refuse nonzero fields that this layer does not use.
static tli_rule tli_check_fields(const tl_layer_desc *desc, uint32_t known) {
    static const tli_rule rules[] = {
        TLI_RULE(ACTIVATION_MUST_BE_NONE_HERE), TLI_RULE(INPLACE_MUST_BE_0_HERE),
            TLI_RULE(NO_BIAS_MUST_BE_0_HERE),
        TLI_RULE(FLATTEN_MUST_BE_0_HERE), TLI_RULE(CHANNELS_MUST_BE_0_HERE), TLI_RULE(KERNEL_MUST_BE_0_HERE),
        TLI_RULE(STRIDE_MUST_BE_0_HERE), TLI_RULE(PADDING_MUST_BE_0_HERE), TLI_RULE(DILATION_MUST_BE_0_HERE),
        TLI_RULE(GROUPS_MUST_BE_0_HERE), TLI_RULE(HEIGHT_WIDTH_MUST_BE_0_HERE), TLI_RULE(HEADS_MUST_BE_0_HERE),
        TLI_RULE(VOCABULARY_MUST_BE_0_HERE), TLI_RULE(SAVED_BYTES_FWORK_BYTES_BWORK_BYTES),
        TLI_RULE(TAKES_BLOCKS_MUST_BE_0_HERE)
    };
    uint64_t values[15];
    int32_t i;
    values[0] = desc->activation != TL_ELEMENTWISE_NONE;
    values[1] = desc->inplace != 0;
    values[2] = desc->no_bias != 0;
    values[3] = desc->flatten != 0;
    values[4] = desc->channels;
    values[5] = desc->kernel | desc->kernel_width;
    values[6] = desc->stride | desc->stride_width;
    values[7] = desc->padding | desc->padding_width;
    values[8] = desc->dilation;
    values[9] = desc->groups;
    values[10] = desc->height | desc->width;
    values[11] = desc->heads;
    values[12] = desc->vocabulary;
    values[13] = desc->saved_bytes | desc->fwork_bytes | desc->bwork_bytes;
    values[14] = desc->takes_blocks != 0;
    for (i = 0; i < 15; i++)
        if (values[i] && !(known >> i & 1)) return rules[i];
    return TLI_NO_RULE;
}

// Check that a value is a tensor of this graph whose bytes are those of its shape.
static void tli_check_value(tli_layer *layer, const tl_value *value) {
    int32_t tensor = tli_index_tensor(layer->graph, layer->graph->node_count, value->tensor);
    uint64_t bytes;
    if (!tli_is_below((int64_t)value->precision, TL_PRECISION_COUNT)) {
        tli_break_rule(layer, TLI_RULE(INPUT_UNKNOWN_PRECISION));
        return;
    }
    bytes = tli_layer_mul(layer, tli_find_elements(layer, value->shape), tli_element_size(value->precision));
    if (!value->shape.batch || !value->shape.channels || !value->shape.height || !value->shape.width)
        tli_break_rule(layer, TLI_RULE(INPUT_NO_CALL_MADE_THIS_VALUE));
    else if (tensor < 0) tli_break_rule(layer, TLI_RULE(INPUT_THERE_IS_NO_SUCH_TENSOR));
    else if (layer->graph->outputs[tensor].bytes != bytes)
        tli_break_rule(layer, TLI_RULE(INPUT_ITS_SHAPE_DOES_NOT_HAVE_BYTES));
}

// Begin a layer. The result starts with the precision and shape of the first input; the layer
// changes them.
static tli_layer tli_start_layer(tl_env *env, tli_function function, tl_graph *graph,
                                 const tl_layer_desc *desc, uint32_t known, const tl_value *inputs,
                                 int32_t input_count) {
    tli_layer layer;
    int32_t i;
    tli_zero(&layer, sizeof layer);
    layer.rules = tli_rules_of(env, function);
    layer.graph = graph;
    if (desc) layer.desc = *desc;
    layer.node.name = layer.desc.name;
    for (i = 0; i < input_count; i++) tli_check_value(&layer, &inputs[i]);
    if (input_count > 0) layer.out = inputs[0];
    layer.rule = layer.rule ? layer.rule : tli_check_fields(&layer.desc, known | TLI_FIELD_EXTRA);
    if (layer.rule && !layer.code) layer.code = TL_ERROR_INVALID_ARG;
    if (!tli_is_below(layer.desc.precision, TL_PRECISION_COUNT + 1))
        tli_break_rule(&layer, TLI_RULE(PRECISION_UNKNOWN));
    else if (layer.desc.precision) layer.out.precision = (tl_precision)(layer.desc.precision - 1);
    if ((layer.desc.inplace | layer.desc.no_bias | layer.desc.flatten) & ~1)
        tli_break_rule(&layer, TLI_RULE(INPLACE_NO_BIAS_FLATTEN_MUST_BE_0_OR_1));
    return layer;
}

// Add the activation to op and costs. It overwrites the result, so its backward may read its output
// only.
static void tli_add_activation(tli_layer *layer, tl_node_desc *node, uint64_t elements, char *op, size_t size) {
    tl_elementwise activation = layer->desc.activation;
    tli_writer w = tli_writer_of(op, size);
    if (!tli_is_below((int64_t)activation, TL_ELEMENTWISE_COUNT) || activation == TL_ELEMENTWISE_NONE ||
        !tli_same_text(tli_elementwise_needs[activation], "out")) {
        tli_break_rule(layer, TLI_RULE(ACTIVATION_ITS_BACKWARD_MUST_READ));
        return;
    }
    tli_put(&w, node->op); tli_put(&w, "+"); tli_put(&w, tli_elementwise_names[activation]);
    tli_finish(&w);
    node->op = op;
    layer->reads_out = 1;
    node->fwd_cost = tli_layer_add(layer, node->fwd_cost, elements);
    node->bwd_cost = tli_layer_add(layer, node->bwd_cost, elements);
}

static tl_result tli_refuse_layer(const tli_layer *layer, const char *name) {
    return tli_fail_item(&layer->rules, layer->code, "node", layer->graph->node_count, name, layer->rule);
}

// Add the node of a layer. It has one output of shape layer->out, unless the layer set output_bytes
// and output_count.
static tl_result tli_finish_layer(tli_layer *layer, const tl_tensor *inputs, int32_t input_count,
                                  tl_value *output) {
    static const char *const needs[] = { "none", "in", "out", "in,out" };
    uint64_t elements = tli_find_elements(layer, layer->out.shape);
    uint64_t bytes = tli_layer_mul(layer, elements, tli_element_size(layer->out.precision));
    tl_node_desc node = layer->node;
    char op[48];
    tl_result result;
    tli_zero(output, sizeof *output);
    if (layer->desc.activation && !layer->rule) tli_add_activation(layer, &node, elements, op, sizeof op);
    node.saved_bytes = tli_layer_add(layer, node.saved_bytes, layer->desc.saved_bytes);
    node.fwork_bytes = tli_layer_add(layer, node.fwork_bytes, layer->desc.fwork_bytes);
    node.bwork_bytes = tli_layer_add(layer, node.bwork_bytes, layer->desc.bwork_bytes);
    node.unit = layer->desc.unit; node.layer = layer->desc.layer;
    node.no_grad = layer->desc.no_grad; node.keep = layer->desc.keep; node.once = layer->desc.once;
    node.inplace = layer->desc.inplace;
    node.inputs = inputs; node.input_count = input_count;
    if (!node.output_count) { node.output_bytes = &bytes; node.output_count = 1; }
    if (!node.needs) node.needs = needs[layer->reads_in + 2 * layer->reads_out];
    if (node.no_grad) {
        node.needs = "none";
        node.bwd_cost = node.saved_bytes = node.bwork_bytes = 0;
    }
    if (layer->rule) return tli_refuse_layer(layer, node.name ? node.name : node.op);
    result = tli_add_node(&layer->rules, layer->graph, &node);
    if (result) return result;
    *output = layer->out;
    output->tensor.node = layer->graph->node_count - 1;
    output->tensor.output = 0;
    return TL_OK;
}

// Set the costs of a layer with weights and the bytes of these, and that backward reads the input.
static void tli_set_weights(tli_layer *layer, uint64_t fwd_cost, uint64_t weights) {
    layer->node.fwd_cost = fwd_cost;
    layer->node.bwd_cost = tli_layer_mul(layer, 2, fwd_cost);
    layer->node.param_bytes = tli_layer_mul(layer, weights, tli_element_size(layer->out.precision));
    layer->reads_in = 1;
}

static void tli_set_cost(tli_layer *layer, uint64_t cost) {
    layer->node.fwd_cost = layer->node.bwd_cost = cost;
}

TLI_IMPL tl_result tl_add_input(tl_env *env, tl_graph *graph, const char *name, tl_shape shape,
                                tl_precision precision, tl_value *output) {
    tli_layer layer;
    tl_result result;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_INPUT), graph, NULL, 0, NULL, 0);
    layer.node.name = name;
    layer.node.op = "input";
    layer.out.precision = precision;
    layer.out.shape.batch = tli_or_default(shape.batch, 1);
    layer.out.shape.channels = tli_or_default(shape.channels, 1);
    layer.out.shape.height = tli_or_default(shape.height, 1);
    layer.out.shape.width = tli_or_default(shape.width, 1);
    if (!tli_is_below((int64_t)precision, TL_PRECISION_COUNT))
        tli_break_rule(&layer, TLI_RULE(PRECISION_UNKNOWN));
    result = tli_finish_layer(&layer, NULL, 0, output);
    if (!result && !graph->batch) graph->batch = output->shape.batch;
    return result;
}

// -- matrices and windows --

TLI_IMPL tl_result tl_add_dense(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                tl_value *output) {
    tli_layer layer;
    uint64_t inner, channels, bias;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_DENSE), graph, desc,
                            TLI_FIELD_CHANNELS | TLI_FIELD_BIAS | TLI_FIELD_FLATTEN | TLI_FIELD_ACTIVATION,
                            &input, 1);
    inner = input.shape.channels;
    if (layer.desc.flatten) {
        inner = tli_layer_mul(&layer, inner, tli_layer_mul(&layer, input.shape.height, input.shape.width));
        layer.out.shape.height = layer.out.shape.width = 1;
    }
    channels = layer.out.shape.channels = tli_or_default(layer.desc.channels, inner);
    bias = !layer.desc.no_bias;
    layer.node.op = "linear";
    tli_set_weights(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, layer.out.shape),
                                          tli_layer_add(&layer, tli_layer_mul(&layer, 2, inner), bias)),
                    tli_layer_mul(&layer, channels, tli_layer_add(&layer, inner, bias)));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

// The window of a convolution or pool in one direction, with defaults filled in. The span is the
// distance from its first tap to its last, plus 1.
typedef struct tli_window { uint64_t kernel, stride, padding, span; } tli_window;

// The window that a desc describes; a width of 0 means that of the height.
static tli_window tli_find_window(tli_layer *layer, int is_width, int is_pool) {
    const tl_layer_desc *desc = &layer->desc;
    uint64_t kernel = is_width && desc->kernel_width ? desc->kernel_width : desc->kernel;
    uint64_t stride = is_width && desc->stride_width ? desc->stride_width : desc->stride;
    uint64_t padding = is_width && desc->padding_width ? desc->padding_width : desc->padding;
    tli_window window;
    window.kernel = tli_or_default(kernel, 1);
    window.stride = tli_or_default(stride, is_pool ? window.kernel : 1);
    window.padding = padding ? padding : (window.kernel - 1) / 2;
    if (padding == TL_NO_PADDING) window.padding = 0;
    window.span = tli_layer_mul(layer, window.kernel - 1, tli_or_default(desc->dilation, 1));
    window.span = tli_layer_add(layer, window.span, 1);
    return window;
}

// The number of positions of a window on `extent` positions, which is the extent of the result.
static uint64_t tli_shrink(tli_layer *layer, uint64_t extent, const tli_window *window) {
    uint64_t padded = tli_layer_add(layer, extent, tli_layer_mul(layer, 2, window->padding));
    if (padded < window->span) {
        tli_break_rule(layer, TLI_RULE(KERNEL_LARGER_THAN_PADDED_INPUT));
        return 1;
    }
    return (padded - window->span) / window->stride + 1;
}

// The extent of the result of a transposed convolution.
static uint64_t tli_enlarge(tli_layer *layer, uint64_t extent, const tli_window *window) {
    uint64_t cut = tli_layer_mul(layer, 2, window->padding);
    uint64_t grown = tli_layer_add(layer, tli_layer_mul(layer, extent - 1, window->stride), window->span);
    if (grown <= cut) {
        tli_break_rule(layer, TLI_RULE(PADDING_NOTHING_IS_LEFT_OF_RESULT));
        return 1;
    }
    return grown - cut;
}

// Add a convolution of any kind. The products cost 2 per weight and position of the result, in a
// transposed convolution per weight and position of the input.
static tl_result tli_add_convolution(tli_layer *layer, const tl_value *input, int transposed,
                                     tl_value *output) {
    tli_window height = tli_find_window(layer, 0, 0), width = tli_find_window(layer, 1, 0);
    uint64_t groups = tli_or_default(layer->desc.groups, 1), inner = input->shape.channels;
    uint64_t channels = tli_or_default(layer->desc.channels, inner), bias = !layer->desc.no_bias;
    uint64_t taps = tli_layer_mul(layer, height.kernel, width.kernel), weights, cost;
    tl_shape *shape = &layer->out.shape;
    if (inner % groups || channels % groups)
        tli_break_rule(layer, TLI_RULE(GROUPS_MUST_DIVIDE_CHANNELS_OF_INPUT));
    shape->channels = channels;
    if (!layer->rule && transposed) {
        shape->height = tli_enlarge(layer, shape->height, &height);
        shape->width = tli_enlarge(layer, shape->width, &width);
    } else if (!layer->rule) {
        shape->height = tli_shrink(layer, shape->height, &height);
        shape->width = tli_shrink(layer, shape->width, &width);
    }
    weights = tli_layer_mul(layer, channels, tli_layer_mul(layer, inner / groups, taps));
    cost = tli_layer_mul(layer, tli_find_positions(layer, transposed ? input->shape : *shape),
                         tli_layer_mul(layer, 2, weights));
    if (bias) cost = tli_layer_add(layer, cost, tli_find_elements(layer, *shape));
    layer->node.op = transposed ? "convt2d" : "conv2d";
    tli_set_weights(layer, cost, tli_layer_add(layer, weights, bias ? channels : 0));
    return tli_finish_layer(layer, &input->tensor, 1, output);
}

TLI_IMPL tl_result tl_add_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                 tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_CONV2D), graph, desc, TLI_CONVOLUTION, &input, 1);
    return tli_add_convolution(&layer, &input, 0, output);
}

TLI_IMPL tl_result tl_add_depthwise_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                           tl_value input, tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_DEPTHWISE_CONV2D), graph, desc, TLI_CONVOLUTION & ~TLI_FIELD_GROUPS,
                            &input, 1);
    layer.desc.groups = input.shape.channels;
    return tli_add_convolution(&layer, &input, 0, output);
}

TLI_IMPL tl_result tl_add_transposed_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                            tl_value input, tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_TRANSPOSED_CONV2D), graph, desc, TLI_CONVOLUTION, &input, 1);
    return tli_add_convolution(&layer, &input, 1, output);
}

TLI_IMPL tl_result tl_add_pool(tl_env *env, tl_graph *graph, tl_pool kind, const tl_layer_desc *desc,
                               tl_value input, tl_value *output) {
    const uint32_t windows = TLI_FIELD_KERNEL | TLI_FIELD_STRIDE | TLI_FIELD_PADDING;
    tli_layer layer;
    uint64_t taps = 1;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_POOL), graph, desc,
                            kind == TL_POOL_GLOBAL ? TLI_FIELD_POSITIONS : windows, &input, 1);
    layer.node.op = tl_name_pool(kind);
    if (!tli_is_below((int64_t)kind, TL_POOL_COUNT)) tli_break_rule(&layer, TLI_RULE(KIND_UNKNOWN));
    if (!layer.rule && kind == TL_POOL_GLOBAL) {
        layer.out.shape.height = tli_or_default(layer.desc.height, 1);
        layer.out.shape.width = tli_or_default(layer.desc.width, tli_or_default(layer.desc.height, 1));
        if (layer.out.shape.height > input.shape.height || layer.out.shape.width > input.shape.width)
            tli_break_rule(&layer, TLI_RULE(HEIGHT_WIDTH_MORE_POSITIONS_THAN_INPUT));
        taps = tli_layer_mul(&layer, tli_divide_up(input.shape.height, layer.out.shape.height),
                             tli_divide_up(input.shape.width, layer.out.shape.width));
    } else if (!layer.rule) {
        tli_window height = tli_find_window(&layer, 0, 1), width = tli_find_window(&layer, 1, 1);
        layer.out.shape.height = tli_shrink(&layer, input.shape.height, &height);
        layer.out.shape.width = tli_shrink(&layer, input.shape.width, &width);
        taps = tli_layer_mul(&layer, height.kernel, width.kernel);
    }
    tli_set_cost(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, layer.out.shape), taps));
    layer.reads_in = kind == TL_POOL_MAX;
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

TLI_IMPL tl_result tl_add_upsample(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                   tl_value *output) {
    tli_layer layer;
    tli_window height, width;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_UPSAMPLE), graph, desc, TLI_FIELD_KERNEL | TLI_FIELD_STRIDE,
                            &input, 1);
    height = tli_find_window(&layer, 0, 0);
    width = tli_find_window(&layer, 1, 0);
    layer.node.op = "upsample";
    layer.out.shape.height = tli_layer_mul(&layer, input.shape.height, height.stride);
    layer.out.shape.width = tli_layer_mul(&layer, input.shape.width, width.stride);
    tli_set_cost(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, layer.out.shape),
                                       tli_layer_mul(&layer, height.kernel, width.kernel)));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

// -- normalisation, elementwise nodes, embedding and loss --

static tl_result tli_add_norm(tl_env *env, tli_function function, tl_graph *graph, const char *op,
                              const tl_layer_desc *desc, const tl_value *input, tl_value *output) {
    tli_layer layer = tli_start_layer(env, function, graph, desc,
                                      TLI_FIELD_BIAS | TLI_FIELD_ACTIVATION | TLI_FIELD_INPLACE, input, 1);
    layer.node.op = op;
    tli_set_weights(&layer, tli_find_elements(&layer, layer.out.shape),
                    tli_layer_mul(&layer, input->shape.channels, layer.desc.no_bias ? 1 : 2));
    return tli_finish_layer(&layer, &input->tensor, 1, output);
}

TLI_IMPL tl_result tl_add_batch_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                     tl_value *output) {
    TL_ASSERT(graph && output);
    return tli_add_norm(env, TLI_IN(ADD_BATCH_NORM), graph, "bn", desc, &input, output);
}

TLI_IMPL tl_result tl_add_layer_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                     tl_value *output) {
    TL_ASSERT(graph && output);
    return tli_add_norm(env, TLI_IN(ADD_LAYER_NORM), graph, "layernorm", desc, &input, output);
}

TLI_IMPL tl_result tl_add_softmax(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_SOFTMAX), graph, desc, TLI_FIELD_INPLACE, &input, 1);
    layer.node.op = "softmax";
    layer.reads_out = 1;
    tli_set_cost(&layer, tli_find_elements(&layer, layer.out.shape));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

// The number of inputs of an elementwise node: 1, 2, or -2 for 2 or more.
static int32_t tli_find_arity(tl_elementwise kind) {
    if (kind == TL_ELEMENTWISE_ADD || kind == TL_ELEMENTWISE_MUL) return -2;
    return kind == TL_ELEMENTWISE_SUB ? 2 : 1;
}

static int tli_fits_extent(uint64_t extent, uint64_t whole) { return extent == whole || extent == 1; }

// An array of the tensors of some values, which the caller releases; NULL and a broken rule if
// there is no memory.
static tl_tensor *tli_take_tensors(tli_layer *layer, const tl_value *values, int32_t count) {
    tl_tensor *tensors = (tl_tensor *)tli_alloc_array(layer->rules.env, (uint64_t)count, sizeof *tensors);
    int32_t i;
    if (!tensors) tli_break(layer, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_FOR_ITS_INPUTS));
    for (i = 0; i < count && tensors; i++) tensors[i] = values[i].tensor;
    return tensors;
}

static tl_result tli_finish_inputs(tli_layer *layer, const tl_value *inputs, int32_t count, tl_value *output) {
    tl_tensor *tensors = tli_take_tensors(layer, inputs, count);
    tl_result result = tli_finish_layer(layer, tensors, tensors ? count : 0, output);
    tli_release(layer->rules.env, tensors);
    return result;
}

// Whether an elementwise layer may take blocks: all inputs have as many elements as the result, in its
// precision, and the desc asks for no saved bytes.
static int tli_are_alike(tli_layer *layer, const tl_value *inputs, int32_t count) {
    int32_t i;
    if (layer->desc.saved_bytes) return 0;
    for (i = 0; i < count; i++)
        if (inputs[i].precision != layer->out.precision ||
            tli_find_elements(layer, inputs[i].shape) != tli_find_elements(layer, layer->out.shape)) return 0;
    return 1;
}

TLI_IMPL tl_result tl_add_elementwise(tl_env *env, tl_graph *graph, tl_elementwise kind,
                                      const tl_layer_desc *desc, const tl_value *inputs, int32_t input_count,
                                      tl_value *output) {
    tli_layer layer;
    tl_shape whole;
    int32_t arity = tli_find_arity(kind), count = inputs && input_count > 0 ? input_count : 0, i;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_ELEMENTWISE), graph, desc,
                            TLI_FIELD_ACTIVATION | TLI_FIELD_INPLACE | TLI_FIELD_TAKES_BLOCKS,
                            inputs, count);
    layer.node.op = tl_name_elementwise(kind);
    if (!tli_is_below((int64_t)kind, TL_ELEMENTWISE_COUNT) || kind == TL_ELEMENTWISE_NONE)
        tli_break_rule(&layer, TLI_RULE(KIND_UNKNOWN_OR_NONE));
    else if (arity < 0 ? count < 2 : count != arity)
        tli_break_rule(&layer, TLI_RULE(INPUTS_ADD_AND_MUL_TAKE_2_OR_MORE_SUB));
    if (!layer.rule) {
        whole = layer.out.shape;
        layer.reads_in = tli_same_text(tli_elementwise_needs[kind], "in");
        layer.reads_out = tli_same_text(tli_elementwise_needs[kind], "out");
        for (i = 1; i < count; i++)
            if (!tli_fits_extent(inputs[i].shape.batch, whole.batch) ||
                !tli_fits_extent(inputs[i].shape.channels, whole.channels) ||
                !tli_fits_extent(inputs[i].shape.height, whole.height) ||
                !tli_fits_extent(inputs[i].shape.width, whole.width))
                tli_break_rule(&layer, TLI_RULE(INPUTS_EACH_EXTENT));
        tli_set_cost(&layer, tli_layer_mul(&layer, tli_find_elements(&layer, whole),
                                           count > 1 ? (uint64_t)count - 1 : 1));
        layer.node.takes_blocks = layer.desc.takes_blocks && tli_are_alike(&layer, inputs, count);
    }
    return tli_finish_inputs(&layer, inputs, count, output);
}

TLI_IMPL tl_result tl_add_embedding(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                    tl_value *output) {
    tli_layer layer;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_EMBEDDING), graph, desc, TLI_FIELD_CHANNELS | TLI_FIELD_VOCABULARY,
                            &input, 1);
    layer.node.op = "embedding";
    if (input.shape.channels != 1) tli_break_rule(&layer, TLI_RULE(INPUT_MUST_HAVE_1_CHANNEL_ID));
    if (!layer.desc.channels || !layer.desc.vocabulary)
        tli_break_rule(&layer, TLI_RULE(CHANNELS_VOCABULARY_MUST_BE_POSITIVE));
    layer.out.shape.channels = layer.desc.channels;
    tli_set_weights(&layer, tli_find_elements(&layer, layer.out.shape),
                    tli_layer_mul(&layer, layer.desc.vocabulary, layer.desc.channels));
    return tli_finish_layer(&layer, &input.tensor, 1, output);
}

TLI_IMPL tl_result tl_add_loss(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                               const tl_value *labels, tl_value *output) {
    tli_layer layer;
    tl_value inputs[2];
    int32_t count = labels ? 2 : 1;
    tl_tensor tensors[2];
    TL_ASSERT(graph && output);
    inputs[0] = input;
    inputs[1] = labels ? *labels : input;
    tensors[0] = inputs[0].tensor;
    tensors[1] = inputs[1].tensor;
    layer = tli_start_layer(env, TLI_IN(ADD_LOSS), graph, desc, 0, inputs, count);
    layer.node.op = "loss";
    layer.reads_in = 1;
    tli_set_cost(&layer, tli_find_elements(&layer, input.shape));
    layer.out.shape.channels = layer.out.shape.height = layer.out.shape.width = 1;
    return tli_finish_layer(&layer, tensors, count, output);
}

// -- concatenation and split --

TLI_IMPL tl_result tl_add_concat(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                 const tl_value *inputs, int32_t input_count, tl_value *output) {
    tli_layer layer;
    int32_t count = inputs && input_count > 0 ? input_count : 0, i;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_CONCAT), graph, desc, 0, inputs, count);
    layer.node.op = "concat";
    if (!count) tli_break_rule(&layer, TLI_RULE(INPUTS_THERE_MUST_BE_AT_LEAST_ONE));
    for (i = 1; i < count; i++) {
        const tl_shape *shape = &inputs[i].shape;
        if (shape->batch != inputs[0].shape.batch || shape->height != inputs[0].shape.height ||
            shape->width != inputs[0].shape.width || inputs[i].precision != inputs[0].precision)
            tli_break_rule(&layer, TLI_RULE(INPUTS_ALL_MUST_HAVE_SAME_BATCH_HEIGHT));
        layer.out.shape.channels = tli_layer_add(&layer, layer.out.shape.channels, shape->channels);
    }
    tli_set_cost(&layer, tli_find_elements(&layer, layer.out.shape));
    return tli_finish_inputs(&layer, inputs, count, output);
}

// Compute shape and bytes of the parts of a split; a broken rule if they do not add up to the
// input.
static void tli_find_parts(tli_layer *layer, const tl_value *input, const uint64_t *channels, int32_t count,
                           uint64_t *bytes, tl_value *outputs) {
    uint64_t sum = 0;
    int32_t k;
    if (!channels && input->shape.channels % (uint64_t)count)
        tli_break_rule(layer, TLI_RULE(OUTPUT_COUNT_MUST_DIVIDE_CHANNELS));
    for (k = 0; k < count && !layer->rule; k++) {
        outputs[k] = layer->out;
        outputs[k].tensor.output = k;
        outputs[k].shape.channels = channels ? channels[k] : input->shape.channels / (uint64_t)count;
        if (!outputs[k].shape.channels) tli_break_rule(layer, TLI_RULE(CHANNELS_EACH_MUST_BE_POSITIVE));
        sum = tli_layer_add(layer, sum, outputs[k].shape.channels);
        bytes[k] = tli_layer_mul(layer, tli_find_elements(layer, outputs[k].shape),
                                 tli_element_size(outputs[k].precision));
    }
    if (!layer->rule && sum != input->shape.channels)
        tli_break_rule(layer, TLI_RULE(CHANNELS_THEIR_SUM));
}

TLI_IMPL tl_result tl_add_split(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                const uint64_t *channels, int32_t output_count, tl_value *outputs) {
    tli_layer layer;
    tl_value whole;
    uint64_t *bytes = NULL;
    int32_t count = output_count > 0 ? output_count : 0, k;
    tl_result result;
    TL_ASSERT(graph && (outputs || !count));
    layer = tli_start_layer(env, TLI_IN(ADD_SPLIT), graph, desc, 0, &input, 1);
    layer.node.op = "split";
    if (count < 1) tli_break_rule(&layer, TLI_RULE(OUTPUT_COUNT_MUST_BE_POSITIVE));
    else bytes = (uint64_t *)tli_alloc_array(env, (uint64_t)count, sizeof *bytes);
    if (count && !bytes) tli_break(&layer, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_FOR_ITS_OUTPUTS));
    if (bytes) tli_find_parts(&layer, &input, channels, count, bytes, outputs);
    tli_set_cost(&layer, tli_find_elements(&layer, input.shape));
    layer.node.output_bytes = bytes;
    layer.node.output_count = count;
    result = tli_finish_layer(&layer, &input.tensor, 1, &whole);
    for (k = 0; k < count; k++) {
        if (result) tli_zero(&outputs[k], sizeof outputs[k]);
        else outputs[k].tensor.node = whole.tensor.node;
    }
    tli_release(env, bytes);
    return result;
}

// -- attention --

// Sizes and costs that the three kinds share.
typedef struct tli_scores {
    uint64_t rows;     // rows of scores: B heads T
    uint64_t weights;  // elements of scores: B heads T S
    uint64_t product;  // FLOP of Q K^T, and also of weights x V
    tl_shape value;    // shape of the result
} tli_scores;

static tli_scores tli_find_scores(tli_layer *layer, const tl_value *inputs, int32_t count) {
    uint64_t heads = tli_or_default(layer->desc.heads, 1), keys;
    const tl_value *last = &inputs[count - 1];
    tli_scores s;
    tli_zero(&s, sizeof s);
    s.value = inputs[0].shape;
    if (count == 1 && s.value.channels % 3)
        tli_break_rule(layer, TLI_RULE(INPUTS_QUERIES_KEYS_AND_VALUES_IN_ONE));
    if (count == 1) s.value.channels /= 3;
    if (s.value.channels % heads) tli_break_rule(layer, TLI_RULE(HEADS_MUST_DIVIDE_CHANNELS));
    if (count == 3 &&
        (inputs[1].shape.batch != s.value.batch || last->shape.batch != s.value.batch ||
         inputs[1].shape.channels != s.value.channels || last->shape.channels != s.value.channels ||
         inputs[1].shape.height != last->shape.height || inputs[1].shape.width != last->shape.width))
        tli_break_rule(layer, TLI_RULE(INPUTS_BATCH_AND_CHANNELS));
    keys = tli_layer_mul(layer, last->shape.height, last->shape.width);
    s.rows = tli_layer_mul(layer, tli_find_positions(layer, s.value), heads);
    s.weights = tli_layer_mul(layer, s.rows, keys);
    s.product = tli_layer_mul(layer, tli_layer_mul(layer, 2, tli_find_elements(layer, s.value)), keys);
    return s;
}

// Add attention as one node: stored saves the weights, tiled one number per row, to compute them
// again.
static tl_result tli_add_one_attention(tli_layer *layer, tl_attention kind, const tli_scores *s,
                                       const tl_tensor *inputs, int32_t count, tl_value *output) {
    uint64_t products = tli_layer_mul(layer, 2, s->product), size = tli_element_size(layer->out.precision);
    uint64_t number = size > 4 ? size : 4;
    tl_node_desc *node = &layer->node;
    layer->reads_in = 1;
    node->op = "attention";
    node->fwd_cost = tli_layer_add(layer, products, s->weights);
    node->bwd_cost = tli_layer_add(layer, tli_layer_mul(layer, 2, products), s->weights);
    if (kind == TL_ATTENTION_STORED) {
        node->saved_bytes = node->fwork_bytes = node->bwork_bytes = tli_layer_mul(layer, s->weights, size);
    } else {
        layer->reads_out = 1;
        node->bwd_cost = tli_layer_add(layer, node->bwd_cost, tli_layer_add(layer, s->product, s->weights));
        node->saved_bytes = node->bwork_bytes = tli_layer_mul(layer, s->rows, number);
    }
    layer->out.shape = s->value;
    return tli_finish_layer(layer, inputs, count, output);
}

// Start one of the three nodes of split attention, named <name><ending>.
static tli_layer tli_start_part(const tli_layer *whole, const char *op, const char *ending, char *name,
                                size_t size) {
    tli_layer part = *whole;
    tli_writer w = tli_writer_of(name, size);
    part.node.op = op;
    if (!whole->desc.name) return part;
    tli_put(&w, whole->desc.name); tli_put(&w, ending);
    if (tli_finish(&w) >= size) tli_break_rule(&part, TLI_RULE(NAME_MUST_BE_1_TO_255_BYTES_OF_UTF_8));
    part.node.name = name;
    return part;
}

static tl_result tli_add_split_attention(const tli_layer *whole, const tli_scores *s, const tl_tensor *inputs,
                                         int32_t count, tl_value *output) {
    char name[TLI_NAME_LIMIT + 1];
    tli_layer part = tli_start_part(whole, "bmm", "_qk", name, sizeof name);
    tl_value scores, weights;
    tl_tensor last[2];
    tl_result result;
    // The scores are a tensor of `rows` rows, with one channel per key.
    part.out.shape.batch = s->rows; part.out.shape.height = part.out.shape.width = 1;
    part.out.shape.channels = s->rows ? s->weights / s->rows : 0;
    part.desc.keep = 0;
    part.reads_in = 1;
    part.node.fwd_cost = s->product;
    part.node.bwd_cost = tli_layer_mul(&part, 2, s->product);
    result = tli_finish_layer(&part, inputs, count == 3 ? 2 : 1, &scores);
    if (result) return result;
    part = tli_start_part(whole, "softmax", "_softmax", name, sizeof name);
    part.out = scores;
    part.desc.keep = 0;
    part.reads_out = 1;
    tli_set_cost(&part, s->weights);
    result = tli_finish_layer(&part, &scores.tensor, 1, &weights);
    if (result) return result;
    part = tli_start_part(whole, "bmm", "_av", name, sizeof name);
    part.reads_in = 1;
    part.node.fwd_cost = s->product;
    part.node.bwd_cost = tli_layer_mul(&part, 2, s->product);
    part.out.shape = s->value;
    last[0] = weights.tensor; last[1] = inputs[count - 1];
    return tli_finish_layer(&part, last, 2, output);
}

// Remove the nodes added since `before`, after a call that adds several nodes has failed.
static void tli_cut_graph(tl_graph *graph, const tl_graph *before) {
    graph->node_count = before->node_count;
    graph->input_count = before->input_count;
    graph->tensor_count = before->tensor_count;
    graph->text_bytes = before->text_bytes;
}

TLI_IMPL tl_result tl_add_attention(tl_env *env, tl_graph *graph, tl_attention kind, const tl_layer_desc *desc,
                                    const tl_value *inputs, int32_t input_count, tl_value *output) {
    int32_t count = inputs && (input_count == 1 || input_count == 3) ? input_count : 0, i;
    tli_layer layer;
    tli_scores scores;
    tl_tensor tensors[3];
    tl_graph before;
    tl_result result;
    TL_ASSERT(graph && output);
    layer = tli_start_layer(env, TLI_IN(ADD_ATTENTION), graph, desc, TLI_FIELD_HEADS, inputs, count);
    if (!tli_is_below((int64_t)kind, TL_ATTENTION_COUNT)) tli_break_rule(&layer, TLI_RULE(KIND_UNKNOWN));
    if (!count) tli_break_rule(&layer, TLI_RULE(INPUTS_THERE_MUST_BE_1_OR_3));
    if (kind == TL_ATTENTION_SPLIT &&
        (layer.desc.saved_bytes | layer.desc.fwork_bytes | layer.desc.bwork_bytes))
        tli_break_rule(&layer, TLI_RULE(SAVED_BYTES_FWORK_BYTES_BWORK_BYTES));
    tli_zero(&scores, sizeof scores);
    if (!layer.rule) scores = tli_find_scores(&layer, inputs, count);
    for (i = 0; i < count; i++) tensors[i] = inputs[i].tensor;
    before = *graph;
    layer.node.op = "attention";
    if (layer.rule) result = tli_finish_layer(&layer, tensors, count, output);
    else if (kind == TL_ATTENTION_SPLIT)
        result = tli_add_split_attention(&layer, &scores, tensors, count, output);
    else result = tli_add_one_attention(&layer, kind, &scores, tensors, count, output);
    if (result) {
        tli_cut_graph(graph, &before);
        tli_zero(output, sizeof *output);
    }
    return result;
}

// -- recurrent cells --

TLI_IMPL tl_result tl_add_recurrent(tl_env *env, tl_graph *graph, tl_cell kind, const tl_layer_desc *desc,
                                    tl_value input, const tl_value *state, tl_value *new_state) {
    static const char *const needs[] = { "in,out", "in", "in,out1" };
    static const uint64_t gate_counts[] = { 1, 3, 4 }, update_costs[] = { 0, 4, 5 };
    int known = tli_is_below((int64_t)kind, TL_CELL_COUNT);
    int32_t count = kind == TL_CELL_LSTM ? 2 : 1, i;
    uint64_t gates = known ? gate_counts[kind] : 1, units, inner, elements, product, bytes[2];
    tl_value values[3], whole;
    tl_tensor tensors[3];
    tli_layer layer;
    tl_result result;
    TL_ASSERT(graph && state && new_state);
    values[0] = input;
    for (i = 0; i < count; i++) values[i + 1] = state[i];
    for (i = 0; i <= count; i++) tensors[i] = values[i].tensor;
    layer = tli_start_layer(env, TLI_IN(ADD_RECURRENT), graph, desc, TLI_FIELD_BIAS, values, count + 1);
    layer.node.op = tl_name_cell(kind);
    if (!known) tli_break_rule(&layer, TLI_RULE(KIND_UNKNOWN));
    for (i = 1; i <= count; i++)
        if (values[i].shape.batch != input.shape.batch || values[i].shape.channels != state[0].shape.channels ||
            values[i].shape.height != 1 || values[i].shape.width != 1)
            tli_break_rule(&layer, TLI_RULE(STATE_MUST_HAVE_BATCH_OF_INPUT_EQUAL));
    if (input.shape.height != 1 || input.shape.width != 1)
        tli_break_rule(&layer, TLI_RULE(INPUT_MUST_HAVE_ONE_POSITION));
    units = layer.out.shape.channels = state[0].shape.channels;
    inner = tli_layer_add(&layer, tli_layer_mul(&layer, 2, tli_layer_add(&layer, input.shape.channels, units)),
                          !layer.desc.no_bias);
    elements = tli_find_elements(&layer, layer.out.shape);
    product = tli_layer_mul(&layer, tli_layer_mul(&layer, elements, gates), inner);
    tli_set_weights(&layer, product,
                    tli_layer_mul(&layer, tli_layer_mul(&layer, gates, units),
                                  tli_layer_add(&layer, tli_layer_add(&layer, input.shape.channels, units),
                                                !layer.desc.no_bias)));
    product = tli_layer_mul(&layer, elements, gates + (known ? update_costs[kind] : 0));
    layer.node.fwd_cost = tli_layer_add(&layer, layer.node.fwd_cost, product);
    layer.node.bwd_cost = tli_layer_add(&layer, layer.node.bwd_cost, product);
    bytes[0] = bytes[1] = tli_layer_mul(&layer, elements, tli_element_size(layer.out.precision));
    if (kind != TL_CELL_RNN) layer.node.saved_bytes = tli_layer_mul(&layer, gates, bytes[0]);
    layer.node.needs = known ? needs[kind] : NULL;
    layer.node.output_bytes = bytes;
    layer.node.output_count = count;
    result = tli_finish_layer(&layer, tensors, count + 1, &whole);
    for (i = 0; i < count; i++) {
        new_state[i] = whole;
        if (!result) new_state[i].tensor.output = i;
    }
    return result;
}

TLI_IMPL const char *tl_name_elementwise(tl_elementwise kind) {
    return tli_name(tli_elementwise_names, TL_ELEMENTWISE_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_pool(tl_pool kind) {
    return tli_name(tli_pool_names, TL_POOL_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_attention(tl_attention kind) {
    return tli_name(tli_attention_names, TL_ATTENTION_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_cell(tl_cell kind) {
    return tli_name(tli_cell_names, TL_CELL_COUNT, (int64_t)kind);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_elementwise(const char *text, tl_elementwise *kind) {
    int32_t value;
    int known = tli_parse_word(tli_elementwise_names, TL_ELEMENTWISE_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_elementwise)value;
    return known;
}

TLI_IMPL int tl_parse_pool(const char *text, tl_pool *kind) {
    int32_t value;
    int known = tli_parse_word(tli_pool_names, TL_POOL_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_pool)value;
    return known;
}

TLI_IMPL int tl_parse_attention(const char *text, tl_attention *kind) {
    int32_t value;
    int known = tli_parse_word(tli_attention_names, TL_ATTENTION_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_attention)value;
    return known;
}

TLI_IMPL int tl_parse_cell(const char *text, tl_cell *kind) {
    int32_t value;
    int known = tli_parse_word(tli_cell_names, TL_CELL_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_cell)value;
    return known;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

