#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif

// ============================================================================
// [3] GRAPH -- nodes, tensors, sizes, costs; the device; .tlg text; layers, fusion
//
//     node 1 s split fwd=4 bwd=3 out=3,5,2 needs=none in=0
//
//          +-------+   1.0     A node reads tensors and makes one or more
//     0 -->| s     |-> 1.1     outputs: 1.0, 1.1, ... ("1" alone is 1.0 where
//          +-------+   1.2     a tensor is read, all outputs where a step acts).
//
// A graph is a list of nodes in topological order: a node reads only nodes above
// it. Sizes are bytes, costs are nanoseconds or FLOP (never mixed in one graph).
// What a backward pass reads is said by `needs`; extra state made for it alone
// (attention weights, masks, statistics) is `saved`; scratch that lives during
// one call is `fwork` and `bwork`. A layer chain is the graph whose node i reads
// node i-1.
//
// Graphs are read from text, built node by node (tl_add_node), or layer by layer from
// shapes (tl_add_conv2d and its neighbours). tl_measure_graph says what one is like, its
// floor above all; tl_plan_fusion makes chains of elementwise nodes one node each.
// ============================================================================

typedef struct tl_tensor {
    int32_t node;    // id of the node that makes it
    int32_t output;  // which of its outputs, from 0
} tl_tensor;

// What a graph runs on. Every field is optional: 0 = not known.
typedef struct tl_device {
    const char *name;                          // borrowed
    double   flops_per_second[TL_PRECISION_COUNT];  // by tl_precision
    uint64_t bytes_per_second;                 // device memory, read + write
    uint64_t link_bytes_per_second;            // host link, one way; 0 = copies take no time
    uint64_t link_latency_ns;                  // per copy
    uint64_t codec_bytes_per_second;           // compress and expand, uncompressed side; 0 = no time
    uint64_t device_capacity_bytes;            // 0 = not limited
    uint64_t host_capacity_bytes;              // 0 = not limited
    uint64_t alignment_bytes;                  // of every buffer; 0 = 1; else a power of two
    uint64_t worker_count;                     // 0 = 1
    uint32_t supported;                        // bits 1 << tl_precision: supported and worth it
} tl_device;

// One node to add. Zero is the default everywhere; arrays are read during the call only.
typedef struct tl_node_desc {
    const char      *name;          // 0 = "n<id>"; no spaces; names are unique
    const char      *op;            // 0 = "op"; "input" = graph input: resident throughout, costs 0
    const tl_tensor *inputs;        // [input_count] each made by a node above
    int32_t          input_count;
    const uint64_t  *output_bytes;  // [output_count]
    int32_t          output_count;  // > 0
    const char      *needs;         // what backward reads, as in .tlg: "in", "out", "in0,out1"; 0 = "none"
    uint64_t fwd_cost, bwd_cost;    // of one call
    uint64_t saved_bytes;           // made by FORWARD_SAVE, read by backward only
    uint64_t fwork_bytes, bwork_bytes;  // scratch alive during the call
    uint64_t param_bytes;           // weights
    const char *unit;               // "attention", "ffn" or other; 0 = none: what checkpoint configs act on
    int32_t  layer;                 // layer number + 1; 0 = belongs to no layer
    int32_t  inplace;               // input that output 0 may overwrite + 1; 0 = none
    int32_t  no_grad;               // 1 = no backward, nobody computes a gradient for its outputs
    int32_t  keep;                  // 1 = its outputs are results: resident at the end
    int32_t  fixed;                 // 1 = bytes and costs do not scale with the batch
} tl_node_desc;

// A node of a graph, to be read; tl_add_node makes it.
typedef struct tl_node {
    uint32_t name, op, unit;        // offsets into tl_graph.text; tl_name_node() and friends
    int32_t  first_input, input_count;    // into tl_graph.inputs
    int32_t  first_output, output_count;  // into tl_graph.outputs
    int32_t  inplace;               // input index, -1 = none
    int32_t  layer;                 // layer number, -1 = none
    uint8_t  is_input, has_grad, keep, fixed;
    uint64_t fwd_cost, bwd_cost, saved_bytes, fwork_bytes, bwork_bytes, param_bytes;
} tl_node;

typedef struct tl_node_input {
    int32_t tensor;                 // index into tl_graph.outputs
    uint8_t needed;                 // 1 = the node's backward reads it
} tl_node_input;

