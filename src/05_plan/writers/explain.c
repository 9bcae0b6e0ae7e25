#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TEXT

// Two ways to write a plan: an explanation in plain text, and const tables in C. Both replay the
// plan first, so neither is written for a plan that breaks a rule.

// -- allocations at the peak --

typedef struct tli_peak {
    tl_report report;      // of the whole plan
    tli_made *live;        // [live_count] live when the peak is first reached; released by the caller
    int32_t   live_count;
} tli_peak;

static void tli_add_live(tli_peak *peak, tli_use use, int32_t index, int32_t slot, uint64_t bytes) {
    tli_made *made = &peak->live[peak->live_count];
    if (!bytes) return;
    made->use = use; made->index = index; made->slot = slot; made->bytes = bytes;
    peak->live_count++;
}

// Add what is live in the present slot.
static void tli_list_slot(const tli_sim *sim, tli_peak *peak) {
    const tl_graph *graph = sim->graph;
    int32_t slot = sim->slot, i;
    for (i = 0; i < graph->tensor_count; i++) {
        const tli_sim_tensor *t = &sim->tensors[i];
        uint64_t bytes = graph->outputs[i].bytes;
        if (t->state == TLI_PACKED) tli_add_live(peak, TLI_USE_PACKED, i, slot, t->packed_bytes);
        else if (t->state != TLI_ABSENT) tli_add_live(peak, TLI_USE_TENSOR, i, slot, bytes);
        if (t->has_gradient) tli_add_live(peak, TLI_USE_GRADIENT, i, slot, bytes);
    }
    for (i = 0; i < graph->node_count; i++)
        if (sim->nodes[i].has_saved) tli_add_live(peak, TLI_USE_SAVED, i, slot, graph->nodes[i].saved_bytes);
}

// List everything that is live between two steps.
static void tli_list_live(tli_sim *sim, tli_peak *peak) {
    int32_t slot = sim->slot, i;
    peak->live_count = 0;
    for (i = 0; i < sim->slot_count; i++) {
        tli_sim_choose_slot(sim, i);
        tli_list_slot(sim, peak);
    }
    for (i = sim->late_first; i < sim->late_count; i++) {
        const tli_late *late = &sim->late[i];
        if (late->until <= sim->step_count || late->is_host) continue;    // free for the next step
        tli_add_live(peak, late->made.use, late->made.index, late->made.slot, late->made.bytes);
    }
    tli_sim_choose_slot(sim, slot);
}

// Simulate the step that reaches the peak, and list what is live before it and what it allocates. A
// conversion of several outputs is split into steps on one output, because their copies are not all
// live together.
static tl_result tli_list_peak(tli_sim *sim, tl_step step, tli_peak *peak) {
    const tl_node *node = &sim->graph->nodes[step.node];
    int alone = (step.kind == TL_STEP_COMPRESS || step.kind == TL_STEP_EXPAND) && sim->in_flight <= 1;
    int32_t count = alone && step.output == TL_ALL_OUTPUTS ? node->output_count : 1, i;
    tl_result result = TL_OK;
    for (i = 0; i < count && !result; i++) {
        tl_step one = step;
        if (count > 1) one.output = i;
        tli_sim_choose_slot(sim, step.slot);
        if (count > 1 && !tli_sim_acts_on(sim, (tl_step_kind)step.kind, node->first_output + i)) continue;
        tli_list_live(sim, peak);
        result = tli_sim_step(sim, &one);
        if (!result && sim->step_bytes == peak->report.peak_bytes) break;
    }
    for (i = 0; i < sim->made_count && !result; i++) peak->live[peak->live_count++] = sim->made[i];
    return result;
}

// Replay a plan to find its peak, then once more up to there to list what is live.
static tl_result tli_find_peak(tl_env *env, tli_function function, const tl_simulate_desc *desc,
                               tli_peak *peak) {
    const tl_graph *graph = desc->graph;
    uint64_t most = 3 * (uint64_t)graph->tensor_count + (uint64_t)graph->node_count;
    tli_sim sim;
    int32_t i;
    tl_result result;
    tli_zero(peak, sizeof *peak);
    result = tli_simulate_checked(env, function, desc, NULL, &peak->report);
    if (result) return result;
    most *= (uint64_t)tli_count_slots(desc->plan);
    if (tli_count_in_flight(desc->plan) > 1)    // what was freed and is not free: no more than was allocated
        most += (uint64_t)peak->report.allocation_count;
    peak->live = (tli_made *)tli_alloc_array(env, most + tli_sim_most_made(graph), sizeof *peak->live);
    if (!peak->live) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_TO_LOOK_AT_PEAK));
    result = tli_init_sim(env, &sim, function, graph, desc->device, desc->plan, NULL);
    for (i = 0; i < peak->report.peak_step && !result; i++) {
        tl_step step = tl_find_step(desc->plan, i);
        result = tli_sim_step(&sim, &step);
    }
    if (!result && peak->report.peak_step < 0) tli_list_live(&sim, peak);
    else if (!result) result = tli_list_peak(&sim, tl_find_step(desc->plan, peak->report.peak_step), peak);
    tli_free_sim(&sim);
    if (!result) return TL_OK;
    tli_release(env, peak->live);
    peak->live = NULL;
    return result;
}

static int tli_is_larger(const tli_made *a, const tli_made *b) {
    if (a->bytes != b->bytes) return a->bytes > b->bytes;
    if (a->slot != b->slot) return a->slot < b->slot;
    return a->index != b->index ? a->index < b->index : a->use < b->use;
}

// Move the largest `count` allocations to the front, largest first.
static void tli_sort_largest(tli_peak *peak, int32_t count) {
    int32_t i, k;
    for (i = 0; i < count; i++) {
        int32_t best = i;
        tli_made swap = peak->live[i];
        for (k = i + 1; k < peak->live_count; k++)
            if (tli_is_larger(&peak->live[k], &peak->live[best])) best = k;
        peak->live[i] = peak->live[best];
        peak->live[best] = swap;
    }
}

// Write "conv1.0", or "conv1" if the node has one output only.
static void tli_put_tensor(tli_writer *w, const tl_graph *graph, int32_t tensor) {
    const tl_node_output *output = &graph->outputs[tensor];
    tli_put(w, tl_name_node(graph, output->node));
    if (graph->nodes[output->node].output_count == 1) return;
    tli_put(w, ".");
    tli_put_i64(w, output->output);
}

static const char *tli_explain_use(tli_use use) {
    switch (use) {
    case TLI_USE_TENSOR: break;
    case TLI_USE_PACKED: return ", compressed";
    case TLI_USE_GRADIENT: return ", its gradient";
    case TLI_USE_SAVED: return ", saved";
    case TLI_USE_TWICE: return ", made again beside itself";
    case TLI_USE_WORK: return ", scratch";
    }
    return "";
}

static void tli_put_slot(tli_writer *w, int32_t slot) {
    if (!slot) return;
    tli_put(w, "@");
    tli_put_i64(w, slot);
}

// Write "conv1, its gradient", of another slot than 0 "conv1@1, its gradient". Names of checked graphs fit
// into 320 bytes.
static void tli_name_made(const tl_graph *graph, const tli_made *made, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    if (made->use == TLI_USE_SAVED || made->use == TLI_USE_WORK) tli_put(&w, tl_name_node(graph, made->index));
    else tli_put_tensor(&w, graph, made->index);
    tli_put_slot(&w, made->slot);
    tli_put(&w, tli_explain_use(made->use));
    tli_finish(&w);
}

