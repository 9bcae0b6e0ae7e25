// [3] GRAPH: regions that are trained block by block of rows: what is refused, and bytes, costs and needs against a
// little model of its own.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/row_steps.h"

// -- refusals --

static tl_result cut(tl_env *env, const tl_graph *graph, int32_t first, int32_t last, const tl_cut_desc *more, tl_rows_plan *rows) {
    tl_row_cut one;
    tl_cut_desc desc = *more;
    one.first = first;
    one.last = last;
    one.block_count = 2;
    desc.graph = graph;
    desc.cuts = &one;
    desc.cut_count = 1;
    return tl_cut_rows(env, &desc, rows);
}

// A graph without its last line.
static tl_graph parse(const char *lines) {
    tl_env env = silent_env();
    tl_graph graph;
    char text[1024];
    const char *line = lines;
    int count = -1;
    for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) count += *line != 0;
    snprintf(text, sizeof text, "%send %d\n", lines, count);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s: %s", text, env.error.text);
    return graph;
}

#define HEAD "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=8@0\n"
#define LINE(id, in, more) "node " #id " n" #id " op fwd=1 bwd=1 out=64 needs=in in=" in " " more "\n"
#define PLAIN(id, in) LINE(id, in, "rows=8@0 rin=1:1")
#define BOTH HEAD PLAIN(1, "0")

typedef struct refusal {
    const char *text;
    int32_t     first, last;
    const char *sentence;
    int         rounds, infers;     // 1 = may_round, an inference may be cut so
} refusal;

static void regions_that_cannot_be_cut_are_refused(void **state) {
    static const refusal cases[] = {
        { BOTH LINE(2, "1", ""), 1, 2, "node 2 (n2): rows: a node of a region must have some", 0, 0 },
        { BOTH LINE(2, "1", ""), 2, 2, "node 2 (n2): rows: a node of a region must have some", 0, 0 },
        { BOTH, 0, 0, "node 0 (x): rows: a node of a region must have some", 0, 0 },
        { BOTH LINE(2, "1", "rows=8@0 rin=1:1 once"), 1, 2, "node 2 (n2): rows: a node of a region must have some, one output, and be neither", 0, 0 },
        { HEAD "node 1 n1 op fwd=1 bwd=1 out=64,64 needs=in in=0 rows=8@0 rin=1:1\n", 1, 1, "node 1 (n1): rows: a node of a region must have some, one output", 0, 0 },
        { HEAD LINE(1, "0", "dynamic") PLAIN(2, "1"), 2, 2, "node 2 (n2): rows: a node of a region must have some", 0, 0 },
        { BOTH LINE(2, "1", "rows=4@0 rin=1:1"), 1, 2, "node 2 (n2): rows: others than those of its region", 0, 0 },
        { BOTH LINE(2, "1", "rows=8@1 rin=1:1"), 1, 2, "node 2 (n2): rows: others than those of its region", 0, 0 },
        { HEAD LINE(1, "0", "rows=8@1 rin=1:1") LINE(2, "1", "takes_blocks"), 1, 2, "node 2 (n2): rows: others than those of its region", 0, 0 },
        { "tlg 2\nnode 0 x input fwd=0 bwd=0 out=80 needs=none in=-\n"
          "node 1 a op fwd=1 bwd=1 out=80 needs=none in=0 rows=8@0 rin=1:1\nnode 2 b op fwd=1 bwd=1 out=80 needs=none in=1 takes_blocks\n", 1, 2,
          "node 2 (b): rows: others than those of its region", 0, 0 },     // rows of two elements and a half
        { HEAD "node 1 n1 op fwd=1 bwd=0 out=64 needs=none in=0 rows=8@0 rin=1:1 grad=no\n" PLAIN(2, "1"), 1, 2, "node 1 (n1): grad: all nodes of a region have a backward", 0, 1 },
        { BOTH LINE(2, "1", "rows=8@0 rin=1:1 fixed"), 1, 2, "node 1 (n1): fixed: all nodes of a region scale", 0, 0 },
        { HEAD LINE(1, "0", "rows=8@0 rin=1:1 keep") PLAIN(2, "1"), 1, 2, "node 1 (n1): keep: of a region, the last node alone", 0, 0 },
        { HEAD LINE(1, "0", "rows=8@0 rin=1:1 ordered reduces") PLAIN(2, "0"), 1, 2, "node 1 (n1): reduces: of a region, the last node alone", 0, 0 },
        { BOTH LINE(2, "1", "rows=8@0 rin=1:1 reduces"), 1, 2, "node 2 (n2): ordered: is not", 1, 0 },
        { BOTH LINE(2, "1,1", "rows=8@0 rin=1:1,whole"), 2, 2, "node 2 (n2): ordered: is not", 1, 1 },
        { BOTH LINE(2, "1,1", "rows=8@0 rin=1:1,whole ordered"), 2, 2, "node 2 (n2): in: another node of the region adds to the gradient", 1, 1 },
        { BOTH LINE(2, "0,1", "rows=8@0 rin=1:1,whole ordered") LINE(3, "2,1", "rows=8@0 rin=1:1,whole ordered"), 2, 3,
          "node 2 (n2): in: another node of the region adds to the gradient", 1, 1 },
        { BOTH LINE(2, "1", "rows=8@0 rin=whole ordered"), 1, 2, "node 2 (n2): rin: reads a node of its region whole", 0, 0 },
        { BOTH LINE(2, "1", "rows=8@0 rin=part ordered"), 1, 2, "node 2 (n2): rin: reads a node of its region whole", 0, 0 },
        { BOTH LINE(2, "1", "rows=8@0 rin=3/1/1"), 1, 2, "node 2 (n2): rin: windows and up", 0, 0 },
        { "tlg 2\nnode 0 x input fwd=0 bwd=0 out=60 needs=none in=-\n" PLAIN(1, "0"), 1, 1, "node 1 (n1): rin: the bytes of an input do not divide", 0, 0 },
        { "tlg 2\nstate 0 w bn w=8 stat\nnode 1 x input fwd=0 bwd=0 out=64 needs=none in=-\n" LINE(2, "1,0", "rows=8@0 rin=1:1,whole"), 2, 2,
          "node 2 (n2): in: reads statistics", 0, 1 },
        { "tlg 2\nstate 0 w sgd w=400 wrows=100 piece=10\nnode 1 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
          LINE(2, "1,0", "rows=8@0 rin=1:1,whole ordered bwork=400"), 2, 2, "node 2 (n2): in: reads a state in pieces", 0, 0 },
        { "tlg 2\nnode 0 x input fwd=0 bwd=0 out=60 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=60 needs=none in=0 rows=8@0 rin=whole ordered format=i4\n", 1, 1,
          "node 1 (a): rows: the bytes of output 0 must divide", 0, 0 },
        { "tlg 2\nnode 0 x input fwd=0 bwd=0 out=60 needs=none in=-\n"
          "node 1 a op fwd=1 bwd=1 out=8589934592 needs=none in=0 rows=2147483648@0 rin=whole ordered\n", 1, 1, "node 1 (a): rows: of a region, must be at most", 0, 0 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_env env = silent_env();
        tl_graph graph = parse(cases[i].text);
        tl_cut_desc desc;
        tl_rows_plan rows;
        memset(&desc, 0, sizeof desc);
        if (cut(&env, &graph, cases[i].first, cases[i].last, &desc, &rows) != TL_ERROR_INVALID_ARG) fail_msg("case %d is not refused: %s", (int)i, cases[i].sentence);
        if (!strstr(env.error.text, cases[i].sentence)) fail_msg("case %d: %s, not %s", (int)i, env.error.text, cases[i].sentence);
        assert_null(rows.memory);
        desc.may_round = 1;
        if (cut(&env, &graph, cases[i].first, cases[i].last, &desc, &rows) != (cases[i].rounds ? TL_OK : TL_ERROR_INVALID_ARG)) fail_msg("case %d: may_round", (int)i);
        tl_free_rows_plan(&env, &rows);
        desc.may_round = 0;
        desc.inference = 1;
        if (cut(&env, &graph, cases[i].first, cases[i].last, &desc, &rows) != (cases[i].infers ? TL_OK : TL_ERROR_INVALID_ARG)) fail_msg("case %d: inference", (int)i);
        tl_free_rows_plan(&env, &rows);
        tl_free_graph(&env, &graph);
    }
}

static void a_desc_that_is_wrong_is_refused(void **state) {
    tl_graph graph = parse(BOTH PLAIN(2, "1") PLAIN(3, "2"));
    tl_row_cut cuts[2];
    tl_device device;
    int32_t k;
    (void)state;
    for (k = 0; k < 15; k++) {
        static const char *const sentences[] = { "cuts: missing", "cuts: missing", "alignment_bytes", "at most 2^30", "op: ", "op: ", "inference: must be 0 or 1",
            "may_round: must be 0 or 1", "cuts: must be nodes", "cuts: must be nodes", "cuts: must be nodes", "cuts: must be nodes", "node 1 (n1): block_count",
            "node 2 (n2): block_count", "copy_channels" };
        tl_env env = silent_env();
        tl_cut_desc desc;
        tl_rows_plan rows;
        memset(&desc, 0, sizeof desc);
        memset(&device, 0, sizeof device);
        cuts[0].first = 1; cuts[0].last = 1; cuts[0].block_count = 2;
        cuts[1].first = 2; cuts[1].last = 3; cuts[1].block_count = 2;
        desc.graph = &graph;
        desc.cuts = cuts;
        desc.cut_count = 2;
        assert_int_equal(tl_cut_rows(&env, &desc, &rows), TL_OK);
        tl_free_rows_plan(&env, &rows);
        if (k == 0) desc.cuts = NULL;
        if (k == 1) desc.cut_count = -1;
        if (k == 2) desc.alignment_bytes = 3;
        if (k == 3) desc.alignment_bytes = UINT64_C(1) << 31;
        if (k == 4) desc.op = "input";
        if (k == 5) desc.op = "two words";
        if (k == 6) desc.inference = 2;
        if (k == 7) desc.may_round = -1;
        if (k == 8) cuts[1].first = 1;
        if (k == 9) cuts[1].last = 4;
        if (k == 10) cuts[0].last = 0;
        if (k == 11) cuts[0].first = -1;
        if (k == 12) cuts[0].block_count = 0;
        if (k == 13) cuts[1].block_count = -3;
        if (k == 14) {
            desc.device = &device;
            device.copy_channels = 7;
        }
        assert_int_equal(tl_cut_rows(&env, &desc, &rows), TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, sentences[k])) fail_msg("%d: %s, not %s", (int)k, env.error.text, sentences[k]);
        assert_null(rows.memory);
    }
    tl_free_graph(NULL, &graph);
}

// -- the model --

// Something in the scratch of a region: alive from one turn to another, both included.
typedef struct box { uint64_t offset, bytes; int32_t from, to; } box;

typedef struct model {
    const tl_graph *graph;
    int32_t  first, last, count;
    int32_t  nodes[STEP_NODES];       // members
    int      trains, is_late;
    int      outer[STEP_NODES], again[STEP_NODES];
    int32_t  again_turn[STEP_NODES], back_turn[STEP_NODES], turns, forward_turns;   // of the backward, of the forward
    uint64_t rows, block_rows;
} model;

static int place_in(const model *m, int32_t node) {
    int32_t k;
    for (k = 0; k < m->count && m->nodes[k] != node; k++) {}
    return k < m->count ? k : -1;
}

