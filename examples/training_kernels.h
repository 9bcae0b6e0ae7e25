// training_kernels.h -- the kernels of the training programs that run on threads: 16 and 17
//
// Thin wrappers around nn.h. A kernel may run while kernels of other nodes do: it writes its operands and the gradients of
// its own weights, and nothing else. A program that has the weights of some nodes only says where it has them.
//
// Include training.h first.
#ifndef TRAINING_KERNELS_H
#define TRAINING_KERNELS_H

typedef struct net {
    const training_model *m;
    const float *params;
    float       *grads;
    const uint64_t *places;       // [param_kinds] where each begins in params; NULL = all are here, in their order
    const uint64_t *grad_places;  // [param_kinds] likewise, in grads
    uint64_t     wait_ns;         // that each kernel waits beside its work
} net;

typedef struct args {
    const training_node *n;
    const float *weight, *bias;
    float       *dweight, *dbias;
    float       *in, *in2, *out, *din, *din2, *dout, *saved, *scratch;  // NULL = not there
    size_t       B, T, C, R, K, N, heads, elements;
} args;

static float *f32(const tl_operand *operand) { return (float *)operand->host; }

static uint64_t first_of(const net *network, const uint64_t *places, int32_t param) {
    if (param < 0) return 0;
    return places ? places[param] : network->m->params[param].first;
}

static args args_of(const tl_kernel_call *call, const net *network) {
    const training_model *m = network->m;
    int has_two = call->graph->nodes[call->node].input_count > 1;
    args a;
    a.n = &m->nodes[call->node];
    a.weight = network->params + first_of(network, network->places, a.n->weight);
    a.bias = network->params + first_of(network, network->places, a.n->bias);
    a.dweight = network->grads + first_of(network, network->grad_places, a.n->weight);
    a.dbias = network->grads + first_of(network, network->grad_places, a.n->bias);
    a.in = f32(&call->inputs[0]);
    a.in2 = has_two ? f32(&call->inputs[1]) : NULL;
    a.out = f32(&call->outputs[0]);
    a.din = f32(&call->input_grads[0]);
    a.din2 = has_two ? f32(&call->input_grads[1]) : NULL;
    a.dout = f32(&call->output_grads[0]);
    a.saved = f32(&call->saved);
    a.scratch = f32(&call->scratch);
    a.B = (size_t)m->size.B;
    a.T = (size_t)m->size.T;
    a.C = (size_t)m->size.C;
    a.R = a.B * a.T;
    a.K = (size_t)a.n->in_width;
    a.N = (size_t)a.n->width;
    a.heads = a.C / TRAINING_HEAD;
    a.elements = a.R * a.N;
    return a;
}

static void wait_ns(uint64_t ns) {
    struct timespec time;
    time.tv_sec = (time_t)(ns / 1000000000u);
    time.tv_nsec = (long)(ns % 1000000000u);
    if (ns) nanosleep(&time, NULL);
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    const net *network = (const net *)user;
    args a = args_of(call, network);
    if (!a.in2 && (a.n->op == TRAINING_ADD || a.n->op == TRAINING_LOSS)) return TL_ERROR_INVALID_ARG;
    switch (a.n->op) {
    case TRAINING_EMBED: nn_embed_forward(a.out, (const int32_t *)(void *)a.in, a.weight, a.bias, a.B, a.T, a.C); break;
    case TRAINING_NORM: nn_norm_forward(a.out, a.saved, a.in, a.weight, a.bias, a.R, a.C); break;
    case TRAINING_LINEAR: nn_linear_forward(a.out, a.in, a.weight, a.bias, a.R, a.K, a.N); break;
    case TRAINING_ATTENTION:
        nn_attention_forward(a.out, a.saved, a.in, a.scratch, a.B, a.T, a.C, a.heads);
        break;
    case TRAINING_GELU: nn_gelu_forward(a.out, a.in, a.elements); break;
    case TRAINING_DROPOUT:
        nn_dropout_forward(a.out, a.in, a.elements, network->m->dropout, call->seed, 0);
        break;
    case TRAINING_ADD: nn_add_forward(a.out, a.in, a.in2, a.elements); break;
    case TRAINING_LOSS:
        nn_cross_entropy_forward(a.out, NULL, a.in, (const int32_t *)(void *)a.in2, a.R, a.K);
        break;
    case TRAINING_INPUT_OP:
    case TRAINING_OP_COUNT: break;
    }
    wait_ns(network->wait_ns);
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    const net *network = (const net *)user;
    args a = args_of(call, network);
    if (!a.in2 && a.n->op == TRAINING_LOSS) return TL_ERROR_INVALID_ARG;
    switch (a.n->op) {
    case TRAINING_EMBED:
        nn_embed_backward(a.dweight, a.dbias, a.dout, (const int32_t *)(void *)a.in, a.B, a.T, a.C);
        break;
    case TRAINING_NORM:
        nn_norm_backward(a.din, a.dweight, a.dbias, a.dout, a.saved, a.in, a.weight, a.R, a.C);
        break;
    case TRAINING_LINEAR:
        nn_linear_backward(a.din, a.dweight, a.dbias, a.dout, a.in, a.weight, a.R, a.K, a.N);
        break;
    case TRAINING_ATTENTION:
        nn_attention_backward(a.din, a.dout, a.saved, a.in, a.scratch, a.B, a.T, a.C, a.heads);
        break;
    case TRAINING_GELU: nn_gelu_backward(a.din, a.dout, a.in, a.elements); break;
    case TRAINING_DROPOUT:
        nn_dropout_backward(a.din, a.dout, a.elements, network->m->dropout, call->seed, 0);
        break;
    case TRAINING_ADD: nn_add_backward(a.din, a.din2, a.dout, a.elements); break;
    case TRAINING_LOSS:
        nn_cross_entropy_backward(a.din, *a.dout, a.in, (const int32_t *)(void *)a.in2, a.R, a.K);
        break;
    case TRAINING_INPUT_OP:
    case TRAINING_OP_COUNT: break;
    }
    wait_ns(2 * network->wait_ns);
    return TL_OK;
}

// A kernel for every op but inputs: [TRAINING_OP_COUNT - 1].
static void set_kernels(tl_kernel *kernels, net *network) {
    int i;
    for (i = 0; i < TRAINING_OP_COUNT - 1; i++) {
        kernels[i].op = training_op_names[i + 1];
        kernels[i].forward = forward;
        kernels[i].backward = backward;
        kernels[i].user = network;
    }
}

// The bytes that the kernels of a node need besides its output.
static void add_bytes(const training_model *m, const training_node *n, tl_node_desc *desc) {
    const training_dims *s = &m->size;
    if (n->op == TRAINING_NORM) desc->saved_bytes = nn_norm_saved_bytes((size_t)(s->B * s->T));
    if (n->op != TRAINING_ATTENTION) return;
    desc->saved_bytes = nn_attention_saved_bytes((size_t)s->B, (size_t)(s->C / TRAINING_HEAD), (size_t)s->T);
    desc->fwork_bytes = desc->bwork_bytes = nn_attention_scratch_bytes((size_t)s->T);
}

#endif
