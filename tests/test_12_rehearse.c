// [12] RUN: a rehearsal finds every wrong declaration at the first run and names it; it finds nothing where there is
// nothing, and leaves the caller's state as it was.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/random_graph.h"
#include "nn.h"

// -- kernels that hash what they may read --

typedef struct hasher {
    uint64_t gradients[MIXER_NODES];  // registered: one for each node
    uint64_t steps[MIXER_NODES];      // statistics, registered: forwards that ran for the first time
    long     calls, fail_at;          // call that fails; -1 = none
} hasher;

static uint64_t tensor_bytes(const tl_kernel_call *call, int32_t tensor) { return call->graph->outputs[tensor].bytes; }

// Of output 0, with the bytes at its end that make no whole element as one more: these hashes go by bytes.
static uint64_t elements_of(const tl_kernel_call *call) {
    uint64_t bytes = tensor_bytes(call, call->graph->nodes[call->node].first_output);
    assert_true(call->total == bytes / 4);      // whole ones
    assert_true(call->count <= call->total && call->first <= call->total - call->count);
    return bytes / 4 + (bytes % 4 > 0);
}

// Those of the call; its ranges have what is left at the end.
static uint64_t count_of(const tl_kernel_call *call) {
    const tl_operand *operand = call->kind == TL_STEP_BACKWARD ? &call->output_grads[0] : &call->outputs[0];
    return (operand->range.bytes + 3) / 4;
}

// One element of an operand of a node that takes blocks, or all of one that has another number of elements.
static tl_operand hash_part(const tl_kernel_call *call, const tl_operand *operand, uint64_t whole_bytes, uint64_t at) {
    tl_operand part = *operand;
    if (!part.range.bytes || whole_bytes / 4 + (whole_bytes % 4 > 0) != elements_of(call)) return part;
    part.host = (char *)part.host + 4 * at;
    part.range.bytes = part.range.bytes - 4 * at < 4 ? part.range.bytes - 4 * at : 4;
    return part;
}

// The same sums element by element: what comes of one depends on its number, not on the range in which it is.
static void hash_forward_blocks(const tl_kernel_call *call) {
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    uint64_t at;
    int32_t i;
    for (at = 0; at < count_of(call); at++) {
        uint64_t sum = tl_mix_u64(call->seed, call->first + at);
        for (i = 0; i < node->input_count; i++) {
            tl_operand part = hash_part(call, &call->inputs[i], tensor_bytes(call, graph->inputs[node->first_input + i].tensor), at);
            sum = mix_bytes(sum, &part);
        }
        for (i = 0; i < node->output_count; i++) {
            tl_operand part = hash_part(call, &call->outputs[i], tensor_bytes(call, node->first_output + i), at);
            mix_into(sum + (uint64_t)i, &part, 0);
        }
    }
}

static void hash_backward_blocks(const tl_kernel_call *call, uint64_t *gradient) {
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    uint64_t at;
    int32_t i;
    for (at = 0; at < count_of(call); at++) {
        uint64_t sum = tl_mix_u64(call->seed, call->first + at);
        for (i = 0; i < node->input_count; i++) {
            int32_t tensor = graph->inputs[node->first_input + i].tensor;
            tl_operand part = hash_part(call, &call->inputs[i], tensor_bytes(call, tensor), at);
            if (graph->inputs[node->first_input + i].needed) sum = mix_bytes(sum, &part);
        }
        for (i = 0; i < node->output_count; i++) {
            tl_operand part = hash_part(call, &call->outputs[i], tensor_bytes(call, node->first_output + i), at);
            tl_operand grad = hash_part(call, &call->output_grads[i], tensor_bytes(call, node->first_output + i), at);
            if (graph->outputs[node->first_output + i].needed) sum = mix_bytes(sum, &part);
            sum = mix_bytes(sum, &grad);
        }
        *gradient += sum;
        for (i = 0; i < node->input_count; i++) {
            tl_operand part = hash_part(call, &call->input_grads[i], tensor_bytes(call, graph->inputs[node->first_input + i].tensor), at);
            mix_into(sum + (uint64_t)i, &part, 1);
        }
    }
}

