// [3] GRAPH: layers whose bytes and costs follow from shapes, and the statistics of a graph.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_graph.h"

static tl_layer_desc layer_desc(void) {
    tl_layer_desc desc;
    memset(&desc, 0, sizeof desc);
    return desc;
}

static tl_shape shape_of(uint64_t batch, uint64_t channels, uint64_t height, uint64_t width) {
    tl_shape shape;
    shape.batch = batch; shape.channels = channels; shape.height = height; shape.width = width;
    return shape;
}

// The text of a graph without its last line.
static char *printed(const tl_graph *graph) {
    size_t length = tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1), *last;
    assert_non_null(text);
    tl_print_graph(graph, text, length + 1);
    last = strstr(text, "\nend ");
    assert_non_null(last);
    last[1] = 0;
    return text;
}

// -- models by hand: every call must succeed --

typedef struct model {
    tl_env   env;
    tl_graph graph;
    tl_value x;
} model;

#define MUST(call) must(m, call)

static void must(const model *m, tl_result result) {
    if (result) print_error("%s\n", m->env.error.text);
    assert_int_equal(result, TL_OK);
}

static void start(model *m, const char *name, tl_shape shape) {
    memset(m, 0, sizeof *m);
    MUST(tl_add_input(&m->env, &m->graph, name, shape, TL_PRECISION_SINGLE, &m->x));
}

static void convolve(model *m, const char *name, uint64_t channels, uint64_t kernel, uint64_t stride, int bias,
                     tl_elementwise activation) {
    tl_layer_desc desc = layer_desc();
    desc.name = name; desc.channels = channels; desc.kernel = kernel; desc.stride = stride;
    desc.no_bias = !bias; desc.activation = activation;
    MUST(tl_add_conv2d(&m->env, &m->graph, &desc, m->x, &m->x));
}

static void normalise(model *m, const char *name, tl_elementwise activation) {
    tl_layer_desc desc = layer_desc();
    desc.name = name; desc.activation = activation;
    MUST(tl_add_batch_norm(&m->env, &m->graph, &desc, m->x, &m->x));
}

static void pool(model *m, tl_pool kind, const char *name, uint64_t kernel, uint64_t stride, uint64_t positions) {
    tl_layer_desc desc = layer_desc();
    desc.name = name; desc.kernel = kernel; desc.stride = stride; desc.height = positions;
    MUST(tl_add_pool(&m->env, &m->graph, kind, &desc, m->x, &m->x));
}

static void dense(model *m, const char *name, uint64_t channels, tl_elementwise activation, int flatten) {
    tl_layer_desc desc = layer_desc();
    desc.name = name; desc.channels = channels; desc.activation = activation; desc.flatten = flatten;
    MUST(tl_add_dense(&m->env, &m->graph, &desc, m->x, &m->x));
}

static void elementwise(model *m, tl_elementwise kind, const char *name, const tl_value *other,
                        tl_elementwise activation) {
    tl_layer_desc desc = layer_desc();
    tl_value inputs[2];
    desc.name = name; desc.activation = activation;
    inputs[0] = m->x;
    if (other) inputs[1] = *other;
    MUST(tl_add_elementwise(&m->env, &m->graph, kind, &desc, inputs, other ? 2 : 1, &m->x));
}

static void loss(model *m) {
    tl_layer_desc desc = layer_desc();
    desc.name = "loss";
    MUST(tl_add_loss(&m->env, &m->graph, &desc, m->x, NULL, &m->x));
}

static const char *numbered(char *buf, const char *format, int a, int b, int c) {
    snprintf(buf, 64, format, a, b, c);
    return buf;
}

static void build_mlp8(model *m) {
    static const uint64_t units[] = { 1024, 512, 2048, 256, 1024, 512, 128, 10 };
    char name[64];
    int i;
    start(m, "x", shape_of(256, 784, 1, 1));
    for (i = 0; i < 8; i++)
        dense(m, numbered(name, "l_%d", i, 0, 0), units[i], i < 7 ? TL_ELEMENTWISE_RELU : TL_ELEMENTWISE_NONE, 0);
    loss(m);
}

static void build_vgg16(model *m) {
    static const int stages[] = { 2, 2, 3, 3, 3 };
    char name[64];
    int stage, i, at = 0;
    start(m, "x", shape_of(32, 3, 224, 224));
    for (stage = 0; stage < 5; stage++) {
        for (i = 0; i < stages[stage]; i++, at += 2)
            convolve(m, numbered(name, "features_%d", at, 0, 0), stage < 3 ? UINT64_C(64) << stage : 512, 3, 1, 1,
                     TL_ELEMENTWISE_RELU);
        pool(m, TL_POOL_MAX, numbered(name, "features_%d", at++, 0, 0), 2, 2, 0);
    }
    pool(m, TL_POOL_GLOBAL, "avgpool", 0, 0, 7);
    dense(m, "classifier_0", 4096, TL_ELEMENTWISE_RELU, 1);
    elementwise(m, TL_ELEMENTWISE_DROPOUT, "classifier_2", NULL, TL_ELEMENTWISE_NONE);
    dense(m, "classifier_3", 4096, TL_ELEMENTWISE_RELU, 0);
    elementwise(m, TL_ELEMENTWISE_DROPOUT, "classifier_5", NULL, TL_ELEMENTWISE_NONE);
    dense(m, "classifier_6", 1000, TL_ELEMENTWISE_NONE, 0);
    loss(m);
}

static void build_resnet18(model *m) {
    char name[64];
    int stage, block, added = 0;
    start(m, "x", shape_of(64, 3, 224, 224));
    convolve(m, "conv1", 64, 7, 2, 0, TL_ELEMENTWISE_NONE);
    normalise(m, "bn1", TL_ELEMENTWISE_RELU);
    pool(m, TL_POOL_MAX, "maxpool", 3, 2, 0);
    for (stage = 1; stage <= 4; stage++)
        for (block = 0; block < 2; block++) {
            uint64_t channels = UINT64_C(32) << stage, stride = stage > 1 && !block ? 2 : 1;
            tl_value skip = m->x, main_path;
            convolve(m, numbered(name, "layer%d_%d_conv1", stage, block, 0), channels, 3, stride, 0,
                     TL_ELEMENTWISE_NONE);
            normalise(m, numbered(name, "layer%d_%d_bn1", stage, block, 0), TL_ELEMENTWISE_RELU);
            convolve(m, numbered(name, "layer%d_%d_conv2", stage, block, 0), channels, 3, 1, 0, TL_ELEMENTWISE_NONE);
            normalise(m, numbered(name, "layer%d_%d_bn2", stage, block, 0), TL_ELEMENTWISE_NONE);
            if (stride == 2) {
                main_path = m->x;
                m->x = skip;
                convolve(m, numbered(name, "layer%d_%d_downsample_0", stage, block, 0), channels, 1, 2, 0,
                         TL_ELEMENTWISE_NONE);
                normalise(m, numbered(name, "layer%d_%d_downsample_1", stage, block, 0), TL_ELEMENTWISE_NONE);
                skip = m->x;
                m->x = main_path;
            }
            elementwise(m, TL_ELEMENTWISE_ADD, added ? numbered(name, "add_%d", added, 0, 0) : "add", &skip,
                        TL_ELEMENTWISE_RELU);
            added++;
        }
    pool(m, TL_POOL_GLOBAL, "avgpool", 0, 0, 0);
    dense(m, "fc", 1000, TL_ELEMENTWISE_NONE, 0);
    loss(m);
}

static void depthwise(model *m, const char *name, uint64_t stride) {
    tl_layer_desc desc = layer_desc();
    desc.name = name; desc.kernel = 3; desc.stride = stride; desc.no_bias = 1;
    MUST(tl_add_depthwise_conv2d(&m->env, &m->graph, &desc, m->x, &m->x));
}

// Expand, convolve each channel, project; a residual where nothing changes its shape.
static void invert(model *m, int number, uint64_t expansion, uint64_t channels, uint64_t stride, int *added) {
    tl_value skip = m->x;
    char name[64];
    int at = 0;
    if (expansion > 1) {
        convolve(m, numbered(name, "features_%d_conv_%d_0", number, at, 0), m->x.shape.channels * expansion, 1, 1, 0,
                 TL_ELEMENTWISE_NONE);
        normalise(m, numbered(name, "features_%d_conv_%d_1", number, at++, 0), TL_ELEMENTWISE_RELU);
    }
    depthwise(m, numbered(name, "features_%d_conv_%d_0", number, at, 0), stride);
    normalise(m, numbered(name, "features_%d_conv_%d_1", number, at++, 0), TL_ELEMENTWISE_RELU);
    convolve(m, numbered(name, "features_%d_conv_%d", number, at++, 0), channels, 1, 1, 0, TL_ELEMENTWISE_NONE);
    normalise(m, numbered(name, "features_%d_conv_%d", number, at, 0), TL_ELEMENTWISE_NONE);
    if (stride > 1 || skip.shape.channels != channels) return;
    {
        tl_layer_desc desc = layer_desc();
        tl_value inputs[2];
        desc.name = *added ? numbered(name, "add_%d", *added, 0, 0) : "add";
        inputs[0] = skip; inputs[1] = m->x;
        MUST(tl_add_elementwise(&m->env, &m->graph, TL_ELEMENTWISE_ADD, &desc, inputs, 2, &m->x));
    }
    (*added)++;
}

static void build_mobilenet_v2(model *m) {
    static const int rows[][4] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                                   { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    int row, i, number = 1, added = 0;
    start(m, "x", shape_of(64, 3, 224, 224));
    convolve(m, "features_0_0", 32, 3, 2, 0, TL_ELEMENTWISE_NONE);
    normalise(m, "features_0_1", TL_ELEMENTWISE_RELU);
    for (row = 0; row < 7; row++)
        for (i = 0; i < rows[row][2]; i++)
            invert(m, number++, (uint64_t)rows[row][0], (uint64_t)rows[row][1], i ? 1 : (uint64_t)rows[row][3],
                   &added);
    convolve(m, "features_18_0", 1280, 1, 1, 0, TL_ELEMENTWISE_NONE);
    normalise(m, "features_18_1", TL_ELEMENTWISE_RELU);
    pool(m, TL_POOL_GLOBAL, "adaptive_avg_pool2d", 0, 0, 0);
    elementwise(m, TL_ELEMENTWISE_DROPOUT, "classifier_0", NULL, TL_ELEMENTWISE_NONE);
    dense(m, "classifier_1", 1000, TL_ELEMENTWISE_NONE, 0);
    loss(m);
}

static void norm_layer(model *m, const char *name) {
    tl_layer_desc desc = layer_desc();
    desc.name = name;
    MUST(tl_add_layer_norm(&m->env, &m->graph, &desc, m->x, &m->x));
}

static void attend(model *m, tl_attention kind, const char *name, uint64_t heads) {
    tl_layer_desc desc = layer_desc();
    desc.name = name; desc.heads = heads;
    MUST(tl_add_attention(&m->env, &m->graph, kind, &desc, &m->x, 1, &m->x));
}

static void build_transformer(model *m, tl_attention kind, int blocks, tl_shape tokens, uint64_t channels,
                              uint64_t heads, uint64_t vocabulary, uint64_t classes) {
    tl_layer_desc desc = layer_desc();
    char name[64];
    int i;
    start(m, "tok", tokens);
    desc.name = "emb"; desc.channels = channels; desc.vocabulary = vocabulary;
    MUST(tl_add_embedding(&m->env, &m->graph, &desc, m->x, &m->x));
    for (i = 0; i < blocks; i++) {
        tl_value skip = m->x;
        norm_layer(m, numbered(name, "b%d_ln1", i, 0, 0));
        dense(m, numbered(name, "b%d_qkv", i, 0, 0), 3 * channels, TL_ELEMENTWISE_NONE, 0);
        attend(m, kind, numbered(name, "b%d", i, 0, 0), heads);
        dense(m, numbered(name, "b%d_proj", i, 0, 0), channels, TL_ELEMENTWISE_NONE, 0);
        elementwise(m, TL_ELEMENTWISE_ADD, numbered(name, "b%d_add1", i, 0, 0), &skip, TL_ELEMENTWISE_NONE);
        skip = m->x;
        norm_layer(m, numbered(name, "b%d_ln2", i, 0, 0));
        dense(m, numbered(name, "b%d_fc1", i, 0, 0), 4 * channels, TL_ELEMENTWISE_NONE, 0);
        elementwise(m, TL_ELEMENTWISE_GELU, numbered(name, "b%d_gelu", i, 0, 0), NULL, TL_ELEMENTWISE_NONE);
        dense(m, numbered(name, "b%d_fc2", i, 0, 0), channels, TL_ELEMENTWISE_NONE, 0);
        elementwise(m, TL_ELEMENTWISE_ADD, numbered(name, "b%d_add2", i, 0, 0), &skip, TL_ELEMENTWISE_NONE);
    }
    norm_layer(m, "lnf");
    dense(m, "head", classes, TL_ELEMENTWISE_NONE, 0);
    loss(m);
}

static void build_encoder2(model *m) {
    build_transformer(m, TL_ATTENTION_SPLIT, 2, shape_of(8, 1, 128, 1), 256, 4, 1000, 1000);
}

static void build_gpt2_small(model *m) {
    build_transformer(m, TL_ATTENTION_SPLIT, 12, shape_of(8, 1, 1024, 1), 768, 12, 50257, 50257);
}

static void convolve_twice(model *m, const char *path, int level, uint64_t channels) {
    char name[64];
    int i;
    for (i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s_%d_%d", path, level, 3 * i);
        convolve(m, name, channels, 3, 1, 0, TL_ELEMENTWISE_NONE);
        snprintf(name, sizeof name, "%s_%d_%d", path, level, 3 * i + 1);
        normalise(m, name, TL_ELEMENTWISE_RELU);
    }
}

static void build_unet(model *m) {
    tl_layer_desc desc = layer_desc();
    tl_value skips[4], pair[2];
    char name[64];
    int i;
    start(m, "x", shape_of(8, 3, 256, 256));
    for (i = 0; i < 4; i++) {
        convolve_twice(m, "d", i, UINT64_C(64) << i);
        skips[i] = m->x;
        pool(m, TL_POOL_MAX, i ? numbered(name, "max_pool2d_%d", i, 0, 0) : "max_pool2d", 2, 0, 0);
    }
    convolve_twice(m, "d", 4, 1024);
    for (i = 0; i < 4; i++) {
        desc = layer_desc();
        desc.name = numbered(name, "u_%d", i, 0, 0);
        desc.channels = UINT64_C(512) >> i; desc.kernel = desc.stride = 2; desc.no_bias = 1;
        MUST(tl_add_transposed_conv2d(&m->env, &m->graph, &desc, m->x, &m->x));
        pair[0] = skips[3 - i]; pair[1] = m->x;
        desc = layer_desc();
        desc.name = i ? numbered(name, "cat_%d", i, 0, 0) : "cat";
        MUST(tl_add_concat(&m->env, &m->graph, &desc, pair, 2, &m->x));
        convolve_twice(m, "ub", i, UINT64_C(512) >> i);
    }
    convolve(m, "o", 1, 1, 1, 1, TL_ELEMENTWISE_NONE);
    loss(m);
}

typedef struct reference {
    const char *file;
    void      (*build)(model *);
    uint64_t    batch;
    uint64_t    weights;  // as the frameworks that the model comes from count them; 0 = not compared
} reference;

static const reference references[] = {
    { "models/mlp8.tlg", build_mlp8, 256, 0 },
    { "models/vgg16.tlg", build_vgg16, 32, 138357544 },
    { "models/resnet18.tlg", build_resnet18, 64, 11689512 },
    { "models/mobilenet_v2.tlg", build_mobilenet_v2, 64, 3504872 },
    { "models/encoder2.tlg", build_encoder2, 8, 0 },
    { "models/gpt2_small.tlg", build_gpt2_small, 8, 0 },
    { "models/unet.tlg", build_unet, 8, 0 }
};
#define REFERENCE_COUNT ((int)(sizeof references / sizeof *references))

// The first line in which two texts differ, printed.
static void assert_same_lines(const char *file, const char *a, const char *b) {
    while (*a && *b) {
        size_t x = strcspn(a, "\n"), y = strcspn(b, "\n");
        if (x != y || strncmp(a, b, x) != 0) {
            print_error("%s\nbuilt: %.*s\nfile:  %.*s\n", file, (int)x, a, (int)y, b);
            fail();
        }
        a += x + (a[x] == '\n');
        b += y + (b[y] == '\n');
    }
    assert_string_equal(a, b);
}

static void models_by_hand_equal_the_traced_ones(void **state) {
    int i, k;
    (void)state;
    for (i = 0; i < REFERENCE_COUNT; i++) {
        model m;
        tl_graph file;
        char *built, *traced, *text;
        size_t length = 0;
        uint64_t weights;
        text = read_reference("models_by_hand_equal_the_traced_ones", references[i].file, &length);
        if (!text) skip();
        references[i].build(&m);
        assert_int_equal(tl_check_graph(&m.env, &m.graph), TL_OK);
        assert_int_equal(m.graph.batch, references[i].batch);
        assert_int_equal(tl_find_base_bytes(&m.env, &m.graph, 0, 0, &weights), TL_OK);
        if (references[i].weights) assert_int_equal(weights, 4 * references[i].weights);
        // The files hold neither weights nor the batch.
        for (k = 0; k < m.graph.node_count; k++) NODES(&m.graph)[k].param_bytes = 0;
        m.graph.batch = 0;
        assert_int_equal(tl_parse_graph(&m.env, text, length, &file), TL_OK);
        built = printed(&m.graph);
        traced = printed(&file);
        assert_same_lines(references[i].file, built, traced);
        free(built);
        free(traced);
        free(text);
        tl_free_graph(&m.env, &file);
        tl_free_graph(&m.env, &m.graph);
    }
}

// -- each layer: its line of .tlg text, by hand from the formulas of the header --

// The lines of a graph from node `from` on.
static void assert_lines(const model *m, int32_t from, const char *expected) {
    char *text = printed(&m->graph), *at = text;
    int32_t lines = 1 + (m->graph.batch > 0) + from;
    for (; lines > 0; lines--) at = strchr(at, '\n') + 1;
    if (strcmp(at, expected)) print_error("built:    %sexpected: %s", at, expected);
    assert_string_equal(at, expected);
    free(text);
}

// Layers that start at the same input: node 0 of 2 x 6 x 5 x 4 elements of 4 bytes.
static void start_small(model *m) { start(m, "x", shape_of(2, 6, 5, 4)); }

static void assert_shape(const tl_value *value, uint64_t batch, uint64_t channels, uint64_t height, uint64_t width) {
    assert_int_equal(value->shape.batch, batch);
    assert_int_equal(value->shape.channels, channels);
    assert_int_equal(value->shape.height, height);
    assert_int_equal(value->shape.width, width);
}

static void input_shapes_of_zero_are_one(void **state) {
    model m[1];
    tl_value y;
    (void)state;
    start(m, NULL, shape_of(0, 0, 0, 0));
    assert_int_equal(m->graph.batch, 1);
    MUST(tl_add_input(&m->env, &m->graph, "y", shape_of(3, 5, 0, 0), TL_PRECISION_BF16, &y));
    assert_int_equal(m->graph.batch, 1);
    assert_shape(&y, 3, 5, 1, 1);
    assert_int_equal(y.tensor.node, 1);
    assert_lines(m, 0, "node 0 n0 input fwd=0 bwd=0 out=4 needs=none in=-\n"
                       "node 1 y input fwd=0 bwd=0 out=30 needs=none in=-\n");
    tl_free_graph(&m->env, &m->graph);
}

static void dense_goes_over_positions_or_flattens_them(void **state) {
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value y;
    (void)state;
    start_small(m);
    desc.channels = 10; desc.name = "a"; desc.layer = 3; desc.unit = "ffn"; desc.fwork_bytes = 7; desc.bwork_bytes = 8;
    desc.saved_bytes = 9; desc.keep = 1;
    MUST(tl_add_dense(&m->env, &m->graph, &desc, m->x, &y));  // 2 x 20 positions x 10, 13 each
    assert_shape(&y, 2, 10, 5, 4);
    desc = layer_desc();
    desc.channels = 10; desc.flatten = desc.no_bias = 1; desc.activation = TL_ELEMENTWISE_TANH;
    MUST(tl_add_dense(&m->env, &m->graph, &desc, m->x, &y));  // 2 x 10 x (2 x 120), and tanh
    assert_shape(&y, 2, 10, 1, 1);
    MUST(tl_add_dense(&m->env, &m->graph, NULL, y, &y));      // channels stay 10
    desc = layer_desc();
    desc.no_grad = 1; desc.precision = TL_PRECISION_FULL + 1;
    desc.saved_bytes = desc.bwork_bytes = 5;                  // there is no backward that they could be for
    MUST(tl_add_dense(&m->env, &m->graph, &desc, y, &y));
    assert_int_equal(y.precision, TL_PRECISION_FULL);
    assert_lines(m, 1,
        "node 1 a linear fwd=5200 bwd=10400 out=1600 needs=in in=0 saved=9 fwork=7 bwork=8 param=280 layer=2 unit=ffn keep\n"
        "node 2 n2 linear+tanh fwd=4820 bwd=9620 out=80 needs=in,out in=0 param=4800\n"
        "node 3 n3 linear fwd=420 bwd=840 out=80 needs=in in=2 param=440\n"
        "node 4 n4 linear fwd=420 bwd=0 out=160 needs=none in=3 param=880 grad=no\n");
    tl_free_graph(&m->env, &m->graph);
}

static void convolutions_follow_their_windows(void **state) {
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value y;
    (void)state;
    start_small(m);
    desc.kernel = 3;
    MUST(tl_add_conv2d(&m->env, &m->graph, &desc, m->x, &y));    // 240 x (2 x 54 + 1)
    assert_shape(&y, 2, 6, 5, 4);
    desc.padding = TL_NO_PADDING; desc.stride = 2; desc.groups = 3; desc.channels = 9; desc.no_bias = 1;
    MUST(tl_add_conv2d(&m->env, &m->graph, &desc, m->x, &y));    // 2 x 9 x 2 x 1 elements, 2 x 2 x 9 each
    assert_shape(&y, 2, 9, 2, 1);
    desc = layer_desc();
    desc.kernel = 2; desc.kernel_width = 3; desc.stride = 1; desc.stride_width = 2; desc.padding = 1;
    desc.padding_width = TL_NO_PADDING; desc.dilation = 1;
    MUST(tl_add_conv2d(&m->env, &m->graph, &desc, m->x, &y));    // 5 + 2 - 2 + 1 = 6, (4 - 3) / 2 + 1 = 1
    assert_shape(&y, 2, 6, 6, 1);
    desc = layer_desc();
    desc.kernel = 2; desc.dilation = 3; desc.padding = 2;
    MUST(tl_add_conv2d(&m->env, &m->graph, &desc, m->x, &y));    // 5 + 4 - 4 + 1 = 6, 5
    assert_shape(&y, 2, 6, 6, 5);
    desc = layer_desc();
    desc.kernel = 3; desc.channels = 12; desc.no_bias = 1;
    MUST(tl_add_depthwise_conv2d(&m->env, &m->graph, &desc, m->x, &y));  // 480 x 2 x 9
    assert_shape(&y, 2, 12, 5, 4);
    desc = layer_desc();
    desc.kernel = 4; desc.stride = 2; desc.channels = 3;
    MUST(tl_add_transposed_conv2d(&m->env, &m->graph, &desc, m->x, &y));  // 240 x 3 x 16 x 2, and 2 x 3 x 10 x 8
    assert_shape(&y, 2, 3, 10, 8);
    assert_lines(m, 1,
        "node 1 n1 conv2d fwd=26160 bwd=52320 out=960 needs=in in=0 param=1320\n"
        "node 2 n2 conv2d fwd=1296 bwd=2592 out=144 needs=in in=0 param=648\n"
        "node 3 n3 conv2d fwd=5256 bwd=10512 out=288 needs=in in=0 param=888\n"
        "node 4 n4 conv2d fwd=17640 bwd=35280 out=1440 needs=in in=0 param=600\n"
        "node 5 n5 conv2d fwd=8640 bwd=17280 out=1920 needs=in in=0 param=432\n"
        "node 6 n6 convt2d fwd=23520 bwd=47040 out=1920 needs=in in=0 param=1164\n");
    tl_free_graph(&m->env, &m->graph);
}

static void pools_and_upsampling_follow_their_windows(void **state) {
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value y;
    (void)state;
    start_small(m);
    desc.kernel = 2;
    MUST(tl_add_pool(&m->env, &m->graph, TL_POOL_AVERAGE, &desc, m->x, &y));  // the stride is the kernel
    assert_shape(&y, 2, 6, 2, 2);
    desc.kernel = 3; desc.stride = 1;
    MUST(tl_add_pool(&m->env, &m->graph, TL_POOL_MAX, &desc, m->x, &y));
    assert_shape(&y, 2, 6, 5, 4);
    desc = layer_desc();
    desc.height = 2; desc.width = 4;
    MUST(tl_add_pool(&m->env, &m->graph, TL_POOL_GLOBAL, &desc, m->x, &y));   // shares of 3 x 1
    assert_shape(&y, 2, 6, 2, 4);
    desc = layer_desc();
    desc.stride = 2; desc.stride_width = 3;
    MUST(tl_add_upsample(&m->env, &m->graph, &desc, m->x, &y));
    assert_shape(&y, 2, 6, 10, 12);
    desc.kernel = 2;
    MUST(tl_add_upsample(&m->env, &m->graph, &desc, m->x, &y));
    assert_lines(m, 1,
        "node 1 n1 avgpool fwd=192 bwd=192 out=192 needs=none in=0\n"
        "node 2 n2 maxpool fwd=2160 bwd=2160 out=960 needs=in in=0\n"
        "node 3 n3 gavgpool fwd=288 bwd=288 out=384 needs=none in=0\n"
        "node 4 n4 upsample fwd=1440 bwd=1440 out=5760 needs=none in=0\n"
        "node 5 n5 upsample fwd=5760 bwd=5760 out=5760 needs=none in=0\n");
    tl_free_graph(&m->env, &m->graph);
}

static void elementwise_kinds_know_what_they_read(void **state) {
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value inputs[3], y;
    int kind;
    (void)state;
    start_small(m);
    MUST(tl_add_softmax(&m->env, &m->graph, NULL, m->x, &y));
    inputs[0] = inputs[1] = y;
    desc.takes_blocks = 1;  // every second layer says it
    for (kind = 1; kind < TL_ELEMENTWISE_COUNT; kind++)
        MUST(tl_add_elementwise(&m->env, &m->graph, (tl_elementwise)kind, kind % 2 ? NULL : &desc, inputs,
                                kind < TL_ELEMENTWISE_ADD ? 1 : 2, &y));
    inputs[2] = y;
    desc.inplace = 1; desc.activation = TL_ELEMENTWISE_SIGMOID;
    MUST(tl_add_elementwise(&m->env, &m->graph, TL_ELEMENTWISE_ADD, &desc, inputs, 3, &y));
    MUST(tl_add_input(&m->env, &m->graph, "scales", shape_of(2, 6, 1, 1), TL_PRECISION_SINGLE, &inputs[1]));
    MUST(tl_add_elementwise(&m->env, &m->graph, TL_ELEMENTWISE_MUL, NULL, inputs, 2, &y));
    assert_shape(&y, 2, 6, 5, 4);
    desc.takes_blocks = 0;
    desc.no_bias = 1;
    MUST(tl_add_layer_norm(&m->env, &m->graph, &desc, y, &y));
    assert_lines(m, 1,
        "node 1 n1 softmax fwd=240 bwd=240 out=960 needs=out in=0\n"
        "node 2 n2 relu fwd=240 bwd=240 out=960 needs=out in=1\n"
        "node 3 n3 sigmoid fwd=240 bwd=240 out=960 needs=out in=1 takes_blocks\n"
        "node 4 n4 tanh fwd=240 bwd=240 out=960 needs=out in=1\n"
        "node 5 n5 gelu fwd=240 bwd=240 out=960 needs=in in=1 takes_blocks\n"
        "node 6 n6 silu fwd=240 bwd=240 out=960 needs=in in=1\n"
        "node 7 n7 scale fwd=240 bwd=240 out=960 needs=none in=1 takes_blocks\n"
        "node 8 n8 dropout fwd=240 bwd=240 out=960 needs=none in=1\n"
        "node 9 n9 add fwd=240 bwd=240 out=960 needs=none in=1,1 takes_blocks\n"
        "node 10 n10 sub fwd=240 bwd=240 out=960 needs=none in=1,1\n"
        "node 11 n11 mul fwd=240 bwd=240 out=960 needs=in in=1,1 takes_blocks\n"
        "node 12 n12 add+sigmoid fwd=720 bwd=720 out=960 needs=out in=1,1,11 inplace=0 takes_blocks\n"
        "node 13 scales input fwd=0 bwd=0 out=48 needs=none in=-\n"
        "node 14 n14 mul fwd=240 bwd=240 out=960 needs=in in=1,13\n"
        "node 15 n15 layernorm+sigmoid fwd=480 bwd=720 out=960 needs=in,out in=14 param=24 inplace=0\n");
    memset(&desc, 0, sizeof desc);
    desc.takes_blocks = 1;
    desc.saved_bytes = 4;  // a mask: what part of it a range has is not known
    MUST(tl_add_elementwise(&m->env, &m->graph, TL_ELEMENTWISE_DROPOUT, &desc, &y, 1, &y));
    desc.saved_bytes = 0; desc.precision = TL_PRECISION_HALF + 1;
    MUST(tl_add_elementwise(&m->env, &m->graph, TL_ELEMENTWISE_TANH, &desc, &y, 1, &y));
    assert_lines(m, 16,
        "node 16 n16 dropout fwd=240 bwd=240 out=960 needs=none in=15 saved=4\n"
        "node 17 n17 tanh fwd=240 bwd=240 out=480 needs=out in=16\n");
    tl_free_graph(&m->env, &m->graph);
}

// 8 queries of 12 channels against 5 keys, 3 heads, 2 samples: 240 scores, products of 2 x 192 x 5.
static void attention_has_three_forms(void **state) {
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value inputs[3], y;
    (void)state;
    start(m, "q", shape_of(2, 12, 8, 1));
    inputs[0] = m->x;
    MUST(tl_add_input(&m->env, &m->graph, "k", shape_of(2, 12, 5, 1), TL_PRECISION_SINGLE, &inputs[1]));
    MUST(tl_add_input(&m->env, &m->graph, "v", shape_of(2, 12, 5, 1), TL_PRECISION_SINGLE, &inputs[2]));
    desc.heads = 3; desc.name = "a"; desc.fwork_bytes = 1; desc.keep = 1;
    MUST(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_STORED, &desc, inputs, 3, &y));
    assert_shape(&y, 2, 12, 8, 1);
    desc.name = "b"; desc.fwork_bytes = 0;
    MUST(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_TILED, &desc, inputs, 3, &y));
    desc.name = "c";
    MUST(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_SPLIT, &desc, inputs, 3, &y));
    assert_shape(&y, 2, 12, 8, 1);
    desc = layer_desc();  // packed: 12 channels are 4 of each; 128 scores of one head, products of 2 x 64 x 8
    desc.precision = TL_PRECISION_HALF + 1;
    MUST(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_TILED, &desc, inputs, 1, &y));
    assert_shape(&y, 2, 4, 8, 1);
    MUST(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_SPLIT, &desc, inputs, 1, &y));
    assert_lines(m, 3,
        "node 3 a attention fwd=4080 bwd=7920 out=768 needs=in in=0,1,2 saved=960 fwork=961 bwork=960 keep\n"
        "node 4 b attention fwd=4080 bwd=10080 out=768 needs=in,out in=0,1,2 saved=192 bwork=192 keep\n"
        "node 5 c_qk bmm fwd=1920 bwd=3840 out=960 needs=in in=0,1\n"
        "node 6 c_softmax softmax fwd=240 bwd=240 out=960 needs=out in=5\n"
        "node 7 c_av bmm fwd=1920 bwd=3840 out=768 needs=in in=6,2 keep\n"
        "node 8 n8 attention fwd=2176 bwd=5376 out=128 needs=in,out in=0 saved=64 bwork=64\n"
        "node 9 n9 bmm fwd=1024 bwd=2048 out=256 needs=in in=0\n"
        "node 10 n10 softmax fwd=128 bwd=128 out=256 needs=out in=9\n"
        "node 11 n11 bmm fwd=1024 bwd=2048 out=128 needs=in in=10,0\n");
    tl_free_graph(&m->env, &m->graph);
}

