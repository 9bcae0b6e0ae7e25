#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Copies between the tiers on queues of their own. A link is such a queue: one for both directions, or one for
// each.
//
//     queue    [batch 7][batch 8]------------[batch 9: reads the copy]
//                               \            /
//     link                       [transfer 3]        waits for batch 8; batch 9 waits for it, on the device
//
// Each transfer has a command buffer, and a value of the link's timeline, of its own. Those with no commands
// between them are handed over by one call. A transfer counts to the batch that is open then: that has passed
// when both have finished. The buffers belong to both queue families at once.

// -- links --

static tli_vk_transfer *tli_vk_transfer_of(const tli_vk *b, uint64_t number) {
    return &b->transfers[number % (uint64_t)b->transfer_capacity];
}

static void tli_vk_lock(tli_vk *b) {
    if (b->desc.device.lock_queue) (b->desc.device.lock_queue)(b->desc.device.lock_user);
}

static void tli_vk_unlock(tli_vk *b) {
    if (b->desc.device.unlock_queue) (b->desc.device.unlock_queue)(b->desc.device.lock_user);
}

static tl_result tli_vk_start_commands(tli_vk *b, VkCommandPool pool, VkCommandBuffer commands,
                                       const char *function) {
    VkCommandBufferBeginInfo info;
    VkResult result = (b->vk.vkResetCommandPool)(b->device, pool, 0);
    if (result) return tli_vk_fail_result(b, function, "vkResetCommandPool", result);
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    result = (b->vk.vkBeginCommandBuffer)(commands, &info);
    return result ? tli_vk_fail_result(b, function, "vkBeginCommandBuffer", result) : TL_OK;
}

static tl_result tli_vk_make_commands(tli_vk *b, uint32_t family, VkCommandPool *pool,
                                      VkCommandBuffer *buffer, const char *function) {
    VkCommandPoolCreateInfo info;
    VkCommandBufferAllocateInfo commands;
    VkResult result;
    memset(&info, 0, sizeof info);
    memset(&commands, 0, sizeof commands);
    info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    info.queueFamilyIndex = family;
    result = (b->vk.vkCreateCommandPool)(b->device, &info, b->callbacks, pool);
    if (result) *pool = VK_NULL_HANDLE;  // a call that fails may leave anything there
    if (result) return tli_vk_fail_result(b, function, "vkCreateCommandPool", result);
    commands.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    commands.commandPool = *pool;
    commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    commands.commandBufferCount = 1;
    result = (b->vk.vkAllocateCommandBuffers)(b->device, &commands, buffer);
    return result ? tli_vk_fail_result(b, function, "vkAllocateCommandBuffers", result) : TL_OK;
}

// Note what the timelines of the links say. Transfers are done in the order in which they were made.
static VkResult tli_vk_look_at_links(tli_vk *b) {
    VkResult result = VK_SUCCESS;
    int32_t i;
    for (i = 0; i < b->link_count && !result; i++) {
        uint64_t value = 0;
        result = (b->vk.vkGetSemaphoreCounterValue)(b->device, b->links[i].timeline, &value);
        if (!result && value > b->links[i].sent) return VK_ERROR_DEVICE_LOST;  // what drivers then say
        if (!result) b->links[i].passed = value;
    }
    while (!result && b->transfer_done < b->transfer_sent) {
        const tli_vk_transfer *next = tli_vk_transfer_of(b, b->transfer_done + 1);
        if (b->links[next->link].passed < next->value) break;
        b->transfer_done++;
    }
    return result;
}

// The last batch of which the transfers have finished, too, if batches up to `serial` have.
static uint64_t tli_vk_untransferred(const tli_vk *b, uint64_t serial) {
    uint64_t first;
    if (b->transfer_done == b->transfer_made) return serial;
    first = tli_vk_transfer_of(b, b->transfer_done + 1)->serial;
    return serial < first ? serial : first - 1;
}

// The value of a link's timeline when the transfers of the batches up to `serial` have finished.
static uint64_t tli_vk_value_at(const tli_vk *b, int32_t link, uint64_t serial) {
    uint64_t value = b->links[link].passed, number;
    for (number = b->transfer_done + 1; number <= b->transfer_sent; number++) {
        const tli_vk_transfer *transfer = tli_vk_transfer_of(b, number);
        if (transfer->serial <= serial && transfer->link == link && transfer->value > value)
            value = transfer->value;
    }
    return value;
}

// Wait on the host until the oldest transfer has finished.
static tl_result tli_vk_wait_for_oldest(tli_vk *b, const char *function) {
    const tli_vk_transfer *oldest = tli_vk_transfer_of(b, b->transfer_done + 1);
    VkSemaphoreWaitInfo info;
    VkResult result;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    info.semaphoreCount = 1;
    info.pSemaphores = &b->links[oldest->link].timeline;
    info.pValues = &oldest->value;
    b->calls.host_wait_count++;
    result = (b->vk.vkWaitSemaphores)(b->device, &info, UINT64_MAX);
    if (!result) result = tli_vk_look_at_links(b);
    return result ? tli_vk_fail_result(b, function, "wait for a copy", result) : TL_OK;
}

