#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// Checkpoint configs: which layers keep their results, as in the seed. A config is checked, turned
// into a set of kept layers (for a fraction by a search under a limit of the peak), then into a kept
// set of tensors and its plan. Below stand the texts and the JSON form of configs.

// -- constructors of configs --

TLI_IMPL tl_checkpoint_config tl_checkpoint_none(void) {
    tl_checkpoint_config config;
    tli_zero(&config, sizeof config);
    config.min_checkpoint_interval = 1;
    return config;
}

// A config that makes checkpoints: flags on.
static tl_checkpoint_config tli_checkpoint_of(tl_policy policy) {
    tl_checkpoint_config config = tl_checkpoint_none();
    config.policy = policy;
    config.checkpoint_attention = config.checkpoint_ffn = 1;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_checkpoint_uniform(uint64_t interval) {
    return tli_checkpoint_of(tl_policy_every_n(interval));
}

TLI_IMPL tl_checkpoint_config tl_checkpoint_selective(const uint64_t *layers, uint64_t layer_count) {
    tl_policy policy = tli_policy_of(TL_POLICY_LAYERS);
    policy.as.layers.list = layers;
    policy.as.layers.count = layer_count;
    return tli_checkpoint_of(policy);
}

TLI_IMPL tl_result tl_checkpoint_dynamic(tl_env *env, uint64_t layer_count, double memory_fraction,
                                         tl_checkpoint_config *config) {
    tl_policy policy = tli_policy_of(TL_POLICY_FRACTION);
    tl_result result;
    TL_ASSERT(config);
    policy.as.fraction.layer_count = layer_count;
    policy.as.fraction.memory_fraction = memory_fraction;
    result = tli_check_fraction(env, TLI_IN(CHECKPOINT_DYNAMIC), &policy, 0);
    *config = result ? tl_checkpoint_none() : tli_checkpoint_of(policy);
    return result;
}

TLI_IMPL tl_checkpoint_config tl_with_checkpoint_attention(tl_checkpoint_config config, int32_t on) {
    config.checkpoint_attention = on != 0;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_with_checkpoint_ffn(tl_checkpoint_config config, int32_t on) {
    config.checkpoint_ffn = on != 0;
    return config;
}

TLI_IMPL tl_checkpoint_config tl_with_min_interval(tl_checkpoint_config config, uint64_t interval) {
    config.min_checkpoint_interval = interval;
    return config;
}

TLI_IMPL void tl_free_checkpoint_config(tl_env *env, tl_checkpoint_config *config) {
    TL_ASSERT(config);
    tli_release(env, config->memory);
    tli_zero(config, sizeof *config);
}

// -- rules of configs --

#define TLI_POLICIES_OF_CONFIGS (TLI_POLICY(KEEP_ALL) | TLI_POLICY(EVERY_N) | TLI_POLICY(LAYERS) | \
                                 TLI_POLICY(FRACTION))

TLI_IMPL tl_result tl_check_checkpoint_config(tl_env *env, const tl_checkpoint_config *config,
                                              uint64_t layer_count) {
    const tli_function function = TLI_IN(CHECK_CHECKPOINT_CONFIG);
    tl_result result;
    TL_ASSERT(config);
    if ((config->checkpoint_attention | config->checkpoint_ffn) & ~1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function,
                        TLI_RULE(CHECKPOINT_ATTENTION_CHECKPOINT_FFN));
    result = tli_check_policy(env, function, &config->policy, TLI_POLICIES_OF_CONFIGS,
                              TLI_RULE(POLICY_MUST_BE_OF_CONFIGS), layer_count);
    if (result || config->policy.kind != TL_POLICY_EVERY_N || config->policy.as.every_n.interval) return result;
    return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(INTERVAL_MUST_BE_POSITIVE));
}

// -- kept layers of every-n and layers --

// Whether `layer` is kept when the listed layers are visited in ascending order and each is kept
// that is at least `interval` above the last kept one. An ascending list is scanned once; in any
// other, each next layer is searched for in the whole list.
static int tli_selects(const uint64_t *layers, uint64_t count, uint64_t interval, uint64_t layer) {
    uint64_t least = 0, from = 0, next, i;
    int listed = 0, ascends = 1;
    for (i = 0; i < count; i++) {
        listed |= layers[i] == layer;
        if (i) ascends &= layers[i - 1] < layers[i];
    }
    if (!listed || interval <= 1) return listed;
    for (;;) {
        next = layer;
        for (i = from; i < count; i++) {
            if (layers[i] < least || layers[i] >= next) continue;
            next = layers[i];
            if (ascends) { from = i + 1; break; }
        }
        if (next == layer) return 1;
        if (layer - next < interval) return 0;
        least = next + interval;
    }
}

TLI_IMPL int tl_keeps_layer(const tl_checkpoint_config *config, uint64_t layer) {
    const tl_policy *policy;
    uint64_t interval, n, times;
    TL_ASSERT(config);
    policy = &config->policy;
    interval = config->min_checkpoint_interval;
    if (policy->kind == TL_POLICY_KEEP_ALL) return 1;
    if (policy->kind == TL_POLICY_LAYERS)
        return policy->as.layers.list &&
               tli_selects(policy->as.layers.list, policy->as.layers.count, interval, layer);
    if (policy->kind != TL_POLICY_EVERY_N || !policy->as.every_n.interval) return 0;
    n = policy->as.every_n.interval;  // the distance of kept layers is its least multiple that is large enough
    times = interval / n + (interval % n != 0);
    if (!tli_mul_u64(n, times ? times : 1, &interval)) return !layer;
    return layer % interval == 0;
}

// tl_keeps_layer for all layers, in O(layers + listed layers).
static void tli_keep_layers(const tl_checkpoint_config *config, uint8_t *kept, uint64_t layer_count) {
    const tl_policy *policy = &config->policy;
    uint64_t interval = config->min_checkpoint_interval, next = 0, i;
    int all = policy->kind == TL_POLICY_KEEP_ALL, spaced = policy->kind == TL_POLICY_EVERY_N;
    for (i = 0; i < layer_count; i++)
        kept[i] = (uint8_t)(all || (spaced && i % policy->as.every_n.interval == 0));
    if (policy->kind == TL_POLICY_LAYERS)
        for (i = 0; i < policy->as.layers.count; i++) kept[policy->as.layers.list[i]] = 1;
    for (i = 0; i < layer_count && !all; i++) {
        if (!kept[i]) continue;
        kept[i] = i >= next;
        if (kept[i] && !tli_add_u64(i, interval, &next)) next = UINT64_MAX;
    }
}

// -- plans from kept layers --

static uint64_t tli_count_layers(const tl_graph *graph) {
    int32_t id, last = -1;
    for (id = 0; id < graph->node_count; id++)
        if (graph->nodes[id].layer > last) last = graph->nodes[id].layer;
    return (uint64_t)((int64_t)last + 1);
}

#define TLI_ALWAYS_KEPT (-1)
#define TLI_NEVER_KEPT  (-2)

