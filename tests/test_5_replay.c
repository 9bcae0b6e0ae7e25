// [5] PLAN: plans replayed with functions of the caller. What these allocate is what was planned, what is copied and
// called gives the gradients and results of the executor, and nothing is left, whatever fails.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/run_support.h"
#include "support/run_bed.h"

enum { MOST_TENSORS = 128, MOST_OPERANDS = 32 };

// -- a client: malloc, memcpy, kernels --

typedef struct outcome {
    mixer    mixers[RANDOM_SLOTS];
    uint64_t results[RANDOM_SLOTS];
} outcome;

typedef struct client {
    const tl_graph *graph;
    const tl_plan  *plan;
    outcome  out;
    unsigned char results[RANDOM_SLOTS][MOST_TENSORS][256];
    uint64_t live[2], peak[2];     // bytes on the device, on the host
    long     allocations, releases, calls, copies, waits;
    int      copies_late;          // 1 = a copy is made when it is waited for
    long     fail_at, functions;   // the call of a function that fails, counted over all; -1 = none
    char    *arena;                // NULL = malloc; else each lifetime at its offset, which must be free
    unsigned char *taken;
} client;

static int client_fails(client *c) { return c->functions++ == c->fail_at; }

static unsigned char input_byte(int32_t micro_batch, int32_t tensor, uint64_t k) {
    return (unsigned char)tl_mix_u64((uint64_t)micro_batch * 1000 + (uint64_t)tensor, k);
}

static tl_result client_allocate(const tl_lifetime *life, void **memory, void *user) {
    client *c = (client *)user;
    int host = life->use == TL_USE_HOST;
    int32_t tensor = c->graph->nodes[life->node].first_output + life->output;
    uint64_t i;
    char *at;
    if (client_fails(c)) { *memory = c; return TL_ERROR_OVER_BUDGET; }
    assert_true(life->bytes > 0);
    c->allocations++;
    c->live[host] += life->bytes;
    if (c->live[host] > c->peak[host]) c->peak[host] = c->live[host];
    if (c->arena && !host) {
        at = c->arena + life->offset;
        for (i = 0; i < life->bytes; i++) assert_int_equal(c->taken[life->offset + i]++, 0);
    } else {
        at = (char *)malloc((size_t)life->bytes);
    }
    memset(at, 0xA5, (size_t)life->bytes);
    if (life->use == TL_USE_INPUT || life->use == TL_USE_STATE)
        for (i = 0; i < life->bytes; i++) at[i] = (char)input_byte(life->slot, tensor, i);
    if (life->use == TL_USE_OUTPUT && c->calls + c->copies == 0) {
        int is_entry = 0;
        for (i = 0; i < (uint64_t)c->plan->entry_count; i++)
            is_entry |= c->plan->entry[i].node == life->node && c->plan->entry[i].output == life->output && c->plan->entry[i].slot == life->slot;
        if (is_entry) memset(at, 0, (size_t)life->bytes);
    }
    *memory = at;
    return TL_OK;
}

static void client_release(const tl_lifetime *life, void *memory, void *user) {
    client *c = (client *)user;
    int host = life->use == TL_USE_HOST;
    int32_t tensor = c->graph->nodes[life->node].first_output + life->output;
    uint64_t i;
    c->releases++;
    c->live[host] -= life->bytes;
    assert_true(life->bytes <= 256 && tensor < MOST_TENSORS);
    if ((life->use == TL_USE_OUTPUT || life->use == TL_USE_STATE) && life->free_step == c->plan->step_count)
        memcpy(c->results[life->slot][tensor], memory, (size_t)life->bytes);
    memset(memory, 0x5A, (size_t)life->bytes);
    if (c->arena && !host)
        for (i = 0; i < life->bytes; i++) c->taken[life->offset + i] = 0;
    else free(memory);
}

// An operand is all of its lifetime, but of a piece.
static tl_operand operand_of(const tl_replay_call *call, const tl_replay_operand *from) {
    tl_operand operand;
    memset(&operand, 0, sizeof operand);
    assert_int_equal(!from->memory, from->lifetime < 0);
    if (!from->memory) return operand;
    assert_true(from->offset + from->bytes <= call->lifetimes[from->lifetime].bytes);
    assert_true(from->bytes || !call->total);
    assert_true(call->total || (!from->offset && from->bytes == call->lifetimes[from->lifetime].bytes));
    operand.range.bytes = from->bytes;
    operand.host = (char *)from->memory + from->offset;
    return operand;
}

