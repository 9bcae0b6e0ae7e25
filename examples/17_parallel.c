// 17_parallel.c -- one training on several ranks: a pipeline, replicas, or both, on threads or over MPI
//
// You learn: tl_compile_ranks cuts a graph into stages and plans each rank for its budget, and tl_run_desc.transport
// carries what crosses from rank to rank. A rank has the weights, gradients and optimizer of its own nodes and nothing
// else, so a network trains that no rank could hold alone. The transformer of 01 trains on stages x replicas ranks from
// one seed; then one process trains it again, and the program prints what each rank planned and measured, the bytes sent,
// whether gradients are equal to the last bit, and the simulated and the measured time of a step. With --trace it leaves
// all ranks in one file for ui.perfetto.dev. With --save what all ranks need to go on lies in files, and when a rank is
// lost the training goes on from there with fewer. Read next: 16, several steps under way on one rank.
//
// check: --quick --estimate --trace build/check/parallel.json
//
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/17_parallel examples/17_parallel.c -lm -lpthread
//     build/17_parallel --stages 4 --budget 1392 --steps 5
//
// One process takes four times these 1392 KiB. Over MPI, with a rank for each process (make run-mpi):
// mpicc -DWITH_MPI -O3 -ffp-contract=off -o build/17_mpi examples/17_parallel.c -lm && mpirun -n 2 build/17_mpi
//
// HOW IT WORKS   Rank = replica x stages + stage. The micro-batches of a training step are divided among the replicas:
//
//     replica 0    rank 0 [embed, layers 0 1] --> rank 1 [layers 2 .. head, loss]     micro-batches 0 1 2 3
//     replica 1    rank 2 [embed, layers 0 1] --> rank 3 [layers 2 .. head, loss]     micro-batches 4 5 6 7
//                       |                              |
//                       gradients of the same stage are summed in a ring (tl_reduce_run)
//
// With --chunks 2 a rank has two stages, and the last rank sends on to the first: ranks wait less, and send more.
//
// Every rank runs the same code, and each plans all ranks: plans are the same everywhere, and the greeting of the run
// compares them. Rank 0 measures the nodes and the link before, and sends the figures to all. Before every step it says
// whether there is one more, and after it every rank tells its loss, its time, and whether it was asked to stop: Ctrl-C
// ends all of them behind the same step. Embedding and head have weights of their own, so no weight belongs to two stages.
//
// Each rank registers weights, optimizer and gradients of its nodes, node by node, and saves them (tl_save_run). A rank of
// another cut finds those of its nodes in the files of all ranks (tl_load_variables): stages may be others, and what follows
// has the same bits. The file PREFIX names the last step that all ranks have saved, so no moment to be killed is a bad one.
//
// CONTENTS       (search for "// -- ")
//                options    ranks    talking    planning    saves    training    one rank    trace    table    ways    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, nanosleep, isatty, mkdir

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TRAINING_PROGRAM "17_parallel"
#include "training.h"
#include "nn.h"
#include "training_kernels.h"
#ifdef WITH_MPI
#include "transport_mpi.h"
#else
#include "transport_threads.h"
#endif

// -- options --

enum { MOST_CHUNKS = 16 };

typedef struct options {
    const char *text, *trace, *schedule, *save;  // text NULL = that of the examples; trace, save NULL = none
    uint64_t layers, width, context, batch, micro_batches, stages, chunks, replicas, zero, steps, seed, budget, wait, link,
             latency, patience, every, lose;       // lose 0 = no rank is lost
    int      has_stages, estimates, is_gpipe, resumes;
} options;

static const char *const usage =
    "17_parallel: train a character-level transformer on several ranks\n"
    "\n"
    "  --stages N         parts that the network is cut into, a rank each (2)\n"
    "  --chunks N         parts of each rank, which take turns: interleaved 1f1b (1)\n"
    "  --replicas N       of the network, which divide the micro-batches among them (1)\n"
    "  --zero N           of what replicas have alike each keeps a part: 1 the optimizer's state, 2 gradients\n"
    "                     as well (0: nothing)\n"
    "  --micro-batches N  of a training step (4)\n"
    "  --schedule NAME    1f1b: backwards begin as soon as they can; gpipe: after all forwards (1f1b)\n"
    "  --budget KIB       of each rank: its arena, weights, gradients, optimizer (no limit)\n"
    "  --steps N          training steps (30)\n"
    "  --link MB          per second, of the simulated link between two threads (0: no limit)\n"
    "  --latency US       of that link (0)\n"
    "  --wait US          that every forward waits beside its work, a backward twice (0): as if ranks had\n"
    "                     processors of their own\n"
    "  --patience S       seconds after which a rank that does not answer counts as lost (60)\n"
    "  --layers N --width N --context N --batch N    size of the network (6 48 32 4)\n"
    "  --seed N           of weights, batches and dropout (1)\n"
    "  --text FILE        train on this text (examples/training_text.txt)\n"
    "  --estimate         plan by FLOP instead of measured times, the same on every machine\n"
    "  --trace FILE       the last step of all ranks as a Chrome trace\n"
    "  --save PREFIX      leave files of that name to go on from (none)\n"
    "  --every N          training steps between two saves; the last step is saved as well (10)\n"
    "  --resume           go on from what --save PREFIX has left, with as many ranks as there are now\n"
    "  --lose STEP        the last rank goes before this step, without a word: to see what the others do\n"
    "  --quick            a tiny network for a few steps\n"
    "  --help             this list\n"
    "\n"
    "Ctrl-C ends all ranks after the step under way; the table is that of what was done. Threads that have lost\n"
    "a rank go on from the last save with those that are left; processes of MPI say how to start again.\n"
    "exit code: 0 ok, 1 bad input or a rank that was lost, 2 the budget is below the least possible,\n"
    "3 measured differs from planned, or gradients are not those of one process\n";

