#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- operations --
//
// A list of operations becomes a graph whose node i is op i, and a table of kernels whose kernel i is that of
// node i, with a user of its own. A chain of layers is such a list, too:
//
//     ops ----> tl_graph, tl_kernel[] --+--> rehearsal           --> findings, costs
//                                       +--> keep all, budget 1   --> refused, with the bytes that it needs
//     layers -> ops                     +--> planned,  budget 1   --> refused, with the least that works
//                                       +--> planned,  the budget --> run
//
// Every figure is what the run's own check of its budget says, so each of them is a budget that works.

// What a list is made with.
typedef struct tli_op_list {
    tl_env      *env;
    tli_function function;
    const tl_op *ops;            // [count]
    int32_t      count;
    const tl_node_cost *costs;   // [count] or NULL
} tli_op_list;

static void tli_put_op_name(const tli_op_list *list, int32_t i, tli_sentence *s) {
    const char *name = list->ops[i].name;
    char text[64];
    tli_writer w = tli_writer_of(text, sizeof text);
    tli_put_i64(&w, i);
    tli_finish(&w);
    tli_put_text(s, name ? name : text);
}

static tl_result tli_fail_op(const tli_op_list *list, int32_t i, tli_rule rule) {
    tli_sentence s = tli_begin_error(list->env, TL_ERROR_INVALID_ARG, list->function, rule, (uint64_t)i, 0);
    tli_put_op_name(list, i, &s);
    return tli_end_error(list->env, &s, TL_ERROR_INVALID_ARG);
}

static uint64_t tli_op_cost(uint64_t own, uint64_t measured) { return own ? own : measured ? measured : 1; }

// Describe op i, which is no graph input, as a node. before: room for the output that it reads by default.
static void tli_describe_op(const tli_op_list *list, int32_t i, tl_tensor *before, tl_node_desc *node) {
    const tl_op *op = &list->ops[i];
    const tl_node_cost *cost = list->costs ? &list->costs[i] : NULL;
    before->node = i - 1;
    before->output = 0;
    node->inputs = op->inputs ? op->inputs : before;
    node->input_count = op->inputs ? op->input_count : 1;
    if (op->input_count == TL_NO_INPUTS) node->input_count = 0;
    node->fwd_cost = tli_op_cost(op->fwd_cost, cost ? cost->fwd_ns : 0);
    node->saved_bytes = op->saved_bytes;
    node->fwork_bytes = op->fwork_bytes;
    node->swork_bytes = op->swork_bytes;
    node->bwork_bytes = op->bwork_bytes;
    node->param_bytes = op->param_bytes;
    node->inplace = op->inplace;
    node->no_grad = op->no_grad;
    node->once = op->once;
    node->takes_blocks = op->takes_blocks;
    node->dynamic = op->dynamic;
    if (op->no_grad) return;
    node->needs = op->needs ? op->needs : "in";
    node->bwd_cost = tli_op_cost(op->bwd_cost, cost ? cost->bwd_ns : 0);
}

// What an op sets that a state does not have; NULL = nothing.
static const char *tli_find_foreign_field(const tl_op *op) {
    if (op->forward) return "forward";
    if (op->inputs || op->input_count > 0) return "inputs";
    if (op->outputs || op->output_count) return "outputs";
    if (op->needs) return "needs";
    if (op->saved_bytes) return "saved_bytes";
    if (op->fwork_bytes) return "fwork_bytes";
    if (op->swork_bytes) return "swork_bytes";
    if (op->param_bytes) return "param_bytes";
    if (op->fwd_cost) return "fwd_cost";
    if (op->inplace) return "inplace";
    if (op->no_grad) return "no_grad";
    if (op->once) return "once";
    if (op->keep) return "keep";
    if (op->takes_blocks) return "takes_blocks";
    if (op->dynamic) return "dynamic";
    if (op->rows) return "rows";
    return op->dies ? "dies" : NULL;
}

static tl_result tli_fail_state_op(const tli_op_list *list, int32_t i, const char *field) {
    tli_sentence s = tli_begin_error(list->env, TL_ERROR_INVALID_ARG, list->function,
                                     TLI_RULE(OP_OF_A_STATE_HAS_AN_UPDATE_ALONE), (uint64_t)i, 0);
    tli_put_op_name(list, i, &s);
    tli_put_text(&s, field);
    return tli_end_error(list->env, &s, TL_ERROR_INVALID_ARG);
}

// Add op i, a state: its weight is its output, its update its backward.
static tl_result tli_add_state_op(const tli_op_list *list, tli_graph_rules *rules, int32_t i, tl_graph *graph) {
    const tl_op *op = &list->ops[i];
    const tl_node_cost *cost = list->costs ? &list->costs[i] : NULL;
    const char *foreign = tli_find_foreign_field(op);
    tl_state_desc state;
    if (foreign) return tli_fail_state_op(list, i, foreign);
    if (op->backward && (op->state == TL_STATE_FROZEN || op->state == TL_STATE_STATISTIC))
        return tli_fail_op(list, i, TLI_RULE(OP_OF_A_STATE_HAS_NO_UPDATE));
    tli_zero(&state, sizeof state);
    state.name = op->name;
    state.op = op->kind;
    state.bytes = op->output_bytes;
    state.moment_bytes = op->moments;
    state.moment_count = op->moment_count;
    state.kind = op->state;
    state.layer = op->layer;
    state.weight_rows = op->weight_rows;
    state.piece_rows = op->piece_rows;
    state.update_work_bytes = op->bwork_bytes;
    state.update_cost = op->bwd_cost;       // of one without an update it is refused
    if (op->state == TL_STATE_TRAINED || op->state == TL_STATE_HELD)
        state.update_cost = tli_op_cost(op->bwd_cost, cost ? cost->bwd_ns : 0);
    return tli_add_state(rules, graph, &state);
}

