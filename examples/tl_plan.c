// tl_plan.c -- plan any graph within a byte budget, from the command line
//
// You learn: what the planner finds for a model of yours before a line of it is written against
// this library. A model is a .tlg file: one line a node with its bytes and costs. It prints what
// keeping everything takes, what the plan takes, what it costs, and what no plan undercuts; it
// writes the schedule, JSON, pictures and the curve of memory against cost. Asked for it, it chooses
// a precision for each node first, or compiles a strategy: the split of the batch, fused chains, formats
// and the plan at once; or it splits the model over several ranks, as a pipeline or otherwise. Read next: 01,
// where such a plan trains a network.
//
// check: examples/residual.tlg --budget 55% --explain
//
//     mkdir -p build && cc -O3 -o build/tl_plan examples/tl_plan.c
//     build/tl_plan examples/residual.tlg --pareto --html build/residual.html
//     build/tl_plan examples/residual.tlg --precision loss=0.01,training --budget 50%
//     build/tl_plan examples/residual.tlg --compile --split --loss 0.01 --budget 50%
//     build/tl_plan examples/residual.tlg --ranks 4 --link 25GB/s --svg build/ranks.svg
//
// CONTENTS       (search for "// -- ")
//                output    numbers    options    files    model    host    planning    lifetimes    report
//                writing    json    explanation    curve    picture of the curve    pages    profiles
//                precision    front    compiling    ranks    main

#define _XOPEN_SOURCE 700  // NOLINT: reserved for this; clock_gettime, isatty, realpath

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

enum { CODE_OK = 0, CODE_INPUT = 1, CODE_INFEASIBLE = 2 };

enum { POINT_LIMIT = 40 };                    // budgets on a curve
static const uint64_t curve_work = 30000000;  // steps of work for each at most, where --work says nothing

typedef unsigned long long ull;

// Print one sentence; returns the code, for `return fail(...)`.
static int fail(int code, const char *format, ...) {
    va_list list;
    fflush(stdout);
    fprintf(stderr, "tl_plan: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return code;
}

// The sentence of an env without the function, and without the argument where it is a path.
static const char *reason_of(const tl_env *env) {
    const char *text = env->error.text, *rule = strstr(text, ": ");
    if (strncmp(text, "tl_", 3) == 0 && rule) text = rule + 2;
    return strncmp(text, "path: ", 6) == 0 ? text + 6 : text;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    interrupted = 1;
    signal(number, SIG_DFL);  // a second Ctrl-C ends the program at once
}

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// -- output --

enum { PATH_SIZE = 4096 };

// Text on its way to a file; after a failure nothing more is sent.
typedef struct writer {
    tl_sink     sink;
    FILE       *file;
    const char *path;             // as it was given; - is standard output
    tl_file_sink target;          // unless it is standard output
    int         reason;           // errno of the first failure
    tl_result   result;
} writer;

static tl_result write_file(void *user, const char *text, size_t length) {
    writer *w = (writer *)user;
    if (fwrite(text, 1, length, w->file) == length) return TL_OK;
    w->reason = errno;
    return TL_ERROR_IO;
}

static void put_text(writer *w, const char *text, size_t length) {
    if (!w->result && length) w->result = w->sink.write(w->sink.user, text, length);
}

static void put(writer *w, const char *format, ...) {
    char text[1024];
    va_list list;
    int length;
    va_start(list, format);
    length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (length > 0) put_text(w, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void put_lines(writer *w, const char *const *lines, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        put_text(w, lines[i], strlen(lines[i]));
        put_text(w, "\n", 1);
    }
}

// Length of the UTF-8 character at text, 0 where it is none.
static int utf8_length(const char *text) {
    unsigned char c = (unsigned char)text[0];
    int length = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0, i;
    for (i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) return 0;
    return length;
}

// A string of JSON, which is one of JavaScript inside a page, too: no < that could end a script.
static void put_json_text(writer *w, const char *text) {
    put(w, "\"");
    while (*text) {
        int length = utf8_length(text);
        unsigned char c = (unsigned char)*text;
        if (!length) put(w, "\\ufffd");
        else if (c == '"' || c == '\\') put(w, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7F) put(w, "\\u%04x", c);
        else put_text(w, text, (size_t)length);
        text += length ? length : 1;
    }
    put(w, "\"");
}

// Text between tags and in attributes.
static void put_markup(writer *w, const char *text) {
    while (*text) {
        int length = utf8_length(text);
        unsigned char c = (unsigned char)*text;
        if (!length || (c < 0x20 && c != '\t')) put(w, "?");
        else if (c == '<' || c == '>' || c == '&' || c == '"') put(w, "&#%d;", c);
        else put_text(w, text, (size_t)length);
        text += length ? length : 1;
    }
}

// -- numbers --

// floor(digits . fraction x unit), exact whatever the number of digits; 0 where 64 bits do not hold it.
static int scale_decimal(const char *whole, size_t whole_length, const char *fraction, size_t fraction_length,
                         uint64_t unit, uint64_t *value) {
    uint64_t rest = 0, number = 0;
    size_t i;
    for (i = fraction_length; i-- > 0;) {
        // (digit x unit + rest) / 10, without the product
        uint64_t digit = (uint64_t)(fraction[i] - '0');
        rest = digit * (unit / 10) + rest / 10 + (digit * (unit % 10) + rest % 10) / 10;
    }
    for (i = 0; i < whole_length; i++) {
        uint64_t digit = (uint64_t)(whole[i] - '0');
        if (number > (UINT64_MAX - digit) / 10) return 0;
        number = number * 10 + digit;
    }
    if (unit && number > (UINT64_MAX - rest) / unit) return 0;
    *value = number * unit + rest;
    return 1;
}

typedef struct decimal {
    const char *whole, *fraction, *suffix;  // the digits before and behind the point, what follows
    size_t      whole_length, fraction_length;
} decimal;

// 1 = the text begins with a number that is not negative.
static int read_decimal(const char *text, decimal *d) {
    d->whole = text;
    while (*text >= '0' && *text <= '9') text++;
    d->whole_length = (size_t)(text - d->whole);
    d->fraction = text;
    d->fraction_length = 0;
    if (*text == '.') {
        d->fraction = ++text;
        while (*text >= '0' && *text <= '9') text++;
        d->fraction_length = (size_t)(text - d->fraction);
    }
    d->suffix = text;
    return d->whole_length || d->fraction_length;
}

// Bytes that a suffix stands for; 0 = unknown.
static uint64_t unit_of(const char *suffix) {
    static const char *const names[] = { "", "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB",
                                         "K", "M", "G" };    // these as linkers have them
    static const uint64_t units[] = { 1, 1, 1000, 1000, 1000000, 1000000000, 1000000000000u,
                                      1024, 1048576, 1073741824, 1099511627776u, 1024, 1048576, 1073741824 };
    size_t i;
    for (i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(suffix, names[i]) == 0) return units[i];
    return 0;
}

// Bytes like 512MiB, 1.5GB, 1000000, or a share like 60% of `whole`.
static int parse_bytes(const char *option, const char *text, uint64_t whole, uint64_t *bytes) {
    decimal d;
    char shifted[512];
    uint64_t unit;
    *bytes = 0;
    if (!read_decimal(text, &d) || (strcmp(d.suffix, "%") != 0 && !unit_of(d.suffix)))
        return fail(CODE_INPUT,
                    "%s %s: must be bytes like 512MiB, 1.5GB or 1000000 "
                    "(B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; K, M and G are KiB, MiB and GiB), or a share of the keep-all peak like 60%%",
                    option, text);
    unit = unit_of(d.suffix);
    if (!unit) {  // the point two places to the left: 5% is 0.05
        size_t cut = d.whole_length > 2 ? d.whole_length - 2 : 0, zeros = 2 - (d.whole_length - cut);
        if (d.whole_length + d.fraction_length + 2 >= sizeof shifted)
            return fail(CODE_INPUT, "%s: the number has more than %d digits", option, (int)sizeof shifted - 3);
        memset(shifted, '0', zeros);
        memcpy(shifted + zeros, d.whole + cut, d.whole_length - cut);
        memcpy(shifted + 2, d.fraction, d.fraction_length);
        d.whole_length = cut;
        d.fraction = shifted;
        d.fraction_length += 2;
        unit = whole;
    }
    if (!scale_decimal(d.whole, d.whole_length, d.fraction, d.fraction_length, unit, bytes))
        return fail(CODE_INPUT, "%s %s: does not fit 64 bits", option, text);
    if (!*bytes) return fail(CODE_INPUT, "%s %s: must be at least 1 byte", option, text);
    return CODE_OK;
}

// A number before a suffix that ends with `end`, the rest of which is one of bytes: 12GB/s, 10TFLOPS.
static int parse_rate(const char *option, const char *text, const char *plain, const char *end,
                      uint64_t *rate) {
    decimal d;
    char suffix[16];
    int known = read_decimal(text, &d);
    size_t length = strlen(d.suffix), cut = strlen(end);
    uint64_t unit = 0;
    if (known && length < sizeof suffix && length > cut && strcmp(d.suffix + length - cut, end) == 0) {
        snprintf(suffix, sizeof suffix, "%.*s%s", (int)(length - cut), d.suffix, end[0] == '/' ? "" : "B");
        unit = suffix[0] ? unit_of(suffix) : 0;
    }
    if (known && !length && plain[0]) unit = unit_of(plain);
    if (!unit)
        return fail(CODE_INPUT, "%s %s: must be a speed like 12%s%s", option, text, plain[0] ? "GB" : "T",
                    end);
    if (!scale_decimal(d.whole, d.whole_length, d.fraction, d.fraction_length, unit, rate))
        return fail(CODE_INPUT, "%s %s: does not fit 64 bits", option, text);
    return *rate ? CODE_OK : fail(CODE_INPUT, "%s %s: must be at least 1 a second", option, text);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// A whole number above 0. 1 = it is one.
static int read_count(const char *text, uint64_t *count) {
    decimal d;
    return read_decimal(text, &d) && d.whole_length && d.suffix == text + d.whole_length && !*d.suffix &&
           scale_decimal(d.whole, d.whole_length, NULL, 0, 1, count) && *count;
}

enum { MOST_ALIGNMENT = 1 << 20, CODE_ALIGNMENT = 8 };    // the second: of the widest type of C99
enum { CODE_FILES = 5, OUTPUT_FILES = 12 };     // that --c-code writes at most; that all options write at most

static int parse_count(const char *option, const char *text, uint64_t *count) {
    if (read_count(text, count)) return CODE_OK;
    return fail(CODE_INPUT, "%s %s: must be a whole number from 1 to 18446744073709551615", option, text);
}

static int parse_alignment(const char *text, uint64_t *alignment) {
    if (read_count(text, alignment) && *alignment <= MOST_ALIGNMENT && !(*alignment & (*alignment - 1))) return CODE_OK;
    return fail(CODE_INPUT, "--align %s: must be a power of two from 1 to 1048576", text);
}

// Bytes as people read them: 1.50 GiB.
typedef struct label { char text[48]; } label;

static label bytes_label(uint64_t bytes) {
    static const char *const names[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    label l;
    double value = (double)bytes;
    int k = 0;
    while (value >= 1023.995 && k < 6) { value /= 1024; k++; }
    snprintf(l.text, sizeof l.text, k ? "%.2f %s" : "%.0f %s", value, names[k]);
    return l;
}

static double ratio_of(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : part ? (double)part : 1.0;
}

// How far above the bound a cost is at most: 0.01 = 1 %. Below 0 where no bound is known.
static double gap_of(uint64_t cost, uint64_t bound) {
    return cost == bound ? 0.0 : bound ? (double)(cost - bound) / (double)bound : -1.0;
}

static label gap_label(uint64_t cost, uint64_t bound) {
    label l;
    double gap = gap_of(cost, bound);
    if (cost == bound) snprintf(l.text, sizeof l.text, "optimal");
    else if (gap < 0) snprintf(l.text, sizeof l.text, "not known");
    else snprintf(l.text, sizeof l.text, gap < 5e-5 ? "%.6f %%" : "%.2f %%", 100 * gap);
    return l;
}

// -- options --

typedef struct options {
    const char *model;
    const char *budget, *host_budget, *link, *codec, *codec_rate, *cost_unit, *policy, *form, *work, *seed;
    int compact, no_names;
    const char *schedule, *json, *c_table, *svg, *html, *lifetimes, *places;
    const char *c_code, *c_form, *folder, *states, *batches;
    const char *optimizer, *updates, *update_rate, *pieces, *piece_cost, *slots;
    const char *code_header, *code_source;    // files of --c-code
    const char *weights, *ranges, *kernels;   // of a network, and what of it is written
    const char *code_constants, *code_scales, *code_kernels;    // files of these
    const char *align, *name, *block, *in_flight;
    const char *banks[TL_MOST_BANKS];
    int         bank_count;
    const char *precision, *profiles;
    const char *loss;
    const char *ram, *flash, *minimize;       // limits, with --loss
    const char *ranks, *chunks;
    int         rows, inference, pareto, explain, front, default_profiles, live, order, compile, split, recommend;
    int         data, automatic, gpipe;       // of --ranks
    int         clip, inputs_die;
} options;

static char policy_names[128] = "                   ";  // of those that make plans: list_policies

static const char *const usage[] = {
    "tl_plan: plan a graph within a byte budget: what to keep, what to drop and make again",
    "",
    "  tl_plan MODEL.tlg --budget BYTES|PERCENT [options]     one plan",
    "  tl_plan MODEL.tlg --pareto [options]                   the curve of memory against cost",
    "  tl_plan MODEL.tlg                                      what keeping everything takes",
    "  tl_plan MODEL.tlg --precision HOW [--budget B]         a precision for each node, then a plan",
    "  tl_plan MODEL.tlg --front                              loss against time: all such choices",
    "  tl_plan MODEL.tlg --compile [--budget B] [options]     split, fusion, formats, plan: all at once",
    "  tl_plan MODEL.tlg --ranks N [--budget B] [options]     a plan for each of several workers",
    "",
    "MODEL is .tlg text, one line a node with its bytes and costs; - reads it from standard input.",
    "",
    "  --budget B        most bytes of the arena that holds everything: 512MiB, 1.5GB, 1000000; or 60%,",
    "                    of the largest sum of live bytes where everything is kept, in MODEL as it is,",
    "                    before --precision changes it. Weights and optimizer state are beside it",
    "  --live            the budget binds the sum of live bytes instead, as papers do (so does --pareto",
    "                    without --align)",
    "  --inference       forward only: results are resident at the end",
    "  --host-budget B   tensors may be copied to the host, so many bytes of them at a time (% as above)",
    "  --link RATE       speed of these copies, or of messages, one way: 12 or 12GB/s, 800MB/s, 11GiB/s",
    "  --codec C         tensors may wait compressed for backward: f16, bf16 or q8; results stay exact",
    "  --codec-rate RATE speed of the conversions, of f32 bytes; without it they take no time",
    "  --cost-unit U     what 1 unit of the model's costs is, beside copies and memory=: ns, us, ms, or",
    "                    FLOP at a speed, flop@2.5TFLOPS (flop@10TFLOPS). Of a unit above 1 ns, costs are",
    "                    planned and told in ns or finer, since waits for copies are in whole units",
    "  --policy NAME     the plan of a rule instead, the cheapest that it has under the budget:",
    policy_names,
    "  --order           forwards in the order that takes the least bytes, each run once, instead of",
    "                    dropping and making again; what keeping everything takes in the listing's order",
    "                    is shown beside it",
    "  --form NAME       what the plan may do: any (default), or once: each node again at most once, and",
    "                    only after the first pass, as PyTorch's partitioner can carry it out",
    "  --work N          elementary steps of work, a few ns each, of all parts together (until plans",
    "                    within 0.1 % of the bound get no cheaper, at most 700 million; with --pareto",
    "                    at most 30 million for each budget). One N gives one plan, on every machine",
    "  --seed N          other random numbers for the search: where the bound is not reached, it finds",
    "                    another plan, of which none is better for sure. One N gives one plan",
    "  --align N         offsets in the arena are multiples of N, a power of two (1; with --c-code 8,",
    "                    which is enough for every type of C)",
    "  --bank B[:PRICE]  once for each memory of the device, up to 8: its bytes, or any for no limit, and",
    "                    the price of a byte moved to or from it (1 for the first, 2 for the next, ..).",
    "                    What steps move most, for its bytes and time, lives in the cheapest; --budget",
    "                    binds what all of them take, and where each has a limit, so does their sum",
    "  --block B         the arena, of each bank and of the host, is cut into blocks of at most so many",
    "                    bytes, as where a device has a largest allocation; no tensor is in two of them",
    "  --in-flight K     up to K steps that do not depend on each other may be under way together: what a",
    "                    step frees is taken again from the K-th step behind it on (1: by the next)",
    "  --explain         what makes the peak, what the next MiB would buy, what is made again and why",
    "  --pareto          plan at budgets between the least possible and keep all, chosen where",
    "                    the curve is least known; a table with the certified bound of each",
    "",
    "  --precision HOW   how each node computes and stores: f32, f16, bf16, i16, i8, i8-channel, w8a16,",
    "                    dynamic, fake, w4a8; conversions between them are priced. For inference, unless",
    "                    HOW says training. What else is asked for is planned on the graph that results.",
    "                    HOW is words with commas between:",
    "      loss=0.01       least time at which losses of all nodes sum to so much at most; any: no limit",
    "      speedup=2       least loss at which f32 takes twice as long; with loss= least time within both",
    "      balanced        the knee between the two; balanced=0.7: time weighs 0.7, loss 0.3",
    "      objective=bytes fewest bytes of weights and tensors, instead of time",
    "      schemes=f32+i8  only these may be chosen; else all but fake and w4a8",
    "      training        backward costs count; f32, f16 and bf16 may be chosen",
    "      sensitive       below 16 bits, too, where a profile says that this op is sensitive",
    "      unknown         ops without a profile may leave f32",
    "      any-result      results need not be converted back to f32",
    "      inputs=i8       you write graph inputs in this format, of f32, f16, bf16, i16 and i8; with",
    "                      inputs=f32+i8 in one of these. An input with format=i8 in the .tlg, whose",
    "                      out= are bytes of i8, has that one without being asked for",
    "      f16-fits        in training: the range of f16 holds tensors and gradients; else bf16 alone",
    "      memory=900GB/s  conversions take what moving their bytes takes, see --cost-unit; else what",
    "                      the machine of the profiles takes; else a unit of cost an element",
    "      device=NAME     rows of profiles for this device count, too",
    "  --ram B           formats of an inference within limits of RAM, which is the placed arena with",
    "  --flash B         conversions and, with --rows, line buffers; of weights and constants; and of the",
    "  --loss L          losses of all nodes. Any two of them: least of the third. All three: least cost.",
    "                    Code and the tables of --kernels come on top of --flash; the report says what",
    "                    the tables take.",
    "                    --ram any is no limit. Words of --precision that set no limit and objective say",
    "                    what may be chosen. The plan is for the RAM that was found, unless --budget says",
    "                    more",
    "  --minimize WHAT   least of this, within the limits: ram, flash, loss or cost",
    "  --front           loss against time, or bytes: every point between which there is a choice; with",
    "                    --ram or --flash: choices of which none is worse in RAM, flash and loss",
    "  --profiles FILE   what schemes lose and gain, op by op, and for single nodes where it was",
    "                    measured, instead of the default table; - is standard input. Of a machine like",
    "                    that of examples/x86-64.profiles; 05_quantize --profiles writes that of yours",
    "  --default-profiles  print that table, in the form that FILE has: nothing is faster than f32,",
    "                    because no one measured it",
    "",
    "  --compile         compile a strategy: what is split, fused, converted, dropped and made again is",
    "                    chosen together, so that a step costs least within --budget, or without a limit.",
    "                    Chains of nodes that say takes_blocks may be fused. What else is asked for is of",
    "                    the graph that results; with --split it is of one part. --work counts once for",
    "                    the plan, and once for what one more MiB would buy",
    "                    With --precision, or --ram and --flash, formats are chosen before, and the rest",
    "                    is compiled of the graph that results, within the RAM that was found",
    "  --loss L          formats are chosen, too, f32 or bf16, for inference also f16: the losses of all",
    "                    nodes, by --profiles, sum to at most L; any: no limit",
    "  --split           the batch of the model may be split into equal parts, one after the other; what",
    "                    a part costs beside its nodes does not count",
    "  --recommend       compile several strategies, and plan with the one that costs least",
    "                    With --compile, --pareto is the curve of bytes against cost over all choices",
    "",
    "  --ranks N         a pipeline on N ranks, which are devices, processes or threads: each has a stage",
    "                    of the nodes and a plan of its own. MODEL is one of --micro-batches N (8).",
    "                    --budget binds each rank with its weights, gradients and --states; --link is",
    "                    between neighbours, without it messages take no time. Schedule 1f1b. For each",
    "                    rank: what its weights take, micro-batches in flight, bytes that each of them",
    "                    holds, peak, arena, bytes sent, cost of its calls, and when they end",
    "                    What waits for its backward may go to the host: --host-budget, so many bytes of",
    "                    each rank at a time, at the speed of --link, too",
    "  --gpipe           all forwards first, then all backwards",
    "  --chunks V        interleaved 1f1b: V stages on each rank, so that ranks wait less, but send and",
    "                    hold more. --micro-batches must be a multiple of the ranks",
    "  --data            copies of the whole model instead, each with a part of the micro-batches",
    "  --split           MODEL is of the whole batch, and split into --micro-batches N, or without that",
    "                    into as many as make the step shortest",
    "  --auto            all ways planned and compared: copies, pipelines in each schedule, copies of",
    "                    these; the best, and why not the others. --micro-batches are of all ranks",
    "",
    "FILE is written whole or not at all, a pipe or a device as it is; - is standard output, for one of",
    "them. A FILE that is also read, and a FILE that two options name, are refused before any work:",
    "  --schedule FILE   the steps as text, one a line: F 1, D 1, B 2, ...",
    "  --json FILE       the figures, machine-readable, and of one plan every allocation: tier, use, node",
    "                    and its name, output, occurrence (so many of the same came before), bytes,",
    "                    first_step, end_step (it lives from the first to before the end), offset in the",
    "                    arena of its bank, bank, block, and moved_bytes, which steps read and write,",
    "                    and slot of its micro-batch: 0 in plans of this program; of a rank its graph,",
    "                    the model's node for each of that one's (-1 a message), steps, and offsets of",
    "                    all that they allocate, in the order of the rules of steps in tl_strategy.h",
    "  --lifetimes FILE  every allocation as CSV: what for, how many bytes, in which steps it lives",
    "  --places FILE     where each allocation lies, in the arena of the device or of the host, as CSV",
    "  --c-table FILE    graph and plan as const C tables, which need no memory and no planner, and bytes",
    "                    of the arena, numbers of nodes, places of inputs and results as #define",
    "  --compact         the table has steps of 4 bytes in the place of 16, offsets of 2 or 4 for 8",
    "  --no-names        its nodes are called 0, 1, 2 and so on, up to z, then 10",
    "  --c-code NAME     a C program without this library: NAME.c and NAME.h, which call your kernels, a",
    "                    pair declared for each op, at constant addresses in one array for each bank;",
    "                    NAME is in front of every name. --c-code=calls NAME or --c-code=table NAME:",
    "                    straight calls, or a table and a loop over it; else whichever is smaller. With",
    "                    --rows kernels of regions are called for rows, in rings at constant addresses.",
    "                    Frozen weights, states too, are a const array of yours, which is no RAM; with",
    "                    --c-table, whose executor has them in the arena, states stay in it",
    "                    After --precision kernels are named by scheme: net_conv2d_i8_channel_forward",
    "  -o DIR            the folder of these files",
    "  --weights FILE    for inference, the weights of a model as .safetensors, whose stored= they are:",
    "                    quantised by their schemes, with biases, multipliers and shifts, they become the",
    "                    const array of NAME_constants.c. What this takes and what --c-code says of flash",
    "                    is the same. Biases that do not fit 32 bits are told, with their node.",
    "                    NAME_scales.h: NAME_INPUT_X_SCALE and _ZERO of an input in i8 or i16, and of a",
    "                    result NAME_RESULT_X_: its numbers are (integer - ZERO) SCALE",
    "  --ranges FILE     shapes, windows, ranges and scales of its tensors, see examples/ranges.h; those",
    "                    of another model are refused",
    "  --kernels WHICH   NAME_kernels.c, too: all kernels that NAME.h declares, by functions of nn_tiny.h",
    "                    (own), or where it has them of CMSIS-NN (cmsis-nn), which is yours",
    "  --micro-batches N its run repeats the steps so many times (1, or the parts of --split); with",
    "                    --ranks so many are one step (8)",
    "  --states N        numbers of the optimizer for each weight: 0, with momentum 1, AdamW 2 (0)",
    "  --optimizer NAME  weights, gradients and moments are planned, too: sgd, momentum or adamw. The",
    "                    weights of a node that has param= become a state; the budget holds all of it",
    "  --updates WHEN    of states: fused (each as soon as its gradient is complete) or end (all of them",
    "                    when every gradient is, as clipping by the norm of all needs it)",
    "  --clip            with --updates end: a node that scales all gradients before the first update",
    "  --update-rate R   speed of the memory that updates read and write; without it they take no time",
    "  --pieces SIZE     gradients of states with rows (wrows=) are made and used in pieces of at most so",
    "                    many bytes; auto: as large as --budget allows, or as the cheapest plan wants;",
    "                    what stays whole is listed, and why",
    "  --piece-cost N    what each further call of a kernel costs, in the units of the model (0);",
    "                    of --rows, too",
    "  --rows            regions of nodes that can be called for ranges of rows (rows= in a tlg 2) go",
    "                    through them block by block, and what lies between two of their nodes exists",
    "                    for one block. Which regions, in how many blocks, is chosen together with the",
    "                    plan for --budget; the bound is one for all these choices. Everything else that",
    "                    is asked for is of the graph with regions as nodes. With --split each number of",
    "                    parts of the batch is tried; costs are those of a step, all else, and the bound,",
    "                    of these parts. --compile --rows is the same: nothing is fused, all is f32.",
    "                    With --inference only the rows exist that somebody still reads; within --budget",
    "                    in as few calls as possible, else in as few bytes",
    "  --slots OP,..     ops whose kernels, called for one row, may write over the first row under their",
    "                    windows, as a depthwise convolution can that goes channel by channel",
    "  --inputs-die      inputs are freed behind their last read, and written again before each pass; in",
    "                    a tlg 2 single inputs say so (dies)",
    "  --name PREFIX     of the names in the table, in upper case of its #defines (the model's name)",
    "  --svg FILE        a picture: steps and live bytes over time, or with --pareto, --front the curve;",
    "                    with --ranks a lane for each rank: calls with the costs of their plans, where",
    "                    messages leave when calls end (a plan sends a tensor as soon as it is there)",
    "  --html FILE       one page without network or libraries: memory and lifetimes over the steps,",
    "                    or with --pareto the curve; read off with mouse, finger or arrow keys",
    "  --explain-error N [VALUE [VALUE]]  what the site and the values of an error say, as a program",
    "                    without the text of errors reports them",
    "  --help            this text",
    "",
    "Costs are what the model says: nanoseconds or FLOP. The bound is certain: no schedule that runs",
    "backwards in reverse listing order and loses nothing costs less. Ctrl-C stops the search and",
    "goes on with the best plan so far; a second one ends the program, with --ranks the first.",
    "",
    "  tl_plan gpt2.tlg --budget 6GiB --explain",
    "  tl_plan gpt2.tlg --budget 40% --schedule gpt2.schedule --json - | python3 -m json.tool",
    "  tl_plan unet.tlg --pareto --html unet.html",
    "  python3 export.py | tl_plan - --budget 512MiB --inference",
    "  tl_plan resnet18.tlg --precision loss=0.01,training --budget 50%",
    "  tl_plan resnet18.tlg --compile --split --loss 0.01 --budget 50% --json plan.json",
    "  tl_plan resnet18.tlg --front --profiles examples/x86-64.profiles --svg front.svg",
    "  tl_plan gpt2.tlg --ranks 4 --micro-batches 16 --link 25GB/s --budget 8GiB --svg ranks.svg",
    "",
    "exit code: 0 planned; 1 bad input, or a file that cannot be written; 2 no plan was found that",
    "fits: the sentence names the least budget at which one was, and the node that sets it, or the",
    "nearest limit of --precision that can be held",
};

// One option: where its value goes, or the flag that it sets.
typedef struct option_row {
    const char  *name;
    const char **text;
    int         *flag;
} option_row;

static int take_option(const option_row *row, const char *value, int has_own, int *used_next) {
    *used_next = 0;
    if (row->flag) {
        if (has_own) return fail(CODE_INPUT, "%s: takes no value", row->name);
        if (*row->flag) return fail(CODE_INPUT, "%s: is given twice", row->name);
        *row->flag = 1;
        return CODE_OK;
    }
    if (!value || !*value || (!has_own && value[0] == '-' && value[1] && !strchr("0123456789.", value[1])))
        return fail(CODE_INPUT, "%s: a value must follow", row->name);
    if (*row->text) return fail(CODE_INPUT, "%s: is given twice", row->name);
    *row->text = value;
    *used_next = !has_own;
    return CODE_OK;
}

// Whether formats are chosen within limits of RAM, flash and loss.
static int has_limits(const options *o) { return o->ram || o->flash || o->minimize; }

static int check_precision_options(const options *o) {
    const char *const names[] = { "--budget", "--host-budget", "--policy", "--schedule", "--c-table",
                                  "--html", "--align", "--lifetimes", "--places", "--bank", "--block", "--c-code",
                                  "--in-flight" };
    const char *const plans[] = { o->budget, o->host_budget, o->policy, o->schedule, o->c_table, o->html,
                                  o->align, o->lifetimes, o->places, o->banks[0], o->block, o->c_code, o->in_flight };
    size_t i;
    if (o->profiles && !o->precision && !o->front && !o->loss && !has_limits(o))
        return fail(CODE_INPUT, "--profiles: is for --precision, --front, --loss or limits like --ram");
    if (o->profiles && strcmp(o->profiles, "-") == 0 && strcmp(o->model, "-") == 0)
        return fail(CODE_INPUT, "-: the model and the profiles cannot both be standard input");
    for (i = 0; o->front && i < sizeof names / sizeof *names; i++)
        if (plans[i] && !(has_limits(o) && plans[i] == o->align)) return fail(CODE_INPUT, "%s: is for one choice, --front makes many", names[i]);
    if (o->front && o->pareto) return fail(CODE_INPUT, "--front: draws one curve, --pareto another");
    if (o->front && o->explain) return fail(CODE_INPUT, "--explain: is for one choice, --front makes many");
    return CODE_OK;
}

static int compiles(const options *o) { return o->compile || o->recommend; }

static int check_limit_options(const options *o) {
    const struct { int is_there; const char *name; } others[] = {
        { o->recommend, "--recommend" }, { o->pareto, "--pareto" }, { o->policy != NULL, "--policy" }, { o->order, "--order" },
        { o->live, "--live" }, { o->bank_count > 0, "--bank" }, { o->split, "--split" },
    };
    size_t i;
    if (!has_limits(o)) return CODE_OK;
    if (!o->inference)
        return fail(CODE_INPUT, "%s: is of forwards alone, --inference is missing", o->ram ? "--ram" : o->flash ? "--flash" : "--minimize");
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].is_there) return fail(CODE_INPUT, "%s: not beside --ram, --flash or --minimize", others[i].name);
    if (o->front) return o->minimize || o->loss ? fail(CODE_INPUT, "--front: shows all of RAM, flash and loss: no --loss, --minimize") : CODE_OK;
    if (!o->minimize && !!o->ram + !!o->flash + !!o->loss < 2)
        return fail(CODE_INPUT, "--ram, --flash, --loss: give two, and the third is as little as can be, or --minimize");
    return CODE_OK;
}

// --compile chooses itself what these options ask for.
static int check_compile_options(const options *o) {
    const struct { int is_there; const char *name, *rule; } others[] = {
        { o->policy != NULL, "--policy", "is a rule, what is compiled is the best of all plans" },
        { o->order, "--order", "is a plan of its own, what is compiled keeps the listing's order" },
        { o->form != NULL, "--form", "what is compiled may take any" },
        { o->seed != NULL, "--seed", "what is compiled has one beginning" },
        { o->precision && o->loss && !has_limits(o), "--precision", "chooses formats first, --loss chooses them with the plan" },
        { o->front, "--front", "is loss against time, --compile holds one limit of the loss" },
        { o->live, "--live", "the budget of what is compiled binds its arena" },
        { o->bank_count > 0, "--bank", "what is compiled lies in one memory" },
    };
    size_t i;
    if (!compiles(o) && o->loss && !has_limits(o))
        return fail(CODE_INPUT, "--loss: is for --compile, or beside --ram or --flash, which are missing");
    if (!compiles(o) && o->split && !o->rows) return fail(CODE_INPUT, "--split: is for --compile, which is missing");
    if (!compiles(o)) return CODE_OK;
    if (o->compile && o->recommend)
        return fail(CODE_INPUT, "--recommend: compiles several strategies, --compile one");
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].is_there)
            return fail(CODE_INPUT, "%s: not beside %s: %s", others[i].name,
                        o->compile ? "--compile" : "--recommend", others[i].rule);
    if (o->recommend && o->pareto) return fail(CODE_INPUT, "--recommend: is for one budget, --pareto for all");
    if (o->pareto && (o->svg || o->html))
        return fail(CODE_INPUT, "%s: the curve of --compile is a table, or JSON", o->svg ? "--svg" : "--html");
    return CODE_OK;
}

// A name that C takes: letters, digits and single underscores.
static void write_c_name(const char *text, char name[49]) {
    size_t length = 0;
    for (; *text && length < 48; text++) {
        int letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        int digit = *text >= '0' && *text <= '9';
        if (letter || (digit && length)) name[length++] = *text;
        else if (length && name[length - 1] != '_') name[length++] = '_';
    }
    while (length && name[length - 1] == '_') length--;
    if (!length) name[length++] = 'm';  // nothing of the model's name can stand in C
    name[length] = 0;
}

// The files of --c-code.
static int check_code_options(options *o) {
    static char paths[CODE_FILES][PATH_SIZE];
    static const char *const ends[] = { ".h", ".c", "_constants.c", "_scales.h", "_kernels.c" };
    char name[49];
    int i;
    if (!o->c_code && (o->folder || o->states || o->batches))
        return fail(CODE_INPUT, "%s: is for --c-code%s, which is missing",
                    o->folder ? "-o" : o->states ? "--states" : "--micro-batches", o->folder ? "" : " or --ranks");
    if (!o->c_code && o->weights) return fail(CODE_INPUT, "--weights: is for --c-code, which is missing");
    if ((o->ranges || o->kernels) && !o->weights)
        return fail(CODE_INPUT, "%s: is for --weights, which is missing", o->ranges ? "--ranges" : "--kernels");
    if (o->kernels && !o->ranges) return fail(CODE_INPUT, "--kernels: needs --ranges, shapes and windows");
    if (o->kernels && strcmp(o->kernels, "own") != 0 && strcmp(o->kernels, "cmsis-nn") != 0)
        return fail(CODE_INPUT, "--kernels %s: must be own or cmsis-nn", o->kernels);
    if (o->weights && ((!o->inference && !o->precision) || o->compile || o->recommend))
        return fail(CODE_INPUT, "--weights: is for --inference of the model as it is, no --compile");
    if (o->kernels && o->slots) return fail(CODE_INPUT, "--slots: the functions of --kernels overwrite no rows under their windows");
    if (!o->c_code) return CODE_OK;
    if (!o->folder) return fail(CODE_INPUT, "--c-code: needs -o, the folder of its files");
    write_c_name(o->c_code, name);
    if (strcmp(name, o->c_code) != 0)
        return fail(CODE_INPUT, "--c-code %s: must be 1 to 48 letters, digits and single _, a letter first", o->c_code);
    for (i = 0; i < CODE_FILES; i++)
        if (snprintf(paths[i], PATH_SIZE, "%s/%s%s", o->folder, name, ends[i]) >= PATH_SIZE)
            return fail(CODE_INPUT, "-o %s: is too long", o->folder);
    o->code_header = paths[0];
    o->code_source = paths[1];
    o->code_constants = o->weights ? paths[2] : NULL;
    o->code_scales = o->weights ? paths[3] : NULL;
    o->code_kernels = o->kernels ? paths[4] : NULL;
    return CODE_OK;
}

