// [12] RUN on Vulkan of states that are trained in pieces, by the kernels of examples/vk_nn.h: a block of a transformer, whole,
// in pieces of every size and within budgets. Weights and moments are the same to the bit, and a run takes what was planned.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "support/vk_support.h"
#include "support/vk_shared.h"

#include "nn.h"
#include "vk_nn.h"

// So many tokens that a GPU takes tiles for the gradients of weights; rows of the head have 44 bytes.
enum { B = 4, T = 17, C = 64, V = 11, HIDDEN = 2 * C, ROWS = B * T, STEPS = 3, HEADS = C / VK_NN_HEAD };

// -- kernels: those of vk_nn.h, counted --

typedef enum fault { NO_FAULT, IGNORES_FIRST, UPDATES_AS_FIRST } fault;

typedef struct bed {
    vk_nn_net net;          // first: what the kernels of vk_nn.h get
    fault     fault;
    int       pieces, updates, whole_updates;   // calls for pieces: backwards, updates; updates of whole states
    tl_env    env;
    tl_run   *run;
    tl_run_desc desc;
    tl_run_figures figures;
} bed;

// A call in which a kernel with the fault takes some rows for the first ones.
static tl_kernel_call forget_rows(const tl_kernel_call *call, int forgets) {
    tl_kernel_call other = *call;
    if (forgets) other.first = 0;
    return other;
}

static int is_piece(const tl_kernel_call *call) {
    int32_t last = call->graph->nodes[call->node].input_count - 1;
    uint64_t bytes = call->input_grads[last].range.bytes;
    return bytes && bytes < call->graph->outputs[call->graph->inputs[call->graph->nodes[call->node].first_input + last].tensor].bytes;
}

static tl_result call_backward(tl_kernel_fn kernel, const tl_kernel_call *call, void *user) {
    bed *b = (bed *)user;
    tl_kernel_call now = forget_rows(call, b->fault == IGNORES_FIRST && is_piece(call));
    b->pieces += is_piece(call);
    return kernel(&now, user);
}

static tl_result run_linear_backward(const tl_kernel_call *call, void *user) {
    return call_backward(vk_nn_run_linear_backward, call, user);
}

static tl_result run_embed_backward(const tl_kernel_call *call, void *user) {
    return call_backward(vk_nn_run_embed_backward, call, user);
}

static tl_result run_update(const tl_kernel_call *call, void *user) {
    bed *b = (bed *)user;
    tl_kernel_call now = forget_rows(call, b->fault == UPDATES_AS_FIRST);
    if (call->output_grads[0].range.bytes < call->graph->outputs[call->graph->nodes[call->node].first_output].bytes) b->updates++;
    else b->whole_updates++;
    return vk_nn_run_adamw_update(&now, user);
}

// -- the net as operations --

typedef enum kind { INPUT, STATE, EMBED, NORM, LINEAR, ATTENTION, GELU, ADD, LOSS } kind;

typedef struct row {
    kind     kind;
    uint32_t width;                 // of the output; in floats a token
    int32_t  from, from2;           // what it reads, beside the state above it
    uint32_t rows, row;             // of a state: so many rows of so many floats
} row;

enum { NODES = 20, STATES = 7, MOST = (C + 1) * 3 * C };

static const row rows[NODES] = {
    { INPUT, 1, 0, 0, 0, 0 },                    //  0 tokens
    { INPUT, 1, 0, 0, 0, 0 },                    //  1 targets
    { STATE, 0, 0, 0, V + T, C },                //  2
    { EMBED, C, 0, 0, 0, 0 },                    //  3
    { STATE, 0, 0, 0, 2, C },                    //  4
    { NORM, C, 3, 0, 0, 0 },                     //  5
    { STATE, 0, 0, 0, C + 1, 3 * C },            //  6
    { LINEAR, 3 * C, 5, 0, 0, 0 },               //  7
    { ATTENTION, C, 7, 0, 0, 0 },                //  8
    { STATE, 0, 0, 0, C + 1, C },                //  9
    { LINEAR, C, 8, 0, 0, 0 },                   // 10
    { ADD, C, 3, 10, 0, 0 },                     // 11
    { STATE, 0, 0, 0, C + 1, HIDDEN },           // 12
    { LINEAR, HIDDEN, 11, 0, 0, 0 },             // 13
    { GELU, HIDDEN, 13, 0, 0, 0 },               // 14
    { STATE, 0, 0, 0, HIDDEN + 1, C },           // 15
    { LINEAR, C, 14, 0, 0, 0 },                  // 16
    { STATE, 0, 0, 0, C + 1, V },                // 17
    { LINEAR, V, 16, 0, 0, 0 },                  // 18
    { LOSS, 1, 18, 1, 0, 0 },                    // 19
};

