// Tests of examples/05_quantize.c and quantize.h: every op in every scheme, plans within budgets, data.
//
// The program itself is a part of this one: its networks, its data and its steps are what is tested.
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define main quantize_main
#include "../examples/05_quantize.c"
#undef main
#include "support/support.h"

#include <cmocka.h>

// -- a network of each kind, trained for a moment --

typedef struct bed {
    options o;
    training_text text;
    study *s;
} bed;

static bed beds[2];  // text, image

static int is_near(double value, double most) { return value >= 0.0 && value <= most; }

static int init_bed(bed *b, int is_text) {
    size_t i;
    set_defaults(&b->o, 1);
    b->o.is_measured = 0;
    if (is_thinned()) {
        b->o.layers = 1;
        b->o.width = 16;
        b->o.context = 8;
        b->o.images = 4;
    }
    b->s = (study *)calloc(1, sizeof *b->s);
    if (!b->s) return 1;
    b->s->o = &b->o;
    b->s->net.env = &b->s->env;
    b->s->net.seed = b->o.seed;
    b->s->progress.shown_ns = training_wall_ns();
    b->text.V = 40;
    b->text.length = 20000;
    b->text.ids = (uint8_t *)malloc(b->text.length);
    if (!b->text.ids) return 1;
    for (i = 0; i < b->text.length; i++) {  // steps of 1 to 3: there is something to learn
        uint64_t step = 1 + nn_hash(1, i) % 3;
        b->text.ids[i] = (uint8_t)((i ? b->text.ids[i - 1] + step : 0) % 40);
    }
    if (is_text ? build_text(b->s, &b->text) : build_images(b->s)) return 1;
    return train(b->s, 40, 0.4f) || load_batches(b->s) || measure_sensitivity(b->s);
}

static int init_beds(void **state) {
    (void)state;
    return init_bed(&beds[0], 1) || init_bed(&beds[1], 0);
}

static int free_beds(void **state) {
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        study *s = beds[i].s;
        if (s) free_rows(s);
        if (s) quantize_free_net(&s->net);
        free(s);
        free(beds[i].text.ids);
    }
    return 0;
}

static double noise_of(const float *x, const float *reference, size_t n) {
    double error = 0.0, signal = 0.0;
    size_t i;
    for (i = 0; i < n; i++) {
        double d = (double)x[i] - (double)reference[i];
        error += d * d;
        signal += (double)reference[i] * (double)reference[i];
    }
    return error / signal;
}

// -- ops --

// Noise over signal of what a node hands on, its inputs converted from f32.
static double measure_node(study *s, int32_t id, tl_scheme scheme) {
    quantize_net *net = &s->net;
    const quantize_node *n = &net->nodes[id];
    int32_t i;
    quantize_begin_pass(net, &s->fresh[0], id);
    for (i = 0; i < n->from_count; i++)
        (void)quantize_convert(net, n->from[i], tl_find_scheme_format(scheme));
    assert_int_equal(quantize_run_node(net, id, scheme), TL_OK);
    return noise_of((const float *)quantize_convert(net, id, TL_FORMAT_F32),
                    s->fresh[0].tensors[id], n->elements);
}

static void every_op_in_every_scheme_is_near_f32(void **state) {
    // f32, f16, bf16, i16, i8, i8-channel, w8a16, dynamic, fake, w4a8: noise / signal; what is beyond the range that
    // was observed on other data is in it
    static const double most[TL_SCHEME_COUNT] = { 0.0, 2e-6, 2e-4, 2e-4, 3e-3, 2e-3, 4e-4, 4e-4, 0.0, 0.0 };
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        study *s = beds[k].s;
        int32_t id;
        int scheme;
        for (id = 1; id < s->net.graph.node_count; id++) {
            for (scheme = 0; scheme < TL_SCHEME_COUNT; scheme++) {
                double noise;
                if (!(quantize_list_schemes(&s->net.nodes[id]) >> scheme & 1)) continue;
                noise = measure_node(s, id, (tl_scheme)scheme);
                if (!is_near(noise, most[scheme]))
                    fail_msg("%s in %s: noise %g", tl_name_node(&s->net.graph, id),
                             tl_name_scheme((tl_scheme)scheme), noise);
            }
        }
    }
}

