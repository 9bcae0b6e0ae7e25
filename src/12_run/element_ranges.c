#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- ranges of elements --
//
// A backend's kernels can be given so many bytes of an operand at a time (binding_bytes). A node that takes
// blocks and has more is called several times, each time for the next elements:
//
//     output, input, gradients   |--------|--------|-----|   cut: as many elements as output 0
//     other operands, scratch    |--|                        whole in each call
//
// All but the last call have the same number of elements, and every part begins at a multiple of the backend's
// alignment. Bytes at the end of a tensor that make no whole element are cut as one, but kernels are not told
// to make it: their counts are of whole elements, and only ranges have these bytes.

// The bytes of an element: of its format, else of the precision; graph inputs are f32 in each precision.
static uint64_t tli_element_bytes(const tl_run *run, int32_t tensor) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.formats) return tl_find_format_bytes(tli_run_format(run, tensor), 4);
#endif
    if (run->graph->nodes[run->graph->outputs[tensor].node].is_input) return 4;
    return tli_scale_bytes(4, run->precision);
}

static int tli_ends_incomplete(const tl_run *run, int32_t tensor) {
    return tli_known_bytes(run, run->slot, tensor) % tli_element_bytes(run, tensor) != 0;
}

// The elements of a tensor; the last may be incomplete.
static uint64_t tli_tensor_elements(const tl_run *run, int32_t tensor) {
    uint64_t bytes = tli_known_bytes(run, run->slot, tensor), size = tli_element_bytes(run, tensor);
    return bytes / size + (uint64_t)tli_ends_incomplete(run, tensor);
}

// The tensor of an operand of a node, by its place among the inputs and outputs.
static int32_t tli_operand_tensor(const tl_run *run, const tl_node *node, int32_t place) {
    return place < node->input_count ? run->graph->inputs[node->first_input + place].tensor
                                     : node->first_output + place - node->input_count;
}

// How a node's operands stand to the backend's largest binding.
typedef struct tli_cut {
    uint64_t total;        // elements of output 0
    uint64_t count;        // of a call: total, or the most that fit; 0 = not one aligned range fits
    uint64_t cut_bytes;    // of the largest operand with as many elements
    uint64_t whole_bytes;  // of the largest other one, saved bytes and scratch
} tli_cut;

static tli_cut tli_find_cut(const tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    uint64_t binding = run->limits.binding_bytes, alignment = run->limits.alignment_bytes, unit;
    uint64_t smallest = UINT64_MAX, largest = 1;
    tli_cut cut;
    int32_t i;
    tli_zero(&cut, sizeof cut);
    cut.count = cut.total = tli_tensor_elements(run, node->first_output);
    if (!binding) return cut;
    cut.whole_bytes = node->fwork_bytes;
    if (!run->inference) cut.whole_bytes = tli_larger_u64(cut.whole_bytes, node->bwork_bytes);
    if (!run->inference && node->saved_bytes)
        cut.whole_bytes = tli_larger_u64(cut.whole_bytes, tli_larger_u64(node->saved_bytes, node->swork_bytes));
    for (i = 0; i < node->input_count + node->output_count; i++) {
        int32_t tensor = tli_operand_tensor(run, node, i);
        uint64_t bytes = run->graph->outputs[tensor].bytes, size = tli_element_bytes(run, tensor);
        if (tli_tensor_elements(run, tensor) != cut.total) {
            cut.whole_bytes = tli_larger_u64(cut.whole_bytes, bytes);
            continue;
        }
        cut.cut_bytes = tli_larger_u64(cut.cut_bytes, bytes);
        largest = tli_larger_u64(largest, size);
        if (size < smallest) smallest = size;
    }
    if (cut.cut_bytes <= binding) return cut;
    unit = alignment > smallest ? alignment / smallest : 1;  // both are powers of two
    cut.count = binding / largest / unit * unit;
    return cut;
}

// Refuse a node whose bytes exceed what the backend can do at most.
static tl_result tli_fail_size(tl_run *run, tli_rule rule, uint64_t most, uint64_t bytes, int32_t id) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), rule, most, bytes);
    tli_put_text(&s, "");
    if (TLI_ERROR_TEXT) tli_put_named(&s.text, id, tl_name_node(run->graph, id));
    return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
}