// --ranks: what is of one plan on one machine does not apply.
static int check_rank_options(const options *o) {
    const struct { int is_there; const char *name; } others[] = {
        { o->codec != NULL, "--codec" },             { o->codec_rate != NULL, "--codec-rate" },
        { o->policy != NULL, "--policy" },           { o->form != NULL, "--form" },
        { o->seed != NULL, "--seed" },
        { o->schedule != NULL, "--schedule" },       { o->html != NULL, "--html" },
        { o->c_table != NULL, "--c-table" },
        { o->lifetimes != NULL, "--lifetimes" },     { o->places != NULL, "--places" },
        { o->c_code != NULL, "--c-code" },           { o->folder != NULL, "-o" },
        { o->name != NULL, "--name" },               { o->block != NULL, "--block" },
        { o->in_flight != NULL, "--in-flight" },     { o->bank_count > 0, "--bank" },
        { o->precision != NULL, "--precision" },     { o->profiles != NULL, "--profiles" },
        { o->loss != NULL, "--loss" },               { o->pareto, "--pareto" },
        { o->explain, "--explain" },                 { o->front, "--front" },
        { o->live, "--live" },                       { o->order, "--order" },
        { compiles(o), o->compile ? "--compile" : "--recommend" },
        { o->compact, "--compact" },                 { o->no_names, "--no-names" },
        { o->optimizer != NULL, "--optimizer" },     { o->updates != NULL, "--updates" },
        { o->inputs_die, "--inputs-die" },           { o->pieces != NULL, "--pieces" },
        { o->rows, "--rows" },
    };
    const struct { int is_there; const char *name; } of_pipelines[] = {
        { o->gpipe, "--gpipe" }, { o->align != NULL, "--align" }, { o->svg != NULL, "--svg" },
        { o->inference, "--inference" }, { o->chunks != NULL, "--chunks" },
        { o->host_budget != NULL, "--host-budget" }, { o->split, "--split" },
    };
    size_t i;
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].is_there)
            return fail(CODE_INPUT, "%s: is for one rank, --ranks plans several", others[i].name);
    if (o->data && o->automatic) return fail(CODE_INPUT, "--data: is one way, --auto compares all");
    for (i = 0; o->data && i < sizeof of_pipelines / sizeof *of_pipelines; i++)
        if (of_pipelines[i].is_there)
            return fail(CODE_INPUT, "%s: is for the pipeline of --ranks, --data is a comparison of training steps",
                        of_pipelines[i].name);
    if (o->automatic && (o->gpipe || o->chunks))
        return fail(CODE_INPUT, "%s: is one order of calls, --auto compares all", o->gpipe ? "--gpipe" : "--chunks");
    if (o->chunks && o->gpipe) return fail(CODE_INPUT, "--gpipe: has one stage a rank, --chunks several");
    if (o->inference && o->gpipe) return fail(CODE_INPUT, "--gpipe: is an order of backwards, --inference has none");
    if (o->inference && o->states) return fail(CODE_INPUT, "--states: are of the optimizer, --inference has none");
    if (o->budget && strchr(o->budget, '%'))
        return fail(CODE_INPUT, "--budget %s: of a rank must be bytes, like 512MiB", o->budget);
    if (o->host_budget && strchr(o->host_budget, '%'))
        return fail(CODE_INPUT, "--host-budget %s: of a rank must be bytes, like 512MiB", o->host_budget);
    if (o->split && o->inference) return fail(CODE_INPUT, "--split: is for training steps, --inference has none");
    if (o->host_budget && o->inference)
        return fail(CODE_INPUT, "--host-budget: is for what waits for a backward, --inference has none");
    if (o->cost_unit && !o->link)
        return fail(CODE_INPUT, "--cost-unit: says what --link is compared with, which is missing");
    return CODE_OK;
}

static int check_optimizer_options(const options *o) {
    if (o->inference && (o->optimizer || o->updates || o->pieces))
        return fail(CODE_INPUT, "%s: is of training steps, --inference has none",
                    o->optimizer ? "--optimizer" : o->updates ? "--updates" : "--pieces");
    if (o->piece_cost && !o->pieces && !o->rows)
        return fail(CODE_INPUT, "--piece-cost: is of the calls of --pieces or --rows, which are missing");
    if (o->pieces && o->split)
        return fail(CODE_INPUT, "--pieces: makes no whole gradient that the parts of --split could add to");
    if (o->pieces && strcmp(o->pieces, "auto") == 0 && (!o->budget || o->pareto || o->front || compiles(o)))
        return fail(CODE_INPUT, "--pieces auto: is chosen for the plan of one --budget; give a size in bytes");
    if (o->update_rate && !o->optimizer)
        return fail(CODE_INPUT, "--update-rate: is of the updates of --optimizer, which is missing");
    if (o->clip && (!o->updates || strcmp(o->updates, "end") != 0))
        return fail(CODE_INPUT, "--clip: the norm of all gradients is known at the end: needs --updates end");
    if (o->optimizer && o->states)
        return fail(CODE_INPUT, "--states: are of an optimizer outside of the plan, --optimizer plans one");
    return CODE_OK;
}

static int check_row_options(options *o) {
    if (o->slots && !o->rows) return fail(CODE_INPUT, "--slots: is of the regions of --rows, which is missing");
    if (!o->rows) return CODE_OK;
    if ((o->front && !has_limits(o)) || o->pareto || o->recommend)
        return fail(CODE_INPUT, "--rows: is for one plan: no --front, --pareto, --recommend");
    if (o->precision && !o->inference)
        return fail(CODE_INPUT, "--rows: after --precision they are of forwards alone, --inference is missing");
    if (o->c_code && !o->inference)
        return fail(CODE_INPUT, "--c-code: with --rows writes forwards alone, --inference is missing");
    if (o->loss && !has_limits(o))
        return fail(CODE_INPUT, "--rows: are chosen together with the plan in f32, not with the formats of --loss");
    if (o->inference && (o->compile || o->split))
        return fail(CODE_INPUT, "--rows: %s is of training steps, --inference has none", o->compile ? "--compile" : "--split");
    if (o->inference && o->piece_cost)
        return fail(CODE_INPUT, "--piece-cost: with --inference --rows takes as few calls as possible in any case");
    if (o->inference) return CODE_OK;
    if (o->slots) return fail(CODE_INPUT, "--slots: is of forwards alone, --inference is missing");
    if (!o->budget) return fail(CODE_INPUT, "--rows: in training, regions are chosen for a --budget, which is missing");
    if (o->policy || o->order) return fail(CODE_INPUT, "--rows: is for the best plan: no --policy, --order");
    o->compile = 0;     // the joint choice of regions, parts and plan; nothing is fused
    return CODE_OK;
}

// Options whose files, or whose question, are about one plan or about the whole curve only.
static int check_options(options *o) {
    const char *const names[] = { "--schedule", "--c-table", "--align", "--lifetimes", "--places", "--bank", "--block",
                                  "--c-code", "--in-flight" };
    const char *const of_one[] = { o->schedule, o->c_table, o->align, o->lifetimes, o->places, o->banks[0], o->block,
                                   o->c_code, o->in_flight };
    size_t i;
    int code;
    if (!o->model) return fail(CODE_INPUT, "a model must be named, a .tlg file or -; --help tells more");
    if (o->ranks) return check_rank_options(o);
    if (o->data || o->automatic || o->gpipe || o->chunks)
        return fail(CODE_INPUT, "%s: is for --ranks, which is missing",
                    o->data ? "--data" : o->gpipe ? "--gpipe" : o->chunks ? "--chunks" : "--auto");
    code = check_compile_options(o);
    if (!code) code = check_limit_options(o);
    if (!code) code = check_optimizer_options(o);
    if (!code) code = check_row_options(o);
    if (code) return code;
    if (o->live && !o->budget && !o->pareto) return fail(CODE_INPUT, "--live: says what --budget binds, which is missing");
    if (o->pareto && o->budget) return fail(CODE_INPUT, "--pareto: is for all budgets, --budget for one");
    if (o->host_budget && !o->link)
        return fail(CODE_INPUT, "--host-budget: needs --link, the speed of the copies");
    if (o->link && !o->host_budget)
        return fail(CODE_INPUT, "--link: needs --host-budget, the bytes that may go there, or --ranks");
    if (o->codec_rate && !o->codec)
        return fail(CODE_INPUT, "--codec-rate: needs --codec, what is converted so fast");
    if (o->codec && (o->policy || o->form || o->order || o->inference))
        return fail(CODE_INPUT, "--codec: is for any plan of a training step: no --policy, --form, --order, --inference");
    if (o->cost_unit && !o->link && !o->codec_rate && !o->update_rate && !o->profiles &&
        !(o->precision && strstr(o->precision, "memory=")))
        return fail(CODE_INPUT, "--cost-unit: says what --link is compared with, which is missing");
    if (o->policy && o->host_budget) return fail(CODE_INPUT, "--policy: none of them copies to the host");
    if (o->name && !o->c_table) return fail(CODE_INPUT, "--name: is for --c-table, which is missing");
    if ((o->compact || o->no_names) && !o->c_table)
        return fail(CODE_INPUT, "%s: is for --c-table, which is missing", o->compact ? "--compact" : "--no-names");
    code = check_code_options(o);
    if (code) return code;
    if (o->form && o->host_budget) return fail(CODE_INPUT, "--form: with --host-budget it must be any");
    if (o->form && o->policy) return fail(CODE_INPUT, "--form: a policy has a form of its own");
    if (o->seed && ((!o->budget && !o->pareto) || o->policy || o->order || o->front))
        return fail(CODE_INPUT, "--seed: is for the searches of --budget or --pareto: no --policy, --order, --front");
    if (o->order && (o->policy || o->form || o->host_budget || o->pareto || o->front))
        return fail(CODE_INPUT, "--order: is a plan of its own, for one budget: no --policy, --form, --host-budget, "
                    "--pareto, --front");
    if (o->in_flight && (o->live || o->policy || o->order || o->c_code))
        return fail(CODE_INPUT, "--in-flight: is for plans whose budget binds the arena, and for who runs several steps "
                    "at a time: no --live, --policy, --order, --c-code");
    if (o->pareto && o->policy)
        return fail(CODE_INPUT, "--policy: is for one plan, --pareto shows all policies");
    for (i = 0; o->pareto && i < sizeof names / sizeof *names; i++)
        if (of_one[i] && of_one[i] != o->align && !(o->compile && of_one[i] == o->block))
            return fail(CODE_INPUT, "%s: is for one plan, --pareto makes many", names[i]);
    if (o->pareto && o->explain) return fail(CODE_INPUT, "--explain: is for one plan, --pareto makes many");
    return check_precision_options(o);
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    const option_row rows[] = {
        { "--budget", &o->budget, NULL },     { "--work", &o->work, NULL },
        { "--seed", &o->seed, NULL },
        { "--schedule", &o->schedule, NULL }, { "--json", &o->json, NULL },
        { "--policy", &o->policy, NULL },     { "--c-table", &o->c_table, NULL },
        { "--form", &o->form, NULL },         { "--align", &o->align, NULL },
        { "--lifetimes", &o->lifetimes, NULL }, { "--places", &o->places, NULL },
        { "--name", &o->name, NULL },         { "--block", &o->block, NULL },
        { "--c-code", &o->c_code, NULL },     { "-o", &o->folder, NULL },
        { "--states", &o->states, NULL },     { "--micro-batches", &o->batches, NULL },
        { "--optimizer", &o->optimizer, NULL }, { "--updates", &o->updates, NULL },
        { "--update-rate", &o->update_rate, NULL }, { "--clip", NULL, &o->clip },
        { "--inputs-die", NULL, &o->inputs_die }, { "--weights", &o->weights, NULL },
        { "--ranges", &o->ranges, NULL },     { "--kernels", &o->kernels, NULL },
        { "--rows", NULL, &o->rows },         { "--slots", &o->slots, NULL },
        { "--pieces", &o->pieces, NULL },     { "--piece-cost", &o->piece_cost, NULL },
        { "--bank", &o->banks[0], NULL },     { "--in-flight", &o->in_flight, NULL },
        { "--host-budget", &o->host_budget, NULL }, { "--link", &o->link, NULL },
        { "--codec", &o->codec, NULL },       { "--codec-rate", &o->codec_rate, NULL },
        { "--cost-unit", &o->cost_unit, NULL },
        { "--svg", &o->svg, NULL },           { "--html", &o->html, NULL },
        { "--inference", NULL, &o->inference }, { "--pareto", NULL, &o->pareto },
        { "--explain", NULL, &o->explain },   { "--live", NULL, &o->live },
        { "--order", NULL, &o->order },       { "--compile", NULL, &o->compile },
        { "--split", NULL, &o->split },       { "--loss", &o->loss, NULL },
        { "--ram", &o->ram, NULL },           { "--flash", &o->flash, NULL },
        { "--minimize", &o->minimize, NULL },
        { "--recommend", NULL, &o->recommend }, { "--ranks", &o->ranks, NULL },
        { "--data", NULL, &o->data },         { "--auto", NULL, &o->automatic },
        { "--gpipe", NULL, &o->gpipe },       { "--chunks", &o->chunks, NULL },
        { "--compact", NULL, &o->compact },   { "--no-names", NULL, &o->no_names },
        { "--precision", &o->precision, NULL }, { "--profiles", &o->profiles, NULL },
        { "--front", NULL, &o->front },       { "--default-profiles", NULL, &o->default_profiles },
    };
    option_row row;
    int i, code, used;
    *done = 0;
    for (i = 1; i < count; i++) {
        const char *name = argv[i], *own = strchr(name, '=');
        size_t length = own ? (size_t)(own - name) : strlen(name), k;
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            *done = 1;
            return CODE_OK;
        }
        if (name[0] != '-' || !name[1]) {
            if (o->model) return fail(CODE_INPUT, "%s: a second model; one is planned at a time", name);
            if (!*name) return fail(CODE_INPUT, "the model's name is empty");
            o->model = name;
            continue;
        }
        for (k = 0; k < sizeof rows / sizeof *rows; k++)
            if (strlen(rows[k].name) == length && strncmp(rows[k].name, name, length) == 0) break;
        if (k == sizeof rows / sizeof *rows)
            return fail(CODE_INPUT, "%.*s: unknown option; --help lists them", (int)length, name);
        row = rows[k];
        if (row.text == &o->c_code && own) {    // its form, its name follows
            if (o->c_code) return fail(CODE_INPUT, "--c-code: is given twice");
            o->c_form = own + 1;
            own = NULL;
        }
        if (row.text == &o->banks[0] && o->bank_count == TL_MOST_BANKS)
            return fail(CODE_INPUT, "--bank: is given more than %d times", TL_MOST_BANKS);
        if (row.text == &o->banks[0]) row.text = &o->banks[o->bank_count++];
        code = take_option(&row, own ? own + 1 : i + 1 < count ? argv[i + 1] : NULL, own != NULL, &used);
        if (code) return code;
        i += used;
    }
    return o->default_profiles ? CODE_OK : check_options(o);
}

// -- files: which one a path names --

// The file behind a path: symbolic links are followed, also to a file that does not exist yet. 0 = it cannot be
// found, errno says why.
static int follow_links(const char *path, char name[PATH_SIZE]) {
    char next[PATH_SIZE];
    int hops;
    size_t length = strlen(path);
    if (length >= PATH_SIZE) { errno = ENAMETOOLONG; return 0; }
    memcpy(next, path, length + 1);
    for (hops = 0; hops < 40; hops++) {
        char *slash = strrchr(next, '/'), *folder;
        const char *base = slash ? slash + 1 : next;
        ssize_t size;
        if (slash) *slash = 0;
        folder = realpath(!slash ? "." : slash == next ? "/" : next, NULL);
        if (!folder) return 0;
        length = (size_t)snprintf(name, PATH_SIZE, "%s/%s", strcmp(folder, "/") ? folder : "", base);
        size = strncmp(folder, "/proc/", 6) == 0 ? -1 : readlink(name, next, sizeof next - 1);
        if (size >= 0) next[size] = 0;
        if (size >= 0 && next[0] != '/') {  // relative to the folder of the link
            char target[PATH_SIZE];
            memcpy(target, next, (size_t)size + 1);
            length = (size_t)snprintf(next, sizeof next, "%s/%s", folder, target);
        }
        free(folder);
        if (length >= PATH_SIZE) { errno = ENAMETOOLONG; return 0; }
        if (size < 0) return 1;
    }
    errno = ELOOP;
    return 0;
}

static int is_one_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int is_null_device(const struct stat *file) {
    struct stat null;
    return S_ISCHR(file->st_mode) && stat("/dev/null", &null) == 0 && null.st_rdev == file->st_rdev;
}

// An option that names a file, and that file.
typedef struct place {
    const char  *option;
    const char **path;
    int          exists;           // 1 = stat says which file it is, 0 = its name does
    struct stat  stat;
    char         name[PATH_SIZE];
} place;

static void find_input(const char *path, place *at) {
    at->exists = (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &at->stat) : stat(path, &at->stat)) == 0;
}

// An output that is what standard output is already, /dev/stdout for example, becomes -.
static int find_output(place *at) {
    const char *path = *at->path;
    struct stat out;
    int has_out = fstat(STDOUT_FILENO, &out) == 0;
    if (strcmp(path, "-") == 0) {
        at->exists = has_out;
        at->stat = out;
        return CODE_OK;
    }
    at->exists = stat(path, &at->stat) == 0;
    if (at->exists && S_ISDIR(at->stat.st_mode)) return fail(CODE_INPUT, "%s %s: is a directory", at->option, path);
    if (at->exists && !S_ISREG(at->stat.st_mode) && !S_ISFIFO(at->stat.st_mode) && !S_ISCHR(at->stat.st_mode))
        return fail(CODE_INPUT, "%s %s: is neither a file nor a pipe", at->option, path);
    if (!follow_links(path, at->name))
        return fail(CODE_INPUT, "%s %s: cannot be written: %s", at->option, path, strerror(errno));
    if (has_out && at->exists && is_one_file(&at->stat, &out) && !is_null_device(&out)) *at->path = "-";
    return CODE_OK;
}

// 1 = what is written to the one is lost by what is written to the other.
static int is_one_place(const place *a, const place *b) {
    int a_is_out = strcmp(*a->path, "-") == 0, b_is_out = strcmp(*b->path, "-") == 0;
    if (a_is_out || b_is_out) return a_is_out && b_is_out;
    if (a->exists != b->exists) return 0;
    return a->exists ? is_one_file(&a->stat, &b->stat) && !is_null_device(&a->stat) : strcmp(a->name, b->name) == 0;
}

static int is_read(const place *out, const place *input) {
    return out->exists && input->exists && !S_ISCHR(input->stat.st_mode) && is_one_file(&out->stat, &input->stat);
}

// No output is a file that is read, and no two outputs are one file: nothing that exists is lost. Before any work.
static int check_files(options *o) {
    static place outputs[OUTPUT_FILES], report, inputs[4];
    const char *const names[] = { "--schedule", "--json", "--c-table", "--svg", "--html", "--lifetimes",
                                  "--places", "--c-code", "--c-code", "--c-code", "--c-code", "--c-code" };
    const char **const paths[] = { &o->schedule, &o->json, &o->c_table, &o->svg, &o->html, &o->lifetimes,
                                   &o->places, &o->code_header, &o->code_source, &o->code_constants, &o->code_scales, &o->code_kernels };
    const char *const words[] = { "the model", "the file of --profiles", "the file of --weights", "the file of --ranges" };
    const char *const read[] = { o->model, o->profiles, o->weights, o->ranges };
    int count = 0, i, k;
    for (i = 0; i < 4; i++)
        if (read[i]) find_input(read[i], &inputs[i]);
    for (i = 0; i < OUTPUT_FILES; i++) {
        int code;
        if (!*paths[i]) continue;
        outputs[count].option = names[i];
        outputs[count].path = paths[i];
        code = find_output(&outputs[count++]);
        if (code) return code;
    }
    for (i = 0; i < count; i++) {
        const place *at = &outputs[i];
        for (k = 0; k < 4; k++)
            if (strcmp(*at->path, "-") != 0 && is_read(at, &inputs[k]))
                return fail(CODE_INPUT, "%s %s: is %s, which is read", at->option, *at->path, words[k]);
        for (k = 0; k < i; k++)
            if (is_one_place(at, &outputs[k]))
                return fail(CODE_INPUT, "%s %s: goes to %s as %s does", at->option, *at->path,
                            strcmp(*at->path, "-") == 0 ? "standard output" : "the same file", outputs[k].option);
    }
    report.exists = fstat(STDOUT_FILENO, &report.stat) == 0 && S_ISREG(report.stat.st_mode);
    for (k = 0; k < 4; k++)
        if (is_read(&report, &inputs[k])) return fail(CODE_INPUT, "standard output: is %s, which is read", words[k]);
    return CODE_OK;
}

// -- model --

// What --precision and --front were told, and what came of it.
typedef struct choice {
    tl_precision_desc desc;
    tl_device device;                // conversions; its nanosecond is one unit of cost
    tl_device rates;                 // of the machine of --profiles, a second
    const char *machine;             // on which what is read was measured; NULL = none
    int       has_machine;           // 1 = there was one
    char     *words, *text;          // of --precision and of --profiles, cut into pieces
    tl_precision_profile *profiles;
    double   *losses;                // [node_count x TL_SCHEME_COUNT] measured, or NULL
    uint64_t *costs;                 // the same
    tl_graph  model;                 // as it was read
    tl_plan   keep_all;              // of the model
    tl_precision_plan  plan;
    tl_precision_front front;
    tl_precision_graph applied;
    uint32_t *input_schemes;    // [node_count] what graph inputs may have
    uint32_t *node_schemes;     // [node_count] what there is code for; NULL = any
    tl_precision_fit fit;       // of --ram, --flash, --loss; its plan is the one above
    int       has_fit;
} choice;

enum { EXPLANATION_SIZE = 4096 };  // of tl_explain_compiled: a few lines

// What --compile was told, and what came of it.
typedef struct compilation {
    tl_compile_desc   desc;
    tl_strategy       strategy;
    tl_device         device;        // link and conversions; its nanosecond is one unit of cost
    tl_graph          model;         // as it was read
    tl_plan           keep_all;      // of the model
    tl_compiled_plan  compiled;      // without its plan, which is the program's
    tl_recommendation recommendation;  // of --recommend, its compiled plan has figures only
    char              text[EXPLANATION_SIZE];  // what is said about it
} compilation;

typedef struct program {
    tl_env   env;
    options  o;
    char     model[256];       // its name: the file's without folder and .tlg
    tl_graph graph;
    tl_plan  keep_all;
    uint64_t budget_bytes;     // 0 = none was given
    tl_pieces_desc pieces;     // of --pieces: what was chosen
    tl_graph whole;            // with --rows: the model without regions
    tl_rows_plan rows;         // of --rows
    tl_rows_choice rows_choice;  // of --rows in training
    uint64_t host_bytes;       // of --host-budget; 0 = no host tier
    uint64_t link_bytes;       // of --link, a second
    tl_codec codec;            // of --codec
    uint64_t unit_count, unit_ns;  // so many units of cost are so many nanoseconds
    int      is_fine;          // 1 = the model's unit was longer than a nanosecond: refine_costs
    int32_t  parts;            // of the batch, with --rows --split; 0 = it is whole
    tl_device device;          // its nanosecond is one unit of cost
    uint64_t work_limit;       // of --work; 0 = not given
    uint64_t seed;             // of --seed; 0 = not given
    tl_policy_kind policy;     // of --policy
    tl_remat_pool *pool;       // of the plans of several budgets; NULL = one budget is planned
    int      near_is_enough;   // 1 = a plan within 0.1 % of its bound is not improved
    tl_remat_form form;        // of --form
    uint64_t work;             // done so far
    double   start;
    int      terminal;         // standard error is one
    const char *doing;         // what the progress line names
    double   shown;            // when it was last drawn; 0 = there is none
    uint64_t alignment;        // of --align
    uint64_t block_bytes;      // of --block
    int32_t  in_flight;        // of --in-flight; 0 = not given
    tl_code_form code_form;    // of --c-code=
    tl_code_figures code;      // what its arrays take
    struct tiny_model *tiny;   // of --weights; NULL = none were given
    uint64_t model_hash;       // of the model as it was read, for --ranges
    uint64_t table_bytes, scratch_bytes;   // of --kernels: in flash, and in RAM beside the arrays
    int32_t  code_states;      // of --states
    int32_t  code_batches;     // of --micro-batches; 0 = those of the plan
    tl_bank  banks[TL_MOST_BANKS];  // of --bank
    int      in_arena;         // 1 = the budget of the next plan binds its arena
    tl_plan  plan;
    tl_remat_report report;
    tl_places_report places;   // of the plan
    tl_order_report order;     // of --order
    tl_lifetimes lifetimes;    // of the plan
    choice   choice;
    int      has_choice;       // the graph is the one that --precision has made
    compilation compilation;
    int      has_compiled;     // graph and plan are those that --compile has made
} program;

static int fail_result(const program *p, const char *what) {
    return fail(CODE_INPUT, "%s: %s", what, reason_of(&p->env));
}

static const char *path_of(const program *p) {
    return strcmp(p->o.model, "-") == 0 ? "standard input" : p->o.model;
}

static void name_model(program *p) {
    const char *path = strcmp(p->o.model, "-") == 0 ? "stdin" : p->o.model, *slash = strrchr(path, '/');
    size_t length;
    if (slash && slash[1]) path = slash + 1;
    length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".tlg") == 0) length -= 4;
    snprintf(p->model, sizeof p->model, "%.*s", (int)length, path);
}

// Read a file to its end, a 0 behind; NULL where that fails, with the reason printed.
static char *read_text(FILE *file, const char *name, size_t *length) {
    size_t capacity = 1 << 16, got = 1;
    char *text = (char *)malloc(capacity);
    *length = 0;
    while (text && got) {
        if (*length == capacity) {
            char *more = capacity < ((size_t)1 << 30) ? (char *)realloc(text, capacity * 2) : NULL;
            if (!more) break;
            text = more;
            capacity *= 2;
        }
        got = fread(text + *length, 1, capacity - *length, file);
        *length += got;
    }
    if (text && !got && !ferror(file)) {
        text[*length] = 0;
        return text;
    }
    fail(CODE_INPUT, "%s: %s", name, ferror(file) ? "cannot read" : "more than memory or 2^30 bytes hold");
    free(text);
    return NULL;
}

static int read_model(program *p) {
    tl_result result;
    name_model(p);
    if (strcmp(p->o.model, "-") == 0) {
        size_t length;
        char *text = read_text(stdin, path_of(p), &length);
        if (!text) return CODE_INPUT;
        result = tl_parse_graph(&p->env, text, length, &p->graph);
        free(text);
    } else {
        result = tl_read_graph(&p->env, p->o.model, &p->graph);
    }
    if (result == TL_ERROR_IO) return fail(CODE_INPUT, "%s", reason_of(&p->env));  // names the path
    return result ? fail_result(p, path_of(p)) : CODE_OK;
}

// -- host --

// unit_count and unit_ns of the model's costs.
static int parse_model_unit(program *p) {
    static const char *const names[] = { "ns", "us", "ms" };
    static const uint64_t lengths[] = { 1, 1000, 1000000 };
    const char *text = p->o.cost_unit ? p->o.cost_unit : "flop@10TFLOPS";
    uint64_t rate = 0, divisor;
    size_t i;
    int code;
    p->unit_count = 1;
    for (i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            p->unit_ns = lengths[i];
            return CODE_OK;
        }
    if (strncmp(text, "flop@", 5) != 0)
        return fail(CODE_INPUT,
                    "--cost-unit %s: must be ns, us, ms or flop@ and a speed like flop@10TFLOPS", text);
    code = parse_rate("--cost-unit", text + 5, "", "FLOPS", &rate);
    if (code || !rate) return CODE_INPUT;
    divisor = common_divisor(rate, 1000000000);
    p->unit_count = rate / divisor;
    p->unit_ns = 1000000000 / divisor;
    return CODE_OK;
}

// The same of the costs that are planned with.
static int parse_cost_unit(program *p) {
    int code = parse_model_unit(p);
    if (p->is_fine) p->unit_ns = 1;
    return code;
}

// Waits for copies are counted in whole units of cost. Where the model's are longer than a nanosecond, its costs
// are made so many times larger that a unit is none, or a part of one.
static int refine_costs(program *p) {
    tl_node *nodes = (tl_node *)p->graph.nodes;     // the program's own, read from its file
    uint64_t sum = 0;
    int32_t i;
    int code = parse_model_unit(p);
    if (code || p->unit_ns <= p->unit_count) return code;
    for (i = 0; i < p->graph.node_count; i++) {
        uint64_t most = UINT64_MAX / 2 / p->unit_ns;
        if (nodes[i].fwd_cost > most || nodes[i].bwd_cost > most || sum > most)
            return fail(CODE_INPUT, "--cost-unit %s: node %d: costs do not fit 64 bits in nanoseconds", p->o.cost_unit, (int)i);
        sum += nodes[i].fwd_cost + nodes[i].bwd_cost;
        nodes[i].fwd_cost *= p->unit_ns;
        nodes[i].bwd_cost *= p->unit_ns;
    }
    p->is_fine = 1;
    return CODE_OK;
}

// A cost as time, where it was told what it is; else "".
static label time_label(const program *p, double cost) {
    static const char *const names[] = { "ns", "us", "ms", "s" };
    double value = p->unit_ns ? cost * (double)p->unit_ns / (double)p->unit_count : 0;
    label l = { "" };
    int k = 0;
    while (value >= 1000 && k < 3) { value /= 1000; k++; }
    if (p->unit_ns) snprintf(l.text, sizeof l.text, " (%.4g %s)", value, names[k]);
    return l;
}

// The planner takes costs for nanoseconds. Where they are something else, a speed is told in their
// unit: so many bytes in 10^9 of them.
static int scale_rate(const program *p, const char *option, const char *text, uint64_t rate, uint64_t *scaled) {
    *scaled = 0;
    if (rate > UINT64_MAX / p->unit_ns)
        return fail(CODE_INPUT, "%s %s: does not fit 64 bits in units of cost", option, text);
    *scaled = rate * p->unit_ns / p->unit_count;
    if (*scaled) return CODE_OK;
    return fail(CODE_INPUT, "%s %s: moves less than a byte in 10^9 units of cost", option, text);
}

static int32_t count_states(const tl_graph *graph) {
    int32_t id, count = 0;
    for (id = 0; id < graph->node_count; id++) count += graph->nodes[id].state != TL_STATE_NONE;
    return count;
}

// Let the graph own its weights, and place the updates of its states.
static int own_weights(program *p) {
    static const char *const names[] = { "sgd", "momentum", "adamw" };
    tl_optimizer_desc desc;
    tl_graph owned;
    uint64_t rate = 0;
    int code = CODE_OK, k = 0;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    while (p->o.optimizer && k < 3 && strcmp(names[k], p->o.optimizer) != 0) k++;
    if (k == 3) return fail(CODE_INPUT, "--optimizer %s: must be sgd, momentum or adamw", p->o.optimizer);
    if (p->o.updates && !tl_parse_updates(p->o.updates, &desc.updates))
        return fail(CODE_INPUT, "--updates %s: must be fused or end", p->o.updates);
    desc.op = p->o.optimizer;
    desc.moment_count = k;
    desc.keeps_weights = !p->o.optimizer;
    desc.clips = p->o.clip;
    if (p->o.update_rate) {
        code = parse_rate("--update-rate", p->o.update_rate, "GB", "/s", &rate);
        if (!code) code = parse_cost_unit(p);
        if (!code) code = scale_rate(p, "--update-rate", p->o.update_rate, rate, &desc.bytes_per_second);
    }
    if (code) return code;
    if (tl_apply_optimizer(&p->env, &desc, &owned)) return fail_result(p, path_of(p));
    tl_free_graph(&p->env, &p->graph);
    p->graph = owned;
    if (count_states(&owned)) return CODE_OK;
    return fail(CODE_INPUT, "%s: %s: no node has weights (param=), and there are no states", path_of(p),
                p->o.optimizer ? "--optimizer" : "--updates");
}

// What keeping everything takes in the model as it was read, in f32 where --precision chooses something else: 100 %.
static uint64_t model_peak(const program *p) {
    if (p->has_compiled && !p->has_choice) return p->compilation.keep_all.peak_bytes;
    return p->has_choice ? p->choice.keep_all.peak_bytes : p->keep_all.peak_bytes;
}

static int parse_link(program *p) {
    int code = parse_rate("--link", p->o.link, "GB", "/s", &p->link_bytes);
    if (!code) code = parse_cost_unit(p);
    if (!code) code = scale_rate(p, "--link", p->o.link, p->link_bytes, &p->device.link_bytes_per_second);
    return code;
}

static int parse_host(program *p) {
    int code = parse_bytes("--host-budget", p->o.host_budget, model_peak(p), &p->host_bytes);
    return code ? code : parse_link(p);
}

static int parse_codec(program *p) {
    uint64_t rate = 0;
    int code;
    if (!p->o.codec) return CODE_OK;
    if (!tl_parse_codec(p->o.codec, &p->codec) || p->codec == TL_CODEC_NONE)
        return fail(CODE_INPUT, "--codec %s: must be f16, bf16 or q8", p->o.codec);
    if (!p->o.codec_rate) return CODE_OK;
    code = parse_rate("--codec-rate", p->o.codec_rate, "GB", "/s", &rate);
    if (!code) code = parse_cost_unit(p);
    if (!code) code = scale_rate(p, "--codec-rate", p->o.codec_rate, rate, &p->device.codec_bytes_per_second);
    return code;
}

static const tl_device *device_of(const program *p) {
    return p->host_bytes || p->device.codec_bytes_per_second ? &p->device : NULL;
}

// -- planning --

static void clear_progress(program *p) {
    if (p->shown > 0) fprintf(stderr, "\r%79s\r", "");
    p->shown = 0;
}

// Called by the planner now and then: draw one line on a terminal, stop after Ctrl-C.
static int on_progress(const tl_remat_progress *now, void *user) {
    program *p = (program *)user;
    double time = now_seconds();
    if (interrupted) return 1;
    if (p->near_is_enough && now->cost && now->bound_cost &&
        now->cost - now->bound_cost <= now->bound_cost / 1000) return 1;
    if (!p->terminal || time - p->start < 1 || time - p->shown < 0.1) return 0;
    p->shown = time;
    fprintf(stderr, "\r%-30.30s %3.0f %%", p->doing, 100 * ratio_of(now->work, now->work_limit));
    if (now->cost) fprintf(stderr, "  cost %.4f", ratio_of(now->cost, p->keep_all.base_cost));
    if (now->bound_cost) fprintf(stderr, "  bound %.4f", ratio_of(now->bound_cost, p->keep_all.base_cost));
    fprintf(stderr, "   ");
    fflush(stderr);
    return 0;
}

static void describe_plan(program *p, uint64_t budget, uint64_t work_limit, tl_remat_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->graph = &p->graph;
    desc->budget_bytes = budget;
    desc->inference = p->o.inference;
    desc->work_limit = work_limit;
    desc->seed = p->seed;
    desc->device = device_of(p);
    desc->host_budget_bytes = p->host_bytes;
    desc->codec = p->codec;
    desc->pool = p->pool;
    desc->form = p->form;
    desc->live = !p->in_arena;
    desc->block_bytes = p->in_arena ? p->block_bytes : 0;
    desc->in_flight = p->in_arena ? p->in_flight : 0;
    desc->banks = p->banks;
    desc->bank_count = p->in_arena ? p->o.bank_count : 0;
    desc->alignment_bytes = p->alignment;
    desc->progress = on_progress;
    desc->user = p;
}

// Plan at one budget; 0 = no limit. What it costs in work is summed up.
static tl_result make_plan(program *p, uint64_t budget, uint64_t work_limit, tl_plan *plan,
                           tl_remat_report *report) {
    tl_remat_desc desc;
    tl_result result;
    describe_plan(p, budget, work_limit, &desc);
    result = tl_plan_remat(&p->env, &desc, plan, report);
    p->work += report->work;
    return result;
}

// Choose pieces of gradients for the budget. Where nothing fits, those of the least budget.
static int choose_pieces(program *p, uint64_t call_cost, uint64_t *piece_bytes) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_result result;
    p->in_arena = !p->o.live;
    describe_plan(p, p->budget_bytes, p->work_limit, &desc);
    p->in_arena = 0;
    result = tl_choose_pieces(&p->env, &desc, call_cost, piece_bytes, &report);
    p->work += report.work;
    return result && result != TL_ERROR_INFEASIBLE ? fail_result(p, path_of(p)) : CODE_OK;
}

// Train states in pieces. 100 % stay what keeping everything takes without.
static int cut_gradients(program *p) {
    tl_pieces_desc desc;
    tl_graph graph;
    int code = CODE_OK;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.alignment_bytes = p->alignment;
    if (p->o.piece_cost) code = parse_count("--piece-cost", p->o.piece_cost, &desc.call_cost);
    if (!code && strcmp(p->o.pieces, "auto") == 0) code = choose_pieces(p, desc.call_cost, &desc.piece_bytes);
    else if (!code) code = parse_bytes("--pieces", p->o.pieces, model_peak(p), &desc.piece_bytes);
    if (code) return code;
    if (tl_apply_pieces(&p->env, &desc, &graph)) return fail_result(p, path_of(p));
    tl_free_graph(&p->env, &p->graph);
    p->graph = graph;
    p->pieces = desc;
    p->pieces.graph = NULL;
    return CODE_OK;
}

// Whether a list of words, separated by commas, has this one.
static int has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (strncmp(list, word, length) == 0 && (list[length] == ',' || !list[length])) return 1;
    return 0;
}

static int lives_in(const tl_lifetime *life, int32_t step) { return life->first_step <= step && step < life->end_step; }

// The largest sum of live bytes of keep_all where each tensor begins at a multiple of the alignment; 0 = no memory.
static uint64_t aligned_peak(program *p) {
    uint64_t most = 0, sum;
    tl_lifetimes lives;
    int32_t step, i;
    if (tl_find_lifetimes(&p->env, &p->graph, &p->keep_all, &lives)) return 0;
    for (step = 0; step < p->keep_all.step_count; step++) {
        for (sum = 0, i = 0; i < lives.count; i++) {
            const tl_lifetime *life = &lives.items[i];
            if (!lives_in(life, step) || (life->over >= 0 && lives_in(&lives.items[life->over], step))) continue;
            sum += (life->bytes + p->alignment - 1) / p->alignment * p->alignment;
        }
        most = sum > most ? sum : most;
    }
    tl_free_lifetimes(&p->env, &lives);
    return most;
}

// The fewest bytes in which a plan makes nothing again, by halves; forwards in place may take less than what keeping everything
// does. Where there is more to decide than this work allows, that is not looked for.
static uint64_t find_fewest_bytes(program *p) {
    enum { WORK = 3000000 };
    uint64_t least = 0, most = aligned_peak(p);
    p->in_arena = 1;
    while (most - least > p->alignment) {
        uint64_t middle = (least + (most - least) / 2) / p->alignment * p->alignment;
        tl_remat_report report;
        tl_plan plan;
        tl_result result = middle > least ? make_plan(p, middle, WORK, &plan, &report) : TL_ERROR_INFEASIBLE;
        if (!result && plan.cost == plan.base_cost) most = plan.arena_bytes < middle ? plan.arena_bytes : middle;
        else least = middle > least ? middle : least + p->alignment;
        if (!result) tl_free_plan(&p->env, &plan);
    }
    p->in_arena = 0;
    return most;
}

static int fail_choosing(program *p, tl_result result);

// Go on with the graph that has regions of rows as nodes.
static int form_regions(program *p) {
    tl_rows_desc desc;
    uint8_t *in_slots = (uint8_t *)calloc((size_t)p->graph.node_count, 1);
    int32_t id;
    tl_result result;
    if (!in_slots) return fail(CODE_INPUT, "no memory");
    for (id = 0; id < p->graph.node_count; id++) in_slots[id] = (uint8_t)has_word(p->o.slots, tl_name_op(&p->graph, id));
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.budget_bytes = p->budget_bytes;
    desc.alignment_bytes = p->alignment;
    desc.in_slots = in_slots;
    desc.work_limit = p->work_limit;
    result = tl_plan_rows(&p->env, &desc, &p->rows);
    free(in_slots);
    if (result) return fail_choosing(p, result);
    p->whole = p->graph;
    p->graph = p->rows.graph;       // freed with the plan of rows
    tl_free_plan(&p->env, &p->keep_all);
    if (tl_plan_keep_all(&p->env, &p->graph, 1, &p->keep_all)) return fail_result(p, path_of(p));
    if (!p->budget_bytes) p->budget_bytes = p->choice.has_fit ? p->choice.fit.ram_bytes : find_fewest_bytes(p);
    if (!p->budget_bytes) return fail(CODE_INPUT, "no memory");
    return CODE_OK;
}

static int write_json(program *p, int infeasible);
static int fail_infeasible(const program *p);
static int check_split(const program *p);

// Whether the graph has regions of rows of a training step.
static int is_cut(const program *p) { return p->rows.memory && !p->rows.inference; }

// The cost of a step whose parts cost so much each; the last part alone updates.
static uint64_t step_cost(const program *p, const tl_graph *part, int32_t parts, uint64_t cost) {
    uint64_t updates = 0;
    int32_t id;
    (void)p;
    for (id = 0; id < part->node_count && parts > 1; id++)
        if (part->nodes[id].state) updates += part->nodes[id].bwd_cost;
    return parts > 1 ? (uint64_t)parts * cost - (uint64_t)(parts - 1) * updates : cost;
}

// Choose regions for the graph at hand. Where nothing fits: those of the least budget, and *fits is 0.
static int choose_for_part(program *p, const tl_cut_desc *cut, tl_rows_choice *choice, int *fits) {
    tl_remat_desc desc;
    tl_result result;
    p->in_arena = !p->o.live;
    describe_plan(p, p->budget_bytes, p->work_limit, &desc);
    p->in_arena = 0;
    p->doing = "choosing regions";
    result = tl_choose_rows(&p->env, &desc, cut, choice);
    clear_progress(p);
    *fits = !result;
    p->work += choice->report.work;
    if (result && (result != TL_ERROR_INFEASIBLE || !choice->report.least_budget_bytes)) return fail_result(p, path_of(p));
    return CODE_OK;
}

// Whether a choice is better than the best so far: it fits, where none did; a step costs less, or takes fewer bytes.
static int is_better_choice(const tl_rows_choice *choice, uint64_t cost, int fits, const tl_rows_choice *best, uint64_t best_cost,
                            int best_fits) {
    if (!best->memory || fits != best_fits) return !best->memory || fits;
    return fits ? cost < best_cost : choice->report.least_budget_bytes < best->report.least_budget_bytes;
}

// Choose regions for every number of parts that the batch has, and keep the best in the program, with its graph.
static int choose_parts(program *p, const tl_cut_desc *cut, int *fits) {
    tl_graph whole = p->graph, part, best;
    uint64_t batch = p->o.split ? whole.batch : 1, parts, best_cost = 0;
    int code = CODE_OK;
    memset(&best, 0, sizeof best);
    *fits = 0;
    for (parts = 1; parts <= batch && parts <= INT32_MAX && !code && !interrupted; parts++) {
        tl_rows_choice choice;
        uint64_t cost;
        int fits_now;
        if (batch % parts) continue;
        if (tl_split_graph(&p->env, &whole, (int32_t)parts, &part)) {
            if (p->env.error.code == TL_ERROR_NO_MEMORY) code = fail_result(p, path_of(p));
            continue;       // some tensor does not divide
        }
        p->graph = part;
        code = choose_for_part(p, cut, &choice, &fits_now);
        cost = code ? 0 : step_cost(p, &part, (int32_t)parts, choice.report.cost);
        if (!code && is_better_choice(&choice, cost, fits_now, &p->rows_choice, best_cost, *fits)) {
            tl_rows_choice worse = p->rows_choice;
            p->rows_choice = choice;
            choice = worse;
            part = best;
            best = p->graph;
            best_cost = cost;
            *fits = fits_now;
            p->parts = (int32_t)parts;
        }
        tl_free_rows_choice(&p->env, &choice);
        tl_free_graph(&p->env, &part);
    }
    p->graph = best;
    tl_free_graph(&p->env, &whole);
    return code;
}

// Choose which regions of rows a training step is cut into, and go on with the graph that has these as nodes. Where
// nothing fits, these are the regions of the least budget.
static int choose_rows(program *p) {
    tl_cut_desc cut;
    int code = p->o.split ? check_split(p) : CODE_OK, fits;
    memset(&cut, 0, sizeof cut);
    cut.alignment_bytes = p->alignment;
    if (!code && p->o.piece_cost) code = parse_count("--piece-cost", p->o.piece_cost, &cut.call_cost);
    if (!code) code = choose_parts(p, &cut, &fits);
    if (code) return code;
    cut.graph = &p->graph;
    cut.cuts = p->rows_choice.cuts;
    cut.cut_count = p->rows_choice.cut_count;
    if (tl_cut_rows(&p->env, &cut, &p->rows)) return fail_result(p, path_of(p));
    p->whole = p->graph;
    p->graph = p->rows.graph;       // freed with the plan of rows
    p->report = p->rows_choice.report;
    if (fits) return CODE_OK;
    code = p->o.json ? write_json(p, 1) : CODE_OK;
    return code ? code : fail_infeasible(p);
}

// The plans of several budgets share what they find.
static int share_plans(program *p) {
    if (p->pool || !tl_init_remat_pool(&p->env, &p->pool)) return CODE_OK;
    return fail_result(p, path_of(p));
}

static void list_policies(void) {
    size_t length = strlen(policy_names);
    int kind;
    for (kind = 0; kind <= TL_POLICY_CHAIN && length < sizeof policy_names; kind++)
        length += (size_t)snprintf(policy_names + length, sizeof policy_names - length, " %s",
                                   tl_name_policy((tl_policy_kind)kind));
}

static int parse_policy(program *p) {
    if (tl_parse_policy(p->o.policy, &p->policy) && p->policy <= TL_POLICY_CHAIN) return CODE_OK;
    return fail(CODE_INPUT, "--policy %s: must be one of%s", p->o.policy,
                policy_names + strspn(policy_names, " ") - 1);
}

static tl_result make_policy_plan(program *p, tl_policy_kind policy, uint64_t budget, tl_plan *plan) {
    tl_policy_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.policy.kind = policy;
    desc.budget_bytes = budget;
    desc.inference = p->o.inference;
    desc.live = !p->in_arena;
    desc.alignment_bytes = p->alignment;
    return tl_plan_policy(&p->env, &desc, plan);
}

// Plan and keep the figures alone.
static tl_result try_budget(program *p, uint64_t budget, uint64_t work_limit, tl_plan *figures,
                            tl_remat_report *report) {
    tl_result result = make_plan(p, budget, work_limit, figures, report);
    tl_plan made = *figures;
    tl_free_plan(&p->env, &made);
    figures->steps = NULL;
    figures->memory = NULL;
    figures->step_count = 0;
    return result;
}

// -- lifetimes: what lives from which step to which, as the simulator counts it --

#define LIVES(X) \
    X(LIFE_INPUT,    "graph input")   \
    X(LIFE_STATE,    "state")         \
    X(LIFE_FIRST,    "activation")    \
    X(LIFE_AGAIN,    "made again")    \
    X(LIFE_FETCHED,  "fetched from the host") \
    X(LIFE_GRADIENT, "gradient")      \
    X(LIFE_SAVED,    "saved state")   \
    X(LIFE_SCRATCH,  "scratch of the call")

#define LIFE_ENUM(id, name) id,
#define LIFE_NAME(id, name) name,
typedef enum life_kind { LIVES(LIFE_ENUM) LIFE_COUNT } life_kind;
static const char *const life_names[] = { LIVES(LIFE_NAME) };

typedef struct life {
    int32_t  kind;         // life_kind
    int32_t  node, output; // output -1 = of the whole node
    int32_t  first, last;  // steps, both counted
    uint64_t bytes, offset;
} life;

typedef struct lives {
    life     *items;        // [count] in the order in which they begin
    int32_t   count;
    uint64_t *live_bytes;   // [step_count] highest live bytes during each step
    tl_report report;
} lives;

// What a lifetime is called here; LIFE_COUNT = not shown: on the host, or in no plan without loss.
static life_kind kind_of_life(const tl_plan *plan, const tl_lifetime *lifetime) {
    switch (lifetime->use) {
    case TL_USE_INPUT: return LIFE_INPUT;
    case TL_USE_STATE: return LIFE_STATE;
    case TL_USE_OUTPUT: break;
    case TL_USE_GRADIENT: return LIFE_GRADIENT;
    case TL_USE_SAVED: return LIFE_SAVED;
    case TL_USE_SECOND:
    case TL_USE_SCRATCH: return LIFE_SCRATCH;
    case TL_USE_COMPRESSED:
    case TL_USE_HOST:
    case TL_USE_COUNT: return LIFE_COUNT;
    }
    if (plan->steps[lifetime->first_step].kind == TL_STEP_FETCH) return LIFE_FETCHED;
    return lifetime->occurrence ? LIFE_AGAIN : LIFE_FIRST;
}

static void free_lives(lives *l) {
    free(l->items);
    free(l->live_bytes);
    memset(l, 0, sizeof *l);
}

// Find all lifetimes of the plan; release with free_lives.
static int find_lives(program *p, lives *l) {
    const tl_plan *plan = &p->plan;
    tl_simulate_desc desc;
    int32_t i;
    memset(l, 0, sizeof *l);
    if (tl_find_lifetimes(&p->env, &p->graph, plan, &p->lifetimes)) return fail_result(p, path_of(p));
    l->items = (life *)malloc(((size_t)p->lifetimes.count + 1) * sizeof *l->items);
    l->live_bytes = (uint64_t *)calloc((size_t)plan->step_count + 1, sizeof *l->live_bytes);
    for (i = 0; l->items && i < p->lifetimes.count; i++) {
        const tl_lifetime *from = &p->lifetimes.items[i];
        life *item = &l->items[l->count];
        item->kind = (int32_t)kind_of_life(plan, from);
        item->node = from->node;
        item->output = item->kind == LIFE_SAVED || item->kind == LIFE_SCRATCH ? -1 : from->output;
        item->first = from->first_step;
        item->last = from->end_step > from->first_step ? from->end_step - 1 : from->first_step;
        item->bytes = from->bytes;
        item->offset = from->offset;
        l->count += item->kind != LIFE_COUNT;
    }
    if (!l->items || !l->live_bytes) return fail(CODE_INPUT, "no memory to follow the plan");
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.plan = plan;
    desc.device = device_of(p);
    desc.live_bytes = l->live_bytes;
    return tl_simulate_plan(&p->env, &desc, &l->report) ? fail_result(p, path_of(p)) : CODE_OK;
}

// -- report --

// Where the report goes: standard output, unless a file goes there. An explanation that was asked
// for comes on standard error then.
static FILE *report_stream(const program *p) {
    const char *const files[] = { p->o.schedule, p->o.json, p->o.c_table, p->o.svg, p->o.html, p->o.lifetimes,
                                  p->o.places };
    size_t i;
    for (i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] && strcmp(files[i], "-") == 0) return p->o.explain ? stderr : NULL;
    return stdout;
}

static void print_head(const program *p, FILE *out) {
    fprintf(out, "%s: %d nodes, %s\n\n", p->model, (int)p->graph.node_count,
            p->o.inference ? "inference" : "training");
}

// A cost of the plan as one of a step.
static uint64_t whole_step(const program *p, uint64_t cost) {
    return is_cut(p) ? step_cost(p, &p->graph, p->parts, cost) : cost;
}

static void print_row(const program *p, FILE *out, const char *name, uint64_t bytes, uint64_t cost) {
    fprintf(out, "%-12s %20llu %12s %8.2f %%", name, (ull)bytes, bytes_label(bytes).text,
            100 * ratio_of(bytes, model_peak(p)));
    if (cost) fprintf(out, " %12.6f", ratio_of(cost, p->keep_all.base_cost));
    fprintf(out, "\n");
}

static label arena_label(const program *p) {
    const tl_places_report *places = &p->places;
    label l = { "no arena is smaller" };
    if (places->arena_bytes != places->bound_bytes)
        snprintf(l.text, sizeof l.text, "at most %llu bytes too large", (ull)(places->arena_bytes - places->bound_bytes));
    return l;
}

static label order_label(const program *p) {
    label l = { "none takes less" };
    if (!p->order.proven) snprintf(l.text, sizeof l.text, "all take %llu bytes or more", (ull)p->order.bound_bytes);
    return l;
}

static int32_t count_readers(const tl_graph *graph, int32_t tensor) {
    int32_t i, count = 0;
    for (i = 0; i < graph->input_count; i++) count += graph->inputs[i].tensor == tensor;
    return count;
}

// How many pieces the gradient of a trained state has: 1 = it is whole. 0 = the node is no trained state.
static int32_t count_pieces(const tl_node *node) {
    if (node->state == TL_STATE_PIECES) return (node->weight_rows + node->piece_rows - 1) / node->piece_rows;
    return node->state == TL_STATE_TRAINED;
}

static uint64_t largest_gradient(const program *p, const tl_node *state) {
    uint64_t bytes = p->graph.outputs[state->first_output].bytes;
    return count_pieces(state) > 1 ? bytes / (uint64_t)state->weight_rows * (uint64_t)state->piece_rows : bytes;
}

// Why a gradient of more bytes than a piece is whole. NULL: it is not.
static const char *whole_because(const program *p, const tl_node *state) {
    if (count_pieces(state) != 1 || largest_gradient(p, state) <= p->pieces.piece_bytes) return NULL;
    if (state->weight_rows < 2) return "it has no rows (wrows)";
    if (count_readers(&p->graph, state->first_output) > 1) return "several nodes read its weight";
    return "pieces of it would take no fewer bytes";
}

static void print_pieces(const program *p, FILE *out) {
    const tl_node *nodes = p->graph.nodes;
    int32_t id, states = 0, cut = 0, calls = 0;
    uint64_t largest = 0;
    for (id = 0; id < p->graph.node_count; id++) {
        int32_t pieces = count_pieces(&nodes[id]);
        states += pieces > 0;
        if (pieces < 2) continue;
        cut++;
        calls += 2 * pieces - 1;
        if (largest_gradient(p, &nodes[id]) > largest) largest = largest_gradient(p, &nodes[id]);
    }
    fprintf(out, "%d of %d gradients of states in pieces", (int)cut, (int)states);
    if (cut) fprintf(out, " of at most %llu bytes: %d calls more", (ull)largest, (int)calls);
    fprintf(out, "\n");
    for (id = 0; id < p->graph.node_count; id++)
        if (whole_because(p, &nodes[id]))
            fprintf(out, "  %s is whole, %llu bytes: %s\n", tl_name_node(&p->graph, id),
                    (ull)largest_gradient(p, &nodes[id]), whole_because(p, &nodes[id]));
}

// The bytes of the rings of a region, and the rows of its calls.
static uint64_t count_rings(const program *p, int32_t id, uint64_t *block_rows) {
    uint64_t bytes = 0;
    int32_t at;
    *block_rows = 0;
    for (at = p->rows.first_members[id]; at < p->rows.first_members[id + 1]; at++) {
        const tl_row_member *m = &p->rows.members[at];
        if (m->ring_rows && m->shares < 0) bytes += m->ring_rows * m->row_bytes;
        if (m->block_rows > *block_rows) *block_rows = m->block_rows;
    }
    return bytes;
}

static int32_t count_row_classes(const tl_rows_choice *c) {
    int32_t number, k, count = 0;
    for (number = 0; number < c->class_count; number++) {
        for (k = 0; k < c->cut_count && c->classes[k] != number; k++) {}
        count += k < c->cut_count;
    }
    return count;
}

static uint64_t count_blocks(const tl_row_member *m) { return (m->rows - 1) / m->block_rows + 1; }

// What each class of regions is cut into.
static void print_row_classes(const program *p, FILE *out) {
    const tl_rows_choice *c = &p->rows_choice;
    int32_t number, k;
    fprintf(out, "%d region%s of rows, of %d of the %d classes that were found; %d choices planned; %llu calls of kernels\n",
            (int)c->cut_count, c->cut_count == 1 ? "" : "s", (int)count_row_classes(c), (int)c->class_count,
            (int)c->tried_count, (ull)p->rows.call_count);
    for (number = 0; number < c->class_count; number++) {
        const tl_row_member *m;
        int32_t id, first = -1, alike = 0;
        for (k = 0; k < c->cut_count; k++) {
            if (c->classes[k] == number && first < 0) first = k;
            alike += c->classes[k] == number;
        }
        if (first < 0) continue;
        id = p->rows.nodes[c->cuts[first].last];
        m = &p->rows.members[p->rows.first_members[id]];
        fprintf(out, "  %s to %s: %d nodes, %llu blocks of at most %llu of %llu rows", tl_name_node(&p->whole, c->cuts[first].first),
                tl_name_node(&p->whole, c->cuts[first].last), (int)(p->rows.first_members[id + 1] - p->rows.first_members[id]),
                (ull)count_blocks(m), (ull)m->block_rows, (ull)m->rows);
        if (alike > 1) fprintf(out, ", and %d like it", (int)alike - 1);
        fprintf(out, "\n");
    }
}

static void print_rows(const program *p, FILE *out) {
    int32_t id;
    if (is_cut(p)) {
        print_row_classes(p, out);
        return;
    }
    fprintf(out, "%d region%s of rows: live bytes %llu instead of %llu, %llu calls of kernels\n", (int)p->rows.region_count,
            p->rows.region_count == 1 ? "" : "s",
            (ull)p->rows.peak_bytes, (ull)p->rows.whole_bytes, (ull)p->rows.call_count);
    for (id = 0; id < p->rows.graph.node_count; id++) {
        int32_t first = p->rows.first_members[id], count = p->rows.first_members[id + 1] - first;
        uint64_t block_rows, bytes = count ? count_rings(p, id, &block_rows) : 0;
        if (!count) continue;
        fprintf(out, "  %s to %s: %d nodes, calls for at most %llu rows, rings of %llu bytes\n",
                tl_name_node(&p->whole, p->rows.members[first].node),
                tl_name_node(&p->whole, p->rows.members[first + count - 1].node), (int)count, (ull)block_rows, (ull)bytes);
    }
}

static void print_plan(const program *p, FILE *out, const tl_report *counts) {
    const tl_plan *plan = &p->plan;
    int bank;
    print_head(p, out);
    fprintf(out, "%-12s %20s %12s %10s %12s\n", "", "bytes", "",
            p->has_choice ? "all in f32" : p->has_compiled ? "the model" : "keep all", "cost");
    if (p->has_compiled && !p->has_choice) print_row(p, out, "the model", p->compilation.keep_all.peak_bytes, 0);
    if (p->has_choice) print_row(p, out, "all in f32", p->choice.keep_all.peak_bytes, 0);
    print_row(p, out, "keep all", p->keep_all.peak_bytes, p->keep_all.cost);
    if (p->budget_bytes) print_row(p, out, "budget", p->budget_bytes, 0);
    if (p->o.order) print_row(p, out, "its arena", p->order.listing_arena_bytes, 0);
    if (p->budget_bytes || p->o.policy || p->o.order || p->has_compiled)
        print_row(p, out, p->o.policy ? p->o.policy : p->o.order ? "order" : "plan", plan->peak_bytes,
                  whole_step(p, plan->cost));
    print_row(p, out, "arena", plan->arena_bytes, 0);
    for (bank = 0; bank < p->o.bank_count; bank++) {
        char name[16];
        snprintf(name, sizeof name, "  bank %d", bank);
        print_row(p, out, name, p->places.bank_bytes[bank], 0);
    }
    if (p->host_bytes) print_row(p, out, "host copies", plan->host_peak_bytes, 0);
    fprintf(out, "%-57s %12.6f\n\n", "lower bound, which no schedule undercuts",
            ratio_of(whole_step(p, plan->bound_cost), p->keep_all.base_cost));
    fprintf(out, "cost %llu of %llu%s, gap to the bound: %s\n", (ull)whole_step(p, plan->cost), (ull)p->keep_all.base_cost,
            p->o.cost_unit ? time_label(p, (double)whole_step(p, plan->cost)).text : "",
            gap_label(whole_step(p, plan->cost), whole_step(p, plan->bound_cost)).text);
    if (p->o.order) fprintf(out, "order of the forwards: %s\n", order_label(p).text);
    if (plan->block_count)
        fprintf(out, "%d allocations, placed at offsets in %d blocks: %s\n", (int)plan->offset_count,
                (int)plan->block_count, arena_label(p).text);
    else
        fprintf(out, "%d allocations, placed at offsets in one arena: %s\n", (int)plan->offset_count,
                arena_label(p).text);
    if (p->o.bank_count)
        fprintf(out, "moving costs %llu, in no banks of these bytes less than %llu\n", (ull)p->places.cost,
                (ull)p->places.bound_cost);
    fprintf(out, "%d steps: %d forwards, of these %d made again, %d backwards\n", (int)plan->step_count,
            (int)counts->forward_count, (int)counts->recompute_count, (int)counts->backward_count);
    if (p->o.pieces) print_pieces(p, out);
    if (p->o.rows) print_rows(p, out);
    if (p->o.c_code)
        fprintf(out, "arrays of the code: %llu bytes of RAM (banks %llu, weights %llu, gradients %llu, optimizer %llu), %llu of constants\n",
                (ull)p->code.ram_bytes, (ull)p->code.bank_bytes, (ull)p->code.weight_bytes, (ull)p->code.gradient_bytes,
                (ull)p->code.state_bytes, (ull)p->code.constant_bytes);
    if (p->o.kernels)
        fprintf(out, "kernels of the code: %llu bytes of constant tables on top of these%s%s", (ull)p->table_bytes,
                has_limits(&p->o) ? " and of --flash, as their code" : "", p->scratch_bytes ? "" : "\n");
    if (p->scratch_bytes) fprintf(out, ", %llu bytes of RAM for CMSIS-NN\n", (ull)p->scratch_bytes);
    if (plan->in_flight > 1)
        fprintf(out, "up to %d steps under way together: what a step frees is taken again %d steps later\n",
                (int)plan->in_flight, (int)plan->in_flight);
    if (p->host_bytes)
        fprintf(out, "%d copies to the host and back; waiting for them costs %.6f\n", (int)counts->copy_count,
                ratio_of(counts->cost - counts->compute_cost, p->keep_all.base_cost));
    fprintf(out, "%.1f million steps of work, %.2f s\n", (double)p->work * 1e-6, now_seconds() - p->start);
    if (plan->repeat_count > 1)
        fprintf(out, "all of this is of one part of the batch; a step runs %d of them\n",
                (int)plan->repeat_count);
    if (!p->budget_bytes && !p->o.policy && !p->o.order)
        fprintf(out, "--budget 60%% plans with less memory, --pareto draws the curve of memory against cost\n");
}

static const char *limiting_node(const program *p) {
    return p->report.limiting_node >= 0 ? tl_name_node(&p->graph, p->report.limiting_node) : NULL;
}

static int fail_infeasible(const program *p) {
    const tl_remat_report *r = &p->report;
    const char *node = limiting_node(p);
    label proof = { "and none takes less" };
    if (is_cut(p))      // the proof is one for these regions alone
        return fail(CODE_INFEASIBLE, "%s: no plan was found within %llu bytes; the least that one was found for is %llu bytes, "
                    "because of node %s, of all regions of rows that were tried%s", path_of(p), (ull)p->budget_bytes,
                    (ull)r->least_budget_bytes, node ? node : "-", interrupted ? " (stopped early)" : "");
    if (r->least_budget_bytes != r->bound_budget_bytes)
        snprintf(proof.text, sizeof proof.text, "and all take %llu or more", (ull)r->bound_budget_bytes);
    return fail(CODE_INFEASIBLE,
                "%s: no plan %s %llu bytes; the least that one was found for is %llu bytes%s%s, %s%s",
                path_of(p), r->proven ? "fits" : "was found within", (ull)p->budget_bytes,
                (ull)r->least_budget_bytes, node ? ", because of node " : "", node ? node : "",
                proof.text, interrupted ? " (stopped early)" : "");
}

// -- writing --

static int fail_write(const writer *w) {
    return fail(CODE_INPUT, "%s: cannot be written: %s", w->path, strerror(errno));
}

static int open_writer(const char *path, writer *w) {
    tl_sink own;
    memset(w, 0, sizeof *w);
    w->path = path;
    w->sink.write = write_file;
    w->sink.user = w;
    if (strcmp(path, "-") == 0) {
        w->file = stdout;
        return CODE_OK;
    }
    if (tl_init_file_sink(NULL, path, &w->target, &own) == TL_ERROR_INVALID_ARG) errno = ENAMETOOLONG;
    w->file = (FILE *)w->target.file;
    return w->file ? CODE_OK : fail_write(w);
}

// Where the new file is not whole, the old one stays.
static int close_writer(program *p, writer *w) {
    int is_out = w->file == stdout, failed = w->result == TL_ERROR_IO;
    errno = 0;
    if (is_out) failed |= ferror(stdout) || fflush(stdout);
    else failed |= tl_finish_file_sink(NULL, &w->target, w->result) == TL_ERROR_IO;
    if (!w->reason) w->reason = errno ? errno : EIO;
    if (w->result && !failed) return fail_result(p, is_out ? "standard output" : w->path);
    if (!failed) return CODE_OK;
    errno = w->reason;
    return is_out ? fail(CODE_INPUT, "standard output: cannot be written") : fail_write(w);
}

// Give up what was written: nothing is left of it.
static void drop_writer(writer *w) {
    if (w->file != stdout) (void)tl_finish_file_sink(NULL, &w->target, TL_ERROR_IO);
}

// One row for each allocation: what tools that replay a schedule can check without this program.
static void put_life_row(writer *w, const tl_lifetime *life) {
    put(w, "%s,%s,%d,%d,%d", life->use == TL_USE_HOST ? "host" : "device", tl_name_use(life->use), (int)life->node,
        (int)life->output, (int)life->occurrence);
}

static int write_lifetimes(program *p) {
    const tl_lifetimes *lifetimes = &p->lifetimes;
    writer w;
    int32_t i;
    int code = open_writer(p->o.lifetimes, &w);
    if (code) return code;
    put(&w, "tier,kind,node,index,occurrence,bytes,first,end,slot\n");
    for (i = 0; i < lifetimes->count; i++) {
        const tl_lifetime *life = &lifetimes->items[i];
        put_life_row(&w, life);
        put(&w, ",%llu,%d,%d,%d\n", (ull)life->bytes, (int)life->first_step, (int)life->end_step, (int)life->slot);
    }
    return close_writer(p, &w);
}

// Where an allocation lies in its bank, whose blocks follow each other.
static uint64_t bank_offset(const tl_plan *plan, const tl_lifetime *life) {
    uint64_t offset = life->offset;
    int32_t k;
    if (life->block < 0) return offset;
    offset -= plan->blocks[life->block].offset;
    for (k = 0; k < life->block; k++)
        if (plan->blocks[k].tier == plan->blocks[life->block].tier && plan->blocks[k].bank == life->bank)
            offset += plan->blocks[k].bytes;
    return offset;
}

static int write_places(program *p) {
    const tl_lifetimes *lifetimes = &p->lifetimes;
    writer w;
    int32_t i;
    int code = open_writer(p->o.places, &w);
    if (code) return code;
    put(&w, "tier,kind,node,index,occurrence,bank,offset,block,slot\n");
    for (i = 0; i < lifetimes->count; i++) {
        const tl_lifetime *life = &lifetimes->items[i];
        put_life_row(&w, life);
        put(&w, ",%d,%llu,%d,%d\n", (int)life->bank, (ull)bank_offset(&p->plan, life), 
            life->block < 0 ? 0 : (int)life->block, (int)life->slot);
    }
    return close_writer(p, &w);
}

