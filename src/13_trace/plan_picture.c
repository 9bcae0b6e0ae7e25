#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TRACE
#ifndef TL_NO_TEXT

// The picture of a plan over simulated time (a Gantt chart): a lane for each kind of step, and below them the
// memory of both tiers, on one time axis.
//
//     forward    |conv1|conv2|          |
//     recompute  |           |conv1|    |
//     backward   |                 |conv2|...
//     memory     |____/~~~~~~\____/~~~~\...
//     arena      |[conv1 ][ conv2      ]...

// -- the picture of a plan: times and lanes --

typedef enum tli_lane {
    TLI_LANE_FORWARD, TLI_LANE_AGAIN, TLI_LANE_BACKWARD, TLI_LANE_CONVERT, TLI_LANE_WAIT, TLI_LANE_SPILL,
    TLI_LANE_FETCH, TLI_LANE_COUNT
} tli_lane;

static const char *const tli_lane_names[] = { "forward", "recompute", "backward", "convert", "wait", "spill",
                                              "fetch" };
static const char *const tli_lane_classes[] = { "f0", "f1", "f2", "f3", "idle", "f4", "f5" };

#define TLI_LANE_HIGH  2000  // hundredths of a pixel
#define TLI_LANE_STEP  2600

typedef struct tli_gantt {
    tli_picture      p;            // the memory, in the lower half
    const tl_graph  *graph;
    const tl_plan   *plan;
    tl_env          *env;
    uint64_t        *start, *end;  // [count] simulated times of each step; one block with live and host
    uint64_t        *live, *host;  // [count]
    double          *times;        // [count] when compute has passed each step, in units of the axis
    uint8_t         *lanes;        // [count] tli_lane; TLI_LANE_COUNT = not drawn
    int32_t          count;        // steps, at least 1
    int              by_step;      // 1 = nothing takes time: the axis counts steps
    double           unit;         // cost in one unit of the time axis
    int32_t          tops[TLI_LANE_COUNT];  // of each lane; 0 = not drawn
    int32_t          lanes_bottom;
    int32_t          legend_left, legend_top;  // of the next entry
    tl_memory_curve  curves[2];
    char             title[320], time_label[48];
    tli_peak         peak;
    const tl_svg_style *style;     // may be NULL
    tl_svg_line      lines[TLI_LINE_LIMIT];  // of the memory: the style's, and the arena
    tl_lifetimes     lifetimes;    // of a plan with offsets
    tli_box          map;          // where its arena is drawn
    uint8_t         *cells;        // [TLI_MAP_COLUMNS * TLI_MAP_ROWS] 1 + class of what is too small for a
                                   // rectangle; 0 = nothing
} tli_gantt;

#define TLI_HEAD_BOTTOM  12400  // of title, summary and legend, in hundredths of a pixel
#define TLI_MAP_CELL         200    // side of a cell, in hundredths of a pixel
#define TLI_MAP_COLUMNS 543
#define TLI_MAP_ROWS    160

static const char tli_plan_style_text[] =
    "<style>\n"
    ".idle{fill:#b6bec8}.cut{stroke:#fff}.bar{font-size:11px;fill:#fff;pointer-events:none}\n"
    ".at{fill:none;stroke:#818b98;stroke-dasharray:3 3}.hover{fill-opacity:0}\n"
    "@media (prefers-color-scheme:dark){.idle{fill:#4d5560}.cut{stroke:#0d1117}.bar{fill:#0d1117}}\n"
    "</style>\n";

// The lane of a step; TLI_LANE_COUNT = it is not drawn. ran: [slot_count * node_count] 1 = the node ran before;
// updated.
static tli_lane tli_find_lane(const tli_gantt *g, int32_t index, uint8_t *ran) {
    const tl_step found = tl_find_step(g->plan, index), *step = &found;
    int takes_time = g->by_step || g->end[index] > g->start[index], again;
    switch ((tl_step_kind)step->kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
        ran += (size_t)step->slot * (size_t)g->graph->node_count + (size_t)step->node;
        again = *ran;
        *ran = 1;
        return again ? TLI_LANE_AGAIN : TLI_LANE_FORWARD;
    case TL_STEP_BACKWARD: return TLI_LANE_BACKWARD;
    case TL_STEP_SPILL: return TLI_LANE_SPILL;
    case TL_STEP_FETCH: return TLI_LANE_FETCH;
    case TL_STEP_WAIT: return takes_time ? TLI_LANE_WAIT : TLI_LANE_COUNT;
    case TL_STEP_COMPRESS:
    case TL_STEP_EXPAND: return TLI_LANE_CONVERT;
    case TL_STEP_DROP:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COUNT: break;
    }
    return TLI_LANE_COUNT;
}

