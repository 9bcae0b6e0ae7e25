#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- precision plan --
//
// Set up the choice of schemes for a graph: which schemes each node may have, their costs and losses, the nets
// with their prices; then choose by the criterion, break ties, and find runners-up.
//
//     graph, profiles, losses --> options of nodes, nets --> choice --> ties --> plan --> runners-up
//                                        ^                                        |
//                                        +------------- tighter limit ------ evaluate
//
// All amounts that decide are integers or exact quotients, so a plan is the same on every machine.

#define TLI_LOSS_BITS 40          // the loss limit is 2^40 units
#define TLI_EXACT_NODES 256       // most nodes of a graph whose runners-up are choices of the whole graph
#define TLI_EXTRA_WORK  50000000  // for all runners-up, and for the least loss among choices of equal cost
#define TLI_PRECISION_COST_BITS 60

typedef struct tli_precision {
    tl_env  *env;
    tli_function function;
    const tl_graph *graph;
    tl_precision_desc desc;      // defaults filled in
    int32_t  node_count;         // of the choice: nodes of the graph, then an f32 reader for each result
    int32_t  net_count;
    uint64_t *numbers;           // the block that holds the next five
    uint64_t *costs, *losses;    // [node_count x schemes] of the choice
    uint64_t *times, *bytes;     // [nodes of the graph x schemes] time of the node; its weights and outputs
    uint64_t *net_costs;         // [net_count x formats x formats] of the objective
    double   *node_losses;       // [nodes of the graph x schemes]
    int32_t  *indices;           // the block that holds the next four
    int32_t  *net_tensors;       // [net_count] tensor of each net
    int32_t  *readers;           // of all nets
    int32_t  *first_nets;        // [node_count + 1] into node_nets
    int32_t  *node_nets;         // nets that a node makes or reads
    uint8_t  *marks;             // the block that holds the next four
    uint8_t  *sources, *ranks;   // [node_count x schemes] tl_loss_source; preference in ties, 0 = first
    uint8_t  *speed_sources;     // [node_count x schemes] tl_speed_source
    uint8_t  *schemes;           // [node_count] the present choice
    tli_choice_net *nets;         // [net_count]
    int32_t  formats[TL_SCHEME_COUNT];
    tli_choice_desc choice;
    uint64_t base_cost, base_bytes;
    uint64_t loss_units;         // the loss limit in units; TL_UNLIMITED = none
    int32_t  unit_exponent;      // without a limit a unit is 2^unit_exponent
    uint64_t cost_limit;         // from least_speedup
    uint64_t most_loss;          // loss limit of the last choice, which binds runners-up, too
    uint64_t nearest_cost;       // the least cost, if cost_limit cannot be met; 0 = loss_limit cannot be met
    int32_t  nearest_proven;     // 1 = nearest_cost is proven to be the least
    tl_speeds speeds;
    const char *machine;         // the first that a speed was measured on; borrowed, NULL = none
    int      has_machines;       // 1 = there are others
} tli_precision;

// The present choice, in the units of the choice; its schemes are in tli_precision.
typedef struct tli_pick {
    uint64_t cost, loss;
    uint64_t bound;              // lower bound of the cost at this loss limit
    uint64_t bound_loss;         // lower bound of the loss, where that is minimised
    int32_t  proven;
    double   gap_ratio;
} tli_pick;

// -- precision plan: exact arithmetic, the same with every compiler --

// a x 2^shift / b, rounded down or up; UINT64_MAX if it does not fit. 0 < b < 2^63.
static uint64_t tli_divide_shifted(uint64_t a, int32_t shift, uint64_t b, int up) {
    uint64_t whole = a / b, rest = a % b;
    if (shift < 0) {
        int lost = rest != 0 || (shift <= -64 ? whole != 0 : (whole & ((UINT64_C(1) << -shift) - 1)) != 0);
        whole = shift <= -64 ? 0 : whole >> -shift;
        return whole + (uint64_t)(up && lost);
    }
    for (; shift > 0 && (whole | rest); shift--) {
        if (whole >> 63) return UINT64_MAX;
        whole *= 2;
        rest *= 2;
        if (rest >= b) { rest -= b; whole++; }
    }
    return whole + (uint64_t)(up && rest && whole != UINT64_MAX);
}

// Split a finite value > 0 into a mantissa and the power of two that is returned.
static int32_t tli_split_f64(double value, uint64_t *mantissa) {
    uint64_t bits = tli_bits_of_f64(value);
    int32_t biased = (int32_t)(bits >> 52 & 0x7ff);
    *mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (!biased) return -1074;
    *mantissa |= UINT64_C(1) << 52;
    return biased - 1075;
}

// a / value, rounded down or up; value finite and > 0.
static uint64_t tli_divide_by_f64(uint64_t a, double value, int up) {
    uint64_t mantissa;
    int32_t exponent = tli_split_f64(value, &mantissa);
    return tli_divide_shifted(a, -exponent, mantissa, up);
}

// The largest integer b for which a / b, rounded to a double, is not below the ratio. So a speed-up that a
// plan reports can be asked for again. Rounding up starts half a unit of the last place below the ratio, or a
// quarter if the ratio is a power of two.
static uint64_t tli_find_divisor(uint64_t a, double ratio) {
    uint64_t mantissa;
    int32_t exponent = tli_split_f64(ratio, &mantissa);
    uint64_t less = mantissa & (mantissa - 1) ? 511 : 255;
    return tli_divide_shifted(a, 10 - exponent, 1024 * mantissa - less, 0);
}

// a x 2^shift / b, rounded down or up; a finite and >= 0, b finite and > 0.
static uint64_t tli_divide_f64(double a, int32_t shift, double b, int up) {
    uint64_t above, below;
    int32_t exponent;
    if (!(a > 0)) return 0;
    exponent = tli_split_f64(a, &above) - tli_split_f64(b, &below);
    return tli_divide_shifted(above, exponent + shift, below, up);
}

// value x 2^exponent
static double tli_scale_f64(double value, int32_t exponent) {
    for (; exponent > 0; exponent--) value *= 2;
    for (; exponent < 0 && value > 0; exponent++) value /= 2;
    return value;
}

static double tli_f64_of(uint64_t bits) {
    double value;
    tli_copy(&value, &bits, sizeof value);
    return value;
}

static double tli_infinity(void) { return tli_f64_of(UINT64_C(0x7ff) << 52); }

static double tli_not_a_number(void) { return tli_f64_of(UINT64_C(0xfff) << 51); }

static double tli_find_gap(uint64_t value, uint64_t bound) {
    return value > bound ? (double)(value - bound) / (double)(bound ? bound : 1) : 0;
}

static double tli_find_speedup(uint64_t base, uint64_t cost) {
    if (base == cost) return 1;
    return (double)base / (double)(cost ? cost : 1);
}

// Whether a limit that was checked is infinite.
static int tli_is_unlimited(double limit) { return !tli_is_amount(limit); }

// -- precision plan: rules --

TLI_IMPL tl_precision_desc tl_default_precision(const tl_precision_desc *desc) {
    tl_precision_desc d;
    if (desc) d = *desc; else tli_zero(&d, sizeof d);
    if (!(d.least_speedup < 0) && !(d.least_speedup > 0)) d.least_speedup = 1;
    if (!d.schemes)
        d.schemes = d.training ? TLI_FLOAT_SCHEMES : (TLI_BIT(TL_SCHEME_COUNT) - 1) & ~TLI_BIT(TL_SCHEME_FAKE);
    if (!d.profiles && d.profile_count == 0) d.profiles = tl_find_default_profiles(&d.profile_count);
    if (!(d.performance_weight > 0) && !(d.accuracy_weight > 0)) d.performance_weight = d.accuracy_weight = 0.5;
    if (!d.round_limit) d.round_limit = 8;
    if (d.loss_source == TL_LOSS_FROM_PROFILE) d.loss_source = TL_LOSS_FROM_MEASURED;
    return d;
}

static tli_rule tli_find_precision_rule(const tl_precision_desc *desc) {
    int32_t k;
    if (!tli_is_below((int64_t)desc->criterion, TL_CRITERION_COUNT)) return TLI_RULE(CRITERION_UNKNOWN);
    if (!tli_is_below((int64_t)desc->objective, TL_OBJECTIVE_COUNT)) return TLI_RULE(OBJECTIVE_UNKNOWN);
    if (!tli_is_below((int64_t)desc->loss_source, TL_LOSS_SOURCE_COUNT)) return TLI_RULE(LOSS_SOURCE_UNKNOWN);
    if (!(desc->loss_limit >= 0)) return TLI_RULE(LOSS_LIMIT_MUST_BE_NOT_NEGATIVE);
    if (!tli_is_amount(desc->least_speedup)) return TLI_RULE(LEAST_SPEEDUP_MUST_BE_FINITE_AND_NOT);
    if ((desc->training | desc->allow_sensitive | desc->allow_unknown | desc->any_result) & ~1)
        return TLI_RULE(TRAINING_ALLOW_SENSITIVE_ALLOW_UNKNOWN);
    if (desc->schemes >> TL_SCHEME_COUNT) return TLI_RULE(SCHEMES_UNKNOWN_BIT);
    if (desc->allow_f16 & ~1) return TLI_RULE(ALLOW_F16_MUST_BE_0_OR_1);
    if (desc->training && (desc->schemes & ~TLI_FLOAT_SCHEMES))
        return TLI_RULE(SCHEMES_TRAINING_TAKES_F32_F16);
    if (!tli_is_amount(desc->performance_weight) || !tli_is_amount(desc->accuracy_weight))
        return TLI_RULE(PERFORMANCE_WEIGHT_ACCURACY_WEIGHT);
    for (k = 0; k < TL_SCHEME_COUNT; k++)
        if (!tli_is_amount(desc->priorities[k]) && !tli_is_amount(-desc->priorities[k]))
            return TLI_RULE(PRIORITIES_MUST_BE_FINITE);
    if (desc->round_limit < 0) return TLI_RULE(ROUND_LIMIT_MUST_BE_NOT_NEGATIVE);
    return TLI_NO_RULE;
}

