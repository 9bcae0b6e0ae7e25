// [5] PLAN: regions of rows written as C programs, compiled, run, and compared with an interpreter that has all tensors whole.
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/row_nets.h"
#include "support/sink_support.h"
#include "support/code_files.h"
#include "support/texts.h"
#include <unistd.h>

#define STRICT "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wswitch-default -Werror "

// -- helpers --

static tl_result write_code(tl_env *env, const tl_graph *graph, const tl_plan *plan, const char *name, tl_code_form form,
                            const tl_rows_plan *rows, code_text *text) {
    tl_code_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.form = form;
    desc.rows = rows;
    return write_code_text(env, graph, plan, &desc, text);
}

// Forwards of a graph with places, within so many live bytes; 0 = as many as there may be.
static void plan_forwards(tl_env *env, const tl_graph *graph, uint64_t budget, uint64_t alignment, tl_plan *plan) {
    tl_remat_desc desc;
    tl_places_desc places;
    tl_device device;
    memset(&desc, 0, sizeof desc);
    memset(&places, 0, sizeof places);
    memset(&device, 0, sizeof device);
    desc.graph = graph;
    desc.inference = 1;
    desc.budget_bytes = budget ? budget : UINT64_MAX / 4;
    desc.work_limit = 20000;
    if (tl_plan_remat(env, &desc, plan, NULL)) fail_msg("%s", env->error.text);
    device.alignment_bytes = alignment;
    places.graph = graph;
    places.device = &device;
    places.work_limit = 20000;
    if (tl_plan_places(env, &places, plan, NULL)) fail_msg("%s", env->error.text);
}

// -- what is expected --

static uint32_t note_call(uint32_t calls, int32_t node, uint64_t first, uint64_t count) {
    return mixed(mixed(mixed(calls, (uint32_t)node), (uint32_t)first), (uint32_t)count);
}

// The calls of a region, in the order of tli_next_row_call.
static uint32_t note_region(uint32_t calls, const row_net *n, const tl_rows_plan *rows, int32_t region) {
    uint64_t made[2 * MOST_NODES] = { 0 };
    int32_t first = rows->first_members[region];
    tli_row_walk walk;
    tli_row_call call;
    walk.graph = &n->graph;
    walk.members = rows->members + first;
    walk.links = rows->links;
    walk.made = made;
    walk.first = 0;
    walk.last = rows->first_members[region + 1] - first - 1;
    while (tli_next_row_call(&walk, &call)) {
        int32_t node = walk.members[call.member].node;
        uint64_t each = n->layers[node].takes_blocks ? n->layers[node].width : 1;
        calls = note_call(calls, node, call.first * each, call.count * each);
        made[call.member] += call.count;
    }
    return calls;
}

static uint32_t expect_calls(const row_net *n, const tl_rows_plan *rows, const tl_plan *plan) {
    uint32_t calls = 0;
    int32_t i, id;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        if (step->kind != TL_STEP_FORWARD && step->kind != TL_STEP_FORWARD_INPLACE) continue;
        if (rows->first_members[step->node] < rows->first_members[step->node + 1]) {
            calls = note_region(calls, n, rows, step->node);
            continue;
        }
        for (id = 0; rows->nodes[id] != step->node; id++) {}
        calls = note_call(calls, id, 0, n->layers[id].rows * (n->layers[id].takes_blocks ? n->layers[id].width : 1));
    }
    return calls;
}

static uint32_t expect_results(const row_net *n) {
    uint32_t sum = 1;
    int32_t id;
    uint64_t k;
    for (id = 0; id < n->count; id++)
        for (k = 0; n->graph.nodes[id].keep && k < n->layers[id].rows * n->layers[id].width; k++)
            sum = mixed(sum, n->layers[id].values[k]);
    return sum;
}

// -- the user's side of a program --