// 3 samples, 4 inputs, 5 units: 15 elements a gate, 2 x 9 + 1 each.
static void recurrent_cells_count_their_gates(void **state) {
    model m[1];
    tl_value h[2];
    tl_layer_desc desc = layer_desc();
    (void)state;
    start(m, "x", shape_of(3, 4, 1, 1));
    MUST(tl_add_input(&m->env, &m->graph, "h", shape_of(3, 5, 1, 1), TL_PRECISION_SINGLE, &h[0]));
    MUST(tl_add_recurrent(&m->env, &m->graph, TL_CELL_RNN, NULL, m->x, h, h));
    MUST(tl_add_recurrent(&m->env, &m->graph, TL_CELL_GRU, NULL, m->x, h, h));
    h[1] = h[0];
    MUST(tl_add_recurrent(&m->env, &m->graph, TL_CELL_LSTM, NULL, m->x, h, h));
    assert_shape(&h[1], 3, 5, 1, 1);
    assert_int_equal(h[1].tensor.output, 1);
    desc.no_bias = 1;
    MUST(tl_add_recurrent(&m->env, &m->graph, TL_CELL_LSTM, &desc, m->x, h, h));
    assert_lines(m, 2,
        "node 2 n2 rnn fwd=300 bwd=585 out=60 needs=in,out in=0,1 param=200\n"
        "node 3 n3 gru fwd=960 bwd=1815 out=60 needs=in in=0,2 saved=180 param=600\n"
        "node 4 n4 lstm fwd=1275 bwd=2415 out=60,60 needs=in,out1 in=0,3,3 saved=240 param=800\n"
        "node 5 n5 lstm fwd=1215 bwd=2295 out=60,60 needs=in,out1 in=0,4.0,4.1 saved=240 param=720\n");
    tl_free_graph(&m->env, &m->graph);
}

