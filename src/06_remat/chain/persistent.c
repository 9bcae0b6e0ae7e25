#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- chain: the optimum over persistent schedules --
//
// The graph is cut into stages: a stage ends where later nodes read only the outputs of one node, and graph
// inputs. A segment is a run of stages i..t whose input is resident and stays until the segment has been
// reversed, that is, until all its backwards have run. It is reversed in one of three ways:
//   leaf     i = t: the tensors that the backwards of the stage read are made, then the backwards run. In
//            fewer bytes, some of them are dropped for the time of a peak and made once more after it
//   save     the stage runs and keeps what its backwards read; i+1..t is reversed, then its backwards run
//   advance  stages i..k-1 run and keep nothing but the input of k; k..t is reversed, then i..k-1
// Each of these is simulated once for each stage, call by call, so that all bytes are exact. The cost of
// reversing a segment is a step function of the bytes that it may hold; a curve is the list of its steps. It
// is the minimum over sums of shifted curves of shorter segments; memory is not rounded to slots.
// A stage with a node that may run once only is never advanced: it is saved when it runs, or is the last leaf.
// Two departures from the paper: a leaf makes again only what its backwards read, and outputs of a stage that
// its own backwards do not read are dropped before these.

#define TLI_CHAIN_MOST_STAGES 1024     // of a graph with more, neighbours are joined
#define TLI_CHAIN_WORK UINT64_C(400000000)  // default work limit
#define TLI_CHAIN_FEW_STAGES 160       // so many are probably planned exactly, more of them only with luck
#define TLI_CHAIN_BLOCK 4096           // points of curves in one allocation
#define TLI_CHAIN_MOST_POINTS 8000000  // of all curves: 128 MB
#define TLI_CHAIN_FINAL_POINTS 120     // of a curve that ends with the last stage, if not all steps are kept
#define TLI_CHAIN_PASSES 4             // over the curves that end with the last stage
#define TLI_CHAIN_LEAST_POINTS 4       // of a curve when only the least budget is wanted
#define TLI_CHAIN_LEAVES 8             // ways to run a leaf, each with one more absence than the one before
#define TLI_CHAIN_LEAF_NODES 32        // a larger stage has one way
#define TLI_CHAIN_PERIOD 12            // stages back in which one of equal structure is looked for

// A tensor is not resident while the backward of a node, and what is made for it, runs. Both are counted from
// the first of their stage.
typedef struct tli_chain_absence { int32_t tensor, node; } tli_chain_absence;

typedef struct tli_chain_point { uint64_t bytes, cost; } tli_chain_point;  // cost from so many bytes on

typedef struct tli_chain_stage {
    int32_t  first, last;           // nodes
    uint64_t in_bytes;              // of its input: what a checkpoint here costs
    uint64_t held_bytes;            // beside every segment that ends here: gradients, results of the last stage
    uint64_t kept_bytes;            // by save: what its backwards read, and its outputs
    uint64_t advance_cost, save_cost, back_cost;
    uint64_t stay_bytes;            // peak of an advance whose input stays; the input does not count
    uint64_t go_bytes;              // peak of an advance that drops its input; the input counts
    uint64_t save_bytes, back_bytes;  // peaks; the input does not count
    tli_chain_point leaves[TLI_CHAIN_LEAVES];  // by the number of absences; bytes descend, costs do not
    tli_chain_absence absences[TLI_CHAIN_LEAVES];
    uint64_t leaf_least;            // the fewest of these bytes
    int32_t  leaf_count;
    int32_t  once;                  // 1 = a node may run once only
} tli_chain_stage;

// Bytes ascend, costs descend. No points: the segment does not fit.
typedef struct tli_chain_curve { const tli_chain_point *points; int32_t count; } tli_chain_curve;

typedef struct tli_chain_list { tli_chain_point *points; int32_t count, capacity; } tli_chain_list;

typedef struct tli_chain_block { struct tli_chain_block *next; } tli_chain_block;

typedef struct tli_chain {
    tl_env         *env;
    const tl_graph *graph;
    uint64_t        budget, pinned_bytes;  // pinned: graph inputs
    tli_chain_stage   *stages;  int32_t stage_count;
    int32_t        *stage_of;              // [node_count] number of its stage
    uint8_t        *marks;                 // [node_count] TLI_CHAIN_ADVANCE, TLI_CHAIN_LEAF
    uint8_t        *kinds;                 // [tensor_count] TLI_CHAIN_OUT and so on
    uint8_t        *here, *has_gradient;   // [tensor_count] resident, gradient live: while a part is simulated
    int32_t        *last_use;              // [tensor_count] the last call of the part that uses it
    int32_t        *calls;                 // [2 * node_count] of the part: 2 * node, + 1 = backward
    int32_t         call_count;
    tli_chain_curve   *curves;                // [stage_count][stage_count] first stage, last stage
    uint64_t       *least;                 // [stage_count][stage_count] least bytes of a segment
    int32_t        *grid;                  // [stage_count] stages of the longest segment planned that ends here
    int32_t        *same_from, *same_count;  // [stage_count] an earlier run of equal stages, and its length
    tli_chain_list     best, next;            // the curve being computed, and its next version
    tli_chain_block   *blocks;
    tli_chain_point   *free_points;  int32_t free_count;
    int64_t         point_count;
    int32_t         failed;                // 1 = no memory
    int32_t         most_points;           // of one curve; 0 = all: exact
    int32_t         most_final;            // the same for the curve of a segment that ends with the last stage
    uint64_t       *low, *high;            // [stage_count] range of bytes in which these curves are computed
    tli_chain_curve   *final;                 // [stage_count] these curves in the best pass so far
    int32_t         over;                  // 1 = work_limit or TLI_CHAIN_MOST_POINTS was reached
    uint64_t        work, work_limit;      // work_limit: of the present step; more than that: fewer curves
    uint64_t        most_work;             // of everything: what is known by then counts
    tli_remat_watch *watch;
} tli_chain;

enum { TLI_CHAIN_ADVANCE = 1, TLI_CHAIN_LEAF = 2 };  // marks of a node: the parts that run it
enum { TLI_CHAIN_OUT = 1, TLI_CHAIN_READ = 2, TLI_CHAIN_GRAD = 4, TLI_CHAIN_RESULT = 8, TLI_CHAIN_WANTED = 16 };
// Kinds of a tensor: read by a later stage; read by backwards of its own stage; part of its gradient comes from
// later stages; a result, which stays to the end; scratch of tli_chain_mark_nodes.

typedef enum tli_chain_part {
    TLI_CHAIN_RUN_ADVANCE,
    TLI_CHAIN_RUN_SAVE,
    TLI_CHAIN_RUN_BACK,
    TLI_CHAIN_RUN_LEAF
} tli_chain_part;

static int tli_chain_stops(const tli_chain *chain) {
    return chain->work > chain->most_work || tli_remat_stops(chain->watch, chain->work);
}

