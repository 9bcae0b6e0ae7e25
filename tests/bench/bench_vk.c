// What the Vulkan backend costs: each line against a reference in the same run, turn by turn, and the
// turns change order, so that a busy machine slows both sides alike. Medians; no validation layer.
//
// VMA_VIRTUAL names the library of tests/vma/vma_virtual.cpp:  make bench VMA=<path of a clone>
#define _POSIX_C_SOURCE 200809L

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../support/vk_support.h"
#include "timing.h"

// -- words: made by make shaders --
static const uint32_t bench_copy_uvec4_words[] = {
    0x07230203, 0x00010000, 0x0008000b, 0x00000059, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0008000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000e, 0x00000013, 0x00000022,
    0x00060010, 0x00000004, 0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000e,
    0x0000000b, 0x0000001a, 0x00040047, 0x00000013, 0x0000000b, 0x00000018, 0x00040047, 0x0000001e,
    0x00000001, 0x00000000, 0x00040047, 0x0000001f, 0x0000000b, 0x00000019, 0x00040047, 0x00000022,
    0x0000000b, 0x0000001b, 0x00050048, 0x0000002c, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
    0x0000002c, 0x00000001, 0x00000023, 0x00000004, 0x00050048, 0x0000002c, 0x00000002, 0x00000023,
    0x00000008, 0x00030047, 0x0000002c, 0x00000002, 0x00040047, 0x00000039, 0x00000006, 0x00000010,
    0x00040048, 0x0000003a, 0x00000000, 0x00000019, 0x00050048, 0x0000003a, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000003a, 0x00000003, 0x00040047, 0x0000003c, 0x00000022, 0x00000000,
    0x00040047, 0x0000003c, 0x00000021, 0x00000000, 0x00040047, 0x0000003e, 0x00000006, 0x00000010,
    0x00040048, 0x0000003f, 0x00000000, 0x00000018, 0x00050048, 0x0000003f, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x0000003f, 0x00000003, 0x00040047, 0x00000041, 0x00000022, 0x00000000,
    0x00040047, 0x00000041, 0x00000021, 0x00000001, 0x00020013, 0x00000002, 0x00030021, 0x00000003,
    0x00000002, 0x00040015, 0x00000006, 0x00000020, 0x00000000, 0x00040017, 0x0000000c, 0x00000006,
    0x00000003, 0x00040020, 0x0000000d, 0x00000001, 0x0000000c, 0x0004003b, 0x0000000d, 0x0000000e,
    0x00000001, 0x0004002b, 0x00000006, 0x0000000f, 0x00000001, 0x00040020, 0x00000010, 0x00000001,
    0x00000006, 0x0004003b, 0x0000000d, 0x00000013, 0x00000001, 0x0004002b, 0x00000006, 0x00000014,
    0x00000000, 0x00040032, 0x00000006, 0x0000001e, 0x00000040, 0x00060033, 0x0000000c, 0x0000001f,
    0x0000001e, 0x0000000f, 0x0000000f, 0x0004003b, 0x0000000d, 0x00000022, 0x00000001, 0x0005001e,
    0x0000002c, 0x00000006, 0x00000006, 0x00000006, 0x00040020, 0x0000002d, 0x00000009, 0x0000002c,
    0x0004003b, 0x0000002d, 0x0000002e, 0x00000009, 0x00040015, 0x0000002f, 0x00000020, 0x00000001,
    0x0004002b, 0x0000002f, 0x00000030, 0x00000000, 0x00040020, 0x00000031, 0x00000009, 0x00000006,
    0x00020014, 0x00000034, 0x00040017, 0x00000038, 0x00000006, 0x00000004, 0x0003001d, 0x00000039,
    0x00000038, 0x0003001e, 0x0000003a, 0x00000039, 0x00040020, 0x0000003b, 0x00000002, 0x0000003a,
    0x0004003b, 0x0000003b, 0x0000003c, 0x00000002, 0x0003001d, 0x0000003e, 0x00000038, 0x0003001e,
    0x0000003f, 0x0000003e, 0x00040020, 0x00000040, 0x00000002, 0x0000003f, 0x0004003b, 0x00000040,
    0x00000041, 0x00000002, 0x00040020, 0x00000043, 0x00000002, 0x00000038, 0x00050036, 0x00000002,
    0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005, 0x00050041, 0x00000010, 0x00000051,
    0x0000000e, 0x0000000f, 0x0004003d, 0x00000006, 0x00000052, 0x00000051, 0x00050041, 0x00000010,
    0x00000053, 0x00000013, 0x00000014, 0x0004003d, 0x00000006, 0x00000054, 0x00000053, 0x00050084,
    0x00000006, 0x00000055, 0x00000052, 0x00000054, 0x00050041, 0x00000010, 0x00000056, 0x0000000e,
    0x00000014, 0x0004003d, 0x00000006, 0x00000057, 0x00000056, 0x00050080, 0x00000006, 0x00000058,
    0x00000055, 0x00000057, 0x00050051, 0x00000006, 0x0000004a, 0x0000001f, 0x00000000, 0x00050084,
    0x00000006, 0x0000004b, 0x00000058, 0x0000004a, 0x00050041, 0x00000010, 0x0000004c, 0x00000022,
    0x00000014, 0x0004003d, 0x00000006, 0x0000004d, 0x0000004c, 0x00050080, 0x00000006, 0x0000004e,
    0x0000004b, 0x0000004d, 0x00050041, 0x00000031, 0x00000032, 0x0000002e, 0x00000030, 0x0004003d,
    0x00000006, 0x00000033, 0x00000032, 0x000500b0, 0x00000034, 0x00000035, 0x0000004e, 0x00000033,
    0x000300f7, 0x00000037, 0x00000000, 0x000400fa, 0x00000035, 0x00000036, 0x00000037, 0x000200f8,
    0x00000036, 0x00060041, 0x00000043, 0x00000044, 0x00000041, 0x00000030, 0x0000004e, 0x0004003d,
    0x00000038, 0x00000045, 0x00000044, 0x00060041, 0x00000043, 0x00000046, 0x0000003c, 0x00000030,
    0x0000004e, 0x0003003e, 0x00000046, 0x00000045, 0x000200f9, 0x00000037, 0x000200f8, 0x00000037,
    0x000100fd, 0x00010038,
};
// -- end of words --

