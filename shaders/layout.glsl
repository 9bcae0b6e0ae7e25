// Shared by all shaders: the workgroup size, the push constants, and the index of the invocation.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(push_constant) uniform Push {
    uint count;  // of the units that each shader names in its first comment
    uint word;   // fill: the value; checksum: index of the first word; integers: bytes of each
    uint tail;   // compress: valid bytes of the last f32, 1 to 3; 0 = all four
#ifdef HAS_CHANNELS
    uint channel_count, inner_count;
    uint first;  // position of element 0 in its period of channel_count * inner_count elements
#endif
};

// Vulkan guarantees 65535 groups in a dimension; larger counts are spread over x and y.
uint group_index() {
    return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

uint invocation_index() {
    return group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

// The stride of shaders whose invocations take every invocation_count()-th element, so that any number
// of groups covers all elements.
uint invocation_count() {
    return gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_WorkGroupSize.x;
}
