// 01_train_text.c -- train a character-level transformer within a fixed number of bytes
//
// You learn: how a network becomes a graph, a byte budget a plan, and a plan a training step that
// really drops activations and really makes them again, and updates each weight where its gradient is
// complete. It prints one table: what was planned, what was measured, what it cost, and whether the
// weights are equal to the last bit; then text that the network wrote. It leaves build/memory.svg (memory
// over one step) and build/trace.json (open it in ui.perfetto.dev). Read next: 10, the manager alone in
// your own loop; nn.h has the kernels, training.h the graph and its plans.
//
// check: --quick --out build/check
//
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/01_train_text examples/01_train_text.c -lm
//     build/01_train_text --quick
//
// HOW IT WORKS   Weights and AdamW's moments are states of the graph (tl_apply_optimizer), so a
// budget is all that a step has: states, gradients, activations, scratch. The same training runs
// from one seed with everything kept, and within shrinking budgets by two kinds of plans, each
// down to the least it can do: made layer by layer, and of the graph, tensor by tensor
// (tl_plan_remat); and below that, in blocks of rows. They take turns, a step each, so that a slow
// moment of the machine hits all of them alike; after every turn the weights, the moments and the loss of each are compared with
// those of the first, byte by byte. Before that a rehearsal, whose networks are thrown away,
// measures every node: these nanoseconds become the costs of the graph, by which plans are chosen
// and step times predicted; --estimate plans by FLOP instead, the same on every machine. At last
// the smallest budget trains on alone, so that the sample can be read.
// Plans of the graph may make the gradient of a linear layer or of the embedding in pieces, some rows
// at a time, each updated before the next is made (tl_choose_pieces, tl_apply_pieces): where the gradients
// and not the activations set the peak (--batch 1), that lowers the least budget. Below what the graph
// can do with whole tensors, regions of its nodes go over the batch in blocks of rows: loss head,
// feed-forward part and attention, by whole sequences where it is in one (tl_choose_rows). Kernels add
// up row after row, so weights are equal to the bit there, too. What a further call costs is measured
// in the rehearsal, for pieces and for blocks.
// With --precision bf16 or f16 activations are stored in 16 bits and take half the bytes, under any
// plan, and the same training in f32 beside them shows what that costs in loss.
//
// CONTENTS       (search for "// -- ")
//                kernels    options    weights    training    rehearsal    rounds    table
//                pictures    sample    command line    pieces    costs    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, isatty, mkdir

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TRAINING_PROGRAM "01_train_text"
#include "training.h"
#include "nn.h"

// Two clocks: training_wall_ns for what the user waits for, and this one for what training steps cost. It
// counts the processor time of this program: others on the machine do not show in the table.
static uint64_t now_ns(void *user) {
    (void)user;
    return training_read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

// Nodes are timed by the first: the second asks the system, which takes as long as a small kernel.
static uint64_t node_clock_ns(void *user) {
    (void)user;
    return training_wall_ns();
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// -- kernels: thin wrappers around nn.h --
//
// An operand that is not there has a NULL pointer, which is what nn.h takes for "not wanted".
//
// With --precision f16 or bf16 tensors are stored in 16 bits, and kernels compute in f32 all the
// same: a few rows at a time they expand what they read into scratch, and round what they write.
//
//     in (16 bits)  |====| 16 rows --expand--> scratch --nn_linear--> scratch --round--> |====| out
//
// A gradient in 16 bits is expanded, added to, and rounded again. What is f32 is passed as it is,
// so that without --precision each kernel is one call.

enum { BLOCK_ROWS = 16, TILE_MAX = 6 };

// The floats of a row of a node that its kernel expands, tensor by tensor; see the wrappers.
static uint64_t count_row_floats(const training_model *m, const training_node *n, int backward) {
    uint64_t in = n->in_width, out = n->width, heads = m->size.C / TRAINING_HEAD;
    uint64_t stored_out = n->format == TL_FORMAT_F32 ? 0 : out;
    switch (n->op) {
    case TRAINING_EMBED:     return out;
    case TRAINING_NORM:      return backward ? 2 * in + out : in + out;
    case TRAINING_LINEAR:    return backward ? 2 * in + stored_out : in + stored_out;
    case TRAINING_ATTENTION: return (backward ? 2 * in + out : in + out) + heads * m->size.T;
    case TRAINING_GELU:      return backward ? 2 * in + out : in + out;
    case TRAINING_DROPOUT:   return in + out;
    case TRAINING_ADD:       return 3 * out;
    case TRAINING_INPUT_OP:
    case TRAINING_LOSS:
    case TRAINING_OP_COUNT:  break;
    }
    return 0;
}

// Rows of a block: of 16 bits a few, or a sequence where rows belong together; of f32 all of them.
static uint64_t count_block_rows(const training_model *m, const training_node *n, int is_narrow) {
    uint64_t rows = m->size.B * m->size.T;
    if (!is_narrow) return rows;
    if (n->op == TRAINING_ATTENTION || n->op == TRAINING_EMBED) return m->size.T;
    return rows < BLOCK_ROWS || n->op == TRAINING_LOSS ? rows : BLOCK_ROWS;
}

// The weights of a node lie in rows of its width: of a linear layer one for each input, then the bias; of an
// embedding one for each token, then one for each position. Kernels of these two make their gradients by rows.
static uint64_t count_weight_rows(const training_model *m, const training_node *n) {
    const training_param *bias = &m->params[n->bias];
    return (bias->first + bias->count - m->params[n->weight].first) / n->width;
}

// The bytes that the kernels of a node need besides its output, and the rows of its weights.
static void add_bytes(const training_model *m, const training_node *n, tl_node_desc *desc) {
    const training_dims *s = &m->size;
    uint64_t rows = count_block_rows(m, n, m->format != TL_FORMAT_F32) * sizeof(float), stored, scratch;
    if (n->op == TRAINING_NORM) desc->saved_bytes = nn_norm_saved_bytes((size_t)(s->B * s->T));
    if (n->op == TRAINING_LINEAR || n->op == TRAINING_EMBED) desc->weight_rows = (int32_t)count_weight_rows(m, n);
    if (m->format != TL_FORMAT_F32) {
        desc->fwork_bytes = rows * count_row_floats(m, n, 0);
        desc->bwork_bytes = rows * count_row_floats(m, n, 1);
    }
    if (n->op != TRAINING_ATTENTION) return;
    stored = nn_attention_saved_bytes((size_t)s->B, (size_t)(s->C / TRAINING_HEAD), (size_t)s->T);
    scratch = nn_attention_scratch_bytes((size_t)s->T);
    if (m->row_unit) scratch *= s->B;  // a call for some sequences gets their share, and needs it for one
    desc->saved_bytes = tl_find_format_bytes(m->format, stored);
    desc->fwork_bytes += scratch;
    desc->bwork_bytes += scratch;
}

// Weights are states of the graph: a node with weights reads them as its last input, the bias behind the weight,
// and its backward adds to the gradient of that input. AdamW is the backward of the state.
typedef struct net {
    const training_model *m;
    float    scale;               // of the loss and its gradients
    uint64_t taken;               // steps that changed the weights, with the one under way
    int      overflows;           // 1 = a gradient of this step is no number: the step is skipped
    float   *params, *grads;      // [param_count] with --updates outside, where the graph owns no weights
} net;

static float *f32(tl_operand operand) { return (float *)operand.host; }
static const int32_t *i32(tl_operand operand) { return (const int32_t *)operand.host; }

// Rows of an operand that were expanded and are to be rounded.
typedef struct tile {
    uint16_t *stored;
    float    *floats;
    size_t    count;
    tl_format format;
} tile;

// What every wrapper works with. In a region of rows a call is for some rows of the batch, and of tensors it
// finds these alone: that is R then.
typedef struct args {
    const training_model *m;
    const training_node  *n;
    const float *weight, *bias;
    float       *dweight, *dbias;
    size_t       first_row, row_count;  // of the weights, of which dweight has these
    size_t       B, T, C, NH;
    size_t       first, rows;     // the block: rows of the batch, or elements of the call
    size_t       R, step;         // R = rows of the batch = B T, or elements; step = of a block
    float       *scratch, *free;  // its start; what is left of it
    tile         tiles[TILE_MAX]; // [tile_count] to be rounded when the block ends
    int          tile_count;
} args;

// 1 = the call has a tensor in 16 bits.
static int is_narrow(const tl_kernel_call *call, const tl_node *node) {
    int32_t i;
    for (i = 0; i < node->input_count; i++)
        if (call->inputs[i].format != TL_FORMAT_F32) return 1;
    return call->outputs[0].format != TL_FORMAT_F32;
}

// The rows of the gradient of its weights that a call is for: all of them, or some where the bytes are fewer.
static void find_rows(args *a, const tl_kernel_call *call, size_t gradient_bytes) {
    a->row_count = (size_t)count_weight_rows(a->m, a->n);
    if (gradient_bytes == a->row_count * (size_t)a->n->width * sizeof(float)) return;
    a->first_row = (size_t)call->first;
    a->row_count = (size_t)call->count;
}

static args args_of(const tl_kernel_call *call, void *user) {
    const net *network = (const net *)user;
    int32_t last = call->graph->nodes[call->node].input_count - 1;
    args a;
    memset(&a, 0, sizeof a);
    a.m = network->m;
    a.n = training_node_of(a.m, call->node);
    if (a.n->weight >= 0 && !a.m->owns_weights) {
        uint64_t weight = a.m->params[a.n->weight].first, bias = a.m->params[a.n->bias].first;
        a.weight = network->params + weight;
        a.bias = network->params + bias;
        a.dweight = network->grads + weight;
        a.dbias = network->grads + bias;
        a.row_count = (size_t)count_weight_rows(a.m, a.n);
    } else if (a.n->weight >= 0) {
        size_t bias = training_find_bias(a.m, a.n);
        a.weight = f32(call->inputs[last]);
        a.bias = a.weight ? a.weight + bias : NULL;
        a.dweight = f32(call->input_grads[last]);
        a.dbias = a.dweight ? a.dweight + bias : NULL;
        find_rows(&a, call, (size_t)call->input_grads[last].range.bytes);
    }
    a.B = (size_t)a.m->size.B;
    a.T = (size_t)a.m->size.T;
    a.C = (size_t)a.m->size.C;
    a.R = call->by_rows ? (size_t)call->count : a.B * a.T;
    a.NH = a.C / TRAINING_HEAD;
    a.step = (size_t)count_block_rows(a.m, a.n, is_narrow(call, &call->graph->nodes[call->node]));
    a.scratch = f32(call->scratch);
    return a;
}

// The same for a kernel that works element by element: its rows are the elements of the call.
static args elements_of(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    a.step *= (size_t)a.n->width;
    a.R = (size_t)call->count;
    return a;
}

// Round what the last block wrote, and begin the next one; 0 = there is none.
static int next_block(args *a) {
    while (a->tile_count > 0) {
        const tile *t = &a->tiles[--a->tile_count];
        if (t->format == TL_FORMAT_F16) nn_round_f16(t->stored, t->floats, t->count);
        else nn_round_bf16(t->stored, t->floats, t->count);
    }
    a->first += a->rows;
    a->rows = nn_min(a->step, a->R - a->first);
    a->free = a->scratch;
    return a->rows > 0;
}

// The block's rows of an operand in f32. reads: its numbers are wanted; writes: they change.
static float *open_rows(args *a, void *host, tl_format format, size_t width, int reads,
                        int writes) {
    size_t from = a->first * width, count = a->rows * width;
    uint16_t *stored = (uint16_t *)host;
    float *floats = a->free;
    tile *t = &a->tiles[a->tile_count];
    if (!host) return NULL;
    if (format == TL_FORMAT_F32) return (float *)host + from;
    stored += from;
    a->free += count;
    if (reads && format == TL_FORMAT_F16) nn_expand_f16(floats, stored, count);
    else if (reads) nn_expand_bf16(floats, stored, count);
    if (!writes) return floats;
    t->stored = stored;
    t->floats = floats;
    t->count = count;
    t->format = format;
    a->tile_count++;
    return floats;
}

static const float *read_rows(args *a, tl_operand operand, size_t width) {
    return open_rows(a, operand.host, operand.format, width, 1, 0);
}

static float *write_rows(args *a, tl_operand operand, size_t width) {
    return open_rows(a, operand.host, operand.format, width, 0, 1);
}

static float *change_rows(args *a, tl_operand operand, size_t width) {
    return open_rows(a, operand.host, operand.format, width, 1, 1);
}

static tl_result embed_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    while (next_block(&a)) {
        nn_embed_forward(write_rows(&a, call->outputs[0], a.C), i32(call->inputs[0]) + a.first,
                         a.weight, a.bias, a.rows / a.T, a.T, a.C);
    }
    return TL_OK;
}

static tl_result embed_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    while (a.dweight && next_block(&a)) {
        nn_embed_backward_rows(a.dweight, read_rows(&a, call->output_grads[0], a.C), i32(call->inputs[0]) + a.first,
                               a.rows / a.T, a.T, a.C, (size_t)a.m->size.V, a.first_row, a.row_count);
    }
    return TL_OK;
}

