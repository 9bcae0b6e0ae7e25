#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- regions of rows: which, and in how many blocks --
//
// The node whose call takes the most bytes bounds what every plan takes. So classes of regions are found by it:
//
//     largest call       loss         bmm               gelu              linear: in no region, stop
//     region around it   head, loss   qk, softmax, av   ln .. fc2, add
//     the same again     -            in 12 layers      in 12 layers
//
// Then choices are planned: every subset of classes in the fewest blocks that leave the peak to others, and the
// best of them with more and fewer blocks.

#define TLI_MOST_ROW_CLASSES 5
#define TLI_MOST_CUT_MEMBERS 12     // of a region that is tried
#define TLI_MOST_ROW_BLOCKS 64      // of a region that is tried
#define TLI_MOST_ROW_TRIES 40
#define TLI_ROW_TRY_WORK UINT64_C(40000000)
#define TLI_ROW_FINALISTS 3         // tries that are planned with all work

// A choice of blocks and what came of it.
typedef struct tli_row_try {
    int32_t  blocks[TLI_MOST_ROW_CLASSES];  // of each class; 0 = whole
    int32_t  has_plan;          // 1 = it fits
    uint64_t value;             // the cost of its plan; its least budget without one; UINT64_MAX = not planned
    uint64_t block_sum;         // of all regions
} tli_row_try;

typedef struct tli_row_choice {
    tl_env     *env;
    tl_remat_desc desc;
    tl_cut_desc   cut;
    const tl_graph *graph;
    int32_t    *sequence;       // [count] nodes that are no inputs and no states
    int32_t    *places;         // [nodes] of a node in it; -1 = none
    int32_t     count;
    int32_t    *class_of;       // [count] the class whose region it is in; -1 = none
    int32_t    *begins;         // [count] 1 = the first member of its region
    int32_t     lengths[TLI_MOST_ROW_CLASSES];  // members of a region
    int32_t     few[TLI_MOST_ROW_CLASSES];      // the fewest blocks that do not set the peak
    int32_t     class_count;
    tl_row_cut *cuts;           // [count] those of a try
    int32_t    *cut_classes;    // [count]
    tli_row_try tries[TLI_MOST_ROW_TRIES];
    int32_t     tried_count;
    tli_row_try best;           // so far; without a plan where nothing fits
    uint64_t    bound, work;
    tl_remat_report report;
} tli_row_choice;

// The sum of the costs that a step has in any case, and of the bytes that its backwards read.
typedef struct tli_row_sums { uint64_t cost, kept, call; } tli_row_sums;

static tl_result tli_fail_row_choice(const tli_row_choice *c) {
    return tli_fail(c->env, TL_ERROR_NO_MEMORY, TLI_IN(CHOOSE_ROWS), TLI_RULE(NO_MEMORY_TO_PLAN));
}

// Cut without a sentence where that is not possible. TL_NOT_READY: it is not.
static tl_result tli_try_cut(tli_row_choice *c, int32_t count, tl_rows_plan *rows) {
    tli_quiet quiet = tli_begin_quiet(c->env);
    tl_result result;
    c->cut.cuts = c->cuts;
    c->cut.cut_count = count;
    result = tl_cut_rows(c->env, &c->cut, rows);
    tli_end_quiet(&quiet, TL_OK);
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_row_choice(c);
    return result ? TL_NOT_READY : TL_OK;
}

static uint64_t tli_sum_step_costs(const tl_graph *graph, int inference) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        sum = tli_add_capped(sum, graph->nodes[id].fwd_cost);
        if (!inference && graph->nodes[id].has_grad) sum = tli_add_capped(sum, graph->nodes[id].bwd_cost);
    }
    return sum;
}

