/* A small image classifier, trained with plain loops: convolutions, then one block of attention over the pixels that
   are left. Layers stand in one array; each has a forward and a backward function.

       net_states [steps [budget [check]]]   the same, with everything inside a budget: bytes, or a part of all
*/
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "tl_strategy.h"

enum { B = 8, MAX_LAYERS = 96 };

struct layer {
    const char *name, *kind;
    void (*forward)(struct layer *l);
    void (*backward)(struct layer *l);
    struct layer *in[2];
    int n_in;
    int C, H, W;                     /* of the output, for each sample */
    size_t n, n_w, n_b, n_cache;     /* floats of output, weights, biases, of what forward keeps for backward */
    float *out, *dout, *w, *dw, *b, *db, *cache;
    float *mean, *var;               /* of batch norm: running statistics */
    float *mw, *mb;                  /* momentum */
};

static struct layer layers[MAX_LAYERS];
static int n_layers;
static int labels[B];
static uint64_t rng = 88172645463325252u;
static int again;                    /* 1 = this forward has run before in this step */

static float uniform(void) {
    rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
    return (float)(rng >> 40) / 16777216.0f;
}

/* -- layers -- */

static void conv_forward(struct layer *l) {
    int C = l->in[0]->C, O = l->C, H = l->H, W = l->W;
    for (int n = 0; n < B; n++)
        for (int o = 0; o < O; o++) {
            float *out = l->out + ((size_t)n * O + o) * H * W;
            for (int i = 0; i < H * W; i++) out[i] = l->b[o];
            for (int c = 0; c < C; c++) {
                const float *in = l->in[0]->out + ((size_t)n * C + c) * H * W, *w = l->w + (o * C + c) * 9;
                for (int ky = -1; ky <= 1; ky++)
                    for (int kx = -1; kx <= 1; kx++) {
                        float k = w[(ky + 1) * 3 + kx + 1];
                        for (int y = ky < 0; y < H - (ky > 0); y++)
                            for (int x = kx < 0; x < W - (kx > 0); x++) out[y * W + x] += k * in[(y + ky) * W + x + kx];
                    }
            }
        }
}

static void conv_backward(struct layer *l) {
    int C = l->in[0]->C, O = l->C, H = l->H, W = l->W;
    for (int n = 0; n < B; n++)
        for (int o = 0; o < O; o++) {
            const float *d = l->dout + ((size_t)n * O + o) * H * W;
            for (int i = 0; i < H * W; i++) l->db[o] += d[i];
            for (int c = 0; c < C; c++) {
                const float *in = l->in[0]->out + ((size_t)n * C + c) * H * W, *w = l->w + (o * C + c) * 9;
                float *din = l->in[0]->dout ? l->in[0]->dout + ((size_t)n * C + c) * H * W : NULL;
                for (int ky = -1; ky <= 1; ky++)
                    for (int kx = -1; kx <= 1; kx++) {
                        float k = din ? w[(ky + 1) * 3 + kx + 1] : 0, sum = 0;
                        for (int y = ky < 0; y < H - (ky > 0); y++)
                            for (int x = kx < 0; x < W - (kx > 0); x++) {
                                sum += d[y * W + x] * in[(y + ky) * W + x + kx];
                                if (din) din[(y + ky) * W + x + kx] += k * d[y * W + x];
                            }
                        l->dw[(o * C + c) * 9 + (ky + 1) * 3 + kx + 1] += sum;
                    }
            }
        }
}

static void batchnorm_forward(struct layer *l) {
    int C = l->C, S = l->H * l->W;
    for (int c = 0; c < C; c++) {
        float sum = 0, squares = 0;
        for (int n = 0; n < B; n++) for (int i = 0; i < S; i++) sum += l->in[0]->out[(n * C + c) * S + i];
        float mean = sum / (B * S);
        for (int n = 0; n < B; n++)
            for (int i = 0; i < S; i++) {
                float x = l->in[0]->out[(n * C + c) * S + i] - mean;
                squares += x * x;
            }
        float var = squares / (B * S), rstd = 1.0f / sqrtf(var + 1e-5f);
        for (int n = 0; n < B; n++)
            for (int i = 0; i < S; i++)
                l->out[(n * C + c) * S + i] = (l->in[0]->out[(n * C + c) * S + i] - mean) * rstd * l->w[c] + l->b[c];
        l->cache[2 * c] = mean;
        l->cache[2 * c + 1] = rstd;
        if (again) continue;
        l->mean[c] += 0.1f * (mean - l->mean[c]);
        l->var[c] += 0.1f * (var - l->var[c]);
    }
}