static tl_result norm_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    while (next_block(&a)) {
        float *saved = open_rows(&a, call->saved.host, TL_FORMAT_F32, 2, 0, 1);
        const float *in = read_rows(&a, call->inputs[0], a.C);
        nn_norm_forward(write_rows(&a, call->outputs[0], a.C), saved, in, a.weight, a.bias, a.rows,
                        a.C);
    }
    return TL_OK;
}

static tl_result norm_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    while (next_block(&a)) {
        const float *saved = open_rows(&a, call->saved.host, TL_FORMAT_F32, 2, 1, 0);
        const float *in = read_rows(&a, call->inputs[0], a.C);
        const float *dout = read_rows(&a, call->output_grads[0], a.C);
        nn_norm_backward(change_rows(&a, call->input_grads[0], a.C), a.dweight, a.dbias, dout,
                         saved, in, a.weight, a.rows, a.C);
    }
    return TL_OK;
}

static tl_result linear_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    size_t K = (size_t)a.n->in_width, N = (size_t)a.n->width;
    while (next_block(&a)) {
        const float *in = read_rows(&a, call->inputs[0], K);
        nn_linear_forward(write_rows(&a, call->outputs[0], N), in, a.weight, a.bias, a.rows, K, N);
    }
    return TL_OK;
}

static tl_result linear_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    size_t K = (size_t)a.n->in_width, N = (size_t)a.n->width;
    while (next_block(&a)) {
        const float *in = read_rows(&a, call->inputs[0], K);
        const float *dout = read_rows(&a, call->output_grads[0], N);
        nn_linear_backward(change_rows(&a, call->input_grads[0], K), NULL, NULL, dout, in, a.weight, a.rows, K, N);
        if (a.dweight) nn_linear_backward_rows(a.dweight, dout, in, a.rows, K, N, a.first_row, a.row_count);
    }
    return TL_OK;
}

static tl_result attention_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    while (next_block(&a)) {
        const float *qkv = read_rows(&a, call->inputs[0], 3 * a.C);
        float *out = write_rows(&a, call->outputs[0], a.C);
        float *saved = open_rows(&a, call->saved.host, call->outputs[0].format, a.NH * a.T, 0, 1);
        nn_attention_forward(out, saved, qkv, a.free, a.rows / a.T, a.T, a.C, a.NH);
    }
    return TL_OK;
}

static tl_result attention_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    while (next_block(&a)) {
        const float *qkv = read_rows(&a, call->inputs[0], 3 * a.C);
        const float *dout = read_rows(&a, call->output_grads[0], a.C);
        const float *saved = open_rows(&a, call->saved.host, call->outputs[0].format, a.NH * a.T, 1, 0);
        float *dqkv = change_rows(&a, call->input_grads[0], 3 * a.C);
        nn_attention_backward(dqkv, dout, saved, qkv, a.free, a.rows / a.T, a.T, a.C, a.NH);
    }
    return TL_OK;
}

static tl_result gelu_forward(const tl_kernel_call *call, void *user) {
    args a = elements_of(call, user);
    while (next_block(&a)) {
        const float *in = read_rows(&a, call->inputs[0], 1);
        nn_gelu_forward(write_rows(&a, call->outputs[0], 1), in, a.rows);
    }
    return TL_OK;
}

static tl_result gelu_backward(const tl_kernel_call *call, void *user) {
    args a = elements_of(call, user);
    while (next_block(&a)) {
        const float *in = read_rows(&a, call->inputs[0], 1);
        const float *dout = read_rows(&a, call->output_grads[0], 1);
        nn_gelu_backward(change_rows(&a, call->input_grads[0], 1), dout, in, a.rows);
    }
    return TL_OK;
}

// The seed of a call is the same whenever this node runs in this pass: dropout repeats itself.
static tl_result dropout_forward(const tl_kernel_call *call, void *user) {
    args a = elements_of(call, user);
    while (next_block(&a)) {
        const float *in = read_rows(&a, call->inputs[0], 1);
        nn_dropout_forward(write_rows(&a, call->outputs[0], 1), in, a.rows, a.m->dropout,
                           call->seed, call->first + a.first);
    }
    return TL_OK;
}

static tl_result dropout_backward(const tl_kernel_call *call, void *user) {
    args a = elements_of(call, user);
    while (next_block(&a)) {
        const float *dout = read_rows(&a, call->output_grads[0], 1);
        nn_dropout_backward(change_rows(&a, call->input_grads[0], 1), dout, a.rows,
                            a.m->dropout, call->seed, call->first + a.first);
    }
    return TL_OK;
}

static tl_result add_forward(const tl_kernel_call *call, void *user) {
    args a = elements_of(call, user);
    while (next_block(&a)) {
        const float *x = read_rows(&a, call->inputs[0], 1);
        const float *y = read_rows(&a, call->inputs[1], 1);
        nn_add_forward(write_rows(&a, call->outputs[0], 1), x, y, a.rows);
    }
    return TL_OK;
}

static tl_result add_backward(const tl_kernel_call *call, void *user) {
    args a = elements_of(call, user);
    while (next_block(&a)) {
        const float *dout = read_rows(&a, call->output_grads[0], 1);
        float *dx = change_rows(&a, call->input_grads[0], 1);
        nn_add_backward(dx, change_rows(&a, call->input_grads[1], 1), dout, a.rows);
    }
    return TL_OK;
}

// Logits, the loss and their gradients are f32 whatever the precision. A mean is over all rows of the batch,
// also in a call for some of them, where it begins with the first and ends with the last.
static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    size_t first = call->by_rows ? (size_t)call->first : 0;
    nn_cross_entropy_forward_range(f32(call->outputs[0]), NULL, f32(call->inputs[0]), i32(call->inputs[1]),
                                   first, a.R, a.B * a.T, (size_t)a.n->in_width);
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    args a = args_of(call, user);
    float gradient = *f32(call->output_grads[0]) * ((const net *)user)->scale;
    nn_cross_entropy_backward_range(f32(call->input_grads[0]), gradient, f32(call->inputs[0]),
                                    i32(call->inputs[1]), a.R, a.B * a.T, (size_t)a.n->in_width);
    return TL_OK;
}

// A node that reads all weights below the states: its backward is called when all micro-batches have added to all
// gradients, before the first update. Gradients in 16 bits are those of a loss that was multiplied, and here they are
// divided; one that is no number shows.
static tl_result clip_forward(const tl_kernel_call *call, void *user) {
    (void)user;
    *f32(call->outputs[0]) = 0.0f;
    return TL_OK;
}

static tl_result clip_backward(const tl_kernel_call *call, void *user) {
    net *network = (net *)user;
    float inverse = 1.0f / network->scale;
    int32_t i;
    size_t k;
    for (i = 0; i < call->graph->nodes[call->node].input_count; i++) {
        float *grads = f32(call->input_grads[i]);
        size_t count = (size_t)(call->input_grads[i].range.bytes / sizeof *grads);
        network->overflows |= tl_has_overflow(grads, count);
        for (k = 0; k < count; k++) grads[k] *= inverse;
    }
    return TL_OK;
}

// Update so many floats of a param from their gradient; taken: steps that changed it, with this one.
static void update_param(const training_param *p, float *param, float *moment, float *second, const float *grads,
                         size_t count, uint64_t taken) {
    nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.0f };
    adamw.rate = training_rate(taken - 1);
    adamw.weight_decay = p->decays ? 0.05f : 0.0f;
    nn_adamw_update(param, moment, second, grads, count, taken, &adamw);
}

// The outputs of a state: the weights, then both moments; or the same rows of each. Weight and bias are decayed
// differently, so either is updated as far as the call has it.
static tl_result adamw_update(const tl_kernel_call *call, void *user) {
    const net *network = (const net *)user;
    const training_model *m = network->m;
    const training_node *n = training_node_of(m, call->node);
    size_t count = (size_t)(call->outputs[0].range.bytes / sizeof(float)), bias = training_find_bias(m, n);
    size_t first = (size_t)call->first * (count / (size_t)call->count), split = nn_min(bias - nn_min(bias, first), count);
    int i;
    for (i = 0; i < 2 && !network->overflows; i++) {
        size_t from = i ? split : 0;
        update_param(&m->params[i ? n->bias : n->weight], f32(call->outputs[0]) + from, f32(call->outputs[1]) + from,
                     f32(call->outputs[2]) + from, f32(call->output_grads[0]) + from, i ? count - split : split,
                     network->taken);
    }
    return TL_OK;
}

enum { KERNEL_COUNT = TRAINING_OP_COUNT + 1, ALIGNMENT = 8 };  // as malloc aligns: no byte beside the arena

// All kernels, with this net behind them.
static void set_kernels(tl_kernel *kernels, net *user) {
    static const tl_kernel_fn forwards[TRAINING_OP_COUNT] = {
        NULL, embed_forward, norm_forward, linear_forward, attention_forward, gelu_forward,
        dropout_forward, add_forward, loss_forward
    };
    static const tl_kernel_fn backwards[TRAINING_OP_COUNT] = {
        NULL, embed_backward, norm_backward, linear_backward, attention_backward, gelu_backward,
        dropout_backward, add_backward, loss_backward
    };
    int i;
    memset(kernels, 0, KERNEL_COUNT * sizeof *kernels);
    for (i = 0; i < TRAINING_OP_COUNT - 1; i++) {
        kernels[i].op = training_op_names[i + 1];
        kernels[i].forward = forwards[i + 1];
        kernels[i].backward = user->m->trains ? backwards[i + 1] : NULL;
    }
    kernels[i].op = "adamw";
    kernels[i++].backward = adamw_update;
    kernels[i].op = "clip";
    kernels[i].forward = clip_forward;
    kernels[i].backward = clip_backward;
    for (i = 0; i < KERNEL_COUNT; i++) kernels[i].user = user;
}

// -- options, as the sections below see them --

