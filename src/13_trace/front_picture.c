#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TRACE
#ifndef TL_NO_TEXT
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// The picture of a Pareto front of [7]: speed-up over loss, and a bound on the speed-up where the front is
// not proven.

// -- the picture of a front: scales --

#define TLI_LOSS_MOST  1e300
#define TLI_SPEED_MOST 1e18

typedef struct tli_front_picture {
    tli_picture p;
    const tl_precision_front *front;
    int32_t     zero;                   // x of losses of 0; 0 = there are none
    int32_t     left;                   // x where the logarithmic part begins
    int32_t     first_tick, last_tick;  // of the axis of losses, see tli_loss_tick
    double      least_speed, most_speed;  // ends of the axis of speed-ups
    double      step;                   // between two ticks of it: factor * 10^power
    int         factor, power;
    uint64_t    first_step, step_count;
    int         has_bound;              // 1 = the bound of some point differs from its speed-up
} tli_front_picture;

static const char tli_front_style_text[] =
    "<style>\n"
    ".front,.bound{fill:none;stroke-width:2;stroke-linejoin:round}.bound{stroke-dasharray:6 4}\n"
    "</style>\n";

// Ticks are 1, 2 and 5 times powers of ten: tick 0 is 1, tick 3 is 10, tick -1 is 0.5.
static int32_t tli_tick_power(int32_t tick) { return tick >= 0 ? tick / 3 : -((2 - tick) / 3); }

static int32_t tli_tick_factor(int32_t tick) {
    int32_t part = tick - 3 * tli_tick_power(tick);
    return part == 0 ? 1 : part == 1 ? 2 : 5;
}

static double tli_loss_tick(int32_t tick) {
    double value = (double)tli_tick_factor(tick);
    int32_t power = tli_tick_power(tick);
    for (; power > 0; power--) value *= 10;
    for (; power < 0; power++) value /= 10;
    return value;
}

// -- the picture of a front: rules and axes --

static tli_rule tli_check_front_point(const tl_precision_front *front, int32_t index) {
    const tl_precision_point *point = &front->points[index];
    if (!(point->loss >= 0 && point->loss <= TLI_LOSS_MOST) || (index && point->loss < point[-1].loss))
        return TLI_RULE(LOSS_MUST_BE_0_TO_1E300_AND_NEVER_FALL);
    if (!(point->speedup >= 0 && point->speedup <= TLI_SPEED_MOST)) return TLI_RULE(SPEEDUP_MUST_BE_0_TO_1E18);
    return point->bound_cost > point->cost ? TLI_RULE(BOUND_COST_MUST_NOT_BE_ABOVE_COST) : TLI_NO_RULE;
}

static tl_result tli_check_front(tl_env *env, const tl_precision_front *front) {
    const tli_function function = TLI_IN(WRITE_FRONT_SVG);
    int32_t i;
    if (front->point_count < 1 || !front->points)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(POINTS_THERE_MUST_BE_AT_LEAST_ONE));
    if (!tli_is_below(front->knee, front->point_count))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(KNEE_MUST_BE_ONE_OF_POINTS));
    for (i = 0; i < front->point_count; i++) {
        tli_rule rule = tli_check_front_point(front, i);
        if (rule) return tli_fail_drawn(env, function, "point", i, rule);
    }
    return TL_OK;
}

// The speed-up that no choice within the loss of a point exceeds; `most` where it is higher, to be drawn.
static double tli_find_bound_speed(const tl_precision_point *point, double most) {
    double speed;
    if (point->bound_cost == point->cost) return point->speedup;
    if (!point->bound_cost) return most;
    speed = point->speedup * ((double)point->cost / (double)point->bound_cost);
    return speed < most ? speed : most;
}