static tl_result tli_add_op(const tli_op_list *list, tli_graph_rules *rules, int32_t i, tl_graph *graph) {
    const tl_op *op = &list->ops[i];
    int is_input = op->kind && tli_same_text(op->kind, "input");
    tl_node_desc node;
    tl_tensor before;
    if (op->state) return tli_add_state_op(list, rules, i, graph);
    if (op->moments || op->moment_count || op->initial || op->weight_rows || op->piece_rows)
        return tli_fail_op(list, i, TLI_RULE(OP_MOMENTS_ARE_OF_STATES));
    if (!is_input && !op->forward) return tli_fail_op(list, i, TLI_RULE(OP_FORWARD_IS_MISSING));
    if (is_input && (op->forward || op->backward)) return tli_fail_op(list, i, TLI_RULE(OP_INPUT_HAS_KERNELS));
    if (!op->inputs && op->input_count > 0)
        return tli_fail_op(list, i, TLI_RULE(OP_INPUT_COUNT_WITHOUT_INPUTS));
    if (!op->outputs == !op->output_bytes || !op->outputs == !!op->output_count)
        return tli_fail_op(list, i, TLI_RULE(OP_OUTPUT_BYTES_OR_OUTPUTS));
    tli_zero(&node, sizeof node);
    node.name = op->name;
    node.op = op->kind;
    node.output_bytes = op->outputs ? op->outputs : &op->output_bytes;
    node.output_count = op->outputs ? op->output_count : 1;
    node.keep = op->keep;
    node.dies = op->dies;
    node.layer = op->layer;
    node.rows = op->rows;
    node.row_axis = op->row_axis;
    node.relations = op->relations;
    node.row_unit = op->row_unit;
    node.ordered = op->ordered;
    node.reduces = op->reduces;
    node.stream = op->stream;
    if (!is_input) tli_describe_op(list, i, &before, &node);
    return tli_add_node(rules, graph, &node);
}

// Make the graph of a list, and its table of kernels: [count], of the env. graph: NULL = kernels alone.
static tl_result tli_make_ops(const tli_op_list *list, tl_graph *graph, tl_kernel **kernels) {
    tli_graph_rules rules = tli_rules_of(list->env, list->function);
    tl_result result = TL_OK;
    int32_t i;
    *kernels = (tl_kernel *)tli_alloc_array(list->env, (uint64_t)list->count, sizeof **kernels);
    if (!*kernels) return tli_fail(list->env, TL_ERROR_NO_MEMORY, list->function, TLI_RULE(OPS_NO_MEMORY));
    for (i = 0; i < list->count && !result; i++) {
        const tl_op *op = &list->ops[i];
        (*kernels)[i].op = op->kind ? op->kind : "op";
        (*kernels)[i].forward = op->forward;
        (*kernels)[i].backward = op->backward;
        (*kernels)[i].user = op->user;
        if (graph) result = tli_add_op(list, &rules, i, graph);
    }
    if (graph && !result) result = tli_fit_graph(list->env, list->function, graph);
    return result;
}

static void tli_use_ops(tl_run_desc *desc, const tl_kernel *kernels, int32_t count) {
    desc->kernels = kernels;
    desc->kernel_count = count;
    desc->budget_ratio = 0;
    desc->costs = NULL;
    desc->figures = NULL;
    desc->rehearsal = NULL;
    desc->may_train_in_pieces = 0;
    desc->may_cut_rows = 0;
}

// Write what the weights of states begin with.
static tl_result tli_write_initial(const tli_op_list *list, tl_run *run) {
    tl_result result = TL_OK;
    tl_tensor weight;
    weight.output = 0;
    for (weight.node = 0; weight.node < list->count && !result; weight.node++) {
        const tl_op *op = &list->ops[weight.node];
        if (op->state && op->initial) result = tl_write_tensor(run, weight, op->initial, op->output_bytes);
    }
    return result;
}

// -- operations: layers --

static void tli_fill_layer_op(const tl_layer *layer, int32_t i, char *text, tl_op *op) {
    tli_writer w = tli_writer_of(text, 24);
    tli_put(&w, "layer");
    tli_put_i64(&w, i);
    tli_finish(&w);
    op->name = layer->name ? layer->name : text;
    op->kind = text;
    op->forward = layer->forward;
    op->backward = layer->backward;
    op->user = layer->user;
    op->output_count = 1;
    op->outputs = &layer->output_bytes;
    op->needs = layer->needs;
    op->saved_bytes = layer->saved_bytes;
    op->fwork_bytes = layer->fwork_bytes;
    op->swork_bytes = layer->swork_bytes;
    op->bwork_bytes = layer->bwork_bytes;
    op->param_bytes = layer->param_bytes;
    op->fwd_cost = layer->fwd_cost;
    op->bwd_cost = layer->bwd_cost;
    op->keep = layer->keep;
    op->once = layer->once;
    op->layer = i + 1;
}

