// Graphs and schedules that tests write as text. Include after cmocka.h and support.h.
#ifndef TESTS_TEXTS_H
#define TESTS_TEXTS_H

static inline tl_graph graph_of(const char *text) {
    tl_env env = silent_env();
    tl_graph graph;
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

static inline tl_plan schedule_of(const char *text) {
    tl_env env = silent_env();
    tl_plan plan;
    if (tl_parse_schedule(&env, text, strlen(text), &plan)) fail_msg("%s", env.error.text);
    return plan;
}

#endif