// The bytes of tensors that a backward reads, and of what forwards save. marks: [tensors] of the caller's.
static uint64_t tli_sum_kept(const tl_graph *graph, int32_t *marks) {
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < graph->tensor_count; k++) marks[k] = graph->outputs[k].needed;
    for (k = 0; k < graph->input_count; k++)
        if (graph->inputs[k].needed) marks[graph->inputs[k].tensor] = 1;
    for (k = 0; k < graph->tensor_count; k++)
        if (marks[k] && !graph->nodes[graph->outputs[k].node].is_input)
            sum = tli_add_capped(sum, graph->outputs[k].bytes);
    for (k = 0; k < graph->node_count; k++) sum = tli_add_capped(sum, graph->nodes[k].saved_bytes);
    return sum;
}

// The bytes of a region's larger call. marks: [tensors] of the caller's, 0.
static uint64_t tli_find_region_call(const tl_graph *graph, int32_t id, int inference, int32_t *marks) {
    tli_census census;
    uint64_t forward, save, backward;
    tli_zero(&census, sizeof census);
    census.graph = graph;
    census.marks = marks;
    tli_find_working_sets(&census, id, &forward, &save, &backward);
    return inference ? forward : tli_larger_u64(forward, backward);
}

// -- regions of rows: classes --

static int tli_is_same_relation(const tl_graph *graph, int32_t a, int32_t b) {
    const tl_node_rows *x = tli_find_rows(graph, a), *y = tli_find_rows(graph, b);
    int32_t k;
    if (!x != !y) return 0;
    if (!x) return 1;
    if (x->rows != y->rows || x->unit != y->unit || x->axis != y->axis || x->reduces != y->reduces) return 0;
    for (k = 0; k < graph->nodes[a].input_count; k++)
        if (graph->attributes->relations[x->first_relation + k].kind !=
            graph->attributes->relations[y->first_relation + k].kind)
            return 0;
    return 1;
}

// Whether two nodes do the same with other tensors. Costs are not compared: those that were measured differ
// from layer to layer. by: how far apart the nodes are in the sequence.
static int tli_is_like(const tli_row_choice *c, int32_t a, int32_t b, int32_t by, int32_t first) {
    const tl_graph *graph = c->graph;
    const tl_node *x = &graph->nodes[a], *y = &graph->nodes[b];
    int32_t k;
    if (!tli_same_text(tl_name_op(graph, a), tl_name_op(graph, b)) || x->input_count != y->input_count ||
        x->output_count != y->output_count || x->has_grad != y->has_grad || x->saved_bytes != y->saved_bytes ||
        x->fwork_bytes != y->fwork_bytes || x->bwork_bytes != y->bwork_bytes || x->keep != y->keep ||
        !tli_is_same_relation(graph, a, b))
        return 0;
    for (k = 0; k < x->input_count; k++) {
        const tl_node_output *from = &graph->outputs[graph->inputs[x->first_input + k].tensor];
        const tl_node_output *other = &graph->outputs[graph->inputs[y->first_input + k].tensor];
        int32_t place = c->places[from->node], like = c->places[other->node];
        if (from->bytes != other->bytes || (place >= first) != (like >= first + by) ||
            (place >= first && like - place != by))
            return 0;
    }
    return 1;
}

// Note that the `length` nodes from a place on are a region of a class.
static void tli_mark_region(tli_row_choice *c, int32_t at, int32_t length, int32_t number) {
    int32_t k;
    c->begins[at] = 1;
    for (k = 0; k < length; k++) c->class_of[at + k] = number;
}

// Mark the region of `length` nodes from place `first` on, and each run of nodes that is like it and can be cut
// as well: what its nodes read may differ in what is not compared.
static tl_result tli_mark_class(tli_row_choice *c, int32_t first, int32_t length, int32_t number) {
    int32_t at, k;
    tli_mark_region(c, first, length, number);
    for (at = 0; at + length <= c->count; at++) {
        tl_rows_plan rows;
        tl_result result;
        for (k = 0; k < length && c->class_of[at + k] < 0; k++)
            if (!tli_is_like(c, c->sequence[first + k], c->sequence[at + k], at - first, first)) break;
        if (k < length) continue;
        c->cuts[0].first = c->sequence[at];
        c->cuts[0].last = c->sequence[at + length - 1];
        c->cuts[0].block_count = TLI_MOST_ROW_BLOCKS;
        result = tli_try_cut(c, 1, &rows);
        if (result == TL_NOT_READY) continue;
        if (result) return result;
        tl_free_rows_plan(c->env, &rows);
        tli_mark_region(c, at, length, number);
    }
    return TL_OK;
}

