// What every order of the calls of a small graph takes, by the rules of [5] as the header states them, and the least of these;
// and plans of a given order of forwards, for comparison. Include after the implementation.
#ifndef TESTS_BRUTE_ORDER_H
#define TESTS_BRUTE_ORDER_H

#include "random_graph.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BRUTE_NODES = 16 };

typedef struct brute_order {
    const tl_graph *graph;
    int      inference;
    uint64_t runs, results;             // bits: of nodes that run; of nodes whose outputs are results
    uint64_t forward;                   // bits: forwards that ran
    int32_t  next;                      // whose backward is next; -1 = none
    uint64_t best;
    long     orders;                    // tried, or cut off
} brute_order;

static inline int brute_has(uint64_t set, int32_t id) { return (int)(set >> id & 1); }
static inline int brute_reverses(const brute_order *b, int32_t id) { return !b->inference && b->graph->nodes[id].has_grad; }
static inline int brute_reversed(const brute_order *b, int32_t id) { return brute_reverses(b, id) && id > b->next; }

static inline int brute_reads(const tl_graph *graph, int32_t id, int32_t tensor, int by_backward) {
    const tl_node *node = &graph->nodes[id];
    int32_t i, count = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        count += graph->inputs[i].tensor == tensor && (!by_backward || graph->inputs[i].needed);
    return count;
}

// Whether something still reads a tensor, but for the forward of one node.
static inline int brute_is_read(const brute_order *b, int32_t tensor, int32_t but) {
    const tl_node_output *output = &b->graph->outputs[tensor];
    int32_t id;
    if (output->needed && brute_reverses(b, output->node) && !brute_reversed(b, output->node)) return 1;
    for (id = 0; id < b->graph->node_count; id++) {
        if (id != but && brute_has(b->runs, id) && !brute_has(b->forward, id) && brute_reads(b->graph, id, tensor, 0)) return 1;
        if (brute_reverses(b, id) && !brute_reversed(b, id) && brute_reads(b->graph, id, tensor, 1)) return 1;
    }
    return 0;
}

static inline int brute_has_gradient(const brute_order *b, int32_t tensor) {
    int32_t maker = b->graph->outputs[tensor].node, id;
    if (!brute_reverses(b, maker) || brute_reversed(b, maker)) return 0;
    for (id = 0; id < b->graph->node_count; id++)
        if (brute_reversed(b, id) && brute_reads(b->graph, id, tensor, 0)) return 1;
    return 0;
}

// The live bytes between two calls.
static inline uint64_t brute_live(const brute_order *b) {
    const tl_graph *graph = b->graph;
    uint64_t live = 0;
    int32_t i, id;
    for (i = 0; i < graph->tensor_count; i++) {
        id = graph->outputs[i].node;
        if (graph->nodes[id].is_input ||
            (brute_has(b->forward, id) && (brute_has(b->results, id) || brute_is_read(b, i, -1)))) live += graph->outputs[i].bytes;
        if (brute_has_gradient(b, i)) live += graph->outputs[i].bytes;
    }
    for (id = 0; id < graph->node_count; id++)
        if (brute_has(b->forward, id) && brute_reverses(b, id) && !brute_reversed(b, id)) live += graph->nodes[id].saved_bytes;
    return live;
}

static inline uint64_t brute_forward(const brute_order *b, int32_t id) {
    const tl_graph *graph = b->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = brute_live(b) + (node->saved_bytes && !b->inference ? node->swork_bytes : node->fwork_bytes);
    int32_t i, over;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) bytes += graph->outputs[i].bytes;
    if (!b->inference) bytes += node->saved_bytes;
    if (node->inplace < 0 || (!b->inference && node->saved_bytes)) return bytes;
    over = graph->inputs[node->first_input + node->inplace].tensor;
    if (brute_reads(graph, id, over, 0) == 1 && !brute_has(b->results, graph->outputs[over].node) && !brute_is_read(b, over, id))
        bytes -= graph->outputs[over].bytes;
    return bytes;
}

