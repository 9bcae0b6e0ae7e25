#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [4] KERNELS (implementation)
// ============================================================================

// Pipelines of the caller and of [5], their dispatch, and timestamps. `order` announces the ranges of a kernel;
// recording the kernel notes them as touches of the open batch.

static const char *tli_vk_explain_kernel(const tl_vk_kernel_desc *desc) {
    if (!desc->words || desc->word_count < 5 || desc->words[0] != 0x07230203u) return "words: not SPIR-V";
    if (desc->word_count > SIZE_MAX / 8) return "word_count: too many";
    if (desc->buffer_count < 0 || desc->buffer_count > TLI_VK_BINDINGS) return "buffer_count: must be 0 to 16";
    if (desc->push_bytes % 4 || desc->push_bytes > 128) return "push_bytes: must be a multiple of 4 up to 128";
    if (desc->constant_count > 16) return "constant_count: must be 0 to 16";
    if (desc->constant_count && !desc->constants) return "constants: missing";
    return NULL;
}

static VkResult tli_vk_make_layouts(tli_vk *b, const tl_vk_kernel_desc *desc, tl_vk_kernel *kernel) {
    VkDescriptorSetLayoutBinding bindings[TLI_VK_BINDINGS];
    VkDescriptorSetLayoutCreateInfo set;
    VkPushConstantRange push;
    VkPipelineLayoutCreateInfo layout;
    VkResult result;
    int32_t i;
    memset(bindings, 0, sizeof bindings);
    memset(&set, 0, sizeof set);
    memset(&push, 0, sizeof push);
    memset(&layout, 0, sizeof layout);
    for (i = 0; i < desc->buffer_count; i++) {
        bindings[i].binding = (uint32_t)i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = (uint32_t)desc->buffer_count;
    set.pBindings = bindings;
    result = (b->vk.vkCreateDescriptorSetLayout)(b->device, &set, b->callbacks, &kernel->set_layout);
    if (result) kernel->set_layout = VK_NULL_HANDLE;
    if (result) return result;
    push.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    push.size = desc->push_bytes;
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &kernel->set_layout;
    layout.pushConstantRangeCount = desc->push_bytes != 0;
    layout.pPushConstantRanges = &push;
    result = (b->vk.vkCreatePipelineLayout)(b->device, &layout, b->callbacks, &kernel->layout);
    if (result) kernel->layout = VK_NULL_HANDLE;
    return result;
}

static VkResult tli_vk_make_pipeline(tli_vk *b, const tl_vk_kernel_desc *desc, tl_vk_kernel *kernel) {
    VkSpecializationMapEntry entries[16];
    VkSpecializationInfo special;
    VkShaderModuleCreateInfo module;
    VkComputePipelineCreateInfo pipeline;
    VkShaderModule shader = VK_NULL_HANDLE;
    VkResult result;
    uint32_t i;
    memset(&module, 0, sizeof module);
    memset(&pipeline, 0, sizeof pipeline);
    memset(&special, 0, sizeof special);
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = desc->word_count * 4;
    module.pCode = desc->words;
    result = (b->vk.vkCreateShaderModule)(b->device, &module, b->callbacks, &shader);
    if (result) return result;
    for (i = 0; i < desc->constant_count; i++) {
        entries[i].constantID = i;
        entries[i].offset = i * 4;
        entries[i].size = 4;
    }
    special.mapEntryCount = desc->constant_count;
    special.pMapEntries = entries;
    special.dataSize = desc->constant_count * 4;
    special.pData = desc->constants;
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = shader;
    pipeline.stage.pName = "main";
    pipeline.stage.pSpecializationInfo = desc->constant_count ? &special : NULL;
    pipeline.layout = kernel->layout;
    result = (b->vk.vkCreateComputePipelines)(b->device, b->desc.pipeline_cache, 1, &pipeline, b->callbacks,
                                            &kernel->pipeline);
    if (result) kernel->pipeline = VK_NULL_HANDLE;
    (b->vk.vkDestroyShaderModule)(b->device, shader, b->callbacks);
    return result;
}

typedef struct tli_vk_kernel_memory { tl_vk_kernel kernel; tli_vk_kept kept; } tli_vk_kernel_memory;

TLI_VK_IMPL tl_result tl_vk_init_kernel(const tl_backend *backend, const tl_vk_kernel_desc *desc,
                                        tl_vk_kernel **out) {
    const char *function = "tl_vk_init_kernel", *why = tli_vk_explain_kernel(desc), *call = "kernel layouts";
    tli_vk *b = tli_vk_self(backend);
    tli_vk_kernel_memory *both;
    tl_vk_kernel *kernel;
    VkResult result;
    *out = NULL;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (why) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, why);
    if ((uint32_t)desc->buffer_count > b->device_limits.maxPerStageDescriptorStorageBuffers ||
        desc->push_bytes > b->device_limits.maxPushConstantsSize)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function,
                           "buffer_count, push_bytes: more than the device binds");
    both = (tli_vk_kernel_memory *)tl_add_memory(b->env, sizeof *both);
    if (!both) return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory");
    kernel = &both->kernel;
    kernel->kept = &both->kept;
    b->calls.host_alloc_count++;
    b->kernel_count++;
    kernel->buffer_count = desc->buffer_count;
    kernel->push_bytes = desc->push_bytes;
    result = tli_vk_make_layouts(b, desc, kernel);
    if (!result) {
        call = "pipeline";
        result = tli_vk_make_pipeline(b, desc, kernel);
    }
    if (result) {
        tl_vk_free_kernel(backend, kernel);
        return tli_vk_fail_result(b, function, call, result);
    }
    *out = kernel;
    return TL_OK;
}