enum { MOST_ROUNDS = 101 };

typedef struct bench {
    vkt v;
    tl_env env;
    tl_backend backend;
    uint64_t alignment;
} bench;

static void must(bench *b, tl_result result) {
    if (result) { fprintf(stderr, "%s\n", b->env.error.text); exit(1); }
}

static void open_bench(bench *b) {
    vkt_desc device = {0};
    tl_vk_backend_desc desc = {0};
    tl_backend_limits limits;
    memset(b, 0, sizeof *b);
    device.disable_validation = 1;
    vkt_open(&device, &b->v);
    desc.device = b->v.device;
    must(b, tl_vk_init_backend(&b->env, &desc, &b->backend));
    b->backend.limits(b->backend.self, &limits);
    b->alignment = limits.alignment_bytes;
}

static void close_bench(bench *b) {
    tl_vk_free_backend(&b->env, &b->backend);
    vkt_close(&b->v);
}

static void finish(bench *b) {
    tl_ticket ticket;
    must(b, b->backend.submit(b->backend.self, &ticket));
    must(b, b->backend.wait(b->backend.self, ticket));
}

static tl_range add_range(bench *b, uint64_t bytes) {
    tl_range range = {0, 0, 0};
    range.bytes = bytes;
    must(b, b->backend.add_block(b->backend.self, TL_TIER_DEVICE, bytes, &range.block));
    must(b, b->backend.claim(b->backend.self, range));
    must(b, b->backend.fill(b->backend.self, range, 0x3F800000u));  // pages that were never touched are all one
    finish(b);
    return range;
}

static void free_range(bench *b, tl_range range) {
    must(b, b->backend.release(b->backend.self, range));
    must(b, b->backend.free_block(b->backend.self, range.block));
}

static VkDescriptorBufferInfo buffer_of(bench *b, tl_range range) {
    VkDescriptorBufferInfo info;
    must(b, tl_vk_find_buffer(&b->backend, range, &info));
    return info;
}

// -- two sides --

typedef void (*side_fn)(bench *b, void *user);
typedef struct outcome { double reference_ns, ours_ns, ratio; } outcome;  // reference / ours

