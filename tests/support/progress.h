// What a caller of tl_plan_remat and its searches says to their progress. Include after cmocka.h and tl_strategy.h.
#ifndef TESTS_PROGRESS_H
#define TESTS_PROGRESS_H

// Stop at once.
static inline int stop_progress(const tl_remat_progress *progress, void *user) {
    (void)progress;
    (void)user;
    return 1;
}

// Stop at call stop_at, and check that every figure only ever becomes better.
typedef struct watcher { long asked, stop_at; tl_remat_progress last; } watcher;

static inline int watch_progress(const tl_remat_progress *progress, void *user) {
    watcher *w = (watcher *)user;
    assert_true(progress->work >= w->last.work);
    assert_true(progress->bound_cost >= w->last.bound_cost);
    assert_true(!w->last.cost || (progress->cost && progress->cost <= w->last.cost));
    assert_true(!progress->cost || progress->bound_cost <= progress->cost);
    w->last = *progress;
    return w->asked++ == w->stop_at;
}

#endif
