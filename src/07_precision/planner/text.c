#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- text --
//
// Names of criteria, objectives and sources of speeds; profiles and speeds as text; a plan as a table, as JSON,
// and a node as a sentence.

static const char *const tli_criterion_names[] = { TL_CRITERIA(TLI_NAME) };
static const char *const tli_objective_names[] = { TL_PRECISION_OBJECTIVES(TLI_NAME) };

TLI_IMPL const char *tl_name_criterion(tl_criterion criterion) {
    return tli_name(tli_criterion_names, TL_CRITERION_COUNT, (int64_t)criterion);
}

static const char *const tli_speed_source_names[] = { TL_SPEED_SOURCES(TLI_NAME) };

TLI_IMPL const char *tl_name_speed_source(tl_speed_source source) {
    return tli_name(tli_speed_source_names, TL_SPEED_SOURCE_COUNT, (int64_t)source);
}

TLI_IMPL const char *tl_name_objective(tl_precision_objective objective) {
    return tli_name(tli_objective_names, TL_OBJECTIVE_COUNT, (int64_t)objective);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_objective(const char *text, tl_precision_objective *objective) {
    int32_t value;
    int known = tli_parse_word(tli_objective_names, TL_OBJECTIVE_COUNT, text, &value);
    TL_ASSERT(objective);
    *objective = (tl_precision_objective)value;
    return known;
}

// -- text: kernels --

// Write the name of a scheme as a word of a name in C.
static void tli_put_scheme_word(tli_writer *w, const char *name) {
    for (; *name; name++) tli_put_bytes(w, *name == '-' ? "_" : name, 1);
}

TLI_IMPL size_t tl_print_kernel(const tl_precision_graph *applied, int32_t node, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_graph *graph = &applied->graph;
    const tl_node *at;
    TL_ASSERT(applied && node >= 0 && node < applied->graph.node_count);
    at = &graph->nodes[node];
    tli_put(&w, tl_name_op(graph, node));
    if (!at->is_input) tli_put(&w, "_");
    if (applied->new_nodes[applied->nodes[node]] != node) {
        tli_put(&w, tl_name_format((tl_format)applied->formats[graph->inputs[at->first_input].tensor]));
        tli_put(&w, "_");
        tli_put(&w, tl_name_format((tl_format)applied->formats[at->first_output]));
    } else if (!at->is_input) {
        tli_put_scheme_word(&w, tl_name_scheme((tl_scheme)applied->schemes[node]));
    }
    return tli_finish(&w);
}

// -- text: profiles --

static const char tli_profiles_head[] =
    "profiles 1\n"
    "# machine NAME [flops=N] [memory=N] [codec=N]\n"
    "#   what the lines below were measured on; - is none: speed-ups are assumed. N a second: FLOP in f32,\n"
    "#   bytes of conversions read and written, bytes of f32 converted to and from 16-bit floats\n"
    "# profile OP [device=NAME] [least=N] [most=N] [best=SCHEME] [sensitive] SCHEME=LOSS:SPEEDUP ...\n"
    "#   the first line that fits a node counts; * is any op; least and most: elements of its first output;\n"
    "#   LOSS adds up over nodes (noise power / signal power); SPEEDUP is time in f32 / time in the scheme\n"
    "# node NAME SCHEME=LOSS[:COST] ...\n"
    "#   of one node, measured: instead of what its profile says; LOSS may be - where only COST is known\n";

// Write a name as one word.
static void tli_put_word(tli_writer *w, const char *name) {
    for (; *name; name++) tli_put_bytes(w, (unsigned char)*name <= ' ' || *name == '#' ? "-" : name, 1);
}

static void tli_put_count(tli_writer *w, const char *key, uint64_t value) {
    if (value) tli_put_fact(w, key, value, "");
}

static void tli_put_machine(tli_writer *w, const char *name, const tl_device *device) {
    tli_put(w, "machine ");
    tli_put_word(w, name ? name : "-");
    if (name && device && device->name && tli_same_text(device->name, name)) {
        double rate = tli_find_f32_rate(device);
        if (rate > 0) { tli_put(w, " flops="); tli_put_f64(w, rate); }
        tli_put_count(w, " memory=", device->bytes_per_second);
        tli_put_count(w, " codec=", device->codec_bytes_per_second);
    }
    tli_put(w, "\n");
}

static void tli_put_profile(tli_writer *w, const tl_precision_profile *row) {
    int32_t k;
    tli_put(w, "profile ");
    tli_put_word(w, row->op);
    if (row->device) { tli_put(w, " device="); tli_put_word(w, row->device); }
    tli_put_count(w, " least=", row->least_elements);
    tli_put_count(w, " most=", row->most_elements);
    tli_put(w, " best=");
    tli_put(w, tl_name_scheme(row->recommended));
    if (row->sensitive) tli_put(w, " sensitive");
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (!(row->schemes >> k & 1)) continue;
        tli_put(w, " ");
        tli_put(w, tl_name_scheme((tl_scheme)k));
        tli_put(w, "=");
        tli_put_f64(w, row->loss[k]);
        tli_put(w, ":");
        tli_put_f64(w, row->speedup[k]);
    }
    tli_put(w, "\n");
}

