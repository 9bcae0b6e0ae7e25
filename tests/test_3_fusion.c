// [3] GRAPH: fusion of elementwise chains, and runs that show that it changes no bit.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_graph.h"
#include "support/texts.h"

static tl_fusion_desc fusion_desc(const tl_graph *graph) {
    tl_fusion_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    return desc;
}

static void fused(const tl_fusion_desc *desc, tl_fusion_plan *plan) {
    tl_env env = silent_env();
    tl_result result = tl_plan_fusion(&env, desc, plan);
    if (result) print_error("%s\n", env.error.text);
    assert_int_equal(result, TL_OK);
    assert_int_equal(tl_check_graph(&env, &plan->graph), TL_OK);
}

// Fuse what desc says about this text, and compare with the other text.
static void assert_fuses(tl_fusion_desc desc, const char *text, const char *expected) {
    tl_graph graph = graph_of(text);
    tl_fusion_plan plan;
    char out[4096];
    desc.graph = &graph;
    fused(&desc, &plan);
    assert_true(tl_print_graph(&plan.graph, out, sizeof out) < sizeof out);
    assert_written(out, expected);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static tl_fusion_desc plain(void) { return fusion_desc(NULL); }

// -- which nodes --

static void a_chain_becomes_one_node(void **state) {
    tl_fusion_desc desc = plain();
    (void)state;
    // gelu reads its input, the sum: backward makes it again from what add reads. 5 + 5 for the forward of add.
    assert_fuses(desc,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
        "node 3 c gelu fwd=7 bwd=8 out=640 needs=in in=2 fwork=3\n"
        "node 4 d dropout fwd=1 bwd=2 out=640 needs=none in=3 bwork=4\n"
        "node 5 e loss fwd=1 bwd=1 out=4 needs=in in=4\n",
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 d fused fwd=13 bwd=21 out=640 needs=in in=1,0 fwork=1283 bwork=1924\n"
        "node 3 e loss fwd=1 bwd=1 out=4 needs=in in=2\n");
    desc.block_bytes = 128;
    desc.op = "chain";
    // relu reads its output, which is that of the node: nothing is made again.
    assert_fuses(desc,
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
        "node 3 c relu fwd=7 bwd=8 out=640 needs=out in=2 keep\n",
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 a conv fwd=9 bwd=9 out=640 needs=in in=0\n"
        "node 2 c chain fwd=12 bwd=14 out=640 needs=out in=1,0 fwork=128 bwork=128 keep\n");
}

#define HEAD                                                    \
    "tlg 1\n"                                                   \
    "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"      \
    "node 1 a conv fwd=9 bwd=9 out=640 needs=none in=0\n"

// What backward reads must not grow: relu keeps one tensor, to make it again takes two that nobody keeps.
static void backward_reads_no_more_than_before(void **state) {
    tl_fusion_desc desc = plain();
    const char *text = HEAD
        "node 2 b conv fwd=9 bwd=9 out=640 needs=none in=0\n"
        "node 3 c add fwd=5 bwd=6 out=640 needs=none in=1,2\n"
        "node 4 d relu fwd=7 bwd=8 out=640 needs=out in=3\n"
        "node 5 e scale fwd=1 bwd=2 out=640 needs=none in=4\n";
    (void)state;
    assert_fuses(desc, text, HEAD
        "node 2 b conv fwd=9 bwd=9 out=640 needs=none in=0\n"
        "node 3 d fused fwd=12 bwd=14 out=640 needs=out in=1,2 fwork=640 bwork=640\n"
        "node 4 e scale fwd=1 bwd=2 out=640 needs=none in=3\n");
    desc.inference = 1;
    assert_fuses(desc, text, HEAD
        "node 2 b conv fwd=9 bwd=9 out=640 needs=none in=0\n"
        "node 3 e fused fwd=13 bwd=28 out=640 needs=in in=1,2 fwork=1280 bwork=2560\n");
    // Where one of the two is kept in any case, the other one takes the place of what is made again.
    assert_fuses(plain(), HEAD
        "node 2 b conv fwd=9 bwd=9 out=640 needs=out in=0\n"
        "node 3 c add fwd=5 bwd=6 out=640 needs=none in=1,2\n"
        "node 4 d relu fwd=7 bwd=8 out=640 needs=out in=3\n"
        "node 5 e scale fwd=1 bwd=2 out=640 needs=none in=4\n", HEAD
        "node 2 b conv fwd=9 bwd=9 out=640 needs=out in=0\n"
        "node 3 e fused fwd=13 bwd=28 out=640 needs=in in=1,2 fwork=1280 bwork=2560\n");
}

// Node 3 reads what the chain reads, between its members: its gradient would come after theirs.
static void gradients_keep_their_order(void **state) {
    tl_fusion_desc desc = plain();
    const char *text = HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
        "node 3 c conv fwd=9 bwd=9 out=640 needs=none in=1\n"
        "node 4 d scale fwd=1 bwd=1 out=640 needs=none in=2\n"
        "node 5 e conv fwd=9 bwd=9 out=640 needs=none in=3,4,1\n";
    const char *frozen = HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
        "node 3 c conv fwd=9 bwd=0 out=640 needs=none in=1 grad=no\n"
        "node 4 d scale fwd=1 bwd=1 out=640 needs=none in=2\n";
    (void)state;
    assert_fuses(desc, text, text);
    desc.inference = 1;
    assert_fuses(desc, text, HEAD
        "node 2 c conv fwd=9 bwd=9 out=640 needs=none in=1\n"
        "node 3 d fused fwd=2 bwd=2 out=640 needs=none in=1 fwork=640 bwork=640\n"
        "node 4 e conv fwd=9 bwd=9 out=640 needs=none in=2,3,1\n");
    desc.inference = 0;
    assert_fuses(desc, frozen, HEAD
        "node 2 c conv fwd=9 bwd=0 out=640 needs=none in=1 grad=no\n"
        "node 3 d fused fwd=2 bwd=2 out=640 needs=none in=1 fwork=640 bwork=640\n");
}

// Node 4 stands between the members: it would have two tensors beside it instead of one.
static void nodes_between_members_have_no_more_beside_them(void **state) {
    const char *apart = HEAD
        "node 2 b conv fwd=9 bwd=9 out=640 needs=none in=0\n"
        "node 3 c add fwd=5 bwd=6 out=640 needs=none in=1,2\n"
        "node 4 d conv fwd=7 bwd=8 out=640 needs=none in=0\n"
        "node 5 e add fwd=1 bwd=2 out=640 needs=none in=3,4\n";
    const char *one = HEAD
        "node 2 b scale fwd=5 bwd=6 out=640 needs=none in=1\n"
        "node 3 c conv fwd=7 bwd=8 out=640 needs=none in=0\n"
        "node 4 d add fwd=1 bwd=2 out=640 needs=none in=2,3\n";
    tl_fusion_desc desc = plain();
    (void)state;
    assert_fuses(desc, apart, apart);
    desc.inference = 1;
    assert_fuses(desc, apart, apart);
    assert_fuses(plain(), one, HEAD
        "node 2 c conv fwd=7 bwd=8 out=640 needs=none in=0\n"
        "node 3 d fused fwd=6 bwd=8 out=640 needs=none in=1,2 fwork=640 bwork=640\n");
}

// Where a chain is cut, what the first part makes is an outer input of the second one like any other.
static void the_parts_of_a_chain_are_nodes_like_others(void **state) {
    (void)state;
    assert_fuses(plain(), HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
        "node 3 c conv fwd=9 bwd=9 out=640 needs=none in=1\n"
        "node 4 d add fwd=1 bwd=1 out=640 needs=none in=2,3\n"
        "node 5 e relu fwd=1 bwd=1 out=640 needs=out in=4\n"
        "node 6 f scale fwd=1 bwd=1 out=640 needs=none in=5\n", HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
        "node 3 c conv fwd=9 bwd=9 out=640 needs=none in=1\n"
        "node 4 e fused fwd=2 bwd=2 out=640 needs=out in=2,3 fwork=640 bwork=640\n"
        "node 5 f scale fwd=1 bwd=1 out=640 needs=none in=4\n");
}

static int32_t count_fused(const char *text) {
    tl_graph graph = graph_of(text);
    tl_fusion_desc desc = fusion_desc(&graph);
    tl_fusion_plan plan;
    int32_t count;
    fused(&desc, &plan);
    count = plan.fused_count;
    tl_free_fusion_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    return count;
}

// Two nodes that fuse, and each thing that keeps them apart.
static void what_differs_is_not_fused(void **state) {
    static const char *const apart[][2] = {
        { "scale", "" }, { "scale", " keep" }, { "scale", " layer=1" }, { "scale", " unit=ffn" }, { "scale", " fixed" },
        { "scale", " param=4" }, { "scale", " saved=4" }, { "conv", "" }, { "scale+conv", "" }, { "relu+scale", "" },
        { "scale+", "" }, { "none", "" }
    };
    static const int expected[] = { 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0 };
    char text[1024];
    int i;
    (void)state;
    for (i = 0; i < 12; i++) {
        snprintf(text, sizeof text, HEAD "node 2 b %s fwd=1 bwd=1 out=640 needs=none in=1%s\n"
                 "node 3 c tanh fwd=1 bwd=1 out=640 needs=out in=2\n", apart[i][0], apart[i][1]);
        if (count_fused(text) != expected[i]) fail_msg("%s", text);
    }
    assert_int_equal(count_fused(HEAD "node 2 b scale fwd=1 bwd=0 out=640 needs=none in=1 grad=no\n"
                                      "node 3 c tanh fwd=1 bwd=1 out=640 needs=out in=2\n"), 0);
    assert_int_equal(count_fused(HEAD "node 2 b scale fwd=1 bwd=1 out=640,640 needs=none in=1\n"
                                      "node 3 c tanh fwd=1 bwd=1 out=640 needs=out in=2\n"), 0);
    assert_int_equal(count_fused(HEAD "node 2 b scale fwd=1 bwd=1 out=320 needs=none in=1\n"
                                      "node 3 c tanh fwd=1 bwd=1 out=320 needs=out in=2\n"
                                      "node 4 d tanh fwd=1 bwd=1 out=320 needs=out in=3\n"), 1);
    assert_int_equal(count_fused(HEAD "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
                                      "node 3 c tanh fwd=1 bwd=1 out=640 needs=out in=2\n"
                                      "node 4 d tanh fwd=1 bwd=1 out=640 needs=out in=2\n"), 0);
    for (i = 0; i < 2; i++) {       // the backward of one that reads a state in pieces is called for rows of its own kernel
        snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=640 needs=none in=-\nstate 1 w sgd w=640 wrows=10%s\n"
                 "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=0,1 bwork=64\n"
                 "node 3 c tanh fwd=1 bwd=1 out=640 needs=out in=2\nend 4\n", i ? " piece=1" : "");
        assert_int_equal(count_fused(text), 1 - i);
    }
    assert_int_equal(count_fused("tlg 1\nnode 0 x input fwd=0 bwd=0 out=0 needs=none in=-\n"
                                 "node 1 b scale fwd=1 bwd=1 out=0 needs=none in=0\n"
                                 "node 2 c tanh fwd=1 bwd=1 out=0 needs=out in=1\n"), 0);
}

