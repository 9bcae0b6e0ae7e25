// The peak of forward-only plans by the order of their forwards: that of the listing, depth first, breadth first, and that of
// tl_plan_order, on public networks (chains, mostly) and on networks of cells that are wired at random.
//
//     bench_order [MODEL.tlg ...]      without models: those of the reference data, and the networks of cells
//
// Every order drops a tensor after its last use and runs in place where it can. Peaks are in KiB; least is the bound.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/brute_order.h"
#include "timing.h"

typedef unsigned long long ull;

static void must(tl_result result, const char *what) {
    if (!result) return;
    fprintf(stderr, "bench_order: %s: %s\n", what, tl_name_result(result));
    exit(1);
}

// -- orders --

typedef struct orders { int32_t *nodes, *other, *missing, *stack; uint8_t *results; int32_t count; } orders;

// The nodes that the plan runs, as the listing has them, and what it keeps.
static void read_plan(const tl_graph *graph, const tl_plan *plan, orders *o) {
    uint8_t *runs = (uint8_t *)calloc((size_t)graph->node_count, 1);
    int32_t k, i;
    for (k = 0; k < plan->step_count; k++) {
        const tl_node *node = &graph->nodes[plan->steps[k].node];
        if (plan->steps[k].kind == TL_STEP_DROP) { o->results[node->first_output + plan->steps[k].output] = 0; continue; }
        runs[plan->steps[k].node] = 1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) o->results[i] = 1;
        if (plan->steps[k].kind == TL_STEP_FORWARD_INPLACE)
            o->results[graph->inputs[node->first_input + node->inplace].tensor] = 0;
    }
    for (k = 0; k < graph->node_count; k++) if (runs[k]) o->nodes[o->count++] = k;
    free(runs);
}

static int32_t maker_of(const tl_graph *graph, int32_t input) { return graph->outputs[graph->inputs[input].tensor].node; }

// Depth first: before a node, what it reads; begun at the nodes of the listing that nothing reads.
static void depth_first(const tl_graph *graph, orders *o) {
    int32_t k, i, depth, count = 0;
    for (k = 0; k < graph->node_count; k++) o->missing[k] = graph->nodes[k].is_input ? 2 : 0;      // 2 = done
    for (k = o->count; k-- > 0;)
        for (i = graph->nodes[o->nodes[k]].first_input; i < graph->nodes[o->nodes[k]].first_input + graph->nodes[o->nodes[k]].input_count; i++)
            if (!o->missing[maker_of(graph, i)]) o->missing[maker_of(graph, i)] = 1;                // 1 = is read
    for (k = 0; k < o->count; k++) {
        if (o->missing[o->nodes[k]]) continue;
        o->stack[0] = o->nodes[k];
        for (depth = 1; depth > 0;) {
            const tl_node *node = &graph->nodes[o->stack[depth - 1]];
            for (i = node->first_input; i < node->first_input + node->input_count; i++)
                if (o->missing[maker_of(graph, i)] != 2) break;
            if (i < node->first_input + node->input_count) { o->stack[depth++] = maker_of(graph, i); continue; }
            o->missing[o->stack[depth - 1]] = 2;
            o->other[count++] = o->stack[--depth];
        }
    }
}

// Breadth first: what could run first runs first.
static void breadth_first(const tl_graph *graph, orders *o) {
    int32_t k, i, at, count = 0;
    for (k = 0; k < o->count; k++) {
        const tl_node *node = &graph->nodes[o->nodes[k]];
        o->missing[o->nodes[k]] = 0;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            o->missing[o->nodes[k]] += !graph->nodes[maker_of(graph, i)].is_input;
        if (!o->missing[o->nodes[k]]) o->other[count++] = o->nodes[k];
    }
    for (at = 0; at < count; at++)
        for (k = 0; k < o->count; k++) {
            const tl_node *node = &graph->nodes[o->nodes[k]];
            for (i = node->first_input; i < node->first_input + node->input_count; i++)
                if (maker_of(graph, i) == o->other[at] && !--o->missing[o->nodes[k]]) o->other[count++] = o->nodes[k];
        }
}

static uint64_t peak_of(const tl_graph *graph, const int32_t *order, const orders *o) {
    tl_plan plan = order_plan(graph, order, o->count, o->results);
    must(tl_measure_plan(NULL, graph, NULL, &plan), "an order");
    free((void *)plan.steps);
    return plan.peak_bytes;
}