// Choose the unit of the time axis, a power of 1000 of the unit of costs: nanoseconds where there is a device.
static void tli_scale_time(tli_gantt *g, uint64_t total, int has_device) {
    static const char *const seconds[] = { "simulated time, ns", "simulated time, us", "simulated time, ms",
                                           "simulated time, s" };
    static const char *const costs[] = { "cost", "cost, thousands", "cost, millions", "cost, 10^9",
                                         "cost, 10^12", "cost, 10^15", "cost, 10^18" };
    int power = 0, most = has_device ? 3 : 6;
    tli_writer w = tli_writer_of(g->time_label, sizeof g->time_label);
    g->by_step = !total;
    g->unit = 1;
    for (; total >= 10000 && power < most; total /= 1000) { power++; g->unit *= 1000; }
    tli_put(&w, g->by_step ? "step" : has_device ? seconds[power] : costs[power]);
    tli_finish(&w);
}

// Derive the times on the axis and the lane of each step from the simulation.
static tl_result tli_read_gantt(tli_gantt *g, int has_device) {
    uint64_t nodes = (uint64_t)g->graph->node_count * (uint64_t)tli_count_slots(g->plan);
    uint8_t *ran = (uint8_t *)tli_alloc_array(g->env, nodes, 1);
    uint64_t total = 0, now = 0;
    int32_t i;
    if (!ran)
        return tli_fail(g->env, TL_ERROR_NO_MEMORY, TLI_IN(WRITE_PLAN_SVG), TLI_RULE(NO_MEMORY_FOR_PICTURE));
    for (i = 0; i < g->plan->step_count; i++) if (g->end[i] > total) total = g->end[i];
    tli_scale_time(g, total, has_device);
    for (i = 0; i < g->plan->step_count; i++) {
        tl_step_kind kind = (tl_step_kind)tl_find_step(g->plan, i).kind;
        if (g->by_step) { g->start[i] = (uint64_t)i; g->end[i] = (uint64_t)i + 1; }
        if (g->by_step || (kind != TL_STEP_SPILL && kind != TL_STEP_FETCH)) now = g->end[i];
        g->times[i] = (double)now / g->unit;
        g->lanes[i] = (uint8_t)tli_find_lane(g, i, ran);
        if (g->lanes[i] < TLI_LANE_COUNT) g->tops[g->lanes[i]] = 1;
    }
    tli_release(g->env, ran);
    if (!g->plan->step_count) {  // no step: show the bytes of the inputs for one unit of time
        g->times[0] = 1;
        g->live[0] = g->peak.report.peak_bytes;
    }
    g->p.last_time = (double)total / g->unit;
    if (g->p.last_time < g->times[g->count - 1]) g->p.last_time = g->times[g->count - 1];
    return TL_OK;
}

