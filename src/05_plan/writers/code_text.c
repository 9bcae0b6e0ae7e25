#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TEXT

// -- plans as C programs: the texts --
//
// Calls name operands where they are used; a table holds them in words, which a loop reads:
//
//     calls    net_conv_forward(NET_NODE_C1, net_bank_0 + 64, net_bank_0, net_weights);  // c1: step 3
//     table    768, 8208, 8192, 16384, 2,                                               // c1: step 3
//
//              case 0: net_conv_forward((int32_t)at[0], to[0], to[1], to[2]); at += 1; break;

// -- calls --

// What the rows of a kernel that takes some are in a call for all: nothing is cut.
static const char *tli_name_all_rows(const tli_code *c, const tli_code_row *row) {
    if (row->kind != TLI_ROW_BACKWARD || !tli_op_takes_rows(c, c->ops[row->node], 1)) return "";
    return ", 0, 0";
}

// Send the first parameters of a call.
static void tli_send_leading(tli_stream *s, const tli_code *c, const tli_code_row *row) {
    if (tli_leading(c, row->kind)) {
        tli_send_macro(s, c, "_NODE_");
        tli_send_macro_node(s, &c->table, row->node);
        if (tli_leading(c, row->kind) > 1) { tli_send(s, ", "); tli_send_i32(s, row->slot); }
    }
}

static void tli_send_call(tli_stream *s, const tli_code *c, const tli_code_row *row) {
    int32_t i;
    tli_send(s, "        ");
    tli_send_callee(s, c, row);
    tli_send_leading(s, c, row);
    for (i = 0; i < row->count; i++) {
        if (i || tli_leading(c, row->kind)) tli_send(s, ", ");
        if (i == 1 && row->kind == TLI_ROW_ZERO) tli_send(s, "0, ");
        tli_send_word(s, c, &c->words[row->first + i], tli_is_number(row->kind, i));
    }
    tli_send(s, tli_name_all_rows(c, row));
    tli_send(s, ");");
    tli_send_comment(s, c, row);
}

// -- loops over pieces --

// Send a call of a loop. What a state holds moves on with the rows.
static void tli_send_piece_call(tli_stream *s, const tli_code *c, const tli_code_row *row) {
    const tl_graph *graph = c->table.graph;
    const tli_code_kernel *kernel = &c->kernels[2 * c->ops[row->node] + 1];
    const tl_node *node = &graph->nodes[row->node];
    const tl_node_output *outputs = &graph->outputs[node->first_output];
    int32_t i;
    tli_send(s, "        ");
    tli_send_callee(s, c, row);
    tli_send_leading(s, c, row);
    for (i = 0; i < row->count; i++) {
        const tli_code_param *param = &c->params[kernel->first + i];
        tli_send(s, ", ");
        tli_send_word(s, c, &c->words[row->first + i], 0);
        if (!node->state || param->part != TLI_ROLE_NEEDED_OUT || param->number >= node->output_count) continue;
        tli_send(s, " + (size_t)first * ");
        tli_send_constant(s, outputs[param->number].bytes / (uint64_t)node->weight_rows);
    }
    tli_send(s, ", first, count);\n");
}

// Send "memset(net_bank_0 + 640, 0, (size_t)count * 40);": the gradient of a piece begins as zeroes.
static void tli_send_piece_clear(tli_stream *s, const tli_code *c, const tli_code_loop *loop) {
    const tl_graph *graph = c->table.graph;
    const tl_node *state = &graph->nodes[loop->update.node];
    const tli_code_kernel *kernel = &c->kernels[2 * c->ops[loop->update.node] + 1];
    int32_t i;
    for (i = 0; i < loop->update.count; i++) {
        if (c->params[kernel->first + i].part != TLI_ROLE_OUT_GRAD) continue;
        tli_send(s, "        memset(");
        tli_send_word(s, c, &c->words[loop->update.first + i], 0);
        tli_send(s, ", 0, (size_t)count * ");
        tli_send_constant(s, graph->outputs[state->first_output].bytes / (uint64_t)state->weight_rows);
        tli_send(s, ");\n");
    }
}

// Send the functions that make and use gradients piece by piece.
static void tli_send_loops(tli_stream *s, const tli_code *c) {
    int32_t i;
    for (i = 0; i < c->loop_count; i++) {
        const tli_code_loop *loop = &c->loops[i];
        const tl_node *state = &c->table.graph->nodes[loop->update.node];
        tli_send(s, "\nstatic void ");
        tli_send_own(s, c, "_pieces_");
        tli_send_i32(s, i);
        tli_send(s, "(void) {");
        tli_send_comment(s, c, &loop->update);
        tli_send(s, "    int32_t first, count = ");
        tli_send_i32(s, state->piece_rows);
        tli_send(s, ";\n    for (first = 0; first < ");
        tli_send_i32(s, state->weight_rows);
        tli_send(s, "; first += count) {\n        if (count > ");
        tli_send_i32(s, state->weight_rows);
        tli_send(s, " - first) count = ");
        tli_send_i32(s, state->weight_rows);
        tli_send(s, " - first;\n");
        tli_send_piece_clear(s, c, loop);
        tli_send_piece_call(s, c, &loop->gradient);
        tli_send_piece_call(s, c, &loop->update);
        tli_send(s, "    }\n}\n");
    }
}

// -- tables --

