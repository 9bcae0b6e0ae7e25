// [12] RUN: plans of rows that are damaged: refused, or run without a byte outside of what operands name; and those that do
// not go with a run or its backend.
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

static uint32_t read_bytes;      // so that no read is left out

static void read_all(const tl_operand *operand) {
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) read_bytes += ((const uint8_t *)operand->host)[i];
}

static void write_all(const tl_operand *operand) {
    if (operand->range.bytes) memset(operand->host, 0, (size_t)operand->range.bytes);
}

static int lies_in(const tl_range *whole, const tl_range *part) {
    return part->block == whole->block && part->offset >= whole->offset && part->offset + part->bytes <= whole->offset + whole->bytes;
}

// Whether an operand lies in what the step has claimed.
static int is_held(const tl_run *run, const tl_operand *operand) {
    int32_t k;
    if (!operand->range.bytes || lies_in(&run->at.call.scratch.range, &operand->range)) return 1;
    for (k = 0; k < run->graph->tensor_count; k++)
        if (lies_in(&run->tensors[k].device.range, &operand->range) || lies_in(&run->gradients[k].device.range, &operand->range)) return 1;
    for (k = 0; k < run->at.call.twice_count; k++)
        if (lies_in(&run->at.call.twice[k].range, &operand->range)) return 1;
    return 0;
}

// A call is for whole units, and has of each operand the rows of the call, or all where it is read whole.
static void check_call(const tl_kernel_call *call) {
    const tl_node *node = &call->graph->nodes[call->node];
    const tl_node_rows *r = tli_find_rows(call->graph, call->node);
    int32_t k;
    if (!call->by_rows) return;
    for (k = 0; k < call->run->at.call.operand_count; k++) assert_true(is_held(call->run, &call->inputs[k]));   // one behind the other
    assert_true(r && call->total == r->rows && call->first % r->unit == 0 && call->count % r->unit == 0 && call->first + call->count <= r->rows);
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &call->graph->inputs[node->first_input + k];
        const tl_relation *relation = &call->graph->attributes->relations[r->first_relation + k];
        uint64_t all = call->graph->outputs[input->tensor].bytes, bytes = call->inputs[k].range.bytes;
        if (call->kind == TL_STEP_BACKWARD && !input->needed) assert_int_equal(bytes, 0);
        else if (!r->axis || bytes != all) assert_int_equal(bytes, relation->kind == TL_RELATION_SAME ? all / r->rows * call->count : all);
    }
}

// Touches each byte that it is given.
static tl_result touch(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    int32_t k;
    ++*(long *)user;
    check_call(call);
    for (k = 0; k < node->input_count; k++) read_all(&call->inputs[k]);
    for (k = 0; k < node->output_count; k++)
        if (call->kind == TL_STEP_BACKWARD) read_all(&call->outputs[k]); else write_all(&call->outputs[k]);
    for (k = 0; k < node->output_count && call->kind == TL_STEP_BACKWARD; k++) read_all(&call->output_grads[k]);
    for (k = 0; k < node->input_count && call->kind == TL_STEP_BACKWARD; k++) write_all(&call->input_grads[k]);
    if (call->kind == TL_STEP_BACKWARD) read_all(&call->saved); else write_all(&call->saved);
    write_all(&call->scratch);
    return TL_OK;
}

typedef struct bed {
    tl_backend backend;
    tl_graph graph;
    tl_rows_plan rows;
    tl_plan plan;
    long calls;
} bed;

// A run of a bed, with what desc says more.
static tl_result init_rows(bed *b, tl_env *env, tl_run_desc desc, tl_run **run) {
    tl_kernel kernels[2];
    memset(kernels, 0, sizeof kernels);
    kernels[0].op = "op"; kernels[0].forward = kernels[0].backward = touch; kernels[0].user = &b->calls;
    kernels[1].op = "sgd"; kernels[1].backward = touch; kernels[1].user = &b->calls;
    desc.graph = &b->graph;
    desc.backend = &b->backend;
    desc.kernels = kernels;
    desc.kernel_count = 2;
    desc.rows = &b->rows;
    desc.plan = &b->plan;
    return tl_init_run(env, &desc, run);
}

