// clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_graph.c -o build/fuzz_graph && build/fuzz_graph -max_len=65536 tests/corpus/fuzz_graph
//
// What tl_parse_graph accepts, tl_check_graph accepts; it prints, parses back and prints the same bytes. What it
// refuses has a code, a sentence and an empty graph. Either way its memory is bounded by the length of the text.

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/counting_alloc.h"
#include "support/fuzz_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const tl_graph empty;
    counting_alloc counter = {0, 0};
    tl_env env = counting_env(&counter);
    tl_graph graph, again;
    if (tl_parse_graph(&env, (const char *)data, size, &graph)) {
        MUST(env.error.code == TL_ERROR_PARSE || env.error.code == TL_ERROR_INVALID_ARG ||
             env.error.code == TL_ERROR_OVERFLOW);
        MUST(strstr(env.error.text, "tl_parse_graph: line "));
        MUST(!memcmp(&graph, &empty, sizeof empty));
        MUST(!counter.live && counter.peak <= ALLOWED_BYTES(size));
        return 0;
    }
    MUST(counter.peak <= ALLOWED_BYTES(size));
    MUST(!tl_check_graph(&env, &graph));
    {
        size_t length = tl_print_graph(&graph, NULL, 0);
        char *first = (char *)malloc(length + 1), *second = (char *)malloc(length + 1);
        MUST(first && second);
        MUST(tl_print_graph(&graph, first, length + 1) == length);
        MUST(!tl_parse_graph(&env, first, length, &again));
        MUST(tl_print_graph(&again, second, length + 1) == length);
        MUST(!memcmp(first, second, length + 1));
        MUST(again.node_count == graph.node_count && again.tensor_count == graph.tensor_count);
        free(first);
        free(second);
        tl_free_graph(&env, &again);
    }
    tl_free_graph(&env, &graph);
    MUST(!counter.live);
    return 0;
}
