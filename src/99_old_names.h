// Names of version 0.4 and before, for programs that were written with them: they go with the next release.
// They stand behind the implementation, which has fields of its own by some of these names.
#ifdef TL_OLD_NAMES
#define tl_add_piece        tl_add_block        // a piece of a heap is a block, as everywhere
#define tl_free_piece       tl_free_block
#define tl_state            tl_variable         // a state is the graph's; what a caller registers, a variable
#define tl_state_kind       tl_variable_kind
#define TL_STATE_PARAMETER  TL_VARIABLE_PARAMETER
#define TL_STATE_GRADIENT   TL_VARIABLE_GRADIENT
#define TL_STATE_OPTIMIZER  TL_VARIABLE_OPTIMIZER
#define TL_STATE_STATISTICS TL_VARIABLE_STATISTICS
#define TL_STATE_RANDOM     TL_VARIABLE_RANDOM
#define TL_STATE_COUNT      TL_VARIABLE_COUNT
#define TL_OPERAND_STATE    TL_OPERAND_VARIABLE
#define tl_name_state       tl_name_variable
#define tl_load_states      tl_load_variables
#define states              variables           // of tl_run_desc
#define state_count         variable_count
#define remade_counts       recompute_counts    // of tl_fusion_plan
#endif

