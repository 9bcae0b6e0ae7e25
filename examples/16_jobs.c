// 16_jobs.c -- a training on a job system: several steps under way, the same numbers
//
// You learn: with tl_run_desc.in_flight = k, tl_next_step yields up to k steps that do not depend on each other
// before the first of them is finished. Kernels run on threads; when one has ended, tl_finish_step says so, in any
// order. Where the next step depends on one under way, tl_next_step answers TL_NOT_READY. What a step frees is free
// for others k steps later, so the arena grows with k, and is planned for it. It trains the transformer of 01 with
// 1, 2, 4 and 8 steps under way, from one seed, and prints what the arena takes, how long a step takes, and whether
// losses and gradients are equal to the last bit. It leaves build/memory.svg (memory over one step) and
// build/trace.json (open it in ui.perfetto.dev). Read next: 04, the same loop one step at a time.
//
// check: --quick --out build/check/jobs
//
//     mkdir -p build && cc -O3 -ffp-contract=off -o build/16_jobs examples/16_jobs.c -lm -lpthread
//     build/16_jobs --quick --wait 200
//
// HOW IT WORKS   The micro-batches of a training step are slots of one plan, each a step behind the one before, so
// that steps of two of them are neighbours and may be under way together:
//
//     slot 0   F 1   F 2   F 3   F 4 ..
//     slot 1         F 1   F 2   F 3 ..      two calls of one node never are: sums of gradients keep their order
//
// The main thread alone calls the run. Threads take steps from a list, call their kernels, and put them into
// another list. All runs take turns, a training step each, so that a slow moment of the machine hits them alike.
//
// CONTENTS       (search for "// -- ")
//                options    job system    plan    training    table    pictures    main

#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime, nanosleep, isatty, mkdir

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TRAINING_PROGRAM "16_jobs"
#include "training.h"
#include "nn.h"
#include "training_kernels.h"

// -- options --

typedef struct options {
    const char *text, *out;       // text NULL = that of the examples
    uint64_t layers, width, context, batch, micro_batches, threads, steps, seed, budget, wait;
} options;

static const char *const usage =
    "16_jobs: train a character-level transformer on threads, with several steps under way\n"
    "\n"
    "  --text FILE        train on this text (examples/training_text.txt)\n"
    "  --steps N          training steps of every run (40)\n"
    "  --threads N        that call kernels (4)\n"
    "  --micro-batches N  of a step, under way together (2)\n"
    "  --budget PERCENT   of the activations that keeping everything takes with one step under way (100)\n"
    "  --wait N           microseconds that every forward waits beside its work, a backward twice (0): as if\n"
    "                     kernels ran on other machines\n"
    "  --layers N --width N --context N --batch N    size of the network (6 48 32 4)\n"
    "  --seed N           of weights, batches and dropout (1)\n"
    "  --out DIR          where memory.svg and trace.json go (build)\n"
    "  --quick            a tiny network for a few steps\n"
    "  --help             this list\n"
    "\n"
    "Ctrl-C ends the training after the step under way; table and pictures are those of what was done.\n"
    "exit code: 0 ok, 1 bad input or a file that could not be written, 2 the budget is below the least\n"
    "possible, 3 measured differs from planned or losses are not equal\n";

static int read_options(options *o, int count, char **argv, int *done) {
    const training_option table[] = {
        { "--steps", 1, 1000000, &o->steps, NULL, NULL },
        { "--threads", 1, 64, &o->threads, NULL, NULL },
        { "--micro-batches", 1, 16, &o->micro_batches, NULL, NULL },
        { "--budget", 1, 100, &o->budget, NULL, NULL },
        { "--wait", 0, 1000000, &o->wait, NULL, NULL },
        { "--layers", 1, 64, &o->layers, NULL, NULL },
        { "--width", TRAINING_HEAD, 1024, &o->width, NULL, NULL },
        { "--context", 2, 1024, &o->context, NULL, NULL },
        { "--batch", 1, 1024, &o->batch, NULL, NULL },
        { "--seed", 0, UINT64_MAX, &o->seed, NULL, NULL },
        { "--text", 0, 0, NULL, &o->text, NULL },
        { "--out", 0, 0, NULL, &o->out, NULL },
        { "--quick", 0, 0, NULL, NULL, NULL },
    };
    return training_parse_options(table, sizeof table / sizeof *table, usage, count, argv, done);
}