static void write_layers(FILE *out, const char *name, const row_net *n) {
    int32_t id, k;
    uint64_t i;
    for (id = 0; id < n->count; id++) {
        if (!n->layers[id].is_input) continue;
        fprintf(out, "static const uint32_t %s_values_%d[] = {", name, (int)id);
        for (i = 0; i < n->layers[id].rows * n->layers[id].width; i++) fprintf(out, " %uu,", (unsigned)n->layers[id].values[i]);
        fprintf(out, " };\n");
    }
    fprintf(out, "static const code_layer %s_layers[] = {\n", name);
    for (id = 0; id < n->count; id++) {
        const row_layer *l = &n->layers[id];
        fprintf(out, "    { %d, %d, %d, %d, { %d, %d, %d }, {", (int)l->rows, (int)l->width, (int)n->graph.nodes[id].fwork_bytes,
                (int)l->input_count, (int)l->inputs[0], (int)l->inputs[1], (int)l->inputs[2]);
        for (k = 0; k < MOST_INPUTS; k++)
            fprintf(out, " { %d, %d, %d, %d, %d },", (int)l->relations[k].kind, (int)l->relations[k].kernel, (int)l->relations[k].stride,
                    (int)l->relations[k].padding, (int)l->relations[k].dilation);
        if (l->is_input) fprintf(out, " }, %s_values_%d },\n", name, (int)id);
        else fprintf(out, " }, 0 },\n");
    }
    fprintf(out, "};\n");
}

static void write_results(FILE *out, const char *name, const row_net *n, const char *header) {
    int32_t id, count = 0;
    char text[64];
    fprintf(out, "static const code_result %s_results[] = {\n", name);
    for (id = 0; id < n->count; id++) {
        if (!n->graph.nodes[id].keep) continue;
        snprintf(text, sizeof text, "#define N%s_RESULT_N%d (", name + 1, (int)id);
        assert_non_null(strstr(header, text));
        fprintf(out, "    { %d, N%s_RESULT_N%d },\n", (int)id, name + 1, (int)id);
        count++;
    }
    fprintf(out, "};\nstatic code_net %s_net = { \"%s\", %s_layers, %s_results, %d, %s_run, 0, { 0 } };\n", name, name, name, name,
            (int)count, name);
}

// Resident inputs are loaded as a whole.
static void write_load(FILE *out, const char *name, const row_net *n, const char *header) {
    int32_t id;
    char text[64];
    fprintf(out, "void %s_load(int32_t micro_batch) {\n    (void)micro_batch;\n    %s_net.calls = 0;\n", name, name);
    for (id = 0; id < n->count; id++) {
        snprintf(text, sizeof text, "#define N%s_INPUT_N%d (", name + 1, (int)id);
        if (n->layers[id].is_input && strstr(header, text))
            fprintf(out, "    memcpy(N%s_INPUT_N%d, %s_values_%d, sizeof %s_values_%d);\n", name + 1, (int)id, name, (int)id, name, (int)id);
    }
    fprintf(out, "}\n");
}

// Define a kernel with the parameters that the header says.
static void write_kernel(FILE *out, const char *name, const char *op, const char *header) {
    char text[64], line[512];
    const char *at, *by_rows;
    int k;
    snprintf(text, sizeof text, "void %s_%s(", name, op);
    at = strstr(header, text);
    if (!at) return;
    snprintf(line, sizeof line, "%.*s", (int)(strchr(at, ';') - at), at);
    by_rows = strstr(line, "_operand *out0");
    fprintf(out, "%s {\n", line);
    if (!strcmp(op, "load_rows")) {
        fprintf(out, "    code_load_rows(&%s_net, node, %s_find, out0, first, count);\n}\n", name, name);
        return;
    }
    if (!strcmp(op, "elements_forward")) {
        assert_null(by_rows);
        fprintf(out, "    code_elements(&%s_net, node, out0, in0, %s);\n}\n", name, strstr(line, "int32_t first") ? "first, count" : "0, 0");
        return;
    }
    fprintf(out, "    const void *in[] = {");
    for (k = 0; k < 3; k++) {
        snprintf(text, sizeof text, "*in%d", k);
        fprintf(out, strstr(line, text) ? " in%d," : " 0,", k);
    }
    fprintf(out, " };\n    code_rows(&%s_net, node, %s%s, out0, in, %s, %s);\n}\n", name, by_rows ? name : "code_find_plain",
            by_rows ? "_find" : "", strstr(line, "*scratch") ? "scratch" : "0", by_rows ? "first, count" : "0, 0");
}