// How words of a table hold addresses: the number of the array above the bits of the offset, in units.
typedef struct tli_code_table {
    uint64_t unit;          // bytes; divides every offset
    int      shift;         // bits of an offset in units
    int      word_bytes;    // 2 or 4; 0 = too large for either
    int32_t  spaces[TLI_SPACE_COUNT];  // number of an array in the table; 0 = not used
    int32_t  space_count;
    int      count_shift;   // bits of the case in the first word of a row; above them stands how many addresses
                            // follow. 8, or 16 where that is not enough
} tli_code_table;

// case_count: as tli_number_cases found it.
static tli_code_table tli_code_table_of(const tli_code *c, int32_t case_count) {
    uint64_t largest = 0, number = (uint64_t)c->table.graph->node_count, rest, left;
    tli_code_table t;
    int32_t i, k;
    tli_zero(&t, sizeof t);
    t.count_shift = case_count > 256 ? 16 : 8;
    for (i = 0; i < c->row_count; i++) {
        t.count_shift = c->rows[i].count > 255 ? 16 : t.count_shift;
        for (k = 0; k < c->rows[i].count; k++) {
            const tli_code_word *word = &c->words[c->rows[i].first + k];
            if (tli_is_number(c->rows[i].kind, k)) { number = tli_larger_u64(number, word->value); continue; }
            if (word->space == TLI_SPACE_NONE) continue;
            if (!t.spaces[word->space]) t.spaces[word->space] = ++t.space_count;
            largest = tli_larger_u64(largest, word->value);
            for (rest = word->value; rest; rest = left) {   // Euclid's algorithm
                left = t.unit % rest;
                t.unit = rest;
            }
        }
    }
    if (!t.unit) t.unit = 1;
    while (t.shift < 63 && largest / t.unit >> t.shift) t.shift++;
    if (t.shift > 32) return t;
    number = tli_larger_u64(number, ((uint64_t)t.space_count << t.shift) + largest / t.unit);
    if (t.count_shift > 8) number = tli_larger_u64(number, (uint64_t)UINT16_MAX + 1);
    t.word_bytes = number <= UINT16_MAX ? 2 : number <= UINT32_MAX ? 4 : 0;
    return t;
}

static uint64_t tli_table_word(const tli_code_table *t, const tli_code_word *word) {
    if (word->space == TLI_SPACE_NONE) return 0;
    return ((uint64_t)t->spaces[word->space] << t->shift) + word->value / t->unit;
}

// The case of a row: kernels of ops in the order of their first nodes, then what is no kernel.
static int32_t tli_find_case(const tli_code *c, const tli_code_row *row) {
    int32_t kernels = 2 * c->table.graph->node_count;
    if (row->kind == TLI_ROW_FORWARD || row->kind == TLI_ROW_BACKWARD)
        return 2 * c->ops[row->node] + (row->kind == TLI_ROW_BACKWARD);
    return kernels + (int32_t)row->kind + row->loop;    // the last kind
}

// Number the cases that occur: (*numbers)[tli_find_case] is the number of a case, -1 of one that no row has,
// and (*rows)[number] one of its rows. Returns how many occur; no memory: -1. The caller releases both arrays.
static int32_t tli_number_cases(const tli_code *c, int32_t **numbers, int32_t **rows) {
    int32_t count = 2 * c->table.graph->node_count + TLI_ROW_COUNT + c->loop_count, used = 0, i;
    *numbers = (int32_t *)tli_alloc_array(c->env, (uint64_t)count, sizeof **numbers);
    *rows = (int32_t *)tli_alloc_array(c->env, (uint64_t)count, sizeof **rows);
    if (!*numbers || !*rows) return -1;
    for (i = 0; i < count; i++) (*numbers)[i] = -1;
    for (i = 0; i < c->row_count; i++) {
        int32_t *number = &(*numbers)[tli_find_case(c, &c->rows[i])];
        if (*number >= 0) continue;
        (*rows)[used] = i;      // a row of this case
        *number = used++;
    }
    return used;
}

// The addresses among the words of a row.
static int32_t tli_count_addresses(const tli_code_row *row) {
    int32_t count = 0, i;
    for (i = 0; i < row->count; i++) count += !tli_is_number(row->kind, i);
    return count;
}

// Send a row: its case and how many addresses there are, these, node and slot, numbers.
static void tli_send_table_row(tli_stream *s, const tli_code *c, const tli_code_table *t,
                               const int32_t *numbers, const tli_code_row *row) {
    int32_t i, is_number;
    tli_send(s, "    ");
    tli_send_u64(s, (uint64_t)numbers[tli_find_case(c, row)] +
                        ((uint64_t)tli_count_addresses(row) << t->count_shift));
    for (is_number = 0; is_number < 2; is_number++) {
        if (is_number && tli_leading(c, row->kind)) { tli_send(s, ", "); tli_send_i32(s, row->node); }
        if (is_number && tli_leading(c, row->kind) > 1) { tli_send(s, ", "); tli_send_i32(s, row->slot); }
        for (i = 0; i < row->count; i++) {
            const tli_code_word *word = &c->words[row->first + i];
            if (tli_is_number(row->kind, i) != is_number) continue;
            tli_send(s, ", ");
            tli_send_constant(s, is_number ? word->value : tli_table_word(t, word));
        }
    }
    tli_send(s, ",");
    tli_send_comment(s, c, row);
}

