// tl_vk_backend.h beside a library with every option set needs none of what they drop.
#define TL_NO_STDIO
#define TL_NO_THREADS
#define TL_NO_TEXT
#define TL_NO_TRACE
#define TL_NO_PLANNERS
#define TL_NO_CHECKS
#define TL_NO_PRECISION
#define TL_NO_OFFLOAD
#define TL_NO_CODECS
#define TL_NO_ONLINE
#define TL_NO_ACCOUNTS
#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"

int main(void) { return tl_vk_name_copy_path(TL_VK_COPY_PATH_COUNT)[0] != '?'; }
