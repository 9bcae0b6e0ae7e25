#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Batches: opened, submitted, looked at, waited for. With a queue of its own the backend notes each command
// that it records: vkEndCommandBuffer may fail and leave the command buffer invalid, then all is recorded
// again.

// -- batches --

static tli_vk_batch *tli_vk_batch_of(tli_vk *b, uint64_t serial) {
    return &b->batches[serial % (uint64_t)b->desc.batch_count];
}

// Free the staging slots whose batch has passed.
static void tli_vk_free_slots(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->slot_end && b->slot_count; i++)
        if (b->all_slots[i].is_used && b->all_slots[i].serial <= b->passed)
            tli_vk_free_slot(b, &b->all_slots[i]);
}

// Note that the batches up to this serial have finished on the queue, and the dropped ones behind them; those
// whose transfers have finished as well have passed.
static void tli_vk_pass(tli_vk *b, uint64_t serial) {
    if (serial > b->computed) b->computed = serial;
    while (b->computed + 1 < b->serial && tli_vk_batch_of(b, b->computed + 1)->dropped == b->computed + 1)
        b->computed++;
    serial = tli_vk_untransferred(b, b->computed);
    if (serial <= b->passed) return;
    b->passed = serial;
    tli_vk_drop_arenas(b);
    tli_vk_free_slots(b);
}

// Ask the device which batches have finished. Never blocks.
static tl_result tli_vk_look(tli_vk *b, const char *function) {
    uint64_t serial = b->computed;
    VkResult result = VK_SUCCESS;
    if (b->records || b->lost) return TL_OK;
    if (b->timeline) {
        result = (b->vk.vkGetSemaphoreCounterValue)(b->device, b->timeline, &serial);
        if (!result && serial >= b->serial + 1) {  // no such batch: drivers return this for a lost device
            result = VK_ERROR_DEVICE_LOST;
            serial = b->computed;
        }
        if (!result) result = tli_vk_look_at_links(b);
    } else {
        while (serial + 1 < b->serial && !result) {
            result = (b->vk.vkGetFenceStatus)(b->device, tli_vk_batch_of(b, serial + 1)->fence);
            if (!result) serial++;
        }
        if (result == VK_NOT_READY) result = VK_SUCCESS;
    }
    if (result) return tli_vk_fail_result(b, function, "status of the device", result);
    tli_vk_pass(b, serial);
    return TL_OK;
}

// Block until a submitted batch has finished on the queue, and with_transfers those that count to it.
static tl_result tli_vk_wait_batch(tli_vk *b, uint64_t serial, int with_transfers, const char *function) {
    VkSemaphoreWaitInfo info;
    VkSemaphore timelines[3];
    uint64_t values[3];
    VkResult result = VK_SUCCESS;
    int32_t i;
    if (serial <= (with_transfers ? b->passed : b->computed)) return TL_OK;
    b->calls.host_wait_count++;
    if (b->timeline) {
        memset(&info, 0, sizeof info);
        timelines[0] = b->timeline;
        values[0] = serial;
        info.semaphoreCount = 1;
        for (i = 0; i < b->link_count && with_transfers; i++) {
            timelines[info.semaphoreCount] = b->links[i].timeline;
            values[info.semaphoreCount++] = tli_vk_value_at(b, i, serial);
        }
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
        info.pSemaphores = timelines;
        info.pValues = values;
        result = (b->vk.vkWaitSemaphores)(b->device, &info, UINT64_MAX);
        if (!result) result = tli_vk_look_at_links(b);
    } else {
        result = (b->vk.vkWaitForFences)(b->device, 1, &tli_vk_batch_of(b, serial)->fence, VK_TRUE, UINT64_MAX);
    }
    if (result) return tli_vk_fail_result(b, function, "wait for the device", result);
    tli_vk_pass(b, serial);
    return TL_OK;
}

static tl_result tli_vk_reset_batch(tli_vk *b, tli_vk_batch *batch, const char *function) {
    VkResult result;
    int32_t i;
    for (i = 0; i < batch->set_count && i <= batch->set_at; i++) {
        result = (b->vk.vkResetDescriptorPool)(b->device, batch->sets[i].pool, 0);
        if (result) return tli_vk_fail_result(b, function, "vkResetDescriptorPool", result);
        batch->sets[i].sets_left = TLI_VK_SETS;
        batch->sets[i].buffers_left = TLI_VK_SET_BUFFERS;
    }
    batch->set_at = 0;
    batch->write_count = batch->noted_count = 0;
    batch->has_others = 0;
    batch->waits_for[0] = batch->waits_for[1] = 0;
    return TL_OK;
}

