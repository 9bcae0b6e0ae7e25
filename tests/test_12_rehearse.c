// [12] RUN: a rehearsal finds every wrong declaration at the first run and names it; it finds nothing where there is
// nothing, and leaves the caller's state as it was.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/random_graph.h"
#include "nn.h"

// -- kernels that hash what they may read --

typedef struct hasher {
    uint64_t gradients[MIXER_NODES];  // registered: one for each node
    uint64_t steps[MIXER_NODES];      // statistics, registered: forwards that ran for the first time
    long     calls, fail_at;          // call that fails; -1 = none
} hasher;

static tl_result hash_forward(const tl_kernel_call *call, void *user) {
    hasher *h = (hasher *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    if (h->calls++ == h->fail_at) return TL_ERROR_CORRUPT;
    h->steps[call->node] += !call->recompute;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    mix_into(sum + 1000, &call->scratch, 0);
    if (!call->outputs_ready)
        for (i = 0; i < node->output_count; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    if (call->saved.range.bytes) mix_into(sum + 77, &call->saved, 0);
    return TL_OK;
}

static tl_result hash_backward(const tl_kernel_call *call, void *user) {
    hasher *h = (hasher *)user;
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    if (h->calls++ == h->fail_at) return TL_ERROR_CORRUPT;
    for (i = 0; i < node->input_count; i++)
        if (graph->inputs[node->first_input + i].needed) sum = mix_bytes(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count; i++) {
        if (graph->outputs[node->first_output + i].needed) sum = mix_bytes(sum, &call->outputs[i]);
        sum = mix_bytes(sum, &call->output_grads[i]);
    }
    if (call->saved.range.bytes) sum = mix_bytes(sum, &call->saved);
    mix_into(sum + 1000, &call->scratch, 0);
    h->gradients[call->node] += sum;
    for (i = 0; i < node->input_count; i++) mix_into(sum + (uint64_t)i, &call->input_grads[i], 1);
    return TL_OK;
}

typedef struct hash_bed {
    hasher   h;
    tl_kernel kernels[MIXER_NODES];
    tl_state states[2 * MIXER_NODES];
} hash_bed;

static void hash_open(bed *b, hash_bed *h, const tl_graph *graph, int registers) {
    int32_t i;
    memset(h, 0, sizeof *h);
    h->h.fail_at = -1;
    bed_open(b, graph, 0, 0, 1);
    for (i = 0; i < b->desc.kernel_count; i++) {
        h->kernels[i] = b->desc.kernels[i];
        h->kernels[i].forward = hash_forward;
        h->kernels[i].backward = hash_backward;
        h->kernels[i].user = &h->h;
    }
    b->desc.kernels = h->kernels;
    for (i = 0; i < graph->node_count; i++) {
        h->states[2 * i].node = h->states[2 * i + 1].node = i;
        h->states[2 * i].kind = TL_STATE_GRADIENT;
        h->states[2 * i].host = &h->h.gradients[i];
        h->states[2 * i + 1].kind = TL_STATE_STATISTICS;
        h->states[2 * i + 1].host = &h->h.steps[i];
        h->states[2 * i].bytes = h->states[2 * i + 1].bytes = 8;
    }
    b->desc.states = registers ? h->states : NULL;
    b->desc.state_count = registers ? 2 * graph->node_count : 0;
}

static void print_findings(const tl_graph *graph, const tl_rehearsal *found) {
    int32_t i;
    for (i = 0; i < found->finding_count; i++) {
        char line[400];
        tl_print_finding(graph, &found->findings[i], line, sizeof line);
        printf("%s\n", line);
    }
}

static void nothing_is_found_on_random_graphs(void **state) {
    tl_random random = {21};
    int turn;
    (void)state;
    for (turn = 0; turn < sampled(1000); turn++) {
        static bed b;
        static hash_bed h;
        tl_graph graph;
        tl_rehearsal found;
        tl_rehearsal_desc desc = {turn % 7 ? -1 : 2};
        if (random_graph(NULL, &random, 14, &graph)) fail();
        hash_open(&b, &h, &graph, turn % 2);
        b.desc.inference = turn % 5 == 0;
        bed_must_init(&b);
        memset(h.h.gradients, turn, sizeof h.h.gradients);
        memset(h.h.steps, turn, sizeof h.h.steps);
        if (tl_rehearse_run(b.run, &desc, &found)) fail_msg("turn %d: %s", turn, b.env.error.text);
        print_findings(&graph, &found);
        assert_int_equal(found.error_count, 0);
        assert_int_equal(found.finding_count, 0);
        assert_int_equal(found.is_stressed, 1);
        assert_int_equal(found.unprobed_count, 0);
        assert_int_equal(found.kind, TL_REHEARSAL_KEPT);
        assert_int_equal(!found.costs, desc.pass_count < 0);
        if (turn % 2) {
            assert_true(h.h.gradients[graph.node_count - 1] == 0x0101010101010101u * (uint64_t)(turn & 255));
            assert_true(h.h.steps[graph.node_count - 1] == 0x0101010101010101u * (uint64_t)(turn & 255));
        }
        tl_free_rehearsal(&b.env, &found);
        bed_close(&b);
        tl_free_graph(NULL, &graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_on_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