static int parse_value_option(options *o, const char *name, const char *value, int *code) {
    const training_option table[] = {
        { "--stages", 1, 1024, &o->stages, NULL, &o->has_stages },
        { "--chunks", 1, MOST_CHUNKS, &o->chunks, NULL, NULL },
        { "--replicas", 1, 1024, &o->replicas, NULL, NULL },
        { "--zero", 0, 2, &o->zero, NULL, NULL },
        { "--micro-batches", 1, 4096, &o->micro_batches, NULL, NULL },
        { "--budget", 1, UINT64_MAX >> 10, &o->budget, NULL, NULL },
        { "--steps", 1, 1000000, &o->steps, NULL, NULL },
        { "--link", 0, 1000000, &o->link, NULL, NULL },
        { "--latency", 0, 10000000, &o->latency, NULL, NULL },
        { "--wait", 0, 1000000, &o->wait, NULL, NULL },
        { "--patience", 1, 86400, &o->patience, NULL, NULL },
        { "--every", 1, 1000000, &o->every, NULL, NULL },
        { "--lose", 1, 1000000, &o->lose, NULL, NULL },
        { "--layers", 1, 64, &o->layers, NULL, NULL },
        { "--width", TRAINING_HEAD, 1024, &o->width, NULL, NULL },
        { "--context", 2, 1024, &o->context, NULL, NULL },
        { "--batch", 1, 1024, &o->batch, NULL, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, NULL, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--trace", 0, 0, NULL, &o->trace, NULL },
        { "--schedule", 0, 0, NULL, &o->schedule, NULL },
        { "--save", 0, 0, NULL, &o->save, NULL },
    };
    return training_parse_option(table, sizeof table / sizeof *table, name, value, code);
}

enum { MOST_PREFIX = 440 };       // bytes of --save

static int check_options(options *o) {
    if (o->width % TRAINING_HEAD)
        return training_fail(TRAINING_INPUT, "--width %d: must be a multiple of %d", (int)o->width, TRAINING_HEAD);
    o->is_gpipe = strcmp(o->schedule, "gpipe") == 0;
    if (!o->is_gpipe && strcmp(o->schedule, "1f1b") != 0)
        return training_fail(TRAINING_INPUT, "--schedule %s: must be 1f1b or gpipe", o->schedule);
    if (o->save && strlen(o->save) > MOST_PREFIX)
        return training_fail(TRAINING_INPUT, "--save: a name of more than %d bytes", (int)MOST_PREFIX);
    if (o->resumes && !o->save) return training_fail(TRAINING_INPUT, "--resume: needs the --save PREFIX to go on from");
    if (o->is_gpipe && o->chunks > 1)
        return training_fail(TRAINING_INPUT, "--schedule gpipe: has one part a rank, --chunks %d", (int)o->chunks);
    if (o->zero && o->replicas == 1)
        return training_fail(TRAINING_INPUT, "--zero %d: needs --replicas 2 or more, which share", (int)o->zero);
    if (o->zero && o->save)
        return training_fail(TRAINING_INPUT, "--zero %d: no rank has all to --save of what it trains", (int)o->zero);
    if (o->micro_batches % o->replicas)
        return training_fail(TRAINING_INPUT, "--micro-batches %d: %d replicas cannot have as many of them each",
                             (int)o->micro_batches, (int)o->replicas);
    return TRAINING_OK;
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int i, quick = 0, code = TRAINING_OK;
    *done = 0;
    memset(o, 0, sizeof *o);
    for (i = 1; i < count; i++) quick |= strcmp(argv[i], "--quick") == 0;
    o->schedule = "1f1b";
    o->layers = quick ? 3 : 6;
    o->width = quick ? 16 : 48;
    o->context = quick ? 16 : 32;
    o->batch = quick ? 2 : 4;
    o->micro_batches = 4;
    o->stages = 2;
    o->chunks = 1;
    o->replicas = 1;
    o->steps = quick ? 4 : 30;
    o->seed = 1;
    o->patience = 60;
    o->every = 10;
    for (i = 1; i < count && !code; i++) {
        const char *name = argv[i], *value = i + 1 < count ? argv[i + 1] : NULL;
        if (strcmp(name, "--quick") == 0) continue;
        if (strcmp(name, "--estimate") == 0) {
            o->estimates = 1;
            continue;
        }
        if (strcmp(name, "--resume") == 0) {
            o->resumes = 1;
            continue;
        }
        if (strcmp(name, "--help") == 0) {
            *done = 1;
            fputs(usage, stdout);
            return TRAINING_OK;
        }
        if (!parse_value_option(o, name, value, &code))
            return training_fail(TRAINING_INPUT, "%s: unknown option; --help lists them", name);
        i++;
    }
    return code ? code : check_options(o);
}

// -- ranks: what each has, and what it tells rank 0 --

// What the file PREFIX says of the files of all ranks beside it.
typedef struct save_note {
    uint64_t step, rank_count;    // of the save; rank_count 0 = there is none
    uint64_t has_sums;            // 1 = sums over replicas are in it: their order is not that of one process
    uint64_t training;            // hash of what the training depends on
} save_note;

// After a step.
typedef struct word {
    uint64_t step_ns, wants_stop;
    double   loss;                // sum over the micro-batches, exact in any order; 0 but in the last stage
} word;

// A step of the trace; times from the start of the training step.
typedef struct moment {
    uint64_t start_ns, end_ns, device_bytes;
    int32_t  node, slot;          // of the graph of the stage
    int32_t  kind, begins, recompute;
} moment;

// At the end.
typedef struct row {
    int32_t  nodes[MOST_CHUNKS][2];         // of each chunk: the first, and the one after the last
    int32_t  in_flight, event_count;
    uint64_t base_bytes, planned_base, planned_peak, measured_peak, planned_arena, measured_arena, planned_taken, taken;
    uint64_t planned_sent, sent, ring;   // of a step; ring: to the next replica
    moment  *moments;             // [event_count] where rank 0 has them; NULL = no trace
} row;

typedef struct worker {
    const options *o;
    const training_text *text;
    tl_env   env;
    tl_transport transport;
    int32_t  rank, rank_count, stage, replica, replicas;
    int32_t  micro_batches;       // of this replica
    tl_link  link;                // that all plan with, from rank 0; bytes_per_second 0 = messages take no time
    uint64_t *node_ns;            // [nodes][2] measured; NULL = plan by FLOP
    training_model m;
    tl_compiled_ranks ranks;
    const tl_rank_plan *plan;
    net      network;
    float   *params;              // [count] of its nodes
    float   *moments_of_adamw;    // [2][shard_count] both states, of the parts that it updates
    float   *grads;               // [grad_count] with --zero 2 of one node at a time
    float   *shards;              // [shard_count] with --zero 2 the sums of the parts that it updates; else NULL
    uint64_t *places;             // [param_kinds] where those that this rank has begin in params; else NOT_HERE
    uint64_t *grad_places;        // [param_kinds] likewise in grads
    uint64_t *shard_places;       // [param_kinds] likewise in shards and in each of moments_of_adamw
    size_t   count, grad_count, shard_count;
    tl_variable *states;             // [variable_count] of its nodes: weights, both states of AdamW, gradients
    int32_t  variable_count;
    const tl_saved *saves;        // [from.rank_count] to go on from
    save_note from, saved;        // the save that it went on from; the last one
    int32_t *window;              // [2][B T]
    tl_backend backend;
    tl_run  *run;
    tl_run_report report;         // of the last step
    uint64_t sent_bytes;          // of it, to the neighbours of the pipeline; the rest went round the ring
    uint64_t first_step, step, step_ns, start_ns;
    double   loss;                // sum over the micro-batches of the last step
    moment  *moments;             // [moment_room]; NULL = no trace
    int32_t  moment_count, moment_room;
    uint64_t *sums_ns;            // [nodes][2] a rehearsal: of one step; NULL = none
    tl_result result;
    const char *failed;           // what did not work
} worker;

// What rank 0 has of all ranks.
typedef struct gathered {
    row     *rows;                // [rank_count]
    float   *grads, *params;      // [param_count] the gradients of the first step, the weights at the end
    int      replicas_differ;     // 1 = of two replicas
    int      stops;               // 1 = a rank was asked to stop
    float   *losses;              // [steps] mean
    uint64_t *steps_ns;           // [steps] of the slowest rank
    uint64_t first_step, steps;   // the first one that they did, and how many are done since the training began
} gathered;

typedef struct program {
    options  o;
    training_text text;
    gathered all;
    training_progress progress;
    int32_t  rank_count;
    save_note from;               // what it goes on from
    tl_saved *saves;              // [from.rank_count] mapped files, which may be removed meanwhile
    int      has_lost;            // 1 = --lose was done
} program;

static tl_result fail(worker *w, const char *what, tl_result result) {
    if (result && !w->result) {
        w->result = result;
        w->failed = what;
    }
    return result;
}

// -- talking: beside the run's own messages, in its pauses --

enum { TALK_TAG = 1 << 20, PATIENT_POLLS = 1000, REST_NS = 50000, POLLS_PER_SECOND = 8000 };

// Between two polls: others may want the processor.
static void rest(int *polls) {
    if (++*polls < PATIENT_POLLS) sched_yield();
    else wait_ns(REST_NS);
}

static tl_result end_talk(worker *w, int32_t request) {
    tl_result result;
    int polls = 0;
    while ((result = w->transport.poll(w->transport.self, request)) == TL_NOT_READY) rest(&polls);
    return result;
}

static tl_result tell(worker *w, int32_t peer, const void *data, uint64_t bytes) {
    int32_t request;
    tl_result result = w->transport.send(w->transport.self, peer, TALK_TAG, data, bytes, &request);
    return result ? result : end_talk(w, request);
}

static tl_result hear(worker *w, int32_t peer, void *data, uint64_t bytes) {
    int32_t request;
    tl_result result = w->transport.receive(w->transport.self, peer, TALK_TAG, data, bytes, &request);
    return result ? result : end_talk(w, request);
}

// Rank 0 tells all the others.
static tl_result tell_all(worker *w, void *data, uint64_t bytes) {
    tl_result result = TL_OK;
    int32_t r;
    if (w->rank) return hear(w, 0, data, bytes);
    for (r = 1; r < w->rank_count && !result; r++) result = tell(w, r, data, bytes);
    return result;
}

// -- planning: the same on every rank --

static tl_result build_model(worker *w) {
    const options *o = w->o;
    w->m.size.L = o->layers;
    w->m.size.C = o->width;
    w->m.size.T = o->context;
    w->m.size.B = o->batch;
    w->m.size.V = (uint64_t)w->text->V;
    w->m.trains = 1;
    w->m.dropout = 0.05f;
    w->m.add_bytes = add_bytes;
    w->m.node_ns = w->node_ns;
    return fail(w, "graph", training_build_model(&w->env, &w->m));
}

enum { ALIGNMENT = 64 };          // of the CPU backend

// What a rank has beside its arena: weights, their gradients and both states of AdamW, or parts of these, rounded up to a
// float for each range, and a buffer for the gradients of any node.
static void find_base(const worker *w, tl_ranks_desc *desc) {
    double replicas = (double)w->replicas;
    int32_t id;
    desc->gradient_ratio = w->o->zero == 2 ? 1.0 / replicas : 1.0;
    desc->optimizer_ratio = w->o->zero ? 2.0 / replicas : 2.0;
    for (id = 0; id < w->m.graph.node_count && w->o->zero == 2; id++)
        if (w->m.graph.nodes[id].param_bytes > desc->base_bytes) desc->base_bytes = w->m.graph.nodes[id].param_bytes;
    if (w->o->zero) desc->base_bytes += (uint64_t)w->m.param_kinds * 3 * sizeof(float);
}

// Cut the network into stages and plan them.
static tl_result plan_ranks(worker *w, int32_t stages, uint64_t budget, tl_compiled_ranks *ranks) {
    tl_ranks_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = &w->m.graph;
    desc.rank_count = stages;
    desc.micro_batch_count = w->micro_batches;
    desc.pipeline = w->o->is_gpipe ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
    if (w->o->chunks > 1) {
        desc.pipeline = TL_PIPELINE_INTERLEAVED;
        desc.chunk_count = (int32_t)w->o->chunks;
    }
    desc.budget_bytes = budget;
    find_base(w, &desc);
    desc.alignment_bytes = ALIGNMENT;
    desc.link = w->link.bytes_per_second ? &w->link : NULL;
    desc.work_limit = 100000000;
    return tl_compile_ranks(&w->env, &desc, ranks);
}

// -- saves: what all ranks leave, to go on from --
//
//     PREFIX         the step and the number of ranks of the last save of all of them
//     PREFIX.20.0    what rank 0 had after 20 steps; PREFIX.20.1 ..

static uint64_t hash_bytes(const void *data, size_t bytes) {
    const unsigned char *at = (const unsigned char *)data;
    uint64_t hash = bytes;
    size_t i;
    for (i = 0; i < bytes; i++) hash = tl_mix_u64(hash, at[i]);
    return hash;
}

static uint64_t hash_numbers(const uint64_t *numbers, size_t count) {
    uint64_t hash = count;
    size_t i;
    for (i = 0; i < count; i++) hash = tl_mix_u64(hash, numbers[i]);
    return hash;
}

// What losses depend on, whatever the ranks.
static uint64_t hash_training(const options *o, const training_text *text) {
    const uint64_t numbers[] = { o->layers, o->width, o->context, o->batch, o->micro_batches, o->seed };
    return tl_mix_u64(hash_numbers(numbers, sizeof numbers / sizeof numbers[0]), hash_bytes(text->ids, text->length));
}

typedef char part_path[MOST_PREFIX + 40];

static void name_part(const char *prefix, uint64_t step, int32_t rank, char *path) {
    snprintf(path, sizeof(part_path), "%s.%llu.%d", prefix, (unsigned long long)step, (int)rank);
}

static tl_result write_note(tl_env *env, const char *prefix, const save_note *note) {
    char text[160];
    tl_file_sink file;
    tl_sink sink;
    tl_result result = tl_init_file_sink(env, prefix, &file, &sink);
    int length = snprintf(text, sizeof text, "17_parallel: step, ranks, sums of replicas, training: %llu %llu %llu %llu\n",
                          (unsigned long long)note->step, (unsigned long long)note->rank_count,
                          (unsigned long long)note->has_sums, (unsigned long long)note->training);
    return result ? result : tl_finish_file_sink(env, &file, sink.write(sink.user, text, (size_t)length));
}

// 0 = there is no such file, or it says something else.
static int read_note(const char *prefix, save_note *note) {
    uint64_t *numbers[4];
    char text[160] = "", *at, *end = NULL;
    FILE *file = fopen(prefix, "r");
    int i, count = 0;
    memset(note, 0, sizeof *note);
    if (!file) return 0;
    at = fgets(text, sizeof text, file) ? strrchr(text, ':') : NULL;
    fclose(file);
    numbers[0] = &note->step;
    numbers[1] = &note->rank_count;
    numbers[2] = &note->has_sums;
    numbers[3] = &note->training;
    for (i = 0; i < 4 && at; i++) {
        *numbers[i] = strtoull(at + 1, &end, 10);
        count += end > at + 1;
        at = end - 1;
    }
    return count == 4 && note->rank_count > 0 && note->rank_count <= 1024 * 1024;
}

// Leave what this rank has; when all have, rank 0 says so in PREFIX, and removes those before.
static tl_result save_rank(worker *w) {
    const char *prefix = w->o->save;
    save_note note;
    part_path path;
    tl_file_sink file;
    tl_sink sink;
    char done = 1;
    int32_t r;
    tl_result result;
    name_part(prefix, w->step, w->rank, path);
    result = tl_init_file_sink(&w->env, path, &file, &sink);
    if (!result) result = tl_finish_file_sink(&w->env, &file, tl_save_run(w->run, sink));
    if (!result && w->rank) result = tell(w, 0, &done, sizeof done);
    for (r = 1; r < w->rank_count && !w->rank && !result; r++) result = hear(w, r, &done, sizeof done);
    note.step = w->step;
    note.rank_count = (uint64_t)w->rank_count;
    note.has_sums = w->saved.has_sums || w->replicas > 1;
    note.training = hash_training(w->o, w->text);
    if (!result && !w->rank) result = write_note(&w->env, prefix, &note);
    for (r = 0; r < (int32_t)w->saved.rank_count && !w->rank && !result; r++) {
        name_part(prefix, w->saved.step, r, path);
        (void)remove(path);
    }
    if (!result) w->saved = note;
    return result;
}

// Map the file of a rank: what a rank does not need of it takes no memory.
static int map_part(const char *path, tl_saved *saved) {
    struct stat status;
    int file = open(path, O_RDONLY), failed;
    void *data = MAP_FAILED;
    memset(saved, 0, sizeof *saved);
    if (file < 0) return training_fail(TRAINING_INPUT, "--resume: %s: %s", path, strerror(errno));
    failed = fstat(file, &status) != 0 || status.st_size <= 0;
    if (!failed) data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (data == MAP_FAILED) return training_fail(TRAINING_INPUT, "--resume: %s: cannot be read", path);
    saved->data = data;
    saved->length = (size_t)status.st_size;
    return TRAINING_OK;
}

static void unmap_saves(program *p) {
    uint64_t r;
    for (r = 0; p->saves && r < p->from.rank_count; r++)
        if (p->saves[r].data) munmap((void *)(uintptr_t)p->saves[r].data, p->saves[r].length);
    free(p->saves);
    p->saves = NULL;
    memset(&p->from, 0, sizeof p->from);
}

// Find the last save of all ranks, and map its files.
static int map_saves(program *p) {
    save_note note;
    part_path path;
    int code = TRAINING_OK;
    uint64_t r;
    unmap_saves(p);
    if (!read_note(p->o.save, &note))
        return training_fail(TRAINING_INPUT, "--resume: %s: is not there, or not what --save leaves", p->o.save);
    if (note.training != hash_training(&p->o, &p->text))
        return training_fail(TRAINING_INPUT, "--resume: %s: of another size, text, --micro-batches or --seed", p->o.save);
    if (note.step >= p->o.steps)
        return training_fail(TRAINING_INPUT, "--steps %llu: %s has as many", (unsigned long long)p->o.steps, p->o.save);
    p->saves = (tl_saved *)calloc((size_t)note.rank_count, sizeof *p->saves);
    if (!p->saves) return training_fail(TRAINING_INPUT, "no memory");
    p->from = note;
    for (r = 0; r < note.rank_count && !code; r++) {
        name_part(p->o.save, note.step, (int32_t)r, path);
        code = map_part(path, &p->saves[r]);
    }
    return code;
}

// -- training: one rank --

static uint64_t clock_ns(void *user) {
    (void)user;
    return training_wall_ns();
}

// The node of the network that a node of the stage's graph is; -1 = a message.
static int32_t source_of(const tl_compiled_plan *compiled, int32_t node) {
    int32_t first = compiled->first_members[node];
    return compiled->first_members[node + 1] > first ? compiled->members[first] : -1;
}

static void observe(const tl_run_event *event, void *user) {
    worker *w = (worker *)user;
    int is_backward = event->step.kind == TL_STEP_BACKWARD, node = source_of(&w->plan->compiled, event->step.node);
    if (w->sums_ns && node >= 0 && event->step.kind <= TL_STEP_BACKWARD)
        w->sums_ns[2 * node + is_backward] += event->end_ns - event->start_ns;
    if (w->moment_count < w->moment_room) {
        moment *at = &w->moments[w->moment_count++];
        at->start_ns = event->start_ns - w->start_ns;
        at->end_ns = event->end_ns - w->start_ns;
        at->device_bytes = event->device_bytes;
        at->node = event->step.node;
        at->slot = event->step.slot;
        at->kind = event->step.kind;
        at->begins = event->step.begins;
        at->recompute = event->recompute;
    }
}

// Write what the stage has of the inputs of a micro-batch.
static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    worker *w = (worker *)user;
    const training_model *m = &w->m;
    uint64_t rows = m->size.B * m->size.T, bytes = rows * sizeof(int32_t);
    uint64_t number = w->step * w->o->micro_batches + (uint64_t)micro_batch;
    tl_tensor tokens = { 0, 0 }, targets = { 0, 0 };
    tl_result result;
    tokens.node = m->tokens;
    targets.node = m->targets;
    training_draw_window(m, w->text, w->o->seed, number * m->size.B, w->window);
    result = tl_write_tensor(run, tokens, w->window, bytes);
    if (!result || result == TL_ERROR_NOT_FOUND) result = tl_write_tensor(run, targets, w->window + rows, bytes);
    return result == TL_ERROR_NOT_FOUND ? TL_OK : result;
}

