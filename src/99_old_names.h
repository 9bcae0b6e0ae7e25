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

// Which activations stay is a tl_policy. Fields that have moved into it have no old name, because a macro of so
// common a word would hit others: tl_checkpoint_config.strategy, now policy; interval, slot_count and
// cost_threshold of tl_policy_desc, whose policy was the kind alone; as.every_n.n, now as.every_n.interval;
// as.uniform, as.selective and as.dynamic of a config, now as.every_n, as.layers and as.fraction.
#define tl_checkpoint                 tl_policy
#define tl_checkpoint_kind            tl_policy_kind
#define TL_CHECKPOINT_NONE            TL_POLICY_KEEP_ALL    // it made no checkpoints and kept everything
#define TL_CHECKPOINT_UNIFORM         TL_POLICY_EVERY_N
#define TL_CHECKPOINT_SELECTIVE       TL_POLICY_LAYERS      // by a list; selective is by cost
#define TL_CHECKPOINT_DYNAMIC         TL_POLICY_FRACTION
#define TL_CHECKPOINT_COUNT           TL_POLICY_COUNT
#define tl_recompute_policy           tl_policy
#define tl_recompute_policy_kind      tl_policy_kind
#define TL_RECOMPUTE_POLICY_ALL       TL_POLICY_KEEP_ALL
#define TL_RECOMPUTE_POLICY_NONE      TL_POLICY_NONE
#define TL_RECOMPUTE_POLICY_SELECTIVE TL_POLICY_SELECTIVE
#define TL_RECOMPUTE_POLICY_EVERY_N   TL_POLICY_EVERY_N
#define TL_RECOMPUTE_POLICY_COUNT     TL_POLICY_COUNT
#define tl_recompute_policy_all       tl_policy_keep_all
#define tl_recompute_policy_none      tl_policy_none
#define tl_recompute_policy_selective tl_policy_selective
#define tl_recompute_policy_every_n   tl_policy_every_n
#define tl_check_recompute_policy     tl_check_policy       // every-n 0 passes; tl_plan_policy alone takes it
#define tl_name_recompute_policy      tl_name_policy        // "all" is "keep-all"
#define tl_parse_recompute_policy     tl_parse_policy       // likewise

#ifndef TL_NO_ONLINE
static inline tl_policy tl_default_recompute_policy(void) { return tl_policy_selective(100); }
#endif

#ifndef TL_NO_PLANNERS
// The names of policies in the JSON of configs; tl_parse_checkpoint_config_json reads these, too.
#define TL_CHECKPOINTS(X) \
    X(TL_CHECKPOINT_NONE,      "None",      "keep every activation")                              \
    X(TL_CHECKPOINT_UNIFORM,   "Uniform",   "keep the layers whose number is divisible by the interval") \
    X(TL_CHECKPOINT_SELECTIVE, "Selective", "keep the layers of a list")                          \
    X(TL_CHECKPOINT_DYNAMIC,   "Dynamic",   "the cheapest kept set below a fraction of the keep-all peak")

static inline const char *tl_name_checkpoint(tl_policy_kind kind) {
#define TLI_OLD_NAME(id, name, help) if (kind == id) return name;
    TL_CHECKPOINTS(TLI_OLD_NAME)
#undef TLI_OLD_NAME
    return "?";
}

#ifndef TL_NO_TEXT
static inline int tl_parse_checkpoint(const char *text, tl_policy_kind *kind) {
    int32_t value;
    for (value = 0; value < TL_POLICY_COUNT; value++) {
        const char *name = tl_name_checkpoint((tl_policy_kind)value);
        size_t i = 0;
        while (name[i] && name[i] == text[i]) i++;
        *kind = (tl_policy_kind)value;
        if (name[i] == text[i] && name[0] != '?') return 1;
    }
    *kind = TL_POLICY_KEEP_ALL;
    return 0;
}
#endif
#endif
#endif