// Measure the graph in which `count` cuts are made: its costs, what it keeps, and the larger call of the region
// that is the first cut. TL_NOT_READY: it cannot be cut so.
static tl_result tli_measure_cut(tli_row_choice *c, int32_t count, tli_row_sums *sums) {
    tl_rows_plan rows;
    int32_t *marks, id;
    tl_result result = tli_try_cut(c, count, &rows);
    if (result) return result;
    marks = (int32_t *)tli_alloc_array(c->env, (uint64_t)rows.graph.tensor_count, sizeof *marks);
    if (!marks) {
        tl_free_rows_plan(c->env, &rows);
        return tli_fail_row_choice(c);
    }
    id = rows.nodes[c->cuts[0].last];
    sums->cost = tli_sum_step_costs(&rows.graph, c->desc.inference);
    sums->kept = tli_sum_kept(&rows.graph, marks);
    tli_zero(marks, (tl_size)rows.graph.tensor_count * sizeof *marks);
    sums->call = tli_find_region_call(&rows.graph, id, c->desc.inference, marks);
    tli_release(c->env, marks);
    tl_free_rows_plan(c->env, &rows);
    return TL_OK;
}

// Whether a region is better than the best so far: fewer bytes in its calls; where these are about as many,
// fewer that it keeps, then less cost, then more members.
static int tli_is_better_region(const tli_row_sums *a, const tli_row_sums *b, int is_longer) {
    if (a->call + a->call / 20 < b->call) return 1;
    if (b->call + b->call / 20 < a->call) return 0;
    if (a->kept != b->kept) return a->kept < b->kept;
    return a->cost != b->cost ? a->cost < b->cost : is_longer;
}

// Find the best region around a place of the sequence. *length: 0 = there is none with fewer bytes than `most`.
static tl_result tli_find_region_around(tli_row_choice *c, int32_t place, uint64_t most, int32_t *first,
                                        int32_t *length) {
    tli_row_sums best, now;
    int32_t from, to;
    *length = 0;
    tli_zero(&best, sizeof best);
    for (from = place; from >= 0 && from > place - TLI_MOST_CUT_MEMBERS && c->class_of[from] < 0; from--)
        for (to = place; to < c->count && to < from + TLI_MOST_CUT_MEMBERS && c->class_of[to] < 0; to++) {
            tl_result result;
            c->cuts[0].first = c->sequence[from];
            c->cuts[0].last = c->sequence[to];
            c->cuts[0].block_count = TLI_MOST_ROW_BLOCKS;
            result = tli_measure_cut(c, 1, &now);
            if (result == TL_NOT_READY) continue;
            if (result) return result;
            if (now.call >= most || (*length && !tli_is_better_region(&now, &best, to - from + 1 > *length)))
                continue;
            best = now;
            *first = from;
            *length = to - from + 1;
        }
    return TL_OK;
}

// Write the cuts of all regions of classes that have blocks; returns how many.
static int32_t tli_list_row_cuts(tli_row_choice *c, const int32_t *blocks) {
    int32_t at, count = 0;
    for (at = 0; at < c->count; at++) {
        int32_t number = c->class_of[at];
        if (number < 0 || !c->begins[at] || !blocks[number]) continue;
        c->cuts[count].first = c->sequence[at];
        c->cuts[count].last = c->sequence[at + c->lengths[number] - 1];
        c->cuts[count].block_count = blocks[number];
        c->cut_classes[count++] = number;
    }
    return count;
}

// The bytes of what is there throughout: inputs and states.
static uint64_t tli_sum_inputs(const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < graph->tensor_count; k++)
        if (graph->nodes[graph->outputs[k].node].is_input) sum += graph->outputs[k].bytes;
    return sum;
}

