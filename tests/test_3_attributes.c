// [3] GRAPH: rows, streams, formats and stored constants: text, rules, and where they are kept.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_graph.h"
#include "support/texts.h"

// Every attribute in its canonical form.
static const char sample[] =
    "tlg 2\n"
    "batch 8\n"
    "node 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=16@0 row_unit=2 stream format=i8\n"
    "node 1 ids input fwd=0 bwd=0 out=32 needs=none in=- dies rows=8@3 format=i32\n"
    "state 2 w adamw w=400 m=100,200 upd=9 wfmt=bf16 mfmt=f32,none\n"
    "state 3 v sgd w=12 m=3 hold mfmt=i8\n"
    "state 4 f state w=6 frozen wfmt=i4\n"
    "node 5 a conv fwd=1 bwd=2 out=32 needs=in0 in=0,2.0 saved=16 rows=8@0 rin=3/2/1,whole row_unit=4 ordered format=f16\n"
    "node 6 b up fwd=1 bwd=2 out=64,5 needs=none in=5,1,3.0,4 rows=16@0 rin=up2,1:1,whole,3/1/4/2 format=none,i16\n"
    "node 7 c conv fwd=1 bwd=2 out=9 needs=none in=6.1 stored=400:i8,12:i32,3:bf16\n"
    "end 8\n";

static char *printed(const tl_graph *graph) {
    size_t length = tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1);
    assert_non_null(text);
    assert_int_equal(tl_print_graph(graph, text, length + 1), length);
    return text;
}

static void assert_prints(const tl_graph *graph, const char *expected) {
    char *text = printed(graph);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_rows(const tl_node_rows *rows, int32_t node, uint64_t count, int axis, uint64_t unit, int32_t first, int ordered,
                        int stream) {
    assert_int_equal(rows->node, node);
    assert_int_equal(rows->rows, count);
    assert_int_equal(rows->axis, axis);
    assert_int_equal(rows->unit, unit);
    assert_int_equal(rows->first_relation, first);
    assert_int_equal(rows->ordered, ordered);
    assert_int_equal(rows->stream, stream);
}

static void assert_relation(const tl_relation *r, int32_t kind, int32_t kernel, int32_t stride, int32_t padding, int32_t dilation) {
    assert_int_equal(r->kind, kind);
    assert_int_equal(r->kernel, kernel);
    assert_int_equal(r->stride, stride);
    assert_int_equal(r->padding, padding);
    assert_int_equal(r->dilation, dilation);
}

static void every_attribute_is_read_and_printed(void **state) {
    static const int formats[] = { TL_TENSOR_FORMAT_I8, TL_TENSOR_FORMAT_I32, TL_TENSOR_FORMAT_BF16, TL_TENSOR_FORMAT_F32,
                                   TL_TENSOR_FORMAT_NONE, TL_TENSOR_FORMAT_NONE, TL_TENSOR_FORMAT_I8, TL_TENSOR_FORMAT_NONE,
                                   TL_TENSOR_FORMAT_I4, TL_TENSOR_FORMAT_F16, TL_TENSOR_FORMAT_NONE, TL_TENSOR_FORMAT_I16,
                                   TL_TENSOR_FORMAT_NONE };
    tl_graph graph = graph_of(sample);
    const tl_attributes *a = graph.attributes;
    int32_t i;
    (void)state;
    assert_int_equal(graph.tensor_count, 13);
    for (i = 0; i < graph.tensor_count; i++) assert_int_equal(graph.outputs[i].format, formats[i]);
    assert_int_equal(a->row_count, 4);
    assert_rows(&a->rows[0], 0, 16, 0, 2, 0, 0, 1);
    assert_rows(&a->rows[1], 1, 8, 3, 1, 0, 0, 0);
    assert_rows(&a->rows[2], 5, 8, 0, 4, 0, 1, 0);
    assert_rows(&a->rows[3], 6, 16, 0, 1, 2, 0, 0);
    assert_int_equal(a->relation_count, 6);
    assert_relation(&a->relations[0], TL_RELATION_WINDOW, 3, 2, 1, 1);
    assert_relation(&a->relations[1], TL_RELATION_WHOLE, 0, 0, 0, 0);
    assert_relation(&a->relations[2], TL_RELATION_UP, 0, 2, 0, 0);
    assert_relation(&a->relations[3], TL_RELATION_SAME, 0, 0, 0, 0);
    assert_relation(&a->relations[4], TL_RELATION_WHOLE, 0, 0, 0, 0);
    assert_relation(&a->relations[5], TL_RELATION_WINDOW, 3, 1, 4, 2);
    assert_int_equal(a->stored_count, 3);
    for (i = 0; i < 3; i++) assert_int_equal(a->stored[i].node, 7);
    assert_true(a->stored[0].bytes == 400 && a->stored[0].format == TL_TENSOR_FORMAT_I8);
    assert_true(a->stored[1].bytes == 12 && a->stored[1].format == TL_TENSOR_FORMAT_I32);
    assert_true(a->stored[2].bytes == 3 && a->stored[2].format == TL_TENSOR_FORMAT_BF16);
    assert_prints(&graph, sample);
    assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
    tl_free_graph(NULL, &graph);
}

static void other_spellings_mean_the_same(void **state) {
    tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- stream format=none row_unit=1 rows=8@7\n"
                              "node 1 a b fwd=0 bwd=0 ordered rin=1/1/0/1 rows=04@00 out=8 needs=none in=0 format=none stored=001:f32\n"
                              "end 2\n");
    (void)state;
    assert_prints(&graph, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- rows=8@7 stream\n"
                          "node 1 a b fwd=0 bwd=0 out=8 needs=none in=0 rows=4@0 rin=1/1/0 ordered stored=1:f32\nend 2\n");
    tl_free_graph(NULL, &graph);
    graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nend 1\n");
    assert_null(graph.attributes);
    tl_free_graph(NULL, &graph);
}

// -- refusals --

// A graph of three nodes, of which the last two lines have these attributes.
static void assert_refuses(const char *input, const char *node, tl_result code, const char *sentence) {
    char text[1024], whole[512];
    tl_env env = silent_env();
    tl_graph graph;
    snprintf(text, sizeof text,
             "tlg 2\nstate 0 w adamw w=8 m=8,8\nnode 1 x input fwd=0 bwd=0 out=8 needs=none in=- %s\n"
             "node 2 y conv fwd=1 bwd=1 out=8 needs=none in=1,0 saved=4 %s\nnode 3 z conv fwd=1 bwd=1 out=8 needs=none in=2\nend 4\n",
             input, node);
    snprintf(whole, sizeof whole, "tl_parse_graph: %s", sentence);
    assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), code);
    assert_string_equal(env.error.text, whole);
    assert_true(is_zero(&graph, sizeof graph));
}

#define SYNTAX(words, sentence) assert_refuses("", words, TL_ERROR_PARSE, "line 4: " sentence)
#define NODE(words, sentence) assert_refuses("", words, TL_ERROR_INVALID_ARG, "line 4: node 2 (y): " sentence)
#define INPUT(words, sentence) assert_refuses(words, "", TL_ERROR_INVALID_ARG, "line 3: node 1 (x): " sentence)

static void text_of_rows_is_refused_with_the_field(void **state) {
    (void)state;
    SYNTAX("rows", "rows: needs a value");
    SYNTAX("rows= rin=1:1,1:1", "rows: must be a number of rows and their axis, like 64@0");
    SYNTAX("rows=4 rin=1:1,1:1", "rows: must be a number of rows and their axis, like 64@0");
    SYNTAX("rows=4@ rin=1:1,1:1", "rows: must be a number of rows and their axis, like 64@0");
    SYNTAX("rows=0@0 rin=1:1,1:1", "rows: must be a number of rows and their axis, like 64@0");
    SYNTAX("rows=4@0@1 rin=1:1,1:1", "rows: must be a number of rows and their axis, like 64@0");
    SYNTAX("rows=18446744073709551616@0 rin=1:1,1:1", "rows: must be a number of rows and their axis, like 64@0");
    NODE("rows=4@8 rin=1:1,1:1", "rows: the axis must be 0 to 7");
    NODE("rows=3@0 rin=1:1,1:1", "rows: the bytes of output 0 must divide by them");
    NODE("rows=8@0 rin=1:1,1:1", "rows: the saved bytes must divide by them");
    SYNTAX("rin=1:1,1:1", "rin: must stand beside rows");
    SYNTAX("row_unit=1", "row_unit: must stand beside rows");
    SYNTAX("ordered", "ordered: must stand beside rows");
    SYNTAX("stream", "stream: must stand beside rows");
    SYNTAX("reduces", "reduces: must stand beside rows");
    SYNTAX("reduces=1", "reduces: takes no value");
    SYNTAX("ordered=1", "ordered: takes no value");
    SYNTAX("rows=4@0 rin=1:1,1:1 row_unit=0", "row_unit: must be a number from 1 to 2^64 - 1");
    SYNTAX("rows=4@0 rin=1:1,1:1 row_unit=x", "row_unit: must be a number from 1 to 2^64 - 1");
    NODE("rows=4@0 rin=1:1,1:1 row_unit=3", "row_unit: must divide rows");
    NODE("rows=4@0 rin=1:1,1:1 row_unit=8", "row_unit: must divide rows");
    NODE("rows=4@0 rin=1:1,1:1 dynamic", "rows: nobody knows those of a dynamic node");
    assert_refuses("", "rows=4@0 rin=1:1,1:1 rows=4@0", TL_ERROR_PARSE, "line 4: rows: is given twice");
}