enum { TLI_ATTENTION = 1, TLI_FFN = 2, TLI_UNIT_SETS = 4 };  // bits of a set of units

// A graph as choices: what is kept or not. The first are the layers, each with its result and all else that
// follows it; for a fraction each inner tensor that the flags allow to drop is one more.
typedef struct tli_layers {
    tl_env         *env;
    tli_function    function;        // for error sentences
    const tl_graph *graph;
    const tli_budget *budget;        // a fraction stays within it, too; NULL = none
    uint64_t        count;           // of layers
    uint64_t        choice_count;
    uint64_t        min_interval;
    int32_t        *follows;         // [tensor_count] the choice with which it is kept, or TLI_ALWAYS_KEPT, ..
    int32_t        *choice_layers;   // [choice_count - count] the layer of an inner tensor
    uint8_t        *choice_units;    // [choice_count - count] its unit
    uint32_t        units;           // of all inner tensors that are choices
    uint8_t        *keep;            // [tensor_count] for tl_plan_kept_set
} tli_layers;

// The unit whose flag decides on a tensor; 0 = it is kept with its layer.
static uint32_t tli_find_flagged_unit(const tl_graph *graph, int32_t tensor, int is_inner) {
    const char *unit = tl_name_unit(graph, graph->outputs[tensor].node);
    if (!is_inner) return 0;
    return tli_same_text(unit, "attention") ? TLI_ATTENTION : tli_same_text(unit, "ffn") ? TLI_FFN : 0;
}

// Find the choice with which a tensor is kept. One is added for an inner tensor that a fraction may drop.
static int32_t tli_find_decider(tli_layers *layers, const tl_checkpoint_config *config, int32_t tensor,
                                int is_inner) {
    int32_t layer = layers->graph->nodes[layers->graph->outputs[tensor].node].layer;
    uint32_t unit = tli_find_flagged_unit(layers->graph, tensor, is_inner);
    uint64_t inner = layers->choice_count - layers->count;
    if (layer < 0) return TLI_ALWAYS_KEPT;
    if (!unit) return layer;
    if (!(unit == TLI_ATTENTION ? config->checkpoint_attention : config->checkpoint_ffn))
        return TLI_ALWAYS_KEPT;
    if (config->policy.kind != TL_POLICY_FRACTION) return TLI_NEVER_KEPT;
    if (layers->choice_count > INT32_MAX) return layer;  // more than there is memory for
    layers->choice_layers[inner] = layer;
    layers->choice_units[inner] = (uint8_t)unit;
    layers->units |= unit;
    return (int32_t)layers->choice_count++;
}

static void tli_free_layers(tli_layers *layers) {
    tli_release(layers->env, layers->follows);
    tli_release(layers->env, layers->choice_layers);
    tli_release(layers->env, layers->choice_units);
    tli_release(layers->env, layers->keep);
    layers->follows = layers->choice_layers = NULL;
    layers->choice_units = layers->keep = NULL;
}

// Start with a graph that was checked; release with tli_free_layers, also after an error.
static tl_result tli_init_layers(tl_env *env, tli_layers *layers, tli_function function, const tl_graph *graph,
                                 const tl_checkpoint_config *config) {
    enum { READ_INSIDE = 1, READ_OUTSIDE = 2 };
    uint64_t tensors = (uint64_t)graph->tensor_count;
    int32_t id, i;
    tli_zero(layers, sizeof *layers);
    layers->env = env;
    layers->function = function;
    layers->graph = graph;
    layers->count = layers->choice_count = tli_count_layers(graph);
    layers->min_interval = config->min_checkpoint_interval;
    layers->follows = (int32_t *)tli_alloc_array(env, tensors, sizeof *layers->follows);
    layers->choice_layers = (int32_t *)tli_alloc_array(env, tensors, sizeof *layers->choice_layers);
    layers->choice_units = (uint8_t *)tli_alloc_array(env, tensors, 1);
    layers->keep = (uint8_t *)tli_alloc_array(env, tensors, 1);
    if (!layers->follows || !layers->choice_layers || !layers->choice_units || !layers->keep)
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_LAYERS));
    for (id = 0; id < graph->node_count; id++) {  // until the next loop, keep[] holds READ_ flags
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            int same = graph->nodes[graph->outputs[tensor].node].layer == node->layer;
            layers->keep[tensor] |= (uint8_t)(same ? READ_INSIDE : READ_OUTSIDE);
        }
    }
    for (i = 0; i < graph->tensor_count; i++)
        layers->follows[i] = tli_find_decider(layers, config, i, layers->keep[i] == READ_INSIDE);
    return TL_OK;
}

static tl_result tli_plan_layers(tli_layers *layers, const uint8_t *kept, tl_plan *plan) {
    int32_t i;
    for (i = 0; i < layers->graph->tensor_count; i++) {
        int32_t choice = layers->follows[i];
        layers->keep[i] = choice >= 0 ? kept[choice] : choice == TLI_ALWAYS_KEPT;
    }
    return tl_plan_kept_set(layers->env, layers->graph, layers->keep, plan);
}

// -- search of fractions --
//
// It looks for the cheapest kept set whose peak is within a limit.

#define TLI_EXHAUSTIVE_CHOICES 12
#define TLI_SPACED_PLANS 4096    // plans that measure segments: enough for 90 layers without a minimal interval
#define TLI_SEGMENT_LAYERS 256   // if the minimal interval makes them longer, no segments are measured
#define TLI_SEGMENT_LABELS 128   // labels of one place

// The layers from one kept layer to the next. Bytes are relative to the live bytes at its start.
typedef struct tli_segment {
    uint64_t peak;   // highest live bytes during its forwards and backwards; UINT64_MAX = not measured
    uint64_t grown;  // live bytes at its end, modulo 2^64
    uint64_t cost;   // cost of its repeated forwards
} tli_segment;

// A choice of kept layers up to a place.
typedef struct tli_label {
    uint64_t bytes, cost;    // live bytes at the place; cost of repeated forwards below it
    uint32_t place;          // of the label that it extends, where its last segment begins
    uint16_t number;         // of that label among those of its place
    uint16_t dropped;        // units whose inner tensors the last segment drops
} tli_label;

