// Random nets of nodes with rows, streams and elements among them, and what their tensors hold: a value is a hash of the
// node, its place, and the values in the same column of all rows that it reads. So it shows which rows a kernel found.
// Include after the header.
#ifndef TESTS_ROW_NETS_H
#define TESTS_ROW_NETS_H

#include "random_graph.h"
#include "support.h"

enum { MOST_NODES = 24, MOST_INPUTS = 3, MOST_ROWS = 24, MOST_WIDTH = 4 };

typedef struct row_layer {
    int32_t     input_count, inputs[MOST_INPUTS];
    tl_relation relations[MOST_INPUTS];
    uint64_t    rows, width, unit;
    int32_t     is_input, is_stream, is_read, takes_blocks, dies;
    uint32_t    values[MOST_ROWS * MOST_WIDTH];     // of the interpreter
} row_layer;

typedef struct row_net {
    row_layer layers[MOST_NODES];
    int32_t  count;
    tl_graph graph;
    int32_t  is_narrow;         // it alternates windows that keep the rows with nodes that read 1:1
    uint8_t  in_slots[MOST_NODES];  // whether a row fits where that of the first input with windows was
} row_net;

static inline uint32_t mixed(uint32_t hash, uint32_t value) { return (hash ^ value) * 2654435761u + 0x9E3779B9u; }

static inline int64_t first_under(const tl_relation *r, uint64_t row) {
    if (r->kind == TL_RELATION_UP) return (int64_t)(row / (uint64_t)r->stride);
    if (r->kind == TL_RELATION_WINDOW) return (int64_t)row * r->stride - r->padding;
    return r->kind == TL_RELATION_SAME ? (int64_t)row : 0;
}

static inline int64_t rows_under(const tl_relation *r, uint64_t rows) {
    if (r->kind == TL_RELATION_WHOLE) return (int64_t)rows;
    return r->kind == TL_RELATION_WINDOW ? r->kernel : 1;
}

static inline int64_t step_under(const tl_relation *r) { return r->kind == TL_RELATION_WINDOW && r->dilation ? r->dilation : 1; }

static inline void interpret(row_net *n) {
    int32_t id, k;
    uint64_t row, x;
    for (id = 0; id < n->count; id++) {
        row_layer *l = &n->layers[id];
        for (row = 0; row < l->rows && !l->is_input; row++)
            for (x = 0; x < l->width; x++) {
                uint32_t hash = mixed((uint32_t)id, (uint32_t)(row * l->width + x));
                for (k = 0; k < l->input_count; k++) {
                    const row_layer *from = &n->layers[l->inputs[k]];
                    int64_t at = first_under(&l->relations[k], row), j;
                    for (j = 0; j < rows_under(&l->relations[k], from->rows); j++, at += step_under(&l->relations[k]))
                        if (at >= 0 && at < (int64_t)from->rows)
                            hash = mixed(hash, from->values[(uint64_t)at * from->width + x % from->width] + (uint32_t)j);
                }
                l->values[row * l->width + x] = hash;
            }
    }
}

// -- random nets --

// A relation to an input of so many rows, and the rows that follow from it.
static inline tl_relation random_relation(tl_random *random, uint64_t rows, uint64_t *made) {
    tl_relation r;
    memset(&r, 0, sizeof r);
    r.kind = TL_RELATION_SAME;
    *made = rows;
    if (random_chance(random, 15) && 2 * rows <= MOST_ROWS) {
        r.kind = TL_RELATION_UP;
        r.stride = 2;
        *made = 2 * rows - (uint64_t)random_count(random, 0, 1);
    } else if (random_chance(random, 60)) {
        int64_t reach, last;
        r.kind = TL_RELATION_WINDOW;
        r.kernel = random_count(random, 1, 4);
        r.stride = random_chance(random, 70) ? 1 : random_count(random, 1, 3);
        r.dilation = random_count(random, 1, 2);
        reach = (int64_t)r.dilation * (r.kernel - 1);
        r.padding = random_count(random, 0, (int)reach);
        last = (int64_t)rows - 1 + r.padding - (random_chance(random, 70) && (int64_t)rows > reach - r.padding ? reach - r.padding : 0);
        if (last < 0) last = 0;
        *made = (uint64_t)(last / r.stride) + 1;
        if (*made > MOST_ROWS) *made = MOST_ROWS;
    }
    return r;
}

// A layer that may still be read: a stream has one reader.
static inline int32_t random_source(const row_net *n, tl_random *random) {
    int32_t from = random_count(random, random_chance(random, 80) && n->count > 2 ? n->count - 2 : 0, n->count - 1);
    return n->layers[from].is_stream && n->layers[from].is_read ? n->count - 1 : from;
}

static inline int add_source(row_net *n, row_layer *l, int32_t from, tl_relation relation) {
    int32_t k;
    if (n->layers[from].is_stream && n->layers[from].is_read) return 0;
    for (k = 0; k < l->input_count; k++) if (l->inputs[k] == from) return 0;
    l->inputs[l->input_count] = from;
    l->relations[l->input_count++] = relation;
    n->layers[from].is_read = 1;
    return 1;
}

// One more input, by a relation that gives the same rows, else whole.
static inline void add_random_source(row_net *n, tl_random *random, row_layer *l) {
    int32_t from = random_source(n, random), tries;
    tl_relation relation;
    uint64_t made = 0;
    for (tries = 0; tries < 20 && made != l->rows; tries++) relation = random_relation(random, n->layers[from].rows, &made);
    if (made != l->rows) memset(&relation, 0, sizeof relation);
    (void)add_source(n, l, from, relation);
}

