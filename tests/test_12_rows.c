// [12] RUN: regions of rows, carried out in rings, against an interpreter that has all tensors whole.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/row_nets.h"

// What kernels saw.
typedef struct spy {
    const row_net *net;
    long     calls, row_calls, slots, streamed;     // slots: members that take them
    uint64_t loaded[MOST_NODES];                    // rows of each stream
} spy;

// -- kernels --

static uint32_t *row_of(const tl_operand *operand, uint64_t row, uint64_t width) {
    return (uint32_t *)tl_find_row(operand, row, width * 4);
}

static uint32_t value_of(const tl_kernel_call *call, const row_net *n, uint64_t row, uint64_t x) {
    const row_layer *l = &n->layers[call->node];
    uint32_t hash = mixed((uint32_t)call->node, (uint32_t)(row * l->width + x));
    int32_t k;
    for (k = 0; k < l->input_count; k++) {
        const row_layer *from = &n->layers[l->inputs[k]];
        int64_t at = first_under(&l->relations[k], row), j;
        for (j = 0; j < rows_under(&l->relations[k], from->rows); j++, at += step_under(&l->relations[k]))
            if (at >= 0 && at < (int64_t)from->rows)
                hash = mixed(hash, row_of(&call->inputs[k], (uint64_t)at, from->width)[x % from->width] + (uint32_t)j);
    }
    return hash;
}

static void check_scratch(const tl_kernel_call *call, const row_net *n, uint64_t rows) {
    const row_layer *l = &n->layers[call->node];
    uint64_t bytes = call->graph->nodes[call->node].fwork_bytes;
    assert_int_equal(call->scratch.range.bytes, (bytes * rows + l->rows - 1) / l->rows);
    if (call->scratch.range.bytes) memset(call->scratch.host, 0x5A, (size_t)call->scratch.range.bytes);
}

// The call with a copy of the input that a whole call overwrites, of which later rows read more.
static tl_kernel_call copy_overwritten(const tl_kernel_call *call, tl_operand *operands) {
    static uint32_t values[MOST_ROWS * MOST_WIDTH];
    const tl_node *node = &call->graph->nodes[call->node];
    tl_kernel_call copied = *call;
    memcpy(operands, call->inputs, (size_t)node->input_count * sizeof *operands);
    memcpy(values, operands[node->inplace].host, (size_t)operands[node->inplace].range.bytes);
    operands[node->inplace].host = values;
    copied.inputs = operands;
    return copied;
}

static tl_result compute_rows(const tl_kernel_call *call, void *user) {
    tl_operand operands[MOST_INPUTS];
    tl_kernel_call copied = *call;
    spy *s = (spy *)user;
    const row_net *n = s->net;
    const row_layer *l = &n->layers[call->node];
    uint64_t first = call->by_rows ? call->first : 0, count = call->by_rows ? call->count : l->rows, row, x;
    s->calls++;
    s->row_calls += call->by_rows;
    if (call->by_rows) assert_int_equal(call->total, l->rows);
    assert_true(first % l->unit == 0 && (count % l->unit == 0 || first + count == l->rows));
    check_scratch(call, n, count);
    if (!call->by_rows && call->kind == TL_STEP_FORWARD_INPLACE) copied = copy_overwritten(call, operands);
    for (row = first; row < first + count; row++)
        for (x = 0; x < l->width; x++)
            row_of(&call->outputs[0], row, l->width)[x] = value_of(&copied, n, row, x);
    return TL_OK;
}

// Element by element: operands of as many elements hold those of the call alone.
static tl_result compute_elements(const tl_kernel_call *call, void *user) {
    spy *s = (spy *)user;
    const row_net *n = s->net;
    const row_layer *l = &n->layers[call->node];
    uint32_t *out = (uint32_t *)call->outputs[0].host;
    uint64_t at;
    int32_t k;
    s->calls++;
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
    spy *s = (spy *)user;
    const row_net *n = s->net;
    const row_layer *l = &n->layers[call->node];
    uint64_t row;
    s->calls++;
    s->streamed++;
    assert_int_equal(call->by_rows, 1);
    assert_int_equal(call->first, s->loaded[call->node]);       // in order, once
    s->loaded[call->node] += call->count;
    for (row = call->first; row < call->first + call->count; row++)
        memcpy(row_of(&call->outputs[0], row, l->width), &l->values[row * l->width], (size_t)l->width * 4);
    return TL_OK;
}

// -- runs --

