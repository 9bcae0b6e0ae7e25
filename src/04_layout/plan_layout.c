#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- layout: from buffers to boxes --
//
// Buffers of which one may lie over another are one box, as high as the highest and from the first's beginning
// to the last's end, or they are boxes of their own. Which is lower is tried: all, none, and where few may,
// each set of them. A box whose buffers differ in bytes wastes some, so what its search proves is no bound
// then. The bound counts two such buffers at the step that they share with the larger one alone, so it holds
// for every choice.

#define TLI_LAYOUT_WORK UINT64_C(100000000)     // default work limit
#define TLI_LAYOUT_SHARE UINT64_C(2000000)      // work of a part of time in the first round of searches
#define TLI_LAYOUT_FEW 6                        // in-place buffers of which every set is tried

typedef struct tli_layout {
    tl_env   *env;
    tli_function function;      // named by errors
    const tl_layout_desc *desc;
    tli_fit_box  *boxes;            // [box_count], room for buffer_count
    int32_t  *box_of;           // [buffer_count] -1 = takes no bytes
    uint8_t  *is_merged;        // [buffer_count] 1 = lies over `over`
    tli_fit_piece *pieces;      // [piece_count] of boxes with gaps
    uint64_t *times;            // [section_count] first steps of sections, as tli_layout_time
    uint64_t *live;             // [section_count + 1] scratch: what sections have more than the one before
    int32_t   box_count, section_count, in_place_count, piece_count;
    int32_t   span_count;       // of all buffers
    int       has_pins, has_gaps;
    int       has_windows;      // 1 = in some gap a buffer takes some bytes: a window
    int       is_ragged;        // 1 = begin or bytes of a window are no multiple of the unit
    uint64_t  unit;             // the least alignment
    uint64_t *best;             // [buffer_count] offsets of the lowest layout
    uint64_t  height, bound, work, work_limit;
    int       stopped;          // progress asked to stop
} tli_layout;

static uint64_t tli_layout_alignment(const tl_layout_buffer *buffer) {
    return buffer->alignment ? buffer->alignment : 1;
}

// Steps of a buffer at which it takes the same bytes: those before, in and behind its gaps.
typedef struct tli_layout_span { int64_t first, last; uint64_t from, bytes; } tli_layout_span;

static int32_t tli_layout_count_spans(const tl_layout_buffer *b) { return 2 * b->gap_count + 1; }

// Find span k of a buffer: an odd k is gap k / 2, the even ones lie before, between and behind the gaps. 0 = it
// has no step, or takes no byte.
static int tli_layout_find_span(const tl_layout_buffer *b, int32_t k, tli_layout_span *span) {
    const tl_layout_gap *gap = k / 2 < b->gap_count ? &b->gaps[k / 2] : NULL;
    const tl_layout_gap *before = k / 2 ? &b->gaps[k / 2 - 1] : NULL;
    tli_zero(span, sizeof *span);
    if (k % 2 && gap) {
        span->first = gap->first_step;
        span->last = gap->last_step;
        span->from = gap->first_byte;
        span->bytes = gap->bytes;
        return span->bytes > 0;
    }
    if ((before && before->last_step == b->last_step) || (gap && gap->first_step == b->first_step)) return 0;
    span->first = before ? before->last_step + 1 : b->first_step;
    span->last = gap ? gap->first_step - 1 : b->last_step;
    span->bytes = b->bytes;
    return span->first <= span->last && span->bytes;
}

// Whether it takes a byte at any step.
static int tli_layout_takes(const tl_layout_buffer *b) {
    tli_layout_span span;
    int32_t k;
    for (k = 0; k < tli_layout_count_spans(b); k++) if (tli_layout_find_span(b, k, &span)) return 1;
    return 0;
}

// Steps as unsigned numbers in the same order.
static uint64_t tli_layout_time(int64_t step) { return (uint64_t)step ^ (uint64_t)1 << 63; }

static void tli_layout_free(tli_layout *l) {
    tli_release(l->env, l->boxes);
    tli_release(l->env, l->box_of);
    tli_release(l->env, l->is_merged);
    tli_release(l->env, l->pieces);
    tli_release(l->env, l->times);
    tli_release(l->env, l->live);
    tli_release(l->env, l->best);
}

