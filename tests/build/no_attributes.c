// TL_NO_PLANNERS and TL_NO_TEXT together: rows, formats and constants are refused, and what a table has of them is left alone.
// lang: both
#define TL_NO_PLANNERS
#define TL_NO_TEXT
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#include <stdio.h>
#include <string.h>

static tl_env env;

static int refuses(const tl_node_desc *desc) {
    tl_graph graph;
    tl_result result;
    tl_init_graph(&graph);
    result = tl_add_node(&env, &graph, desc, NULL);
    tl_free_graph(&env, &graph);
    return result == TL_ERROR_UNSUPPORTED &&
           !strcmp(env.error.text, "tl_add_node: node 0 (n0): rows, formats, stored: TL_NO_TEXT left them out");
}

int main(void) {
    static const uint64_t bytes = 8;
    static const uint8_t format = TL_TENSOR_FORMAT_I8;
    static const tl_stored stored = { 4, 0, TL_TENSOR_FORMAT_I8 };
    static const tl_node_rows rows[] = { { 8, 1, 0, 0, 0, 0, 0, 0 } };
    static const tl_attributes attributes = { rows, 1, NULL, 0, NULL, 0, 0, 0, 0 };
    tl_node_desc desc;
    tl_state_desc state;
    tl_graph graph;
    int ok;
    tli_zero(&desc, sizeof desc);
    tli_zero(&state, sizeof state);
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.rows = 4;
    ok = refuses(&desc);
    desc.rows = 0;
    desc.formats = &format;
    ok &= refuses(&desc);
    desc.formats = NULL;
    desc.stored = &stored;
    desc.stored_count = 1;
    ok &= refuses(&desc);
    desc.stored_count = 0;
    tl_init_graph(&graph);
    ok &= !tl_add_node(&env, &graph, &desc, NULL);
    state.bytes = 8;
    state.weight_format = TL_TENSOR_FORMAT_BF16;
    ok &= tl_add_state(&env, &graph, &state, NULL) == TL_ERROR_UNSUPPORTED;
    graph.attributes = &attributes;
    ok &= !tl_check_graph(&env, &graph);
    tl_free_graph(&env, &graph);
    if (!ok) printf("wrong: %s\n", env.error.text);
    return !ok;
}
