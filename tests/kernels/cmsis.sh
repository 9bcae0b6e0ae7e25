#!/usr/bin/env bash
# The bits of examples/nn_tiny.h beside those of CMSIS-NN: its C reference is built and makes the same cases.
#
#   tests/kernels/cmsis.sh DIRECTORY            a clone of github.com/ARM-software/CMSIS-NN; compares hashes with tests/support/tiny_golden.h
#   tests/kernels/cmsis.sh DIRECTORY --write    writes them anew
set -euo pipefail
cmsis=$(cd "${1:?a clone of CMSIS-NN}" && pwd)
cd "$(dirname "$0")/../.."
out=${B:-build}/nn_tiny
mkdir -p "$out"
sources=$(ls "$cmsis"/Source/{ActivationFunctions,BasicMathFunctions,ConvolutionFunctions,FullyConnectedFunctions,NNSupportFunctions,PoolingFunctions,SoftmaxFunctions}/*.c |
    grep -vE '_f16|_f32|_flt')
# shellcheck disable=SC2086
gcc -O2 -w -fwrapv -I"$cmsis/Include" -Iexamples -o "$out/cmsis" tests/kernels/cmsis.c $sources -lm
"$out/cmsis" > "$out/golden.h"
if [ "${2:-}" = --write ]; then cp "$out/golden.h" tests/support/tiny_golden.h
else cmp "$out/golden.h" tests/support/tiny_golden.h || { echo "tiny: hashes of CMSIS-NN are not those of tests/support/tiny_golden.h" >&2; exit 1; }
fi
echo "CMSIS-NN: $(grep -o 0x "$out/golden.h" | wc -l) hashes, of 100 cases each, of sigmoid and tanh of all int16"