static tl_result tli_layout_alloc(tli_layout *l) {
    uint64_t count = (uint64_t)l->desc->buffer_count;
    l->boxes = (tli_fit_box *)tli_alloc_array(l->env, count, sizeof *l->boxes);
    l->box_of = (int32_t *)tli_alloc_array(l->env, count, sizeof *l->box_of);
    l->is_merged = (uint8_t *)tli_alloc_array(l->env, count, 1);
    l->best = (uint64_t *)tli_alloc_array(l->env, count, sizeof *l->best);
    return l->boxes && l->box_of && l->is_merged && l->best ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Get memory for sections and pieces, of buffers that were checked.
static tl_result tli_layout_alloc_sections(tli_layout *l) {
    uint64_t count = (uint64_t)l->span_count;
    l->times = (uint64_t *)tli_alloc_array(l->env, count, sizeof *l->times);
    l->live = (uint64_t *)tli_alloc_array(l->env, count + 1, sizeof *l->live);
    if (l->has_gaps) l->pieces = (tli_fit_piece *)tli_alloc_array(l->env, count, sizeof *l->pieces);
    return l->times && l->live && (l->pieces || !l->has_gaps) ? TL_OK : TL_ERROR_NO_MEMORY;
}

// The section that a step is in: the last one that begins at it or before; -1 = none.
static int32_t tli_layout_find_section(const tli_layout *l, int32_t count, int64_t step) {
    int32_t low = -1, high = count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (l->times[middle] <= tli_layout_time(step)) low = middle; else high = middle;
    }
    return low;
}

// Divide time into sections: points at which a span begins and after which one ends before the next begins.
static void tli_layout_divide(tli_layout *l) {
    const tl_layout_buffer *buffers = l->desc->buffers;
    tli_layout_span span;
    int32_t i, k, count = 0, kept = 0;
    for (i = 0; i < l->desc->buffer_count; i++)
        for (k = 0; k < tli_layout_count_spans(&buffers[i]); k++)
            if (tli_layout_find_span(&buffers[i], k, &span)) l->times[count++] = tli_layout_time(span.first);
    tli_sort_u64(l->times, (size_t)count);
    for (i = 0; i < count; i++) if (!i || l->times[i] != l->times[i - 1]) l->times[kept++] = l->times[i];
    count = kept;
    tli_zero(l->live, (size_t)count * sizeof *l->live);
    for (i = 0; i < l->desc->buffer_count; i++)
        for (k = 0; k < tli_layout_count_spans(&buffers[i]); k++)
            if (tli_layout_find_span(&buffers[i], k, &span))
                l->live[tli_layout_find_section(l, count, span.last)] = 1;
    for (i = kept = 0; i < count; i++) if (l->live[i]) l->times[kept++] = l->times[i];
    l->section_count = kept;
    l->work += 40 * (uint64_t)l->span_count;
}

// The first section of a span. Sections between its first step and the next one that is kept were left out, so
// that is the one behind them.
static int32_t tli_layout_first(const tli_layout *l, int64_t step) {
    int32_t section = tli_layout_find_section(l, l->section_count, step);
    return section >= 0 && l->times[section] == tli_layout_time(step) ? section : section + 1;
}

static int32_t tli_layout_last(const tli_layout *l, int64_t step) {
    return tli_layout_find_section(l, l->section_count, step);
}

// Bytes rounded to the unit, but where bytes of windows are no multiples of it: they use what rounding leaves.
static uint64_t tli_layout_rounded(const tli_layout *l, uint64_t bytes) {
    return l->is_ragged ? bytes : tli_align_up(bytes, l->unit);
}

// Add what a buffer takes to the sections in which it begins and behind which it ends.
static void tli_layout_add_live(tli_layout *l, const tl_layout_buffer *buffer) {
    tli_layout_span span;
    int32_t k;
    for (k = 0; k < tli_layout_count_spans(buffer); k++) {
        uint64_t bytes, over;
        int32_t section;
        if (!tli_layout_find_span(buffer, k, &span)) continue;
        bytes = tli_layout_rounded(l, span.bytes);
        section = tli_layout_first(l, span.first);
        l->live[section] += bytes;
        l->live[tli_layout_last(l, span.last) + 1] -= bytes;
        over = buffer->in_place ? tli_layout_rounded(l, l->desc->buffers[buffer->over].bytes) : 0;
        l->live[section] -= over < bytes ? over : bytes;
        l->live[section + 1] += over < bytes ? over : bytes;
    }
}