// *done is 1 after --help.
static int parse_options(options *o, int count, char **argv, int *done) {
    int quick = training_is_quick(count, argv), code;
    memset(o, 0, sizeof *o);
    o->out = "build";
    o->layers = quick ? 3 : 6;
    o->width = quick ? 16 : 48;
    o->context = quick ? 16 : 32;
    o->batch = quick ? 2 : 4;
    o->micro_batches = 2;
    o->threads = 4;
    o->seed = 1;
    o->steps = quick ? 5 : 40;
    o->budget = 100;
    code = read_options(o, count, argv, done);
    return code || *done ? code : training_check_multiple("--width", o->width, TRAINING_HEAD);
}

// -- job system: threads that call kernels --

enum { JOB_MAX = 64 };

typedef struct job {
    tl_run_step step;
    tl_result   result;           // of its kernel
} job;

typedef struct job_system {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    job       waiting[JOB_MAX], ended[JOB_MAX];   // under the lock, like the four below
    int32_t   waiting_count, ended_count, ends;
    int32_t   under_way;          // of the main thread: yielded and not finished
    pthread_t threads[JOB_MAX];
    int32_t   thread_count;
} job_system;

static void *work(void *user) {
    job_system *jobs = (job_system *)user;
    pthread_mutex_lock(&jobs->lock);
    for (;;) {
        const tl_kernel *kernel;
        job at;
        int32_t i;
        while (!jobs->waiting_count && !jobs->ends) pthread_cond_wait(&jobs->changed, &jobs->lock);
        if (!jobs->waiting_count) break;
        at = jobs->waiting[0];    // the oldest first: others wait for it
        jobs->waiting_count--;
        for (i = 0; i < jobs->waiting_count; i++) jobs->waiting[i] = jobs->waiting[i + 1];
        pthread_mutex_unlock(&jobs->lock);
        kernel = at.step.kernel;
        at.result = at.step.call.kind == TL_STEP_BACKWARD ? kernel->backward(&at.step.call, kernel->user)
                                                          : kernel->forward(&at.step.call, kernel->user);
        pthread_mutex_lock(&jobs->lock);
        jobs->ended[jobs->ended_count++] = at;
        pthread_cond_broadcast(&jobs->changed);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

static void add_job(job_system *jobs, const tl_run_step *step) {
    pthread_mutex_lock(&jobs->lock);
    jobs->waiting[jobs->waiting_count].step = *step;
    jobs->waiting[jobs->waiting_count++].result = TL_OK;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    jobs->under_way++;
}

// Wait until a kernel has ended, and take it; only while there is one under way.
static job take_job(job_system *jobs) {
    job at;
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->ended_count) pthread_cond_wait(&jobs->changed, &jobs->lock);
    at = jobs->ended[--jobs->ended_count];
    pthread_mutex_unlock(&jobs->lock);
    jobs->under_way--;
    return at;
}

static int start_jobs(job_system *jobs, int32_t count) {
    int error = 0;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->changed, NULL);
    while (jobs->thread_count < count && !error) {
        error = pthread_create(&jobs->threads[jobs->thread_count], NULL, work, jobs);
        jobs->thread_count += !error;
    }
    return error ? training_fail(TRAINING_INPUT, "threads: %s", strerror(error)) : TRAINING_OK;
}

static void end_jobs(job_system *jobs) {
    pthread_mutex_lock(&jobs->lock);
    jobs->ends = 1;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    while (jobs->thread_count) pthread_join(jobs->threads[--jobs->thread_count], NULL);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
}

// -- plan: the same steps for each micro-batch, each one step behind the one before --

static tl_result interleave_plan(const tl_plan *one, int32_t slots, tl_plan *plan) {
    int32_t count = one->step_count, at, slot;
    tl_step *steps = (tl_step *)calloc((size_t)count * (size_t)slots, sizeof *steps);
    memset(plan, 0, sizeof *plan);
    if (!steps) return TL_ERROR_NO_MEMORY;
    plan->steps = steps;
    plan->slot_count = slots;
    for (at = 0; at < count + slots - 1; at++)
        for (slot = 0; slot < slots; slot++) {
            if (at < slot || at - slot >= count) continue;
            steps[plan->step_count] = tl_find_step(one, at - slot);
            steps[plan->step_count++].slot = (uint16_t)slot;
        }
    return TL_OK;
}

// -- training: one run with k steps under way --

enum { RUN_COUNT = 4 };
static const int32_t flights[RUN_COUNT] = { 1, 2, 4, 8 };

typedef struct training {
    const training_model *m;
    const training_text  *t;
    const options *o;
    int32_t    k;                 // steps under way
    net        network;
    float     *floats;            // [4][param_count]: parameters, both states of AdamW, gradients
    int32_t   *window;            // [2][B T]
    tl_backend backend;
    tl_run    *run;
    tl_run_report report;         // of the last step
    float      loss;              // of the last step: the mean of its micro-batches
    uint64_t   step;              // training steps done
    uint64_t  *steps_ns;          // [steps]
    uint64_t  *live;              // [sample_count] device bytes of the last pass
    double    *times;             // [sample_count] in ms
    int32_t    sample_count, sample_room;
    uint64_t   start_ns;
    tl_trace  *trace;             // NULL = none
    int        equal;             // 1 = losses and gradients are those of the first run
    char       label[48];
} training;

static uint64_t clock_ns(void *user) {
    (void)user;
    return training_wall_ns();
}

static void observe(const tl_run_event *event, void *user) {
    training *t = (training *)user;
    if (t->trace) tl_record_event(event, t->trace);
}

static void sample_memory(training *t) {
    tl_backend_counters counters;
    if (t->sample_count == t->sample_room) return;
    t->backend.counters(t->backend.self, &counters);
    t->live[t->sample_count] = counters.live_bytes[TL_TIER_DEVICE];
    t->times[t->sample_count++] = (double)(training_wall_ns() - t->start_ns) * 1e-6;
}

// Run one pass: pull steps and hand them out; where none can be pulled, wait for a kernel to end.
static tl_result run_pass(training *t, job_system *jobs) {
    tl_result result = tl_start_pass(t->run, 0), kernel = TL_OK;
    int32_t done = 0;
    t->sample_count = 0;
    t->start_ns = training_wall_ns();
    while (!result && !done) {
        tl_run_step step;
        if (jobs->under_way < t->k) result = tl_next_step(t->run, &step, &done);
        else result = TL_NOT_READY;
        if (!result) {
            if (step.is_compute) add_job(jobs, &step);
        } else if (result == TL_NOT_READY && jobs->under_way) {
            job ended = take_job(jobs);
            kernel = ended.result;
            result = kernel ? kernel : tl_finish_step(t->run, &ended.step);
        }
        sample_memory(t);
    }
    while (jobs->under_way) (void)take_job(jobs);   // after a failure: before their operands go
    if (kernel) (void)tl_reset_run(t->run);
    return result;
}

static tl_result load_batches(training *t) {
    int32_t slot;
    tl_result result = TL_OK;
    for (slot = 0; slot < (int32_t)t->o->micro_batches && !result; slot++) {
        uint64_t first = (t->step * t->o->micro_batches + (uint64_t)slot) * t->m->size.B;
        result = tl_choose_slot(t->run, slot);
        if (!result) result = training_load_window(t->m, t->t, t->run, t->o->seed, first, t->window);
    }
    return result;
}

