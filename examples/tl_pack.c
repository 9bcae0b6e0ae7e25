// tl_pack.c -- place buffers with lifetimes in as few bytes as possible, from the command line
//
// You learn: how large an arena has to be for buffers of yours, and where each of them lies, from a
// CSV file in the form of MiniMalloc's: id, lower, upper, size; live from lower on until before
// upper. It prints the height of the layout and the bound that no layout undercuts; it writes the
// offsets, JSON and a picture. Read next: tl_plan.c, which also decides what to keep.
//
// check: examples/buffers.csv --capacity 4096
//
//     mkdir -p build && cc -O3 -o build/tl_pack examples/tl_pack.c
//     build/tl_pack examples/buffers.csv --capacity 4096 --svg build/buffers.svg
//
// CONTENTS       (search for "// -- ")
//                options    lines    gaps    rows    writing    packing    main

#define _XOPEN_SOURCE 700  // NOLINT: reserved for this; clock_gettime, isatty

#include <errno.h>
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

enum { MOST_ROWS = 1 << 21, LINE_SIZE = 1 << 16 };

typedef unsigned long long ull;

// Print one sentence; returns the code, for `return fail(...)`.
static int fail(int code, const char *format, ...) {
    va_list list;
    fflush(stdout);
    fprintf(stderr, "tl_pack: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return code;
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

// -- options --

typedef struct options {
    const char *input, *out, *svg, *json;
    uint64_t    capacity, work;
} options;

static const char *const usage[] = {
    "tl_pack INPUT.csv [--capacity BYTES] [--out CSV] [--work N] [--svg FILE] [--json FILE]",
    "",
    "Places buffers with lifetimes so that no two that are live together share a byte.",
    "",
    "  INPUT.csv         a line of names, then a line for each buffer; - reads standard input",
    "    id              any text without a comma, once",
    "    lower, upper    it is live from lower on until before upper (end: until the end itself)",
    "    size            bytes",
    "    alignment       of its offset, a power of two",
    "    offset          where it has to lie; empty: anywhere",
    "    gaps            times at which it takes nothing, 4-6, or a part of its bytes, 4-6@0:16; by blanks",
    "    hint            read and passed on",
    "  --capacity BYTES  most that the layout may take; default: as few as can be found",
    "  --out CSV         write the input with an offset for each buffer",
    "  --work N          elementary steps of a few ns; default 100000000",
    "  --svg FILE        draw addresses against time",
    "  --json FILE       write buffers, capacity, height, lower_bound, proven, work, seconds",
    "",
    "FILE and CSV may be -, standard output. Ctrl-C ends the search with the lowest layout so far.",
    "Exit status: 0 packed, 1 bad input, 2 no layout was found in the capacity."
};

// A whole number below 2^63, with nothing behind it.
static int read_number(const char *text, uint64_t *number) {
    *number = 0;
    if (!*text) return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || *number > ((uint64_t)INT64_MAX - 9) / 10) return 0;
        *number = *number * 10 + (uint64_t)(*text - '0');
    }
    return 1;
}

static int read_option(options *o, const char *name, const char *value) {
    uint64_t *number = strcmp(name, "--capacity") == 0 ? &o->capacity : strcmp(name, "--work") == 0 ? &o->work : NULL;
    const char **text = strcmp(name, "--out") == 0    ? &o->out
                        : strcmp(name, "--svg") == 0  ? &o->svg
                        : strcmp(name, "--json") == 0 ? &o->json
                                                      : NULL;
    if (!number && !text) return fail(CODE_INPUT, "%s: no such option; --help lists them", name);
    if (!value) return fail(CODE_INPUT, "%s: takes a value", name);
    if (number ? *number != 0 : *text != NULL) return fail(CODE_INPUT, "%s: is given twice", name);
    if (text) *text = value;
    else if (!read_number(value, number) || !*number)
        return fail(CODE_INPUT, "%s %s: must be a whole number from 1 to 9223372036854775798", name, value);
    return CODE_OK;
}