static void concat_and_split_are_inverse(void **state) {
    static const uint64_t parts[] = { 1, 2, 3 };
    model m[1];
    tl_value values[3], y, labels;
    tl_layer_desc desc = layer_desc();
    (void)state;
    start_small(m);
    MUST(tl_add_split(&m->env, &m->graph, NULL, m->x, parts, 3, values));
    assert_shape(&values[2], 2, 3, 5, 4);
    assert_int_equal(values[2].tensor.output, 2);
    MUST(tl_add_concat(&m->env, &m->graph, NULL, values, 3, &y));
    assert_shape(&y, 2, 6, 5, 4);
    MUST(tl_add_split(&m->env, &m->graph, NULL, y, NULL, 2, values));
    MUST(tl_add_input(&m->env, &m->graph, "labels", shape_of(2, 1, 5, 4), TL_PRECISION_SINGLE, &labels));
    MUST(tl_add_loss(&m->env, &m->graph, &desc, values[1], &labels, &y));
    assert_shape(&y, 2, 1, 1, 1);
    assert_lines(m, 1,
        "node 1 n1 split fwd=240 bwd=240 out=160,320,480 needs=none in=0\n"
        "node 2 n2 concat fwd=240 bwd=240 out=960 needs=none in=1.0,1.1,1.2\n"
        "node 3 n3 split fwd=240 bwd=240 out=480,480 needs=none in=2\n"
        "node 4 labels input fwd=0 bwd=0 out=160 needs=none in=-\n"
        "node 5 n5 loss fwd=120 bwd=120 out=8 needs=in in=3.1,4\n");
    tl_free_graph(&m->env, &m->graph);
}

