// Random graphs with states and schedules on them, valid and broken, with what the simulator says, for replay_states.py.
//
//     states_driver FIRST_SEED COUNT > cases.txt
//
// One case: a line "case <seed>" with <name>=<value> of the plan's flags and the device, the graph as .tlg; where states are trained
// in pieces the graph before that, behind a line "whole <piece bytes> <alignment> <call cost>"; the schedule after a line "steps", the
// offsets after a line "offsets", and one line
//     broken <step> <rule>
//     ok <name>=<value> of the report
// After ok a line "live" with the bytes of each step, and the lifetimes of the plan, each
//     life <use> <node> <output> <occurrence> <bytes> <first> <end> <number> <over> <free step>
// and the calls that tl_replay_plan makes for pieces:
//     piece <step> <node> <first> <count> <total>, and for each operand that is present <name> <node> <output> <offset> <bytes>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long number;

static void check(int ok, const char *what, number seed) {
    if (ok) return;
    fprintf(stderr, "states_driver: seed %llu: %s\n", seed, what);
    exit(1);
}

static void random_device(tl_random *random, tl_device *device) {
    static const uint64_t rates[] = { 1000000000, 500000000, 70000000, 4000000000u, 999999999, 0 };
    static const int32_t channels[] = { 0, 1, 2, TL_COPIES_IN_TURN };
    memset(device, 0, sizeof *device);
    device->link_bytes_per_second = rates[tl_next_random_below(random, 6)];
    if (random_chance(random, 30)) device->upload_bytes_per_second = rates[tl_next_random_below(random, 5)];
    device->link_latency_ns = tl_next_random_below(random, 3) * 7;
    device->copy_channels = channels[tl_next_random_below(random, 4)];
    device->codec_bytes_per_second = rates[tl_next_random_below(random, 6)];
    device->alignment_bytes = (uint64_t)1 << tl_next_random_below(random, 5);
}

static char *text_of(const tl_graph *graph) {
    size_t length = tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1);
    tl_print_graph(graph, text, length + 1);
    return text;
}

// Take scratch and saved bytes away from nodes, so that their calls may begin and end in different steps.
static void strip_scratch(tl_graph *graph) {
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        tl_node *node = (tl_node *)&graph->nodes[id];
        if (!node->state) node->saved_bytes = node->fwork_bytes = node->bwork_bytes = node->swork_bytes = 0;
    }
}

// A graph with up to four states; whole: its text before states were cut, else NULL.
static void state_graph(tl_env *env, tl_random *random, number seed, int is_bare, tl_graph *graph, char **whole, tl_pieces_desc *pieces) {
    tl_graph plain;
    check(!random_effect_graph(env, random, 10, random_chance(random, 30) * 20, &plain) &&
          !random_add_states(env, random, &plain, random_count(random, 1, 4), graph), "no graph", seed);
    tl_free_graph(env, &plain);
    if (is_bare) strip_scratch(graph);
    *whole = NULL;
    memset(pieces, 0, sizeof *pieces);
    if (random_chance(random, 20)) {
        check(!tl_hold_gradients(env, graph), env->error.text, seed);
    } else if (random_chance(random, 40)) {
        tl_graph made;
        *whole = text_of(graph);
        pieces->graph = graph;
        pieces->piece_bytes = tl_next_random_below(random, 30);
        pieces->alignment_bytes = random_chance(random, 30) ? 4 : 0;
        pieces->call_cost = tl_next_random_below(random, 3);
        check(!tl_apply_pieces(env, pieces, &made), env->error.text, seed);
        tl_free_graph(env, graph);
        *graph = made;
    }
    if (random_chance(random, 25)) (void)random_let_inputs_die(random, graph);
}

static void insert_step(tl_plan *plan, int32_t at, tl_step step) {
    tl_step *steps = (tl_step *)malloc(((size_t)plan->step_count + 1) * sizeof *steps);
    if (at) memcpy(steps, plan->steps, (size_t)at * sizeof *steps);
    steps[at] = step;
    if (at < plan->step_count) memcpy(steps + at + 1, plan->steps + at, (size_t)(plan->step_count - at) * sizeof *steps);
    free(plan->memory);
    plan->memory = steps;
    plan->steps = steps;
    plan->step_count++;
}