static void tli_lay_out_gantt(tli_gantt *g) {
    tli_picture *p = &g->p;
    tli_writer w = tli_writer_of(g->title, sizeof g->title);
    int32_t top = TLI_HEAD_BOTTOM + 400, lane, i;
    const char *name = g->style && g->style->title ? g->style->title : "";
    if (*name) {
        tli_put(&w, name);
        tli_put(&w, ": ");
    }
    tli_put(&w, "plan of ");
    tli_put_i64(&w, g->plan->step_count);
    tli_put(&w, g->plan->step_count == 1 ? " step on " : " steps on ");
    tli_put_i64(&w, g->graph->node_count);
    tli_put(&w, g->graph->node_count == 1 ? " node" : " nodes");
    tli_finish(&w);
    for (lane = 0; lane < TLI_LANE_COUNT; lane++)
        if (g->tops[lane]) { g->tops[lane] = top; top += TLI_LANE_STEP; }
    g->lanes_bottom = top;
    for (i = 0; i < 2; i++) {
        g->curves[i].live_bytes = i ? g->host : g->live;
        g->curves[i].times = g->times;
        g->curves[i].count = g->count;
        g->curves[i].label = i ? "host" : "device";
    }
    p->curves = g->curves;
    p->curve_count = g->peak.report.host_peak_bytes ? 2 : 1;
    p->colour = 6;
    p->width = 1200;
    p->title = g->title;
    p->time_label = g->time_label;
    p->whole_steps = g->by_step || g->unit == 1;
    p->plot = tli_box_of(8400, top + 4000, 117000, top + 28000);
    p->bottom = p->plot.bottom;
    if (g->lifetimes.count) {
        g->map = tli_box_of(8400, p->bottom + 7000, 117000, p->bottom + 7000 + TLI_MAP_ROWS * TLI_MAP_CELL);
        p->bottom = g->map.bottom;
    }
    for (i = 0; i < p->curve_count; i++) {
        int32_t k;
        for (k = 0; k < g->count; k++)
            if (g->curves[i].live_bytes[k] > g->curves[i].live_bytes[p->peak_steps[i]]) p->peak_steps[i] = k;
        if (g->curves[i].live_bytes[p->peak_steps[i]] > p->peak_bytes)
            p->peak_bytes = g->curves[i].live_bytes[p->peak_steps[i]];
    }
}

// Send a line of the head, cut where the picture ends; the tooltip has all of it.
static void tli_send_head_line(tli_gantt *g, int32_t y, const char *text) {
    tli_send_text_start(&g->p.out, 2400, y, "");
    tli_send_text(&g->p.out, text, (g->p.width - 48) * 100 / 660);
    tli_send(&g->p.out, "<title>");
    tli_send_text(&g->p.out, text, INT32_MAX);
    tli_send(&g->p.out, "</title></text>\n");
}

static tl_result tli_write_words(void *user, const char *text, size_t length) {
    tli_put_bytes((tli_writer *)user, text, length);
    return TL_OK;
}

// Send "cost 133, 1.0813 x every call once; arena 496 B; peak 496 B at step 16, backward of join".
static void tli_send_costs(tli_stream *s, const tli_gantt *g) {
    const tl_report *r = &g->peak.report;
    char name[400];
    tli_writer w = tli_writer_of(name, sizeof name);
    tli_send(s, "cost ");
    tli_send_u64(s, r->cost);
    if (r->base_cost) {
        tli_send(s, ", ");
        tli_send_decimal(s, tli_find_share(r->cost, r->base_cost), 4);
        tli_send(s, " x every call once");
    }
    if (g->plan->offset_count) {
        tli_send(s, "; arena ");
        tli_send_size(s, r->arena_bytes);
    }
    tli_send(s, "; peak ");
    tli_send_size(s, r->peak_bytes);
    tli_send(s, r->peak_step < 0 ? " " : " at ");
    tli_put_step(&w, g->graph, g->plan, r->peak_step);
    tli_finish(&w);
    tli_send(s, name);
}

// Send "live there: relu2 96 B, fc2, its gradient 96 B, 3 more".
static void tli_send_largest(tli_stream *s, const tli_gantt *g) {
    int32_t i, rows = g->peak.live_count < 5 ? g->peak.live_count : 5;
    char name[400];
    for (i = 0; i < rows; i++) {
        tli_send(s, i ? ", " : "live there: ");
        tli_name_made(g->graph, &g->peak.live[i], name, sizeof name);
        tli_send(s, name);
        tli_send(s, " ");
        tli_send_size(s, g->peak.live[i].bytes);
    }
    if (rows < g->peak.live_count) {
        tli_send_number(s, ", ", g->peak.live_count - rows);
        tli_send(s, " more");
    }
}

// Draw two lines of the head. They are cut where the picture ends; their tooltips have all of them.
static void tli_draw_summary(tli_gantt *g) {
    int row;
    for (row = 0; row < 2; row++) {
        char text[2400];
        tli_writer w = tli_writer_of(text, sizeof text);
        tl_sink sink;
        tli_stream s;
        sink.write = tli_write_words;
        sink.user = &w;
        tli_open_stream(&s, sink);
        if (row) tli_send_largest(&s, g);
        else tli_send_costs(&s, g);
        tli_flush(&s);
        tli_finish(&w);
        if (*text) tli_send_head_line(g, row ? 8100 : 6000, text);
    }
}

