// What the manager costs: save and take against memcpy, and the bookkeeping alone.
// Medians of interleaved rounds, so that a busy machine slows both sides alike.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"

static void must(tl_env *env, tl_result result) {
    if (result) { fprintf(stderr, "%s\n", env->error.text); exit(1); }
}

// Bytes on a multiple of 64, as tensors and blocks are: memcpy's speed depends on it.
static char *aligned(void *memory) {
    if (!memory) exit(1);
    return (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
}

typedef struct bench {
    tl_env      env;
    tl_backend  backend;
    tl_manager *manager;
    char       *memory;
} bench;

static void open_bench(bench *b, size_t memory_bytes) {
    tl_cpu_backend_desc backend_desc;
    tl_manager_desc desc;
    memset(b, 0, sizeof *b);
    memset(&backend_desc, 0, sizeof backend_desc);
    memset(&desc, 0, sizeof desc);
    if (memory_bytes) {
        b->memory = (char *)malloc(memory_bytes);
        if (!b->memory) exit(1);
        memset(b->memory, 1, memory_bytes);
        backend_desc.memory = b->memory;
        backend_desc.memory_bytes = memory_bytes;
    }
    must(&b->env, tl_init_cpu_backend(&b->env, &backend_desc, &b->backend));
    must(&b->env, tl_init_manager(&b->env, &b->backend, &desc, &b->manager));
}

static void close_bench(bench *b) {
    tl_free_manager(b->manager);
    tl_free_cpu_backend(&b->env, &b->backend);
    free(b->memory);
}

static void save(bench *b, int32_t node, const void *data, uint64_t bytes) {
    tl_save_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.key.node = node;
    desc.data = data;
    desc.bytes = bytes;
    desc.cost = 1 + (uint64_t)node % 100;
    must(&b->env, tl_save_checkpoint(&b->env, b->manager, &desc));
}

static void take(bench *b, int32_t node, void *data, uint64_t bytes) {
    tl_checkpoint_key key;
    memset(&key, 0, sizeof key);
    key.node = node;
    must(&b->env, tl_take_checkpoint(&b->env, b->manager, key, data, bytes));
}

// Save and take a checkpoint, and copy the same bytes with memcpy to and from another block of the
// same backend, turn by turn; the two blocks change roles, and each set of buffers counts once:
// what 16 MiB of pages are worth depends on where they lie.
enum { SETS = 7, ROUNDS = 16 };

typedef struct times { double copy, save, take, save_ratio, take_ratio; } times;

static char *borrow(bench *b, int32_t node) {
    union { const void *in; char *out; } data;
    tl_checkpoint_key key;
    uint64_t bytes;
    memset(&key, 0, sizeof key);
    key.node = node;
    must(&b->env, tl_peek_checkpoint(&b->env, b->manager, key, &data.in, &bytes));
    must(&b->env, tl_release_checkpoint(&b->env, b->manager, key));
    return data.out;  // a plain block stays where it is while it is held
}

static times one_set(size_t memory_bytes, size_t bytes) {
    static double copies[2][ROUNDS], saves[ROUNDS], takes[ROUNDS];
    void *memory[2];
    char *from, *to, *kept;
    int repeat = bytes < 65536 ? 256 : 2, round, i, side;
    double start, copy_out;
    times result;
    bench b;
    open_bench(&b, memory_bytes);
    for (i = 0; i < 2; i++) memory[i] = malloc(bytes + 64);
    from = aligned(memory[0]); to = aligned(memory[1]);
    memset(from, 3, bytes); memset(to, 4, bytes);
    save(&b, 1, from, bytes);
    for (round = -2; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round, node = round & 1;
        double t[5];
        memset(t, 0, sizeof t);
        kept = borrow(&b, 1 - node);
        for (i = 0; i < repeat; i++) {
            for (side = 0; side < 2; side++) {  // who goes first finds the bytes cold: each does in turn
                start = wall_ns();
                if ((side ^ i) & 1) { memcpy(kept, from, bytes);     t[0] += wall_ns() - start; }
                else                { save(&b, node, from, bytes);   t[2] += wall_ns() - start; }
            }
            for (side = 0; side < 2; side++) {
                start = wall_ns();
                if ((side ^ i) & 1) { memcpy(to, kept, bytes);       t[1] += wall_ns() - start; }
                else                { take(&b, node, to, bytes);     t[3] += wall_ns() - start; }
            }
            start = wall_ns(); t[4] += wall_ns() - start;  // the clock itself
        }
        for (i = 0; i < 2; i++) copies[i][at] = (t[i] - t[4]) / repeat;
        saves[at] = (t[2] - t[4]) / repeat;
        takes[at] = (t[3] - t[4]) / repeat;
        save(&b, node, from, bytes);
        take(&b, 1 - node, to, bytes);
    }
    result.copy = median(copies[0], ROUNDS);
    copy_out = median(copies[1], ROUNDS);
    result.save = median(saves, ROUNDS);
    result.take = median(takes, ROUNDS);
    result.save_ratio = result.copy / result.save;
    result.take_ratio = copy_out / result.take;
    close_bench(&b);
    for (i = 0; i < 2; i++) free(memory[i]);
    return result;
}

static void against_memcpy(const char *where, size_t memory_bytes, size_t bytes) {
    double values[5][SETS];
    int set;
    for (set = 0; set < SETS; set++) {
        times t = one_set(memory_bytes, bytes);
        values[0][set] = t.copy; values[1][set] = t.save; values[2][set] = t.take;
        values[3][set] = t.save_ratio; values[4][set] = t.take_ratio;
    }
    printf("%-10s %8lu KiB %12.0f %12.0f %12.0f %8.3f %8.3f\n", where, (unsigned long)(bytes / 1024), median(values[0], SETS),
           median(values[1], SETS), median(values[2], SETS), median(values[3], SETS), median(values[4], SETS));
}

// Checkpoints of 4 bytes come and go, first in first out, while so many are live.
static void bookkeeping(bench *b, int live, int32_t *first, double *save_ns, double *take_ns) {
    int batch = live < 1000 ? live : 1000, i;
    char bytes[4] = {0, 0, 0, 0};
    double start = wall_ns(), middle;
    for (i = 0; i < batch; i++) take(b, *first + i, bytes, 4);
    middle = wall_ns();
    for (i = 0; i < batch; i++) save(b, *first + live + i, bytes, 4);
    *save_ns = (wall_ns() - middle) / batch;
    *take_ns = (middle - start) / batch;
    *first += batch;
}

static void all_bookkeeping(const char *where, size_t memory_bytes) {
    enum { KINDS = 3, TURNS = 401 };
    static const int lives[KINDS] = {10, 1000, 100000};
    static double saves[KINDS][TURNS], takes[KINDS][TURNS];
    bench b[KINDS];
    int32_t first[KINDS] = {0, 0, 0};
    double save_ns[KINDS], take_ns[KINDS];
    int kind, turn, i;
    for (kind = 0; kind < KINDS; kind++) {
        open_bench(&b[kind], memory_bytes);
        for (i = 0; i < lives[kind]; i++) save(&b[kind], i, "abc", 4);
    }
    for (turn = -20; turn < TURNS; turn++)
        for (kind = 0; kind < KINDS; kind++) {
            int at = turn < 0 ? 0 : turn;
            if (lives[kind] < 1000)  // warm, so that the others' turns do not count here
                for (i = 0; i < 20; i++) bookkeeping(&b[kind], lives[kind], &first[kind], &saves[kind][at], &takes[kind][at]);
            bookkeeping(&b[kind], lives[kind], &first[kind], &saves[kind][at], &takes[kind][at]);
        }
    for (kind = 0; kind < KINDS; kind++) {
        save_ns[kind] = median(saves[kind], TURNS);
        take_ns[kind] = median(takes[kind], TURNS);
    }
    for (kind = 0; kind < KINDS; kind++)
        printf("%-10s %8d live %11.0f %12.0f %12.2f\n", where, lives[kind], save_ns[kind], take_ns[kind],
               (save_ns[kind] + take_ns[kind]) / (save_ns[1] + take_ns[1]));
    for (kind = 0; kind < KINDS; kind++) close_bench(&b[kind]);
}

int main(void) {
    static const size_t sizes[3] = {4096, 1 << 20, 16 << 20};
    int i;
    printf("one checkpoint against memcpy (medians; 1.000 = as fast as memcpy; to reach: >= 0.95 at 16 MiB)\n\n");
    printf("%-10s %12s %12s %12s %12s %8s %8s\n", "memory", "bytes", "memcpy ns", "save ns", "take ns", "save", "take");
    for (i = 0; i < 3; i++) against_memcpy("allocator", 0, sizes[i]);
    for (i = 0; i < 3; i++) against_memcpy("one block", (size_t)33 << 20, sizes[i]);
    printf("\nbookkeeping alone (medians; to reach: < 200 ns at 1000 live, at most 2 x that at 100000)\n\n");
    printf("%-10s %13s %11s %12s %12s\n", "memory", "checkpoints", "save ns", "take ns", "to 1000");
    all_bookkeeping("allocator", 0);
    all_bookkeeping("one block", (size_t)64 << 20);
    return 0;
}
