// Every field of a graph and of a plan as numbers: what a table and the original must agree in. Needs declarations only.
#ifndef TESTS_TABLE_DUMP_H
#define TESTS_TABLE_DUMP_H

#include <stdio.h>

static void dump_numbers(FILE *file, const uint64_t *numbers, int count) {
    int i;
    for (i = 0; i < count; i++) fprintf(file, " %08lx%08lx", (unsigned long)(numbers[i] >> 32), (unsigned long)(numbers[i] & 0xffffffffu));
    fprintf(file, "\n");
}

// A step and an offset of a plan, narrow or not, as the header says how they are written.
static tl_step dump_step_of(const tl_plan *plan, int32_t i) {
    const uint16_t *words;
    tl_step step;
    if (plan->steps) return plan->steps[i];
    words = plan->narrow->steps + i * plan->narrow->step_words;
    step.kind = (uint8_t)(words[0] % 16);
    step.codec = (uint8_t)(words[0] / 16 % 16);
    step.output = words[0] / 256 - 1;
    step.node = words[1];
    step.slot = plan->narrow->step_words == 3 ? words[2] : (uint16_t)0;
    step.begins = step.kind <= TL_STEP_BACKWARD ? step.codec : 0;
    if (step.begins) step.codec = 0;
    return step;
}

static uint64_t dump_offset_of(const tl_plan *plan, const uint64_t *offsets, const void *narrow, int32_t i) {
    if (offsets) return offsets[i];
    return (plan->narrow->offset_bytes == 2 ? ((const uint16_t *)narrow)[i] : ((const uint32_t *)narrow)[i]) * plan->narrow->unit_bytes;
}

static void dump_plan(FILE *file, const tl_plan *plan) {
    uint64_t amounts[10], offset;
    int32_t i;
    fprintf(file, "plan %ld %ld %ld %ld %ld %ld %ld %ld", (long)plan->step_count, (long)plan->repeat_count, (long)plan->offset_count,
            (long)plan->host_offset_count, (long)plan->inference, (long)plan->any_order, (long)plan->slot_count, (long)plan->entry_count);
    amounts[0] = plan->peak_bytes; amounts[1] = plan->arena_bytes; amounts[2] = plan->host_peak_bytes;
    amounts[3] = plan->base_bytes; amounts[4] = plan->cost; amounts[5] = plan->base_cost; amounts[6] = plan->bound_cost;
    amounts[7] = plan->alignment_bytes; amounts[8] = plan->host_arena_bytes;
    dump_numbers(file, amounts, 9);
    for (i = 0; i < plan->step_count; i++) {
        const tl_step s = dump_step_of(plan, i);
        fprintf(file, "step %d %d %d %ld %ld %ld\n", s.kind, s.codec, s.slot, (long)s.node, (long)s.output, (long)s.begins);
    }
    for (i = 0; i < plan->entry_count; i++)
        fprintf(file, "entry %ld %ld %ld\n", (long)plan->entry[i].node, (long)plan->entry[i].output, (long)plan->entry[i].slot);
    for (i = 0; i < plan->offset_count; i++) {
        offset = dump_offset_of(plan, plan->offsets, plan->narrow ? plan->narrow->offsets : NULL, i);
        dump_numbers(file, &offset, 1);
    }
    for (i = 0; i < plan->host_offset_count; i++) {
        offset = dump_offset_of(plan, plan->host_offsets, plan->narrow ? plan->narrow->host_offsets : NULL, i);
        dump_numbers(file, &offset, 1);
    }
}

static void dump_graph(FILE *file, const tl_graph *graph) {
    uint64_t amounts[8];
    int32_t i;
    uint32_t k;
    fprintf(file, "graph %ld %ld %ld %ld %lu\n", (long)graph->node_count, (long)graph->input_count, (long)graph->tensor_count,
            (long)graph->view_count, (unsigned long)graph->text_bytes);
    dump_numbers(file, &graph->batch, 1);
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *n = &graph->nodes[i];
        fprintf(file, "node %lu %lu %lu %ld %ld %ld %ld %ld %ld %d %d %d %d %d %d %d %ld", (unsigned long)n->name, (unsigned long)n->op,
                (unsigned long)n->unit, (long)n->first_input, (long)n->input_count, (long)n->first_output, (long)n->output_count,
                (long)n->inplace, (long)n->layer, n->is_input, n->has_grad, n->keep, n->fixed,
                n->takes_blocks, n->dynamic, n->once, (long)n->origin);
        amounts[0] = n->fwd_cost; amounts[1] = n->bwd_cost; amounts[2] = n->saved_bytes;
        amounts[3] = n->fwork_bytes; amounts[4] = n->bwork_bytes; amounts[5] = n->param_bytes;
        amounts[6] = n->swork_bytes;
        dump_numbers(file, amounts, 7);
    }
    for (i = 0; i < graph->input_count; i++) fprintf(file, "input %ld %d\n", (long)graph->inputs[i].tensor, graph->inputs[i].needed);
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *o = &graph->outputs[i];
        fprintf(file, "output %ld %ld %d", (long)o->node, (long)o->output, o->needed);
        dump_numbers(file, &o->bytes, 1);
    }
    for (i = 0; i < graph->view_count; i++) fprintf(file, "view %lu %ld\n", (unsigned long)graph->views[i].name, (long)graph->views[i].tensor);
    for (k = 0; k < graph->text_bytes; k++) fprintf(file, "%d%s", graph->text[k] & 255, graph->text[k] ? " " : "\n");
}

// A table without names is dumped without its graph.
static void dump_tables(FILE *file, const tl_graph *graph, const tl_plan *plan, int has_names) {
    if (has_names) dump_graph(file, graph);
    dump_plan(file, plan);
}

#endif
