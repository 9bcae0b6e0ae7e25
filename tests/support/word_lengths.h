// word_lengths.h - the library's table with speed-ups by word lengths, for tests that need different ones
//
// Include it after tl_strategy.h. The library has no speed-ups of its own; these are nobody's measurements.
#ifndef WORD_LENGTHS_H
#define WORD_LENGTHS_H

#include <stdlib.h>
#include <string.h>

enum { WORD_LENGTH_ROWS = 64 };

static inline void take_speedups(tl_precision_profile *row) {
    static const double products[TL_SCHEME_COUNT] = { 1, 2, 2, 2, 4, 4, 2, 3, 1, 4 };
    static const double bytes[TL_SCHEME_COUNT] = { 1, 2, 2, 2, 4, 4, 4, 4, 0.5, 8 };
    static const double lookups[TL_SCHEME_COUNT] = { 1, 1, 1, 1, 1, 1, 1, 1.6, 1, 1 };
    static const double unknown[TL_SCHEME_COUNT] = { 1, 1.5, 1.5, 1.5, 2, 2, 2, 2, 0.5, 2 };
    static const char *const ops[] = { "linear", "conv2d", "depthwise", "conv", "convt2d", "rnn", "gru", "lstm", "bmm",
                                       "matmul", "attention" };
    const double *from = strcmp(row->op, "*") == 0           ? unknown
                         : strcmp(row->op, "embedding") == 0 ? lookups : bytes;
    size_t i;
    for (i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(row->op, ops[i]) == 0 && !row->most_elements) from = products;
    memcpy(row->speedup, from, sizeof row->speedup);
}

static inline const tl_precision_profile *word_length_profiles(int32_t *count) {
    static tl_precision_profile rows[WORD_LENGTH_ROWS];
    int32_t i;
    const tl_precision_profile *from = tl_find_default_profiles(count);
    if (*count + 1 > WORD_LENGTH_ROWS) abort();
    memcpy(rows + 1, from, (size_t)*count * sizeof *rows);
    rows[0] = rows[1];  // "linear": up to 4096 outputs the time goes into reading the matrix once
    rows[0].most_elements = 4096;
    *count += 1;
    for (i = 0; i < *count; i++) take_speedups(&rows[i]);
    return rows;
}

#endif
