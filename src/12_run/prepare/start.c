#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- starting a run: its end --

#ifndef TL_NO_PLANNERS
static void tli_free_rows(tl_run *run) {
    tli_release(run->env, run->rows_made);
    tl_free_rows_plan(run->env, run->own_rows);
    tli_release(run->env, run->own_rows);
}
#endif

TLI_IMPL void tl_free_run(tl_run *run) {
    tl_env *env;
    if (!run) return;
    env = run->env;
    if (run->store.backend) {
        tli_quiet quiet = tli_begin_quiet(run->limits.env);
        tli_clear_run(run, 1);
        (void)tli_free_arenas(run);
        tli_close_store(&run->store);
        tli_end_quiet(&quiet, TL_OK);
    }
#ifndef TL_NO_ONLINE
    tli_free_online(run);
    tli_free_reports(run);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    tli_free_hybrid(run);
#endif
#ifndef TL_NO_PLANNERS
    tli_free_cache(run);
#endif
    if (run->owns_plan) tl_free_plan(env, &run->plan);
    tl_free_plan(env, &run->wide_plan);
    tli_release(env, run->all_tensors);
    tli_release(env, run->all_gradients);
    tli_release(env, run->all_saved);
    tli_release(env, run->saved_of);
    tli_release(env, run->all_spilled);
    tli_release(env, run->all_ran);
    tli_release(env, run->is_read);
    tli_release(env, run->is_result);
    tli_release(env, run->kernel_of);
    tli_release(env, run->kernels);
    tli_free_begun(run);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    tli_close_messages(run);
#endif
    tli_free_flights(run);
    tli_release(env, run->touched);
    tli_release(env, run->own_blocks);
    if (run->owns_nodes) {
        tli_release(env, (tl_node *)run->own_graph.nodes);
        tli_release(env, (tl_node_output *)run->own_graph.outputs);
        tli_release(env, (tl_node *)run->own_source.nodes);
        tli_release(env, (tl_node_output *)run->own_source.outputs);
    }
    tli_release(env, run->members.outer);
#ifndef TL_NO_PLANNERS
    tli_free_rows(run);
    tl_free_fusion_plan(env, &run->own_fusion);
#ifndef TL_NO_PRECISION
    tl_free_compiled_plan(env, &run->own_compiled);
    tl_free_compiled_ranks(env, &run->own_ranks);
    tl_free_parallel_plan(env, &run->own_ways);
#endif
#endif
    tl_free_graph(env, &run->op_graph);
    tli_release(env, run);
}

// -- starting a run: one try --

// How a run comes to its graph and its kernels.
typedef enum tli_run_form {
    TLI_RUN_OF_GRAPH,   // kernels are found by op
    TLI_RUN_OF_OPS,     // kernel i is that of node i
    TLI_RUN_OF_LAYERS   // the same, and node i + 1 is a layer
} tli_run_form;

// What a start tells the caller's progress function, over all plans that are tried: work that never falls, and
// nothing after he has asked to stop.
typedef struct tli_start_watch {
    int    (*progress)(const struct tl_remat_progress *progress, void *user);
    void    *user;
    uint64_t before, last;      // work of the plans before, and what the one under way told last
    int32_t  is_stopped;
} tli_start_watch;

// A start: what it is made of, and what it has come to.
typedef struct tli_start {
    tl_env       *env;
    tl_run_desc   desc;          // of the caller; its budget may be another while plans are tried
    tli_run_form  form;
    tl_graph     *graph;         // NULL = desc's; else the run takes it over
    uint64_t      graph_bytes;   // of one that stays with the caller, and counts as if it were taken over
    int32_t       counts_plan;   // 1 = a plan that is given counts as a table of the run
    int32_t       takes_rows;    // 1 = the run takes over desc.rows, which it releases
    uint64_t      reserved_bytes;  // of the budget, for tables
    uint64_t      table_bytes;   // of the tables of the run
    uint64_t      needed_bytes;  // of tables, arena and base together
    uint64_t      cost;          // of its plan
    int32_t       is_trial;      // 1 = no run is made: only the three numbers above are found
} tli_start;

// The bytes of arena, base and tables together; what is reserved for tables does not count beside them.
static uint64_t tli_needed_with_tables(const tl_run *run) {
    uint64_t needed = tli_needed_bytes(run, tli_pass_bytes(run, TL_TIER_DEVICE));
    return tli_add_reserved(needed - run->reserved_bytes, run->table_bytes);
}

