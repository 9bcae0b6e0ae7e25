#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TEXT

// -- plans as C programs: names --
//
// What stands in the texts for a kernel, an array, an operand:
//
//     net_conv_forward    net_bank_0 + 64    NET_BANK_0_BYTES    // c1: step 3

static const char *const tli_role_names[] = { "dout", "din", "out", "in", "out", "weight", "stored", "dweight",
                                              "saved", "scratch" };

static int tli_is_written(tli_role part) {
    return part == TLI_ROLE_OUT || part == TLI_ROLE_IN_GRAD || part == TLI_ROLE_WEIGHT_GRAD ||
           part == TLI_ROLE_SCRATCH;
}

// Send the name of the plan and what follows it: "net", "_run".
static void tli_send_own(tli_stream *s, const tli_code *c, const char *what) {
    tli_send(s, c->table.name);
    tli_send(s, what);
}

// Send "net_conv_forward".
static void tli_send_kernel_name(tli_stream *s, const tli_code *c, int32_t op, int backward) {
    const char *name = tli_code_op_name(c, op);
    tli_send_own(s, c, "_");
    for (; *name; name++) {
        char letter = tli_code_letter(*name);
        tli_send_bytes(s, &letter, 1);
    }
    if (c->is_op_shared[op]) { tli_send(s, "_n"); tli_send_i32(s, op); }
    tli_send(s, c->table.graph->nodes[op].state ? "_update" : backward ? "_backward" : "_forward");
}

static void tli_send_space_name(tli_stream *s, const tli_code *c, int32_t space) {
    if (space == TLI_SPACE_WEIGHTS) tli_send_own(s, c, "_weights");
    else if (space == TLI_SPACE_GRADIENTS) tli_send_own(s, c, "_gradients");
    else if (space == TLI_SPACE_FROZEN) tli_send_own(s, c, "_frozen");
    else {
        tli_send_own(s, c, space >= TLI_SPACE_HOST ? "_host_" : "_bank_");
        tli_send_i32(s, space - (space >= TLI_SPACE_HOST ? TLI_SPACE_HOST : TLI_SPACE_BANK));
    }
}

// The same in upper case, with what follows: "NET_BANK_0_BYTES".
static void tli_send_space_macro(tli_stream *s, const tli_code *c, int32_t space, const char *what) {
    tli_send(s, tli_macro_of(c->table.name).text);
    if (space == TLI_SPACE_WEIGHTS) tli_send(s, "_WEIGHTS");
    else if (space == TLI_SPACE_GRADIENTS) tli_send(s, "_GRADIENTS");
    else if (space == TLI_SPACE_FROZEN) tli_send(s, "_FROZEN");
    else {
        tli_send(s, space >= TLI_SPACE_HOST ? "_HOST_" : "_BANK_");
        tli_send_i32(s, space - (space >= TLI_SPACE_HOST ? TLI_SPACE_HOST : TLI_SPACE_BANK));
    }
    tli_send(s, what);
}

static void tli_send_macro(tli_stream *s, const tli_code *c, const char *what) {
    tli_send(s, tli_macro_of(c->table.name).text);
    tli_send(s, what);
}

// Send an operand: "net_bank_0 + 64", "NULL" or a number.
static void tli_send_word(tli_stream *s, const tli_code *c, const tli_code_word *word, int is_number) {
    if (is_number) {
        tli_send_constant(s, word->value);
    } else if (word->space == TLI_SPACE_NONE) {
        tli_send(s, "NULL");
    } else {
        tli_send_space_name(s, c, word->space);
        if (word->value) tli_send(s, " + ");
        if (word->value) tli_send_constant(s, word->value);
    }
}

// Whether word i of a row is a number, and not an address.
static int tli_is_number(tli_row_kind kind, int32_t i) {
    switch (kind) {
    case TLI_ROW_FORWARD:
    case TLI_ROW_BACKWARD:
    case TLI_ROW_PIECES:
    case TLI_ROW_WAIT: return 0;
    case TLI_ROW_REGION: return 1;
    case TLI_ROW_ZERO:
    case TLI_ROW_LOSS: return i == 1;
    case TLI_ROW_COPY: return i == 2;
    case TLI_ROW_COMPRESS:
    case TLI_ROW_EXPAND: return i == 0 || i == 3;
    case TLI_ROW_COUNT: break;
    }
    return 0;
}

static int32_t tli_slot_count(const tli_code *c) { return tli_count_slots(c->table.plan); }

// How many numbers stand in front of the words of a row: a call of a kernel has its node there, and its slot
// where the plan has several.
static int32_t tli_leading(const tli_code *c, tli_row_kind kind) {
    if (kind != TLI_ROW_FORWARD && kind != TLI_ROW_BACKWARD) return 0;
    return tli_slot_count(c) > 1 ? 2 : 1;
}

// Send the function of a row, up to its opening parenthesis.
static void tli_send_callee(tli_stream *s, const tli_code *c, const tli_code_row *row) {
    int32_t op = c->ops[row->node];
    switch (row->kind) {
    case TLI_ROW_FORWARD: tli_send_kernel_name(s, c, op, 0); break;
    case TLI_ROW_BACKWARD: tli_send_kernel_name(s, c, op, 1); break;
    case TLI_ROW_ZERO: tli_send(s, "memset"); break;
    case TLI_ROW_LOSS: tli_send_own(s, c, "_start_loss"); break;
    case TLI_ROW_COPY: tli_send_own(s, c, "_copy"); break;
    case TLI_ROW_WAIT: tli_send_own(s, c, "_wait"); break;
    case TLI_ROW_COMPRESS: tli_send_own(s, c, "_compress"); break;
    case TLI_ROW_EXPAND: tli_send_own(s, c, "_expand"); break;
    case TLI_ROW_PIECES: tli_send_own(s, c, "_pieces_"); tli_send_i32(s, row->loop); break;
    case TLI_ROW_REGION: tli_send_own(s, c, "_make_rows"); break;
    case TLI_ROW_COUNT: break;
    }
    tli_send(s, "(");
}

static void tli_send_comment(tli_stream *s, const tli_code *c, const tli_code_row *row) {
    tli_send(s, "  // ");
    tli_send_ascii(s, tl_name_node(c->table.graph, row->node));
    tli_send(s, ": ");
    if (row->kind == TLI_ROW_ZERO || row->kind == TLI_ROW_LOSS) tli_send(s, "gradient, ");
    tli_send(s, "step ");
    tli_send_i32(s, row->step);
    tli_send(s, "\n");
}

#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
