#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TRACE
#ifndef TL_NO_TEXT

// The picture of memory over time, and what all pictures share: texts, places, axes, curves, marks. Pictures
// are SVG (Scalable Vector Graphics), written in one pass from back to front; positions are integers, in
// hundredths of a pixel.

// -- the picture: texts --

// Send at most `limit` characters of a text as XML. Control characters become spaces; what is not UTF-8, U+FFFE
// and U+FFFF become U+FFFD.
static void tli_send_text(tli_stream *s, const char *text, int32_t limit) {
    const char *end = text + tli_text_length(text);
    for (; text < end && limit > 0; limit--) {
        uint32_t code = 0;
        size_t length = tli_utf8_length(text, end, &code);
        if (!length || code == 0xFFFE || code == 0xFFFF) tli_send(s, "\xEF\xBF\xBD");
        else if (code < 0x20) tli_send(s, " ");
        else if (code == '&') tli_send(s, "&amp;");
        else if (code == '<') tli_send(s, "&lt;");
        else if (code == '>') tli_send(s, "&gt;");
        else tli_send_bytes(s, text, length);
        text += length ? length : 1;
    }
    if (text < end) tli_send(s, "\xE2\x80\xA6");  // an ellipsis
}

// -- the picture: places, in hundredths of a pixel --

#define TLI_CURVE_LIMIT 8
#define TLI_LINE_LIMIT  9    // eight of the caller and the arena
#define TLI_LETTER      720  // assumed width of a letter of the body text, rather too wide

typedef struct tli_place { int32_t x, y; } tli_place;

typedef struct tli_box { int32_t left, top, right, bottom; } tli_box;

typedef struct tli_picture {
    tli_stream             out;
    const tl_memory_curve *curves;     // [curve_count]
    int32_t                curve_count;
    int32_t                width, height;  // in pixels
    const char            *title, *time_label, *byte_label;
    const tl_svg_line     *lines;      // [line_count]
    int32_t                line_count;
    int                    whole_steps;  // 1 = no curve has times: ticks at whole numbers
    int32_t                legend_columns, legend_width;  // legend_width: of one entry
    tli_box                plot;
    int32_t                bottom;       // of the lowest plot

    double                 last_time;    // right end of the time axis
    int32_t                colour;       // of the first curve
    int32_t                peak_steps[TLI_CURVE_LIMIT];
    uint64_t               peak_bytes;   // of all curves
    int                    unit;         // of the byte axis
    uint64_t               tick_hundredths;  // of the unit, between two ticks
    int32_t                tick_count;   // ticks above 0; the last one is the top of the plot
    int                    shift;        // bytes are shifted right before they are scaled
    uint64_t               top_bytes;    // at the top of the plot, shifted
    tli_box                taken[2 * TLI_CURVE_LIMIT + TLI_LINE_LIMIT];  // [taken_count] marks and labels
    int32_t                taken_count;
} tli_picture;

static int32_t tli_time_place(const tli_picture *p, double time) {
    return p->plot.left + (int32_t)(time / p->last_time * (double)(p->plot.right - p->plot.left));
}

static double tli_step_end(const tl_memory_curve *curve, int32_t step) {
    if (step < 0) return 0;
    return curve->times ? curve->times[step] : (double)step + 1;
}

static int32_t tli_bytes_place(const tli_picture *p, uint64_t bytes) {
    uint64_t high = (uint64_t)(p->plot.bottom - p->plot.top);
    return p->plot.bottom - (int32_t)((bytes >> p->shift) * high / p->top_bytes);
}

static int tli_find_places(uint64_t hundredths) {
    return hundredths % 100 == 0 ? 0 : hundredths % 10 == 0 ? 1 : 2;
}

static void tli_send_hundredths(tli_stream *s, uint64_t hundredths, int places) {
    tli_send_decimal(s, places == 2 ? hundredths : places == 1 ? hundredths / 10 : hundredths / 100, places);
}

static void tli_send_place(tli_stream *s, int32_t hundredths) {
    tli_send_hundredths(s, (uint64_t)hundredths, tli_find_places((uint64_t)hundredths));
}

// Send a command and two numbers: one piece of a path, or two attributes.
static void tli_send_move(tli_stream *s, const char *command, int32_t x, const char *between, int32_t y) {
    tli_send(s, command);
    tli_send_place(s, x);
    tli_send(s, between);
    tli_send_place(s, y);
}