// Whether both are names of one file that exists; "-" is none.
static int is_same_file(const char *a, const char *b) {
    struct stat x, y;
    if (!a || !b || strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return 0;
    if (stat(a, &x) || stat(b, &y)) return strcmp(a, b) == 0;
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// An output must be neither the input nor another output.
static int check_outputs(const options *o) {
    const struct { const char *name, *path; } outputs[] = { { "--out", o->out }, { "--svg", o->svg }, { "--json", o->json } };
    int i, k;
    for (i = 0; i < 3; i++) {
        if (is_same_file(outputs[i].path, o->input))
            return fail(CODE_INPUT, "%s %s: is the input", outputs[i].name, outputs[i].path);
        for (k = 0; k < i; k++)
            if (is_same_file(outputs[i].path, outputs[k].path))
                return fail(CODE_INPUT, "%s %s: is the file of %s, too", outputs[i].name, outputs[i].path, outputs[k].name);
    }
    return CODE_OK;
}

static int parse_options(options *o, int count, char **argv) {
    int i, outputs;
    for (i = 1; i < count; i++) {
        int code = CODE_OK;
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (o->input) return fail(CODE_INPUT, "%s: only one input can be packed", argv[i]);
            o->input = argv[i];
            continue;
        }
        code = read_option(o, argv[i], i + 1 < count ? argv[i + 1] : NULL);
        if (code) return code;
        i++;
    }
    if (!o->input) return fail(CODE_INPUT, "an input is missing; --help says more");
    outputs = (o->out && strcmp(o->out, "-") == 0) + (o->svg && strcmp(o->svg, "-") == 0) +
              (o->json && strcmp(o->json, "-") == 0);
    return outputs > 1 ? fail(CODE_INPUT, "-: only one output can be standard output") : check_outputs(o);
}

// -- lines --

enum { ID, LOWER, UPPER, SIZE, ALIGNMENT, HINT, GAPS, OFFSET, COLUMNS };

static const char *const column_names[COLUMNS] = { "id",        "lower", "upper", "size",
                                                   "alignment", "hint",  "gaps",  "offset" };

typedef struct row {
    char         *id, *hint, *gaps_text;  // NULL = the column is missing
    uint64_t      line;
    tl_layout_gap *gaps;
} row;

typedef struct program {
    options           o;
    FILE             *file;
    const char       *name;             // of the input, for sentences
    char              line[LINE_SIZE];
    uint64_t          line_number;
    int               columns[COLUMNS]; // which field a column is; -1 = missing
    int               field_count, upper_is_last;
    char             *fields[COLUMNS];
    row              *rows;
    tl_layout_buffer *buffers;
    int32_t           count, capacity;
    tl_env            env;
    tl_layout_plan    plan;
    int64_t           begin, last;      // steps of all buffers
    uint64_t          size_sum;         // of all buffers, aligned
    double            start, shown;
    int               terminal;
} program;

static int fail_line(const program *p, int column, const char *rule) {
    return fail(CODE_INPUT, "%s: line %llu: %s: %s", p->name, (ull)p->line_number, column_names[column], rule);
}

// The next line without its end. 0 = there is none, -1 = it was reported.
static int read_line(program *p) {
    size_t length;
    if (!fgets(p->line, sizeof p->line, p->file)) {
        if (!ferror(p->file)) return 0;
        fail(CODE_INPUT, "%s: cannot be read: %s", p->name, strerror(errno));
        return -1;
    }
    p->line_number++;
    length = strlen(p->line);
    if (length + 1 == sizeof p->line) {
        fail(CODE_INPUT, "%s: line %llu: is longer than %d bytes", p->name, (ull)p->line_number, LINE_SIZE - 2);
        return -1;
    }
    while (length && (p->line[length - 1] == '\n' || p->line[length - 1] == '\r')) p->line[--length] = 0;
    return 1;
}

static char *trimmed(char *text) {
    size_t length;
    while (*text == ' ' || *text == '\t') text++;
    for (length = strlen(text); length && (text[length - 1] == ' ' || text[length - 1] == '\t'); length--)
        text[length - 1] = 0;
    return text;
}

// Cut the line at its commas. Returns how many fields there are; those beyond `most` are not kept.
static int cut_line(program *p, char **fields, int most) {
    char *at = p->line;
    int count = 0;
    for (;;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        if (count < most) fields[count] = trimmed(at);
        count++;
        if (!comma) return count;
        at = comma + 1;
    }
}

// Which column a name of the first line is; -1 = none. MiniMalloc's other names are known, too.
static int find_column(program *p, const char *name) {
    static const struct { const char *name; int column; } others[] = {
        { "buffer", ID }, { "buffer_id", ID }, { "begin", LOWER }, { "start", LOWER }, { "end", UPPER }
    };
    size_t k;
    int column;
    for (column = 0; column < COLUMNS; column++) if (strcmp(name, column_names[column]) == 0) return column;
    for (k = 0; k < sizeof others / sizeof others[0]; k++) {
        if (strcmp(name, others[k].name) != 0) continue;
        if (others[k].column == UPPER) p->upper_is_last = 1;
        return others[k].column;
    }
    return -1;
}

static int read_names(program *p) {
    int i, column, found = read_line(p);
    if (found < 0) return CODE_INPUT;
    if (!found) return fail(CODE_INPUT, "%s: is empty; the first line must name the columns", p->name);
    for (i = 0; i < COLUMNS; i++) p->columns[i] = -1;
    if (memcmp(p->line, "\xEF\xBB\xBF", 3) == 0) memmove(p->line, p->line + 3, strlen(p->line + 3) + 1);  // UTF-8
    p->field_count = cut_line(p, p->fields, COLUMNS);
    if (p->field_count > COLUMNS)
        return fail(CODE_INPUT, "%s: line 1: has %d columns, more than there are names for", p->name, p->field_count);
    for (i = 0; i < p->field_count; i++) {
        column = find_column(p, p->fields[i]);
        if (column < 0) return fail(CODE_INPUT, "%s: line 1: %.64s: no column has this name", p->name, p->fields[i]);
        if (p->columns[column] >= 0) return fail_line(p, column, "the column is given twice");
        p->columns[column] = i;
    }
    for (column = ID; column <= SIZE; column++)
        if (p->columns[column] < 0) return fail_line(p, column, "the column is missing");
    return CODE_OK;
}

static char *field_of(const program *p, int column) {
    return p->columns[column] < 0 ? NULL : p->fields[p->columns[column]];
}

// -- gaps --

// Read a number up to one of the characters in `ends`, which *at is moved behind; returns that character, or 0
// at the end of the text; -1 = no number.
static int read_part(char **at, const char *ends, uint64_t *number) {
    char *text = *at, *end = text + strcspn(text, ends), stop = *end;
    *end = 0;
    *at = stop ? end + 1 : end;
    return read_number(text, number) ? stop : -1;
}

// Read one gap: lower-upper, or lower-upper@from:end, what it still takes.
static int read_gap(program *p, char *text, tl_layout_gap *gap) {
    uint64_t lower, upper, from = 0, end = 0;
    if (read_part(&text, "-", &lower) != '-') return fail_line(p, GAPS, "must be like 4-6 or 4-6@0:16");
    switch (read_part(&text, "@", &upper)) {
    case 0: break;
    case '@':
        if (read_part(&text, ":", &from) == ':' && read_part(&text, "", &end) == 0) break;
        return fail_line(p, GAPS, "must be like 4-6 or 4-6@0:16");
    default: return fail_line(p, GAPS, "must be like 4-6 or 4-6@0:16");
    }
    if (p->upper_is_last) upper++;
    if (lower >= upper) return fail_line(p, GAPS, "a gap must end behind its beginning");
    if (from > end) return fail_line(p, GAPS, "what a gap leaves must end behind its beginning");
    gap->first_step = (int64_t)lower;
    gap->last_step = (int64_t)upper - 1;
    gap->first_byte = from;
    gap->bytes = end - from;
    return CODE_OK;
}

static int compare_gaps(const void *x, const void *y) {
    const tl_layout_gap *a = (const tl_layout_gap *)x, *b = (const tl_layout_gap *)y;
    return a->first_step < b->first_step ? -1 : a->first_step > b->first_step;
}

static int check_gaps(program *p, const tl_layout_buffer *buffer, const tl_layout_gap *gaps) {
    int32_t k;
    for (k = 0; k < buffer->gap_count; k++) {
        if (gaps[k].first_step < buffer->first_step || gaps[k].last_step > buffer->last_step)
            return fail_line(p, GAPS, "a gap must lie in the lifetime");
        if (k && gaps[k].first_step <= gaps[k - 1].last_step) return fail_line(p, GAPS, "two gaps overlap");
        if (gaps[k].first_byte + gaps[k].bytes > buffer->bytes)
            return fail_line(p, GAPS, "a gap leaves more than the size");
    }
    return CODE_OK;
}

static int read_gaps(program *p, row *r, tl_layout_buffer *buffer) {
    char *text = field_of(p, GAPS), *at, *next;
    size_t most = 1;
    int code;
    if (!text || !*text) return CODE_OK;
    for (at = text; *at; at++) most += *at == ' ';
    r->gaps = (tl_layout_gap *)calloc(most, sizeof *r->gaps);
    if (!r->gaps) return fail_line(p, GAPS, "no memory");
    for (at = text; *at; at = next) {
        next = at + strcspn(at, " ");
        if (*next) *next++ = 0;
        if (!*at) continue;
        code = read_gap(p, at, &r->gaps[buffer->gap_count++]);
        if (code) return code;
    }
    qsort(r->gaps, (size_t)buffer->gap_count, sizeof *r->gaps, compare_gaps);
    buffer->gaps = r->gaps;
    return check_gaps(p, buffer, r->gaps);
}

// -- rows --

static char *copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = (char *)malloc(size);
    if (copy) memcpy(copy, text, size);
    return copy;
}

