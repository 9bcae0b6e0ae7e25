// [3] GRAPH: layers whose bytes and costs follow from shapes, and the statistics of a graph.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support.h"
#include "random_graph.h"

static tl_env silent(void) {
    tl_env env;
    memset(&env, 0, sizeof env);
    return env;
}

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

static char *printed(const tl_graph *graph) {
    size_t length = tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1);
    assert_non_null(text);
    tl_print_graph(graph, text, length + 1);
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
        for (k = 0; k < m.graph.node_count; k++) m.graph.nodes[k].param_bytes = 0;
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
        tl_env env = silent();
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
        tl_env env = silent();
        tl_graph graph;
        tl_graph_statistics s;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_plan plan;
        memset(&desc, 0, sizeof desc);
        assert_int_equal(random_graph(&env, &random, random_count(&random, 2, 7), &graph), TL_OK);
        assert_int_equal(tl_measure_graph(&env, &graph, &s), TL_OK);
        desc.graph = &graph;
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
        cmocka_unit_test(statistics_of_random_graphs_equal_simple_sums),
        cmocka_unit_test(no_plan_needs_less_than_the_floor),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