// Send the arrays that words name by their number.
static void tli_send_spaces(tli_stream *s, const tli_code *c, const tli_code_table *t) {
    int32_t number, space;
    tli_send(s, "\nstatic const unsigned char *const ");
    tli_send_own(s, c, "_spaces[] = { NULL");
    for (number = 1; number <= t->space_count; number++)
        for (space = 0; space < TLI_SPACE_COUNT; space++) {
            if (t->spaces[space] != number) continue;
            tli_send(s, ", ");
            tli_send_space_name(s, c, space);
        }
    tli_send(s, " };\n");
}

// Send the call of a case, which reads addresses from `to` and numbers from `at`.
static void tli_send_case(tli_stream *s, const tli_code *c, const tli_code_row *row, int32_t number) {
    int32_t leading = tli_leading(c, row->kind), i, addresses = 0, numbers = leading;
    tli_send(s, "        case ");
    tli_send_i32(s, number);
    tli_send(s, ": ");
    tli_send_callee(s, c, row);
    for (i = 0; i < leading; i++) tli_send(s, i ? ", (int32_t)at[1]" : "(int32_t)at[0]");
    for (i = 0; i < row->count; i++) {
        int is_number = tli_is_number(row->kind, i);
        if (i || leading) tli_send(s, ", ");
        if (i == 1 && row->kind == TLI_ROW_ZERO) tli_send(s, "0, ");
        if (is_number && !i) tli_send(s, "(int32_t)");
        tli_send(s, is_number ? "at[" : "to[");
        tli_send_i32(s, is_number ? numbers++ : addresses++);
        tli_send(s, "]");
    }
    tli_send(s, tli_name_all_rows(c, row));
    tli_send(s, "); at += ");
    tli_send_i32(s, numbers);
    tli_send(s, "; break;\n");
}

static void tli_send_code_table(tli_stream *s, const tli_code *c, const tli_code_table *t,
                                const int32_t *numbers, const int32_t *rows, int32_t case_count) {
    const char *type = t->word_bytes == 2 ? "uint16_t" : "uint32_t";
    int32_t i, most = 0;
    for (i = 0; i < c->row_count; i++)
        if (tli_count_addresses(&c->rows[i]) > most) most = tli_count_addresses(&c->rows[i]);
    tli_send(s, "\n// A row a call: its case below, + ");
    tli_send_u64(s, (uint64_t)1 << t->count_shift);
    tli_send(s, " x its addresses; these; its numbers. An address is the number of"
                " an\n// array in the bits from ");
    tli_send_i32(s, t->shift);
    tli_send(s, " on, and below an offset in units of ");
    tli_send_u64(s, t->unit);
    tli_send(s, " bytes; 0 is NULL.\nstatic const ");
    tli_send(s, type);
    tli_send(s, " ");
    tli_send_own(s, c, "_rows[] = {\n");
    for (i = 0; i < c->row_count; i++) tli_send_table_row(s, c, t, numbers, &c->rows[i]);
    tli_send(s, "};\n");
    tli_send_spaces(s, c, t);
    tli_send(s, "\nstatic void ");
    tli_send_own(s, c, "_run_rows(void) {\n    const ");
    tli_send(s, type);
    tli_send(s, " *at = ");
    tli_send_own(s, c, "_rows;\n    while (at < ");
    tli_send_own(s, c, "_rows + sizeof ");
    tli_send_own(s, c, "_rows / sizeof *");
    tli_send_own(s, c, "_rows) {\n        uint32_t head = *at++, i;\n        void *to[");
    tli_send_i32(s, most ? most : 1);
    tli_send(s, "];\n        for (i = 0; i < (head >> ");
    tli_send_i32(s, t->count_shift);
    tli_send(s, "); i++) {\n            to[i] = (*at != 0) ? (void *)(uintptr_t)(");
    tli_send_own(s, c, "_spaces[*at >> ");
    tli_send_i32(s, t->shift);
    tli_send(s, "] + ((size_t)(*at & ");
    tli_send_constant(s, ((uint64_t)1 << t->shift) - 1);
    tli_send(s, "u) * ");
    tli_send_u64(s, t->unit);
    tli_send(s, "u)) : NULL;\n            at++;\n        }\n");
    if (!most) tli_send(s, "        (void)to;\n");     // regions of rows alone
    tli_send(s, "        switch (head & ");
    tli_send_constant(s, ((uint64_t)1 << t->count_shift) - 1);
    tli_send(s, "u) {\n");
    for (i = 0; i < case_count; i++) tli_send_case(s, c, &c->rows[rows[i]], i);
    tli_send(s, "        default: break;\n        }\n    }\n}\n");
}

// -- which is smaller --

// Whether a table is estimated to take fewer bytes than calls, on a Cortex-M at -Os. Calls: an address takes a
// load and 4 bytes beside the code, a parameter beyond the fourth a store. A table: its words, and for each
// case the call that reads them.
static int tli_is_table_smaller(const tli_code *c, const tli_code_table *t, const int32_t *rows,
                                int32_t case_count) {
    uint64_t calls = 0, table = 76 + 4 * (uint64_t)t->space_count;
    int32_t i;
    if (!t->word_bytes) return 0;
    for (i = 0; i < c->row_count; i++) {
        uint64_t operands = (uint64_t)tli_leading(c, c->rows[i].kind) + (uint64_t)c->rows[i].count;
        calls += 4 + 5 * operands + (operands > 4 ? 2 * (operands - 4) : 0);
        table += (uint64_t)t->word_bytes * (1 + operands);
    }
    for (i = 0; i < case_count; i++)
        table += 14 + 2 * (uint64_t)(tli_leading(c, c->rows[rows[i]].kind) + c->rows[rows[i]].count);
    return table < calls;
}