// Make the ring of transfers, all of which are under way, larger. 0 = no memory, or it is as large as it gets.
static int tli_vk_grow_ring(tli_vk *b) {
    int32_t was = b->transfer_capacity, larger = was ? 2 * was : TLI_VK_TRANSFERS;
    tli_vk_transfer *old = b->transfers;
    uint64_t number;
    if (larger > TLI_VK_MOST_TRANSFERS) return 0;
    b->transfers = (tli_vk_transfer *)tl_add_memory(b->env, (size_t)larger * sizeof *b->transfers);
    if (!b->transfers) { b->transfers = old; return 0; }
    b->calls.host_alloc_count++;
    b->transfer_capacity = larger;
    for (number = b->transfer_done + 1; number <= b->transfer_made; number++)
        *tli_vk_transfer_of(b, number) = old[number % (uint64_t)was];
    tl_free_memory(b->env, old);
    return 1;
}

// What vkQueueSubmit is told of one transfer.
typedef struct tli_vk_sending {
    VkTimelineSemaphoreSubmitInfo timeline;
    VkSemaphore waits[2];
    uint64_t    values[2];
} tli_vk_sending;

static VkSubmitInfo tli_vk_describe_transfer(tli_vk *b, const tli_vk_transfer *t, tli_vk_sending *s) {
    static const VkPipelineStageFlags stages[2] = {
        VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT
    };
    VkSubmitInfo info;
    uint32_t count = 0;
    memset(&info, 0, sizeof info);
    memset(s, 0, sizeof *s);
    if (t->after) {
        s->waits[count] = b->timeline;
        s->values[count++] = t->after;
    }
    if (t->other_value) {
        s->waits[count] = b->links[1 - t->link].timeline;
        s->values[count++] = t->other_value;
    }
    s->timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    s->timeline.waitSemaphoreValueCount = info.waitSemaphoreCount = count;
    s->timeline.signalSemaphoreValueCount = info.signalSemaphoreCount = 1;
    s->timeline.pSignalSemaphoreValues = &t->value;
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &s->timeline;
    if (count) s->timeline.pWaitSemaphoreValues = s->values;
    if (count) info.pWaitSemaphores = s->waits;
    if (count) info.pWaitDstStageMask = stages;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &t->commands;
    info.pSignalSemaphores = &b->links[t->link].timeline;
    return info;
}

// Hand over the transfers that wait for that, with one call for each run of them on one link. What fails is
// tried again later.
static tl_result tli_vk_send_transfers(tli_vk *b, const char *function) {
    VkSubmitInfo infos[TLI_VK_SENT_AT_ONCE];
    tli_vk_sending sendings[TLI_VK_SENT_AT_ONCE];
    while (b->transfer_sent < b->transfer_made) {
        const tli_vk_transfer *t = tli_vk_transfer_of(b, b->transfer_sent + 1);
        int32_t link = t->link;
        uint32_t count = 0;
        VkResult result;
        while (count < TLI_VK_SENT_AT_ONCE && b->transfer_sent + count < b->transfer_made) {
            t = tli_vk_transfer_of(b, b->transfer_sent + count + 1);
            if (t->link != link) break;
            infos[count] = tli_vk_describe_transfer(b, t, &sendings[count]);
            count++;
        }
        tli_vk_lock(b);
        result = (b->vk.vkQueueSubmit)(b->links[link].queue, count, infos, VK_NULL_HANDLE);
        tli_vk_unlock(b);
        if (result) return tli_vk_fail_result(b, function, "vkQueueSubmit", result);
        b->calls.submit_count++;
        b->transfer_sent += count;
        b->links[link].sent = tli_vk_transfer_of(b, b->transfer_sent)->value;
    }
    return TL_OK;
}

static int tli_vk_is_ring_full(const tli_vk *b) {
    return b->transfer_made - b->transfer_done == (uint64_t)b->transfer_capacity;
}

// Have room in the ring for one more transfer: it grows, or the oldest one is waited for.
static tl_result tli_vk_reserve_transfer(tli_vk *b, const char *function) {
    VkResult looked;
    tl_result result;
    if (!tli_vk_is_ring_full(b)) return TL_OK;
    looked = tli_vk_look_at_links(b);
    if (looked) return tli_vk_fail_result(b, function, "status of the device", looked);
    if (!tli_vk_is_ring_full(b) || tli_vk_grow_ring(b)) return TL_OK;
    if (!b->transfer_capacity)
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the copies between the tiers");
    result = tli_vk_send_transfers(b, function);
    return result ? result : tli_vk_wait_for_oldest(b, function);
}

// Have an entry of the ring with a command buffer, for the transfer with the next number.
static tl_result tli_vk_take_transfer(tli_vk *b, const char *function, tli_vk_transfer **taken) {
    tl_result result = tli_vk_reserve_transfer(b, function);
    tli_vk_transfer *t;
    if (result) return result;
    t = tli_vk_transfer_of(b, b->transfer_made + 1);
    *taken = t;
    if (t->commands) return TL_OK;
    result = tli_vk_make_commands(b, b->desc.device.transfer_family, &t->pool, &t->commands, function);
    if (!result) return TL_OK;
    if (t->pool) (b->vk.vkDestroyCommandPool)(b->device, t->pool, b->callbacks);
    memset(t, 0, sizeof *t);
    return result;
}

static void tli_vk_free_links(tli_vk *b) {
    int32_t i;
    for (i = 0; i < b->transfer_capacity; i++)
        if (b->transfers[i].pool) (b->vk.vkDestroyCommandPool)(b->device, b->transfers[i].pool, b->callbacks);
    for (i = 0; i < b->link_count; i++)
        if (b->links[i].timeline) (b->vk.vkDestroySemaphore)(b->device, b->links[i].timeline, b->callbacks);
    tl_free_memory(b->env, b->transfers);
    tl_free_memory(b->env, b->away);
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