static tl_result read_losses(training *t) {
    tl_tensor loss = { 0, 0 };
    float one, sum = 0.0f;
    int32_t slot;
    tl_result result = TL_OK;
    loss.node = t->m->loss;
    for (slot = 0; slot < (int32_t)t->o->micro_batches && !result; slot++) {
        result = tl_choose_slot(t->run, slot);
        if (!result) result = tl_read_tensor(t->run, loss, &one, sizeof one);
        if (!result) sum += one;
    }
    t->loss = sum / (float)t->o->micro_batches;
    return result;
}

static void update_weights(training *t) {
    nn_adamw adamw = { 0.0f, 0.9f, 0.98f, 1e-8f, 0.0f };
    size_t count = (size_t)t->m->param_count;
    int32_t i;
    adamw.rate = training_rate(t->step);
    for (i = 0; i < t->m->param_kinds; i++) {
        const training_param *p = &t->m->params[i];
        float *at = t->floats + p->first;
        adamw.weight_decay = p->decays ? 0.05f : 0.0f;
        nn_adamw_update(at, at + count, at + 2 * count, at + 3 * count, (size_t)p->count, t->step + 1, &adamw);
    }
}

static tl_result train_step(training *t, job_system *jobs) {
    uint64_t start = training_wall_ns();
    tl_result result;
    memset(t->network.grads, 0, (size_t)t->m->param_count * sizeof(float));
    result = load_batches(t);
    if (!result) result = run_pass(t, jobs);
    if (!result) result = read_losses(t);
    tl_measure_run(t->run, &t->report);
    if (result) return result;
    update_weights(t);
    t->steps_ns[t->step++] = training_wall_ns() - start;
    return TL_OK;
}

// Begin a training. The run places the plan for k steps under way. On error free_training is still due.
static tl_result init_training(tl_env *env, training *t, const training_model *m, const training_text *text,
                               const options *o, const tl_plan *plan, int32_t k) {
    size_t count = (size_t)m->param_count;
    uint32_t word;
    float scale = 1.0f / (float)o->micro_batches;
    tl_kernel kernels[TRAINING_OP_COUNT - 1];
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_result result;
    memset(&cpu, 0, sizeof cpu);
    memset(&desc, 0, sizeof desc);
    t->m = m;
    t->t = text;
    t->o = o;
    t->k = k;
    t->equal = 1;
    t->sample_room = 4 * plan->step_count + 16;
    t->floats = (float *)calloc(4 * count, sizeof *t->floats);
    t->window = (int32_t *)calloc((size_t)(2 * m->size.B * m->size.T), sizeof *t->window);
    t->steps_ns = (uint64_t *)calloc((size_t)o->steps, sizeof *t->steps_ns);
    t->live = (uint64_t *)calloc((size_t)t->sample_room, sizeof *t->live);
    t->times = (double *)calloc((size_t)t->sample_room, sizeof *t->times);
    if (!t->floats || !t->window || !t->steps_ns || !t->live || !t->times) return TL_ERROR_NO_MEMORY;
    training_fill_params(m, o->seed, t->floats);
    t->network.m = m;
    t->network.params = t->floats;
    t->network.grads = t->floats + 3 * count;
    t->network.wait_ns = o->wait * 1000;
    cpu.now_ns = clock_ns;
    result = tl_init_cpu_backend(env, &cpu, &t->backend);
    if (result) return result;
    set_kernels(kernels, &t->network);
    memcpy(&word, &scale, sizeof word);
    desc.graph = &m->graph;
    desc.backend = &t->backend;
    desc.kernels = kernels;
    desc.kernel_count = TRAINING_OP_COUNT - 1;
    desc.plan = plan;
    desc.in_flight = k;
    desc.observe = observe;
    desc.observe_user = t;
    desc.profiling = 1;
    desc.seed = o->seed;
    desc.loss_gradient_word = word;     // of the mean of the micro-batches
    return tl_init_run(env, &desc, &t->run);
}

static void free_training(tl_env *env, training *t) {
    tl_free_run(t->run);
    if (t->backend.self) (void)tl_free_cpu_backend(env, &t->backend);
    free(t->floats);
    free(t->window);
    free(t->steps_ns);
    free(t->live);
    free(t->times);
}

// -- table --

typedef struct program {
    tl_env   env;
    options  o;
    training_text text;
    training_model m;
    tl_plan  one, plan;           // of a micro-batch; of all of them, whose steps are the program's
    training runs[RUN_COUNT];
    int32_t  run_count;
    job_system jobs;
    tl_trace *trace;              // of the last step of the last run
    uint64_t steps;               // done by all of them
    training_progress progress;
} program;

// Compare with the run of one step at a time.
static void compare_runs(program *p, training *t) {
    const training *first = &p->runs[0];
    size_t bytes = (size_t)p->m.param_count * sizeof(float);
    if (memcmp(&t->loss, &first->loss, sizeof t->loss) != 0 ||
        memcmp(t->network.grads, first->network.grads, bytes) != 0 ||
        memcmp(t->floats, first->floats, bytes) != 0) t->equal = 0;
}

static int train(program *p) {
    uint64_t start = training_wall_ns();
    while (p->steps < p->o.steps && !training_interrupted) {
        int32_t i;
        double left;
        for (i = 0; i < p->run_count; i++) {
            training *t = &p->runs[i];
            tl_result result;
            if (t->trace) tl_reset_trace(t->trace);
            result = train_step(t, &p->jobs);
            if (result) {
                training_clear_progress(&p->progress);
                return training_fail_result(&p->env, t->label, result);
            }
            compare_runs(p, t);
        }
        p->steps++;
        left = (double)(training_wall_ns() - start) * 1e-9 / (double)p->steps * (double)(p->o.steps - p->steps);
        training_show_progress(&p->progress, "training", p->steps, (double)p->runs[0].loss, left);
    }
    training_clear_progress(&p->progress);
    return p->steps ? TRAINING_OK : training_fail(TRAINING_INPUT, "interrupted before the first step");
}

static int print_table(const program *p) {
    int32_t i, equal = 1;
    printf("\n%llu steps of %d micro-batches, %d threads%s\n\n", (unsigned long long)p->steps,
           (int)p->o.micro_batches, (int)p->o.threads, p->o.wait ? ", kernels that wait" : "");
    printf("  under way   live peak        arena   x arena   ms a step   x time       loss   equal\n");
    for (i = 0; i < p->run_count; i++) {
        const training *t = &p->runs[i], *first = &p->runs[0];
        const tl_run_report *r = &t->report;
        double ms = training_find_median(t->steps_ns, (size_t)p->steps) * 1e-6;
        double ratio = training_find_ratio(t->steps_ns, first->steps_ns, (size_t)p->steps);
        printf("  %9d  %10llu  %11llu  %8.3f  %10.3f  %7.3f  %9.5f   %s\n", (int)t->k,
               (unsigned long long)r->measured_peak_bytes, (unsigned long long)r->measured_arena_bytes,
               (double)r->measured_arena_bytes / (double)first->report.measured_arena_bytes, ms, ratio,
               (double)t->loss, t->equal ? "yes" : "NO");
        equal &= t->equal;
    }
    printf("\n");
    return equal ? TRAINING_OK : training_fail(TRAINING_MISMATCH, "losses or gradients differ from those of one step"
                                                                  " at a time");
}

// -- pictures --

static int write_pictures(program *p) {
    tl_memory_curve curves[RUN_COUNT];
    training_pictures pictures;
    int32_t i;
    memset(&pictures, 0, sizeof pictures);
    memset(curves, 0, sizeof curves);
    for (i = 0; i < p->run_count; i++) {
        curves[i].label = p->runs[i].label;
        curves[i].live_bytes = p->runs[i].live;
        curves[i].times = p->runs[i].times;
        curves[i].count = p->runs[i].sample_count;
    }
    pictures.curves = curves;
    pictures.count = p->run_count;
    pictures.style.title = "live bytes of one training step, by the steps under way";
    pictures.style.time_label = "ms";
    pictures.trace = p->trace;
    pictures.graph = &p->m.graph;
    return training_write_pictures(&p->env, &pictures, p->o.out);
}

// -- main --

// The plan of one micro-batch: everything is kept, or within the budget the cheapest.
static int make_plan(program *p) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_result result = tl_plan_keep_all(&p->env, &p->m.graph, 0, &p->one);
    memset(&desc, 0, sizeof desc);
    if (!result && p->o.budget < 100) {
        desc.graph = &p->m.graph;
        desc.live = 1;            // the run places what all micro-batches take together
        desc.budget_bytes = p->one.peak_bytes / 100 * p->o.budget;
        tl_free_plan(&p->env, &p->one);
        result = tl_plan_remat(&p->env, &desc, &p->one, &report);
    }
    if (!result) result = interleave_plan(&p->one, (int32_t)p->o.micro_batches, &p->plan);
    return result ? training_fail_result(&p->env, "plan", result) : TRAINING_OK;
}

static int prepare(program *p, const char *path) {
    const options *o = &p->o;
    tl_result result;
    int code = training_read_text(o->text, path, o->context, NULL, &p->text);
    if (code) return code;
    p->m.size.L = o->layers;
    p->m.size.C = o->width;
    p->m.size.T = o->context;
    p->m.size.B = o->batch;
    p->m.size.V = (uint64_t)p->text.V;
    p->m.trains = 1;
    p->m.dropout = 0.05f;
    p->m.add_bytes = add_bytes;
    result = training_build_model(&p->env, &p->m);
    if (result) return training_fail_result(&p->env, "graph", result);
    training_print_text(&p->text);
    training_print_network(&p->m, o->micro_batches);
    code = make_plan(p);
    if (code) return code;
    result = tl_init_trace(&p->env, p->plan.step_count, &p->trace);
    while (!result && p->run_count < RUN_COUNT) {
        training *t = &p->runs[p->run_count];
        snprintf(t->label, sizeof t->label, "%d under way", (int)flights[p->run_count]);
        result = init_training(&p->env, t, &p->m, &p->text, o, &p->plan, flights[p->run_count]);
        p->run_count++;
    }
    if (result) return training_fail_result(&p->env, "run", result);
    p->runs[RUN_COUNT - 1].trace = p->trace;
    return start_jobs(&p->jobs, (int32_t)o->threads);
}

static int run(program *p, const char *path) {
    int code = prepare(p, path), table, pictures;
    if (!code) code = train(p);
    if (code) return code;
    table = print_table(p);
    pictures = write_pictures(p);
    return table ? table : pictures;
}

static void free_program(program *p) {
    int32_t i;
    if (p->jobs.thread_count) end_jobs(&p->jobs);
    for (i = 0; i < p->run_count; i++) free_training(&p->env, &p->runs[i]);
    tl_free_trace(p->trace);
    tl_free_plan(&p->env, &p->one);
    free((tl_step *)p->plan.steps);
    training_free_model(&p->env, &p->m);
    free(p->text.ids);
    free(p);
}

int main(int count, char **argv) {
    program *p = (program *)calloc(1, sizeof *p);
    int done, code;
    if (!p) return training_fail(TRAINING_INPUT, "no memory");
    p->progress.shown_ns = training_wall_ns();
    p->progress.terminal = isatty(STDERR_FILENO);
    code = parse_options(&p->o, count, argv, &done);
    if (!code && !done) {
        training_set_signals();
        code = run(p, argv[0]);
    }
    free_program(p);
    return done ? code : training_finish(code);
}