static void write_user(FILE *out, const char *name, const row_net *n, const char *header) {
    fprintf(out, "#include \"%s.c\"\n", name);
    write_layers(out, name, n);
    write_results(out, name, n, header);
    if (strstr(header, "_find_row"))
        fprintf(out, "static void *%s_find(const void *x, int32_t row, int32_t row_bytes) {\n"
                     "    return %s_find_row((const %s_operand *)x, row, row_bytes);\n}\n", name, name, name);
    write_load(out, name, n, header);
    write_kernel(out, name, "rows_op_forward", header);
    write_kernel(out, name, "elements_forward", header);
    write_kernel(out, name, "load_rows", header);
}

// -- random programs --

typedef struct row_counts { long regions, slots, streams, elements, blocks, calls, tables; } row_counts;

static void count_members(const row_net *n, const tl_rows_plan *rows, row_counts *counts) {
    int32_t k;
    counts->regions += rows->region_count;
    for (k = 0; k < rows->member_count; k++) {
        const tl_row_member *m = &rows->members[k];
        counts->slots += m->takes_slots > 0;
        counts->streams += n->layers[m->node].is_input;
        counts->elements += n->layers[m->node].takes_blocks;
        counts->blocks += m->block_rows > n->layers[m->node].unit;
    }
}

// The arena of the program is what the plan says, and is named so.
static void check_arena(tl_env *env, const tl_rows_plan *rows, const tl_plan *plan, const char *name, const char *header) {
    tl_simulate_desc simulate;
    tl_report report;
    char text[128];
    memset(&simulate, 0, sizeof simulate);
    simulate.graph = &rows->graph;
    simulate.plan = plan;
    assert_int_equal(tl_simulate_plan(env, &simulate, &report), TL_OK);
    snprintf(text, sizeof text, "#define N%s_BANK_0_BYTES %llu\n", name + 1, (unsigned long long)report.arena_bytes);
    if (!strstr(header, text)) fail_msg("no %s in %s", text, header);
}

static void plan_random_rows(tl_env *env, tl_random *random, const row_net *n, uint64_t alignment, tl_rows_plan *rows) {
    tl_rows_desc ask;
    memset(&ask, 0, sizeof ask);
    ask.graph = &n->graph;
    ask.alignment_bytes = alignment;
    if (random_chance(random, 50)) ask.in_slots = n->in_slots;
    if (tl_plan_rows(env, &ask, rows)) fail_msg("%s", env->error.text);
    if (!random_chance(random, 50)) return;
    ask.budget_bytes = rows->peak_bytes + tl_next_random_below(random, rows->whole_bytes + 1);
    tl_free_rows_plan(env, rows);
    if (tl_plan_rows(env, &ask, rows)) fail_msg("%s", env->error.text);
}

// A net with regions, which for every other program take slots or elements, if one of a hundred does.
static void plan_random_net(tl_env *env, tl_random *random, int number, uint64_t alignment, row_net *n, tl_rows_plan *rows) {
    int tries;
    for (tries = 0;; tries++) {
        row_counts counts;
        memset(&counts, 0, sizeof counts);
        random_row_net(n, tl_next_random(random), MOST_NODES);
        plan_random_rows(env, random, n, alignment, rows);
        count_members(n, rows, &counts);
        if (tries == 100 || (counts.regions && (number % 2 || (number % 4 ? counts.slots : counts.elements)))) return;
        tl_free_rows_plan(env, rows);
        tl_free_graph(env, &n->graph);
    }
}

static void add_program(tl_random *random, int number, const char *dir, FILE *users, FILE *all, char *expected, row_counts *counts) {
    static row_net n;
    tl_env env = silent_env();
    uint64_t alignment = UINT64_C(4) << random_count(random, 0, 3);
    tl_rows_plan rows;
    tl_plan plan;
    code_text text;
    char name[16];
    plan_random_net(&env, random, number, alignment, &n, &rows);
    plan_forwards(&env, &rows.graph, random_chance(random, 50) ? 2 * rows.peak_bytes : 0, alignment, &plan);
    snprintf(name, sizeof name, "n%d", number);
    if (write_code(&env, &n.graph, &plan, name, (tl_code_form)(number % 3), &rows, &text)) fail_msg("net %d: %s", number, env.error.text);
    save_text(dir, name, ".h", text.header.text);
    save_text(dir, name, ".c", text.source.text);
    write_user(users, name, &n, text.header.text);
    fprintf(all, "#include \"%s.c\"\n", name);
    check_arena(&env, &rows, &plan, name, text.header.text);
    snprintf(expected, 64, "n%d %08x %08x\n", number, (unsigned)expect_calls(&n, &rows, &plan), (unsigned)expect_results(&n));
    count_members(&n, &rows, counts);
    counts->tables += strstr(text.source.text, "_rows[]") != NULL;
    free_text(&text);
    tl_free_plan(&env, &plan);
    tl_free_rows_plan(&env, &rows);
    tl_free_graph(&env, &n.graph);
}

// The generated sources alone: they compile clean everywhere, and call nothing but memset and what their headers declare.
static void compile_alone(const char *dir) {
    static const char *const compilers[] = { "gcc", "clang", "arm-none-eabi-gcc" };
    char command[1024], line[256];
    FILE *symbols;
    size_t k;
    for (k = 0; k < 3; k++) {
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
            if (strcmp(name, " memset") && !strstr(name, "_forward") && !strstr(name, "_load") && !strstr(name, "_GLOBAL_OFFSET_TABLE_") &&
                strncmp(name, " __aeabi_", 9))  // how the compiler divides
                fail_msg("a program calls%s", name);
        }
        assert_int_equal(pclose(symbols), 0);
    }
}

static void run_batch(const char *dir, int count, char expected[][64], const char *compiler) {
    char command[1024], line[128];
    FILE *out;
    int i;
    snprintf(command, sizeof command, "%s -std=c99 -O0 -Wall -Wextra -Wno-unused-function -Wno-unused-parameter -fsanitize=address,undefined -fno-sanitize-recover=all "
             "-I. -I%s -o %s/program %s/users.c", compiler, dir, dir, dir);
    must_run(command);
    snprintf(command, sizeof command, "%s/program 2>&1", dir);
    out = popen(command, "r");
    assert_non_null(out);
    for (i = 0; i < count; i++) {
        if (!fgets(line, sizeof line, out)) fail_msg("the program ended before %s", expected[i]);
        if (strcmp(line, expected[i])) fail_msg("expected %snot      %s", expected[i], line);
    }
    assert_int_equal(pclose(out), 0);
}

static void programs_call_and_compute_what_runs_do(void **state) {
    enum { BATCH = 50 };
    tl_random random = { 4141 };
    char dir[] = "/tmp/tl_code_rows_XXXXXX", command[64], expected[BATCH][64];
    row_counts counts;
    int number = 0, rounds = scaled(100), i;
    (void)state;
    memset(&counts, 0, sizeof counts);
    assert_non_null(mkdtemp(dir));
    while (number < rounds) {
        FILE *users = open_text(dir, "users", ".c"), *all = open_text(dir, "all", ".c");
        int first = number;
        fprintf(users, "#include \"tests/support/code_rows_program.h\"\n");
        for (i = 0; i < BATCH; i++) add_program(&random, number++, dir, users, all, expected[i], &counts);
        fprintf(users, "int main(void) {\n");
        for (i = first; i < number; i++) fprintf(users, "    code_run(&n%d_net);\n", i);
        fprintf(users, "    return 0;\n}\n");
        assert_int_equal(fclose(users), 0);
        assert_int_equal(fclose(all), 0);
        if (!first) compile_alone(dir);
        run_batch(dir, BATCH, expected, first / BATCH % 2 && has_program("clang") ? "clang" : "cc");
    }
    print_message("%d programs: %ld regions, %ld members in slots, %ld streams, %ld for elements, %ld in larger calls, %ld as tables\n",
                  number, counts.regions, counts.slots, counts.streams, counts.elements, counts.blocks, counts.tables);
    assert_true(counts.regions > number / 2 && counts.slots > number / 5 && counts.streams > number / 5 && counts.elements > number / 5);
    assert_true(counts.blocks > number / 5 && counts.tables > number / 4);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    must_run(command);
}