static tli_rule tli_find_given_rule(const tl_precision_desc *desc, int32_t node) {
    const double *losses = desc->losses ? desc->losses + (size_t)node * TL_SCHEME_COUNT : NULL;
    int32_t k;
    if (desc->node_schemes && desc->node_schemes[node] >> TL_SCHEME_COUNT)
        return TLI_RULE(NODE_SCHEMES_UNKNOWN_BIT);
    for (k = 0; losses && k < TL_SCHEME_COUNT; k++) {
        if (losses[k] == losses[k] && !tli_is_amount(losses[k]))
            return TLI_RULE(LOSSES_MUST_BE_FINITE_AND_NOT_NEGATIVE);
        if (k == TL_SCHEME_F32 && losses[k] > 0)
            return TLI_RULE(LOSSES_MUST_BE_0_FOR_F32_OTHERS_ARE);
    }
    return TLI_NO_RULE;
}

static tl_result tli_check_precision_of(tl_env *env, tli_function function, const tl_precision_desc *desc) {
    tli_graph_rules rules = tli_rules_of(env, function);
    tli_rule rule = tli_find_precision_rule(desc);
    tl_result result;
    int32_t i;
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (!result) result = tli_check_rows(env, function, desc->profiles, desc->profile_count);
    for (i = 0; !result && i < desc->graph->node_count; i++) {
        rule = tli_find_given_rule(desc, i);
        if (rule)
            result = tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "node", i, tl_name_node(desc->graph, i), rule);
    }
    return result;
}

// -- precision plan: the price of conversions --

// The cost of converting so many elements in one direction; returns 0 if it does not fit 64 bits.
static int tli_price_conversion(const tl_device *device, uint64_t elements, tl_format from, tl_format to,
                                uint64_t *cost) {
    uint64_t rate = device ? device->bytes_per_second : 0, bytes;
    tl_format narrow = from == TL_FORMAT_F32 ? to : from;
    uint64_t each = tl_find_format_bytes(from, 4) + tl_find_format_bytes(to, 4);
    if (device && device->codec_bytes_per_second && (from == TL_FORMAT_F32 || to == TL_FORMAT_F32) &&
        (narrow == TL_FORMAT_F16 || narrow == TL_FORMAT_BF16)) {
        rate = device->codec_bytes_per_second;
        each = 4;
    }
    *cost = elements;
    return !rate || (tli_mul_u64(elements, each, &bytes) && tli_find_time(bytes, rate, cost));
}

// -- precision plan: schemes that a node may have --

typedef struct tli_option {
    const tl_precision_profile *row;  // NULL = none
    const double   *losses;           // [TL_SCHEME_COUNT] given by the caller; NULL = none
    const uint64_t *costs;            // [TL_SCHEME_COUNT] the same
    uint32_t        schemes;          // bits 1 << tl_scheme that are possible
} tli_option;

static int tli_has_given_loss(const tli_option *o, int32_t k) {
    return o->losses && o->losses[k] == o->losses[k];
}

static int tli_has_given_cost(const tli_option *o, int32_t k) {
    return o->costs && o->costs[k] != TL_FORBIDDEN;
}

// Whether something says that f16 holds what a node hands on and its gradients.
static int tli_has_f16_range(const tl_precision_desc *desc, int32_t id) {
    return !desc->training || desc->allow_f16 || (desc->f16_nodes && desc->f16_nodes[id]);
}

static tli_option tli_find_option(const tli_precision *p, int32_t id) {
    const tl_precision_desc *desc = &p->desc;
    uint32_t limit = desc->node_schemes && desc->node_schemes[id] ? desc->node_schemes[id] : ~(uint32_t)0;
    tli_option o;
    int32_t k;
    tli_zero(&o, sizeof o);
    if (p->graph->nodes[id].is_input) { o.schemes = TLI_BIT(TL_SCHEME_F32); return o; }
    o.row = tl_find_profile(desc->profiles, desc->profile_count, p->graph, id, desc->device);
    if (o.row && tli_is_any_op(o.row) && !desc->allow_unknown) o.row = NULL;
    if (desc->losses) o.losses = desc->losses + (size_t)id * TL_SCHEME_COUNT;
    if (desc->costs) o.costs = desc->costs + (size_t)id * TL_SCHEME_COUNT;
    o.schemes = TLI_BIT(TL_SCHEME_F32) | (o.row ? o.row->schemes : 0);
    for (k = 0; k < TL_SCHEME_COUNT; k++)  // a scheme that was measured needs no row
        if (tli_has_given_loss(&o, k) && (tli_has_given_cost(&o, k) || desc->objective == TL_OBJECTIVE_BYTES))
            o.schemes |= TLI_BIT(k);
    if (o.row && o.row->sensitive && !desc->allow_sensitive) o.schemes &= ~TLI_NARROW_SCHEMES;
    if (!tli_has_f16_range(desc, id)) o.schemes &= ~TLI_BIT(TL_SCHEME_F16);
    o.schemes &= desc->schemes & limit;
    return o;
}

// Preference of a scheme in ties: the recommended one first, then by priority.
static uint8_t tli_find_rank(const tli_precision *p, const tli_option *o, int32_t scheme) {
    const double *priorities = p->desc.priorities;
    uint8_t rank = 1;
    int32_t k;
    if (o->row && (int32_t)o->row->recommended == scheme) return 0;
    for (k = 0; k < TL_SCHEME_COUNT; k++) rank = (uint8_t)(rank + (priorities[k] > priorities[scheme]));
    return rank;
}

static uint64_t tli_find_node_bytes(const tli_precision *p, int32_t id, int32_t scheme) {
    const tl_node *node = &p->graph->nodes[id];
    tl_format format = tl_find_scheme_format((tl_scheme)scheme);
    uint64_t bytes = tli_find_weight_bytes((tl_scheme)scheme, node->param_bytes);  // no more than in f32
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        bytes += tl_find_format_bytes(format, p->graph->outputs[k].bytes);
    return bytes;
}

// FLOP a second in f32; 0 = not known.
static double tli_find_f32_rate(const tl_device *device) {
    double rate = device->flops_per_second[TL_PRECISION_SINGLE];
    return rate > 0 ? rate : device->flops_per_second[TL_PRECISION_FULL];
}

// How many times as fast as in f32 a device computes in a scheme; 0 = it does not say.
static double tli_find_device_speedup(const tl_device *device, int32_t scheme) {
    tl_precision narrow = scheme == TL_SCHEME_F16 ? TL_PRECISION_HALF : TL_PRECISION_BF16;
    double base, rate;
    if (!device || (scheme != TL_SCHEME_F16 && scheme != TL_SCHEME_BF16)) return 0;
    base = tli_find_f32_rate(device);
    rate = device->flops_per_second[narrow];
    return base > 0 && rate > 0 && tli_is_amount(rate / base) ? rate / base : 0;
}

// How many times as fast as in f32 a node runs in a scheme without a given cost, and who says so.
static double tli_find_row_speedup(const tli_precision *p, int32_t id, const tli_option *o, int32_t k,
                                   tl_speed_source *source) {
    int own = p->desc.profiles == tli_default_profiles && tli_has_product(tl_name_op(p->graph, id));
    double rate = own ? tli_find_device_speedup(p->desc.device, k) : 0;
    *source = TL_SPEED_ASSUMED;
    if (rate > 0) {
        *source = TL_SPEED_FROM_DEVICE;
        return rate;
    }
    if (!o->row || !(o->row->schemes >> k & 1)) return 1;
    if (o->row->measured_on) *source = TL_SPEED_MEASURED;
    return o->row->speedup[k];
}

static tl_speed_source tli_find_speed(const tli_precision *p, int32_t id, const tli_option *o, int32_t k,
                                      double *speedup) {
    tl_speed_source source;
    *speedup = 1;
    if (k == TL_SCHEME_F32) return TL_SPEED_EXACT;
    if (tli_has_given_cost(o, k)) return p->desc.measured_on ? TL_SPEED_MEASURED : TL_SPEED_GIVEN;
    *speedup = tli_find_row_speedup(p, id, o, k, &source);
    return source;
}

static void tli_fill_option(tli_precision *p, int32_t id, const tli_option *o, int32_t k) {
    const tl_node *node = &p->graph->nodes[id];
    size_t at = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
    uint64_t time = node->fwd_cost + (p->desc.training ? node->bwd_cost : 0);  // the sum of all fits
    double speedup;
    double loss = o->row && o->row->schemes >> k & 1 ? o->row->loss[k] : 0;
    if (tli_has_given_loss(o, k)) {
        loss = o->losses[k];
        p->sources[at] = (uint8_t)p->desc.loss_source;
    }
    p->node_losses[at] = k == TL_SCHEME_F32 ? 0 : loss;
    p->speed_sources[at] = (uint8_t)tli_find_speed(p, id, o, k, &speedup);
    p->times[at] = tli_has_given_cost(o, k) ? o->costs[k] : tli_divide_by_f64(time, speedup, 1);
    p->bytes[at] = tli_find_node_bytes(p, id, k);
    p->ranks[at] = tli_find_rank(p, o, k);
    if (o->schemes >> k & 1)
        p->costs[at] = p->desc.objective == TL_OBJECTIVE_TIME ? p->times[at] : p->bytes[at];
}

// Note the name of a machine: the first one is shown, and whether there are others.
static void tli_note_machine(tli_precision *p, const char *name) {
    if (!p->machine) p->machine = name;
    else if (!tli_same_text(p->machine, name)) p->has_machines = 1;
}