// Send the start tag of a text; the content and the end tag follow.
static void tli_send_text_start(tli_stream *s, int32_t x, int32_t y, const char *attributes) {
    tli_send_move(s, "<text x=\"", x, "\" y=\"", y);
    tli_send(s, "\"");
    tli_send(s, attributes);
    tli_send(s, ">");
}

// -- the picture: checks and layout --

// Refuse a picture because of one of its curves or points.
static tl_result tli_fail_drawn(tl_env *env, tli_function function, const char *what, int32_t index,
                                tli_rule rule) {
    tli_sentence s = tli_begin_error(env, TL_ERROR_INVALID_ARG, function, rule, (uint64_t)index, 0);
    if (TLI_ERROR_TEXT) {
        tli_put(&s.text, what);
        tli_put(&s.text, " ");
        tli_put_i64(&s.text, index);
        tli_put(&s.text, ": ");
    }
    return tli_end_error(env, &s, TL_ERROR_INVALID_ARG);
}

static tl_result tli_fail_curve(tl_env *env, int32_t curve, tli_rule rule) {
    return tli_fail_drawn(env, TLI_IN(WRITE_MEMORY_SVG), "curve", curve, rule);
}

// Check one curve, find its peak, and widen both axes to it.
static tl_result tli_measure_curve(tl_env *env, tli_picture *p, int32_t index) {
    const tl_memory_curve *curve = &p->curves[index];
    uint64_t peak = 0;
    double last = 0;
    int32_t i;
    if (curve->count < 1) return tli_fail_curve(env, index, TLI_RULE(COUNT_MUST_BE_POSITIVE));
    TL_ASSERT(curve->live_bytes);
    for (i = 0; i < curve->count; i++) {
        double time = tli_step_end(curve, i);
        if (!(time >= last)) return tli_fail_curve(env, index, TLI_RULE(TIMES_MUST_BE_NOT_NEGATIVE_AND_NEVER));
        last = time;
        if (curve->live_bytes[i] > peak) { peak = curve->live_bytes[i]; p->peak_steps[index] = i; }
    }
    if (!(last >= 1e-12 && last <= 1e18))
        return tli_fail_curve(env, index, TLI_RULE(TIMES_MUST_END_BETWEEN_1E_12_AND_1E18));
    if (last > p->last_time) p->last_time = last;
    if (peak > p->peak_bytes) p->peak_bytes = peak;
    if (curve->times) p->whole_steps = 0;
    return TL_OK;
}

static tl_result tli_open_picture(tl_env *env, tli_picture *p, const tl_svg_style *style) {
    int32_t i;
    p->width = style && style->width ? style->width : 960;
    p->height = style && style->height ? style->height : 480;
    p->title = style && style->title ? style->title : "";
    p->time_label = style && style->time_label ? style->time_label : "step";
    p->whole_steps = 1;
    p->lines = style ? style->lines : NULL;
    p->line_count = style ? style->line_count : 0;
    if (p->line_count < 0 || p->line_count > 8)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_MEMORY_SVG),
                        TLI_RULE(LINE_COUNT_MUST_BE_0_TO_8));
    if (p->curve_count < 1 || p->curve_count > TLI_CURVE_LIMIT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_MEMORY_SVG),
                        TLI_RULE(CURVE_COUNT_MUST_BE_1_TO_8));
    if (p->width < 320 || p->width > 16384 || p->height < 240 || p->height > 16384)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_MEMORY_SVG),
                        TLI_RULE(STYLE_MUST_BE_320_TO_16384_PIXELS_WIDE));
    for (i = 0; i < p->curve_count; i++) {
        tl_result result = tli_measure_curve(env, p, i);
        if (result) return result;
    }
    return TL_OK;
}

// Place from top to bottom: title, legend, name of the byte axis, plot, ticks, name of the time axis.
static void tli_lay_out(tli_picture *p) {
    int32_t row = (p->width - 48) * 100, letters = 8, rows, i;
    for (i = 0; i < p->curve_count; i++) {
        int32_t count = tli_count_characters(p->curves[i].label ? p->curves[i].label : "", row / TLI_LETTER);
        if (count > letters) letters = count;
    }
    p->legend_width = letters * TLI_LETTER + 5200;
    p->legend_columns = row / p->legend_width ? row / p->legend_width : 1;
    if (p->legend_columns > p->curve_count) p->legend_columns = p->curve_count;
    rows = (p->curve_count + p->legend_columns - 1) / p->legend_columns;
    p->plot.left = 8400;
    p->plot.right = (p->width - 30) * 100;
    p->plot.top = (*p->title ? 8600 : 4800) + rows * 2200;
    p->plot.bottom = (p->height - 58) * 100;
    if (p->plot.bottom < p->plot.top + 4000) p->plot.bottom = p->plot.top + 4000;
    p->bottom = p->plot.bottom;
}

// Lines are drawn up to four times the highest curve.
static int tli_is_line_near(const tli_picture *p, uint64_t bytes) { return bytes / 4 <= p->peak_bytes; }

// The highest bytes of the curves, and of the lines that are drawn.
static uint64_t tli_find_highest(const tli_picture *p) {
    uint64_t highest = p->peak_bytes;
    int32_t i;
    for (i = 0; i < p->line_count; i++)
        if (tli_is_line_near(p, p->lines[i].bytes) && p->lines[i].bytes > highest) highest = p->lines[i].bytes;
    return highest;
}

// Ticks at multiples of 1, 2 or 5 times a power of ten, about one in 55 pixels, with some room above the peak.
static void tli_scale_byte_axis(tli_picture *p) {
    uint64_t highest = tli_find_highest(p), wanted, factor = 1, power;
    uint64_t most = (uint64_t)(p->plot.bottom - p->plot.top) / 5500 + 1;
    p->unit = tli_find_byte_unit(highest);
    wanted = tli_scale_bytes_to(highest, p->unit, 100) * 107 / 100;
    power = p->unit ? 1 : 100;  // whole bytes only
    if (most < 2) most = 2;
    while (wanted / (factor * power) + 1 > most) {
        factor = factor == 1 ? 2 : factor == 2 ? 5 : 10;
        if (factor == 10) { factor = 1; power *= 10; }
    }
    p->tick_hundredths = factor * power;
    p->tick_count = (int32_t)(wanted / p->tick_hundredths) + 1;
    p->shift = 0;
    while (highest >> p->shift >> 40) p->shift++;
    p->top_bytes = ((uint64_t)p->tick_count * p->tick_hundredths << (10 * p->unit - p->shift)) / 100;
}

// -- the picture: its parts --

// Colours: Okabe, Ito, Color Universal Design, 2008; with a darker yellow on white and a lighter
// blue on black.
static const char tli_svg_style_text[] =
    "<style>\n"
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;"
    "font-size:13px;fill:#59636e}\n"
    ".title{font-size:18px;font-weight:600;fill:#1f2328}\n"
    ".label{fill:#1f2328}\n"
    ".value{font-size:12px;font-weight:600;fill:#1f2328;"
    "stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}\n"
    ".page{fill:#fff;stroke:#d1d9e0}\n"
    ".grid{fill:none;stroke:#e4e8ec}\n"
    ".axis{fill:none;stroke:#818b98}\n"
    ".line{fill:none;stroke:#59636e;stroke-width:1.5;stroke-dasharray:7 4}\n"
    ".note{font-size:12px;stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}\n"
    ".curve{fill-opacity:.08;stroke-width:2;stroke-linejoin:round}\n"
    ".mark{fill:#fff;stroke-width:2}\n"
    ".k0{stroke:#0072b2}.k1{stroke:#d55e00}.k2{stroke:#009e73}.k3{stroke:#cc79a7}"
    ".k4{stroke:#e69f00}.k5{stroke:#56b4e9}.k6{stroke:#000}.k7{stroke:#b0a000}\n"
    ".f0{fill:#0072b2}.f1{fill:#d55e00}.f2{fill:#009e73}.f3{fill:#cc79a7}"
    ".f4{fill:#e69f00}.f5{fill:#56b4e9}.f6{fill:#000}.f7{fill:#b0a000}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#9198a1}.title,.label,.value{fill:#f0f6fc}.value,.note{stroke:#0d1117}\n"
    ".line{stroke:#9198a1}\n"
    ".page{fill:#0d1117;stroke:#3d444d}.grid{stroke:#21262d}.axis{stroke:#656c76}\n"
    ".mark{fill:#0d1117}.curve{fill-opacity:.12}\n"
    ".k0{stroke:#3d9be0}.k1{stroke:#f0803c}.k2{stroke:#17b890}"
    ".k5{stroke:#8fd0f5}.k6{stroke:#d0d7de}.k7{stroke:#f0e442}\n"
    ".f0{fill:#3d9be0}.f1{fill:#f0803c}.f2{fill:#17b890}"
    ".f5{fill:#8fd0f5}.f6{fill:#d0d7de}.f7{fill:#f0e442}\n"
    "}\n"
    "</style>\n";