// Read twice by one node, and by its second input: still one chain. Of two, the nearer one goes on.
static void chains_go_through_any_input(void **state) {
    (void)state;
    assert_fuses(plain(), HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
        "node 3 c mul fwd=1 bwd=1 out=640 needs=in in=2,2\n"
        "node 4 d sub fwd=1 bwd=1 out=640 needs=none in=0,3\n", HEAD
        "node 2 d fused fwd=3 bwd=4 out=640 needs=in0 in=1,0 fwork=1280 bwork=1920\n");
    assert_fuses(plain(), HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=0\n"
        "node 3 c scale fwd=2 bwd=2 out=640 needs=none in=1\n"
        "node 4 d sub fwd=4 bwd=4 out=640 needs=none in=3,2\n", HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=0\n"
        "node 3 d fused fwd=6 bwd=6 out=640 needs=none in=1,2 fwork=640 bwork=640\n");
}

static void in_place_is_kept_where_it_is_safe(void **state) {
    (void)state;
    assert_fuses(plain(), HEAD
        "node 2 b add fwd=1 bwd=1 out=640 needs=none in=0,1 inplace=1\n"
        "node 3 c scale fwd=1 bwd=1 out=640 needs=none in=2 inplace=0\n", HEAD
        "node 2 c fused fwd=2 bwd=2 out=640 needs=none in=0,1 fwork=640 bwork=640 inplace=1\n");
    assert_fuses(plain(), HEAD
        "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1 inplace=0\n"
        "node 3 c add fwd=1 bwd=1 out=640 needs=none in=2,1\n", HEAD
        "node 2 c fused fwd=2 bwd=2 out=640 needs=none in=1,1 fwork=640 bwork=640\n");
}

