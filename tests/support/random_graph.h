// Random valid graphs with every attribute: what the tests of several sections run on.
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int random_chance(tl_random *random, int percent) {
    return tl_next_random_below(random, 100) < (uint64_t)percent;
}

static inline int32_t random_count(tl_random *random, int32_t least, int32_t most) {
    return least + (int32_t)tl_next_random_below(random, (uint64_t)(most - least) + 1);
}

// A needs text of any form that fits the node; text holds at least 64 bytes.
static inline void random_needs(tl_random *random, int32_t input_count, int32_t output_count, char *text) {
    char *at = text;
    int32_t parts = random_count(random, 0, 3);
    for (; parts > 0; parts--) {
        int reads_output = !input_count || random_chance(random, 40);
        const char *word = reads_output ? "out" : "in";
        if (at > text) *at++ = ',';
        memcpy(at, word, strlen(word));
        at += strlen(word);
        if (random_chance(random, 60)) *at++ = (char)('0' + random_count(random, 0, (reads_output ? output_count : input_count) - 1));
    }
    if (at == text) { memcpy(text, "none", 4); at = text + 4; }
    *at = 0;
}

// Whether a node may say takes_blocks; every node that may does.
static inline int random_takes_blocks(const tl_graph *graph, const tl_node_desc *desc) {
    int32_t k;
    for (k = 1; k < desc->output_count; k++)
        if (desc->output_bytes[k] != desc->output_bytes[0]) return 0;
    for (k = 0; k < desc->input_count && !desc->no_grad; k++) {
        const tl_node *from = &graph->nodes[desc->inputs[k].node];
        if (from->has_grad && graph->outputs[from->first_output + desc->inputs[k].output].bytes != desc->output_bytes[0])
            return 0;
    }
    return !desc->saved_bytes;
}

// Add one random node (or graph input) that reads from the nodes there are. Inputs are near and far, now and then
// the same tensor twice; the frozen ones stand alone, in branches, and behind nodes that have a gradient.
static inline tl_result random_node(tl_env *env, tl_random *random, int is_input, tl_graph *graph) {
    static const char *const ops[] = { "conv", "linear", "relu", "add", "split", "ce" };
    static const char *const units[] = { "attention", "ffn", "other" };
    tl_node_desc desc;
    tl_tensor inputs[4];
    uint64_t bytes[4];
    char needs[64];
    int32_t k;
    memset(&desc, 0, sizeof desc);
    desc.op = is_input ? "input" : ops[tl_next_random_below(random, 6)];
    desc.inputs = inputs;
    desc.input_count = is_input ? 0 : random_chance(random, 4) ? 0 : random_count(random, 1, 3);
    desc.output_bytes = bytes;
    desc.output_count = random_chance(random, 70) ? 1 : random_count(random, 2, 4);
    for (k = 0; k < desc.output_count; k++)
        bytes[k] = random_chance(random, 8) ? 0 : 1 + tl_next_random_below(random, random_chance(random, 30) ? 200 : 20);
    for (k = 0; k < desc.input_count; k++) {
        int32_t id = random_chance(random, 60) ? graph->node_count - 1 : random_count(random, 0, graph->node_count - 1);
        inputs[k].node = id;
        inputs[k].output = random_count(random, 0, graph->nodes[id].output_count - 1);
    }
    desc.keep = random_chance(random, 10);
    desc.fixed = random_chance(random, 10);
    if (random_chance(random, 50)) desc.layer = 1 + graph->node_count / 3;
    if (random_chance(random, 40)) desc.unit = units[tl_next_random_below(random, 3)];
    if (is_input) return tl_add_node(env, graph, &desc, NULL);

    desc.fwd_cost = random_chance(random, 5) ? 0 : 1 + tl_next_random_below(random, 30);
    if (random_chance(random, 30)) desc.fwork_bytes = 1 + tl_next_random_below(random, 20);
    if (random_chance(random, 30)) desc.param_bytes = 1 + tl_next_random_below(random, 100);
    if (desc.input_count && random_chance(random, 25)) {
        int32_t from = random_count(random, 0, desc.input_count - 1);
        const tl_node *source = &graph->nodes[inputs[from].node];
        if (!source->is_input) {
            desc.inplace = from + 1;
            bytes[0] = graph->outputs[source->first_output + inputs[from].output].bytes;
        }
    }
    desc.no_grad = random_chance(random, 15);
    if (!desc.no_grad) {
        random_needs(random, desc.input_count, desc.output_count, needs);
        desc.needs = needs;
        desc.bwd_cost = random_chance(random, 5) ? 0 : 1 + tl_next_random_below(random, 40);
        if (random_chance(random, 30)) desc.saved_bytes = 1 + tl_next_random_below(random, 20);
        if (random_chance(random, 30)) desc.bwork_bytes = 1 + tl_next_random_below(random, 20);
    }
    desc.takes_blocks = random_takes_blocks(graph, &desc);
    return tl_add_node(env, graph, &desc, NULL);
}

