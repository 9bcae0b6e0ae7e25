// What runs of any graph are given: a kernel for each op, and bytes for the inputs. Include after cmocka.h and tl_strategy.h.
#ifndef TESTS_RUN_INPUTS_H
#define TESTS_RUN_INPUTS_H

#include <stdint.h>
#include <string.h>

// One kernel an op, all with the same functions. kernels: room for one a node. Returns how many.
static inline int32_t list_kernels(const tl_graph *graph, tl_kernel_fn forward, tl_kernel_fn backward, void *user,
                                   tl_kernel *kernels) {
    int32_t id, count = 0;
    for (id = 0; id < graph->node_count; id++) {
        int32_t k = 0;
        if (graph->nodes[id].is_input && !graph->nodes[id].has_grad && graph->nodes[id].state != TL_STATE_PIECES)
            continue;     // of a state there is an update
        while (k < count && strcmp(kernels[k].op, tl_name_op(graph, id))) k++;
        if (k < count) continue;
        kernels[count].op = tl_name_op(graph, id);
        kernels[count].forward = graph->nodes[id].is_input ? NULL : forward;
        kernels[count].backward = backward;
        kernels[count++].user = user;
    }
    return count;
}

// Write bytes that differ by micro-batch and tensor into all inputs, or into all states.
static inline tl_result write_resident(tl_run *run, const tl_graph *graph, int32_t micro_batch, int of_states) {
    unsigned char bytes[1024];
    int32_t i;
    uint64_t k;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        tl_tensor tensor;
        if (!graph->nodes[output->node].is_input || (graph->nodes[output->node].state != TL_STATE_NONE) != of_states) continue;
        assert_true(output->bytes <= sizeof bytes);
        for (k = 0; k < output->bytes; k++) bytes[k] = (unsigned char)tl_mix_u64((uint64_t)micro_batch * 1000 + (uint64_t)i, k);
        tensor.node = output->node;
        tensor.output = output->output;
        if (tl_write_tensor(run, tensor, bytes, output->bytes)) return TL_ERROR_IO;
    }
    return TL_OK;
}

static inline tl_result write_inputs(tl_run *run, const tl_graph *graph, int32_t micro_batch) {
    return write_resident(run, graph, micro_batch, 0);
}

// Before the first pass: what the states begin with.
static inline tl_result write_states(tl_run *run, const tl_graph *graph) { return write_resident(run, graph, 0, 1); }

#endif
