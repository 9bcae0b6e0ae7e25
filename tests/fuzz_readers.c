// clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_readers.c -o build/fuzz_readers && build/fuzz_readers -max_len=4096 tests/corpus/fuzz_readers
//
// Each input is read as a text of ranges and as a .safetensors file. What is accepted lies within the input and keeps the rules;
// what is refused has a sentence and no result.

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/fuzz_bytes.h"
#include "../examples/ranges.h"
#include "../examples/safetensors.h"

enum { ROOM = 8 };

static int lies_within(const void *at, uint64_t bytes, const uint8_t *data, size_t size) {
    const uint8_t *first = (const uint8_t *)at;
    return first >= data && bytes <= size && first + bytes <= data + size;
}

static void read_ranges(const uint8_t *data, size_t size) {
    static rg_tensor tensors[ROOM];
    static rg_node nodes[ROOM];
    rg_ranges ranges = { tensors, ROOM, 0, nodes, ROOM, 0, 0 };
    char sentence[RG_SENTENCE];
    int32_t i, k;
    if (rg_read((const char *)data, size, &ranges, sentence)) {
        MUST(!strncmp(sentence, "ranges: line ", 13) && strlen(sentence) < RG_SENTENCE);
        MUST(!ranges.tensor_count && !ranges.node_count);
        return;
    }
    MUST(!*sentence && ranges.tensor_count <= ROOM && ranges.node_count <= ROOM);
    for (i = 0; i < ranges.tensor_count; i++) {
        const rg_tensor *t = &tensors[i];
        MUST(t->name_bytes && t->name_bytes <= RG_MOST_NAME && lies_within(t->name, t->name_bytes, data, size));
        MUST(t->shape[0] > 0 && t->shape[1] > 0 && t->shape[2] > 0);
        MUST((int64_t)t->shape[0] * t->shape[1] <= INT32_MAX && (int64_t)t->shape[0] * t->shape[1] * t->shape[2] <= INT32_MAX);
        MUST(t->low - t->low == 0 && t->high - t->high == 0 && t->low <= t->high && t->zero >= -128 && t->zero <= 127);
        MUST(t->has_scale == (t->scale >= 1.17549435e-38f) && t->scale - t->scale == 0);
        for (k = 0; k < i; k++)
            MUST(t->name_bytes != tensors[k].name_bytes || memcmp(t->name, tensors[k].name, t->name_bytes) != 0);
    }
    for (i = 0; i < ranges.node_count; i++) {
        const rg_node *n = &nodes[i];
        MUST(n->name_bytes && lies_within(n->name, n->name_bytes, data, size) && (uint32_t)n->act < RG_ACT_COUNT);
        MUST(n->axis >= 0 && n->axis <= 2 && n->multiplier > 0);
        for (k = 0; k < 4; k++) MUST(n->pad[k] >= 0 && n->pad[k] <= 65535);
        for (k = 0; k < 2; k++) MUST(n->stride[k] > 0);
    }
}

static void read_safetensors(const uint8_t *data, size_t size) {
    static st_tensor tensors[ROOM];
    char sentence[ST_SENTENCE];
    int32_t count, i;
    if (st_read(data, size, tensors, ROOM, &count, sentence)) {
        MUST(!strncmp(sentence, "safetensors: byte ", 18) && strlen(sentence) < ST_SENTENCE && !count);
        return;
    }
    MUST(!*sentence && count <= ROOM);
    for (i = 0; i < count; i++)
        MUST(lies_within(tensors[i].name, tensors[i].name_bytes, data, size) && lies_within(tensors[i].data, tensors[i].bytes, data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_ranges(data, size);
    read_safetensors(data, size);
    return 0;
}
