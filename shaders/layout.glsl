// What all shaders share: the workgroup size, the push constants, and which invocation this is.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(push_constant) uniform Push {
    uint count;  // in the unit that the shader names
    uint word;   // fill: the value; checksum: index of the first word; integers: their bytes
    uint tail;   // compress: valid bytes of the last f32, 1 to 3; 0 = all four
#ifdef HAS_CHANNELS
    uint channel_count, inner_count;
    uint first;  // where element 0 lies, in channel_count * inner_count elements
#endif
};

// Vulkan promises 65535 groups in a direction; more are spread over two.
uint group_index() {
    return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

uint invocation_index() {
    return group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

// For shaders whose invocations take every invocation_count()-th element, so that any number of
// groups covers all of them.
uint invocation_count() {
    return gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_WorkGroupSize.x;
}