static inline uint64_t brute_backward(const brute_order *b, int32_t id) {
    const tl_graph *graph = b->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = brute_live(b) + node->bwork_bytes;
    int32_t i, k;
    for (i = 0; i < graph->tensor_count; i++) {
        int adds = brute_reads(graph, id, i, 0) && brute_reverses(b, graph->outputs[i].node);
        for (k = node->first_output; k < node->first_output + node->output_count; k++) adds |= k == i;
        if (adds && !brute_has_gradient(b, i)) bytes += graph->outputs[i].bytes;
    }
    return bytes;
}

static inline int brute_can_run(const brute_order *b, int32_t id) {
    const tl_node *node = &b->graph->nodes[id];
    int32_t i;
    if (!brute_has(b->runs, id) || brute_has(b->forward, id)) return 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t maker = b->graph->outputs[b->graph->inputs[i].tensor].node;
        if (!b->graph->nodes[maker].is_input && !brute_has(b->forward, maker)) return 0;
    }
    return 1;
}

static inline void brute_skip(brute_order *b) { while (b->next >= 0 && !brute_reverses(b, b->next)) b->next--; }

// Try every order from here on, as far as it takes less than the best one.
static inline void brute_try(brute_order *b, uint64_t peak) {
    int32_t id, next = b->next;
    uint64_t bytes;
    int ends = b->next < 0;
    for (id = 0; id < b->graph->node_count; id++) {
        if (!brute_can_run(b, id)) { ends &= !brute_has(b->runs, id) || brute_has(b->forward, id); continue; }
        ends = 0;
        bytes = brute_forward(b, id);
        if (bytes < peak) bytes = peak;
        if (bytes >= b->best) { b->orders++; continue; }
        b->forward |= (uint64_t)1 << id;
        brute_try(b, bytes);
        b->forward &= ~((uint64_t)1 << id);
    }
    if (ends) { b->orders++; if (peak < b->best) b->best = peak; return; }
    if (next < 0 || !brute_has(b->forward, next)) return;
    bytes = brute_backward(b, next);
    if (bytes < peak) bytes = peak;
    if (bytes >= b->best) { b->orders++; return; }
    b->next--;
    brute_skip(b);
    brute_try(b, bytes);
    b->next = next;
}

// Which nodes run: those with a gradient, in training, and what results and those that run need.
static inline void brute_find_runs(brute_order *b) {
    const tl_graph *graph = b->graph;
    int32_t id, i;
    int any_keep = 0;
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int is_read = 0, is_needed = brute_reverses(b, id);
        int32_t reader;
        for (reader = id + 1; reader < graph->node_count; reader++)
            for (i = node->first_output; i < node->first_output + node->output_count; i++) {
                if (!brute_reads(graph, reader, i, 0)) continue;
                is_read = 1;
                is_needed |= brute_has(b->runs, reader);
            }
        if (node->keep || (b->inference && !any_keep && !is_read && !node->is_input)) b->results |= (uint64_t)1 << id;
        if (!node->is_input && (is_needed || brute_has(b->results, id))) b->runs |= (uint64_t)1 << id;
    }
}

// The least peak of all orders.
static inline uint64_t brute_least_peak(const tl_graph *graph, int inference, long *orders) {
    brute_order b;
    memset(&b, 0, sizeof b);
    b.graph = graph;
    b.inference = inference;
    b.next = graph->node_count - 1;
    b.best = UINT64_MAX;
    brute_find_runs(&b);
    brute_skip(&b);
    brute_try(&b, brute_live(&b));
    *orders += b.orders;
    return b.best;
}

