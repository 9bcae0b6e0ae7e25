#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// ============================================================================
// [5] SHADERS (implementation)
// ============================================================================

// The words of the shaders follow, a part for each: `make shaders` compiles shaders/*.comp and writes them.
#endif  // TL_VK_BACKEND_IMPLEMENTATION

