// [12] RUN on a checked backend: a kernel that writes one byte beside an operand is found after its call, without a sanitizer,
// and one sentence names its op, the operand and the side.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

// -- a chain of ops with operands of all kinds --
//
//     x, z (inputs) --> op 2 --> op 3 --> .. --> op OPS + 1; each op reads the one before and z

enum { OPS = 4, NODES = OPS + 2 };

typedef enum victim { INPUT, OUTPUT, OUTPUT_GRADIENT, INPUT_GRADIENT, SAVED, SCRATCH, VICTIMS } victim;

static const char *const victim_names[VICTIMS] = {
    "input 0", "output 0", "output gradient 0", "input gradient 0", "the saved bytes", "the scratch"
};

// Which byte beside which operand is written by which call; node < 0: none.
typedef struct overrun {
    int32_t node;
    int     backward, behind, distance, flips;
    victim  victim;
    unsigned char value;
    long    done;
} overrun;

static tl_operand operand_of(const tl_kernel_call *call, victim which) {
    tl_operand none;
    memset(&none, 0, sizeof none);
    return which == INPUT ? call->inputs[0] : which == OUTPUT ? call->outputs[0] : which == SAVED ? call->saved
         : which == SCRATCH ? call->scratch : call->kind != TL_STEP_BACKWARD ? none
         : which == OUTPUT_GRADIENT ? call->output_grads[0] : call->input_grads[0];
}

static tl_result step_aside(const tl_kernel_call *call, overrun *o) {
    tl_operand operand = operand_of(call, o->victim);
    unsigned char *at = (unsigned char *)operand.host;
    if (call->node != o->node || (call->kind == TL_STEP_BACKWARD) != o->backward || !at) return TL_OK;
    at += o->behind ? (ptrdiff_t)operand.range.bytes + o->distance : -1 - o->distance;
    *at = o->flips ? (unsigned char)(*at ^ o->value) : o->value;
    o->done++;
    return TL_OK;
}

static unsigned char sum_of(const tl_operand *operand) {
    const unsigned char *at = (const unsigned char *)operand->host;
    unsigned char sum = 1;
    uint64_t i;
    for (i = 0; at && i < operand->range.bytes; i++) sum = (unsigned char)(sum * 5 + at[i]);
    return sum;
}

static void fill_with(const tl_operand *operand, unsigned char value, int adds) {
    unsigned char *at = (unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; at && i < operand->range.bytes; i++) at[i] = (unsigned char)((adds ? at[i] : 0) + value + i);
}

static tl_result plain_forward(const tl_kernel_call *call, void *user) {
    unsigned char sum = (unsigned char)(sum_of(&call->inputs[0]) + sum_of(&call->inputs[1]));
    fill_with(&call->scratch, 3, 0);
    fill_with(&call->outputs[0], sum, 0);
    if (call->kind == TL_STEP_FORWARD_SAVE) fill_with(&call->saved, (unsigned char)(sum + 1), 0);
    return step_aside(call, (overrun *)user);
}

static tl_result plain_backward(const tl_kernel_call *call, void *user) {
    unsigned char sum = (unsigned char)(sum_of(&call->output_grads[0]) + sum_of(&call->saved) + sum_of(&call->inputs[0]));
    fill_with(&call->scratch, sum, 0);
    fill_with(&call->input_grads[0], sum, 1);
    fill_with(&call->input_grads[1], sum, 1);
    return step_aside(call, (overrun *)user);
}

typedef struct chain {
    tl_op     ops[NODES];
    tl_tensor reads[NODES][2];
    char      names[NODES][8];
    overrun   o;
} chain;

static void chain_open(chain *c, tl_random *random) {
    int32_t i;
    memset(c, 0, sizeof *c);
    c->o.node = -1;
    for (i = 0; i < NODES; i++) {
        tl_op *op = &c->ops[i];
        snprintf(c->names[i], sizeof c->names[i], "op%d", (int)i);
        op->name = c->names[i];
        op->output_bytes = 1 + tl_next_random_below(random, 140);
        if (i < 2) { op->kind = "input"; continue; }
        c->reads[i][0].node = i == 2 ? 0 : i - 1;
        c->reads[i][1].node = 1;
        op->inputs = c->reads[i];
        op->input_count = 2;
        op->needs = "in0";
        op->saved_bytes = 1 + tl_next_random_below(random, 70);
        op->fwork_bytes = 1 + tl_next_random_below(random, 70);
        op->bwork_bytes = 1 + tl_next_random_below(random, 70);
        op->forward = plain_forward;
        op->backward = plain_backward;
        op->user = &c->o;
    }
    c->ops[NODES - 1].keep = 1;
}

