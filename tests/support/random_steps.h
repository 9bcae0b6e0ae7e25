// Random schedules on a graph: a random walk over legal steps, the library's own plans, and mutations of both.
// Include after the implementation: the walk steps the simulator itself to learn what is legal.
#ifndef TESTS_RANDOM_STEPS_H
#define TESTS_RANDOM_STEPS_H

#include "random_graph.h"
#include <stdlib.h>

enum { RANDOM_SLOTS = 4 };  // at most

typedef struct random_walk {
    tl_env    *env;
    tl_random *random;
    const tl_graph *graph;
    tl_plan    flags;
    tli_sim    sim;
    tli_steps  list;
    int32_t    limit;  // steps
} random_walk;

static inline tl_step random_step(tl_random *random, const tl_graph *graph, int hostile) {
    tl_step step = tli_step_of((tl_step_kind)tl_next_random_below(random, TL_STEP_COUNT), 0, TL_ALL_OUTPUTS);
    step.node = random_count(random, 0, graph->node_count - 1);
    if (!tli_acts_on_node((tl_step_kind)step.kind) && random_chance(random, 60))
        step.output = random_count(random, 0, graph->nodes[step.node].output_count - 1);
    if (step.kind == TL_STEP_COMPRESS) step.codec = (uint8_t)random_count(random, 1, 3);
    if (!hostile) return step;
    if (random_chance(random, 3)) step.node = random_chance(random, 50) ? -1 : graph->node_count;
    if (random_chance(random, 3)) step.output = random_count(random, -3, 4);
    if (random_chance(random, 3)) step.kind = (uint8_t)random_count(random, 0, 13);
    if (step.kind == TL_STEP_COMPRESS) step.codec = (uint8_t)random_count(random, random_chance(random, 10) ? 0 : 1, 3);
    else step.codec = TL_CODEC_NONE;
    return step;
}

static inline void random_forget_arena(tli_sim_arena *arena) {
    arena->ranks = NULL;
    arena->by_rank = NULL;
    arena->ends = NULL;
    arena->live = NULL;
    arena->places = NULL;
    arena->highs = NULL;
}

static inline void random_copy_arena(const tli_sim_arena *from, tli_sim_arena *to) {
    if (!from->offsets) return;
    memcpy(to->ends, from->ends, (size_t)from->count * sizeof *to->ends);
    memcpy(to->live, from->live, 2 * (size_t)from->leaf_count);
    memcpy(to->places, from->places, (size_t)from->owner_count * sizeof *to->places);
    memcpy(to->highs, from->highs, ((size_t)from->block_count + 1) * sizeof *to->highs);
}

// Copy a simulation, so that a step can be tried.
static inline int random_copy_sim(const tli_sim *from, tli_sim *to) {
    size_t slots = (size_t)from->slot_count, most = (size_t)tli_sim_most_made(from->graph);
    size_t tensors = slots * (size_t)from->graph->tensor_count, nodes = slots * (size_t)from->graph->node_count;
    *to = *from;
    random_forget_arena(&to->arena);
    random_forget_arena(&to->host_arena);
    if (tli_sim_alloc_state(to)) return 0;
    memcpy(to->all_tensors, from->all_tensors, tensors * sizeof *to->tensors);
    memcpy(to->all_nodes, from->all_nodes, nodes * sizeof *to->nodes);
    memcpy(to->next_backward, from->next_backward, slots * sizeof *to->next_backward);
    tli_sim_choose_slot(to, from->slot);
    memcpy(to->made, from->made, most * sizeof *to->made);
    random_copy_arena(&from->arena, &to->arena);
    random_copy_arena(&from->host_arena, &to->host_arena);
    return 1;
}

static inline int random_try(random_walk *walk, tl_step step) {
    tli_sim copy;
    step.slot = (uint16_t)walk->sim.slot;
    if (walk->list.count >= walk->limit || !random_copy_sim(&walk->sim, &copy)) return 0;
    if (tli_sim_step(&copy, &step)) { tli_free_sim(&copy); return 0; }
    tli_free_sim(&walk->sim);
    walk->sim = copy;
    tli_add_step(&walk->list, step);
    return 1;
}

// What a tensor's copies invite: a copy that is under way ends, what is on the host comes back.
static inline int random_move(random_walk *walk, int32_t tensor) {
    const tli_sim_tensor *t = &walk->sim.tensors[tensor];
    const tl_node_output *output = &walk->graph->outputs[tensor];
    tl_step_kind kind = TL_STEP_SPILL;
    if (t->state == TLI_LEAVING || t->state == TLI_COMING) kind = TL_STEP_WAIT;
    else if (t->state == TLI_PACKED) kind = TL_STEP_EXPAND;
    else if (t->on_host) kind = t->state == TLI_ABSENT ? TL_STEP_FETCH : TL_STEP_DROP_HOST;
    return random_try(walk, tli_step_of(kind, output->node, random_chance(walk->random, 80) ? output->output : TL_ALL_OUTPUTS));
}

static inline int random_run_node(random_walk *walk, int32_t id, int saves, int depth);

// Make a tensor readable, whatever its state.
static inline int random_restore(random_walk *walk, int32_t tensor, int depth) {
    const tl_node_output *output = &walk->graph->outputs[tensor];
    if (tli_sim_readable(&walk->sim, tensor)) return 1;
    switch ((tli_state)walk->sim.tensors[tensor].state) {
    case TLI_COMING: return random_try(walk, tli_step_of(TL_STEP_WAIT, output->node, output->output));
    case TLI_PACKED: return random_try(walk, tli_step_of(TL_STEP_EXPAND, output->node, output->output));
    case TLI_ABSENT:
        if (walk->sim.tensors[tensor].on_host && random_chance(walk->random, 80))
            return random_try(walk, tli_step_of(TL_STEP_FETCH, output->node, output->output)) &&
                   random_try(walk, tli_step_of(TL_STEP_WAIT, output->node, output->output));
        return random_run_node(walk, output->node, random_chance(walk->random, 30), depth - 1);
    case TLI_RESIDENT:
    case TLI_LEAVING: break;
    }
    return 1;
}

static inline int random_run_node(random_walk *walk, int32_t id, int saves, int depth) {
    const tl_node *node = &walk->graph->nodes[id];
    int32_t i;
    if (depth < 0) return 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (!random_restore(walk, walk->graph->inputs[i].tensor, depth)) return 0;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if ((walk->sim.tensors[i].state == TLI_COMING || walk->sim.tensors[i].state == TLI_PACKED) &&
            !random_restore(walk, i, depth)) return 0;
    if (saves && node->saved_bytes) return random_try(walk, tli_step_of(TL_STEP_FORWARD_SAVE, id, TL_ALL_OUTPUTS));
    if (random_chance(walk->random, 50) && random_try(walk, tli_step_of(TL_STEP_FORWARD_INPLACE, id, TL_ALL_OUTPUTS))) return 1;
    return random_try(walk, tli_step_of(TL_STEP_FORWARD, id, TL_ALL_OUTPUTS));
}

static inline int random_run_backward(random_walk *walk, int32_t id) {
    const tl_node *node = &walk->graph->nodes[id];
    int32_t i;
    if (!walk->sim.nodes[id].ran && !walk->sim.nodes[id].enters && !random_run_node(walk, id, 1, 8)) return 0;
    if (node->saved_bytes && !walk->sim.nodes[id].has_saved && !random_run_node(walk, id, 1, 8)) return 0;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (walk->graph->outputs[i].needed && !random_restore(walk, i, 8)) return 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (walk->graph->inputs[i].needed && !random_restore(walk, walk->graph->inputs[i].tensor, 8)) return 0;
    return random_try(walk, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
}

// Updates of states, each with a chance of so many percent.
static inline void random_updates(random_walk *walk, int percent) {
    int32_t id;
    for (id = 0; id < walk->graph->node_count && !walk->flags.inference; id++)
        if (walk->graph->nodes[id].state && walk->graph->nodes[id].has_grad && !walk->sim.nodes[id].done && random_chance(walk->random, percent))
            random_try(walk, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
}

// Forwards, backwards and whatever else is legal, until the end of a valid plan or the limit.
static inline void random_walk_steps(random_walk *walk) {
    const tl_graph *graph = walk->graph;
    uint8_t *results = (uint8_t *)calloc((size_t)graph->tensor_count, 1);
    int32_t ids[RANDOM_SLOTS] = { 0 }, i, drift = random_count(walk->random, 0, 60), tries = 0, ended = 0;
    while (walk->list.count < walk->limit && tries++ < 8 * walk->limit) {
        int32_t slot = walk->sim.slot_count > 1 ? random_count(walk->random, 0, walk->sim.slot_count - 1) : 0, id = ids[slot];
        tli_sim_choose_slot(&walk->sim, slot);
        random_updates(walk, 10);
        if (random_chance(walk->random, drift)) {
            if (random_chance(walk->random, 70)) random_try(walk, random_step(walk->random, graph, 0));
            else random_move(walk, random_count(walk->random, 0, graph->tensor_count - 1));
        } else if (id < graph->node_count) {
            if (graph->nodes[id].is_input || walk->sim.nodes[id].ran || random_run_node(walk, id, !walk->flags.inference, 8)) ids[slot]++;
        } else if (!walk->flags.inference && walk->sim.next_backward[slot] >= 0) {
            random_run_backward(walk, walk->flags.any_order && random_chance(walk->random, 60)
                                          ? random_count(walk->random, 0, graph->node_count - 1) : walk->sim.next_backward[slot]);
        } else {
            ended |= 1 << slot;
            if (ended == (1 << walk->sim.slot_count) - 1) break;
        }
    }
    random_updates(walk, 100);
    tli_mark_results(graph, walk->flags.inference, results);
    for (i = 0; i < graph->tensor_count * walk->sim.slot_count; i++) {
        tli_sim_choose_slot(&walk->sim, i / graph->tensor_count);
        if (results[i % graph->tensor_count]) random_restore(walk, i % graph->tensor_count, 8);
    }
    free(results);
}

static inline void random_mutate(tl_random *random, const tl_graph *graph, int32_t slot_count, tl_step *steps, int32_t *count) {
    int32_t at = *count ? random_count(random, 0, *count - 1) : 0, other = *count ? random_count(random, 0, *count - 1) : 0;
    tl_step step = random_step(random, graph, 1);
    if (slot_count > 1) step.slot = (uint16_t)random_count(random, 0, slot_count - 1 + random_chance(random, 3));
    switch (*count ? tl_next_random_below(random, 6) : 0) {
    case 0:  // insert
        memmove(steps + at + 1, steps + at, (size_t)(*count - at) * sizeof *steps);
        steps[at] = step;
        ++*count;
        break;
    case 1:  // delete
        memmove(steps + at, steps + at + 1, (size_t)(*count - at - 1) * sizeof *steps);
        --*count;
        break;
    case 2: steps[at] = step; break;
    case 3: step = steps[at]; steps[at] = steps[other]; steps[other] = step; break;
    case 4: steps[at].node = step.node; break;
    default: *count = at; break;  // cut off
    }
}

// Some tensors that are resident at the start, malloc's.
static inline void random_entry(tl_random *random, const tl_graph *graph, tl_plan *plan) {
    int32_t count = tli_count_slots(plan) * graph->tensor_count, percent = random_count(random, 5, 40), i;
    tl_entry *entry = (tl_entry *)malloc(((size_t)count + 1) * sizeof *entry), swap;
    for (i = 0; i < count; i++) {
        const tl_node_output *output = &graph->outputs[i % graph->tensor_count];
        tl_entry *next = &entry[plan->entry_count];
        int32_t at;
        if (graph->nodes[output->node].is_input || !random_chance(random, percent)) continue;
        next->node = output->node;
        next->output = output->output;
        next->slot = i / graph->tensor_count;
        at = random_count(random, 0, plan->entry_count++);
        swap = entry[at]; entry[at] = *next; *next = swap;
    }
    if (plan->entry_count) plan->entry = entry;
    else free(entry);
}

// Make an entry what it may not be, now and then.
static inline void random_mutate_entry(tl_random *random, const tl_graph *graph, tl_plan *plan) {
    tl_entry *entry = (tl_entry *)(uintptr_t)plan->entry;
    int32_t at = plan->entry_count ? random_count(random, 0, plan->entry_count - 1) : 0;
    if (!plan->entry_count || !random_chance(random, 20)) return;
    switch (tl_next_random_below(random, 5)) {
    case 0: entry[at].node = random_chance(random, 50) ? -1 : graph->node_count; break;
    case 1: entry[at].output = random_chance(random, 50) ? -1 : 4; break;
    case 2: entry[at].slot = random_chance(random, 50) ? -1 : plan->slot_count; break;
    case 3: entry[at].node = random_count(random, 0, graph->node_count - 1); entry[at].output = 0; break;
    default: entry[at] = entry[plan->entry_count - 1]; break;
    }
}

// A plan whose steps (and entry and offsets) are malloc's: release it with random_free_plan. About half are valid.
// slot_count: at most RANDOM_SLOTS; 0 = steps as those of plans without slots, and no entry.
static inline tl_result random_slot_plan(tl_env *env, tl_random *random, const tl_graph *graph, int32_t slot_count, tl_plan *plan) {
    int inference = random_chance(random, 30), source = random_count(random, 0, 9), mutations = 0, room = 8;
    uint8_t *keep = (uint8_t *)calloc((size_t)graph->tensor_count, 1);
    random_walk walk;
    tl_plan made;
    tl_result result = TL_OK;
    int32_t i;
    memset(plan, 0, sizeof *plan);
    memset(&made, 0, sizeof made);
    for (i = 0; i < graph->tensor_count; i++) keep[i] = (uint8_t)random_chance(random, 50);
    plan->inference = inference;
    plan->any_order = random_chance(random, 30);
    plan->slot_count = slot_count;
    if (slot_count > 0) source = 9;
    if (slot_count > 0 && random_chance(random, 50)) random_entry(random, graph, plan);
    if (source == 0) {
        result = tl_plan_keep_all(env, graph, inference, &made);
    } else if (source == 1 && !inference) {
        result = tl_plan_kept_set(env, graph, keep, &made);
    } else {
        memset(&walk, 0, sizeof walk);
        walk.env = env; walk.random = random; walk.graph = graph;
        walk.flags = *plan;
        walk.list = tli_steps_of(env);
        walk.limit = (10 + 12 * graph->node_count) * tli_count_slots(plan);
        result = tli_init_sim(env, &walk.sim, TLI_IN(SIMULATE_PLAN), graph, NULL, &walk.flags, NULL);
        if (!result) random_walk_steps(&walk);
        tli_free_sim(&walk.sim);
        if (!result) result = tli_take_steps(&walk.list, TLI_IN(PARSE_SCHEDULE), &made);
    }
    free(keep);
    if (result) return result;
    if (random_chance(random, 50)) mutations = random_count(random, 1, 3);
    plan->memory = malloc(((size_t)made.step_count + (size_t)room) * sizeof(tl_step));
    if (made.step_count) memcpy(plan->memory, made.steps, (size_t)made.step_count * sizeof(tl_step));
    plan->steps = (tl_step *)plan->memory;
    plan->step_count = made.step_count;
    for (i = 0; i < mutations; i++) random_mutate(random, graph, slot_count, (tl_step *)plan->memory, &plan->step_count);
    if (mutations) random_mutate_entry(random, graph, plan);
    tl_free_plan(env, &made);
    return TL_OK;
}

static inline tl_result random_plan(tl_env *env, tl_random *random, const tl_graph *graph, tl_plan *plan) {
    return random_slot_plan(env, random, graph, 0, plan);
}

// One allocation of the steps that are legal: the lifetimes that have its number.
typedef struct random_place { uint64_t bytes; int32_t first, end; } random_place;

// All of them, by number; NULL = no memory.
static inline random_place *random_places(tl_env *env, const tl_graph *graph, const tl_device *device, const tl_plan *plan,
                                          int32_t *count) {
    random_place *places = NULL;
    tl_plan flags = *plan;
    tli_ledger ledger;
    tli_sim sim;
    int32_t i;
    tl_result result = tli_init_ledger(env, graph, tli_count_slots(plan), &ledger);
    flags.offsets = NULL;
    flags.offset_count = 0;
    memset(&sim, 0, sizeof sim);
    sim.env = env;
    if (!result) result = tli_init_sim(env, &sim, TLI_IN(SIMULATE_PLAN), graph, device, &flags, &ledger);
    *count = 0;
    for (i = 0; i < plan->step_count && !result; i++) result = tli_sim_step(&sim, &plan->steps[i]);
    if (result != TL_ERROR_NO_MEMORY) places = (random_place *)calloc((size_t)ledger.count + 1, sizeof *places);
    for (i = 0; places && i < ledger.count; i++) {
        const tl_lifetime *life = &ledger.items[i];
        if (life->number < 0) continue;
        places[life->number].bytes = life->bytes;
        if (life->over < 0) places[life->number].first = life->first_step;
        places[life->number].end = life->end_step < 0 ? INT32_MAX : life->end_step;
        if (life->number >= *count) *count = life->number + 1;
    }
    tli_free_sim(&sim);
    tli_free_ledger(env, &ledger);
    return places;
}

// First fit, most of the time: offsets for every allocation of the steps that are legal.
static inline tl_result random_offsets(tl_env *env, tl_random *random, const tl_graph *graph, const tl_device *device, tl_plan *plan) {
    int broken = random_chance(random, 30), dense = random_chance(random, 50);
    uint64_t align = device->alignment_bytes ? device->alignment_bytes : 1;
    int32_t count, k, m;
    random_place *places = random_places(env, graph, device, plan, &count);
    uint64_t *offsets = (uint64_t *)calloc((size_t)count + 2, sizeof *offsets);
    if (!places || !offsets) return TL_ERROR_NO_MEMORY;
    for (k = 0; k < count; k++) {
        uint64_t at = 0;
        int moved = 1;
        while (moved) {  // the first place that is free of what lives when it begins
            moved = 0;
            for (m = 0; m < k; m++) {
                uint64_t to = offsets[m] + places[m].bytes;
                if (places[m].end <= places[k].first) continue;
                if (at < to && offsets[m] < at + places[k].bytes) { at = (to + align - 1) / align * align; moved = 1; }
            }
            if (!dense && !moved && random_chance(random, 10)) { at += align; moved = 1; }
        }
        offsets[k] = at;
    }
    free(places);
    if (broken && count) {
        k = random_count(random, 0, count - 1);
        offsets[k] = random_chance(random, 50) ? offsets[random_count(random, 0, count - 1)] : offsets[k] + 1;
        if (random_chance(random, 20)) count += random_count(random, -1, 1);
    }
    plan->offsets = offsets;
    plan->offset_count = count;
    return TL_OK;
}

static inline void random_free_plan(tl_env *env, tl_plan *plan) {
    (void)env;
    free(plan->memory);
    free((void *)(uintptr_t)plan->entry);
    free((void *)(uintptr_t)plan->offsets);
    memset(plan, 0, sizeof *plan);
}

// Put a plan with recomputations and host copies in the place of a random one, where one is found. It has no offsets.
static inline void random_plan_within(tl_env *env, tl_random *random, const tl_graph *graph, const tl_device *device, tl_plan *plan) {
    tl_remat_desc desc;
    tl_plan all, made;
    memset(&desc, 0, sizeof desc);
    if (tl_plan_keep_all(env, graph, 0, &all)) return;
    desc.graph = graph;
    desc.live = 1;
    desc.device = device;
    desc.budget_bytes = 1 + all.peak_bytes - (random_chance(random, 30) ? 0 : tl_next_random_below(random, all.peak_bytes / 2 + 1));
    desc.host_budget_bytes = random_chance(random, 50) ? UINT64_MAX : tl_next_random_below(random, all.peak_bytes + 1);
    desc.work_limit = 100000;
    tl_free_plan(env, &all);
    if (tl_plan_remat(env, &desc, &made, NULL)) return;
    random_free_plan(env, plan);
    *plan = made;
}

#endif
