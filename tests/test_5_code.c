// [5] PLAN: plans written as C programs without the library, compiled, run, and compared with the executor.
#define _POSIX_C_SOURCE 200809L
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
#include "support/sink_support.h"
#include "support/code_files.h"
#include <unistd.h>

#define STRICT "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Wswitch-default -Werror "

enum { MOST_TENSORS = 128 };

// -- helpers --

static tl_result write_code(tl_env *env, const tl_graph *graph, const tl_plan *plan, const char *name, tl_code_form form,
                            int32_t states, code_text *text) {
    tl_code_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.form = form;
    desc.state_count = states;
    return write_code_text(env, graph, plan, &desc, text);
}

static void place(tl_env *env, const tl_graph *graph, tl_random *random, tl_plan *plan) {
    static const uint64_t alignments[] = { 1, 4, 8, 16 };
    tl_places_desc desc;
    tl_device device;
    tl_bank banks[3];
    int32_t k;
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    memset(banks, 0, sizeof banks);
    desc.graph = graph;
    desc.device = &device;
    desc.work_limit = 20000;
    device.alignment_bytes = alignments[tl_next_random_below(random, 4)];
    if (random_chance(random, 40)) {
        desc.banks = banks;
        desc.bank_count = random_count(random, 2, 3);
        for (k = 0; k + 1 < desc.bank_count; k++) banks[k].capacity_bytes = 64 + tl_next_random_below(random, plan->peak_bytes + 1);
        for (k = 0; k < desc.bank_count; k++) banks[k].price = (uint64_t)k + 1;
    }
    if (random_chance(random, 20)) desc.block_bytes = 256 + tl_next_random_below(random, 512);
    if (!tl_plan_places(env, &desc, plan, NULL)) return;
    desc.banks = NULL;
    desc.bank_count = 0;
    desc.block_bytes = 0;
    if (tl_plan_places(env, &desc, plan, NULL)) fail_msg("%s", env->error.text);
}

// A plan whose memory is the library's, of any kinds of steps that one device has.
static int random_code_plan(tl_env *env, tl_random *random, const tl_graph *graph, tl_plan *plan) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan walk, all;
    memset(&desc, 0, sizeof desc);
    if (random_chance(random, 50)) {
        tl_result result;
        assert_int_equal(random_slot_plan(env, random, graph, random_count(random, 0, RANDOM_SLOTS), &walk), TL_OK);
        result = tl_copy_plan(env, &walk, plan);
        random_free_plan(env, &walk);
        if (!result) result = tl_measure_plan(env, graph, NULL, plan);
        if (result) { tl_free_plan(env, plan); return 0; }
    } else {
        desc.graph = graph;
        desc.inference = random_chance(random, 30);
        if (tl_plan_keep_all(env, graph, desc.inference, &all)) return 0;
        desc.budget_bytes = 1 + all.peak_bytes - tl_next_random_below(random, all.peak_bytes * 2 / 3 + 1);
        desc.work_limit = 20000;
        if (random_chance(random, 50)) desc.host_budget_bytes = 1 + tl_next_random_below(random, all.peak_bytes);
        if (!desc.inference && random_chance(random, 50)) desc.codec = (tl_codec)random_count(random, TL_CODEC_NONE + 1, TL_CODEC_COUNT - 1);
        tl_free_plan(env, &all);
        if (tl_plan_remat(env, &desc, plan, &report)) return 0;
    }
    place(env, graph, random, plan);
    plan->repeat_count = plan->entry_count ? 1 : random_count(random, 0, 3);
    return 1;
}

// -- what the executor makes of a plan --

typedef struct expected_of { mixer mixers[RANDOM_SLOTS]; int32_t slots; } expected_of;

static tl_result expect_forward(const tl_kernel_call *call, void *user) {
    expected_of *e = (expected_of *)user;
    return mixer_forward(call, &e->mixers[call->micro_batch % e->slots]);
}

static tl_result expect_backward(const tl_kernel_call *call, void *user) {
    expected_of *e = (expected_of *)user;
    return mixer_backward(call, &e->mixers[call->micro_batch % e->slots]);
}

static bed expect_bed;
static expected_of expect;

static tl_result expect_load(tl_run *run, int32_t micro_batch, void *user) {
    mixer_start_pass(&expect.mixers[micro_batch % expect.slots]);
    return bed_load(run, micro_batch, user);
}

static uint64_t execute(const tl_graph *graph, const tl_plan *plan) {
    bed *b = &expect_bed;
    tl_plan bare;
    uint8_t is_result[MOST_TENSORS] = { 0 };
    unsigned char bytes[256];
    uint64_t sum = 1, k;
    int32_t i, slot;
    memset(&expect, 0, sizeof expect);
    expect.slots = plan->slot_count ? plan->slot_count : 1;
    bed_open(b, graph, BACKEND_CHECKED, 0, plan->alignment_bytes ? plan->alignment_bytes : 1);
    for (i = 0; i < RANDOM_SLOTS; i++) mixer_init(&expect.mixers[i]);
    for (i = 0; i < b->desc.kernel_count; i++) {
        b->kernels[i].forward = expect_forward;
        b->kernels[i].backward = expect_backward;
        b->kernels[i].user = &expect;
    }
    bare = *plan;    // without places: what is computed does not depend on them, and the backend has one bank
    bare.offset_count = bare.host_offset_count = bare.block_count = 0;
    b->desc.plan = &bare;
    b->desc.load = expect_load;
    bed_must_init(b);
    if (tl_run_plan(b->run)) fail_msg("%s", b->env.error.text);
    for (slot = 0; slot < expect.slots; slot++)
        for (i = 0; i < graph->node_count; i++) sum = tl_mix_u64(sum, expect.mixers[slot].gradients[i]);
    tli_mark_results(graph, plan->inference, is_result);
    for (slot = 0; slot < expect.slots; slot++) {
        assert_int_equal(tl_choose_slot(b->run, slot), TL_OK);
        for (i = 0; i < graph->tensor_count; i++) {
            tl_tensor tensor;
            if (!is_result[i]) continue;
            tensor.node = graph->outputs[i].node;
            tensor.output = graph->outputs[i].output;
            if (tl_read_tensor(b->run, tensor, bytes, graph->outputs[i].bytes)) fail_msg("%s", b->env.error.text);
            for (k = 0; k < graph->outputs[i].bytes; k++) sum = tl_mix_u64(sum, bytes[k]);
        }
    }
    bed_close(b);
    return sum;
}

// -- the user's side of a program, from its header --

typedef struct text_of { char *text; size_t length, room; } text_of;

static void add(text_of *t, const char *format, ...) {
    va_list list;
    int length;
    if (t->room - t->length < 4096) t->text = (char *)realloc(t->text, t->room += 1 << 16);
    assert_non_null(t->text);
    va_start(list, format);
    length = vsnprintf(t->text + t->length, t->room - t->length, format, list);
    va_end(list);
    assert_true(length >= 0 && (size_t)length < t->room - t->length);
    t->length += (size_t)length;
}