// Windows that keep rows and width, or 1:1.
static inline tl_relation narrow_relation(const row_net *n, tl_random *random, int32_t from, row_layer *l) {
    tl_relation relation;
    memset(&relation, 0, sizeof relation);
    l->rows = n->layers[from].rows;
    relation.kind = n->count % 2 ? TL_RELATION_WINDOW : TL_RELATION_SAME;
    if (relation.kind == TL_RELATION_SAME) return relation;
    relation.kernel = random_chance(random, 70) ? 3 : 5;
    relation.stride = relation.dilation = 1;
    relation.padding = relation.kernel / 2;
    l->width = n->layers[from].width;
    return relation;
}

static inline void random_layer(row_net *n, tl_random *random) {
    row_layer *l = &n->layers[n->count];
    int32_t from = random_source(n, random), k;
    memset(l, 0, sizeof *l);
    l->width = random_chance(random, 75) ? n->layers[from].width : (uint64_t)random_count(random, 1, MOST_WIDTH);
    l->unit = 1;
    l->takes_blocks = random_chance(random, 15);
    if (n->is_narrow && !n->layers[n->count - 1].is_stream) from = n->count - 1;
    if (l->takes_blocks) {
        tl_relation same;
        memset(&same, 0, sizeof same);
        same.kind = TL_RELATION_SAME;
        l->rows = n->layers[from].rows;
        l->width = n->layers[from].width;
        if (!add_source(n, l, from, same)) return;
    } else {
        tl_relation relation = random_relation(random, n->layers[from].rows, &l->rows);
        if (n->is_narrow) relation = narrow_relation(n, random, from, l);
        if (!add_source(n, l, from, relation)) return;
        for (k = random_chance(random, 60) ? 0 : random_count(random, 1, MOST_INPUTS - 1); k > 0; k--) add_random_source(n, random, l);
        if (l->rows % 2 == 0 && random_chance(random, 15)) l->unit = 2;
    }
    n->count++;
}

static inline void random_input(row_net *n, tl_random *random) {
    row_layer *l = &n->layers[n->count++];
    uint64_t k;
    memset(l, 0, sizeof *l);
    l->is_input = 1;
    l->is_stream = random_chance(random, 50);
    l->dies = random_chance(random, 50);
    l->rows = (uint64_t)random_count(random, 1, MOST_ROWS);
    l->width = (uint64_t)random_count(random, 1, MOST_WIDTH);
    l->unit = 1;
    for (k = 0; k < l->rows * l->width; k++) l->values[k] = (uint32_t)tl_next_random(random);
}

// The input that a layer may overwrite, + 1.
static inline int32_t random_inplace(const row_net *n, tl_random *random, const row_layer *l) {
    int32_t k = random_count(random, 0, l->input_count - 1);
    const row_layer *from = &n->layers[l->inputs[k]];
    if (from->is_input || from->rows * from->width != l->rows * l->width || from->width != l->width || !random_chance(random, 90)) return 0;
    return l->relations[k].kind == TL_RELATION_SAME || l->relations[k].kind == TL_RELATION_WINDOW ? k + 1 : 0;
}

static inline void build_net(row_net *n, tl_random *random) {
    tl_env env = silent_env();
    int32_t id, k;
    tl_init_graph(&n->graph);
    for (id = 0; id < n->count; id++) {
        row_layer *l = &n->layers[id];
        tl_tensor inputs[MOST_INPUTS];
        uint64_t bytes = l->rows * l->width * 4;
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        for (k = 0; k < l->input_count; k++) { inputs[k].node = l->inputs[k]; inputs[k].output = 0; }
        desc.op = l->is_input ? "input" : l->takes_blocks ? "elements" : "rows_op";
        desc.inputs = inputs;
        desc.input_count = l->input_count;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        desc.fixed = 1;
        desc.takes_blocks = l->takes_blocks;
        desc.no_grad = !l->is_input;
        desc.dies = l->dies;
        if (!l->takes_blocks || random_chance(random, 50)) {
            desc.rows = l->rows;
            desc.row_unit = l->unit;
            desc.relations = l->relations;
            desc.stream = l->is_stream;
        }
        if (!l->is_input) {
            desc.fwd_cost = 100;
            desc.fwork_bytes = random_chance(random, 30) ? (uint64_t)random_count(random, 1, 40) : 0;
            desc.inplace = random_inplace(n, random, l);
            desc.keep = !l->is_read || random_chance(random, 5);
        }
        for (k = 0; k < l->input_count && l->relations[k].kind != TL_RELATION_WINDOW; k++) {}
        n->in_slots[id] = k < l->input_count && l->width <= n->layers[l->inputs[k]].width;
        if (tl_add_node(&env, &n->graph, &desc, NULL)) fail_msg("%s", env.error.text);
    }
}

static inline void random_row_net(row_net *n, uint64_t seed, int32_t most) {
    tl_random random = {seed};
    int32_t count, id;
    memset(n, 0, sizeof *n);
    n->is_narrow = random_chance(&random, 30);
    for (count = random_count(&random, 1, 2); count > 0; count--) random_input(n, &random);
    count = random_count(&random, 2, most);
    for (id = 0; id < count && n->count < most; id++) random_layer(n, &random);
    if (n->layers[n->count - 1].is_input) {     // nothing could read: begin anew
        random_row_net(n, seed * 31 + 7, most);
        return;
    }
    interpret(n);
    build_net(n, &random);
}

#endif
