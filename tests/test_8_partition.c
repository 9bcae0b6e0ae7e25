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
        if (*value) assert_true(partition.is_proven);
        if (*value && desc.budget_bytes) assert_true(partition.peak_bytes <= desc.budget_bytes);
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

// -- enumeration --
//
// All ways to put ranges of units on ranks in order, idle ranks and replicas included, each priced from the units.

#define RANKS 5

typedef struct tried {
    const tl_partition_desc *desc;
    int32_t  first_unit[RANKS + 1], first_rank[RANKS], replicas[RANKS], count;
    uint64_t value, least_bytes;        // of all ways that fit; of all ways, the least of the most bytes
    long     ways, fitting;
} tried;

static uint64_t divided(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static uint64_t link_ns(const tl_link *link, uint64_t bytes) {
    return link ? divided(bytes * 1000000000, link->bytes_per_second) : 0;
}

static uint64_t mixed_time(const tl_stage_query *q) {       // of a caller whose times follow no rule
    return tl_mix_u64((uint64_t)q->first_unit * 64 + (uint64_t)q->end_unit, (uint64_t)q->stages_after) % 1000;
}

static uint64_t mixed_bytes(const tl_stage_query *q) {
    return tl_mix_u64((uint64_t)q->end_unit * 64 + (uint64_t)q->first_unit, (uint64_t)q->in_flight_count) % 100;
}

static tl_result measure_mixed(const tl_stage_query *q, tl_stage_cell *cell, void *user) {
    ++*(long *)user;
    cell->time_ns = mixed_time(q);
    cell->bytes = mixed_bytes(q);
    cell->fits = !q->budget_bytes || cell->bytes <= q->budget_bytes;
    return TL_OK;
}

// Time and bytes of stage s of a way. 0 = it does not fit.
static int price_stage(const tried *t, int32_t s, uint64_t *time, uint64_t *bytes) {
    const tl_partition_desc *desc = t->desc;
    uint64_t r = (uint64_t)t->replicas[s], weights = 0, held = 0, cost = 0, most = NONE, flying, ring;
    int32_t after = t->count - 1 - s, i;
    *time = 0;
    flying = (uint64_t)(desc->pipeline == TL_PIPELINE_GPIPE || desc->micro_batch_count <= after ? desc->micro_batch_count : after + 1);
    for (i = t->first_unit[s]; i < t->first_unit[s + 1]; i++) {
        weights += desc->units[i].parameter_bytes;
        held += desc->units[i].activation_bytes;
        cost += desc->units[i].forward_ns + desc->units[i].backward_ns;
    }
    for (i = t->first_rank[s]; i < t->first_rank[s] + t->replicas[s]; i++) {
        uint64_t over = desc->ranks && desc->ranks[i].cost_numerator ? desc->ranks[i].cost_numerator : 1;
        uint64_t under = desc->ranks && desc->ranks[i].cost_denominator ? desc->ranks[i].cost_denominator : 1;
        uint64_t budget = desc->ranks ? desc->ranks[i].budget_bytes : desc->budget_bytes;
        if (divided(cost * over, under) > *time) *time = divided(cost * over, under);
        if (budget && budget < most) most = budget;
    }
    *bytes = desc->rank_bytes + (desc->parameter_multiplier ? desc->parameter_multiplier : 1) * weights + divided(flying * held, r);
    if (desc->measure) {
        tl_stage_query q;
        memset(&q, 0, sizeof q);
        q.first_unit = t->first_unit[s];
        q.end_unit = t->first_unit[s + 1];
        q.stages_after = after;
        q.in_flight_count = (int32_t)flying;
        *time = mixed_time(&q);
        *bytes = mixed_bytes(&q);
    }
    if (r > 1) {
        ring = divided(link_ns(desc->link, 2 * weights) * (r - 1), r);
        *time = desc->replication == TL_REPLICATION_PIPEDREAM ? divided(*time + 2 * ring, r)
                                                              : divided(*time, r) + ring + 2 * (r - 1) * desc->link->latency_ns;
    }
    return *bytes <= most;
}

static void price_way(tried *t) {
    const tl_partition_desc *desc = t->desc;
    uint64_t largest = 0, sum = 0, peak = 0, value;
    int32_t s;
    int fits = 1;
    if (desc->stage_count && desc->stage_count != t->count) return;
    for (s = 0; s < t->count; s++) {
        uint64_t time, bytes, transfer, sent = 0;
        fits &= price_stage(t, s, &time, &bytes);
        if (s + 1 < t->count) {
            int32_t fewer = t->replicas[s] < t->replicas[s + 1] ? t->replicas[s] : t->replicas[s + 1];
            uint64_t whole = link_ns(desc->link, 2 * desc->units[t->first_unit[s + 1] - 1].output_bytes) +
                             (desc->link ? 2 * desc->link->latency_ns : 0);
            transfer = divided(whole, (uint64_t)fewer);
            sent = divided(whole, (uint64_t)t->replicas[s]);
            if (transfer > largest) largest = transfer;
        }
        sum += time + sent;
        if (time > largest) largest = time;
        if (bytes > peak) peak = bytes;
    }
    t->ways++;
    if (peak < t->least_bytes) t->least_bytes = peak;
    if (!fits) return;
    t->fitting++;
    value = desc->objective == TL_PARTITION_BOTTLENECK ? largest : sum + (uint64_t)(desc->micro_batch_count - 1) * largest;
    if (value < t->value) t->value = value;
}

static void try_from(tried *t, int32_t unit, int32_t rank) {
    const tl_partition_desc *desc = t->desc;
    int32_t limit = desc->replication ? desc->replica_limit ? desc->replica_limit : desc->rank_count : 1, r, end;
    if (unit == desc->unit_count) { price_way(t); return; }
    if (rank == desc->rank_count) return;
    try_from(t, unit, rank + 1);
    for (r = 1; r <= limit && rank + r <= desc->rank_count; r++)
        for (end = unit + 1; end <= desc->unit_count; end++) {
            t->first_unit[t->count] = unit;
            t->first_unit[t->count + 1] = end;
            t->first_rank[t->count] = rank;
            t->replicas[t->count++] = r;
            try_from(t, end, rank + r);
            t->count--;
            if (t->count) t->first_unit[t->count] = unit;
        }
}

static tried try_all(const tl_partition_desc *desc) {
    tried t;
    memset(&t, 0, sizeof t);
    t.desc = desc;
    t.value = t.least_bytes = NONE;
    try_from(&t, 0, 0);
    return t;
}

typedef struct random_chain { tl_unit units[8]; tl_rank ranks[RANKS]; tl_link link; tl_partition_desc desc; } random_chain;

static uint64_t below(tl_random *random, uint64_t limit) { return tl_next_random_below(random, limit); }

static void fill_chain(tl_random *random, random_chain *c) {
    tl_partition_desc *desc = &c->desc;
    int32_t i;
    memset(c, 0, sizeof *c);
    desc->units = c->units;
    desc->unit_count = 1 + (int32_t)below(random, 7);
    desc->replication = (tl_replication)below(random, TL_REPLICATION_COUNT);
    desc->rank_count = 1 + (int32_t)below(random, desc->replication ? 4 : 5);
    if (!desc->replication && desc->rank_count > desc->unit_count) desc->rank_count = desc->unit_count;
    for (i = 0; i < desc->unit_count; i++) {
        c->units[i].forward_ns = below(random, 50);
        c->units[i].backward_ns = below(random, 50);
        c->units[i].activation_bytes = below(random, 20);
        c->units[i].parameter_bytes = below(random, 30);
        c->units[i].output_bytes = below(random, 60);
    }
    for (i = 0; i < desc->rank_count; i++) {
        c->ranks[i].cost_numerator = (uint32_t)below(random, 4);
        c->ranks[i].cost_denominator = (uint32_t)below(random, 3);
        c->ranks[i].budget_bytes = below(random, 4) ? 20 + below(random, 300) : 0;
    }
    if (!below(random, 3)) desc->ranks = c->ranks;
    else if (below(random, 2)) desc->budget_bytes = 20 + below(random, 300);
    c->link.bytes_per_second = 500000000 + below(random, 3000000000u);
    c->link.latency_ns = below(random, 5);
    if (desc->replication || below(random, 2)) desc->link = &c->link;
    desc->micro_batch_count = 1 + (int32_t)below(random, 9);
    desc->pipeline = (tl_pipeline)below(random, 2);
    desc->objective = (tl_partition_objective)below(random, 2);
    desc->parameter_multiplier = below(random, 4);
    desc->rank_bytes = below(random, 10);
    if (desc->replication && below(random, 2)) desc->replica_limit = 1 + (int32_t)below(random, 4);
    if (!below(random, 3)) {
        int32_t most = desc->rank_count < desc->unit_count ? desc->rank_count : desc->unit_count;
        desc->stage_count = (int32_t)below(random, (uint64_t)most + 1);
    }
}

// What a partition says of itself is what its stages are worth, on ranks in order, within their budgets.
static void assert_is_sound(const tl_partition_desc *desc, const tl_partition *partition) {
    tried t;
    int32_t s, rank = 0;
    memset(&t, 0, sizeof t);
    t.desc = desc;
    t.value = t.least_bytes = NONE;
    t.count = partition->stage_count;
    assert_in_range(t.count, 1, RANKS);
    for (s = 0; s < t.count; s++) {
        const tl_stage *stage = &partition->stages[s];
        t.first_unit[s] = stage->first_unit;
        t.first_unit[s + 1] = stage->end_unit;
        t.first_rank[s] = stage->first_rank;
        t.replicas[s] = stage->replica_count;
        assert_true(stage->first_rank >= rank && stage->first_unit == (s ? partition->stages[s - 1].end_unit : 0));
        rank = stage->first_rank + stage->replica_count;
    }
    assert_true(rank <= desc->rank_count && t.first_unit[t.count] == desc->unit_count);
    price_way(&t);
    assert_true(t.fitting == 1 && t.value == partition->value_ns && t.least_bytes == partition->peak_bytes);
    for (s = 0; s < t.count; s++) {
        uint64_t time, bytes;
        assert_true(price_stage(&t, s, &time, &bytes));
        assert_true(partition->stages[s].time_ns == time && partition->stages[s].bytes == bytes);
    }
}

static void compare_with_all(random_chain *c, int round, long *refused) {
    tl_env env = silent_env();
    tl_partition partition;
    tried t = try_all(&c->desc);
    tl_result result = tl_plan_partition(&env, &c->desc, &partition);
    if (!t.ways) {          // fewer ranks than stages cannot be asked for
        fail_msg("round %d: nothing to try", round);
    } else if (!t.fitting) {
        if (result != TL_ERROR_INFEASIBLE || tl_find_least_budget(&env.error) != t.least_bytes)
            fail_msg("round %d: %s, not %llu bytes", round, env.error.text, (unsigned long long)t.least_bytes);
        assert_true(is_zero(&partition, sizeof partition));
        ++*refused;
    } else {
        if (result || partition.value_ns != t.value || !partition.is_proven || partition.bound_ns != t.value)
            fail_msg("round %d: %llu, not %llu: %s", round, (unsigned long long)partition.value_ns, (unsigned long long)t.value,
                     env.error.text);
        assert_is_sound(&c->desc, &partition);
    }
    tl_free_partition(NULL, &partition);
}

static void random_chains_are_cut_as_enumeration_says(void **state) {
    tl_random random = { 1 };
    int rounds = scaled(20000), round;
    long refused = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        random_chain c;
        fill_chain(&random, &c);
        compare_with_all(&c, round, &refused);
    }
    printf("    %d chains, %ld infeasible\n", rounds, refused);
    assert_true(refused > rounds / 50 && refused < rounds / 2);
}

static void what_the_caller_measures_is_cut_as_enumeration_says(void **state) {
    tl_random random = { 2 };
    int rounds = scaled(5000), round;
    long refused = 0, calls, most;
    (void)state;
    for (round = 0; round < rounds; round++) {
        random_chain c;
        int32_t n, k, levels;
        fill_chain(&random, &c);
        calls = 0;
        c.desc.measure = measure_mixed;
        c.desc.user = &calls;
        if (c.desc.budget_bytes) c.desc.budget_bytes = 1 + c.desc.budget_bytes % 99;
        for (k = 0; k < c.desc.rank_count; k++) c.ranks[k].budget_bytes %= 100;
        compare_with_all(&c, round, &refused);
        n = c.desc.unit_count;
        levels = c.desc.rank_count * (c.desc.replication ? c.desc.rank_count : 1) * (c.desc.ranks ? c.desc.rank_count : 1);
        most = (long)levels * n * (n + 1) / 2;
        if (calls > most) fail_msg("round %d: %ld calls, at most %ld are different", round, calls, most);
    }
    assert_true(refused > rounds / 50);
}

static void with_little_work_the_bound_still_holds(void **state) {
    tl_random random = { 3 };
    int rounds = scaled(5000), round, unproven = 0, unsupported = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        random_chain c;
        tl_partition partition;
        tl_result result;
        tried t;
        fill_chain(&random, &c);
        c.desc.work_limit = 1 + below(&random, 40);
        t = try_all(&c.desc);
        result = tl_plan_partition(NULL, &c.desc, &partition);
        if (result) {
            assert_true(result == TL_ERROR_INFEASIBLE || result == TL_ERROR_UNSUPPORTED);
            unsupported += result == TL_ERROR_UNSUPPORTED;
            continue;
        }
        if (partition.bound_ns > t.value || partition.value_ns < t.value) fail_msg("round %d", round);
        if (partition.is_proven) assert_true(partition.value_ns == t.value);
        unproven += !partition.is_proven;
        assert_is_sound(&c.desc, &partition);
        tl_free_partition(NULL, &partition);
    }
    assert_true(unproven > rounds / 20 && unsupported > 0);
}

// What arrives on one rank from a stage on two takes twice as long as it leaves, and is in no sum: the largest time, 198, is more
// than the sum of the optimum, 193.
static void a_bound_does_not_count_what_arrives_twice(void **state) {
    static const tl_unit units[] = { { 31, 26, 16, 16, 52 }, { 1, 33, 12, 28, 7 } };
    static const tl_link link = { 525890009, 0 };
    tl_partition_desc desc;
    int work;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.unit_count = 2;
    desc.rank_count = 3;
    desc.stage_count = 2;
    desc.micro_batch_count = 3;
    desc.objective = TL_PARTITION_TOTAL;
    desc.replication = TL_REPLICATION_PIPEDREAM;
    desc.link = &link;
    for (work = 1; work < 100; work++) {
        tl_partition partition;
        desc.work_limit = (uint64_t)work;
        if (tl_plan_partition(NULL, &desc, &partition)) continue;
        assert_true(partition.bound_ns <= 589 && partition.value_ns >= 589);
        assert_true(work < 99 || partition.is_proven);
        tl_free_partition(NULL, &partition);
    }
}

// -- stages that recompute --

typedef struct layers { uint64_t out[8], forward[8], backward[8], weights[8]; long calls; } layers;

// A stage keeps the input of each micro-batch in flight, and runs forward again, within the budget, when its backward
// comes: time and bytes are those of the planner of recomputation. The last stage runs forward once.
static tl_result measure_recomputed(const tl_stage_query *q, tl_stage_cell *cell, void *user) {
    layers *l = (layers *)user;
    uint64_t input = q->first_unit ? l->out[q->first_unit - 1] : 4, kept = (uint64_t)(q->in_flight_count - 1) * input;
    tl_chain_desc line;
    tl_remat_desc remat;
    tl_remat_report report;
    tl_graph graph;
    tl_plan plan;
    tl_result result;
    int32_t i;
    l->calls++;
    memset(&line, 0, sizeof line);
    memset(&remat, 0, sizeof remat);
    line.layer_count = q->end_unit - q->first_unit;
    line.input_bytes = input;
    line.output_bytes = l->out + q->first_unit;
    line.fwd_costs = l->forward + q->first_unit;
    line.bwd_costs = l->backward + q->first_unit;
    if (tl_add_chain(NULL, &graph, &line)) return TL_ERROR_NO_MEMORY;
    for (i = q->first_unit; i < q->end_unit; i++) kept += 3 * l->weights[i];
    remat.graph = &graph;
    remat.budget_bytes = q->budget_bytes;
    remat.base_bytes = kept;
    remat.work_limit = 50000;
    result = tl_plan_remat(NULL, &remat, &plan, &report);
    cell->fits = result == TL_OK;
    cell->bytes = result ? report.least_budget_bytes : kept + plan.arena_bytes;
    cell->time_ns = plan.cost;
    for (i = q->first_unit; q->stages_after && i < q->end_unit; i++) cell->time_ns += l->forward[i];
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
}

static uint64_t recomputed_bottleneck(layers *l, int32_t first, int32_t second, uint64_t budget) {
    int32_t cuts[4], s;
    uint64_t worst = 0;
    cuts[0] = 0;
    cuts[1] = first;
    cuts[2] = second;
    cuts[3] = 8;
    for (s = 0; s < 3; s++) {
        tl_stage_query q;
        tl_stage_cell cell;
        memset(&q, 0, sizeof q);
        q.first_unit = cuts[s];
        q.end_unit = cuts[s + 1];
        q.stages_after = 2 - s;
        q.in_flight_count = 3 - s;
        q.budget_bytes = budget;
        assert_int_equal(measure_recomputed(&q, &cell, l), TL_OK);
        if (!cell.fits) return NONE;
        if (cell.time_ns > worst) worst = cell.time_ns;
    }
    return worst;
}

static void stages_may_be_planned_by_the_planner_of_recomputation(void **state) {
    tl_random random = { 21 };
    int round, found = 0, refused = 0;
    (void)state;
    for (round = 0; round < 2 + scaled(10); round++) {
        tl_partition_desc desc;
        tl_partition partition;
        tl_env env = silent_env();
        tl_unit units[8];
        layers l;
        uint64_t best = NONE;
        int32_t i, k;
        memset(&desc, 0, sizeof desc);
        memset(&l, 0, sizeof l);
        memset(units, 0, sizeof units);         // its times and bytes are not read
        for (i = 0; i < 8; i++) {
            l.out[i] = 1 + below(&random, 9);
            l.forward[i] = 1 + below(&random, 30);
            l.backward[i] = 1 + below(&random, 60);
            l.weights[i] = below(&random, 3);
        }
        desc.units = units;
        desc.unit_count = 8;
        desc.rank_count = desc.stage_count = 3;
        desc.micro_batch_count = 6;
        desc.budget_bytes = round % 2 ? 25 : 60;
        desc.measure = measure_recomputed;
        desc.user = &l;
        if (tl_plan_partition(&env, &desc, &partition)) {
            assert_int_equal(env.error.code, TL_ERROR_INFEASIBLE);
            desc.budget_bytes = tl_find_least_budget(&env.error);
            refused++;
            if (tl_plan_partition(&env, &desc, &partition)) fail_msg("%s", env.error.text);
        }
        assert_true(l.calls <= 2 * 3 * 36);
        for (i = 1; i < 7; i++)
            for (k = i + 1; k < 8; k++) {
                uint64_t value = recomputed_bottleneck(&l, i, k, desc.budget_bytes);
                if (value < best) best = value;
            }
        assert_true(partition.value_ns == best && partition.peak_bytes <= desc.budget_bytes);
        found++;
        tl_free_partition(NULL, &partition);
    }
    assert_true(found == round && refused > 0 && refused < round);
}

// -- large chains --

static void a_thousand_ranks_are_planned(void **state) {
    tl_unit *units = (tl_unit *)calloc(2048, sizeof *units);
    tl_partition_desc desc;
    tl_link link = { UINT64_C(25000000000), 5000 };
    tl_partition partition;
    tl_env env = silent_env();
    int32_t i;
    (void)state;
    assert_non_null(units);
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < 2048; i++) {
        units[i].forward_ns = 1000000 + (uint64_t)(i % 7) * 1000;
        units[i].backward_ns = 2 * units[i].forward_ns;
        units[i].activation_bytes = 1000;
        units[i].output_bytes = 1000;
    }
    desc.units = units;
    desc.unit_count = 2048;
    desc.rank_count = desc.stage_count = 1024;
    desc.micro_batch_count = 4096;
    desc.budget_bytes = 4000000;
    desc.link = &link;
    if (tl_plan_partition(&env, &desc, &partition)) fail_msg("%s", env.error.text);
    assert_int_equal(partition.stage_count, 1024);
    assert_int_equal(partition.stages[0].in_flight_count, 1024);
    assert_true(partition.is_proven && partition.bottleneck_ns <= 3 * 2012000);
    tl_free_partition(NULL, &partition);
    free(units);
}

// -- bad input --

typedef struct wrong { const char *text; tl_result result; void (*change)(random_chain *c); } wrong;

static void no_units(random_chain *c) { c->desc.unit_count = 0; }
static void no_ranks(random_chain *c) { c->desc.rank_count = 0; }
static void more_ranks(random_chain *c) { c->desc.rank_count = 4; }
static void more_stages(random_chain *c) { c->desc.stage_count = 4; }
static void no_micro_batches(random_chain *c) { c->desc.micro_batch_count = 0; }
static void interleaved(random_chain *c) { c->desc.pipeline = TL_PIPELINE_INTERLEAVED; }
static void no_objective(random_chain *c) { c->desc.objective = TL_PARTITION_COUNT; }
static void no_replication(random_chain *c) { c->desc.replication = TL_REPLICATION_COUNT; }
static void unlinked(random_chain *c) { c->desc.replication = TL_REPLICATION_RING; c->desc.link = NULL; }
static void negative_limit(random_chain *c) { c->desc.replica_limit = -1; }
static void no_rate(random_chain *c) { c->link.bytes_per_second = 0; }
static void huge_cost(random_chain *c) { c->units[1].forward_ns = UINT64_MAX / 2; }
static void huge_bytes(random_chain *c) { c->units[1].activation_bytes = UINT64_MAX / 2; }
static void huge_output(random_chain *c) { c->units[1].output_bytes = UINT64_MAX / 4; }
static void small_budget(random_chain *c) { c->desc.budget_bytes = 5; }
static tl_result no_kernel(const tl_stage_query *q, tl_stage_cell *cell, void *user) {
    (void)q; (void)cell; (void)user;
    return TL_ERROR_UNSUPPORTED;
}
static void measured(random_chain *c) { c->desc.measure = no_kernel; }
static tl_result fits_nowhere(const tl_stage_query *q, tl_stage_cell *cell, void *user) {
    (void)q; (void)user;
    cell->time_ns = 0;
    cell->fits = 0;
    cell->bytes = NONE;
    return TL_OK;
}
static void never(random_chain *c) { c->desc.measure = fits_nowhere; }
static tl_result takes_forever(const tl_stage_query *q, tl_stage_cell *cell, void *user) {
    (void)q; (void)user;
    cell->time_ns = NONE / 4;
    cell->bytes = 0;
    cell->fits = 1;
    return TL_OK;
}
static void forever(random_chain *c) { c->desc.measure = takes_forever; }

static void small_chain(random_chain *c) {
    int i;
    memset(c, 0, sizeof *c);
    for (i = 0; i < 3; i++) c->units[i].forward_ns = c->units[i].activation_bytes = c->units[i].output_bytes = 10;
    c->desc.units = c->units;
    c->desc.unit_count = c->desc.rank_count = 3;
    c->desc.micro_batch_count = 2;
    c->link.bytes_per_second = 1000000000;
    c->desc.link = &c->link;
}

static void wrong_fields_are_named(void **state) {
    static const wrong rows[] = {
        { "unit_count", TL_ERROR_INVALID_ARG, no_units },       { "rank_count: must", TL_ERROR_INVALID_ARG, no_ranks },
        { "4 ranks, but 3 units", TL_ERROR_INVALID_ARG, more_ranks }, { "stage_count", TL_ERROR_INVALID_ARG, more_stages },
        { "micro_batch_count", TL_ERROR_INVALID_ARG, no_micro_batches }, { "pipeline", TL_ERROR_INVALID_ARG, interleaved },
        { "objective", TL_ERROR_INVALID_ARG, no_objective },    { "replication: unknown", TL_ERROR_INVALID_ARG, no_replication },
        { "needs a link", TL_ERROR_INVALID_ARG, unlinked },     { "replica_limit", TL_ERROR_INVALID_ARG, negative_limit },
        { "bytes_per_second", TL_ERROR_INVALID_ARG, no_rate },  { "62 bits", TL_ERROR_OVERFLOW, huge_cost },
        { "62 bits", TL_ERROR_OVERFLOW, huge_bytes },           { "62 bits", TL_ERROR_OVERFLOW, huge_output },
        { "measure: unsupported", TL_ERROR_UNSUPPORTED, measured },
        { "for no units it is known", TL_ERROR_INFEASIBLE, never }, { "62 bits", TL_ERROR_OVERFLOW, forever },
        { "budget_bytes: no cut into stages fits; 20 bytes on every rank would do, which units 0 to 0 take", TL_ERROR_INFEASIBLE,
          small_budget },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_partition partition;
        random_chain c;
        small_chain(&c);
        rows[i].change(&c);
        if (tl_plan_partition(&env, &c.desc, &partition) != rows[i].result) fail_msg("row %d: %s", (int)i, env.error.text);
        if (!strstr(env.error.text, rows[i].text)) fail_msg("%s", env.error.text);
        assert_true(is_zero(&partition, sizeof partition));
    }
}

// Where ranks have budgets of their own, the error has the smallest of these: that of the desc is not read.
static void a_refusal_has_the_budget_of_a_rank(void **state) {
    random_chain c;
    tl_partition partition;
    tl_env env = silent_env();
    int32_t k;
    (void)state;
    small_chain(&c);
    for (k = 0; k < 3; k++) c.ranks[k].budget_bytes = (uint64_t)(15 - k);
    c.desc.ranks = c.ranks;
    c.desc.budget_bytes = 5;
    assert_int_equal(tl_plan_partition(&env, &c.desc, &partition), TL_ERROR_INFEASIBLE);
    assert_int_equal(env.error.values[0], 13);
    assert_int_equal(env.error.values[1], 20);
}

// 40 GB over 1 GB/s: half of the time of a unit of 1000 s, and 20 s for the ring of two.
static void weights_of_any_size_are_exchanged(void **state) {
    random_chain c;
    tl_partition partition;
    tl_env env = silent_env();
    (void)state;
    small_chain(&c);
    c.desc.unit_count = 1;
    c.desc.rank_count = 2;
    c.units[0].forward_ns = 1000000000000u;
    c.units[0].parameter_bytes = 20000000000u;
    c.desc.replication = TL_REPLICATION_RING;
    if (tl_plan_partition(&env, &c.desc, &partition)) fail_msg("%s", env.error.text);
    assert_true(partition.value_ns == 520000000000u && partition.stages[0].replica_count == 2);
    tl_free_partition(NULL, &partition);
}

static void an_allocation_that_fails_is_an_error(void **state) {
    int kind, at;
    (void)state;
    for (kind = 0; kind < 4; kind++)
        for (at = 0; ; at++) {
            failing_alloc f = {0, 0, 0, 0};
            tl_env env = failing_env(&f, at);
            tl_partition partition;
            tl_result result;
            random_chain c;
            long calls = 0;
            small_chain(&c);
            c.desc.objective = (tl_partition_objective)(kind % 2);
            if (kind > 1) c.desc.replication = TL_REPLICATION_RING;
            if (kind == 3) { c.desc.measure = measure_mixed; c.desc.user = &calls; }
            result = tl_plan_partition(&env, &c.desc, &partition);
            if (result) assert_true(result == TL_ERROR_NO_MEMORY && is_zero(&partition, sizeof partition));
            tl_free_partition(&env, &partition);
            assert_int_equal(f.live, 0);
            if (f.count > at) continue;
            assert_int_equal(result, TL_OK);
            assert_true(at >= 7);
            break;
        }
}

static void every_kind_has_a_name_that_parses(void **state) {
    tl_partition_objective objective;
    tl_replication replication;
    int i;
    (void)state;
    for (i = 0; i < TL_PARTITION_COUNT; i++)
        assert_true(tl_parse_partition_objective(tl_name_partition_objective((tl_partition_objective)i), &objective) && (int)objective == i);
    for (i = 0; i < TL_REPLICATION_COUNT; i++)
        assert_true(tl_parse_replication(tl_name_replication((tl_replication)i), &replication) && (int)replication == i);
    assert_false(tl_parse_partition_objective("latency", &objective) || tl_parse_replication("tree", &replication));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reference_rows_have_their_values),
        cmocka_unit_test(published_plans_are_found),
        cmocka_unit_test(random_chains_are_cut_as_enumeration_says),
        cmocka_unit_test(what_the_caller_measures_is_cut_as_enumeration_says),
        cmocka_unit_test(with_little_work_the_bound_still_holds),
        cmocka_unit_test(a_bound_does_not_count_what_arrives_twice),
        cmocka_unit_test(stages_may_be_planned_by_the_planner_of_recomputation),
        cmocka_unit_test(a_thousand_ranks_are_planned),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(a_refusal_has_the_budget_of_a_rank),
        cmocka_unit_test(weights_of_any_size_are_exchanged),
        cmocka_unit_test(an_allocation_that_fails_is_an_error),
        cmocka_unit_test(every_kind_has_a_name_that_parses),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