// Define every kernel that the header declares: its parameters go where their names say.
static void add_kernels(text_of *t, const char *name, const char *header) {
    char prefix[64];
    const char *line = header;
    int count = 0;
    snprintf(prefix, sizeof prefix, "void %s_", name);
    while ((line = strstr(line, prefix)) != NULL) {
        const char *end = strstr(line, ");\n"), *at = line;
        int backward = 0;
        assert_non_null(end);
        at += strcspn(at, "(");
        if (!strncmp(at - 8, "_forward", 8) || !strncmp(at - 9, "_backward", 9)) {
            add(t, "%.*s) {\n    code_call c = { 0 };\n    c.node = node;\n", (int)(end - line), line);
            backward = !strncmp(at - 9, "_backward", 9);
            while ((at = strstr(at, ", ")) != NULL && at < end) {
                const char *word = at += 2, *stop;
                while (*at != ',' && *at != ')') at++;
                stop = at;
                word = stop;
                while (word[-1] != ' ' && word[-1] != '*') word--;
                if (!strncmp(word, "slot", 4)) add(t, "    c.slot = slot;\n");
                else if (stop[-1] >= '0' && stop[-1] <= '9')
                    add(t, "    c.%.*s[%c] = (void *)%.*s;\n", (int)(stop - word - 1), word, stop[-1], (int)(stop - word), word);
                else add(t, "    c.%.*s = (void *)%.*s;\n", (int)(stop - word), word, (int)(stop - word), word);
            }
            add(t, "    code_%s(&%s_net, &c);\n}\n", backward ? "backward" : "forward", name);
            count++;
        }
        line = end;
    }
    assert_true(count > 0 || !strstr(header, "_forward("));
}

// What the header calls the input of a lifetime.
static void add_input(text_of *t, const char *name, const char *header, const tl_lifetimes *lifetimes, int at) {
    const char *line = header;
    char define[32];
    int i, length;
    snprintf(define, sizeof define, "#define N%s_INPUT_", name + 1);
    for (i = 0; i <= at; i++) {
        if (lifetimes->items[i].use != TL_USE_INPUT) continue;
        line = strstr(line + 1, define);
        assert_non_null(line);
        length = (int)strcspn(line + 8, " ");
        if (i == at) add(t, "%.*s", length, line + 8);
        line = strstr(line, "_BYTES ");    // of the same tensor
    }
}

// The tensors that the header names NET_<what>_.., by slot and index: those of the lifetimes, in their order.
static void add_tensors(text_of *t, const char *name, const char *what, const char *header, const tl_graph *graph,
                        const tl_plan *plan, int results) {
    uint8_t is_result[MOST_TENSORS] = { 0 };
    char define[64], rows[MOST_TENSORS * RANDOM_SLOTS][160];
    const char *line = header;
    tl_lifetimes lifetimes;
    int count = 0, slot, i, at;
    memset(rows, 0, sizeof rows);
    tli_mark_results(graph, plan->inference, is_result);
    assert_int_equal(tl_find_lifetimes(NULL, graph, plan, &lifetimes), TL_OK);
    snprintf(define, sizeof define, "#define %s_%s_", name, results ? "RESULT" : "INPUT");
    for (i = 0; i < 64 && define[i]; i++) if (i > 7 && define[i] >= 'a' && define[i] <= 'z') define[i] = (char)(define[i] - 32);
    for (i = 0; i < lifetimes.count; i++) {
        const tl_lifetime *life = &lifetimes.items[i];
        int tensor = graph->nodes[life->node].first_output + life->output;
        if (results ? life->use != TL_USE_OUTPUT || life->end_step != plan->step_count || !is_result[tensor] : life->use != TL_USE_INPUT) continue;
        line = strstr(line, define);
        assert_non_null(line);
        snprintf(rows[life->slot * MOST_TENSORS + tensor], 160, "    { %d, %d, %.*s, %.*s_BYTES },\n", (int)life->slot, tensor,
                 (int)(strchr(line + 8, ' ') - line - 8), line + 8, (int)(strchr(line + 8, ' ') - line - 8), line + 8);
        line = strstr(line + 8, "_BYTES ");    // of the same tensor
        count++;
    }
    if (line) assert_null(strstr(line, define));
    add(t, "static const code_tensor %s_%s[] = {\n    { 0, 0, 0, 0 },\n", name, what);
    for (slot = 0; slot < RANDOM_SLOTS; slot++)
        for (i = 0; i < graph->tensor_count; i++) {
            at = slot * MOST_TENSORS + i;
            // a result that is a graph input is where the input is
            if (results && is_result[i] && graph->nodes[graph->outputs[i].node].is_input && slot < (plan->slot_count ? plan->slot_count : 1) && graph->outputs[i].bytes) {
                int k;
                for (k = 0; k < lifetimes.count; k++) {
                    const tl_lifetime *life = &lifetimes.items[k];
                    if (life->use != TL_USE_INPUT || life->slot != slot || graph->nodes[life->node].first_output + life->output != i) continue;
                    add(t, "    { %d, %d, ", slot, i);
                    add_input(t, name, header, &lifetimes, k);
                    add(t, ", %d },\n", (int)life->bytes);
                    count++;
                }
            }
            add(t, "%s", rows[at]);
        }
    add(t, "};\n");
    add(t, "enum { %s_%s_count = %d };\n", name, what, count);
    tl_free_lifetimes(NULL, &lifetimes);
}

// Define an array of the user, which holds the distances from its start.
static void add_constants(text_of *t, const char *name, const char *upper, const char *what, const char *size) {
    long bytes = atol(size), i;
    add(t, "const unsigned char %s_%s[%s_%s_BYTES] = {\n    ", name, what, upper, *what == 'w' ? "WEIGHTS" : "FROZEN");
    for (i = 0; i < bytes; i++) add(t, "%d,%s", (int)(i & 255), i % 20 == 19 ? "\n    " : " ");
    add(t, "\n};\n");
}

