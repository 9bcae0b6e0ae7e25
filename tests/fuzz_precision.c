// clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_precision.c -o build/fuzz_precision && build/fuzz_precision -max_len=512 tests/corpus/fuzz_precision
//
// Bytes become one of three things. A graph with profiles, limits and schemes: what is planned keeps its limits, costs no
// less than its bound, applies to a graph that is valid, and prints; what is refused has a code, a sentence and nothing else.
// A bare choice: what is planned is what its replay says. Data of any bits: observers and quantisations take finite numbers
// only, and nothing that they answer is NaN. The same again is the same.

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/fuzz_bytes.h"

enum { NODES = 16, PROFILES = 3, SCHEMES = 6, NETS = 8, POINTS = 12 };

// Mostly a plain number from 0 to 2; else one of those that break rules.
static double next_number(reader *r) {
    static const double odd[] = { 0, 1e-300, 1e300, -1, 1e-12, 1e12, 3, 1 };
    uint32_t byte = next_byte(r);
    double huge = 1e308;
    if (byte < 236) return (double)byte / 117.0;
    if (byte < 252) return odd[byte % 8];
    return byte < 254 ? huge * 10 : huge * 10 - huge * 10;  // infinite, not a number
}

static float next_float(reader *r) {
    uint32_t bits = next_byte(r);
    float value;
    if (bits < 200) return ((float)bits - 100.0f) / 16.0f;
    bits = bits << 24 | next_byte(r) << 16 | next_byte(r) << 8 | next_byte(r);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int is_finite(double value) { return value - value == 0; }

// What a call that failed leaves behind.
static void must_be_refused(const tl_env *env, tl_result result, const void *output, size_t bytes) {
    const unsigned char *at = (const unsigned char *)output;
    size_t i;
    MUST(result == TL_ERROR_INVALID_ARG || result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW);
    MUST(env->error.code == result && strstr(env->error.text, ": "));
    for (i = 0; i < bytes; i++) MUST(!at[i]);
}

// -- a graph --

static int add_node(tl_graph *graph, reader *r) {
    static const char *const ops[] = { "conv2d", "linear+relu", "relu", "softmax", "add", "MatMul", "bn", "unknown" };
    tl_node_desc desc;
    tl_tensor inputs[3];
    uint64_t bytes[3];
    uint32_t shape = next_byte(r), flags = next_byte(r);
    memset(&desc, 0, sizeof desc);
    desc.op = !graph->node_count || shape >= 244 ? "input" : ops[flags & 7];
    next_tensors(r, graph, shape, &desc, inputs, bytes);
    desc.keep = flags >> 3 & 1;
    if (!strcmp(desc.op, "input")) return tl_add_node(NULL, graph, &desc, NULL) == TL_OK;
    desc.no_grad = flags >> 4 & flags >> 5 & 1;
    desc.needs = desc.no_grad ? "none" : desc.input_count ? "in,out" : "out";
    desc.fwd_cost = next_amount(r);
    if (!desc.no_grad) desc.bwd_cost = next_amount(r);
    if (flags & 64) desc.param_bytes = next_amount(r);
    if (flags & 128) desc.fwork_bytes = next_amount(r);
    return tl_add_node(NULL, graph, &desc, NULL) == TL_OK;
}

static void make_profiles(reader *r, tl_precision_profile *rows, int32_t count) {
    static const char *const ops[] = { "*", "CONV2D", "linear", "relu", "add" };
    int32_t i;
    int k;
    memset(rows, 0, PROFILES * sizeof *rows);
    for (i = 0; i < count; i++) {
        uint32_t head = next_byte(r);
        rows[i].op = head < 250 ? ops[head % 5] : NULL;
        rows[i].least_elements = head & 32 ? next_amount(r) : 0;
        rows[i].most_elements = head & 64 ? next_amount(r) : 0;
        rows[i].sensitive = (int32_t)(head >> 7);
        rows[i].schemes = next_byte(r) | (head & 1) << 8;
        rows[i].recommended = (tl_scheme)(next_byte(r) % (TL_SCHEME_COUNT + 1));
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            rows[i].loss[k] = next_number(r);
            rows[i].speedup[k] = next_number(r);
        }
    }
}

static void check_nodes(const tl_precision_desc *desc, const tl_precision_plan *plan) {
    int32_t i, conversions = 0, counts[TL_SCHEME_COUNT];
    uint64_t conversion_cost = 0;
    memset(counts, 0, sizeof counts);
    MUST(plan->node_count == desc->graph->node_count);
    for (i = 0; i < plan->node_count; i++) {
        const tl_precision_node *node = &plan->nodes[i];
        MUST(node->scheme < TL_SCHEME_COUNT && node->format == tl_find_scheme_format(node->scheme));
        if (!desc->graph->nodes[i].is_input) {
            counts[node->scheme]++;
            MUST(!desc->schemes || desc->schemes >> node->scheme & 1);
            MUST(!desc->node_schemes || !desc->node_schemes[i] || desc->node_schemes[i] >> node->scheme & 1);
        }
        MUST(!desc->training || node->scheme <= TL_SCHEME_BF16);
        MUST(is_finite(node->loss) && node->loss >= 0 && is_finite(node->speedup) && node->speedup >= 0);
        MUST(node->confidence >= 0 && node->confidence <= 1);
        MUST(node->runner_up <= TL_SCHEME_COUNT && node->runner_up != node->scheme);
        MUST(is_finite(node->runner_up_loss) && node->conversion_count >= 0);
        conversions += node->conversion_count;
        conversion_cost += node->conversion_cost;
    }
    MUST(conversions == plan->conversion_count && conversion_cost == plan->conversion_cost);
    MUST(!memcmp(counts, plan->scheme_counts, sizeof counts));
}

static void check_plan(const tl_precision_desc *desc, const tl_precision_plan *plan) {
    int has_limit = desc->criterion == TL_CRITERION_PERFORMANCE || desc->criterion == TL_CRITERION_CUSTOM;
    check_nodes(desc, plan);
    MUST(is_finite(plan->loss) && is_finite(plan->gap_ratio) && is_finite(plan->speedup) && is_finite(plan->bound_loss));
    MUST(plan->conversion_cost <= plan->cost);
    MUST(plan->bound_cost <= plan->cost && plan->gap_ratio >= 0 && plan->loss >= 0 && plan->bound_loss >= 0);
    MUST(!plan->proven || desc->criterion == TL_CRITERION_BALANCED || plan->gap_ratio == 0);
    if (has_limit) MUST(plan->loss <= desc->loss_limit);
    if (desc->criterion == TL_CRITERION_ACCURACY || desc->criterion == TL_CRITERION_CUSTOM) {
        double least = desc->least_speedup > 0 ? desc->least_speedup : 1;
        MUST(!plan->cost || (double)plan->base_cost / (double)plan->cost >= least * (1 - 1e-12));
    }
}

static void check_texts(const tl_graph *graph, const tl_precision_plan *plan) {
    size_t length = tl_print_precision_plan(graph, plan, NULL, 0), json = tl_print_precision_json(graph, plan, NULL, 0);
    char *text = (char *)malloc((length > json ? length : json) + 1), sentence[512];
    int32_t i;
    MUST(text);
    MUST(tl_print_precision_plan(graph, plan, text, length + 1) == length && strlen(text) == length && length);
    MUST(!strstr(text, "nan") && !strstr(text, "inf "));
    MUST(tl_print_precision_json(graph, plan, text, json + 1) == json && strlen(text) == json && json);
    MUST(!strstr(text, ": nan") && !strstr(text, ": inf") && !strstr(text, ": -nan"));
    for (i = -1; i <= plan->node_count; i++) tl_explain_precision_node(graph, plan, i, sentence, sizeof sentence);
    free(text);
}

static void check_applied(const tl_precision_desc *desc, const tl_precision_plan *plan) {
    tl_apply_desc apply;
    tl_precision_graph applied;
    tl_plan all;
    tl_env env;
    tl_result result;
    int32_t i;
    memset(&env, 0, sizeof env);
    memset(&apply, 0, sizeof apply);
    apply.graph = desc->graph;
    apply.plan = plan;
    apply.device = desc->device;
    apply.training = desc->training;
    apply.any_result = desc->any_result;
    result = tl_apply_precision(&env, &apply, &applied);
    if (result) {
        must_be_refused(&env, result, &applied, sizeof applied);
        MUST(result == TL_ERROR_OVERFLOW);
        return;
    }
    MUST(!tl_check_graph(&env, &applied.graph));
    MUST(applied.graph.node_count == desc->graph->node_count + applied.conversion_count);
    for (i = 0; i < applied.graph.tensor_count; i++) MUST(applied.formats[i] < TL_FORMAT_COUNT);
    for (i = 0; i < desc->graph->node_count; i++) MUST(applied.nodes[applied.new_nodes[i]] == i);
    result = tl_plan_keep_all(&env, &applied.graph, !desc->training, &all);
    MUST(!result || result == TL_ERROR_OVERFLOW);
    tl_free_plan(&env, &all);
    tl_free_precision_graph(&env, &applied);
}

static void check_front(const tl_precision_desc *desc) {
    tl_precision_front front;
    tl_env env;
    tl_result result;
    int32_t i;
    memset(&env, 0, sizeof env);
    result = tl_plan_precision_front(&env, desc, POINTS, &front);
    if (result) {
        must_be_refused(&env, result, &front, sizeof front);
        return;
    }
    MUST(front.point_count > 0 && front.point_count <= POINTS && front.knee >= 0 && front.knee < front.point_count);
    for (i = 0; i < front.point_count; i++) {
        const tl_precision_point *point = &front.points[i];
        MUST(is_finite(point->loss) && is_finite(point->speedup) && point->bound_cost <= point->cost);
        MUST(!i || (point[-1].loss <= point->loss && point[-1].cost >= point->cost));
    }
    tl_free_precision_front(&env, &front);
}

static void plan_graph(reader *r, const tl_graph *graph) {
    static const uint64_t limits[] = { 1, 300, 3000, 30000 };
    tl_precision_profile rows[PROFILES];
    tl_precision_desc desc;
    tl_precision_plan plan, again;
    tl_device device;
    uint32_t head = next_byte(r), more = next_byte(r), node_schemes[NODES];
    tl_env env;
    tl_result result;
    int32_t i;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    desc.graph = graph;
    desc.criterion = (tl_criterion)(head & 3);
    desc.training = (int32_t)(head >> 2 & 1);
    desc.objective = (tl_precision_objective)(head >> 3 & 1);
    desc.allow_sensitive = (int32_t)(head >> 4 & 1);
    desc.allow_unknown = (int32_t)(head >> 5 & 1);
    desc.any_result = (int32_t)(head >> 6 & 1);
    desc.allow_f16 = (int32_t)(head >> 7 & 1);
    desc.work_limit = limits[more & 3];
    desc.schemes = more & 4 ? next_byte(r) | (more & 8) << 5 : 0;
    desc.loss_limit = next_number(r);
    desc.least_speedup = next_number(r);
    if (more & 16) {
        for (i = 0; i < NODES; i++) node_schemes[i] = next_byte(r);
        desc.node_schemes = node_schemes;
    }
    if (more & 32) {
        desc.profile_count = 1 + (int32_t)(next_byte(r) % PROFILES);
        make_profiles(r, rows, desc.profile_count);
        desc.profiles = rows;
    }
    if (more & 64) {
        device.bytes_per_second = next_amount(r);
        device.codec_bytes_per_second = next_amount(r);
        desc.device = &device;
    }
    if (more & 128) {
        desc.performance_weight = next_number(r);
        desc.accuracy_weight = next_number(r);
        desc.priorities[next_byte(r) % TL_SCHEME_COUNT] = next_number(r);
    }
    result = tl_plan_precision(&env, &desc, &plan);
    if (result) {
        must_be_refused(&env, result, &plan, sizeof plan);
        return;
    }
    check_plan(&desc, &plan);
    check_texts(graph, &plan);
    check_applied(&desc, &plan);
    if (head & 128) check_front(&desc);
    MUST(!tl_plan_precision(&env, &desc, &again) && again.cost == plan.cost && again.bound_cost == plan.bound_cost);
    for (i = 0; i < plan.node_count; i++) MUST(plan.nodes[i].scheme == again.nodes[i].scheme);
    tl_free_precision_plan(&env, &again);
    tl_free_precision_plan(&env, &plan);
}

static void fuzz_graph(reader *r) {
    tl_graph graph;
    uint32_t count = 2 + next_byte(r) % (NODES - 1), i;
    tl_init_graph(&graph);
    for (i = 0; i < count; i++)
        if (!add_node(&graph, r)) break;
    if (i == count && !tl_check_graph(NULL, &graph)) plan_graph(r, &graph);
    tl_free_graph(NULL, &graph);
}

// -- a bare choice --

typedef struct choice_case {
    tli_choice_desc desc;
    uint64_t costs[NODES * SCHEMES], losses[NODES * SCHEMES], prices[NETS][SCHEMES * SCHEMES];
    int32_t  formats[SCHEMES], readers[NETS][3];
    tli_choice_net nets[NETS];
} choice_case;

static void make_choice(reader *r, choice_case *c) {
    static const uint64_t limits[] = { 1, 300, 3000, 100000 };
    uint32_t head = next_byte(r);
    tli_choice_desc *desc = &c->desc;
    int32_t i, k;
    memset(c, 0, sizeof *c);
    desc->node_count = 1 + (int32_t)(next_byte(r) % NODES);
    desc->scheme_count = 1 + (int32_t)(head % SCHEMES);
    desc->work_limit = limits[head >> 3 & 3];
    desc->least_loss = (int32_t)(head >> 5 & 1);
    desc->loss_limit = desc->cost_limit = head & 64 ? TL_UNLIMITED : next_amount(r) * 4;
    desc->costs = c->costs;
    desc->losses = c->losses;
    desc->nets = c->nets;
    desc->net_count = (int32_t)(next_byte(r) % (NETS + 1));
    if (head & 128) {
        desc->format_count = 2;
        desc->formats = c->formats;
        for (i = 0; i < SCHEMES; i++) c->formats[i] = (int32_t)(next_byte(r) & 1);
    }
    for (i = 0; i < desc->node_count * desc->scheme_count; i++) {
        c->costs[i] = next_amount(r);
        if (c->costs[i] == 223) c->costs[i] = TL_FORBIDDEN;
        c->losses[i] = next_amount(r);
    }
    for (i = 0; i < desc->net_count; i++) {
        tli_choice_net *net = &c->nets[i];
        net->producer = (int32_t)next_byte(r) % desc->node_count;
        net->reader_count = 1 + (int32_t)(next_byte(r) % 3);
        net->readers = c->readers[i];
        net->costs = c->prices[i];
        for (k = 0; k < net->reader_count; k++) c->readers[i][k] = (int32_t)next_byte(r) % desc->node_count;
        for (k = 0; k < SCHEMES * SCHEMES; k++) {
            c->prices[i][k] = next_amount(r);
            if (c->prices[i][k] == 223) c->prices[i][k] = TL_FORBIDDEN;
        }
    }
}

static void fuzz_choice(reader *r) {
    choice_case *c = (choice_case *)malloc(sizeof *c);
    tli_choice_plan plan;
    tli_choice_front front;
    tli_choice_sums sums;
    tl_env env;
    tl_result result;
    uint64_t value, cost, loss;
    int32_t node, net;
    MUST(c);
    memset(&env, 0, sizeof env);
    make_choice(r, c);
    if (!tli_choice_add_all_most(&c->desc, &cost, &loss)) { free(c); return; }
    result = tli_plan_choice(&env, &c->desc, &plan);
    if (result) {
        uint64_t nearest = plan.nearest_limit;
        plan.nearest_limit = 0;
        MUST(result == TL_ERROR_INFEASIBLE && !plan.schemes && !plan.memory && !plan.cost && !plan.bound);
        if (nearest && nearest != TL_UNLIMITED) {  // else a node has no scheme
            MUST(nearest > (c->desc.least_loss ? c->desc.cost_limit : c->desc.loss_limit));
            c->desc.loss_limit = c->desc.cost_limit = nearest;
            result = tli_plan_choice(&env, &c->desc, &plan);
            MUST(!result);
        }
    }
    if (!result) {
        value = c->desc.least_loss ? plan.loss : plan.cost;
        MUST(plan.bound <= value && plan.proven == (plan.bound == value) && plan.gap_ratio >= 0);
        MUST(c->desc.least_loss ? plan.cost <= c->desc.cost_limit : plan.loss <= c->desc.loss_limit);
        tli_choice_measure(&c->desc, plan.schemes, &sums, &node, &net);
        MUST(node < 0 && net < 0 && sums.cost == plan.cost && sums.loss == plan.loss);
        MUST(sums.conversion_cost == plan.conversion_cost && sums.conversion_count == plan.conversion_count);
        tli_free_choice_plan(&env, &plan);
        if (!tli_plan_choice_front(&env, &c->desc, POINTS, &front)) {
            MUST(front.point_count > 0 && front.point_count <= POINTS);
            tli_free_choice_front(&env, &front);
        }
    }
    free(c);
}

// -- data --

static void check_quantization(const tl_env *env, const tl_quantization *q, const float *data, uint64_t count) {
    tl_format format = q->low >= -128 && q->high <= 127 ? TL_FORMAT_I8 : TL_FORMAT_I16;
    union { int8_t bytes[64]; int16_t words[64]; } codes;
    tl_noise noise;
    tl_env quiet = *env;
    float back[64];
    uint64_t i;
    MUST(!tli_quantization_broken(q) && is_finite((double)q->scale) && q->scale > 0);
    if (tl_quantize(&quiet, q, 1, 1, format, data, &codes, count)) return;
    MUST(!tl_dequantize(&quiet, q, 1, 1, format, &codes, back, count));
    for (i = 0; i < count; i++) {
        double x = (double)data[i], scale = (double)q->scale;
        MUST(back[i] == back[i]);
        if (x == 0 || x != x) MUST(back[i] == 0);
        if (x < scale * (q->low - q->zero_point) || x > scale * (q->high - q->zero_point) || !is_finite(x)) continue;
        MUST(x - (double)back[i] <= scale * 0.51 && (double)back[i] - x <= scale * 0.51);
    }
    if (tl_measure_noise(&quiet, q, data, NULL, count, &noise)) return;
    MUST(is_finite(noise.error_sum) && is_finite(noise.signal_sum) && is_finite(noise.mse) && is_finite(noise.sqnr_db));
    MUST(noise.clipped_ratio >= 0 && noise.clipped_ratio <= 1);
}

static void check_observer(const tl_observer *observer, int32_t channel, uint32_t way, const float *data, uint64_t count) {
    static const int32_t bounds[][2] = { { -128, 127 }, { -127, 127 }, { -32768, 32767 }, { -8, 7 }, { -32767, 32767 } };
    tl_env env;
    tl_observation seen;
    tl_quantization q;
    tl_noise noise;
    const int32_t *bound = bounds[way / 4 % 5];
    memset(&env, 0, sizeof env);
    if (tl_measure_observer(observer, channel, &seen)) return;
    MUST(is_finite((double)seen.least) && is_finite((double)seen.most) && seen.least <= seen.most);
    MUST(is_finite((double)seen.range_least) && is_finite((double)seen.range_most) && seen.range_least <= seen.range_most);
    MUST(is_finite(seen.square_sum) && seen.clipped_ratio >= 0 && seen.clipped_ratio <= 1);
    if (tl_find_observed_quantization(observer, channel, (tl_range_rule)(way % 4), bound[0], bound[1], &q)) return;
    check_quantization(&env, &q, data, count);
    if (tl_estimate_noise(observer, channel, &q, &noise)) return;
    MUST(is_finite(noise.mse) && is_finite(noise.sqnr_db) && noise.error_sum >= 0);
}

static void fuzz_data(reader *r) {
    tl_observer_desc desc;
    tl_observer *observer = NULL, *other = NULL;
    tl_env env;
    float data[64], least, most;
    uint64_t count;
    uint32_t head = next_byte(r), batches = 1 + next_byte(r) % 4, i;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.kind = (tl_observer_kind)(head % (TL_OBSERVER_COUNT + 1));
    desc.channel_count = (int32_t)(head >> 3 & 3);
    desc.inner_count = head >> 5 & 3;
    desc.rate = head & 128 ? next_number(r) : 0;
    desc.percentile_ratio = head & 128 ? next_number(r) : 0;
    desc.high = head & 128 ? (int32_t)next_amount(r) : 0;
    if (tl_init_observer(&env, &desc, &observer)) {
        MUST(!observer && env.error.code && env.error.text[0]);
        return;
    }
    MUST(!tl_init_observer(&env, &desc, &other));
    for (count = 0; batches-- && r->at < r->end; count = 0) {
        uint64_t wanted = next_byte(r) % 65;
        while (count < wanted && r->at < r->end) data[count++] = next_float(r);
        (void)tl_observe_data(batches & 1 ? other : observer, data, count);
        if (!tl_measure_range(&env, &desc, data, count, &least, &most))
            MUST(is_finite((double)least) && is_finite((double)most) && least <= most);
        check_observer(observer, 0, next_byte(r), data, count);
    }
    (void)tl_observe_extremes(other, 0, next_float(r), next_float(r), next_amount(r));
    (void)tl_merge_observer(observer, other);
    count = 0;
    while (count < 64 && r->at < r->end) data[count++] = next_float(r);
    for (i = 0; i < 4; i++) check_observer(observer, (int32_t)i, next_byte(r), data, count);
    (void)tl_is_f16_safe(observer, next_number(r), next_number(r));
    tl_free_observer(other);
    tl_free_observer(observer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    reader r;
    uint32_t kind;
    r.at = data;
    r.end = data + size;
    kind = next_byte(&r) % 4;
    if (kind == 2) fuzz_choice(&r);
    else if (kind == 3) fuzz_data(&r);
    else fuzz_graph(&r);
    return 0;
}