// Copy the noted name: a plan holds no pointer of the caller.
static void tli_name_machine(tli_precision *p) {
    static const char others[] = " and others";
    char *name = p->speeds.measured_on;
    size_t size = sizeof p->speeds.measured_on - (p->has_machines ? sizeof others - 1 : 0);
    tli_writer w = tli_writer_of(name, size);
    if (!p->machine) return;
    tli_put(&w, p->machine);
    tli_finish(&w);
    if (p->has_machines) tli_copy(name + tli_text_length(name), others, sizeof others);
}

// Count a node by the least trusted source among its possible schemes.
static void tli_count_speed(tli_precision *p, int32_t id, const tli_option *o) {
    const uint8_t *sources = p->speed_sources + (size_t)id * TL_SCHEME_COUNT;
    int32_t least = TL_SPEED_SOURCE_COUNT, k;
    if (p->graph->nodes[id].is_input) return;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (k == TL_SCHEME_F32 || !(o->schemes >> k & 1)) continue;
        if (sources[k] < least) least = sources[k];
        if (sources[k] == TL_SPEED_MEASURED)
            tli_note_machine(p, tli_has_given_cost(o, k) ? p->desc.measured_on : o->row->measured_on);
    }
    p->speeds.counts[least == TL_SPEED_SOURCE_COUNT ? TL_SPEED_EXACT : least]++;
}

static tl_result tli_fill_options(tli_precision *p) {
    tli_graph_rules rules = tli_rules_of(p->env, p->function);
    uint64_t i, places = (uint64_t)p->node_count * TL_SCHEME_COUNT;
    int32_t id, k;
    for (i = 0; i < places; i++) p->costs[i] = TL_FORBIDDEN;
    for (id = 0; id < p->graph->node_count; id++) {
        tli_option o = tli_find_option(p, id);
        if (!o.schemes)
            return tli_fail_item(&rules, TL_ERROR_INFEASIBLE, "node", id, tl_name_node(p->graph, id),
                                 TLI_RULE(SCHEMES_NONE_IS_LEFT_OF_THOSE));
        for (k = 0; k < TL_SCHEME_COUNT; k++) tli_fill_option(p, id, &o, k);
        tli_count_speed(p, id, &o);
    }
    tli_name_machine(p);
    for (; id < p->node_count; id++) p->costs[(size_t)id * TL_SCHEME_COUNT + TL_SCHEME_F32] = 0;
    return TL_OK;
}

// -- precision plan: nets --

// Whether the gradient of a tensor passes back through its conversions: a reader has a gradient, or the
// tensor is a result without readers, where backward begins.
static int tli_is_converted_back(const tli_precision *p, const tli_choice_net *net) {
    int32_t k, real_count = 0;
    if (!p->desc.training || !p->graph->nodes[net->producer].has_grad) return 0;
    for (k = 0; k < net->reader_count; k++) {
        if (net->readers[k] >= p->graph->node_count) continue;
        real_count++;
        if (p->graph->nodes[net->readers[k]].has_grad) return 1;
    }
    return !real_count;
}

static int tli_price_net(tli_precision *p, int32_t index) {
    tli_choice_net *net = &p->nets[index];
    uint64_t *costs = p->net_costs + (size_t)index * TL_FORMAT_COUNT * TL_FORMAT_COUNT, bytes, cost;
    int32_t from, to, back = tli_is_converted_back(p, net);
    bytes = p->graph->outputs[p->net_tensors[index]].bytes;
    net->costs = costs;
    for (from = 0; from < TL_FORMAT_COUNT; from++)
        for (to = 0; to < TL_FORMAT_COUNT; to++) {
            if (from == to) continue;
            if (p->desc.objective == TL_OBJECTIVE_BYTES) {
                cost = tl_find_format_bytes((tl_format)to, bytes);
            } else {
                if (!tli_price_conversion(p->desc.device, tli_count_elements(bytes), (tl_format)from,
                                          (tl_format)to, &cost)) return 0;
                if (back && !tli_add_u64(cost, cost, &cost)) return 0;
            }
            costs[from * TL_FORMAT_COUNT + to] = cost;
        }
    return 1;
}

// Find the readers of each tensor; net i belongs to tensor i here. The first pass counts, the second one lists.
static void tli_list_readers(tli_precision *p, int listing) {
    const tl_graph *graph = p->graph;
    int32_t extra = graph->node_count, i, k;
    for (i = 0; i < graph->node_count; i++)
        for (k = 0; k < graph->nodes[i].input_count; k++) {
            tli_choice_net *net = &p->nets[graph->inputs[graph->nodes[i].first_input + k].tensor];
            int32_t *readers = (int32_t *)net->readers;
            if (listing && net->reader_count && readers[net->reader_count - 1] == i) continue;  // read twice
            if (listing) readers[net->reader_count] = i;
            net->reader_count++;
        }
    for (i = 0; i < graph->tensor_count && !p->desc.any_result; i++) {
        if (!graph->nodes[graph->outputs[i].node].keep) continue;
        if (listing) ((int32_t *)p->nets[i].readers)[p->nets[i].reader_count] = extra++;
        p->nets[i].reader_count++;
    }
}

static void tli_find_nets(tli_precision *p) {
    const tl_graph *graph = p->graph;
    int32_t *readers = p->readers, i;
    tli_list_readers(p, 0);
    for (i = 0; i < graph->tensor_count; i++) {
        p->nets[i].readers = readers;
        readers += p->nets[i].reader_count;
        p->nets[i].reader_count = 0;
        p->nets[i].producer = graph->outputs[i].node;
    }
    tli_list_readers(p, 1);
    for (i = 0; i < graph->tensor_count; i++) {
        if (!p->nets[i].reader_count) continue;
        p->net_tensors[p->net_count] = i;
        p->nets[p->net_count++] = p->nets[i];
    }
}

// Find the nets that each node makes or reads.
static void tli_find_node_nets(tli_precision *p) {
    int32_t *firsts = p->first_nets, i, k;
    for (i = 0; i < p->net_count; i++) {
        firsts[p->nets[i].producer + 1]++;
        for (k = 0; k < p->nets[i].reader_count; k++) firsts[p->nets[i].readers[k] + 1]++;
    }
    for (i = 0; i < p->node_count; i++) firsts[i + 1] += firsts[i];
    for (i = p->net_count - 1; i >= 0; i--) {  // fills from the ends down, which turns ends into starts
        p->node_nets[--firsts[p->nets[i].producer + 1]] = i;
        for (k = 0; k < p->nets[i].reader_count; k++) p->node_nets[--firsts[p->nets[i].readers[k] + 1]] = i;
    }
    for (i = 0; i < p->node_count; i++) firsts[i] = firsts[i + 1];
    firsts[p->node_count] = 0;
    for (i = 0; i < p->net_count; i++) firsts[p->node_count] += 1 + p->nets[i].reader_count;
}

// Whether the largest costs of all nodes and nets add up to less than 2^60, so that no sum overflows.
static int tli_fits_costs(tli_precision *p) {
    uint64_t sum = 0, most, places = (uint64_t)p->graph->node_count, i;
    int32_t from, to, k;
    for (i = 0; i < places; i++) {
        for (most = 0, k = 0; k < TL_SCHEME_COUNT; k++) {
            size_t at = (size_t)i * TL_SCHEME_COUNT + (size_t)k;
            if (p->costs[at] != TL_FORBIDDEN) most = tli_larger_u64(most, p->costs[at]);
        }
        most = tli_larger_u64(most, p->desc.objective == TL_OBJECTIVE_TIME
                                        ? p->times[i * TL_SCHEME_COUNT + TL_SCHEME_F32]
                                        : p->bytes[i * TL_SCHEME_COUNT + TL_SCHEME_F32]);
        if (!tli_add_u64(sum, most, &sum) || sum >> TLI_PRECISION_COST_BITS) return 0;
    }
    for (i = 0; i < (uint64_t)p->net_count; i++)
        for (to = 0; to < TL_FORMAT_COUNT; to++) {
            const uint64_t *costs = p->net_costs + i * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
            for (most = 0, from = 0; from < TL_FORMAT_COUNT; from++)
                most = tli_larger_u64(most, costs[from * TL_FORMAT_COUNT + to]);
            if (!tli_add_u64(sum, most, &sum) || sum >> TLI_PRECISION_COST_BITS) return 0;
        }
    return 1;
}

// -- precision plan: losses as integers --

static double tli_find_most_loss(const tli_precision *p, uint64_t first) {
    double most = 0;
    int32_t k;
    for (k = 0; k < TL_SCHEME_COUNT; k++)
        if (p->costs[first + (uint64_t)k] != TL_FORBIDDEN && p->node_losses[first + (uint64_t)k] > most)
            most = p->node_losses[first + (uint64_t)k];
    return most;
}

static int tli_fits_losses(const tli_precision *p) {
    uint64_t places = (uint64_t)p->graph->node_count * TL_SCHEME_COUNT, first;
    double sum = 0;
    for (first = 0; first < places; first += TL_SCHEME_COUNT) sum += tli_find_most_loss(p, first);
    return tli_is_amount(sum);
}

// The least exponent of a power of two above all losses of a node; INT32_MIN where all are 0.
static int32_t tli_find_loss_exponent(const tli_precision *p, uint64_t first) {
    double most = tli_find_most_loss(p, first);
    uint64_t mantissa;
    int32_t exponent;
    if (!(most > 0)) return INT32_MIN;
    exponent = tli_split_f64(most, &mantissa);
    return exponent + tli_log2_u64(mantissa) + 1;
}