static void text_of_relations_is_refused_with_the_field(void **state) {
    static const char *const broken[] = { "1:1,", "1:2,whole", "3/1,1:1", "3,1:1", "3/1/1/1/1,1:1", "3//1,1:1", "up,1:1", "upx,1:1",
                                          "up2147483648,1:1", "3/1/-1,1:1", "Whole,1:1", "/1/1,1:1", "3/1/,1:1", "3/1/1/,1:1" };
    char words[80];
    size_t i;
    (void)state;
    SYNTAX("rows=4@0", "rin: must be one relation for each input");
    SYNTAX("rows=4@0 rin=1:1", "rin: must be one relation for each input");
    SYNTAX("rows=4@0 rin=1:1,1:1,1:1", "rin: must be one relation for each input");
    assert_refuses("rows=4@0 rin=1:1", "", TL_ERROR_PARSE, "line 3: rin: must be one relation for each input");
    for (i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(words, sizeof words, "rows=4@0 rin=%s", broken[i]);
        SYNTAX(words, "rin: must be 1:1, whole, part, up<stride> or <kernel>/<stride>/<padding>[/<dilation>], for each input");
    }
    NODE("rows=4@0 rin=0/1/0,1:1", "rin: the kernel of a window must be > 0");
    NODE("rows=4@0 rin=1:1,3/0/1", "rin: the stride must be > 0");
    NODE("rows=4@0 rin=1:1,up0", "rin: the stride must be > 0");
    NODE("rows=4@0 rin=3/1/1/0,1:1", "rin: the dilation must be > 0");
    NODE("rows=4@0 rin=3/1/3,1:1", "rin: the padding must be at least 0, and less than the rows under a window");
    NODE("rows=4@0 rin=3/1/5/2,1:1", "rin: the padding must be at least 0, and less than the rows under a window");
    NODE("rows=4@0 rin=1/1/1/9,1:1", "rin: the padding must be at least 0, and less than the rows under a window");
}

static void text_of_streams_is_refused_with_the_field(void **state) {
    (void)state;
    NODE("rows=4@0 rin=1:1,1:1 stream", "stream: is of a graph input");
    INPUT("rows=4@0 stream keep", "stream: an input that is a result stays whole");
    assert_refuses("rows=4@0 stream", "needs=none", TL_ERROR_PARSE, "line 4: needs: is given twice");
    {
        static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- rows=8@0 stream\n"
                                   "node 1 a b fwd=1 bwd=1 out=8 needs=none in=0,0\nnode 2 c b fwd=1 bwd=1 out=8 needs=none in=%s\nend 3\n";
        char whole[400];
        tl_env env = silent_env();
        tl_graph graph;
        snprintf(whole, sizeof whole, text, "1,0");
        assert_int_equal(tl_parse_graph(&env, whole, strlen(whole), &graph), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_parse_graph: line 2: node 0 (x): stream: several nodes read it");
        snprintf(whole, sizeof whole, text, "1");       // twice by one node is once
        graph = graph_of(whole);
        INPUTS(&graph)[2].tensor = 0;
        assert_int_equal(tl_check_graph(&env, &graph), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_check_graph: node 0 (x): stream: several nodes read it");
        tl_free_graph(NULL, &graph);
    }
}

static void text_of_formats_and_constants_is_refused_with_the_field(void **state) {
    tl_env env = silent_env();
    tl_graph graph;
    size_t i;
    static const struct { const char *words, *sentence; } states[] = {
        { "wfmt=f64", "wfmt: must be f32, f16, bf16, i32, i16, i8, i4 or none" },
        { "wfmt=", "wfmt: must be f32, f16, bf16, i32, i16, i8, i4 or none" },
        { "wfmt=f32,f32", "wfmt: must be one format for each output" },
        { "mfmt=f32", "mfmt: must be one format for each moment" },
        { "mfmt=f32,f32,f32", "mfmt: must be one format for each moment" },
        { "mfmt=f32,q8", "mfmt: must be f32, f16, bf16, i32, i16, i8, i4 or none" },
        { "format=f32", "format: there is no such attribute" },
        { "rows=4@0", "rows: there is no such attribute" },
        { "stream", "stream: there is no such attribute" } };
    (void)state;
    SYNTAX("format=f64", "format: must be f32, f16, bf16, i32, i16, i8, i4 or none");
    SYNTAX("format=F32", "format: must be f32, f16, bf16, i32, i16, i8, i4 or none");
    SYNTAX("format=f32,f32", "format: must be one format for each output");
    SYNTAX("wfmt=f32", "wfmt: there is no such attribute");
    SYNTAX("mfmt=f32,f32", "mfmt: there is no such attribute");
    SYNTAX("stored=", "stored: must be bytes and formats, like 400:i8");
    SYNTAX("stored=4", "stored: must be bytes and formats, like 400:i8");
    SYNTAX("stored=4:", "stored: must be bytes and formats, like 400:i8");
    SYNTAX("stored=4:i8,", "stored: must be bytes and formats, like 400:i8");
    SYNTAX("stored=4:i9", "stored: must be bytes and formats, like 400:i8");
    SYNTAX("stored=x:i8", "stored: must be bytes and formats, like 400:i8");
    SYNTAX("stored=18446744073709551616:i8", "stored: must be bytes and formats, like 400:i8");
    NODE("stored=0:i8", "stored: a constant must have bytes");
    NODE("stored=4:none", "stored: a constant must have a format");
    INPUT("stored=4:i8", "stored: an input has no constants; a frozen state of 0 bytes may be one");
    assert_refuses("", "stored=18446744073709551615:i8,1:i8", TL_ERROR_OVERFLOW,
                   "line 4: node 2 (y): stored: the sum of all constants must fit 64 bits");
    for (i = 0; i < sizeof states / sizeof *states; i++) {
        char text[200], whole[200];
        snprintf(text, sizeof text, "tlg 2\nstate 0 w adamw w=8 m=8,8 %s\nend 1\n", states[i].words);
        snprintf(whole, sizeof whole, "tl_parse_graph: line 2: %s", states[i].sentence);
        assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_ERROR_PARSE);
        assert_string_equal(env.error.text, whole);
    }
    {   // a state is a constant or a tensor, and one alone
        static const char *const words[] = { "w=8 stored=4:i8", "w=0 stored=4:i8", "w=8 frozen stored=4:i8", "w=0 frozen stored=4:i8,4:i8", "w=0 stat stored=4:i8" };
        for (i = 0; i < sizeof words / sizeof *words; i++) {
            char text[200];
            snprintf(text, sizeof text, "tlg 2\nstate 0 w adamw %s\nend 1\n", words[i]);
            assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_ERROR_INVALID_ARG);
            assert_string_equal(env.error.text, "tl_parse_graph: line 2: node 0 (w): stored: an input has no constants; a frozen state of 0 bytes may be one");
        }
    }
    {   // the sum is one over all nodes
        static const char text[] = "tlg 2\nnode 0 x a fwd=0 bwd=0 out=8 needs=none in=- stored=18446744073709551615:i8\n"
                                   "node 1 y a fwd=0 bwd=0 out=8 needs=none in=- stored=1:i8\nend 2\n";
        assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_ERROR_OVERFLOW);
        assert_string_equal(env.error.text, "tl_parse_graph: line 3: node 1 (y): stored: the sum of all constants must fit 64 bits");
    }
}

