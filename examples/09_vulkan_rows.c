// 09_vulkan_rows.c -- the networks of 09_rows in line buffers of a Vulkan device
//
// You learn: how compute shaders are called for rows and are told where these lie (vk_image.h), how an image that
// stays with the host goes to the device row by row, and what calls of few rows cost there: --within takes so many
// bytes that calls are few enough. Results have the bits of whole tensors, and are compared with the host's. Read
// next: "Regions of rows" in GUIDE.md.
//
// check: --size 48 --within 1.5 --validate
//
//     mkdir -p build && cc -O3 -o build/09_vulkan_rows examples/09_vulkan_rows.c -lm -ldl
//     build/09_vulkan_rows --size 48
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime
#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_OPEN_LOADER
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#define IMAGE_PROGRAM "09_vulkan_rows"
#include "image_nets.h"
#include "vk_image.h"

// A device, and what it holds of a network beside the arena of a run.
typedef struct program {
    tl_env       env;                       // malloc, silent
    tl_vk_device device;
    tl_backend   backend;
    vk_image     vi;
    image_net    net;
    tl_range     weights[IMAGE_NODES];      // of each node, in device memory; 0 bytes = it has none
    tl_range     all_weights, image;        // two blocks; the image is in host memory, where rows are read
    int          on_host;                   // 1 = a driver that computes on the host
    int          complaints;                // of the validation layer
} program;

// -- kernels: the rows that a call is for, all of them where it is whole --

static vk_image_rows find_rows(const program *p, const tl_operand *operand, int32_t node) {
    const image_layer *l = &p->net.layers[node];
    return vk_image_of(operand, l->height, l->width, l->channels);
}

static tl_result convolve(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    const image_layer *l = &p->net.layers[call->node];
    uint64_t row, end;
    image_find_rows(call, &p->net, &row, &end);
    return vk_image_conv2d(&p->vi, find_rows(p, &call->outputs[0], call->node),
                           find_rows(p, &call->inputs[0], l->from), p->weights[call->node],
                           vk_nn_no_range(), row, end - row, (uint64_t)l->kernel,
                           (uint64_t)l->stride, l->bounded ? VK_IMAGE_RELU6 : VK_IMAGE_PLAIN);
}

// Its row may stand where the first row under the window stands: vk_image_depthwise sees that.
static tl_result convolve_depthwise(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    const image_layer *l = &p->net.layers[call->node];
    uint64_t row, end;
    image_find_rows(call, &p->net, &row, &end);
    return vk_image_depthwise(&p->vi, find_rows(p, &call->outputs[0], call->node),
                              find_rows(p, &call->inputs[0], l->from), p->weights[call->node],
                              vk_nn_no_range(), row, end - row, (uint64_t)l->kernel,
                              (uint64_t)l->stride, VK_IMAGE_RELU6);
}

static tl_result pool(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    const image_layer *l = &p->net.layers[call->node];
    uint64_t row, end;
    image_find_rows(call, &p->net, &row, &end);
    return vk_image_max_pool(&p->vi, find_rows(p, &call->outputs[0], call->node),
                             find_rows(p, &call->inputs[0], l->from), row, end - row, (uint64_t)l->kernel);
}

static tl_result join(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    const image_layer *l = &p->net.layers[call->node];
    uint64_t row, end;
    image_find_rows(call, &p->net, &row, &end);
    return vk_image_concat_upsampled(&p->vi, find_rows(p, &call->outputs[0], call->node),
                                     find_rows(p, &call->inputs[0], l->from),
                                     find_rows(p, &call->inputs[1], l->other), row, end - row, 2);
}

static tl_result add(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    uint64_t row, end;
    image_find_rows(call, &p->net, &row, &end);
    return vk_image_add_rows(&p->vi, find_rows(p, &call->outputs[0], call->node),
                             find_rows(p, &call->inputs[0], call->node),
                             find_rows(p, &call->inputs[1], call->node), row, end - row);
}

// The mean of each channel into scratch, then a dense layer: a convolution of one pixel.
static tl_result classify(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    const image_layer *l = &p->net.layers[call->node], *in = &p->net.layers[l->from];
    vk_image_rows means = vk_image_whole(call->scratch.range, 1, 1, in->channels);
    tl_result result = vk_image_mean_pool(&p->vi, means, find_rows(p, &call->inputs[0], l->from), 0,
                                          1, in->height);
    if (result) return result;
    return vk_image_conv2d(&p->vi, find_rows(p, &call->outputs[0], call->node), means, p->weights[call->node],
                           vk_nn_no_range(), 0, 1, 1, 1, VK_IMAGE_PLAIN);
}

