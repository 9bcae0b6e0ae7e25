// A graph and a plan as const tables, made by tl_write_plan_table; include tl_strategy.h first.
//
//     desc.graph = &table_graph;
//     desc.plan  = &table_plan;

#if !defined(TL_VERSION) || TL_VERSION / 100 != 6
#error "write this table again, with the tl_strategy.h that is included"
#endif

#define TABLE_ARENA_BYTES 496
#define TABLE_ALIGNMENT 8
#define TABLE_PEAK_BYTES 496
#define TABLE_BASE_BYTES 0
#define TABLE_STEPS 32
#define TABLE_NODES 11
#define TABLE_TENSORS 12
#define TABLE_INPUT_X_OFFSET 0
#define TABLE_INPUT_X_BYTES 64
#define TABLE_RESULT_JOIN_OFFSET 80
#define TABLE_RESULT_JOIN_BYTES 32
#define TABLE_NODE_X 0
#define TABLE_NODE_FC1 1
#define TABLE_NODE_RELU1 2
#define TABLE_NODE_FC2 3
#define TABLE_NODE_RELU2 4
#define TABLE_NODE_FC3 5
#define TABLE_NODE_SPLIT 6
#define TABLE_NODE_GATE 7
#define TABLE_NODE_FC4 8
#define TABLE_NODE_JOIN 9
#define TABLE_NODE_LOSS 10

static const tl_node table_nodes[11] = {
    { 1, 3, 0, 0, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },  // x: node 0
    { 9, 13, 20, 0, 1, 1, 1, -1, 1, 0, 1, 0, 0, 9, 18, 0, 0, 0, 384, 0, 0, 0, 0, 1, 0, 0, 0 },  // fc1: node 1
    { 24, 30, 0, 1, 1, 2, 1, 0, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0 },  // relu1: node 2
    { 35, 39, 46, 2, 1, 3, 1, -1, 2, 0, 1, 0, 0, 9, 18, 0, 0, 0, 576, 0, 0, 0, 0, 3, 0, 0, 0 },  // fc2: node 3
    { 50, 56, 0, 3, 1, 4, 1, -1, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0 },  // relu2: node 4
    { 61, 65, 72, 4, 1, 5, 1, -1, 3, 0, 1, 0, 0, 9, 18, 0, 0, 0, 576, 0, 0, 0, 0, 5, 0, 0, 0 },  // fc3: node 5
    { 76, 82, 0, 5, 1, 6, 2, -1, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0 },  // split: node 6
    { 88, 93, 0, 6, 1, 8, 1, -1, -1, 0, 1, 0, 0, 4, 8, 16, 8, 12, 0, 0, 0, 0, 0, 7, 4, 0, 0 },  // gate: node 7
    { 98, 102, 0, 7, 1, 9, 1, -1, 4, 0, 1, 0, 0, 6, 12, 0, 0, 0, 256, 0, 0, 0, 0, 8, 0, 0, 0 },  // fc4: node 8
    { 109, 114, 0, 8, 2, 10, 1, -1, -1, 0, 1, 1, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0 },  // join: node 9
    { 119, 124, 0, 10, 1, 11, 1, -1, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0, 0 },  // loss: node 10
};

static const tl_node_input table_inputs[11] = {
    { 0, 1 },
    { 1, 0 },
    { 2, 1 },
    { 3, 0 },
    { 4, 1 },
    { 5, 0 },
    { 7, 1 },
    { 6, 1 },
    { 9, 0 },
    { 8, 1 },
    { 10, 1 },
};

static const tl_node_output table_outputs[12] = {
    { 0, 0, 64, 0, 0 },
    { 1, 0, 96, 0, 0 },
    { 2, 0, 96, 1, 0 },
    { 3, 0, 96, 0, 0 },
    { 4, 0, 96, 1, 0 },
    { 5, 0, 96, 0, 0 },
    { 6, 0, 32, 0, 0 },
    { 6, 1, 64, 0, 0 },
    { 7, 0, 64, 0, 0 },
    { 8, 0, 32, 0, 0 },
    { 9, 0, 32, 0, 0 },
    { 10, 0, 4, 0, 0 },
};

static const char table_text[127] = {
    0,
    'x',0,
    'i','n','p','u','t',0,
    'f','c','1',0,
    'l','i','n','e','a','r',0,
    'f','f','n',0,
    'r','e','l','u','1',0,
    'r','e','l','u',0,
    'f','c','2',0,
    'l','i','n','e','a','r',0,
    'f','f','n',0,
    'r','e','l','u','2',0,
    'r','e','l','u',0,
    'f','c','3',0,
    'l','i','n','e','a','r',0,
    'f','f','n',0,
    's','p','l','i','t',0,
    's','p','l','i','t',0,
    'g','a','t','e',0,
    'g','a','t','e',0,
    'f','c','4',0,
    'l','i','n','e','a','r',0,
    'j','o','i','n',0,
    'j','o','i','n',0,
    'l','o','s','s',0,
    'c','e',0,
};

