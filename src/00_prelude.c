// ############################################################################
//                              IMPLEMENTATION
// ############################################################################

#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// What the implementation takes from its surroundings: an allocator, assert and stdio, which
// options replace or drop, and the linkage of its functions.

#if defined(TL_MALLOC) != defined(TL_FREE)
#error "tl_strategy.h: define both TL_MALLOC(user,size) and TL_FREE(user,ptr), or neither"
#endif
#ifndef TL_MALLOC
#include <stdlib.h>
#define TL_MALLOC(user, size) ((void)(user), malloc(size))
#define TL_FREE(user, ptr)    ((void)(user), free(ptr))
#endif
#ifndef TL_ASSERT
#include <assert.h>
#define TL_ASSERT(x) assert(x)
#endif
// What holds between the steps of a part that keeps state, written in the code. Developers switch it on with
// -DTLI_INVARIANTS, in builds for tests and without NDEBUG. It is no option for users, and nothing by default.
#ifdef TLI_INVARIANTS
#define TLI_INVARIANT(x) TL_ASSERT(x)
#else
#define TLI_INVARIANT(x) ((void)0)
#endif
#if !defined(TL_NO_STDIO) && !defined(TL_NO_TEXT)
#include <stdio.h>
#endif
#ifdef TL_STRATEGY_STATIC
#define TLI_IMPL static inline
#else
#define TLI_IMPL
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