// -- commands, noted so that they can be recorded again --

// From here on the batch holds commands that are not noted.
static void tli_vk_note_others(tli_vk_batch *batch) {
    if (batch->has_others) return;
    batch->has_others = 1;
    batch->known_count = batch->noted_count;
    batch->known_writes = batch->write_count;
}

// Have room to note a command with so many bytes of data; 0 = no memory.
static int tli_vk_reserve_note(tli_vk *b, tli_vk_batch *batch, uint64_t data_bytes) {
    int32_t words = (int32_t)((sizeof(tli_vk_command) + data_bytes + 7) / 8);
    while (batch->noted_capacity - batch->noted_count < words)
        if (!tli_vk_grow(b, &batch->noted, &batch->noted_capacity, batch->noted_capacity, sizeof *batch->noted))
            return 0;
    return 1;
}

static int32_t tli_vk_words_of_command(const tli_vk_command *command) {
    return (int32_t)((sizeof *command + command->data_bytes + 7) / 8);
}

// Note a command. Without memory for that it counts as one of the caller's, which matters only if the command
// buffer cannot be ended.
static void tli_vk_note_command(tli_vk *b, tli_vk_batch *batch, const tli_vk_command *command,
                                const void *data) {
    uint64_t *noted;
    if (!tli_vk_reserve_note(b, batch, command->data_bytes)) {
        tli_vk_note_others(batch);
        return;
    }
    noted = batch->noted + batch->noted_count;
    memcpy(noted, command, sizeof *command);
    if (command->data_bytes) memcpy(noted + sizeof *command / 8, data, (size_t)command->data_bytes);
    batch->noted_count += tli_vk_words_of_command(command);
}

static void tli_vk_issue_barrier(tli_vk *b, VkCommandBuffer commands, const tli_vk_command *c) {
    VkMemoryBarrier barrier;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = c->access[0];
    barrier.dstAccessMask = c->access[1];
    (b->vk.vkCmdPipelineBarrier)(commands, c->stages[0], c->stages[1], 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void tli_vk_issue_dispatch(tli_vk *b, VkCommandBuffer commands, const tli_vk_command *c,
                                  const void *push) {
    const tl_vk_kernel *kernel = c->kernel;
    if (kernel->buffer_count)
        (b->vk.vkCmdBindDescriptorSets)(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1, &c->set,
                                      0, NULL);
    (b->vk.vkCmdBindPipeline)(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    if (kernel->push_bytes)
        (b->vk.vkCmdPushConstants)(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->push_bytes,
                                 push);
    (b->vk.vkCmdDispatch)(commands, c->groups[0], c->groups[1], c->groups[2]);
}

static void tli_vk_issue_command(tli_vk *b, VkCommandBuffer commands, const tli_vk_command *c,
                                 const void *data) {
    switch (c->kind) {
    case TLI_VK_COMMAND_BARRIER: tli_vk_issue_barrier(b, commands, c); break;
    case TLI_VK_COMMAND_TIME:
        (b->vk.vkCmdResetQueryPool)(commands, b->times, c->count, 1);
        (b->vk.vkCmdWriteTimestamp)(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->times, c->count);
        break;
    case TLI_VK_COMMAND_COPY:
        (b->vk.vkCmdCopyBuffer)(commands, c->from, c->to, c->count, (const VkBufferCopy *)data);
        break;
    case TLI_VK_COMMAND_FILL: (b->vk.vkCmdFillBuffer)(commands, c->to, c->at, c->bytes, c->word); break;
    case TLI_VK_COMMAND_DISPATCH: tli_vk_issue_dispatch(b, commands, c, data); break;
    }
}

// Record a command into the open batch.
static void tli_vk_record_command(tli_vk *b, const tli_vk_command *command, const void *data) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    if (!b->records) tli_vk_note_command(b, batch, command, data);
    tli_vk_issue_command(b, batch->commands, command, data);
}

// The end of the batch failed. What it noted will be recorded again. Of what stands behind commands of others
// only barriers and times: the places that the rest was to write are lost.
static void tli_vk_break_batch(tli_vk *b, tli_vk_batch *batch) {
    int32_t at, kept = batch->known_count, i;
    b->open = TLI_VK_BROKEN;
    if (!batch->has_others) return;
    for (at = kept; at < batch->noted_count;) {
        tli_vk_command command;
        int32_t words;
        memcpy(&command, batch->noted + at, sizeof command);
        words = tli_vk_words_of_command(&command);
        if (command.kind <= TLI_VK_COMMAND_TIME) {
            memmove(batch->noted + kept, batch->noted + at, (size_t)words * 8);
            kept += words;
        }
        at += words;
    }
    batch->noted_count = kept;
    batch->has_others = 0;
    for (i = batch->known_writes; i < batch->write_count; i++)
        if (!tli_vk_add_lost(b, batch->writes[i])) b->lost = 1;  // what is lost is not known any more
}

// End the command buffer of the open batch.
static tl_result tli_vk_end_commands(tli_vk *b, const char *function) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    VkResult result = (b->vk.vkEndCommandBuffer)(batch->commands);
    const char *call = batch->has_others ? "what the caller recorded did not run: vkEndCommandBuffer"
                                         : "vkEndCommandBuffer";
    if (!result) {
        b->open = TLI_VK_ENDED;
        return TL_OK;
    }
    tli_vk_break_batch(b, batch);
    return tli_vk_fail_result(b, function, call, result);
}

// Record what a broken batch holds again.
static tl_result tli_vk_mend_batch(tli_vk *b, const char *function) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    tl_result result = tli_vk_start_commands(b, batch->pool, batch->commands, function);
    int32_t at = 0;
    while (!result && at < batch->noted_count) {
        const uint64_t *noted = batch->noted + at;
        tli_vk_command command;
        memcpy(&command, noted, sizeof command);
        tli_vk_issue_command(b, batch->commands, &command, noted + sizeof command / 8);
        at += tli_vk_words_of_command(&command);
    }
    return result ? result : tli_vk_end_commands(b, function);
}