// -- the header --

// Whether an operand of the forward of an op is running statistics, in any node of it.
static int tli_changes_operand_of(const tli_code *c, int32_t op, const tli_code_param *param) {
    const tl_graph *graph = c->table.graph;
    int32_t id;
    for (id = op; id < graph->node_count && param->part == TLI_ROLE_IN; id++) {
        const tl_node *node = &graph->nodes[id];
        if (c->ops[id] != op || param->number >= node->input_count) continue;
        if (tli_is_statistic(graph, graph->inputs[node->first_input + param->number].tensor)) return 1;
    }
    return 0;
}

static void tli_send_prototype(tli_stream *s, const tli_code *c, int32_t op, int backward) {
    const tli_code_kernel *kernel = &c->kernels[2 * op + backward];
    int32_t i;
    tli_send(s, "void ");
    tli_send_kernel_name(s, c, op, backward);
    tli_send(s, tli_slot_count(c) > 1 ? "(int32_t node, int32_t slot" : "(int32_t node");
    for (i = kernel->first; i < kernel->first + kernel->count; i++) {
        tli_role part = c->params[i].part;
        int written = tli_is_written(part) || (part == TLI_ROLE_SAVED && !backward) ||
                      (part == TLI_ROLE_NEEDED_OUT && c->table.graph->nodes[op].state) ||
                      (!backward && tli_changes_operand_of(c, op, &c->params[i]));
        if (tli_code_range_of(c, op) == TLI_RANGE_ROWS && (part == TLI_ROLE_OUT || part == TLI_ROLE_IN)) {
            tli_send(s, ", const ");
            tli_send_own(s, c, "_operand *");
        } else {
            tli_send(s, written ? ", void *" : ", const void *");
        }
        tli_send(s, tli_role_names[part]);
        if (part <= TLI_ROLE_NEEDED_OUT || part == TLI_ROLE_STORED) tli_send_i32(s, c->params[i].number);
    }
    if (tli_op_takes_rows(c, op, backward) || tli_code_range_of(c, op))
        tli_send(s, ", int32_t first, int32_t count");
    tli_send(s, ");\n");
}

// Where a lifetime of the device lies.
static tli_code_word tli_code_place_of(const tli_code *c, const tl_lifetime *life) {
    tli_code_word word;
    word.space = TLI_SPACE_BANK + life->bank;
    word.value = life->offset;
    if (life->block >= 0) word.value += c->bases[life->block] - c->table.plan->blocks[life->block].offset;
    return word;
}

// Send "#define NET_INPUT_X (net_bank_0 + 16)" and its bytes.
static void tli_send_code_tensor(tli_stream *s, tli_code *c, const char *what, const tl_lifetime *life) {
    tli_code_word word = tli_code_place_of(c, life);
    tli_send_macro_tensor(s, &c->table, what, life);
    tli_send(s, " (");
    tli_send_word(s, c, &word, 0);
    tli_send(s, ")\n");
    tli_send_macro_number(s, &c->table, what, life, "_BYTES ", life->bytes);
}

static void tli_send_code_tensors(tli_stream *s, tli_code *c) {
    const tli_table *t = &c->table;
    int32_t first = tli_count_first_lives(&t->lifetimes, c->planned, t->plan), i;
    for (i = 0; i < t->lifetimes.count; i++) {
        const tl_lifetime *life = &t->lifetimes.items[i];
        if (tli_name_input_macro(life)) tli_send_code_tensor(s, c, tli_name_input_macro(life), life);
        else if (i < first) tli_send_code_tensor(s, c, "_ENTRY_", life);
        if (tli_ends_as_result(t, i, c->is_result)) tli_send_code_tensor(s, c, "_RESULT_", life);
    }
}

// Send "#define NET_WEIGHT_C1_OFFSET 64": one number of weights, or of constant k, -1 = of none.
static void tli_send_code_number(tli_stream *s, const tli_code *c, const char *what, int32_t id, int32_t k,
                                 const char *unit, uint64_t number) {
    tli_send_define(s, &c->table, what);
    tli_send_macro_node(s, &c->table, id);
    if (k >= 0) { tli_send(s, "_"); tli_send_i32(s, k); }
    tli_send(s, unit);
    tli_send_constant(s, number);
    tli_send(s, "\n");
}

static void tli_send_code_nodes(tli_stream *s, const tli_code *c) {
    const tl_graph *graph = c->table.graph;
    int32_t id, k, first;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int is_frozen = tli_weight_space(c, node) == TLI_SPACE_FROZEN;
        const char *what = is_frozen ? "_FROZEN_" : "_WEIGHT_";
        tli_send_code_number(s, c, "_NODE_", id, -1, " ", (uint64_t)id);
        if (node->param_bytes) {
            tli_send_code_number(s, c, what, id, -1, "_OFFSET ", c->weights[id]);
            tli_send_code_number(s, c, what, id, -1, "_BYTES ", node->param_bytes);
        }
        for (k = 0; k < tli_code_constants(c, id, &first); k++) {
            tli_send_code_number(s, c, "_STORED_", id, k, "_OFFSET ", c->stored[first + k]);
            tli_send_code_number(s, c, "_STORED_", id, k, "_BYTES ",
                                 graph->attributes->stored[first + k].bytes);
        }
    }
}