static void reduces_part_and_late_are_read_checked_and_printed(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=12 needs=none in=-\n"
                               "node 1 k mix fwd=1 bwd=1 out=24 needs=in in=0,0 rows=3@1 rin=part,whole\n"
                               "node 2 l loss fwd=1 bwd=1 out=5 needs=out in=1 keep late rows=3@0 rin=1:1 ordered reduces\nend 3\n";
    tl_env env = silent_env();
    tl_graph graph;
    char broken[sizeof text];
    (void)state;
    assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_OK);
    assert_prints(&graph, text);
    assert_relation(&graph.attributes->relations[0], TL_RELATION_PART, 0, 0, 0, 0);
    assert_true(graph.attributes->rows[1].reduces && graph.nodes[2].once == TL_ONCE_LATE);
    tl_free_graph(&env, &graph);
    memcpy(broken, text, sizeof text);      // 5 bytes are no 3 rows
    memset(strstr(broken, " reduces"), ' ', 8);
    assert_int_equal(tl_parse_graph(&env, broken, strlen(broken), &graph), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_parse_graph: line 4: node 2 (l): rows: the bytes of output 0 must divide by them");
    memcpy(broken, text, sizeof text);      // nobody keeps the loss until the backward
    memcpy(strstr(broken, "needs=out"), "needs=in ", 9);
    assert_int_equal(tl_parse_graph(&env, broken, strlen(broken), &graph), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_parse_graph: line 4: node 2 (l): late: is of a node whose backward needs all of its outputs, without saved bytes");
    {
        static const char read[] = "tlg 2\nnode 0 l loss fwd=1 bwd=1 out=4 needs=out in=- late\n"
                                   "node 1 y a fwd=1 bwd=1 out=4 needs=none in=0\nend 2\n";
        assert_int_equal(tl_parse_graph(&env, read, strlen(read), &graph), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_parse_graph: line 3: node 1 (y): in: reads what a backward makes");
    }
    {
        static const char input[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=- rows=4@0 reduces\nend 1\n";
        assert_int_equal(tl_parse_graph(&env, input, strlen(input), &graph), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_parse_graph: line 2: node 0 (x): reduces: is of a node that is called by rows");
    }
}

static void a_text_of_version_1_has_none_of_them(void **state) {
    static const char *const words[] = { "rows=4@0", "rin=1:1", "row_unit=1", "ordered", "reduces", "late", "stream", "format=f32", "stored=4:i8" };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof words / sizeof *words; i++) {
        tl_env env = silent_env();
        char text[200], whole[200], key[16];
        tl_graph graph;
        strcpy(key, words[i]);
        if (strchr(key, '=')) *strchr(key, '=') = 0;
        snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- %s\n", words[i]);
        snprintf(whole, sizeof whole, "tl_parse_graph: line 2: %s: is an attribute of tlg 2", key);
        assert_int_equal(tl_parse_graph(&env, text, strlen(text), &graph), TL_ERROR_PARSE);
        assert_string_equal(env.error.text, whole);
    }
}

// A node that reads an input, with every attribute.
typedef struct whole_desc {
    tl_node_desc node;
    tl_tensor    input;
    uint64_t     bytes;
    tl_relation  relation;
    tl_stored    stored;
    uint8_t      format;
} whole_desc;

static void fill_desc(whole_desc *d) {
    memset(d, 0, sizeof *d);
    d->bytes = 8;
    d->relation.kind = TL_RELATION_WINDOW;
    d->relation.kernel = 3; d->relation.stride = 1; d->relation.padding = 1;
    d->stored.bytes = 5; d->stored.format = TL_TENSOR_FORMAT_I8;
    d->format = TL_TENSOR_FORMAT_F16;
    d->node.inputs = &d->input; d->node.input_count = 1;
    d->node.output_bytes = &d->bytes; d->node.output_count = 1;
    d->node.rows = 4; d->node.row_axis = 1; d->node.row_unit = 2; d->node.ordered = 1;
    d->node.relations = &d->relation;
    d->node.formats = &d->format;
    d->node.stored = &d->stored; d->node.stored_count = 1;
}

static tl_graph graph_of_input(void) {
    return graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- rows=8@0\nend 1\n");
}

#define REFUSED(change, sentence) do { \
        tl_env env = silent_env(); \
        tl_graph graph = graph_of_input(); \
        whole_desc d; \
        fill_desc(&d); \
        change; \
        assert_int_equal(tl_add_node(&env, &graph, &d.node, NULL), TL_ERROR_INVALID_ARG); \
        assert_string_equal(env.error.text, "tl_add_node: node 1 (n1): " sentence); \
        assert_prints(&graph, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- rows=8@0\nend 1\n"); \
        assert_int_equal(tl_check_graph(&env, &graph), TL_OK); \
        tl_free_graph(&env, &graph); \
    } while (0)

static void add_node_refuses_wrong_attributes(void **state) {
    tl_graph graph = graph_of_input();
    whole_desc d;
    (void)state;
    fill_desc(&d);
    assert_int_equal(tl_add_node(NULL, &graph, &d.node, NULL), TL_OK);
    assert_prints(&graph, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- rows=8@0\n"
                          "node 1 n1 op fwd=0 bwd=0 out=8 needs=none in=0 rows=4@1 rin=3/1/1 row_unit=2 ordered format=f16 stored=5:i8\nend 2\n");
    tl_free_graph(NULL, &graph);
    REFUSED(d.node.rows = 0, "rows: must be > 0 where row_axis, relations, row_unit, ordered, reduces or stream are given");
    REFUSED(d.node.row_axis = -1, "rows: the axis must be 0 to 7");
    REFUSED(d.node.row_axis = 8, "rows: the axis must be 0 to 7");
    REFUSED(d.node.rows = 3, "row_unit: must divide rows");
    REFUSED((d.node.rows = 3, d.node.row_unit = 0), "rows: the bytes of output 0 must divide by them");
    REFUSED(d.node.ordered = 2, "ordered, reduces, stream: must be 0 or 1");
    REFUSED(d.node.stream = -1, "ordered, reduces, stream: must be 0 or 1");
    REFUSED(d.node.stream = 1, "stream: is of a graph input");
    REFUSED(d.relation.kind = TL_RELATION_COUNT, "rin: there is no such relation");
    REFUSED(d.relation.kind = -1, "rin: there is no such relation");
    REFUSED(d.relation.kernel = 0, "rin: the kernel of a window must be > 0");
    REFUSED(d.relation.stride = 0, "rin: the stride must be > 0");
    REFUSED(d.relation.dilation = -1, "rin: the dilation must be > 0");
    REFUSED(d.relation.padding = -1, "rin: the padding must be at least 0, and less than the rows under a window");
    REFUSED(d.relation.padding = 3, "rin: the padding must be at least 0, and less than the rows under a window");
    REFUSED(d.relation.kind = TL_RELATION_SAME, "rin: kernel, padding and dilation are of windows, the stride is of windows and up");
    REFUSED(d.relation.kind = TL_RELATION_UP, "rin: kernel, padding and dilation are of windows, the stride is of windows and up");
    REFUSED((memset(&d.relation, 0, sizeof d.relation), d.relation.stride = 1),
            "rin: kernel, padding and dilation are of windows, the stride is of windows and up");
    REFUSED(d.format = TL_TENSOR_FORMAT_COUNT, "format: there is no such one");
    REFUSED(d.node.stored_count = -1, "stored: missing, or a negative count");
    REFUSED(d.node.stored = NULL, "stored: missing, or a negative count");
    REFUSED(d.stored.bytes = 0, "stored: a constant must have bytes");
    REFUSED(d.stored.format = TL_TENSOR_FORMAT_NONE, "stored: a constant must have a format");
    REFUSED(d.stored.format = TL_TENSOR_FORMAT_COUNT, "stored: a constant must have a format");
    REFUSED(d.stored.format = -1, "stored: a constant must have a format");
    REFUSED(d.node.state = TL_STATE_FROZEN; d.node.fixed = 1; d.node.input_count = 0, "rows: a state has none");
    REFUSED(d.input.node = 7, "inputs: 7.0 is not made by a node above it");
}

static void relations_that_are_left_out_are_whole(void **state) {
    tl_graph graph = graph_of_input();
    whole_desc d;
    (void)state;
    fill_desc(&d);
    d.node.relations = NULL;
    d.node.row_unit = 0;
    assert_int_equal(tl_add_node(NULL, &graph, &d.node, NULL), TL_OK);
    assert_relation(&graph.attributes->relations[0], TL_RELATION_WHOLE, 0, 0, 0, 0);
    assert_int_equal(graph.attributes->rows[1].unit, 1);
    tl_free_graph(NULL, &graph);
}

static void states_declare_formats(void **state) {
    static const uint64_t moments[] = { 8, 4 };
    static const uint8_t formats[] = { TL_TENSOR_FORMAT_F32, TL_TENSOR_FORMAT_I8 };
    tl_env env = silent_env();
    tl_graph graph;
    tl_state_desc desc;
    (void)state;
    tl_init_graph(&graph);
    memset(&desc, 0, sizeof desc);
    desc.name = "w"; desc.bytes = 8;
    desc.moment_bytes = moments; desc.moment_count = 2;
    desc.weight_format = TL_TENSOR_FORMAT_BF16;
    desc.moment_formats = formats;
    desc.kind = TL_STATE_HELD;
    assert_int_equal(tl_add_state(&env, &graph, &desc, NULL), TL_OK);
    desc.name = "v"; desc.weight_format = TL_TENSOR_FORMAT_NONE; desc.kind = TL_STATE_TRAINED;
    assert_int_equal(tl_add_state(&env, &graph, &desc, NULL), TL_OK);
    assert_prints(&graph, "tlg 2\nstate 0 w state w=8 m=8,4 hold wfmt=bf16 mfmt=f32,i8\nstate 1 v state w=8 m=8,4 mfmt=f32,i8\nend 2\n");
    desc.name = "u"; desc.weight_format = TL_TENSOR_FORMAT_COUNT;
    assert_int_equal(tl_add_state(&env, &graph, &desc, NULL), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_add_state: state 2 (u): format: there is no such one");
    OUTPUTS(&graph)[3].format = TL_TENSOR_FORMAT_F32;
    assert_int_equal(tl_check_graph(&env, &graph), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_check_graph: node 0 (w): format: the gradient that a state holds has none");
    tl_free_graph(NULL, &graph);
}

#define ROWS(graph) ((tl_node_rows *)(graph)->attributes->rows)
#define BROKEN(change, sentence) do { \
        tl_env env = silent_env(); \
        tl_graph graph = graph_of(sample); \
        tl_attributes *a = (tl_attributes *)graph.attributes, before = *a; \
        change; \
        assert_int_equal(tl_check_graph(&env, &graph), TL_ERROR_INVALID_ARG); \
        assert_string_equal(env.error.text, "tl_check_graph: " sentence); \
        *a = before; \
        tl_free_graph(&env, &graph); \
    } while (0)

static void arrays_made_by_hand_are_checked(void **state) {
    (void)state;
    BROKEN(a->row_count = -1, "attributes: missing, or a negative count");
    BROKEN(a->relation_count = -1, "attributes: missing, or a negative count");
    BROKEN(a->stored_count = -1, "attributes: missing, or a negative count");
    BROKEN(a->rows = NULL, "attributes: missing, or a negative count");
    BROKEN(a->relations = NULL, "attributes: missing, or a negative count");
    BROKEN(a->stored = NULL, "attributes: missing, or a negative count");
#define ORDER "attributes: must be in the order of nodes, with one relation for each input"
    BROKEN(ROWS(&graph)[1].node = 0, ORDER);
    BROKEN(ROWS(&graph)[0].node = -1, ORDER);
    BROKEN(ROWS(&graph)[3].node = 8, ORDER);
    BROKEN(ROWS(&graph)[3].node = 7, ORDER);
    BROKEN(ROWS(&graph)[3].first_relation = 1, ORDER);
    BROKEN(a->relation_count = 5, ORDER);
    BROKEN(a->row_count = 3, ORDER);
    BROKEN(((tl_stored *)a->stored)[2].node = 8, ORDER);
    BROKEN(((tl_stored *)a->stored)[0].node = -1, ORDER);
    BROKEN(((tl_stored *)a->stored)[2].node = 6, ORDER);
    BROKEN(ROWS(&graph)[2].rows = 0, "node 5 (a): rows, row_unit: must be > 0");
    BROKEN(ROWS(&graph)[2].unit = 0, "node 5 (a): rows, row_unit: must be > 0");
    BROKEN(ROWS(&graph)[2].axis = 8, "node 5 (a): rows: the axis must be 0 to 7");
    BROKEN(ROWS(&graph)[2].stream = 1, "node 5 (a): stream: is of a graph input");
    BROKEN(ROWS(&graph)[2].reduces = 2, "node 5 (a): ordered, reduces, stream: must be 0 or 1");
    BROKEN(ROWS(&graph)[2].ordered = 2, "node 5 (a): ordered, reduces, stream: must be 0 or 1");
    BROKEN(((tl_relation *)a->relations)[1].dilation = 1, "node 5 (a): rin: kernel, padding and dilation are of windows, the stride is of windows and up");
    BROKEN(OUTPUTS(&graph)[9].format = TL_TENSOR_FORMAT_COUNT, "node 5 (a): format: there is no such one");
}

// -- random graphs --

static tl_random random_from(uint64_t seed) {
    tl_random random;
    random.state = seed;
    return random;
}

static tl_relation random_relation(tl_random *random) {
    tl_relation r;
    memset(&r, 0, sizeof r);
    r.kind = random_count(random, 0, TL_RELATION_COUNT - 1);
    if (r.kind == TL_RELATION_UP || r.kind == TL_RELATION_WINDOW) r.stride = random_count(random, 1, 4);
    if (r.kind != TL_RELATION_WINDOW) return r;
    r.kernel = random_count(random, 1, 5);
    r.dilation = random_count(random, 1, 3);
    r.padding = random_count(random, 0, r.dilation * (r.kernel - 1));
    return r;
}

// A number that divides both.
static uint64_t random_divisor(tl_random *random, uint64_t a, uint64_t b) {
    uint64_t d = 1 + tl_next_random_below(random, 12);
    while (a % d || b % d) d--;
    return d;
}

static int is_read_once(const tl_graph *graph, int32_t id) {
    int32_t reader, k, last = -1;
    for (reader = 0; reader < graph->node_count; reader++)
        for (k = 0; k < graph->nodes[reader].input_count; k++)
            if (graph->outputs[graph->inputs[graph->nodes[reader].first_input + k].tensor].node == id) {
                if (last >= 0 && last != reader) return 0;
                last = reader;
            }
    return 1;
}

// The same graph with random attributes of every kind.
static tl_graph random_attributes(tl_random *random, const tl_graph *from) {
    tl_env env = silent_env();
    tl_graph to;
    int32_t id, k;
    tl_init_graph(&to);
    to.batch = from->batch;
    for (id = 0; id < from->node_count; id++) {
        const tl_node *node = &from->nodes[id];
        tl_node_desc desc;
        tl_tensor inputs[16];
        uint64_t bytes[16];
        uint8_t formats[16];
        tl_relation relations[16];
        tl_stored stored[4];
        memset(stored, 0, sizeof stored);
        assert_true(node->input_count <= 16 && node->output_count <= 16);
        tli_describe_node(from, id, &desc);
        for (k = 0; k < node->input_count; k++) {
            const tl_node_output *input = &from->outputs[from->inputs[node->first_input + k].tensor];
            inputs[k].node = input->node;
            inputs[k].output = input->output;
            relations[k] = random_relation(random);
        }
        for (k = 0; k < node->output_count; k++) {
            bytes[k] = from->outputs[node->first_output + k].bytes;
            formats[k] = (uint8_t)(random_chance(random, 50) ? random_count(random, 0, TL_TENSOR_FORMAT_COUNT - 1) : 0);
        }
        if (node->state == TL_STATE_HELD) formats[k - 1] = TL_TENSOR_FORMAT_NONE;
        desc.inputs = inputs;
        desc.output_bytes = bytes;
        if (!node->state && !node->dynamic && random_chance(random, 60)) {
            desc.rows = random_divisor(random, bytes[0], node->saved_bytes);
            desc.row_unit = random_divisor(random, desc.rows, 0);
            desc.row_axis = random_count(random, 0, 7);
            desc.relations = relations;
            desc.ordered = random_chance(random, 50);
            desc.stream = node->is_input && !node->keep && is_read_once(from, id) && random_chance(random, 50);
        }
        if (!node->is_input && random_chance(random, 30)) {
            desc.stored = stored;
            desc.stored_count = random_count(random, 1, 4);
            for (k = 0; k < desc.stored_count; k++) {
                stored[k].bytes = 1 + tl_next_random_below(random, 1000);
                stored[k].format = random_count(random, 1, TL_TENSOR_FORMAT_COUNT - 1);
            }
        }
        if (tl_add_node(&env, &to, &desc, NULL)) fail_msg("%s", env.error.text);
        tli_copy_needs(from, id, &to);
        for (k = 0; k < node->output_count; k++) OUTPUTS(&to)[to.nodes[id].first_output + k].format = formats[k];
    }
    if (tl_check_graph(&env, &to)) fail_msg("%s", env.error.text);
    return to;
}

static void assert_same_attributes(const tl_graph *a, const tl_graph *b) {
    const tl_attributes *x = a->attributes, *y = b->attributes;
    int32_t i;
    for (i = 0; i < a->tensor_count; i++) assert_int_equal(a->outputs[i].format, b->outputs[i].format);
    assert_int_equal(x ? x->row_count : 0, y ? y->row_count : 0);
    assert_int_equal(x ? x->relation_count : 0, y ? y->relation_count : 0);
    assert_int_equal(x ? x->stored_count : 0, y ? y->stored_count : 0);
    for (i = 0; x && i < x->row_count; i++)
        assert_rows(&y->rows[i], x->rows[i].node, x->rows[i].rows, x->rows[i].axis, x->rows[i].unit, x->rows[i].first_relation,
                    x->rows[i].ordered, x->rows[i].stream);
    for (i = 0; x && i < x->relation_count; i++) {
        const tl_relation *r = &x->relations[i];
        assert_relation(&y->relations[i], r->kind, r->kernel, r->stride, r->padding, r->dilation);
    }
    for (i = 0; x && i < x->stored_count; i++)
        assert_true(x->stored[i].bytes == y->stored[i].bytes && x->stored[i].node == y->stored[i].node &&
                    x->stored[i].format == y->stored[i].format);
}

// A random graph, of which every other one owns its weights.
static tl_graph random_owner(tl_random *random, int32_t most) {
    tl_env env = silent_env();
    tl_graph graph, owner;
    tl_optimizer_desc desc;
    if (random_graph(&env, random, most, &graph)) fail_msg("%s", env.error.text);
    if (random_chance(random, 50)) return graph;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.moment_count = random_count(random, 0, 2);
    if (tl_apply_optimizer(&env, &desc, &owner)) return graph;  // a node that takes_blocks has weights
    tl_free_graph(&env, &graph);
    if (random_chance(random, 50)) assert_int_equal(tl_hold_gradients(&env, &owner), TL_OK);
    return owner;
}

enum { GRAPHS = 3000 };

static void random_graphs_come_back_the_same(void **state) {
    int i, count = scaled(GRAPHS), with_rows = 0, with_streams = 0, with_stored = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_random random = random_from((uint64_t)i);
        tl_graph plain = random_owner(&random, 12), graph = random_attributes(&random, &plain), again;
        char *text = printed(&graph);
        const tl_attributes *a = graph.attributes;
        int32_t k;
        again = graph_of(text);
        assert_same_attributes(&graph, &again);
        assert_prints(&again, text);
        with_rows += a && a->relation_count > 0;
        with_stored += a && a->stored_count > 1;
        for (k = 0; a && k < a->row_count; k++) with_streams += a->rows[k].stream;
        free(text);
        tl_free_graph(NULL, &plain);
        tl_free_graph(NULL, &graph);
        tl_free_graph(NULL, &again);
    }
    assert_true(with_rows > count / 4 && with_streams > count / 50 && with_stored > count / 10);
}

// -- plans --

static tl_result plan_with(const tl_graph *graph, uint64_t budget, int kind, tl_plan *plan, tl_remat_report *report) {
    tl_env env = silent_env();
    tl_remat_desc desc;
    tl_device device;
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.work_limit = 30000;
    desc.inference = kind == 1;
    desc.live = kind < 2;
    device.alignment_bytes = 16;
    if (kind == 2) desc.device = &device;
    if (kind == 3) desc.host_budget_bytes = 1000000;
    return tl_plan_remat(&env, &desc, plan, report);
}

static void plans_are_those_without(void **state) {
    int i, count = scaled(160), planned = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_random random = random_from(7000 + (uint64_t)i);
        tl_graph plain = random_owner(&random, 9), graph = random_attributes(&random, &plain);
        int kind = i % 4;
        uint64_t budget = 0;
        int32_t turn, k;
        if (i % 3 == 0) { tl_let_inputs_die(&plain); tl_let_inputs_die(&graph); }
        for (turn = 0; turn < 3; turn++) {
            tl_plan a, b;
            tl_remat_report x, y;
            tl_result result = plan_with(&plain, budget, kind, &a, &x);
            assert_int_equal(plan_with(&graph, budget, kind, &b, &y), result);
            assert_int_equal(x.bound_cost, y.bound_cost);
            assert_int_equal(x.bound_budget_bytes, y.bound_budget_bytes);
            if (!result) {
                assert_int_equal(a.cost, b.cost);
                assert_int_equal(a.peak_bytes, b.peak_bytes);
                assert_int_equal(a.step_count, b.step_count);
                assert_int_equal(a.offset_count, b.offset_count);
                assert_memory_equal(a.steps, b.steps, (size_t)a.step_count * sizeof *a.steps);
                for (k = 0; k < a.offset_count; k++) assert_int_equal(tl_find_offset(&a, k, 0), tl_find_offset(&b, k, 0));
                planned++;
            }
            budget = result ? budget + budget / 4 : a.peak_bytes * 3 / 4 + 1;
            tl_free_plan(NULL, &a);
            tl_free_plan(NULL, &b);
        }
        tl_free_graph(NULL, &plain);
        tl_free_graph(NULL, &graph);
    }
    assert_true(planned > count);
}

// -- graphs made from graphs --

static void fused_nodes_have_the_rows_of_their_members(void **state) {
    static const struct { const char *first, *second, *fused; } cases[] = {
        { "rows=12@1 rin=1:1 row_unit=4 ordered", "rows=12@1 rin=1:1,whole row_unit=6 ordered", "rows=12@1 rin=1:1,whole row_unit=12 ordered" },
        { "rows=12@1 rin=3/1/1 ordered", "rows=12@1 rin=1:1,up2", "rows=12@1 rin=3/1/1,up2" },
        { "rows=12@1 rin=3/1/1", "rows=12@1 rin=1:1,up2 ordered", "rows=12@1 rin=3/1/1,up2" },
        { "rows=12@1 rin=1:1 stored=4:i8", "rows=12@1 rin=1:1,1:1 stored=8:i32,2:f16 format=f32", "rows=12@1 rin=1:1,1:1 format=f32 stored=4:i8,8:i32,2:f16" },
        { "rows=12@1 rin=1:1", "rows=12@1 rin=3/1/1,1:1", "" },
        { "rows=12@1 rin=1:1", "rows=12@0 rin=1:1,1:1", "" },
        { "rows=12@1 rin=1:1", "rows=6@1 rin=1:1,1:1", "" },
        { "", "rows=12@1 rin=1:1,1:1", "" },
        { "rows=12@1 rin=1:1 format=f16", "stored=4:i8", "stored=4:i8" } };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[800], expected[800];
        tl_env env = silent_env();
        tl_fusion_desc desc;
        tl_fusion_plan fusion;
        tl_graph graph;
        snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=- rows=12@1 stream format=f32\n"
                                    "node 1 q input fwd=0 bwd=0 out=24 needs=none in=-\n"
                                    "node 2 a relu fwd=1 bwd=1 out=24 needs=none in=0 takes_blocks %s\n"
                                    "node 3 b add fwd=1 bwd=1 out=24 needs=none in=2,1 takes_blocks %s\n"
                                    "node 4 y conv fwd=1 bwd=1 out=8 needs=none in=3 rows=4@0 rin=3/1/1\nend 5\n", cases[i].first, cases[i].second);
        snprintf(expected, sizeof expected, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=- rows=12@1 stream format=f32\n"
                                    "node 1 q input fwd=0 bwd=0 out=24 needs=none in=-\n"
                                    "node 2 b fused fwd=2 bwd=2 out=24 needs=none in=0,1 fwork=24 bwork=24 takes_blocks%s%s\n"
                                    "node 3 y conv fwd=1 bwd=1 out=8 needs=none in=2 rows=4@0 rin=3/1/1\nend 4\n", *cases[i].fused ? " " : "", cases[i].fused);
        graph = graph_of(text);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        if (tl_plan_fusion(&env, &desc, &fusion)) fail_msg("%s", env.error.text);
        assert_prints(&fusion.graph, expected);
        tl_free_fusion_plan(&env, &fusion);
        tl_free_graph(&env, &graph);
    }
}

static void an_optimizer_adds_a_weight_that_is_read_whole(void **state) {
    tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=- rows=12@1 stream\n"
                              "node 1 a conv fwd=1 bwd=1 out=24 needs=in in=0 param=10 rows=12@1 rin=3/1/1 row_unit=4 ordered format=f32 stored=4:i8\n"
                              "node 2 b conv fwd=1 bwd=1 out=24 needs=in in=1 rows=8@0 rin=up2\nstate 3 w sgd w=8 wfmt=bf16\n"
                              "node 4 c conv fwd=1 bwd=1 out=24 needs=in in=2,3\nend 5\n");
    tl_optimizer_desc desc;
    tl_graph owner;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.moment_count = 1;
    assert_int_equal(tl_apply_optimizer(NULL, &desc, &owner), TL_OK);
    assert_int_equal(tl_hold_gradients(NULL, &owner), TL_OK);
    assert_int_equal(tl_check_graph(NULL, &owner), TL_OK);       // no format of a held gradient
    assert_prints(&owner, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=- rows=12@1 stream\nstate 1 a.w state w=10 m=10 hold\n"
                          "node 2 a conv fwd=1 bwd=1 out=24 needs=in in=0,1.0 rows=12@1 rin=3/1/1,whole row_unit=4 ordered format=f32 stored=4:i8\n"
                          "node 3 b conv fwd=1 bwd=1 out=24 needs=in in=2 rows=8@0 rin=up2\nstate 4 w sgd w=8 hold wfmt=bf16\n"
                          "node 5 c conv fwd=1 bwd=1 out=24 needs=in in=3,4.0\nend 6\n");
    tl_let_inputs_die(&owner);
    assert_int_equal(owner.attributes->rows[0].stream, 1);
    assert_int_equal(owner.nodes[0].is_input, 2);
    tl_free_graph(NULL, &owner);
    tl_free_graph(NULL, &graph);
    graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=-\n"
                     "node 1 a conv fwd=1 bwd=1 out=24 needs=in in=0,0 param=10 rows=12@1 rin=1:1,up2\n"
                     "node 2 b conv fwd=1 bwd=1 out=24 needs=in in=1 param=4 rows=8@0 rin=1:1\nend 3\n");
    assert_int_equal(tl_apply_optimizer(NULL, &desc, &owner), TL_OK);
    assert_prints(&owner, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=-\nstate 1 a.w state w=10 m=10\n"
                          "node 2 a conv fwd=1 bwd=1 out=24 needs=in in=0,0,1.0 rows=12@1 rin=1:1,up2,whole\nstate 3 b.w state w=4 m=4\n"
                          "node 4 b conv fwd=1 bwd=1 out=24 needs=in in=2,3.0 rows=8@0 rin=1:1,whole\nend 5\n");
    tl_free_graph(NULL, &owner);
    tl_free_graph(NULL, &graph);
}

