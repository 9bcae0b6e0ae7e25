// The memory of doing everything once. Include after cmocka.h and tl_strategy.h.
#ifndef TESTS_KEEP_ALL_H
#define TESTS_KEEP_ALL_H

static inline uint64_t keep_all_peak(const tl_graph *graph, int inference) {
    tl_plan plan;
    uint64_t peak;
    if (tl_plan_keep_all(NULL, graph, inference, &plan)) fail_msg("%s", "no plan");
    peak = plan.peak_bytes;
    tl_free_plan(NULL, &plan);
    return peak;
}

#endif