TLI_IMPL tl_result tl_init_layer_run(tl_env *env, const tl_run_desc *desc, const tl_layer *layers,
                                     int32_t layer_count, uint64_t input_bytes, tl_run **run) {
    tl_run_desc layered;
    tli_op_list list;
    tl_graph graph;
    tl_kernel *kernels = NULL;
    tl_op *ops;
    char *texts;
    tl_result result = TL_OK;
    int32_t i;
    TL_ASSERT(desc && desc->backend && layers && run);
    *run = NULL;
    tli_zero(&list, sizeof list);
    list.env = env;
    list.function = TLI_IN(INIT_LAYER_RUN);
    list.count = layer_count + 1;
    if (layer_count < 1 || layer_count == INT32_MAX)
        return tli_fail(env, TL_ERROR_INVALID_ARG, list.function, TLI_RULE(LAYER_COUNT_MUST_BE_POSITIVE));
    ops = (tl_op *)tli_alloc_array(env, (uint64_t)list.count, sizeof *ops);
    texts = (char *)tli_alloc_array(env, (uint64_t)layer_count, 24);
    if (!ops || !texts) result = tli_fail(env, TL_ERROR_NO_MEMORY, list.function, TLI_RULE(LAYERS_NO_MEMORY));
    tl_init_graph(&graph);
    if (!result) {
        ops[0].name = ops[0].kind = "input";
        ops[0].output_count = 1;
        ops[0].outputs = &input_bytes;
        for (i = 0; i < layer_count; i++) tli_fill_layer_op(&layers[i], i, texts + (size_t)i * 24, &ops[i + 1]);
        list.ops = ops;
        result = tli_make_ops(&list, &graph, &kernels);
    }
    layered = *desc;
    layered.graph = NULL;
    tli_use_ops(&layered, kernels, list.count);
    if (!result) result = tli_init_run(env, &layered, TLI_RUN_OF_LAYERS, &graph, 0, run);
    if (result) tl_free_graph(env, &graph);
    tli_release(env, kernels);
    tli_release(env, ops);
    tli_release(env, texts);
    return result;
}

// -- operations: budgets --

// The desc of a list, and what is made of it on the way to the run.
typedef struct tli_op_run {
    tli_op_list    list;
    const tl_run_desc *asked;    // by the caller
    tl_run_desc    desc;         // of the run
    tl_graph       graph;        // owned, where `asked` has none or its costs change
    tl_graph       in_pieces;    // owned: the same, trained in pieces; no nodes = it is not
    struct tl_rows_plan *rows;   // owned: regions that were chosen; NULL = none
    uint64_t       rows_within;  // the budget that these were chosen for; 0 = none were chosen
    uint64_t       tightest;     // the budget that those of the least are chosen for; 0 = not known
    int32_t        row_turns;    // how often others were chosen because a run took too much
    tl_error       row_refusal;  // with those of the least budget
    tl_kernel     *kernels;
    tl_strategy    strategy;     // where `asked` says nothing
    tl_run_figures figures;
    tli_start_watch watch;
} tli_op_run;

// The graph that the run takes over; NULL = it is the caller's.
static tl_graph *tli_find_taken(tli_op_run *o) {
    if (o->in_pieces.node_count) return &o->in_pieces;
    return o->desc.graph ? NULL : &o->graph;
}

#ifndef TL_NO_PLANNERS
// Ask for the cheapest plan within the budget, where the caller asks for nothing.
static void tli_ask_for_plan(tli_op_run *o) {
    tl_run_desc *desc = &o->desc;
    if (desc->strategy || desc->plan || desc->checkpoints || desc->compiled || desc->eviction || desc->evict ||
        desc->policy.kind != TL_POLICY_KEEP_ALL) return;
    o->strategy.mode = TL_MODE_LAZY;
    o->strategy.memory = TL_MEMORY_POOLED;
    o->strategy.precision = TL_PRECISION_SINGLE;
    if (!desc->inference) o->strategy.gradient = tl_gradient_checkpointed(0);
    desc->strategy = &o->strategy;
}

static const tl_graph *tli_op_graph(const tli_op_run *o) { return o->desc.graph ? o->desc.graph : &o->graph; }

static int tli_ops_infer(const tli_op_run *o) {
    return o->desc.strategy ? !o->desc.strategy->gradient.computes : o->desc.inference;
}

// The desc of a run of a plan of the graph as it is, whatever is asked for.
static tl_run_desc tli_desc_of_plan(const tli_op_run *o, const tl_plan *plan) {
    tl_run_desc desc = o->desc;
    desc.graph = tli_op_graph(o);
    desc.plan = plan;
    desc.strategy = NULL;
    desc.checkpoints = NULL;
    desc.compiled = NULL;
    desc.fusion = NULL;
    desc.precision = NULL;
    desc.may_split = 0;
    desc.eviction = (tl_eviction)0;
    desc.evict = NULL;
    desc.policy.kind = TL_POLICY_KEEP_ALL;
    desc.codec = TL_CODEC_NONE;
    desc.repeat_count = 0;
    return desc;
}