static int32_t first_node_of(const worker *w, int32_t chunk) {
    int32_t stage = chunk * w->ranks.rank_count + w->stage;
    return stage ? w->ranks.ends[stage - 1] : 0;
}

static int32_t end_node_of(const worker *w, int32_t chunk) {
    return w->ranks.ends[chunk * w->ranks.rank_count + w->stage];
}

static const uint64_t NOT_HERE = UINT64_MAX;

// The part of a range of so many floats that this replica updates: all of it without --zero, else the shard that
// tl_scatter_run leaves it.
static size_t find_part(const worker *w, uint64_t count, size_t *first) {
    uint64_t replicas = w->o->zero ? (uint64_t)w->replicas : 1, shard = (uint64_t)(w->replica + 1) % replicas;
    uint64_t rest = count % replicas;
    *first = (size_t)(count / replicas * shard + (shard < rest ? shard : rest));
    return (size_t)(count / replicas + (shard < rest));
}

// Mark the weights of a node, and where its gradients are with --zero 2: at the beginning of a buffer for all nodes.
static void place_node(worker *w, int32_t id) {
    const int32_t params[2] = { w->m.nodes[id].weight, w->m.nodes[id].bias };
    size_t count = 0;
    int k;
    for (k = 0; k < 2; k++) {
        if (params[k] < 0) continue;
        w->places[params[k]] = 0;
        w->grad_places[params[k]] = count;
        count += (size_t)w->m.params[params[k]].count;
    }
    if (count > w->grad_count) w->grad_count = count;
}

// Find the weights of the rank's nodes, and where it has what: one behind the other. 0 = no memory.
static int find_places(worker *w) {
    const training_model *m = &w->m;
    size_t kinds = (size_t)m->param_kinds, first;
    int32_t chunk, id, k;
    w->count = w->grad_count = w->shard_count = 0;
    w->places = (uint64_t *)malloc((3 * kinds + 1) * sizeof *w->places);
    if (!w->places) return 0;
    w->grad_places = w->places + kinds;
    w->shard_places = w->places + 2 * kinds;
    for (k = 0; k < m->param_kinds; k++) w->places[k] = NOT_HERE;
    for (chunk = 0; chunk < w->ranks.chunk_count; chunk++)
        for (id = first_node_of(w, chunk); id < end_node_of(w, chunk); id++) place_node(w, id);
    for (k = 0; k < m->param_kinds; k++) {
        if (w->places[k] == NOT_HERE) continue;
        w->places[k] = w->count;
        w->shard_places[k] = w->shard_count;
        if (w->o->zero < 2) w->grad_places[k] = w->count;
        w->count += (size_t)m->params[k].count;
        w->shard_count += find_part(w, m->params[k].count, &first);
    }
    if (w->o->zero < 2) w->grad_count = w->count;
    return 1;
}

static int alloc_floats(worker *w) {
    w->params = (float *)calloc(w->count + 1, sizeof(float));
    w->moments_of_adamw = (float *)calloc(2 * w->shard_count + 1, sizeof(float));
    w->grads = (float *)calloc(w->grad_count + 1, sizeof(float));
    if (w->o->zero == 2) w->shards = (float *)calloc(w->shard_count + 1, sizeof(float));
    return w->params && w->moments_of_adamw && w->grads && (w->shards || w->o->zero < 2);
}

// Bytes beside the arena.
static uint64_t count_base(const worker *w) {
    size_t floats = w->count + 2 * w->shard_count + w->grad_count + (w->o->zero == 2 ? w->shard_count : 0);
    return (uint64_t)floats * sizeof(float);
}

