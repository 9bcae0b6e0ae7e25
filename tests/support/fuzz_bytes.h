// What the fuzz targets share: a condition that ends the run, and the reader of bytes as numbers and nodes. Include after
// the implementation.
#ifndef TESTS_FUZZ_BYTES_H
#define TESTS_FUZZ_BYTES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(x) do { if (!(x)) { fprintf(stderr, "line %d: %s\n", __LINE__, #x); abort(); } } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct reader { const uint8_t *at, *end; } reader;

// 0 after the last one.
static inline uint32_t next_byte(reader *r) { return r->at < r->end ? *r->at++ : 0; }

// Mostly small; now and then anything up to 2^63.
static inline uint64_t next_amount(reader *r) {
    uint32_t byte = next_byte(r);
    return byte < 224 ? byte : (uint64_t)(1 + next_byte(r)) << (byte - 224) * 2;
}

// Up to three inputs from the nodes before, none where op is "input", and up to three outputs; desc points at both.
static inline void next_tensors(reader *r, const tl_graph *graph, uint32_t shape, tl_node_desc *desc, tl_tensor *inputs,
                                uint64_t *bytes) {
    int32_t k;
    desc->input_count = desc->op && !strcmp(desc->op, "input") ? 0 : (int32_t)(shape % 4);
    desc->output_count = 1 + (int32_t)(shape / 4 % 8 > 5 ? shape / 4 % 8 - 5 : 0);
    desc->inputs = inputs;
    desc->output_bytes = bytes;
    for (k = 0; k < desc->input_count; k++) {
        uint32_t back = next_byte(r);
        inputs[k].node = graph->node_count - 1 - (int32_t)(back % 16 % (uint32_t)graph->node_count);
        inputs[k].output = (int32_t)(back / 16) % graph->nodes[inputs[k].node].output_count;
    }
    for (k = 0; k < desc->output_count; k++) bytes[k] = next_amount(r);
}

#endif