// A graph whose nodes read any nodes above them, so that many orders are possible.
static inline tl_result wide_graph(tl_env *env, tl_random *random, int32_t node_count, tl_graph *graph) {
    tl_result result = TL_OK;
    int32_t k;
    tl_init_graph(graph);
    while (graph->node_count < node_count && !result) {
        tl_tensor inputs[3];
        uint64_t bytes[3];
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.op = graph->node_count ? "conv" : "input";
        desc.inputs = inputs;
        desc.output_bytes = bytes;
        desc.input_count = graph->node_count ? random_count(random, 1, 3) : 0;
        desc.output_count = random_chance(random, 80) ? 1 : random_count(random, 2, 3);
        for (k = 0; k < desc.output_count; k++) bytes[k] = tl_next_random_below(random, random_chance(random, 30) ? 200 : 20);
        for (k = 0; k < desc.input_count; k++) {
            inputs[k].node = random_count(random, 0, graph->node_count - 1);
            inputs[k].output = random_count(random, 0, graph->nodes[inputs[k].node].output_count - 1);
        }
        if (graph->node_count && !graph->nodes[inputs[0].node].is_input && random_chance(random, 40)) {
            bytes[0] = graph->outputs[graph->nodes[inputs[0].node].first_output + inputs[0].output].bytes;
            desc.inplace = 1;
        }
        if (graph->node_count) {
            desc.fwd_cost = 1;
            if (random_chance(random, 20)) desc.fwork_bytes = tl_next_random_below(random, 40);
            desc.no_grad = random_chance(random, 20);
            desc.needs = desc.no_grad ? "none" : random_chance(random, 50) ? "in" : random_chance(random, 50) ? "out" : "none";
            desc.bwd_cost = !desc.no_grad;
            if (!desc.no_grad && random_chance(random, 20)) desc.saved_bytes = tl_next_random_below(random, 40);
            if (!desc.no_grad && random_chance(random, 20)) desc.bwork_bytes = tl_next_random_below(random, 40);
            desc.keep = random_chance(random, 5);
        }
        result = tl_add_node(env, graph, &desc, NULL);
    }
    if (result) tl_free_graph(env, graph);
    return result;
}

// -- plans of a given order --

// The forward-only plan that runs these nodes in this order, in place where that is possible; every tensor is dropped after its
// last use. results: [tensors] 1 = resident at the end. Release the steps with free().
static inline tl_plan order_plan(const tl_graph *graph, const int32_t *order, int32_t count, const uint8_t *results) {
    tl_step *steps = (tl_step *)calloc((size_t)(count + graph->tensor_count) + 1, sizeof *steps);
    int32_t *last = (int32_t *)malloc(((size_t)graph->tensor_count + 1) * sizeof *last), at, i;
    tl_plan plan;
    memset(&plan, 0, sizeof plan);
    if (!steps || !last) exit(1);
    for (i = 0; i < graph->tensor_count; i++) last[i] = -1;
    for (at = 0; at < count; at++) {
        const tl_node *node = &graph->nodes[order[at]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++) last[i] = at;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) last[graph->inputs[i].tensor] = at;
    }
    for (at = 0; at < count; at++) {
        const tl_node *node = &graph->nodes[order[at]];
        tl_step *step = &steps[plan.step_count++];
        int32_t over = node->inplace < 0 ? -1 : graph->inputs[node->first_input + node->inplace].tensor;
        if (over >= 0 && (results[over] || last[over] != at || brute_reads(graph, order[at], over, 0) != 1)) over = -1;
        step->kind = (uint8_t)(over >= 0 ? TL_STEP_FORWARD_INPLACE : TL_STEP_FORWARD);
        step->node = order[at];
        step->output = TL_ALL_OUTPUTS;
        for (i = 0; i < node->output_count + node->input_count; i++) {
            int32_t tensor = i < node->output_count ? node->first_output + i
                                                    : graph->inputs[node->first_input + i - node->output_count].tensor;
            if (tensor == over || results[tensor] || last[tensor] != at || graph->nodes[graph->outputs[tensor].node].is_input) continue;
            last[tensor] = -1;
            step = &steps[plan.step_count++];
            step->kind = TL_STEP_DROP;
            step->node = graph->outputs[tensor].node;
            step->output = graph->outputs[tensor].output;
        }
    }
    free(last);
    plan.steps = steps;
    plan.inference = 1;
    return plan;
}

#endif
