// Both operands as arrays of 32-bit words.

layout(set = 0, binding = 0, std430) writeonly buffer To { uint to[]; };
layout(set = 0, binding = 1, std430) readonly buffer From { uint from[]; };
