#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// Recording: enqueued operations become commands. Accesses are noted as touches; a barrier is recorded only
// where the next access conflicts with a touch, and operations that are independent share one barrier.
// Works on the batch that is open.

// -- barriers --

static void tli_vk_note_foreign(tli_vk *b, tli_vk_chunk *chunk) {
    chunk->seen = b->serial;
    b->foreign_stages |= chunk->stages;
    b->foreign_access |= chunk->access;
}

// Whether this access needs a barrier, given the accesses recorded since the last one.
static int tli_vk_must_follow(tli_vk *b, const tli_vk_place *place, int writes) {
    tli_vk_chunk *chunk = &b->chunks[place->chunk];
    if (chunk->imported && chunk->stages && chunk->seen != b->serial) {
        tli_vk_note_foreign(b, chunk);
        return 1;
    }
    if (b->all_touched) return 1;
    return tli_vk_follows_accesses(&b->touches, place, writes);
}

static void tli_vk_record_barrier(tli_vk *b, VkPipelineStageFlags stages, VkAccessFlags access) {
    const VkPipelineStageFlags own = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    tli_vk_command barrier;
    memset(&barrier, 0, sizeof barrier);
    barrier.kind = TLI_VK_COMMAND_BARRIER;
    barrier.stages[0] = own | b->foreign_stages;
    barrier.stages[1] = own | stages;
    barrier.access[0] = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | b->foreign_access;
    barrier.access[1] = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                        VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | access;
    tli_vk_record_command(b, &barrier, NULL);
    b->calls.barrier_count++;
    tli_vk_forget_accesses(&b->touches);
    b->all_touched = 0;
    b->foreign_stages = 0;
    b->foreign_access = 0;
}

// Note that a batch writes a place, in case it never runs.
static int tli_vk_note_write(tli_vk *b, tli_vk_batch *batch, const tli_vk_place *place) {
    int32_t since = batch->has_others ? batch->known_writes : 0;
    tli_vk_place *last = batch->write_count > since ? &batch->writes[batch->write_count - 1] : NULL;
    if (last && last->chunk == place->chunk && last->at + last->bytes == place->at) {
        last->bytes += place->bytes;
        return 1;
    }
    if (!tli_vk_grow(b, &batch->writes, &batch->write_capacity, batch->write_count, sizeof *batch->writes))
        return 0;
    batch->writes[batch->write_count++] = *place;
    return 1;
}

// Note an access until the next barrier.
static tl_result tli_vk_touch_place(tli_vk *b, const tli_vk_place *place, int writes, const char *function) {
    if (writes && !tli_vk_note_write(b, tli_vk_batch_of(b, b->serial), place))
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the record of writes");
    if (!b->all_touched && !tli_vk_add_access(&b->touches, place, writes)) b->all_touched = 1;
    return TL_OK;
}

// -- sets that are kept: passes bind the same places again --

static void tli_vk_free_kept(tli_vk *b, tli_vk_kept *kept) {
    if (kept->pool) (b->vk.vkDestroyDescriptorPool)(b->device, kept->pool, b->callbacks);
    tl_free_memory(b->env, kept->sets);
    tl_free_memory(b->env, kept->places);
    memset(kept, 0, sizeof *kept);
}

// Make the table and the pool of a kernel. 0 = it goes without.
static int tli_vk_make_kept(tli_vk *b, const tl_vk_kernel *kernel) {
    tli_vk_kept *kept = kernel->kept;
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo info;
    if (kept->sets) return 1;
    memset(&info, 0, sizeof info);
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = TLI_VK_KEPT_SETS * (uint32_t)kernel->buffer_count;
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = TLI_VK_KEPT_SETS;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    kept->sets = (tli_vk_kept_set *)tl_add_memory(b->env, TLI_VK_KEPT_SETS * sizeof *kept->sets);
    kept->places = (tli_vk_place *)tl_add_memory(b->env, size.descriptorCount * sizeof *kept->places);
    if (kept->sets && kept->places &&
        !(b->vk.vkCreateDescriptorPool)(b->device, &info, b->callbacks, &kept->pool)) {
        b->calls.host_alloc_count += 2;
        return 1;
    }
    kept->pool = VK_NULL_HANDLE;
    tli_vk_free_kept(b, kept);
    return 0;
}

static uint64_t tli_vk_hash_places(const tli_vk_place *places, int32_t count) {
    uint64_t hash = 0;
    int32_t i;
    for (i = 0; i < count; i++) {
        hash = tl_mix_u64(hash, (uint64_t)places[i].chunk);
        hash = tl_mix_u64(hash, places[i].at);
        hash = tl_mix_u64(hash, places[i].bytes);
    }
    return hash;
}

static int tli_vk_same_places(const tli_vk_place *a, const tli_vk_place *b, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++)
        if (a[i].chunk != b[i].chunk || a[i].at != b[i].at || a[i].bytes != b[i].bytes) return 0;
    return 1;
}

// A kept set for the places; *is_bound: 1 = it binds them. One that does not may be written now. 0 = none.
static VkDescriptorSet tli_vk_find_kept(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                                        int *is_bound) {
    uint64_t hash = tli_vk_hash_places(places, kernel->buffer_count);
    tli_vk_kept *kept = kernel->kept;
    int32_t way, index, chosen = -1;
    VkDescriptorSetAllocateInfo info;
    tli_vk_kept_set *found;
    *is_bound = 0;
    if (!tli_vk_make_kept(b, kernel)) return VK_NULL_HANDLE;
    for (way = 0; way < TLI_VK_KEPT_WAYS && !*is_bound; way++) {
        index = (int32_t)((hash + (uint64_t)way) % TLI_VK_KEPT_SETS);
        found = &kept->sets[index];
        if (found->set && found->hash == hash && found->destroyed_count == b->destroyed_count &&
            tli_vk_same_places(kept->places + (size_t)index * (size_t)kernel->buffer_count, places,
                               kernel->buffer_count)) {
            *is_bound = 1;
            chosen = index;
        } else if (chosen < 0 && (!found->set || found->last_use <= b->passed)) {
            chosen = index;
        }
    }
    if (chosen < 0) return VK_NULL_HANDLE;
    found = &kept->sets[chosen];
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = kept->pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &kernel->set_layout;
    if (!found->set && (b->vk.vkAllocateDescriptorSets)(b->device, &info, &found->set)) {
        found->set = VK_NULL_HANDLE;
        return VK_NULL_HANDLE;
    }
    found->hash = hash;
    found->last_use = b->serial;
    found->destroyed_count = b->destroyed_count;
    memcpy(kept->places + (size_t)chosen * (size_t)kernel->buffer_count, places,
           (size_t)kernel->buffer_count * sizeof *places);
    return found->set;
}

// -- recording --

static tl_result tli_vk_add_sets(tli_vk *b, tli_vk_batch *batch, const char *function) {
    VkDescriptorPoolSize size;
    VkDescriptorPoolCreateInfo info;
    tli_vk_sets sets;
    VkResult result;
    if (!tli_vk_grow(b, &batch->sets, &batch->set_capacity, batch->set_count, sizeof *batch->sets))
        return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the table of descriptor pools");
    memset(&sets, 0, sizeof sets);
    memset(&info, 0, sizeof info);
    size.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    size.descriptorCount = TLI_VK_SET_BUFFERS;
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = TLI_VK_SETS;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    result = (b->vk.vkCreateDescriptorPool)(b->device, &info, b->callbacks, &sets.pool);
    if (result) return tli_vk_fail_result(b, function, "vkCreateDescriptorPool", result);
    sets.sets_left = TLI_VK_SETS;
    sets.buffers_left = TLI_VK_SET_BUFFERS;
    batch->sets[batch->set_count++] = sets;
    return TL_OK;
}

static tl_result tli_vk_take_set(tli_vk *b, const tl_vk_kernel *kernel, const char *function,
                                 VkDescriptorSet *set) {
    tli_vk_batch *batch = tli_vk_batch_of(b, b->serial);
    VkDescriptorSetAllocateInfo info;
    tli_vk_sets *sets;
    VkResult result;
    if (batch->set_at < batch->set_count) {
        sets = &batch->sets[batch->set_at];
        if (!sets->sets_left || sets->buffers_left < (uint32_t)kernel->buffer_count) batch->set_at++;
    }
    if (batch->set_at == batch->set_count) {
        tl_result code = tli_vk_add_sets(b, batch, function);
        if (code) return code;
    }
    sets = &batch->sets[batch->set_at];
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = sets->pool;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &kernel->set_layout;
    result = (b->vk.vkAllocateDescriptorSets)(b->device, &info, set);
    if (result) return tli_vk_fail_result(b, function, "vkAllocateDescriptorSets", result);
    sets->sets_left--;
    sets->buffers_left -= (uint32_t)kernel->buffer_count;
    return TL_OK;
}

static void tli_vk_write_set(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                             VkDescriptorSet set) {
    VkDescriptorBufferInfo buffers[TLI_VK_BINDINGS];
    VkWriteDescriptorSet writes[TLI_VK_BINDINGS];
    int32_t i;
    memset(writes, 0, sizeof writes);
    for (i = 0; i < kernel->buffer_count; i++) {
        buffers[i].buffer = b->chunks[places[i].chunk].buffer;
        buffers[i].offset = places[i].at;
        buffers[i].range = tli_vk_align(places[i].bytes, 4);
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = set;
        writes[i].dstBinding = (uint32_t)i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        writes[i].pBufferInfo = &buffers[i];
    }
    (b->vk.vkUpdateDescriptorSets)(b->device, (uint32_t)kernel->buffer_count, writes, 0, NULL);
}

// A set that binds the places: a kept one, or one of the batch.
static tl_result tli_vk_bind_places(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                                    const char *function, VkDescriptorSet *set) {
    int is_bound = 0;
    tl_result result = TL_OK;
    *set = VK_NULL_HANDLE;
    if (!kernel->buffer_count) return TL_OK;
    *set = tli_vk_find_kept(b, kernel, places, &is_bound);
    if (!*set) result = tli_vk_take_set(b, kernel, function, set);
    if (!result && !is_bound) tli_vk_write_set(b, kernel, places, *set);
    return result;
}

// Bind places and dispatch. Barriers are the business of the caller of this function.
static tl_result tli_vk_dispatch(tli_vk *b, const tl_vk_kernel *kernel, const tli_vk_place *places,
                                 const void *push, const uint32_t groups[3], const char *function) {
    tli_vk_command command;
    VkDescriptorSet set = VK_NULL_HANDLE;
    tl_result result = tli_vk_open(b, function);
    if (!result) result = tli_vk_bind_places(b, kernel, places, function, &set);
    if (result) return result;
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_DISPATCH;
    command.kernel = kernel;
    command.set = set;
    memcpy(command.groups, groups, sizeof command.groups);
    command.data_bytes = kernel->push_bytes;
    tli_vk_record_command(b, &command, push);
    b->has_work = 1;
    return TL_OK;
}

// The invocations that the shader of an operation needs for `bytes` bytes of its f32 operand.
static uint64_t tli_vk_invocations(const tli_vk_op *op, uint64_t bytes) {
    uint64_t words = (bytes + 3) / 4;
    switch (op->shader) {
    case TLI_VK_SHADER_COPY: return (words / 4 + 3) / 4;
    case TLI_VK_SHADER_TO_F16:
    case TLI_VK_SHADER_FROM_F16:
    case TLI_VK_SHADER_TO_BF16:
    case TLI_VK_SHADER_FROM_BF16: return (words + 1) / 2;
    case TLI_VK_SHADER_TO_Q8: return (words + 31) / 32;
    case TLI_VK_SHADER_QUANTIZE:
    case TLI_VK_SHADER_DEQUANTIZE: return (words * op->word + 3) / 4;
    case TLI_VK_SHADER_COPY_UINT:
    case TLI_VK_SHADER_FILL:
    case TLI_VK_SHADER_FROM_Q8:
    case TLI_VK_SHADER_MIN_MAX:
    case TLI_VK_SHADER_ADD:
    case TLI_VK_SHADER_CHECKSUM:
    case TLI_VK_SHADER_MIN_MAX_CHANNELS:
    case TLI_VK_SHADER_COUNT: break;
    }
    return words;
}