static void add_user(text_of *t, const char *name, const char *header, const tl_graph *graph, const tl_plan *plan) {
    int32_t id, i;
    char upper[16];
    int is_trained = strstr(header, "_gradients[") != NULL, has_weights = strstr(header, "_weights[") != NULL;
    int has_frozen = strstr(header, "_frozen[") != NULL;
    snprintf(upper, sizeof upper, "%s", name);
    upper[0] = (char)(upper[0] - 32);
    add(t, "#include \"%s.c\"\n", name);
    if (has_weights && plan->inference) add_constants(t, name, upper, "weights", strstr(header, "_WEIGHTS_BYTES ") + 15);
    if (has_frozen) add_constants(t, name, upper, "frozen", strstr(header, "_FROZEN_BYTES ") + 14);
    add(t, "static const code_node %s_nodes[] = {\n", name);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        add(t, "    { %d, %d, {", (int)node->input_count, (int)node->output_count);
        for (i = 0; i < 8; i++) add(t, " %d,", i < node->input_count ? (int)graph->outputs[graph->inputs[node->first_input + i].tensor].bytes : 0);
        add(t, " }, {");
        for (i = 0; i < 8; i++) add(t, " %d,", i < node->output_count ? (int)graph->outputs[node->first_output + i].bytes : 0);
        add(t, " }, %d, %d, %d, %d, %d },\n", (int)node->saved_bytes, (int)node->fwork_bytes, (int)node->swork_bytes, (int)node->bwork_bytes, (int)node->param_bytes);
    }
    add(t, "};\n");
    add_tensors(t, name, "inputs", header, graph, plan, 0);
    add_tensors(t, name, "results", header, graph, plan, 1);
    add(t, "static code_net %s_net = { \"%s\", %s_nodes, %d, %d, %s_inputs + 1, %s_results + 1, %s_inputs_count, %s_results_count, %s_run,\n",
        name, name, name, (int)graph->node_count, plan->slot_count ? (int)plan->slot_count : 1, name, name, name, name, name);
    add(t, "    (unsigned char *)%s%s, %s%s, %s%s, %s%s, 0, { { 0 } }, 0, %s%s };\n", has_weights ? name : "0", has_weights ? "_weights" : "",
        is_trained ? name : "0", is_trained ? "_gradients" : "", has_weights && !plan->inference ? upper : "0",
        has_weights && !plan->inference ? "_WEIGHTS_BYTES" : "",
        is_trained ? upper : "0", is_trained ? "_GRADIENTS_BYTES" : "", has_frozen ? name : "0", has_frozen ? "_frozen" : "");
    add(t, "void %s_load(int32_t micro_batch) { code_load(&%s_net, micro_batch); }\n", name, name);
    if (strstr(header, "_copy(")) add(t, "void %s_copy(void *to, const void *from, size_t bytes) { code_copy(to, from, bytes); }\nvoid %s_wait(const void *to) { code_wait(to); }\n", name, name);
    if (strstr(header, "_compress("))
        add(t, "void %s_compress(int32_t codec, void *to, const void *from, size_t bytes) { code_compress(codec, to, from, bytes); }\n"
            "void %s_expand(int32_t codec, void *to, const void *from, size_t bytes) { code_expand(codec, to, from, bytes); }\n", name, name);
    add_kernels(t, name, header);
}

// -- random programs --

// The generated sources alone: they compile clean everywhere, and call nothing but memset and what the header declares.
static void compile_alone(const char *dir, int count) {
    static const char *const compilers[] = { "gcc", "clang", "arm-none-eabi-gcc" };
    char command[1024];
    FILE *symbols;
    size_t k;
    (void)count;
    for (k = 0; k < 3; k++) {
        char line[256];
        long others = 0;
        if (!has_program(compilers[k])) continue;
        snprintf(command, sizeof command, "cd %s && %s -std=c99 -ffreestanding -Os %s -c -o all.o all.c", dir, compilers[k], STRICT);
        must_run(command);
        snprintf(command, sizeof command, "nm -u %s/all.o", dir);
        symbols = popen(command, "r");
        assert_non_null(symbols);
        while (fgets(line, sizeof line, symbols)) {
            char *name = strrchr(line, ' ');
            assert_non_null(name);
            name[strcspn(name, "\n")] = 0;
            others += strcmp(name, " memset") && !strstr(name, "_forward") && !strstr(name, "_backward") && !strstr(name, "_load") &&
                      !strstr(name, "_copy") && !strstr(name, "_wait") && !strstr(name, "_compress") && !strstr(name, "_expand") && !strstr(name, "_weights") && !strstr(name, "_frozen") && !strstr(name, "_GLOBAL_OFFSET_TABLE_");
        }
        assert_int_equal(pclose(symbols), 0);
        assert_int_equal(others, 0);
    }
}

typedef struct batch_counts { long slots, spills, forward_only, again, tables, banks, repeats, codecs[TL_CODEC_COUNT], table_codecs; } batch_counts;

