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
    tli_chain_point leaves[TLI_CHAIN_LEAVES];  // by the number of absences, in no order of bytes or costs
    tli_chain_absence absences[TLI_CHAIN_LEAVES];
    uint64_t leaf_least;            // the fewest bytes of leaves
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
// (those that its backwards and results need, and those with a backward that no advance runs).
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
// as that lowers the peak, or moves it to another backward, one tensor more is absent there: the one with which
// the peak, then the cost, is least.

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
            tli_gets_gradient(graph, i)) tli_chain_want(chain, i, s->first);
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

// Whether a stage may be run in other ways: it has a few nodes, each with one output that may be dropped and
// made again and without saved bytes, and there is work left for that.
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
            if (tli_gets_gradient(graph, p->tensor) !=
                tli_gets_gradient(graph, q->tensor)) return 0;
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
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

