#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- the executor: submits --
//
// A driver's watchdog fires by time, and work starts when it is submitted: so what was enqueued is submitted
// before it is more than desc.submit_ns by the costs of the graph. The backend knows bytes only, and cuts by
// them beside that.

#define TLI_SUBMIT_NS 2000000

// Costs of the graph are nanoseconds if somebody measured or priced them.
static int tli_costs_are_ns(const tl_run_desc *desc) {
    return desc->costs || desc->device || (desc->transport && desc->transport->link);
}

// Set how long submits may be, while the desc is whole.
static void tli_init_submits(tl_run *run) {
    const tl_device *device = run->desc.device;
    tli_submits *submits = &run->submits;
    submits->limit_ns = run->desc.submit_ns ? run->desc.submit_ns : TLI_SUBMIT_NS;
    if (!tli_costs_are_ns(&run->desc) || !run->limits.in_order) submits->limit_ns = UINT64_MAX;
    if (!device) return;
    submits->link_rates[0] = tli_copy_rate(device, 0);
    submits->link_rates[1] = tli_copy_rate(device, 1);
    submits->codec_rate = device->codec_bytes_per_second;
}

// So many ns of work are about to be enqueued: submit what was enqueued before, if both are too much for one.
static tl_result tli_enqueue_ns(tl_run *run, uint64_t ns) {
    tli_submits *submits = &run->submits;
    uint64_t *longest = &run->report.longest_submit_ns;
    if (submits->limit_ns == UINT64_MAX) return TL_OK;
    if (submits->queued_ns && (ns > submits->limit_ns || submits->queued_ns > submits->limit_ns - ns)) {
        tl_result result = tli_submit_store(&run->store);
        if (result && result != TL_NOT_READY) return tli_run_fail_backend(run, result, TLI_RULE(SUBMIT_FAILED));
        if (!result) submits->queued_ns = 0;    // else it goes with what follows
    }
    if (!tli_add_u64(submits->queued_ns, ns, &submits->queued_ns)) submits->queued_ns = UINT64_MAX;
    if (submits->queued_ns > *longest) *longest = submits->queued_ns;
    TLI_INVARIANT(submits->queued_ns >= ns && *longest >= ns);
    return TL_OK;
}

// The part of a node's cost that is one of its calls: for a range of its elements, of a member of a fused node.
static tl_result tli_enqueue_call(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    const tli_call *call = &run->at.call;
    uint64_t ns = run->at.last.kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost;
    int32_t members = tli_count_members(run, run->at.last.node);    // 0: a node of the run's own
    uint64_t calls = call->count && call->count < call->total ? tli_divide_up(call->total, call->count) : 1;
    return tli_enqueue_ns(run, tli_divide_up(ns, members ? calls * (uint64_t)members : calls));
}

// A copy to or from the host, or a conversion, of a tensor.
static tl_result tli_enqueue_memory_step(tl_run *run, tl_step_kind kind, uint64_t bytes) {
    int copies = kind == TL_STEP_SPILL || kind == TL_STEP_FETCH;
    uint64_t rate = copies ? run->submits.link_rates[kind == TL_STEP_FETCH]
                  : kind == TL_STEP_COMPRESS || kind == TL_STEP_EXPAND ? run->submits.codec_rate : 0;
    uint64_t ns = 0;
    if (rate && !tli_find_time(bytes, rate, &ns)) ns = UINT64_MAX;
    return ns ? tli_enqueue_ns(run, ns) : TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
