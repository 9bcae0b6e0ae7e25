// Tests of examples/safetensors.h: what a file says, a sentence for each damage, and random damage within exact blocks.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "../examples/safetensors.h"

enum { ROOM = 8192, TENSORS = 16 };

// A file of this header and so many bytes of data, 0, 1, 2, ..; returns its bytes.
static size_t make_file(unsigned char *file, const char *header, size_t data_bytes) {
    size_t length = strlen(header), i;
    assert_true(8 + length + data_bytes <= ROOM);
    for (i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(file + 8, header, length);
    for (i = 0; i < data_bytes; i++) file[8 + length + i] = (unsigned char)i;
    return 8 + length + data_bytes;
}

// In a block of exactly these bytes, so that a sanitizer sees every byte that is read beside it.
static int read_exactly(const unsigned char *file, size_t size, st_tensor *tensors, int32_t capacity, int32_t *count, char *sentence) {
    unsigned char *block = (unsigned char *)malloc(size ? size : 1);
    uint64_t sum = 0;
    int32_t i;
    int result;
    assert_non_null(block);
    memcpy(block, file, size);
    result = st_read(block, size, tensors, capacity, count, sentence);
    assert_int_equal(result, *sentence ? -1 : 0);
    if (result) assert_int_equal(*count, 0);
    for (i = 0; i < *count; i++) {
        const st_tensor *t = &tensors[i];
        assert_true(t->data >= block && t->bytes <= size && t->data + t->bytes <= block + size);
        assert_true((const unsigned char *)t->name > block && (const unsigned char *)t->name + t->name_bytes < block + size);
        assert_true(t->axis_count >= 0 && t->axis_count <= ST_MOST_AXES && (int)t->dtype < ST_DTYPE_COUNT);
        sum += t->bytes;
    }
    assert_true(sum <= size);
    free(block);
    return result;
}

static const char sample[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"a\\\"b\":\"\\u0041\"}, \"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},\n"
    "\"scale\" : { \"data_offsets\" : [ 0 , 4 ] , \"shape\" : [ ] , \"dtype\" : \"F32\" },"
    "\"\xc3\xa9\":{\"dtype\":\"I8\",\"shape\":[5],\"data_offsets\":[28,33]},\"none\":{\"dtype\":\"BF16\",\"shape\":[0,7],\"data_offsets\":[33,33]}}   ";

static void a_file_is_read(void **state) {
    unsigned char file[ROOM];
    st_tensor tensors[TENSORS];
    char sentence[ST_SENTENCE];
    size_t size = make_file(file, sample, 33);
    const st_tensor *t;
    int32_t count;
    (void)state;
    if (st_read(file, size, tensors, TENSORS, &count, sentence)) fail_msg("%s", sentence);
    assert_int_equal(count, 4);
    t = st_find(tensors, count, "fc.weight");
    assert_true(t == &tensors[0] && t->dtype == ST_F32 && t->axis_count == 2 && t->shape[0] == 2 && t->shape[1] == 3 && t->bytes == 24 && *t->data == 4);
    t = st_find(tensors, count, "scale");
    assert_true(t && t->axis_count == 0 && t->bytes == 4 && *t->data == 0);
    t = st_find(tensors, count, "\xc3\xa9");
    assert_true(t && t->dtype == ST_I8 && t->bytes == 5 && *t->data == 28);
    assert_int_equal(st_find(tensors, count, "none")->bytes, 0);
    assert_null(st_find(tensors, count, "fc.weigh"));
    assert_null(st_find(tensors, count, "fc.weights"));
    assert_int_equal(st_read(file, size, tensors, 4, &count, sentence), 0);
    assert_int_equal(st_read(file, size, tensors, 3, &count, sentence), -1);
    assert_non_null(strstr(sentence, "more tensors than there is room for"));
    size = make_file(file, "{}", 0);
    assert_int_equal(st_read(file, size, tensors, 0, &count, sentence), 0);
}

#define ONE(dtype, shape, offsets) "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void each_damage_has_a_sentence(void **state) {
    static const struct { const char *header, *sentence; } cases[] = {
        { "", "the header is no object" },
        { "[]", "the header is no object" },
        { "{", "a string is missing" },
        { "{} x", "something follows the header" },
        { "{\"w\"}", "a colon is missing" },
        { "{\"w\":3}", "a tensor is no object" },
        { "{\"w\":{}}", "a string is missing" },
        { "{\"\":{}}", "a name must have 1 to 1024 bytes" },
        { "{\"w", "a string does not end" },
        { "{\"a\\u0041\":{}}", "a name holds an escape" },
        { "{\"a\nb\":{}}", "a string holds a control character" },
        { "{\"__metadata__\":[]}", "__metadata__ is no object" },
        { "{\"__metadata__\":{\"a\":\"b\"", "__metadata__ does not end" },
        { "{\"__metadata__\":{\"a\":\"b\\", "a string does not end" },
        { ONE("\"F31\"", "[4]", "[0,16]"), "dtype: is not known" },
        { ONE("\"F32\"", "4", "[0,16]"), "a list is missing" },
        { ONE("\"F32\"", "[4;", "[0,16]"), "a list does not end" },
        { ONE("\"F32\"", "[4,]", "[0,16]"), "a whole number is missing" },
        { ONE("\"F32\"", "[-4]", "[0,16]"), "a whole number is missing" },
        { ONE("\"F32\"", "[04]", "[0,16]"), "a number begins with 0" },
        { ONE("\"F32\"", "[4.0]", "[0,16]"), "a list does not end" },
        { ONE("\"F32\"", "[18446744073709551616]", "[0,16]"), "a number does not fit 64 bits" },
        { ONE("\"F32\"", "[4294967296,4294967296]", "[0,16]"), "shape: its bytes do not fit 64 bits" },
        { ONE("\"F32\"", "[1,1,1,1,1,1,1,1,4]", "[0,16]"), "a list has more numbers than it may have" },
        { ONE("\"F32\"", "[4]", "[0,16,16]"), "a list has more numbers than it may have" },
        { ONE("\"F32\"", "[4]", "[0]"), "data_offsets: must be two numbers" },
        { ONE("\"F32\"", "[4]", "[16,0]"), "data_offsets: are not within the data" },
        { ONE("\"F32\"", "[4]", "[8,24]"), "data_offsets: are not within the data" },
        { ONE("\"F32\"", "[4]", "[0,18446744073709551615]"), "data_offsets: are not within the data" },
        { ONE("\"F32\"", "[3]", "[0,16]"), "data_offsets: are not as many bytes as shape and dtype say" },
        { ONE("\"F64\"", "[4]", "[0,16]"), "data_offsets: are not as many bytes as shape and dtype say" },
        { ONE("\"F32\"", "[3]", "[0,12]"), "the data has bytes that are of no tensor" },
        { "{}", "the data has bytes that are of no tensor" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4]}}", "dtype, shape and data_offsets: one is missing" },
        { "{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "a key of a tensor comes twice" },
        { "{\"w\":{\"type\":\"F32\"}}", "a key of a tensor is not known" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", "two tensors have one name" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"v\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}}", "two tensors share bytes" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},}", "a string is missing" },
    };
    unsigned char file[ROOM];
    st_tensor tensors[TENSORS];
    char sentence[ST_SENTENCE];
    int32_t count;
    size_t i, size;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        size = make_file(file, cases[i].header, 16);
        assert_int_equal(read_exactly(file, size, tensors, TENSORS, &count, sentence), -1);
        if (!strstr(sentence, cases[i].sentence)) fail_msg("%s: %s", cases[i].header, sentence);
    }
    for (i = 0; i < 8; i++) {
        assert_int_equal(read_exactly(file, i, tensors, TENSORS, &count, sentence), -1);
        assert_string_equal(sentence, "safetensors: byte 0: the file has fewer than 8 bytes");
    }
    size = make_file(file, sample, 33);
    for (i = 0; i < size; i++) assert_int_equal(read_exactly(file, i, tensors, TENSORS, &count, sentence), -1);     // no part is a file
    for (i = 0; i < 8; i++) file[i] = 255;
    assert_int_equal(read_exactly(file, size, tensors, TENSORS, &count, sentence), -1);
    assert_non_null(strstr(sentence, "longer than the file"));
}

// Bytes changed, taken out, put in and repeated: nothing beside the file is read, and what is accepted lies within it.
static void random_damage_is_survived(void **state) {
    static const char parts[] = "{}[]:,\"\\0123456789 \nF32I8BOOLdtypeshapedata_offsets__metadata__";
    tl_random random = { 4242 };
    long accepted = 0, round, rounds = scaled(100000);
    (void)state;
    for (round = 0; round < rounds; round++) {
        unsigned char file[ROOM];
        st_tensor tensors[TENSORS];
        char sentence[ST_SENTENCE];
        size_t size = make_file(file, sample, 33), at;
        int32_t count;
        int changes = 1 + (int)tl_next_random_below(&random, 4);
        while (changes-- > 0) {
            size_t some = 1 + (size_t)tl_next_random_below(&random, 12);
            at = (size_t)tl_next_random_below(&random, size);
            switch (tl_next_random_below(&random, 5)) {
            case 0: file[at] = (unsigned char)tl_next_random_below(&random, 256); break;
            case 1: file[at] = (unsigned char)parts[tl_next_random_below(&random, sizeof parts - 1)]; break;
            case 2: size -= some < size - at ? some : size - at; break;
            case 3:
                if (some > size - at) some = size - at;
                memmove(file + at + some, file + at, size - at);
                size += some;
                break;
            default:
                if (some > size - at) some = size - at;
                memmove(file + at, file + at + some, size - at - some);
                size -= some;
            }
            if (size < 9) break;
        }
        if (size > 9 && round % 2) {    // a length that is right again leads on to the text
            uint64_t length = size > 8 + 33 ? size - 8 - 33 : size - 8;
            for (at = 0; at < 8; at++) file[at] = (unsigned char)(length >> 8 * at);
        }
        accepted += !read_exactly(file, size, tensors, TENSORS, &count, sentence);
    }
    print_message("%ld of %ld damaged files are still files\n", accepted, rounds);
    assert_true(accepted > rounds / 100 && accepted < rounds / 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(each_damage_has_a_sentence),
        cmocka_unit_test(random_damage_is_survived),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