// The bound of blocks: no two spans of more than half a block lie in one. What may lie over another is left out
// of the section that they share.
static uint64_t tli_layout_bound_blocks(tli_layout *l) {
    const tl_layout_buffer *buffers = l->desc->buffers;
    uint64_t block = l->desc->block_bytes, count = 0, most = 0, least = UINT64_MAX;
    tli_layout_span span;
    int32_t i, k, s;
    tli_zero(l->live, ((size_t)l->section_count + 1) * sizeof *l->live);
    for (i = 0; i < l->desc->buffer_count; i++)
        for (k = 0; k < tli_layout_count_spans(&buffers[i]); k++) {
            if (!tli_layout_find_span(&buffers[i], k, &span) || span.bytes <= block - span.bytes) continue;
            if (span.bytes < least) least = span.bytes;
            s = tli_layout_first(l, span.first) + (buffers[i].in_place != 0);
            if (s > tli_layout_last(l, span.last)) continue;
            l->live[s]++;
            l->live[tli_layout_last(l, span.last) + 1]--;
        }
    for (s = 0; s < l->section_count; s++) {
        count += l->live[s];
        if (count > most) most = count;
    }
    return most ? (most - 1) * block + least : 0;
}

// The bound of every choice: the largest sum of bytes in a section. Of the box on top the true bytes count, so
// a section takes less than its rounded bytes by the most that rounding added to one of them.
static void tli_layout_find_bound(tli_layout *l) {
    const tl_layout_buffer *buffers = l->desc->buffers;
    uint64_t sum = 0, most = 0, slack = 0;
    int32_t i, s;
    tli_zero(l->live, ((size_t)l->section_count + 1) * sizeof *l->live);
    for (i = 0; i < l->desc->buffer_count; i++) {
        slack = tli_larger_u64(slack, tli_layout_rounded(l, buffers[i].bytes) - buffers[i].bytes);
        tli_layout_add_live(l, &buffers[i]);
    }
    for (s = 0; s < l->section_count; s++) {
        sum += l->live[s];
        if (sum > most) most = sum;
    }
    l->bound = most > slack ? most - slack : 0;
    for (i = 0; i < l->desc->buffer_count; i++) {
        if (!tli_layout_takes(&buffers[i])) continue;
        l->has_pins |= buffers[i].is_pinned != 0;
        most = buffers[i].bytes + (buffers[i].is_pinned ? buffers[i].pinned_offset : 0);
        l->bound = tli_larger_u64(l->bound, most);
    }
    if (l->desc->block_bytes) l->bound = tli_larger_u64(l->bound, tli_layout_bound_blocks(l));
    tli_release(l->env, l->live);
    l->live = NULL;
}

// List the pieces of a box with gaps.
static void tli_layout_make_pieces(tli_layout *l, const tl_layout_buffer *buffer, tli_fit_box *box) {
    tli_layout_span span;
    int32_t k;
    box->pieces = l->piece_count + 1;
    for (k = 0; k < tli_layout_count_spans(buffer); k++) {
        tli_fit_piece *piece = &l->pieces[l->piece_count];
        if (!tli_layout_find_span(buffer, k, &span)) continue;
        piece->first = tli_layout_first(l, span.first);
        piece->last = tli_layout_last(l, span.last);
        piece->from = span.from & ~(l->unit - 1);
        piece->end = tli_align_up(span.from + span.bytes, l->unit);
        if (++l->piece_count == box->pieces) box->first = piece->first;
        box->last = piece->last;
    }
    for (k = box->pieces - 1; k < l->piece_count; k++) l->pieces[k].count = l->piece_count - k;
}

