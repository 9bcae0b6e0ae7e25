#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- text --
//
// Names and parsers of the enums of this section; a plan as a table, as JSON, and a node as a sentence.

static const char *const tli_criterion_names[] = { TL_CRITERIA(TLI_NAME) };
static const char *const tli_objective_names[] = { TL_PRECISION_OBJECTIVES(TLI_NAME) };

TLI_IMPL const char *tl_name_criterion(tl_criterion criterion) {
    return tli_name(tli_criterion_names, TL_CRITERION_COUNT, (int64_t)criterion);
}

TLI_IMPL const char *tl_name_objective(tl_precision_objective objective) {
    return tli_name(tli_objective_names, TL_OBJECTIVE_COUNT, (int64_t)objective);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_objective(const char *text, tl_precision_objective *objective) {
    int32_t value;
    int known;
    TL_ASSERT(text && objective);
    known = tli_parse_name(tli_objective_names, TL_OBJECTIVE_COUNT, text, tli_text_length(text), &value);
    *objective = (tl_precision_objective)value;
    return known;
}

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
    tli_put_padded_number(w, node->speedup, 8);
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
        tli_put(w, plan->proven ? "; proven: no choice as good loses less"
                                : "; no choice as good loses less than ");
        if (!plan->proven) {
            tli_put_rounded(w, plan->bound_loss);
            tli_put(w, ": at most ");
            tli_put_share(w, plan->gap_ratio);
            tli_put(w, " above");
        }
    }
    tli_put(w, "\n");
}

static void tli_put_precision_cost(tli_writer *w, const tl_precision_plan *plan) {
    tli_put(w, tl_name_objective(plan->objective));
    tli_put_fact(w, ": ", plan->cost, ", in f32 ");
    tli_put_fact(w, "", plan->base_cost, ": ");
    tli_put_rounded(w, plan->speedup);
    tli_put(w, " times as good");
    if (plan->criterion != TL_CRITERION_ACCURACY) {
        if (plan->proven) {
            tli_put(w, "; proven: no choice within the loss costs less");
        } else {
            tli_put_fact(w, "; no choice within the loss costs less than ", plan->bound_cost, ": at most ");
            tli_put_share(w, plan->gap_ratio);
            tli_put(w, " above");
        }
    }
    tli_put_fact(w, "\nconversions: ", (uint64_t)plan->conversion_count, ", of that ");
    tli_put_fact(w, "", plan->conversion_cost, "\n");
    tli_put_fact(w, "bytes of weights and tensors: ", plan->bytes, ", in f32 ");
    tli_put_fact(w, "", plan->base_bytes, "\n");
}

TLI_IMPL size_t tl_print_precision_plan(const tl_graph *graph, const tl_precision_plan *plan, char *buf,
                                        size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i, shown = 0;
    TL_ASSERT(graph && plan);
    tli_put(&w, "node                 op             scheme     loss       speed-up "
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
        tli_put(&w, " is a graph input: f32");
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
            tli_put(&w, " times as fast as in f32");
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
#endif  // TL_STRATEGY_IMPLEMENTATION