// A graph whose states are trained in pieces has a copy of what the other says.
static void pieces_leave_attributes_as_they_are(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=- rows=12@1 stream format=f16\n"
        "state 1 w sgd w=40 m=80 wrows=10%s wfmt=bf16 mfmt=f32\n"
        "node 2 a conv fwd=1 bwd=1 out=24 needs=in in=0,1.0%s rows=12@1 rin=3/1/1,whole row_unit=4 ordered format=f32 stored=4:i8\nend 3\n";
    char whole[800], expected[800];
    tl_pieces_desc desc;
    tl_graph graph, cut;
    (void)state;
    snprintf(whole, sizeof whole, text, "", "");
    snprintf(expected, sizeof expected, text, " piece=4", " bwork=16");
    graph = graph_of(whole);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.piece_bytes = 16;
    assert_int_equal(tl_apply_pieces(NULL, &desc, &cut), TL_OK);
    tl_free_graph(NULL, &graph);
    assert_prints(&cut, expected);
    tl_free_graph(NULL, &cut);
}

// Rows of 4 bits need not begin at a byte; those of other formats do.
static void rows_of_4_bits_share_bytes(void **state) {
    tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=6 needs=none in=- rows=12@1 format=i4\nend 1\n");
    (void)state;
    OUTPUTS(&graph)[0].format = TL_TENSOR_FORMAT_I8;
    assert_int_equal(tl_check_graph(NULL, &graph), TL_ERROR_INVALID_ARG);
    tl_free_graph(NULL, &graph);
}

