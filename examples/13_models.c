// 13_models.c -- known architectures from their shapes, and what a budget for training them costs
//
// You learn: which call makes which layer; what a model needs besides activations (weights, gradients,
// AdamW's two states); and which part of the time a smaller budget costs. It prints the operations of
// the model, its largest tensor, the least budget and a table of budgets, and writes the graph as a
// .tlg file for tl_plan where --write names one. Read next: 12, where one model is drawn as a curve.
//
// check: transformer layers=2 tokens=64
//
//     mkdir -p build && cc -O2 -o build/13_models examples/13_models.c
//     build/13_models transformer attention=stored
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static tl_env env;  // malloc, silent
static tl_graph net;

// What the words of the command line set.
static uint64_t batch = 8, layers = 6, width = 256, heads = 8, tokens = 256, image = 224;
static tl_attention attention = TL_ATTENTION_SPLIT;
static tl_elementwise activation = TL_ELEMENTWISE_GELU;
static tl_cell cell = TL_CELL_LSTM;
static tl_pool pool = TL_POOL_MAX;
static int fuse;

static int input(const char *name, uint64_t channels, uint64_t height, uint64_t image_width, tl_value *x) {
    tl_shape shape = { 0, 0, 0, 0 };
    shape.batch = batch; shape.channels = channels; shape.height = height; shape.width = image_width;
    return tl_add_input(&env, &net, name, shape, TL_PRECISION_SINGLE, x);
}

// The end of every model. A view is a second name, by which the tensor can be found again.
static int lose(tl_value x) {
    return tl_add_view(&env, &net, "logits", x.tensor, NULL) || tl_add_loss(&env, &net, NULL, x, NULL, &x);
}

static int embed(tl_value ids, tl_value *x) {
    tl_layer_desc table = { 0 };
    table.name = "embedding"; table.vocabulary = 8192; table.channels = width;
    return tl_add_embedding(&env, &net, &table, ids, x);
}

// The decoder block of GPT-2: attention and a feed-forward net, each behind a norm and beside a shortcut.
static int block(int32_t number, tl_value *x) {
    tl_layer_desc norm = { 0 }, triple = { 0 }, attend = { 0 }, project = { 0 }, widen = { 0 }, plain = { 0 };
    tl_value pair[2], y;
    norm.unit = triple.unit = attend.unit = "attention"; widen.unit = "ffn";
    norm.layer = triple.layer = attend.layer = project.layer = widen.layer = plain.layer = number + 1;
    triple.channels = 3 * width; attend.heads = heads; project.channels = width; widen.channels = 4 * width;
    if (tl_add_layer_norm(&env, &net, &norm, *x, &y) || tl_add_dense(&env, &net, &triple, y, &y) ||
        tl_add_attention(&env, &net, attention, &attend, &y, 1, &y) ||
        tl_add_dense(&env, &net, &project, y, &y)) return 1;
    pair[0] = *x; pair[1] = y;
    if (tl_add_elementwise(&env, &net, TL_ELEMENTWISE_ADD, &plain, pair, 2, x) ||
        tl_add_layer_norm(&env, &net, &norm, *x, &y) || tl_add_dense(&env, &net, &widen, y, &y) ||
        tl_add_elementwise(&env, &net, activation, &plain, &y, 1, &y) ||
        tl_add_dense(&env, &net, &project, y, &y)) return 1;
    pair[0] = *x; pair[1] = y;
    return tl_add_elementwise(&env, &net, TL_ELEMENTWISE_ADD, &plain, pair, 2, x);
}

static int transformer(void) {
    tl_layer_desc words = { 0 };
    tl_value ids, x;
    int32_t i;
    int bad = input("ids", 1, tokens, 1, &ids) || embed(ids, &x);
    for (i = 0; i < (int32_t)layers && !bad; i++) bad = block(i, &x);
    words.channels = 8192;
    return bad || tl_add_layer_norm(&env, &net, NULL, x, &x) || tl_add_dense(&env, &net, &words, x, &x) ||
           lose(x);
}