// -- explanation in plain text --

#define TLI_EXPLAIN_ROWS 12

// part / whole in hundredths of a percent; whole > 0. Large numbers are halved until the product
// fits.
static uint64_t tli_find_share(uint64_t part, uint64_t whole) {
    while (part > UINT64_MAX / 10001) { part >>= 1; whole >>= 1; }
    return part * 10000 / (whole ? whole : 1);
}

// Send "1310720 bytes (1.25 MiB)".
static void tli_send_bytes_of(tli_stream *s, uint64_t bytes) {
    tli_send_u64(s, bytes);
    tli_send(s, bytes == 1 ? " byte" : " bytes");
    if (bytes < 1024) return;
    tli_send(s, " (");
    tli_send_size(s, bytes);
    tli_send(s, ")");
}

static void tli_send_count(tli_stream *s, int32_t count, const char *one, const char *more) {
    tli_send_i32(s, count);
    tli_send(s, count == 1 ? one : more);
}

// The words for a kind of step that allocates; a peak is at no other step.
static const char *tli_explain_kind(tl_step_kind kind) {
    switch (kind) {
    case TL_STEP_FORWARD: return "forward of ";
    case TL_STEP_FORWARD_INPLACE: return "forward in place of ";
    case TL_STEP_FORWARD_SAVE: return "saving forward of ";
    case TL_STEP_BACKWARD: return "backward of ";
    case TL_STEP_FETCH: return "fetch of ";
    case TL_STEP_COMPRESS: return "compression of ";
    case TL_STEP_EXPAND: return "expansion of ";
    case TL_STEP_DROP:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_SPILL:
    case TL_STEP_WAIT:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COUNT: break;
    }
    return "";
}

// Write "step 17, backward of conv1".
static void tli_put_step(tli_writer *w, const tl_graph *graph, const tl_plan *plan, int32_t index) {
    tl_step step;
    if (index < 0) { tli_put(w, "before the first step"); return; }
    step = tl_find_step(plan, index);
    tli_put(w, "step ");
    tli_put_i64(w, index);
    tli_put(w, ", ");
    tli_put(w, tli_explain_kind((tl_step_kind)step.kind));
    tli_put(w, tl_name_node(graph, step.node));
    if (step.output != TL_ALL_OUTPUTS) { tli_put(w, "."); tli_put_i64(w, step.output); }
    tli_put_slot(w, step.slot);
}

// " in 3 blocks of 2 banks", of the device.
static void tli_explain_blocks(tli_stream *s, const tl_plan *plan) {
    uint32_t seen = 0;
    int32_t k, blocks = 0, banks = 0;
    for (k = 0; k < plan->block_count && plan->blocks[k].tier == 0; k++, blocks++) {
        banks += !(seen >> plan->blocks[k].bank & 1);
        seen |= (uint32_t)1 << plan->blocks[k].bank;
    }
    if (!blocks) return;
    tli_send(s, " in ");
    tli_send_count(s, blocks, " block", " blocks");
    tli_send(s, " of ");
    tli_send_count(s, banks, " bank", " banks");
}

// The bytes that states hold, all of them in the peak, too.
static void tli_explain_states(tli_stream *s, const tl_graph *graph, const tl_report *r) {
    uint64_t bytes = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].state) bytes += graph->outputs[i].bytes;
    if (!bytes) return;
    tli_send(s, "states: ");
    tli_send_bytes_of(s, bytes);
    tli_send(s, ", ");
    tli_send_decimal(s, tli_find_share(bytes, r->peak_bytes), 2);
    tli_send(s, " % of the peak: weights, moments, gradients that are held\n");
}

static void tli_explain_numbers(tli_stream *s, const tl_graph *graph, const tl_plan *plan, const tl_report *r) {
    uint64_t cost = plan->cost ? plan->cost : r->cost;
    tli_send_count(s, plan->step_count, " step on ", " steps on ");
    tli_send_count(s, graph->node_count, " node, ", " nodes, ");
    tli_send(s, plan->inference ? "forward only" : "training");
    if (plan->slot_count > 1) {
        tli_send(s, ", ");
        tli_send_i32(s, plan->slot_count);
        tli_send(s, " micro-batches under way together");
    }
    if (plan->in_flight > 1) {
        tli_send(s, ", up to ");
        tli_send_i32(s, plan->in_flight);
        tli_send(s, " steps under way together");
    }
    tli_send(s, "\n");
    tli_send(s, "cost ");
    tli_send_u64(s, cost);
    tli_send(s, ": each call once ");
    tli_send_u64(s, r->base_cost);
    if (r->base_cost) {
        tli_send(s, ", ratio ");
        tli_send_decimal(s, tli_find_share(cost, r->base_cost), 4);
    }
    if (plan->bound_cost) {
        tli_send(s, "; no plan costs less than ");
        tli_send_u64(s, plan->bound_cost);
        tli_send(s, plan->bound_cost >= cost ? ": proven" : ", at most ");
        if (plan->bound_cost < cost) {
            tli_send_decimal(s, tli_find_share(cost - plan->bound_cost, plan->bound_cost), 2);
            tli_send(s, " % above");
        }
    }
    tli_send(s, "\n");
    if (plan->base_bytes) {
        tli_send(s, "base: ");
        tli_send_bytes_of(s, plan->base_bytes);
        tli_send(s, " beside the plan\n");
    }
    tli_explain_states(s, graph, r);
    if (plan->entry_count) {
        tli_send_count(s, plan->entry_count, " tensor is", " tensors are");
        tli_send(s, " there from the start\n");
    }
    if (plan->offset_count) {
        tli_send(s, "arena: ");
        tli_send_bytes_of(s, r->arena_bytes);
        tli_explain_blocks(s, plan);
        tli_send(s, "\n");
    }
}

// Send the start of a row of the table of the peak: "     6.45 %  32 bytes (..)  ".
static void tli_send_row(tli_stream *s, uint64_t bytes, uint64_t whole) {
    uint64_t share = whole ? tli_find_share(bytes, whole) : 0;
    tli_send(s, share < 1000 ? "     " : share < 10000 ? "    " : "   ");
    tli_send_decimal(s, share, 2);
    tli_send(s, " %  ");
    tli_send_bytes_of(s, bytes);
    tli_send(s, "  ");
}

static void tli_explain_peak(tli_stream *s, const tl_graph *graph, const tl_plan *plan, tli_peak *peak) {
    int32_t rows = peak->live_count < TLI_EXPLAIN_ROWS ? peak->live_count : TLI_EXPLAIN_ROWS, i;
    uint64_t rest = peak->report.peak_bytes;
    char name[400];
    tli_writer w = tli_writer_of(name, sizeof name);
    tli_put_step(&w, graph, plan, peak->report.peak_step);
    tli_finish(&w);
    tli_send(s, "peak: ");
    tli_send_bytes_of(s, peak->report.peak_bytes);
    tli_send(s, ", ");
    tli_send(s, name);
    tli_send(s, "\n");
    tli_sort_largest(peak, rows);
    for (i = 0; i < rows; i++) {
        tli_send_row(s, peak->live[i].bytes, peak->report.peak_bytes);
        tli_name_made(graph, &peak->live[i], name, sizeof name);
        tli_send(s, name);
        tli_send(s, "\n");
        rest -= peak->live[i].bytes;
    }
    if (rows == peak->live_count) return;
    tli_send_row(s, rest, peak->report.peak_bytes);
    tli_send_count(s, peak->live_count - rows, " smaller one\n", " smaller ones\n");
}

