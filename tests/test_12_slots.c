// [12] RUN: plans whose steps are of several micro-batches that are under way together. Each micro-batch gets the inputs,
// seeds, results and gradients of a run of its own; sums are taken in the order of the steps; planned peaks are measured.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/narrow.h"
#include "support/run_support.h"
#include "support/run_bed.h"

enum { MOST_BATCHES = 12, MOST_TENSORS = 64, MOST_BYTES = 256, STEPS = 2 };

// What every forward has made, by training step, micro-batch and tensor: what an entry is written with.
static unsigned char made[STEPS][MOST_BATCHES][MOST_TENSORS][MOST_BYTES];

// What a training step of several micro-batches leaves behind.
typedef struct outcome {
    mixer    mixers[MOST_BATCHES];    // what the kernels of each micro-batch saw
    uint64_t results[MOST_BATCHES];   // a checksum of its results
    uint64_t sums[MIXER_NODES];       // per node: its parameter gradient, in the order of the calls
    uint8_t  is_result[256];
    int32_t  slot_count, batch_count;
    int      records;                 // 1 = what is made is written down
    const tl_plan *plan;
    bed     *b;
} outcome;

static tl_result outcome_forward(const tl_kernel_call *call, void *user) {
    const outcome *o = (const outcome *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    tl_result result = mixer_forward(call, &((outcome *)user)->mixers[call->micro_batch]);
    int32_t i;
    for (i = 0; i < node->output_count && o->records; i++) {
        uint64_t bytes = call->outputs[i].range.bytes;
        assert_true(bytes <= MOST_BYTES && node->first_output + i < MOST_TENSORS && call->step < STEPS);
        if (bytes) memcpy(made[call->step][call->micro_batch][node->first_output + i], call->outputs[i].host, (size_t)bytes);
    }
    return result;
}

static tl_result outcome_backward(const tl_kernel_call *call, void *user) {
    outcome *o = (outcome *)user;
    mixer *m = &o->mixers[call->micro_batch];
    tl_result result;
    m->gradients[call->node] = 0;
    result = mixer_backward(call, m);
    o->sums[call->node] = tl_mix_u64(o->sums[call->node], m->gradients[call->node]);
    return result;
}

static uint64_t read_results(outcome *o) {
    const tl_graph *graph = o->b->graph;
    unsigned char bytes[512];
    uint64_t sum = 1, k;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        tl_tensor tensor;
        if (!o->is_result[i]) continue;
        tensor.node = graph->outputs[i].node;
        tensor.output = graph->outputs[i].output;
        assert_int_equal(tl_read_tensor(o->b->run, tensor, bytes, graph->outputs[i].bytes), TL_OK);
        for (k = 0; k < graph->outputs[i].bytes; k++) sum = tl_mix_u64(sum, bytes[k]);
    }
    return sum;
}

// Write the entry of a micro-batch: what its forwards made.
static void write_entry(const outcome *o, int32_t micro_batch) {
    long step = (o->b->loads - 1) / o->batch_count;
    int32_t i;
    for (i = 0; i < o->plan->entry_count; i++) {
        const tl_entry *entry = &o->plan->entry[i];
        int32_t index = o->b->graph->nodes[entry->node].first_output + entry->output;
        tl_tensor tensor;
        if (entry->slot != micro_batch % o->slot_count) continue;
        tensor.node = entry->node;
        tensor.output = entry->output;
        assert_int_equal(tl_write_tensor(o->b->run, tensor, made[step][micro_batch][index], o->b->graph->outputs[index].bytes), TL_OK);
    }
}

// The results of the pass before are there until the next one begins, or the entry is written.
static tl_result outcome_load(tl_run *run, int32_t micro_batch, void *user) {
    outcome *o = (outcome *)user;
    int32_t slot;
    tl_result result;
    for (slot = 0; slot < o->slot_count && micro_batch && micro_batch % o->slot_count == 0; slot++) {
        assert_int_equal(tl_choose_slot(run, slot), TL_OK);
        o->results[micro_batch - o->slot_count + slot] = read_results(o);
    }
    assert_int_equal(tl_choose_slot(run, micro_batch % o->slot_count), TL_OK);
    mixer_start_pass(&o->mixers[micro_batch]);
    result = bed_load(run, micro_batch, o->b);
    write_entry(o, micro_batch);
    return result;
}

