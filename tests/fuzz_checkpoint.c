// clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_checkpoint.c -o build/fuzz_checkpoint && build/fuzz_checkpoint -max_len=4096 tests/corpus/fuzz_checkpoint
//
// A config that tl_parse_checkpoint_config_json accepts prints, parses back and prints the same bytes; what the rules
// accept for eight layers can be measured there, or is infeasible. What is refused has a code, a sentence and a zero config.

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/fuzz_bytes.h"

static void use(tl_env *env, const tl_checkpoint_config *config) {
    tl_checkpoint_effect effect;
    tl_result result = tl_check_checkpoint_config(env, config, 8);
    uint64_t layer, kept = 0;
    char text[512];
    MUST(tl_print_checkpoint_config(config, text, sizeof text) < sizeof text);
    for (layer = 0; layer < 8; layer++) kept += (uint64_t)tl_keeps_layer(config, layer);
    MUST(kept <= 8);
    if (result) {
        MUST(strstr(env->error.text, "tl_check_checkpoint_config: "));
        MUST(tl_measure_checkpoints(env, NULL, 8, config, &effect) == result);
        return;
    }
    result = tl_measure_checkpoints(env, NULL, 8, config, &effect);
    MUST(!result || result == TL_ERROR_INFEASIBLE);
    if (result) return;
    MUST(effect.compute_overhead_ratio >= 1.0 && effect.keep_all_peak_bytes == 10);
    MUST(config->policy.kind == TL_POLICY_FRACTION || effect.kept_count == kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const tl_checkpoint_config zero;
    tl_env env;
    tl_checkpoint_config config, again;
    memset(&env, 0, sizeof env);
    if (tl_parse_checkpoint_config_json(&env, (const char *)data, size, &config)) {
        MUST(env.error.code == TL_ERROR_PARSE);
        MUST(strstr(env.error.text, "tl_parse_checkpoint_config_json: line "));
        MUST(!memcmp(&config, &zero, sizeof zero));
        return 0;
    }
    {
        size_t length = tl_print_checkpoint_config_json(&config, NULL, 0);
        char *first = (char *)malloc(length + 1), *second = (char *)malloc(length + 1);
        MUST(first && second);
        MUST(tl_print_checkpoint_config_json(&config, first, length + 1) == length);
        MUST(!tl_parse_checkpoint_config_json(&env, first, length, &again));
        MUST(tl_print_checkpoint_config_json(&again, second, length + 1) == length);
        MUST(!memcmp(first, second, length + 1));
        free(first);
        free(second);
        tl_free_checkpoint_config(&env, &again);
    }
    use(&env, &config);
    tl_free_checkpoint_config(&env, &config);
    return 0;
}
