// [12] RUN: one rule for budgets, whatever is asked: the least of what the caller, the device and the backend allow,
// less the base. The limit that binds is counted from outside: by the simulator, and by the counters of the backend.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

enum { LAYERS = 16, BYTES = 64 };
#define BASE UINT64_C(1000)

// -- one call of one entry point under three limits --

typedef enum entry {
    REMAT, CHAIN, KEEP_ALL, EVERY_N, CHEN_SQRT, CHEN_GREEDY, SELECTIVE, REVOLVE, POLICY_CHAIN,  // plans
    GIVEN, LAZY, DYNAMIC, ONLINE, BY_LAYER,                                          // runs
    MANAGER,
    ENTRY_COUNT
} entry;

// Of one tier; 0 = the party names no limit. host: what the desc gives, UINT64_MAX = no limit.
typedef struct limits { uint64_t caller, device, backend; } limits;

typedef struct question {
    entry    entry;
    limits   bytes, host;
    uint64_t base;
    const tl_plan *given;
    int      wants_host;        // 1 = calls cost much, copies little
    int      is_too_much;       // of a manager: 1 = ask for one more than fits
    uint64_t taken;             // bytes of the backend that somebody else holds
} question;

typedef struct answer {
    tl_result result;
    uint64_t  peak, host_peak;  // counted from outside, without the base
    uint64_t  taken;            // of a run: what it asks of the backend
    uint64_t  steps;            // a hash of the plan
    tl_limit  limit;
    uint64_t  least;
    char      text[256];
} answer;

static tl_result forward(const tl_kernel_call *call, void *user) {
    (void)user;
    memset(call->outputs[0].host, 1, (size_t)call->outputs[0].range.bytes);
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

static void make_graph(uint64_t cost, tl_graph *graph) {
    uint64_t bytes[LAYERS], costs[LAYERS];
    tl_chain_desc chain;
    int i;
    for (i = 0; i < LAYERS; i++) { bytes[i] = BYTES; costs[i] = cost + (uint64_t)i; }
    memset(&chain, 0, sizeof chain);
    chain.layer_count = LAYERS;
    chain.input_bytes = BYTES;
    chain.output_bytes = bytes;
    chain.fwd_costs = costs;
    tl_init_graph(graph);
    if (tl_add_chain(NULL, graph, &chain)) fail_msg("%s", "no chain");
}

static uint64_t hash_steps(const tl_plan *plan) {
    uint64_t hash = 0;
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        hash = tl_mix_u64(hash, plan->steps[i].kind);
        hash = tl_mix_u64(hash, (uint64_t)plan->steps[i].node << 8 | (uint8_t)plan->steps[i].output);
    }
    return hash;
}

static void simulate(const tl_graph *graph, const tl_plan *plan, answer *a) {
    tl_simulate_desc desc;
    tl_report report;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    if (tl_simulate_plan(NULL, &desc, &report)) fail_msg("%s", "the plan is not valid");
    a->peak = report.peak_bytes;
    a->host_peak = report.host_peak_bytes;
    a->steps = hash_steps(plan);
}

static void ask_planner(tl_env *env, const question *q, const tl_device *device, const tl_graph *graph, answer *a) {
    tl_plan plan;
    if (q->entry == REMAT) {
        tl_remat_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.live = 1;
        desc.budget_bytes = q->bytes.caller;
        desc.base_bytes = q->base;
        desc.device = device;
        desc.host_budget_bytes = q->host.caller;
        desc.work_limit = 300000;
        a->result = tl_plan_remat(env, &desc, &plan, NULL);
    } else if (q->entry == CHAIN) {
        tl_chain_plan_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.live = 1;
        desc.budget_bytes = q->bytes.caller;
        desc.base_bytes = q->base;
        desc.device = device;
        a->result = tl_plan_chain(env, &desc, &plan, NULL);
    } else {
        tl_policy_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.live = 1;
        desc.policy.kind = (tl_policy_kind)(q->entry - KEEP_ALL);
        desc.budget_bytes = q->bytes.caller;
        desc.base_bytes = q->base;
        desc.device = device;
        a->result = tl_plan_policy(env, &desc, &plan);
    }
    if (!a->result) { assert_int_equal(plan.base_bytes, q->base); simulate(graph, &plan, a); }
    tl_free_plan(env, &plan);
}

static tl_result init_run(tl_env *env, const question *q, tl_run_desc *desc, tl_run **run) {
    static tl_layer layers[LAYERS];
    static tl_strategy strategy;
    tl_checkpoint_config config;
    int i;
    for (i = 0; i < LAYERS; i++) {
        layers[i].forward = forward;
        layers[i].backward = backward;
        layers[i].output_bytes = BYTES;
        layers[i].fwd_cost = 1 + (uint64_t)i;
    }
    strategy = tl_with_gradient(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE),
                                             TL_MODE_LAZY), tl_gradient_checkpointed(0));
    if (q->entry == GIVEN) desc->plan = q->given;
    if (q->entry == LAZY || q->entry == DYNAMIC) desc->strategy = &strategy;
    if (q->entry == DYNAMIC) {
        if (tl_checkpoint_dynamic(env, LAYERS, 0.95, &config)) return TL_ERROR_INVALID_ARG;
        desc->checkpoints = &config;
    }
    return q->entry == BY_LAYER ? tl_init_layer_run(env, desc, layers, LAYERS, BYTES, run)
                                : tl_init_run(env, desc, run);
}

static void ask_run(tl_env *env, const question *q, const tl_device *device, const tl_graph *graph,
                    const tl_backend *backend, answer *a) {
    tl_kernel kernel;
    tl_run_desc desc;
    tl_run *run;
    tl_backend_counters counters;
    tl_run_report report;
    tl_plan plan;
    memset(&kernel, 0, sizeof kernel);
    kernel.op = "layer";
    kernel.forward = forward;
    kernel.backward = backward;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.backend = backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.device = device;
    desc.budget_bytes = q->bytes.caller;
    desc.host_budget_bytes = q->host.caller;
    desc.base_bytes = q->base;
    a->result = init_run(env, q, &desc, &run);
    if (a->result) return;
    if (tl_run_plan(run)) fail_msg("what init accepted does not run: %s", env->error.text);
    backend->counters(backend->self, &counters);
    a->peak = counters.peak_bytes[TL_TIER_DEVICE] - q->taken;
    a->host_peak = counters.peak_bytes[TL_TIER_HOST];
    tl_measure_run(run, &report);
    a->taken = report.planned_taken_bytes ? report.planned_taken_bytes : a->peak;  // an arena, or blocks as needed
    tl_find_run_plan(run, &plan);
    a->steps = hash_steps(&plan);
    tl_free_run(run);
}

static void ask_manager(tl_env *env, const question *q, const tl_backend *backend, answer *a) {
    char data[3 * BYTES];
    tl_manager_desc desc;
    tl_manager *manager;
    tl_backend_counters counters;
    int i;
    memset(&desc, 0, sizeof desc);
    memset(data, 1, sizeof data);
    desc.device_budget_bytes = q->bytes.caller;
    desc.host_budget_bytes = q->host.caller;
    a->result = tl_init_manager(env, backend, &desc, &manager);
    if (a->result) return;
    for (i = 0; i < 2 * LAYERS; i++) {
        tl_save_desc save;
        memset(&save, 0, sizeof save);
        save.key.node = i;
        save.data = data;
        save.bytes = BYTES;
        if (tl_save_checkpoint(env, manager, &save)) fail_msg("%s", env->error.text);
    }
    if (q->is_too_much) {
        tl_save_desc save;
        memset(&save, 0, sizeof save);
        save.key.node = 2 * LAYERS;
        save.data = data;
        save.bytes = sizeof data;
        a->result = tl_save_checkpoint(env, manager, &save);
    }
    backend->counters(backend->self, &counters);
    a->peak = counters.peak_bytes[TL_TIER_DEVICE] - q->taken;
    a->host_peak = counters.peak_bytes[TL_TIER_HOST];
    tl_free_manager(manager);
}

static answer ask(const question *q) {
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_device device;
    tl_graph graph;
    tl_range range;
    answer a;
    memset(&a, 0, sizeof a);
    memset(&cpu, 0, sizeof cpu);
    memset(&device, 0, sizeof device);
    memset(&range, 0, sizeof range);
    cpu.alignment_bytes = sizeof(void *);  // as the env aligns: a block takes its bytes and no more
    cpu.capacity_bytes[TL_TIER_DEVICE] = q->bytes.backend;
    cpu.capacity_bytes[TL_TIER_HOST] = q->host.backend;
    device.device_capacity_bytes = q->bytes.device;
    device.host_capacity_bytes = q->host.device;
    device.link_bytes_per_second = UINT64_C(1000000000000);
    make_graph(q->wants_host ? 100000 : 1, &graph);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail_msg("%s", env.error.text);
    range.bytes = q->taken;
    if (q->taken && (backend.add_block(backend.self, TL_TIER_DEVICE, 4096, &range.block) ||
                     backend.claim(backend.self, range))) fail_msg("%s", "no range");
    if (q->entry < GIVEN) ask_planner(&env, q, &device, &graph, &a);
    else if (q->entry < MANAGER) ask_run(&env, q, &device, &graph, &backend, &a);
    else ask_manager(&env, q, &backend, &a);
    if (a.result) snprintf(a.text, sizeof a.text, "%s", env.error.text);
    a.limit = tl_find_limit(&env.error);
    a.least = tl_find_least_budget(&env.error);
    if (q->taken) { backend.release(backend.self, range); backend.free_block(backend.self, range.block); }
    tl_free_cpu_backend(&env, &backend);
    tl_free_graph(&env, &graph);
    return a;
}