static struct {
    shared_device device;
    vk_nn         nn;
    vk_nn_node    nodes[NODES];
    tl_op         ops[NODES];
    tl_tensor     reads[NODES][2];
    uint64_t      moments[NODES][2];
    float         initial[NODES][MOST];
    float         expected[NODES][3][MOST];     // weights and moments after STEPS of the run without pieces
} g;

static uint64_t state_bytes(int32_t id) { return (uint64_t)rows[id].rows * rows[id].row * sizeof(float); }

// What the kernels know of a node; a state and its reader know the same parts of the weights.
static void set_node(int32_t id) {
    int32_t state = rows[id].kind == STATE ? id : id ? id - 1 : 0;
    vk_nn_node *node = &g.nodes[id];
    uint64_t tail;
    node->in_width = rows[rows[id].from].width;
    node->width = rows[id].width;
    if (rows[state].kind != STATE) return;
    tail = (rows[state + 1].kind == EMBED ? T : 1) * rows[state].row * sizeof(float);
    node->weight.bytes = node->bias.offset = state_bytes(state) - tail;
    node->bias.bytes = tail;
    node->decays[0] = rows[state + 1].kind == LINEAR;
}

static void set_state(int32_t id) {
    tl_op *op = &g.ops[id];
    uint32_t i;
    for (i = 0; i < rows[id].rows * rows[id].row; i++) g.initial[id][i] = 0.5f * nn_uniform((uint64_t)id, i) - 0.25f;
    g.moments[id][0] = g.moments[id][1] = state_bytes(id);
    op->kind = "adamw";
    op->state = TL_STATE_TRAINED;
    op->output_bytes = state_bytes(id);
    op->moments = g.moments[id];
    op->moment_count = 2;
    op->initial = g.initial[id];
    op->backward = run_update;
    op->bwd_cost = 10;
    if (rows[id + 1].kind != NORM) op->weight_rows = (int32_t)rows[id].rows;
}

static void set_kernels(int32_t id) {
    static const struct { tl_kernel_fn forward, backward; } kernels[] = {
        { NULL, NULL }, { NULL, NULL }, { vk_nn_run_embed, run_embed_backward }, { vk_nn_run_norm, vk_nn_run_norm_backward },
        { vk_nn_run_linear, run_linear_backward }, { vk_nn_run_attention, vk_nn_run_attention_backward },
        { vk_nn_run_gelu, vk_nn_run_gelu_backward }, { vk_nn_run_add, vk_nn_run_add_backward },
        { vk_nn_run_loss, vk_nn_run_loss_backward } };
    static const char *const names[] = { "input", "state", "embed", "norm", "linear", "attention", "gelu", "add", "loss" };
    tl_op *op = &g.ops[id];
    kind k = rows[id].kind;
    op->kind = names[k];
    op->forward = kernels[k].forward;
    op->backward = kernels[k].backward;
    op->output_bytes = (k == LOSS ? 1 : ROWS * rows[id].width) * sizeof(float);
    op->keep = k == LOSS;
    if (k == INPUT) return;
    op->fwd_cost = 1000;
    op->bwd_cost = 2000;
    op->inputs = g.reads[id];
    g.reads[id][0].node = rows[id].from;
    g.reads[id][1].node = rows[id].from2 ? rows[id].from2 : id - 1;
    op->input_count = rows[id].from2 || rows[id - 1].kind == STATE ? 2 : 1;
    if (k == ADD) op->needs = "none";
    if (k == NORM) op->saved_bytes = vk_nn_norm_saved_bytes(ROWS);
    if (k == ATTENTION) op->saved_bytes = vk_nn_attention_saved_bytes(B, HEADS, T);
    if (k == ATTENTION) op->bwork_bytes = vk_nn_attention_scratch_bytes(B, HEADS, T);
    if (k == LOSS) op->fwork_bytes = vk_nn_cross_entropy_scratch_bytes(ROWS);
}

static void ok(tl_result result) { shared_ok(&g.device, result); }

static int has_device(const char *test) {
    int32_t id;
    if (!vkt_has_vulkan(test)) return 0;
    if (!shared_open(&g.device)) return 1;
    ok(vk_nn_init(&g.device.backend, &g.nn));
    for (id = 0; id < NODES; id++) set_node(id);
    return 1;
}

static int close_device(void **state) {
    (void)state;
    if (!g.device.is_open) return 0;
    vk_nn_free(&g.nn);
    return shared_close(&g.device);
}

