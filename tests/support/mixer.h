// Kernels for any graph whose every byte depends on every byte that they may read, and what they saw.
// Include after cmocka and the header; with the types of whatever options it was included with.
#ifndef TESTS_MIXER_H
#define TESTS_MIXER_H

#include <stdint.h>
#include <string.h>
#include "run_inputs.h"

// -- kernels --

#define MIXER_NODES 1100

typedef enum mixer_stray { STRAY_NOT, STRAY_INPUT, STRAY_GRADIENT, STRAY_SAVED, STRAY_BYTE } mixer_stray;

// What the kernels of a run share: the outcome, what was counted, and how they misbehave.
typedef struct mixer {
    uint64_t gradients[MIXER_NODES];  // per node: stands for its parameter gradient, in order of the calls
    uint64_t seeds[MIXER_NODES];      // of the first forward in this pass
    int      ran[MIXER_NODES];        // forwards in this pass
    long     calls, forwards, recomputes, backwards, saves_alone, updates;
    // Faults.
    long     fail_at;                 // call number that fails; -1 = none
    int      skips_recompute;         // 1 = does nothing where it runs again
    int      reseeds_recompute;       // 1 = another seed where it runs again
    int      uses_stream;             // 1 = random numbers from a stream with a state, not from the seed
    uint64_t stream;
    uint64_t recorded[MIXER_NODES], present;  // of the stream, under the hook
    long     moments[TL_RANDOM_MOMENT_COUNT];
    mixer_stray stray;                // what a call touches that it may not, in call number stray_at
    long     stray_at;
    char    *stray_byte;
} mixer;

static inline void mixer_init(mixer *m) {
    memset(m, 0, sizeof *m);
    m->fail_at = -1;
}

static inline void mixer_start_pass(mixer *m) {
    memset(m->ran, 0, sizeof m->ran);
}

static uint64_t mix_bytes(uint64_t sum, const tl_operand *operand) {
    const unsigned char *at = (const unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001b3) + (sum >> 47);
    return tl_mix_u64(sum, operand->range.bytes);
}

// Adding is not commutative here: the order of the contributions shows.
static void mix_into(uint64_t sum, const tl_operand *operand, int adds) {
    unsigned char *at = (unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) {
        sum = sum * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at[i] = (unsigned char)((adds ? at[i] * 3u : 0u) + (unsigned)(sum >> 56));
    }
}

// -- states in pieces --

// The rows of a tensor that the kernels treat one by one: those of the weight and the moments of a state.
static inline uint64_t mixer_rows(const tl_graph *graph, int32_t tensor) {
    const tl_node *maker = &graph->nodes[graph->outputs[tensor].node];
    return maker->weight_rows ? (uint64_t)maker->weight_rows : 1;
}

static inline int mixer_has_rows(const tl_graph *graph, int32_t tensor) { return graph->nodes[graph->outputs[tensor].node].weight_rows > 0; }

// The part of an operand that is row r of so many.
static inline tl_operand mixer_row(tl_operand operand, uint64_t rows, uint64_t r) {
    operand.range.bytes /= rows;
    operand.host = operand.host ? (char *)operand.host + r * operand.range.bytes : NULL;
    return operand;
}

// The input of which a backward is called for some rows of the gradient; -1 = it is called for all the rest.
static inline int32_t mixer_piece(const tl_kernel_call *call) {
    const tl_node *node = &call->graph->nodes[call->node];
    int32_t i = node->input_count;
    if (call->kind != TL_STEP_BACKWARD) return -1;
    while (--i >= 0) {
        const tl_node_output *from = &call->graph->outputs[call->graph->inputs[node->first_input + i].tensor];
        if (call->graph->nodes[from->node].state == TL_STATE_PIECES && call->input_grads[i].range.bytes) return i;
    }
    return -1;
}

// The bytes of the rows of a tensor that a call has; of a call for all rows those of the tensor.
static inline uint64_t mixer_bytes(const tl_kernel_call *call, const tl_node_output *tensor) {
    const tl_node *state = &call->graph->nodes[tensor->node];
    return state->state == TL_STATE_PIECES ? tensor->bytes / (uint64_t)state->weight_rows * call->count : tensor->bytes;
}