typedef struct tl_node_output {
    int32_t  node;                  // the node that makes it
    int32_t  output;                // which of the node's outputs
    uint64_t bytes;
    uint8_t  needed;                // 1 = the node's own backward reads it
} tl_node_output;

typedef struct tl_view {
    uint32_t name;                  // offset into tl_graph.text
    int32_t  tensor;                // its storage: index into tl_graph.outputs, never a view
} tl_view;

// All arrays belong to the graph; read them freely, change them through the calls below. An array whose
// capacity is 0 is somebody else's, as a const table is: it is copied before it grows, and not released.
typedef struct tl_graph {
    const tl_node        *nodes;    int32_t node_count;     // [node_count] topological order
    const tl_node_input  *inputs;   int32_t input_count;    // of all nodes, one after the other
    const tl_node_output *outputs;  int32_t tensor_count;   // of all nodes, one after the other
    const tl_view        *views;    int32_t view_count;
    const char           *text;     uint32_t text_bytes;    // names, each ended by 0; the one at 0 is empty
    uint64_t        batch;                            // samples that bytes and costs stand for; 0 = unknown
    int32_t         node_capacity, input_capacity, tensor_capacity, view_capacity;
    uint32_t        text_capacity;
} tl_graph;

// Start an empty graph; release it with tl_free_graph. A zeroed tl_graph is empty too.
TLDEF void tl_init_graph(tl_graph *graph);
TLDEF void tl_free_graph(tl_env *env, tl_graph *graph);

// Add a node at the end. Every rule of tl_check_graph is held at once, but two that need the
// whole graph: unique names and sums.
//
//   desc   not changed; its arrays and texts are copied
//   id     may be NULL; the new node's id
//
// Names, ops and units are 1 to 255 printable ASCII characters other than space, # and =.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW. On error the graph is as
//          it was, and *id is 0.
// Cost:    amortised O(inputs + outputs + length of the names).
// Threads: one graph per thread while it is built; a finished graph may be read by many.
TLDEF tl_result tl_add_node(tl_env *env, tl_graph *graph, const tl_node_desc *desc, int32_t *id);

// Add a name for a tensor that has one already (a reshape, a transpose): a view has no bytes
// and no node of its own, and *storage is the tensor it stands for. A view may be named by a
// view's name through tl_find_tensor; it always resolves to the storage at the bottom.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; a name that is taken is
//          found by tl_check_graph.
TLDEF tl_result tl_add_view(tl_env *env, tl_graph *graph, const char *name, tl_tensor of, tl_tensor *storage);

// Find a tensor by the name of its node ("conv1", output 0), else by the name of a view, by node
// name and output ("split.2"), or by id ("3", "3.1").
//
// Errors:  TL_ERROR_NOT_FOUND.
// Cost:    O(nodes + views).
TLDEF tl_result tl_find_tensor(tl_env *env, const tl_graph *graph, const char *name, tl_tensor *tensor);

// A layer chain: node 0 is the input, node i reads node i-1.
typedef struct tl_chain_desc {
    int32_t         layer_count;       // > 0
    uint64_t        input_bytes;       // of the graph input
    const uint64_t *output_bytes;      // [layer_count]; 0 = 1 byte each: equal layers
    const uint64_t *saved_bytes;       // [layer_count]; 0 = none
    const uint64_t *fwork_bytes;       // [layer_count]; 0 = none
    const uint64_t *bwork_bytes;       // [layer_count]; 0 = none
    const uint64_t *param_bytes;       // [layer_count]; 0 = none
    const uint64_t *fwd_costs;         // [layer_count]; 0 = 1 each
    const uint64_t *bwd_costs;         // [layer_count]; 0 = 1 each
    const char     *needs;             // of every layer; 0 = "in"
} tl_chain_desc;

// Make a layer chain in one call. Layer i is node i+1 and carries layer number i.
//
//   graph   overwritten (not freed); release with tl_free_graph
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; *graph is empty then.
TLDEF tl_result tl_add_chain(tl_env *env, tl_graph *graph, const tl_chain_desc *desc);