static void what_reads_tokens_stays_in_f32(void **state) {
    const study *s = beds[0].s;
    (void)state;
    assert_int_equal(s->net.nodes[0].op, QUANTIZE_INPUT);
    assert_int_equal(s->net.nodes[1].op, QUANTIZE_EMBED);
    assert_int_equal(quantize_list_schemes(&s->net.nodes[0]), 1u << TL_SCHEME_F32);
    assert_int_equal(quantize_list_schemes(&s->net.nodes[1]), 1u << TL_SCHEME_F32);
}

static void narrower_schemes_lose_more(void **state) {
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        const study *s = beds[k].s;
        double sums[TL_SCHEME_COUNT] = { 0.0 };
        int32_t id;
        for (id = 1; id < s->net.graph.node_count; id++) {
            const double *losses = s->losses + id * TL_SCHEME_COUNT;
            int scheme;
            for (scheme = 0; scheme < TL_SCHEME_COUNT; scheme++)
                if (quantize_count_products(&s->net.nodes[id]) &&
                    (quantize_list_schemes(&s->net.nodes[id]) >> scheme & 1))
                    sums[scheme] += losses[scheme];
        }
        assert_true(sums[TL_SCHEME_F32] == 0.0);
        assert_true(sums[TL_SCHEME_I16] < sums[TL_SCHEME_W8A16]);
        assert_true(sums[TL_SCHEME_W8A16] < sums[TL_SCHEME_I8_CHANNEL]);
        assert_true(sums[TL_SCHEME_I8_CHANNEL] < sums[TL_SCHEME_I8]);
        assert_true(sums[TL_SCHEME_F16] < sums[TL_SCHEME_BF16]);
    }
}

static void a_node_without_its_inputs_is_a_mismatch(void **state) {
    study *s = beds[1].s;
    (void)state;
    quantize_begin_pass(&s->net, &s->fresh[0], 1);
    assert_int_equal(quantize_run_node(&s->net, 1, TL_SCHEME_I8), TL_ERROR_MISMATCH);  // not converted
    assert_int_equal(quantize_run_node(&s->net, 2, TL_SCHEME_F32), TL_ERROR_MISMATCH);  // not there
}

// -- plans --

static int find_row(const study *s, const char *label) {
    int32_t i;
    for (i = 0; i < s->row_count; i++)
        if (strcmp(s->rows[i].label, label) == 0) return (int)i;
    fail_msg("no row is called %s", label);
    return 0;
}

static void tolerances_are_held_and_rules_are_no_better(void **state) {
    int k, i;
    (void)state;
    for (k = 0; k < 2; k++) {
        study *s = beds[k].s;
        assert_int_equal(add_rows(s, TL_OBJECTIVE_BYTES), TRAINING_OK);
        assert_int_equal(s->row_count, ROWS);
        assert_true(s->rows[0].loss.divergence < 1e-12 && s->rows[0].held_out.divergence < 1e-12);
        assert_true(s->rows[0].narrow_ratio == 0.0);
        assert_true(s->rows[find_row(s, "all i8")].narrow_ratio == 1.0);
        for (i = 1 + UNIFORMS; i < ROWS; i++) {
            const row *r = &s->rows[i];
            double limit = tolerances[(i - 1 - UNIFORMS) / RULES] * s->base_loss;
            int by = (i - 1 - UNIFORMS) % RULES;
            if (by == RULE_EDGE_BLIND) assert_true(r->plan.loss <= limit * (1.0 + 1e-9));
            else assert_true(is_near(r->loss.divergence, limit));
            assert_true(r->weight_bytes < s->rows[0].weight_bytes);
            assert_int_equal(r->applied.conversion_count, r->plan.conversion_count);
            if (by == RULE_EXACT)  // the sum that the blind rule kept was allowed, too
                assert_true(r->plan.cost <= s->rows[i - RULE_EXACT + RULE_EDGE_BLIND].plan.cost ||
                            s->rows[i - RULE_EXACT + RULE_EDGE_BLIND].loss.divergence > limit);
        }
        assert_int_equal(check_table(s), TRAINING_OK);
    }
}