TLI_IMPL size_t tl_print_profiles(const tl_precision_profile *profiles, int32_t profile_count,
                                  const tl_device *device, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const char *machine = NULL;
    int32_t i;
    TL_ASSERT(profiles || profile_count <= 0);
    tli_put(&w, tli_profiles_head);
    for (i = 0; i < profile_count; i++) {
        const char *name = profiles[i].measured_on;
        if (!name != !machine || (name && !tli_same_text(name, machine))) tli_put_machine(&w, name, device);
        machine = name;
        tli_put_profile(&w, &profiles[i]);
    }
    return tli_finish(&w);
}

// -- text: a plan as a table --

// Write text padded to a width, and at least one space after it.
static void tli_put_padded(tli_writer *w, const char *text, size_t width) {
    size_t length = tli_text_length(text);
    tli_put(w, text);
    do tli_put(w, " "); while (++length <= width);
}

static void tli_put_padded_number(tli_writer *w, double value, size_t width) {
    char text[32];
    tli_writer number = tli_writer_of(text, sizeof text);
    tli_put_rounded(&number, value);
    tli_finish(&number);
    tli_put_padded(w, text, width);
}

// Write how much more the runner-up costs: "+12".
static void tli_put_more_cost(tli_writer *w, const tl_precision_plan *plan, const tl_precision_node *node) {
    int less = node->runner_up_cost < plan->cost;
    tli_put(w, less ? "-" : "+");
    tli_put_u64(w, less ? plan->cost - node->runner_up_cost : node->runner_up_cost - plan->cost);
}

// Write how much more it loses: "+0.0012".
static void tli_put_more_loss(tli_writer *w, const tl_precision_plan *plan, const tl_precision_node *node) {
    double more = node->runner_up_loss - plan->loss;
    if (!(more < 0)) tli_put(w, "+");
    tli_put_rounded(w, more);
}

// Write the difference in the quantity that the criterion minimises.
static void tli_put_price(tli_writer *w, const tl_precision_plan *plan, const tl_precision_node *node) {
    if (plan->criterion == TL_CRITERION_ACCURACY) tli_put_more_loss(w, plan, node);
    else tli_put_more_cost(w, plan, node);
}

// Write a speed-up and who says so: "1.44 measured"; of f32 the number alone.
static void tli_put_speed(tli_writer *w, const tl_precision_node *node) {
    tli_put_rounded(w, node->speedup);
    if (node->speed_source == TL_SPEED_EXACT) return;
    tli_put(w, " ");
    tli_put(w, tl_name_speed_source(node->speed_source));
}

