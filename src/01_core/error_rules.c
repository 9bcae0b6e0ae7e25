#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- errors: rules --
//
// Each with its sentence, and with the names of the error's two values. In the sentence %0 and %1 are these
// values, %s is a name or another text that the sentence alone has. A value without a name is 0. The names:
//
//     node, line      the number of the node, or of the view, and the line of the text being read (0 = no text)
//     line, column    of the text being read, from 1
//     step, node      of a plan; for a rule of the end, step is the number of steps; node may be none
//     step, tensor    the second is a place in the graph's outputs
//     budget, least budget    the limit that was exceeded and the least that would do, both with base_bytes
//                             unless the limit is one of the host or memory_fraction
//     result          a tl_result
//     .. as f64 bits  the bytes of a double
//
// UINT64_MAX stands for none, or not known. In front of the sentence a text may say where the rule was broken:
// "node 3 (conv1): ".

#define TLI_NAME_RULE "must be 1 to 255 bytes of UTF-8 without control characters, spaces, # and ="

// -- errors: rules of [1] CORE --

#define TLI_CORE_RULES(X) \
    X(OF_A_BACKEND, "a sentence of the function that called tl_record_error", "") \
    X(BYTES_TOO_FEW_FOR_BOOKKEEPING, "bytes: too few for the bookkeeping", "") \
    X(TEXT_IS_LONGER_THAN_2_30_BYTES, "the text is longer than 2^30 bytes", "line, column") \
    X(EXPECTED_STRING, "expected a string", "line, column") \
    X(STRING_MAY_NOT_HOLD_THIS, "a string may not hold this", "line, column") \
    X(STRING_DOES_NOT_END, "the string does not end", "line, column") \
    X(EXPECTED_OBJECT, "expected an object", "line, column") \
    X(EXPECTED_ARRAY, "expected an array", "line, column") \
    X(NESTED_DEEPER_THAN_32_LEVELS, "nested deeper than 32 levels", "line, column") \
    X(EXPECTED_COMMA_OR_BRACE, "expected , or }", "line, column") \
    X(EXPECTED_COMMA_OR_BRACKET, "expected , or ]", "line, column") \
    X(EXPECTED_COLON, "expected :", "line, column") \
    X(EXPECTED_NUMBER, "expected a number", "line, column") \
    X(EXPECTED_VALUE, "expected a value", "line, column") \
    X(THIS_KEY_COMES_TWICE, "this key comes twice", "line, column") \
    X(EXPECTED_TRUE_OR_FALSE, "expected true or false", "line, column") \
    X(EXPECTED_WHOLE_NUMBER_FROM_0_TO_2_64_1, "expected a whole number from 0 to 2^64 - 1", "line, column") \
    X(NUMBER_IS_TOO_LARGE, "the number is too large", "line, column") \
    X(UNKNOWN_NAME, "unknown name", "line, column") \
    X(TEXT_AFTER_VALUE, "text after the value", "line, column") \
    X(SINK_STOPPED_WITH_AFTER_BYTES, "sink: stopped with %s after %1 bytes", "result, bytes") \
    X(ENV_HAS_HALF_AN_ALLOCATOR, "env: alloc and release: set both or neither", "")

// -- errors: rules of [2] STRATEGY --

#define TLI_STRATEGY_RULES(X) \
    X(MODE_UNKNOWN_VALUE, "mode: unknown value", "") \
    X(GRADIENT_COMPUTES_MUST_BE_0_OR_1, "gradient.computes: must be 0 or 1", "") \
    X(GRADIENT_CHECKPOINTED_MUST_BE_0_OR_1, "gradient.checkpointed: must be 0 or 1", "") \
    X(GRADIENT_CHECKPOINTED_NEEDS_GRADIENTS, "gradient.checkpointed: needs gradients to be computed", "") \
    X(GRADIENT_CHECKPOINT_INTERVAL_NEEDS, "gradient.checkpoint_interval: needs checkpointed to be 1", "") \
    X(GRADIENT_ACCUMULATION_STEPS_NEEDS, "gradient.accumulation_steps: needs gradients to be computed", "") \
    X(PRECISION_UNKNOWN_VALUE, "precision: unknown value", "") \
    X(MEMORY_UNKNOWN_VALUE, "memory: unknown value", "") \
    X(PARALLELISM_WORKER_COUNT, "parallelism: worker_count must be > 0", "") \
    X(PARALLELISM_DEVICE_COUNT, "parallelism: device_count must be > 0", "") \
    X(PARALLELISM_STAGE_COUNT, "parallelism: stage_count must be > 0", "") \
    X(PARALLELISM_UNKNOWN_KIND, "parallelism: unknown kind", "") \
    X(ENABLE_FUSION_MUST_BE_0_OR_1, "enable_fusion: must be 0 or 1", "") \
    X(ENABLE_PROFILING_MUST_BE_0_OR_1, "enable_profiling: must be 0 or 1", "") \
    X(BATCH_SIZE_MUST_BE_POSITIVE, "batch_size: must be > 0", "") \
    X(MODEL_MIB_MUST_BE_POSITIVE, "model_mib: must be > 0", "") \
    X(AVAILABLE_MIB_MUST_BE_POSITIVE, "available_mib: must be > 0", "") \
    X(MODEL_MIB_TIMES_BATCH_SIZE_EXCEEDS_64, "model_mib: times batch_size exceeds 64 bits", "") \
    X(EXPECTED_EXECUTION_STRATEGY, "expected \"Execution Strategy:\"", "line") \
    X(EXPECTED_MODE_AND_ONE_OF_EAGER_LAZY, "expected \"- Mode:\" and one of Eager, Lazy, Hybrid", "line") \
    X(EXPECTED_GRADIENT_AND_NONE_FULL, \
      "expected \"- Gradient:\" and None, Full, or Checkpointed or Accumulated { .. > 0 }", "line") \
    X(EXPECTED_PRECISION_AND_ONE_OF_FULL, \
      "expected \"- Precision:\" and one of Full, Single, Mixed, Half, BFloat16", "line") \
    X(EXPECTED_MEMORY_AND_ONE_OF_STANDARD, \
      "expected \"- Memory:\" and one of Standard, Pooled, Cached, MinimalPeak", "line") \
    X(EXPECTED_PARALLELISM_AND_ITS_KIND_SOME, \
      "expected \"- Parallelism:\" and its kind, some with { a number > 0 }", "line") \
    X(EXPECTED_FUSION_AND_TRUE_OR_FALSE, "expected \"- Fusion:\" and true or false", "line") \
    X(EXPECTED_PROFILING_AND_TRUE_OR_FALSE, "expected \"- Profiling:\" and true or false", "line") \
    X(TEXT_AFTER_SUMMARY, "text after the summary", "line") \
    X(THIS_KIND_HAS_NO_COUNT, "this kind has no count", "line, column") \
    X(POLICY_MUST_BE_OF_CONFIGS, "policy: must be keep-all, every-n, layers or fraction", "") \
    X(POLICY_MUST_BE_OF_PLANS, \
      "policy: must be keep-all, every-n, chen-sqrt, chen-greedy, selective, revolve or chain", "") \
    X(POLICY_MUST_BE_ONLINE, "policy: must be keep-all, every-n, selective or none", "")

// -- errors: rules of [3] GRAPH --

#define TLI_GRAPH_RULES(X) \
    X(INPUTS_MUST_FOLLOW_THOSE_OF_NODE_ABOVE, \
      "inputs: must follow those of the node above, inside the array", "node, line") \
    X(OUTPUTS_THERE_MUST_BE_AT_LEAST_ONE, "outputs: there must be at least one", "node, line") \
    X(OUTPUTS_MUST_FOLLOW_THOSE_OF_NODE, \
      "outputs: must follow those of the node above, inside the array", "node, line") \
    X(NAME_MUST_BE_1_TO_255_BYTES_OF_UTF_8, "name: " TLI_NAME_RULE, "node, line") \
    X(OP_MUST_BE_1_TO_255_BYTES_OF_UTF_8, "op: " TLI_NAME_RULE, "node, line") \
    X(UNIT_MUST_BE_1_TO_255_BYTES_OF_UTF_8, "unit: " TLI_NAME_RULE, "node, line") \
    X(INPUTS_EACH_MUST_BE_MADE_BY_NODE_ABOVE, "inputs: each must be made by a node above it", "node, line") \
    X(NEEDS_MUST_BE_NONE_WHERE_THERE_IS_NO, "needs: must be none where there is no gradient", "node, line") \
    X(OUTPUTS_EACH_MUST_KNOW_ITS_NODE, "outputs: each must know its node and number", "node, line") \
    X(INPLACE_THERE_IS_NO_SUCH_INPUT, "inplace: there is no such input", "node, line") \
    X(INPLACE_GRAPH_INPUT_MUST_NOT, "inplace: a graph input must not be overwritten", "node, line") \
    X(INPLACE_INPUT_MUST_HAVE_BYTES, "inplace: the input must have the bytes of output 0", "node, line") \
    X(FLAGS_MUST_BE_0_OR_1, "flags: must be 0 or 1", "node, line") \
    X(OP_MUST_BE_INPUT_EXACTLY_FOR_INPUTS, "op: must be input exactly for inputs", "node, line") \
    X(LAYER_MUST_BE_NUMBER_BELOW_2_31_1, "layer: must be a number below 2^31 - 1", "node, line") \
    X(GRAD_INPUT_MUST_HAVE_NONE, "grad: an input must have none", "node, line") \
    X(INPUTS_INPUT_MUST_HAVE_NONE_OF_ITS_OWN, "inputs: an input must have none of its own", "node, line") \
    X(FWD_MUST_BE_0_FOR_INPUT, "fwd: must be 0 for an input", "node, line") \
    X(FWORK_MUST_BE_0_FOR_INPUT, "fwork: must be 0 for an input", "node, line") \
    X(PARAM_MUST_BE_0_FOR_INPUT, "param: must be 0 for an input", "node, line") \
    X(BWD_MUST_BE_0_WHERE_THERE_IS_NO, "bwd: must be 0 where there is no gradient", "node, line") \
    X(SAVED_MUST_BE_0_WHERE_THERE_IS_NO, "saved: must be 0 where there is no gradient", "node, line") \
    X(BWORK_MUST_BE_0_WHERE_THERE_IS_NO, "bwork: must be 0 where there is no gradient", "node, line") \
    X(OUT_SUM_OF_ALL_BYTES_GRADIENTS, \
      "out: the sum of all bytes, gradients included, must fit 64 bits", "node, line") \
    X(SAVED_FWORK_BWORK_SUM_OF_ALL_BYTES, \
      "saved, fwork, swork, bwork: the sum of all bytes, gradients included, must fit 64 bits", "node, line") \
    X(FWD_BWD_SUM_OF_ALL_COSTS_MUST_FIT_64, "fwd, bwd: the sum of all costs must fit 64 bits", "node, line") \
    X(PARAM_SUM_OF_ALL_WEIGHTS_MUST_FIT_64, "param: the sum of all weights must fit 64 bits", "node, line") \
    X(NO_MEMORY_TO_COMPARE_NAMES, "no memory to compare names", "") \
    X(NODES_MISSING_OR_FEWER_THAN_ONE, "nodes: missing, or fewer than one", "") \
    X(INPUTS_MISSING_OR_NEGATIVE_COUNT, "inputs: missing, or a negative count", "node, line") \
    X(OUTPUTS_MISSING_OR_NEGATIVE_COUNT, "outputs: missing, or a negative count", "") \
    X(VIEWS_MISSING_OR_NEGATIVE_COUNT, "views: missing, or a negative count", "") \
    X(TEXT_MUST_END_WITH_0, "text: must end with 0", "") \
    X(TENSOR_THERE_IS_NO_SUCH_OUTPUT, "tensor: there is no such output", "node, line") \
    X(INPUTS_OUTPUTS_EACH_MUST_BELONG, "inputs, outputs: each must belong to a node", "") \
    X(NAME_MUST_BE_UNIQUE, "name: must be unique", "node, line") \
    X(FLOPS_PER_SECOND_MUST_BE_FINITE, "flops_per_second: must be finite and not negative", "") \
    X(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER, "alignment_bytes: must be 0 or a power of two", "") \
    X(COPY_CHANNELS_MUST_BE, "copy_channels: must be 0, 1, 2 or TL_COPIES_IN_TURN", "") \
    X(SUPPORTED_MUST_NAME_KNOWN_PRECISIONS, "supported: must name known precisions only", "") \
    X(GRAPH_COUNTS_MUST_STAY_BELOW_2_31, "graph: counts must stay below 2^31", "") \
    X(NO_MEMORY_FOR_LARGER_GRAPH, "no memory for a larger graph", "") \
    X(LAYER_MUST_NOT_BE_NEGATIVE, "layer: must not be negative", "node, line") \
    X(NO_GRAD_KEEP_FIXED_MUST_BE_0_OR_1, \
      "no_grad, keep, fixed, takes_blocks, dynamic, dies: must be 0 or 1; once: TL_ONCE_LATE, too", \
      "node, line") \
    X(INPUTS_IS_NOT_MADE_BY_NODE_ABOVE_IT, "inputs: %s is not made by a node above it", "node, line") \
    X(NEEDS_MUST_BE_NONE_OR_LIST, \
      "needs: must be none, or a list of in, in<k>, out, out<k> that exist", "node, line") \
    X(OF_THERE_IS_NO_SUCH_TENSOR, "of: there is no such tensor", "node, line") \
    X(LAYER_COUNT_MUST_BE_POSITIVE, "layer_count: must be > 0", "") \
    X(NAME_NO_TENSOR_IS_CALLED, "name: no tensor is called %s", "") \
    X(GRADIENT_RATIO_OPTIMIZER_RATIO, "gradient_ratio, optimizer_ratio: must be finite and not negative", "") \
    X(PARAM_SUM_MUST_FIT_64_BITS, "param: the sum must fit 64 bits", "") \
    X(THERE_IS_NO_SUCH_ATTRIBUTE, "there is no such attribute", "line") \
    X(IS_GIVEN_TWICE, "is given twice", "line") \
    X(TAKES_NO_VALUE, "takes no value", "line") \
    X(NEEDS_VALUE, "needs a value", "line") \
    X(IS_MISSING, "is missing", "line") \
    X(MUST_BE_NUMBER_BELOW_2_64, "must be a number below 2^64", "line") \
    X(MUST_BE_NUMBER_BELOW_2_31_1, "must be a number below 2^31 - 1", "line") \
    X(CAN_ONLY_BE_NO, "can only be no", "line") \
    X(NO_MEMORY_FOR_LINE, "no memory for a line", "") \
    X(MUST_BE_NUMBERS_BELOW_2_64_WITH_COMMAS, "must be numbers below 2^64, with commas between them", "line") \
    X(MUST_BE_MINUS_OR_TENSORS_LIKE_3_OR_3_1, \
      "must be - or tensors like 3 or 3.1, with commas between them", "line") \
    X(NODE_IDS_MUST_BE_0_1_2_IN_THIS_ORDER, "node ids must be 0, 1, 2, ... in this order", "line") \
    X(NODE_NAME_AND_OP_MUST_FOLLOW_ID, "node: a name and an op must follow the id", "line") \
    X(GRAPH_MUST_START_WITH_TLG, "a graph must start with tlg 1 or tlg 2", "line") \
    X(VERSION_MUST_BE_1_OR_2, "the version must be 1 or 2", "line") \
    X(LINE_MUST_START_WITH_NODE_OR_BATCH, "a line must start with node or batch", "line") \
    X(MUST_STAND_ONCE_AND_ABOVE_NODES, "must stand once, and above the nodes", "line") \
    X(MUST_BE_ONE_NUMBER_FROM_1_TO_2_64_1, "must be one number from 1 to 2^64 - 1", "line") \
    X(LENGTH_MUST_NOT_EXCEED_2_30_BYTES, "length: must not exceed 2^30 bytes", "") \
    X(TEXT_HOLDS_CONTROL_CHARACTER, "text: holds a control character", "line") \
    X(TEXT_MUST_START_WITH_TLG, "text: must start with tlg 1 or tlg 2", "line") \
    X(TEXT_ENDS_BEFORE_FIRST_NODE, "text: ends before the first node", "line") \
    X(PATH_CANNOT_OPEN, "path: cannot open %s", "") \
    X(PATH_MORE_THAN_2_30_BYTES_IN, "path: more than 2^30 bytes in %s", "") \
    X(PATH_NO_MEMORY_TO_HOLD, "path: no memory to hold %s", "") \
    X(PATH_CANNOT_READ, "path: cannot read %s", "") \
    X(PATH_NO_MEMORY_TO_PRINT_FOR, "path: no memory to print for %s", "") \
    X(PATH_CANNOT_WRITE, "path: cannot write %s", "") \
    X(SHAPE_BYTES_AND_COSTS_MUST_FIT_64_BITS, "shape: bytes and costs must fit 64 bits", "node, line") \
    X(ACTIVATION_MUST_BE_NONE_HERE, "activation: must be none here", "node, line") \
    X(INPLACE_MUST_BE_0_HERE, "inplace: must be 0 here", "node, line") \
    X(NO_BIAS_MUST_BE_0_HERE, "no_bias: must be 0 here", "node, line") \
    X(FLATTEN_MUST_BE_0_HERE, "flatten: must be 0 here", "node, line") \
    X(CHANNELS_MUST_BE_0_HERE, "channels: must be 0 here", "node, line") \
    X(KERNEL_MUST_BE_0_HERE, "kernel: must be 0 here", "node, line") \
    X(STRIDE_MUST_BE_0_HERE, "stride: must be 0 here", "node, line") \
    X(PADDING_MUST_BE_0_HERE, "padding: must be 0 here", "node, line") \
    X(DILATION_MUST_BE_0_HERE, "dilation: must be 0 here", "node, line") \
    X(GROUPS_MUST_BE_0_HERE, "groups: must be 0 here", "node, line") \
    X(HEIGHT_WIDTH_MUST_BE_0_HERE, "height, width: must be 0 here", "node, line") \
    X(HEADS_MUST_BE_0_HERE, "heads: must be 0 here", "node, line") \
    X(VOCABULARY_MUST_BE_0_HERE, "vocabulary: must be 0 here", "node, line") \
    X(SAVED_BYTES_FWORK_BYTES_BWORK_BYTES, \
      "saved_bytes, fwork_bytes, bwork_bytes: must be 0 here", "node, line") \
    X(TAKES_BLOCKS_MUST_BE_0_HERE, "takes_blocks: must be 0 here", "node, line") \
    X(INPUT_UNKNOWN_PRECISION, "input: unknown precision", "node, line") \
    X(INPUT_NO_CALL_MADE_THIS_VALUE, "input: no call made this value", "node, line") \
    X(INPUT_THERE_IS_NO_SUCH_TENSOR, "input: there is no such tensor", "node, line") \
    X(INPUT_ITS_SHAPE_DOES_NOT_HAVE_BYTES, \
      "input: its shape does not have the bytes of its tensor", "node, line") \
    X(PRECISION_UNKNOWN, "precision: unknown", "node, line") \
    X(INPLACE_NO_BIAS_FLATTEN_MUST_BE_0_OR_1, "inplace, no_bias, flatten: must be 0 or 1", "node, line") \
    X(ACTIVATION_ITS_BACKWARD_MUST_READ, \
      "activation: its backward must read its output alone: make it a node of its own", "node, line") \
    X(KERNEL_LARGER_THAN_PADDED_INPUT, "kernel: larger than the padded input", "node, line") \
    X(PADDING_NOTHING_IS_LEFT_OF_RESULT, "padding: nothing is left of the result", "node, line") \
    X(GROUPS_MUST_DIVIDE_CHANNELS_OF_INPUT, \
      "groups: must divide the channels of the input and of the result", "node, line") \
    X(KIND_UNKNOWN, "kind: unknown", "node, line") \
    X(HEIGHT_WIDTH_MORE_POSITIONS_THAN_INPUT, \
      "height, width: more positions than the input has", "node, line") \
    X(NO_MEMORY_FOR_ITS_INPUTS, "no memory for its inputs", "node, line") \
    X(KIND_UNKNOWN_OR_NONE, "kind: unknown, or none", "node, line") \
    X(INPUTS_ADD_AND_MUL_TAKE_2_OR_MORE_SUB, \
      "inputs: add and mul take 2 or more, sub 2, the others 1", "node, line") \
    X(INPUTS_EACH_EXTENT, "inputs: each extent must be that of the first input, or 1", "node, line") \
    X(INPUT_MUST_HAVE_1_CHANNEL_ID, "input: must have 1 channel, the id", "node, line") \
    X(CHANNELS_VOCABULARY_MUST_BE_POSITIVE, "channels, vocabulary: must be > 0", "node, line") \
    X(INPUTS_THERE_MUST_BE_AT_LEAST_ONE, "inputs: there must be at least one", "node, line") \
    X(INPUTS_ALL_MUST_HAVE_SAME_BATCH_HEIGHT, \
      "inputs: all must have the same batch, height, width and precision", "node, line") \
    X(OUTPUT_COUNT_MUST_DIVIDE_CHANNELS, "output_count: must divide the channels of the input", "node, line") \
    X(CHANNELS_EACH_MUST_BE_POSITIVE, "channels: each must be > 0", "node, line") \
    X(CHANNELS_THEIR_SUM, "channels: their sum must be that of the input", "node, line") \
    X(OUTPUT_COUNT_MUST_BE_POSITIVE, "output_count: must be > 0", "node, line") \
    X(NO_MEMORY_FOR_ITS_OUTPUTS, "no memory for its outputs", "node, line") \
    X(INPUTS_QUERIES_KEYS_AND_VALUES_IN_ONE, \
      "inputs: queries, keys and values in one tensor are 3 x the channels", "node, line") \
    X(HEADS_MUST_DIVIDE_CHANNELS, "heads: must divide the channels", "node, line") \
    X(INPUTS_BATCH_AND_CHANNELS, \
      "inputs: batch and channels must be equal, and the tokens of the last two", "node, line") \
    X(INPUTS_THERE_MUST_BE_1_OR_3, "inputs: there must be 1 or 3", "node, line") \
    X(STATE_MUST_HAVE_BATCH_OF_INPUT_EQUAL, \
      "state: must have the batch of the input, equal channels and one position", "node, line") \
    X(INPUT_MUST_HAVE_ONE_POSITION, "input: must have one position", "node, line") \
    X(NO_MEMORY_TO_COUNT_IN, "no memory to count in", "") \
    X(BLOCK_BYTES_MUST_BE_MULTIPLE_OF_64, "block_bytes: must be a multiple of 64", "") \
    X(OP_MUST_NOT_BE_INPUT_AND_MUST_BE_1, "op: must not be input, and " TLI_NAME_RULE, "") \
    X(OPS_MISSING_OR_NEGATIVE_COUNT, "ops: missing, or a negative count", "") \
    X(INFERENCE_MUST_BE_0_OR_1, "inference: must be 0 or 1", "") \
    X(OPS_EACH_MUST_BE_1_TO_255_BYTES_OF_UTF, "ops: each " TLI_NAME_RULE, "") \
    X(NO_MEMORY_TO_FIND_CHAINS_IN, "no memory to find chains in", "") \
    X(TAKES_BLOCKS_INPUT_HAS_NO_KERNELS, "takes_blocks: an input has no kernels", "node, line") \
    X(TAKES_BLOCKS_SAVED_MUST_BE_0, \
      "takes_blocks: saved must be 0, nobody knows which part of it belongs to a range", "node, line") \
    X(TAKES_BLOCKS_OUTPUTS_MUST_HAVE_SAME_BYTES, \
      "takes_blocks: all outputs must have the same bytes", "node, line") \
    X(TAKES_BLOCKS_INPUTS_WITH_GRADIENT, \
      "takes_blocks: inputs to which a gradient passes must have the bytes of the outputs", "node, line") \
    X(BLOCKS_ONLY_MUST_BE_0_OR_1, "blocks_only: must be 0 or 1", "") \
    X(DYNAMIC_INPUT_HAS_NO_KERNELS, "dynamic: an input has no kernels", "node, line") \
    X(DYNAMIC_TAKES_NO_BLOCKS, "dynamic: such a node takes no blocks", "node, line") \
    X(DYNAMIC_READ_IN_NO_BLOCKS, \
      "takes_blocks: nobody knows how many elements an input of a dynamic node has", "node, line") \
    X(DYNAMIC_NOTHING_IN_PLACE, \
      "inplace: neither a dynamic node nor what one made is run in place", "node, line") \
    X(SWORK_MUST_BE_0_FOR_INPUT, "swork: must be 0 for an input", "node, line") \
    X(ONCE_INPUT_HAS_NO_FORWARD, "once: an input has no forward", "node, line") \
    X(DIES_IS_OF_INPUTS_THAT_ARE_NO_RESULTS, "dies: is of an input that is no result", "node, line") \
    X(ORIGIN_MUST_BE_NODE_OR_NONE, "origin: must name a node, or be -1", "node, line") \
    X(END_MUST_BE_THE_LAST_LINE, "nothing may follow the line that starts with end", "line") \
    X(END_MUST_BE_THE_NUMBER_OF_NODES, "must be followed by the number of the nodes above", "line") \
    X(END_MUST_HAVE_A_LINE_END, "the text was cut: the last line has no line end", "line") \
    X(TEXT_ENDS_BEFORE_ITS_END, "text: was cut: a tlg 2 ends with a line end and the number of nodes", "line") \
    X(INPUTS_MOMENTS_ARE_READ_BY_THE_UPDATE, \
      "in: moments of a state are read by its update alone", "node, line") \
    X(STATE_UPDATE_NEEDS_ITS_OUTPUTS, \
      "needs: the update of a state reads the weight and all moments", "node, line") \
    X(STATE_KIND_THERE_IS_NO_SUCH, "state: there is no such kind", "node, line") \
    X(STATE_OP_MUST_NOT_BE_INPUT, "op: that of a state is its update, not input", "node, line") \
    X(STATE_HAS_AN_UPDATE_EXACTLY_WHERE_TRAINED, \
      "grad: a state has an update exactly where it is trained", "node, line") \
    X(STATE_MOMENTS_ARE_OF_TRAINED_ONES, "m: a state that is not trained has no moments", "node, line") \
    X(STATE_IS_FIXED_AND_NO_RESULT, \
      "saved, keep, fixed: a state saves nothing, is no result, and is fixed", "node, line") \
    X(MOMENTS_MISSING_OR_NEGATIVE_COUNT, "moment_bytes: missing, or a count that is negative", "node, line") \
    X(STATE_IS_FROZEN_OR_STAT, "a state is one of hold, frozen, stat and piece", "line") \
    X(STATE_GRADIENT_HAS_THE_BYTES_OF_THE_WEIGHT, \
      "hold: the gradient has the bytes of the weight", "node, line") \
    X(UPDATES_THERE_IS_NO_SUCH_PLACE, "updates: there is no such place", "") \
    X(MOMENT_COUNT_MUST_BE_0_TO_16, "moment_count: must be 0 to 16", "") \
    X(KEEPS_WEIGHTS_MUST_BE_0_OR_1, "keeps_weights: must be 0 or 1", "") \
    X(CLIPS_NEEDS_UPDATES_AT_THE_END, "clips: must be 0 or 1, and 1 with updates at the end alone", "") \
    X(MUST_BE_NUMBER_FROM_1_TO_2_31_1, "must be a number from 1 to 2^31 - 1", "line") \
    X(WROWS_ARE_OF_WEIGHTS, "wrows: are of param= and states", "node, line") \
    X(WROWS_DIVIDE_WEIGHT_AND_MOMENTS, "wrows (weight_rows): must divide weight and moments", \
      "node, line") \
    X(PIECE_IS_1_TO_WROWS, "piece: must be 1 to wrows, of a state in pieces alone", \
      "node, line") \
    X(PIECES_HAVE_ONE_READER, "in: a state in pieces is read once", "node, line") \
    X(PIECES_READER_HAS_A_BACKWARD_AND_NO_BLOCKS, \
      "in: reads a state in pieces without a backward, or in blocks", \
      "node, line") \
    X(PIECES_NEED_BWORK, "bwork: must hold a piece of a gradient", "node, line") \
    X(PIECES_HOLD_NO_GRADIENT, "%s: its gradient is made in pieces, and cannot be held", "node") \
    X(ATTRIBUTE_IS_OF_TLG_2, "is an attribute of tlg 2", "line") \
    X(NEEDS_ROWS, "must stand beside rows", "line") \
    X(MUST_BE_A_NUMBER_OF_ROWS_AND_AN_AXIS, "must be a number of rows and their axis, like 64@0", "line") \
    X(MUST_BE_A_NUMBER_FROM_1_TO_2_64_1, "must be a number from 1 to 2^64 - 1", "line") \
    X(MUST_BE_ONE_RELATION_AN_INPUT, "must be one relation for each input", "line") \
    X(MUST_BE_RELATIONS_LIKE_1_1_OR_3_1_1, \
      "must be 1:1, whole, part, up<stride> or <kernel>/<stride>/<padding>[/<dilation>], for each input", \
      "line") \
    X(MUST_BE_ONE_FORMAT_AN_OUTPUT, "must be one format for each output", "line") \
    X(MUST_BE_ONE_FORMAT_A_MOMENT, "must be one format for each moment", "line") \
    X(MUST_BE_FORMATS_LIKE_F32_OR_I8, "must be f32, f16, bf16, i32, i16, i8, i4 or none", "line") \
    X(MUST_BE_CONSTANTS_LIKE_400_I8, "must be bytes and formats, like 400:i8", "line") \
    X(ROWS_ARE_MISSING, \
      "rows: must be > 0 where row_axis, relations, row_unit, ordered, reduces or stream are given", \
      "node, line") \
    X(ROWS_AXIS_MUST_BE_0_TO_7, "rows: the axis must be 0 to 7", "node, line") \
    X(ROWS_MUST_BE_POSITIVE, "rows, row_unit: must be > 0", "node, line") \
    X(ROWS_STATE_HAS_NONE, "rows: a state has none", "node, line") \
    X(ROWS_NOBODY_KNOWS_THOSE_OF_DYNAMIC, "rows: nobody knows those of a dynamic node", "node, line") \
    X(ROWS_OUTPUT_0_MUST_DIVIDE_BY_THEM, "rows: the bytes of output 0 must divide by them", "node, line") \
    X(ROWS_SAVED_MUST_DIVIDE_BY_THEM, "rows: the saved bytes must divide by them", "node, line") \
    X(ROW_UNIT_MUST_DIVIDE_ROWS, "row_unit: must divide rows", "node, line") \
    X(ORDERED_STREAM_MUST_BE_0_OR_1, "ordered, reduces, stream: must be 0 or 1", "node, line") \
    X(RIN_THERE_IS_NO_SUCH_RELATION, "rin: there is no such relation", "node, line") \
    X(RIN_WINDOW_MUST_HAVE_ROWS, "rin: the kernel of a window must be > 0", "node, line") \
    X(RIN_STRIDE_MUST_BE_POSITIVE, "rin: the stride must be > 0", "node, line") \
    X(RIN_DILATION_MUST_BE_POSITIVE, "rin: the dilation must be > 0", "node, line") \
    X(RIN_PADDING_MUST_BE_LESS_THAN_THE_WINDOW, \
      "rin: the padding must be at least 0, and less than the rows under a window", "node, line") \
    X(RIN_NUMBERS_ARE_OF_WINDOWS, \
      "rin: kernel, padding and dilation are of windows, the stride is of windows and up", "node, line") \
    X(REDUCES_IS_OF_NODES_BY_ROWS, "reduces: is of a node that is called by rows", "node, line") \
    X(LATE_IS_READ_BY_NO_NODE, "in: reads what a backward makes", "node, line") \
    X(LATE_IS_MADE_BY_A_BACKWARD, \
      "late: is of a node whose backward needs all of its outputs, without saved bytes", "node, line") \
    X(STREAM_IS_OF_INPUTS, "stream: is of a graph input", "node, line") \
    X(STREAM_IS_NO_RESULT, "stream: an input that is a result stays whole", "node, line") \
    X(STREAM_MUST_HAVE_ONE_READER, "stream: several nodes read it", "node, line") \
    X(FORMAT_THERE_IS_NO_SUCH, "format: there is no such one", "node, line") \
    X(FORMAT_HELD_GRADIENT_HAS_NONE, "format: the gradient that a state holds has none", "node, line") \
    X(STORED_MISSING_OR_NEGATIVE_COUNT, "stored: missing, or a negative count", "node, line") \
    X(STORED_INPUT_HAS_NONE, \
      "stored: an input has no constants; a frozen state of 0 bytes may be one", "node, line") \
    X(STORED_MUST_HAVE_BYTES, "stored: a constant must have bytes", "node, line") \
    X(STORED_MUST_HAVE_A_FORMAT, "stored: a constant must have a format", "node, line") \
    X(STORED_SUM_OF_ALL_CONSTANTS_MUST_FIT_64, \
      "stored: the sum of all constants must fit 64 bits", "node, line") \
    X(ATTRIBUTES_MISSING_OR_NEGATIVE_COUNT, "attributes: missing, or a negative count", "") \
    X(ATTRIBUTES_MUST_BE_IN_THE_ORDER_OF_NODES, \
      "attributes: must be in the order of nodes, with one relation for each input", "") \
    X(ATTRIBUTES_WERE_LEFT_OUT, "rows, formats, stored: TL_NO_TEXT left them out", "node, line") \
    X(NO_MEMORY_TO_FIND_READERS, "no memory to find the readers of streams", "") \
    X(FORMAT_NO_OTHER_THAN_F32, \
      "format: only tensors of f32 can be planned in other precisions", "node, line") \
    X(WROWS_MUST_NOT_BE_NEGATIVE, "wrows (weight_rows): must not be negative", "node, line") \
    X(INPLACE_STATE_MUST_NOT, "inplace: the weight of a state must not be overwritten", "node, line") \
    X(RIN_INPUT_HAS_ROWS_ALONG_ANOTHER_AXIS, "rin: an input has its rows along another axis", "node, line") \
    X(RIN_INPUT_HAS_ANOTHER_NUMBER_OF_ROWS, \
      "rin: an input that is read 1:1 has another number of rows", "node, line") \
    X(RIN_LAST_ROW_READS_BEHIND_INPUT, \
      "rin: what the last row reads begins behind the last row of an input", "node, line") \
    X(ALIGNMENT_BYTES_OF_RINGS_ARE_AT_MOST_2_30, "alignment_bytes: must be at most 2^30", "") \
    X(ROWS_NO_DIVISION_FITS_LEAST_IS_BYTES, \
      "budget_bytes: %0 bytes are too few for any regions of rows; the least is %1", "budget, least budget") \
    X(ROWS_NO_MEMORY_TO_FIND_REGIONS, "no memory to find regions of rows in", "") \
    X(CUTS_MISSING_OR_NEGATIVE_COUNT, "cuts: missing, or a negative count", "") \
    X(CUTS_ARE_IN_ORDER, "cuts: must be nodes of the graph, in its order, first to last", "") \
    X(CUT_BLOCKS_MUST_BE_POSITIVE, "block_count: must be > 0", "node") \
    X(CUT_NODE_IS_CALLED_AS_A_WHOLE, \
      "rows: a node of a region must have some, one output, and be neither dynamic, once nor a state", "node") \
    X(CUT_NODE_HAS_OTHER_ROWS, "rows: others than those of its region", "node") \
    X(CUT_NODE_HAS_ANOTHER_GRADIENT, "grad: all nodes of a region have a backward, or none has", "node") \
    X(CUT_NODE_SCALES_OTHERWISE, "fixed: all nodes of a region scale with the batch, or none does", "node") \
    X(CUT_RESULT_IS_THE_LAST, "keep: of a region, the last node alone can be a result", "node") \
    X(CUT_REDUCES_IS_THE_LAST, "reduces: of a region, the last node alone can", "node") \
    X(CUT_ADDS_IN_ANOTHER_ORDER, "ordered: is not, so in blocks its sums would have other bits", "node") \
    X(CUT_ADDS_TWICE, \
      "in: another node of the region adds to the gradient of what is read whole, so in blocks it would have " \
      "other bits", "node") \
    X(CUT_READS_STATISTICS, "in: reads statistics, which change once", "node") \
    X(CUT_READS_PIECES, "in: reads a state in pieces, whose gradient is never whole", "node") \
    X(CUT_READS_A_MEMBER_WHOLE, "rin: reads a node of its region whole", "node") \
    X(CUT_READS_WINDOWS, "rin: windows and up are of tl_plan_rows", "node") \
    X(CUT_INPUT_HAS_OTHER_ROWS, "rin: the bytes of an input do not divide by the rows", "node") \
    X(MAY_ROUND_MUST_BE_0_OR_1, "may_round: must be 0 or 1", "") \
    X(CUT_HAS_TOO_MANY_ROWS, "rows: of a region, must be at most 2147483647", "node") \
    X(PARTS_MUST_DIVIDE_THE_BATCH, "parts: must be > 0 and divide the batch of the graph", "") \
    X(PARTS_ADD_TO_GRADIENTS_THAT_ARE_HELD, \
      "parts: add to gradients, and not every trained state holds its own (tl_hold_gradients)", "") \
    X(PART_IS_NOT_OF_WHOLE_ELEMENTS, \
      "parts: its bytes do not divide into so many of whole elements, and it does not say fixed", "node")