// Hold every rule of a graph, also one whose arrays were made by hand: at least one node, inputs
// above their node, at least one output each, indices and text offsets in range, unique names of
// nodes and views, graph inputs with nothing but bytes, in place only where the bytes are equal
// and the overwritten tensor is no graph input, bwd, bwork, saved and needs only where there is a
// gradient, and within 64 bits the sums of all bytes (each output twice: its gradient), of all
// costs and of all weights. A node without a gradient may read one that has it, and the other way
// round: gradients end there, none flows through.
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY.
// Cost:    O(nodes + inputs), and O(n log n) to compare the n names, whatever they are.
TLDEF tl_result tl_check_graph(tl_env *env, const tl_graph *graph);

// Hold every rule of a device: finite, not negative, alignment a power of two, known precisions.
//
// Errors:  TL_ERROR_INVALID_ARG.
TLDEF tl_result tl_check_device(tl_env *env, const tl_device *device);

TLDEF const char *tl_name_node(const tl_graph *graph, int32_t node);  // "conv1"; "?" out of range
TLDEF const char *tl_name_op(const tl_graph *graph, int32_t node);    // "conv2d"
TLDEF const char *tl_name_unit(const tl_graph *graph, int32_t node);  // "attention"; "" = none

// Sum param x (1 + gradient_ratio + optimizer_ratio): the part of the budget that no plan
// changes. AdamW in f32 keeps two numbers a weight: optimizer_ratio 2. Exact for ratios with up
// to 32 binary digits behind the point, else rounded up.
//
// Errors:  TL_ERROR_OVERFLOW, TL_ERROR_INVALID_ARG: a ratio is negative or not finite.
TLDEF tl_result tl_find_base_bytes(tl_env *env, const tl_graph *graph, double gradient_ratio,
                                   double optimizer_ratio, uint64_t *base_bytes);

#ifndef TL_NO_TEXT
// Write a graph as .tlg text; the reader gives the same graph back. Views are written as the
// tensors that they stand for.
TLDEF size_t tl_print_graph(const tl_graph *graph, char *buf, size_t size);

// Read .tlg text:
//
//     tlg 1
//     batch 32
//     node <id> <name> <op> fwd=<cost> bwd=<cost> out=<bytes[,bytes..]> needs=<..> in=<tensors or ->
//          [saved=] [fwork=] [bwork=] [param=] [inplace=<k>] [layer=<n>] [unit=<name>] [grad=no] [keep] [fixed]
//
// one node a line, ids 0, 1, 2, ..., attributes in any order, # comments; batch may be left out.
// No number is trusted before it was checked.
//
//   graph   overwritten (not freed); release with tl_free_graph
//
// Errors:  TL_ERROR_PARSE, and those of tl_check_graph, with the line; *graph is empty then.
// Cost:    O(length), and the comparison of names as in tl_check_graph.
TLDEF tl_result tl_parse_graph(tl_env *env, const char *text, size_t length, tl_graph *graph);

#ifndef TL_NO_STDIO
TLDEF tl_result tl_read_graph(tl_env *env, const char *path, tl_graph *graph);         // TL_ERROR_IO
TLDEF tl_result tl_write_graph(tl_env *env, const tl_graph *graph, const char *path);  // TL_ERROR_IO
#endif
#endif

#ifndef TL_NO_PLANNERS
// -- layers: nodes whose bytes and costs follow from shapes --
//
//     shape.batch = 8; shape.channels = 3; shape.height = shape.width = 256;
//     conv.channels = 64; conv.kernel = 3; norm.activation = TL_ELEMENTWISE_RELU;
//     if (tl_add_input(&env, &graph, "x", shape, TL_PRECISION_SINGLE, &x) ||
//         tl_add_conv2d(&env, &graph, &conv, x, &x) || tl_add_batch_norm(&env, &graph, &norm, x, &x)) ...
//
// Letters: B batch, C channels, H x W positions, of the input; E elements of the result; T tokens, that
// is positions. Costs are FLOP: 2 for a multiplication with its addition, also where a tap falls into
// the padding, and 1 for a bias; what only touches elements costs 1 for each. A backward costs twice the
// forward where there are weights or two matrices are multiplied, else the same. Bytes are elements x
// the size of the precision. Nothing is counted twice: caches, workspaces and statistics of a library
// that computes a layer stand in saved_bytes, fwork_bytes and bwork_bytes of the desc.