static void tli_chain_free_blocks(tli_chain *chain) {
    while (chain->blocks) {
        tli_chain_block *next = chain->blocks->next;
        tli_release(chain->env, chain->blocks);
        chain->blocks = next;
    }
}

static void tli_chain_free(tli_chain *chain) {
    tli_chain_free_blocks(chain);
    tli_release(chain->env, chain->stages);
    tli_release(chain->env, chain->stage_of);
    tli_release(chain->env, chain->marks);
    tli_release(chain->env, chain->kinds);
    tli_release(chain->env, chain->here);
    tli_release(chain->env, chain->has_gradient);
    tli_release(chain->env, chain->last_use);
    tli_release(chain->env, chain->calls);
    tli_release(chain->env, chain->curves);
    tli_release(chain->env, chain->least);
    tli_release(chain->env, chain->grid);
    tli_release(chain->env, chain->low);
    tli_release(chain->env, chain->high);
    tli_release(chain->env, chain->final);
    tli_release(chain->env, chain->same_from);
    tli_release(chain->env, chain->same_count);
    tli_release(chain->env, chain->best.points);
    tli_release(chain->env, chain->next.points);
}

// -- chain: stages --

// Set stage_of[] to 1 where a stage ends. A result stays to the end, so all nodes from the first result on are
// in one stage.
static void tli_chain_find_ends(tli_chain *chain) {
    const tl_graph *graph = chain->graph;
    int32_t id, i, farthest = -1, reach, computes = 0, *reader = chain->last_use;
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
        chain->stage_of[id] = computes && !node->is_input && farthest <= id;
        if (chain->stage_of[id]) computes = 0;
        for (i = node->first_output, reach = -1; i < node->first_output + node->output_count; i++)
            if (!node->is_input && reader[i] > reach) reach = reader[i];
        if (reach > farthest) farthest = reach;
    }
    for (; id < graph->node_count; id++) chain->stage_of[id] = 0;
    chain->stage_of[graph->node_count - 1] = 1;
}

static uint64_t tli_chain_out_bytes(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = 0;
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += graph->outputs[i].bytes;
    return sum;
}

// Join pairs of neighbouring stages, removing the end with more output bytes, until TLI_CHAIN_MOST_STAGES or
// fewer are left. Then stage_of[] becomes the number of the stage; returns how many there are.
static int32_t tli_chain_join_stages(tli_chain *chain) {
    int32_t id, count, last, other;
    for (;;) {
        for (id = count = 0; id < chain->graph->node_count; id++) count += chain->stage_of[id];
        if (count <= TLI_CHAIN_MOST_STAGES) break;
        for (id = 0, last = -1; id < chain->graph->node_count - 1; id++) {
            if (!chain->stage_of[id]) continue;
            if (last < 0) { last = id; continue; }
            other = tli_chain_out_bytes(chain->graph, id) > tli_chain_out_bytes(chain->graph, last) ? id : last;
            chain->stage_of[other] = 0;
            last = -1;
        }
    }
    for (id = count = 0; id < chain->graph->node_count; id++) {
        int32_t ends = chain->stage_of[id];
        chain->stage_of[id] = count;
        count += ends;
    }
    return count;
}

static void tli_chain_read_tensors(tli_chain *chain) {
    const tl_graph *graph = chain->graph;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[i].node];
        chain->kinds[i] = (uint8_t)((maker->has_grad && graph->outputs[i].needed ? TLI_CHAIN_READ : 0) |
                                 (maker->keep ? TLI_CHAIN_RESULT : 0));
        if (maker->is_input) chain->pinned_bytes += graph->outputs[i].bytes;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, maker = graph->outputs[tensor].node;
            if (graph->nodes[maker].is_input) continue;
            if (chain->stage_of[maker] == chain->stage_of[id]) {
                if (node->has_grad && graph->inputs[i].needed) chain->kinds[tensor] |= TLI_CHAIN_READ;
                continue;
            }
            chain->kinds[tensor] |= TLI_CHAIN_OUT;
            if (node->has_grad && graph->nodes[maker].has_grad) chain->kinds[tensor] |= TLI_CHAIN_GRAD;
        }
    }
}

// Mark the nodes that an advance runs (those that the outputs of the stage need), or those that a leaf runs
// (those that its backwards need, and those with a backward that no advance runs).
static void tli_chain_mark_nodes(tli_chain *chain, int32_t mark) {
    const tl_graph *graph = chain->graph;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) chain->kinds[i] &= (uint8_t)~TLI_CHAIN_WANTED;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int runs = 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            runs |= chain->kinds[i] & (mark == TLI_CHAIN_ADVANCE
                                        ? TLI_CHAIN_OUT | TLI_CHAIN_WANTED
                                        : TLI_CHAIN_READ | TLI_CHAIN_RESULT | TLI_CHAIN_WANTED);
        if (mark == TLI_CHAIN_LEAF && node->has_grad)
            runs |= node->saved_bytes || !(chain->marks[id] & TLI_CHAIN_ADVANCE);
        if (node->is_input || !runs) continue;
        chain->marks[id] |= (uint8_t)mark;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (chain->stage_of[graph->outputs[graph->inputs[i].tensor].node] == chain->stage_of[id])
                chain->kinds[graph->inputs[i].tensor] |= TLI_CHAIN_WANTED;
    }
}

// -- chain: the parts of a stage, simulated call by call --

typedef struct tli_chain_play {
    tli_chain     *chain;
    tli_chain_part part;
    int32_t     stage, goes;        // goes: 1 = the input counts, and is dropped after its last use
    tli_steps  *steps;              // NULL = only bytes and cost are wanted
    uint64_t    live, peak, cost;
    int32_t     node, peak_node;    // a leaf with absences: whose backward is next; the same at the peak
} tli_chain_play;

static void tli_chain_list_calls(tli_chain *chain, int32_t stage, tli_chain_part part) {
    const tli_chain_stage *s = &chain->stages[stage];
    int32_t id, mark = part == TLI_CHAIN_RUN_ADVANCE ? TLI_CHAIN_ADVANCE
                       : part == TLI_CHAIN_RUN_LEAF  ? TLI_CHAIN_LEAF
                       : part == TLI_CHAIN_RUN_SAVE  ? TLI_CHAIN_ADVANCE | TLI_CHAIN_LEAF
                                                     : 0;
    chain->call_count = 0;
    for (id = s->first; id <= s->last; id++)
        if (chain->marks[id] & mark) chain->calls[chain->call_count++] = 2 * id;
    if (part != TLI_CHAIN_RUN_BACK && part != TLI_CHAIN_RUN_LEAF) return;
    for (id = s->last; id >= s->first; id--)
        if (chain->graph->nodes[id].has_grad) chain->calls[chain->call_count++] = 2 * id + 1;
}

static void tli_chain_find_last_uses(tli_chain *chain) {
    const tl_graph *graph = chain->graph;
    int32_t at, i;
    for (at = 0; at < chain->call_count; at++) {
        const tl_node *node = &graph->nodes[chain->calls[at] / 2];
        int back = chain->calls[at] % 2;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (!back || graph->inputs[i].needed) chain->last_use[graph->inputs[i].tensor] = at;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!back || graph->outputs[i].needed) chain->last_use[i] = at;
    }
}