// -- the text --

typedef struct small_rows { tl_graph graph; tl_rows_plan rows; tl_plan plan; } small_rows;

static void free_small(tl_env *env, small_rows *s) {
    tl_free_plan(env, &s->plan);
    tl_free_rows_plan(env, &s->rows);
    tl_free_graph(env, &s->graph);
}

static void a_region_reads_like_what_it_does(void **state) {
    static const char net[] =
        "tlg 2\nnode 0 image input fwd=0 bwd=0 out=1024 needs=none in=- rows=16@0 fixed stream\n"
        "node 1 a conv fwd=9 bwd=0 out=1024 needs=none in=0 grad=no rows=16@0 rin=3/1/1 fixed param=100 fwork=64\n"
        "node 2 b conv fwd=9 bwd=0 out=512 needs=none in=1 grad=no rows=8@0 rin=3/2/1 fixed param=36\n"
        "node 3 c head fwd=9 bwd=0 out=8 needs=none in=2 grad=no keep fixed param=8\nend 4\n";
    static const char *const in_header[] = {
        "#define NET_BANK_0_BYTES 904\n", "#define NET_WEIGHT_B_OFFSET 104\n", "#define NET_NODE_B 2\n", "#define NET_RESULT_C (",
        "void net_load_rows(int32_t node, const net_operand *out0, int32_t first, int32_t count);\n",
        ("void net_conv_forward(int32_t node, const net_operand *out0, const net_operand *in0, const void *weight, void *scratch, "
         "int32_t first, int32_t count);\n"),
        "void net_head_forward(int32_t node, void *out0, const void *in0, const void *weight);\n" };
    static const char *const in_source[] = {
        "typedef int16_t net_number;\n", "    { 0, 1, 2 },\n    { 1, 2, 2 },\n    { 0, 0, 0 }\n",
        ("    { net_bank_0 + 512, 3, 64 },\n    { net_bank_0 + 704, 3, 64 },\n    { net_bank_0 + 512, 3, 64 },\n"
        "    { net_weights, 0, 0 },\n    { net_bank_0 + 896, 0, 0 },\n    { net_bank_0, 0, 0 },\n"
        "    { net_bank_0 + 704, 3, 64 },\n    { net_weights + 104, 0, 0 },\n    { NULL, 0, 0 },\n"),
        "    { 1, 0, 16, 1, 1, 0, 0, 0 },  // image\n    { 0, 1, 16, 1, 1, 0, 0, 1 },  // a\n    { 0, 2, 8, 1, 1, 1, 1, 5 },  // b\n",
        ("    case 0: net_conv_forward(m->node, &to[0], &to[1], to[2].at, to[3].at, first * m->unit, count * m->unit); break;\n"
        "    case 1: net_load_rows(m->node, &to[0], first, count); break;\n"),
        "        net_make_rows(0);  // b: step 0\n        net_head_forward(NET_NODE_C, net_bank_0 + 512, net_bank_0, net_weights + 144);  // c: step 1\n" };
    tl_env env = silent_env();
    tl_rows_desc ask;
    small_rows s;
    code_text text;
    size_t k;
    (void)state;
    memset(&ask, 0, sizeof ask);
    s.graph = graph_of(net);
    ask.graph = &s.graph;
    ask.alignment_bytes = 8;
    assert_int_equal(tl_plan_rows(&env, &ask, &s.rows), TL_OK);
    plan_forwards(&env, &s.rows.graph, 0, 8, &s.plan);
    assert_int_equal(write_code(&env, &s.graph, &s.plan, "net", TL_CODE_CALLS, &s.rows, &text), TL_OK);
    for (k = 0; k < sizeof in_header / sizeof *in_header; k++)
        if (!strstr(text.header.text, in_header[k])) fail_msg("no %s in\n%s", in_header[k], text.header.text);
    for (k = 0; k < sizeof in_source / sizeof *in_source; k++)
        if (!strstr(text.source.text, in_source[k])) fail_msg("no %s in\n%s", in_source[k], text.source.text);
    free_text(&text);
    free_small(&env, &s);
}