typedef struct options {
    const char *text, *load, *save, *out, *budget, *plan, *precision, *updates;  // NULL = not given
    uint64_t    layers, width, context, batch, micro_batches, seed;
    uint64_t    steps, seconds, sample;
    uint64_t    loss_scale;       // what it starts with; 0 = as tl_default_loss_scaler
    int         given_size, given_seed, given_steps, given_seconds, checked, estimates;
    tl_format   format;           // of --precision
    tl_updates  when;             // of --updates
    int         whole;            // 1 = --whole-gradients: none is made in pieces
    int         outside;          // 1 = --updates outside: weights and AdamW are no part of the plan
    int         kinds[TRAINING_KIND_COUNT];  // 1 = the table has plans of this kind
} options;

// -- weights: the file of --save and --load --
//
// "TLTEXT1\n", then little endian: u64 L, C, T, V, steps done, seed, parameters; the 256 flags of
// the vocabulary; f32 parameters, then both states of AdamW, so that a training goes on as if it
// had never ended (a loss scale begins anew); at last u64, the checksum of all before.

enum { FILE_WORDS = 7, FILE_HEAD = 8 + 8 * FILE_WORDS + 256 };
static const uint8_t file_magic[8] = { 'T', 'L', 'T', 'E', 'X', 'T', '1', '\n' };

typedef struct weights {
    uint8_t *bytes;               // the file; NULL = none was loaded
    training_dims size;
    uint64_t steps, seed, count;
    const uint8_t *vocabulary;    // [256]
    const uint8_t *floats;        // [3][count], little endian
} weights;