// The bytes of the other operand that belong to `bytes` bytes of the f32 operand.
static uint64_t tli_vk_other_bytes(const tli_vk_op *op, uint64_t bytes) {
    switch (op->shader) {
    case TLI_VK_SHADER_TO_F16:
    case TLI_VK_SHADER_FROM_F16: return tl_find_codec_bytes(TL_CODEC_F16, bytes);
    case TLI_VK_SHADER_TO_BF16:
    case TLI_VK_SHADER_FROM_BF16: return tl_find_codec_bytes(TL_CODEC_BF16, bytes);
    case TLI_VK_SHADER_TO_Q8:
    case TLI_VK_SHADER_FROM_Q8: return tl_find_codec_bytes(TL_CODEC_Q8, bytes);
    case TLI_VK_SHADER_QUANTIZE:
    case TLI_VK_SHADER_DEQUANTIZE: return bytes / 4 * op->word;
    case TLI_VK_SHADER_COPY:
    case TLI_VK_SHADER_COPY_UINT:
    case TLI_VK_SHADER_FILL:
    case TLI_VK_SHADER_MIN_MAX:
    case TLI_VK_SHADER_ADD:
    case TLI_VK_SHADER_CHECKSUM:
    case TLI_VK_SHADER_MIN_MAX_CHANNELS:
    case TLI_VK_SHADER_COUNT: break;
    }
    return bytes;
}

static int tli_vk_expands(tli_vk_shader shader) {
    return shader == TLI_VK_SHADER_FROM_F16 || shader == TLI_VK_SHADER_FROM_BF16 ||
           shader == TLI_VK_SHADER_FROM_Q8 || shader == TLI_VK_SHADER_DEQUANTIZE;
}

static int tli_vk_quantizes(tli_vk_shader shader) {
    return shader == TLI_VK_SHADER_QUANTIZE || shader == TLI_VK_SHADER_DEQUANTIZE;
}

static int tli_vk_knows_channels(tli_vk_shader shader) {
    return tli_vk_quantizes(shader) || shader == TLI_VK_SHADER_MIN_MAX_CHANNELS;
}

static int tli_vk_reduces(tli_vk_shader shader) {
    return shader == TLI_VK_SHADER_MIN_MAX || shader == TLI_VK_SHADER_CHECKSUM ||
           shader == TLI_VK_SHADER_MIN_MAX_CHANNELS;
}

// How many slices min_max_channels makes of each channel. A slice is the task of one group, or of one
// invocation where inner_count is less than a group has invocations. There should be about as many tasks as
// min_max has groups or invocations, and each should read several elements.
static uint32_t tli_vk_find_slices(const tli_vk *b, const tli_vk_op *op, uint32_t count) {
    uint64_t size = b->desc.workgroup_size, tasks = (count + 8 * size - 1) / (8 * size);
    uint64_t of_period = op->channel_count;
    if (op->inner_count < size) {
        tasks *= size;
        of_period *= op->inner_count;
    }
    return tasks < of_period ? 1 : (uint32_t)(tasks / of_period);
}

// Record one dispatch of a built-in shader whose operands fit a descriptor each.
static tl_result tli_vk_record_piece(tli_vk *b, const tli_vk_op *op, uint64_t bytes, const char *function) {
    uint64_t groups = (tli_vk_invocations(op, bytes) + b->desc.workgroup_size - 1) / b->desc.workgroup_size;
    uint64_t across;
    uint32_t push[6], size[3];
    tli_vk_place places[3];
    tl_result result;
    places[0] = op->to;
    places[1] = op->from;
    places[2] = op->quantizations;
    // Each group of a reduction ends in atomics: take fewer groups and several words an invocation.
    if (tli_vk_reduces(op->shader)) groups = tli_vk_least((groups + 7) / 8, 4096);
    across = tli_vk_least(groups, b->device_limits.maxComputeWorkGroupCount[0]);
    push[0] = (uint32_t)((bytes + 3) / 4);
    if (op->shader == TLI_VK_SHADER_COPY) push[0] = (uint32_t)(bytes / 16);
    push[1] = op->word;
    push[2] = (uint32_t)(bytes % 4);
    if (op->shader == TLI_VK_SHADER_MIN_MAX_CHANNELS) push[1] = tli_vk_find_slices(b, op, push[0]);
    push[3] = op->channel_count;
    push[4] = op->inner_count;
    push[5] = 0;
    if (op->channel_count) push[5] = (uint32_t)(op->first % ((uint64_t)op->channel_count * op->inner_count));
    size[0] = (uint32_t)across;
    size[1] = (uint32_t)((groups + across - 1) / across);
    size[2] = 1;
    if (size[1] > b->device_limits.maxComputeWorkGroupCount[1])
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "range: needs more groups than the device takes");
    result = tli_vk_dispatch(b, b->shaders[op->shader], places, push, size, function);
    if (!result) b->calls.dispatch_count++;
    return result;
}

// The part of an operation that begins at `done` and has `bytes` bytes, both of its f32 operand. A reduction
// keeps its target; a checksum needs the index of its first word.
static tli_vk_op tli_vk_part_of(const tli_vk_op *op, uint64_t done, uint64_t bytes) {
    int converts = op->kind == TLI_VK_OP_SHADER, expands = converts && tli_vk_expands(op->shader);
    uint64_t other_done = converts ? tli_vk_other_bytes(op, done) : done;
    uint64_t other_bytes = converts ? tli_vk_other_bytes(op, bytes) : bytes;
    tli_vk_op part = *op;
    part.from.at += expands ? other_done : done;
    part.from.bytes = expands ? other_bytes : bytes;
    part.first += done / 4;
    if (converts && op->shader == TLI_VK_SHADER_CHECKSUM) part.word += (uint32_t)(done / 4);
    if (converts && tli_vk_reduces(op->shader)) return part;
    part.to.at += expands ? done : other_done;
    part.to.bytes = expands ? bytes : other_bytes;
    return part;
}

// The bytes of the f32 operand of a whole operation.
static uint64_t tli_vk_whole_bytes(const tli_vk_op *op) {
    int shades = op->kind == TLI_VK_OP_SHADER;
    int fills = op->kind == TLI_VK_OP_FILL || (shades && op->shader == TLI_VK_SHADER_FILL);
    return fills || (shades && tli_vk_expands(op->shader)) ? op->to.bytes : op->from.bytes;
}

// Record a shader over whole places, in parts that fit a descriptor. On error *op is the part that is not
// recorded yet, because a sum must not be added twice.
static tl_result tli_vk_record_shader(tli_vk *b, tli_vk_op *op, const char *function) {
    const tli_vk_op all = *op;
    uint64_t whole = tli_vk_whole_bytes(op), done, bytes;
    tl_result result;
    for (done = 0; done < whole; done += bytes) {
        tli_vk_op part;
        bytes = tli_vk_least(whole - done, b->range_bytes);
        part = tli_vk_part_of(&all, done, bytes);
        result = tli_vk_record_piece(b, &part, bytes, function);
        if (result) return result;
        *op = tli_vk_part_of(&all, done + bytes, whole - done - bytes);
    }
    return TL_OK;
}

