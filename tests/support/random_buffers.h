// Random buffers for layouts and banks: lifetimes, alignments, pins, results that may lie over an input. Include after
// random_graph.h.
#ifndef TESTS_RANDOM_BUFFERS_H
#define TESTS_RANDOM_BUFFERS_H

static inline int lies_over(const tl_layout_buffer *buffers, int32_t a, int32_t b) { return buffers[a].in_place && buffers[a].over == b; }

static inline uint64_t alignment_of(const tl_layout_buffer *b) { return b->alignment ? b->alignment : 1; }

// Let a buffer lie over one of those before it that no other lies over.
static inline void random_over(tl_random *random, tl_layout_buffer *buffers, int32_t i) {
    tl_layout_buffer *b = &buffers[i];
    int32_t k;
    for (k = 0; k < i && !b->in_place && b->bytes && random_chance(random, 60); k++) {
        int32_t other, taken = 0;
        for (other = 0; other < i; other++) taken |= lies_over(buffers, other, k);
        if (taken || !buffers[k].bytes || buffers[k].last_step <= buffers[k].first_step) continue;
        b->last_step += buffers[k].last_step - b->first_step;
        b->first_step = buffers[k].last_step;
        b->in_place = 1;
        b->over = k;
        if (!b->is_pinned && random_chance(random, 60)) b->bytes = buffers[k].bytes;
    }
}

// With extras some have alignments, pins, or lie over others. moved: also the bytes that are moved in each; may be NULL.
static inline void random_buffers(tl_random *random, tl_layout_buffer *buffers, uint64_t *moved, int32_t count, int32_t steps, int extras) {
    uint64_t most = (uint64_t)random_count(random, 2, 30);
    int32_t i;
    memset(buffers, 0, (size_t)count * sizeof *buffers);
    for (i = 0; i < count; i++) {
        tl_layout_buffer *b = &buffers[i];
        b->bytes = 1 + tl_next_random_below(random, most);
        b->first_step = random_count(random, -2, steps);
        b->last_step = b->first_step + random_count(random, 0, 4);
        if (moved) moved[i] = tl_next_random_below(random, 6 * most);
        if (!extras) continue;
        if (random_chance(random, 30)) b->alignment = (uint64_t)1 << random_count(random, 0, 4);
        if (random_chance(random, 5)) b->bytes = 0;
        if (random_chance(random, 12)) {
            b->is_pinned = 1;
            b->pinned_offset = alignment_of(b) * tl_next_random_below(random, 5);
        }
        random_over(random, buffers, i);
    }
}

// A size of blocks that each buffer fits; pins that lie in two blocks move into the second.
static inline uint64_t random_block(tl_random *random, tl_layout_buffer *buffers, int32_t count) {
    uint64_t most = 1, alignment = 1, block;
    int32_t i;
    for (i = 0; i < count; i++) {
        if (buffers[i].bytes > most) most = buffers[i].bytes;
        if (alignment_of(&buffers[i]) > alignment) alignment = alignment_of(&buffers[i]);
    }
    block = most + tl_next_random_below(random, 2 * most);
    block = (block + alignment - 1) / alignment * alignment;
    for (i = 0; i < count; i++) {
        tl_layout_buffer *b = &buffers[i];
        if (b->is_pinned && b->pinned_offset % block + b->bytes > block) b->pinned_offset += block - b->pinned_offset % block;
    }
    return block;
}
#endif