// -- errors: rules of [4] LAYOUT --

#define TLI_LAYOUT_RULES(X) \
    X(BUFFER_COUNT_MUST_BE_AT_LEAST_0, "buffer_count: must be >= 0, and buffers not NULL where it is > 0", "") \
    X(BUFFER_LIFETIME_IS_REVERSED, "buffers[%0]: first_step must be <= last_step", "buffer") \
    X(BUFFER_ALIGNMENT_IS_NO_POWER, "buffers[%0].alignment: must be a power of two", "buffer") \
    X(BUFFER_PIN_IS_NOT_ALIGNED, "buffers[%0].pinned_offset: must be a multiple of the alignment", "buffer") \
    X(BUFFER_PIN_DOES_NOT_FIT, "buffers[%0].pinned_offset: the buffer ends above the capacity", "buffer") \
    X(BUFFER_PINS_OVERLAP, "buffers: two that are live at one step are pinned to the same bytes", "") \
    X(BUFFER_OVER_NAMES_NONE, "buffers[%0].over: must name another buffer", "buffer") \
    X(BUFFER_OVER_ENDS_AT_ANOTHER_STEP, \
      "buffers[%0].over: must begin earlier and end at the first step of this one; neither may be empty", \
      "buffer") \
    X(BUFFER_OVER_IS_TAKEN, "buffers[%0].over: another buffer lies over that one, too", "buffer") \
    X(BUFFERS_DO_NOT_FIT_61_BITS, "buffers[%0].bytes: all buffers, aligned, must fit 61 bits", "buffer") \
    X(BUFFERS_FIT_NO_LAYOUT, \
      "capacity_bytes: no layout fits; one of %0 bytes was found, none takes less than %1", \
      "height, bound") \
    X(NO_LAYOUT_WAS_FOUND, \
      "capacity_bytes: no layout was found that fits; one of %0 bytes was, none takes less than %1", \
      "height, bound") \
    X(NO_MEMORY_FOR_LAYOUT, "no memory to place buffers", "") \
    X(BUFFER_GAP_COUNT_MUST_BE_AT_LEAST_0, \
      "buffers[%0].gap_count: must be >= 0, and gaps not NULL where it is > 0", "buffer") \
    X(BUFFER_GAPS_ARE_OUT_OF_ORDER, \
      "buffers[%0].gaps: must lie in the lifetime, none reversed, each behind the one before it", \
      "buffer") \
    X(BUFFER_GAP_IS_NO_PART, "buffers[%0].gaps: what a gap leaves must be a part of the bytes", "buffer") \
    X(BUFFER_OVER_HAS_GAPS, "buffers[%0].over: neither buffer may have gaps", "buffer") \
    X(BANK_COUNT_MUST_BE_1_TO_32, "bank_count: must be 1 to 32, and banks not NULL", "") \
    X(BANK_ALIGNMENT_IS_NO_POWER, "banks[%0].alignment: must be a power of two", "bank") \
    X(ALLOWED_BANKS_DO_NOT_EXIST, "allowed[%0]: must name banks below bank_count", "buffer") \
    X(BUFFER_PIN_IS_IN_NO_BANK, \
      "buffers[%0].pinned_offset: none of its banks has that alignment and capacity", "buffer") \
    X(BUFFER_FITS_NO_BANK, "buffers[%0].bytes: a bank that it may live in must hold %1", "buffer, bytes") \
    X(COST_OF_BANKS_DOES_NOT_FIT_56_BITS, \
      "moved_bytes[%0]: all buffers, each in its dearest bank, must cost less than 2^56", "buffer") \
    X(BANK_IS_TOO_SMALL, \
      "banks[%0].capacity_bytes: too few for any plan; %1 would do, for what is live at step %s", \
      "bank, capacity") \
    X(NO_BANKS_WERE_FOUND, \
      "banks[%0].capacity_bytes: no plan was found; %1 would do, for what is live at step %s", \
      "bank, capacity") \
    X(BANKS_ARE_TOO_SMALL, \
      "banks[%0].capacity_bytes: too few, and in other banks, too; %1 would do, for what is live at step %s", \
      "bank, capacity") \
    X(NO_MEMORY_FOR_BANKS, "no memory to choose banks", "") \
    X(BUFFER_IN_BANKS_HAS_GAPS, "buffers[%0].gaps: buffers in banks have none", "buffer") \
    X(BUFFER_FITS_NO_BLOCK, "buffers[%0].bytes: %1 are more than block_bytes", "buffer, bytes") \
    X(BUFFER_ALIGNMENT_IS_NOT_THAT_OF_BLOCKS, \
      "buffers[%0].alignment: must divide block_bytes", "buffer") \
    X(BUFFER_PIN_IS_IN_TWO_BLOCKS, \
      "buffers[%0].pinned_offset: the buffer lies on both sides of a multiple of block_bytes", "buffer")

// -- errors: rules of [5] PLAN --

#define TLI_PLAN_RULES(X) \
    X(NO_MEMORY_FOR_STEPS, "no memory for the steps", "") \
    X(OFFSETS_FEWER_THAN_ALLOCATIONS, "offsets: fewer than allocations", "step, node") \
    X(OFFSETS_NOT_MULTIPLE_OF_ALIGNMENT, "offsets: not a multiple of the alignment", "step, node") \
    X(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64, "offsets: offset + bytes does not fit 64 bits", "step, node") \
    X(OFFSETS_TWO_LIVE_ALLOCATIONS_OVERLAP, "offsets: two live allocations overlap", "step, node") \
    X(LIVE_BYTES_DO_NOT_FIT_64_BITS, "live bytes do not fit 64 bits", "step, node") \
    X(ALLOCATIONS_DO_NOT_FIT_31_BITS, "allocations do not fit 31 bits", "step, node") \
    X(COST_DOES_NOT_FIT_64_BITS, "cost does not fit 64 bits", "step, node") \
    X(MAY_NOT_RUN_IN_PLACE, "may not run in place", "step, node") \
    X(INPUT_CANNOT_BE_OVERWRITTEN_IT, "input %s cannot be overwritten: it is being spilled", "step, tensor") \
    X(OUTPUT_0_IS_ALREADY_RESIDENT, "output 0 is already resident", "step, node") \
    X(READS_OVERWRITTEN_TENSOR_TWICE, "reads the overwritten tensor %s twice", "step, tensor") \
    X(INPUT_IS_NOT_RESIDENT, "input %s is not resident", "step, tensor") \
    X(OUTPUT_IS_BEING_FETCHED, "output %s is being fetched", "step, tensor") \
    X(OUTPUT_IS_COMPRESSED, "output %s is compressed", "step, tensor") \
    X(HAS_NO_SAVED_BYTES, "has no saved bytes", "step, node") \
    X(SAVED_BYTES_ARE_ALREADY_RESIDENT, "saved bytes are already resident", "step, node") \
    X(ALL_OUTPUTS_ARE_ALREADY_RESIDENT, "all outputs are already resident", "step, node") \
    X(NO_BACKWARD_IN_INFERENCE, "no backward in inference", "step, node") \
    X(HAS_NO_GRADIENT, "has no gradient", "step, node") \
    X(BACKWARD_ALREADY_RAN, "backward already ran", "step, node") \
    X(FORWARD_NEVER_RAN, "forward never ran", "step, node") \
    X(BACKWARD_OUT_OF_ORDER_NODE_IS_NEXT, "backward out of order: node %s is next", "step, node") \
    X(CONSUMER_HAS_NOT_RUN_BACKWARD, "consumer %s has not run backward", "step, node") \
    X(NEEDS_WHICH_IS_NOT_RESIDENT, "needs %s, which is not resident", "step, tensor") \
    X(NEEDS_ITS_SAVED_BYTES, "needs its saved bytes", "step, node") \
    X(HOST_HAS_ALREADY, "the host has %s already", "step, tensor") \
    X(HOST_HAS_NO_COPY_OF, "the host has no copy of %s", "step, tensor") \
    X(COPY_OF_IS_UNDER_WAY, "a copy of %s is under way", "step, tensor") \
    X(TENSOR_IS_ABSENT, "the tensor is absent", "step, node") \
    X(TENSOR_IS_RESIDENT, "the tensor is resident", "step, node") \
    X(TENSOR_IS_BEING_SPILLED, "the tensor is being spilled", "step, node") \
    X(TENSOR_IS_BEING_FETCHED, "the tensor is being fetched", "step, node") \
    X(TENSOR_IS_COMPRESSED, "the tensor is compressed", "step, node") \
    X(NO_OUTPUT_IS_IN_STATE_TO_ACT_ON, "no output is in a state to act on", "step, node") \
    X(NO_SUCH_KIND_OF_STEP, "no such kind of step", "step, node") \
    X(BEGINS_MUST_BE_0, "begins: must be 0, or 1 of F and B", "step, node") \
    X(NO_SUCH_NODE, "no such node", "step, node") \
    X(INPUT_NODES_TAKE_NO_STEPS, "input nodes take no steps", "step, node") \
    X(ACTS_ON_NODE_OUTPUT, "acts on a node: output must be TL_ALL_OUTPUTS", "step, node") \
    X(NO_SUCH_OUTPUT, "no such output", "step, node") \
    X(CODEC_MUST_BE_F16_BF16_OR_Q8_2, "codec must be f16, bf16 or q8", "step, node") \
    X(CODEC_IS_FOR_COMPRESS_ONLY, "codec is for COMPRESS only", "step, node") \
    X(SAVED_BYTES_ARE_NOT_RESIDENT, "saved bytes are not resident", "step, node") \
    X(STEPS_DO_NOT_FIT_31_BITS, "steps do not fit 31 bits", "step, node") \
    X(NODE_NEVER_RAN_BACKWARD, "node %s never ran backward", "step, node") \
    X(RESULT_IS_NOT_RESIDENT, "result %s is not resident", "step, tensor") \
    X(OFFSETS_MORE_THAN_ALLOCATIONS, "offsets: more than allocations", "step, node") \
    X(GRAPH_TOO_MANY_TENSORS, "graph: too many tensors", "step, node") \
    X(NO_MEMORY_FOR_SIMULATION, "no memory for the simulation", "") \
    X(STEP_COUNT_MUST_BE_NUMBER_OF_STEPS, "step_count: must be the number of steps", "") \
    X(OFFSET_COUNT_MUST_BE_NUMBER_OF_OFFSETS, "offset_count: must be the number of offsets", "") \
    X(REPEAT_COUNT_MUST_BE_NOT_NEGATIVE, "repeat_count: must be >= 0", "") \
    X(INFERENCE_ANY_ORDER_MUST_BE_0_OR_1, "inference, any_order: must be 0 or 1", "") \
    X(GRAPH_MUST_BE_CHAIN_INPUT_THEN_NODES, \
      "graph: must be a chain: an input, then nodes with one output and a gradient, each reading the last", \
      "") \
    X(SLOT_COUNT_MUST_BE_POSITIVE, "slot_count: must be > 0", "") \
    X(STEP_MUST_BE_F_I_S_B_D_DS_O_L_W_DH_C, "step: must be F, I, S, B, D, DS, O, L, W, DH, C or X", "line") \
    X(TARGET_MUST_BE_NODE_NUMBER_AS_IN_F_3, "target: must be a node number, as in F 3", "line") \
    X(TARGET_MUST_BE_NODE_NUMBER_OR_OUTPUT, \
      "target: must be a node number or an output, as in D 3.1", "line") \
    X(CODEC_MUST_BE_F16_BF16_OR_Q8, "codec: must be f16, bf16 or q8", "line") \
    X(MORE_WORDS_THAN_STEP_TAKES, "more words than the step takes", "line") \
    X(TEXT_LONGER_THAN_1_GIB, "text: longer than 1 GiB", "") \
    X(NO_MEMORY_TO_LOOK_AT_PEAK, "no memory to look at the peak", "") \
    X(NO_MEMORY_TO_COUNT_FORWARDS, "no memory to count forwards", "") \
    X(NAME_MUST_BE_1_TO_48_LETTERS_DIGITS, \
      "name: must be 1 to 48 letters, digits and single _, a letter first and no _ at the end", "") \
    X(DYNAMIC_LAYER_COUNT_MUST_BE_POSITIVE, "fraction: layer_count: must be > 0", "") \
    X(MEMORY_FRACTION_MUST_BE_IN_0_TO_1, "fraction: memory_fraction: must be in [0, 1]", "") \
    X(LAYERS_MISSING, "layers: missing", "") \
    X(LAYERS_IS_NOT_BELOW_NUMBER_OF_LAYERS, "layers: %0 is not below the number of layers", "layer") \
    X(NO_MEMORY_TO_SORT_LAYERS, "no memory to sort the layers", "") \
    X(LAYERS_IS_LISTED_TWICE, "layers: %0 is listed twice", "layer") \
    X(CHECKPOINT_ATTENTION_CHECKPOINT_FFN, "checkpoint_attention, checkpoint_ffn: must be 0 or 1", "") \
    X(INTERVAL_MUST_BE_POSITIVE, "every-n: interval: must be > 0", "") \
    X(DYNAMIC_LAYER_COUNT_MUST_BE_NUMBER, "fraction: layer_count: must be the number of layers, %0", "layer") \
    X(STRATEGY_THERE_IS_NO_SUCH_KIND, "strategy: there is no such kind", "") \
    X(NO_MEMORY_FOR_LAYERS, "no memory for the layers", "") \
    X(NO_MEMORY_FOR_SEARCH, "no memory for the search", "") \
    X(NO_KEPT_SET_HAS_PEAK_OF_AT_MOST_BYTES, \
      "%s: no kept set has a peak of at most %0 bytes, the least found is %1%s", "budget, least budget") \
    X(GRAPH_NO_NODE_CARRIES_LAYER_NUMBER, "graph: no node carries a layer number", "") \
    X(LAYER_COUNT_MUST_BE_THAT_OF_GRAPH, "layer_count: must be that of the graph, %0", "layer") \
    X(NO_MEMORY_FOR_KEPT_LAYERS, "no memory for the kept layers", "") \
    X(LAYER_COUNT_MUST_BE_BELOW_2_31_1, "layer_count: must be below 2^31 - 1", "") \
    X(THERE_MUST_BE, "there must be %s", "line, column") \
    X(THIS_STRATEGY_MUST_HAVE_ITS_FIELDS, "this strategy must have its fields", "line, column") \
    X(THERE_MUST_BE_STRATEGY, "there must be a strategy", "line, column") \
    X(EXPECTED_NULL, "expected null", "line, column") \
    X(THERE_MUST_BE_ONE_STRATEGY_ONLY, "there must be one strategy only", "line, column") \
    X(NO_MEMORY_FOR_LIFETIMES, "no memory for the lifetimes", "") \
    X(HOST_OFFSET_COUNT_MUST_BE_NUMBER_OF_OFFSETS, \
      "host_offset_count: must be the number of host offsets", "") \
    X(HOST_OFFSETS_FEWER_THAN_COPIES, "host_offsets: fewer than host copies", "step, node") \
    X(HOST_OFFSETS_MORE_THAN_COPIES, "host_offsets: more than host copies", "step, node") \
    X(NO_MEMORY_TO_NAME_NODES, "no memory to name the nodes", "") \
    X(COPY_MUST_NOT_BE_PLAN, "copy: must not be the plan itself", "") \
    X(SLOT_COUNT_MUST_BE_AT_MOST_65536, "slot_count: must be 0 to 65536", "") \
    X(NO_SUCH_SLOT, "no such micro-batch slot", "step, node") \
    X(HOST_BYTES_DO_NOT_FIT_64_BITS, "host bytes do not fit 64 bits", "step, node") \
    X(SLOT_MUST_BE_NUMBER_AS_IN_F_3_1, "slot: must be a number up to 65535, as in F 3@1", "line") \
    X(ENTRY_COUNT_MUST_BE_NUMBER_OF_TENSORS, "entry_count: must be the number of tensors in entry", "") \
    X(ENTRY_NAMES_NO_NODE, "entry: number %0 names no node of the graph", "entry, node") \
    X(ENTRY_NAMES_GRAPH_INPUT, \
      "entry: number %0 names a graph input, which is resident anyway", "entry, node") \
    X(ENTRY_NAMES_NO_OUTPUT, "entry: number %0 names no output of its node", "entry, node") \
    X(ENTRY_NAMES_NO_SLOT, "entry: number %0 names no micro-batch slot of the plan", "entry, node") \
    X(ENTRY_NAMES_TENSOR_TWICE, "entry: number %0 names a tensor that is in it already", "entry, node") \
    X(ENTRY_MUST_BE_OUTPUT_AS_IN_E_3_0, "entry: must be an output, as in E 3.0", "line") \
    X(ENTRY_MUST_STAND_BEFORE_STEPS, "entry: must stand before the first step", "line") \
    X(BLOCK_COUNT_MUST_BE_NUMBER_OF_BLOCKS, "block_count: must be the number of blocks", "") \
    X(BLOCK_IS_OF_NO_BANK, "blocks: %0 is of no tier or bank that a plan can have", "block") \
    X(BLOCK_LEAVES_TIER, "blocks: %0 is empty, is not aligned or leaves its tier", "block") \
    X(BLOCKS_OVERLAP, "blocks: %0 does not begin behind the one before it", "block") \
    X(OFFSETS_CROSS_BLOCK, "offsets: an allocation is not inside of one block", "step, node") \
    X(BANK_HOLDS_NO_BLOCKS, "banks: no blocks were found that fit bank %0, which has %1 bytes", "bank, bytes") \
    X(PLACES_BANK_COUNT_MUST_BE_0_TO_8, "bank_count: must be 0 to 8, the number of banks", "") \
    X(BANKS_TL_NO_PLANNERS_LEFT, "banks: TL_NO_PLANNERS left out the choice of banks", "") \
    X(BLOCK_BYTES_LESS_THAN_ALIGNMENT, "block_bytes: %0 bytes are less than the alignment, %1", \
      "bytes, alignment") \
    X(ALLOCATION_LARGER_THAN_BLOCK, "block_bytes: an allocation of node %s takes %1 bytes, a block has %0", \
      "block, bytes") \
    X(NARROW_MUST_HAVE_WIDTHS_AND_UNIT, \
      "narrow: step_words must be 2 or 3, offset_bytes 2 or 4, unit_bytes > 0", "") \
    X(NARROW_TABLE_HAS_TOO_MANY_NODES, "is_narrow: the graph has more than 65536 nodes", "") \
    X(NARROW_TABLE_HAS_TOO_MANY_OUTPUTS, "is_narrow: node %0 has more than 254 outputs", "node") \
    X(NARROW_TABLE_HAS_TOO_LARGE_ARENA, \
      "is_narrow: in no unit that offsets have in common do all fit 32 bits", "") \
    X(NARROW_OMIT_NAMES_MUST_BE_0_OR_1, "is_narrow, omit_names: must be 0 or 1", "") \
    X(HOST_HAS_A_COPY_OF_BEFORE, "makes %s, of which the host has a copy", "step, tensor") \
    X(MAY_RUN_ONCE_ONLY, "may run once only", "step, node") \
    X(REVOLVE_RUNS_NODES_AGAIN, "graph: a node may run once only, and this schedule runs nodes again", "") \
    X(IN_FLIGHT_MUST_BE_NOT_NEGATIVE, "in_flight: must be >= 0", "") \
    X(IN_FLIGHT_MUST_STAND_FIRST, "in_flight: must stand once, before everything else", "line") \
    X(IN_FLIGHT_MUST_BE_NUMBER_AS_IN_K_4, "in_flight: must be a number above 0, as in K 4", "line") \
    X(NO_MEMORY_TO_REPLAY, "no memory to replay the plan", "") \
    X(COPY_MUST_NOT_BE_NULL, "copy: must not be NULL: step %0 copies or converts", "step, node") \
    X(CALLER_STOPPED_REPLAY, "%s: returned an error before the first step or at step %0", "step, node") \
    X(CODE_FORM_UNKNOWN_VALUE, "form: unknown value", "") \
    X(CODE_STATE_COUNT_MUST_BE_0_TO_16, "state_count: must be 0 to 16", "") \
    X(CODE_PLAN_HAS_NO_OFFSETS, "plan: has no offsets; tl_plan_places gives it some", "") \
    X(CODE_TABLE_NEEDS_WIDER_WORDS, "form: the words of a table of this plan do not fit 32 bits", "") \
    X(NO_MEMORY_TO_WRITE_CODE, "no memory to write the code", "") \
    X(BEGINS_ONE_STEP_UNDER_WAY, "begins: in_flight must be 0 or 1", "step, node") \
    X(BEGINS_ALL_OUTPUTS, "a call that is begun makes all outputs, and none of them again", "step, node") \
    X(BEGINS_NO_SCRATCH, "a call that is begun has no scratch, and no saved bytes", "step, node") \
    X(CALL_IS_UNDER_WAY, "a call of this node is under way", "step, node") \
    X(CALL_UNDER_WAY_READS, "a call under way reads %s", "step, tensor") \
    X(CALL_UNDER_WAY_WRITES_GRADIENT, "a call under way writes the gradient of %s", "step, tensor") \
    X(WAIT_FOR_A_CALL_IS_OF_THE_NODE, "output: a call ends for the whole node", "step, node") \
    X(BEGINS_LAST_WORD, "the last word of F and B may be begin", "line") \
    X(PLAN_BEGINS_CALLS, "plan: begins calls that other steps end", "step, node") \
    X(CALL_HAS_NOT_ENDED, "no W ends the call of %s", "step, node") \
    X(ALLOCATIONS_DO_NOT_FIT_61_BITS, "places: all allocations together, aligned, must fit 61 bits", "") \
    X(READS_STATE_AFTER_ITS_UPDATE, "reads %s of a state that was updated in this pass", "step, tensor") \
    X(STATES_TAKE_UPDATES_ALONE, "a state takes no step but its update, B", "step, node") \
    X(REPEATED_STATE_HOLDS_NO_GRADIENT, \
      "repeat_count: above 1, and state %s does not hold its gradient (tl_hold_gradients)", "step, node") \
    X(CODE_TABLE_UPDATES_IN_EVERY_BATCH, \
      "form: a table has no updates that only the last micro-batch runs: ask for calls", "") \
    X(STATE_IS_THE_SAME_IN_ALL_SLOTS, \
      "slot_count: above 1, and state %s is the same for all micro-batches, which needs one slot", \
      "step, node") \
    X(CODE_ROWS_ARE_OF_ONE_PASS_FORWARD, "rows: go with plans of forwards alone, without slots", "") \
    X(CODE_ROWS_ARE_OF_TL_PLAN_ROWS, "rows: those of tl_cut_rows have no code", "") \
    X(CODE_ROWS_OR_ELEMENTS, "nodes of one op are called for rows, and for elements", "node, line") \
    X(CODE_ROWS_FIT_28_BITS, "rows: a number of a region does not fit 28 bits", "node, line") \
    X(CODE_ROWS_NOT_OF_THE_GRAPH, \
      "rows: not made of the graph, or for less than the alignment of the plan", "") \
    X(CODE_ROWS_TL_NO_PLANNERS_LEFT_THEM_OUT, "rows: TL_NO_PLANNERS left their code out", "") \
    X(CODE_FORMAT_IS_NOT_ALIGNED, \
      "plan: a tensor of node %s lies at %0, which is no multiple of the %1 bytes of its format", \
      "offset, bytes")