typedef struct way {
    uint64_t alignment;
    double   ratio;
    int      deferred, by_steps, in_flight, steps;
} way;

// Carry out a step of training. Returns the result; the sentence is that of the env.
static tl_result chain_run(chain *c, const way *w, tl_env *env, tl_env *backend_env) {
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_backend backend;
    tl_run *run;
    tl_result result;
    int32_t done = 0;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    cpu.checked = 1;
    cpu.deferred = w->deferred;
    cpu.alignment_bytes = w->alignment;
    if (tl_init_cpu_backend(backend_env, &cpu, &backend)) fail_msg("%s", backend_env->error.text);
    desc.backend = &backend;
    desc.budget_ratio = w->ratio;
    desc.in_flight = w->in_flight;
    desc.work_limit = 20000;
    if (tl_init_op_run(env, &desc, c->ops, NODES, &run)) fail_msg("%s", env->error.text);
    if (w->by_steps) {
        result = tl_start_pass(run, 0);
        while (!result && !done) {
            tl_run_step step;
            result = tl_next_step(run, &step, &done);
            if (result || done || !step.is_compute) continue;
            if (step.call.kind == TL_STEP_BACKWARD) result = step.kernel->backward(&step.call, step.kernel->user);
            else result = step.kernel->forward(&step.call, step.kernel->user);
            if (!result) result = tl_finish_step(run, &step);
        }
    } else {
        result = tl_run_plan(run);
        for (done = 1; done < w->steps && !result; done++) result = tl_run_plan(run);
    }
    tl_free_run(run);
    assert_int_equal(tl_free_cpu_backend(backend_env, &backend), TL_OK);
    return result;
}

static const way ways[] = {
    {0, 0, 0, 0, 0, 1}, {1, 0, 0, 1, 0, 1}, {16, 0, 1, 0, 0, 2}, {128, 0, 0, 0, 2, 3}, {256, 0, 1, 1, 0, 1},
    {8, 0.98, 0, 0, 0, 2},  // the last one is planned within a budget, which takes longest
};

enum { WAYS = sizeof ways / sizeof *ways, QUICK_WAYS = WAYS - 1 };

static void right_kernels_are_left_alone(void **state) {
    tl_random random = {3};
    int turn;
    (void)state;
    for (turn = 0; turn < 60; turn++) {
        static chain c;
        tl_env env = silent_env(), other = silent_env();
        chain_open(&c, &random);
        if (chain_run(&c, &ways[turn % WAYS], &env, turn & 1 ? &env : &other)) fail_msg("turn %d: %s", turn, env.error.text);
    }
}

// Any byte up to the length of a guard, before and behind, of every operand of a forward and of a backward.
static void one_byte_beside_an_operand_is_named(void **state) {
    tl_random random = {5};
    int turn, kinds[VICTIMS][2][2] = {{{0}}}, i;
    (void)state;
    if (SANITIZED) return;      // it ends the program at the byte
    for (turn = 0; turn < (is_slow() ? 200 : 400); turn++) {
        static chain c;
        const way *w = &ways[turn % QUICK_WAYS];
        tl_env env = silent_env(), other = silent_env();
        char expected[200];
        overrun *o = &c.o;
        tl_result result;
        chain_open(&c, &random);
        o->node = 2 + (int32_t)tl_next_random_below(&random, OPS);
        o->backward = turn / 2 % 2;
        o->behind = turn % 2;
        o->victim = (victim)tl_next_random_below(&random, VICTIMS);
        o->distance = turn % 3 ? 0 : (int)tl_next_random_below(&random, 64);
        o->flips = 1;
        o->value = (unsigned char)(1 + tl_next_random_below(&random, 255));
        result = chain_run(&c, w, &env, turn & 4 ? &env : &other);
        if (!o->done) {     // no such operand in that call
            if (result) fail_msg("turn %d: %s", turn, env.error.text);
            continue;
        }
        kinds[o->victim][o->backward][o->behind]++;
        snprintf(expected, sizeof expected, " op%d): the kernel wrote %s byte of %s", (int)o->node,
                 o->behind ? "behind the last" : "before the first", victim_names[o->victim]);
        if (result != TL_ERROR_CORRUPT || !strstr(env.error.text, expected) || (strstr(env.error.text, "(B op") != NULL) != o->backward)
            fail_msg("turn %d, %s: %d %s", turn, expected, (int)result, env.error.text);
    }
    for (i = 0; i < VICTIMS; i++) {
        if (i == INPUT || i == OUTPUT || i == SAVED || i == SCRATCH) assert_true(kinds[i][0][0] && kinds[i][0][1]);
        if (i != OUTPUT) assert_true(kinds[i][1][0] && kinds[i][1][1]);     // needs name input 0 alone
    }
}

