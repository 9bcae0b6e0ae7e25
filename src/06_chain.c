#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- chain: the optimum over persistent schedules --
//
// The graph is cut into stages where nothing but the outputs of one node, and graph inputs, are read by
// later nodes. A segment is a run of stages i..t whose input is resident and stays until the segment has
// been reversed. It is reversed in one of three ways:
//   leaf     i = t: what the backwards of the stage read is made, then they run
//   save     the stage runs and keeps what its backwards read; i+1..t is reversed, then its backwards run
//   advance  stages i..k-1 run and keep nothing but the input of k; k..t is reversed, then i..k-1
// What the stages do in each is simulated once, call by call, so that all bytes are exact. The cost of
// reversing a segment is a step function of the bytes that it may hold: a curve, which lists the steps. A
// curve is the least of the sums of shifted shorter curves; there are no slots of memory to round to.
// This departs from the paper in that a leaf makes again only what its backwards read, and a stage's
// outputs that its own backwards do not read go before them.

#define TLI_CHAIN_MOST_STAGES 1024     // more are joined
#define TLI_CHAIN_WORK UINT64_C(400000000)  // without a limit of the caller's
#define TLI_CHAIN_BLOCK 4096           // points of curves in one allocation
#define TLI_CHAIN_MOST_POINTS 8000000  // of all curves: 128 MB
#define TLI_CHAIN_FINAL_POINTS 240     // of a curve that ends with the last stage, where not all steps are kept
#define TLI_CHAIN_PASSES 3             // over the curves that end with the last stage
#define TLI_CHAIN_LEAST_POINTS 4       // of a curve where only the least budget is wanted

typedef struct tli_chain_stage {
    int32_t  first, last;           // nodes
    uint64_t in_bytes;              // of what the stages before hand over: the price of a checkpoint here
    uint64_t held_bytes;            // beside every segment that ends here: gradients, results of the last stage
    uint64_t kept_bytes;            // by save: what the backwards read, and what is handed over
    uint64_t advance_cost, save_cost, back_cost, leaf_cost;
    uint64_t stay_bytes, go_bytes;  // most live during an advance whose input stays, or goes and counts
    uint64_t save_bytes, back_bytes, leaf_bytes;  // most live, without the input
} tli_chain_stage;

typedef struct tli_chain_point { uint64_t bytes, cost; } tli_chain_point;  // with so many bytes, so much

// Bytes ascend, costs descend. No points: the segment does not fit.
typedef struct tli_chain_curve { const tli_chain_point *points; int32_t count; } tli_chain_curve;

typedef struct tli_chain_list { tli_chain_point *points; int32_t count, capacity; } tli_chain_list;

typedef struct tli_chain_block { struct tli_chain_block *next; } tli_chain_block;

typedef struct tli_chain {
    tl_env         *env;
    const tl_graph *graph;
    uint64_t        budget, pinned_bytes;  // pinned: graph inputs
    tli_chain_stage   *stages;  int32_t stage_count;
    int32_t        *stage_of;              // [node_count]
    uint8_t        *marks;                 // [node_count] TLI_CHAIN_ADVANCE, TLI_CHAIN_LEAF
    uint8_t        *kinds;                 // [tensor_count] TLI_CHAIN_OUT and so on
    uint8_t        *here, *has_gradient;   // [tensor_count] while a part is played
    int32_t        *last_use;              // [tensor_count] the last call of the part that touches it
    int32_t        *calls;                 // [2 * node_count] of the part: 2 * node, + 1 = backward
    int32_t         call_count;
    tli_chain_curve   *curves;                // [stage_count][stage_count] first stage, last stage
    uint64_t       *least;                 // [stage_count][stage_count] bytes below which none fits
    int32_t        *grid;                  // [stage_count] the longest segment that may end here
    int32_t        *same_from, *same_count;  // [stage_count] an earlier run of equal stages, and its length
    tli_chain_list     best, next;            // the curve under way
    tli_chain_block   *blocks;
    tli_chain_point   *free_points;  int32_t free_count;
    int64_t         point_count;
    int32_t         failed;                // 1 = no memory
    int32_t         most_points;           // of one curve; 0 = all: exact
    int32_t         most_final;            // of the curve of a segment that ends with the last stage
    uint64_t       *low, *high;            // [stage_count] of these curves, the bytes that are looked at
    uint64_t       *path_costs; int32_t *path;  // [stage_count] of the shortest path at a price
    tli_chain_curve   *final;                 // [stage_count] these curves, of the best pass so far
    int32_t         over;                  // 1 = work_limit was not enough, or the points
    uint64_t        work, work_limit;
} tli_chain;

enum { TLI_CHAIN_ADVANCE = 1, TLI_CHAIN_LEAF = 2 };                          // node: which parts run it
enum { TLI_CHAIN_OUT = 1, TLI_CHAIN_READ = 2, TLI_CHAIN_GRAD = 4, TLI_CHAIN_RESULT = 8, TLI_CHAIN_WANTED = 16 };
// tensor: handed over; read by backwards of its stage; of its gradient a part comes from later stages;
// stays to the end; scratch

typedef enum tli_chain_part {
    TLI_CHAIN_RUN_ADVANCE,
    TLI_CHAIN_RUN_SAVE,
    TLI_CHAIN_RUN_BACK,
    TLI_CHAIN_RUN_LEAF
} tli_chain_part;

static void tli_chain_free_blocks(tli_chain *pc) {
    while (pc->blocks) {
        tli_chain_block *next = pc->blocks->next;
        tli_release(pc->env, pc->blocks);
        pc->blocks = next;
    }
}

static void tli_chain_free(tli_chain *pc) {
    tli_chain_free_blocks(pc);
    tli_release(pc->env, pc->stages);
    tli_release(pc->env, pc->stage_of);
    tli_release(pc->env, pc->marks);
    tli_release(pc->env, pc->kinds);
    tli_release(pc->env, pc->here);
    tli_release(pc->env, pc->has_gradient);
    tli_release(pc->env, pc->last_use);
    tli_release(pc->env, pc->calls);
    tli_release(pc->env, pc->curves);
    tli_release(pc->env, pc->least);
    tli_release(pc->env, pc->grid);
    tli_release(pc->env, pc->low);
    tli_release(pc->env, pc->high);
    tli_release(pc->env, pc->final);
    tli_release(pc->env, pc->path_costs);
    tli_release(pc->env, pc->path);
    tli_release(pc->env, pc->same_from);
    tli_release(pc->env, pc->same_count);
    tli_release(pc->env, pc->best.points);
    tli_release(pc->env, pc->next.points);
}

// -- chain: stages --

// stage_of[]: 1 = a stage ends at this node. A result stays, so all from its node on is one stage.
static void tli_chain_find_ends(tli_chain *pc) {
    const tl_graph *graph = pc->graph;
    int32_t id, i, farthest = -1, reach, computes = 0, *reader = pc->last_use;
    for (i = 0; i < graph->tensor_count; i++) reader[i] = -1;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            reader[graph->inputs[i].tensor] = id;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (node->keep) break;
        computes |= !node->is_input;
        pc->stage_of[id] = computes && !node->is_input && farthest <= id;
        if (pc->stage_of[id]) computes = 0;
        for (i = node->first_output, reach = -1; i < node->first_output + node->output_count; i++)
            if (!node->is_input && reader[i] > reach) reach = reader[i];
        if (reach > farthest) farthest = reach;
    }
    for (; id < graph->node_count; id++) pc->stage_of[id] = 0;
    pc->stage_of[graph->node_count - 1] = 1;
}

