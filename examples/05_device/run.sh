#!/usr/bin/env bash
# One inference of a keyword network in int8 on a Cortex-M4 (qemu-system-arm, mps2-an386) and on the host: from the files of an
# importer (tests/data/tiny) to generated C with all constants and kernels, with whole tensors, in regions of rows, and beside
# the same kernels called by hand. Results must be the same bits everywhere; constants must take in the image what was planned,
# whole tensors 1 % more instructions than by hand at most.   (make run-device)
#
#   CMSIS_NN=DIR    a clone of github.com/ARM-software/CMSIS-NN: the same with its kernels (--kernels cmsis-nn)
set -euo pipefail
cd "$(dirname "$0")/../.."
here=examples/05_device
board=examples/04_device
model=tests/data/tiny/kws_int8
out=${B:-build}/keyword
plan=${B:-build}/tl_plan
who=run-device
source $board/board.sh
forms=(hand whole rows)
[ -z "${CMSIS_NN:-}" ] || forms+=(cmsis)
how=(--inference --precision "loss=1e9,objective=bytes,schemes=i8+i8-channel,inputs=i8,sensitive,unknown,any-result" --profiles $out/profiles
     --weights $model.safetensors --ranges $model.ranges --c-code=calls net)
mkdir -p $out
# nothing but the formats of the model: a scale for each channel where there are weights
printf 'profiles 1\nprofile conv2d i8-channel=0.001:1\nprofile depthwise i8-channel=0.001:1\nprofile linear i8-channel=0.001:1\nprofile * i8=0.001:1\n' > $out/profiles
for form in "${forms[@]}"; do
    mkdir -p $out/$form
    case $form in
    rows) more=(--kernels own --rows) ;;
    cmsis) more=(--kernels cmsis-nn) ;;
    *) more=(--kernels own) ;;
    esac
    "$plan" $model.tlg "${how[@]}" "${more[@]}" -o $out/$form > $out/$form.txt
done

common=(-std=c99 -ffp-contract=off -Iexamples -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Wswitch-default -Werror)
arm=(arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -O2 -ffunction-sections -fdata-sections -ffreestanding
     -fno-tree-loop-distribute-patterns -I$board/freestanding -nostartfiles -nostdlib -T $board/board.ld -Wl,--gc-sections)
run() {
    local form=$1 flags=() sources=($here/main.c $out/$1/net.c $out/$1/net_constants.c $out/$1/net_kernels.c) others=()
    [ $form != hand ] || flags=(-DBY_HAND)
    if [ $form = cmsis ]; then
        flags=(-isystem "$CMSIS_NN/Include" -w -fbuiltin)
        mapfile -t others < <(ls "$CMSIS_NN"/Source/{Activation,BasicMath,Convolution,FullyConnected,NNSupport,Pooling,Softmax}Functions/*.c | grep -vE '_f16|_f32|_flt')
    fi
    cc -O2 "${common[@]}" "${flags[@]}" -I$out/$form -o $out/$form.host "${sources[@]}" "${others[@]}" $board/host.c
    $out/$form.host > $out/$form.host.log
    "${arm[@]}" "${common[@]}" "${flags[@]}" -I$out/$form -o $out/$form.elf "${sources[@]}" "${others[@]}" $board/board.c -lgcc
    emulate $out/$form.elf > $out/$form.log
    for log in $form.host $form; do
        grep -q '^stack' $out/$log.log || fail "$log did not end: $(cat $out/$log.log)"
        cmp <(grep '^result' $out/$log.log) <(grep '^result' $out/hand.host.log) || fail "$log: another result"
    done
}
for form in "${forms[@]}"; do run $form; done
echo "the $(grep -c '^result' $out/hand.log) numbers of the result: the same bits on host and device, in all forms"

for form in "${forms[@]}"; do
    planned=$(awk '$2 ~ /^NET_STORED_.*_BYTES$/ {sum += $3} END {print sum}' $out/$form/net.h)
    counted=$(arm-none-eabi-nm -S $out/$form.elf | awk '$4 == "net_weights" {print $2}')
    [ $((16#$counted)) = "$planned" ] || fail "$form: constants take $((16#$counted)) bytes, planned are $planned"
    arm-none-eabi-size -A $out/$form.elf | awk -v form=$form -v count=$((16#$(sed -n 's/^instructions //p' $out/$form.log))) \
        -v stack=$((16#$(sed -n 's/^stack //p' $out/$form.log))) -v constants="$planned" \
        -v tables="$(sed -n 's/.*: \([0-9]*\) bytes of constant tables.*/\1/p' $out/$form.txt)" \
        -v arena="$(sed -n 's/^#define NET_BANK_0_BYTES //p' $out/$form/net.h)" '
        $1 == ".text" || $1 == ".data" {flash += $2}
        $1 == ".data" || $1 == ".bss" {ram += $2}
        END {print form, arena, ram, stack, constants, form == "hand" ? "-" : tables, flash - constants, count}'
done | awk '
    BEGIN {names["hand"] = "by hand"; names["whole"] = "whole tensors"; names["rows"] = "regions of rows"; names["cmsis"] = "CMSIS-NN"
           printf "%-16s %8s %8s %8s %10s %8s %8s %13s %8s\n", "one inference", "arena", "RAM", "stack", "constants", "tables", "flash", "instructions", "ratio"}
    NR == 1 {count = $8; ram = $3 - $2}
    {printf "%-16s %8d %8d %8d %10d %8s %8d %13d %8.5f\n", names[$1], $2, $3, $4, $5, $6, $7, $8, $8 / count}
    $1 == "whole" && ($8 > 1.01 * count || $3 - $2 > ram) {bad = 1}
    $1 == "rows" && $3 - $2 > ram + 64 {bad = 1}
    {if ($4 > 2048) deep = 1}
    END {print "bytes; RAM: arena and data; flash: beside the constants"
         if (bad) print "run-device: generated code takes more RAM than its arena, or 1 % of instructions" > "/dev/stderr"
         if (deep) print "run-device: the stack is deeper than 2048 bytes" > "/dev/stderr"
         exit bad || deep}'
