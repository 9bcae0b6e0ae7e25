#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- chain: curves --
//
// The curve of a segment is the minimum over the ways to reverse it, each a sum of curves of shorter segments.
// All are found from short to long, exactly where that is affordable, else with shortened curves; the plan is
// read off them from the whole graph down.

// One way to reverse a segment: curve a with `shift` more bytes, then curve b (NULL = none).
typedef struct tli_chain_way {
    const tli_chain_curve *a, *b;
    uint64_t shift, least, cost;    // least: bytes that the calls before and after the curves take
} tli_chain_way;

static tli_chain_curve *tli_chain_curve_of(const tli_chain *chain, int32_t first, int32_t last) {
    return &chain->curves[(int64_t)first * chain->stage_count + last];
}

static uint64_t *tli_chain_least_of(const tli_chain *chain, int32_t first, int32_t last) {
    return &chain->least[(int64_t)first * chain->stage_count + last];
}

static int tli_chain_is_planned(const tli_chain *chain, int32_t first, int32_t last) {
    return last - first < chain->grid[last];
}

// The step of a curve at so many bytes; -1 = they are too few.
static int32_t tli_chain_find_step(const tli_chain_curve *curve, uint64_t bytes) {
    int32_t low = -1, high = curve->count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (curve->points[middle].bytes <= bytes) low = middle; else high = middle;
    }
    return low;
}

static uint64_t tli_chain_cost_at(const tli_chain_curve *curve, uint64_t bytes) {
    int32_t step = tli_chain_find_step(curve, bytes);
    return step < 0 ? UINT64_MAX : curve->points[step].cost;
}

// The way of a segment that `split` stands for: first = save, else advance to that stage. To be called with
// ascending splits; *advanced and *peak carry the sum and the peak of the advance. Returns 0 if a part of the
// way is not planned, or may not run again.
static int tli_chain_next_way(const tli_chain *chain, int32_t first, int32_t last, int32_t split,
                              uint64_t *advanced, uint64_t *peak, tli_chain_way *way) {
    const tli_chain_stage *s = &chain->stages[first], *t = &chain->stages[last];
    way->b = NULL;
    if (split == first) {
        uint64_t forward = s->save_bytes + t->held_bytes;
        *advanced = *peak = 0;
        way->a = tli_chain_curve_of(chain, first + 1, last);
        way->shift = s->kept_bytes;
        way->least = forward > s->back_bytes ? forward : s->back_bytes;
        way->cost = s->save_cost + s->back_cost;
        return tli_chain_is_planned(chain, first + 1, last);
    }
    s = &chain->stages[split - 1];
    *advanced += s->advance_cost;
    if (split - 1 == first) *peak = s->stay_bytes;
    else if (s->go_bytes > *peak) *peak = s->go_bytes;
    if (s->once) *peak = UINT64_MAX;
    way->a = tli_chain_curve_of(chain, split, last);
    way->b = tli_chain_curve_of(chain, first, split - 1);
    way->shift = chain->stages[split].in_bytes;
    way->least = *peak == UINT64_MAX ? *peak : *peak + t->held_bytes;
    way->cost = *advanced;
    if (*peak == UINT64_MAX) return 0;
    return tli_chain_is_planned(chain, first, split - 1) && tli_chain_is_planned(chain, split, last);
}

// A walk along the sum of two curves.
typedef struct tli_chain_walk {
    const tli_chain_point *a, *a_end, *b, *b_end;  // the current steps; b NULL = none
    uint64_t shift, bytes, cost;
} tli_chain_walk;

static int tli_chain_begin_walk(const tli_chain_way *way, tli_chain_walk *walk) {
    if (!way->a->count || (way->b && !way->b->count)) return 0;
    walk->shift = way->shift;
    walk->bytes = way->least;
    if (way->a->points[0].bytes + way->shift > walk->bytes) walk->bytes = way->a->points[0].bytes + way->shift;
    if (way->b && way->b->points[0].bytes > walk->bytes) walk->bytes = way->b->points[0].bytes;
    walk->a = way->a->points + tli_chain_find_step(way->a, walk->bytes - way->shift);
    walk->a_end = way->a->points + way->a->count;
    walk->b = walk->b_end = NULL;
    if (way->b) {
        walk->b = way->b->points + tli_chain_find_step(way->b, walk->bytes);
        walk->b_end = way->b->points + way->b->count;
    }
    walk->cost = way->cost;
    return 1;
}