static void tli_draw_legend_entry(tli_gantt *g, const char *fill, const char *name) {
    tli_stream *s = &g->p.out;
    tli_send(s, "<rect class=\"");
    tli_send(s, fill);
    tli_send_move(s, "\" x=\"", g->legend_left, "\" y=\"", g->legend_top);
    tli_send(s, "\" rx=\"2\" width=\"18\" height=\"10\"/>\n");
    tli_send_text_start(s, g->legend_left + 2600, g->legend_top + 1000, " class=\"label\"");
    tli_send(s, name);
    tli_send(s, "</text>\n");
    g->legend_left += ((int32_t)tli_text_length(name) * TLI_LETTER) + 5200;
}

static void tli_draw_lane_names(tli_gantt *g) {
    tli_stream *s = &g->p.out;
    int32_t lane;
    g->legend_left = 2400;
    g->legend_top = 9700;
    for (lane = 0; lane < TLI_LANE_COUNT; lane++) {
        if (!g->tops[lane]) continue;
        tli_draw_legend_entry(g, tli_lane_classes[lane], tli_lane_names[lane]);
        tli_send_text_start(s, 7600, g->tops[lane] + 1450, " text-anchor=\"end\"");
        tli_send(s, tli_lane_names[lane]);
        tli_send(s, "</text>\n");
        tli_send_move(s, "<path class=\"grid\" d=\"M", g->p.plot.left, " ", g->tops[lane] + 2300);
        tli_send(s, "H");
        tli_send_place(s, g->p.plot.right);
        tli_send(s, "\"/>\n");
    }
    tli_draw_legend_entry(g, "f6", "device memory");
    if (g->p.curve_count == 2) tli_draw_legend_entry(g, "f7", "host memory");
}

static int32_t tli_gantt_place(const tli_gantt *g, uint64_t cost) {
    return tli_time_place(&g->p, (double)cost / g->unit);
}

// Send the tooltip of a bar: "conv1", "recompute, step 17", start, end and duration, live bytes.
static void tli_send_hover(tli_gantt *g, int32_t first, int32_t last, int32_t members) {
    tli_stream *s = &g->p.out;
    const tl_step found = tl_find_step(g->plan, first), *step = &found;
    tli_send(s, "<title>");
    tli_send_text(s, tl_name_node(g->graph, step->node), 255);
    if (step->output != TL_ALL_OUTPUTS) tli_send_number(s, ".", step->output);
    if (step->slot) tli_send_number(s, "@", step->slot);
    if (members > 1) {
        tli_send(s, " ... ");
        tli_send_text(s, tl_name_node(g->graph, tl_find_step(g->plan, last).node), 255);
    }
    tli_send(s, "\n");
    tli_send(s, tli_lane_names[g->lanes[first]]);
    tli_send_number(s, ", step ", first);
    if (members > 1) {
        tli_send_number(s, " to ", last);
        tli_send_number(s, ": ", members);
        tli_send(s, " of them");
    }
    if (!g->by_step) {
        tli_send(s, "\nfrom ");
        tli_send_u64(s, g->start[first]);
        tli_send(s, " to ");
        tli_send_u64(s, g->end[last]);
        tli_send(s, ": ");
        tli_send_u64(s, g->end[last] - g->start[first]);
    }
    tli_send(s, "\n");
    tli_send_size(s, g->live[last]);
    tli_send(s, " live</title>");
}

// Write the name of a node into its rectangle, if all of it or at least five letters have room.
static void tli_draw_name(tli_gantt *g, int32_t node, int32_t left, int32_t right, int32_t y) {
    const char *name = tl_name_node(g->graph, node);
    int32_t letters = (right - left - 800) / 640, length = (int32_t)tli_text_length(name);
    if (letters < 2 || (letters < 5 && letters < length)) return;
    tli_send_text_start(&g->p.out, left + 400, y, " class=\"bar\"");
    tli_send_text(&g->p.out, name, letters < length ? letters - 1 : letters);
    tli_send(&g->p.out, "</text>\n");
}

