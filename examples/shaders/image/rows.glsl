// What all shaders of images share: where a row lies, and what a call is for. Pushed by vk_image.h.

// An image (height, width, channels), or a ring (a line buffer) that holds some of its rows: row r
// is row (r + shift) % rows of it. From one row to the next are `floats` numbers.
struct Ring { uint rows, shift, floats; };

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    Ring out_ring, in_ring, other_ring;
    uint first, count;   // rows of the result that the call is for
    uint H, W, C;        // of the image that is read
    uint N;              // channels that come out, or of the other image
    uint columns;        // pixels in a row of the result
    uint size, stride;   // of a window: size x size pixels, an odd number
    uint bound;          // of results: 0 = none, 1 = relu, 2 = relu6
    uint has_bias;
    float share;         // of a pixel in a mean
};

uint find_row(Ring ring, uint row) { return (row + ring.shift) % ring.rows * ring.floats; }

uint find_invocation() {
    return gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x) +
           gl_GlobalInvocationID.x;
}

// A NaN stays one with relu6 and becomes 0 with relu, as in nn_image.h.
float bounded(float x) {
    if (bound == 1) return x > 0.0 ? x : 0.0;
    if (bound == 2) return x < 0.0 ? 0.0 : x > 6.0 ? 6.0 : x;
    return x;
}