// Room for one more row.
static int grow(program *p) {
    int32_t capacity = p->capacity ? 2 * p->capacity : 1024;
    void *rows, *buffers;
    if (p->count < p->capacity) return CODE_OK;
    if (p->count >= MOST_ROWS)
        return fail(CODE_INPUT, "%s: line %llu: more than %d buffers", p->name, (ull)p->line_number, (int)MOST_ROWS);
    rows = realloc(p->rows, (size_t)capacity * sizeof *p->rows);
    if (rows) p->rows = (row *)rows;
    buffers = realloc(p->buffers, (size_t)capacity * sizeof *p->buffers);
    if (buffers) p->buffers = (tl_layout_buffer *)buffers;
    if (!rows || !buffers) return fail(CODE_INPUT, "%s: line %llu: no memory", p->name, (ull)p->line_number);
    p->capacity = capacity;
    return CODE_OK;
}

static int read_column(program *p, int column, uint64_t *number) {
    return read_number(field_of(p, column), number)
        ? CODE_OK : fail_line(p, column, "must be a whole number from 0 to 9223372036854775798");
}

static int read_lifetime(program *p, tl_layout_buffer *buffer) {
    uint64_t lower, upper;
    int code = read_column(p, LOWER, &lower);
    if (!code) code = read_column(p, UPPER, &upper);
    if (!code) code = read_column(p, SIZE, &buffer->bytes);
    if (code) return code;
    if (p->upper_is_last) upper++;
    if (lower >= upper) return fail_line(p, UPPER, "must be above lower: the lifetime is reversed or empty");
    buffer->first_step = (int64_t)lower;
    buffer->last_step = (int64_t)upper - 1;
    if (p->count == 1 || buffer->first_step < p->begin) p->begin = buffer->first_step;
    if (buffer->last_step > p->last) p->last = buffer->last_step;
    return CODE_OK;
}

// Columns that may be missing or empty.
static int read_extras(program *p, tl_layout_buffer *buffer) {
    const char *alignment = field_of(p, ALIGNMENT), *offset = field_of(p, OFFSET), *hint = field_of(p, HINT);
    uint64_t number, end;
    if (alignment && *alignment) {
        if (!read_number(alignment, &number) || !number || number & (number - 1))
            return fail_line(p, ALIGNMENT, "must be a power of two");
        buffer->alignment = number;
    }
    if (hint && *hint && !read_number(hint + (*hint == '-'), &number))
        return fail_line(p, HINT, "must be a whole number");
    if (!offset || !*offset) return CODE_OK;
    if (read_column(p, OFFSET, &buffer->pinned_offset)) return CODE_INPUT;
    buffer->is_pinned = 1;
    if (buffer->alignment && buffer->pinned_offset % buffer->alignment)
        return fail_line(p, OFFSET, "must be a multiple of the alignment");
    end = buffer->pinned_offset + buffer->bytes;
    if (!p->o.capacity || end <= p->o.capacity) return CODE_OK;
    fail_line(p, OFFSET, "the buffer ends above the capacity");
    return CODE_INFEASIBLE;
}

// All sizes together, aligned, must fit 61 bits.
static int add_size(program *p, const tl_layout_buffer *buffer) {
    uint64_t most = (uint64_t)1 << 61, alignment = buffer->alignment ? buffer->alignment : 1;
    uint64_t bytes = buffer->bytes < most && alignment <= most
        ? (buffer->bytes + alignment - 1) / alignment * alignment : most;
    if (bytes >= most - p->size_sum) return fail_line(p, SIZE, "all sizes together, aligned, must be below 2^61");
    p->size_sum += bytes;
    return CODE_OK;
}