// 1 ns a byte. Forward: three of 640 bytes are moved anyway, two inner ones of 4 x 640 no more.
static void with_a_device_memory_traffic_is_saved(void **state) {
    tl_fusion_desc desc = plain();
    tl_device device;
    (void)state;
    memset(&device, 0, sizeof device);
    device.bytes_per_second = 1000000000;
    desc.device = &device;
    assert_fuses(desc, HEAD
        "node 2 b add fwd=1920 bwd=3000 out=640 needs=none in=1,0\n"
        "node 3 c gelu fwd=1280 bwd=3000 out=640 needs=in in=2\n"
        "node 4 d dropout fwd=1280 bwd=3000 out=640 needs=none in=3\n", HEAD
        "node 2 d fused fwd=1920 bwd=6440 out=640 needs=in in=1,0 fwork=1280 bwork=1920\n");
    // A member that computes for long is not made faster, and nothing becomes dearer.
    assert_fuses(desc, HEAD
        "node 2 b scale fwd=5 bwd=5 out=640 needs=none in=1\n"
        "node 3 c tanh fwd=9000 bwd=9000 out=640 needs=out in=2\n", HEAD
        "node 2 c fused fwd=9000 bwd=9000 out=640 needs=out in=1 fwork=640 bwork=640\n");
    device.bytes_per_second = 3;  // slower than all costs
    assert_fuses(desc, HEAD
        "node 2 b scale fwd=5 bwd=5 out=640 needs=none in=1\n"
        "node 3 c tanh fwd=9000 bwd=9000 out=640 needs=out in=2\n", HEAD
        "node 2 c fused fwd=9005 bwd=9005 out=640 needs=out in=1 fwork=640 bwork=640\n");
    device.bytes_per_second = 0;
    assert_fuses(desc, HEAD
        "node 2 b scale fwd=5 bwd=5 out=640 needs=none in=1\n"
        "node 3 c tanh fwd=9000 bwd=9000 out=640 needs=out in=2\n", HEAD
        "node 2 c fused fwd=9005 bwd=9005 out=640 needs=out in=1 fwork=640 bwork=640\n");
}

static void ops_of_the_caller_replace_the_list(void **state) {
    static const char *const ops[] = { "conv", "mine+yours" };
    tl_fusion_desc desc = plain();
    (void)state;
    desc.ops = ops;
    desc.op_count = 2;
    assert_fuses(desc, HEAD
        "node 2 b mine+yours fwd=1 bwd=1 out=640 needs=none in=1\n"
        "node 3 c scale fwd=1 bwd=1 out=640 needs=none in=2\n", "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=640 needs=none in=-\n"
        "node 1 b fused fwd=10 bwd=10 out=640 needs=none in=0 fwork=640 bwork=640\n"
        "node 2 c scale fwd=1 bwd=1 out=640 needs=none in=1\n");
    desc.op_count = 0;  // none at all
    assert_fuses(desc, HEAD "node 2 b conv fwd=1 bwd=1 out=640 needs=none in=1\n",
                 HEAD "node 2 b conv fwd=1 bwd=1 out=640 needs=none in=1\n");
}

// Everything that a node can have comes through, several outputs included.
static void what_is_not_fused_is_copied(void **state) {
    const char *text =
        "tlg 1\n"
        "batch 32\n"
        "node 0 x input fwd=0 bwd=0 out=8,1 needs=none in=- keep fixed\n"
        "node 1 frozen conv fwd=3 bwd=0 out=8 needs=none in=0.1 fwork=2 param=7 grad=no once\n"
        "node 2 split relu fwd=4 bwd=5 out=8,0,3 needs=in0,out2 in=1,0.0 saved=5 bwork=6 swork=4 inplace=0 layer=0 unit=ffn\n"
        "node 3 y ce fwd=1 bwd=2 out=9 needs=in,out in=2.0,2.2,2.2 layer=11 unit=attention keep\n";
    (void)state;
    assert_fuses(plain(), text, text);
}

// The backward of a fused node may make its members again.
static void what_runs_once_is_not_fused(void **state) {
    (void)state;
    assert_fuses(plain(),
        HEAD "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
             "node 3 c gelu fwd=7 bwd=8 out=640 needs=in in=2 once\n"
             "node 4 d tanh fwd=9 bwd=9 out=640 needs=out in=3\n",
        HEAD "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
             "node 3 c gelu fwd=7 bwd=8 out=640 needs=in in=2 once\n"
             "node 4 d tanh fwd=9 bwd=9 out=640 needs=out in=3\n");
}

// A client finds what it keeps for a node by its origin: through fusion, and through fusion once more.
static void origins_survive(void **state) {
    tl_graph graph = graph_of(HEAD "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0\n"
                                   "node 3 c relu fwd=7 bwd=8 out=640 needs=out in=2\n"
                                   "node 4 d tanh fwd=7 bwd=8 out=640 needs=out in=3\n"
                                   "node 5 e conv fwd=9 bwd=9 out=640 needs=none in=4\n");
    tl_fusion_desc desc = fusion_desc(&graph);
    tl_fusion_plan once, twice;
    (void)state;
    ((tl_node *)graph.nodes)[2].origin = -1;  // made by the library: the first member of the caller's counts
    ((tl_node *)graph.nodes)[5].origin = 40;
    fused(&desc, &once);
    assert_int_equal(once.graph.node_count, 4);
    assert_true(once.graph.nodes[0].origin == 0 && once.graph.nodes[1].origin == 1);
    assert_true(once.graph.nodes[2].origin == 3 && once.graph.nodes[3].origin == 40);
    desc.graph = &once.graph;
    fused(&desc, &twice);
    assert_true(twice.graph.nodes[2].origin == 3 && twice.graph.nodes[3].origin == 40);
    tl_free_fusion_plan(NULL, &twice);
    tl_free_fusion_plan(NULL, &once);
    tl_free_graph(NULL, &graph);
}

// Ranges of elements go through a chain if they go through each of its nodes.
static void a_fused_node_takes_blocks_if_all_members_do(void **state) {
    (void)state;
    assert_fuses(plain(),
        HEAD "node 2 b add fwd=5 bwd=6 out=640 needs=none in=1,0 takes_blocks\n"
             "node 3 c relu fwd=7 bwd=8 out=640 needs=out in=2 keep takes_blocks\n"
             "node 4 d conv fwd=9 bwd=9 out=640 needs=none in=3\n"
             "node 5 e add fwd=5 bwd=6 out=640 needs=none in=4,0\n"
             "node 6 f relu fwd=7 bwd=8 out=640 needs=out in=5 takes_blocks\n",
        HEAD "node 2 c fused fwd=12 bwd=14 out=640 needs=out in=1,0 fwork=640 bwork=640 keep takes_blocks\n"
             "node 3 d conv fwd=9 bwd=9 out=640 needs=none in=2\n"
             "node 4 f fused fwd=12 bwd=14 out=640 needs=out in=3,0 fwork=640 bwork=640\n");
}