static void put_bytes(uint8_t *to, uint64_t value, int count) {
    int i;
    for (i = 0; i < count; i++) to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_bytes(const uint8_t *from, int count) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < count; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static void get_floats(float *to, const uint8_t *from, uint64_t count) {
    uint64_t i;
    for (i = 0; i < count; i++) {
        uint32_t word = (uint32_t)get_bytes(from + 4 * i, 4);
        memcpy(&to[i], &word, sizeof word);
    }
}

// Read and check the file of --load; *w is zero without one.
static int load_weights(const options *o, weights *w) {
    uint64_t words[FILE_WORDS], most = UINT32_MAX / 16;
    size_t length;
    int i, code;
    memset(w, 0, sizeof *w);
    if (!o->load) return TRAINING_OK;
    code = training_read_file(o->load, "weights", &w->bytes, &length);
    if (code) return code;
    if (!w->bytes || length < FILE_HEAD + 8 || memcmp(w->bytes, file_magic, 8) != 0)
        return training_fail(TRAINING_INPUT, "weights %s: not a file that this program saved",
                             o->load);
    if (nn_checksum(0, w->bytes, length - 8) != get_bytes(w->bytes + length - 8, 8))
        return training_fail(TRAINING_INPUT,
                             "weights %s: damaged, the checksum is not that of the content",
                             o->load);
    for (i = 0; i < FILE_WORDS; i++) words[i] = get_bytes(w->bytes + 8 + 8 * i, 8);
    w->size.L = words[0];
    w->size.C = words[1];
    w->size.T = words[2];
    w->size.V = words[3];
    w->steps = words[4];
    w->seed = words[5];
    w->count = words[6];
    w->vocabulary = w->bytes + 8 + 8 * FILE_WORDS;
    w->floats = w->bytes + FILE_HEAD;
    if (w->count > most || length != FILE_HEAD + 12 * w->count + 8)
        return training_fail(TRAINING_INPUT, "weights %s: damaged, %zu bytes are not its length",
                             o->load, length);
    return TRAINING_OK;
}

static int write_weights(FILE *file, const training_model *m, const training_text *t,
                         uint64_t steps, uint64_t seed, const float *floats) {
    uint64_t words[FILE_WORDS], i, count = 3 * m->param_count, checksum;
    uint8_t head[FILE_HEAD], block[4096];
    words[0] = m->size.L;
    words[1] = m->size.C;
    words[2] = m->size.T;
    words[3] = m->size.V;
    words[4] = steps;
    words[5] = seed;
    words[6] = m->param_count;
    memcpy(head, file_magic, 8);
    for (i = 0; i < FILE_WORDS; i++) put_bytes(head + 8 + 8 * i, words[i], 8);
    memcpy(head + 8 + 8 * FILE_WORDS, t->is_used, 256);
    checksum = nn_checksum(0, head, sizeof head);
    if (fwrite(head, 1, sizeof head, file) != sizeof head) return 0;
    for (i = 0; i < count;) {
        size_t used = 0;
        for (; i < count && used < sizeof block; i++, used += 4) {
            uint32_t word;
            memcpy(&word, &floats[i], sizeof word);
            put_bytes(block + used, word, 4);
        }
        checksum = nn_checksum(checksum, block, used);
        if (fwrite(block, 1, used, file) != used) return 0;
    }
    put_bytes(block, checksum, 8);
    return fwrite(block, 1, 8, file) == 8 && fflush(file) == 0;
}

// Whoever looks finds the old file or the new one, never half, also after the power went.
static int save_weights(const options *o, const training_model *m, const training_text *t,
                        uint64_t steps, uint64_t seed, const float *floats) {
    tl_file_sink target;
    tl_sink sink;
    tl_result result;
    int written;
    if (!o->save) return TRAINING_OK;
    result = tl_init_file_sink(NULL, o->save, &target, &sink);
    if (result == TL_ERROR_INVALID_ARG)
        return training_fail(TRAINING_INPUT, "weights %s: the name is too long", o->save);
    if (!result) {
        target.durable = 1;
        errno = 0;
        written = write_weights((FILE *)target.file, m, t, steps, seed, floats);
        result = tl_finish_file_sink(NULL, &target, written ? TL_OK : TL_ERROR_IO);
    }
    if (!result) return TRAINING_OK;
    return training_fail(TRAINING_INPUT, "weights %s: not saved: %s", o->save, strerror(errno));
}

// -- training: one network, its optimizer and its run --

typedef struct training {
    const training_model *m;
    const training_text *t;
    const options *o;
    net      network;
    float   *floats;              // [4][param_count] weights, both moments, gradients, with --updates outside; else NULL
    float   *grads;               // the last of them
    uint64_t seed, step;          // step = training steps done
    tl_plan  plan;                // owned
    tl_env   memory;              // of the backend: an arena, touched once, never given back
    void    *arena;               // its bytes
    tl_backend backend;
    tl_run  *run;
    tl_run_report report;         // of the last step
    tl_loss_scaler scaler;        // where the model clips: what the loss is multiplied by
    float    loss;                // of the last step
    float    loss_sum;            // of the micro-batches so far
    int32_t *window;              // [2][B T] tokens and targets of a micro-batch
    uint64_t step_ns;             // of the last step: load, forward, backward, optimizer
    uint64_t wall_ns;             // the same by the other clock, and of it
    uint64_t compute_ns;          // forward and backward steps
    uint64_t *node_ns;            // [COST_SLOTS] of the last step; NULL = not wanted
    uint64_t *live;               // [step_count] device bytes of the last pass
    double   *ends;               // [step_count] its times in ms
    uint64_t start_ns;            // of the last pass
    tl_trace *trace;              // NULL = none

    // what the table says about it
    char     label[16];
    uint64_t budget;              // for the whole step; 0 = keep all
    double   gap_ratio;           // no plan costs less than cost / (1 + this); < 0 = not known
    int      is_drawn;            // 1 = the picture shows it
    double   predicted_ratio, measured_ratio;
    int      equal;               // 1 = so far all weights, moments and losses are those of keep all
    uint64_t fastest_ns;          // its memory is what the picture shows
    uint64_t *fastest_live;
    double   *fastest_ends;
    uint64_t *rounds_ns;          // [steps]
} training;

// Write the windows of a micro-batch.
static tl_result load_batch(tl_run *run, int32_t micro_batch, void *user) {
    training *t = (training *)user;
    uint64_t first = (t->step * t->o->micro_batches + (uint64_t)micro_batch) * t->m->size.B;
    tl_tensor loss = { 0, 0 };
    tl_result result = TL_OK;
    loss.node = t->m->loss;
    if (micro_batch > 0) {  // the results of the micro-batch before stand until the next one begins
        result = tl_read_tensor(run, loss, &t->loss, sizeof t->loss);
        t->loss_sum += t->loss;
    }
    return result ? result : training_load_window(t->m, t->t, run, t->seed, first, t->window);
}

// What a turn of a region costs.
static double find_turn_cost(const training_model *m, int32_t region, int32_t turn) {
    const tl_node *node = &m->graph.nodes[training_find_turn(m, region, turn)];
    return (double)(m->regions.rows.turns[turn].kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost);
}

static uint64_t *find_node_ns(const training *t, int32_t id, int backward) {
    return &t->node_ns[training_find_cost_slot(t->m, id, backward)];
}

// Share out what a step of a region took to its members, by the costs that they had so far. What its backward
// makes again counts as the forward of no node, unless it is the first time.
static void add_region_ns(const training *t, const tl_run_event *event, uint64_t ns) {
    const tl_rows_plan *rows = &t->m->regions.rows;
    int32_t id = event->step.node, first = rows->first_turns[id], end = rows->first_turns[id + 1], k;
    int32_t forwards = rows->forward_turns[id];
    int backward = event->step.kind == TL_STEP_BACKWARD;
    double sum = 0.0;
    if (backward) first += forwards;
    else end = first + forwards;
    for (k = first; k < end; k++) sum += find_turn_cost(t->m, id, k);
    for (k = first; k < end && sum > 0.0; k++) {
        int is_backward = rows->turns[k].kind == TL_STEP_BACKWARD;
        uint64_t share = (uint64_t)((double)ns * find_turn_cost(t->m, id, k) / sum);
        if (is_backward || !backward || !forwards)
            *find_node_ns(t, training_find_turn(t->m, id, k), is_backward) += share;
    }
}

static void observe(const tl_run_event *event, void *user) {
    training *t = (training *)user;
    uint64_t ns = event->end_ns - event->start_ns;
    int backward = event->step.kind == TL_STEP_BACKWARD;
    int forward = event->step.kind <= TL_STEP_FORWARD_SAVE;
    if (event->index == 0) t->start_ns = event->start_ns;
    if (event->index < t->plan.step_count) {
        t->live[event->index] = event->device_bytes;
        t->ends[event->index] = (double)(event->end_ns - t->start_ns) * 1e-6;
    }
    if (forward || backward) t->compute_ns += ns;
    if (t->node_ns && (backward || (forward && !event->recompute))) {
        if (training_count_members(t->m, event->step.node)) add_region_ns(t, event, ns);
        else *find_node_ns(t, training_find_last(t->m, event->step.node), backward) += ns;
    }
    if (t->trace) {
        tl_run_event named = *event;
        named.step.node = training_find_last(t->m, event->step.node);
        tl_record_event(&named, t->trace);
    }
}

static void free_training(tl_env *env, training *t) {
    tl_free_run(t->run);
    tl_free_cpu_backend(&t->memory, &t->backend);
    tl_free_plan(env, &t->plan);
    free(t->arena);
    free(t->floats);
    free(t->window);
    free(t->live);
    free(t->ends);
    free(t->fastest_live);
    free(t->fastest_ends);
    free(t->rounds_ns);
    memset(t, 0, sizeof *t);
}

// Weights and moments after a step.
static tl_result read_states(const training *t, float *floats) {
    if (t->m->owns_weights) return training_move_states(t->m, t->run, floats, 0);
    memcpy(floats, t->floats, 3 * (size_t)t->m->param_count * sizeof *floats);
    return TL_OK;
}

// What they begin with: the file's, or weights from the seed and moments of zero.
static tl_result init_states(training *t, const weights *w) {
    float *floats = (float *)calloc(3 * (size_t)t->m->param_count, sizeof *floats);
    tl_result result = floats ? TL_OK : TL_ERROR_NO_MEMORY;
    if (floats && w->bytes) get_floats(floats, w->floats, 3 * t->m->param_count);
    else if (floats) training_fill_params(t->m, t->seed, floats);
    if (!result && t->m->owns_weights) result = training_move_states(t->m, t->run, floats, 1);
    else if (!result) memcpy(t->floats, floats, 3 * (size_t)t->m->param_count * sizeof *floats);
    free(floats);
    return result;
}

static tl_result init_arrays(training *t) {
    const training_model *m = t->m;
    size_t steps = (size_t)t->plan.step_count;
    t->window = (int32_t *)calloc((size_t)(2 * m->size.B * m->size.T), sizeof *t->window);
    t->live = (uint64_t *)calloc(steps, sizeof *t->live);
    t->ends = (double *)calloc(steps, sizeof *t->ends);
    t->fastest_live = (uint64_t *)calloc(steps, sizeof *t->fastest_live);
    t->fastest_ends = (double *)calloc(steps, sizeof *t->fastest_ends);
    t->rounds_ns = (uint64_t *)calloc((size_t)t->o->steps, sizeof *t->rounds_ns);
    if (!t->window || !t->live || !t->ends || !t->fastest_live || !t->fastest_ends ||
        !t->rounds_ns)
        return TL_ERROR_NO_MEMORY;
    if (!m->owns_weights) {
        t->floats = (float *)calloc(4 * (size_t)m->param_count, sizeof *t->floats);
        if (!t->floats) return TL_ERROR_NO_MEMORY;
        t->grads = t->floats + 3 * m->param_count;
    }
    t->network.m = m;
    t->network.params = t->floats;
    t->network.grads = t->grads;
    t->network.scale = 1.0f;
    return TL_OK;
}

// Buffers from malloc would be mapped and unmapped in every step, which costs more than some
// kernels: take them from an arena. Twice the peak leaves room for gaps; what is never touched
// takes no memory. The checked backend needs more than that, and gets malloc.
static tl_result init_memory(training *t) {
    size_t bytes = (size_t)(2 * t->plan.peak_bytes + ((uint64_t)1 << 20));
    if (t->o->checked) return TL_OK;
    t->arena = malloc(bytes);
    return t->arena ? tl_init_arena(&t->memory, t->arena, bytes) : TL_ERROR_NO_MEMORY;
}

static void init_scaler(training *t) {
    t->scaler.scale = (float)t->o->loss_scale;
    if (t->o->loss_scale > (uint64_t)1 << 24) t->scaler.most = (float)t->o->loss_scale;
    t->scaler = tl_default_loss_scaler(&t->scaler);
}

// Begin a training from the seed, or from weights, by a plan, which belongs to the training then.
// The backend has room for the budget, and not one byte more. On error free_training is still due.
static tl_result init_training(tl_env *env, training *t, const training_model *m,
                               const training_text *txt, const options *o, const weights *w,
                               tl_plan *plan, uint64_t budget) {
    tl_cpu_backend_desc cpu;
    tl_kernel kernels[KERNEL_COUNT];
    tl_run_desc desc;
    tl_result result;
    memset(t, 0, sizeof *t);
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    t->m = m;
    t->t = txt;
    t->o = o;
    t->seed = o->seed;
    t->plan = *plan;
    memset(plan, 0, sizeof *plan);
    t->budget = budget;
    t->equal = 1;
    init_scaler(t);
    result = init_arrays(t);
    if (result) return result;
    t->step = w->bytes ? w->steps : 0;
    result = init_memory(t);
    cpu.capacity_bytes[TL_TIER_DEVICE] = budget;  // 0 = no limit
    cpu.alignment_bytes = m->alignment_bytes;
    cpu.now_ns = node_clock_ns;
    cpu.checked = o->checked;
    if (!result) result = tl_init_cpu_backend(&t->memory, &cpu, &t->backend);
    if (result) return result;
    set_kernels(kernels, &t->network);
    desc.graph = &m->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = KERNEL_COUNT;
    desc.plan = &t->plan;
    desc.rows = m->regions.rows.memory ? &m->regions.rows : NULL;
    desc.repeat_count = (int32_t)o->micro_batches;
    desc.budget_bytes = budget;
    desc.load = load_batch;
    desc.load_user = t;
    desc.observe = observe;
    desc.observe_user = t;
    desc.profiling = 1;
    desc.seed = t->seed;
    desc.first_step = t->step;
    desc.loss_gradient_word = bits_of(1.0f / (float)o->micro_batches);  // of their mean
    if (m->format != TL_FORMAT_F32) {
        desc.formats = m->formats;
        desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
    }
    result = tl_init_run(env, &desc, &t->run);
    return result ? result : init_states(t, w);
}

// With --updates outside: the optimizer behind the pass.
static void update_outside(training *t) {
    const training_model *m = t->m;
    int32_t i;
    for (i = 0; i < m->param_kinds; i++) {
        const training_param *p = &m->params[i];
        float *param = t->floats + p->first;
        update_param(p, param, param + m->param_count, param + 2 * m->param_count, t->grads + p->first,
                     (size_t)p->count, t->step);
    }
}

// A step that is skipped leaves weights and moments as they are; its batch is lost.
static tl_result train_step(training *t) {
    const training_model *m = t->m;
    uint64_t start = now_ns(NULL), wall = training_wall_ns();
    tl_tensor loss = { 0, 0 };
    tl_result result;
    t->network.taken = t->step + 1 - t->scaler.skipped_count;
    t->network.overflows = 0;
    if (m->clips) t->network.scale = t->scaler.scale;
    if (t->grads) memset(t->grads, 0, (size_t)m->param_count * sizeof *t->grads);
    t->loss_sum = 0.0f;
    t->compute_ns = 0;
    result = tl_run_plan(t->run);
    tl_measure_run(t->run, &t->report);
    loss.node = m->loss;
    if (!result) result = tl_read_tensor(t->run, loss, &t->loss, sizeof t->loss);
    if (result) return result;
    t->loss = (t->loss_sum + t->loss) / (float)t->o->micro_batches;
    t->step++;
    if (!m->owns_weights) update_outside(t);
    if (m->clips) (void)tl_next_loss_scale(&t->scaler, t->network.overflows);
    t->wall_ns = training_wall_ns() - wall;
    t->step_ns = now_ns(NULL) - start;
    return TL_OK;
}

// -- rehearsal: measure every node --

enum { REHEARSAL_MAX = 4, REHEARSAL_STEPS = 62, WARM_STEPS = 2, REHEARSAL_ROWS = 4 };  // of the widest pieces

// Train a few steps by each plan, in turns, and throw the networks away. The plans are used up.
// models, plans: [count]; times: [count][cost slots] overwritten with the ns of each node's forward and
// backward in a step, of all updates, and at last of all that a step takes besides them; whole: [count] with
// the processor ns of a step. What disturbs a step can only add to it, and may last as long as the
// rehearsal: the lower quartile is steadier than the median.
static tl_result rehearse(tl_env *env, const training_model *const *models, const training_text *txt,
                          const options *o, const weights *w, tl_plan *plans, int count,
                          uint64_t *times, uint64_t *whole) {
    size_t slots = training_count_cost_slots(models[0]), i, steps = 0;
    uint64_t *samples = (uint64_t *)calloc(slots * REHEARSAL_STEPS * REHEARSAL_MAX, 8);
    uint64_t column[REHEARSAL_STEPS], steps_ns[REHEARSAL_MAX][REHEARSAL_STEPS];
    training *t = (training *)calloc(REHEARSAL_MAX, sizeof *t);
    tl_result result = samples && t ? TL_OK : TL_ERROR_NO_MEMORY;
    int k;
    for (k = 0; k < count && !result; k++)
        result = init_training(env, &t[k], models[k], txt, o, w, &plans[k], 0);
    for (; steps < REHEARSAL_STEPS && !result && !training_interrupted; steps++) {
        for (k = 0; k < count && !result; k++) {
            uint64_t *row = samples + ((size_t)k * REHEARSAL_STEPS + steps) * slots;
            t[k].node_ns = row;
            result = train_step(&t[k]);
            row[slots - 1] = t[k].wall_ns - t[k].compute_ns;
            steps_ns[k][steps] = t[k].step_ns;
        }
    }
    for (k = 0; k < count && !result && !training_interrupted; k++) {
        for (i = 0; i < slots; i++) {
            for (steps = WARM_STEPS; steps < REHEARSAL_STEPS; steps++)
                column[steps] = samples[((size_t)k * REHEARSAL_STEPS + steps) * slots + i];
            times[(size_t)k * slots + i] =
                training_find_quantile(column + WARM_STEPS, REHEARSAL_STEPS - WARM_STEPS, 1, 4);
        }
        whole[k] = training_find_quantile(steps_ns[k] + WARM_STEPS, REHEARSAL_STEPS - WARM_STEPS, 1, 4);
    }
    for (k = 0; k < count && t; k++) free_training(env, &t[k]);
    free(t);
    free(samples);
    return result;
}

// -- rounds: all trainings, a step each --

enum { ROW_MAX = 12, LOSS_STEPS = 10 };

typedef struct program {
    tl_env   env;
    options  o;
    training_text t;
    weights  w;
    training_model m;
    training_model by_rows;       // m, whose regions of rows plans may cut
    tl_rows_choice choice;        // with --budget: the regions of the rehearsal, where there are any
    training_model wide;          // of --precision f16 and bf16: the same network in f32
    training plain;               // which trains beside the rows, keeping everything
    tl_plan  keep_all;            // with measured costs: what ratios refer to
    uint64_t *node_ns;            // [cost slots] measured: the costs of the graph
    float   *states[2];           // [3][param_count] of the first row after a step, of another
    uint64_t outside_ns;          // of a step, beside the nodes
    uint64_t keep_all_ns;         // of a step that keeps everything; 0 = not measured
    uint64_t piece_ns;            // of a further call of a kernel, where gradients are in pieces: see measure_pieces
    uint64_t row_ns;              // the same in a region of rows: see training_measure_rows
    uint64_t piece_bytes;         // with --budget: the pieces of the rehearsal; UINT64_MAX = gradients are whole
    training rows[ROW_MAX];       // the first one keeps everything, but with --budget
    training_model models[ROW_MAX];  // of the rows: m or by_rows with a graph of its own, in which gradients
                                     // may be in pieces, and regions of its own
    int32_t  row_count;
    uint64_t rounds;              // finished
    float   *losses;              // [steps] of the first row
    float   *plain_losses;        // [steps] of the f32 beside it; NULL = there is none
    tl_trace *trace;              // of the last round
    uint64_t start_ns;            // of the program
    training_progress progress;
} program;

static void keep_fastest(training *t) {
    size_t count = (size_t)t->plan.step_count;
    if (t->fastest_ns && t->step_ns >= t->fastest_ns) return;
    t->fastest_ns = t->step_ns;
    memcpy(t->fastest_live, t->live, count * sizeof *t->live);
    memcpy(t->fastest_ends, t->ends, count * sizeof *t->ends);
}

// Whether weights, moments and loss of a row are those of the first, which was compared before.
static tl_result compare_states(program *p, int32_t k) {
    training *t = &p->rows[k];
    tl_result result = read_states(t, p->states[k > 0]);
    if (memcmp(p->states[k > 0], p->states[0], 3 * (size_t)p->m.param_count * sizeof(float)) != 0 ||
        bits_of(t->loss) != bits_of(p->rows[0].loss))
        t->equal = 0;
    return result;
}

// Take turns until the steps are done or Ctrl-C; ends with an unfinished round left out.
static int train_rounds(program *p) {
    uint64_t start = training_wall_ns();
    while (p->rounds < p->o.steps && !training_interrupted) {
        int32_t k;
        double done_s;
        tl_reset_trace(p->trace);
        for (k = 0; k < p->row_count; k++) {
            training *t = &p->rows[k];
            tl_result result = train_step(t);
            if (result) {
                training_clear_progress(&p->progress);
                return training_fail_result(&p->env, t->label, result);
            }
            keep_fastest(t);
            t->rounds_ns[p->rounds] = t->step_ns;
            if (p->row_count > 1) result = compare_states(p, k);
            if (result) return training_fail_result(&p->env, t->label, result);
        }
        if (p->plain_losses) {
            tl_result result = train_step(&p->plain);
            if (result) return training_fail_result(&p->env, p->plain.label, result);
            p->plain.rounds_ns[p->rounds] = p->plain.step_ns;
            p->plain_losses[p->rounds] = p->plain.loss;
        }
        p->losses[p->rounds++] = p->rows[0].loss;
        done_s = (double)(training_wall_ns() - start) * 1e-9;
        training_show_progress(&p->progress, "comparing", p->rounds, (double)p->rows[0].loss,
                               done_s / (double)p->rounds * (double)(p->o.steps - p->rounds));
    }
    training_clear_progress(&p->progress);
    return TRAINING_OK;
}

// -- table --

static uint64_t count_losses(const program *p) {  // that the printed one is the mean of
    return p->rounds < LOSS_STEPS ? p->rounds : (uint64_t)LOSS_STEPS;
}

static float mean_loss(const program *p, const float *losses, uint64_t count) {
    uint64_t i;
    float sum = 0.0f;
    for (i = 0; i < count; i++) sum += losses[p->rounds - 1 - i];
    return sum / (float)count;
}

// The pieces in which a graph makes gradients, and of how many states.
static int32_t count_pieces(const tl_graph *graph, int32_t *states) {
    int32_t id, count = 0;
    *states = 0;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (node->state != TL_STATE_PIECES) continue;
        count += (node->weight_rows + node->piece_rows - 1) / node->piece_rows;
        ++*states;
    }
    return count;
}

