// Tests of examples/ranges.h: what a text says, a sentence for each damage, numbers beside strtof, and random damage within exact
// blocks.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "ranges.h"

enum { ROOM = 4096, ROWS = 6 };

// Of the caller, as small as the sample needs.
typedef struct rows {
    rg_tensor tensors[ROWS];
    rg_node   nodes[ROWS];
    rg_ranges ranges;
    char      sentence[RG_SENTENCE];
} rows;

// In a block of exactly these bytes, so that a sanitizer sees every byte that is read beside it. What is accepted keeps the rules.
static int read_exactly(const char *text, size_t size, rows *r) {
    char *block = (char *)malloc(size ? size : 1);
    int32_t i, k;
    int result;
    assert_non_null(block);
    memcpy(block, text, size);
    memset(r, 0, sizeof *r);
    r->ranges.tensors = r->tensors;
    r->ranges.nodes = r->nodes;
    r->ranges.tensor_capacity = r->ranges.node_capacity = ROWS;
    result = rg_read(block, size, &r->ranges, r->sentence);
    assert_int_equal(result, *r->sentence ? -1 : 0);
    assert_true(strlen(r->sentence) < RG_SENTENCE);
    if (result) assert_int_equal(r->ranges.tensor_count + r->ranges.node_count, 0);
    for (i = 0; i < r->ranges.tensor_count; i++) {
        const rg_tensor *t = &r->tensors[i];
        assert_true(t->name > block && t->name + t->name_bytes < block + size && t->name_bytes > 0 && t->name_bytes <= RG_MOST_NAME);
        assert_true(t->axis_count == 1 || t->axis_count == 3);
        assert_true(t->shape[0] > 0 && t->shape[1] > 0 && t->shape[2] > 0 && (int64_t)t->shape[0] * t->shape[1] <= INT32_MAX);
        assert_true((int64_t)t->shape[0] * t->shape[1] * t->shape[2] <= INT32_MAX);
        assert_true(t->low - t->low == 0 && t->high - t->high == 0 && t->low <= t->high);
        assert_true(!t->has_scale || (t->scale >= 1.17549435e-38f && t->scale - t->scale == 0));
        assert_true(t->zero >= -128 && t->zero <= 127 && t->line > 0);
    }
    for (i = 0; i < r->ranges.node_count; i++) {
        const rg_node *n = &r->nodes[i];
        assert_true(n->name > block && n->name + n->name_bytes < block + size);
        assert_true((int)n->act < RG_ACT_COUNT && n->axis >= 0 && n->axis <= 2 && n->multiplier > 0);
        for (k = 0; k < 2; k++) assert_true(n->kernel[k] > 0 && n->stride[k] > 0 && n->dilation[k] > 0);
        for (k = 0; k < 4; k++) assert_true(n->pad[k] >= 0 && n->pad[k] <= 65535);
    }
    free(block);
    return result;
}

static const char sample[] =
    "# of an importer\n"
    "ranges 1\n"
    "model 0123456789abcdef\r\n"
    "\n"
    "tensor input shape=49x10x1 low=-1.5 high=2.25   # features\n"
    "tensor conv shape=25x5x64 high=3.5e0 low=-0.0 zero=-128 scale=0.0137254902\n"
    "tensor fc shape=12\n"
    "node conv kernel=10x4 stride=2x2 pad=4,1,5,1 act=relu\n"
    "node dw kernel=3x5 dilation=2x1 multiplier=2 pad=4,0,4,4\n"
    "\tnode join axis=0 act=none\n"
    "end 6";