static const tl_node *node_of(const model *m, int32_t at) { return &m->graph->nodes[m->nodes[at]]; }
static int32_t tensor_of(const model *m, int32_t at) { return node_of(m, at)->first_output; }
static const tl_node_input *input_of(const model *m, int32_t at, int32_t k) { return &m->graph->inputs[node_of(m, at)->first_input + k]; }
static int reduces(const model *m, int32_t at) { return tli_find_rows(m->graph, m->nodes[at]) && tli_find_rows(m->graph, m->nodes[at])->reduces; }
static uint64_t row_bytes(const model *m, int32_t at) { return reduces(m, at) ? 0 : m->graph->outputs[tensor_of(m, at)].bytes / m->rows; }

static void find_outer(model *m) {
    int32_t at, id, k, readers;
    for (at = 0; at < m->count; at++) {
        m->outer[at] = node_of(m, at)->keep;
        readers = 0;
        for (id = 0; id < m->graph->node_count; id++)
            for (k = 0; k < m->graph->nodes[id].input_count; k++)
                if (m->graph->inputs[m->graph->nodes[id].first_input + k].tensor == tensor_of(m, at)) {
                    readers++;
                    if (place_in(m, id) < 0) m->outer[at] = 1;
                }
        if (!readers) m->outer[at] = 1;
    }
}

// Whether some call of the backward reads rows of a member that nobody keeps.
static int is_missed(const model *m, int32_t at) {
    int32_t k, i;
    if (m->outer[at]) return 0;
    if (m->graph->outputs[tensor_of(m, at)].needed) return 1;
    for (i = 0; i < m->count; i++)
        for (k = 0; k < node_of(m, i)->input_count; k++)
            if (input_of(m, i, k)->tensor == tensor_of(m, at) && (input_of(m, i, k)->needed || m->again[i])) return 1;
    return 0;
}

static void describe_model(model *m, const tl_graph *graph, int32_t first, int32_t last, int inference, uint64_t block_rows) {
    int32_t id, at, changed = 1, others = 0;
    memset(m, 0, sizeof *m);
    m->graph = graph;
    m->block_rows = block_rows;
    for (id = first; id <= last; id++)
        if (!graph->nodes[id].is_input) m->nodes[m->count++] = id;
    m->rows = tli_find_rows(graph, last)->rows;
    m->trains = !inference && graph->nodes[last].has_grad;
    find_outer(m);
    for (at = 0; at < m->count - 1; at++) others |= m->outer[at];
    m->is_late = m->trains && !others && reduces(m, m->count - 1);
    for (id = last + 1; id < graph->node_count; id++)
        for (at = 0; at < graph->nodes[id].input_count; at++)
            if (graph->inputs[graph->nodes[id].first_input + at].tensor == tensor_of(m, m->count - 1)) m->is_late = 0;
    while (changed && m->trains)
        for (at = 0, changed = 0; at < m->count; at++)
            if (!m->again[at] && (m->is_late || node_of(m, at)->saved_bytes || is_missed(m, at))) m->again[at] = changed = 1;
    m->forward_turns = m->is_late ? 0 : m->count;
    for (at = 0; at < m->count && m->trains; at++) m->again_turn[at] = m->again[at] ? m->turns++ : -1;
    for (at = m->count - 1; at >= 0 && m->trains; at--) m->back_turn[at] = m->turns++;
}

static uint64_t share(const model *m, uint64_t work) { return (work * m->block_rows + m->rows - 1) / m->rows; }

static void add_box(box *boxes, int32_t *count, uint64_t offset, uint64_t bytes, int32_t from, int32_t to) {
    box one = { offset, bytes, from, to };
    if (bytes) boxes[(*count)++] = one;
}

// What is in the scratch of the forward; the scratch of calls at the offsets of the plan.
static int32_t list_forward(const model *m, const tl_row_member *members, const tl_row_turn *turns, box *boxes) {
    int32_t at, i, k, count = 0;
    for (at = 0; at < m->forward_turns; at++) {
        int32_t last = at;
        for (i = at; i < m->count; i++)
            for (k = 0; k < node_of(m, i)->input_count; k++)
                if (input_of(m, i, k)->tensor == tensor_of(m, at)) last = i;
        if (!m->outer[at]) add_box(boxes, &count, members[at].ring_offset, m->block_rows * row_bytes(m, at), at, last);
        add_box(boxes, &count, turns[at].work_offset, share(m, node_of(m, at)->fwork_bytes), at, at);
    }
    return count;
}

static int32_t list_backward(const model *m, const tl_row_member *members, const tl_row_turn *turns, box *boxes) {
    int32_t at, i, k, count = 0;
    for (at = 0; at < m->count && m->trains; at++) {
        int32_t last = m->again_turn[at], first = m->back_turn[at];
        for (i = 0; i < m->count; i++)
            for (k = 0; k < node_of(m, i)->input_count; k++) {
                if (input_of(m, i, k)->tensor != tensor_of(m, at)) continue;
                if (m->again_turn[i] > last) last = m->again_turn[i];
                if (input_of(m, i, k)->needed && m->back_turn[i] > last) last = m->back_turn[i];
                if (m->back_turn[i] < first) first = m->back_turn[i];
            }
        if (m->graph->outputs[tensor_of(m, at)].needed) last = m->back_turn[at];
        if (m->again[at]) {
            const tl_node *node = node_of(m, at);
            add_box(boxes, &count, members[at].again_offset, m->block_rows * row_bytes(m, at), m->again_turn[at], last);
            add_box(boxes, &count, members[at].saved_offset, node->saved_bytes / m->rows * m->block_rows, m->again_turn[at], m->back_turn[at]);
            add_box(boxes, &count, turns[m->again_turn[at]].work_offset, share(m, node->saved_bytes ? node->swork_bytes : node->fwork_bytes),
                    m->again_turn[at], m->again_turn[at]);
        }
        if (!m->outer[at]) add_box(boxes, &count, members[at].gradient_offset, m->block_rows * row_bytes(m, at), first, m->back_turn[at]);
        add_box(boxes, &count, turns[m->back_turn[at]].work_offset, share(m, node_of(m, at)->bwork_bytes), m->back_turn[at], m->back_turn[at]);
    }
    return count;
}

