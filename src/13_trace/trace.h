#ifndef TL_STRATEGY_H
#ifdef __cplusplus
extern "C" {
#endif
#ifndef TL_NO_TRACE

// ============================================================================
// [13] TRACE -- what a run did, as a picture and as a trace; a plan as a picture
//
//     desc.observe = tl_record_event; desc.observe_user = trace;    // [12] RUN
//     tl_write_trace_json(&env, trace, &graph, sink);  // chrome://tracing, ui.perfetto.dev
//     tl_write_memory_svg(&env, curves, count, &style, sink);
//     tl_write_plan_svg(&env, &graph, &plan, &device, &style, sink);  // before anything runs
//
// A trace keeps the events of a run, up to a capacity, oldest first. All writers stream to a sink of
// the caller; those of traces and curves allocate nothing. When a sink returns an error, the writer
// stops and returns it. Steps, nodes and curves are counted from 0, as in plans and tables.
// ============================================================================

typedef struct tl_trace tl_trace;

// Make room for the events of a run. The env must outlive the trace.
//
//   capacity   events kept; further ones are counted and dropped
//
// Errors:  TL_ERROR_INVALID_ARG: capacity < 1; TL_ERROR_NO_MEMORY. *trace is NULL then.
TLDEF tl_result tl_init_trace(tl_env *env, int32_t capacity, tl_trace **trace);
TLDEF void      tl_free_trace(tl_trace *trace);   // accepts NULL
TLDEF void      tl_reset_trace(tl_trace *trace);  // empty again

// Add an event to a trace. This function goes into tl_run_desc.observe, the trace into observe_user.
TLDEF void tl_record_event(const tl_run_event *event, void *trace);

// Tell how many events were kept and how many dropped; both may be NULL.
TLDEF void tl_measure_trace(const tl_trace *trace, int32_t *kept, int32_t *dropped);

#ifndef TL_NO_TEXT
// Write the trace as Chrome trace-event JSON: compute and copies as complete events on two
// threads, memory of both tiers as counters; the names of nodes come from the graph. Times count from
// the earliest start; without a clock each step is drawn 1 us long. A copy is one event: it begins when
// it was issued, or when the copy before it ended if that is later, and ends with its WAIT. A call that was
// begun is an asynchronous event from the step that begins it to the end of its work.
//
// Errors:  what the sink returned; the text tells after how many bytes.
// Cost:    O(events), and for each WAIT the events back to where its copy was issued.
TLDEF tl_result tl_write_trace_json(tl_env *env, const tl_trace *trace, const tl_graph *graph, tl_sink sink);

// One curve of a memory picture: live bytes over the steps of one pass.
typedef struct tl_memory_curve {
    const char     *label;       // "keep all, 12.0 MiB"; 0 = "curve 0", "curve 1", ...
    const uint64_t *live_bytes;  // [count] highest bytes during each step
    const double   *times;       // [count] end of each step, from 0, never falling; 0 = one each
    int32_t         count;       // > 0
} tl_memory_curve;

// A dashed line across a picture of memory: a budget, an arena, what keeping everything would take.
typedef struct tl_svg_line {
    const char *label;           // "budget"; its bytes are written behind it; 0 = the bytes alone
    uint64_t    bytes;
} tl_svg_line;

typedef struct tl_svg_style {
    const char *title;           // 0 = none
    const char *time_label;      // 0 = "step"
    int32_t     width, height;   // 320..16384 x 240..16384 pixels; 0 = 960 x 480
    const tl_svg_line *lines;    // [line_count] those above four times the highest bytes are named only, at the
                                 // upper edge
    int32_t     line_count;      // 0 .. 8
} tl_svg_style;

// Draw memory over time, one stepped line a curve, with axes, grid, a legend and each curve's peak
// marked. Colours follow the light or dark theme of the viewer. Steps narrower than a pixel are merged
// at the height of their highest. A legend with many rows makes the picture higher.
//
//   style   may be NULL; texts are UTF-8
//
// Errors:  TL_ERROR_INVALID_ARG: no curve, an empty one, more than 8, or more than 8 lines; times that
//          decrease, are not finite or end outside 1e-12 .. 1e18; a size out of range; what the sink returned.
// Cost:    O(points) time, no allocation; 2 pieces of line a pixel at most.
TLDEF tl_result tl_write_memory_svg(tl_env *env, const tl_memory_curve *curves, int32_t curve_count,
                                    const tl_svg_style *style, tl_sink sink);

// Draw a plan over simulated time: forwards, recomputed forwards, backwards, conversions, waits and copies,
// a lane each, and below them, on the same time axis, the live bytes of both tiers with the peak, its step
// and the tensors that are live there. The tooltip of a bar has its node, times and bytes. Bars narrower
// than a pixel are merged, so that plans of any number of steps can be read.
//
// Of a plan with offsets the lowest part is the arena: a rectangle for each allocation on the device, from its
// first step to its last and over its addresses, coloured by use and named where there is room. What is
// smaller than 24 square pixels, or than one in either direction, is drawn in cells of two pixels. The plan
// of a run has the places that it took (tl_find_run_plan).
//
//   device   0 = copies and conversions take no time; otherwise costs are nanoseconds
//   style    may be NULL; of it the title, which stands before the counts of steps and nodes, and the lines
//
// Errors:  those of tl_simulate_plan, TL_ERROR_NO_MEMORY; TL_ERROR_INVALID_ARG: more than 8 lines; what the
//          sink returned.
// Cost:    that of three simulations; 41 bytes of memory a step, and the lifetimes; at most 4 bars a pixel and
//          lane, and about 3 MB of text.
TLDEF tl_result tl_write_plan_svg(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                  const tl_device *device, const tl_svg_style *style, tl_sink sink);

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Draw a Pareto front of [7]: the speed-up over the loss that it costs. The axis of losses is logarithmic,
// with a place for a loss of 0 beside it. The knee is marked; where the front is not proven, a second line
// is the bound that no choice can exceed. The tooltip of a point has its loss, speed-up and bytes;
// points closer than two pixels to the one before are left out.
//
// Errors:  TL_ERROR_INVALID_ARG: no point, a knee that is not one of them, losses that decrease or are not 0 to
//          1e300, a speed-up that is not 0 to 1e18, a bound above its cost; what the sink returned.
// Cost:    O(points) time, no allocation.
TLDEF tl_result tl_write_front_svg(tl_env *env, const tl_precision_front *front, tl_sink sink);
#endif
#endif
#endif  // TL_NO_TRACE

#undef TLI_ENUM
#undef TLI_ENUM4
#undef TLI_ENUM5
#define TL_STRATEGY_H
#ifdef __cplusplus
}
#endif
#endif  // TL_STRATEGY_H