static void open_slots(const tl_graph *graph, const tl_plan *plan, int kind, uint64_t seed, bed *b, outcome *o) {
    int32_t i;
    memset(o, 0, sizeof *o);
    for (i = 0; i < MOST_BATCHES; i++) mixer_init(&o->mixers[i]);
    o->slot_count = tli_count_slots(plan);
    o->b = b;
    o->plan = plan;
    tli_mark_results(graph, plan->inference, o->is_result);
    bed_open(b, graph, kind < 0 ? 0 : kind, seed, 4);
    for (i = 0; i < b->desc.kernel_count; i++) {
        b->kernels[i].forward = outcome_forward;
        b->kernels[i].backward = outcome_backward;
        b->kernels[i].user = o;
    }
    b->desc.load = outcome_load;
    b->desc.load_user = o;
    b->desc.plan = plan;
}

// Two training steps of a plan; the outcome is that of the second. kind: -1 = 0, and what is made is written down.
static void run_slots(const tl_graph *graph, const tl_plan *plan, int kind, uint64_t seed, int32_t repeat, outcome *o) {
    static bed b;
    tl_run_report report;
    int32_t i, k;
    open_slots(graph, plan, kind, seed, &b, o);
    o->batch_count = repeat * o->slot_count;
    o->records = kind < 0;
    b.desc.repeat_count = repeat;
    bed_must_init(&b);
    for (k = 0; k < STEPS; k++) {
        memset(o->sums, 0, sizeof o->sums);
        if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
        report = bed_report(&b);
        assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
        assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
        assert_int_equal(report.measured_host_peak_bytes, report.planned_host_peak_bytes);
    }
    for (i = 0; i < o->slot_count; i++) {
        assert_int_equal(tl_choose_slot(b.run, i), TL_OK);
        o->results[(repeat - 1) * o->slot_count + i] = read_results(o);
    }
    assert_int_equal(b.loads, STEPS * repeat * o->slot_count);
    assert_int_equal(tl_choose_slot(b.run, o->slot_count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_choose_slot: slot: the plan has no such slot");
    assert_int_equal(tl_choose_slot(b.run, -1), TL_ERROR_INVALID_ARG);
    bed_close(&b);
}

// The sums of gradients of a plan, from what each micro-batch adds by itself.
static void fold_gradients(const tl_plan *plan, int32_t repeat, const outcome *alone, uint64_t *sums) {
    int32_t k, i;
    memset(sums, 0, MIXER_NODES * sizeof *sums);
    for (k = 0; k < repeat; k++)
        for (i = 0; i < plan->step_count; i++) {
            const tl_step *step = &plan->steps[i];
            const mixer *m = &alone->mixers[k * tli_count_slots(plan) + step->slot];
            if (step->kind == TL_STEP_BACKWARD) sums[step->node] = tl_mix_u64(sums[step->node], m->gradients[step->node]);
        }
}

static int compresses(const tl_plan *plan) {
    int32_t i;
    for (i = 0; i < plan->step_count; i++) if (plan->steps[i].kind == TL_STEP_COMPRESS) return 1;
    return 0;
}

static int32_t interleaves(const tl_plan *plan) {
    int32_t i, turns = 0;
    for (i = 1; i < plan->step_count; i++) turns += plan->steps[i].slot != plan->steps[i - 1].slot;
    return turns;
}

static void micro_batches_in_slots_compute_what_each_computes_alone(void **state) {
    static outcome alone, together, again;
    static uint64_t sums[MIXER_NODES];
    tl_random random = { 8100 };
    long round, valid = 0, exact = 0, turns = 0, placed = 0, entries = 0;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan, all;
        narrow_form narrow;
        tl_device device = { 0 };
        tl_simulate_desc desc = { 0 };
        tl_report report;
        int32_t slots = random_count(&random, 1, RANDOM_SLOTS), repeat = random_count(&random, 1, MOST_BATCHES / slots);
        int kind = (int)(round % BACKEND_KINDS);
        device.alignment_bytes = 4;
        assert_int_equal(random_graph(&env, &random, 14, &graph), TL_OK);
        assert_int_equal(random_slot_plan(&env, &random, &graph, slots, &plan), TL_OK);
        if (random_chance(&random, 50)) assert_int_equal(random_offsets(&env, &random, &graph, &device, &plan), TL_OK);
        desc.graph = &graph;
        desc.plan = &plan;
        desc.device = &device;
        if (tl_simulate_plan(&env, &desc, &report)) plan.offset_count = 0;
        plan.alignment_bytes = plan.offset_count ? 4 : 0;
        if (!tl_simulate_plan(&env, &desc, &report)) {
            valid++;
            placed += plan.offset_count > 0;
            turns += interleaves(&plan);
            entries += plan.entry_count > 0;
            assert_int_equal(tl_plan_keep_all(&env, &graph, plan.inference, &all), TL_OK);
            run_slots(&graph, &all, -1, 0, repeat * slots, &alone);
            tl_free_plan(&env, &all);
            run_slots(&graph, &plan, kind, tl_next_random(&random), repeat, &together);
            narrow_from(&plan, plan.offset_count ? 4 : 1, slots > 1 ? 3 : 2, (int)(round % 2), &narrow);
            run_slots(&graph, &narrow.plan, (kind + 1) % BACKEND_KINDS, tl_next_random(&random), repeat, &again);
            narrow_free(&narrow);
            assert_memory_equal(again.sums, together.sums, sizeof again.sums);
            assert_memory_equal(again.results, together.results, sizeof again.results);
        }
        if (!tl_simulate_plan(&env, &desc, &report) && !compresses(&plan) && !plan.any_order) {
            int32_t i;
            exact++;
            fold_gradients(&plan, repeat, &alone, sums);
            assert_memory_equal(together.sums, sums, sizeof sums);
            for (i = 0; i < repeat * slots; i++) assert_int_equal(together.results[i], alone.results[i]);
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    print_message("%ld of %ld plans ran, %ld of them placed, %ld with an entry, %ld compared with one micro-batch at a time, "
                  "%ld turns\n", valid, round, placed, entries, exact, turns);
    assert_true(valid > round / 5 && exact > round / 20 && turns > valid * 5 && placed > 0 && entries > round / 20);
}

// -- descriptions --

static const char *const two =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=16 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 c ce fwd=1 bwd=1 out=4 needs=in in=1 keep\n";

static tl_tensor tensor_of(int32_t node, int32_t output) {
    tl_tensor tensor;
    tensor.node = node;
    tensor.output = output;
    return tensor;
}

static const char *const pipelined = "S 1\nS 1@1\nF 2\nB 2\nF 2@1\nD 1\nB 1\nB 2@1\nD 1@1\nB 1@1\n";

static void accumulation_counts_micro_batches_whatever_the_slots(void **state) {
    static bed b;
    static outcome o;
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of(pipelined);
    tl_strategy strategy = tl_strategy_new();
    (void)state;
    strategy.mode = TL_MODE_LAZY;
    strategy.precision = TL_PRECISION_SINGLE;
    strategy.memory = TL_MEMORY_POOLED;
    strategy.gradient = tl_gradient_accumulated(6);
    open_slots(&graph, &plan, 0, 0, &b, &o);
    o.batch_count = 6;
    b.desc.strategy = &strategy;
    bed_must_init(&b);
    assert_int_equal(tl_run_plan(b.run), TL_OK);
    assert_int_equal(b.loads, 6);
    assert_int_equal(o.mixers[0].backwards + o.mixers[5].backwards, 4);
    tl_free_run(b.run);
    b.run = NULL;
    strategy.gradient = tl_gradient_accumulated(5);
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text,
                        "tl_init_run: strategy.gradient: accumulation_steps must be a multiple of the plan's slots");
    b.desc.strategy = NULL;
    b.desc.repeat_count = INT32_MAX / 2 + 1;
    assert_int_equal(bed_init(&b), TL_ERROR_OVERFLOW);
    assert_string_equal(b.env.error.text, "tl_init_run: micro-batches: passes times slots do not fit 31 bits");
    b.desc.repeat_count = 1;
    plan.slot_count = 65537;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_ARG);
    plan.slot_count = 1;
    assert_int_equal(bed_init(&b), TL_ERROR_INVALID_PLAN);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// By hand: the micro-batch of every call is that of its step's slot, and events say so.
static void steps_pulled_one_at_a_time_name_their_micro_batch(void **state) {
    static bed b;
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of(pipelined);
    tl_run_step step;
    int32_t done = 0, seen = 0;
    (void)state;
    bed_open(&b, &graph, 0, 0, 4);
    b.desc.plan = &plan;
    bed_must_init(&b);
    assert_int_equal(tl_start_pass(b.run, INT32_MAX - 1), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_start_pass(b.run, 4), TL_OK);
    while (!done) {
        assert_int_equal(tl_next_step(b.run, &step, &done), TL_OK);
        if (done || !step.is_compute) continue;
        assert_int_equal(step.call.micro_batch, 4 + step.step.slot);
        seen |= 1 << step.step.slot;
        assert_int_equal(tl_finish_step(b.run, &step), TL_OK);
    }
    assert_int_equal(seen, 3);
    bed_close(&b);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// What no step frees keeps its bytes from pass to pass; what one frees is zeroes again; results go when it is written.
static void entry_is_written_before_a_pass_and_kept_where_no_step_frees_it(void **state) {
    static bed b;
    static outcome o;
    static const unsigned char data[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    static const unsigned char none[16] = { 0 };
    static const char *const schedules[] = { "E 1.0\nF 2\n", "E 1.0\nF 2\nD 1\n", "E 1.0\nF 2\nO 1\n" };
    tl_graph graph = graph_of(two);
    int i, k;
    (void)state;
    for (i = 0; i < 3; i++)
        for (k = 0; k < 2; k++) {
            tl_strategy strategy = tl_strategy_new();
            unsigned char back[16];
            tl_plan plan = schedule_of(schedules[i]);
            tl_run_step step;
            int32_t done;
            plan.inference = 1;
            strategy.mode = TL_MODE_LAZY;
            strategy.precision = TL_PRECISION_SINGLE;
            strategy.memory = k ? TL_MEMORY_POOLED : TL_MEMORY_STANDARD;
            open_slots(&graph, &plan, 0, 0, &b, &o);
            o.batch_count = 1;
            b.desc.strategy = &strategy;
            b.desc.load = NULL;
            bed_must_init(&b);
            assert_int_equal(tl_read_tensor(b.run, tensor_of(1, 0), back, 16), TL_OK);
            assert_memory_equal(back, none, 16);
            assert_int_equal(tl_write_tensor(b.run, tensor_of(1, 0), data, 15), TL_ERROR_INVALID_ARG);
            assert_int_equal(tl_write_tensor(b.run, tensor_of(1, 0), data, 16), TL_OK);
            assert_int_equal(tl_write_tensor(b.run, tensor_of(2, 0), data, 4), TL_ERROR_NOT_FOUND);
            mixer_start_pass(&o.mixers[0]);
            assert_int_equal(tl_run_plan(b.run), TL_OK);
            assert_int_equal(tl_read_tensor(b.run, tensor_of(2, 0), back, 4), TL_OK);
            mixer_start_pass(&o.mixers[0]);
            assert_int_equal(tl_start_pass(b.run, 0), TL_OK);
            assert_int_equal(tl_write_tensor(b.run, tensor_of(1, 0), data, 16), TL_ERROR_INVALID_ARG);
            assert_int_equal(tl_next_step(b.run, &step, &done), TL_OK);
            assert_memory_equal(step.call.inputs[0].host, i == 1 ? none : data, 16);
            assert_int_equal(tl_reset_run(b.run), TL_OK);
            mixer_start_pass(&o.mixers[0]);
            assert_int_equal(tl_run_plan(b.run), TL_OK);
            assert_int_equal(tl_write_tensor(b.run, tensor_of(1, 0), data, 16), TL_OK);
            assert_int_equal(tl_read_tensor(b.run, tensor_of(2, 0), back, 4), TL_ERROR_NOT_FOUND);
            assert_int_equal(tl_read_tensor(b.run, tensor_of(1, 0), back, 16), TL_OK);
            assert_memory_equal(back, data, 16);
            mixer_start_pass(&o.mixers[0]);
            assert_int_equal(tl_run_plan(b.run), TL_OK);
            bed_close(&b);
            tl_free_plan(NULL, &plan);
        }
    tl_free_graph(NULL, &graph);
}

static void runs_with_slots_survive_every_failure(void **state) {
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of(pipelined);
    long at;
    (void)state;
    for (at = 0; at < 1000; at++) {
        static bed b;
        static outcome o;
        failing_alloc f = { 0 };
        tl_result result;
        open_slots(&graph, &plan, 0, 0, &b, &o);
        o.batch_count = 2;
        b.env = failing_env(&f, at);
        result = bed_init(&b);
        if (!result) result = tl_run_plan(b.run);
        bed_close(&b);
        assert_int_equal(f.live, 0);
        if (!result) break;
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
    }
    assert_true(at > 10 && at < 1000);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_in_slots_compute_what_each_computes_alone),
        cmocka_unit_test(accumulation_counts_micro_batches_whatever_the_slots),
        cmocka_unit_test(steps_pulled_one_at_a_time_name_their_micro_batch),
        cmocka_unit_test(entry_is_written_before_a_pass_and_kept_where_no_step_frees_it),
        cmocka_unit_test(runs_with_slots_survive_every_failure),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