static uint64_t tli_chain_walk_cost(const tli_chain_walk *walk) {
    return walk->cost + walk->a->cost + (walk->b ? walk->b->cost : 0);
}

// Go on to the next step of either curve; 0 = there is none.
static int tli_chain_walk_on(tli_chain_walk *walk) {
    uint64_t a = walk->a + 1 < walk->a_end ? walk->a[1].bytes + walk->shift : UINT64_MAX;
    uint64_t b = walk->b && walk->b + 1 < walk->b_end ? walk->b[1].bytes : UINT64_MAX;
    walk->bytes = a < b ? a : b;
    if (walk->bytes == UINT64_MAX) return 0;
    if (a == walk->bytes) walk->a++;
    if (b == walk->bytes) walk->b++;
    return 1;
}

static int tli_chain_reserve(tli_chain *chain, tli_chain_list *list, int64_t count) {
    void *points = list->points;
    if (chain->failed ||
        !tli_grow(chain->env, &points, &list->capacity, list->count, count, sizeof *list->points)) {
        chain->failed = 1;
        return 0;
    }
    list->points = (tli_chain_point *)points;
    return 1;
}

static void tli_chain_put_point(tli_chain_list *list, uint64_t bytes, uint64_t cost) {
    if (list->count) {
        tli_chain_point *last = &list->points[list->count - 1];
        if (last->cost <= cost) return;
        if (last->bytes == bytes) { last->cost = cost; return; }
    }
    list->points[list->count].bytes = bytes;
    list->points[list->count++].cost = cost;
}

// Walk to the first bytes at which the way costs less than the curve computed so far; 0 = nowhere.
static int tli_chain_finds_better(tli_chain *chain, const tli_chain_way *way, uint64_t limit,
                                  tli_chain_walk *walk) {
    const tli_chain_point *best, *end;
    tli_chain_curve curve;
    uint64_t least;
    int32_t step;
    if (!tli_chain_begin_walk(way, walk) || walk->bytes > limit) return 0;
    curve.points = chain->best.points;
    curve.count = chain->best.count;
    step = tli_chain_find_step(&curve, walk->bytes);
    if (step < 0) return 1;
    end = chain->best.points + chain->best.count;
    least = walk->cost + walk->a_end[-1].cost + (walk->b ? walk->b_end[-1].cost : 0);
    if (least >= end[-1].cost && least >= chain->best.points[step].cost) return 0;
    for (best = chain->best.points + step;;) {
        chain->work += 2;
        if (tli_chain_walk_cost(walk) < best->cost) return 1;
        if (best->cost <= least || !tli_chain_walk_on(walk) || walk->bytes > limit) return 0;
        while (best + 1 < end && best[1].bytes <= walk->bytes) best++;
    }
}

// Replace the curve computed so far (chain->best) by the minimum of it and the curve of a way.
static void tli_chain_add_way(tli_chain *chain, const tli_chain_way *way, uint64_t limit) {
    tli_chain_list swap;
    tli_chain_walk walk;
    int32_t at;
    int more = 1;
    uint64_t cost = UINT64_MAX;
    if (!tli_chain_finds_better(chain, way, limit, &walk)) return;
    if (!tli_chain_reserve(chain, &chain->next,
                           (int64_t)chain->best.count + way->a->count + (way->b ? way->b->count : 0)))
        return;
    for (at = 0; at < chain->best.count && chain->best.points[at].bytes < walk.bytes; at++)
        chain->next.points[at] = chain->best.points[at];
    chain->next.count = at;
    chain->work += (uint64_t)at / 2;
    while (more || at < chain->best.count) {
        uint64_t bytes = more ? walk.bytes : UINT64_MAX;
        chain->work += 3;
        if (at < chain->best.count && chain->best.points[at].bytes <= bytes) {
            tli_chain_put_point(&chain->next, chain->best.points[at].bytes, chain->best.points[at].cost);
            at++;
            continue;
        }
        cost = tli_chain_walk_cost(&walk);
        tli_chain_put_point(&chain->next, bytes, cost);
        more = tli_chain_walk_on(&walk) && walk.bytes <= limit;
    }
    swap = chain->best;
    chain->best = chain->next;
    chain->next = swap;
}