// A recurrent net over a sequence: the same cell for each step; the last state is classified.
static int recurrent(void) {
    tl_layer_desc words = { 0 };
    tl_value all, state[2], *step = (tl_value *)calloc(tokens, sizeof *step);
    uint64_t i;
    int bad = !step || input("sequence", tokens * width, 1, 1, &all) || input("hidden", width, 1, 1, &state[0]) ||
              (cell == TL_CELL_LSTM && input("cell", width, 1, 1, &state[1])) ||
              tl_add_split(&env, &net, NULL, all, NULL, (int32_t)tokens, step);
    for (i = 0; i < tokens && !bad; i++) bad = tl_add_recurrent(&env, &net, cell, NULL, step[i], state, state);
    free(step);
    words.channels = 8192;
    return bad || tl_add_dense(&env, &net, &words, state[0], &all) || lose(all);
}

// The inverted bottleneck of MobileNetV2: 1x1 up, 3x3 on each channel alone, 1x1 down.
static int bottleneck(uint64_t channels, uint64_t stride, tl_value *x) {
    tl_layer_desc widen = { 0 }, each = { 0 }, narrow = { 0 }, norm = { 0 }, last = { 0 };
    tl_value pair[2], y;
    widen.channels = 6 * x->shape.channels; each.kernel = 3; each.stride = stride; narrow.channels = channels;
    widen.no_bias = each.no_bias = narrow.no_bias = 1; norm.activation = TL_ELEMENTWISE_RELU;
    if (tl_add_conv2d(&env, &net, &widen, *x, &y) || tl_add_batch_norm(&env, &net, &norm, y, &y) ||
        tl_add_depthwise_conv2d(&env, &net, &each, y, &y) || tl_add_batch_norm(&env, &net, &norm, y, &y) ||
        tl_add_conv2d(&env, &net, &narrow, y, &y) || tl_add_batch_norm(&env, &net, &last, y, &y)) return 1;
    pair[0] = *x; pair[1] = y;
    *x = y;
    if (stride > 1 || pair[0].shape.channels != channels) return 0;
    return tl_add_elementwise(&env, &net, TL_ELEMENTWISE_ADD, NULL, pair, 2, x);
}

static int mobile(tl_value *x) {
    tl_layer_desc first = { 0 };
    uint64_t i;
    first.channels = 32; first.kernel = 3; first.stride = 2; first.activation = TL_ELEMENTWISE_RELU;
    if (input("image", 3, image, image, x) || tl_add_conv2d(&env, &net, &first, *x, x)) return 1;
    for (i = 0; i < layers; i++)
        if (bottleneck(32u << (i / 2), 1 + (i & 1), x)) return 1;
    return 0;
}

static int classifier(void) {
    tl_layer_desc halve = { 0 }, classes = { 0 };
    tl_value x;
    halve.kernel = 2; classes.channels = 1000; classes.flatten = 1;
    return mobile(&x) || tl_add_pool(&env, &net, pool, pool == TL_POOL_GLOBAL ? NULL : &halve, x, &x) ||
           tl_add_dense(&env, &net, &classes, x, &x) || lose(x);
}

// The same trunk for a class per pixel: its positions are enlarged again, probabilities are the result.
static int segmenter(void) {
    tl_layer_desc classes = { 0 }, enlarge = { 0 }, result = { 0 };
    tl_value x;
    if (mobile(&x)) return 1;
    classes.channels = 21; enlarge.kernel = 2; enlarge.stride = image / x.shape.height; result.keep = 1;
    return tl_add_conv2d(&env, &net, &classes, x, &x) || tl_add_upsample(&env, &net, &enlarge, x, &x) ||
           tl_add_softmax(&env, &net, &result, x, &x) || lose(x);
}

typedef struct model { const char *name; int (*build)(void); const char *help; } model;
static const model models[] = {
    { "transformer", transformer, "GPT-2's blocks; layers width heads tokens attention activation" },
    { "recurrent",   recurrent,   "one layer over a sequence; width tokens cell" },
    { "classifier",  classifier,  "MobileNetV2's blocks; layers image pool" },
    { "segmenter",   segmenter,   "the same, a class for each pixel; layers image" },
};

static int usage(FILE *to) {
    int i;
    fprintf(to, "usage: 13_models MODEL [word=value ...] [--fuse] [--write FILE.tlg]\n\n");
    for (i = 0; i < 4; i++) fprintf(to, "  %-12s %s\n", models[i].name, models[i].help);
    fprintf(to, "\n  batch layers width heads tokens image: numbers (now %d %d %d %d %d %d)\n  attention:", (int)batch,
            (int)layers, (int)width, (int)heads, (int)tokens, (int)image);
    for (i = 0; i < TL_ATTENTION_COUNT; i++) fprintf(to, " %s", tl_name_attention((tl_attention)i));
    fprintf(to, "\n  activation:");
    for (i = 1; i < TL_ELEMENTWISE_ADD; i++) fprintf(to, " %s", tl_name_elementwise((tl_elementwise)i));
    fprintf(to, "\n  cell:");
    for (i = 0; i < TL_CELL_COUNT; i++) fprintf(to, " %s", tl_name_cell((tl_cell)i));
    fprintf(to, "\n  pool:");
    for (i = 0; i < TL_POOL_COUNT; i++) fprintf(to, " %s", tl_name_pool((tl_pool)i));
    fprintf(to, "\n");
    return to == stdout ? 0 : 2;
}

// Read one word=value; 0 where it is not understood.
static int set(const char *word) {
    static const struct { const char *name; uint64_t *value; } numbers[] = {
        { "batch", &batch }, { "layers", &layers }, { "width", &width }, { "heads", &heads },
        { "tokens", &tokens }, { "image", &image },
    };
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value++ - word) : 0, i;
    char *end;
    if (!value) return 0;
    if (length == 9 && !strncmp(word, "attention", 9)) return tl_parse_attention(value, &attention);
    if (length == 10 && !strncmp(word, "activation", 10))
        return tl_parse_elementwise(value, &activation) && activation && activation < TL_ELEMENTWISE_ADD;
    if (length == 4 && !strncmp(word, "cell", 4)) return tl_parse_cell(value, &cell);
    if (length == 4 && !strncmp(word, "pool", 4)) return tl_parse_pool(value, &pool);
    for (i = 0; i < 6; i++) {
        if (strncmp(word, numbers[i].name, length) != 0 || numbers[i].name[length]) continue;
        *numbers[i].value = strtoul(value, &end, 10);
        return *value >= '0' && *value <= '9' && !*end && *numbers[i].value && *numbers[i].value <= 1u << 20;
    }
    return 0;
}

// Weights, their gradients and AdamW's states in f32 stay for the whole training; activations share the rest.
static int plan(uint64_t base, uint64_t activations) {
    static const int percents[] = { 100, 75, 50, 35, 25, 15 };
    int i;
    printf("\nactivations       MiB with weights   time of a step   at least\n");
    for (i = 0; i < 6; i++) {
        tl_remat_desc desc = { 0 };
        tl_plan found;
        desc.graph = &net; desc.base_bytes = base;
        desc.budget_bytes = base + activations / 100 * (uint64_t)percents[i] + (i ? 0 : activations % 100);
        if (tl_plan_remat(&env, &desc, &found, NULL)) {
            if (env.error.code != TL_ERROR_INFEASIBLE) return !!puts(env.error.text);
            printf("%10d %%  %20.1f  is the least\n", percents[i], (double)tl_find_least_budget(&env.error) / 1048576);
            return 0;
        }
        printf("%10d %%  %20.1f  %15.4f  %9.4f\n", percents[i], (double)desc.budget_bytes / 1048576,
               (double)found.cost / (double)found.base_cost, (double)found.bound_cost / (double)found.base_cost);
        tl_free_plan(&env, &found);
    }
    return 0;
}