// Whether a copy or fill is done by a shader: large ones inside the device tier, where copy_path says so.
static int tli_vk_goes_by_shader(const tli_vk *b, const tli_vk_op *op) {
    return op->kind != TLI_VK_OP_SHADER && b->desc.copy_path == TL_VK_COPY_PATH_SHADER &&
           op->to.bytes >= TLI_VK_SHADER_COPY_BYTES && b->chunks[op->to.chunk].tier == TL_TIER_DEVICE &&
           (op->kind == TLI_VK_OP_FILL || b->chunks[op->from.chunk].tier == TL_TIER_DEVICE);
}

// Copy or fill by shader. A copy moves 64 bytes an invocation up to the last aligned offset, then single words.
static tl_result tli_vk_record_move(tli_vk *b, const tli_vk_op *op, const char *function) {
    uint64_t bulk = op->to.bytes / b->alignment * b->alignment;
    tli_vk_op part = *op;
    tl_result result;
    part.kind = TLI_VK_OP_SHADER;
    part.shader = TLI_VK_SHADER_FILL;
    if (op->kind == TLI_VK_OP_FILL) return tli_vk_record_shader(b, &part, function);
    part.shader = TLI_VK_SHADER_COPY;
    part.to.bytes = part.from.bytes = bulk;
    result = tli_vk_record_shader(b, &part, function);
    part.shader = TLI_VK_SHADER_COPY_UINT;
    part.to.at = op->to.at + bulk;
    part.from.at = op->from.at + bulk;
    part.to.bytes = part.from.bytes = op->to.bytes - bulk;
    return result ? result : tli_vk_record_shader(b, &part, function);
}

// Record the copies at the start of ops[count] that have both buffers in common, as one command; *taken = how
// many.
static void tli_vk_record_copies(tli_vk *b, const tli_vk_op *ops, int32_t count, int32_t *taken) {
    VkBufferCopy regions[TLI_VK_REGION_CAPACITY];
    tli_vk_command command;
    int32_t n = 0;
    while (n < count && n < TLI_VK_REGION_CAPACITY && ops[n].kind == TLI_VK_OP_COPY &&
           ops[n].to.chunk == ops[0].to.chunk && ops[n].from.chunk == ops[0].from.chunk &&
           !tli_vk_goes_by_shader(b, &ops[n])) {
        regions[n].srcOffset = ops[n].from.at;
        regions[n].dstOffset = ops[n].to.at;
        regions[n].size = ops[n].to.bytes;
        n++;
    }
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_COPY;
    command.from = b->chunks[ops[0].from.chunk].buffer;
    command.to = b->chunks[ops[0].to.chunk].buffer;
    command.count = (uint32_t)n;
    command.data_bytes = (uint64_t)n * sizeof *regions;
    tli_vk_record_command(b, &command, regions);
    b->calls.copy_count++;
    *taken = n;
}

static void tli_vk_record_fill(tli_vk *b, const tli_vk_op *op) {
    tli_vk_command command;
    memset(&command, 0, sizeof command);
    command.kind = TLI_VK_COMMAND_FILL;
    command.to = b->chunks[op->to.chunk].buffer;
    command.at = op->to.at;
    command.bytes = tli_vk_align(op->to.bytes, 4);
    command.word = op->word;
    tli_vk_record_command(b, &command, NULL);
    b->calls.fill_count++;
}

// Record the first of `count` independent operations, or several by one command; *taken = how many.
static tl_result tli_vk_record_ops(tli_vk *b, tli_vk_op *ops, int32_t count, const char *function,
                                   int32_t *taken) {
    tl_result result = TL_OK;
    *taken = 1;
    if (tli_vk_goes_by_shader(b, ops)) {
        result = tli_vk_record_move(b, ops, function);
    } else if (ops->kind == TLI_VK_OP_COPY) {
        tli_vk_record_copies(b, ops, count, taken);
    } else if (ops->kind == TLI_VK_OP_FILL) {
        tli_vk_record_fill(b, ops);
    } else {
        result = tli_vk_record_shader(b, ops, function);
    }
    if (!result) b->has_work = 1;
    return result;
}

static int tli_vk_op_must_follow(tli_vk *b, const tli_vk_op *op) {
    int follows = tli_vk_must_follow(b, &op->to, 1);
    if (op->kind != TLI_VK_OP_FILL && tli_vk_must_follow(b, &op->from, 0)) follows = 1;
    return follows;
}

// The end of the operations from `at` on that are independent of each other and so share one barrier.
static int32_t tli_vk_group_end(tli_vk *b, int32_t at) {
    int32_t end;
    tli_vk_forget_accesses(&b->group);
    for (end = at; end < b->op_count; end++) {
        const tli_vk_op *op = &b->ops[end];
        int reads = op->kind != TLI_VK_OP_FILL;
        if (tli_vk_follows_accesses(&b->group, &op->to, 1)) break;
        if (reads && tli_vk_follows_accesses(&b->group, &op->from, 0)) break;
        (void)tli_vk_add_access(&b->group, &op->to, 1);     // there is room for all operations
        if (reads) (void)tli_vk_add_access(&b->group, &op->from, 0);
    }
    return end;
}

// Note the accesses of b->ops[from .. end), which are those of the group.
static tl_result tli_vk_touch_group(tli_vk *b, int32_t from, int32_t end, const char *function) {
    int is_first = !b->touches.reads.count && !b->touches.writes.count && !b->all_touched;
    int32_t i;
    for (i = from; i < end; i++) {
        const tli_vk_op *op = &b->ops[i];
        if (!tli_vk_note_write(b, tli_vk_batch_of(b, b->serial), &op->to))
            return tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the record of writes");
        if (is_first || b->all_touched) continue;
        if (!tli_vk_add_access(&b->touches, &op->to, 1) ||
            (op->kind != TLI_VK_OP_FILL && !tli_vk_add_access(&b->touches, &op->from, 0))) b->all_touched = 1;
    }
    if (!is_first) return TL_OK;
    tli_vk_copy_index(&b->group.reads, &b->touches.reads);
    tli_vk_copy_index(&b->group.writes, &b->touches.writes);
    return TL_OK;
}