static void tli_scale_losses(tli_front_picture *f) {
    const tl_precision_front *front = f->front;
    int32_t first = 0;
    double low, high;
    while (first < front->point_count && !(front->points[first].loss > 0)) first++;
    f->left = f->p.plot.left;
    if (first) {
        f->zero = f->p.plot.left + 1500;
        f->left = f->p.plot.left + 5500;
    }
    low = first < front->point_count ? front->points[first].loss : 1;
    high = first < front->point_count ? front->points[front->point_count - 1].loss : 1;
    if (low < 1 / TLI_LOSS_MOST) low = 1 / TLI_LOSS_MOST;  // smaller losses are drawn there
    if (high < low) high = low;
    while (tli_loss_tick(f->first_tick) > low) f->first_tick--;
    while (tli_loss_tick(f->first_tick + 1) <= low) f->first_tick++;
    f->last_tick = f->first_tick + 1;
    while (tli_loss_tick(f->last_tick) < high) f->last_tick++;
}

static void tli_scale_speeds(tli_front_picture *f) {
    const tl_precision_front *front = f->front;
    double low = TLI_SPEED_MOST, high = 0, most, bound, ten = 1;
    int32_t i;
    for (i = 0; i < front->point_count; i++) {
        if (front->points[i].speedup < low) low = front->points[i].speedup;
        if (front->points[i].speedup > high) high = front->points[i].speedup;
    }
    for (most = high, i = 0; i < front->point_count; i++) {
        bound = tli_find_bound_speed(&front->points[i], 2 * high);
        f->has_bound |= front->points[i].bound_cost != front->points[i].cost;
        if (bound > most) most = bound;
    }
    if (most < 1e-6) most = 1e-6;
    if (most - low < most * 1e-3) { low = most * 0.9; most *= 1.1; }
    f->factor = 1;
    while (ten * 1e6 < most - low) { ten *= 10; f->power++; }
    while (ten > (most - low) / 10) { ten /= 10; f->power--; }
    while (ten * f->factor < (most - low) * 5500 / (double)(f->p.plot.bottom - f->p.plot.top)) {
        f->factor = f->factor == 1 ? 2 : f->factor == 2 ? 5 : 10;
        if (f->factor == 10) { f->factor = 1; ten *= 10; f->power++; }
    }
    f->step = ten * f->factor;
    f->first_step = (uint64_t)(low / f->step);
    f->step_count = (uint64_t)(most / f->step) + 1 - f->first_step;
    f->least_speed = (double)f->first_step * f->step;
    f->most_speed = (double)(f->first_step + f->step_count) * f->step;
}

static int32_t tli_loss_place(const tli_front_picture *f, double loss) {
    double low = (double)tli_log2_f64(tli_loss_tick(f->first_tick)), at;
    double high = (double)tli_log2_f64(tli_loss_tick(f->last_tick));
    if (!(loss > 0)) return f->zero;
    if (loss < 1 / TLI_LOSS_MOST) return f->left;
    at = ((double)tli_log2_f64(loss) - low) / (high - low);
    return f->left + (int32_t)((at < 0 ? 0 : at > 1 ? 1 : at) * (double)(f->p.plot.right - f->left));
}

static int32_t tli_speed_place(const tli_front_picture *f, double speed) {
    double at = (speed - f->least_speed) / (f->most_speed - f->least_speed);
    double high = (double)(f->p.plot.bottom - f->p.plot.top);
    return f->p.plot.bottom - (int32_t)((at < 0 ? 0 : at > 1 ? 1 : at) * high);
}

// -- the picture of a front: its parts --

static void tli_send_rounded(tli_stream *s, double value) {
    char text[48];
    tli_writer w = tli_writer_of(text, sizeof text);
    tli_put_rounded(&w, value);
    tli_send_bytes(s, text, w.length);
}

static void tli_draw_speed_axis(tli_front_picture *f) {
    tli_stream *s = &f->p.out;
    uint64_t i;
    for (i = 0; i <= f->step_count; i++) {
        int32_t y = tli_speed_place(f, (double)(f->first_step + i) * f->step);
        tli_send_move(s, "<path class=\"grid\" d=\"M", f->p.plot.left, " ", y);
        tli_send(s, "H");
        tli_send_place(s, f->p.plot.right);
        tli_send(s, "\"/>\n");
        tli_send_text_start(s, f->p.plot.left - 1000, y + 450, " text-anchor=\"end\"");
        tli_send_tick(s, (f->first_step + i) * (uint64_t)f->factor, f->power);
        tli_send(s, "x</text>\n");
    }
    tli_send_text_start(s, 2400, f->p.plot.top - 1500, "");
    tli_send(s, "speed-up over f32</text>\n");
}

