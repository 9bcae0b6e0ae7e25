// [3] GRAPH: the graph of one of several equal parts of a batch.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

static const char head[] = "tlg 2\nbatch 8\nstate 0 w sgd w=64 hold\nnode 1 x input fwd=0 bwd=0 out=800 needs=none in=- rows=8@0\n"
                           "node 2 a op fwd=9 bwd=18 out=1600 needs=in in=1,0 saved=80 fwork=9 bwork=10 rows=8@0 rin=1:1,whole row_unit=2 ordered\n"
                           "node 3 b op fwd=4 bwd=4 out=1600 needs=none in=2 rows=8@1 rin=1:1\n";
static const char loss[] = "node 4 loss op fwd=3 bwd=3 out=4 needs=none in=3 fixed\nend 5\n";
static const char sum[] = "node 4 loss op fwd=8 bwd=3 out=4 needs=none in=3 rows=8@0 rin=1:1 reduces\nend 5\n";

static tl_graph parse(const char *lines, const char *last) {
    tl_env env = silent_env();
    char text[1024];
    tl_graph graph;
    snprintf(text, sizeof text, "%s%s", lines, last);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

// By hand, for one, two, four and eight parts: costs and scratch are rounded up, blocks of two rows do not divide into eight.
static void a_part_has_its_share(void **state) {
    static const struct { int32_t parts; uint64_t forward, backward, saved, fwork, bytes, rows; } cases[] = {
        { 1, 9, 18, 80, 9, 1600, 8 }, { 2, 5, 9, 40, 8, 800, 4 }, { 4, 3, 5, 20, 4, 400, 2 }, { 8, 2, 3, 12, 4, 200, 0 },
    };
    tl_graph graph = parse(head, loss);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_env env = silent_env();
        tl_graph part;
        const tl_node_rows *r;
        if (tl_split_graph(&env, &graph, cases[i].parts, &part)) fail_msg("%s", env.error.text);
        assert_int_equal(part.batch, 8 / cases[i].parts);
        assert_int_equal(part.nodes[2].fwd_cost, cases[i].forward);
        assert_int_equal(part.nodes[2].bwd_cost, cases[i].backward);
        assert_int_equal(part.nodes[2].saved_bytes, cases[i].saved);
        assert_int_equal(part.nodes[2].fwork_bytes, cases[i].fwork);
        assert_int_equal(part.outputs[part.nodes[2].first_output].bytes, cases[i].bytes);
        assert_int_equal(part.outputs[part.nodes[0].first_output].bytes, 64);
        assert_int_equal(part.outputs[part.nodes[4].first_output].bytes, 4);
        assert_int_equal(part.nodes[4].fwd_cost, 3);
        r = tli_find_rows(&part, 2);
        assert_int_equal(r ? r->rows : 0, cases[i].rows);
        r = tli_find_rows(&part, 3);
        assert_int_equal(r ? r->rows : 0, 8);
        assert_string_equal(tl_name_node(&part, 4), "loss");
        assert_int_equal(tl_check_graph(&env, &part), TL_OK);
        tl_free_graph(&env, &part);
    }
    tl_free_graph(NULL, &graph);
}

// A loss is a sum over the rows of its part: as many bytes, but less work.
static void what_reduces_keeps_its_bytes(void **state) {
    tl_env env = silent_env();
    tl_graph graph = parse(head, sum), part;
    (void)state;
    if (tl_split_graph(&env, &graph, 4, &part)) fail_msg("%s", env.error.text);
    assert_int_equal(part.outputs[part.nodes[4].first_output].bytes, 4);
    assert_int_equal(part.nodes[4].fwd_cost, 2);
    assert_int_equal(tli_find_rows(&part, 4)->rows, 2);
    tl_free_graph(&env, &part);
    tl_free_graph(&env, &graph);
}

static void what_cannot_be_split_is_refused(void **state) {
    static const struct { const char *last, *sentence; int32_t parts; tl_result result; int holds; } cases[] = {
        { loss, "parts: must be > 0 and divide the batch", 0, TL_ERROR_INVALID_ARG, 1 },
        { loss, "parts: must be > 0 and divide the batch", 3, TL_ERROR_INVALID_ARG, 1 },
        { loss, "parts: add to gradients", 2, TL_ERROR_UNSUPPORTED, 0 },
        { "node 4 loss op fwd=3 bwd=3 out=4 needs=none in=3\nend 5\n", "node 4 (loss): parts: its bytes do not divide", 2, TL_ERROR_INVALID_ARG, 1 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_env env = silent_env();
        char lines[1024], *hold;
        tl_graph graph, part;
        snprintf(lines, sizeof lines, "%s", head);
        hold = strstr(lines, " hold");
        if (!cases[i].holds) memset(hold, ' ', 5);
        if (!cases[i].holds) memmove(hold, hold + 5, strlen(hold + 5) + 1);
        graph = parse(lines, cases[i].last);
        assert_int_equal(tl_split_graph(&env, &graph, cases[i].parts, &part), cases[i].result);
        if (!strstr(env.error.text, cases[i].sentence)) fail_msg("%s, not %s", env.error.text, cases[i].sentence);
        assert_null(part.nodes);
        tl_free_graph(&env, &graph);
    }
}

static void each_allocation_that_fails_is_reported(void **state) {
    tl_graph graph = parse(head, loss);
    long at;
    (void)state;
    for (at = 0;; at++) {
        failing_alloc f;
        tl_env env;
        tl_graph part;
        tl_result result;
        memset(&f, 0, sizeof f);
        env = failing_env(&f, at);
        result = tl_split_graph(&env, &graph, 2, &part);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        tl_free_graph(&env, &part);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 6);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_its_share),
        cmocka_unit_test(what_reduces_keeps_its_bytes),
        cmocka_unit_test(what_cannot_be_split_is_refused),
        cmocka_unit_test(each_allocation_that_fails_is_reported),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