// A gradient begins as zeroes, that of a loss as 1.0f, of which the last word may be cut.
static void start_gradient(const tl_replay_operand *operand) {
    const float one = 1.0f;
    unsigned char *at;
    uint64_t i;
    assert_int_equal(operand->offset % 16, 0);       // of a piece in its scratch
    if (!operand->memory || operand->start == TL_START_FILLED) return;
    at = (unsigned char *)operand->memory + operand->offset;
    memset(at, 0, (size_t)operand->bytes);
    for (i = 0; i < operand->bytes && operand->start == TL_START_LOSS; i++)
        at[i] = ((const unsigned char *)&one)[i % 4];
}

static tl_result client_call(const tl_replay_call *call, void *user) {
    client *c = (client *)user;
    const tl_node *node = &c->graph->nodes[call->step.node];
    tl_operand operands[MOST_OPERANDS];
    tl_kernel_call kernel;
    int32_t i, at = 0;
    if (client_fails(c)) return TL_ERROR_STALE;
    c->calls++;
    memset(&kernel, 0, sizeof kernel);
    kernel.graph = c->graph;
    kernel.node = call->step.node;
    kernel.kind = (tl_step_kind)call->step.kind;
    kernel.recompute = call->recompute;
    kernel.outputs_ready = call->outputs_ready;
    kernel.micro_batch = call->step.slot;
    kernel.first = (uint64_t)call->first;
    kernel.count = (uint64_t)call->count;
    kernel.total = (uint64_t)call->total;
    kernel.seed = tl_mix_u64(tl_mix_u64(42, 0), (uint64_t)call->step.slot << 32 | (uint64_t)c->graph->nodes[kernel.node].origin);
    for (i = 0; i < node->output_count; i++) start_gradient(&call->output_grads[i]);
    for (i = 0; i < node->input_count; i++) start_gradient(&call->input_grads[i]);
    kernel.inputs = operands;
    for (i = 0; i < node->input_count; i++) operands[at++] = operand_of(call, &call->inputs[i]);
    kernel.outputs = operands + at;
    for (i = 0; i < node->output_count; i++) operands[at++] = operand_of(call, &call->outputs[i]);
    kernel.output_grads = operands + at;
    for (i = 0; i < node->output_count; i++) operands[at++] = operand_of(call, &call->output_grads[i]);
    kernel.input_grads = operands + at;
    for (i = 0; i < node->input_count; i++) operands[at++] = operand_of(call, &call->input_grads[i]);
    assert_true(at <= MOST_OPERANDS);
    kernel.saved = operand_of(call, &call->saved);
    kernel.scratch = operand_of(call, &call->scratch);
    return call->step.kind == TL_STEP_BACKWARD ? mixer_backward(&kernel, &c->out.mixers[call->step.slot])
                                               : mixer_forward(&kernel, &c->out.mixers[call->step.slot]);
}

static tl_result client_copy(const tl_replay_copy *copy, void *user) {
    client *c = (client *)user;
    const tl_lifetime *to = &copy->lifetimes[copy->to.lifetime], *from = &copy->lifetimes[copy->from.lifetime];
    if (client_fails(c)) return TL_ERROR_DEVICE_LOST;
    c->copies++;
    assert_true(copy->to.memory && copy->from.memory && copy->step.output == to->output && copy->step.node == from->node);
    switch ((tl_step_kind)copy->step.kind) {
    case TL_STEP_SPILL:
    case TL_STEP_FETCH:
    case TL_STEP_WAIT:
        assert_int_equal(to->bytes, from->bytes);
        c->waits += copy->step.kind == TL_STEP_WAIT;
        if ((copy->step.kind == TL_STEP_WAIT) == c->copies_late) memcpy(copy->to.memory, copy->from.memory, (size_t)to->bytes);
        break;
    case TL_STEP_COMPRESS: tl_compress_bytes((tl_codec)copy->step.codec, copy->to.memory, copy->from.memory, from->bytes); break;
    case TL_STEP_EXPAND: tl_expand_bytes((tl_codec)copy->step.codec, copy->to.memory, copy->from.memory, to->bytes); break;
    default: fail_msg("step %d copies", (int)copy->step.kind);
    }
    return TL_OK;
}

static void open_client(client *c, const tl_graph *graph, const tl_plan *plan) {
    int32_t i;
    memset(c, 0, sizeof *c);
    c->graph = graph;
    c->plan = plan;
    c->fail_at = -1;
    for (i = 0; i < RANDOM_SLOTS; i++) mixer_init(&c->out.mixers[i]);
}

static tl_result replay(tl_env *env, client *c) {
    tl_replay_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = c->graph;
    desc.plan = c->plan;
    desc.allocate = client_allocate;
    desc.release = client_release;
    desc.call = client_call;
    desc.copy = client_copy;
    desc.user = c;
    return tl_replay_plan(env, &desc);
}

// -- the same by the executor --

static tl_result bed_forward(const tl_kernel_call *call, void *user) { return mixer_forward(call, &((outcome *)user)->mixers[call->micro_batch]); }
static tl_result bed_backward(const tl_kernel_call *call, void *user) { return mixer_backward(call, &((outcome *)user)->mixers[call->micro_batch]); }

static void execute(const tl_graph *graph, const tl_plan *plan, const uint8_t *is_result, outcome *o) {
    static bed b;
    int32_t i, slot, slots = plan->slot_count ? plan->slot_count : 1;
    unsigned char bytes[256];
    uint64_t k;
    memset(o, 0, sizeof *o);
    bed_open(&b, graph, BACKEND_CHECKED, 0, plan->alignment_bytes ? plan->alignment_bytes : 1);
    for (i = 0; i < RANDOM_SLOTS; i++) mixer_init(&o->mixers[i]);
    for (i = 0; i < b.desc.kernel_count; i++) {
        b.kernels[i].forward = bed_forward;
        b.kernels[i].backward = bed_backward;
        b.kernels[i].user = o;
    }
    b.desc.plan = plan;
    bed_must_init(&b);
    if (write_states(b.run, graph) || tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    for (slot = 0; slot < slots; slot++) {
        assert_int_equal(tl_choose_slot(b.run, slot), TL_OK);
        for (i = 0; i < graph->tensor_count; i++) {
            tl_tensor tensor;
            if (!is_result[i]) continue;
            tensor.node = graph->outputs[i].node;
            tensor.output = graph->outputs[i].output;
            if (tl_read_tensor(b.run, tensor, bytes, graph->outputs[i].bytes)) fail_msg("%s", b.env.error.text);
            for (k = 0; k < graph->outputs[i].bytes; k++) o->results[slot] = tl_mix_u64(o->results[slot], bytes[k]);
        }
    }
    bed_close(&b);
}

static void fold_results(client *c, const uint8_t *is_result) {
    int32_t slot, i;
    uint64_t k;
    for (slot = 0; slot < (c->plan->slot_count ? c->plan->slot_count : 1); slot++)
        for (i = 0; i < c->graph->tensor_count; i++)
            for (k = 0; k < c->graph->outputs[i].bytes && is_result[i]; k++) {
                int is_input = c->graph->nodes[c->graph->outputs[i].node].is_input && !c->graph->nodes[c->graph->outputs[i].node].state;
                unsigned char byte = is_input ? input_byte(slot, i, k) : c->results[slot][i][k];
                c->out.results[slot] = tl_mix_u64(c->out.results[slot], byte);
            }
}

// -- random plans --

// Let a graph own weights, some in pieces, beside which kernels have scratch of any size; returns in how many calls beside its steps the pieces are made and used.
static long own_weights(tl_env *env, tl_random *random, tl_graph *graph) {
    tl_graph plain = *graph;
    long calls = 0;
    int32_t i, k;
    if (random_add_states(env, random, &plain, random_count(random, 1, 6), graph)) fail_msg("%s", "no states");
    tl_free_graph(env, &plain);
    assert_true(random_train_in_pieces(env, random, graph) >= 0);
    for (i = 0; i < graph->node_count; i++)
        for (k = 0; k < graph->nodes[i].input_count; k++)
            if (tli_find_pieces(graph, &graph->nodes[i], k)) ((tl_node *)graph->nodes)[i].bwork_bytes += tl_next_random_below(random, 20);
    for (i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].state == TL_STATE_PIECES)
            calls += 2 * ((graph->nodes[i].weight_rows + graph->nodes[i].piece_rows - 1) / graph->nodes[i].piece_rows);
    return calls;
}

