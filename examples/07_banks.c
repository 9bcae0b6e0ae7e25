// 07_banks.c -- which tensor lives in which memory of a microcontroller
//
// You learn: the allocations of a plan are data (tl_find_lifetimes), and tl_plan_banks puts them into
// several memories, each with a capacity and a price of a byte moved, at offsets in each. It prints where
// each tensor of a small net lives, what moving costs beside everything in the slow memory, and what one
// more KiB of the fast one would buy. Read next: 12_unet_by_hand.c, which plans what to keep at all.
//
// check:
//
//     mkdir -p build && cc -o build/07_banks examples/07_banks.c && build/07_banks
#include <stdio.h>
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

enum { MOST = 64 };
static const char *const names[] = { "TCM", "SRAM", "PSRAM" };
static tl_bank banks[3] = { { 26 << 10, 1, 8 }, { 64 << 10, 2, 8 }, { 0, 12, 32 } };  // bytes, price, alignment

static tl_env env;  // malloc, silent
static tl_graph net;
static tl_layout_buffer buffers[MOST];  static uint64_t moved[MOST];

// Blocks as in MobileNet v2: wide, per channel, narrow again, and the sum with what came in.
static int block(tl_value *x, uint64_t wide, uint64_t narrow, uint64_t stride) {
    tl_layer_desc expand = { 0 }, depthwise = { 0 }, project = { 0 };
    tl_value pair[2];
    int bad;
    expand.channels = wide; expand.activation = TL_ELEMENTWISE_RELU;
    depthwise.kernel = 3; depthwise.stride = stride; depthwise.activation = TL_ELEMENTWISE_RELU;
    project.channels = narrow;
    pair[0] = *x;
    bad = tl_add_conv2d(&env, &net, &expand, *x, x) || tl_add_depthwise_conv2d(&env, &net, &depthwise, *x, x) ||
          tl_add_conv2d(&env, &net, &project, *x, x);
    pair[1] = *x;
    return bad || (pair[0].shape.channels == narrow && stride == 1 &&
                   tl_add_elementwise(&env, &net, TL_ELEMENTWISE_ADD, NULL, pair, 2, x));
}

static int build(void) {
    tl_shape image = { 1, 3, 48, 48 };  // batch, channels, height, width
    tl_layer_desc stem = { 0 }, head = { 0 };
    tl_value x;
    stem.channels = 8; stem.kernel = 3; stem.stride = 2;
    head.channels = 10; head.flatten = 1; head.keep = 1;
    return tl_add_input(&env, &net, "image", image, TL_PRECISION_SINGLE, &x) ||
           tl_add_conv2d(&env, &net, &stem, x, &x) || block(&x, 24, 8, 1) || block(&x, 24, 16, 2) ||
           block(&x, 48, 16, 1) || block(&x, 48, 24, 2) || block(&x, 72, 24, 1) ||
           tl_add_dense(&env, &net, &head, x, &x);
}

// One buffer for each allocation. A tensor is written once, and read by each node that has it as an input.
static int find_buffers(const tl_lifetimes *lives) {
    int i, k, count = 0;
    for (i = 0; i < lives->count; i++) {
        const tl_lifetime *life = &lives->items[i];
        int tensor = net.nodes[life->node].first_output + life->output, uses = 1;
        for (k = 0; k < net.input_count; k++) uses += net.inputs[k].tensor == tensor;
        if (life->number >= MOST) return -1;
        if (life->over < 0) buffers[life->number].first_step = life->first_step;
        buffers[life->number].last_step = life->end_step - 1;
        buffers[life->number].bytes = life->bytes;
        moved[life->number] += life->bytes * (uint64_t)uses;
        if (life->number >= count) count = life->number + 1;
    }
    return count;
}

static int choose(int count, tl_bank_plan *plan) {
    tl_bank_desc desc = { 0 };
    desc.buffers = buffers; desc.moved_bytes = moved; desc.buffer_count = count;
    desc.banks = banks; desc.bank_count = 3;
    return tl_plan_banks(&env, &desc, plan);
}

int main(void) {
    tl_plan plan = { 0 };
    tl_lifetimes lives = { 0 };
    tl_bank_plan where = { 0 }, more = { 0 };  uint64_t slow = 0;
    int i, count = 0, bad = build() || tl_plan_keep_all(&env, &net, 1, &plan) ||
                            tl_find_lifetimes(&env, &net, &plan, &lives);
    if (!bad) count = find_buffers(&lives);
    bad = bad || count < 0 || choose(count, &where);
    for (i = 0; i < lives.count && !bad; i++) {
        const tl_lifetime *life = &lives.items[i];
        printf("%-8s %-12s steps %2d to %2d %7d bytes %7d moved  %-5s at %6d\n", tl_name_node(&net, life->node),
               net.text + net.nodes[life->node].op, life->first_step, life->end_step - 1, (int)life->bytes,
               (int)moved[life->number], names[where.banks[life->number]], (int)where.offsets[life->number]);
    }
    for (i = 0; i < count; i++) slow += moved[i] * banks[2].price;
    banks[0].capacity_bytes += 1024;
    if (!bad && !(bad = choose(count, &more)))
        printf("TCM %d bytes, SRAM %d, PSRAM %d\nmoving costs %.1f %% of all in PSRAM, at least %.1f %%; "
               "with 1 KiB more of TCM %.1f %%\n", (int)where.heights[0], (int)where.heights[1], (int)where.heights[2],
               100.0 * (double)where.cost / (double)slow, 100.0 * (double)where.bound_cost / (double)slow,
               100.0 * (double)more.cost / (double)slow);
    if (bad) fprintf(stderr, "%s\n", env.error.text);
    tl_free_bank_plan(&env, &where); tl_free_bank_plan(&env, &more);
    tl_free_lifetimes(&env, &lives); tl_free_plan(&env, &plan); tl_free_graph(&env, &net);
    return bad != 0;
}