// Each member of a region has its own constants, behind all weights; who has none gets none.
static void members_have_their_constants(void **state) {
    static const char net[] =
        "tlg 2\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=- rows=16@0 fixed\n"
        "node 1 a conv fwd=9 bwd=0 out=256 needs=none in=0 grad=no rows=16@0 rin=3/1/1 fixed param=100 stored=400:i8,12:i32\n"
        "node 2 b conv fwd=9 bwd=0 out=256 needs=none in=1 grad=no rows=16@0 rin=3/1/1 fixed\n"
        "node 3 c conv fwd=9 bwd=0 out=256 needs=none in=2 grad=no keep rows=16@0 rin=3/1/1 fixed stored=8:i32,24:i8\nend 4\n";
    static const char *const in_source[] = {
        "    { net_weights, 0, 0 },\n    { net_weights + 104, 0, 0 },\n    { net_weights + 504, 0, 0 },\n",
        "    { NULL, 0, 0 },\n    { NULL, 0, 0 },\n    { NULL, 0, 0 },\n",
        "    { NULL, 0, 0 },\n    { net_weights + 516, 0, 0 },\n    { net_weights + 524, 0, 0 },\n" };
    tl_env env = silent_env();
    tl_rows_desc ask;
    small_rows s;
    code_text text;
    size_t k;
    (void)state;
    memset(&ask, 0, sizeof ask);
    s.graph = graph_of(net);
    ask.graph = &s.graph;
    ask.alignment_bytes = 8;
    assert_int_equal(tl_plan_rows(&env, &ask, &s.rows), TL_OK);
    assert_int_equal(s.rows.region_count, 1);
    plan_forwards(&env, &s.rows.graph, 0, 8, &s.plan);
    assert_int_equal(write_code(&env, &s.graph, &s.plan, "net", TL_CODE_CALLS, &s.rows, &text), TL_OK);
    for (k = 0; k < sizeof in_source / sizeof *in_source; k++)
        if (!strstr(text.source.text, in_source[k])) fail_msg("no %s in\n%s", in_source[k], text.source.text);
    free_text(&text);
    free_small(&env, &s);
}

// -- refusals --

static const char small_net[] =
    "tlg 2\nnode 0 x input fwd=0 bwd=0 out=256 needs=none in=- rows=16@0 fixed\n"
    "node 1 a conv fwd=9 bwd=0 out=256 needs=none in=0 grad=no rows=16@0 rin=3/1/1 fixed\n"
    "node 2 b %s fwd=9 bwd=0 out=256 needs=none in=1 grad=no fixed %s\n"
    "node 3 c conv fwd=9 bwd=0 out=256 needs=none in=2 grad=no keep rows=16@0 rin=3/1/1 fixed\nend 4\n";

static void plan_small(tl_env *env, const char *op, const char *more, small_rows *s) {
    tl_rows_desc ask;
    char text[1024];
    snprintf(text, sizeof text, small_net, op, more);
    s->graph = graph_of(text);
    memset(&ask, 0, sizeof ask);
    ask.graph = &s->graph;
    ask.alignment_bytes = 8;
    if (tl_plan_rows(env, &ask, &s->rows)) fail_msg("%s", env->error.text);
    assert_int_equal(s->rows.region_count, 1);
    plan_forwards(env, &s->rows.graph, 0, 8, &s->plan);
}

static void refused(tl_env *env, const small_rows *s, tl_result code, const char *sentence) {
    code_text text;
    assert_int_equal(write_code(env, &s->graph, &s->plan, "net", TL_CODE_SMALLEST, &s->rows, &text), code);
    assert_string_equal(env->error.text, sentence);
    assert_null(text.header.text);
    free_text(&text);
}