// Check that what lives at once lies apart, aligned, in the scratch; returns the most bytes that live at once.
static uint64_t check_boxes(const box *boxes, int32_t count, uint64_t size, uint64_t alignment) {
    uint64_t peak = 0, now, end = 0;
    int32_t i, k, turn;
    for (i = 0; i < count; i++) {
        assert_true(boxes[i].offset % alignment == 0 && boxes[i].from <= boxes[i].to);
        if (boxes[i].offset + boxes[i].bytes > end) end = boxes[i].offset + boxes[i].bytes;
        for (k = 0; k < i; k++)
            if (boxes[i].from <= boxes[k].to && boxes[k].from <= boxes[i].to)
                assert_true(boxes[i].offset >= boxes[k].offset + boxes[k].bytes || boxes[k].offset >= boxes[i].offset + boxes[i].bytes);
    }
    assert_int_equal(end, size);
    for (turn = 0; turn < 3 * STEP_NODES; turn++) {
        for (i = 0, now = 0; i < count; i++)
            if (boxes[i].from <= turn && turn <= boxes[i].to) now += boxes[i].bytes;
        if (now > peak) peak = now;
    }
    return peak;
}

// Whether the backward of the region reads a tensor: in a call again, or in a backward.
static int backward_reads(const model *m, int32_t tensor) {
    int32_t at, k, maker = place_in(m, m->graph->outputs[tensor].node);
    if (maker >= 0 && m->again[maker]) return reduces(m, maker);      // a block of it is made again; a sum lies outside
    if (maker >= 0 && m->graph->outputs[tensor].needed) return 1;
    for (at = 0; at < m->count && m->trains; at++)
        for (k = 0; k < node_of(m, at)->input_count; k++)
            if (input_of(m, at, k)->tensor == tensor && (m->again[at] || input_of(m, at, k)->needed)) return 1;
    return 0;
}

// The tensor of the old graph that a tensor of the new one is: of the same name, for regions by the order of outer ones.
static int32_t old_tensor(const model *m, const tl_graph *made, int32_t region, int32_t tensor) {
    int32_t id = made->outputs[tensor].node, at, k = made->outputs[tensor].output, old;
    if (id == region) {
        for (at = 0; at < m->count; at++)
            if (m->outer[at] && !k--) return tensor_of(m, at);
        return -1;
    }
    for (old = 0; old < m->graph->node_count; old++)
        if (strcmp(tl_name_node(m->graph, old), tl_name_node(made, id)) == 0) return m->graph->nodes[old].first_output + k;
    return -1;
}

static void check_needs(const model *m, const tl_rows_plan *rows, int32_t region) {
    const tl_node *node = &rows->graph.nodes[region];
    int32_t k, i, at, outer = 0, found = 0;
    for (at = 0; at < m->count; at++) outer += m->outer[at];
    assert_int_equal(node->output_count, outer);
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &rows->graph.inputs[node->first_input + k];
        int32_t old = old_tensor(m, &rows->graph, region, input->tensor);
        assert_int_equal(input->needed, backward_reads(m, old));
        for (i = 0; i < k; i++) assert_int_not_equal(rows->graph.inputs[node->first_input + i].tensor, input->tensor);
        for (at = 0, found = 0; at < m->count && !found; at++)
            for (i = 0; i < node_of(m, at)->input_count; i++) found |= input_of(m, at, i)->tensor == old;
        assert_true(found && place_in(m, m->graph->outputs[old].node) < 0);
    }
    for (k = 0; k < node->output_count; k++) {
        int32_t old = old_tensor(m, &rows->graph, region, node->first_output + k);
        assert_int_equal(rows->graph.outputs[node->first_output + k].needed, m->trains && backward_reads(m, old));
        assert_int_equal(rows->graph.outputs[node->first_output + k].bytes, m->graph->outputs[old].bytes);
    }
}