// The steps of a recurrent layer share their weights, which stand at every node of the graph.
static uint64_t shared_bytes(void) {
    uint64_t sum = 0;
    int32_t i, first = 1;
    for (i = 0; i < net.node_count; i++) {
        if (strcmp(tl_name_op(&net, i), tl_name_cell(cell)) != 0) continue;
        sum += first ? 0 : net.nodes[i].param_bytes;
        first = 0;
    }
    return sum;
}

static int report(void) {
    tl_graph_statistics s;
    uint64_t base = 0, bytes;
    const char *unit;
    char text[4096];
    tl_tensor logits;
    int bad = tl_measure_graph(&env, &net, &s) || tl_find_tensor(&env, &net, "logits", &logits) ||
              tl_find_base_bytes(&env, &net, 1, 2, &base);
    if (!bad) {
        tl_print_graph_statistics(&net, &s, text, sizeof text);
        bytes = net.outputs[net.nodes[logits.node].first_output + logits.output].bytes;
        unit = tl_name_unit(&net, s.floor_node);
        printf("%s\nthe floor is set by %s (%s%s%s); logits take %.1f MiB\n", text, tl_name_node(&net, s.floor_node),
               tl_name_op(&net, s.floor_node), *unit ? " " : "", unit, (double)bytes / 1048576);
        bad = plan(base - 4 * shared_bytes(), s.keep_all_bytes);  // a weight, its gradient, two states
    }
    tl_free_graph_statistics(&env, &s);
    return bad;
}

static int write_graph(const char *path) {
    size_t length = tl_print_graph(&net, NULL, 0);
    char *text;
    if (strcmp(path, "-") != 0) return tl_write_graph(&env, &net, path);
    text = (char *)malloc(length + 1);
    if (!text) return 1;
    tl_print_graph(&net, text, length + 1);
    printf("%s", text);
    free(text);
    return 0;
}

// Elementwise nodes in a row become one node each: their inner tensors are gone.
static int fuse_chains(void) {
    tl_fusion_desc desc = { 0 };
    tl_fusion_plan fusion;
    desc.graph = &net;
    if (tl_plan_fusion(&env, &desc, &fusion)) return 1;
    printf("fused: %d nodes instead of %d, %.1f MiB of tensors gone\n\n", (int)fusion.graph.node_count,
           (int)net.node_count, (double)fusion.inner_bytes / 1048576);
    tl_free_graph(&env, &net);
    net = fusion.graph;
    tl_init_graph(&fusion.graph);  // the graph outlives its plan
    tl_free_fusion_plan(&env, &fusion);
    return 0;
}

int main(int argc, char **argv) {
    const char *path = NULL;
    int i, chosen = -1, bad = 0;
    for (i = 1; i < argc; i++) {
        int m = 0;
        if (!strcmp(argv[i], "--help")) return usage(stdout);
        if (!strcmp(argv[i], "--fuse")) { fuse = 1; continue; }
        if (!strcmp(argv[i], "--write") && i + 1 < argc) { path = argv[++i]; continue; }
        while (m < 4 && strcmp(argv[i], models[m].name) != 0) m++;
        if (m < 4) chosen = m;
        else if (!set(argv[i])) return fprintf(stderr, "%s: not understood; --help lists the words\n", argv[i]), 2;
    }
    if (chosen < 0) return usage(stderr);
    bad = models[chosen].build() || (fuse && fuse_chains()) || report() || (path && write_graph(path));
    if (bad) fprintf(stderr, "%s\n", env.error.code ? env.error.text : "no memory");
    tl_free_graph(&env, &net);
    return bad;
}
