/* safetensors.h - weights from a .safetensors file that lies in memory, for the examples

   Plain C99 that is also C++11, no allocation, no I/O, no state. A file is

       8 bytes     length of the header, little endian
       header      {"fc.weight":{"dtype":"F32","shape":[10,64],"data_offsets":[0,2560]}, ..}  spaces
       data        the tensors, one behind the other without holes

   Nothing of it is trusted. Every number is checked before it is used; what is read lies within the
   file, and whatever is wrong is one sentence. So the bytes may come from anywhere, and may be in
   flash. Numbers of more than a byte are little endian, and may begin at any address: copy them.

       st_tensor tensors[64];
       char sentence[ST_SENTENCE];
       int32_t count;
       if (st_read(bytes, size, tensors, 64, &count, sentence)) return puts(sentence), 1;
       w = st_find(tensors, count, "fc.weight");        // NULL = there is none

   LIMITS      ST_MOST_TENSORS tensors of ST_MOST_AXES axes, a header of 100 000 000 bytes. A name is
               1 to 1024 bytes without escapes (\), control characters and quotes.
   TIME        O(bytes of the header + tensors x tensors)
*/
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ST_MOST_TENSORS = 4096, ST_MOST_AXES = 8, ST_MOST_NAME = 1024, ST_SENTENCE = 160 };

// id, name in the file, bytes of an element
#define ST_DTYPES(X) \
    X(ST_F64, "F64", 8) X(ST_F32, "F32", 4) X(ST_F16, "F16", 2) X(ST_BF16, "BF16", 2) \
    X(ST_I64, "I64", 8) X(ST_I32, "I32", 4) X(ST_I16, "I16", 2) X(ST_I8, "I8", 1) \
    X(ST_U64, "U64", 8) X(ST_U32, "U32", 4) X(ST_U16, "U16", 2) X(ST_U8, "U8", 1) \
    X(ST_BOOL, "BOOL", 1) X(ST_F8_E4M3, "F8_E4M3", 1) X(ST_F8_E5M2, "F8_E5M2", 1)

#define ST_ENUM(id, name, bytes) id,
typedef enum st_dtype { ST_DTYPES(ST_ENUM) ST_DTYPE_COUNT } st_dtype;
#undef ST_ENUM

typedef struct st_tensor {
    const char          *name;       // in the file, no 0 behind it
    uint32_t             name_bytes;
    st_dtype             dtype;
    int32_t              axis_count; // 0 = one number
    uint64_t             shape[ST_MOST_AXES];
    const unsigned char *data;       // in the file
    uint64_t             bytes;      // that of shape and dtype
} st_tensor;

typedef struct st_reader {
    const char *at, *end;    // what is left of the header
    const char *why;         // what is wrong; NULL = nothing so far
} st_reader;

// -- JSON: as much of it as a header has --

static int st_fail(st_reader *r, const char *why) {
    if (!r->why) r->why = why;
    return 0;
}