// Make the boxes of a choice. 0 = two pins of one box differ, or one is where the box cannot lie.
static int tli_layout_make_boxes(tli_layout *l) {
    const tl_layout_buffer *buffers = l->desc->buffers;
    int32_t i;
    l->box_count = l->piece_count = 0;
    for (i = 0; i < l->desc->buffer_count; i++) l->box_of[i] = -1;
    for (i = 0; i < l->desc->buffer_count; i++) {
        int32_t at = i, end = i, box, other;
        if (l->box_of[i] >= 0 || !tli_layout_takes(&buffers[i])) continue;
        while (l->is_merged[at] && l->box_of[buffers[at].over] < 0) at = buffers[at].over;
        box = l->is_merged[at] ? l->box_of[buffers[at].over] : l->box_count;
        if (box == l->box_count) {
            tli_zero(&l->boxes[l->box_count++], sizeof *l->boxes);
            l->boxes[box].pin = UINT64_MAX;
            l->boxes[box].alignment_bits = (uint8_t)tli_log2_u64(l->unit);
            l->boxes[box].first = tli_layout_first(l, buffers[at].first_step);
        }
        for (other = end;; other = buffers[other].over) {
            const tl_layout_buffer *b = &buffers[other];
            tli_fit_box *to = &l->boxes[box];
            l->box_of[other] = box;
            to->length += tli_layout_time(b->last_step) - tli_layout_time(b->first_step) + 1;
            if (b->bytes > to->bytes) to->bytes = b->bytes;
            if (tli_layout_alignment(b) >> to->alignment_bits)
                to->alignment_bits = (uint8_t)tli_log2_u64(tli_layout_alignment(b));
            if (tli_layout_last(l, b->last_step) > to->last) to->last = tli_layout_last(l, b->last_step);
            if (b->gap_count) tli_layout_make_pieces(l, b, to);
            if (b->is_pinned && to->pin != UINT64_MAX && to->pin != b->pinned_offset) return 0;
            if (b->is_pinned) to->pin = b->pinned_offset;
            if (other == at) break;
        }
        if (l->boxes[box].pin != UINT64_MAX &&
            (l->boxes[box].pin != tli_fit_align(&l->boxes[box], l->boxes[box].pin) ||
             tli_is_split(l->boxes[box].pin, l->boxes[box].bytes, l->desc->block_bytes))) return 0;
    }
    return 1;
}

// Where a buffer that takes no bytes lies: at its pin, or at 0.
static uint64_t tli_layout_pin_of(const tl_layout_buffer *b) { return b->is_pinned ? b->pinned_offset : 0; }

// Keep the layout of the boxes if it is the lowest.
static void tli_layout_keep(tli_layout *l, const uint64_t *offsets) {
    uint64_t height = 0;
    int32_t i;
    for (i = 0; i < l->desc->buffer_count; i++) {
        uint64_t bytes = l->desc->buffers[i].bytes;
        if (l->box_of[i] >= 0 && offsets[l->box_of[i]] + bytes > height) height = offsets[l->box_of[i]] + bytes;
    }
    if (height >= l->height) return;
    l->height = height;
    for (i = 0; i < l->desc->buffer_count; i++)
        l->best[i] = l->box_of[i] < 0 ? tli_layout_pin_of(&l->desc->buffers[i]) : offsets[l->box_of[i]];
}

#ifndef TL_NO_PLANNERS
// A part of time of which no box spans an end: boxes from..to-1 of by_first.
typedef struct tli_layout_part {
    int32_t  from, to, first, last;     // and its sections
    uint64_t height;
} tli_layout_part;

// Find the part that begins with a box.
static tli_layout_part tli_layout_find_part(const tli_fit *fit, int32_t from) {
    tli_layout_part part;
    int32_t to;
    tli_zero(&part, sizeof part);
    part.from = from;
    part.first = fit->boxes[fit->by_first[from]].first;
    part.last = -1;
    for (to = from; to < fit->count; to++) {
        const tli_fit_box *box = &fit->boxes[fit->by_first[to]];
        uint64_t end = fit->best[fit->by_first[to]] + box->bytes;
        if (to > from && box->first > part.last) break;
        if (box->last > part.last) part.last = box->last;
        if (end > part.height) part.height = end;
    }
    part.to = to;
    return part;
}