static void add_program(tl_random *random, int number, const char *dir, text_of *users, text_of *all, uint64_t *expected,
                        batch_counts *counts) {
    tl_env env = silent_env();
    tl_simulate_desc simulate = { 0 };
    tl_report report;
    code_text text;
    tl_graph graph;
    tl_plan plan;
    char name[16];
    int32_t k, tables;
    for (;;) {
        assert_int_equal(random_graph(&env, random, 16, &graph), TL_OK);
        if (random_chance(random, 30)) (void)random_let_inputs_die(random, &graph);
        if (random_code_plan(&env, random, &graph, &plan)) break;
        tl_free_graph(&env, &graph);
    }
    snprintf(name, sizeof name, "n%d", number);
    if (write_code(&env, &graph, &plan, name, (tl_code_form)(number % 3), number % 4, &text)) fail_msg("%s", env.error.text);
    save_text(dir, name, ".h", text.header.text);
    save_text(dir, name, ".c", text.source.text);
    add_user(users, name, text.header.text, &graph, &plan);
    add(all, "#include \"%s.c\"\n", name);
    *expected = execute(&graph, &plan);
    tables = strstr(text.source.text, "_rows[]") != NULL;
    simulate.graph = &graph;
    simulate.plan = &plan;
    assert_int_equal(tl_simulate_plan(&env, &simulate, &report), TL_OK);
    if (number % 3 == TL_CODE_TABLE) assert_int_equal(tables, report.forward_count + report.copy_count > 0);
    if (number % 3 == TL_CODE_CALLS) assert_false(tables);
    counts->slots += plan.slot_count > 1;
    counts->spills += report.host_allocation_count > 0;
    counts->forward_only += plan.inference;
    counts->again += report.recompute_count > 0;
    counts->repeats += plan.repeat_count > 1;
    counts->tables += tables;
    for (k = 0; k < plan.step_count; k++) {
        if (plan.steps[k].kind != TL_STEP_COMPRESS) continue;
        counts->codecs[plan.steps[k].codec]++;
        counts->table_codecs += tables;
    }
    for (k = 0; k < plan.block_count; k++) if (plan.blocks[k].bank) break;
    counts->banks += k < plan.block_count;
    free_text(&text);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void run_batch(const char *dir, int first, int count, const uint64_t *expected, const char *compiler) {
    char command[1024], line[128];
    FILE *out;
    int i;
    snprintf(command, sizeof command, "%s -std=c99 -ffp-contract=off -O1 -Wall -Wextra -fsanitize=address,undefined "
             "-fno-sanitize-recover=all -I. -I%s -o %s/program %s/users.c -lm", compiler, dir, dir, dir);
    must_run(command);
    snprintf(command, sizeof command, "%s/program 2>&1", dir);
    out = popen(command, "r");
    assert_non_null(out);
    for (i = 0; i < count; i++) {
        char want[64];
        snprintf(want, sizeof want, "n%d %016llx\n", first + i, (unsigned long long)expected[i]);
        if (!fgets(line, sizeof line, out)) fail_msg("the program ended before n%d", first + i);
        if (strcmp(line, want)) fail_msg("expected %snot      %s", want, line);
    }
    assert_int_equal(pclose(out), 0);
}

static void programs_compute_what_the_executor_computes(void **state) {
    enum { BATCH = 25 };
    tl_random random = { 5160 };
    char dir[] = "/tmp/tl_code_XXXXXX", command[64];
    batch_counts counts = { 0 };
    int number = 0, rounds = scaled(50), i;
    (void)state;
    assert_non_null(mkdtemp(dir));
    while (number < rounds) {
        text_of users = { 0 }, all = { 0 };
        uint64_t expected[BATCH];
        int first = number;
        add(&users, "#include \"tests/support/code_program.h\"\n");
        for (i = 0; i < BATCH; i++) add_program(&random, number++, dir, &users, &all, &expected[i], &counts);
        add(&users, "int main(int argc, char **argv) {\n");
        for (i = first; i < number; i++) add(&users, "    code_run(&n%d_net);\n", i);
        add(&users, "    return 0;\n}\n");
        save_text(dir, "users", ".c", users.text);
        save_text(dir, "all", ".c", all.text);
        if (!first) compile_alone(dir, number);
        run_batch(dir, first, BATCH, expected, first / BATCH % 2 && has_program("clang") ? "clang" : "cc");
        free(users.text);
        free(all.text);
    }
    print_message("%ld copies in f16, %ld in bf16, %ld in q8, %ld of all in tables\n", counts.codecs[TL_CODEC_F16],
                  counts.codecs[TL_CODEC_BF16], counts.codecs[TL_CODEC_Q8], counts.table_codecs);
    print_message("%d programs: %ld in slots, %ld with host copies, %ld forward only, %ld run nodes again, %ld repeat, "
                  "%ld in several banks, %ld as tables\n", number, counts.slots, counts.spills, counts.forward_only, counts.again,
                  counts.repeats, counts.banks, counts.tables);
    assert_true(counts.slots > 0 && counts.spills > number / 10 && counts.forward_only > number / 10 && counts.again > number / 10);
    for (i = TL_CODEC_NONE + 1; i < TL_CODEC_COUNT; i++) assert_true(counts.codecs[i] > number / 10);
    assert_true(counts.table_codecs > number / 10);
    assert_true(counts.banks > number / 20 && counts.tables > number / 4 && counts.repeats > number / 10);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    must_run(command);
}

// -- the text --

static const char small[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=16 needs=in in=0 saved=4 fwork=2 bwork=6 param=10\n"
    "node 2 f conv.1 fwd=3 bwd=0 out=16 needs=none in=1 grad=no param=6\n"
    "node 3 c conv_1 fwd=1 bwd=1 out=4 needs=in in=1,2 keep\n";

static tl_plan small_plan(const tl_graph *graph, const char *steps, int inference) {
    tl_env env = silent_env();
    tl_plan plan = schedule_of(steps);
    tl_places_desc desc = { 0 };
    plan.inference = inference;
    desc.graph = graph;
    if (tl_plan_places(&env, &desc, &plan, NULL)) fail_msg("%s", env.error.text);
    return plan;
}

static void a_program_reads_like_what_it_does(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(small);
    tl_plan plan = small_plan(&graph, "S 1\nF 2\nF 3\nB 3\nD 2\nD 1\nB 1\n", 0);
    code_text text;
    (void)state;
    plan.repeat_count = 3;
    if (write_code(&env, &graph, &plan, "my_net", TL_CODE_CALLS, 2, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "#define MY_NET_WEIGHTS_BYTES 12\n#define MY_NET_GRADIENTS_BYTES 12\n#define MY_NET_FROZEN_BYTES 8\n#define MY_NET_STATE_BYTES 24\n");
    must_hold(text.header.text, "#define MY_NET_MICRO_BATCHES 3\n");
    must_hold(text.header.text, "#define MY_NET_FROZEN_F_OFFSET 0\n#define MY_NET_FROZEN_F_BYTES 6\n");
    must_hold(text.header.text, "extern unsigned char my_net_weights[MY_NET_WEIGHTS_BYTES];\n");
    must_hold(text.header.text, "extern const unsigned char my_net_frozen[MY_NET_FROZEN_BYTES];    // of the user, at a multiple of 8 bytes\n");
    must_hold(text.header.text, "\nvoid my_net_conv_forward(int32_t node, void *out0, const void *in0, const void *weight, void *saved, void *scratch);\n");
    must_hold(text.header.text, "\nvoid my_net_conv_backward(int32_t node, const void *dout0, const void *in0, const void *weight, void *dweight,"
                                " const void *saved, void *scratch);\n");
    must_hold(text.header.text, "\nvoid my_net_conv_1_n2_forward(int32_t node, void *out0, const void *in0, const void *weight);\n");
    must_hold(text.header.text, "\nvoid my_net_conv_1_n3_forward(int32_t node, void *out0, const void *in0, const void *in1);\n");
    must_hold(text.header.text, "\nvoid my_net_conv_1_n3_backward(int32_t node, const void *dout0, void *din0, const void *in0, const void *in1);\n");
    must_hold(text.source.text, "    for (micro_batch = 0; micro_batch < MY_NET_MICRO_BATCHES; micro_batch += 1) {\n        my_net_load(micro_batch);\n"
                                "        my_net_conv_forward(MY_NET_NODE_A, ");
    must_hold(text.source.text, "my_net_frozen);  // f: step 1\n");
    must_hold(text.source.text, ", 4);  // c: gradient, step 3\n");
    must_hold(text.source.text, ", 0, 16);  // c: gradient, step 3\n");
    assert_null(strstr(text.source.text, "rows"));
    free_text(&text);
    tl_free_plan(NULL, &plan);
    plan = small_plan(&graph, "F 1\nF 2\nF 3\nD 1\nD 2\n", 1);
    if (write_code(&env, &graph, &plan, "n", TL_CODE_TABLE, 2, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "extern const unsigned char n_weights[N_WEIGHTS_BYTES];    // of the user, at a multiple of 8 bytes\n");
    assert_null(strstr(text.header.text, "gradient"));
    assert_null(strstr(text.header.text, "_backward"));
    assert_null(strstr(text.header.text, "saved"));
    assert_null(strstr(text.source.text, "n_weights["));
    must_hold(text.source.text, "static const uint16_t n_rows[] = {\n");
    must_hold(text.source.text, ",  // f: step 1\n");
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A result that is made again while calls before may be under way has two places at the end: the one of the last.
static void a_result_made_again_has_one_place(void **state) {
    static const char *const schedules[] = { "F 1\nF 2\nF 3\nD 3\nF 3\n", "K 4\nF 1\nF 2\nF 3\nD 3\nF 3\n" };
    tl_env env = silent_env();
    tl_graph graph = graph_of(small);
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        tl_plan plan = small_plan(&graph, schedules[k], 1);
        const char *at;
        code_text text;
        int count = 0;
        if (write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 0, &text)) fail_msg("%s", env.error.text);
        for (at = text.header.text; (at = strstr(at, "#define N_RESULT_C_BYTES ")) != NULL; at++) count++;
        assert_int_equal(count, 1);
        free_text(&text);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// Two dense layers with their weights and momentum. A first weight of 10 rows of 16 floats, a second of 5 of 10.
static const char owned[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\nstate 1 w momentum w=640 m=640 upd=3 wrows=10\n"
    "node 2 y dense fwd=10 bwd=25 out=40 needs=in in=0,1\nstate 3 v momentum w=200 m=200 upd=3 wrows=5\n"
    "node 4 z dense fwd=4 bwd=8 out=20 needs=in in=2,3\nnode 5 l loss fwd=1 bwd=1 out=4 needs=in in=4 keep\nend 6\n";

// Its kernels. With CUT they are called for rows, 0, 0 for all; `rows` is what they make of that.
static const char owned_kernels[] =
    "#include \"net.h\"\n#include <stdio.h>\n#ifdef CUT\n#define ROWS , int32_t first, int32_t count\n"
    "#else\n#define ROWS\nenum { first = 0, count = 0 };\n#endif\n"
    "static int ins(int n) { return n == NET_NODE_Y ? 16 : 10; }\nstatic int outs(int n) { return n == NET_NODE_Y ? 10 : 5; }\n"
    "static float *state(void *at) { return (float *)at; }\nvoid net_load(int32_t b) { int i; (void)b;\n"
    "    for (i = 0; i < 16; i++) state(NET_INPUT_X)[i] = (float)(i % 5) - 1.5f; }\n"
    "void net_dense_forward(int32_t n, void *out, const void *in, const void *w) { int o, i;\n"
    "    for (o = 0; o < outs(n); o++) { float sum = 0; for (i = 0; i < ins(n); i++) sum += ((const float *)w)[o * ins(n) + i] * ((const float *)in)[i];\n"
    "        ((float *)out)[o] = sum; } }\n"
    "void net_dense_backward(int32_t n, const void *dout, void *din, void *dw, const void *in, const void *w SCRATCH ROWS) { int o, i;\n"
    "    int end = count ? first + count : outs(n);\n"
    "    for (o = 0; o < outs(n) && din; o++) for (i = 0; i < ins(n); i++) ((float *)din)[i] += ((const float *)w)[o * ins(n) + i] * ((const float *)dout)[o];\n"
    "    for (o = first; o < end && dw; o++) for (i = 0; i < ins(n); i++)\n"
    "        ((float *)dw)[(o - first) * ins(n) + i] += ((const float *)in)[i] * ((const float *)dout)[o]; }\n"
    "void net_momentum_update(int32_t n, const void *g, void *w, void *m ROWS) { int i, ins_ = n == NET_NODE_W ? 16 : 10;\n"
    "    int values = (count ? count : n == NET_NODE_W ? 10 : 5) * ins_; (void)first;\n"
    "    for (i = 0; i < values; i++) { state(m)[i] = 0.9f * state(m)[i] + ((const float *)g)[i]; state(w)[i] -= 0.05f * state(m)[i]; } }\n"
    "void net_loss_forward(int32_t n, void *out, const void *in) { int i; float sum = 0; (void)n;\n"
    "    for (i = 0; i < 5; i++) sum += ((const float *)in)[i] * ((const float *)in)[i]; *(float *)out = sum; }\n"
    "void net_loss_backward(int32_t n, const void *dout, void *din, const void *in) { int i; (void)n;\n"
    "    for (i = 0; i < 5; i++) ((float *)din)[i] += 2 * ((const float *)in)[i] * *(const float *)dout; }\n"
    "static void show(const void *at, int bytes) { int i; for (i = 0; i < bytes; i++) printf(\"%02x\", ((const unsigned char *)at)[i]); printf(\"\\n\"); }\n"
    "int main(void) { int i; for (i = 0; i < 160; i++) state(NET_STATE_W_o0)[i] = (float)(i % 7) / 9.0f - 0.3f;\n"
    "    for (i = 0; i < 50; i++) state(NET_STATE_V_o0)[i] = (float)(i % 11) / 7.0f - 0.6f;\n"
    "    for (i = 0; i < 4; i++) net_run();\n"
    "    show(NET_STATE_W_o0, 640); show(NET_STATE_W_o1, 640); show(NET_STATE_V_o0, 200); show(NET_STATE_V_o1, 200); return 0; }\n";

// Write the program of a plan that keeps all, compile and run it; what it prints of the states. Its bank's bytes: *bytes.
static char *train_owned(const tl_graph *graph, tl_code_form form, int is_cut, uint64_t *bytes) {
    tl_env env = silent_env();
    char dir[] = "/tmp/tl_pieces_XXXXXX", command[512], *out = (char *)calloc(1, 4096);
    tl_remat_desc desc = { 0 };
    tl_remat_report report;
    code_text text;
    tl_plan plan;
    FILE *file;
    desc.graph = graph;
    desc.budget_bytes = 1 << 20;
    desc.alignment_bytes = 16;
    assert_non_null(mkdtemp(dir));
    if (tl_plan_remat(&env, &desc, &plan, &report)) fail_msg("%s", env.error.text);
    *bytes = plan.arena_bytes;
    if (write_code(&env, graph, &plan, "net", form, 0, &text)) fail_msg("%s", env.error.text);
    assert_int_equal(strstr(text.source.text, "_rows[]") != NULL, form == TL_CODE_TABLE);
    assert_int_equal(strstr(text.source.text, "static void net_pieces_0(void)") != NULL, is_cut);
    save_text(dir, "net", ".h", text.header.text);
    save_text(dir, "net", ".c", text.source.text);
    save_text(dir, "user", ".c", owned_kernels);
    snprintf(command, sizeof command, "cd %s && cc -std=c99 -ffp-contract=off -O1 -fsanitize=address,undefined -fno-sanitize-recover=all %s "
             "-o net net.c user.c && ./net && gcc -std=c99 %s -c -o alone.o net.c; rm -r %s", dir,
             !is_cut ? "-DSCRATCH=" : strstr(text.header.text, "const void *in1, void *scratch") ? "-DCUT '-DSCRATCH=,void*scratch'" : "-DCUT -DSCRATCH=",
             STRICT, dir);
    file = popen(command, "r");
    assert_non_null(file);
    assert_true(fread(out, 1, 4095, file) == 2 * (640 + 640 + 200 + 200) + 4);
    assert_int_equal(pclose(file), 0);
    free_text(&text);
    tl_free_plan(NULL, &plan);
    return out;
}

// Of what the reader of a state has beside a piece, the update gets whole units of 16 bytes.
static void updates_of_pieces_have_what_is_beside_one(void **state) {
    int beside;
    (void)state;
    for (beside = 0; beside <= 16; beside += beside ? 1 : 15) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_places_desc places = { 0 };
        code_text text;
        char of[600];
        snprintf(of, sizeof of, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\nstate 1 w momentum w=640 wrows=10 piece=3\n"
                 "node 2 y dense fwd=10 bwd=25 out=40 needs=in in=0,1 bwork=%d\nend 3\n", 3 * 64 + beside);
        graph = graph_of(of);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
        places.graph = &graph;
        assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
        if (write_code(&env, &graph, &plan, "net", TL_CODE_CALLS, 0, &text)) fail_msg("%s", env.error.text);
        if (!strstr(text.header.text, beside == 16 ? "void *out0, void *scratch, int32_t first" : "void *out0, int32_t first"))
            fail_msg("%d: %s", beside, text.header.text);
        free_text(&text);
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
}

// A loop that makes and uses some rows of a gradient at a time trains to the same bits in fewer bytes.
static void a_program_trains_in_pieces(void **state) {
    tl_graph whole = graph_of(owned), cut;
    tl_pieces_desc desc = { 0 };
    uint64_t bytes, fewer;
    int k, size;
    (void)state;
    desc.graph = &whole;
    for (size = 0; size < 3; size++) {
        static const uint64_t sizes[] = { 64, 200, 450 };   // 1 and 4 rows of both, 7 rows of the first alone
        desc.piece_bytes = sizes[size];
        assert_int_equal(tl_apply_pieces(NULL, &desc, &cut), TL_OK);
        for (k = 0; k < 2; k++) {
            char *expected = train_owned(&whole, k ? TL_CODE_TABLE : TL_CODE_CALLS, 0, &bytes);
            char *got = train_owned(&cut, k ? TL_CODE_TABLE : TL_CODE_CALLS, 1, &fewer);
            assert_string_equal(got, expected);
            assert_true(fewer < bytes);
            free(expected);
            free(got);
        }
        tl_free_graph(NULL, &cut);
    }
    tl_free_graph(NULL, &whole);
}

// -- errors --

static void bad_code_descs_are_refused(void **state) {
    static const char *const names[] = { "", "2net", "a-b", "a__b", "a_", "1234567890123456789012345678901234567890abcdefghi" };
    tl_env env = silent_env();
    tl_graph graph = graph_of(small);
    tl_plan plan = small_plan(&graph, "S 1\nF 2\nF 3\nB 3\nD 2\nD 1\nB 1\n", 0), bare = schedule_of("S 1\nF 2\nF 3\nB 3\nD 2\nD 1\nB 1\n");
    code_text text;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(write_code(&env, &graph, &plan, names[i], TL_CODE_CALLS, 0, &text), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, "tl_write_plan_code: name: must be 1 to 48"));
        assert_int_equal(text.header.count + text.source.count, 0);
    }
    assert_int_equal(write_code(&env, &graph, &plan, "n", TL_CODE_FORM_COUNT, 0, &text), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_write_plan_code: form: unknown value");
    {   // figures are zero on errors, and of a training step those of its arrays
        tl_code_figures figures = { 1, 1, 1, 1, 1, 1, 1 };
        tl_code_desc desc = { "n", TL_CODE_FORM_COUNT, 2, NULL, NULL, NULL, NULL };
        desc.figures = &figures;
        assert_int_equal(write_code_text(&env, &graph, &plan, &desc, &text), TL_ERROR_INVALID_ARG);
        assert_true(figures.ram_bytes + figures.bank_bytes + figures.constant_bytes == 0);
        desc.form = TL_CODE_CALLS;
        assert_int_equal(write_code_text(&env, &graph, &plan, &desc, &text), TL_OK);
        assert_true(figures.bank_bytes == plan.arena_bytes && figures.weight_bytes == 12 && figures.gradient_bytes == 12);
        assert_true(figures.state_bytes == 24 && figures.constant_bytes == 8 && figures.ram_bytes == plan.arena_bytes + 48);
        free_text(&text);
        memset(&text, 0, sizeof text);
    }
    assert_int_equal(write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, -1, &text), TL_ERROR_INVALID_ARG);
    assert_int_equal(write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 17, &text), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_write_plan_code: state_count: must be 0 to 16");
    assert_int_equal(write_code(&env, &graph, &bare, "n", TL_CODE_CALLS, 0, &text), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_write_plan_code: plan: has no offsets; tl_plan_places gives it some");
    assert_int_equal(text.header.count + text.source.count, 0);
    bare.step_count = 2;
    assert_int_equal(write_code(&env, &graph, &bare, "n", TL_CODE_CALLS, 0, &text), TL_ERROR_INVALID_PLAN);
    tl_free_plan(NULL, &plan);
    tl_free_plan(NULL, &bare);
    tl_free_graph(NULL, &graph);
}

static void constants_are_of_the_user(void **state) {
    static const char model[] =
        "tlg 2\n"
        "node 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=64 needs=in in=0 param=40 stored=400:i8,12:i32\n"
        "node 2 b conv fwd=9 bwd=0 out=64 needs=none in=1 grad=no param=20\n"
        "node 3 c lin fwd=9 bwd=9 out=64 needs=in in=2 stored=3:bf16 keep\n"
        "end 4\n";
    tl_env env = silent_env();
    tl_graph graph = graph_of(model);
    tl_plan plan = small_plan(&graph, "F 1\nF 2\nF 3\nB 3\nB 1\n", 0);
    code_text text;
    (void)state;
    if (write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 1, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "#define N_WEIGHTS_BYTES 40\n#define N_GRADIENTS_BYTES 40\n#define N_FROZEN_BYTES 435\n#define N_STATE_BYTES 40\n");
    must_hold(text.header.text, "#define N_STORED_A_0_OFFSET 20\n#define N_STORED_A_0_BYTES 400\n#define N_STORED_A_1_OFFSET 420\n#define N_STORED_A_1_BYTES 12\n");
    must_hold(text.header.text, "void n_conv_backward(int32_t node, const void *dout0, const void *in0, const void *weight, const void *stored0,"
                                " const void *stored1, void *dweight);\n");
    must_hold(text.source.text, ", n_weights, n_frozen + 20, n_frozen + 420);  // a: step 0\n");
    must_hold(text.source.text, ", n_frozen, NULL, NULL);  // b: step 1\n");
    must_hold(text.source.text, ", n_frozen + 432);  // c: step 3\n");
    assert_null(strstr(text.source.text, "unsigned char n_frozen"));
    free_text(&text);
    if (write_code(&env, &graph, &plan, "n", TL_CODE_TABLE, 1, &text)) fail_msg("%s", env.error.text);
    must_hold(text.source.text, ", n_frozen");
    free_text(&text);
    tl_free_plan(NULL, &plan);
    plan = small_plan(&graph, "F 1\nF 2\nF 3\n", 1);
    if (write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 0, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "extern const unsigned char n_weights[N_WEIGHTS_BYTES];");
    must_hold(text.header.text, "#define N_WEIGHTS_BYTES 475\n");
    must_hold(text.source.text, ", n_weights, n_weights + 60, n_weights + 460);  // a: step 0\n");
    assert_null(strstr(text.header.text, "frozen"));
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Constants of odd bytes lie behind those of words, so that their array has no holes and each begins where its elements may.
static void constants_leave_no_holes(void **state) {
    static const char model[] =
        "tlg 2\n"
        "node 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=0 out=64 needs=none in=0 grad=no stored=27:i8,12:i32,6:i16,3:i4\n"
        "node 2 b conv fwd=9 bwd=0 out=64 needs=none in=1 grad=no keep stored=2:i8,8:f32,5:i8\nend 3\n";
    static const char *const places[] = { "A_1_OFFSET 0\n", "B_1_OFFSET 12\n", "A_2_OFFSET 20\n", "B_0_OFFSET 26\n", "A_0_OFFSET 28\n",
                                          "A_3_OFFSET 55\n", "B_2_OFFSET 58\n" };
    tl_env env = silent_env();
    tl_graph graph = graph_of(model);
    static const uint64_t expected[] = { 28, 0, 20, 55, 26, 12, 58 };
    tl_plan plan = small_plan(&graph, "F 1\nF 2\n", 1);
    uint64_t offsets[7];
    tl_code_desc desc;
    code_text text;
    size_t k;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.name = "n";
    desc.stored_offsets = offsets;
    if (write_code_text(&env, &graph, &plan, &desc, &text)) fail_msg("%s", env.error.text);
    assert_memory_equal(offsets, expected, sizeof expected);
    must_hold(text.header.text, "#define N_WEIGHTS_BYTES 63\n");
    for (k = 0; k < sizeof places / sizeof *places; k++) must_hold(text.header.text, places[k]);
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"     // one that is no multiple of its elements
                     "node 1 a conv fwd=9 bwd=0 out=64 needs=none in=0 grad=no keep stored=5:i8,3:bf16\nend 2\n");
    plan = small_plan(&graph, "F 1\n", 1);
    if (write_code_text(&env, &graph, &plan, &desc, &text)) fail_msg("%s", env.error.text);
    assert_true(offsets[0] == 0 && offsets[1] == 6);
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Nodes of one op with kernels of other names have prototypes of their own, with the operands of those nodes alone.
static void kernels_have_the_names_that_are_given(void **state) {
    static const char model[] =
        "tlg 2\n"
        "node 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=0 out=64 needs=none in=0 grad=no stored=400:i8,12:i32\n"
        "node 2 b conv fwd=9 bwd=0 out=64 needs=none in=1 grad=no\n"
        "node 3 c add fwd=9 bwd=0 out=64 needs=none in=1,2 grad=no\n"
        "node 4 d conv fwd=9 bwd=0 out=64 needs=none in=3 grad=no keep stored=8:i8\nend 5\n";
    static const char *const kernels[] = { NULL, "conv-i8", "conv_f32", NULL, "conv-i8" };
    static const char *const same[] = { "input", "conv i8", "conv.i8", "conv_i8", "conv_i8" };
    tl_env env = silent_env();
    tl_graph graph = graph_of(model);
    tl_plan plan = small_plan(&graph, "F 1\nF 2\nF 3\nF 4\n", 1);
    tl_code_desc desc;
    code_text text;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.name = "n";
    desc.form = TL_CODE_CALLS;
    desc.kernels = kernels;
    if (write_code_text(&env, &graph, &plan, &desc, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "void n_conv_i8_forward(int32_t node, void *out0, const void *in0, const void *stored0, const void *stored1);\n"
                                "void n_conv_f32_forward(int32_t node, void *out0, const void *in0);\n"
                                "void n_add_forward(int32_t node, void *out0, const void *in0, const void *in1);\n");
    must_hold(text.source.text, "n_conv_i8_forward(N_NODE_D, ");
    must_hold(text.source.text, "n_weights + 412, NULL);  // d: step 3\n");
    must_hold(text.source.text, "n_conv_f32_forward(N_NODE_B, ");
    free_text(&text);
    desc.form = TL_CODE_TABLE;
    if (write_code_text(&env, &graph, &plan, &desc, &text)) fail_msg("%s", env.error.text);
    must_hold(text.source.text, ": n_conv_i8_forward((int32_t)at[0], ");
    free_text(&text);
    desc.kernels = same;        // the same in C, and yet three kernels
    if (write_code_text(&env, &graph, &plan, &desc, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "void n_conv_i8_n1_forward(");
    must_hold(text.header.text, "void n_conv_i8_n2_forward(");
    must_hold(text.header.text, "void n_conv_i8_n3_forward(");
    assert_null(strstr(text.header.text, "n_conv_i8_n4_forward("));
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A frozen state is read where it is, by whole calls and by regions of rows alike.
static void frozen_states_are_no_ram(void **state) {
    static const char model[] =
        "tlg 2\n"
        "node 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=16@0\n"
        "state 1 v state w=20 frozen wfmt=i8\n"
        "node 2 a conv fwd=9 bwd=0 out=64 needs=none in=0,1 grad=no rows=16@0 rin=3/1/1,whole\n"
        "state 3 w sgd w=40\n"
        "node 4 b conv fwd=9 bwd=9 out=64 needs=in in=2,3 rows=16@0 rin=3/1/1,whole\n"
        "node 5 c loss fwd=9 bwd=9 out=4 needs=in in=4 keep\n"
        "end 6\n";
    tl_env env = silent_env();
    tl_graph graph = graph_of(model);
    tl_plan plan = small_plan(&graph, "F 2\nF 4\nF 5\nB 5\nB 4\nB 3\n", 0);
    tl_rows_desc rows_desc = { 0 };
    tl_rows_plan rows;
    tl_code_desc desc = { 0 };
    tl_code_figures figures;
    code_text text;
    uint64_t before = plan.arena_bytes;
    (void)state;
    if (write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 0, &text)) fail_msg("%s", env.error.text);
    assert_null(strstr(text.header.text, "N_FROZEN"));
    free_text(&text);
    tl_free_plan(NULL, &plan);
    assert_int_equal(tl_store_frozen(&env, &graph), TL_OK);
    plan = small_plan(&graph, "F 2\nF 4\nF 5\nB 5\nB 4\nB 3\n", 0);
    assert_int_equal(plan.arena_bytes, before - 20);
    if (write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 0, &text)) fail_msg("%s", env.error.text);
    must_hold(text.header.text, "#define N_FROZEN_BYTES 20\n");
    must_hold(text.header.text, "#define N_STORED_V_0_OFFSET 0\n#define N_STORED_V_0_BYTES 20\n");
    must_hold(text.header.text, "void n_conv_forward(int32_t node, void *out0, const void *in0, const void *in1);\n");
    must_hold(text.source.text, ", n_frozen);  // a: step 0\n");
    assert_null(strstr(text.source.text, ", n_frozen);  // b"));
    free_text(&text);
    tl_free_plan(NULL, &plan);
    rows_desc.graph = &graph;
    if (tl_plan_rows(&env, &rows_desc, &rows)) fail_msg("%s", env.error.text);
    assert_true(rows.member_count > 1);
    assert_int_equal(tl_plan_keep_all(&env, &rows.graph, 1, &plan), TL_OK);
    {
        tl_places_desc places = { 0 };
        places.graph = &rows.graph;
        assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
    }
    desc.name = "n";
    desc.form = TL_CODE_CALLS;
    desc.rows = &rows;
    desc.figures = &figures;
    if (write_code_text(&env, &graph, &plan, &desc, &text)) fail_msg("%s", env.error.text);
    assert_true(figures.constant_bytes == 20 && figures.ram_bytes == plan.arena_bytes && figures.bank_bytes == plan.arena_bytes);
    assert_true(figures.weight_bytes + figures.gradient_bytes + figures.state_bytes + figures.host_bytes == 0);
    must_hold(text.header.text, "extern const unsigned char n_weights[N_WEIGHTS_BYTES];");
    must_hold(text.header.text, "#define N_WEIGHTS_BYTES 20\n");
    must_hold(text.source.text, "{ n_weights, 0, 0 }");
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_rows_plan(NULL, &rows);
    tl_free_graph(NULL, &graph);
}

static void formats_lie_at_multiples_of_their_elements(void **state) {
    static const char *const formats[] = { "i8", "i16", "f32" };
    static const uint64_t offsets[] = { 1, 2, 4 };
    char model[256], sentence[128];
    code_text text;
    int i, k;
    (void)state;
    for (i = 0; i < 3; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        snprintf(model, sizeof model, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
                 "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0 format=%s keep\nend 2\n", formats[i]);
        graph = graph_of(model);
        plan = small_plan(&graph, "F 1\n", 1);
        for (k = 0; k < 3; k++) {
            tl_result result;
            ((uint64_t *)plan.offsets)[1] = 16 + offsets[k];
            plan.arena_bytes = 24 + offsets[k];
            result = write_code(&env, &graph, &plan, "n", TL_CODE_CALLS, 0, &text);
            assert_int_equal(result, offsets[k] < offsets[i] ? TL_ERROR_INVALID_ARG : TL_OK);
            snprintf(sentence, sizeof sentence, "a lies at %d, which is no multiple of the %d bytes of its format", (int)(16 + offsets[k]),
                     (int)offsets[i]);
            if (result) must_hold(env.error.text, sentence);
            free_text(&text);
        }
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

static void words_of_a_table_have_at_most_32_bits(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=8589934593 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=5 needs=none in=0\n"
                              "node 2 b op fwd=1 bwd=1 out=5 needs=none in=1 keep\n");
    tl_plan plan = small_plan(&graph, "F 1\nF 2\n", 1);
    code_text text;
    (void)state;
    assert_int_equal(write_code(&env, &graph, &plan, "n", TL_CODE_TABLE, 0, &text), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_write_plan_code: form: the words of a table of this plan do not fit 32 bits");
    assert_int_equal(write_code(&env, &graph, &plan, "n", TL_CODE_SMALLEST, 0, &text), TL_OK);
    must_hold(text.source.text, "n_op_forward(N_NODE_A, n_bank_0 + UINT64_C(8589934593), n_bank_0);  // a: step 0\n");
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void failing_sinks_and_allocators_are_reported(void **state) {
    tl_graph graph = graph_of(small);
    tl_plan plan = small_plan(&graph, "S 1\nF 2\nF 3\nB 3\nD 2\nD 1\nB 1\n", 0);
    tl_code_desc desc = { "n", TL_CODE_TABLE, 1, NULL, NULL, NULL, NULL };
    tl_env silent = silent_env();
    code_text text;
    failing_alloc failing;
    tl_result result = TL_ERROR_NO_MEMORY;
    long at, writes[2];
    int k;
    (void)state;
    assert_int_equal(write_code(&silent, &graph, &plan, "n", TL_CODE_TABLE, 1, &text), TL_OK);
    writes[0] = text.header.count;
    writes[1] = text.source.count;
    free_text(&text);
    for (k = 0; k < 2; k++)
        for (at = 0; at < writes[k]; at++) {
            tl_sink header = sink_of(&text.header, k ? -1 : at), source = sink_of(&text.source, k ? at : -1);
            assert_int_equal(tl_write_plan_code(&silent, &graph, &plan, &desc, header, source), TL_ERROR_DEVICE_LOST);
            assert_int_equal(text.header.after_failure + text.source.after_failure, 0);
            if (!k) assert_int_equal(text.source.count, 0);
            free_text(&text);
        }
    for (at = 0; result; at++) {
        tl_env env;
        memset(&failing, 0, sizeof failing);
        env = failing_env(&failing, at);
        result = write_code(&env, &graph, &plan, "n", TL_CODE_TABLE, 1, &text);
        assert_int_equal(failing.live, 0);
        assert_true(result == TL_OK || result == TL_ERROR_NO_MEMORY);
        if (result) assert_int_equal(text.header.count + text.source.count, 0);
    }
    assert_true(at > 20);
    free_text(&text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void every_code_form_has_a_name(void **state) {
    tl_code_form form;
    int i;
    (void)state;
    for (i = 0; i < TL_CODE_FORM_COUNT; i++) assert_true(tl_parse_code_form(tl_name_code_form((tl_code_form)i), &form) && (int)form == i);
    assert_false(tl_parse_code_form("?", &form));
    assert_string_equal(tl_name_code_form(TL_CODE_FORM_COUNT), "?");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_compute_what_the_executor_computes),
        cmocka_unit_test(a_program_reads_like_what_it_does),
        cmocka_unit_test(a_result_made_again_has_one_place),
        cmocka_unit_test(updates_of_pieces_have_what_is_beside_one),
        cmocka_unit_test(a_program_trains_in_pieces),
        cmocka_unit_test(bad_code_descs_are_refused),
        cmocka_unit_test(constants_are_of_the_user),
        cmocka_unit_test(constants_leave_no_holes),
        cmocka_unit_test(kernels_have_the_names_that_are_given),
        cmocka_unit_test(frozen_states_are_no_ram),
        cmocka_unit_test(formats_lie_at_multiples_of_their_elements),
        cmocka_unit_test(words_of_a_table_have_at_most_32_bits),
        cmocka_unit_test(failing_sinks_and_allocators_are_reported),
        cmocka_unit_test(every_code_form_has_a_name),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("5_code", tests, NULL, NULL);
}
