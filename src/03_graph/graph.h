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
// `needs` says what the backward call of a node reads; `saved` is extra state that
// forward makes for backward alone (attention weights, masks, statistics); `fwork`,
// `swork` and `bwork` are scratch that lives during one forward call, one that makes
// the saved state, or one backward call. A layer chain is the graph whose node i
// reads node i-1.
//
// Weights that the graph owns are states (tl_add_state): nodes that make nothing in a pass. A state is resident
// throughout, as a graph input is, and its backward is its update:
//
//     state 1 w adamw w=400 m=400,400 upd=9        F 2: reads x and w         1.0 w
//     node  2 y matmul .. in=0,1                   B 2: adds to the gradient  1.1, 1.2 moments
//                                                  B 1: updates 1.0 and 1.1, 1.2, frees the gradient
//
// So the gradient of a weight lives as that of any tensor, from the first backward that contributes to it to
// the update, and backwards in reverse listing order place the updates: a state above its first reader is
// updated as soon as its gradient is complete, states above all other nodes are updated when every gradient
// is. Where several passes add to a gradient before one updates (micro-batches), the state holds it: it is an
// output of the node, behind the moments. Where one gradient sets the peak it need never be there whole: its
// state is trained in pieces (TL_STATE_PIECES, tl_apply_pieces). The backward of its one reader makes some rows
// of the gradient in its scratch, has these rows updated, and goes on with the next:
//
//     state 1 w adamw w=400 m=400,400 wrows=10 piece=4      B 2: all but the gradient of 1.0, then for the
//     node  2 y matmul .. bwork=160 in=0,1                  rows 0 to 3, 4 to 7, 8 and 9: gradient, update
//
// Graphs are read from text, built node by node (tl_add_node), or layer by layer from shapes
// (tl_add_conv2d and its neighbours). tl_measure_graph computes statistics, among them the floor, a
// lower bound on the memory of any plan. tl_plan_fusion replaces each chain of elementwise nodes by
// one node.
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
    uint64_t link_bytes_per_second;            // host link, to the host; 0 = these copies take no time
    uint64_t upload_bytes_per_second;          // host link, to the device; 0 = link_bytes_per_second
    uint64_t link_latency_ns;                  // per copy
    int32_t  copy_channels;                    // of host copies beside kernels: 2 = one each way, 0 or 1 = one,
                                               // TL_COPIES_IN_TURN = none: they take turns with kernels
    uint64_t wait_latency_ns;                  // no kernel runs for so long at a WAIT, or at several in a row
    uint64_t call_latency_ns;                  // per call of a kernel among others, beyond its work
    uint64_t codec_bytes_per_second;           // compress and expand, uncompressed side; 0 = no time
    uint64_t device_capacity_bytes;            // weights and all; 0 = not limited
    uint64_t host_capacity_bytes;              // 0 = not limited
    uint64_t alignment_bytes;                  // of every buffer; 0 = 1; else a power of two
    uint64_t worker_count;                     // 0 = 1
    uint32_t supported;                        // bits 1 << tl_precision: computes in it, and faster
} tl_device;

// id, name, what changes its content
#define TL_STATES(X) \
    X(TL_STATE_NONE,      "none",    "the node is no state")                                              \
    X(TL_STATE_TRAINED,   "trained", "a weight, perhaps with moments: its backward, the update, writes both") \
    X(TL_STATE_FROZEN,    "frozen",  "a weight that no kernel writes")                                    \
    X(TL_STATE_STATISTIC, "stat",    "running statistics: the first forward of a reader writes them") \
    X(TL_STATE_HELD,      "hold",    "trained, and its gradient is the last output: resident throughout") \
    X(TL_STATE_PIECES,    "pieces",  "trained in pieces of rows, within the backward of its one reader")

typedef enum tl_state { TL_STATES(TLI_ENUM) TL_STATE_COUNT } tl_state;

// id, name, how a tensor that a graph declares is stored
#define TL_TENSOR_FORMATS(X) \
    X(TL_TENSOR_FORMAT_NONE, "none", "not declared: as the run has it")                  \
    X(TL_TENSOR_FORMAT_F32,  "f32",  "IEEE binary32")                                    \
    X(TL_TENSOR_FORMAT_F16,  "f16",  "IEEE binary16")                                    \
    X(TL_TENSOR_FORMAT_BF16, "bf16", "the upper half of an f32")                         \
    X(TL_TENSOR_FORMAT_I32,  "i32",  "integers of 32 bits: indices, sums, biases")       \
    X(TL_TENSOR_FORMAT_I16,  "i16",  "integers of 16 bits")                              \
    X(TL_TENSOR_FORMAT_I8,   "i8",   "integers of 8 bits")                               \
    X(TL_TENSOR_FORMAT_I4,   "i4",   "integers of 4 bits, two a byte")

// id, text, which rows of an input a range of rows of output 0 reads
#define TL_RELATIONS(X) \
    X(TL_RELATION_WHOLE,  "whole", "all of them: keys, weights, a row that is added to each") \
    X(TL_RELATION_SAME,   "1:1",   "the same ones")                                           \
    X(TL_RELATION_WINDOW, "k/s/p", "those under its windows, as a convolution or a pool has them") \
    X(TL_RELATION_UP,     "up",    "row i / stride for row i, as an upsampling has them")         \
    X(TL_RELATION_PART,   "part",  "all rows of a part that no other node reads: keys beside queries")

typedef enum tl_tensor_format { TL_TENSOR_FORMATS(TLI_ENUM) TL_TENSOR_FORMAT_COUNT } tl_tensor_format;
typedef enum tl_relation_kind { TL_RELATIONS(TLI_ENUM) TL_RELATION_COUNT } tl_relation_kind;

// How the rows of an input relate to those of output 0. Row i of a window reads the rows i stride - padding +
// j dilation, j = 0 .. kernel - 1, of which those outside the input are padding.
typedef struct tl_relation {
    int32_t kind;      // tl_relation_kind; 0 = TL_RELATION_WHOLE
    int32_t kernel;    // of a window: its rows, > 0; else 0
    int32_t stride;    // of a window and of TL_RELATION_UP: > 0; else 0
    int32_t padding;   // of a window: rows before the first, at most dilation (kernel - 1); else 0
    int32_t dilation;  // of a window: 0 = 1; else 0
} tl_relation;

// A constant: weights of an inference, a bias, scales, a weight that is never trained. It takes flash, not RAM.
typedef struct tl_stored {
    uint64_t bytes;    // > 0
    int32_t  node;     // of the graph: who reads it, or the frozen state that it is; of a desc: not read
    int32_t  format;   // tl_tensor_format, not TL_TENSOR_FORMAT_NONE
} tl_stored;

#define TL_COPIES_IN_TURN (-1)      // tl_device.copy_channels

#define TL_ONCE_LATE 2              // tl_node_desc.once: and its outputs are made by its backward
#define TL_SCRATCH_NONE UINT64_MAX  // tl_node_desc.swork_bytes: 0 bytes, though a plain forward takes some