// Write the inputs that are resident, run, and compare what is whole with the interpreter.
static void run_net(spy *s, tl_env *env, tl_run *run, const tl_rows_plan *rows) {
    const row_net *n = s->net;
    int32_t id;
    static uint32_t values[MOST_ROWS * MOST_WIDTH];
    for (id = 0; id < n->count; id++) {
        const row_layer *l = &n->layers[id];
        tl_tensor tensor = {id, 0};
        int is_inside = rows->first_members[rows->nodes[id]] < rows->first_members[rows->nodes[id] + 1];
        s->loaded[id] = 0;
        if (l->is_input && !is_inside && tl_write_tensor(run, tensor, l->values, (size_t)(l->rows * l->width * 4))) fail_msg("%s", env->error.text);
        if (l->is_input && is_inside) assert_int_equal(tl_write_tensor(run, tensor, l->values, (size_t)(l->rows * l->width * 4)), TL_ERROR_NOT_FOUND);
    }
    if (tl_run_plan(run)) fail_msg("%s", env->error.text);
    for (id = 0; id < n->count; id++) {
        const row_layer *l = &n->layers[id];
        tl_tensor tensor = {id, 0};
        if (!n->graph.nodes[id].keep) continue;
        if (tl_read_tensor(run, tensor, values, (size_t)(l->rows * l->width * 4))) fail_msg("%s", env->error.text);
        if (memcmp(values, l->values, (size_t)(l->rows * l->width * 4))) fail_msg("node %d differs from the interpreter", (int)id);
    }
}

static void check_run(spy *s, uint64_t seed) {
    tl_env env = silent_env();
    const row_net *n = s->net;
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
    if (random_chance(&random, 50)) ask.in_slots = n->in_slots;
    if (random_chance(&random, 20)) ask.work_limit = 1 + tl_next_random_below(&random, 2000);
    if (tl_plan_rows(&env, &ask, &rows)) fail_msg("%s", env.error.text);
    if (random_chance(&random, 50)) {       // with room for larger calls
        ask.budget_bytes = rows.peak_bytes + tl_next_random_below(&random, rows.whole_bytes + 1);
        tl_free_rows_plan(&env, &rows);
        if (tl_plan_rows(&env, &ask, &rows)) fail_msg("%s", env.error.text);
        assert_true(rows.peak_bytes <= ask.budget_bytes);
    }
    kernels[0].op = "rows_op"; kernels[0].forward = compute_rows; kernels[0].user = s;
    kernels[1].op = "elements"; kernels[1].forward = compute_elements; kernels[1].user = s;
    kernels[2].op = "input"; kernels[2].forward = load_rows; kernels[2].user = s;
    desc.graph = &n->graph;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 3;
    desc.inference = 1;
    desc.rows = &rows;
    if (tl_init_run(&env, &desc, &run)) fail_msg("seed %llu: %s", (unsigned long long)seed, env.error.text);
    for (pass = 0; pass < 2; pass++) {
        s->calls = 0;
        run_net(s, &env, run, &rows);
        assert_int_equal(s->calls, rows.call_count);
    }
    tl_measure_run(run, &report);
    assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    tl_free_run(run);
    for (pass = 0; pass < rows.member_count; pass++) s->slots += rows.members[pass].takes_slots > 0;
    tl_free_rows_plan(&env, &rows);
    tl_free_cpu_backend(&env, &backend);
}

static void rows_in_rings_give_the_bits_of_whole_tensors(void **state) {
    int32_t count = scaled(3000), i;
    long row_calls = 0, slot_calls = 0, streamed = 0;
    static row_net n;
    static spy s;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        random_row_net(&n, (uint64_t)i + 1, MOST_NODES);
        memset(&s, 0, sizeof s);
        s.net = &n;
        check_run(&s, (uint64_t)i + 1);
        row_calls += s.row_calls;
        slot_calls += s.slots;
        streamed += s.streamed;
        tl_free_graph(&env, &n.graph);
    }
    print_message("%d nets: %ld calls for rows, %ld members in slots, %ld loaded\n", (int)count, row_calls, slot_calls, streamed);
    assert_true(row_calls > 10L * count && slot_calls > 0 && streamed > 0);
}

// -- refusals --

// A run of a net's graph with these rows.
static tl_result try_run(tl_env *env, tl_backend *backend, const row_net *n, const tl_rows_plan *rows, int training, tl_fusion_plan *fusion) {
    spy s;
    tl_kernel kernels[3];
    tl_run_desc desc;
    tl_run *run = NULL;
    tl_result result;
    memset(&s, 0, sizeof s);
    memset(&desc, 0, sizeof desc);
    memset(kernels, 0, sizeof kernels);
    kernels[0].op = "rows_op"; kernels[0].forward = compute_rows; kernels[0].user = &s;
    kernels[1].op = "elements"; kernels[1].forward = compute_elements; kernels[1].user = &s;
    kernels[2].op = "input"; kernels[2].forward = load_rows; kernels[2].user = &s;
    desc.graph = &n->graph;
    desc.backend = backend;
    desc.kernels = kernels;
    desc.kernel_count = 3;
    desc.inference = !training;
    desc.rows = rows;
    desc.fusion = fusion;
    result = tl_init_run(env, &desc, &run);
    tl_free_run(run);
    return result;
}