// id, name of the op, what backward reads
#define TL_ELEMENTWISES(X) \
    X(TL_ELEMENTWISE_NONE,    "none",    "none") \
    X(TL_ELEMENTWISE_RELU,    "relu",    "out")  \
    X(TL_ELEMENTWISE_SIGMOID, "sigmoid", "out")  \
    X(TL_ELEMENTWISE_TANH,    "tanh",    "out")  \
    X(TL_ELEMENTWISE_GELU,    "gelu",    "in")   \
    X(TL_ELEMENTWISE_SILU,    "silu",    "in")   \
    X(TL_ELEMENTWISE_SCALE,   "scale",   "none") \
    X(TL_ELEMENTWISE_DROPOUT, "dropout", "none") \
    X(TL_ELEMENTWISE_ADD,     "add",     "none") \
    X(TL_ELEMENTWISE_SUB,     "sub",     "none") \
    X(TL_ELEMENTWISE_MUL,     "mul",     "in")

// id, name of the op, positions of the result
#define TL_POOLS(X) \
    X(TL_POOL_MAX,     "maxpool",  "one per stride; backward finds the largest again") \
    X(TL_POOL_AVERAGE, "avgpool",  "one per stride")                                  \
    X(TL_POOL_GLOBAL,  "gavgpool", "those of the desc, each the mean of its share")

// id, name, what is kept of the weights softmax(Q K^T)
#define TL_ATTENTIONS(X) \
    X(TL_ATTENTION_STORED, "stored", "one node: the weights are saved bytes")                       \
    X(TL_ATTENTION_TILED,  "tiled",  "one node: made again tile by tile, two numbers a row are saved") \
    X(TL_ATTENTION_SPLIT,  "split",  "three nodes: the planner may drop scores and weights")

// id, name of the op, gates
#define TL_CELLS(X) \
    X(TL_CELL_RNN,  "rnn",  "1: h = tanh(W x + U h + b)") \
    X(TL_CELL_GRU,  "gru",  "3: reset, update, candidate") \
    X(TL_CELL_LSTM, "lstm", "4: input, forget, candidate, output")

typedef enum tl_elementwise { TL_ELEMENTWISES(TLI_ENUM) TL_ELEMENTWISE_COUNT } tl_elementwise;
typedef enum tl_pool        { TL_POOLS(TLI_ENUM) TL_POOL_COUNT } tl_pool;
typedef enum tl_attention   { TL_ATTENTIONS(TLI_ENUM) TL_ATTENTION_COUNT } tl_attention;
typedef enum tl_cell        { TL_CELLS(TLI_ENUM) TL_CELL_COUNT } tl_cell;

// 0 = 1. Rows are {B, C, 1, 1}, sequences {B, C, T, 1}, images {B, C, H, W}.
typedef struct tl_shape {
    uint64_t batch, channels, height, width;
} tl_shape;

// A tensor of a graph with its shape: what layers read and make.
typedef struct tl_value {
    tl_tensor    tensor;
    tl_precision precision;  // of its elements: f64 8 bytes, f32 and mixed 4, f16 and bf16 2
    tl_shape     shape;      // never 0 in a value that a layer made
} tl_value;

#define TL_NO_PADDING UINT64_MAX

// What a layer is, beside what it reads. Zero is the default; a layer refuses fields that it has no
// use for. Of two-dimensional fields, height comes first and width follows it where it is 0.
typedef struct tl_layer_desc {
    const char *name;           // 0 = "n<id>"
    const char *unit;           // as in tl_node_desc
    int32_t  layer;             // layer number + 1; 0 = belongs to no layer
    int32_t  no_grad, keep;     // as in tl_node_desc
    int32_t  precision;         // tl_precision of the result + 1; 0 = that of the first input
    tl_elementwise activation;  // done in place by the same node: relu, sigmoid or tanh; 0 = none
    int32_t  inplace;           // 1 = the result may overwrite the first input: same bytes, no graph input
    int32_t  no_bias;           // 1 = without bias
    int32_t  flatten;           // 1 = all positions of a sample are one row
    uint64_t channels;          // of the result; 0 = those of the input
    uint64_t kernel, kernel_width;    // 0 = 1
    uint64_t stride, stride_width;    // 0 = 1; of a pool: the kernel
    uint64_t padding, padding_width;  // 0 = (kernel - 1) / 2; TL_NO_PADDING
    uint64_t dilation;          // 0 = 1
    uint64_t groups;            // 0 = 1; divides both channels
    uint64_t height, width;     // positions of a global pool; 0 = 1
    uint64_t heads;             // of attention; 0 = 1; divides the channels
    uint64_t vocabulary;        // rows of an embedding's table; > 0 there
    uint64_t saved_bytes, fwork_bytes, bwork_bytes;  // of your kernels, beside what the layer has
} tl_layer_desc;