// A plan of the planner within less than keep all takes, with a host now and then; or, where *is_walk says that it may be
// one, a walk over legal steps.
static int random_case(tl_env *env, tl_random *random, const tl_graph *graph, int *is_walk, tl_plan *plan) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan all;
    memset(&desc, 0, sizeof desc);
    *is_walk = *is_walk && random_chance(random, 60);
    if (*is_walk) {
        tl_simulate_desc simulate = { 0 };
        tl_report figures;
        assert_int_equal(random_slot_plan(env, random, graph, random_count(random, 0, RANDOM_SLOTS), plan), TL_OK);
        simulate.graph = graph;
        simulate.plan = plan;
        if (!tl_simulate_plan(env, &simulate, &figures)) return 1;
        random_free_plan(env, plan);
        return 0;
    }
    desc.graph = graph;
    desc.inference = random_chance(random, 30);
    if (tl_plan_keep_all(env, graph, desc.inference, &all)) return 0;
    desc.budget_bytes = 1 + all.peak_bytes - tl_next_random_below(random, all.peak_bytes * 2 / 3 + 1);
    desc.work_limit = 20000;
    if (random_chance(random, 50)) desc.host_budget_bytes = 1 + tl_next_random_below(random, all.peak_bytes);
    tl_free_plan(env, &all);
    return !tl_plan_remat(env, &desc, plan, &report);
}

static void free_case(tl_env *env, int is_walk, tl_plan *plan) {
    if (is_walk) random_free_plan(env, plan);
    else tl_free_plan(env, plan);
}

static void a_replay_allocates_what_is_planned_and_computes_what_a_run_computes(void **state) {
    static client c;
    static outcome expected;
    tl_random random = { 516 };
    long round = 0, done, slots = 0, spills = 0, packs = 0, forward_only = 0, again = 0, in_pieces = 0;
    (void)state;
    for (done = 0; done < scaled(1000); round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_simulate_desc desc = { 0 };
        tl_report report;
        uint8_t is_result[MOST_TENSORS] = { 0 };
        int is_walk = done % 5 != 4;
        long calls = 0;
        int32_t i;
        assert_int_equal(random_graph(&env, &random, 16, &graph), TL_OK);
        if (!is_walk) calls = own_weights(&env, &random, &graph);
        if (!random_case(&env, &random, &graph, &is_walk, &plan)) { tl_free_graph(&env, &graph); continue; }
        done++;
        desc.graph = &graph;
        desc.plan = &plan;
        assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_OK);
        tli_mark_results(&graph, plan.inference, is_result);
        for (i = 0; i < graph.tensor_count; i++) is_result[i] |= graph.nodes[graph.outputs[i].node].state != TL_STATE_NONE;
        if (plan.inference) calls = 0;
        execute(&graph, &plan, is_result, &expected);
        open_client(&c, &graph, &plan);
        c.copies_late = (int)(done % 2);
        if (plan.offset_count && done % 3 == 0) {
            c.arena = (char *)malloc((size_t)report.arena_bytes + 1);
            c.taken = (unsigned char *)calloc((size_t)report.arena_bytes + 1, 1);
        }
        if (replay(&env, &c)) fail_msg("%s", env.error.text);
        fold_results(&c, is_result);
        assert_int_equal(c.peak[0], report.peak_bytes);
        assert_int_equal(c.peak[1], report.host_peak_bytes);
        assert_int_equal(c.live[0] + c.live[1], 0);
        assert_int_equal(c.allocations, c.releases);
        assert_int_equal(c.allocations, report.allocation_count + report.host_allocation_count);
        assert_int_equal(c.calls, report.forward_count + report.backward_count + calls);
        in_pieces += calls > 0;
        for (i = 0; i < RANDOM_SLOTS; i++) {
            assert_memory_equal(c.out.mixers[i].gradients, expected.mixers[i].gradients, sizeof expected.mixers[i].gradients);
            assert_true(c.out.mixers[i].saves_alone >= expected.mixers[i].saves_alone);    // outputs of 0 bytes are no outputs to make
            assert_int_equal(c.out.results[i], expected.results[i]);
        }
        slots += plan.slot_count > 1;
        spills += report.host_allocation_count > 0;
        packs += report.codec_count > 0;
        forward_only += plan.inference;
        again += report.recompute_count > 0;
        free(c.arena);
        free(c.taken);
        free_case(&env, is_walk, &plan);
        tl_free_graph(&env, &graph);
    }
    print_message("%ld plans replayed: %ld in slots, %ld with host copies, %ld compress, %ld forward only, %ld run nodes again, "
                  "%ld train in pieces\n", done, slots, spills, packs, forward_only, again, in_pieces);
    assert_true(is_thinned() || in_pieces > 10);
    assert_true(slots > done / 10 && spills > done / 10 && packs > done / 20 && forward_only > done / 10 && again > done / 5);
}

// Every function fails once, at each of its calls.
static void whatever_fails_everything_is_released(void **state) {
    static client c;
    tl_random random = { 517 };
    long cases = 0, failures = 0, kinds[3] = { 0 };
    (void)state;
    while (cases < scaled(60) || (cases < 60 && !kinds[2])) {     // of every kind one at least
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        int is_walk = 1;
        long at = 0;
        tl_result result = TL_OK;
        assert_int_equal(random_graph(&env, &random, 8, &graph), TL_OK);
        if (!random_case(&env, &random, &graph, &is_walk, &plan)) { tl_free_graph(&env, &graph); continue; }
        cases++;
        for (at = 0; ; at++, failures++) {
            open_client(&c, &graph, &plan);
            c.fail_at = at;
            result = replay(&env, &c);
            assert_int_equal(c.live[0] + c.live[1], 0);
            assert_int_equal(c.allocations, c.releases);
            if (!result) break;
            kinds[0] += result == TL_ERROR_OVER_BUDGET && strstr(env.error.text, "tl_replay_plan: allocate: returned an error");
            kinds[1] += result == TL_ERROR_STALE && strstr(env.error.text, "tl_replay_plan: call: returned an error");
            kinds[2] += result == TL_ERROR_DEVICE_LOST && strstr(env.error.text, "tl_replay_plan: copy: returned an error");
            assert_int_equal(c.functions, at + 1);    // nothing but releases after it
        }
        assert_int_equal(at, c.functions);
        free_case(&env, is_walk, &plan);
        tl_free_graph(&env, &graph);
    }
    print_message("%ld failures\n", failures);
    assert_true(kinds[0] > 0 && kinds[1] > 0 && kinds[2] > 0);
    assert_int_equal(kinds[0] + kinds[1] + kinds[2], failures);
}

static const char small[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=16 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 c ce fwd=1 bwd=1 out=4 needs=in in=1 keep\n";

static void nothing_is_called_where_the_plan_is_not_valid(void **state) {
    static client c;
    tl_env env = silent_env();
    tl_graph graph = graph_of(small);
    tl_plan plan = schedule_of("S 1\nF 2\nB 2\nD 1\nB 2\n");
    (void)state;
    open_client(&c, &graph, &plan);
    assert_int_equal(replay(&env, &c), TL_ERROR_INVALID_PLAN);
    assert_non_null(strstr(env.error.text, "tl_replay_plan: step 4"));
    assert_int_equal(c.functions, 0);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void a_plan_with_copies_needs_the_function_that_copies(void **state) {
    static client c;
    tl_env env = silent_env();
    tl_graph graph = graph_of(small);
    tl_plan plan = schedule_of("S 1\nF 2\nO 1\nW 1\nL 1\nW 1\nB 2\nD 1\nB 1\n");
    tl_replay_desc desc;
    (void)state;
    open_client(&c, &graph, &plan);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.allocate = client_allocate;
    desc.release = client_release;
    desc.call = client_call;
    desc.user = &c;
    assert_int_equal(tl_replay_plan(&env, &desc), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_replay_plan: copy: must not be NULL: step 2 copies or converts");
    assert_int_equal(c.allocations, c.releases);
    open_client(&c, &graph, &plan);
    assert_int_equal(replay(&env, &c), TL_OK);
    assert_int_equal(c.waits, 2);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void a_replay_without_memory_says_so(void **state) {
    static client c;
    tl_graph graph = graph_of(small);
    tl_plan plan = schedule_of("S 1\nF 2\nO 1\nW 1\nL 1\nW 1\nB 2\nD 1\nB 1\n");
    failing_alloc failing;
    tl_result result;
    long at;
    (void)state;
    for (at = 0; ; at++) {
        tl_env env;
        memset(&failing, 0, sizeof failing);
        env = failing_env(&failing, at);
        open_client(&c, &graph, &plan);
        result = replay(&env, &c);
        assert_int_equal(failing.live, 0);
        if (!result) break;
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_non_null(strstr(env.error.text, "no memory"));
        assert_int_equal(c.functions, 0);
    }
    assert_true(at > 10);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void every_start_has_a_name(void **state) {
    int i;
    (void)state;
    for (i = 0; i < TL_START_COUNT; i++) assert_string_not_equal(tl_name_start((tl_start)i), "?");
    assert_string_equal(tl_name_start(TL_START_COUNT), "?");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_allocates_what_is_planned_and_computes_what_a_run_computes),
        cmocka_unit_test(whatever_fails_everything_is_released),
        cmocka_unit_test(nothing_is_called_where_the_plan_is_not_valid),
        cmocka_unit_test(a_plan_with_copies_needs_the_function_that_copies),
        cmocka_unit_test(a_replay_without_memory_says_so),
        cmocka_unit_test(every_start_has_a_name),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("5_replay", tests, NULL, NULL);
}