static void check_region(const tl_graph *graph, int32_t first, int32_t last, const tl_rows_plan *rows, uint64_t alignment, uint64_t call, long *equal) {
    int32_t region = rows->nodes[last], at, count, k;
    const tl_node *node = &rows->graph.nodes[region];
    const tl_row_member *members = rows->members + rows->first_members[region];
    const tl_row_turn *turns = rows->turns + rows->first_turns[region];
    uint64_t forward = 0, backward = 0, blocks, calls;
    static model m;
    static box boxes[8 * STEP_NODES];
    describe_model(&m, graph, first, last, rows->inference, members[0].block_rows);
    blocks = (m.rows - 1) / m.block_rows + 1;
    calls = blocks * (uint64_t)(m.forward_turns + m.turns);
    for (k = 0; k < graph->node_count; k++) calls += !graph->nodes[k].is_input && place_in(&m, k) < 0;
    assert_int_equal(rows->call_count, calls);
    assert_int_equal(node->has_grad, m.trains);
    assert_int_equal(rows->first_members[region + 1] - rows->first_members[region], m.count);
    assert_int_equal(rows->forward_turns[region], m.forward_turns);
    assert_int_equal(rows->first_turns[region + 1] - rows->first_turns[region], m.forward_turns + m.turns);
    for (at = 0; at < m.count; at++) {
        assert_int_equal(members[at].node, m.nodes[at]);
        assert_int_equal(members[at].again, m.again[at]);
        assert_int_equal(members[at].ring_rows, m.outer[at] ? 0 : m.block_rows);
        if (at < m.forward_turns) assert_true(turns[at].member == at && turns[at].kind == TL_STEP_FORWARD);
        if (m.again[at]) {
            const tl_row_turn *turn = &turns[m.forward_turns + m.again_turn[at]];
            assert_true(turn->member == at && turn->kind == (node_of(&m, at)->saved_bytes ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD));
            backward += node_of(&m, at)->fwd_cost;
        }
        if (m.trains) assert_true(turns[m.forward_turns + m.back_turn[at]].member == at && turns[m.forward_turns + m.back_turn[at]].kind == TL_STEP_BACKWARD);
        if (!m.is_late) forward += node_of(&m, at)->fwd_cost;
        if (m.trains) backward += node_of(&m, at)->bwd_cost;
    }
    assert_int_equal(node->fwd_cost, forward + call * (blocks - 1) * (uint64_t)m.forward_turns);
    assert_int_equal(node->bwd_cost, backward + call * (blocks - 1) * (uint64_t)m.turns);
    assert_int_equal(node->once, m.is_late ? TL_ONCE_LATE : 0);
    assert_int_equal(node->keep, graph->nodes[last].keep);
    assert_string_equal(tl_name_node(&rows->graph, region), tl_name_node(graph, last));
    assert_true(node->swork_bytes == node->fwork_bytes && !node->saved_bytes);
    for (k = 0; k < 2; k++) {
        uint64_t size = k ? node->bwork_bytes : node->fwork_bytes;
        count = k ? list_backward(&m, members, turns + m.forward_turns, boxes) : list_forward(&m, members, turns, boxes);
        equal[check_boxes(boxes, count, size, alignment) == size]++;
    }
    check_needs(&m, rows, region);
}

static void regions_have_the_figures_of_a_model(void **state) {
    int32_t count = scaled(3000), i, regions = 0, late = 0, first, last;
    long equal[2] = { 0, 0 };
    (void)state;
    for (i = 0; i < count; i++) {
        tl_random random = { (uint64_t)i + 1 };
        tl_graph graph;
        random_row_step(&random, 12, &graph);
        for (first = 0; first < graph.node_count; first++)
            for (last = first; last < graph.node_count && last < first + 6; last++) {
                tl_env env = silent_env();
                tl_row_cut one;
                tl_cut_desc desc;
                tl_rows_plan rows;
                memset(&desc, 0, sizeof desc);
                one.first = first;
                one.last = last;
                one.block_count = random_count(&random, 1, 9);
                desc.graph = &graph;
                desc.cuts = &one;
                desc.cut_count = 1;
                desc.call_cost = (uint64_t)random_count(&random, 0, 3);
                desc.alignment_bytes = random_chance(&random, 30) ? UINT64_C(1) << random_count(&random, 0, 5) : 0;
                desc.inference = random_chance(&random, 15);
                if (tl_cut_rows(&env, &desc, &rows)) {
                    assert_int_equal(env.error.code, TL_ERROR_INVALID_ARG);
                    assert_null(rows.memory);
                    continue;
                }
                if (tl_check_graph(&env, &rows.graph)) fail_msg("graph %d, %d to %d: %s", (int)i, (int)first, (int)last, env.error.text);
                if (desc.alignment_bytes < 2) check_region(&graph, first, last, &rows, 1, desc.call_cost, equal);
                else {
                    static long ignored[2];
                    check_region(&graph, first, last, &rows, desc.alignment_bytes, desc.call_cost, ignored);
                }
                regions++;
                late += rows.graph.nodes[rows.nodes[last]].once == TL_ONCE_LATE;
                tl_free_rows_plan(&env, &rows);
            }
        tl_free_graph(NULL, &graph);
    }
    print_message("%d regions, %d of them late; %ld scratches of the live peak, %ld above it\n", (int)regions, (int)late, equal[1], equal[0]);
    assert_true(regions > 2 * count && late > count / 10 && equal[0] * 200 < equal[1]);     // what lives too long shows here
}

// The same of graphs whose losses are read, or are not alone in their region, or save.
static void regions_with_losses_have_the_figures_of_the_model(void **state) {
#define LOSS(id, in, more) "node " #id " n" #id " op fwd=1 bwd=1 out=4 needs=in in=" in " rows=8@0 rin=1:1 ordered reduces" more "\n"
#define TAIL(id, in) "node " #id " n" #id " op fwd=1 bwd=1 out=4 needs=none in=" in "\n"
    static const struct { const char *text; int32_t first, last; int is_late; } cases[] = {
        { BOTH LOSS(2, "1", ""), 2, 2, 1 }, { BOTH LOSS(2, "1", ""), 1, 2, 1 }, { BOTH LOSS(2, "1", "") TAIL(3, "2"), 2, 2, 0 },
        { BOTH LOSS(2, "1", "") TAIL(3, "1"), 1, 2, 0 }, { BOTH LOSS(2, "1", "") TAIL(3, "1"), 2, 2, 1 },
        { BOTH PLAIN(2, "1") LOSS(3, "1", ""), 1, 3, 0 },      // a member that nobody reads
        { BOTH LOSS(2, "1", " saved=8") TAIL(3, "2"), 1, 2, 0 }, { BOTH LOSS(2, "1", " saved=8") TAIL(3, "2"), 2, 2, 0 },
        { BOTH "node 2 n2 op fwd=1 bwd=1 out=4 needs=out in=1 late\n" PLAIN(3, "1"), 3, 3, 0 },     // late already, and outside
    };
    size_t i;
    int inference;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        for (inference = 0; inference < 2; inference++) {
            tl_env env = silent_env();
            tl_graph graph = parse(cases[i].text);
            tl_cut_desc desc;
            tl_rows_plan rows;
            long equal[2];
            memset(&desc, 0, sizeof desc);
            desc.inference = inference;
            if (cut(&env, &graph, cases[i].first, cases[i].last, &desc, &rows)) fail_msg("case %d: %s", (int)i, env.error.text);
            if (tl_check_graph(&env, &rows.graph)) fail_msg("case %d: %s", (int)i, env.error.text);
            assert_int_equal(rows.graph.nodes[rows.nodes[cases[i].last]].once, cases[i].is_late && !inference ? TL_ONCE_LATE : 0);
            check_region(&graph, cases[i].first, cases[i].last, &rows, 1, 0, equal);
            tl_free_rows_plan(&env, &rows);
            tl_free_graph(&env, &graph);
        }
}