// The fewest bytes that a run of the desc needs, whatever its budget is.
static tl_result tli_find_needed(tli_op_run *o, tl_run_desc *desc, uint64_t *bytes) {
    desc->graph = tli_op_graph(o);
    return tli_find_run_bytes(o->list.env, desc, tli_find_taken(o), desc->plan != o->desc.plan,
                              desc->rows != o->asked->rows, bytes);
}

static void tli_drop_rows(tli_op_run *o) {
    tl_free_rows_plan(o->list.env, o->rows);
    tli_release(o->list.env, o->rows);
    o->rows = NULL;
    o->desc.rows = o->asked->rows;
}

// Cut the regions that were chosen, for the run, and nodes that the backend's kernels cannot be given as a
// whole.
static tl_result tli_use_rows(tli_op_run *o, tl_cut_desc *cut, const tl_rows_choice *choice) {
    tl_result result;
    if (!choice->cut_count && !cut->binding_bytes) return TL_OK;
    o->rows = (tl_rows_plan *)tli_alloc_array(o->list.env, 1, sizeof *o->rows);
    if (!o->rows) return tli_fail(o->list.env, TL_ERROR_NO_MEMORY, o->list.function, TLI_RULE(OPS_NO_MEMORY));
    cut->graph = tli_op_graph(o);
    cut->cuts = choice->cuts;
    cut->cut_count = choice->cut_count;
    cut->inference = tli_ops_infer(o);
    result = tl_cut_rows(o->list.env, cut, o->rows);
    if (result || !o->rows->region_count) tli_drop_rows(o);
    else o->desc.rows = o->rows;
    return result;
}

// What the backend asks of regions, and what their calls cost.
static tl_cut_desc tli_ask_cut(const tli_op_run *o) {
    tl_backend_limits limits;
    tl_cut_desc cut;
    (o->desc.backend->limits)(o->desc.backend->self, &limits);
    tli_zero(&cut, sizeof cut);
    cut.alignment_bytes = limits.alignment_bytes;
    cut.binding_bytes = limits.binding_bytes;
    cut.device = o->desc.device;
    cut.call_cost = o->desc.piece_call_cost;
    return cut;
}

// Whether a node with rows has an operand that no binding holds.
static int tli_exceeds_binding(const tl_graph *graph, uint64_t binding) {
    int32_t id;
    for (id = 0; id < graph->node_count && binding; id++)
        if (tli_find_rows(graph, id) && tli_find_largest_operand(graph, id) > binding) return 1;
    return 0;
}

// Cut what the backend's kernels cannot be given as a whole, and nothing else. A plan that is given is one of
// whole nodes.
static tl_result tli_cut_for_binding(tli_op_run *o) {
    tl_cut_desc cut = tli_ask_cut(o);
    tl_rows_choice none;
    if (!tli_exceeds_binding(tli_op_graph(o), cut.binding_bytes) || o->asked->rows || o->asked->plan ||
        o->asked->checkpoints || tli_find_rows_rule(&o->desc)) return TL_OK;
    tli_zero(&none, sizeof none);
    return tli_use_rows(o, &cut, &none);
}

// The figures of the plan that keeps everything, of the graph as it is.
static tl_result tli_measure_keep_all(tli_op_run *o) {
    tl_env *env = o->list.env;
    const tl_graph *graph = o->rows ? &o->rows->graph : tli_op_graph(o);
    tl_run_desc desc;
    tl_backend_limits limits;
    tl_device device;
    tl_places_desc places;
    tl_plan plan;
    tl_result result = tl_plan_keep_all(env, graph, tli_ops_infer(o), &plan);
    if (result) return result;
    (o->desc.backend->limits)(o->desc.backend->self, &limits);
    tli_zero(&device, sizeof device);
    device.alignment_bytes = limits.alignment_bytes;
    tli_zero(&places, sizeof places);
    places.graph = graph;
    places.device = &device;
    places.work_limit = TLI_RUN_PLACE_WORK;     // as a run places a plan
    result = tl_plan_places(env, &places, &plan, NULL);
    o->figures.keep_all_peak_bytes = plan.peak_bytes;
    o->figures.keep_all_arena_bytes = plan.arena_bytes;
    desc = tli_desc_of_plan(o, &plan);
    if (!result) result = tli_find_needed(o, &desc, &o->figures.keep_all_bytes);
    tl_free_plan(env, &plan);
    return result;
}

// Make the graph in which states are trained in pieces.
static tl_result tli_use_pieces(tli_op_run *o, uint64_t piece_bytes) {
    tl_pieces_desc desc;
    tl_backend_limits limits;
    if (piece_bytes == UINT64_MAX) return TL_OK;
    (o->desc.backend->limits)(o->desc.backend->self, &limits);
    tli_zero(&desc, sizeof desc);
    desc.graph = tli_op_graph(o);
    desc.piece_bytes = piece_bytes;
    desc.alignment_bytes = limits.alignment_bytes;
    desc.call_cost = o->desc.piece_call_cost;
    return tl_apply_pieces(o->list.env, &desc, &o->in_pieces);
}

// Whether the run may train in pieces: not where several passes add to a gradient, or an overflow must be known
// before the first update.
static int tli_may_cut(const tli_op_run *o) {
    const tl_run_desc *asked = o->asked;
    uint64_t passes = (uint64_t)asked->repeat_count;
    if (asked->strategy && !passes) passes = asked->strategy->gradient.accumulation_steps;
    return asked->may_train_in_pieces && !tli_ops_infer(o) && passes <= 1 && asked->in_flight <= 1 &&
           !asked->loss_scaler && !asked->transport;
}

// The plan that the run will ask for.
static tl_remat_desc tli_ask_remat(const tli_op_run *o) {
    tl_remat_desc desc;
    tl_backend_limits limits;
    (o->desc.backend->limits)(o->desc.backend->self, &limits);
    tli_zero(&desc, sizeof desc);
    desc.graph = tli_op_graph(o);
    desc.inference = tli_ops_infer(o);
    desc.budget_bytes = o->desc.budget_bytes;
    desc.base_bytes = o->desc.base_bytes;
    desc.alignment_bytes = limits.alignment_bytes;
    desc.in_flight = o->desc.in_flight;
    desc.work_limit = o->desc.work_limit;
    desc.device = o->desc.device;
    desc.host_budget_bytes = o->desc.host_budget_bytes;
    desc.progress = o->desc.progress;
    desc.user = o->desc.progress_user;
    return desc;
}

// Choose regions of rows for the budget; 1 byte: those of the least. Where nothing fits, the run says so.
static tl_result tli_choose_op_rows(tli_op_run *o, uint64_t budget_bytes) {
    tl_remat_desc desc = tli_ask_remat(o);
    tl_cut_desc cut = tli_ask_cut(o);
    tl_rows_choice choice;
    tl_result result;
    if (!o->asked->may_cut_rows || !budget_bytes) return tli_cut_for_binding(o);
    o->rows_within = budget_bytes;
    desc.budget_bytes = budget_bytes;
    result = tl_choose_rows(o->list.env, &desc, &cut, &choice);
    if (!result || result == TL_ERROR_INFEASIBLE) result = tli_use_rows(o, &cut, &choice);
    tl_free_rows_choice(o->list.env, &choice);
    return result;
}

// Choose the pieces of gradients for the budget. Where nothing fits, the run says so.
static tl_result tli_choose_op_pieces(tli_op_run *o) {
    tl_remat_desc desc;
    uint64_t piece_bytes;
    tl_result result;
    if (!tli_may_cut(o) || o->rows) return TL_OK;
    desc = tli_ask_remat(o);
    result = tl_choose_pieces(o->list.env, &desc, o->desc.piece_call_cost, &piece_bytes, NULL);
    if (result && result != TL_ERROR_INFEASIBLE) return result;
    return tli_use_pieces(o, piece_bytes);
}

// -- operations: regions that are too large --
//
// Regions are chosen for the cheapest plan of all. A strategy that says which plan it is, or tables that count,
// can take more; then others are chosen, in this order, until a run fits:
//
//     regions for the budget, less what was too much, a few times -> those of the least budget -> pieces alone

#define TLI_ROW_TURNS 3

// Whether the run's plan is the one that regions are chosen for.
static int tli_plans_for_regions(const tli_op_run *o) {
    const tl_strategy *strategy = o->desc.strategy;
    if (!strategy || strategy->mode != TL_MODE_LAZY || o->desc.counts_tables) return 0;
    return tli_ops_infer(o) || (strategy->gradient.checkpointed && !strategy->gradient.checkpoint_interval);
}

// The fewest bytes of the run with regions of rows, where there are any, and the budget that these are chosen
// for: 1 byte or, where the run has a plan of its own, what it takes with the regions before.
static tl_result tli_find_least_with_rows(tli_op_run *o, uint64_t *bytes) {
    uint64_t within = 1, needed;
    int32_t turn, turns = tli_plans_for_regions(o) ? 1 : TLI_ROW_TURNS;
    o->tightest = 1;
    *bytes = UINT64_MAX;
    for (turn = 0; turn < turns; turn++) {
        tli_op_run tight = *o;
        tl_result result = tli_choose_op_rows(&tight, within);
        tl_run_desc desc = tight.desc;
        needed = UINT64_MAX;
        if (!result && tight.rows) result = tli_find_needed(o, &desc, &needed);
        tli_drop_rows(&tight);
        if (result || needed >= *bytes) return result;
        *bytes = needed;
        o->tightest = within;
        within = needed;
    }
    return TL_OK;
}

// The budget that regions are chosen for next.
static uint64_t tli_find_tighter(const tli_op_run *o) {
    uint64_t budget = o->desc.budget_bytes;
    uint64_t needed = o->list.env ? tl_find_least_budget(&o->list.env->error) : 0;
    if (o->row_turns > TLI_ROW_TURNS || budget < o->figures.least_bytes || needed <= budget) return o->tightest;
    return o->rows_within > needed - budget ? o->rows_within - (needed - budget) : o->tightest;
}

// Of what regions and pieces are refused with, keep the one that names fewer bytes.
static void tli_keep_lesser_refusal(tli_op_run *o) {
    tl_env *env = o->list.env;
    uint64_t with_rows = tl_find_least_budget(&o->row_refusal);
    if (env && with_rows < tl_find_least_budget(&env->error)) env->error = o->row_refusal;
}

// Find the budget of the tightest regions, if no figures were asked for. The refusal stays in the env.
static tl_result tli_find_tightest(tli_op_run *o) {
    tli_quiet quiet = tli_begin_quiet(o->list.env);
    uint64_t bytes;
    tl_result result = o->tightest ? TL_OK : tli_find_least_with_rows(o, &bytes);
    tli_end_quiet(&quiet, result);
    return result;
}

// After a run was refused: choose other regions. Returns the refusal where there are no others.
static tl_result tli_choose_tighter(tli_op_run *o, tl_result refusal) {
    int was_tightest;
    tl_result result;
    if (refusal != TL_ERROR_INFEASIBLE) return refusal;
    if (!o->rows_within) tli_keep_lesser_refusal(o);
    if (!o->rows_within) return refusal;
    result = tli_find_tightest(o);
    if (result) return result;
    was_tightest = o->rows_within == o->tightest;
    if (was_tightest && !(o->rows && tli_may_cut(o))) return refusal;
    if (was_tightest && o->list.env) o->row_refusal = o->list.env->error;
    o->row_turns++;
    o->rows_within = was_tightest ? 0 : tli_find_tighter(o);
    tli_drop_rows(o);
    tl_free_graph(o->list.env, &o->in_pieces);
    result = tli_choose_op_rows(o, o->rows_within);
    return result ? result : tli_choose_op_pieces(o);
}

// -- operations: figures --

// The fewest bytes without regions, but for those that the backend asks for.
static tl_result tli_find_least_whole(tli_op_run *o, uint64_t *bytes) {
    tl_run_desc desc = o->desc;
    return tli_find_needed(o, &desc, bytes);
}

// The same with pieces of one row each.
static tl_result tli_find_least_with_pieces(tli_op_run *o, uint64_t *bytes) {
    tli_op_run tight = *o;
    tl_run_desc desc = o->desc;
    tl_result result = tli_use_pieces(&tight, 0);
    *bytes = 0;
    if (!result) result = tli_find_needed(&tight, &desc, bytes);
    tl_free_graph(o->list.env, &tight.in_pieces);
    return result;
}

// The fewest bytes of all, of what the run may do.
static tl_result tli_find_least_bytes(tli_op_run *o) {
    uint64_t cut = UINT64_MAX, *least = &o->figures.least_bytes;
    tl_result result = o->asked->may_cut_rows ? tli_find_least_with_rows(o, &cut) : TL_OK;
    if (!result) result = tli_cut_for_binding(o);
    if (!result) result = tli_may_cut(o) && !o->rows ? tli_find_least_with_pieces(o, least)
                                                     : tli_find_least_whole(o, least);
    tli_drop_rows(o);
    if (result) return result;
    if (cut < *least) *least = cut;
    return result;
}

// Why a run may not cut rows as it is asked to.
static tli_rule tli_find_may_cut_rule(const tl_run_desc *asked) {
    if (asked->may_cut_rows & ~1) return TLI_RULE(MAY_CUT_ROWS_MUST_BE_0_OR_1);
    if (!asked->may_cut_rows) return TLI_NO_RULE;
    if (asked->plan || asked->checkpoints || asked->rows) return TLI_RULE(MAY_CUT_ROWS_BUT_PLAN_IS_GIVEN);
    return tli_find_rows_rule(asked);
}

// Find the budget, and what it is to be compared with.
static tl_result tli_find_figures(tli_op_run *o) {
    const tl_run_desc *asked = o->asked;
    tl_result result = TL_OK;
    if (!(asked->budget_ratio >= 0 && asked->budget_ratio <= 1) ||
        (asked->budget_ratio > 0 && asked->budget_bytes))
        return tli_fail(o->list.env, TL_ERROR_INVALID_ARG, o->list.function,
                        TLI_RULE(BUDGET_RATIO_MUST_BE_0_TO_1));
    if (tli_find_may_cut_rule(asked))
        return tli_fail(o->list.env, TL_ERROR_INVALID_ARG, o->list.function, tli_find_may_cut_rule(asked));
    if (asked->budget_ratio > 0 || asked->figures) {
        result = tli_cut_for_binding(o);
        if (!result) result = tli_measure_keep_all(o);
        tli_drop_rows(o);
    }
    if (!result && asked->budget_ratio > 0) {
        double bytes = asked->budget_ratio * (double)o->figures.keep_all_bytes;
        o->desc.budget_bytes = bytes < 18446744073709551615.0 ? (uint64_t)bytes : UINT64_MAX;
        if (!o->desc.budget_bytes) o->desc.budget_bytes = 1;
    }
    o->figures.budget_bytes = o->desc.budget_bytes;
    if (!result && asked->figures) result = tli_find_least_bytes(o);
    if (!result) result = tli_choose_op_rows(o, o->desc.budget_bytes);
    return result ? result : tli_choose_op_pieces(o);
}

// Copy the nodes of a graph of the caller's, so that their costs can change.
static tl_result tli_own_nodes(tli_op_run *o) {
    const tl_graph *from = o->desc.graph;
    tl_node *nodes;
    if (!from) return TL_OK;
    nodes = (tl_node *)tli_alloc_array(o->list.env, (uint64_t)from->node_count, sizeof *nodes);
    if (!nodes) return tli_fail(o->list.env, TL_ERROR_NO_MEMORY, o->list.function, TLI_RULE(OPS_NO_MEMORY));
    tli_copy(nodes, from->nodes, (size_t)from->node_count * sizeof *nodes);
    o->graph = *from;
    o->graph.nodes = nodes;
    o->graph.node_capacity = from->node_count;
    o->graph.input_capacity = o->graph.tensor_capacity = o->graph.view_capacity = 0;
    o->graph.text_capacity = 0;
    o->desc.graph = NULL;
    return TL_OK;
}

// Give the nodes these costs, except where the list has a cost. A graph of the caller's takes all of them: its
// ops have none.
static tl_result tli_use_costs(tli_op_run *o, const tl_node_cost *costs) {
    tl_node *nodes;
    tl_result result = tli_own_nodes(o);
    int32_t i;
    if (result) return result;
    nodes = (tl_node *)o->graph.nodes;
    for (i = 0; i < o->graph.node_count; i++) {
        if (!nodes[i].is_input) nodes[i].fwd_cost = tli_op_cost(o->list.ops[i].fwd_cost, costs[i].fwd_ns);
        if (nodes[i].has_grad) nodes[i].bwd_cost = tli_op_cost(o->list.ops[i].bwd_cost, costs[i].bwd_ns);
    }
    return tl_check_graph(o->list.env, &o->graph);  // that the sum of the costs fits
}

// -- operations: rehearsal --

static tl_result tli_fail_first_finding(tli_op_run *o, const tl_rehearsal *found) {
    char text[200];
    tli_sentence s;
    int32_t k = 0;
    while (found->findings[k].is_advice) k++;
    text[0] = 0;
#ifndef TL_NO_TEXT
    (void)tl_print_finding(NULL, &found->findings[k], text, sizeof text);
#endif
    s = tli_begin_error(o->list.env, TL_ERROR_MISMATCH, o->list.function, TLI_RULE(REHEARSAL_FOUND_ERRORS),
                        (uint64_t)found->error_count, (uint64_t)(int64_t)found->findings[k].node);
    tli_put_text(&s, text);
    return tli_end_error(o->list.env, &s, TL_ERROR_MISMATCH);
}

// Rehearse the operations before anything is planned. Those of the host work in memory of the env, so the
// backend may have too little for that.
static tl_result tli_rehearse_ops(tli_op_run *o) {
    tl_env *env = o->list.env;
    const tl_backend *asked = o->desc.backend;
    tl_rehearsal *found = o->asked->rehearsal;
    tl_backend_limits limits;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_plan plan;
    tl_run *run = NULL;
    tl_result result = tl_plan_keep_all(env, tli_op_graph(o), tli_ops_infer(o), &plan);
    if (result) return result;
    (asked->limits)(asked->self, &limits);
    tli_zero(&cpu, sizeof cpu);
    tli_zero(&backend, sizeof backend);
    cpu.alignment_bytes = limits.alignment_bytes;
    cpu.now_ns = asked->now_ns;
    cpu.user = asked->self;
    desc = tli_desc_of_plan(o, &plan);
    desc.budget_bytes = desc.host_budget_bytes = desc.base_bytes = 0;
    desc.device = NULL;
    if (limits.host_visible) {
        result = tl_init_cpu_backend(env, &cpu, &backend);
        desc.backend = &backend;
    }
    if (!result) result = tli_init_run(env, &desc, TLI_RUN_OF_OPS, NULL, 0, &run);
    if (!result) result = tli_write_initial(&o->list, run);
    if (!result) result = tl_rehearse_run(run, NULL, found);
    tl_free_run(run);
    (void)tl_free_cpu_backend(env, limits.host_visible ? &backend : NULL);
    tl_free_plan(env, &plan);
    if (result) return result;
    if (found->error_count) return tli_fail_first_finding(o, found);
    if (found->costs) o->desc.costs = found->costs;
    return found->costs && !o->asked->costs ? tli_use_costs(o, found->costs) : TL_OK;
}
#else
static tl_result tli_find_figures(tli_op_run *o) {
    if (o->asked->budget_ratio == 0 && !o->asked->figures && !o->asked->rehearsal &&
        !o->asked->may_train_in_pieces && !o->asked->may_cut_rows) return TL_OK;
    return tli_fail(o->list.env, TL_ERROR_UNSUPPORTED, o->list.function, TLI_RULE(FIGURES_TL_NO_PLANNERS));
}