// The cost of the repeated forwards of a node. No overflow, because the cost of the plan includes
// it. again: [node_count] forwards beyond the first in each slot.
static uint64_t tli_find_again(const tl_graph *graph, const int32_t *again, int32_t id) {
    return (uint64_t)again[id] * graph->nodes[id].fwd_cost;
}

// again_of: [node_count] forwards beyond the first in each slot; set to 0 for each node whose row is sent.
static void tli_explain_again(tli_stream *s, const tl_graph *graph, int32_t *again_of) {
    uint64_t cost = 0;
    int32_t id, nodes = 0, again = 0, rows = 0;
    for (id = 0; id < graph->node_count; id++) {
        if (!again_of[id]) continue;
        nodes++;
        again += again_of[id];
        cost += tli_find_again(graph, again_of, id);
    }
    if (!again) { tli_send(s, "nothing is made twice\n"); return; }
    tli_send(s, "made again: ");
    tli_send_count(s, again, " forward of ", " forwards of ");
    tli_send_count(s, nodes, " node, cost ", " nodes, cost ");
    tli_send_u64(s, cost);
    tli_send(s, "\n");
    for (; rows < TLI_EXPLAIN_ROWS && nodes; rows++, nodes--) {
        int32_t best = -1;
        for (id = 0; id < graph->node_count; id++) {
            if (!again_of[id]) continue;
            if (best < 0 || tli_find_again(graph, again_of, id) > tli_find_again(graph, again_of, best))
                best = id;
        }
        tli_send(s, "    ");
        tli_send_count(s, again_of[best], " time   cost ", " times  cost ");
        tli_send_u64(s, tli_find_again(graph, again_of, best));
        tli_send(s, "  ");
        tli_send(s, tl_name_node(graph, best));
        tli_send(s, "\n");
        again_of[best] = 0;
    }
    if (nodes) { tli_send(s, "    and "); tli_send_count(s, nodes, " node more\n", " nodes more\n"); }
}

// How many forwards [node_count] of a valid plan run a node that had run in their slot; NULL = no memory.
static int32_t *tli_count_again(tl_env *env, const tl_graph *graph, const tl_plan *plan) {
    size_t nodes = (size_t)graph->node_count;
    int32_t *again = (int32_t *)tli_alloc_array(env, (uint64_t)nodes, sizeof *again), i;
    uint8_t *ran = (uint8_t *)tli_alloc_array(env, (uint64_t)nodes * (uint64_t)tli_count_slots(plan), 1);
    for (i = 0; again && ran && i < plan->step_count; i++) {
        const tl_step step = tl_find_step(plan, i);
        uint8_t *before = &ran[(size_t)step.slot * nodes + (size_t)step.node];
        if (step.kind >= TL_STEP_BACKWARD) continue;
        again[step.node] += *before;
        *before = 1;
    }
    if (!ran) {
        tli_release(env, again);
        again = NULL;
    }
    tli_release(env, ran);
    return again;
}

static void tli_explain_copies(tli_stream *s, const tl_report *report) {
    if (report->copy_count) {
        tli_send_count(s, report->copy_count, " copy", " copies");
        tli_send(s, " from and to the host, which holds at most ");
        tli_send_bytes_of(s, report->host_peak_bytes);
        tli_send(s, "\n");
    }
    if (report->codec_count) tli_send_count(s, report->codec_count, " conversion\n", " conversions\n");
}

TLI_IMPL tl_result tl_explain_plan(tl_env *env, const tl_graph *graph, const tl_plan *plan, tl_sink sink) {
    tl_simulate_desc desc;
    tli_stream stream;
    tli_peak peak;
    int32_t *again;
    tl_result result;
    TL_ASSERT(graph && plan && sink.write);
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    result = tli_find_peak(env, TLI_IN(EXPLAIN_PLAN), &desc, &peak);
    if (result) return result;
    again = tli_count_again(env, graph, plan);
    if (!again) {
        tli_release(env, peak.live);
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(EXPLAIN_PLAN), TLI_RULE(NO_MEMORY_TO_COUNT_FORWARDS));
    }
    tli_open_stream(&stream, sink);
    tli_explain_numbers(&stream, graph, plan, &peak.report);
    tli_explain_peak(&stream, graph, plan, &peak);
    tli_explain_again(&stream, graph, again);
    tli_explain_copies(&stream, &peak.report);
    tli_release(env, again);
    tli_release(env, peak.live);
    return tli_close_stream(&stream, env, TLI_IN(EXPLAIN_PLAN));
}

// -- tables in C --

#define TLI_ID(id, name, help) #id,

static const char *const tli_step_ids[] = { TL_STEPS(TLI_ID) };
static const char *const tli_codec_ids[] = { TL_CODECS(TLI_ID) };

#undef TLI_ID

static tli_rule tli_check_identifier(const char *name) {
    int32_t i;
    for (i = 0; name[i] && i <= 48; i++) {
        int letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z');
        int digit = name[i] >= '0' && name[i] <= '9';
        int line = name[i] == '_' && name[i + 1] && name[i + 1] != '_';
        if (!letter && !(i && (digit || line))) break;
    }
    if (i && i <= 48 && !name[i]) return TLI_NO_RULE;
    return TLI_RULE(NAME_MUST_BE_1_TO_48_LETTERS_DIGITS);
}

// Send a number as a constant that has the same value for every compiler, whatever the width of
// int.
static void tli_send_constant(tli_stream *s, uint64_t value) {
    int wide = value > INT32_MAX;
    if (wide) tli_send(s, "UINT64_C(");
    tli_send_u64(s, value);
    if (wide) tli_send(s, ")");
}

// Send "static const <type> <name><what>[count] = {".
static void tli_open_table(tli_stream *s, const char *type, const char *name, const char *what,
                           uint64_t count) {
    tli_send(s, "\nstatic const ");
    tli_send(s, type);
    tli_send(s, " ");
    tli_send(s, name);
    tli_send(s, what);
    tli_send(s, "[");
    tli_send_u64(s, count);
    tli_send(s, "] = {\n");
}

static void tli_send_list(tli_stream *s, const int32_t *values, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++) {
        if (i) tli_send(s, ", ");
        tli_send_i32(s, values[i]);
    }
}

// Send a name of a checked graph in ASCII, for a comment: other characters as \u00e9 or \U0001f600. Compilers
// need not know the encoding of the table.
static void tli_send_ascii(tli_stream *s, const char *name) {
    static const char hex[] = "0123456789abcdef";
    const char *end = name + tli_text_length(name);
    while (name < end) {
        uint32_t code = 0;
        size_t length = tli_utf8_length(name, end, &code);
        int digit = code > 0xffff ? 8 : 4;
        if (length == 1) tli_send_bytes(s, name, 1);
        else tli_send(s, digit == 8 ? "\\U" : "\\u");
        while (length > 1 && digit-- > 0) tli_send_bytes(s, hex + (code >> 4 * digit & 15), 1);
        name += length;
    }
}