// Make a run that was allocated. TL_NOT_READY: the budget binds tables, and is less than arena, base and tables
// together; or it was a trial. The numbers of *s are filled in then.
static tl_result tli_make_run(tli_start *s, tl_run *run) {
    tl_result result;
    run->env = s->env;
    run->wide = &run->wide_plan;
    run->backend = *s->desc.backend;
    run->desc = s->desc;
    run->graph = s->desc.graph;
    run->by_node = s->form != TLI_RUN_OF_GRAPH;
    run->owns_layers = s->form == TLI_RUN_OF_LAYERS;
    run->reserved_bytes = s->reserved_bytes;
    if (s->graph) {
        run->op_graph = *s->graph;
        run->graph = &run->op_graph;
    }
#ifndef TL_NO_PLANNERS
    if (s->takes_rows) run->own_rows = (tl_rows_plan *)s->desc.rows;
#endif
    (run->backend.limits)(run->backend.self, &run->limits);
    result = tli_prepare_run(run);
    if (s->desc.figures) s->desc.figures->work = tli_add_reserved(s->desc.figures->work, run->planning_work);
    if (result) return result;
    run->table_bytes += s->graph_bytes;
    if (s->counts_plan) run->table_bytes += tli_count_compact(&run->plan, tli_stays_wide(run));
    s->table_bytes = run->table_bytes;
    s->cost = run->plan.cost;
    s->needed_bytes = tli_needed_with_tables(run);
    if (s->is_trial) return TL_NOT_READY;
    if (s->desc.counts_tables && s->desc.budget_bytes && s->needed_bytes > s->desc.budget_bytes)
        return TL_NOT_READY;
    return tli_take_memory(run);
}

// Allocate a run and make it. Where that fails graph and rows stay with the caller.
static tl_result tli_try_run(tli_start *s, tl_run **out) {
    tl_run *run = (tl_run *)tli_alloc_array(s->env, 1, sizeof *run);
    tl_result result;
    tl_error error;
    if (!run) return tli_fail(s->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(RUN_NO_MEMORY));
    result = tli_make_run(s, run);
    if (!result) {
        tli_forget_desc(run);
        *out = run;
        return TL_OK;
    }
    tli_zero(&error, sizeof error);
    if (s->env) error = s->env->error;
    if (s->graph) tl_init_graph(&run->op_graph);
#ifndef TL_NO_PLANNERS
    run->own_rows = NULL;
#endif
    tl_free_run(run);
    if (s->env) s->env->error = error;
    return result;
}

static tl_result tli_refuse_tables(tli_start *s, uint64_t budget, uint64_t least) {
    tli_sentence text = tli_begin_error(s->env, TL_ERROR_INFEASIBLE, TLI_IN(INIT_RUN),
                                        TLI_RULE(TABLES_AND_ARENA_TAKE_BYTES), budget, least);
    tli_put_limit(s->env, &text, TL_LIMIT_BUDGET);
    tli_put_rule(&text);
    return tli_end_error(s->env, &text, TL_ERROR_INFEASIBLE);
}

#ifndef TL_NO_PLANNERS
// -- starting a run: a budget that binds the tables, too --
//
// Fewer bytes for the arena mean more steps, and a longer table of them. So plans are made within the budget
// less the tables of the one before, a few times. Where that leads nowhere, plans of the graph are tried within
// budgets between the least and that of keep all: the one that takes the fewest bytes together with its tables
// is what a refusal names, and the cheapest of those that fit is run.

#define TLI_TABLE_TURNS 5
#define TLI_TABLE_BUDGETS 8     // steps from the least budget to that of keep all
#define TLI_TABLE_WORK      1000000     // of each of their plans, whatever the caller's limit is ..
#define TLI_TABLE_NODE_WORK 20000       // .. and more a node

// Try a budget that binds no tables, and make no run. Returns the bytes of arena and base, or, where the budget
// is refused, the least one that the refusal names; 0 = another error.
static uint64_t tli_try_budget(tli_start *s, uint64_t budget, tl_result *result) {
    tl_run *none = NULL;
    s->desc.budget_bytes = budget;
    s->reserved_bytes = 0;
    s->is_trial = 1;
    *result = tli_try_run(s, &none);
    s->is_trial = 0;
    if (*result == TL_NOT_READY) return s->needed_bytes - s->table_bytes;
    return *result == TL_ERROR_INFEASIBLE && s->env ? tl_find_least_budget(&s->env->error) : 0;
}