static void tli_draw_bar(tli_gantt *g, int32_t first, int32_t last, int32_t members, int32_t left,
                         int32_t right) {
    tli_stream *s = &g->p.out;
    int32_t lane = g->lanes[first];
    tli_send(s, "<rect class=\"");
    tli_send(s, tli_lane_classes[lane]);
    tli_send(s, right - left > 400 ? " cut" : "");
    tli_send_move(s, "\" x=\"", left, "\" y=\"", g->tops[lane]);
    tli_send_move(s, "\" width=\"", right - left, "\" height=\"", TLI_LANE_HIGH);
    tli_send(s, "\">");
    tli_send_hover(g, first, last, members);
    tli_send(s, "</rect>\n");
    if (members == 1) tli_draw_name(g, tl_find_step(g->plan, first).node, left, right, g->tops[lane] + 1400);
}

// Draw the bars of a lane. Bars narrower than a pixel are merged with their neighbours.
static void tli_draw_lane(tli_gantt *g, int32_t lane) {
    int32_t first = -1, last = -1, members = 0, left = 0, right = 0, i;
    for (i = 0; i < g->plan->step_count && !g->p.out.result; i++) {
        int32_t from, to;
        if (g->lanes[i] != lane) continue;
        from = tli_gantt_place(g, g->start[i]);
        to = tli_gantt_place(g, g->end[i]);
        if (to - from < 60) to = from + 60;  // wide enough to be seen and pointed at
        if (members && to - from < 100 && from - right <= 50 && right - left < 400) {
            if (to > right) right = to;
        } else {
            if (members) tli_draw_bar(g, first, last, members, left, right);
            first = i;
            members = 0;
            left = from > right ? from : right;
            right = to > left ? to : left + 20;
        }
        last = i;
        members++;
        if (to - from >= 100) { tli_draw_bar(g, first, last, members, left, right); members = 0; }
    }
    if (members) tli_draw_bar(g, first, last, members, left, right);
}

// Draw a line at the peak, through lanes, memory and arena. Where it meets the curve of the device, the tooltip
// has the tensors that are live there.
static void tli_draw_peak_line(tli_gantt *g) {
    tli_stream *s = &g->p.out;
    tli_place at = tli_find_peak_place(&g->p, 0);
    char name[400];
    int32_t i;
    tli_send_move(s, "<path class=\"at\" d=\"M", at.x, " ", TLI_HEAD_BOTTOM);
    tli_send(s, "V");
    tli_send_place(s, g->p.bottom);
    tli_send_move(s, "\"/>\n<circle class=\"hover\" cx=\"", at.x, "\" cy=\"", at.y);
    tli_send(s, "\" r=\"9\"><title>");
    for (i = 0; i < g->peak.live_count && i < TLI_EXPLAIN_ROWS; i++) {
        if (i) tli_send(s, "\n");
        tli_send_size(s, g->peak.live[i].bytes);
        tli_send(s, "  ");
        tli_name_made(g->graph, &g->peak.live[i], name, sizeof name);
        tli_send_text(s, name, 300);
    }
    if (i < g->peak.live_count) { tli_send_number(s, "\n", g->peak.live_count - i); tli_send(s, " more"); }
    tli_send(s, "</title></circle>\n");
}

// -- the picture of a plan: its arena --

// Each rectangle goes from the first step of a lifetime to its last, over its addresses. What is too small for
// one is drawn in cells of two pixels, one path a class: at most 15000 rectangles, and a piece of path a cell.

typedef enum tli_map_class {
    TLI_MAP_MADE, TLI_MAP_AGAIN, TLI_MAP_GRADIENT, TLI_MAP_COMPRESSED, TLI_MAP_SAVED, TLI_MAP_SCRATCH,
    TLI_MAP_STATE, TLI_MAP_INPUT, TLI_MAP_CLASS_COUNT
} tli_map_class;