static void a_text_is_read(void **state) {
    rows r;
    const rg_tensor *t;
    const rg_node *n;
    (void)state;
    memset(&r, 0, sizeof r);
    r.ranges.tensors = r.tensors;
    r.ranges.nodes = r.nodes;
    r.ranges.tensor_capacity = r.ranges.node_capacity = ROWS;
    if (rg_read(sample, sizeof sample - 1, &r.ranges, r.sentence)) fail_msg("%s", r.sentence);
    assert_int_equal(r.ranges.tensor_count, 3);
    assert_int_equal(r.ranges.node_count, 3);
    assert_true(r.ranges.model == UINT64_C(0x0123456789abcdef));
    t = rg_find_tensor(&r.ranges, "input");
    assert_true(t == &r.tensors[0] && t->axis_count == 3 && t->shape[0] == 49 && t->shape[1] == 10 && t->shape[2] == 1 && t->line == 5);
    assert_true(t->has_range && !t->has_scale && t->low == -1.5f && t->high == 2.25f);
    t = rg_find_tensor(&r.ranges, "conv");
    assert_true(t->has_range && t->has_scale && t->low == 0 && t->high == 3.5f && t->zero == -128 && t->scale == 0.0137254902f);
    t = rg_find_tensor(&r.ranges, "fc");
    assert_true(t->axis_count == 1 && t->shape[0] == 1 && t->shape[1] == 1 && t->shape[2] == 12 && !t->has_range && !t->has_scale);
    n = rg_find_node(&r.ranges, "conv");
    assert_true(n->kernel[0] == 10 && n->kernel[1] == 4 && n->stride[0] == 2 && n->stride[1] == 2 && n->dilation[0] == 1 && n->act == RG_ACT_RELU);
    assert_true(n->pad[0] == 4 && n->pad[1] == 1 && n->pad[2] == 5 && n->pad[3] == 1 && n->multiplier == 1 && n->axis == 2 && n->line == 8);
    n = rg_find_node(&r.ranges, "dw");
    assert_true(n->dilation[0] == 2 && n->dilation[1] == 1 && n->multiplier == 2 && n->stride[1] == 1 && n->act == RG_ACT_NONE);
    n = rg_find_node(&r.ranges, "join");
    assert_true(n->axis == 0 && n->kernel[0] == 1);
    assert_null(rg_find_tensor(&r.ranges, "con"));
    assert_null(rg_find_tensor(&r.ranges, "convs"));
    assert_null(rg_find_node(&r.ranges, "input"));
}

#define HEAD "ranges 1\nmodel 0123456789abcdef\n"

