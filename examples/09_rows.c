// 09_rows.c -- a MobileNetV2, or a U-Net, that looks at an image in line buffers
//
// You learn: how nodes say which rows they read, how a kernel is called for rows and asks where they lie (both
// in image_nets.h), what an image that arrives row by row saves, and that the bits are those of whole tensors.
// The weights are random: what counts here are bytes and time. Read next: "Regions of rows" in GUIDE.md;
// 09_vulkan_rows is the same on a GPU, 09_device on a Cortex-M4.
//
// check: --size 64
//     mkdir -p build && cc -O2 -o build/09_rows examples/09_rows.c -lm && build/09_rows --size 32
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define IMAGE_PROGRAM "09_rows"
#include "image_nets.h"

#define CALL_US 0.1     // of a call beside its work, as predicted

static tl_env env;      // malloc, silent
static image_net net;

// -- the machine: the host --

static int run_all(const image_options *o) {
    static const tl_kernel_fn forwards[IMAGE_OP_COUNT] = { image_convolve, image_convolve_depthwise, image_add,
                                                           image_classify, image_load, image_pool, image_join,
                                                           image_convolve };
    static tl_cpu_backend_desc cpu;
    float *result = NULL;
    tl_backend backend;
    image_machine m;
    int ok;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return 0;
    memset(&m, 0, sizeof m);
    m.backend = &backend;
    m.net = &net;
    m.call_us = CALL_US;
    m.clock = CLOCK_MONOTONIC;
    image_set_kernels(m.kernels, forwards, &net);
    ok = image_run_all(&m, o, &result);
    free(result);
    tl_free_cpu_backend(&env, &backend);
    return ok;
}

// -- files for generated C --

static FILE *open_file(const char *folder, const char *name) {
    char path[1024];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return NULL;
    return fopen(path, "wb");
}

// What kernels of generated C know of each node.
static int write_layers(FILE *file) {
    int32_t id;
    for (id = 0; id < net.graph.node_count; id++) {
        const image_layer *l = &net.layers[id];
        fprintf(file, "{ %d, %d, %d, %d, %d, %d, %d },\n", (int)l->from, l->kernel, l->stride, l->bounded, (int)l->height,
                (int)l->width, (int)l->channels);
    }
    return !ferror(file);
}

// All weights in the order of nodes, each at a multiple of 8 bytes, as generated C has them for an alignment of 8.
static int write_weights(FILE *file) {
    static const unsigned char gap[8];
    int32_t id;
    for (id = 0; id < net.graph.node_count; id++) {
        size_t bytes = (size_t)net.graph.nodes[id].param_bytes;
        if (bytes && fwrite(net.layers[id].weights, 1, bytes, file) != bytes) return 0;
        if (fwrite(gap, 1, (8 - bytes % 8) % 8, file) != (8 - bytes % 8) % 8) return 0;
    }
    return 1;
}

static int write_files(image_machine *m, const image_options *o) {
    char path[1024];
    FILE *rows = open_file(o->folder, "layers.inc"), *weights = open_file(o->folder, "weights.bin");
    int ok = rows && weights && image_build(m, o, 1) && write_layers(rows) && write_weights(weights);
    if (rows) ok = !fclose(rows) && ok;
    if (weights) ok = !fclose(weights) && ok;
    ok = ok && snprintf(path, sizeof path, "%s/net.tlg", o->folder) < (int)sizeof path && !tl_write_graph(&env, &net.graph, path);
    image_forget(m);
    if (!ok && !env.error.text[0]) fprintf(stderr, "09_rows: %s: cannot be written\n", o->folder);
    return ok;
}

static const char help[] =
    "09_rows [--unet] [--size PIXELS] [--width FACTOR] [--budget BYTES] [--within RATIO] [--write FOLDER]\n\n"
    "A forward of MobileNetV2 with whole tensors, and in regions of rows: bytes, calls and time.\n"
    "  --unet           of a U-Net with four levels\n"
    "  --size PIXELS    of the image, 32 to 512 (96); a U-Net halves it three times\n"
    "  --width FACTOR   of all channels, 0.1 to 2 (0.35)\n"
    "  --budget BYTES   rows in as few calls as fit into so many bytes; else in as few bytes\n"
    "  --within RATIO   also: as few bytes as are predicted to take at most so many times as long as whole tensors\n"
    "  --write FOLDER   nothing is run: writes net.tlg, with the image as a stream, layers.inc and weights.bin, of which\n"
    "                   generated C is made (examples/09_device)\n";

int main(int count, char **arguments) {
    image_options o = { 96, 0, 0, 0.35, 0.0, 0, 0, NULL };
    image_machine m;
    int ok, done;
    if (!image_parse(count, arguments, help, &o, &done)) return 1;
    if (done) return 0;
    memset(&m, 0, sizeof m);
    m.net = &net;
    net.env = &env;
    ok = o.folder ? write_files(&m, &o) : run_all(&o);
    if (!ok && env.error.text[0]) fprintf(stderr, "09_rows: %s\n", env.error.text);
    return !ok;
}
