// What the tests of [12] RUN stand on: a backend that counts, asserts, fails or cheats on demand around the
// CPU backend, and kernels for any graph whose every byte depends on every byte that they may read.
// Include after cmocka and the implementation.
#ifndef TESTS_RUN_SUPPORT_H
#define TESTS_RUN_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- the spy --

typedef enum spy_function {
    SPY_ADD_BLOCK, SPY_FREE_BLOCK, SPY_CLAIM, SPY_RELEASE, SPY_COPY, SPY_COMPRESS, SPY_EXPAND, SPY_FILL,
    SPY_ORDER, SPY_SUBMIT, SPY_POLL, SPY_WAIT, SPY_MAP, SPY_UNMAP, SPY_CHECK, SPY_SHORTEN, SPY_COUNT
} spy_function;

typedef enum spy_lie { LIE_NOT, LIE_PEAK, LIE_HOST_PEAK, LIE_ARENA, LIE_LIVE, LIE_HOST_LIVE, LIE_COUNT } spy_lie;

typedef struct spy {
    tl_backend inner;
    uint64_t account;        // of the claim or release under way; 0 = none
    uint64_t limits[TL_TIER_COUNT];  // of the account opened last
    long     calls[SPY_COUNT];
    long     clock_calls;
    int      fail_function;  // that fails once, at its call number fail_at from 0; -1 = none
    long     fail_at;
    long     fail_count;     // calls that fail from there on; 0 = 1
    long     lost_at;        // the device is lost from that call on, counted over all functions; -1 = never
    long     all_calls;
    int      skips[SPY_COUNT];  // 1 = the function does nothing and says that all is well
    int      lie;            // a spy_lie of counters, told from the next check on
    int      lies;
    uint32_t no_codecs;      // taken out of the limits
    int      is_remote;      // 1 = the limits say that the host cannot reach the memory
    uint64_t limit;          // of live device bytes; 0 = none
    int      went_over;
    tl_access touched[256];  // by claims, copies, conversions, fills; cleared by whoever looks
    int      touched_count;
    tl_range released[64];   // the same
    int      released_count;
    uint64_t binding;        // the largest range that a kernel can be given, by the limits; 0 = any
} spy;

static tl_result spy_enter(spy *s, spy_function function) {
    long call = s->calls[function]++, index = s->all_calls++;
    if (s->lost_at >= 0 && index >= s->lost_at && function != SPY_FREE_BLOCK && function != SPY_RELEASE &&
        function != SPY_UNMAP)
        return TL_ERROR_DEVICE_LOST;
    if (s->fail_function == (int)function && call >= s->fail_at && call <= s->fail_at + s->fail_count - (s->fail_count > 0))
        return function == SPY_ADD_BLOCK ? TL_ERROR_NO_MEMORY : TL_ERROR_BACKEND;
    return TL_OK;
}

static void spy_note(spy *s, tl_range range, int writes) {
    tl_access *access = &s->touched[s->touched_count];
    if (s->touched_count == 256) return;
    access->range = range;
    access->writes = writes;
    s->touched_count++;
}

static tl_result spy_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *block) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_ADD_BLOCK);
    *block = 0;
    return result ? result : s->inner.add_block(s->inner.self, tier, bytes, block);
}

static tl_result spy_free_block(void *self, uint64_t block) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_FREE_BLOCK);
    return result ? result : s->inner.free_block(s->inner.self, block);
}

static tl_result spy_claim(void *self, tl_range range) {
    spy *s = (spy *)self;
    tl_backend_counters counters;
    tl_result result = spy_enter(s, SPY_CLAIM);
    if (!result && s->account) result = s->inner.claim_on(s->inner.self, s->account, range);
    else if (!result) result = s->inner.claim(s->inner.self, range);
    s->account = 0;
    if (result) return result;
    spy_note(s, range, 1);
    s->inner.counters(s->inner.self, &counters);
    s->went_over |= s->limit && counters.live_bytes[TL_TIER_DEVICE] > s->limit;
    return TL_OK;
}

static tl_result spy_release(void *self, tl_range range) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_RELEASE);
    uint64_t account = s->account;
    s->account = 0;
    if (s->released_count < 64) s->released[s->released_count++] = range;
    if (result) return result;
    return account ? s->inner.release_on(s->inner.self, account, range) : s->inner.release(s->inner.self, range);
}

static tl_result spy_open_account(void *self, const uint64_t limit_bytes[TL_TIER_COUNT], uint64_t *account) {
    spy *s = (spy *)self;
    memcpy(s->limits, limit_bytes, sizeof s->limits);
    return s->inner.open_account(s->inner.self, limit_bytes, account);
}

static tl_result spy_close_account(void *self, uint64_t account) {
    spy *s = (spy *)self;
    return s->inner.close_account(s->inner.self, account);
}

static tl_result spy_claim_on(void *self, uint64_t account, tl_range range) {
    spy *s = (spy *)self;
    s->account = account;
    return spy_claim(self, range);
}

static tl_result spy_release_on(void *self, uint64_t account, tl_range range) {
    spy *s = (spy *)self;
    s->account = account;
    return spy_release(self, range);
}

static tl_result spy_measure_account(void *self, uint64_t account, int32_t resets, tl_account_counters *counters) {
    spy *s = (spy *)self;
    tl_result result = s->inner.measure_account(s->inner.self, account, resets, counters);
    counters->peak_bytes[TL_TIER_DEVICE] += s->lies == LIE_PEAK;
    counters->peak_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_PEAK;
    counters->arena_bytes += s->lies == LIE_ARENA ? 4096 : 0;
    counters->live_bytes[TL_TIER_DEVICE] += s->lies == LIE_LIVE;
    counters->live_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_LIVE;
    return result;
}

static tl_result spy_shorten(void *self, uint64_t account, tl_range range, uint64_t bytes) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_SHORTEN);
    return result ? result : s->inner.shorten(s->inner.self, account, range, bytes);
}

static tl_result spy_copy(void *self, tl_range to, tl_range from) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_COPY);
    spy_note(s, to, 1);
    spy_note(s, from, 0);
    return result ? result : s->inner.copy(s->inner.self, to, from);
}

static tl_result spy_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_COMPRESS);
    spy_note(s, to, 1);
    spy_note(s, from, 0);
    return result ? result : s->inner.compress(s->inner.self, codec, to, from);
}

static tl_result spy_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_EXPAND);
    spy_note(s, to, 1);
    spy_note(s, from, 0);
    return result ? result : s->inner.expand(s->inner.self, codec, to, from);
}

static tl_result spy_fill(void *self, tl_range to, uint32_t word) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_FILL);
    spy_note(s, to, 1);
    return result ? result : s->inner.fill(s->inner.self, to, word);
}

static tl_result spy_order(void *self, const tl_access *accesses, int32_t access_count) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_ORDER);
    return result || s->skips[SPY_ORDER] ? result : s->inner.order(s->inner.self, accesses, access_count);
}

static tl_result spy_submit(void *self, tl_ticket *ticket) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_SUBMIT);
    return result ? result : s->inner.submit(s->inner.self, ticket);
}

static tl_result spy_poll(void *self, tl_ticket ticket) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_POLL);
    return result ? result : s->inner.poll(s->inner.self, ticket);
}

static tl_result spy_wait(void *self, tl_ticket ticket) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_WAIT);
    return result || s->skips[SPY_WAIT] ? result : s->inner.wait(s->inner.self, ticket);
}

static tl_result spy_map(void *self, tl_range range, tl_map_mode mode, void **host) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_MAP);
    *host = NULL;
    return result ? result : s->inner.map(s->inner.self, range, mode, host);
}

// A failing unmap: the pointer is dead all the same.
static tl_result spy_unmap(void *self, tl_range range, tl_map_mode mode, void *host) {
    spy *s = (spy *)self;
    tl_result failed = spy_enter(s, SPY_UNMAP), result = s->inner.unmap(s->inner.self, range, mode, host);
    return failed ? failed : result;
}

static tl_result spy_check(void *self) {
    spy *s = (spy *)self;
    tl_result result = spy_enter(s, SPY_CHECK);
    s->lies = s->lie;
    return result ? result : s->inner.check(s->inner.self);
}

static uint64_t spy_now_ns(void *self) {
    spy *s = (spy *)self;
    return 1000 + 10 * (uint64_t)s->clock_calls++;
}

static void spy_limits(void *self, tl_backend_limits *limits) {
    spy *s = (spy *)self;
    s->inner.limits(s->inner.self, limits);
    limits->codecs &= ~s->no_codecs;
    if (s->is_remote) limits->host_visible = 0;
    if (s->binding) limits->binding_bytes = s->binding;
}

static void spy_counters(void *self, tl_backend_counters *counters) {
    spy *s = (spy *)self;
    s->inner.counters(s->inner.self, counters);
    counters->peak_bytes[TL_TIER_DEVICE] += s->lies == LIE_PEAK;
    counters->peak_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_PEAK;
    counters->arena_bytes += s->lies == LIE_ARENA ? 4096 : 0;
    counters->live_bytes[TL_TIER_DEVICE] += s->lies == LIE_LIVE;
    counters->live_bytes[TL_TIER_HOST] += s->lies == LIE_HOST_LIVE;
}

static void spy_reset_peaks(void *self) {
    spy *s = (spy *)self;
    s->lies = LIE_NOT;
    s->inner.reset_peaks(s->inner.self);
}

#define BACKEND_CHECKED 1
#define BACKEND_DEFERRED 2
#define BACKEND_KINDS 4

// A CPU backend of one of the four kinds, behind the spy.
static tl_backend spy_open(tl_env *env, int kind, uint64_t seed, uint64_t alignment, spy *s) {
    tl_cpu_backend_desc desc;
    tl_backend backend;
    memset(s, 0, sizeof *s);
    memset(&backend, 0, sizeof backend);    // what it does not have is 0
    memset(&desc, 0, sizeof desc);
    desc.alignment_bytes = alignment;
    desc.checked = kind & BACKEND_CHECKED ? 1 : 0;
    desc.deferred = kind & BACKEND_DEFERRED ? 1 : 0;
    desc.seed = seed;
    if (tl_init_cpu_backend(env, &desc, &s->inner)) fail_msg("%s", env->error.text);
    s->fail_function = -1;
    s->lost_at = -1;
    backend.self = s;
    backend.add_block = spy_add_block;
    backend.free_block = spy_free_block;
    backend.claim = spy_claim;
    backend.release = spy_release;
    backend.copy = spy_copy;
    backend.compress = spy_compress;
    backend.expand = spy_expand;
    backend.fill = spy_fill;
    backend.order = spy_order;
    backend.submit = spy_submit;
    backend.poll = spy_poll;
    backend.wait = spy_wait;
    backend.map = spy_map;
    backend.unmap = spy_unmap;
    backend.check = spy_check;
    backend.now_ns = spy_now_ns;
    backend.limits = spy_limits;
    backend.counters = spy_counters;
    backend.reset_peaks = spy_reset_peaks;
    backend.open_account = spy_open_account;
    backend.close_account = spy_close_account;
    backend.claim_on = spy_claim_on;
    backend.release_on = spy_release_on;
    backend.measure_account = spy_measure_account;
    if (s->inner.shorten) backend.shorten = spy_shorten;
    return backend;
}

static tl_backend_counters spy_count(const spy *s) {
    tl_backend_counters counters;
    s->inner.counters(s->inner.self, &counters);
    return counters;
}

// Nothing is held any more; then the backend goes.
static void spy_close(tl_env *env, spy *s) {
    tl_backend_counters counters = spy_count(s);
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        assert_int_equal(counters.live_bytes[tier], 0);
        assert_int_equal(counters.claim_count[tier], 0);
        assert_int_equal(counters.block_count[tier], 0);
    }
    assert_int_equal(tl_free_cpu_backend(env, &s->inner), TL_OK);
}

// -- kernels --

#define MIXER_NODES 1100

typedef enum mixer_stray { STRAY_NOT, STRAY_INPUT, STRAY_GRADIENT, STRAY_SAVED, STRAY_BYTE } mixer_stray;

// What the kernels of a run share: the outcome, what was counted, and how they misbehave.
typedef struct mixer {
    uint64_t gradients[MIXER_NODES];  // per node: stands for its parameter gradient, in order of the calls
    uint64_t seeds[MIXER_NODES];      // of the first forward in this pass
    int      ran[MIXER_NODES];        // forwards in this pass
    long     calls, forwards, recomputes, backwards, saves_alone;
    // Faults.
    long     fail_at;                 // call number that fails; -1 = none
    int      skips_recompute;         // 1 = does nothing where it runs again
    int      reseeds_recompute;       // 1 = another seed where it runs again
    int      uses_stream;             // 1 = random numbers from a stream with a state, not from the seed
    uint64_t stream;
    uint64_t recorded[MIXER_NODES], present;  // of the stream, under the hook
    long     moments[TL_RANDOM_MOMENT_COUNT];
    mixer_stray stray;                // what a call touches that it may not, in call number stray_at
    long     stray_at;
    char    *stray_byte;
} mixer;

static inline void mixer_init(mixer *m) {
    memset(m, 0, sizeof *m);
    m->fail_at = -1;
}

static inline void mixer_start_pass(mixer *m) {
    memset(m->ran, 0, sizeof m->ran);
}

static uint64_t mix_bytes(uint64_t sum, const tl_operand *operand) {
    const unsigned char *at = (const unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001b3) + (sum >> 47);
    return tl_mix_u64(sum, operand->range.bytes);
}

// Adding is not commutative here: the order of the contributions shows.
static void mix_into(uint64_t sum, const tl_operand *operand, int adds) {
    unsigned char *at = (unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) {
        sum = sum * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at[i] = (unsigned char)((adds ? at[i] * 3u : 0u) + (unsigned)(sum >> 56));
    }
}

// A call gets what its step names: the right bytes, and nothing else.
static void mixer_check(const mixer *m, const tl_kernel_call *call) {
    const tl_graph *graph = call->graph;
    const tl_node *node = &graph->nodes[call->node];
    int backward = call->kind == TL_STEP_BACKWARD;
    int32_t i;
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        const tl_node_output *tensor = &graph->outputs[input->tensor];
        uint64_t gradient = backward && graph->nodes[tensor->node].has_grad ? tensor->bytes : 0;
        assert_int_equal(call->inputs[i].range.bytes, !backward || input->needed ? tensor->bytes : 0);
        assert_int_equal(call->input_grads[i].range.bytes, gradient);
        assert_int_equal(!call->inputs[i].host, !call->inputs[i].range.bytes);
        assert_int_equal(!call->input_grads[i].host, !gradient);
    }
    for (i = 0; i < node->output_count; i++) {
        const tl_node_output *output = &graph->outputs[node->first_output + i];
        assert_int_equal(call->outputs[i].range.bytes, !backward || output->needed ? output->bytes : 0);
        assert_int_equal(call->output_grads[i].range.bytes, backward ? output->bytes : 0);
    }
    assert_int_equal(call->saved.range.bytes, backward || call->kind == TL_STEP_FORWARD_SAVE ? node->saved_bytes : 0);
    assert_int_equal(call->scratch.range.bytes,
                     backward ? node->bwork_bytes : call->kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes);
    assert_int_equal(!call->saved.host, !call->saved.range.bytes);
    if (call->kind == TL_STEP_FORWARD_INPLACE)
        assert_ptr_equal(call->inputs[node->inplace].host, call->outputs[0].host);
    if (m->ran[call->node]) assert_int_equal(call->seed, m->seeds[call->node]);
    if (!backward) assert_int_equal(call->recompute, m->ran[call->node] > 0);
    if (!backward && node->once) assert_int_equal(m->ran[call->node], 0);
}

static void mixer_misbehave(const mixer *m, const tl_kernel_call *call) {
    void *byte = NULL;
    switch (m->stray) {
    case STRAY_INPUT: byte = call->inputs[0].host; break;
    case STRAY_GRADIENT: byte = call->output_grads[0].host; break;
    case STRAY_SAVED: byte = call->saved.host; break;
    case STRAY_BYTE: byte = m->stray_byte; break;
    case STRAY_NOT: break;
    }
    if (byte) *(char *)byte ^= 1;
}

static uint64_t mixer_random(mixer *m, const tl_kernel_call *call) {
    if (m->uses_stream) return m->stream = m->stream * UINT64_C(6364136223846793005) + 99;
    return call->seed + (m->reseeds_recompute && call->recompute ? 1 : 0);
}

static tl_result mixer_forward(const tl_kernel_call *call, void *user) {
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum;
    int32_t i;
    if (m->calls++ == m->fail_at) return TL_ERROR_CORRUPT;
    mixer_check(m, call);
    m->forwards++;
    m->recomputes += call->recompute;
    m->saves_alone += call->outputs_ready;
    if (!m->ran[call->node]++) m->seeds[call->node] = call->seed;
    sum = tl_mix_u64(mixer_random(m, call), (uint64_t)call->node);
    if (m->skips_recompute && call->recompute) return TL_OK;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    mix_into(sum + 1000, &call->scratch, 1);
    if (!call->outputs_ready)
        for (i = 0; i < node->output_count; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    mix_into(sum + 77, &call->saved, 0);
    if (m->stray && m->calls - 1 == m->stray_at) mixer_misbehave(m, call);
    return TL_OK;
}

static tl_result mixer_backward(const tl_kernel_call *call, void *user) {
    mixer *m = (mixer *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64((uint64_t)call->node, m->uses_stream ? 0 : call->seed);
    int32_t i;
    if (m->calls++ == m->fail_at) return TL_ERROR_CORRUPT;
    mixer_check(m, call);
    m->backwards++;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count; i++) {
        sum = mix_bytes(sum, &call->outputs[i]);
        sum = mix_bytes(sum, &call->output_grads[i]);
    }
    sum = mix_bytes(sum, &call->saved);
    mix_into(sum + 1000, &call->scratch, 1);
    m->gradients[call->node] = tl_mix_u64(m->gradients[call->node], sum);
    for (i = 0; i < node->input_count; i++) mix_into(sum + (uint64_t)i, &call->input_grads[i], 1);
    if (m->stray && m->calls - 1 == m->stray_at) mixer_misbehave(m, call);
    return TL_OK;
}

// A stream of random numbers that repeats because the hook puts its state back.
static inline void mixer_random_hook(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user) {
    mixer *m = (mixer *)user;
    (void)micro_batch;
    m->moments[moment]++;
    switch (moment) {
    case TL_RANDOM_RECORD: m->recorded[node] = m->stream; break;
    case TL_RANDOM_REPLAY: m->present = m->stream; m->stream = m->recorded[node]; break;
    case TL_RANDOM_RESUME: m->stream = m->present; break;
    case TL_RANDOM_MOMENT_COUNT: break;
    }
}

// One kernel a node: the first of an op serves all of it. Returns how many.
static inline int32_t mixer_kernels(const tl_graph *graph, mixer *m, tl_kernel *kernels) {
    int32_t id, count = 0;
    for (id = 0; id < graph->node_count; id++) {
        int32_t k = 0;
        if (graph->nodes[id].is_input) continue;
        while (k < count && strcmp(kernels[k].op, tl_name_op(graph, id))) k++;
        if (k < count) continue;
        kernels[count].op = tl_name_op(graph, id);
        kernels[count].forward = mixer_forward;
        kernels[count].backward = mixer_backward;
        kernels[count++].user = m;
    }
    return count;
}

#endif