static int reads_states(const tl_graph *graph, int32_t id) {
    int32_t k, reads = 0;
    for (k = 0; k < graph->nodes[id].input_count; k++)
        reads |= graph->nodes[graph->outputs[graph->inputs[graph->nodes[id].first_input + k].tensor].node].state;
    return reads;
}

static int reads_node(const tl_graph *graph, int32_t id, int32_t of) {
    int32_t k, reads = 0;
    for (k = 0; k < graph->nodes[id].input_count; k++)
        reads |= graph->outputs[graph->inputs[graph->nodes[id].first_input + k].tensor].node == of;
    return reads;
}

// Whether a step acts on the node, on one that reads it or, states apart, on one that it reads: few calls go on beside it.
static int meets(const tl_graph *graph, int32_t id, const tl_step *step) {
    if (step->node < 0 || step->node >= graph->node_count || step->node == id) return 1;
    return reads_node(graph, step->node, id) || (!graph->nodes[step->node].state && reads_node(graph, id, step->node));
}

// Move a step of a kind to another place: an update; or let a call begin, and end further down.
static void change_steps(tl_random *random, const tl_graph *graph, tl_plan *plan, int begins) {
    tl_step *steps = (tl_step *)plan->memory;
    int32_t at = plan->step_count ? random_count(random, 0, plan->step_count - 1) : 0, tries = plan->step_count, to;
    for (; tries > 0; tries--, at = (at + 1) % plan->step_count) {
        tl_step step = steps[at];
        if (step.node < 0 || step.node >= graph->node_count || (step.kind != TL_STEP_BACKWARD && (!begins || step.kind != TL_STEP_FORWARD))) continue;
        if (begins) {
            const tl_node *node = &graph->nodes[step.node];
            uint64_t work = step.kind == TL_STEP_BACKWARD ? node->bwork_bytes : node->fwork_bytes;
            if ((work || node->saved_bytes) && random_chance(random, 98)) continue;
            steps[at].begins = 1;
            if (!reads_states(graph, step.node) && random_chance(random, 60)) continue;
            for (to = at + 1; to < plan->step_count && !meets(graph, step.node, &steps[to]); to++) {}
            to = random_chance(random, 50) ? to : random_count(random, at + 1, random_chance(random, 80) ? to : plan->step_count);
            insert_step(plan, to, tli_step_of(TL_STEP_WAIT, step.node, TL_ALL_OUTPUTS));
            return;
        }
        if (!graph->nodes[step.node].state) continue;
        memmove(steps + at, steps + at + 1, (size_t)(plan->step_count - at - 1) * sizeof *steps);
        plan->step_count--;
        to = random_count(random, random_chance(random, 80) ? at : 0, plan->step_count);
        insert_step(plan, to, step);
        return;
    }
}

// Run a forward again further down, of a reader of states most of the time; with or without a drop before it.
static void run_again(tl_random *random, const tl_graph *graph, tl_plan *plan) {
    int32_t at = plan->step_count ? random_count(random, 0, plan->step_count - 1) : 0, tries = plan->step_count, to;
    for (; tries > 0; tries--, at = (at + 1) % plan->step_count) {
        tl_step step = plan->steps[at];
        if (step.node < 0 || step.node >= graph->node_count || step.kind != TL_STEP_FORWARD) continue;
        if (!reads_states(graph, step.node) && random_chance(random, 80)) continue;
        to = random_count(random, at + 1, plan->step_count);
        insert_step(plan, to, step);
        if (random_chance(random, 70)) insert_step(plan, to, tli_step_of(TL_STEP_DROP, step.node, TL_ALL_OUTPUTS));
        return;
    }
}