// Every call below adds a node, with op and needs as the comment says, and gives its result.
//
//   desc     0 = all defaults
//   output   overwritten; may be where the input was
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW: bytes or costs do not fit 64
//          bits. On error the graph is as it was, and *output is all zero.
// Threads: as tl_add_node.

// Add a graph input. The first one sets the batch of the graph, if it has none.
TLDEF tl_result tl_add_input(tl_env *env, tl_graph *graph, const char *name, tl_shape shape,
                             tl_precision precision, tl_value *output);

// linear: each position times a matrix. (2 C + 1) E forward, 1 less each without bias; needs in.
// Fields: channels, no_bias, flatten, activation.
TLDEF tl_result tl_add_dense(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                             tl_value *output);

// conv2d: (2 C kernel kernel_width / groups + 1) E forward; needs in.
// Fields: channels, kernel, stride, padding, dilation, groups, no_bias, activation.
TLDEF tl_result tl_add_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                              tl_value *output);

// The same with as many groups as there are channels: each is convolved alone.
TLDEF tl_result tl_add_depthwise_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                        tl_value input, tl_value *output);

// convt2d: transposed, grows (H - 1) stride + dilation (kernel - 1) + 1 - 2 padding. Every element of
// the input meets each tap: 2 B C H W channels kernel kernel_width / groups + E forward; needs in.
// Fields: as tl_add_conv2d.
TLDEF tl_result tl_add_transposed_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                         tl_value input, tl_value *output);

// Pools: E x the window forward and backward; needs in for maxpool, else none. Fields: kernel, stride,
// padding; of a global one height and width, its window being ceil(H / height) x ceil(W / width).
TLDEF tl_result tl_add_pool(tl_env *env, tl_graph *graph, tl_pool kind, const tl_layer_desc *desc,
                            tl_value input, tl_value *output);

// upsample: height x stride, width x stride. E x kernel x kernel_width taps forward and backward:
// kernel 0 = 1 is nearest, 2 bilinear; needs none. Fields: kernel, stride.
TLDEF tl_result tl_add_upsample(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                tl_value *output);

// bn, layernorm: E forward, 2 E backward; needs in; a scale and a bias per channel. Statistics are not
// counted: they are small, and made again in the backward. Fields: no_bias, activation, inplace.
TLDEF tl_result tl_add_batch_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output);
TLDEF tl_result tl_add_layer_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output);

// Elementwise: E forward and backward; add, sub and mul: E for each input but the first. Each extent
// of a further input is that of the first, or 1. Dropout finds its mask again from the random state.
//
//   input_count   add, mul: 2 or more; sub: 2; the others: 1
//
// Fields: activation, inplace.
TLDEF tl_result tl_add_elementwise(tl_env *env, tl_graph *graph, tl_elementwise kind,
                                   const tl_layer_desc *desc, const tl_value *inputs, int32_t input_count,
                                   tl_value *output);

// softmax over the channels: E forward and backward; needs out. Fields: inplace.
TLDEF tl_result tl_add_softmax(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                               tl_value *output);

// embedding: a row of a table for each id. E forward, 2 E backward; needs in; vocabulary x channels
// weights. Fields: vocabulary, channels (> 0).
//
//   input   ids, one a position: 1 channel, elements of any precision
TLDEF tl_result tl_add_embedding(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                 tl_value *output);