// Find the budget of the cheapest of the plans that fit, 0 = none does, and the fewest bytes of any. low: the
// least budget without tables, 0 = not known.
static tl_result tli_find_between(tli_start *s, uint64_t budget, uint64_t low, uint64_t *within,
                                  uint64_t *fewest) {
    uint64_t high, cheapest = UINT64_MAX;
    tl_result result;
    int32_t k;
    *within = 0;
    *fewest = UINT64_MAX;
    high = tli_try_budget(s, 0, &result);
    if (!high) return result;
    if (!low) low = tli_try_budget(s, 1, &result);
    if (!low) return result;
    for (k = 0; k <= TLI_TABLE_BUDGETS; k++) {
        uint64_t at = low + (high > low ? (high - low) / TLI_TABLE_BUDGETS * (uint64_t)k : 0);
        if (!tli_try_budget(s, at, &result)) return result;
        if (result != TL_NOT_READY) continue;
        if (s->needed_bytes < *fewest) *fewest = s->needed_bytes;
        if (s->needed_bytes > budget || s->cost >= cheapest) continue;
        cheapest = s->cost;
        *within = at;
    }
    return TL_OK;
}

// Try plans between the least budget and that of keep all, with work of their own and no pool, so that neither
// what a refusal names nor what fits depends on the caller's. A plan of the caller's work may have a longer
// table; then the one that was tried is run.
static tl_result tli_start_between(tli_start *s, uint64_t budget, uint64_t low, tl_run **out) {
    uint64_t nodes = (uint64_t)(s->graph ? s->graph : s->desc.graph)->node_count, within, fewest;
    tl_run_desc asked = s->desc, tried;
    tl_result result;
    s->desc.pool = NULL;
    s->desc.work_limit = TLI_TABLE_WORK + TLI_TABLE_NODE_WORK * nodes;
    result = tli_find_between(s, budget, low, &within, &fewest);
    if (result) return result;
    if (!within) return tli_refuse_tables(s, budget, fewest);
    s->desc.budget_bytes = budget;
    s->reserved_bytes = budget - within;
    tried = s->desc;
    s->desc = asked;
    result = tli_try_run(s, out);
    if (result != TL_NOT_READY) return result;
    s->desc = tried;
    return tli_try_run(s, out);
}

// A plan that is given is not searched for, so there is one try; a refusal names what it takes with the tables
// of the run.
static tl_result tli_start_given(tli_start *s, tl_run **out) {
    uint64_t budget = s->desc.budget_bytes;
    tl_result result = tli_try_run(s, out);
    if (result == TL_ERROR_INFEASIBLE) (void)tli_try_budget(s, 0, &result);
    return result == TL_NOT_READY ? tli_refuse_tables(s, budget, s->needed_bytes) : result;
}

static tl_result tli_start_counted(tli_start *s, tl_run **out) {
    uint64_t budget = s->desc.budget_bytes, low = 0;
    int32_t turn;
    tl_result result = TL_NOT_READY;
    if (s->desc.plan) return tli_start_given(s, out);
    for (turn = 0; turn < TLI_TABLE_TURNS && result == TL_NOT_READY; turn++) {
        result = tli_try_run(s, out);
        if (result == TL_NOT_READY) s->reserved_bytes = s->table_bytes;
    }
    if (!budget || (result != TL_NOT_READY && result != TL_ERROR_INFEASIBLE)) return result;
    if (result == TL_ERROR_INFEASIBLE && s->env) low = tl_find_least_budget(&s->env->error);
    return tli_start_between(s, budget, low > s->reserved_bytes ? low - s->reserved_bytes : 0, out);
}

// The tries share a pool: the caller's, or one that lasts as long as the start. Those of tli_find_between, and
// a run of what one of them found, have none.
static tl_result tli_start_with_pool(tli_start *s, tl_run **out) {
    tl_remat_pool *own = NULL;
    tli_quiet quiet = tli_begin_quiet(s->env);
    tl_result result = s->desc.pool ? TL_OK : tl_init_remat_pool(s->env, &own);
    if (own) s->desc.pool = own;
    if (!result) result = tli_start_counted(s, out);
    tl_free_remat_pool(own);
    tli_end_quiet(&quiet, result);
    return result;
}
#else
static tl_result tli_start_with_pool(tli_start *s, tl_run **out) {
    tl_result result = tli_try_run(s, out);
    return result == TL_NOT_READY ? tli_refuse_tables(s, s->desc.budget_bytes, s->needed_bytes) : result;
}
#endif

// -- starting a run --

// Whether a backend has all functions that are not optional: one of zeroes was never made.
static int tli_is_complete_backend(const tl_backend *b) {
    return b->add_block && b->free_block && b->claim && b->release && b->copy && b->fill && b->order &&
           b->submit && b->poll && b->wait && b->map && b->unmap && b->check && b->now_ns && b->limits &&
           b->counters && b->reset_peaks;
}

