// TL_OLD_NAMES: a program with names of version 0.4 compiles and runs as it is.
// lang: both
#define TL_OLD_NAMES
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main(void) {
    static float weights[4];
    tl_state state;
    tl_run_desc desc;
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
    return 0;
}