// Leave out steps as long as the area between the curve and what is left of it stays within `area` from one
// kept step to the next. The first and the last stay, so the least bytes and the least cost do. Returns how
// many steps stay; they are written to `kept` if it is not NULL.
static int32_t tli_chain_thin_within(const tli_chain_list *list, int32_t byte_shift, int32_t cost_shift,
                                     uint64_t area, tli_chain_point *kept) {
    const tli_chain_point *p = list->points;
    uint64_t sum = 0, high = p[0].cost;
    int32_t at, count = 0;
    for (at = 0; at < list->count; at++) {
        uint64_t wide = at + 1 < list->count ? (p[at + 1].bytes - p[at].bytes) >> byte_shift : 0;
        sum += ((high - p[at].cost) >> cost_shift) * wide;
        if (at && at + 1 < list->count && sum <= area) continue;
        if (kept) kept[count] = p[at];
        count++;
        sum = 0;
        high = p[at].cost;
    }
    return count;
}

// Leave out steps that matter little until `most` or fewer are left.
static void tli_chain_thin(tli_chain *chain, int32_t most) {
    tli_chain_list *list = &chain->best;
    const tli_chain_point *p = list->points;
    uint64_t low = 0, high;
    int32_t byte_shift = 0, cost_shift = 0, round;
    if (!most || list->count <= most) return;
    while ((p[list->count - 1].bytes - p[0].bytes) >> byte_shift >> 30) byte_shift++;
    while ((p[0].cost - p[list->count - 1].cost) >> cost_shift >> 30) cost_shift++;
    high = ((p[0].cost - p[list->count - 1].cost) >> cost_shift) *
           ((p[list->count - 1].bytes - p[0].bytes) >> byte_shift) / (uint64_t)most + 1;
    for (round = 0; round < 12 && high - low > high / 16; round++) {
        uint64_t middle = low ? low + (high - low) / 2 : high / 8;
        if (tli_chain_thin_within(list, byte_shift, cost_shift, middle, NULL) > most) low = middle;
        else high = middle;
        chain->work += (uint64_t)list->count;
    }
    list->count = tli_chain_thin_within(list, byte_shift, cost_shift, high, list->points);
}

// Leave out the steps that matter only for fewer bytes than `low`.
static void tli_chain_cut_below(tli_chain_list *list, uint64_t low) {
    int32_t at, first = 0;
    while (first + 1 < list->count && list->points[first + 1].bytes <= low) first++;
    for (at = first; at < list->count && first; at++) list->points[at - first] = list->points[at];
    list->count -= first;
}

// Copy the computed curve to where it stays.
static void tli_chain_keep_curve(tli_chain *chain, tli_chain_curve *curve) {
    int32_t i, count = chain->best.count;
    curve->count = 0;
    if (!count) return;
    if (chain->point_count > TLI_CHAIN_MOST_POINTS - count) { chain->over = 1; return; }
    if (chain->free_count < count) {
        int32_t points = count > TLI_CHAIN_BLOCK ? count : TLI_CHAIN_BLOCK;
        uint64_t items = (uint64_t)points + 1;  // the first one holds the link to the next block
        tli_chain_block *block = (tli_chain_block *)tli_alloc_array(chain->env, items, sizeof(tli_chain_point));
        if (!block) { chain->failed = 1; return; }
        block->next = chain->blocks;
        chain->blocks = block;
        chain->free_points = (tli_chain_point *)(void *)block + 1;
        chain->free_count = points;
    }
    for (i = 0; i < count; i++) chain->free_points[i] = chain->best.points[i];
    curve->points = chain->free_points;
    curve->count = count;
    chain->free_points += count;
    chain->free_count -= count;
    chain->point_count += count;
}

