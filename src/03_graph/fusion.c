#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// Fusion of elementwise chains in four passes: link each fusible node to the next one of its chain
// (tli_find_chains), cut every chain into the longest pieces that the rules of tl_plan_fusion allow
// (tli_cut_chains), sum up cost and scratch of each piece, and build the new graph. Inner tensors
// are those between two members of a fused node, outer tensors all others.

// -- chains --

#define TLI_FUSION_LIMIT 256    // members of a fused node
#define TLI_FUSION_BLOCK 65536  // bytes, where tl_fusion_desc.block_bytes is 0

typedef struct tli_fusion {
    tl_env  *env;
    const tl_graph *graph;
    const tl_fusion_desc *desc;
    uint64_t block_bytes;
    int32_t *next, *previous;  // [nodes] neighbours in the chain; -1 = none
    int32_t *chains;           // [nodes] first node of the chain; -1 = not fusible
    int32_t *heads;            // [nodes] first member of the fused node that ends here; -1 = ends elsewhere
    int32_t *counts;           // [nodes] number of members of the fused node that ends here
    int32_t *recomputed;           // [nodes] the first so many of them run again in backward
    int32_t *first_readers;    // [tensors + 1] index into readers
    int32_t *readers;          // [inputs] nodes that read a tensor, ascending
    int32_t *marks;            // [tensors] number of the last search that counted it
    int32_t *tensors;          // [tensors] index in the fused graph; -1 = removed
    uint8_t *needed;           // [tensors] 1 = some backward reads it
    tl_tensor *inputs;         // [inputs] inputs of the node being added
    uint64_t  *bytes;          // [tensors] bytes of its outputs
    tl_relation *relations;    // [inputs] how the rows of its inputs relate
    tl_stored *stored;         // [constants] its constants
    int32_t  searches;         // calls of tli_find_length so far
} tli_fusion;

static int tli_is_elementwise_part(const tl_fusion_desc *desc, const char *text, size_t length) {
    int32_t count = desc->ops ? desc->op_count : TL_ELEMENTWISE_COUNT, i;
    for (i = desc->ops ? 0 : 1; i < count; i++) {
        const char *op = desc->ops ? desc->ops[i] : tli_elementwise_names[i];
        if (tli_text_length(op) == length && TLI_MEMCMP(op, text, length) == 0) return 1;
    }
    return 0;
}

// Whether an op is in the list as a whole, or each of its parts between "+" is.
static int tli_is_elementwise_op(const tl_fusion_desc *desc, const char *op) {
    size_t length = tli_text_length(op), at = 0, end;
    if (tli_is_elementwise_part(desc, op, length)) return 1;
    while (at <= length) {
        for (end = at; end < length && op[end] != '+'; end++) {}
        if (!tli_is_elementwise_part(desc, op + at, end - at)) return 0;
        at = end + 1;
    }
    return 1;
}

static int tli_is_fusible(const tli_fusion *f, int32_t id) {
    const tl_graph *graph = f->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = graph->outputs[node->first_output].bytes;
    int32_t k;
    if ((f->desc->blocks_only && !node->takes_blocks) || node->dynamic || node->once) return 0;
    if (f->desc->apart && f->desc->apart[id]) return 0;
    if (node->is_input || node->output_count != 1 || node->input_count < 1 || node->param_bytes ||
        node->saved_bytes || !bytes || tli_reads_pieces(graph, node)) return 0;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        if (graph->outputs[graph->inputs[k].tensor].bytes != bytes ||
            graph->nodes[graph->outputs[graph->inputs[k].tensor].node].dynamic) return 0;
    return tli_is_elementwise_op(f->desc, tl_name_op(graph, id));
}

// Whether node `to` may follow node `from` in a chain.
static int tli_is_linked(const tli_fusion *f, int32_t from, int32_t to) {
    const tl_graph *graph = f->graph;
    const tl_node *a = &graph->nodes[from], *b = &graph->nodes[to];
    int32_t tensor = a->first_output, i;
    if (f->chains[from] < 0 || a->keep || a->has_grad != b->has_grad || a->fixed != b->fixed ||
        a->layer != b->layer || !tli_same_text(tl_name_unit(graph, from), tl_name_unit(graph, to))) return 0;
    for (i = f->first_readers[tensor]; i < f->first_readers[tensor + 1]; i++)
        if (f->readers[i] != to) return 0;
    return 1;
}

static void tli_find_readers(tli_fusion *f) {
    const tl_graph *graph = f->graph;
    int32_t i, k;
    for (i = 0; i < graph->input_count; i++) f->first_readers[graph->inputs[i].tensor + 1]++;
    for (i = 0; i < graph->tensor_count; i++) f->first_readers[i + 1] += f->first_readers[i];
    for (i = 0; i < graph->node_count; i++)
        for (k = 0; k < graph->nodes[i].input_count; k++) {
            int32_t tensor = graph->inputs[graph->nodes[i].first_input + k].tensor;
            f->readers[f->first_readers[tensor] + f->marks[tensor]++] = i;
            if (graph->inputs[graph->nodes[i].first_input + k].needed) f->needed[tensor] = 1;
        }
    for (i = 0; i < graph->tensor_count; i++) {
        f->marks[i] = 0;
        if (graph->outputs[i].needed) f->needed[i] = 1;
    }
}

// Link each fusible node to one it reads. Of several candidates it takes the last in the list,
// because then the fewest other nodes run between the two.
static void tli_find_chains(tli_fusion *f) {
    const tl_graph *graph = f->graph;
    int32_t id, k;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        f->next[id] = f->previous[id] = f->chains[id] = -1;
        f->heads[id] = id;
        f->counts[id] = 1;
        if (!tli_is_fusible(f, id)) continue;
        f->chains[id] = id;
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t from = graph->outputs[graph->inputs[k].tensor].node;
            if (from > f->previous[id] && tli_is_linked(f, from, id)) f->previous[id] = from;
        }
        if (f->previous[id] < 0) continue;
        f->next[f->previous[id]] = id;
        f->chains[id] = f->chains[f->previous[id]];
    }
}

// -- cuts of chains --

// Fusing moves the members down to the place of the last one. Returns the first reader of `tensor`
// below `id` that member `id` must not move past, because gradients of the tensor would then be
// added up in another order; node_count if there is none.
static int32_t tli_find_obstacle(const tli_fusion *f, int32_t id, int32_t tensor) {
    const tl_graph *graph = f->graph;
    int32_t i;
    if (f->desc->inference || !graph->nodes[id].has_grad || !tli_gets_gradient(graph, tensor))
        return graph->node_count;
    for (i = f->first_readers[tensor]; i < f->first_readers[tensor + 1]; i++) {
        int32_t reader = f->readers[i];
        if (reader > id && graph->nodes[reader].has_grad && f->chains[reader] != f->chains[id]) return reader;
    }
    return graph->node_count;
}

// Count an outer input that fusing keeps live between `id` and the next member although it was dead
// there: the tensor, if it is no result and neither a later node nor backward reads it; its
// gradient, if no node below `id` contributes to it.
static void tli_count_held(const tli_fusion *f, int32_t id, int32_t tensor, int32_t *values,
                           int32_t *gradients) {
    const tl_graph *graph = f->graph;
    const tl_node *from = &graph->nodes[graph->outputs[tensor].node];
    int32_t i = f->first_readers[tensor + 1];
    if (from->is_input) return;
    if (!from->keep && f->readers[i - 1] <= id && (f->desc->inference || !f->needed[tensor])) (*values)++;
    if (f->desc->inference || !from->has_grad || !graph->nodes[id].has_grad) return;
    while (!graph->nodes[f->readers[i - 1]].has_grad) i--;  // ends, because a member reads the tensor
    if (f->readers[i - 1] <= id) (*gradients)++;
}

// Whether fusing increases the live bytes while other nodes run between `id` and the next member.
// Unfused, one inner tensor is live there, and in backward one gradient of it. Fused, outer inputs
// of the members so far are live there instead, and may be no more than one of each.
static int tli_holds_more(const tli_fusion *f, int32_t head, int32_t id) {
    const tl_graph *graph = f->graph;
    int32_t values = 0, gradients = 0, at = head, k;
    if (f->next[id] == id + 1) return 0;
    for (;; at = f->next[at]) {
        const tl_node *node = &graph->nodes[at];
        for (k = node->first_input; k < node->first_input + node->input_count; k++)
            if (at == head || graph->outputs[graph->inputs[k].tensor].node != f->previous[at])
                tli_count_held(f, id, graph->inputs[k].tensor, &values, &gradients);
        if (at == id || values > 1 || gradients > 1) return values > 1 || gradients > 1;
    }
}

// The bytes of tensors that backward reads only because this member runs again in it. Graph inputs do
// not count: they are resident in any case.
static uint64_t tli_count_new_needs(tli_fusion *f, int32_t id, int is_head) {
    const tl_graph *graph = f->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = 0;
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor, from = graph->outputs[tensor].node;
        if ((!is_head && from == f->previous[id]) || graph->nodes[from].is_input) continue;
        if (f->needed[tensor] || f->marks[tensor] == f->searches) continue;
        f->marks[tensor] = f->searches;
        bytes += graph->outputs[tensor].bytes;
    }
    return bytes;
}

