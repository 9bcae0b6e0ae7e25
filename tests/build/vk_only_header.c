// tl_vk_backend.h, the declarations alone: they include what they need by themselves.
#include "../../tl_vk_backend.h"

int only_vk_header(void);
int only_vk_header(void) { return tl_version() == TL_VERSION && tl_vk_name_copy_path(TL_VK_COPY_PATH_SHADER)[0] == 's'; }