// A byte of any value: where the pattern of a guard hides it in one call, that of another call does not.
static void no_value_hides_in_the_pattern(void **state) {
    static const way long_way = {0, 0, 0, 0, 0, 4};
    tl_random random = {9};
    int value;
    (void)state;
    if (SANITIZED) return;      // it ends the program at the byte
    for (value = 0; value < 256; value += is_slow() ? 5 : 1) {
        static chain c;
        tl_env env = silent_env();
        chain_open(&c, &random);
        c.o.node = 3;
        c.o.behind = value & 1;
        c.o.victim = value & 2 ? OUTPUT : INPUT;
        c.o.value = (unsigned char)value;
        if (chain_run(&c, &long_way, &env, &env) != TL_ERROR_CORRUPT) fail_msg("value %d", value);
    }
}

// What may only be read is named, too.
static void what_a_kernel_may_only_read_is_named(void **state) {
    tl_random random = {11};
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        static chain c;
        tl_env env = silent_env();
        const char *expected = i ? "(B op4): the kernel wrote to output gradient 0, but may only read that"
                                 : "op4): the kernel wrote to input 0, but may only read that";
        chain_open(&c, &random);
        c.o.node = 4;
        c.o.backward = i;
        c.o.victim = i ? OUTPUT_GRADIENT : INPUT;
        c.o.distance = -1;      // the first byte
        c.o.flips = 1;
        c.o.value = 1;
        assert_int_equal(chain_run(&c, &ways[0], &env, &env), TL_ERROR_CORRUPT);
        if (!strstr(env.error.text, expected)) fail_msg("%s", env.error.text);
    }
}

// Copies lie as their ranges do.
static void copies_have_the_alignment_of_the_backend(void **state) {
    uint64_t alignment;
    (void)state;
    for (alignment = 1; alignment <= 512; alignment *= 2) {
        tl_cpu_backend_desc cpu = {0};
        tl_env env = silent_env();
        tl_backend backend;
        tl_range range = {0};
        uint64_t bytes;
        cpu.checked = 1;
        cpu.alignment_bytes = alignment;
        if (tl_init_cpu_backend(&env, &cpu, &backend)) fail();
        assert_int_equal(backend.add_block(backend.self, TL_TIER_DEVICE, 1000, &range.block), TL_OK);
        for (bytes = 1; bytes < 300; bytes += 7) {
            int side;
            range.bytes = bytes;
            assert_int_equal(backend.claim(backend.self, range), TL_OK);
            for (side = 0; side < (SANITIZED ? 1 : 3); side++) {    // it ends the program at the byte
                tl_map_mode mode = bytes & 1 ? TL_MAP_CHANGE : TL_MAP_WRITE;
                unsigned char *at;
                void *host;
                assert_int_equal(backend.map(backend.self, range, mode, &host), TL_OK);
                assert_int_equal((uintptr_t)host & (alignment - 1), 0);
                at = (unsigned char *)host;
                memset(at, 1, (size_t)bytes);
                if (side == 1) at[bytes] ^= 255;
                if (side == 2) at[-1] ^= 1;
                assert_int_equal(backend.unmap(backend.self, range, mode, host), side ? TL_ERROR_CORRUPT : TL_OK);
                if (side)
                    assert_string_equal(env.error.text, side == 1 ? "unmap: bytes behind a mapped range were written"
                                                                  : "unmap: bytes before a mapped range were written");
            }
            assert_int_equal(backend.release(backend.self, range), TL_OK);
        }
        assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_kernels_are_left_alone),
        cmocka_unit_test(one_byte_beside_an_operand_is_named),
        cmocka_unit_test(no_value_hides_in_the_pattern),
        cmocka_unit_test(what_a_kernel_may_only_read_is_named),
        cmocka_unit_test(copies_have_the_alignment_of_the_backend),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