static void tli_draw_head(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t height = p->bottom / 100 + 58;
    tli_send(s, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"");
    tli_send_i32(s, p->width);
    tli_send(s, "\" height=\"");
    tli_send_i32(s, height);
    tli_send(s, "\" viewBox=\"0 0 ");
    tli_send_i32(s, p->width);
    tli_send(s, " ");
    tli_send_i32(s, height);
    tli_send(s, "\">\n<title>");
    tli_send_text(s, *p->title ? p->title : "live bytes", 255);
    tli_send(s, "</title>\n");
    tli_send(s, tli_svg_style_text);
    tli_send(s, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" rx=\"6\" width=\"");
    tli_send_i32(s, p->width - 1);
    tli_send(s, "\" height=\"");
    tli_send_i32(s, height - 1);
    tli_send(s, "\"/>\n");
    if (!*p->title) return;
    tli_send_text_start(s, 2400, 3800, " class=\"title\"");
    tli_send_text(s, p->title, (p->width - 48) / 10);
    tli_send(s, "</text>\n");
}

// Send the label of a curve, such as "keep all, 12.0 MiB"; without one, its number.
static void tli_send_label(tli_picture *p, int32_t curve, int32_t limit) {
    if (p->curves[curve].label) { tli_send_text(&p->out, p->curves[curve].label, limit); return; }
    tli_send(&p->out, "curve ");
    tli_send_i32(&p->out, curve);
}

static void tli_send_number(tli_stream *s, const char *before, int32_t number) {
    tli_send(s, before);
    tli_send_i32(s, number);
}

static void tli_draw_legend(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t i, limit = ((p->width - 48) * 100 - 2800) / TLI_LETTER;
    for (i = 0; i < p->curve_count; i++) {
        int32_t x = 2400 + i % p->legend_columns * p->legend_width;
        int32_t y = (*p->title ? 5600 : 1800) + i / p->legend_columns * 2200;
        tli_send_number(s, "<rect class=\"f", i);
        tli_send_move(s, "\" x=\"", x, "\" y=\"", y);
        tli_send(s, "\" rx=\"2\" width=\"18\" height=\"10\"/>\n");
        tli_send_text_start(s, x + 2600, y + 1000, " class=\"label\"");
        tli_send_label(p, i, limit);
        tli_send(s, "</text>\n");
    }
}

static void tli_draw_byte_axis(tli_picture *p) {
    tli_stream *s = &p->out;
    int places = tli_find_places(p->tick_hundredths);
    int32_t i;
    for (i = 0; i <= p->tick_count; i++) {
        int32_t high = (int32_t)((int64_t)(p->plot.bottom - p->plot.top) * i / p->tick_count);
        tli_send_move(s, "<path class=\"grid\" d=\"M", p->plot.left, " ", p->plot.bottom - high);
        tli_send(s, "H");
        tli_send_place(s, p->plot.right);
        tli_send(s, "\"/>\n");
        tli_send_text_start(s, p->plot.left - 1000, p->plot.bottom - high + 450, " text-anchor=\"end\"");
        tli_send_hundredths(s, (uint64_t)i * p->tick_hundredths, i ? places : 0);
        if (i) tli_send(s, tli_byte_units[p->unit]);
        tli_send(s, "</text>\n");
    }
    tli_send_text_start(s, 2400, p->plot.top - 1500, "");
    tli_send(s, p->byte_label ? p->byte_label : "live bytes");
    tli_send(s, "</text>\n");
}

// Send value * 10^power, the label of a tick.
static void tli_send_tick(tli_stream *s, uint64_t value, int power) {
    if (!value || power < 0) { tli_send_decimal(s, value, value ? -power : 0); return; }
    tli_send_u64(s, value);
    if (power > 5) tli_send_number(s, "e", power);
    else for (; power; power--) tli_send(s, "0");
}

