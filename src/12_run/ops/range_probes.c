#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- rehearsal: ranges of elements and of rows --
//
// A node that takes blocks is called for two ranges, one after the other. Whoever does not go by the first
// element of a call, or by their count, makes other bytes, or writes behind the range:
//
//     first call     |== count ==|sssssssssssssss|ssss      s: must stay what it was
//     second call                |== the rest ===|ssss
//
// So is the update of a state with rows, and a node that reads one: the rows of the gradient, as states in
// pieces ask for them, are those of a call for all.

// Of how many elements or rows a range is a part.
static uint64_t tli_find_range_total(const tli_probe *p) { return p->rows ? p->rows : p->run->at.call.total; }

// The bytes of an element of an operand that is cut with the call; 0 = it is whole in every call.
static uint64_t tli_cut_element(const tli_probe *p, const tli_shadow *shadow) {
    int is_output = shadow->kind == TL_OPERAND_OUTPUT || shadow->kind == TL_OPERAND_OUTPUT_GRADIENT;
    int32_t tensor;
    if (shadow->missing || shadow->kind == TL_OPERAND_SAVED || shadow->kind == TL_OPERAND_SCRATCH) return 0;
    if (p->rows) return is_output ? shadow->bytes / p->rows : 0;
    tensor = tli_operand_tensor(p->run, p->node, shadow->index + (is_output ? p->node->input_count : 0));
    if (tli_tensor_elements(p->run, tensor) != p->run->at.call.total) return 0;
    return tli_element_bytes(p->run, tensor);
}

// The elements of the first range, aligned as those of a run; 0 = they cannot be cut. So few that who writes
// all elements from the second range on stays in the room behind an operand.
static uint64_t tli_choose_range(const tli_probe *p) {
    uint64_t alignment = tli_larger_u64(4, p->run->limits.alignment_bytes), total = tli_find_range_total(p);
    uint64_t least = UINT64_MAX, most = 1, unit, count;
    int32_t i;
    for (i = 0; i < p->count; i++) {
        uint64_t size = tli_cut_element(p, &p->shadows[i]);
        most = tli_larger_u64(most, size);
        if (size && size < least) least = size;
    }
    unit = alignment > least && !p->rows ? alignment / least : 1;
    count = total / 3 < TLI_PROBE_ROOM / most ? total / 3 : TLI_PROBE_ROOM / most;
    count = count > unit ? count - count % unit : unit;
    return count < total ? count : 0;
}

// Cut the operands of the call to a range of elements.
static void tli_cut_probe(tli_probe *p, uint64_t first, uint64_t count) {
    int32_t i;
    if (p->rows) p->call.total = p->rows;
    p->call.first = first;
    p->call.count = count < p->call.total - first ? count : p->call.total - first;   // of whole elements
    for (i = 0; i < p->count; i++) {
        uint64_t size = tli_cut_element(p, &p->shadows[i]);
        tl_operand *operand = &p->operands[i];
        if (!size || !operand->host) continue;
        operand->host = (char *)operand->host + first * size;
        operand->range.offset += first * size;
        operand->range.bytes -= first * size;
        if (first + count < tli_find_range_total(p)) operand->range.bytes = count * size;
    }
}

// What lies behind the elements up to `end` of what the calls make must be what it was: the fill, or the
// gradients before the call. Returns the first operand of which that is not so; -1 = none.
static int32_t tli_find_beyond_range(const tli_probe *p, uint64_t end, uint32_t word) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        uint64_t from = end * tli_cut_element(p, s);
        const char *at = p->work + s->at;
        int same = 1;
        if (!tli_is_effect(s) || !from) continue;
        if (from > s->bytes) from = s->bytes;   // the last element is incomplete
        if (s->access == TLI_SHADOW_WRITE) same = tli_holds_word(at + from, s->bytes - from, word);
        else same = tli_same_bytes(at + from, p->before + s->at + from, s->bytes - from);
        if (!same || !tli_holds_word(at + s->bytes, s->end - s->at - s->bytes, word)) return i;
    }
    return -1;
}

// The same bytes come of calls for two ranges as of one call for all elements.
static tl_result tli_probe_ranges(tli_probe *p) {
    tli_change change = tli_change_of(TLI_PROBE_UNDEFINED, TLI_FILL_SIGNALLING);
    uint64_t total = tli_find_range_total(p), count = tli_choose_range(p), first = 0;
    tl_finding_kind kind = p->rows ? TL_FINDING_ROWS_IGNORED : TL_FINDING_RANGE_IGNORED;
    uint32_t word = tli_fill_word(change.fill);
    int32_t operand = -1, variable;
    tl_result result = TL_OK;
    if ((!p->node->takes_blocks && !p->rows) || !count) return TL_OK;
    tli_apply_change(p, &change);
    tli_fill_guards(p, p->work, 0, TLI_GUARD_BOTH, word);
    tli_probe_random(p, TL_RANDOM_REPLAY);
    for (; first < total && operand < 0 && !result; first += count, count = total - first) {
        tli_describe_probe(p, &change);
        tli_cut_probe(p, first, count);
        tli_fill_shadow(p, &p->shadows[p->count - 1], change.fill);     // scratch is undefined again
        result = tli_call_probed(p);
        if (!result) operand = tli_find_beyond_range(p, first + count, word);
    }
    if (result) return result;
    if (operand < 0) operand = tli_find_effect(p, 1);
    if (operand >= 0) tli_note_finding(p, kind, &p->shadows[operand], 0);
    if (operand >= 0) return TL_OK;
    variable = tli_move_probed(p, p->state_after, TLI_VARIABLES_COMPARE);
    if (variable >= 0) tli_note_variable(p, kind, variable);
    return TL_OK;
}

static const tli_shadow *tli_find_gradient_shadow(const tli_probe *p, int32_t input) {
    int32_t i = 0;
    while (p->shadows[i].kind != TL_OPERAND_INPUT_GRADIENT || p->shadows[i].index != input) i++;
    return &p->shadows[i];
}

// The rows of a gradient are the same whether they are made together or piece by piece.
static tl_result tli_probe_weight_rows(tli_probe *p, int32_t input) {
    uint64_t bytes = tli_find_read_bytes(p, input), total = tli_find_weight_rows(p, input), first;
    uint64_t row = bytes / total, count = total > 2 ? total / 3 + 1 : 1;
    char *whole = (char *)tli_alloc_array(p->r->env, 2, (size_t)(bytes + TLI_PROBE_ROOM)), *part;
    tl_result result;
    if (!whole)
        return tli_fail(p->r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
    part = whole + bytes + TLI_PROBE_ROOM;
    result = tli_call_for_rows(p, &tli_no_change, input, 0, total, whole);
    for (first = 0; first < total && !result; first += count) {
        if (count > total - first) count = total - first;
        tli_zero(part, (size_t)(bytes + TLI_PROBE_ROOM));
        result = tli_call_for_rows(p, &tli_no_change, input, first, count, part);
        if (result || (tli_same_bytes(part, whole + first * row, count * row) &&
                       tli_holds_word(part + count * row, (bytes - count * row) / 4 * 4, 0))) continue;
        tli_note_finding(p, TL_FINDING_ROWS_IGNORED, tli_find_gradient_shadow(p, input), 0);
        break;
    }
    tli_release(p->r->env, whole);
    return result;
}

// Probe the calls that states with rows ask for: of an update, or of the backward of their one reader.
static tl_result tli_probe_rows(tli_probe *p) {
    const tl_graph *graph = p->run->graph;
    tl_result result = TL_OK;
    int32_t i;
    if (p->step->call.kind != TL_STEP_BACKWARD) return TL_OK;
    if (p->node->state == TL_STATE_TRAINED && p->node->weight_rows > 1) {
        p->rows = (uint64_t)p->node->weight_rows;
        result = tli_probe_ranges(p);
        p->rows = 0;
    }
    for (i = 0; i < p->node->input_count && !result; i++) {
        int32_t tensor = graph->inputs[p->node->first_input + i].tensor;
        const tl_node *state = &graph->nodes[graph->outputs[tensor].node];
        if (!tli_learns(state) || tli_is_held(state) || state->weight_rows < 2 || p->node->takes_blocks ||
            tli_count_uses_above(graph, tensor, graph->node_count - 1) > 1) continue;
        result = tli_probe_weight_rows(p, i);
    }
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
