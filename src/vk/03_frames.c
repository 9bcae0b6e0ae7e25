#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [3] FRAMES (implementation)
// ============================================================================

// A frame is a batch of [2] whose command buffer is the caller's. When a frame is dropped, the bytes that it
// would have written are lost, and so are those that enqueued work would have computed from them.

TLI_VK_IMPL tl_result tl_vk_start_frame(const tl_backend *backend, VkCommandBuffer commands, tl_ticket *frame) {
    const char *function = "tl_vk_start_frame";
    tli_vk *b = tli_vk_self(backend);
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    tl_result result;
    frame->value = 0;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (!b->records)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "backend: it has a queue and submits by itself");
    if (b->open) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "backend: a frame is open");
    if (!commands) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "commands: missing");
    if (batch->serial > b->passed)
        return tli_vk_fail(b, TL_NOT_READY, function, "batch_count: so many frames were not retired yet");
    result = tli_vk_reset_batch(b, batch, function);
    if (result) return result;
    batch->commands = commands;
    batch->serial = b->serial;
    b->open = TLI_VK_OPEN;
    b->calls.frame_count++;
    frame->value = b->serial;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_end_frame(const tl_backend *backend) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_end_frame");
    if (!b->records || !b->open)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_end_frame", "backend: no frame is open");
    result = tli_vk_complete(b, "tl_vk_end_frame");
    if (result) return result;
    b->serial++;
    b->open = 0;
    b->has_work = 0;
    b->calls.recorded_bytes = 0;
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_retire_frame(const tl_backend *backend, tl_ticket frame) {
    tli_vk *b = tli_vk_self(backend);
    if (!b->records || !frame.value || frame.value >= b->serial)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_retire_frame", "frame: was never ended");
    tli_vk_pass(b, frame.value);
    return TL_OK;
}

// Give up a frame that never runs: the places that it writes are lost.
static void tli_vk_lose_batch(tli_vk *b, tli_vk_batch *batch) {
    uint64_t slot;
    int32_t i;
    for (slot = 0; b->time_serials && slot < (uint64_t)b->desc.time_count + TLI_VK_OWN_TIMES; slot++)
        if (b->time_serials[slot] == batch->serial) b->time_serials[slot] = 0;  // it is never written
    for (i = 0; i < batch->write_count; i++)
        if (!tli_vk_add_lost(b, batch->writes[i])) b->lost = 1;  // what is lost is not known any more
    batch->write_count = 0;
    batch->serial = 0;
    b->open = 0;
    b->has_work = b->op_count > 0;
    tli_vk_forget_accesses(&b->touches);
    b->all_touched = 1;
    b->calls.recorded_bytes = 0;
}

// Cancel a pending read whose copy never runs.
static void tli_vk_drop_read(tli_vk *b, const tli_vk_place *staged, uint64_t serial) {
    int32_t i;
    for (i = b->mapping_count - 1; i >= 0; i--) {
        if (!b->mappings[i].is_pending || !tli_vk_meet(&b->mappings[i].staged, staged)) continue;
        tli_vk_cancel_read(b, i, serial);
    }
}

// Discard the enqueued work that reads lost bytes, or all of it; what it would have written is lost, too.
static void tli_vk_lose_ops(tli_vk *b, int all, uint64_t serial) {
    int32_t kept = 0, i;
    for (i = 0; i < b->op_count; i++) {
        const tli_vk_op op = b->ops[i];
        int changes = op.kind == TLI_VK_OP_SHADER &&
                      (tli_vk_reduces(op.shader) || op.shader == TLI_VK_SHADER_ADD);
        if (all || (op.kind != TLI_VK_OP_FILL && tli_vk_is_lost(b, &op.from)) ||
            (changes && tli_vk_is_lost(b, &op.to))) {
            if (!tli_vk_add_lost(b, op.to)) b->lost = 1;
            tli_vk_drop_read(b, &op.to, serial);
        } else {
            tli_vk_forget_lost(b, &op.to);
            b->ops[kept++] = op;
        }
    }
    b->op_count = kept;
}

TLI_VK_IMPL tl_result tl_vk_drop_frame(const tl_backend *backend, tl_ticket frame) {
    const char *function = "tl_vk_drop_frame";
    tli_vk *b = tli_vk_self(backend);
    uint64_t latest = b->open ? b->serial : b->serial - 1;
    tli_vk_batch *batch = tli_vk_batch_of(b, frame.value);
    int32_t i, was_open;
    while (latest > b->passed && tli_vk_batch_of(b, latest)->dropped == latest) latest--;
    if (!b->records || !frame.value || frame.value > latest || frame.value <= b->passed)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "frame: is not under way");
    if (frame.value != latest || batch->serial != frame.value)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "frame: is not the latest one");
    was_open = b->open;
    b->serial += was_open != 0;
    batch->dropped = frame.value;
    tli_vk_lose_batch(b, batch);
    tli_vk_lose_ops(b, was_open, frame.value);
    b->has_work = b->op_count > 0;
    for (i = b->mapping_count - 1; i >= 0; i--) {
        if (!b->mappings[i].is_pending || b->mappings[i].serial != frame.value) continue;
        tli_vk_cancel_read(b, i, frame.value);
    }
    if (b->passed + 1 == frame.value) tli_vk_pass(b, frame.value);
    return TL_OK;
}

TLI_VK_IMPL void tl_vk_lose_device(const tl_backend *backend) { tli_vk_self(backend)->lost = 1; }
#endif  // TL_VK_BACKEND_IMPLEMENTATION

