#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- what a device can do, measured --
//
// tl_measure_device times copies and codecs of the backend between ranges of its own blocks. One call
// takes latency + bytes / rate, so two sizes give both:
//
//     rate = (large - small) / (t(large) - t(small)),   latency = t(small) - small / rate
//
// A gauge is one such measurement: its blocks, its ranges and its two sizes. What one more call takes in a
// submission of many (call_latency_ns) is found by copies of the smaller size, each of which waits for the one
// before: by how much longer a submission of many takes than one of a single copy, for each copy more.
//
// Whether work runs side by side is seen by how long both kinds take when they are enqueued together:
//
//     copies to the host beside copies on the device    together >= alone + alone: they take turns
//     copies to the host beside copies from it          together about as the longer one: two channels
//
// wait_latency_ns is by how much longer a row of device copies takes when each reads a few bytes that were
// copied from the host a whole device copy before: no copy is waited for, and only the waiting itself counts.

#define TLI_GAUGE_SAMPLES 31
#define TLI_GAUGE_SMALL   4096       // bytes of the smaller copy: mostly latency
#define TLI_GAUGE_LARGE   67108864   // bytes of the larger one
#define TLI_GAUGE_WAITS   9          // device copies of which each reads what came from the host
#define TLI_GAUGE_TURNS   32         // by so many copies the long submission exceeds that of one copy

typedef struct tli_gauge {
    tl_env *env;
    const tl_backend *backend;
    tl_measure_device_desc desc;  // defaults filled in
    tl_backend_limits limits;
    uint64_t blocks[TL_TIER_COUNT];
    tl_range ranges[3];           // two on the device, one on the host; bytes 0 = no such range
    uint64_t small_bytes, large;  // the two sizes in bytes; large 0 = no room
} tli_gauge;

typedef enum tli_gauge_work { TLI_GAUGE_COPY, TLI_GAUGE_COMPRESS, TLI_GAUGE_EXPAND } tli_gauge_work;

// One kind of work, from one range to another.
typedef struct tli_gauge_job {
    tli_gauge_work work;
    tl_codec codec;
    tl_range to, from;
    int32_t turns;                // calls in one submission: there, back again, there, ...
} tli_gauge_job;

static tl_result tli_gauge_fail(const tli_gauge *g, tli_rule rule, tl_result code) {
    tli_sentence s = tli_begin_error(g->env, code, TLI_IN(MEASURE_DEVICE), rule, 0, 0);
    if (TLI_ERROR_TEXT) tli_put(&s.text, "backend: ");
    tli_put_text(&s, tl_explain_result(code));
    return tli_end_error(g->env, &s, code);
}

// Submit and wait until the work is finished: only then is its time known.
static tl_result tli_gauge_wait(const tli_gauge *g) {
    const tl_backend *b = g->backend;
    tl_ticket ticket;
    tl_result result = (b->submit)(b->self, &ticket);
    if (result && result != TL_NOT_READY) return tli_gauge_fail(g, TLI_RULE(SUBMIT_FAILED), result);
    if (!result) result = (b->wait)(b->self, ticket);
    if (result == TL_NOT_READY)
        return tli_fail(g->env, TL_ERROR_UNSUPPORTED, TLI_IN(MEASURE_DEVICE),
                        TLI_RULE(BACKEND_CANNOT_WAIT_SO_THAT_NOTHING));
    return result ? tli_gauge_fail(g, TLI_RULE(WAIT_FAILED), result) : TL_OK;
}

// Enqueue one turn of a job on the first `bytes` (uncompressed) bytes of its ranges.
static tl_result tli_gauge_enqueue(const tli_gauge *g, const tli_gauge_job *job, int32_t turn, uint64_t bytes) {
    const tl_backend *b = g->backend;
    tl_range to = turn % 2 ? job->from : job->to, from = turn % 2 ? job->to : job->from;
    tl_result result = TL_OK;
    to.bytes = from.bytes = bytes;
    switch (job->work) {
    case TLI_GAUGE_COPY:
        result = (b->copy)(b->self, to, from);
        return result ? tli_gauge_fail(g, TLI_RULE(COPY_FAILED), result) : TL_OK;
    case TLI_GAUGE_COMPRESS:
        to.bytes = tl_find_codec_bytes(job->codec, bytes);
        result = (b->compress)(b->self, job->codec, to, from);
        return result ? tli_gauge_fail(g, TLI_RULE(COMPRESS_FAILED), result) : TL_OK;
    case TLI_GAUGE_EXPAND:
        from.bytes = tl_find_codec_bytes(job->codec, bytes);
        result = (b->expand)(b->self, job->codec, to, from);
        return result ? tli_gauge_fail(g, TLI_RULE(EXPAND_FAILED), result) : TL_OK;
    }
    return result;
}

static double tli_find_median(double *samples, int32_t count) {
    int32_t i, k;
    for (i = 1; i < count; i++) {
        double sample = samples[i];
        for (k = i; k > 0 && samples[k - 1] > sample; k--) samples[k] = samples[k - 1];
        samples[k] = sample;
    }
    return count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

// Work to be timed; what it is stands in user.
typedef tl_result (*tli_gauge_enqueuer)(const tli_gauge *g, const void *user);

// Time work sample_count times. The first run does not count: it may page memory in.
static tl_result tli_sample_work(const tli_gauge *g, tli_gauge_enqueuer enqueue, const void *user,
                                 double *samples) {
    const tl_backend *b = g->backend;
    int32_t i;
    for (i = -1; i < g->desc.sample_count; i++) {
        uint64_t start = (b->now_ns)(b->self), end;
        tl_result result = (enqueue)(g, user);
        if (!result) result = tli_gauge_wait(g);
        if (result) return result;
        end = (b->now_ns)(b->self);
        if (i >= 0) samples[i] = end > start ? (double)(end - start) : 0;
    }
    return TL_OK;
}

// The least time of work, which what disturbs it cannot lower.
static tl_result tli_time_work(const tli_gauge *g, tli_gauge_enqueuer enqueue, const void *user, double *ns) {
    double samples[TLI_GAUGE_SAMPLES];
    tl_result result;
    int32_t i;
    tli_zero(samples, sizeof samples);
    result = tli_sample_work(g, enqueue, user, samples);
    *ns = samples[0];
    for (i = 1; i < g->desc.sample_count; i++) if (samples[i] < *ns) *ns = samples[i];
    return result;
}

typedef struct tli_gauge_turns { const tli_gauge_job *job; uint64_t bytes; } tli_gauge_turns;

static tl_result tli_enqueue_turns(const tli_gauge *g, const void *user) {
    const tli_gauge_turns *turns = (const tli_gauge_turns *)user;
    tl_result result = TL_OK;
    int32_t turn;
    for (turn = 0; turn < turns->job->turns && !result; turn++)
        result = tli_gauge_enqueue(g, turns->job, turn, turns->bytes);
    return result;
}

// The median time of a job.
static tl_result tli_time_job(const tli_gauge *g, const tli_gauge_job *job, uint64_t bytes, double *ns) {
    double samples[TLI_GAUGE_SAMPLES];
    tli_gauge_turns turns;
    tl_result result;
    turns.job = job;
    turns.bytes = bytes;
    tli_zero(samples, sizeof samples);
    result = tli_sample_work(g, tli_enqueue_turns, &turns, samples);
    *ns = tli_find_median(samples, g->desc.sample_count);
    return result;
}

// Rate of a job in bytes per second, from the difference of two sizes, and its latency, from the rest
// of the smaller time. Both are 0 if the clock is too coarse.
static tl_result tli_fit_job(const tli_gauge *g, const tli_gauge_job *job, double *rate, double *latency_ns) {
    // Codecs are slower than copies, so fewer bytes are enough to exceed the latency.
    uint64_t most = job->work == TLI_GAUGE_COPY ? g->large : tli_larger_u64(g->large / 16, 2 * g->small_bytes);
    double small_ns = 0, large_ns = 0;
    tl_result result = tli_time_job(g, job, g->small_bytes, &small_ns);
    if (!result) result = tli_time_job(g, job, most, &large_ns);
    *rate = *latency_ns = 0;
    if (!result && large_ns <= 0 && small_ns <= 0)
        return tli_fail(g->env, TL_ERROR_UNSUPPORTED, TLI_IN(MEASURE_DEVICE), TLI_RULE(BACKEND_HAS_NO_CLOCK));
    if (result || !(large_ns > small_ns)) return result;
    *rate = (double)(most - g->small_bytes) * 1e9 / (large_ns - small_ns);
    *latency_ns = small_ns - (double)g->small_bytes * 1e9 / *rate;
    if (*latency_ns < 0) *latency_ns = 0;
    return TL_OK;
}

static tli_gauge_job tli_gauge_job_of(tli_gauge_work work, tl_codec codec, tl_range to, tl_range from) {
    tli_gauge_job job;
    job.work = work; job.codec = codec;
    job.to = to; job.from = from;
    job.turns = 1;
    return job;
}

static uint64_t tli_round_u64(double value) {
    return value < 18446744073709549568.0 ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

// Set call_latency_ns: what one more copy takes in a submission of many, beyond its bytes / rate. rate: of
// copies, in bytes per second; 0 = not known, nothing is set.
static tl_result tli_measure_calls(const tli_gauge *g, double rate, tl_device *device) {
    tli_gauge_job job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, g->ranges[1], g->ranges[0]);
    double few = 0, many = 0, ns;
    tl_result result = tli_time_job(g, &job, g->small_bytes, &few);
    job.turns += TLI_GAUGE_TURNS;
    if (!result) result = tli_time_job(g, &job, g->small_bytes, &many);
    if (result || rate <= 0) return result;
    ns = (many - few) / TLI_GAUGE_TURNS - (double)g->small_bytes * 1e9 / rate;
    if (ns > 0) device->call_latency_ns = tli_round_u64(ns);
    return TL_OK;
}

// -- what runs side by side --

// Copies to be enqueued together. Each kind is left out where its turns are 0.
typedef struct tli_gauge_mix {
    int32_t out, back, device;      // halves of the ranges: to the host, from it; on the device, so many times
} tli_gauge_mix;

// Copy bytes between two of the ranges, at offsets.
static tl_result tli_gauge_move(const tli_gauge *g, int32_t to, uint64_t to_at, int32_t from, uint64_t from_at,
                                uint64_t bytes) {
    tl_range target = g->ranges[to], source = g->ranges[from];
    tl_result result;
    target.offset += to_at;
    source.offset += from_at;
    target.bytes = source.bytes = bytes;
    result = (g->backend->copy)(g->backend->self, target, source);
    return result ? tli_gauge_fail(g, TLI_RULE(COPY_FAILED), result) : TL_OK;
}

static tl_result tli_enqueue_mix(const tli_gauge *g, const void *user) {
    const tli_gauge_mix *mix = (const tli_gauge_mix *)user;
    uint64_t half = g->large / 2 / g->small_bytes * g->small_bytes;
    tl_result result = TL_OK;
    int32_t i;
    if (mix->out) result = tli_gauge_move(g, 2, 0, 0, 0, half);
    if (!result && mix->back) result = tli_gauge_move(g, 0, half, 2, half, half);
    for (i = 0; i < mix->device && !result; i++) result = tli_gauge_move(g, 1, half, 1, 0, half);
    return result;
}

// Whether two mixes run side by side: together they take less than both one after the other, by more than half
// of the shorter one.
static tl_result tli_runs_beside(const tli_gauge *g, const tli_gauge_mix *a, const tli_gauge_mix *b,
                                 int *beside) {
    tli_gauge_mix both;
    double first = 0, second = 0, together = 0;
    tl_result result = tli_time_work(g, tli_enqueue_mix, a, &first);
    both.out = a->out + b->out;
    both.back = a->back + b->back;
    both.device = a->device + b->device;
    if (!result) result = tli_time_work(g, tli_enqueue_mix, b, &second);
    if (!result) result = tli_time_work(g, tli_enqueue_mix, &both, &together);
    *beside = together < first + second - (first < second ? first : second) / 2;
    return result;
}

static int32_t tli_count_turns(double turns) { return turns < 1 ? 1 : turns > 1000 ? 1000 : (int32_t)turns; }

// A row of device copies with small copies from the host between them.
typedef struct tli_gauge_row { int32_t reads, turns; } tli_gauge_row;    // reads: 1 = they read what was copied

// The first and the last bytes of a half are written in turn; a device copy reads those that were written
// before the device copy before it, and all between.
static tl_result tli_enqueue_row(const tli_gauge *g, const void *user) {
    const tli_gauge_row *row = (const tli_gauge_row *)user;
    uint64_t few = g->small_bytes, half = g->large / 2 / few * few;
    tl_result result = TL_OK;
    int32_t i, k;
    for (i = 0; i < TLI_GAUGE_WAITS && !result; i++) {
        uint64_t at = i % 2 ? half - few : 0;
        result = tli_gauge_move(g, 0, row->reads ? at : half + at, 2, 0, few);
        for (k = 0; k < row->turns && !result; k++)
            result = tli_gauge_move(g, 1, 0, 0, i % 2 ? 0 : few, half - few);
    }
    return result;
}

static tl_result tli_measure_waits(const tli_gauge *g, tl_device *device) {
    double copy_ns = (double)g->large * 1e9 / (double)device->bytes_per_second, with = 0, without = 0;
    tli_gauge_row row;
    tl_result result;
    row.turns = tli_count_turns(4 * (double)device->link_latency_ns / copy_ns + 1);  // hides the small copy
    row.reads = 0;
    result = tli_time_work(g, tli_enqueue_row, &row, &without);
    row.reads = 1;
    if (!result) result = tli_time_work(g, tli_enqueue_row, &row, &with);
    with = (with - without) / (TLI_GAUGE_WAITS - 1);
    if (!result && with > 0) device->wait_latency_ns = tli_round_u64(with);
    return result;
}

// Set copy_channels and wait_latency_ns. The rates are known.
static tl_result tli_measure_channels(const tli_gauge *g, tl_device *device) {
    tli_gauge_mix out = { 1, 0, 0 }, back = { 0, 1, 0 }, on_device = { 0, 0, 1 };
    double turns = (double)device->bytes_per_second / 2 / (double)device->link_bytes_per_second;
    int beside = 0, both_ways = 0;
    tl_result result;
    if (g->large < 8 * g->small_bytes) return TL_OK;
    on_device.device = tli_count_turns(turns);
    result = tli_runs_beside(g, &out, &on_device, &beside);
    if (!result) result = tli_runs_beside(g, &out, &back, &both_ways);
    if (result) return result;
    device->copy_channels = !beside ? TL_COPIES_IN_TURN : both_ways ? 2 : 1;
    return beside ? tli_measure_waits(g, device) : TL_OK;
}

static tl_result tli_measure_copies(const tli_gauge *g, tl_device *device) {
    const tl_range *r = g->ranges;
    tli_gauge_job job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, r[1], r[0]);
    double rate = 0, latency = 0, back = 0, back_latency = 0;
    tl_result result = tli_fit_job(g, &job, &rate, &latency);
    if (result) return result;
    device->bytes_per_second = tli_round_u64(2 * rate);  // read and written
    result = tli_measure_calls(g, rate, device);
    if (result) return result;
    if (!r[2].bytes) return TL_OK;
    job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, r[2], r[0]);
    result = tli_fit_job(g, &job, &rate, &latency);
    job = tli_gauge_job_of(TLI_GAUGE_COPY, TL_CODEC_NONE, r[1], r[2]);
    if (!result) result = tli_fit_job(g, &job, &back, &back_latency);
    if (result || rate <= 0 || back <= 0) return result;
    device->link_bytes_per_second = tli_round_u64(rate);
    device->upload_bytes_per_second = tli_round_u64(back);
    device->link_latency_ns = tli_round_u64(latency > back_latency ? latency : back_latency);
    return tli_measure_channels(g, device);
}

#ifndef TL_NO_CODECS
static tl_result tli_measure_codecs(const tli_gauge *g, tl_device *device) {
    const tl_range *r = g->ranges;
    double slowest = 0, rate = 0, latency = 0;
    int codec, expands;
    for (codec = TL_CODEC_NONE + 1; codec < TL_CODEC_COUNT; codec++) {
        if (!(g->limits.codecs >> codec & 1)) continue;
        if (g->desc.codecs && !(g->desc.codecs >> codec & 1)) continue;
        for (expands = 0; expands < 2; expands++) {
            tli_gauge_work work = expands ? TLI_GAUGE_EXPAND : TLI_GAUGE_COMPRESS;
            tli_gauge_job job = tli_gauge_job_of(work, (tl_codec)codec, r[!expands], r[expands]);
            tl_result result = tli_fit_job(g, &job, &rate, &latency);
            if (result) return result;
            if (rate > 0 && (slowest <= 0 || rate < slowest)) slowest = rate;
        }
    }
    device->codec_bytes_per_second = tli_round_u64(slowest);
    return TL_OK;
}
#endif

// 2^20 FLOP of multiplications and additions, with volatile inputs so that no compiler removes them.
static tl_result tli_run_flops(tl_precision precision, uint64_t *flops, void *user) {
    volatile float unknown_factor = 0.75f, unknown_term = 0.5f;
    volatile double sink;
    float factor = unknown_factor, term = unknown_term, a[16];
    double factor_wide = (double)factor, term_wide = (double)term, b[16];
    int32_t i, k;
    (void)user;
    *flops = UINT64_C(1) << 20;
    if (precision != TL_PRECISION_SINGLE && precision != TL_PRECISION_DOUBLE) return TL_ERROR_UNSUPPORTED;
    for (k = 0; k < 16; k++) { a[k] = (float)k; b[k] = k; }
    if (precision == TL_PRECISION_SINGLE) {
        for (i = 0; i < 32768; i++)
            for (k = 0; k < 16; k++) a[k] = a[k] * factor + term;
        for (k = 0; k < 16; k++) sink = (double)a[k];
    } else {
        for (i = 0; i < 32768; i++)
            for (k = 0; k < 16; k++) b[k] = b[k] * factor_wide + term_wide;
        for (k = 0; k < 16; k++) sink = b[k];
    }
    (void)sink;
    return TL_OK;
}

static tl_result tli_measure_flops(const tli_gauge *g, tl_device *device) {
    const tl_backend *b = g->backend;
    tl_result (*compute)(tl_precision, uint64_t *, void *) = g->desc.compute;
    double samples[TLI_GAUGE_SAMPLES], single;
    int32_t p, i;
    if (!compute && g->limits.host_visible) compute = tli_run_flops;
    for (p = 0; p < TL_PRECISION_COUNT && compute; p++) {
        tl_result result = TL_OK;
        for (i = -1; i < g->desc.sample_count && !result; i++) {
            uint64_t flops = 0, start = (b->now_ns)(b->self), end;
            result = (compute)((tl_precision)p, &flops, g->desc.user);
            end = (b->now_ns)(b->self);
            if (i >= 0) samples[i] = end > start ? (double)flops * 1e9 / (double)(end - start) : 0;
        }
        if (result && result != TL_ERROR_UNSUPPORTED)
            return tli_fail(g->env, TL_ERROR_KERNEL, TLI_IN(MEASURE_DEVICE),
                            TLI_RULE(COMPUTE_REPORTED_FAILURE));
        if (!result) device->flops_per_second[p] = tli_find_median(samples, g->desc.sample_count);
    }
    single = device->flops_per_second[TL_PRECISION_SINGLE];
    for (p = 0; p < TL_PRECISION_COUNT; p++) {
        double rate = device->flops_per_second[p];
        if (rate > 0 && (p == TL_PRECISION_DOUBLE || rate >= single)) device->supported |= 1u << p;
    }
    return TL_OK;
}

static void tli_close_gauge(tli_gauge *g) {
    const tl_backend *b = g->backend;
    int32_t i;
    for (i = 0; i < 3; i++) {
        if (g->ranges[i].bytes) (void)(b->release)(b->self, g->ranges[i]);
        tli_zero(&g->ranges[i], sizeof g->ranges[i]);
    }
    for (i = 0; i < TL_TIER_COUNT; i++) {
        if (g->blocks[i]) (void)(b->free_block)(b->self, g->blocks[i]);
        g->blocks[i] = 0;
    }
}

static tl_result tli_claim_gauge(tli_gauge *g, int32_t index, tl_tier tier, uint64_t offset) {
    tl_range range;
    tl_result result;
    range.block = g->blocks[tier]; range.offset = offset; range.bytes = g->large;
    result = (g->backend->claim)(g->backend->self, range);
    if (!result) g->ranges[index] = range;
    return result;
}

// Make blocks and claim ranges of g->large bytes; TL_ERROR_NO_MEMORY if there is no room for them.
static tl_result tli_open_gauge(tli_gauge *g, int uses_host) {
    const tl_backend *b = g->backend;
    tl_result result = (b->add_block)(b->self, TL_TIER_DEVICE, 2 * g->large, &g->blocks[TL_TIER_DEVICE]);
    if (!result && uses_host)
        result = (b->add_block)(b->self, TL_TIER_HOST, g->large, &g->blocks[TL_TIER_HOST]);
    if (!result) result = tli_claim_gauge(g, 0, TL_TIER_DEVICE, 0);
    if (!result) result = tli_claim_gauge(g, 1, TL_TIER_DEVICE, g->large);
    if (!result && uses_host) result = tli_claim_gauge(g, 2, TL_TIER_HOST, 0);
    if (result) tli_close_gauge(g);
    return result;
}

// Open the gauge with desc.bytes, halved until there is room for two ranges on the device and one on the host,
// or for the two alone where the host tier has next to nothing free. TL_OK with g->large 0: there is no room.
static tl_result tli_size_gauge(tli_gauge *g) {
    const tl_backend_limits *limits = &g->limits;
    uint64_t step = tli_larger_u64(limits->alignment_bytes, 64);
    uint64_t room = limits->budget_bytes[TL_TIER_DEVICE] / 2, host_room = limits->budget_bytes[TL_TIER_HOST];
    int uses_host = host_room >= 2 * tli_align_u64(TLI_GAUGE_SMALL, step);
    tl_result result = TL_ERROR_NO_MEMORY;
    g->small_bytes = tli_align_u64(TLI_GAUGE_SMALL, step);
    g->large = g->desc.bytes;
    if (g->large > room) g->large = room;
    if (uses_host && g->large > host_room) g->large = host_room;
    if (g->large > limits->range_bytes) g->large = limits->range_bytes;
    if (g->large > UINT64_MAX / 4) g->large = UINT64_MAX / 4;
    for (g->large -= g->large % step; g->large >= 2 * g->small_bytes;
         g->large = g->large / 2 - g->large / 2 % step) {
        tli_quiet quiet = tli_begin_quiet(g->limits.env);
        result = tli_open_gauge(g, uses_host);
        tli_end_quiet(&quiet, result == TL_ERROR_NO_MEMORY ? TL_OK : result);
        if (result != TL_ERROR_NO_MEMORY) break;
    }
    if (!result) return TL_OK;
    g->large = 0;
    return result == TL_ERROR_NO_MEMORY ? TL_OK : tli_gauge_fail(g, TLI_RULE(ADD_BLOCK_CLAIM_FAILED), result);
}

static tl_result tli_measure_blocks(tli_gauge *g, tl_device *device) {
    const tl_backend *b = g->backend;
    tl_result result = tli_size_gauge(g);
    if (result || !g->large) return result;
    result = (b->fill)(b->self, g->ranges[0], 0x3F800000u);
    if (result) result = tli_gauge_fail(g, TLI_RULE(FILL_FAILED), result);
    if (!result) result = tli_measure_copies(g, device);
#ifndef TL_NO_CODECS
    if (!result) result = tli_measure_codecs(g, device);
#endif
    tli_close_gauge(g);
    return result;
}

TLI_IMPL tl_result tl_measure_device(tl_env *env, const tl_backend *backend,
                                     const tl_measure_device_desc *desc, tl_device *device) {
    tli_gauge g;
    tl_device measured;
    tl_result result;
    TL_ASSERT(backend && backend->self && device);
    tli_zero(device, sizeof *device);
    tli_zero(&measured, sizeof measured);
    tli_zero(&g, sizeof g);
    if (desc) g.desc = *desc;
    if (g.desc.sample_count < 0 || g.desc.sample_count > TLI_GAUGE_SAMPLES)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(MEASURE_DEVICE),
                        TLI_RULE(SAMPLE_COUNT_MUST_BE_0_TO_31));
    if (g.desc.codecs >> TL_CODEC_COUNT || g.desc.codecs & 1u << TL_CODEC_NONE)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(MEASURE_DEVICE), TLI_RULE(CODECS_UNKNOWN_BIT));
    if (!g.desc.sample_count) g.desc.sample_count = 5;
    if (!g.desc.bytes) g.desc.bytes = TLI_GAUGE_LARGE;
    g.env = env;
    g.backend = backend;
    (backend->limits)(backend->self, &g.limits);
    measured.name = g.desc.name;
    measured.alignment_bytes = g.limits.alignment_bytes;
    if (g.limits.capacity_bytes[TL_TIER_DEVICE] != TL_UNLIMITED)
        measured.device_capacity_bytes = g.limits.capacity_bytes[TL_TIER_DEVICE];
    if (g.limits.capacity_bytes[TL_TIER_HOST] != TL_UNLIMITED)
        measured.host_capacity_bytes = g.limits.capacity_bytes[TL_TIER_HOST];
    result = tli_measure_blocks(&g, &measured);
    if (!result) result = tli_measure_flops(&g, &measured);
    if (!result) *device = measured;
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