static void views_of_inner_tensors_are_gone(void **state) {
    tl_graph graph = graph_of(HEAD "node 2 b scale fwd=1 bwd=1 out=640 needs=none in=1\n"
                                 "node 3 c tanh fwd=1 bwd=1 out=640 needs=out in=2\n");
    tl_fusion_desc desc = fusion_desc(&graph);
    tl_fusion_plan plan;
    tl_tensor of, found;
    (void)state;
    of.output = 0; of.node = 2;
    assert_int_equal(tl_add_view(NULL, &graph, "inner", of, NULL), TL_OK);
    of.node = 3;
    assert_int_equal(tl_add_view(NULL, &graph, "outer", of, NULL), TL_OK);
    fused(&desc, &plan);
    assert_int_equal(plan.graph.view_count, 1);
    assert_int_equal(tl_find_tensor(NULL, &plan.graph, "outer", &found), TL_OK);
    assert_int_equal(found.node, 2);
    assert_int_equal(tl_find_tensor(NULL, &plan.graph, "inner", &found), TL_ERROR_NOT_FOUND);
    assert_int_equal(plan.nodes[1], 1);
    assert_int_equal(plan.nodes[2], 2);
    assert_int_equal(plan.nodes[3], 2);
    assert_int_equal(plan.inner_bytes, 640);
    assert_int_equal(plan.block_bytes, 65536);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_fusion_plan(NULL, NULL);
    tl_free_graph(NULL, &graph);
}

// A chain of `count` nodes of one op; gelu reads its input, so all but the last are made again.
static void long_chain(tl_graph *graph, int32_t count, const char *op, const char *needs, uint64_t cost) {
    int32_t i;
    tl_init_graph(graph);
    for (i = 0; i <= count; i++) {
        const uint64_t bytes = 640;
        tl_tensor input;
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        input.node = i - 1; input.output = 0;
        desc.inputs = &input; desc.input_count = i > 0;
        desc.op = i ? op : "input"; desc.needs = i ? needs : NULL;
        desc.output_bytes = &bytes; desc.output_count = 1;
        desc.fwd_cost = desc.bwd_cost = i ? cost : 0;
        assert_int_equal(tl_add_node(NULL, graph, &desc, NULL), TL_OK);
    }
}

static void long_chains_are_cut_at_256(void **state) {
    tl_graph graph;
    tl_fusion_desc desc;
    tl_fusion_plan plan;
    (void)state;
    long_chain(&graph, 600, "gelu", "in", 1);
    desc = fusion_desc(&graph);
    fused(&desc, &plan);
    assert_int_equal(plan.graph.node_count, 4);
    assert_int_equal(plan.first_members[2], 257);
    assert_int_equal(plan.first_members[3], 513);
    assert_int_equal(plan.first_members[4], 601);
    assert_int_equal(plan.recompute_counts[1], 255);
    assert_int_equal(plan.graph.nodes[1].bwd_cost, 256 + 255);
    assert_int_equal(plan.graph.nodes[1].bwork_bytes, 640 * 257);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    // 10^5 nodes of which none fuse are gone through quickly, too.
    long_chain(&graph, 100000, "relu", "out", 1);
    desc = fusion_desc(&graph);
    fused(&desc, &plan);
    assert_int_equal(plan.graph.node_count, 1 + (100000 + 255) / 256);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void assert_refused(const tl_fusion_desc *desc, tl_result code, const char *text) {
    tl_env env = silent_env();
    tl_fusion_plan plan, zero;
    memset(&plan, 0xff, sizeof plan);
    memset(&zero, 0, sizeof zero);
    assert_int_equal(tl_plan_fusion(&env, desc, &plan), code);
    assert_string_equal(env.error.text, text);
    assert_memory_equal(&plan, &zero, sizeof zero);
}

static void wrong_descs_are_refused(void **state) {
    const char *no_name = "";
    tl_graph graph = graph_of(HEAD), none;
    tl_fusion_desc desc = fusion_desc(&graph);
    tl_fusion_plan plan;
    tl_device device;
    int32_t i;
    (void)state;
    desc.block_bytes = 65;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_fusion: block_bytes: must be a multiple of 64");
    desc = fusion_desc(&graph); desc.op = "input";
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_fusion: op: must not be input, and must be 1 to 255 bytes "
                   "of UTF-8 without control characters, spaces, # and =");
    desc = fusion_desc(&graph); desc.op_count = 1;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_fusion: ops: missing, or a negative count");
    desc.op_count = -1;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_fusion: ops: missing, or a negative count");
    desc.op_count = 1; desc.ops = &no_name;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_fusion: ops: each must be 1 to 255 bytes of UTF-8 "
                   "without control characters, spaces, # and =");
    desc = fusion_desc(&graph); desc.inference = 2;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_fusion: inference: must be 0 or 1");
    desc = fusion_desc(&graph); desc.device = &device;
    memset(&device, 0, sizeof device);
    device.alignment_bytes = 3;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_check_device: alignment_bytes: must be 0 or a power of two");
    tl_init_graph(&none);
    desc = fusion_desc(&none);
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_check_graph: nodes: missing, or fewer than one");
    tl_free_graph(NULL, &graph);
    // Costs that fit once do not when forwards run twice.
    long_chain(&graph, 4, "gelu", "in", UINT64_MAX / 8);
    desc = fusion_desc(&graph);
    assert_refused(&desc, TL_ERROR_OVERFLOW, "tl_plan_fusion: node 1 (n4): fwd, bwd: the sum of all costs must fit 64 bits");
    tl_free_graph(NULL, &graph);
    long_chain(&graph, 9, "gelu", "in", UINT64_MAX / 18);
    desc = fusion_desc(&graph);
    assert_refused(&desc, TL_ERROR_OVERFLOW,
                   "tl_plan_fusion: node 1 (n9): fwd, bwd: the sum of all costs must fit 64 bits");
    tl_free_graph(NULL, &graph);
    // Scratch cannot overflow: it is less than the members' outputs and gradients.
    long_chain(&graph, 60, "gelu", "in", 1);
    for (i = 0; i < graph.tensor_count; i++) OUTPUTS(&graph)[i].bytes = UINT64_C(1) << 57;
    desc = fusion_desc(&graph);
    desc.block_bytes = UINT64_C(1) << 60;
    fused(&desc, &plan);
    assert_int_equal(plan.graph.nodes[1].bwork_bytes, UINT64_C(61) << 57);
    tl_free_fusion_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_may_fail(void **state) {
    tl_graph graph;
    long at;
    (void)state;
    long_chain(&graph, 9, "gelu", "in", 1);
    {
        tl_tensor of;
        of.node = 9; of.output = 0;
        assert_int_equal(tl_add_view(NULL, &graph, "v", of, NULL), TL_OK);
    }
    for (at = 0; ; at++) {
        failing_alloc f;
        tl_env env;
        tl_fusion_plan plan, zero;
        tl_fusion_desc desc = fusion_desc(&graph);
        tl_result result;
        memset(&f, 0, sizeof f);
        memset(&zero, 0, sizeof zero);
        env = failing_env(&f, at);
        f.fails_once = 1;
        result = tl_plan_fusion(&env, &desc, &plan);
        if (f.count <= at) {
            assert_int_equal(result, TL_OK);
            tl_free_fusion_plan(&env, &plan);
            assert_int_equal(f.live, 0);
            break;
        }
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_memory_equal(&plan, &zero, sizeof zero);
        assert_int_equal(f.live, 0);
    }
    assert_true(at > 8);
    tl_free_graph(NULL, &graph);
}