static const tl_graph table_graph = {
    table_nodes, 11,
    table_inputs, 11,
    table_outputs, 12,
    NULL, 0,
    table_text, 127,
    4,  // batch
    0, 0, 0, 0, 0,  // no room to grow
    NULL
};

static const tl_step table_steps[32] = {
    { TL_STEP_FORWARD, 0, 0, 1, -1, 0 },  // fc1: step 0
    { TL_STEP_FORWARD_INPLACE, 0, 0, 2, -1, 0 },  // relu1: step 1
    { TL_STEP_FORWARD, 0, 0, 3, -1, 0 },  // fc2: step 2
    { TL_STEP_DROP, 0, 0, 2, 0, 0 },  // relu1: step 3
    { TL_STEP_FORWARD, 0, 0, 4, -1, 0 },  // relu2: step 4
    { TL_STEP_DROP, 0, 0, 3, 0, 0 },  // fc2: step 5
    { TL_STEP_FORWARD, 0, 0, 5, -1, 0 },  // fc3: step 6
    { TL_STEP_FORWARD, 0, 0, 6, -1, 0 },  // split: step 7
    { TL_STEP_DROP, 0, 0, 5, 0, 0 },  // fc3: step 8
    { TL_STEP_FORWARD_SAVE, 0, 0, 7, -1, 0 },  // gate: step 9
    { TL_STEP_FORWARD, 0, 0, 8, -1, 0 },  // fc4: step 10
    { TL_STEP_FORWARD, 0, 0, 9, -1, 0 },  // join: step 11
    { TL_STEP_DROP, 0, 0, 8, 0, 0 },  // fc4: step 12
    { TL_STEP_FORWARD, 0, 0, 10, -1, 0 },  // loss: step 13
    { TL_STEP_DROP, 0, 0, 10, 0, 0 },  // loss: step 14
    { TL_STEP_BACKWARD, 0, 0, 10, -1, 0 },  // loss: step 15
    { TL_STEP_BACKWARD, 0, 0, 9, -1, 0 },  // join: step 16
    { TL_STEP_DROP, 0, 0, 7, 0, 0 },  // gate: step 17
    { TL_STEP_BACKWARD, 0, 0, 8, -1, 0 },  // fc4: step 18
    { TL_STEP_DROP, 0, 0, 6, 0, 0 },  // split: step 19
    { TL_STEP_BACKWARD, 0, 0, 7, -1, 0 },  // gate: step 20
    { TL_STEP_DROP, 0, 0, 6, 1, 0 },  // split: step 21
    { TL_STEP_FORWARD, 0, 0, 1, -1, 0 },  // fc1: step 22
    { TL_STEP_FORWARD_INPLACE, 0, 0, 2, -1, 0 },  // relu1: step 23
    { TL_STEP_BACKWARD, 0, 0, 6, -1, 0 },  // split: step 24
    { TL_STEP_BACKWARD, 0, 0, 5, -1, 0 },  // fc3: step 25
    { TL_STEP_BACKWARD, 0, 0, 4, -1, 0 },  // relu2: step 26
    { TL_STEP_DROP, 0, 0, 4, 0, 0 },  // relu2: step 27
    { TL_STEP_BACKWARD, 0, 0, 3, -1, 0 },  // fc2: step 28
    { TL_STEP_BACKWARD, 0, 0, 2, -1, 0 },  // relu1: step 29
    { TL_STEP_DROP, 0, 0, 2, 0, 0 },  // relu1: step 30
    { TL_STEP_BACKWARD, 0, 0, 1, -1, 0 },  // fc1: step 31
};

static const uint64_t table_offsets[26] = {
    0, 160, 64, 400, 208, 304, 336, 240,
    64, 232, 208, 80, 232, 200, 208, 176,
    112, 208, 240, 176, 112, 304, 208, 304,
    208, 304,
};

static const tl_plan table_plan = {
    table_steps, 32,
    0,  // repeat_count
    table_offsets, 26,
    NULL, 0,
    0,  // inference
    0,  // any_order
    496,  // peak_bytes
    496,  // arena_bytes
    0,  // host_peak_bytes
    0,  // host_arena_bytes
    0,  // base_bytes
    133,  // cost
    123,  // base_cost
    0,  // bound_cost
    NULL,  // memory: tl_free_plan leaves it alone
    8,  // alignment_bytes
    NULL, 0,
    0,  // slot_count
    NULL, 0,
    0,  // in_flight
    NULL,  // narrow
};