static uint64_t tli_chain_out_bytes(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = 0;
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += graph->outputs[i].bytes;
    return sum;
}

// Join every two stages, where more bytes are handed over, until there are no more than can be planned.
static int32_t tli_chain_join_stages(tli_chain *pc) {
    int32_t id, count, last, other;
    for (;;) {
        for (id = count = 0; id < pc->graph->node_count; id++) count += pc->stage_of[id];
        if (count <= TLI_CHAIN_MOST_STAGES) break;
        for (id = 0, last = -1; id < pc->graph->node_count - 1; id++) {
            if (!pc->stage_of[id]) continue;
            if (last < 0) { last = id; continue; }
            other = tli_chain_out_bytes(pc->graph, id) > tli_chain_out_bytes(pc->graph, last) ? id : last;
            pc->stage_of[other] = 0;
            last = -1;
        }
    }
    for (id = count = 0; id < pc->graph->node_count; id++) {
        int32_t ends = pc->stage_of[id];
        pc->stage_of[id] = count;
        count += ends;
    }
    return count;
}

static void tli_chain_read_tensors(tli_chain *pc) {
    const tl_graph *graph = pc->graph;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[i].node];
        pc->kinds[i] = (uint8_t)((maker->has_grad && graph->outputs[i].needed ? TLI_CHAIN_READ : 0) |
                                 (maker->keep ? TLI_CHAIN_RESULT : 0));
        if (maker->is_input) pc->pinned_bytes += graph->outputs[i].bytes;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, maker = graph->outputs[tensor].node;
            if (graph->nodes[maker].is_input) continue;
            if (pc->stage_of[maker] == pc->stage_of[id]) {
                if (node->has_grad && graph->inputs[i].needed) pc->kinds[tensor] |= TLI_CHAIN_READ;
                continue;
            }
            pc->kinds[tensor] |= TLI_CHAIN_OUT;
            if (node->has_grad && graph->nodes[maker].has_grad) pc->kinds[tensor] |= TLI_CHAIN_GRAD;
        }
    }
}

// Which nodes an advance runs: what makes what is handed over. Which a leaf runs: what makes what its
// backwards read, and what no advance ran.
static void tli_chain_mark_nodes(tli_chain *pc, int32_t mark) {
    const tl_graph *graph = pc->graph;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) pc->kinds[i] &= (uint8_t)~TLI_CHAIN_WANTED;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int runs = 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            runs |= pc->kinds[i] & (mark == TLI_CHAIN_ADVANCE
                                        ? TLI_CHAIN_OUT | TLI_CHAIN_WANTED
                                        : TLI_CHAIN_READ | TLI_CHAIN_RESULT | TLI_CHAIN_WANTED);
        if (mark == TLI_CHAIN_LEAF && node->has_grad)
            runs |= node->saved_bytes || !(pc->marks[id] & TLI_CHAIN_ADVANCE);
        if (node->is_input || !runs) continue;
        pc->marks[id] |= (uint8_t)mark;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (pc->stage_of[graph->outputs[graph->inputs[i].tensor].node] == pc->stage_of[id])
                pc->kinds[graph->inputs[i].tensor] |= TLI_CHAIN_WANTED;
    }
}

// -- chain: what a stage does, call by call --

typedef struct tli_chain_play {
    tli_chain     *pc;
    tli_chain_part part;
    int32_t     stage, goes;        // goes: 1 = the input is dropped after its last use, and counts
    tli_steps  *steps;              // 0 = only bytes and cost are wanted
    uint64_t    live, peak, cost;
} tli_chain_play;

static void tli_chain_list_calls(tli_chain *pc, int32_t stage, tli_chain_part part) {
    const tli_chain_stage *s = &pc->stages[stage];
    int32_t id, mark = part == TLI_CHAIN_RUN_ADVANCE ? TLI_CHAIN_ADVANCE
                       : part == TLI_CHAIN_RUN_LEAF  ? TLI_CHAIN_LEAF
                       : part == TLI_CHAIN_RUN_SAVE  ? TLI_CHAIN_ADVANCE | TLI_CHAIN_LEAF
                                                     : 0;
    pc->call_count = 0;
    for (id = s->first; id <= s->last; id++)
        if (pc->marks[id] & mark) pc->calls[pc->call_count++] = 2 * id;
    if (part != TLI_CHAIN_RUN_BACK && part != TLI_CHAIN_RUN_LEAF) return;
    for (id = s->last; id >= s->first; id--)
        if (pc->graph->nodes[id].has_grad) pc->calls[pc->call_count++] = 2 * id + 1;
}

static void tli_chain_find_last_uses(tli_chain *pc) {
    const tl_graph *graph = pc->graph;
    int32_t at, i;
    for (at = 0; at < pc->call_count; at++) {
        const tl_node *node = &graph->nodes[pc->calls[at] / 2];
        int back = pc->calls[at] % 2;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (!back || graph->inputs[i].needed) pc->last_use[graph->inputs[i].tensor] = at;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!back || graph->outputs[i].needed) pc->last_use[i] = at;
    }
}

// Whether a tensor is still there when the part is over.
static int tli_chain_stays(const tli_chain_play *play, int32_t tensor) {
    const tli_chain *pc = play->pc;
    int32_t maker = pc->graph->outputs[tensor].node, kind = pc->kinds[tensor];
    if (pc->graph->nodes[maker].is_input || kind & TLI_CHAIN_RESULT) return 1;
    if (pc->stage_of[maker] != play->stage) return !play->goes;
    return (play->part == TLI_CHAIN_RUN_ADVANCE && kind & TLI_CHAIN_OUT) ||
           (play->part == TLI_CHAIN_RUN_SAVE && kind & (TLI_CHAIN_OUT | TLI_CHAIN_READ));
}

static void tli_chain_drop(tli_chain_play *play, int32_t tensor) {
    tli_chain *pc = play->pc;
    pc->here[tensor] = 0;
    play->live -= pc->graph->outputs[tensor].bytes;
    if (play->steps) tli_add_tensor_step(play->steps, pc->graph, TL_STEP_DROP, tensor);
}

static void tli_chain_drop_used(tli_chain_play *play, int32_t at, int32_t tensor) {
    if (play->pc->here[tensor] && play->pc->last_use[tensor] == at && !tli_chain_stays(play, tensor))
        tli_chain_drop(play, tensor);
}

static void tli_chain_reach(tli_chain_play *play, uint64_t bytes) {
    if (play->live + bytes > play->peak) play->peak = play->live + bytes;
}

static void tli_chain_forward(tli_chain_play *play, int32_t id) {
    tli_chain *pc = play->pc;
    const tl_node *node = &pc->graph->nodes[id];
    int saves = node->saved_bytes && node->has_grad && play->part != TLI_CHAIN_RUN_ADVANCE, i;
    tl_step_kind kind = saves ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        play->live += pc->graph->outputs[i].bytes;
        pc->here[i] = 1;
    }
    if (saves) play->live += node->saved_bytes;
    tli_chain_reach(play, node->fwork_bytes);
    play->cost += node->fwd_cost;
    if (play->steps) tli_add_step(play->steps, tli_step_of(kind, id, TL_ALL_OUTPUTS));
}

static void tli_chain_make_gradient(tli_chain_play *play, int32_t tensor) {
    const tl_node_output *output = &play->pc->graph->outputs[tensor];
    if (play->pc->has_gradient[tensor] || !play->pc->graph->nodes[output->node].has_grad) return;
    play->pc->has_gradient[tensor] = 1;
    play->live += output->bytes;
}

static void tli_chain_backward(tli_chain_play *play, int32_t id) {
    tli_chain *pc = play->pc;
    const tl_node *node = &pc->graph->nodes[id];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_chain_make_gradient(play, i);
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        tli_chain_make_gradient(play, pc->graph->inputs[i].tensor);
    tli_chain_reach(play, node->bwork_bytes);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        pc->has_gradient[i] = 0;
        play->live -= pc->graph->outputs[i].bytes;
    }
    play->live -= node->saved_bytes;
    play->cost += node->bwd_cost;
    if (play->steps) tli_add_step(play->steps, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
}

// What is there before the part: the input, gradients from later stages, and what save kept.
static void tli_chain_begin(tli_chain_play *play) {
    tli_chain *pc = play->pc;
    const tl_graph *graph = pc->graph;
    const tli_chain_stage *s = &pc->stages[play->stage];
    int32_t back = play->part == TLI_CHAIN_RUN_BACK, i;
    int32_t first = graph->nodes[s->first ? s->first - 1 : 0].first_output;
    int32_t own = graph->nodes[s->first].first_output;
    int32_t end = graph->nodes[s->last].first_output + graph->nodes[s->last].output_count;
    for (i = first; i < end; i++) {
        int32_t kind = pc->kinds[i];
        pc->last_use[i] = -1;
        pc->has_gradient[i] = i >= own && play->part >= TLI_CHAIN_RUN_BACK && kind & TLI_CHAIN_GRAD ? 1 : 0;
        pc->here[i] = (i < own ? kind & TLI_CHAIN_OUT : back ? kind & TLI_CHAIN_READ : 0) ? 1 : 0;
        if (i < own) continue;
        if (pc->here[i]) play->live += graph->outputs[i].bytes;
        else if (back && kind & TLI_CHAIN_OUT && play->steps)
            tli_add_tensor_step(play->steps, graph, TL_STEP_DROP, i);
    }
    for (i = s->first; i <= s->last && back; i++)
        if (graph->nodes[i].has_grad) play->live += graph->nodes[i].saved_bytes;
    if (play->part >= TLI_CHAIN_RUN_BACK) play->live += s->held_bytes;
    if (play->goes) play->live += s->in_bytes;
}

// Play a part of a stage: its bytes and its cost, and its steps where they are wanted.
static tli_chain_play tli_chain_run(tli_chain *pc, int32_t stage, tli_chain_part part, int32_t goes,
                                    tli_steps *steps) {
    const tl_graph *graph = pc->graph;
    const tli_chain_stage *s = &pc->stages[stage];
    tli_chain_play play;
    int32_t at, i, before = graph->nodes[s->first ? s->first - 1 : 0].first_output;
    tli_zero(&play, sizeof play);
    play.pc = pc;
    play.part = part;
    play.stage = stage;
    play.goes = goes;
    play.steps = steps;
    tli_chain_list_calls(pc, stage, part);
    tli_chain_begin(&play);
    tli_chain_find_last_uses(pc);
    for (i = before; i < graph->nodes[s->first].first_output; i++)
        tli_chain_drop_used(&play, -1, i);
    for (at = 0; at < pc->call_count; at++) {
        int32_t id = pc->calls[at] / 2;
        const tl_node *node = &graph->nodes[id];
        if (pc->calls[at] % 2) tli_chain_backward(&play, id); else tli_chain_forward(&play, id);
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            tli_chain_drop_used(&play, at, graph->inputs[i].tensor);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            tli_chain_drop_used(&play, at, i);
    }
    return play;
}

static void tli_chain_read_stage(tli_chain *pc, int32_t stage) {
    const tl_graph *graph = pc->graph;
    tli_chain_stage *s = &pc->stages[stage];
    tli_chain_play play;
    int32_t i, end = graph->nodes[s->last].first_output + graph->nodes[s->last].output_count;
    for (i = s->first; i <= s->last; i++)
        if (graph->nodes[i].has_grad) s->kept_bytes += graph->nodes[i].saved_bytes;
    for (i = graph->nodes[s->first].first_output; i < end; i++) {
        uint64_t bytes = graph->nodes[graph->outputs[i].node].is_input ? 0 : graph->outputs[i].bytes;
        int32_t kind = pc->kinds[i], at;
        if (kind & (TLI_CHAIN_READ | TLI_CHAIN_OUT)) s->kept_bytes += bytes;
        if (kind & TLI_CHAIN_GRAD) s->held_bytes += bytes;
        if (kind & TLI_CHAIN_OUT) s[1].in_bytes += bytes;
        for (at = 0; at < stage && kind & TLI_CHAIN_RESULT; at++) pc->stages[at].held_bytes += bytes;
    }
    play = tli_chain_run(pc, stage, TLI_CHAIN_RUN_ADVANCE, 0, NULL);
    s->stay_bytes = play.peak;
    s->advance_cost = play.cost;
    s->go_bytes = tli_chain_run(pc, stage, TLI_CHAIN_RUN_ADVANCE, 1, NULL).peak;
    play = tli_chain_run(pc, stage, TLI_CHAIN_RUN_SAVE, 0, NULL);
    s->save_bytes = play.peak;
    s->save_cost = play.cost;
}

// After all stages are read: what is held beside the backwards is known only then.
static void tli_chain_read_backwards(tli_chain *pc, int32_t stage) {
    tli_chain_stage *s = &pc->stages[stage];
    tli_chain_play play = tli_chain_run(pc, stage, TLI_CHAIN_RUN_BACK, 0, NULL);
    s->back_bytes = play.peak;
    s->back_cost = play.cost;
    play = tli_chain_run(pc, stage, TLI_CHAIN_RUN_LEAF, 0, NULL);
    s->leaf_bytes = play.peak;
    s->leaf_cost = play.cost;
}

static int tli_chain_equals_stage(const tli_chain_stage *a, const tli_chain_stage *b) {
    return a->in_bytes == b->in_bytes && a->held_bytes == b->held_bytes && a->kept_bytes == b->kept_bytes &&
           a->advance_cost == b->advance_cost && a->save_cost == b->save_cost && a->back_cost == b->back_cost &&
           a->leaf_cost == b->leaf_cost && a->stay_bytes == b->stay_bytes && a->go_bytes == b->go_bytes &&
           a->save_bytes == b->save_bytes && a->back_bytes == b->back_bytes && a->leaf_bytes == b->leaf_bytes;
}