// A region has the weights, constants and origin of its members, and the formats and views of what is whole.
static void regions_have_what_their_members_have(void **state) {
    tl_env env = silent_env();
    tl_graph graph = parse(BOTH LINE(2, "1", "rows=8@0 rin=1:1 param=10 stored=3:i8") LINE(3, "2,1", "rows=8@0 rin=1:1,1:1 param=7 format=f32 stored=8:f32,1:i8"));
    static const tl_tensor of[] = { { 2, 0 }, { 3, 0 } };
    tl_cut_desc desc;
    tl_rows_plan rows;
    const tl_stored *stored;
    int32_t k, region;
    (void)state;
    memset(&desc, 0, sizeof desc);
    for (k = 0; k < 2; k++)
        if (tl_add_view(&env, &graph, k ? "outer" : "inner", of[k], NULL)) fail_msg("%s", env.error.text);
    if (cut(&env, &graph, 2, 3, &desc, &rows)) fail_msg("%s", env.error.text);
    region = rows.nodes[3];
    assert_int_equal(rows.graph.nodes[region].param_bytes, 17);
    assert_int_equal(rows.graph.nodes[region].origin, 2);
    assert_int_equal(rows.graph.outputs[rows.graph.nodes[region].first_output].format, TL_TENSOR_FORMAT_F32);
    assert_int_equal(tli_find_stored(&rows.graph, region, &stored), 3);
    assert_true(stored[0].bytes == 3 && stored[1].bytes == 8 && stored[2].bytes == 1);
    assert_int_equal(rows.graph.view_count, 1);
    assert_string_equal(tli_text_at(&rows.graph, rows.graph.views[0].name), "outer");
    assert_int_equal(rows.graph.views[0].tensor, rows.graph.nodes[region].first_output);
    tl_free_rows_plan(&env, &rows);
    tl_free_graph(&env, &graph);
}

// Blocks are whole units, and keep the alignment of what lies outside; together they are all rows.
static void blocks_are_units_that_keep_the_alignment(void **state) {
#define NARROW HEAD "node 1 n1 op fwd=1 bwd=1 out=8 needs=none in=0 rows=8@0 rin=1:1\n"   // a byte a row
    static const struct { const char *text; uint64_t alignment; int32_t blocks; uint64_t rows; } cases[] = {
        { BOTH PLAIN(2, "1"), 1, 8, 1 }, { BOTH PLAIN(2, "1"), 1, 3, 3 }, { BOTH PLAIN(2, "1"), 1, 100, 1 }, { BOTH PLAIN(2, "1"), 1, 1, 8 },
        { BOTH PLAIN(2, "1"), 16, 8, 2 }, { BOTH PLAIN(2, "1"), 32, 8, 4 }, { BOTH PLAIN(2, "1"), 64, 8, 8 }, { BOTH PLAIN(2, "1"), 256, 8, 8 },
        { BOTH LINE(2, "1", "rows=8@0 rin=1:1 row_unit=4"), 1, 8, 4 }, { BOTH LINE(2, "1", "rows=8@0 rin=1:1 row_unit=2"), 16, 3, 4 },
        { HEAD LINE(1, "0", "rows=8@0 rin=1:1 row_unit=2") LINE(2, "1", "rows=8@0 rin=1:1 row_unit=4"), 1, 8, 4 },     // 4 is a multiple of both
        { NARROW PLAIN(2, "1"), 8, 8, 1 },                      // what is inside is aligned by itself
        { NARROW PLAIN(2, "1") PLAIN(3, "1"), 8, 8, 8 },        // and is cut where it lies if it is whole
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_env env = silent_env();
        tl_row_cut one = { 1, 2, 0 };
        tl_cut_desc desc;
        tl_rows_plan rows;
        tl_graph graph = parse(cases[i].text);
        memset(&desc, 0, sizeof desc);
        one.block_count = cases[i].blocks;
        desc.graph = &graph;
        desc.cuts = &one;
        desc.cut_count = 1;
        desc.alignment_bytes = cases[i].alignment;
        assert_int_equal(tl_cut_rows(&env, &desc, &rows), TL_OK);
        if (rows.members[0].block_rows != cases[i].rows || rows.members[1].block_rows != cases[i].rows)
            fail_msg("case %d: blocks of %lu and %lu rows", (int)i, (unsigned long)rows.members[0].block_rows, (unsigned long)rows.members[1].block_rows);
        tl_free_rows_plan(&env, &rows);
        tl_free_graph(&env, &graph);
    }
}

// -- bindings --

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// The largest operand of a node; with rows the most bytes of a row of those that are cut, rounded up.
static uint64_t largest_operand(const tl_graph *graph, int32_t id, uint64_t rows) {
    const tl_node *node = &graph->nodes[id];
    const tl_node_rows *r = tli_find_rows(graph, id);
    uint64_t most = larger(larger(node->fwork_bytes, node->swork_bytes), larger(node->bwork_bytes, node->saved_bytes));
    int32_t k;
    if (rows && !node->has_grad) most = node->fwork_bytes;
    for (k = 0; k < node->input_count; k++) {
        int32_t kind = rows ? graph->attributes->relations[r->first_relation + k].kind : TL_RELATION_SAME;
        if (kind == TL_RELATION_SAME) most = larger(most, graph->outputs[graph->inputs[node->first_input + k].tensor].bytes);
    }
    if (!rows || !r->reduces) most = larger(most, graph->outputs[node->first_output].bytes);
    return rows ? larger(1, (most + rows - 1) / rows) : most;
}