// -- errors: rules of [6] REMAT --

#define TLI_REMAT_RULES(X) \
    X(BYTES_ARE_TOO_FEW_FOR_ANY_PLAN, \
      "%s: %0 bytes are too few for any plan; the least that one was found for is %1%s", \
      "budget, least budget") \
    X(NO_PLAN_WAS_FOUND_FOR_BYTES, \
      "%s: no plan was found for %0 bytes; the least that one was found for is %1%s", "budget, least budget") \
    X(HOST_BUDGET_BYTES_TL_NO_OFFLOAD_LEFT, \
      "host_budget_bytes: TL_NO_OFFLOAD left out plans with copies to a host", "") \
    X(GRAPH_BYTES_MUST_FIT_60_BITS_COSTS, "graph: bytes must fit 60 bits, costs of forwards 56", "") \
    X(NO_MEMORY_TO_PLAN, "no memory to plan", "") \
    X(NO_PERSISTENT_SCHEDULE_FITS_BELOW, \
      "%s: no persistent schedule fits below %1 bytes, which node %s takes", "budget, least budget") \
    X(NO_PERSISTENT_SCHEDULE_FOUND_BELOW, \
      "%s: no persistent schedule found below %1 bytes, which node %s takes", "budget, least budget") \
    X(GRAPH_COSTS_TIMES_STAGES_MUST_FIT_62, "graph: costs times stages must fit 62 bits", "") \
    X(NUMBER_OF_FORWARDS_DOES_NOT_FIT_64, "the number of forwards does not fit 64 bits", "") \
    X(POLICY_NEEDS_BYTES, "%s: %s needs %1 bytes%s", "budget, least budget") \
    X(POLICY_THERE_IS_NO_SUCH_ONE, "policy: there is no such one", "") \
    X(POLICY_MUST_BE_KEEP_ALL_FOR_INFERENCE, \
      "policy: must be keep-all for inference: without backwards there is nothing to keep", "") \
    X(GRAPH_COST_OF_PLAN_DOES_NOT_FIT_64, "graph: the cost of the plan does not fit 64 bits", "") \
    X(FORM_THERE_IS_NO_SUCH_ONE, "form: there is no such one", "") \
    X(HOST_BUDGET_BYTES_NEEDS_FORM_ANY, \
      "host_budget_bytes: needs the form any: no other copies to a host", "") \
    X(NO_MEMORY_FOR_POOL, "no memory for the pool", "") \
    X(POOL_OF_ANOTHER_GRAPH, \
      "pool: it holds plans of another graph, other costs (as of each rehearsal), pass, host budget or link", \
      "") \
    X(ALIGNMENT_MUST_BE_POWER_OF_TWO, "alignment_bytes: must be a power of two, at most 2^30", "") \
    X(LIVE_MUST_BE_0_OR_1, "live: must be 0 or 1", "") \
    X(LEAST_BUDGET_DOES_NOT_FIT_64_BITS, "base_bytes: with what a plan takes they do not fit 64 bits", "") \
    X(GRAPH_BYTES_MUST_FIT_62_BITS, "graph: bytes, rounded up to the alignment, must fit 62 bits", "") \
    X(CODEC_THERE_IS_NO_SUCH_ONE, "codec: unknown kind of compression", "") \
    X(CODEC_NEEDS_TRAINING, "codec: needs training and the form any: results are never compressed", "") \
    X(CODEC_TL_NO_OFFLOAD_LEFT, "codec: TL_NO_OFFLOAD left out plans with compressed copies", "") \
    X(IN_FLIGHT_NEEDS_PLACES, "in_flight: must be >= 0, and 0 or 1 with live", "") \
    X(CHAIN_STATES_ARE_UPDATED_BEHIND_THEIR_READERS, \
      "graph: a state is not updated right behind its only reader, so tl_plan_remat plans it", "") \
    X(ROWS_BUDGET_IS_TOO_SMALL, \
      "budget_bytes: %0 bytes are too few with any regions of rows that were tried; the least is %1", \
      "budget, least budget") \
    X(PIECES_BUDGET_IS_TOO_SMALL, \
      "budget_bytes: %0 are too few, with gradients in pieces, too; the least that were found are %1", \
      "budget, least budget") \
    X(CODEC_COMPRESSES_F32_ALONE, \
      "format: codecs compress tensors of f32 alone, so mark others lossless", "node, line")

// -- errors: rules of [7] PRECISION --