// -- submits --

// Submit the command buffer of the open batch. It waits for what it reads from links, and signals its serial.
static VkResult tli_vk_submit_batch(tli_vk *b, const tli_vk_batch *batch) {
    static const VkPipelineStageFlags stages[2] = {
        VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
        VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
    };
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSemaphore waits[2];
    uint64_t values[2];
    VkSubmitInfo info;
    VkResult result;
    int32_t i;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &batch->commands;
    for (i = 0; i < b->link_count; i++) {
        if (!batch->waits_for[i]) continue;
        waits[info.waitSemaphoreCount] = b->links[i].timeline;
        values[info.waitSemaphoreCount++] = batch->waits_for[i];
    }
    if (b->timeline) {
        memset(&timeline, 0, sizeof timeline);
        timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
        timeline.waitSemaphoreValueCount = info.waitSemaphoreCount;
        if (info.waitSemaphoreCount) timeline.pWaitSemaphoreValues = values;
        timeline.signalSemaphoreValueCount = info.signalSemaphoreCount = 1;
        timeline.pSignalSemaphoreValues = &b->serial;
        info.pNext = &timeline;
        info.pSignalSemaphores = &b->timeline;
        if (info.waitSemaphoreCount) info.pWaitSemaphores = waits;
        if (info.waitSemaphoreCount) info.pWaitDstStageMask = stages;
    }
    tli_vk_lock(b);
    result = (b->vk.vkQueueSubmit)(b->desc.device.queue, 1, &info, batch->fence);
    tli_vk_unlock(b);
    if (!result) b->calls.submit_count++;
    return result;
}

// Submit the completed batch, after the transfers that it may wait for. What fails is tried again later.
static tl_result tli_vk_hand_over(tli_vk *b, const char *function) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    tl_result code = b->open == TLI_VK_BROKEN ? tli_vk_mend_batch(b, function) : TL_OK;
    VkResult result = VK_SUCCESS;
    if (!code) code = tli_vk_send_transfers(b, function);
    if (code) return code;
    if (!b->timeline) result = (b->vk.vkResetFences)(b->device, 1, &batch->fence);
    if (result) return tli_vk_fail_result(b, function, "vkResetFences", result);
    result = tli_vk_submit_batch(b, batch);
    if (result) return tli_vk_fail_result(b, function, "vkQueueSubmit", result);
    b->serial++;
    b->open = 0;
    b->owes_batch = 0;
    b->has_work = b->op_count > 0;
    b->calls.recorded_bytes = 0;
    return TL_OK;
}

