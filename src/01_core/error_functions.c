#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- errors: sites --
//
// A site is a number: the rule's in bits 0 to 15, the function's in bits 16 to 23, and where the rule is about
// a budget the tl_limit in bits 24 to 31. Programs and devices report sites, and tl_explain_error reads what
// another build reported, so a number never changes its meaning. Functions are numbered by their place in
// TLI_FUNCTIONS, rules by section and by their place in the section's list: 0x0503 is the third of [5]. A new
// function or rule goes to the end of its list, and one that nothing uses any more stays in it.
//
// Code says TLI_IN(INIT_RUN) and TLI_RULE(NO_MEMORY). With text both are addresses, of a number and a text, so
// that a program holds the texts of what it links and no others. Under TL_NO_ERROR_TEXT they are the numbers.

// -- errors: functions --
//
// Those that can fail. The functions of a backend have the names that they have in tl_backend.

#define TLI_FUNCTIONS(X) \
    /* [1] CORE */ \
    X(INIT_ARENA, "tl_init_arena") \
    /* [2] STRATEGY */ \
    X(CHECK_STRATEGY, "tl_check_strategy") \
    X(RECOMMEND_QUICK, "tl_recommend_quick") \
    X(PARSE_STRATEGY, "tl_parse_strategy") \
    X(PARSE_STRATEGY_JSON, "tl_parse_strategy_json") \
    /* [3] GRAPH */ \
    X(ADD_NODE, "tl_add_node") \
    X(ADD_VIEW, "tl_add_view") \
    X(FIND_TENSOR, "tl_find_tensor") \
    X(ADD_CHAIN, "tl_add_chain") \
    X(CHECK_GRAPH, "tl_check_graph") \
    X(CHECK_DEVICE, "tl_check_device") \
    X(FIND_BASE_BYTES, "tl_find_base_bytes") \
    X(PARSE_GRAPH, "tl_parse_graph") \
    X(READ_GRAPH, "tl_read_graph") \
    X(WRITE_GRAPH, "tl_write_graph") \
    X(ADD_INPUT, "tl_add_input") \
    X(ADD_CONV2D, "tl_add_conv2d") \
    X(ADD_BATCH_NORM, "tl_add_batch_norm") \
    X(ADD_DENSE, "tl_add_dense") \
    X(ADD_DEPTHWISE_CONV2D, "tl_add_depthwise_conv2d") \
    X(ADD_TRANSPOSED_CONV2D, "tl_add_transposed_conv2d") \
    X(ADD_POOL, "tl_add_pool") \
    X(ADD_UPSAMPLE, "tl_add_upsample") \
    X(ADD_LAYER_NORM, "tl_add_layer_norm") \
    X(ADD_ELEMENTWISE, "tl_add_elementwise") \
    X(ADD_SOFTMAX, "tl_add_softmax") \
    X(ADD_EMBEDDING, "tl_add_embedding") \
    X(ADD_ATTENTION, "tl_add_attention") \
    X(ADD_RECURRENT, "tl_add_recurrent") \
    X(ADD_CONCAT, "tl_add_concat") \
    X(ADD_SPLIT, "tl_add_split") \
    X(ADD_LOSS, "tl_add_loss") \
    X(MEASURE_GRAPH, "tl_measure_graph") \
    X(PLAN_FUSION, "tl_plan_fusion") \
    /* [5] PLAN */ \
    X(SIMULATE_PLAN, "tl_simulate_plan") \
    X(MEASURE_PLAN, "tl_measure_plan") \
    X(COPY_PLAN, "tl_copy_plan") \
    X(PLAN_KEEP_ALL, "tl_plan_keep_all") \
    X(PLAN_KEPT_SET, "tl_plan_kept_set") \
    X(PLAN_REVOLVE, "tl_plan_revolve") \
    X(CHECKPOINT_DYNAMIC, "tl_checkpoint_dynamic") \
    X(CHECK_CHECKPOINT_CONFIG, "tl_check_checkpoint_config") \
    X(FIND_KEPT_LAYERS, "tl_find_kept_layers") \
    X(PLAN_CHECKPOINTS, "tl_plan_checkpoints") \
    X(MEASURE_CHECKPOINTS, "tl_measure_checkpoints") \
    X(PARSE_SCHEDULE, "tl_parse_schedule") \
    X(EXPLAIN_PLAN, "tl_explain_plan") \
    X(WRITE_PLAN_TABLE, "tl_write_plan_table") \
    X(PARSE_CHECKPOINT_CONFIG_JSON, "tl_parse_checkpoint_config_json") \
    /* [6] REMAT */ \
    X(PLAN_REMAT, "tl_plan_remat") \
    X(PLAN_CHAIN, "tl_plan_chain") \
    X(PLAN_POLICY, "tl_plan_policy") \
    /* [7] PRECISION */ \
    X(FIND_QUANTIZATION, "tl_find_quantization") \
    X(QUANTIZE, "tl_quantize") \
    X(DEQUANTIZE, "tl_dequantize") \
    X(QUANTIZE_DYNAMIC, "tl_quantize_dynamic") \
    X(FIND_MULTIPLIER, "tl_find_multiplier") \
    X(OBSERVE_DATA, "tl_observe_data") \
    X(INIT_OBSERVER, "tl_init_observer") \
    X(OBSERVE_EXTREMES, "tl_observe_extremes") \
    X(MERGE_OBSERVER, "tl_merge_observer") \
    X(MEASURE_OBSERVER, "tl_measure_observer") \
    X(FIND_OBSERVED_QUANTIZATION, "tl_find_observed_quantization") \
    X(ESTIMATE_NOISE, "tl_estimate_noise") \
    X(MEASURE_RANGE, "tl_measure_range") \
    X(MEASURE_NOISE, "tl_measure_noise") \
    X(MEASURE_FORMAT_NOISE, "tl_measure_format_noise") \
    X(CHECK_PROFILES, "tl_check_profiles") \
    X(PLAN_PRECISION, "tl_plan_precision") \
    X(PLAN_PRECISION_FRONT, "tl_plan_precision_front") \
    X(MEASURE_SENSITIVITY, "tl_measure_sensitivity") \
    X(APPLY_PRECISION, "tl_apply_precision") \
    /* [10] BACKEND */ \
    X(INIT_CPU_BACKEND, "tl_init_cpu_backend") \
    X(FREE_CPU_BACKEND, "tl_free_cpu_backend") \
    X(INIT_HEAP, "tl_init_heap") \
    X(ADD_BLOCK, "tl_add_block") \
    X(MEASURE_DEVICE, "tl_measure_device") \
    X(BACKEND_ADD_BLOCK, "add_block") \
    X(BACKEND_FREE_BLOCK, "free_block") \
    X(BACKEND_CLAIM, "claim") \
    X(BACKEND_RELEASE, "release") \
    X(BACKEND_COPY, "copy") \
    X(BACKEND_COMPRESS, "compress") \
    X(BACKEND_EXPAND, "expand") \
    X(BACKEND_FILL, "fill") \
    X(BACKEND_POLL, "poll") \
    X(BACKEND_WAIT, "wait") \
    X(BACKEND_MAP, "map") \
    X(BACKEND_UNMAP, "unmap") \
    X(BACKEND_CHECK, "check") \
    X(BACKEND_ORDER, "order") \
    X(BACKEND_OPEN_ACCOUNT, "open_account") \
    X(BACKEND_CLOSE_ACCOUNT, "close_account") \
    X(BACKEND_CLAIM_ON, "claim_on") \
    X(BACKEND_RELEASE_ON, "release_on") \
    X(BACKEND_MEASURE_ACCOUNT, "measure_account") \
    /* [11] MANAGER */ \
    X(CHECK_POLICY, "tl_check_policy") \
    X(INIT_MANAGER, "tl_init_manager") \
    X(FREE_MANAGER, "tl_free_manager") \
    X(SAVE_CHECKPOINT, "tl_save_checkpoint") \
    X(TAKE_CHECKPOINT, "tl_take_checkpoint") \
    X(TAKE_CHECKPOINT_RANGE, "tl_take_checkpoint_range") \
    X(PEEK_CHECKPOINT, "tl_peek_checkpoint") \
    X(RELEASE_CHECKPOINT, "tl_release_checkpoint") \
    X(DROP_CHECKPOINT, "tl_drop_checkpoint") \
    X(FIND_CHECKPOINT, "tl_find_checkpoint") \
    X(EVICT_CHECKPOINTS, "tl_evict_checkpoints") \
    X(SUBMIT_CHECKPOINTS, "tl_submit_checkpoints") \
    X(RESET_MANAGER, "tl_reset_manager") \
    /* [12] RUN */ \
    X(INIT_RUN, "tl_init_run") \
    X(WRITE_TENSOR, "tl_write_tensor") \
    X(READ_TENSOR, "tl_read_tensor") \
    X(RUN_PLAN, "tl_run_plan") \
    X(START_PASS, "tl_start_pass") \
    X(NEXT_STEP, "tl_next_step") \
    X(FINISH_STEP, "tl_finish_step") \
    X(MAP_STEP, "tl_map_step") \
    X(RUN_STEP_KERNEL, "tl_run_step_kernel") \
    X(INIT_LAYER_RUN, "tl_init_layer_run") \
    X(RUN_FORWARD, "tl_run_forward") \
    X(RUN_BACKWARD, "tl_run_backward") \
    X(ENABLE_CHECKPOINTS, "tl_enable_checkpoints") \
    /* [13] TRACE */ \
    X(WRITE_TRACE_JSON, "tl_write_trace_json") \
    X(WRITE_MEMORY_SVG, "tl_write_memory_svg") \
    X(WRITE_PLAN_SVG, "tl_write_plan_svg") \
    X(INIT_TRACE, "tl_init_trace") \
    X(WRITE_FRONT_SVG, "tl_write_front_svg") \
    X(INIT_FILE_SINK, "tl_init_file_sink") \
    X(FINISH_FILE_SINK, "tl_finish_file_sink") \
    /* later ones, of any section */ \
    X(INIT_REMAT_POOL, "tl_init_remat_pool") \
    X(PLAN_LAYOUT, "tl_plan_layout") \
    X(FIND_LIFETIMES, "tl_find_lifetimes") \
    X(PLAN_PLACES, "tl_plan_places") \
    X(PLAN_ORDER, "tl_plan_order") \
    X(PLAN_BANKS, "tl_plan_banks") \
    X(CHOOSE_SLOT, "tl_choose_slot") \
    X(WRITE_TABLE, "tl_write_table") \
    X(INIT_RUN_PLAN, "tl_init_run: plan") \
    X(MEASURE_PROFILES, "tl_measure_profiles") \
    X(ESTIMATE_SENSITIVITY, "tl_estimate_sensitivity") \
    X(COMPILE, "tl_compile") \
    X(PLAN_COMPILE_FRONT, "tl_plan_compile_front") \
    X(RECOMMEND, "tl_recommend") \
    X(EXPLAIN_COMPILED, "tl_explain_compiled") \
    X(BACKEND_SHORTEN, "shorten") \
    X(REPORT_BYTES, "tl_report_bytes") \
    X(FIND_TENSOR_BYTES, "tl_find_tensor_bytes") \
    X(INIT_OP_RUN, "tl_init_op_run") \
    X(REHEARSE_RUN, "tl_rehearse_run") \
    X(REPLAY_PLAN, "tl_replay_plan") \
    X(WRITE_PLAN_CODE, "tl_write_plan_code") \
    X(SAVE_RUN, "tl_save_run") \
    X(LOAD_RUN, "tl_load_run") \
    X(PLAN_PARTITION, "tl_plan_partition") \
    X(LIST_PIPELINE, "tl_list_pipeline") \
    X(SIMULATE_PIPELINE, "tl_simulate_pipeline") \
    X(ESTIMATE_REPLICAS, "tl_estimate_replicas") \
    X(CHOOSE_REPLICAS, "tl_choose_replicas") \
    X(PLAN_PLACEMENT, "tl_plan_placement") \
    X(PLAN_PARALLEL, "tl_plan_parallel") \
    X(COMPILE_RANKS, "tl_compile_ranks") \
    X(REDUCE_RUN, "tl_reduce_run") \
    X(SCATTER_RUN, "tl_scatter_run") \
    X(GATHER_RUN, "tl_gather_run") \
    X(LOAD_VARIABLES, "tl_load_variables") \
    X(COMPILE_PARALLEL, "tl_compile_parallel") \
    X(ADD_STATE, "tl_add_state") \
    X(HOLD_GRADIENTS, "tl_hold_gradients") \
    X(SKIP_UPDATES, "tl_skip_updates") \
    X(APPLY_OPTIMIZER, "tl_apply_optimizer") \
    X(APPLY_PIECES, "tl_apply_pieces") \
    X(CHOOSE_PIECES, "tl_choose_pieces") \
    X(PLAN_ROWS, "tl_plan_rows") \
    X(CUT_ROWS, "tl_cut_rows") \
    X(CHOOSE_ROWS, "tl_choose_rows") \
    X(SPLIT_GRAPH, "tl_split_graph") \
    X(STORE_FROZEN, "tl_store_frozen") \
    X(FIT_PRECISION, "tl_fit_precision")
#endif  // TL_STRATEGY_IMPLEMENTATION
