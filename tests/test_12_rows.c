// [12] RUN: regions of rows, carried out in rings, against an interpreter that has all tensors whole.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"

// -- nets of nodes with rows --
//
// A tensor has rows of u32 values. A value is a hash of the node, its place, and the values in the same column of all rows
// that it reads, so it shows which rows a kernel found, and in which order.

enum { MOST_NODES = 24, MOST_INPUTS = 3, MOST_ROWS = 24, MOST_WIDTH = 4 };

typedef struct layer {
    int32_t     input_count, inputs[MOST_INPUTS];
    tl_relation relations[MOST_INPUTS];
    uint64_t    rows, width, unit;
    int32_t     is_input, is_stream, is_read, takes_blocks, dies;
    uint32_t    values[MOST_ROWS * MOST_WIDTH];     // of the interpreter
} layer;

typedef struct net {
    layer    layers[MOST_NODES];
    int32_t  count;
    uint64_t scratch_bytes;     // of each node
    tl_graph graph;
    // What kernels saw.
    long     calls, row_calls, slot_calls, streamed;
    uint64_t loaded[MOST_NODES];    // rows of each stream
} net;

static uint32_t mixed(uint32_t hash, uint32_t value) { return (hash ^ value) * 2654435761u + 0x9E3779B9u; }

static int64_t first_under(const tl_relation *r, uint64_t row) {
    if (r->kind == TL_RELATION_UP) return (int64_t)(row / (uint64_t)r->stride);
    if (r->kind == TL_RELATION_WINDOW) return (int64_t)row * r->stride - r->padding;
    return r->kind == TL_RELATION_SAME ? (int64_t)row : 0;
}

static int64_t rows_under(const tl_relation *r, uint64_t rows) {
    if (r->kind == TL_RELATION_WHOLE) return (int64_t)rows;
    return r->kind == TL_RELATION_WINDOW ? r->kernel : 1;
}

static int64_t step_under(const tl_relation *r) { return r->kind == TL_RELATION_WINDOW && r->dilation ? r->dilation : 1; }

static void interpret(net *n) {
    int32_t id, k;
    uint64_t row, x;
    for (id = 0; id < n->count; id++) {
        layer *l = &n->layers[id];
        for (row = 0; row < l->rows && !l->is_input; row++)
            for (x = 0; x < l->width; x++) {
                uint32_t hash = mixed((uint32_t)id, (uint32_t)(row * l->width + x));
                for (k = 0; k < l->input_count; k++) {
                    const layer *from = &n->layers[l->inputs[k]];
                    int64_t at = first_under(&l->relations[k], row), j;
                    for (j = 0; j < rows_under(&l->relations[k], from->rows); j++, at += step_under(&l->relations[k]))
                        if (at >= 0 && at < (int64_t)from->rows)
                            hash = mixed(hash, from->values[(uint64_t)at * from->width + x % from->width] + (uint32_t)j);
                }
                l->values[row * l->width + x] = hash;
            }
    }
}

// -- kernels --

static uint32_t *row_of(const tl_operand *operand, uint64_t row, uint64_t width) {
    return (uint32_t *)tl_find_row(operand, row, width * 4);
}

static uint32_t value_of(const tl_kernel_call *call, const net *n, uint64_t row, uint64_t x) {
    const layer *l = &n->layers[call->node];
    uint32_t hash = mixed((uint32_t)call->node, (uint32_t)(row * l->width + x));
    int32_t k;
    for (k = 0; k < l->input_count; k++) {
        const layer *from = &n->layers[l->inputs[k]];
        int64_t at = first_under(&l->relations[k], row), j;
        for (j = 0; j < rows_under(&l->relations[k], from->rows); j++, at += step_under(&l->relations[k]))
            if (at >= 0 && at < (int64_t)from->rows)
                hash = mixed(hash, row_of(&call->inputs[k], (uint64_t)at, from->width)[x % from->width] + (uint32_t)j);
    }
    return hash;
}

static void check_scratch(const tl_kernel_call *call, const net *n, uint64_t rows) {
    const layer *l = &n->layers[call->node];
    uint64_t bytes = call->graph->nodes[call->node].fwork_bytes;
    assert_int_equal(call->scratch.range.bytes, (bytes * rows + l->rows - 1) / l->rows);
    if (call->scratch.range.bytes) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
}

static tl_result compute_rows(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    const layer *l = &n->layers[call->node];
    uint64_t first = call->by_rows ? call->first : 0, count = call->by_rows ? call->count : l->rows, row, x;
    n->calls++;
    n->row_calls += call->by_rows;
    n->slot_calls += call->by_rows && call->outputs[0].shift > 0;
    if (call->by_rows) assert_int_equal(call->total, l->rows);
    assert_true(first % l->unit == 0 && (count % l->unit == 0 || first + count == l->rows));
    check_scratch(call, n, count);
    for (row = first; row < first + count; row++)
        for (x = 0; x < l->width; x++)
            row_of(&call->outputs[0], row, l->width)[x] = value_of(call, n, row, x);
    return TL_OK;
}