static void print_row(const program *p, const training *t, float loss) {
    char budget[24] = "-", recomputed[24], pieces[24], blocks[24];
    int is_reference = t == &p->rows[0] || t == &p->plain;
    int32_t states;
    if (t->budget) snprintf(budget, sizeof budget, "%llu", (unsigned long long)t->budget);
    snprintf(recomputed, sizeof recomputed, "%d of %d", (int)t->report.recompute_count,
             (int)(t->report.forward_count - t->report.recompute_count));
    snprintf(pieces, sizeof pieces, "%d", (int)count_pieces(&t->m->graph, &states));
    snprintf(blocks, sizeof blocks, "%llu", (unsigned long long)training_count_blocks(t->m));
    printf("%-12s %9s %13llu %14llu %8llu %11s %7s %7s", t->label, budget,
           (unsigned long long)t->report.planned_peak_bytes,
           (unsigned long long)t->report.measured_peak_bytes,
           (unsigned long long)t->report.taken_bytes, recomputed, pieces, blocks);
    if (p->row_count == 1 && !p->plain_losses) printf("  %8s", "-");
    else printf("  %8.3f", t->measured_ratio);
    if (t == &p->plain) printf("  %9s", "-");
    else printf("  %9.3f", t->predicted_ratio);
    printf("  %.4f  %s", (double)loss, is_reference ? "-" : t->equal ? "yes" : "NO");
    if (p->o.precision)
        printf("%*s%-9s  %7llu", is_reference ? 6 : t->equal ? 4 : 5, "",
               tl_name_format(t->m->format), (unsigned long long)t->scaler.skipped_count);
    printf("\n");
}

// What 16 bits cost and save, held against the same steps in f32: by the mean of a quarter of them,
// because two trainings that differ in a bit drift apart, and single batches tell little.
static void print_precision(const program *p) {
    const training *narrow = &p->rows[0];
    uint64_t bytes = narrow->report.measured_peak_bytes;
    uint64_t wide = p->plain.report.measured_peak_bytes;
    uint64_t steps = (p->rounds + 3) / 4;
    float loss = mean_loss(p, p->losses, steps), plain = mean_loss(p, p->plain_losses, steps);
    printf("%s: loss %.4f, of f32 %.4f: %+.2f %%; peak %llu bytes, of f32 %llu: %.2f;\n"
           "losses: mean of the last %llu steps",
           tl_name_format(p->m.format), (double)loss, (double)plain,
           100.0 * ((double)loss / (double)plain - 1.0), (unsigned long long)bytes,
           (unsigned long long)wide, (double)bytes / (double)wide, (unsigned long long)steps);
    if (p->m.clips)
        printf(";\nloss scale %.0f after %llu of %llu steps skipped for an overflow",
               (double)narrow->scaler.scale, (unsigned long long)narrow->scaler.skipped_count,
               (unsigned long long)p->rounds);
    printf("\n");
}

// Returns what the rows say: 0, or 3 where a weight or a peak is not as it must be.
static int print_table(program *p) {
    int32_t k, gaps = 0;
    int code = TRAINING_OK;
    if (!p->rounds) return TRAINING_OK;
    printf("\n%-30s                                  forwards     in      in   step time / keep all"
           "            weights\n", p->o.outside ? "activations of one step" : "all bytes of one step");
    printf("row             budget  planned peak  measured peak    taken  made again  pieces  blocks  measured"
           "  predicted    loss  equal%s\n", p->o.precision ? "  precision  skipped" : "");
    for (k = p->plain_losses ? -1 : 0; k < p->row_count; k++) {
        training *t = k < 0 ? &p->plain : &p->rows[k];
        t->measured_ratio =
            training_find_ratio(t->rounds_ns, p->rows[0].rounds_ns, (size_t)p->rounds);
        print_row(p, t, mean_loss(p, k < 0 ? p->plain_losses : p->losses, count_losses(p)));
        if (!t->equal || t->report.planned_peak_bytes != t->report.measured_peak_bytes ||
            (t->budget && t->report.taken_bytes > t->budget))
            code = TRAINING_MISMATCH;
    }
    printf("%llu steps each%s; taken: by the backend from the system, in one block, at the start;\n"
           "times: processor time, medians; loss: mean of the last %d steps;\n"
           "equal: every weight, moment and loss after every step, bit for bit\n",
           (unsigned long long)p->rounds, training_interrupted ? " (interrupted)" : "",
           (int)count_losses(p));
    for (k = 0; k < p->row_count; k++) training_print_gap(p->rows[k].gap_ratio, &gaps);
    training_end_gaps(gaps);
    if (p->plain_losses) print_precision(p);
    fflush(stdout);
    return code;
}

// -- pictures --

static int write_pictures(program *p) {
    tl_memory_curve curves[ROW_MAX];
    tl_svg_line lines[ROW_MAX];
    char labels[ROW_MAX][48], taken[ROW_MAX][48];
    training_pictures pictures;
    int32_t k;
    if (!p->rounds) return TRAINING_OK;
    memset(curves, 0, sizeof curves);
    memset(&pictures, 0, sizeof pictures);
    for (k = 0; k < p->row_count; k++) {
        const training *t = &p->rows[k];
        tl_memory_curve *curve = &curves[pictures.count];
        if (!t->is_drawn) continue;
        snprintf(labels[k], sizeof labels[k], "%s, %.2f MiB", t->label,
                 training_mib(t->report.measured_peak_bytes));
        curve->label = labels[k];
        curve->live_bytes = t->fastest_live;
        curve->times = t->fastest_ends;
        curve->count = t->plan.step_count;
        snprintf(taken[k], sizeof taken[k], "%s takes", t->label);
        lines[pictures.count].label = taken[k];
        lines[pictures.count].bytes = t->report.taken_bytes;
        pictures.count++;
    }
    pictures.curves = curves;
    pictures.style.title = "Memory over one training step, measured";
    pictures.style.time_label = "ms";
    pictures.style.lines = lines;
    pictures.style.line_count = pictures.count < 8 ? pictures.count : 8;
    pictures.trace = p->trace;
    pictures.graph = &p->m.graph;
    return training_write_pictures(&p->env, &pictures, p->o.out);
}

// -- sample: train on, and let the network write --

// The last row goes on alone until --seconds of the whole program are over.
static int train_on(program *p) {
    training *t = &p->rows[p->row_count - 1];
    uint64_t end = p->start_ns + p->o.seconds * 1000000000u, first = t->step, now;
    float mean = t->loss;
    t->trace = NULL;
    while ((now = training_wall_ns()) < end && !training_interrupted) {
        tl_result result = train_step(t);
        if (result) {
            training_clear_progress(&p->progress);
            return training_fail_result(&p->env, t->label, result);
        }
        mean += 0.05f * (t->loss - mean);
        training_show_progress(&p->progress, "training on", t->step, (double)mean,
                               (double)(end - now) * 1e-9);
    }
    training_clear_progress(&p->progress);
    if (t->step > first)
        printf("trained on within %s to step %llu: loss %.3f\n", t->label,
               (unsigned long long)t->step, (double)mean);
    return TRAINING_OK;
}

// A run of the same network for one sequence, forward only.
typedef struct sampler {
    training_model m;
    net        network;
    tl_plan    plan;
    tl_backend backend;
    tl_run    *run;
    int32_t   *window;            // [T]
    float     *logits;            // [T][V]
} sampler;

// floats: [3][param_count], of which the weights are taken.
static tl_result init_sampler(program *p, sampler *s, float *floats) {
    tl_kernel kernels[KERNEL_COUNT];
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_result result;
    memset(s, 0, sizeof *s);
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    s->m.size = p->m.size;
    s->m.size.B = 1;
    s->m.add_bytes = add_bytes;
    s->m.owns_weights = 1;
    result = training_build_model(&p->env, &s->m);
    s->network.m = &s->m;
    s->window = (int32_t *)calloc((size_t)s->m.size.T, sizeof *s->window);
    s->logits = (float *)calloc((size_t)(s->m.size.T * s->m.size.V), sizeof *s->logits);
    if (!result && (!s->window || !s->logits)) result = TL_ERROR_NO_MEMORY;
    if (!result) result = tl_plan_keep_all(&p->env, &s->m.graph, 1, &s->plan);
    if (!result) result = tl_init_cpu_backend(&p->env, &cpu, &s->backend);
    set_kernels(kernels, &s->network);
    desc.graph = &s->m.graph;
    desc.backend = &s->backend;
    desc.kernels = kernels;
    desc.kernel_count = KERNEL_COUNT;
    desc.plan = &s->plan;
    if (!result) result = tl_init_run(&p->env, &desc, &s->run);
    return result ? result : training_move_states(&s->m, s->run, floats, 1);
}

static void free_sampler(program *p, sampler *s) {
    tl_free_run(s->run);
    tl_free_cpu_backend(&p->env, &s->backend);
    tl_free_plan(&p->env, &s->plan);
    training_free_model(&p->env, &s->m);
    free(s->window);
    free(s->logits);
}

// Write `count` characters, each drawn from what the network says after those before it. A line that does not
// end by itself, because the network has learned little yet, ends at SAMPLE_COLUMNS.
enum { SAMPLE_COLUMNS = 96 };
static const float sample_temperature = 0.85f;  // at lower ones a network that has learned little writes only spaces