#define NEED_DEVICE() do { if (!has_device(__func__)) skip(); } while (0)

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    const bed *b = (const bed *)user;
    int32_t ids[ROWS], i;
    tl_tensor t = { 0, 0 };
    tl_result result = TL_OK;
    (void)micro_batch;
    for (; t.node < 2 && !result; t.node++) {
        for (i = 0; i < ROWS; i++) ids[i] = (int32_t)(nn_hash(b->net.step + 100 * (uint64_t)t.node, (uint64_t)i) % V);
        result = tl_write_tensor(run, t, ids, sizeof ids);
    }
    return result;
}

static void open_bed(bed *b) {
    const vk_nn_adamw adamw = { 0.01f, 0.9f, 0.98f, 1e-8f, 0.1f };
    int32_t id;
    memset(b, 0, sizeof *b);
    memset(g.ops, 0, sizeof g.ops);
    for (id = 0; id < NODES; id++) {
        if (rows[id].kind == STATE) set_state(id);
        else set_kernels(id);
        g.ops[id].user = b;
    }
    b->net.nn = &g.nn;
    b->net.nodes = g.nodes;
    b->net.B = B;
    b->net.T = T;
    b->net.C = C;
    b->net.V = V;
    b->net.owns_weights = 1;
    b->net.adamw = adamw;
    b->net.step = 1;
    b->desc.backend = &g.device.backend;
    b->desc.load = load;
    b->desc.load_user = b;
    b->desc.work_limit = 3000000;
    b->desc.figures = &b->figures;
}

static void start(bed *b) {
    if (tl_init_op_run(&b->env, &b->desc, g.ops, NODES, &b->run)) fail_msg("%s", b->env.error.text);
}

// Train, and look at the bytes.
static void train(bed *b) {
    tl_run_report report;
    tl_vk_counters counters;
    uint64_t step;
    for (step = 1; step <= STEPS; step++) {
        b->net.step = step;
        if (tl_run_plan(b->run)) fail_msg("%s", b->env.error.text);
        tl_measure_run(b->run, &report);
        tl_vk_measure(&g.device.backend, &counters);
        assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
        assert_int_equal(report.planned_arena_bytes, report.measured_arena_bytes);
        assert_int_equal(report.planned_taken_bytes, report.taken_bytes);
        assert_int_equal(report.taken_bytes, counters.arena_bytes);
        assert_int_equal(report.update_count, STATES);
        assert_true(!b->figures.budget_bytes || report.taken_bytes <= b->figures.budget_bytes);
    }
}

static void read_state(bed *b, int32_t id, int32_t output, float *floats) {
    tl_tensor t;
    t.node = id;
    t.output = output;
    if (tl_read_tensor(b->run, t, floats, state_bytes(id))) fail_msg("%s", b->env.error.text);
}

static void keep_states(bed *b) {
    int32_t id, k;
    for (id = 0; id < NODES; id++)
        for (k = 0; k < 3 && rows[id].kind == STATE; k++) read_state(b, id, k, g.expected[id][k]);
}

// The state that differs from the run without pieces; -1 = none.
static int32_t find_other_state(bed *b) {
    static float floats[MOST];
    int32_t id, k;
    for (id = 0; id < NODES; id++)
        for (k = 0; k < 3 && rows[id].kind == STATE; k++) {
            read_state(b, id, k, floats);
            if (memcmp(floats, g.expected[id][k], (size_t)state_bytes(id)) != 0) return id;
        }
    return -1;
}

static void assert_same_states(bed *b, int run) {
    int32_t id = find_other_state(b);
    if (id >= 0) fail_msg("run %d: n%d has other weights or moments", run, (int)id);
}

static void close_bed(bed *b) {
    tl_free_run(b->run);
    b->run = NULL;
}

// Train without pieces, and keep what comes of it.
static void train_whole(bed *b) {
    int32_t id;
    open_bed(b);
    start(b);
    train(b);
    keep_states(b);
    assert_int_equal(b->pieces, 0);
    assert_int_equal(b->whole_updates, STATES * STEPS);
    for (id = 0; id < NODES; id++)      // equal weights that nothing trained would prove nothing
        if (rows[id].kind == STATE) assert_memory_not_equal(g.expected[id][0], g.initial[id], (size_t)state_bytes(id));
    close_bed(b);
}

// The pieces of all states, and how many states have some.
static int count_pieces(const bed *b, int *states) {
    const tl_graph *graph = tl_find_run_graph(b->run);
    int32_t id;
    int pieces = 0;
    *states = 0;
    for (id = 0; id < NODES; id++) {
        const tl_node *node = &graph->nodes[id];
        if (node->state != TL_STATE_PIECES) continue;
        ++*states;
        pieces += (node->weight_rows + node->piece_rows - 1) / node->piece_rows;
    }
    return pieces;
}