static tl_result try_rows(bed *b, tl_env *env) {
    tl_run_desc desc;
    tl_run *run;
    tl_result result;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    result = init_rows(b, env, desc, &run);
    if (result) return result;
    for (id = 0; id < b->graph.node_count && !result; id++) {
        static const uint8_t zeroes[4096];
        tl_tensor tensor = { id, 0 };
        uint64_t bytes = b->graph.outputs[b->graph.nodes[id].first_output].bytes;
        if (b->graph.nodes[id].is_input) result = tl_write_tensor(run, tensor, zeroes, (size_t)bytes);
    }
    if (!result) result = tl_run_plan(run);
    tl_free_run(run);
    return result;
}

// As many regions as are accepted, each of at most six nodes.
static void cut_all(bed *b, tl_env *env, tl_random *random, uint64_t alignment) {
    static tl_row_cut cuts[STEP_NODES];
    tl_cut_desc desc;
    int32_t id = 0;
    memset(&desc, 0, sizeof desc);
    desc.graph = &b->graph;
    desc.cuts = cuts;
    desc.alignment_bytes = alignment;
    while (id < b->graph.node_count) {
        int32_t last = id + random_count(random, 0, 5);
        tl_row_cut *cut = &cuts[desc.cut_count];
        cut->first = id++;
        cut->block_count = random_count(random, 1, 5);
        for (desc.cut_count++; last >= cut->first; last--) {
            cut->last = last;
            if (tl_cut_rows(env, &desc, &b->rows)) continue;
            tl_free_rows_plan(env, &b->rows);
            break;
        }
        if (last < cut->first) desc.cut_count--;
        else id = last + 1;
    }
    if (tl_cut_rows(env, &desc, &b->rows)) fail_msg("%s", env->error.text);
    if (tl_plan_keep_all(env, &b->rows.graph, 0, &b->plan)) fail_msg("%s", env->error.text);
}

static int64_t damage_of(tl_random *random, int64_t value) {
    switch (random_count(random, 0, 5)) {
    case 0: return value + 1;
    case 1: return value - 1;
    case 2: return 0;
    case 3: return random_count(random, 0, 20);
    case 4: return value + random_count(random, -64, 64);
    default: return (int64_t)tl_next_random_below(random, UINT64_MAX);
    }
}

enum { FIELDS = 27 };

// Damage one field of an entry; 0 = it is as it was, or there is none.
static int damage(bed *b, tl_random *random, int field) {
    tl_row_member *m = (tl_row_member *)(uintptr_t)b->rows.members + random_count(random, 0, b->rows.member_count - 1);
    tl_row_link *l = (tl_row_link *)(uintptr_t)b->rows.links + random_count(random, 0, b->rows.link_count - 1);
    tl_row_turn *t = (tl_row_turn *)(uintptr_t)b->rows.turns + random_count(random, 0, b->rows.turn_count - 1);
    int32_t *first_turns = (int32_t *)(uintptr_t)b->rows.first_turns, *forward_turns = (int32_t *)(uintptr_t)b->rows.forward_turns;
    int32_t *first_members = (int32_t *)(uintptr_t)b->rows.first_members, *nodes = (int32_t *)(uintptr_t)b->rows.nodes;
    int32_t id = random_count(random, 0, b->rows.graph.node_count), *narrow[FIELDS];
    uint64_t *wide[FIELDS];
    int64_t value;
    memset(narrow, 0, sizeof narrow);
    memset(wide, 0, sizeof wide);
    narrow[0] = &m->node; narrow[1] = &m->first_link; narrow[2] = &m->shares; narrow[3] = &m->takes_slots; narrow[4] = &m->again;
    wide[5] = &m->rows; wide[6] = &m->block_rows; wide[7] = &m->row_bytes; wide[8] = &m->ring_rows; wide[9] = &m->ring_offset;
    wide[10] = &m->again_offset; wide[11] = &m->saved_offset; wide[12] = &m->gradient_offset;
    narrow[13] = &l->member; narrow[14] = &l->relation.kind; narrow[15] = &l->relation.kernel; narrow[16] = &l->relation.stride;
    narrow[17] = &l->relation.padding; narrow[18] = &l->relation.dilation;
    narrow[19] = &t->member; wide[21] = &t->work_offset; wide[22] = &t->work_bytes;
    narrow[23] = &first_turns[id]; narrow[24] = &forward_turns[id < b->rows.graph.node_count ? id : 0]; narrow[25] = &first_members[id];
    narrow[26] = &nodes[random_count(random, 0, b->graph.node_count - 1)];
    if (field == 20) {
        uint8_t kept = t->kind;
        t->kind = (uint8_t)damage_of(random, kept);
        return t->kind != kept;
    }
    value = narrow[field] ? *narrow[field] : (int64_t)*wide[field];
    if (narrow[field]) *narrow[field] = (int32_t)damage_of(random, value);
    else *wide[field] = (uint64_t)damage_of(random, value);
    return narrow[field] ? *narrow[field] != value : *wide[field] != (uint64_t)value;
}