static tl_result sample_text(program *p, sampler *s, uint64_t count) {
    const training_dims *d = &s->m.size;
    tl_tensor tokens = { 0, 0 }, logits = { 0, 0 };
    const int newline = '\n';
    uint64_t i, known = 1;  // tokens in the window; later ones do not matter: attention is causal
    int32_t column = 0, line_end;
    tl_result result = TL_OK;
    tokens.node = s->m.tokens;
    logits.node = s->m.logits;
    line_end = p->t.is_used[newline] ? p->t.id_of[newline] : p->t.ids[0];
    s->window[0] = line_end;
    printf("    | ");
    for (i = 0; i < count && !result; i++) {
        int32_t token;
        int byte;
        result = tl_write_tensor(s->run, tokens, s->window, d->T * sizeof *s->window);
        if (!result) result = tl_run_plan(s->run);
        if (!result)
            result = tl_read_tensor(s->run, logits, s->logits, d->T * d->V * sizeof *s->logits);
        if (result) break;
        token = nn_sample(s->logits + (known - 1) * d->V, (size_t)d->V, sample_temperature,
                          nn_uniform(p->o.seed ^ 0x73616D70u, i));
        if (column == SAMPLE_COLUMNS) token = line_end;
        if (known < d->T) known++;
        else memmove(s->window, s->window + 1, (size_t)(d->T - 1) * sizeof *s->window);
        s->window[known - 1] = token;
        byte = p->t.byte_of[token];
        if (byte == newline || column == SAMPLE_COLUMNS) {
            printf("\n    | ");
            column = 0;
        } else {
            putchar(byte < 32 || byte == 127 ? ' ' : byte);
            column++;
        }
    }
    printf("\n");
    return result;
}

static int print_sample(program *p) {
    sampler s;
    tl_result result;
    if (!p->o.sample) return TRAINING_OK;
    printf("\nwhat the network writes now:\n\n");
    result = init_sampler(p, &s, p->states[0]);
    if (!result) result = sample_text(p, &s, p->o.sample);
    free_sampler(p, &s);
    return result ? training_fail_result(&p->env, "sample", result) : TRAINING_OK;
}

// -- command line --

static const char *const usage =
    "01_train_text: train a character-level transformer within a fixed number of bytes\n"
    "\n"
    "  --text FILE        train on this text (examples/training_text.txt)\n"
    "  --budget BYTES     one run within so many bytes, weights, gradients and AdamW included: 12MiB,\n"
    "                     640KiB, 1000000; or 60%: of what a step takes that keeps everything\n"
    "  --updates WHEN     fused: weights as soon as their gradient is complete, which is freed; end: when\n"
    "                     all are (fused; end where there is a loss scale); outside: behind the pass,\n"
    "                     no part of the plan, so that budgets are of activations alone\n"
    "  --plan KIND        layers, graph, rows, all or none: what makes the plans of the table (all); rows:\n"
    "                     of the graph with regions of nodes that go over the batch in blocks of its rows,\n"
    "                     f32 alone. Of a --budget the graph, and below what that can do rows\n"
    "  --whole-gradients  plans of the graph may make gradients of linear layers and embeddings by rows, each\n"
    "                     updated before the next are made; this keeps them whole. So do --updates end\n"
    "                     and outside, a loss scale, --micro-batches, and plans by layers\n"
    "  --estimate         plan by estimated FLOP, not by what was measured: the same plans each"
    " time\n"
    "  --precision NAME   f32, bf16 or f16: how activations are stored (f32). Weights, optimizer,\n"
    "                     sums stay f32; without --budget, f32 trains beside it for comparison\n"
    "  --loss-scale N     of bf16 and f16: what the loss is multiplied by at first (f16: 65536);\n"
    "                     halved at each overflow, and that step is skipped\n"
    "  --steps N          steps of every row of the table (100), and nothing after it\n"
    "  --seconds N        then the last row trains on until the program has run so long (30)\n"
    "  --layers N --width N --context N --batch N    size of the network (6 48 32 4)\n"
    "  --micro-batches N  batches whose gradients are summed up in a step (1)\n"
    "  --seed N           of weights, batches and dropout (1)\n"
    "  --save FILE        write the weights and the optimizer's state at the end\n"
    "  --load FILE        go on with them; sizes and seed are the file's\n"
    "  --sample N         characters to write at the end (600)\n"
    "  --out DIR          where memory.svg and trace.json go (build)\n"
    "  --checked          poison dead bytes, guard blocks, give kernels only what is theirs\n"
    "  --quick            a tiny network for a few steps\n"
    "  --help             this list\n"
    "\n"
    "exit code: 0 ok, 1 bad input or a file that could not be written, 2 the budget is below the\n"
    "least possible, 3 measured differs from planned or weights are not equal\n";