// -- tables in C: numbers for the preprocessor --
//
// Names are those of nodes in upper case, with one _ for each run of other characters. Where several nodes
// would have the same name, or nothing is left of one, _n and the number of the node follow; behind the name of
// a node with several outputs _o and the number of the output; behind that of another slot than 0 _s and the
// slot. Lower case occurs nowhere else.

typedef struct tli_table {
    const tl_graph *graph;
    const tl_plan  *plan;
    const char     *name;
    tl_lifetimes    lifetimes;
    tl_report       report;
    uint8_t        *is_shared;  // [node_count] 1 = another node has the same name in upper case
    uint64_t       *block_bytes;  // [block_count of the plan] what each block takes
    tli_function    function;   // for error sentences
    int32_t         is_narrow, omit_names;
    tl_graph        bare;       // what is written without names; its nodes and text belong to the table
} tli_table;

typedef struct tli_macro { char text[256]; } tli_macro;

static tli_macro tli_macro_of(const char *name) {
    tli_macro macro;
    size_t length = 0;
    for (; *name && length < sizeof macro.text - 1; name++) {
        int lower = *name >= 'a' && *name <= 'z';
        int other = !lower && !(*name >= 'A' && *name <= 'Z') && !(*name >= '0' && *name <= '9');
        if (!other) macro.text[length++] = lower ? (char)(*name - 'a' + 'A') : *name;
        else if (length && macro.text[length - 1] != '_') macro.text[length++] = '_';
    }
    if (length && macro.text[length - 1] == '_') length--;
    macro.text[length] = 0;
    return macro;
}

// Mark the nodes whose names are those of others, too, by a hash of 64 bits: a name marked in vain is longer.
static tl_result tli_mark_shared_names(tl_env *env, const tl_graph *graph, uint8_t *is_shared) {
    uint64_t *hashes = (uint64_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *hashes);
    int32_t *order = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *order), id;
    if (hashes && order) {
        for (id = 0; id < graph->node_count; id++) {
            tli_macro macro = tli_macro_of(tl_name_node(graph, id));
            const char *at = macro.text;
            for (is_shared[id] = !*at; *at; at++) hashes[id] = tl_mix_u64(hashes[id], (unsigned char)*at);
        }
        tli_sort_numbers(order, graph->node_count, hashes);
        for (id = 1; id < graph->node_count; id++)
            if (hashes[order[id]] == hashes[order[id - 1]]) is_shared[order[id]] = is_shared[order[id - 1]] = 1;
    }
    tli_release(env, hashes);
    tli_release(env, order);
    return hashes && order ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Send "#define NET_<what>", before a name or a value.
static void tli_send_define(tli_stream *s, const tli_table *t, const char *what) {
    tli_send(s, "#define ");
    tli_send(s, tli_macro_of(t->name).text);
    tli_send(s, what);
}

static void tli_send_defined(tli_stream *s, const tli_table *t, const char *what, uint64_t value) {
    tli_send_define(s, t, what);
    tli_send_constant(s, value);
    tli_send(s, "\n");
}

static void tli_send_macro_node(tli_stream *s, const tli_table *t, int32_t id) {
    tli_macro macro = tli_macro_of(tl_name_node(t->graph, id));
    tli_send(s, macro.text);
    if (!t->is_shared[id]) return;
    tli_send(s, *macro.text ? "_n" : "n");
    tli_send_i32(s, id);
}

// Send "#define NET_INPUT_X", for a tensor.
static void tli_send_macro_tensor(tli_stream *s, const tli_table *t, const char *what,
                                  const tl_lifetime *life) {
    tli_send_define(s, t, what);
    tli_send_macro_node(s, t, life->node);
    if (t->graph->nodes[life->node].output_count > 1) { tli_send(s, "_o"); tli_send_i32(s, life->output); }
    if (life->slot) { tli_send(s, "_s"); tli_send_i32(s, life->slot); }
}

// Send one number of a tensor: "#define NET_INPUT_X_OFFSET 64", where `of` is "_OFFSET ".
static void tli_send_macro_number(tli_stream *s, const tli_table *t, const char *what, const tl_lifetime *life,
                                  const char *of, uint64_t number) {
    tli_send_macro_tensor(s, t, what, life);
    tli_send(s, of);
    tli_send_constant(s, number);
    tli_send(s, "\n");
}

static void tli_send_macro_place(tli_stream *s, const tli_table *t, const char *what, const tl_lifetime *life) {
    uint64_t start = life->block < 0 ? 0 : t->plan->blocks[life->block].offset;
    if (t->plan->offset_count) tli_send_macro_number(s, t, what, life, "_OFFSET ", life->offset - start);
    if (t->plan->offset_count && life->block >= 0)
        tli_send_macro_number(s, t, what, life, "_BLOCK ", (uint64_t)life->block);
    tli_send_macro_number(s, t, what, life, "_BYTES ", life->bytes);
}

// What the blocks of a bank of the device take, of which the bytes of each are given.
static uint64_t tli_sum_bank(const tl_plan *plan, const uint64_t *block_bytes, int32_t bank) {
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < plan->block_count; k++)
        if (plan->blocks[k].tier == 0 && plan->blocks[k].bank == bank) sum += block_bytes[k];
    return sum;
}

// Send the bytes of each block, and of each bank of the device.
static void tli_send_macro_blocks(tli_stream *s, const tli_table *t) {
    int32_t bank, k;
    for (k = 0; k < t->plan->block_count; k++) {
        tli_send_define(s, t, "_BLOCK_");
        tli_send_i32(s, k);
        tli_send(s, "_BYTES ");
        tli_send_constant(s, t->block_bytes[k]);
        tli_send(s, "\n");
    }
    for (bank = 0; bank < TL_MOST_BANKS; bank++) {
        uint64_t bytes = tli_sum_bank(t->plan, t->block_bytes, bank);   // no overflow: part of the arena
        if (!bytes) continue;
        tli_send_define(s, t, "_BANK_");
        tli_send_i32(s, bank);
        tli_send(s, "_BYTES ");
        tli_send_constant(s, bytes);
        tli_send(s, "\n");
    }
    if (t->plan->block_count) tli_send_defined(s, t, "_BLOCKS ", (uint64_t)t->plan->block_count);
}

// Whether several steps may be under way and another lifetime of the same output follows: the one before may
// end at the end of the plan, too, without being the result.
static int tli_lives_again(const tli_table *t, int32_t index) {
    const tl_lifetime *life = &t->lifetimes.items[index];
    int32_t i;
    for (i = index + 1; i < t->lifetimes.count && t->plan->in_flight > 1; i++) {
        const tl_lifetime *other = &t->lifetimes.items[i];
        if (other->use == life->use && other->node == life->node && other->output == life->output &&
            other->slot == life->slot) return 1;
    }
    return 0;
}

// Whether a lifetime is that of a result when the pass ends.
static int tli_ends_as_result(const tli_table *t, int32_t index, const uint8_t *is_result) {
    const tl_lifetime *life = &t->lifetimes.items[index];
    return life->use == TL_USE_OUTPUT && life->end_step == t->plan->step_count &&
           is_result[t->graph->nodes[life->node].first_output + life->output] && !tli_lives_again(t, index);
}

// What stands in the macros of what is resident throughout; NULL = it is not.
static const char *tli_name_input_macro(const tl_lifetime *life) {
    return life->use == TL_USE_STATE ? "_STATE_" : life->use == TL_USE_INPUT ? "_INPUT_" : NULL;
}