static uint64_t plan_bytes(const bed *b) {
    uint64_t nodes = (uint64_t)b->graph.node_count;
    return nodes * (sizeof(tl_row_member) + 3 * sizeof(tl_row_turn) + 4 * sizeof(int32_t)) +
           (uint64_t)b->graph.input_count * sizeof(tl_row_link) + 2 * sizeof(int32_t);
}

static void damaged_plans_are_refused_or_stay_inside(void **state) {
    int32_t count = scaled(400), i, k, plans = 0, refused = 0, ran = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        static bed b;
        tl_env env = silent_env();
        tl_random random = { (uint64_t)i + 1 };
        tl_cpu_backend_desc cpu;
        uint64_t bytes;
        void *kept;
        memset(&b, 0, sizeof b);
        memset(&cpu, 0, sizeof cpu);
        cpu.checked = random_chance(&random, 50);
        cpu.alignment_bytes = UINT64_C(4) << random_count(&random, 0, 3);
        random_row_step(&random, 12, &b.graph);
        if (tl_init_cpu_backend(&env, &cpu, &b.backend)) fail_msg("%s", env.error.text);
        cut_all(&b, &env, &random, cpu.alignment_bytes << random_count(&random, 0, 1));
        if (try_rows(&b, &env)) fail_msg("%d: %s", (int)i, env.error.text);
        bytes = plan_bytes(&b);
        kept = malloc((size_t)bytes);
        memcpy(kept, b.rows.memory, (size_t)bytes);
        for (k = 0; k < 8 * FIELDS && b.rows.turn_count; k++) {
            int times = random_chance(&random, 80) ? 1 : random_count(&random, 2, 4), damaged = 0;
            tl_result result;
            while (times--) damaged |= damage(&b, &random, times ? random_count(&random, 0, FIELDS - 1) : k % FIELDS);
            result = try_rows(&b, &env);
            // offsets within the scratch that let operands of a call overlap: a checked backend says so
            if (result && (result != TL_ERROR_INVALID_ARG || !strstr(env.error.text, strncmp(env.error.text, "tl_init_run", 11) ? ": map: " : "rows: not made of the graph")))
                fail_msg("%d, field %d: %s", (int)i, k % FIELDS, env.error.text);
            plans += damaged;
            refused += result != TL_OK;
            ran += damaged && !result;
            memcpy(b.rows.memory, kept, (size_t)bytes);
        }
        free(kept);
        if (try_rows(&b, &env)) fail_msg("%d: %s", (int)i, env.error.text);
        tl_free_plan(&env, &b.plan);
        tl_free_rows_plan(&env, &b.rows);
        tl_free_graph(&env, &b.graph);
        tl_free_cpu_backend(&env, &b.backend);
    }
    print_message("%d damaged plans: %d refused, %d run\n", (int)plans, (int)refused, (int)ran);
    assert_true(refused * 4 > plans * 3);
}