// The place of the node whose call takes the most bytes while all classes are cut; -1 = it is a region.
static tl_result tli_find_widest_node(tli_row_choice *c, int32_t *place, uint64_t *bytes) {
    int32_t blocks[TLI_MOST_ROW_CLASSES], k, floor;
    tl_graph_statistics s;
    tl_rows_plan rows;
    tl_result result;
    for (k = 0; k < TLI_MOST_ROW_CLASSES; k++) blocks[k] = TLI_MOST_ROW_BLOCKS;
    result = tli_try_cut(c, tli_list_row_cuts(c, blocks), &rows);
    if (result) return result;
    result = tl_measure_graph(c->env, &rows.graph, &s);
    if (!result) {
        floor = c->desc.inference ? s.inference_floor_node : s.floor_node;
        *bytes = c->desc.inference ? s.inference_floor_bytes : s.floor_bytes;
        *bytes -= tli_sum_inputs(&rows.graph);
        *place = -1;
        for (k = 0; k < c->count; k++)
            if (rows.nodes[c->sequence[k]] == floor && c->class_of[k] < 0) *place = k;
        tl_free_graph_statistics(c->env, &s);
    }
    tl_free_rows_plan(c->env, &rows);
    return result;
}

static tl_result tli_find_row_classes(tli_row_choice *c, uint64_t *floor) {
    int32_t place, first = 0, length = 0;
    for (;;) {
        tl_result result = tli_find_widest_node(c, &place, floor);
        if (result || place < 0 || c->class_count == TLI_MOST_ROW_CLASSES) return result;
        result = tli_find_region_around(c, place, *floor, &first, &length);
        if (result || !length) return result;
        c->lengths[c->class_count] = length;
        result = tli_mark_class(c, first, length, c->class_count++);
        if (result) return result;
    }
}

// The fewest blocks, a power of two, with which a call of the class takes at most so many bytes.
static tl_result tli_find_fewest_blocks(tli_row_choice *c, int32_t number, uint64_t bytes, int32_t *blocks) {
    int32_t at = 0;
    while (c->class_of[at] != number || !c->begins[at]) at++;
    c->cuts[0].first = c->sequence[at];
    c->cuts[0].last = c->sequence[at + c->lengths[number] - 1];
    for (*blocks = 2; *blocks < TLI_MOST_ROW_BLOCKS; *blocks *= 2) {
        tli_row_sums sums;
        tl_result result;
        c->cuts[0].block_count = *blocks;
        result = tli_measure_cut(c, 1, &sums);
        if (result) return result;
        if (sums.call <= bytes) return TL_OK;
    }
    return TL_OK;
}

// -- regions of rows: tries --

static int tli_was_tried(const tli_row_choice *c, const int32_t *blocks) {
    int32_t k, i;
    for (k = 0; k < c->tried_count; k++) {
        for (i = 0; i < c->class_count && c->tries[k].blocks[i] == blocks[i]; i++) {}
        if (i == c->class_count) return 1;
    }
    return 0;
}

static int tli_is_better_rows(const tli_row_try *a, const tli_row_try *b) {
    if (a->has_plan != b->has_plan) return a->has_plan;
    return a->value != b->value ? a->value < b->value : a->block_sum < b->block_sum;
}

// Plan a graph with work for a try.
static tl_result tli_plan_row_graph(tli_row_choice *c, const tl_graph *graph, uint64_t work,
                                    tl_remat_report *report) {
    tli_quiet quiet = tli_begin_quiet(c->env);
    tl_remat_desc desc = c->desc;
    tl_plan plan;
    tl_result result;
    desc.graph = graph;
    desc.pool = NULL;
    desc.lossless = NULL;
    desc.work_limit = work;
    result = tl_plan_remat(c->env, &desc, &plan, report);
    c->work += report->work;
    tl_free_plan(c->env, &plan);
    tli_end_quiet(&quiet, result == TL_ERROR_INFEASIBLE ? TL_OK : result);
    return result;
}

