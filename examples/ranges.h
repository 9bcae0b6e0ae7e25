/* ranges.h - geometry and value ranges of a network from a .ranges text in memory, for the examples

   Plain C99 that is also C++11, no allocation, no I/O, no state. A text is

       ranges 1
       model 0123456789abcdef
       tensor mfcc shape=49x10x1 low=-1.5 high=2.25                # a graph input, or output 0 of a node
       tensor conv1 shape=25x5x64 low=0 high=3.5 scale=0.0137 zero=-128
       node conv1 kernel=10x4 stride=2x2 pad=4,1,5,1 act=relu
       end 3                                                       # lines of tensors and nodes

   Nothing of it is trusted. Every value is checked before it is used, and whatever is wrong is one
   sentence with the line. Numbers are read here, so that no locale changes them.

       rg_tensor tensors[64];
       rg_node nodes[64];
       rg_ranges ranges = { tensors, 64, 0, nodes, 64, 0, 0 };
       char sentence[RG_SENTENCE];
       if (rg_read(text, size, &ranges, sentence)) return puts(sentence), 1;
       for (i = 0, model = RG_MODEL; i < count; i++) model = rg_add_to_model(model, names[i], ops[i], bytes[i]);
       if (rg_check_model(&ranges, model, sentence)) return puts(sentence), 1;

   LIMITS      RG_MOST lines of tensors, and as many of nodes. A name is 1 to 255 bytes without spaces,
               control characters and #.
   TIME        O(bytes + tensors x tensors + nodes x nodes)
*/
#ifndef RANGES_H
#define RANGES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RG_MOST = 4096, RG_MOST_NAME = 255, RG_SENTENCE = 160 };

// id, name in the text
#define RG_ACTS(X) X(RG_ACT_NONE, "none") X(RG_ACT_RELU, "relu") X(RG_ACT_RELU6, "relu6")

#define RG_ENUM(id, name) id,
typedef enum rg_act { RG_ACTS(RG_ENUM) RG_ACT_COUNT } rg_act;
#undef RG_ENUM

typedef struct rg_tensor {
    const char *name;          // in the text, no 0 behind it
    uint32_t    name_bytes;
    int32_t     line;          // in the text, from 1
    int32_t     axis_count;    // 1 = channels alone, or 3
    int32_t     shape[3];      // height, width, channels; 1, 1 in front of channels alone
    int         has_range, has_scale;   // 1 = low and high, scale and zero are known
    float       low, high;     // what was measured, low <= high
    float       scale;         // what the model itself has: > 0, no subnormal
    int32_t     zero;          // -128 .. 127
} rg_tensor;

typedef struct rg_node {
    const char *name;
    uint32_t    name_bytes;
    int32_t     line;
    int32_t     kernel[2], stride[2], dilation[2];  // rows, columns; 1 where the text says nothing
    int32_t     pad[4];        // top, left, bottom, right: 0 .. 65535
    rg_act      act;           // what is applied to the result
    int32_t     axis;          // of a concatenation: 0 = rows, 1 = columns, 2 = channels
    int32_t     multiplier;    // of a depthwise convolution: outputs a channel
} rg_node;

typedef struct rg_ranges {
    rg_tensor *tensors;        // [tensor_capacity] of the caller
    int32_t    tensor_capacity, tensor_count;
    rg_node   *nodes;          // [node_capacity]
    int32_t    node_capacity, node_count;
    uint64_t   model;          // of which the text is, see rg_add_to_model
} rg_ranges;

typedef struct rg_word { const char *at, *end; } rg_word;

typedef struct rg_reader {
    const char *at, *end;      // what is left of the text
    int32_t     line;
    const char *key;           // whose value is wrong; NULL = none's
    const char *why;           // what is wrong; NULL = nothing so far
} rg_reader;

static int rg_fail(rg_reader *r, const char *key, const char *why) {
    if (!r->why) {
        r->key = key;
        r->why = why;
    }
    return 0;
}

static int rg_is(rg_word word, const char *text) {
    size_t bytes = strlen(text);
    return (size_t)(word.end - word.at) == bytes && memcmp(word.at, text, bytes) == 0;
}

// -- numbers --

// Take digits from the front of a word: whole numbers up to `most`.
static int rg_take_number(rg_word *word, int32_t most, int32_t *number) {
    const char *first = word->at;
    int64_t value = 0;
    for (; word->at < word->end && *word->at >= '0' && *word->at <= '9' && value <= most; word->at++)
        value = value * 10 + (*word->at - '0');
    *number = (int32_t)(value <= most ? value : 0);
    return word->at > first && value <= most && (*first != '0' || word->at - first == 1);
}