// The rows of a block of a node that is cut alone, as many blocks as can be; 0 = it cannot be cut.
static uint64_t fewest_rows(const tl_graph *graph, int32_t id, uint64_t alignment) {
    tl_env env = silent_env();
    tl_row_cut one;
    tl_cut_desc desc;
    tl_rows_plan rows;
    uint64_t found;
    memset(&desc, 0, sizeof desc);
    one.first = one.last = id;
    one.block_count = INT32_MAX;
    desc.graph = graph;
    desc.cuts = &one;
    desc.cut_count = 1;
    desc.alignment_bytes = alignment;
    if (!tli_find_rows(graph, id) || graph->nodes[id].takes_blocks || tli_find_rows(graph, id)->axis || tl_cut_rows(&env, &desc, &rows)) return 0;
    found = rows.members[0].block_rows;
    tl_free_rows_plan(&env, &rows);
    return found;
}

// Of all nodes beside the cuts those are cut alone that can be, and have an operand larger than a binding; into blocks of
// the most rows that one holds.
static void bindings_cut_what_is_larger(void **state) {
    int32_t count = scaled(2000), i, id, alone = 0, tiny = 0, raised = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_random random = { (uint64_t)i + 1 };
        tl_env env = silent_env();
        tl_graph graph;
        tl_row_cut one;
        tl_cut_desc desc;
        tl_rows_plan rows, plain;
        random_row_step(&random, 12, &graph);
        memset(&desc, 0, sizeof desc);
        one.first = one.last = random_count(&random, 0, (int)graph.node_count - 1);
        one.block_count = random_count(&random, 1, 3);
        desc.graph = &graph;
        desc.cuts = &one;
        desc.cut_count = 1;
        desc.alignment_bytes = UINT64_C(1) << random_count(&random, 0, 5);
        if (tl_cut_rows(&env, &desc, &plain)) {
            desc.cut_count = 0;
            assert_int_equal(tl_cut_rows(&env, &desc, &plain), TL_OK);
        }
        desc.binding_bytes = (uint64_t)random_count(&random, 1, 400);
        assert_int_equal(tl_cut_rows(&env, &desc, &rows), TL_OK);
        assert_int_equal(tl_check_graph(&env, &rows.graph), TL_OK);
        for (id = 0; id < graph.node_count; id++) {
            int32_t at = rows.first_members[rows.nodes[id]], was = plain.first_members[plain.nodes[id]];
            int is_cut = rows.first_members[rows.nodes[id] + 1] > at, was_cut = plain.first_members[plain.nodes[id] + 1] > was;
            uint64_t unit, most;
            if (graph.nodes[id].is_input) continue;
            unit = fewest_rows(&graph, id, desc.alignment_bytes);
            if (!was_cut) assert_int_equal(is_cut, unit && largest_operand(&graph, id, 0) > desc.binding_bytes);
            if (!is_cut || !unit) continue;
            most = desc.binding_bytes / largest_operand(&graph, id, rows.members[at].rows) / unit * unit;
            if (most < unit) most = unit;
            if (most > rows.members[at].rows) most = rows.members[at].rows;
            if (was_cut && most > plain.members[was].block_rows) most = plain.members[was].block_rows;
            assert_int_equal(rows.members[at].block_rows, most);
            alone += !was_cut;
            tiny += most == unit;
            raised += was_cut && most < plain.members[was].block_rows;
        }
        tl_free_rows_plan(&env, &rows);
        tl_free_rows_plan(&env, &plain);
        tl_free_graph(NULL, &graph);
    }
    {   // rows within others: what lies outside is whole in each call, so blocks are of no use
        tl_env env = silent_env();
        tl_graph graph = parse("tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=8@1\n"
                               "node 1 n1 op fwd=1 bwd=1 out=64 needs=in in=0 rows=8@1 rin=1:1\n");
        tl_cut_desc desc;
        tl_rows_plan rows;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.binding_bytes = 16;
        assert_int_equal(tl_cut_rows(&env, &desc, &rows), TL_OK);
        assert_int_equal(rows.region_count, 0);
        tl_free_rows_plan(&env, &rows);
        tl_free_graph(NULL, &graph);
    }
    print_message("%d nodes cut alone, %d into the smallest blocks, %d cuts into more\n", (int)alone, (int)tiny, (int)raised);
    assert_true(alone > count / 4 && tiny > count / 20 && raised > count / 40);
}
// A region of the last node alone, in four blocks, on a device that moves a byte in a nanosecond.
typedef struct moved {
    const char *lines;          // the costs are missing
    int32_t  forwards, backwards;   // turns of both
    uint64_t cost, forward, backward;
} moved;