static int has_backend(entry e) { return e >= GIVEN; }
static int has_device(entry e) { return e != MANAGER; }
static int has_base(entry e) { return e != MANAGER; }

// -- the rule --

static void set_limit(limits *l, int party, uint64_t bytes) {
    if (party == 0) l->caller = bytes;
    if (party == 1) l->device = bytes;
    if (party == 2) l->backend = bytes;
}

static question question_of(int e) {
    question q;
    memset(&q, 0, sizeof q);
    q.entry = (entry)e;
    q.base = has_base(q.entry) ? BASE : 0;
    return q;
}

static int is_party(entry e, int party) {
    return party == 0 || (party == 1 ? has_device(e) : has_backend(e));
}

static tl_plan plan_within(uint64_t budget, uint64_t host, int wants_host) {
    tl_device device;
    tl_graph graph;
    tl_remat_desc desc;
    tl_plan plan;
    memset(&device, 0, sizeof device);
    memset(&desc, 0, sizeof desc);
    device.link_bytes_per_second = UINT64_C(1000000000000);
    make_graph(wants_host ? 100000 : 1, &graph);
    desc.graph = &graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.host_budget_bytes = host;
    desc.device = &device;
    desc.work_limit = 300000;
    if (tl_plan_remat(NULL, &desc, &plan, NULL)) fail_msg("%s", "no plan");
    tl_free_graph(NULL, &graph);
    return plan;
}

// Each party in turn allows least, the others more, or say nothing: the answer is that to the least of the caller's
// alone. A peak above 12 tensors shows that a limit of 15 was seen as one of 15.
static void the_least_of_caller_device_and_backend_binds(void **state) {
    static const uint64_t least[] = { 12 * BYTES, 15 * BYTES };
    int e, party, k, others;
    (void)state;
    for (e = 0; e < ENTRY_COUNT; e++)
        for (k = 0; k < 2; k++) {
            question q = question_of(e);
            answer alone, unlimited = ask(&q);
            uint64_t limit = least[k] + q.base;
            if (e == GIVEN) continue;  // has one peak
            assert_int_equal(unlimited.result, TL_OK);
            q.bytes.caller = limit;
            alone = ask(&q);
            if (e == KEEP_ALL) { assert_int_equal(alone.result, TL_ERROR_INFEASIBLE); alone.peak = 0; }
            else if (alone.result) fail_msg("entry %d: %s", e, alone.text);
            assert_true(alone.peak <= least[k]);
            if (k && (e < KEEP_ALL || e >= POLICY_CHAIN)) assert_true(alone.peak > least[0]);  // rules have few peaks
            for (party = 1; party < 3; party++)
                for (others = 0; others < 3; others++) {
                    answer a;
                    question other = question_of(e);
                    if (!is_party(q.entry, party)) continue;
                    if (others) set_limit(&other.bytes, 0, limit + (uint64_t)others * 3 * BYTES);
                    if (others) set_limit(&other.bytes, 3 - party, limit + (uint64_t)(3 - others) * 3 * BYTES);
                    set_limit(&other.bytes, party, limit);
                    a = ask(&other);
                    assert_int_equal(a.result, alone.result);
                    if (!a.result) assert_int_equal(a.peak, alone.peak);
                    assert_int_equal(a.steps, alone.steps);
                }
        }
}

static void a_plan_that_is_given_runs_where_its_peak_fits_every_limit(void **state) {
    static const char *const names[] = { "budget_bytes: ", "device_capacity_bytes: ", "backend: capacity_bytes: " };
    tl_plan plan = plan_within(10 * BYTES, 0, 0);
    int party;
    (void)state;
    for (party = 0; party < 3; party++) {
        question q = question_of(GIVEN);
        answer a;
        uint64_t taken;
        q.given = &plan;
        a = ask(&q);
        taken = a.taken;
        assert_true(taken >= plan.peak_bytes);
        set_limit(&q.bytes, party, taken + BASE);
        a = ask(&q);
        if (a.result) fail_msg("%s", a.text);
        assert_int_equal(a.peak, plan.peak_bytes);
        set_limit(&q.bytes, party, taken + BASE - 1);
        a = ask(&q);
        assert_int_equal(a.result, TL_ERROR_INFEASIBLE);
        assert_int_equal(a.least, taken + BASE);
        assert_non_null(strstr(a.text, names[party]));
        assert_int_equal(a.limit, party);
    }
    tl_free_plan(NULL, &plan);
}

// Below what any plan takes, the sentence names the limit that binds.
static void a_refusal_names_the_limit_that_binds(void **state) {
    static const char *const names[] = { "budget_bytes: ", "device_capacity_bytes: ", "backend: capacity_bytes: " };
    int e, party;
    (void)state;
    for (e = 0; e < MANAGER; e++)
        for (party = 0; party < 3; party++) {
            question q = question_of(e);
            tl_plan plan = plan_within(10 * BYTES, 0, 0);
            answer a;
            q.given = &plan;
            set_limit(&q.bytes, 0, 100 * BYTES + BASE);
            set_limit(&q.bytes, party, 2 * BYTES + BASE);
            if (is_party(q.entry, party)) a = ask(&q);
            tl_free_plan(NULL, &plan);
            if (!is_party(q.entry, party)) continue;
            assert_int_equal(a.result, TL_ERROR_INFEASIBLE);
            if (!strstr(a.text, names[party])) fail_msg("entry %d: %s", e, a.text);
            if ((int)a.limit != party) fail_msg("entry %d: limit %d: %s", e, (int)a.limit, a.text);
            assert_true(a.least > 2 * BYTES + BASE && a.least < 100 * BYTES + BASE);
        }
}

// A manager plans nothing: its refusals are those of a save.
static void a_full_manager_names_the_limit_that_binds(void **state) {
    int party;
    (void)state;
    for (party = 0; party < 3; party += 2) {
        question q = question_of(MANAGER);
        answer a;
        set_limit(&q.bytes, 0, 100 * BYTES);
        set_limit(&q.bytes, party, 2 * BYTES);
        q.is_too_much = 1;
        a = ask(&q);
        assert_int_equal(a.result, TL_ERROR_OVER_BUDGET);
        assert_int_equal(a.limit, party);
        assert_int_equal(a.least, 3 * BYTES);
    }
}

static void of_equal_limits_the_caller_s_is_named(void **state) {
    question q = question_of(ONLINE);
    (void)state;
    q.bytes.caller = q.bytes.device = q.bytes.backend = 2 * BYTES + BASE;
    assert_non_null(strstr(ask(&q).text, "tl_init_run: budget_bytes: "));
}

// A base above the limit leaves nothing, whoever sets the limit.
static void a_base_above_the_limit_leaves_nothing(void **state) {
    int e, party;
    (void)state;
    for (e = 0; e < MANAGER; e++)
        for (party = 0; party < 3; party++) {
            question q = question_of(e);
            tl_plan plan = plan_within(10 * BYTES, 0, 0);
            q.given = &plan;
            set_limit(&q.bytes, party, BASE - 1);
            if (is_party(q.entry, party)) assert_int_equal(ask(&q).result, TL_ERROR_INFEASIBLE);
            tl_free_plan(NULL, &plan);
        }
}

// -- the host --

static const entry with_host[] = { REMAT, LAZY, ONLINE, BY_LAYER, MANAGER };

static void zero_of_the_host_is_no_host_tier(void **state) {
    size_t k;
    (void)state;
    for (k = 0; k < sizeof with_host / sizeof with_host[0]; k++) {
        question q = question_of(with_host[k]);
        answer a;
        q.wants_host = 1;
        q.bytes.caller = 9 * BYTES + q.base;
        a = ask(&q);
        assert_int_equal(a.result, TL_OK);
        assert_int_equal(a.host_peak, 0);
        q.host.caller = TL_UNLIMITED;
        a = ask(&q);
        assert_int_equal(a.result, TL_OK);
        assert_true(a.host_peak > 3 * BYTES);
    }
}

static void the_least_of_caller_device_and_backend_binds_on_the_host(void **state) {
    size_t k;
    int party;
    (void)state;
    for (k = 0; k < sizeof with_host / sizeof with_host[0]; k++)
        for (party = 0; party < 3; party++) {
            question q = question_of(with_host[k]);
            answer a;
            if (!is_party(q.entry, party)) continue;
            q.wants_host = 1;
            q.bytes.caller = 9 * BYTES + q.base;
            q.host.caller = 100 * BYTES;
            set_limit(&q.host, party, 2 * BYTES);
            a = ask(&q);
            assert_int_equal(a.result, TL_OK);
            assert_int_equal(a.host_peak, 2 * BYTES);
        }
}

static void a_plan_with_host_steps_has_as_much_host_as_it_needs(void **state) {
    static const char *const names[] = { "host_budget_bytes: ", "host_capacity_bytes: ",
                                         "backend: host capacity_bytes: " };
    tl_plan plan = plan_within(7 * BYTES, TL_UNLIMITED, 1);
    question q = question_of(GIVEN);
    answer a;
    int party;
    (void)state;
    assert_true(plan.host_peak_bytes > 2 * BYTES);
    q.given = &plan;
    q.wants_host = 1;
    a = ask(&q);
    assert_int_equal(a.result, TL_OK);
    assert_int_equal(a.host_peak, plan.host_peak_bytes);
    for (party = 0; party < 3; party++) {
        memset(&q.host, 0, sizeof q.host);
        set_limit(&q.host, party, plan.host_peak_bytes);
        a = ask(&q);
        assert_int_equal(a.result, TL_OK);
        set_limit(&q.host, party, plan.host_peak_bytes - 1);
        a = ask(&q);
        assert_int_equal(a.result, TL_ERROR_INFEASIBLE);
        assert_non_null(strstr(a.text, names[party]));
        assert_int_equal(a.limit, TL_LIMIT_HOST_BUDGET + party);
        assert_int_equal(a.least, plan.host_peak_bytes);
    }
    tl_free_plan(NULL, &plan);
}

// -- what is free at present --

// Bytes that others hold refuse at init, with both numbers, and change no plan.
static void bytes_taken_at_present_refuse_and_never_shape(void **state) {
    tl_plan plan = plan_within(10 * BYTES, 0, 0);
    int e;
    (void)state;
    for (e = GIVEN; e < MANAGER; e++) {
        question q = question_of(e);
        answer a, b;
        char bytes[96];
        q.given = &plan;
        q.bytes.caller = 10 * BYTES + BASE;
        q.bytes.backend = 10 * BYTES + BASE;
        a = ask(&q);
        if (a.result) fail_msg("%s", a.text);
        q.taken = 10 * BYTES + BASE - a.taken;
        b = ask(&q);
        if (b.result) fail_msg("%s", b.text);
        assert_int_equal(b.peak, a.peak);
        assert_int_equal(b.steps, a.steps);
        q.taken++;
        b = ask(&q);
        assert_int_equal(b.result, TL_ERROR_NO_MEMORY);
        snprintf(bytes, sizeof bytes, "a pass takes %d bytes of the device, of which %d are free", (int)a.taken,
                 (int)a.taken - 1);
        if (!strstr(b.text, bytes)) fail_msg("%s", b.text);
    }
    tl_free_plan(NULL, &plan);
}

static void a_manager_gets_the_bytes_it_asks_for_or_none(void **state) {
    question q = question_of(MANAGER);
    answer a;
    (void)state;
    q.bytes.backend = 1000;
    q.bytes.caller = 600;
    q.taken = 400;
    assert_int_equal(ask(&q).result, TL_OK);
    q.taken = 401;
    a = ask(&q);
    assert_int_equal(a.result, TL_ERROR_NO_MEMORY);
    assert_non_null(strstr(a.text, "device_budget_bytes: 600 bytes, of which the backend has 599 free at present"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_caller_device_and_backend_binds),
        cmocka_unit_test(a_plan_that_is_given_runs_where_its_peak_fits_every_limit),
        cmocka_unit_test(a_refusal_names_the_limit_that_binds),
        cmocka_unit_test(a_full_manager_names_the_limit_that_binds),
        cmocka_unit_test(of_equal_limits_the_caller_s_is_named),
        cmocka_unit_test(a_base_above_the_limit_leaves_nothing),
        cmocka_unit_test(zero_of_the_host_is_no_host_tier),
        cmocka_unit_test(the_least_of_caller_device_and_backend_binds_on_the_host),
        cmocka_unit_test(a_plan_with_host_steps_has_as_much_host_as_it_needs),
        cmocka_unit_test(bytes_taken_at_present_refuse_and_never_shape),
        cmocka_unit_test(a_manager_gets_the_bytes_it_asks_for_or_none),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