static uint64_t tli_find_try_work(const tli_row_choice *c) {
    uint64_t work = c->desc.work_limit ? c->desc.work_limit / 16 : TLI_ROW_TRY_WORK;
    return work ? work : 1;
}

// The sum of the blocks of all regions.
static uint64_t tli_sum_blocks(const tli_row_choice *c, int32_t count) {
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < count; k++) sum += (uint64_t)c->cuts[k].block_count;
    return sum;
}

// Plan a try with work; *report is that of its plan.
static tl_result tli_plan_try(tli_row_choice *c, tli_row_try *now, uint64_t work, tl_remat_report *report) {
    int32_t count = tli_list_row_cuts(c, now->blocks);
    tl_rows_plan rows;
    tl_result result = tli_try_cut(c, count, &rows);
    tli_zero(report, sizeof *report);
    now->value = UINT64_MAX;
    now->block_sum = tli_sum_blocks(c, count);
    if (result) return result;
    if (!c->best.has_plan || tli_sum_step_costs(&rows.graph, c->desc.inference) <= c->best.value) {
        result = tli_plan_row_graph(c, &rows.graph, work, report);
        now->has_plan = !result;
        if (!result) now->value = report->cost;
        if (result == TL_ERROR_INFEASIBLE) {
            now->value = tli_or_default(report->least_budget_bytes, UINT64_MAX);
            result = TL_OK;
        }
    }
    tl_free_rows_plan(c->env, &rows);
    return result;
}

// Plan with so many blocks of each class, unless its costs alone are those of the best, or it was tried.
static tl_result tli_try_blocks(tli_row_choice *c, const int32_t *blocks) {
    tli_row_try *now = &c->tries[c->tried_count];
    tl_remat_report report;
    tl_result result;
    int32_t k;
    if (c->tried_count == TLI_MOST_ROW_TRIES || tli_was_tried(c, blocks)) return TL_OK;
    for (k = 0; k < c->class_count; k++) now->blocks[k] = blocks[k];
    c->tried_count++;
    result = tli_plan_try(c, now, tli_find_try_work(c), &report);
    if (!result && tli_is_better_rows(now, &c->best)) c->best = *now;
    return result;
}

// Every subset of the classes, the largest first: it is the one that fits where any does.
static tl_result tli_try_subsets(tli_row_choice *c) {
    int32_t blocks[TLI_MOST_ROW_CLASSES], set = 1 << c->class_count, k;
    tl_result result = TL_OK;
    while (set-- > 0 && !result) {
        for (k = 0; k < c->class_count; k++) blocks[k] = set >> k & 1 ? c->few[k] : 0;
        result = tli_try_blocks(c, blocks);
    }
    return result;
}

// The best with twice or half as many blocks of a class, while that helps.
static tl_result tli_try_other_counts(tli_row_choice *c, int32_t number, int doubles) {
    int32_t blocks[TLI_MOST_ROW_CLASSES], before, k;
    tl_result result = TL_OK;
    do {
        before = c->best.blocks[number];
        if (doubles ? before > INT32_MAX / 2 : before < 4) return TL_OK;
        for (k = 0; k < c->class_count; k++) blocks[k] = c->best.blocks[k];
        blocks[number] = doubles ? 2 * before : before / 2;
        result = tli_try_blocks(c, blocks);
    } while (!result && c->best.blocks[number] != before);
    return result;
}

// The best with other numbers of blocks. Where nothing fits so far, all classes in many blocks first. Fewer
// blocks never take fewer bytes, so they are tried where calls cost something, or nothing fits.
static tl_result tli_try_other_blocks(tli_row_choice *c, uint64_t floor) {
    int32_t blocks[TLI_MOST_ROW_CLASSES], k, i;
    int halves = c->cut.call_cost || c->cut.device || !c->best.has_plan;
    tl_result result = TL_OK;
    for (k = 0; k < c->class_count; k++) blocks[k] = TLI_MOST_ROW_BLOCKS;
    if (!c->best.has_plan) result = tli_try_blocks(c, blocks);
    for (k = 0; k < c->class_count && !result; k++) {
        if (!c->best.blocks[k]) continue;
        for (i = 0; i < c->class_count; i++) blocks[i] = c->best.blocks[i];
        result = tli_find_fewest_blocks(c, k, tli_larger_u64(floor, c->desc.budget_bytes / 2), &blocks[k]);
        if (!result) result = tli_try_blocks(c, blocks);
        if (!result && halves) result = tli_try_other_counts(c, k, 0);
        if (!result) result = tli_try_other_counts(c, k, 1);
    }
    return result;
}