static void each_damage_has_a_sentence(void **state) {
    static const struct { const char *text, *sentence; } cases[] = {
        { "", "ranges: line 1: the text does not begin with: ranges 1" },
        { "\n\nrange 1\n", "ranges: line 3: the text does not begin with: ranges 1" },
        { "ranges 2\n", "line 1: the version must be 1" },
        { "ranges\n1", "line 1: the version must be 1" },
        { "ranges 1 2\n", "line 1: something follows the line" },
        { "ranges 1\n", "line 2: the line of the model is missing" },
        { "ranges 1\nmodel 123\n", "line 2: model: must be 16 hexadecimal digits" },
        { "ranges 1\nmodel 0123456789ABCDEF\n", "line 2: model: must be 16 hexadecimal digits" },
        { "ranges 1\nmodel 0123456789abcdef0\n", "line 2: model: must be 16 hexadecimal digits" },
        { HEAD "end", "line 3: end: is not the number of lines" },
        { HEAD "end 1", "line 3: end: is not the number of lines" },
        { HEAD "tensor a shape=1\nend 01", "line 4: end: is not the number of lines" },
        { HEAD "end 0\nend 0", "line 4: something follows the end" },
        { HEAD "end 0 0", "line 3: something follows the line" },
        { HEAD "tensor a shape=1\n", "line 4: the line of the end is missing" },
        { HEAD "tensors a\n", "line 3: must begin with tensor, node or end" },
        { HEAD "tensor", "line 3: the name is missing" },
        { HEAD "tensor # a", "line 3: the name is missing" },
        { HEAD "tensor shape=1", "line 3: the name holds a control character, # or =" },
        { HEAD "tensor a\x01 shape=1", "the name holds a control character, # or =" },
        { HEAD "tensor a#b shape=1", "the name holds a control character, # or =" },
        { HEAD "tensor a", "line 3: shape: is missing" },
        { HEAD "tensor a shape", "line 3: a word is no key=value" },
        { HEAD "tensor a size=1", "line 3: a key is not known" },
        { HEAD "tensor a =1", "line 3: a key is not known" },
        { HEAD "tensor a shape=1 shape=1", "line 3: shape: is given twice" },
        { HEAD "tensor a shape=", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=0", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=3x4", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=3x4x5x6", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=3x0x5", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=-3", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=03", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=2147483648", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=1073741824x1073741824x16", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=65536x65536x1", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=1024x1024x2048", "line 3: shape: must be C or HxWxC" },
        { HEAD "tensor a shape=1 low=nan high=1", "line 3: low: must be a finite number" },
        { HEAD "tensor a shape=1 low=0 high=inf", "line 3: high: must be a finite number" },
        { HEAD "tensor a shape=1 low=0 high=1e39", "line 3: high: must be a finite number" },
        { HEAD "tensor a shape=1 low=0 high=1e999999", "line 3: high: must be a finite number" },
        { HEAD "tensor a shape=1 low=0 high=1..2", "line 3: high: must be a finite number" },
        { HEAD "tensor a shape=1 low=- high=1", "line 3: low: must be a finite number" },
        { HEAD "tensor a shape=1 low=. high=1", "line 3: low: must be a finite number" },
        { HEAD "tensor a shape=1 low=1e high=1", "line 3: low: must be a finite number" },
        { HEAD "tensor a shape=1 low=0x1p3 high=1", "line 3: low: must be a finite number" },
        { HEAD "tensor a shape=1 low=1,5 high=2", "line 3: low: must be a finite number" },
        { HEAD "tensor a shape=1 low=2 high=1", "line 3: low: is above high" },
        { HEAD "tensor a shape=1 high=1", "line 3: low and high: one is missing" },
        { HEAD "tensor a shape=1 scale=1", "line 3: scale and zero: one is missing" },
        { HEAD "tensor a shape=1 zero=1", "line 3: scale and zero: one is missing" },
        { HEAD "tensor a shape=1 scale=0 zero=0", "line 3: scale: must be a finite number > 0" },
        { HEAD "tensor a shape=1 scale=-1 zero=0", "line 3: scale: must be a finite number > 0" },
        { HEAD "tensor a shape=1 scale=1e-39 zero=0", "line 3: scale: must be a finite number > 0" },
        { HEAD "tensor a shape=1 scale=1 zero=128", "line 3: zero: must be a whole number -128 .. 127" },
        { HEAD "tensor a shape=1 scale=1 zero=-129", "line 3: zero: must be a whole number -128 .. 127" },
        { HEAD "tensor a shape=1 scale=1 zero=--1", "line 3: zero: must be a whole number -128 .. 127" },
        { HEAD "tensor a shape=1 scale=1 zero=1.5", "line 3: zero: must be a whole number -128 .. 127" },
        { HEAD "tensor a shape=1\ntensor b shape=1\n#\ntensor a shape=1", "line 6: the name is that of a tensor above" },
        { HEAD "node a\nnode a", "line 4: the name is that of a node above" },
        { HEAD "node a kernel=3", "line 3: kernel: must be two whole numbers" },
        { HEAD "node a kernel=0x3", "line 3: kernel: must be two whole numbers" },
        { HEAD "node a stride=1x65536", "line 3: stride: must be two whole numbers" },
        { HEAD "node a dilation=1x1x1", "line 3: dilation: must be two whole numbers" },
        { HEAD "node a pad=1,1,1", "line 3: pad: must be four whole numbers" },
        { HEAD "node a kernel=3x3 pad=1,1,1,-1", "line 3: pad: must be four whole numbers" },
        { HEAD "node a pad=0,0,0,65536", "line 3: pad: must be four whole numbers" },
        { HEAD "node a act=gelu", "line 3: act: must be none, relu or relu6" },
        { HEAD "node a act=relu66", "line 3: act: must be none, relu or relu6" },
        { HEAD "node a axis=3", "line 3: axis: must be 0, 1 or 2" },
        { HEAD "node a multiplier=0", "line 3: multiplier: must be a whole number 1 .. 65535" },
        { HEAD "node a\nnode b\nnode c\nnode d\nnode e\nnode f\nnode g\nend 7", "line 9: there are more nodes than there is room for" },
        { HEAD "tensor a shape=1\ntensor b shape=1\ntensor c shape=1\ntensor d shape=1\ntensor e shape=1\ntensor f shape=1\ntensor g shape=1\n",
          "line 9: there are more tensors than there is room for" },
    };
    char text[ROOM];
    rows r;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_exactly(cases[i].text, strlen(cases[i].text), &r), -1);
        if (!strstr(r.sentence, cases[i].sentence)) fail_msg("%s: %s", cases[i].text, r.sentence);
    }
    for (i = 0; i < sizeof sample - 1; i++) assert_int_equal(read_exactly(sample, i, &r), -1);     // no part is a text
    assert_int_equal(read_exactly(HEAD "end 0\n \n# nothing", strlen(HEAD "end 0\n \n# nothing"), &r), 0);
    memset(text, 'n', sizeof text);         // names of 255 and 256 bytes
    memcpy(text, HEAD "node ", strlen(HEAD "node "));
    memcpy(text + strlen(HEAD "node ") + 255, "\nend 1", 6);
    assert_int_equal(read_exactly(text, strlen(HEAD "node ") + 261, &r), 0);
    memcpy(text + strlen(HEAD "node ") + 255, "n\nend 1", 7);
    assert_int_equal(read_exactly(text, strlen(HEAD "node ") + 262, &r), -1);
    assert_string_equal(r.sentence, "ranges: line 3: the name has more than 255 bytes");
}