// Search a part. *goal: no layout of all boxes is lower; it is raised to the bound of the part. *is_searched is
// set to 1, unless too many boxes of the part meet.
static tl_result tli_layout_search_part(tli_layout *l, tli_fit *fit, const tli_layout_part *part,
                                        uint64_t work_limit, uint64_t *goal, int32_t *is_searched) {
    tli_pack p;
    uint64_t bound = 0;
    tl_result result = TL_OK;
    int32_t i;
    if (tli_pack_init(&p, fit, fit->by_first + part->from, part->to - part->from, part->first, part->last)) {
        p.desc = l->desc;
        p.now.work = l->work;
        p.now.work_limit = l->work_limit;
        p.now.height_bytes = l->height;
        p.now.bound_bytes = l->bound;
        tli_pack_lower(&p, *goal, l->desc->capacity_bytes, work_limit, &bound);
        for (i = 0; i < p.count; i++) fit->best[p.ids[i]] = p.best[i];
        *is_searched = 1;
    }
    l->work += p.work;
    l->stopped = p.stopped;
    if (p.failed) result = TL_ERROR_NO_MEMORY;
    if (bound > *goal) *goal = bound;
    tli_pack_free(&p);
    return result;
}

// Whether more than one part may be lowered.
static int tli_layout_has_parts(const tli_fit *fit, uint64_t goal) {
    int32_t from, count = 0;
    for (from = 0; from < fit->count && count < 2;) {
        tli_layout_part part = tli_layout_find_part(fit, from);
        from = part.to;
        count += part.height > goal;
    }
    return count > 1;
}

// Search the parts that are higher than the bound, each with more work in every round; a single one with all of
// it. *goal is raised to what is proven.
static tl_result tli_layout_search(tli_layout *l, tli_fit *fit, uint64_t work_limit, uint64_t *goal) {
    uint64_t end = l->work + work_limit, share = TLI_LAYOUT_SHARE;
    tl_result result = TL_OK;
    int32_t from, more = 1;
    for (; more && !result && l->work < end && !l->stopped; share *= 4) {
        if (!tli_layout_has_parts(fit, *goal)) share = work_limit;
        for (from = more = 0; from < fit->count && !result && l->work < end && !l->stopped;) {
            tli_layout_part part = tli_layout_find_part(fit, from);
            from = part.to;
            if (part.height <= *goal || part.to - part.from > TLI_PACK_MOST) continue;
            result = tli_layout_search_part(l, fit, &part, end - l->work < share ? end - l->work : share, goal,
                                            &more);
        }
    }
    return result;
}
#endif

// Place the boxes of a choice: sweeps, passes, then the search. *bound: no layout of this choice is lower.
static tl_result tli_layout_run(tli_layout *l, uint64_t work_limit, uint64_t *bound) {
    tli_fit fit;
    int32_t order, last = l->has_pins || l->has_gaps ? TLI_FIT_START : TLI_FIT_LENGTH;
    tl_result result = TL_OK;
    tli_zero(&fit, sizeof fit);
    fit.env = l->env;
    fit.boxes = l->boxes;
    fit.pieces = l->pieces;
    fit.count = l->box_count;
    fit.unit = l->unit;
    fit.block = l->desc->block_bytes;
    fit.work_limit = work_limit;
    *bound = l->bound;
    if (!tli_fit_init(&fit)) result = TL_ERROR_NO_MEMORY;
    if (!result && !l->has_pins && !l->has_gaps) {
        tli_fit_sweep(&fit, *bound);
        if (fit.failed) result = TL_ERROR_NO_MEMORY;
        else tli_layout_keep(l, fit.best);
    }
    for (order = 0; order <= last && !result; order++) {
        if (fit.best_height <= *bound || (fit.best_height != UINT64_MAX && fit.work >= work_limit)) break;
        tli_fit_run(&fit, order);
        if (fit.failed) result = TL_ERROR_NO_MEMORY;
        if (fit.failed || fit.pins_overlap) break;
        tli_layout_keep(l, fit.best);
    }
    l->work += fit.work;
#ifndef TL_NO_PLANNERS
    if (!result && !fit.pins_overlap && l->height > l->bound && fit.work < work_limit) {
        result = tli_layout_search(l, &fit, work_limit - fit.work, bound);
        if (!result) tli_layout_keep(l, fit.best);
    }
#endif
    tli_fit_free(&fit);
    return result;
}

// Whether each box is as high as all of its buffers and there are no windows, so that the search tries every
// layout of the choice.
static int tli_layout_is_even(const tli_layout *l) {
    const tl_layout_buffer *buffers = l->desc->buffers;
    int32_t i;
    if (l->has_windows) return 0;
    for (i = 0; i < l->desc->buffer_count; i++)
        if (l->is_merged[i] && buffers[i].bytes != buffers[buffers[i].over].bytes) return 0;
    return 1;
}