#ifndef TL_NO_PLANNERS
static int tli_watch_start(const tl_remat_progress *progress, void *user) {
    tli_start_watch *w = (tli_start_watch *)user;
    tl_remat_progress now = *progress;
    if (w->is_stopped) return 1;
    if (now.work < w->last) w->before = tli_add_reserved(w->before, w->last);   // another plan
    w->last = now.work;
    now.work = tli_add_reserved(now.work, w->before);
    now.work_limit = tli_add_reserved(now.work_limit, w->before);
    w->is_stopped = (w->progress)(&now, w->user) != 0;
    return w->is_stopped;
}

// Put a watch between the desc and the caller, where he has a progress function.
static void tli_watch_desc(tl_run_desc *desc, tli_start_watch *watch) {
    tli_zero(watch, sizeof *watch);
    if (!desc->progress || desc->progress == tli_watch_start) return;
    watch->progress = desc->progress;
    watch->user = desc->progress_user;
    desc->progress = tli_watch_start;
    desc->progress_user = watch;
}
#endif

static tl_result tli_start_run(tli_start *s, tl_run **out) {
#ifndef TL_NO_PLANNERS
    tli_start_watch watch;
    tli_watch_desc(&s->desc, &watch);
#endif
    if (!tli_is_complete_backend(s->desc.backend))
        return tli_fail(s->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), TLI_RULE(BACKEND_HAS_NO_FUNCTIONS));
    if (s->desc.counts_tables & ~1)
        return tli_fail(s->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), TLI_RULE(COUNTS_TABLES_MUST_BE_0_OR_1));
    return s->desc.counts_tables ? tli_start_with_pool(s, out) : tli_try_run(s, out);
}

// graph: NULL = desc's; else the run takes it over. takes_rows: 1 = it takes over desc->rows, too. Where no run
// is made both stay with the caller.
static tl_result tli_init_run(tl_env *env, const tl_run_desc *desc, tli_run_form form, tl_graph *graph,
                              int32_t takes_rows, tl_run **out) {
    tli_start s;
    tli_zero(&s, sizeof s);
    s.env = env;
    s.desc = *desc;
    s.form = form;
    s.graph = graph;
    s.takes_rows = takes_rows;
    return tli_start_run(&s, out);
}

#ifndef TL_NO_PLANNERS
// The fewest bytes that a run of the desc, whose budget is not read, would need; UINT64_MAX = more than 64 bits
// hold. graph: one that the run would take over, which stays the caller's here; NULL = none. takes_plan: 1 = it
// would take over the plan, too; takes_rows: as in tli_init_run. What is wrong with the desc is an error, as in
// a start.
static tl_result tli_find_run_bytes(tl_env *env, const tl_run_desc *desc, const tl_graph *graph, int takes_plan,
                                    int32_t takes_rows, uint64_t *bytes) {
    tl_env own;
    tli_start s;
    tl_run *run = NULL;
    tl_result result;
    tli_zero(&own, sizeof own);
    if (env) own = *env;
    own.log = NULL;
    tli_zero(&s, sizeof s);
    s.env = &own;
    s.desc = *desc;
    s.desc.budget_bytes = 1;
    if (graph) s.desc.graph = graph;
    s.form = TLI_RUN_OF_OPS;
    s.graph_bytes = graph ? tli_count_graph(graph) : 0;
    s.counts_plan = takes_plan;
    s.takes_rows = takes_rows;
    result = tli_start_run(&s, &run);
    *bytes = result == TL_ERROR_OVERFLOW ? UINT64_MAX : result ? tl_find_least_budget(&own.error) : 1;
    tl_free_run(run);
    if (!result || result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW) return TL_OK;
    *bytes = 0;
    if (!env) return result;
    env->error = own.error;
    if (TLI_ERROR_TEXT && env->log) (env->log)(env->user, own.error.text);
    return result;
}
#endif

TLI_IMPL tl_result tl_init_run(tl_env *env, const tl_run_desc *desc, tl_run **run) {
    TL_ASSERT(desc && desc->graph && desc->backend && run);
    *run = NULL;
    if (desc->budget_ratio != 0 || desc->costs || desc->figures || desc->rehearsal ||
        desc->may_train_in_pieces || desc->may_cut_rows)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), TLI_RULE(FIGURES_ARE_OF_OP_RUNS));
    return tli_init_run(env, desc, TLI_RUN_OF_GRAPH, NULL, 0, run);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION

