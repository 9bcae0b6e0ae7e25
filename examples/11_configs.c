// 11_configs.c -- a strategy and a checkpoint config as JSON
//
// You learn: how what was decided is stored as text, read back and checked, so that a file can
// hold it, and what a wrong file is answered with. It prints both texts, what the config does to a
// chain of 12 layers, what each policy of a config does to it (or the one that you name), and two
// refusals. Read next: the banners [2] and [5] of tl_strategy.h.
//
// check:
//
//     mkdir -p build && cc -o build/11_configs examples/11_configs.c && build/11_configs

#include <stdio.h>
#include <string.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static int fail(const tl_env *env) {
    fprintf(stderr, "%s\n", env->error.text);
    return 1;
}

// Write a strategy, read it back: the same strategy, and printing it says what a preset holds.
static int show_strategy(tl_env *env) {
    tl_strategy strategy = tl_strategy_training(), copy;
    char json[512], summary[512];
    strategy = tl_with_gradient(strategy, tl_gradient_checkpointed(4));
    size_t length = tl_print_strategy_json(&strategy, json, sizeof json);
    if (tl_parse_strategy_json(env, json, length, &copy)) return fail(env);
    if (!tl_equals_strategy(&strategy, &copy) || tl_check_strategy(env, &copy)) return fail(env);
    tl_print_strategy(&copy, summary, sizeof summary);
    printf("%s\n\n%s\n", json, summary);
    return 0;
}

// The same for a checkpoint config, in the form that the Rust crate's serde writes, and what the
// config does: read off a simulated plan, not off a formula.
static int show_config(tl_env *env) {
    static const uint64_t layers[] = { 0, 4, 8, 11 };
    tl_checkpoint_config config = tl_checkpoint_selective(layers, 4), copy;
    tl_checkpoint_effect effect;
    char json[256];
    size_t length = tl_print_checkpoint_config_json(&config, json, sizeof json);
    if (tl_parse_checkpoint_config_json(env, json, length, &copy)) return fail(env);
    if (tl_check_checkpoint_config(env, &copy, 12) ||                  // 12 layers: 0 to 11
        tl_measure_checkpoints(env, NULL, 12, &copy, &effect)) {       // NULL: equal layers
        tl_free_checkpoint_config(env, &copy);
        return fail(env);
    }
    printf("%s\n\n%d of 12 layers kept: %.1f %% of the memory saved, cost x %.3f\n\n", json,
           (int)effect.kept_count, 100.0 * effect.memory_savings_ratio,
           effect.compute_overhead_ratio);
    tl_free_checkpoint_config(env, &copy);  // a config that was read owns its layers
    return 0;
}

// Text that is not right is an error with a sentence, and what came out is empty.
static int show_refusals(tl_env *env) {
    static const char *const texts[] = {
        "{\"strategy\":{\"Uniform\":{\"interval\":0}},\"checkpoint_attention\":true,"
        "\"checkpoint_ffn\":true,\"min_checkpoint_interval\":1}",
        "{\"strategy\":{\"Uniform\":{\"interval\":2}",
    };
    tl_checkpoint_config config;
    int i;
    for (i = 0; i < 2; i++) {
        if (!tl_parse_checkpoint_config_json(env, texts[i], strlen(texts[i]), &config) &&
            !tl_check_checkpoint_config(env, &config, 12))
            return 1;
        printf("refused: %s\n", env->error.text);
        tl_free_checkpoint_config(env, &config);
    }
    return 0;
}

// Each policy that a config carries out, on the same chain; the others are refused.
static int show_policies(tl_env *env, tl_policy_kind only) {
    static const uint64_t layers[] = { 0, 5, 9 };
    tl_checkpoint_config configs[4];
    int i, shown = 0;
    configs[0] = tl_checkpoint_none();
    configs[1] = tl_checkpoint_uniform(4);
    configs[2] = tl_checkpoint_selective(layers, 3);
    if (tl_checkpoint_dynamic(env, 12, 0.5, &configs[3])) return fail(env);
    for (i = 0; i < 4; i++) {
        tl_checkpoint_effect effect;
        if (only != TL_POLICY_COUNT && configs[i].policy.kind != only) continue;
        if (tl_measure_checkpoints(env, NULL, 12, &configs[i], &effect)) return fail(env);
        printf("%-10s %2d of 12 layers kept, cost x %.3f\n", tl_name_policy(configs[i].policy.kind),
               (int)effect.kept_count, effect.compute_overhead_ratio);
        shown++;
    }
    if (!shown) printf("no config carries out %s\n", tl_name_policy(only));
    return !shown;
}

int main(int argc, char **argv) {
    tl_env env = { 0 };
    tl_policy_kind only = TL_POLICY_COUNT;
    if (argc > 1 && !tl_parse_policy(argv[1], &only)) {
        printf("usage: %s [POLICY]   one of keep-all every-n layers fraction\n", argv[0]);
        return strcmp(argv[1], "--help") != 0;
    }
    return show_strategy(&env) || show_config(&env) || show_policies(&env, only) || show_refusals(&env);
}