static void tli_put_padded_speed(tli_writer *w, const tl_precision_node *node, size_t width) {
    char text[48];
    tli_writer speed = tli_writer_of(text, sizeof text);
    tli_put_speed(&speed, node);
    tli_finish(&speed);
    tli_put_padded(w, text, width);
}

static void tli_put_precision_row(tli_writer *w, const tl_graph *graph, const tl_precision_plan *plan,
                                  int32_t id) {
    const tl_precision_node *node = &plan->nodes[id];
    char text[48];
    tli_writer price = tli_writer_of(text, sizeof text);
    if (node->runner_up == TL_SCHEME_COUNT) tli_put(&price, "-");
    else tli_put_price(&price, plan, node);
    if (!node->runner_up_proven) tli_put(&price, "?");
    tli_finish(&price);
    tli_put_padded(w, tl_name_node(graph, id), 20);
    tli_put_padded(w, tl_name_op(graph, id), 14);
    tli_put_padded(w, tl_name_scheme(node->scheme), 10);
    tli_put_padded_number(w, node->loss, 10);
    tli_put_padded_speed(w, node, 15);
    tli_put_padded(w, node->runner_up == TL_SCHEME_COUNT ? "-" : tl_name_scheme(node->runner_up), 10);
    tli_put_padded(w, text, 16);
    if (node->conversion_count) {
        tli_put_i64(w, node->conversion_count);
        tli_put_fact(w, " for ", node->conversion_cost, "");
    } else {
        tli_put(w, "-");
    }
    tli_put(w, "\n");
}

static void tli_put_share(tli_writer *w, double ratio) {
    tli_put_rounded(w, ratio * 100);
    tli_put(w, " %");
}

// Whether a proof rests on assumed times: those of a table that names no machine.
static int tli_is_assumed(const tl_precision_plan *plan) {
    return plan->objective == TL_OBJECTIVE_TIME && plan->speeds.counts[TL_SPEED_ASSUMED] > 0;
}

static void tli_put_precision_loss(tli_writer *w, const tl_precision_plan *plan) {
    tli_put(w, "loss: ");
    tli_put_rounded(w, plan->loss);
    if (tli_is_amount(plan->loss_limit)) {
        tli_put(w, ", limit ");
        tli_put_rounded(w, plan->loss_limit);
    }
    if (plan->measured_loss == plan->measured_loss) {
        tli_put(w, ", measured ");
        tli_put_rounded(w, plan->measured_loss);
        tli_put_fact(w, " in round ", (uint64_t)plan->round_count, "");
    }
    if (plan->criterion == TL_CRITERION_ACCURACY) {
        if (plan->proven) tli_put(w, tli_is_assumed(plan) ? "; proven for assumed speeds" : "; proven");
        tli_put(w, plan->proven ? ": no choice as good loses less" : "; no choice as good loses less than ");
        if (!plan->proven) {
            tli_put_rounded(w, plan->bound_loss);
            tli_put(w, ": at most ");
            tli_put_share(w, plan->gap_ratio);
            tli_put(w, " above");
        }
    }
    tli_put(w, "\n");
}

// Write how many nodes have their times from where.
static void tli_put_speeds(tli_writer *w, const tl_speeds *speeds) {
    static const char *const sources[] = { "in f32 alone", "assumed", "from the device", "given", "measured" };
    int32_t i, shown = 0;
    tli_put(w, "speeds:");
    for (i = TL_SPEED_SOURCE_COUNT - 1; i >= 0; i--) {
        if (!speeds->counts[i]) continue;
        tli_put(w, shown++ ? ", " : " ");
        tli_put(w, sources[i]);
        if (i == TL_SPEED_MEASURED) {
            tli_put(w, " on ");
            tli_put(w, speeds->measured_on);
        }
        tli_put_fact(w, " of ", (uint64_t)speeds->counts[i], "");
    }
    if (!shown) tli_put(w, " of no node");
    if (speeds->conversions == TL_SPEED_ASSUMED) tli_put(w, "; conversions: assumed, 1 an element");
    if (speeds->conversions == TL_SPEED_FROM_DEVICE) tli_put(w, "; conversions: the device's rate of memory");
}