static void batchnorm_backward(struct layer *l) {
    int C = l->C, S = l->H * l->W;
    for (int c = 0; c < C; c++) {
        float mean = l->cache[2 * c], rstd = l->cache[2 * c + 1], sum = 0, dot = 0;
        for (int n = 0; n < B; n++)
            for (int i = 0; i < S; i++) {
                size_t at = (size_t)(n * C + c) * S + i;
                sum += l->dout[at];
                dot += l->dout[at] * (l->in[0]->out[at] - mean) * rstd;
            }
        l->dw[c] += dot;
        l->db[c] += sum;
        for (int n = 0; n < B; n++)
            for (int i = 0; i < S; i++) {
                size_t at = (size_t)(n * C + c) * S + i;
                float x = (l->in[0]->out[at] - mean) * rstd;
                l->in[0]->dout[at] += l->w[c] * rstd * (l->dout[at] - sum / (B * S) - x * dot / (B * S));
            }
    }
}

static void relu_forward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->in[0]->out[i] > 0 ? l->in[0]->out[i] : 0;
}

static void relu_backward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) l->in[0]->dout[i] += l->out[i] > 0 ? l->dout[i] : 0;
}

static void maxpool_forward(struct layer *l) {
    int W = l->in[0]->W;
    for (size_t i = 0; i < l->n; i++) {
        size_t plane = i / (l->H * l->W), y = i % (l->H * l->W) / l->W, x = i % l->W;
        size_t first = plane * 4 * l->H * l->W + 2 * y * W + 2 * x, best = first;
        for (int k = 1; k < 4; k++) {
            size_t at = first + (k & 1) + (k >> 1) * W;
            if (l->in[0]->out[at] > l->in[0]->out[best]) best = at;
        }
        l->out[i] = l->in[0]->out[best];
        l->cache[i] = (float)best;
    }
}

static void maxpool_backward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) l->in[0]->dout[(size_t)l->cache[i]] += l->dout[i];
}

/* Pixels become rows of channels. */
static void rows_forward(struct layer *l) {
    int C = l->C, T = l->H;
    for (int n = 0; n < B; n++) for (int t = 0; t < T; t++) for (int c = 0; c < C; c++)
        l->out[(n * T + t) * C + c] = l->in[0]->out[(n * C + c) * T + t];
}

static void rows_backward(struct layer *l) {
    int C = l->C, T = l->H;
    for (int n = 0; n < B; n++) for (int t = 0; t < T; t++) for (int c = 0; c < C; c++)
        l->in[0]->dout[(n * C + c) * T + t] += l->dout[(n * T + t) * C + c];
}

static void layernorm_forward(struct layer *l) {
    int C = l->C, R = B * l->H;
    for (int r = 0; r < R; r++) {
        const float *x = l->in[0]->out + r * C;
        float sum = 0, squares = 0;
        for (int c = 0; c < C; c++) sum += x[c];
        for (int c = 0; c < C; c++) squares += (x[c] - sum / C) * (x[c] - sum / C);
        float mean = sum / C, rstd = 1.0f / sqrtf(squares / C + 1e-5f);
        for (int c = 0; c < C; c++) l->out[r * C + c] = (x[c] - mean) * rstd * l->w[c] + l->b[c];
        l->cache[2 * r] = mean;
        l->cache[2 * r + 1] = rstd;
    }
}

static void layernorm_backward(struct layer *l) {
    int C = l->C, R = B * l->H;
    for (int r = 0; r < R; r++) {
        const float *x = l->in[0]->out + r * C, *d = l->dout + r * C;
        float mean = l->cache[2 * r], rstd = l->cache[2 * r + 1], sum = 0, dot = 0;
        for (int c = 0; c < C; c++) {
            float normal = (x[c] - mean) * rstd;
            l->dw[c] += normal * d[c];
            l->db[c] += d[c];
            sum += l->w[c] * d[c] / C;
            dot += l->w[c] * d[c] * normal / C;
        }
        for (int c = 0; c < C; c++)
            l->in[0]->dout[r * C + c] += (l->w[c] * d[c] - sum - (x[c] - mean) * rstd * dot) * rstd;
    }
}

static void linear_forward(struct layer *l) {
    int K = l->in[0]->C, N = l->C, R = B * l->H;
    for (int r = 0; r < R; r++) {
        float *y = l->out + r * N;
        for (int j = 0; j < N; j++) y[j] = l->b[j];
        for (int k = 0; k < K; k++) {
            float x = l->in[0]->out[r * K + k];
            for (int j = 0; j < N; j++) y[j] += x * l->w[k * N + j];
        }
    }
}

static void linear_backward(struct layer *l) {
    int K = l->in[0]->C, N = l->C, R = B * l->H;
    for (int r = 0; r < R; r++) {
        const float *d = l->dout + r * N;
        for (int j = 0; j < N; j++) l->db[j] += d[j];
        for (int k = 0; k < K; k++) {
            float x = l->in[0]->out[r * K + k], sum = 0;
            for (int j = 0; j < N; j++) {
                sum += d[j] * l->w[k * N + j];
                l->dw[k * N + j] += x * d[j];
            }
            l->in[0]->dout[r * K + k] += sum;
        }
    }
}

static void attention_forward(struct layer *l) {
    int C = l->C, T = l->H;
    for (int n = 0; n < B; n++)
        for (int t = 0; t < T; t++) {
            const float *qkv = l->in[0]->out + (size_t)n * T * 3 * C, *q = qkv + t * 3 * C;
            float *a = l->cache + ((size_t)n * T + t) * T, *y = l->out + (n * T + t) * C, max = -1e30f, sum = 0;
            for (int s = 0; s < T; s++) {
                a[s] = 0;
                for (int c = 0; c < C; c++) a[s] += q[c] * qkv[s * 3 * C + C + c];
                a[s] /= sqrtf((float)C);
                if (a[s] > max) max = a[s];
            }
            for (int s = 0; s < T; s++) sum += a[s] = expf(a[s] - max);
            for (int c = 0; c < C; c++) y[c] = 0;
            for (int s = 0; s < T; s++) {
                a[s] /= sum;
                for (int c = 0; c < C; c++) y[c] += a[s] * qkv[s * 3 * C + 2 * C + c];
            }
        }
}

static void attention_backward(struct layer *l) {
    int C = l->C, T = l->H;
    for (int n = 0; n < B; n++)
        for (int t = 0; t < T; t++) {
            const float *qkv = l->in[0]->out + (size_t)n * T * 3 * C, *q = qkv + t * 3 * C;
            float *dqkv = l->in[0]->dout + (size_t)n * T * 3 * C, *dq = dqkv + t * 3 * C;
            const float *a = l->cache + ((size_t)n * T + t) * T, *d = l->dout + (n * T + t) * C;
            float da[256], dot = 0;
            for (int s = 0; s < T; s++) {
                da[s] = 0;
                for (int c = 0; c < C; c++) {
                    da[s] += d[c] * qkv[s * 3 * C + 2 * C + c];
                    dqkv[s * 3 * C + 2 * C + c] += a[s] * d[c];
                }
                dot += a[s] * da[s];
            }
            for (int s = 0; s < T; s++) {
                float g = a[s] * (da[s] - dot) / sqrtf((float)C);
                for (int c = 0; c < C; c++) {
                    dq[c] += g * qkv[s * 3 * C + C + c];
                    dqkv[s * 3 * C + C + c] += g * q[c];
                }
            }
        }
}

static void add_forward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) l->out[i] = l->in[0]->out[i] + l->in[1]->out[i];
}

static void add_backward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) { l->in[0]->dout[i] += l->dout[i]; l->in[1]->dout[i] += l->dout[i]; }
}

static void gelu_forward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) {
        float x = l->in[0]->out[i];
        l->out[i] = 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    }
}

static void gelu_backward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) {
        float x = l->in[0]->out[i], t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
        float slope = 0.79788456f * (1.0f + 0.134145f * x * x);
        l->in[0]->dout[i] += l->dout[i] * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
    }
}

static void dropout_forward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) {
        l->cache[i] = uniform() < 0.1f ? 0.0f : 1.0f / 0.9f;
        l->out[i] = l->in[0]->out[i] * l->cache[i];
    }
}

static void dropout_backward(struct layer *l) {
    for (size_t i = 0; i < l->n; i++) l->in[0]->dout[i] += l->dout[i] * l->cache[i];
}

static void mean_forward(struct layer *l) {
    int C = l->C, T = l->in[0]->H;
    for (int n = 0; n < B; n++)
        for (int c = 0; c < C; c++) {
            float sum = 0;
            for (int t = 0; t < T; t++) sum += l->in[0]->out[(n * T + t) * C + c];
            l->out[n * C + c] = sum / T;
        }
}

static void mean_backward(struct layer *l) {
    int C = l->C, T = l->in[0]->H;
    for (int n = 0; n < B; n++) for (int t = 0; t < T; t++) for (int c = 0; c < C; c++)
        l->in[0]->dout[(n * T + t) * C + c] += l->dout[n * C + c] / T;
}

static void loss_forward(struct layer *l) {
    int V = l->in[0]->C;
    l->out[0] = 0;
    for (int n = 0; n < B; n++) {
        const float *x = l->in[0]->out + n * V;
        float sum = 0;
        for (int v = 0; v < V; v++) sum += l->cache[n * V + v] = expf(x[v]);
        for (int v = 0; v < V; v++) l->cache[n * V + v] /= sum;
        l->out[0] -= logf(l->cache[n * V + labels[n]]) / B;
    }
}

static void loss_backward(struct layer *l) {
    int V = l->in[0]->C;
    for (int n = 0; n < B; n++)
        for (int v = 0; v < V; v++)
            l->in[0]->dout[n * V + v] += l->dout[0] * (l->cache[n * V + v] - (v == labels[n])) / B;
}

/* -- the network -- */

static float *floats(size_t n) { return n ? (float *)calloc(n, sizeof(float)) : NULL; }

static struct layer *add(const char *kind, void (*forward)(struct layer *), void (*backward)(struct layer *),
                         struct layer *a, struct layer *b, int C, int H, int W, size_t n_w, size_t n_b, size_t n_cache) {
    static char names[MAX_LAYERS][16];
    struct layer *l = &layers[n_layers];
    sprintf(names[n_layers], "%s%d", kind, n_layers);
    l->name = names[n_layers++];
    l->kind = kind;
    l->forward = forward; l->backward = backward;
    l->in[0] = a; l->in[1] = b; l->n_in = (a != NULL) + (b != NULL);
    l->C = C; l->H = H; l->W = W;
    l->n = forward == loss_forward ? 1 : (size_t)B * C * H * W;
    l->n_w = n_w; l->n_b = n_b; l->n_cache = n_cache;
    l->w = floats(n_w); l->b = floats(n_b);
    for (size_t i = 0; i < n_w; i++) l->w[i] = n_w == n_b ? 1.0f : (uniform() - 0.5f) * 2.0f * sqrtf((float)n_b / n_w);
    return l;
}

static struct layer *conv(struct layer *x, int O) {
    return add("conv", conv_forward, conv_backward, x, NULL, O, x->H, x->W, (size_t)O * x->C * 9, O, 0);
}
static struct layer *norm(struct layer *x) {
    return add("batchnorm", batchnorm_forward, batchnorm_backward, x, NULL, x->C, x->H, x->W, x->C, x->C, 2 * x->C);
}
static struct layer *relu(struct layer *x) { return add("relu", relu_forward, relu_backward, x, NULL, x->C, x->H, x->W, 0, 0, 0); }
static struct layer *linear(struct layer *x, int N) {
    return add("linear", linear_forward, linear_backward, x, NULL, N, x->H, 1, (size_t)x->C * N, N, 0);
}
static struct layer *dropout(struct layer *x) {
    return add("dropout", dropout_forward, dropout_backward, x, NULL, x->C, x->H, x->W, 0, 0, x->n);
}
static struct layer *layernorm(struct layer *x) {
    return add("layernorm", layernorm_forward, layernorm_backward, x, NULL, x->C, x->H, 1, x->C, x->C, (size_t)2 * B * x->H);
}
static struct layer *plus(struct layer *x, struct layer *y) {
    return add("add", add_forward, add_backward, x, y, x->C, x->H, x->W, 0, 0, 0);
}

static void build(void) {
    struct layer *x = add("input", NULL, NULL, NULL, NULL, 3, 32, 32, 0, 0, 0), *y;
    for (int stage = 0; stage < 2; stage++) {
        for (int k = 0; k < 16 - 10 * stage; k++) x = relu(norm(conv(x, 8 << stage)));
        x = add("maxpool", maxpool_forward, maxpool_backward, x, NULL, x->C, x->H / 2, x->W / 2, 0, 0, x->n / 4);
    }
    x = add("rows", rows_forward, rows_backward, x, NULL, x->C, x->H * x->W, 1, 0, 0, 0);
    for (int block = 0; block < 2; block++) {
        y = linear(layernorm(x), 3 * x->C);
        y = add("attention", attention_forward, attention_backward, y, NULL, x->C, x->H, 1, 0, 0, (size_t)B * x->H * x->H);
        x = plus(x, dropout(linear(y, x->C)));
        y = linear(layernorm(x), 4 * x->C);
        y = add("gelu", gelu_forward, gelu_backward, y, NULL, y->C, y->H, 1, 0, 0, 0);
        x = plus(x, linear(y, x->C));
    }
    x = add("mean", mean_forward, mean_backward, layernorm(x), NULL, x->C, 1, 1, 0, 0, 0);
    x = linear(x, 10);
    add("loss", loss_forward, loss_backward, x, NULL, 1, 1, 1, 0, 0, (size_t)B * 10);
}

static int32_t node_of[MAX_LAYERS], state_of[MAX_LAYERS][4];     /* in the list of operations; of w, b, mean, var */

static int states(const struct layer *l) { return l->forward == batchnorm_forward ? 4 : l->n_w ? 2 : 0; }
static tl_result call(const tl_kernel_call *c, void *user) {
    struct layer *l = user;
    float **place[] = {&l->w, &l->b, &l->mean, &l->var};
    int n = l->n_in;
    for (int i = 0; i < n; i++) { l->in[i]->out = c->inputs[i].host; l->in[i]->dout = c->input_grads[i].host; }
    for (int k = 0; k < states(l); k++) *place[k] = c->inputs[n + k].host;
    if (l->n_w) { l->dw = c->input_grads[n].host; l->db = c->input_grads[n + 1].host; }
    l->out = c->outputs[0].host; l->dout = c->output_grads[0].host;
    l->cache = c->saved.range.bytes ? c->saved.host : c->scratch.host;
    again = c->recompute;
    (c->kind == TL_STEP_BACKWARD ? l->backward : l->forward)(l);
    return TL_OK;
}
static void update(float *w, const float *dw, float *m, size_t n);
static tl_result momentum(const tl_kernel_call *c, void *user) {
    (void)user;
    update(c->outputs[0].host, c->output_grads[0].host, c->outputs[1].host, c->outputs[0].range.bytes / 4);
    return TL_OK;
}
static void keep_rng(tl_random_moment moment, int32_t node, int32_t micro_batch, void *user) {
    static uint64_t kept[3 * MAX_LAYERS], now;
    (void)micro_batch, (void)user;
    if (moment == TL_RANDOM_RECORD) kept[node] = rng;
    if (moment == TL_RANDOM_REPLAY) { now = rng; rng = kept[node]; }
    if (moment == TL_RANDOM_RESUME) rng = now;
}
static int32_t add_state(tl_op *ops, int32_t *count, uint64_t *bytes, const float *w, size_t n) {
    *bytes = 4 * n;
    ops[*count] = (tl_op){.kind = "momentum", .state = TL_STATE_TRAINED, .backward = momentum, .output_bytes = 4 * n,
                          .moments = bytes, .moment_count = 1, .initial = w, .bwd_cost = n};
    if (!w) ops[*count] = (tl_op){.kind = "running", .state = TL_STATE_STATISTIC, .output_bytes = 4 * n};
    return (*count)++;
}
static tl_run *open_run(double budget, tl_run_figures *figures) {
    static tl_op ops[3 * MAX_LAYERS]; static tl_tensor in[MAX_LAYERS][6]; static uint64_t bytes[MAX_LAYERS][4];
    static tl_variable changed = {-1, TL_VARIABLE_RANDOM, &rng, sizeof rng, NULL};
    static tl_backend cpu; static tl_env env;
    tl_cpu_backend_desc memory = {0}; tl_run *run; int32_t count = 0;
    tl_run_desc desc = {.backend = &cpu, .variables = &changed, .variable_count = 1, .random = keep_rng, .figures = figures};
    for (int i = 0; i < n_layers; i++) {
        struct layer *l = &layers[i]; int n = l->n_in; tl_op *op;
        for (int k = 0; k < states(l); k++)
            in[i][n + k].node = state_of[i][k] = add_state(ops, &count, &bytes[i][k], k ? k > 1 ? NULL : l->b : l->w, k ? l->n_b : l->n_w);
        for (int k = 0; k < n; k++) in[i][k].node = node_of[l->in[k] - layers];
        node_of[i] = count; op = &ops[count++];
        *op = (tl_op){.name = l->name, .kind = l->kind, .output_bytes = 4 * l->n, .keep = i == n_layers - 1};
        if (!i) continue;
        op->forward = op->backward = call; op->user = l; op->inputs = in[i]; op->input_count = n + states(l);
        op->needs = strstr("attention gelu", l->kind) ? "in" : i == 1 ? "in0" : strstr("batchnorm layernorm conv linear", l->kind) ? "in0,in1" : l->forward == relu_forward ? "out" : "none";
        op->saved_bytes = op->fwork_bytes = 4 * l->n_cache; op->swork_bytes = TL_SCRATCH_NONE;
        op->fwd_cost = l->n * (l->n_b ? 1 + l->n_w / l->n_b : 1); op->bwd_cost = 2 * op->fwd_cost;
    }
    if (budget > 1) desc.budget_bytes = (uint64_t)budget; else desc.budget_ratio = budget;
    if (tl_init_cpu_backend(&env, &memory, &cpu) || tl_init_op_run(&env, &desc, ops, count, &run)) { fprintf(stderr, "%s\n", env.error.text); exit(1); }
    for (int i = 0; i < n_layers; i++) { free(layers[i].w); free(layers[i].b); }
    return run;
}

static float train_step(tl_run *run, const float *images, int check) {
    tl_tensor input = {0, 0}, result = {node_of[n_layers - 1], 0};
    tl_rehearsal found = {0}; char text[200]; float loss = 0;
    if (tl_write_tensor(run, input, images, 4 * layers[0].n) || (check && tl_rehearse_run(run, NULL, &found))) exit(1);
    for (int i = 0; i < found.finding_count; i++)
        if (tl_print_finding(tl_find_run_graph(run), &found.findings[i], text, sizeof text)) fprintf(stderr, "%s\n", text);
    if (tl_run_plan(run) || tl_read_tensor(run, result, &loss, sizeof loss)) exit(1);
    return loss;
}

static void update(float *w, const float *dw, float *m, size_t n) {
    for (size_t i = 0; i < n; i++) {
        m[i] = 0.9f * m[i] + dw[i];
        w[i] -= 0.01f * m[i];
    }
}

static uint64_t checksum(uint64_t sum, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    struct timespec start, end;
    struct rusage usage;
    uint64_t sum = 14695981039346656037u;
    float *images;
    tl_run_figures figures; tl_run *run;
    build();
    run = open_run(argc > 2 ? atof(argv[2]) : 1, &figures);
    images = floats(layers[0].n);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int step = 0; step < steps; step++) {
        for (size_t i = 0; i < layers[0].n; i++) images[i] = uniform() - 0.5f;
        for (int n = 0; n < B; n++) {       /* something to learn: a bright square, whose place is the label */
            labels[n] = (int)(uniform() * 10) % 10;
            for (int i = 0; i < 36; i++) images[n * 3072 + (labels[n] * 3 + i / 6) * 32 + i % 6] += 2.0f;
        }
        printf("step %d loss %.9g\n", step, train_step(run, images, argc > 3 && !step));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (int i = 1; i < n_layers; i++)
        for (int k = 0; k < states(&layers[i]); k++) {
            size_t n = k ? layers[i].n_b : layers[i].n_w; float *w = floats(n);
            if (tl_read_tensor(run, (tl_tensor){state_of[i][k], 0}, w, 4 * n)) return 1;
            sum = checksum(sum, w, n); free(w);
        }
    getrusage(RUSAGE_SELF, &usage);
    printf("weights %016llx\n", (unsigned long long)sum);
    fprintf(stderr, "%.0f of %.0f bytes, least %.0f; ", (double)figures.budget_bytes, (double)figures.keep_all_bytes, (double)figures.least_bytes);
    fprintf(stderr, "%.1f ms a step, %ld KiB\n", ((double)(end.tv_sec - start.tv_sec) * 1e3 +
            (double)(end.tv_nsec - start.tv_nsec) / 1e6) / steps, usage.ru_maxrss);
    return 0;
}