// Element by element: operands of as many elements hold those of the call alone.
static tl_result compute_elements(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    const layer *l = &n->layers[call->node];
    uint32_t *out = (uint32_t *)call->outputs[0].host;
    uint64_t at;
    int32_t k;
    n->calls++;
    assert_int_equal(call->by_rows, 0);
    assert_int_equal(call->total, l->rows * l->width);
    assert_int_equal(call->outputs[0].range.bytes, call->count * 4);
    for (at = 0; at < call->count; at++) {
        uint32_t hash = mixed((uint32_t)call->node, (uint32_t)(call->first + at));
        for (k = 0; k < l->input_count; k++) hash = mixed(hash, ((const uint32_t *)call->inputs[k].host)[at]);
        out[at] = hash;
    }
    return TL_OK;
}

static tl_result load_rows(const tl_kernel_call *call, void *user) {
    net *n = (net *)user;
    const layer *l = &n->layers[call->node];
    uint64_t row;
    n->calls++;
    n->streamed++;
    assert_int_equal(call->by_rows, 1);
    assert_int_equal(call->first, n->loaded[call->node]);       // in order, once
    n->loaded[call->node] += call->count;
    for (row = call->first; row < call->first + call->count; row++)
        memcpy(row_of(&call->outputs[0], row, l->width), &l->values[row * l->width], (size_t)l->width * 4);
    return TL_OK;
}

// -- random nets --

