// tl_vk_backend.h, the declarations alone: they include what they need by themselves.
#include "../../tl_vk_backend.h"

int only_vk_header(void);
int only_vk_header(void) { return tl_version() == TL_VERSION && tl_vk_name_shader(TL_VK_SHADER_COPY)[0] == 'c'; }