// The length of the longest fused node that may begin at `head`, and how many of its members run
// again in backward. `gained` counts bytes of inner tensors that backward no longer reads, `lost`
// those of outer tensors that it reads in addition.
static int32_t tli_find_length(tli_fusion *f, int32_t head, int32_t *recomputed) {
    const tl_graph *graph = f->graph;
    uint64_t gained = 0, lost = 0;
    int32_t best = 1, length, id = head, pending = head, obstacle = graph->node_count, again = 0, k;
    f->searches++;
    *recomputed = 0;
    for (length = 2; length <= TLI_FUSION_LIMIT && f->next[id] >= 0; length++) {
        const tl_node *node = &graph->nodes[id];
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t tensor = graph->inputs[k].tensor, reader;
            if (id != head && graph->outputs[tensor].node == f->previous[id]) continue;
            reader = tli_find_obstacle(f, id, tensor);
            if (reader < obstacle) obstacle = reader;
        }
        if (f->needed[node->first_output]) {  // backward reads it: computed again with all members above
            gained += graph->outputs[node->first_output].bytes;
            again = length - 1;
            for (; pending != f->next[id]; pending = f->next[pending])
                lost += tli_count_new_needs(f, pending, pending == head);
        }
        if (f->next[id] >= obstacle || tli_holds_more(f, head, id)) break;
        id = f->next[id];
        if (lost > gained && !f->desc->inference) continue;
        best = length;
        *recomputed = again;
    }
    return best;
}

static void tli_cut_chains(tli_fusion *f) {
    const tl_graph *graph = f->graph;
    int32_t id, at, last, i, length, recomputed;
    for (id = 0; id < graph->node_count; id++) {
        if (f->chains[id] != id) continue;
        for (at = id; at >= 0; at = f->next[last]) {
            length = tli_find_length(f, at, &recomputed);
            for (last = at, i = 1; i < length; i++) {
                f->heads[last] = -1;
                last = f->next[last];
            }
            f->heads[last] = at;
            f->counts[last] = length;
            f->recomputed[last] = recomputed;
        }
    }
}

// -- costs and scratch of a fused node --

// floor(bytes * 10^9 / rate); the remainder is rounded to about 30 binary digits. UINT64_MAX on
// overflow.
static uint64_t tli_find_traffic_ns(uint64_t bytes, uint64_t rate) {
    uint64_t whole = bytes / rate, rest = bytes % rate, ns;
    for (; rest > UINT64_MAX / UINT64_C(1000000000); rest >>= 1) rate >>= 1;
    if (!tli_mul_u64(whole, UINT64_C(1000000000), &ns)) return UINT64_MAX;
    return tli_add_u64(ns, rest * UINT64_C(1000000000) / rate, &ns) ? ns : UINT64_MAX;
}

static uint64_t tli_add_capped(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// Sums over the members of a fused node.
typedef struct tli_fused {
    uint64_t fwd_cost, bwd_cost, largest_fwd_cost, largest_bwd_cost;
    uint64_t fwork_bytes, bwork_bytes;   // the largest of one member, then with the blocks
    uint64_t fwd_traffic, bwd_traffic;   // bytes of outer tensors that are still read and written
    uint64_t fwd_saved, bwd_saved;       // bytes of inner tensors that are no longer written and read
} tli_fused;

// Add the bytes that member number `at` of `count` reads and writes, and those that fusing saves.
static void tli_add_member_traffic(const tli_fusion *f, int32_t id, int32_t at, int32_t count,
                                   int32_t recomputed,
                                   tli_fused *sum) {
    const tl_graph *graph = f->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = graph->outputs[node->first_output].bytes;
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++) {
        int32_t tensor = graph->inputs[k].tensor;
        if (at > 0 && graph->outputs[tensor].node == f->previous[id]) continue;
        sum->fwd_traffic = tli_add_capped(sum->fwd_traffic, bytes);
        if (at < recomputed || graph->inputs[k].needed)
            sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);
        if (tli_gets_gradient(graph, tensor)) sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);
    }
    if (at + 1 == count) {
        sum->fwd_traffic = tli_add_capped(sum->fwd_traffic, bytes);
        sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);  // its gradient
        if (graph->outputs[node->first_output].needed)
            sum->bwd_traffic = tli_add_capped(sum->bwd_traffic, bytes);
        return;
    }
    // Not written and read any more: the tensor, its gradient, and the tensor that is computed
    // again.
    sum->fwd_saved = tli_add_capped(sum->fwd_saved, tli_add_capped(bytes, bytes));
    sum->bwd_saved = tli_add_capped(sum->bwd_saved, tli_add_capped(bytes, bytes));
    if (at < recomputed) sum->bwd_saved = tli_add_capped(sum->bwd_saved, tli_add_capped(bytes, bytes));
    if (f->needed[node->first_output]) sum->bwd_saved = tli_add_capped(sum->bwd_saved, bytes);
}

// The sum of the members' costs less the time of the saved bytes, but at least the cost of the
// largest member and the time of the remaining traffic; never more than the sum.
static uint64_t tli_fuse_cost(uint64_t sum, uint64_t largest, uint64_t traffic, uint64_t saved, uint64_t rate) {
    uint64_t least = tli_larger_u64(largest, tli_find_traffic_ns(traffic, rate));
    uint64_t off = tli_find_traffic_ns(saved, rate), cost = sum > off ? sum - off : 0;
    cost = tli_larger_u64(cost, least);
    return cost < sum ? cost : sum;
}

// The scratch of a member and blocks beside it; what does not fit 64 bits is refused with the node.
static uint64_t tli_add_scratch(uint64_t bytes, uint64_t block, uint64_t count) {
    uint64_t sum;
    return tli_mul_u64(block, count, &sum) ? tli_add_capped(bytes, sum) : UINT64_MAX;
}

// What it costs to make each of `members` calls `times` times instead of once: (times - 1) x members x the cost
// of a call. UINT64_MAX on overflow.
static uint64_t tli_find_block_calls(const tli_fusion *f, uint64_t members, uint64_t times) {
    uint64_t cost = f->desc->call_cost, sum;
    if (!cost && f->desc->device) cost = f->desc->device->call_latency_ns;
    if (!tli_mul_u64(members, times - 1, &sum) || !tli_mul_u64(sum, cost, &sum)) return UINT64_MAX;
    return sum;
}

// Costs and scratch of the fused node that ends at `last`. No sum of the members' costs overflows:
// tl_check_graph has added every one.
static tli_fused tli_sum_members(const tli_fusion *f, int32_t last) {
    const tl_graph *graph = f->graph;
    int32_t count = f->counts[last], recomputed = f->recomputed[last], id = f->heads[last], at;
    uint64_t bytes = graph->outputs[graph->nodes[last].first_output].bytes;
    uint64_t block = bytes < f->block_bytes ? bytes : f->block_bytes, turns = count > 2 ? 2 : 1;
    uint64_t unit = tli_larger_u64(1, f->desc->alignment_bytes), times, calls;
    tli_fused sum;
    tli_zero(&sum, sizeof sum);
    if (f->desc->scratch_parts) {
        uint64_t blocks = f->desc->inference ? turns : turns + (uint64_t)recomputed;
        uint64_t part = bytes / f->desc->scratch_parts / blocks;
        part = part > 64 ? part - part % 64 : 64;
        if (part < block) block = part;
    }
    block = block > UINT64_MAX - unit ? UINT64_MAX : (block + unit - 1) / unit * unit;
    for (at = 0; at < count; at++, id = f->next[id]) {
        const tl_node *node = &graph->nodes[id];
        sum.fwd_cost += node->fwd_cost;
        sum.bwd_cost += node->bwd_cost + (at < recomputed ? node->fwd_cost : 0);
        sum.largest_fwd_cost = tli_larger_u64(sum.largest_fwd_cost, node->fwd_cost);
        sum.largest_bwd_cost = tli_larger_u64(sum.largest_bwd_cost, node->bwd_cost);
        sum.fwork_bytes = tli_larger_u64(sum.fwork_bytes, node->fwork_bytes);
        sum.bwork_bytes = tli_larger_u64(sum.bwork_bytes, node->bwork_bytes);
        if (at < recomputed) sum.bwork_bytes = tli_larger_u64(sum.bwork_bytes, node->fwork_bytes);
        tli_add_member_traffic(f, id, at, count, recomputed, &sum);
    }
    sum.fwork_bytes = tli_add_scratch(sum.fwork_bytes, block, turns);
    sum.bwork_bytes = tli_add_scratch(sum.bwork_bytes, block, turns + (uint64_t)recomputed);
    if (!graph->nodes[last].has_grad) sum.bwd_cost = sum.bwork_bytes = 0;
    if (f->desc->device && f->desc->device->bytes_per_second) {
        uint64_t rate = f->desc->device->bytes_per_second;
        sum.fwd_cost = tli_fuse_cost(sum.fwd_cost, sum.largest_fwd_cost, sum.fwd_traffic, sum.fwd_saved, rate);
        sum.bwd_cost = tli_fuse_cost(sum.bwd_cost, sum.largest_bwd_cost, sum.bwd_traffic, sum.bwd_saved, rate);
    }
    times = block < bytes ? (bytes - 1) / block + 1 : 1;
    calls = (uint64_t)count;
    sum.fwd_cost = tli_add_capped(sum.fwd_cost, tli_find_block_calls(f, calls, times));
    calls += (uint64_t)recomputed;
    if (graph->nodes[last].has_grad)
        sum.bwd_cost = tli_add_capped(sum.bwd_cost, tli_find_block_calls(f, calls, times));
    return sum;
}

// -- the fused graph --

// The input that a fused node may overwrite: that of its first member, unless the last member reads
// the tensor, too, while its result is written. -1 = none.
static int32_t tli_fuse_inplace(const tli_fusion *f, int32_t last) {
    const tl_graph *graph = f->graph;
    const tl_node *head = &graph->nodes[f->heads[last]], *end = &graph->nodes[last];
    int32_t tensor, k;
    if (head->inplace < 0) return -1;
    tensor = graph->inputs[head->first_input + head->inplace].tensor;
    for (k = end->first_input; k < end->first_input + end->input_count; k++)
        if (graph->inputs[k].tensor == tensor) return -1;
    return head->inplace;
}

// Whether a member takes its rows from the member before it one by one.
static int tli_passes_rows(const tli_fusion *f, int32_t id, const tl_node_rows *r) {
    const tl_node *node = &f->graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *from = &f->graph->outputs[f->graph->inputs[node->first_input + k].tensor];
        if (from->node == f->previous[id] &&
            f->graph->attributes->relations[r->first_relation + k].kind != TL_RELATION_SAME) return 0;
    }
    return 1;
}

// Describe the rows of the fused node that ends at `last`: those of all its members, in units of all, if they
// have the same.
static void tli_fuse_rows(const tli_fusion *f, int32_t last, tl_node_desc *desc) {
    const tl_graph *graph = f->graph;
    int32_t id = f->heads[last], at, k, count = 0;
    uint64_t a, b, rest;
    for (at = 0; at < f->counts[last] && desc->rows; at++, id = f->next[id]) {
        const tl_node *node = &graph->nodes[id];
        const tl_node_rows *r = tli_find_rows(graph, id);
        if (!r || r->rows != desc->rows || r->axis != desc->row_axis ||
            (at > 0 && !tli_passes_rows(f, id, r))) {
            tli_omit_rows(desc);
            return;
        }
        for (a = desc->row_unit, b = r->unit; b; rest = a % b, a = b, b = rest) {}  // Euclid's algorithm
        desc->row_unit = desc->row_unit / a * r->unit;      // divides rows as both do
        desc->ordered &= r->ordered;
        for (k = 0; k < node->input_count; k++)
            if (!at || graph->outputs[graph->inputs[node->first_input + k].tensor].node != f->previous[id])
                f->relations[count++] = graph->attributes->relations[r->first_relation + k];
    }
    if (desc->rows) desc->relations = count ? f->relations : NULL;
}

// Describe what the fused node that ends at `last` has of the attributes of its members.
static void tli_fuse_attributes(const tli_fusion *f, int32_t last, tl_node_desc *desc) {
    int32_t id = f->heads[last], at, k;
    tli_fuse_rows(f, last, desc);
    for (at = 0, desc->stored_count = 0; at < f->counts[last]; at++, id = f->next[id]) {
        const tl_stored *stored;
        int32_t count = tli_find_stored(f->graph, id, &stored);
        for (k = 0; k < count; k++) f->stored[desc->stored_count++] = stored[k];
    }
    desc->stored = f->stored;
}

// Add the node that ends at `last`, with the outer inputs of its members; then mark what backward
// reads.
static tl_result tli_add_fused(tli_fusion *f, tli_graph_rules *rules, tl_graph *graph, int32_t last) {
    const tl_graph *old = f->graph;
    const tl_node *end = &old->nodes[last];
    int32_t id = f->heads[last], count = f->counts[last], input_count = 0, takes_blocks = 1, origin = -1;
    int32_t input, at, k;
    tli_fused sum;
    tl_node_desc desc;
    tl_node_input *inputs;
    tl_result result;
    tli_describe_node(old, last, &desc);
    for (at = 0; at < count; at++, id = f->next[id]) {
        takes_blocks &= old->nodes[id].takes_blocks;
        if (origin < 0) origin = old->nodes[id].origin;
        for (k = old->nodes[id].first_input; k < old->nodes[id].first_input + old->nodes[id].input_count; k++) {
            const tl_node_output *from = &old->outputs[old->inputs[k].tensor];
            if (at > 0 && from->node == f->previous[id]) continue;
            f->inputs[input_count].node = graph->outputs[f->tensors[old->inputs[k].tensor]].node;
            f->inputs[input_count++].output = from->output;
        }
    }
    for (k = 0; k < end->output_count; k++) f->bytes[k] = old->outputs[end->first_output + k].bytes;
    desc.inputs = f->inputs; desc.input_count = input_count;
    desc.output_bytes = f->bytes;
    desc.takes_blocks = takes_blocks;
    desc.origin = tli_pass_origin(origin);
    if (count > 1) {
        desc.op = f->desc->op ? f->desc->op : "fused";
        desc.inplace = tli_fuse_inplace(f, last) + 1;
        tli_fuse_attributes(f, last, &desc);
        sum = tli_sum_members(f, last);
        desc.fwd_cost = sum.fwd_cost; desc.bwd_cost = sum.bwd_cost;
        desc.fwork_bytes = desc.swork_bytes = sum.fwork_bytes; desc.bwork_bytes = sum.bwork_bytes;
    }
    result = tli_add_node(rules, graph, &desc);
    if (result) return result;
    inputs = (tl_node_input *)graph->inputs;
    input = graph->nodes[graph->node_count - 1].first_input;
    for (at = 0, id = f->heads[last]; at < count; at++, id = f->next[id])
        for (k = old->nodes[id].first_input; k < old->nodes[id].first_input + old->nodes[id].input_count; k++) {
            if (at > 0 && old->outputs[old->inputs[k].tensor].node == f->previous[id]) continue;
            inputs[input++].needed = (uint8_t)(old->inputs[k].needed || at < f->recomputed[last]);
        }
    for (k = 0; k < end->output_count; k++) {
        int32_t tensor = graph->nodes[graph->node_count - 1].first_output + k;
        ((tl_node_output *)graph->outputs)[tensor].needed = old->outputs[end->first_output + k].needed;
        ((tl_node_output *)graph->outputs)[tensor].format = old->outputs[end->first_output + k].format;
        f->tensors[end->first_output + k] = tensor;
    }
    return TL_OK;
}

// Give a graph that was made of another its views. tensors: [of the other] those of the new one; -1 = none.
static tl_result tli_copy_views(tl_env *env, const tl_graph *from, const int32_t *tensors, tl_graph *to) {
    tl_result result = TL_OK;
    int32_t k;
    for (k = 0; k < from->view_count && !result; k++) {
        int32_t tensor = tensors[from->views[k].tensor];
        tl_tensor of;
        if (tensor < 0) continue;
        of.node = to->outputs[tensor].node;
        of.output = to->outputs[tensor].output;
        result = tl_add_view(env, to, tli_text_at(from, from->views[k].name), of, NULL);
    }
    return result;
}

static tl_result tli_build_fused(tli_fusion *f, tl_fusion_plan *plan, int32_t *nodes, int32_t *first_members,
                                 int32_t *members, int32_t *recomputed) {
    tli_graph_rules rules = tli_rules_of(f->env, TLI_IN(PLAN_FUSION));
    const tl_graph *old = f->graph;
    int32_t id, at, member, count = 0;
    tl_result result = TL_OK;
    plan->graph.batch = old->batch;
    for (id = 0; id < old->tensor_count; id++) f->tensors[id] = -1;
    for (id = 0; id < old->node_count && !result; id++) {
        if (f->heads[id] < 0) {
            plan->inner_bytes += old->outputs[old->nodes[id].first_output].bytes;
            continue;
        }
        first_members[plan->graph.node_count] = count;
        recomputed[plan->graph.node_count] = f->recomputed[id];
        plan->fused_count += f->counts[id] > 1;
        for (at = 0, member = f->heads[id]; at < f->counts[id]; at++, member = f->next[member]) {
            nodes[member] = plan->graph.node_count;
            members[count++] = member;
        }
        result = tli_add_fused(f, &rules, &plan->graph, id);
    }
    if (!result) first_members[plan->graph.node_count] = count;
    return result ? result : tli_copy_views(f->env, old, f->tensors, &plan->graph);
}

static tli_rule tli_check_fusion_desc(const tl_fusion_desc *desc) {
    int32_t i;
    if (desc->block_bytes % 64) return TLI_RULE(BLOCK_BYTES_MUST_BE_MULTIPLE_OF_64);
    if (desc->op && (!tli_is_name(desc->op) || tli_same_text(desc->op, "input")))
        return TLI_RULE(OP_MUST_NOT_BE_INPUT_AND_MUST_BE_1);
    if (desc->op_count < 0 || (desc->op_count && !desc->ops)) return TLI_RULE(OPS_MISSING_OR_NEGATIVE_COUNT);
    if (desc->inference & ~1) return TLI_RULE(INFERENCE_MUST_BE_0_OR_1);
    if (desc->blocks_only & ~1) return TLI_RULE(BLOCKS_ONLY_MUST_BE_0_OR_1);
    if (desc->alignment_bytes & (desc->alignment_bytes - 1))
        return TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER);
    for (i = 0; i < desc->op_count; i++)
        if (!desc->ops[i] || !tli_is_name(desc->ops[i]))
            return TLI_RULE(OPS_EACH_MUST_BE_1_TO_255_BYTES_OF_UTF);
    return TLI_NO_RULE;
}

// Allocate the arrays of a fusion; 0 if there is no memory. The arrays of int32_t share one block.
static int tli_open_fusion(tl_env *env, const tl_fusion_desc *desc, tli_fusion *f) {
    const tl_graph *graph = desc->graph;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t inputs = (uint64_t)graph->input_count;
    tli_zero(f, sizeof *f);
    f->env = env;
    f->graph = graph;
    f->desc = desc;
    f->block_bytes = tli_or_default(desc->block_bytes, TLI_FUSION_BLOCK);
    f->next = (int32_t *)tli_alloc_array(env, 6 * nodes + 3 * tensors + 1 + inputs, sizeof *f->next);
    f->bytes = (uint64_t *)tli_alloc_array(env, tensors, sizeof *f->bytes);
    f->inputs = (tl_tensor *)tli_alloc_array(env, inputs, sizeof *f->inputs);
    f->needed = (uint8_t *)tli_alloc_array(env, tensors, 1);
    if (!f->next || !f->bytes || !f->inputs || !f->needed) return 0;
    if (graph->attributes) {
        f->relations = (tl_relation *)tli_alloc_array(env, (uint64_t)graph->attributes->relation_count + 1,
                                                      sizeof *f->relations);
        f->stored = (tl_stored *)tli_alloc_array(env, (uint64_t)graph->attributes->stored_count + 1,
                                                 sizeof *f->stored);
        if (!f->relations || !f->stored) return 0;
    }
    f->previous = f->next + nodes;
    f->chains = f->previous + nodes;
    f->heads = f->chains + nodes;
    f->counts = f->heads + nodes;
    f->recomputed = f->counts + nodes;
    f->first_readers = f->recomputed + nodes;
    f->marks = f->first_readers + tensors + 1;
    f->tensors = f->marks + tensors;
    f->readers = f->tensors + tensors;
    return 1;
}

TLI_IMPL tl_result tl_plan_fusion(tl_env *env, const tl_fusion_desc *desc, tl_fusion_plan *fusion) {
    const tli_function function = TLI_IN(PLAN_FUSION);
    tli_rule rule;
    tli_fusion f;
    tl_fusion_plan plan;
    uint64_t nodes;
    int32_t *numbers = NULL;
    tl_result result;
    TL_ASSERT(desc && desc->graph && fusion);
    tli_zero(fusion, sizeof *fusion);
    tli_zero(&plan, sizeof plan);
    rule = tli_check_fusion_desc(desc);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (result) return result;
    nodes = (uint64_t)desc->graph->node_count;
    if (tli_open_fusion(env, desc, &f))
        numbers = (int32_t *)tli_alloc_array(env, 4 * nodes + 1, sizeof *numbers);
    if (numbers) {
        tli_find_readers(&f);
        tli_find_chains(&f);
        tli_cut_chains(&f);
        plan.block_bytes = f.block_bytes;
        plan.inference = desc->inference;
        plan.memory = numbers;
        plan.nodes = numbers;
        plan.members = numbers + nodes;
        plan.recompute_counts = numbers + 2 * nodes;
        plan.first_members = numbers + 3 * nodes;
        result = tli_build_fused(&f, &plan, numbers, numbers + 3 * nodes, numbers + nodes, numbers + 2 * nodes);
    } else {
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_TO_FIND_CHAINS_IN));
    }
    tli_release(env, f.next);
    tli_release(env, f.bytes);
    tli_release(env, f.inputs);
    tli_release(env, f.needed);
    tli_release(env, f.relations);
    tli_release(env, f.stored);
    if (result) tl_free_fusion_plan(env, &plan);
    *fusion = plan;
    return result;
}

TLI_IMPL void tl_free_fusion_plan(tl_env *env, tl_fusion_plan *fusion) {
    if (!fusion) return;
    tl_free_graph(env, &fusion->graph);
    tli_release(env, fusion->memory);
    tli_zero(fusion, sizeof *fusion);
}

// -- what a fusion costs, and checks of it --

#ifndef TL_NO_PRECISION
static uint64_t tli_sum_call_costs(const tl_node *node, int inference) {
    return node->fwd_cost + (inference ? 0 : node->bwd_cost);
}

// Whether fusing a chain costs no more than its members do: backwards may have to run forwards again.
static int tli_pays_fused(const tl_graph *graph, const tl_fusion_plan *fusion, int32_t id, int inference) {
    uint64_t sum = 0;
    int32_t at;
    for (at = fusion->first_members[id]; at < fusion->first_members[id + 1]; at++)
        sum += tli_sum_call_costs(&graph->nodes[fusion->members[at]], inference);
    return tli_sum_call_costs(&fusion->graph.nodes[id], inference) <= sum;
}

// Set or clear the marks of the members of a fused node.
static void tli_mark_apart(uint8_t *apart, const tl_fusion_plan *all, int32_t id, int is_apart) {
    int32_t at;
    for (at = all->first_members[id]; at < all->first_members[id + 1]; at++)
        apart[all->members[at]] = (uint8_t)is_apart;
}
#endif

// Whether the outer inputs of member number `at` are what fused node `id` reads from its input *place on, and
// it reads the member before it, unless it is the first. *place moves behind these inputs.
static int tli_reads_as_fused(const tl_graph *graph, const tl_fusion_plan *fusion, int32_t id, int32_t at,
                              int32_t *place) {
    const int32_t *members = fusion->members + fusion->first_members[id];
    const tl_node *member = &graph->nodes[members[at]], *node = &fusion->graph.nodes[id];
    int32_t i, inner = 0;
    for (i = 0; i < member->input_count; i++) {
        const tl_node_output *from = &graph->outputs[graph->inputs[member->first_input + i].tensor], *as;
        int32_t fused = fusion->nodes[from->node];
        if (at > 0 && from->node == members[at - 1]) { inner++; continue; }
        if (*place >= node->input_count) return 0;
        as = &fusion->graph.outputs[fusion->graph.inputs[node->first_input + (*place)++].tensor];
        if (as->node != fused || as->output != from->output ||
            fusion->members[fusion->first_members[fused + 1] - 1] != from->node) return 0;
    }
    return at == 0 || inner > 0;
}

// Whether a fused node computes its members.
static int tli_computes_members(const tl_graph *graph, const tl_fusion_plan *fusion, int32_t id) {
    const tl_node *node = &fusion->graph.nodes[id], *end;
    int32_t from = fusion->first_members[id], count = fusion->first_members[id + 1] - from, at, k, place = 0;
    if (count < 1 || fusion->recompute_counts[id] < 0 || fusion->recompute_counts[id] >= count) return 0;
    for (at = 0; at < count; at++) {
        int32_t member = fusion->members[from + at];
        if (member < 0 || member >= graph->node_count || fusion->nodes[member] != id ||
            graph->nodes[member].has_grad != node->has_grad ||
            (count > 1 && (graph->nodes[member].output_count != 1 || graph->nodes[member].saved_bytes)) ||
            !tli_reads_as_fused(graph, fusion, id, at, &place)) return 0;
    }
    end = &graph->nodes[fusion->members[from + count - 1]];
    if (place != node->input_count || end->output_count != node->output_count ||
        end->is_input != node->is_input) return 0;
    for (k = 0; k < end->output_count; k++)
        if (graph->outputs[end->first_output + k].bytes !=
            fusion->graph.outputs[node->first_output + k].bytes) return 0;
    return 1;
}

static int tli_is_fusion_of(const tl_graph *graph, const tl_fusion_plan *fusion) {
    int32_t id, count = fusion->graph.node_count;
    if (!fusion->memory || count > graph->node_count || fusion->first_members[0] ||
        fusion->first_members[count] != graph->node_count) return 0;
    for (id = 0; id < graph->node_count; id++)
        if (fusion->nodes[id] < 0 || fusion->nodes[id] >= count) return 0;
    for (id = 0; id < count; id++)
        if (!tli_computes_members(graph, fusion, id)) return 0;
    return 1;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

