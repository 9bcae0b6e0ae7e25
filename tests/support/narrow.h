// A plan in narrow numbers, made from a plain one as the header says how they are written: what is read must be the same.
#ifndef TESTS_NARROW_H
#define TESTS_NARROW_H

#include <stdint.h>
#include <stdlib.h>

typedef struct narrow_form {
    tl_plan        plan;
    tl_narrow_plan narrow;
    uint16_t      *steps;
    void          *offsets, *host_offsets;
} narrow_form;

static inline void *narrow_offsets(const uint64_t *offsets, int32_t count, int wide) {
    uint32_t *all = (uint32_t *)calloc((size_t)count + 1, sizeof *all);
    int32_t i;
    for (i = 0; i < count; i++) {
        if (wide) all[i] = (uint32_t)offsets[i];
        else ((uint16_t *)all)[i] = (uint16_t)offsets[i];
    }
    return all;
}

// unit: divides every offset; offsets in units fit 16 bits. words: 2 or, with slots, 3.
static inline void narrow_from(const tl_plan *plan, uint64_t unit, int words, int wide, narrow_form *n) {
    uint64_t *units = (uint64_t *)calloc((size_t)(plan->offset_count + plan->host_offset_count) + 1, sizeof *units);
    int32_t i, k;
    memset(n, 0, sizeof *n);
    n->steps = (uint16_t *)calloc((size_t)plan->step_count * 3 + 1, sizeof *n->steps);
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        n->steps[words * i] = (uint16_t)(step->kind | (step->codec + step->begins) << 4 | (step->output + 1) << 8);
        n->steps[words * i + 1] = (uint16_t)step->node;
        if (words == 3) n->steps[words * i + 2] = step->slot;
    }
    for (i = 0; i < plan->offset_count; i++) units[i] = plan->offsets[i] / unit;
    for (k = 0; k < plan->host_offset_count; k++) units[i + k] = plan->host_offsets[k] / unit;
    n->offsets = narrow_offsets(units, plan->offset_count, wide);
    n->host_offsets = narrow_offsets(units + plan->offset_count, plan->host_offset_count, wide);
    free(units);
    n->narrow.steps = n->steps;
    n->narrow.offsets = n->offsets;
    n->narrow.host_offsets = n->host_offsets;
    n->narrow.unit_bytes = unit;
    n->narrow.step_words = words;
    n->narrow.offset_bytes = wide ? 4 : 2;
    n->plan = *plan;
    n->plan.steps = NULL;
    n->plan.offsets = n->plan.host_offsets = NULL;
    n->plan.memory = NULL;
    n->plan.narrow = &n->narrow;
}

static inline void narrow_free(narrow_form *n) {
    free(n->steps);
    free(n->offsets);
    free(n->host_offsets);
}

#endif
