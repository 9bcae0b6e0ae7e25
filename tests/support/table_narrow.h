// A graph and a plan as const tables, made by tl_write_plan_table; include tl_strategy.h first.
//
//     desc.graph = &narrow_graph;
//     desc.plan  = &narrow_plan;

#if !defined(TL_VERSION) || TL_VERSION / 100 != 6
#error "write this table again, with the tl_strategy.h that is included"
#endif

#define NARROW_ARENA_BYTES 496
#define NARROW_ALIGNMENT 8
#define NARROW_PEAK_BYTES 496
#define NARROW_BASE_BYTES 0
#define NARROW_STEPS 32
#define NARROW_NODES 11
#define NARROW_TENSORS 12
#define NARROW_INPUT_X_OFFSET 0
#define NARROW_INPUT_X_BYTES 64
#define NARROW_RESULT_JOIN_OFFSET 80
#define NARROW_RESULT_JOIN_BYTES 32
#define NARROW_NODE_X 0
#define NARROW_NODE_FC1 1
#define NARROW_NODE_RELU1 2
#define NARROW_NODE_FC2 3
#define NARROW_NODE_RELU2 4
#define NARROW_NODE_FC3 5
#define NARROW_NODE_SPLIT 6
#define NARROW_NODE_GATE 7
#define NARROW_NODE_FC4 8
#define NARROW_NODE_JOIN 9
#define NARROW_NODE_LOSS 10

static const tl_node narrow_nodes[11] = {
    { 7, 1, 0, 0, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },  // x: node 0
    { 16, 9, 0, 0, 1, 1, 1, -1, 1, 0, 1, 0, 0, 9, 18, 0, 0, 0, 384, 0, 0, 0, 0, 1, 0, 0, 0 },  // fc1: node 1
    { 23, 18, 0, 1, 1, 2, 1, 0, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0 },  // relu1: node 2
    { 25, 9, 0, 2, 1, 3, 1, -1, 2, 0, 1, 0, 0, 9, 18, 0, 0, 0, 576, 0, 0, 0, 0, 3, 0, 0, 0 },  // fc2: node 3
    { 27, 18, 0, 3, 1, 4, 1, -1, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0 },  // relu2: node 4
    { 29, 9, 0, 4, 1, 5, 1, -1, 3, 0, 1, 0, 0, 9, 18, 0, 0, 0, 576, 0, 0, 0, 0, 5, 0, 0, 0 },  // fc3: node 5
    { 37, 31, 0, 5, 1, 6, 2, -1, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0 },  // split: node 6
    { 44, 39, 0, 6, 1, 8, 1, -1, -1, 0, 1, 0, 0, 4, 8, 16, 8, 12, 0, 0, 0, 0, 0, 7, 4, 0, 0 },  // gate: node 7
    { 46, 9, 0, 7, 1, 9, 1, -1, 4, 0, 1, 0, 0, 6, 12, 0, 0, 0, 256, 0, 0, 0, 0, 8, 0, 0, 0 },  // fc4: node 8
    { 53, 48, 0, 8, 2, 10, 1, -1, -1, 0, 1, 1, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0 },  // join: node 9
    { 58, 55, 0, 10, 1, 11, 1, -1, -1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0, 0 },  // loss: node 10
};

static const tl_node_input narrow_inputs[11] = {
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

static const tl_node_output narrow_outputs[12] = {
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

static const char narrow_text[60] = {
    0,
    'i','n','p','u','t',0,
    '0',0,
    'l','i','n','e','a','r',0,
    '1',0,
    'r','e','l','u',0,
    '2',0,
    '3',0,
    '4',0,
    '5',0,
    's','p','l','i','t',0,
    '6',0,
    'g','a','t','e',0,
    '7',0,
    '8',0,
    'j','o','i','n',0,
    '9',0,
    'c','e',0,
    'a',0,
};

static const tl_graph narrow_graph = {
    narrow_nodes, 11,
    narrow_inputs, 11,
    narrow_outputs, 12,
    NULL, 0,
    narrow_text, 60,
    4,  // batch
    0, 0, 0, 0, 0,  // no room to grow
    NULL
};

static const uint16_t narrow_steps[64] = {
    0, 1,  // F fc1: step 0
    1, 2,  // I relu1: step 1
    0, 3,  // F fc2: step 2
    260, 2,  // D relu1: step 3
    0, 4,  // F relu2: step 4
    260, 3,  // D fc2: step 5
    0, 5,  // F fc3: step 6
    0, 6,  // F split: step 7
    260, 5,  // D fc3: step 8
    2, 7,  // S gate: step 9
    0, 8,  // F fc4: step 10
    0, 9,  // F join: step 11
    260, 8,  // D fc4: step 12
    0, 10,  // F loss: step 13
    260, 10,  // D loss: step 14
    3, 10,  // B loss: step 15
    3, 9,  // B join: step 16
    260, 7,  // D gate: step 17
    3, 8,  // B fc4: step 18
    260, 6,  // D split: step 19
    3, 7,  // B gate: step 20
    516, 6,  // D split: step 21
    0, 1,  // F fc1: step 22
    1, 2,  // I relu1: step 23
    3, 6,  // B split: step 24
    3, 5,  // B fc3: step 25
    3, 4,  // B relu2: step 26
    260, 4,  // D relu2: step 27
    3, 3,  // B fc2: step 28
    3, 2,  // B relu1: step 29
    260, 2,  // D relu1: step 30
    3, 1,  // B fc1: step 31
};

static const uint16_t narrow_offsets[26] = {
    0, 20, 8, 50, 26, 38, 42, 30,
    8, 29, 26, 10, 29, 25, 26, 22,
    14, 26, 30, 22, 14, 38, 26, 38,
    26, 38,
};

static const tl_narrow_plan narrow_narrow = {
    narrow_steps,
    narrow_offsets,
    NULL,
    8,  // unit_bytes
    2,  // step_words
    2,  // offset_bytes
};

static const tl_plan narrow_plan = {
    NULL, 32,
    0,  // repeat_count
    NULL, 26,
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
    &narrow_narrow,  // narrow
};