// The weights of the rank's nodes, as they are in the network that the seed makes.
static void fill_floats(worker *w) {
    const training_model *m = &w->m;
    int32_t i;
    for (i = 0; i < m->param_kinds; i++) {
        const training_param *p = &m->params[i];
        float *at = w->params + w->places[i];
        uint64_t k;
        if (w->places[i] == NOT_HERE) continue;
        nn_fill_normal(at, (size_t)p->count, p->deviation, tl_mix_u64(w->o->seed, (uint64_t)i));
        for (k = 0; k < p->count; k++) at[k] += p->mean;
    }
}

static tl_variable *add_state(worker *w, int32_t id, tl_variable_kind kind, float *host, size_t count) {
    tl_variable *state = &w->states[w->variable_count++];
    state->node = id;
    state->kind = kind;
    state->host = host;
    state->bytes = count * sizeof(float);
    return state;
}

// Of each node the ranges that it uses: what replicas sum up, and what is saved.
static void register_node(worker *w, int32_t id) {
    const int32_t params[2] = { w->m.nodes[id].weight, w->m.nodes[id].bias };
    int32_t k, part;
    for (k = 0; k < 2; k++) {
        int32_t param = params[k];
        size_t count = param < 0 ? 0 : (size_t)w->m.params[param].count, first, length;
        tl_variable *gradient;
        if (param < 0) continue;
        length = find_part(w, count, &first);
        (void)add_state(w, id, TL_VARIABLE_PARAMETER, w->params + w->places[param], count);
        for (part = 0; part < 2; part++)
            (void)add_state(w, id, TL_VARIABLE_OPTIMIZER,
                            w->moments_of_adamw + (size_t)part * w->shard_count + w->shard_places[param], length);
        gradient = add_state(w, id, TL_VARIABLE_GRADIENT, w->grads + w->grad_places[param], count);
        if (w->shards) gradient->shard = w->shards + w->shard_places[param];
    }
}

static tl_result register_states(worker *w) {
    int32_t chunk, id;
    w->states = (tl_variable *)calloc((size_t)w->m.graph.node_count * 8 + 1, sizeof *w->states);
    if (!w->states) return TL_ERROR_NO_MEMORY;
    for (chunk = 0; chunk < w->ranks.chunk_count; chunk++)
        for (id = first_node_of(w, chunk); id < end_node_of(w, chunk); id++) register_node(w, id);
    return TL_OK;
}

static tl_result init_run(worker *w) {
    uint32_t scale_bits;
    float scale = 1.0f / (float)w->o->micro_batches;
    tl_kernel kernels[TRAINING_OP_COUNT - 1];
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_result result;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    cpu.now_ns = clock_ns;
    cpu.alignment_bytes = ALIGNMENT;
    cpu.capacity_bytes[TL_TIER_DEVICE] = w->o->budget * 1024;
    result = tl_init_cpu_backend(&w->env, &cpu, &w->backend);
    if (result) return result;
    set_kernels(kernels, &w->network);
    memcpy(&scale_bits, &scale, sizeof scale_bits);
    desc.graph = &w->m.graph;
    desc.backend = &w->backend;
    desc.kernels = kernels;
    desc.kernel_count = TRAINING_OP_COUNT - 1;
    desc.compiled = &w->plan->compiled;
    desc.transport = w->rank_count > 1 ? &w->transport : NULL;
    desc.first_micro_batch = w->replica * w->micro_batches;
    desc.variables = w->states;
    desc.variable_count = w->variable_count;
    desc.base_bytes = w->plan->base_bytes;
    desc.budget_bytes = w->o->budget * 1024;
    desc.load = load;
    desc.load_user = w;
    desc.observe = observe;
    desc.observe_user = w;
    desc.profiling = w->moments || w->sums_ns;
    desc.seed = w->o->seed;
    desc.loss_gradient_word = scale_bits;  // of the mean of all micro-batches
    return tl_init_run(&w->env, &desc, &w->run);
}

// Begin the training of a rank whose plans are there.
static tl_result init_training(worker *w) {
    size_t rows = (size_t)(w->m.size.B * w->m.size.T);
    tl_result result;
    w->plan = &w->ranks.ranks[w->stage];
    if (!find_places(w) || !alloc_floats(w)) return fail(w, "training", TL_ERROR_NO_MEMORY);
    w->window = (int32_t *)calloc(2 * rows, sizeof *w->window);
    if (w->o->trace) {
        w->moment_room = w->plan->compiled.plan.step_count;
        w->moments = (moment *)calloc((size_t)w->moment_room, sizeof *w->moments);
    }
    if (!w->window || (w->o->trace && !w->moments)) return fail(w, "training", TL_ERROR_NO_MEMORY);
    fill_floats(w);
    w->network.m = &w->m;
    w->network.params = w->params;
    w->network.grads = w->grads;
    w->network.places = w->places;
    w->network.grad_places = w->grad_places;
    w->network.wait_ns = w->o->wait * 1000;
    result = fail(w, "states", register_states(w));
    if (!result) result = fail(w, "run", init_run(w));
    if (!result && w->from.rank_count)
        result = fail(w, "save", tl_load_variables(w->run, w->saves, (int32_t)w->from.rank_count));
    w->first_step = w->step = w->from.step;
    w->saved = w->from;
    return result;
}

static void free_training(worker *w) {
    tl_free_run(w->run);
    if (w->backend.self) (void)tl_free_cpu_backend(&w->env, &w->backend);
    free(w->params);
    free(w->moments_of_adamw);
    free(w->grads);
    free(w->shards);
    free(w->states);
    free(w->window);
    free(w->places);
    w->run = NULL;
    w->states = NULL;
    w->variable_count = 0;
    memset(&w->backend, 0, sizeof w->backend);
    w->params = w->moments_of_adamw = w->grads = w->shards = NULL;
    w->window = NULL;
    w->places = NULL;
}

static tl_result read_losses(worker *w) {
    tl_tensor loss = { 0, 0 };
    int32_t slot;
    tl_result result = TL_OK;
    w->loss = 0.0;
    loss.node = w->m.loss;
    if (w->plan->compiled.nodes[w->m.loss] < 0) return TL_OK;     // another rank has it
    for (slot = 0; slot < w->micro_batches && !result; slot++) {
        float one = 0.0f;
        result = tl_choose_slot(w->run, slot);
        if (!result) result = tl_read_tensor(w->run, loss, &one, sizeof one);
        w->loss += (double)one;
    }
    return result;
}

// Update the parts of the weights that this rank has sums of.
static void update_weights(worker *w) {
    nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.0f };
    int32_t i;
    adamw.rate = training_rate(w->step);
    for (i = 0; i < w->m.param_kinds; i++) {
        const training_param *p = &w->m.params[i];
        float *moments = w->moments_of_adamw + w->shard_places[i];
        size_t first, count = find_part(w, p->count, &first);
        const float *gradient;
        if (w->places[i] == NOT_HERE) continue;
        gradient = w->shards ? w->shards + w->shard_places[i] : w->grads + w->grad_places[i] + first;
        adamw.weight_decay = p->decays ? 0.05f : 0.0f;
        nn_adamw_update(w->params + w->places[i] + first, moments, moments + w->shard_count, gradient, count, w->step + 1,
                        &adamw);
    }
}

// Sums over all replicas, or what they have of the sums, or of the weights, brought to each other.
static tl_result talk_to_replicas(worker *w, tl_result (*call)(tl_run *, tl_variable_kind), tl_variable_kind kind) {
    tl_result result;
    int polls = 0;
    if (w->replicas <= 1) return TL_OK;
    while ((result = call(w->run, kind)) == TL_NOT_READY) rest(&polls);
    return result;
}

static tl_result sum_gradients(worker *w) {
    return talk_to_replicas(w, w->o->zero ? tl_scatter_run : tl_reduce_run, TL_VARIABLE_GRADIENT);
}

// The rest of the weights, which other replicas have updated.
static tl_result gather_weights(worker *w) {
    tl_result result = w->o->zero ? talk_to_replicas(w, tl_gather_run, TL_VARIABLE_PARAMETER) : TL_OK;
    tl_measure_run(w->run, &w->report);
    return result;
}

// The pass of a training step, and the sums over replicas: other ranks are asked for their messages until all are there.
static tl_result run_step(worker *w) {
    tl_result result;
    int polls = 0;
    if (w->shards) memset(w->shards, 0, w->shard_count * sizeof(float));
    else memset(w->grads, 0, w->grad_count * sizeof(float));
    w->moment_count = 0;
    w->start_ns = training_wall_ns();
    while ((result = tl_run_plan(w->run)) == TL_NOT_READY) rest(&polls);
    tl_measure_run(w->run, &w->report);
    w->sent_bytes = w->report.sent_bytes;
    if (!result) result = sum_gradients(w);
    w->step_ns = training_wall_ns() - w->start_ns;
    tl_measure_run(w->run, &w->report);
    return result ? result : read_losses(w);
}

// -- one rank: from its figures to its row --

// Train a network that is thrown away, alone, and take the lower quartile of what each node took.
static tl_result measure_nodes(worker *w, uint64_t *node_ns) {
    enum { STEPS = 9, WARM = 1 };
    size_t count = 2 * (size_t)w->m.graph.node_count, i, s;
    uint64_t *samples = (uint64_t *)calloc(count * STEPS, sizeof *samples), column[STEPS];
    options o = *w->o;
    worker alone;
    tl_result result = samples ? TL_OK : TL_ERROR_NO_MEMORY;
    memset(&alone, 0, sizeof alone);
    o.budget = 0;
    o.trace = NULL;
    o.micro_batches = o.chunks = 1;
    o.zero = 0;
    alone.o = &o;
    alone.text = w->text;
    alone.rank_count = alone.replicas = alone.micro_batches = 1;
    alone.sums_ns = samples;
    if (!result) result = build_model(&alone);
    if (!result) result = plan_ranks(&alone, 1, 0, &alone.ranks);
    if (!result) result = init_training(&alone);
    for (s = 0; s < STEPS && !result; s++) {
        alone.sums_ns = samples + s * count;
        result = run_step(&alone);
    }
    for (i = 0; i < count && !result; i++) {
        for (s = WARM; s < STEPS; s++) column[s] = samples[s * count + i];
        node_ns[i] = training_find_quantile(column + WARM, STEPS - WARM, 1, 4);
    }
    free_training(&alone);
    tl_free_compiled_ranks(&alone.env, &alone.ranks);
    training_free_model(&alone.env, &alone.m);
    free(samples);
    return result;
}

// How long messages take between ranks 0 and 1: there and back, small ones and large ones.
static tl_result measure_link(worker *w, tl_link *link) {
    enum { TIMES = 20, LARGE = 1 << 20 };
    uint64_t small = UINT64_MAX, large = UINT64_MAX;
    char *data = (char *)calloc(LARGE, 1);
    tl_result result = data ? TL_OK : TL_ERROR_NO_MEMORY;
    int i;
    memset(link, 0, sizeof *link);
    for (i = 0; i < 2 * TIMES && !result && w->rank_count > 1 && w->rank < 2; i++) {
        uint64_t bytes = i % 2 ? LARGE : 1, *best = i % 2 ? &large : &small, start = training_wall_ns(), taken;
        result = w->rank ? hear(w, 0, data, bytes) : tell(w, 1, data, bytes);
        if (!result) result = w->rank ? tell(w, 0, data, bytes) : hear(w, 1, data, bytes);
        taken = (training_wall_ns() - start) / 2;
        if (taken < *best) *best = taken;
    }
    free(data);
    if (result || w->rank || w->rank_count < 2) return result;
    link->latency_ns = small;
    link->bytes_per_second = (uint64_t)(1e9 * LARGE / (double)(large > small ? large - small : 1));
    return TL_OK;
}

// What all ranks plan with: measured by rank 0, told to all.
static tl_result find_figures(worker *w) {
    size_t count = 2 * (size_t)w->m.graph.node_count;
    tl_result result = TL_OK;
    if (w->o->estimates) return TL_OK;
    w->node_ns = (uint64_t *)calloc(count, sizeof *w->node_ns);
    if (!w->node_ns) return fail(w, "figures", TL_ERROR_NO_MEMORY);
    if (!w->rank) result = measure_nodes(w, w->node_ns);
    if (!result) result = measure_link(w, &w->link);
    if (!result) result = tell_all(w, &w->link, sizeof w->link);
    if (!result) result = tell_all(w, w->node_ns, count * sizeof *w->node_ns);
    if (result) return fail(w, "figures", result);
    training_free_model(&w->env, &w->m);
    return build_model(w);        // the same, with measured costs
}

// What all ranks have to be started with, beside the plans, which the run compares by itself.
static uint64_t hash_options(const worker *w) {
    const options *o = w->o;
    const uint64_t numbers[] = {
        o->stages, o->chunks, o->replicas, o->zero, o->steps, o->budget, (uint64_t)o->estimates, (uint64_t)o->is_gpipe,
        o->trace != NULL, o->save != NULL, o->every, w->from.step
    };
    return tl_mix_u64(hash_numbers(numbers, sizeof numbers / sizeof numbers[0]), hash_training(o, w->text));
}

// Rank 0 hears the hashes of all, and tells them whether they are one.
static tl_result compare_options(worker *w) {
    uint64_t own = hash_options(w), other;
    int32_t equal = 1, r;
    tl_result result = w->rank ? tell(w, 0, &own, sizeof own) : TL_OK;
    for (r = 1; r < w->rank_count && !w->rank && !result; r++) {
        result = hear(w, r, &other, sizeof other);
        if (!result && other != own) equal = 0;
    }
    if (!result) result = tell_all(w, &equal, sizeof equal);
    if (result) return fail(w, "first words", result);
    return equal ? TL_OK : fail(w, "ranks were started with other options or another text", TL_ERROR_MISMATCH);
}

static tl_result prepare_rank(worker *w) {
    tl_result result = compare_options(w);
    if (!result) result = build_model(w);
    if (!result) result = find_figures(w);
    if (!result) result = fail(w, "plan", plan_ranks(w, (int32_t)w->o->stages, w->o->budget * 1024, &w->ranks));
    return result ? result : init_training(w);
}

// Put the floats of a rank where they are among all. Returns whether any of them was another one.
static int spread_floats(const worker *w, const float *own, float *into) {
    int32_t i, differs = 0;
    for (i = 0; i < w->m.param_kinds; i++) {
        const training_param *p = &w->m.params[i];
        size_t bytes = (size_t)p->count * sizeof *own;
        if (w->places[i] == NOT_HERE) continue;
        differs |= memcmp(into + p->first, own + w->places[i], bytes) != 0;
        memcpy(into + p->first, own + w->places[i], bytes);
    }
    return differs;
}

// The same for the parts that a replica has.
static int spread_shards(const worker *w, const float *own, float *into) {
    int32_t i;
    for (i = 0; i < w->m.param_kinds; i++) {
        size_t first, count = find_part(w, w->m.params[i].count, &first);
        if (w->places[i] != NOT_HERE)
            memcpy(into + w->m.params[i].first + first, own + w->shard_places[i], count * sizeof *own);
    }
    return 0;
}

// Rank 0 gathers floats of all ranks in one array; a later replica has to have those of the first. shards: each has its
// parts alone.
static tl_result gather_floats(worker *w, gathered *all, const float *own, float *into, int shards) {
    int (*spread)(const worker *, const float *, float *) = shards ? spread_shards : spread_floats;
    tl_result result = TL_OK;
    int32_t r;
    if (w->rank) return tell(w, 0, own, (shards ? w->shard_count : w->count) * sizeof *own);
    (void)spread(w, own, into);
    for (r = 1; r < w->rank_count && !result; r++) {
        worker other = *w;
        float *at = NULL;
        size_t bytes = 0;
        other.stage = r % (int32_t)w->o->stages;
        other.replica = r / (int32_t)w->o->stages;
        if (find_places(&other)) {
            bytes = (shards ? other.shard_count : other.count) * sizeof *at;
            at = (float *)malloc(bytes + 1);
        }
        result = at ? hear(w, r, at, bytes) : TL_ERROR_NO_MEMORY;
        if (!result && spread(&other, at, into) && r >= (int32_t)w->o->stages) all->replicas_differ = 1;
        free(at);
        free(other.places);
    }
    return result;
}

// The sums of the first step, for rank 0.
static tl_result gather_gradients(worker *w, gathered *all) {
    tl_result result = w->o->zero == 1 ? talk_to_replicas(w, tl_gather_run, TL_VARIABLE_GRADIENT) : TL_OK;
    return result ? result : gather_floats(w, all, w->shards ? w->shards : w->grads, all->grads, w->shards != NULL);
}

// Every rank tells rank 0 about the step; *goes_on is 0 when one of them was asked to stop.
static tl_result report_step(program *p, worker *w) {
    gathered *all = &p->all;
    word own, other;
    tl_result result = TL_OK;
    int32_t r;
    own.step_ns = w->step_ns;
    own.loss = w->loss;
    own.wants_stop = (uint64_t)training_interrupted;
    if (w->rank) return tell(w, 0, &own, sizeof own);
    for (r = 1; r < w->rank_count && !result; r++) {
        result = hear(w, r, &other, sizeof other);
        if (result) return result;
        if (other.step_ns > own.step_ns) own.step_ns = other.step_ns;
        own.loss += other.loss;
        if (other.wants_stop) all->stops = 1;
    }
    all->steps_ns[w->step] = own.step_ns;
    all->losses[w->step] = (float)(own.loss / (double)p->o.micro_batches);
    all->steps = w->step + 1;
    return TL_OK;
}

static void show_progress(program *p, const worker *w, uint64_t start_ns) {
    double left = (double)(training_wall_ns() - start_ns) * 1e-9 / (double)(w->step - w->first_step + 1) *
                  (double)(p->o.steps - w->step - 1);
    if (!w->rank) training_show_progress(&p->progress, "training", w->step + 1, (double)p->all.losses[w->step], left);
}

// --lose: this rank is gone. A thread ends, a process is killed; both say nothing.
static int is_lost(program *p, const worker *w) {
    if (p->has_lost || !p->o.lose || w->step != p->o.lose || w->rank_count == 1 || w->rank != w->rank_count - 1) return 0;
#ifdef WITH_MPI
    raise(SIGKILL);
#endif
    p->has_lost = 1;
    return 1;
}

static tl_result train_rank(program *p, worker *w) {
    uint64_t start = training_wall_ns();
    tl_result result = TL_OK;
    while (!result) {
        int32_t goes_on = w->step < p->o.steps && !training_interrupted && !p->all.stops;
        if (is_lost(p, w)) return TL_ERROR_PEER_LOST;
        result = fail(w, "before a step", tell_all(w, &goes_on, sizeof goes_on));
        if (result || !goes_on) break;
        result = fail(w, "training", run_step(w));
        if (!result && w->step == w->first_step)
            result = fail(w, "gradients", gather_gradients(w, &p->all));
        if (result) break;
        update_weights(w);
        result = fail(w, "weights of a step", gather_weights(w));
        if (!result) result = fail(w, "after a step", report_step(p, w));
        if (!result) show_progress(p, w, start);
        w->step++;
        if (!result && p->o.save && w->step % p->o.every == 0) result = fail(w, "save", save_rank(w));
    }
    if (!result && p->o.save && w->step > w->saved.step) result = fail(w, "save", save_rank(w));
    return result;
}

// Bytes of the sums that a step takes within its passes: of each micro-batch all but the rank's own part.
static uint64_t count_shards_sent(const worker *w) {
    return w->shards ? (uint64_t)(w->count - w->shard_count) * sizeof(float) * (uint64_t)w->micro_batches : 0;
}

static row row_of(const worker *w) {
    const tl_run_report *r = &w->report;
    int32_t k;
    row at;
    memset(&at, 0, sizeof at);
    for (k = 0; k < w->ranks.chunk_count; k++) {
        at.nodes[k][0] = first_node_of(w, k);
        at.nodes[k][1] = end_node_of(w, k);
    }
    at.in_flight = w->plan->in_flight_count;
    at.event_count = w->moment_count;
    at.base_bytes = count_base(w);
    at.planned_base = w->plan->base_bytes;
    at.planned_peak = r->planned_peak_bytes;
    at.measured_peak = r->measured_peak_bytes;
    at.planned_arena = r->planned_arena_bytes;
    at.measured_arena = r->measured_arena_bytes;
    at.planned_taken = r->planned_taken_bytes;
    at.taken = r->taken_bytes;
    at.planned_sent = w->plan->sent_bytes + count_shards_sent(w);
    at.sent = w->sent_bytes;
    at.ring = r->sent_bytes - w->sent_bytes;
    return at;
}

// Rank 0 gets the rows and the last step of all.
static tl_result gather_rows(worker *w, gathered *all) {
    row own = row_of(w);
    tl_result result = TL_OK;
    int32_t r;
    if (w->rank) {
        result = tell(w, 0, &own, sizeof own);
        return result || !w->moments ? result : tell(w, 0, w->moments, (uint64_t)own.event_count * sizeof *w->moments);
    }
    all->rows[0] = own;
    all->rows[0].moments = w->moments;
    w->moments = NULL;
    for (r = 1; r < w->rank_count && !result; r++) {
        row *at = &all->rows[r];
        result = hear(w, r, at, sizeof *at);
        if (result || !w->o->trace) continue;
        at->moments = (moment *)calloc((size_t)at->event_count + 1, sizeof *at->moments);
        result = at->moments ? hear(w, r, at->moments, (uint64_t)at->event_count * sizeof *at->moments)
                             : TL_ERROR_NO_MEMORY;
    }
    return result;
}

static tl_result init_gathered(const program *p, const worker *w, gathered *all) {
    size_t floats = (size_t)w->m.param_count, steps = (size_t)p->o.steps;
    all->first_step = all->steps = w->first_step;
    all->rows = (row *)calloc((size_t)p->rank_count, sizeof(row));
    all->grads = (float *)calloc(floats, sizeof *all->grads);
    all->params = (float *)calloc(floats, sizeof *all->params);
    all->losses = (float *)calloc(steps, sizeof *all->losses);
    all->steps_ns = (uint64_t *)calloc(steps, sizeof *all->steps_ns);
    return all->rows && all->grads && all->params && all->losses && all->steps_ns ? TL_OK : TL_ERROR_NO_MEMORY;
}

// All that a rank does.
static void work_rank(program *p, worker *w) {
    tl_result result = prepare_rank(w);
    if (!result && !w->rank) result = fail(w, "results", init_gathered(p, w, &p->all));
    if (!result) result = train_rank(p, w);
    if (!result) result = fail(w, "weights", gather_floats(w, &p->all, w->params, p->all.params, 0));
    if (!result) (void)fail(w, "results", gather_rows(w, &p->all));
    free_training(w);             // before its messages go
}

static void init_worker(const program *p, worker *w, int32_t rank) {
    memset(w, 0, sizeof *w);
    w->o = &p->o;
    w->text = &p->text;
    w->rank = rank;
    w->rank_count = p->rank_count;
    w->stage = rank % (int32_t)p->o.stages;
    w->replica = rank / (int32_t)p->o.stages;
    w->saves = p->saves;
    w->from = p->from;
    w->replicas = p->rank_count / (int32_t)p->o.stages;
    w->micro_batches = (int32_t)p->o.micro_batches / w->replicas;
}

static void free_worker(worker *w) {
    free_training(w);
    free(w->moments);
    tl_free_compiled_ranks(&w->env, &w->ranks);
    training_free_model(&w->env, &w->m);
    free(w->node_ns);
}

// What a rank did not get done, as a sentence.
static int print_failure(const worker *w) {
    char what[64];
    snprintf(what, sizeof what, "rank %d, step %llu: %s", (int)w->rank, (unsigned long long)w->step, w->failed);
    return training_fail_result(&w->env, what, w->result);
}

// -- trace: all ranks in one file --

static void write_moment(FILE *file, const tl_graph *graph, const moment *at, int32_t rank) {
    const char *what = at->kind == TL_STEP_BACKWARD ? "backward" : at->recompute ? "recompute" : "forward";
    fprintf(file, ",\n{\"name\":\"%s %s@%d\",\"ph\":\"X\",\"pid\":%d,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,"
                  "\"args\":{\"micro_batch\":%d,\"device_bytes\":%llu}}",
            what, tl_name_node(graph, at->node), (int)at->slot, (int)rank + 1, (double)at->start_ns * 1e-3,
            (double)(at->end_ns - at->start_ns) * 1e-3, (int)at->slot, (unsigned long long)at->device_bytes);
}

// A message, from the step that begins it to the W that ends it.
static void write_message(FILE *file, const tl_graph *graph, const moment *moments, int32_t end, int32_t rank) {
    const moment *at = &moments[end];
    int32_t begin = end - 1;
    int sends;
    while (begin >= 0 && (!moments[begin].begins || moments[begin].node != at->node || moments[begin].slot != at->slot))
        begin--;
    if (begin < 0) return;
    sends = (moments[begin].kind == TL_STEP_BACKWARD) == !graph->nodes[at->node].input_count;
    fprintf(file, ",\n{\"name\":\"%s %s@%d\",\"cat\":\"message\",\"ph\":\"b\",\"id\":%d,\"pid\":%d,\"tid\":2,\"ts\":%.3f}",
            sends ? "to the neighbour:" : "from the neighbour:", tl_name_node(graph, at->node), (int)at->slot, (int)end,
            (int)rank + 1, (double)moments[begin].start_ns * 1e-3);
    fprintf(file, ",\n{\"name\":\"%s %s@%d\",\"cat\":\"message\",\"ph\":\"e\",\"id\":%d,\"pid\":%d,\"tid\":2,\"ts\":%.3f}",
            sends ? "to the neighbour:" : "from the neighbour:", tl_name_node(graph, at->node), (int)at->slot, (int)end,
            (int)rank + 1, (double)at->end_ns * 1e-3);
}

static void write_rank(FILE *file, const program *p, const worker *w, int32_t rank) {
    const tl_graph *graph = w->ranks.ranks[rank % (int32_t)p->o.stages].compiled.graph;
    const row *r = &p->all.rows[rank];
    const moment *moments = r->moments;
    int32_t i;
    fprintf(file, "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d: nodes %d to %d\"}}",
            rank ? ",\n" : "", (int)rank + 1, (int)rank, (int)r->nodes[0][0], (int)r->nodes[0][1] - 1);
    fprintf(file, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":1,\"args\":{\"name\":\"compute\"}}",
            (int)rank + 1);
    for (i = 0; i < r->event_count; i++) {
        const moment *at = &moments[i];
        if (at->kind <= TL_STEP_BACKWARD && !at->begins) write_moment(file, graph, at, rank);
        else if (at->kind == TL_STEP_WAIT) write_message(file, graph, moments, i, rank);
        fprintf(file, ",\n{\"name\":\"device memory\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"args\":{\"bytes\":%llu}}",
                (int)rank + 1, (double)at->end_ns * 1e-3, (unsigned long long)at->device_bytes);
    }
}

static int write_trace(const program *p, const worker *w) {
    char directory[480];
    const char *slash = strrchr(p->o.trace, '/');
    tl_file_sink target;
    tl_sink sink;
    tl_env env;
    FILE *file;
    int32_t r;
    if (slash && snprintf(directory, sizeof directory, "%.*s", (int)(slash - p->o.trace), p->o.trace) <
                     (int)sizeof directory) training_make_directory(directory);
    memset(&env, 0, sizeof env);
    if (tl_init_file_sink(&env, p->o.trace, &target, &sink))
        return training_fail(TRAINING_INPUT, "--trace %s: %s", p->o.trace, env.error.text);
    file = (FILE *)target.file;
    fprintf(file, "{\"traceEvents\":[\n");
    for (r = 0; r < p->rank_count; r++) write_rank(file, p, w, r);
    fprintf(file, "\n],\"displayTimeUnit\":\"ms\"}\n");
    if (tl_finish_file_sink(&env, &target, TL_OK)) return training_fail(TRAINING_INPUT, "--trace %s: not all could be written", p->o.trace);
    printf("wrote %s: %d ranks, the last step\n", p->o.trace, (int)p->rank_count);
    return TRAINING_OK;
}

// -- table --

// The same training in one process.
typedef struct alone {
    worker   w;
    options  o;                   // without a budget
    float   *losses, *grads;      // grads of the first step of the ranks
    float   *sums;                // those that the ranks should have: in the order of the ring
    double   step_ms;
} alone;

// Get one process ready that takes the micro-batches of a replica, of one replica: all; from the save that the ranks went
// on from, or from the first step of the training.
static tl_result open_alone(const program *p, const worker *rank0, alone *a, worker *w, int32_t replicas, int32_t replica,
                            int goes_on) {
    tl_result result;
    a->o = p->o;
    a->o.budget = 0;
    a->o.stages = a->o.chunks = 1;
    a->o.zero = 0;
    a->o.trace = NULL;
    init_worker(p, w, 0);
    if (!goes_on) memset(&w->from, 0, sizeof w->from);
    w->o = &a->o;
    w->rank_count = w->replicas = 1;
    w->replica = replica;
    w->micro_batches = (int32_t)p->o.micro_batches / replicas;
    if (rank0->node_ns) {
        size_t bytes = 2 * (size_t)rank0->m.graph.node_count * sizeof *w->node_ns;
        w->node_ns = (uint64_t *)malloc(bytes);
        if (!w->node_ns) return fail(w, "one process", TL_ERROR_NO_MEMORY);
        memcpy(w->node_ns, rank0->node_ns, bytes);
    }
    result = build_model(w);
    if (!result) result = fail(w, "plan", plan_ranks(w, 1, 0, &w->ranks));
    return result ? result : init_training(w);
}

