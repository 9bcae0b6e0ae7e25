// What the tests of written programs stand on: the text of one in memory, files of it, commands that compile and run them.
// Include after cmocka, the implementation and sink_support.h.
#ifndef TESTS_CODE_FILES_H
#define TESTS_CODE_FILES_H

typedef struct code_text { memory_sink header, source; } code_text;

static inline tl_result write_code_text(tl_env *env, const tl_graph *graph, const tl_plan *plan, const tl_code_desc *desc, code_text *text) {
    tl_sink header = sink_of(&text->header, -1), source = sink_of(&text->source, -1);
    return tl_write_plan_code(env, graph, plan, desc, header, source);
}

static inline void free_text(code_text *text) {
    free(text->header.text);
    free(text->source.text);
}

static inline FILE *open_text(const char *dir, const char *name, const char *end) {
    char path[512];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s%s", dir, name, end);
    file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static inline void save_text(const char *dir, const char *name, const char *end, const char *text) {
    FILE *file = open_text(dir, name, end);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline int has_program(const char *name) {
    char command[128];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
    return !system(command);
}

static inline void must_run(const char *command) {
    if (system(command)) fail_msg("failed: %s", command);
}

#endif
