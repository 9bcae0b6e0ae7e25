// The batch covers the picture evenly: one pixel at random from each of `batch` equal stretches.
uint pick_pixel(uint number) {
    uint first = number * pixels / batch, next = (number + 1) * pixels / batch;
    uint x = number * 0x9e3779b9u + seed;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return first + (x ^ (x >> 16)) % (next - first);
}