static int read_options(options *o, int count, char **argv, int *done) {
    const training_option table[] = {
        { "--steps", 1, 1000000, &o->steps, NULL, &o->given_steps },
        { "--seconds", 0, 1000000, &o->seconds, NULL, &o->given_seconds },
        { "--layers", 1, 64, &o->layers, NULL, &o->given_size },
        { "--width", TRAINING_HEAD, 1024, &o->width, NULL, &o->given_size },
        { "--context", 2, 1024, &o->context, NULL, &o->given_size },
        { "--batch", 1, 1024, &o->batch, NULL, NULL },
        { "--micro-batches", 1, 1024, &o->micro_batches, NULL, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, NULL, &o->given_seed },
        { "--sample", 0, 1000000, &o->sample, NULL, NULL },
        { "--loss-scale", 1, (uint64_t)1 << 40, &o->loss_scale, NULL, NULL },
        { "--precision", 0, 0, NULL, &o->precision, NULL },
        { "--updates", 0, 0, NULL, &o->updates, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--load", 0, 0, NULL, &o->load, NULL },
        { "--save", 0, 0, NULL, &o->save, NULL },
        { "--out", 0, 0, NULL, &o->out, NULL },
        { "--budget", 0, 0, NULL, &o->budget, NULL },
        { "--plan", 0, 0, NULL, &o->plan, NULL },
        { "--whole-gradients", 0, 0, NULL, NULL, &o->whole },
        { "--checked", 0, 0, NULL, NULL, &o->checked },
        { "--estimate", 0, 0, NULL, NULL, &o->estimates },
        { "--quick", 0, 0, NULL, NULL, NULL },
    };
    return training_parse_options(table, sizeof table / sizeof *table, usage, count, argv, done);
}

static void set_defaults(options *o, int quick) {
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = 6;
    o->width = quick ? 16 : 48;
    o->context = quick ? 16 : 32;
    o->batch = quick ? 2 : 4;
    o->micro_batches = 1;
    o->seed = 1;
    o->steps = quick ? 5 : 100;
    o->seconds = quick ? 0 : 30;
    o->sample = quick ? 60 : 600;
    (void)training_parse_plan(NULL, o->kinds);
}

static int parse_precision(options *o) {
    if (o->precision && (!tl_parse_format(o->precision, &o->format) || o->format > TL_FORMAT_BF16))
        return training_fail(TRAINING_INPUT, "--precision %s: must be f32, bf16 or f16",
                             o->precision);
    if (o->loss_scale && o->format == TL_FORMAT_F32)
        return training_fail(TRAINING_INPUT, "--loss-scale: goes with --precision bf16 or f16");
    if (o->plan && strcmp(o->plan, "rows") == 0 && o->format != TL_FORMAT_F32)
        return training_fail(TRAINING_INPUT, "--plan rows: goes with --precision f32");
    return TRAINING_OK;
}

// Gradients in f16 need a scale: what is below 2^-24 is lost. bf16 has the range of f32. Where there is one, no
// weight changes before all gradients were seen.
static int has_loss_scale(const options *o) {
    return o->format == TL_FORMAT_F16 || (o->format == TL_FORMAT_BF16 && o->loss_scale > 0);
}

static int parse_updates(options *o) {
    o->when = has_loss_scale(o) ? TL_UPDATES_END : TL_UPDATES_FUSED;
    o->outside = o->updates && strcmp(o->updates, "outside") == 0;
    if (o->outside && has_loss_scale(o))
        return training_fail(TRAINING_INPUT, "--updates outside: with a loss scale a step may be skipped: fused or end");
    if (o->updates && !o->outside && !tl_parse_updates(o->updates, &o->when))
        return training_fail(TRAINING_INPUT, "--updates %s: must be fused, end or outside", o->updates);
    if (has_loss_scale(o) && o->when == TL_UPDATES_FUSED)
        return training_fail(TRAINING_INPUT, "--updates fused: with a loss scale an overflow shows at the end");
    return TRAINING_OK;
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int code;
    set_defaults(o, training_is_quick(count, argv));
    code = read_options(o, count, argv, done);
    if (code || *done) return code;
    code = training_parse_plan(o->plan, o->kinds);
    if (!code) code = parse_precision(o);
    if (!code) code = parse_updates(o);
    if (!code) code = training_check_multiple("--width", o->width, TRAINING_HEAD);
    if (code) return code;
    if (o->given_steps && !o->given_seconds) o->seconds = 0;
    return TRAINING_OK;
}

static int parse_budget(const char *value, uint64_t keep_all, uint64_t *bytes) {
    static const char *const units[] = { "", "B", "KiB", "MiB", "GiB", "%" };
    static const double factors[] = { 1.0, 1.0, 1024.0, 1048576.0, 1073741824.0, 0.0 };
    char *end;
    double number = strtod(value, &end);
    int i;
    *bytes = 0;
    for (i = 0; i < 6; i++) {
        double total;
        if (end == value || strcmp(end, units[i]) != 0) continue;
        total = i == 5 ? number / 100.0 * (double)keep_all : number * factors[i];
        if (!(total > 0.0 && total < 1e15)) break;
        *bytes = (uint64_t)total;
        return TRAINING_OK;
    }
    return training_fail(TRAINING_INPUT,
                         "--budget %s: must be bytes like 12MiB, 640KiB or 1000000, or 60%%",
                         value);
}

// -- pieces: gradients that are never there whole --
//
// A linear layer and an embedding make some rows of the gradient of their weights, AdamW updates them, and their
// bytes take the next ones. Not where several micro-batches add to a gradient, where updates wait for the end of the
// step, or where an overflow must be known before the first of them.

static int may_cut(const program *p) {
    return p->o.kinds[TRAINING_GRAPH] && !p->o.whole && p->m.owns_weights && !p->m.holds_gradients && p->m.updates == TL_UPDATES_FUSED;
}

// Whether plans may cut regions of rows: kernels of tensors in 16 bits have blocks of their own.
static int may_cut_rows(const program *p) {
    return p->o.kinds[TRAINING_REGIONS] && p->m.format == TL_FORMAT_F32;
}

// What a further call of a kernel costs: measured; or estimated by the elements of the widest gradient of an output,
// which every call for rows reads.
static uint64_t find_call_cost(const program *p) {
    const training_dims *s = &p->m.size;
    return p->m.node_ns ? p->piece_ns : 4 * s->C * s->B * s->T;
}

// Choose the largest gradient that is made at once: for the cheapest plan within a budget, or where there is none for
// the least budget. UINT64_MAX = all stay whole.
static tl_result choose_pieces(program *p, uint64_t budget, uint64_t *piece_bytes) {
    tl_remat_desc desc;
    tl_result result;
    *piece_bytes = UINT64_MAX;
    if (!may_cut(p)) return TL_OK;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->m.graph;
    desc.budget_bytes = budget;
    desc.work_limit = TRAINING_WORK;
    desc.alignment_bytes = p->m.alignment_bytes;
    result = tl_choose_pieces(&p->env, &desc, find_call_cost(p), piece_bytes, NULL);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

// A model with a graph of its own, in which gradients are made in pieces of so many bytes.
static tl_result cut_model(program *p, const training_model *m, uint64_t piece_bytes, training_model *cut) {
    tl_pieces_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = &m->graph;
    desc.piece_bytes = piece_bytes;
    desc.alignment_bytes = m->alignment_bytes;
    desc.call_cost = find_call_cost(p);
    *cut = *m;
    return tl_apply_pieces(&p->env, &desc, &cut->graph);
}

// Build the model that regions are cut out of, with the costs that are known now.
static tl_result build_by_rows(program *p) {
    training_free_model(&p->env, &p->by_rows);
    p->by_rows = p->m;
    p->by_rows.row_unit = 1;
    p->by_rows.call_cost = p->m.node_ns ? p->row_ns : find_call_cost(p);
    return training_build_model(&p->env, &p->by_rows);
}

// What all gradients of weights and their updates take in a step, with the other gradients of the same nodes.
static uint64_t sum_backwards(const training_model *m, const uint64_t *times) {
    uint64_t sum = times[training_update_slot(m)];
    int32_t id;
    for (id = 0; id < m->node_count; id++)
        if (m->nodes[id].weight >= 0) sum += times[2 * id + 1];
    return sum;
}

// The cost of a further call, from the times of a step without pieces and of one with them. It has in it what a kernel
// does again in each call: nn_matmul_add copies the gradient of the output for a few rows as for all.
static uint64_t measure_pieces(const training_model *cut, const uint64_t *whole, const uint64_t *pieces) {
    uint64_t less = sum_backwards(cut, whole), more = sum_backwards(cut, pieces);
    int32_t states, calls = 2 * count_pieces(&cut->graph, &states) - states;
    return calls > 0 && more > less ? (more - less) / (uint64_t)calls : 0;
}

// -- costs --

// Measure the nodes and build the graph again with what they take.
//
// Up to four networks rehearse: the first keeps everything, the second little. The same kernel is
// quicker in the second, whose smaller memory stays in the cache (by 5 % here and there), so
// its nanoseconds are the costs by which plans are made, while those of the first make up the step
// that all ratios refer to. The third is the second with gradients in pieces, whose calls take the
// difference; the last one is the first with regions of rows.
// Under --budget there is only one; where it has pieces, what they take is in the backward of their readers.
static int prepare_costs(program *p, const training_model *const *models, tl_plan *plans, int count) {
    size_t slots = training_count_cost_slots(&p->m), update = training_update_slot(&p->m), i;
    uint64_t whole[REHEARSAL_MAX] = { 0 };
    int last = count - 1;
    uint64_t *times = (uint64_t *)calloc(REHEARSAL_MAX * slots, sizeof *times);
    const uint64_t *costs = times + (count > 1 ? slots : 0);
    tl_result result = times ? TL_OK : TL_ERROR_NO_MEMORY;
    p->node_ns = (uint64_t *)calloc(slots, sizeof *p->node_ns);
    if (!p->node_ns) result = TL_ERROR_NO_MEMORY;
    if (!result) result = rehearse(&p->env, models, &p->t, &p->o, &p->w, plans, count, times, whole);
    if (!result) {
        for (i = 0; i < update; i++) p->node_ns[i] = costs[i] / p->o.micro_batches;
        p->m.update_rate = training_find_update_rate(&p->m, costs[update]);
        p->outside_ns = costs[slots - 1];
        for (i = 0; i < slots && count > 1; i++) p->keep_all_ns += times[i];
        if (count > 1 && models[last]->regions.rows.memory)
            p->row_ns = training_measure_rows(models[last--], times, whole[0], whole[count - 1]);
        if (last > 1) p->piece_ns = measure_pieces(models[2], costs, costs + slots);
    }
    free(times);
    if (result) return training_fail_result(&p->env, "rehearsal", result);
    if (training_interrupted)
        return training_fail(TRAINING_INPUT, "interrupted before the first step");
    training_free_model(&p->env, &p->m);
    tl_free_plan(&p->env, &p->keep_all);
    p->m.node_ns = p->node_ns;
    result = training_build_model(&p->env, &p->m);
    if (!result) result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->keep_all);
    return result ? training_fail_result(&p->env, "graph", result) : TRAINING_OK;
}

// Rehearse for the table: with everything kept, with little, and with that and pieces of a few rows. Their size matters
// little: a call took 4 to 7 us with all of them, from rows one by one to halves of a gradient. Small ones are many,
// so that what they take shows.
static int rehearse_table(program *p, tl_plan *plans) {
    tl_checkpoint_config config = tl_checkpoint_uniform(1);
    const training_model *models[REHEARSAL_MAX];
    training_model in_pieces, in_rows;
    tl_result result = cut_model(p, &p->m, REHEARSAL_ROWS * 4 * p->m.size.C * sizeof(float), &in_pieces);
    int count = 2, code;
    memset(&in_rows, 0, sizeof in_rows);
    models[0] = models[1] = &p->m;
    if (result) return training_fail_result(&p->env, "pieces", result);
    result = tl_plan_checkpoints(&p->env, &p->m.graph, &config, &plans[1]);
    if (!result && may_cut(p)) {
        models[count] = &in_pieces;
        result = tl_plan_checkpoints(&p->env, &in_pieces.graph, &config, &plans[count++]);
    }
    if (!result && may_cut_rows(p)) result = build_by_rows(p);
    if (!result && may_cut_rows(p)) result = training_cut_feed_forward(&p->env, &p->by_rows, &in_rows);
    if (!result && may_cut_rows(p)) {
        models[count] = &in_rows;
        result = tl_plan_keep_all(&p->env, training_planned_graph(&in_rows), 0, &plans[count++]);
    }
    code = result ? training_fail_result(&p->env, "plan", result) : prepare_costs(p, models, plans, count);
    tl_free_graph(&p->env, &in_pieces.graph);
    training_free_regions(&p->env, &in_rows.regions);
    return code;
}

// -- main --

// Take the sizes of loaded weights; refuse others.
static int adopt_weights(program *p) {
    const weights *w = &p->w;
    options *o = &p->o;
    if (!w->bytes) return TRAINING_OK;
    if (o->given_size &&
        (o->layers != w->size.L || o->width != w->size.C || o->context != w->size.T))
        return training_fail(TRAINING_INPUT,
                             "weights %s: are for --layers %llu --width %llu --context %llu",
                             o->load, (unsigned long long)w->size.L,
                             (unsigned long long)w->size.C, (unsigned long long)w->size.T);
    if (w->size.L < 1 || w->size.L > 64 || w->size.C < TRAINING_HEAD || w->size.C > 1024 ||
        w->size.C % TRAINING_HEAD || w->size.T < 2 || w->size.T > 1024 || w->steps > UINT32_MAX)
        return training_fail(TRAINING_INPUT, "weights %s: sizes out of range", o->load);
    o->layers = w->size.L;
    o->width = w->size.C;
    o->context = w->size.T;
    if (!o->given_seed) o->seed = w->seed;
    return TRAINING_OK;
}

static int fail_infeasible(const program *p, const training_model *m, const training_found *found) {
    int32_t id = found->least_node;
    char layer[32] = "";
    if (id >= 0 && m->graph.nodes[id].layer >= 0)
        snprintf(layer, sizeof layer, " of layer %d", (int)m->graph.nodes[id].layer);
    return training_fail(TRAINING_INFEASIBLE,
                         "--budget %s: the least that works is %llu bytes (%.2f MiB), set by node %d (%s)%s",
                         p->o.budget, (unsigned long long)found->least_bytes,
                         ceil(training_mib(found->least_bytes) * 100.0) / 100.0, (int)id,
                         tl_name_node(&m->graph, id), layer);
}

// What a step by a plan takes: of several micro-batches the last one updates, and none is in pieces then.
static uint64_t predict_step(const program *p, const tl_plan *plan) {
    uint64_t updates = training_update_cost(&p->m);
    return p->o.micro_batches * (plan->cost - updates) + updates + p->outside_ns;
}

// Add a row; budget 0 = keep all. The model, which cut_model made, and the plan belong to it then.
static int add_row(program *p, const char *label, const training_model *model, tl_plan *plan, uint64_t budget) {
    training *t = &p->rows[p->row_count];
    training_model *m = &p->models[p->row_count++];
    uint64_t keep_all_ns = p->keep_all_ns;
    double predicted = (double)predict_step(p, plan);
    tl_result result;
    *m = *model;
    result = init_training(&p->env, t, m, &p->t, &p->o, &p->w, plan, budget);
    snprintf(t->label, sizeof t->label, "%s", label);
    if (!keep_all_ns) keep_all_ns = predict_step(p, &p->keep_all);
    t->predicted_ratio = budget ? predicted / (double)keep_all_ns : 1.0;
    t->gap_ratio = -1.0;
    t->is_drawn = 1;
    return result ? training_fail_result(&p->env, label, result) : TRAINING_OK;
}

// Add a row of the table; *is_least is 1 where it is the least that this kind of plan can do. Plans of the graph may
// make gradients in pieces.
static int add_found_row(program *p, const training_goal *goal, int *is_least) {
    training_found found;
    training_model model;
    training *t = &p->rows[p->row_count];
    uint64_t budget = goal->keep_all_bytes / 100 * goal->percent, piece_bytes = UINT64_MAX;
    char label[16] = "pieces";
    tl_result result = TL_OK;
    int code;
    if (goal->kind == TRAINING_GRAPH) result = choose_pieces(p, budget ? budget : 1, &piece_bytes);
    if (!result)
        result = cut_model(p, goal->kind == TRAINING_REGIONS ? &p->by_rows : &p->m, piece_bytes, &model);
    if (result) return training_fail_result(&p->env, label, result);
    result = training_find_row(&p->env, &model, goal, &found, &budget, label, is_least);
    if (result) tl_free_graph(&p->env, &model.graph);
    if (result) return training_fail_result(&p->env, label, result);
    model.regions = found.regions;
    code = add_row(p, label, &model, &found.plan, budget);
    if (goal->kind == TRAINING_GRAPH) t->gap_ratio = found.gap_ratio;
    t->is_drawn = goal->kind != TRAINING_LAYERS || !p->o.kinds[TRAINING_GRAPH];
    return code;
}

static uint64_t find_least_budget(const program *p) {
    uint64_t least = UINT64_MAX;
    int32_t k;
    for (k = 0; k < p->row_count; k++)
        if (p->rows[k].budget && p->rows[k].budget < least) least = p->rows[k].budget;
    return least;
}

// Add a row with regions of rows where the graph has no plan any more: at the next percent below its least, if
// that is enough.
static int add_region_row(program *p, uint64_t keep_all_bytes) {
    unsigned percent = (unsigned)((find_least_budget(p) - 1) * 100 / keep_all_bytes);
    uint64_t budget = keep_all_bytes / 100 * percent;
    training_model model;
    training_found found;
    char label[16];
    tl_result result = training_find_plan(&p->env, &p->by_rows, TRAINING_REGIONS, budget, &found);
    if (!result && !found.plan.steps) return TRAINING_OK;
    if (!result) result = cut_model(p, &p->by_rows, UINT64_MAX, &model);
    if (result) return training_fail_result(&p->env, "rows", result);
    model.regions = found.regions;
    snprintf(label, sizeof label, "%u %% %s", percent % 1000, training_kind_names[TRAINING_REGIONS]);
    return add_row(p, label, &model, &found.plan, budget);
}

static int add_keep_all(program *p) {
    training_model model;
    tl_plan plan;
    tl_result result = cut_model(p, &p->m, UINT64_MAX, &model);
    if (!result) result = tl_plan_keep_all(&p->env, &model.graph, 0, &plan);
    return result ? training_fail_result(&p->env, "keep all", result) : add_row(p, "keep all", &model, &plan, 0);
}

// The rows of the table: keep all; then shares of its bytes and the least there is, by each kind of plan, until it
// can do no less. Regions of rows begin where the graph ends.
static int add_rows(program *p) {
    static const unsigned percents[] = { 80, 65, 55, 45, 0 };
    int done[TRAINING_KIND_COUNT] = { 0 }, k, kind, code = TRAINING_OK;
    training_goal goal;
    memset(&goal, 0, sizeof goal);
    goal.keep_all_bytes = p->keep_all.peak_bytes;
    done[TRAINING_REGIONS] = !may_cut_rows(p) || p->o.kinds[TRAINING_GRAPH];
    code = add_keep_all(p);
    for (k = 0; k < 5; k++) {
        for (kind = 0; kind < TRAINING_KIND_COUNT && !code; kind++) {
            if (!p->o.kinds[kind] || done[kind]) continue;
            goal.kind = (training_kind)kind;
            goal.percent = percents[k];
            code = add_found_row(p, &goal, &done[kind]);
        }
    }
    if (code || !may_cut_rows(p) || !p->o.kinds[TRAINING_GRAPH]) return code;
    return add_region_row(p, goal.keep_all_bytes);
}

// Find a plan within --budget and the model that it is of. Pieces and regions are those of the first plan:
// the costs that are measured have theirs in them.
static tl_result find_budget_plan(program *p, training_kind kind, uint64_t bytes, int is_first,
                                  training_model *model, training_found *found) {
    int cuts = kind == TRAINING_REGIONS;
    tl_result result = cuts ? build_by_rows(p) : TL_OK;
    memset(found, 0, sizeof *found);
    if (is_first) p->piece_bytes = UINT64_MAX;
    if (!result && is_first && cuts) result = training_choose_rows(&p->env, &p->by_rows, bytes, &p->choice);
    if (is_first && kind == TRAINING_GRAPH) result = choose_pieces(p, bytes, &p->piece_bytes);
    if (!result) result = cut_model(p, cuts ? &p->by_rows : &p->m, p->piece_bytes, model);
    if (!result && cuts) result = training_plan_rows(&p->env, model, bytes, &p->choice, found);
    else if (!result) result = training_find_plan(&p->env, model, kind, bytes, found);
    if (result) return result;
    model->regions = found->regions;
    return TL_OK;
}

// Plan within --budget, and rehearse the plan (is_last 0) or make it the row. *kind becomes that of regions
// where the graph has no plan.
static int plan_budget(program *p, training_kind *kind, uint64_t bytes, int is_first, int is_last) {
    training_model model;
    const training_model *rehearsed = &model;
    training_found found;
    int code;
    tl_result result = find_budget_plan(p, *kind, bytes, is_first, &model, &found);
    if (!result && !found.plan.steps && *kind == TRAINING_GRAPH && may_cut_rows(p)) {
        tl_free_graph(&p->env, &model.graph);
        *kind = TRAINING_REGIONS;
        result = find_budget_plan(p, *kind, bytes, is_first, &model, &found);
    }
    if (result) return training_fail_result(&p->env, "budget", result);
    if (!found.plan.steps) code = fail_infeasible(p, &model, &found);
    else if (is_last) code = add_row(p, "budget", &model, &found.plan, bytes);
    else code = prepare_costs(p, &rehearsed, &found.plan, 1);
    if (p->row_count) {
        if (*kind == TRAINING_GRAPH) p->rows[0].gap_ratio = found.gap_ratio;
        return code;
    }
    tl_free_graph(&p->env, &model.graph);
    training_free_regions(&p->env, &model.regions);
    return code;
}

// One run within --budget, and never a byte more: not in the rehearsal either.
static int add_budget_row(program *p) {
    uint64_t bytes = 0;
    training_kind kind = p->o.kinds[TRAINING_GRAPH] ? TRAINING_GRAPH
                       : p->o.kinds[TRAINING_REGIONS] ? TRAINING_REGIONS : TRAINING_LAYERS;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->keep_all);
    int pass, code;
    if (result) return training_fail_result(&p->env, "keep all", result);
    code = parse_budget(p->o.budget, p->keep_all.peak_bytes, &bytes);
    for (pass = p->o.estimates; pass < 2 && !code; pass++) {  // by estimated costs, then measured
        if (pass == 1) training_print_costs(&p->m);
        code = plan_budget(p, &kind, bytes ? bytes : 1, pass == p->o.estimates, pass == 1);
    }
    return code;
}