static tl_result load(const tl_kernel_call *call, void *user) {
    program *p = (program *)user;
    const image_layer *l = &p->net.layers[call->node];
    uint64_t row, end;
    image_find_rows(call, &p->net, &row, &end);
    return vk_image_copy_rows(&p->vi, find_rows(p, &call->outputs[0], call->node),
                              vk_image_whole(p->image, l->height, l->width, l->channels), row, end - row);
}

// -- what a network needs beside a run --

// Make a block that lasts as long as the network, and write it.
static tl_result fill_block(program *p, tl_tier tier, uint64_t bytes, const void *data, tl_range *range) {
    const tl_backend *b = &p->backend;
    void *mapped;
    tl_result result;
    memset(range, 0, sizeof *range);
    range->bytes = bytes;
    result = b->add_block(b->self, tier, bytes, &range->block);
    if (!result) result = b->claim(b->self, *range);
    if (!result) result = b->map(b->self, *range, TL_MAP_WRITE, &mapped);
    if (result) return result;
    memcpy(mapped, data, (size_t)bytes);
    return b->unmap(b->self, *range, TL_MAP_WRITE, mapped);
}

static void free_block(program *p, tl_range *range) {
    if (!range->block) return;
    (void)p->backend.release(p->backend.self, *range);
    (void)p->backend.free_block(p->backend.self, range->block);
    memset(range, 0, sizeof *range);
}

static void forget(void *user) {
    program *p = (program *)user;
    free_block(p, &p->all_weights);
    free_block(p, &p->image);
}

// Where the weights of each node lie; returns the bytes of all.
static uint64_t place_weights(program *p) {
    tl_backend_limits limits;
    uint64_t end = 0;
    int32_t id;
    memset(&limits, 0, sizeof limits);
    p->backend.limits(p->backend.self, &limits);
    for (id = 0; id < p->net.graph.node_count; id++) {
        uint64_t bytes = p->net.graph.nodes[id].param_bytes;
        p->weights[id].offset = end;
        p->weights[id].bytes = bytes;
        end += (bytes + limits.alignment_bytes - 1) / limits.alignment_bytes * limits.alignment_bytes;
    }
    return end;
}

static int prepare(void *user) {
    program *p = (program *)user;
    const image_layer *image = &p->net.layers[0];
    uint64_t image_bytes = image->height * image->width * image->channels * sizeof(float);
    uint64_t bytes = place_weights(p);
    char *weights = (char *)calloc((size_t)bytes + 1, 1);
    float *pixels = (float *)calloc((size_t)image_bytes + 1, 1);
    int ok = weights && pixels;
    int32_t id;
    for (id = 0; ok && id < p->net.graph.node_count; id++)
        if (p->weights[id].bytes)
            memcpy(weights + p->weights[id].offset, p->net.layers[id].weights, (size_t)p->weights[id].bytes);
    if (ok) image_take(pixels, image);
    ok = ok && !fill_block(p, TL_TIER_DEVICE, bytes, weights, &p->all_weights) &&
         !fill_block(p, TL_TIER_HOST, image_bytes, pixels, &p->image);
    for (id = 0; ok && id < p->net.graph.node_count; id++) p->weights[id].block = p->all_weights.block;
    free(weights);
    free(pixels);
    return ok;
}

// -- the machine: a device --

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    program *p = (program *)user;
    (void)types;
    if (!(severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)) return VK_FALSE;
    p->complaints++;
    fprintf(stderr, IMAGE_PROGRAM ": validation: %s\n", data->pMessage ? data->pMessage : "");
    return VK_FALSE;
}

// Print the name of the device, and note whether it is the host.
static void print_device(program *p) {
    PFN_vkGetPhysicalDeviceProperties read = (PFN_vkGetPhysicalDeviceProperties)p->device.get_instance_proc(
        p->device.instance, "vkGetPhysicalDeviceProperties");
    VkPhysicalDeviceProperties properties;
    if (!read) return;
    (*read)(p->device.physical, &properties);
    p->on_host = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    printf("%s%s\n", properties.deviceName, p->on_host ? "; it computes on the host, so times are of all processors" : "");
}

static int open_device(program *p, const image_options *o) {
    tl_vk_device_desc desc;
    tl_vk_backend_desc backend;
    memset(&desc, 0, sizeof desc);
    memset(&backend, 0, sizeof backend);
    desc.number = (int32_t)o->device;
    desc.validates = o->validates;
    desc.message = o->validates ? on_message : NULL;
    desc.message_user = p;
    if (tl_vk_init_device(&p->env, &desc, &p->device)) return 0;
    print_device(p);
    backend.device = p->device;
    return !tl_vk_init_backend(&p->env, &backend, &p->backend) && !vk_image_init(&p->backend, &p->vi);
}