// Find the unit in which the sum of the largest losses is below 2^52 and at least 2^50.
static void tli_find_loss_unit(tli_precision *p) {
    uint64_t places = (uint64_t)p->graph->node_count * TL_SCHEME_COUNT, first, sum = 0;
    int32_t top = INT32_MIN;
    for (first = 0; first < places; first += TL_SCHEME_COUNT)
        top = tli_larger_i32(top, tli_find_loss_exponent(p, first));
    p->unit_exponent = 0;
    if (top == INT32_MIN) return;
    for (first = 0; first < places; first += TL_SCHEME_COUNT)
        sum += tli_divide_f64(tli_find_most_loss(p, first), 30 - top, 1, 1);  // at most 2^31 nodes of 2^30 each
    p->unit_exponent = top - 30 + tli_log2_u64(sum) + 1 - 52;
}

// Convert losses to units. A loss of twice the limit or more is cut to that: it stays over the limit, and sums
// over all nodes fit 64 bits.
static void tli_count_losses(tli_precision *p, double limit) {
    uint64_t places = (uint64_t)p->graph->node_count * TL_SCHEME_COUNT, i, units;
    if (tli_is_unlimited(limit)) tli_find_loss_unit(p);
    for (i = 0; i < places; i++) {
        double loss = p->node_losses[i];
        if (p->costs[i] == TL_FORBIDDEN) { p->losses[i] = 0; continue; }
        if (tli_is_unlimited(limit)) units = tli_divide_f64(loss, -p->unit_exponent, 1, 1);
        else if (limit > 0) units = tli_divide_f64(loss, TLI_LOSS_BITS, limit, 1);
        else units = loss > 0;
        p->losses[i] = units >> (TLI_LOSS_BITS + 1) && !tli_is_unlimited(limit)
            ? UINT64_C(1) << (TLI_LOSS_BITS + 1) : units;
    }
    p->loss_units = tli_is_unlimited(limit) ? TL_UNLIMITED : limit > 0 ? UINT64_C(1) << TLI_LOSS_BITS : 0;
}

// -- precision plan: set up --

static void tli_close_precision(tli_precision *p) {
    tli_release(p->env, p->numbers);
    tli_release(p->env, p->node_losses);
    tli_release(p->env, p->indices);
    tli_release(p->env, p->marks);
    tli_release(p->env, p->nets);
}

static int tli_add_precision_arrays(tli_precision *p) {
    uint64_t nodes = (uint64_t)p->node_count, tensors = (uint64_t)p->graph->tensor_count;
    uint64_t old = (uint64_t)p->graph->node_count, reads = (uint64_t)p->graph->input_count + tensors;
    p->numbers = (uint64_t *)tli_alloc_array(
        p->env, 2 * (nodes + old) * TL_SCHEME_COUNT + tensors * TL_FORMAT_COUNT * TL_FORMAT_COUNT,
        sizeof *p->numbers);
    p->node_losses = (double *)tli_alloc_array(p->env, old * TL_SCHEME_COUNT, sizeof *p->node_losses);
    p->indices = (int32_t *)tli_alloc_array(p->env, nodes + 1 + 2 * tensors + 2 * reads, sizeof *p->indices);
    p->marks = (uint8_t *)tli_alloc_array(p->env, nodes * (3 * TL_SCHEME_COUNT + 1), 1);
    p->nets = (tli_choice_net *)tli_alloc_array(p->env, tensors, sizeof *p->nets);
    if (!p->numbers || !p->node_losses || !p->indices || !p->marks || !p->nets) return 0;
    p->costs = p->numbers;
    p->losses = p->costs + nodes * TL_SCHEME_COUNT;
    p->times = p->losses + nodes * TL_SCHEME_COUNT;
    p->bytes = p->times + old * TL_SCHEME_COUNT;
    p->net_costs = p->bytes + old * TL_SCHEME_COUNT;
    p->net_tensors = p->indices;
    p->readers = p->net_tensors + tensors;
    p->first_nets = p->readers + reads;
    p->node_nets = p->first_nets + nodes + 1;
    p->sources = p->marks;
    p->speed_sources = p->sources + nodes * TL_SCHEME_COUNT;
    p->ranks = p->speed_sources + nodes * TL_SCHEME_COUNT;
    p->schemes = p->ranks + nodes * TL_SCHEME_COUNT;
    return 1;
}

static void tli_set_choice(tli_precision *p) {
    int32_t k;
    p->choice.node_count = p->node_count;
    p->choice.scheme_count = TL_SCHEME_COUNT;
    p->choice.format_count = TL_FORMAT_COUNT;
    for (k = 0; k < TL_SCHEME_COUNT; k++) p->formats[k] = (int32_t)tli_scheme_formats[k];
    p->choice.formats = p->formats;
    p->choice.costs = p->costs;
    p->choice.losses = p->losses;
    p->choice.nets = p->nets;
    p->choice.net_count = p->net_count;
    p->choice.work_limit = p->desc.work_limit;
}

// Set up the choice of a desc that was checked. limited: 0 = without its loss limit.
static tl_result tli_open_precision(tl_env *env, tli_function function, const tl_precision_desc *desc,
                                    int limited, tli_precision *p) {
    const tl_graph *graph = desc->graph;
    int64_t nodes = graph->node_count;
    uint64_t cost, loss;
    tl_result result;
    int32_t i;
    tli_zero(p, sizeof *p);
    p->env = env;
    p->function = function;
    p->graph = graph;
    p->desc = tl_default_precision(desc);
    p->speeds.conversions = desc->device && desc->device->bytes_per_second ? TL_SPEED_FROM_DEVICE
                                                                           : TL_SPEED_ASSUMED;
    for (i = 0; i < graph->tensor_count && !desc->any_result; i++)
        nodes += graph->nodes[graph->outputs[i].node].keep;
    p->node_count = (int32_t)nodes;
    if (nodes > TLI_CHOICE_MOST_NODES)
        return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(GRAPH_NODES_AND_RESULTS_MUST_BE_AT));
    if (!tli_add_precision_arrays(p))
        return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_CHOICE));
    result = tli_fill_options(p);
    if (result) return result;
    tli_find_nets(p);
    tli_find_node_nets(p);
    for (i = 0; i < p->net_count; i++)
        if (!tli_price_net(p, i)) break;
    if (i < p->net_count || !tli_fits_costs(p))
        return tli_fail(env, TL_ERROR_OVERFLOW, function,
                        TLI_RULE(GRAPH_SUM_OF_COSTS_AND_CONVERSIONS));
    if (!tli_fits_losses(p))
        return tli_fail(env, TL_ERROR_OVERFLOW, function, TLI_RULE(LOSSES_SUM_OF_LARGEST_MUST_BE_FINITE));
    for (i = 0; i < graph->node_count; i++) {
        p->base_bytes += p->bytes[(size_t)i * TL_SCHEME_COUNT + TL_SCHEME_F32];
        p->base_cost += p->times[(size_t)i * TL_SCHEME_COUNT + TL_SCHEME_F32];
    }
    if (p->desc.objective == TL_OBJECTIVE_BYTES) p->base_cost = p->base_bytes;
    p->cost_limit = tli_find_divisor(p->base_cost, p->desc.least_speedup);
    tli_count_losses(p, limited ? p->desc.loss_limit : tli_infinity());
    tli_set_choice(p);
    if (!tli_choice_add_all_most(&p->choice, &cost, &loss))
        return tli_fail(env, TL_ERROR_OVERFLOW, function,
                        TLI_RULE(LOSS_LIMIT_IS_TOO_SMALL_BESIDE_LOSSES));
    return TL_OK;
}

// -- precision plan: amounts of a choice --

// Formats to which a net's tensor is converted, as bits 1 << tl_format.
static uint32_t tli_find_wanted(const tli_choice_net *net, const uint8_t *schemes) {
    uint32_t wanted = 0;
    int32_t k;
    for (k = 0; k < net->reader_count; k++) wanted |= TLI_BIT(tli_scheme_formats[schemes[net->readers[k]]]);
    return wanted & ~TLI_BIT(tli_scheme_formats[schemes[net->producer]]);
}

static int32_t tli_count_wanted(const tli_choice_net *net, const uint8_t *schemes) {
    uint32_t wanted = tli_find_wanted(net, schemes);
    int32_t count = 0;
    for (; wanted; wanted &= wanted - 1) count++;
    return count;
}

static uint64_t tli_sum_net(const tli_choice_net *net, const uint8_t *schemes) {
    const uint64_t *costs = net->costs + tli_scheme_formats[schemes[net->producer]] * TL_FORMAT_COUNT;
    uint32_t wanted = tli_find_wanted(net, schemes);
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < TL_FORMAT_COUNT; k++)
        if (wanted >> k & 1) sum += costs[k];
    return sum;
}

// The cost of a node and of all nets that it makes or reads, in the present choice.
static uint64_t tli_sum_around(const tli_precision *p, int32_t id) {
    uint64_t sum = p->costs[(size_t)id * TL_SCHEME_COUNT + p->schemes[id]];
    int32_t i;
    for (i = p->first_nets[id]; i < p->first_nets[id + 1]; i++)
        sum += tli_sum_net(&p->nets[p->node_nets[i]], p->schemes);
    return sum;
}

// The conversions of all nets that a node makes or reads.
static int32_t tli_count_around(const tli_precision *p, int32_t id) {
    int32_t i, count = 0;
    for (i = p->first_nets[id]; i < p->first_nets[id + 1]; i++)
        count += tli_count_wanted(&p->nets[p->node_nets[i]], p->schemes);
    return count;
}

// -- precision plan: ties --