TLI_VK_IMPL void tl_vk_free_kernel(const tl_backend *backend, tl_vk_kernel *kernel) {
    tli_vk *b = tli_vk_self(backend);
    if (!kernel) return;
    tli_vk_free_kept(b, kernel->kept);
    if (kernel->pipeline) (b->vk.vkDestroyPipeline)(b->device, kernel->pipeline, b->callbacks);
    if (kernel->layout) (b->vk.vkDestroyPipelineLayout)(b->device, kernel->layout, b->callbacks);
    if (kernel->set_layout) (b->vk.vkDestroyDescriptorSetLayout)(b->device, kernel->set_layout, b->callbacks);
    b->kernel_count--;
    tl_free_memory(b->env, kernel);
}

TLI_VK_IMPL tl_result tl_vk_record_kernel(const tl_backend *backend, const tl_vk_kernel *kernel,
                                          const tl_range *ranges, const void *push, uint32_t groups_x,
                                          uint32_t groups_y, uint32_t groups_z) {
    const char *function = "tl_vk_record_kernel";
    tli_vk *b = tli_vk_self(backend);
    const uint32_t *most = b->device_limits.maxComputeWorkGroupCount;
    tli_vk_place places[TLI_VK_BINDINGS];
    uint32_t groups[3];
    tl_result result = TL_OK;
    int32_t i;
    memset(places, 0, sizeof places);
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (groups_x > most[0] || groups_y > most[1] || groups_z > most[2])
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "groups: more than the device takes");
    for (i = 0; i < kernel->buffer_count; i++) {
        const tli_vk_block *block;
        places[i] = b->placeholder;
        if (!ranges[i].bytes) continue;
        block = tli_vk_find_range(b, &ranges[i], function, &result);
        if (!block) return result;
        places[i] = tli_vk_place_of(block, &ranges[i]);
        if (ranges[i].bytes > b->device_limits.maxStorageBufferRange)
            return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "ranges: longer than the device can bind");
    }
    if (!groups_x || !groups_y || !groups_z) return TL_OK;
    groups[0] = groups_x;
    groups[1] = groups_y;
    groups[2] = groups_z;
    result = tli_vk_open(b, function);
    if (!result) result = tli_vk_order_early(b, function);
    for (i = 0; i < kernel->buffer_count && !result; i++)
        if (ranges[i].bytes) result = tli_vk_touch_promised(b, &places[i], ranges[i].block, function);
    if (!result) result = tli_vk_dispatch(b, kernel, places, push, groups, function);
    if (result) return result;
    b->kept_count = b->promise_count;
    b->calls.kernel_count++;
    return TL_OK;
}

// -- timestamps --

static tl_result tli_vk_write_time(tli_vk *b, uint32_t slot, const char *function) {
    tli_vk_command command;
    tl_result result;
    if (!b->times) return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "the queue has no timestamps");
    result = tli_vk_open(b, function);
    if (!result) result = tli_vk_flush(b, function);
    if (result) return result;
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_TIME;
    command.count = slot;
    tli_vk_record_command(b, &command, NULL);
    b->time_serials[slot] = b->serial;
    b->time_numbers[slot] = b->time_count++;
    b->has_work = 1;
    return TL_OK;
}

// Count ticks on where the counter of the device begins again: relative to the time that was read last, a later
// one lies up to seven eighths of the range after it, or slightly before it, as times may overtake each other.
static uint64_t tli_vk_extend_ticks(tli_vk *b, uint32_t slot, uint64_t ticks) {
    uint64_t range = (uint64_t)1 << (b->time_bits & 63), back, apart;
    if (b->time_bits > 48) return b->time_bits < 64 ? ticks & (range - 1) : ticks;  // 49 bits of 1 ns: 6 days
    ticks &= range - 1;
    if (!b->read_ticks) b->read_ticks = range + ticks;  // so that those before it are above 0
    apart = (ticks - b->read_ticks) & (range - 1);
    back = b->time_numbers[slot] < b->read_number ? range / 8 * 7 : range / 8;
    ticks = b->read_ticks + apart;
    if (apart >= range - back && ticks > range) ticks -= range;
    b->read_number = b->time_numbers[slot];
    b->read_ticks = ticks;
    return ticks;
}