// The two sides of a round ran one after the other, so the ratio is the median of theirs.
static outcome sum_up(double times[2][MOST_ROUNDS], int rounds) {
    static double ratios[MOST_ROUNDS];
    outcome result;
    int i;
    for (i = 0; i < rounds; i++) ratios[i] = times[0][i] / times[1][i];
    result.ratio = median(ratios, rounds);
    result.reference_ns = median(times[0], rounds);
    result.ours_ns = median(times[1], rounds);
    return result;
}

static outcome compare(bench *b, int rounds, side_fn reference, side_fn ours, void *user) {
    static double times[2][MOST_ROUNDS];
    int round, side;
    for (round = -4; round < rounds; round++)
        for (side = 0; side < 2; side++) {
            int is_ours = (side ^ round) & 1;
            double start = wall_ns();
            (is_ours ? ours : reference)(b, user);
            times[is_ours][round < 0 ? 0 : round] = wall_ns() - start;
        }
    return sum_up(times, rounds);
}

// Speeds are ratios where more is better, costs where less is.
static void print_speed(const char *what, outcome o, const char *goal) {
    printf("%-44s %12.0f %12.0f %8.2f  %s\n", what, o.reference_ns, o.ours_ns, o.ratio, goal);
}

static void print_cost(const char *what, outcome o, double count, const char *goal) {
    printf("%-44s %12.1f %12.1f %8.2f  %s\n", what, o.reference_ns / count, o.ours_ns / count,
           1 / o.ratio, goal);
}

static void print_head(const char *title, const char *reference, const char *ours) {
    printf("\n%-44s %12s %12s %8s\n", title, reference, ours, "ratio");
}

// -- copies --

typedef struct copies {
    tl_range to, from;
    VkCommandBuffer commands;
} copies;

