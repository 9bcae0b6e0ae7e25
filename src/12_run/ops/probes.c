#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

#ifndef TL_NO_PLANNERS
// -- rehearsal: probes of one call --
//
// What a kernel reads shows in what it makes: a call is made again and again on copies of its operands, each
// time with one change that must not matter, or that must. Who reads what is not declared is known by
// name then.
//
//     before  |guard| input 0 |guard| output 0 |guard| scratch |guard|   contents before the call
//     work    the same, with one change -> kernel
//     after   what the plain call, without a change, made of `before`: a change has an effect where `work`
//             differs from it
//
// Changes are chosen so that wrong kernels show, and do not crash where that can be helped: numbers may be used
// as indices, so contents that may be such are first rotated by 4 bytes (by one, if their bytes are no multiple
// of 4), and filled with zeroes, the integer 1 or 1.5f only if that shows nothing. What is undefined is filled
// with the integer 1 and with signalling NaN.
//
// The guard behind an operand is as long as the largest operand of the call, within limits, and the one before
// it has 4096 bytes, so what is written beside an operand destroys nothing else. What is not declared has an
// address between guards, too: scratch and saved bytes of 0 bytes, and one input, one output and one gradient
// of each behind those that the node has.
//
// Running statistics are changed by a plain call, as the state of the caller is, and found as that left them by
// one that stands for a forward that runs again. Kernels find them at one address in all calls of the pass, so
// whoever keeps it and writes there in the call of another node is named.

enum { TLI_PROBE_NOTHING = -1, TLI_PROBE_UNDEFINED = -2, TLI_PROBE_GUARDS = -3 };  // in the place of an operand
enum { TLI_PROBE_GUARD = 4096, TLI_PROBE_ROOM = 262144 };  // bytes before an operand, and the least behind it;
                                                           // most bytes behind it
enum { TLI_DECLARED_ALL = -1 };

// A rehearsal that is under way.
typedef struct tli_rehearsing {
    tl_env       *env;
    tl_run       *asked;         // the run that is rehearsed
    tl_rehearsal *out;
    int32_t       finding_capacity;
    tl_backend    backend;       // of the passes: in memory of the env, or that of the run
    int32_t       owns_backend;
    char         *state;         // five images of all variables: as the caller left them; after pass 1; as load
                                 // left them; before and after the plain call of a probe
    uint8_t      *is_still;      // [pieces of all variables] 1 = of no node, and the plain call leaves it alone
    char         *inputs;        // of the graph, as load left them; all passes begin with them
    char         *statistics;    // two images of all: as kernels find them in probes; as the pass has them
    int32_t      *readers;       // [tensor_count] of statistics: 1 + the first node that may run again and
                                 // makes its outputs from them; 0 = none
    int32_t       is_loaded;     // 1 = inputs and the third image of the state are there
    uint8_t      *is_written;    // [2 * tensor_count] 1 = load wrote it: in the run that load was given, then
                                 // in the one that is rehearsed
    uint64_t     *made;          // [tensor_count + node_count + input_count] hashes of outputs, of saved bytes,
                                 // of input gradients after each backward, as they were made first
    uint64_t     *ends;          // [tensor_count] hashes of the results after pass 1
    uint8_t      *is_made;       // [tensor_count + node_count + input_count] 1 = its hash is in `made`
    uint64_t     *part_places;   // [tensor_count + 1] of tensors that a node reads a part of, in `parts`
    uint8_t      *parts;         // a byte for each word of these: who has added to its gradient
    uint64_t     *times, *calls; // [2 * node_count * pass_count] of each pass: ns of a node's forwards, of its
                                 // backward, and how many calls these were
} tli_rehearsing;

static int tli_is_advice(tl_finding_kind kind) {
    return kind == TL_FINDING_NEEDS_UNUSED || kind == TL_FINDING_SCRATCH_UNUSED ||
           kind == TL_FINDING_INPUT_UNUSED || kind == TL_FINDING_SAVED_UNUSED ||
           kind == TL_FINDING_PARAM_BYTES_DIFFER || kind == TL_FINDING_GRADIENT_UNKNOWN ||
           kind == TL_FINDING_LOAD_MISSING || kind == TL_FINDING_LOAD_OTHER_RUN ||
           kind == TL_FINDING_LOAD_CHANGES || kind == TL_FINDING_NO_CLOCK;
}

static void tli_copy_finding_name(const tl_graph *graph, tl_finding *finding) {
    tli_writer w = tli_writer_of(finding->name, sizeof finding->name);
    if (finding->node >= 0) tli_put(&w, tl_name_node(graph, finding->node));
    tli_finish(&w);
}

// Note a finding, unless the same is there. Without memory for it lost_count grows.
static void tli_add_finding(tli_rehearsing *r, const tl_finding *finding) {
    tl_rehearsal *out = r->out;
    void *array = out->findings;
    int32_t i;
    for (i = 0; i < out->finding_count; i++) {
        const tl_finding *f = &out->findings[i];
        if (f->node == finding->node && f->kind == finding->kind && f->operand == finding->operand &&
            f->index == finding->index && (f->step == TL_STEP_BACKWARD) == (finding->step == TL_STEP_BACKWARD))
            return;
    }
    if (!tli_grow(r->env, &array, &r->finding_capacity, out->finding_count, (int64_t)out->finding_count + 1,
                  sizeof *out->findings)) {
        out->lost_count++;
        return;
    }
    out->findings = (tl_finding *)array;
    out->findings[out->finding_count] = *finding;
    out->findings[out->finding_count].is_advice = tli_is_advice(finding->kind);
    tli_copy_finding_name(tli_caller_graph(r->asked), &out->findings[out->finding_count]);
    out->error_count += !tli_is_advice(finding->kind);
    out->finding_count++;
}

static tl_result tli_fail_rehearsed_kernel(tli_rehearsing *r, const tl_kernel_call *call, tl_result code) {
    tli_rule rule = call->kind == TL_STEP_BACKWARD ? TLI_RULE(BACKWARD_OF_NODE_KERNEL_RETURNED)
                                                   : TLI_RULE(FORWARD_OF_NODE_KERNEL_RETURNED);
    tli_sentence s = tli_begin_error(r->env, TL_ERROR_KERNEL, TLI_IN(REHEARSE_RUN), rule, (uint64_t)call->node,
                                     (uint64_t)code);
    tli_put_text(&s, tl_name_node(call->graph, call->node));
    tli_put_text(&s, tl_name_result(code));
    return tli_end_error(r->env, &s, TL_ERROR_KERNEL);
}

static int tli_same_bytes(const void *a, const void *b, uint64_t bytes) {
    return !bytes || TLI_MEMCMP(a, b, (size_t)bytes) == 0;
}

typedef enum tli_fill {
    TLI_FILL_NOT, TLI_FILL_ROTATED, TLI_FILL_ZEROES, TLI_FILL_ONE, TLI_FILL_SIGNALLING, TLI_FILL_HALVES
} tli_fill;

typedef enum tli_shadow_access {
    TLI_SHADOW_NONE,       // not part of the call
    TLI_SHADOW_READ,
    TLI_SHADOW_WRITE,      // undefined before
    TLI_SHADOW_ADD,
    TLI_SHADOW_SCRATCH,
    TLI_SHADOW_HIDDEN      // what `needs` does not name, with its true contents
} tli_shadow_access;

// One operand in the images.
typedef struct tli_shadow {
    uint64_t at, bytes;
    uint64_t end;          // of the guard behind it
    tl_operand_kind kind;
    int32_t index;
    int32_t same;          // the operand whose bytes it has: itself, or that of the same gradient before it
    int32_t missing;       // 1 = behind those that the node has
    tli_shadow_access access;
} tli_shadow;

typedef enum tli_guard_side { TLI_GUARD_BOTH, TLI_GUARD_BEFORE, TLI_GUARD_BEHIND } tli_guard_side;

// What differs from the plain call.
typedef struct tli_change {
    int32_t  shadow;       // that is filled; TLI_PROBE_NOTHING, or all that is undefined, or the guards
    tli_fill fill;
    int32_t  again;        // 1 = the node has run before in this pass: state and statistics are those after it
    int32_t  statistic;    // with again: i + 1 = of the statistics those of operand i alone; 0 = all
    int32_t  ready;        // 1 = outputs_ready
    int32_t  inplace;      // 1 = output 0 stands where its input stands
    int32_t  declared;     // i + 1 = operand i has 0 bytes, as `needs` says; TLI_DECLARED_ALL
    int32_t  guard;        // with TLI_PROBE_GUARDS: i + 1 = those of operand i alone
    tli_guard_side side;         // of those: all, or one
    int32_t  gradients;    // 1 = the state's gradients are filled as well
} tli_change;