// Which rows a piece has: those that follow the piece before, as many as a piece has, and no row behind the last.
static inline void mixer_check_rows(const tl_kernel_call *call, const tl_node *state) {
    assert_int_equal(call->total, state->weight_rows);
    assert_int_equal(call->first % (uint64_t)state->piece_rows, 0);
    assert_int_equal(call->count, call->total - call->first < (uint64_t)state->piece_rows ? call->total - call->first
                                                                                          : (uint64_t)state->piece_rows);
}

// A call gets what its step names: the right bytes, and nothing else.
static void mixer_check(const mixer *m, const tl_kernel_call *call) {
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    int backward = call->kind == TL_STEP_BACKWARD, in_pieces = node->state == TL_STATE_PIECES;
    int32_t i, piece = mixer_piece(call), is_hidden;
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        const tl_node_output *tensor = &graph->outputs[input->tensor];
        uint64_t gradient = backward && graph->nodes[tensor->node].has_grad && piece < 0 ? tensor->bytes : 0;
        if (i == piece) gradient = mixer_bytes(call, tensor);
        is_hidden = piece >= 0 && graph->nodes[tensor->node].state == TL_STATE_PIECES;     // some rows were updated
        assert_int_equal(call->inputs[i].range.bytes, !backward || (input->needed && !is_hidden) ? tensor->bytes : 0);
        assert_int_equal(call->input_grads[i].range.bytes, gradient);
        assert_int_equal(!call->inputs[i].host, !call->inputs[i].range.bytes);
        assert_int_equal(!call->input_grads[i].host, !gradient);
    }
    for (i = 0; i < node->output_count; i++) {
        const tl_node_output *output = &graph->outputs[node->first_output + i];
        assert_int_equal(call->outputs[i].range.bytes, !backward || output->needed || in_pieces ? mixer_bytes(call, output) : 0);
        assert_int_equal(call->output_grads[i].range.bytes, backward && (!node->state || !i) ? mixer_bytes(call, output) : 0);
    }
    if (in_pieces) mixer_check_rows(call, node);
    if (piece >= 0) mixer_check_rows(call, &graph->nodes[graph->outputs[graph->inputs[node->first_input + piece].tensor].node]);
    assert_int_equal(call->saved.range.bytes, backward || call->kind == TL_STEP_FORWARD_SAVE ? node->saved_bytes : 0);
    if (!in_pieces && piece < 0)
        assert_int_equal(call->scratch.range.bytes,
                     backward ? node->bwork_bytes : call->kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes);
    assert_int_equal(!call->saved.host, !call->saved.range.bytes);
    if (call->kind == TL_STEP_FORWARD_INPLACE)
        assert_ptr_equal(call->inputs[node->inplace].host, call->outputs[0].host);
    if (m->ran[call->node]) assert_int_equal(call->seed, m->seeds[call->node]);
    if (!backward) assert_int_equal(call->recompute, m->ran[call->node] > 0);
    if (!backward && node->once) assert_int_equal(m->ran[call->node], 0);
}

static void mixer_misbehave(const mixer *m, const tl_kernel_call *call) {
    void *byte = NULL;
    switch (m->stray) {
    case STRAY_INPUT: byte = call->inputs[0].host; break;
    case STRAY_GRADIENT: byte = call->output_grads[0].host; break;
    case STRAY_SAVED: byte = call->saved.host; break;
    case STRAY_BYTE: byte = m->stray_byte; break;
    case STRAY_NOT: break;
    }
    if (byte) *(char *)byte ^= 1;
}

static uint64_t mixer_random(mixer *m, const tl_kernel_call *call) {
    if (m->uses_stream) return m->stream = m->stream * UINT64_C(6364136223846793005) + 99;
    return call->seed + (m->reseeds_recompute && call->recompute ? 1 : 0);
}