#define TLI_PRECISION_RULES(X) \
    X(LOW_HIGH_MUST_BE_WITHIN_32768_TO_65535, "low, high: must be within -32768 .. 65535", "channel") \
    X(LOW_MUST_BE_BELOW_HIGH, "low: must be < high", "channel") \
    X(LOW_HIGH_MUST_BE_OF_AT_MOST_16_BITS, "low, high: must be of at most 16 bits", "channel") \
    X(RULE_NO_SUCH_RULE, "rule: no such rule", "") \
    X(LEAST_MUST_BE_FINITE, "least: must be finite", "") \
    X(MOST_MUST_BE_FINITE, "most: must be finite", "") \
    X(LEAST_MUST_BE_AT_MOST_MOST, "least: must be <= most", "") \
    X(LOW_MUST_BE_AT_MOST_HIGH_UNDER_NARROW, "low: must be <= -high under narrow", "") \
    X(LOW_HIGH_MUST_HOLD_0_UNDER_WIDE, "low, high: must hold 0 under wide", "") \
    X(HIGH_MUST_BE_POSITIVE_UNDER_HALF, "high: must be > 0 under half", "") \
    X(MOST_MOST_LEAST_DOES_NOT_FIT_F32, "most: most - least does not fit f32", "") \
    X(SCALE_MUST_BE_FINITE_AND_POSITIVE, "scale: must be finite and > 0", "channel") \
    X(ZERO_POINT_MUST_BE_WITHIN_LOW_TO_HIGH, "zero_point: must be within low .. high", "channel") \
    X(ROUNDING_NO_SUCH_ROUNDING, "rounding: no such rounding", "channel") \
    X(LOW_HIGH_ARE_MORE_THAN_I8_HOLDS, "low, high: are more than i8 holds", "channel") \
    X(LOW_HIGH_ARE_MORE_THAN_I16_HOLDS, "low, high: are more than i16 holds", "channel") \
    X(CHANNEL_COUNT_MUST_BE_POSITIVE, "channel_count: must be > 0", "") \
    X(INNER_COUNT_MUST_BE_POSITIVE, "inner_count: must be > 0", "") \
    X(FORMAT_MUST_BE_I8_OR_I16, "format: must be i8 or i16", "") \
    X(QUANTIZATIONS_MUST_NOT_BE_NULL, "quantizations: must not be NULL", "") \
    X(FROM_TO_MUST_NOT_BE_NULL, "from, to: must not be NULL", "") \
    X(COUNT_MUST_BE_POSITIVE, "count: must be > 0", "curve") \
    X(FROM_VALUE_IS_NOT_FINITE, "from: a value is not finite", "") \
    X(FROM_MOST_LEAST_DOES_NOT_FIT_F32, "from: most - least does not fit f32", "") \
    X(MUST_BE_FINITE_AND_POSITIVE, "a: must be finite and > 0", "") \
    X(B_MUST_BE_FINITE_AND_POSITIVE, "b: must be finite and > 0", "") \
    X(C_MUST_BE_FINITE_AND_POSITIVE, "c: must be finite and > 0", "") \
    X(WEIGHTS_MUST_BE_FINITE_AND_NOT, "weights: must be finite and >= 0", "") \
    X(WEIGHTS_MUST_NOT_ALL_BE_0, "weights: must not all be 0", "") \
    X(DATA_MUST_NOT_BE_NULL, "data: must not be NULL", "") \
    X(DATA_VALUE_IS_NOT_FINITE, "data: a value is not finite", "") \
    X(FORMAT_MUST_BE_F32_F16_OR_BF16, "format: must be f32, f16 or bf16", "") \
    X(KIND_NO_SUCH_OBSERVER, "kind: no such observer", "") \
    X(CHANNEL_COUNT_MUST_BE_NOT_NEGATIVE, "channel_count: must be >= 0", "") \
    X(RATE_MUST_BE_POSITIVE_AND_AT_MOST_1, "rate: must be > 0 and <= 1", "") \
    X(PERCENTILE_RATIO_MUST_BE_POSITIVE, "percentile_ratio: must be > 0 and <= 1", "") \
    X(HIGH_MUST_BE_WITHIN_1_TO_32767, "high: must be within 1 .. 32767", "") \
    X(BIN_COUNT_MUST_BE_POWER_OF_TWO_WITHIN, "bin_count: must be a power of two within 128 .. 8192", "") \
    X(NO_MEMORY_FOR_CHANNELS, "no memory for the channels", "") \
    X(COUNT_CHANNEL_TAKES_AT_MOST_2_48, "count: a channel takes at most 2^48 values", "") \
    X(OBSERVER_HISTOGRAM_NEEDS_DATA, "observer: a histogram needs the data", "") \
    X(CHANNEL_NO_SUCH_CHANNEL, "channel: no such channel", "") \
    X(OTHER_MUST_BE_OF_SAME_DESC, "other: must be of the same desc", "") \
    X(CHANNEL_HAS_SEEN_NOTHING, "channel: %0 has seen nothing", "channel") \
    X(OBSERVER_HAS_NO_HISTOGRAM, "observer: has no histogram", "") \
    X(DESC_MUST_BE_OF_ONE_CHANNEL, "desc: must be of one channel", "") \
    X(OP_MUST_NOT_BE_EMPTY, "op: must not be empty", "row") \
    X(MOST_ELEMENTS_MUST_BE_AT_LEAST, "most_elements: must be >= least_elements", "row") \
    X(SCHEMES_UNKNOWN_BIT, "schemes: unknown bit", "row") \
    X(LOSS_MUST_BE_FINITE_AND_NOT_NEGATIVE, "loss: must be finite and >= 0", "row") \
    X(SPEEDUP_MUST_BE_FINITE_AND_POSITIVE, "speedup: must be finite and > 0", "node, line") \
    X(LOSS_SPEEDUP_MUST_BE_0_AND_1_FOR_F32, "loss, speedup: must be 0 and 1 for f32", "row") \
    X(RECOMMENDED_MUST_BE_ONE_OF_ITS_SCHEMES, "recommended: must be one of its schemes", "row") \
    X(SENSITIVE_MUST_BE_0_OR_1, "sensitive: must be 0 or 1", "row") \
    X(PROFILE_COUNT_MUST_BE_NOT_NEGATIVE, "profile_count: must be >= 0", "") \
    X(PROFILES_MUST_NOT_BE_NULL_WHERE_THERE, "profiles: must not be NULL where there are some", "") \
    X(NEVER_FITS_ROW_ABOVE_IT_ALWAYS_DOES, "never fits: a row above it always does", "row") \
    X(CRITERION_UNKNOWN, "criterion: unknown", "") \
    X(OBJECTIVE_UNKNOWN, "objective: unknown", "") \
    X(LOSS_SOURCE_UNKNOWN, "loss_source: unknown", "") \
    X(LOSS_LIMIT_MUST_BE_NOT_NEGATIVE, "loss_limit: must be >= 0 and a number", "") \
    X(LEAST_SPEEDUP_MUST_BE_FINITE_AND_NOT, "least_speedup: must be finite and >= 0", "") \
    X(TRAINING_ALLOW_SENSITIVE_ALLOW_UNKNOWN, \
      "training, allow_sensitive, allow_unknown, any_result: must be 0 or 1", "") \
    X(SCHEMES_TRAINING_TAKES_F32_F16, "schemes: training takes f32, f16 and bf16 alone", "") \
    X(PERFORMANCE_WEIGHT_ACCURACY_WEIGHT, "performance_weight, accuracy_weight: must be finite and >= 0", "") \
    X(PRIORITIES_MUST_BE_FINITE, "priorities: must be finite", "") \
    X(ROUND_LIMIT_MUST_BE_NOT_NEGATIVE, "round_limit: must be >= 0", "") \
    X(NODE_SCHEMES_UNKNOWN_BIT, "node_schemes: unknown bit", "node, line") \
    X(LOSSES_MUST_BE_FINITE_AND_NOT_NEGATIVE, "losses: must be finite and >= 0, or NaN", "node, line") \
    X(LOSSES_MUST_BE_0_FOR_F32_OTHERS_ARE, \
      "losses: must be 0 for f32: others are compared with it", "node, line") \
    X(SCHEMES_NONE_IS_LEFT_OF_THOSE, "schemes: none is left of those that its op can have", "node, line") \
    X(GRAPH_NODES_AND_RESULTS_MUST_BE_AT, "graph: nodes and results must be at most 2^24", "") \
    X(NO_MEMORY_FOR_CHOICE, "no memory for the choice", "") \
    X(GRAPH_SUM_OF_COSTS_AND_CONVERSIONS, "graph: the sum of costs and conversions must fit 60 bits", "") \
    X(LOSSES_SUM_OF_LARGEST_MUST_BE_FINITE, "losses: the sum of the largest must be finite", "") \
    X(LOSS_LIMIT_IS_TOO_SMALL_BESIDE_LOSSES, \
      "loss_limit: is too small beside the losses of so many nodes", "") \
    X(LOSS_LIMIT_CANNOT_BE_HELD_LEAST_LOSS, \
      "loss_limit: %s cannot be held: the least loss is %s", \
      "loss_limit as f64 bits, least loss as f64 bits") \
    X(LEAST_SPEEDUP_CANNOT_BE_HELD_AT_MOST, \
      "least_speedup: %s cannot be held: at most %s can be reached%s", "cost in f32, least cost") \
    X(LEAST_SPEEDUP_WAS_NOT_FOUND_AT_MOST, \
      "least_speedup: %s was not found: at most %s was%s", "cost in f32, least cost") \
    X(EVALUATE_FAILED, "evaluate: failed: %s", "result") \
    X(EVALUATE_LOSS_IS_NOT_NUMBER, "evaluate: the loss is not a number", "") \
    X(LOSS_LIMIT_CANNOT_BE_HELD_EVALUATE, \
      "loss_limit: %s cannot be held: evaluate measured %s for the choice of the least loss", \
      "loss_limit as f64 bits, measured loss as f64 bits") \
    X(NO_MEMORY_FOR_PLAN, "no memory for the plan", "") \
    X(NO_MEMORY_FOR_POINTS, "no memory for the points", "") \
    X(POINT_LIMIT_MUST_BE_0_OR_2_AND_MORE, "point_limit: must be 0, or 2 and more", "") \
    X(EVALUATE_MUST_NOT_BE_NULL, "evaluate: must not be NULL", "") \
    X(EVALUATE_NODE_IN, "evaluate: node %0 (%s) in %s: %s", "node, scheme") \
    X(EVALUATE_NODE_IN_LOSS_IS_NOT_FINITE, \
      "evaluate: node %0 (%s) in %s: the loss is not finite", "node, scheme") \
    X(SCHEME_THERE_IS_NO_SUCH, "scheme: there is no such", "node, line") \
    X(SCHEME_GRAPH_INPUT_MUST_BE_F32, "scheme: a graph input must be f32", "node, line") \
    X(TRAINING_ANY_RESULT_MUST_BE_0_OR_1, "training, any_result, any_input: must be 0 or 1", "") \
    X(PLAN_NODES_THERE_MUST_BE_ONE_FOR_EACH, "plan: nodes: there must be one for each node of the graph", "") \
    X(DEVICE_TIME_OF_CONVERSION_MUST_FIT_64, \
      "device: the time of a conversion must fit 64 bits", "node, line") \
    X(SPEEDUP_COST_MUST_FIT_64_BITS, "speedup: the cost must fit 64 bits", "node, line") \
    X(NO_MEMORY_FOR_NEW_GRAPH, "no memory for the new graph", "") \
    X(ALLOW_F16_MUST_BE_0_OR_1, "allow_f16: must be 0 or 1", "") \
    X(NAME_MUST_NOT_BE_EMPTY, "name: must not be empty", "") \
    X(RUN_MUST_NOT_BE_NULL, "run: must not be NULL", "") \
    X(NOW_NS_MUST_NOT_BE_NULL, "now_ns: must not be NULL", "") \
    X(RUN_NODE_FAILED, "run: node %s: %s", "result") \
    X(CONVERT_TENSOR_FAILED, "convert: %s: %s", "result") \
    X(NO_MEMORY_FOR_TIMES, "no memory for the times", "") \
    X(BATCH_COUNT_MUST_BE_POSITIVE, "batch_count: must be > 0", "") \
    X(ROW_COUNT_MUST_BE_POSITIVE, "row_count: must be > 0", "") \
    X(FIND_TENSOR_MUST_NOT_BE_NULL, "find_tensor: must not be NULL", "") \
    X(SAMPLE_COUNTS_MUST_BE_POSITIVE, "sample: counts must be > 0", "") \
    X(SAMPLE_VALUE_IS_NOT_FINITE, "sample: a value or gradient is not finite", "") \
    X(FIND_TENSOR_FAILED, "find_tensor: failed: %s", "result") \
    X(FIND_WEIGHTS_FAILED, "find_weights: failed: %s", "result") \
    X(RUN_FAILED, "run: failed: %s", "result") \
    X(NO_MEMORY_FOR_SUMS, "no memory for the sums", "") \
    X(INPUT_SCHEMES_ARE_FORMATS_OF_INPUTS, \
      "input_schemes: of graph inputs alone, f32, f16, bf16, i16 and i8", "node, line") \
    X(PRECISION_HAS_WHAT_LIMITS_REPLACE, \
      "precision: training, criterion, objective, least_speedup, priorities and evaluate must be 0", "") \
    X(MINIMIZED_UNKNOWN, "minimized: unknown", "") \
    X(ARENA_LIMIT_MUST_NOT_BE_NEGATIVE, "arena_limit: must be >= 0", "") \
    X(LIMITS_CANNOT_BE_HELD_TOGETHER, \
      "ram_bytes: no choice was found within all limits; the least of each within the others: ram %s, " \
      "flash %s, loss %s, cost %s", "budget, least budget") \
    X(STORED_CHANNELS_ARE_NOT_KNOWN, \
      "stored: biases must tell how many channels the weights have", "node, line") \
    X(STORED_SUM_OF_W4A8_IS_TOO_LONG, \
      "stored: a sum of w4a8 has more than 8192 products, which 32 bits do not hold", "node, line")

// -- errors: rules of [8] PARALLEL --

#define TLI_PARALLEL_RULES(X) \
    X(UNIT_COUNT_MUST_BE_POSITIVE, "units, unit_count: there must be at least one", "") \
    X(RANK_COUNT_MUST_BE_POSITIVE, "rank_count: must be > 0", "") \
    X(RANK_COUNT_EXCEEDS_UNITS, \
      "rank_count: %0 ranks, but %1 units; only stages that may be replicated use more ranks than units", \
      "ranks, units") \
    X(STAGE_COUNT_NOT_UP_TO_RANKS, "stage_count: must be 0 to %0, the lesser of ranks and units", "most") \
    X(MICRO_BATCH_COUNT_MUST_BE_POSITIVE, "micro_batch_count: must be > 0", "") \
    X(PIPELINE_KIND_OF_PARTITION, "pipeline: must be 1f1b or gpipe", "") \
    X(PARTITION_OBJECTIVE_UNKNOWN, "objective: unknown kind", "") \
    X(REPLICATION_UNKNOWN, "replication: unknown kind", "") \
    X(REPLICATION_NEEDS_LINK, "replication: needs a link", "") \
    X(REPLICA_LIMIT_MUST_BE_NOT_NEGATIVE, "replica_limit: must be >= 0", "") \
    X(LINK_RATE_MUST_BE_POSITIVE, "link: bytes_per_second must be > 0", "") \
    X(UNITS_SUMS_MUST_FIT_62_BITS, "units: bytes and times of all of them must fit 62 bits", "") \
    X(NO_MEMORY_TO_PARTITION, "no memory to partition", "") \
    X(WORK_LIMIT_IS_TOO_LOW_FOR_STAGES, "work_limit: too low for so many stages and ranks", "") \
    X(NO_CUT_FITS, "%s: no cut into stages fits; %1 bytes on every rank would do, which units %s take", \
      "budget, least budget") \
    X(NO_CUT_FITS_AT_ALL, "no cut into stages fits, and for no units it is known how many bytes would do", "") \
    X(MEASURE_FAILED, "measure: %s", "first unit, end unit") \
    X(PIPELINE_UNKNOWN, "kind: unknown kind", "") \
    X(CHUNK_COUNT_ONLY_INTERLEAVED, "chunk_count: interleaved needs 2 or more, other kinds 0 or 1", "") \
    X(MICRO_BATCHES_NOT_MULTIPLE_OF_RANKS, \
      "micro_batch_count: %0 is not a multiple of %1 ranks, as interleaved needs", "micro-batches, ranks") \
    X(PIPELINE_EVENTS_MUST_FIT_31_BITS, "micro_batch_count: the calls of all ranks must fit 31 bits", "") \
    X(RANK_IS_NOT_BELOW_COUNT, "rank: there is no such one", "") \
    X(PIPELINE_SUMS_MUST_FIT_62_BITS, \
      "forward_ns, backward_ns, output_bytes, activation_bytes: of all calls together must fit 62 bits", \
      "") \
    X(NO_MEMORY_FOR_PIPELINE, "no memory for the pipeline", "") \
    X(REPLICA_COUNT_MUST_BE_POSITIVE, "replica_limit, replica_count: must be > 0", "") \
    X(ZERO_STAGE_MUST_BE_0_TO_2, "zero_stage: must be 0, 1 or 2", "") \
    X(SAMPLE_COUNT_OF_REPLICAS, "sample_count: must be 0, or at least the number of replicas", "") \
    X(WEAK_MUST_BE_0_OR_1, "is_weak: must be 0 or 1", "") \
    X(REPLICA_SUMS_MUST_FIT_62_BITS, "times and bytes of a step must fit 62 bits", "") \
    X(NO_REPLICAS_FIT, "%s: no number of replicas fits; the least bytes of a rank are %1, with %s replicas", \
      "budget, least budget") \
    X(PLACEMENT_NODES_MISSING, "nodes, node_count: there must be at least one", "") \
    X(PLACEMENT_EDGE_IS_WRONG, "edges: edge %0 must lead from a node to a later one", "edge") \
    X(PLACEMENT_EDGES_DIFFER, "edges: edge %0 has other bytes than another with the same output", "edge") \
    X(PLACEMENT_SUMS_MUST_FIT_62_BITS, "nodes, edges: costs, transfers and bytes must fit 62 bits", "") \
    X(NO_MEMORY_FOR_PLACEMENT, "no memory for the placement", "") \
    X(NO_PLACEMENT_FITS, "%s: no placement was found; %1 bytes on every rank would do", \
      "budget, least budget") \
    X(KINDS_UNKNOWN_OR_NONE, "kinds: must be bits of none, data, model and pipeline; model needs a graph", "") \
    X(CHUNK_LIMIT_MUST_BE_NOT_NEGATIVE, "chunk_limit: must be >= 0", "") \
    X(GRAPH_OF_OTHER_RANKS, \
      "graph: rank_count, budget_bytes and link must be those of the desc, and ranks 0", "") \
    X(GRAPH_OF_OTHER_COST, "graph: the costs of its nodes are %0, those of the units %1", "graph, units") \
    X(NO_MEMORY_FOR_CHOICES, "no memory for the choices", "") \
    X(NO_CHOICE_FITS, "%s: no way to split the work fits; the least bytes found for a rank are %1", \
      "budget, least budget")

// -- errors: rules of [9] COMPILE --

#define TLI_COMPILE_RULES(X) \
    X(STRATEGY_MODE_EAGER_HAS_NO_PLAN, \
      "strategy.mode: eager decides in the run; lazy and hybrid have a plan", "") \
    X(STRATEGY_PARALLELISM_ONE_WORKER, \
      "strategy.parallelism: model and pipeline are planned by tl_compile_ranks", "") \
    X(PRECISION_FIELD_IS_NOT_READ, \
      "precision: criterion, objective and evaluate must be 0, the schemes f32, f16 and bf16", "") \
    X(COUNTS_TABLES_MUST_BE_0_OR_1, "counts_tables: must be 0 or 1", "") \
    X(MAY_SPLIT_MUST_BE_0_OR_1, "may_split: must be 0 or 1", "") \
    X(GRAPH_BATCH_CANNOT_BE_SPLIT_SO, \
      "strategy.gradient: a batch of %0 cannot be split in %1 equal parts of whole elements", "batch, parts") \
    X(LOSS_LIMIT_NO_CHOICE_OF_FORMATS, "precision.loss_limit: no choice of formats keeps it", "") \
    X(NO_COMBINATION_FITS, \
      "%s: no combination fits %0 bytes; the least that one was found for is %1%s", "budget, least budget") \
    X(ALIGNMENT_OF_COMPILE_POWER_OF_TWO, "alignment_bytes: must be 0 or a power of two up to 2^30", "") \
    X(PRECISION_BUT_STRATEGY_IS_NOT_MIXED, \
      "precision: says how to choose formats, but strategy.precision is not mixed", "") \
    X(NO_MEMORY_TO_COMPILE, "no memory to compile", "") \
    X(POINT_LIMIT_AT_LEAST_2, "point_limit: must be 0 or from 2 to 1000", "") \
    X(RECOMMEND_STRATEGY_MUST_BE_0, "compile.strategy: must be 0, it is what is searched", "") \
    X(WISH_UNKNOWN, "wish: unknown kind", "") \
    X(COST_LIMIT_MUST_BE_POSITIVE, "cost_limit: must be positive for the fewest bytes", "") \
    X(NO_STRATEGY_IS_SO_FAST, "cost_limit: no strategy costs %0 or less; the least found is %1", \
      "cost limit, least cost") \
    X(NO_STRATEGY_FITS, "compile.%s: no strategy fits %0 bytes; the least found is %1", \
      "budget, least budget") \
    X(NO_MEMORY_FOR_RANKS, "no memory to plan ranks", "") \
    X(MICRO_BATCH_COUNT_OF_RANKS, "micro_batch_count: must be from 1 to 65535", "") \
    X(PIPELINE_OF_RANKS, "pipeline: ranks run 1f1b, gpipe or interleaved", "") \
    X(FLAGS_OF_RANKS_MUST_BE_0_OR_1, "inference, weights_apart, keep_all: must be 0 or 1", "") \
    X(BASE_OF_RANK_DOES_NOT_FIT_64, "base_bytes: with the weights of a rank it must fit 64 bits", "") \
    X(RANKS_MORE_THAN_NODES, "rank_count: more ranks than nodes that are no inputs", "") \
    X(ENDS_MUST_RISE, "ends: must rise to node_count, with a node that is no input in every stage", "") \
    X(STAGE_DOES_NOT_FIT, "%s: no plan of a stage fits %0 bytes; the least found is %1", \
      "budget, least budget") \
    X(COST_OF_RANKS_DOES_NOT_FIT_64, "the time of a training step does not fit 64 bits", "") \
    X(RANKS_WAIT_FOR_EACH_OTHER, "ranks: wait for messages of each other", "") \
    X(LINK_OF_RANKS_HAS_NO_RATE, "link: bytes_per_second must be > 0 between ranks", "") \
    X(CHUNKS_NEED_RANKS, "chunk_count: more than 1 needs more than 1 rank", "") \
    X(STAGES_MORE_THAN_NODES, "chunk_count: more stages than nodes", "") \
    X(WAYS_CHOOSE_ENDS_AND_ORDER, \
      "ends, ranks, pipeline, chunk_count: must be 0 where ways to share a batch are compared", "") \
    X(NO_WAY_TO_SHARE_THE_BATCH, \
      "rank_count: no number of stages divides it and leaves replicas whole micro-batches, up to 65535", "") \
    X(SPLIT_OF_RANKS_IS_OF_TRAINING, \
      "may_split: must be 0 or 1, and 1 only for training, without compiled, which has parts of its own", "") \
    X(NO_SPLIT_OF_RANKS, "may_split: no number of equal parts of the batch suits these ranks", "") \
    X(SPLIT_OF_UNKNOWN_BATCH, "may_split: graph.batch is 0: set it to the number of its samples", "") \
    X(RANKS_KEEP_INPUTS, "graph: inputs that die are of one rank: on several they stay", "") \
    X(RANKS_SUM_NO_STATES, \
      "graph: %s: a state is updated within a pass, gradients of ranks are summed between passes", "node") \
    X(RANKS_SHARE_NO_STATES, \
      "micro_batch_count: above 1, and state %s is the same for all micro-batches, which are under way " \
      "together", "node")

