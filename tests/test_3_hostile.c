// [3] GRAPH: .tlg text that means harm: one sentence each, no long time, and no memory beyond a multiple of its length.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/counting_alloc.h"
#include <time.h>

#define HEAD "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
#define NODE "node 1 a op fwd=1 bwd=1 out=4 needs=in in=0"

static void refuses(const char *text, size_t length, tl_result code, const char *sentence) {
    counting_alloc counter = {0};
    tl_env env = counting_env(&counter);
    tl_graph graph;
    clock_t start = clock();
    assert_int_equal(tl_parse_graph(&env, text, length, &graph), code);
    if (sentence && !strstr(env.error.text, sentence)) fail_msg("\"%s\", not \"%s\"", env.error.text, sentence);
    assert_ptr_equal(strstr(env.error.text, "tl_parse_graph: line "), env.error.text);
    assert_int_equal(graph.node_count, 0);
    assert_null(graph.nodes);
    assert_int_equal(counter.live, 0);
    if (counter.peak > ALLOWED_BYTES(length)) fail_msg("%lu bytes for a text of %lu", (unsigned long)counter.peak, (unsigned long)length);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
}

static void hostile_lines_get_one_sentence_each(void **state) {
    static const struct { const char *text; tl_result code; const char *sentence; } cases[] = {
        { "tlg 1\nnodes 1000000000\n", TL_ERROR_PARSE, "line 2: nodes: a line must start with node or batch" },
        { HEAD "node 1000000000 a op fwd=1 bwd=1 out=4 needs=in in=0", TL_ERROR_PARSE, "line 3: 1000000000: node ids must be 0, 1, 2" },
        { HEAD "node 4294967297 a op fwd=1 bwd=1 out=4 needs=in in=0", TL_ERROR_PARSE, "line 3: 4294967297: node ids must be 0, 1, 2" },
        { HEAD "node 18446744073709551617 a op fwd=1", TL_ERROR_PARSE, "line 3: 18446744073709551617: node ids must be" },
        { HEAD "node -1 a op fwd=1 bwd=1 out=4 needs=in in=0", TL_ERROR_PARSE, "line 3: -1: node ids must be 0, 1, 2" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in in=1", TL_ERROR_INVALID_ARG, "node 1 (a): inputs: 1.0 is not made by a node above it" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in in=2\nnode 2 b op fwd=1 bwd=1 out=4 needs=in in=1", TL_ERROR_INVALID_ARG,
          "node 1 (a): inputs: 2.0 is not made by a node above it" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in in=4294967296", TL_ERROR_PARSE, "line 3: in: must be - or tensors" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in in=0.4294967296", TL_ERROR_PARSE, "line 3: in: must be - or tensors" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in in=0.2147483647", TL_ERROR_INVALID_ARG, "0.2147483647 is not made by a node above it" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in1 in=0", TL_ERROR_INVALID_ARG, "node 1 (a): needs: must be none, or a list" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in4294967296 in=0", TL_ERROR_INVALID_ARG, "node 1 (a): needs: must be none" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=out9 in=0", TL_ERROR_INVALID_ARG, "node 1 (a): needs: must be none, or a list" },
        { HEAD "node 1 x op fwd=1 bwd=1 out=4 needs=in in=0", TL_ERROR_INVALID_ARG, "line 3: node 1 (x): name: must be unique" },
        { HEAD "node 1 a op fwd=-1 bwd=1 out=4 needs=in in=0", TL_ERROR_PARSE, "line 3: fwd: must be a number below 2^64" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=-4 needs=in in=0", TL_ERROR_PARSE, "line 3: out: must be numbers below 2^64" },
        { HEAD NODE " saved=-8", TL_ERROR_PARSE, "line 3: saved: must be a number below 2^64" },
        { HEAD NODE " inplace=4294967296", TL_ERROR_PARSE, "line 3: inplace: must be a number below 2^31 - 1" },
        { HEAD NODE " layer=99999999999999999999", TL_ERROR_PARSE, "line 3: layer: must be a number below 2^31 - 1" },
        { HEAD "node 1 a op fwd=18446744073709551615 bwd=1 out=4 needs=in in=0", TL_ERROR_OVERFLOW,
          "line 3: node 1 (a): fwd, bwd: the sum of all costs" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=9223372036854775808 needs=in in=0", TL_ERROR_OVERFLOW,
          "line 3: node 1 (a): out: the sum of all bytes" },
        { HEAD NODE " saved=18446744073709551615", TL_ERROR_OVERFLOW, "line 3: node 1 (a): saved, fwork, swork, bwork: the sum of all bytes" },
        { HEAD NODE " param=18446744073709551615\nnode 2 b op fwd=1 bwd=1 out=4 needs=in in=1 param=1", TL_ERROR_OVERFLOW,
          "line 4: node 2 (b): param: the sum of all weights" },
        { "tlg 1\nbatch 18446744073709551616\n" NODE, TL_ERROR_PARSE, "line 2: batch: must be one number" },
        { "tlg 4294967297\n" NODE, TL_ERROR_PARSE, "line 1: tlg: the version must be 1 or 2" },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuses(cases[i].text, strlen(cases[i].text), cases[i].code, cases[i].sentence);
}

// A head, then `part` again and again up to a length, then a tail.
static char *repeated(const char *head, const char *part, const char *tail, size_t length) {
    char *text = (char *)malloc(length + strlen(head) + strlen(part) + strlen(tail) + 1), *at = text;
    assert_non_null(text);
    memcpy(at, head, strlen(head));
    at += strlen(head);
    while ((size_t)(at - text) < length) { memcpy(at, part, strlen(part)); at += strlen(part); }
    memcpy(at, tail, strlen(tail) + 1);
    return text;
}

static void long_texts_take_memory_in_proportion(void **state) {
    static const struct { const char *head, *part, *tail; tl_result code; const char *sentence; } cases[] = {
        { HEAD "node 1 a op fwd=1 bwd=1 needs=in in=0 out=", "0,", "0 colour=1", TL_ERROR_PARSE, "colour: there is no such attribute" },
        { HEAD "node 1 a op fwd=1 bwd=1 needs=in in=0 out=", "0,", "x", TL_ERROR_PARSE, "out: must be numbers" },
        { HEAD "node 1 a op fwd=1 bwd=1 needs=in out=4 in=", "0,", "1", TL_ERROR_INVALID_ARG, "inputs: 1.0 is not made" },
        { HEAD "node 1 a op fwd=1 bwd=1 out=4 in=0 needs=", "in,", "x", TL_ERROR_INVALID_ARG, "needs: must be none" },
        { HEAD "node 1 ", "a", " op fwd=1 bwd=1 out=4 needs=in in=0", TL_ERROR_INVALID_ARG, "name: must be 1 to 255" },
        { HEAD "node 1 a ", "a", " fwd=1 bwd=1 out=4 needs=in in=0", TL_ERROR_INVALID_ARG, "op: must be 1 to 255" },
        { HEAD "node 1 a op fwd=", "9", " bwd=1 out=4 needs=in in=0", TL_ERROR_PARSE, "fwd: must be a number below 2^64" },
        { HEAD, "\n", "node", TL_ERROR_PARSE, "node ids must be" },
        { HEAD, "# \n", "x", TL_ERROR_PARSE, "x: a line must start with node or batch" },
        { HEAD, " ", "x", TL_ERROR_PARSE, "line 3: x: a line must start with node or batch" },
        { HEAD, "tlg", "", TL_ERROR_PARSE, "a line must start with node or batch" },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = repeated(cases[i].head, cases[i].part, cases[i].tail, 2000000);
        refuses(text, strlen(text), cases[i].code, cases[i].sentence);
        free(text);
    }
}

// What is right is bounded, too: many small nodes, all outputs of one, all inputs of one.
static void large_graphs_take_memory_in_proportion(void **state) {
    int shape;
    (void)state;
    for (shape = 0; shape < 3; shape++) {
        counting_alloc counter = {0};
        tl_env env = counting_env(&counter);
        tl_graph graph;
        char *text = NULL;
        clock_t start = clock();
        if (shape == 1) text = repeated(HEAD "node 1 a op fwd=1 bwd=1 needs=in in=0 out=", "0,", "0", 1000000);
        if (shape == 2) text = repeated(HEAD "node 1 a op fwd=1 bwd=1 out=4 needs=in in=", "0,", "0", 1000000);
        if (shape == 0) {
            char *at = text = (char *)malloc(2000000);
            int id;
            at += sprintf(at, "tlg 1\n");
            for (id = 0; id < 20000; id++) at += sprintf(at, "node %d %d o fwd=0 bwd=0 out=0 needs=none in=-\n", id, id);
        }
        if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
        if (counter.peak > ALLOWED_BYTES(strlen(text))) fail_msg("%lu bytes for a text of %lu", (unsigned long)counter.peak, (unsigned long)strlen(text));
        tl_free_graph(&env, &graph);
        assert_int_equal(counter.live, 0);
        assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
        free(text);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_lines_get_one_sentence_each),
        cmocka_unit_test(long_texts_take_memory_in_proportion),
        cmocka_unit_test(large_graphs_take_memory_in_proportion),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
