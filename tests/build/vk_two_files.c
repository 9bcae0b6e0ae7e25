// Three files: this one has the implementation of the companion, vk_core.c that of the library,
// vk_only_header.c the declarations.
// flags: tests/build/vk_core.c tests/build/vk_only_header.c
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../../tl_vk_backend.h"
#include "../../tl_vk_backend.h"

int only_vk_header(void);
int main(void) { return !only_vk_header() || tl_version() != TL_VERSION; }