// Try a choice of the buffers in place. *least is lowered to its bound.
static tl_result tli_layout_try(tli_layout *l, uint64_t work_limit, uint64_t *least) {
    uint64_t bound;
    tl_result result;
    if (!tli_layout_make_boxes(l)) return TL_OK;
    result = tli_layout_run(l, work_limit, &bound);
    if (!tli_layout_is_even(l)) bound = l->bound;
    if (bound < *least) *least = bound;
    return result;
}

// Try choices until one is as low as the bound. Where every choice was tried, the least of their bounds is one.
static tl_result tli_layout_try_all(tli_layout *l) {
    int32_t choice, choices = 1, i, k;
    uint64_t least = UINT64_MAX;
    tl_result result = TL_OK;
    if (l->in_place_count) choices = l->in_place_count <= TLI_LAYOUT_FEW ? 1 << l->in_place_count : 2;
    for (choice = 0; choice < choices && !result && l->height > l->bound; choice++) {
        uint64_t left = l->work_limit > l->work ? l->work_limit - l->work : 1;
        if (choice && (l->stopped || l->work >= l->work_limit) && l->height != UINT64_MAX) break;
        for (i = k = 0; i < l->desc->buffer_count; i++) {
            l->is_merged[i] = 0;
            if (!l->desc->buffers[i].in_place) continue;
            l->is_merged[i] = choices == 2 ? !choice : !(choice >> k & 1);
            k++;
        }
        result = tli_layout_try(l, left / (uint64_t)(choices - choice), &least);
    }
    if (!result && choice == choices && l->in_place_count <= TLI_LAYOUT_FEW && least > l->bound)
        l->bound = least;
    return result;
}

// Find the bound, and the lowest layout that the work limit allows.
static tl_result tli_layout_lower(tli_layout *l) {
    tl_result result;
    l->work_limit = l->work + (l->desc->work_limit ? l->desc->work_limit : TLI_LAYOUT_WORK);
    result = tli_layout_alloc_sections(l);
    if (!result) {
        tli_layout_divide(l);
        tli_layout_find_bound(l);
        result = tli_layout_try_all(l);
    }
    tli_release(l->env, l->times);
    tli_release(l->env, l->live);
    l->times = l->live = NULL;
    return result;
}

// Put buffers that take no byte at any step at their pins or at 0; the height is that of the others.
static void tli_layout_drop_empty(tli_layout *l) {
    int32_t i;
    l->height = 0;
    for (i = 0; i < l->desc->buffer_count; i++) {
        const tl_layout_buffer *b = &l->desc->buffers[i];
        if (tli_layout_takes(b)) l->height = tli_larger_u64(l->height, l->best[i] + b->bytes);
        else l->best[i] = tli_layout_pin_of(b);
    }
}

// The same as if no buffer had gaps, and keep the lower layout: with gaps there is more to try, and there are
// fewer passes, so it may end higher. Nothing is tried where even the bound of buffers without gaps is no lower
// than what was found.
static tl_result tli_layout_lower_plain(tli_layout *l) {
    const tl_layout_desc *desc = l->desc;
    uint64_t count = (uint64_t)desc->buffer_count, bound = l->bound;
    tl_layout_desc plain = *desc;
    tl_layout_buffer *buffers = (tl_layout_buffer *)tli_alloc_array(l->env, count, sizeof *buffers);
    tl_result result;
    int32_t i;
    if (!buffers) return TL_ERROR_NO_MEMORY;
    for (i = 0; i < desc->buffer_count; i++) {
        buffers[i] = desc->buffers[i];
        buffers[i].gap_count = 0;
    }
    plain.buffers = buffers;
    l->desc = &plain;
    l->has_gaps = l->has_windows = l->is_ragged = 0;
    l->span_count = desc->buffer_count;
    result = tli_layout_lower(l);
    l->desc = desc;
    l->bound = bound;
    tli_release(l->env, buffers);
    if (l->height != UINT64_MAX) tli_layout_drop_empty(l);
    return result;
}

// -- layout: the entry --