// Whether a tensor is still resident when the part is over.
static int tli_chain_stays(const tli_chain_play *play, int32_t tensor) {
    const tli_chain *chain = play->chain;
    int32_t maker = chain->graph->outputs[tensor].node, kind = chain->kinds[tensor];
    if (chain->graph->nodes[maker].is_input || kind & TLI_CHAIN_RESULT) return 1;
    if (chain->stage_of[maker] != play->stage) return !play->goes;
    return (play->part == TLI_CHAIN_RUN_ADVANCE && kind & TLI_CHAIN_OUT) ||
           (play->part == TLI_CHAIN_RUN_SAVE && kind & (TLI_CHAIN_OUT | TLI_CHAIN_READ));
}

static void tli_chain_drop(tli_chain_play *play, int32_t tensor) {
    tli_chain *chain = play->chain;
    chain->here[tensor] = 0;
    play->live -= chain->graph->outputs[tensor].bytes;
    if (play->steps) tli_add_tensor_step(play->steps, chain->graph, TL_STEP_DROP, tensor);
}

static void tli_chain_drop_used(tli_chain_play *play, int32_t at, int32_t tensor) {
    if (play->chain->here[tensor] && play->chain->last_use[tensor] == at && !tli_chain_stays(play, tensor))
        tli_chain_drop(play, tensor);
}

static void tli_chain_reach(tli_chain_play *play, uint64_t bytes) {
    if (play->live + bytes <= play->peak) return;
    play->peak = play->live + bytes;
    play->peak_node = play->node;
}

static void tli_chain_forward(tli_chain_play *play, int32_t id) {
    tli_chain *chain = play->chain;
    const tl_node *node = &chain->graph->nodes[id];
    int saves = node->saved_bytes && node->has_grad && play->part != TLI_CHAIN_RUN_ADVANCE, i;
    tl_step_kind kind = saves ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        play->live += chain->graph->outputs[i].bytes;
        chain->here[i] = 1;
    }
    if (saves) play->live += node->saved_bytes;
    tli_chain_reach(play, saves ? node->swork_bytes : node->fwork_bytes);
    play->cost += node->fwd_cost;
    if (play->steps) tli_add_step(play->steps, tli_step_of(kind, id, TL_ALL_OUTPUTS));
}

static void tli_chain_make_gradient(tli_chain_play *play, int32_t tensor) {
    const tl_node_output *output = &play->chain->graph->outputs[tensor];
    if (play->chain->has_gradient[tensor] || !play->chain->graph->nodes[output->node].has_grad) return;
    play->chain->has_gradient[tensor] = 1;
    play->live += output->bytes;
}

static void tli_chain_backward(tli_chain_play *play, int32_t id) {
    tli_chain *chain = play->chain;
    const tl_node *node = &chain->graph->nodes[id];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_chain_make_gradient(play, i);
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        tli_chain_make_gradient(play, chain->graph->inputs[i].tensor);
    tli_chain_reach(play, node->bwork_bytes);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        chain->has_gradient[i] = 0;
        play->live -= chain->graph->outputs[i].bytes;
    }
    play->live -= node->saved_bytes;
    play->cost += node->bwd_cost;
    if (play->steps) tli_add_step(play->steps, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
}

// Set what is resident before the part: the input, gradients from later stages, and what save kept.
static void tli_chain_begin(tli_chain_play *play) {
    tli_chain *chain = play->chain;
    const tl_graph *graph = chain->graph;
    const tli_chain_stage *s = &chain->stages[play->stage];
    int32_t back = play->part == TLI_CHAIN_RUN_BACK, i;
    int32_t first = graph->nodes[s->first ? s->first - 1 : 0].first_output;
    int32_t own = graph->nodes[s->first].first_output;
    int32_t end = graph->nodes[s->last].first_output + graph->nodes[s->last].output_count;
    for (i = first; i < end; i++) {
        int32_t kind = chain->kinds[i];
        chain->last_use[i] = -1;
        chain->has_gradient[i] = i >= own && play->part >= TLI_CHAIN_RUN_BACK && kind & TLI_CHAIN_GRAD ? 1 : 0;
        chain->here[i] = (i < own ? kind & TLI_CHAIN_OUT : back ? kind & TLI_CHAIN_READ : 0) ? 1 : 0;
        if (i < own) continue;
        if (chain->here[i]) play->live += graph->outputs[i].bytes;
        else if (back && kind & TLI_CHAIN_OUT && play->steps)
            tli_add_tensor_step(play->steps, graph, TL_STEP_DROP, i);
    }
    for (i = s->first; i <= s->last && back; i++)
        if (graph->nodes[i].has_grad) play->live += graph->nodes[i].saved_bytes;
    if (play->part >= TLI_CHAIN_RUN_BACK) play->live += s->held_bytes;
    if (play->goes) play->live += s->in_bytes;
}

// Simulate a part of a stage: its peak and its cost, and its steps if they are wanted.
static tli_chain_play tli_chain_run(tli_chain *chain, int32_t stage, tli_chain_part part, int32_t goes,
                                    tli_steps *steps) {
    const tl_graph *graph = chain->graph;
    const tli_chain_stage *s = &chain->stages[stage];
    tli_chain_play play;
    int32_t at, i, before = graph->nodes[s->first ? s->first - 1 : 0].first_output;
    tli_zero(&play, sizeof play);
    play.chain = chain;
    play.part = part;
    play.stage = stage;
    play.goes = goes;
    play.steps = steps;
    tli_chain_list_calls(chain, stage, part);
    tli_chain_begin(&play);
    tli_chain_find_last_uses(chain);
    for (i = before; i < graph->nodes[s->first].first_output; i++)
        tli_chain_drop_used(&play, -1, i);
    for (at = 0; at < chain->call_count; at++) {
        int32_t id = chain->calls[at] / 2;
        const tl_node *node = &graph->nodes[id];
        if (chain->calls[at] % 2) tli_chain_backward(&play, id); else tli_chain_forward(&play, id);
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            tli_chain_drop_used(&play, at, graph->inputs[i].tensor);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            tli_chain_drop_used(&play, at, i);
    }
    return play;
}