static void tli_vk_remove_ops(tli_vk *b, int32_t count) {
    int32_t i;
    b->op_count -= count;
    for (i = 0; i < b->op_count; i++) b->ops[i] = b->ops[i + count];
}

// Record all enqueued operations: one group of independent ones after the other, each behind a barrier where
// it needs one. On error those that are not recorded stay enqueued.
static tl_result tli_vk_flush(tli_vk *b, const char *function) {
    int32_t done = 0;
    tl_result result = b->op_count ? tli_vk_open(b, function) : TL_OK;
    while (!result && done < b->op_count) {
        int32_t end = tli_vk_group_end(b, done), i, follows = 0, taken;
        for (i = done; i < end; i++) follows |= tli_vk_op_must_follow(b, &b->ops[i]);
        if (follows) tli_vk_record_barrier(b, 0, 0);
        result = tli_vk_touch_group(b, done, end, function);
        // A move that fails half way is later recorded again from its start, which copies the same bytes.
        while (!result && done < end) {
            result = tli_vk_record_ops(b, &b->ops[done], end - done, function, &taken);
            if (!result) done += taken;
        }
    }
    tli_vk_remove_ops(b, done);
    return result;
}

// Record what is enqueued, then a barrier: the host, and the caller through imported buffers, will see it.
static tl_result tli_vk_complete(tli_vk *b, const char *function) {
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_HOST_BIT;
    VkAccessFlags access = VK_ACCESS_HOST_READ_BIT;
    tl_result result = tli_vk_flush(b, function);
    int32_t i;
    if (result || !b->open) return result;
    for (i = 0; i < b->chunk_count; i++) {
        const tli_vk_chunk *chunk = &b->chunks[i];
        if (!chunk->alive || !chunk->imported || chunk->last_use != b->serial) continue;
        stages |= chunk->stages;
        access |= chunk->access;
    }
    tli_vk_record_barrier(b, stages, access);
    return TL_OK;
}

static tl_result tli_vk_submit_work(tli_vk *b, const char *function) {
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (b->open >= TLI_VK_ENDED) {
        result = tli_vk_hand_over(b, function);
        if (result) return result;
    }
    if (!b->has_work) return TL_OK;
    if (b->owes_batch && (result = tli_vk_open(b, function)) != TL_OK) return result;
    result = tli_vk_complete(b, function);
    if (result || !b->open) return result;
    result = tli_vk_end_commands(b, function);
    if (result) return result;
    return tli_vk_hand_over(b, function);
}

// Wait until the batches up to a serial have finished; submit the open one if it is among them.
static tl_result tli_vk_reach(tli_vk *b, uint64_t serial, const char *function) {
    tl_result result;
    if (serial <= b->passed) return TL_OK;
    if ((result = tli_vk_look(b, function)) != TL_OK || serial <= b->passed) return result;
    if (b->records) return tli_vk_fail(b, TL_NOT_READY, function, "the frame was not retired yet");
    if (serial == b->serial) result = tli_vk_submit_work(b, function);
    if (!result && serial == b->serial) return TL_OK;  // there was no work
    return result ? result : tli_vk_wait_batch(b, serial, 1, function);
}

// -- enqueueing --

// A block of a caller's buffer was written: reads that are pending through its other blocks are outdated.
static void tli_vk_outdate_reads(tli_vk *b, const tli_vk_block *block) {
    const tli_vk_place whole = tli_vk_whole_place(block);
    int32_t i;
    for (i = 0; i < b->mapping_count; i++)
        if (b->mappings[i].is_pending && tli_vk_meet(&b->mappings[i].place, &whole))
            b->mappings[i].writes = UINT64_MAX;
}

static void tli_vk_note_use(tli_vk *b, uint64_t handle, int writes) {  // handle 0 = staging, or nothing
    tli_vk_block *block;
    if (!handle) return;
    block = &b->blocks[(handle & 0xFFFFFFFFu) - 1];
    block->last_use = b->chunks[block->chunk].last_use = b->serial;
    if (!writes) return;
    block->last_write = b->serial;
    block->writes++;
    if (b->chunks[block->chunk].imported) tli_vk_outdate_reads(b, block);
}

// -- copies between the tiers --

static int tli_vk_is_transfer(const tli_vk *b, const tli_vk_op *op) {
    return b->link_count && op->kind == TLI_VK_OP_COPY && !b->chunks[op->to.chunk].imported &&
           !b->chunks[op->from.chunk].imported &&
           b->chunks[op->to.chunk].tier != b->chunks[op->from.chunk].tier;
}

// Values of the links' timelines that must be reached; 0 = none.
typedef struct tli_vk_needs { uint64_t values[2]; } tli_vk_needs;

// Add what an access of a place must wait for: transfers that write there, and where it writes itself all.
// Reads that have finished are forgotten on the way; what was written becomes visible only by a wait.
static void tli_vk_find_needs(tli_vk *b, const tli_vk_place *place, int writes, tli_vk_needs *needs) {
    int32_t i;
    for (i = b->away_count - 1; i >= 0; i--) {
        const tli_vk_away *away = &b->away[i];
        if (!away->writes && away->value <= b->links[away->link].passed) b->away[i] = b->away[--b->away_count];
        else if ((writes || away->writes) && away->value > needs->values[away->link] &&
                 tli_vk_meet(&away->place, place))
            needs->values[away->link] = away->value;
    }
}

// Note a place of a transfer. There is room for it. Who waits for one that writes waits for those that it
// followed.
static void tli_vk_add_away(tli_vk *b, const tli_vk_place *place, const tli_vk_transfer *transfer, int writes) {
    tli_vk_away *away;
    int32_t i;
    for (i = b->away_count - 1; i >= 0 && writes; i--) {
        const tli_vk_place *old = &b->away[i].place;
        uint64_t end = place->at + place->bytes;
        if (old->chunk == place->chunk && old->at >= place->at && old->at + old->bytes <= end)
            b->away[i] = b->away[--b->away_count];
    }
    away = &b->away[b->away_count++];
    away->place = *place;
    away->value = transfer->value;
    away->link = transfer->link;
    away->writes = writes;
}