// Whether a node has rows, and its kernel does not say that it may be called for them one after the other.
static int tli_has_unordered_rows(const tl_graph *graph, int32_t id) {
#if TLI_ATTRIBUTES
    const tl_node_rows *rows = tli_find_rows(graph, id);
    return rows && !rows->ordered;
#else
    (void)graph; (void)id;
    return 0;
#endif
}

// Refuse a node that has an operand above the backend's largest binding, unless it takes blocks and all such
// operands can be cut.
static tl_result tli_check_binding(tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    uint64_t binding = run->limits.binding_bytes;
    tli_cut cut = tli_find_cut(run, id);
    uint64_t bytes = tli_larger_u64(cut.whole_bytes, cut.cut_bytes);
    tli_rule rule = TLI_RULE(BACKEND_LARGEST_BINDING_IS_BYTES);
    if (node->is_input || run->kernel_of[id] < 0 || bytes <= binding) return TL_OK;
    if (node->takes_blocks && cut.whole_bytes > binding) bytes = cut.whole_bytes;   // the others can be cut
    if (cut.whole_bytes <= binding) {
        if (node->takes_blocks && cut.count) return TL_OK;
        if (!node->takes_blocks)
            rule = tli_has_unordered_rows(run->graph, id)
                ? TLI_RULE(BACKEND_LARGEST_BINDING_NEEDS_ORDERED)
                : TLI_RULE(BACKEND_LARGEST_BINDING_NEEDS_TAKES_BLOCKS);
    }
    return tli_fail_size(run, rule, binding, bytes, id);
}

// The part of a tensor's range that holds the elements of the call; all of it if it has another number of them.
static tl_range tli_cut_range(const tl_run *run, int32_t tensor, tl_range whole) {
    const tli_call *call = &run->at.call;
    uint64_t size = tli_element_bytes(run, tensor), from = call->first * size;
    if (!whole.bytes || tli_tensor_elements(run, tensor) != call->total) return whole;
    whole.offset += from;
    whole.bytes -= from;
    if (call->first + call->count < call->total) whole.bytes = call->count * size;
    return whole;
}

// -- the operands of a call --

// Add an access, or find the one of the same range; returns its index, -1 for no bytes.
static int32_t tli_call_access(tli_call *call, const tl_range *range, int writes) {
    int32_t i;
    if (!range->bytes) return -1;
    for (i = 0; i < call->access_count; i++) {
        if (!tli_is_same_range(&call->accesses[i].range, range)) continue;
        call->accesses[i].writes |= writes;
        return i;
    }
    call->accesses[i].range = *range;
    call->accesses[i].writes = writes;
    call->writable[i] = 0;
    call->access_count++;
    return i;
}

static void tli_call_operand(tl_run *run, const tl_range *range, int writes) {
    tli_call *call = &run->at.call;
    tl_operand *operand = &call->operands[call->operand_count];
    int32_t access = tli_call_access(call, range, writes);
    operand->range = *range;
    operand->host = NULL;
    operand->format = TL_FORMAT_F32;
    operand->rows = operand->shift = operand->row_bytes = 0;
    call->access_of[call->operand_count++] = access;
    if (access >= 0 && writes) call->writable[access] = 1;
}

// Add an operand: of the range of a tensor, or of its gradient, the part that is known to be used.
static void tli_call_tensor(tl_run *run, int32_t tensor, const tl_range *whole, int writes) {
    tl_range range = tli_known_range(run, tensor, *whole);
    tli_call_operand(run, &range, writes);
}

// The run itself writes a range before the call.
static void tli_note_write(tl_run *run, const tl_range *range) {
    (void)tli_call_access(&run->at.call, range, 1);
}

// Whether calls of the same step follow the one at hand: of further members, or for further elements.
static int tli_has_more_ranges(const tl_run *run) {
    if (run->at.call.pieces > 1) return run->at.call.piece + 1 < run->at.call.pieces;
    if (tli_has_turns(run) && run->at.call.turn + 1 < run->at.call.turns) return 1;
    return run->at.call.total - run->at.call.first > run->at.call.count;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