TLI_IMPL size_t tl_explain_speeds(const tl_speeds *speeds, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    TL_ASSERT(speeds);
    tli_put_speeds(&w, speeds);
    return tli_finish(&w);
}

static void tli_put_precision_cost(tli_writer *w, const tl_precision_plan *plan) {
    tli_put(w, tl_name_objective(plan->objective));
    tli_put_fact(w, ": ", plan->cost, ", in f32 ");
    tli_put_fact(w, "", plan->base_cost, ": ");
    tli_put_rounded(w, plan->speedup);
    tli_put(w, " times as good");
    if (plan->criterion != TL_CRITERION_ACCURACY) {
        if (plan->proven) {
            tli_put(w, tli_is_assumed(plan) ? "; proven for assumed speeds" : "; proven");
            tli_put(w, ": no choice within the loss costs less");
        } else {
            tli_put_fact(w, "; no choice within the loss costs less than ", plan->bound_cost, ": at most ");
            tli_put_share(w, plan->gap_ratio);
            tli_put(w, " above");
        }
    }
    tli_put_fact(w, "\nconversions: ", (uint64_t)plan->conversion_count, ", of that ");
    tli_put_fact(w, "", plan->conversion_cost, "\n");
    tli_put_speeds(w, &plan->speeds);
    tli_put(w, "\n");
    tli_put_fact(w, "bytes of weights and tensors: ", plan->bytes, ", in f32 ");
    tli_put_fact(w, "", plan->base_bytes, "\n");
}

TLI_IMPL size_t tl_print_precision_plan(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                        size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i, shown = 0;
    TL_ASSERT(graph && plan);
    tli_put(&w, "node                 op             scheme     loss       speed-up        "
                "runner-up  price            conversions\n");
    for (i = 0; i < plan->node_count; i++) tli_put_precision_row(&w, graph, plan, i);
    tli_put(&w, "criterion: ");
    tli_put(&w, tl_name_criterion(plan->criterion));
    tli_put(&w, "\n");
    tli_put_precision_loss(&w, plan);
    tli_put_precision_cost(&w, plan);
    tli_put(&w, "nodes:");
    for (i = 0; i < TL_SCHEME_COUNT; i++) {
        if (!plan->scheme_counts[i]) continue;
        tli_put(&w, shown++ ? ", " : " ");
        tli_put_i64(&w, plan->scheme_counts[i]);
        tli_put(&w, " in ");
        tli_put(&w, tl_name_scheme((tl_scheme)i));
    }
    tli_put(&w, "\n");
    return tli_finish(&w);
}

// -- text: JSON --

static void tli_put_name_of(tli_writer *w, const char *key) {
    tli_put(w, ",\"");
    tli_put(w, key);
    tli_put(w, "\":");
}

static void tli_put_named_text(tli_writer *w, const char *key, const char *text) {
    tli_put_name_of(w, key);
    tli_put_json_text(w, text);
}

static void tli_put_named_u64(tli_writer *w, const char *key, uint64_t value) {
    tli_put_name_of(w, key);
    tli_put_u64(w, value);
}

static void tli_put_named_f64(tli_writer *w, const char *key, double value) {
    tli_put_name_of(w, key);
    if (tli_is_amount(value) || tli_is_amount(-value)) tli_put_f64(w, value); else tli_put(w, "null");
}

static void tli_put_named_bool(tli_writer *w, const char *key, int value) {
    tli_put_name_of(w, key);
    tli_put(w, value ? "true" : "false");
}

static const char *const tli_loss_source_names[] = { TL_LOSS_SOURCES(TLI_NAME) };