// Record the commands of a transfer. follows: 1 = behind those before it on the same link.
static tl_result tli_vk_record_transfer(tli_vk *b, const tli_vk_transfer *transfer, const tli_vk_op *op,
                                        int follows, const char *function) {
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier barrier;
    VkBufferCopy region;
    VkResult result;
    tl_result code = tli_vk_start_commands(b, transfer->pool, transfer->commands, function);
    if (code) return code;
    memset(&barrier, 0, sizeof barrier);
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    if (follows)
        (b->vk.vkCmdPipelineBarrier)(transfer->commands, stage, stage, 0, 1, &barrier, 0, NULL, 0, NULL);
    region.srcOffset = op->from.at;
    region.dstOffset = op->to.at;
    region.size = op->to.bytes;
    (b->vk.vkCmdCopyBuffer)(transfer->commands, b->chunks[op->from.chunk].buffer,
                          b->chunks[op->to.chunk].buffer, 1, &region);
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    (b->vk.vkCmdPipelineBarrier)(transfer->commands, stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL,
                               0, NULL);
    b->calls.barrier_count += follows ? 2 : 1;
    result = (b->vk.vkEndCommandBuffer)(transfer->commands);
    return result ? tli_vk_fail_result(b, function, "vkEndCommandBuffer", result) : TL_OK;
}

// Copy between the tiers on a link, after all work that was enqueued so far. That is submitted, so that the
// copy can begin; the copy itself is handed over before the next commands are recorded.
static tl_result tli_vk_transfer_by_link(tli_vk *b, const tli_vk_op *op, uint64_t to, uint64_t from,
                                         const char *function) {
    int32_t link = b->link_count > 1 && b->chunks[op->to.chunk].tier == TL_TIER_DEVICE, i;
    tli_vk_needs needs = { { 0, 0 } };
    tli_vk_transfer *transfer = NULL;
    tl_result result = b->open || b->op_count ? tli_vk_submit_work(b, function) : TL_OK;
    if (!result) result = tli_vk_take_transfer(b, function, &transfer);
    for (i = 0; i < 2 && !result; i++)
        if (!tli_vk_grow(b, &b->away, &b->away_capacity, b->away_count + i, sizeof *b->away))
            result = tli_vk_fail(b, TL_ERROR_NO_MEMORY, function, "no memory for the copy");
    if (result) return result;
    transfer->link = link;
    transfer->value = b->links[link].made + 1;
    transfer->after = b->serial - 1;
    tli_vk_find_needs(b, &op->to, 1, &needs);
    tli_vk_find_needs(b, &op->from, 0, &needs);
    transfer->other_value = needs.values[1 - link];
    transfer->serial = b->serial;
    result = tli_vk_record_transfer(b, transfer, op, needs.values[link] != 0, function);
    if (result) return result;
    b->links[link].made++;
    b->transfer_made++;
    b->calls.copy_count++;
    tli_vk_add_away(b, &op->to, transfer, 1);
    tli_vk_add_away(b, &op->from, transfer, 0);
    b->has_work = b->owes_batch = 1;
    if (b->lost_count) tli_vk_forget_lost(b, &op->to);
    b->chunks[op->to.chunk].last_use = b->chunks[op->from.chunk].last_use = b->serial;
    tli_vk_note_use(b, to, 1);
    tli_vk_note_use(b, from, 0);
    return TL_OK;
}

// Let the batch that takes the next commands wait for the links, on the device. Work recorded so far is
// submitted first, so that it does not wait.
static tl_result tli_vk_wait_for_links(tli_vk *b, const tli_vk_needs *needs, const char *function) {
    const uint64_t *waits = b->open == TLI_VK_OPEN ? tli_vk_batch_of(b, b->serial)->waits_for : NULL;
    uint64_t *waits_for;
    tl_result result = TL_OK;
    int32_t i;
    if (waits && waits[0] >= needs->values[0] && waits[1] >= needs->values[1]) return TL_OK;
    if (!needs->values[0] && !needs->values[1]) return TL_OK;
    if (b->open || b->op_count) result = tli_vk_submit_work(b, function);
    if (!result) result = tli_vk_open(b, function);
    if (result) return result;
    b->has_work = 1;
    waits_for = tli_vk_batch_of(b, b->serial)->waits_for;
    for (i = 0; i < 2; i++) waits_for[i] = needs->values[i];
    for (i = b->away_count - 1; i >= 0; i--)    // all work of the queue follows those from here on
        if (b->away[i].value <= waits_for[b->away[i].link]) b->away[i] = b->away[--b->away_count];
    return TL_OK;
}

// -- built-in shaders, each made by the first operation that needs it --

typedef struct tli_vk_words { const uint32_t *words; size_t count; } tli_vk_words;

static tli_vk_words tli_vk_words_of(int shader);  // [5]

static tl_result tli_vk_make_shader(tli_vk *b, tli_vk_shader shader) {
    tl_vk_kernel_desc desc;
    tl_backend backend;
    if (b->shaders[shader]) return TL_OK;
    memset(&backend, 0, sizeof backend);
    memset(&desc, 0, sizeof desc);
    backend.self = b;
    desc.words = tli_vk_words_of((int)shader).words;
    desc.word_count = tli_vk_words_of((int)shader).count;
    desc.buffer_count = shader == TLI_VK_SHADER_FILL ? 1 : tli_vk_quantizes(shader) ? 3 : 2;
    desc.push_bytes = tli_vk_knows_channels(shader) ? 24 : 12;
    desc.constants = &b->desc.workgroup_size;
    desc.constant_count = 1;
    return tl_vk_init_kernel(&backend, &desc, &b->shaders[shader]);
}

// Have the shaders by which an operation will be recorded.
static tl_result tli_vk_make_shaders_of(tli_vk *b, const tli_vk_op *op) {
    tl_result result;
    if (op->kind == TLI_VK_OP_SHADER) return tli_vk_make_shader(b, op->shader);
    if (!tli_vk_goes_by_shader(b, op)) return TL_OK;
    if (op->kind == TLI_VK_OP_FILL) return tli_vk_make_shader(b, TLI_VK_SHADER_FILL);
    result = tli_vk_make_shader(b, TLI_VK_SHADER_COPY);
    return result ? result : tli_vk_make_shader(b, TLI_VK_SHADER_COPY_UINT);
}