static void tli_send_numbers(tli_stream *s, const tli_table *t, const uint8_t *is_result) {
    const tl_graph *graph = t->graph;
    int32_t i, first = tli_count_first_lives(&t->lifetimes, t->graph, t->plan);
    tli_send(s, "\n");
    if (t->plan->offset_count) {
        tli_send_defined(s, t, "_ARENA_BYTES ", t->report.arena_bytes);
        tli_send_defined(s, t, "_ALIGNMENT ", t->plan->alignment_bytes ? t->plan->alignment_bytes : 1);
    }
    tli_send_defined(s, t, "_PEAK_BYTES ", t->report.peak_bytes);
    if (t->report.host_peak_bytes) tli_send_defined(s, t, "_HOST_PEAK_BYTES ", t->report.host_peak_bytes);
    if (t->report.host_arena_bytes) tli_send_defined(s, t, "_HOST_ARENA_BYTES ", t->report.host_arena_bytes);
    tli_send_macro_blocks(s, t);
    tli_send_defined(s, t, "_BASE_BYTES ", t->plan->base_bytes);
    if (t->plan->slot_count > 1) tli_send_defined(s, t, "_SLOTS ", (uint64_t)t->plan->slot_count);
    if (t->plan->in_flight > 1) tli_send_defined(s, t, "_IN_FLIGHT ", (uint64_t)t->plan->in_flight);
    tli_send_defined(s, t, "_STEPS ", (uint64_t)t->plan->step_count);
    tli_send_defined(s, t, "_NODES ", (uint64_t)graph->node_count);
    tli_send_defined(s, t, "_TENSORS ", (uint64_t)graph->tensor_count);
    for (i = 0; i < t->lifetimes.count; i++) {
        const tl_lifetime *life = &t->lifetimes.items[i];
        if (tli_name_input_macro(life)) tli_send_macro_place(s, t, tli_name_input_macro(life), life);
        else if (i < first) tli_send_macro_place(s, t, "_ENTRY_", life);
        if (tli_ends_as_result(t, i, is_result)) tli_send_macro_place(s, t, "_RESULT_", life);
    }
    for (i = 0; i < graph->node_count; i++) {
        tli_send_define(s, t, "_NODE_");
        tli_send_macro_node(s, t, i);
        tli_send(s, " ");
        tli_send_i32(s, i);
        tli_send(s, "\n");
    }
}

// -- tables in C: graph and plan --

// named: the graph with the names that comments have.
static void tli_send_node(tli_stream *s, const tl_graph *graph, const tl_graph *named, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    uint64_t amounts[6];
    int32_t numbers[13], more[5], k;
    numbers[0] = (int32_t)node->name; numbers[1] = (int32_t)node->op; numbers[2] = (int32_t)node->unit;
    numbers[3] = node->first_input; numbers[4] = node->input_count;
    numbers[5] = node->first_output; numbers[6] = node->output_count;
    numbers[7] = node->inplace; numbers[8] = node->layer;
    numbers[9] = node->is_input; numbers[10] = node->has_grad;
    numbers[11] = node->keep; numbers[12] = node->fixed;
    amounts[0] = node->fwd_cost; amounts[1] = node->bwd_cost; amounts[2] = node->saved_bytes;
    amounts[3] = node->fwork_bytes; amounts[4] = node->bwork_bytes; amounts[5] = node->param_bytes;
    more[0] = node->takes_blocks; more[1] = node->dynamic; more[2] = node->once; more[3] = node->state;
    more[4] = node->origin;
    tli_send(s, "    { ");
    tli_send_list(s, numbers, 13);
    for (k = 0; k < 6; k++) { tli_send(s, ", "); tli_send_constant(s, amounts[k]); }
    tli_send(s, ", ");
    tli_send_list(s, more, 5);
    tli_send(s, ", ");
    tli_send_constant(s, node->swork_bytes);
    tli_send(s, ", ");
    tli_send_i32(s, node->weight_rows);
    tli_send(s, ", ");
    tli_send_i32(s, node->piece_rows);
    tli_send(s, " },  // ");
    tli_send_ascii(s, tl_name_node(named, id));
    tli_send(s, ": node ");  // a name must not end the line: a backslash in it would join the next line
    tli_send_i32(s, id);
    tli_send(s, "\n");
}

// Send the texts as character constants: one string literal could be longer than C99 compilers must
// accept.
static void tli_send_text_table(tli_stream *s, const tl_graph *graph) {
    uint32_t i;
    for (i = 0; i < graph->text_bytes; i++) {
        char c = graph->text[i];
        int code = (unsigned char)c;
        if (!i || !graph->text[i - 1]) tli_send(s, "    ");
        if (c == '\'' || c == '\\') { tli_send(s, "'\\"); tli_send_bytes(s, &c, 1); tli_send(s, "'"); }
        else if (c >= ' ' && c <= '~') { tli_send(s, "'"); tli_send_bytes(s, &c, 1); tli_send(s, "'"); }
        else if (!c) tli_send(s, "0");
        else {
            tli_send(s, "'\\");
            tli_send_i32(s, code >> 6); tli_send_i32(s, code >> 3 & 7); tli_send_i32(s, code & 7);
            tli_send(s, "'");
        }
        tli_send(s, c ? "," : ",\n");
    }
    tli_send(s, "};\n");
}

static void tli_send_tensor_tables(tli_stream *s, const tl_graph *graph, const char *name) {
    int32_t i;
    if (graph->input_count) tli_open_table(s, "tl_node_input", name, "_inputs", (uint64_t)graph->input_count);
    for (i = 0; i < graph->input_count; i++) {
        tli_send(s, "    { ");
        tli_send_i32(s, graph->inputs[i].tensor);
        tli_send(s, graph->inputs[i].needed ? ", 1 },\n" : ", 0 },\n");
    }
    if (graph->input_count) tli_send(s, "};\n");
    tli_open_table(s, "tl_node_output", name, "_outputs", (uint64_t)graph->tensor_count);
    for (i = 0; i < graph->tensor_count; i++) {
        tli_send(s, "    { ");
        tli_send_i32(s, graph->outputs[i].node);
        tli_send(s, ", ");
        tli_send_i32(s, graph->outputs[i].output);
        tli_send(s, ", ");
        tli_send_constant(s, graph->outputs[i].bytes);
        tli_send(s, graph->outputs[i].needed ? ", 1, " : ", 0, ");
        tli_send_i32(s, graph->outputs[i].format);
        tli_send(s, " },\n");
    }
    tli_send(s, "};\n");
    if (graph->view_count) tli_open_table(s, "tl_view", name, "_views", (uint64_t)graph->view_count);
    for (i = 0; i < graph->view_count; i++) {
        tli_send(s, "    { ");
        tli_send_u64(s, graph->views[i].name);
        tli_send(s, ", ");
        tli_send_i32(s, graph->views[i].tensor);
        tli_send(s, " },\n");
    }
    if (graph->view_count) tli_send(s, "};\n");
}

// Send an array and its count, "    net_steps, 12,"; an empty array is NULL.
static void tli_send_array(tli_stream *s, const char *name, const char *what, int64_t count) {
    tli_send(s, "    ");
    if (count) { tli_send(s, name); tli_send(s, what); }
    else tli_send(s, "NULL");
    tli_send(s, ", ");
    tli_send_u64(s, (uint64_t)count);
    tli_send(s, ",");
}