// Take a character from the front of a word, if it is there.
static int rg_take(rg_word *word, char what) {
    if (word->at == word->end || *word->at != what) return 0;
    word->at++;
    return 1;
}

// `count` numbers of at most `most` with a character between them, and nothing behind.
static int rg_read_numbers(rg_word word, char between, int32_t most, int32_t *numbers, int32_t count) {
    int32_t k;
    for (k = 0; k < count; k++)
        if ((k && !rg_take(&word, between)) || !rg_take_number(&word, most, &numbers[k])) return 0;
    return word.at == word.end;
}

// x 10^exponent. Powers up to 10^22 are exact, so are their products with x but for one rounding; what
// is written with 9 digits or more comes back as the same f32.
static double rg_scale_decimal(double x, int32_t exponent) {
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    for (; exponent > 22; exponent -= 22) x *= 1e22;
    for (; exponent < -22; exponent += 22) x /= 1e22;
    return exponent < 0 ? x / powers[-exponent] : x * powers[exponent];
}

// -12.5e-3: digits with a point among them or not. More than 19 of them are cut.
static int rg_read_real(rg_word word, float *real) {
    const double most = 3.4028234663852886e38;
    int negative = rg_take(&word, '-'), digits = 0, behind = 0;
    int32_t exponent = 0, shift = 0, sign;
    uint64_t value = 0;
    double x;
    for (; word.at < word.end && (*word.at == '.' ? !behind : *word.at >= '0' && *word.at <= '9'); word.at++) {
        if (*word.at == '.') {
            behind = 1;
            continue;
        }
        digits++;
        if (value < UINT64_MAX / 10 - 1) value = value * 10 + (uint64_t)(*word.at - '0');
        else shift++;
        shift -= behind;
    }
    if (!digits) return 0;
    if (rg_take(&word, 'e') || rg_take(&word, 'E')) {
        sign = rg_take(&word, '-') ? -1 : 1;
        if (sign > 0) (void)rg_take(&word, '+');
        while (word.end - word.at > 1 && *word.at == '0') word.at++;
        if (!rg_take_number(&word, 999, &exponent)) return 0;
        exponent *= sign;
    }
    if (word.at != word.end || shift > 999 || shift < -999) return 0;
    exponent += shift;
    x = exponent > 60 && value ? 2 * most : exponent < -90 ? 0.0 : rg_scale_decimal((double)value, exponent);
    if (x > most) return 0;
    *real = (float)(negative ? -x : x);
    return 1;
}

// -- lines --

// Take the next word of the line; an empty one at its end. A comment ends it.
static rg_word rg_next_word(rg_reader *r) {
    rg_word word;
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
    if (r->at < r->end && *r->at == '#')
        while (r->at < r->end && *r->at != '\n') r->at++;
    word.at = r->at;
    while (r->at < r->end && *r->at != ' ' && *r->at != '\t' && *r->at != '\r' && *r->at != '\n') r->at++;
    word.end = r->at;
    return word;
}

// Take the first word of the next line that has one; an empty one at the end of the text.
static rg_word rg_next_line(rg_reader *r) {
    rg_word word = rg_next_word(r);
    while (word.at == word.end && r->at < r->end) {
        r->at++;
        r->line++;
        word = rg_next_word(r);
    }
    return word;
}

static int rg_end_line(rg_reader *r) {
    rg_word word = rg_next_word(r);
    return word.at == word.end || rg_fail(r, NULL, "something follows the line");
}

static int rg_read_name(rg_reader *r, const char **name, uint32_t *bytes) {
    rg_word word = rg_next_word(r);
    const char *at;
    if (word.at == word.end) return rg_fail(r, NULL, "the name is missing");
    if (word.end - word.at > RG_MOST_NAME) return rg_fail(r, NULL, "the name has more than 255 bytes");
    for (at = word.at; at < word.end; at++)
        if ((unsigned char)*at < 32 || *at == 127 || *at == '#' || *at == '=')
            return rg_fail(r, NULL, "the name holds a control character, # or =");
    *name = word.at;
    *bytes = (uint32_t)(word.end - word.at);
    return 1;
}