// -- errors: rules of [10] BACKEND --

#define TLI_BACKEND_RULES(X) \
    X(ALIGNMENT_NOT_POWER_OF_TWO, "alignment: not a power of two", "") \
    X(BYTES_FEWER_THAN_ONE_ALIGNED_PIECE, "bytes: fewer than one aligned piece", "") \
    X(NO_MEMORY_FOR_TABLE_OF_PIECES, "no memory for the table of pieces", "") \
    X(BYTES_MUST_BE_POSITIVE, "bytes: must be > 0", "") \
    X(BYTES_NO_PLACE_FOR_SO_MANY, "bytes: no place for so many", "") \
    X(BLOCK_NOT_HANDLE_OF_THIS_BACKEND, "block: not a handle of this backend", "") \
    X(BLOCK_HANDLE_IS_OF_FREED_BLOCK, "block: the handle is of a freed block or of another backend", "") \
    X(RANGE_REACHES_BEYOND_ITS_BLOCK, "range: reaches beyond its block", "") \
    X(RANGE_OFFSET_NOT_MULTIPLE_OF_ALIGNMENT, "range: offset: not a multiple of the alignment", "") \
    X(RANGE_NOT_INSIDE_CLAIMED_RANGE, "range: not inside a claimed range", "") \
    X(BYTES_THAT_NOBODY_CLAIMED_WERE_WRITTEN, "bytes that nobody claimed were written", "") \
    X(BYTES_WERE_WRITTEN_WHILE_NOBODY_HELD, "the bytes were written while nobody held them", "") \
    X(TIER_UNKNOWN, "tier: unknown", "") \
    X(NO_MEMORY_FOR_TABLE_OF_BLOCKS, "no memory for the table of blocks", "") \
    X(NO_ROOM_FOR_BLOCK, "no room for the block", "") \
    X(BLOCK_RANGE_IN_IT_IS_STILL_CLAIMED, "block: a range in it is still claimed", "") \
    X(RANGE_OVERLAPS_ONE_THAT_IS_CLAIMED, "range: overlaps one that is claimed", "") \
    X(NO_MEMORY_FOR_TABLE_OF_RANGES, "no memory for the table of ranges", "") \
    X(RANGE_BYTES_TIERS_CAPACITY_IS_USED_UP, "range: bytes: the tier's capacity is used up", "") \
    X(RANGE_WAS_NOT_CLAIMED, "range: was not claimed", "") \
    X(RANGE_WAS_NOT_CLAIMED_AS_IT_IS, "range: was not claimed as it is", "") \
    X(RANGE_IS_MAPPED, "range: is mapped", "") \
    X(ACCOUNT_WAS_CLOSED_OR_IS_OF_ANOTHER, "account: was closed, or is of another backend", "") \
    X(NO_MEMORY_FOR_TABLE_OF_ACCOUNTS, "no memory for the table of accounts", "") \
    X(RANGE_BYTES_BEYOND_ACCOUNTS_LIMIT, "range: bytes: beyond the account's limit", "") \
    X(RANGE_WAS_NOT_CLAIMED_ON_THIS_ACCOUNT, "range: was not claimed on this account", "") \
    X(CODEC_NONE_OR_UNKNOWN, "codec: none or unknown", "") \
    X(TO_BYTES_DO_NOT_FIT_THOSE_OF_FROM, "to: bytes: do not fit those of from", "") \
    X(TO_OVERLAPS_FROM, "to: overlaps from", "") \
    X(CODEC_TL_NO_CODECS_LEFT_ALL_OF_THEM, "codec: TL_NO_CODECS left all of them out", "") \
    X(TICKET_WAS_NEVER_SUBMITTED, "ticket: was never submitted", "") \
    X(RANGE_WORK_ON_IT_WAS_NEITHER_ORDERED, "range: work on it was neither ordered nor waited for", "") \
    X(MODE_UNKNOWN, "mode: unknown", "") \
    X(RANGE_OVERLAPS_ONE_THAT_IS_MAPPED, "range: overlaps one that is mapped", "") \
    X(NO_MEMORY_FOR_TABLE_OF_MAPPINGS, "no memory for the table of mappings", "") \
    X(NO_MEMORY_FOR_COPY_OF_RANGE, "no memory for the copy of the range", "") \
    X(HOST_IS_NOT_WHAT_MAP_GAVE_FOR_THIS, "host: is not what map gave for this range", "") \
    X(MODE_IS_NOT_THAT_OF_MAPPING, "mode: is not that of the mapping", "") \
    X(BYTES_OF_READ_ONLY_RANGE_WERE_WRITTEN, "bytes of a read-only range were written", "") \
    X(MEMORY_BYTES_TOO_FEW_FOR_ONE_ALIGNED, "memory_bytes: too few for one aligned block, or too many", "") \
    X(ALIGNMENT_BYTES_NOT_POWER_OF_TWO, "alignment_bytes: not a power of two", "") \
    X(MEMORY_BYTES_WITHOUT_MEMORY, "memory_bytes: without memory", "") \
    X(CHECKED_DEFERRED_LEFT_OUT, "checked, deferred: left out by TL_NO_CHECKS", "") \
    X(NO_MEMORY, "no memory", "") \
    X(NO_MEMORY_FOR_QUEUE, "no memory for the queue", "") \
    X(BACKEND_STILL_IN_USE_RUNS_AND_MANAGERS, \
      "backend: still in use (runs and managers: %0): free those first", "runs and managers") \
    X(SUBMIT_FAILED, "submit: %s", "step, node") \
    X(BACKEND_HAS_NO_CLOCK, "backend: has no clock, or one that stands still", "") \
    X(BACKEND_CANNOT_WAIT_SO_THAT_NOTHING, "backend: cannot wait, so that nothing can be timed", "") \
    X(WAIT_FAILED, "wait: %s", "") \
    X(COPY_FAILED, "copy: %s", "") \
    X(COMPRESS_FAILED, "compress: %s", "") \
    X(EXPAND_FAILED, "expand: %s", "") \
    X(COMPUTE_REPORTED_FAILURE, "compute: reported a failure", "") \
    X(ADD_BLOCK_CLAIM_FAILED, "add_block, claim: %s", "") \
    X(FILL_FAILED, "fill: %s", "") \
    X(SAMPLE_COUNT_MUST_BE_0_TO_31, "sample_count: must be 0 .. 31", "") \
    X(BANK_UNKNOWN, "bank: there is no such bank in this tier", "") \
    X(CPU_BANK_COUNT_MUST_BE_0_TO_7, "bank_count: must be 0 to 7, the number of banks beside memory", "") \
    X(NO_ROOM_FOR_BLOCK_WITH_GUARDS, \
      "no room for the block of %0 bytes, and for the %1 bytes of its guards (checked)", "bytes, guard bytes") \
    X(BYTES_NOT_PART_OF_RANGE, "bytes: must be > 0 and not above those of the range", "") \
    X(CODECS_UNKNOWN_BIT, "codecs: unknown bit", "") \
    X(BYTES_BEFORE_A_MAPPED_RANGE_WERE_WRITTEN, "bytes before a mapped range were written", "") \
    X(BYTES_BEHIND_A_MAPPED_RANGE_WERE_WRITTEN, "bytes behind a mapped range were written", "")

// -- errors: rules of [11] MANAGER --

#define TLI_MANAGER_RULES(X) \
    X(N_MUST_BE_POSITIVE, "n: must be > 0", "") \
    X(ADD_BLOCK_FAILED, "add_block: %s", "") \
    X(SPILL_FAILED, "spill: %s", "") \
    X(RELEASE_FAILED, "release: %s", "step, node") \
    X(BUDGET_BYTES_DO_NOT_FIT_OF_ARE_IN_USE, \
      "%s: %s bytes do not fit, %s of %0 are in use and %s of these may be evicted", \
      "budget, least budget") \
    X(CLAIM_FAILED, "claim: %s", "step, node") \
    X(KEY_NODE_MUST_BE_NOT_NEGATIVE, "key: node: must be >= 0", "") \
    X(KEY_OUTPUT_MUST_BE_NOT_NEGATIVE, "key: output: must be >= 0 or TL_SAVED", "") \
    X(KEY_MICRO_BATCH_MUST_BE_NOT_NEGATIVE, "key: micro_batch: must be >= 0", "") \
    X(SOURCE_ONLY_WHERE_DATA_IS_0, "source: only where data is 0", "") \
    X(DATA_MISSING, "data: missing", "") \
    X(KEY_STEP_IS_HELD_IS_THAT_OF_STEP, "key: step: is %0, held is that of step %1", "step asked, step held") \
    X(MAP_FAILED, "map: %s", "step, node") \
    X(UNMAP_FAILED, "unmap: %s", "step, node") \
    X(KEY_IS_BORROWED, "key: is borrowed", "") \
    X(NO_MEMORY_FOR_TABLE_OF_CHECKPOINTS, "no memory for the table of checkpoints", "") \
    X(KEY_NOTHING_IS_HELD_UNDER_IT, "key: nothing is held under it", "") \
    X(BYTES_ARE_NOT_THOSE_OF_CHECKPOINT, "bytes: are not those of the checkpoint", "") \
    X(FETCH_FAILED, "fetch: %s", "") \
    X(KEY_IS_NOT_BORROWED, "key: is not borrowed", "") \
    X(BACKEND_IS_NOT_INITIALISED, "backend: is not initialised", "") \
    X(EVICTION_UNKNOWN, "eviction: unknown", "") \
    X(EVICT_MUST_BE_GIVEN, "evict: must be given with TL_EVICTION_CALLER, and only then", "") \
    X(CODEC_UNKNOWN, "codec: unknown", "") \
    X(LOCK_BOTH_FUNCTIONS_OR_NEITHER, "lock: both functions or neither", "") \
    X(CHECKPOINT_CAPACITY_MUST_BE_NOT, "checkpoint_capacity: must be >= 0", "") \
    X(CODEC_BACKEND_CANNOT_CONVERT_TO_IT, "codec: the backend cannot convert to it", "") \
    X(DEVICE_BUDGET_BYTES_BYTES_OF_WHICH, \
      "device_budget_bytes: %0 bytes, of which the backend has %1 free at present", \
      "bytes asked, bytes free") \
    X(OPEN_ACCOUNT_FAILED, "open_account: %s", "")

// -- errors: rules of [12] RUN --