static void tli_chain_read_stage(tli_chain *chain, int32_t stage) {
    const tl_graph *graph = chain->graph;
    tli_chain_stage *s = &chain->stages[stage];
    tli_chain_play play;
    int32_t i, end = graph->nodes[s->last].first_output + graph->nodes[s->last].output_count;
    for (i = s->first; i <= s->last; i++) {
        if (graph->nodes[i].has_grad) s->kept_bytes += graph->nodes[i].saved_bytes;
        s->once |= graph->nodes[i].once;
    }
    for (i = graph->nodes[s->first].first_output; i < end; i++) {
        uint64_t bytes = graph->nodes[graph->outputs[i].node].is_input ? 0 : graph->outputs[i].bytes;
        int32_t kind = chain->kinds[i], at;
        if (kind & (TLI_CHAIN_READ | TLI_CHAIN_OUT)) s->kept_bytes += bytes;
        if (kind & TLI_CHAIN_GRAD) s->held_bytes += bytes;
        if (kind & TLI_CHAIN_OUT) s[1].in_bytes += bytes;
        for (at = 0; at < stage && kind & TLI_CHAIN_RESULT; at++) chain->stages[at].held_bytes += bytes;
    }
    play = tli_chain_run(chain, stage, TLI_CHAIN_RUN_ADVANCE, 0, NULL);
    s->stay_bytes = play.peak;
    s->advance_cost = play.cost;
    s->go_bytes = tli_chain_run(chain, stage, TLI_CHAIN_RUN_ADVANCE, 1, NULL).peak;
    play = tli_chain_run(chain, stage, TLI_CHAIN_RUN_SAVE, 0, NULL);
    s->save_bytes = play.peak;
    s->save_cost = play.cost;
}

// -- chain: leaves in fewer bytes --
//
//     F a b c d   B d   B c   F a   B b   B a      c is large: while B c runs, a is absent
//
// Backwards run in reverse order, each after what it reads and what is not resident has been made. A tensor
// stays from one use to the next backward that reads it, unless it is absent from one between the two. As long
// as it lowers the peak, one tensor more is absent there: the one with which the peak, then the cost, is least.

static int tli_chain_backward_reads(const tl_graph *graph, int32_t id, int32_t tensor) {
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    if (!node->has_grad) return 0;
    if (graph->outputs[tensor].node == id) return graph->outputs[tensor].needed != 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].tensor == tensor && graph->inputs[i].needed) return 1;
    return 0;
}

static int tli_chain_is_absent(const tli_chain *chain, const tli_chain_stage *s, int32_t absence_count,
                               int32_t tensor, int32_t id) {
    int32_t i, own = chain->graph->nodes[s->first].first_output;
    for (i = 0; i < absence_count; i++)
        if (s->absences[i].tensor == tensor - own && s->absences[i].node == id - s->first) return 1;
    return 0;
}

// Drop a tensor of the stage after its last use before or in the backward of a node, unless it stays.
static void tli_chain_leave(tli_chain_play *play, int32_t absence_count, int32_t at, int32_t tensor) {
    tli_chain *chain = play->chain;
    const tli_chain_stage *s = &chain->stages[play->stage];
    int32_t id = play->node - tli_chain_backward_reads(chain->graph, play->node, tensor);
    if (chain->graph->outputs[tensor].node < s->first || !chain->here[tensor] ||
        chain->last_use[tensor] != at) return;
    for (; id >= s->first; id--) {
        chain->work++;
        if (tli_chain_is_absent(chain, s, absence_count, tensor, id)) break;
        if (id < play->node && tli_chain_backward_reads(chain->graph, id, tensor)) return;
    }
    tli_chain_drop(play, tensor);
}

static void tli_chain_want(tli_chain *chain, int32_t tensor, int32_t first) {
    if (chain->graph->outputs[tensor].node >= first && !chain->here[tensor])
        chain->kinds[tensor] |= TLI_CHAIN_WANTED;
}

// List the forwards that the backward of a node needs, and that backward. Nodes that no advance runs run before
// the first backward.
static void tli_chain_list_needed(tli_chain *chain, const tli_chain_stage *s, int32_t last) {
    const tl_graph *graph = chain->graph;
    const tl_node *node = &graph->nodes[last];
    int32_t id, i, count = 0, own = graph->nodes[s->first].first_output;
    for (i = own; i <= graph->nodes[s->last].first_output; i++) {
        chain->kinds[i] &= (uint8_t)~TLI_CHAIN_WANTED;
        chain->last_use[i] = -1;
        if (last == s->last && !(chain->marks[graph->outputs[i].node] & TLI_CHAIN_ADVANCE) &&
            graph->nodes[graph->outputs[i].node].has_grad) tli_chain_want(chain, i, s->first);
    }
    for (i = node->first_input; i < node->first_input + node->input_count && node->has_grad; i++)
        if (graph->inputs[i].needed) tli_chain_want(chain, graph->inputs[i].tensor, s->first);
    if (node->has_grad && graph->outputs[node->first_output].needed)
        tli_chain_want(chain, node->first_output, s->first);
    for (id = s->last; id >= s->first; id--) {
        const tl_node *maker = &graph->nodes[id];
        chain->work += 2;
        if (!(chain->kinds[maker->first_output] & TLI_CHAIN_WANTED)) continue;
        count++;
        for (i = maker->first_input; i < maker->first_input + maker->input_count; i++)
            tli_chain_want(chain, graph->inputs[i].tensor, s->first);
    }
    chain->call_count = 0;
    for (id = s->first; id <= s->last && chain->call_count < count; id++)
        if (chain->kinds[graph->nodes[id].first_output] & TLI_CHAIN_WANTED)
            chain->calls[chain->call_count++] = 2 * id;
    if (node->has_grad) chain->calls[chain->call_count++] = 2 * last + 1;
}

// As tli_chain_run, of a leaf with the first so many of its absences.
static tli_chain_play tli_chain_run_leaf(tli_chain *chain, int32_t stage, int32_t absence_count,
                                         tli_steps *steps) {
    const tl_graph *graph = chain->graph;
    const tli_chain_stage *s = &chain->stages[stage];
    tli_chain_play play;
    int32_t at, i;
    if (!absence_count) return tli_chain_run(chain, stage, TLI_CHAIN_RUN_LEAF, 0, steps);
    tli_zero(&play, sizeof play);
    play.chain = chain;
    play.part = TLI_CHAIN_RUN_LEAF;
    play.stage = stage;
    play.steps = steps;
    tli_chain_begin(&play);
    for (play.node = s->last; play.node >= s->first; play.node--) {
        tli_chain_list_needed(chain, s, play.node);
        tli_chain_find_last_uses(chain);
        for (at = 0; at < chain->call_count; at++) {
            int32_t id = chain->calls[at] / 2;
            const tl_node *node = &graph->nodes[id];
            if (chain->calls[at] % 2) tli_chain_backward(&play, id); else tli_chain_forward(&play, id);
            for (i = node->first_input; i < node->first_input + node->input_count; i++)
                tli_chain_leave(&play, absence_count, at, graph->inputs[i].tensor);
            tli_chain_leave(&play, absence_count, at, node->first_output);
        }
    }
    return play;
}

// Whether a stage may be run in other ways: it is small, its nodes have one output that may be dropped, and
// there is work left for that.
static int tli_chain_has_leaves(const tli_chain *chain, int32_t stage) {
    const tli_chain_stage *s = &chain->stages[stage];
    int32_t id;
    if (s->last == s->first || s->last - s->first >= TLI_CHAIN_LEAF_NODES || tli_chain_stops(chain)) return 0;
    if (chain->work >= chain->work_limit) return 0;
    for (id = s->first; id <= s->last; id++) {
        const tl_node *node = &chain->graph->nodes[id];
        if (node->is_input || node->keep || node->once || node->saved_bytes || node->output_count != 1)
            return 0;
    }
    return 1;
}

