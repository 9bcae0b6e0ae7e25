// tiny_code.h -- constants of a network as const arrays, and the kernels of generated C: a part of tl_plan.c
//
// tl_write_plan_code writes NAME.h and NAME.c: calls of kernels, at constant addresses. What these calls need is written
// here, from a tiny_model:
//
//     NAME_constants.c   the const array that NAME.h declares: weights, biases, multipliers, shifts, in w4a8 factors
//     NAME_scales.h      scales and zero points of inputs and results in i8 and i16
//     NAME_kernels.c     every kernel that NAME.h declares, by functions of nn_tiny.h (own) or of CMSIS-NN; geometry and
//                        scales of each node as const tables, by its number:
//
//         net_index[node] --> net_windows[..]  { 49, 10, 1, 10, 4, .. }  --> nn_tiny_conv2d_i8(out0, in0, ..)
//
// A table has 4 bytes a number, so what tables take is counted while they are written; the linker says the same. Tables of
// functions are made of formulas: a lookup of 256 bytes a node in i8; in i16 those of e^x, 1 / (1 + x) and sigmoid, 2 bytes a
// number, once in a program.
#ifndef TINY_CODE_H
#define TINY_CODE_H

#include "nn_fixed.h"
#include "tiny_model.h"

enum { TINY_MOST_PARTS = 16, TINY_NAME = 320, TINY_CURVE_STEPS = 12288 };

typedef struct tiny_code {
    const tiny_model   *t;
    const tl_rows_plan *rows;       // NULL = whole tensors
    const char         *name;       // of the program
    const char *const  *kernels;    // [nodes] of tl_code_desc
    const uint64_t     *offsets;    // [constants] of tl_code_desc
    uint64_t            constant_bytes;
    writer             *w;
    uint64_t            table_bytes;    // of tables that were written
    int                 is_first;       // 1 = a brace was opened: no comma stands in front of what follows
    uint64_t            scratch_bytes;  // of CMSIS-NN, in RAM
} tiny_code;

// -- schemes: what a node may be in, so that there is code for it --

// Bits 1 << tl_scheme; 0 = any.
static uint32_t tiny_find_schemes(const tl_graph *graph, int32_t id, tiny_kernels which) {
    const uint32_t f32 = UINT32_C(1) << TL_SCHEME_F32, i8 = UINT32_C(1) << TL_SCHEME_I8, i16 = UINT32_C(1) << TL_SCHEME_I16;
    const uint32_t channel = UINT32_C(1) << TL_SCHEME_I8_CHANNEL, wide = UINT32_C(1) << TL_SCHEME_W8A16;
    const uint32_t quarter = UINT32_C(1) << TL_SCHEME_W4A8;
    tiny_op op = tiny_find_op(tl_name_op(graph, id));
    const tl_stored *stored;
    if (graph->nodes[id].is_input) return 0;
    if (which == TINY_KERNELS_NONE) return tiny_find_stored(graph, id, &stored) ? f32 | i8 | i16 | channel | wide | quarter : 0;
    if (which == TINY_KERNELS_CMSIS && (op == TINY_CONV2D || op == TINY_DEPTHWISE)) return f32 | channel | wide;
    if (op < TINY_OP_COUNT && tiny_ops[op].axis >= 0) return f32 | i8 | channel | wide | (which == TINY_KERNELS_OWN ? quarter : 0);
    return f32 | i8 | i16 | channel | wide;
}

// -- names of kernels --

static void free_kernels(char **kernels, int32_t count) {
    int32_t i;
    for (i = 0; kernels && i < count; i++) free(kernels[i]);
    free(kernels);
}

// The kernels of a graph with schemes, one name a scheme; NULL = no memory.
static char **name_kernels(const tl_precision_graph *applied) {
    int32_t i, count = applied->graph.node_count;
    char **kernels = (char **)calloc((size_t)count + 1, sizeof *kernels);
    for (i = 0; kernels && i < count; i++) {
        size_t length = tl_print_kernel(applied, i, NULL, 0);
        kernels[i] = (char *)malloc(length + 1);
        if (!kernels[i]) {
            free_kernels(kernels, count);
            return NULL;
        }
        tl_print_kernel(applied, i, kernels[i], length + 1);
    }
    return kernels;
}

// -- text --

// Send a text in which $ stands for the program's name, % for it in upper case.
static void tiny_put(const tiny_code *c, const char *text) {
    const char *at;
    size_t k;
    for (; *text; text = at + (*at != 0)) {
        for (at = text; *at && *at != '$' && *at != '%';) at++;
        put_text(c->w, text, (size_t)(at - text));
        for (k = 0; *at == '%' && c->name[k]; k++) {
            char letter = c->name[k] >= 'a' && c->name[k] <= 'z' ? (char)(c->name[k] - 'a' + 'A') : c->name[k];
            put_text(c->w, &letter, 1);
        }
        if (*at == '$') put(c->w, "%s", c->name);
    }
}

// Send a float in the fewest digits that are read as the same one.
static void tiny_put_number(const tiny_code *c, float x) {
    char text[40];
    int digits = 1;
    do snprintf(text, sizeof text, "%.*g", digits, (double)x);
    while (strtof(text, NULL) != x && digits++ < 9);
    put(c->w, strpbrk(text, ".e") ? "%sf" : "%s.0f", text);
}

// What stands in C for a name: everything but letters and digits is _.
static void tiny_c_name(const char *name, char text[TINY_NAME]) {
    size_t k;
    for (k = 0; name[k] && k + 1 < TINY_NAME; k++) {
        int letter = (name[k] >= 'a' && name[k] <= 'z') || (name[k] >= 'A' && name[k] <= 'Z') || (name[k] >= '0' && name[k] <= '9');
        text[k] = letter ? name[k] : '_';
    }
    text[k] = 0;
}

static const tiny_node *tiny_at(const tiny_code *c, int32_t id) { return &c->t->nodes[id]; }

// -- constants --

static const tl_stored *tiny_stored(const tiny_code *c, int32_t i) { return &c->t->graph->attributes->stored[i]; }

static int32_t tiny_stored_count(const tiny_code *c) { return c->t->graph->attributes ? c->t->graph->attributes->stored_count : 0; }

// The constant that lies at an offset or behind it, the next one; -1 = none.
static int32_t tiny_next_constant(const tiny_code *c, uint64_t offset) {
    int32_t i, best = -1;
    for (i = 0; i < tiny_stored_count(c); i++)
        if (c->offsets[i] >= offset && (best < 0 || c->offsets[i] < c->offsets[best])) best = i;
    return best;
}

// Which of its node's constants one is.
static int32_t tiny_constant_part(const tiny_code *c, int32_t i) {
    int32_t first = i;
    while (first && tiny_stored(c, first - 1)->node == tiny_stored(c, i)->node) first--;
    return i - first;
}

static void tiny_put_constant(const tiny_code *c, int32_t i) {
#define TINY_FORMAT(id, name, note) name,
    static const char *const formats[] = { TL_TENSOR_FORMATS(TINY_FORMAT) };
#undef TINY_FORMAT
    static const char *const parts[] = { "weights", "biases", "multipliers", "shifts", "factors" };
    const tl_stored *stored = tiny_stored(c, i);
    int32_t part = tiny_constant_part(c, i);
    const unsigned char *bytes = c->t->nodes[stored->node].constants[part];
    uint64_t k;
    put(c->w, "    // %llu: ", (ull)c->offsets[i]);
    put(c->w, "%s, %s in %s", tiny_name(c->t, stored->node), parts[part], formats[stored->format]);
    for (k = 0; k < stored->bytes; k++) put(c->w, k % 32 ? "%u," : "\n    %u,", bytes[k]);
    put(c->w, "\n");
}

// Send NAME_constants.c. Without constants it declares what NAME.h does, because ISO C has no empty file.
static void tiny_put_constants(const tiny_code *c) {
    uint64_t offset = 0;
    int32_t i;
    if (!tiny_stored_count(c)) {
        tiny_put(c, "// $_constants.c -- the constants of $.h, written by tl_plan: it has none.\n\n#include \"$.h\"\n");
        return;
    }
    tiny_put(c, "// $_constants.c -- the constants of $.h, written by tl_plan: little endian, at the offsets that it says.\n\n#include \"$.h\"\n\n"
                "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
                "#error \"these constants are little endian\"\n#endif\n\n"
                "#ifndef %_ALIGN\n#if defined(__GNUC__)\n#define %_ALIGN __attribute__((aligned(8)))\n"
                "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n#define %_ALIGN _Alignas(8)\n#else\n"
                "#error \"define %_ALIGN as what aligns an array to 8 bytes\"\n#endif\n#endif\n#ifndef %_WEIGHTS_PLACE\n"
                "#define %_WEIGHTS_PLACE\n#endif\n\n%_WEIGHTS_PLACE %_ALIGN const unsigned char $_weights[%_WEIGHTS_BYTES] = {\n");
    for (i = tiny_next_constant(c, 0); i >= 0; i = tiny_next_constant(c, offset)) {
        tiny_put_constant(c, i);
        offset = c->offsets[i] + tiny_stored(c, i)->bytes;
    }
    put(c->w, "};\n");
}