static int run_on_device(program *p, const image_options *o, float **result) {
    static const tl_kernel_fn forwards[IMAGE_OP_COUNT] = { convolve, convolve_depthwise, add,  classify,
                                                           load,     pool,               join, convolve };
    image_machine m;
    memset(&m, 0, sizeof m);
    m.backend = &p->backend;
    m.net = &p->net;
    m.prepare = prepare;
    m.forget = forget;
    m.user = p;
    m.clock = p->on_host ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;  // others on the machine do not show
    image_set_kernels(m.kernels, forwards, p);
    if (!image_measure_calls(&m, o)) return 0;
    printf("a call costs %.1f us beside its work\n\n", m.call_us);
    return image_run_all(&m, o, result);
}

// The same network with whole tensors on the host, once.
static int run_on_host(program *p, const image_options *o, float **result, size_t *count) {
    static const tl_kernel_fn forwards[IMAGE_OP_COUNT] = { image_convolve, image_convolve_depthwise, image_add,
                                                           image_classify, image_load, image_pool, image_join,
                                                           image_convolve };
    static tl_cpu_backend_desc cpu;
    image_result whole;
    tl_backend backend;
    image_machine m;
    int ok;
    if (tl_init_cpu_backend(&p->env, &cpu, &backend)) return 0;
    memset(&m, 0, sizeof m);
    m.backend = &backend;
    m.net = &p->net;
    m.clock = CLOCK_MONOTONIC;
    image_set_kernels(m.kernels, forwards, &p->net);
    ok = image_build(&m, o, 0);
    if (ok) {
        *count = image_result_bytes(&p->net) / sizeof(float);
        *result = (float *)malloc(*count * sizeof(float));
    }
    ok = ok && *result && image_run(&m, NULL, 0, 0, *result, &whole);
    image_forget(&m);
    tl_free_cpu_backend(&p->env, &backend);
    return ok;
}

// Whether results of the device are those of the host, but for what devices round to zero, or round otherwise.
static int compare(const float *device, const float *host, size_t count) {
    double most = 0.0, largest = 0.0;
    size_t i;
    for (i = 0; i < count; i++) {
        double apart = fabs((double)device[i] - (double)host[i]);
        if (!(apart <= most)) most = apart;
        if (fabs((double)host[i]) > largest) largest = fabs((double)host[i]);
    }
    if (!memcmp(device, host, count * sizeof *host)) printf("and those of the host\n");
    else printf("the host's are apart by %.2g of the largest\n", most / largest);
    return most <= 1e-5 * largest && largest > 0.0;
}

static const char help[] =
    "09_vulkan_rows [--unet] [--size PIXELS] [--width FACTOR] [--budget BYTES] [--within RATIO]\n"
    "               [--device N] [--validate]\n\n"
    "A forward of MobileNetV2 on a Vulkan device with whole tensors, and in regions of rows.\n"
    "  --unet           of a U-Net with four levels\n"
    "  --size PIXELS    of the image, 32 to 512 (96); a U-Net halves it three times\n"
    "  --width FACTOR   of all channels, 0.1 to 2 (0.35)\n"
    "  --budget BYTES   rows in as few calls as fit into so many bytes; else in as few bytes\n"
    "  --within RATIO   also: as few bytes as are predicted to take at most so many times as long as whole\n"
    "                   tensors (1.1)\n"
    "  --device N       as 02_vulkan_train --list numbers them; else the first GPU, or what there is\n"
    "  --validate       with the Khronos validation layer: one error fails\n";

int main(int count, char **arguments) {
    static program p;
    image_options o = { 96, 0, 0, 0.35, 1.1, 0, 0, NULL };
    float *device = NULL, *host = NULL;
    size_t floats = 0;
    int ok, done;
    if (!image_parse(count, arguments, help, &o, &done)) return 1;
    if (done) return 0;
    p.net.env = &p.env;
    p.net.keeps_means = 1;
    ok = open_device(&p, &o) && run_on_host(&p, &o, &host, &floats) && run_on_device(&p, &o, &device);
    ok = ok && compare(device, host, floats);
    if (p.vi.refusal[0]) fprintf(stderr, IMAGE_PROGRAM ": %s\n", p.vi.refusal);
    if (!ok) fprintf(stderr, IMAGE_PROGRAM ": %s\n", p.env.error.text[0] ? p.env.error.text : "failed");
    vk_image_free(&p.vi);
    if (p.backend.self) tl_vk_free_backend(&p.env, &p.backend);
    tl_vk_free_device(&p.env, &p.device);
    free(device);
    free(host);
    return !ok || p.complaints;
}
