// The user's side of programs that tl_write_plan_code writes for regions of rows: kernels as those of test_12_rows, whose
// values show which rows they found. A program prints for each network a hash of its calls in order, and one of its results.
// Included by programs that test_5_code_rows writes.
#ifndef TESTS_CODE_ROWS_PROGRAM_H
#define TESTS_CODE_ROWS_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RELATION_WHOLE, RELATION_SAME, RELATION_WINDOW, RELATION_UP };   // as in tl_strategy.h

typedef struct code_relation { int32_t kind, kernel, stride, padding, dilation; } code_relation;

typedef struct code_layer {
    int32_t        rows, width, fwork, input_count, inputs[3];
    code_relation  relations[3];
    const uint32_t *values;     // of an input
} code_layer;

typedef struct code_result { int32_t node; const unsigned char *at; } code_result;

typedef struct code_net {
    const char        *name;
    const code_layer  *layers;
    const code_result *results;
    int32_t            result_count;
    void             (*run)(void);
    uint32_t           calls;           // a hash of them
    int32_t            loaded[32];      // rows of each stream
} code_net;

typedef void *(*code_find)(const void *operand, int32_t row, int32_t row_bytes);

static uint32_t code_mixed(uint32_t hash, uint32_t value) { return (hash ^ value) * 2654435761u + 0x9E3779B9u; }

static void *code_find_plain(const void *operand, int32_t row, int32_t row_bytes) {
    return (unsigned char *)(uintptr_t)operand + row * row_bytes;
}

static void code_require(int holds, const code_net *net, const char *what) {
    if (holds) return;
    printf("%s: %s\n", net->name, what);
    exit(1);
}

static void code_note(code_net *net, int32_t node, int32_t first, int32_t count) {
    net->calls = code_mixed(code_mixed(code_mixed(net->calls, (uint32_t)node), (uint32_t)first), (uint32_t)count);
}

static int32_t code_row_under(const code_relation *r, int32_t row) {
    return r->kind == RELATION_UP ? row / r->stride : r->kind == RELATION_WINDOW ? row * r->stride - r->padding : r->kind == RELATION_SAME ? row : 0;
}

// An operand and how its rows are found.
typedef struct code_rows_of { const void *operand; code_find find; } code_rows_of;

static const uint32_t *code_row(const code_rows_of *x, int32_t row, int32_t width) {
    return (const uint32_t *)x->find(x->operand, row, 4 * width);
}

// Operands by rows begin with an address and the rows of a ring.
static int code_is_ring(const code_rows_of *x) {
    int32_t rows = 0;
    if (x->find != code_find_plain) memcpy(&rows, (const unsigned char *)x->operand + sizeof(void *), sizeof rows);
    return rows > 0;
}

static uint32_t code_value(const code_net *net, int32_t node, const code_rows_of *in, int32_t row, int32_t x) {
    const code_layer *l = &net->layers[node];
    uint32_t hash = code_mixed((uint32_t)node, (uint32_t)(row * l->width + x));
    int32_t k, j;
    for (k = 0; k < l->input_count; k++) {
        const code_relation *r = &l->relations[k];
        const code_layer *from = &net->layers[l->inputs[k]];
        int32_t at = code_row_under(r, row), rows = r->kind == RELATION_WHOLE ? from->rows : r->kind == RELATION_WINDOW ? r->kernel : 1;
        for (j = 0; j < rows; j++, at += r->kind == RELATION_WINDOW && r->dilation ? r->dilation : 1)
            if (at >= 0 && at < from->rows)
                hash = code_mixed(hash, code_row(&in[k], at, from->width)[x % from->width] + (uint32_t)j);
    }
    return hash;
}

// Whole calls may overwrite an input, of which later rows read more: then they read a copy.
static void code_rows(code_net *net, int32_t node, code_find find, const void *out, const void *const *operands, void *scratch,
                      int32_t first, int32_t count) {
    static uint32_t copies[3][1024];
    const code_layer *l = &net->layers[node];
    code_rows_of to, in[3];
    int32_t row, x, k;
    if (!count) count = l->rows;
    code_note(net, node, first, count);
    code_require(!scratch == !l->fwork, net, "scratch is missing, or there is some");
    if (scratch) memset(scratch, 0x5A, (size_t)((l->fwork * count + l->rows - 1) / l->rows));
    to.operand = out;
    to.find = find;
    for (k = 0; k < l->input_count; k++) {
        const code_layer *from = &net->layers[l->inputs[k]];
        in[k].operand = operands[k];
        in[k].find = find;
        if (code_is_ring(&to) || code_is_ring(&in[k]) || code_row(&in[k], 0, from->width) != code_row(&to, 0, l->width)) continue;
        memcpy(copies[k], code_row(&in[k], 0, from->width), (size_t)(4 * from->width * from->rows));
        in[k].operand = copies[k];
        in[k].find = code_find_plain;
    }
    for (row = first; row < first + count; row++)
        for (x = 0; x < l->width; x++) ((uint32_t *)find(out, row, 4 * l->width))[x] = code_value(net, node, in, row, x);
}

static void code_elements(code_net *net, int32_t node, void *out, const void *in, int32_t first, int32_t count) {
    const code_layer *l = &net->layers[node];
    int32_t i;
    if (!count) count = l->rows * l->width;
    code_note(net, node, first, count);
    for (i = 0; i < count; i++)
        ((uint32_t *)out)[i] = code_mixed(code_mixed((uint32_t)node, (uint32_t)(first + i)), ((const uint32_t *)in)[i]);
}

static void code_load_rows(code_net *net, int32_t node, code_find find, const void *out, int32_t first, int32_t count) {
    const code_layer *l = &net->layers[node];
    code_note(net, node, first, count);
    code_require(first == net->loaded[node], net, "rows of a stream are loaded in another order");
    for (net->loaded[node] += count; count > 0; first++, count--)
        memcpy(find(out, first, 4 * l->width), l->values + first * l->width, (size_t)(4 * l->width));
}

static void code_run(code_net *net) {
    uint32_t sum = 1;
    int32_t i, k;
    net->run();
    for (i = 0; i < net->result_count; i++) {
        const code_layer *l = &net->layers[net->results[i].node];
        for (k = 0; k < l->rows * l->width; k++) {
            uint32_t value;
            memcpy(&value, net->results[i].at + 4 * k, 4);
            sum = code_mixed(sum, value);
        }
    }
    printf("%s %08x %08x\n", net->name, (unsigned)net->calls, (unsigned)sum);
}

#endif