// Attention of T tokens on S: scores and weights have N = B heads T S elements. Q K^T and weights x V
// cost 2 B T S C each, softmax N.
//
//   stored   attention: the sum forward, backward the products twice and N; needs in; saves the weights
//            N; fwork N (the scores), bwork N (their gradients)
//   tiled    attention: the same forward; backward makes Q K^T and the weights again: 5/2 of the products
//            and 2 N; needs in,out; saves the logarithm of the sum of each of B heads T rows, and bwork is
//            a number a row, of 4 bytes or the element, if that is larger. Dao et al., FlashAttention,
//            2022, arXiv:2205.14135, section 3
//   split    bmm, softmax and bmm, called <name>_qk, _softmax and _av; the products need in, softmax out
//
//   inputs   1: queries, keys and values in one tensor of 3 C channels; or 3: of C channels, the
//            last two of S tokens
//
// Fields: heads, unless in three nodes saved_bytes, fwork_bytes, bwork_bytes.
TLDEF tl_result tl_add_attention(tl_env *env, tl_graph *graph, tl_attention kind, const tl_layer_desc *desc,
                                 const tl_value *inputs, int32_t input_count, tl_value *output);

// One step of a recurrent layer: with U channels and G gates, B G U (2 (C + U) + 1) for the products,
// twice that backward, and E for each gate and 0, 4 (gru) or 5 (lstm) for the new state, the same
// backward. rnn needs in,out; the others in, and save their gates; lstm also out1.
//
//   state       [1], of lstm [2]: hidden and cell; one position
//   new_state   [1] or [2] overwritten; may be where the state was
//
// Fields: no_bias; channels is that of the state.
TLDEF tl_result tl_add_recurrent(tl_env *env, tl_graph *graph, tl_cell kind, const tl_layer_desc *desc,
                                 tl_value input, const tl_value *state, tl_value *new_state);

// concat, split: along the channels; E (of split: of all parts) forward and backward; needs none.
//
//   channels   [output_count] of each part; 0 = equal parts
TLDEF tl_result tl_add_concat(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                              const tl_value *inputs, int32_t input_count, tl_value *output);
TLDEF tl_result tl_add_split(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                             const uint64_t *channels, int32_t output_count, tl_value *outputs);

// loss: softmax and cross entropy, or any other that goes over its input once: as many as the input
// has elements forward and backward; needs in. One element a sample comes out.
//
//   labels   0 = not part of the graph
TLDEF tl_result tl_add_loss(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                            const tl_value *labels, tl_value *output);

TLDEF const char *tl_name_elementwise(tl_elementwise kind);  // "relu"; "?" out of range
TLDEF const char *tl_name_pool(tl_pool kind);                // "maxpool"
TLDEF const char *tl_name_attention(tl_attention kind);      // "tiled"
TLDEF const char *tl_name_cell(tl_cell kind);                // "lstm"
#ifndef TL_NO_TEXT
// Each accepts exactly what its tl_name_ returns: 1 and the value, or 0.
TLDEF int tl_parse_elementwise(const char *text, tl_elementwise *kind);
TLDEF int tl_parse_pool(const char *text, tl_pool *kind);
TLDEF int tl_parse_attention(const char *text, tl_attention *kind);
TLDEF int tl_parse_cell(const char *text, tl_cell *kind);
#endif

// -- statistics --

// All nodes of one op.
typedef struct tl_op_statistics {
    const char *op;             // a text of the graph
    int32_t  node_count;
    uint64_t output_bytes, saved_bytes, param_bytes;
    uint64_t fwd_cost, bwd_cost;
} tl_op_statistics;

// What a graph is like. The floor is the largest working set of a call that every plan makes: graph inputs,
// what the call reads and makes, its gradients, saved bytes and scratch. No plan needs less.
typedef struct tl_graph_statistics {
    const tl_op_statistics *ops;  // [op_count] in order of first appearance
    const int32_t *cuts;        // [cut_count] nodes that nothing passes by: those below read none above
    int32_t  op_count, cut_count;
    int32_t  node_count, tensor_count;
    int32_t  input_node_count;  // graph inputs
    int32_t  grad_node_count;   // nodes with a backward
    int32_t  depth;             // nodes of the longest path
    int32_t  width;             // most tensors that cross a place between two nodes of the listing
    tl_tensor largest_tensor;
    uint64_t largest_bytes;     // of it
    uint64_t output_bytes, saved_bytes, param_bytes;  // sums
    uint64_t fwd_cost, bwd_cost;      // sums
    uint64_t floor_bytes;       // of the training, weights not counted
    int32_t  floor_node;        // the first whose call takes so many
    int32_t  floor_is_backward; // 1 = it is its backward
    uint64_t inference_floor_bytes;
    uint64_t keep_all_bytes;    // peak of the training that keeps what backward reads (tl_plan_keep_all)
    void    *memory;            // what tl_free_graph_statistics releases
} tl_graph_statistics;