static void tli_put_json_node(tli_writer *w, const tl_graph *graph, const tl_precision_node *node, int32_t id) {
    tli_put(w, id ? ",\n{\"id\":" : "\n{\"id\":");
    tli_put_i64(w, id);
    tli_put_named_text(w, "name", tl_name_node(graph, id));
    tli_put_named_text(w, "op", tl_name_op(graph, id));
    tli_put_named_text(w, "scheme", tl_name_scheme(node->scheme));
    tli_put_named_text(w, "format", tl_name_format(node->format));
    tli_put_named_text(w, "source",
                       tli_name(tli_loss_source_names, TL_LOSS_SOURCE_COUNT, (int64_t)node->source));
    tli_put_named_f64(w, "loss", node->loss);
    tli_put_named_f64(w, "speedup", node->speedup);
    tli_put_named_text(w, "speed_source", tl_name_speed_source(node->speed_source));
    tli_put_named_f64(w, "confidence", node->confidence);
    tli_put_name_of(w, "runner_up");
    if (node->runner_up == TL_SCHEME_COUNT) {
        tli_put(w, "null");
    } else {
        tli_put(w, "{\"scheme\":");
        tli_put_json_text(w, tl_name_scheme(node->runner_up));
        tli_put_named_bool(w, "proven", node->runner_up_proven);
        tli_put_named_u64(w, "cost", node->runner_up_cost);
        tli_put_named_f64(w, "loss", node->runner_up_loss);
        tli_put(w, "}");
    }
    tli_put_named_u64(w, "conversion_count", (uint64_t)node->conversion_count);
    tli_put_named_u64(w, "conversion_cost", node->conversion_cost);
    tli_put(w, "}");
}

static void tli_put_json_speeds(tli_writer *w, const tl_speeds *speeds) {
    int32_t i;
    tli_put_name_of(w, "speeds");
    tli_put(w, "{\"conversions\":");
    tli_put_json_text(w, tl_name_speed_source(speeds->conversions));
    tli_put_named_text(w, "measured_on", speeds->measured_on);
    for (i = 0; i < TL_SPEED_SOURCE_COUNT; i++)
        tli_put_named_u64(w, tli_speed_source_names[i], (uint64_t)speeds->counts[i]);
    tli_put(w, "}");
}

TLI_IMPL size_t tl_print_precision_json(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                        size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i;
    TL_ASSERT(graph && plan);
    tli_put(&w, "{\"criterion\":");
    tli_put_json_text(&w, tl_name_criterion(plan->criterion));
    tli_put_named_text(&w, "objective", tl_name_objective(plan->objective));
    tli_put_named_f64(&w, "loss", plan->loss);
    tli_put_named_f64(&w, "loss_limit", plan->loss_limit);
    tli_put_named_f64(&w, "measured_loss", plan->measured_loss);
    tli_put_named_u64(&w, "round_count", (uint64_t)plan->round_count);
    tli_put_named_u64(&w, "cost", plan->cost);
    tli_put_named_u64(&w, "base_cost", plan->base_cost);
    tli_put_named_u64(&w, "conversion_cost", plan->conversion_cost);
    tli_put_named_u64(&w, "conversion_count", (uint64_t)plan->conversion_count);
    tli_put_named_u64(&w, "bound_cost", plan->bound_cost);
    tli_put_named_f64(&w, "bound_loss", plan->bound_loss);
    tli_put_named_bool(&w, "proven", plan->proven);
    tli_put_named_f64(&w, "gap_ratio", plan->gap_ratio);
    tli_put_named_f64(&w, "speedup", plan->speedup);
    tli_put_named_u64(&w, "bytes", plan->bytes);
    tli_put_named_u64(&w, "base_bytes", plan->base_bytes);
    tli_put_name_of(&w, "scheme_counts");
    for (i = 0; i < TL_SCHEME_COUNT; i++) {
        tli_put(&w, i ? ",\"" : "{\"");
        tli_put(&w, tl_name_scheme((tl_scheme)i));
        tli_put(&w, "\":");
        tli_put_i64(&w, plan->scheme_counts[i]);
    }
    tli_put(&w, "}");
    tli_put_json_speeds(&w, &plan->speeds);
    tli_put_name_of(&w, "nodes");
    tli_put(&w, "[");
    for (i = 0; i < plan->node_count; i++) tli_put_json_node(&w, graph, &plan->nodes[i], i);
    tli_put(&w, "\n]}\n");
    return tli_finish(&w);
}