// Take the next key=value, and find the key among some; *at is its number, -1 at the end of the line.
static int rg_read_key(rg_reader *r, const char *const *keys, int32_t count, uint32_t *seen, int32_t *at, rg_word *value) {
    rg_word word = rg_next_word(r), key = word;
    *at = -1;
    if (word.at == word.end) return 1;
    while (key.at < word.end && *key.at != '=') key.at++;
    if (key.at == word.end) return rg_fail(r, NULL, "a word is no key=value");
    value->at = key.at + 1;
    value->end = word.end;
    key.end = key.at;
    key.at = word.at;
    for (*at = 0; *at < count && !rg_is(key, keys[*at]);) ++*at;
    if (*at == count) return rg_fail(r, NULL, "a key is not known");
    if (*seen >> *at & 1) return rg_fail(r, keys[*at], "is given twice");
    *seen |= UINT32_C(1) << *at;
    return 1;
}

// -- tensors --

static int rg_read_shape(rg_word word, rg_tensor *t) {
    int64_t elements;
    t->shape[0] = t->shape[1] = 1;
    t->axis_count = rg_read_numbers(word, 'x', INT32_MAX, t->shape + 2, 1) ? 1 : 3;
    if (t->axis_count == 3 && !rg_read_numbers(word, 'x', INT32_MAX, t->shape, 3)) return 0;
    if (!t->shape[0] || !t->shape[1] || !t->shape[2]) return 0;
    elements = (int64_t)t->shape[0] * t->shape[1];
    return elements <= INT32_MAX && elements * t->shape[2] <= INT32_MAX;
}

static int rg_read_zero(rg_word word, int32_t *zero) {
    int negative = rg_take(&word, '-');
    if (!rg_read_numbers(word, ' ', negative ? 128 : 127, zero, 1)) return 0;
    if (negative) *zero = -*zero;
    return 1;
}

static int rg_read_tensor(rg_reader *r, rg_tensor *t) {
    enum { SHAPE, LOW, HIGH, SCALE, ZERO, COUNT };
    static const char *const keys[] = { "shape", "low", "high", "scale", "zero" };
    uint32_t seen = 0;
    int32_t key;
    rg_word value;
    for (;;) {
        if (!rg_read_key(r, keys, COUNT, &seen, &key, &value)) return 0;
        if (key < 0) break;
        if (key == SHAPE && !rg_read_shape(value, t))
            return rg_fail(r, keys[key], "must be C or HxWxC, whole numbers > 0 of a product below 2^31");
        if ((key == LOW && !rg_read_real(value, &t->low)) || (key == HIGH && !rg_read_real(value, &t->high)))
            return rg_fail(r, keys[key], "must be a finite number of 32 bits");
        if (key == SCALE && (!rg_read_real(value, &t->scale) || t->scale < 1.17549435e-38f))
            return rg_fail(r, keys[key], "must be a finite number > 0 of 32 bits, and no subnormal one");
        if (key == ZERO && !rg_read_zero(value, &t->zero)) return rg_fail(r, keys[key], "must be a whole number -128 .. 127");
    }
    if (!(seen >> SHAPE & 1)) return rg_fail(r, keys[SHAPE], "is missing");
    if ((seen >> LOW & 1) != (seen >> HIGH & 1)) return rg_fail(r, NULL, "low and high: one is missing");
    if ((seen >> SCALE & 1) != (seen >> ZERO & 1)) return rg_fail(r, NULL, "scale and zero: one is missing");
    if (t->low > t->high) return rg_fail(r, NULL, "low: is above high");
    t->has_range = (int)(seen >> LOW & 1);
    t->has_scale = (int)(seen >> SCALE & 1);
    return 1;
}

// -- nodes --

static int rg_read_act(rg_word word, rg_act *act) {
#define RG_NAME(id, name) name,
    static const char *const names[] = { RG_ACTS(RG_NAME) };
#undef RG_NAME
    int k;
    for (k = 0; k < RG_ACT_COUNT; k++)
        if (rg_is(word, names[k])) {
            *act = (rg_act)k;
            return 1;
        }
    return 0;
}

// Read a pair such as 3x3; both > 0.
static int rg_read_pair(rg_word value, int32_t *pair) {
    return rg_read_numbers(value, 'x', 65535, pair, 2) && pair[0] && pair[1];
}