static void one_network(const char *name, const tl_graph *graph) {
    double start = processor_ms(), ms;
    tl_order_desc desc;
    tl_order_report report;
    tl_plan plan;
    orders o;
    uint64_t listing, depth, breadth;
    size_t nodes = (size_t)graph->node_count;
    memset(&desc, 0, sizeof desc);
    memset(&o, 0, sizeof o);
    desc.graph = graph;
    desc.live = 1;
    desc.inference = 1;
    must(tl_plan_order(NULL, &desc, &plan, &report), name);
    ms = processor_ms() - start;
    o.nodes = (int32_t *)malloc(nodes * sizeof *o.nodes);
    o.other = (int32_t *)malloc(nodes * sizeof *o.other);
    o.missing = (int32_t *)malloc(nodes * sizeof *o.missing);
    o.stack = (int32_t *)malloc((nodes + 1) * sizeof *o.stack);
    o.results = (uint8_t *)calloc((size_t)graph->tensor_count, 1);
    if (!o.nodes || !o.other || !o.missing || !o.stack || !o.results) must(TL_ERROR_NO_MEMORY, name);
    read_plan(graph, &plan, &o);
    listing = peak_of(graph, o.nodes, &o);
    depth_first(graph, &o);
    depth = peak_of(graph, o.other, &o);
    breadth_first(graph, &o);
    breadth = peak_of(graph, o.other, &o);
    printf("%-18s %5d %12llu %8.3f %8.3f %8.3f %8.3f %6s %8.1f\n", name, (int)graph->node_count, (ull)(listing / 1024),
           (double)depth / (double)listing, (double)breadth / (double)listing, (double)report.peak_bytes / (double)listing,
           (double)report.bound_bytes / (double)listing, report.proven ? "yes" : "no", ms);
    free(o.nodes);
    free(o.other);
    free(o.missing);
    free(o.stack);
    free(o.results);
    tl_free_plan(NULL, &plan);
}

// -- networks of cells --

// Cells of `width` nodes, each of which reads one to three of the last nodes of its cell or the cell's input, after Xie et al.,
// Exploring Randomly Wired Neural Networks, 2019; a node joins what nothing of the cell read, and every other cell has half the
// bytes.
static void wire_cells(uint64_t seed, int cells, int width, tl_graph *graph) {
    tl_random random;
    uint64_t bytes = 1 << 20;
    tl_tensor from = { 0, 0 };
    tl_node_desc desc;
    int cell, k, i;
    random.state = seed;
    tl_init_graph(graph);
    memset(&desc, 0, sizeof desc);
    desc.op = "input";
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    must(tl_add_node(NULL, graph, &desc, &from.node), "a cell");
    for (cell = 0; cell < cells; cell++) {
        tl_tensor inputs[64];
        int32_t made[64], read[64];
        memset(read, 0, sizeof read);
        for (k = 0; k < width; k++) {
            uint64_t own = bytes << random_count(&random, 0, 2);
            memset(&desc, 0, sizeof desc);
            desc.op = "conv";
            desc.inputs = inputs;
            desc.output_bytes = &own;
            desc.output_count = 1;
            desc.fwd_cost = desc.bwd_cost = 1;
            desc.input_count = k ? random_count(&random, 1, 3) : 1;
            for (i = 0; i < desc.input_count; i++) {
                int at = k ? random_count(&random, k > 10 ? k - 10 : -1, k - 1) : -1;
                inputs[i] = from;
                if (at < 0) continue;
                inputs[i].node = made[at];
                read[at] = 1;
            }
            must(tl_add_node(NULL, graph, &desc, &made[k]), "a cell");
        }
        desc.input_count = 0;
        for (k = 0; k < width; k++) {
            if (read[k]) continue;
            inputs[desc.input_count] = from;
            inputs[desc.input_count++].node = made[k];
        }
        bytes >>= cell % 2;
        desc.output_bytes = &bytes;
        must(tl_add_node(NULL, graph, &desc, &from.node), "a cell");
    }
}

int main(int argc, char **argv) {
    static const char *const models[] = { "encoder2", "gpt2_small", "gpt2_small_rl", "mlp8", "mobilenet_v2", "mobilenet_v2_rl",
                                          "resnet18", "unet", "unit10", "unit20", "unit50", "unit100", "unit1000", "vgg16", "vgg16_rl" };
    static const int cells[][2] = { { 3, 12 }, { 3, 24 }, { 4, 32 }, { 8, 48 }, { 1, 60 } };
    const char *root = getenv("TL_SHARED");
    tl_graph graph;
    char text[1024];
    int i;
    printf("%-18s %5s %12s %8s %8s %8s %8s %6s %8s\n", "", "nodes", "listing KiB", "depth", "breadth", "ours", "least", "proven", "ms");
    for (i = 1; i < argc; i++) {
        must(tl_read_graph(NULL, argv[i], &graph), argv[i]);
        one_network(argv[i], &graph);
        tl_free_graph(NULL, &graph);
    }
    for (i = 0; argc < 2 && i < (int)(sizeof models / sizeof *models); i++) {
        snprintf(text, sizeof text, "%s/models/%s.tlg", root ? root : "../shared", models[i]);
        if (tl_read_graph(NULL, text, &graph)) { printf("%-18s no reference data\n", models[i]); continue; }
        one_network(models[i], &graph);
        tl_free_graph(NULL, &graph);
    }
    for (i = 0; argc < 2 && i < (int)(sizeof cells / sizeof *cells); i++) {
        wire_cells((uint64_t)(31 + i), cells[i][0], cells[i][1], &graph);
        snprintf(text, sizeof text, "%d cells of %d", cells[i][0], cells[i][1]);
        one_network(text, &graph);
        tl_free_graph(NULL, &graph);
    }
    return 0;
}