// The bound of a subset of the classes in as many blocks as there can be, without costs of calls.
static tl_result tli_bound_subset(tli_row_choice *c, int32_t set) {
    int32_t blocks[TLI_MOST_ROW_CLASSES], k;
    tl_cut_desc cut = c->cut;
    tl_remat_report report;
    tl_rows_plan rows;
    tl_result result;
    for (k = 0; k < c->class_count; k++) blocks[k] = set >> k & 1 ? INT32_MAX : 0;
    c->cut.call_cost = 0;
    c->cut.device = NULL;
    result = tli_try_cut(c, tli_list_row_cuts(c, blocks), &rows);
    c->cut = cut;
    if (result) return result;
    if (tli_sum_step_costs(&rows.graph, c->desc.inference) < c->bound) {
        result = tli_plan_row_graph(c, &rows.graph, tli_find_try_work(c), &report);
        if (!result && report.bound_cost < c->bound) c->bound = report.bound_cost;
        else if (result == TL_ERROR_INFEASIBLE && !report.proven)
            c->bound = tli_sum_step_costs(&rows.graph, c->desc.inference);
        if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    }
    tl_free_rows_plan(c->env, &rows);
    return result;
}

static tl_result tli_bound_rows(tli_row_choice *c) {
    tl_result result = TL_OK;
    int32_t set = 1 << c->class_count;
    c->bound = c->report.cost;
    while (set-- > 0 && !result) result = tli_bound_subset(c, set);
    if (result) return result;
    c->report.bound_cost = c->bound;
    c->report.proven = c->bound == c->report.cost;
    c->report.gap_ratio = c->bound ? (double)(c->report.cost - c->bound) / (double)c->bound : 0;
    return TL_OK;
}

// -- regions of rows: planning --

// The best try that is not planned with all work yet; -1 = none is as good as that.
static int32_t tli_find_finalist(const tli_row_choice *c) {
    int32_t k, best = -1;
    for (k = 0; k < c->tried_count; k++)
        if (c->tries[k].value != UINT64_MAX &&
            (best < 0 || tli_is_better_rows(&c->tries[k], &c->tries[best])))
            best = k;
    return best;
}

// Plan the best with all the work that the caller allows, as a call of tl_plan_remat will: tries tell costs
// that are close to each other apart by chance.
static tl_result tli_plan_finalists(tli_row_choice *c) {
    int32_t count, at;
    tl_result result = TL_OK;
    c->best.has_plan = 0;
    c->best.value = UINT64_MAX;
    for (count = 0; count < TLI_ROW_FINALISTS && !result; count++) {
        tl_remat_report report;
        tli_row_try now;
        at = tli_find_finalist(c);
        if (at < 0 || (c->best.has_plan && (!c->tries[at].has_plan || c->report.gap_ratio <= 0.001))) break;
        now = c->tries[at];
        c->tries[at].value = UINT64_MAX;
        result = tli_plan_try(c, &now, c->desc.work_limit, &report);
        if (result || now.value == UINT64_MAX || !tli_is_better_rows(&now, &c->best)) continue;
        c->best = now;
        c->report = report;
    }
    return result;
}

