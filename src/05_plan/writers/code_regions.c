#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TEXT
#ifndef TL_NO_PLANNERS

// -- plans as C programs: regions of rows --
//
// All regions are rows of three tables, by which one loop calls in the order of tli_next_row_call: which member
// asked for rows is remembered, so that the loop goes on there when they are made.
//
//     members    kernel, node, rows, rows of a call ..       { 0, 3, 48, 1, 1, 0, 2, 7 },  // c1
//     links      how many rows of which member these need    { 1, 2, 2 },                  // window 3/2/1
//     places     where operands lie, and rings of how many   { net_bank_0 + 512, 3, 96 },
//
// Numbers are of 16 bits, or of 32 where one does not fit.

#define TLI_MOST_CODE_NUMBER (INT64_C(1) << 28)

// What is known of the rows of all regions before they are written.
typedef struct tli_code_sums {
    int64_t largest;            // of all numbers, without their signs
    int32_t members, places;    // the most of a region, and of a member
    int     takes_slots, takes_elements;    // whether any does
} tli_code_sums;

// Where an operand of a call lies.
typedef struct tli_code_spot {
    tli_code_word at;
    int64_t rows, row_bytes;        // of a ring; of elements in a whole tensor 0, bytes of a row; else 0, 0
    int64_t member, stride, add;    // of a slot: (rows made of member x stride + add) % rows; stride 0 = none
} tli_code_spot;

typedef struct tli_code_member {
    int32_t  node, kernel;          // kernel: the first node of its op; -1 = the loader of a stream
    uint64_t rows, block_rows;
    uint64_t unit;                  // by which rows are multiplied in a call: 0 = it has none
    int      is_output;
    const tl_row_member *as;        // NULL = a node that is called as a whole
} tli_code_member;

static int32_t tli_count_region_members(const tli_code *c, const tli_code_region *region) {
    int32_t count = c->row_plan->first_members[region->node + 1] - c->row_plan->first_members[region->node];
    return count ? count : 1;
}

static const tl_row_member *tli_code_row_members(const tli_code *c, const tli_code_region *region) {
    return c->row_plan->members + c->row_plan->first_members[region->node];
}

// How many rows a node has that is called as a whole, and what one counts for.
static void tli_describe_whole(const tli_code *c, int32_t id, tli_code_member *m) {
    const tl_node *node = &c->table.graph->nodes[id];
    const tl_node_rows *rows = tli_find_rows(c->table.graph, id);
    tli_code_range range = tli_code_range_of(c, c->ops[id]);
    int has_rows = range == TLI_RANGE_ROWS && rows && !node->takes_blocks;
    m->as = NULL;
    m->rows = m->block_rows = has_rows ? rows->rows : 1;
    m->unit = (uint64_t)has_rows;
    if (range == TLI_RANGE_ELEMENTS && node->takes_blocks)
        m->unit = c->table.graph->outputs[node->first_output].bytes / 4;
}

static tli_code_member tli_code_member_of(const tli_code *c, const tli_code_region *region, int32_t at) {
    int32_t first = c->row_plan->first_members[region->node];
    tli_code_member m;
    m.is_output = 1;
    m.node = region->operands.node;
    if (first == c->row_plan->first_members[region->node + 1]) {
        tli_describe_whole(c, m.node, &m);
    } else {
        m.as = &c->row_plan->members[first + at];
        m.node = m.as->node;
        m.rows = m.as->rows;
        m.block_rows = m.as->block_rows;
        m.unit = c->table.graph->nodes[m.node].takes_blocks ? m.as->row_bytes / 4 : 1;
        m.is_output = !m.as->ring_rows;
    }
    m.kernel = c->ops[m.node];
    return m;
}

// The operands of a member: the parameters of its kernel. A loader of streams has out0 alone.
static int32_t tli_count_places(const tli_code *c, const tli_code_member *m) {
    return m->kernel < 0 ? 1 : c->kernels[2 * m->kernel].count;
}

static tli_code_param tli_code_param_of(const tli_code *c, const tli_code_member *m, int32_t i) {
    tli_code_param out = { TLI_ROLE_OUT, 0 };
    return m->kernel < 0 ? out : c->params[c->kernels[2 * m->kernel].first + i];
}