static void print_report(const tl_report *r) {
    printf("ok peak=%llu arena=%llu host_peak=%llu end=%llu end_host=%llu cost=%llu compute=%llu base=%llu forwards=%d again=%d "
           "backwards=%d copies=%d codecs=%d allocations=%d host_allocations=%d peak_step=%d\n",
           (number)r->peak_bytes, (number)r->arena_bytes, (number)r->host_peak_bytes, (number)r->end_bytes, (number)r->end_host_bytes,
           (number)r->cost, (number)r->compute_cost, (number)r->base_cost, (int)r->forward_count, (int)r->recompute_count,
           (int)r->backward_count, (int)r->copy_count, (int)r->codec_count, (int)r->allocation_count, (int)r->host_allocation_count,
           (int)r->peak_step);
}

// -- a replay whose memory is nothing but distinct addresses: its calls for pieces are printed --

typedef struct watch { char bytes[4096]; int next; } watch;

static tl_result allocate(const tl_lifetime *life, void **memory, void *user) {
    watch *w = (watch *)user;
    (void)life;
    *memory = &w->bytes[w->next++ % 4096];
    return TL_OK;
}
static void release(const tl_lifetime *life, void *memory, void *user) { (void)life; (void)memory; (void)user; }
static tl_result copy(const tl_replay_copy *c, void *user) { (void)c; (void)user; return TL_OK; }

static void print_operand(const tl_replay_call *call, const char *name, const tl_replay_operand *operand) {
    const tl_lifetime *life = &call->lifetimes[operand->lifetime < 0 ? 0 : operand->lifetime];
    if (!operand->memory) return;
    printf(" %s %s %d %d %llu %llu", name, tl_name_use(life->use), (int)life->node, (int)life->output, (number)operand->offset, (number)operand->bytes);
}

static tl_result print_call(const tl_replay_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->step.node];
    int32_t k, reads_pieces = node->state == TL_STATE_PIECES;
    (void)user;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        reads_pieces |= call->graph->nodes[call->graph->outputs[call->graph->inputs[k].tensor].node].state == TL_STATE_PIECES;
    if (!reads_pieces || call->step.kind != TL_STEP_BACKWARD) return TL_OK;
    printf("piece %d %d %d %d %d", (int)call->index, (int)call->step.node, (int)call->first, (int)call->count, (int)call->total);
    for (k = 0; k < node->input_count; k++) print_operand(call, "in", &call->inputs[k]);
    for (k = 0; k < node->output_count; k++) print_operand(call, "out", &call->outputs[k]);
    for (k = 0; k < node->output_count; k++) print_operand(call, "dout", &call->output_grads[k]);
    for (k = 0; k < node->input_count; k++) print_operand(call, "din", &call->input_grads[k]);
    print_operand(call, "saved", &call->saved);
    print_operand(call, "scratch", &call->scratch);
    printf("\n");
    return TL_OK;
}

static void print_lives(tl_env *env, number seed, const tl_graph *graph, const tl_plan *plan) {
    tl_lifetimes lives;
    tl_replay_desc desc;
    static watch memory;
    int32_t i;
    check(!tl_find_lifetimes(env, graph, plan, &lives), env->error.text, seed);
    for (i = 0; i < lives.count; i++) {
        const tl_lifetime *l = &lives.items[i];
        printf("life %s %d %d %d %llu %d %d %d %d %d\n", tl_name_use(l->use), (int)l->node, (int)l->output, (int)l->occurrence,
               (number)l->bytes, (int)l->first_step, (int)l->end_step, (int)l->number, (int)l->over, (int)l->free_step);
    }
    tl_free_lifetimes(env, &lives);
    for (i = 0; i < plan->step_count; i++)
        if (plan->steps[i].begins) return;      // only a run replays those
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    desc.allocate = allocate;
    desc.release = release;
    desc.call = print_call;
    desc.copy = copy;
    desc.user = &memory;
    check(!tl_replay_plan(env, &desc), env->error.text, seed);
}