// -- text: one node --

static const char *tli_explain_source(const tl_precision_node *node) {
    switch (node->source) {
    case TL_LOSS_FROM_PROFILE: return " by the table";
    case TL_LOSS_FROM_DATA: return " from data";
    case TL_LOSS_FROM_MEASURED: return " as measured";
    case TL_LOSS_SOURCE_COUNT: break;
    }
    return "";
}

static void tli_explain_runner_up(tli_writer *w, const tl_precision_plan *plan, const tl_precision_node *node) {
    if (node->runner_up == TL_SCHEME_COUNT) {
        tli_put(w, node->runner_up_proven ? "; no other scheme is possible within the limits"
                                          : "; no other scheme is possible with all others as they are");
        return;
    }
    tli_put(w, node->runner_up_proven ? "; the best choice with another scheme here has "
                                      : "; the best choice found with another scheme here has ");
    tli_put(w, tl_name_scheme(node->runner_up));
    if (plan->criterion == TL_CRITERION_ACCURACY) {
        tli_put(w, ": loss ");
        tli_put_more_loss(w, plan, node);
        tli_put(w, ", cost ");
        tli_put_more_cost(w, plan, node);
    } else {
        tli_put(w, ": cost ");
        tli_put_more_cost(w, plan, node);
        tli_put(w, ", loss ");
        tli_put_more_loss(w, plan, node);
    }
    tli_put(w, " for the whole graph");
}

TLI_IMPL size_t tl_explain_precision_node(const tl_graph *graph, const tl_precision_plan *plan, int32_t node,
                                          char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    const tl_precision_node *chosen;
    TL_ASSERT(graph && plan);
    tli_put(&w, tl_name_node(graph, node));
    if (!tli_is_below(node, plan->node_count) || !tli_is_below(node, graph->node_count)) return tli_finish(&w);
    chosen = &plan->nodes[node];
    if (graph->nodes[node].is_input) {
        tli_put(&w, " is a graph input: ");
        tli_put(&w, tl_name_format(chosen->format));
    } else {
        tli_put(&w, " (");
        tli_put(&w, tl_name_op(graph, node));
        tli_put(&w, "): ");
        tli_put(&w, tl_name_scheme(chosen->scheme));
        if (chosen->scheme == TL_SCHEME_F32) {
            tli_put(&w, ", no loss");
        } else {
            tli_put(&w, ", loss ");
            tli_put_rounded(&w, chosen->loss);
            tli_put(&w, tli_explain_source(chosen));
            tli_put(&w, ", ");
            tli_put_rounded(&w, chosen->speedup);
            tli_put(&w, " times as fast as in f32, ");
            tli_put(&w, tl_name_speed_source(chosen->speed_source));
            if (chosen->speed_source == TL_SPEED_MEASURED) {
                tli_put(&w, " on ");
                tli_put(&w, plan->speeds.measured_on);
            }
        }
        tli_explain_runner_up(&w, plan, chosen);
    }
    if (chosen->conversion_count) {
        tli_put_fact(&w, "; what it hands on is converted ", (uint64_t)chosen->conversion_count,
                     chosen->conversion_count == 1 ? " time" : " times");
        tli_put_fact(&w, ", for ", chosen->conversion_cost, "");
    }
    tli_put(&w, ".");
    return tli_finish(&w);
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

