#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifdef TL_ONLY_TABLES

// -- runs of TL_ONLY_TABLES: state --
//
// What a step allocates lies where the table says, in blocks whose addresses are known when the run is made. So
// what is held is no more than a place, and nothing is claimed, mapped, counted or given back:
//
//     place     offset in the tier + 1; 0 = absent. What is present with 0 bytes has place 1
//     address   that of its block + offset - that of the block in the tier
//
// This part has what the executor asks of its buffers, under the names that the full run has; what else it
// asks of a full run has one answer here.

// Scratch, and second copies of outputs.
typedef struct tli_held { tl_size place, bytes; } tli_held;

typedef struct tli_buffer { tl_size place; } tli_buffer;

typedef struct tli_call {
    tl_operand  *operands;      // as in the full run; at the host from the beginning
    tli_held    *twice;
    uint8_t     *made;
    tli_held     scratch;
    tl_size      first, count, total;
    int32_t      operand_count, outputs_ready, depends_on, polled;
    int32_t      node;
    int32_t      piece, pieces;
    tli_state_piece rows;
    tl_step_kind kind;
    uint8_t      replays, is_asked;
} tli_call;

typedef enum tli_computing {
    TLI_COMPUTING_NOT, TLI_COMPUTING_OPENED, TLI_COMPUTING_YIELDED, TLI_COMPUTING_DONE
} tli_computing;

// What is read of the desc after tl_init_run.
typedef struct tli_table_desc {
    tl_result  (*load)(tl_run *run, int32_t micro_batch, void *user);
    void        *load_user;
    void       (*random)(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user);
    void        *random_user;
    void *const *users;
    uint32_t     loss_gradient_word;
    uint64_t     seed;
} tli_table_desc;

typedef struct tli_table_event { int32_t index, micro_batch; uint8_t recompute; } tli_table_event;

typedef struct tli_step_state {
    tli_call        call;
    tl_step         last;
    tli_table_event event;
    tli_computing   computing;
} tli_step_state;

typedef struct tli_table_block {
    char    *host;
    tl_size  handle;    // of the backend; 0 = not taken
} tli_table_block;

// Updates of the states of a graph.
typedef struct tli_updates {
    int32_t count;                    // updates carried out in the pass
    uint8_t is_summing;               // 1 = gradients that states hold have sums that no update has used
    uint8_t has_begun;                // 1 = a kernel of an update was called in the pass
    uint8_t is_torn;                  // 1 = a pass was given up behind that
} tli_updates;

struct tl_run {
    tl_env           *env;
    const tl_backend *backend;
    const tl_graph   *graph;
    const tl_plan    *plan;
    const tl_kernel  *kernels;      // of the caller
    tli_table_desc    desc;
    int16_t          *kernel_of;    // [node_count]
    tli_table_block  *blocks;       // [block_count of the plan, at least 1]
    tli_buffer       *tensors, *gradients, *saved;  // of the slot at hand; saved: NULL = nothing ever is
    uint8_t          *ran;
    uint8_t          *is_read;      // [tensor_count]
    tli_step_state    at;
    tl_kernel         user_kernel;
    int32_t           slot_count, slot, caller_slot, repeat_count;
    int32_t           next_offset, first_count;
    int32_t           position, micro_batch, plan_pass;
    uint64_t          training_step, next_step, plan_step;
    tli_updates       updates;
    uint8_t           active, by_itself, in_plan, inference;
    tl_run_report     report;
};

// -- what has one answer --