static tl_result tli_vk_read_time(tli_vk *b, uint32_t slot, const char *function, uint64_t *ns) {
    uint64_t ticks = 0;
    VkResult got;
    tl_result result;
    if (!b->times) return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "the queue has no timestamps");
    if (!b->time_serials[slot])
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "slot: was never written");
    result = tli_vk_reach(b, b->time_serials[slot], function);
    if (result) return result;
    got = (b->vk.vkGetQueryPoolResults)(b->device, b->times, slot, 1, sizeof ticks, &ticks, sizeof ticks,
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (got) return tli_vk_fail_result(b, function, "vkGetQueryPoolResults", got);
    ticks = tli_vk_extend_ticks(b, slot, ticks);
    *ns = (uint64_t)((double)ticks * (double)b->device_limits.timestampPeriod);
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_record_time(const tl_backend *backend, uint32_t slot) {
    tli_vk *b = tli_vk_self(backend);
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_record_time");
    if (slot >= b->desc.time_count)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_record_time", "slot: not below time_count");
    return tli_vk_write_time(b, slot, "tl_vk_record_time");
}

TLI_VK_IMPL tl_result tl_vk_read_times(const tl_backend *backend, uint32_t first, uint32_t count,
                                       uint64_t *ns) {
    tli_vk *b = tli_vk_self(backend);
    tl_result result = TL_OK;
    uint32_t i;
    if (b->lost) return tli_vk_fail_lost(b, "tl_vk_read_times");
    if (first > b->desc.time_count || count > b->desc.time_count - first)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, "tl_vk_read_times", "slot: not below time_count");
    for (i = 0; i < count && !result; i++)
        result = tli_vk_read_time(b, first + i, "tl_vk_read_times", &ns[i]);
    for (i = 0; i < count && result; i++) ns[i] = 0;
    return result;
}

// Time one copy by one path; *least = the shortest time so far.
static tl_result tli_vk_time_copy(tli_vk *b, tl_vk_copy_path path, tl_range to, tl_range from,
                                  uint64_t *least) {
    const char *function = "tl_vk_measure_copies";
    uint64_t start, end;
    tl_result result = tli_vk_write_time(b, b->desc.time_count, function);
    b->desc.copy_path = path;
    if (!result) result = tli_vk_move(b, TLI_VK_OP_COPY, TLI_VK_SHADER_COPY, &to, &from, from.bytes, function);
    if (!result) result = tli_vk_write_time(b, b->desc.time_count + 1, function);
    if (!result) result = tli_vk_read_time(b, b->desc.time_count, function, &start);
    if (!result) result = tli_vk_read_time(b, b->desc.time_count + 1, function, &end);
    if (!result && end - start < *least) *least = end - start;
    return result;
}

TLI_VK_IMPL tl_result tl_vk_measure_copies(const tl_backend *backend, tl_vk_copy_path *path) {
    const char *function = "tl_vk_measure_copies";
    tli_vk *b = tli_vk_self(backend);
    const tl_vk_copy_path before = b->desc.copy_path;
    uint64_t bytes = tli_vk_least((uint64_t)16 << 20, b->desc.chunk_bytes / 2), least[TL_VK_COPY_PATH_COUNT];
    tl_range ranges[2];
    tl_result result;
    int i, kind;
    memset(ranges, 0, sizeof ranges);
    *path = before;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (b->records) return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "backend: it has no queue");
    ranges[0].bytes = ranges[1].bytes = bytes / b->alignment * b->alignment;
    result = tli_vk_add_block(b, TL_TIER_DEVICE, ranges[0].bytes, &ranges[0].block);
    if (!result) result = tli_vk_add_block(b, TL_TIER_DEVICE, ranges[1].bytes, &ranges[1].block);
    for (kind = 0; kind < TL_VK_COPY_PATH_COUNT; kind++) least[kind] = UINT64_MAX;
    for (i = 0; i < 5 && !result; i++)
        for (kind = 0; kind < TL_VK_COPY_PATH_COUNT && !result; kind++)
            result = tli_vk_time_copy(b, (tl_vk_copy_path)kind, ranges[0], ranges[1], &least[kind]);
    for (i = 0; i < 2; i++)
        if (ranges[i].block) (void)tli_vk_free_block(b, ranges[i].block);
    b->desc.copy_path = before;
    if (result) return result;
    b->desc.copy_path = least[TL_VK_COPY_PATH_SHADER] < least[TL_VK_COPY_PATH_COMMAND] ? TL_VK_COPY_PATH_SHADER
                                                                                     : TL_VK_COPY_PATH_COMMAND;
    *path = b->desc.copy_path;
    return TL_OK;
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

