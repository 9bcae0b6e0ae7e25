// A plan held to an independent replay of the rules (replay.h), with the graph and the steps where it fails. Include after
// cmocka and the implementation.
#ifndef TESTS_CHECK_REPLAY_H
#define TESTS_CHECK_REPLAY_H

#include "replay.h"

static inline const char *text_of(const tl_graph *graph) {
    static char text[65536];
    tl_print_graph(graph, text, sizeof text);
    return text;
}

static inline void check_replay(const tl_graph *graph, const tl_plan *plan, const char *by) {
    replay r;
    if (!replay_plan(graph, plan, NULL, &r)) {
        char steps[4096];
        tl_print_schedule(plan, steps, sizeof steps);
        fail_msg("%s: step %d: %s\n%s%s", by, (int)r.step, r.broken, text_of(graph), steps);
    }
    if (r.peak != plan->peak_bytes || r.cost != plan->cost)
        fail_msg("%s: peak %lu, not %lu; cost %lu, not %lu\n%s", by, (unsigned long)plan->peak_bytes, (unsigned long)r.peak,
                 (unsigned long)plan->cost, (unsigned long)r.cost, text_of(graph));
}

#endif