static int rg_read_node(rg_reader *r, rg_node *n) {
    enum { KERNEL, STRIDE, DILATION, PAD, ACT, AXIS, MULTIPLIER, COUNT };
    static const char *const keys[] = { "kernel", "stride", "dilation", "pad", "act", "axis", "multiplier" };
    uint32_t seen = 0;
    int32_t key, k;
    rg_word value;
    int ok;
    for (k = 0; k < 2; k++) n->kernel[k] = n->stride[k] = n->dilation[k] = 1;
    n->multiplier = 1;
    n->axis = 2;
    for (;;) {
        if (!rg_read_key(r, keys, COUNT, &seen, &key, &value)) return 0;
        if (key < 0) break;
        if (key <= DILATION) {
            ok = rg_read_pair(value, key == KERNEL ? n->kernel : key == STRIDE ? n->stride : n->dilation);
            if (!ok) return rg_fail(r, keys[key], "must be two whole numbers 1 .. 65535, as 3x3");
        }
        if (key == PAD && !rg_read_numbers(value, ',', 65535, n->pad, 4))
            return rg_fail(r, keys[key], "must be four whole numbers up to 65535: top,left,bottom,right");
        if (key == ACT && !rg_read_act(value, &n->act)) return rg_fail(r, keys[key], "must be none, relu or relu6");
        if (key == AXIS && !rg_read_numbers(value, ' ', 2, &n->axis, 1)) return rg_fail(r, keys[key], "must be 0, 1 or 2");
        if (key == MULTIPLIER && (!rg_read_numbers(value, ' ', 65535, &n->multiplier, 1) || !n->multiplier))
            return rg_fail(r, keys[key], "must be a whole number 1 .. 65535");
    }
    return 1;
}

// -- the text --

static int rg_is_same(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes) {
    return a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0;
}

static int rg_add_tensor(rg_reader *r, rg_ranges *ranges) {
    rg_tensor *t = &ranges->tensors[ranges->tensor_count], *other;
    if (ranges->tensor_count == ranges->tensor_capacity || ranges->tensor_count == RG_MOST)
        return rg_fail(r, NULL, "there are more tensors than there is room for");
    memset(t, 0, sizeof *t);
    t->line = r->line;
    if (!rg_read_name(r, &t->name, &t->name_bytes) || !rg_read_tensor(r, t)) return 0;
    for (other = ranges->tensors; other < t; other++)
        if (rg_is_same(t->name, t->name_bytes, other->name, other->name_bytes))
            return rg_fail(r, NULL, "the name is that of a tensor above");
    ranges->tensor_count++;
    return 1;
}

static int rg_add_node(rg_reader *r, rg_ranges *ranges) {
    rg_node *n = &ranges->nodes[ranges->node_count], *other;
    if (ranges->node_count == ranges->node_capacity || ranges->node_count == RG_MOST)
        return rg_fail(r, NULL, "there are more nodes than there is room for");
    memset(n, 0, sizeof *n);
    n->line = r->line;
    if (!rg_read_name(r, &n->name, &n->name_bytes) || !rg_read_node(r, n)) return 0;
    for (other = ranges->nodes; other < n; other++)
        if (rg_is_same(n->name, n->name_bytes, other->name, other->name_bytes))
            return rg_fail(r, NULL, "the name is that of a node above");
    ranges->node_count++;
    return 1;
}

// "ranges 1" and "model 0123456789abcdef".
static int rg_read_head(rg_reader *r, uint64_t *model) {
    rg_word word = rg_next_line(r);
    int32_t version;
    if (!rg_is(word, "ranges")) return rg_fail(r, NULL, "the text does not begin with: ranges 1");
    if (!rg_read_numbers(rg_next_word(r), ' ', 9999, &version, 1) || version != 1)
        return rg_fail(r, NULL, "the version must be 1");
    if (!rg_end_line(r)) return 0;
    if (!rg_is(rg_next_line(r), "model")) return rg_fail(r, NULL, "the line of the model is missing");
    word = rg_next_word(r);
    if (word.end - word.at != 16) return rg_fail(r, "model", "must be 16 hexadecimal digits");
    for (*model = 0; word.at < word.end; word.at++) {
        char c = *word.at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return rg_fail(r, "model", "must be 16 hexadecimal digits");
        *model = *model << 4 | (uint64_t)digit;
    }
    return rg_end_line(r);
}

static int rg_read_lines(rg_reader *r, rg_ranges *ranges) {
    int32_t lines;
    int ok;
    if (!rg_read_head(r, &ranges->model)) return 0;
    for (;;) {
        rg_word word = rg_next_line(r);
        if (word.at == word.end) return rg_fail(r, NULL, "the line of the end is missing");
        if (rg_is(word, "end")) break;
        if (rg_is(word, "tensor")) ok = rg_add_tensor(r, ranges);
        else if (rg_is(word, "node")) ok = rg_add_node(r, ranges);
        else ok = rg_fail(r, NULL, "must begin with tensor, node or end");
        if (!ok) return 0;
    }
    if (!rg_read_numbers(rg_next_word(r), ' ', 2 * RG_MOST, &lines, 1) || lines != ranges->tensor_count + ranges->node_count)
        return rg_fail(r, "end", "is not the number of lines of tensors and nodes");
    if (!rg_end_line(r)) return 0;
    return rg_next_line(r).at == r->end || rg_fail(r, NULL, "something follows the end");
}