static const tl_graph *tli_caller_graph(const tl_run *run) { return run->graph; }
static const tl_plan *tli_plan_of(const tl_run *run) { return run->plan; }
static int32_t tli_first_micro_batch(const tl_run *run) { (void)run; return 0; }
static int tli_set_aside(tl_run *run, const tl_run_step *step, int is_ready) {
    (void)run; (void)step; (void)is_ready;
    return 0;   // a plan that begins a call is refused
}
static tl_precision tli_precision_of(const tl_run *run) { (void)run; return TL_PRECISION_SINGLE; }
static int tli_has_flights(const tl_run *run) { (void)run; return 0; }
static int tli_is_by_hand(const tl_run *run) { (void)run; return 0; }
static int tli_is_host_visible(const tl_run *run) { (void)run; return 1; }
static int tli_has_more_ranges(const tl_run *run) { return run->at.call.piece + 1 < run->at.call.pieces; }
static int32_t tli_count_members(const tl_run *run, int32_t id) { (void)run; (void)id; return 1; }
static int32_t tli_find_member(const tl_run *run, int32_t id, int32_t at) { (void)run; (void)at; return id; }
static tl_kernel *tli_own_kernel(tl_run *run) { return &run->user_kernel; }
static void tli_choose_step(tl_run *run, int32_t index) { (void)run; (void)index; }
static void tli_note_write(tl_run *run, const tl_range *range) { (void)run; (void)range; }

static tl_range tli_known_range(const tl_run *run, int32_t tensor, tl_range whole) {
    (void)run;
    (void)tensor;
    return whole;
}

static uint64_t tli_known_bytes(const tl_run *run, int32_t slot, int32_t tensor) {
    (void)slot;
    return run->graph->outputs[tensor].bytes;
}

// -- places --

// Go on with the buffers of a slot; those of all slots are one after the other.
static void tli_run_choose_slot(tl_run *run, int32_t slot) {
    int32_t by = slot - run->slot;
    run->slot = slot;
    run->tensors += by * run->graph->tensor_count;
    run->gradients += by * run->graph->tensor_count;
    run->ran += by * run->graph->node_count;
    if (run->saved) run->saved += by * run->graph->node_count;
}

// The next place of the table.
static tl_result tli_take_place(tl_run *run, uint64_t bytes, tl_size *place) {
    *place = 1;
    if (!bytes) return TL_OK;
    if (run->next_offset >= run->plan->offset_count) return TL_ERROR_INVALID_PLAN;
    *place = (tl_size)tl_find_offset(run->plan, run->next_offset++, 0) + 1;
    return TL_OK;
}

static tl_result tli_claim_device(tl_run *run, uint64_t bytes, tli_held *held) {
    held->bytes = (tl_size)bytes;
    return tli_take_place(run, bytes, &held->place);
}

static tl_result tli_free_held(tl_run *run, tli_held *held) {
    (void)run;
    held->bytes = held->place = 0;
    return TL_OK;
}

// The range of so many bytes at a place, in *range; empty where it is absent.
static const tl_range *tli_place_range(const tl_run *run, tl_size place, uint64_t bytes, tl_range *range) {
    const tl_plan *plan = run->plan;
    tli_zero(range, sizeof *range);
    if (!place || !bytes) return range;
    range->bytes = (tl_size)bytes;
    range->offset = place - 1;
    range->block = 1;
    if (plan->block_count) {
        int32_t k = tli_find_plan_block(plan->blocks, plan->block_count, range->offset);
        range->block = (tl_size)(k < 0 ? 0 : k) + 1;
        range->offset -= (tl_size)plan->blocks[range->block - 1].offset;
    }
    return range;
}

static char *tli_range_host(const tl_run *run, const tl_range *range) {
    return run->blocks[range->block - 1].host + range->offset;
}

static const tl_range *tli_held_range(const tl_run *run, const tli_held *held, tl_range *room) {
    return tli_place_range(run, held->place, held->bytes, room);
}

static const tl_range *tli_tensor_range(const tl_run *run, int32_t tensor, tl_range *room) {
    return tli_place_range(run, run->tensors[tensor].place, run->graph->outputs[tensor].bytes, room);
}

static const tl_range *tli_gradient_range(const tl_run *run, int32_t tensor, tl_range *room) {
    int32_t held = tli_held_gradient(run->graph, tensor);
    if (held >= 0)
        return tli_place_range(run, run->tensors[held].place, run->graph->outputs[held].bytes, room);
    return tli_place_range(run, run->gradients[tensor].place, run->graph->outputs[tensor].bytes, room);
}

