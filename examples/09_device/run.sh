#!/usr/bin/env bash
# One forward of MobileNetV2 (width 0.35, 96 x 96 pixels, f32) on a Cortex-M4 (qemu-system-arm, mps2-an386) and on the host, from
# generated C: with whole tensors, in regions of rows, and with the image by rows, too. The results must be the same bits
# everywhere; RAM, flash, stack and instructions are printed as a table. What the image takes beside the planned arena must
# be small, and regions may take 5 % more instructions than whole tensors.   (make run-rows)
#
# Built as examples/04_device, whose board it uses. The arena lies in the slow memory: whole tensors do not fit another.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=examples/09_device
board=examples/04_device
out=${B:-build}/rows
plan=${B:-build}/tl_plan
who=run-rows
source $board/board.sh
forms=(whole rows streamed)
for form in "${forms[@]}"; do mkdir -p $out/$form; done

"${B:-build}"/09_rows --write $out
sed 's/ stream$/ dies/' $out/net.tlg > $out/resident.tlg        # the image is there as a whole, until it was read
how=(--inference --align 8 --c-code net)
"$plan" $out/resident.tlg "${how[@]}" -o $out/whole > $out/whole.txt
"$plan" $out/resident.tlg "${how[@]}" --rows --slots depthwise -o $out/rows > $out/rows.txt
"$plan" $out/net.tlg "${how[@]}" --rows --slots depthwise -o $out/streamed > $out/streamed.txt
head=$(sed -n 's/^#define \(NET_RESULT_.*\)_BYTES .*/\1/p' $out/whole/net.h)
[ "$(sed -n 's/^#define NET_WEIGHTS_BYTES //p' $out/whole/net.h)" = "$(stat -c %s $out/weights.bin)" ] || fail "other weights"

common=(-std=gnu99 -ffp-contract=off -I$out -I$here -DNET_RESULT=$head -DNET_RESULT_BYTES=${head}_BYTES "-DWEIGHTS=\"$out/weights.bin\""
        -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wno-unused-function -Werror)
arm=(arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -Os -ffunction-sections -fdata-sections
     -ffreestanding -fno-tree-loop-distribute-patterns -I$board/freestanding '-DNET_BANK_0_PLACE=__attribute__((section(".bank1")))'
     -nostartfiles -nostdlib -T $board/board.ld -Wl,--gc-sections)
run() {
    local form=$1 rows=()
    [ $form = whole ] || rows=(-DNET_ROWS)
    cc -O2 "${common[@]}" "${rows[@]}" -I$out/$form -o $out/$form.host $here/main.c $board/host.c $here/kernels.c $out/$form/net.c
    $out/$form.host > $out/$form.host.log
    "${arm[@]}" "${common[@]}" "${rows[@]}" -I$out/$form -o $out/$form.elf $here/main.c $board/board.c $here/kernels.c \
        $out/$form/net.c -lgcc
    emulate $out/$form.elf > $out/$form.log
    for log in $form.host $form; do
        grep -q '^stack' $out/$log.log || fail "$log did not end: $(cat $out/$log.log)"
        cmp <(grep '^result' $out/$log.log) <(grep '^result' $out/whole.host.log) || fail "$log: another result"
    done
}
for form in "${forms[@]}"; do run $form; done
echo "the $(grep -c '^result' $out/whole.log) numbers of the result: the same bits on host and device, in all forms"

# Of an image: RAM is data, bss and the arena, with the stack that was used.
for form in "${forms[@]}"; do
    arm-none-eabi-size -A $out/$form.elf | awk -v form=$form -v count=$((16#$(sed -n 's/^instructions //p' $out/$form.log))) \
        -v stack=$((16#$(sed -n 's/^stack //p' $out/$form.log))) -v weights="$(stat -c %s $out/weights.bin)" \
        -v arena="$(sed -n 's/^#define NET_BANK_0_BYTES //p' $out/$form/net.h)" -v calls="$(sed -n 's/.*, \([0-9]*\) calls of kernels/\1/p' $out/$form.txt)" '
        $1 == ".text" || $1 == ".data" {flash += $2}
        $1 == ".data" || $1 == ".bss" || $1 == ".bank1" {ram += $2}
        END {print form, arena, ram, stack, flash - weights, calls ? calls : "-", count}'
done | awk '
    BEGIN {names["whole"] = "whole tensors"; names["rows"] = "regions of rows"; names["streamed"] = "the image by rows, too"
           printf "%-24s %9s %9s %8s %8s %8s %14s %8s\n", "", "arena", "RAM", "stack", "flash", "calls", "instructions", "ratio"}
    NR == 1 {stack = $4; count = $7}
    {printf "%-24s %9d %9d %8d %8d %8s %14d %8.5f\n", names[$1], $2, $3 + $4, $4, $5, $6, $7, $7 / count
     if ($7 > 1.05 * count) slow = 1
     if ($3 > $2 + 16 || $4 > stack + 512) large = 1}
    END {print "bytes; RAM: arena, data and stack; flash: beside the weights"
         if (slow) print "run-rows: regions take more than 5 % more instructions" > "/dev/stderr"
         if (large) print "run-rows: an image takes more RAM than its arena, or 512 bytes of stack more" > "/dev/stderr"
         exit slow || large}'