static uint64_t tli_code_state_bytes(const tli_code *c) {
    return c->space_bytes[TLI_SPACE_GRADIENTS] * (uint64_t)c->desc->state_count;
}

static void tli_send_code_numbers(tli_stream *s, tli_code *c) {
    const tli_table *t = &c->table;
    int32_t repeats = t->plan->repeat_count ? t->plan->repeat_count : 1;
    uint64_t batches = (uint64_t)repeats * (uint64_t)tli_slot_count(c);
    int32_t space;
    tli_send(s, "\n");
    for (space = TLI_SPACE_BANK; space < TLI_SPACE_COUNT; space++) {
        if (!c->space_bytes[space]) continue;
        tli_send(s, "#define ");
        tli_send_space_macro(s, c, space, "_BYTES ");
        tli_send_constant(s, c->space_bytes[space]);
        tli_send(s, "\n");
    }
    if (tli_code_state_bytes(c)) tli_send_defined(s, t, "_STATE_BYTES ", tli_code_state_bytes(c));
    tli_send_defined(s, t, "_PEAK_BYTES ", t->report.peak_bytes);
    tli_send_defined(s, t, "_MICRO_BATCHES ", batches);
    if (tli_slot_count(c) > 1) tli_send_defined(s, t, "_SLOTS ", (uint64_t)tli_slot_count(c));
    tli_send_defined(s, t, "_STEPS ", (uint64_t)t->plan->step_count);
    tli_send_defined(s, t, "_NODES ", (uint64_t)t->graph->node_count);
    tli_send_code_tensors(s, c);
    tli_send_code_nodes(s, c);
}

// Whether some row is of a kind.
static int tli_code_has(const tli_code *c, tli_row_kind kind) {
    int32_t i;
    for (i = 0; i < c->row_count; i++) if (c->rows[i].kind == kind) return 1;
    return 0;
}

static void tli_send_array_type(tli_stream *s, const tli_code *c, int32_t space) {
    tli_send(s, tli_is_constant_space(c, space) ? "const unsigned char " : "unsigned char ");
    tli_send_space_name(s, c, space);
    tli_send(s, "[");
    tli_send_space_macro(s, c, space, "_BYTES]");
}

// What every array begins at a multiple of.
static uint64_t tli_array_alignment(const tli_code *c) { return c->alignment > 8 ? c->alignment : 8; }

// Send the end of the declaration of an array that the user defines.
static void tli_send_users_array(tli_stream *s, const tli_code *c) {
    tli_send(s, ";    // of the user, at a multiple of ");
    tli_send_u64(s, tli_array_alignment(c));
    tli_send(s, " bytes\n");
}

static void tli_send_code_arrays(tli_stream *s, const tli_code *c) {
    int32_t space;
    tli_send(s, "\n// The arrays that everything lies in.\n");
    for (space = TLI_SPACE_BANK; space < TLI_SPACE_COUNT; space++) {
        if (!c->space_bytes[space]) continue;
        tli_send(s, "extern ");
        tli_send_array_type(s, c, space);
        if (tli_is_constant_space(c, space)) tli_send_users_array(s, c);
        else tli_send(s, ";\n");
    }
    if (!tli_code_state_bytes(c)) return;
    tli_send(s, "extern unsigned char ");
    tli_send_own(s, c, "_states[");
    tli_send_macro(s, c, "_STATE_BYTES];    // like the gradients, once for each number of the optimizer\n");
}

