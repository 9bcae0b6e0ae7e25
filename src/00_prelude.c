// ############################################################################
//                              IMPLEMENTATION
// ############################################################################

#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// What the implementation takes from its surroundings: an allocator, assert, stdio and a clock, which
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
#include <errno.h>
#include <stdio.h>
#if defined(__unix__) || defined(__APPLE__)
#define TLI_POSIX_FILES
#include <fcntl.h>
#include <sys/types.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#endif
// The clock of the CPU backend: that of the system. Strict modes of C hide its declaration in <time.h>; on
// Linux it is declared here then. Windows has it where <windows.h> was included before.
#if !defined(TL_NO_CLOCK) && !defined(TL_ONLY_TABLES) && (!defined(__STDC_HOSTED__) || __STDC_HOSTED__)
#if defined(_WIN32)
#ifdef _WINDOWS_
#define TLI_CLOCK_WINDOWS
#endif
#elif defined(__unix__) || defined(__APPLE__)
#include <time.h>
#if defined(CLOCK_MONOTONIC)
#define TLI_CLOCK_POSIX
#elif defined(__linux__) && !defined(__cplusplus) && !(defined(__x86_64__) && defined(__ILP32__))
#define TLI_CLOCK_HIDDEN
typedef struct tli_time { long seconds, nanoseconds; } tli_time;
extern int clock_gettime(int clock, tli_time *time);
#endif
#endif
#endif
#ifdef TL_STRATEGY_STATIC
#define TLI_IMPL static inline
#else
#define TLI_IMPL
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION

