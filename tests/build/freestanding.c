// Every option set, own allocator and assert: includes only <stddef.h> and <stdint.h>, needs no symbol but memcpy, memset,
// memmove and memcmp. The size of the code on a Cortex-M4 is measured on this file.
// flags: -ffreestanding
#define TL_NO_STDIO
#define TL_NO_THREADS
#define TL_NO_CLOCK
#define TL_NO_TEXT
#define TL_NO_TRACE
#define TL_NO_PLANNERS
#define TL_NO_CHECKS
#define TL_NO_ERROR_TEXT
#define TL_NO_PRECISION
#define TL_NO_OFFLOAD
#define TL_NO_CODECS
#define TL_NO_ONLINE
#define TL_NO_ACCOUNTS
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_ASSERT(x) ((void)(x))
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int freestanding(void);
int freestanding(void) { return tl_version() == TL_VERSION; }