// A node to add. Zero is the default everywhere; arrays are read during the call only.
typedef struct tl_node_desc {
    const char      *name;          // 0 = "n<id>"; UTF-8 without spaces; names are unique
    const char      *op;            // 0 = "op"; "input" = graph input: resident throughout, costs 0
    const tl_tensor *inputs;        // [input_count] each made by a node above
    int32_t          input_count;
    const uint64_t  *output_bytes;  // [output_count]
    int32_t          output_count;  // > 0
    const char      *needs;         // what backward reads, as in .tlg: "in", "out", "in0,out1"; 0 = "none" (of
                                    // tl_op, tl_layer and tl_add_chain it is "in")
    uint64_t fwd_cost, bwd_cost;    // of one call
    uint64_t saved_bytes;           // made by FORWARD_SAVE, read by backward only
    uint64_t fwork_bytes, bwork_bytes;  // scratch alive during the call
    uint64_t param_bytes;           // weights
    const char *unit;               // "attention", "ffn" or other, for checkpoint configs; 0 = none
    int32_t  layer;                 // layer number + 1; 0 = belongs to no layer
    int32_t  inplace;               // input that output 0 may overwrite + 1; 0 = none
    int32_t  no_grad;               // 1 = no backward, nobody computes a gradient for its outputs
    int32_t  keep;                  // 1 = its outputs are results: resident at the end
    int32_t  fixed;                 // 1 = bytes and costs do not scale with the batch
    int32_t  takes_blocks;          // 1 = its kernels may be called for a range of elements, see tl_kernel_call
    int32_t  dynamic;               // 1 = output_bytes are an upper bound, its forward reports the bytes
    int32_t  once;                  // 1 = forward has an effect and never runs again in a pass; TL_ONCE_LATE
    int32_t  origin;                // the caller's node from which it comes + 1; 0 = its own id; -1 = from none
    uint64_t swork_bytes;           // scratch of FORWARD_SAVE; 0 = fwork_bytes; TL_SCRATCH_NONE = none
    int32_t  dies;                  // 1 = of an input: a plan may free it, so it is written before each pass
    tl_state state;                 // 0 = no state; tl_add_state sets it
    int32_t  weight_rows, piece_rows;   // as in tl_state_desc; rows also of param_bytes
    uint64_t rows;                  // of output 0: it may be called for a range of them; 0 = it may not
    int32_t  row_axis;              // the axis of the rows, 0 .. 7; 0 is that of the batch
    const tl_relation *relations;   // [input_count] how the rows of each input relate; 0 = all are read whole
    uint64_t row_unit;              // rows come in multiples of it; 0 = 1
    int32_t  ordered;               // 1 = what is added up over rows, row after row, has the bits of the whole
    int32_t  reduces;               // 1 = output 0 is a sum over the rows, or a mean: it is whole in each call
    int32_t  stream;                // 1 = of an input: its rows are loaded in order, once
    const uint8_t *formats;         // [output_count] tl_tensor_format; 0 = none is declared
    const tl_stored *stored;        // [stored_count] constants that it reads
    int32_t  stored_count;
} tl_node_desc;

// A state to add: a weight with what belongs to it. Zero is the default everywhere.
typedef struct tl_state_desc {
    const char     *name;           // 0 = "n<id>"
    const char     *op;             // of its update, as "adamw"; 0 = "state". Not "input"
    uint64_t        bytes;          // of the weight, and of its gradient
    const uint64_t *moment_bytes;   // [moment_count] what the optimizer keeps of it; read during the call only
    int32_t         moment_count;   // of a trained state
    tl_state        kind;           // 0 = TL_STATE_TRAINED
    uint64_t        update_cost;    // of one update
    uint64_t        update_work_bytes;  // scratch during the update
    const char     *unit;           // as in tl_node_desc
    int32_t         layer;          // as in tl_node_desc
    int32_t         weight_rows;    // of the weight and of each moment: tl_apply_pieces may train it by these;
                                    // 0 = as a whole alone
    int32_t         piece_rows;     // of TL_STATE_PIECES: rows of a piece
    tl_tensor_format weight_format; // as the weight is stored; 0 = not declared
    const uint8_t  *moment_formats; // [moment_count] tl_tensor_format; 0 = none is declared
} tl_state_desc;

// A node of a graph; tl_add_node makes it, users read it.
typedef struct tl_node {
    uint32_t name, op, unit;        // offsets into tl_graph.text; tl_name_node() and friends
    int32_t  first_input, input_count;    // into tl_graph.inputs
    int32_t  first_output, output_count;  // into tl_graph.outputs
    int32_t  inplace;               // input index, -1 = none
    int32_t  layer;                 // layer number, -1 = none
    uint8_t  is_input;              // 1 = a graph input or a state: resident throughout, no forward;
                                    // 2 = a graph input that dies: resident from the start on
    uint8_t  has_grad;              // 1 = it has a backward; of a state that is its update
    uint8_t  keep, fixed;           // as in tl_node_desc
    uint64_t fwd_cost, bwd_cost, saved_bytes, fwork_bytes, bwork_bytes, param_bytes;  // as in tl_node_desc
    uint8_t takes_blocks;           // its kernels may be called for a range of elements
    uint8_t dynamic;                // the bytes of its outputs are an upper bound
    uint8_t once;                   // its forward has an effect and never runs again in a pass; TL_ONCE_LATE
    uint8_t state;                  // tl_state; the outputs of a state are the weight and its moments
    int32_t origin;                 // the caller's node, see tl_add_node; -1 = the library made it by itself
    uint64_t swork_bytes;           // scratch of FORWARD_SAVE
    int32_t  weight_rows, piece_rows;   // as in tl_node_desc
} tl_node;

typedef struct tl_node_input {
    int32_t tensor;                 // index into tl_graph.outputs
    uint8_t needed;                 // 1 = the node's backward reads it
} tl_node_input;

typedef struct tl_node_output {
    int32_t  node;                  // the node that makes it
    int32_t  output;                // which of the node's outputs
    uint64_t bytes;                 // of the tensor
    uint8_t  needed;                // 1 = the node's own backward reads it
    uint8_t  format;                // tl_tensor_format
} tl_node_output;

typedef struct tl_view {
    uint32_t name;                  // offset into tl_graph.text
    int32_t  tensor;                // its storage: index into tl_graph.outputs, never a view
} tl_view;

// Of a node that may be called for ranges of rows, see tl_check_graph.
typedef struct tl_node_rows {
    uint64_t rows, unit;            // of output 0; they come in multiples of unit, which is > 0
    int32_t  node;                  // which one
    int32_t  first_relation;        // into tl_attributes.relations, one for each of its inputs
    uint8_t  axis;                  // of the rows
    uint8_t  ordered, stream, reduces;  // as in tl_node_desc
} tl_node_rows;

// What few nodes have. The arrays are in the order of nodes, and what belongs to one follows what belongs to
// the one before.
typedef struct tl_attributes {
    const tl_node_rows *rows;       int32_t row_count;       // nodes with rows
    const tl_relation  *relations;  int32_t relation_count;  // of all inputs of these
    const tl_stored    *stored;     int32_t stored_count;    // constants
    int32_t row_capacity, relation_capacity, stored_capacity;  // entries with room
} tl_attributes;

// A graph. Users read the arrays and change them through the calls below only. An array whose
// capacity is 0 does not belong to the graph (it may be a const table): it is copied before it
// grows, and never released. Attributes belong to it where its outputs do.
typedef struct tl_graph {
    const tl_node        *nodes;    int32_t node_count;     // [node_count] topological order
    const tl_node_input  *inputs;   int32_t input_count;    // of all nodes, one after the other
    const tl_node_output *outputs;  int32_t tensor_count;   // of all nodes, one after the other
    const tl_view        *views;    int32_t view_count;     // see tl_add_view
    const char           *text;     uint32_t text_bytes;    // names, each ended by 0; the one at 0 is empty
    uint64_t        batch;                            // samples that bytes and costs stand for; 0 = unknown
    int32_t         node_capacity, input_capacity, tensor_capacity, view_capacity;  // entries with room
    uint32_t        text_capacity;                    // bytes with room
    const tl_attributes *attributes;                  // 0 = no node has any
} tl_graph;

// Initialise an empty graph; release it with tl_free_graph. A zeroed tl_graph is an empty graph,
// too.
TLDEF void tl_init_graph(tl_graph *graph);
TLDEF void tl_free_graph(tl_env *env, tl_graph *graph);

// Add a node at the end. Every rule of tl_check_graph that concerns one node is checked; unique
// names and sums over the graph are left to tl_check_graph.
//
//   desc   not changed; its arrays and texts are copied
//   id     may be NULL; receives the id of the new node
//
// once is for a forward with an effect: it updates statistics, draws from a generator that cannot be set
// back, reads a stream. It runs at most once in a pass; so what it makes is kept, spilled or compressed
// until its last use, and where it has saved bytes and a backward, its only run is the FORWARD_SAVE. With
// TL_ONCE_LATE the forward claims the outputs only, and the backward, which needs them, makes them: a loss
// that is computed block by block together with its gradients (tl_cut_rows). No node reads them.
//
// dies is for an input whose bytes may be used for other tensors behind its last read. It takes the steps that
// free and copy tensors (DROP, SPILL, FETCH, WAIT, DROP_HOST); gone without a host copy it cannot be read again
// in the pass. Whatever the plan frees, a pass uses it up: a run refuses a pass before which it was not written
// (that of TL_ONLY_TABLES does not notice), and to write it releases the results of the pass before.
//
// origin names the node of the caller's graph from which a node of the planned graph comes: what a client
// keeps for each node, weights among them, is found by it, whatever fusion (tl_plan_fusion), other formats
// (tl_apply_precision) and a compiled plan have made of the graph. Such a graph keeps the origins of the graph
// from which it is made. A fused node has that of its first member that has one; a conversion has -1: it has no
// weights, and its producer is another node. In a graph that was built by tl_add_node without origins, each
// node's is its own id. Text (.tlg) does not hold it.
//
// Names, ops and units are 1 to 255 bytes of UTF-8 without control characters, spaces, # and =. With TL_NO_TEXT
// bytes beyond ASCII are not checked.
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW. On error the graph is as
//          it was, and *id is 0.
// Cost:    amortised O(inputs + outputs + length of the names).
// Threads: one graph per thread while it is built; a finished graph may be read by many.
TLDEF tl_result tl_add_node(tl_env *env, tl_graph *graph, const tl_node_desc *desc, int32_t *id);

// Add a state at the end: a node with the weight as output 0 and its moments as the outputs behind it. Nodes
// below read the weight as any tensor, and say in needs whether their backward reads it; moments are read by
// the update alone. There is a gradient of the weight where a node with a backward reads it; each such
// backward adds to it. No forward that reads the weight runs behind its update in a pass. A gradient that a
// state holds is cleared by the run, before the first pass that adds to it.
//
// Statistics are changed by first forwards, and read by forwards that run again. So a node whose outputs follow
// from statistics that it, or a node below it, changes has to be marked once: planners do not know which
// readers change them.
//
// A state that is trained in pieces is read once, by a node with a backward that takes no blocks. This has the
// costs of the updates in its bwd_cost, and in bwork_bytes the scratch of both kernels and behind that, from a
// multiple of 16 and of the alignment on, room for a piece of the gradient.
//
//   desc     not changed; its arrays and texts are copied
//   weight   may be NULL; receives output 0 of the new node
//
// Errors:  as tl_add_node. On error the graph is as it was, and *weight is zero.
TLDEF tl_result tl_add_state(tl_env *env, tl_graph *graph, const tl_state_desc *desc, tl_tensor *weight);

#ifndef TL_NO_PLANNERS
// Make the inputs that are no results ones that die (tl_node_desc.dies): plans may free them then.
TLDEF void tl_let_inputs_die(tl_graph *graph);

// Make every trained state hold its gradient (TL_STATE_HELD), so that several passes add to it before
// one updates: what micro-batches need. Nodes and names stay as they are, tensors behind a state get other
// indices.
//
// Errors:  those of tl_check_graph; TL_ERROR_UNSUPPORTED: a state is trained in pieces; TL_ERROR_NO_MEMORY,
//          TL_ERROR_OVERFLOW. On error the graph is as it was.
TLDEF tl_result tl_hold_gradients(tl_env *env, tl_graph *graph);

// Make every frozen state a constant: its weight takes flash and not RAM, as stored constants of nodes do
// (tl_node_desc.stored), for plans that become C code (tl_write_plan_code), where const data is read where it
// is. Its tensor has 0 bytes then, so a run of such a graph is refused. Nodes, names and tensors stay as they
// are; where no format is declared it is f32.
//
// Errors:  those of tl_check_graph; TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW. On error the graph is as it was.
TLDEF tl_result tl_store_frozen(tl_env *env, tl_graph *graph);

// Make the graph of one of several equal parts of a batch, which run one after the other. Bytes and costs of
// nodes that are not fixed are divided, costs and scratch rounded up; rows along axis 0, too, and left out
// where they do not divide by units. What a node with reduces makes keeps its bytes. Nodes, names and indices
// stay as they are.
//
//   parts   > 0; a divisor of graph->batch
//   part    overwritten; release with tl_free_graph
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG: parts do not divide the batch, or a tensor into whole
//          elements; TL_ERROR_UNSUPPORTED: a trained state does not hold its gradient; TL_ERROR_NO_MEMORY.
//          *part is empty then.
TLDEF tl_result tl_split_graph(tl_env *env, const tl_graph *graph, int32_t parts, tl_graph *part);

typedef struct tl_pieces_desc {
    const tl_graph *graph;          // not NULL
    uint64_t        piece_bytes;    // most of a gradient at a time, but at least one row
    uint64_t        alignment_bytes;  // pieces of weight and moments begin at multiples of it; 0 = 1, else a
                                      // power of two
    uint64_t        call_cost;      // of each further call of a kernel
} tl_pieces_desc;

// Make a graph in which no gradient of more than piece_bytes is there whole, where that can be: each larger
// trained state with rows whose weight is read once, by a node of the caller with a backward that takes no
// blocks, becomes one of TL_STATE_PIECES, unless with it alone that backward would take no fewer bytes. Its
// reader takes over the costs of the update, those of the further calls, and a piece of the gradient in its
// bwork_bytes. Weights and moments get the same bits as without, if the kernel of the reader makes the rows of
// a gradient independently of each other. Nodes, names and tensors stay as they are.
//
//   graph   overwritten; release with tl_free_graph
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG; TL_ERROR_OVERFLOW: costs; TL_ERROR_NO_MEMORY. *graph
//          is empty then.
// Cost:    O(nodes + inputs) for each state with rows, and that of tl_check_graph.
TLDEF tl_result tl_apply_pieces(tl_env *env, const tl_pieces_desc *desc, tl_graph *graph);
#endif

// id, name, where the states stand
#define TL_UPDATES(X) \
    X(TL_UPDATES_FUSED, "fused", "each above its first reader: updated as soon as its gradient is complete") \
    X(TL_UPDATES_END,   "end",   "above all other nodes: updated when every gradient is complete")

typedef enum tl_updates { TL_UPDATES(TLI_ENUM) TL_UPDATES_COUNT } tl_updates;

#ifndef TL_NO_PLANNERS
typedef struct tl_optimizer_desc {
    const tl_graph *graph;          // not NULL
    const char     *op;             // of the updates, as "adamw"; 0 = "state"
    int32_t         moment_count;   // a weight has, each of its bytes: SGD 0, momentum 1, AdamW 2; at most 16
    tl_updates      updates;        // where the states of the new graph stand
    uint64_t        bytes_per_second;  // at which an update reads and writes; 0 = its bytes take no time
    uint64_t        call_cost;      // of an update, beside that
    int32_t         keeps_weights;  // 1 = param_bytes stay as they are: only the states move
    int32_t         clips;          // 1 = a node "clip" right below the states, see below; TL_UPDATES_END alone
} tl_optimizer_desc;

// Make a graph that owns its weights: those of a node that has param_bytes become a state "<name>.w" of as many
// rows, which the node reads as its last input, in its backward, too; of a node without a backward it is
// frozen. States that the graph has already stay as they are, at the place that desc->updates says.
//
//   graph   overwritten; release with tl_free_graph. Its nodes have other ids than desc's, and keep their
//           origins; a state has that of the node whose weights it holds, and "clip" none
//
// Clipping by the norm of all gradients is the backward of a node that reads all weights and stands above every
// other node with a backward: it runs when every gradient is complete, before the first update, finds them
// all as its input_grads, and multiplies each by the factor. A node clips if its op is "clip", it reads nothing
// but weights that are trained, and nobody reads its output. Its backward is called in passes that update
// states alone: not in those to whose gradients others add (repeat_count, tl_skip_updates). Its output, and the
// gradient of that, hold nothing that it goes by.
//
// Errors:  those of tl_check_graph and tl_add_node; TL_ERROR_INVALID_ARG; TL_ERROR_OVERFLOW: the cost of an
//          update. *graph is empty then.
// Cost:    O(nodes + inputs), and that of tl_check_graph.
TLDEF tl_result tl_apply_optimizer(tl_env *env, const tl_optimizer_desc *desc, tl_graph *graph);

// Name a place of updates; "?" if it is out of range.
TLDEF const char *tl_name_updates(tl_updates updates);  // "fused"
#ifndef TL_NO_TEXT
// Parse exactly what tl_name_updates returns: 1 and the value, or 0.
TLDEF int tl_parse_updates(const char *text, tl_updates *updates);
#endif
#endif

// Add a view: a second name of a tensor (a reshape, a transpose), without bytes and without a node
// of its own. tl_find_tensor resolves the name of a view to the tensor that holds the bytes, also
// for a view of a view.
//
//   storage   may be NULL; receives the tensor that holds the bytes
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW. A name that is already
//          taken is reported by tl_check_graph.
TLDEF tl_result tl_add_view(tl_env *env, tl_graph *graph, const char *name, tl_tensor of, tl_tensor *storage);

// Find a tensor by the name of its node ("conv1": output 0), else by the name of a view, else by
// node name and output ("split.2"), else by id ("3", "3.1").
//
// Errors:  TL_ERROR_NOT_FOUND.
// Cost:    O(nodes + views).
TLDEF tl_result tl_find_tensor(tl_env *env, const tl_graph *graph, const char *name, tl_tensor *tensor);

// A layer chain to make: node 0 is the input, node i reads node i-1.
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

// Make a graph that is a layer chain, in one call. Layer i is node i+1 and carries layer number i.
//
//   graph   overwritten, unlike that of tl_add_node, and not freed before; release with tl_free_graph
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; *graph is empty then.
TLDEF tl_result tl_add_chain(tl_env *env, tl_graph *graph, const tl_chain_desc *desc);

// Check every rule of a graph, also of one whose arrays were made by hand: at least one node,
// inputs above their node, at least one output each, indices and text offsets in range, unique
// names of nodes and views, graph inputs with nothing but bytes, in place only where the bytes are
// equal and the overwritten tensor is no graph input, bwd, bwork, saved and needs only where there
// is a gradient, and within 64 bits the sums of all bytes (each output twice, because of its
// gradient), of all costs and of all weights. A node without a gradient may read a node that has
// one, and the other way round: no gradient passes between the two.
//
// takes_blocks is for nodes whose kernels work element by element: a kernel may then be called for the elements
// first .. first + count - 1 of every operand that has as many elements as output 0 (tl_kernel_call). So all
// outputs have the same bytes, and inputs to which a gradient passes have them, too. Other inputs may have
// others (a row that is added to each): they are given whole in every call, unless they have as many elements
// in another format. Scratch is given whole, its content undefined in each call. There are no saved bytes, of
// which nobody knows the part of a range.
//
// dynamic is for nodes of which only the kernel knows how many bytes it makes (tl_report_bytes). No graph input
// is; no node that takes blocks is, or reads what one made; nothing is overwritten in place by a dynamic node,
// nor what it made.
//
// rows is for nodes that can be called for a range of rows of output 0 along an axis: as many as row_unit, or a
// multiple of it, which divides rows. relations say which rows of each input such a call reads:
//
//     1:1   row i           3/2/1   i-th window of 3 rows, 2 apart, 1 of padding before the first row
//     whole all of them     up2     row i / 2
//
// Bytes of output 0, unless it is of 4 bits, and saved bytes are as many for each row. So no dynamic node has
// rows, nor a state. Rows along axis 0 are those of the batch: they scale with it, unless the node is fixed.
// Relations are not compared with the rows of the nodes that make the inputs. An input that has rows may be a
// stream: at most one node reads it, and it is no result.
//
// Formats and constants are as declared: no sum of bytes depends on them. What would change the bytes of a
// tensor as if it were f32, and compression, refuses one that is declared to have another format: the other
// precisions of [7], [9] and [12], and codecs of [6].
//
// Regions of rows (tl_plan_rows) go by them. A call for some rows gets as much of fwork_bytes as these are of
// all rows, rounded up. All other planners plan as without, with a stream resident like any other input, and
// none goes by constants. Rows, streams and constants are kept where graphs are made from graphs:
//
//     tl_plan_fusion       a fused node has rows where all members have the same and each reads the one before
//                          by 1:1; its row_unit is the least common multiple; it is ordered if all are
//     tl_apply_precision   and every other change of bytes: kept where bytes still divide by rows; a conversion
//                          has the rows of what it reads, in units of theirs
//     tl_compile           a part of the batch: rows along axis 0 of nodes that are not fixed are divided, or
//                          are left out where they do not divide by units
//     tl_apply_optimizer   the weight that a node reads as its last input is read whole
//     tl_let_inputs_die, tl_hold_gradients, several ranks: kept as they are
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_OVERFLOW, TL_ERROR_NO_MEMORY.
// Cost:    O(nodes + inputs), and O(n log n) to compare n names, for any choice of names.
TLDEF tl_result tl_check_graph(tl_env *env, const tl_graph *graph);

// Check every rule of a device: finite, not negative, alignment a power of two, known precisions.
//
// Errors:  TL_ERROR_INVALID_ARG.
TLDEF tl_result tl_check_device(tl_env *env, const tl_device *device);

// Name a node, its op or its unit: a text of the graph; "?" if there is no such node.
TLDEF const char *tl_name_node(const tl_graph *graph, int32_t node);  // "conv1"
TLDEF const char *tl_name_op(const tl_graph *graph, int32_t node);    // "conv2d"
TLDEF const char *tl_name_unit(const tl_graph *graph, int32_t node);  // "attention"; "" = none

// Sum param x (1 + gradient_ratio + optimizer_ratio) over the nodes: the part of the budget that is
// the same for every plan. AdamW in f32 keeps two numbers per weight: optimizer_ratio 2. The sum is
// exact for ratios with up to 32 binary digits after the point, else rounded up.
//
// Errors:  TL_ERROR_OVERFLOW, TL_ERROR_INVALID_ARG: a ratio is negative or not finite.
TLDEF tl_result tl_find_base_bytes(tl_env *env, const tl_graph *graph, double gradient_ratio,
                                   double optimizer_ratio, uint64_t *base_bytes);

#ifndef TL_NO_TEXT
// Write a graph as .tlg text of version 2; tl_parse_graph reads the same graph back, but for its views and the
// origins of its nodes, which the text does not hold.
TLDEF size_t tl_print_graph(const tl_graph *graph, char *buf, size_t size);

// Read .tlg text:
//
//     tlg 2
//     batch 32
//     node <id> <name> <op> fwd=<cost> bwd=<cost> out=<bytes[,bytes..]> needs=<..> in=<tensors or ->
//          [saved=] [fwork=] [bwork=] [swork=] [param= [wrows=<n>]] [inplace=<k>] [layer=<n>] [unit=<name>]
//          [grad=no] [keep] [once] [late] [dynamic] [takes_blocks] [fixed] [dies]
//          [rows=<n>@<axis> rin=<relation,..> [row_unit=<n>] [ordered] [reduces] [stream]]
//          [format=<format,..>] [stored=<bytes>:<format>,..]
//     state <id> <name> <op> w=<bytes> [m=<bytes,..>] [upd=] [uwork=] [layer=<n>] [unit=<name>]
//          [wrows=<n> [piece=<n>]] [hold] [frozen] [stat] [wfmt=<format>] [mfmt=<format,..>]
//          [stored=<bytes>:<format>]
//     end <nodes>
//
// Relations are 1:1, whole, part, up<stride> and <kernel>/<stride>/<padding>[/<dilation>], one for each input;
// rin is left out where there are none. Formats are f32, f16, bf16, i32, i16, i8, i4 and, where an output or a
// moment has none, none.
//
// with one node per line, ids 0, 1, 2, ..., attributes in any order, # comments; batch may be left
// out, and swork, which is fwork then. The last line says how many nodes there are, and nothing but empty
// lines and comments follows it: so a text that was cut is refused. One that starts with tlg 1 has no such
// line. A byte order mark of UTF-8 at the start is skipped. Any text is safe to read: every number is checked
// before it is used.
//
//   graph   overwritten (not freed); release with tl_free_graph
//
// Errors:  TL_ERROR_PARSE, and those of tl_check_graph, with the line; *graph is empty then.
// Cost:    O(length), and the comparison of names as in tl_check_graph.
TLDEF tl_result tl_parse_graph(tl_env *env, const char *text, size_t length, tl_graph *graph);

#ifndef TL_NO_STDIO
// Read or write a file of .tlg text. A file is replaced when the new one is whole (tl_init_file_sink).
//
// Errors:  TL_ERROR_IO names the path; those of tl_parse_graph, *graph is empty then; those of
//          tl_init_file_sink, and an older file at the path is unchanged.
TLDEF tl_result tl_read_graph(tl_env *env, const char *path, tl_graph *graph);
TLDEF tl_result tl_write_graph(tl_env *env, const tl_graph *graph, const char *path);
#endif
#endif

#ifndef TL_NO_PLANNERS
// -- layers --
//
// Nodes whose bytes and costs are computed from shapes:
//
//     shape.batch = 8; shape.channels = 3; shape.height = shape.width = 256;
//     conv.channels = 64; conv.kernel = 3; norm.activation = TL_ELEMENTWISE_RELU;
//     if (tl_add_input(&env, &graph, "x", shape, TL_PRECISION_SINGLE, &x) ||
//         tl_add_conv2d(&env, &graph, &conv, x, &x) || tl_add_batch_norm(&env, &graph, &norm, x, &x)) ...
//
// Letters: B batch, C channels and H x W positions of the input; E elements of the result; T
// tokens, which are positions. Costs are FLOP: 2 for a multiplication with its addition, also where
// a tap of a window falls into the padding, 1 for adding a bias, and 1 per element for an
// elementwise operation. Backward costs twice the forward where there are weights or two matrices
// are multiplied, else the same. Bytes are elements x the size of the precision. Caches, workspaces
// and statistics of your kernels are not included: give them as saved_bytes, fwork_bytes and
// bwork_bytes of the desc.

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
    X(TL_ATTENTION_TILED,  "tiled",  "one node: made again tile by tile, one number a row is saved") \
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

// The extents of a tensor; 0 means 1. Rows are {B, C, 1, 1}, sequences {B, C, T, 1}, images {B, C,
// H, W}.
typedef struct tl_shape {
    uint64_t batch, channels, height, width;  // in elements
} tl_shape;

// A tensor of a graph with its precision and shape: what layers read and make.
typedef struct tl_value {
    tl_tensor    tensor;
    tl_precision precision;  // of its elements: full and f64 8 bytes, f32 and mixed 4, f16 and bf16 2
    tl_shape     shape;      // never 0 in a value that a layer made
} tl_value;

#define TL_NO_PADDING UINT64_MAX  // tl_layer_desc.padding: none at all

// The parameters of a layer. Zero is the default; a layer refuses fields that it does not use. Of
// two-dimensional fields, the first is for the height; a width of 0 means that of the height.
typedef struct tl_layer_desc {
    const char *name;           // 0 = "n<id>"
    const char *unit;           // as in tl_node_desc
    int32_t  layer;             // layer number + 1; 0 = belongs to no layer
    int32_t  no_grad, keep;     // as in tl_node_desc
    int32_t  precision;         // tl_precision of the result + 1; 0 = that of the first input
    tl_elementwise activation;  // applied in place by the same node: relu, sigmoid or tanh; 0 = none
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
    uint64_t saved_bytes, fwork_bytes, bwork_bytes;  // of your kernels, added to those of the layer
    int32_t  takes_blocks;      // 1 = your kernels go by call->first and call->count (tl_node_desc); read by
                                // tl_add_elementwise alone
    int32_t  once;              // as in tl_node_desc: where your kernels update statistics, say
} tl_layer_desc;

// The calls below add one node each (attention: one or three). The comment names the op of the
// node, its cost, what its backward needs, and the fields of the desc that it uses. All of them use
// name, unit, layer, no_grad, keep, once, precision, saved_bytes, fwork_bytes and bwork_bytes as well.
//
//   desc     0 = all defaults
//   output   overwritten with the result; may point to the input
//
// Errors:  TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY; TL_ERROR_OVERFLOW: bytes or costs do not fit 64
//          bits. On error the graph is as it was, and *output is all zero.
// Threads: as tl_add_node.

// Add a graph input. If the graph has no batch yet, that of the shape becomes it.
TLDEF tl_result tl_add_input(tl_env *env, tl_graph *graph, const char *name, tl_shape shape,
                             tl_precision precision, tl_value *output);

// Add a dense layer (op linear): each position is multiplied by a matrix. (2 C + 1) E forward, 2 C
// E without bias; with flatten C H W in the place of C; needs in. Fields: channels, no_bias, flatten,
// activation.
TLDEF tl_result tl_add_dense(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                             tl_value *output);

// Add a convolution (op conv2d). (2 C kernel kernel_width / groups + 1) E forward; needs in.
// Fields: channels, kernel, stride, padding, dilation, groups, no_bias, activation.
TLDEF tl_result tl_add_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                              tl_value *output);

// Add a convolution (op conv2d) with as many groups as the input has channels: each channel is convolved alone.
// Fields: as tl_add_conv2d, but no groups.
TLDEF tl_result tl_add_depthwise_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                        tl_value input, tl_value *output);

// Add a transposed convolution (op convt2d): height becomes (H - 1) stride + dilation (kernel - 1)
// + 1 - 2 padding. Every element of the input is multiplied by each tap: 2 B C H W channels kernel
// kernel_width / groups + E forward; needs in. Fields: as tl_add_conv2d.
TLDEF tl_result tl_add_transposed_conv2d(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                                         tl_value input, tl_value *output);

// Add a pool: E x the size of its window, forward and backward; needs in for maxpool, else none.
// Fields: kernel, stride, padding; for a global pool height and width, and its window is then
// ceil(H / height) x ceil(W / width).
TLDEF tl_result tl_add_pool(tl_env *env, tl_graph *graph, tl_pool kind, const tl_layer_desc *desc,
                            tl_value input, tl_value *output);

// Add an upsampling (op upsample): height x stride, width x stride. E x kernel x kernel_width
// forward and backward, where kernel 0 or 1 is nearest and 2 is bilinear; needs none. Fields:
// kernel, stride.
TLDEF tl_result tl_add_upsample(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                tl_value *output);

// Add a normalisation (op bn or layernorm) with a scale and a bias per channel: E forward, 2 E
// backward; needs in. Statistics are not counted, because they are small and backward computes them
// again. Fields: no_bias, activation, inplace.
TLDEF tl_result tl_add_batch_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output);
TLDEF tl_result tl_add_layer_norm(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                  tl_value *output);

// Add an elementwise node: E forward and backward; add, sub and mul: E for each input but the
// first. Each extent of a further input must be 1 or that of the first input. Dropout saves no
// mask: backward computes it again from the random state. With desc->takes_blocks the node says so where all
// inputs have the shape and precision of the result and desc asks for no saved bytes.
//
//   input_count   add, mul: 2 or more; sub: 2; the others: 1
//
// Fields: activation, inplace, takes_blocks.
TLDEF tl_result tl_add_elementwise(tl_env *env, tl_graph *graph, tl_elementwise kind,
                                   const tl_layer_desc *desc, const tl_value *inputs, int32_t input_count,
                                   tl_value *output);

// Add a softmax over the channels (op softmax): E forward and backward; needs out. Fields: inplace.
TLDEF tl_result tl_add_softmax(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                               tl_value *output);

// Add an embedding (op embedding): the row of a table for each id. E forward, 2 E backward; needs
// in; vocabulary x channels weights. Fields: vocabulary, channels (> 0).
//
//   input   ids, one per position: 1 channel, elements of any precision
TLDEF tl_result tl_add_embedding(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                                 tl_value *output);

// Add attention of T tokens to S tokens. Scores and weights have N = B heads T S elements; the
// products Q K^T and weights x V cost 2 B T S C each, softmax N.
//
//   stored   one node of op attention: forward both products and N, backward the products twice and
//            N; needs in; saves the N weights; fwork N (the scores), bwork N (their gradients)
//   tiled    one node of op attention: forward the same; backward computes Q K^T and the weights
//            again: 5/2 of the products and 2 N; needs in,out; saves the logarithm of the sum of
//            each of the B heads T rows, stored as an element of at least 4 bytes, and bwork is
//            as large. Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 3
//   split    three nodes of ops bmm, softmax and bmm, named <name>_qk, _softmax and _av; the
//            products need in, softmax needs out
//
//   inputs   1: queries, keys and values in one tensor of 3 C channels; or 3: of C channels, the
//            last two of S tokens
//
// Fields: heads; saved_bytes, fwork_bytes and bwork_bytes must be 0 for split.
TLDEF tl_result tl_add_attention(tl_env *env, tl_graph *graph, tl_attention kind, const tl_layer_desc *desc,
                                 const tl_value *inputs, int32_t input_count, tl_value *output);

// Add one step of a recurrent layer with U channels of state and G gates. The products cost B G U
// (2 (C + U) + 1) forward and twice that backward; the gates and the new state cost G E, plus 4 E
// (gru) or 5 E (lstm), forward and again backward. rnn needs in,out; gru needs in and lstm in,out1,
// and both save their gates.
//
//   state       [1], for lstm [2]: hidden and cell; one position
//   new_state   [1] or [2] overwritten; may point to the state
//
// Fields: no_bias. The result has the channels of the state.
TLDEF tl_result tl_add_recurrent(tl_env *env, tl_graph *graph, tl_cell kind, const tl_layer_desc *desc,
                                 tl_value input, const tl_value *state, tl_value *new_state);

// Add a concatenation or a split (op concat, split) along the channels: E forward and backward, for
// a split summed over all parts; needs none.
//
//   channels   [output_count] of each part; 0 = equal parts
TLDEF tl_result tl_add_concat(tl_env *env, tl_graph *graph, const tl_layer_desc *desc,
                              const tl_value *inputs, int32_t input_count, tl_value *output);
TLDEF tl_result tl_add_split(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                             const uint64_t *channels, int32_t output_count, tl_value *outputs);

// Add a loss (op loss): softmax with cross entropy, or any other that reads its input once. 1 per
// element of the input forward and backward; needs in. The result has one element per sample.
//
//   labels   0 = not part of the graph
TLDEF tl_result tl_add_loss(tl_env *env, tl_graph *graph, const tl_layer_desc *desc, tl_value input,
                            const tl_value *labels, tl_value *output);

// Name a kind; "?" if it is out of range.
TLDEF const char *tl_name_elementwise(tl_elementwise kind);  // "relu"
TLDEF const char *tl_name_pool(tl_pool kind);                // "maxpool"
TLDEF const char *tl_name_attention(tl_attention kind);      // "tiled"
TLDEF const char *tl_name_cell(tl_cell kind);                // "lstm"
#ifndef TL_NO_TEXT
// Parse exactly what the tl_name_ function returns: 1 and the value, or 0.
TLDEF int tl_parse_elementwise(const char *text, tl_elementwise *kind);
TLDEF int tl_parse_pool(const char *text, tl_pool *kind);
TLDEF int tl_parse_attention(const char *text, tl_attention *kind);
TLDEF int tl_parse_cell(const char *text, tl_cell *kind);
#endif

// -- statistics --

// Sums over all nodes of one op.
typedef struct tl_op_statistics {
    const char *op;             // a text of the graph
    int32_t  node_count;        // nodes of the op
    uint64_t output_bytes, saved_bytes, param_bytes;  // sums
    uint64_t fwd_cost, bwd_cost;      // sums
} tl_op_statistics;

// Statistics of a graph. The floor is the largest working set of all calls that every plan makes:
// graph inputs, what the call reads and makes, its gradients, saved bytes and scratch. No plan has
// a lower peak.
typedef struct tl_graph_statistics {
    const tl_op_statistics *ops;  // [op_count] in order of first appearance
    const int32_t *cuts;        // [cut_count] cut nodes: nothing made before one is read after it
    int32_t  op_count, cut_count;
    int32_t  node_count, tensor_count;  // of the graph, its inputs included
    int32_t  input_node_count;  // graph inputs
    int32_t  grad_node_count;   // nodes with a backward
    int32_t  depth;             // nodes of the longest path
    int32_t  width;             // largest number of tensors still to be read between two nodes of the list
    tl_tensor largest_tensor;
    uint64_t largest_bytes;     // bytes of largest_tensor
    uint64_t output_bytes, saved_bytes, param_bytes;  // sums
    uint64_t fwd_cost, bwd_cost;      // sums
    uint64_t floor_bytes;       // of training, without weights
    int32_t  floor_node;        // the first node with a call of that working set
    int32_t  floor_is_backward; // 1 = the call is its backward
    uint64_t inference_floor_bytes;   // of a forward alone, without weights
    int32_t  inference_floor_node;    // the first node with a forward of that working set
    uint64_t keep_all_bytes;    // peak of training that keeps all that backward reads (tl_plan_keep_all)
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
// Write statistics as a table for people to read, one op per line.
TLDEF size_t tl_print_graph_statistics(const tl_graph *graph, const tl_graph_statistics *statistics,
                                       char *buf, size_t size);
#endif

// -- fusion --
//
// A chain of elementwise nodes becomes one node that is computed block by block, as runs of [12] do:
//
//     a --> add --> gelu --> dropout --> y     three tensors, each written and read
//     b ----^
//     a, b --> [ fused: block 1, block 2, ... ] --> y     one tensor, and blocks of scratch

typedef struct tl_fusion_desc {
    const tl_graph    *graph;        // not NULL
    const char *const *ops;          // [op_count] elementwise ops; 0 = all of TL_ELEMENTWISES. An op like
                                     // "add+relu" counts if each part does
    int32_t            op_count;
    const char        *op;           // of fused nodes; 0 = "fused"
    uint64_t           block_bytes;  // a multiple of 64; 0 = 65536
    const tl_device   *device;       // costs are nanoseconds on this device; 0 = costs are added up
    int32_t            inference;    // 1 = forward only: what backward reads is ignored
    int32_t            blocks_only;  // 1 = only nodes that say takes_blocks, which [12] can run fused
    uint64_t           alignment_bytes;  // blocks of scratch are rounded up to it: that of the backend which
                                     // runs them; a power of two; 0 = not rounded
    uint64_t           scratch_parts;    // where the blocks of a node together exceed this part of a tensor,
                                     // 1 / scratch_parts, they are smaller, but of 64 bytes at least; 0 = any
    const uint8_t     *apart;        // [node_count] 1 = is fused with nothing; 0 = none is so marked
    uint64_t           call_cost;    // of a call of a kernel, beyond its work: fused nodes make more of them,
                                     // one a member and block; 0 = call_latency_ns of device
} tl_fusion_desc;

typedef struct tl_fusion_plan {
    tl_graph       graph;            // the fused graph
    const int32_t *nodes;            // [nodes of the old graph] the new node that computes this old node
    const int32_t *first_members;    // [graph.node_count + 1] index into members
    const int32_t *members;          // [nodes of the old graph] old nodes by new node, in their old order
    const int32_t *recompute_counts;    // [graph.node_count] how many members, from the first on, run
                                     // again in backward
    uint64_t       block_bytes;      // defaults filled in
    int32_t        fused_count;      // new nodes of two or more members
    uint64_t       inner_bytes;      // sum over the tensors that no longer exist
    int32_t        inference;        // that of the desc
    void          *memory;           // what tl_free_fusion_plan releases beside the graph
} tl_fusion_plan;

// Fuse chains of elementwise nodes. In a chain every node has one output, is the only reader of the
// node before it, has no weights and no saved bytes, and reads and makes tensors of equal bytes
// only. All nodes have the same layer and unit, all or none have a gradient, all or none scale with
// the batch; only the last may be a result. Chains are as long as possible, up to 256 nodes, under
// three more rules: backward reads no more bytes than before; while other nodes run between two
// members, no more bytes are live than before; gradients are added up in the old order. A graph
// with nothing to fuse is copied.
//
// A fused node has the name of its last member and the outer inputs of all members in order. Its
// backward reads the outer inputs that its members' backward reads, its output if the last member
// does, and, if a member reads an inner tensor, all that the members above need to compute that
// tensor again. Scratch is counted in blocks of block_bytes, or of a whole tensor if that is
// smaller, or as scratch_parts asks, rounded up to alignment_bytes: forward one block for 2 members,
// two for more; backward one for each member computed again and one or two for gradients; in both
// plus the largest scratch of a member. Nodes that run once are not fused, because a backward may compute
// members again, nor are dynamic nodes, those that read what one made, and those that read a state in pieces.
// Costs are added up, in backward with the forwards that run again. With a device, the time to write and read
// inner tensors is subtracted, but the cost stays at least that of the largest member and the time to move the
// outer bytes. Calls beyond one a member cost call_cost each. In place, the output may overwrite the input that
// the first member might overwrite, unless the last member reads it, too. It takes blocks if all members do.
// Views of inner tensors are removed. One backward call holds the gradients of all outer inputs at once, so a
// fused node with many of them can have a larger working set than any of its members had.
//
//   fusion   overwritten; release with tl_free_fusion_plan
//
// Errors:  those of tl_check_graph and tl_check_device; TL_ERROR_INVALID_ARG, TL_ERROR_NO_MEMORY,
//          TL_ERROR_OVERFLOW; *fusion is all zero then.
// Cost:    O(nodes + inputs), times at most 256 if many chains are cut into short pieces.
TLDEF tl_result tl_plan_fusion(tl_env *env, const tl_fusion_desc *desc, tl_fusion_plan *fusion);
TLDEF void      tl_free_fusion_plan(tl_env *env, tl_fusion_plan *fusion);  // accepts zeroed ones

// -- regions of rows --
//
// Nodes that may be called for ranges of rows (tl_node_desc.rows) become one node that is carried out row by
// row, forwards alone, as runs of [12] do. Of what lies between two of them only the rows that somebody still
// reads exist, in a ring (a line buffer): row r is its row r % ring_rows. Nothing is computed twice.
//
//     image --> conv 3/2/1 --> depthwise 3/1/1 --> conv 1/1/0 --> y        three tensors, each of all its rows
//     image --> [ region: 3 rows, 1 row ] --> y                            one, and rings in scratch
//
// A region is a run of nodes in the order of the graph. The next call is always one of the last node, unless
// rows that it reads are missing: then that of the node which makes these, and so on up (depth first).
// Outputs of the region are whole tensors, those that it reads from outside, too, except for a stream
// (tl_node_desc.stream): its rows are loaded into a ring by the kernel of its op, and the region runs once.
//
// Which nodes form regions is chosen by an exact division of the order into runs: of all divisions those with
// the least peak, and of these, or of those within budget_bytes, one with the fewest calls. The peak is that
// of live bytes when nodes are called in order, each tensor lives to its last reader, and inputs are
// resident. A node may be in a region if it has one output and rows along the axis of what it reads by 1:1,
// windows or up; so may one that takes blocks, by rows of elements along axis 0. States, graph inputs that
// are no streams, dynamic nodes, those that run once, and those marked apart are in none. A result may be the
// last node of a region with no other output.
//
// In place: a node whose inplace names an input that it reads 1:1, from a node which it alone reads, uses
// that node's ring. If it reads windows, and one row of it is read at once, its row stands in the place of
// the first row of the windows: such a kernel, called for one row, overwrites that row, of which it has read by
// then what it needs (a depthwise convolution keeps one channel of it).

typedef struct tl_rows_progress {
    uint64_t work, work_limit;  // calls walked through so far; about how many there are at most
} tl_rows_progress;

typedef struct tl_rows_desc {
    const tl_graph *graph;           // not NULL
    uint64_t        budget_bytes;    // of live bytes; 0 = as few as possible
    uint64_t        alignment_bytes; // of rings, that of the backend: a power of two; 0 = 1
    uint64_t        call_cost;       // of a call beyond its work: added to the costs of regions
    const char     *op;              // of regions; 0 = "rows"
    const uint8_t  *apart;           // [node_count] 1 = is in no region; 0 = none is so marked
    const uint8_t  *in_slots;        // [node_count] 1 = called for one row, its kernel may write over the first
                                     // row under the windows of its first input with windows; 0 = only those
                                     // whose inplace says so
    uint64_t        work_limit;      // calls that are walked through in search of regions, 20 to 40 ns each:
                                     // regions have as many members as this allows, at most 64;
                                     // 0 = 100 million
    int           (*progress)(const tl_rows_progress *progress, void *user);  // 1 = stop with the least peak of
                                     // what was found so far, in calls of one row
    void           *user;            // passed to progress
} tl_rows_desc;

// A member of a region.
typedef struct tl_row_member {
    int32_t  node;           // of the desc's graph; a stream, or a node with rows or that takes blocks
    int32_t  first_link;     // into tl_rows_plan.links, one for each input
    int32_t  shares;         // member of the region whose ring its rows lie in; -1 = none
    int32_t  takes_slots;    // input + 1 whose ring it shares with row r where the first row under its window
                             // stood; 0 = row r stands where that of the input did
    uint64_t rows;           // of output 0
    uint64_t block_rows;     // of a call, at most
    uint64_t row_bytes;      // of one of its rows
    uint64_t ring_rows;      // of its ring, or of that which it shares; 0 = it is whole, an output
    uint64_t ring_offset;    // of its ring in the scratch of the region
    int32_t  again;          // of tl_cut_rows: 1 = in a backward its rows are made again, block by block
    uint64_t again_offset;   // of these rows in the scratch of the backward
    uint64_t saved_offset, gradient_offset;  // of its saved bytes there, and of the gradient of its rows
} tl_row_member;

// A call of a member for one block of rows, of tl_cut_rows.
typedef struct tl_row_turn {
    int32_t  member;         // of the region
    uint8_t  kind;           // tl_step_kind: FORWARD, FORWARD_SAVE or BACKWARD
    uint64_t work_offset, work_bytes;   // of its scratch in that of the region
} tl_row_turn;

// Where a member has an input from.
typedef struct tl_row_link {
    int32_t     member;      // of the region; -1 = from outside: it is whole
    tl_relation relation;    // how its rows relate to those of the member
} tl_row_link;

typedef struct tl_rows_plan {
    tl_graph             graph;          // with regions as nodes. That of tl_plan_rows has no gradients
    const int32_t       *nodes;          // [nodes of the old graph] the new node that computes this old node
    const int32_t       *first_members;  // [graph.node_count + 1] index into members; regions alone have any
    const tl_row_member *members;        // in the order of the old graph, a stream before its reader
    const tl_row_link   *links;
    const tl_row_turn   *turns;          // of tl_cut_rows; 0 = calls come in the order of rows, see there
    const int32_t       *first_turns;    // [graph.node_count + 1] index into turns
    const int32_t       *forward_turns;  // [graph.node_count] turns of a region's forward; those behind are
                                         // its backward's
    int32_t              inference;      // 1 = forwards alone
    int32_t              link_count;     // of all members
    int32_t              turn_count;     // of all regions
    int32_t              member_count;   // of all regions
    int32_t              region_count;   // nodes of graph that are regions
    uint64_t             whole_bytes;    // the peak without regions
    uint64_t             peak_bytes;     // with these
    uint64_t             call_count;     // of kernels, in regions and outside
    void                *memory;         // what tl_free_rows_plan releases beside the graph
} tl_rows_plan;

// Find regions of rows for an inference, and the graph with these as nodes. A region has the name of its last
// node, all tensors from outside as inputs, and in fwork_bytes its rings and behind these the scratch of a
// call: that of a member is fwork_bytes times the share of its rows, rounded up. A graph that has no region
// worth its calls is copied.
//
//   desc     its progress function is called about every million calls
//   rows     overwritten; release with tl_free_rows_plan
//
// Errors:  those of tl_check_graph; TL_ERROR_INVALID_ARG: a node reads rows that its input does not have, or
//          along another axis; TL_ERROR_INFEASIBLE: budget_bytes are too few, the text names the least;
//          TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; *rows is all zero then.
// Cost:    O(nodes x rows of up to 64 nodes, the most of a region), about work_limit at most.
TLDEF tl_result tl_plan_rows(tl_env *env, const tl_rows_desc *desc, tl_rows_plan *rows);
TLDEF void      tl_free_rows_plan(tl_env *env, tl_rows_plan *rows);  // accepts zeroed ones

// -- blocks of rows --
//
// A training step can be cut, too: a loss head over a large vocabulary, attention, the two products of an MLP.
// All nodes of such a region work on the same rows one by one; so a block of rows goes through all of them, and
// what lies between two of them exists for one block. In a backward each block is made again as far as its
// backwards read it, and adds to the gradients of weights:
//
//     x --> matmul --> gelu --> matmul --> y     forward     |block 0: F F F|block 1: F F F|..
//             ^ w1               ^ w2            backward    |block 0: F F, B B B|block 1: F F, B B B|..
//
// The region is one node of a new graph, with the scratch of one block, which is planned like any other: kept,
// run again, spilled. Where it ends in a loss that no node reads (tl_node_desc.reduces), nothing is made twice:
// its forward only claims the loss, and its backward makes both, block by block (TL_ONCE_LATE).
//
// A call for a block of rows [first, first + count) of total finds these rows alone in each tensor that it
// reads or makes row by row, whether inside or outside of the region, and in its gradient; rows along another
// axis than 0 only of tensors inside, those outside are whole. What is read whole is whole in each call. What a
// node with reduces makes is whole, too: the first call (first 0) begins it, the others add to it, the last one
// finishes it. A mean divides by total, in the backward, too; not by count.
//
// Blocks come in order, so where kernels say ordered, results have the bits of whole calls. The members of a
// region follow each other in the graph; only states and graph inputs may lie between. Each has one output and
// the same rows, in multiples of row_unit, or takes blocks; reads what other members make row by row, and makes
// a result only where it is the last. In training all have a backward or none has, none reads statistics or a
// state in pieces, and no two add to the gradient of a tensor that one of them reads whole (TL_RELATION_WHOLE).

typedef struct tl_row_cut {
    int32_t first, last;             // nodes of the desc's graph: a region's first and last member
    int32_t block_count;             // > 0; rounding up to units and to the alignment can leave fewer, and
                                     // binding_bytes can ask for more
} tl_row_cut;

typedef struct tl_cut_desc {
    const tl_graph   *graph;         // not NULL
    const tl_row_cut *cuts;          // [cut_count] in the order of the graph
    int32_t           cut_count;
    int32_t           inference;     // 1 = forwards alone
    int32_t           may_round;     // 1 = kernels need not be ordered, and sums may come in another order
    uint64_t          alignment_bytes;  // that of the backend: a power of two; 0 = 1
    uint64_t          call_cost;     // of each call beyond those of whole nodes; 0 = call_latency_ns of device
    const tl_device  *device;        // 0 = moving again what is whole in each call takes no time
    const char       *op;            // of regions; 0 = "rows"
    uint64_t          binding_bytes; // most bytes of an operand of a call (tl_backend_limits): blocks have so
                                     // few rows, and a node beside the cuts that has larger operands is cut
                                     // alone, if it can be; 0 = any
} tl_cut_desc;

// Cut regions into blocks of rows. A region has the name of its last node and all tensors from outside as
// inputs; its backward reads those that its members' backwards read, or need to make a block again. Its costs
// are those of its members, with those that run again in the backward, and of the calls for further blocks.
// With a device, a call takes at least the time to move what is whole in it, weights and their gradients, for
// each block.
//
//   rows     overwritten; release with tl_free_rows_plan. whole_bytes and peak_bytes are 0
//
// Errors:  those of tl_check_graph and tl_check_device; TL_ERROR_INVALID_ARG names the node and why it cannot
//          be cut so; TL_ERROR_NO_MEMORY, TL_ERROR_OVERFLOW; *rows is all zero then.
// Cost:    O(nodes + inputs), the square of the members of a region, and one layout for each.
TLDEF tl_result tl_cut_rows(tl_env *env, const tl_cut_desc *desc, tl_rows_plan *rows);
#endif

#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