typedef struct tli_search {
    tli_layers  *layers;
    uint64_t     limit;       // of the peak
    int          is_budget;   // 1 = the limit is that of layers->budget, not the fraction
    uint64_t     base_cost;   // lower bound on the cost of every plan
    uint64_t     peak, cost;  // of the last plan tried
    uint64_t     best_cost;   // least cost of the plans within the limit, if found
    uint64_t     least_peak;  // of all plans tried
    int          found;       // 1 = a plan within the limit was found
    uint8_t     *kept, *best, *least;  // [choice_count] being tried; cheapest within the limit; of least peak
    uint8_t     *start;       // [choice_count] to be filled up

    // For more than TLI_EXHAUSTIVE_CHOICES choices. Place 0 is before the first layer, place l + 1 is
    // layer l, and one more place is behind the last: a segment goes from place p to place p +
    // length.
    uint64_t     width;       // longest segment measured
    int          useful;      // 1 = a segment of the length being measured may be part of the answer
    uint64_t     start_bytes;   // live bytes at place 0
    tli_segment *segments;    // [units dropped][count + 1][width] by first place and length - 1
    tli_segment *now;         // [count + 1] of the plan being measured
    uint64_t    *starts;      // [count + 1] live bytes at their starts
    uint64_t    *segment_of;  // [count] the segment of a layer
    uint8_t     *dropped;     // [count] units whose inner tensors the layer drops
    uint64_t    *keys;        // [2 * choice_count] scratch of tli_rank_choices
    int32_t     *ranks;       // [choice_count] choices in the order in which to keep them
    tli_label   *labels;      // [count + 2][TLI_SEGMENT_LABELS] by place; bytes ascend, costs descend
    uint64_t    *label_counts;  // [count + 2] labels of a place
} tli_search;

static int tli_is_spaced(const uint8_t *kept, uint64_t count, uint64_t min_interval) {
    uint64_t next = 0, i;
    for (i = 0; i < count; i++) {
        if (!kept[i]) continue;
        if (i < next) return 0;
        if (!tli_add_u64(i, min_interval, &next)) next = UINT64_MAX;
    }
    return 1;
}

static tl_result tli_fail_search(tli_search *search) {
    const tli_layers *layers = search->layers;
    return tli_fail(layers->env, TL_ERROR_NO_MEMORY, layers->function, TLI_RULE(NO_MEMORY_FOR_SEARCH));
}

// Plan search->kept and record it if it is the cheapest within the limit so far, or has the least peak. The
// caller releases the plan.
static tl_result tli_try_plan(tli_search *search, tl_plan *plan) {
    size_t count = (size_t)search->layers->choice_count;
    tl_result result = tli_plan_layers(search->layers, search->kept, plan);
    if (result) return result;
    search->peak = plan->peak_bytes;
    search->cost = plan->cost;
    if (search->peak < search->least_peak) {
        search->least_peak = search->peak;
        tli_copy(search->least, search->kept, count);
    }
    if (search->peak <= search->limit && (!search->found || search->cost < search->best_cost)) {
        search->found = 1;
        search->best_cost = search->cost;
        tli_copy(search->best, search->kept, count);
    }
    return TL_OK;
}

static tl_result tli_try_kept(tli_search *search) {
    tl_plan plan;
    tl_result result = tli_try_plan(search, &plan);
    tl_free_plan(search->layers->env, &plan);
    return result;
}

// Try all kept sets, from keeping everything on, except those that break the minimal interval or cannot be
// cheaper than the best; where there are too many, those of the layers, without inner tensors.
// A kept set runs again at least what any larger set runs again, so its cost is at least that of
// each set with one more choice.
static tl_result tli_search_all(tli_search *search) {
    uint64_t choices = search->layers->choice_count;
    uint32_t count = (uint32_t)(choices <= TLI_EXHAUSTIVE_CHOICES ? choices : search->layers->count);
    uint32_t sets = (uint32_t)1 << count, dropped, i;
    uint64_t *costs = (uint64_t *)tli_alloc_array(search->layers->env, sets, sizeof *costs);
    tl_result result = TL_OK;
    if (!costs) return tli_fail_search(search);
    tli_zero(search->kept, (size_t)choices);
    for (dropped = 0; dropped < sets && !result; dropped++) {
        for (i = 0; i < count; i++) {
            uint32_t one_more = dropped & ~((uint32_t)1 << i);  // choice i kept, too
            search->kept[i] = one_more == dropped;
            if (costs[one_more] > costs[dropped]) costs[dropped] = costs[one_more];
        }
        if (search->found && costs[dropped] >= search->best_cost) continue;
        if (!tli_is_spaced(search->kept, search->layers->count, search->layers->min_interval)) continue;
        result = tli_try_kept(search);
        costs[dropped] = search->cost;
    }
    tli_release(search->layers->env, costs);
    return result;
}

// -- search over segments --
//
// For more choices, evenly spaced kept sets are planned, with the inner tensors of all units, of one kind or of
// none kept, and each segment is measured in one of them. On a chain, the bytes, peak and cost of a segment
// depend on its two ends only, so a search over labels (bytes, cost) by place finds the best combination of
// measured segments. Single layers and inner tensors are kept beside it, and exchanged, as far as they fit.

// Whether a set of units is one of those of which the search drops the inner tensors.
static int tli_is_unit_set(const tli_search *search, uint32_t dropped) {
    return (dropped & ~search->layers->units) == 0;
}

// The segments of a first place, by length - 1.
static tli_segment *tli_segments_from(const tli_search *search, uint32_t dropped, uint64_t first) {
    return search->segments + (dropped * (search->layers->count + 1) + first) * search->width;
}

// In search->kept, keep the inner tensors of the units that search->dropped does not name, and no others.
static void tli_keep_inner(tli_search *search) {
    const tli_layers *layers = search->layers;
    uint8_t *kept = search->kept + layers->count;
    uint64_t k;
    for (k = 0; k < layers->choice_count - layers->count; k++)
        kept[k] = !(search->dropped[layers->choice_layers[k]] & layers->choice_units[k]);
}

// Replay the plan of search->kept and measure its segments. A node without a layer belongs to the
// segment before it.
static tl_result tli_replay_segments(tli_search *search, const tl_plan *plan, uint64_t segment_count) {
    const tl_graph *graph = search->layers->graph;
    uint64_t current = 0, reached = 0;
    int32_t i;
    tli_sim sim;
    tl_result result = tli_init_sim(search->layers->env, &sim, search->layers->function, graph, NULL, plan,
                                    NULL);
    search->starts[0] = search->start_bytes = sim.live_bytes;
    for (i = 0; i < plan->step_count && !result; i++) {
        const tl_step *step = &plan->steps[i];
        const tl_node *node = &graph->nodes[step->node];
        int again = step->kind <= TL_STEP_BACKWARD && sim.nodes[step->node].ran;
        if (step->kind <= TL_STEP_BACKWARD && node->layer >= 0) current = search->segment_of[node->layer];
        while (reached < current) search->starts[++reached] = sim.live_bytes;
        result = tli_sim_step(&sim, step);
        if (sim.step_bytes > search->starts[current]) {
            uint64_t peak = sim.step_bytes - search->starts[current];
            if (peak > search->now[current].peak) search->now[current].peak = peak;
        }
        if (again && step->kind < TL_STEP_BACKWARD) search->now[current].cost += node->fwd_cost;
    }
    for (; reached + 1 < segment_count; reached++) search->starts[reached + 1] = search->starts[reached];
    tli_free_sim(&sim);
    return result;
}

// Plan and replay search->kept, and store its segments in the table.
static tl_result tli_measure_segments(tli_search *search, uint64_t spacing, uint32_t dropped) {
    uint64_t count = search->layers->count, segment_count = 1, first = 0, k, l;
    tl_plan plan;
    tl_result result = tli_try_plan(search, &plan);
    tli_zero(search->now, (size_t)(count + 1) * sizeof *search->now);
    for (l = 0; l < count; l++) {
        search->segment_of[l] = segment_count - 1;
        segment_count += search->kept[l];
    }
    if (!result) result = tli_replay_segments(search, &plan, segment_count);
    tl_free_plan(search->layers->env, &plan);
    for (k = 0; k < segment_count && !result; k++) {
        uint64_t last = first + 1, bound = search->found ? search->limit : search->least_peak;
        tli_segment *segment = &search->now[k];
        while (last <= count && !search->kept[last - 1]) last++;
        if (k + 1 < segment_count) segment->grown = search->starts[k + 1] - search->starts[k];
        if (last - first == spacing)
            search->useful |= segment->peak <= bound && search->start_bytes <= bound - segment->peak &&
                              (!search->found || segment->cost < search->best_cost - search->base_cost);
        if (last - first <= search->width) {
            tli_segment *entry = tli_segments_from(search, dropped, first) + (last - first - 1);
            if (entry->peak == UINT64_MAX) *entry = *segment;
        }
        first = last;
    }
    return result;
}

static tl_result tli_measure_spaced(tli_search *search, uint64_t spacing, uint64_t offset) {
    uint32_t dropped;
    uint64_t l;
    tl_result result = TL_OK;
    for (l = 0; l < search->layers->count; l++) search->kept[l] = l >= offset && (l - offset) % spacing == 0;
    for (dropped = 0; dropped < TLI_UNIT_SETS && !result; dropped++) {
        if (!tli_is_unit_set(search, dropped)) continue;
        for (l = 0; l < search->layers->count; l++) search->dropped[l] = (uint8_t)dropped;
        tli_keep_inner(search);
        result = tli_measure_segments(search, spacing, dropped);
    }
    return result;
}

// Add a label unless another one has no more bytes and no more cost; labels that it beats in both
// are removed. A full list is thinned to every other label first, keeping the first and the last.
static void tli_add_label(tli_label *labels, uint64_t *count, tli_label label) {
    uint64_t i, j;
    if (*count == TLI_SEGMENT_LABELS) {
        for (i = j = 1; i < *count; i += 2) labels[j++] = labels[i];
        *count = j;
    }
    for (i = *count; i > 0 && labels[i - 1].bytes > label.bytes;) i--;
    if (i > 0 && labels[i - 1].cost <= label.cost) return;
    if (i > 0 && labels[i - 1].bytes == label.bytes) i--;
    for (j = i; j < *count && labels[j].cost >= label.cost;) j++;
    if (j == i) {
        for (j = (*count)++; j > i; j--) labels[j] = labels[j - 1];
        labels[i] = label;
        return;
    }
    labels[i] = label;
    for (i++; j < *count;) labels[i++] = labels[j++];
    *count = i;
}

// Extend the labels of the place where a segment begins.
static void tli_label_segment(tli_search *search, uint64_t limit, int by_cost, const tli_segment *segment,
                              tli_label label, uint64_t place) {
    uint64_t number, from = label.place;
    for (number = 0; number < search->label_counts[from]; number++) {
        const tli_label *before = &search->labels[from * TLI_SEGMENT_LABELS + number];
        // later labels have more bytes
        if (before->bytes > limit || segment->peak > limit - before->bytes) break;
        label.bytes = before->bytes + segment->grown;
        label.cost = before->cost + (by_cost ? segment->cost : 0);
        label.number = (uint16_t)number;
        if (by_cost && search->found && label.cost >= search->best_cost - search->base_cost) continue;
        tli_add_label(search->labels + place * TLI_SEGMENT_LABELS, &search->label_counts[place], label);
    }
}

static void tli_label_place(tli_search *search, uint64_t limit, int by_cost, uint64_t place) {
    uint64_t length;
    uint32_t dropped;
    search->label_counts[place] = 0;
    for (length = 1; length <= search->width && length <= place; length++)
        for (dropped = 0; dropped < TLI_UNIT_SETS; dropped++) {
            const tli_segment *segment;
            tli_label label;
            if (!tli_is_unit_set(search, dropped)) continue;
            segment = tli_segments_from(search, dropped, place - length) + (length - 1);
            if (segment->peak == UINT64_MAX) continue;
            tli_zero(&label, sizeof label);
            label.place = (uint32_t)(place - length);
            label.dropped = (uint16_t)dropped;
            tli_label_segment(search, limit, by_cost, segment, label, place);
        }
}

// Find the cheapest combination of segments within the limit and write its kept set to
// search->kept. 0 if none costs less than the best plan found. With by_cost 0 costs are ignored: 0
// if none is within the limit.
static int tli_label_segments(tli_search *search, uint64_t limit, int by_cost) {
    uint64_t behind = search->layers->count + 1, place, number, l;
    tli_zero(search->labels, sizeof *search->labels);
    search->labels[0].bytes = search->start_bytes;
    search->label_counts[0] = 1;
    for (place = 1; place <= behind; place++) tli_label_place(search, limit, by_cost, place);
    if (!search->label_counts[behind]) return 0;
    tli_zero(search->kept, (size_t)search->layers->count);
    for (place = behind, number = search->label_counts[behind] - 1; place > 0;) {
        const tli_label *label = &search->labels[place * TLI_SEGMENT_LABELS + number];
        if (place < behind) search->kept[place - 1] = 1;
        for (l = label->place; l < place && l + 1 < behind; l++) search->dropped[l] = (uint8_t)label->dropped;
        place = label->place;
        number = label->number;
    }
    tli_keep_inner(search);
    return 1;
}

// Measure every offset of every spacing from least_spacing to search->width, until no segment of a length
// can improve the best plan; combining the segments after each power of two may improve that plan. If all
// spacings up to search->width were useful, measure growing ones at offset 0, too.
static tl_result tli_measure_all(tli_search *search, uint64_t least_spacing) {
    uint64_t count = search->layers->count, spacing = least_spacing, offset;
    tl_result result = TL_OK;
    for (search->useful = 1; spacing <= search->width && search->useful && !result; spacing++) {
        search->useful = 0;
        for (offset = 0; offset < spacing && !result; offset++)
            result = tli_measure_spaced(search, spacing, offset);
        if (!result && !(spacing & (spacing - 1)) && tli_label_segments(search, search->limit, 1))
            result = tli_try_kept(search);
    }
    if (!search->useful) return result;
    for (; spacing <= count + 1 && !result; spacing += spacing / 8 + 1)
        result = tli_measure_spaced(search, spacing, 0);
    return result;
}

// Find, by bisection, the least limit with a combination of segments, and try its plan.
static tl_result tli_search_least(tli_search *search) {
    uint64_t below = 0, within = search->least_peak;
    if (!tli_label_segments(search, within, 0)) return TL_OK;
    while (below < within) {
        uint64_t middle = below + (within - below) / 2;
        if (tli_label_segments(search, middle, 0)) within = middle; else below = middle + 1;
    }
    tli_label_segments(search, within, 0);
    return tli_try_kept(search);
}

// Order choices by the bytes that they hold for what it costs to make them again, least first.
static void tli_rank_choices(tli_search *search) {
    const tli_layers *layers = search->layers;
    const tl_graph *graph = layers->graph;
    uint64_t *costs = search->keys + layers->choice_count, sum;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        int32_t choice = layers->follows[i];
        if (choice < 0) continue;
        search->keys[choice] += graph->outputs[i].bytes;
        if (i == node->first_output)
            costs[choice] = tli_add_u64(costs[choice], node->fwd_cost, &sum) ? sum : UINT64_MAX;
    }
    for (i = 0; i < (int32_t)layers->choice_count; i++)
        search->keys[i] = tli_fixed_ratio(search->keys[i], costs[i]);
    tli_sort_numbers(search->ranks, (int32_t)layers->choice_count, search->keys);
}

// Keep more choices beside search->start, as far as they fit, in the order of the ranks. tries: plans left.
static tl_result tli_fill_choices(tli_search *search, uint64_t *tries) {
    const tli_layers *layers = search->layers;
    uint64_t k;
    tl_result result = TL_OK;
    for (k = 0; k < layers->choice_count && *tries && search->best_cost > search->base_cost && !result; k++) {
        int32_t choice = search->ranks[k];
        if (search->start[choice]) continue;
        tli_copy(search->kept, search->start, (size_t)layers->choice_count);
        search->kept[choice] = 1;
        if (!tli_is_spaced(search->kept, layers->count, layers->min_interval)) continue;
        result = tli_try_kept(search);
        if (!result && search->peak <= search->limit) search->start[choice] = 1;
        --*tries;
    }
    return result;
}

// Change one choice of the set of the least peak, as long as that lowers the peak and none is within the limit.
static tl_result tli_lower_least(tli_search *search) {
    const tli_layers *layers = search->layers;
    const uint64_t count = layers->choice_count;
    uint64_t tries = TLI_SPACED_PLANS, k;
    tl_result result = TL_OK;
    for (k = 0; k < count && tries && !search->found && !result; k++) {
        uint64_t before = search->least_peak;
        tli_copy(search->kept, search->least, (size_t)count);
        search->kept[k] = !search->kept[k];
        if (!tli_is_spaced(search->kept, layers->count, layers->min_interval)) continue;
        result = tli_try_kept(search);
        if (search->least_peak < before) k = UINT64_MAX;  // from the first on again
        tries--;
    }
    return result;
}

// Fill up the best set. Where inner tensors are choices, fill up that of the least peak as well; then leave out
// one choice of the best set, the one that holds most bytes for its cost first, and fill up what is left, as
// long as that makes it cheaper.
static tl_result tli_improve_choices(tli_search *search) {
    const uint64_t count = search->layers->choice_count;
    uint64_t tries = TLI_SPACED_PLANS, k;
    tl_result result;
    tli_copy(search->start, search->best, (size_t)count);
    result = tli_fill_choices(search, &tries);
    if (!search->layers->units) return result;
    if (!result) tli_copy(search->start, search->least, (size_t)count);
    if (!result) result = tli_fill_choices(search, &tries);
    for (k = count; k-- > 0 && tries && search->best_cost > search->base_cost && !result;) {
        uint64_t before = search->best_cost;
        int32_t choice = search->ranks[k];
        if (!search->best[choice]) continue;
        tli_copy(search->start, search->best, (size_t)count);
        search->start[choice] = 0;
        result = tli_fill_choices(search, &tries);
        if (search->best_cost < before) k = count;
    }
    return result;
}

static tl_result tli_run_segments(tli_search *search, uint64_t least_spacing) {
    uint64_t limit = search->limit;
    int round;
    tl_result result = tli_measure_all(search, least_spacing);
    for (round = 0; round < 8 && !result && tli_label_segments(search, limit, 1); round++) {
        result = tli_try_kept(search);
        if (search->peak <= search->limit || search->peak - search->limit > limit) break;
        limit -= search->peak - search->limit;  // not a chain: bytes also depend on other segments
    }
    if (!result && !search->found) result = tli_search_least(search);
    if (!result && search->layers->units) result = tli_lower_least(search);
    if (!result && search->found) result = tli_improve_choices(search);
    return result;
}

static tl_result tli_search_segments(tli_search *search) {
    tl_env *env = search->layers->env;
    uint64_t count = search->layers->count, spacing = search->layers->min_interval, plans = 0, entries, i;
    uint64_t sets = 0;
    tl_result result = TL_OK;
    for (i = 0; i < TLI_UNIT_SETS; i++) sets += (uint64_t)tli_is_unit_set(search, (uint32_t)i);
    if (spacing < 1) spacing = 1;
    if (spacing > count + 1) spacing = count + 1;
    search->width = spacing - 1;
    while (search->width <= count && plans + sets * search->width < TLI_SPACED_PLANS)
        plans += sets * ++search->width;
    if (search->width > TLI_SEGMENT_LAYERS) search->width = 0;
    if (!tli_mul_u64((search->layers->units + 1) * (count + 1), search->width, &entries)) entries = UINT64_MAX;
    search->segments = (tli_segment *)tli_alloc_array(env, entries, sizeof(tli_segment));
    search->now = (tli_segment *)tli_alloc_array(env, count + 1, sizeof(tli_segment));
    search->starts = (uint64_t *)tli_alloc_array(env, count + 1, sizeof(uint64_t));
    search->segment_of = (uint64_t *)tli_alloc_array(env, count, sizeof(uint64_t));
    search->dropped = (uint8_t *)tli_alloc_array(env, count, 1);
    search->keys = (uint64_t *)tli_alloc_array(env, 2 * search->layers->choice_count, sizeof(uint64_t));
    search->ranks = (int32_t *)tli_alloc_array(env, search->layers->choice_count, sizeof(int32_t));
    search->labels = (tli_label *)tli_alloc_array(env, (count + 2) * TLI_SEGMENT_LABELS, sizeof(tli_label));
    search->label_counts = (uint64_t *)tli_alloc_array(env, count + 2, sizeof(uint64_t));
    if (!search->segments || !search->now || !search->starts || !search->segment_of || !search->dropped ||
        !search->keys || !search->ranks || !search->labels || !search->label_counts)
        result = tli_fail_search(search);
    for (i = 0; i < entries && !result; i++) search->segments[i].peak = UINT64_MAX;
    if (!result) tli_rank_choices(search);
    if (!result) result = tli_run_segments(search, spacing);
    tli_release(env, search->segments);
    tli_release(env, search->now);
    tli_release(env, search->starts);
    tli_release(env, search->segment_of);
    tli_release(env, search->dropped);
    tli_release(env, search->keys);
    tli_release(env, search->ranks);
    tli_release(env, search->labels);
    tli_release(env, search->label_counts);
    return result;
}

// Fail with "no kept set has a peak of at most 12 bytes, the least found is 34, at node 3 (conv1)".
static tl_result tli_fail_fraction(tli_search *search) {
    tl_env *env = search->layers->env;
    const tli_budget *budget = search->layers->budget;
    tl_simulate_desc desc;
    tl_plan plan;
    tl_report report;
    tli_sentence s;
    int32_t node = -1;
    tl_result result = tli_plan_layers(search->layers, search->least, &plan);
    if (result) return result;
    tli_zero(&desc, sizeof desc);
    desc.graph = search->layers->graph;
    desc.plan = &plan;
    result = tl_simulate_plan(env, &desc, &report);
    if (!result && report.peak_step >= 0) node = plan.steps[report.peak_step].node;
    tl_free_plan(env, &plan);
    if (result) return result;
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, search->layers->function,
                        TLI_RULE(NO_KEPT_SET_HAS_PEAK_OF_AT_MOST_BYTES),
                        search->is_budget ? tli_add_base(budget, search->limit) : search->limit,
                        search->is_budget ? tli_add_base(budget, search->least_peak) : search->least_peak);
    tli_put_limit(env, &s, search->is_budget ? budget->limit : TL_LIMIT_FRACTION);
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT && node >= 0) {
        tli_put(&s.text, ", at node ");
        tli_put_named(&s.text, node, tl_name_node(search->layers->graph, node));
    }
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

static uint64_t tli_take_fraction(uint64_t bytes, double fraction) {
    volatile double product = (double)bytes * fraction;  // rounded to a double on every machine
    return product >= (double)bytes ? bytes : (uint64_t)product;
}

static tl_result tli_find_fraction(tli_layers *layers, double fraction, uint8_t *kept) {
    tl_env *env = layers->env;
    size_t count = (size_t)layers->choice_count;
    tli_search search;
    tl_plan all;
    tl_result result = tl_plan_keep_all(env, layers->graph, 0, &all);
    if (result) return result;
    tli_zero(&search, sizeof search);
    search.layers = layers;
    search.limit = tli_take_fraction(all.peak_bytes, fraction);
    search.is_budget = layers->budget && layers->budget->bytes < search.limit;
    if (search.is_budget) search.limit = layers->budget->bytes;
    search.base_cost = all.cost;
    search.least_peak = UINT64_MAX;
    tl_free_plan(env, &all);
    search.kept = (uint8_t *)tli_alloc_array(env, 4 * layers->choice_count, 1);
    if (!search.kept)
        return tli_fail(env, TL_ERROR_NO_MEMORY, layers->function, TLI_RULE(NO_MEMORY_FOR_SEARCH));
    search.best = search.kept + count;
    search.least = search.best + count;
    search.start = search.least + count;
    if (layers->count <= TLI_EXHAUSTIVE_CHOICES) result = tli_search_all(&search);
    if (!result && count > TLI_EXHAUSTIVE_CHOICES) result = tli_search_segments(&search);
    if (!result && search.found) tli_copy(kept, search.best, count);
    else if (!result) result = tli_fail_fraction(&search);
    tli_release(env, search.kept);
    return result;
}

// -- plans of configs and their effect --

// Check the graph and the config, and find the layers; release with tli_free_layers, also after an
// error.
static tl_result tli_open_config(tl_env *env, tli_layers *layers, tli_function function, const tl_graph *graph,
                                 const tl_checkpoint_config *config, const tli_budget *budget) {
    tl_result result = tl_check_graph(env, graph);
    tli_zero(layers, sizeof *layers);
    layers->env = env;
    if (!result) result = tl_check_checkpoint_config(env, config, tli_count_layers(graph));
    if (!result && config->policy.kind != TL_POLICY_KEEP_ALL && !tli_count_layers(graph))
        result = tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(GRAPH_NO_NODE_CARRIES_LAYER_NUMBER));
    if (!result) result = tli_init_layers(env, layers, function, graph, config);
    layers->budget = budget;
    return result;
}

// kept: [choice_count]
static tl_result tli_find_kept(tli_layers *layers, const tl_checkpoint_config *config, uint8_t *kept) {
    if (config->policy.kind == TL_POLICY_FRACTION)
        return tli_find_fraction(layers, config->policy.as.fraction.memory_fraction, kept);
    tli_keep_layers(config, kept, layers->count);
    return TL_OK;
}

static tl_result tli_check_layer_count(tl_env *env, tli_function function, const tl_graph *graph,
                                       uint64_t layer_count) {
    uint64_t count = tli_count_layers(graph);
    return layer_count == count ? TL_OK
         : tli_fail_values(env, TL_ERROR_INVALID_ARG, function,
                           TLI_RULE(LAYER_COUNT_MUST_BE_THAT_OF_GRAPH), count, 0);
}

// tli_find_kept into memory of the env, to be released also after an error.
static tl_result tli_choose_kept(tli_layers *layers, const tl_checkpoint_config *config, uint8_t **kept) {
    *kept = (uint8_t *)tli_alloc_array(layers->env, layers->choice_count, 1);
    if (*kept) return tli_find_kept(layers, config, *kept);
    return tli_fail(layers->env, TL_ERROR_NO_MEMORY, layers->function, TLI_RULE(NO_MEMORY_FOR_KEPT_LAYERS));
}

TLI_IMPL tl_result tl_find_kept_layers(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                       uint8_t *kept, uint64_t layer_count) {
    tli_layers layers;
    uint8_t *choices = NULL;
    tl_result result;
    TL_ASSERT(graph && config && (kept || !layer_count));
    tli_zero(kept, (size_t)layer_count);
    result = tli_open_config(env, &layers, TLI_IN(FIND_KEPT_LAYERS), graph, config, NULL);
    if (!result) result = tli_check_layer_count(env, TLI_IN(FIND_KEPT_LAYERS), graph, layer_count);
    if (!result) result = tli_choose_kept(&layers, config, &choices);
    if (!result) tli_copy(kept, choices, (size_t)layer_count);
    tli_release(env, choices);
    tli_free_layers(&layers);
    return result;
}

static tl_result tli_plan_config(tl_env *env, tli_function function, const tl_graph *graph,
                                 const tl_checkpoint_config *config, const tli_budget *budget, tl_plan *plan,
                                 uint64_t *kept_count) {
    tli_layers layers;
    uint8_t *kept = NULL;
    uint64_t i;
    tl_result result = tli_open_config(env, &layers, function, graph, config, budget);
    *kept_count = 0;
    if (!result) result = tli_choose_kept(&layers, config, &kept);
    for (i = 0; i < layers.count && kept && !result; i++) *kept_count += kept[i];
    if (!result)
        result = config->policy.kind == TL_POLICY_KEEP_ALL ? tl_plan_keep_all(env, graph, 0, plan)
                                                             : tli_plan_layers(&layers, kept, plan);
    tli_release(env, kept);
    tli_free_layers(&layers);
    return result;
}

// The plan of a config; that of a fraction stays within a budget, too, where there is one.
static tl_result tli_plan_checkpoints(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                      const tli_budget *budget, tl_plan *plan) {
    uint64_t kept_count;
    tli_zero(plan, sizeof *plan);
    return tli_plan_config(env, TLI_IN(PLAN_CHECKPOINTS), graph, config, budget, plan, &kept_count);
}

TLI_IMPL tl_result tl_plan_checkpoints(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                       tl_plan *plan) {
    tl_places_desc places;
    tl_result result;
    TL_ASSERT(graph && config && plan);
    result = tli_plan_checkpoints(env, graph, config, NULL, plan);
    if (result) return result;
    tli_zero(&places, sizeof places);
    places.graph = graph;
    result = tl_plan_places(env, &places, plan, NULL);
    if (result) tl_free_plan(env, plan);
    return result;
}

static tl_result tli_measure_config(tl_env *env, const tl_graph *graph, const tl_checkpoint_config *config,
                                    tl_checkpoint_effect *effect) {
    tl_plan plan, all;
    uint64_t kept_count;
    tl_result result;
    tli_zero(&plan, sizeof plan);
    tli_zero(&all, sizeof all);
    result = tli_plan_config(env, TLI_IN(MEASURE_CHECKPOINTS), graph, config, NULL, &plan, &kept_count);
    if (!result) result = tl_plan_keep_all(env, graph, 0, &all);
    if (!result) {
        double peak = (double)plan.peak_bytes, all_peak = (double)all.peak_bytes;
        effect->peak_bytes = plan.peak_bytes;
        effect->keep_all_peak_bytes = all.peak_bytes;
        effect->memory_savings_ratio = all.peak_bytes ? 1.0 - peak / all_peak : 0.0;
        effect->compute_overhead_ratio = plan.base_cost ? (double)plan.cost / (double)plan.base_cost : 1.0;
        effect->kept_count = kept_count;
    }
    tl_free_plan(env, &plan);
    tl_free_plan(env, &all);
    return result;
}

// Make a chain of layers of one byte whose backward costs twice the forward.
static tl_result tli_add_equal_layers(tl_env *env, tl_graph *graph, uint64_t layer_count) {
    const tli_function function = TLI_IN(MEASURE_CHECKPOINTS);
    tl_chain_desc desc;
    uint64_t *costs, i;
    tl_result result;
    if (layer_count >= INT32_MAX)
        return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(LAYER_COUNT_MUST_BE_BELOW_2_31_1));
    costs = (uint64_t *)tli_alloc_array(env, layer_count, sizeof *costs);
    if (!costs) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_LAYERS));
    for (i = 0; i < layer_count; i++) costs[i] = 2;
    tli_zero(&desc, sizeof desc);
    desc.layer_count = (int32_t)layer_count;
    desc.input_bytes = 1;
    desc.bwd_costs = costs;
    result = tl_add_chain(env, graph, &desc);
    tli_release(env, costs);
    return result;
}

TLI_IMPL tl_result tl_measure_checkpoints(tl_env *env, const tl_graph *graph, uint64_t layer_count,
                                          const tl_checkpoint_config *config, tl_checkpoint_effect *effect) {
    tl_graph equal;
    tl_result result;
    TL_ASSERT(config && effect);
    tli_zero(effect, sizeof *effect);
    result = tl_check_checkpoint_config(env, config, layer_count);
    if (result) return result;
    tl_init_graph(&equal);
    if (!graph && layer_count) result = tli_add_equal_layers(env, &equal, layer_count);
    if (graph && layer_count) {
        result = tl_check_graph(env, graph);
        if (!result) result = tli_check_layer_count(env, TLI_IN(MEASURE_CHECKPOINTS), graph, layer_count);
    }
    if (!result && !graph && !layer_count) effect->compute_overhead_ratio = 1.0;  // nothing is recomputed
    else if (!result) result = tli_measure_config(env, graph ? graph : &equal, config, effect);
    tl_free_graph(env, &equal);
    return result;
}

#ifndef TL_NO_TEXT
// -- summary of configs --

// Write a ratio as a percentage with one digit after the point; NaN, inf and -inf as Rust writes
// them.
static void tli_put_percent(tli_writer *w, double ratio) {
    volatile double percent = ratio * 100.0;  // rounded to a double on every machine
    double value = percent;
    if (value != value) tli_put(w, "NaN");
    else if (value - value != 0.0) tli_put(w, value > 0.0 ? "inf" : "-inf");
    else tli_put_fixed(w, value, 1);
}

TLI_IMPL size_t tl_print_checkpoint_config(const tl_checkpoint_config *config, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_policy *policy;
    TL_ASSERT(config);
    policy = &config->policy;
    if (policy->kind == TL_POLICY_KEEP_ALL) {
        tli_put(&w, "No checkpointing");
    } else if (policy->kind == TL_POLICY_EVERY_N) {
        tli_put(&w, "Uniform checkpointing every ");
        tli_put_u64(&w, policy->as.every_n.interval);
        tli_put(&w, " layers");
    } else if (policy->kind == TL_POLICY_LAYERS) {
        tli_put(&w, "Selective checkpointing at ");
        tli_put_u64(&w, policy->as.layers.count);
        tli_put(&w, " layers");
    } else if (policy->kind == TL_POLICY_FRACTION) {
        tli_put(&w, "Dynamic checkpointing (");
        tli_put_u64(&w, policy->as.fraction.layer_count);
        tli_put(&w, " layers, ");
        tli_put_percent(&w, policy->as.fraction.memory_fraction);
        tli_put(&w, "% memory target)");
    }
    return tli_finish(&w);
}

// -- JSON of configs --
//
// As in serde_json, an enum value with fields is an object with one key, a value without fields is
// a string.

static const char *const tli_config_keys[] = {
    "strategy", "checkpoint_attention", "checkpoint_ffn", "min_checkpoint_interval"
};
static const char *const tli_interval_keys[] = { "interval" };
static const char *const tli_layers_keys[] = { "layers" };
static const char *const tli_fraction_keys[] = { "num_layers", "memory_fraction" };

// The names that the seed has for the policies of configs.
#define TLI_SEED_STRATEGIES 4
static const char *const tli_seed_strategies[] = { "None", "Uniform", "Selective", "Dynamic" };
static const uint8_t tli_seed_policies[] = {
    TL_POLICY_KEEP_ALL, TL_POLICY_EVERY_N, TL_POLICY_LAYERS, TL_POLICY_FRACTION
};

// "?" for a kind that no config carries out.
static const char *tli_name_seed_strategy(tl_policy_kind kind) {
    int32_t i = 0;
    while (i < TLI_SEED_STRATEGIES && (uint32_t)kind != tli_seed_policies[i]) i++;
    return tli_name(tli_seed_strategies, TLI_SEED_STRATEGIES, i);
}

static void tli_put_policy_fields(tli_writer *w, const tl_policy *policy) {
    double fraction;
    uint64_t i;
    if (policy->kind == TL_POLICY_EVERY_N) {
        tli_put(w, "\"interval\":");
        tli_put_u64(w, policy->as.every_n.interval);
    } else if (policy->kind == TL_POLICY_LAYERS) {
        tli_put(w, "\"layers\":[");
        for (i = 0; policy->as.layers.list && i < policy->as.layers.count; i++) {
            if (i) tli_put(w, ",");
            tli_put_u64(w, policy->as.layers.list[i]);
        }
        tli_put(w, "]");
    } else {
        fraction = policy->as.fraction.memory_fraction;
        tli_put(w, "\"num_layers\":");
        tli_put_u64(w, policy->as.fraction.layer_count);
        tli_put(w, ",\"memory_fraction\":");
        if (fraction - fraction != 0.0) tli_put(w, "null");  // NaN and infinities, as serde_json writes them
        else tli_put_f64(w, fraction);
    }
}

TLI_IMPL size_t tl_print_checkpoint_config_json(const tl_checkpoint_config *config, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_policy *policy;
    int has_fields;
    TL_ASSERT(config);
    policy = &config->policy;
    has_fields = policy->kind == TL_POLICY_EVERY_N || policy->kind == TL_POLICY_LAYERS ||
                 policy->kind == TL_POLICY_FRACTION;
    tli_put(&w, has_fields ? "{\"strategy\":{\"" : "{\"strategy\":\"");
    tli_put(&w, tli_name_seed_strategy(policy->kind));
    tli_put(&w, has_fields ? "\":{" : "\"");
    if (has_fields) { tli_put_policy_fields(&w, policy); tli_put(&w, "}}"); }
    tli_put(&w, ",\"checkpoint_attention\":");
    tli_put(&w, config->checkpoint_attention ? "true" : "false");
    tli_put(&w, ",\"checkpoint_ffn\":");
    tli_put(&w, config->checkpoint_ffn ? "true" : "false");
    tli_put(&w, ",\"min_checkpoint_interval\":");
    tli_put_u64(&w, config->min_checkpoint_interval);
    tli_put(&w, "}");
    return tli_finish(&w);
}

// Fail if a key of the object that ends here has not come.
static void tli_require_keys(tli_json *j, const char *const *keys, int32_t count, uint32_t seen) {
    int32_t i = 0;
    while (i < count && (seen >> i & 1)) i++;
    if (i < count) tli_json_fail_word(j, TLI_RULE(THERE_MUST_BE), keys[i]);
}

// Read an array of layers. It belongs to the config, also after an error.
static void tli_read_layers_json(tli_json *j, tl_checkpoint_config *config) {
    uint64_t *layers;
    int32_t count = 0, capacity = 0;
    tli_word unused;
    if (!tli_json_enter(j, '[')) return;
    while (tli_json_next(j, &unused)) {
        uint64_t layer = tli_json_u64(j);
        if (j->result) return;
        if (!tli_grow(j->env, &config->memory, &capacity, count, (int64_t)count + 1, sizeof layer)) {
            j->at = j->end;
            j->result = tli_fail(j->env, TL_ERROR_NO_MEMORY, j->function, TLI_RULE(NO_MEMORY_FOR_LAYERS));
            return;
        }
        layers = (uint64_t *)config->memory;
        layers[count++] = layer;
        config->policy.as.layers.list = layers;
        config->policy.as.layers.count = (uint64_t)count;
    }
}

static void tli_read_fields_json(tli_json *j, tl_checkpoint_config *config) {
    tl_policy *policy = &config->policy;
    int is_spaced = policy->kind == TL_POLICY_EVERY_N, is_listed = policy->kind == TL_POLICY_LAYERS;
    const char *const *keys = is_spaced ? tli_interval_keys : is_listed ? tli_layers_keys : tli_fraction_keys;
    int32_t count = is_spaced || is_listed ? 1 : 2, key;
    uint32_t seen = 0;
    if (!tli_json_enter(j, '{')) return;
    while ((key = tli_json_next_key(j, keys, count, &seen)) >= 0)
        if (is_spaced) policy->as.every_n.interval = tli_json_u64(j);
        else if (is_listed) tli_read_layers_json(j, config);
        else if (key == 0) policy->as.fraction.layer_count = tli_json_u64(j);
        else policy->as.fraction.memory_fraction = tli_json_f64(j);
    tli_require_keys(j, keys, count, seen);
}

// Read "None", {"None":null} or {"Uniform":{"interval":2}}.
static void tli_read_strategy_json(tli_json *j, tl_checkpoint_config *config) {
    tl_policy *policy = &config->policy;
    tli_word raw;
    int32_t at;
    if (tli_json_peek(j) == '"') {
        if (tli_json_name(j, tli_seed_strategies, TLI_SEED_STRATEGIES))    // 0 is None, and after an error
            tli_json_fail(j, TLI_RULE(THIS_STRATEGY_MUST_HAVE_ITS_FIELDS));
        return;
    }
    tli_zero(&raw, sizeof raw);
    if (!tli_json_enter(j, '{')) return;
    if (!tli_json_next(j, &raw)) { tli_json_fail(j, TLI_RULE(THERE_MUST_BE_STRATEGY)); return; }
    at = tli_json_find(raw, tli_seed_strategies, TLI_SEED_STRATEGIES);
    if (at < 0) {
        j->at = raw.text;
        tli_json_fail(j, TLI_RULE(UNKNOWN_NAME));
        return;
    }
    policy->kind = (tl_policy_kind)tli_seed_policies[at];
    if (policy->kind != TL_POLICY_KEEP_ALL) tli_read_fields_json(j, config);
    else if (tli_json_peek(j) != 'n' || !tli_json_literal(j, "null")) tli_json_fail(j, TLI_RULE(EXPECTED_NULL));
    if (tli_json_next(j, &raw)) tli_json_fail(j, TLI_RULE(THERE_MUST_BE_ONE_STRATEGY_ONLY));
}

TLI_IMPL tl_result tl_parse_checkpoint_config_json(tl_env *env, const char *text, size_t length,
                                                   tl_checkpoint_config *config) {
    uint32_t seen = 0;
    int32_t key;
    tli_json j;
    TL_ASSERT(config && (text || !length));
    tli_zero(config, sizeof *config);
    j = tli_json_open(env, TLI_IN(PARSE_CHECKPOINT_CONFIG_JSON), text ? text : "", length);
    if (tli_json_enter(&j, '{')) {
        while ((key = tli_json_next_key(&j, tli_config_keys, 4, &seen)) >= 0)
            if (key == 0) tli_read_strategy_json(&j, config);
            else if (key == 1) config->checkpoint_attention = tli_json_bool(&j);
            else if (key == 2) config->checkpoint_ffn = tli_json_bool(&j);
            else config->min_checkpoint_interval = tli_json_u64(&j);
        tli_require_keys(&j, tli_config_keys, 4, seen);
    }
    if (tli_json_end(&j)) tl_free_checkpoint_config(env, config);
    return j.result;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

