// A graph and a plan as const tables, made by tl_write_plan_table; include tl_strategy.h first.
//
//     desc.graph = &small_graph;
//     desc.plan  = &small_plan;

#if !defined(TL_VERSION) || TL_VERSION / 100 != 6
#error "write this table again, with the tl_strategy.h that is included"
#endif

#define SMALL_ARENA_BYTES 256
#define SMALL_ALIGNMENT 8
#define SMALL_PEAK_BYTES 256
#define SMALL_BASE_BYTES 0
#define SMALL_STEPS 20
#define SMALL_NODES 11
#define SMALL_TENSORS 12
#define SMALL_INPUT_X_OFFSET 0
#define SMALL_INPUT_X_BYTES 64
#define SMALL_RESULT_JOIN_OFFSET 64
#define SMALL_RESULT_JOIN_BYTES 32
#define SMALL_NODE_X 0
#define SMALL_NODE_FC1 1
#define SMALL_NODE_RELU1 2
#define SMALL_NODE_FC2 3
#define SMALL_NODE_RELU2 4
#define SMALL_NODE_FC3 5
#define SMALL_NODE_SPLIT 6
#define SMALL_NODE_GATE 7
#define SMALL_NODE_FC4 8
#define SMALL_NODE_JOIN 9
#define SMALL_NODE_LOSS 10

static const tl_node small_nodes[11] = {
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

static const tl_node_input small_inputs[11] = {
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

static const tl_node_output small_outputs[12] = {
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

static const char small_text[127] = {
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

static const tl_graph small_graph = {
    small_nodes, 11,
    small_inputs, 11,
    small_outputs, 12,
    NULL, 0,
    small_text, 127,
    4,  // batch
    0, 0, 0, 0, 0,  // no room to grow
    NULL
};

static const tl_step small_steps[20] = {
    { TL_STEP_FORWARD, 0, 0, 1, -1, 0 },  // fc1: step 0
    { TL_STEP_FORWARD, 0, 0, 2, -1, 0 },  // relu1: step 1
    { TL_STEP_DROP, 0, 0, 1, 0, 0 },  // fc1: step 2
    { TL_STEP_FORWARD, 0, 0, 3, -1, 0 },  // fc2: step 3
    { TL_STEP_DROP, 0, 0, 2, 0, 0 },  // relu1: step 4
    { TL_STEP_FORWARD, 0, 0, 4, -1, 0 },  // relu2: step 5
    { TL_STEP_DROP, 0, 0, 3, 0, 0 },  // fc2: step 6
    { TL_STEP_FORWARD, 0, 0, 5, -1, 0 },  // fc3: step 7
    { TL_STEP_DROP, 0, 0, 4, 0, 0 },  // relu2: step 8
    { TL_STEP_FORWARD, 0, 0, 6, -1, 0 },  // split: step 9
    { TL_STEP_DROP, 0, 0, 5, 0, 0 },  // fc3: step 10
    { TL_STEP_FORWARD, 0, 0, 7, -1, 0 },  // gate: step 11
    { TL_STEP_DROP, 0, 0, 6, 1, 0 },  // split: step 12
    { TL_STEP_FORWARD, 0, 0, 8, -1, 0 },  // fc4: step 13
    { TL_STEP_DROP, 0, 0, 6, 0, 0 },  // split: step 14
    { TL_STEP_FORWARD, 0, 0, 9, -1, 0 },  // join: step 15
    { TL_STEP_DROP, 0, 0, 8, 0, 0 },  // fc4: step 16
    { TL_STEP_DROP, 0, 0, 7, 0, 0 },  // gate: step 17
    { TL_STEP_FORWARD, 0, 0, 10, -1, 0 },  // loss: step 18
    { TL_STEP_DROP, 0, 0, 10, 0, 0 },  // loss: step 19
};

static const uint64_t small_offsets[13] = {
    0, 160, 64, 160, 64, 160, 64, 96,
    160, 224, 96, 64, 96,
};

static const tl_plan small_plan = {
    small_steps, 20,
    1,  // repeat_count
    small_offsets, 13,
    NULL, 0,
    1,  // inference
    0,  // any_order
    256,  // peak_bytes
    256,  // arena_bytes
    0,  // host_peak_bytes
    0,  // host_arena_bytes
    0,  // base_bytes
    43,  // cost
    43,  // base_cost
    0,  // bound_cost
    NULL,  // memory: tl_free_plan leaves it alone
    8,  // alignment_bytes
    NULL, 0,
    0,  // slot_count
    NULL, 0,
    0,  // in_flight
    NULL,  // narrow
};