// A net with a region of at least four members.
static void plan_net(row_net *n, tl_rows_plan *rows, uint64_t alignment) {
    tl_env env = silent_env();
    tl_rows_desc ask;
    uint64_t seed;
    memset(&ask, 0, sizeof ask);
    memset(rows, 0, sizeof *rows);
    for (seed = 1; rows->member_count < 4; seed++) {
        tl_free_rows_plan(&env, rows);
        if (seed > 1) tl_free_graph(&env, &n->graph);
        random_row_net(n, seed, MOST_NODES);
        ask.graph = &n->graph;
        ask.alignment_bytes = alignment;
        assert_int_equal(tl_plan_rows(&env, &ask, rows), TL_OK);
    }
}

static void plans_of_rows_that_are_damaged_are_refused(void **state) {
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_rows_plan rows;
    tl_row_member *members;
    tl_row_link *links;
    static row_net n;
    int32_t k, at;
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    plan_net(&n, &rows, 64);
    members = (tl_row_member *)(uintptr_t)rows.members;
    links = (tl_row_link *)(uintptr_t)rows.links;
    assert_int_equal(try_run(&env, &backend, &n, &rows, 0, NULL), TL_OK);
    for (at = 0; at < rows.member_count; at++)
        for (k = 0; k < 9; k++) {
            tl_row_member kept = members[at];
            if (k == 0) members[at].node = n.count;
            if (k == 1) members[at].rows++;
            if (k == 2) members[at].block_rows = 0;
            if (k == 3) members[at].row_bytes += 4;
            if (k == 4) members[at].ring_rows = UINT64_MAX / 2;
            if (k == 5) members[at].ring_offset += 32;
            if (k == 6) members[at].shares = at;
            if (k == 7) members[at].takes_slots = MOST_INPUTS + 1;
            if (k == 8) members[at].first_link++;
            assert_int_equal(try_run(&env, &backend, &n, &rows, 0, NULL), TL_ERROR_INVALID_ARG);
            members[at] = kept;
        }
    for (at = 0; at < rows.member_count; at++)
        for (k = 0; k < n.layers[members[at].node].input_count; k++) {
            tl_row_link *link = &links[members[at].first_link + k], kept = *link;
            link->member = at;
            assert_int_equal(try_run(&env, &backend, &n, &rows, 0, NULL), TL_ERROR_INVALID_ARG);
            link->member = kept.member < 0 ? 0 : -1;
            assert_int_equal(try_run(&env, &backend, &n, &rows, 0, NULL), TL_ERROR_INVALID_ARG);
            *link = kept;
            link->relation.kind = TL_RELATION_COUNT;
            assert_int_equal(try_run(&env, &backend, &n, &rows, 0, NULL), TL_ERROR_INVALID_ARG);
            *link = kept;
        }
    assert_int_equal(try_run(&env, &backend, &n, &rows, 0, NULL), TL_OK);
    tl_free_rows_plan(&env, &rows);
    tl_free_graph(&env, &n.graph);
    tl_free_cpu_backend(&env, &backend);
}

static void rows_refuse_what_they_do_not_go_with(void **state) {
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_rows_plan rows;
    tl_fusion_desc ask;
    tl_fusion_plan fusion;
    static row_net n;
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    memset(&ask, 0, sizeof ask);
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    plan_net(&n, &rows, 64);
    assert_int_equal(try_run(&env, &backend, &n, &rows, 1, NULL), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "rows: are of an inference"));
    ask.graph = &n.graph;
    ask.inference = 1;
    assert_int_equal(tl_plan_fusion(&env, &ask, &fusion), TL_OK);
    assert_int_equal(try_run(&env, &backend, &n, &rows, 0, &fusion), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "rows: go without fusion"));
    tl_free_fusion_plan(&env, &fusion);
    tl_free_rows_plan(&env, &rows);
    tl_free_graph(&env, &n.graph);
    tl_free_cpu_backend(&env, &backend);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_rings_give_the_bits_of_whole_tensors),
        cmocka_unit_test(plans_of_rows_that_are_damaged_are_refused),
        cmocka_unit_test(rows_refuse_what_they_do_not_go_with),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