// Print what a further call costs, where gradients may be in pieces, and regions in blocks.
static void print_calls(const program *p) {
    const char *unit = p->m.node_ns ? "us, measured" : "kFLOP, estimated";
    if (may_cut(p))
        printf("pieces     a further call of a kernel for some rows of a gradient or their update: %.2f %s\n",
               (double)find_call_cost(p) * 1e-3, unit);
    if (may_cut_rows(p))
        printf("blocks     a further call of a kernel for some rows of the batch: %.2f %s\n",
               (double)p->by_rows.call_cost * 1e-3, unit);
    fflush(stdout);
}

// Measure the nodes, unless FLOP are to do, and add the rows.
static int add_table(program *p) {
    tl_plan *plans = (tl_plan *)calloc(REHEARSAL_MAX, sizeof *plans);
    tl_result result = plans ? tl_plan_keep_all(&p->env, &p->m.graph, 0, &plans[0]) : TL_ERROR_NO_MEMORY;
    int code = TRAINING_OK;
    if (result) code = training_fail_result(&p->env, "plan", result);
    else if (p->o.estimates) p->keep_all = plans[0];
    else code = rehearse_table(p, plans);
    free(plans);
    if (code) return code;
    if (may_cut_rows(p)) result = build_by_rows(p);
    if (result) return training_fail_result(&p->env, "rows", result);
    training_print_costs(&p->m);
    print_calls(p);
    return add_rows(p);
}

// Weights and moments are states, which the plan's steps update.
static void own_weights(training_model *m, const options *o) {
    m->owns_weights = !o->outside;
    m->holds_gradients = o->micro_batches > 1;
    m->clips = m->format != TL_FORMAT_F32 && has_loss_scale(o);
    m->updates = o->when;
}

// The same network in f32: it keeps everything, and trains on the same batches.
static int add_plain(program *p) {
    tl_plan plan;
    tl_result result;
    p->wide.size = p->m.size;
    p->wide.trains = 1;
    p->wide.alignment_bytes = ALIGNMENT;
    p->wide.dropout = p->m.dropout;
    p->wide.add_bytes = add_bytes;
    own_weights(&p->wide, &p->o);
    result = training_build_model(&p->env, &p->wide);
    if (!result) result = tl_plan_keep_all(&p->env, &p->wide.graph, 0, &plan);
    if (!result)
        result = init_training(&p->env, &p->plain, &p->wide, &p->t, &p->o, &p->w, &plan, 0);
    p->plain_losses = (float *)calloc((size_t)p->o.steps, sizeof *p->plain_losses);
    if (!result && !p->plain_losses) result = TL_ERROR_NO_MEMORY;
    snprintf(p->plain.label, sizeof p->plain.label, "f32");
    return result ? training_fail_result(&p->env, "f32", result) : TRAINING_OK;
}

static int prepare(program *p, const char *program_path) {
    options *o = &p->o;
    int32_t k, events = 0;
    tl_result result;
    int code = load_weights(o, &p->w);
    if (!code) code = adopt_weights(p);
    if (!code)
        code = training_read_text(o->text, program_path, o->context,
                                  p->w.bytes ? p->w.vocabulary : NULL, &p->t);
    if (code) return code;
    p->m.size.L = o->layers;
    p->m.size.C = o->width;
    p->m.size.T = o->context;
    p->m.size.B = o->batch;
    p->m.size.V = (uint64_t)p->t.V;
    p->m.trains = 1;
    p->m.alignment_bytes = ALIGNMENT;
    p->m.dropout = 0.05f;
    p->m.add_bytes = add_bytes;
    p->m.format = o->format;
    own_weights(&p->m, o);
    result = training_build_model(&p->env, &p->m);
    if (result) return training_fail_result(&p->env, "graph", result);
    if (p->w.bytes && (p->w.size.V != p->m.size.V || p->w.count != p->m.param_count))
        return training_fail(TRAINING_INPUT, "weights %s: damaged, they do not fit their own sizes",
                             o->load);
    training_print_text(&p->t);
    training_print_network(&p->m, o->micro_batches);
    code = o->budget ? add_budget_row(p) : add_table(p);
    if (!code && !o->budget && o->format != TL_FORMAT_F32) code = add_plain(p);
    if (code) return code;
    for (k = 0; k < p->row_count; k++)
        events += p->rows[k].plan.step_count * (int32_t)o->micro_batches;
    p->losses = (float *)calloc((size_t)o->steps, sizeof *p->losses);
    for (k = 0; k < 2; k++) p->states[k] = (float *)calloc(3 * (size_t)p->m.param_count, sizeof *p->states[k]);
    result = p->losses && p->states[0] && p->states[1] ? tl_init_trace(&p->env, events, &p->trace) : TL_ERROR_NO_MEMORY;
    for (k = 0; k < p->row_count; k++) p->rows[k].trace = p->trace;
    return result ? training_fail_result(&p->env, "trace", result) : TRAINING_OK;
}

static int run(program *p, const char *program_path) {
    int code = prepare(p, program_path), table, pictures, saved;
    const training *last = &p->rows[p->row_count ? p->row_count - 1 : 0];
    tl_result result;
    if (code) return code;
    code = train_rounds(p);
    table = print_table(p);
    pictures = write_pictures(p);
    if (!code) code = table;
    if (!code) code = train_on(p);
    result = read_states(last, p->states[0]);
    if (result) return training_fail_result(&p->env, "weights", result);
    saved = save_weights(&p->o, &p->m, &p->t, last->step, p->o.seed, p->states[0]);
    if (!code && !training_interrupted) code = print_sample(p);
    if (!code) code = pictures ? pictures : saved;
    return code;
}

int main(int count, char **argv) {
    static program p;  // zero
    int done, k, code;
    p.start_ns = p.progress.shown_ns = training_wall_ns();
    p.progress.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p.o, count, argv, &done);
    if (code || done) return code;
    training_set_signals();
    code = run(&p, argv[0]);
    for (k = 0; k < p.row_count; k++) {
        free_training(&p.env, &p.rows[k]);
        tl_free_graph(&p.env, &p.models[k].graph);
        training_free_regions(&p.env, &p.models[k].regions);
    }
    free_training(&p.env, &p.plain);
    training_free_model(&p.env, &p.wide);
    training_free_model(&p.env, &p.by_rows);
    tl_free_rows_choice(&p.env, &p.choice);
    free(p.plain_losses);
    tl_free_trace(p.trace);
    tl_free_plan(&p.env, &p.keep_all);
    training_free_model(&p.env, &p.m);
    free(p.losses);
    free(p.states[0]);
    free(p.states[1]);
    free(p.node_ns);
    free(p.t.ids);
    free(p.w.bytes);
    return training_finish(code);
}