typedef struct tli_probe {
    tl_run       *run;             // of the keep-all pass
    tli_rehearsing *r;
    const tl_run_step *step;
    const tl_node *node;
    tl_kernel_call call;
    tl_operand   *operands;        // [count]
    tli_shadow   *shadows;         // [count] inputs, outputs, gradients of both, saved, scratch
    int32_t       count;
    int32_t       is_current;      // 1 = the variables are as in state_before
    int32_t       plain;           // 1 = calls are FORWARD in the place of FORWARD_SAVE
    uint64_t      rows;            // 0 = ranges are of elements, else of so many rows of a state
    uint64_t      room;            // bytes of a guard behind an operand
    uint64_t      image_bytes;
    char         *memory, *before, *work, *after;
    char         *state_before, *state_after;   // images of all variables, before and after the plain call: up
                                   // to date for those that the node uses
} tli_probe;

// -- rehearsal: the state that a node uses --

static int tli_uses_variable(const tl_variable *variable, int32_t node) {
    return variable->node == node || variable->node < 0;
}

typedef enum tli_variable_move {
    TLI_VARIABLES_TAKE, TLI_VARIABLES_PUT, TLI_VARIABLES_COMPARE
} tli_variable_move;

#define TLI_PROBE_PIECE 65536    // bytes of a range that are put back and compared together

// A range among all: its place in images, and the number of its first piece.
typedef struct tli_variable_place {
    const tl_variable *variable;
    int32_t            index;
    uint64_t           at, piece;
} tli_variable_place;

static uint64_t tli_count_pieces(const tl_variable *variable) {
    return variable->bytes / TLI_PROBE_PIECE + (variable->bytes % TLI_PROBE_PIECE != 0);
}

// The next range; one that begins with variable NULL gives the first. Returns 0 behind the last.
static int tli_next_variable(const tl_run_desc *desc, tli_variable_place *place) {
    if (!place->variable) {
        place->index = -1;
        place->at = place->piece = 0;
    } else {
        place->at += place->variable->bytes;
        place->piece += tli_count_pieces(place->variable);
    }
    if (++place->index >= desc->variable_count) return 0;
    place->variable = &desc->variables[place->index];
    return 1;
}

// Copy a range to or from images, or compare; is_still: pieces that are left out, NULL = none. Returns whether
// it differs.
static int tli_move_variable(const tli_variable_place *place, char *images, const uint8_t *is_still,
                             tli_variable_move move) {
    const tl_variable *variable = place->variable;
    uint64_t at, bytes, piece = place->piece;
    for (at = 0; at < variable->bytes; at += bytes, piece++) {
        char *host = (char *)variable->host + at, *image = images + place->at + at;
        bytes = variable->bytes - at < TLI_PROBE_PIECE ? variable->bytes - at : TLI_PROBE_PIECE;
        if (is_still && is_still[piece]) continue;
        if (move == TLI_VARIABLES_TAKE) tli_copy(image, host, (size_t)bytes);
        else if (move == TLI_VARIABLES_PUT) tli_copy(host, image, (size_t)bytes);
        else if (!tli_same_bytes(host, image, bytes)) return 1;
    }
    return 0;
}

// The same with all ranges. Returns the first that differs, -1 = none does.
static int32_t tli_move_variables(const tl_run_desc *desc, char *images, tli_variable_move move) {
    tli_variable_place place;
    place.variable = NULL;
    while (tli_next_variable(desc, &place))
        if (tli_move_variable(&place, images, NULL, move)) return place.index;
    return -1;
}

static uint64_t tli_count_variables(const tl_run_desc *desc, uint64_t *pieces) {
    tli_variable_place place;
    place.variable = NULL;
    while (tli_next_variable(desc, &place)) {}
    if (pieces) *pieces = place.piece;
    return place.at;
}

// The image before the plain call of a probe. Between the calls that are probed it holds the ranges of no node
// as they are: these may be large, and most calls leave most of them alone.
static char *tli_probed_state(const tli_rehearsing *r) {
    return r->state + 3 * tli_count_variables(&r->asked->desc, NULL);
}

static void tli_take_shared(const tli_rehearsing *r) {
    tli_variable_place place;
    place.variable = NULL;
    while (tli_next_variable(&r->asked->desc, &place))
        if (place.variable->node < 0)
            (void)tli_move_variable(&place, tli_probed_state(r), NULL, TLI_VARIABLES_TAKE);
}

// The next range that the kernels of the node may use.
static int tli_next_probed(const tli_probe *p, tli_variable_place *place) {
    while (tli_next_variable(&p->run->desc, place))
        if (tli_uses_variable(place->variable, p->step->call.node)) return 1;
    return 0;
}

// As tli_move_variables, with these, but for what is still.
static int32_t tli_move_probed(const tli_probe *p, char *images, tli_variable_move move) {
    tli_variable_place place;
    place.variable = NULL;
    while (tli_next_probed(p, &place))
        if (tli_move_variable(&place, images, p->r->is_still, move)) return place.index;
    return -1;
}

static int tli_has_gradient_variable(const tl_run_desc *desc, int32_t node) {
    int32_t i;
    for (i = 0; i < desc->variable_count; i++)
        if (tli_uses_variable(&desc->variables[i], node) &&
            desc->variables[i].kind == TL_VARIABLE_GRADIENT) return 1;
    return 0;
}

// -- rehearsal: running statistics --
//
//     as kernels find them   |guard| of tensor 3 |guard|guard| of tensor 9 |guard|
//     as the pass has them   |guard| of tensor 3 |guard|guard| of tensor 9 |guard|

// Where a tensor's place begins in an image; the bytes of the image, for tensor_count.
static uint64_t tli_statistics_before(const tl_graph *graph, int32_t tensor) {
    uint64_t bytes = 0;
    int32_t i;
    for (i = 0; i < tensor; i++)
        if (tli_is_statistic(graph, i))
            bytes += ((graph->outputs[i].bytes + 63) & ~(uint64_t)63) + 2 * TLI_PROBE_GUARD;
    return bytes;
}

// Where kernels find statistics that are an operand.
static char *tli_find_running(const tli_probe *p, const tli_shadow *shadow) {
    const tl_graph *graph = p->run->graph;
    int32_t tensor = graph->inputs[p->node->first_input + shadow->index].tensor;
    return p->r->statistics + tli_statistics_before(graph, tensor) + TLI_PROBE_GUARD;
}

// Fill both images from the pass, where the host sees it.
static tl_result tli_take_statistics(tli_rehearsing *r, const tl_run *run) {
    const tl_graph *graph = run->graph;
    uint64_t all = tli_statistics_before(graph, graph->tensor_count);
    char *to;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < graph->tensor_count && run->limits.host_visible && !result; i++) {
        const tli_buffer *buffer = &run->tensors[i];
        void *host = NULL;
        if (!tli_is_statistic(graph, i) || !buffer->device.range.bytes) continue;
        to = r->statistics + tli_statistics_before(graph, i) + TLI_PROBE_GUARD;
        result = (run->backend.map)(run->backend.self, buffer->device.range, TL_MAP_READ, &host);
        if (result) return result;
        tli_copy(to, host, (size_t)graph->outputs[i].bytes);
        tli_copy(to + all, host, (size_t)graph->outputs[i].bytes);
        result = (run->backend.unmap)(run->backend.self, buffer->device.range, TL_MAP_READ, host);
    }
    return result;
}

// -- rehearsal: images --

// Each copy doubles what is filled.
static void tli_fill_words(char *at, uint64_t bytes, uint32_t word) {
    uint64_t done = bytes < sizeof word ? bytes : sizeof word;
    tli_copy(at, &word, (size_t)done);
    while (done < bytes) {
        uint64_t more = done < bytes - done ? done : bytes - done;
        tli_copy(at + done, at, (size_t)more);
        done += more;
    }
}

static void tli_rotate(char *to, const char *from, uint64_t bytes) {
    uint64_t step = bytes % 4 ? 1 : 4;
    tli_copy(to, from + step, (size_t)(bytes - step));
    tli_copy(to + bytes - step, from, (size_t)step);
}

static uint32_t tli_fill_word(tli_fill fill) {
    return fill == TLI_FILL_ONE ? 1u : fill == TLI_FILL_SIGNALLING ? 0x7FA5A5A5u
         : fill == TLI_FILL_HALVES ? 0x3FC00000u : 0u;
}