// Find an earlier segment of equal stages, whose curve is the same: its first stage, or -1.
static int tli_chain_find_twin(const tli_chain *chain, int32_t first, int32_t last, int32_t *twin_last) {
    if (last - first >= chain->same_count[first]) return -1;
    *twin_last = chain->same_from[first] + last - first;
    return tli_chain_is_planned(chain, chain->same_from[first], *twin_last) ? chain->same_from[first] : -1;
}

// Put the ways to run a leaf into the curve, which is empty, by ascending bytes.
static void tli_chain_put_leaves(tli_chain *chain, const tli_chain_stage *s, uint64_t limit) {
    uint64_t bytes = s->leaf_least, next;
    int32_t i;
    for (; bytes <= limit; bytes = next) {
        tli_chain_put_point(&chain->best, bytes, s->leaves[tli_chain_choose_leaf(s, bytes)].cost);
        for (i = 0, next = UINT64_MAX; i < s->leaf_count; i++)
            if (s->leaves[i].bytes > bytes && s->leaves[i].bytes < next) next = s->leaves[i].bytes;
        if (next == UINT64_MAX) return;
    }
}

static void tli_chain_find_curve(tli_chain *chain, int32_t first, int32_t last) {
    tli_chain_curve *curve = tli_chain_curve_of(chain, first, last);
    const tli_chain_stage *s = &chain->stages[first];
    uint64_t advanced = 0, peak = 0, limit;
    int32_t split, twin_last, twin = tli_chain_find_twin(chain, first, last, &twin_last);
    int is_final = chain->most_points && last == chain->stage_count - 1;
    tli_chain_way way;
    if (twin >= 0) { *curve = *tli_chain_curve_of(chain, twin, twin_last); return; }
    curve->count = chain->best.count = 0;
    if (s->in_bytes > chain->budget) return;
    limit = chain->budget - s->in_bytes;
    if (is_final && limit > chain->high[first]) limit = chain->high[first];
    if (first == last) {
        if (s->leaf_least > limit || !tli_chain_reserve(chain, &chain->best, s->leaf_count)) return;
        tli_chain_put_leaves(chain, s, limit);
    }
    for (split = first; split <= last && first < last; split++) {
        int exists = tli_chain_next_way(chain, first, last, split, &advanced, &peak, &way);
        if (split > first && way.least > limit) break;
        chain->work += exists ? 12 : 2;
        if (exists) tli_chain_add_way(chain, &way, limit);
    }
    if (is_final) tli_chain_cut_below(&chain->best, chain->low[first]);
    tli_chain_thin(chain, is_final ? chain->most_final : chain->most_points);
    tli_chain_keep_curve(chain, curve);
}

// Whether the curves up to a stage foretell that all of them take more than twice the work limit. The work of a
// stage rises with its number, if the stages before it are not much harder than the others.
static int tli_chain_is_hopeless(const tli_chain *chain, uint64_t start, int32_t last, int32_t end) {
    uint64_t done = (uint64_t)last + 1, count = (uint64_t)end;
    if (16 * done < count || chain->work_limit == UINT64_MAX) return 0;
    return (chain->work - start) / done > 2 * (chain->work_limit - start) / count;
}

// Compute the curves of all planned segments that end before stage `end`, shorter ones first: the longer ones
// are made from them.
static void tli_chain_find_curves(tli_chain *chain, int32_t end) {
    uint64_t start = chain->work;
    int32_t first, last;
    for (last = 0; last < end && !chain->over; last++) {
        for (first = last; first >= 0 && tli_chain_is_planned(chain, first, last); first--) {
            tli_chain_find_curve(chain, first, last);
            if (chain->work > chain->work_limit || tli_chain_stops(chain)) chain->over = 1;
            if (chain->failed || chain->over) return;
        }
        if (tli_chain_is_hopeless(chain, start, last, end)) chain->over = 1;
    }
}