static void st_skip_spaces(st_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

// Take a character, if it is the next one.
static int st_take(st_reader *r, char what) {
    st_skip_spaces(r);
    if (r->at == r->end || *r->at != what) return 0;
    r->at++;
    return 1;
}

static int st_need(st_reader *r, char what, const char *why) { return st_take(r, what) || st_fail(r, why); }

// Read a string; escapes are stepped over where has_escapes, else refused.
static int st_read_string(st_reader *r, int has_escapes, const char **text, size_t *bytes) {
    if (!st_need(r, '"', "a string is missing")) return 0;
    for (*text = r->at; r->at < r->end && *r->at != '"'; r->at++) {
        if ((unsigned char)*r->at < 32) return st_fail(r, "a string holds a control character");
        if (*r->at != '\\') continue;
        if (!has_escapes) return st_fail(r, "a name holds an escape");
        if (++r->at == r->end) break;
    }
    if (r->at == r->end) return st_fail(r, "a string does not end");
    *bytes = (size_t)(r->at++ - *text);
    return 1;
}

static int st_read_number(st_reader *r, uint64_t *number) {
    const char *first;
    st_skip_spaces(r);
    for (*number = 0, first = r->at; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        uint64_t digit = (uint64_t)(*r->at - '0');
        if (*number > (UINT64_MAX - digit) / 10) return st_fail(r, "a number does not fit 64 bits");
        *number = *number * 10 + digit;
    }
    if (r->at == first) return st_fail(r, "a whole number is missing");
    return r->at - first == 1 || *first != '0' ? 1 : st_fail(r, "a number begins with 0");
}

// Read "[1,2]" of at most so many numbers.
static int st_read_numbers(st_reader *r, uint64_t *numbers, int32_t most, int32_t *count) {
    *count = 0;
    if (!st_need(r, '[', "a list is missing")) return 0;
    if (st_take(r, ']')) return 1;
    do {
        if (*count == most) return st_fail(r, "a list has more numbers than it may have");
        if (!st_read_number(r, &numbers[(*count)++])) return 0;
    } while (st_take(r, ','));
    return st_need(r, ']', "a list does not end");
}

static int st_is(const char *text, size_t bytes, const char *word) {
    return strlen(word) == bytes && memcmp(text, word, bytes) == 0;
}

// {"format":"pt"}: strings, which nobody asks for.
static int st_skip_metadata(st_reader *r) {
    const char *text;
    size_t bytes;
    if (!st_need(r, '{', "__metadata__ is no object")) return 0;
    if (st_take(r, '}')) return 1;
    do {
        if (!st_read_string(r, 1, &text, &bytes) || !st_need(r, ':', "a colon is missing") ||
            !st_read_string(r, 1, &text, &bytes)) return 0;
    } while (st_take(r, ','));
    return st_need(r, '}', "__metadata__ does not end");
}

// -- tensors --

static int st_read_dtype(st_reader *r, st_dtype *dtype) {
#define ST_NAME(id, name, bytes) name,
    static const char *const names[] = { ST_DTYPES(ST_NAME) };
#undef ST_NAME
    const char *text;
    size_t bytes;
    int k;
    if (!st_read_string(r, 0, &text, &bytes)) return 0;
    for (k = 0; k < ST_DTYPE_COUNT; k++)
        if (st_is(text, bytes, names[k])) {
            *dtype = (st_dtype)k;
            return 1;
        }
    return st_fail(r, "dtype: is not known");
}

// Whether shape, dtype and offsets agree, and lie in the data.
static int st_place(st_reader *r, st_tensor *t, const uint64_t *offsets, const unsigned char *data, uint64_t data_bytes) {
#define ST_BYTES(id, name, bytes) bytes,
    static const uint8_t sizes[] = { ST_DTYPES(ST_BYTES) };
#undef ST_BYTES
    int32_t k;
    for (k = 0, t->bytes = sizes[t->dtype]; k < t->axis_count; k++) {
        if (t->shape[k] && t->bytes > UINT64_MAX / t->shape[k]) return st_fail(r, "shape: its bytes do not fit 64 bits");
        t->bytes *= t->shape[k];
    }
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes) return st_fail(r, "data_offsets: are not within the data");
    if (offsets[1] - offsets[0] != t->bytes) return st_fail(r, "data_offsets: are not as many bytes as shape and dtype say");
    t->data = data + offsets[0];
    return 1;
}

// Read {"dtype":..,"shape":..,"data_offsets":..}, in any order.
static int st_read_tensor(st_reader *r, st_tensor *t, const unsigned char *data, uint64_t data_bytes) {
    uint64_t offsets[2] = { 0, 0 };
    int32_t count = 0;
    int seen = 0, bit, ok;
    const char *key;
    size_t bytes;
    if (!st_need(r, '{', "a tensor is no object")) return 0;
    do {
        if (!st_read_string(r, 0, &key, &bytes) || !st_need(r, ':', "a colon is missing")) return 0;
        bit = st_is(key, bytes, "dtype") ? 1 : st_is(key, bytes, "shape") ? 2 : st_is(key, bytes, "data_offsets") ? 4 : 0;
        if (!bit) return st_fail(r, "a key of a tensor is not known");
        if (seen & bit) return st_fail(r, "a key of a tensor comes twice");
        seen |= bit;
        if (bit == 1) ok = st_read_dtype(r, &t->dtype);
        else if (bit == 2) ok = st_read_numbers(r, t->shape, ST_MOST_AXES, &t->axis_count);
        else ok = st_read_numbers(r, offsets, 2, &count);
        if (!ok) return 0;
    } while (st_take(r, ','));
    if (!st_need(r, '}', "a tensor does not end")) return 0;
    if (seen != 7) return st_fail(r, "dtype, shape and data_offsets: one is missing");
    if (count != 2) return st_fail(r, "data_offsets: must be two numbers");
    return st_place(r, t, offsets, data, data_bytes);
}

// Whether a tensor has the name of one above it, or bytes of one.
static int st_check_others(st_reader *r, const st_tensor *tensors, int32_t at) {
    const st_tensor *t = &tensors[at], *other;
    for (other = tensors; other < t; other++) {
        if (other->name_bytes == t->name_bytes && memcmp(other->name, t->name, t->name_bytes) == 0)
            return st_fail(r, "two tensors have one name");
        if (other->data < t->data + t->bytes && t->data < other->data + other->bytes)
            return st_fail(r, "two tensors share bytes");
    }
    return 1;
}

// Read the header. *sum: the bytes of all tensors.
static int st_read_header(st_reader *r, const unsigned char *data, uint64_t data_bytes, st_tensor *tensors, int32_t capacity,
                          int32_t *count, uint64_t *sum) {
    const char *name;
    size_t bytes;
    if (!st_need(r, '{', "the header is no object")) return 0;
    if (st_take(r, '}')) return 1;
    do {
        st_tensor *t = &tensors[*count];
        if (!st_read_string(r, 0, &name, &bytes) || !st_need(r, ':', "a colon is missing")) return 0;
        if (st_is(name, bytes, "__metadata__")) {
            if (!st_skip_metadata(r)) return 0;
            continue;
        }
        if (!bytes || bytes > ST_MOST_NAME) return st_fail(r, "a name must have 1 to 1024 bytes");
        if (*count == capacity) return st_fail(r, "there are more tensors than there is room for");
        memset(t, 0, sizeof *t);
        t->name = name;
        t->name_bytes = (uint32_t)bytes;
        if (!st_read_tensor(r, t, data, data_bytes) || !st_check_others(r, tensors, *count)) return 0;
        *sum += t->bytes;       // no overflow: no two share bytes of the data
        ++*count;
    } while (st_take(r, ','));
    return st_need(r, '}', "the header does not end");
}

// Write "safetensors: byte 39: a list is missing"; a reason is shorter than the rest of the sentence.
static void st_write_sentence(char *sentence, uint64_t at, const char *why) {
    char digits[20];
    size_t length = strlen("safetensors: byte ");
    int count = 0;
    memcpy(sentence, "safetensors: byte ", length);
    do digits[count++] = (char)('0' + at % 10);
    while ((at /= 10) != 0);
    while (count) sentence[length++] = digits[--count];
    sentence[length++] = ':';
    sentence[length++] = ' ';
    memcpy(sentence + length, why, strlen(why) + 1);
}

// Read the tensors of a file, in the order of its header.
//
//   tensors    [capacity] filled; they point into bytes. capacity: at most ST_MOST_TENSORS count
//   sentence   what is wrong, and where in the file
//
// Returns 0, or -1: *count is 0 then, and nothing of tensors may be used.
static inline int st_read(const void *bytes, uint64_t size, st_tensor *tensors, int32_t capacity, int32_t *count,
                          char sentence[ST_SENTENCE]) {
    const unsigned char *file = (const unsigned char *)bytes;
    uint64_t length = 0, sum = 0;
    st_reader r = { NULL, NULL, NULL };
    int k;
    *count = 0;
    sentence[0] = 0;
    for (k = 8; k-- > 0 && size >= 8;) length = length << 8 | file[k];
    if (size < 8) (void)st_fail(&r, "the file has fewer than 8 bytes");
    else if (length > 100000000 || length > size - 8) (void)st_fail(&r, "the header is longer than the file, or than it may be");
    if (!r.why) {
        r.at = (const char *)file + 8;
        r.end = r.at + length;
        if (st_read_header(&r, file + 8 + length, size - 8 - length, tensors, capacity < ST_MOST_TENSORS ? capacity : ST_MOST_TENSORS,
                           count, &sum)) {
            st_skip_spaces(&r);
            if (r.at != r.end) (void)st_fail(&r, "something follows the header");
            else if (sum != size - 8 - length) (void)st_fail(&r, "the data has bytes that are of no tensor");
        }
    }
    if (!r.why) return 0;
    *count = 0;
    st_write_sentence(sentence, r.at ? (uint64_t)(r.at - (const char *)file) : 0, r.why);
    return -1;
}

// The tensor of a name; NULL = there is none.
static inline const st_tensor *st_find(const st_tensor *tensors, int32_t count, const char *name) {
    int32_t i;
    for (i = 0; i < count; i++)
        if (st_is(tensors[i].name, tensors[i].name_bytes, name)) return &tensors[i];
    return NULL;
}

#endif