static tl_result tli_choose_tighter(tli_op_run *o, tl_result refusal) {
    (void)o;
    return refusal;
}
#endif

// -- operations: runs --

// The list gives kernels alone to a graph of the caller's.
static tl_result tli_check_graph_ops(const tli_op_run *o) {
    const tl_graph *graph = o->asked->graph;
    int32_t i;
    if (graph->node_count != o->list.count)
        return tli_fail_values(o->list.env, TL_ERROR_INVALID_ARG, o->list.function,
                               TLI_RULE(OP_COUNT_IS_NOT_THAT_OF_GRAPH), (uint64_t)graph->node_count, 0);
    for (i = 0; i < o->list.count; i++) {
        const tl_op *op = &o->list.ops[i];
        if (op->inputs || op->outputs || op->needs || op->input_count || op->output_count || op->inplace ||
            (op->output_bytes | op->saved_bytes | op->fwork_bytes | op->swork_bytes | op->bwork_bytes |
             op->param_bytes | op->fwd_cost | op->bwd_cost | op->rows))
            return tli_fail_op(&o->list, i, TLI_RULE(OP_OF_GRAPH_HAS_SIZES));
    }
    return TL_OK;
}

static tl_result tli_open_op_run(tli_op_run *o) {
    const tl_run_desc *asked = o->asked;
    tl_result result;
    if (o->list.count < 1)
        return tli_fail(o->list.env, TL_ERROR_INVALID_ARG, o->list.function,
                        TLI_RULE(OP_COUNT_MUST_BE_POSITIVE));
    if (!tli_is_complete_backend(asked->backend))
        return tli_fail(o->list.env, TL_ERROR_INVALID_ARG, o->list.function,
                        TLI_RULE(BACKEND_HAS_NO_FUNCTIONS));
    if (asked->kernels || asked->kernel_count)
        return tli_fail(o->list.env, TL_ERROR_INVALID_ARG, o->list.function, TLI_RULE(OP_KERNELS_STAND_IN_OPS));
    result = asked->graph ? tli_check_graph_ops(o) : TL_OK;
    if (!result) result = tli_make_ops(&o->list, asked->graph ? NULL : &o->graph, &o->kernels);
    if (result) return result;
    tli_use_ops(&o->desc, o->kernels, o->list.count);
    o->desc.figures = &o->figures;  // planning is counted there
    o->desc.costs = asked->costs;   // not read any more: says that costs are nanoseconds
#ifndef TL_NO_PLANNERS
    tli_ask_for_plan(o);
    if (asked->graph && asked->costs) result = tli_use_costs(o, asked->costs);
    if (!result && asked->rehearsal) result = tli_rehearse_ops(o);
#endif
    return result;
}

// Start the run of what was chosen.
static tl_result tli_try_op_run(tli_op_run *o, tl_run **run) {
    tl_graph *taken = tli_find_taken(o);
    tl_result result = tli_init_run(o->list.env, &o->desc, TLI_RUN_OF_OPS, taken, o->rows != NULL, run);
    if (result) return result;
    o->rows = NULL;     // the run has taken over these, and the graph
    if (taken) tl_init_graph(taken);
    return TL_OK;
}

static tl_result tli_start_op_run(tli_op_run *o, tl_run **run) {
    tli_quiet quiet = tli_begin_quiet(o->list.env);
    tl_result result;
    do {
        result = tli_try_op_run(o, run);
        if (!result) break;
        result = tli_choose_tighter(o, result);
    } while (!result);
    tli_end_quiet(&quiet, result);
    return result;
}

TLI_IMPL tl_result tl_init_op_run(tl_env *env, const tl_run_desc *desc, const tl_op *ops, int32_t op_count,
                                  tl_run **run) {
    tli_op_run o;
    tl_result result;
    TL_ASSERT(desc && desc->backend && ops && run);
    *run = NULL;
    tli_zero(&o, sizeof o);
#ifndef TL_NO_PLANNERS
    if (desc->rehearsal) tli_zero(desc->rehearsal, sizeof *desc->rehearsal);
#endif
    o.list.env = env;
    o.list.function = TLI_IN(INIT_OP_RUN);
    o.list.ops = ops;
    o.list.count = op_count;
    o.list.costs = desc->costs;
    o.asked = desc;
    o.desc = *desc;
#ifndef TL_NO_PLANNERS
    tli_watch_desc(&o.desc, &o.watch);
#endif
    result = tli_open_op_run(&o);
    if (!result) result = tli_find_figures(&o);
    if (!result) result = tli_start_op_run(&o, run);
    if (!result) result = tli_write_initial(&o.list, *run);
    if (result && *run) { tl_free_run(*run); *run = NULL; }
    if (!result) {
        o.figures.peak_bytes = (*run)->planned.peak_bytes;
        o.figures.arena_bytes = (*run)->plan.arena_bytes;
        o.figures.table_bytes = (*run)->table_bytes;
    }
    if (desc->figures) *desc->figures = o.figures;
    tl_free_graph(env, &o.graph);
    tl_free_graph(env, &o.in_pieces);
#ifndef TL_NO_PLANNERS
    tli_drop_rows(&o);
#endif
    tli_release(env, o.kernels);
    return result;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
