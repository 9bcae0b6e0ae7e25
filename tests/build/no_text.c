// TL_NO_TEXT: no printing, parsing and JSON; error text stays. Names are bytes, and so they are cut in it.
#define TL_NO_TEXT
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#include <string.h>

static tl_result add_named(tl_env *env, const char *name) {
    const uint64_t bytes = 4;
    tl_graph graph;
    tl_node_desc desc;
    tl_result result;
    tli_zero(&graph, sizeof graph);
    tli_zero(&desc, sizeof desc);
    desc.name = name;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    result = tl_add_node(env, &graph, &desc, NULL);
    tl_free_graph(env, &graph);
    return result;
}

// 46 bytes, a character of 3 bytes that ends at byte 49, and what the name may not hold.
#define LONG "0123456789012345678901234567890123456789012345"

int main(void) {
    tl_env env;
    int failed;
    tli_zero(&env, sizeof env);
    failed = add_named(&env, "caf\xc3\xa9") != TL_OK || add_named(&env, "a\xff") != TL_OK;
    failed |= add_named(&env, "") != TL_ERROR_INVALID_ARG || add_named(&env, "a=b") != TL_ERROR_INVALID_ARG;
    failed |= add_named(&env, "a\tb") != TL_ERROR_INVALID_ARG || !strstr(env.error.text, " (a?b): ");
    failed |= add_named(&env, LONG "\xe2\x82\xac #") != TL_ERROR_INVALID_ARG || !strstr(env.error.text, " (" LONG "...): ");
    return failed || tl_version() != TL_VERSION;
}
