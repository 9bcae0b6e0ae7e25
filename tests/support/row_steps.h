// Random training graphs whose nodes have rows. Include after cmocka.h, tl_strategy.h, support.h and random_graph.h.
#ifndef TESTS_ROW_STEPS_H
#define TESTS_ROW_STEPS_H

enum { STEP_NODES = 24, STEP_INPUTS = 3 };

// A graph of at most `most` nodes: an input, perhaps a weight, chains with skips by rows, a loss that perhaps reduces.
static inline void random_row_step(tl_random *random, int32_t most, tl_graph *graph) {
    tl_env env = silent_env();
    uint64_t rows = (uint64_t)random_count(random, 2, 8), widths[STEP_NODES], bytes;
    int32_t wanted = random_count(random, 3, most), id, k, has_weight = random_chance(random, 40), i;
    tl_init_graph(graph);
    for (id = 0; id < wanted; id++) {
        tl_node_desc desc;
        tl_tensor inputs[STEP_INPUTS];
        tl_relation relations[STEP_INPUTS];
        char needs[64] = "";
        int is_loss = id == wanted - 1 && random_chance(random, 60);
        memset(&desc, 0, sizeof desc);
        memset(relations, 0, sizeof relations);
        memset(inputs, 0, sizeof inputs);
        widths[id] = (uint64_t)random_count(random, 1, 20);
        bytes = is_loss ? 4 : 4 * widths[id] * rows;
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        if (id == 1 && has_weight) {
            tl_state_desc state;
            memset(&state, 0, sizeof state);
            state.op = "sgd";
            state.bytes = bytes = 4 * widths[id];
            if (tl_add_state(&env, graph, &state, NULL)) fail_msg("%s", env.error.text);
            continue;
        }
        desc.op = id ? "op" : "input";
        desc.input_count = id ? 1 + (id > 1 && random_chance(random, 35)) : 0;
        for (k = 0; k < desc.input_count; k++) {
            i = k ? random_count(random, 0, id - 1) : id - 1;
            if (graph->nodes[i].state) i = k ? 1 : 0;
            inputs[k].node = i;
            relations[k].kind = graph->nodes[i].state || random_chance(random, 10) ? TL_RELATION_WHOLE : TL_RELATION_SAME;
        }
        if (has_weight && id > 1 && desc.input_count < STEP_INPUTS && random_chance(random, 40)) inputs[desc.input_count++].node = 1;
        desc.inputs = inputs;
        desc.needs = id ? needs : NULL;
        if (id) {
            random_needs(random, desc.input_count, 1, needs);
            desc.fwd_cost = (uint64_t)random_count(random, 1, 20);
            desc.bwd_cost = (uint64_t)random_count(random, 1, 20);
            if (random_chance(random, 20)) desc.saved_bytes = rows * (uint64_t)random_count(random, 1, 12);
            if (random_chance(random, 20)) desc.fwork_bytes = (uint64_t)random_count(random, 1, 200);
            if (random_chance(random, 20)) desc.bwork_bytes = (uint64_t)random_count(random, 1, 200);
        }
        if (!id || random_chance(random, 85)) {
            desc.rows = rows;
            desc.relations = id ? relations : NULL;
            desc.ordered = 1;
            if (id && rows % 2 == 0 && random_chance(random, 15)) desc.row_unit = 2;
            desc.reduces = is_loss;
        }
        desc.keep = is_loss && random_chance(random, 50);
        if (tl_add_node(&env, graph, &desc, NULL)) fail_msg("%s", env.error.text);
    }
}

#endif