static void rows_that_cannot_be_written_are_refused(void **state) {
    tl_env env = silent_env();
    const char *other = "tl_write_plan_code: rows: not made of the graph, or for less than the alignment of the plan";
    small_rows s;
    tl_graph graph;
    tl_row_member *member;
    static const tl_row_turn turn = { 0, 0, 0, 0 };
    (void)state;
    plan_small(&env, "conv", "takes_blocks", &s);
    refused(&env, &s, TL_ERROR_UNSUPPORTED, "tl_write_plan_code: node 2 (b): nodes of one op are called for rows, and for elements");
    free_small(&env, &s);
    plan_small(&env, "relu", "takes_blocks", &s);
    graph = s.graph;
    s.graph = s.rows.graph;
    refused(&env, &s, TL_ERROR_INVALID_ARG, other);
    s.graph = graph;
    s.plan.alignment_bytes = 1024;
    refused(&env, &s, TL_ERROR_INVALID_ARG, other);
    s.plan.alignment_bytes = 8;
    member = (tl_row_member *)(uintptr_t)&s.rows.members[0];
    member->ring_rows++;
    member->ring_offset += UINT64_C(1) << 40;
    refused(&env, &s, TL_ERROR_INVALID_ARG, other);
    member->ring_rows--;
    member->ring_offset -= UINT64_C(1) << 40;
    s.plan.inference = 0;
    refused(&env, &s, TL_ERROR_INVALID_ARG, "tl_write_plan_code: rows: go with plans of forwards alone, without slots");
    s.plan.inference = 1;
    s.rows.turns = &turn;
    refused(&env, &s, TL_ERROR_INVALID_ARG, "tl_write_plan_code: rows: those of tl_cut_rows have no code");
    s.rows.turns = NULL;
    free_small(&env, &s);
}

static void numbers_of_a_region_fit_28_bits(void **state) {
    static const char text[] =
        "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8589934592 needs=none in=- rows=2@0 fixed\n"
        "node 1 a conv fwd=9 bwd=0 out=8589934592 needs=none in=0 grad=no rows=2@0 rin=1:1 fixed\n"
        "node 2 b conv fwd=9 bwd=0 out=64 needs=none in=1 grad=no keep rows=2@0 rin=1:1 fixed\nend 3\n";
    tl_env env = silent_env();
    tl_rows_desc ask;
    small_rows s;
    (void)state;
    memset(&ask, 0, sizeof ask);
    s.graph = graph_of(text);
    ask.graph = &s.graph;
    assert_int_equal(tl_plan_rows(&env, &ask, &s.rows), TL_OK);
    assert_int_equal(s.rows.region_count, 1);
    plan_forwards(&env, &s.rows.graph, 0, 1, &s.plan);
    refused(&env, &s, TL_ERROR_UNSUPPORTED, "tl_write_plan_code: node 2 (b): rows: a number of a region does not fit 28 bits");
    free_small(&env, &s);
}

static void each_allocation_and_write_that_fails_is_reported(void **state) {
    tl_env env = silent_env();
    small_rows s;
    long at;
    (void)state;
    plan_small(&env, "relu", "takes_blocks", &s);
    for (at = 0;; at++) {
        failing_alloc f;
        tl_env failing;
        code_text text;
        tl_result result;
        memset(&f, 0, sizeof f);
        failing = failing_env(&f, at);
        result = write_code(&failing, &s.graph, &s.plan, "net", TL_CODE_CALLS, &s.rows, &text);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        assert_int_equal(f.live, 0);
        free_text(&text);
        if (f.count <= at) break;
    }
    assert_true(at > 15);
    free_small(&env, &s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_call_and_compute_what_runs_do),
        cmocka_unit_test(a_region_reads_like_what_it_does),
        cmocka_unit_test(members_have_their_constants),
        cmocka_unit_test(rows_that_cannot_be_written_are_refused),
        cmocka_unit_test(numbers_of_a_region_fit_28_bits),
        cmocka_unit_test(each_allocation_and_write_that_fails_is_reported),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