// Whether two stages have the same nodes, which read each other, and the stage before, in the same way.
static int tli_chain_is_alike(const tli_chain *chain, const tli_chain_stage *a, const tli_chain_stage *b) {
    const tl_graph *graph = chain->graph;
    int32_t k, i, apart = graph->nodes[b->first].first_output - graph->nodes[a->first].first_output;
    if (a->last - a->first != b->last - b->first || a->held_bytes != b->held_bytes) return 0;
    for (k = 0; k <= a->last - a->first; k++) {
        const tl_node *x = &graph->nodes[a->first + k], *y = &graph->nodes[b->first + k];
        if (x->input_count != y->input_count || x->has_grad != y->has_grad || x->fwd_cost != y->fwd_cost ||
            x->bwd_cost != y->bwd_cost || x->fwork_bytes != y->fwork_bytes ||
            x->bwork_bytes != y->bwork_bytes ||
            graph->outputs[x->first_output].bytes != graph->outputs[y->first_output].bytes ||
            !graph->outputs[x->first_output].needed != !graph->outputs[y->first_output].needed ||
            chain->kinds[x->first_output] != chain->kinds[y->first_output] ||
            chain->marks[a->first + k] != chain->marks[b->first + k]) return 0;
        for (i = 0; i < x->input_count; i++) {
            const tl_node_input *p = &graph->inputs[x->first_input + i];
            const tl_node_input *q = &graph->inputs[y->first_input + i];
            if (q->tensor - p->tensor != apart || !p->needed != !q->needed) return 0;
            if (graph->nodes[graph->outputs[p->tensor].node].has_grad !=
                graph->nodes[graph->outputs[q->tensor].node].has_grad) return 0;
            if (graph->outputs[p->tensor].bytes != graph->outputs[q->tensor].bytes) return 0;
        }
    }
    return 1;
}

// Find one absence more; 0 = none helps.
static int tli_chain_find_absence(tli_chain *chain, int32_t stage, int32_t count, tli_chain_play *play) {
    tli_chain_stage *s = &chain->stages[stage];
    int32_t own = chain->graph->nodes[s->first].first_output, id, best = -1;
    tli_chain_play least = *play;
    s->absences[count].node = play->peak_node - s->first;
    for (id = s->first; id <= s->last; id++) {
        tli_chain_play next;
        s->absences[count].tensor = chain->graph->nodes[id].first_output - own;
        if (tli_chain_backward_reads(chain->graph, play->peak_node, s->absences[count].tensor + own)) continue;
        next = tli_chain_run_leaf(chain, stage, count + 1, NULL);
        if (next.peak > least.peak || (next.peak == play->peak && next.peak_node == play->peak_node)) continue;
        if (best >= 0 && next.peak == least.peak && next.cost >= least.cost) continue;
        least = next;
        best = s->absences[count].tensor;
    }
    s->absences[count].tensor = best;
    *play = least;
    return best >= 0;
}

// Find the ways to run the leaf of a stage, or copy those of one like it.
static void tli_chain_find_leaves(tli_chain *chain, int32_t stage) {
    tli_chain_stage *s = &chain->stages[stage], *other;
    tli_chain_play play = tli_chain_run_leaf(chain, stage, 0, NULL);
    int32_t i;
    s->leaves[0].bytes = play.peak;
    s->leaves[0].cost = play.cost;
    s->leaf_count = 1;
    if (!tli_chain_has_leaves(chain, stage)) return;
    for (other = s - 1; other >= chain->stages && s - other <= TLI_CHAIN_PERIOD; other--)
        if (tli_chain_is_alike(chain, other, s)) {
            for (i = 0; i < TLI_CHAIN_LEAVES; i++) s->absences[i] = other->absences[i];
            for (i = 0; i < TLI_CHAIN_LEAVES; i++) s->leaves[i] = other->leaves[i];
            s->leaf_count = other->leaf_count;
            return;
        }
    s->absences[0].tensor = s->absences[0].node = -1;  // absent from nothing: each call as late as possible
    play = tli_chain_run_leaf(chain, stage, 1, NULL);
    for (i = 1;; i++) {
        s->leaves[i].bytes = play.peak;
        s->leaves[i].cost = play.cost;
        s->leaf_count = i + 1;
        if (s->leaf_count == TLI_CHAIN_LEAVES || !tli_chain_find_absence(chain, stage, i, &play)) return;
    }
}

// The cheapest way to run a leaf in so many bytes; the way of the fewest bytes where none fits.
static int32_t tli_chain_choose_leaf(const tli_chain_stage *s, uint64_t bytes) {
    int32_t i, best = -1;
    for (i = 0; i < s->leaf_count; i++)
        if (s->leaves[i].bytes <= bytes && (best < 0 || s->leaves[i].cost < s->leaves[best].cost)) best = i;
    for (i = 0; i < s->leaf_count && best < 0; i++)
        if (s->leaves[i].bytes == s->leaf_least) best = i;
    return best;
}

// Read the parts with backwards; held_bytes is known only after tli_chain_read_stage of all stages.
static void tli_chain_read_backwards(tli_chain *chain, int32_t stage) {
    tli_chain_stage *s = &chain->stages[stage];
    tli_chain_play play = tli_chain_run(chain, stage, TLI_CHAIN_RUN_BACK, 0, NULL);
    int32_t i;
    s->back_bytes = play.peak;
    s->back_cost = play.cost;
    tli_chain_find_leaves(chain, stage);
    s->leaf_least = s->leaves[0].bytes;
    for (i = 1; i < s->leaf_count; i++)
        if (s->leaves[i].bytes < s->leaf_least) s->leaf_least = s->leaves[i].bytes;
}

static int tli_chain_equals_stage(const tli_chain_stage *a, const tli_chain_stage *b) {
    int32_t i;
    if (a->leaf_count != b->leaf_count) return 0;
    for (i = 0; i < a->leaf_count; i++)
        if (a->leaves[i].bytes != b->leaves[i].bytes || a->leaves[i].cost != b->leaves[i].cost) return 0;
    if (a->once != b->once) return 0;
    return a->in_bytes == b->in_bytes && a->held_bytes == b->held_bytes && a->kept_bytes == b->kept_bytes &&
           a->advance_cost == b->advance_cost && a->save_cost == b->save_cost && a->back_cost == b->back_cost &&
           a->stay_bytes == b->stay_bytes && a->go_bytes == b->go_bytes &&
           a->save_bytes == b->save_bytes && a->back_bytes == b->back_bytes;
}