static tl_result tli_layout_fail(const tli_layout *l, tl_result code, tli_rule rule, int32_t buffer) {
    return tli_fail_values(l->env, code, l->function, rule, (uint64_t)buffer, 0);
}

static tl_result tli_check_layout_gaps(const tli_layout *l, int32_t i) {
    const tl_layout_buffer *b = &l->desc->buffers[i];
    int32_t k;
    uint64_t end;
    if (b->gap_count < 0 || (b->gap_count && !b->gaps))
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_GAP_COUNT_MUST_BE_AT_LEAST_0), i);
    for (k = 0; k < b->gap_count; k++) {
        const tl_layout_gap *gap = &b->gaps[k];
        if (gap->first_step > gap->last_step || gap->last_step > b->last_step ||
            (k ? gap->first_step <= gap[-1].last_step : gap->first_step < b->first_step))
            return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_GAPS_ARE_OUT_OF_ORDER), i);
        if (!tli_add_u64(gap->first_byte, gap->bytes, &end) || end > b->bytes)
            return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_GAP_IS_NO_PART), i);
    }
    return TL_OK;
}

// A buffer that takes no bytes lies in no block.
static tl_result tli_check_layout_block(const tli_layout *l, int32_t i) {
    const tl_layout_buffer *b = &l->desc->buffers[i];
    if (!l->desc->block_bytes || !b->bytes) return TL_OK;
    if (l->desc->block_bytes & (tli_layout_alignment(b) - 1))
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_ALIGNMENT_IS_NOT_THAT_OF_BLOCKS), i);
    if (b->bytes > l->desc->block_bytes)
        return tli_fail_values(l->env, TL_ERROR_INFEASIBLE, l->function, TLI_RULE(BUFFER_FITS_NO_BLOCK),
                               (uint64_t)i, b->bytes);
    if (b->is_pinned && tli_is_split(b->pinned_offset, b->bytes, l->desc->block_bytes))
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_PIN_IS_IN_TWO_BLOCKS), i);
    return TL_OK;
}

static tl_result tli_check_layout_buffer(const tli_layout *l, int32_t i) {
    const tl_layout_buffer *b = &l->desc->buffers[i];
    tl_result result;
    uint64_t end;
    if (b->first_step > b->last_step)
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_LIFETIME_IS_REVERSED), i);
    if (b->alignment & (b->alignment - 1))
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_ALIGNMENT_IS_NO_POWER), i);
    if (b->is_pinned) {
        if (b->pinned_offset & (tli_layout_alignment(b) - 1))
            return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_PIN_IS_NOT_ALIGNED), i);
        if (!tli_add_u64(b->pinned_offset, b->bytes, &end) || end >> 61 ||
            (l->desc->capacity_bytes && end > l->desc->capacity_bytes))
            return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_PIN_DOES_NOT_FIT), i);
    }
    result = tli_check_layout_block(l, i);
    return result ? result : tli_check_layout_gaps(l, i);
}

static tl_result tli_check_layout_over(const tli_layout *l, int32_t i) {
    const tl_layout_buffer *b = &l->desc->buffers[i], *over;
    if (!b->in_place) return TL_OK;
    if (!tli_is_below(b->over, l->desc->buffer_count) || b->over == i)
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_OVER_NAMES_NONE), i);
    over = &l->desc->buffers[b->over];
    if (!b->bytes || !over->bytes || over->last_step != b->first_step || over->first_step >= b->first_step)
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_OVER_ENDS_AT_ANOTHER_STEP), i);
    if (b->gap_count || over->gap_count)
        return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_OVER_HAS_GAPS), i);
    return TL_OK;
}

