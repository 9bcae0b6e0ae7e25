// 12_unet_by_hand.c -- a model from its shapes, and what each byte budget costs it
//
// You learn: layers add nodes whose bytes and costs follow from shapes, so a U-Net is ten calls; what
// a graph is like (its floor: no plan needs less); and the curve of cost against memory, each plan
// beside the bound that no plan undercuts. It prints the statistics and the curve, and draws it as
// curve.svg or the file that you name. Read next: the banner [6] of tl_strategy.h.
//
// check: build/12_unet_by_hand.svg
//     mkdir -p build && cc -O2 -o build/12_unet examples/12_unet_by_hand.c && build/12_unet build/curve.svg
#include <stdio.h>
#include <string.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static tl_env env;  // malloc, silent
static tl_graph net;
static tl_layer_desc conv, norm, half, twice, last;

static int unit(uint64_t channels, tl_value *x) {  // two convolutions, each normalised
    conv.channels = channels;
    return tl_add_conv2d(&env, &net, &conv, *x, x) || tl_add_batch_norm(&env, &net, &norm, *x, x) ||
           tl_add_conv2d(&env, &net, &conv, *x, x) || tl_add_batch_norm(&env, &net, &norm, *x, x);
}

static int build(tl_shape shape) {
    tl_value x, pair[2], skips[4] = { { { 0, 0 }, TL_PRECISION_SINGLE, { 0, 0, 0, 0 } } };
    int i, bad = tl_add_input(&env, &net, "image", shape, TL_PRECISION_SINGLE, &x);
    conv.kernel = 3; conv.no_bias = 1; norm.activation = TL_ELEMENTWISE_RELU;
    half.kernel = 2; twice.kernel = twice.stride = 2; twice.no_bias = 1; last.channels = 1;
    for (i = 0; i < 4 && !bad; i++)       // down: remember, then halve
        bad = unit(64u << i, &x) || tl_add_pool(&env, &net, TL_POOL_MAX, &half, skips[i] = x, &x);
    bad = bad || unit(1024, &x);
    for (i = 4; i-- > 0 && !bad; ) {      // up: double, and put beside it what was remembered
        twice.channels = 64u << i;
        bad = tl_add_transposed_conv2d(&env, &net, &twice, x, &x);
        pair[0] = skips[i]; pair[1] = x;
        bad = bad || tl_add_concat(&env, &net, NULL, pair, 2, &x) || unit(64u << i, &x);
    }
    return bad || tl_add_conv2d(&env, &net, &last, x, &x) || tl_add_loss(&env, &net, NULL, x, NULL, &x);
}

// What the plans said, as shares of keeping everything: 1 = all its memory, its cost.
static double memory[16], cost[16], bound[16];

static void draw(FILE *file, const char *style, const double *ratios, int count) {
    int i;
    fprintf(file, "<polyline fill=\"none\" %s points=\"", style);
    for (i = 0; i < count; i++) fprintf(file, "%.1f,%.1f ", 60 + 520 * memory[i], 320 - 800 * (ratios[i] - 1));
    fprintf(file, "\"/>\n");
}

static int picture(const char *path, const tl_graph_statistics *s, int count) {
    tl_file_sink target;
    tl_sink sink;
    FILE *file = tl_init_file_sink(&env, path, &target, &sink) ? NULL : (FILE *)target.file;
    int i;
    if (!file) { fprintf(stderr, "%s\n", env.error.text); return 1; }
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"380\" font-size=\"12\">\n"
            "<rect width=\"640\" height=\"380\" fill=\"white\"/>\n<text x=\"60\" y=\"40\">U-Net: cost of a "
            "step against memory; dashed: no plan costs less; dotted: the floor</text>\n");
    for (i = 0; i <= 100; i += 20)
        fprintf(file, "<text x=\"%d\" y=\"345\" text-anchor=\"middle\">%d %%</text>\n", 60 + 520 * i / 100, i);
    for (i = 0; i <= 30; i += 10)
        fprintf(file, "<path stroke=\"#ddd\" d=\"M60 %d h520\"/><text x=\"30\" y=\"%d\">1.%02d</text>\n",
                320 - 8 * i, 324 - 8 * i, i);
    fprintf(file, "<path stroke=\"#888\" stroke-dasharray=\"2 3\" d=\"M%.1f 60 V320\"/>\n",
            60 + 520 * (double)s->floor_bytes / (double)s->keep_all_bytes);
    draw(file, "stroke=\"#d55e00\" stroke-dasharray=\"6 4\"", bound, count);
    draw(file, "stroke=\"#0072b2\" stroke-width=\"2\"", cost, count);
    fprintf(file, "</svg>\n");
    return tl_finish_file_sink(&env, &target, TL_OK) != TL_OK;
}

int main(int argc, char **argv) {
    static const int percents[] = { 100, 90, 80, 70, 60, 50, 45, 40, 36, 33, 30, 28, 26 };
    tl_shape shape = { 8, 3, 256, 256 };  // batch, channels, height, width
    tl_graph_statistics s = { 0 };
    char text[4096];
    int i, bad;
    if (argc > 1 && !strcmp(argv[1], "--help")) return printf("usage: %s [curve.svg]\n", argv[0]) < 0;
    bad = build(shape) || tl_measure_graph(&env, &net, &s);
    if (!bad && tl_print_graph_statistics(&net, &s, text, sizeof text))
        printf("%s\n budget MiB      cost  at least\n", text);
    for (i = 0; i < 13 && !bad; i++) {
        tl_remat_desc desc = { 0 };
        tl_plan plan;
        desc.graph = &net; desc.work_limit = 40000000;  // a tenth of the default
        desc.budget_bytes = (s.keep_all_bytes * (uint64_t)percents[i] + 99) / 100;
        bad = tl_plan_remat(&env, &desc, &plan, NULL);  // where none fits, the text names the least budget
        if (bad) break;
        memory[i] = percents[i] / 100.0;
        cost[i] = (double)plan.cost / (double)plan.base_cost;
        bound[i] = (double)plan.bound_cost / (double)plan.base_cost;
        printf("%3d %% %6d  %8.4f  %8.4f\n", percents[i], (int)(desc.budget_bytes >> 20), cost[i], bound[i]);
        tl_free_plan(&env, &plan);
    }
    if (bad) fprintf(stderr, "%s\n", env.error.text);
    if (i) bad |= picture(argc > 1 ? argv[1] : "curve.svg", &s, i);
    tl_free_graph_statistics(&env, &s);
    tl_free_graph(&env, &net);
    return bad != 0;
}