static void tli_fill_shadow(const tli_probe *p, const tli_shadow *shadow, tli_fill fill) {
    char *at = p->work + shadow->at;
    if (fill == TLI_FILL_NOT || !shadow->bytes) return;
    if (fill == TLI_FILL_ROTATED) tli_rotate(at, p->before + shadow->at, shadow->bytes);
    else tli_fill_words(at, shadow->bytes, tli_fill_word(fill));
}

static int tli_is_undefined(const tli_shadow *shadow) {
    return shadow->access == TLI_SHADOW_WRITE || shadow->access == TLI_SHADOW_SCRATCH;
}

// only: i + 1 = those of operand i; 0 = all.
static void tli_fill_guards(const tli_probe *p, char *image, int32_t only, tli_guard_side side, uint32_t word) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[i];
        if (only && i != only - 1) continue;
        if (side != TLI_GUARD_BEHIND)
            tli_fill_words(image + shadow->at - TLI_PROBE_GUARD, TLI_PROBE_GUARD, word);
        if (side != TLI_GUARD_BEFORE)
            tli_fill_words(image + shadow->at + shadow->bytes, shadow->end - shadow->at - shadow->bytes, word);
    }
}

// Whether all bytes repeat one word: the first is that word, and each is equal to the one before it.
static int tli_holds_word(const char *at, uint64_t bytes, uint32_t word) {
    if (bytes <= sizeof word) return tli_same_bytes(at, &word, bytes);
    return tli_same_bytes(at, &word, sizeof word) && tli_same_bytes(at, at + sizeof word, bytes - sizeof word);
}

// Give an operand its place in the images.
static tli_shadow *tli_add_shadow(tli_probe *p, tl_operand_kind kind, int32_t index, tli_shadow_access access,
                                  uint64_t bytes) {
    tli_shadow *shadow = &p->shadows[p->count++];
    shadow->kind = kind;
    shadow->index = index;
    shadow->same = p->count - 1;
    shadow->access = bytes ? access : TLI_SHADOW_NONE;
    shadow->bytes = bytes;
    shadow->at = p->image_bytes + TLI_PROBE_GUARD;
    if (kind == TL_OPERAND_SCRATCH && p->step->call.kind == TL_STEP_FORWARD_SAVE)
        bytes = tli_larger_u64(bytes, p->node->fwork_bytes);    // of the same call without saved bytes
    shadow->end = p->image_bytes = (shadow->at + bytes + p->room + 63) & ~(uint64_t)63;
    return shadow;
}

// An operand behind those that the node has.
static void tli_add_missing(tli_probe *p, tl_operand_kind kind, int32_t index) {
    tli_add_shadow(p, kind, index, TLI_SHADOW_NONE, 0)->missing = 1;
}

// The bytes of a guard behind an operand: those of the largest operand, from TLI_PROBE_GUARD to TLI_PROBE_ROOM.
static uint64_t tli_find_guard_room(const tli_probe *p) {
    const tl_graph *graph = p->run->graph;
    const tl_node *node = p->node;
    uint64_t room = tli_larger_u64(node->saved_bytes, tli_larger_u64(node->fwork_bytes, node->swork_bytes));
    int32_t i;
    room = tli_larger_u64(room, node->bwork_bytes);
    for (i = 0; i < node->input_count; i++)
        room = tli_larger_u64(room, graph->outputs[graph->inputs[node->first_input + i].tensor].bytes);
    for (i = 0; i < node->output_count; i++)
        room = tli_larger_u64(room, graph->outputs[node->first_output + i].bytes);
    if (room < TLI_PROBE_GUARD) return TLI_PROBE_GUARD;
    return room < TLI_PROBE_ROOM ? room : (uint64_t)TLI_PROBE_ROOM;
}

// List the gradients of the inputs. A tensor that is read twice has one.
static void tli_list_input_gradients(tli_probe *p) {
    const tl_node_input *inputs = &p->run->graph->inputs[p->node->first_input];
    int32_t first = p->count, i, k;
    for (i = 0; i < p->node->input_count; i++) {
        for (k = 0; k < i && inputs[k].tensor != inputs[i].tensor;) k++;
        tli_add_shadow(p, TL_OPERAND_INPUT_GRADIENT, i, TLI_SHADOW_ADD,
                       k < i ? 0 : p->step->call.input_grads[i].range.bytes);
        p->shadows[first + i].same = first + k;
    }
    tli_add_missing(p, TL_OPERAND_INPUT_GRADIENT, i);
}

// Whether an operand is running statistics.
static int tli_is_running(const tli_probe *p, const tli_shadow *shadow) {
    const tl_graph *graph = p->run->graph;
    if (shadow->kind != TL_OPERAND_INPUT || shadow->missing) return 0;
    return tli_is_statistic(graph, graph->inputs[p->node->first_input + shadow->index].tensor);
}

// List the operands of a call. Of a backward those that `needs` does not name have their true bytes. An update
// changes what it finds in its outputs, the first forward of a node the statistics that it finds.
static void tli_list_shadows(tli_probe *p) {
    const tl_graph *graph = p->run->graph;
    const tl_node *node = p->node;
    const tl_kernel_call *call = &p->step->call;
    int backward = call->kind == TL_STEP_BACKWARD;
    int32_t i;
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        int hidden = backward && !input->needed;
        int changes = !backward && !call->recompute && tli_is_statistic(graph, input->tensor);
        tli_add_shadow(p, TL_OPERAND_INPUT, i, hidden ? TLI_SHADOW_HIDDEN
                       : changes ? TLI_SHADOW_ADD : TLI_SHADOW_READ,
                       hidden ? graph->outputs[input->tensor].bytes : call->inputs[i].range.bytes);
    }
    tli_add_missing(p, TL_OPERAND_INPUT, i);
    for (i = 0; i < node->output_count; i++) {
        const tl_node_output *output = &graph->outputs[node->first_output + i];
        int hidden = backward && !output->needed;
        tli_add_shadow(p, TL_OPERAND_OUTPUT, i, node->state ? TLI_SHADOW_ADD : !backward ? TLI_SHADOW_WRITE
                       : hidden ? TLI_SHADOW_HIDDEN : TLI_SHADOW_READ,
                       hidden ? output->bytes : call->outputs[i].range.bytes);
    }
    tli_add_missing(p, TL_OPERAND_OUTPUT, i);
    for (i = 0; i < node->output_count; i++)
        tli_add_shadow(p, TL_OPERAND_OUTPUT_GRADIENT, i, TLI_SHADOW_READ, call->output_grads[i].range.bytes);
    tli_add_missing(p, TL_OPERAND_OUTPUT_GRADIENT, i);
    tli_list_input_gradients(p);
    tli_add_shadow(p, TL_OPERAND_SAVED, 0, backward ? TLI_SHADOW_READ : TLI_SHADOW_WRITE,
                   call->saved.range.bytes);
    tli_add_shadow(p, TL_OPERAND_SCRATCH, 0, TLI_SHADOW_SCRATCH, call->scratch.range.bytes);
}

static const tl_operand tli_no_operand = { { 0, 0, 0 }, NULL, TL_FORMAT_F32, 0, 0, 0 };

// The address of what an operand holds in the pass; NULL = it is not there.
static const char *tli_find_truth(const tli_probe *p, int32_t i) {
    const tli_shadow *shadow = &p->shadows[i];
    const tl_kernel_call *call = &p->step->call;
    const tl_operand *operand = shadow->missing ? &tli_no_operand
        : shadow->kind == TL_OPERAND_INPUT ? &call->inputs[shadow->index]
        : shadow->kind == TL_OPERAND_OUTPUT ? &call->outputs[shadow->index]
        : shadow->kind == TL_OPERAND_OUTPUT_GRADIENT ? &call->output_grads[shadow->index]
        : shadow->kind == TL_OPERAND_INPUT_GRADIENT ? &call->input_grads[shadow->index]
        : shadow->kind == TL_OPERAND_SAVED ? &call->saved : &call->scratch;
    return (const char *)operand->host;
}

// Copy what `needs` does not name from where it lies in the pass; zeroes, where it is gone.
static void tli_take_hidden(const tli_probe *p, const tli_shadow *shadow) {
    const tl_graph *graph = p->run->graph;
    const tl_backend *backend = &p->run->backend;
    int32_t tensor = shadow->kind == TL_OPERAND_INPUT
        ? graph->inputs[p->node->first_input + shadow->index].tensor : p->node->first_output + shadow->index;
    const tli_buffer *buffer = &p->run->tensors[tensor];
    void *host = NULL;
    if (buffer->state != TLI_RESIDENT || buffer->device.range.bytes != shadow->bytes) return;
    if ((backend->map)(backend->self, buffer->device.range, TL_MAP_READ, &host)) return;
    tli_copy(p->before + shadow->at, host, (size_t)shadow->bytes);
    (void)(backend->unmap)(backend->self, buffer->device.range, TL_MAP_READ, host);
}

static void tli_fill_before(const tli_probe *p) {
    int32_t i;
    tli_fill_guards(p, p->before, 0, TLI_GUARD_BOTH, 0);
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[i];
        const char *truth = tli_find_truth(p, i);
        if (shadow->access == TLI_SHADOW_HIDDEN) tli_take_hidden(p, shadow);
        else if (!tli_is_undefined(shadow) && truth)
            tli_copy(p->before + shadow->at, truth, (size_t)shadow->bytes);
    }
}

// Take the ranges that may have changed since the call before: those of the node, and random state, which a
// hook of the run moves on.
static void tli_take_own(const tli_probe *p) {
    tli_variable_place place;
    place.variable = NULL;
    while (tli_next_probed(p, &place))
        if (place.variable->node >= 0 || place.variable->kind == TL_VARIABLE_RANDOM)
            (void)tli_move_variable(&place, p->state_before, NULL, TLI_VARIABLES_TAKE);
}

static tl_result tli_open_probe(tli_probe *p, tli_rehearsing *r, tl_run *run, const tl_run_step *step) {
    tl_env *env = r->env;
    const tl_node *node = &run->graph->nodes[step->call.node];
    uint64_t most = 2 * ((uint64_t)node->input_count + (uint64_t)node->output_count + 2) + 2;
    tli_zero(p, sizeof *p);
    p->r = r;
    p->run = run;
    p->step = step;
    p->node = node;
    p->shadows = (tli_shadow *)tli_alloc_array(env, most, sizeof *p->shadows);
    p->operands = (tl_operand *)tli_alloc_array(env, most, sizeof *p->operands);
    if (p->shadows && p->operands) {
        p->room = tli_find_guard_room(p);
        tli_list_shadows(p);
        p->memory = (char *)tli_alloc_array(env, 3 * p->image_bytes + 64, 1);
    }
    if (!p->memory)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
    p->before = p->memory + (64 - ((uintptr_t)p->memory & 63));
    p->work = p->before + p->image_bytes;
    p->after = p->work + p->image_bytes;
    p->state_before = tli_probed_state(r);
    p->state_after = p->state_before + tli_count_variables(&run->desc, NULL);
    tli_fill_before(p);
    tli_take_own(p);
    p->is_current = 1;
    return TL_OK;
}

static void tli_close_probe(tli_probe *p) {
    tli_release(p->r->env, p->memory);
    tli_release(p->r->env, p->operands);
    tli_release(p->r->env, p->shadows);
}

// -- rehearsal: one call --

static const tli_change tli_no_change = {
    TLI_PROBE_NOTHING, TLI_FILL_NOT, 0, 0, 0, 0, 0, 0, TLI_GUARD_BOTH, 0
};

static tli_change tli_change_of(int32_t shadow, tli_fill fill) {
    tli_change change = tli_no_change;
    change.shadow = shadow;
    change.fill = fill;
    return change;
}

// Whether an operand has 0 bytes because `needs` does not name it. It has an address all the same, so that a
// kernel that reads it does not crash.
static int tli_is_hidden(const tli_probe *p, const tli_change *change, int32_t i) {
    if (p->shadows[i].access != TLI_SHADOW_HIDDEN) return 0;
    return change->declared == TLI_DECLARED_ALL || change->declared == i + 1;
}

static void tli_fill_gradients(const tli_probe *p) {
    tli_variable_place place;
    uint64_t at, bytes, piece;
    place.variable = NULL;
    while (tli_next_probed(p, &place)) {
        const tl_variable *variable = place.variable;
        for (at = 0, piece = place.piece; at < variable->bytes; at += bytes, piece++) {
            bytes = variable->bytes - at < TLI_PROBE_PIECE ? variable->bytes - at : TLI_PROBE_PIECE;
            if (variable->kind != TL_VARIABLE_GRADIENT || p->r->is_still[piece]) continue;
            tli_fill_words((char *)variable->host + at, bytes, tli_fill_word(TLI_FILL_HALVES));
        }
    }
}

// Whether the call may change running statistics that an operand is.
static int tli_changes_operand(const tli_probe *p, const tli_shadow *shadow) {
    return shadow->access == TLI_SHADOW_ADD && tli_is_running(p, shadow);
}

// Write the contents that a changed call finds.
static void tli_apply_change(tli_probe *p, const tli_change *change) {
    int32_t i;
    tli_copy(p->work, p->before, (size_t)p->image_bytes);
    for (i = 0; i < p->count && change->shadow == TLI_PROBE_UNDEFINED; i++)
        if (tli_is_undefined(&p->shadows[i])) tli_fill_shadow(p, &p->shadows[i], change->fill);
    if (change->shadow == TLI_PROBE_GUARDS)
        tli_fill_guards(p, p->work, change->guard, change->side, tli_fill_word(change->fill));
    if (change->shadow >= 0) tli_fill_shadow(p, &p->shadows[change->shadow], change->fill);
    for (i = 0; i < p->count && change->declared; i++)
        if (tli_is_hidden(p, change, i)) tli_fill_shadow(p, &p->shadows[i], TLI_FILL_ONE);
    for (i = 0; i < p->count && change->ready; i++)      // the outputs are there
        if (p->shadows[i].kind == TL_OPERAND_OUTPUT)
            tli_copy(p->work + p->shadows[i].at, p->after + p->shadows[i].at, (size_t)p->shadows[i].bytes);
    for (i = 0; i < p->count && change->again; i++)
        if (tli_changes_operand(p, &p->shadows[i]) && (!change->statistic || change->statistic == i + 1))
            tli_copy(p->work + p->shadows[i].at, p->after + p->shadows[i].at, (size_t)p->shadows[i].bytes);
    if (change->again || !p->is_current)
        (void)tli_move_probed(p, change->again ? p->state_after : p->state_before, TLI_VARIABLES_PUT);
    p->is_current = 0;
    if (change->gradients) tli_fill_gradients(p);
}

// Scratch, saved bytes of nodes that declare none, and what is missing have an address all the same, so that
// whoever uses them is named and does not crash.
static int tli_is_lent(const tli_probe *p, const tli_shadow *shadow) {
    if (shadow->kind == TL_OPERAND_SCRATCH || shadow->missing) return 1;
    return shadow->kind == TL_OPERAND_SAVED && !p->node->saved_bytes;
}

static tl_format tli_format_of(const tl_kernel_call *given, const tli_shadow *shadow) {
    if (shadow->kind == TL_OPERAND_SAVED || shadow->kind == TL_OPERAND_SCRATCH || shadow->missing)
        return TL_FORMAT_F32;
    return shadow->kind == TL_OPERAND_INPUT || shadow->kind == TL_OPERAND_INPUT_GRADIENT
        ? given->inputs[shadow->index].format : given->outputs[shadow->index].format;
}

// Describe the operands of a changed call.
static void tli_describe_probe(tli_probe *p, const tli_change *change) {
    const tl_kernel_call *given = &p->step->call;
    tl_operand *at = p->operands;
    int32_t i, inputs = p->node->input_count, outputs = p->node->output_count;
    p->call = *given;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[p->shadows[i].same];
        tli_zero(&at[i], sizeof at[i]);
        at[i].format = tli_format_of(given, shadow);
        if (shadow->access == TLI_SHADOW_NONE && !tli_is_lent(p, shadow)) continue;
        at[i].host = tli_is_running(p, shadow) ? tli_find_running(p, shadow) : p->work + shadow->at;
        if (tli_is_hidden(p, change, i)) continue;
        at[i].range.block = 1;
        at[i].range.offset = shadow->at;
        at[i].range.bytes = shadow->missing ? p->room : shadow->bytes;
    }
    p->call.inputs = at;
    p->call.outputs = at + inputs + 1;
    p->call.output_grads = at + inputs + outputs + 2;
    p->call.input_grads = at + inputs + 2 * outputs + 3;
    if (change->inplace) {
        tl_operand *output = &at[inputs + 1];
        tli_copy(output->host, at[p->node->inplace].host, (size_t)output->range.bytes);
        at[p->node->inplace] = *output;
    }
    p->call.saved = at[p->count - 2];
    p->call.scratch = at[p->count - 1];
    p->call.outputs_ready = change->ready;
    p->call.recompute = change->again || given->recompute;
    if (p->plain) p->call.kind = TL_STEP_FORWARD;
    if (change->inplace) p->call.kind = TL_STEP_FORWARD_INPLACE;
}

static void tli_probe_random(const tli_probe *p, tl_random_moment moment) {
    const tl_run_desc *desc = &p->run->desc;
    if (desc->random && p->step->call.kind != TL_STEP_BACKWARD)
        (desc->random)(moment, p->step->call.node, p->step->call.micro_batch, desc->random_user);
}

// -- rehearsal: effects --

static int tli_is_effect(const tli_shadow *shadow) {
    return shadow->access == TLI_SHADOW_WRITE || shadow->access == TLI_SHADOW_ADD;
}

static uint64_t tli_first_difference(const char *a, const char *b, uint64_t bytes) {
    uint64_t i = 0;
    while (i < bytes && a[i] == b[i]) i++;
    return i;
}

// The first operand whose bytes differ from those of the plain call; -1 = none.
static int32_t tli_find_effect(const tli_probe *p, int with_saved) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[i];
        if (!tli_is_effect(shadow) || (!with_saved && shadow->kind == TL_OPERAND_SAVED)) continue;
        if (!tli_same_bytes(p->work + shadow->at, p->after + shadow->at, shadow->bytes)) return i;
    }
    return -1;
}

// Whether anything differs that the call makes: operands, or the state that it leaves.
static int tli_has_effect(const tli_probe *p) {
    return tli_find_effect(p, 1) >= 0 ||
           tli_move_probed(p, p->state_after, TLI_VARIABLES_COMPARE) >= 0;
}

static void tli_note_finding(tli_probe *p, tl_finding_kind kind, const tli_shadow *shadow, uint64_t byte) {
    tl_finding finding;
    tli_zero(&finding, sizeof finding);
    finding.kind = kind;
    finding.node = p->step->call.node;
    finding.step = p->call.kind;
    finding.operand = shadow ? shadow->kind : TL_OPERAND_NONE;
    finding.index = shadow ? shadow->index : 0;
    finding.byte = byte;
    tli_add_finding(p->r, &finding);
}

static void tli_note_variable(tli_probe *p, tl_finding_kind kind, int32_t variable) {
    tl_finding finding;
    tli_zero(&finding, sizeof finding);
    finding.kind = kind;
    finding.node = p->step->call.node;
    finding.step = p->call.kind;
    finding.operand = TL_OPERAND_VARIABLE;
    finding.index = variable;
    finding.variable = p->run->desc.variables[variable].kind;
    tli_add_finding(p->r, &finding);
}

// Whether a call finds other contents to read than the plain one. It may use them as indices, so where it
// writes is not checked then.
static int tli_varies_contents(const tli_probe *p, const tli_change *change) {
    return change->declared || (change->shadow >= 0 && !tli_is_undefined(&p->shadows[change->shadow]));
}

// What the guards of operand i on a side hold, where a call leaves them alone.
static uint32_t tli_guard_word(const tli_change *change, int32_t i, tli_guard_side side) {
    if (change->shadow != TLI_PROBE_GUARDS || (change->guard && change->guard != i + 1)) return 0;
    return change->side && change->side != side ? 0 : tli_fill_word(change->fill);
}

// How many bytes in front of an operand the first is that was written; 0 = none.
static uint64_t tli_find_before(const tli_probe *p, const tli_shadow *s, uint32_t word) {
    const char *front = p->work + s->at - TLI_PROBE_GUARD;
    uint64_t at = 0;
    if (tli_holds_word(front, TLI_PROBE_GUARD, word)) return 0;
    while (tli_same_bytes(front + at, &word, sizeof word)) at += sizeof word;
    at += tli_first_difference(front + at, (const char *)&word, sizeof word);
    return TLI_PROBE_GUARD - at;
}

// The kind of finding for an access beside an operand: another one where the node has no such operand, or
// declares none of its bytes.
static tl_finding_kind tli_find_beyond(const tli_shadow *s, tl_finding_kind beyond) {
    int is_optional = s->kind == TL_OPERAND_SAVED || s->kind == TL_OPERAND_SCRATCH;
    if (s->missing) return TL_FINDING_OPERAND_MISSING;
    return is_optional && !s->bytes ? TL_FINDING_UNDECLARED : beyond;
}

// What a call wrote and may not: operands that it may read only, and beside operands.
static void tli_check_writes(tli_probe *p, const tli_change *change) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        uint64_t behind = s->at + s->bytes;
        uint64_t before = tli_find_before(p, s, tli_guard_word(change, i, TLI_GUARD_BEFORE));
        if (before) tli_note_finding(p, tli_find_beyond(s, TL_FINDING_BEFORE_WRITTEN), s, before);
        if (!tli_holds_word(p->work + behind, s->end - behind, tli_guard_word(change, i, TLI_GUARD_BEHIND)))
            tli_note_finding(p, tli_find_beyond(s, TL_FINDING_BEYOND_WRITTEN), s, s->bytes);
        if ((s->access == TLI_SHADOW_READ || s->access == TLI_SHADOW_HIDDEN) &&
            !tli_same_bytes(p->work + s->at, p->before + s->at, s->bytes))
            tli_note_finding(p, TL_FINDING_READ_ONLY_WRITTEN, s,
                             tli_first_difference(p->work + s->at, p->before + s->at, s->bytes));
    }
}

// Copy the statistics that are operands, with their guards, to where kernels find them, or back.
static void tli_lend_statistics(const tli_probe *p, int back) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[i];
        char *work = p->work + shadow->at - TLI_PROBE_GUARD, *lent;
        if (!tli_is_running(p, shadow)) continue;
        lent = tli_find_running(p, shadow) - TLI_PROBE_GUARD;
        tli_copy(back ? work : lent, back ? lent : work, (size_t)(shadow->bytes + 2 * TLI_PROBE_GUARD));
    }
}

// Call the kernel as p->call says.
static tl_result tli_call_probed(tli_probe *p) {
    const tl_kernel *kernel = p->step->kernel;
    int backward = p->step->call.kind == TL_STEP_BACKWARD;
    tl_result result;
    p->r->out->calling_node = p->call.node;
    p->r->out->calling_kind = p->call.kind;
    p->r->out->call_count++;
    tli_lend_statistics(p, 0);
    result = (backward ? kernel->backward : kernel->forward)(&p->call, kernel->user);
    tli_lend_statistics(p, 1);
    return result ? tli_fail_rehearsed_kernel(p->r, &p->call, result) : TL_OK;
}

// Call the kernel with a change. first: 1 = nothing of the node has run in this pass. A call that stands for
// the first one draws the same random numbers, and leaves their state as that did.
static tl_result tli_run_probe(tli_probe *p, const tli_change *change, int first) {
    tl_result result;
    tli_apply_change(p, change);
    tli_describe_probe(p, change);
    tli_probe_random(p, first ? TL_RANDOM_RECORD : TL_RANDOM_REPLAY);
    result = tli_call_probed(p);
    if (change->again) tli_probe_random(p, TL_RANDOM_RESUME);
    if (!result && !tli_varies_contents(p, change)) tli_check_writes(p, change);
    return result;
}

// Whether so much is made that what is read must show in it.
static int tli_makes_enough(const tli_probe *p) {
    uint64_t bytes = 0;
    int32_t i;
    for (i = 0; i < p->count; i++)
        if (tli_is_effect(&p->shadows[i])) bytes += p->shadows[i].bytes;
    if (p->step->call.kind != TL_STEP_BACKWARD) return bytes >= 4;
    return bytes >= 4 || tli_has_gradient_variable(&p->run->desc, p->step->call.node);
}

// Whether a change of one operand shows in the effects, tried with each fill in turn. -1 = no fill changed it.
static tl_result tli_try_fills(tli_probe *p, int32_t shadow, const tli_fill *fills, int32_t count, int *shows) {
    const tli_shadow *s = &p->shadows[shadow];
    int32_t i;
    *shows = -1;
    for (i = 0; i < count && *shows < 1; i++) {
        tli_change change = tli_change_of(shadow, fills[i]);
        tl_result result;
        if (fills[i] == TLI_FILL_ROTATED && s->bytes < 2) continue;
        tli_apply_change(p, &change);
        if (tli_same_bytes(p->work + s->at, p->before + s->at, s->bytes)) continue;
        result = tli_run_probe(p, &change, 0);
        if (result) return result;
        *shows = tli_has_effect(p);
    }
    return TL_OK;
}

// -- rehearsal: what is undefined --