// -- plans that do not go with a run --

// A region from the second node that is no state to the last one, in blocks.
static void cut_text(bed *b, tl_env *env, const char *lines, int count, int32_t blocks, const tl_cut_desc *more) {
    tl_cut_desc desc = *more;
    tl_row_cut cut;
    char text[512];
    snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=80 needs=none in=-\n%send %d\n", lines, count);
    if (tl_parse_graph(env, text, strlen(text), &b->graph)) fail_msg("%s: %s", text, env->error.text);
    for (cut.first = 1; b->graph.nodes[cut.first].is_input; cut.first++) {}
    cut.last = b->graph.node_count - 1;
    cut.block_count = blocks;
    desc.graph = &b->graph;
    desc.cuts = &cut;
    desc.cut_count = 1;
    if (tl_cut_rows(env, &desc, &b->rows)) fail_msg("%s: %s", text, env->error.text);
    if (tl_plan_keep_all(env, &b->rows.graph, desc.inference, &b->plan)) fail_msg("%s", env->error.text);
}

static void close_bed(bed *b, tl_env *env) {
    tl_free_plan(env, &b->plan);
    tl_free_rows_plan(env, &b->rows);
    tl_free_graph(env, &b->graph);
    tl_free_cpu_backend(env, &b->backend);
}

static void open_backend(bed *b, tl_env *env, uint64_t alignment) {
    tl_cpu_backend_desc cpu;
    memset(b, 0, sizeof *b);
    memset(&cpu, 0, sizeof cpu);
    cpu.alignment_bytes = alignment;
    cpu.checked = 1;
    assert_int_equal(tl_init_cpu_backend(env, &cpu, &b->backend), TL_OK);
}

// What a plan for less than the backend's alignment reads outside would begin between two multiples of it.
static void blocks_between_multiples_of_the_alignment_are_refused(void **state) {
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        tl_env env = silent_env();
        tl_cut_desc desc;
        bed b;
        memset(&desc, 0, sizeof desc);
        desc.alignment_bytes = k ? 64 : 16;
        open_backend(&b, &env, 64);
        cut_text(&b, &env, "node 1 a op fwd=1 bwd=1 out=80 needs=in in=0 rows=10@0 rin=1:1\n", 2, 5, &desc);
        assert_int_equal(try_rows(&b, &env), k ? TL_OK : TL_ERROR_INVALID_ARG);
        close_bed(&b, &env);
    }
}

static tl_backend_limits with_binding;

static void limits_with_binding(void *self, tl_backend_limits *limits) {
    (void)self;
    *limits = with_binding;
}

// Two blocks of five rows each: the largest operand of their calls fits, and a byte less is refused.
static void the_largest_operand_of_a_block_must_fit_a_binding(void **state) {
#define OP(id, out, in, rows, more) "node " #id " n" #id " op fwd=1 bwd=1 out=" out " needs=none in=" in " rows=10@" rows " rin=" more "\n"
    static const struct { const char *lines; int count; uint64_t bytes; } cases[] = {
        { OP(1, "160", "0", "0", "1:1"), 2, 80 },                           // its output
        { OP(1, "40", "0", "0", "1:1"), 2, 40 },                            // its input
        { OP(1, "160", "0", "0", "1:1 fwork=200"), 2, 100 },                // half of the scratch
        { OP(1, "160", "0", "0", "1:1 bwork=301"), 2, 151 },
        { OP(1, "160", "0", "0", "1:1 saved=10 swork=500"), 2, 250 },
        { OP(1, "160", "0", "0", "1:1 saved=400"), 2, 200 },                // half of the saved bytes
        { OP(1, "160", "0", "1", "1:1"), 2, 160 },                          // along another axis it is whole outside,
        { OP(1, "400", "0", "1", "1:1") OP(2, "160", "1", "1", "1:1"), 3, 200 },    // and rows inside
        { OP(1, "400", "0", "0", "1:1") OP(2, "80", "1", "0", "1:1"), 3, 200 },
        { OP(1, "40", "0", "0", "1:1") OP(2, "160", "1", "0", "1:1"), 3, 80 },
        { "state 1 w sgd w=300 hold\n" OP(2, "80", "0,1", "0", "1:1,whole ordered"), 3, 300 },
    };
    size_t i;
    int k;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        for (k = 0; k < 2; k++) {
            tl_env env = silent_env();
            tl_cut_desc desc;
            bed b;
            memset(&desc, 0, sizeof desc);
            open_backend(&b, &env, 4);
            b.backend.limits(b.backend.self, &with_binding);
            with_binding.binding_bytes = cases[i].bytes - (uint64_t)k;
            b.backend.limits = limits_with_binding;
            desc.alignment_bytes = 4;
            cut_text(&b, &env, cases[i].lines, cases[i].count, 2, &desc);
            if (try_rows(&b, &env) != (k ? TL_ERROR_UNSUPPORTED : TL_OK)) fail_msg("case %d, %d: %s", (int)i, k, env.error.text);
            if (k) assert_int_equal(env.error.values[1], cases[i].bytes);
            close_bed(&b, &env);
        }
}