// Ticks at multiples of 1, 2 or 5 times a power of ten, about one in 70 pixels.
static double tli_find_time_tick(const tli_picture *p, int *factor, int *power) {
    double least = p->last_time * 7000 / (double)(p->plot.right - p->plot.left), ten = 1;
    *factor = 1;
    *power = 0;
    while (ten > least && (*power > 0 || !p->whole_steps)) { ten /= 10; --*power; }
    while (ten * *factor < least) {
        *factor = *factor == 1 ? 2 : *factor == 2 ? 5 : 10;
        if (*factor == 10) { *factor = 1; ten *= 10; ++*power; }
    }
    return ten * *factor;
}

// The x of tick i; 0 = it is beyond the end of the axis.
static int32_t tli_find_tick_place(const tli_picture *p, double tick, uint64_t i) {
    int32_t x;
    if ((double)i * tick > p->last_time * (1 + 1e-9)) return 0;
    x = tli_time_place(p, (double)i * tick);
    return x > p->plot.right ? p->plot.right : x;
}

static void tli_draw_time_grid(tli_picture *p, int32_t top) {
    int factor, power;
    double tick = tli_find_time_tick(p, &factor, &power);
    uint64_t i;
    int32_t x;
    for (i = 0; (x = tli_find_tick_place(p, tick, i)) > 0; i++) {
        tli_send_move(&p->out, "<path class=\"grid\" d=\"M", x, " ", top);
        tli_send(&p->out, "V");
        tli_send_place(&p->out, p->bottom);
        tli_send(&p->out, "\"/>\n");
    }
}

static void tli_draw_time_axis(tli_picture *p) {
    tli_stream *s = &p->out;
    int factor, power;
    double tick = tli_find_time_tick(p, &factor, &power);
    uint64_t i;
    int32_t x;
    for (i = 0; (x = tli_find_tick_place(p, tick, i)) > 0; i++) {
        tli_send_move(s, "<path class=\"axis\" d=\"M", x, " ", p->plot.bottom);
        tli_send(s, "v5\"/>\n");
        tli_send_text_start(s, x, p->plot.bottom + 2000, " text-anchor=\"middle\"");
        tli_send_tick(s, i * (uint64_t)factor, power);
        tli_send(s, "</text>\n");
    }
    tli_send_move(s, "<path class=\"axis\" d=\"M", p->plot.left, " ", p->plot.bottom);
    tli_send(s, "H");
    tli_send_place(s, p->plot.right);
    tli_send(s, "\"/>\n");
    tli_send_text_start(s, (p->plot.left + p->plot.right) / 2, p->plot.bottom + 4200,
                        " text-anchor=\"middle\"");
    tli_send_text(s, p->time_label, p->width / 10);
    tli_send(s, "</text>\n");
}

// The state of drawing a curve. Steps narrower than a pixel are merged at the height of the highest, so that
// no peak is lost. A merged piece that is still narrower than a pixel is drawn if it is higher than both
// neighbours.
typedef struct tli_pen {
    int32_t  from, x;   // start and end of the piece that is not drawn yet
    int32_t  pending;   // steps in it
    uint64_t highest;   // of these
    int32_t  y;         // of what was drawn last
} tli_pen;

static void tli_draw_piece(tli_picture *p, tli_pen *pen, uint64_t next_bytes) {
    int32_t y = tli_bytes_place(p, pen->highest);
    int stands_out = y < pen->y && pen->highest > next_bytes;
    if (pen->pending && y != pen->y && (pen->x - pen->from >= 100 || stands_out)) {
        tli_send_move(&p->out, "H", pen->from, "V", y);
        pen->y = y;
    }
    pen->from = pen->x;
    pen->pending = 0;
    pen->highest = 0;
}

static void tli_draw_curve(tli_picture *p, int32_t index) {
    const tl_memory_curve *curve = &p->curves[index];
    tli_stream *s = &p->out;
    tli_pen pen;
    int32_t i;
    pen.from = pen.x = p->plot.left;
    pen.pending = 0;
    pen.highest = 0;
    pen.y = p->plot.bottom;
    tli_send_number(s, "<path class=\"curve k", p->colour + index);
    tli_send_number(s, " f", p->colour + index);
    tli_send_move(s, "\" d=\"M", p->plot.left - 1000, " ", p->plot.bottom);  // outside the clip: no left edge
    if (curve->live_bytes[0]) {
        pen.y = tli_bytes_place(p, curve->live_bytes[0]);
        tli_send(s, "V");
        tli_send_place(s, pen.y);
    }
    for (i = 0; i < curve->count && !s->result; i++) {
        int32_t x = tli_time_place(p, tli_step_end(curve, i));
        if (x - pen.x >= 100) tli_draw_piece(p, &pen, curve->live_bytes[i]);
        if (curve->live_bytes[i] > pen.highest) pen.highest = curve->live_bytes[i];
        pen.x = x;
        pen.pending++;
        if (pen.x - pen.from >= 100 || i == curve->count - 1) tli_draw_piece(p, &pen, 0);
    }
    tli_send_move(s, "H", pen.x, "V", p->plot.bottom);
    tli_send(s, "\"><title>");
    tli_send_label(p, index, 255);
    tli_send(s, "</title></path>\n");
}

static void tli_draw_curves(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t i;
    tli_send_move(s, "<clipPath id=\"plot\"><path d=\"M", p->plot.left, " ", p->plot.top);
    tli_send_move(s, "H", p->plot.right + 200, "V", p->plot.bottom);
    tli_send(s, "H");
    tli_send_place(s, p->plot.left);
    tli_send(s, "Z\"/></clipPath>\n<g clip-path=\"url(#plot)\">\n");
    for (i = 0; i < p->curve_count; i++) tli_draw_curve(p, i);
    tli_send(s, "</g>\n");
}

// -- the picture: peaks --

static tli_box tli_box_of(int32_t left, int32_t top, int32_t right, int32_t bottom) {
    tli_box box;
    box.left = left; box.top = top; box.right = right; box.bottom = bottom;
    return box;
}

static int tli_is_free(const tli_picture *p, tli_box box) {
    int32_t i;
    if (box.left < p->plot.left || box.right > p->plot.right) return 0;
    if (box.top < p->plot.top - 1200 || box.bottom > p->plot.bottom) return 0;
    for (i = 0; i < p->taken_count; i++) {
        const tli_box *taken = &p->taken[i];
        int beside = box.left >= taken->right || taken->left >= box.right;
        if (!beside && box.top < taken->bottom && taken->top < box.bottom) return 0;
    }
    return 1;
}

static tli_place tli_find_peak_place(const tli_picture *p, int32_t curve) {
    const tl_memory_curve *c = &p->curves[curve];
    int32_t step = p->peak_steps[curve];
    tli_place place;
    place.x = (tli_time_place(p, tli_step_end(c, step - 1)) + tli_time_place(p, tli_step_end(c, step))) / 2;
    place.y = tli_bytes_place(p, c->live_bytes[step]);
    return place;
}

// Places for the label of a peak, relative to its mark; the first one that is free is taken.
static const struct { int32_t x, y, anchor; } tli_label_places[] = {  // anchor: -1 start, 0 middle, 1 end
    { 0, -1000, 0 },   { 900, -600, -1 },  { -900, -600, 1 },   { 1000, 400, -1 },   { -1000, 400, 1 },
    { 0, 1900, 0 },    { 900, 1600, -1 },  { -900, 1600, 1 },   { 0, -2500, 0 },     { 0, 3400, 0 },
    { 4500, -1000, -1 }, { -4500, -1000, 1 }, { 4500, 1800, -1 }, { -4500, 1800, 1 } };

#define TLI_LABEL_PLACES ((int32_t)(sizeof tli_label_places / sizeof tli_label_places[0]))

static void tli_draw_peak(tli_picture *p, int32_t curve) {
    static const char *const anchors[] = { " class=\"value\"", " class=\"value\" text-anchor=\"middle\"",
                                           " class=\"value\" text-anchor=\"end\"" };
    tli_stream *s = &p->out;
    tli_place at = tli_find_peak_place(p, curve);
    int32_t i, best = 0, wide = 8 * TLI_LETTER;
    for (i = 0; i <= TLI_LABEL_PLACES; i++) {
        int32_t place = i < TLI_LABEL_PLACES ? i : 0;  // none is free: take the first
        int32_t x = at.x + tli_label_places[place].x - wide * (tli_label_places[place].anchor + 1) / 2;
        int32_t y = at.y + tli_label_places[place].y;
        tli_box box = tli_box_of(x, y - 1050, x + wide, y + 300);
        best = place;
        if (i < TLI_LABEL_PLACES && !tli_is_free(p, box)) continue;
        p->taken[p->taken_count++] = box;
        break;
    }
    tli_send_number(s, "<circle class=\"mark k", p->colour + curve);
    tli_send_move(s, "\" cx=\"", at.x, "\" cy=\"", at.y);
    tli_send(s, "\" r=\"4\"/>\n");
    tli_send_text_start(s, at.x + tli_label_places[best].x, at.y + tli_label_places[best].y,
                        anchors[tli_label_places[best].anchor + 1]);
    tli_send_size(s, p->curves[curve].live_bytes[p->peak_steps[curve]]);
    tli_send(s, "</text>\n");
}

static void tli_draw_peaks(tli_picture *p) {
    int32_t i;
    for (i = 0; i < p->curve_count; i++) {
        tli_place at = tli_find_peak_place(p, i);
        p->taken[p->taken_count++] = tli_box_of(at.x - 500, at.y - 500, at.x + 500, at.y + 500);
    }
    for (i = 0; i < p->curve_count; i++) tli_draw_peak(p, i);
}

// -- the picture: lines --

// Send "budget 18.4 MiB", with an arrow up where the line is above the picture.
static void tli_send_line_label(tli_picture *p, const tl_svg_line *line, int is_near) {
    if (!is_near) tli_send(&p->out, "\xE2\x86\x91 ");
    if (line->label) {
        tli_send_text(&p->out, line->label, 40);
        tli_send(&p->out, " ");
    }
    tli_send_size(&p->out, line->bytes);
}

static void tli_draw_lines(tli_picture *p) {
    int32_t i;
    for (i = 0; i < p->line_count; i++) {
        uint64_t bytes = p->lines[i].bytes;
        if (!tli_is_line_near(p, bytes)) continue;
        tli_send_move(&p->out, "<path class=\"line\" d=\"M", p->plot.left, " ", tli_bytes_place(p, bytes));
        tli_send(&p->out, "H");
        tli_send_place(&p->out, p->plot.right);
        tli_send(&p->out, "\"/>\n");
    }
}

// Draw the labels of the lines where there is room: above them from the right, below them, or further left.
static void tli_draw_line_labels(tli_picture *p) {
    tli_stream *s = &p->out;
    int32_t i, turn;
    for (i = 0; i < p->line_count; i++) {
        const tl_svg_line *line = &p->lines[i];
        int is_near = tli_is_line_near(p, line->bytes);
        int32_t y = is_near ? tli_bytes_place(p, line->bytes) : p->plot.top + 700;
        int32_t wide = (tli_count_characters(line->label ? line->label : "", 40) + 12) * TLI_LETTER * 9 / 10;
        tli_box box = tli_box_of(0, 0, 0, 0);
        for (turn = 0; turn < 2 * TLI_LINE_LIMIT; turn++) {
            int32_t right = p->plot.right - turn / 2 * wide, low = y + (is_near && turn % 2 ? 1500 : -500);
            box = tli_box_of(right - wide, low - 1050, right, low + 300);
            if (tli_is_free(p, box)) break;
        }
        p->taken[p->taken_count++] = box;
        tli_send_text_start(s, box.right - 400, box.bottom - 300, " class=\"note\" text-anchor=\"end\"");
        tli_send_line_label(p, line, is_near);
        tli_send(s, "</text>\n");
    }
}

TLI_IMPL tl_result tl_write_memory_svg(tl_env *env, const tl_memory_curve *curves, int32_t curve_count,
                                       const tl_svg_style *style, tl_sink sink) {
    tli_picture p;
    tl_result result;
    TL_ASSERT((curves || curve_count < 1) && sink.write);
    tli_zero(&p, sizeof p);
    tli_open_stream(&p.out, sink);
    p.curves = curves;
    p.curve_count = curve_count;
    result = tli_open_picture(env, &p, style);
    if (result) return result;
    tli_lay_out(&p);
    tli_scale_byte_axis(&p);
    tli_draw_head(&p);
    tli_draw_legend(&p);
    tli_draw_byte_axis(&p);
    tli_draw_curves(&p);
    tli_draw_time_axis(&p);
    tli_draw_lines(&p);
    tli_draw_peaks(&p);
    tli_draw_line_labels(&p);
    tli_send(&p.out, "</svg>\n");
    return tli_close_stream(&p.out, env, TLI_IN(WRITE_MEMORY_SVG));
}
#endif  // TL_NO_TEXT
#endif  // TL_NO_TRACE
#endif  // TL_STRATEGY_IMPLEMENTATION