static int write_schedule(program *p) {
    writer w;
    size_t length = tl_print_schedule(&p->plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    int code;
    if (!text) return fail(CODE_INPUT, "no memory to print the schedule");
    tl_print_schedule(&p->plan, text, length + 1);
    code = open_writer(p->o.schedule, &w);
    if (!code) {
        put_text(&w, text, length);
        code = close_writer(p, &w);
    }
    free(text);
    return code;
}

static int write_c_table(program *p) {
    writer w;
    tl_table_desc desc;
    char name[49] = "";
    int code = open_writer(p->o.c_table, &w);
    if (code) return code;
    write_c_name(p->model, name);
    memset(&desc, 0, sizeof desc);
    desc.name = p->o.name ? p->o.name : name;
    desc.is_narrow = p->o.compact;
    desc.omit_names = p->o.no_names;
    w.result = tl_write_table(&p->env, &p->graph, &p->plan, &desc, w.sink);
    return close_writer(p, &w);
}

#include "tiny_code.h"

// The graph whose nodes calls name: with --rows that without regions.
static const tl_graph *code_graph(const program *p) { return p->rows.memory ? &p->whole : &p->graph; }

static tiny_kernels code_kernels(const options *o) {
    return !o->kernels ? TINY_KERNELS_NONE : strcmp(o->kernels, "own") ? TINY_KERNELS_CMSIS : TINY_KERNELS_OWN;
}

// Read --weights, once.
static int read_weights(program *p) {
    static tiny_model tiny;
    if (p->tiny) return CODE_OK;
    p->tiny = &tiny;
    tiny.weights_path = p->o.weights;
    tiny.ranges_path = p->o.ranges;
    return tiny_read_weights(&tiny);
}

// Read --weights and --ranges, and make the constants of the graph that schemes were chosen for.
static int read_constants(program *p) {
    int code;
    if (!p->o.inference) return fail(CODE_INPUT, "--weights: is for --inference, not for training");
    code = read_weights(p);
    if (code) return code;
    p->tiny->graph = &p->graph;
    p->tiny->model = p->has_choice ? &p->choice.model : &p->graph;
    p->tiny->applied = p->has_choice ? &p->choice.applied : NULL;
    return tiny_read(p->tiny, p->model_hash);
}

// Write the files of --weights and --kernels, behind those of the plan.
static int put_tiny_files(program *p, tiny_code *c, writer *constants, writer *scales, writer *kernels) {
    tiny_kernels which = code_kernels(&p->o);
    int code = which ? tiny_check_kernels(c, which) : CODE_OK;
    if (!code && which) code = tiny_check_shapes(c);
    if (!code && which) code = tiny_check_factors(c);
    if (code) return code;
    c->w = constants;
    tiny_put_constants(c);
    c->w = scales;
    tiny_put_scales(c);
    c->w = kernels;
    if (which) tiny_put_kernels(c, which);
    p->table_bytes = c->table_bytes;
    p->scratch_bytes = c->scratch_bytes;
    return CODE_OK;
}

// Write all files of the code into their writers.
static int put_c_code(program *p, writer files[CODE_FILES], char **kernels, uint64_t *offsets) {
    const tl_graph *graph = code_graph(p);
    tl_code_desc desc;
    tl_plan plan = p->plan;
    tiny_code c;
    memset(&desc, 0, sizeof desc);
    memset(&c, 0, sizeof c);
    desc.name = p->o.c_code;
    desc.form = p->code_form;
    desc.state_count = p->code_states;
    if (p->code_batches) plan.repeat_count = p->code_batches;
    desc.rows = p->rows.memory ? &p->rows : NULL;
    desc.figures = &p->code;
    desc.kernels = (const char *const *)kernels;
    desc.stored_offsets = offsets;
    files[0].result = tl_write_plan_code(&p->env, graph, &plan, &desc, files[0].sink, files[1].sink);
    if (files[0].result || !p->tiny) return CODE_OK;
    p->tiny->graph = graph;
    c.t = p->tiny;
    c.rows = desc.rows;
    c.name = p->o.c_code;
    c.kernels = desc.kernels;
    c.offsets = offsets;
    c.constant_bytes = p->code.constant_bytes;
    return put_tiny_files(p, &c, &files[2], &files[3], &files[4]);
}

// All files are written whole, or none is.
static int write_c_code(program *p) {
    static writer files[CODE_FILES];
    const char *const paths[] = { p->o.code_header, p->o.code_source, p->o.code_constants, p->o.code_scales, p->o.code_kernels };
    const tl_attributes *a = code_graph(p)->attributes;
    uint64_t *offsets = (uint64_t *)calloc((size_t)(a ? a->stored_count : 0) + 1, sizeof *offsets);
    char **kernels = p->has_choice ? name_kernels(&p->choice.applied) : NULL;
    int count = 0, code = CODE_OK, closed = 0, k;
    if (!offsets || (p->has_choice && !kernels)) code = fail(CODE_INPUT, "no memory for --c-code");
    for (; !code && count < CODE_FILES && paths[count]; count++) code = open_writer(paths[count], &files[count]);
    if (!code) code = put_c_code(p, files, kernels, offsets);
    else if (count) count--;        // the last one could not be opened
    for (k = 0; k < count && !code; k++)
        if (!files[k].result && (fflush(files[k].file) || ferror(files[k].file))) files[k].result = TL_ERROR_IO;
    for (k = 0; k < count && !code; k++)
        if (files[k].result) {
            code = close_writer(p, &files[k]);
            closed = 1 << k;
        }
    for (k = 0; k < count; k++) {
        if (closed >> k & 1) continue;
        if (code) drop_writer(&files[k]);
        else code = close_writer(p, &files[k]);
    }
    free_kernels(kernels, p->has_choice ? p->choice.applied.graph.node_count : 0);
    free(offsets);
    return code;
}

// The graph with costs in nanoseconds, which is what the axis of the picture says beside copies; what
// does not fit is drawn as long as it can be.
static tl_node *time_nodes(const program *p) {
    size_t count = (size_t)p->graph.node_count, i;
    tl_node *nodes = (tl_node *)malloc(count * sizeof *nodes);
    for (i = 0; nodes && i < count; i++) {
        uint64_t most = UINT64_MAX / 4 / count / p->unit_ns;
        nodes[i] = p->graph.nodes[i];
        if (nodes[i].fwd_cost > most) nodes[i].fwd_cost = most;
        if (nodes[i].bwd_cost > most) nodes[i].bwd_cost = most;
        nodes[i].fwd_cost = nodes[i].fwd_cost * p->unit_ns / p->unit_count;
        nodes[i].bwd_cost = nodes[i].bwd_cost * p->unit_ns / p->unit_count;
    }
    return nodes;
}

static int write_plan_picture(program *p) {
    tl_svg_line lines[2];
    tl_svg_style style;
    writer w;
    tl_graph timed = p->graph;
    tl_device device = p->device;
    tl_node *nodes = p->host_bytes ? time_nodes(p) : NULL;
    int code;
    if (p->host_bytes && !nodes) return fail(CODE_INPUT, "no memory to draw");
    memset(&style, 0, sizeof style);
    style.title = p->model;
    style.lines = lines;
    lines[style.line_count].label = "keep all";
    lines[style.line_count++].bytes = p->keep_all.peak_bytes;
    lines[style.line_count].label = "budget";
    lines[style.line_count].bytes = p->budget_bytes;
    style.line_count += p->budget_bytes > 0;
    code = open_writer(p->o.svg, &w);
    if (!code) {
        if (nodes) timed.nodes = nodes;
        device.link_bytes_per_second = p->link_bytes;
        w.result = tl_write_plan_svg(&p->env, &timed, &p->plan, p->host_bytes ? &device : NULL, &style, w.sink);
        code = close_writer(p, &w);
    }
    free(nodes);
    return code;
}

// -- json --

static void put_cost_json(writer *w, uint64_t cost, uint64_t base_cost, uint64_t bound) {
    put(w, "\"total_cost\": %llu, \"cost_ratio\": %.9f, \"lower_bound_cost\": %llu, \"gap\": ", (ull)cost,
        ratio_of(cost, base_cost), (ull)bound);
    if (gap_of(cost, bound) < 0) put(w, "null");
    else put(w, "%.9g", gap_of(cost, bound));
    put(w, ", \"proven_optimal\": %s", cost == bound ? "true" : "false");
}

static void put_head_json(const program *p, writer *w) {
    put(w, "{\"model\": ");
    put_json_text(w, p->model);
    put(w, ", \"nodes\": %d", (int)p->graph.node_count);
}

static void put_floor_json(const program *p, writer *w) {
    if (p->report.least_budget_bytes)
        put(w, ", \"minimal_budget_bytes\": %llu", (ull)p->report.least_budget_bytes);
    else put(w, ", \"minimal_budget_bytes\": null");
    put(w, ", \"limiting_node\": ");
    if (limiting_node(p)) put_json_text(w, limiting_node(p));
    else put(w, "null");
}

static void put_fit_json(writer *w, const tl_precision_fit *fit) {
    put(w, "{\"ram_bytes\": %llu, \"flash_bytes\": %llu, \"loss\": %.17g, \"cost\": %llu, \"minimized\": \"%s\", ",
        (ull)fit->ram_bytes, (ull)fit->flash_bytes, fit->loss, (ull)fit->cost, tl_name_measure(fit->minimized));
    if (fit->minimized == TL_MEASURE_LOSS) put(w, "\"lower_bound\": %.17g", fit->bound_loss);
    else put(w, "\"lower_bound\": %llu", (ull)fit->bound);
    put(w, ", \"proven\": %s, \"schemes\": [", fit->proven ? "true" : "false");
    for (int32_t i = 0; i < fit->plan.node_count; i++)
        put(w, "%s\"%s\"", i ? ", " : "", tl_name_scheme(fit->plan.nodes[i].scheme));
    put(w, "]}");
}

// What was chosen, as the library prints it.
static void put_choice_json(const program *p, writer *w) {
    size_t length = tl_print_precision_json(&p->choice.model, &p->choice.plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    if (!text) {
        w->result = TL_ERROR_NO_MEMORY;
        return;
    }
    tl_print_precision_json(&p->choice.model, &p->choice.plan, text, length + 1);
    if (p->choice.has_fit) {
        put(w, ", \"limits\": ");
        put_fit_json(w, &p->choice.fit);
    }
    while (length && text[length - 1] == '\n') length--;
    put(w, ", \"f32_peak_bytes\": %llu, \"precision\": ", (ull)p->choice.keep_all.peak_bytes);
    put_text(w, text, length);
    free(text);
}

// Formats where they were chosen with the rest: --precision, --ram and --flash choose them before, and tell them elsewhere.
static void put_compile_choice_json(const program *p, writer *w, const tl_compile_choice *choice) {
    int k, is_first = 1;
    put(w, "{\"part_count\": %d, \"fused_count\": %d, \"conversion_count\": %d", (int)choice->part_count,
        (int)choice->fused_count, (int)choice->conversion_count);
    put(w, ", \"copy_count\": %d, \"compressed_count\": %d, \"formats\": {", (int)choice->copy_count,
        (int)choice->compressed_count);
    for (k = 0; k < TL_FORMAT_COUNT && !p->has_choice; k++) {
        if (!choice->format_counts[k]) continue;
        put(w, "%s\"%s\": %d", is_first ? "" : ", ", tl_name_format((tl_format)k),
            (int)choice->format_counts[k]);
        is_first = 0;
    }
    put(w, "}, \"loss\": %.17g, \"cost\": %llu, \"arena_bytes\": %llu}", choice->loss, (ull)choice->cost,
        (ull)choice->arena_bytes);
}

static void put_strategies_json(const program *p, writer *w) {
    const tl_recommendation *recommendation = &p->compilation.recommendation;
    char strategy[1024];
    int32_t k;
    put(w, ", \"strategies\": [");
    for (k = 0; k < recommendation->row_count; k++) {
        const tl_recommend_row *row = &recommendation->rows[k];
        tl_print_strategy_json(&row->strategy, strategy, sizeof strategy);
        put(w, "%s\n  {\"strategy\": %s, \"outcome\": \"%s\", \"choice\": ", k ? "," : "", strategy,
            tl_name_outcome(row->outcome));
        if (row->choice.cost || row->choice.part_count) put_compile_choice_json(p, w, &row->choice);
        else put(w, "null");
        put(w, "}");
    }
    put(w, "\n]");
}

// What was compiled; costs are of a step, of all parts.
static void put_compiled_json(const program *p, writer *w) {
    const compilation *c = &p->compilation;
    put(w, ", \"compiled\": {\"model_nodes\": %d, \"model_peak_bytes\": %llu, \"choice\": ",
        (int)c->model.node_count, (ull)c->keep_all.peak_bytes);
    put_compile_choice_json(p, w, &c->compiled.choice);
    put(w, ", \"runner_up\": ");
    if (c->compiled.runner_up.cost) put_compile_choice_json(p, w, &c->compiled.runner_up);
    else put(w, "null");
    put(w, ", \"base_cost\": %llu, \"bound_cost\": %llu, \"gap_ratio\": %.9g", (ull)c->compiled.base_cost,
        (ull)c->compiled.bound_cost, c->compiled.gap_ratio);
    put(w, ", \"proven\": %s, \"tried_count\": %d", c->compiled.proven ? "true" : "false",
        (int)c->compiled.tried_count);
    if (p->o.recommend) put_strategies_json(p, w);
    put(w, "}");
}

static void put_end_json(const program *p, writer *w) {
    if (p->has_choice) put_choice_json(p, w);
    if (p->has_compiled) put_compiled_json(p, w);
    put(w, ", \"work\": %llu, \"seconds\": %.3f}\n", (ull)p->work, now_seconds() - p->start);
}

static void put_allocations_json(const program *p, writer *w) {
    int32_t i;
    put(w, ", \"allocations\": [");
    for (i = 0; i < p->lifetimes.count && !w->result; i++) {
        const tl_lifetime *life = &p->lifetimes.items[i];
        put(w, "%s\n  {\"tier\": \"%s\", \"use\": \"%s\", \"node\": %d, \"name\": ", i ? "," : "",
            life->use == TL_USE_HOST ? "host" : "device", tl_name_use(life->use), (int)life->node);
        put_json_text(w, tl_name_node(&p->graph, life->node));
        put(w, ", \"output\": %d, \"occurrence\": %d, \"bytes\": %llu", (int)life->output,
            (int)life->occurrence, (ull)life->bytes);
        put(w, ", \"first_step\": %d, \"end_step\": %d, \"offset\": %llu", (int)life->first_step,
            (int)life->end_step, (ull)bank_offset(&p->plan, life));
        put(w, ", \"bank\": %d, \"block\": %d, \"moved_bytes\": %llu, \"slot\": %d}", (int)life->bank,
            life->block < 0 ? 0 : (int)life->block, (ull)life->moved_bytes, (int)life->slot);
    }
    put(w, "\n]");
}

static void put_banks_json(const program *p, writer *w) {
    int k, count = p->o.bank_count ? p->o.bank_count : 1;
    put(w, ", \"bank_bytes\": [");
    for (k = 0; k < count; k++) put(w, "%s%llu", k ? ", " : "", (ull)p->places.bank_bytes[k]);
    put(w, "], \"block_count\": %d", p->plan.block_count ? (int)p->plan.block_count : 1);
    if (p->o.bank_count)
        put(w, ", \"move_cost\": %llu, \"move_bound_cost\": %llu", (ull)p->places.cost, (ull)p->places.bound_cost);
}

static void put_pieces_json(const program *p, writer *w) {
    const char *before = "";
    int32_t id;
    put(w, ", \"pieces\": [");
    for (id = 0; id < p->graph.node_count; id++) {
        const tl_node *state = &p->graph.nodes[id];
        if (count_pieces(state) < 1) continue;
        put(w, "%s{\"state\": ", before);
        put_json_text(w, tl_name_node(&p->graph, id));
        put(w, ", \"gradient_bytes\": %llu, \"piece_bytes\": %llu, \"count\": %d}",
            (ull)p->graph.outputs[state->first_output].bytes, (ull)largest_gradient(p, state), (int)count_pieces(state));
        before = ", ";
    }
    put(w, "]");
}

// The regions of a training step.
static void put_row_choice_json(const program *p, writer *w) {
    const tl_rows_choice *c = &p->rows_choice;
    int32_t k, at;
    put(w, ", \"rows\": {\"part_count\": %d, \"whole_cost\": %llu, \"class_count\": %d, \"tried_count\": %d", (int)p->parts, (ull)c->whole_cost,
        (int)c->class_count, (int)c->tried_count);
    put(w, ", \"call_count\": %llu, \"regions\": [", (ull)p->rows.call_count);
    for (k = 0; k < c->cut_count; k++) {
        int32_t id = p->rows.nodes[c->cuts[k].last], first = p->rows.first_members[id];
        const tl_row_member *m = &p->rows.members[first];
        put(w, "%s\n  {\"region\": ", k ? "," : "");
        put_json_text(w, tl_name_node(&p->rows.graph, id));
        put(w, ", \"class\": %d, \"rows\": %llu, \"block_rows\": %llu, \"block_count\": %llu, \"late\": %s", (int)c->classes[k],
            (ull)m->rows, (ull)m->block_rows, (ull)count_blocks(m),
            p->rows.graph.nodes[id].once == TL_ONCE_LATE ? "true" : "false");
        put(w, ", \"members\": [");
        for (at = first; at < p->rows.first_members[id + 1]; at++) {
            put(w, "%s{\"node\": ", at > first ? ", " : "");
            put_json_text(w, tl_name_node(&p->whole, p->rows.members[at].node));
            put(w, ", \"again\": %s}", p->rows.members[at].again ? "true" : "false");
        }
        put(w, "]}");
    }
    put(w, "\n]}");
}

static void put_rows_json(const program *p, writer *w) {
    const char *before = "";
    int32_t id, at;
    if (is_cut(p)) {
        put_row_choice_json(p, w);
        return;
    }
    put(w, ", \"rows\": {\"peak_bytes\": %llu, \"whole_peak_bytes\": %llu, \"call_count\": %llu, \"regions\": [",
        (ull)p->rows.peak_bytes, (ull)p->rows.whole_bytes, (ull)p->rows.call_count);
    for (id = 0; id < p->rows.graph.node_count; id++) {
        if (p->rows.first_members[id] == p->rows.first_members[id + 1]) continue;
        put(w, "%s{\"region\": ", before);
        put_json_text(w, tl_name_node(&p->rows.graph, id));
        put(w, ", \"members\": [");
        for (at = p->rows.first_members[id]; at < p->rows.first_members[id + 1]; at++) {
            const tl_row_member *m = &p->rows.members[at];
            put(w, "%s{\"node\": ", at > p->rows.first_members[id] ? ", " : "");
            put_json_text(w, tl_name_node(&p->whole, m->node));
            put(w, ", \"rows\": %llu, \"block_rows\": %llu, \"ring_rows\": %llu, \"ring_offset\": %llu, \"shares\": %d}",
                (ull)m->rows, (ull)m->block_rows, (ull)m->ring_rows, (ull)m->ring_offset, (int)m->shares);
        }
        put(w, "]}");
        before = ", ";
    }
    put(w, "]}");
}

// What the arrays of generated C take.
static void put_code_json(const program *p, writer *w) {
    put(w, ", \"code\": {\"ram_bytes\": %llu, \"bank_bytes\": %llu, \"weight_bytes\": %llu, \"gradient_bytes\": %llu, ",
        (ull)p->code.ram_bytes + (ull)p->scratch_bytes, (ull)p->code.bank_bytes, (ull)p->code.weight_bytes, (ull)p->code.gradient_bytes);
    put(w, "\"state_bytes\": %llu, \"scratch_bytes\": %llu, \"constant_bytes\": %llu, \"table_bytes\": %llu}",
        (ull)p->code.state_bytes, (ull)p->scratch_bytes, (ull)p->code.constant_bytes, (ull)p->table_bytes);
}

static int write_json(program *p, int infeasible) {
    writer w;
    int code = open_writer(p->o.json, &w);
    if (code) return code;
    put_head_json(p, &w);
    if (p->budget_bytes) put(&w, ", \"budget_bytes\": %llu", (ull)p->budget_bytes);
    else put(&w, ", \"budget_bytes\": null");
    put(&w, ", \"keep_all_peak_bytes\": %llu", (ull)p->keep_all.peak_bytes);
    if (!infeasible) put(&w, ", \"peak_bytes\": %llu, \"host_peak_bytes\": %llu", (ull)p->plan.peak_bytes,
                         (ull)p->plan.host_peak_bytes);
    if (!infeasible) put(&w, ", \"arena_bytes\": %llu, \"arena_bound_bytes\": %llu, \"alignment_bytes\": %llu",
                         (ull)p->places.arena_bytes, (ull)p->places.bound_bytes, (ull)p->alignment);
    if (!infeasible) put_banks_json(p, &w);
    if (p->in_flight) put(&w, ", \"in_flight\": %d", (int)p->in_flight);
    if (!infeasible && p->o.order)
        put(&w, ", \"listing_arena_bytes\": %llu, \"order_bound_bytes\": %llu", (ull)p->order.listing_arena_bytes,
            (ull)p->order.bound_bytes);
    put(&w, ", \"base_cost\": %llu", (ull)p->keep_all.base_cost);
    if (infeasible) {
        put_floor_json(p, &w);
    } else {
        put(&w, ", ");
        put_cost_json(&w, whole_step(p, p->plan.cost), p->keep_all.base_cost, whole_step(p, p->plan.bound_cost));
    }
    if (p->o.pieces) put_pieces_json(p, &w);
    if (p->o.rows) put_rows_json(p, &w);
    if (!infeasible && p->o.c_code) put_code_json(p, &w);
    if (!infeasible) put_allocations_json(p, &w);
    put_end_json(p, &w);
    return close_writer(p, &w);
}

// -- explanation --

enum { LISTED = 16 };  // rows of a list, the largest first

static const life *sorted_lives;  // what compare_lives looks at

static int compare_lives(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    uint64_t x = sorted_lives[i].bytes, y = sorted_lives[k].bytes;
    return x != y ? (x < y ? 1 : -1) : i < k ? -1 : i > k;
}

static void print_step(const program *p, FILE *out, int32_t at) {
    static const char *const words[] = {
        "forward of", "forward in place of", "forward with saved state of", "backward of",
        "drop of", "drop of the saved state of", "copy to the host of", "fetch from the host of",
        "wait for the copy of", "drop of the host copy of", "compression of", "expansion of",
    };
    const tl_step *step = &p->plan.steps[at];
    fprintf(out, "step %d, the %s %s", (int)at, words[step->kind], tl_name_node(&p->graph, step->node));
}

static void print_tensor(const program *p, FILE *out, const life *item) {
    const char *name = tl_name_node(&p->graph, item->node);
    if (item->output > 0) fprintf(out, "%s.%d", name, (int)item->output);
    else fprintf(out, "%s", name);
}

// What share of the peak each kind of bytes has, the largest first.
static void print_kinds(const lives *l, const int32_t *index, int32_t count, FILE *out) {
    uint64_t bytes[LIFE_COUNT] = { 0 };
    const char *before = "\nBy kind: ";
    int32_t i, largest;
    for (i = 0; i < count; i++) bytes[l->items[index[i]].kind] += l->items[index[i]].bytes;
    for (;; bytes[largest] = 0, before = ", ") {
        for (largest = i = 0; i < LIFE_COUNT; i++)
            if (bytes[i] > bytes[largest]) largest = i;
        if (!bytes[largest]) break;
        fprintf(out, "%s%s %.1f %%", before, life_names[largest], 100 * ratio_of(bytes[largest], l->report.peak_bytes));
    }
    fprintf(out, "\n");
}

// What lives at the step that reaches the peak.
static int explain_peak(const program *p, const lives *l, FILE *out) {
    int32_t step = l->report.peak_step < 0 ? 0 : l->report.peak_step, *index, count = 0, i;
    uint64_t rest = 0;
    index = (int32_t *)malloc(((size_t)l->count + 1) * sizeof *index);
    if (!index) return fail(CODE_INPUT, "no memory to sort");
    for (i = 0; i < l->count; i++)
        if (l->items[i].bytes && l->items[i].first <= step && step <= l->items[i].last) index[count++] = i;
    sorted_lives = l->items;
    qsort(index, (size_t)count, sizeof *index, compare_lives);
    fprintf(out, "\nThe peak of %llu bytes", (ull)l->report.peak_bytes);
    if (l->report.peak_bytes >= 1024) fprintf(out, " (%s)", bytes_label(l->report.peak_bytes).text);
    fprintf(out, " is at ");
    if (p->plan.step_count) print_step(p, out, step);
    else fprintf(out, "the start");
    fprintf(out, ". %d items live there:\n", (int)count);
    for (i = 0; i < count; i++) {
        const life *item = &l->items[index[i]];
        if (i >= LISTED) { rest += item->bytes; continue; }
        fprintf(out, "%20llu %12s  %-20s ", (ull)item->bytes, bytes_label(item->bytes).text,
                life_names[item->kind]);
        print_tensor(p, out, item);
        fprintf(out, "\n");
    }
    if (count > LISTED)
        fprintf(out, "%20llu %12s  %d more\n", (ull)rest, bytes_label(rest).text, (int)count - LISTED);
    print_kinds(l, index, count, out);
    free(index);
    return CODE_OK;
}

static void print_gain(const program *p, FILE *out, uint64_t budget, uint64_t cost) {
    uint64_t more = budget - p->budget_bytes;
    fprintf(out, "  %llu bytes, %s more: cost %.6f, ", (ull)budget, bytes_label(more).text,
            ratio_of(cost, p->keep_all.base_cost));
    if (cost < p->plan.cost)
        fprintf(out, "%.4f %% of the base cost less\n", 100 * ratio_of(p->plan.cost - cost, p->keep_all.base_cost));
    else
        fprintf(out, "nothing less was found\n");
}

// The least budget above the present one at which less cost is found: doubled steps, then halved ones.
static int find_next_gain(program *p, uint64_t work, uint64_t *budget, uint64_t *cost) {
    uint64_t low = p->budget_bytes, high, step = p->budget_bytes / 256 + 1, grain = p->budget_bytes / 4096 + 1;
    tl_plan figures;
    tl_remat_report report;
    *budget = 0;
    if (p->keep_all.peak_bytes <= low || try_budget(p, p->keep_all.peak_bytes, work, &figures, &report))
        return 0;
    if (figures.cost >= p->plan.cost) return 0;
    high = figures.peak_bytes;
    *cost = figures.cost;
    for (; low + step < high && !interrupted; step *= 2) {
        uint64_t at = low + step;
        if (try_budget(p, at, work, &figures, &report) || figures.cost >= p->plan.cost) { low = at; continue; }
        high = figures.peak_bytes;
        *cost = figures.cost;
        break;
    }
    while (high > low && high - low > grain && !interrupted) {
        uint64_t at = low + (high - low) / 2;
        if (try_budget(p, at, work, &figures, &report) || figures.cost >= p->plan.cost) { low = at; continue; }
        high = figures.peak_bytes;
        *cost = figures.cost;
    }
    *budget = high;
    return high > p->budget_bytes;
}

static void explain_more(program *p, FILE *out) {
    uint64_t work = p->work_limit ? p->work_limit : curve_work, budget = 0, cost = 0;
    tl_plan figures;
    tl_remat_report report;
    fprintf(out, "\nWhat more memory would buy:\n");
    p->doing = "1 MiB more";
    if (p->budget_bytes <= UINT64_MAX - 1048576 && p->budget_bytes < p->keep_all.peak_bytes && !interrupted &&
        !try_budget(p, p->budget_bytes + 1048576, p->work_limit, &figures, &report))
        print_gain(p, out, p->budget_bytes + 1048576,
                   figures.cost < p->plan.cost ? figures.cost : p->plan.cost);
    p->doing = "the next gain";
    if (!interrupted && find_next_gain(p, work, &budget, &cost)) print_gain(p, out, budget, cost);
    else fprintf(out, "  no budget at which less cost was found\n");
    clear_progress(p);
}

// Why a tensor was absent: what would have lived at most, had it stayed. 0 = it is saved state only.
static uint64_t find_absence(const program *p, const lives *l, int32_t node, int32_t *from, int32_t *to,
                             int32_t *worst, uint64_t *bytes) {
    uint64_t most = 0;
    int32_t i, k, step;
    for (i = 0; i < l->count; i++) {
        const life *again = &l->items[i];
        if (again->node != node || again->kind != LIFE_AGAIN) continue;
        for (k = i - 1; k >= 0; k--)
            if (l->items[k].node == node && l->items[k].output == again->output &&
                l->items[k].kind >= LIFE_FIRST && l->items[k].kind <= LIFE_FETCHED) break;
        if (k < 0) continue;
        for (step = l->items[k].last + 2; step < again->first && step < p->plan.step_count; step++) {
            if (l->live_bytes[step] + again->bytes <= most) continue;
            most = l->live_bytes[step] + again->bytes;
            *from = l->items[k].last + 1;
            *to = again->first;
            *worst = step;
            *bytes = again->bytes;
        }
    }
    return most;
}

static void print_absence(const program *p, const lives *l, FILE *out, int32_t node) {
    int32_t from = 0, to = 0, worst = 0;
    uint64_t bytes = 0, most = find_absence(p, l, node, &from, &to, &worst, &bytes);
    uint64_t budget = p->budget_bytes ? p->budget_bytes : UINT64_MAX;
    if (!most) {
        fprintf(out, "%33s for its saved state\n", "");
        return;
    }
    fprintf(out, "%33s %s away from step %d to %d; kept, %s ", "", bytes_label(bytes).text, (int)from,
            (int)to, bytes_label(most).text);
    fprintf(out, "would live at step %d", (int)worst);
    if (most > budget) fprintf(out, ", %s over the budget\n", bytes_label(most - budget).text);
    else fprintf(out, ", which fits where others go instead\n");
}

typedef struct again { uint64_t cost; int32_t node, count; } again;

static int compare_agains(const void *a, const void *b) {
    const again *x = (const again *)a, *y = (const again *)b;
    if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

// Which nodes run again, how often, at what cost, and what their absence frees.
static int explain_again(const program *p, const lives *l, FILE *out) {
    int32_t i, count = 0, nodes = p->graph.node_count, listed;
    uint64_t rest = 0;
    again *items = (again *)calloc((size_t)nodes, sizeof *items);
    if (!items) return fail(CODE_INPUT, "no memory to sort");
    for (i = 0; i < nodes; i++) { items[i].node = i; items[i].count = -1; }
    for (i = 0; i < p->plan.step_count; i++)
        if (p->plan.steps[i].kind <= TL_STEP_FORWARD_SAVE) items[p->plan.steps[i].node].count++;
    for (i = 0; i < nodes; i++) {
        if (items[i].count <= 0) continue;
        items[i].cost = p->graph.nodes[i].fwd_cost * (uint64_t)items[i].count;
        items[count++] = items[i];
    }
    qsort(items, (size_t)count, sizeof *items, compare_agains);
    fprintf(out, "\n%d node%s again, the dearest first:\n", (int)count, count == 1 ? " runs" : "s run");
    listed = count < LISTED ? count : LISTED;
    for (i = 0; i < listed; i++) {
        fprintf(out, "  %3d x  cost %.6f  %s\n", (int)items[i].count,
                ratio_of(items[i].cost, p->keep_all.base_cost), tl_name_node(&p->graph, items[i].node));
        print_absence(p, l, out, items[i].node);
    }
    for (; i < count; i++) rest += items[i].cost;
    if (count > listed)
        fprintf(out, "  %d more nodes, cost %.6f\n", (int)(count - listed), ratio_of(rest, p->keep_all.base_cost));
    free(items);
    return CODE_OK;
}

static int explain_plan(program *p, const lives *l, FILE *out) {
    int code = explain_peak(p, l, out);
    if (!code) code = explain_again(p, l, out);
    if (code || !p->budget_bytes || p->has_compiled) return code;  // of what is compiled it was said before
    code = share_plans(p);
    if (!code) explain_more(p, out);
    return code;
}

// -- curve: memory against cost --

// One budget that was planned. Between two of them the cost is known to lie between the cost of the
// left one and the bound of the right one.
typedef struct point {
    uint64_t budget, peak, cost, bound;
} point;

enum { POLICY_BUDGETS = 6 };

// What a policy reaches under some budget.
typedef struct dot {
    int      policy;
    uint64_t peak, cost;
} dot;

typedef struct curve {
    point    points[POINT_LIMIT + 2 + 2 * (TL_POLICY_CHAIN + 1) * POLICY_BUDGETS];
    int      count;
    uint64_t bound_budget;     // no plan takes less
    dot      dots[(TL_POLICY_CHAIN + 1) * POLICY_BUDGETS];
    int      dot_count;
} curve;

// Bring what was found at one budget to the others: a plan fits every larger budget, a bound holds
// at every smaller one.
static void settle_curve(curve *c) {
    int i;
    for (i = 1; i < c->count; i++) {
        if (c->points[i].cost < c->points[i - 1].cost) continue;
        c->points[i].cost = c->points[i - 1].cost;
        c->points[i].peak = c->points[i - 1].peak;
    }
    for (i = c->count - 1; i-- > 0;) {
        if (c->points[i].bound < c->points[i + 1].bound) c->points[i].bound = c->points[i + 1].bound;
        if (c->points[i + 1].peak > c->points[i].budget) continue;
        c->points[i].cost = c->points[i + 1].cost;
        c->points[i].peak = c->points[i + 1].peak;
    }
}

static void insert_point(curve *c, uint64_t budget, uint64_t peak, uint64_t cost, uint64_t bound) {
    int at = c->count++;
    for (; at > 0 && c->points[at - 1].budget > budget; at--) c->points[at] = c->points[at - 1];
    c->points[at].budget = budget;
    c->points[at].peak = peak;
    c->points[at].cost = cost;
    c->points[at].bound = bound;
    settle_curve(c);
}

// What the budget of a curve binds.
static uint64_t taken_by(const program *p, const tl_plan *plan) {
    return p->in_arena ? plan->arena_bytes : plan->peak_bytes;
}

// A budget of 0 is none: that of the point is what its plan takes.
static tl_result add_point(program *p, curve *c, uint64_t budget) {
    tl_plan plan;
    tl_remat_report report;
    tl_result result = try_budget(p, budget, p->work_limit ? p->work_limit : curve_work, &plan, &report);
    if (result == TL_ERROR_INFEASIBLE) p->report = report;
    if (!result) insert_point(c, budget ? budget : taken_by(p, &plan), taken_by(p, &plan), plan.cost, plan.bound_cost);
    return result;
}

// The next budget: half way in the span where width x rise is largest. 0 = all spans are known.
static uint64_t next_budget(const curve *c) {
    uint64_t width_all = c->points[c->count - 1].budget, cost_all = c->points[0].cost, best = 0, budget = 0;
    int width_shift = 0, cost_shift = 0, i;
    while (width_all >> width_shift >> 30) width_shift++;
    while (cost_all >> cost_shift >> 30) cost_shift++;
    for (i = 0; i + 1 < c->count; i++) {
        const point *left = &c->points[i], *right = &c->points[i + 1];
        uint64_t width, rise, area;
        if (right->peak <= left->budget + 1 || left->cost <= right->bound || left->cost == right->cost)
            continue;
        width = (right->peak - left->budget) >> width_shift;
        rise = (left->cost - right->cost) >> cost_shift;
        area = (width ? width : 1) * (rise ? rise : 1);
        if (area <= best) continue;
        best = area;
        budget = left->budget + (right->peak - left->budget) / 2;
    }
    return budget;
}

// Both ends: what keeping everything takes, and the least budget, which is named when one byte is asked for.
static tl_result start_curve(program *p, curve *c) {
    uint64_t all = p->keep_all.peak_bytes ? p->keep_all.peak_bytes : 1;
    tl_result result = add_point(p, c, p->in_arena ? 0 : all);
    tl_remat_report floor;
    if (!result) result = add_point(p, c, 1);
    if (result != TL_ERROR_INFEASIBLE) return result;
    floor = p->report;
    c->bound_budget = floor.bound_budget_bytes;
    result = add_point(p, c, floor.least_budget_bytes);
    p->report = floor;
    return result;
}

static int make_curve(program *p, curve *c) {
    tl_result result;
    tl_remat_report floor;
    memset(c, 0, sizeof *c);
    if (share_plans(p)) return CODE_INPUT;
    p->near_is_enough = !p->work_limit;
    p->doing = "the curve";
    result = start_curve(p, c);
    floor = p->report;
    while (!result && c->count < POINT_LIMIT && !interrupted) {
        uint64_t budget = next_budget(c);
        if (!budget) break;
        result = add_point(p, c, budget);
        if (result != TL_ERROR_INFEASIBLE) continue;
        result = TL_OK;  // the plan of a smaller budget is the best known here
        insert_point(c, budget, UINT64_MAX, UINT64_MAX, 0);
    }
    clear_progress(p);
    p->report = floor;
    p->report.least_budget_bytes = c->count ? c->points[0].budget : 0;
    return result ? fail_result(p, path_of(p)) : CODE_OK;
}

// 1 = the same plan as at the budget before.
static int is_repeated(const curve *c, int i) { return i > 0 && c->points[i].peak == c->points[i - 1].peak; }

// Every policy under a few budgets from the floor to keep all; what repeats itself is left out.
static int make_dots(program *p, curve *c) {
    uint64_t low = c->points[0].peak, all = p->in_arena ? c->points[c->count - 1].budget : p->keep_all.peak_bytes, width = all - low;
    int policy, k, i;
    for (policy = 0; policy <= TL_POLICY_CHAIN; policy++)
        for (k = 0; k < POLICY_BUDGETS && !interrupted; k++) {
            uint64_t budget = low + width / (POLICY_BUDGETS - 1) * (uint64_t)k;
            tl_plan plan;
            tl_result result;
            if (policy == TL_POLICY_KEEP_ALL ? k > 0 : p->o.inference) continue;  // they are for training
            if (policy == TL_POLICY_KEEP_ALL || k == POLICY_BUDGETS - 1) budget = all;
            result = make_policy_plan(p, (tl_policy_kind)policy, budget, &plan);
            if (result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW) continue;
            if (result) return fail_result(p, path_of(p));
            for (i = 0; i < c->dot_count; i++)
                if (c->dots[i].policy == policy && c->dots[i].peak == taken_by(p, &plan) &&
                    c->dots[i].cost == plan.cost)
                    break;
            c->dots[i].policy = policy;
            c->dots[i].peak = taken_by(p, &plan);
            c->dots[i].cost = plan.cost;
            if (i == c->dot_count) c->dot_count++;
            tl_free_plan(&p->env, &plan);
        }
    return CODE_OK;
}

// The cost that was found within the bytes of a dot.
static uint64_t cost_at(const curve *c, uint64_t bytes) {
    int i = c->count - 1;
    while (i > 0 && c->points[i].peak > bytes) i--;
    return c->points[i].cost;
}

// Where a policy gets below the stairs between two budgets that were planned, plan there, too; what it
// found counts as found.
static int plan_at_dots(program *p, curve *c) {
    int i;
    for (i = 0; i < c->dot_count && !interrupted; i++) {
        const dot *d = &c->dots[i];
        tl_result result;
        if (d->cost >= cost_at(c, d->peak)) continue;
        result = add_point(p, c, d->peak);
        if (result && result != TL_ERROR_INFEASIBLE) return fail_result(p, path_of(p));
        if (d->cost < cost_at(c, d->peak)) insert_point(c, d->peak, d->peak, d->cost, 0);
    }
    clear_progress(p);
    return CODE_OK;
}

static label excess_label(const curve *c, const dot *d) {
    label l;
    uint64_t cost = cost_at(c, d->peak);
    if (d->cost <= cost) snprintf(l.text, sizeof l.text, "none");
    else snprintf(l.text, sizeof l.text, d->cost - cost > cost / 20000 ? "%.2f %%" : "%.4f %%",
                  100 * (ratio_of(d->cost, cost) - 1));
    return l;
}

static void print_dots(const program *p, const curve *c, FILE *out) {
    int i;
    fprintf(out, "\n%20s %12s %10s %12s %12s  %s\n", "bytes", "", "keep all", "cost", "over a plan", "policy");
    for (i = 0; i < c->dot_count; i++) {
        const dot *d = &c->dots[i];
        fprintf(out, "%20llu %12s %8.2f %% %12.6f %12s  %s\n", (ull)d->peak, bytes_label(d->peak).text,
                100 * ratio_of(d->peak, p->keep_all.peak_bytes), ratio_of(d->cost, p->keep_all.base_cost),
                excess_label(c, d).text, tl_name_policy((tl_policy_kind)d->policy));
    }
}

static void print_curve(const program *p, const curve *c, FILE *out) {
    int i;
    print_head(p, out);
    fprintf(out, "%20s %12s %10s %12s %12s  %s\n", "bytes", "", "keep all", "cost", "lower bound", "gap");
    for (i = 0; i < c->count; i++) {
        const point *at = &c->points[i];
        if (is_repeated(c, i)) continue;
        fprintf(out, "%20llu %12s %8.2f %% %12.6f %12.6f  %s\n", (ull)at->peak, bytes_label(at->peak).text,
                100 * ratio_of(at->peak, p->keep_all.peak_bytes), ratio_of(at->cost, p->keep_all.base_cost),
                ratio_of(at->bound, p->keep_all.base_cost), gap_label(at->cost, at->bound).text);
    }
    print_dots(p, c, out);
    if (c->bound_budget && limiting_node(p))
        fprintf(out, "\nno plan takes less than %llu bytes, none was found below %llu, because of node %s\n",
                (ull)c->bound_budget, (ull)c->points[0].peak, limiting_node(p));
    fprintf(out, "\n%.1f million steps of work, %.2f s%s\n", (double)p->work * 1e-6, now_seconds() - p->start,
            interrupted ? "; stopped early" : "");
}

static int write_curve_json(program *p, const curve *c) {
    writer w;
    int i, code = open_writer(p->o.json, &w);
    if (code) return code;
    put_head_json(p, &w);
    put(&w, ", \"keep_all_peak_bytes\": %llu, \"base_cost\": %llu", (ull)p->keep_all.peak_bytes,
        (ull)p->keep_all.base_cost);
    put_floor_json(p, &w);
    put(&w, ", \"points\": [");
    for (i = 0; i < c->count; i++) {
        const point *at = &c->points[i];
        if (is_repeated(c, i)) continue;
        put(&w, "%s\n  {\"budget_bytes\": %llu, \"peak_bytes\": %llu, ", i ? "," : "", (ull)at->budget,
            (ull)at->peak);
        put_cost_json(&w, at->cost, p->keep_all.base_cost, at->bound);
        put(&w, "}");
    }
    put(&w, "\n]");
    put_end_json(p, &w);
    return close_writer(p, &w);
}

// -- picture of the curve --

enum { PLOT_LEFT = 76, PLOT_RIGHT = 936, PLOT_TOP = 108, PLOT_BOTTOM = 452 };
enum { PLOT_WIDTH = 960, PLOT_HEIGHT = 504 };

// What is drawn: bytes from left to right, cost / base cost upwards.
typedef struct plot {
    double low_bytes, high_bytes, low_cost, high_cost;
} plot;

static double plot_x(const plot *f, double bytes) {
    return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * (bytes - f->low_bytes) / (f->high_bytes - f->low_bytes);
}

static double plot_y(const plot *f, double cost) {
    return PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * (cost - f->low_cost) / (f->high_cost - f->low_cost);
}

// The least of 1, 2, 5, 10, ... that divides a range into at most so many parts.
static double nice_step(double range, int parts) {
    static const double factors[] = { 1, 2, 5 };
    double step = 1;
    int i;
    while (step * parts > range) step /= 10;
    while (step * 10 * parts <= range) step *= 10;
    for (i = 0; i < 3; i++)
        if (step * factors[i] * parts >= range) return step * factors[i];
    return step * 10;
}

static const char *const picture_style[] = {
    "<style>",
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:13px;",
    "fill:#59636e}",
    ".title{font-size:18px;font-weight:600;fill:#1f2328}.label{fill:#1f2328}",
    ".page{fill:#fff;stroke:#d1d9e0}.grid{fill:none;stroke:#e4e8ec}.axis{fill:none;stroke:#818b98}",
    ".never{fill:#818b98;fill-opacity:.16}.open{fill:#0072b2;fill-opacity:.12}",
    ".found{fill:none;stroke:#0072b2;stroke-width:2}",
    ".bound{fill:none;stroke:#d55e00;stroke-width:2;stroke-dasharray:6 4}",
    ".p0{fill:#59636e}.p1{fill:#009e73}.p2{fill:#cc79a7}.p3{fill:#e69f00}.p4{fill:#7a5fd0}.p5{fill:#b0a000}",
    ".at{fill:#0072b2}.sure{fill:#fff;stroke:#0072b2;stroke-width:2}",
    "@media (prefers-color-scheme:dark){text{fill:#9198a1}.title,.label{fill:#f0f6fc}",
    ".page{fill:#0d1117;stroke:#3d444d}.grid{stroke:#21262d}.axis{stroke:#656c76}.open{fill:#3d9be0}",
    ".found{stroke:#3d9be0}.bound{stroke:#f0803c}.at{fill:#3d9be0}.sure{fill:#0d1117;stroke:#3d9be0}}",
    "</style>",
};

static void put_axes(writer *w, const plot *f) {
    static const char *const names[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double unit = 1, step, at;
    int k = 0, i;
    for (; f->high_bytes / unit >= 1024 && k < 6; k++) unit *= 1024;
    if (f->high_bytes / unit < 4 && k > 0) { unit /= 1024; k--; }
    step = nice_step((f->high_bytes - f->low_bytes) / unit, 9);
    if (k == 0 && step < 1) step = 1;
    for (i = (int)(f->low_bytes / unit / step); i * step <= f->high_bytes / unit; i++) {
        at = i * step;
        if (at < f->low_bytes / unit) continue;
        put(w, "<path class=\"grid\" d=\"M%.2f %dV%d\"/>\n", plot_x(f, at * unit), PLOT_TOP, PLOT_BOTTOM);
        put(w, "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", plot_x(f, at * unit),
            PLOT_BOTTOM + 18, at);
    }
    put(w, "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"end\">largest sum of live bytes, %s</text>\n",
        PLOT_RIGHT, PLOT_BOTTOM + 38, names[k]);
    step = nice_step(f->high_cost - f->low_cost, 7);
    for (k = 0; k < 64 && f->low_cost + step * k <= f->high_cost * 1.0000001; k++) {
        at = f->low_cost + step * k;
        put(w, "<path class=\"grid\" d=\"M%d %.2fH%d\"/>\n", PLOT_LEFT, plot_y(f, at), PLOT_RIGHT);
        put(w, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%.6g</text>\n", PLOT_LEFT - 8,
            plot_y(f, at) + 4.5, at);
    }
    put(w, "<text class=\"label\" x=\"24\" y=\"%d\">cost / base cost</text>\n", PLOT_TOP - 12);
    put(w, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", PLOT_LEFT, PLOT_TOP, PLOT_BOTTOM, PLOT_RIGHT);
}

// The cost that was found as stairs, the bound as stairs, and what is open between them.
static void put_stairs(const program *p, writer *w, const curve *c, const plot *f) {
    uint64_t base = p->keep_all.base_cost;
    int i, pass;
    for (pass = 0; pass < 3; pass++) {
        put(w, "<path class=\"%s\" d=\"", pass == 0 ? "open" : pass == 1 ? "found" : "bound");
        for (i = 0; i < c->count && pass < 2; i++) {
            double x = plot_x(f, (double)c->points[i].peak);
            if (i) put(w, "H%.2fV%.2f", x, plot_y(f, ratio_of(c->points[i].cost, base)));
            else put(w, "M%.2f %.2f", x, plot_y(f, ratio_of(c->points[i].cost, base)));
        }
        if (pass < 2) put(w, "H%d", PLOT_RIGHT);
        if (pass == 0) put(w, "V%.2f", plot_y(f, ratio_of(c->points[c->count - 1].bound, base)));
        if (pass == 2) put(w, "M%d %.2f", PLOT_RIGHT, plot_y(f, ratio_of(c->points[c->count - 1].bound, base)));
        for (i = c->count - 1; i-- > 0 && pass != 1;)
            put(w, "H%.2fV%.2f", plot_x(f, (double)c->points[i].budget),
                plot_y(f, ratio_of(c->points[i].bound, base)));
        if (pass != 1) put(w, "H%.2f", plot_x(f, (double)c->points[0].peak));
        put(w, pass == 0 ? "Z\"/>\n" : "\"/>\n");
    }
}

static void put_points(const program *p, writer *w, const curve *c, const plot *f) {
    int i;
    for (i = 0; i < c->count; i++) {
        const point *at = &c->points[i];
        double cost = ratio_of(at->cost, p->keep_all.base_cost);
        if (is_repeated(c, i)) continue;
        put(w, "<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"3.5\">", at->cost == at->bound ? "at" : "sure",
            plot_x(f, (double)at->peak), plot_y(f, cost));
        put(w, "<title>%llu bytes (%s), cost %.6f, %s</title></circle>\n", (ull)at->peak,
            bytes_label(at->peak).text, cost, gap_label(at->cost, at->bound).text);
    }
}

// Policies are diamonds in colours of their own.
static void put_diamond(writer *w, int policy, double x, double y) {
    put(w, "<path class=\"p%d\" d=\"M%.2f %.2fl5 5l-5 5l-5-5z\"", policy % 6, x, y - 5);
}

static void put_dots(const program *p, writer *w, const curve *c, const plot *f) {
    int i, last = -1;
    double x = 200;
    for (i = 0; i < c->dot_count; i++) {
        const dot *d = &c->dots[i];
        const char *name = tl_name_policy((tl_policy_kind)d->policy);
        double cost = ratio_of(d->cost, p->keep_all.base_cost);
        if (cost > f->high_cost) continue;
        put_diamond(w, d->policy, plot_x(f, (double)d->peak), plot_y(f, cost));
        put(w, "><title>%s: %llu bytes (%s), cost %.6f</title></path>\n", name, (ull)d->peak,
            bytes_label(d->peak).text, cost);
        if (d->policy == last) continue;
        last = d->policy;
        put_diamond(w, d->policy, x, 84);
        put(w, "/><text class=\"label\" x=\"%.0f\" y=\"88\">%s</text>\n", x + 10, name);
        x += 26 + 7.5 * (double)strlen(name);
    }
}

static void put_legend(writer *w) {
    put(w, "<path class=\"found\" d=\"M560 60h22\"/><text class=\"label\" x=\"588\" y=\"64\">found</text>\n");
    put(w, "<circle class=\"at\" cx=\"650\" cy=\"60\" r=\"3.5\"/>");
    put(w, "<text class=\"label\" x=\"660\" y=\"64\">proven optimal</text>\n");
    put(w, "<path class=\"bound\" d=\"M772 60h22\"/>");
    put(w, "<text class=\"label\" x=\"800\" y=\"64\">no schedule is below</text>\n");
}

static plot frame_curve(const program *p, const curve *c) {
    plot f;
    uint64_t base = p->keep_all.base_cost;
    double step, cap;
    int i;
    f.high_bytes = (double)p->keep_all.peak_bytes * 1.02 + 1;
    f.low_bytes = (double)(c->bound_budget < c->points[0].peak ? c->bound_budget : c->points[0].peak);
    f.low_bytes = f.low_bytes - 0.06 * (f.high_bytes - f.low_bytes);
    if (f.low_bytes < 0) f.low_bytes = 0;
    f.high_cost = ratio_of(c->points[0].cost, base);
    f.low_cost = ratio_of(c->points[c->count - 1].bound, base);
    cap = f.low_cost + 3 * (f.high_cost - f.low_cost);  // dearer dots would press the curve flat
    if (cap < f.low_cost + 0.5) cap = f.low_cost + 0.5;
    for (i = 0; i < c->dot_count; i++) {
        double cost = ratio_of(c->dots[i].cost, base);
        if (cost > f.high_cost && cost <= cap) f.high_cost = cost;
    }
    if (f.high_cost - f.low_cost < 1e-6) f.high_cost = f.low_cost + 1e-6;
    step = nice_step(f.high_cost - f.low_cost, 7);
    f.low_cost = step * (double)(int64_t)(f.low_cost / step + 1e-9);
    f.high_cost += 0.3 * step;
    return f;
}

static void put_picture(const program *p, writer *w, const curve *c) {
    plot f = frame_curve(p, c);
    put(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\"", PLOT_WIDTH,
        PLOT_HEIGHT);
    put(w, " viewBox=\"0 0 %d %d\" data-top=\"%d\" data-bottom=\"%d\">\n<title>Memory against cost of ",
        PLOT_WIDTH, PLOT_HEIGHT, PLOT_TOP, PLOT_BOTTOM);
    put_markup(w, p->model);
    put(w, "</title>\n");
    put_lines(w, picture_style, sizeof picture_style / sizeof *picture_style);
    put(w, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" rx=\"6\" width=\"%d\" height=\"%d\"/>\n",
        PLOT_WIDTH - 1, PLOT_HEIGHT - 1);
    put(w, "<text class=\"title\" x=\"24\" y=\"34\">");
    put_markup(w, p->model);
    put(w, ", %s</text>\n", p->o.inference ? "inference" : "training");
    put_legend(w);
    if (c->bound_budget)
        put(w, "<path class=\"never\" d=\"M%d %dH%.2fV%dH%dZ\"><title>below %llu bytes no plan fits</title>"
            "</path>\n", PLOT_LEFT, PLOT_TOP, plot_x(&f, (double)c->bound_budget), PLOT_BOTTOM, PLOT_LEFT,
            (ull)c->bound_budget);
    put_axes(w, &f);
    put_stairs(p, w, c, &f);
    put_dots(p, w, c, &f);
    put_points(p, w, c, &f);
    put(w, "</svg>\n");
}

static int write_picture(program *p, const curve *c) {
    writer w;
    int code = open_writer(p->o.svg, &w);
    if (code) return code;
    put_picture(p, &w, c);
    return close_writer(p, &w);
}

// -- pages: one file each, no network, no library --

static const char *const page_style[] = {
    "<style>",
    ":root{--page:#fff;--text:#1f2328;--soft:#59636e;--line:#d1d9e0;--mark:#ddf4ff;--area:#0072b2;",
    "--state:#b0a000;--first:#0072b2;--again:#d55e00;--gradient:#009e73;--saved:#cc79a7;--scratch:#818b98;",
    "--fetched:#56b4e9;--input:#b0a000}",
    "@media (prefers-color-scheme:dark){:root{--page:#0d1117;--text:#f0f6fc;--soft:#9198a1;--line:#3d444d;",
    "--mark:#13304a;--area:#3d9be0;--first:#3d9be0;--again:#f0803c;--gradient:#17b890;--input:#f0e442}}",
    "body{margin:1.5rem auto;padding:0 1rem;max-width:980px;background:var(--page);color:var(--text);",
    "font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}",
    "h1{font-size:1.3rem}svg{max-width:100%;height:auto}canvas{width:100%;display:block}",
    "svg,canvas{touch-action:pan-y}svg:focus,canvas:focus{outline:2px solid var(--area);outline-offset:2px}",
    "#read{min-height:3em;white-space:pre-wrap;font-variant-numeric:tabular-nums}.scroll{overflow-x:auto}",
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}",
    "th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}",
    "th{color:var(--soft);font-weight:600}",
    "tr.on{background:var(--mark)}button{font:inherit;color:inherit;background:var(--page);",
    "border:1px solid var(--line);border-radius:6px;padding:.2rem .8rem}",
    ".key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}",
    "</style>",
};

static void put_page_start(const program *p, writer *w) {
    put(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
        "content=\"light dark\">\n<title>");
    put_markup(w, p->model);
    put(w, "</title>\n");
    put_lines(w, page_style, sizeof page_style / sizeof *page_style);
    put(w, "</head>\n<body>\n<h1>");
    put_markup(w, p->model);
    put(w, ", %s, %d nodes</h1>\n", p->o.inference ? "inference" : "training", (int)p->graph.node_count);
}

// Rows carry the places of their points; the picture and the table show the same row.
static const char *const curve_script[] = {
    "<script>",
    "'use strict';",
    "const svg=document.querySelector('svg'),rows=[...document.querySelectorAll('tr[data-x]')];",
    "const read=document.getElementById('read'),make=(n,a)=>{",
    "  const e=document.createElementNS(svg.namespaceURI,n);",
    "  for(const k in a)e.setAttribute(k,a[k]);",
    "  return svg.appendChild(e)};",
    "const rule=make('path',{class:'axis','pointer-events':'none'});",
    "const ring=make('circle',{r:7,class:'found','pointer-events':'none'});",
    "let at=rows.length-1;",
    "function show(i){",
    "  rows[at].className='';",
    "  at=Math.max(0,Math.min(rows.length-1,i));",
    "  const r=rows[at],c=[...r.cells].map(e=>e.textContent);",
    "  r.className='on';",
    "  rule.setAttribute('d','M'+r.dataset.x+' '+svg.dataset.top+'V'+svg.dataset.bottom);",
    "  ring.setAttribute('cx',r.dataset.x);",
    "  ring.setAttribute('cy',r.dataset.y);",
    "  read.textContent='From '+c[1]+' ('+c[0]+' bytes, '+c[2]+' of keep all): cost '+c[3]+",
    "    '; no schedule is below '+c[4]+'; gap '+c[5];",
    "}",
    "function find(e){",
    "  const b=svg.getBoundingClientRect(),x=(e.clientX-b.left)*svg.viewBox.baseVal.width/b.width;",
    "  let i=0;",
    "  while(i+1<rows.length&&rows[i+1].dataset.x<=x)i++;",
    "  show(i);",
    "}",
    "svg.setAttribute('tabindex',0);",
    "svg.addEventListener('pointermove',find);",
    "svg.addEventListener('pointerdown',find);",
    "svg.addEventListener('keydown',e=>{",
    "  const to={ArrowLeft:at-1,ArrowRight:at+1,Home:0,End:rows.length-1}[e.key];",
    "  if(to!==undefined){show(to);e.preventDefault()}});",
    "rows.forEach((r,i)=>r.addEventListener('pointerenter',()=>show(i)));",
    "show(at);",
    "</script>",
};

static void put_curve_table(const program *p, writer *w, const curve *c) {
    plot f = frame_curve(p, c);
    uint64_t base = p->keep_all.base_cost;
    int i;
    put(w, "<div class=\"scroll\"><table>\n<thead><tr><th>bytes</th><th></th><th>of keep all</th><th>cost</th>"
        "<th>lower bound</th><th>gap</th></tr></thead>\n<tbody>\n");
    for (i = 0; i < c->count; i++) {
        const point *at = &c->points[i];
        if (is_repeated(c, i)) continue;
        put(w, "<tr data-x=\"%.2f\" data-y=\"%.2f\"><td>%llu</td><td>%s</td><td>%.2f %%</td>",
            plot_x(&f, (double)at->peak), plot_y(&f, ratio_of(at->cost, base)), (ull)at->peak,
            bytes_label(at->peak).text, 100 * ratio_of(at->peak, p->keep_all.peak_bytes));
        put(w, "<td>%.6f</td><td>%.6f</td><td>%s</td></tr>\n", ratio_of(at->cost, base),
            ratio_of(at->bound, base), gap_label(at->cost, at->bound).text);
    }
    put(w, "</tbody>\n</table></div>\n");
}

static void put_dot_table(const program *p, writer *w, const curve *c) {
    int i;
    put(w, "<h2>Policies, for comparison</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>policy</th>"
        "<th>bytes</th><th></th><th>of keep all</th><th>cost</th><th>over a plan</th></tr></thead>\n<tbody>\n");
    for (i = 0; i < c->dot_count; i++) {
        const dot *d = &c->dots[i];
        put(w, "<tr><th>%s</th><td>%llu</td><td>%s</td><td>%.2f %%</td><td>%.6f</td><td>%s</td></tr>\n",
            tl_name_policy((tl_policy_kind)d->policy), (ull)d->peak, bytes_label(d->peak).text,
            100 * ratio_of(d->peak, p->keep_all.peak_bytes), ratio_of(d->cost, p->keep_all.base_cost),
            excess_label(c, d).text);
    }
    put(w, "</tbody>\n</table></div>\n");
}

static int write_curve_page(program *p, const curve *c) {
    writer w;
    int code = open_writer(p->o.html, &w);
    if (code) return code;
    put_page_start(p, &w);
    put_picture(p, &w, c);
    put(&w, "<p id=\"read\" aria-live=\"polite\"></p>\n");
    put_curve_table(p, &w, c);
    put_dot_table(p, &w, c);
    put(&w, "<p>Costs are shares of the base cost, every forward and backward once: %llu.",
        (ull)p->keep_all.base_cost);
    put(&w, " A row holds for every budget from its bytes up to the next row's. The bound is certain for"
        " schedules that run backwards in reverse listing order and lose nothing.");
    if (c->bound_budget) put(&w, " Below %llu bytes no plan fits", (ull)c->bound_budget);
    if (c->bound_budget && limiting_node(p)) {
        put(&w, ", because of node ");
        put_markup(&w, limiting_node(p));
    }
    put(&w, c->bound_budget ? ".</p>\n" : "</p>\n");
    put_lines(&w, curve_script, sizeof curve_script / sizeof *curve_script);
    put(&w, "</body>\n</html>\n");
    return close_writer(p, &w);
}

// Memory above, and below it the arena by address, or one row a node: when its outputs, its gradients and its saved
// state live.
static const char *const plan_script[] = {
    "const canvas=document.querySelector('canvas'),read=document.getElementById('read'),L=[],",
    "  colors=['input','state','first','again','fetched','gradient','saved','scratch'],",
    "  N=D.live.length,V=D.names.length;",
    "for(let i=0;i<D.lives.length;i+=7)L.push(D.lives.slice(i,i+7));",
    "const words={F:'forward of ',I:'forward in place of ',S:'forward with saved state of ',B:'backward of ',",
    "  D:'drop ',DS:'drop the saved state of ',O:'copy to the host ',L:'fetch from the host ',",
    "  W:'wait for the copy of ',DH:'drop the host copy of '};",
    "let at=D.peak,byCost=false,byNode=!D.arena,left=64,width=0,memory=240;",
    "const time=[0];",
    "for(let s=0;s<N;s++){",
    "  const k=D.kinds[D.steps[2*s]],v=D.steps[2*s+1];",
    "  time.push(time[s]+(k=='B'?D.bwd[v]:'FIS'.includes(k)?D.fwd[v]:0));",
    "}",
    "const x=s=>left+width*(byCost&&time[N]?time[s]/time[N]:s/Math.max(N,1));",
    "const size=b=>{",
    "  let k=0;",
    "  for(;b>=1024&&k<6;k++)b/=1024;",
    "  return b.toFixed(k?2:0)+' '+['bytes','KiB','MiB','GiB','TiB','PiB','EiB'][k]};",
    "const most=1.06*D.live.reduce((a,b)=>Math.max(a,b),Math.max(D.budget,D.keep,1));",
    "const y=b=>memory-(memory-16)*b/most;",
    "const rowOf=v=>memory+24+(canvas.clientHeight-memory-28)*v/V;",
    "const base=document.createElement('canvas'),",
    "  style=getComputedStyle(document.documentElement),color=n=>style.getPropertyValue('--'+n);",
    "function paint(){",
    "  const r=window.devicePixelRatio||1,w=canvas.clientWidth,h=canvas.clientHeight,g=base.getContext('2d');",
    "  base.width=w*r;base.height=h*r;g.scale(r,r);width=w-left-8;",
    "  g.font='12px system-ui,sans-serif';g.textAlign='right';g.textBaseline='middle';",
    "  g.fillStyle=color('soft');g.strokeStyle=color('line');",
    "  for(let k=0;k<5;k++){",
    "    const b=most*k/5;",
    "    g.beginPath();g.moveTo(left,y(b));g.lineTo(w-8,y(b));g.stroke();",
    "    g.fillText(size(b).replace('bytes','B'),left-4,y(b));",
    "  }",
    "  g.beginPath();g.moveTo(left,y(0));",
    "  for(let s=0;s<N;s++){g.lineTo(x(s),y(D.live[s]));g.lineTo(x(s+1),y(D.live[s]))}",
    "  g.lineTo(x(N),y(0));g.fillStyle=g.strokeStyle=color('area');",
    "  g.globalAlpha=.15;g.fill();g.globalAlpha=1;g.stroke();",
    "  g.textAlign='left';g.setLineDash([6,4]);",
    "  for(const [b,n,c] of [[D.budget,'budget','again'],[D.keep,'keep all','soft']]){",
    "    if(!b)continue;",
    "    g.strokeStyle=g.fillStyle=color(c);g.beginPath();g.moveTo(left,y(b));g.lineTo(w-8,y(b));g.stroke();",
    "    g.fillText(n,left+4+(n=='budget'?80:0),y(b)-8);",
    "  }",
    "  g.setLineDash([]);",
    "  const deep=Math.max(1,rowOf(1)-rowOf(0)-(rowOf(1)-rowOf(0)>3?1:0)),foot=h-20;",
    "  const place=b=>foot-(foot-memory-24)*b/D.arena;",
    "  for(const [k,v,o,a,b,size,offset] of L){",
    "    const w=Math.max(1,x(b+1)-x(a));",
    "    g.fillStyle=color(colors[k]);",
    "    if(byNode){g.fillRect(x(a),rowOf(v)+(k>3?deep/2:0),w,Math.max(1,deep*(k>3?.5:1)));continue}",
    "    const top=place(offset+size),tall=Math.max(1,place(offset)-top);",
    "    g.fillRect(x(a),top,w>3?w-.5:w,tall>3?tall-.5:tall);",
    "    if(w>40&&tall>12){",
    "      g.save();g.beginPath();g.rect(x(a),top,w-4,tall);g.clip();g.fillStyle=color('page');",
    "      g.fillText(D.names[v],x(a)+4,top+tall/2);g.restore()}",
    "  }",
    "  if(!byNode){",
    "    g.fillStyle=color('soft');g.textAlign='right';",
    "    for(const [b,n] of [[D.arena,size(D.arena)],[0,'0']])g.fillText(n,left-4,place(b));",
    "  }",
    "  draw();",
    "}",
    "function draw(){",
    "  const r=window.devicePixelRatio||1,g=canvas.getContext('2d');",
    "  canvas.width=base.width;canvas.height=base.height;g.drawImage(base,0,0);g.scale(r,r);",
    "  g.fillStyle=color('text');g.globalAlpha=.3;",
    "  if(N)g.fillRect(x(at),8,Math.max(1,x(at+1)-x(at)),canvas.clientHeight);",
    "}",
    "function show(s){",
    "  if(!N)return;",
    "  at=Math.max(0,Math.min(N-1,s));",
    "  const k=D.kinds[D.steps[2*at]],here=L.filter(l=>l[3]<=at&&at<=l[4]&&l[5]).sort((a,b)=>b[5]-a[5]);",
    "  const step=(words[k]||k+' ')+D.names[D.steps[2*at+1]];",
    "  let text='step '+at+' of 0 to '+(N-1)+': '+step+'. '+size(D.live[at])+' live in '+here.length+' items';",
    "  for(const l of here.slice(0,10))",
    "    text+='\\n  '+size(l[5])+'  '+D.lifes[l[0]]+' '+D.names[l[1]]+(l[2]>0?'.'+l[2]:'');",
    "  if(here.length>10)text+='\\n  and '+(here.length-10)+' more';",
    "  read.textContent=text;",
    "  canvas.setAttribute('aria-valuenow',at);",
    "  canvas.setAttribute('aria-valuetext',step+', '+size(D.live[at]));",
    "  draw();",
    "}",
    "function find(e){",
    "  const p=e.clientX-canvas.getBoundingClientRect().left;",
    "  let a=0,b=N-1;",
    "  while(a<b){const m=(a+b+1)>>1;if(x(m)<=p)a=m;else b=m-1}",
    "  show(a);",
    "}",
    "canvas.addEventListener('pointermove',find);",
    "canvas.addEventListener('pointerdown',find);",
    "canvas.addEventListener('keydown',e=>{",
    "  const far=Math.max(1,Math.round(N/20)),to={ArrowLeft:at-1,ArrowRight:at+1,ArrowDown:at-1,ArrowUp:at+1,",
    "    PageDown:at-far,PageUp:at+far,Home:0,End:N-1}[e.key];",
    "  if(to!==undefined){show(to);e.preventDefault()}});",
    "document.getElementById('axis').addEventListener('click',e=>{",
    "  byCost=!byCost;e.target.textContent=byCost?'by cost':'by steps';paint()});",
    "document.getElementById('rows').addEventListener('click',e=>{",
    "  byNode=!byNode;e.target.textContent=byNode?'a row a node':'by address';paint()});",
    "matchMedia('(prefers-color-scheme:dark)').addEventListener('change',paint);",
    "addEventListener('resize',paint);",
    "canvas.style.height=memory+28+Math.max(160,Math.min(900,V*8))+'px';",
    "paint();",
    "show(at);",
    "</script>",
};

static void put_plan_numbers(const program *p, writer *w, const lives *l) {
    int32_t i;
    put(w, "\"steps\":[");
    for (i = 0; i < p->plan.step_count; i++)
        put(w, "%s%d,%d", i ? "," : "", (int)p->plan.steps[i].kind, (int)p->plan.steps[i].node);
    put(w, "],\n\"live\":[");
    for (i = 0; i < p->plan.step_count; i++) put(w, "%s%llu", i ? "," : "", (ull)l->live_bytes[i]);
    put(w, "],\n\"lives\":[");
    for (i = 0; i < l->count; i++) {
        const life *item = &l->items[i];
        put(w, "%s%d,%d,%d,%d,%d,%llu,%llu", i ? "," : "", (int)item->kind, (int)item->node, (int)item->output,
            (int)item->first, (int)item->last, (ull)item->bytes, (ull)item->offset);
    }
    put(w, "],\n\"fwd\":[");
    for (i = 0; i < p->graph.node_count; i++) put(w, "%s%llu", i ? "," : "", (ull)p->graph.nodes[i].fwd_cost);
    put(w, "],\n\"bwd\":[");
    for (i = 0; i < p->graph.node_count; i++) put(w, "%s%llu", i ? "," : "", (ull)p->graph.nodes[i].bwd_cost);
    put(w, "]");
}

static void put_plan_data(const program *p, writer *w, const lives *l) {
    int i;
    put(w, "<script>\n'use strict';\nconst D={\"names\":[");
    for (i = 0; i < p->graph.node_count; i++) {
        put(w, i ? "," : "");
        put_json_text(w, tl_name_node(&p->graph, i));
    }
    put(w, "],\n\"kinds\":[");
    for (i = 0; i < TL_STEP_COUNT; i++) put(w, "%s\"%s\"", i ? "," : "", tl_name_step((tl_step_kind)i));
    put(w, "],\n\"lifes\":[");
    for (i = 0; i < LIFE_COUNT; i++) put(w, "%s\"%s\"", i ? "," : "", life_names[i]);
    put(w, "],\n\"budget\":%llu,\"keep\":%llu,\"arena\":%llu,\"peak\":%d,\n", (ull)p->budget_bytes,
        (ull)p->keep_all.peak_bytes, (ull)p->plan.arena_bytes, l->report.peak_step < 0 ? 0 : (int)l->report.peak_step);
    put_plan_numbers(p, w, l);
    put(w, "};\n");
}

static void put_plan_table(const program *p, writer *w) {
    const tl_plan *plan = &p->plan;
    put(w, "<div class=\"scroll\"><table>\n<thead><tr><th></th><th>bytes</th><th></th><th>cost</th></tr>"
        "</thead>\n<tbody>\n");
    put(w, "<tr><th>keep all</th><td>%llu</td><td>%s</td><td>%.6f</td></tr>\n", (ull)p->keep_all.peak_bytes,
        bytes_label(p->keep_all.peak_bytes).text, ratio_of(p->keep_all.cost, p->keep_all.base_cost));
    if (p->budget_bytes)
        put(w, "<tr><th>budget</th><td>%llu</td><td>%s</td><td></td></tr>\n", (ull)p->budget_bytes,
            bytes_label(p->budget_bytes).text);
    put(w, "<tr><th>plan</th><td>%llu</td><td>%s</td><td>%.6f</td></tr>\n", (ull)plan->peak_bytes,
        bytes_label(plan->peak_bytes).text, ratio_of(plan->cost, p->keep_all.base_cost));
    put(w, "<tr><th>lower bound</th><td></td><td>gap: %s</td><td>%.6f</td></tr>\n</tbody>\n</table></div>\n",
        gap_label(plan->cost, plan->bound_cost).text, ratio_of(plan->bound_cost, p->keep_all.base_cost));
}

static int write_plan_page(program *p, const lives *l) {
    static const char *const colors[] = { "input", "state", "first", "again", "fetched", "gradient", "saved",
                                          "scratch" };
    writer w;
    int i, code = open_writer(p->o.html, &w);
    if (code) return code;
    put_page_start(p, &w);
    put_plan_table(p, &w);
    put(&w, "<p>Live bytes over the steps, and below them the arena: where results, gradients and saved state lie,"
        " and when; or one row a node. <button id=\"axis\" type=\"button\">by steps</button>"
        " <button id=\"rows\" type=\"button\">by address</button></p>\n<p>");
    for (i = 0; i < LIFE_COUNT; i++)
        put(&w, "<span class=\"key\" style=\"background:var(--%s)\"></span>%s\n", colors[i], life_names[i]);
    put(&w, "</p>\n<canvas tabindex=\"0\" role=\"slider\" aria-label=\"step of the plan\" aria-valuemin=\"0\" "
        "aria-valuemax=\"%d\" aria-valuenow=\"0\"></canvas>\n<p id=\"read\" aria-live=\"polite\"></p>\n",
        (int)p->plan.step_count > 0 ? (int)p->plan.step_count - 1 : 0);
    put_plan_data(p, &w, l);
    put_lines(&w, plan_script, sizeof plan_script / sizeof *plan_script);
    put(&w, "</body>\n</html>\n");
    return close_writer(p, &w);
}

// -- profiles: what schemes lose and gain, as text --

// A number that is finite and not negative: 0.01, 1e-3. 1 = it is one.
static int read_number(const char *text, double *value) {
    size_t length = strlen(text);
    char *end = NULL;
    *value = 0;
    if (!length || length > 64 || strspn(text, "0123456789.eE+-") != length) return 0;
    *value = strtod(text, &end);
    return !*end && *value >= 0 && *value < 1e300;
}

static int write_default_profiles(program *p) {
    writer w;
    int32_t count;
    const tl_precision_profile *rows = tl_find_default_profiles(&count);
    size_t length = tl_print_profiles(rows, count, NULL, NULL, 0);
    char *text = (char *)malloc(length + 1);
    int code = open_writer("-", &w);
    if (!text) return fail(CODE_INPUT, "no memory for profiles");
    tl_print_profiles(rows, count, NULL, text, length + 1);
    put_text(&w, text, length);
    free(text);
    return code ? code : close_writer(p, &w);
}

// A line of such a file, cut into words on the way.
typedef struct profile_line {
    const char *file;
    int         number;
    char       *at;
} profile_line;

static int fail_line(const profile_line *l, const char *word, const char *rule) {
    return fail(CODE_INPUT, "%s: line %d: %.40s: %s", l->file, l->number, word, rule);
}

// The next word of the line, NULL at its end or where a comment begins.
static char *next_word(profile_line *l) {
    char *word = l->at + strspn(l->at, " \t\r");
    size_t length = strcspn(word, " \t\r");
    if (!length || *word == '#') return NULL;
    l->at = word + length;
    if (*l->at) *l->at++ = 0;
    return word;
}

// SCHEME=FIRST[:SECOND]; FIRST and SECOND are left as texts, SECOND NULL where it is not there.
static int read_scheme_word(const profile_line *l, char *word, tl_scheme *scheme, char **first, char **second) {
    char *value = strchr(word, '=');
    if (!value) return fail_line(l, word, "must be one of the words that --default-profiles explains");
    *value++ = 0;
    *second = strchr(value, ':');
    if (*second) *(*second)++ = 0;
    *first = value;
    if (tl_parse_scheme(word, scheme)) return CODE_OK;
    return fail_line(l, word, "is no scheme, and no other word that may stand here");
}

static int read_profile_word(const profile_line *l, char *word, tl_precision_profile *row) {
    char *first = NULL, *second = NULL;
    tl_scheme scheme = TL_SCHEME_F32;
    if (strcmp(word, "sensitive") == 0) {
        row->sensitive = 1;
        return CODE_OK;
    }
    if (strncmp(word, "device=", 7) == 0 && word[7]) {
        row->device = word + 7;
        return CODE_OK;
    }
    if (strncmp(word, "least=", 6) == 0 && read_count(word + 6, &row->least_elements)) return CODE_OK;
    if (strncmp(word, "most=", 5) == 0 && read_count(word + 5, &row->most_elements)) return CODE_OK;
    if (strncmp(word, "least=", 6) == 0 || strncmp(word, "most=", 5) == 0)
        return fail_line(l, word, "must be a number of elements, 1 or more");
    if (strncmp(word, "best=", 5) == 0) {
        if (tl_parse_scheme(word + 5, &row->recommended)) return CODE_OK;
        return fail_line(l, word, "must name a scheme");
    }
    if (read_scheme_word(l, word, &scheme, &first, &second) || !first) return CODE_INPUT;
    if (row->schemes >> scheme & 1) return fail_line(l, word, "is given twice");
    if (!second) return fail_line(l, word, "needs its loss and its speed-up, like 0.001:2.5");
    if (!read_number(first, &row->loss[scheme])) return fail_line(l, first, "must be a loss of 0 or more");
    if (!read_number(second, &row->speedup[scheme]) || row->speedup[scheme] <= 0)
        return fail_line(l, second, "must be a speed-up above 0");
    row->schemes |= UINT32_C(1) << scheme;
    return CODE_OK;
}

static int read_profile_row(program *p, profile_line *l) {
    tl_precision_profile *row = &p->choice.profiles[p->choice.desc.profile_count++];
    char *word = next_word(l);
    if (!word) return fail_line(l, "profile", "must be followed by an op");
    row->op = word;
    row->measured_on = p->choice.machine;
    while ((word = next_word(l)) != NULL)
        if (read_profile_word(l, word, row)) return CODE_INPUT;
    return row->schemes ? CODE_OK : fail_line(l, row->op, "has no scheme");
}

// machine NAME [flops=N] [memory=N] [codec=N]: of the rows below. The rates of the first one count.
static int read_machine(program *p, profile_line *l) {
    choice *c = &p->choice;
    char *word = next_word(l);
    int is_first = !c->has_machine;
    if (!word) return fail_line(l, "machine", "must be followed by its name");
    c->machine = strcmp(word, "-") == 0 ? NULL : word;
    if (c->machine) c->has_machine = 1;
    while ((word = next_word(l)) != NULL) {
        char *value = strchr(word, '=');
        double rate = 0;
        uint64_t *bytes = NULL;
        if (value) *value++ = 0;
        if (strcmp(word, "memory") == 0) bytes = &c->rates.bytes_per_second;
        if (strcmp(word, "codec") == 0) bytes = &c->rates.codec_bytes_per_second;
        if (!bytes && strcmp(word, "flops") != 0)
            return fail_line(l, word, "must be flops=, memory= or codec=, of a machine");
        if (!value || !read_number(value, &rate) || rate < 1 || rate > 1e18)
            return fail_line(l, word, "must be a number of at least 1 a second");
        if (is_first && bytes) *bytes = (uint64_t)rate;
        else if (is_first) c->rates.flops_per_second[TL_PRECISION_SINGLE] = rate;
    }
    return CODE_OK;
}

static int32_t find_node(const tl_graph *graph, const char *name) {
    int32_t i;
    for (i = 0; i < graph->node_count; i++)
        if (strcmp(tl_name_node(graph, i), name) == 0) return i;
    return -1;
}

// Room for what was measured of each node in each scheme: nothing yet.
static int start_measured(program *p) {
    size_t count = (size_t)p->graph.node_count * TL_SCHEME_COUNT, i;
    choice *c = &p->choice;
    if (c->losses) return CODE_OK;
    c->losses = (double *)malloc(count * sizeof *c->losses);
    c->costs = (uint64_t *)malloc(count * sizeof *c->costs);
    if (!c->losses || !c->costs) return fail(CODE_INPUT, "no memory for what was measured");
    for (i = 0; i < count; i++) {
        c->losses[i] = NAN;
        c->costs[i] = TL_FORBIDDEN;
    }
    c->desc.losses = c->losses;
    c->desc.costs = c->costs;
    c->desc.measured_on = c->machine;
    return CODE_OK;
}

static int read_node_row(program *p, profile_line *l) {
    char *word = next_word(l), *first = NULL, *second = NULL;
    int32_t node = word ? find_node(&p->graph, word) : -1;
    if (!word) return fail_line(l, "node", "must be followed by a name");
    if (node < 0) return fail_line(l, word, "is no node of the model");
    if (start_measured(p)) return CODE_INPUT;
    while ((word = next_word(l)) != NULL) {
        tl_scheme scheme = TL_SCHEME_F32;
        size_t at;
        if (read_scheme_word(l, word, &scheme, &first, &second) || !first) return CODE_INPUT;
        at = (size_t)node * TL_SCHEME_COUNT + (size_t)scheme;
        if (strcmp(first, "-") != 0 && !read_number(first, &p->choice.losses[at]))
            return fail_line(l, first, "must be a loss of 0 or more, or -");
        if (second && !read_count(second, &p->choice.costs[at]))
            return fail_line(l, second, "must be a cost of 1 or more");
    }
    return CODE_OK;
}

static int read_profile_line(program *p, profile_line *l, int *has_head) {
    char *word = next_word(l), *version;
    if (!word) return CODE_OK;
    if (*has_head && strcmp(word, "profile") == 0) return read_profile_row(p, l);
    if (*has_head && strcmp(word, "node") == 0) return read_node_row(p, l);
    if (*has_head && strcmp(word, "machine") == 0) return read_machine(p, l);
    if (*has_head) return fail_line(l, word, "must be machine, profile or node");
    version = next_word(l);
    if (strcmp(word, "profiles") != 0 || !version || strcmp(version, "1") != 0)
        return fail_line(l, word, "the first line must be: profiles 1");
    *has_head = 1;
    return CODE_OK;
}

static char *read_profile_text(const program *p, size_t *length) {
    FILE *file;
    char *text;
    if (strcmp(p->o.profiles, "-") == 0) return read_text(stdin, "standard input", length);
    file = fopen(p->o.profiles, "rb");
    if (!file) {
        fail(CODE_INPUT, "%s: cannot open", p->o.profiles);
        return NULL;
    }
    text = read_text(file, p->o.profiles, length);
    fclose(file);
    return text;
}

static int read_profiles(program *p) {
    choice *c = &p->choice;
    profile_line l;
    size_t length, count = 1, i;
    int has_head = 0, code = CODE_OK;
    char *at;
    if (!p->o.profiles) return CODE_OK;
    l.file = strcmp(p->o.profiles, "-") == 0 ? "standard input" : p->o.profiles;
    c->text = read_profile_text(p, &length);
    if (!c->text) return CODE_INPUT;
    if (strlen(c->text) != length) return fail(CODE_INPUT, "%s: is no text: there is a zero byte", l.file);
    for (i = 0; i < length; i++) count += c->text[i] == '\n';
    c->profiles = (tl_precision_profile *)calloc(count, sizeof *c->profiles);
    if (!c->profiles) return fail(CODE_INPUT, "no memory for profiles");
    for (at = c->text, l.number = 1; !code && at; l.number++) {
        char *end = strchr(at, '\n');
        if (end) *end++ = 0;
        l.at = at;
        code = read_profile_line(p, &l, &has_head);
        at = end;
    }
    if (!code && !has_head) return fail(CODE_INPUT, "%s: is empty; the first line must be: profiles 1", l.file);
    // A file of single nodes alone leaves the default table as it is.
    if (c->desc.profile_count) c->desc.profiles = c->profiles;
    return code;
}

// -- precision: a scheme for each node, and the graph that results --

// The words of --precision: the values of those that were there.
typedef struct choice_words {
    const char *loss, *speedup, *balanced, *objective, *schemes, *memory, *device;
    const char *training, *sensitive, *unknown, *any_result, *f16_fits;
    const char *criterion, *inputs;
} choice_words;

enum { WORD_ALONE = 1, WORD_WITH_VALUE = 2 };

static int take_choice_word(choice_words *words, char *word) {
    const struct { const char *name; int form; const char **value; } rows[] = {
        { "loss", WORD_WITH_VALUE, &words->loss },         { "speedup", WORD_WITH_VALUE, &words->speedup },
        { "objective", WORD_WITH_VALUE, &words->objective }, { "schemes", WORD_WITH_VALUE, &words->schemes },
        { "memory", WORD_WITH_VALUE, &words->memory },     { "device", WORD_WITH_VALUE, &words->device },
        { "balanced", WORD_ALONE | WORD_WITH_VALUE, &words->balanced },
        { "training", WORD_ALONE, &words->training },      { "sensitive", WORD_ALONE, &words->sensitive },
        { "unknown", WORD_ALONE, &words->unknown },        { "any-result", WORD_ALONE, &words->any_result },
        { "f16-fits", WORD_ALONE, &words->f16_fits },
        { "performance", WORD_ALONE, &words->criterion },  { "accuracy", WORD_ALONE, &words->criterion },
        { "custom", WORD_ALONE, &words->criterion },       { "inputs", WORD_WITH_VALUE, &words->inputs },
    };
    char *value = strchr(word, '=');
    size_t i;
    if (value) *value++ = 0;
    for (i = 0; i < sizeof rows / sizeof *rows && strcmp(rows[i].name, word) != 0; i++) {}
    if (i == sizeof rows / sizeof *rows)
        return fail(CODE_INPUT, "--precision: %.40s: unknown word; --help lists them", word);
    if (value && !(rows[i].form & WORD_WITH_VALUE))
        return fail(CODE_INPUT, "--precision: %s: takes no value", word);
    if (value ? !*value : !(rows[i].form & WORD_ALONE))
        return fail(CODE_INPUT, "--precision: %s: a value must follow, like %s=...", word, word);
    if (*rows[i].value) return fail(CODE_INPUT, "--precision: %s: a second one", word);
    *rows[i].value = value ? value : word;
    return CODE_OK;
}

static int cut_choice_words(program *p, choice_words *words) {
    size_t length = strlen(p->o.precision);
    char *at;
    memset(words, 0, sizeof *words);
    p->choice.words = (char *)malloc(length + 1);
    if (!p->choice.words) return fail(CODE_INPUT, "no memory for --precision");
    memcpy(p->choice.words, p->o.precision, length + 1);
    for (at = p->choice.words; at;) {
        char *end = strchr(at, ',');
        if (end) *end++ = 0;
        if (take_choice_word(words, at)) return CODE_INPUT;
        at = end;
    }
    return CODE_OK;
}

static int parse_schemes(const char *name_of, const char *text, uint32_t *schemes) {
    while (*text) {
        char name[32];
        size_t length = strcspn(text, "+");
        tl_scheme scheme;
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
        if (length >= sizeof name || !tl_parse_scheme(name, &scheme)) {
            int k;
            fflush(stdout);
            fprintf(stderr, "tl_plan: --precision: %s=%.60s: must be some of", name_of, text);
            for (k = 0; k < TL_SCHEME_COUNT; k++) fprintf(stderr, " %s", tl_name_scheme((tl_scheme)k));
            fprintf(stderr, ", with + between\n");
            return CODE_INPUT;
        }
        *schemes |= UINT32_C(1) << scheme;
        text += length;
        if (*text == '+' && !*++text) return fail(CODE_INPUT, "--precision: %s: ends with +", name_of);
    }
    return CODE_OK;
}

// The criterion follows from the limits that are there; a name that is there, too, must agree.
static int choose_criterion(const choice_words *words, tl_precision_desc *desc) {
    double share = 0.5;
    if (words->loss && strcmp(words->loss, "any") == 0) desc->loss_limit = INFINITY;
    else if (words->loss && !read_number(words->loss, &desc->loss_limit))
        return fail(CODE_INPUT, "--precision: loss=%s: must be a number of 0 or more, like 0.01, or any", words->loss);
    if (words->speedup && (!read_number(words->speedup, &desc->least_speedup) || desc->least_speedup <= 0))
        return fail(CODE_INPUT, "--precision: speedup=%s: must be a number above 0, like 2", words->speedup);
    if (words->balanced) {
        if (words->loss || words->speedup || words->criterion)
            return fail(CODE_INPUT, "--precision: balanced: takes no limit, and no other criterion beside it");
        if (strcmp(words->balanced, "balanced") != 0 && (!read_number(words->balanced, &share) || share > 1))
            return fail(CODE_INPUT, "--precision: balanced=%s: must be a share from 0 to 1, like 0.7",
                        words->balanced);
        desc->criterion = TL_CRITERION_BALANCED;
        desc->performance_weight = share;
        desc->accuracy_weight = 1 - share;
        return CODE_OK;
    }
    if (!words->loss && !words->speedup)
        return fail(CODE_INPUT, "--precision: needs loss=, speedup= or balanced; --front shows what there is");
    desc->criterion = !words->speedup ? TL_CRITERION_PERFORMANCE
                      : words->loss   ? TL_CRITERION_CUSTOM : TL_CRITERION_ACCURACY;
    if (words->criterion && strcmp(words->criterion, tl_name_criterion(desc->criterion)) != 0)
        return fail(CODE_INPUT, "--precision: %s: %s", words->criterion,
                    strcmp(words->criterion, "performance") == 0 ? "takes loss= and nothing else"
                    : strcmp(words->criterion, "accuracy") == 0  ? "takes speedup= and nothing else"
                                                                 : "takes both loss= and speedup=");
    return CODE_OK;
}

// The rates at which conversions move bytes: those of memory=, else those of the machine of --profiles, where a
// unit of cost is a FLOP at its speed, unless --cost-unit says something else.
static int parse_choice_device(program *p, const choice_words *words) {
    tl_device *device = &p->choice.device, *rates = &p->choice.rates;
    uint64_t rate = rates->bytes_per_second, codec = words->memory ? 0 : rates->codec_bytes_per_second;
    double flops = rates->flops_per_second[TL_PRECISION_SINGLE];
    const char *text = words->memory ? words->memory : "of the machine";
    char unit[64];
    int code = CODE_OK;
    if (!words->memory && !words->device && !rate) return CODE_OK;
    device->name = words->device;
    p->choice.desc.device = device;
    if (words->memory) code = parse_rate("--precision: memory", words->memory, "GB", "/s", &rate);
    if (code || !rate) return code;
    snprintf(unit, sizeof unit, "flop@%.9fGFLOPS", flops * 1e-9);
    if (!p->o.cost_unit && !words->memory && flops > 0) p->o.cost_unit = unit;
    code = parse_cost_unit(p);
    if (p->o.cost_unit == unit) p->o.cost_unit = NULL;
    if (!code) code = scale_rate(p, "--precision: memory", text, rate, &device->bytes_per_second);
    if (!code && codec)
        code = scale_rate(p, "--profiles: codec", text, codec, &device->codec_bytes_per_second);
    return code;
}

// Read --precision and --profiles into the desc.
// The scheme that stands for a format which a graph declares; 0 = there is none.
static uint32_t scheme_of_format(uint8_t declared) {
    switch ((tl_tensor_format)declared) {
    case TL_TENSOR_FORMAT_F16: return UINT32_C(1) << TL_SCHEME_F16;
    case TL_TENSOR_FORMAT_BF16: return UINT32_C(1) << TL_SCHEME_BF16;
    case TL_TENSOR_FORMAT_I16: return UINT32_C(1) << TL_SCHEME_I16;
    case TL_TENSOR_FORMAT_I8: return UINT32_C(1) << TL_SCHEME_I8;
    case TL_TENSOR_FORMAT_NONE: case TL_TENSOR_FORMAT_F32: case TL_TENSOR_FORMAT_I32: case TL_TENSOR_FORMAT_I4:
    case TL_TENSOR_FORMAT_COUNT: break;
    }
    return 0;
}

// Give inputs that the model declares in a narrow format the bytes of f32, which choices are made from, and say that they
// have this one. schemes: what the others may have; 0 = f32.
static int choose_inputs(program *p, uint32_t schemes) {
    choice *c = &p->choice;
    int32_t i;
    c->input_schemes = (uint32_t *)calloc((size_t)p->graph.node_count + 1, sizeof *c->input_schemes);
    if (!c->input_schemes) return fail(CODE_INPUT, "no memory for --precision");
    for (i = 0; i < p->graph.tensor_count; i++) {
        tl_node_output *output = (tl_node_output *)&p->graph.outputs[i];
        const tl_node *node = &p->graph.nodes[output->node];
        uint32_t scheme = scheme_of_format(output->format);
        if (!node->is_input || node->state || node->output_count > 1) continue;
        c->input_schemes[output->node] = scheme ? scheme : output->format == TL_TENSOR_FORMAT_I32 ? 0 : schemes;
        if (!scheme) continue;
        if (output->bytes > UINT64_MAX / 4)
            return fail(CODE_INPUT, "%s: node %s has too many bytes", path_of(p), tl_name_node(&p->graph, output->node));
        output->bytes *= output->format == TL_TENSOR_FORMAT_I8 ? 4 : 2;
        output->format = TL_TENSOR_FORMAT_F32;
    }
    c->desc.input_schemes = c->input_schemes;
    return CODE_OK;
}

// A node that a model has in 8 bits stays there, where --precision lets it: what other schemes would save of its loss is lost
// already, and results have the model's bits.
static uint32_t keep_quantised(const program *p, uint32_t schemes) {
    const uint32_t narrow = UINT32_C(1) << TL_SCHEME_I8 | UINT32_C(1) << TL_SCHEME_I8_CHANNEL | UINT32_C(1) << TL_SCHEME_W4A8;
    uint32_t asked = p->choice.desc.schemes ? p->choice.desc.schemes : ~(UINT32_C(1) << TL_SCHEME_W4A8), kept = schemes & narrow;
    return kept & asked ? kept : schemes;
}

// Whether the profile of a node's op says that it is sensitive.
static int is_sensitive(const program *p, int32_t id) {
    const tl_precision_desc *desc = &p->choice.desc;
    int32_t count = desc->profile_count;
    const tl_precision_profile *rows = desc->profiles ? desc->profiles : tl_find_default_profiles(&count);
    const tl_precision_profile *row = tl_find_profile(rows, count, &p->graph, id, desc->device);
    return row && row->sensitive;
}

// A model that has nodes in 8 bits has decided of sensitive ones, too: those that it has not in 8 bits stay wide.
static void keep_sensitive(program *p, uint32_t *schemes) {
    const uint32_t wide = UINT32_C(1) << TL_SCHEME_F32 | UINT32_C(1) << TL_SCHEME_F16 | UINT32_C(1) << TL_SCHEME_BF16 |
                          UINT32_C(1) << TL_SCHEME_I16 | UINT32_C(1) << TL_SCHEME_W8A16;
    int32_t id;
    if (p->choice.desc.allow_sensitive) return;
    for (id = 0; id < p->graph.node_count; id++)
        if (is_sensitive(p, id) && !tiny_is_quantised(p->tiny, tl_name_node(&p->graph, id)))
            schemes[id] = schemes[id] ? schemes[id] & wide : wide;
    p->choice.desc.allow_sensitive = 1;
}

// With --weights only schemes are chosen whose constants, and kernels, can be written.
static int limit_schemes(program *p) {
    int code = read_weights(p), quantised = 0;
    int32_t id;
    uint32_t *schemes;
    if (!code && p->o.ranges) code = tiny_read_ranges(p->tiny, p->model_hash);
    if (code) return code;
    schemes = (uint32_t *)calloc((size_t)p->graph.node_count + 1, sizeof *schemes);
    if (!schemes) return fail(CODE_INPUT, "no memory for --precision");
    for (id = 0; id < p->graph.node_count; id++) {
        const char *name = tl_name_node(&p->graph, id);
        schemes[id] = tiny_find_schemes(&p->graph, id, code_kernels(&p->o));
        if (tiny_has_channel_scales(p->tiny, name)) schemes[id] &= ~(UINT32_C(1) << TL_SCHEME_I8);
        if (p->graph.nodes[id].is_input || !tiny_is_quantised(p->tiny, name)) continue;
        schemes[id] = keep_quantised(p, schemes[id]);
        quantised = 1;
    }
    if (quantised) keep_sensitive(p, schemes);
    p->choice.desc.node_schemes = p->choice.node_schemes = schemes;
    return CODE_OK;
}

static int prepare_choice(program *p) {
    uint32_t inputs = 0;
    tl_precision_desc *desc = &p->choice.desc;
    choice_words words;
    memset(&words, 0, sizeof words);
    if (p->o.precision && cut_choice_words(p, &words)) return CODE_INPUT;
    if (p->o.front && (words.loss || words.speedup || words.balanced || words.criterion))
        return fail(CODE_INPUT, "--front: is for all limits; of --precision it takes the other words");
    if (has_limits(&p->o) && (words.loss || words.speedup || words.balanced || words.criterion || words.objective))
        return fail(CODE_INPUT, "--precision: beside --ram or --flash takes the words but limits and objective");
    if (!p->o.front && !has_limits(&p->o) && choose_criterion(&words, desc)) return CODE_INPUT;
    if (words.objective && !tl_parse_objective(words.objective, &desc->objective))
        return fail(CODE_INPUT, "--precision: objective=%s: must be time or bytes", words.objective);
    if (words.schemes && parse_schemes("schemes", words.schemes, &desc->schemes)) return CODE_INPUT;
    if (words.inputs && parse_schemes("inputs", words.inputs, &inputs)) return CODE_INPUT;
    if (words.training && p->o.inference)
        return fail(CODE_INPUT, "--inference: and the word training of --precision exclude each other");
    if (read_profiles(p) || parse_choice_device(p, &words)) return CODE_INPUT;
    desc->graph = &p->graph;
    desc->training = words.training != NULL;
    desc->allow_sensitive = words.sensitive != NULL;
    desc->allow_unknown = words.unknown != NULL;
    desc->any_result = words.any_result != NULL;
    desc->allow_f16 = words.f16_fits != NULL;
    desc->work_limit = p->work_limit;
    p->o.inference = !desc->training;
    if (p->o.weights && limit_schemes(p)) return CODE_INPUT;
    return choose_inputs(p, inputs);
}

static int write_infeasible_choice(program *p) {
    writer w;
    int code = open_writer(p->o.json, &w);
    if (code) return code;
    put_head_json(p, &w);
    put(&w, ", \"precision\": null, \"reason\": ");
    put_json_text(&w, reason_of(&p->env));
    put(&w, ", \"seconds\": %.3f}\n", now_seconds() - p->start);
    return close_writer(p, &w);
}

// Kernels of generated code load elements of the formats that were chosen.
static int check_code_alignment(const program *p, const uint8_t *formats) {
    uint64_t bytes;
    int32_t i;
    for (i = 0; i < p->graph.tensor_count && p->o.c_code; i++) {
        tl_format format = (tl_format)formats[i];
        bytes = tl_find_format_bytes(format, sizeof(float));
        if (p->alignment < bytes)
            return fail(CODE_INPUT, "--align %s: node %s is in %s, whose elements begin at multiples of %llu bytes", p->o.align,
                        tl_name_node(&p->graph, p->graph.outputs[i].node), tl_name_format(format), (ull)bytes);
    }
    return CODE_OK;
}

// -- limits of RAM, flash and loss --

static int on_fit_progress(int32_t arena_count, int32_t arena_limit, void *user) {
    tl_remat_progress now;
    memset(&now, 0, sizeof now);
    now.work = (uint64_t)arena_count;
    now.work_limit = (uint64_t)arena_limit;
    return on_progress(&now, user);
}

static int parse_limit(const char *option, const char *text, uint64_t *bytes) {
    *bytes = 0;
    if (text && strchr(text, '%')) return fail(CODE_INPUT, "%s %s: must be bytes, like 48K", option, text);
    return !text || strcmp(text, "any") == 0 ? CODE_OK : parse_bytes(option, text, 0, bytes);
}

// What is minimised: the third of RAM, flash and loss, or the cost where all of them have limits.
static tl_measure find_minimized(const options *o) {
    return !o->loss ? TL_MEASURE_LOSS : !o->flash ? TL_MEASURE_FLASH : !o->ram ? TL_MEASURE_RAM : TL_MEASURE_COST;
}

// Read the limits into a desc. The marks of --slots are the caller's to free.
static int describe_limits(program *p, uint8_t *in_slots, tl_fit_desc *desc) {
    const options *o = &p->o;
    int32_t id;
    int code;
    memset(desc, 0, sizeof *desc);
    desc->precision = p->choice.desc;
    desc->precision.loss_limit = INFINITY;
    desc->precision.work_limit = 0;
    desc->minimized = find_minimized(o);
    code = parse_limit("--ram", o->ram, &desc->ram_bytes);
    if (!code) code = parse_limit("--flash", o->flash, &desc->flash_bytes);
    if (!code && o->loss && strcmp(o->loss, "any") != 0 && !read_number(o->loss, &desc->precision.loss_limit))
        code = fail(CODE_INPUT, "--loss %s: must be a number of 0 or more, like 0.01, or any", o->loss);
    if (!code && o->minimize && !tl_parse_measure(o->minimize, &desc->minimized))
        code = fail(CODE_INPUT, "--minimize %s: must be ram, flash, loss or cost", o->minimize);
    for (id = 0; id < p->graph.node_count; id++) in_slots[id] = (uint8_t)has_word(o->slots, tl_name_op(&p->graph, id));
    desc->in_slots = in_slots;
    desc->alignment_bytes = p->alignment;
    desc->may_cut_rows = o->rows;
    desc->rows_work_limit = p->work_limit;
    desc->progress = on_fit_progress;
    desc->user = p;
    p->doing = "choosing formats";
    return code;
}

// Choose within limits. What was found is the budget, unless one is given.
static int fit_choice(program *p, tl_result *result) {
    static char budget[32];
    choice *c = &p->choice;
    uint8_t *in_slots = (uint8_t *)calloc((size_t)p->graph.node_count, 1);
    tl_fit_desc desc;
    int code = in_slots ? describe_limits(p, in_slots, &desc) : fail(CODE_INPUT, "no memory for limits");
    if (!code) *result = tl_fit_precision(&p->env, &desc, &c->fit);
    clear_progress(p);
    free(in_slots);
    if (code || *result) return code;
    c->plan = c->fit.plan;
    c->has_fit = 1;
    snprintf(budget, sizeof budget, "%llu", (ull)c->fit.ram_bytes);
    if (!p->o.budget && !p->o.rows) p->o.budget = budget;
    return CODE_OK;
}

static void print_fit(const program *p, FILE *out) {
    const tl_precision_fit *fit = &p->choice.fit;
    char gap[32];
    snprintf(gap, sizeof gap, "gap %.2f %%", 100 * fit->gap_ratio);
    fprintf(out, "ram %llu bytes, flash %llu bytes, loss %.6g, cost %llu: %s is the least, %s; %d arenas placed\n\n",
            (ull)fit->ram_bytes, (ull)fit->flash_bytes, fit->loss, (ull)fit->cost, tl_name_measure(fit->minimized),
            fit->proven ? "proven" : gap, (int)fit->arena_count);
}

// What may help where no choice is within limits.
static const char *hint_of(const program *p) {
    const tl_attributes *a = p->graph.attributes;
    return has_limits(&p->o) && !p->o.rows && a && a->row_count ? "; with --rows, line buffers, RAM may be less" : "";
}

// Choose, and put the graph that results in the model's place.
static int make_choice(program *p) {
    choice *c = &p->choice;
    tl_apply_desc apply;
    tl_result result = TL_OK;
    int failed = has_limits(&p->o) ? fit_choice(p, &result) : CODE_OK;
    if (failed) return failed;
    if (!has_limits(&p->o)) result = tl_plan_precision(&p->env, &c->desc, &c->plan);
    if (result == TL_ERROR_INFEASIBLE) {
        int code = p->o.json ? write_infeasible_choice(p) : CODE_OK;
        return code ? code : fail(CODE_INFEASIBLE, "%s: %s%s", path_of(p), reason_of(&p->env), hint_of(p));
    }
    memset(&apply, 0, sizeof apply);
    apply.graph = &p->graph;
    apply.plan = &c->plan;
    apply.device = c->desc.device;
    apply.training = c->desc.training;
    apply.any_result = c->desc.any_result;
    apply.any_input = 1;
    if (result || tl_plan_keep_all(&p->env, &p->graph, p->o.inference, &c->keep_all) ||
        tl_apply_precision(&p->env, &apply, &c->applied))
        return fail_result(p, path_of(p));
    c->model = p->graph;
    p->graph = c->applied.graph;
    p->has_choice = 1;
    return check_code_alignment(p, c->applied.formats);
}

static int print_choice(const program *p, FILE *out) {
    const choice *c = &p->choice;
    size_t length = tl_print_precision_plan(&c->model, &c->plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    int32_t i;
    if (!text) return fail(CODE_INPUT, "no memory to print the choice");
    tl_print_precision_plan(&c->model, &c->plan, text, length + 1);
    fprintf(out, "%s: %d nodes, precisions for %s\n\n%s\n", p->model, (int)c->model.node_count,
            p->o.inference ? "inference" : "training", text);
    free(text);
    for (i = 0; p->o.explain && i < c->model.node_count; i++) {
        char sentence[1024];
        tl_explain_precision_node(&c->model, &c->plan, i, sentence, sizeof sentence);
        fprintf(out, "%s\n", sentence);
    }
    if (p->o.explain) fprintf(out, "\n");
    if (c->has_fit) print_fit(p, out);
    if (c->plan.objective == TL_OBJECTIVE_TIME && c->plan.speeds.counts[TL_SPEED_ASSUMED] && !p->o.profiles)
        fprintf(out, "No one measured what a scheme gains here, so none counts as faster than f32: --profiles\n"
                     "takes what was measured, objective=bytes counts what is known\n\n");
    return CODE_OK;
}

// The choice alone: no plan was asked for.
static int finish_choice(program *p) {
    FILE *out = report_stream(p);
    writer w;
    int code = p->o.json ? open_writer(p->o.json, &w) : CODE_OK;
    if (!code && p->o.json) {
        put_head_json(p, &w);
        put(&w, ", \"keep_all_peak_bytes\": %llu", (ull)p->keep_all.peak_bytes);
        put_end_json(p, &w);
        code = close_writer(p, &w);
    }
    if (!code && out) code = print_choice(p, out);
    if (code || !out) return code;
    fprintf(out, "%-12s %20s %12s %10s\n", "", "bytes", "", "all in f32");
    fprintf(out, "%-12s %20llu %12s %8.2f %%\n", "all in f32", (ull)p->choice.keep_all.peak_bytes,
            bytes_label(p->choice.keep_all.peak_bytes).text, 100.0);
    fprintf(out, "%-12s %20llu %12s %8.2f %%\n", "as chosen", (ull)p->keep_all.peak_bytes,
            bytes_label(p->keep_all.peak_bytes).text,
            100 * ratio_of(p->keep_all.peak_bytes, p->choice.keep_all.peak_bytes));
    fprintf(out, "bytes: largest sum of live ones where nothing is made again, copies in other formats too;\n"
                 "--budget plans with less\n%.2f s\n", now_seconds() - p->start);
    return CODE_OK;
}

// 1 = more than the choice was asked for.
static int wants_plan(const options *o) {
    return compiles(o) || o->budget || o->pareto || o->policy || o->schedule || o->c_table || o->c_code || o->svg || o->html || o->align ||
           o->lifetimes || o->places || o->order || o->bank_count || o->block;
}

static void free_choice(program *p) {
    choice *c = &p->choice;
    if (p->has_choice) p->graph = c->model;  // the other one belongs to what was applied
    tl_free_precision_graph(&p->env, &c->applied);
    free(c->input_schemes);
    free(c->node_schemes);
    tl_free_precision_plan(&p->env, &c->plan);
    tl_free_precision_front(&p->env, &c->front);
    tl_free_plan(&p->env, &c->keep_all);
    free(c->profiles);
    free(c->losses);
    free(c->costs);
    free(c->words);
    free(c->text);
}

// -- front: loss against time or bytes --

// How many nodes are in which scheme: "f32 3, i8 17".
static void count_schemes(const program *p, const tl_precision_point *at, char *text, size_t size) {
    int32_t counts[TL_SCHEME_COUNT], i;
    size_t length = 0;
    memset(counts, 0, sizeof counts);
    for (i = 0; i < p->graph.node_count; i++) counts[at->schemes[i]]++;
    text[0] = 0;
    for (i = 0; i < TL_SCHEME_COUNT && length < size; i++) {
        if (!counts[i]) continue;
        length += (size_t)snprintf(text + length, size - length, "%s%s %d", length ? ", " : "",
                                   tl_name_scheme((tl_scheme)i), (int)counts[i]);
    }
}

static void print_front(const program *p, FILE *out) {
    const tl_precision_front *front = &p->choice.front;
    char speeds[256];
    int32_t i;
    fprintf(out, "%s: %d nodes, precisions for %s, %s against loss\n\n", p->model, (int)p->graph.node_count,
            p->o.inference ? "inference" : "training", tl_name_objective(p->choice.desc.objective));
    fprintf(out, "%12s %9s %20s %12s %20s  %-9s  %s\n", "loss", "f32 is", "bytes", "", "cost", "gap",
            "nodes in");
    for (i = 0; i < front->point_count; i++) {
        const tl_precision_point *at = &front->points[i];
        char schemes[256];
        count_schemes(p, at, schemes, sizeof schemes);
        fprintf(out, "%12.6g %7.3f x %20llu %12s %20llu  %-9s  %s%s\n", at->loss, at->speedup,
                (ull)at->bytes, bytes_label(at->bytes).text, (ull)at->cost,
                gap_label(at->cost, at->bound_cost).text, schemes, i == front->knee ? "  <- knee" : "");
    }
    tl_explain_speeds(&front->speeds, speeds, sizeof speeds);
    fprintf(out, "\n%d points, %s; bytes: of weights and of the tensors handed on\n%s\n%.2f s\n",
            (int)front->point_count,
            front->complete ? "all there are" : "a selection, from one end to the other", speeds,
            now_seconds() - p->start);
}

static int write_front_json(program *p) {
    const tl_precision_front *front = &p->choice.front;
    writer w;
    int32_t i, k;
    int code = open_writer(p->o.json, &w);
    if (code) return code;
    put_head_json(p, &w);
    put(&w, ", \"speeds\": {\"measured_on\": ");
    put_json_text(&w, front->speeds.measured_on);
    put(&w, ", \"conversions\": \"%s\"", tl_name_speed_source(front->speeds.conversions));
    for (i = 0; i < TL_SPEED_SOURCE_COUNT; i++)
        put(&w, ", \"%s\": %d", tl_name_speed_source((tl_speed_source)i), (int)front->speeds.counts[i]);
    put(&w, "}, \"complete\": %s, \"knee\": %d, \"points\": [", front->complete ? "true" : "false",
        (int)front->knee);
    for (i = 0; i < front->point_count; i++) {
        const tl_precision_point *at = &front->points[i];
        put(&w, "%s\n  {\"loss\": %.17g, \"speedup\": %.9g, \"cost\": %llu, ", i ? "," : "", at->loss,
            at->speedup, (ull)at->cost);
        put(&w, "\"lower_bound_cost\": %llu", (ull)at->bound_cost);
        put(&w, ", \"bytes\": %llu, \"schemes\": [", (ull)at->bytes);
        for (k = 0; k < p->graph.node_count; k++)
            put(&w, "%s\"%s\"", k ? ", " : "", tl_name_scheme((tl_scheme)at->schemes[k]));
        put(&w, "]}");
    }
    put(&w, "\n], \"seconds\": %.3f}\n", now_seconds() - p->start);
    return close_writer(p, &w);
}

static int write_front_picture(program *p) {
    writer w;
    int code = open_writer(p->o.svg, &w);
    if (code) return code;
    w.result = tl_write_front_svg(&p->env, &p->choice.front, w.sink);
    return close_writer(p, &w);
}

static int run_front(program *p) {
    FILE *out = report_stream(p);
    tl_result result = tl_plan_precision_front(&p->env, &p->choice.desc, 0, &p->choice.front);
    int code = CODE_OK;
    if (result == TL_ERROR_INFEASIBLE) return fail(CODE_INFEASIBLE, "%s: %s", path_of(p), reason_of(&p->env));
    if (result) return fail_result(p, path_of(p));
    if (p->o.json) code = write_front_json(p);
    if (!code && p->o.svg) code = write_front_picture(p);
    if (!code && out) print_front(p, out);
    return code;
}

// -- front of RAM, flash and loss --
//
// The least loss at each of some limits of RAM and of flash, from the least that any choice takes to what the best
// choice without limits takes. Of equal choices, and of those that others beat in all three, one stays.

enum { FRONT_STEPS = 8, FRONT_ARENAS = 1500 };

typedef struct limit_front {
    tl_precision_fit fits[FRONT_STEPS * FRONT_STEPS];
    int count;
    uint64_t least[2], most[2];    // RAM and flash
} limit_front;

static int is_no_worse(const tl_precision_fit *a, const tl_precision_fit *b) {
    return a->ram_bytes <= b->ram_bytes && a->flash_bytes <= b->flash_bytes && a->loss <= b->loss;
}

// Add a choice, which belongs to the front then, unless a known one is no worse; those that it beats go.
static void add_to_front(program *p, limit_front *f, tl_precision_fit *fit) {
    int i, kept = 0;
    for (i = 0; i < f->count; i++)
        if (is_no_worse(&f->fits[i], fit)) { tl_free_precision_fit(&p->env, fit); return; }
    for (i = 0; i < f->count; i++) {
        if (is_no_worse(fit, &f->fits[i])) tl_free_precision_fit(&p->env, &f->fits[i]);
        else f->fits[kept++] = f->fits[i];
    }
    f->count = kept;
    for (i = f->count++; i > 0 && f->fits[i - 1].ram_bytes > fit->ram_bytes; i--) f->fits[i] = f->fits[i - 1];
    f->fits[i] = *fit;
}

// The most and the least RAM and flash of choices within the limits that are given.
static tl_result find_front_ends(program *p, const tl_fit_desc *base, limit_front *f) {
    static const tl_measure measures[] = { TL_MEASURE_LOSS, TL_MEASURE_RAM, TL_MEASURE_FLASH };
    tl_fit_desc desc = *base;
    tl_precision_fit fit;
    tl_result result;
    int k;
    for (k = 0; k < 3; k++) {
        desc.minimized = measures[k];
        result = tl_fit_precision(&p->env, &desc, &fit);
        if (result) return result;
        if (k == 0) { f->most[0] = fit.ram_bytes; f->most[1] = fit.flash_bytes; }
        else f->least[k - 1] = k == 1 ? fit.ram_bytes : fit.flash_bytes;
        tl_free_precision_fit(&p->env, &fit);
    }
    return TL_OK;
}

static uint64_t step_between(uint64_t least, uint64_t most, int step) {
    return most <= least ? least : most - (most - least) / (FRONT_STEPS - 1) * (uint64_t)(FRONT_STEPS - 1 - step);
}

static tl_result find_limit_front(program *p, const tl_fit_desc *base, limit_front *f) {
    tl_fit_desc desc = *base;
    tl_precision_fit fit;
    int ram, flash;
    tl_result result = find_front_ends(p, base, f);
    desc.minimized = TL_MEASURE_LOSS;
    for (ram = 0; ram < FRONT_STEPS && !result; ram++)
        for (flash = 0; flash < FRONT_STEPS && !result && !interrupted; flash++) {
            desc.ram_bytes = ram ? step_between(f->least[0], f->most[0], ram) : f->least[0];
            desc.flash_bytes = flash ? step_between(f->least[1], f->most[1], flash) : f->least[1];
            result = tl_fit_precision(&p->env, &desc, &fit);
            if (result == TL_ERROR_INFEASIBLE) result = TL_OK;     // the least of one may need more of the other
            else if (!result) add_to_front(p, f, &fit);
        }
    return result;
}

static void print_limit_front(const program *p, const limit_front *f, FILE *out) {
    int i;
    fprintf(out, "%s: %d nodes, choices of which none is worse than another in RAM, flash and loss\n\n", p->model, (int)p->graph.node_count);
    fprintf(out, "%12s %12s %12s %20s  %s\n", "ram", "flash", "loss", "cost", "above the bound of the loss");
    for (i = 0; i < f->count; i++) {
        const tl_precision_fit *fit = &f->fits[i];
        fprintf(out, "%12llu %12llu %12.6g %20llu  ", (ull)fit->ram_bytes, (ull)fit->flash_bytes, fit->loss, (ull)fit->cost);
        if (fit->proven) fprintf(out, "proven\n");
        else if (fit->bound_loss > 0) fprintf(out, "%.2f %%\n", 100 * fit->gap_ratio);
        else fprintf(out, "not known\n");
    }
    fprintf(out, "\n%d points of a grid of %d limits\n%.2f s\n", f->count, FRONT_STEPS * FRONT_STEPS, now_seconds() - p->start);
}

static int write_limit_front_json(program *p, const limit_front *f) {
    writer w;
    int i, code = open_writer(p->o.json, &w);
    if (code) return code;
    put_head_json(p, &w);
    put(&w, ", \"points\": [");
    for (i = 0; i < f->count; i++) {
        put(&w, "%s\n  ", i ? "," : "");
        put_fit_json(&w, &f->fits[i]);
    }
    put(&w, "\n], \"seconds\": %.3f}\n", now_seconds() - p->start);
    return close_writer(p, &w);
}

static void put_markup_text(writer *w, const char *text) {
    for (; *text; text++) {
        if (*text == '&') put(w, "&amp;");
        else if (*text == '<') put(w, "&lt;");
        else put(w, "%c", *text);
    }
}

// The logarithm to the base 2, straight between powers of two: where a point is drawn.
static double find_octaves(double ratio) {
    double octaves = 0;
    while (ratio >= 2) {
        ratio /= 2;
        octaves++;
    }
    return octaves + ratio - 1;
}

// Points at RAM and loss; the darker, the less flash. Losses are drawn by their logarithm, 0 at the foot.
static int write_limit_front_picture(program *p, const limit_front *f) {
    enum { LEFT = 80, TOP = 40, WIDE = 600, HIGH = 320 };
    double low = INFINITY, high = 0, span;
    writer w;
    int i, code = open_writer(p->o.svg, &w);
    if (code) return code;
    for (i = 0; i < f->count; i++) {
        if (f->fits[i].loss > 0 && f->fits[i].loss < low) low = f->fits[i].loss;
        if (f->fits[i].loss > high) high = f->fits[i].loss;
    }
    low = low < INFINITY ? low / 2 : 1;
    span = high > low ? find_octaves(high / low) : 1;
    put(&w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<text x=\"%d\" y=\"20\" font-size=\"15\">", LEFT + WIDE + 40, TOP + HIGH + 60, LEFT);
    put_markup_text(&w, p->model);
    put(&w, ": RAM, flash and loss</text>\n<path d=\"M%d %dv%dh%d\" fill=\"none\" stroke=\"#444444\"/>\n", LEFT, TOP, HIGH, WIDE);
    put(&w, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">bytes of RAM</text>\n", LEFT + WIDE / 2, TOP + HIGH + 45);
    put(&w, "<text x=\"%d\" y=\"%d\">%llu</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%llu</text>\n", LEFT, TOP + HIGH + 20,
        (ull)f->least[0], LEFT + WIDE, TOP + HIGH + 20, (ull)f->most[0]);
    put(&w, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3g</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">loss %.3g</text>\n",
        LEFT - 8, TOP + 8, high, LEFT - 8, TOP + HIGH, low);
    for (i = 0; i < f->count; i++) {
        const tl_precision_fit *fit = &f->fits[i];
        double x = f->most[0] > f->least[0] ? ((double)fit->ram_bytes - (double)f->least[0]) / (double)(f->most[0] - f->least[0]) : 0;
        double y = fit->loss > low ? find_octaves(fit->loss / low) / span : 0;
        double shade = f->most[1] > f->least[1] ? ((double)fit->flash_bytes - (double)f->least[1]) / (double)(f->most[1] - f->least[1]) : 0;
        int grey = (int)(200 * (shade < 0 ? 0 : shade > 1 ? 1 : shade));
        put(&w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#%02x%02xff\"><title>RAM %llu, flash %llu, loss %.4g</title></circle>\n",
            LEFT + WIDE * x, TOP + HIGH - HIGH * y, (unsigned)grey, (unsigned)grey, (ull)fit->ram_bytes, (ull)fit->flash_bytes, fit->loss);
    }
    put(&w, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">dark: %llu bytes of flash, light: %llu</text>\n</svg>\n", LEFT + WIDE, TOP + 8,
        (ull)f->least[1], (ull)f->most[1]);
    return close_writer(p, &w);
}

static int run_limit_front(program *p) {
    static limit_front f;
    FILE *out = report_stream(p);
    uint8_t *in_slots = (uint8_t *)calloc((size_t)p->graph.node_count, 1);
    tl_fit_desc desc;
    tl_result result = TL_OK;
    int code = in_slots ? describe_limits(p, in_slots, &desc) : fail(CODE_INPUT, "no memory for limits");
    desc.arena_limit = FRONT_ARENAS;
    if (!code) result = find_limit_front(p, &desc, &f);
    clear_progress(p);
    free(in_slots);
    if (result == TL_ERROR_INFEASIBLE) code = fail(CODE_INFEASIBLE, "%s: %s", path_of(p), reason_of(&p->env));
    else if (result) code = fail_result(p, path_of(p));
    if (!code && p->o.json) code = write_limit_front_json(p, &f);
    if (!code && p->o.svg) code = write_limit_front_picture(p, &f);
    if (!code && out) print_limit_front(p, &f, out);
    while (f.count) tl_free_precision_fit(&p->env, &f.fits[--f.count]);
    return code;
}

// -- compiling: split, fused chains, formats and the plan at once --

// The first node that scales with the batch and whose outputs do not divide into so many parts of whole elements of
// 4 bytes; -1 = all do.
static int32_t find_whole_node(const tl_graph *graph, uint64_t parts) {
    const tl_attributes *a = graph->attributes;
    int32_t i, at = 0;
    for (i = 0; i < graph->tensor_count; i++) {
        uint64_t bytes = graph->outputs[i].bytes, element = bytes % 4 ? 1 : 4;
        while (a && at < a->row_count && a->rows[at].node < graph->outputs[i].node) at++;
        if (a && at < a->row_count && a->rows[at].node == graph->outputs[i].node && a->rows[at].reduces) continue;
        if (!graph->nodes[graph->outputs[i].node].fixed && bytes / element % parts) return graph->outputs[i].node;
    }
    return -1;
}

// A batch that cannot be split at all is a mistake in the model: said before any work.
static int check_split(const program *p) {
    uint64_t batch = p->graph.batch, parts;
    int32_t node = -1;
    if (batch <= 1) return fail(CODE_INPUT, "--split: the model has no line batch N with N above 1");
    for (parts = batch; parts > 1; parts--) {
        if (batch % parts) continue;
        node = find_whole_node(&p->graph, parts);
        if (node < 0) return CODE_OK;
    }
    return fail(CODE_INPUT, "--split: no number of parts of the batch of %llu divides the elements of node %s; "
                "a node that does not scale with the batch says fixed", (ull)batch, tl_name_node(&p->graph, node));
}

// Read --loss and --profiles, and the rates of conversions.
static int prepare_compile(program *p) {
    tl_precision_desc *formats = &p->choice.desc;
    choice_words none;
    memset(&none, 0, sizeof none);
    if (p->o.precision || has_limits(&p->o)) return p->o.split ? check_split(p) : CODE_OK;     // formats are chosen before
    if (p->o.loss && strcmp(p->o.loss, "any") == 0) formats->loss_limit = INFINITY;
    else if (p->o.loss && !read_number(p->o.loss, &formats->loss_limit))
        return fail(CODE_INPUT, "--loss %s: must be a number of 0 or more, like 0.01, or any", p->o.loss);
    formats->schemes = UINT32_C(1) << TL_SCHEME_F32 | UINT32_C(1) << TL_SCHEME_BF16;
    if (p->o.inference) formats->schemes |= UINT32_C(1) << TL_SCHEME_F16;
    formats->allow_unknown = 1;
    formats->allow_sensitive = 1;
    if (read_profiles(p) || parse_choice_device(p, &none)) return CODE_INPUT;
    return p->o.split ? check_split(p) : CODE_OK;
}

static int on_compile_progress(const tl_compile_progress *now, void *user) {
    tl_remat_progress figures;
    memset(&figures, 0, sizeof figures);
    figures.work = now->work;
    figures.work_limit = now->work_limit;
    figures.cost = now->cost;
    figures.bound_cost = now->bound_cost;
    return on_progress(&figures, user);
}

static void fill_compile(program *p) {
    compilation *c = &p->compilation;
    tl_compile_desc *desc = &c->desc;
    int has_formats = p->o.loss && !p->has_choice;      // which are to be chosen
    c->strategy.mode = TL_MODE_LAZY;
    if (!p->o.inference) c->strategy.gradient = tl_gradient_checkpointed(0);
    c->strategy.precision = has_formats ? TL_PRECISION_MIXED : TL_PRECISION_SINGLE;
    c->strategy.memory = TL_MEMORY_POOLED;
    c->strategy.enable_fusion = 1;
    c->device = p->choice.device;
    c->device.link_bytes_per_second = p->device.link_bytes_per_second;
    if (p->device.codec_bytes_per_second) c->device.codec_bytes_per_second = p->device.codec_bytes_per_second;
    c->model = p->graph;
    desc->graph = &c->model;
    desc->strategy = &c->strategy;
    desc->device = device_of(p) || p->choice.desc.device ? &c->device : NULL;
    desc->codec = p->codec;
    desc->budget_bytes = p->budget_bytes;
    desc->host_budget_bytes = p->host_bytes;
    desc->alignment_bytes = p->alignment;
    desc->block_bytes = p->block_bytes;
    desc->in_flight = p->in_flight;
    desc->kernel_precisions = 1u << TL_PRECISION_SINGLE;
    if (has_formats) desc->kernel_precisions |= 1u << TL_PRECISION_MIXED;
    if (has_formats) desc->precision = &p->choice.desc;
    desc->may_split = p->o.split;
    desc->work_limit = p->work_limit;
    desc->progress = on_compile_progress;
    desc->user = p;
}

// Compile several strategies; that of the desc is the recommended one then.
static tl_result compile_recommended(program *p) {
    compilation *c = &p->compilation;
    tl_recommend_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.compile = c->desc;
    desc.compile.strategy = NULL;
    desc.inference = p->o.inference;
    result = tl_recommend(&p->env, &desc, &c->recommendation);
    if (result) return result;
    c->compiled = c->recommendation.compiled;
    memset(&c->recommendation.compiled.plan, 0, sizeof c->recommendation.compiled.plan);
    c->recommendation.compiled.memory = NULL;  // the figures stay
    c->strategy = c->recommendation.strategy;
    return TL_OK;
}

static int fail_choosing(program *p, tl_result result) {
    uint64_t least = tl_find_least_budget(&p->env.error);
    int code;
    if (result != TL_ERROR_INFEASIBLE) return fail_result(p, path_of(p));
    p->report.least_budget_bytes = least == UINT64_MAX ? 0 : least;
    p->report.limiting_node = -1;
    code = p->o.json && !p->o.pareto ? write_json(p, 1) : CODE_OK;
    if (code) return code;
    return fail(CODE_INFEASIBLE, "%s: %s%s", path_of(p), reason_of(&p->env),
                interrupted ? " (stopped early)" : "");
}

static tl_result keep_text(void *user, const char *text, size_t length) {
    char *to = (char *)user;
    size_t used = strlen(to);
    if (length >= EXPLANATION_SIZE - used) return TL_ERROR_NO_MEMORY;
    memcpy(to + used, text, length);
    to[used + length] = 0;
    return TL_OK;
}

// Say what was compiled. What one more MiB would buy is left out where the search for it is stopped.
static int explain_compilation(program *p) {
    compilation *c = &p->compilation;
    tl_compile_desc desc = c->desc;
    tl_sink sink;
    tl_result result = TL_OK;
    int was_interrupted;
    sink.write = keep_text;
    sink.user = c->text;
    p->doing = "1 MiB more";
    do {
        was_interrupted = interrupted;
        if (was_interrupted) desc.budget_bytes = 0;
        c->text[0] = 0;
        result = tl_explain_compiled(&p->env, &desc, &c->compiled, sink);
    } while (interrupted && !was_interrupted);
    clear_progress(p);
    return result ? fail_result(p, path_of(p)) : CODE_OK;
}

// Put the graph and the plan that were compiled in the model's place.
static int take_compiled(program *p) {
    compilation *c = &p->compilation;
    c->keep_all = p->keep_all;
    memset(&p->keep_all, 0, sizeof p->keep_all);
    p->graph = *c->compiled.graph;
    p->plan = c->compiled.plan;
    memset(&c->compiled.plan, 0, sizeof c->compiled.plan);
    p->has_compiled = 1;
    if (!tl_plan_keep_all(&p->env, &p->graph, p->o.inference, &p->keep_all)) return CODE_OK;
    return fail_result(p, path_of(p));
}

static int plan_compiled(program *p) {
    compilation *c = &p->compilation;
    tl_result result;
    int code = CODE_OK;
    fill_compile(p);
    p->doing = "compiling";
    result = p->o.recommend ? compile_recommended(p) : tl_compile(&p->env, &c->desc, &c->compiled);
    clear_progress(p);
    if (result) return fail_choosing(p, result);
    p->work += c->compiled.work;
    if ((p->o.c_table || p->o.c_code) && c->compiled.nodes)
        return fail(CODE_INPUT, "%s: the compiled graph has fused nodes or conversions; running it "
                    "needs their map to the nodes of the model, which a table does not hold",
                    p->o.c_table ? "--c-table" : "--c-code");
    if (report_stream(p)) code = explain_compilation(p);
    return code ? code : take_compiled(p);
}

static int print_compilation(const program *p, FILE *out) {
    const compilation *c = &p->compilation;
    size_t length = p->o.recommend ? tl_print_recommendation(&c->recommendation, NULL, 0) : 0;
    char *rows = (char *)malloc(length + 1);
    if (!rows) return fail(CODE_INPUT, "no memory to print the strategies");
    rows[0] = 0;
    if (p->o.recommend) tl_print_recommendation(&c->recommendation, rows, length + 1);
    fprintf(out, "%s: %d nodes, compiled for %s\n\n", p->model, (int)c->model.node_count,
            p->o.inference ? "inference" : "training");
    fprintf(out, "%s%s%s\n", rows, length ? "\n" : "", c->text);
    free(rows);
    return CODE_OK;
}

enum { CHOICE_SIZE = 256 };

static void add_count(char text[CHOICE_SIZE], const char *before, int32_t count, const char *behind) {
    size_t length = strlen(text);
    snprintf(text + length, CHOICE_SIZE - length, "%s%s%d%s", length ? ", " : "", before, (int)count, behind);
}

// In one line: "2 parts, 3 fused, f32 10, bf16 40, 12 conversions".
static void name_choice(const program *p, const tl_compile_choice *choice, char text[CHOICE_SIZE]) {
    int k;
    text[0] = 0;
    if (choice->part_count > 1) add_count(text, "", choice->part_count, " parts");
    if (choice->fused_count) add_count(text, "", choice->fused_count, " fused");
    for (k = 0; k < TL_FORMAT_COUNT && !p->has_choice; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s ", tl_name_format((tl_format)k));
        if (choice->format_counts[k]) add_count(text, name, choice->format_counts[k], "");
    }
    if (choice->conversion_count) add_count(text, "", choice->conversion_count, " conversions");
    if (choice->copy_count) add_count(text, "", choice->copy_count, " copies");
    if (choice->compressed_count) add_count(text, "", choice->compressed_count, " compressed");
}

static void print_compile_point(const program *p, FILE *out, const tl_compile_point *at, int is_knee) {
    const tl_compile_choice *choice = &at->choice;
    char words[CHOICE_SIZE];
    name_choice(p, choice, words);
    fprintf(out, "%20llu %12s %8.2f %% %12.6f %12.6f  %-11s  %s%s\n", (ull)choice->arena_bytes,
            bytes_label(choice->arena_bytes).text, 100 * ratio_of(choice->arena_bytes, p->keep_all.peak_bytes),
            ratio_of(choice->cost, p->keep_all.base_cost), ratio_of(at->bound_cost, p->keep_all.base_cost),
            gap_label(choice->cost, at->bound_cost).text, words, is_knee ? "  <- knee" : "");
}

static int write_compile_front_json(program *p, const tl_compile_front *front) {
    writer w;
    int32_t i;
    int code = open_writer(p->o.json, &w);
    if (code) return code;
    put_head_json(p, &w);
    put(&w, ", \"keep_all_peak_bytes\": %llu, \"base_cost\": %llu, \"knee\": %d, \"points\": [",
        (ull)p->keep_all.peak_bytes, (ull)p->keep_all.base_cost, (int)front->knee);
    for (i = 0; i < front->point_count; i++) {
        put(&w, "%s\n  {\"budget_bytes\": ", i ? "," : "");
        if (front->points[i].budget_bytes) put(&w, "%llu", (ull)front->points[i].budget_bytes);
        else put(&w, "null");
        put(&w, ", \"bound_cost\": %llu, \"choice\": ", (ull)front->points[i].bound_cost);
        put_compile_choice_json(p, &w, &front->points[i].choice);
        put(&w, "}");
    }
    put(&w, "\n]");
    put_end_json(p, &w);
    return close_writer(p, &w);
}

static void print_compile_front(const program *p, FILE *out, const tl_compile_front *front) {
    int32_t i;
    fprintf(out, "%s: %d nodes, compiled for %s\n\n", p->model, (int)p->graph.node_count,
            p->o.inference ? "inference" : "training");
    fprintf(out, "%20s %12s %10s %12s %12s  %-11s  %s\n", "bytes", "", "keep all", "cost", "bound", "gap",
            "nodes in");
    for (i = 0; i < front->point_count; i++)
        print_compile_point(p, out, &front->points[i], i == front->knee && front->point_count > 2);
    fprintf(out, "\n%d points\n%.1f million steps of work, %.2f s\n", (int)front->point_count,
            (double)p->work * 1e-6, now_seconds() - p->start);
}

// The curve of bytes against cost over all choices.
static int run_compile_front(program *p) {
    FILE *out = report_stream(p);
    tl_compile_front front;
    tl_result result;
    int code = CODE_OK;
    fill_compile(p);
    p->doing = "compiling the curve";
    result = tl_plan_compile_front(&p->env, &p->compilation.desc, 0, &front);
    clear_progress(p);
    if (result) return fail_choosing(p, result);
    if (interrupted) fprintf(stderr, "tl_plan: stopped early: these are the best plans so far\n");
    p->work += front.work;
    if (p->o.json) code = write_compile_front_json(p, &front);
    if (!code && out) print_compile_front(p, out, &front);
    tl_free_compile_front(&p->env, &front);
    return code;
}

static void free_compilation(program *p) {
    compilation *c = &p->compilation;
    if (p->has_compiled) p->graph = c->model;  // the other one belongs to what was compiled
    tl_free_compiled_plan(&p->env, &c->compiled);
    tl_free_recommendation(&p->env, &c->recommendation);
    tl_free_plan(&p->env, &c->keep_all);
}

// -- ranks: a model on several workers --

enum { MOST_RANKS = 1024, MOST_MICRO_BATCHES = 65535, MOST_CHUNKS = 1024 };

// What --ranks was told, and what came of it.
typedef struct rank_work {
    int32_t  rank_count, chunk_count, micro_batches, states;
    tl_link  link;                 // its nanosecond is one unit of cost
    uint64_t base_bytes;           // weights, gradients and optimizer of the whole model
    tl_pipeline pipeline;          // of --gpipe, --chunks, or what --auto has chosen
    tl_compiled_ranks compiled;    // a pipeline, or one replica of it
    tl_parallel_plan  parallel;    // --data, --auto: what was compared
} rank_work;

// Numbers of the optimizer for each weight.
static int parse_states(const program *p, int32_t *count) {
    uint64_t states = 0;
    if (p->o.states && strcmp(p->o.states, "0") != 0 && (!read_count(p->o.states, &states) || states > 16))
        return fail(CODE_INPUT, "--states %s: must be a whole number from 0 to 16", p->o.states);
    *count = (int32_t)states;
    return CODE_OK;
}

static int parse_rank_numbers(const program *p, rank_work *r) {
    uint64_t ranks = 0, batches = 8, chunks = 1;
    if (!read_count(p->o.ranks, &ranks) || ranks > MOST_RANKS)
        return fail(CODE_INPUT, "--ranks %s: must be a whole number from 1 to %d", p->o.ranks, MOST_RANKS);
    if (p->o.batches && (!read_count(p->o.batches, &batches) || batches > MOST_MICRO_BATCHES))
        return fail(CODE_INPUT, "--micro-batches %s: must be a whole number from 1 to %d beside --ranks", p->o.batches,
                    MOST_MICRO_BATCHES);
    if (p->o.chunks && (!read_count(p->o.chunks, &chunks) || chunks < 2 || chunks > MOST_CHUNKS))
        return fail(CODE_INPUT, "--chunks %s: must be a whole number from 2 to %d", p->o.chunks, MOST_CHUNKS);
    r->chunk_count = (int32_t)chunks;
    r->rank_count = (int32_t)ranks;
    r->micro_batches = p->o.split && !p->o.batches ? 0 : (int32_t)batches;
    return parse_states(p, &r->states);
}

static double gradients_of(const program *p) { return p->o.inference ? 0.0 : 1.0; }

static int prepare_ranks(program *p, rank_work *r) {
    int code = parse_rank_numbers(p, r);
    if (!code && p->o.split) code = check_split(p);
    if (!code && p->o.link) code = parse_link(p);
    r->link.bytes_per_second = p->device.link_bytes_per_second;
    if (!code && p->o.budget) code = parse_bytes("--budget", p->o.budget, 0, &p->budget_bytes);
    if (!code && p->o.host_budget) code = parse_bytes("--host-budget", p->o.host_budget, 0, &p->host_bytes);
    if (!code && (tl_plan_keep_all(&p->env, &p->graph, p->o.inference, &p->keep_all) ||
                  tl_find_base_bytes(&p->env, &p->graph, gradients_of(p), r->states, &r->base_bytes)))
        code = fail_result(p, path_of(p));
    return code;
}

static int fail_ranks(const program *p, tl_result result) {
    return fail(result == TL_ERROR_INFEASIBLE ? CODE_INFEASIBLE : CODE_INPUT, "%s: %s", path_of(p), reason_of(&p->env));
}

// Plan the pipeline that was asked for, or the best of all ways.
static tl_result compile_pipeline(program *p, rank_work *r) {
    tl_ranks_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.rank_count = r->rank_count;
    desc.micro_batch_count = r->micro_batches;
    desc.may_split = p->o.split;
    desc.inference = p->o.inference;
    desc.budget_bytes = p->budget_bytes;
    desc.gradient_ratio = gradients_of(p);
    desc.optimizer_ratio = r->states;
    desc.alignment_bytes = p->alignment;
    desc.link = p->o.link ? &r->link : NULL;
    desc.device = &p->device;
    desc.host_budget_bytes = p->host_bytes;
    desc.work_limit = p->work_limit;
    if (p->o.automatic) {
        const tl_parallel_choice *best;
        result = tl_compile_parallel(&p->env, &desc, &r->compiled, &r->parallel);
        if (result) return result;
        best = &r->parallel.choices[r->parallel.best];
        r->pipeline = best->pipeline;
        r->micro_batches = r->compiled.micro_batch_count * best->replica_count;
        return TL_OK;
    }
    desc.chunk_count = r->chunk_count;
    r->pipeline = p->o.chunks ? TL_PIPELINE_INTERLEAVED : p->o.gpipe ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
    desc.pipeline = r->pipeline;
    result = tl_compile_ranks(&p->env, &desc, &r->compiled);
    if (!result) r->micro_batches = r->compiled.micro_batch_count;
    return result;
}

// All micro-batches one after the other, or the batch as one, everything kept.
static double single_cost(const program *p, const rank_work *r) {
    return (double)p->keep_all.base_cost * (p->o.split ? 1 : r->micro_batches);
}

static void print_single(const program *p, FILE *out, const rank_work *r, uint64_t cost) {
    double single = single_cost(p, r), bytes = (double)p->keep_all.peak_bytes + (double)r->base_bytes;
    fprintf(out, "one rank that keeps everything: %.0f%s, %.3f times as long, and %.0f bytes\n", single,
            time_label(p, single).text, cost ? single / (double)cost : 1.0, bytes);
    if (!r->base_bytes) fprintf(out, "the model says nothing of weights (param=): none are counted\n");
    fprintf(out, "%.2f s\n", now_seconds() - p->start);
}

static int32_t first_of(const tl_compiled_ranks *c, int32_t stage) { return stage ? c->ends[stage - 1] : 0; }

// "conv1 .. relu4"
static label stage_label(const program *p, const tl_compiled_ranks *c, int32_t stage) {
    label l;
    snprintf(l.text, sizeof l.text, "%.14s .. %.14s", tl_name_node(&p->graph, first_of(c, stage)),
             tl_name_node(&p->graph, c->ends[stage] - 1));
    return l;
}

static void print_pipeline(const program *p, FILE *out, const rank_work *r) {
    const tl_compiled_ranks *c = &r->compiled;
    int32_t k, stage;
    fprintf(out, "%4s %-33s %12s %6s %12s %12s %12s %12s %15s %15s\n", "rank", "nodes", "weights", "flight", "held",
            "peak", "arena", "sent", "busy", "ends");
    for (k = 0; k < c->rank_count; k++) {
        const tl_rank_plan *rank = &c->ranks[k];
        const tl_plan *plan = &rank->compiled.plan;
        fprintf(out, "%4d %-33s %12llu %6d %12llu %12llu %12llu %12llu %15llu %15llu\n", (int)k,
                stage_label(p, c, k).text, (ull)rank->base_bytes, (int)rank->in_flight_count,
                (ull)rank->held_bytes, (ull)plan->peak_bytes, (ull)plan->arena_bytes, (ull)rank->sent_bytes,
                (ull)rank->busy_cost, (ull)rank->end_cost);
        for (stage = k + c->rank_count; stage < c->rank_count * c->chunk_count; stage += c->rank_count)
            fprintf(out, "%4s %s\n", "", stage_label(p, c, stage).text);
    }
    for (k = 0; k < c->rank_count; k++)
        if (c->ranks[k].compiled.plan.host_peak_bytes)
            fprintf(out, "%s%4d: at most %llu bytes of copies on the host\n", k ? "" : "\n", (int)k,
                    (ull)c->ranks[k].compiled.plan.host_peak_bytes);
    fprintf(out, "\nstep of %d micro-batches, %s: %llu%s, bubble %.2f %%\n", (int)c->micro_batch_count,
            tl_name_pipeline(r->pipeline), (ull)c->cost, time_label(p, (double)c->cost).text, 100 * c->bubble_ratio);
    fprintf(out, "no cut takes less than %llu, gap: %s\n", (ull)c->bound_cost,
            gap_label(c->cost, c->bound_cost).text);
}

static void put_rank_head_json(const program *p, writer *w, const rank_work *r) {
    put_head_json(p, w);
    put(w, ", \"rank_count\": %d, \"micro_batch_count\": %d", (int)r->rank_count, (int)r->micro_batches);
    put(w, ", \"budget_bytes\": ");
    if (p->budget_bytes) put(w, "%llu", (ull)p->budget_bytes);
    else put(w, "null");
    put(w, ", \"host_budget_bytes\": %llu", (ull)p->host_bytes);
    put(w, ", \"states\": %d, \"link_bytes_per_second\": ", (int)r->states);
    if (p->o.link) put(w, "%llu", (ull)r->link.bytes_per_second);
    else put(w, "null");
    put(w, ", \"single_cost\": %.0f, \"single_bytes\": %.0f", single_cost(p, r),
        (double)p->keep_all.peak_bytes + (double)r->base_bytes);
}

// A graph as .tlg, or the steps of a plan as --schedule writes them.
static void put_printed_json(writer *w, const tl_graph *graph, const tl_plan *plan) {
    size_t length = plan ? tl_print_schedule(plan, NULL, 0) : tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1);
    if (!text) {
        w->result = TL_ERROR_NO_MEMORY;
        return;
    }
    if (plan) tl_print_schedule(plan, text, length + 1);
    else tl_print_graph(graph, text, length + 1);
    put_json_text(w, text);
    free(text);
}

// What a rank runs: its graph, where the nodes of that come from, the steps, and where they allocate.
static void put_rank_plan_json(writer *w, const tl_compiled_plan *compiled) {
    const tl_plan *plan = &compiled->plan;
    int32_t i;
    put(w, ",\n   \"graph\": ");
    put_printed_json(w, compiled->graph, NULL);
    put(w, ",\n   \"members\": [");
    for (i = 0; i < compiled->graph->node_count; i++) {
        int32_t first = compiled->first_members[i];
        put(w, "%s%d", i ? ", " : "", first < compiled->first_members[i + 1] ? (int)compiled->members[first] : -1);
    }
    put(w, "],\n   \"steps\": ");
    put_printed_json(w, compiled->graph, plan);
    put(w, ",\n   \"offsets\": [");
    for (i = 0; i < plan->offset_count; i++) put(w, "%s%llu", i ? ", " : "", (ull)plan->offsets[i]);
    put(w, "],\n   \"host_peak_bytes\": %llu, \"host_arena_bytes\": %llu, \"host_offsets\": [",
        (ull)plan->host_peak_bytes, (ull)plan->host_arena_bytes);
    for (i = 0; i < plan->host_offset_count; i++) put(w, "%s%llu", i ? ", " : "", (ull)plan->host_offsets[i]);
    put(w, "]");
}

static void put_rank_json(const program *p, writer *w, const tl_compiled_ranks *c, int32_t index) {
    const tl_rank_plan *rank = &c->ranks[index];
    const tl_plan *plan = &rank->compiled.plan;
    int32_t stage;
    put(w, "\n  {\"first_node\": %d, \"end_node\": %d, \"first_name\": ", (int)rank->first_node, (int)rank->end_node);
    put_json_text(w, tl_name_node(&p->graph, rank->first_node));
    put(w, ", \"last_name\": ");
    put_json_text(w, tl_name_node(&p->graph, rank->end_node - 1));
    put(w, ", \"chunks\": [");
    for (stage = index; stage < c->rank_count * c->chunk_count; stage += c->rank_count)
        put(w, "%s[%d, %d]", stage > index ? ", " : "", (int)first_of(c, stage), (int)c->ends[stage]);
    put(w, "], \"base_bytes\": %llu, \"in_flight_count\": %d, \"held_bytes\": %llu", (ull)rank->base_bytes,
        (int)rank->in_flight_count, (ull)rank->held_bytes);
    put(w, ", \"peak_bytes\": %llu, \"arena_bytes\": %llu, \"sent_bytes\": %llu", (ull)plan->peak_bytes,
        (ull)plan->arena_bytes, (ull)rank->sent_bytes);
    put(w, ", \"busy_cost\": %llu, \"end_cost\": %llu, \"step_count\": %d, \"allocation_count\": %d",
        (ull)rank->busy_cost, (ull)rank->end_cost, (int)plan->step_count, (int)plan->offset_count);
    put(w, ", \"repeat_count\": %d", (int)plan->repeat_count);
    put_rank_plan_json(w, &rank->compiled);
    put(w, "}");
}

static void put_pipeline_json(const program *p, writer *w, const rank_work *r) {
    const tl_compiled_ranks *c = &r->compiled;
    int32_t k;
    put(w, ", \"schedule\": \"%s\", \"chunk_count\": %d, \"inference\": %s, \"alignment_bytes\": %llu",
        tl_name_pipeline(r->pipeline), (int)c->chunk_count, p->o.inference ? "true" : "false", (ull)p->alignment);
    put(w, ", \"total_cost\": %llu, \"lower_bound_cost\": %llu, \"bubble_ratio\": %.9f, \"hash\": \"%016llx\"",
        (ull)c->cost, (ull)c->bound_cost, c->bubble_ratio, (ull)c->hash);
    put(w, ", \"ranks\": [");
    for (k = 0; k < c->rank_count; k++) {
        if (k) put(w, ",");
        put_rank_json(p, w, c, k);
    }
    put(w, "\n]");
}

// -- ranks: data parallel, and the table of ways --

// Bytes of a node's outputs that a backward reads, and what its forward saves for it.
static uint64_t kept_bytes(const tl_graph *graph, const uint8_t *needed, const tl_node *node) {
    uint64_t sum = node->saved_bytes;
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        if (needed[k] || graph->outputs[k].needed) sum += graph->outputs[k].bytes;
    return sum;
}

// For each tensor its last reader, and whether the backward of one needs it.
static void find_readers(const tl_graph *graph, int32_t *last, uint8_t *needed) {
    int32_t id, k;
    for (k = 0; k < graph->tensor_count; k++) last[k] = -1;
    for (id = 0; id < graph->node_count; id++)
        for (k = graph->nodes[id].first_input; k < graph->nodes[id].first_input + graph->nodes[id].input_count; k++) {
            const tl_node_input *input = &graph->inputs[k];
            last[input->tensor] = id;
            needed[input->tensor] |= input->needed;
        }
}

// A unit for each node that is no input; returns how many.
static int32_t fill_units(const tl_graph *graph, const int32_t *last, const uint8_t *needed, tl_unit *units) {
    int32_t count = 0, id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        tl_unit *unit = &units[count];
        if (node->is_input) continue;
        unit->forward_ns = node->fwd_cost;
        unit->backward_ns = node->has_grad ? node->bwd_cost : 0;
        unit->activation_bytes = kept_bytes(graph, needed, node);
        unit->parameter_bytes = node->param_bytes;
        for (k = 0; k < graph->tensor_count; k++)    // what is read behind it, graph inputs excepted
            if (graph->outputs[k].node <= id && last[k] > id && !graph->nodes[graph->outputs[k].node].is_input)
                unit->output_bytes += graph->outputs[k].bytes;
        count++;
    }
    return count;
}

// What keeping everything takes beside the activations: inputs, gradients under way, scratch.
static uint64_t beside_activations(const program *p, const tl_unit *units, int32_t count) {
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < count; k++) sum += units[k].activation_bytes;
    return p->keep_all.peak_bytes > sum ? p->keep_all.peak_bytes - sum : 0;
}

static tl_result plan_parallel(program *p, rank_work *r, const tl_unit *units, int32_t count) {
    tl_parallel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.unit_count = count;
    desc.rank_count = r->rank_count;
    desc.budget_bytes = p->budget_bytes;
    desc.micro_batch_count = r->micro_batches;
    desc.optimizer_multiplier = (uint64_t)r->states;
    desc.rank_bytes = beside_activations(p, units, count);
    desc.link = p->o.link ? &r->link : NULL;
    desc.kinds = 1u << TL_PARALLELISM_NONE | 1u << TL_PARALLELISM_DATA;
    desc.work_limit = p->work_limit;
    return tl_plan_parallel(&p->env, &desc, &r->parallel);
}

static int choose_parallel(program *p, rank_work *r) {
    size_t tensors = (size_t)p->graph.tensor_count;
    tl_unit *units = (tl_unit *)calloc((size_t)p->graph.node_count + 1, sizeof *units);
    int32_t *last = (int32_t *)malloc((tensors + 1) * sizeof *last);
    uint8_t *needed = (uint8_t *)calloc(tensors + 1, 1);
    int code = CODE_OK;
    if (units && last && needed) {
        tl_result result;
        find_readers(&p->graph, last, needed);
        result = plan_parallel(p, r, units, fill_units(&p->graph, last, needed, units));
        if (result) code = fail_ranks(p, result);
    } else {
        code = fail(CODE_INPUT, "no memory for the units of the model");
    }
    free(units);
    free(last);
    free(needed);
    return code;
}

static int print_parallel(const program *p, FILE *out, const rank_work *r) {
    const tl_parallel_plan *plan = &r->parallel;
    uint64_t cost = plan->choices[plan->best].time_ns;
    size_t length = tl_print_parallel_plan(plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    if (!text) return fail(CODE_INPUT, "no memory for the table");
    tl_print_parallel_plan(plan, text, length + 1);
    fprintf(out, "%s\nstep of %d micro-batches: %llu%s; all work on all ranks: %llu\n", text, (int)r->micro_batches,
            (ull)cost, time_label(p, (double)cost).text, (ull)plan->bound_ns);
    if (p->unit_ns != 1 || p->unit_count != 1) fprintf(out, "time_ns is in units of the model's costs\n");
    if (r->compiled.ranks)
        fprintf(out, "\neach of %d replicas:\n", (int)plan->choices[plan->best].replica_count);
    free(text);
    return CODE_OK;
}

// The table of ways, a pipeline, or both.
static int print_ranks(const program *p, FILE *out, const rank_work *r) {
    const tl_parallel_plan *plan = &r->parallel;
    int code = CODE_OK;
    print_head(p, out);
    if (plan->choice_count) code = print_parallel(p, out, r);
    if (!code && r->compiled.ranks) print_pipeline(p, out, r);
    if (!code) print_single(p, out, r, plan->choice_count ? plan->choices[plan->best].time_ns : r->compiled.cost);
    return code;
}

static void put_parallel_json(writer *w, const rank_work *r) {
    const tl_parallel_plan *plan = &r->parallel;
    int32_t k;
    put(w, ", \"best\": %d, \"all_ranks_cost\": %llu, \"choices\": [", (int)plan->best, (ull)plan->bound_ns);
    for (k = 0; k < plan->choice_count; k++) {
        const tl_parallel_choice *c = &plan->choices[k];
        put(w, "%s\n  {\"kind\": \"%s\", \"reason\": \"%s\", \"replica_count\": %d, \"stage_count\": %d", k ? "," : "",
            tl_name_parallelism(c->kind), tl_name_parallel_reason(c->reason), (int)c->replica_count,
            (int)c->stage_count);
        put(w, ", \"schedule\": \"%s\", \"chunk_count\": %d, \"zero_stage\": %d", tl_name_pipeline(c->pipeline),
            (int)c->chunk_count, (int)c->zero_stage);
        put(w, ", \"total_cost\": %llu, \"communication_cost\": %llu, \"bubble_cost\": %llu, \"idle_cost\": %llu",
            (ull)c->time_ns, (ull)c->communication_ns, (ull)c->bubble_ns, (ull)c->idle_ns);
        put(w, ", \"recompute_cost\": %llu", (ull)c->recompute_ns);
        put(w, ", \"sent_bytes\": %llu, \"rank_bytes\": %llu}", (ull)c->sent_bytes, (ull)c->bytes);
    }
    put(w, "\n]");
}

static int write_ranks_json(program *p, const rank_work *r) {
    writer w;
    int code = open_writer(p->o.json, &w);
    if (code) return code;
    put_rank_head_json(p, &w, r);
    if (r->parallel.choice_count) put_parallel_json(&w, r);
    if (r->compiled.ranks) put_pipeline_json(p, &w, r);
    put(&w, ", \"seconds\": %.3f}\n", now_seconds() - p->start);
    return close_writer(p, &w);
}

// -- ranks: picture of a pipeline --

enum { LANE_TOP = 84, LANE_STEP = 34, LANE_HEIGHT = 24 };

static const char *const lane_style[] = {
    "<style>.forward{fill:#0072b2}.backward{fill:#009e73}.batch{fill:#fff;font-size:11px}",
    "@media (prefers-color-scheme:dark){.forward{fill:#3d9be0}.backward{fill:#17b890}.batch{fill:#0d1117}}</style>",
};

// What each stage costs in a training step, and its forwards once for each micro-batch; what is sent on.
static void sum_stages(const program *p, const rank_work *r, const int32_t *last, uint64_t *forward, uint64_t *all,
                       uint64_t *sent) {
    const tl_compiled_ranks *c = &r->compiled;
    const tl_graph *graph = c->compiled ? c->compiled->source : &p->graph;     // of one micro-batch
    int32_t stages = c->rank_count * c->chunk_count, stage, i;
    for (stage = 0; stage < stages; stage++) {
        const tl_compiled_plan *compiled = &c->ranks[stage % c->rank_count].compiled;
        for (i = first_of(c, stage); i < c->ends[stage]; i++) forward[stage] += graph->nodes[i].fwd_cost;
        for (i = 0; i < compiled->plan.step_count; i++) {
            const tl_step *step = &compiled->plan.steps[i];
            int32_t at = compiled->first_members[step->node], node = compiled->members[at];
            if (step->kind > TL_STEP_BACKWARD || compiled->first_members[step->node + 1] == at) continue;
            if (node < first_of(c, stage) || node >= c->ends[stage]) continue;
            all[stage] += step->kind == TL_STEP_BACKWARD ? graph->nodes[node].bwd_cost : graph->nodes[node].fwd_cost;
        }
        if (compiled->plan.repeat_count > 1) all[stage] *= (uint64_t)compiled->plan.repeat_count;
        for (i = 0; i < graph->tensor_count; i++)
            if (graph->outputs[i].node < c->ends[stage] && last[i] >= c->ends[stage] &&
                !graph->nodes[graph->outputs[i].node].is_input) sent[stage] += graph->outputs[i].bytes;
    }
}

// The calls of each rank: forwards, then backwards with what runs again in them; messages on the link. numbers:
// [3 x stages] zeroes.
static tl_result simulate_calls(program *p, const rank_work *r, const int32_t *last, uint64_t *numbers,
                                tl_pipeline_report *report) {
    const tl_compiled_ranks *c = &r->compiled;
    int32_t stages = c->rank_count * c->chunk_count, k;
    uint64_t *forward = numbers, *backward = forward + stages, *sent = backward + stages;
    tl_pipeline_desc desc;
    sum_stages(p, r, last, forward, backward, sent);
    for (k = 0; k < stages; k++) {
        uint64_t share = backward[k] / (uint64_t)c->micro_batch_count;
        backward[k] = share > forward[k] ? share - forward[k] : 0;
    }
    memset(&desc, 0, sizeof desc);
    desc.kind = p->o.inference && c->chunk_count == 1 ? TL_PIPELINE_GPIPE : r->pipeline;
    desc.rank_count = c->rank_count;
    desc.chunk_count = c->chunk_count;
    desc.micro_batch_count = c->micro_batch_count;
    desc.forward_ns = forward;
    desc.backward_ns = backward;
    desc.output_bytes = sent;
    desc.link = p->o.link ? &r->link : NULL;
    desc.keep_events = 1;
    return tl_simulate_pipeline(&p->env, &desc, report);
}

static double lane_x(double time, double total) { return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * time / total; }

// Later chunks are lighter.
static void put_call(writer *w, const tl_pipeline_event *e, int32_t chunks, double total, int y) {
    double x = lane_x((double)e->start_ns, total), width = lane_x((double)e->end_ns, total) - x;
    char name[16], chunk[32] = "", shade[32] = "";
    if (chunks > 1) snprintf(chunk, sizeof chunk, ", chunk %d", (int)e->chunk);
    if (e->chunk) snprintf(shade, sizeof shade, " fill-opacity=\"%.2f\"", 1 - 0.6 * e->chunk / (chunks - 1));
    if (e->end_ns == e->start_ns) return;
    snprintf(name, sizeof name, "%d", (int)e->micro_batch);
    put(w, "<rect class=\"%s\"%s x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>%s of micro-batch %s%s: "
        "%llu to %llu</title></rect>\n", e->is_backward ? "backward" : "forward", shade, x, y,
        width > 1 ? width - 0.5 : width, LANE_HEIGHT, e->is_backward ? "backward" : "forward", name, chunk,
        (ull)e->start_ns, (ull)e->end_ns);
    if (width > 8.0 * (double)strlen(name) + 2)
        put(w, "<text class=\"batch\" x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + width / 2, y + 16,
            name);
}

static void put_time_axis(writer *w, double total, int bottom) {
    double step = nice_step(total, 8);
    int k;
    for (k = 0; k * step <= total; k++) {
        double x = lane_x(k * step, total);
        put(w, "<path class=\"grid\" d=\"M%.2f %dV%d\"/>\n", x, LANE_TOP - 8, bottom);
        put(w, "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n", x, bottom + 18, k * step);
    }
    put(w, "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"end\">cost from the start of the step</text>\n",
        PLOT_RIGHT, bottom + 38);
}

static void put_lanes(const program *p, writer *w, const rank_work *r, const tl_pipeline_report *report) {
    int bottom = LANE_TOP + LANE_STEP * r->compiled.rank_count;
    double total = report->total_ns ? (double)report->total_ns : 1.0;
    int32_t k, i;
    put(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
        "<title>Pipeline of ", PLOT_WIDTH, bottom + 54, PLOT_WIDTH, bottom + 54);
    put_markup(w, p->model);
    put(w, "</title>\n");
    put_lines(w, picture_style, sizeof picture_style / sizeof *picture_style);
    put_lines(w, lane_style, sizeof lane_style / sizeof *lane_style);
    put(w, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" rx=\"6\" width=\"%d\" height=\"%d\"/>\n", PLOT_WIDTH - 1,
        bottom + 53);
    put(w, "<text class=\"title\" x=\"24\" y=\"34\">");
    put_markup(w, p->model);
    put(w, ", %d micro-batches on %d ranks</text>\n", (int)r->compiled.micro_batch_count, (int)r->compiled.rank_count);
    put(w, "<text class=\"label\" x=\"24\" y=\"58\">%s; the plans end at %llu, bubble %.1f %%; drawn: messages leave "
        "when calls end</text>\n", tl_name_pipeline(r->pipeline), (ull)r->compiled.cost,
        100 * r->compiled.bubble_ratio);
    put(w, "<rect class=\"forward\" x=\"640\" y=\"24\" width=\"12\" height=\"12\"/><text class=\"label\" x=\"658\" "
        "y=\"34\">forward</text>\n");
    put(w, "<rect class=\"backward\" x=\"736\" y=\"24\" width=\"12\" height=\"12\"/><text class=\"label\" x=\"754\" "
        "y=\"34\">backward, what runs again</text>\n");
    put_time_axis(w, total, bottom);
    for (k = 0; k < r->compiled.rank_count; k++) {
        int y = LANE_TOP + LANE_STEP * k;
        put(w, "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"end\">rank %d</text>\n", PLOT_LEFT - 8, y + 16,
            (int)k);
        for (i = 0; i < report->event_count; i++)
            put_call(w, &report->events[(size_t)k * (size_t)report->event_count + (size_t)i], r->compiled.chunk_count, total, y);
    }
    put(w, "</svg>\n");
}

static int write_lanes(program *p, const rank_work *r) {
    size_t stages = (size_t)r->compiled.rank_count * (size_t)r->compiled.chunk_count, tensors = (size_t)p->graph.tensor_count;
    uint64_t *numbers = (uint64_t *)calloc(3 * stages + 1, sizeof *numbers);
    int32_t *last = (int32_t *)calloc(tensors + 1, sizeof *last);
    uint8_t *needed = (uint8_t *)calloc(tensors + 1, 1);
    tl_pipeline_report report;
    writer w;
    int code;
    memset(&report, 0, sizeof report);
    if (numbers && last && needed) {
        find_readers(&p->graph, last, needed);
        code = simulate_calls(p, r, last, numbers, &report) ? fail_result(p, path_of(p)) : open_writer(p->o.svg, &w);
    } else {
        code = fail(CODE_INPUT, "no memory to draw");
    }
    if (!code) {
        put_lanes(p, &w, r, &report);
        code = close_writer(p, &w);
    }
    tl_free_pipeline_report(&p->env, &report);
    free(numbers);
    free(last);
    free(needed);
    return code;
}

// Nothing is written before all is planned, so Ctrl-C ends the program at once.
static int run_ranks(program *p) {
    FILE *out = report_stream(p);
    rank_work r;
    tl_result result;
    int code;
    memset(&r, 0, sizeof r);
    signal(SIGINT, SIG_DFL);
    code = prepare_ranks(p, &r);
    if (!code && p->o.data) {
        code = choose_parallel(p, &r);
    } else if (!code) {
        result = compile_pipeline(p, &r);
        if (result) code = fail_ranks(p, result);
    }
    if (!code && p->o.json) code = write_ranks_json(p, &r);
    if (!code && p->o.svg) code = write_lanes(p, &r);
    if (!code && out) code = print_ranks(p, out, &r);
    tl_free_parallel_plan(&p->env, &r.parallel);
    tl_free_compiled_ranks(&p->env, &r.compiled);
    return code;
}

// -- main --

// Without a budget the plan is keep all; its bound is that of planning within its peak.
static int plan_keep_all(program *p) {
    tl_plan figures;
    p->doing = "the bound";
    if (tl_plan_keep_all(&p->env, &p->graph, p->o.inference, &p->plan) ||
        try_budget(p, p->plan.peak_bytes ? p->plan.peak_bytes : 1, p->work_limit, &figures, &p->report)) {
        clear_progress(p);
        return fail_result(p, path_of(p));
    }
    p->plan.bound_cost = p->report.bound_cost < p->plan.cost ? p->report.bound_cost : p->plan.cost;
    p->plan.in_flight = p->in_flight;    // place_plan finds what it takes then
    return CODE_OK;
}

static int plan_budget(program *p) {
    tl_result result;
    p->doing = "planning";
    p->in_arena = !p->o.live;
    result = make_plan(p, p->budget_bytes, p->work_limit, &p->plan, &p->report);
    p->in_arena = 0;
    clear_progress(p);
    if (result == TL_ERROR_INFEASIBLE && !p->report.least_budget_bytes)     // no budget would do: --block
        return fail(CODE_INFEASIBLE, "%s: %s", path_of(p), reason_of(&p->env));
    if (result == TL_ERROR_INFEASIBLE) {
        int code = p->o.json ? write_json(p, 1) : CODE_OK;
        return code ? code : fail_infeasible(p);
    }
    if (result) return fail_result(p, path_of(p));
    if (is_cut(p)) p->plan.repeat_count = p->parts;
    if (is_cut(p)) p->plan.bound_cost = p->rows_choice.report.bound_cost;     // of all choices
    return CODE_OK;
}

static int on_order_progress(const tl_order_progress *now, void *user) {
    tl_remat_progress figures;
    memset(&figures, 0, sizeof figures);
    figures.work = now->work;
    figures.work_limit = now->work_limit;
    return on_progress(&figures, user);
}

// The order of the least peak, with its places; a budget is what these, or the live bytes, may take.
static int plan_order(program *p) {
    tl_order_desc desc;
    tl_result result;
    uint64_t taken;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.inference = p->o.inference;
    desc.alignment_bytes = p->alignment;
    desc.work_limit = p->work_limit;
    desc.progress = on_order_progress;
    desc.user = p;
    p->doing = "ordering";
    result = tl_plan_order(&p->env, &desc, &p->plan, &p->order);
    clear_progress(p);
    if (result) return fail_result(p, path_of(p));
    p->work += p->order.work;
    taken = p->o.live ? p->plan.peak_bytes : p->plan.arena_bytes;
    if (!p->budget_bytes || taken <= p->budget_bytes) return CODE_OK;
    p->report.least_budget_bytes = taken;
    p->report.bound_budget_bytes = p->order.bound_bytes < taken ? p->order.bound_bytes : taken;
    p->report.proven = p->report.bound_budget_bytes > p->budget_bytes;
    p->report.limiting_node = -1;
    if (p->o.json && write_json(p, 1)) return CODE_INPUT;
    return fail_infeasible(p);
}

// The plan of a policy, and beside it the bound at the same budget.
static int plan_policy(program *p) {
    tl_plan figures;
    tl_result result;
    uint64_t within;
    p->in_arena = p->budget_bytes && !p->o.live;
    result = make_policy_plan(p, p->policy, p->budget_bytes, &p->plan);
    p->in_arena = 0;
    if (result == TL_ERROR_INFEASIBLE) {
        const char *why = reason_of(&p->env);
        int code;
        if (strncmp(why, "budget_bytes: ", 14) == 0) why += 14;
        p->report.limiting_node = -1;
        code = p->o.json ? write_json(p, 1) : CODE_OK;
        if (code) return code;
        return fail(CODE_INFEASIBLE, "%s: no plan fits %llu bytes: %s", path_of(p), (ull)p->budget_bytes, why);
    }
    p->doing = "the bound";
    within = p->budget_bytes ? p->budget_bytes : p->plan.peak_bytes;
    if (!result) result = try_budget(p, within ? within : 1, p->work_limit, &figures, &p->report);
    clear_progress(p);
    if (result && result != TL_ERROR_INFEASIBLE) return fail_result(p, path_of(p));
    p->plan.bound_cost = p->report.bound_cost < p->plan.cost ? p->report.bound_cost : p->plan.cost;
    return CODE_OK;
}

// Put every allocation of the plan at an offset.
static int place_plan(program *p) {
    tl_places_desc desc;
    tl_device device = p->device;
    tl_result result;
    uint64_t before = p->plan.offset_count ? p->plan.arena_bytes : UINT64_MAX;
    if (!p->host_bytes) memset(&device, 0, sizeof device);
    device.alignment_bytes = p->alignment;
    memset(&desc, 0, sizeof desc);
    desc.graph = &p->graph;
    desc.device = &device;
    desc.work_limit = p->o.policy && p->budget_bytes ? 0 : p->work_limit;   // as when its arena was compared
    desc.banks = p->banks;
    desc.bank_count = p->o.bank_count;
    desc.block_bytes = p->block_bytes;
    result = tl_plan_places(&p->env, &desc, &p->plan, &p->places);
    if (!result && p->budget_bytes && p->plan.arena_bytes > before) {   // as when it was to be refused
        desc.work_limit *= 16;
        result = tl_plan_places(&p->env, &desc, &p->plan, &p->places);
    }
    if (result == TL_ERROR_INFEASIBLE) return fail(CODE_INFEASIBLE, "%s: %s", path_of(p), reason_of(&p->env));
    if (result) return fail_result(p, path_of(p));
    p->work += p->places.work;
    if (p->budget_bytes && !p->o.live && p->plan.arena_bytes > p->budget_bytes)
        return fail(CODE_INFEASIBLE, "%s: --budget %llu: in these %s the plan takes %llu bytes", path_of(p),
                    (ull)p->budget_bytes, p->o.bank_count ? "banks" : "blocks", (ull)p->plan.arena_bytes);
    return CODE_OK;
}

static int run_plan(program *p) {
    FILE *out = report_stream(p);
    lives l;
    int code = compiles(&p->o) ? plan_compiled(p) : p->o.order ? plan_order(p) : p->o.policy ? plan_policy(p)
             : p->budget_bytes ? plan_budget(p) : plan_keep_all(p);
    if (code) return code;
    if (interrupted) fprintf(stderr, "tl_plan: stopped early: this is the best plan so far\n");
    code = place_plan(p);
    if (code) return code;
    code = find_lives(p, &l);
    if (!code && p->o.lifetimes) code = write_lifetimes(p);
    if (!code && p->o.places) code = write_places(p);
    if (!code && p->o.schedule) code = write_schedule(p);
    if (!code && p->o.c_table) code = write_c_table(p);
    if (!code && p->o.c_code) code = write_c_code(p);
    if (!code && p->o.json) code = write_json(p, 0);    // behind the code, whose arrays it counts
    if (!code && p->o.svg) code = write_plan_picture(p);
    if (!code && p->o.html) code = write_plan_page(p, &l);
    if (!code && out && p->has_choice) code = print_choice(p, out);
    if (!code && out && p->has_compiled) code = print_compilation(p, out);
    if (!code && out) print_plan(p, out, &l.report);
    if (!code && out && p->o.explain) code = explain_plan(p, &l, out);
    free_lives(&l);
    return code;
}

static int run_curve(program *p) {
    FILE *out = report_stream(p);
    curve c;
    int code;
    p->in_arena = p->o.align && !p->o.live;
    code = make_curve(p, &c);
    if (!code) code = make_dots(p, &c);
    if (!code) code = plan_at_dots(p, &c);
    if (code) return code;
    if (!code && p->o.json) code = write_curve_json(p, &c);
    if (!code && p->o.svg) code = write_picture(p, &c);
    if (!code && p->o.html) code = write_curve_page(p, &c);
    if (!code && out && p->has_choice) code = print_choice(p, out);
    if (!code && out) print_curve(p, &c, out);
    return code;
}

// The form and the numbers of the optimizer for --c-code.
static int parse_code(program *p) {
    uint64_t batches = 0;
    int code = parse_states(p, &p->code_states);
    if (code) return code;
    if (p->o.c_form && !tl_parse_code_form(p->o.c_form, &p->code_form))
        return fail(CODE_INPUT, "--c-code=%s: must be calls, table or smallest", p->o.c_form);
    if (p->o.batches && (!read_count(p->o.batches, &batches) || batches > INT32_MAX))
        return fail(CODE_INPUT, "--micro-batches %s: must be a whole number from 1 to 2147483647", p->o.batches);
    p->code_batches = (int32_t)batches;
    return CODE_OK;
}

static int parse_in_flight(program *p) {
    uint64_t count = 0;
    if (!p->o.in_flight) return CODE_OK;
    if (!read_count(p->o.in_flight, &count) || count > INT32_MAX)
        return fail(CODE_INPUT, "--in-flight %s: must be a whole number from 1 to 2147483647", p->o.in_flight);
    p->in_flight = (int32_t)count;
    return CODE_OK;
}

// BYTES or any, and behind a colon a price.
static int parse_bank(program *p, int number) {
    const char *text = p->o.banks[number], *colon = strchr(text, ':');
    tl_bank *bank = &p->banks[number];
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    char bytes[64];
    if (length >= sizeof bytes) return fail(CODE_INPUT, "--bank %s: the bytes have too many digits", text);
    memcpy(bytes, text, length);
    bytes[length] = 0;
    bank->price = (uint64_t)number + 1;
    bank->capacity_bytes = 0;
    if (colon && !read_count(colon + 1, &bank->price))
        return fail(CODE_INPUT, "--bank %s: the price must be a whole number from 1", text);
    return strcmp(bytes, "any") == 0 ? CODE_OK : parse_bytes("--bank", bytes, model_peak(p), &bank->capacity_bytes);
}

// Banks that all have a limit are a budget.
static void add_bank_budget(program *p) {
    uint64_t sum = 0;
    int k;
    for (k = 0; k < p->o.bank_count; k++) {
        if (!p->banks[k].capacity_bytes || sum + p->banks[k].capacity_bytes < sum) return;
        sum += p->banks[k].capacity_bytes;
    }
    if (sum && !p->o.live && (!p->budget_bytes || sum < p->budget_bytes)) p->budget_bytes = sum;
}

static int plan_model(program *p) {
    int k;
    int code = check_files(&p->o);
    if (!code) code = read_model(p);
    if (!code && p->o.ranges) p->model_hash = tiny_hash_model(&p->graph);
    if (!code && p->o.cost_unit) code = refine_costs(p);
    if (!code && p->o.inputs_die) tl_let_inputs_die(&p->graph);
    if (!code && (p->o.optimizer || p->o.updates)) code = own_weights(p);
    if (!code && p->o.c_code && !p->o.c_table && tl_store_frozen(&p->env, &p->graph)) code = fail_result(p, path_of(p));
    if (!code && p->o.split && !p->o.ranks && tl_hold_gradients(&p->env, &p->graph)) code = fail_result(p, path_of(p));
    if (!code && p->o.work) code = parse_count("--work", p->o.work, &p->work_limit);
    if (!code && p->o.seed) code = parse_count("--seed", p->o.seed, &p->seed);
    p->alignment = p->o.c_code ? CODE_ALIGNMENT : 1;
    if (!code && p->o.align) code = parse_alignment(p->o.align, &p->alignment);
    if (!code && p->o.ranks) return run_ranks(p);
    if (!code && p->o.c_code) code = parse_code(p);
    if (!code) code = parse_in_flight(p);
    if (!code && p->o.policy) code = parse_policy(p);
    if (!code && p->o.form && !tl_parse_remat_form(p->o.form, &p->form))
        code = fail(CODE_INPUT, "--form %s: must be %s or %s", p->o.form, tl_name_remat_form(TL_REMAT_FORM_ANY),
                    tl_name_remat_form(TL_REMAT_FORM_ONCE));
    if (!code && (p->o.precision || p->o.front || has_limits(&p->o))) code = prepare_choice(p);
    if (!code && compiles(&p->o)) code = prepare_compile(p);
    if (!code && p->o.front) return has_limits(&p->o) ? run_limit_front(p) : run_front(p);
    if (!code && (p->o.precision || has_limits(&p->o))) code = make_choice(p);
    if (!code && p->o.weights) code = read_constants(p);
    if (!code && tl_plan_keep_all(&p->env, &p->graph, p->o.inference, &p->keep_all))
        code = fail_result(p, path_of(p));
    if (!code && p->o.host_budget) code = parse_host(p);
    if (!code) code = parse_codec(p);
    if (!code && p->o.budget)
        code = parse_bytes("--budget", p->o.budget, model_peak(p), &p->budget_bytes);
    if (!code && p->o.block) code = parse_bytes("--block", p->o.block, model_peak(p), &p->block_bytes);
    if (!code && p->block_bytes && p->block_bytes < p->alignment)
        code = fail(CODE_INPUT, "--block %s: must be at least --align %llu", p->o.block, (ull)p->alignment);
    for (k = 0; k < p->o.bank_count && !code; k++) code = parse_bank(p, k);
    if (!code) add_bank_budget(p);
    if (!code && p->o.pieces) code = cut_gradients(p);
    if (!code && p->o.rows) code = p->o.inference ? form_regions(p) : choose_rows(p);
    if (!code && p->has_choice && !wants_plan(&p->o)) code = finish_choice(p);
    else if (!code && p->o.pareto) code = compiles(&p->o) ? run_compile_front(p) : run_curve(p);
    else if (!code) code = run_plan(p);
    return code;
}

// A whole number, or after 0x one to 16 hexadecimal digits. 1 = it is one.
static int read_whole(const char *text, uint64_t *number) {
    size_t length = strlen(text);
    if (strncmp(text, "0x", 2) == 0 && length > 2 && length <= 18 &&
        strspn(text + 2, "0123456789abcdefABCDEF") == length - 2) {
        *number = strtoull(text, NULL, 16);
        return 1;
    }
    return strcmp(text, "0") == 0 || read_count(text, number);
}

// --explain-error N [VALUE [VALUE]]: numbers that another program, or a device, reported.
static int explain_error(int count, char **numbers) {
    uint64_t values[3] = { 0, 0, 0 };
    char text[512];
    tl_error error;
    int i;
    if (count < 1 || count > 3) return fail(CODE_INPUT, "--explain-error: takes a site and at most two values");
    for (i = 0; i < count; i++)
        if (!read_whole(numbers[i], &values[i]))
            return fail(CODE_INPUT, "--explain-error %s: must be a whole number below 2^64, or a hexadecimal one "
                        "that begins with 0x", numbers[i]);
    memset(&error, 0, sizeof error);
    error.site = (uint32_t)values[0];
    error.values[0] = values[1];
    error.values[1] = values[2];
    if (values[0] > UINT32_MAX || !tl_explain_error(&error, text, sizeof text))
        return fail(CODE_INPUT, "--explain-error %s: no error has this site", numbers[0]);
    if (puts(text) < 0 || fflush(stdout)) return fail(CODE_INPUT, "standard output: cannot write");
    return CODE_OK;
}

static int run(program *p) {
    int code = plan_model(p);
    if (!code && (fflush(stdout) || ferror(stdout))) code = fail(CODE_INPUT, "standard output: cannot be written");
    return code;
}

int main(int count, char **argv) {
    static program p;
    writer help;
    int done, code;
    if (count > 1 && strcmp(argv[1], "--explain-error") == 0) return explain_error(count - 2, argv + 2);
    list_policies();
    code = parse_options(&p.o, count, argv, &done);
    if (code) return code;
    if (done) {
        (void)open_writer("-", &help);
        put_lines(&help, usage, sizeof usage / sizeof *usage);
        return close_writer(&p, &help);
    }
    if (p.o.default_profiles) return write_default_profiles(&p);
    p.start = now_seconds();
    p.terminal = isatty(STDERR_FILENO);
    signal(SIGINT, on_interrupt);
    code = run(&p);
    free_compilation(&p);       // of what was chosen
    free_choice(&p);
    tl_free_remat_pool(p.pool);
    tl_free_lifetimes(&p.env, &p.lifetimes);
    tl_free_plan(&p.env, &p.plan);
    tl_free_plan(&p.env, &p.keep_all);
    if (p.tiny) tiny_free(p.tiny);
    if (p.rows.memory) {        // which has the graph of the plan; with a choice free_choice has freed the one without regions
        if (!p.has_choice) p.graph = p.whole;
        tl_free_rows_plan(&p.env, &p.rows);
        tl_free_rows_choice(&p.env, &p.rows_choice);
    }
    tl_free_graph(&p.env, &p.graph);
    return code;
}