static tl_result mixer_forward(const tl_kernel_call *call, void *user) {
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum;
    int32_t i;
    if (m->calls++ == m->fail_at) return TL_ERROR_CORRUPT;
    mixer_check(m, call);
    m->forwards++;
    m->recomputes += call->recompute;
    m->saves_alone += call->outputs_ready;
    if (!m->ran[call->node]++) m->seeds[call->node] = call->seed;
    sum = tl_mix_u64(mixer_random(m, call), (uint64_t)call->node);
    if (m->skips_recompute && call->recompute) return TL_OK;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    mix_into(sum + 1000, &call->scratch, 1);
    if (!call->outputs_ready)
        for (i = 0; i < node->output_count; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    mix_into(sum + 77, &call->saved, 0);
    if (m->stray && m->calls - 1 == m->stray_at) mixer_misbehave(m, call);
    return TL_OK;
}

// The update of a state writes the weight and all moments, in an order that shows.
static void mixer_update(mixer *m, const tl_kernel_call *call, uint64_t sum) {
    const tl_node *node = &call->graph->nodes[call->node];
    int32_t i, end = node->output_count - (node->state == TL_STATE_HELD);
    uint64_t rows = node->state == TL_STATE_PIECES ? call->count : mixer_rows(call->graph, node->first_output), r;
    for (r = 0; r < rows; r++) {
        tl_operand gradient = mixer_row(call->output_grads[0], rows, r);
        uint64_t own = mix_bytes(sum, &gradient);
        for (i = 0; i < end; i++) {
            tl_operand row = mixer_row(call->outputs[i], rows, r);
            mix_into(own + (uint64_t)i, &row, 1);
        }
    }
    mix_into(sum + 1000, &call->scratch, 1);
    if (node->state != TL_STATE_PIECES || call->first + call->count == call->total) m->updates++;
}

static tl_result mixer_backward(const tl_kernel_call *call, void *user) {
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64((uint64_t)call->node, m->uses_stream ? 0 : call->seed), r, rows_sum;
    int32_t i, piece = mixer_piece(call);
    if (m->calls++ == m->fail_at) return TL_ERROR_CORRUPT;
    mixer_check(m, call);
    m->backwards += node->state != TL_STATE_PIECES && piece < 0;
    if (node->state) { mixer_update(m, call, sum); return TL_OK; }
    for (i = 0; i < node->output_count; i++) {
        sum = mix_bytes(sum, &call->outputs[i]);
        sum = mix_bytes(sum, &call->output_grads[i]);
    }
    sum = mix_bytes(sum, &call->saved);
    for (i = 0; i < node->input_count; i++)
        if (!mixer_has_rows(call->graph, call->graph->inputs[node->first_input + i].tensor)) sum = mix_bytes(sum, &call->inputs[i]);
    rows_sum = sum;     // no gradient of a weight with rows depends on such a weight
    for (i = 0; i < node->input_count; i++)
        if (mixer_has_rows(call->graph, call->graph->inputs[node->first_input + i].tensor)) sum = mix_bytes(sum, &call->inputs[i]);
    mix_into(sum + 1000, &call->scratch, 1);
    if (piece < 0) m->gradients[call->node] = tl_mix_u64(m->gradients[call->node], sum);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = call->graph->inputs[node->first_input + i].tensor;
        uint64_t rows = i == piece ? call->count : mixer_rows(call->graph, tensor), own = mixer_has_rows(call->graph, tensor) ? rows_sum : sum;
        for (r = 0; r < rows; r++) {
            tl_operand row = mixer_row(call->input_grads[i], rows, r);
            mix_into(own + (uint64_t)i + 64 * (r + (i == piece ? call->first : 0)), &row, 1);
        }
    }
    if (m->stray && m->calls - 1 == m->stray_at) mixer_misbehave(m, call);
    return TL_OK;
}

// A stream of random numbers that repeats because the hook puts its state back.
static inline void mixer_random_hook(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user) {
    mixer *m = (mixer *)user;
    (void)micro_batch;
    m->moments[moment]++;
    switch (moment) {
    case TL_RANDOM_RECORD: m->recorded[node] = m->stream; break;
    case TL_RANDOM_REPLAY: m->present = m->stream; m->stream = m->recorded[node]; break;
    case TL_RANDOM_RESUME: m->stream = m->present; break;
    case TL_RANDOM_MOMENT_COUNT: break;
    }
}

// One kernel a node: the first of an op serves all of it. Returns how many.
static inline int32_t mixer_kernels(const tl_graph *graph, mixer *m, tl_kernel *kernels) {
    return list_kernels(graph, mixer_forward, mixer_backward, m, kernels);
}

#endif
