// [8] PARALLEL: chains cut into stages, against reference rows, published plans and enumeration.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

#define UNITS 64
#define NONE UINT64_MAX

// -- reference data --

typedef struct chain { tl_unit units[UNITS]; int32_t count; } chain;

// layer, ms there and back, activation, parameter and output bytes. 0 = no such data.
static int read_chain(const char *name, chain *c) {
    char *text = read_reference("chain", name, NULL), *line;
    if (!text) return 0;
    memset(c, 0, sizeof *c);
    for (line = strtok(text, "\n"); (line = strtok(NULL, "\n"));) {
        double ms;
        unsigned long long activation, parameters, output;
        tl_unit *unit = &c->units[c->count++];
        assert_int_equal(sscanf(line, "%*d,%lf,%llu,%llu,%llu", &ms, &activation, &parameters, &output), 4);
        unit->forward_ns = (uint64_t)(ms * 1e6 / 3 + 0.5);      // one part there, two back: their sum alone counts
        unit->backward_ns = (uint64_t)(ms * 1e6 + 0.5) - unit->forward_ns;
        unit->activation_bytes = activation;
        unit->parameter_bytes = parameters;
        unit->output_bytes = output;
    }
    free(text);
    return 1;
}

static tl_partition_desc desc_of(const chain *c, int32_t ranks, const tl_link *link) {
    tl_partition_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = c->units;
    desc.unit_count = c->count;
    desc.rank_count = ranks;
    desc.micro_batch_count = 64;
    desc.link = link;
    return desc;
}

static int is_near(uint64_t a, uint64_t b, uint64_t distance) { return a <= b + distance && b <= a + distance; }

// The next value of a line of comma separated ones; empty ones are "".
static const char *next_value(char **line) {
    char *at = *line, *end = strchr(at, ',');
    if (end) *end = 0;
    *line = end ? end + 1 : at + strlen(at);
    return at;
}

static void all_reference_rows_have_their_values(void **state) {
    chain vgg, alexnet;
    char *text = read_reference("pipeline_reference", "parallel/pipeline_reference.csv", NULL), *line, *rest;
    int rows = 0;
    (void)state;
    if (!text || !read_chain("parallel/chain_vgg16.csv", &vgg) || !read_chain("parallel/chain_alexnet.csv", &alexnet)) {
        free(text);
        skip();
    }
    for (line = strchr(text, '\n') + 1; *line; line = rest) {
        tl_env env = silent_env();
        tl_partition partition;
        tl_partition_desc desc;
        tl_link link = {0, 0};
        const char *value;
        tl_result result;
        rest = strchr(line, '\n');
        *rest++ = 0;
        desc = desc_of(!strcmp(next_value(&line), "vgg16") ? &vgg : &alexnet, 0, NULL);
        desc.rank_count = desc.stage_count = atoi(next_value(&line));
        link.bytes_per_second = (uint64_t)atof(next_value(&line));
        if (link.bytes_per_second) desc.link = &link;
        desc.budget_bytes = strtoull(next_value(&line), NULL, 10);
        desc.parameter_multiplier = strtoull(next_value(&line), NULL, 10);
        next_value(&line);
        next_value(&line);
        value = next_value(&line);
        result = tl_plan_partition(&env, &desc, &partition);
        assert_int_equal(result, *value ? TL_OK : TL_ERROR_INFEASIBLE);
        if (*value && !is_near(partition.value_ns, (uint64_t)(atof(value) * 1e6 + 0.5), 1))
            fail_msg("row %d: %llu ns, not %s ms", rows + 1, (unsigned long long)partition.value_ns, value);
        if (*value) assert_true(partition.is_proven && partition.peak_bytes <= (desc.budget_bytes ? desc.budget_bytes : NONE));
        if (result) {       // what the error names would do, and a byte less would not
            desc.budget_bytes = tl_find_least_budget(&env.error);
            assert_int_equal(tl_plan_partition(&env, &desc, &partition), TL_OK);
            assert_true(partition.peak_bytes == desc.budget_bytes);
            tl_free_partition(NULL, &partition);
            desc.budget_bytes--;
            assert_int_equal(tl_plan_partition(&env, &desc, &partition), TL_ERROR_INFEASIBLE);
        }
        tl_free_partition(NULL, &partition);
        rows++;
    }
    free(text);
    assert_int_equal(rows, 105);
}

// -- published plans --

typedef struct published {
    const char *model;
    int32_t  ranks;
    uint64_t rate;
    tl_replication replication;
    uint64_t value;
    int32_t  stages[8];         // first unit after each stage, and its replicas; 0 = any
} published;

static void published_plans_are_found(void **state) {
    static const published rows[] = {
        { "parallel/chain_vgg16.csv", 16, UINT64_C(3125000000), TL_REPLICATION_PIPEDREAM, 45524808, { 25, 15, 40, 1 } },
        { "parallel/chain_vgg16.csv", 8, UINT64_C(1000000000), TL_REPLICATION_PIPEDREAM, 103833170, { 24, 7, 40, 1 } },
        { "parallel/chain_alexnet.csv", 16, UINT64_C(1000000000), TL_REPLICATION_PIPEDREAM, 18874368, { 0 } },
        { "parallel/chain_vgg16.csv", 4, 0, TL_REPLICATION_NONE, 216450000, { 0 } },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_link link = {0, 0};
        tl_partition partition;
        tl_partition_desc desc;
        chain c;
        int32_t k;
        if (!read_chain(rows[i].model, &c)) skip();
        link.bytes_per_second = rows[i].rate;
        desc = desc_of(&c, rows[i].ranks, rows[i].rate ? &link : NULL);
        desc.replication = rows[i].replication;
        if (tl_plan_partition(&env, &desc, &partition)) fail_msg("%s", env.error.text);
        if (!is_near(partition.value_ns, rows[i].value, 2))
            fail_msg("%s: %llu", rows[i].model, (unsigned long long)partition.value_ns);
        for (k = 0; rows[i].stages[2 * k] && k < 4; k++) {
            assert_true(k < partition.stage_count);
            assert_int_equal(partition.stages[k].end_unit, rows[i].stages[2 * k]);
            assert_int_equal(partition.stages[k].replica_count, rows[i].stages[2 * k + 1]);
        }
        assert_true(partition.is_proven);
        tl_free_partition(NULL, &partition);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reference_rows_have_their_values),
        cmocka_unit_test(published_plans_are_found),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