// All choices of three nodes: the blind rule finds the least sum of their costs.
static void the_edge_blind_rule_is_exact_without_edges(void **state) {
    study *s = beds[1].s;
    uint32_t *kept = s->schemes, own[LAYERS] = { 0 };
    uint8_t found[LAYERS] = { 0 };
    double limit = 0.002 * s->base_loss;
    uint64_t best = UINT64_MAX, cost = 0;
    int a, b, c, i;
    (void)state;
    s->objective = TL_OBJECTIVE_BYTES;
    for (i = 0; i < LAYERS; i++) own[i] = i == 1 || i == 4 || i == 9 ? kept[i] : 1u;
    s->schemes = own;
    choose_edge_blind(s, limit, found);
    for (a = 0; a < TL_SCHEME_COUNT; a++)
        for (b = 0; b < TL_SCHEME_COUNT; b++)
            for (c = 0; c < TL_SCHEME_COUNT; c++) {
                double sum = 0.0;
                if (!(own[1] >> a & 1) || !(own[4] >> b & 1) || !(own[9] >> c & 1)) continue;
                if (a) sum += ceil(find_loss(s, 1, a) / limit * UNITS);
                if (b) sum += ceil(find_loss(s, 4, b) / limit * UNITS);
                if (c) sum += ceil(find_loss(s, 9, c) / limit * UNITS);
                cost = find_cost(s, 1, a) + find_cost(s, 4, b) + find_cost(s, 9, c);
                if (sum <= UNITS && cost < best) best = cost;
            }
    s->schemes = kept;
    assert_true(best == find_cost(s, 1, found[1]) + find_cost(s, 4, found[4]) +
                            find_cost(s, 9, found[9]));
    for (i = 1; i < LAYERS; i++) assert_true(found[i] == 0 || i == 1 || i == 4 || i == 9);
}

static void a_graph_applied_to_the_wrong_ranges_is_noticed(void **state) {
    study *s = beds[1].s;
    row *r = &s->rows[find_row(s, "all i8")];
    quantize_loss loss;
    float kept;
    quantize_weights *w = NULL;
    (void)state;
    assert_int_equal(quantize_prepare(&s->net, 4, (tl_scheme)r->schemes[4], &w), TL_OK);
    assert_true(quantize_is_narrow((tl_scheme)r->schemes[4]));
    kept = s->net.narrow[4].scale;
    s->net.narrow[4].scale = 2.0f * kept;  // what reads conv2 in f32, or makes tables of it, is wrong now
    memset(s->net.weights, 0, (size_t)s->net.graph.node_count * TL_SCHEME_COUNT * sizeof *w);
    assert_int_equal(measure_loss(s, s->tuned, r->schemes, 0, NULL, &loss), TL_OK);
    s->net.narrow[4].scale = kept;
    memset(s->net.weights, 0, (size_t)s->net.graph.node_count * TL_SCHEME_COUNT * sizeof *w);
    assert_true(loss.divergence != r->loss.divergence);
    assert_int_equal(measure_loss(s, s->tuned, r->schemes, 0, NULL, &loss), TL_OK);
    assert_true(loss.divergence == r->loss.divergence);  // weights made again are the same
}

static void losses_of_a_batch_are_those_of_its_logits(void **state) {
    const study *s = beds[1].s;
    const quantize_net *net = &s->net;
    quantize_loss same, shifted;
    float *logits = (float *)malloc(net->rows * net->classes * sizeof *logits);
    double increase = 0.0, divergence = 0.0;
    size_t i;
    (void)state;
    assert_non_null(logits);
    memset(&same, 0, sizeof same);
    memset(&shifted, 0, sizeof shifted);
    memcpy(logits, s->fresh[0].tensors[net->logits], net->rows * net->classes * sizeof *logits);
    quantize_add_loss(net, &s->fresh[0], logits, 1.0, &same);
    assert_true(fabs(same.divergence) < 1e-15 && same.increase == 0.0);
    for (i = 0; i < net->rows; i++) {  // e^x of the target doubles: of the sum, 1 becomes 1 + p
        const float *x = s->fresh[0].tensors[net->logits] + i * net->classes;
        size_t target = (size_t)s->fresh[0].targets[i], k;
        double sum = 0.0, grown;
        for (k = 0; k < net->classes; k++) sum += exp((double)x[k]);
        grown = log(1.0 + exp((double)x[target]) / sum);
        increase += (grown - log(2.0)) / (double)net->rows;
        divergence += (grown - exp((double)x[target]) / sum * log(2.0)) / (double)net->rows;
        logits[i * net->classes + target] += 0.693147181f;
    }
    quantize_add_loss(net, &s->fresh[0], logits, 1.0, &shifted);
    assert_true(fabs(shifted.increase - increase) < 1e-6);
    assert_true(fabs(shifted.divergence - divergence) < 1e-6);
    assert_true(shifted.increase_square >= shifted.increase * shifted.increase);
    free(logits);
}

// -- data --

static void images_follow_from_their_numbers(void **state) {
    float a[SIDE * SIDE], b[SIDE * SIDE];
    int32_t counts[KINDS] = { 0 };
    uint64_t i;
    (void)state;
    for (i = 0; i < 800; i++) {
        int32_t kind = draw_image(1, i, a);
        assert_in_range(kind, 0, KINDS - 1);
        counts[kind]++;
        assert_int_equal(draw_image(1, i, b), kind);
        assert_memory_equal(a, b, sizeof a);
    }
    for (i = 0; i < KINDS; i++) assert_in_range(counts[i], 60, 140);
    (void)draw_image(2, 799, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static void kinds_of_images_differ_without_noise(void **state) {
    int kind, other, k;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        for (other = 0; other < kind; other++) {
            int different = 0;
            for (k = 0; k < SIDE * SIDE; k++) {
                float x = (float)(k % SIDE) - 7.5f;
                int line = k / SIDE;
                float y = (float)line - 7.5f;
                different += draw_pixel(kind, x, y, 4.0f, 0.2f) != draw_pixel(other, x, y, 4.0f, 0.2f);
            }
            assert_true(different >= 12);
        }
    }
}

static void text_to_measure_on_is_not_trained_on(void **state) {
    const quantize_net *net = &beds[0].s->net;
    training_text t = beds[0].text;
    quantize_net own = *net;
    int32_t *tokens = (int32_t *)malloc(net->rows * sizeof *tokens);
    int32_t *targets = (int32_t *)malloc(net->rows * sizeof *targets);
    uint64_t first;
    size_t i;
    (void)state;
    assert_true(tokens && targets);
    t.ids = (uint8_t *)malloc(t.length);
    assert_non_null(t.ids);
    for (i = 0; i < t.length; i++) t.ids[i] = i >= t.length / 10 * 9;  // 1 = the last tenth
    own.data = &t;
    for (first = 0; first < 2000; first += 8) {
        own.load(&own, first, tokens, targets);
        for (i = 0; i < net->rows; i++) assert_true(!tokens[i]);
        own.load(&own, unseen + first, tokens, targets);
        for (i = 0; i < net->rows; i++) assert_true(tokens[i] && targets[i]);
    }
    free(t.ids);
    free(tokens);
    free(targets);
}

static void training_lowers_the_loss(void **state) {
    (void)state;
    if (is_thinned()) return;  // a few images a step: too few to learn from
    assert_true(beds[0].s->base_loss < 0.8 * log(40.0));
    assert_true(beds[1].s->base_loss < 0.9 * log((double)KINDS));
}

// -- command line --

static void options_are_refused_with_a_code(void **state) {
    static const char *const wrong[][2] = {
        { "--net", "sound" }, { "--costs", "guessed" }, { "--loss", "-1" }, { "--loss", "1x" },
        { "--loss", "nan" }, { "--observer", "eye" }, { "--costs", "table" }, { "--width", "17" },
        { "--steps", "0" }, { "--what", "1" }
    };
    char program_name[] = "05_quantize", name[16], value[16];
    char *argv[3];
    options o;
    size_t i;
    int done;
    (void)state;
    argv[0] = program_name;
    argv[1] = name;
    argv[2] = value;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(name, sizeof name, "%s", wrong[i][0]);
        snprintf(value, sizeof value, "%s", wrong[i][1]);
        assert_int_equal(parse_options(&o, 3, argv, &done), TRAINING_INPUT);
    }
    snprintf(name, sizeof name, "--loss");
    snprintf(value, sizeof value, "0.5");
    assert_int_equal(parse_options(&o, 3, argv, &done), TRAINING_OK);
    assert_true(fabs(o.limit - 0.005) < 1e-15);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_in_every_scheme_is_near_f32),
        cmocka_unit_test(what_reads_tokens_stays_in_f32),
        cmocka_unit_test(narrower_schemes_lose_more),
        cmocka_unit_test(a_node_without_its_inputs_is_a_mismatch),
        cmocka_unit_test(tolerances_are_held_and_rules_are_no_better),
        cmocka_unit_test(the_edge_blind_rule_is_exact_without_edges),
        cmocka_unit_test(a_graph_applied_to_the_wrong_ranges_is_noticed),
        cmocka_unit_test(losses_of_a_batch_are_those_of_its_logits),
        cmocka_unit_test(images_follow_from_their_numbers),
        cmocka_unit_test(kinds_of_images_differ_without_noise),
        cmocka_unit_test(text_to_measure_on_is_not_trained_on),
        cmocka_unit_test(training_lowers_the_loss),
        cmocka_unit_test(options_are_refused_with_a_code),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, init_beds, free_beds);
}