// Count the spans; set has_gaps, has_windows and is_ragged. The unit must be known.
static tl_result tli_layout_read_gaps(tli_layout *l) {
    int64_t spans = 0;
    int32_t i, k;
    for (i = 0; i < l->desc->buffer_count; i++) {
        const tl_layout_buffer *b = &l->desc->buffers[i];
        if (b->gap_count > (INT32_MAX - 1) / 2) return TL_ERROR_NO_MEMORY;
        spans += tli_layout_count_spans(b);
        l->has_gaps |= b->gap_count > 0;
        for (k = 0; k < b->gap_count; k++) {
            l->has_windows |= b->gaps[k].bytes > 0;
            l->is_ragged |= ((b->gaps[k].first_byte | b->gaps[k].bytes) & (l->unit - 1)) != 0;
        }
    }
    l->span_count = (int32_t)spans;
    return spans < INT32_MAX ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Check all buffers; sets the unit and the number of buffers in place. No two may lie over the same one.
static tl_result tli_check_layout(tli_layout *l) {
    const tl_layout_desc *desc = l->desc;
    uint64_t sum = 0, rounded, most = 1;
    int32_t i;
    for (i = 0; i < desc->buffer_count; i++) {
        tl_result result = tli_check_layout_buffer(l, i);
        if (!result) result = tli_check_layout_over(l, i);
        if (result) return result;
        if (tli_layout_alignment(&desc->buffers[i]) > most) most = tli_layout_alignment(&desc->buffers[i]);
        if (desc->buffers[i].bytes && (!l->unit || tli_layout_alignment(&desc->buffers[i]) < l->unit))
            l->unit = tli_layout_alignment(&desc->buffers[i]);
        if (!desc->buffers[i].in_place) continue;
        if (l->is_merged[desc->buffers[i].over]++)
            return tli_layout_fail(l, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_OVER_IS_TAKEN), i);
        l->in_place_count++;
    }
    if (!l->unit) l->unit = 1;
    for (i = 0; i < desc->buffer_count; i++)
        if (most >> 61 || desc->buffers[i].bytes >> 61 ||
            !tli_add_u64(sum, (rounded = tli_align_up(desc->buffers[i].bytes, most)), &sum) || sum >> 61)
            return tli_layout_fail(l, TL_ERROR_OVERFLOW, TLI_RULE(BUFFERS_DO_NOT_FIT_61_BITS), i);
    (void)rounded;
    return tli_layout_read_gaps(l);
}

static tl_result tli_layout_answer(tl_env *env, tli_layout *l, tl_layout_plan *plan) {
    if (l->height == UINT64_MAX)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_LAYOUT), TLI_RULE(BUFFER_PINS_OVERLAP));
    plan->height_bytes = l->height;
    plan->bound_bytes = l->bound;
    plan->proven = plan->height_bytes <= plan->bound_bytes;
    plan->work = l->work;
    if (l->desc->capacity_bytes && plan->height_bytes > l->desc->capacity_bytes)
        return tli_fail_values(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_LAYOUT),
                               plan->bound_bytes > l->desc->capacity_bytes ? TLI_RULE(BUFFERS_FIT_NO_LAYOUT)
                                                                           : TLI_RULE(NO_LAYOUT_WAS_FOUND),
                               plan->height_bytes, plan->bound_bytes);
    plan->offsets = l->best;
    plan->buffer_count = l->desc->buffer_count;
    l->best = NULL;
    return TL_OK;
}

TLI_IMPL tl_result tl_plan_layout(tl_env *env, const tl_layout_desc *desc, tl_layout_plan *plan) {
    tli_layout l;
    tl_result result;
    TL_ASSERT(desc && plan);
    tli_zero(plan, sizeof *plan);
    tli_zero(&l, sizeof l);
    l.env = env;
    l.function = TLI_IN(PLAN_LAYOUT);
    l.desc = desc;
    l.height = UINT64_MAX;
    if (desc->buffer_count < 0 || (desc->buffer_count && !desc->buffers))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_LAYOUT),
                        TLI_RULE(BUFFER_COUNT_MUST_BE_AT_LEAST_0));
    result = tli_layout_alloc(&l);
    if (!result) result = tli_check_layout(&l);
    if (!result) result = tli_layout_lower(&l);
    if (!result && l.has_gaps && l.height > l.bound && !l.stopped) result = tli_layout_lower_plain(&l);
    if (!result) result = tli_layout_answer(env, &l, plan);
    if (result == TL_ERROR_NO_MEMORY)
        result = tli_fail(env, result, TLI_IN(PLAN_LAYOUT), TLI_RULE(NO_MEMORY_FOR_LAYOUT));
    tli_layout_free(&l);
    return result;
}

TLI_IMPL void tl_free_layout_plan(tl_env *env, tl_layout_plan *plan) {
    TL_ASSERT(plan);
    tli_release(env, plan->offsets);
    tli_zero(plan, sizeof *plan);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