// -- runs --

#define ELEMENTS 700
#define MOST_NODES 64
#define WEIGHTS 16

// What the kernels of one run share. The fused ones call those of their members.
typedef struct lab {
    const tl_graph *graph;            // the old one
    const tl_fusion_plan *fusion;     // 0 = the run is over the old graph
    float    weights[MOST_NODES][WEIGHTS];
    float    gradients[MOST_NODES][WEIGHTS];
    uint32_t traces[MOST_NODES];           // of the gradients that arrive at a node that is not elementwise
    float    loss[MOST_NODES];
} lab;

static int32_t old_node(const lab *l, const tl_kernel_call *call) {
    return l->fusion ? l->fusion->members[l->fusion->first_members[call->node + 1] - 1] : call->node;
}

// A division instead of exp: exact to the bit everywhere.
static float squash(float x) { return x / (1 + (x < 0 ? -x : x)); }
static float squash_slope(float x) {
    float d = 1 + (x < 0 ? -x : x);
    return 1 / (d * d);
}

static float dropped(int32_t node, uint64_t element) {
    return tl_mix_u64((uint64_t)node, element) & 1 ? 2.0f : 0.0f;
}

// Elements first .. first + count - 1 of an elementwise node: pointers are to the first of them.
static void compute_elements(const char *op, int32_t node, const float *const *in, int32_t inputs, float *out,
                             uint64_t first, uint64_t count) {
    uint64_t i;
    int32_t k;
    for (i = 0; i < count; i++) {
        float x = in[0][i], y = x;
        if (!strcmp(op, "relu")) y = x > 0 ? x : 0;
        else if (!strcmp(op, "tanh")) y = squash(x);
        else if (!strcmp(op, "gelu")) y = x * (squash(x) + 1);
        else if (!strcmp(op, "scale")) y = x * 1.25f;
        else if (!strcmp(op, "dropout")) y = x * dropped(node, first + i);
        for (k = 1; k < inputs; k++) {
            if (!strcmp(op, "add")) y += in[k][i];
            if (!strcmp(op, "sub")) y -= in[k][i];
            if (!strcmp(op, "mul")) y *= in[k][i];
        }
        out[i] = y;
    }
}

// Add the gradients of one elementwise node. An input or output that its backward does not read is NULL.
static void add_gradients(const char *op, int32_t node, const float *const *in, int32_t inputs, const float *out,
                          const float *grad, float *const *grads, uint64_t first, uint64_t count) {
    uint64_t i;
    int32_t k;
    for (i = 0; i < count; i++)
        for (k = 0; k < inputs; k++) {
            float slope = 1;
            if (!grads[k]) continue;
            if (!strcmp(op, "relu")) slope = out[i] > 0 ? 1.0f : 0.0f;
            else if (!strcmp(op, "tanh")) { float d = 1 - (out[i] < 0 ? -out[i] : out[i]); slope = d * d; }
            else if (!strcmp(op, "gelu")) slope = squash(in[0][i]) + 1 + in[0][i] * squash_slope(in[0][i]);
            else if (!strcmp(op, "scale")) slope = 1.25f;
            else if (!strcmp(op, "dropout")) slope = dropped(node, first + i);
            else if (!strcmp(op, "sub")) slope = k ? -1.0f : 1.0f;
            else if (!strcmp(op, "mul")) slope = in[1 - k][i];
            grads[k][i] += grad[i] * slope;
        }
}

static tl_result elements_forward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    const float *in[8];
    int32_t k, count = call->graph->nodes[call->node].input_count;
    for (k = 0; k < count; k++) in[k] = (const float *)call->inputs[k].host;
    compute_elements(tl_name_op(call->graph, call->node), old_node(l, call), in, count, (float *)call->outputs[0].host,
                     0, call->outputs[0].range.bytes / 4);
    return TL_OK;
}

static tl_result elements_backward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    const float *in[8];
    float *grads[8];
    int32_t k, count = call->graph->nodes[call->node].input_count;
    for (k = 0; k < count; k++) {
        in[k] = (const float *)call->inputs[k].host;
        grads[k] = (float *)call->input_grads[k].host;
    }
    add_gradients(tl_name_op(call->graph, call->node), old_node(l, call), in, count,
                  (const float *)call->outputs[0].host, (const float *)call->output_grads[0].host, grads, 0,
                  call->output_grads[0].range.bytes / 4);
    return TL_OK;
}

// One member of a fused node within one block, and where its operands are.
typedef struct member {
    int32_t      node, input_count;   // of the old graph
    const char  *op;
    const float *in[8];
    float       *grads[8];
    int32_t      outer[8];            // index among the inputs of the fused node; -1 = the member before it
} member;

#define MEMBERS 64

static int32_t find_members(const lab *l, const tl_kernel_call *call, member *members) {
    const tl_fusion_plan *fusion = l->fusion;
    int32_t first = fusion->first_members[call->node], count = fusion->first_members[call->node + 1] - first;
    int32_t i, k, outer = 0;
    assert_true(count <= MEMBERS);
    for (i = 0; i < count; i++) {
        member *m = &members[i];
        const tl_node *node = &l->graph->nodes[fusion->members[first + i]];
        m->node = fusion->members[first + i];
        m->op = tl_name_op(l->graph, m->node);
        m->input_count = node->input_count;
        for (k = 0; k < node->input_count; k++) {
            int32_t from = l->graph->outputs[l->graph->inputs[node->first_input + k].tensor].node;
            m->outer[k] = i && from == members[i - 1].node ? -1 : outer++;
        }
    }
    assert_int_equal(outer, call->graph->nodes[call->node].input_count);
    return count;
}

static void point_at_block(const tl_kernel_call *call, member *m, uint64_t first, const float *inner,
                           float *inner_grad) {
    int32_t k;
    for (k = 0; k < m->input_count; k++) {
        const float *in = m->outer[k] < 0 ? inner : (const float *)call->inputs[m->outer[k]].host;
        float *grad = m->outer[k] < 0 ? inner_grad : NULL;
        if (m->outer[k] >= 0 && in) in += first;
        if (m->outer[k] >= 0 && call->kind == TL_STEP_BACKWARD && call->input_grads[m->outer[k]].host)
            grad = (float *)call->input_grads[m->outer[k]].host + first;
        m->in[k] = in;
        m->grads[k] = grad;
    }
}

static tl_result fused_forward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    member members[MEMBERS];
    int32_t count = find_members(l, call, members), i;
    uint64_t total = call->outputs[0].range.bytes / 4, block = l->fusion->block_bytes / 4, first;
    if (block > total) block = total;
    assert_int_equal(call->scratch.range.bytes, 4 * block * (count > 2 ? 2 : 1));
    for (first = 0; first < total; first += block) {
        uint64_t size = total - first < block ? total - first : block;
        const float *inner = NULL;
        for (i = 0; i < count; i++) {
            float *out = (float *)call->scratch.host + (uint64_t)(i & 1) * block;
            if (i + 1 == count) out = (float *)call->outputs[0].host + first;
            point_at_block(call, &members[i], first, inner, NULL);
            compute_elements(members[i].op, members[i].node, members[i].in, members[i].input_count, out, first, size);
            inner = out;
        }
    }
    return TL_OK;
}

static tl_result fused_backward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    member members[MEMBERS];
    int32_t count = find_members(l, call, members), recomputed = l->fusion->recompute_counts[call->node], i;
    uint64_t total = call->output_grads[0].range.bytes / 4, block = l->fusion->block_bytes / 4, first;
    float *values = (float *)call->scratch.host, *turns;
    if (block > total) block = total;
    turns = values + block * (uint64_t)recomputed;
    assert_int_equal(call->scratch.range.bytes, 4 * block * (uint64_t)(recomputed + (count > 2 ? 2 : 1)));
    for (first = 0; first < total; first += block) {
        uint64_t size = total - first < block ? total - first : block;
        const float *grad = (const float *)call->output_grads[0].host + first;
        for (i = 0; i < recomputed; i++) {
            point_at_block(call, &members[i], first, i ? values + block * (uint64_t)(i - 1) : NULL, NULL);
            compute_elements(members[i].op, members[i].node, members[i].in, members[i].input_count,
                             values + block * (uint64_t)i, first, size);
        }
        for (i = count; i-- > 0;) {
            const float *out = i < recomputed ? values + block * (uint64_t)i : NULL;
            float *inner_grad = i ? turns + (uint64_t)(i & 1 && count > 2) * block : NULL;
            if (i + 1 == count && call->outputs[0].host) out = (const float *)call->outputs[0].host + first;
            if (inner_grad) memset(inner_grad, 0, (size_t)size * 4);
            point_at_block(call, &members[i], first,
                           i && i - 1 < recomputed ? values + block * (uint64_t)(i - 1) : NULL, inner_grad);
            add_gradients(members[i].op, members[i].node, members[i].in, members[i].input_count, out, grad,
                          members[i].grads, first, size);
            grad = inner_grad;
        }
    }
    return TL_OK;
}

// y[i] = w[i % 16] x[i] + x[n - 1 - i]: not elementwise, with weights.
static tl_result weigh_forward(const tl_kernel_call *call, void *user) {
    const lab *l = (const lab *)user;
    const float *x = (const float *)call->inputs[0].host, *w = l->weights[old_node(l, call)];
    float *y = (float *)call->outputs[0].host;
    int32_t i;
    for (i = 0; i < ELEMENTS; i++) y[i] = w[i % WEIGHTS] * x[i] + x[ELEMENTS - 1 - i];
    return TL_OK;
}

static uint32_t trace_of(const float *values, int32_t count, uint32_t trace) {
    int32_t i;
    for (i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        trace = (trace ^ bits) * 16777619u;
    }
    return trace;
}

static tl_result weigh_backward(const tl_kernel_call *call, void *user) {
    lab *l = (lab *)user;
    int32_t id = old_node(l, call), i;
    const float *x = (const float *)call->inputs[0].host, *g = (const float *)call->output_grads[0].host;
    float *gx = (float *)call->input_grads[0].host;
    l->traces[id] = trace_of(g, ELEMENTS, l->traces[id]);
    for (i = 0; i < ELEMENTS; i++) l->gradients[id][i % WEIGHTS] += g[i] * x[i];
    for (i = 0; gx && i < ELEMENTS; i++) gx[i] += l->weights[id][i % WEIGHTS] * g[i] + g[ELEMENTS - 1 - i];
    return TL_OK;
}

static tl_result loss_forward(const tl_kernel_call *call, void *user) {
    lab *l = (lab *)user;
    const float *x = (const float *)call->inputs[0].host;
    float sum = 0;
    int32_t i;
    for (i = 0; i < ELEMENTS; i++) sum += x[i] * x[i];
    l->loss[old_node(l, call)] = *(float *)call->outputs[0].host = sum * 0.001f;
    return TL_OK;
}

static tl_result loss_backward(const tl_kernel_call *call, void *user) {
    const float *x = (const float *)call->inputs[0].host;
    float *gx = (float *)call->input_grads[0].host, g = *(const float *)call->output_grads[0].host;
    int32_t i;
    (void)user;
    for (i = 0; gx && i < ELEMENTS; i++) gx[i] += g * 0.002f * x[i];
    return TL_OK;
}

static void lab_init(lab *l, const tl_graph *graph, const tl_fusion_plan *fusion) {
    tl_random random;
    int32_t i, k;
    memset(l, 0, sizeof *l);
    l->graph = graph;
    l->fusion = fusion;
    random.state = 5;
    for (i = 0; i < MOST_NODES; i++)
        for (k = 0; k < WEIGHTS; k++) l->weights[i][k] = (float)(tl_next_random_ratio(&random) - 0.5);
}

// One pass over the old or the fused graph under a plan, on the checked CPU backend.
static void lab_run(lab *l, const tl_plan *plan, tl_run_report *report) {
    static const char *const ops[] = { "relu", "tanh", "gelu", "scale", "dropout", "add", "sub", "mul" };
    const tl_graph *graph = l->fusion ? &l->fusion->graph : l->graph;
    tl_env env = silent_env();
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_kernel kernels[11];
    tl_run_desc desc;
    tl_run *run;
    tl_tensor x;
    float data[ELEMENTS];
    int i;
    memset(&cpu, 0, sizeof cpu);
    cpu.checked = 1;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    for (i = 0; i < 11; i++) {
        kernels[i].op = i < 8 ? ops[i] : i == 8 ? "weigh" : i == 9 ? "loss" : "fused";
        kernels[i].forward = i < 8 ? elements_forward : i == 8 ? weigh_forward : i == 9 ? loss_forward : fused_forward;
        kernels[i].backward = i < 8 ? elements_backward
                                    : i == 8 ? weigh_backward : i == 9 ? loss_backward : fused_backward;
        kernels[i].user = l;
    }
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 11;
    desc.plan = plan;
    if (tl_init_run(&env, &desc, &run)) fail_msg("%s", env.error.text);
    for (i = 0; i < ELEMENTS; i++) data[i] = (float)((i * 37) % 101) / 50.0f - 1;
    x.node = x.output = 0;
    assert_int_equal(tl_write_tensor(run, x, data, sizeof data), TL_OK);
    if (tl_run_plan(run)) fail_msg("%s", env.error.text);
    tl_measure_run(run, report);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
}

// Two runs that must not differ in a bit: weights' gradients, what arrives at weights, losses.
static void assert_same_runs(const lab *a, const lab *b) {
    assert_memory_equal(a->gradients, b->gradients, sizeof a->gradients);
    assert_memory_equal(a->traces, b->traces, sizeof a->traces);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
}

// Elementwise nodes, weights now and then, and a loss: x is node 0.
static void random_lab_graph(tl_env *env, tl_random *random, int32_t max_nodes, tl_graph *graph) {
    static const char *const ops[] = { "relu", "tanh", "gelu", "scale", "dropout", "add", "sub", "mul" };
    static const char *const needs[] = { "out", "out", "in", "none", "none", "none", "none", "in" };
    int32_t count = random_count(random, 4, max_nodes), i, k;
    tl_init_graph(graph);
    for (i = 0; i < count; i++) {
        const uint64_t large = 4 * ELEMENTS, small = 4;
        int op = (int)tl_next_random_below(random, 8), weighs = random_chance(random, 15);
        tl_tensor inputs[4];
        tl_node_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.inputs = inputs;
        desc.output_bytes = i + 1 < count ? &large : &small;
        desc.output_count = 1;
        desc.fwd_cost = 1 + tl_next_random_below(random, 9);
        desc.bwd_cost = 1 + tl_next_random_below(random, 9);
        desc.input_count = weighs || op < 5 ? 1 : op == 5 ? random_count(random, 2, 4) : 2;
        desc.op = weighs ? "weigh" : ops[op];
        desc.needs = weighs ? "in" : needs[op];
        if (i == 0) {
            desc.op = "input";
            desc.fwd_cost = desc.bwd_cost = 0;
            desc.input_count = 0;
            desc.needs = NULL;
        } else if (i + 1 == count) {
            desc.op = "loss"; desc.input_count = 1; desc.needs = "in";
        } else if (!weighs && random_chance(random, 5)) {
            desc.no_grad = 1; desc.needs = NULL; desc.bwd_cost = 0;
        }
        if (i && i + 1 < count && random_chance(random, 4)) desc.keep = 1;
        if (i && random_chance(random, 10)) desc.layer = 1 + i / 4;
        for (k = 0; k < desc.input_count; k++) {
            inputs[k].node = k == 0 && random_chance(random, 80) ? i - 1 : random_count(random, 0, i - 1);
            inputs[k].output = 0;
        }
        assert_int_equal(tl_add_node(env, graph, &desc, NULL), TL_OK);
    }
}

static void assert_members_are_a_partition(const tl_graph *graph, const tl_fusion_plan *plan) {
    int32_t i, k, count = 0, fused_count = 0;
    uint64_t inner = 0, kept = 0;
    for (i = 0; i < plan->graph.node_count; i++) {
        assert_true(plan->first_members[i] < plan->first_members[i + 1]);
        fused_count += plan->first_members[i + 1] - plan->first_members[i] > 1;
        for (k = plan->first_members[i]; k < plan->first_members[i + 1]; k++, count++) {
            assert_int_equal(plan->nodes[plan->members[k]], i);
            if (k > plan->first_members[i]) assert_true(plan->members[k] > plan->members[k - 1]);
        }
        assert_string_equal(tl_name_node(&plan->graph, i), tl_name_node(graph, plan->members[k - 1]));
    }
    assert_int_equal(count, graph->node_count);
    assert_int_equal(fused_count, plan->fused_count);
    for (i = 0; i < graph->tensor_count; i++) inner += graph->outputs[i].bytes;
    for (i = 0; i < plan->graph.tensor_count; i++) kept += plan->graph.outputs[i].bytes;
    assert_int_equal(inner - kept, plan->inner_bytes);
}

static void fused_runs_equal_plain_ones_to_the_last_bit(void **state) {
    static const uint64_t blocks[] = { 64, 256, 1024, 0 };
    tl_random random;
    uint64_t before_bytes = 0, after_bytes = 0;
    int i, count = scaled(250), fused_graphs = 0, smaller = 0, larger = 0;
    (void)state;
    random.state = 3;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_fusion_plan fusion;
        tl_fusion_desc desc;
        tl_plan before, after;
        tl_run_report report;
        static lab a, b;
        random_lab_graph(&env, &random, MOST_NODES, &graph);
        desc = fusion_desc(&graph);
        desc.block_bytes = blocks[i % 4];
        fused(&desc, &fusion);
        assert_members_are_a_partition(&graph, &fusion);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &before), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &fusion.graph, 0, &after), TL_OK);
        lab_init(&a, &graph, NULL);
        lab_run(&a, &before, &report);
        lab_init(&b, &graph, &fusion);
        lab_run(&b, &after, &report);
        assert_int_equal(report.measured_peak_bytes, after.peak_bytes);
        assert_same_runs(&a, &b);
        assert_true(fusion.inner_bytes > 0 || after.peak_bytes == before.peak_bytes);
        larger += after.peak_bytes > before.peak_bytes;
        before_bytes += before.peak_bytes;
        after_bytes += after.peak_bytes;
        fused_graphs += fusion.fused_count > 0;
        smaller += after.peak_bytes < before.peak_bytes;
        tl_free_plan(&env, &before);
        tl_free_plan(&env, &after);
        tl_free_fusion_plan(&env, &fusion);
        tl_free_graph(&env, &graph);
    }
    print_message("%d graphs, %d fused, %d with a smaller peak, %d with a larger one, peaks x %.3f\n", count,
                  fused_graphs, smaller, larger, (double)after_bytes / (double)before_bytes);
    assert_true(is_thinned() || (fused_graphs > count / 2 && smaller > count / 2 && larger < count / 2));
    assert_true(is_thinned() || after_bytes < before_bytes);
}

// Under a budget, the fused graph is planned and its tensors are made again: still the same bits.
static void fused_runs_under_a_budget_equal_plain_ones(void **state) {
    tl_random random;
    int i, recomputed = 0;
    (void)state;
    random.state = 11;
    for (i = 0; i < 40; i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_fusion_plan fusion;
        tl_fusion_desc desc;
        tl_remat_desc remat;
        tl_plan before, after;
        tl_run_report report;
        tl_graph_statistics s;
        static lab a, b;
        random_lab_graph(&env, &random, 24, &graph);
        desc = fusion_desc(&graph);
        desc.block_bytes = 512;
        fused(&desc, &fusion);
        assert_int_equal(tl_measure_graph(&env, &fusion.graph, &s), TL_OK);
        memset(&remat, 0, sizeof remat);
        remat.graph = &fusion.graph;
        remat.live = 1;
        remat.work_limit = 300000;
        remat.budget_bytes = s.floor_bytes + (s.keep_all_bytes - s.floor_bytes) / 3;
        if (!tl_plan_remat(&env, &remat, &after, NULL)) {
            assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &before), TL_OK);
            lab_init(&a, &graph, NULL);
            lab_run(&a, &before, &report);
            lab_init(&b, &graph, &fusion);
            lab_run(&b, &after, &report);
            assert_same_runs(&a, &b);
            recomputed += report.recompute_count > 0;
            tl_free_plan(&env, &before);
            tl_free_plan(&env, &after);
        }
        tl_free_graph_statistics(&env, &s);
        tl_free_fusion_plan(&env, &fusion);
        tl_free_graph(&env, &graph);
    }
    print_message("%d plans make tensors again\n", recomputed);
    assert_true(recomputed > 5);
}

// Feed-forward blocks of a language model: silu(a) x b. Backward keeps silu(a) unless it is made again.
static void gated_blocks_take_a_fifth_less(void **state) {
    tl_env env = silent_env();
    tl_graph graph;
    tl_layer_desc wide, narrow;
    tl_shape shape;
    tl_value x, skip, gate[2], pair[2];
    tl_graph_statistics before, after;
    tl_fusion_plan fusion;
    tl_fusion_desc desc;
    int i;
    (void)state;
    memset(&shape, 0, sizeof shape);
    memset(&wide, 0, sizeof wide);
    memset(&narrow, 0, sizeof narrow);
    tl_init_graph(&graph);
    desc = fusion_desc(&graph);
    shape.batch = 4; shape.channels = 64; shape.height = 32;
    narrow.channels = 64;
    wide.channels = 256;
    assert_int_equal(tl_add_input(&env, &graph, "x", shape, TL_PRECISION_SINGLE, &x), TL_OK);
    for (i = 0; i < 12; i++) {
        skip = x;
        assert_int_equal(tl_add_layer_norm(&env, &graph, NULL, x, &x), TL_OK);
        assert_int_equal(tl_add_dense(&env, &graph, &wide, x, &gate[1]), TL_OK);
        assert_int_equal(tl_add_dense(&env, &graph, &wide, x, &gate[0]), TL_OK);
        assert_int_equal(tl_add_elementwise(&env, &graph, TL_ELEMENTWISE_SILU, NULL, gate, 1, &gate[0]), TL_OK);
        assert_int_equal(tl_add_elementwise(&env, &graph, TL_ELEMENTWISE_MUL, NULL, gate, 2, &x), TL_OK);
        assert_int_equal(tl_add_dense(&env, &graph, &narrow, x, &pair[0]), TL_OK);
        assert_int_equal(tl_add_elementwise(&env, &graph, TL_ELEMENTWISE_DROPOUT, NULL, pair, 1, &pair[0]), TL_OK);
        pair[1] = skip;
        assert_int_equal(tl_add_elementwise(&env, &graph, TL_ELEMENTWISE_ADD, NULL, pair, 2, &x), TL_OK);
    }
    assert_int_equal(tl_add_loss(&env, &graph, NULL, x, NULL, &x), TL_OK);
    fused(&desc, &fusion);
    assert_int_equal(fusion.fused_count, 24);
    assert_int_equal(tl_measure_graph(&env, &graph, &before), TL_OK);
    assert_int_equal(tl_measure_graph(&env, &fusion.graph, &after), TL_OK);
    print_message("keep all %d -> %d bytes, floor %d -> %d\n", (int)before.keep_all_bytes, (int)after.keep_all_bytes,
                  (int)before.floor_bytes, (int)after.floor_bytes);
    assert_true(after.keep_all_bytes * 100 < before.keep_all_bytes * 81);
    assert_int_equal(after.output_bytes, before.output_bytes - fusion.inner_bytes);
    tl_free_graph_statistics(&env, &before);
    tl_free_graph_statistics(&env, &after);
    tl_free_fusion_plan(&env, &fusion);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_becomes_one_node),
        cmocka_unit_test(backward_reads_no_more_than_before),
        cmocka_unit_test(gradients_keep_their_order),
        cmocka_unit_test(nodes_between_members_have_no_more_beside_them),
        cmocka_unit_test(the_parts_of_a_chain_are_nodes_like_others),
        cmocka_unit_test(what_differs_is_not_fused),
        cmocka_unit_test(chains_go_through_any_input),
        cmocka_unit_test(in_place_is_kept_where_it_is_safe),
        cmocka_unit_test(with_a_device_memory_traffic_is_saved),
        cmocka_unit_test(ops_of_the_caller_replace_the_list),
        cmocka_unit_test(what_is_not_fused_is_copied),
        cmocka_unit_test(what_runs_once_is_not_fused),
        cmocka_unit_test(origins_survive),
        cmocka_unit_test(a_fused_node_takes_blocks_if_all_members_do),
        cmocka_unit_test(views_of_inner_tensors_are_gone),
        cmocka_unit_test(long_chains_are_cut_at_256),
        cmocka_unit_test(wrong_descs_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(gated_blocks_take_a_fifth_less),
        cmocka_unit_test(fused_runs_equal_plain_ones_to_the_last_bit),
        cmocka_unit_test(fused_runs_under_a_budget_equal_plain_ones),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