// Cut every state with rows into pieces of so many, or as many more as begin where the device wants it.
static void cut_all(int32_t wanted) {
    int32_t id;
    tl_backend_limits limits;
    g.device.backend.limits(g.device.backend.self, &limits);
    for (id = 0; id < NODES; id++) {
        tl_op *op = &g.ops[id];
        int32_t piece = wanted;
        if (!op->weight_rows) continue;
        while (piece < op->weight_rows && (uint64_t)piece * rows[id].row * 4 % limits.alignment_bytes) piece++;
        if (piece > op->weight_rows) piece = op->weight_rows;
        op->state = TL_STATE_PIECES;
        op->piece_rows = piece;
        op->bwd_cost = 0;
        g.ops[id + 1].bwork_bytes = (uint64_t)piece * rows[id].row * 4;
    }
}

// -- tests --

// Pieces of any size, the last of them shorter or the bias alone, on both kinds of devices.
static void sizes_of_pieces_change_no_bit(void **state) {
    static const int32_t sizes[] = { 1, 3, 16, 27, 64, 200 };
    static bed b;
    size_t k;
    int states, pieces;
    (void)state;
    NEED_DEVICE();
    for (g.nn.is_gpu = 0; g.nn.is_gpu < 2; g.nn.is_gpu++) {
        train_whole(&b);
        for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            open_bed(&b);
            cut_all(sizes[k]);
            start(&b);
            pieces = count_pieces(&b, &states);
            assert_int_equal(states, STATES - 1);
            train(&b);
            assert_same_states(&b, sizes[k]);
            assert_true(pieces >= states && (sizes[k] > 3 || pieces > 20));
            // a gradient in one piece is a whole one
            if (sizes[k] < 28) assert_int_equal(b.pieces, pieces * STEPS);
            if (sizes[k] < 28) assert_int_equal(b.updates, pieces * STEPS);
            close_bed(&b);
        }
    }
    g.nn.is_gpu = 0;
}

// Within smaller and smaller budgets there are more and more pieces, down to fewer bytes than whole gradients can.
static void budgets_change_no_bit(void **state) {
    static bed b;
    uint64_t least, whole_least;
    int k, states, pieces, before = 0;
    (void)state;
    NEED_DEVICE();
    train_whole(&b);
    whole_least = b.figures.least_bytes;
    open_bed(&b);
    b.desc.may_train_in_pieces = 1;
    start(&b);
    assert_int_equal(count_pieces(&b, &states), 0);      // without a budget nothing is cut
    least = b.figures.least_bytes;
    assert_true(least < whole_least);
    close_bed(&b);
    for (k = 0; k <= 4; k++) {
        open_bed(&b);
        b.desc.may_train_in_pieces = 1;
        b.desc.budget_bytes = least + (b.figures.keep_all_bytes + whole_least - least) * (uint64_t)(4 - k) / 4;
        start(&b);
        pieces = count_pieces(&b, &states);
        assert_true(pieces >= before);
        before = pieces;
        train(&b);
        assert_same_states(&b, k);
        assert_int_equal(b.pieces, pieces * STEPS);
        assert_int_equal(b.updates, pieces * STEPS);
        assert_int_equal(b.whole_updates, (STATES - states) * STEPS);
        close_bed(&b);
    }
    print_message("least %d bytes, with whole gradients %d; %d pieces\n", (int)least, (int)whole_least, pieces);
    assert_true(before > 6);
}

// Kernels that take rows for the first ones give other weights: what the other tests compare can differ.
static void kernels_that_ignore_rows_give_other_weights(void **state) {
    static bed b;
    int k;
    (void)state;
    NEED_DEVICE();
    train_whole(&b);
    for (k = IGNORES_FIRST; k <= UPDATES_AS_FIRST; k++) {
        open_bed(&b);
        cut_all(16);
        start(&b);
        b.fault = (fault)k;
        train(&b);
        assert_true(find_other_state(&b) >= 0);
        close_bed(&b);
    }
}

// The passes of a rehearsal run on the device, where calls are not varied.
static void a_rehearsal_of_pieces_finds_nothing(void **state) {
    static bed b;
    tl_rehearsal found;
    int in_pieces;
    (void)state;
    NEED_DEVICE();
    for (in_pieces = 0; in_pieces < 2; in_pieces++) {
        open_bed(&b);
        if (in_pieces) cut_all(5);
        b.desc.rehearsal = &found;
        start(&b);
        assert_int_equal(found.error_count, 0);
        assert_true(found.unprobed_count > 0 && found.is_stressed);
        assert_int_equal(b.pieces > 0, in_pieces);
        tl_free_rehearsal(&b.env, &found);
        close_bed(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_pieces_change_no_bit),
        cmocka_unit_test(budgets_change_no_bit),
        cmocka_unit_test(kernels_that_ignore_rows_give_other_weights),
        cmocka_unit_test(a_rehearsal_of_pieces_finds_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_pieces", tests, NULL, close_device);
}