// Draw a line of the grid, a tick below it and its label; power INT32_MAX: the label is 0.
static void tli_draw_loss_tick(tli_front_picture *f, int32_t x, int32_t factor, int32_t power) {
    tli_stream *s = &f->p.out;
    tli_send_move(s, "<path class=\"grid\" d=\"M", x, " ", f->p.plot.top);
    tli_send(s, "V");
    tli_send_place(s, f->p.plot.bottom);
    tli_send(s, "\"/>\n");
    tli_send_move(s, "<path class=\"axis\" d=\"M", x, " ", f->p.plot.bottom);
    tli_send(s, "v5\"/>\n");
    tli_send_text_start(s, x, f->p.plot.bottom + 2000, " text-anchor=\"middle\"");
    if (power == INT32_MAX) {
        tli_send(s, "0");
    } else if (power < -4) {
        tli_send_i32(s, factor);
        tli_send_number(s, "e", power);
    } else {
        tli_send_tick(s, (uint64_t)factor, power);
    }
    tli_send(s, "</text>\n");
}

// Draw the ticks whose labels have room: all of them, or only every n-th power of ten.
static void tli_draw_loss_axis(tli_front_picture *f) {
    tli_stream *s = &f->p.out;
    int32_t room = (f->p.plot.right - f->left) / 5500, i;
    int32_t powers = (f->last_tick - f->first_tick) / 3 + 1, every = powers / room + 1;
    int all = f->last_tick - f->first_tick <= room;
    if (f->zero) tli_draw_loss_tick(f, f->zero, 0, INT32_MAX);
    for (i = f->first_tick; i <= f->last_tick; i++) {
        int32_t factor = tli_tick_factor(i), power = tli_tick_power(i);
        if (all || (factor == 1 && power % every == 0))
            tli_draw_loss_tick(f, tli_loss_place(f, tli_loss_tick(i)), factor, power);
    }
    tli_send_move(s, "<path class=\"axis\" d=\"M", f->p.plot.left, " ", f->p.plot.bottom);
    tli_send(s, "H");
    tli_send_place(s, f->p.plot.right);
    tli_send(s, "\"/>\n");
    tli_send_text_start(s, (f->p.plot.left + f->p.plot.right) / 2, f->p.plot.bottom + 4200,
                        " text-anchor=\"middle\"");
    tli_send(s, "predicted loss, logarithmic</text>\n");
}

// Draw a line of steps. What was found is drawn from the loss of each point up to the next point; the bound of
// a point holds for all losses up to its own, so it is drawn from the point before.
static void tli_draw_stairs(tli_front_picture *f, int is_bound) {
    const tl_precision_front *front = f->front;
    tli_stream *s = &f->p.out;
    int32_t i, x = 0, y = 0;
    tli_send(s, is_bound ? "<path class=\"bound k1\" d=\"M" : "<path class=\"front k0\" d=\"M");
    for (i = 0; i < front->point_count && !s->result; i++) {
        const tl_precision_point *point = &front->points[i];
        double speed = is_bound ? tli_find_bound_speed(point, f->most_speed) : point->speedup;
        int32_t next_x = tli_loss_place(f, point->loss), next_y = tli_speed_place(f, speed);
        if (!i) tli_send_move(s, "", next_x, " ", next_y);
        else if (next_x == x && next_y == y) continue;
        else if (is_bound) tli_send_move(s, "V", next_y, "H", next_x);
        else tli_send_move(s, "H", next_x, "V", next_y);
        x = next_x;
        y = next_y;
    }
    if (!is_bound) tli_send(s, "H");
    if (!is_bound) tli_send_place(s, f->p.plot.right);
    tli_send(s, is_bound ? "\"><title>no choice is faster" : "\"><title>found");
    tli_send(s, "</title></path>\n");
}

