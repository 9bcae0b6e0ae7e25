// Calls that fail, in every section of the library, and what their errors are: compiled twice, see tests/build/no_error_text.c.
#include <string.h>

#include "provoke.h"

#ifndef PROVOKE
#define PROVOKE provoke_with_text
#endif
#define TL_STRATEGY_STATIC
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

typedef struct provoking {
    provoked_list *list;
    tl_env         env;
    int            logged;
} provoking;

static void count_log(void *user, const char *text) { (void)text; ++*(int *)user; }

static void note(provoking *p, const char *call, int failed) {
    provoked *item;
    if (!failed) { p->list->unexpected++; return; }
    if (p->list->count == PROVOKED_MOST) return;
    item = &p->list->items[p->list->count++];
    item->call = call;
    item->code = (int)p->env.error.code;
    item->site = p->env.error.site;
    item->values[0] = p->env.error.values[0];
    item->values[1] = p->env.error.values[1];
    item->has_text = p->env.error.text[0] != 0;
    item->logged = p->logged;
}

// The env is of the call alone: nothing of an earlier error is taken for its own.
#define FAILS(call) \
    do { memset(&p->env.error, 0, sizeof p->env.error); p->logged = 0; note(p, #call, (call) != TL_OK); } while (0)

static tl_strategy sound_strategy(void) {
    tl_strategy s = tl_strategy_training();
    s.gradient = tl_gradient_full();
    return s;
}
#define STRATEGY(change) do { tl_strategy s = sound_strategy(); change; FAILS(tl_check_strategy(&p->env, &s)); } while (0)

static void provoke_core(provoking *p) {
    tl_env arena;
    char memory[8];
    memset(&arena, 0, sizeof arena);
    arena.log = count_log;
    arena.user = &p->logged;
    p->logged = 0;
    if (!tl_init_arena(&arena, memory, sizeof memory)) p->list->unexpected++;
    p->env.error = arena.error;
    note(p, "tl_init_arena", 1);
    FAILS(tl_record_error(&p->env, TL_ERROR_BACKEND, "my_copy", "100 % of it failed"));
}

static void provoke_strategy(provoking *p) {
    tl_strategy made;
    static const char *const texts[] = { "", "{", "[]", "{\"mode\" 1}", "{\"mode\":\"Fast\"}", "{\"mode\":\"Eager\",\"mode\":\"Eager\"}",
        "{\"fusion\":2}", "{\"mode\":\"Eager\"} x", "{\"gradient\":{\"checkpoint_interval\":-1}}", "{\"mode\":\"\n\"}", "{\"mode\":\"Ea" };
    size_t i;
    STRATEGY(s.mode = (tl_mode)9);
    STRATEGY(s.gradient.computes = 2);
    STRATEGY(s.gradient.checkpointed = 2);
    STRATEGY(s.gradient.computes = 0; s.gradient.checkpointed = 1);
    STRATEGY(s.gradient.checkpoint_interval = 2);
    STRATEGY(s.gradient = tl_gradient_none(); s.gradient.accumulation_steps = 2);
    STRATEGY(s.precision = (tl_precision)99);
    STRATEGY(s.memory = (tl_memory)99);
    STRATEGY(s.parallelism = tl_parallelism_data(0));
    STRATEGY(s.parallelism = tl_parallelism_model(0));
    STRATEGY(s.parallelism = tl_parallelism_pipeline(0));
    STRATEGY(s.parallelism.kind = (tl_parallelism_kind)99);
    STRATEGY(s.enable_fusion = 7);
    STRATEGY(s.enable_profiling = 7);
    FAILS(tl_recommend_quick(&p->env, 0, 1, 1, 1, &made));
    FAILS(tl_recommend_quick(&p->env, 1, 0, 1, 1, &made));
    FAILS(tl_recommend_quick(&p->env, 1, 1, 0, 1, &made));
    FAILS(tl_recommend_quick(&p->env, UINT64_MAX, 2, 1, 1, &made));
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        FAILS(tl_parse_strategy_json(&p->env, texts[i], strlen(texts[i]), &made));
    FAILS(tl_parse_strategy(&p->env, "Execution", 9, &made));
    FAILS(tl_parse_strategy(&p->env, "Execution Strategy:\n- Mode: Fast\n", 34, &made));
}

static void provoke_graph(provoking *p) {
    static const char *const lines[] = { "tlg 2\n", "node\n", "tlg 1\nedge\n", "tlg 1\nbatch 0\n", "tlg 1\n\001\n", "tlg 1\n",
        "tlg 1\nnode 1 a op\n", "tlg 1\nnode 0 a\n", "tlg 1\nnode 0 a op fast=1\n", "tlg 1\nnode 0 a op fwd=1 fwd=1\n",
        "tlg 1\nnode 0 a op fwd=1\n", "tlg 1\nnode 0 a op fwd=x bwd=1 out=1 needs=none in=-\n",
        "tlg 1\nnode 0 a op fwd=1 bwd=1 out=1,x needs=none in=-\n", "tlg 1\nnode 0 a op fwd=1 bwd=1 out=1 needs=none in=y\n",
        "tlg 1\nnode 0 a op keep=1 fwd=1 bwd=1 out=1 needs=none in=-\n", "tlg 1\nnode 0 a op fwd bwd=1 out=1 needs=none in=-\n",
        "tlg 1\nnode 0 a op fwd=1 bwd=1 out=1 needs=none in=- grad=yes\n",
        "tlg 1\nnode 0 a op fwd=1 bwd=1 out=1 needs=none in=- layer=99999999999\n",
        "tlg 1\nnode 0 a op fwd=1 bwd=1 out=1 needs=none in=0\n" };
    uint64_t bytes = 4, base;
    tl_tensor input = { -3, 2 }, found;
    tl_graph graph;
    tl_node_desc node;
    tl_chain_desc chain;
    tl_device device;
    size_t i;
    memset(&chain, 0, sizeof chain);
    memset(&device, 0, sizeof device);
    tl_init_graph(&graph);
    FAILS(tl_check_graph(&p->env, &graph));
    FAILS(tl_add_chain(&p->env, &graph, &chain));
#define NODE(change) \
    do { memset(&node, 0, sizeof node); node.output_bytes = &bytes; node.output_count = 1; change; \
         FAILS(tl_add_node(&p->env, &graph, &node, NULL)); } while (0)
    NODE(node.name = "a b");
    NODE(node.op = "a=b");
    NODE(node.unit = "#");
    NODE(node.output_count = 0);
    NODE(node.input_count = -1);
    NODE(node.inputs = &input; node.input_count = 1);
    NODE(node.needs = "all");
    NODE(node.inplace = 1);
    NODE(node.layer = -1);
    NODE(node.keep = 2);
    NODE(node.op = "input"; node.fwd_cost = 1);
    NODE(node.op = "input"; node.param_bytes = 1);
    NODE(node.no_grad = 1; node.bwd_cost = 1);
    NODE(node.fwork_bytes = UINT64_MAX);
    chain.layer_count = 2;
    if (tl_add_chain(&p->env, &graph, &chain)) p->list->unexpected++;
    FAILS(tl_add_view(&p->env, &graph, "v", input, NULL));
    FAILS(tl_find_tensor(&p->env, &graph, "no such", &found));
    FAILS(tl_find_base_bytes(&p->env, &graph, -1, 0, &base));
    tl_free_graph(&p->env, &graph);
    device.flops_per_second[0] = -1;
    FAILS(tl_check_device(&p->env, &device));
    device.flops_per_second[0] = 0;
    device.alignment_bytes = 3;
    FAILS(tl_check_device(&p->env, &device));
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        FAILS(tl_parse_graph(&p->env, lines[i], strlen(lines[i]), &graph));
        tl_free_graph(&p->env, &graph);
    }
    FAILS(tl_read_graph(&p->env, "/nonexistent/graph.tlg", &graph));
}

static void provoke_layers(provoking *p) {
    tl_shape shape;
    tl_value x, y;
    tl_layer_desc desc;
    tl_graph graph;
    tl_fusion_desc fusion;
    tl_fusion_plan fused;
    memset(&shape, 0, sizeof shape);
    memset(&desc, 0, sizeof desc);
    memset(&fusion, 0, sizeof fusion);
    tl_init_graph(&graph);
    shape.batch = 1; shape.channels = 3; shape.height = 4; shape.width = 4;
    FAILS(tl_add_input(&p->env, &graph, "x", shape, (tl_precision)99, &x));
    if (tl_add_input(&p->env, &graph, "x", shape, TL_PRECISION_SINGLE, &x)) p->list->unexpected++;
    desc.heads = 2;
    FAILS(tl_add_dense(&p->env, &graph, &desc, x, &y));
    desc.heads = 0; desc.channels = 4; desc.groups = 2;
    FAILS(tl_add_conv2d(&p->env, &graph, &desc, x, &y));
    fusion.graph = &graph;
    fusion.block_bytes = 3;
    FAILS(tl_plan_fusion(&p->env, &fusion, &fused));
    tl_free_graph(&p->env, &graph);
}

static void provoke_steps(provoking *p, const tl_graph *graph) {
    static const char *const schedules[] = { "F 9", "B 1", "F 1\nF 1", "D 1", "I 1", "S 1", "L 1", "F 1\nO 1\nO 1", "F 1\nB 1",
        "F 1\nF 2\nB 1", "DH 1.0", "F 0", "D 1.7", "X 1", "W 1.0", "DS 1", "F 1\nD 1\nF 2", "" };
    static const char *const wrong[] = { "G 1", "F x", "D 1.x", "C 1 f64", "F 1 2" };
    tl_simulate_desc desc;
    tl_report report;
    tl_plan plan;
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = &plan;
    for (i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        if (tl_parse_schedule(&p->env, schedules[i], strlen(schedules[i]), &plan)) p->list->unexpected++;
        FAILS(tl_simulate_plan(&p->env, &desc, &report));
        tl_free_plan(&p->env, &plan);
    }
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) FAILS(tl_parse_schedule(&p->env, wrong[i], strlen(wrong[i]), &plan));
    memset(&plan, 0, sizeof plan);
    plan.repeat_count = -1;
    FAILS(tl_simulate_plan(&p->env, &desc, &report));
}

static void provoke_plans(provoking *p, const tl_graph *graph) {
    tl_checkpoint_config config = tl_checkpoint_uniform(0);
    uint64_t layers[] = { 0, 99 };
    static const char json[] = "{\"strategy\":{\"Uniform\":{}}}";
    tl_plan plan;
    FAILS(tl_plan_revolve(&p->env, graph, 0, &plan));
    FAILS(tl_check_checkpoint_config(&p->env, &config, 4));
    config = tl_checkpoint_selective(layers, 2);
    FAILS(tl_check_checkpoint_config(&p->env, &config, 4));
    layers[1] = 0;
    FAILS(tl_check_checkpoint_config(&p->env, &config, 4));
    FAILS(tl_checkpoint_dynamic(&p->env, 4, 2.0, &config));
    if (tl_checkpoint_dynamic(&p->env, 16, 0.01, &config)) p->list->unexpected++;
    FAILS(tl_plan_checkpoints(&p->env, graph, &config, &plan));
    FAILS(tl_parse_checkpoint_config_json(&p->env, json, sizeof json - 1, &config));
    tl_free_checkpoint_config(&p->env, &config);
}

static void provoke_remat(provoking *p, const tl_graph *graph) {
    tl_remat_desc remat;
    tl_chain_plan_desc chain;
    tl_policy_desc policy;
    tl_plan plan;
    memset(&remat, 0, sizeof remat);
    memset(&chain, 0, sizeof chain);
    memset(&policy, 0, sizeof policy);
    remat.graph = chain.graph = policy.graph = graph;
    remat.live = chain.live = policy.live = 1;
    remat.inference = 2;
    FAILS(tl_plan_remat(&p->env, &remat, &plan, NULL));
    remat.inference = 0;
    remat.budget_bytes = 2;
    FAILS(tl_plan_remat(&p->env, &remat, &plan, NULL));
    remat.base_bytes = 100;
    FAILS(tl_plan_remat(&p->env, &remat, &plan, NULL));
    chain.budget_bytes = 2;
    FAILS(tl_plan_chain(&p->env, &chain, &plan, NULL));
    policy.policy.kind = TL_POLICY_COUNT;
    FAILS(tl_plan_policy(&p->env, &policy, &plan));
    policy.policy.kind = TL_POLICY_CHEN_SQRT;
    policy.budget_bytes = 2;
    FAILS(tl_plan_policy(&p->env, &policy, &plan));
}

static tl_result refuse_loss(int32_t node, tl_scheme scheme, double *loss, void *user) {
    (void)node; (void)scheme; (void)loss; (void)user;
    return TL_ERROR_KERNEL;
}

static void provoke_precision(provoking *p, const tl_graph *graph) {
    tl_quantization q[2];
    tl_observer_desc observer;
    tl_observer *made;
    tl_precision_desc precision;
    tl_precision_plan plan;
    tl_sensitivity_desc sensitivity;
    tl_multiplier multiplier;
    float from[2] = { 1, 2 }, least, most;
    int8_t to[2];
    double losses[64 * 16];
    memset(q, 0, sizeof q);
    memset(&observer, 0, sizeof observer);
    memset(&precision, 0, sizeof precision);
    memset(&sensitivity, 0, sizeof sensitivity);
    FAILS(tl_find_quantization(&p->env, TL_RANGE_AFFINE, 2, 1, 0, 255, &q[0]));
    FAILS(tl_find_quantization(&p->env, TL_RANGE_AFFINE, 0, 1, 5, 5, &q[0]));
    q[0].scale = 1; q[0].low = -128; q[0].high = 127;
    q[1] = q[0];
    q[1].high = 4000;
    FAILS(tl_quantize(&p->env, q, 2, 1, TL_FORMAT_I8, from, to, 2));
    FAILS(tl_quantize(&p->env, q, 0, 1, TL_FORMAT_I8, from, to, 2));
    FAILS(tl_find_multiplier(&p->env, 1, 0, 1, &multiplier));
    observer.rate = 2;
    FAILS(tl_init_observer(&p->env, &observer, &made));
    observer.rate = 0;
    FAILS(tl_measure_range(&p->env, &observer, from, 0, &least, &most));
    precision.graph = graph;
    precision.criterion = TL_CRITERION_COUNT;
    FAILS(tl_plan_precision(&p->env, &precision, &plan));
    precision.criterion = TL_CRITERION_CUSTOM;
    precision.least_speedup = 1e9;
    FAILS(tl_plan_precision(&p->env, &precision, &plan));
    precision.least_speedup = 0;
    precision.loss_limit = 0;
    precision.schemes = 2;
    FAILS(tl_plan_precision(&p->env, &precision, &plan));
    sensitivity.graph = graph;
    FAILS(tl_measure_sensitivity(&p->env, &sensitivity, losses));
    sensitivity.evaluate = refuse_loss;
    FAILS(tl_measure_sensitivity(&p->env, &sensitivity, losses));
}

static tl_result forward(const tl_kernel_call *call, void *user) { (void)call; return *(tl_result *)user; }

static void provoke_run(provoking *p, const tl_graph *graph, const tl_backend *backend) {
    static const char steps[] = "F 1\nF 2\nF 3\nF 4\nD 4\nB 4\nD 3\nB 3\nD 2\nB 2\nD 1\nB 1\n";
    tl_result returned = TL_OK;
    tl_tensor tensor = { 1, 0 };
    tl_run_step step;
    tl_kernel kernel;
    tl_run_desc desc;
    tl_plan plan;
    tl_run *run;
    memset(&kernel, 0, sizeof kernel);
    memset(&desc, 0, sizeof desc);
    memset(&step, 0, sizeof step);
    kernel.op = "layer";
    kernel.forward = kernel.backward = forward;
    kernel.user = &returned;
    desc.graph = graph;
    desc.backend = backend;
    FAILS(tl_init_run(&p->env, &desc, &run));
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.inference = 2;
    FAILS(tl_init_run(&p->env, &desc, &run));
    desc.inference = 0;
    desc.budget_bytes = 2;
    FAILS(tl_init_run(&p->env, &desc, &run));
    if (tl_parse_schedule(&p->env, steps, sizeof steps - 1, &plan)) p->list->unexpected++;
    desc.plan = &plan;
    FAILS(tl_init_run(&p->env, &desc, &run));
    desc.budget_bytes = 0;
    desc.eviction = TL_EVICTION_COUNT;
    FAILS(tl_init_run(&p->env, &desc, &run));
    desc.eviction = (tl_eviction)0;
    if (tl_init_run(&p->env, &desc, &run)) { p->list->unexpected++; tl_free_plan(&p->env, &plan); return; }
    FAILS(tl_read_tensor(run, tensor, &tensor, 99));
    FAILS(tl_read_tensor(run, tensor, &tensor, 1));
    FAILS(tl_write_tensor(run, tensor, &tensor, 1));
    FAILS(tl_run_step_kernel(run, &step));
    FAILS(tl_run_forward(run, 0));
    FAILS(tl_start_pass(run, -1));
    returned = TL_ERROR_MISMATCH;
    FAILS(tl_run_plan(run));
    tl_free_run(run);
    tl_free_plan(&p->env, &plan);
}

static void provoke_manager(provoking *p, const tl_backend *backend) {
    tl_manager_desc desc;
    tl_save_desc save;
    tl_manager *manager;
    char data[64];
    memset(&desc, 0, sizeof desc);
    memset(&save, 0, sizeof save);
    memset(data, 1, sizeof data);
    desc.policy = tl_policy_every_n(0);
    FAILS(tl_init_manager(&p->env, backend, &desc, &manager));
    desc.policy = tl_policy_keep_all();
    desc.checkpoint_capacity = -1;
    FAILS(tl_init_manager(&p->env, backend, &desc, &manager));
    desc.checkpoint_capacity = 0;
    desc.device_budget_bytes = 32;
    if (tl_init_manager(&p->env, backend, &desc, &manager)) { p->list->unexpected++; return; }
    save.data = data;
    save.key.node = -1;
    FAILS(tl_save_checkpoint(&p->env, manager, &save));
    save.key.node = 3;
    save.bytes = 33;
    FAILS(tl_save_checkpoint(&p->env, manager, &save));
    save.bytes = 16;
    FAILS(tl_take_checkpoint(&p->env, manager, save.key, data, 16));
    if (tl_save_checkpoint(&p->env, manager, &save)) p->list->unexpected++;
    FAILS(tl_take_checkpoint(&p->env, manager, save.key, data, 17));
    FAILS(tl_release_checkpoint(&p->env, manager, save.key));
    save.key.step = 7;
    FAILS(tl_take_checkpoint(&p->env, manager, save.key, data, 16));
    tl_free_manager(manager);
}

static void provoke_backend(provoking *p, const tl_graph *graph) {
    tl_cpu_backend_desc desc;
    tl_measure_device_desc measure;
    tl_backend backend;
    tl_device device;
    tl_heap *heap;
    tl_range range = { 77, 0, 8 };
    uint64_t block;
    memset(&desc, 0, sizeof desc);
    memset(&measure, 0, sizeof measure);
    desc.alignment_bytes = 3;
    FAILS(tl_init_cpu_backend(&p->env, &desc, &backend));
    desc.alignment_bytes = 0;
    desc.memory_bytes = 8;
    FAILS(tl_init_cpu_backend(&p->env, &desc, &backend));
    FAILS(tl_init_heap(&p->env, 64, 3, &heap));
    FAILS(tl_init_heap(&p->env, 2, 4, &heap));
    memset(&desc, 0, sizeof desc);
    desc.capacity_bytes[TL_TIER_DEVICE] = 1 << 20;
    if (tl_init_cpu_backend(&p->env, &desc, &backend)) { p->list->unexpected++; return; }
    FAILS(backend.add_block(backend.self, (tl_tier)9, 8, &block));
    FAILS(backend.claim(backend.self, range));
    FAILS(backend.free_block(backend.self, 77));
    measure.sample_count = 99;
    FAILS(tl_measure_device(&p->env, &backend, &measure, &device));
    provoke_manager(p, &backend);
    provoke_run(p, graph, &backend);
    tl_free_cpu_backend(&p->env, &backend);
}

static tl_result take_nothing(void *user, const char *text, size_t length) {
    (void)user; (void)text; (void)length;
    return TL_ERROR_IO;
}

static void provoke_trace(provoking *p, const tl_graph *graph) {
    tl_memory_curve curve;
    tl_sink sink;
    tl_trace *trace;
    tl_file_sink file;
    tl_plan plan;
    memset(&curve, 0, sizeof curve);
    memset(&plan, 0, sizeof plan);
    sink.write = take_nothing;
    sink.user = NULL;
    FAILS(tl_init_trace(&p->env, 0, &trace));
    FAILS(tl_write_memory_svg(&p->env, &curve, 0, NULL, sink));
    FAILS(tl_write_memory_svg(&p->env, &curve, 1, NULL, sink));
    FAILS(tl_init_file_sink(&p->env, "", &file, &sink));
    sink.write = take_nothing;
    FAILS(tl_write_plan_table(&p->env, graph, &plan, "a b", sink));
    if (tl_plan_keep_all(&p->env, graph, 0, &plan)) p->list->unexpected++;
    FAILS(tl_write_plan_table(&p->env, graph, &plan, "table", sink));
    tl_free_plan(&p->env, &plan);
}

void PROVOKE(provoked_list *list) {
    provoking state, *p = &state;
    tl_chain_desc chain;
    tl_graph graph;
    memset(list, 0, sizeof *list);
    memset(p, 0, sizeof *p);
    p->list = list;
    p->env.log = count_log;
    p->env.user = &p->logged;
    list->size = sizeof(tl_error);
    list->code_at = offsetof(tl_error, code);
    list->site_at = offsetof(tl_error, site);
    list->values_at = offsetof(tl_error, values);
    list->text_at = offsetof(tl_error, text);
    list->env_size = sizeof(tl_env);
    provoke_core(p);
    provoke_strategy(p);
    provoke_graph(p);
    provoke_layers(p);
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 4;
    chain.input_bytes = 1;
    if (tl_add_chain(&p->env, &graph, &chain)) list->unexpected++;
    provoke_steps(p, &graph);
    provoke_remat(p, &graph);
    provoke_precision(p, &graph);
    provoke_backend(p, &graph);
    provoke_trace(p, &graph);
    tl_free_graph(&p->env, &graph);
    chain.layer_count = 16;
    if (tl_add_chain(&p->env, &graph, &chain)) list->unexpected++;
    provoke_plans(p, &graph);
    tl_free_graph(&p->env, &graph);
}