static int counts_states(const tl_graph *graph) {
    int32_t id, count = 0;
    for (id = 0; id < graph->node_count; id++) count += graph->nodes[id].state != TL_STATE_NONE;
    return count;
}

static void run_case(number seed) {
    tl_env env;
    tl_random random;
    tl_graph graph;
    tl_device device;
    tl_plan plan;
    tl_report report;
    tl_simulate_desc desc;
    tl_pieces_desc pieces;
    tl_result result;
    uint64_t *live;
    char *text, *whole;
    size_t length;
    int32_t i;
    int is_bare, is_calm;
    memset(&env, 0, sizeof env);
    random.state = seed;
    is_bare = random_chance(&random, 30);
    state_graph(&env, &random, seed, is_bare, &graph, &whole, &pieces);
    random_device(&random, &device);
    check(!random_slot_plan(&env, &random, &graph, random_chance(&random, 30), &plan), env.error.text, seed);
    is_calm = random_chance(&random, 35);
    if (is_calm) {       // a valid plan, with one kind of change alone
        int kind = random_count(&random, is_bare, 3);
        random_plan_within(&env, &random, &graph, &device, &plan);
        for (i = random_count(&random, 0, 3); i > 0 && kind; i--) {
            if (kind == 1) change_steps(&random, &graph, &plan, 0);
            else if (kind == 2 && !is_bare) run_again(&random, &graph, &plan);
            else change_steps(&random, &graph, &plan, 1);
        }
    } else {
        for (i = 0; random_chance(&random, 40) && i < 3; i++) change_steps(&random, &graph, &plan, 0);
        for (i = 0; random_chance(&random, is_bare ? 50 : 5) && i < 4; i++) change_steps(&random, &graph, &plan, 1);
    }
    if (!is_calm && random_chance(&random, 20)) plan.in_flight = random_count(&random, 1, 4);
    if (random_chance(&random, is_calm ? 2 : 10)) plan.repeat_count = random_count(&random, 1, 3);
    if (random_chance(&random, is_calm ? 20 : 50)) check(!random_offsets(&env, &random, &graph, &device, &plan), "no offsets", seed);
    if (random_chance(&random, 1) && counts_states(&graph)) plan.slot_count = 2;

    text = text_of(&graph);
    printf("case %llu inference=%d any_order=%d repeats=%d slots=%d align=%llu down=%llu up=%llu latency=%llu channels=%d codec=%llu\n%s",
           seed, (int)plan.inference, (int)plan.any_order, (int)plan.repeat_count, (int)plan.slot_count, (number)device.alignment_bytes,
           (number)device.link_bytes_per_second, (number)device.upload_bytes_per_second, (number)device.link_latency_ns,
           (int)device.copy_channels, (number)device.codec_bytes_per_second, text);
    free(text);
    if (whole) printf("whole %llu %llu %llu\n%s", (number)pieces.piece_bytes, (number)pieces.alignment_bytes, (number)pieces.call_cost, whole);
    free(whole);
    length = tl_print_schedule(&plan, NULL, 0);
    text = (char *)malloc(length + 1);
    tl_print_schedule(&plan, text, length + 1);
    printf("steps\n%soffsets", text);
    free(text);
    for (i = 0; i < plan.offset_count; i++) printf(" %llu", (number)plan.offsets[i]);
    printf("\n");

    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.device = &device;
    live = (uint64_t *)calloc((size_t)plan.step_count + 1, sizeof *live);
    desc.live_bytes = live;
    result = tl_simulate_plan(&env, &desc, &report);
    check(result == TL_OK || result == TL_ERROR_INVALID_PLAN, env.error.text, seed);
    if (result) {
        printf("broken %d %s\n", (int)report.broken_step, env.error.text);
    } else {
        print_report(&report);
        printf("live");
        for (i = 0; i < plan.step_count; i++) printf(" %llu", (number)live[i]);
        printf("\n");
        print_lives(&env, seed, &graph, &plan);
    }
    free(live);
    random_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    number first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, i;
    for (i = 0; i < count; i++) run_case(first + i);
    return 0;
}