// Make a graph of 2 .. max_nodes nodes (max_nodes >= 2), the first of them an input; release it with tl_free_graph.
static inline tl_result random_graph(tl_env *env, tl_random *random, int32_t max_nodes, tl_graph *graph) {
    int32_t count = random_count(random, 2, max_nodes), i;
    tl_result result = TL_OK;
    tl_init_graph(graph);
    if (random_chance(random, 30)) graph->batch = 1 + tl_next_random_below(random, 64);
    for (i = 0; i < count && !result; i++)
        result = random_node(env, random, i == 0 || (i < count - 1 && random_chance(random, i < 3 ? 20 : 2)), graph);
    if (result) tl_free_graph(env, graph);
    return result;
}

// The same graph, in which so many percent of the nodes run once only, and forwards that save have a scratch of their own;
// 0 = none. The caller's numbers go on as without.
static inline tl_result random_effect_graph(tl_env *env, tl_random *random, int32_t max_nodes, int percent, tl_graph *graph) {
    tl_result result = random_graph(env, random, max_nodes, graph);
    tl_node *nodes = (tl_node *)graph->nodes;
    tl_random own = *random;
    int32_t id;
    for (id = 0; id < graph->node_count && !result && percent; id++) {
        if (nodes[id].is_input) continue;
        nodes[id].once = (uint8_t)random_chance(&own, percent);
        if (nodes[id].saved_bytes && random_chance(&own, 60))
            nodes[id].swork_bytes = random_chance(&own, 30) ? 0 : tl_next_random_below(&own, 2 * nodes[id].fwork_bytes + 20);
    }
    return result;
}

// Copy a node of one graph to the end of another; new_ids says where its inputs are there. states: so many more inputs.
static inline tl_result random_copy_node(tl_env *env, const tl_graph *from, int32_t id, const int32_t *new_ids,
                                         const tl_tensor *states, int32_t state_count, tl_graph *to) {
    const tl_node *node = &from->nodes[id];
    tl_node_desc desc;
    tl_tensor inputs[12];
    uint64_t bytes[4];
    char needs[160] = "none", *at = needs;
    int32_t k;
    memset(&desc, 0, sizeof desc);
    desc.name = tl_name_node(from, id);
    desc.op = tl_name_op(from, id);
    desc.unit = node->unit ? tl_name_unit(from, id) : NULL;
    desc.inputs = inputs;
    desc.input_count = node->input_count + state_count;
    desc.output_bytes = bytes;
    desc.output_count = node->output_count;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *input = &from->outputs[from->inputs[node->first_input + k].tensor];
        inputs[k].node = new_ids[input->node];
        inputs[k].output = input->output;
        if (from->inputs[node->first_input + k].needed) at += sprintf(at, "%sin%d", at > needs ? "," : "", (int)k);
    }
    for (k = 0; k < state_count; k++) {
        inputs[node->input_count + k] = states[k];
        if (node->has_grad && (k + id) % 3) at += sprintf(at, "%sin%d", at > needs ? "," : "", (int)(node->input_count + k));
    }
    for (k = 0; k < node->output_count; k++) {
        bytes[k] = from->outputs[node->first_output + k].bytes;
        if (from->outputs[node->first_output + k].needed) at += sprintf(at, "%sout%d", at > needs ? "," : "", (int)k);
    }
    desc.needs = needs;
    desc.fwd_cost = node->fwd_cost; desc.bwd_cost = node->bwd_cost;
    desc.saved_bytes = node->saved_bytes; desc.param_bytes = node->param_bytes;
    desc.fwork_bytes = node->fwork_bytes; desc.bwork_bytes = node->bwork_bytes;
    desc.swork_bytes = node->swork_bytes ? node->swork_bytes : TL_SCRATCH_NONE;
    desc.layer = node->layer + 1;
    desc.inplace = node->inplace + 1;
    desc.no_grad = !node->is_input && !node->has_grad;
    desc.keep = node->keep; desc.fixed = node->fixed; desc.once = node->once;
    desc.dynamic = node->dynamic;
    return tl_add_node(env, to, &desc, NULL);
}

// Add a state of random bytes; now and then one that does not change.
static inline tl_result random_state(tl_env *env, tl_random *random, tl_graph *graph, tl_tensor *weight) {
    tl_state_desc desc;
    uint64_t moments[2];
    char name[16];
    memset(&desc, 0, sizeof desc);
    snprintf(name, sizeof name, "w%d", (int)graph->node_count);
    desc.name = name;
    desc.op = "adamw";
    desc.bytes = random_chance(random, 5) ? 0 : 1 + tl_next_random_below(random, random_chance(random, 30) ? 200 : 20);
    desc.kind = random_chance(random, 85) ? TL_STATE_TRAINED : random_chance(random, 50) ? TL_STATE_FROZEN : TL_STATE_STATISTIC;
    if (desc.kind == TL_STATE_TRAINED) {
        desc.moment_bytes = moments;
        desc.moment_count = random_count(random, 0, 2);
        moments[0] = desc.bytes;
        moments[1] = 1 + tl_next_random_below(random, 20);
        if (desc.bytes && random_chance(random, 70)) {
            desc.weight_rows = random_count(random, 1, 9);
            desc.bytes = moments[0] = (uint64_t)desc.weight_rows * (1 + desc.bytes / (uint64_t)desc.weight_rows);
            moments[1] = (uint64_t)desc.weight_rows * (1 + moments[1] / (uint64_t)desc.weight_rows);
        }
        desc.update_cost = tl_next_random_below(random, 20);
        if (random_chance(random, 30)) desc.update_work_bytes = 1 + tl_next_random_below(random, 40);
    }
    return tl_add_state(env, graph, &desc, weight);
}