// Write "ranges: line 12: zero: must be .."; keys and reasons are shorter than the rest of the sentence.
static void rg_write_sentence(char *sentence, int32_t line, const char *key, const char *why) {
    char digits[12];
    size_t length = strlen("ranges: line ");
    int count = 0;
    memcpy(sentence, "ranges: line ", length);
    do digits[count++] = (char)('0' + line % 10);
    while ((line /= 10) != 0);
    while (count) sentence[length++] = digits[--count];
    sentence[length++] = ':';
    sentence[length++] = ' ';
    if (key) {
        memcpy(sentence + length, key, strlen(key));
        length += strlen(key);
        sentence[length++] = ':';
        sentence[length++] = ' ';
    }
    memcpy(sentence + length, why, strlen(why) + 1);
}

// Read a text.
//
//   ranges     its arrays and capacities are the caller's; filled. Names point into the text
//   sentence   what is wrong, and in which line
//
// Returns 0, or -1: the counts are 0 then.
static inline int rg_read(const char *text, size_t size, rg_ranges *ranges, char sentence[RG_SENTENCE]) {
    rg_reader r;
    r.at = text;
    r.end = text + size;
    r.line = 1;
    r.key = r.why = NULL;
    ranges->tensor_count = ranges->node_count = 0;
    ranges->model = 0;
    sentence[0] = 0;
    if (size > INT32_MAX) (void)rg_fail(&r, NULL, "the text has 2^31 bytes or more");
    else (void)rg_read_lines(&r, ranges);
    if (!r.why) return 0;
    ranges->tensor_count = ranges->node_count = 0;
    rg_write_sentence(sentence, r.line, r.key, r.why);
    return -1;
}

// The tensor, or the node, of a name; NULL = there is none.
static inline const rg_tensor *rg_find_tensor(const rg_ranges *ranges, const char *name) {
    int32_t i;
    for (i = 0; i < ranges->tensor_count; i++)
        if (rg_is_same(ranges->tensors[i].name, ranges->tensors[i].name_bytes, name, (uint32_t)strlen(name)))
            return &ranges->tensors[i];
    return NULL;
}

static inline const rg_node *rg_find_node(const rg_ranges *ranges, const char *name) {
    int32_t i;
    for (i = 0; i < ranges->node_count; i++)
        if (rg_is_same(ranges->nodes[i].name, ranges->nodes[i].name_bytes, name, (uint32_t)strlen(name)))
            return &ranges->nodes[i];
    return NULL;
}

// -- the model --
//
// A text belongs to a model: FNV-1a of 64 bits over "NAME OP BYTES\n" of each node in order, the bytes of
// output 0 as the .tlg says them. What else a line of the .tlg says may change.

#define RG_MODEL UINT64_C(14695981039346656037)     // of a model without nodes

static uint64_t rg_add_text(uint64_t model, const char *text, size_t bytes) {
    for (; bytes; bytes--, text++) model = (model ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return model;
}

static inline uint64_t rg_add_to_model(uint64_t model, const char *name, const char *op, uint64_t bytes) {
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\n';
    do digits[--at] = (char)('0' + bytes % 10);
    while ((bytes /= 10) != 0);
    digits[--at] = ' ';
    model = rg_add_text(rg_add_text(rg_add_text(model, name, strlen(name)), " ", 1), op, strlen(op));
    return rg_add_text(model, digits + at, sizeof digits - at);
}

// 0, or -1 and a sentence: the text is of another model.
static inline int rg_check_model(const rg_ranges *ranges, uint64_t model, char sentence[RG_SENTENCE]) {
    static const char head[] = "ranges: model: is that of another graph; this one's is ";
    size_t length = sizeof head - 1;
    int k;
    sentence[0] = 0;
    if (ranges->model == model) return 0;
    memcpy(sentence, head, length);
    for (k = 60; k >= 0; k -= 4) sentence[length++] = "0123456789abcdef"[model >> k & 15];
    sentence[length] = 0;
    return -1;
}

#endif