static void tli_send_code_header(tli_stream *s, tli_code *c) {
    int32_t id;
    tli_send(s, "// ");
    tli_send_own(s, c, ".h -- a plan as a C program, written by tl_write_plan_code; what the parameters of the"
                       " kernels\n// mean stands there.\n\n#ifndef ");
    tli_send_macro(s, c, "_CODE_H\n#define ");
    tli_send_macro(s, c, "_CODE_H\n\n#include <stddef.h>\n#include <stdint.h>\n");
    tli_send_code_numbers(s, c);
    tli_send(s, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    tli_send_code_arrays(s, c);
    if (c->region_count) tli_send_operand_type(s, c);
    tli_send(s, "\n// Run all micro-batches.\nvoid ");
    tli_send_own(s, c, "_run(void);\n\n// What the user defines: what fills the inputs; kernels.\n");
    tli_send(s, "void ");
    tli_send_own(s, c, "_load(int32_t micro_batch);\n");
    if (c->stream >= 0) tli_send_row_loader(s, c);
    for (id = 0; id < c->table.graph->node_count; id++) {
        if (c->ops[id] != id) continue;
        if (c->kernels[2 * id].is_called) tli_send_prototype(s, c, id, 0);
        if (c->kernels[2 * id + 1].is_called) tli_send_prototype(s, c, id, 1);
    }
    if (tli_code_has(c, TLI_ROW_COPY)) {
        tli_send(s, "\n// Begin a copy between device and host; wait for the copy that writes `to`.\nvoid ");
        tli_send_own(s, c, "_copy(void *to, const void *from, size_t bytes);\nvoid ");
        tli_send_own(s, c, "_wait(const void *to);\n");
    }
    if (tli_code_has(c, TLI_ROW_COMPRESS)) {
        tli_send(s, "\n// Convert a tensor of so many bytes of f32: codec 1 f16, 2 bf16, 3 q8.\nvoid ");
        tli_send_own(s, c, "_compress(int32_t codec, void *to, const void *from, size_t bytes);\nvoid ");
        tli_send_own(s, c, "_expand(int32_t codec, void *to, const void *from, size_t bytes);\n");
    }
    tli_send(s, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

// -- the source --

static void tli_send_alignment(tli_stream *s, const tli_code *c) {
    uint64_t alignment = tli_array_alignment(c);
    tli_send(s, "\n#ifndef ");
    tli_send_macro(s, c, "_ALIGN\n#if defined(__GNUC__)\n#define ");
    tli_send_macro(s, c, "_ALIGN __attribute__((aligned(");
    tli_send_u64(s, alignment);
    tli_send(s, ")))\n#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n#define ");
    tli_send_macro(s, c, "_ALIGN _Alignas(");
    tli_send_u64(s, alignment);
    tli_send(s, ")\n#else\n#error \"define ");
    tli_send_macro(s, c, "_ALIGN as what aligns an array to ");
    tli_send_u64(s, alignment);
    tli_send(s, " bytes\"\n#endif\n#endif\n");
}

// Send the definition of an array, with a macro of the user's in front that may place it.
static void tli_send_definition(tli_stream *s, const tli_code *c, int32_t space) {
    tli_send(s, "\n#ifndef ");
    tli_send_space_macro(s, c, space, "_PLACE\n#define ");
    tli_send_space_macro(s, c, space, "_PLACE\n#endif\n");
    tli_send_space_macro(s, c, space, "_PLACE ");
    tli_send_macro(s, c, "_ALIGN ");
    tli_send_array_type(s, c, space);
    tli_send(s, ";\n");
}

static void tli_send_code_definitions(tli_stream *s, const tli_code *c) {
    int32_t space;
    tli_send_alignment(s, c);
    for (space = TLI_SPACE_BANK; space < TLI_SPACE_COUNT; space++)
        if (c->space_bytes[space] && !tli_is_constant_space(c, space))
            tli_send_definition(s, c, space);
    if (!tli_code_state_bytes(c)) return;
    tli_send_macro(s, c, "_ALIGN unsigned char ");
    tli_send_own(s, c, "_states[");
    tli_send_macro(s, c, "_STATE_BYTES];\n");
}

static void tli_send_loss_filler(tli_stream *s, const tli_code *c) {
    tli_send(s, "\n#ifndef ");
    tli_send_macro(s, c, "_LOSS_GRADIENT\n#define ");
    tli_send_macro(s, c, "_LOSS_GRADIENT 1.0f\n#endif\n\nstatic void ");
    tli_send_own(s, c, "_start_loss(void *gradient, size_t bytes) {\n    static const float value = ");
    tli_send_macro(s, c, "_LOSS_GRADIENT;\n    size_t i;\n    for (i = 0; i < bytes; i++)\n"
                         "        ((unsigned char *)gradient)[i] ="
                         " ((const unsigned char *)&value)[i % sizeof value];\n}\n");
}

// Whether a row is an update, or clips, which the last of several micro-batches runs.
static int tli_is_last_only(const tli_code *c, const tli_code_row *row) {
    const tl_graph *graph = c->table.graph;
    return c->table.plan->repeat_count > 1 && row->kind == TLI_ROW_BACKWARD &&
           (graph->nodes[row->node].state || tli_clips(graph, row->node));
}

// Send what clears the gradients that states hold, before the first micro-batch.
static void tli_send_clears(tli_stream *s, const tli_code *c) {
    const tli_table *t = &c->table;
    int32_t i;
    for (i = 0; i < t->lifetimes.count; i++) {
        const tl_lifetime *life = &t->lifetimes.items[i];
        const tl_node *node = &t->graph->nodes[life->node];
        tli_code_word word;
        if (life->use != TL_USE_STATE || !tli_is_held(node) || life->output != node->output_count - 1) continue;
        if (t->plan->inference) return;
        word = tli_code_place_of(c, life);
        tli_send(s, "    memset(");
        tli_send_word(s, c, &word, 0);
        tli_send(s, ", 0, ");
        tli_send_constant(s, life->bytes);
        tli_send(s, ");  // ");
        tli_send_ascii(s, tl_name_node(t->graph, life->node));
        tli_send(s, ": gradient\n");
    }
}

static void tli_send_code_run(tli_stream *s, const tli_code *c, int is_table) {
    int32_t i;
    tli_send(s, "\nvoid ");
    tli_send_own(s, c, "_run(void) {\n    int32_t micro_batch;\n");
    tli_send_clears(s, c);
    tli_send(s, "    for (micro_batch = 0; micro_batch < ");
    tli_send_macro(s, c, "_MICRO_BATCHES; micro_batch += ");
    tli_send_i32(s, tli_slot_count(c));
    tli_send(s, ") {\n");
    for (i = 0; i < tli_slot_count(c); i++) {
        tli_send(s, "        ");
        tli_send_own(s, c, "_load(micro_batch");
        if (i) { tli_send(s, " + "); tli_send_i32(s, i); }
        tli_send(s, ");\n");
    }
    if (is_table) { tli_send(s, "        "); tli_send_own(s, c, "_run_rows();\n"); }
    for (i = 0; i < c->row_count && !is_table; i++) {
        if (tli_is_last_only(c, &c->rows[i])) {
            tli_send(s, "        if (micro_batch + 1 == ");
            tli_send_macro(s, c, "_MICRO_BATCHES)\n    ");
        }
        tli_send_call(s, c, &c->rows[i]);
    }
    tli_send(s, "    }\n}\n");
}

// t: NULL = write calls. numbers, rows: of tli_number_cases.
static void tli_send_code_source(tli_stream *s, const tli_code *c, const tli_code_table *t,
                                 const int32_t *numbers, const int32_t *rows, int32_t case_count) {
    tli_send(s, "// ");
    tli_send_own(s, c, ".c -- a plan as a C program, written by tl_write_plan_code.\n\n#include \"");
    tli_send_own(s, c, ".h\"\n");
    if (!c->table.plan->inference) tli_send(s, "\nvoid *memset(void *to, int byte, size_t count);\n");
    tli_send_code_definitions(s, c);
    if (tli_code_has(c, TLI_ROW_LOSS)) tli_send_loss_filler(s, c);
    tli_send_loops(s, c);
    if (c->region_count) tli_send_regions(s, c);
    if (t) tli_send_code_table(s, c, t, numbers, rows, case_count);
    tli_send_code_run(s, c, t != NULL);
}

// -- all of it --

static void tli_free_code(tli_code *c) {
    tl_free_lifetimes(c->env, &c->table.lifetimes);
    tli_release(c->env, c->table.block_bytes);
    tli_release(c->env, c->table.is_shared);
    tli_release(c->env, c->rows);
    tli_release(c->env, c->words);
    tli_release(c->env, c->loops);
    tli_release(c->env, c->is_result);
    tli_release(c->env, c->ops);
    tli_release(c->env, c->kernels);
    tli_release(c->env, c->params);
    tli_release(c->env, c->is_op_shared);
    tli_release(c->env, c->weights);
    tli_release(c->env, c->stored);
    tli_release(c->env, c->bases);
    tli_release(c->env, c->origins);
    tli_release(c->env, c->tensors);
    tli_release(c->env, c->ranges);
    tli_release(c->env, c->regions);
}

static tl_result tli_alloc_code(tli_code *c) {
    uint64_t nodes = (uint64_t)c->table.graph->node_count, blocks = (uint64_t)c->table.plan->block_count;
    const tl_attributes *a = c->table.graph->attributes;
    c->table.block_bytes = (uint64_t *)tli_alloc_array(c->env, blocks, sizeof *c->table.block_bytes);
    c->table.is_shared = (uint8_t *)tli_alloc_array(c->env, nodes, 1);
    c->is_result = (uint8_t *)tli_alloc_array(c->env, (uint64_t)c->table.graph->tensor_count, 1);
    c->ops = (int32_t *)tli_alloc_array(c->env, nodes, sizeof *c->ops);
    c->kernels = (tli_code_kernel *)tli_alloc_array(c->env, 2 * nodes, sizeof *c->kernels);
    c->is_op_shared = (uint8_t *)tli_alloc_array(c->env, nodes, 1);
    c->weights = (uint64_t *)tli_alloc_array(c->env, nodes, sizeof *c->weights);
    c->stored = (uint64_t *)tli_alloc_array(c->env, (uint64_t)(a ? a->stored_count : 0) + 1, sizeof *c->stored);
    c->bases = (uint64_t *)tli_alloc_array(c->env, blocks, sizeof *c->bases);
    if (c->table.block_bytes && c->table.is_shared && c->is_result && c->ops && c->kernels && c->is_op_shared &&
        c->weights && c->stored && c->bases) return TL_OK;
    return TL_ERROR_NO_MEMORY;
}

// The format that the bytes of a lifetime are declared to have.
static uint8_t tli_format_of_life(const tl_graph *graph, const tl_lifetime *life) {
    switch (life->use) {
    case TL_USE_SAVED:
    case TL_USE_SCRATCH:
    case TL_USE_COMPRESSED:
    case TL_USE_COUNT: return TL_TENSOR_FORMAT_NONE;
    case TL_USE_INPUT:
    case TL_USE_OUTPUT:
    case TL_USE_SECOND:
    case TL_USE_GRADIENT:
    case TL_USE_HOST:
    case TL_USE_STATE: break;
    }
    return graph->outputs[graph->nodes[life->node].first_output + life->output].format;
}

// Refuse a plan in which a tensor of a declared format lies where a load of its elements may fault.
static tl_result tli_check_code_alignment(const tli_code *c) {
    const tl_graph *graph = c->planned;
    int32_t i;
    for (i = 0; i < c->table.lifetimes.count; i++) {
        const tl_lifetime *life = &c->table.lifetimes.items[i];
        uint64_t offset = tli_code_place_of(c, life).value;
        uint64_t unit = tli_format_alignment(tli_format_of_life(graph, life));
        tli_sentence s;
        if (offset % unit == 0) continue;
        s = tli_begin_error(c->env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_PLAN_CODE),
                            TLI_RULE(CODE_FORMAT_IS_NOT_ALIGNED), offset, unit);
        tli_put_text(&s, tl_name_node(graph, life->node));
        return tli_end_error(c->env, &s, TL_ERROR_INVALID_ARG);
    }
    return TL_OK;
}

// Find everything that the texts say.
static tl_result tli_read_code(tli_code *c) {
    const tli_function function = TLI_IN(WRITE_PLAN_CODE);
    tli_table *t = &c->table;
    tl_simulate_desc simulate;
    tl_result result = tl_check_graph(c->env, t->graph);
    if (!result) result = tli_code_check_rows(c);
    if (!result) result = tli_check_plan(c->env, function, t->plan);
    if (result) return result;
    if (!tli_alloc_code(c)) result = tli_mark_shared_names(c->env, t->graph, t->is_shared);
    else result = TL_ERROR_NO_MEMORY;
    if (result) return tli_fail(c->env, result, function, TLI_RULE(NO_MEMORY_TO_WRITE_CODE));
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = c->planned;
    simulate.plan = t->plan;
    simulate.block_bytes = t->block_bytes;
    result = tli_find_lifetimes(c->env, function, &simulate, &t->lifetimes, &t->report);
    if (result) return result;
    if ((t->report.allocation_count && !t->plan->offset_count) ||
        (t->report.host_allocation_count && !t->plan->host_offset_count))
        return tli_fail(c->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(CODE_PLAN_HAS_NO_OFFSETS));
    tli_mark_results(t->graph, t->plan->inference, c->is_result);
    tli_code_find_ops(c);
    result = tli_code_place(c);
    if (!result) result = tli_check_code_alignment(c);
    if (!result) result = tli_code_read_rows(c);
    if (!result) result = tli_code_replay(c);
    return result ? result : tli_check_regions(c);
}

static int tli_has_last_only(const tli_code *c) {
    int32_t i;
    for (i = 0; i < c->row_count; i++) if (tli_is_last_only(c, &c->rows[i])) return 1;
    return 0;
}

// Send both texts, in the form that is wanted or the smaller one.
static tl_result tli_send_code(tli_code *c, tl_sink header, tl_sink source) {
    const tli_function function = TLI_IN(WRITE_PLAN_CODE);
    tl_code_form form = c->desc->form;
    int32_t *numbers, *rows, case_count = tli_number_cases(c, &numbers, &rows);
    tli_code_table t = tli_code_table_of(c, case_count);
    tl_result result = case_count < 0 ? TL_ERROR_NO_MEMORY : TL_OK;
    tli_stream stream;
    if (result) result = tli_fail(c->env, result, function, TLI_RULE(NO_MEMORY_TO_WRITE_CODE));
    else if (form == TL_CODE_TABLE && tli_has_last_only(c))
        result = tli_fail(c->env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(CODE_TABLE_UPDATES_IN_EVERY_BATCH));
    else if (form == TL_CODE_TABLE && !t.word_bytes)
        result = tli_fail(c->env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(CODE_TABLE_NEEDS_WIDER_WORDS));
    if (!result) {
        int is_table = c->row_count && (form == TL_CODE_TABLE ||
                                        (form == TL_CODE_SMALLEST && !tli_has_last_only(c) &&
                                         tli_is_table_smaller(c, &t, rows, case_count)));
        tli_open_stream(&stream, header);
        tli_send_code_header(&stream, c);
        result = tli_close_stream(&stream, c->env, function);
        tli_open_stream(&stream, source);
        if (!result) tli_send_code_source(&stream, c, is_table ? &t : NULL, numbers, rows, case_count);
        if (!result) result = tli_close_stream(&stream, c->env, function);
    }
    tli_release(c->env, numbers);
    tli_release(c->env, rows);
    return result;
}

// Sum up the arrays. No overflow: each is part of an arena, or far below 64 bits.
static tl_code_figures tli_count_code(const tli_code *c) {
    tl_code_figures f;
    int32_t k;
    tli_zero(&f, sizeof f);
    for (k = 0; k < TL_MOST_BANKS; k++) {
        f.bank_bytes += c->space_bytes[TLI_SPACE_BANK + k];
        f.host_bytes += c->space_bytes[TLI_SPACE_HOST + k];
    }
    f.constant_bytes = c->space_bytes[tli_constant_space(c)];
    if (!c->table.plan->inference) f.weight_bytes = c->space_bytes[TLI_SPACE_WEIGHTS];
    f.gradient_bytes = c->space_bytes[TLI_SPACE_GRADIENTS];
    f.state_bytes = tli_code_state_bytes(c);
    f.ram_bytes = f.bank_bytes + f.weight_bytes + f.gradient_bytes + f.state_bytes;
    return f;
}

TLI_IMPL tl_result tl_write_plan_code(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                      const tl_code_desc *desc, tl_sink header, tl_sink source) {
    tli_code c;
    tl_result result;
    tli_rule rule;
    int32_t i;
    TL_ASSERT(graph && plan && desc && desc->name && header.write && source.write);
    if (desc->figures) tli_zero(desc->figures, sizeof *desc->figures);
    rule = tli_check_identifier(desc->name);
    if ((uint32_t)desc->form >= TL_CODE_FORM_COUNT) rule = TLI_RULE(CODE_FORM_UNKNOWN_VALUE);
    if (desc->state_count < 0 || desc->state_count > 16) rule = TLI_RULE(CODE_STATE_COUNT_MUST_BE_0_TO_16);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_PLAN_CODE), rule);
    tli_zero(&c, sizeof c);
    c.env = env;
    c.desc = desc;
    c.table.graph = c.planned = graph;
    c.stream = -1;
    c.table.plan = plan;
    c.table.name = desc->name;
    c.alignment = plan->alignment_bytes ? plan->alignment_bytes : 1;
    result = tli_read_code(&c);
    if (!result) result = tli_send_code(&c, header, source);
    if (!result && desc->figures) *desc->figures = tli_count_code(&c);
    if (!result && desc->stored_offsets && graph->attributes)
        for (i = 0; i < graph->attributes->stored_count; i++) desc->stored_offsets[i] = c.stored[i];
    tli_free_code(&c);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
