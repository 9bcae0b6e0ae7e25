// [12] RUN: plans of rows that are damaged: refused, or run without a byte outside of what operands name.
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

// Touches each byte that it is given.
static tl_result touch(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    int32_t k;
    ++*(long *)user;
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

static tl_result try_rows(bed *b, tl_env *env) {
    tl_run_desc desc;
    tl_kernel kernels[2];
    tl_run *run;
    tl_result result;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    memset(kernels, 0, sizeof kernels);
    kernels[0].op = "op"; kernels[0].forward = kernels[0].backward = touch; kernels[0].user = &b->calls;
    kernels[1].op = "sgd"; kernels[1].backward = touch; kernels[1].user = &b->calls;
    desc.graph = &b->graph;
    desc.backend = &b->backend;
    desc.kernels = kernels;
    desc.kernel_count = 2;
    desc.rows = &b->rows;
    desc.plan = &b->plan;
    result = tl_init_run(env, &desc, &run);
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

// What a plan for less than the backend's alignment reads outside would begin between two multiples of it.
static void blocks_between_multiples_of_the_alignment_are_refused(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=80 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=80 needs=in in=0 rows=10@0 rin=1:1\nend 2\n";
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_cut_desc desc;
    tl_row_cut cut = { 1, 1, 5 };
    bed b;
    int k;
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    memset(&b, 0, sizeof b);
    memset(&desc, 0, sizeof desc);
    cpu.alignment_bytes = 64;
    cpu.checked = 1;
    assert_int_equal(tl_parse_graph(&env, text, sizeof text - 1, &b.graph), TL_OK);
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &b.backend), TL_OK);
    desc.graph = &b.graph;
    desc.cuts = &cut;
    desc.cut_count = 1;
    for (k = 0; k < 2; k++) {
        desc.alignment_bytes = k ? 64 : 16;
        assert_int_equal(tl_cut_rows(&env, &desc, &b.rows), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &b.rows.graph, 0, &b.plan), TL_OK);
        assert_int_equal(try_rows(&b, &env), k ? TL_OK : TL_ERROR_INVALID_ARG);
        tl_free_plan(&env, &b.plan);
        tl_free_rows_plan(&env, &b.rows);
    }
    tl_free_cpu_backend(&env, &b.backend);
    tl_free_graph(&env, &b.graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_plans_are_refused_or_stay_inside),
        cmocka_unit_test(blocks_between_multiples_of_the_alignment_are_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