static void plans_of_another_kind_are_refused(void **state) {
    static const char *const sentences[] = { NULL, "rows: are of a training", "rows: go with f32 alone" };
    int k;
    (void)state;
    for (k = 0; k < 3; k++) {
        tl_env env = silent_env();
        tl_cut_desc cut;
        tl_run_desc desc;
        tl_run *run;
        tl_strategy strategy;
        tl_result result;
        bed b;
        memset(&cut, 0, sizeof cut);
        memset(&desc, 0, sizeof desc);
        memset(&strategy, 0, sizeof strategy);
        open_backend(&b, &env, 4);
        cut_text(&b, &env, OP(1, "160", "0", "0", "1:1"), 2, 2, &cut);
        if (k == 1) {       // forwards alone, of a graph with backwards
            tl_free_plan(&env, &b.plan);
            assert_int_equal(tl_plan_keep_all(&env, &b.rows.graph, 1, &b.plan), TL_OK);
        }
        strategy.mode = TL_MODE_LAZY;
        strategy.gradient.computes = 1;
        strategy.precision = TL_PRECISION_HALF;
        desc.kernel_precisions = 1u << TL_PRECISION_HALF | 1u << TL_PRECISION_SINGLE;
        if (k == 2) desc.strategy = &strategy;
        result = init_rows(&b, &env, desc, &run);
        if (result != (sentences[k] ? TL_ERROR_INVALID_ARG : TL_OK)) fail_msg("%d: %s", k, env.error.text);
        if (sentences[k] && !strstr(env.error.text, sentences[k])) fail_msg("%s", env.error.text);
        tl_free_run(run);
        close_bed(&b, &env);
    }
}

// -- plans that leave something out --

static int is_refused(bed *b, tl_env *env) {
    tl_run_desc desc;
    tl_run *run;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    result = init_rows(b, env, desc, &run);
    tl_free_run(run);
    return result == TL_ERROR_INVALID_ARG && strstr(env->error.text, "rows: not made of the graph");
}

// Move the turns of all regions behind one by so many, from a turn of it on.
static void move_turns(bed *b, int32_t region, int32_t at, int32_t by) {
    tl_row_turn *turns = (tl_row_turn *)(uintptr_t)b->rows.turns;
    int32_t *first_turns = (int32_t *)(uintptr_t)b->rows.first_turns, id, from = at - (by < 0 ? by : 0);
    memmove(&turns[from + by], &turns[from], (size_t)(b->rows.turn_count - from) * sizeof *turns);
    for (id = region + 1; id <= b->rows.graph.node_count; id++) first_turns[id] += by;
    b->rows.turn_count += by;
}