static const char *const tli_map_fills[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f7", "idle" };
static const char *const tli_map_words[] = { "made", "made again", "gradient", "compressed", "saved", "scratch",
                                             "state", "input" };

static tli_map_class tli_find_map_class(const tl_lifetime *life) {
    switch (life->use) {
    case TL_USE_INPUT: return TLI_MAP_INPUT;
    case TL_USE_STATE: return TLI_MAP_STATE;
    case TL_USE_OUTPUT: break;
    case TL_USE_GRADIENT: return TLI_MAP_GRADIENT;
    case TL_USE_SAVED: return TLI_MAP_SAVED;
    case TL_USE_COMPRESSED: return TLI_MAP_COMPRESSED;
    case TL_USE_SECOND:
    case TL_USE_SCRATCH:
    case TL_USE_HOST:
    case TL_USE_COUNT: return TLI_MAP_SCRATCH;
    }
    return life->occurrence ? TLI_MAP_AGAIN : TLI_MAP_MADE;
}

static tli_box tli_find_life_box(const tli_gantt *g, const tl_lifetime *life) {
    const tli_picture *p = &g->p;
    int32_t last = life->end_step > life->first_step ? life->end_step - 1 : life->first_step;
    int32_t left = life->first_step ? tli_time_place(p, g->times[life->first_step - 1]) : p->plot.left;
    int32_t right = last < g->count ? tli_time_place(p, g->times[last]) : p->plot.right;
    int32_t top = tli_bytes_place(p, life->offset + life->bytes);
    return tli_box_of(left, top, right, tli_bytes_place(p, life->offset));
}

static int tli_is_large(const tli_box *box) {
    int64_t wide = box->right - box->left, high = box->bottom - box->top;
    return wide >= 100 && high >= 100 && wide * high >= 24 * 10000;
}

static int32_t tli_find_cell(int32_t at, int32_t start, int32_t count) {
    int32_t cell = (at - start) / TLI_MAP_CELL;
    return cell < 0 ? 0 : cell < count ? cell : count - 1;
}

static void tli_fill_cells(tli_gantt *g, const tli_box *box, tli_map_class of) {
    int32_t left = tli_find_cell(box->left, g->map.left, TLI_MAP_COLUMNS);
    int32_t right = tli_find_cell(box->right - 1, g->map.left, TLI_MAP_COLUMNS);
    int32_t top = tli_find_cell(box->top, g->map.top, TLI_MAP_ROWS), x;
    int32_t bottom = tli_find_cell(box->bottom - 1, g->map.top, TLI_MAP_ROWS);
    for (; top <= bottom; top++)
        for (x = left; x <= right; x++) g->cells[top * TLI_MAP_COLUMNS + x] = (uint8_t)(1 + of);
}

// Draw the cells of a class as one path, a piece for each run in a row.
static void tli_draw_cells(tli_gantt *g, tli_map_class of) {
    tli_stream *s = &g->p.out;
    int32_t row, column, from, any = 0;
    for (row = 0; row < TLI_MAP_ROWS && !s->result; row++)
        for (column = 0; column < TLI_MAP_COLUMNS; column++) {
            const uint8_t *cells = g->cells + row * TLI_MAP_COLUMNS;
            if (cells[column] != 1 + (int)of) continue;
            for (from = column; column < TLI_MAP_COLUMNS && cells[column] == 1 + (int)of; column++) continue;
            if (!any++) {
                tli_send(s, "<path class=\"");
                tli_send(s, tli_map_fills[of]);
                tli_send(s, "\" d=\"");
            }
            tli_send_move(s, "M", g->map.left + from * TLI_MAP_CELL, " ", g->map.top + row * TLI_MAP_CELL);
            tli_send_move(s, "h", (column - from) * TLI_MAP_CELL, "v2h-", (column - from) * TLI_MAP_CELL);
        }
    if (any) tli_send(s, "\"/>\n");
}

// Draw an allocation, with a tooltip: "conv1, gradient", "96 B at 400", "steps 12 to 17".
static void tli_draw_life(tli_gantt *g, const tl_lifetime *life, const tli_box *box) {
    tli_stream *s = &g->p.out;
    int32_t wide = box->right - box->left, high = box->bottom - box->top;
    tli_send(s, "<rect class=\"");
    tli_send(s, tli_map_fills[tli_find_map_class(life)]);
    tli_send(s, wide > 400 && high > 400 ? " cut" : "");
    tli_send_move(s, "\" x=\"", box->left, "\" y=\"", box->top);
    tli_send_move(s, "\" width=\"", wide, "\" height=\"", high);
    tli_send(s, "\"><title>");
    tli_send_text(s, tl_name_node(g->graph, life->node), 255);
    if (g->graph->nodes[life->node].output_count > 1) tli_send_number(s, ".", life->output);
    if (life->slot) tli_send_number(s, "@", life->slot);
    tli_send(s, ", ");
    tli_send(s, life->use == TL_USE_OUTPUT && life->occurrence ? "output made again" : tl_name_use(life->use));
    tli_send(s, "\n");
    tli_send_size(s, life->bytes);
    tli_send(s, " at ");
    tli_send_u64(s, life->offset);
    tli_send_number(s, "\nsteps ", life->first_step);
    tli_send_number(s, " to ", life->end_step > life->first_step ? life->end_step - 1 : life->first_step);
    tli_send(s, "</title></rect>\n");
    if (high >= 1300) tli_draw_name(g, life->node, box->left, box->right, (box->top + box->bottom) / 2 + 400);
}

// Turn to the plot of the arena, with the lines that are not far above it.
static void tli_open_map(tli_gantt *g) {
    tli_picture *p = &g->p;
    int32_t i, count = 0;
    p->plot = g->map;
    p->peak_bytes = g->peak.report.arena_bytes;
    for (i = 0; i < g->lifetimes.count; i++) {      // between blocks there may be addresses that nobody takes
        const tl_lifetime *life = &g->lifetimes.items[i];
        if (life->use != TL_USE_HOST) p->peak_bytes = tli_larger_u64(p->peak_bytes, life->offset + life->bytes);
    }
    p->byte_label = "addresses in the arena";
    p->taken_count = 0;
    for (i = 0; i < p->line_count; i++)
        if (g->lines[i].bytes - g->lines[i].bytes / 4 <= p->peak_bytes) g->lines[count++] = g->lines[i];
    p->line_count = count;
    tli_scale_byte_axis(p);
    tli_draw_byte_axis(p);
}

static void tli_draw_map(tli_gantt *g) {
    int is_used[TLI_MAP_CLASS_COUNT];
    int32_t i, of;
    tli_open_map(g);
    tli_zero(is_used, sizeof is_used);
    for (i = 0; i < g->lifetimes.count; i++) {
        const tl_lifetime *life = &g->lifetimes.items[i];
        tli_map_class of_life = tli_find_map_class(life);
        tli_box box = tli_find_life_box(g, life);
        if (life->use == TL_USE_HOST) continue;
        is_used[of_life] = 1;
        if (!tli_is_large(&box)) tli_fill_cells(g, &box, of_life);
    }
    g->legend_left = 2400;
    g->legend_top = g->map.top - 4500;
    for (of = 0; of < TLI_MAP_CLASS_COUNT; of++) {
        if (is_used[of]) tli_draw_legend_entry(g, tli_map_fills[of], tli_map_words[of]);
        tli_draw_cells(g, (tli_map_class)of);
    }
    for (i = 0; i < g->lifetimes.count && !g->p.out.result; i++) {
        const tl_lifetime *life = &g->lifetimes.items[i];
        tli_box box = tli_find_life_box(g, life);
        if (life->use != TL_USE_HOST && tli_is_large(&box)) tli_draw_life(g, life, &box);
    }
    tli_draw_lines(&g->p);
    tli_draw_line_labels(&g->p);
}

static void tli_draw_gantt(tli_gantt *g) {
    tli_picture *p = &g->p;
    int32_t lane;
    tli_draw_head(p);
    tli_send(&p->out, tli_plan_style_text);
    tli_draw_summary(g);
    tli_draw_lane_names(g);
    tli_draw_time_grid(p, TLI_HEAD_BOTTOM);
    for (lane = 0; lane < TLI_LANE_COUNT; lane++) if (g->tops[lane]) tli_draw_lane(g, lane);
    tli_draw_byte_axis(p);
    tli_draw_curves(p);
    tli_draw_lines(p);
    tli_draw_peaks(p);
    tli_draw_line_labels(p);
    tli_draw_peak_line(g);
    if (g->lifetimes.count) tli_draw_map(g);
    tli_draw_time_axis(p);
    tli_send(&p->out, "</svg>\n");
}

static tl_result tli_alloc_gantt(tli_gantt *g) {
    uint64_t count;
    g->count = g->plan->step_count ? g->plan->step_count : 1;
    count = (uint64_t)g->count;
    g->start = (uint64_t *)tli_alloc_array(g->env, 4 * count, sizeof *g->start);
    g->times = (double *)tli_alloc_array(g->env, count, sizeof *g->times);
    g->lanes = (uint8_t *)tli_alloc_array(g->env, count, 1);
    if (g->plan->offset_count)
        g->cells = (uint8_t *)tli_alloc_array(g->env, TLI_MAP_COLUMNS * TLI_MAP_ROWS, 1);
    if (!g->start || !g->times || !g->lanes || (g->plan->offset_count && !g->cells))
        return tli_fail(g->env, TL_ERROR_NO_MEMORY, TLI_IN(WRITE_PLAN_SVG), TLI_RULE(NO_MEMORY_FOR_PICTURE));
    g->end = g->start + count;
    g->live = g->end + count;
    g->host = g->live + count;
    return TL_OK;
}

// The lines of the memory: those of the caller, and the arena.
static void tli_add_lines(tli_gantt *g) {
    int32_t count = g->style ? g->style->line_count : 0;
    if (count) tli_copy(g->lines, g->style->lines, (size_t)count * sizeof g->lines[0]);
    if (g->plan->offset_count) {
        g->lines[count].label = "arena";
        g->lines[count++].bytes = g->peak.report.arena_bytes;
    }
    g->p.lines = g->lines;
    g->p.line_count = count;
}

static tl_result tli_write_gantt(tli_gantt *g, const tl_device *device, tl_sink sink) {
    tl_simulate_desc desc;
    tl_report report;
    tl_result result = tli_check_plan(g->env, TLI_IN(WRITE_PLAN_SVG), g->plan);
    if (!result && g->style && (g->style->line_count < 0 || g->style->line_count > 8))
        result = tli_fail(g->env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_PLAN_SVG),
                          TLI_RULE(LINE_COUNT_MUST_BE_0_TO_8));
    if (!result) result = tli_alloc_gantt(g);
    if (result) return result;
    tli_zero(&desc, sizeof desc);
    desc.graph = g->graph;
    desc.plan = g->plan;
    desc.device = device;
    desc.live_bytes = g->live;
    desc.host_bytes = g->host;
    desc.start_cost = g->start;
    desc.end_cost = g->end;
    result = tli_find_peak(g->env, TLI_IN(WRITE_PLAN_SVG), &desc, &g->peak);
    if (!result) result = tli_read_gantt(g, device != NULL);
    if (result) return result;
    if (g->plan->offset_count)
        result = tli_find_lifetimes(g->env, TLI_IN(WRITE_PLAN_SVG), &desc, &g->lifetimes, &report);
    if (result) return result;
    tli_add_lines(g);
    tli_sort_largest(&g->peak, g->peak.live_count < TLI_EXPLAIN_ROWS ? g->peak.live_count : TLI_EXPLAIN_ROWS);
    tli_lay_out_gantt(g);
    tli_scale_byte_axis(&g->p);
    tli_open_stream(&g->p.out, sink);
    tli_draw_gantt(g);
    return tli_close_stream(&g->p.out, g->env, TLI_IN(WRITE_PLAN_SVG));
}

TLI_IMPL tl_result tl_write_plan_svg(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                     const tl_device *device, const tl_svg_style *style, tl_sink sink) {
    tli_gantt g;
    tl_result result;
    TL_ASSERT(graph && plan && sink.write);
    tli_zero(&g, sizeof g);
    g.env = env;
    g.graph = graph;
    g.plan = plan;
    g.style = style;
    result = tli_write_gantt(&g, device, sink);
    tli_release(env, g.start);
    tli_release(env, g.times);
    tli_release(env, g.lanes);
    tli_release(env, g.cells);
    tli_release(env, g.peak.live);
    tl_free_lifetimes(env, &g.lifetimes);
    return result;
}

#endif  // TL_NO_TEXT
#endif  // TL_NO_TRACE
#endif  // TL_STRATEGY_IMPLEMENTATION

