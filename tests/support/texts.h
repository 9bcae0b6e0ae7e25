// Graphs and schedules that tests write as text. Include after cmocka.h and support.h.
#ifndef TESTS_TEXTS_H
#define TESTS_TEXTS_H

static inline tl_graph graph_of(const char *text) {
    tl_env env = silent_env();
    tl_graph graph;
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

// What tl_print_graph wrote, against the same text in version 1, which has no last line.
static inline void assert_written(const char *text, const char *expected) {
    const char *last = strstr(text, "\nend ");
    char *nodes = (char *)malloc(strlen(text) + 1);
    assert_non_null(nodes);
    assert_non_null(last);
    memcpy(nodes, text, (size_t)(last + 1 - text));
    nodes[last + 1 - text] = 0;
    assert_memory_equal(nodes, "tlg 2\n", 6);
    nodes[4] = '1';
    assert_string_equal(nodes, expected);
    free(nodes);
}

static inline tl_plan schedule_of(const char *text) {
    tl_env env = silent_env();
    tl_plan plan;
    if (tl_parse_schedule(&env, text, strlen(text), &plan)) fail_msg("%s", env.error.text);
    return plan;
}

#endif