static void tli_send_row_tables(tli_stream *s, const tl_attributes *a, const char *name) {
    int32_t numbers[6], i;
    if (a->row_count) tli_open_table(s, "tl_node_rows", name, "_rows", (uint64_t)a->row_count);
    for (i = 0; i < a->row_count; i++) {
        const tl_node_rows *r = &a->rows[i];
        numbers[0] = r->node; numbers[1] = r->first_relation;
        numbers[2] = r->axis; numbers[3] = r->ordered; numbers[4] = r->stream; numbers[5] = r->reduces;
        tli_send(s, "    { ");
        tli_send_constant(s, r->rows);
        tli_send(s, ", ");
        tli_send_constant(s, r->unit);
        tli_send(s, ", ");
        tli_send_list(s, numbers, 6);
        tli_send(s, " },\n");
    }
    if (a->row_count) tli_send(s, "};\n");
    if (a->relation_count) tli_open_table(s, "tl_relation", name, "_relations", (uint64_t)a->relation_count);
    for (i = 0; i < a->relation_count; i++) {
        const tl_relation *r = &a->relations[i];
        numbers[0] = r->kind; numbers[1] = r->kernel; numbers[2] = r->stride;
        numbers[3] = r->padding; numbers[4] = r->dilation;
        tli_send(s, "    { ");
        tli_send_list(s, numbers, 5);
        tli_send(s, " },\n");
    }
    if (a->relation_count) tli_send(s, "};\n");
}

// Send the attributes of a graph, if it has any.
static void tli_send_attribute_tables(tli_stream *s, const tl_attributes *a, const char *name) {
    int32_t i;
    if (!a) return;
    tli_send_row_tables(s, a, name);
    if (a->stored_count) tli_open_table(s, "tl_stored", name, "_stored", (uint64_t)a->stored_count);
    for (i = 0; i < a->stored_count; i++) {
        tli_send(s, "    { ");
        tli_send_constant(s, a->stored[i].bytes);
        tli_send(s, ", ");
        tli_send_i32(s, a->stored[i].node);
        tli_send(s, ", ");
        tli_send_i32(s, a->stored[i].format);
        tli_send(s, " },\n");
    }
    if (a->stored_count) tli_send(s, "};\n");
    tli_send(s, "\nstatic const tl_attributes ");
    tli_send(s, name);
    tli_send(s, "_attributes = {\n");
    tli_send_array(s, name, "_rows", a->row_count);
    tli_send(s, "\n");
    tli_send_array(s, name, "_relations", a->relation_count);
    tli_send(s, "\n");
    tli_send_array(s, name, "_stored", a->stored_count);
    tli_send(s, "\n    0, 0, 0  // no room to grow\n};\n");
}

static void tli_send_graph_table(tli_stream *s, const tl_graph *graph, const tl_graph *named,
                                 const char *name) {
    int32_t i;
    tli_open_table(s, "tl_node", name, "_nodes", (uint64_t)graph->node_count);
    for (i = 0; i < graph->node_count; i++) tli_send_node(s, graph, named, i);
    tli_send(s, "};\n");
    tli_send_tensor_tables(s, graph, name);
    tli_open_table(s, "char", name, "_text", graph->text_bytes);
    tli_send_text_table(s, graph);
    tli_send_attribute_tables(s, graph->attributes, name);
    tli_send(s, "\nstatic const tl_graph ");
    tli_send(s, name);
    tli_send(s, "_graph = {\n");
    tli_send_array(s, name, "_nodes", graph->node_count);
    tli_send(s, "\n");
    tli_send_array(s, name, "_inputs", graph->input_count);
    tli_send(s, "\n");
    tli_send_array(s, name, "_outputs", graph->tensor_count);
    tli_send(s, "\n");
    tli_send_array(s, name, "_views", graph->view_count);
    tli_send(s, "\n");
    tli_send_array(s, name, "_text", graph->text_bytes);
    tli_send(s, "\n    ");
    tli_send_constant(s, graph->batch);
    tli_send(s, ",  // batch\n    0, 0, 0, 0, 0,  // no room to grow\n    ");
    if (graph->attributes) { tli_send(s, "&"); tli_send(s, name); tli_send(s, "_attributes\n};\n"); }
    else tli_send(s, "NULL\n};\n");
}

static void tli_send_step(tli_stream *s, const tl_graph *graph, const tl_step *step, int32_t index) {
    int32_t numbers[4];
    tli_send(s, "    { ");
    tli_send(s, tli_step_ids[step->kind]);
    tli_send(s, ", ");
    tli_send(s, step->codec ? tli_codec_ids[step->codec] : "0");
    numbers[0] = step->slot; numbers[1] = step->node; numbers[2] = step->output; numbers[3] = step->begins;
    tli_send(s, ", ");
    tli_send_list(s, numbers, 4);
    tli_send(s, " },  // ");
    tli_send_ascii(s, tl_name_node(graph, step->node));
    tli_send(s, ": step ");
    tli_send_i32(s, index);
    tli_send(s, "\n");
}

static void tli_send_field(tli_stream *s, uint64_t value, const char *field) {
    tli_send(s, "    ");
    tli_send_constant(s, value);
    tli_send(s, ",  // ");
    tli_send(s, field);
    tli_send(s, "\n");
}

// Send "    net_steps,"; of NULL "    NULL,".
static void tli_send_name(tli_stream *s, const char *name, const char *what) {
    tli_send(s, "    ");
    tli_send(s, name ? name : "NULL");
    if (name) tli_send(s, what);
    tli_send(s, ",\n");
}

// narrow: NULL = plain offsets.
static void tli_send_offsets(tli_stream *s, const char *name, const char *suffix, const tl_plan *plan,
                             int is_host, const tl_narrow_plan *narrow) {
    int32_t count = is_host ? plan->host_offset_count : plan->offset_count, i;
    if (!count) return;
    tli_open_table(s, !narrow ? "uint64_t" : narrow->offset_bytes == 2 ? "uint16_t" : "uint32_t", name, suffix,
                   (uint64_t)count);
    for (i = 0; i < count; i++) {
        tli_send(s, i % 8 ? " " : "    ");
        tli_send_constant(s, tl_find_offset(plan, i, is_host) / (narrow ? narrow->unit_bytes : 1));
        tli_send(s, i % 8 == 7 || i == count - 1 ? ",\n" : ",");
    }
    tli_send(s, "};\n");
}

static void tli_send_blocks(tli_stream *s, const char *name, const tl_plan *plan) {
    int32_t k;
    if (!plan->block_count) return;
    tli_open_table(s, "tl_plan_block", name, "_blocks", (uint64_t)plan->block_count);
    for (k = 0; k < plan->block_count; k++) {
        const tl_plan_block *block = &plan->blocks[k];
        tli_send(s, "    { ");
        tli_send_constant(s, block->offset);
        tli_send(s, ", ");
        tli_send_constant(s, block->bytes);
        tli_send(s, ", ");
        tli_send_i32(s, block->tier);
        tli_send(s, ", ");
        tli_send_i32(s, block->bank);
        tli_send(s, ", 0 },\n");
    }
    tli_send(s, "};\n");
}