static void every_precision_has_its_size(void **state) {
    static const uint64_t sizes[] = { 8, 4, 4, 2, 2, 8 };
    model m[1];
    tl_value y;
    int p;
    (void)state;
    assert_int_equal(TL_PRECISION_COUNT, 6);
    start_small(m);
    for (p = 0; p < TL_PRECISION_COUNT; p++) {
        tl_layer_desc desc = layer_desc();
        desc.precision = p + 1;
        MUST(tl_add_batch_norm(&m->env, &m->graph, &desc, m->x, &y));
        assert_int_equal(m->graph.outputs[p + 1].bytes, 240 * sizes[p]);
        assert_int_equal(m->graph.nodes[p + 1].param_bytes, 12 * sizes[p]);
    }
    tl_free_graph(&m->env, &m->graph);
}

static void kinds_have_names_and_parse_back(void **state) {
    int i;
    (void)state;
    for (i = 0; i < TL_ELEMENTWISE_COUNT; i++) {
        tl_elementwise kind = TL_ELEMENTWISE_COUNT;
        assert_true(tl_parse_elementwise(tl_name_elementwise((tl_elementwise)i), &kind));
        assert_int_equal(kind, i);
    }
    for (i = 0; i < TL_POOL_COUNT; i++) {
        tl_pool kind = TL_POOL_COUNT;
        assert_true(tl_parse_pool(tl_name_pool((tl_pool)i), &kind));
        assert_int_equal(kind, i);
    }
    for (i = 0; i < TL_ATTENTION_COUNT; i++) {
        tl_attention kind = TL_ATTENTION_COUNT;
        assert_true(tl_parse_attention(tl_name_attention((tl_attention)i), &kind));
        assert_int_equal(kind, i);
    }
    for (i = 0; i < TL_CELL_COUNT; i++) {
        tl_cell kind = TL_CELL_COUNT;
        assert_true(tl_parse_cell(tl_name_cell((tl_cell)i), &kind));
        assert_int_equal(kind, i);
    }
    {
        tl_elementwise e; tl_pool p; tl_attention a; tl_cell c;
        assert_false(tl_parse_elementwise("Relu", &e) || tl_parse_pool("max", &p) || tl_parse_attention("", &a) ||
                     tl_parse_cell("lstm ", &c));
    }
    assert_string_equal(tl_name_elementwise(TL_ELEMENTWISE_COUNT), "?");
    assert_string_equal(tl_name_pool(TL_POOL_COUNT), "?");
    assert_string_equal(tl_name_attention(TL_ATTENTION_COUNT), "?");
    assert_string_equal(tl_name_cell(TL_CELL_COUNT), "?");
}

// -- what layers refuse --

static void assert_refused(model *m, tl_result result, tl_result code, const tl_value *output, const char *text) {
    tl_value zero;
    memset(&zero, 0, sizeof zero);
    if (result != code || strcmp(m->env.error.text, text))
        print_error("%d: %s\nnot: %s\n", (int)result, m->env.error.text, text);
    assert_int_equal(result, code);
    assert_string_equal(m->env.error.text, text);
    assert_memory_equal(&output->shape, &zero.shape, sizeof zero.shape);
    assert_int_equal(m->graph.node_count, 2);
    assert_int_equal(m->graph.tensor_count, 2);
    assert_int_equal(m->graph.input_count, 0);
}

#define REFUSES(call, text) assert_refused(m, call, TL_ERROR_INVALID_ARG, &y, text)
#define OVERFLOWS(call, text) assert_refused(m, call, TL_ERROR_OVERFLOW, &y, text)

static void fields_without_a_use_are_refused(void **state) {
    model m[1];
    tl_layer_desc desc;
    tl_value x, ids, y;
    tl_env *e = &m->env;
    tl_graph *g = &m->graph;
    (void)state;
    start_small(m);
    x = m->x;
    MUST(tl_add_input(e, g, "ids", shape_of(2, 1, 5, 1), TL_PRECISION_SINGLE, &ids));
#define FIELD(set, call, text) desc = layer_desc(); set; REFUSES(call, text)
    FIELD(desc.activation = TL_ELEMENTWISE_RELU, tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (softmax): activation: must be none here");
    FIELD(desc.takes_blocks = 1, tl_add_conv2d(e, g, &desc, x, &y),
          "tl_add_conv2d: node 2 (conv2d): takes_blocks: must be 0 here");
    FIELD(desc.inplace = 1, tl_add_conv2d(e, g, &desc, x, &y),
          "tl_add_conv2d: node 2 (conv2d): inplace: must be 0 here");
    FIELD(desc.no_bias = 1, tl_add_loss(e, g, &desc, x, NULL, &y),
          "tl_add_loss: node 2 (loss): no_bias: must be 0 here");
    FIELD(desc.flatten = 1, tl_add_loss(e, g, &desc, x, NULL, &y),
          "tl_add_loss: node 2 (loss): flatten: must be 0 here");
    FIELD(desc.channels = 1, tl_add_layer_norm(e, g, &desc, x, &y),
          "tl_add_layer_norm: node 2 (layernorm): channels: must be 0 here");
    FIELD(desc.kernel = 1, tl_add_dense(e, g, &desc, x, &y),
          "tl_add_dense: node 2 (linear): kernel: must be 0 here");
    FIELD(desc.kernel_width = 1, tl_add_dense(e, g, &desc, x, &y),
          "tl_add_dense: node 2 (linear): kernel: must be 0 here");
    FIELD(desc.stride = 1, tl_add_dense(e, g, &desc, x, &y),
          "tl_add_dense: node 2 (linear): stride: must be 0 here");
    FIELD(desc.padding = 1, tl_add_upsample(e, g, &desc, x, &y),
          "tl_add_upsample: node 2 (upsample): padding: must be 0 here");
    FIELD(desc.dilation = 1, tl_add_pool(e, g, TL_POOL_MAX, &desc, x, &y),
          "tl_add_pool: node 2 (maxpool): dilation: must be 0 here");
    FIELD(desc.groups = 1, tl_add_depthwise_conv2d(e, g, &desc, x, &y),
          "tl_add_depthwise_conv2d: node 2 (conv2d): groups: must be 0 here");
    FIELD(desc.width = 1, tl_add_pool(e, g, TL_POOL_MAX, &desc, x, &y),
          "tl_add_pool: node 2 (maxpool): height, width: must be 0 here");
    FIELD(desc.heads = 1, tl_add_embedding(e, g, &desc, ids, &y),
          "tl_add_embedding: node 2 (embedding): heads: must be 0 here");
    FIELD(desc.vocabulary = 1, tl_add_attention(e, g, TL_ATTENTION_TILED, &desc, &x, 1, &y),
          "tl_add_attention: node 2 (attention): vocabulary: must be 0 here");
    FIELD(desc.bwork_bytes = 1, tl_add_attention(e, g, TL_ATTENTION_SPLIT, &desc, &x, 1, &y),
          "tl_add_attention: node 2 (attention): saved_bytes, fwork_bytes, bwork_bytes: must be 0 here");
    FIELD(desc.kernel = 2, tl_add_pool(e, g, TL_POOL_GLOBAL, &desc, x, &y),
          "tl_add_pool: node 2 (gavgpool): kernel: must be 0 here");
    FIELD(desc.channels = 2, tl_add_concat(e, g, &desc, &x, 1, &y),
          "tl_add_concat: node 2 (concat): channels: must be 0 here");
    FIELD(desc.channels = 2, tl_add_split(e, g, &desc, x, NULL, 1, &y),
          "tl_add_split: node 2 (split): channels: must be 0 here");
    FIELD(desc.channels = 2, tl_add_recurrent(e, g, TL_CELL_RNN, &desc, x, &x, &y),
          "tl_add_recurrent: node 2 (rnn): channels: must be 0 here");
    FIELD(desc.inplace = 2, tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (softmax): inplace, no_bias, flatten: must be 0 or 1");
    FIELD(desc.precision = TL_PRECISION_COUNT + 1, tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (softmax): precision: unknown");
    FIELD(desc.precision = -1, tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (softmax): precision: unknown");
    FIELD(desc.keep = 2, tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (n2): no_grad, keep, fixed, takes_blocks, dynamic, dies: must be 0 or 1; once: TL_ONCE_LATE, too");
    FIELD(desc.inplace = 1, tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (n2): inplace: a graph input must not be overwritten");
    FIELD(desc.name = "a b", tl_add_softmax(e, g, &desc, x, &y),
          "tl_add_softmax: node 2 (a b): name: must be 1 to 255 bytes of UTF-8 without control characters, spaces, # and =");
    tl_free_graph(e, g);
}

static void shapes_that_do_not_fit_are_refused(void **state) {
    static const uint64_t parts[] = { 2, 5 }, empty[] = { 6, 0 };
    const char *activation =
        "tl_add_dense: node 2 (linear): activation: its backward must read its output alone: make it a node of its own";
    model m[1];
    tl_layer_desc desc;
    tl_value x, ids, y, wrong, three[3];
    tl_env *e = &m->env;
    tl_graph *g = &m->graph;
    (void)state;
    start_small(m);
    x = m->x;
    MUST(tl_add_input(e, g, "ids", shape_of(2, 1, 5, 1), TL_PRECISION_SINGLE, &ids));
    FIELD(desc.activation = TL_ELEMENTWISE_GELU, tl_add_dense(e, g, &desc, x, &y), activation);
    FIELD(desc.activation = TL_ELEMENTWISE_COUNT, tl_add_dense(e, g, &desc, x, &y), activation);
    FIELD(desc.kernel = 9; desc.padding = 1, tl_add_conv2d(e, g, &desc, x, &y),
          "tl_add_conv2d: node 2 (conv2d): kernel: larger than the padded input");
    FIELD(desc.groups = 4, tl_add_conv2d(e, g, &desc, x, &y),
          "tl_add_conv2d: node 2 (conv2d): groups: must divide the channels of the input and of the result");
    FIELD(desc.groups = 3; desc.channels = 8, tl_add_conv2d(e, g, &desc, x, &y),
          "tl_add_conv2d: node 2 (conv2d): groups: must divide the channels of the input and of the result");
    FIELD(desc.padding = 3, tl_add_transposed_conv2d(e, g, &desc, x, &y),
          "tl_add_transposed_conv2d: node 2 (convt2d): padding: nothing is left of the result");
    FIELD(desc.height = 6, tl_add_pool(e, g, TL_POOL_GLOBAL, &desc, x, &y),
          "tl_add_pool: node 2 (gavgpool): height, width: more positions than the input has");
    FIELD((void)0, tl_add_pool(e, g, TL_POOL_COUNT, &desc, x, &y), "tl_add_pool: node 2 (?): kind: unknown");
    FIELD(desc.channels = desc.vocabulary = 3, tl_add_embedding(e, g, &desc, x, &y),
          "tl_add_embedding: node 2 (embedding): input: must have 1 channel, the id");
    FIELD(desc.channels = 3, tl_add_embedding(e, g, &desc, ids, &y),
          "tl_add_embedding: node 2 (embedding): channels, vocabulary: must be > 0");
    FIELD((void)0, tl_add_elementwise(e, g, TL_ELEMENTWISE_NONE, &desc, &x, 1, &y),
          "tl_add_elementwise: node 2 (none): kind: unknown, or none");
    FIELD((void)0, tl_add_elementwise(e, g, TL_ELEMENTWISE_ADD, &desc, &x, 1, &y),
          "tl_add_elementwise: node 2 (add): inputs: add and mul take 2 or more, sub 2, the others 1");
    FIELD((void)0, tl_add_elementwise(e, g, TL_ELEMENTWISE_RELU, &desc, NULL, 1, &y),
          "tl_add_elementwise: node 2 (relu): inputs: add and mul take 2 or more, sub 2, the others 1");
    three[0] = three[1] = three[2] = x;
    FIELD((void)0, tl_add_elementwise(e, g, TL_ELEMENTWISE_SUB, &desc, three, 3, &y),
          "tl_add_elementwise: node 2 (sub): inputs: add and mul take 2 or more, sub 2, the others 1");
    three[0] = ids;
    FIELD((void)0, tl_add_elementwise(e, g, TL_ELEMENTWISE_SUB, &desc, three, 2, &y),
          "tl_add_elementwise: node 2 (sub): inputs: each extent must be that of the first input, or 1");
    FIELD((void)0, tl_add_concat(e, g, &desc, three, 2, &y),
          "tl_add_concat: node 2 (concat): inputs: all must have the same batch, height, width and precision");
    FIELD((void)0, tl_add_concat(e, g, &desc, three, 0, &y),
          "tl_add_concat: node 2 (concat): inputs: there must be at least one");
    FIELD((void)0, tl_add_split(e, g, &desc, x, parts, 2, three),
          "tl_add_split: node 2 (split): channels: their sum must be that of the input");
    FIELD((void)0, tl_add_split(e, g, &desc, x, empty, 2, three),
          "tl_add_split: node 2 (split): channels: each must be > 0");
    FIELD((void)0, tl_add_split(e, g, &desc, x, NULL, 0, &y),
          "tl_add_split: node 2 (split): output_count: must be > 0");
    FIELD((void)0, tl_add_split(e, g, &desc, ids, NULL, 3, three),
          "tl_add_split: node 2 (split): output_count: must divide the channels of the input");
    assert_int_equal(three[2].shape.batch, 0);
    three[0] = three[1] = three[2] = x;
    FIELD((void)0, tl_add_attention(e, g, TL_ATTENTION_COUNT, &desc, &x, 1, &y),
          "tl_add_attention: node 2 (attention): kind: unknown");
    FIELD((void)0, tl_add_attention(e, g, TL_ATTENTION_TILED, &desc, three, 2, &y),
          "tl_add_attention: node 2 (attention): inputs: there must be 1 or 3");
    FIELD((void)0, tl_add_attention(e, g, TL_ATTENTION_TILED, &desc, &ids, 1, &y),
          "tl_add_attention: node 2 (attention): inputs: queries, keys and values in one tensor are 3 x the channels");
    FIELD(desc.heads = 4, tl_add_attention(e, g, TL_ATTENTION_TILED, &desc, three, 3, &y),
          "tl_add_attention: node 2 (attention): heads: must divide the channels");
    three[2] = ids;
    FIELD((void)0, tl_add_attention(e, g, TL_ATTENTION_SPLIT, &desc, three, 3, &y),
          "tl_add_attention: node 2 (attention): inputs: batch and channels must be equal, and the tokens of the last two");
    FIELD((void)0, tl_add_recurrent(e, g, TL_CELL_COUNT, &desc, x, three, &y),
          "tl_add_recurrent: node 2 (?): kind: unknown");
    FIELD((void)0, tl_add_recurrent(e, g, TL_CELL_GRU, &desc, x, &ids, &y),
          "tl_add_recurrent: node 2 (gru): state: must have the batch of the input, equal channels and one position");
    wrong = x; wrong.shape.height = 4;
    FIELD((void)0, tl_add_softmax(e, g, &desc, wrong, &y),
          "tl_add_softmax: node 2 (softmax): input: its shape does not have the bytes of its tensor");
    wrong = x; wrong.shape.width = 0;
    FIELD((void)0, tl_add_softmax(e, g, &desc, wrong, &y),
          "tl_add_softmax: node 2 (softmax): input: no call made this value");
    wrong = x; wrong.tensor.node = 2;
    FIELD((void)0, tl_add_softmax(e, g, &desc, wrong, &y),
          "tl_add_softmax: node 2 (softmax): input: there is no such tensor");
    wrong = x; wrong.precision = TL_PRECISION_COUNT;
    FIELD((void)0, tl_add_softmax(e, g, &desc, wrong, &y),
          "tl_add_softmax: node 2 (softmax): input: unknown precision");
    REFUSES(tl_add_input(e, g, "z", shape_of(1, 1, 1, 1), TL_PRECISION_COUNT, &y),
            "tl_add_input: node 2 (z): precision: unknown");
    tl_free_graph(e, g);
}

static void sizes_beyond_64_bits_are_an_overflow(void **state) {
    const uint64_t huge = UINT64_C(1) << 61;
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value x, y, lone, pair[2];
    tl_env *e = &m->env;
    tl_graph *g = &m->graph;
    (void)state;
    start_small(m);
    x = m->x;
    MUST(tl_add_input(e, g, "lone", shape_of(1, 1, 1, 1), TL_PRECISION_SINGLE, &lone));
    OVERFLOWS(tl_add_input(e, g, "z", shape_of(huge, 8, 1, 1), TL_PRECISION_HALF, &y),
              "tl_add_input: node 2 (z): shape: bytes and costs must fit 64 bits");
    OVERFLOWS(tl_add_input(e, g, "z", shape_of(huge, 2, 1, 1), TL_PRECISION_SINGLE, &y),
              "tl_add_input: node 2 (z): shape: bytes and costs must fit 64 bits");
    OVERFLOWS(tl_add_input(e, g, "z", shape_of(huge, 2, 1, 1), TL_PRECISION_HALF, &y),  // and a gradient of it
              "tl_add_input: node 2 (z): out: the sum of all bytes, gradients included, must fit 64 bits");
    desc.channels = UINT64_C(1) << 56;
    OVERFLOWS(tl_add_dense(e, g, &desc, x, &y),
              "tl_add_dense: node 2 (linear): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.kernel = UINT64_C(1) << 33; desc.padding = UINT64_C(1) << 32;
    OVERFLOWS(tl_add_conv2d(e, g, &desc, x, &y),
              "tl_add_conv2d: node 2 (conv2d): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.kernel = 3; desc.dilation = UINT64_MAX;
    OVERFLOWS(tl_add_conv2d(e, g, &desc, x, &y),
              "tl_add_conv2d: node 2 (conv2d): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.kernel = 3; desc.padding = UINT64_MAX / 2;
    OVERFLOWS(tl_add_conv2d(e, g, &desc, x, &y),
              "tl_add_conv2d: node 2 (conv2d): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.stride = UINT64_C(1) << 62;
    OVERFLOWS(tl_add_transposed_conv2d(e, g, &desc, x, &y),
              "tl_add_transposed_conv2d: node 2 (convt2d): shape: bytes and costs must fit 64 bits");
    OVERFLOWS(tl_add_upsample(e, g, &desc, x, &y),
              "tl_add_upsample: node 2 (upsample): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.kernel = UINT64_C(1) << 32; desc.padding = UINT64_C(1) << 31;
    OVERFLOWS(tl_add_pool(e, g, TL_POOL_MAX, &desc, x, &y),
              "tl_add_pool: node 2 (maxpool): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.saved_bytes = UINT64_MAX; desc.heads = 2;
    OVERFLOWS(tl_add_attention(e, g, TL_ATTENTION_STORED, &desc, &x, 1, &y),
              "tl_add_attention: node 2 (attention): shape: bytes and costs must fit 64 bits");
    desc = layer_desc(); desc.channels = desc.vocabulary = UINT64_C(1) << 40;
    OVERFLOWS(tl_add_embedding(e, g, &desc, lone, &y),
              "tl_add_embedding: node 2 (embedding): shape: bytes and costs must fit 64 bits");
    pair[0] = pair[1] = lone;
    pair[1].shape.batch = pair[1].shape.channels = pair[1].shape.height = UINT64_C(1) << 30;
    OVERFLOWS(tl_add_concat(e, g, NULL, pair, 2, &y),
              "tl_add_concat: node 2 (concat): shape: bytes and costs must fit 64 bits");
    tl_free_graph(e, g);
}

// A name that its part does not fit in takes all three nodes of an attention with it.
static void failed_attention_leaves_no_part(void **state) {
    char name[256];
    model m[1];
    tl_layer_desc desc = layer_desc();
    tl_value y;
    (void)state;
    start_small(m);
    MUST(tl_add_input(&m->env, &m->graph, "y", shape_of(1, 1, 1, 1), TL_PRECISION_SINGLE, &y));
    memset(name, 'a', sizeof name);
    name[250] = 0;  // _qk fits, _softmax does not
    desc.name = name;
    assert_int_equal(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_SPLIT, &desc, &m->x, 1, &y), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(m->env.error.text, "name: must be 1 to 255 bytes"));
    assert_int_equal(m->graph.node_count, 2);
    assert_int_equal(m->graph.input_count, 0);
    name[247] = 0;
    MUST(tl_add_attention(&m->env, &m->graph, TL_ATTENTION_SPLIT, &desc, &m->x, 1, &y));
    assert_int_equal(m->graph.node_count, 5);
    tl_free_graph(&m->env, &m->graph);
}

// -- memory --

// One of each kind of call on a graph that starts empty.
static tl_result build_everything(tl_env *env, tl_graph *graph) {
    static const uint64_t parts[] = { 2, 4 };
    tl_layer_desc desc = layer_desc();
    tl_value x, pair[2];
    tl_graph_statistics s;
    tl_result result = tl_add_input(env, graph, "x", shape_of(2, 6, 5, 4), TL_PRECISION_SINGLE, &x);
    if (!result) result = tl_add_dense(env, graph, NULL, x, &x);
    if (!result) result = tl_add_split(env, graph, NULL, x, parts, 2, pair);
    if (!result) result = tl_add_concat(env, graph, NULL, pair, 2, &x);
    if (!result) result = tl_add_attention(env, graph, TL_ATTENTION_SPLIT, NULL, &x, 1, &pair[0]);
    pair[1] = pair[0];
    if (!result) result = tl_add_elementwise(env, graph, TL_ELEMENTWISE_MUL, NULL, pair, 2, &x);
    desc.height = 1;
    if (!result) result = tl_add_pool(env, graph, TL_POOL_GLOBAL, &desc, x, &x);
    pair[0] = pair[1] = x;
    if (!result) result = tl_add_recurrent(env, graph, TL_CELL_LSTM, NULL, x, pair, pair);
    if (!result) result = tl_add_loss(env, graph, NULL, pair[0], NULL, &x);
    if (!result) result = tl_measure_graph(env, graph, &s);
    if (!result) tl_free_graph_statistics(env, &s);
    return result;
}

static void every_allocation_may_fail(void **state) {
    long at;
    int once;
    (void)state;
    for (once = 0; once < 2; once++)
        for (at = 0; ; at++) {
            failing_alloc f;
            tl_env env;
            tl_graph graph;
            tl_result result;
            memset(&f, 0, sizeof f);
            env = failing_env(&f, at);
            f.fails_once = once;
            tl_init_graph(&graph);
            result = build_everything(&env, &graph);
            if (f.count > at) {
                assert_int_equal(result, TL_ERROR_NO_MEMORY);
                assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
                if (graph.node_count) assert_int_equal(tl_check_graph(NULL, &graph), TL_OK);
            } else {
                assert_int_equal(result, TL_OK);
                assert_int_equal(graph.node_count, 11);
            }
            tl_free_graph(&env, &graph);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
}

// -- statistics as text, and of graphs that are none --

static void statistics_print_as_a_table(void **state) {
    model m[1];
    tl_graph_statistics s, zero;
    char text[2048], small[40];
    size_t length;
    (void)state;
    start_small(m);
    MUST(tl_add_dense(&m->env, &m->graph, NULL, m->x, &m->x));
    elementwise(m, TL_ELEMENTWISE_GELU, "gelu", NULL, TL_ELEMENTWISE_NONE);
    MUST(tl_add_dense(&m->env, &m->graph, NULL, m->x, &m->x));
    loss(m);
    MUST(tl_measure_graph(&m->env, &m->graph, &s));
    length = tl_print_graph_statistics(&m->graph, &s, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(text,
        " nodes  op                    output bytes     saved bytes    weight bytes        forward cost       backward cost\n"
        "     1  input                        960               0               0                   0                   0\n"
        "     2  linear                      1920               0             336                6240               12480\n"
        "     1  gelu                         960               0               0                 240                 240\n"
        "     1  loss                           8               0               0                 240                 240\n"
        "     5  all                         3848               0             336                6720               12960\n"
        "depth 5, width 1, cuts 5\n"
        "largest tensor: 960 bytes, of x\n"
        "floor: 3840 bytes, backward of gelu; forward only 2880 bytes\n"
        "keep all: 4808 bytes\n");
    assert_int_equal(tl_print_graph_statistics(&m->graph, &s, NULL, 0), length);
    assert_int_equal(tl_print_graph_statistics(&m->graph, &s, small, sizeof small), length);
    assert_int_equal(strlen(small), sizeof small - 1);
    memset(&zero, 0, sizeof zero);
    tl_free_graph_statistics(&m->env, &s);
    assert_memory_equal(&s, &zero, sizeof zero);
    tl_free_graph_statistics(&m->env, &s);
    tl_free_graph_statistics(&m->env, NULL);
    tl_free_graph(&m->env, &m->graph);
    memset(&s, 0xff, sizeof s);
    assert_int_equal(tl_measure_graph(&m->env, &m->graph, &s), TL_ERROR_INVALID_ARG);
    assert_memory_equal(&s, &zero, sizeof zero);
}

// -- statistics, against slow and simple sums --

static int reads(const tl_graph *graph, int32_t node, int32_t tensor, int needed) {
    int32_t k;
    for (k = 0; k < graph->nodes[node].input_count; k++) {
        const tl_node_input *input = &graph->inputs[graph->nodes[node].first_input + k];
        if (input->tensor == tensor && (!needed || input->needed)) return 1;
    }
    return 0;
}

// Bytes of a call: forward (0), forward that saves (1), backward (2).
static uint64_t working_set(const tl_graph *graph, int32_t id, int call) {
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = call == 2 ? node->bwork_bytes : node->fwork_bytes;
    int32_t t;
    if (call && !(call == 1 ? node->saved_bytes : node->has_grad)) return 0;
    if (call) sum += node->saved_bytes;
    for (t = 0; t < graph->tensor_count; t++) {
        const tl_node_output *output = &graph->outputs[t];
        const tl_node *from = &graph->nodes[output->node];
        int own = output->node == id;
        if (from->is_input) { sum += output->bytes; continue; }
        if (call < 2 && (own || reads(graph, id, t, 0))) sum += output->bytes;
        if (call == 2 && (reads(graph, id, t, 1) || (own && output->needed))) sum += output->bytes;
        if (call == 2 && (own || (reads(graph, id, t, 0) && from->has_grad))) sum += output->bytes;
    }
    if (!call && node->inplace >= 0) sum -= graph->outputs[node->first_output].bytes;
    return sum;
}

// Whether every plan runs the forward of a node.
static int runs(const tl_graph *graph, int32_t id, int inference) {
    int32_t r, t, i, read = 0, any_keep = 0;
    for (i = 0; i < graph->node_count; i++) any_keep |= graph->nodes[i].keep;
    if (graph->nodes[id].keep || (!inference && graph->nodes[id].has_grad)) return 1;
    for (t = 0; t < graph->tensor_count; t++)
        for (r = id + 1; r < graph->node_count; r++)
            if (graph->outputs[t].node == id && reads(graph, r, t, 0)) {
                read = 1;
                if (runs(graph, r, inference)) return 1;
            }
    return inference && !any_keep && !read;
}

static int32_t path_to(const tl_graph *graph, int32_t id) {  // small graphs only
    int32_t k, longest = 0;
    for (k = 0; k < graph->nodes[id].input_count; k++) {
        int32_t tensor = graph->inputs[graph->nodes[id].first_input + k].tensor;
        int32_t length = path_to(graph, graph->outputs[tensor].node);
        if (length > longest) longest = length;
    }
    return longest + 1;
}

static void assert_statistics(const tl_graph *graph, const tl_graph_statistics *s) {
    uint64_t floor_bytes = 0, forward_bytes = 0, fwd = 0, bwd = 0, outputs = 0, saved = 0, params = 0;
    int32_t floor_node = 0, floor_call = 0, i, t, r, call, cut_count = 0, width = 0, depth = 0, nodes = 0;
    for (i = 0; i < graph->node_count; i++) {
        int32_t crossing = 0, passed = 0;
        for (t = 0; t < graph->tensor_count; t++) {
            int32_t from = graph->outputs[t].node, read = 0;
            for (r = i + 1; r < graph->node_count; r++) read |= reads(graph, r, t, 0);
            crossing += from <= i && read;
            passed |= from < i && read;
        }
        if (!passed) assert_int_equal(s->cuts[cut_count++], i);
        if (crossing > width) width = crossing;
        if (path_to(graph, i) > depth) depth = path_to(graph, i);
        fwd += graph->nodes[i].fwd_cost; bwd += graph->nodes[i].bwd_cost;
        saved += graph->nodes[i].saved_bytes; params += graph->nodes[i].param_bytes;
        for (call = 0; call < 3; call++) {
            uint64_t bytes = working_set(graph, i, call);
            if (graph->nodes[i].is_input) {  // no call, but its bytes are there
                if (!call && bytes > floor_bytes) floor_bytes = bytes;
                if (!call && bytes > forward_bytes) forward_bytes = bytes;
                continue;
            }
            if (!call && bytes > forward_bytes && runs(graph, i, 1)) forward_bytes = bytes;
            if (bytes <= floor_bytes || (call < 2 && !runs(graph, i, 0))) continue;
            floor_bytes = bytes; floor_node = i; floor_call = call;
        }
    }
    for (t = 0; t < graph->tensor_count; t++) {
        outputs += graph->outputs[t].bytes;
        assert_true(graph->outputs[t].bytes <= s->largest_bytes);
    }
    t = graph->nodes[s->largest_tensor.node].first_output + s->largest_tensor.output;
    assert_int_equal(graph->outputs[t].bytes, s->largest_bytes);
    for (i = 0; i < s->op_count; i++) nodes += s->ops[i].node_count;
    assert_int_equal(nodes, graph->node_count);
    assert_int_equal(s->node_count, graph->node_count);
    assert_int_equal(s->tensor_count, graph->tensor_count);
    assert_int_equal(s->cut_count, cut_count);
    assert_int_equal(s->width, width);
    assert_int_equal(s->depth, depth);
    assert_true(s->fwd_cost == fwd && s->bwd_cost == bwd && s->output_bytes == outputs && s->saved_bytes == saved &&
                s->param_bytes == params);
    assert_int_equal(s->inference_floor_bytes, forward_bytes);
    assert_int_equal(s->floor_bytes, floor_bytes);
    assert_int_equal(s->floor_node, floor_node);
    assert_int_equal(s->floor_is_backward, floor_call == 2);
}

static void statistics_of_random_graphs_equal_simple_sums(void **state) {
    tl_random random;
    int i;
    (void)state;
    random.state = 20261121;
    for (i = 0; i < 400; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_graph_statistics s;
        tl_plan plan;
        assert_int_equal(random_graph(&env, &random, random_count(&random, 1, 12), &graph), TL_OK);
        assert_int_equal(tl_measure_graph(&env, &graph, &s), TL_OK);
        assert_statistics(&graph, &s);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
        assert_int_equal(s.keep_all_bytes, plan.peak_bytes);
        tl_free_plan(&env, &plan);
        tl_free_graph_statistics(&env, &s);
        tl_free_graph(&env, &graph);
    }
}

// A budget of the floor less one byte is never enough; where the chain is all there is, the floor is.
static void no_plan_needs_less_than_the_floor(void **state) {
    tl_random random;
    int i, found = 0;
    (void)state;
    random.state = 7;
    for (i = 0; i < 60; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_graph_statistics s;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_plan plan;
        memset(&desc, 0, sizeof desc);
        assert_int_equal(random_graph(&env, &random, random_count(&random, 2, 7), &graph), TL_OK);
        assert_int_equal(tl_measure_graph(&env, &graph, &s), TL_OK);
        desc.graph = &graph;
        desc.live = 1;
        desc.work_limit = 200000;
        desc.budget_bytes = s.floor_bytes - 1;
        if (desc.budget_bytes) {
            assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
            assert_true(report.least_budget_bytes >= s.floor_bytes);
            found += report.least_budget_bytes == s.floor_bytes;
        }
        tl_free_graph_statistics(&env, &s);
        tl_free_graph(&env, &graph);
    }
    assert_true(found > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_by_hand_equal_the_traced_ones),
        cmocka_unit_test(input_shapes_of_zero_are_one),
        cmocka_unit_test(dense_goes_over_positions_or_flattens_them),
        cmocka_unit_test(convolutions_follow_their_windows),
        cmocka_unit_test(pools_and_upsampling_follow_their_windows),
        cmocka_unit_test(elementwise_kinds_know_what_they_read),
        cmocka_unit_test(attention_has_three_forms),
        cmocka_unit_test(recurrent_cells_count_their_gates),
        cmocka_unit_test(concat_and_split_are_inverse),
        cmocka_unit_test(every_precision_has_its_size),
        cmocka_unit_test(kinds_have_names_and_parse_back),
        cmocka_unit_test(fields_without_a_use_are_refused),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(sizes_beyond_64_bits_are_an_overflow),
        cmocka_unit_test(failed_attention_leaves_no_part),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(statistics_print_as_a_table),
        cmocka_unit_test(statistics_of_random_graphs_equal_simple_sums),
        cmocka_unit_test(no_plan_needs_less_than_the_floor),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
