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
//
// This part: the rules of a tl_precision_desc, and the choice as choose.c takes it. The two parts that
// follow choose by the criterion, and make a plan of the choice.

#define TLI_LOSS_BITS 40          // the loss limit is 2^40 units
#define TLI_STRICT_TURNS 16       // turns of tli_pick_strictly below the loss of the last choice
#define TLI_LOSS_SUM_BITS 12      // adding 2^12 doubles rounds by at most one unit
#define TLI_EXACT_NODES 256       // most nodes of a graph whose runners-up are choices of the whole graph
#define TLI_EXTRA_WORK  50000000  // steps for all runners-up, and for each choice among those of equal cost
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
    uint64_t loss_units;         // the loss limit in units, and what rounding adds; TL_UNLIMITED = none
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

// -- precision plan: rules --

TLI_IMPL tl_precision_desc tl_default_precision(const tl_precision_desc *desc) {
    tl_precision_desc d;
    if (desc) d = *desc; else tli_zero(&d, sizeof d);
    if (!(d.least_speedup < 0) && !(d.least_speedup > 0)) d.least_speedup = 1;
    if (!d.schemes) d.schemes = d.training ? TLI_FLOAT_SCHEMES : TLI_USUAL_SCHEMES;
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

// Schemes that are formats and nothing else.
#define TLI_INPUT_SCHEMES (TLI_FLOAT_SCHEMES | TLI_BIT(TL_SCHEME_I16) | TLI_BIT(TL_SCHEME_I8))

static tli_rule tli_find_given_rule(const tl_precision_desc *desc, int32_t node) {
    const double *losses = desc->losses ? desc->losses + (size_t)node * TL_SCHEME_COUNT : NULL;
    const tl_node *graph_node = &desc->graph->nodes[node];
    int32_t k;
    if (desc->node_schemes && desc->node_schemes[node] >> TL_SCHEME_COUNT)
        return TLI_RULE(NODE_SCHEMES_UNKNOWN_BIT);
    if (desc->input_schemes && (desc->input_schemes[node] & ~TLI_INPUT_SCHEMES || (desc->input_schemes[node] &&
                                (!graph_node->is_input || graph_node->state))))
        return TLI_RULE(INPUT_SCHEMES_ARE_FORMATS_OF_INPUTS);
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
    if (!result) result = tli_refuse_formats(env, function, desc->graph, 1, TLI_RULE(FORMAT_NO_OTHER_THAN_F32));
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

// The formats that a graph input may have: one, unless the caller leaves the choice. A state is f32.
static uint32_t tli_find_input_schemes(const tl_precision_desc *desc, int32_t id) {
    uint32_t given = desc->input_schemes ? desc->input_schemes[id] : 0;
    return given ? given : TLI_BIT(TL_SCHEME_F32);
}

// Whether nothing is to be chosen for a node.
static int tli_is_fixed_input(const tl_precision_desc *desc, int32_t id) {
    uint32_t schemes = tli_find_input_schemes(desc, id);
    return desc->graph->nodes[id].is_input && !(schemes & (schemes - 1));
}

static tli_option tli_find_option(const tli_precision *p, int32_t id) {
    const tl_precision_desc *desc = &p->desc;
    uint32_t limit = desc->node_schemes && desc->node_schemes[id] ? desc->node_schemes[id] : ~(uint32_t)0;
    tli_option o;
    int32_t k;
    tli_zero(&o, sizeof o);
    if (p->graph->nodes[id].is_input) { o.schemes = tli_find_input_schemes(desc, id); return o; }
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
    for (k = 0; k < TL_SCHEME_COUNT; k++)
        if (tli_find_constant_rule(p->graph, id, (tl_scheme)k)) o.schemes &= ~TLI_BIT(k);
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
    uint64_t bytes = tli_find_weight_bytes((tl_scheme)scheme, node->param_bytes);
    int32_t k;
    bytes += tli_find_scheme_constants(p->graph, id, (tl_scheme)scheme, NULL).bytes;
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
    int32_t count;
    int own = p->desc.profiles == tl_find_default_profiles(&count) && tli_has_product(tl_name_op(p->graph, id));
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
    if (k == TL_SCHEME_F32 || p->graph->nodes[id].is_input) return TL_SPEED_EXACT;
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
            int32_t tensor = graph->inputs[graph->nodes[i].first_input + k].tensor;
            tli_choice_net *net = &p->nets[tensor];
            int32_t *readers = (int32_t *)net->readers;
            if (tli_is_statistic(graph, tensor)) continue;  // never converted
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

// Convert losses to units, rounded up. A loss of twice the limit or more is cut to that: it stays over the
// limit, and sums over all nodes fit 64 bits. A choice that loses exactly the limit may have a unit a node
// more; so loss_units is as much larger, and who chooses within it asks tli_is_over_limit whether it was too
// much.
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
    units = (UINT64_C(1) << TLI_LOSS_BITS) + 1 + places / TL_SCHEME_COUNT + (places >> TLI_LOSS_SUM_BITS);
    p->loss_units = tli_is_unlimited(limit) ? TL_UNLIMITED : limit > 0 ? units : 0;
}

// The limit in whole units: a choice within them does not exceed it, whatever was rounded.
static uint64_t tli_find_strict_units(const tli_precision *p) {
    uint64_t strict = UINT64_C(1) << TLI_LOSS_BITS;
    return p->loss_units == TL_UNLIMITED || p->loss_units < strict ? p->loss_units : strict;
}

// The loss of all nodes, by doubles added in order.
static double tli_sum_losses(const tli_precision *p, const uint8_t *schemes) {
    double sum = 0;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++)
        sum += p->node_losses[(size_t)id * TL_SCHEME_COUNT + schemes[id]];
    return sum;
}

// Whether a choice within loss_units loses more than the limit: by the doubles, and by whole units.
static int tli_is_over_limit(const tli_precision *p, const uint8_t *schemes) {
    uint64_t units = 0;
    int32_t id;
    if (p->loss_units == TL_UNLIMITED || tli_sum_losses(p, schemes) <= p->desc.loss_limit) return 0;
    for (id = 0; id < p->graph->node_count; id++)
        units += p->losses[(size_t)id * TL_SCHEME_COUNT + schemes[id]];
    return units > tli_find_strict_units(p);
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
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