// Send steps and offsets as a tl_plan has them.
static void tli_send_plain_arrays(tli_stream *s, const tl_graph *graph, const tl_plan *plan, const char *name) {
    int32_t i;
    if (plan->step_count) tli_open_table(s, "tl_step", name, "_steps", (uint64_t)plan->step_count);
    for (i = 0; i < plan->step_count; i++) {
        tl_step step = tl_find_step(plan, i);
        tli_send_step(s, graph, &step, i);
    }
    if (plan->step_count) tli_send(s, "};\n");
    tli_send_offsets(s, name, "_offsets", plan, 0, 0);
    tli_send_offsets(s, name, "_host_offsets", plan, 1, 0);
}

// The narrow part of a table: its arrays are not there, its numbers are. The unit is the greatest that all
// offsets have in common; offset_bytes 0 = they do not fit 32 bits in it.
static tl_narrow_plan tli_narrow_of(const tl_plan *plan) {
    uint64_t highest = 0, unit = 0;
    tl_narrow_plan narrow;
    int32_t i, count = plan->offset_count;
    tli_zero(&narrow, sizeof narrow);
    for (i = 0; i < count || i - count < plan->host_offset_count; i++) {
        uint64_t offset = i < count ? tl_find_offset(plan, i, 0) : tl_find_offset(plan, i - count, 1);
        uint64_t rest = offset;
        highest = tli_larger_u64(highest, offset);
        while (rest) {  // Euclid's algorithm
            uint64_t left = unit % rest;
            unit = rest;
            rest = left;
        }
    }
    narrow.step_words = plan->slot_count > 1 ? 3 : 2;
    narrow.unit_bytes = unit ? unit : 1;
    highest /= narrow.unit_bytes;
    narrow.offset_bytes = highest <= UINT16_MAX ? 2 : highest <= UINT32_MAX ? 4 : 0;
    return narrow;
}

static void tli_send_narrow_arrays(tli_stream *s, const tl_graph *graph, const tl_plan *plan,
                                   const char *name) {
    tl_narrow_plan narrow = tli_narrow_of(plan);
    uint64_t words = (uint64_t)plan->step_count * (uint64_t)narrow.step_words;
    int32_t i;
    if (words) tli_open_table(s, "uint16_t", name, "_steps", words);
    for (i = 0; i < plan->step_count; i++) {
        const tl_step step = tl_find_step(plan, i);
        tli_send(s, "    ");
        tli_send_i32(s, step.kind + 16 * (step.codec + step.begins) + 256 * (step.output + 1));
        tli_send(s, ", ");
        tli_send_i32(s, step.node);
        if (narrow.step_words == 3) { tli_send(s, ", "); tli_send_i32(s, step.slot); }
        tli_send(s, ",  // ");
        tli_send(s, tl_name_step((tl_step_kind)step.kind));
        tli_send(s, " ");
        tli_send_ascii(s, tl_name_node(graph, step.node));
        tli_send(s, ": step ");
        tli_send_i32(s, i);
        tli_send(s, "\n");
    }
    if (words) tli_send(s, "};\n");
    tli_send_offsets(s, name, "_offsets", plan, 0, &narrow);
    tli_send_offsets(s, name, "_host_offsets", plan, 1, &narrow);
    tli_send(s, "\nstatic const tl_narrow_plan ");
    tli_send(s, name);
    tli_send(s, "_narrow = {\n");
    tli_send_name(s, plan->step_count ? name : NULL, "_steps");
    tli_send_name(s, plan->offset_count ? name : NULL, "_offsets");
    tli_send_name(s, plan->host_offset_count ? name : NULL, "_host_offsets");
    tli_send_field(s, narrow.unit_bytes, "unit_bytes");
    tli_send_field(s, (uint64_t)narrow.step_words, "step_words");
    tli_send_field(s, (uint64_t)narrow.offset_bytes, "offset_bytes");
    tli_send(s, "};\n");
}

static void tli_send_entry(tli_stream *s, const tl_graph *graph, const tl_plan *plan, const char *name) {
    int32_t i;
    if (plan->entry_count) tli_open_table(s, "tl_entry", name, "_entry", (uint64_t)plan->entry_count);
    for (i = 0; i < plan->entry_count; i++) {
        tli_send(s, "    { ");
        tli_send_i32(s, plan->entry[i].node);
        tli_send(s, ", ");
        tli_send_i32(s, plan->entry[i].output);
        tli_send(s, ", ");
        tli_send_i32(s, plan->entry[i].slot);
        tli_send(s, " },  // ");
        tli_send_ascii(s, tl_name_node(graph, plan->entry[i].node));
        tli_send(s, "\n");
    }
    if (plan->entry_count) tli_send(s, "};\n");
}

// Send an array of a plain table and its count; of a narrow one NULL.
static void tli_send_plain(tli_stream *s, const tli_table *t, const char *what, int32_t count) {
    if (t->is_narrow) {
        tli_send(s, "    NULL, ");
        tli_send_i32(s, count);
        tli_send(s, ",");
    } else {
        tli_send_array(s, t->name, what, count);
    }
}

static void tli_send_plan_table(tli_stream *s, const tli_table *t) {
    const tl_plan *plan = t->plan;
    const char *name = t->name;
    tli_send_entry(s, t->graph, plan, name);
    if (t->is_narrow) tli_send_narrow_arrays(s, t->graph, plan, name);
    else tli_send_plain_arrays(s, t->graph, plan, name);
    tli_send_blocks(s, name, plan);
    tli_send(s, "\nstatic const tl_plan ");
    tli_send(s, name);
    tli_send(s, "_plan = {\n");
    tli_send_plain(s, t, "_steps", plan->step_count);
    tli_send(s, "\n");
    tli_send_field(s, (uint64_t)plan->repeat_count, "repeat_count");
    tli_send_plain(s, t, "_offsets", plan->offset_count);
    tli_send(s, "\n");
    tli_send_plain(s, t, "_host_offsets", plan->host_offset_count);
    tli_send(s, "\n");
    tli_send_field(s, (uint64_t)plan->inference, "inference");
    tli_send_field(s, (uint64_t)plan->any_order, "any_order");
    tli_send_field(s, plan->peak_bytes, "peak_bytes");
    tli_send_field(s, plan->arena_bytes, "arena_bytes");
    tli_send_field(s, plan->host_peak_bytes, "host_peak_bytes");
    tli_send_field(s, plan->host_arena_bytes, "host_arena_bytes");
    tli_send_field(s, plan->base_bytes, "base_bytes");
    tli_send_field(s, plan->cost, "cost");
    tli_send_field(s, plan->base_cost, "base_cost");
    tli_send_field(s, plan->bound_cost, "bound_cost");
    tli_send(s, "    NULL,  // memory: tl_free_plan leaves it alone\n");
    tli_send_field(s, plan->alignment_bytes, "alignment_bytes");
    tli_send_array(s, name, "_entry", plan->entry_count);
    tli_send(s, "\n");
    tli_send_field(s, (uint64_t)plan->slot_count, "slot_count");
    tli_send_array(s, name, "_blocks", plan->block_count);
    tli_send(s, "\n");
    tli_send_field(s, (uint64_t)plan->in_flight, "in_flight");
    tli_send(s, "    ");
    tli_send(s, t->is_narrow ? "&" : "NULL");
    if (t->is_narrow) { tli_send(s, name); tli_send(s, "_narrow"); }
    tli_send(s, ",  // narrow\n");
    tli_send(s, "};\n");
}

