// TL_OLD_NAMES: a program with names of version 0.4 compiles and runs as it is.
// lang: both
#define TL_OLD_NAMES
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main(void) {
    static float weights[4];
    tl_state state;
    tl_run_desc desc;
    const uint64_t layers[] = { 1, 3 };
    tl_checkpoint_config config = tl_checkpoint_selective(layers, 2);
    tl_checkpoint checkpoint = config.policy;
    tl_checkpoint_kind kind = TL_CHECKPOINT_DYNAMIC;
    tl_recompute_policy policy = tl_default_recompute_policy();
    tl_recompute_policy_kind recompute = TL_RECOMPUTE_POLICY_ALL;
    tl_heap *heap = NULL;
    size_t offset = 1;
    int32_t piece = 0;
    tli_zero(&state, sizeof state);
    tli_zero(&desc, sizeof desc);
    state.kind = TL_STATE_PARAMETER;
    state.host = weights;
    state.bytes = sizeof weights;
    desc.states = &state;
    desc.state_count = 1;
    if (desc.variables != &state || desc.variable_count != 1) return 1;
    if (tl_name_state(TL_STATE_GRADIENT)[0] != 'g' || tl_name_state(TL_STATE_COUNT)[0] != '?') return 2;
    if (tl_init_heap(NULL, 64, 1, &heap) || tl_add_piece(heap, 64, &offset, &piece) || offset != 0) return 3;
    tl_free_piece(heap, piece);
    tl_free_heap(heap);
    if (checkpoint.kind != TL_CHECKPOINT_SELECTIVE || tl_name_checkpoint(checkpoint.kind)[0] != 'S') return 4;
    if (tl_name_checkpoint(TL_CHECKPOINT_COUNT)[0] != '?' || tl_name_checkpoint(TL_POLICY_CHAIN)[0] != '?') return 5;
    if (!tl_parse_checkpoint("Uniform", &kind) || kind != TL_CHECKPOINT_UNIFORM) return 6;
    if (tl_parse_checkpoint("Uni", &kind) || tl_parse_checkpoint("?", &kind) || kind != TL_CHECKPOINT_NONE) return 7;
    if (policy.kind != TL_RECOMPUTE_POLICY_SELECTIVE || tl_check_recompute_policy(NULL, &policy)) return 8;
    desc.policy = tl_recompute_policy_every_n(3);
    if (desc.policy.kind != TL_RECOMPUTE_POLICY_EVERY_N || tl_recompute_policy_selective(5).as.selective.cost_threshold != 5) return 9;
    if (!tl_parse_recompute_policy("none", &recompute) || recompute != TL_RECOMPUTE_POLICY_NONE) return 10;
    if (tl_name_recompute_policy(TL_RECOMPUTE_POLICY_COUNT)[0] != '?') return 11;
    if (tl_recompute_policy_all().kind == tl_recompute_policy_none().kind) return 12;
    return 0;
}