// By hand: 64 bytes of x and of y by rows, a weight of 32 whole. Each further block moves the weight again, and in the
// backward its gradient twice; a call that takes longer than that takes no more.
static void what_is_whole_is_moved_for_each_block(void **state) {
#define WEIGHT(kind) "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\nstate 1 w sgd w=32" kind "\n"
#define LAST(out, needs, in, more) "out=" out " needs=" needs " in=" in " rows=8@0 rin=1:1,whole ordered" more "\n"
    static const char in[] = WEIGHT("") "node 2 y op fwd=%d bwd=%d " LAST("64", "in", "0,1", "");
    static const char none[] = WEIGHT("") "node 2 y op fwd=%d bwd=%d " LAST("64", "none", "0,1", "");
    static const char out[] = WEIGHT("") "node 2 y op fwd=%d bwd=%d " LAST("64", "out", "0,1", "");
    static const char frozen[] = WEIGHT(" frozen") LINE(2, "0", "") "node 3 y op fwd=%d bwd=%d " LAST("64", "in", "2,1", "");
    static const char loss[] = WEIGHT("") "node 2 y op fwd=%d bwd=%d " LAST("4", "in", "0,1", " reduces");
    static const moved cases[] = {
        { in, 1, 1, 1, 1 + 3 * 32, 1 + 3 * 96 }, { in, 1, 1, 1000, 1000, 1000 }, { in, 1, 1, 200, 128 + 4 * 32, 200 + 3 * 96 },
        { in, 1, 1, 300, 300, 128 + 4 * 96 }, { none, 1, 1, 1, 1 + 3 * 32, 1 + 3 * 64 }, { none, 1, 1, 150, 150 + 3 * 32, 64 + 4 * 64 },
        { out, 1, 1, 200, 128 + 4 * 32, 128 + 4 * 64 }, { frozen, 1, 1, 1, 1 + 3 * 32, 1 + 3 * 32 },
        { frozen, 1, 1, 300, 300, 256 + 4 * 32 }, { loss, 0, 2, 1, 0, 2 + 3 * 36 + 3 * 100 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const moved *m = &cases[i];
        tl_env env = silent_env();
        char text[512];
        tl_row_cut one = { 0, 0, 4 };
        tl_device device;
        tl_cut_desc desc;
        tl_graph graph;
        int32_t k;
        snprintf(text, sizeof text, m->lines, (int)m->cost, (int)m->cost);
        graph = parse(text);
        memset(&device, 0, sizeof device);
        memset(&desc, 0, sizeof desc);
        device.bytes_per_second = 1000000000;
        one.first = one.last = graph.node_count - 1;
        desc.graph = &graph;
        desc.cuts = &one;
        desc.cut_count = 1;
        desc.device = &device;
        for (k = 0; k < 3; k++) {       // calls that cost nothing, 7 nanoseconds of the device, 2 of the desc
            static const uint64_t costs[] = { 0, 7, 2 };
            tl_rows_plan rows;
            const tl_node *node;
            device.call_latency_ns = k ? 7 : 0;
            desc.call_cost = k == 2 ? 2 : 0;
            assert_int_equal(tl_cut_rows(&env, &desc, &rows), TL_OK);
            node = &rows.graph.nodes[one.last];
            if (node->fwd_cost != m->forward + costs[k] * 3 * (uint64_t)m->forwards || node->bwd_cost != m->backward + costs[k] * 3 * (uint64_t)m->backwards)
                fail_msg("case %d, %d: %lu, %lu", (int)i, (int)k, (unsigned long)node->fwd_cost, (unsigned long)node->bwd_cost);
            tl_free_rows_plan(&env, &rows);
        }
        tl_free_graph(&env, &graph);
    }
}

// To a gradient that there is not nothing is added, in whatever order, however often the tensor is read.
static void what_adds_to_no_gradient_need_not_be_ordered(void **state) {
    static const char *const texts[] = {
        HEAD LINE(1, "0", "rows=8@0 rin=whole"), "tlg 2\nstate 0 w sgd w=32 frozen\nnode 1 x input fwd=0 bwd=0 out=64 needs=none in=-\n" PLAIN(2, "1") LINE(3, "2,0", "rows=8@0 rin=1:1,whole"),
        BOTH LINE(2, "0,0", "rows=8@0 rin=1:1,whole ordered"),
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        tl_env env = silent_env();
        tl_graph graph = parse(texts[i]);
        tl_cut_desc desc;
        tl_rows_plan rows;
        memset(&desc, 0, sizeof desc);
        if (cut(&env, &graph, graph.node_count - 1, graph.node_count - 1, &desc, &rows)) fail_msg("case %d: %s", (int)i, env.error.text);
        tl_free_rows_plan(&env, &rows);
        tl_free_graph(&env, &graph);
    }
}

static void each_allocation_that_fails_is_reported(void **state) {
    tl_tensor seen = { 2, 0 };
    tl_row_cut cuts[2];
    tl_cut_desc desc;
    tl_graph graph;
    long at;
    (void)state;
    memset(&desc, 0, sizeof desc);
    graph = parse(BOTH LINE(2, "1", "rows=8@0 rin=1:1 saved=8") LINE(3, "2", "rows=8@0 rin=1:1 ordered reduces"));
    if (tl_add_view(NULL, &graph, "seen", seen, NULL)) fail();
    cuts[0].first = 1; cuts[0].last = 2; cuts[0].block_count = 4;
    cuts[1].first = 3; cuts[1].last = 3; cuts[1].block_count = 4;
    desc.graph = &graph;
    desc.cuts = cuts;
    desc.cut_count = 2;
    for (at = 0;; at++) {
        failing_alloc f;
        tl_env env;
        tl_rows_plan rows;
        tl_result result;
        memset(&f, 0, sizeof f);
        env = failing_env(&f, at);
        result = tl_cut_rows(&env, &desc, &rows);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        if (result) assert_null(rows.memory);
        tl_free_rows_plan(&env, &rows);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 8);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_that_cannot_be_cut_are_refused),
        cmocka_unit_test(a_desc_that_is_wrong_is_refused),
        cmocka_unit_test(regions_have_the_figures_of_a_model),
        cmocka_unit_test(regions_with_losses_have_the_figures_of_the_model),
        cmocka_unit_test(regions_have_what_their_members_have),
        cmocka_unit_test(blocks_are_units_that_keep_the_alignment),
        cmocka_unit_test(bindings_cut_what_is_larger),
        cmocka_unit_test(what_is_whole_is_moved_for_each_block),
        cmocka_unit_test(what_adds_to_no_gradient_need_not_be_ordered),
        cmocka_unit_test(each_allocation_that_fails_is_reported),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