static tl_result tli_choose_row_cuts(tli_row_choice *c) {
    uint64_t floor = 0;
    tl_result result = tli_find_row_classes(c, &floor);
    int32_t k;
    c->best.value = UINT64_MAX;
    for (k = 0; k < c->class_count && !result; k++) result = tli_find_fewest_blocks(c, k, floor, &c->few[k]);
    if (!result) result = tli_try_subsets(c);
    if (!result) result = tli_try_other_blocks(c, floor);
    if (!result) result = tli_plan_finalists(c);
    if (!result && c->best.has_plan) result = tli_bound_rows(c);
    return result;
}

static tl_result tli_open_row_choice(tli_row_choice *c) {
    uint64_t nodes = (uint64_t)c->graph->node_count;
    int32_t id;
    c->sequence = (int32_t *)tli_alloc_array(c->env, 5 * nodes + 1, sizeof *c->sequence);
    c->cuts = (tl_row_cut *)tli_alloc_array(c->env, nodes + 1, sizeof *c->cuts);
    if (!c->sequence || !c->cuts) return tli_fail_row_choice(c);
    c->places = c->sequence + nodes;
    c->class_of = c->places + nodes;
    c->begins = c->class_of + nodes;
    c->cut_classes = c->begins + nodes;
    for (id = 0; id < c->graph->node_count; id++) {
        c->places[id] = c->class_of[id] = -1;
        c->begins[id] = 0;
        if (c->graph->nodes[id].is_input) continue;
        c->places[id] = c->count;
        c->sequence[c->count++] = id;
    }
    return TL_OK;
}

// Hand over the cuts of the best choice.
static tl_result tli_write_row_choice(tli_row_choice *c, tl_rows_choice *choice) {
    uint64_t count = (uint64_t)tli_list_row_cuts(c, c->best.blocks);
    tl_row_cut *cuts = (tl_row_cut *)tli_alloc_array(c->env, count + 1, sizeof *cuts + sizeof *choice->classes);
    int32_t *classes;
    if (!cuts) return tli_fail_row_choice(c);
    classes = (int32_t *)(cuts + count);
    tli_copy(cuts, c->cuts, (size_t)count * sizeof *cuts);
    tli_copy(classes, c->cut_classes, (size_t)count * sizeof *classes);
    choice->cuts = cuts;
    choice->classes = classes;
    choice->cut_count = (int32_t)count;
    choice->class_count = c->class_count;
    choice->tried_count = c->tried_count;
    choice->whole_cost = tli_sum_step_costs(c->graph, c->desc.inference);
    choice->report = c->report;
    choice->report.work = c->work;
    choice->memory = cuts;
    return TL_OK;
}

TLI_IMPL tl_result tl_choose_rows(tl_env *env, const tl_remat_desc *desc, const tl_cut_desc *cut,
                                  tl_rows_choice *choice) {
    tli_row_choice c;
    tl_rows_plan rows;
    tl_result result;
    TL_ASSERT(desc && desc->graph && cut && choice);
    tli_zero(choice, sizeof *choice);
    tli_zero(&c, sizeof c);
    c.env = env;
    c.desc = *desc;
    c.cut = *cut;
    c.graph = c.cut.graph = desc->graph;
    c.cut.inference = desc->inference;
    c.cut.cuts = NULL;
    c.cut.cut_count = 0;
    result = tl_cut_rows(env, &c.cut, &rows);   // what is wrong with graph or desc is said here
    if (result) return result;
    tl_free_rows_plan(env, &rows);
    result = tli_open_row_choice(&c);
    if (!result) result = tli_choose_row_cuts(&c);
    if (!result) result = tli_write_row_choice(&c, choice);
    tli_release(env, c.sequence);
    tli_release(env, c.cuts);
    if (result || c.best.has_plan) return result;
    return tli_fail_values(env, TL_ERROR_INFEASIBLE, TLI_IN(CHOOSE_ROWS), TLI_RULE(ROWS_BUDGET_IS_TOO_SMALL),
                           desc->budget_bytes, c.report.least_budget_bytes);
}

TLI_IMPL void tl_free_rows_choice(tl_env *env, tl_rows_choice *choice) {
    if (!choice) return;
    tli_release(env, choice->memory);
    tli_zero(choice, sizeof *choice);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