static tli_buffer *tli_saved_buffer(const tl_run *run, int32_t id) {
    return run->saved ? &run->saved[id] : NULL;
}

static const tl_range *tli_saved_range(const tl_run *run, int32_t id, tl_range *room) {
    return tli_place_range(run, run->saved ? run->saved[id].place : 0, run->graph->nodes[id].saved_bytes, room);
}

// -- buffers --

static int tli_is_present(const tli_buffer *buffer) { return buffer->place != 0; }
static int tli_is_readable(const tli_buffer *buffer) { return buffer->place != 0; }

static tl_result tli_buffer_claim(tl_run *run, uint64_t bytes, tli_buffer *buffer) {
    return buffer ? tli_take_place(run, bytes, &buffer->place) : TL_OK;
}

static tl_result tli_buffer_drop(tl_run *run, tli_buffer *buffer) {
    (void)run;
    if (buffer) buffer->place = 0;
    return TL_OK;
}

static void tli_buffer_hand_over(tli_buffer *to, tli_buffer *from) {
    to->place = from->place;
    from->place = 0;
}

static tl_result tli_clear_range(tl_run *run, const tl_range *range) {
    if (range->bytes) tli_zero(tli_range_host(run, range), (size_t)range->bytes);
    return TL_OK;
}

// Fill the gradient of a loss.
static tl_result tli_fill_first(tl_run *run, int32_t tensor, const tl_range *range) {
    uint32_t word = run->desc.loss_gradient_word ? run->desc.loss_gradient_word : 0x3F800000u;  // 1.0f
    char *to;
    tl_size i;
    (void)tensor;
    if (!range->bytes) return TL_OK;
    to = tli_range_host(run, range);
    for (i = 0; range->bytes - i >= 4; i += 4) TLI_MEMCPY(to + i, &word, 4);
    TLI_MEMCPY(to + i, &word, (size_t)(range->bytes - i));
    return TL_OK;
}

// -- calls --

static void tli_call_operand(tl_run *run, const tl_range *range, int writes) {
    tl_operand *operand = &run->at.call.operands[run->at.call.operand_count++];
    (void)writes;
    operand->range = *range;
    operand->host = range->bytes ? tli_range_host(run, range) : NULL;
    operand->format = TL_FORMAT_F32;
}

static void tli_call_tensor(tl_run *run, int32_t tensor, const tl_range *whole, int writes) {
    (void)tensor;
    tli_call_operand(run, whole, writes);
}

// The elements of output 0 of a node, which is called once for all of them.
typedef struct tli_cut { uint64_t total; } tli_cut;

static tli_cut tli_find_cut(const tl_run *run, int32_t id) {
    tli_cut cut;
    cut.total = run->graph->outputs[run->graph->nodes[id].first_output].bytes / 4;
    return cut;
}

static void tli_start_turns(tl_run *run, const tli_cut *cut) {
    run->at.call.first = 0;
    run->at.call.count = run->at.call.total = (tl_size)cut->total;
    run->at.call.node = run->at.last.node;
    run->at.call.kind = (tl_step_kind)run->at.last.kind;
}

// The tensor of the caller's graph must be there.
static tl_result tli_find_caller_tensor(const tl_run *run, tli_function function, const tl_tensor *tensor) {
    const tl_graph *graph = run->graph;
    if (tensor->node >= 0 && tensor->node < graph->node_count && tensor->output >= 0 &&
        tensor->output < graph->nodes[tensor->node].output_count) return TL_OK;
    return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(TENSOR_NOT_OF_THIS_GRAPH));
}

static void *tli_place_address(const tl_run *run, tl_size place) {
    tl_range room;
    return tli_range_host(run, tli_place_range(run, place, 1, &room));
}

#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