// Write 0 to 9, a to z, 10 and so on: the shortest names that differ. Returns the length with the final 0.
static uint32_t tli_put_short_name(char *text, int32_t number) {
    uint32_t length = 1, i;
    int32_t rest;
    for (rest = number; rest >= 36; rest /= 36) length++;
    for (i = length; i-- > 0; number /= 36) {
        int32_t digit = number % 36;
        text[i] = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
    }
    text[length] = 0;
    return length + 1;
}

// The op of a node in the text of the copy, written there if no node before has it. firsts: [*op_count] the
// first node of each op.
static uint32_t tli_copy_op(const tl_graph *graph, int32_t id, tl_graph *bare, char *text, int32_t *firsts,
                            int32_t *op_count) {
    const char *op = tl_name_op(graph, id);
    uint32_t at = bare->text_bytes;
    int32_t k;
    for (k = 0; k < *op_count; k++)
        if (tli_same_text(tl_name_op(graph, firsts[k]), op)) return bare->nodes[firsts[k]].op;
    firsts[(*op_count)++] = id;
    tli_copy(text + at, op, tli_text_length(op) + 1);
    bare->text_bytes += (uint32_t)tli_text_length(op) + 1;
    return at;
}

// A copy of the graph with nodes and a text of its own, in which names are short and each op stands once.
static tl_result tli_omit_names(tl_env *env, const tl_graph *graph, tl_graph *bare) {
    tl_node *nodes = (tl_node *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *nodes);
    int32_t *firsts = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *firsts);
    uint64_t most = 1;
    char *text;
    int32_t id, op_count = 0;
    for (id = 0; id < graph->node_count; id++) most += tli_text_length(tl_name_op(graph, id)) + 9;
    text = (char *)tli_alloc_array(env, most, 1);
    *bare = *graph;
    bare->nodes = nodes;
    bare->text = text;
    bare->text_bytes = 1;
    bare->view_count = 0;
    for (id = 0; id < graph->node_count && nodes && firsts && text; id++) {
        nodes[id] = graph->nodes[id];
        nodes[id].unit = 0;
        nodes[id].op = tli_copy_op(graph, id, bare, text, firsts, &op_count);
        nodes[id].name = bare->text_bytes;
        bare->text_bytes += tli_put_short_name(text + bare->text_bytes, id);
    }
    tli_release(env, firsts);
    return nodes && firsts && text ? TL_OK : TL_ERROR_NO_MEMORY;
}

static void tli_send_table_head(tli_stream *s, const char *name) {
    tli_send(s, "// A graph and a plan as const tables, made by tl_write_plan_table; include tl_strategy.h"
                " first.\n//\n//     desc.graph = &");
    tli_send(s, name);
    tli_send(s, "_graph;\n//     desc.plan  = &");
    tli_send(s, name);
    tli_send(s, "_plan;\n\n#if !defined(TL_VERSION) || TL_VERSION / 100 != ");
    tli_send_i32(s, TL_VERSION / 100);
    tli_send(s, "\n#error \"write this table again, with the tl_strategy.h that is included\"\n#endif\n");
}

static tl_result tli_send_tables(tl_env *env, tli_table *t, tl_sink sink) {
    uint8_t *is_result = (uint8_t *)tli_alloc_array(env, (uint64_t)t->graph->tensor_count, 1);
    tli_stream stream;
    tl_result result;
    t->is_shared = (uint8_t *)tli_alloc_array(env, (uint64_t)t->graph->node_count, 1);
    result = is_result && t->is_shared ? TL_OK : TL_ERROR_NO_MEMORY;
    if (!result) result = tli_mark_shared_names(env, t->graph, t->is_shared);
    if (!result && t->omit_names) result = tli_omit_names(env, t->graph, &t->bare);
    if (result) {
        result = tli_fail(env, result, t->function, TLI_RULE(NO_MEMORY_TO_NAME_NODES));
    } else {
        tli_mark_results(t->graph, t->plan->inference, is_result);
        tli_open_stream(&stream, sink);
        tli_send_table_head(&stream, t->name);
        tli_send_numbers(&stream, t, is_result);
        tli_send_graph_table(&stream, t->bare.nodes ? &t->bare : t->graph, t->graph, t->name);
        tli_send_plan_table(&stream, t);
        result = tli_close_stream(&stream, env, t->function);
    }
    tli_release(env, is_result);
    tli_release(env, t->is_shared);
    tli_release(env, (tl_node *)t->bare.nodes);
    tli_release(env, (char *)t->bare.text);
    return result;
}

// Why a table cannot be narrow, in *node because of which; TLI_NO_RULE = it can.
static tli_rule tli_check_narrow(const tl_graph *graph, const tl_plan *plan, int32_t *node) {
    int32_t id;
    *node = -1;
    if (graph->node_count > 65536) return TLI_RULE(NARROW_TABLE_HAS_TOO_MANY_NODES);
    for (id = 0; id < graph->node_count; id++) {
        *node = id;
        if (graph->nodes[id].output_count > 254) return TLI_RULE(NARROW_TABLE_HAS_TOO_MANY_OUTPUTS);
    }
    *node = -1;
    return tli_narrow_of(plan).offset_bytes ? TLI_NO_RULE : TLI_RULE(NARROW_TABLE_HAS_TOO_LARGE_ARENA);
}

static tl_result tli_write_table(tl_env *env, tli_function function, const tl_graph *graph, const tl_plan *plan,
                                 const tl_table_desc *wanted, tl_sink sink) {
    tl_simulate_desc desc;
    tli_table table;
    tl_result result;
    int32_t node;
    tli_rule rule = tli_check_identifier(wanted->name);
    if ((wanted->is_narrow | wanted->omit_names) & ~1) rule = TLI_RULE(NARROW_OMIT_NAMES_MUST_BE_0_OR_1);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    tli_zero(&table, sizeof table);
    table.graph = graph;
    table.plan = plan;
    table.name = wanted->name;
    table.function = function;
    table.is_narrow = wanted->is_narrow;
    table.omit_names = wanted->omit_names;
    result = tli_check_plan(env, function, plan);
    if (result) return result;
    table.block_bytes = (uint64_t *)tli_alloc_array(env, (uint64_t)plan->block_count,
                                                    sizeof *table.block_bytes);
    if (!table.block_bytes)
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    desc.block_bytes = table.block_bytes;
    result = tli_find_lifetimes(env, function, &desc, &table.lifetimes, &table.report);
    rule = !result && table.is_narrow ? tli_check_narrow(graph, plan, &node) : TLI_NO_RULE;
    if (rule) result = tli_fail_values(env, TL_ERROR_UNSUPPORTED, function, rule, (uint64_t)(int64_t)node, 0);
    if (!result) result = tli_send_tables(env, &table, sink);
    tl_free_lifetimes(env, &table.lifetimes);
    tli_release(env, table.block_bytes);
    return result;
}

TLI_IMPL tl_result tl_write_plan_table(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                       const char *name, tl_sink sink) {
    tl_table_desc desc;
    TL_ASSERT(graph && plan && name && sink.write);
    tli_zero(&desc, sizeof desc);
    desc.name = name;
    return tli_write_table(env, TLI_IN(WRITE_PLAN_TABLE), graph, plan, &desc, sink);
}

TLI_IMPL tl_result tl_write_table(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                  const tl_table_desc *desc, tl_sink sink) {
    TL_ASSERT(graph && plan && desc && desc->name && sink.write);
    return tli_write_table(env, TLI_IN(WRITE_TABLE), graph, plan, desc, sink);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