// Find, for each stage, the longest run of stages from it on that equals a run from an earlier stage on.
// Repeated blocks have the same curves, which are then computed once.
static void tli_chain_find_same(tli_chain *chain) {
    int32_t apart, i, run;
    for (apart = 1; apart < chain->stage_count; apart++)
        for (i = chain->stage_count - 1 - apart, run = 0; i >= 0; i--) {
            run = tli_chain_equals_stage(&chain->stages[i], &chain->stages[i + apart]) ? run + 1 : 0;
            if (run <= chain->same_count[i + apart]) continue;
            chain->same_count[i + apart] = run;
            chain->same_from[i + apart] = i;
        }
}

static tl_result tli_chain_alloc_graph(tli_chain *chain) {
    uint64_t nodes = (uint64_t)chain->graph->node_count, tensors = (uint64_t)chain->graph->tensor_count;
    chain->stage_of = (int32_t *)tli_alloc_array(chain->env, nodes, sizeof *chain->stage_of);
    chain->marks = (uint8_t *)tli_alloc_array(chain->env, nodes, sizeof *chain->marks);
    chain->kinds = (uint8_t *)tli_alloc_array(chain->env, tensors, sizeof *chain->kinds);
    chain->here = (uint8_t *)tli_alloc_array(chain->env, tensors, sizeof *chain->here);
    chain->has_gradient = (uint8_t *)tli_alloc_array(chain->env, tensors, sizeof *chain->has_gradient);
    chain->last_use = (int32_t *)tli_alloc_array(chain->env, tensors, sizeof *chain->last_use);
    chain->calls = (int32_t *)tli_alloc_array(chain->env, nodes, 2 * sizeof *chain->calls);
    return chain->stage_of && chain->marks && chain->kinds && chain->here && chain->has_gradient &&
           chain->last_use && chain->calls ? TL_OK : TL_ERROR_NO_MEMORY;
}

static tl_result tli_chain_alloc_stages(tli_chain *chain) {
    uint64_t stages = (uint64_t)chain->stage_count;
    chain->stages = (tli_chain_stage *)tli_alloc_array(chain->env, stages + 1, sizeof *chain->stages);
    chain->curves = (tli_chain_curve *)tli_alloc_array(chain->env, stages * stages, sizeof *chain->curves);
    chain->least = (uint64_t *)tli_alloc_array(chain->env, stages * stages, sizeof *chain->least);
    chain->same_from = (int32_t *)tli_alloc_array(chain->env, stages, sizeof *chain->same_from);
    chain->same_count = (int32_t *)tli_alloc_array(chain->env, stages, sizeof *chain->same_count);
    chain->grid = (int32_t *)tli_alloc_array(chain->env, stages, sizeof *chain->grid);
    chain->low = (uint64_t *)tli_alloc_array(chain->env, stages, sizeof *chain->low);
    chain->high = (uint64_t *)tli_alloc_array(chain->env, stages, sizeof *chain->high);
    chain->final = (tli_chain_curve *)tli_alloc_array(chain->env, stages, sizeof *chain->final);
    return chain->stages && chain->curves && chain->least && chain->same_from && chain->same_count &&
           chain->grid && chain->low && chain->high && chain->final
               ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Whether the cost of the costliest schedule fits 64 bits; costs are added without a check later.
static int tli_chain_is_countable(const tli_chain *chain) {
    uint64_t sum = 0;
    int32_t i, k;
    for (i = 0; i < chain->stage_count; i++) {
        const tli_chain_stage *s = &chain->stages[i];
        uint64_t most = 0;
        for (k = 0; k < s->leaf_count; k++) if (s->leaves[k].cost > most) most = s->leaves[k].cost;
        if (!tli_add_u64(sum, s->save_cost, &sum) || !tli_add_u64(sum, most, &sum) ||
            !tli_add_u64(sum, s->back_cost, &sum)) return 0;
    }
    return sum < UINT64_MAX / 4 / (uint64_t)(chain->stage_count + 1);
}

// Divide the graph into stages and read them. env, graph, watch and work limits of the chain are set.
static tl_result tli_chain_init(tli_chain *chain) {
    const tl_graph *graph = chain->graph;
    tl_result result;
    int32_t id, i;
    result = tli_chain_alloc_graph(chain);
    if (result) return result;
    tli_chain_find_ends(chain);
    chain->stage_count = tli_chain_join_stages(chain);
    result = tli_chain_alloc_stages(chain);
    if (result) return result;
    for (id = graph->node_count; id-- > 0;) chain->stages[chain->stage_of[id]].first = id;
    for (id = 0; id < graph->node_count; id++) chain->stages[chain->stage_of[id]].last = id;
    tli_chain_read_tensors(chain);
    tli_chain_mark_nodes(chain, TLI_CHAIN_ADVANCE);
    tli_chain_mark_nodes(chain, TLI_CHAIN_LEAF);
    for (i = 0; i < chain->stage_count; i++) tli_chain_read_stage(chain, i);
    for (i = 0; i < chain->stage_count; i++) tli_chain_read_backwards(chain, i);
    tli_chain_find_same(chain);
    return tli_chain_is_countable(chain) ? TL_OK : TL_ERROR_OVERFLOW;
}

// -- chain: curves --

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
// kept step to the next. The first and the last stay, so the least bytes and the least cost do. Only counts
// them if `kept` is NULL.
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

// Find the least bytes of every planned segment: the minimum over the same ways, of the larger part of each.
// UINT64_MAX = that takes more than the work limit.
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

// What the stages from first on leave to those after the split.
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

// -- chain: the binomial schedule --
//
// The schedule of Revolve, with stages in place of layers. Where stages are nearly equal it is nearly the
// best, and shortened curves may miss it.

typedef struct tli_chain_binomial {
    tli_chain *chain;
    int32_t   *slots;               // [stage_count] stages whose inputs are checkpoints, ascending
    int32_t    slot_count;
    tli_steps *steps;               // NULL = only bytes and cost are wanted
    uint64_t   held, peak, cost;    // held: by checkpoints
} tli_chain_binomial;

// Run stages first..next-1 while those up to `last` are still to be reversed.
static void tli_binomial_advance(tli_chain_binomial *b, int32_t first, int32_t next, int32_t last) {
    const tli_chain_stage *s = b->chain->stages;
    int32_t i;
    for (i = first; i < next; i++) {
        uint64_t peak = b->held + s[last].held_bytes + (i > first ? s[i].go_bytes : s[i].stay_bytes);
        if (peak > b->peak) b->peak = peak;
        b->cost += s[i].advance_cost;
        if (b->steps) tli_chain_run(b->chain, i, TLI_CHAIN_RUN_ADVANCE, i > first, b->steps);
    }
    b->held += next > first ? s[next].in_bytes : 0;
    b->chain->work += 4 * (uint64_t)(next - first);
}

// Reverse a stage alone, then drop its input unless it is the first.
static void tli_binomial_leaf(tli_chain_binomial *b, int32_t stage) {
    const tli_chain_stage *s = &b->chain->stages[stage];
    uint64_t room = b->chain->budget > b->held ? b->chain->budget - b->held : 0;
    int32_t way = tli_chain_choose_leaf(s, room);
    if (b->held + s->leaves[way].bytes > b->peak) b->peak = b->held + s->leaves[way].bytes;
    b->cost += s->leaves[way].cost;
    if (b->steps) tli_chain_run_leaf(b->chain, stage, way, b->steps);
    if (stage && b->steps) tli_chain_drop_input(b->chain, stage, b->steps);
    b->held -= s->in_bytes;
}

// As tli_reverse_chain.
static void tli_binomial_reverse(tli_chain_binomial *b) {
    int32_t right = b->chain->stage_count - 1, depth = 1;
    b->held = b->peak = b->cost = 0;
    b->slots[0] = 0;
    while (right >= 0) {
        int32_t left = b->slots[depth - 1], count = right - left + 1;
        if (count == 1) {
            tli_binomial_leaf(b, right--);
            if (depth > 1) depth--;
        } else if (depth == b->slot_count) {
            tli_binomial_advance(b, left, right, right);
            tli_binomial_leaf(b, right--);
        } else {
            b->slots[depth] = left + tli_split_chain(count, b->slot_count - depth + 1);
            tli_binomial_advance(b, left, b->slots[depth], right);
            depth++;
        }
    }
}

// Find the most slots that fit by bisection; one slot is too slow to be of use in a long chain. UINT64_MAX =
// none fits.
static uint64_t tli_binomial_find(tli_chain_binomial *b) {
    int32_t low = b->chain->stage_count > 200, high = b->chain->stage_count;
    uint64_t cost = UINT64_MAX;
    while (low < high && !tli_chain_stops(b->chain)) {
        b->slot_count = low + (high - low + 1) / 2;
        tli_binomial_reverse(b);
        if (b->peak > b->chain->budget) { high = b->slot_count - 1; continue; }
        low = b->slot_count;
        cost = b->cost;
    }
    b->slot_count = low;
    return cost;
}

// -- chain: equal layers --

// Whether a graph is the chain of Revolve: graph inputs, or none, then two layers or more of equal bytes and
// costs, whose backwards read what forward read, with the same scratch in both. With n > 1 layers of b bytes
// and w bytes of scratch, up to three live tensors are not checkpoints: two of an advance and a gradient, or
// two gradients and the tensor that a backward reads. The inputs are the first of the c slots of Revolve, even
// if they are none, so (c + 2) b + w bytes beside them give c slots. The binomial schedule is then optimal
// over all schedules; the tests compare it with the exact search.
static int tli_is_revolve_chain(const tl_graph *graph) {
    const tl_node *one = &graph->nodes[graph->node_count - 1];
    int32_t first = tli_find_first_layer(graph), id, i;
    if (graph->node_count - first < 2) return 0;
    for (id = first; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        const tl_node_output *out = &graph->outputs[node->first_output];
        if (!node->has_grad || node->keep || node->is_input || node->once || node->output_count != 1) return 0;
        if (out->needed || node->inplace >= 0) return 0;
        if (node->saved_bytes || node->fwork_bytes != one->fwork_bytes) return 0;
        if (node->bwork_bytes != one->fwork_bytes || !out->bytes) return 0;
        if (out->bytes != graph->outputs[one->first_output].bytes) return 0;
        if (node->fwd_cost != one->fwd_cost) return 0;
        for (i = node->first_input; i < node->first_input + node->input_count && id == first; i++)
            if (!graph->nodes[graph->outputs[graph->inputs[i].tensor].node].is_input) return 0;
        if (id == first) continue;
        if (node->input_count != 1 || !graph->inputs[node->first_input].needed) return 0;
        if (graph->inputs[node->first_input].tensor != graph->nodes[id - 1].first_output) return 0;
    }
    return 1;
}

// Find the least number of forwards without saving that reverse n = layer_count equal layers with
// c = slot_count checkpoints: r n - C(c+r, r-1), where r is the least number with C(c+r, c) >= n. It is
// computed as a sum of positive terms: r (n - b) + c b (r-1) / (c+1), where b = b(c, r-1) < n.
static tl_result tli_find_revolve_advances(tl_env *env, uint64_t layer_count, uint64_t slot_count,
                                           uint64_t *advances) {
    const tli_function function = TLI_IN(PLAN_POLICY);
    uint64_t n = layer_count, c = slot_count, r = 1, b = 1, next, more;
    int fits = 1;
    TL_ASSERT(advances);
    *advances = 0;
    if (!layer_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(LAYER_COUNT_MUST_BE_POSITIVE));
    if (!slot_count)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SLOT_COUNT_MUST_BE_POSITIVE));
    if (c >= n - 1) {  // a checkpoint for every tensor
        *advances = n - 1;
        return TL_OK;
    }
    if (c == 1) {  // r = n - 1 would take too many iterations: n (n - 1) / 2
        fits = tli_mul_u64(n % 2 ? n : n / 2, n % 2 ? (n - 1) / 2 : n - 1, advances);
    } else {
        for (; fits; r++, b = next) {
            fits = tli_mul_u64(r, n - b, advances);  // at most the result: an overflow here is one there
            next = tli_next_binomial(b, c, r);
            if (next >= n) break;
        }
        fits = fits && tli_mul_u64(b / (c + 1), r - 1, &next) && tli_mul_u64(b % (c + 1), r - 1, &more) &&
               tli_add_u64(next, more / (c + 1), &next) && tli_mul_u64(next, c, &next) &&
               tli_add_u64(*advances, next, advances);
    }
    if (fits) return TL_OK;
    *advances = 0;
    return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(NUMBER_OF_FORWARDS_DOES_NOT_FIT_64));
}

#define TLI_REVOLVE_MOST (UINT64_C(1) << 22)  // steps of a schedule; a longer one takes seconds and gigabytes

// The least number of slots whose binomial schedule is not too long.
static uint64_t tli_find_fewest_slots(uint64_t layer_count) {
    uint64_t low = 0, high = layer_count, advances;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int counts = !tli_find_revolve_advances(NULL, layer_count, middle, &advances);
        if (counts && advances + 2 * layer_count <= TLI_REVOLVE_MOST / 2) high = middle; else low = middle;
    }
    return high;
}

// What budgets give an equal chain, in bytes without base.
typedef struct tli_revolve_bytes {
    uint64_t slot_count;    // 0 = no schedule fits that is not too long
    uint64_t least;         // budget of such a schedule: the last backward takes it
    uint64_t floor;         // no schedule at all fits below
} tli_revolve_bytes;

static tli_revolve_bytes tli_find_slots(const tl_graph *graph, uint64_t budget) {
    const tl_node *one = &graph->nodes[graph->node_count - 1];
    int32_t i, first = tli_find_first_layer(graph), end = graph->nodes[first].first_output;
    uint64_t fewest = tli_find_fewest_slots((uint64_t)(graph->node_count - first));
    uint64_t beside = one->fwork_bytes, bytes = graph->outputs[one->first_output].bytes, tensors;
    tli_revolve_bytes found;
    for (i = 0; i < end; i++) beside += graph->outputs[i].bytes;
    found.floor = beside + 3 * bytes;
    found.least = beside + (fewest + 2) * bytes;
    tensors = budget < beside ? 0 : (budget - beside) / bytes;
    found.slot_count = tensors >= fewest + 2 ? tensors - 2 : 0;
    return found;
}

#define TLI_REVOLVE_WORK UINT64_C(16)  // elementary steps for each step of a schedule, made and simulated

// Make the binomial schedule for so many slots.
static tl_result tli_revolve(tl_env *env, const tl_graph *graph, uint64_t slot_count, tli_steps *steps) {
    int32_t most = slot_count < (uint64_t)graph->node_count ? (int32_t)slot_count : graph->node_count;
    tli_unit_chain chain;
    int32_t *slots = (int32_t *)tli_alloc_array(env, (uint64_t)most, sizeof *slots);
    chain.graph = graph;
    chain.list = tli_steps_of(env);
    chain.list.failed = !slots;
    if (slots) tli_reverse_chain(&chain, most, slots);
    tli_release(env, slots);
    *steps = chain.list;
    return steps->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// Whether a graph has many stages, and most of its calls are stages of their own. TL_ERROR_NO_MEMORY.
static tl_result tli_chain_is_long(tl_env *env, const tl_graph *graph, int32_t *is_long) {
    tli_chain chain;
    int32_t id, calls = 0, count = 0;
    tl_result result;
    *is_long = 0;
    if (graph->node_count <= TLI_CHAIN_FEW_STAGES) return TL_OK;
    tli_zero(&chain, sizeof chain);
    chain.env = env;
    chain.graph = graph;
    result = tli_chain_alloc_graph(&chain);
    if (!result) {
        tli_chain_find_ends(&chain);
        for (id = 0; id < graph->node_count; id++) {
            calls += !graph->nodes[id].is_input;
            count += chain.stage_of[id];
        }
        *is_long = count > TLI_CHAIN_FEW_STAGES && count > calls / 2;
    }
    tli_chain_free(&chain);
    return result;
}

// What planning by stages found; bytes are without base.
typedef struct tli_chain_result {
    uint64_t cost, least, work;     // least: least budget, if nothing fits
    int32_t  exact;                 // 1 = the cost, or the least budget, is optimal over persistent schedules
} tli_chain_result;

// If the binomial schedule is cheaper than the curves say, write its steps. Returns 1 if it is.
static int tli_chain_try_binomial(tli_chain *chain, tli_steps *steps, tli_chain_result *found) {
    const tli_chain_curve *curve = tli_chain_curve_of(chain, 0, chain->stage_count - 1);
    tli_chain_binomial b;
    tli_zero(&b, sizeof b);
    b.chain = chain;
    b.slots = (int32_t *)tli_alloc_array(chain->env, (uint64_t)chain->stage_count, sizeof *b.slots);
    if (!b.slots) { chain->failed = 1; return 0; }
    found->cost = tli_binomial_find(&b);
    if (curve->count && curve->points[curve->count - 1].cost <= found->cost) found->cost = UINT64_MAX;
    if (found->cost != UINT64_MAX) {
        b.steps = steps;
        tli_binomial_reverse(&b);
    }
    tli_release(chain->env, b.slots);
    if (steps->failed) chain->failed = 1;
    return found->cost != UINT64_MAX;
}

static int tli_chain_has_once(const tli_chain *chain) {
    int32_t i;
    for (i = 0; i < chain->stage_count; i++) if (chain->stages[i].once) return 1;
    return 0;
}

// Write the steps that the curves describe, or those of the least budget if nothing fits.
static tl_result tli_chain_finish(tli_chain *chain, int feasible, uint64_t work_limit, tli_steps *steps,
                                  tli_chain_result *found) {
    const tli_chain_curve *curve = tli_chain_curve_of(chain, 0, chain->stage_count - 1);
    tl_result result;
    if (!chain->failed && feasible && !found->exact && !tli_chain_has_once(chain) &&
        tli_chain_try_binomial(chain, steps, found))
        return chain->failed ? TL_ERROR_NO_MEMORY : TL_OK;
    feasible = feasible && curve->count;
    if (tli_chain_stops(chain) && !feasible && !chain->failed) return TL_ERROR_INFEASIBLE;
    if (!feasible && !chain->failed) {
        found->exact = tli_chain_solve_least(chain, work_limit);
        found->least = chain->budget + chain->pinned_bytes;
    }
    if (chain->failed) return TL_ERROR_NO_MEMORY;
    if (!curve->count) return TL_ERROR_INFEASIBLE;  // it had to stop
    found->cost = curve->points[curve->count - 1].cost;
    result = tli_chain_add_steps(chain, steps);
    return !result && !feasible ? TL_ERROR_INFEASIBLE : result;
}

// Whether some leaf takes fewer bytes than what its backwards read together.
static int tli_chain_gains(const tli_chain *chain) {
    int32_t i;
    for (i = 0; i < chain->stage_count; i++)
        if (chain->stages[i].leaf_least < chain->stages[i].leaves[0].bytes) return 1;
    return 0;
}

// Find the cheapest persistent schedule within the budget. TL_ERROR_INFEASIBLE, without a sentence: none was
// found; steps are then those of the least budget, or empty for Revolve's chain, whose last node sets it, and
// after progress asked to stop or most_work was reached. Curves that take more than work_limit are shortened.
// has_leaves: 1 = leaves may be run in fewer bytes; 2 = also, and nothing is planned where none can.
static tl_result tli_remat_chain(tl_env *env, const tl_graph *graph, uint64_t budget, tli_remat_watch *watch,
                                 uint64_t work_limit, uint64_t most_work, int32_t has_leaves,
                                 tli_steps *steps, tli_chain_result *found) {
    tli_chain chain;
    tl_result result;
    tli_zero(found, sizeof *found);
    *steps = tli_steps_of(env);
    if (tli_is_revolve_chain(graph)) {
        tli_revolve_bytes slots = tli_find_slots(graph, budget);
        found->least = slots.least;
        found->exact = slots.slot_count || slots.least == slots.floor;
        if (!slots.slot_count) return TL_ERROR_INFEASIBLE;
        result = tli_revolve(env, graph, slots.slot_count, steps);
        found->work = TLI_REVOLVE_WORK * (uint64_t)steps->count;
        return result;
    }
    tli_zero(&chain, sizeof chain);
    chain.env = env;
    chain.graph = graph;
    chain.watch = watch;
    chain.work_limit = has_leaves ? work_limit / 8 : 0;
    chain.most_work = most_work;
    result = tli_chain_init(&chain);
    found->work = chain.work;
    if (!result && has_leaves == 2 && !tli_chain_gains(&chain)) result = TL_ERROR_INFEASIBLE;
    if (!result) {
        int feasible = budget >= chain.pinned_bytes;
        chain.budget = feasible ? budget - chain.pinned_bytes : 0;
        found->exact = tli_chain_solve(&chain, work_limit);
        result = tli_chain_finish(&chain, feasible, work_limit, steps, found);
        found->work = chain.work;
    }
    tli_chain_free(&chain);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

