// host.c -- generated code of the keyword network on the host: clips from stdin, as it reads them, results to stdout
#include <stdio.h>

#include "net.h"

void net_load(int32_t micro_batch) { (void)micro_batch; }

int main(void) {
    while (fread(NET_INPUT_FEATURES, 1, NET_INPUT_FEATURES_BYTES, stdin) == NET_INPUT_FEATURES_BYTES) {
        net_run();
        if (fwrite(NET_RESULT_DENSE_GEMM, 1, NET_RESULT_DENSE_GEMM_BYTES, stdout) != NET_RESULT_DENSE_GEMM_BYTES) return 1;
    }
    return ferror(stdin) || fflush(stdout);
}