static void tli_draw_front_point(tli_front_picture *f, int32_t index, int32_t x, int32_t y) {
    const tl_precision_point *point = &f->front->points[index];
    tli_stream *s = &f->p.out;
    tli_send(s, index == f->front->knee ? "<circle class=\"mark k2\"" : "<circle class=\"mark k0\"");
    tli_send_move(s, " cx=\"", x, "\" cy=\"", y);
    tli_send(s, index == f->front->knee ? "\" r=\"6\"><title>" : "\" r=\"3\"><title>");
    tli_send(s, "loss ");
    tli_send_rounded(s, point->loss);
    tli_send(s, ", speed-up ");
    tli_send_rounded(s, point->speedup);
    tli_send(s, ", ");
    tli_send_size(s, point->bytes);
    tli_send(s, "</title></circle>\n");
}

// Points closer than two pixels to the one before are left out; the knee is drawn last, above the others.
static void tli_draw_front_points(tli_front_picture *f) {
    const tl_precision_front *front = f->front;
    const tl_precision_point *knee = &front->points[front->knee];
    tli_stream *s = &f->p.out;
    int32_t last_x = INT32_MIN / 2, last_y = 0, i, x, y, letters = 24 * TLI_LETTER;
    int fits;
    for (i = 0; i < front->point_count && !s->result; i++) {
        x = tli_loss_place(f, front->points[i].loss);
        y = tli_speed_place(f, front->points[i].speedup);
        if (i == front->knee || (x - last_x < 200 && last_y - y < 200 && y - last_y < 200)) continue;
        tli_draw_front_point(f, i, x, y);
        last_x = x;
        last_y = y;
    }
    x = tli_loss_place(f, knee->loss);
    y = tli_speed_place(f, knee->speedup);
    tli_draw_front_point(f, front->knee, x, y);
    fits = x + letters < f->p.plot.right && y + 2400 < f->p.plot.bottom;  // below the stairs, else above
    tli_send_text_start(s, fits ? x + 1000 : x - 1000, fits ? y + 2000 : y - 1000,
                        fits ? " class=\"value\"" : " class=\"value\" text-anchor=\"end\"");
    tli_send(s, "knee: ");
    tli_send_rounded(s, knee->speedup);
    tli_send(s, "x at ");
    tli_send_rounded(s, knee->loss);
    tli_send(s, "</text>\n");
}

static void tli_draw_front_legend(tli_front_picture *f) {
    static const char *const texts[] = { "found", "no choice is faster", "knee" };
    tli_stream *s = &f->p.out;
    int32_t i, x = 2400;
    for (i = 0; i < 3; i++) {
        if (i == 1 && !f->has_bound) continue;
        tli_send_number(s, "<rect class=\"f", i);
        tli_send_move(s, "\" x=\"", x, "\" y=\"", 5600);
        tli_send(s, "\" rx=\"2\" width=\"18\" height=\"10\"/>\n");
        tli_send_text_start(s, x + 2600, 6600, " class=\"label\"");
        tli_send(s, i == 0 && f->front->complete ? "all there are, each proven" : texts[i]);
        tli_send(s, "</text>\n");
        x += i ? 20800 : 26000;
    }
}

TLI_IMPL tl_result tl_write_front_svg(tl_env *env, const tl_precision_front *front, tl_sink sink) {
    tli_front_picture f;
    tl_result result;
    TL_ASSERT(front && sink.write);
    tli_zero(&f, sizeof f);
    result = tli_check_front(env, front);
    if (result) return result;
    tli_open_stream(&f.p.out, sink);
    f.front = front;
    f.p.width = 960;
    f.p.title = "Precision: the speed-up that a loss buys";
    f.p.plot = tli_box_of(8400, 10800, 93000, 46200);
    f.p.bottom = f.p.plot.bottom;
    tli_scale_losses(&f);
    tli_scale_speeds(&f);
    tli_draw_head(&f.p);
    tli_send(&f.p.out, tli_front_style_text);
    tli_draw_front_legend(&f);
    tli_draw_speed_axis(&f);
    tli_draw_loss_axis(&f);
    if (f.has_bound) tli_draw_stairs(&f, 1);
    tli_draw_stairs(&f, 0);
    tli_draw_front_points(&f);
    tli_send(&f.p.out, "</svg>\n");
    return tli_close_stream(&f.p.out, env, TLI_IN(WRITE_FRONT_SVG));
}
#endif
#endif
#endif  // TL_NO_TRACE
#endif  // TL_STRATEGY_IMPLEMENTATION