// Whether the word around a byte still holds what it was filled with.
static int tli_is_untouched(const tli_probe *p, const tli_shadow *shadow, uint64_t byte, tli_fill fill) {
    uint64_t from = byte & ~(uint64_t)3, bytes = shadow->bytes - from < 4 ? shadow->bytes - from : 4;
    return byte < shadow->bytes && tli_holds_word(p->work + shadow->at + from, bytes, tli_fill_word(fill));
}

// An output differs by what it held before: it was not written, or read. Only what is not written holds one
// fill as well as another.
static tl_result tli_name_output(tli_probe *p, int32_t i, tli_fill fill, uint64_t byte) {
    const tli_shadow *shadow = &p->shadows[i];
    tli_fill other = fill == TLI_FILL_ONE ? TLI_FILL_SIGNALLING : TLI_FILL_ONE;
    tli_change change = tli_change_of(i, other);
    int untouched = tli_is_untouched(p, shadow, byte, fill);
    tl_result result = tli_run_probe(p, &change, 0);
    if (result) return result;
    untouched = untouched && tli_is_untouched(p, shadow, byte, other);
    tli_note_finding(p, untouched ? TL_FINDING_NOT_WRITTEN : TL_FINDING_OUTPUT_READ, shadow, byte);
    return TL_OK;
}

// Name what is read of what is undefined, or not written.
static tl_result tli_name_undefined(tli_probe *p, tli_fill fill) {
    int32_t i, found = 0;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[i];
        tli_change change = tli_change_of(i, fill);
        uint64_t byte;
        tl_result result;
        if (!tli_is_undefined(shadow)) continue;
        result = tli_run_probe(p, &change, 0);
        if (result) return result;
        if (!tli_has_effect(p)) continue;
        found = 1;
        if (shadow->access == TLI_SHADOW_SCRATCH) {
            tli_note_finding(p, TL_FINDING_SCRATCH_READ, shadow, 0);
            continue;
        }
        byte = tli_first_difference(p->work + shadow->at, p->after + shadow->at, shadow->bytes);
        result = tli_name_output(p, i, fill, byte);
        if (result) return result;
    }
    if (!found) tli_note_finding(p, TL_FINDING_NOT_REPEATABLE, NULL, 0);
    return TL_OK;
}

// Name beside which operand is read, and on which side.
static tl_result tli_name_guards(tli_probe *p, tli_fill fill) {
    int32_t i, side;
    for (i = 0; i < p->count; i++)
        for (side = TLI_GUARD_BEFORE; side <= TLI_GUARD_BEHIND; side++) {
            const tli_shadow *s = &p->shadows[i];
            tli_change change = tli_change_of(TLI_PROBE_GUARDS, fill);
            tl_result result;
            change.guard = i + 1;
            change.side = (tli_guard_side)side;
            result = tli_run_probe(p, &change, 0);
            if (result) return result;
            if (!tli_has_effect(p)) continue;
            if (side == TLI_GUARD_BEFORE) tli_note_finding(p, tli_find_beyond(s, TL_FINDING_BEFORE_READ), s, 0);
            else tli_note_finding(p, tli_find_beyond(s, TL_FINDING_BEYOND_READ), s, s->bytes);
        }
    return TL_OK;
}

// Fill what is undefined, and the guards. untouched: 1 = scratch is declared, and the call leaves it alone.
static tl_result tli_probe_undefined(tli_probe *p, int *untouched) {
    static const tli_fill fills[] = { TLI_FILL_ONE, TLI_FILL_SIGNALLING };
    const tli_shadow *scratch = &p->shadows[p->count - 1];
    int left = scratch->bytes > 0;
    int32_t k;
    *untouched = 0;
    for (k = 0; k < 2; k++) {
        tli_change change = tli_change_of(TLI_PROBE_UNDEFINED, fills[k]);
        tl_result result = tli_run_probe(p, &change, 0);
        if (result) return result;
        left &= tli_holds_word(p->work + scratch->at, scratch->bytes, tli_fill_word(fills[k]));
        if (tli_has_effect(p)) return tli_name_undefined(p, fills[k]);
        change = tli_change_of(TLI_PROBE_GUARDS, fills[k]);
        result = tli_run_probe(p, &change, 0);
        if (result) return result;
        if (tli_has_effect(p)) return tli_name_guards(p, fills[k]);
    }
    *untouched = left;
    return TL_OK;
}

// -- rehearsal: forwards --

// Name the statistics that a forward changes when it runs again. Returns whether there are such.
static int tli_name_changed(tli_probe *p) {
    int32_t i, count = 0;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        if (!tli_changes_operand(p, s)) continue;
        if (tli_same_bytes(p->work + s->at, p->after + s->at, s->bytes)) continue;
        tli_note_finding(p, TL_FINDING_SIDE_EFFECT, s, 0);
        count++;
    }
    return count > 0;
}

// Whether outputs or saved bytes differ from those of the plain call.
static int tli_makes_others(const tli_probe *p) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        if (s->access != TLI_SHADOW_WRITE) continue;
        if (!tli_same_bytes(p->work + s->at, p->after + s->at, s->bytes)) return 1;
    }
    return 0;
}

// A forward that runs again makes other bytes. Where it does not with the statistics that the first run found,
// name those which alone suffice for that, as the first run left them.
static tl_result tli_name_read(tli_probe *p) {
    tli_change change = tli_no_change;
    int32_t i, count = 0;
    tl_result result;
    change.again = 1;
    change.statistic = p->count + 1;    // of none
    result = tli_run_probe(p, &change, 0);
    for (i = tli_makes_others(p) ? p->count : 0; i < p->count && !result; i++) {
        if (!tli_changes_operand(p, &p->shadows[i])) continue;
        change.statistic = i + 1;
        result = tli_run_probe(p, &change, 0);
        if (result || !tli_makes_others(p)) continue;
        tli_note_finding(p, TL_FINDING_STATISTICS_READ, &p->shadows[i], 0);
        count++;
    }
    if (!count && !result) tli_note_finding(p, TL_FINDING_NOT_REPEATABLE, NULL, 0);
    return result;
}

// A forward that runs again leaves state and statistics alone, and makes the same bytes.
static tl_result tli_probe_again(tli_probe *p) {
    tli_change change = tli_no_change;
    tl_result result;
    int32_t variable;
    change.again = 1;
    result = tli_run_probe(p, &change, 0);
    if (result) return result;
    variable = tli_move_probed(p, p->state_after, TLI_VARIABLES_COMPARE);
    if (variable >= 0) {
        tli_variable_place place;
        place.variable = NULL;
        while (tli_next_probed(p, &place))
            if (tli_move_variable(&place, p->state_after, p->r->is_still, TLI_VARIABLES_COMPARE))
                tli_note_variable(p, TL_FINDING_SIDE_EFFECT, place.index);
    }
    if (tli_name_changed(p) || variable >= 0 || !tli_makes_others(p)) return TL_OK;
    return tli_name_read(p);
}

// Whether outputs, or saved bytes, follow from statistics.
static tl_result tli_try_outputs(tli_probe *p, int32_t shadow, int *follow) {
    static const tli_fill fills[] = { TLI_FILL_ZEROES, TLI_FILL_HALVES };
    int32_t i;
    *follow = 0;
    for (i = 0; i < 2 && !*follow; i++) {
        tli_change change = tli_change_of(shadow, fills[i]);
        tl_result result = tli_run_probe(p, &change, 0);
        if (result) return result;
        *follow = tli_makes_others(p);
    }
    return TL_OK;
}

// A node below changes statistics from which one above makes its outputs: where that runs again, these are
// others.
static void tli_name_reader(tli_probe *p, int32_t tensor) {
    const tl_graph *graph = p->run->graph;
    const tl_node *reader;
    tl_finding finding;
    tli_zero(&finding, sizeof finding);
    finding.kind = TL_FINDING_STATISTICS_LATER;
    finding.node = p->r->readers[tensor] - 1;
    finding.operand = TL_OPERAND_INPUT;
    reader = &graph->nodes[finding.node];
    while (graph->inputs[reader->first_input + finding.index].tensor != tensor) finding.index++;
    tli_add_finding(p->r, &finding);
}

// Of statistics that several nodes read, a change is seen by all that run again.
static tl_result tli_probe_shared_statistics(tli_probe *p) {
    int32_t i;
    for (i = 0; i < p->node->input_count; i++) {
        const tli_shadow *s = &p->shadows[i];
        int32_t tensor = p->run->graph->inputs[p->node->first_input + i].tensor;
        int follow;
        tl_result result;
        if (!tli_changes_operand(p, s)) continue;
        if (p->r->readers[tensor] && !tli_same_bytes(p->after + s->at, p->before + s->at, s->bytes))
            tli_name_reader(p, tensor);
        if (p->r->readers[tensor] || p->node->once) continue;
        result = tli_try_outputs(p, i, &follow);
        if (result) return result;
        if (follow) p->r->readers[tensor] = p->step->call.node + 1;
    }
    return TL_OK;
}

// plain: 1 = from here on the call is FORWARD, without saved bytes and with the scratch of a FORWARD; 0 = from
// here on it is again as the pass gave it.
static void tli_enter_plain(tli_probe *p, int plain) {
    const tl_kernel_call *given = &p->step->call;
    tli_shadow *saved = &p->shadows[p->count - 2], *scratch = &p->shadows[p->count - 1];
    p->plain = plain;
    saved->bytes = plain ? 0 : given->saved.range.bytes;
    saved->access = saved->bytes ? TLI_SHADOW_WRITE : TLI_SHADOW_NONE;
    scratch->bytes = plain ? p->node->fwork_bytes : given->scratch.range.bytes;
    scratch->access = scratch->bytes ? TLI_SHADOW_SCRATCH : TLI_SHADOW_NONE;
}

// The same call without saved bytes. untouched: 1 = it has scratch, and leaves it alone.
static tl_result tli_probe_unsaved(tli_probe *p, int *untouched) {
    tl_result result = tli_run_probe(p, &tli_no_change, 0);
    int32_t i;
    *untouched = 0;
    if (result) return result;
    i = tli_find_effect(p, 1);
    if (i >= 0) tli_note_finding(p, TL_FINDING_SAVED_CHANGES_OUTPUT, &p->shadows[i], 0);
    return tli_has_effect(p) ? TL_OK : tli_probe_undefined(p, untouched);
}

// The same call in place.
static tl_result tli_probe_inplace(tli_probe *p) {
    tli_change change = tli_no_change;
    tl_result result;
    change.inplace = 1;
    result = tli_run_probe(p, &change, 0);
    if (!result && tli_find_effect(p, 1) >= 0)
        tli_note_finding(p, TL_FINDING_INPLACE_WRONG, &p->shadows[p->node->inplace], 0);
    return result;
}

// The same call with its outputs there, without saved bytes, and in place. untouched: 1 = the call itself
// leaves its scratch alone.
static tl_result tli_probe_forms(tli_probe *p, int untouched) {
    int saves = p->step->call.kind == TL_STEP_FORWARD_SAVE, repeats = !p->node->once, unsaved_untouched = 0;
    tl_result result = TL_OK;
    if (saves && repeats) {
        tli_change change = tli_no_change;
        int32_t i;
        change.again = change.ready = 1;
        result = tli_run_probe(p, &change, 0);
        i = tli_find_effect(p, 1);
        if (!result && i >= 0) tli_note_finding(p, TL_FINDING_READY_IGNORED, &p->shadows[i], 0);
        tli_enter_plain(p, 1);
        if (!result) result = tli_probe_unsaved(p, &unsaved_untouched);
    }
    if (!result && p->node->inplace >= 0 && (!saves || repeats)) result = tli_probe_inplace(p);
    if (saves) tli_enter_plain(p, 0);
    p->call.kind = unsaved_untouched ? TL_STEP_FORWARD : p->step->call.kind;
    if (!result && untouched)
        tli_note_finding(p, TL_FINDING_SCRATCH_UNUSED, &p->shadows[p->count - 1], 0);
    return result;
}

// Whether an operand is a graph input, which may hold indices; a state holds none.
static int tli_is_given(const tli_probe *p, const tli_shadow *s) {
    const tl_graph *graph = p->run->graph;
    const tl_node *node;
    if (s->kind != TL_OPERAND_INPUT) return 0;
    node = &graph->nodes[graph->outputs[graph->inputs[p->node->first_input + s->index].tensor].node];
    return node->is_input && !node->state;
}

// Whether a call that leaves statistics alone reads them: they show in what it makes, or are changed after all.
static tl_result tli_try_statistics(tli_probe *p, int32_t shadow, int *shows) {
    static const tli_fill fills[] = { TLI_FILL_ZEROES, TLI_FILL_ONE };
    const tli_shadow *s = &p->shadows[shadow];
    int32_t i;
    *shows = !tli_same_bytes(p->after + s->at, p->before + s->at, s->bytes);
    for (i = 0; i < 2 && !*shows; i++) {
        tli_change change = tli_change_of(shadow, fills[i]);
        tl_result result = tli_run_probe(p, &change, 0);
        if (result) return result;
        *shows = tli_makes_others(p) || !tli_holds_word(p->work + s->at, s->bytes, tli_fill_word(fills[i])) ||
                 tli_move_probed(p, p->state_after, TLI_VARIABLES_COMPARE) >= 0;
    }
    return TL_OK;
}

// Inputs that neither forward nor backward reads.
static tl_result tli_probe_unread_inputs(tli_probe *p) {
    static const tli_fill fills[] = { TLI_FILL_ROTATED, TLI_FILL_ZEROES };
    const tl_graph *graph = p->run->graph;
    int32_t i;
    if (tli_clips(graph, p->step->call.node)) return TL_OK;     // they say whose gradients are clipped
    for (i = 0; i < p->node->input_count && tli_makes_enough(p); i++) {
        const tl_node_input *input = &graph->inputs[p->node->first_input + i];
        int is_given = tli_is_given(p, &p->shadows[i]), shows;
        int changes = tli_changes_operand(p, &p->shadows[i]);
        tl_result result;
        if (input->needed || (!changes && p->shadows[i].access != TLI_SHADOW_READ)) continue;
        result = changes ? tli_try_statistics(p, i, &shows)
                         : tli_try_fills(p, i, fills, is_given ? 1 : 2, &shows);
        if (result) return result;
        if (!shows) tli_note_finding(p, TL_FINDING_INPUT_UNUSED, &p->shadows[i], 0);
    }
    return TL_OK;
}

static tl_result tli_probe_forward(tli_probe *p, int untouched) {
    tl_result result = p->node->once ? TL_OK : tli_probe_again(p);
    if (!result) result = tli_probe_unread_inputs(p);
    if (!result) result = tli_probe_shared_statistics(p);
    return result ? result : tli_probe_forms(p, untouched);
}

// -- rehearsal: calls for rows --

// The rows that the weight of an input has; 0 = none, or it is no weight.
static uint64_t tli_find_weight_rows(const tli_probe *p, int32_t input) {
    const tl_graph *graph = p->run->graph;
    int32_t tensor = graph->inputs[p->node->first_input + input].tensor;
    return (uint64_t)graph->nodes[graph->outputs[tensor].node].weight_rows;
}

static uint64_t tli_find_read_bytes(const tli_probe *p, int32_t input) {
    return p->run->graph->outputs[p->run->graph->inputs[p->node->first_input + input].tensor].bytes;
}

// Call a backward, with a change, for some rows of the gradient of an input. Of fewer than all its weights
// have no bytes, and where they were are numbers that any use spreads.
static tl_result tli_call_for_rows(tli_probe *p, const tli_change *change, int32_t input, uint64_t first,
                                   uint64_t count, char *to) {
    int32_t i;
    tli_apply_change(p, change);
    tli_describe_probe(p, change);
    p->call.first = first;
    p->call.count = count;
    p->call.total = tli_find_weight_rows(p, input);
    for (i = 0; i < p->count; i++) {
        const tli_shadow *shadow = &p->shadows[i];
        tl_operand *operand = &p->operands[i];
        if (shadow->missing) continue;
        if (shadow->kind == TL_OPERAND_INPUT && count < p->call.total &&
            tli_find_weight_rows(p, shadow->index)) {
            tli_fill_shadow(p, shadow, TLI_FILL_SIGNALLING);
            operand->range.bytes = 0;
        }
        if (shadow->kind != TL_OPERAND_INPUT_GRADIENT) continue;
        operand->host = shadow->index == input ? to : NULL;
        operand->range.bytes = 0;
        if (operand->host) operand->range.bytes = count * (tli_find_read_bytes(p, input) / p->call.total);
    }
    return tli_call_probed(p);
}

// Whether a change of an operand shows in what calls for rows of states in pieces make.
static tl_result tli_try_rows(tli_probe *p, int32_t shadow, const tli_fill *fills, int32_t count, int *shows) {
    int32_t input, k;
    tl_result result = TL_OK;
    for (input = 0; input < p->node->input_count && *shows < 1 && !result; input++) {
        uint64_t bytes = tli_find_read_bytes(p, input), total = tli_find_weight_rows(p, input);
        char *plain;
        if (!tli_find_pieces(p->run->graph, p->node, input)) continue;
        plain = (char *)tli_alloc_array(p->r->env, 2, (size_t)(bytes + TLI_PROBE_ROOM));
        if (!plain)
            return tli_fail(p->r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN),
                            TLI_RULE(REHEARSAL_NO_MEMORY));
        result = tli_call_for_rows(p, &tli_no_change, input, 0, total, plain);
        for (k = 0; k < count && *shows < 1 && !result; k++) {
            tli_change change = tli_change_of(shadow, fills[k]);
            char *changed = plain + bytes + TLI_PROBE_ROOM;
            tli_zero(changed, (size_t)bytes);
            result = tli_call_for_rows(p, &change, input, 0, total, changed);
            *shows = !tli_same_bytes(plain, changed, bytes);
        }
        tli_release(p->r->env, plain);
    }
    return result;
}

// -- rehearsal: backwards --

// What `needs` does not name is not read: neither its contents, nor that it is there. Of what nobody wrote,
// which is zeroes, the last fill shows that it is read.
static tl_result tli_probe_hidden(tli_probe *p) {
    static const tli_fill fills[] = { TLI_FILL_ROTATED, TLI_FILL_ZEROES, TLI_FILL_ONE, TLI_FILL_HALVES };
    tli_change change = tli_no_change;
    int32_t i, count, hidden = 0, found = 0;
    tl_result result = TL_OK;
    for (i = 0; i < p->count && !result; i++) {
        int shows;
        if (p->shadows[i].access != TLI_SHADOW_HIDDEN) continue;
        count = tli_is_given(p, &p->shadows[i]) ? 3 : 4;
        result = tli_try_fills(p, i, fills, count, &shows);
        if (!result && shows < 1) result = tli_try_rows(p, i, fills, count, &shows);
        if (!result && shows == 1) tli_note_finding(p, TL_FINDING_NEEDS_MISSING, &p->shadows[i], 0);
        found |= !result && shows == 1;
        hidden++;
    }
    if (result || !hidden || found) return result;
    change.declared = TLI_DECLARED_ALL;
    result = tli_run_probe(p, &change, 0);
    if (result || !tli_has_effect(p)) return result;
    for (i = 0; i < p->count && !result; i++) {
        if (p->shadows[i].access != TLI_SHADOW_HIDDEN) continue;
        change.declared = i + 1;
        result = tli_run_probe(p, &change, 0);
        if (!result && tli_has_effect(p)) tli_note_finding(p, TL_FINDING_NEEDS_MISSING, &p->shadows[i], 0);
    }
    return result;
}

// Whether the effects of the backward are all known: the gradients of its weights stand in the state, or the
// graph has the weights as states.
static int tli_knows_effects(const tli_probe *p) {
    int32_t i;
    if (p->node->state || tli_has_gradient_variable(&p->run->desc, p->step->call.node)) return 1;
    if (p->node->param_bytes || (!p->run->desc.variable_count && !p->run->updates.state_count)) return 0;
    for (i = 0; i < p->count; i++)
        if (p->shadows[i].access == TLI_SHADOW_ADD) return 1;
    return 0;
}

static int tli_gradient_is_zero(const tli_probe *p) {
    int32_t i;
    for (i = 0; i < p->count; i++)
        if (p->shadows[i].kind == TL_OPERAND_OUTPUT_GRADIENT &&
            !tli_holds_word(p->before + p->shadows[i].at, p->shadows[i].bytes, 0)) return 0;
    return 1;
}

// Whether the plain call changed a range, but for what is still.
static int tli_changes_variable(const tli_probe *p, const tli_variable_place *place) {
    tl_variable after = *place->variable;
    tli_variable_place other = *place;
    after.host = p->state_after + place->at;
    other.variable = &after;
    return tli_move_variable(&other, p->state_before, p->r->is_still, TLI_VARIABLES_COMPARE);
}

static int tli_changes_state(const tli_probe *p) {
    tli_variable_place place;
    place.variable = NULL;
    while (tli_next_probed(p, &place))
        if (tli_changes_variable(p, &place)) return 1;
    return 0;
}

// Whether the plain call added nothing at all: of such data nothing follows.
static int tli_adds_nothing(const tli_probe *p) {
    int32_t i;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        if (s->access != TLI_SHADOW_ADD) continue;
        if (!tli_same_bytes(p->after + s->at, p->before + s->at, s->bytes)) return 0;
    }
    return !tli_changes_state(p);
}

// What `needs` names is read, and so are saved bytes and the gradients of the outputs; but not that of a node
// that clips, which is of no loss.
static tl_result tli_probe_declared(tli_probe *p) {
    static const tli_fill fills[] = { TLI_FILL_ROTATED, TLI_FILL_ZEROES, TLI_FILL_ONE };
    static const tli_fill gradients[] = { TLI_FILL_ROTATED, TLI_FILL_HALVES };
    int32_t i, count, clips = tli_clips(p->run->graph, p->step->call.node);
    if (!tli_knows_effects(p) || !tli_makes_enough(p) || tli_gradient_is_zero(p) || tli_adds_nothing(p))
        return TL_OK;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        int is_gradient = s->kind == TL_OPERAND_OUTPUT_GRADIENT, shows;
        tl_result result;
        if (s->access != TLI_SHADOW_READ) continue;
        count = tli_is_given(p, s) ? 1 : s->kind == TL_OPERAND_SAVED ? 3 : 2;
        result = tli_try_fills(p, i, is_gradient ? gradients : fills, count, &shows);
        if (!result && !shows) result = tli_try_rows(p, i, is_gradient ? gradients : fills, count, &shows);
        if (result) return result;
        if (shows == 1 && clips) tli_note_finding(p, TL_FINDING_CLIP_READS_GRADIENT, s, 0);
        if (shows || clips) continue;
        tli_note_finding(p, is_gradient ? TL_FINDING_GRADIENT_IGNORED
                         : s->kind == TL_OPERAND_SAVED ? TL_FINDING_SAVED_UNUSED
                         : TL_FINDING_NEEDS_UNUSED, s, 0);
    }
    return TL_OK;
}

// How many contributions the gradient of an input gets.
static int32_t tli_count_contributions(const tli_probe *p, int32_t input) {
    const tl_graph *graph = p->run->graph;
    int32_t tensor = graph->inputs[p->node->first_input + input].tensor, id, k, count = 0;
    if (tli_held_gradient(graph, tensor) >= 0) return INT32_MAX;    // those of other passes
    for (id = graph->outputs[tensor].node + 1; id < graph->node_count; id++)
        for (k = 0; k < graph->nodes[id].input_count && graph->nodes[id].has_grad; k++)
            count += graph->inputs[graph->nodes[id].first_input + k].tensor == tensor;
    return count;
}

// Gradients are sums: what is there before shows in what is there after.
static tl_result tli_probe_sums(tli_probe *p) {
    static const tli_fill fills[] = { TLI_FILL_HALVES, TLI_FILL_ONE };
    tli_change change = tli_no_change;
    tli_variable_place place;
    int32_t i;
    tl_result result;
    for (i = 0; i < p->count; i++) {
        const tli_shadow *s = &p->shadows[i];
        int shows;
        if (s->access != TLI_SHADOW_ADD || s->kind != TL_OPERAND_INPUT_GRADIENT) continue;
        if (tli_count_contributions(p, s->index) < 2) continue;
        result = tli_try_fills(p, i, fills, 2, &shows);
        if (result) return result;
        if (!shows) tli_note_finding(p, TL_FINDING_GRADIENT_OVERWRITTEN, s, 0);
    }
    if (!tli_has_gradient_variable(&p->run->desc, p->step->call.node)) return TL_OK;
    change.gradients = 1;
    result = tli_run_probe(p, &change, 0);
    place.variable = NULL;
    while (!result && tli_next_probed(p, &place))
        if (place.variable->kind == TL_VARIABLE_GRADIENT && tli_changes_variable(p, &place) &&
            !tli_move_variable(&place, p->state_after, p->r->is_still, TLI_VARIABLES_COMPARE))
            tli_note_variable(p, TL_FINDING_GRADIENT_OVERWRITTEN, place.index);
    return result;
}

static tl_result tli_probe_backward(tli_probe *p, int untouched) {
    tl_result result = tli_probe_hidden(p);
    if (untouched && !tli_reads_pieces(p->run->graph, p->node))     // which lie in it
        tli_note_finding(p, TL_FINDING_SCRATCH_UNUSED, &p->shadows[p->count - 1], 0);
    if (!result) result = tli_probe_declared(p);
    return result ? result : tli_probe_sums(p);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