// The same graph in which nodes read states: such that stand right above their reader, at the top, or anywhere, of one
// reader or several. at_most: states in the graph.
static inline tl_result random_add_states(tl_env *env, tl_random *random, const tl_graph *from, int32_t at_most, tl_graph *to) {
    int32_t *new_ids = (int32_t *)calloc((size_t)from->node_count + 1, sizeof *new_ids), id, k, count = 0;
    tl_tensor *all = (tl_tensor *)calloc((size_t)at_most + 1, sizeof *all);
    int style = random_count(random, 0, 3), at_top = style == 1 ? at_most : style ? 0 : random_count(random, 0, at_most);
    tl_result result = new_ids && all ? TL_OK : TL_ERROR_NO_MEMORY;
    tl_init_graph(to);
    to->batch = from->batch;
    for (; count < at_top && !result; count++) result = random_state(env, random, to, &all[count]);
    for (id = 0; id < from->node_count && !result; id++) {
        tl_tensor reads[2];
        int32_t read_count = 0;
        for (k = 0; k < 2 && !from->nodes[id].is_input && !from->nodes[id].takes_blocks && random_chance(random, 60); k++) {
            int is_new = count < at_most && (!count || style == 2 || random_chance(random, 50));
            if (is_new && !result) result = random_state(env, random, to, &all[count++]);
            if (count) reads[read_count++] = is_new ? all[count - 1] : all[tl_next_random_below(random, (uint64_t)count)];
        }
        if (!result) result = random_copy_node(env, from, id, new_ids, reads, read_count, to);
        new_ids[id] = to->node_count - 1;
    }
    free(new_ids);
    free(all);
    if (result) tl_free_graph(env, to);
    return result;
}

// Add states that nobody reads behind all nodes of a graph: one to three of any kind, trained ones with gradients of zeroes.
static inline tl_result random_add_unread(tl_env *env, tl_random *random, tl_graph *graph) {
    tl_result result = TL_OK;
    int32_t count = random_count(random, 1, 3);
    tl_tensor weight;
    for (; count > 0 && !result; count--) result = random_state(env, random, graph, &weight);
    return result;
}

// Let states with rows be trained in pieces; how many are.
static inline int32_t random_train_in_pieces(tl_env *env, tl_random *random, tl_graph *graph) {
    tl_graph whole = *graph;
    tl_pieces_desc desc;
    int32_t id, count = 0;
    memset(&desc, 0, sizeof desc);
    desc.graph = &whole;
    desc.piece_bytes = tl_next_random_below(random, 30);
    desc.alignment_bytes = random_chance(random, 30) ? 4 : 0;
    desc.call_cost = tl_next_random_below(random, 3);
    if (tl_apply_pieces(env, &desc, graph)) { *graph = whole; return -1; }
    tl_free_graph(env, &whole);
    for (id = 0; id < graph->node_count; id++) count += graph->nodes[id].state == TL_STATE_PIECES;
    return count;
}

// Let some of the inputs of a graph die that a node with a backward reads; how many.
static inline int32_t random_let_inputs_die(tl_random *random, tl_graph *graph) {
    int32_t id, k, count = 0;
    for (id = 0; id < graph->node_count; id++)
        for (k = 0; k < graph->nodes[id].input_count && graph->nodes[id].has_grad; k++) {
            int32_t from = graph->outputs[graph->inputs[graph->nodes[id].first_input + k].tensor].node;
            tl_node *node = (tl_node *)graph->nodes + from;
            if (node->is_input != 1 || node->state || node->keep || !random_chance(random, 60)) continue;
            node->is_input = 2;
            count++;
        }
    return count;
}

// The largest allocation that a step of any plan of a graph makes; 1 where there is none.
static inline uint64_t random_largest(const tl_graph *graph) {
    uint64_t largest = 1;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->outputs[i].bytes > largest) largest = graph->outputs[i].bytes;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        if (node->saved_bytes > largest) largest = node->saved_bytes;
        if (node->fwork_bytes > largest) largest = node->fwork_bytes;
        if (node->swork_bytes > largest) largest = node->swork_bytes;
        if (node->bwork_bytes > largest) largest = node->bwork_bytes;
    }
    return largest;
}

#endif