static void copy_by_hand(bench *b, void *user) {
    copies *c = (copies *)user;
    vkt_submit(&b->v, c->commands, b->v.fence);
    vkt_ok(b->v.vk.WaitForFences(b->v.device.device, 1, &b->v.fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    vkt_ok(b->v.vk.ResetFences(b->v.device.device, 1, &b->v.fence), "vkResetFences");
}

static void copy_by_backend(bench *b, void *user) {
    copies *c = (copies *)user;
    must(b, b->backend.copy(b->backend.self, c->to, c->from));
    finish(b);
}

// A command buffer that copies one range to the other, to be submitted again and again.
static void record_copy(bench *b, copies *c) {
    VkDescriptorBufferInfo to = buffer_of(b, c->to), from = buffer_of(b, c->from);
    VkCommandBufferBeginInfo begin;
    VkBufferCopy region;
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    region.srcOffset = from.offset;
    region.dstOffset = to.offset;
    region.size = c->from.bytes;
    vkt_ok(b->v.vk.ResetCommandPool(b->v.device.device, b->v.pool, 0), "vkResetCommandPool");
    c->commands = b->v.commands;
    vkt_ok(b->v.vk.BeginCommandBuffer(c->commands, &begin), "vkBeginCommandBuffer");
    b->v.vk.CmdCopyBuffer(c->commands, from.buffer, to.buffer, 1, &region);
    vkt_ok(b->v.vk.EndCommandBuffer(c->commands), "vkEndCommandBuffer");
}

static void open_copies(bench *b, uint64_t bytes, copies *c) {
    c->to = add_range(b, bytes);
    c->from = add_range(b, bytes);
    record_copy(b, c);
}

static void close_copies(bench *b, copies *c) {
    free_range(b, c->to);
    free_range(b, c->from);
}

static void bare_copies(bench *b) {
    static const uint64_t mebibytes[3] = {1, 16, 64};
    int i;
    print_head("one copy, submitted and waited for", "by hand ns", "backend ns");
    for (i = 0; i < 3; i++) {
        char what[64];
        copies c;
        open_copies(b, mebibytes[i] << 20, &c);
        snprintf(what, sizeof what, "%d MiB", (int)mebibytes[i]);
        print_speed(what, compare(b, i ? 31 : 101, copy_by_hand, copy_by_backend, &c), i ? ">= 0.95" : "");
        close_copies(b, &c);
    }
}

enum { SMALL_COPIES = 64, SMALL_BYTES = 4096 };
typedef struct small_copies { tl_range to[SMALL_COPIES], from[SMALL_COPIES]; } small_copies;

static void copy_one_by_one(bench *b, void *user) {
    small_copies *c = (small_copies *)user;
    int i;
    for (i = 0; i < SMALL_COPIES; i++) {
        must(b, b->backend.copy(b->backend.self, c->to[i], c->from[i]));
        finish(b);
    }
}

static void copy_batched(bench *b, void *user) {
    small_copies *c = (small_copies *)user;
    int i;
    for (i = 0; i < SMALL_COPIES; i++) must(b, b->backend.copy(b->backend.self, c->to[i], c->from[i]));
    finish(b);
}

static void batched_copies(bench *b) {
    small_copies c;
    int i;
    for (i = 0; i < SMALL_COPIES; i++) {
        c.to[i] = add_range(b, SMALL_BYTES);
        c.from[i] = add_range(b, SMALL_BYTES);
    }
    print_head("64 copies of 4 KiB", "each ns", "batched ns");
    print_speed("one submit for all", compare(b, 101, copy_one_by_one, copy_batched, &c), ">= 8");
    for (i = 0; i < SMALL_COPIES; i++) {
        free_range(b, c.to[i]);
        free_range(b, c.from[i]);
    }
}

// -- the recording of copies: what the backend does beside the driver's commands --

enum { MANY_COPIES = 1000 };
typedef struct many_copies {
    int count;
    tl_range to[MANY_COPIES], from[MANY_COPIES];
    VkDescriptorBufferInfo to_buffers[MANY_COPIES], from_buffers[MANY_COPIES];
} many_copies;

static void record_copies_by_hand(bench *b, const many_copies *c) {
    VkCommandBufferBeginInfo begin;
    int i;
    memset(&begin, 0, sizeof begin);
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    vkt_ok(b->v.vk.ResetCommandPool(b->v.device.device, b->v.pool, 0), "vkResetCommandPool");
    vkt_ok(b->v.vk.BeginCommandBuffer(b->v.commands, &begin), "vkBeginCommandBuffer");
    for (i = 0; i < c->count; i++) {
        VkBufferCopy region;
        region.srcOffset = c->from_buffers[i].offset;
        region.dstOffset = c->to_buffers[i].offset;
        region.size = SMALL_BYTES;
        b->v.vk.CmdCopyBuffer(b->v.commands, c->from_buffers[i].buffer, c->to_buffers[i].buffer, 1, &region);
    }
    vkt_ok(b->v.vk.EndCommandBuffer(b->v.commands), "vkEndCommandBuffer");
    vkt_submit(&b->v, b->v.commands, b->v.fence);
}

static void record_copies_by_backend(bench *b, const many_copies *c) {
    tl_ticket ticket;
    int i;
    for (i = 0; i < c->count; i++) must(b, b->backend.copy(b->backend.self, c->to[i], c->from[i]));
    must(b, b->backend.submit(b->backend.self, &ticket));
}

static outcome compare_copies(bench *b, const many_copies *c) {
    static double times[2][MOST_ROUNDS];
    int round;
    for (round = -4; round < MOST_ROUNDS; round++) {
        double start = wall_ns();
        int at = round < 0 ? 0 : round;
        record_copies_by_hand(b, c);
        times[0][at] = wall_ns() - start;
        vkt_ok(b->v.vk.WaitForFences(b->v.device.device, 1, &b->v.fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
        vkt_ok(b->v.vk.ResetFences(b->v.device.device, 1, &b->v.fence), "vkResetFences");
        start = wall_ns();
        record_copies_by_backend(b, c);
        times[1][at] = wall_ns() - start;
        finish(b);
    }
    return sum_up(times, MOST_ROUNDS);
}

static void recorded_copies(bench *b) {
    static many_copies c;
    int i;
    for (i = 0; i < MANY_COPIES; i++) {
        c.to[i] = add_range(b, SMALL_BYTES);
        c.from[i] = add_range(b, SMALL_BYTES);
        c.to_buffers[i] = buffer_of(b, c.to[i]);
        c.from_buffers[i] = buffer_of(b, c.from[i]);
    }
    print_head("copies of 4 KiB, each, recorded and submitted", "by hand ns", "backend ns");
    for (c.count = SMALL_COPIES; c.count <= MANY_COPIES; c.count += MANY_COPIES - SMALL_COPIES)
        print_cost(c.count == SMALL_COPIES ? "of 64" : "of 1000", compare_copies(b, &c), c.count, "<= 1.3");
    for (i = 0; i < MANY_COPIES; i++) {
        free_range(b, c.to[i]);
        free_range(b, c.from[i]);
    }
}

// -- places in memory --

enum { LIVE = 1024, TURNS = 4096 };
#define CHURN_BYTES ((uint64_t)128 << 20)

typedef struct churn {
    uint64_t alignment, sizes[TURNS];
    int      at[TURNS];
    uint64_t blocks[LIVE];
    tl_heap *heap;
    int32_t  pieces[LIVE];
    void    *library, *virtual_block, *virtual_pieces[LIVE];
    void  *(*virtual_open)(uint64_t bytes);
    void  *(*virtual_add)(void *block, uint64_t bytes, uint64_t alignment);
    void   (*virtual_free)(void *block, void *piece);
    void   (*virtual_close)(void *block);
} churn;

static void churn_virtual(bench *b, void *user) {
    churn *c = (churn *)user;
    int i;
    (void)b;
    for (i = 0; i < TURNS; i++) {
        void **piece = &c->virtual_pieces[c->at[i]];
        if (*piece) c->virtual_free(c->virtual_block, *piece);
        *piece = c->virtual_add(c->virtual_block, c->sizes[i], c->alignment);
        vkt_must(*piece != NULL, "the virtual block is full");
    }
}

static void churn_heap(bench *b, void *user) {
    churn *c = (churn *)user;
    size_t offset;
    int i;
    for (i = 0; i < TURNS; i++) {
        int32_t *piece = &c->pieces[c->at[i]];
        tl_free_block(c->heap, *piece);  // 0 stands for none
        must(b, tl_add_block(c->heap, (size_t)c->sizes[i], &offset, piece));
    }
}

static void churn_backend(bench *b, void *user) {
    churn *c = (churn *)user;
    int i;
    for (i = 0; i < TURNS; i++) {
        uint64_t *block = &c->blocks[c->at[i]];
        if (*block) must(b, b->backend.free_block(b->backend.self, *block));
        must(b, b->backend.add_block(b->backend.self, TL_TIER_DEVICE, c->sizes[i], block));
    }
}

#define FIND(c, name) do { \
        void *symbol = dlsym((c)->library, "vma_" #name); \
        vkt_must(symbol != NULL, "VMA_VIRTUAL lacks vma_" #name); \
        memcpy(&(c)->name, &symbol, sizeof symbol); \
    } while (0)

static int open_virtual(churn *c) {
    const char *path = getenv("VMA_VIRTUAL");
    if (!path || !path[0]) return 0;
    c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    vkt_must(c->library != NULL, "VMA_VIRTUAL cannot be opened");
    FIND(c, virtual_open);
    FIND(c, virtual_add);
    FIND(c, virtual_free);
    FIND(c, virtual_close);
    c->virtual_block = c->virtual_open(CHURN_BYTES);
    vkt_must(c->virtual_block != NULL, "no virtual block");
    return 1;
}

// Sizes from 256 bytes to 256 KiB, as many in each doubling; which one goes is drawn.
static void open_churn(bench *b, churn *c) {
    tl_random random = {11};
    int i;
    memset(c, 0, sizeof *c);
    c->alignment = b->alignment;
    for (i = 0; i < TURNS; i++) {
        uint64_t least = (uint64_t)256 << tl_next_random_below(&random, 10);
        c->sizes[i] = least + tl_next_random_below(&random, least);
        c->at[i] = i < LIVE ? i : (int)tl_next_random_below(&random, LIVE);
    }
    must(b, tl_init_heap(&b->env, (size_t)CHURN_BYTES, (size_t)c->alignment, &c->heap));
}

static void close_churn(bench *b, churn *c) {
    int i;
    for (i = 0; i < LIVE; i++) must(b, b->backend.free_block(b->backend.self, c->blocks[i]));
    tl_free_heap(c->heap);
    if (c->library) {
        for (i = 0; i < LIVE; i++) c->virtual_free(c->virtual_block, c->virtual_pieces[i]);
        c->virtual_close(c->virtual_block);
        dlclose(c->library);
    }
}

static void places(bench *b) {
    static churn c;
    open_churn(b, &c);
    if (open_virtual(&c)) {
        print_head("free + alloc, 1024 live, each", "Virtual ns", "ours ns");
        print_cost("free_block, add_block", compare(b, 101, churn_virtual, churn_backend, &c), TURNS, "<= 1.5");
        print_cost("tl_free_block, tl_add_block", compare(b, 101, churn_virtual, churn_heap, &c), TURNS, "");
    } else {
        printf("\nSKIPPED VmaVirtualBlock: make bench VMA=<path of a clone>\n");
        print_head("free + alloc, 1024 live, each", "heap ns", "backend ns");
        print_cost("free_block, add_block", compare(b, 101, churn_heap, churn_backend, &c), TURNS, "");
    }
    close_churn(b, &c);
}

// -- shaders --

typedef struct shader {
    vkt_kernel kernel;
    uint32_t   unit_bytes, units_per_group;  // of the count, and how many of them a workgroup takes
} shader;

typedef struct shaders { copies c; shader ours, reference; } shaders;

static void run_shader(bench *b, shaders *s, const shader *chosen) {
    uint32_t push[3] = {0, 0, 0}, groups, rows;
    push[0] = (uint32_t)(s->c.from.bytes / chosen->unit_bytes);
    groups = (push[0] + chosen->units_per_group - 1) / chosen->units_per_group;
    rows = (groups + 65534) / 65535;
    vkt_dispatch(&b->v, vkt_begin(&b->v), &chosen->kernel, push, rows > 1 ? 65535 : groups, rows);
    vkt_submit_wait(&b->v);
}

static void run_ours(bench *b, void *user) {
    shaders *s = (shaders *)user;
    run_shader(b, s, &s->ours);
}

static void run_reference(bench *b, void *user) {
    shaders *s = (shaders *)user;
    run_shader(b, s, &s->reference);
}

static void make_shader(bench *b, shaders *s, tli_vk_words words, uint32_t unit_bytes, uint32_t units,
                        shader *made) {
    VkDescriptorBufferInfo parts[2];
    parts[0] = buffer_of(b, s->c.to);
    parts[1] = buffer_of(b, s->c.from);
    vkt_make_kernel(&b->v, words.words, words.count * 4, 2, 12, 64, &made->kernel);
    vkt_bind(&b->v, &made->kernel, parts);
    made->unit_bytes = unit_bytes;
    made->units_per_group = units * 64;
}

static void shader_copies(bench *b) {
    tli_vk_words uvec4;
    shaders s;
    uvec4.words = bench_copy_uvec4_words;
    uvec4.count = sizeof bench_copy_uvec4_words / 4;
    open_copies(b, 16 << 20, &s.c);
    make_shader(b, &s, tli_vk_words_of(TLI_VK_SHADER_COPY), 16, 4, &s.ours);
    print_head("copy of 16 MiB by 4 x uvec4", "other ns", "ours ns");
    make_shader(b, &s, uvec4, 16, 1, &s.reference);
    print_speed("against uvec4", compare(b, 31, run_reference, run_ours, &s), ">= 0.9");
    vkt_free_kernel(&b->v, &s.reference.kernel);
    make_shader(b, &s, tli_vk_words_of(TLI_VK_SHADER_COPY_UINT), 4, 1, &s.reference);
    print_speed("against u32", compare(b, 31, run_reference, run_ours, &s), ">= 1.5");
    vkt_free_kernel(&b->v, &s.reference.kernel);
    vkt_free_kernel(&b->v, &s.ours.kernel);
    close_copies(b, &s.c);
}

// -- conversions --

typedef struct conversion { copies c; tl_range small; tl_codec codec; } conversion;

static void copy_for_conversion(bench *b, void *user) { copy_by_hand(b, &((conversion *)user)->c); }

static void compress(bench *b, void *user) {
    conversion *c = (conversion *)user;
    must(b, b->backend.compress(b->backend.self, c->codec, c->small, c->c.from));
    finish(b);
}

static void expand(bench *b, void *user) {
    conversion *c = (conversion *)user;
    must(b, b->backend.expand(b->backend.self, c->codec, c->c.to, c->small));
    finish(b);
}

static void conversions(bench *b) {
    static const tl_codec codecs[2] = {TL_CODEC_F16, TL_CODEC_Q8};
    int i;
    conversion c;
    print_head("16 MiB of f32 against vkCmdCopyBuffer", "copy ns", "convert ns");
    open_copies(b, 16 << 20, &c.c);
    for (i = 0; i < 2; i++) {
        char what[64];
        c.codec = codecs[i];
        c.small = add_range(b, tl_find_codec_bytes(c.codec, c.c.from.bytes));
        snprintf(what, sizeof what, "f32 -> %s", tl_name_codec(c.codec));
        print_speed(what, compare(b, 15, copy_for_conversion, compress, &c), "");
        snprintf(what, sizeof what, "%s -> f32", tl_name_codec(c.codec));
        print_speed(what, compare(b, 15, copy_for_conversion, expand, &c), "");
        free_range(b, c.small);
    }
    close_copies(b, &c.c);
}

// -- kernels --

enum { KERNELS = 256 };
typedef struct steps {
    tl_range ranges[2];
    tl_vk_kernel *kernel;
    vkt_kernel hand[2];  // one for each range: it holds the descriptor set
} steps;

static const uint32_t step_push[3] = {16, 7, 0};

static void record_by_hand(bench *b, void *user) {
    steps *s = (steps *)user;
    VkCommandBuffer commands = vkt_begin(&b->v);
    VkMemoryBarrier barrier;
    int i;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    for (i = 0; i < KERNELS; i++) {
        b->v.vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
        vkt_dispatch(&b->v, commands, &s->hand[i & 1], step_push, 1, 1);
    }
}

static void record_by_backend(bench *b, void *user) {
    steps *s = (steps *)user;
    int i;
    for (i = 0; i < KERNELS; i++) {
        tl_access access;
        access.range = s->ranges[i & 1];
        access.writes = 1;
        must(b, b->backend.order(b->backend.self, &access, 1));
        must(b, tl_vk_record_kernel(&b->backend, s->kernel, &access.range, step_push, 1, 1, 1));
    }
}

static void run_by_hand(bench *b, void *user) {
    record_by_hand(b, user);
    vkt_submit_wait(&b->v);
}

static void run_by_backend(bench *b, void *user) {
    record_by_backend(b, user);
    finish(b);
}

// Recording alone, turn by turn; what was recorded runs outside of the clock.
static outcome compare_recording(bench *b, steps *s) {
    static double times[2][MOST_ROUNDS];
    int round;
    for (round = -4; round < MOST_ROUNDS; round++) {
        int at = round < 0 ? 0 : round;
        double start = wall_ns();
        record_by_hand(b, s);
        times[0][at] = wall_ns() - start;
        vkt_submit_wait(&b->v);
        start = wall_ns();
        record_by_backend(b, s);
        times[1][at] = wall_ns() - start;
        finish(b);
    }
    return sum_up(times, MOST_ROUNDS);
}

static void kernel_steps(bench *b) {
    tli_vk_words words = tli_vk_words_of(TLI_VK_SHADER_FILL);
    tl_vk_kernel_desc desc = {0};
    VkDescriptorBufferInfo part;
    steps s;
    int i;
    desc.words = words.words;
    desc.word_count = words.count;
    desc.buffer_count = 1;
    desc.push_bytes = sizeof step_push;
    must(b, tl_vk_init_kernel(&b->backend, &desc, &s.kernel));
    for (i = 0; i < 2; i++) {
        s.ranges[i] = add_range(b, 64);
        part = buffer_of(b, s.ranges[i]);
        vkt_make_kernel(&b->v, words.words, words.count * 4, 1, 12, 64, &s.hand[i]);
        vkt_bind(&b->v, &s.hand[i], &part);
    }
    print_head("barrier + dispatch of 64 bytes, each of 256", "by hand ns", "backend ns");
    print_cost("recorded", compare_recording(b, &s), KERNELS, "<= 1.3");
    print_cost("recorded, submitted and waited for", compare(b, 101, run_by_hand, run_by_backend, &s), KERNELS,
               "");
    for (i = 0; i < 2; i++) {
        free_range(b, s.ranges[i]);
        vkt_free_kernel(&b->v, &s.hand[i]);
    }
    tl_vk_free_kernel(&b->backend, s.kernel);
}

int main(void) {
    static bench b;
    if (!vkt_has_vulkan("bench_vk")) return 0;
    open_bench(&b);
    printf("%s (medians; ratio: of speeds, more is better; in free + alloc and dispatch of costs, less is)\n",
           b.v.properties.deviceName);
    bare_copies(&b);
    batched_copies(&b);
    recorded_copies(&b);
    places(&b);
    shader_copies(&b);
    conversions(&b);
    kernel_steps(&b);
    close_bench(&b);
    return 0;
}