// Single precision names the format of the elements that a precision scales.
static void formats_go_with_the_precision(void **state) {
    (void)state;
    assert_int_equal(tli_scale_tensor_format(TL_TENSOR_FORMAT_F32, TL_PRECISION_SINGLE), TL_TENSOR_FORMAT_F32);
    assert_int_equal(tli_scale_tensor_format(TL_TENSOR_FORMAT_F32, TL_PRECISION_DOUBLE), TL_TENSOR_FORMAT_NONE);
    assert_int_equal(tli_scale_tensor_format(TL_TENSOR_FORMAT_F32, TL_PRECISION_HALF), TL_TENSOR_FORMAT_F16);
    assert_int_equal(tli_scale_tensor_format(TL_TENSOR_FORMAT_F32, TL_PRECISION_BF16), TL_TENSOR_FORMAT_BF16);
    assert_int_equal(tli_scale_tensor_format(TL_TENSOR_FORMAT_I8, TL_PRECISION_HALF), TL_TENSOR_FORMAT_I8);
}

// A graph that is a const table stays as it is, and its copy owns what it has.
static void a_const_table_is_copied_before_it_grows(void **state) {
    tl_graph graph = graph_of(sample), table = graph;
    whole_desc d;
    char *before = printed(&graph), *after;
    (void)state;
    table.node_capacity = table.input_capacity = table.tensor_capacity = table.view_capacity = 0;
    table.text_capacity = 0;
    fill_desc(&d);
    assert_int_equal(tl_add_node(NULL, &table, &d.node, NULL), TL_OK);
    assert_ptr_not_equal(table.attributes, graph.attributes);
    assert_int_equal(table.attributes->row_count, graph.attributes->row_count + 1);
    tl_free_graph(NULL, &table);
    after = printed(&graph);
    assert_string_equal(before, after);
    free(after);
    table = graph;
    table.node_capacity = table.input_capacity = table.tensor_capacity = table.view_capacity = 0;
    table.text_capacity = 0;
    assert_int_equal(tl_hold_gradients(NULL, &table), TL_OK);
    assert_ptr_not_equal(table.attributes, graph.attributes);
    assert_same_attributes(&graph, &graph);
    tl_free_graph(NULL, &table);
    after = printed(&graph);
    assert_string_equal(before, after);
    free(after);
    free(before);
    tl_free_graph(NULL, &graph);
}