// Whether a plan in which a member makes nothing again is refused.
static int is_again_missed(bed *b, tl_env *env, int32_t region, int32_t at) {
    tl_row_member *m = (tl_row_member *)(uintptr_t)b->rows.members + b->rows.first_members[region] + at;
    int32_t k = b->rows.first_turns[region] + b->rows.forward_turns[region];
    tl_row_turn kept;
    int result;
    while (b->rows.turns[k].member != at) k++;
    kept = b->rows.turns[k];
    move_turns(b, region, k, -1);
    m->again = 0;
    result = is_refused(b, env);
    m->again = 1;
    move_turns(b, region, k, 1);
    ((tl_row_turn *)(uintptr_t)b->rows.turns)[k] = kept;
    return result;
}

// Each flag of what a region's backward needs, each output, and each turn is missed.
static void plans_that_leave_something_out_are_refused(void **state) {
    int32_t count = scaled(300), i, id, at, k, tried = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_random random = { (uint64_t)i + 1 };
        static tl_row_turn turns[3 * STEP_NODES];
        bed b;
        open_backend(&b, &env, 4);
        random_row_step(&random, 12, &b.graph);
        cut_all(&b, &env, &random, 4);
        memcpy(turns, b.rows.turns, (size_t)b.rows.turn_count * sizeof *turns);
        for (id = 0; id < b.rows.graph.node_count; id++) {
            const tl_node *node = &b.rows.graph.nodes[id];
            if (b.rows.first_members[id] == b.rows.first_members[id + 1]) continue;
            for (k = node->first_input; k < node->first_input + node->input_count; k++) {
                tl_node_input *input = (tl_node_input *)(uintptr_t)&b.rows.graph.inputs[k];
                if (!input->needed) continue;
                input->needed = 0;
                if (!is_refused(&b, &env)) fail_msg("%d: input %d of node %d", (int)i, (int)(k - node->first_input), (int)id);
                input->needed = 1;
                tried++;
            }
            for (k = node->first_output; k < node->first_output + node->output_count; k++) {
                tl_node_output *output = (tl_node_output *)(uintptr_t)&b.rows.graph.outputs[k];
                if (!output->needed || tli_is_late(node)) continue;
                output->needed = 0;
                if (!is_refused(&b, &env)) fail_msg("%d: output %d of node %d", (int)i, (int)(k - node->first_output), (int)id);
                output->needed = 1;
                tried++;
            }
            for (at = 0; at < b.rows.first_members[id + 1] - b.rows.first_members[id]; at++) {
                tl_row_member *m = (tl_row_member *)(uintptr_t)b.rows.members + b.rows.first_members[id] + at;
                uint64_t rows = m->ring_rows;
                if (m->again && !is_again_missed(&b, &env, id, at)) fail_msg("%d: member %d of node %d is not made again", (int)i, (int)at, (int)id);
                m->ring_rows = rows ? 0 : m->block_rows;
                if (!is_refused(&b, &env)) fail_msg("%d: ring of member %d of node %d", (int)i, (int)at, (int)id);
                m->ring_rows = rows;
                tried++;
            }
            if (b.rows.turn_count + 1 <= 3 * b.graph.node_count) {      // the last turn once more
                move_turns(&b, id, b.rows.first_turns[id + 1], 1);
                ((tl_row_turn *)(uintptr_t)b.rows.turns)[b.rows.first_turns[id + 1] - 1] = b.rows.turns[b.rows.first_turns[id + 1] - 2];
                if (!is_refused(&b, &env)) fail_msg("%d: a turn more of node %d", (int)i, (int)id);
                move_turns(&b, id, b.rows.first_turns[id + 1] - 1, -1);
            }
            assert_memory_equal(turns, b.rows.turns, (size_t)b.rows.turn_count * sizeof *turns);
        }
        if (is_refused(&b, &env)) fail_msg("%d: %s", (int)i, env.error.text);
        close_bed(&b, &env);
    }
    assert_true(tried > 2 * count);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_plans_are_refused_or_stay_inside),
        cmocka_unit_test(blocks_between_multiples_of_the_alignment_are_refused),
        cmocka_unit_test(the_largest_operand_of_a_block_must_fit_a_binding),
        cmocka_unit_test(plans_of_another_kind_are_refused),
        cmocka_unit_test(plans_that_leave_something_out_are_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