// -- scales --

// What stands in the macros of NAME.h for a node: letters and digits in upper case, one _ for all else between them.
static void tiny_macro_name(const tiny_code *c, int32_t id, char text[TINY_NAME]) {
    const char *name = tiny_name(c->t, id);
    size_t k = 0;
    for (; *name && k + 1 < TINY_NAME; name++) {
        int lower = *name >= 'a' && *name <= 'z';
        if (lower || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9')) text[k++] = lower ? (char)(*name - 'a' + 'A') : *name;
        else if (k && text[k - 1] != '_') text[k++] = '_';
    }
    if (k && text[k - 1] == '_') k--;
    text[k] = 0;
}

// The same, with the node's number behind it where others have that name, too.
static void tiny_name_macro(const tiny_code *c, int32_t id, char text[TINY_NAME + 16]) {
    char other[TINY_NAME];
    int32_t k;
    int is_shared;
    tiny_macro_name(c, id, text);
    is_shared = !*text;
    for (k = 0; k < c->t->graph->node_count && !is_shared; k++) {
        tiny_macro_name(c, k, other);
        is_shared = k != id && strcmp(other, text) == 0;
    }
    if (is_shared) snprintf(text + strlen(text), 16, *text ? "_n%d" : "n%d", (int)id);
}

// Whether a node makes a result: it is kept, or none is and nobody reads it.
static int tiny_is_result(const tiny_code *c, int32_t id) {
    const tl_graph *graph = c->t->graph;
    int32_t i, any = 0;
    for (i = 0; i < graph->node_count; i++) any |= graph->nodes[i].keep;
    if (graph->nodes[id].is_input || any) return !graph->nodes[id].is_input && graph->nodes[id].keep;
    for (i = 0; i < graph->input_count; i++)
        if (graph->outputs[graph->inputs[i].tensor].node == id) return 0;
    return 1;
}

// Send NAME_scales.h. Names are those of NAME.h.
static void tiny_put_scales(const tiny_code *c) {
    char name[TINY_NAME + 16];
    int32_t id, any = 0;
    tiny_put(c, "// $_scales.h -- inputs and results of $.h in integers, written by tl_plan: number = (integer - ZERO) SCALE\n\n"
                "#ifndef %_SCALES_H\n#define %_SCALES_H\n");
    for (id = 0; id < c->t->graph->node_count; id++) {
        const tiny_node *n = tiny_at(c, id);
        int is_input = c->t->graph->nodes[id].is_input;
        if (!tiny_is_integer(n->format) || (!is_input && !tiny_is_result(c, id))) continue;
        tiny_name_macro(c, id, name);
        put(c->w, any++ ? "" : "\n");
        tiny_put(c, is_input ? "#define %_INPUT_" : "#define %_RESULT_");
        put(c->w, "%s_SCALE ", name);
        tiny_put_number(c, n->as.scale);
        tiny_put(c, is_input ? "\n#define %_INPUT_" : "\n#define %_RESULT_");
        put(c->w, "%s_ZERO %d\n", name, (int)n->as.zero_point);
    }
    put(c->w, any ? "\n#endif\n" : "\n// All of them are floats.\n\n#endif\n");
}

// -- tables: a row for each node that a kernel is called for --

// id, name of the table behind $_, C of a row
#define TINY_TABLES(X) \
    X(TINY_NO_TABLE, "", "") \
    X(TINY_WINDOWS, "windows", "nn_tiny_window window;\n    nn_tiny_target to;") \
    X(TINY_MATRICES, "matrices", "int32_t rows, R, K, N;\n    nn_tiny_target to;") \
    X(TINY_MEANS, "means", "int32_t pixels, C, multiplier, shift;\n    nn_tiny_target to;") \
    X(TINY_PAIRS, "pairs", "int32_t rows, runs, n, b_n;\n    nn_tiny_pair pair;") \
    X(TINY_SCALES, "scales", "int32_t rows, n, multiplier, shift;\n    nn_tiny_target to;") \
    X(TINY_NUMBERS, "numbers", "int32_t rows, n;\n    float scale;\n    nn_int_target to;") \
    X(TINY_SOFTMAXES, "softmaxes", "int32_t rows, R, n;\n    nn_tiny_softmax softmax;") \
    X(TINY_LOOKUPS, "lookups", "int32_t rows, n;\n    int8_t table[256];") \
    X(TINY_CURVES, "curves", "int32_t rows, n;\n    nn_tiny_curve curve;") \
    X(TINY_HARDSWISHES, "hardswishes", "int32_t rows, n;\n    nn_tiny_hardswish hardswish;") \
    X(TINY_CONCATS, "concats", "int32_t rows, outer, inner, count;\n" \
                               "    struct { int32_t n, at, multiplier, shift; nn_tiny_target to; } parts[%_PARTS];") \
    X(TINY_MOVES, "moves", "nn_tiny_window window;\n    int32_t zero;") \
    X(TINY_FLOAT_WINDOWS, "float_windows", "nn_tiny_window window;\n    nn_tiny_bounds to;") \
    X(TINY_FLOAT_MATRICES, "float_matrices", "int32_t rows, R, K, N;\n    nn_tiny_bounds to;") \
    X(TINY_FLOAT_PAIRS, "float_pairs", "int32_t rows, runs, n, b_n;\n    nn_tiny_bounds to;") \
    X(TINY_FLOAT_ELEMENTS, "float_elements", "int32_t rows, n;\n    nn_tiny_bounds to;") \
    X(TINY_FLOAT_CONCATS, "float_concats", "int32_t rows, outer, inner, count;\n    int32_t parts[%_PARTS][2];")

#define TINY_ID(id, name, row) id,
typedef enum tiny_table { TINY_TABLES(TINY_ID) TINY_TABLE_COUNT } tiny_table;
#undef TINY_ID

typedef struct tiny_table_row { const char *name, *row; } tiny_table_row;
#define TINY_TABLE_ROW(id, name, row) { name, row },
static const tiny_table_row tiny_tables[] = { TINY_TABLES(TINY_TABLE_ROW) };
#undef TINY_TABLE_ROW

static const tiny_node *tiny_from(const tiny_code *c, int32_t id, int32_t i) { return tiny_at(c, tiny_input(c->t, id, i)); }

// The table that the kernel of a node reads.
static tiny_table tiny_table_of(const tiny_code *c, int32_t id) {
    const tiny_node *n = tiny_at(c, id);
    int is_integer = tiny_is_integer(n->format);
    if (c->t->graph->nodes[id].is_input) return TINY_NO_TABLE;
    switch (n->op) {
    case TINY_CONV2D: case TINY_DEPTHWISE: case TINY_AVGPOOL: case TINY_MAXPOOL: return is_integer ? TINY_WINDOWS : TINY_FLOAT_WINDOWS;
    case TINY_LINEAR: return is_integer ? TINY_MATRICES : TINY_FLOAT_MATRICES;
    case TINY_GAVGPOOL: return is_integer ? TINY_MEANS : TINY_FLOAT_MATRICES;
    case TINY_SOFTMAX: return is_integer ? TINY_SOFTMAXES : TINY_FLOAT_MATRICES;
    case TINY_ADD: case TINY_MUL: return is_integer ? TINY_PAIRS : TINY_FLOAT_PAIRS;
    case TINY_RELU: case TINY_RELU6: case TINY_REQUANTIZE: return is_integer ? TINY_SCALES : TINY_FLOAT_ELEMENTS;
    case TINY_SIGMOID: case TINY_TANH: return !is_integer ? TINY_FLOAT_ELEMENTS : n->format == TL_FORMAT_I16 ? TINY_CURVES : TINY_LOOKUPS;
    case TINY_HARDSWISH: return !is_integer ? TINY_FLOAT_ELEMENTS : n->format == TL_FORMAT_I16 ? TINY_HARDSWISHES : TINY_LOOKUPS;
    case TINY_CONCAT: return is_integer ? TINY_CONCATS : TINY_FLOAT_CONCATS;
    case TINY_UPSAMPLE: case TINY_PAD: return TINY_MOVES;
    case TINY_CONVERT: return is_integer && tiny_is_integer(tiny_from(c, id, 0)->format) ? TINY_SCALES : TINY_NUMBERS;
    case TINY_OP_COUNT: break;
    }
    return TINY_NO_TABLE;
}

// Send what stands in front of an item of a row.
static void tiny_put_comma(tiny_code *c) {
    put(c->w, c->is_first ? "" : ", ");
    c->is_first = 0;
}

static void tiny_put_open(tiny_code *c) {
    tiny_put_comma(c);
    put(c->w, "{ ");
    c->is_first = 1;
}

static void tiny_put_close(tiny_code *c) {
    put(c->w, " }");
    c->is_first = 0;
}

// Send numbers of a row, and count them.
static void tiny_put_numbers(tiny_code *c, const int32_t *numbers, int32_t count) {
    int32_t k;
    for (k = 0; k < count; k++) {
        tiny_put_comma(c);
        put(c->w, "%d", (int)numbers[k]);
    }
    c->table_bytes += 4 * (uint64_t)count;
}

static void tiny_put_float_row(tiny_code *c, float x) {
    tiny_put_comma(c);
    tiny_put_number(c, x);
    c->table_bytes += 4;
}

// What is applied to the result of a node: its op, or what was folded into it.
static rg_act tiny_act_of(const tiny_node *n) {
    if (n->op == TINY_RELU) return RG_ACT_RELU;
    return n->op == TINY_RELU6 ? RG_ACT_RELU6 : n->geometry.act;
}

// Bounds of an output in integers.
static void tiny_find_bounds(const tiny_node *n, int32_t *low, int32_t *high) {
    rg_act act = tiny_act_of(n);
    *low = n->as.low;
    *high = n->as.high;
    if (act != RG_ACT_NONE && n->as.zero_point > *low) *low = n->as.zero_point;
    if (act == RG_ACT_RELU6) *high = nn_int_round((double)(6.0f / n->as.scale) + n->as.zero_point, *low, *high);
}

static void tiny_put_target(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    int32_t numbers[4];
    numbers[0] = in->as.zero_point;
    numbers[1] = n->as.zero_point;
    tiny_find_bounds(n, &numbers[2], &numbers[3]);
    tiny_put_open(c);
    tiny_put_numbers(c, numbers, 4);
    tiny_put_close(c);
}

static void tiny_put_bounds(tiny_code *c, const tiny_node *n) {
    const float most = 3.40282347e38f;
    rg_act act = tiny_act_of(n);
    tiny_put_open(c);
    tiny_put_float_row(c, act == RG_ACT_NONE ? -most : 0.0f);
    tiny_put_float_row(c, act == RG_ACT_RELU6 ? 6.0f : most);
    tiny_put_close(c);
}

static void tiny_put_window(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    const rg_node *g = &n->geometry;
    int32_t numbers[14] = { in->shape[0], in->shape[1], in->shape[2], g->kernel[0], g->kernel[1], g->stride[0], g->stride[1],
                            g->pad[0], g->pad[1], g->dilation[0], g->dilation[1], n->shape[0], n->shape[1], n->shape[2] };
    tiny_put_open(c);
    tiny_put_numbers(c, numbers, 14);
    tiny_put_close(c);
}

// The factor a b / c; both scales and c were checked.
static tl_multiplier tiny_factor(float a, float b, float c) {
    tl_multiplier m;
    (void)tl_find_multiplier(NULL, a, b, c, &m);
    return m;
}

static void tiny_put_pair(tiny_code *c, const tiny_node *n, const tiny_node *a, const tiny_node *b) {
    float larger = a->as.scale > b->as.scale ? a->as.scale : b->as.scale, steps = n->format == TL_FORMAT_I8 ? 1048576.0f : 32768.0f;
    tl_multiplier of_a = tiny_factor(a->as.scale, 0.5f, larger), of_b = tiny_factor(b->as.scale, 0.5f, larger);
    tl_multiplier m = n->op == TINY_ADD ? tiny_factor(larger, 2 / steps, n->as.scale) : tiny_factor(a->as.scale, b->as.scale, n->as.scale);
    int32_t numbers[11] = { a->as.zero_point, of_a.multiplier, of_a.exponent, b->as.zero_point, of_b.multiplier, of_b.exponent,
                            m.multiplier, m.exponent, n->as.zero_point, 0, 0 };
    tiny_find_bounds(n, &numbers[9], &numbers[10]);
    tiny_put_open(c);
    tiny_put_numbers(c, numbers, 11);
    tiny_put_close(c);
}

static int tiny_same_shape(const tiny_node *a, const tiny_node *b) { return memcmp(a->shape, b->shape, sizeof a->shape) == 0; }

// rows, runs of n elements in each, and how many elements of b a run moves on: 0 where b is one pixel for all of them.
static void tiny_put_runs(tiny_code *c, const tiny_node *n, const tiny_node *b) {
    int is_one = !tiny_same_shape(n, b);
    int32_t numbers[4];
    numbers[0] = n->shape[0];
    numbers[1] = is_one ? n->shape[1] : 1;
    numbers[2] = is_one ? n->shape[2] : n->shape[1] * n->shape[2];
    numbers[3] = is_one ? 0 : numbers[2];
    tiny_put_numbers(c, numbers, 4);
}

// A factor beside sizes. That of a mean is divided by its pixels as TensorFlow Lite does it, which truncates.
static void tiny_put_factor(tiny_code *c, const tiny_node *n, const tiny_node *in, int32_t first, int32_t second, int32_t pixels) {
    tl_multiplier m = tiny_factor(in->as.scale, 1.0f, n->as.scale);
    int32_t numbers[4], shift = 0;
    while (pixels >> (shift + 1) && shift < 31 + m.exponent) shift++;
    m.multiplier = (int32_t)(((int64_t)m.multiplier << shift) / pixels);
    m.exponent -= shift;
    numbers[0] = first;
    numbers[1] = second;
    numbers[2] = m.multiplier;
    numbers[3] = m.exponent;
    tiny_put_numbers(c, numbers, 4);
    tiny_put_target(c, n, in);
}

static tl_multiplier tiny_softmax_factor(const tiny_node *n, const tiny_node *in) {
    return n->format == TL_FORMAT_I16 ? tiny_factor(in->as.scale, 65535.0f, 10.0f) : tiny_factor(in->as.scale, 67108864.0f, 1.0f);
}

static void tiny_put_softmax(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    tl_multiplier m = tiny_softmax_factor(n, in);
    int32_t numbers[6] = { n->shape[0], n->shape[1], n->shape[2], m.multiplier, m.exponent, 0 };
    if (n->format == TL_FORMAT_I8) numbers[5] = -(int32_t)((UINT64_C(31) << 26) >> m.exponent);
    tiny_put_numbers(c, numbers, 3);
    tiny_put_open(c);
    tiny_put_numbers(c, numbers + 3, 3);
    tiny_put_close(c);
}

// e^x to 13 digits, without a library: a series for x / 1024, squared ten times.
static double tiny_exp(double x) {
    double small = (x < -700 ? -700 : x > 700 ? 700 : x) / 1024, term = 1, sum = 1;
    int k;
    for (k = 1; k < 16; k++) {
        term *= small / k;
        sum += term;
    }
    for (k = 0; k < 10; k++) sum *= sum;
    return sum;
}

static double tiny_function(tiny_op op, double x) {
    if (op == TINY_TANH) return 1 - 2 / (tiny_exp(2 * x) + 1);
    if (op == TINY_SIGMOID) return 1 / (1 + tiny_exp(-x));
    return x * (x <= -3 ? 0 : x >= 3 ? 6 : x + 3) / 6;
}

static void tiny_put_lookup(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    int32_t q;
    tiny_put_open(c);
    for (q = -128; q < 128; q++) {
        double x = (double)(q - in->as.zero_point) * in->as.scale, y = tiny_function(n->op, x) / n->as.scale;
        tiny_put_comma(c);
        put(c->w, "%d", (int)nn_int_round(y + n->as.zero_point, -128, 127));
    }
    tiny_put_close(c);
    c->table_bytes += 256;
}

// The factor of a sigmoid's or tanh's input in i16, as TensorFlow Lite makes it: near some powers of two (to 1e-3 of the
// logarithm) that of the power, else rounded down. (scale of in) 3 2^12 < 2^15.
static void tiny_put_curve(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    const double near_one = 1.000693387462581;     // 2^0.001
    double factor = TINY_CURVE_STEPS * (double)in->as.scale;
    int32_t numbers[2] = { 0, 0 }, power;
    for (power = 3; power <= (n->op == TINY_TANH ? 6 : 3); power *= 2)
        if (factor * near_one > power && factor < power * near_one) numbers[0] = power;
    if (!numbers[0]) {
        for (; factor <= 16383.5 && numbers[1] < 31; numbers[1]++) factor *= 2;
        numbers[0] = (int32_t)factor;
    }
    tiny_put_open(c);
    tiny_put_numbers(c, numbers, 2);
    tiny_put_close(c);
}

static void tiny_put_hardswish(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    tl_multiplier share = tiny_factor(in->as.scale, 32768.0f, 3.0f), m = tiny_factor(in->as.scale, 1.0f / 16384, n->as.scale);
    int32_t numbers[4] = { share.multiplier, share.exponent, m.multiplier, m.exponent };
    tiny_put_open(c);
    tiny_put_numbers(c, numbers, 4);
    tiny_put_close(c);
}

// How a concatenation lies: rows of `outer` runs of elements, `inner` of them in a run of the output.
static void tiny_split_axis(const tiny_node *n, const int32_t shape[3], int32_t *rows, int32_t *outer, int32_t *inner) {
    int32_t axis = n->geometry.axis;
    *rows = axis ? shape[0] : 1;
    *outer = axis == 2 ? shape[1] : 1;
    *inner = axis == 2 ? shape[2] : axis ? shape[1] * shape[2] : shape[0] * shape[1] * shape[2];
}

// The shape of an input of a concatenation: a vector takes images as they lie.
static void tiny_find_part(const tiny_node *n, const tiny_node *from, int32_t shape[3]) {
    memcpy(shape, from->shape, 3 * sizeof *shape);
    if (n->shape[0] != 1 || n->shape[1] != 1 || n->geometry.axis != 2) return;
    shape[0] = shape[1] = 1;
    shape[2] = (int32_t)tiny_elements_of(from->shape);
}

// The most inputs of a concatenation.
static int32_t tiny_count_parts(const tiny_code *c) {
    int32_t id, most = 1;
    for (id = 0; id < c->t->graph->node_count; id++)
        if (tiny_at(c, id)->op == TINY_CONCAT && c->t->graph->nodes[id].input_count > most) most = c->t->graph->nodes[id].input_count;
    return most;
}

static void tiny_put_concat(tiny_code *c, int32_t id) {
    const tiny_node *n = tiny_at(c, id), *in;
    int32_t i, numbers[4], shape[3], at = 0, rows, outer, count = c->t->graph->nodes[id].input_count, most = tiny_count_parts(c);
    int is_integer = tiny_is_integer(n->format);
    tiny_split_axis(n, n->shape, &numbers[0], &numbers[1], &numbers[2]);
    numbers[3] = count;
    tiny_put_numbers(c, numbers, 4);
    tiny_put_open(c);
    for (i = 0; i < count; i++, at += numbers[0]) {
        in = tiny_from(c, id, i);
        tiny_find_part(n, in, shape);
        tiny_split_axis(n, shape, &rows, &outer, &numbers[0]);
        tiny_put_open(c);
        if (is_integer) tiny_put_factor(c, n, in, numbers[0], at, 1);
        numbers[1] = at;
        if (!is_integer) tiny_put_numbers(c, numbers, 2);
        tiny_put_close(c);
    }
    tiny_put_close(c);
    c->table_bytes += (uint64_t)(most - count) * (is_integer ? 32 : 8);
}

static void tiny_put_convert(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    const tl_quantization *as = tiny_is_integer(n->format) ? &n->as : &in->as;
    int32_t numbers[3];
    tiny_put_float_row(c, as->scale);
    numbers[0] = as->zero_point;
    numbers[1] = as->low;
    numbers[2] = as->high;
    tiny_put_open(c);
    tiny_put_numbers(c, numbers, 3);
    tiny_put_close(c);
}

// rows, R, K, N: a product for each pixel where the input has as many, else of all that it has.
static void tiny_put_matrix(tiny_code *c, const tiny_node *n, const tiny_node *in) {
    int32_t numbers[4] = { n->shape[0], n->shape[1], 0, n->shape[2] };
    numbers[2] = (int32_t)(tiny_elements_of(in->shape) / ((uint64_t)n->shape[0] * (uint64_t)n->shape[1]));
    tiny_put_numbers(c, numbers, 4);
}

// Send the row of a node in its table.
static void tiny_put_row(tiny_code *c, int32_t id) {
    const tiny_node *n = tiny_at(c, id), *in = tiny_from(c, id, 0);
    int32_t rows[2] = { n->shape[0], n->shape[1] * n->shape[2] };
    tiny_table table = tiny_table_of(c, id);
    put(c->w, "    ");
    c->is_first = 1;
    tiny_put_open(c);
    if (table == TINY_NUMBERS || table == TINY_LOOKUPS || table == TINY_CURVES || table == TINY_HARDSWISHES || table == TINY_FLOAT_ELEMENTS)
        tiny_put_numbers(c, rows, 2);
    if (table == TINY_PAIRS || table == TINY_FLOAT_PAIRS) tiny_put_runs(c, n, tiny_from(c, id, 1));
    switch (table) {
    case TINY_MOVES: case TINY_WINDOWS: case TINY_FLOAT_WINDOWS: tiny_put_window(c, n, in); break;
    case TINY_MATRICES: case TINY_FLOAT_MATRICES: tiny_put_matrix(c, n, in); break;
    case TINY_MEANS: tiny_put_factor(c, n, in, in->shape[0] * in->shape[1], n->shape[2], in->shape[0] * in->shape[1]); break;
    case TINY_PAIRS: tiny_put_pair(c, n, in, tiny_from(c, id, 1)); break;
    case TINY_SCALES: tiny_put_factor(c, n, in, rows[0], rows[1], 1); break;
    case TINY_NUMBERS: tiny_put_convert(c, n, in); break;
    case TINY_SOFTMAXES: tiny_put_softmax(c, n, in); break;
    case TINY_LOOKUPS: tiny_put_lookup(c, n, in); break;
    case TINY_CURVES: tiny_put_curve(c, n, in); break;
    case TINY_HARDSWISHES: tiny_put_hardswish(c, n, in); break;
    case TINY_CONCATS: case TINY_FLOAT_CONCATS: tiny_put_concat(c, id); break;
    case TINY_FLOAT_ELEMENTS: case TINY_FLOAT_PAIRS: case TINY_NO_TABLE: case TINY_TABLE_COUNT: break;
    }
    if (table == TINY_WINDOWS || table == TINY_MATRICES) tiny_put_target(c, n, in);
    if (table == TINY_FLOAT_WINDOWS || table == TINY_FLOAT_MATRICES || table == TINY_FLOAT_PAIRS || table == TINY_FLOAT_ELEMENTS)
        tiny_put_bounds(c, n);
    if (table == TINY_MOVES) tiny_put_numbers(c, &n->as.zero_point, 1);
    tiny_put_close(c);
    put(c->w, ",  // %s\n", tiny_name(c->t, id));
}

// Send a table with the rows of its nodes, if it has any; its rows are counted.
static int32_t tiny_put_table(tiny_code *c, tiny_table table) {
    int32_t id, count = 0;
    for (id = 0; id < c->t->graph->node_count; id++) {
        if (tiny_table_of(c, id) != table) continue;
        if (!count++) {
            put(c->w, "\ntypedef struct %s_%s {\n    ", c->name, tiny_tables[table].name);
            tiny_put(c, tiny_tables[table].row);
            put(c->w, "\n} %s_%s;\n\nstatic const %s_%s %s_%s_rows[] = {\n", c->name, tiny_tables[table].name, c->name,
                tiny_tables[table].name, c->name, tiny_tables[table].name);
        }
        tiny_put_row(c, id);
    }
    if (count) put(c->w, "};\n");
    return count;
}

static double tiny_sigmoid(double x) { return tiny_function(TINY_SIGMOID, x); }

static double tiny_reciprocal(double x) { return 1 / (1 + x); }

// Send a table that kernels of i16 share, whatever their nodes are; its entries have 2 bytes.
static void tiny_put_shared_table(tiny_code *c, const char *type, const char *name, const int32_t *entries, int32_t count) {
    int32_t k;
    put(c->w, "\nstatic const %s %s_%s[%d] = {", type, c->name, name, (int)count);
    for (k = 0; k < count; k++) put(c->w, k % 16 ? " %d," : "\n    %d,", (int)entries[k]);
    put(c->w, "\n};\n");
    c->table_bytes += 2 * (uint64_t)count;
}

// Send what all softmaxes of i16 read, and all sigmoids and tanhs: once in a program.
static void tiny_put_shared_tables(tiny_code *c) {
    int16_t words[513];
    uint16_t sigmoid[256];
    int32_t entries[513], id, k, softmaxes = 0, curves = 0;
    for (id = 0; id < c->t->graph->node_count; id++) {
        softmaxes += tiny_table_of(c, id) == TINY_SOFTMAXES && tiny_at(c, id)->format == TL_FORMAT_I16;
        curves += tiny_table_of(c, id) == TINY_CURVES;
    }
    nn_int16_fill_table(words, tiny_exp, 10.0 / 65535, 32767, 2.0 / 65535);
    for (k = 0; k < 513; k++) entries[k] = words[k];
    if (softmaxes) tiny_put_shared_table(c, "int16_t", "exp_table", entries, 513);
    nn_int16_fill_table(words, tiny_reciprocal, 1.0 / 65535, -32768, 2.0 / 65535);
    for (k = 0; k < 513; k++) entries[k] = words[k];
    if (softmaxes) tiny_put_shared_table(c, "int16_t", "reciprocal_table", entries, 513);
    nn_int16_fill_sigmoid(sigmoid, tiny_sigmoid);
    for (k = 0; k < 256; k++) entries[k] = sigmoid[k];
    if (curves) tiny_put_shared_table(c, "uint16_t", "sigmoid_table", entries, 256);
}

// Send all tables, and the row of each node in its own.
static void tiny_put_tables(tiny_code *c) {
    int32_t id, k, most = 0, rows[TINY_TABLE_COUNT] = { 0 };
    if (tiny_count_parts(c) > 1) {
        tiny_put(c, "\n#define %_PARTS ");
        put(c->w, "%d\n", (int)tiny_count_parts(c));
    }
    for (k = TINY_NO_TABLE + 1; k < TINY_TABLE_COUNT; k++) {
        rows[k] = tiny_put_table(c, (tiny_table)k);
        most = rows[k] > most ? rows[k] : most;
        rows[k] = 0;
    }
    tiny_put_shared_tables(c);
    tiny_put(c, "\n// The row of each node in the table of its kernel.\nstatic const ");
    put(c->w, most > 256 ? "uint16_t" : "uint8_t");
    tiny_put(c, " $_index[%_NODES] = {");
    for (id = 0; id < c->t->graph->node_count; id++)
        put(c->w, id % 32 ? " %d," : "\n    %d,", tiny_table_of(c, id) ? (int)rows[tiny_table_of(c, id)]++ : 0);
    put(c->w, "\n};\n");
    c->table_bytes += (uint64_t)c->t->graph->node_count * (most > 256 ? 2 : 1);
}

// -- kernels --

// What the kernel of some nodes, all of one name, is called with.
typedef struct tiny_kernel {
    int32_t node;           // the first of them
    int32_t inputs, stored; // the most that any has
    int     has_scratch, takes_rows;
} tiny_kernel;

static const char *tiny_kernel_name(const tiny_code *c, int32_t id) { return c->kernels ? c->kernels[id] : tl_name_op(c->t->graph, id); }

// The member of a region that a node is; NULL = it is called as a whole.
static const tl_row_member *tiny_find_member(const tiny_code *c, int32_t id) {
    int32_t i;
    for (i = 0; c->rows && i < c->rows->member_count; i++)
        if (c->rows->members[i].node == id) return &c->rows->members[i];
    return NULL;
}

static tiny_kernel tiny_kernel_of(const tiny_code *c, int32_t id) {
    const tl_graph *graph = c->t->graph;
    tiny_kernel k = { id, 0, 0, 0, 0 };
    int32_t i, at;
    for (i = 0; i < graph->node_count; i++) {
        int32_t stored = 0;
        if (graph->nodes[i].is_input || strcmp(tiny_kernel_name(c, i), tiny_kernel_name(c, id)) != 0) continue;
        for (at = 0; at < tiny_stored_count(c); at++) stored += tiny_stored(c, at)->node == i;
        k.node = i < k.node ? i : k.node;
        k.inputs = graph->nodes[i].input_count > k.inputs ? graph->nodes[i].input_count : k.inputs;
        k.stored = stored > k.stored ? stored : k.stored;
        k.has_scratch |= graph->nodes[i].fwork_bytes > 0;
        k.takes_rows |= tiny_find_member(c, i) != NULL;
    }
    return k;
}

static void tiny_put_prototype(const tiny_code *c, const tiny_kernel *k) {
    char name[TINY_NAME];
    int32_t i;
    tiny_c_name(tiny_kernel_name(c, k->node), name);
    put(c->w, "\nvoid %s_%s_forward(int32_t node, ", c->name, name);
    tiny_put(c, k->takes_rows ? "const $_operand *out0" : "void *out0");
    for (i = 0; i < k->inputs; i++) {
        tiny_put(c, k->takes_rows ? ", const $_operand *in" : ", const void *in");
        put(c->w, "%d", (int)i);
    }
    for (i = 0; i < k->stored; i++) put(c->w, ", const void *stored%d", (int)i);
    put(c->w, k->has_scratch ? ", void *scratch" : "");
    put(c->w, k->takes_rows ? ", int32_t first, int32_t count) {\n" : ") {\n");
}

// Bytes of a row of the output and of an input, and how many rows there are, as C says them of a row k of a table.
typedef struct tiny_sizes { const char *out, *in, *rows; } tiny_sizes;

static tiny_sizes tiny_sizes_of(tiny_table table, int is_mean) {
    static const tiny_sizes image = { "k->window.out_width * k->window.out_channels", "k->window.in_width * k->window.in_channels",
                                      "k->window.out_height" };
    static const tiny_sizes matrix = { "k->R * k->N", "k->R * k->K", "k->rows" }, elements = { "k->n", "k->n", "k->rows" };
    static const tiny_sizes softmax = { "k->R * k->n", "k->R * k->n", "k->rows" }, concat = { "k->outer * k->inner", "", "k->rows" };
    static const tiny_sizes pairs = { "k->runs * k->n", "k->runs * k->n", "k->rows" };
    static const tiny_sizes mean = { "k->C", "k->pixels * k->C", "1" }, float_mean = { "k->N", "k->K", "1" };
    switch (table) {
    case TINY_WINDOWS: case TINY_MOVES: case TINY_FLOAT_WINDOWS: return image;
    case TINY_MATRICES: case TINY_FLOAT_MATRICES: return is_mean ? float_mean : matrix;
    case TINY_MEANS: return mean;
    case TINY_SOFTMAXES: return softmax;
    case TINY_CONCATS: case TINY_FLOAT_CONCATS: return concat;
    case TINY_PAIRS: case TINY_FLOAT_PAIRS: return pairs;
    case TINY_SCALES: case TINY_NUMBERS: case TINY_LOOKUPS: case TINY_CURVES: case TINY_HARDSWISHES: case TINY_FLOAT_ELEMENTS:
    case TINY_NO_TABLE: case TINY_TABLE_COUNT: break;
    }
    return elements;
}

static const char *tiny_type(tl_format format) { return format == TL_FORMAT_I8 ? "int8_t" : format == TL_FORMAT_I16 ? "int16_t" : "float"; }

static int tiny_bytes(tl_format format) { return format == TL_FORMAT_I8 ? 1 : format == TL_FORMAT_I16 ? 2 : 4; }

// Send "    nn_tiny_in in0 = ..;" of an operand, or its out.
static void tiny_put_operand(const tiny_code *c, const tiny_kernel *k, int32_t input, const char *elements, tl_format format) {
    const char *what = input < 0 ? "out" : "in";
    int number = input < 0 ? 0 : (int)input;
    put(c->w, "    nn_tiny_%s %s = ", what, input < 0 ? "out" : input ? "b" : "a");
    put(c->w, k->takes_rows ? "%s_%s(%s%d, " : "%.0snn_tiny_whole_%s(%s%d, ", c->name, what, what, number);
    put(c->w, tiny_bytes(format) > 1 ? "%s * %d);\n" : "%s);\n", elements, tiny_bytes(format));
}

// Send what a kernel begins with: its row of a table, and its operands row by row.
static void tiny_put_prologue(const tiny_code *c, const tiny_kernel *k) {
    const tiny_node *n = tiny_at(c, k->node);
    tiny_table table = tiny_table_of(c, k->node);
    tiny_sizes sizes = tiny_sizes_of(table, n->op == TINY_GAVGPOOL);
    int32_t i;
    put(c->w, "    const %s_%s *k = &%s_%s_rows[%s_index[node]];\n", c->name, tiny_tables[table].name, c->name, tiny_tables[table].name, c->name);
    tiny_put_operand(c, k, -1, sizes.out, n->format);
    for (i = 0; i < k->inputs && n->op != TINY_CONCAT; i++)
        tiny_put_operand(c, k, i, i ? "k->runs * k->b_n" : sizes.in, tiny_from(c, k->node, i)->format);
    if (k->takes_rows) put(c->w, "    if (count == 0) {\n        count = %s;\n    }\n", sizes.rows);
    else put(c->w, "    int32_t first = 0;\n    int32_t count = %s;\n", sizes.rows);
    if (k->has_scratch) put(c->w, "    (void)scratch;\n");
    if (k->stored == 4)
        put(c->w, "    nn_tiny_weights w = { (const int8_t *)stored0, (const int32_t *)stored1, (const int32_t *)stored2,\n"
                  "                          (const int32_t *)stored3, %d };\n", n->scheme == TL_SCHEME_I8 ? 0 : 1);
    if (k->stored == 5)
        put(c->w, "    nn_tiny_weights_w4 w = { { (const int8_t *)stored0, (const int32_t *)stored1, (const int32_t *)stored2,\n"
                  "                               (const int32_t *)stored3, 1 }, (const int8_t *)stored4 };\n");
}

// A call for several rows, or behind ! for one, behind & for one run i of it. @ is i8, i16, w4 or f32, # the type of an element of the output, ~ that of the
// input; ` ^ | the row of the output and of both inputs.
static const char *tiny_body_of(const tiny_code *c, int32_t id) {
    const tiny_node *n = tiny_at(c, id);
    int is_float = n->format == TL_FORMAT_F32, is_wide = n->format == TL_FORMAT_I16;
    switch (n->op) {
    case TINY_CONV2D:
        return is_float ? "    nn_tiny_conv2d_f32_rows(&out, &a, &k->window, (const float *)stored0, (const float *)stored1, &k->to, first, count);\n"
                        : "    nn_tiny_conv2d_@_rows(&out, &a, &k->window, &w, &k->to, first, count);\n";
    case TINY_DEPTHWISE:
        return is_float ? "    nn_tiny_depthwise_f32_rows(&out, &a, &k->window, (const float *)stored0, (const float *)stored1, &k->to, first, count);\n"
                        : "    nn_tiny_depthwise_@_rows(&out, &a, &k->window, &w, &k->to, first, count);\n";
    case TINY_LINEAR:
        return is_float ? "!nn_tiny_linear_f32(`, ^, (const float *)stored0, (const float *)stored1, &k->to, k->R, k->K, k->N);\n"
                        : "!nn_tiny_linear_@(`, ^, &w, &k->to, k->R, k->K, k->N);\n";
    case TINY_AVGPOOL: return "    nn_tiny_avgpool_@_rows(&out, &a, &k->window, &k->to, first, count);\n";
    case TINY_MAXPOOL: return "    nn_tiny_maxpool_@_rows(&out, &a, &k->window, &k->to, first, count);\n";
    case TINY_GAVGPOOL:
        return is_float ? "!nn_tiny_gavgpool_f32(`, ^, k->K / k->N, k->N, &k->to);\n"
                        : "!nn_tiny_gavgpool_@(`, ^, k->pixels, k->C, k->multiplier, k->shift, &k->to);\n";
    case TINY_ADD:
        return is_float ? "&nn_tiny_add_f32(` + i * k->n, ^ + i * k->n, | + i * k->b_n, k->n, &k->to);\n"
                        : "&nn_tiny_add_@(` + i * k->n, ^ + i * k->n, | + i * k->b_n, k->n, &k->pair);\n";
    case TINY_MUL:
        return is_float ? "&nn_tiny_mul_f32(` + i * k->n, ^ + i * k->n, | + i * k->b_n, k->n, &k->to);\n"
                        : "&nn_tiny_mul_@(` + i * k->n, ^ + i * k->n, | + i * k->b_n, k->n, &k->pair);\n";
    case TINY_RELU: case TINY_RELU6: case TINY_REQUANTIZE:
        return is_float ? "!nn_tiny_bound_f32(`, ^, k->n, &k->to);\n" : "!nn_tiny_scale_@(`, ^, k->n, k->multiplier, k->shift, &k->to);\n";
    case TINY_SOFTMAX:
        if (is_wide) return "!nn_tiny_softmax_i16(`, ^, k->R, k->n, &k->softmax, $_exp_table, $_reciprocal_table);\n";
        return is_float ? "!nn_tiny_softmax_f32(`, ^, k->R, k->N);\n" : "!nn_tiny_softmax_i8(`, ^, k->R, k->n, &k->softmax);\n";
    case TINY_SIGMOID:
        if (is_wide) return "!nn_tiny_sigmoid_i16(`, ^, k->n, &k->curve, $_sigmoid_table);\n";
        return is_float ? "!nn_tiny_sigmoid_f32(`, ^, k->n);\n" : "!nn_tiny_lookup_i8(`, ^, k->n, k->table);\n";
    case TINY_TANH:
        if (is_wide) return "!nn_tiny_tanh_i16(`, ^, k->n, &k->curve, $_sigmoid_table);\n";
        return is_float ? "!nn_tiny_tanh_f32(`, ^, k->n);\n" : "!nn_tiny_lookup_i8(`, ^, k->n, k->table);\n";
    case TINY_HARDSWISH:
        if (is_wide) return "!nn_tiny_hardswish_i16(`, ^, k->n, &k->hardswish);\n";
        return is_float ? "!nn_tiny_hardswish_f32(`, ^, k->n);\n" : "!nn_tiny_lookup_i8(`, ^, k->n, k->table);\n";
    case TINY_PAD:
        return n->format == TL_FORMAT_I8 ? "    nn_tiny_pad_i8_rows(&out, &a, &k->window, k->zero, first, count);\n"
                                         : "    nn_tiny_pad_rows(&out, &a, &k->window, 0, first, count, (int32_t)sizeof(#));\n";
    case TINY_UPSAMPLE:
        return "    nn_tiny_upsample_rows(&out, &a, k->window.in_width, k->window.in_channels * (int32_t)sizeof(#),\n"
               "                          k->window.out_height / k->window.in_height, k->window.out_width / k->window.in_width, first, count);\n";
    case TINY_CONVERT:
        if (tiny_table_of(c, id) == TINY_SCALES)
            return "    nn_int_factor factor = { k->multiplier, k->shift };\n    nn_int_target target = { k->to.zero, k->to.low, k->to.high };\n"
                   "    int32_t row, i;\n    for (row = first; row < (first + count); row++) {\n        # *to = `;\n        const ~ *from = ^;\n"
                   "        for (i = 0; i < k->n; i++) {\n"
                   "            to[i] = (#)nn_int_requantize(from[i] - k->to.in_zero, factor, target);\n        }\n    }\n";
        if (is_float) return tiny_from(c, id, 0)->format == TL_FORMAT_I8 ? "!nn_int8_dequantize(`, ^, (size_t)k->n, k->scale, k->to.zero);\n"
                                                                          : "!nn_int16_dequantize(`, ^, (size_t)k->n, k->scale, k->to.zero);\n";
        return n->format == TL_FORMAT_I8 ? "!nn_int8_quantize(`, ^, (size_t)k->n, k->scale, k->to);\n"
                                         : "!nn_int16_quantize(`, ^, (size_t)k->n, k->scale, k->to);\n";
    case TINY_CONCAT: case TINY_OP_COUNT: break;
    }
    return "";
}

// How kernels of nn_tiny.h are named behind their op.
static const char *tiny_suffix(const tiny_node *n) {
    if (n->scheme == TL_SCHEME_W4A8 && tiny_ops[n->op].axis >= 0) return "w4";
    return n->format == TL_FORMAT_I8 ? "i8" : n->format == TL_FORMAT_I16 ? "i16" : "f32";
}

// Send a body with what its signs stand for.
static void tiny_put_body(const tiny_code *c, int32_t id, const char *body) {
    const tiny_node *n = tiny_at(c, id), *in = tiny_from(c, id, 0);
    const char *to = tiny_type(n->format), *from = tiny_type(in->format);
    int is_loop = *body == '!' || *body == '&';
    int is_run = *body == '&';
    if (is_loop) put(c->w, is_run ? "    int32_t row, i;\n" : "    int32_t row;\n");
    if (is_loop) put(c->w, "    for (row = first; row < (first + count); row++) {\n        ");
    if (is_run) put(c->w, "for (i = 0; i < k->runs; i++) {\n            ");
    for (body += is_loop; *body; body++)
        if (*body == '@') put(c->w, "%s", tiny_suffix(n));
        else if (*body == '#') put(c->w, "%s", to);
        else if (*body == '~') put(c->w, "%s", from);
        else if (*body == '`') put(c->w, "(%s *)nn_tiny_find_out(&out, row)", to);
        else if (*body == '^') put(c->w, "(const %s *)nn_tiny_find_in(&a, row)", from);
        else if (*body == '|') put(c->w, "(const %s *)nn_tiny_find_in(&b, row)", from);
        else if (*body == '$') put(c->w, "%s", c->name);
        else if (*body == '%') tiny_put(c, "%");
        else put_text(c->w, body, 1);
    if (is_run) put(c->w, "        }\n");
    if (is_loop) put(c->w, "    }\n");
}

// All inputs of a concatenation, row by row.
static void tiny_put_concat_body(const tiny_code *c, const tiny_kernel *k) {
    const tiny_node *n = tiny_at(c, k->node);
    int32_t i;
    put(c->w, k->takes_rows ? "    const %s_operand *in[] = { " : "%.0s    const void *in[] = { ", c->name);
    for (i = 0; i < k->inputs; i++) put(c->w, "in%d, ", (int)i);
    put(c->w, "};\n    int32_t row, i;\n    for (row = first; row < (first + count); row++) {\n        for (i = 0; i < k->count; i++) {\n");
    put(c->w, k->takes_rows ? "            nn_tiny_in a = %s_in(in[i], " : "%.0s            nn_tiny_in a = nn_tiny_whole_in(in[i], ", c->name);
    put(c->w, tiny_is_integer(n->format) ? "k->outer * k->parts[i].n * %d);\n" : "k->outer * k->parts[i][0] * %d);\n", tiny_bytes(n->format));
    tiny_put_body(c, k->node, tiny_is_integer(n->format)
        ? "            nn_tiny_concat_@(`, ^, k->outer, k->parts[i].n, k->inner, k->parts[i].at,\n"
          "                              k->parts[i].multiplier, k->parts[i].shift, &k->parts[i].to);\n        }\n    }\n"
        : "            nn_tiny_concat_f32(`, ^, k->outer, k->parts[i][0], k->inner, k->parts[i][1]);\n        }\n    }\n");
}

static void tiny_put_own_kernel(const tiny_code *c, const tiny_kernel *k) {
    tiny_put_prototype(c, k);
    tiny_put_prologue(c, k);
    if (tiny_at(c, k->node)->op == TINY_CONCAT) tiny_put_concat_body(c, k);
    else tiny_put_body(c, k->node, tiny_body_of(c, k->node));
    put(c->w, "}\n");
}

// -- kernels of CMSIS-NN --
//
// Those of whole images in i8 that it has; what it has not is done by nn_tiny.h. All share one scratch array, as large
// as what its functions ask for (arm_.._get_buffer_size) on a Cortex-M without or with DSP instructions.

// What stands in the place of a kernel of nn_tiny.h; "" = nothing does.
static const char *tiny_cmsis_body_of(const tiny_node *n) {
#define TINY_CONV_PARTS \
    "    cmsis_nn_context ctx = { $_scratch, (int32_t)sizeof $_scratch };\n" \
    "    cmsis_nn_per_channel_quant_params quant = { (int32_t *)(uintptr_t)stored2, (int32_t *)(uintptr_t)stored3 };\n" \
    "    const nn_tiny_window *at = &k->window;\n" \
    "    cmsis_nn_dims in = { 1, at->in_height, at->in_width, at->in_channels }, bias = { 1, 1, 1, at->out_channels };\n" \
    "    cmsis_nn_dims out = { 1, at->out_height, at->out_width, at->out_channels };\n"
#define TINY_POOL_PARTS \
    "    cmsis_nn_context ctx = { $_scratch, (int32_t)sizeof $_scratch };\n" \
    "    const nn_tiny_window *at = &k->window;\n" \
    "    cmsis_nn_pool_params params = { { at->stride_x, at->stride_y }, { at->pad_left, at->pad_top }, { k->to.low, k->to.high } };\n" \
    "    cmsis_nn_dims in = { 1, at->in_height, at->in_width, at->in_channels }, filter = { 1, at->height, at->width, 1 };\n" \
    "    cmsis_nn_dims out = { 1, at->out_height, at->out_width, at->out_channels };\n"
    if (n->format != TL_FORMAT_I8) return "";
    switch (n->op) {
    case TINY_CONV2D:
        return TINY_CONV_PARTS
               "    cmsis_nn_dims filter = { at->out_channels, at->height, at->width, at->in_channels };\n"
               "    cmsis_nn_conv_params params = { -k->to.in_zero, k->to.zero, { at->stride_x, at->stride_y }, { at->pad_left, at->pad_top },\n"
               "                                    { at->dilation_x, at->dilation_y }, { k->to.low, k->to.high } };\n"
               "    if (arm_convolve_wrapper_s8(&ctx, &params, &quant, &in, (const int8_t *)in0, &filter, (const int8_t *)stored0, &bias,\n"
               "                                (const int32_t *)stored1, &out, (int8_t *)out0) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_DEPTHWISE:
        return TINY_CONV_PARTS
               "    cmsis_nn_dims filter = { 1, at->height, at->width, at->out_channels };\n"
               "    cmsis_nn_dw_conv_params params = { -k->to.in_zero, k->to.zero, at->out_channels / at->in_channels,\n"
               "                                       { at->stride_x, at->stride_y }, { at->pad_left, at->pad_top },\n"
               "                                       { at->dilation_x, at->dilation_y }, { k->to.low, k->to.high } };\n"
               "    if (arm_depthwise_conv_wrapper_s8(&ctx, &params, &quant, &in, (const int8_t *)in0, &filter, (const int8_t *)stored0, &bias,\n"
               "                                      (const int32_t *)stored1, &out, (int8_t *)out0) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_LINEAR:
        return "    cmsis_nn_context ctx = { $_scratch, (int32_t)sizeof $_scratch };\n"
               "    cmsis_nn_fc_params params = { -k->to.in_zero, 0, k->to.zero, { k->to.low, k->to.high } };\n"
               "    cmsis_nn_quant_params quant = { (int32_t *)(uintptr_t)stored2, (int32_t *)(uintptr_t)stored3, PER_CHANNEL };\n"
               "    cmsis_nn_dims in = { k->rows * k->R, 1, 1, k->K }, filter = { k->K, 1, 1, k->N }, bias = { 1, 1, 1, k->N };\n"
               "    cmsis_nn_dims out = { k->rows * k->R, 1, 1, k->N };\n"
               "    if (arm_fully_connected_wrapper_s8(&ctx, &params, &quant, &in, (const int8_t *)in0, &filter, (const int8_t *)stored0, &bias,\n"
               "                                       (const int32_t *)stored1, &out, (int8_t *)out0) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_AVGPOOL:
        return TINY_POOL_PARTS
               "    if (arm_avgpool_s8(&ctx, &params, &in, (const int8_t *)in0, &filter, &out, (int8_t *)out0) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_MAXPOOL:
        return TINY_POOL_PARTS
               "    if (arm_max_pool_s8(&ctx, &params, &in, (const int8_t *)in0, &filter, &out, (int8_t *)out0) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_ADD:
        return "    int32_t i, runs = k->b_n ? 1 : k->rows * k->runs, n = k->b_n ? k->rows * k->n : k->n;\n    for (i = 0; i < runs; i++)\n"
               "        if (arm_elementwise_add_s8((const int8_t *)in0 + i * n, (const int8_t *)in1, -k->pair.a_zero, k->pair.a_multiplier,\n"
               "                                   k->pair.a_shift, -k->pair.b_zero, k->pair.b_multiplier, k->pair.b_shift, 20,\n"
               "                                   (int8_t *)out0 + i * n, k->pair.zero, k->pair.multiplier, k->pair.shift, k->pair.low,\n"
               "                                   k->pair.high, n) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_MUL:
        return "    int32_t i, runs = k->b_n ? 1 : k->rows * k->runs, n = k->b_n ? k->rows * k->n : k->n;\n    for (i = 0; i < runs; i++)\n"
               "        if (arm_elementwise_mul_s8((const int8_t *)in0 + i * n, (const int8_t *)in1, -k->pair.a_zero, -k->pair.b_zero,\n"
               "                                   (int8_t *)out0 + i * n, k->pair.zero, k->pair.multiplier, k->pair.shift, k->pair.low,\n"
               "                                   k->pair.high, n) != ARM_CMSIS_NN_SUCCESS) %_FAILED(node);\n";
    case TINY_SOFTMAX:
        return "    arm_softmax_s8((const int8_t *)in0, k->rows * k->R, k->n, k->softmax.multiplier, k->softmax.shift, k->softmax.least,\n"
               "                   (int8_t *)out0);\n";
    case TINY_GAVGPOOL: case TINY_CONCAT: case TINY_SIGMOID: case TINY_TANH: case TINY_HARDSWISH: case TINY_RELU: case TINY_RELU6:
    case TINY_REQUANTIZE: case TINY_UPSAMPLE: case TINY_PAD: case TINY_CONVERT: case TINY_OP_COUNT: break;
    }
    return "";
#undef TINY_CONV_PARTS
#undef TINY_POOL_PARTS
}

// The scratch that CMSIS-NN asks for in a node, where it has no MVE: the larger one of its C and its DSP code.
static uint64_t tiny_cmsis_scratch(const tiny_code *c, int32_t id) {
    const tiny_node *n = tiny_at(c, id), *in = c->t->graph->nodes[id].input_count ? tiny_from(c, id, 0) : n;
    const rg_node *g = &n->geometry;
    uint64_t terms = (uint64_t)g->kernel[0] * (uint64_t)g->kernel[1] * (uint64_t)in->shape[2];
    int is_whole = n->shape[2] == in->shape[2] && g->dilation[0] == 1 && g->dilation[1] == 1;
    int is_usual = g->kernel[0] == 3 && g->kernel[1] == 3 && g->pad[0] <= 1 && g->pad[1] <= 1;
    if (n->format != TL_FORMAT_I8) return 0;
    if (n->op == TINY_CONV2D) return 4 * ((terms + 3) / 4 * 4);     // two columns of int16; of 1 x 1 armclang's code alone
    if (n->op == TINY_DEPTHWISE) return is_whole && !is_usual ? 2 * terms : 0;
    return n->op == TINY_AVGPOOL ? 4 * (uint64_t)in->shape[2] : 0;
}

static void tiny_put_cmsis_kernel(const tiny_code *c, const tiny_kernel *k) {
    const tiny_node *n = tiny_at(c, k->node);
    const char *body = tiny_cmsis_body_of(n), *place = strstr(body, "PER_CHANNEL");
    const char *table = tiny_tables[tiny_table_of(c, k->node)].name;
    char text[2048];
    if (!*body) {
        tiny_put_own_kernel(c, k);
        return;
    }
    snprintf(text, sizeof text, "%.*s%s%s", (int)(place ? place - body : (int)strlen(body)), body,
             place ? n->scheme == TL_SCHEME_I8 ? "0" : "1" : "", place ? place + strlen("PER_CHANNEL") : "");
    tiny_put_prototype(c, k);
    put(c->w, "    const %s_%s *k = &%s_%s_rows[%s_index[node]];\n", c->name, table, c->name, table, c->name);
    if (k->has_scratch) put(c->w, "    (void)scratch;\n");
    tiny_put_body(c, k->node, text);
    put(c->w, "}\n");
}

// -- all of it --

// What no kernel does that is written here.
static int tiny_check_kernels(const tiny_code *c, tiny_kernels which) {
    int32_t id;
    int code = CODE_OK;
    for (id = 0; id < c->t->graph->node_count && !code; id++) {
        const tiny_node *n = tiny_at(c, id);
        const tl_row_member *m = tiny_find_member(c, id);
        const char *name = tiny_name(c->t, id), *option = which == TINY_KERNELS_OWN ? "own" : "cmsis-nn";
        int has_weights = tiny_ops[n->op < TINY_OP_COUNT ? n->op : TINY_ADD].axis >= 0;
        code = tiny_check_node(c->t, id);
        if (code || c->t->graph->nodes[id].is_input) continue;
        if (n->format != TL_FORMAT_F32 && !tiny_is_integer(n->format))
            return fail(CODE_INPUT, "--kernels %s: node %s: is in %s; there are kernels of f32, i8 and i16", option, name, tl_name_format(n->format));
        if ((n->scheme == TL_SCHEME_I16 && has_weights) || n->scheme == TL_SCHEME_DYNAMIC || n->scheme == TL_SCHEME_FAKE ||
            (n->scheme == TL_SCHEME_W4A8 && which == TINY_KERNELS_CMSIS))
            return fail(CODE_INPUT, "--kernels %s: node %s: scheme %s has no kernel there", option, name, tl_name_scheme(n->scheme));
        if (which == TINY_KERNELS_CMSIS && n->scheme == TL_SCHEME_I8 && (n->op == TINY_CONV2D || n->op == TINY_DEPTHWISE))
            return fail(CODE_INPUT, "--kernels cmsis-nn: node %s: its convolutions have a scale for each channel: scheme i8-channel, not i8", name);
        if (m && which == TINY_KERNELS_CMSIS)
            return fail(CODE_INPUT, "--kernels cmsis-nn: node %s: --rows calls it for rows, which its kernels do not take", name);
        if (m && (n->op == TINY_GAVGPOOL || (n->op == TINY_CONCAT && !n->geometry.axis)))
            return fail(CODE_INPUT, "--kernels %s: node %s: --rows calls it for rows, and its kernel makes all of them at once", option, name);
        if (m && (m->takes_slots || c->t->graph->nodes[id].takes_blocks))
            return fail(CODE_INPUT, "--kernels %s: node %s: %s, which its kernel does not do", option, name,
                        m->takes_slots ? "overwrites the rows under its window" : "--rows calls it for elements");
    }
    return code;
}

// Factors that the tables need must fit their kernels.
static int tiny_check_factors(const tiny_code *c) {
    int32_t id;
    for (id = 0; id < c->t->graph->node_count; id++) {
        const tiny_node *n = tiny_at(c, id);
        tiny_table table = tiny_table_of(c, id);
        tl_multiplier m = { 0, 0 };
        if (table == TINY_SOFTMAXES) m = tiny_softmax_factor(n, tiny_from(c, id, 0));
        else if (table == TINY_CURVES) m.exponent = TINY_CURVE_STEPS * (double)tiny_from(c, id, 0)->as.scale < 32768 ? 0 : 31;
        else if (table == TINY_HARDSWISHES) {
            tl_multiplier share = tiny_factor(tiny_from(c, id, 0)->as.scale, 32768.0f, 3.0f);
            m = tiny_factor(tiny_from(c, id, 0)->as.scale, 1.0f / 16384, n->as.scale);
            if (share.exponent > m.exponent) m = share;
        }
        else if (table == TINY_SCALES || table == TINY_CONCATS || table == TINY_MEANS) m = tiny_factor(tiny_from(c, id, 0)->as.scale, 1.0f, n->as.scale);
        else if (table == TINY_PAIRS && n->op == TINY_MUL) m = tiny_factor(tiny_from(c, id, 0)->as.scale, tiny_from(c, id, 1)->as.scale, n->as.scale);
        if (m.exponent > 30 || (table == TINY_SOFTMAXES && n->format == TL_FORMAT_I8 && m.exponent < 0))
            return fail(CODE_INPUT, "--kernels: node %s: its scales are too far apart for integers", tiny_name(c->t, id));
    }
    return CODE_OK;
}

// Whether a node may read such a shape: its own, or as second input of a product or a sum one pixel for all.
static int tiny_fits_shape(const tiny_node *n, const tiny_node *from, int32_t input) {
    if (tiny_same_shape(from, n)) return 1;
    return input == 1 && (n->op == TINY_ADD || n->op == TINY_MUL) && from->shape[0] == 1 && from->shape[1] == 1 && from->shape[2] == n->shape[2];
}

// Shapes of what a node without window reads.
static int tiny_check_shapes(const tiny_code *c) {
    int32_t id, i, k;
    for (id = 0; id < c->t->graph->node_count; id++) {
        const tiny_node *n = tiny_at(c, id), *in;
        int32_t count = c->t->graph->nodes[id].input_count, part[3];
        int64_t sum = 0;
        if (c->t->graph->nodes[id].is_input || !count) continue;
        in = tiny_from(c, id, 0);
        for (i = 0; i < count; i++) {
            const tiny_node *from = tiny_from(c, id, i);
            int32_t axis = n->geometry.axis;
            tiny_find_part(n, from, part);
            if (n->op == TINY_CONCAT)
                for (k = 0; k < 3; k++)
                    if (k != axis && part[k] != n->shape[k]) return tiny_fail_geometry(c->t, id, "its inputs differ in another axis than axis=");
            if (n->op == TINY_CONCAT) sum += part[axis];
            else if ((n->op == TINY_ADD || n->op == TINY_MUL || n->op >= TINY_SOFTMAX) && n->op != TINY_UPSAMPLE && n->op != TINY_PAD &&
                     !tiny_fits_shape(n, from, i))
                return tiny_fail_geometry(c->t, id, "its shape is not that of what it reads");
        }
        if (n->op == TINY_CONCAT && sum != n->shape[n->geometry.axis]) return tiny_fail_geometry(c->t, id, "its inputs do not add up to its shape");
        if (n->op == TINY_GAVGPOOL && (n->shape[2] != in->shape[2] || n->shape[0] != 1 || n->shape[1] != 1))
            return tiny_fail_geometry(c->t, id, "its shape is not that of the channels which it reads");
        if (n->op == TINY_UPSAMPLE && (n->shape[0] % in->shape[0] || n->shape[1] % in->shape[1] || n->shape[2] != in->shape[2]))
            return tiny_fail_geometry(c->t, id, "its shape is no multiple of what it reads");
        if (n->op == TINY_PAD && (n->shape[0] != in->shape[0] + n->geometry.pad[0] + n->geometry.pad[2] ||
                                  n->shape[1] != in->shape[1] + n->geometry.pad[1] + n->geometry.pad[3] || n->shape[2] != in->shape[2]))
            return tiny_fail_geometry(c->t, id, "its shape is not that of what it reads, with pad around it");
    }
    return CODE_OK;
}

static int tiny_has_floats(const tiny_code *c) {
    int32_t id;
    for (id = 0; id < c->t->graph->node_count; id++)
        if (!c->t->graph->nodes[id].is_input && tiny_at(c, id)->format == TL_FORMAT_F32 && tiny_table_of(c, id) != TINY_NUMBERS) return 1;
    return 0;
}

// Operands of calls for rows, as nn_tiny.h has them.
static void tiny_put_row_operands(const tiny_code *c) {
    int32_t id, any = 0;
    for (id = 0; id < c->t->graph->node_count; id++) any |= !c->t->graph->nodes[id].is_input && tiny_kernel_of(c, id).takes_rows;
    if (!any) return;
    tiny_put(c, "\nstatic nn_tiny_in $_in(const $_operand *x, int32_t row_bytes) {\n"
                "    nn_tiny_in in = { x->at, x->rows ? x->row_bytes : row_bytes, x->rows, 0 };\n    return in;\n}\n"
                "\nstatic nn_tiny_out $_out(const $_operand *x, int32_t row_bytes) {\n"
                "    nn_tiny_out out = { x->at, x->rows ? x->row_bytes : row_bytes, x->rows, 0 };\n    return out;\n}\n");
}

// Send NAME_kernels.c.
static void tiny_put_kernels(tiny_code *c, tiny_kernels which) {
    int32_t id;
    tiny_put(c, "// $_kernels.c -- the kernels of $.h, written by tl_plan");
    put(c->w, which == TINY_KERNELS_CMSIS ? ": those of CMSIS-NN, and of nn_tiny.h what it has not.\n\n#include <arm_nnfunctions.h>\n\n" : ": those of nn_tiny.h.\n\n");
    put(c->w, tiny_has_floats(c) ? "#include \"nn_tiny_f32.h\"\n" : "#include \"nn_tiny.h\"\n");
    tiny_put(c, "\n#include \"$.h\"\n");
    tiny_put_tables(c);
    tiny_put_row_operands(c);
    if (which == TINY_KERNELS_CMSIS) {
        for (id = 0, c->scratch_bytes = 0; id < c->t->graph->node_count; id++) {
            uint64_t bytes = tiny_cmsis_scratch(c, id);
            if (!bytes && strstr(tiny_cmsis_body_of(tiny_at(c, id)), "$_scratch")) bytes = 4;     // an array that nothing is in
            if (bytes > c->scratch_bytes) c->scratch_bytes = bytes;
        }
        tiny_put(c, "\n#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)\n#error \"this glue is for processors without MVE\"\n#endif\n"
                    "#ifndef %_FAILED       // what happens where a function of CMSIS-NN refuses its parameters\n#define %_FAILED(node) ((void)(node))\n"
                    "#endif\n");
        c->scratch_bytes = (c->scratch_bytes + 3) / 4 * 4;
        if (c->scratch_bytes) put(c->w, "\nstatic int32_t %s_scratch[%llu];\n", c->name, (ull)(c->scratch_bytes / 4));
    }
    for (id = 0; id < c->t->graph->node_count; id++) {
        tiny_kernel k;
        if (c->t->graph->nodes[id].is_input) continue;
        k = tiny_kernel_of(c, id);
        if (k.node != id) continue;
        if (which == TINY_KERNELS_CMSIS) tiny_put_cmsis_kernel(c, &k);
        else tiny_put_own_kernel(c, &k);
    }
}

#endif