// Enqueue an operation; to and from are handles of the blocks, 0 = staging.
static tl_result tli_vk_enqueue(tli_vk *b, const tli_vk_op *op, uint64_t to, uint64_t from,
                                const char *function) {
    uint64_t bytes = op->kind == TLI_VK_OP_FILL ? op->to.bytes : op->from.bytes;
    tli_vk_needs needs = { { 0, 0 } };
    tl_result result;
    if (op->kind != TLI_VK_OP_FILL && b->lost_count && tli_vk_is_lost(b, &op->from))
        return tli_vk_fail_stale(b, function, "range");
    if ((result = tli_vk_make_shaders_of(b, op)) != TL_OK) return result;
    if (b->open >= TLI_VK_ENDED && (result = tli_vk_hand_over(b, function)) != TL_OK) return result;
    if (to && from && tli_vk_is_transfer(b, op)) return tli_vk_transfer_by_link(b, op, to, from, function);
    if (b->away_count) tli_vk_find_needs(b, &op->to, 1, &needs);
    if (b->away_count && op->kind != TLI_VK_OP_FILL) tli_vk_find_needs(b, &op->from, 0, &needs);
    result = tli_vk_wait_for_links(b, &needs, function);
    if (result) return result;
    if (!b->records && b->calls.recorded_bytes && b->calls.recorded_bytes + bytes > b->desc.submit_bytes &&
        (result = tli_vk_submit_work(b, function)) != TL_OK)
        return result;
    if (b->op_count == TLI_VK_OP_CAPACITY && (result = tli_vk_flush(b, function)) != TL_OK) return result;
    b->ops[b->op_count++] = *op;
    b->has_work = 1;
    b->calls.recorded_bytes += bytes;
    if (b->lost_count) tli_vk_forget_lost(b, &op->to);
    b->chunks[op->to.chunk].last_use = b->serial;
    if (op->kind != TLI_VK_OP_FILL) b->chunks[op->from.chunk].last_use = b->serial;
    tli_vk_note_use(b, to, 1);
    tli_vk_note_use(b, from, 0);
    return TL_OK;
}

// Enqueue a move. With a queue of its own the backend cuts it into pieces of submit_bytes, so that no submit
// runs for seconds.
static tl_result tli_vk_enqueue_move(tli_vk *b, const tli_vk_op *op, uint64_t to, uint64_t from,
                                     const char *function) {
    uint64_t whole = tli_vk_whole_bytes(op), piece = b->records ? UINT64_MAX : b->desc.submit_bytes, done;
    tl_result result = TL_OK;
    if (whole <= piece) return tli_vk_enqueue(b, op, to, from, function);
    for (done = 0; done < whole && !result; done += piece) {
        tli_vk_op part = tli_vk_part_of(op, done, tli_vk_least(piece, whole - done));
        result = tli_vk_enqueue(b, &part, to, from, function);
    }
    return result;
}

static int tli_vk_overlap(const tl_range *a, const tl_range *b) {
    return a->bytes && b->bytes && a->block == b->block && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

// Check the ranges of a copy, conversion, sum or reduction and enqueue it.
//
//   op         all but its places is set
//   expected   bytes that `to` must have
static tl_result tli_vk_move_by(tli_vk *b, tli_vk_op *op, const tl_range *to, const tl_range *from,
                                uint64_t expected, const char *function) {
    tl_result result = TL_OK;
    tli_vk_block *target, *source;
    if (to->bytes != expected)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    if (!from->bytes) return TL_OK;
    target = tli_vk_find_range(b, to, function, &result);
    source = target ? tli_vk_find_range(b, from, function, &result) : NULL;
    if (!source) return result;
    op->to = tli_vk_place_of(target, to);
    op->from = tli_vk_place_of(source, from);
    if (tli_vk_overlap(to, from) || tli_vk_meet(&op->to, &op->from))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    return tli_vk_enqueue_move(b, op, to->block, from->block, function);
}

static tl_result tli_vk_move(tli_vk *b, tli_vk_op_kind kind, tli_vk_shader shader, const tl_range *to,
                             const tl_range *from, uint64_t expected, const char *function) {
    tli_vk_op op;
    memset(&op, 0, sizeof op);
    op.kind = kind;
    op.shader = shader;
    return tli_vk_move_by(b, &op, to, from, expected, function);
}

static tl_result tli_vk_copy(void *self, tl_range to, tl_range from) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = b->lost ? tli_vk_fail_lost(b, "copy") : TL_OK;
    if (!result) result = tli_vk_move(b, TLI_VK_OP_COPY, TLI_VK_SHADER_COPY, &to, &from, from.bytes, "copy");
    if (result) return result;
    b->counters.copy_count++;
    b->counters.copied_bytes += from.bytes;
    return TL_OK;
}

static tl_result tli_vk_convert(tli_vk *b, tl_codec codec, tli_vk_shader first, int expands, tl_range to,
                                tl_range from, const char *function) {
    uint64_t plain = expands ? to.bytes : from.bytes, packed = tl_find_codec_bytes(codec, plain);
    tli_vk_shader shader;
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if ((int)codec <= TL_CODEC_NONE || (int)codec >= TL_CODEC_COUNT)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "codec: none or unknown");
    if (expands && from.bytes != packed)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    shader = (tli_vk_shader)((int)first + 2 * ((int)codec - (int)TL_CODEC_F16));
    result = tli_vk_move(b, TLI_VK_OP_SHADER, shader, &to, &from, expands ? to.bytes : packed, function);
    if (result) return result;
    b->counters.convert_count++;
    b->counters.copied_bytes += from.bytes;
    return TL_OK;
}

static tl_result tli_vk_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_vk_convert((tli_vk *)self, codec, TLI_VK_SHADER_TO_F16, 0, to, from, "compress");
}

static tl_result tli_vk_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    return tli_vk_convert((tli_vk *)self, codec, TLI_VK_SHADER_FROM_F16, 1, to, from, "expand");
}

static tl_result tli_vk_fill(void *self, tl_range to, uint32_t word) {
    tli_vk *b = (tli_vk *)self;
    tl_result result = TL_OK;
    tli_vk_block *block;
    tli_vk_op op;
    if (b->lost) return tli_vk_fail_lost(b, "fill");
    if (!to.bytes) {
        b->counters.fill_count++;
        return TL_OK;
    }
    block = tli_vk_find_range(b, &to, "fill", &result);
    if (!block) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_FILL;
    op.to = tli_vk_place_of(block, &to);
    op.word = word;
    result = tli_vk_enqueue(b, &op, to.block, 0, "fill");
    if (!result) b->counters.fill_count++;
    return result;
}