static void hashes_are_those_of_old_unless_there_are_some(void **state) {
    tl_graph graph = graph_of(sample), plain = graph;
    tl_attributes *a = (tl_attributes *)graph.attributes;
    uint64_t whole = tli_mix_attributes(5, &graph);
    int32_t i;
    (void)state;
#define CHANGES(place) do { (place)++; assert_true(tli_mix_attributes(5, &graph) != whole); (place)--; } while (0)
    CHANGES(OUTPUTS(&graph)[0].format);
    for (i = 0; i < a->row_count; i++) {
        CHANGES(ROWS(&graph)[i].rows); CHANGES(ROWS(&graph)[i].unit); CHANGES(ROWS(&graph)[i].node);
        CHANGES(ROWS(&graph)[i].axis); CHANGES(ROWS(&graph)[i].ordered); CHANGES(ROWS(&graph)[i].stream);
    }
    for (i = 0; i < a->relation_count; i++) {
        tl_relation *r = (tl_relation *)&a->relations[i];
        CHANGES(r->kind); CHANGES(r->kernel); CHANGES(r->stride); CHANGES(r->padding); CHANGES(r->dilation);
    }
    for (i = 0; i < a->stored_count; i++) {
        tl_stored *s = (tl_stored *)&a->stored[i];
        CHANGES(s->bytes); CHANGES(s->node); CHANGES(s->format);
    }
    assert_int_equal(tli_mix_attributes(5, &graph), whole);
    assert_true(tli_hash_graph(&graph) != 0);
    plain.attributes = NULL;
    assert_true(tli_hash_graph(&plain) != tli_hash_graph(&graph));
    for (i = 0; i < plain.tensor_count; i++) OUTPUTS(&plain)[i].format = 0;
    assert_int_equal(tli_mix_attributes(5, &plain), 5);
    plain.attributes = a;
    tl_free_graph(NULL, &plain);
}