// Find the least bytes of every planned segment: the minimum, over the same ways, of the largest part of each.
// Returns those of the whole chain; UINT64_MAX = that takes more than the work limit.
static uint64_t tli_chain_find_least(tli_chain *chain) {
    int32_t first, last, split;
    for (last = 0; last < chain->stage_count; last++) {
        if (chain->work > chain->work_limit || tli_chain_stops(chain)) return UINT64_MAX;
        for (first = last; first >= 0 && tli_chain_is_planned(chain, first, last); first--) {
            uint64_t least = first == last ? chain->stages[first].leaf_least : UINT64_MAX;
            uint64_t advanced = 0, peak = 0;
            tli_chain_way way;
            for (split = first; split <= last && first < last; split++) {
                uint64_t bytes, part;
                chain->work += 2;
                if (!tli_chain_next_way(chain, first, last, split, &advanced, &peak, &way)) continue;
                bytes = way.least;
                part = *tli_chain_least_of(chain, split == first ? first + 1 : split, last) + way.shift;
                if (part > bytes) bytes = part;
                if (way.b) part = *tli_chain_least_of(chain, first, split - 1);
                if (part > bytes) bytes = part;
                if (bytes < least) least = bytes;
            }
            *tli_chain_least_of(chain, first, last) = least;
        }
    }
    return *tli_chain_least_of(chain, 0, chain->stage_count - 1);
}

// -- chain: steps --

// A segment still to be reversed; last -1: run the backwards of stage `first`; -2: drop its input.
typedef struct tli_chain_job { int32_t first, last; uint64_t bytes; } tli_chain_job;

// The split of the cheapest way to reverse a segment within so many bytes; first = save; -1 = leaf.
static int32_t tli_chain_choose(const tli_chain *chain, int32_t first, int32_t last, uint64_t bytes) {
    uint64_t advanced = 0, peak = 0, best = UINT64_MAX;
    int32_t split, chosen = -1;
    tli_chain_way way;
    for (split = first; split <= last && first < last; split++) {
        uint64_t a, b = 0;
        if (!tli_chain_next_way(chain, first, last, split, &advanced, &peak, &way)) continue;
        if (way.least > bytes || way.shift > bytes) continue;
        a = tli_chain_cost_at(way.a, bytes - way.shift);
        if (way.b) b = tli_chain_cost_at(way.b, bytes);
        if (a == UINT64_MAX || b == UINT64_MAX || way.cost + a + b >= best) continue;
        best = way.cost + a + b;
        chosen = split;
    }
    return chosen;
}

static void tli_chain_drop_input(const tli_chain *chain, int32_t stage, tli_steps *steps) {
    const tl_node *node = &chain->graph->nodes[chain->stages[stage].first - 1];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (chain->kinds[i] & TLI_CHAIN_OUT) tli_add_tensor_step(steps, chain->graph, TL_STEP_DROP, i);
}

static void tli_chain_push_job(tli_chain_job *jobs, int32_t *count, int32_t first, int32_t last,
                               uint64_t bytes) {
    jobs[*count].first = first;
    jobs[*count].last = last;
    jobs[(*count)++].bytes = bytes;
}

// Write the steps that reverse all stages; segments still to be reversed stand on a stack.
static tl_result tli_chain_add_steps(tli_chain *chain, tli_steps *steps) {
    uint64_t most = 3 * (uint64_t)chain->stage_count + 3;
    tli_chain_job *jobs = (tli_chain_job *)tli_alloc_array(chain->env, most, sizeof *jobs);
    int32_t count = 0, split, i;
    if (!jobs) return TL_ERROR_NO_MEMORY;
    tli_chain_push_job(jobs, &count, 0, chain->stage_count - 1, chain->budget);
    while (count) {
        tli_chain_job job = jobs[--count];
        if (job.last == -1) { tli_chain_run(chain, job.first, TLI_CHAIN_RUN_BACK, 0, steps); continue; }
        if (job.last == -2) { tli_chain_drop_input(chain, job.first, steps); continue; }
        split = tli_chain_choose(chain, job.first, job.last, job.bytes);
        if (split < 0) {
            split = tli_chain_choose_leaf(&chain->stages[job.first], job.bytes);
            tli_chain_run_leaf(chain, job.first, split, steps);
        } else if (split == job.first) {
            tli_chain_run(chain, job.first, TLI_CHAIN_RUN_SAVE, 0, steps);
            tli_chain_push_job(jobs, &count, job.first, -1, 0);
            tli_chain_push_job(jobs, &count, job.first + 1, job.last,
                               job.bytes - chain->stages[split].kept_bytes);
        } else {
            for (i = job.first; i < split; i++)
                tli_chain_run(chain, i, TLI_CHAIN_RUN_ADVANCE, i > job.first, steps);
            tli_chain_push_job(jobs, &count, job.first, split - 1, job.bytes);
            tli_chain_push_job(jobs, &count, split, -2, 0);
            tli_chain_push_job(jobs, &count, split, job.last, job.bytes - chain->stages[split].in_bytes);
        }
    }
    tli_release(chain->env, jobs);
    return steps->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// -- chain: from graph to plan --

static void tli_chain_forget_curves(tli_chain *chain) {
    tli_chain_free_blocks(chain);
    tli_zero(chain->curves, (size_t)chain->stage_count * (size_t)chain->stage_count * sizeof *chain->curves);
    chain->point_count = 0;
    chain->free_count = chain->over = 0;
}

// Choose which segments are planned. width 0: all. Else segments of up to `width` stages may end anywhere,
// those of up to twice as many at every second stage, and so on; of two neighbouring ends, the one with fewer
// output bytes is taken.
static void tli_chain_set_grid(tli_chain *chain, int32_t width) {
    int32_t i, last, other, length = width ? width : chain->stage_count, most;
    for (i = 0; i < chain->stage_count; i++) chain->grid[i] = length;
    for (; length < chain->stage_count; length = most) {
        most = length > chain->stage_count / 2 ? chain->stage_count : 2 * length;
        for (i = chain->stage_count - 2, last = -1; i >= 0; i--) {
            if (chain->grid[i] < length) continue;
            if (last < 0) { last = i; continue; }
            other = chain->stages[i + 1].in_bytes < chain->stages[last + 1].in_bytes ? i : last;
            chain->grid[other] = most;
            last = -1;
        }
        chain->grid[chain->stage_count - 1] = most;
    }
}

// A long chain keeps many checkpoints on the way to its last stage, and the errors of shortened curves add up
// along it. So the curves of segments that end with the last stage are computed again, with more steps in a
// smaller and smaller range: near the bytes that the best schedule so far leaves at each stage.

// Set low and high at stages first..next-1 by linear interpolation between the bytes left at both ends.
static void tli_chain_set_room(tli_chain *chain, int32_t first, int32_t next, uint64_t bytes, uint64_t rest) {
    uint64_t step = (bytes - rest) / (uint64_t)(next - first);
    int32_t i;
    for (i = first; i < next; i++) chain->low[i] = chain->high[i] = bytes - (uint64_t)(i - first) * step;
}

// The bytes that the stages from first to the split leave held while those after it are reversed.
static uint64_t tli_chain_held_by(const tli_chain *chain, int32_t split, int32_t first) {
    return split == first ? chain->stages[first].kept_bytes : chain->stages[split].in_bytes;
}

static void tli_chain_follow_best(tli_chain *chain) {
    int32_t first = 0, next, n = chain->stage_count;
    uint64_t bytes = chain->budget, rest;
    for (; first < n; first = next, bytes = rest) {
        int32_t split = tli_chain_choose(chain, first, n - 1, bytes);
        next = split < 0 ? n : split == first ? first + 1 : split;
        rest = split < 0 ? bytes : bytes - tli_chain_held_by(chain, split, first);
        tli_chain_set_room(chain, first, next, bytes, rest);
    }
}

// Compute the final curves, first in the whole range.
static void tli_chain_search_final(tli_chain *chain) {
    const tli_chain_curve *root = tli_chain_curve_of(chain, 0, chain->stage_count - 1);
    uint64_t cost = UINT64_MAX, room = chain->budget;
    int32_t pass, i, n = chain->stage_count;
    for (i = 0; i < n; i++) { chain->final[i].count = 0; chain->low[i] = chain->high[i] = chain->budget; }
    for (pass = 0; pass < TLI_CHAIN_PASSES && !chain->failed; pass++, room = room / 4 + 1) {
        for (i = 0; i < n; i++) {
            chain->low[i] = chain->low[i] > room ? chain->low[i] - room : 0;
            chain->high[i] = chain->high[i] < UINT64_MAX - room ? chain->high[i] + room : UINT64_MAX;
        }
        for (i = n - 1; i >= 0 && !chain->failed && !tli_chain_stops(chain); i--)
            tli_chain_find_curve(chain, i, n - 1);
        if (!root->count || tli_chain_stops(chain)) break;
        if (root->points[root->count - 1].cost < cost) {
            cost = root->points[root->count - 1].cost;
            for (i = 0; i < n; i++) chain->final[i] = *tli_chain_curve_of(chain, i, n - 1);
        }
        tli_chain_follow_best(chain);
    }
    for (i = 0; i < n; i++) *tli_chain_curve_of(chain, i, n - 1) = chain->final[i];
}

// Compute the curves: all of them if the work allows, which is hard to foresee, because repeated stages and
// little memory make it easy; else of fewer segments with fewer steps. Returns 1 if the result is exact.
static int tli_chain_solve(tli_chain *chain, uint64_t work_limit) {
    static const int32_t widths[] = { 10, 6, 4, 2 }, points[] = { 12, 12, 8, 8 };
    int32_t i;
    chain->work_limit = chain->stage_count > TLI_CHAIN_FEW_STAGES ? work_limit / 4 : work_limit / 2;
    chain->most_points = 0;
    tli_chain_set_grid(chain, 0);
    tli_chain_find_curves(chain, chain->stage_count);
    if (!chain->over) return 1;
    for (i = 0; i < 4 && !chain->failed && !tli_chain_stops(chain); i++) {
        tli_chain_forget_curves(chain);
        tli_chain_set_grid(chain, widths[i]);
        chain->most_points = points[i];
        chain->most_final = TLI_CHAIN_FINAL_POINTS;
        chain->work_limit = i < 3 ? chain->work + work_limit / 2 : UINT64_MAX;
        tli_chain_find_curves(chain, chain->stage_count - 1);
        if (!chain->over) break;
    }
    if (!chain->failed && !tli_chain_stops(chain)) tli_chain_search_final(chain);
    return 0;
}

// Find the least budget, and the curves for it: of all segments if the work allows, else of fewer. Returns 1 if
// it is the least of all persistent schedules.
static int tli_chain_solve_least(tli_chain *chain, uint64_t work_limit) {
    static const int32_t widths[] = { 0, 10, 6, 4, 2 };
    uint64_t least = UINT64_MAX;
    int32_t i, last = (int32_t)(sizeof widths / sizeof *widths) - 1;
    for (i = -1; i < last && least == UINT64_MAX && !tli_chain_stops(chain);) {
        tli_chain_set_grid(chain, widths[++i]);
        chain->work_limit = i < last ? chain->work + work_limit / 8 : UINT64_MAX;
        least = tli_chain_find_least(chain);
    }
    chain->budget = least;
    chain->most_points = chain->most_final = TLI_CHAIN_LEAST_POINTS;
    tli_chain_forget_curves(chain);
    chain->work_limit = UINT64_MAX;
    for (i = 0; i < chain->stage_count; i++) { chain->low[i] = 0; chain->high[i] = UINT64_MAX; }
    tli_chain_find_curves(chain, chain->stage_count);
    return chain->grid[0] == chain->stage_count;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