// A relation to an input of so many rows, and the rows that follow from it.
static tl_relation random_relation(tl_random *random, uint64_t rows, uint64_t *made) {
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
static int32_t random_source(const net *n, tl_random *random) {
    int32_t from = random_count(random, random_chance(random, 80) && n->count > 2 ? n->count - 2 : 0, n->count - 1);
    return n->layers[from].is_stream && n->layers[from].is_read ? n->count - 1 : from;
}

static int add_source(net *n, layer *l, int32_t from, tl_relation relation) {
    int32_t k;
    if (n->layers[from].is_stream && n->layers[from].is_read) return 0;
    for (k = 0; k < l->input_count; k++) if (l->inputs[k] == from) return 0;
    l->inputs[l->input_count] = from;
    l->relations[l->input_count++] = relation;
    n->layers[from].is_read = 1;
    return 1;
}

// One more input, by a relation that gives the same rows, else whole.
static void add_random_source(net *n, tl_random *random, layer *l) {
    int32_t from = random_source(n, random), tries;
    tl_relation relation;
    uint64_t made = 0;
    for (tries = 0; tries < 20 && made != l->rows; tries++) relation = random_relation(random, n->layers[from].rows, &made);
    if (made != l->rows) memset(&relation, 0, sizeof relation);
    (void)add_source(n, l, from, relation);
}

static void random_layer(net *n, tl_random *random) {
    layer *l = &n->layers[n->count];
    int32_t from = random_source(n, random), k;
    memset(l, 0, sizeof *l);
    l->width = random_chance(random, 75) ? n->layers[from].width : (uint64_t)random_count(random, 1, MOST_WIDTH);
    l->unit = 1;
    l->takes_blocks = random_chance(random, 15);
    if (l->takes_blocks) {
        tl_relation same;
        memset(&same, 0, sizeof same);
        same.kind = TL_RELATION_SAME;
        l->rows = n->layers[from].rows;
        l->width = n->layers[from].width;
        if (!add_source(n, l, from, same)) return;
    } else {
        tl_relation relation = random_relation(random, n->layers[from].rows, &l->rows);
        if (!add_source(n, l, from, relation)) return;
        for (k = random_chance(random, 60) ? 0 : random_count(random, 1, MOST_INPUTS - 1); k > 0; k--) add_random_source(n, random, l);
        if (l->rows % 2 == 0 && random_chance(random, 15)) l->unit = 2;
    }
    n->count++;
}

static void random_input(net *n, tl_random *random) {
    layer *l = &n->layers[n->count++];
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
static int32_t random_inplace(const net *n, tl_random *random, const layer *l) {
    int32_t k = random_count(random, 0, l->input_count - 1);
    const layer *from = &n->layers[l->inputs[k]];
    if (from->is_input || from->rows * from->width != l->rows * l->width || from->width != l->width || !random_chance(random, 90)) return 0;
    return l->relations[k].kind == TL_RELATION_SAME || l->relations[k].kind == TL_RELATION_WINDOW ? k + 1 : 0;
}

static void build_net(net *n, tl_random *random) {
    tl_env env = silent_env();
    int32_t id, k;
    tl_init_graph(&n->graph);
    for (id = 0; id < n->count; id++) {
        layer *l = &n->layers[id];
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
        if (tl_add_node(&env, &n->graph, &desc, NULL)) fail_msg("%s", env.error.text);
    }
}

static void random_net(net *n, uint64_t seed) {
    tl_random random = {seed};
    int32_t count, id;
    memset(n, 0, sizeof *n);
    for (count = random_count(&random, 1, 2); count > 0; count--) random_input(n, &random);
    count = random_count(&random, 2, MOST_NODES);
    for (id = 0; id < count && n->count < MOST_NODES; id++) random_layer(n, &random);
    if (n->layers[n->count - 1].is_input) {     // nothing could read: begin anew
        random_net(n, seed * 31 + 7);
        return;
    }
    interpret(n);
    build_net(n, &random);
}

// -- runs --

// Write the inputs that are resident, run, and compare what is whole with the interpreter.
static void run_net(net *n, tl_env *env, tl_run *run, const tl_rows_plan *rows) {
    int32_t id;
    static uint32_t values[MOST_ROWS * MOST_WIDTH];
    for (id = 0; id < n->count; id++) {
        layer *l = &n->layers[id];
        tl_tensor tensor = {id, 0};
        int is_inside = rows->first_members[rows->nodes[id]] < rows->first_members[rows->nodes[id] + 1];
        n->loaded[id] = 0;
        if (l->is_input && !is_inside && tl_write_tensor(run, tensor, l->values, (size_t)(l->rows * l->width * 4))) fail_msg("%s", env->error.text);
        if (l->is_input && is_inside) assert_int_equal(tl_write_tensor(run, tensor, l->values, (size_t)(l->rows * l->width * 4)), TL_ERROR_NOT_FOUND);
    }
    if (tl_run_plan(run)) fail_msg("%s", env->error.text);
    for (id = 0; id < n->count; id++) {
        layer *l = &n->layers[id];
        tl_tensor tensor = {id, 0};
        if (!n->graph.nodes[id].keep) continue;
        if (tl_read_tensor(run, tensor, values, (size_t)(l->rows * l->width * 4))) fail_msg("%s", env->error.text);
        if (memcmp(values, l->values, (size_t)(l->rows * l->width * 4))) fail_msg("node %d differs from the interpreter", (int)id);
    }
}

static void check_run(net *n, uint64_t seed) {
    tl_env env = silent_env();
    tl_random random = {seed};
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_rows_desc ask;
    tl_rows_plan rows;
    tl_run_desc desc;
    tl_run_report report;
    tl_kernel kernels[3];
    tl_run *run;
    int32_t pass;
    memset(&cpu, 0, sizeof cpu);
    memset(&ask, 0, sizeof ask);
    memset(&desc, 0, sizeof desc);
    memset(kernels, 0, sizeof kernels);
    cpu.checked = random_chance(&random, 50);
    cpu.alignment_bytes = UINT64_C(4) << random_count(&random, 0, 4);
    cpu.deferred = random_chance(&random, 50);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail_msg("%s", env.error.text);
    ask.graph = &n->graph;
    ask.alignment_bytes = cpu.alignment_bytes;
    if (tl_plan_rows(&env, &ask, &rows)) fail_msg("%s", env.error.text);
    if (random_chance(&random, 50)) {       // with room for larger calls
        ask.budget_bytes = rows.peak_bytes + tl_next_random_below(&random, rows.whole_bytes + 1);
        tl_free_rows_plan(&env, &rows);
        if (tl_plan_rows(&env, &ask, &rows)) fail_msg("%s", env.error.text);
        assert_true(rows.peak_bytes <= ask.budget_bytes);
    }
    kernels[0].op = "rows_op"; kernels[0].forward = compute_rows; kernels[0].user = n;
    kernels[1].op = "elements"; kernels[1].forward = compute_elements; kernels[1].user = n;
    kernels[2].op = "input"; kernels[2].forward = load_rows; kernels[2].user = n;
    desc.graph = &n->graph;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 3;
    desc.inference = 1;
    desc.rows = &rows;
    if (tl_init_run(&env, &desc, &run)) fail_msg("seed %llu: %s", (unsigned long long)seed, env.error.text);
    for (pass = 0; pass < 2; pass++) {
        n->calls = 0;
        run_net(n, &env, run, &rows);
        assert_int_equal(n->calls, rows.call_count);
    }
    tl_measure_run(run, &report);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    tl_free_run(run);
    tl_free_rows_plan(&env, &rows);
    tl_free_cpu_backend(&env, &backend);
}

static void rows_in_rings_give_the_bits_of_whole_tensors(void **state) {
    int32_t count = scaled(3000), i;
    long row_calls = 0, slot_calls = 0, streamed = 0;
    static net n;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        random_net(&n, (uint64_t)i + 1);
        check_run(&n, (uint64_t)i + 1);
        row_calls += n.row_calls;
        slot_calls += n.slot_calls;
        streamed += n.streamed;
        tl_free_graph(&env, &n.graph);
    }
    print_message("%d nets: %ld calls for rows, %ld of them in slots or of one row, %ld loaded\n", (int)count, row_calls, slot_calls, streamed);
    assert_true(row_calls > 10L * count && slot_calls > 0 && streamed > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_rings_give_the_bits_of_whole_tensors),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