static tl_result hash_forward(const tl_kernel_call *call, void *user) {
    hasher *h = (hasher *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    if (h->calls++ == h->fail_at) return TL_ERROR_CORRUPT;
    h->steps[call->node] += !call->recompute && !call->first;
    if (node->takes_blocks) { mix_into(1000, &call->scratch, 0); hash_forward_blocks(call); return TL_OK; }
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    mix_into(sum + 1000, &call->scratch, 0);
    if (!call->outputs_ready)
        for (i = 0; i < node->output_count; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    if (call->saved.range.bytes) mix_into(sum + 77, &call->saved, 0);
    return TL_OK;
}

static tl_result hash_backward(const tl_kernel_call *call, void *user) {
    hasher *h = (hasher *)user;
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    if (h->calls++ == h->fail_at) return TL_ERROR_CORRUPT;
    if (node->takes_blocks) { mix_into(1000, &call->scratch, 0); hash_backward_blocks(call, &h->gradients[call->node]); return TL_OK; }
    for (i = 0; i < node->input_count; i++)
        if (graph->inputs[node->first_input + i].needed) sum = mix_bytes(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count; i++) {
        if (graph->outputs[node->first_output + i].needed) sum = mix_bytes(sum, &call->outputs[i]);
        sum = mix_bytes(sum, &call->output_grads[i]);
    }
    if (call->saved.range.bytes) sum = mix_bytes(sum, &call->saved);
    mix_into(sum + 1000, &call->scratch, 0);
    h->gradients[call->node] += sum;
    for (i = 0; i < node->input_count; i++) mix_into(sum + (uint64_t)i, &call->input_grads[i], 1);
    return TL_OK;
}

typedef struct hash_bed {
    hasher   h;
    tl_kernel kernels[MIXER_NODES];
    tl_variable states[2 * MIXER_NODES];
} hash_bed;

static void hash_open(bed *b, hash_bed *h, const tl_graph *graph, int registers) {
    int32_t i;
    memset(h, 0, sizeof *h);
    h->h.fail_at = -1;
    bed_open(b, graph, 0, 0, 1);
    for (i = 0; i < b->desc.kernel_count; i++) {
        h->kernels[i] = b->desc.kernels[i];
        h->kernels[i].forward = hash_forward;
        h->kernels[i].backward = hash_backward;
        h->kernels[i].user = &h->h;
    }
    b->desc.kernels = h->kernels;
    for (i = 0; i < graph->node_count; i++) {
        h->states[2 * i].node = h->states[2 * i + 1].node = i;
        h->states[2 * i].kind = TL_VARIABLE_GRADIENT;
        h->states[2 * i].host = &h->h.gradients[i];
        h->states[2 * i + 1].kind = TL_VARIABLE_STATISTICS;
        h->states[2 * i + 1].host = &h->h.steps[i];
        h->states[2 * i].bytes = h->states[2 * i + 1].bytes = 8;
    }
    b->desc.variables = registers ? h->states : NULL;
    b->desc.variable_count = registers ? 2 * graph->node_count : 0;
}

// Nodes whose weights have gradients.
static int32_t count_trained(const tl_graph *graph, int inference) {
    int32_t i, count = 0;
    for (i = 0; i < graph->node_count && !inference; i++) count += graph->nodes[i].has_grad && graph->nodes[i].param_bytes;
    return count;
}

static void nothing_is_found_on_random_graphs(void **state) {
    tl_random random = {21};
    int turn;
    (void)state;
    for (turn = 0; turn < scaled(1000); turn++) {
        static bed b;
        static hash_bed h;
        tl_graph graph;
        tl_rehearsal found;
        tl_rehearsal_desc desc = {turn % 7 ? -1 : 2};
        int32_t i;
        if (random_graph(NULL, &random, 14, &graph)) fail();
        hash_open(&b, &h, &graph, turn % 2);
        b.desc.inference = turn % 5 == 0;
        bed_must_init(&b);
        memset(h.h.gradients, turn, sizeof h.h.gradients);
        memset(h.h.steps, turn, sizeof h.h.steps);
        if (tl_rehearse_run(b.run, &desc, &found)) fail_msg("turn %d: %s", turn, b.env.error.text);
        assert_int_equal(found.error_count, 0);
        assert_int_equal(found.finding_count, turn % 2 ? 0 : count_trained(&graph, b.desc.inference));
        for (i = 0; i < found.finding_count; i++) assert_int_equal(found.findings[i].kind, TL_FINDING_GRADIENT_UNKNOWN);
        assert_int_equal(found.is_stressed, 1);
        assert_int_equal(found.unprobed_count, 0);
        assert_int_equal(found.kind, TL_REHEARSAL_KEPT);
        assert_int_equal(!found.costs, desc.pass_count < 0);
        if (turn % 2) {
            assert_true(h.h.gradients[graph.node_count - 1] == 0x0101010101010101u * (uint64_t)(turn & 255));
            assert_true(h.h.steps[graph.node_count - 1] == 0x0101010101010101u * (uint64_t)(turn & 255));
        }
        tl_free_rehearsal(&b.env, &found);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
}

// -- a network of nn.h, each op with one error at a time --

enum { NB = 2, NT = 4, NC = 8, NHEADS = 2, NV = 12, NR = NB * NT, NE = NR * NC };

typedef enum plant {
    RIGHT, ASSIGNS_GRADIENT, ASSIGNS_WEIGHT_GRADIENT, STALE_SCRATCH, STALE_SCRATCH_BACK, ALWAYS_COUNTS, COUNTS_AGAIN, DRAWS_REGISTERED,
    DRAWS_HIDDEN, DECAYS, WRITES_INPUT, WRITES_GRADIENT, WRITES_SAVED, WRITES_NEEDED, SKIPS_LAST, ADDS_TO_OUTPUT,
    IGNORES_GRADIENT, SAVES_WRONG_WHEN_READY, SAVED_MATTERS, READS_BEYOND, READS_COUNTER, WRITES_BEYOND,
    BACKWARD_DRAWS, WRITES_FAR_BEHIND, WRITES_FAR_BEFORE, WRITES_BEFORE, READS_BEFORE, WRITES_BEYOND_UNSAVED, SCRATCH_UNSAVED,
    IGNORES_FIRST, IGNORES_COUNT, IGNORES_FIRST_BACK, IGNORES_COUNT_BACK, TAKES_NO_BLOCKS
} plant;

typedef struct net_layer {
    const char *kind;
    size_t K, N;
    float  *w, *b, *dw, *db, *mean;   // mean: running mean of bn
    plant   bug;
} net_layer;

static uint64_t net_generator, net_hidden, net_runs;   // of noise; the second is not registered

#define AT(operand) ((float *)(operand).host)

static tl_result net_forward(const tl_kernel_call *call, void *user) {
    net_layer *l = (net_layer *)user;
    const float *x = AT(call->inputs[0]);
    float *y = AT(call->outputs[0]), *saved = call->saved.range.bytes ? AT(call->saved) : NULL;
    float *lent = call->saved.host ? AT(call->saved) : NULL, unwanted[NE];
    size_t n = l->bug == IGNORES_COUNT || call->count == call->total ? NE : (size_t)call->count, i, c;
    uint64_t first = l->bug == IGNORES_FIRST ? 0 : call->first;
    if (!strcmp(l->kind, "count")) net_runs++;
    if (call->outputs_ready && saved) {     // outputs are there: what is made of them goes nowhere
        y = unwanted;
        if (l->bug == SAVES_WRONG_WHEN_READY) { memset(saved, 0, (size_t)call->saved.range.bytes); return TL_OK; }
    }
    if (l->bug == WRITES_INPUT) ((float *)call->inputs[0].host)[1] = 3.0f;
    if (l->bug == DECAYS) l->w[0] *= 0.5f;
    if (!strcmp(l->kind, "embed")) nn_embed_forward(y, (const int32_t *)call->inputs[0].host, l->w, l->b, NB, NT, NC);
    if (!strcmp(l->kind, "norm")) nn_norm_forward(y, lent, x, l->w, l->b, NR, NC);
    if (!strcmp(l->kind, "linear")) nn_linear_forward(y, x, l->w, l->b, NR, l->K, l->N);
    if (!strcmp(l->kind, "attention")) {
        int spares = l->bug == SCRATCH_UNSAVED && saved;
        nn_attention_forward(y, lent, x, spares ? unwanted : AT(call->scratch), NB, NT, NC, NHEADS);
        if (l->bug == SAVED_MATTERS && saved) y[0] += 1.0f;
    }
    if (!strcmp(l->kind, "add")) nn_add_forward(y, x, AT(call->inputs[1]), n);
    if (!strcmp(l->kind, "dropout")) nn_dropout_forward(y, x, n, 0.3f, call->seed, first);
    if (!strcmp(l->kind, "gelu") || !strcmp(l->kind, "count")) nn_gelu_forward(y, x, n);
    if (!strcmp(l->kind, "relu")) for (i = 0; i < n; i++) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    if (!strcmp(l->kind, "ce")) nn_cross_entropy_forward(y, NULL, x, (const int32_t *)call->inputs[1].host, NR, NV);
    for (c = 0; c < NC && !strcmp(l->kind, "bn"); c++) {    // of the batch, and a running mean
        float mean = 0.0f;
        for (i = 0; i < NR; i++) mean += x[i * NC + c] / (float)NR;
        for (i = 0; i < NR; i++) y[i * NC + c] = (x[i * NC + c] - mean) * l->w[c];
        if (lent) lent[c] = mean;
        if (l->bug == COUNTS_AGAIN ? call->recompute : !call->recompute || l->bug == ALWAYS_COUNTS) l->mean[c] += 0.1f * (mean - l->mean[c]);
    }
    if (l->bug == STALE_SCRATCH) { AT(call->scratch)[0] += y[0]; y[0] = AT(call->scratch)[0]; }
    if (l->bug == DRAWS_REGISTERED) { net_generator = tl_mix_u64(net_generator, 1); y[0] += (float)(net_generator >> 60); }
    if (l->bug == DRAWS_HIDDEN) { net_hidden = tl_mix_u64(net_hidden, 1); y[0] += 1.0f + (float)(net_hidden >> 40); }
    if (l->bug == READS_COUNTER) y[0] += (float)net_runs;
    if (l->bug == READS_BEYOND) y[0] += x[NE];
    if (l->bug == WRITES_BEYOND || (l->bug == WRITES_BEYOND_UNSAVED && !saved)) y[NE] = 1.0f;
    if (l->bug == WRITES_FAR_BEHIND) y[NE + 1020] = 1.0f;
    if (l->bug == WRITES_FAR_BEFORE) ((uint32_t *)(void *)y)[-1020] = 0x01010101;
    if (l->bug == WRITES_BEFORE) ((unsigned char *)y)[-1] = 1;
    if (l->bug == READS_BEFORE) y[0] += x[-1];
    return TL_OK;
}

// Those of a bug that changes all of the call.
static tl_result net_forward_strange(const tl_kernel_call *call, void *user) {
    net_layer *l = (net_layer *)user;
    const float *x = AT(call->inputs[0]);
    float *y = AT(call->outputs[0]);
    size_t i;
    for (i = 0; i < NE; i++) {
        float value = x[i] > 0.0f ? x[i] : 0.0f;
        if (l->bug == SKIPS_LAST && i == NE - 1) continue;
        y[i] = l->bug == ADDS_TO_OUTPUT ? y[i] + value : value;
    }
    return TL_OK;
}

static void net_assign_gradients(const tl_kernel_call *call) {
    if (call->input_grads[0].host) memset(call->input_grads[0].host, 0, (size_t)call->input_grads[0].range.bytes);
}

static tl_result net_backward(const tl_kernel_call *call, void *user) {
    net_layer *l = (net_layer *)user;
    const float *x = AT(call->inputs[0]), *y = AT(call->outputs[0]), *saved = AT(call->saved);
    float *d = AT(call->output_grads[0]), *dx = AT(call->input_grads[0]), ones[NE];
    size_t n = l->bug == IGNORES_COUNT_BACK || call->count == call->total ? NE : (size_t)call->count, i, c;
    uint64_t first = l->bug == IGNORES_FIRST_BACK ? 0 : call->first;
    for (i = 0; i < NE; i++) ones[i] = 1.0f;
    if (l->bug == IGNORES_GRADIENT) d = ones;
    if (l->bug == ASSIGNS_GRADIENT) net_assign_gradients(call);
    if (l->bug == ASSIGNS_WEIGHT_GRADIENT) memset(l->dw, 0, l->K * l->N * sizeof *l->dw);
    if (l->bug == WRITES_GRADIENT) d[1] = 2.0f;
    if (l->bug == WRITES_NEEDED) ((uint32_t *)call->inputs[0].host)[1] ^= 1;
    if (!strcmp(l->kind, "embed")) nn_embed_backward(l->dw, l->db, d, (const int32_t *)call->inputs[0].host, NB, NT, NC);
    if (!strcmp(l->kind, "norm")) nn_norm_backward(dx, l->dw, l->db, d, saved, x, l->w, NR, NC);
    if (!strcmp(l->kind, "linear")) nn_linear_backward(dx, l->dw, l->db, d, x, l->w, NR, l->K, l->N);
    if (!strcmp(l->kind, "attention"))
        nn_attention_backward(dx, d, saved, x, AT(call->scratch), NB, NT, NC, NHEADS);
    if (!strcmp(l->kind, "add")) nn_add_backward(dx, AT(call->input_grads[1]), d, n);
    if (!strcmp(l->kind, "dropout")) nn_dropout_backward(dx, d, n, 0.3f, call->seed, first);
    if (!strcmp(l->kind, "gelu") || !strcmp(l->kind, "count")) nn_gelu_backward(dx, d, x, n);
    if (!strcmp(l->kind, "relu")) for (i = 0; i < n; i++) dx[i] += y[i] > 0.0f ? d[i] : 0.0f;
    if (!strcmp(l->kind, "ce"))
        nn_cross_entropy_backward(dx, d[0], x, (const int32_t *)call->inputs[1].host, NR, NV);
    for (c = 0; c < NC && !strcmp(l->kind, "bn"); c++) {
        float mean = 0.0f;
        for (i = 0; i < NR; i++) mean += d[i * NC + c] * l->w[c] / (float)NR;
        for (i = 0; i < NR; i++) l->dw[c] += (x[i * NC + c] - saved[c]) * d[i * NC + c];
        for (i = 0; i < NR; i++) dx[i * NC + c] += d[i * NC + c] * l->w[c] - mean;
    }
    if (l->bug == STALE_SCRATCH_BACK) { AT(call->scratch)[0] += dx[0]; dx[0] = AT(call->scratch)[0]; }
    if (l->bug == WRITES_SAVED) *(unsigned char *)call->saved.host ^= 1;
    if (l->bug == BACKWARD_DRAWS) { net_hidden = tl_mix_u64(net_hidden, 1); dx[0] *= 1.0f + (float)(net_hidden >> 40); }
    return TL_OK;
}

enum { TOKENS, TARGETS, EMBED, NORM, QKV, ATTENTION, PROJ, ADD, DROPOUT, BN, RELU, GELU, HEAD, CE, NET_OPS };

typedef struct net {
    tl_op     ops[NET_OPS];
    net_layer layers[NET_OPS];
    tl_tensor reads[NET_OPS][2];
    float     memory[4096];
    size_t    used;
    tl_variable  states[64];
    int32_t   variable_count;
    tl_rehearsal found;
} net;

static float *net_state(net *n, int32_t node, tl_variable_kind kind, size_t count) {
    tl_variable *state = &n->states[n->variable_count++];
    size_t i;
    state->node = node;
    state->kind = kind;
    state->host = n->memory + n->used;
    state->bytes = count * sizeof(float);
    for (i = 0; i < count && kind == TL_VARIABLE_PARAMETER; i++) n->memory[n->used + i] = 0.5f * nn_normal(7, n->used + i);
    n->used += count;
    assert_true(n->used <= 4096 && n->variable_count < 64);
    return (float *)state->host;
}

static void net_op(net *n, int32_t id, const char *name, const char *kind, size_t outputs, const char *needs, int32_t a, int32_t b) {
    tl_op *op = &n->ops[id];
    op->name = name;
    op->kind = kind;
    op->output_bytes = outputs * sizeof(float);
    n->layers[id].kind = kind;
    if (a < 0) return;
    n->reads[id][0].node = a;
    n->reads[id][1].node = b;
    op->inputs = n->reads[id];
    op->input_count = b < 0 ? 1 : 2;
    op->forward = net_forward;
    op->backward = net_backward;
    op->user = &n->layers[id];
    op->needs = needs;
}

static void net_weights(net *n, int32_t id, size_t K, size_t N) {
    net_layer *l = &n->layers[id];
    size_t biases = id == EMBED ? NT * NC : N;
    l->K = K;
    l->N = N;
    l->w = net_state(n, id, TL_VARIABLE_PARAMETER, K * N);
    l->b = net_state(n, id, TL_VARIABLE_PARAMETER, biases);
    l->dw = net_state(n, id, TL_VARIABLE_GRADIENT, K * N);
    l->db = net_state(n, id, TL_VARIABLE_GRADIENT, biases);
    n->ops[id].param_bytes = (K * N + biases) * sizeof(float);
}

static void net_make(net *n) {
    memset(n, 0, sizeof *n);
    net_generator = net_hidden = 5;
    net_op(n, TOKENS, "tokens", "input", NR, NULL, -1, -1);
    net_op(n, TARGETS, "targets", "input", NR, NULL, -1, -1);
    net_op(n, EMBED, "embed", "embed", NE, "in", TOKENS, -1);
    net_op(n, NORM, "norm", "norm", NE, "in", EMBED, -1);
    net_op(n, QKV, "qkv", "linear", 3 * NE, "in", NORM, -1);
    net_op(n, ATTENTION, "attention", "attention", NE, "in", QKV, -1);
    net_op(n, PROJ, "proj", "linear", NE, "in", ATTENTION, -1);
    net_op(n, ADD, "add", "add", NE, "none", EMBED, PROJ);
    net_op(n, DROPOUT, "dropout", "dropout", NE, "none", ADD, -1);
    net_op(n, BN, "bn", "bn", NE, "in", DROPOUT, -1);
    net_op(n, RELU, "relu", "relu", NE, "out", BN, -1);
    net_op(n, GELU, "gelu", "gelu", NE, "in", RELU, -1);
    net_op(n, HEAD, "head", "linear", NR * NV, "in", GELU, -1);
    net_op(n, CE, "ce", "ce", 1, "in", HEAD, TARGETS);
    net_weights(n, EMBED, NV, NC);
    net_weights(n, NORM, 1, NC);
    net_weights(n, QKV, NC, 3 * NC);
    net_weights(n, PROJ, NC, NC);
    net_weights(n, BN, 1, NC);
    net_weights(n, HEAD, NC, NV);
    n->layers[BN].mean = net_state(n, BN, TL_VARIABLE_STATISTICS, NC);
    n->ops[NORM].saved_bytes = nn_norm_saved_bytes(NR);
    n->ops[BN].saved_bytes = NC * sizeof(float);
    n->ops[ATTENTION].saved_bytes = nn_attention_saved_bytes(NB, NHEADS, NT);
    n->ops[ATTENTION].fwork_bytes = n->ops[ATTENTION].bwork_bytes = nn_attention_scratch_bytes(NT);
    n->ops[ADD].inplace = 2;
    n->ops[RELU].inplace = 1;
    n->ops[CE].keep = 1;
}

// As in a training loop: each call gives the next batch.
static int net_batch;

static tl_result net_load(tl_run *run, int32_t micro_batch, void *user) {
    int32_t tokens[NR], targets[NR], i;
    tl_tensor a = {TOKENS, 0}, b = {TARGETS, 0};
    (void)micro_batch;
    (void)user;
    net_batch++;
    for (i = 0; i < NR; i++) { tokens[i] = (5 * i + net_batch) % NV; targets[i] = (7 * i + 3 * net_batch) % NV; }
    if (tl_write_tensor(run, a, tokens, sizeof tokens)) return TL_ERROR_IO;
    return tl_write_tensor(run, b, targets, sizeof targets);
}

// Rehearse a network. Its run is planned with all that is wrong in it.
static tl_result net_rehearse(net *n, tl_env *env, tl_backend *backend) {
    tl_run_desc desc = {0};
    tl_run *run;
    tl_result result;
    float before[4096];
    int batch;
    desc.backend = backend;
    desc.variables = n->states;
    desc.variable_count = n->variable_count;
    desc.load = net_load;
    result = tl_init_op_run(env, &desc, n->ops, NET_OPS, &run);
    if (result) return result;
    memcpy(before, n->memory, sizeof before);
    batch = net_batch;
    result = tl_rehearse_run(run, NULL, &n->found);
    assert_int_equal(net_batch, batch + 1);
    assert_memory_equal(before, n->memory, sizeof before);
    tl_free_run(run);
    return result;
}

static void nothing_is_found_in_a_network_that_is_right(void **state) {
    static net n;
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    int32_t i, calls[2], turn;
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    for (turn = 0; turn < 2; turn++) {      // the second time elementwise ops take blocks
        net_make(&n);
        n.ops[ADD].takes_blocks = n.ops[DROPOUT].takes_blocks = n.ops[RELU].takes_blocks = n.ops[GELU].takes_blocks = turn;
        if (net_rehearse(&n, &env, &backend)) fail_msg("%s", env.error.text);
        for (i = 0; i < n.found.finding_count; i++)
            printf("%d %d %d\n", (int)n.found.findings[i].kind, (int)n.found.findings[i].node, (int)n.found.findings[i].operand);
        assert_int_equal(n.found.finding_count, 0);
        assert_int_equal(n.found.is_stressed, 1);
        calls[turn] = n.found.call_count;
        tl_free_rehearsal(&env, &n.found);
    }
    assert_int_equal(calls[1] - calls[0], 2 * 2 * 4);   // two ranges, forward and backward, of four ops
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// One error: of a field of an op, or of its kernels. What must be found, and its sentence.
typedef struct planted {
    int32_t     op;
    const char *needs;
    plant       bug;
    int32_t     saved, fwork, swork, bwork, outputs, params;  // bytes more; NONE = set to 0
    int32_t     inplace, extra;     // extra: an input that nobody reads
    const char *sentence;
} planted;

#define NONE 12345

static const planted all_planted[] = {
    // needs that miss something
    {EMBED, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "embed: backward reads input 0, which needs does not name: add in0 to needs"},
    {NORM, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "norm: backward reads input 0, which needs does not name: add in0 to needs"},
    {NORM, "out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "norm: backward reads input 0, which needs does not name: add in0 to needs"},
    {QKV, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "qkv: backward reads input 0, which needs does not name: add in0 to needs"},
    {ATTENTION, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "attention: backward reads input 0, which needs does not name: add in0 to needs"},
    {ATTENTION, "out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "attention: backward reads input 0, which needs does not name: add in0 to needs"},
    {PROJ, "out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "proj: backward reads input 0, which needs does not name: add in0 to needs"},
    {BN, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "bn: backward reads input 0, which needs does not name: add in0 to needs"},
    {RELU, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "relu: backward reads output 0, which needs does not name: add out0 to needs"},
    {RELU, "in", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "relu: backward reads output 0, which needs does not name: add out0 to needs"},
    {GELU, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward reads input 0, which needs does not name: add in0 to needs"},
    {GELU, "out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward reads input 0, which needs does not name: add in0 to needs"},
    {HEAD, "none", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "head: backward reads input 0, which needs does not name: add in0 to needs"},
    {CE, "in0", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "ce: backward reads input 1, which needs does not name: add in1 to needs"},
    {CE, "in1", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "ce: backward reads input 0, which needs does not name: add in0 to needs"},
    {CE, "out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "ce: backward reads input 1, which needs does not name: add in1 to needs"},
    // needs that name too much
    {EMBED, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "embed: backward does not read output 0, which needs names: take out0 out of needs"},
    {NORM, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "norm: backward does not read output 0, which needs names: take out0 out of needs"},
    {QKV, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "qkv: backward does not read output 0, which needs names: take out0 out of needs"},
    {ATTENTION, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "attention: backward does not read output 0, which needs names: take out0 out of needs"},
    {ADD, "in", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "add: backward does not read input 1, which needs names: take in1 out of needs"},
    {DROPOUT, "in", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "dropout: backward does not read input 0, which needs names: take in0 out of needs"},
    {BN, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "bn: backward does not read output 0, which needs names: take out0 out of needs"},
    {RELU, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "relu: backward does not read input 0, which needs names: take in0 out of needs"},
    {GELU, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward does not read output 0, which needs names: take out0 out of needs"},
    {HEAD, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "head: backward does not read output 0, which needs names: take out0 out of needs"},
    {CE, "in,out", RIGHT, 0, 0, 0, 0, 0, 0, 0, 0, "ce: backward does not read output 0, which needs names: take out0 out of needs"},
    // saved bytes
    {NORM, NULL, RIGHT, -32, 0, 0, 0, 0, 0, 0, 0, "norm: forward writes beside saved bytes, behind byte 32: declare more bytes (saved_bytes)"},
    {NORM, NULL, RIGHT, NONE, 0, 0, 0, 0, 0, 0, 0, "norm: forward uses saved bytes, though none of its bytes is declared: set saved_bytes"},
    {NORM, NULL, RIGHT, 16, 0, 0, 0, 0, 0, 0, 0, "norm: forward leaves saved bytes unwritten from byte 64 on: write all of it, or declare fewer bytes"},
    {ATTENTION, NULL, RIGHT, -64, 0, 0, 0, 0, 0, 0, 0, "attention: forward writes beside saved bytes, behind byte 192: declare more bytes (saved_bytes)"},
    {ATTENTION, NULL, RIGHT, NONE, 0, 0, 0, 0, 0, 0, 0, "attention: forward uses saved bytes, though none of its bytes is declared: set saved_bytes"},
    {ATTENTION, NULL, RIGHT, 64, 0, 0, 0, 0, 0, 0, 0, "attention: forward leaves saved bytes unwritten from byte 256 on: write all of it, or declare fewer bytes"},
    {BN, NULL, RIGHT, -16, 0, 0, 0, 0, 0, 0, 0, "bn: forward writes beside saved bytes, behind byte 16: declare more bytes (saved_bytes)"},
    {BN, NULL, RIGHT, 8, 0, 0, 0, 0, 0, 0, 0, "bn: forward leaves saved bytes unwritten from byte 32 on: write all of it, or declare fewer bytes"},
    {GELU, NULL, RIGHT, 64, 0, 0, 0, 0, 0, 0, 0, "gelu: forward leaves saved bytes unwritten from byte 0 on: write all of it, or declare fewer bytes"},
    {GELU, NULL, RIGHT, 64, 0, 0, 0, 0, 0, 0, 0, "gelu: backward does not read its saved bytes: set saved_bytes to 0"},
    // scratch
    {ATTENTION, NULL, RIGHT, 0, -32, 0, 0, 0, 0, 0, 0, "attention: forward writes beside scratch, behind byte 32: declare more bytes (swork_bytes)"},
    {ATTENTION, NULL, RIGHT, 0, NONE, 0, 0, 0, 0, 0, 0, "attention: forward uses scratch, though none of its bytes is declared: set swork_bytes"},
    {ATTENTION, NULL, RIGHT, 0, 0, NONE, 0, 0, 0, 0, 0, "attention: forward uses scratch, though none of its bytes is declared: set swork_bytes"},
    {ATTENTION, NULL, RIGHT, 0, 0, 0, -32, 0, 0, 0, 0, "attention: backward writes beside scratch, behind byte 32: declare more bytes (bwork_bytes)"},
    {ATTENTION, NULL, RIGHT, 0, 0, 0, NONE, 0, 0, 0, 0, "attention: backward uses scratch, though none of its bytes is declared: set bwork_bytes"},
    {ATTENTION, NULL, RIGHT, 0, -32, 64, 0, 0, 0, 0, 0, "attention: forward writes beside scratch, behind byte 32: declare more bytes (fwork_bytes)"},
    {ATTENTION, NULL, RIGHT, 0, NONE, 64, 0, 0, 0, 0, 0, "attention: forward uses scratch, though none of its bytes is declared: set fwork_bytes"},
    {ATTENTION, NULL, SCRATCH_UNSAVED, 0, NONE, 0, 0, 0, 0, 0, 0, "attention: forward uses scratch, though none of its bytes is declared: set fwork_bytes"},
    {ATTENTION, NULL, SCRATCH_UNSAVED, 0, -60, NONE, 0, 0, 0, 0, 0, "attention: forward writes beside scratch, behind byte 4: declare more bytes (fwork_bytes)"},
    {ATTENTION, NULL, SCRATCH_UNSAVED, 0, 0, 0, 0, 0, 0, 0, 0, "attention: forward does not touch its scratch: set swork_bytes to TL_SCRATCH_NONE"},
    {NORM, NULL, RIGHT, 0, 64, 0, 0, 0, 0, 0, 0, "norm: forward does not touch its scratch: set fwork_bytes to 0"},
    {NORM, NULL, RIGHT, 0, 0, 64, 0, 0, 0, 0, 0, "norm: forward does not touch its scratch: set swork_bytes to TL_SCRATCH_NONE"},
    {GELU, NULL, RIGHT, 0, 64, 0, 0, 0, 0, 0, 0, "gelu: forward does not touch its scratch: set fwork_bytes to 0"},
    {HEAD, NULL, RIGHT, 0, 0, 0, 64, 0, 0, 0, 0, "head: backward does not touch its scratch: set bwork_bytes to 0"},
    {GELU, NULL, STALE_SCRATCH, 0, 64, 0, 0, 0, 0, 0, 0, "gelu: forward reads its scratch before it writes there: clear what is read: the content of scratch is undefined"},
    {GELU, NULL, STALE_SCRATCH_BACK, 0, 0, 0, 64, 0, 0, 0, 0, "gelu: backward reads its scratch before it writes there: clear what is read: the content of scratch is undefined"},
    // outputs, inputs, in place, weights
    {GELU, NULL, RIGHT, 0, 0, 0, 0, -64, 0, 0, 0, "gelu: forward writes beside output 0, behind byte 192: declare more bytes (output_bytes)"},
    {QKV, NULL, RIGHT, 0, 0, 0, 0, -128, 0, 0, 0, "qkv: forward writes beside output 0, behind byte 640: declare more bytes (output_bytes)"},
    {GELU, NULL, RIGHT, 0, 0, 0, 0, 32, 0, 0, 0, "gelu: forward leaves output 0 unwritten from byte 256 on: write all of it, or declare fewer bytes"},
    {RELU, NULL, READS_BEYOND, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward reads beside input 0, behind byte 256: declare more bytes (of the op that makes it)"},
    {RELU, NULL, WRITES_BEYOND, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward writes beside output 0, behind byte 256: declare more bytes (output_bytes)"},
    {GELU, NULL, WRITES_FAR_BEHIND, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: forward writes beside output 0, behind byte 256: declare more bytes (output_bytes)"},
    {GELU, NULL, WRITES_FAR_BEFORE, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: forward writes before output 0, from byte -4080 on: begin with its first byte: what lies before it belongs to others"},
    {GELU, NULL, WRITES_BEFORE, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: forward writes before output 0, from byte -1 on: begin with its first byte: what lies before it belongs to others"},
    {RELU, NULL, READS_BEFORE, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward reads before input 0: begin with its first byte: what lies before it belongs to others"},
    {NORM, NULL, WRITES_BEYOND_UNSAVED, 0, 0, 0, 0, 0, 0, 0, 0, "norm: forward writes beside output 0, behind byte 256: declare more bytes (output_bytes)"},
    {CE, "in", RIGHT, 0, 0, 0, 0, 0, 0, 0, -1, "ce: forward uses input 1, which the op does not have: list it in inputs, or leave it alone"},
    {CE, "in", RIGHT, 0, 0, 0, 0, 0, 0, 0, -1, "ce: backward uses input 1, which the op does not have: list it in inputs, or leave it alone"},
    {ADD, "none", RIGHT, 0, 0, 0, 0, 0, 0, NONE, -1, "add: forward uses input 1, which the op does not have: list it in inputs, or leave it alone"},
    {ADD, "none", RIGHT, 0, 0, 0, 0, 0, 0, NONE, -1, "add: backward uses input gradient 1, which the op does not have: list it in inputs, or leave it alone"},
    {PROJ, NULL, RIGHT, 0, 0, 0, 0, 0, 0, 1, 0, "proj: forward makes other bytes where output 0 overwrites input 0: take inplace out"},
    {GELU, NULL, RIGHT, 0, 0, 0, 0, 0, 0, 0, 1, "gelu: forward reads input 1 neither here nor in backward: take the input out"},
    {HEAD, NULL, RIGHT, 0, 0, 0, 0, 0, 100, 0, 0, "head: forward has 432 bytes of registered parameters: set param_bytes to that"},
    // what kernels do
    {NORM, NULL, ASSIGNS_GRADIENT, 0, 0, 0, 0, 0, 0, 0, 0, "norm: backward overwrites input gradient 0: add to it: a gradient is a sum"},
    {HEAD, NULL, ASSIGNS_WEIGHT_GRADIENT, 0, 0, 0, 0, 0, 0, 0, 0, "head: backward overwrites gradient variable 22: add to it: a gradient is a sum"},
    {BN, NULL, ALWAYS_COUNTS, 0, 0, 0, 0, 0, 0, 0, 0, "bn: forward changes statistics variable 24 when it runs again: look at call->recompute, or mark the op once"},
    {BN, NULL, COUNTS_AGAIN, 0, 0, 0, 0, 0, 0, 0, 0, "bn: forward changes statistics variable 24 when it runs again: look at call->recompute, or mark the op once"},
    {GELU, NULL, DRAWS_REGISTERED, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: forward changes random variable 25 when it runs again: look at call->recompute, or mark the op once"},
    {RELU, NULL, DRAWS_HIDDEN, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward makes other bytes from the same operands: draw random numbers from call->seed, or register their state and give a random hook, or mark it once"},
    {GELU, NULL, BACKWARD_DRAWS, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward makes other bytes from the same operands: draw random numbers from call->seed, or register their state and give a random hook, or mark it once"},
    {HEAD, NULL, DECAYS, 0, 0, 0, 0, 0, 0, 0, 0, "head: forward changes parameter variable 20 when it runs again: look at call->recompute, or mark the op once"},
    {RELU, NULL, WRITES_INPUT, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward writes to input 0, which it may only read, at byte 4: write to an output, a gradient or scratch; an input is overwritten by inplace alone"},
    {GELU, NULL, WRITES_GRADIENT, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward writes to output gradient 0, which it may only read, at byte 4: write to an output, a gradient or scratch; an input is overwritten by inplace alone"},
    {NORM, NULL, WRITES_SAVED, 0, 0, 0, 0, 0, 0, 0, 0, "norm: backward writes to saved bytes, which it may only read, at byte 0: write to an output, a gradient or scratch; an input is overwritten by inplace alone"},
    {GELU, NULL, WRITES_NEEDED, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward writes to input 0, which it may only read, at byte 4: write to an output, a gradient or scratch; an input is overwritten by inplace alone"},
    {RELU, NULL, SKIPS_LAST, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward leaves output 0 unwritten from byte 252 on: write all of it, or declare fewer bytes"},
    {RELU, NULL, ADDS_TO_OUTPUT, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward reads output 0 before it writes there: write first: the content is undefined"},
    {GELU, NULL, IGNORES_GRADIENT, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward does not read output gradient 0: multiply by it: a loss may be scaled, a result be read"},
    {CE, NULL, IGNORES_GRADIENT, 0, 0, 0, 0, 0, 0, 0, 0, "ce: backward does not read output gradient 0: multiply by it: a loss may be scaled, a result be read"},
    {NORM, NULL, SAVES_WRONG_WHEN_READY, 0, 0, 0, 0, 0, 0, 0, 0, "norm: forward makes another saved bytes where its outputs are there already: with call->outputs_ready read the outputs, and make the saved bytes alone"},
    {ATTENTION, NULL, SAVED_MATTERS, 0, 0, 0, 0, 0, 0, 0, 0, "attention: forward makes another output 0 where nothing is saved: compute outputs without call->saved"},
    // ranges of elements
    {DROPOUT, NULL, IGNORES_FIRST, 0, 0, 0, 0, 0, 0, 0, 0, "dropout: forward makes another output 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {DROPOUT, NULL, IGNORES_FIRST_BACK, 0, 0, 0, 0, 0, 0, 0, 0, "dropout: backward makes another input gradient 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {GELU, NULL, IGNORES_COUNT, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: forward makes another output 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {GELU, NULL, IGNORES_COUNT_BACK, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: backward makes another input gradient 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {ADD, NULL, IGNORES_COUNT, 0, 0, 0, 0, 0, 0, 0, 0, "add: forward makes another output 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {RELU, NULL, IGNORES_COUNT, 0, 0, 0, 0, 0, 0, 0, 0, "relu: forward makes another output 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {PROJ, NULL, TAKES_NO_BLOCKS, 0, 0, 0, 0, 0, 0, 0, 0, "proj: forward makes another output 0 when it is called for a range of elements: go by call->first and call->count, or take takes_blocks out"},
    {GELU, NULL, READS_COUNTER, 0, 0, 0, 0, 0, 0, 0, 0, "gelu: forward makes another output 0 under a plan that drops what it can: look for what it reads or keeps beside its operands"},
};

static uint64_t more_bytes(uint64_t bytes, int32_t more) { return more == NONE ? 0 : bytes + (uint64_t)(int64_t)more; }

static void net_plant(net *n, const planted *p) {
    tl_op *op = &n->ops[p->op];
    if (p->needs) op->needs = p->needs;
    n->layers[p->op].bug = p->bug;
    if (p->bug == SKIPS_LAST || p->bug == ADDS_TO_OUTPUT) op->forward = net_forward_strange;
    op->saved_bytes = more_bytes(op->saved_bytes, p->saved);
    op->fwork_bytes = more_bytes(op->fwork_bytes, p->fwork);
    op->bwork_bytes = more_bytes(op->bwork_bytes, p->bwork);
    if (p->swork) op->swork_bytes = p->swork == NONE ? TL_SCRATCH_NONE : (uint64_t)p->swork;
    op->output_bytes += (uint64_t)(int64_t)p->outputs;
    op->param_bytes += (uint64_t)p->params;
    if (p->inplace) op->inplace = p->inplace == NONE ? 0 : p->inplace;
    if (p->extra < 0) op->input_count = 1;
    if (p->extra > 0) {
        n->reads[p->op][1].node = BN;
        op->input_count = 2;
        op->needs = "in0";
    }
    op->takes_blocks = p->bug >= IGNORES_FIRST;
    if (p->bug == DRAWS_REGISTERED) {
        tl_variable *state = &n->states[n->variable_count++];
        state->node = p->op;
        state->kind = TL_VARIABLE_RANDOM;
        state->host = &net_generator;
        state->bytes = sizeof net_generator;
    }
}

// Every error is found at the first run, is the one that the sentence names, and every other error that is named is
// one of the same op, or of an op that reads what it makes; the same where the state is registered for no node.
static void every_planted_error_is_found_and_named(void **state) {
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    size_t i;
    int missing = 0, shared;
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    for (shared = 0; shared < 2; shared++) for (i = 0; i < sizeof all_planted / sizeof *all_planted; i++) {
        static net n;
        const planted *p = &all_planted[i];
        int found = 0, others = 0;
        int32_t k;
        net_make(&n);
        net_plant(&n, p);
        if (shared && p->params) continue;      // these are counted by node
        for (k = 0; k < n.variable_count && shared; k++) n.states[k].node = -1;
        if (p->bug == READS_COUNTER) n.layers[RELU].kind = "count", n.ops[RELU].needs = "in", n.ops[RELU].inplace = 0;
        if (net_rehearse(&n, &env, &backend)) fail_msg("%d: %s", (int)i, env.error.text);
        for (k = 0; k < n.found.finding_count; k++) {
            char line[400];
            tl_graph graph;
            tl_node nodes[NET_OPS];
            char text[NET_OPS * 16];
            int32_t id;
            memset(&graph, 0, sizeof graph);
            memset(nodes, 0, sizeof nodes);
            memset(text, 0, sizeof text);
            for (id = 0; id < NET_OPS; id++) {
                nodes[id].name = (uint32_t)(16 * id);
                strcpy(text + 16 * id, n.ops[id].name);
            }
            graph.nodes = nodes;
            graph.node_count = NET_OPS;
            graph.text = text;
            graph.text_bytes = sizeof text;
            tl_print_finding(&graph, &n.found.findings[k], line, sizeof line);
            if (!strcmp(line, p->sentence)) found = 1;
            else if (strstr(p->sentence, "s before ") && strstr(line, ", behind byte ")) others = 1;    // that side alone
            else if (strstr(p->sentence, ", behind byte ") && strstr(line, "s before ")) others = 1;
            else if (!n.found.findings[k].is_advice && n.found.findings[k].node != p->op && !p->outputs) {
                others = 1;
                printf("%d: beside it: %s\n", (int)i, line);
            }
            if (k == n.found.finding_count - 1 && !found) printf("%d: last: %s\n", (int)i, line);
        }
        if (!found) printf("%d, shared %d: missing: %s\n", (int)i, shared, p->sentence);
        missing += !found || others;
        tl_free_rehearsal(&env, &n.found);
    }
    assert_int_equal(missing, 0);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// Of weights without a registered gradient the rehearsal says so: it leaves its own sums in them.
static void weights_without_a_registered_gradient_are_named(void **state) {
    static net n;
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    tl_run_desc desc = {0};
    tl_rehearsal_desc rehearsal = {-1};
    tl_run *run;
    char line[400];
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    net_make(&n);
    desc.backend = &backend;
    desc.load = net_load;
    if (tl_init_op_run(&env, &desc, n.ops, NET_OPS, &run)) fail_msg("%s", env.error.text);
    if (tl_rehearse_run(run, &rehearsal, &n.found)) fail_msg("%s", env.error.text);
    assert_int_equal(n.found.error_count, 0);
    assert_true(n.found.finding_count >= 6);    // embed, norm, qkv, proj, bn, head
    tl_print_finding(NULL, &n.found.findings[0], line, sizeof line);
    assert_string_equal(line, "embed: backward has weights, but no gradient of them stands in variables: register it, or clear it and "
                              "what else is not registered after the rehearsal");
    tl_free_rehearsal(&env, &n.found);
    tl_free_run(run);
    desc.inference = 1;     // no gradients
    if (tl_init_op_run(&env, &desc, n.ops, NET_OPS, &run)) fail_msg("%s", env.error.text);
    if (tl_rehearse_run(run, &rehearsal, &n.found)) fail_msg("%s", env.error.text);
    assert_int_equal(n.found.finding_count, 0);
    tl_free_rehearsal(&env, &n.found);
    tl_free_run(run);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// -- what can go wrong in a rehearsal --

static uint64_t counted_ns(void *user) { return *(uint64_t *)user += 7; }

// A kernel that fails at its n-th call: the error names it, the state is as it was, nothing is lost.
static void a_kernel_that_fails_ends_the_rehearsal(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 needs=none out=8 in=-\n"
        "node 1 a conv fwd=3 bwd=6 out=24 needs=in in=0 saved=4 fwork=4\n"
        "node 2 b relu fwd=1 bwd=1 out=24 needs=out in=1\nnode 3 c conv fwd=3 bwd=6 out=24 needs=in in=2 bwork=4\n";
    tl_graph graph;
    tl_env env = silent_env();
    long at;
    (void)state;
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    for (at = 0;; at++) {
        static bed b;
        static hash_bed h;
        tl_rehearsal found;
        tl_rehearsal_desc desc = {-1};
        tl_result result;
        hash_open(&b, &h, &graph, 1);
        bed_must_init(&b);
        memset(h.h.gradients, 3, sizeof h.h.gradients);
        memset(h.h.steps, 4, sizeof h.h.steps);
        h.h.fail_at = at;
        result = tl_rehearse_run(b.run, &desc, &found);
        assert_true(h.h.gradients[3] == 0x0303030303030303u && h.h.steps[2] == 0x0404040404040404u);
        if (result) {
            assert_int_equal(result, TL_ERROR_KERNEL);
            assert_non_null(strstr(b.env.error.text, "kernel returned"));
            assert_true(is_zero(&found, sizeof found));
        }
        h.h.fail_at = -1;
        if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);   // the run is as good as before
        tl_free_rehearsal(&b.env, &found);
        bed_close(&b);
        if (!result) break;
    }
    assert_true(at > 30);
    tl_free_graph(NULL, &graph);
}

static void a_load_hook_that_fails_ends_the_rehearsal(void **state) {
    static bed b;
    static hash_bed h;
    tl_rehearsal found;
    tl_graph graph;
    tl_random random = {5};
    (void)state;
    if (random_graph(NULL, &random, 8, &graph)) fail();
    hash_open(&b, &h, &graph, 1);
    b.load_fails_at = 0;
    bed_must_init(&b);
    assert_int_equal(tl_rehearse_run(b.run, NULL, &found), TL_ERROR_KERNEL);
    assert_string_equal(b.env.error.text, "tl_rehearse_run: load: the hook reported a failure");
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static uint64_t no_clock(void *user) { (void)user; return 0; }

static void a_rehearsal_that_breaks_a_rule_is_refused(void **state) {
    static bed b;
    static hash_bed h;
    tl_rehearsal found;
    tl_rehearsal_desc desc = {-2};
    tl_graph graph;
    tl_random random = {5};
    tl_cpu_backend_desc cpu = {0};
    tl_backend blind;
    (void)state;
    if (random_graph(NULL, &random, 8, &graph)) fail();
    hash_open(&b, &h, &graph, 0);
    bed_must_init(&b);
    assert_int_equal(tl_rehearse_run(b.run, &desc, &found), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_rehearse_run: pass_count: must be -1 to 1000");
    if (tl_start_pass(b.run, 0)) fail();
    assert_int_equal(tl_rehearse_run(b.run, NULL, &found), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_rehearse_run: run: a pass is under way");
    if (tl_reset_run(b.run)) fail();
    tl_free_run(b.run);
    cpu.now_ns = no_clock;
    if (tl_init_cpu_backend(&b.env, &cpu, &blind)) fail();
    b.desc.backend = &blind;
    bed_must_init(&b);
    desc.pass_count = 3;
    assert_int_equal(tl_rehearse_run(b.run, &desc, &found), TL_ERROR_UNSUPPORTED);
    assert_string_equal(b.env.error.text, "tl_rehearse_run: pass_count: the backend has no clock");
    if (tl_rehearse_run(b.run, NULL, &found)) fail_msg("%s", b.env.error.text);
    assert_null(found.costs);
    assert_int_equal(found.is_stressed, 1);
    tl_free_rehearsal(&b.env, &found);
    bed_close(&b);
    if (tl_free_cpu_backend(NULL, &blind)) fail();
    tl_free_graph(NULL, &graph);
}

static void a_failing_allocator_leaves_nothing_of_a_rehearsal(void **state) {
    static net n;
    long at, failures = 0;
    int which;
    (void)state;
    for (which = 0; which < 2; which++)
        for (at = 0;; at += which ? 7 : 1) {
            static bed b;
            static hash_bed h;
            failing_alloc f;
            tl_rehearsal found;
            tl_graph graph;
            tl_random random = {6};
            tl_result result;
            memset(&f, 0, sizeof f);
            if (random_graph(NULL, &random, 8, &graph)) fail();
            hash_open(&b, &h, &graph, 1);
            b.env = failing_env(&f, -1);
            bed_must_init(&b);
            f.count = 0;
            f.fail_at = at;
            f.fails_once = which;
            memset(h.h.gradients, 3, sizeof h.h.gradients);
            result = tl_rehearse_run(b.run, NULL, &found);
            assert_true(h.h.gradients[2] == 0x0303030303030303u);
            if (result == TL_ERROR_KERNEL) assert_non_null(strstr(b.env.error.text, "load: the hook"));  // it wants memory
            else if (result && result != TL_ERROR_NO_MEMORY) fail_msg("%ld: %s", at, b.env.error.text);
            if (result) assert_true(is_zero(&found, sizeof found));
            failures += result == TL_ERROR_NO_MEMORY;
            tl_free_rehearsal(&b.env, &found);
            f.fail_at = -1;
            bed_close(&b);
            assert_int_equal(f.live, 0);
            tl_free_graph(NULL, &graph);
            if (f.count <= at) break;
        }
    assert_true(failures > 50);
    (void)n;
}

// Without memory for a pass that keeps all, passes of other plans are compared, and the rehearsal says so.
static void little_memory_is_enough_for_two_plans(void **state) {
    enum { ROOM = 1 << 22 };
    char text[8000];
    int length = snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 needs=none out=12000 in=-\n"), i;
    int kept = 0, plans = 0, none = 0;
    size_t room;
    tl_graph graph;
    (void)state;
    for (i = 1; i <= 60; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "node %d n%d op fwd=1 bwd=1 out=12000 needs=%s in=%d\n", i, i,
                           i % 3 ? "none" : "in", i - 1);
    if (tl_parse_graph(NULL, text, (size_t)length, &graph)) fail();
    for (room = ROOM; room > 400000; room -= room / (is_slow() ? 12 : 24)) {
        static char memory[ROOM];
        static bed b;
        static hash_bed h;
        tl_rehearsal found;
        tl_rehearsal_desc desc = {2};
        tl_result result;
        hash_open(&b, &h, &graph, 1);
        b.desc.load = NULL;
        if (tl_init_arena(&b.env, memory, room)) fail();
        b.desc.budget_bytes = 120000;
        if (bed_init(&b)) { bed_close(&b); break; }
        result = tl_rehearse_run(b.run, &desc, &found);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        if (!result) assert_int_equal(found.finding_count, 0);
        if (!result) assert_non_null(found.costs);
        kept += !result && found.kind == TL_REHEARSAL_KEPT;
        plans += !result && found.kind == TL_REHEARSAL_PLANS;
        none += result != TL_OK;
        tl_free_rehearsal(&b.env, &found);
        bed_close(&b);
    }
    if (!kept || !plans || !none) fail_msg("%d %d %d", kept, plans, none);
    tl_free_graph(NULL, &graph);
}

// -- kernels that are not the host's --

typedef struct remote_user { const tl_backend *backend; long runs; int32_t strange; } remote_user;

// A device would do this later: each range is read and written through the backend.
static tl_result remote_kernel(const tl_kernel_call *call, void *user) {
    remote_user *u = (remote_user *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    const tl_operand *to = call->kind == TL_STEP_BACKWARD ? call->input_grads : call->outputs;
    const tl_operand *from = call->kind == TL_STEP_BACKWARD ? call->output_grads : call->inputs;
    unsigned char sum = (unsigned char)call->node;
    void *host;
    uint64_t i;
    assert_null(to->host);
    if (call->kind != TL_STEP_BACKWARD && call->node == u->strange) sum = (unsigned char)(sum + u->runs++);
    if (u->backend->map(u->backend->self, from->range, TL_MAP_READ, &host)) return TL_ERROR_BACKEND;
    for (i = 0; i < from->range.bytes; i++) sum = (unsigned char)(sum * 31 + ((unsigned char *)host)[i]);
    if (u->backend->unmap(u->backend->self, from->range, TL_MAP_READ, host)) return TL_ERROR_BACKEND;
    if (!to->range.bytes) return TL_OK;
    if (u->backend->map(u->backend->self, to->range, TL_MAP_CHANGE, &host)) return TL_ERROR_BACKEND;
    for (i = 0; i < to->range.bytes; i++)
        ((unsigned char *)host)[i] = (unsigned char)(sum + i + (call->kind == TL_STEP_BACKWARD ? ((unsigned char *)host)[i] : 0));
    (void)node;
    return u->backend->unmap(u->backend->self, to->range, TL_MAP_CHANGE, host);
}

static void on_other_backends_passes_are_compared_and_calls_are_not_varied(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 needs=none out=8 in=-\nnode 1 a op fwd=3 bwd=6 out=24 needs=in in=0\n"
        "node 2 b op fwd=1 bwd=1 out=24 needs=out in=1\nnode 3 c op fwd=3 bwd=6 out=24 needs=in in=2\n";
    int strange;
    (void)state;
    for (strange = 0; strange < 2; strange++) {
        static bed b;
        tl_kernel kernel = {"op", remote_kernel, remote_kernel, NULL};
        remote_user user = {NULL, 0, 0};
        tl_rehearsal found;
        tl_graph graph;
        if (tl_parse_graph(NULL, text, sizeof text - 1, &graph)) fail();
        bed_open(&b, &graph, 0, 0, 1);
        b.spy.is_remote = 1;
        user.backend = &b.backend;
        user.strange = strange ? 2 : -1;
        kernel.user = &user;
        b.desc.kernels = &kernel;
        b.desc.kernel_count = 1;
        bed_must_init(&b);
        if (tl_rehearse_run(b.run, NULL, &found)) fail_msg("%s", b.env.error.text);
        assert_int_equal(found.unprobed_count, 3);
        assert_int_equal(found.is_stressed, 1);
        assert_int_equal(found.error_count, strange);
        if (strange) assert_int_equal(found.findings[0].kind, TL_FINDING_MADE_OTHERWISE);
        if (strange) assert_int_equal(found.findings[0].node, 2);
        if (!strange) assert_true(found.costs[3].bwd_ns > 0);
        tl_free_rehearsal(&b.env, &found);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
}

static tl_result bend_forward(const tl_kernel_call *call, void *user) {
    (void)user;
    AT(call->outputs[0])[0] = AT(call->inputs[0])[0] * (1.0f + 0.5f * AT(call->inputs[0])[0]);
    return TL_OK;
}

static tl_result bend_backward(const tl_kernel_call *call, void *user) {
    (void)user;
    if (!call->input_grads[0].host) return TL_OK;
    AT(call->input_grads[0])[0] += (1.0f + AT(call->inputs[0])[0]) * AT(call->output_grads[0])[0];
    return TL_OK;
}

// Without a load hook inputs are zeroes, and the gradient that reaches an op may be all of the loss: what needs does
// not name is found all the same, also where no other bytes show, by a kernel that finds none of it.
static void wrong_needs_are_found_without_inputs(void **state) {
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    tl_run_desc desc = {0};
    tl_rehearsal found;
    tl_run *run;
    tl_op ops[3];
    (void)state;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    memset(ops, 0, sizeof ops);
    ops[0].kind = "input";
    ops[0].output_bytes = ops[1].output_bytes = ops[2].output_bytes = sizeof(float);
    ops[1].name = "first";
    ops[2].name = "second";
    ops[1].forward = ops[2].forward = bend_forward;
    ops[1].backward = ops[2].backward = bend_backward;
    ops[2].needs = "none";
    desc.backend = &backend;
    desc.rehearsal = &found;
    assert_int_equal(tl_init_op_run(&env, &desc, ops, 3, &run), TL_ERROR_MISMATCH);
    assert_string_equal(env.error.text, "tl_init_op_run: rehearsal: 1 errors, the first: second: backward reads input 0, "
                                        "which needs does not name: add in0 to needs");
    tl_free_rehearsal(&env, &found);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// -- costs under two plans --

enum { TIMED = 12 };

// Forwards take 1000 ns, and 600 where they run again in a pass; backwards 2000.
typedef struct timed_ops {
    uint64_t now;
    int      ran[TIMED];
} timed_ops;

static tl_result timed_forward(const tl_kernel_call *call, void *user) {
    timed_ops *t = (timed_ops *)user;
    const float *in = (const float *)call->inputs[0].host;
    float *out = (float *)call->outputs[0].host;
    size_t i;
    for (i = 0; i < (size_t)(call->outputs[0].range.bytes / 4); i++) out[i] = in[i] + 1;
    t->now += t->ran[call->node]++ ? 600 : 1000;
    return TL_OK;
}

static tl_result timed_backward(const tl_kernel_call *call, void *user) {
    timed_ops *t = (timed_ops *)user;
    const float *in = (const float *)call->inputs[0].host, *dout = (const float *)call->output_grads[0].host;
    float *din = (float *)call->input_grads[0].host;
    size_t i;
    for (i = 0; din && i < (size_t)(call->input_grads[0].range.bytes / 4); i++) din[i] += dout[i] * in[i];
    t->now += 2000;
    if (call->node == 1) memset(t->ran, 0, sizeof t->ran);      // the pass ends
    return TL_OK;
}

static uint64_t timed_now(void *user) { return 1 + ((timed_ops *)user)->now; }     // 0 = no clock

static void costs_are_the_mean_of_two_plans(void **state) {
    static timed_ops t;
    tl_cpu_backend_desc cpu = {0};
    tl_backend backend;
    tl_env env = silent_env();
    tl_run_desc desc = {0};
    tl_rehearsal found;
    tl_rehearsal_desc three = {3};
    tl_plan plan;
    tl_run *run;
    tl_op ops[TIMED];
    int again = 0, tight, i, k;
    (void)state;
    for (tight = 0; tight < 2; tight++) {
        memset(&t, 0, sizeof t);
        memset(ops, 0, sizeof ops);
        cpu.now_ns = timed_now;
        cpu.user = &t;
        if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
        for (i = 0; i < TIMED; i++) {
            ops[i].output_bytes = 256;
            ops[i].needs = "in";
            ops[i].forward = timed_forward;
            ops[i].backward = timed_backward;
            ops[i].user = &t;
        }
        memset(&ops[0], 0, sizeof ops[0]);
        ops[0].kind = "input";
        ops[0].output_bytes = 256;
        desc.backend = &backend;
        desc.budget_ratio = tight ? 0.5 : 0;
        if (tl_init_op_run(&env, &desc, ops, TIMED, &run)) fail_msg("%s", env.error.text);
        if (tl_rehearse_run(run, &three, &found)) fail_msg("%s", env.error.text);
        assert_int_equal(found.error_count, 0);
        tl_find_run_plan(run, &plan);
        for (i = 1; i < TIMED; i++) {
            uint64_t times = 0, own;
            for (k = 0; k < plan.step_count; k++)
                times += tl_find_step(&plan, k).kind < TL_STEP_BACKWARD && tl_find_step(&plan, k).node == i;
            own = (1000 + 600 * (times - 1)) / times;
            again += times > 1;
            assert_int_equal(found.costs[i].fwd_ns, tight ? (1000 + own) / 2 : 1000);
            assert_int_equal(found.costs[i].bwd_ns, 2000);
        }
        assert_true(tight ? again > 2 : again == 0);
        tl_free_rehearsal(&env, &found);
        tl_free_run(run);
        assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    }
}

// One call builds, verifies, times and plans; the costs that come back give the same plan again.
static void operations_are_rehearsed_before_they_are_planned(void **state) {
    static net n;
    static char memory[8192];
    uint64_t now = 0;
    tl_cpu_backend_desc cpu = {0};
    tl_run_desc desc = {0};
    tl_backend backend;
    tl_env env = silent_env();
    tl_run_figures figures;
    tl_rehearsal found;
    tl_plan plan, again;
    tl_run *run;
    int32_t i;
    (void)state;
    cpu.memory = memory;        // too little to keep everything
    cpu.memory_bytes = sizeof memory;
    cpu.now_ns = counted_ns;
    cpu.user = &now;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
    net_make(&n);
    desc.backend = &backend;
    desc.variables = n.states;
    desc.variable_count = n.variable_count;
    desc.load = net_load;
    desc.budget_ratio = 0.9;
    desc.figures = &figures;
    desc.rehearsal = &found;
    if (tl_init_op_run(&env, &desc, n.ops, NET_OPS, &run)) fail_msg("%s", env.error.text);
    assert_int_equal(found.finding_count, 0);
    assert_non_null(found.costs);
    for (i = EMBED; i < NET_OPS; i++) {
        assert_true(found.costs[i].fwd_ns > 0 && found.costs[i].bwd_ns > 0);
        assert_true(tl_find_run_graph(run)->nodes[i].fwd_cost == found.costs[i].fwd_ns);
        assert_true(tl_find_run_graph(run)->nodes[i].bwd_cost == found.costs[i].bwd_ns);
    }
    tl_find_run_plan(run, &plan);
    desc.rehearsal = NULL;
    desc.costs = found.costs;
    {
        tl_plan kept;
        tl_run *second;
        if (tl_copy_plan(&env, &plan, &kept)) fail();
        tl_free_run(run);
        if (tl_init_op_run(&env, &desc, n.ops, NET_OPS, &second)) fail_msg("%s", env.error.text);
        tl_find_run_plan(second, &again);
        assert_int_equal(kept.step_count, again.step_count);
        for (i = 0; i < kept.step_count; i++) {
            tl_step a = tl_find_step(&kept, i), b = tl_find_step(&again, i);
            assert_memory_equal(&a, &b, sizeof a);
        }
        assert_true(kept.arena_bytes == again.arena_bytes);
        tl_free_run(second);
        tl_free_plan(&env, &kept);
    }
    tl_free_rehearsal(&env, &found);
    // an error refuses the run, and the findings are there
    n.ops[GELU].needs = n.ops[HEAD].needs = "none";
    n.ops[HEAD].name = "a_head_whose_name_is_much_longer_than_what_is_wanted_here";
    desc.costs = NULL;
    desc.rehearsal = &found;
    assert_int_equal(tl_init_op_run(&env, &desc, n.ops, NET_OPS, &run), TL_ERROR_MISMATCH);
    assert_null(run);
    assert_int_equal(found.error_count, 2);
    for (i = 0; i < 2; i++) {   // by name, without a run
        char line[400];
        static const char *const names[] = {"a_head_whose_name_is_much_longer_than_what_is_w", "gelu"};
        char expected[400];
        snprintf(expected, sizeof expected, "%s: backward reads input 0, which needs does not name: add in0 to needs", names[i]);
        tl_print_finding(NULL, &found.findings[i], line, sizeof line);
        assert_string_equal(line, expected);
        if (i) continue;
        assert_true(strstr(env.error.text, "tl_init_op_run: rehearsal: 2 errors, the first: ") == env.error.text);
        assert_non_null(strstr(env.error.text, expected));
    }
    tl_free_rehearsal(&env, &found);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

// Without a clock and without costs every op counts as much as any other: the rehearsal says so, once. The CPU backend has the
// clock of the system.
static void a_missing_clock_is_an_advice(void **state) {
    int turn;
    (void)state;
    for (turn = 0; turn < 6; turn++) {
        static net n;
        tl_cpu_backend_desc cpu = {0};
        tl_backend backend;
        tl_env env = silent_env();
        tl_run_desc desc = {0};
        tl_rehearsal_desc untimed = {-1};
        tl_node_cost costs[NET_OPS];
        tl_run *run;
        int32_t i;
        for (i = 0; i < NET_OPS; i++) costs[i].fwd_ns = costs[i].bwd_ns = 5;
        cpu.now_ns = turn ? no_clock : NULL;
        if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
        net_make(&n);
        desc.backend = &backend;
        desc.variables = n.states;
        desc.variable_count = n.variable_count;
        desc.load = net_load;
        if (turn < 3) desc.rehearsal = &n.found;
        if (turn == 2) desc.costs = costs;
        if (turn == 3) n.ops[GELU].bwd_cost = 2;
        if (tl_init_op_run(&env, &desc, n.ops, NET_OPS, &run)) fail_msg("%s", env.error.text);
        if (turn >= 3 && tl_rehearse_run(run, turn == 4 ? &untimed : NULL, &n.found)) fail_msg("%s", env.error.text);
        assert_int_equal(n.found.error_count, 0);
        assert_true((n.found.costs != NULL) == !turn);
        assert_int_equal(n.found.finding_count, turn == 1 || turn == 5);
        if (n.found.finding_count) {
            char line[200];
            assert_int_equal(n.found.findings[0].is_advice, 1);
            tl_print_finding(NULL, &n.found.findings[0], line, sizeof line);
            assert_string_equal(line, "the backend has no clock, so every op counts as much as any other: give now_ns to the "
                                      "backend, or costs");
        }
        for (i = EMBED; i < NET_OPS && !turn; i++) assert_true(tl_find_run_graph(run)->nodes[i].fwd_cost == n.found.costs[i].fwd_ns);
        tl_free_rehearsal(&env, &n.found);
        tl_free_run(run);
        assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_on_random_graphs),
        cmocka_unit_test(nothing_is_found_in_a_network_that_is_right),
        cmocka_unit_test(every_planted_error_is_found_and_named),
        cmocka_unit_test(weights_without_a_registered_gradient_are_named),
        cmocka_unit_test(a_kernel_that_fails_ends_the_rehearsal),
        cmocka_unit_test(a_load_hook_that_fails_ends_the_rehearsal),
        cmocka_unit_test(a_rehearsal_that_breaks_a_rule_is_refused),
        cmocka_unit_test(a_failing_allocator_leaves_nothing_of_a_rehearsal),
        cmocka_unit_test(little_memory_is_enough_for_two_plans),
        cmocka_unit_test(on_other_backends_passes_are_compared_and_calls_are_not_varied),
        cmocka_unit_test(costs_are_the_mean_of_two_plans),
        cmocka_unit_test(operations_are_rehearsed_before_they_are_planned),
        cmocka_unit_test(wrong_needs_are_found_without_inputs),
        cmocka_unit_test(a_missing_clock_is_an_advice),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