#define TLI_RUN_RULES(X) \
    X(RECORD_OF_STEPS_NO_MEMORY, "record of the steps", "") \
    X(NODE_NEEDS_BYTES_WITH_ALL_ELSE_EVICTED, \
      "%s: node %s needs %1 bytes with all else evicted", "budget, least budget") \
    X(ONLINE_STATE_NO_MEMORY, "state of the online decisions", "") \
    X(CONVERT_FAILED, "convert: %s", "step, node") \
    X(ORDER_FAILED, "order: %s", "step, node") \
    X(MEMORY_FAILED, "memory: %s", "step, node") \
    X(RECORD_OF_RANGES_NO_MEMORY, "record of the ranges", "") \
    X(CHECK_FAILED, "check: %s", "step, node") \
    X(PEAK_MEASURED_BYTES_PLANNED, "peak: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(HOST_PEAK_MEASURED_BYTES_PLANNED, \
      "host peak: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(ARENA_MEASURED_BYTES_PLANNED, "arena: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(IN_USE_AFTER_PASS_MEASURED_BYTES, \
      "in use after the pass: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(IN_USE_ON_HOST_AFTER_PASS_MEASURED, \
      "in use on the host after the pass: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(RUN_PASS_IS_UNDER_WAY, "run: a pass is under way", "") \
    X(MICRO_BATCH_MUST_BE_NOT_NEGATIVE, "micro_batch: must be >= 0", "") \
    X(POLL_FAILED, "poll: %s", "step, node") \
    X(WAS_NOT_CARRIED_OUT_CALL, \
      "was not carried out: call tl_run_step_kernel, or tl_finish_step after your own call", "step, node") \
    X(RUN_NO_PASS_IS_UNDER_WAY, "run: no pass is under way", "") \
    X(BACKWARD_OF_NODE_KERNEL_RETURNED, "backward of node %0 (%s): the kernel returned: %s", "node, result") \
    X(FORWARD_OF_NODE_KERNEL_RETURNED, "forward of node %0 (%s): the kernel returned: %s", "node, result") \
    X(STEP_NOT_COMPUTE_STEP_THAT_WAS_YIELDED, \
      "step: not the compute step that was yielded last, or carried out already", "") \
    X(BACKEND_WORK_IS_UNDER_WAY_THAT_IT, "backend: work is under way that it cannot wait for", "") \
    X(LOAD_HOOK_REPORTED_FAILURE, "load: the hook reported a failure", "") \
    X(TENSOR_NOT_OF_THIS_GRAPH, "tensor: not of this graph", "") \
    X(BYTES_NOT_THOSE_OF_TENSOR, "bytes: %0, where the tensor has %1", "bytes, bytes of the tensor") \
    X(TENSOR_NEITHER_INPUT_NOR_RESULT, \
      "tensor: neither an input nor a result of the last pass: set keep on its node to read it after a pass", \
      "") \
    X(TENSOR_BACKEND_COULD_NOT_MAP_IT, "tensor: the backend could not map it", "") \
    X(TENSOR_NOT_GRAPH_INPUT, "tensor: not a graph input", "") \
    X(STRATEGY_MODE_HYBRID_CANNOT_BE_RUN, \
      "strategy.mode: hybrid cannot be run by this version; use eager or lazy", "") \
    X(STRATEGY_PRECISION_MIXED_NEEDS_FORMATS, \
      "strategy.precision: mixed needs formats, as tl_apply_precision makes them", "") \
    X(STRATEGY_MEMORY_POOLED_NEEDS_PLAN, \
      "strategy.memory: not standard, but what evict decides cannot be placed before the pass", "") \
    X(STRATEGY_MEMORY_THIS_VERSION_RUNS, \
      "strategy.memory: this version runs standard, pooled and minimal-peak", "") \
    X(STRATEGY_MEMORY_STANDARD_BUT_PLAN, "strategy.memory: standard, but the plan has offsets", "") \
    X(STRATEGY_PARALLELISM_THIS_VERSION_RUNS, \
      "strategy.parallelism: model and pipeline need a transport", "") \
    X(STRATEGY_ENABLE_FUSION_THIS_VERSION, "strategy.enable_fusion: this version fuses nothing", "") \
    X(STRATEGY_MODE_EAGER_DECIDES_ONLINE, \
      "strategy.mode: eager decides online, leave plan and checkpoints out", "") \
    X(STRATEGY_GRADIENT_PLAN_IS_OF_OTHER, "strategy.gradient: the plan is of the other kind", "") \
    X(STRATEGY_GRADIENT_INTERVAL_AND_PLAN, \
      "strategy.gradient: an interval, and a plan or checkpoints: give one of them", "") \
    X(STRATEGY_GRADIENT_NOT_CHECKPOINTED_BUT, \
      "strategy.gradient: not checkpointed, but checkpoints are given", "") \
    X(STRATEGY_GRADIENT_SAYS_WHAT_IS_KEPT, "strategy.gradient: says what is kept, leave policy out", "") \
    X(STRATEGY_GRADIENT_ACCUMULATION_STEPS, "strategy.gradient: accumulation_steps must be below 2^31", "") \
    X(PLAN_CHECKPOINTS_GIVE_ONE_OF_THEM, "plan, checkpoints: give one of them", "") \
    X(EVICTION_CODEC_UNKNOWN_KIND, "eviction, codec: unknown kind", "") \
    X(EVICT_GOES_WITH_TL_EVICTION_CALLER, "evict: goes with TL_EVICTION_CALLER", "") \
    X(KERNEL_COUNT_REPEAT_COUNT_MUST_BE_NOT, "kernel_count: must be >= 0, with kernels", "") \
    X(CHECKPOINTS_FORWARD_ONLY_RUN_HAS_NONE, "checkpoints: a forward-only run has none", "") \
    X(POLICY_EVICTION_CODEC_ARE_FOR_ONLINE, \
      "policy, eviction, codec: are for online runs, not for plans", "") \
    X(FORMATS_LOSS_SCALER_TL_NO_PRECISION, "formats, loss_scaler: TL_NO_PRECISION left them out", "") \
    X(FORMATS_LOSS_SCALER_TL_NO_PLANNERS, "formats, loss_scaler: TL_NO_PLANNERS left them out", "") \
    X(CODEC_BACKEND_CANNOT_CONVERT_IT, "codec: the backend cannot convert it", "") \
    X(FORMATS_UNKNOWN_FORMAT, "formats: unknown format", "") \
    X(FORMATS_16_BIT_ELEMENTS_BUT_ODD_NUMBER, "formats: 16-bit elements, but an odd number of bytes", "") \
    X(FORMATS_INTEGERS_HAVE_NO_GRADIENT_RUN, \
      "formats: integers have no gradient, run the graph forward only", "") \
    X(STRATEGY_PRECISION_WITH_FORMATS_IT, "strategy.precision: with formats it must be mixed", "") \
    X(FORMATS_MIXED_IS_NOT_AMONG, "formats: mixed is not among kernel_precisions", "") \
    X(STRATEGY_PRECISION_NOT_AMONG, "strategy.precision: not among kernel_precisions", "") \
    X(GRAPH_OF_PRECISION_NO_MEMORY, "graph of another precision", "") \
    X(KERNELS_NONE_FOR_OP_OF_NODE, "kernels: none for op %s of node %0", "node") \
    X(KERNELS_FORWARD_OR_BACKWARD_MISSING, \
      "kernels: forward or backward missing for op %s of node %0 (%s); that of a state is its update; " \
      "inference, no_grad: no backward", \
      "node") \
    X(FORMATS_TL_NO_CODECS_LEFT_CONVERSIONS, \
      "formats: TL_NO_CODECS left conversions to f16 and bf16 out, give a kernel", "node") \
    X(FORMATS_BACKEND_HAS_NO_SUCH_CODEC_GIVE, \
      "formats: the backend has no such codec, give a kernel", "node") \
    X(FORMATS_INTEGERS_NEED_HOST_VISIBLE, \
      "formats: integers need a host-visible backend, or a kernel of the caller", "node") \
    X(QUANTIZATIONS_CONVERSION_NEEDS_ONE, \
      "quantizations: a conversion needs one that its format holds", "node") \
    X(FORMATS_CONVERSION_HAS_ONE_INPUT_ONE, \
      "formats: a conversion has one input, one output, and nothing else", "node") \
    X(FORMATS_CONVERSION_HAS_AS_MANY, "formats: a conversion has as many elements before as after", "node") \
    X(FORMATS_BETWEEN_F16_AND_BF16_THIS, \
      "formats: between f16 and bf16 this backend needs 4 bytes an element of fwork and bwork", "node") \
    X(FORMATS_ADDING_TO_GRADIENT_NEEDS_HOST, \
      "formats: adding to a gradient needs a host-visible backend, or a kernel of the caller", "node") \
    X(KEPT_SET_NO_MEMORY, "kept set", "") \
    X(PLAN_GIVE_ONE_TL_NO_PLANNERS_LEFT, "plan: give one; TL_NO_PLANNERS left the planners out", "") \
    X(PLAN_COMPRESSES_TL_NO_CODECS_LEFT, "plan: compresses; TL_NO_CODECS left that out", "") \
    X(PLAN_COMPRESSES_TENSOR_WHOSE_FORMAT, "plan: compresses a tensor whose format is not f32", "") \
    X(LEAST_THAT_WORKS_IS_BYTES, "%s: the least found to work is %1 bytes%s", "budget, least budget") \
    X(BACKEND_PASS_TAKES_BYTES_OF_OF_WHICH, \
      "backend: a pass takes %0 bytes of the %s, of which %1 are free at present", "bytes asked, bytes free") \
    X(PLAN_TAKES_BYTES, "%s: the plan takes %1 bytes%s", "budget, least budget") \
    X(STATE_OF_RUN_NO_MEMORY, "state of the run", "") \
    X(BACKEND_COULD_NOT_TAKE_GRAPHS_INPUTS, "backend: could not take the graph's inputs", "") \
    X(PLAN_NONE_GIVEN_OR_ASKED, \
      "plan: none given or asked for, and TL_NO_ONLINE left out runs without one", "") \
    X(RUN_NO_MEMORY, "run", "") \
    X(LAYERS_FORWARD_IS_MISSING, "layers: forward is missing", "") \
    X(LAYERS_NO_MEMORY, "layers", "") \
    X(LAYER_FORWARD_GOES_0_1_TO_LAST_THEN, \
      "layer: forward goes 0, 1, ... to the last, then backward down to 0, on an online run over layers", "") \
    X(RUN_NOT_ONLINE_OR_PASS_IS_UNDER_WAY, "run: not online, or a pass is under way", "") \
    X(TAKEN_MEASURED_BYTES_PLANNED, "taken: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(TAKEN_ON_HOST_MEASURED_BYTES_PLANNED, \
      "taken on the host: measured %0 bytes, planned %1", "measured bytes, planned bytes") \
    X(STRATEGY_MEMORY_MINIMAL_PEAK_NEEDS_PLAN, \
      "strategy.memory: minimal-peak orders the nodes before the pass, but mode eager has no plan", "") \
    X(BACKEND_COULD_NOT_TAKE_ARENA, "backend: could not take the arena of %0 bytes%s", "bytes") \
    X(BACKEND_LARGEST_BINDING_IS_BYTES, \
      "backend: its kernels can be given at most %0 bytes at a time, and node %s has %1 that cannot be cut", \
      "bytes of the largest range, of the node's") \
    X(BACKEND_LARGEST_BINDING_NEEDS_TAKES_BLOCKS, \
      "backend: its kernels can be given at most %0 bytes at a time, and node %s has %1 " \
      "and is not cut: say takes_blocks, or rows", \
      "bytes of the largest range, of the node's") \
    X(MICRO_BATCHES_DO_NOT_FIT_31_BITS, "micro-batches: passes times slots do not fit 31 bits", "") \
    X(STRATEGY_GRADIENT_STEPS_ARE_NOT_OF_WHOLE_PASSES, \
      "strategy.gradient: accumulation_steps must be a multiple of the plan's slots", "") \
    X(SLOT_NOT_BELOW_SLOT_COUNT, "slot: the plan has no such slot", "") \
    X(BACKEND_COULD_NOT_TAKE_ENTRY, "backend: it could not take the tensors of the plan's entry", "") \
    X(BACKEND_LARGEST_BLOCK_IS_LESS_THAN_NODE, "backend: its largest block is %0 bytes, and node %s has %1", \
      "bytes of the largest block, of the node's") \
    X(BACKEND_HAS_NO_BANK, "backend: the plan has a block in bank %0 of the %s, the backend has %1 there", \
      "bank, banks") \
    X(BANK_TAKES_BYTES_OF, "backend: a pass takes %1 bytes of bank %s, of which %0 are free", \
      "bytes free, bytes") \
    X(BANK_MEASURED_BYTES_PLANNED, "taken of a bank: measured %0 bytes, planned %1", \
      "measured bytes, planned bytes") \
    X(STRATEGY_MEMORY_CACHED_TL_NO_PLANNERS, \
      "version: TL_NO_PLANNERS left it out", "") \
    X(STRATEGY_MEMORY_CACHED_MAKES_PLANS, \
      "strategy.memory: cached, with a version hook, makes plans: leave plan, policy, eviction, codec out", \
      "") \
    X(CACHED_NO_MEMORY, "cached: no memory", "") \
    X(FUSION_TL_NO_PLANNERS_LEFT_IT_OUT, "fusion: TL_NO_PLANNERS left it out", "") \
    X(FUSION_LAYERS_HAVE_NONE, "fusion: layers have no graph that it could be of", "") \
    X(FUSION_NOT_OF_THE_GRAPH, "fusion: not made of the graph", "") \
    X(FUSION_MADE_FOR_INFERENCE, "fusion: made for inference, but the run computes gradients", "") \
    X(FUSION_WITHOUT_STRATEGY, "fusion: given, but strategy.enable_fusion is 0", "") \
    X(FUSION_RANDOM_HOOK_SEES_NODES_IN_ORDER, \
      "fusion: members take turns, so the random hook cannot keep the state of each; go by call->seed", "") \
    X(STRATEGY_ENABLE_FUSION_AND_PLAN, \
      "strategy.enable_fusion: the plan or the formats are of a fused graph, give the fusion, too", "") \
    X(FUSION_MEMBER_TAKES_NO_BLOCKS, \
      "fusion: it is called for blocks of a fused node, and does not say takes_blocks: node %s", "node") \
    X(FUSION_MEMBER_HAS_OTHER_ELEMENTS, \
      "fusion: it is computed in blocks, and its operands have not all as many elements: node %s", "node") \
    X(FUSION_SCRATCH_HOLDS_NO_BLOCK, \
      "fusion: scratch of %1 bytes holds no block that is aligned to %0, see alignment_bytes: node %s", \
      "bytes of the alignment, of the scratch") \
    X(CLEAR_FAILED, "fill of a gradient: %s", "step, node") \
    X(TENSOR_INSIDE_OF_A_FUSED_NODE, "tensor: inside of a fused node, never whole in memory", "") \
    X(COMPILED_GIVE_NOTHING_BESIDE_IT, \
      "compiled: give no plan, checkpoints, formats or fusion, and no layers beside it", "") \
    X(COMPILED_NOT_OF_THE_GRAPH, "compiled: not made by tl_compile for this graph", "") \
    X(COMPILED_BUT_STRATEGY_SAYS_OTHERWISE, \
      "compiled: the strategy decides online, or computes gradients where it does not", "") \
    X(REPEAT_COUNT_IS_NOT_THAT_OF_THE_PARTS, \
      "repeat_count: %0, but the batch is split in %1 parts", "repeat_count, parts") \
    X(COMPILED_WAS_LEFT_OUT, \
      "compiled, may_split, precision: TL_NO_PLANNERS or TL_NO_PRECISION left them out", "") \
    X(NO_FORWARD_OF_DYNAMIC_NODE, "run: no forward of a dynamic node is being carried out", "") \
    X(OUTPUT_NOT_BELOW_COUNT, "output: the node makes no such one", "") \
    X(BYTES_ABOVE_BOUND, "bytes: %0 are more than the %1 that are its bound: output of node %s", \
      "reported bytes, bound") \
    X(BYTES_DIFFER_FROM_REPORT, \
      "bytes: %0, but %1 where it ran before in this pass: output of node %s", "reported bytes, bytes before") \
    X(FORMATS_CONVERSION_OF_DYNAMIC, \
      "formats: the run converts no tensor whose bytes are known only when it is made, give a kernel", "node") \
    X(FIGURES_ARE_OF_OP_RUNS, "budget_ratio, costs, figures, rehearsal: are of tl_init_op_run", "") \
    X(OP_FORWARD_IS_MISSING, "ops: op %s: forward is missing", "op") \
    X(OP_BACKWARD_IS_MISSING, "ops: op %s: backward is missing; say no_grad if no gradient passes", "op") \
    X(OP_INPUT_HAS_NO_KERNELS, "ops: op %s: a graph input has bytes and a name, nothing else", "op") \
    X(OP_OF_GRAPH_HAS_SIZES, \
      "ops: op %s: its sizes and inputs are those of the graph, give kernels only", "op") \
    X(OP_INPUT_COUNT_WITHOUT_INPUTS, "ops: op %s: input_count without inputs", "op") \
    X(OP_OUTPUT_BYTES_OR_OUTPUTS, "ops: op %s: give output_bytes > 0, or output_count and outputs", "op") \
    X(OP_COUNT_MUST_BE_POSITIVE, "op_count: must be > 0", "") \
    X(OP_COUNT_IS_NOT_THAT_OF_GRAPH, "op_count: must be that of the graph's nodes, %0", "nodes") \
    X(OP_KERNELS_STAND_IN_OPS, "kernels: they stand in the ops", "") \
    X(OPS_NO_MEMORY, "ops", "") \
    X(BUDGET_RATIO_MUST_BE_0_TO_1, "budget_ratio: must be 0 to 1, without budget_bytes", "") \
    X(FIGURES_TL_NO_PLANNERS, "budget_ratio, figures, rehearsal: TL_NO_PLANNERS left the planners out", "") \
    X(USERS_NONE_FOR_ORIGIN, "users: none for node %s, whose origin is %1", "node, origin") \
    X(VARIABLE_COUNT_WITHOUT_VARIABLES, "variables, variable_count: give both or neither", "") \
    X(VARIABLE_NODE_UNKNOWN, "variables: range %0: node: the graph has no such one; -1 = of none", "range") \
    X(VARIABLE_KIND_UNKNOWN, "variables: range %0: kind: there is no such one", "range") \
    X(VARIABLE_NULL_WITH_BYTES, "variables: range %0: host is NULL, where it has %1 bytes", "range, bytes") \
    X(VARIABLE_BEYOND_MEMORY, "variables: range %0: %1 bytes end beyond the address space", "range, bytes") \
    X(VARIABLES_OVERLAP, "variables: ranges %0 and %1 overlap", "range, range") \
    X(VARIABLE_OVERLAPS_ARENA, "variables: range %0 overlaps the run's arena", "range") \
    X(REHEARSAL_FOUND_ERRORS, "rehearsal: %0 errors, the first: %s", "errors, node") \
    X(REHEARSAL_NO_MEMORY, "rehearsal", "") \
    X(PASS_COUNT_MUST_BE_TO_1000, "pass_count: must be -1 to 1000", "") \
    X(PASS_COUNT_NEEDS_CLOCK, "pass_count: the backend has no clock", "") \
    X(RUN_PLAN_IS_UNDER_WAY, "run: tl_run_plan is under way", "") \
    X(IN_FLIGHT_NEEDS_A_PLAN, "in_flight: an online run decides one step at a time: give a plan", "") \
    X(IN_FLIGHT_RANDOM_HOOK, "in_flight: the random hook is for one step at a time", "") \
    X(IN_FLIGHT_DYNAMIC_NODES, "in_flight: dynamic nodes report one step at a time", "") \
    X(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT, "data: ends too early, or holds what no run has", "") \
    X(SAVED_BACKEND_COULD_NOT_MAP, "backend: could not map a range", "") \
    X(SAVED_BACKEND_COULD_NOT_CLAIM, "backend: could not take a range", "") \
    X(SAVED_IS_NOT_A_RUN, "data: not what tl_save_run writes", "") \
    X(SAVED_IS_DAMAGED, "data: damaged, the checksum is not that of the content", "") \
    X(SAVED_IS_OF_ANOTHER_VERSION, "data: of another version of the format", "") \
    X(SAVED_IS_OF_ANOTHER_GRAPH, "data: of another graph, precision or number of slots", "") \
    X(SAVED_HAS_ANOTHER_SEED, "data: of another seed", "") \
    X(SAVED_IN_A_PASS_OF_ANOTHER_PLAN, "data: saved in a pass of another plan", "") \
    X(SAVED_HAS_ANOTHER_BYTE_ORDER, "data: of a machine of the other byte order", "") \
    X(SAVED_VARIABLES_ARE_OTHERS, "data: other variables than this run has", "") \
    X(SAVED_ENTRY_IS_ANOTHER, "data: another entry than the plan has", "") \
    X(SAVED_RUN_IS_NOT_AS_PLANNED, "run: holds other bytes than its plan says", "") \
    X(SAVED_STEP_OR_COPY_IS_UNDER_WAY, "run: a step or a copy is under way", "") \
    X(SAVED_PASS_NEEDS_A_PLAN_WITH_PLACES, \
      "run: in a pass, only a plan with places that is run as it is can be saved", "") \
    X(MESSAGE_OF_PEER, "message with rank %0 at step %1: %s", "rank, step") \
    X(PEER_HAS_OTHER_PLANS, "rank %0 has other plans: graph, descs, links and versions must be the same", \
      "rank, hash") \
    X(TRANSPORT_RANKS_NEED_ONE, "transport: the plan of a rank needs one", "") \
    X(TRANSPORT_FUNCTIONS_MISSING, "transport: a function is missing", "") \
    X(TRANSPORT_RANK_OUT_OF_RANGE, "transport: rank must be from 0 to rank_count - 1", "") \
    X(TRANSPORT_RANK_HAS_ANOTHER_STAGE, "transport: this rank has another stage than the compiled plan", "") \
    X(TRANSPORT_NEEDS_HOST_VISIBLE, "transport: the host must see the memory of the backend", "") \
    X(REDUCED_KIND_UNKNOWN, "kind: unknown kind of variables", "") \
    X(REDUCTION_NEEDS_TRANSPORT, "run: has no transport", "") \
    X(REDUCED_RANGES_ARE_F32, "variables: ranges that are summed hold f32: 4 bytes each", "") \
    X(REDUCTION_IS_UNDER_WAY, "run: another sum over ranks is under way", "") \
    X(STRATEGY_PARALLELISM_IS_NOT_THAT_OF_THE_TRANSPORT, \
      "strategy.parallelism: %0 does not divide the %1 ranks of the transport", "workers, ranks") \
    X(MESSAGE_BETWEEN_PASSES, "message with rank %0 between passes: %s", "rank, step") \
    X(STRATEGY_OF_RANKS_IS_LAZY, \
      "strategy: model and pipeline are for mode lazy, memory pooled, no interval; model splits no batch", "") \
    X(BEGINS_ONE_KERNEL_CALL, "plan: step %0 begins what is not one call of one kernel", "step, node") \
    X(BEGINS_RANDOM_HOOK, "plan: begins calls, but the random hook is for one call at a time", "step, node") \
    X(BEGINS_DYNAMIC_NODES, "plan: begins calls, but dynamic nodes report one call at a time", "step, node") \
    X(BEGINS_SHARDED_GRADIENT, "plan: step %0 begins a backward whose gradient has a shard", "step, node") \
    X(BACKEND_HAS_NO_FUNCTIONS, \
      "backend: a function is missing: make it with tl_init_cpu_backend or another", "") \
    X(TABLES_TAKE_A_PLACED_PLAN, \
      "plan: TL_ONLY_TABLES takes one with places, without copies, entry or steps in flight", "") \
    X(TABLES_LEFT_IT_OUT, "desc: TL_ONLY_TABLES left out all but graph, plan, backend, kernels, users, " \
      "repeat_count, budget, load, random, seed, first_step and loss_gradient_word", "") \
    X(TABLES_MEMORY_IS_NOT_ALIGNED, \
      "backend: a block of the plan is not aligned to its %0 bytes", "alignment") \
    X(SIZES_DO_NOT_FIT_32_BITS, "plan: %0 bytes do not fit the 32 bits of TL_SMALL_SIZES", "bytes") \
    X(OP_INPUT_HAS_KERNELS, "ops: op %s: an input has no forward and no backward", "op") \
    X(SAVES_THERE_MUST_BE_ONE, "saves: there must be at least one", "") \
    X(SAVED_IN_A_PASS, "data: saved in a pass, where variables are not whole", "") \
    X(SAVES_ARE_OF_OTHER_STEPS, "saves: some are of training step %0, others of %1", "step, step") \
    X(SAVES_HAVE_OTHER_SCALERS, "saves: their loss scalers differ", "") \
    X(SAVES_LACK_A_VARIABLE, "saves: none has variables[%1], %s of node %s", "node, variable") \
    X(SAVES_HAVE_A_VARIABLE_TWICE, "saves: variables[%1], %s of node %s, is not the same in all of them", \
      "node, variable") \
    X(SAVED_VARIABLE_HAS_OTHER_BYTES, \
      "saves: variables[%1], %s of node %s, has another number of bytes there", \
      "node, variable") \
    X(PEER_HAS_OTHER_VARIABLES, \
      "rank %0 has other variables: replicas register the same nodes, kinds, bytes and shards", "rank") \
    X(PEER_IS_AT_ANOTHER_STEP, "rank %0 is at training step %1: ranks begin at the same one", "rank, step") \
    X(PEER_HAS_OTHER_SETTINGS, \
      "rank %0 has another repeat_count, seed or first_micro_batch than this one", "rank") \
    X(MESSAGES_ARE_OUT_OF_STEP, \
      "run: a pass with messages did not end: make the runs of all ranks anew, go on from what was saved", "") \
    X(RUN_IS_OF_ONE_RANK, "run: is of one rank of several; rehearse the whole graph in one process", "") \
    X(TENSOR_OF_ANOTHER_RANK, "tensor: of a node that this rank does not have", "") \
    X(VARIABLE_SHARD_OF_WHAT_HAS_NONE, \
      "variables: range %0: has a shard, but is no gradient of one node in f32 (kind, node, bytes)", \
      "range, bytes") \
    X(VARIABLE_SHARDS_ONE_STEP_AT_A_TIME, \
      "variables: range %0: with shards in_flight must be 0 or 1", "range, bytes") \
    X(VARIABLE_SHARDS_ARE_LEFT_OUT, "variables: range %0: shards are left out of this build", "range, bytes") \
    X(VARIABLE_SHARD_NEEDS_HOST, \
      "variables: range %0: has a shard, but the backend's memory is not the host's", \
      "range, bytes") \
    X(COMPILED_OF_RANKS_INFERENCE, "compiled: its inference is not that of the desc", "") \
    X(VARIABLE_SHARDS_OVERLAP, \
      "variables: ranges %0 and %1 overlap, or the shard of one does", "range, range") \
    X(SHARDS_ARE_NOT_REHEARSED, \
      "variables: range %0 has a shard; rehearse with gradients apart from each other", \
      "range") \
    X(KERNEL_WROTE_BEFORE, "the kernel wrote before the first byte of %s", "step, node") \
    X(KERNEL_WROTE_BEHIND, "the kernel wrote behind the last byte of %s", "step, node") \
    X(KERNEL_WROTE_WHAT_IT_READS, "the kernel wrote to %s, but may only read that", "step, node") \
    X(SAVED_HAS_OTHER_FORMATS, "data: of a run whose kernels see tensors in other formats", "") \
    X(SAVED_HAS_ANOTHER_LOSS, "data: of a run with another loss_gradient_word", "") \
    X(SAVED_SCALER_HAS_OTHER_LIMITS, "data: of a loss scaler with another least, most or growth_interval", "") \
    X(SAVED_IS_FORWARD_ONLY_OR_NOT, "data: of a run forward only, and this one is not, or the other way", "") \
    X(SAVED_HAS_OTHER_MICRO_BATCHES, \
      "data: of a run with another repeat_count or first_micro_batch, or of another rank", "") \
    X(SAVED_LOSES_OTHER_BITS, "data: of a plan that compresses other copies than this one", "") \
    X(SAVED_IN_A_TRAINING_STEP, \
      "data: saved between two micro-batches of a training step; take saves from the ends of steps", "") \
    X(PEER_IS_AT_ANOTHER_PASS, "rank %0 has ended %1 passes of a training step: ranks begin at the same one", \
      "rank, passes") \
    X(TABLES_AND_ARENA_TAKE_BYTES, \
      "%s: %0 bytes are too few for arena, base and tables of the run; the least that were found are %1", \
      "budget, least budget") \
    X(RUN_STATES_HOLD_NO_GRADIENTS, \
      "graph: micro-batches need gradients that states hold (TL_STATE_HELD, tl_hold_gradients): %s does not", \
      "node") \
    X(RUN_STATES_ARE_ONE_FOR_ALL_SLOTS, \
      "graph: %s: a state is the same for all micro-batches under way together, which needs one slot", "node") \
    X(RUN_STATES_ON_ONE_RANK, \
      "graph: %s: a state is updated within a pass, before sums over ranks are known", "node") \
    X(RUN_STATES_HALF_UPDATED, \
      "a pass was given up in or behind an update: write all weights and moments, or load a save", "updates") \
    X(INPUT_DIED_AND_WAS_NOT_WRITTEN, \
      "inputs: %s dies in a pass and was not written since: write it before each", "node, slot") \
    X(TENSOR_INPUT_DIED, "tensor: an input that dies: its bytes are gone until it is written again", "") \
    X(TENSOR_WAS_RELEASED, \
      "tensor: a result that no pass has made, or that was released since: by a pass, or by a write to an " \
      "input that dies or to the entry", "") \
    X(INPUTS_DIE_AND_RESULTS_ARE_KEPT, \
      "strategy.memory: cached keeps results from pass to pass, and inputs that die do not stay", "") \
    X(RUN_STATES_WITH_LOSS_SCALER, \
      "loss_scaler: the update of %s runs before an overflow is known: states stand above all other nodes " \
      "(TL_UPDATES_END)", "node") \
    X(SKIP_NEEDS_HELD_GRADIENTS, \
      "graph: a pass without updates needs gradients that states hold (TL_STATE_HELD, tl_hold_gradients)", \
      "node") \
    X(OP_OF_A_STATE_HAS_AN_UPDATE_ALONE, \
      "ops: op %s: %s is not of a state, which has bytes, moments and an update (backward)", "op") \
    X(OP_MOMENTS_ARE_OF_STATES, "ops: op %s: moments and initial are of states", "op") \
    X(IN_FLIGHT_PIECES, "in_flight: above 1, with state %s in pieces", "node") \
    X(RUN_PIECES_ARE_NOT_ALIGNED, \
      "graph: %s: its pieces are unknown, or not aligned", \
      "node") \
    X(FORMATS_ANOTHER_IS_DECLARED, "formats: the graph declares another format of a tensor", "") \
    X(FORMATS_MUST_SAY_WHAT_IS_DECLARED, \
      "format: tensors of other formats than f32 need formats of the run", "node, line") \
    X(STATES_ARE_NO_VARIABLES, \
      "graph: %s is a state, which is no variable and would stay as it is: tl_load_run loads both", "node") \
    X(RUN_CLIPS_STAND_ABOVE_READERS, \
      "graph: %s clips gradients before %s adds to them: below the states it stands above all other nodes " \
      "(TL_UPDATES_END)", "node, node") \
    X(SKIP_IS_0_OR_1, "on: must be 0 or 1", "on") \
    X(OP_OF_A_STATE_HAS_NO_UPDATE, "ops: op %s: backward: a frozen state and statistics have no update", "op") \
    X(ROWS_GO_WITH_PLANS_ALONE, \
      "rows: go without fusion, compiled plans, split batches, formats, hooks of random state and versions, " \
      "transport and layers", "") \
    X(MAY_CUT_ROWS_MUST_BE_0_OR_1, "may_cut_rows: must be 0 or 1", "") \
    X(ROWS_ARE_OF_AN_INFERENCE, "rows: are of an inference", "") \
    X(ROWS_ARE_OF_A_TRAINING, "rows: are of a training", "") \
    X(ROWS_GO_WITH_F32, "rows: go with f32 alone", "") \
    X(ROWS_NOT_OF_THE_GRAPH, "rows: not made of the graph, or for less than the alignment of the backend", "") \
    X(ROWS_TL_NO_PLANNERS_LEFT_THEM_OUT, "rows: TL_NO_PLANNERS left them out", "") \
    X(MAY_CUT_ROWS_BUT_PLAN_IS_GIVEN, \
      "may_cut_rows: a plan, checkpoints or rows that are given say what is cut already", "") \
    X(RUN_STATES_ARE_NO_CONSTANTS, \
      "graph: %s is a constant of generated code (tl_store_frozen), of which a run has no bytes", "node") \
    X(BACKEND_LARGEST_BINDING_NEEDS_ORDERED, \
      "backend: its kernels can be given at most %0 bytes at a time, and node %s has %1 " \
      "and is not cut: its rows are not ordered", \
      "bytes of the largest range, of the node's")

// -- errors: rules of [13] TRACE --

#define TLI_TRACE_RULES(X) \
    X(CAPACITY_MUST_BE_POSITIVE, "capacity: must be > 0", "") \
    X(CAPACITY_NO_MEMORY_FOR_EVENTS, "capacity: no memory for the events", "") \
    X(TIMES_MUST_BE_NOT_NEGATIVE_AND_NEVER, "times: must be >= 0 and never fall", "curve") \
    X(TIMES_MUST_END_BETWEEN_1E_12_AND_1E18, "times: must end between 1e-12 and 1e18", "curve") \
    X(CURVE_COUNT_MUST_BE_1_TO_8, "curve_count: must be 1 to 8", "") \
    X(STYLE_MUST_BE_320_TO_16384_PIXELS_WIDE, \
      "style: must be 320 to 16384 pixels wide and 240 to 16384 high, or 0", "") \
    X(NO_MEMORY_FOR_PICTURE, "no memory for the picture", "") \
    X(LOSS_MUST_BE_0_TO_1E300_AND_NEVER_FALL, "loss: must be 0 to 1e300 and never fall", "point") \
    X(SPEEDUP_MUST_BE_0_TO_1E18, "speedup: must be 0 to 1e18", "point") \
    X(BOUND_COST_MUST_NOT_BE_ABOVE_COST, "bound_cost: must not be above cost", "point") \
    X(POINTS_THERE_MUST_BE_AT_LEAST_ONE, "points: there must be at least one", "") \
    X(KNEE_MUST_BE_ONE_OF_POINTS, "knee: must be one of the points", "") \
    X(PATH_MUST_BE_1_TO_472_BYTES, "path: must be 1 to 472 bytes", "") \
    X(FILE_IS_NOT_OPEN, "file: is not open", "") \
    X(PATH_CANNOT_REPLACE, "path: cannot replace %s", "") \
    X(LINE_COUNT_MUST_BE_0_TO_8, "style: line_count must be 0 to 8", "")

#define TLI_RULES(X) \
    TLI_CORE_RULES(X) \
    TLI_STRATEGY_RULES(X) \
    TLI_GRAPH_RULES(X) \
    TLI_LAYOUT_RULES(X) \
    TLI_PLAN_RULES(X) \
    TLI_REMAT_RULES(X) \
    TLI_PRECISION_RULES(X) \
    TLI_PARALLEL_RULES(X) \
    TLI_COMPILE_RULES(X) \
    TLI_BACKEND_RULES(X) \
    TLI_MANAGER_RULES(X) \
    TLI_RUN_RULES(X) \
    TLI_TRACE_RULES(X)

// -- errors: numbers and texts --

#define TLI_FUNCTION_NUMBER(id, name) TLI_IN_##id,
#define TLI_RULE_NUMBER(id, sentence, values) TLI_RULE_##id,

enum { TLI_FUNCTIONS_FROM, TLI_FUNCTIONS(TLI_FUNCTION_NUMBER) TLI_FUNCTIONS_END };

enum {
    TLI_CORE_RULES_FROM = 0x0100, TLI_CORE_RULES(TLI_RULE_NUMBER) TLI_CORE_RULES_END,
    TLI_STRATEGY_RULES_FROM = 0x0200, TLI_STRATEGY_RULES(TLI_RULE_NUMBER) TLI_STRATEGY_RULES_END,
    TLI_GRAPH_RULES_FROM = 0x0300, TLI_GRAPH_RULES(TLI_RULE_NUMBER) TLI_GRAPH_RULES_END,
    TLI_LAYOUT_RULES_FROM = 0x0400, TLI_LAYOUT_RULES(TLI_RULE_NUMBER) TLI_LAYOUT_RULES_END,
    TLI_PLAN_RULES_FROM = 0x0500, TLI_PLAN_RULES(TLI_RULE_NUMBER) TLI_PLAN_RULES_END,
    TLI_REMAT_RULES_FROM = 0x0600, TLI_REMAT_RULES(TLI_RULE_NUMBER) TLI_REMAT_RULES_END,
    TLI_PRECISION_RULES_FROM = 0x0700, TLI_PRECISION_RULES(TLI_RULE_NUMBER) TLI_PRECISION_RULES_END,
    TLI_PARALLEL_RULES_FROM = 0x0800, TLI_PARALLEL_RULES(TLI_RULE_NUMBER) TLI_PARALLEL_RULES_END,
    TLI_COMPILE_RULES_FROM = 0x0900, TLI_COMPILE_RULES(TLI_RULE_NUMBER) TLI_COMPILE_RULES_END,
    TLI_BACKEND_RULES_FROM = 0x0A00, TLI_BACKEND_RULES(TLI_RULE_NUMBER) TLI_BACKEND_RULES_END,
    TLI_MANAGER_RULES_FROM = 0x0B00, TLI_MANAGER_RULES(TLI_RULE_NUMBER) TLI_MANAGER_RULES_END,
    TLI_RUN_RULES_FROM = 0x0C00, TLI_RUN_RULES(TLI_RULE_NUMBER) TLI_RUN_RULES_END,
    TLI_TRACE_RULES_FROM = 0x0D00, TLI_TRACE_RULES(TLI_RULE_NUMBER) TLI_TRACE_RULES_END
};

// At most 255 in a list.
typedef char tli_rules_fit[TLI_CORE_RULES_END <= 0x0200 &&
                           TLI_STRATEGY_RULES_END <= 0x0300 &&
                           TLI_GRAPH_RULES_END <= 0x0400 &&
                           TLI_LAYOUT_RULES_END <= 0x0500 &&
                           TLI_PLAN_RULES_END <= 0x0600 &&
                           TLI_REMAT_RULES_END <= 0x0700 &&
                           TLI_PRECISION_RULES_END <= 0x0800 &&
                           TLI_PARALLEL_RULES_END <= 0x0900 &&
                           TLI_COMPILE_RULES_END <= 0x0A00 &&
                           TLI_BACKEND_RULES_END <= 0x0B00 &&
                           TLI_MANAGER_RULES_END <= 0x0C00 &&
                           TLI_RUN_RULES_END <= 0x0D00 &&
                           TLI_TRACE_RULES_END <= 0x0E00 ? 1 : -1];

#ifdef TL_NO_ERROR_TEXT
#define TLI_ERROR_TEXT 0
#define TLI_IN(id) ((tli_function)TLI_IN_##id)
#define TLI_RULE(id) ((tli_rule)TLI_RULE_##id)

typedef enum tli_function { TLI_FUNCTION_RANGE = 0xFFFF } tli_function;
typedef enum tli_rule { TLI_NO_RULE, TLI_RULE_RANGE = 0xFFFF } tli_rule;

static uint32_t tli_number_function(tli_function function) { return (uint32_t)function; }
static uint32_t tli_number_rule(tli_rule rule) { return (uint32_t)rule; }
static const char *tli_name_function(tli_function function) { (void)function; return ""; }
static const char *tli_name_rule(tli_rule rule) { (void)rule; return ""; }
#else
#define TLI_ERROR_TEXT 1
#define TLI_IN(id) ((tli_function)(const void *)&tli_in_##id)
#define TLI_RULE(id) ((tli_rule)(const void *)&tli_rule_##id)
#define TLI_NO_RULE ((tli_rule)0)

// Every text is an object of its own type, of its own length; these two incomplete types stand for all of them.
typedef const struct tli_function_text *tli_function;
typedef const struct tli_rule_text *tli_rule;

#define TLI_FUNCTION_TEXT(id, name) \
    static const struct { uint16_t number; char text[sizeof(name)]; } tli_in_##id = { TLI_IN_##id, name };
#define TLI_RULE_TEXT(id, sentence, values) \
    static const struct { uint16_t number; char text[sizeof(sentence)]; } tli_rule_##id = { TLI_RULE_##id, \
                                                                                            sentence };

TLI_FUNCTIONS(TLI_FUNCTION_TEXT)
TLI_RULES(TLI_RULE_TEXT)

// Read the number in front of a text; 0 for NULL.
static uint32_t tli_number_text(const void *text) {
    uint16_t number = 0;
    if (text) tli_copy(&number, text, sizeof number);
    return number;
}

static uint32_t tli_number_function(tli_function function) { return tli_number_text(function); }
static uint32_t tli_number_rule(tli_rule rule) { return tli_number_text(rule); }

static const char *tli_text_after_number(const void *text) { return (const char *)text + sizeof(uint16_t); }
static const char *tli_name_function(tli_function function) { return tli_text_after_number(function); }
static const char *tli_name_rule(tli_rule rule) { return tli_text_after_number(rule); }
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

