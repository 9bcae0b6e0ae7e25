#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifdef TL_ONLY_TABLES

// -- the CPU backend of TL_ONLY_TABLES: memory, and nothing else --
//
// Each bank is one block: memory of the caller, of which a run takes the beginning; or bank 0 an allocation.
//
//     bank 0 |=== arena ===|........|    bank 1 |== arena ==|....|
//
// A block's handle is the number of its bank, counted from 1. The functions of tl_backend are
// tli_cpu_add_arena, tli_cpu_free_block and tli_cpu_map.

typedef struct tli_cpu_bank {
    char  *memory;      // aligned; NULL = none yet: an allocation of the env, when a block is added
    size_t bytes;       // of the caller's memory, from there on
    void  *allocation;  // to be released with the block
    int    is_taken;
} tli_cpu_bank;

typedef struct tli_cpu {
    tl_env *env;
    size_t alignment;
    int32_t bank_count;
    tli_cpu_bank banks[1];  // [bank_count]
} tli_cpu;

static size_t tli_cpu_shift(const tli_cpu *cpu, const void *memory) {
    return (0 - (size_t)(uintptr_t)memory) & (cpu->alignment - 1);
}

// Find memory for a block in a bank that is not taken; 0 = there is none.
static int tli_cpu_fill_bank(tli_cpu *cpu, tli_cpu_bank *bank, uint64_t bytes) {
    if (bank->is_taken) return 0;
    if (bank->memory) return bytes <= bank->bytes;
    if (bytes > SIZE_MAX / 4) return 0;
    bank->allocation = tli_alloc(cpu->env, (size_t)bytes + cpu->alignment);
    if (!bank->allocation) return 0;
    bank->memory = (char *)bank->allocation + tli_cpu_shift(cpu, bank->allocation);
    return 1;
}

static tl_result tli_cpu_add_arena(void *self, tl_tier tier, int32_t bank, uint64_t bytes, uint64_t *handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    *handle = 0;
    if (tier != TL_TIER_DEVICE)
        return tli_fail(cpu->env, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_ADD_BLOCK), TLI_RULE(TIER_UNKNOWN));
    if (!tli_is_below(bank, cpu->bank_count))
        return tli_fail(cpu->env, TL_ERROR_INVALID_ARG, TLI_IN(BACKEND_ADD_BLOCK), TLI_RULE(BANK_UNKNOWN));
    if (!tli_cpu_fill_bank(cpu, &cpu->banks[bank], bytes))
        return tli_fail(cpu->env, TL_ERROR_NO_MEMORY, TLI_IN(BACKEND_ADD_BLOCK), TLI_RULE(NO_ROOM_FOR_BLOCK));
    cpu->banks[bank].is_taken = 1;
    *handle = (uint64_t)bank + 1;
    return TL_OK;
}

static tl_result tli_cpu_free_block(void *self, uint64_t handle) {
    tli_cpu *cpu = (tli_cpu *)self;
    tli_cpu_bank *bank = &cpu->banks[handle - 1];
    if (bank->allocation) bank->memory = NULL;
    tli_release(cpu->env, bank->allocation);
    bank->allocation = NULL;
    bank->is_taken = 0;
    return TL_OK;
}

static tl_result tli_cpu_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    (void)mode;
    *host = ((tli_cpu *)self)->banks[range.block - 1].memory + range.offset;
    return TL_OK;
}

static tl_result tli_cpu_open_bank(tli_cpu *cpu, void *memory, uint64_t bytes, tli_cpu_bank *bank) {
    size_t shift = tli_cpu_shift(cpu, memory);
    if (!memory || bytes > SIZE_MAX / 4 || bytes < shift + cpu->alignment)
        return tli_fail(cpu->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_CPU_BACKEND),
                        TLI_RULE(MEMORY_BYTES_TOO_FEW_FOR_ONE_ALIGNED));
    bank->memory = (char *)memory + shift;
    bank->bytes = (size_t)bytes - shift;
    return TL_OK;
}

TLI_IMPL tl_result tl_init_cpu_backend(tl_env *env, const tl_cpu_backend_desc *desc, tl_backend *backend) {
    const tli_function function = TLI_IN(INIT_CPU_BACKEND);
    uint64_t alignment;
    tl_result result = TL_OK;
    tli_cpu *cpu;
    int32_t k;
    TL_ASSERT(desc && backend);
    tli_zero(backend, sizeof *backend);
    alignment = desc->alignment_bytes ? desc->alignment_bytes : 64;
    if (alignment & (alignment - 1) || alignment > SIZE_MAX / 16)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ALIGNMENT_BYTES_NOT_POWER_OF_TWO));
    if (!desc->memory && desc->memory_bytes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(MEMORY_BYTES_WITHOUT_MEMORY));
    if (desc->bank_count < 0 || desc->bank_count >= TL_MOST_BANKS || (desc->bank_count && !desc->banks))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(CPU_BANK_COUNT_MUST_BE_0_TO_7));
    if (desc->checked || desc->deferred)
        return tli_fail(env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(CHECKED_DEFERRED_LEFT_OUT));
    cpu = (tli_cpu *)tli_alloc_array(env, 1, sizeof *cpu + (size_t)desc->bank_count * sizeof(tli_cpu_bank));
    if (!cpu) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY));
    cpu->env = env;
    cpu->alignment = (size_t)alignment;
    cpu->bank_count = 1 + desc->bank_count;
    if (desc->memory) result = tli_cpu_open_bank(cpu, desc->memory, desc->memory_bytes, &cpu->banks[0]);
    for (k = 0; k < desc->bank_count && !result; k++)
        result = tli_cpu_open_bank(cpu, desc->banks[k].memory, desc->banks[k].memory_bytes, &cpu->banks[1 + k]);
    if (result) {
        tli_release(env, cpu);
        return result;
    }
    backend->self = cpu;
    backend->add_arena = tli_cpu_add_arena;
    backend->free_block = tli_cpu_free_block;
    backend->map = tli_cpu_map;
    return TL_OK;
}

TLI_IMPL tl_result tl_free_cpu_backend(tl_env *env, tl_backend *backend) {
    tli_cpu *cpu;
    if (!backend || !backend->self) return TL_OK;
    cpu = (tli_cpu *)backend->self;
    tli_release(env, cpu->banks[0].allocation);
    tli_release(env, cpu);
    tli_zero(backend, sizeof *backend);
    return TL_OK;
}

#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
