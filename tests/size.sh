#!/usr/bin/env bash
# Code size on a Cortex-M4 (Thumb-2, -Os, freestanding), per symbol. Fails where it grows.
# tests/size.c, where it exists, is a program that uses the manager and the executor: linked, unused sections dropped.
# Otherwise everything in tests/build/freestanding.c counts.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=56320  # 55 KiB: what it takes today; the aim is 32
prefix=arm-none-eabi-
flags=(-mcpu=cortex-m4 -mthumb -std=c99 -Os -ffreestanding -ffunction-sections -fdata-sections -Wall -Wextra)
mkdir -p build/size
if [ -f tests/size.c ]; then
    image=build/size/size.elf
    ${prefix}gcc "${flags[@]}" -nostdlib -o $image tests/size.c -Wl,--gc-sections,-e,main \
        -Wl,--defsym=memcpy=0,--defsym=memset=0,--defsym=memmove=0,--defsym=memcmp=0 -lgcc
else
    image=build/size/size.o
    ${prefix}gcc "${flags[@]}" -c -o $image tests/build/freestanding.c
fi
${prefix}nm -S --size-sort --reverse-sort -t d $image | awk '$3 ~ /[tTrRdDbB]/ {printf "%7d  %s  %s\n", $2, $3, $4}' > build/size/symbols.txt
head -n "${SIZE_LINES:-40}" build/size/symbols.txt
echo "(all: build/size/symbols.txt; t code, r constants, d and b data)"
${prefix}size $image | awk -v limit=$limit -v image=$image 'NR == 2 {
    printf "%s: %d bytes of code and constants, %d of data; limit %d\n", image, $1, $2 + $3, limit
    exit $1 + $2 > limit}'