// Without sums over replicas, nothing that the ranks have done is other than if nobody had disturbed them, so one process
// begins where the training began.
static tl_result train_alone(const program *p, const worker *rank0, alone *a) {
    worker *w = &a->w;
    uint64_t steps = p->all.steps, *steps_ns = (uint64_t *)calloc(steps + 1, sizeof *steps_ns);
    tl_result result = open_alone(p, rank0, a, w, 1, 0, p->from.has_sums || p->o.replicas > 1);
    a->losses = (float *)calloc(steps + 1, sizeof *a->losses);
    a->grads = (float *)calloc(w->count + 1, sizeof *a->grads);
    a->sums = (float *)calloc(w->count + 1, sizeof *a->sums);
    if (!steps_ns || !a->losses || !a->grads || !a->sums) {
        (void)fail(w, "one process", TL_ERROR_NO_MEMORY);
        free(steps_ns);
        return TL_ERROR_NO_MEMORY;
    }
    for (; w->step < steps && !result; w->step++) {
        result = fail(w, "one process", run_step(w));
        if (result) break;
        if (w->step == p->all.first_step) memcpy(a->grads, w->grads, w->count * sizeof *a->grads);
        a->losses[w->step] = (float)(w->loss / (double)p->o.micro_batches);
        steps_ns[w->step] = w->step_ns;
        update_weights(w);
    }
    if (!result) a->step_ms = training_find_median(steps_ns + w->first_step, (size_t)(steps - w->first_step)) * 1e-6;
    free(steps_ns);
    return result;
}

// Add up what replicas have of a range in the order that tl_reduce_run says. parts: [replicas][stride]
static void add_in_ring(const float *parts, size_t stride, size_t replicas, size_t first, size_t count, float *sums) {
    size_t c, i, k, at = first;
    for (c = 0; c < replicas; c++) {
        size_t end = at + count / replicas + (c < count % replicas);
        for (i = at; i < end; i++) {
            float sum = parts[c * stride + i];
            for (k = 1; k < replicas; k++) sum = sum + parts[(c + k) % replicas * stride + i];
            sums[i] += sum;
        }
        at = end;
    }
}

// The gradients of the first step that the ranks should have. Gradients in shards are summed micro-batch by micro-batch, others
// when a replica has added its own.
static tl_result find_sums(const program *p, const worker *rank0, alone *a) {
    size_t all = (size_t)rank0->m.param_count, replicas = (size_t)p->o.replicas, r, j;
    size_t turns = p->o.zero == 2 ? (size_t)p->o.micro_batches / replicas : 1, count = turns * replicas;
    float *parts = (float *)calloc(all * count + 1, sizeof *parts);
    tl_result result = TL_OK;
    if (!parts) {
        (void)fail(&a->w, "one process", TL_ERROR_NO_MEMORY);
        return TL_ERROR_NO_MEMORY;
    }
    for (r = 0; r < count && !result; r++) {
        worker w;
        result = open_alone(p, rank0, a, &w, (int32_t)count, (int32_t)r, 1);
        if (!result) result = run_step(&w);
        if (!result) memcpy(parts + r * all, w.grads, all * sizeof *parts);
        else (void)fail(&a->w, "a replica alone", result);
        free_worker(&w);
    }
    for (j = 0; j < turns && !result; j++)
        for (r = 0; r < (size_t)rank0->m.param_kinds; r++)
            add_in_ring(parts + j * all, turns * all, replicas, (size_t)rank0->m.params[r].first,
                        (size_t)rank0->m.params[r].count, a->sums);
    free(parts);
    return result;
}

static int is_as_planned(const row *r) {
    return r->planned_peak == r->measured_peak && r->planned_arena == r->measured_arena && r->base_bytes <= r->planned_base &&
           r->taken <= r->planned_taken && r->planned_sent == r->sent;
}

static void print_row(const char *name, const row *r) {
    int k;
    unsigned long long total = (unsigned long long)r->base_bytes + r->taken;
    printf("  %-12s  %3d .. %-3d  %9d  %9llu  %9llu  %9llu  %9llu  %9llu  %9llu  %9llu  %s\n", name, (int)r->nodes[0][0],
           (int)r->nodes[0][1] - 1, (int)r->in_flight, (unsigned long long)r->base_bytes,
           (unsigned long long)r->planned_peak, (unsigned long long)r->measured_arena, (unsigned long long)r->taken,
           total, (unsigned long long)r->sent, (unsigned long long)r->ring,
           is_as_planned(r) ? "yes" : "NO");
    for (k = 1; k < MOST_CHUNKS && r->nodes[k][1]; k++)
        printf("  %-12s  %3d .. %d\n", "", (int)r->nodes[k][0], (int)r->nodes[k][1] - 1);
}

static int print_rows(const program *p, const alone *a) {
    row one = row_of(&a->w);
    char name[32];
    int32_t r, equal = 1;
    printf("\n%llu steps of %d micro-batches, bytes of each rank (sent: in the passes of a step; ring: after them)\n\n",
           (unsigned long long)(p->all.steps - p->all.first_step), (int)p->o.micro_batches);
    printf("                   nodes  in flight       base  live peak      arena      taken   in total       sent"
           "  ring sent  as planned\n");
    print_row("one process", &one);
    for (r = 0; r < p->rank_count; r++) {
        const row *at = &p->all.rows[r];
        snprintf(name, sizeof name, "rank %d", (int)r);
        print_row(name, at);
        equal &= is_as_planned(at);
    }
    return equal ? TRAINING_OK : training_fail(TRAINING_MISMATCH, "a rank did not take what was planned");
}

// How far apart two gradients are: floats that lie between.
static uint64_t count_ulps(float a, float b) {
    int32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    if (x < 0) x = INT32_MIN - x;
    if (y < 0) y = INT32_MIN - y;
    return (uint64_t)(x > y ? (int64_t)x - y : (int64_t)y - x);
}

static void print_distance(const program *p, const alone *a) {
    size_t count = (size_t)a->w.m.param_count, i, differ = 0;
    double largest = 0.0, furthest = 0.0;
    uint64_t *ulps = (uint64_t *)calloc(count, sizeof *ulps);
    for (i = 0; i < count; i++) {
        double off = fabs((double)p->all.grads[i] - (double)a->grads[i]), size = fabs((double)a->grads[i]);
        differ += off > 0.0;
        if (off > furthest) furthest = off;
        if (size > largest) largest = size;
        if (ulps) ulps[i] = count_ulps(p->all.grads[i], a->grads[i]);
    }
    printf("against one process: %llu of %llu gradients of the first step differ", (unsigned long long)differ,
           (unsigned long long)count);
    if (differ && ulps)
        printf(", at most by %.2g where the largest is %.2g;\n                     99 of 100 by %llu ulps or less",
               furthest, largest, (unsigned long long)training_find_quantile(ulps, count, 99, 100));
    printf("; loss of the last step %.9g, %.9g\n", (double)p->all.losses[p->all.steps - 1],
           (double)a->losses[p->all.steps - 1]);
    free(ulps);
}

// Without replicas everything is that of one process; with them gradients are sums in the order of the ring, and the
// first losses, which no sum has touched, are equal.
static int compare_bits(const program *p, const alone *a) {
    const gathered *all = &p->all;
    size_t count = (size_t)a->w.m.param_count, floats = count * sizeof(float);
    size_t first = (size_t)all->first_step, done = (size_t)all->steps - first, steps = p->o.replicas > 1 ? 1 : done;
    int grads = memcmp(all->grads, a->sums, floats) == 0;
    int losses = memcmp(all->losses + first, a->losses + first, steps * sizeof(float)) == 0;
    int weights = !all->replicas_differ && (p->o.replicas > 1 || memcmp(all->params, a->w.params, floats) == 0);
    printf("\nto the bit: gradients of the first step %s, losses %s, weights %s%s\n", grads ? "yes" : "NO",
           losses ? "yes" : "NO", weights ? "yes" : "NO", p->o.replicas > 1 ? " (sums in the order of the ring; the first"
           " loss; weights of all replicas)" : "");
    print_distance(p, a);
    printf("bits: losses %016llx, gradients %016llx, weights %016llx\n",
           (unsigned long long)hash_bytes(all->losses + first, done * sizeof(float)),
           (unsigned long long)hash_bytes(all->grads, floats), (unsigned long long)hash_bytes(all->params, floats));
    return grads && losses && weights
        ? TRAINING_OK : training_fail(TRAINING_MISMATCH, "gradients, losses or weights are not what they must be");
}

static void print_times(const program *p, const worker *w, const alone *a) {
    uint64_t first = p->all.first_step;
    double measured = training_find_median(p->all.steps_ns + first, (size_t)(p->all.steps - first)) * 1e-6;
    double unit = p->o.estimates ? a->step_ms / (double)a->w.ranks.cost : 1e-6;   // ms of a cost of 1
    double simulated = (double)w->ranks.cost * unit, alone_ms = (double)a->w.ranks.cost * unit;
    printf("ms of a step: simulated %.3f, measured %.3f; one process %.3f, %.3f; so the ranks take %.3f, %.3f of its time\n",
           simulated, measured, alone_ms, a->step_ms, simulated / alone_ms, measured / a->step_ms);
    printf("ranks wait %.1f %% of the simulated time%s; no cut takes less than %.3f ms\n",
           100.0 * w->ranks.bubble_ratio, p->o.replicas > 1 ? ", which is without the sums over replicas" : "",
           (double)w->ranks.bound_cost * unit);
}

// One process within the bytes of a rank: what the library says.
static void print_budget(const program *p, alone *a) {
    tl_compiled_ranks ranks;
    tl_result result;
    if (!p->o.budget) return;
    result = plan_ranks(&a->w, 1, p->o.budget * 1024, &ranks);   // of all micro-batches, one after the other
    if (!result) printf("one process with %llu bytes: trains as well\n", (unsigned long long)p->o.budget * 1024);
    else printf("one process with %llu bytes: %s\n", (unsigned long long)p->o.budget * 1024, a->w.env.error.text);
    tl_free_compiled_ranks(&a->w.env, &ranks);
}

// What rank 0 prints when all have ended.
static int print_all(const program *p, const worker *w) {
    alone *a = (alone *)calloc(1, sizeof *a);
    int code = TRAINING_OK, bits = TRAINING_OK;
    if (!a) return training_fail(TRAINING_INPUT, "no memory");
    training_clear_progress(&p->progress);
    if (p->all.steps == p->all.first_step) code = training_fail(TRAINING_INPUT, "interrupted before the first step");
    else if (train_alone(p, w, a) || find_sums(p, w, a)) code = print_failure(&a->w);
    else {
        code = print_rows(p, a);
        bits = compare_bits(p, a);
        print_times(p, w, a);
        print_budget(p, a);
        if (p->o.trace && write_trace(p, w) && !code) code = TRAINING_INPUT;
    }
    free_worker(&a->w);
    free(a->losses);
    free(a->grads);
    free(a->sums);
    free(a);
    return code ? code : bits;
}

// -- ways: ranks as threads, or as processes of MPI --

static void free_gathered(program *p) {
    int32_t r;
    for (r = 0; p->all.rows && r < p->rank_count; r++) free(p->all.rows[r].moments);
    free(p->all.rows);
    free(p->all.grads);
    free(p->all.params);
    free(p->all.losses);
    free(p->all.steps_ns);
    memset(&p->all, 0, sizeof p->all);
}

static void free_program(program *p) {
    free_gathered(p);
    unmap_saves(p);
    free(p->text.ids);
    free(p);
}

// Read the text, and say what is trained.
static int prepare(program *p, const char *path, int prints) {
    int code = training_read_text(p->o.text, path, p->o.context, NULL, &p->text);
    if (!code && p->o.resumes) code = map_saves(p);
    else if (!code && p->o.save && access(p->o.save, F_OK) == 0)
        code = training_fail(TRAINING_INPUT, "--save %s: is there; --resume goes on from it, or remove it", p->o.save);
    if (code || !prints) return code;
    training_print_text(&p->text);
    printf("ranks      %d: %d stages x %d replicas, %d micro-batches, %s", (int)p->rank_count, (int)p->o.stages,
           (int)p->o.replicas, (int)p->o.micro_batches, p->o.chunks > 1 ? "interleaved" : p->o.schedule);
    if (p->o.chunks > 1) printf(" over %d chunks", (int)p->o.chunks);
    printf("\n");
    if (p->from.rank_count)
        printf("from       step %llu, saved by %d ranks\n", (unsigned long long)p->from.step, (int)p->from.rank_count);
    fflush(stdout);
    return TRAINING_OK;
}

// Print what failed: what was lost because of another rank's failure only where nothing else did.
static int print_failures(const worker *workers, int32_t count) {
    int32_t r, pass, code = TRAINING_OK;
    for (pass = 0; pass < 2 && !code; pass++)
        for (r = 0; r < count; r++) {
            const worker *w = &workers[r];
            if (!w->result || (!pass && w->result == TL_ERROR_PEER_LOST)) continue;
            code = print_failure(w);
            if (!pass) return code;
        }
    return code;
}

// How many replicas the ranks that are left can be, without one of them: as many as before, or there is one.
static uint64_t count_replicas_left(const program *p) {
    uint64_t left = (uint64_t)p->rank_count - 1;
    return left % p->o.replicas ? 1 : p->o.replicas;
}

#ifdef WITH_MPI
// Say what to call, with the arguments of this call but those that say how many ranks there are.
static void print_how_to_go_on(const program *p, int rank, int count, char **argv) {
    save_note note;
    uint64_t replicas = count_replicas_left(p);
    char line[1024];
    int i, length;
    if (!p->o.save || !read_note(p->o.save, &note)) return;
    length = snprintf(line, sizeof line, "rank %d: to go on from step %llu: mpirun -n %d", rank,
                      (unsigned long long)note.step, (int)p->rank_count - 1);
    for (i = 0; i < count && length < (int)sizeof line; i++) {
        if (strcmp(argv[i], "--stages") == 0 || strcmp(argv[i], "--replicas") == 0 || strcmp(argv[i], "--lose") == 0) i++;
        else if (strcmp(argv[i], "--resume") != 0)
            length += snprintf(line + length, sizeof line - (size_t)length, " %s", argv[i]);
    }
    if (replicas > 1 && length < (int)sizeof line)
        snprintf(line + length, sizeof line - (size_t)length, " --replicas %d", (int)replicas);
    (void)training_fail(TRAINING_INPUT, "%s --resume", line);
}

// MPI_Finalize would wait for the rank that does not answer. Others who have lost it get a second for their sentences.
static void end_job(int code) {
    wait_ns(1000000000);
    MPI_Abort(MPI_COMM_WORLD, code);
}

static int run(program *p, int count, char **argv) {
    mpi_hub_desc desc = { MPI_COMM_WORLD, 0, 0, NULL };
    mpi_hub hub;
    worker *w = (worker *)calloc(1, sizeof *w);
    int code;
    desc.poll_limit = p->o.patience * POLLS_PER_SECOND;
    if (!w || !mpi_hub_open(&hub, &desc)) {
        free(w);
        return training_fail(TRAINING_INPUT, "no memory, or MPI refused");
    }
    p->rank_count = hub.rank_count;
    if (!p->o.has_stages && hub.rank_count >= (int)p->o.replicas) p->o.stages = (uint64_t)hub.rank_count / p->o.replicas;
    code = prepare(p, argv[0], !hub.rank);
    if (!code && (uint64_t)p->rank_count != p->o.stages * p->o.replicas)
        code = training_fail(TRAINING_INPUT, "--stages %d --replicas %d: MPI started %d ranks", (int)p->o.stages,
                             (int)p->o.replicas, hub.rank_count);
    if (!code) {
        init_worker(p, w, hub.rank);
        w->transport = mpi_hub_join(&hub);
        work_rank(p, w);
        code = print_failures(w, 1);
        if (w->result == TL_ERROR_PEER_LOST) {
            print_how_to_go_on(p, hub.rank, count, argv);
            end_job(code);
        }
        if (!code && !hub.rank) code = print_all(p, w);
        free_worker(w);
    }
    mpi_hub_close(&hub);
    free(w);
    return code;
}
#else
typedef struct thread_rank {
    program     *p;
    worker      *w;
    threads_hub *hub;
    pthread_t    thread;
} thread_rank;

static void *run_thread(void *user) {
    thread_rank *t = (thread_rank *)user;
    work_rank(t->p, t->w);
    threads_hub_leave(t->hub, t->w->rank);
    return NULL;
}

// Run all ranks, each in a thread.
static int run_threads(program *p, threads_hub *hub, worker *workers, thread_rank *ranks) {
    int32_t r, started = 0;
    int error = 0;
    for (r = 0; r < p->rank_count; r++) {
        init_worker(p, &workers[r], r);
        workers[r].transport = threads_hub_join(hub, r);
        ranks[r].p = p;
        ranks[r].w = &workers[r];
        ranks[r].hub = hub;
    }
    for (; started < p->rank_count && !error; started += !error)
        error = pthread_create(&ranks[started].thread, NULL, run_thread, &ranks[started]);
    for (r = started; r < p->rank_count; r++) threads_hub_leave(hub, r);   // those that never came
    for (r = 0; r < started; r++) pthread_join(ranks[r].thread, NULL);
    if (error) return training_fail(TRAINING_INPUT, "threads: %s", strerror(error));
    return print_failures(workers, p->rank_count);
}

// Train with a hub of its own. *is_lost is 1 when a rank was lost, and nothing else has failed.
static int run_ranks(program *p, int *is_lost) {
    threads_hub_desc desc;
    threads_hub hub;
    thread_rank *ranks = NULL;
    worker *workers = NULL;
    int32_t r;
    int code;
    *is_lost = 0;
    p->rank_count = (int32_t)(p->o.stages * p->o.replicas);
    memset(&desc, 0, sizeof desc);
    desc.rank_count = p->rank_count;
    desc.bytes_per_second = p->o.link * 1000000;
    desc.latency_ns = p->o.latency * 1000;
    desc.poll_limit = p->o.patience * POLLS_PER_SECOND;
    if (!threads_hub_open(&hub, &desc)) return training_fail(TRAINING_INPUT, "no memory");
    ranks = (thread_rank *)calloc((size_t)p->rank_count, sizeof *ranks);
    workers = (worker *)calloc((size_t)p->rank_count, sizeof *workers);
    code = ranks && workers ? run_threads(p, &hub, workers, ranks) : training_fail(TRAINING_INPUT, "no memory");
    if (!code && workers) code = print_all(p, &workers[0]);
    for (r = 0; workers && r < p->rank_count; r++) {
        *is_lost |= workers[r].result == TL_ERROR_PEER_LOST;
        free_worker(&workers[r]);
    }
    for (r = 0; workers && r < p->rank_count; r++)
        if (workers[r].result && workers[r].result != TL_ERROR_PEER_LOST) *is_lost = 0;
    threads_hub_close(&hub);
    free(ranks);
    free(workers);
    return code;
}

// Go on with a rank fewer. code: what it ends with otherwise.
static int choose_fewer(program *p, int code) {
    save_note note;
    uint64_t replicas = count_replicas_left(p);
    if (!p->o.save || !read_note(p->o.save, &note))
        return training_fail(code, "a rank is lost, and nothing is saved to go on from (--save)");
    p->o.replicas = replicas;
    p->o.stages = (uint64_t)(p->rank_count - 1) / replicas;
    code = map_saves(p);
    free_gathered(p);
    if (code) return code;
    printf("a rank is lost: %d go on from step %llu, %d stages x %d replicas\n", (int)p->rank_count - 1,
           (unsigned long long)p->from.step, (int)p->o.stages, (int)replicas);
    fflush(stdout);
    return TRAINING_OK;
}

static int run(program *p, int count, char **argv) {
    int is_lost = 1, code;
    (void)count;
    p->rank_count = (int32_t)(p->o.stages * p->o.replicas);
    code = prepare(p, argv[0], 1);
    while (!code && is_lost) {
        code = run_ranks(p, &is_lost);
        if (is_lost) code = choose_fewer(p, code);
    }
    return code;
}
#endif

// -- main --

int main(int count, char **argv) {
    program *p = (program *)calloc(1, sizeof *p);
    int done, code;
#ifdef WITH_MPI
    MPI_Init(&count, &argv);
#endif
    if (!p) return training_fail(TRAINING_INPUT, "no memory");
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ);        // sentences of several processes stay whole
    p->progress.shown_ns = training_wall_ns();
    p->progress.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p->o, count, argv, &done);
    if (!code && !done) {
        training_set_signals();
        signal(SIGTERM, training_on_interrupt);   // what mpirun makes of Ctrl-C
        code = run(p, count, argv);
    }
    free_program(p);
    code = done ? code : training_finish(code);
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return code;
}
