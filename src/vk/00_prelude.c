#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// What all parts of the implementation need. Private names begin with tli_vk_ (vk: Vulkan); in functions
// `b` points to the state of a backend, tli_vk in [2].

#include <string.h>
#ifdef TL_STRATEGY_STATIC
#define TLI_VK_IMPL static inline
#else
#define TLI_VK_IMPL
#endif
#define TLI_VK_NAME(id, name, help) name,  // undefined in the last part

#ifdef TL_VK_OPEN_LOADER
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif
#endif
#endif  // TL_VK_BACKEND_IMPLEMENTATION