// Check the ranges of a kernel and wait for their transfers, on the device; *bytes = their sum.
static tl_result tli_vk_check_accesses(tli_vk *b, const tl_access *accesses, int32_t count,
                                       const char *function, uint64_t *bytes) {
    tli_vk_needs needs = { { 0, 0 } };
    tl_result result = TL_OK;
    int32_t i;
    *bytes = 0;
    for (i = 0; i < count; i++) {
        tli_vk_block *block;
        tli_vk_place place;
        if (!accesses[i].range.bytes) continue;
        block = tli_vk_find_range(b, &accesses[i].range, function, &result);
        if (!block) return result;
        place = tli_vk_place_of(block, &accesses[i].range);
        if (b->lost_count && tli_vk_is_lost(b, &place))
            return tli_vk_fail_stale(b, function, "range");
        *bytes += accesses[i].range.bytes;
        if (b->away_count) tli_vk_find_needs(b, &place, accesses[i].writes, &needs);
    }
    return tli_vk_wait_for_links(b, &needs, function);
}

static void tli_vk_promise_access(tli_vk *b, const tl_access *access) {
    tli_vk_promise *promise = &b->promises[b->promise_count++ % TLI_VK_TOUCH_CAPACITY];
    promise->handle = access->range.block;
    promise->place = tli_vk_place_of(&b->blocks[(promise->handle & 0xFFFFFFFFu) - 1], &access->range);
    promise->writes = access->writes;
}

// Touch again what was announced and is not recorded yet: a barrier removes all touches, but the commands of
// the caller come after it.
static tl_result tli_vk_touch_open_promises(tli_vk *b, const char *function) {
    uint64_t open = tli_vk_least(b->promise_count - b->kept_count, TLI_VK_TOUCH_CAPACITY), i;
    tl_result result = TL_OK;
    for (i = b->promise_count - open; i < b->promise_count && !result; i++) {
        const tli_vk_promise *promise = &b->promises[i % TLI_VK_TOUCH_CAPACITY];
        result = tli_vk_touch_place(b, &promise->place, promise->writes, function);
    }
    return result;
}

// Order, in the frame that is now open, the accesses that were announced before it was.
static tl_result tli_vk_order_early(tli_vk *b, const char *function) {
    uint64_t count = tli_vk_least(b->early_count, TLI_VK_TOUCH_CAPACITY), i;
    tl_result result = count ? tli_vk_flush(b, function) : TL_OK;
    if (result || !count) return result;
    tli_vk_record_barrier(b, 0, 0);
    for (i = b->promise_count - count; i < b->promise_count && !result; i++) {
        const tli_vk_promise *promise = &b->promises[i % TLI_VK_TOUCH_CAPACITY];
        if (!tli_vk_is_block(b, promise->handle)) continue;  // freed since
        result = tli_vk_touch_place(b, &promise->place, promise->writes, function);
        tli_vk_note_use(b, promise->handle, promise->writes);
    }
    if (!result) b->early_count = 0;
    return result;
}

// Touch a place that a kernel accesses now. It was touched when it was announced, but a barrier for other work
// may have come since.
static tl_result tli_vk_touch_promised(tli_vk *b, const tli_vk_place *place, uint64_t handle,
                                       const char *function) {
    uint64_t oldest = b->promise_count - tli_vk_least(b->promise_count, TLI_VK_TOUCH_CAPACITY), i;
    int writes = 1;  // not announced: it may write
    for (i = b->promise_count; i > oldest; i--) {
        const tli_vk_promise *promise = &b->promises[(i - 1) % TLI_VK_TOUCH_CAPACITY];
        if (!tli_vk_meet(&promise->place, place)) continue;
        writes = promise->writes;
        break;
    }
    tli_vk_note_use(b, handle, writes);
    return tli_vk_touch_place(b, place, writes, function);
}

static tl_result tli_vk_order_stages(tli_vk *b, const tl_access *accesses, int32_t count,
                                     VkPipelineStageFlags stages, VkAccessFlags access, const char *function) {
    uint64_t bytes;
    int32_t i, follows = stages != 0;
    tl_result result;
    if (b->lost) return tli_vk_fail_lost(b, function);
    result = tli_vk_check_accesses(b, accesses, count, function, &bytes);
    if (result) return result;
    for (i = 0; i < count; i++) {
        if (!accesses[i].range.bytes) continue;
        tli_vk_promise_access(b, &accesses[i]);
        b->early_count += b->records && !b->open;
    }
    if (b->records && !b->open) return TL_OK;  // nothing is recorded before the next frame opens
    if (!b->records && b->calls.recorded_bytes && b->calls.recorded_bytes + bytes > b->desc.submit_bytes)
        result = tli_vk_submit_work(b, function);
    if (!result) result = tli_vk_open(b, function);
    if (!result) result = tli_vk_flush(b, function);
    if (result) return result;
    for (i = 0; i < count; i++) {
        tli_vk_place place;
        if (!accesses[i].range.bytes) continue;
        place = tli_vk_place_of(&b->blocks[(accesses[i].range.block & 0xFFFFFFFFu) - 1], &accesses[i].range);
        follows |= tli_vk_must_follow(b, &place, accesses[i].writes);
    }
    if (follows) tli_vk_record_barrier(b, stages, access);
    b->foreign_stages |= stages;  // the next barrier waits for what the caller records now
    b->foreign_access |= access;
    for (i = 0; i < count && !result; i++) {
        tli_vk_place place;
        if (!accesses[i].range.bytes) continue;
        place = tli_vk_place_of(&b->blocks[(accesses[i].range.block & 0xFFFFFFFFu) - 1], &accesses[i].range);
        result = tli_vk_touch_place(b, &place, accesses[i].writes, function);
        tli_vk_note_use(b, accesses[i].range.block, accesses[i].writes);
    }
    b->calls.recorded_bytes += bytes;
    b->has_work = 1;
    return result;
}

static tl_result tli_vk_order(void *self, const tl_access *accesses, int32_t access_count) {
    return tli_vk_order_stages((tli_vk *)self, accesses, access_count, 0, 0, "order");
}

TLI_VK_IMPL tl_result tl_vk_order(const tl_backend *backend, const tl_access *accesses, int32_t access_count,
                                  VkPipelineStageFlags stages, VkAccessFlags access) {
    return tli_vk_order_stages(tli_vk_self(backend), accesses, access_count, stages, access, "tl_vk_order");
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION

