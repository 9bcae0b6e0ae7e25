#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [5] SHADERS (implementation)
// ============================================================================

// Each of the next parts holds the SPIR-V words of one shader: `make shaders` compiles shaders/*.comp and
// writes these parts.
#endif  // TL_VK_BACKEND_IMPLEMENTATION