// Change one node to the preferred scheme, if neither the cost with its nets nor its conversions and their cost
// grow and the limit is kept. Each change improves the node's preference, so repeating this ends.
static int tli_prefer_scheme(tli_precision *p, uint64_t most_loss, tli_pick *pick, int32_t id) {
    size_t row = (size_t)id * TL_SCHEME_COUNT;
    uint64_t before = tli_sum_around(p, id), after, loss;
    int32_t conversions = tli_count_around(p, id), grown;
    size_t now = p->schemes[id], best = now, k;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (k == best || p->costs[row + k] == TL_FORBIDDEN || p->ranks[row + k] > p->ranks[row + best])
            continue;
        if (p->ranks[row + k] == p->ranks[row + best] &&
            (p->losses[row + k] > p->losses[row + best] ||
             (p->losses[row + k] == p->losses[row + best] && k > best))) continue;
        p->schemes[id] = (uint8_t)k;
        after = tli_sum_around(p, id);
        grown = tli_count_around(p, id) > conversions;
        p->schemes[id] = (uint8_t)now;
        loss = pick->loss - p->losses[row + now] + p->losses[row + k];
        if (loss > most_loss || after > before || grown ||
            after - p->costs[row + k] > before - p->costs[row + now]) continue;
        best = k;
    }
    if (best == now) return 0;
    p->schemes[id] = (uint8_t)best;
    pick->cost = pick->cost - before + tli_sum_around(p, id);
    pick->loss = pick->loss - p->losses[row + now] + p->losses[row + best];
    return 1;
}

static void tli_break_ties(tli_precision *p, uint64_t most_loss, tli_pick *pick) {
    int32_t id, changed = 1;
    while (changed)
        for (changed = 0, id = 0; id < p->graph->node_count; id++)
            changed |= tli_prefer_scheme(p, most_loss, pick, id);
}

// -- precision plan: the criteria --

static int tli_is_accuracy(const tli_precision *p) { return p->desc.criterion == TL_CRITERION_ACCURACY; }

// The work limit of choices that only refine the plan.
static uint64_t tli_least_work(uint64_t limit) {
    return limit && limit < TLI_EXTRA_WORK ? limit : TLI_EXTRA_WORK;
}

static void tli_take_schemes(tli_precision *p, const uint8_t *schemes) {
    tli_copy(p->schemes, schemes, (size_t)p->node_count);
}

static tl_result tli_choose(tli_precision *p, int least_loss, uint64_t loss_limit, uint64_t cost_limit,
                            tli_choice_plan *chosen) {
    p->choice.least_loss = least_loss;
    p->choice.loss_limit = loss_limit;
    p->choice.cost_limit = cost_limit;
    return tli_plan_choice(p->env, &p->choice, chosen);
}

static tl_result tli_fail_choice(const tli_precision *p) {
    return tli_fail(p->env, TL_ERROR_NO_MEMORY, p->function, TLI_RULE(NO_MEMORY_FOR_CHOICE));
}

static tli_pick tli_take_choice(tli_precision *p, const tli_choice_plan *chosen) {
    tli_pick pick;
    pick.cost = chosen->cost;
    pick.loss = chosen->loss;
    pick.bound = chosen->bound;
    pick.proven = chosen->proven;
    pick.gap_ratio = chosen->gap_ratio;
    pick.bound_loss = 0;
    tli_take_schemes(p, chosen->schemes);
    return pick;
}

// Choose the least cost within a loss. No error text is set for TL_ERROR_INFEASIBLE.
static tl_result tli_pick_cost(tli_precision *p, uint64_t loss_limit, tli_pick *pick) {
    tli_choice_plan chosen;
    tl_result result = tli_choose(p, 0, loss_limit, 0, &chosen);
    if (result == TL_ERROR_INFEASIBLE) return result;
    if (result) return tli_fail_choice(p);
    *pick = tli_take_choice(p, &chosen);
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

// Choose the least loss within a cost, and the least cost among those. *nearest = the nearest cost that can be
// met, after TL_ERROR_INFEASIBLE.
static tl_result tli_pick_loss(tli_precision *p, uint64_t cost_limit, tli_pick *pick, uint64_t *nearest) {
    tli_choice_plan chosen, second;
    tl_result result = tli_choose(p, 1, 0, cost_limit, &chosen);
    *nearest = chosen.nearest_limit;
    if (result == TL_ERROR_INFEASIBLE) return result;
    if (result) return tli_fail_choice(p);
    *pick = tli_take_choice(p, &chosen);
    pick->bound_loss = pick->bound;
    pick->bound = 0;
    tli_free_choice_plan(p->env, &chosen);
    result = tli_choose(p, 0, pick->loss, 0, &second);  // the choice found above is within this limit
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result) return TL_OK;
    pick->bound = second.bound;
    if (second.cost < pick->cost) {
        pick->cost = second.cost;
        pick->loss = second.loss;
        tli_take_schemes(p, second.schemes);
    }
    tli_free_choice_plan(p->env, &second);
    return TL_OK;
}

// Multiply a big number by 64 bits, as two factors of 32 bits.
static void tli_big_multiply(tli_big *a, uint64_t factor) {
    tli_big high = *a;
    tli_big_scale(a, (uint32_t)factor, 0);
    while (a->count && !a->limb[a->count - 1]) a->count--;
    tli_big_scale(&high, (uint32_t)(factor >> 32), 0);
    while (high.count && !high.limb[high.count - 1]) high.count--;
    tli_big_shift(&high, 32);
    tli_big_add(a, &high);
}

// weight / most, in units of 2^-32, x distance x axis, exactly. Comparing distance / length of its own axis
// is the same as comparing distance x length of the other axis.
static tli_big tli_weigh(double weight, double most, uint64_t distance, uint64_t axis) {
    tli_big value;
    tli_big_set(&value, tli_divide_f64(weight, 32, most, 0));
    tli_big_multiply(&value, distance);
    tli_big_multiply(&value, axis);
    return value;
}

// The sum of the preferences of a choice; lower is better.
static uint64_t tli_sum_ranks(const tli_precision *p, const uint8_t *schemes) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++) sum += p->ranks[(size_t)id * TL_SCHEME_COUNT + schemes[id]];
    return sum;
}

// The point with the least weighted sum of loss and cost, each scaled to 0 .. 1; among equal ones that of the
// best preferences, then of less loss.
static int32_t tli_find_knee(const tli_precision *p, const tli_choice_front *front) {
    const tl_precision_desc *desc = &p->desc;
    const tli_front_point *first = &front->points[0], *last = &front->points[front->point_count - 1];
    double most = desc->performance_weight > desc->accuracy_weight ? desc->performance_weight
                                                                   : desc->accuracy_weight;
    tli_big least, sum, other;
    int32_t knee = 0, i;
    tli_big_set(&least, 0);
    for (i = 0; i < front->point_count; i++) {
        const tli_front_point *point = &front->points[i];
        int order;
        sum = tli_weigh(desc->accuracy_weight, most, point->loss - first->loss, first->cost - last->cost);
        other = tli_weigh(desc->performance_weight, most, point->cost - last->cost, last->loss - first->loss);
        tli_big_add(&sum, &other);
        order = i ? tli_big_compare(&sum, &least) : -1;
        if (order > 0 || (!order && tli_sum_ranks(p, point->schemes) >=
                                        tli_sum_ranks(p, front->points[knee].schemes))) continue;
        least = sum;
        knee = i;
    }
    return knee;
}

static tl_result tli_pick_knee(tli_precision *p, tli_pick *pick) {
    tli_choice_front front;
    const tli_front_point *point;
    tl_result result = tli_plan_choice_front(p->env, &p->choice, 0, &front);
    if (result) return tli_fail_choice(p);
    point = &front.points[tli_find_knee(p, &front)];
    tli_take_schemes(p, point->schemes);
    pick->cost = point->cost;
    pick->loss = point->loss;
    pick->bound = point->bound_cost;
    pick->bound_loss = 0;
    pick->proven = point->bound_cost == point->cost;
    pick->gap_ratio = pick->proven ? 0 : tli_find_gap(point->cost, point->bound_cost);
    tli_free_choice_front(p->env, &front);
    return TL_OK;
}

// Among choices of the same cost take the one of least loss.
static tl_result tli_lower_loss(tli_precision *p, tli_pick *pick) {
    tli_choice_plan chosen;
    tl_result result;
    if (!pick->loss || tli_is_accuracy(p)) return TL_OK;
    result = tli_choose(p, 1, 0, pick->cost, &chosen);
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result) return TL_OK;
    if (chosen.cost <= pick->cost && chosen.loss < pick->loss) {
        pick->cost = chosen.cost;
        pick->loss = chosen.loss;
        tli_take_schemes(p, chosen.schemes);
    }
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

// -- precision plan: preferences over the whole graph --
//
// Among choices of equal cost the first is the one of fewest conversions, then the one with most nodes in a
// scheme of the first rank, then of the second, and so on. For that, costs are multiplied, and conversions and
// nodes pay in the units below:
//
//     cost' = cost x W + conversions x B^m + B^(m-1) x nodes above rank 0 + B^(m-2) x nodes above rank 1 + ...
//
// where B is larger than the number of nodes, and W exceeds all that follows it. As many of the ranks count as
// there is room for; none where all priorities are equal: then the choice of least loss is taken, and changed
// node by node.

typedef struct tli_ladder {
    uint64_t weight, conversion;          // W; what a conversion pays
    uint64_t prices[TL_SCHEME_COUNT + 1]; // [rank] what a node pays
} tli_ladder;

// The ranks among which nodes have a choice, as bits.
static uint32_t tli_find_ranks(const tli_precision *p) {
    uint32_t all = 0;
    int32_t id, k;
    for (id = 0; id < p->graph->node_count; id++) {
        size_t row = (size_t)id * TL_SCHEME_COUNT;
        uint32_t own = 0;
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            if (p->costs[row + (size_t)k] != TL_FORBIDDEN) own |= TLI_BIT(p->ranks[row + (size_t)k]);
        if (own & (own - 1)) all |= own;
    }
    return all;
}

// Find the prices of the ranks; weight 1 = there is nothing to prefer, or no room.
static tli_ladder tli_find_ladder(const tli_precision *p) {
    tli_ladder ladder;
    uint64_t base = (uint64_t)p->graph->node_count + 1, room, cost, loss;
    uint64_t conversions = (uint64_t)p->net_count * (TL_FORMAT_COUNT - 1) + 1;
    uint32_t ranks = tli_find_ranks(p), ranks_by_priority;
    int32_t rank, last = -1, k;
    tli_zero(&ladder, sizeof ladder);
    ladder.weight = 1;
    if (!tli_choice_add_all_most(&p->choice, &cost, &loss)) return ladder;
    room = TLI_CHOICE_MOST_SUM / (cost + 1);
    ranks_by_priority = ranks & ~TLI_BIT(0);    // rank 0 is the recommended scheme
    if (!(ranks_by_priority & (ranks_by_priority - 1)) || conversions > room / base) return ladder;
    ladder.weight = conversions;
    ladder.conversion = 1;
    for (rank = 0; rank <= TL_SCHEME_COUNT; rank++) {
        if (!(ranks >> rank & 1)) continue;
        if (last >= 0) {
            if (ladder.weight > room / base) break;
            ladder.weight *= base;
            ladder.conversion *= base;
            for (k = 0; k < rank; k++) ladder.prices[k] *= base;
            for (k = rank; k <= TL_SCHEME_COUNT; k++) ladder.prices[k] = ladder.prices[last] + 1;
        }
        last = rank;
    }
    return ladder;
}

// Multiply the costs and add the prices, or undo that.
static void tli_climb(tli_precision *p, const tli_ladder *ladder, int undo) {
    uint64_t places = (uint64_t)p->node_count * TL_SCHEME_COUNT, real, i;
    uint64_t prices = (uint64_t)p->net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    real = (uint64_t)p->graph->node_count * TL_SCHEME_COUNT;
    for (i = 0; i < places; i++) {
        if (p->costs[i] == TL_FORBIDDEN) continue;
        if (undo) p->costs[i] /= ladder->weight;
        else p->costs[i] = p->costs[i] * ladder->weight + (i < real ? ladder->prices[p->ranks[i]] : 0);
    }
    for (i = 0; i < prices; i++)        // the price of no conversion is not read
        p->net_costs[i] = undo ? p->net_costs[i] / ladder->weight
                               : p->net_costs[i] * ladder->weight + ladder->conversion;
}

// Take the choice that is preferred among those of the least cost; all costs are with the prices.
static tl_result tli_take_preferred(tli_precision *p, tli_pick *pick) {
    tli_choice_plan chosen;
    tl_result result = tli_choose(p, 0, p->most_loss, 0, &chosen);
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result) return TL_OK;
    if (chosen.cost < pick->cost) {
        pick->cost = chosen.cost;
        pick->loss = chosen.loss;
        tli_take_schemes(p, chosen.schemes);
    }
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

// Of choices of equal cost take the preferred one, of these the one of least loss, within limits of work.
static tl_result tli_settle_ties(tli_precision *p, tli_pick *pick) {
    tli_ladder ladder = tli_find_ladder(p);
    uint64_t limit = p->choice.work_limit;
    tl_result result = TL_OK;
    int32_t id;
    p->choice.work_limit = tli_least_work(limit);
    tli_climb(p, &ladder, 0);
    pick->cost *= ladder.weight;
    for (id = 0; id < p->net_count; id++)
        pick->cost += ladder.conversion * (uint64_t)tli_count_wanted(&p->nets[id], p->schemes);
    for (id = 0; id < p->graph->node_count; id++)
        pick->cost += ladder.prices[p->ranks[(size_t)id * TL_SCHEME_COUNT + p->schemes[id]]];
    if (ladder.weight > 1) result = tli_take_preferred(p, pick);
    if (!result) result = tli_lower_loss(p, pick);
    tli_climb(p, &ladder, 1);
    pick->cost /= ladder.weight;
    p->choice.work_limit = limit;
    return result;
}

// Choose by the criterion. No error text is set for TL_ERROR_INFEASIBLE: tli_fail_limit does that.
static tl_result tli_pick_criterion(tli_precision *p, uint64_t loss_limit, tli_pick *pick) {
    uint64_t nearest = 0, bound;
    tl_result result = TL_OK;
    p->most_loss = loss_limit;
    p->nearest_cost = 0;
    switch (p->desc.criterion) {
    case TL_CRITERION_PERFORMANCE:
    case TL_CRITERION_CUSTOM:
        result = tli_pick_cost(p, loss_limit, pick);
        break;
    case TL_CRITERION_BALANCED:
        result = tli_pick_knee(p, pick);
        p->most_loss = pick->loss;
        break;
    case TL_CRITERION_ACCURACY:
        result = tli_pick_loss(p, p->cost_limit, pick, &nearest);
        p->most_loss = pick->loss;
        p->nearest_cost = nearest;
        p->nearest_proven = 1;
        break;
    case TL_CRITERION_COUNT: break;
    }
    if (result) return result;
    if (p->desc.criterion == TL_CRITERION_CUSTOM && pick->cost > p->cost_limit) {
        p->nearest_cost = pick->cost;
        p->nearest_proven = pick->proven;
        if (pick->proven) return TL_ERROR_INFEASIBLE;
        bound = pick->bound;  // not proven: minimising the loss may find a choice within both limits
        result = tli_pick_loss(p, p->cost_limit, pick, &nearest);
        if (!result && pick->loss > loss_limit) return TL_ERROR_INFEASIBLE;
        pick->bound = bound;
        pick->bound_loss = 0;
        pick->proven = 0;
        pick->gap_ratio = tli_find_gap(pick->cost, bound);
        if (result) return result;
    }
    result = tli_settle_ties(p, pick);
    if (result) return result;
    tli_break_ties(p, p->most_loss, pick);
    if (tli_is_accuracy(p)) return TL_OK;
    if (pick->cost <= pick->bound) pick->proven = 1;  // breaking ties may have lowered the cost
    pick->gap_ratio = pick->proven ? 0 : tli_find_gap(pick->cost, pick->bound);
    return TL_OK;
}

// -- precision plan: limits that cannot be met --

// The first four digits of a number > 0, rounded: value = digits x 10^(*power).
static int32_t tli_round_digits(double value, int32_t *power) {
    tli_decimal d;
    int32_t digits = 0, last = 0, i;
    tli_open_decimal(&d, value, 0);
    for (i = 0; i < 4; i++) {
        last = tli_next_digit(&d);
        digits = digits * 10 + last;
    }
    *power = d.point - 4;
    return digits + tli_rounds_up(&d, last);
}

static void tli_put_digits(tli_writer *w, int32_t digits, int32_t power) {
    char text[12];
    tli_writer all = tli_writer_of(text, sizeof text);
    int32_t count, point, whole;
    for (; digits && digits % 10 == 0; power++) digits /= 10;
    tli_put_i64(&all, digits);
    count = (int32_t)tli_finish(&all);
    point = count + power;
    if (point > 6 || point < -3) {
        tli_put_bytes(w, text, 1);
        if (count > 1) { tli_put(w, "."); tli_put_bytes(w, text + 1, (size_t)count - 1); }
        tli_put(w, "e");
        tli_put_i64(w, point - 1);
        return;
    }
    whole = point < 0 ? 0 : point < count ? point : count;
    tli_put_bytes(w, text, (size_t)whole);
    tli_put_zeros(w, point - count);
    if (whole == count) return;
    tli_put(w, whole ? "." : "0.");
    tli_put_zeros(w, -point);
    tli_put_bytes(w, text + whole, (size_t)(count - whole));
}

// Write a number for people, rounded to four digits.
static void tli_put_rounded(tli_writer *w, double value) {
    int32_t digits, power;
    if (value != value) { tli_put(w, "not known"); return; }
    if (value < 0) { tli_put(w, "-"); value = -value; }
    if (!tli_is_amount(value)) { tli_put(w, "infinite"); return; }
    if (!(value > 0)) { tli_put(w, "0"); return; }
    digits = tli_round_digits(value, &power);
    tli_put_digits(w, digits, power);
}

// Write a / b with up to four decimals, rounded down; 0 < b < 2^60.
static void tli_put_ratio_down(tli_writer *w, uint64_t a, uint64_t b) {
    uint64_t rest = a % b;
    int32_t i;
    tli_put_u64(w, a / b);
    for (i = 0; i < 4 && rest; i++) {
        if (!i) tli_put(w, ".");
        rest *= 10;
        tli_put_u64(w, rest / b);
        rest %= b;
    }
}

static double tli_find_least_loss(const tli_precision *p, int32_t id) {
    double least = tli_infinity();
    int32_t k;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        size_t at = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
        if (p->costs[at] != TL_FORBIDDEN && p->node_losses[at] < least) least = p->node_losses[at];
    }
    return least;
}

// Whether a limit can be met, with losses in units as tli_count_losses makes them.
static int tli_is_loss_held(const tli_precision *p, double limit) {
    uint64_t sum = 0, most = UINT64_C(1) << TLI_LOSS_BITS, units;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++) {
        units = tli_divide_f64(tli_find_least_loss(p, id), TLI_LOSS_BITS, limit, 1);
        if (units > most - sum) return 0;
        sum += units;
    }
    return 1;
}

// Write the least limit of four digits that can be met.
static void tli_put_least_loss(tli_writer *w, const tli_precision *p, double sum) {
    double value;
    int32_t digits, power;
    char text[32];
    tli_word word;
    if (!tli_is_amount(sum)) { tli_put(w, "infinite"); return; }
    for (digits = tli_round_digits(sum, &power); ; digits++) {
        tli_writer number = tli_writer_of(text, sizeof text);
        tli_put_i64(&number, digits);
        tli_put(&number, "e");
        tli_put_i64(&number, power);
        word.text = text;
        word.length = tli_finish(&number);
        if (!tli_read_f64(word, &value) || tli_is_loss_held(p, value)) break;
    }
    tli_put_digits(w, digits, power);
}

static tl_result tli_fail_loss_limit(const tli_precision *p) {
    double sum = 0;
    int32_t id;
    tli_sentence s;
    for (id = 0; id < p->graph->node_count; id++) sum += tli_find_least_loss(p, id);
    s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, p->function,
                        TLI_RULE(LOSS_LIMIT_CANNOT_BE_HELD_LEAST_LOSS),
                        tli_bits_of_f64(p->desc.loss_limit), tli_bits_of_f64(sum));
    if (!TLI_ERROR_TEXT) return TL_ERROR_INFEASIBLE;
    tli_put_rule(&s);
    tli_put_f64(&s.text, p->desc.loss_limit);
    tli_put_rule(&s);
    tli_put_least_loss(&s.text, p, sum);
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

static tl_result tli_fail_limit(const tli_precision *p) {
    tli_sentence s;
    if (!p->nearest_cost) return tli_fail_loss_limit(p);
    s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, p->function, p->nearest_proven
        ? TLI_RULE(LEAST_SPEEDUP_CANNOT_BE_HELD_AT_MOST)
        : TLI_RULE(LEAST_SPEEDUP_WAS_NOT_FOUND_AT_MOST),
        p->base_cost, p->nearest_cost);
    if (!TLI_ERROR_TEXT) return TL_ERROR_INFEASIBLE;
    tli_put_rule(&s);
    tli_put_f64(&s.text, p->desc.least_speedup);
    tli_put_rule(&s);
    tli_put_ratio_down(&s.text, p->base_cost, p->nearest_cost);
    tli_put_rule(&s);
    if (p->desc.criterion == TL_CRITERION_CUSTOM) tli_put(&s.text, " within loss_limit");
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

// -- precision plan: from a choice to a plan --

// The limit of the cost; TL_UNLIMITED for criteria that have none.
static uint64_t tli_find_most_cost(const tli_precision *p) {
    return tli_is_accuracy(p) || p->desc.criterion == TL_CRITERION_CUSTOM ? p->cost_limit : TL_UNLIMITED;
}

static double tli_sum_losses(const tli_precision *p, const uint8_t *schemes) {
    double sum = 0;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++)
        sum += p->node_losses[(size_t)id * TL_SCHEME_COUNT + schemes[id]];
    return sum;
}

// The bytes of all weights and tensors, with converted copies.
static uint64_t tli_sum_bytes(const tli_precision *p, const uint8_t *schemes) {
    uint64_t sum = 0;
    int32_t i, k;
    for (i = 0; i < p->graph->node_count; i++) sum += p->bytes[(size_t)i * TL_SCHEME_COUNT + schemes[i]];
    for (i = 0; i < p->net_count; i++) {
        uint32_t wanted = tli_find_wanted(&p->nets[i], schemes);
        for (k = 0; k < TL_FORMAT_COUNT; k++)
            if (wanted >> k & 1)
                sum += tl_find_format_bytes((tl_format)k, p->graph->outputs[p->net_tensors[i]].bytes);
    }
    return sum;
}

static void tli_fill_chosen(const tli_precision *p, int32_t id, tl_precision_node *node) {
    size_t row = (size_t)id * TL_SCHEME_COUNT, at = row + p->schemes[id];
    int32_t i, k;
    tli_zero(node, sizeof *node);
    node->scheme = (tl_scheme)p->schemes[id];
    node->format = tl_find_scheme_format(node->scheme);
    node->source = (tl_loss_source)p->sources[at];
    node->speed_source = (tl_speed_source)p->speed_sources[at];
    node->loss = p->node_losses[at];
    node->speedup = tli_find_speedup(p->times[row + TL_SCHEME_F32], p->times[at]);
    node->runner_up = TL_SCHEME_COUNT;
    for (i = p->first_nets[id]; i < p->first_nets[id + 1]; i++) {
        const tli_choice_net *net = &p->nets[p->node_nets[i]];
        uint32_t wanted = net->producer == id ? tli_find_wanted(net, p->schemes) : 0;
        if (wanted) node->conversion_cost += tli_sum_net(net, p->schemes);
        for (k = 0; k < TL_FORMAT_COUNT; k++) node->conversion_count += (int32_t)(wanted >> k & 1);
    }
}

static void tli_fill_precision_plan(const tli_precision *p, const tli_pick *pick, double limit,
                                    tl_precision_plan *plan) {
    tl_precision_node *nodes = (tl_precision_node *)plan->memory;
    int32_t id;
    tli_zero(plan->scheme_counts, sizeof plan->scheme_counts);
    plan->nodes = nodes;
    plan->node_count = p->graph->node_count;
    plan->criterion = p->desc.criterion;
    plan->objective = p->desc.objective;
    plan->speeds = p->speeds;
    plan->conversion_cost = 0;
    plan->conversion_count = 0;
    for (id = 0; id < plan->node_count; id++) {
        tli_fill_chosen(p, id, &nodes[id]);
        plan->conversion_cost += nodes[id].conversion_cost;
        plan->conversion_count += nodes[id].conversion_count;
        if (!p->graph->nodes[id].is_input) plan->scheme_counts[nodes[id].scheme]++;
    }
    plan->loss = tli_sum_losses(p, p->schemes);
    plan->loss_limit = limit;
    if (plan->loss > limit) plan->loss = limit;  // the exact sum is within it, the sum of doubles may not be
    plan->measured_loss = tli_not_a_number();
    plan->cost = pick->cost;
    plan->base_cost = p->base_cost;
    plan->bound_cost = pick->bound;
    plan->bound_loss = 0;
    if (p->desc.criterion == TL_CRITERION_ACCURACY) {
        plan->bound_loss = tli_scale_f64((double)pick->bound_loss, p->unit_exponent);
        if (pick->proven || plan->bound_loss > plan->loss) plan->bound_loss = plan->loss;
    }
    plan->proven = pick->proven;
    plan->gap_ratio = pick->gap_ratio;
    plan->speedup = tli_find_speedup(plan->base_cost, plan->cost);
    if (tli_find_most_cost(p) != TL_UNLIMITED && plan->speedup < p->desc.least_speedup)
        plan->speedup = p->desc.least_speedup;  // it is met: the quotient of doubles may be rounded down
    plan->bytes = tli_sum_bytes(p, p->schemes);
    plan->base_bytes = p->base_bytes;
}

// -- precision plan: runners-up --

typedef struct tli_runner_up {
    uint64_t cost, loss;     // of the whole graph
    double   loss_sum;
    int32_t  scheme;         // of the node; TL_SCHEME_COUNT = none
    int32_t  proven;
} tli_runner_up;

// The runner-up of a node when all other nodes keep their schemes.
static tli_runner_up tli_find_local(tli_precision *p, const tli_pick *pick, int32_t id) {
    size_t row = (size_t)id * TL_SCHEME_COUNT;
    uint64_t before = tli_sum_around(p, id), cost, loss;
    size_t now = p->schemes[id], k;
    tli_runner_up best;
    tli_zero(&best, sizeof best);
    best.scheme = TL_SCHEME_COUNT;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (k == now || p->costs[row + k] == TL_FORBIDDEN) continue;
        p->schemes[id] = (uint8_t)k;
        cost = pick->cost - before + tli_sum_around(p, id);
        loss = pick->loss - p->losses[row + now] + p->losses[row + k];
        if (cost <= tli_find_most_cost(p) && (tli_is_accuracy(p) || loss <= p->most_loss) &&
            (best.scheme == TL_SCHEME_COUNT ||
             (tli_is_accuracy(p) ? loss < best.loss || (loss == best.loss && cost < best.cost)
                                 : cost < best.cost || (cost == best.cost && loss < best.loss)))) {
            best.cost = cost;
            best.loss = loss;
            best.scheme = (uint8_t)k;
            best.loss_sum = tli_sum_losses(p, p->schemes);
        }
    }
    p->schemes[id] = (uint8_t)now;
    return best;
}

// The runner-up of a node by choosing for the whole graph without the node's scheme. Reduces the remaining
// *work.
static tl_result tli_find_exact(tli_precision *p, int32_t id, uint64_t *work, tli_runner_up *found) {
    size_t at = (size_t)id * TL_SCHEME_COUNT + p->schemes[id];
    uint64_t kept = p->costs[at], limit = p->choice.work_limit;
    tli_choice_plan chosen;
    tl_result result;
    tli_zero(found, sizeof *found);
    found->scheme = TL_SCHEME_COUNT;
    p->costs[at] = TL_FORBIDDEN;
    p->choice.work_limit = *work;
    result = tli_choose(p, tli_is_accuracy(p), p->most_loss, p->cost_limit, &chosen);
    p->choice.work_limit = limit;
    p->costs[at] = kept;
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result == TL_ERROR_INFEASIBLE) { found->proven = 1; return TL_OK; }
    *work -= chosen.work < *work ? chosen.work : *work;
    found->proven = chosen.proven;
    if (chosen.cost <= tli_find_most_cost(p)) {
        found->cost = chosen.cost;
        found->loss = chosen.loss;
        found->loss_sum = tli_sum_losses(p, chosen.schemes);
        found->scheme = chosen.schemes[id];
    }
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

static double tli_find_margin(const tli_precision *p, const tl_precision_plan *plan, int32_t id) {
    const tl_precision_node *node = &plan->nodes[id];
    size_t row = (size_t)id * TL_SCHEME_COUNT;
    double more, all;
    if (node->runner_up == TL_SCHEME_COUNT) return 1;
    if (tli_is_accuracy(p)) {
        more = node->runner_up_loss - plan->loss;
        all = p->node_losses[row + (size_t)node->runner_up];
    } else {
        more = node->runner_up_cost > plan->cost ? (double)(node->runner_up_cost - plan->cost) : 0;
        all = (double)(p->desc.objective == TL_OBJECTIVE_TIME ? p->times : p->bytes)[row + TL_SCHEME_F32];
    }
    return !(more > 0) ? 0 : more < all ? more / all : 1;
}

static double tli_find_confidence(const tli_precision *p, const tl_precision_plan *plan, int32_t id) {
    double trust = 1;
    switch (plan->nodes[id].source) {
    case TL_LOSS_FROM_PROFILE: trust = p->graph->nodes[id].is_input ? 1 : 0.5; break;
    case TL_LOSS_FROM_DATA: trust = 0.75; break;
    case TL_LOSS_FROM_MEASURED:
    case TL_LOSS_SOURCE_COUNT: break;
    }
    return trust * (1 + tli_find_margin(p, plan, id)) / 2;
}

static tl_result tli_find_runners_up(tli_precision *p, const tli_pick *pick, tl_precision_plan *plan) {
    tl_precision_node *nodes = (tl_precision_node *)plan->memory;
    uint64_t work = p->graph->node_count > TLI_EXACT_NODES ? 0 : TLI_EXTRA_WORK;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++) {
        tli_runner_up best = tli_find_local(p, pick, id), exact;
        int worse = 0;
        if (work && !p->graph->nodes[id].is_input) {
            tl_result result = tli_find_exact(p, id, &work, &exact);
            if (result) return result;
            worse = !exact.proven && best.scheme != TL_SCHEME_COUNT &&
                    (exact.scheme == TL_SCHEME_COUNT ||
                     (tli_is_accuracy(p) ? best.loss < exact.loss : best.cost < exact.cost));
            if (!worse) best = exact;
        } else if (p->graph->nodes[id].is_input) {
            best.proven = 1;
        }
        nodes[id].runner_up = (tl_scheme)best.scheme;
        nodes[id].runner_up_proven = best.proven;
        nodes[id].runner_up_cost = best.cost;
        nodes[id].runner_up_loss = best.loss_sum;
        nodes[id].confidence = tli_find_confidence(p, plan, id);
    }
    return TL_OK;
}

// -- precision plan: rounds --

static tl_result tli_measure_plan(const tli_precision *p, tl_precision_plan *plan) {
    double loss = tli_not_a_number();
    tl_result result = p->desc.evaluate(plan, &loss, p->desc.user);
    tli_sentence s;
    if (result) {
        s = tli_begin_error(p->env, TL_ERROR_KERNEL, p->function, TLI_RULE(EVALUATE_FAILED),
                            (uint64_t)result, 0);
        tli_put_text(&s, tl_name_result(result));
        return tli_end_error(p->env, &s, TL_ERROR_KERNEL);
    }
    if (loss != loss)
        return tli_fail(p->env, TL_ERROR_KERNEL, p->function, TLI_RULE(EVALUATE_LOSS_IS_NOT_NUMBER));
    plan->measured_loss = loss;
    return TL_OK;
}

static int tli_has_loss_limit(const tl_precision_desc *desc) {
    return (desc->criterion == TL_CRITERION_PERFORMANCE || desc->criterion == TL_CRITERION_CUSTOM) &&
           !tli_is_unlimited(desc->loss_limit);
}

// Tighten the limit by loss_limit / measured, in units of 2^-20, and by a sixteenth at least.
static uint64_t tli_cut_limit(const tli_precision *p, uint64_t limit, double measured) {
    uint64_t share = tli_is_amount(measured) ? tli_divide_f64(p->desc.loss_limit, 20, measured, 0) : 0;
    uint64_t cut = limit * share >> 20, most = limit - limit / 16;
    return cut < most ? cut : most;
}

static tl_result tli_fail_measured(const tli_precision *p, double measured) {
    tli_sentence s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, p->function,
        TLI_RULE(LOSS_LIMIT_CANNOT_BE_HELD_EVALUATE),
        tli_bits_of_f64(p->desc.loss_limit), tli_bits_of_f64(measured));
    if (!TLI_ERROR_TEXT) return TL_ERROR_INFEASIBLE;
    tli_put_rule(&s);
    tli_put_f64(&s.text, p->desc.loss_limit);
    tli_put_rule(&s);
    tli_put_rounded(&s.text, measured);
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

// The last round: the choice of least loss, when no tighter limit brought the measured loss within the limit.
static tl_result tli_try_least_loss(tli_precision *p, tli_pick *pick, tl_precision_plan *plan) {
    uint64_t nearest;
    tl_result result = tli_pick_loss(p, tli_find_most_cost(p), pick, &nearest);
    if (result == TL_ERROR_INFEASIBLE) return tli_fail_measured(p, plan->measured_loss);
    if (result) return result;
    p->most_loss = pick->loss;
    pick->bound_loss = 0;
    plan->round_count++;
    tli_fill_precision_plan(p, pick, p->desc.loss_limit, plan);
    result = tli_measure_plan(p, plan);
    if (result) return result;
    plan->loss_limit = plan->loss;
    return plan->measured_loss <= p->desc.loss_limit ? TL_OK : tli_fail_measured(p, plan->measured_loss);
}

static tl_result tli_run_rounds(tli_precision *p, tli_pick *pick, tl_precision_plan *plan) {
    uint64_t units = p->loss_units;
    int limited = tli_has_loss_limit(&p->desc);
    tl_result result;
    for (;;) {
        result = tli_pick_criterion(p, units, pick);
        if (result == TL_ERROR_INFEASIBLE && plan->round_count) break;
        if (result) return result == TL_ERROR_INFEASIBLE ? tli_fail_limit(p) : result;
        plan->round_count++;
        tli_fill_precision_plan(p, pick, limited ? (units == p->loss_units ? p->desc.loss_limit :
                                    tli_scale_f64((double)units, -TLI_LOSS_BITS) * p->desc.loss_limit)
                                    : tli_infinity(), plan);
        if (!p->desc.evaluate) return TL_OK;
        result = tli_measure_plan(p, plan);
        if (result || !limited || plan->measured_loss <= p->desc.loss_limit) return result;
        if (plan->round_count >= p->desc.round_limit || !units) break;
        units = tli_cut_limit(p, units, plan->measured_loss);
    }
    return tli_try_least_loss(p, pick, plan);
}

TLI_IMPL tl_result tl_plan_precision(tl_env *env, const tl_precision_desc *desc, tl_precision_plan *plan) {
    const tli_function function = TLI_IN(PLAN_PRECISION);
    tli_precision p;
    tli_pick pick;
    tl_result result;
    TL_ASSERT(desc && desc->graph && plan);
    tli_zero(plan, sizeof *plan);
    result = tli_check_precision_of(env, function, desc);
    if (result) return result;
    tli_zero(&pick, sizeof pick);
    result = tli_open_precision(env, function, desc, tli_has_loss_limit(desc), &p);
    if (!result) {
        plan->memory = tli_alloc_array(env, (uint64_t)desc->graph->node_count, sizeof *plan->nodes);
        result = plan->memory ? tli_run_rounds(&p, &pick, plan)
                              : tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_PLAN));
    }
    if (!result) result = tli_find_runners_up(&p, &pick, plan);
    tli_close_precision(&p);
    if (result) tl_free_precision_plan(env, plan);
    return result;
}

TLI_IMPL void tl_free_precision_plan(tl_env *env, tl_precision_plan *plan) {
    if (!plan) return;
    tli_release(env, plan->memory);
    tli_zero(plan, sizeof *plan);
}

// -- precision plan: the front --

static tl_result tli_fill_front(tli_precision *p, const tli_choice_front *chosen, tl_precision_front *front) {
    uint64_t points = (uint64_t)chosen->point_count, nodes = (uint64_t)p->graph->node_count;
    tl_precision_point *point;
    uint8_t *schemes;
    int32_t i;
    point = (tl_precision_point *)tli_alloc_array(p->env, points, sizeof *point + (size_t)nodes);
    if (!point) return tli_fail(p->env, TL_ERROR_NO_MEMORY, p->function, TLI_RULE(NO_MEMORY_FOR_POINTS));
    schemes = (uint8_t *)(point + points);
    front->memory = point;
    front->points = point;
    front->point_count = chosen->point_count;
    front->complete = chosen->complete;
    front->knee = tli_find_knee(p, chosen);
    front->base_cost = p->base_cost;
    front->base_bytes = p->base_bytes;
    front->speeds = p->speeds;
    for (i = 0; i < chosen->point_count; i++, point++, schemes += nodes) {
        const tli_front_point *from = &chosen->points[i];
        tli_copy(schemes, from->schemes, (size_t)nodes);
        point->schemes = schemes;
        point->loss = tli_sum_losses(p, schemes);
        point->cost = from->cost;
        point->bound_cost = from->bound_cost;
        point->speedup = tli_find_speedup(p->base_cost, from->cost);
        point->bytes = tli_sum_bytes(p, from->schemes);  // the front's schemes include the readers of results
    }
    return TL_OK;
}

TLI_IMPL tl_result tl_plan_precision_front(tl_env *env, const tl_precision_desc *desc, int32_t point_limit,
                                           tl_precision_front *front) {
    const tli_function function = TLI_IN(PLAN_PRECISION_FRONT);
    tli_choice_front chosen;
    tli_precision p;
    tl_result result;
    TL_ASSERT(desc && desc->graph && front);
    tli_zero(front, sizeof *front);
    if (point_limit < 0 || point_limit == 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(POINT_LIMIT_MUST_BE_0_OR_2_AND_MORE));
    result = tli_check_precision_of(env, function, desc);
    if (result) return result;
    result = tli_open_precision(env, function, desc, 0, &p);
    if (!result) {
        result = tli_plan_choice_front(env, &p.choice, point_limit, &chosen);
        if (result) {
            result = tli_fail_choice(&p);
        } else {
            result = tli_fill_front(&p, &chosen, front);
            tli_free_choice_front(env, &chosen);
        }
    }
    tli_close_precision(&p);
    return result;
}

TLI_IMPL void tl_free_precision_front(tl_env *env, tl_precision_front *front) {
    if (!front) return;
    tli_release(env, front->memory);
    tli_zero(front, sizeof *front);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