// -- regions: where operands lie --

// A tensor of the graph among the outer operands of a region, or of a whole node.
static tli_code_word tli_find_outer(const tli_code *c, const tli_code_region *region, int32_t tensor) {
    const tl_node *node = &c->planned->nodes[region->node];
    const tli_code_word *words = &c->words[region->operands.first];
    tli_code_word none = { 0, TLI_SPACE_NONE };
    int32_t k, made = c->tensors[tensor];
    for (k = 0; k < node->output_count; k++) if (node->first_output + k == made) return words[k];
    for (k = 0; k < node->input_count; k++)
        if (c->planned->inputs[node->first_input + k].tensor == made) return words[node->output_count + k];
    return none;
}

// The scratch of the members' calls lies behind the rings.
static tli_code_word tli_find_code_scratch(const tli_code *c, const tli_code_region *region) {
    const tl_node *node = &c->planned->nodes[region->node];
    tli_code_word word = c->words[region->operands.first + node->output_count + node->input_count];
    int32_t at, count = tli_count_region_members(c, region);
    uint64_t most = 0;
    for (at = 0; at < count; at++) {
        tli_code_member m = tli_code_member_of(c, region, at);
        uint64_t bytes = c->table.graph->nodes[m.node].fwork_bytes;
        if (!m.as) return word;
        most = tli_larger_u64(most, tli_row_scratch(bytes, m.block_rows, m.rows));
    }
    if (node->fwork_bytes > most) word.value += node->fwork_bytes - most;
    return word;
}

// Where a member's rows lie in the scratch of the region. reads: the row that was made last, else the next one.
static void tli_find_ring_spot(const tli_code *c, const tli_code_region *region, int32_t at, int reads,
                              tli_code_spot *spot) {
    const tl_node *node = &c->planned->nodes[region->node];
    const tl_row_member *members = tli_code_row_members(c, region), *m = &members[at], *owner;
    const tl_relation *under;
    while (m->shares >= 0 && !m->takes_slots) m = &members[m->shares];
    for (owner = m; owner->shares >= 0; owner = &members[owner->shares]) {}
    spot->at = c->words[region->operands.first + node->output_count + node->input_count];
    spot->at.value += owner->ring_offset;
    spot->rows = (int64_t)owner->ring_rows;
    spot->row_bytes = (int64_t)owner->row_bytes;
    if (!m->takes_slots) return;
    under = &c->row_plan->links[m->first_link + m->takes_slots - 1].relation;
    spot->member = at;
    spot->stride = under->stride;
    spot->add = -(int64_t)under->padding - (reads ? under->stride : 0);
    spot->add = (spot->add % spot->rows + spot->rows) % spot->rows;
}

// Where a tensor lies that a member reads or writes. cut: its calls take elements of it alone.
static void tli_find_operand_spot(const tli_code *c, const tli_code_region *region, int32_t from,
                                  int32_t tensor, const tli_code_member *m, int cut, int reads,
                                  tli_code_spot *spot) {
    if (m->as && from >= 0 && tli_code_row_members(c, region)[from].ring_rows) {
        tli_find_ring_spot(c, region, from, reads, spot);
        return;
    }
    spot->at = tli_find_outer(c, region, tensor);
    if (m->as && cut) spot->row_bytes = (int64_t)m->as->row_bytes;
}

static tli_code_spot tli_code_spot_in(const tli_code *c, const tli_code_region *region, int32_t at,
                                        const tli_code_member *m, tli_code_param param) {
    const tl_graph *graph = c->table.graph;
    const tl_node *node = &graph->nodes[m->node];
    const tl_row_link *link = m->as && param.part == TLI_ROLE_IN && param.number < node->input_count
                                  ? &c->row_plan->links[m->as->first_link + param.number] : NULL;
    tli_code_spot spot;
    tli_zero(&spot, sizeof spot);
    spot.at.space = TLI_SPACE_NONE;
    if (m->kernel >= 0 && !tli_node_has_part(c, node, param.part, 0, param.number)) return spot;
    if (param.part == TLI_ROLE_OUT) {
        int32_t tensor = node->first_output + param.number;
        tli_find_operand_spot(c, region, at, tensor, m, node->takes_blocks, 0, &spot);
    } else if (param.part == TLI_ROLE_IN) {
        int32_t tensor = graph->inputs[node->first_input + param.number].tensor;
        int cut = node->takes_blocks && link && link->relation.kind == TL_RELATION_SAME;
        tli_find_operand_spot(c, region, link ? link->member : -1, tensor, m, cut, 1, &spot);
    } else if (param.part == TLI_ROLE_STORED) {
        int32_t first;
        (void)tli_code_constants(c, m->node, &first);
        spot.at.space = tli_constant_space(c);
        spot.at.value = c->stored[first + param.number];
    } else if (param.part == TLI_ROLE_WEIGHT) {
        spot.at.space = tli_weight_space(c, node);
        spot.at.value = c->weights[m->node];
    } else if (param.part == TLI_ROLE_SCRATCH) {
        spot.at = tli_find_code_scratch(c, region);
    }
    return spot;
}

// -- regions: which rows a member needs --

// How many rows a call that ends with a row needs: row x stride + add, or row / -stride + add where the stride
// is negative.
typedef struct tli_code_need { int64_t stride, add; } tli_code_need;

static tli_code_need tli_code_need_of(const tl_relation *r, uint64_t rows) {
    tli_code_need need = { 1, 1 };
    int64_t most = (int64_t)rows + r->padding, reach;
    switch (r->kind) {
    case TL_RELATION_WINDOW:
        reach = tli_window_reach(r);
        need.stride = r->stride;
        need.add = (reach < most ? reach : most) + 1 - r->padding;
        break;
    case TL_RELATION_UP: need.stride = -(int64_t)r->stride; break;
    case TL_RELATION_WHOLE: need.stride = 0; need.add = (int64_t)rows; break;
    case TL_RELATION_SAME: case TL_RELATION_COUNT: break;
    }
    return need;
}

// -- regions: what is needed of them, and what cannot be written --

// Set what the kernels of ops are called for; returns a node whose op is called for both, -1 = there is none.
static int32_t tli_find_code_ranges(tli_code *c) {
    const tl_graph *graph = c->table.graph;
    int32_t k;
    for (k = 0; k < c->row_plan->member_count; k++) {
        int32_t node = c->row_plan->members[k].node, op = c->ops[node];
        uint8_t range = graph->nodes[node].takes_blocks ? TLI_RANGE_ELEMENTS : TLI_RANGE_ROWS;
        if (op < 0) {
            c->stream = node;
            continue;
        }
        if (c->ranges[op] && c->ranges[op] != range) return node;
        c->ranges[op] = range;
        c->kernels[2 * op].is_called = 1;
    }
    return -1;
}

// Go on with lifetimes of the graph, of which those of regions are those of their outputs.
static void tli_code_name_lifetimes(tli_code *c) {
    int32_t i, k;
    for (i = 0; i < c->table.lifetimes.count; i++) {
        tl_lifetime *life = &c->table.lifetimes.items[i];
        int32_t tensor = c->planned->nodes[life->node].first_output + life->output;
        int has_tensor = life->use != TL_USE_SAVED && life->use != TL_USE_SCRATCH;
        for (k = 0; k < c->table.graph->tensor_count && c->tensors[k] != tensor; k++) {}
        life->node = tli_code_origin(c, life->node);
        if (!has_tensor || k == c->table.graph->tensor_count) continue;
        life->node = c->table.graph->outputs[k].node;
        life->output = c->table.graph->outputs[k].output;
    }
}

// Whether rows go with the plan; of these `planned` is set.
static tl_result tli_code_check_rows(tli_code *c) {
    const tl_plan *plan = c->table.plan;
    const tl_rows_plan *rows = c->desc->rows;
    tli_rule rule = TLI_NO_RULE;
    if (!rows) return TL_OK;
    if (!plan->inference || plan->slot_count > 1) rule = TLI_RULE(CODE_ROWS_ARE_OF_ONE_PASS_FORWARD);
    else if (rows->turns) rule = TLI_RULE(CODE_ROWS_ARE_OF_TL_PLAN_ROWS);
    else if (!tli_is_rows_of(c->table.graph, rows, c->alignment)) rule = TLI_RULE(CODE_ROWS_NOT_OF_THE_GRAPH);
    if (rule) return tli_fail(c->env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_PLAN_CODE), rule);
    c->row_plan = rows;
    c->planned = &rows->graph;
    return tl_check_graph(c->env, c->planned);
}

// Find which node of the graph each of the plan's is, and how ops are called.
static tl_result tli_code_read_rows(tli_code *c) {
    const tl_graph *graph = c->table.graph;
    tli_graph_rules rules = tli_rules_of(c->env, TLI_IN(WRITE_PLAN_CODE));
    int32_t id, *next;
    if (!c->row_plan) return TL_OK;
    c->origins = (int32_t *)tli_alloc_array(c->env, (uint64_t)graph->node_count, sizeof *c->origins);
    c->tensors = (int32_t *)tli_alloc_array(c->env, (uint64_t)graph->tensor_count, sizeof *c->tensors);
    c->ranges = (uint8_t *)tli_alloc_array(c->env, (uint64_t)graph->node_count, 1);
    if (!c->origins || !c->tensors || !c->ranges)
        return tli_fail(c->env, TL_ERROR_NO_MEMORY, TLI_IN(WRITE_PLAN_CODE), TLI_RULE(NO_MEMORY_TO_WRITE_CODE));
    next = c->origins;
    tli_map_row_tensors(graph, c->row_plan, next, c->tensors);
    for (id = 0; id < graph->node_count; id++) c->origins[c->row_plan->nodes[id]] = id;
    for (id = 0; id < c->planned->node_count; id++)
        if (c->row_plan->first_members[id] < c->row_plan->first_members[id + 1])
            c->origins[id] = c->row_plan->members[c->row_plan->first_members[id + 1] - 1].node;
    tli_code_name_lifetimes(c);
    id = tli_find_code_ranges(c);
    if (id < 0) return TL_OK;
    return tli_fail_item(&rules, TL_ERROR_UNSUPPORTED, "node", id, tl_name_node(graph, id),
                         TLI_RULE(CODE_ROWS_OR_ELEMENTS));
}

static void tli_note_code_number(tli_code_sums *sums, int64_t number) {
    if (number < 0) number = -number;
    if (number > sums->largest) sums->largest = number;
}

static void tli_note_code_member(const tli_code *c, const tli_code_region *region, int32_t at,
                                 tli_code_sums *sums) {
    tli_code_member m = tli_code_member_of(c, region, at);
    const tl_node *node = &c->table.graph->nodes[m.node];
    int32_t i, count = tli_count_places(c, &m);
    if (count > sums->places) sums->places = count;
    if (m.kernel >= 0 && tli_code_range_of(c, m.kernel) == TLI_RANGE_ELEMENTS) sums->takes_elements = 1;
    tli_note_code_number(sums, m.node);
    tli_note_code_number(sums, (int64_t)m.rows);
    tli_note_code_number(sums, m.unit > (uint64_t)INT64_MAX / m.rows ? INT64_MAX : (int64_t)(m.unit * m.rows));
    for (i = 0; i < count; i++) {
        tli_code_spot spot = tli_code_spot_in(c, region, at, &m, tli_code_param_of(c, &m, i));
        tli_note_code_number(sums, spot.rows);
        tli_note_code_number(sums, spot.row_bytes);
        tli_note_code_number(sums, spot.stride);
        sums->takes_slots |= spot.stride > 0;
    }
    for (i = 0; i < node->input_count && m.as; i++) {
        const tl_row_link *link = &c->row_plan->links[m.as->first_link + i];
        tli_code_need need;
        if (link->member < 0) continue;
        need = tli_code_need_of(&link->relation, tli_code_row_members(c, region)[link->member].rows);
        tli_note_code_number(sums, need.stride);
        tli_note_code_number(sums, need.add);
    }
}

static tli_code_sums tli_sum_region(const tli_code *c, const tli_code_region *region) {
    tli_code_sums sums;
    int32_t at;
    tli_zero(&sums, sizeof sums);
    sums.members = tli_count_region_members(c, region);
    for (at = 0; at < sums.members; at++) tli_note_code_member(c, region, at, &sums);
    return sums;
}

static tli_code_sums tli_sum_regions(const tli_code *c) {
    tli_code_sums all, sums;
    int32_t i, members = 0;
    tli_zero(&all, sizeof all);
    for (i = 0; i < c->region_count; i++) {
        sums = tli_sum_region(c, &c->regions[i]);
        members += sums.members;
        tli_note_code_number(&all, sums.largest);
        if (sums.members > all.members) all.members = sums.members;
        if (sums.places > all.places) all.places = sums.places;
        all.takes_slots |= sums.takes_slots;
        all.takes_elements |= sums.takes_elements;
    }
    tli_note_code_number(&all, (int64_t)(members + 1) * tli_larger_i32(all.places, 1));     // numbers of places
    return all;
}

static tl_result tli_check_regions(tli_code *c) {
    tli_graph_rules rules = tli_rules_of(c->env, TLI_IN(WRITE_PLAN_CODE));
    int32_t i;
    for (i = 0; i < c->region_count; i++) {
        int32_t id = c->regions[i].operands.node;
        if (tli_sum_region(c, &c->regions[i]).largest < TLI_MOST_CODE_NUMBER) continue;
        return tli_fail_item(&rules, TL_ERROR_UNSUPPORTED, "node", id, tl_name_node(c->table.graph, id),
                             TLI_RULE(CODE_ROWS_FIT_28_BITS));
    }
    return TL_OK;
}

// -- regions: the texts --

// Send a text in which $ stands for the name of the plan.
static void tli_send_named(tli_stream *s, const tli_code *c, const char *text) {
    for (; *text; text++) {
        if (*text == '$') tli_send(s, c->table.name);
        else tli_send_bytes(s, text, 1);
    }
}

// What the header says of operands that are found by rows.
static void tli_send_operand_type(tli_stream *s, const tli_code *c) {
    tli_send_named(s, c,
        "\n// An operand of a call for rows: a ring of so many, or with rows 0 all rows of a tensor.\n"
        "typedef struct $_operand {\n    unsigned char *at;\n    int32_t rows, row_bytes;\n} $_operand;\n\n"
        "// A row of an operand. row_bytes: those of a row of a whole tensor.\n"
        "static inline void *$_find_row(const $_operand *x, int32_t row, int32_t row_bytes) {\n"
        "    return (x->rows != 0) ? (x->at + ((size_t)(row % x->rows) * (size_t)x->row_bytes))\n"
        "                          : (x->at + ((size_t)row * (size_t)row_bytes));\n}\n");
}

static void tli_send_row_loader(tli_stream *s, const tli_code *c) {
    tli_send_named(s, c, "void $_load_rows(int32_t node, const $_operand *out0, int32_t first,"
                         " int32_t count);\n");
}

// Send numbers of a row of a table: "{ 1, 2 },".
static void tli_send_code_numbers_of(tli_stream *s, const int64_t *numbers, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++) {
        if (i) tli_send(s, ", ");
        if (numbers[i] < 0) tli_send(s, "-");
        tli_send_u64(s, (uint64_t)(numbers[i] < 0 ? -numbers[i] : numbers[i]));
    }
    tli_send(s, " },");
}

static void tli_send_member_links(tli_stream *s, const tli_code *c, const tli_code_region *region, int32_t at) {
    tli_code_member m = tli_code_member_of(c, region, at);
    int32_t k;
    for (k = 0; m.as && k < c->table.graph->nodes[m.node].input_count; k++) {
        const tl_row_link *link = &c->row_plan->links[m.as->first_link + k];
        tli_code_need need;
        int64_t numbers[3];
        if (link->member < 0) continue;
        need = tli_code_need_of(&link->relation, tli_code_row_members(c, region)[link->member].rows);
        numbers[0] = link->member;
        numbers[1] = need.stride;
        numbers[2] = need.add;
        tli_send(s, "    { ");
        tli_send_code_numbers_of(s, numbers, 3);
        tli_send(s, "\n");
    }
}

static void tli_send_links(tli_stream *s, const tli_code *c) {
    int32_t i, at;
    tli_send_named(s, c, "\nstatic const $_link $_links[] = {\n");
    for (i = 0; i < c->region_count; i++)
        for (at = 0; at < tli_count_region_members(c, &c->regions[i]); at++)
            tli_send_member_links(s, c, &c->regions[i], at);
    tli_send(s, "    { 0, 0, 0 }\n};\n");
}

static void tli_send_spot(tli_stream *s, const tli_code *c, const tli_code_spot *spot, int takes_slots) {
    int64_t numbers[5];
    numbers[0] = spot->rows;
    numbers[1] = spot->row_bytes;
    numbers[2] = spot->member;
    numbers[3] = spot->stride;
    numbers[4] = spot->add;
    tli_send(s, "    { ");
    tli_send_word(s, c, &spot->at, 0);
    tli_send(s, ", ");
    tli_send_code_numbers_of(s, numbers, takes_slots ? 5 : 2);
    tli_send(s, "\n");
}

static void tli_send_spots(tli_stream *s, const tli_code *c, int takes_slots) {
    int32_t i, at, k;
    tli_send_named(s, c, "\nstatic const $_place $_places[] = {\n");
    for (i = 0; i < c->region_count; i++)
        for (at = 0; at < tli_count_region_members(c, &c->regions[i]); at++) {
            tli_code_member m = tli_code_member_of(c, &c->regions[i], at);
            for (k = 0; k < tli_count_places(c, &m); k++) {
                tli_code_spot spot = tli_code_spot_in(c, &c->regions[i], at, &m, tli_code_param_of(c, &m, k));
                tli_send_spot(s, c, &spot, takes_slots);
            }
        }
    tli_send(s, "};\n");
}

// The case of a kernel that takes ranges; that of the loader of streams is behind them.
static int32_t tli_find_range_case(const tli_code *c, int32_t op) {
    int32_t id, count = 0, end = op < 0 ? c->table.graph->node_count : op;
    for (id = 0; id < end; id++) count += c->ops[id] == id && tli_code_range_of(c, id);
    return count;
}

static int32_t tli_count_member_links(const tli_code *c, const tli_code_member *m) {
    int32_t k, count = 0;
    for (k = 0; m->as && k < c->table.graph->nodes[m->node].input_count; k++)
        count += c->row_plan->links[m->as->first_link + k].member >= 0;
    return count;
}

static void tli_send_members(tli_stream *s, const tli_code *c) {
    int64_t numbers[8];
    int32_t i, at, first = 0;
    numbers[6] = numbers[7] = 0;
    tli_send_named(s, c, "\nstatic const $_member $_members[] = {\n");
    for (i = 0; i < c->region_count; i++)
        for (at = 0; at < tli_count_region_members(c, &c->regions[i]); at++) {
            tli_code_member m = tli_code_member_of(c, &c->regions[i], at);
            numbers[0] = tli_find_range_case(c, m.kernel);
            numbers[1] = m.node;
            numbers[2] = (int64_t)m.rows;
            numbers[3] = (int64_t)m.block_rows;
            numbers[4] = (int64_t)m.unit;
            numbers[5] = m.is_output;
            tli_send(s, "    { ");
            tli_send_code_numbers_of(s, numbers, 8);
            tli_send(s, "  // ");
            tli_send_ascii(s, tl_name_node(c->table.graph, m.node));
            tli_send(s, "\n");
            numbers[6] += tli_count_member_links(c, &m);
            numbers[7] += tli_count_places(c, &m);
        }
    for (i = 0; i < 6; i++) numbers[i] = 0;
    tli_send(s, "    { ");
    tli_send_code_numbers_of(s, numbers, 8);
    tli_send_named(s, c, "\n};\n\n// The first member of each region.\nstatic const $_number $_regions[] = { ");
    for (i = 0; i < c->region_count; i++) {
        tli_send_i32(s, first);
        tli_send(s, ", ");
        first += tli_count_region_members(c, &c->regions[i]);
    }
    tli_send_i32(s, first);
    tli_send(s, " };\n");
}

static void tli_send_range_types(tli_stream *s, const tli_code *c, const tli_code_sums *sums) {
    tli_send_named(s, c, "\ntypedef ");
    tli_send(s, sums->largest <= INT16_MAX ? "int16_t" : "int32_t");
    tli_send_named(s, c,
        " $_number;\n\n// A member of a region: rows of a call, times unit what a kernel is told;"
        " from where its rows in the tables\n// below are, up to those of the next member.\n"
        "typedef struct $_member {\n"
        "    $_number kernel, node, rows, block_rows, unit, is_output, first_link, first_place;\n"
        "} $_member;\n\n"
        "// For its rows up to one a member needs those of another up to row * stride + add; with a\n"
        "// negative stride up to row / -stride + add.\n"
        "typedef struct $_link { $_number member, stride, add; } $_link;\n\n");
    if (sums->takes_slots)
        tli_send(s, "// With a stride, of a ring only the row that a member makes, or has made last.\n");
    tli_send_named(s, c, "typedef struct $_place { const unsigned char *at; $_number rows, row_bytes");
    tli_send_named(s, c, sums->takes_slots ? ", member, stride, add; } $_place;\n" : "; } $_place;\n");
}

// Send the call of a kernel that takes ranges.
static void tli_send_range_call(tli_stream *s, const tli_code *c, int32_t op) {
    const tli_code_kernel *kernel = &c->kernels[2 * op];
    tli_code_range range = tli_code_range_of(c, op);
    int32_t i;
    tli_send(s, "    case ");
    tli_send_i32(s, tli_find_range_case(c, op));
    tli_send(s, ": ");
    tli_send_kernel_name(s, c, op, 0);
    tli_send(s, "(m->node");
    for (i = 0; i < kernel->count; i++) {
        tli_role part = c->params[kernel->first + i].part;
        int moves = part == TLI_ROLE_OUT || part == TLI_ROLE_IN;
        tli_send(s, ", ");
        if (moves && range == TLI_RANGE_ELEMENTS) tli_send_named(s, c, "$_find_elements(");
        tli_send(s, moves ? "&to[" : "to[");
        tli_send_i32(s, i);
        tli_send(s, !moves ? "].at" : range == TLI_RANGE_ELEMENTS ? "], first)" : "]");
    }
    tli_send(s, ", first * m->unit, count * m->unit); break;\n");
}

static void tli_send_call_rows(tli_stream *s, const tli_code *c, const tli_code_sums *sums) {
    int32_t id;
    if (sums->takes_elements)
        tli_send_named(s, c,
            "\nstatic void *$_find_elements(const $_operand *x, int32_t first) {\n"
            "    return x->row_bytes ? $_find_row(x, first, x->row_bytes) : x->at;\n}\n");
    tli_send_named(s, c,
        "\nstatic void $_call_rows(const $_member *m, const $_number *made, int32_t first, int32_t count) {\n"
        "    $_operand to[");
    tli_send_i32(s, sums->places);
    tli_send_named(s, c,
        "];\n    int32_t i");
    tli_send(s, sums->takes_slots ? ", slot" : "");
    tli_send_named(s, c,
        ";\n    for (i = m[0].first_place; i < m[1].first_place; i++) {\n"
        "        const $_place *p = &$_places[i];\n        $_operand *x = &to[i - m->first_place];\n"
        "        x->at = (unsigned char *)(uintptr_t)p->at;\n        x->rows = p->rows;\n"
        "        x->row_bytes = p->row_bytes;\n");
    if (sums->takes_slots)
        tli_send(s, "        if (!p->stride) continue;\n"
                    "        slot = (made[p->member] * p->stride + p->add) % p->rows;\n"
                    "        x->at += (size_t)slot * (size_t)p->row_bytes;\n        x->rows = 1;\n");
    tli_send(s, "    }\n");
    if (!sums->takes_slots) tli_send(s, "    (void)made;\n");
    tli_send(s, "    switch (m->kernel) {\n");
    for (id = 0; id < c->table.graph->node_count; id++)
        if (c->ops[id] == id && tli_code_range_of(c, id)) tli_send_range_call(s, c, id);
    if (c->stream >= 0) {
        tli_send(s, "    case ");
        tli_send_i32(s, tli_find_range_case(c, -1));
        tli_send_named(s, c, ": $_load_rows(m->node, &to[0], first, count); break;\n");
    }
    tli_send(s, "    default: break;\n    }\n}\n");
}

// Send the loop that carries a region out.
static void tli_send_make_rows(tli_stream *s, const tli_code *c, const tli_code_sums *sums) {
    tli_send_named(s, c,
        "\n// A member that has too few rows for the next call of another; -1 = all are there.\n"
        "static int32_t $_find_missing(const $_member *members, const $_member *m, const $_number *made,\n"
        "                              int32_t end) {\n"
        "    int32_t i, need;\n    for (i = m[0].first_link; i < m[1].first_link; i++) {\n"
        "        const $_link *l = &$_links[i];\n"
        "        need = ((l->stride < 0) ? ((end - 1) / -l->stride) : ((end - 1) * l->stride)) + l->add;\n"
        "        if (need > members[l->member].rows) {\n"
        "            need = members[l->member].rows;\n        }\n"
        "        if (made[l->member] < need) {\n            return l->member;\n        }\n    }\n"
        "    return -1;\n}\n");
    tli_send_call_rows(s, c, sums);
    tli_send_named(s, c,
        "\n// The next call is one of the last output that is not whole, unless rows are missing that it\n"
        "// reads: then one of the member that makes these, and so on; behind it comes the one that asked.\n"
        "static void $_make_rows(int32_t region) {\n"
        "    const $_member *members = &$_members[$_regions[region]];\n"
        "    const int32_t count = $_regions[region + 1] - $_regions[region];\n    $_number made[");
    tli_send_i32(s, sums->members);
    tli_send(s, "], asked[");
    tli_send_i32(s, sums->members);
    tli_send_named(s, c,
        "];\n    int32_t top, at, end, missing;\n    for (at = 0; at < count; at++) {\n"
        "        made[at] = 0;\n        asked[at] = 0;\n    }\n"
        "    for (top = count - 1; top >= 0; top--) {\n"
        "        asked[top] = ($_number)top;\n        at = top;\n"
        "        while (members[top].is_output && (made[top] < members[top].rows)) {\n"
        "            const $_member *m = &members[at];\n            end = made[at] + m->block_rows;\n"
        "            if (end > m->rows) {\n                end = m->rows;\n            }\n"
        "            missing = $_find_missing(members, m, made, end);\n            if (missing >= 0) {\n"
        "                asked[missing] = ($_number)at;\n                at = missing;\n"
        "                continue;\n"
        "            }\n            $_call_rows(m, made, made[at], end - made[at]);\n"
        "            made[at] = ($_number)end;\n            at = asked[at];\n        }\n    }\n}\n");
}

static void tli_send_regions(tli_stream *s, const tli_code *c) {
    tli_code_sums sums = tli_sum_regions(c);
    tli_send_range_types(s, c, &sums);
    tli_send_links(s, c);
    tli_send_spots(s, c, sums.takes_slots);
    tli_send_members(s, c);
    tli_send_make_rows(s, c, &sums);
}
#else
static tl_result tli_code_check_rows(tli_code *c) {
    return !c->desc->rows ? TL_OK : tli_fail(c->env, TL_ERROR_UNSUPPORTED, TLI_IN(WRITE_PLAN_CODE),
                                             TLI_RULE(CODE_ROWS_TL_NO_PLANNERS_LEFT_THEM_OUT));
}
static tl_result tli_code_read_rows(tli_code *c) { (void)c; return TL_OK; }
static tl_result tli_check_regions(tli_code *c) { (void)c; return TL_OK; }
static void tli_send_operand_type(tli_stream *s, const tli_code *c) { (void)s; (void)c; }
static void tli_send_row_loader(tli_stream *s, const tli_code *c) { (void)s; (void)c; }
static void tli_send_regions(tli_stream *s, const tli_code *c) { (void)s; (void)c; }
#endif
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