static tl_result tli_vk_make_batch(tli_vk *b, tli_vk_batch *batch, const char *function) {
    VkFenceCreateInfo fence;
    VkResult result;
    tl_result code;
    batch->writes = (tli_vk_place *)tl_add_memory(b->env, TLI_VK_WRITES * sizeof *batch->writes);
    if (!batch->writes) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the batches");
    batch->write_capacity = TLI_VK_WRITES;
    if (b->records) return TL_OK;
    batch->noted = (uint64_t *)tl_add_memory(b->env, TLI_VK_NOTED * sizeof *batch->noted);
    if (!batch->noted) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the batches");
    batch->noted_capacity = TLI_VK_NOTED;
    code = tli_vk_make_commands(b, b->desc.device.queue_family, &batch->pool, &batch->commands, function);
    if (code || b->timeline) return code;
    memset(&fence, 0, sizeof fence);
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    result = (b->vk.vkCreateFence)(b->device, &fence, b->callbacks, &batch->fence);
    if (result) batch->fence = VK_NULL_HANDLE;
    return result ? tli_vk_fail_result(b, function, "vkCreateFence", result) : TL_OK;
}

static void tli_vk_free_batch(tli_vk *b, tli_vk_batch *batch) {
    int32_t i;
    for (i = 0; i < batch->set_count; i++)
        (b->vk.vkDestroyDescriptorPool)(b->device, batch->sets[i].pool, b->callbacks);
    if (batch->fence) (b->vk.vkDestroyFence)(b->device, batch->fence, b->callbacks);
    if (batch->pool) (b->vk.vkDestroyCommandPool)(b->device, batch->pool, b->callbacks);
    tl_free_memory(b->env, batch->sets);
    tl_free_memory(b->env, batch->writes);
    tl_free_memory(b->env, batch->noted);
}

// Make the ring of batches, all of which are under way, twice as large. Where that fails it stays as it is.
static void tli_vk_grow_batches(tli_vk *b) {
    int32_t was = b->desc.batch_count, larger = 2 * was, i;
    tl_env *env = b->env;
    tli_vk_batch *batches;
    tl_result result = TL_OK;
    uint64_t serial;
    if (!b->grows || larger > TLI_VK_MOST_BATCHES) return;
    b->env = &b->quiet;     // to wait instead is no error
    batches = (tli_vk_batch *)tl_add_memory(b->env, (size_t)larger * sizeof *batches);
    if (batches) {
        for (serial = b->serial - (uint64_t)was; serial < b->serial; serial++)
            batches[serial % (uint64_t)larger] = *tli_vk_batch_of(b, serial);
        for (i = 0; i < larger && !result; i++)
            if (!batches[i].serial) result = tli_vk_make_batch(b, &batches[i], "");
        for (i = 0; i < larger && result; i++)
            if (!batches[i].serial) tli_vk_free_batch(b, &batches[i]);
    }
    if (batches && !result) {
        tl_free_memory(b->env, b->batches);
        b->batches = batches;
        b->desc.batch_count = larger;
        b->calls.host_alloc_count++;
    } else {
        tl_free_memory(b->env, batches);
    }
    b->env = env;
}

// Have a command buffer that is recording. In record mode only the caller can open one.
static tl_result tli_vk_open(tli_vk *b, const char *function) {
    tli_vk_batch *batch;
    tl_result code;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (b->open >= TLI_VK_ENDED && (code = tli_vk_hand_over(b, function)) != TL_OK) return code;
    if (b->open) return TL_OK;
    if (b->records) return tli_vk_fail(b, TL_NOT_READY, function, "no frame is open");
    if ((code = tli_vk_send_transfers(b, function)) != TL_OK) return code;
    batch = tli_vk_batch_of(b, b->serial);
    if (batch->serial > b->computed && (code = tli_vk_look(b, function)) != TL_OK) return code;
    if (batch->serial > b->computed) tli_vk_grow_batches(b);
    batch = tli_vk_batch_of(b, b->serial);
    if (batch->serial > b->computed && (code = tli_vk_wait_batch(b, batch->serial, 0, function)) != TL_OK)
        return code;
    if ((code = tli_vk_reset_batch(b, batch, function)) != TL_OK) return code;
    code = tli_vk_start_commands(b, batch->pool, batch->commands, function);
    if (code) return code;
    batch->serial = b->serial;
    b->open = TLI_VK_OPEN;
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

