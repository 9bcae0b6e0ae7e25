#!/usr/bin/env bash
# The kernels of examples/nn_tiny.h on a Cortex-M4 (qemu-system-arm, mps2-an386), with DSP instructions and without: the bits of
# tests/support/tiny_golden.h, and instructions of some layers: in i8, in w4 where a layer has weights, and their ratio.
#
#   tests/kernels/device.sh                 CMSIS=<a clone of CMSIS-NN>: its kernels are counted beside them
set -euo pipefail
cd "$(dirname "$0")/../.."
here=examples/04_device
out=${B:-build}/nn_tiny
who=tiny
source $here/board.sh
mkdir -p "$out"
arm=(arm-none-eabi-gcc -std=c99 -mthumb -ffreestanding -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections
     -I$here/freestanding -I$here -Iexamples -nostartfiles -nostdlib -T $here/board.ld -Wl,--gc-sections)
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Wno-unused-function -Werror)
m4=(-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard)

# Build and run:  image NAME FLAGS...
image() {
    local name=$1
    "${arm[@]}" "${@:2}" -o "$out/$name.elf" tests/kernels/device.c $here/board.c ${sources:-} -lgcc
    emulate "$out/$name.elf" > "$out/$name.txt"
    grep -q '^hashes: the same' "$out/$name.txt" || fail "$name: other bits: $(head -n 20 "$out/$name.txt")"
    echo "$name: the bits of CMSIS-NN"
}
groups=${GROUPS_RUN:-1}
if [ -n "${CMSIS:-}" ]; then
    sources=$(ls "$CMSIS"/Source/{BasicMathFunctions,ConvolutionFunctions,FullyConnectedFunctions,NNSupportFunctions,PoolingFunctions,SoftmaxFunctions}/*.c | grep -vE '_f16|_f32|_flt')
    image cmsis "${m4[@]}" -fbuiltin ${OPT:--O2} -w -DCMSIS -DTINY_DEVICE_GROUPS=$groups -I"$CMSIS/Include"
    awk '/[0-9] [0-9]+( differs)?$/ && !/^(hashes|stack)/ {own = $(NF - 1 - /differs/); other = $(NF - /differs/); printf "%s %9.3f\n", $0, own / other}' "$out/cmsis.txt"
    exit 0
fi
"${arm[@]}" "${m4[@]}" ${OPT:--O2} "${warnings[@]}" -c -o "$out/known.o" tests/kernels/known.c
image dsp "${m4[@]}" ${OPT:--O2} "${warnings[@]}" -DTINY_DEVICE_GROUPS=$groups
image plain -mcpu=cortex-m3 ${OPT:--O2} "${warnings[@]}" -DTINY_DEVICE_GROUPS=$groups
for name in plain dsp; do
    echo "$name:"
    awk '/ w4 / {printf "%s %7.3f\n", $0, $NF / $(NF - 2); next} !/^hashes/' "$out/$name.txt"
done
