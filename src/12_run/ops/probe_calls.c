#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- rehearsal: a call and all its probes --

// Give the pass what the plain call made.
static void tli_put_effects(const tli_probe *p) {
    tli_variable_place place;
    int32_t i;
    for (i = 0; i < p->count; i++) {
        char *to = (char *)(uintptr_t)tli_find_truth(p, i);
        if (to && tli_is_effect(&p->shadows[i]))
            tli_copy(to, p->after + p->shadows[i].at, (size_t)p->shadows[i].bytes);
    }
    (void)tli_move_probed(p, p->state_after, TLI_VARIABLES_PUT);
    place.variable = NULL;
    while (tli_next_probed(p, &place))      // what is of no node stays current
        if (place.variable->node < 0)
            (void)tli_move_variable(&place, p->state_before, p->r->is_still, TLI_VARIABLES_TAKE);
}

// Statistics that are operands are now what the plain call left. Whoever wrote others is named.
static void tli_compare_statistics(tli_probe *p) {
    const tl_graph *graph = p->run->graph;
    tl_finding finding;
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        char *found = tli_is_running(p, s) ? tli_find_running(p, s) : NULL;
        if (!found) continue;
        tli_copy(found, (tli_changes_operand(p, s) ? p->after : p->before) + s->at, (size_t)s->bytes);
        tli_copy(found + tli_statistics_before(graph, graph->tensor_count), found, (size_t)s->bytes);
    }
    for (i = 0; i < graph->tensor_count; i++) {
        char *found = p->r->statistics + tli_statistics_before(graph, i) + TLI_PROBE_GUARD;
        char *kept = found + tli_statistics_before(graph, graph->tensor_count);
        uint64_t bytes = graph->outputs[i].bytes;
        if (!tli_is_statistic(graph, i) || tli_same_bytes(found, kept, bytes)) continue;
        tli_zero(&finding, sizeof finding);
        finding.kind = TL_FINDING_OPERAND_MISSING;
        finding.node = p->step->call.node;
        finding.step = p->step->call.kind;
        finding.operand = TL_OPERAND_STATISTICS;
        finding.index = graph->outputs[i].node;
        tli_add_finding(p->r, &finding);
        tli_copy(found, kept, (size_t)bytes);
    }
}

static void tli_forget_still(const tli_probe *p) {
    uint64_t pieces;
    (void)tli_count_variables(&p->run->desc, &pieces);
    tli_zero(p->r->is_still, (size_t)pieces);
}

// Note what the plain call left alone of the ranges of no node: probes neither put that back nor compare it.
static void tli_note_still(const tli_probe *p) {
    tli_variable_place place;
    uint64_t at, bytes;
    uint8_t *is_still;
    place.variable = NULL;
    while (tli_next_probed(p, &place)) {
        const tl_variable *variable = place.variable;
        if (variable->node >= 0 || variable->kind == TL_VARIABLE_RANDOM) continue;
        is_still = p->r->is_still + place.piece;
        for (at = 0; at < variable->bytes; at += bytes) {
            bytes = variable->bytes - at < TLI_PROBE_PIECE ? variable->bytes - at : TLI_PROBE_PIECE;
            *is_still++ = (uint8_t)tli_same_bytes((const char *)variable->host + at,
                                                  p->state_before + place.at + at, bytes);
        }
    }
}

// Put back what the plain call changed. Whether all that it left alone is as it was, after all probes.
static int tli_stayed_still(const tli_probe *p) {
    tli_variable_place place;
    (void)tli_move_probed(p, p->state_before, TLI_VARIABLES_PUT);
    place.variable = NULL;
    while (tli_next_probed(p, &place))
        if (place.variable->node < 0 && tli_move_variable(&place, p->state_before, NULL, TLI_VARIABLES_COMPARE))
            return 0;
    return 1;
}

// The plain call, and whether it makes the same bytes once more.
static tl_result tli_probe_plain(tli_probe *p, int may_be_still, int *repeats) {
    tl_result result = tli_run_probe(p, &tli_no_change, 1);
    *repeats = 0;
    if (result) return result;
    if (may_be_still) tli_note_still(p);
    tli_copy(p->after, p->work, (size_t)p->image_bytes);
    (void)tli_move_probed(p, p->state_after, TLI_VARIABLES_TAKE);
    result = tli_run_probe(p, &tli_no_change, 0);
    if (result) return result;
    *repeats = !tli_has_effect(p);
    if (!*repeats) tli_note_finding(p, TL_FINDING_NOT_REPEATABLE, NULL, 0);
    return TL_OK;
}

static tl_result tli_probe_all(tli_probe *p, int may_be_still) {
    int repeats = 0, untouched = 0;
    tl_result result = tli_probe_plain(p, may_be_still, &repeats);
    if (!result && repeats && p->step->call.kind == TL_STEP_BACKWARD) tli_check_parts(p);
    if (!result && repeats) result = tli_probe_undefined(p, &untouched);
    if (!result && repeats) result = p->step->call.kind == TL_STEP_BACKWARD
        ? tli_probe_backward(p, untouched) : tli_probe_forward(p, untouched);
    if (!result && repeats) result = tli_probe_ranges(p);
    if (!result && repeats) result = tli_probe_rows(p);
    if (!result && repeats) result = tli_probe_row_blocks(p);
    return result;
}

// Probe a call. That a probe changed a range which the plain call leaves alone shows only after all probes.
// Then their findings are forgotten and all are made again, with all ranges put back before each and compared
// after it, so that a finding names the range.
static tl_result tli_probe_call(tli_rehearsing *r, tl_run *run, const tl_run_step *step) {
    int32_t finding_count = r->out->finding_count, error_count = r->out->error_count;
    int32_t lost_count = r->out->lost_count;
    tli_probe p;
    tl_result result = tli_open_probe(&p, r, run, step);
    if (!result) tli_forget_still(&p);
    if (!result) result = tli_probe_all(&p, 1);
    if (!result && !tli_stayed_still(&p)) {
        r->out->finding_count = finding_count;
        r->out->error_count = error_count;
        r->out->lost_count = lost_count;
        tli_forget_still(&p);
        result = tli_probe_all(&p, 0);
    }
    if (!result) tli_put_effects(&p);
    if (!result) tli_compare_statistics(&p);
    tli_close_probe(&p);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