// Numbers as %.9g writes them are the same bits again; others are as near as strtof's, or one step beside.
static void numbers_are_those_of_strtof(void **state) {
    static const char *const odd[] = { "0", "-0", "5", "1.", ".5", "1e-45", "1.4e-45", "3.4028234e38", "1E+2", "000.1000e00",
                                       "123456789012345678901234567890", "0.000000000000000000000000000000000000000123456789",
                                       "1e-400", "0e999", "14700000174343586e-18" };
    tl_random random = { 77 };
    long i, rounds = scaled(50000);
    float read, other;
    uint32_t bits;
    char text[64];
    rg_word word;
    (void)state;
    for (i = 0; i < (long)(sizeof odd / sizeof *odd); i++) {
        word.at = odd[i];
        word.end = odd[i] + strlen(odd[i]);
        if (!rg_read_real(word, &read)) fail_msg("%s", odd[i]);
        other = strtof(odd[i], NULL);
        if (memcmp(&read, &other, sizeof read) != 0) fail_msg("%s: %.9g", odd[i], (double)read);
    }
    for (i = 0; i < rounds; i++) {
        bits = (uint32_t)tl_next_random_below(&random, UINT64_C(1) << 32);
        memcpy(&other, &bits, sizeof bits);
        if (other - other != 0) continue;
        snprintf(text, sizeof text, i % 2 ? "%.9g" : "%.17g", (double)other);
        word.at = text;
        word.end = text + strlen(text);
        if (!rg_read_real(word, &read) || memcmp(&read, &other, sizeof read) != 0) fail_msg("%s: %.9g", text, (double)read);
    }
}

// The hash is that of the bytes, computed here in one go.
static void a_text_is_of_one_model(void **state) {
    static const char bytes[] = "input input 1960\nconv conv2d 32000\nfc linear 0\n";
    uint64_t model = RG_MODEL, other = UINT64_C(0xcbf29ce484222325);
    char sentence[RG_SENTENCE];
    rg_ranges ranges;
    const char *c;
    (void)state;
    for (c = bytes; *c; c++) other = (other ^ (uint64_t)(unsigned char)*c) * (((uint64_t)1 << 40) + 0x1b3);
    model = rg_add_to_model(model, "input", "input", 1960);
    model = rg_add_to_model(model, "conv", "conv2d", 32000);
    model = rg_add_to_model(model, "fc", "linear", 0);
    assert_true(model == other);
    assert_true(rg_add_text(RG_MODEL, "foobar", 6) == UINT64_C(0x85944171f73967e8));     // of the page of the hash's authors
    memset(&ranges, 0, sizeof ranges);
    ranges.model = model;
    assert_int_equal(rg_check_model(&ranges, model, sentence), 0);
    assert_string_equal(sentence, "");
    assert_int_equal(rg_check_model(&ranges, UINT64_C(0x00ff), sentence), -1);
    assert_string_equal(sentence, "ranges: model: is that of another graph; this one's is 00000000000000ff");
}

// Bytes changed, taken out, put in, repeated, lines swapped: nothing beside the text is read, and what is accepted keeps the rules.
static void random_damage_is_survived(void **state) {
    static const char parts[] = "0123456789 \n#=x,.-e abcdef tensor node end ranges model shape low high scale zero kernel stride pad relu6";
    tl_random random = { 4243 };
    long accepted = 0, round, rounds = scaled(100000);
    (void)state;
    for (round = 0; round < rounds; round++) {
        char text[2 * sizeof sample];
        size_t size = sizeof sample - 1, at, some;
        int changes = 1 + (int)tl_next_random_below(&random, 3);
        rows r;
        memcpy(text, sample, size);
        while (changes-- > 0 && size > 40 && size < sizeof text - 20) {
            at = (size_t)tl_next_random_below(&random, size);
            some = 1 + (size_t)tl_next_random_below(&random, 12);
            if (some > size - at) some = size - at;
            switch (tl_next_random_below(&random, 5)) {
            case 0: text[at] = (char)tl_next_random_below(&random, 256); break;
            case 1: text[at] = parts[tl_next_random_below(&random, sizeof parts - 1)]; break;
            case 2: size = round % 7 ? size : at; break;
            case 3:
                memmove(text + at + some, text + at, size - at);
                size += some;
                break;
            default:
                memmove(text + at, text + at + some, size - at - some);
                size -= some;
            }
        }
        accepted += !read_exactly(text, size, &r);
    }
    print_message("%ld of %ld damaged texts are still texts\n", accepted, rounds);
    assert_true(accepted > rounds / 50 && accepted < rounds * 2 / 3);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_read),
        cmocka_unit_test(each_damage_has_a_sentence),
        cmocka_unit_test(numbers_are_those_of_strtof),
        cmocka_unit_test(a_text_is_of_one_model),
        cmocka_unit_test(random_damage_is_survived),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("ranges", tests, NULL, NULL);
}
