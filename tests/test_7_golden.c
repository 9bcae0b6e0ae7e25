// [7] PRECISION: every row of the seed's golden_precision.csv, planned by the library: a graph of one op, the
// seed's own profiles, its criterion, priorities and weights. A row agrees, or it shows a defect of the seed and is
// counted under it; section P of SEED_DEFECTS has the numbers. What the seed computes is repeated here, so that a
// defect can be taken out of it alone.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

// -- the seed: its table and its score --

#define SEED_SCHEMES (1u << TL_SCHEME_I8 | 1u << TL_SCHEME_I16 | 1u << TL_SCHEME_DYNAMIC)

static const tl_scheme candidates[] = { TL_SCHEME_I8, TL_SCHEME_I16, TL_SCHEME_DYNAMIC };

typedef struct seed_profile {
    const char *op;
    double loss[3], speedup[3];  // int8, int16, dynamic
    tl_scheme recommended;
    int sensitive;
} seed_profile;

static const seed_profile seed_table[] = {
    { "matmul",    { 0.015, 0.005, 0.008 },   { 2.5, 2.2, 2.1 }, TL_SCHEME_I8,  0 },
    { "conv2d",    { 0.03, 0.008, 0.015 },    { 3.0, 2.0, 1.5 }, TL_SCHEME_I8,  0 },
    { "attention", { 0.08, 0.02, 0.04 },      { 2.0, 1.6, 1.3 }, TL_SCHEME_I16, 1 },
    { "relu",      { 0.001, 0.0005, 0.0008 }, { 1.8, 1.4, 1.2 }, TL_SCHEME_I8,  0 },
    { "*",         { 0.015, 0.005, 0.01 },    { 2.0, 1.5, 1.3 }, TL_SCHEME_I16, 1 },
};

#define SEED_ROWS 5

typedef struct golden_row {
    tl_criterion criterion;
    float  max_loss, min_speedup;          // of custom
    float  priorities[3];                  // int8, int16, dynamic
    float  performance_weight, accuracy_weight;
    char   op[32];
    int    scheme;                         // index into candidates
    double loss, speedup;
    int    has_nan_weight, has_bad_limit;
} golden_row;

static const seed_profile *seed_find(const char *op) {
    int i = 0;
    while (strcmp(seed_table[i].op, "*") && strcmp(seed_table[i].op, op)) i++;
    return &seed_table[i];
}

#define WITHOUT_PRIORITIES 1
#define WITHOUT_BONUS      2

// Its calculate_precision_score, in f32 as there.
static float seed_score(const golden_row *row, const seed_profile *profile, int scheme, int without) {
    float loss = (float)profile->loss[scheme], gain = (float)profile->speedup[scheme], score = 0;
    float accuracy = (1.0f - loss) * row->accuracy_weight, performance = (gain - 1.0f) * row->performance_weight;
    float bonus = scheme == 1 ? 2.0f : scheme == 0 ? -1.0f : 0.0f;
    if (without & WITHOUT_BONUS) bonus = 0;
    switch (row->criterion) {
    case TL_CRITERION_PERFORMANCE: score = performance * 2.0f + accuracy; break;
    case TL_CRITERION_ACCURACY:
        score = profile->sensitive ? accuracy * 3.0f + performance * 0.5f + bonus : accuracy * 2.0f + performance;
        break;
    case TL_CRITERION_BALANCED: score = accuracy + performance + (profile->sensitive ? bonus / 2.0f : 0.0f); break;
    case TL_CRITERION_CUSTOM:
        if (loss > row->max_loss || gain < row->min_speedup) return -INFINITY;
        score = accuracy + performance;
        break;
    case TL_CRITERION_COUNT: break;
    }
    return without & WITHOUT_PRIORITIES ? score : score * row->priorities[scheme];
}

// Its analyze_operation: the first of the best, and what it falls back to.
static int seed_choose(const golden_row *row, int without) {
    static const int fallbacks[] = { 1, 2, 0 };
    const seed_profile *profile = seed_find(row->op);
    float best = -INFINITY;
    int found = -1, i;
    for (i = 0; i < 3; i++) {
        float score = seed_score(row, profile, i, without);
        if (score > best) { best = score; found = i; }
    }
    for (i = 0; i < 3 && found < 0 && row->criterion == TL_CRITERION_CUSTOM; i++)
        if ((float)profile->loss[fallbacks[i]] <= row->max_loss) found = fallbacks[i];
    return found < 0 ? 1 : found;
}

// -- the rows --

static char *next_field(char **at) {
    char *field = *at, *end;
    int quoted = *field == '"';
    if (quoted) field++;
    end = strchr(field, quoted ? '"' : ',');
    if (!end) { *at = field + strlen(field); return field; }
    *at = quoted && end[1] == ',' ? end + 2 : end + 1;
    *end = 0;
    return field;
}

static int read_row(char *line, golden_row *row) {
    static const char *const names[] = { "Int8", "Int16", "Dynamic" };
    char *at = line, *field = next_field(&at), *second;
    int i;
    memset(row, 0, sizeof *row);
    row->scheme = -1;
    if (!strncmp(field, "Custom(", 7)) {
        row->criterion = TL_CRITERION_CUSTOM;
        row->max_loss = strtof(field + 7, &second);
        row->min_speedup = strtof(second + 1, NULL);
        row->has_bad_limit = !(row->max_loss >= 0) || !(row->min_speedup >= 0);
    } else {
        row->criterion = !strcmp(field, "Performance") ? TL_CRITERION_PERFORMANCE
                       : !strcmp(field, "Balanced") ? TL_CRITERION_BALANCED : TL_CRITERION_ACCURACY;
    }
    next_field(&at);
    for (i = 0; i < 3; i++) row->priorities[i] = strtof(next_field(&at), NULL);
    next_field(&at);  // fp32_priority: nothing reads it there
    row->performance_weight = strtof(next_field(&at), NULL);
    row->accuracy_weight = strtof(next_field(&at), NULL);
    row->has_nan_weight = row->performance_weight != row->performance_weight;
    snprintf(row->op, sizeof row->op, "%s", next_field(&at));
    field = next_field(&at);
    for (i = 0; i < 3; i++)
        if (!strcmp(field, names[i])) row->scheme = i;
    row->loss = strtod(next_field(&at), NULL);
    next_field(&at);
    row->speedup = strtod(next_field(&at), NULL);
    return row->scheme >= 0;
}

// The rows, read once; NULL after a line that says why.
static golden_row *read_rows(const char *test, int *count) {
    char *text = read_reference(test, "golden/golden_precision.csv", NULL), *line, *end;
    golden_row *rows;
    *count = 0;
    if (!text) return NULL;
    rows = (golden_row *)calloc(3000, sizeof *rows);
    line = strchr(text, '\n') + 1;
    for (; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        if (*count >= 3000 || !read_row(line, &rows[*count])) fail_msg("row %d cannot be read", *count);
        ++*count;
    }
    free(text);
    return rows;
}

// -- the library's answer --

static void fill_profiles(tl_precision_profile *profiles) {
    int i, k;
    memset(profiles, 0, SEED_ROWS * sizeof *profiles);
    for (i = 0; i < SEED_ROWS; i++) {
        profiles[i].op = seed_table[i].op;
        profiles[i].schemes = SEED_SCHEMES;
        profiles[i].recommended = seed_table[i].recommended;
        profiles[i].sensitive = seed_table[i].sensitive;
        for (k = 0; k < 3; k++) {
            profiles[i].loss[candidates[k]] = seed_table[i].loss[k];
            profiles[i].speedup[candidates[k]] = seed_table[i].speedup[k];
        }
    }
}

// The number that the seed was given in f32, as it was written.
static double widen(float value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return strtod(text, NULL);
}

// One op, nothing to convert. schemes: those that may be chosen.
static tl_result plan_row(tl_env *env, const golden_row *row, uint32_t schemes, tl_precision_plan *plan) {
    tl_precision_profile profiles[SEED_ROWS];
    tl_precision_desc desc;
    tl_node_desc node;
    uint64_t bytes = 4096;
    tl_graph graph;
    tl_result result;
    int i;
    memset(env, 0, sizeof *env);
    memset(&node, 0, sizeof node);
    memset(&desc, 0, sizeof desc);
    memset(plan, 0, sizeof *plan);
    tl_init_graph(&graph);
    node.name = "node";
    node.op = row->op;
    node.output_bytes = &bytes;
    node.output_count = 1;
    node.fwd_cost = 990000000;  // divides by every speed-up of the table
    result = tl_add_node(env, &graph, &node, NULL);
    fill_profiles(profiles);
    desc.graph = &graph;
    desc.criterion = row->criterion;
    desc.loss_limit = row->criterion == TL_CRITERION_CUSTOM ? widen(row->max_loss) : (double)INFINITY;
    desc.least_speedup = row->criterion == TL_CRITERION_CUSTOM ? widen(row->min_speedup) : 0;
    desc.schemes = schemes;
    desc.allow_sensitive = desc.allow_unknown = desc.any_result = 1;
    desc.profiles = profiles;
    desc.profile_count = SEED_ROWS;
    desc.performance_weight = widen(row->performance_weight);
    desc.accuracy_weight = widen(row->accuracy_weight);
    for (i = 0; i < 3; i++) desc.priorities[candidates[i]] = widen(row->priorities[i]);
    if (!result) result = tl_plan_precision(env, &desc, plan);
    tl_free_graph(env, &graph);
    return result;
}

// What the library chooses: an index into candidates, 3 = f32, 4 = nothing is within the limits, 5 = refused.
#define CHOSE_F32      3
#define CHOSE_NOTHING  4
#define REFUSED        5

static int choose(const golden_row *row, int with_f32) {
    tl_env env;
    tl_precision_plan plan;
    tl_result result = plan_row(&env, row, with_f32 ? SEED_SCHEMES | 1u << TL_SCHEME_F32 : SEED_SCHEMES, &plan);
    int chosen = CHOSE_F32, i;
    if (result == TL_ERROR_INFEASIBLE) return CHOSE_NOTHING;
    if (result) {
        assert_int_equal(result, TL_ERROR_INVALID_ARG);
        return REFUSED;
    }
    for (i = 0; i < 3; i++)
        if (plan.nodes[0].scheme == candidates[i]) chosen = i;
    tl_free_precision_plan(&env, &plan);
    return chosen;
}

// -- classes --

typedef enum row_class {
    AGREES, NO_F32, LIMITS_BROKEN, PRIORITIES_OVERRIDE, UNITS_MIXED, BONUS, NAMES, NAN_WEIGHT, BAD_LIMITS, CLASS_COUNT
} row_class;

// Whether the seed's answer is outside the limits that it was given.
static int breaks_limits(const golden_row *row) {
    return row->criterion == TL_CRITERION_CUSTOM &&
           (row->loss > widen(row->max_loss) || row->speedup < widen(row->min_speedup));
}

static row_class class_of(const golden_row *row) {
    int with_f32, without_f32;
    if (row->has_nan_weight) return NAN_WEIGHT;
    if (row->has_bad_limit) return BAD_LIMITS;
    if (!strcmp(row->op, "") || !strcmp(row->op, "Conv2D")) return NAMES;
    if (breaks_limits(row)) return LIMITS_BROKEN;
    with_f32 = choose(row, 1);
    if (with_f32 == row->scheme) return AGREES;
    without_f32 = choose(row, 0);
    if (without_f32 == row->scheme) return NO_F32;
    if (without_f32 == seed_choose(row, WITHOUT_PRIORITIES)) return PRIORITIES_OVERRIDE;
    if (without_f32 == seed_choose(row, WITHOUT_PRIORITIES | WITHOUT_BONUS)) return BONUS;
    return UNITS_MIXED;
}

// What a scheme costs, of 990000000, and what it loses; 3 = f32.
static uint64_t cost_of(const seed_profile *profile, int scheme) {
    return scheme == CHOSE_F32 ? 990000000 : (uint64_t)ceil(990000000 / profile->speedup[scheme] - 1e-3);
}

static double loss_of(const seed_profile *profile, int scheme) {
    return scheme == CHOSE_F32 ? 0 : profile->loss[scheme];
}

static int is_within(const golden_row *row, const seed_profile *profile, int scheme) {
    double speedup = 990000000 / (double)cost_of(profile, scheme);
    if (row->criterion != TL_CRITERION_CUSTOM) return 1;
    return loss_of(profile, scheme) <= widen(row->max_loss) && speedup >= widen(row->min_speedup);
}

// Each row of a class, with a check of its own; how many there were.
static int check_class(const char *test, row_class class, void (*check)(const golden_row *row)) {
    int count, found = 0, i;
    golden_row *rows = read_rows(test, &count);
    if (!rows) skip();
    for (i = 0; i < count; i++) {
        if (class_of(&rows[i]) != class) continue;
        found++;
        check(&rows[i]);
    }
    free(rows);
    return found;
}

static void seed_is_repeated_exactly(void **state) {
    int count, broken = 0, i;
    golden_row *rows = read_rows("seed_is_repeated_exactly", &count);
    (void)state;
    if (!rows) skip();
    assert_int_equal(count, 2860);
    for (i = 0; i < count; i++) {
        const seed_profile *profile = seed_find(rows[i].op);
        if (seed_choose(&rows[i], 0) != rows[i].scheme) fail_msg("row %d", i);
        assert_true(rows[i].loss == profile->loss[rows[i].scheme]);
        assert_true(rows[i].speedup == profile->speedup[rows[i].scheme]);
        broken += breaks_limits(&rows[i]);
    }
    assert_int_equal(broken, 1188);
    free(rows);
}

static void every_row_agrees_or_shows_a_defect(void **state) {
    static const int expected[CLASS_COUNT] = { 775, 96, 790, 136, 65, 8, 340, 260, 390 };
    int counts[CLASS_COUNT], count, i;
    golden_row *rows = read_rows("every_row_agrees_or_shows_a_defect", &count);
    (void)state;
    if (!rows) skip();
    memset(counts, 0, sizeof counts);
    for (i = 0; i < count; i++) counts[class_of(&rows[i])]++;
    for (i = 0; i < CLASS_COUNT; i++) {
        if (counts[i] != expected[i]) fail_msg("class %d: %d rows, not %d", i, counts[i], expected[i]);
        count -= counts[i];
    }
    assert_int_equal(count, 0);
    free(rows);
}

// Of rows that agree the numbers do, too.
static void check_numbers(const golden_row *row) {
    tl_env env;
    tl_precision_plan plan;
    assert_int_equal(plan_row(&env, row, SEED_SCHEMES | 1u << TL_SCHEME_F32, &plan), TL_OK);
    assert_true(plan.loss == row->loss && plan.nodes[0].loss == row->loss);
    assert_true(fabs(plan.speedup - row->speedup) < 1e-8 && fabs(plan.nodes[0].speedup - row->speedup) < 1e-8);
    assert_int_equal(plan.proven, 1);
    tl_free_precision_plan(&env, &plan);
}

static void rows_that_agree_have_the_same_numbers(void **state) {
    (void)state;
    assert_int_equal(check_class("rows_that_agree_have_the_same_numbers", AGREES, check_numbers), 775);
}

// Where f32 may be chosen, too, it is; or it is the far end of the front, and the knee moves.
static void check_f32(const golden_row *row) {
    int chosen = choose(row, 1);
    assert_true(chosen == CHOSE_F32 || (row->criterion == TL_CRITERION_BALANCED && chosen != row->scheme));
    assert_int_equal(choose(row, 0), row->scheme);
}

static void p4_f32_cannot_be_chosen(void **state) {
    (void)state;
    assert_int_equal(check_class("p4_f32_cannot_be_chosen", NO_F32, check_f32), 96);
}

// The library either stays within the limits, or says that nothing does: which is true.
static void check_limits(const golden_row *row) {
    const seed_profile *profile = seed_find(row->op);
    int chosen = choose(row, 1), i;
    assert_false(is_within(row, profile, row->scheme));
    if (chosen != CHOSE_NOTHING) assert_true(is_within(row, profile, chosen));
    else for (i = 0; i <= CHOSE_F32; i++) assert_false(is_within(row, profile, i));
}

static void p5_limits_of_the_user_are_broken(void **state) {
    (void)state;
    assert_int_equal(check_class("p5_limits_of_the_user_are_broken", LIMITS_BROKEN, check_limits), 790);
}

static void check_priorities(const golden_row *row) {
    assert_int_not_equal(seed_choose(row, 0), seed_choose(row, WITHOUT_PRIORITIES));
    assert_int_equal(choose(row, 0), seed_choose(row, WITHOUT_PRIORITIES));
}

static void p6_priorities_override_the_criterion(void **state) {
    (void)state;
    assert_int_equal(check_class("p6_priorities_override_the_criterion", PRIORITIES_OVERRIDE, check_priorities), 136);
}

// What the criterion is named after is not what decides: there is one faster, or one that loses less, or
// weights on losses alone still pick the one that is faster.
static void check_units(const golden_row *row) {
    const seed_profile *profile = seed_find(row->op);
    int chosen = choose(row, 0);
    if (row->criterion == TL_CRITERION_ACCURACY) {
        assert_true(loss_of(profile, row->scheme) > loss_of(profile, chosen));
    } else if (row->criterion == TL_CRITERION_BALANCED) {
        assert_true(row->accuracy_weight > row->performance_weight);
        assert_true(loss_of(profile, row->scheme) > loss_of(profile, chosen));
    } else {
        assert_true(cost_of(profile, row->scheme) > cost_of(profile, chosen));
    }
}

static void p7_losses_and_speedups_are_added_as_they_are(void **state) {
    (void)state;
    assert_int_equal(check_class("p7_losses_and_speedups_are_added_as_they_are", UNITS_MIXED, check_units), 65);
}

static void check_bonus(const golden_row *row) {
    assert_true(seed_find(row->op)->sensitive);
    assert_int_not_equal(seed_choose(row, WITHOUT_PRIORITIES),
                         seed_choose(row, WITHOUT_PRIORITIES | WITHOUT_BONUS));
}