static int read_row(program *p) {
    tl_layout_buffer *buffer;
    row *r;
    int code, count = cut_line(p, p->fields, COLUMNS);
    if (count != p->field_count)
        return fail(CODE_INPUT, "%s: line %llu: has %d fields, the first line has %d", p->name, (ull)p->line_number,
                    count, p->field_count);
    code = grow(p);
    if (code) return code;
    r = &p->rows[p->count];
    buffer = &p->buffers[p->count++];
    memset(r, 0, sizeof *r);
    memset(buffer, 0, sizeof *buffer);
    r->line = p->line_number;
    if (!*field_of(p, ID)) return fail_line(p, ID, "must not be empty");
    r->id = copy_text(field_of(p, ID));
    if (field_of(p, HINT)) r->hint = copy_text(field_of(p, HINT));
    if (field_of(p, GAPS)) r->gaps_text = copy_text(field_of(p, GAPS));
    if (!r->id || (field_of(p, HINT) && !r->hint) || (field_of(p, GAPS) && !r->gaps_text))
        return fail_line(p, ID, "no memory");
    code = read_lifetime(p, buffer);
    if (!code) code = read_extras(p, buffer);
    if (!code) code = read_gaps(p, r, buffer);
    return code ? code : add_size(p, buffer);
}

static int compare_ids(const void *x, const void *y) {
    const row *a = *(const row *const *)x, *b = *(const row *const *)y;
    int order = strcmp(a->id, b->id);
    return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

static int check_ids(program *p) {
    const row **sorted = (const row **)malloc(((size_t)p->count + 1) * sizeof(const row *));  // NOLINT: pointers
    const row *twice = NULL;
    int32_t i;
    if (!sorted) return fail(CODE_INPUT, "%s: no memory", p->name);
    for (i = 0; i < p->count; i++) sorted[i] = &p->rows[i];
    qsort((void *)sorted, (size_t)p->count, sizeof(const row *), compare_ids);  // NOLINT: the same
    for (i = 1; i < p->count; i++)
        if (strcmp(sorted[i]->id, sorted[i - 1]->id) == 0 && (!twice || sorted[i]->line < twice->line)) twice = sorted[i];
    free((void *)sorted);
    if (!twice) return CODE_OK;
    p->line_number = twice->line;
    return fail_line(p, ID, "another buffer has the same");
}

static int compare_pins(const void *x, const void *y) {
    const tl_layout_buffer *a = *(const tl_layout_buffer *const *)x, *b = *(const tl_layout_buffer *const *)y;
    if (a->pinned_offset != b->pinned_offset) return a->pinned_offset < b->pinned_offset ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Tell two buffers without gaps that are live at one step and pinned to the same bytes, if there are such.
static int find_clash(program *p) {
    const tl_layout_buffer **pins = (const tl_layout_buffer **)malloc(((size_t)p->count + 1) * sizeof(void *));  // NOLINT
    int32_t count = 0, i, k;
    int64_t left = 100000000;       // pairs that are looked at
    int code = CODE_OK;
    if (!pins) return fail(CODE_INPUT, "%s: no memory", p->name);
    for (i = 0; i < p->count; i++) if (p->buffers[i].is_pinned && !p->buffers[i].gap_count) pins[count++] = &p->buffers[i];
    qsort((void *)pins, (size_t)count, sizeof *pins, compare_pins);  // NOLINT: pointers
    for (i = 0; i < count && !code; i++)
        for (k = i + 1; k < count && !code && left-- > 0; k++) {
            const tl_layout_buffer *a = pins[i] < pins[k] ? pins[i] : pins[k], *b = a == pins[i] ? pins[k] : pins[i];
            if (pins[k]->pinned_offset >= pins[i]->pinned_offset + pins[i]->bytes) break;
            if (a->first_step > b->last_step || b->first_step > a->last_step || !pins[k]->bytes) continue;
            p->line_number = p->rows[b - p->buffers].line;
            code = fail(CODE_INPUT, "%s: line %llu: offset: shares bytes with %s, which is live at one step, too", p->name,
                        (ull)p->line_number, p->rows[a - p->buffers].id);
        }
    free((void *)pins);  // NOLINT: the same
    return code;
}

static int read_input(program *p) {
    int found, code;
    p->name = strcmp(p->o.input, "-") == 0 ? "standard input" : p->o.input;
    p->file = strcmp(p->o.input, "-") == 0 ? stdin : fopen(p->o.input, "r");
    if (!p->file) return fail(CODE_INPUT, "%s: cannot be opened: %s", p->name, strerror(errno));
    code = read_names(p);
    while (!code && (found = read_line(p)) != 0) {
        if (found < 0) code = CODE_INPUT;
        else if (*trimmed(p->line)) code = read_row(p);
    }
    if (p->file != stdin) fclose(p->file);
    return code ? code : check_ids(p);
}

// -- writing --

// The target takes the place of an older file when it is whole.
static FILE *open_output(const char *path, tl_file_sink *target) {
    tl_sink sink;
    if (strcmp(path, "-") == 0) return stdout;
    if (tl_init_file_sink(NULL, path, target, &sink) == TL_ERROR_INVALID_ARG) errno = ENAMETOOLONG;
    if (!target->file) fail(CODE_INPUT, "%s: cannot be written: %s", path, strerror(errno));
    return (FILE *)target->file;
}

static int close_output(const char *path, FILE *file, tl_file_sink *target) {
    int failed = file == stdout ? ferror(file) | fflush(file) : tl_finish_file_sink(NULL, target, TL_OK) != TL_OK;
    return failed ? fail(CODE_INPUT, "%s: cannot be written", path) : CODE_OK;
}

static int write_csv(const program *p) {
    tl_file_sink target;
    FILE *file = open_output(p->o.out, &target);
    int32_t i;
    int column;
    if (!file) return CODE_INPUT;
    fprintf(file, "id,lower,upper,size");
    for (column = ALIGNMENT; column <= GAPS; column++) if (p->columns[column] >= 0) fprintf(file, ",%s", column_names[column]);
    fprintf(file, ",offset\n");
    for (i = 0; i < p->count; i++) {
        const tl_layout_buffer *b = &p->buffers[i];
        fprintf(file, "%s,%llu,%llu,%llu", p->rows[i].id, (ull)b->first_step, (ull)b->last_step + 1, (ull)b->bytes);
        if (p->columns[ALIGNMENT] >= 0) fprintf(file, ",%llu", (ull)(b->alignment ? b->alignment : 1));
        if (p->columns[HINT] >= 0) fprintf(file, ",%s", p->rows[i].hint);
        if (p->columns[GAPS] >= 0) fprintf(file, ",%s", p->rows[i].gaps_text);
        fprintf(file, ",%llu\n", (ull)p->plan.offsets[i]);
    }
    return close_output(p->o.out, file, &target);
}

static int write_json(const program *p) {
    tl_file_sink target;
    FILE *file = open_output(p->o.json, &target);
    if (!file) return CODE_INPUT;
    fprintf(file, "{\"buffers\": %d, \"capacity\": ", (int)p->count);
    if (p->o.capacity) fprintf(file, "%llu", (ull)p->o.capacity);
    else fprintf(file, "null");
    fprintf(file, ", \"height\": %llu, \"lower_bound\": %llu, \"proven\": %s, \"work\": %llu, \"seconds\": %.6f}\n",
            (ull)p->plan.height_bytes, (ull)p->plan.bound_bytes, p->plan.proven ? "true" : "false",
            (ull)p->plan.work, now_seconds() - p->start);
    return close_output(p->o.json, file, &target);
}

enum { PICTURE_WIDTH = 1200, PICTURE_HEIGHT = 800, PICTURE_EDGE = 40 };

static void draw_text(FILE *file, const char *text) {
    for (; *text; text++) {
        if (strchr("<>&\"", *text)) fprintf(file, "&#%d;", *text);
        else if ((unsigned char)*text >= 0x20) fputc(*text, file);
    }
}

// What a buffer takes from a step on until before another.
static void draw_box(FILE *file, const program *p, int32_t i, int64_t first, int64_t end, uint64_t from, uint64_t bytes) {
    static const char *const colours[] = { "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1" };
    double y_scale = (double)PICTURE_HEIGHT / (double)p->plan.height_bytes;
    double x_scale = (double)PICTURE_WIDTH / ((double)(p->last - p->begin) + 1);
    if (first >= end || !bytes) return;
    fprintf(file, "<rect x=\"%.3f\" y=\"%.3f\" width=\"%.3f\" height=\"%.3f\" fill=\"%s\"><title>",
            PICTURE_EDGE + (double)(first - p->begin) * x_scale,
            PICTURE_EDGE + PICTURE_HEIGHT - (double)(p->plan.offsets[i] + from + bytes) * y_scale,
            (double)(end - first) * x_scale, (double)bytes * y_scale, colours[(size_t)i % (sizeof colours / sizeof colours[0])]);
    draw_text(file, p->rows[i].id);
    fprintf(file, ": %llu bytes at %llu, %lld to %lld</title></rect>\n", (ull)bytes, (ull)p->plan.offsets[i] + (ull)from,
            (long long)first, (long long)end);
}

static int write_picture(const program *p) {
    tl_file_sink target;
    FILE *file = open_output(p->o.svg, &target);
    int32_t i, k;
    if (!file) return CODE_INPUT;
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"14\" stroke=\"#fff\" stroke-width=\"0.3\">\n<title>addresses against time</title>\n",
            PICTURE_WIDTH + 2 * PICTURE_EDGE, PICTURE_HEIGHT + 2 * PICTURE_EDGE);
    for (i = 0; i < p->count; i++) {
        const tl_layout_buffer *b = &p->buffers[i];
        int64_t at = b->first_step;
        for (k = 0; k < b->gap_count; k++) {
            draw_box(file, p, i, at, b->gaps[k].first_step, 0, b->bytes);
            at = b->gaps[k].last_step + 1;
            draw_box(file, p, i, b->gaps[k].first_step, at, b->gaps[k].first_byte, b->gaps[k].bytes);
        }
        draw_box(file, p, i, at, b->last_step + 1, 0, b->bytes);
    }
    fprintf(file, "<text x=\"%d\" y=\"%d\" stroke=\"none\">%d buffers in %llu bytes</text>\n</svg>\n", PICTURE_EDGE,
            PICTURE_EDGE - 12, (int)p->count, (ull)p->plan.height_bytes);
    return close_output(p->o.svg, file, &target);
}

// -- packing --

static int on_progress(const tl_layout_progress *now, void *user) {
    program *p = (program *)user;
    double time = now_seconds();
    if (interrupted) return 1;
    if (!p->terminal || time - p->start < 1 || time - p->shown < 0.1) return 0;
    p->shown = time;
    fprintf(stderr, "\rpacking %3.0f %%  height %llu  bound %llu ", 100 * (double)now->work / (double)now->work_limit,
            (ull)now->height_bytes, (ull)now->bound_bytes);
    fflush(stderr);
    return 0;
}

static tl_result pack(program *p) {
    tl_layout_desc desc;
    tl_result result;
    memset(&desc, 0, sizeof desc);
    desc.buffers = p->buffers;
    desc.buffer_count = p->count;
    desc.capacity_bytes = p->o.capacity;
    desc.work_limit = p->o.work;
    desc.progress = on_progress;
    desc.user = p;
    result = tl_plan_layout(&p->env, &desc, &p->plan);
    if (p->shown > 0) fprintf(stderr, "\r%70s\r", "");
    return result;
}

static void report(const program *p) {
    const tl_layout_plan *plan = &p->plan;
    const char *outputs[3];
    size_t k;
    outputs[0] = p->o.out;
    outputs[1] = p->o.json;
    outputs[2] = p->o.svg;
    for (k = 0; k < 3; k++) if (outputs[k] && strcmp(outputs[k], "-") == 0) return;
    printf("%d buffers in %llu bytes; ", (int)p->count, (ull)plan->height_bytes);
    if (plan->proven) printf("no layout is lower");
    else printf("no layout takes less than %llu", (ull)plan->bound_bytes);
    printf("%s\n", interrupted ? " (interrupted)" : "");
}

static int run(program *p) {
    int code = read_input(p);
    tl_result result;
    const char *text;
    if (code) return code;
    result = pack(p);
    if (result == TL_ERROR_INVALID_ARG && find_clash(p)) return CODE_INPUT;
    if (result && result != TL_ERROR_INFEASIBLE) {
        text = strstr(p->env.error.text, ": ");
        return fail(CODE_INPUT, "%s: %s", p->name, text ? text + 2 : p->env.error.text);
    }
    if (p->o.json) code = write_json(p);
    if (code) return code;
    if (result)
        return fail(CODE_INFEASIBLE, "%s: no layout %s in %llu bytes; one of %llu was, none takes less than %llu", p->name,
                    p->plan.bound_bytes > p->o.capacity ? "fits" : "was found", (ull)p->o.capacity,
                    (ull)p->plan.height_bytes, (ull)p->plan.bound_bytes);
    if (p->o.out) code = write_csv(p);
    if (!code && p->o.svg) code = write_picture(p);
    if (!code) report(p);
    return !code && (fflush(stdout) || ferror(stdout)) ? fail(CODE_INPUT, "standard output: cannot be written") : code;
}

int main(int count, char **argv) {
    static program p;
    size_t k;
    int i, code;
    for (i = 1; i < count; i++) {
        if (strcmp(argv[i], "--help") != 0) continue;
        for (k = 0; k < sizeof usage / sizeof usage[0]; k++) puts(usage[k]);
        return fflush(stdout) ? CODE_INPUT : CODE_OK;
    }
    code = parse_options(&p.o, count, argv);
    if (code) return code;
    p.start = now_seconds();
    p.terminal = isatty(STDERR_FILENO);
    signal(SIGINT, on_interrupt);
    code = run(&p);
    for (i = 0; i < p.count; i++) {
        free(p.rows[i].id);
        free(p.rows[i].hint);
        free(p.rows[i].gaps_text);
        free(p.rows[i].gaps);
    }
    free(p.rows);
    free(p.buffers);
    tl_free_layout_plan(&p.env, &p.plan);
    return code;
}
