// A graph and a plan as const tables, made by tl_write_plan_table; include tl_strategy.h first.
//
//     desc.graph = &table_rows_graph;
//     desc.plan  = &table_rows_plan;

#if !defined(TL_VERSION) || TL_VERSION / 100 != 6
#error "write this table again, with the tl_strategy.h that is included"
#endif

#define TABLE_ROWS_PEAK_BYTES 270
#define TABLE_ROWS_BASE_BYTES 0
#define TABLE_ROWS_STEPS 6
#define TABLE_ROWS_NODES 4
#define TABLE_ROWS_TENSORS 5
#define TABLE_ROWS_INPUT_X_BYTES 64
#define TABLE_ROWS_NODE_X 0
#define TABLE_ROWS_NODE_A 1
#define TABLE_ROWS_NODE_B 2
#define TABLE_ROWS_NODE_C 3

static const tl_node table_rows_nodes[4] = {
    { 1, 3, 0, 0, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },  // x: node 0
    { 9, 11, 0, 0, 1, 1, 1, -1, -1, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },  // a: node 1
    { 16, 18, 0, 1, 2, 2, 2, -1, -1, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0 },  // b: node 2
    { 21, 23, 0, 3, 1, 4, 1, -1, -1, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0 },  // c: node 3
};

static const tl_node_input table_rows_inputs[4] = {
    { 0, 1 },
    { 1, 0 },
    { 1, 0 },
    { 2, 0 },
};

static const tl_node_output table_rows_outputs[5] = {
    { 0, 0, 64, 0, 6 },
    { 1, 0, 32, 0, 1 },
    { 2, 0, 64, 0, 0 },
    { 2, 1, 5, 0, 5 },
    { 3, 0, 4, 0, 0 },
};

static const char table_rows_text[27] = {
    0,
    'x',0,
    'i','n','p','u','t',0,
    'a',0,
    'c','o','n','v',0,
    'b',0,
    'u','p',0,
    'c',0,
    'a','d','d',0,
};

static const tl_node_rows table_rows_rows[3] = {
    { 16, 2, 0, 0, 0, 0, 1, 0 },
    { 8, 1, 1, 0, 0, 1, 0, 0 },
    { 16, 1, 2, 1, 7, 0, 0, 0 },
};

static const tl_relation table_rows_relations[3] = {
    { 2, 3, 2, 1, 1 },
    { 3, 0, 2, 0, 0 },
    { 2, 3, 1, 4, 2 },
};

static const tl_stored table_rows_stored[3] = {
    { 400, 1, 6 },
    { 12, 1, 4 },
    { 1, 3, 7 },
};

static const tl_attributes table_rows_attributes = {
    table_rows_rows, 3,
    table_rows_relations, 3,
    table_rows_stored, 3,
    0, 0, 0  // no room to grow
};

static const tl_graph table_rows_graph = {
    table_rows_nodes, 4,
    table_rows_inputs, 4,
    table_rows_outputs, 5,
    NULL, 0,
    table_rows_text, 27,
    0,  // batch
    0, 0, 0, 0, 0,  // no room to grow
    &table_rows_attributes
};

static const tl_step table_rows_steps[6] = {
    { TL_STEP_FORWARD, 0, 0, 1, -1, 0 },  // a: step 0
    { TL_STEP_FORWARD, 0, 0, 2, -1, 0 },  // b: step 1
    { TL_STEP_FORWARD, 0, 0, 3, -1, 0 },  // c: step 2
    { TL_STEP_BACKWARD, 0, 0, 3, -1, 0 },  // c: step 3
    { TL_STEP_BACKWARD, 0, 0, 2, -1, 0 },  // b: step 4
    { TL_STEP_BACKWARD, 0, 0, 1, -1, 0 },  // a: step 5
};

static const tl_plan table_rows_plan = {
    table_rows_steps, 6,
    0,  // repeat_count
    NULL, 0,
    NULL, 0,
    0,  // inference
    0,  // any_order
    270,  // peak_bytes
    0,  // arena_bytes
    0,  // host_peak_bytes
    0,  // host_arena_bytes
    0,  // base_bytes
    9,  // cost
    9,  // base_cost
    0,  // bound_cost
    NULL,  // memory: tl_free_plan leaves it alone
    0,  // alignment_bytes
    NULL, 0,
    0,  // slot_count
    NULL, 0,
    0,  // in_flight
    NULL,  // narrow
};