static void p8_a_bonus_outweighs_the_measured_numbers(void **state) {
    (void)state;
    assert_int_equal(check_class("p8_a_bonus_outweighs_the_measured_numbers", BONUS, check_bonus), 8);
}

// Case does not matter here; a node without an op has the op "op", which no row names.
static void check_names(const golden_row *row) {
    golden_row same = *row;
    strcpy(same.op, row->op[0] ? "conv2d" : "op");
    assert_int_equal(choose(row, 1), row->op[0] ? choose(&same, 1) : REFUSED);
}

static void p9_names_are_compared_with_case(void **state) {
    (void)state;
    assert_int_equal(check_class("p9_names_are_compared_with_case", NAMES, check_names), 340);
}

static void check_refused(const golden_row *row) {
    const char *rule = row->has_nan_weight ? "performance_weight, accuracy_weight: must be finite and >= 0"
                     : !(row->max_loss >= 0) ? "loss_limit: must be >= 0 and a number"
                                             : "least_speedup: must be finite and >= 0";
    golden_row known = *row;
    tl_precision_plan plan;
    tl_env env;
    if (!row->op[0]) strcpy(known.op, "op");
    assert_int_equal(plan_row(&env, &known, SEED_SCHEMES, &plan), TL_ERROR_INVALID_ARG);
    assert_true(is_zero(&plan, sizeof plan));
    if (row->has_nan_weight && row->has_bad_limit) return;  // either sentence
    assert_int_equal(strncmp(env.error.text, "tl_plan_precision: ", 19), 0);
    assert_string_equal(env.error.text + 19, rule);
}

static void p12_nan_weights_lose_every_score(void **state) {
    (void)state;
    assert_int_equal(check_class("p12_nan_weights_lose_every_score", NAN_WEIGHT, check_refused), 260);
}

static void p13_nan_and_negative_limits_are_taken(void **state) {
    (void)state;
    assert_int_equal(check_class("p13_nan_and_negative_limits_are_taken", BAD_LIMITS, check_refused), 390);
}

// By the definition of each criterion, over all schemes there are.
static void check_choice(const golden_row *row, int with_f32) {
    const seed_profile *profile = seed_find(!strcmp(row->op, "Conv2D") ? "conv2d" : row->op);
    int chosen = choose(row, with_f32), i, any = 0;
    for (i = 0; i <= (with_f32 ? CHOSE_F32 : 2); i++) {
        if (!is_within(row, profile, i)) continue;
        any = 1;
        assert_true(chosen != CHOSE_NOTHING);
        if (row->criterion == TL_CRITERION_ACCURACY) assert_true(loss_of(profile, chosen) <= loss_of(profile, i));
        else if (row->criterion != TL_CRITERION_BALANCED)
            assert_true(cost_of(profile, chosen) <= cost_of(profile, i));
        else  // on the front
            assert_false(cost_of(profile, i) < cost_of(profile, chosen) &&
                         loss_of(profile, i) < loss_of(profile, chosen));
    }
    assert_int_equal(any, chosen != CHOSE_NOTHING);
    if (any) assert_true(is_within(row, profile, chosen));
}

static void limits_are_never_exceeded_and_accuracy_loses_least(void **state) {
    int count, checked = 0, i;
    golden_row *rows = read_rows("limits_are_never_exceeded_and_accuracy_loses_least", &count);
    (void)state;
    if (!rows) skip();
    for (i = 0; i < count; i++) {
        if (rows[i].has_nan_weight || rows[i].has_bad_limit || !rows[i].op[0]) continue;
        check_choice(&rows[i], 0);
        check_choice(&rows[i], 1);
        checked++;
    }
    assert_int_equal(checked, 2040);
    free(rows);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_is_repeated_exactly),
        cmocka_unit_test(every_row_agrees_or_shows_a_defect),
        cmocka_unit_test(rows_that_agree_have_the_same_numbers),
        cmocka_unit_test(p4_f32_cannot_be_chosen),
        cmocka_unit_test(p5_limits_of_the_user_are_broken),
        cmocka_unit_test(p6_priorities_override_the_criterion),
        cmocka_unit_test(p7_losses_and_speedups_are_added_as_they_are),
        cmocka_unit_test(p8_a_bonus_outweighs_the_measured_numbers),
        cmocka_unit_test(p9_names_are_compared_with_case),
        cmocka_unit_test(p12_nan_weights_lose_every_score),
        cmocka_unit_test(p13_nan_and_negative_limits_are_taken),
        cmocka_unit_test(limits_are_never_exceeded_and_accuracy_loses_least),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