// -- other precisions --

static const char applied_text[] =
    "tlg 2\nnode 0 x input fwd=0 bwd=0 out=96 needs=none in=- rows=12@1 stream format=f32\n"
    "node 1 a conv fwd=1 bwd=1 out=96 needs=in in=0 rows=12@1 rin=3/1/1 row_unit=4 format=f32 stored=4:i8\n"
    "node 2 b conv fwd=1 bwd=1 out=36 needs=in in=1 rows=36@0 rin=1:1\n"
    "node 3 c conv fwd=1 bwd=1 out=96 needs=in in=2 keep rows=24@2 rin=whole format=f32\nend 4\n";

static void other_formats_keep_rows_that_divide(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(applied_text);
    tl_precision_node nodes[4];
    tl_precision_plan plan;
    tl_precision_graph applied;
    tl_apply_desc desc;
    int i;
    (void)state;
    memset(&plan, 0, sizeof plan);
    memset(&desc, 0, sizeof desc);
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < 4; i++) nodes[i].speedup = 1;
    nodes[1].scheme = TL_SCHEME_BF16;
    nodes[2].scheme = TL_SCHEME_I8;
    plan.nodes = nodes;
    plan.node_count = 4;
    desc.graph = &graph;
    desc.plan = &plan;
    if (tl_apply_precision(&env, &desc, &applied)) fail_msg("%s", env.error.text);
    assert_prints(&applied.graph,
        "tlg 2\nnode 0 x input fwd=0 bwd=0 out=96 needs=none in=- rows=12@1 stream format=f32\n"
        "node 1 x_bf16 convert fwd=24 bwd=0 out=48 needs=none in=0 grad=no rows=12@1 rin=1:1 format=bf16\n"
        "node 2 a conv fwd=1 bwd=1 out=48 needs=in in=1 rows=12@1 rin=3/1/1 row_unit=4 format=bf16 stored=4:i8\n"
        "node 3 a_i8 convert fwd=24 bwd=0 out=24 needs=none in=2 grad=no rows=12@1 rin=1:1 row_unit=4 format=i8\n"
        "node 4 b conv fwd=1 bwd=1 out=9 needs=in in=3\n"                       // 9 bytes are no 36 rows
        "node 5 b_f32 convert fwd=9 bwd=0 out=36 needs=none in=4 grad=no rows=36@0 rin=1:1\n"
        "node 6 c conv fwd=1 bwd=1 out=96 needs=in in=5 keep rows=24@2 rin=whole format=f32\nend 7\n");
    tl_free_precision_graph(&env, &applied);
    OUTPUTS(&graph)[0].format = TL_TENSOR_FORMAT_I8;
    assert_int_equal(tl_apply_precision(&env, &desc, &applied), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_apply_precision: node 0 (x): format: only tensors of f32 can be planned in other precisions");
    OUTPUTS(&graph)[0].format = TL_TENSOR_FORMAT_F32;
    OUTPUTS(&graph)[2].format = TL_TENSOR_FORMAT_I8;
    assert_int_equal(tl_apply_precision(&env, &desc, &applied), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_apply_precision: node 2 (b): format: only tensors of f32 can be planned in other precisions");
    {
        tl_precision_desc ask;
        memset(&ask, 0, sizeof ask);
        ask.graph = &graph;
        assert_int_equal(tl_plan_precision(&env, &ask, &plan), TL_ERROR_UNSUPPORTED);
        assert_string_equal(env.error.text, "tl_plan_precision: node 2 (b): format: only tensors of f32 can be planned in other precisions");
    }
    tl_free_graph(&env, &graph);
}

static tl_result compile_in(tl_env *env, const tl_graph *graph, tl_precision precision, int parts, tl_compiled_plan *compiled) {
    tl_compile_desc desc;
    tl_strategy strategy = tl_strategy_training();
    memset(&desc, 0, sizeof desc);
    strategy.precision = precision;
    strategy.gradient.accumulation_steps = (uint32_t)parts;
    desc.graph = graph;
    desc.strategy = &strategy;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_BF16 | 1u << TL_PRECISION_MIXED;
    desc.may_split = parts > 1;
    return tl_compile(env, &desc, compiled);
}

static void a_part_of_the_batch_has_its_rows(void **state) {
    static const char text[] =
        "tlg 2\nbatch 4\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=16@0 row_unit=2 stream format=i32\n"
        "node 1 k input fwd=0 bwd=0 out=64 needs=none in=- fixed rows=16@0\n"
        "node 2 a conv fwd=4 bwd=4 out=64 needs=in in=0,1 rows=16@0 rin=1:1,whole row_unit=4 format=f32 stored=4:i8\n"
        "node 3 b conv fwd=4 bwd=4 out=64 needs=in in=2 rows=16@1 rin=3/1/1\n"
        "node 4 c conv fwd=4 bwd=4 out=64 needs=in in=3 rows=16@0 rin=1:1 row_unit=8\nend 5\n";
    tl_env env = silent_env();
    tl_graph graph = graph_of(text);
    tl_compiled_plan compiled;
    (void)state;
    if (compile_in(&env, &graph, TL_PRECISION_BF16, 4, &compiled)) fail_msg("%s", env.error.text);
    assert_prints(compiled.source,
        "tlg 2\nbatch 1\nnode 0 x input fwd=0 bwd=0 out=16 needs=none in=- rows=4@0 row_unit=2 stream format=i32\n"
        "node 1 k input fwd=0 bwd=0 out=64 needs=none in=- fixed rows=16@0\n"
        "node 2 a conv fwd=1 bwd=1 out=8 needs=in in=0,1 rows=4@0 rin=1:1,whole row_unit=4 format=bf16 stored=4:i8\n"
        "node 3 b conv fwd=1 bwd=1 out=8 needs=in in=2\n"
        "node 4 c conv fwd=1 bwd=1 out=8 needs=in in=3\nend 5\n");
    tl_free_compiled_plan(&env, &compiled);
    OUTPUTS(&graph)[3].format = TL_TENSOR_FORMAT_F16;
    assert_int_equal(compile_in(&env, &graph, TL_PRECISION_BF16, 1, &compiled), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_compile: node 3 (b): format: only tensors of f32 can be planned in other precisions");
    assert_int_equal(compile_in(&env, &graph, TL_PRECISION_SINGLE, 1, &compiled), TL_OK);
    tl_free_compiled_plan(&env, &compiled);
    tl_free_graph(&env, &graph);
}

static void codecs_take_no_other_format(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- format=i8\n"
                              "node 1 a conv fwd=4 bwd=4 out=64 needs=in in=0 format=f16\nnode 2 b conv fwd=4 bwd=4 out=64 needs=in in=1\nend 3\n");
    static const uint8_t lossless[] = { 0, 1, 0 };
    tl_remat_desc desc;
    tl_plan plan;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.codec = TL_CODEC_Q8;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_plan_remat: node 1 (a): format: codecs compress tensors of f32 alone, so mark others lossless");
    desc.lossless = lossless;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- runs --

static tl_result nothing(const tl_kernel_call *call, void *user) {
    (void)call; (void)user;
    return TL_OK;
}

// Without formats of its own a run takes elements for those of its precision.
static tl_result run_of(tl_env *env, const tl_graph *graph, tl_precision precision, tl_codec codec, const uint8_t *formats) {
    static const tl_kernel kernels[] = { { "conv", nothing, nothing, NULL } };
    static tl_cpu_backend_desc cpu;     // zero
    tl_strategy strategy = tl_with_precision(tl_strategy_new(), precision);
    tl_run_desc desc;
    tl_backend backend;
    tl_run *run;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    assert_int_equal(tl_init_cpu_backend(env, &cpu, &backend), TL_OK);
    desc.graph = graph;
    desc.backend = &backend;
    desc.kernels = kernels; desc.kernel_count = 1;
    desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_BF16 | 1u << TL_PRECISION_MIXED;
    desc.codec = codec;
    desc.formats = formats;
    if (!formats) desc.strategy = &strategy;
    else desc.inference = 1;
    result = tl_init_run(env, &desc, &run);
    if (!result) tl_free_run(run);
    tl_free_cpu_backend(env, &backend);
    return result;
}

static void a_run_is_told_of_formats(void **state) {
    static const uint8_t told[] = { TL_FORMAT_F32, TL_FORMAT_I8, TL_FORMAT_F32 }, other[] = { TL_FORMAT_F32, TL_FORMAT_F32, TL_FORMAT_F32 };
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=16@0 stream format=i32\n"
                               "node 1 a conv fwd=1 bwd=1 out=64 needs=in in=0 format=%s %s\n"
                               "node 2 b conv fwd=1 bwd=1 out=64 needs=in in=1 format=f32\nend 3\n";
#define SAYS "tl_init_run: node 1 (a): format: tensors of other formats than f32 need formats of the run"
    char whole[400];
    tl_env env = silent_env();
    tl_graph graph;
    (void)state;
    snprintf(whole, sizeof whole, text, "f32", "takes_blocks");
    graph = graph_of(whole);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_NONE, NULL), TL_OK);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_BF16, TL_CODEC_NONE, NULL), TL_OK);
    tl_free_graph(NULL, &graph);
    snprintf(whole, sizeof whole, text, "i8", "");
    graph = graph_of(whole);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_NONE, NULL), TL_OK);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_BF16, TL_CODEC_NONE, NULL), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, SAYS);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_Q8, NULL), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, SAYS);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_NONE, told), TL_OK);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_NONE, other), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_init_run: formats: the graph declares another format of a tensor");
    tl_free_graph(NULL, &graph);
    snprintf(whole, sizeof whole, text, "i8", "takes_blocks");
    graph = graph_of(whole);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_NONE, NULL), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, SAYS);
    tl_free_graph(NULL, &graph);
}

static void frozen_states_become_constants(void **state) {
    static const char before[] =
        "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=-\nstate 1 w state w=40 frozen wfmt=i8\n"
        "node 2 a conv fwd=1 bwd=1 out=24 needs=in in=0,1 stored=4:i32,6:i8\nstate 3 v sgd w=8\nstate 4 u state w=16 frozen\n"
        "node 5 b conv fwd=1 bwd=1 out=24 needs=in in=2,3,4 keep stored=5:i8\nend 6\n";
    static const char after[] =
        "tlg 2\nnode 0 x input fwd=0 bwd=0 out=24 needs=none in=-\nstate 1 w state w=0 frozen wfmt=i8 stored=40:i8\n"
        "node 2 a conv fwd=1 bwd=1 out=24 needs=in in=0,1 stored=4:i32,6:i8\nstate 3 v sgd w=8\nstate 4 u state w=0 frozen stored=16:f32\n"
        "node 5 b conv fwd=1 bwd=1 out=24 needs=in in=2,3,4 keep stored=5:i8\nend 6\n";
    tl_env env = silent_env();
    failing_alloc failing;
    tl_graph graph = graph_of(before), table, made;
    tl_plan whole, left;
    long at;
    (void)state;
    assert_int_equal(tl_store_frozen(&env, &graph), TL_OK);
    assert_prints(&graph, after);
    made = graph_of(after);     // read again it is the same graph, and nothing is left to store
    assert_int_equal(tl_store_frozen(&env, &made), TL_OK);
    assert_prints(&made, after);
    tl_free_graph(&env, &made);
    assert_int_equal(run_of(&env, &graph, TL_PRECISION_SINGLE, TL_CODEC_NONE, NULL), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_init_run: graph: w is a constant of generated code (tl_store_frozen), of which a run has no bytes");
    made = graph_of(before);    // 40 and 16 bytes are in no plan any more
    assert_int_equal(tl_plan_keep_all(&env, &made, 0, &whole), TL_OK);
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &left), TL_OK);
    assert_int_equal(whole.peak_bytes, left.peak_bytes + 40 + 16);
    tl_free_plan(&env, &whole);
    tl_free_plan(&env, &left);
    tl_free_graph(&env, &graph);
    table = made;               // of const arrays: a copy is changed
    table.node_capacity = table.input_capacity = table.tensor_capacity = table.view_capacity = table.text_capacity = 0;
    for (at = 0; ; at++) {
        tl_graph copy = table;
        tl_env few;
        tl_result result;
        memset(&failing, 0, sizeof failing);
        few = failing_env(&failing, at);
        result = tl_store_frozen(&few, &copy);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_prints(&copy, result ? before : after);
        tl_free_graph(&few, &copy);
        assert_int_equal(failing.live, 0);
        if (!result) break;
    }
    assert_true(at > 5);
    assert_prints(&made, before);
    tl_free_graph(&env, &made);
}

// -- allocations that fail --

enum { PARSE, CHECK, GROW, HOLD, OPTIMIZER, FUSION, COMPILE, CALLS };

static tl_result call_of(tl_env *env, int which, const tl_graph *graph) {
    tl_optimizer_desc optimizer;
    tl_fusion_desc fusion;
    tl_fusion_plan fused;
    tl_compiled_plan compiled;
    tl_graph table = *graph, made;
    whole_desc d;
    tl_result result = TL_OK;
    memset(&optimizer, 0, sizeof optimizer);
    memset(&fusion, 0, sizeof fusion);
    optimizer.graph = fusion.graph = graph;
    table.node_capacity = table.input_capacity = table.tensor_capacity = table.view_capacity = 0;
    table.text_capacity = 0;
    fill_desc(&d);
    switch (which) {
    case PARSE: result = tl_parse_graph(env, sample, strlen(sample), &made); tl_free_graph(env, &made); break;
    case CHECK: result = tl_check_graph(env, graph); break;
    case GROW: result = tl_add_node(env, &table, &d.node, NULL); tl_free_graph(env, &table); break;
    case HOLD: result = tl_hold_gradients(env, &table); tl_free_graph(env, &table); break;
    case OPTIMIZER: result = tl_apply_optimizer(env, &optimizer, &made); tl_free_graph(env, &made); break;
    case FUSION: result = tl_plan_fusion(env, &fusion, &fused); tl_free_fusion_plan(env, &fused); break;
    case COMPILE: result = compile_in(env, graph, TL_PRECISION_BF16, 1, &compiled); tl_free_compiled_plan(env, &compiled); break;
    }
    return result;
}

static void every_allocation_may_fail(void **state) {
    int which;
    (void)state;
    for (which = 0; which < CALLS; which++) {
        tl_graph graph = graph_of(which == COMPILE ? applied_text : sample);
        char *before = printed(&graph);
        long at;
        for (at = 0; ; at++) {
            failing_alloc f;
            tl_env env;
            tl_result result;
            memset(&f, 0, sizeof f);
            env = failing_env(&f, at);
            result = call_of(&env, which, &graph);
            assert_int_equal(result, f.count <= at ? TL_OK : TL_ERROR_NO_MEMORY);
            assert_int_equal(f.live, 0);
            assert_prints(&graph, before);
            if (f.count <= at) break;
        }
        assert_true(at > 0);
        free(before);
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attribute_is_read_and_printed),
        cmocka_unit_test(other_spellings_mean_the_same),
        cmocka_unit_test(text_of_rows_is_refused_with_the_field),
        cmocka_unit_test(text_of_relations_is_refused_with_the_field),
        cmocka_unit_test(text_of_streams_is_refused_with_the_field),
        cmocka_unit_test(text_of_formats_and_constants_is_refused_with_the_field),
        cmocka_unit_test(reduces_part_and_late_are_read_checked_and_printed),
        cmocka_unit_test(a_text_of_version_1_has_none_of_them),
        cmocka_unit_test(add_node_refuses_wrong_attributes),
        cmocka_unit_test(relations_that_are_left_out_are_whole),
        cmocka_unit_test(states_declare_formats),
        cmocka_unit_test(arrays_made_by_hand_are_checked),
        cmocka_unit_test(random_graphs_come_back_the_same),
        cmocka_unit_test(plans_are_those_without),
        cmocka_unit_test(fused_nodes_have_the_rows_of_their_members),
        cmocka_unit_test(frozen_states_become_constants),
        cmocka_unit_test(an_optimizer_adds_a_weight_that_is_read_whole),
        cmocka_unit_test(pieces_leave_attributes_as_they_are),
        cmocka_unit_test(rows_of_4_bits_share_bytes),
        cmocka_unit_test(formats_go_with_the_precision),
        cmocka_unit_test(a_const_table_is_copied_before_it_grows),
        cmocka_unit_test(hashes_are_those_of_old_unless_there_are_some),
        cmocka_unit_test(other_formats_keep_rows_that_divide),
        cmocka_unit_test(a_part_of_the_batch_has_its_rows),
        cmocka_unit_test(codecs_take_no_other_format),
        cmocka_unit_test(a_run_is_told_of_formats),
        cmocka_unit_test(every_allocation_may_fail),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