// For each stage, the longest run of stages from it on that equals one from an earlier stage on: repeated
// blocks have the same curves.
static void tli_chain_find_same(tli_chain *pc) {
    int32_t apart, i, run;
    for (apart = 1; apart < pc->stage_count; apart++)
        for (i = pc->stage_count - 1 - apart, run = 0; i >= 0; i--) {
            run = tli_chain_equals_stage(&pc->stages[i], &pc->stages[i + apart]) ? run + 1 : 0;
            if (run <= pc->same_count[i + apart]) continue;
            pc->same_count[i + apart] = run;
            pc->same_from[i + apart] = i;
        }
}

static tl_result tli_chain_alloc_graph(tli_chain *pc) {
    uint64_t nodes = (uint64_t)pc->graph->node_count, tensors = (uint64_t)pc->graph->tensor_count;
    pc->stage_of = (int32_t *)tli_alloc_array(pc->env, nodes, sizeof *pc->stage_of);
    pc->marks = (uint8_t *)tli_alloc_array(pc->env, nodes, sizeof *pc->marks);
    pc->kinds = (uint8_t *)tli_alloc_array(pc->env, tensors, sizeof *pc->kinds);
    pc->here = (uint8_t *)tli_alloc_array(pc->env, tensors, sizeof *pc->here);
    pc->has_gradient = (uint8_t *)tli_alloc_array(pc->env, tensors, sizeof *pc->has_gradient);
    pc->last_use = (int32_t *)tli_alloc_array(pc->env, tensors, sizeof *pc->last_use);
    pc->calls = (int32_t *)tli_alloc_array(pc->env, nodes, 2 * sizeof *pc->calls);
    return pc->stage_of && pc->marks && pc->kinds && pc->here && pc->has_gradient && pc->last_use &&
           pc->calls ? TL_OK : TL_ERROR_NO_MEMORY;
}

static tl_result tli_chain_alloc_stages(tli_chain *pc) {
    uint64_t stages = (uint64_t)pc->stage_count;
    pc->stages = (tli_chain_stage *)tli_alloc_array(pc->env, stages + 1, sizeof *pc->stages);
    pc->curves = (tli_chain_curve *)tli_alloc_array(pc->env, stages * stages, sizeof *pc->curves);
    pc->least = (uint64_t *)tli_alloc_array(pc->env, stages * stages, sizeof *pc->least);
    pc->same_from = (int32_t *)tli_alloc_array(pc->env, stages, sizeof *pc->same_from);
    pc->same_count = (int32_t *)tli_alloc_array(pc->env, stages, sizeof *pc->same_count);
    pc->grid = (int32_t *)tli_alloc_array(pc->env, stages, sizeof *pc->grid);
    pc->low = (uint64_t *)tli_alloc_array(pc->env, stages, sizeof *pc->low);
    pc->high = (uint64_t *)tli_alloc_array(pc->env, stages, sizeof *pc->high);
    pc->final = (tli_chain_curve *)tli_alloc_array(pc->env, stages, sizeof *pc->final);
    pc->path_costs = (uint64_t *)tli_alloc_array(pc->env, stages, sizeof *pc->path_costs);
    pc->path = (int32_t *)tli_alloc_array(pc->env, stages, sizeof *pc->path);
    return pc->stages && pc->curves && pc->least && pc->same_from && pc->same_count && pc->grid && pc->low &&
           pc->high && pc->final && pc->path_costs && pc->path ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Costs are added without a check: those of the costliest schedule must fit.
static int tli_chain_is_countable(const tli_chain *pc) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < pc->stage_count; i++) {
        const tli_chain_stage *s = &pc->stages[i];
        if (!tli_add_u64(sum, s->save_cost, &sum) || !tli_add_u64(sum, s->leaf_cost, &sum) ||
            !tli_add_u64(sum, s->back_cost, &sum)) return 0;
    }
    return sum < UINT64_MAX / 4 / (uint64_t)(pc->stage_count + 1);
}

static tl_result tli_chain_init(tl_env *env, const tl_graph *graph, tli_chain *pc) {
    tl_result result;
    int32_t id, i;
    tli_zero(pc, sizeof *pc);
    pc->env = env;
    pc->graph = graph;
    result = tli_chain_alloc_graph(pc);
    if (result) return result;
    tli_chain_find_ends(pc);
    pc->stage_count = tli_chain_join_stages(pc);
    result = tli_chain_alloc_stages(pc);
    if (result) return result;
    for (id = graph->node_count; id-- > 0;) pc->stages[pc->stage_of[id]].first = id;
    for (id = 0; id < graph->node_count; id++) pc->stages[pc->stage_of[id]].last = id;
    tli_chain_read_tensors(pc);
    tli_chain_mark_nodes(pc, TLI_CHAIN_ADVANCE);
    tli_chain_mark_nodes(pc, TLI_CHAIN_LEAF);
    for (i = 0; i < pc->stage_count; i++) tli_chain_read_stage(pc, i);
    for (i = 0; i < pc->stage_count; i++) tli_chain_read_backwards(pc, i);
    tli_chain_find_same(pc);
    return tli_chain_is_countable(pc) ? TL_OK : TL_ERROR_OVERFLOW;
}

// -- chain: curves --

// One way to reverse a segment: curve a with `shift` more bytes, then curve b (0 = none).
typedef struct tli_chain_way {
    const tli_chain_curve *a, *b;
    uint64_t shift, least, cost;    // least: bytes that it takes in any case
} tli_chain_way;

static tli_chain_curve *tli_chain_curve_of(const tli_chain *pc, int32_t first, int32_t last) {
    return &pc->curves[(int64_t)first * pc->stage_count + last];
}

static uint64_t *tli_chain_least_of(const tli_chain *pc, int32_t first, int32_t last) {
    return &pc->least[(int64_t)first * pc->stage_count + last];
}

static int tli_chain_is_planned(const tli_chain *pc, int32_t first, int32_t last) {
    return last - first < pc->grid[last];
}

// The step of a curve that holds at so many bytes; -1 = none does.
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

// The ways of a segment: first the leaf or save, then by first stage of the later part.
static int tli_chain_next_way(const tli_chain *pc, int32_t first, int32_t last, int32_t split,
                              uint64_t *advanced, uint64_t *peak, tli_chain_way *way) {
    const tli_chain_stage *s = &pc->stages[first], *t = &pc->stages[last];
    way->b = NULL;
    if (split == first) {
        uint64_t forward = s->save_bytes + t->held_bytes;
        *advanced = *peak = 0;
        way->a = tli_chain_curve_of(pc, first + 1, last);
        way->shift = s->kept_bytes;
        way->least = forward > s->back_bytes ? forward : s->back_bytes;
        way->cost = s->save_cost + s->back_cost;
        return tli_chain_is_planned(pc, first + 1, last);
    }
    s = &pc->stages[split - 1];
    *advanced += s->advance_cost;
    if (split - 1 == first) *peak = s->stay_bytes;
    else if (s->go_bytes > *peak) *peak = s->go_bytes;
    way->a = tli_chain_curve_of(pc, split, last);
    way->b = tli_chain_curve_of(pc, first, split - 1);
    way->shift = pc->stages[split].in_bytes;
    way->least = *peak + t->held_bytes;
    way->cost = *advanced;
    return tli_chain_is_planned(pc, first, split - 1) && tli_chain_is_planned(pc, split, last);
}