// Measure a graph.
//
//   statistics   overwritten; release with tl_free_graph_statistics; its texts are those of the graph
//
// Errors:  those of tl_check_graph; *statistics is all zero then.
// Cost:    O(nodes + inputs), O(n log n) as tl_check_graph, and O(nodes x ops) at worst.
TLDEF tl_result tl_measure_graph(tl_env *env, const tl_graph *graph, tl_graph_statistics *statistics);
TLDEF void      tl_free_graph_statistics(tl_env *env, tl_graph_statistics *statistics);  // accepts zeroed ones

#ifndef TL_NO_TEXT
// Write statistics as a table, an op a line, for people to read.
TLDEF size_t tl_print_graph_statistics(const tl_graph *graph, const tl_graph_statistics *statistics,
                                       char *buf, size_t size);
#endif

// -- fusion: chains of elementwise nodes become one node, computed block by block --
//
//     a --> add --> gelu --> dropout --> y     three tensors, each written and read
//     b ----^
//     a, b --> [ fused: block 1, block 2, ... ] --> y     one tensor, and blocks of scratch

typedef struct tl_fusion_desc {
    const tl_graph    *graph;        // not NULL
    const char *const *ops;          // [op_count] that are elementwise; 0 = all of TL_ELEMENTWISES. Of
                                     // "add+relu" each part must be one
    int32_t            op_count;
    const char        *op;           // of fused nodes; 0 = "fused"
    uint64_t           block_bytes;  // a multiple of 64; 0 = 65536
    const tl_device   *device;       // costs are nanoseconds on it; 0 = costs are added up
    int32_t            inference;    // 1 = forward only: what backward reads does not matter
} tl_fusion_desc;

typedef struct tl_fusion_plan {
    tl_graph       graph;            // the fused graph
    const int32_t *nodes;            // [nodes of the old graph] the node that computes it now
    const int32_t *first_members;    // [graph.node_count + 1] into members
    const int32_t *members;          // [nodes of the old graph] old nodes, by new node, in their order
    const int32_t *remade_counts;    // [graph.node_count] first members whose forward backward runs again
    uint64_t       block_bytes;      // defaults filled in
    int32_t        fused_count;      // new nodes of two members and more
    uint64_t       inner_bytes;      // of the tensors that are gone
    void          *memory;           // what tl_free_fusion_plan releases, and the graph
} tl_fusion_plan;

// Fuse chains of elementwise nodes. In a chain every node has one output, is the only reader of the one
// before it, has no weights and no saved bytes, reads and makes tensors of equal bytes only, and shares
// layer, unit, and whether it has a gradient and scales with the batch; only the last may be a result.
// Chains are as long as they can be, at most 256 nodes, under three rules more: backward must not read
// more bytes than before, other nodes between two members must not have more bytes beside them, and
// gradients are added up in the old order. A graph with nothing to fuse is copied.
//
// A fused node has the name of its last member, and the members' outer inputs in their order. Its backward
// reads those its members read, its output if the last one does, and where a member reads an inner
// tensor, all that the members above it need to make that again. Scratch is in blocks of block_bytes, or
// the whole tensor if that is smaller: forward 1 (2 members) or 2 in turn; backward one for each member
// made again, then 1 or 2 of gradients; then the largest scratch of a member. Costs are added up,
// backward also the forwards made again. With a device, the time to write and to read inner tensors
// is taken off, but never below the largest member or the time of the outer bytes. In place, the
// output may overwrite what the first member might, unless the last one reads that, too. Views of
// inner tensors are gone. One call holds the gradients of all outer inputs at once: a node with many of them
// can have a larger working set than its members had one by one.
//
//   fusion   overwritten; release with tl_free_fusion_plan
//
// Errors:  those of tl_check_graph and tl_check_device; TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY,
//          TL_ERROR_OVERFLOW; *fusion is all zero then.
// Cost:    O(nodes + inputs) x at most 256 where chains part again and again.
TLDEF tl_result tl_plan_fusion(tl_env *env, const tl_fusion_desc *desc, tl_fusion_plan *fusion);
TLDEF void      tl_free_fusion_plan(tl_env *env, tl_fusion_plan *fusion);  // accepts zeroed ones
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

