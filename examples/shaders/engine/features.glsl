// Sines and cosines of a pixel's place at two frequencies. Tancik et al., Fourier Features Let
// Networks Learn High Frequency Functions in Low Dimensional Domains, 2020, arXiv:2006.10739.
vec4 find_features(uint pixel, vec4 pair) {
    vec2 at = vec2(pixel % width, pixel / width) / float(width);
    float a = 6.28318531 * dot(pair.xy, at), b = 6.28318531 * dot(pair.zw, at);
    return vec4(sin(a), cos(a), sin(b), cos(b));
}