// A walk along the sum of two curves.
typedef struct tli_chain_walk {
    const tli_chain_point *a, *a_end, *b, *b_end;  // the steps that hold; b 0 = none
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

// To the next step of either; 0 = there is none.
static int tli_chain_walk_on(tli_chain_walk *walk) {
    uint64_t a = walk->a + 1 < walk->a_end ? walk->a[1].bytes + walk->shift : UINT64_MAX;
    uint64_t b = walk->b && walk->b + 1 < walk->b_end ? walk->b[1].bytes : UINT64_MAX;
    walk->bytes = a < b ? a : b;
    if (walk->bytes == UINT64_MAX) return 0;
    if (a == walk->bytes) walk->a++;
    if (b == walk->bytes) walk->b++;
    return 1;
}

static int tli_chain_reserve(tli_chain *pc, tli_chain_list *list, int64_t count) {
    void *points = list->points;
    if (pc->failed || !tli_grow(pc->env, &points, &list->capacity, list->count, count, sizeof *list->points)) {
        pc->failed = 1;
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

// Where the way first costs less than the curve under way; 0 = nowhere.
static int tli_chain_finds_better(tli_chain *pc, const tli_chain_way *way, uint64_t limit,
                                  tli_chain_walk *walk) {
    const tli_chain_point *best, *end;
    tli_chain_curve curve;
    uint64_t least;
    int32_t step;
    if (!tli_chain_begin_walk(way, walk) || walk->bytes > limit) return 0;
    curve.points = pc->best.points;
    curve.count = pc->best.count;
    step = tli_chain_find_step(&curve, walk->bytes);
    if (step < 0) return 1;
    end = pc->best.points + pc->best.count;
    least = walk->cost + walk->a_end[-1].cost + (walk->b ? walk->b_end[-1].cost : 0);
    if (least >= end[-1].cost && least >= pc->best.points[step].cost) return 0;
    for (best = pc->best.points + step;;) {
        pc->work++;
        if (tli_chain_walk_cost(walk) < best->cost) return 1;
        if (best->cost <= least || !tli_chain_walk_on(walk) || walk->bytes > limit) return 0;
        while (best + 1 < end && best[1].bytes <= walk->bytes) best++;
    }
}

// The lower one of the curve under way and of a way.
static void tli_chain_add_way(tli_chain *pc, const tli_chain_way *way, uint64_t limit) {
    tli_chain_list swap;
    tli_chain_walk walk;
    int32_t at;
    int more = 1;
    uint64_t cost = UINT64_MAX;
    if (!tli_chain_finds_better(pc, way, limit, &walk)) return;
    if (!tli_chain_reserve(pc, &pc->next,
                           (int64_t)pc->best.count + way->a->count + (way->b ? way->b->count : 0)))
        return;
    for (at = 0; at < pc->best.count && pc->best.points[at].bytes < walk.bytes; at++)
        pc->next.points[at] = pc->best.points[at];
    pc->next.count = at;
    while (more || at < pc->best.count) {
        uint64_t bytes = more ? walk.bytes : UINT64_MAX;
        pc->work++;
        if (at < pc->best.count && pc->best.points[at].bytes <= bytes) {
            tli_chain_put_point(&pc->next, pc->best.points[at].bytes, pc->best.points[at].cost);
            at++;
            continue;
        }
        cost = tli_chain_walk_cost(&walk);
        tli_chain_put_point(&pc->next, bytes, cost);
        more = tli_chain_walk_on(&walk) && walk.bytes <= limit;
    }
    swap = pc->best;
    pc->best = pc->next;
    pc->next = swap;
}

// Leave out steps that save little: the first and the last stay, so what fits and what is cheapest do.
static void tli_chain_thin(tli_chain *pc, int32_t most) {
    tli_chain_point *p = pc->best.points;
    uint64_t apart;
    int32_t at, count = 1, last = pc->best.count - 1;
    if (!most || pc->best.count <= most) return;
    apart = (p[0].cost - p[last].cost) / (uint64_t)most;
    for (at = 1; at < last; at++)
        if (p[count - 1].cost - p[at].cost > apart) p[count++] = p[at];
    p[count++] = p[last];
    pc->best.count = count;
}

// Leave out the steps that fewer bytes than these alone would use.
static void tli_chain_cut_below(tli_chain_list *list, uint64_t low) {
    int32_t at, first = 0;
    while (first + 1 < list->count && list->points[first + 1].bytes <= low) first++;
    for (at = first; at < list->count && first; at++) list->points[at - first] = list->points[at];
    list->count -= first;
}

// Move the curve under way to where it stays.
static void tli_chain_keep_curve(tli_chain *pc, tli_chain_curve *curve) {
    int32_t i, count = pc->best.count;
    curve->count = 0;
    if (!count) return;
    if (pc->point_count > TLI_CHAIN_MOST_POINTS - count) { pc->over = 1; return; }
    if (pc->free_count < count) {
        int32_t points = count > TLI_CHAIN_BLOCK ? count : TLI_CHAIN_BLOCK;
        uint64_t items = (uint64_t)points + 1;  // the first holds the list
        tli_chain_block *block = (tli_chain_block *)tli_alloc_array(pc->env, items, sizeof(tli_chain_point));
        if (!block) { pc->failed = 1; return; }
        block->next = pc->blocks;
        pc->blocks = block;
        pc->free_points = (tli_chain_point *)(void *)block + 1;
        pc->free_count = points;
    }
    for (i = 0; i < count; i++) pc->free_points[i] = pc->best.points[i];
    curve->points = pc->free_points;
    curve->count = count;
    pc->free_points += count;
    pc->free_count -= count;
    pc->point_count += count;
}

// Where the same stages stand elsewhere in the chain, earlier: their curve; else 0.
static int tli_chain_find_twin(const tli_chain *pc, int32_t first, int32_t last, int32_t *twin_last) {
    if (last - first >= pc->same_count[first]) return -1;
    *twin_last = pc->same_from[first] + last - first;
    return tli_chain_is_planned(pc, pc->same_from[first], *twin_last) ? pc->same_from[first] : -1;
}

static void tli_chain_find_curve(tli_chain *pc, int32_t first, int32_t last) {
    tli_chain_curve *curve = tli_chain_curve_of(pc, first, last);
    const tli_chain_stage *s = &pc->stages[first];
    uint64_t advanced = 0, peak = 0, limit;
    int32_t split, twin_last, twin = tli_chain_find_twin(pc, first, last, &twin_last);
    int is_final = pc->most_points && last == pc->stage_count - 1;
    tli_chain_way way;
    if (twin >= 0) { *curve = *tli_chain_curve_of(pc, twin, twin_last); return; }
    curve->count = pc->best.count = 0;
    if (s->in_bytes > pc->budget) return;
    limit = pc->budget - s->in_bytes;
    if (is_final && limit > pc->high[first]) limit = pc->high[first];
    if (first == last) {
        if (s->leaf_bytes > limit || !tli_chain_reserve(pc, &pc->best, 1)) return;
        tli_chain_put_point(&pc->best, s->leaf_bytes, s->leaf_cost);
    }
    for (split = first; split <= last && first < last; split++) {
        int exists = tli_chain_next_way(pc, first, last, split, &advanced, &peak, &way);
        if (split > first && way.least > limit) break;
        if (exists) tli_chain_add_way(pc, &way, limit);
    }
    if (is_final) tli_chain_cut_below(&pc->best, pc->low[first]);
    tli_chain_thin(pc, is_final ? pc->most_final : pc->most_points);
    tli_chain_keep_curve(pc, curve);
}

// All curves that the grid asks for of segments that end before stage `end`, the shorter ones before those that
// they are parts of.
static void tli_chain_find_curves(tli_chain *pc, int32_t end) {
    int32_t first, last;
    for (last = 0; last < end; last++)
        for (first = last; first >= 0 && tli_chain_is_planned(pc, first, last); first--) {
            tli_chain_find_curve(pc, first, last);
            if (pc->work > pc->work_limit) pc->over = 1;
            if (pc->failed || pc->over) return;
        }
}

// The least bytes of every segment: the same ways, the larger part counts.
static uint64_t tli_chain_find_least(tli_chain *pc) {
    int32_t first, last, split;
    for (last = 0; last < pc->stage_count; last++)
        for (first = last; first >= 0 && tli_chain_is_planned(pc, first, last); first--) {
            uint64_t least = first == last ? pc->stages[first].leaf_bytes : UINT64_MAX, advanced = 0, peak = 0;
            tli_chain_way way;
            for (split = first; split <= last && first < last; split++) {
                uint64_t bytes, part;
                if (!tli_chain_next_way(pc, first, last, split, &advanced, &peak, &way)) continue;
                bytes = way.least;
                part = *tli_chain_least_of(pc, split == first ? first + 1 : split, last) + way.shift;
                if (part > bytes) bytes = part;
                if (way.b) part = *tli_chain_least_of(pc, first, split - 1);
                if (part > bytes) bytes = part;
                if (bytes < least) least = bytes;
            }
            *tli_chain_least_of(pc, first, last) = least;
        }
    return *tli_chain_least_of(pc, 0, pc->stage_count - 1);
}

// -- chain: steps --

// last -1: run the backwards; -2: drop the input.
typedef struct tli_chain_job { int32_t first, last; uint64_t bytes; } tli_chain_job;

// The cheapest way of a segment within so many bytes: its split; first = save; -1 = leaf.
static int32_t tli_chain_choose(const tli_chain *pc, int32_t first, int32_t last, uint64_t bytes) {
    uint64_t advanced = 0, peak = 0, best = UINT64_MAX;
    int32_t split, chosen = -1;
    tli_chain_way way;
    for (split = first; split <= last && first < last; split++) {
        uint64_t a, b = 0;
        if (!tli_chain_next_way(pc, first, last, split, &advanced, &peak, &way)) continue;
        if (way.least > bytes || way.shift > bytes) continue;
        a = tli_chain_cost_at(way.a, bytes - way.shift);
        if (way.b) b = tli_chain_cost_at(way.b, bytes);
        if (a == UINT64_MAX || b == UINT64_MAX || way.cost + a + b >= best) continue;
        best = way.cost + a + b;
        chosen = split;
    }
    return chosen;
}

static void tli_chain_drop_input(const tli_chain *pc, int32_t stage, tli_steps *steps) {
    const tl_node *node = &pc->graph->nodes[pc->stages[stage].first - 1];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (pc->kinds[i] & TLI_CHAIN_OUT) tli_add_tensor_step(steps, pc->graph, TL_STEP_DROP, i);
}

static void tli_chain_push_job(tli_chain_job *jobs, int32_t *count, int32_t first, int32_t last,
                               uint64_t bytes) {
    jobs[*count].first = first;
    jobs[*count].last = last;
    jobs[(*count)++].bytes = bytes;
}

// Reverse all stages: the segments that are left to do stand on a stack.
static tl_result tli_chain_add_steps(tli_chain *pc, tli_steps *steps) {
    uint64_t most = 3 * (uint64_t)pc->stage_count + 3;
    tli_chain_job *jobs = (tli_chain_job *)tli_alloc_array(pc->env, most, sizeof *jobs);
    int32_t count = 0, split, i;
    if (!jobs) return TL_ERROR_NO_MEMORY;
    tli_chain_push_job(jobs, &count, 0, pc->stage_count - 1, pc->budget);
    while (count) {
        tli_chain_job job = jobs[--count];
        if (job.last == -1) { tli_chain_run(pc, job.first, TLI_CHAIN_RUN_BACK, 0, steps); continue; }
        if (job.last == -2) { tli_chain_drop_input(pc, job.first, steps); continue; }
        split = tli_chain_choose(pc, job.first, job.last, job.bytes);
        if (split < 0) {
            tli_chain_run(pc, job.first, TLI_CHAIN_RUN_LEAF, 0, steps);
        } else if (split == job.first) {
            tli_chain_run(pc, job.first, TLI_CHAIN_RUN_SAVE, 0, steps);
            tli_chain_push_job(jobs, &count, job.first, -1, 0);
            tli_chain_push_job(jobs, &count, job.first + 1, job.last, job.bytes - pc->stages[split].kept_bytes);
        } else {
            for (i = job.first; i < split; i++)
                tli_chain_run(pc, i, TLI_CHAIN_RUN_ADVANCE, i > job.first, steps);
            tli_chain_push_job(jobs, &count, job.first, split - 1, job.bytes);
            tli_chain_push_job(jobs, &count, split, -2, 0);
            tli_chain_push_job(jobs, &count, split, job.last, job.bytes - pc->stages[split].in_bytes);
        }
    }
    tli_release(pc->env, jobs);
    return steps->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// -- chain: from graph to plan --

static void tli_chain_forget_curves(tli_chain *pc) {
    tli_chain_free_blocks(pc);
    tli_zero(pc->curves, (size_t)pc->stage_count * (size_t)pc->stage_count * sizeof *pc->curves);
    pc->point_count = 0;
    pc->free_count = pc->over = 0;
}

// Which segments are planned. width 0: all. Else segments of up to `width` stages may end anywhere, of up to
// twice as many at every second stage, and so on: of two neighbours the one that hands over less.
static void tli_chain_set_grid(tli_chain *pc, int32_t width) {
    int32_t i, last, other, length = width ? width : pc->stage_count, most;
    for (i = 0; i < pc->stage_count; i++) pc->grid[i] = length;
    for (; length < pc->stage_count; length = most) {
        most = length > pc->stage_count / 2 ? pc->stage_count : 2 * length;
        for (i = pc->stage_count - 2, last = -1; i >= 0; i--) {
            if (pc->grid[i] < length) continue;
            if (last < 0) { last = i; continue; }
            other = pc->stages[i + 1].in_bytes < pc->stages[last + 1].in_bytes ? i : last;
            pc->grid[other] = most;
            last = -1;
        }
        pc->grid[pc->stage_count - 1] = most;
    }
}

// Whether all segments may be planned within the work: a way takes some 250 steps where sizes are random.
static int tli_chain_may_be_exact(const tli_chain *pc, uint64_t work_limit) {
    uint64_t ways = 0, length;
    int32_t i;
    for (i = 0; i < pc->stage_count; i++) {
        length = (uint64_t)(pc->stage_count - i);
        ways += length * (length + 1) / 2;
        length = (uint64_t)pc->same_count[i];
        ways -= length * (length + 1) / 2;
    }
    return ways < work_limit / 512;
}

// A long chain keeps many checkpoints on the way to its last stage, and what is left out of a curve at each of
// them adds up. So the curves that end with the last stage are looked at again, at more steps in less room:
// near the bytes that a good schedule leaves where it comes by. One such schedule is the best so far; another
// is the shortest path from stage to stage at a price per byte that makes it fit.

// The bytes that a schedule leaves at stages first..next-1: on the line from what it leaves at both ends.
static void tli_chain_set_room(tli_chain *pc, int32_t first, int32_t next, uint64_t bytes, uint64_t rest) {
    uint64_t step = (bytes - rest) / (uint64_t)(next - first);
    int32_t i;
    for (i = first; i < next; i++) pc->low[i] = pc->high[i] = bytes - (uint64_t)(i - first) * step;
}

static uint64_t tli_chain_price_of(const tli_chain *pc, int32_t split, int32_t first) {
    return split == first ? pc->stages[first].kept_bytes : pc->stages[split].in_bytes;
}

static void tli_chain_follow_best(tli_chain *pc) {
    int32_t first = 0, next, n = pc->stage_count;
    uint64_t bytes = pc->budget, rest;
    for (; first < n; first = next, bytes = rest) {
        int32_t split = tli_chain_choose(pc, first, n - 1, bytes);
        next = split < 0 ? n : split == first ? first + 1 : split;
        rest = split < 0 ? bytes : bytes - tli_chain_price_of(pc, split, first);
        tli_chain_set_room(pc, first, next, bytes, rest);
    }
}

// Scaled so that bytes take 20 bits and costs 40.
typedef struct tli_chain_price { uint64_t per_byte; int32_t byte_shift, cost_shift; } tli_chain_price;

static uint64_t tli_chain_pay(const tli_chain_price *price, uint64_t bytes) {
    return (bytes >> price->byte_shift) * price->per_byte >> 16 << price->cost_shift;
}

// The shortest path at a price, where each stage leaves what pc->low says: the split of each stage, else n.
// Returns the bytes that the path holds in the end; UINT64_MAX = there is none.
static uint64_t tli_chain_find_path(tli_chain *pc, const tli_chain_price *price) {
    int32_t first, split, n = pc->stage_count;
    uint64_t held = 0;
    pc->path_costs[n - 1] = pc->stages[n - 1].leaf_cost;
    pc->path[n - 1] = n;
    for (first = n - 1; first-- > 0;) {
        uint64_t advanced = 0, peak = 0, left = pc->low[first];
        tli_chain_way way;
        pc->path_costs[first] = UINT64_MAX;
        for (split = first; split < n; split++) {
            uint64_t sum, before = 0, after = pc->path_costs[split == first ? first + 1 : split];
            int exists = tli_chain_next_way(pc, first, n - 1, split, &advanced, &peak, &way);
            if (way.least > left && split > first) break;
            if (!exists || way.least > left || after == UINT64_MAX) continue;
            pc->work += 4;
            if (way.b) before = tli_chain_cost_at(way.b, left);
            if (before == UINT64_MAX) continue;
            sum = way.cost + before + after + tli_chain_pay(price, tli_chain_price_of(pc, split, first));
            if (sum >= pc->path_costs[first]) continue;
            pc->path_costs[first] = sum;
            pc->path[first] = split;
        }
    }
    if (pc->path_costs[0] == UINT64_MAX) return UINT64_MAX;
    for (first = 0; first < n - 1; first = split == first ? first + 1 : split) {
        split = pc->path[first];
        held += tli_chain_price_of(pc, split, first);
    }
    return held;
}

// What the path leaves at each stage, into pc->low and pc->high.
static void tli_chain_follow_path(tli_chain *pc) {
    int32_t first, next, n = pc->stage_count;
    uint64_t bytes = pc->budget, price;
    for (first = 0; first < n; first = next) {
        int32_t split = pc->path[first];
        next = split == first ? first + 1 : split;
        price = first == n - 1 ? 0 : tli_chain_price_of(pc, split, first);
        if (price > bytes) price = bytes;
        tli_chain_set_room(pc, first, next, bytes, bytes - price);
        bytes -= price;
    }
}

// The dearest path that holds no more than there is beside a reserve for the last stages, by bisection of
// the price; a few times, because what segments cost depends on what the path leaves. 0 = none.
static int tli_chain_price_path(tli_chain *pc, uint64_t reserve) {
    tli_chain_price price;
    uint64_t most = pc->budget, low, high, total = 0;
    int32_t i, round, n = pc->stage_count;
    price.byte_shift = price.cost_shift = 0;
    while (most >> price.byte_shift >> 20) price.byte_shift++;
    for (i = 0; i < n; i++) total += pc->stages[i].save_cost;
    while (total >> price.cost_shift >> 40) price.cost_shift++;
    if (reserve > most) return 0;
    most -= reserve;
    for (i = 0; i < n; i++) pc->low[i] = pc->budget;
    for (round = 0; round < 3; round++) {
        for (low = 0, high = (uint64_t)1 << 43; high - low > 1 + low / 4096;) {
            price.per_byte = low + (high - low) / 2;
            if (low && high / low > 4) price.per_byte = low * 2;
            if (!low && high > 4096) price.per_byte = high >> 6;
            if (tli_chain_find_path(pc, &price) <= most) high = price.per_byte; else low = price.per_byte;
        }
        price.per_byte = high;
        if (tli_chain_find_path(pc, &price) > most) return 0;
        tli_chain_follow_path(pc);
    }
    return 1;
}

// Passes over the curves that end with the last stage, around what pc->low says, with less and less room.
static void tli_chain_refine(tli_chain *pc, uint64_t room, uint64_t *cost) {
    int32_t pass, i, n = pc->stage_count;
    const tli_chain_curve *root = tli_chain_curve_of(pc, 0, n - 1);
    for (pass = 0; pass < TLI_CHAIN_PASSES && !pc->failed; pass++, room = room / 4 + 1) {
        for (i = 0; i < n; i++) {
            pc->low[i] = pc->low[i] > room ? pc->low[i] - room : 0;
            pc->high[i] = pc->high[i] < UINT64_MAX - room ? pc->high[i] + room : UINT64_MAX;
        }
        for (i = n - 1; i >= 0 && !pc->failed; i--) tli_chain_find_curve(pc, i, n - 1);
        if (!root->count) break;
        if (root->points[root->count - 1].cost < *cost) {
            *cost = root->points[root->count - 1].cost;
            for (i = 0; i < n; i++) pc->final[i] = *tli_chain_curve_of(pc, i, n - 1);
        }
        tli_chain_follow_best(pc);
    }
}

// First along paths, which leave more and more for the last stages until they can be followed. Where there is
// little room prices say little: then in all the room as well.
static void tli_chain_search_final(tli_chain *pc) {
    uint64_t cost = UINT64_MAX, reserve = pc->stages[pc->stage_count - 1].leaf_bytes, more = reserve / 2 + 1;
    int32_t i, tries, n = pc->stage_count;
    for (i = 0; i < n; i++) {
        pc->final[i].count = 0;
        if (pc->stages[i].go_bytes > more) more = pc->stages[i].go_bytes;
    }
    for (tries = 0; tries < 5 && cost == UINT64_MAX; tries++, reserve += more)
        if (tli_chain_price_path(pc, reserve)) tli_chain_refine(pc, pc->budget / 32, &cost);
    if (tries > 1 && !pc->failed) {
        for (i = 0; i < n; i++) { pc->low[i] = 0; pc->high[i] = UINT64_MAX; }
        tli_chain_refine(pc, pc->budget / 4, &cost);
    }
    for (i = 0; i < n; i++) *tli_chain_curve_of(pc, i, n - 1) = pc->final[i];
}

// The curves: all where the work allows, else of fewer segments with fewer steps. 1 = all.
static int tli_chain_solve(tli_chain *pc, uint64_t work_limit) {
    static const int32_t widths[] = { 10, 6, 4, 2 }, points[] = { 12, 12, 8, 8 };
    int32_t i;
    pc->work_limit = work_limit / 2;
    pc->most_points = 0;
    tli_chain_set_grid(pc, 0);
    if (tli_chain_may_be_exact(pc, work_limit)) {
        tli_chain_find_curves(pc, pc->stage_count);
        if (!pc->over) return 1;
    }
    for (i = 0; i < 4 && !pc->failed; i++) {
        tli_chain_forget_curves(pc);
        tli_chain_set_grid(pc, widths[i]);
        pc->most_points = points[i];
        pc->most_final = TLI_CHAIN_FINAL_POINTS;
        pc->work_limit = i < 3 ? pc->work + work_limit / 2 : UINT64_MAX;
        tli_chain_find_curves(pc, pc->stage_count - 1);
        if (!pc->over) break;
    }
    if (!pc->failed) tli_chain_search_final(pc);
    return 0;
}

// -- chain: equal layers --

// Layers of equal bytes and costs whose backwards read what forward read, with the same scratch in either:
// Revolve's chain. Of n > 1 layers of b bytes and w bytes of scratch, three tensors at a time are no
// checkpoints: two of an advance and the gradient behind it, or two gradients and what a backward reads. The
// input is the first of the c slots of Revolve, so (c + 2) b + w bytes beside the input are c slots. What the
// binomial schedule costs then is the optimum over all schedules; the tests hold it against the exact search.
static int tli_is_revolve_chain(const tl_graph *graph) {
    const tl_node *one = &graph->nodes[graph->node_count - 1];
    int32_t id;
    if (graph->node_count < 3 || !graph->nodes[0].is_input || graph->nodes[0].output_count != 1) return 0;
    for (id = 1; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        const tl_node_output *out = &graph->outputs[node->first_output];
        if (!node->has_grad || node->keep || node->input_count != 1 || node->output_count != 1) return 0;
        if (graph->inputs[node->first_input].tensor != graph->nodes[id - 1].first_output) return 0;
        if (!graph->inputs[node->first_input].needed || out->needed || node->inplace >= 0) return 0;
        if (node->saved_bytes || node->fwork_bytes != one->fwork_bytes) return 0;
        if (node->bwork_bytes != one->fwork_bytes || !out->bytes) return 0;
        if (out->bytes != graph->outputs[one->first_output].bytes) return 0;
        if (node->fwd_cost != one->fwd_cost) return 0;
    }
    return 1;
}

// The slots that a budget of bytes makes; 0 = none: no schedule fits in less than *least, which the last
// backward takes.
static uint64_t tli_find_slots(const tl_graph *graph, uint64_t budget, uint64_t *least) {
    const tl_node *one = &graph->nodes[graph->node_count - 1];
    uint64_t beside = graph->outputs[graph->nodes[0].first_output].bytes + one->fwork_bytes, tensors;
    *least = beside + 3 * graph->outputs[one->first_output].bytes;
    if (budget < beside) return 0;
    tensors = (budget - beside) / graph->outputs[one->first_output].bytes;
    return tensors > 2 ? tensors - 2 : 0;
}

// The binomial schedule of so many slots.
static tl_result tli_revolve(tl_env *env, const tl_graph *graph, uint64_t slot_count, tli_steps *steps) {
    int32_t most = slot_count < (uint64_t)graph->node_count ? (int32_t)slot_count : graph->node_count;
    tli_unit_chain chain;
    int32_t *slots = (int32_t *)tli_alloc_array(env, (uint64_t)most, sizeof *slots);
    chain.graph = graph;
    chain.list = tli_steps_of(env);
    chain.reached = 0;
    chain.list.failed = !slots;
    if (slots) tli_reverse_chain(&chain, most, slots);
    tli_release(env, slots);
    *steps = chain.list;
    return steps->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// What planning stages found out, bytes without base.
typedef struct tli_chain_result {
    uint64_t cost, least, work;     // least: bytes, where nothing fits
    int32_t  exact;                 // 1 = no persistent schedule costs less, or fits in less than the least
} tli_chain_result;

// The steps of the curves, or where nothing fits those of the least budget.
static tl_result tli_chain_finish(tli_chain *pc, int feasible, tli_steps *steps, tli_chain_result *found) {
    const tli_chain_curve *curve = tli_chain_curve_of(pc, 0, pc->stage_count - 1);
    tl_result result;
    int32_t i;
    feasible = feasible && curve->count;
    if (!feasible && !pc->failed) {
        pc->budget = tli_chain_find_least(pc);
        found->least = pc->budget + pc->pinned_bytes;
        pc->most_points = pc->most_final = TLI_CHAIN_LEAST_POINTS;
        tli_chain_forget_curves(pc);
        pc->work_limit = UINT64_MAX;
        for (i = 0; i < pc->stage_count; i++) { pc->low[i] = 0; pc->high[i] = UINT64_MAX; }
        tli_chain_find_curves(pc, pc->stage_count);
    }
    if (pc->failed) return TL_ERROR_NO_MEMORY;
    found->cost = curve->points[curve->count - 1].cost;
    result = tli_chain_add_steps(pc, steps);
    return !result && !feasible ? TL_ERROR_INFEASIBLE : result;
}

// The cheapest persistent schedule within the budget. TL_ERROR_INFEASIBLE, without a sentence: none was
// found; steps are then those of the least budget, or none where the last node takes it.
static tl_result tli_remat_chain(tl_env *env, const tl_graph *graph, uint64_t budget, uint64_t work_limit,
                                 tli_steps *steps, tli_chain_result *found) {
    tli_chain pc;
    tl_result result;
    tli_zero(found, sizeof *found);
    *steps = tli_steps_of(env);
    if (tli_is_revolve_chain(graph)) {
        uint64_t slots = tli_find_slots(graph, budget, &found->least);
        found->exact = 1;
        return slots ? tli_revolve(env, graph, slots, steps) : TL_ERROR_INFEASIBLE;
    }
    result = tli_chain_init(env, graph, &pc);
    if (!result) {
        int feasible = budget >= pc.pinned_bytes;
        pc.budget = feasible ? budget - pc.pinned_bytes : 0;
        found->exact = tli_chain_solve(&pc, work_limit);
        result = tli_chain_finish(&pc, feasible, steps, found);
        found->work = pc.work;
    }
    tli_chain_free(&pc);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

