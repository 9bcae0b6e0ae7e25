// The engine's picture: three solids on a floor, found by sphere tracing signed distances.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, binding = 0) writeonly buffer Picture { vec4 picture[]; };
layout(push_constant) uniform Push { uint width, height; };

vec2 nearer(vec2 a, vec2 b) { return a.x < b.x ? a : b; }

// Distance and material: 1 = floor, 2 = ball, 3 = ring, 4 = block.
vec2 distance_to_scene(vec3 p) {
    vec2 found = vec2(p.y, 1.0);
    found = nearer(found, vec2(length(p - vec3(-1.15, 0.8, 0.3)) - 0.8, 2.0));
    vec3 q = p - vec3(0.75, 0.62, -0.45);
    vec2 ring = vec2(length(q.xy) - 0.45, q.z);
    found = nearer(found, vec2(length(ring) - 0.17, 3.0));
    q = p - vec3(0.9, 0.55, 1.1);
    q.xz = mat2(0.83, -0.56, 0.56, 0.83) * q.xz;
    q = abs(q) - vec3(0.45);
    return nearer(found, vec2(length(max(q, 0.0)) + min(max(q.x, max(q.y, q.z)), 0.0) - 0.1, 4.0));
}

vec3 find_normal(vec3 p) {
    vec2 e = vec2(0.002, 0.0);
    float d = distance_to_scene(p).x;
    return normalize(vec3(distance_to_scene(p + e.xyy).x, distance_to_scene(p + e.yxy).x,
                          distance_to_scene(p + e.yyx).x) - d);
}

float find_shadow(vec3 from, vec3 light) {
    float shade = 1.0, t = 0.05;
    for (int i = 0; i < 24 && t < 5.0; i++) {
        float d = distance_to_scene(from + light * t).x;
        shade = min(shade, 7.0 * d / t);
        t += clamp(d, 0.04, 0.5);
    }
    return clamp(shade, 0.0, 1.0);
}

vec3 find_colour(float material, vec3 p) {
    if (material < 1.5) {
        vec2 tile = sin(p.xz * 2.6);
        return mix(vec3(0.32, 0.36, 0.42), vec3(0.72, 0.70, 0.64), smoothstep(-0.12, 0.12, tile.x * tile.y));
    }
    if (material < 2.5) return vec3(0.85, 0.22, 0.16);
    return material < 3.5 ? vec3(0.95, 0.72, 0.18) : vec3(0.18, 0.46, 0.80);
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= width || at.y >= height) return;
    vec2 screen = (vec2(at) + 0.5 - 0.5 * vec2(width, height)) / float(min(width, height));
    vec3 eye = vec3(0.05, 2.0, -4.1);
    vec3 ray = normalize(vec3(screen.x * 0.82, -screen.y * 0.82 - 0.37, 1.15));
    vec3 light = normalize(vec3(-0.55, 0.9, -0.5));
    vec3 sky = mix(vec3(0.80, 0.87, 0.92), vec3(0.30, 0.52, 0.78), clamp(ray.y * 2.2 + 0.25, 0.0, 1.0));
    vec3 colour = sky;
    float t = 0.5;
    for (int i = 0; i < 72 && t < 20.0; i++) {
        vec2 found = distance_to_scene(eye + ray * t);
        if (found.x < 0.002 * t) {
            vec3 p = eye + ray * t, n = find_normal(p);
            float lit = max(dot(n, light), 0.0) * find_shadow(p + n * 0.01, light);
            float shine = pow(max(dot(reflect(ray, n), light), 0.0), 24.0) * (found.y > 1.5 ? 0.5 : 0.0);
            colour = find_colour(found.y, p) * (0.30 + 0.12 * n.y + 0.75 * lit) + shine * lit;
            colour = mix(colour, sky, 1.0 - exp(-0.0022 * t * t));
            break;
        }
        t += found.x;
    }
    picture[at.y * width + at.x] = vec4(pow(clamp(colour, 0.0, 1.0), vec3(0.8)), 1.0);
}
