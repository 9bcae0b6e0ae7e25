#!/usr/bin/env bash
# A trained keyword network on a Cortex-M4 (qemu-system-arm, mps2-an386) and on the host hears a clip of each of its words: from
# the files of an importer (keywords.*) to generated C with all constants and kernels. In int8 with whole tensors, in regions of
# rows, and beside the same kernels called by hand; in floats. Scores must be the same bits on host and device, those of int8 in
# all forms; constants must take in the image what was planned, whole tensors 1 % more instructions than by hand at most.
# (make run-device)
#
#   CMSIS_NN=DIR    a clone of github.com/ARM-software/CMSIS-NN: the same with its kernels (--kernels cmsis-nn)
#
# keywords.* beside this file are made by (8 minutes; PyTorch and espeak-ng, then what tests/tiny/packages.txt names):
#
#   python3 examples/train_keywords.py
#   python3 examples/import_onnx.py build/keywords/model.onnx -o examples/05_device/keywords --calibrate build/keywords/calibration.npz
#   python3 examples/05_device/clips.py examples/05_device/keywords build/keywords/test.npz -o examples/05_device/keywords.clips
#
# and make tiny-check holds them beside a fresh training: the same graph, and as many words are heard.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=examples/05_device
board=examples/04_device
model=$here/keywords
out=${B:-build}/keyword
plan=${B:-build}/tl_plan
who=run-device
source $board/board.sh
forms=(hand whole rows)
[ -z "${CMSIS_NN:-}" ] || forms+=(cmsis)
forms+=(floats)
how=(--inference --weights $model.safetensors --ranges $model.ranges --c-code=calls net)
mkdir -p $out
# nothing but the formats of the model: a scale for each channel where there are weights
printf 'profiles 1\nprofile conv2d i8-channel=0.001:1\nprofile depthwise i8-channel=0.001:1\nprofile linear i8-channel=0.001:1\nprofile * i8=0.001:1\n' > $out/profiles
for form in "${forms[@]}"; do
    mkdir -p $out/$form
    schemes=i8+i8-channel kernels=own more=()
    case $form in
    rows) more=(--rows) ;;
    cmsis) kernels=cmsis-nn ;;
    floats) schemes=f32 ;;      # the clips are int8: they are converted first
    esac
    "$plan" $model.tlg "${how[@]}" --precision "loss=1e9,objective=bytes,schemes=$schemes,inputs=i8,sensitive,unknown,any-result" \
        --profiles $out/profiles --kernels $kernels "${more[@]}" -o $out/$form > $out/$form.txt
    sed '/^void net_/,$d' $out/$form/net_kernels.c > $out/$form/tables.h
    od -An -v -td1 $model.clips | sed 's/-*[0-9][0-9]*/&,/g' > $out/$form/clips.inc
done

common=(-std=c99 -ffp-contract=off -I$board -Iexamples -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Wswitch-default -Werror)
arm=(arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -O2 -ffunction-sections -fdata-sections -ffreestanding
     -fno-tree-loop-distribute-patterns -I$board/freestanding -nostartfiles -nostdlib -T $board/board.ld -Wl,--gc-sections)
run() {
    local form=$1 flags=() sources=($here/main.c $out/$1/net.c $out/$1/net_constants.c $out/$1/net_kernels.c) others=() like=hand
    case $form in
    hand) flags=(-DBY_HAND) ;;
    floats) like=floats ;;
    cmsis)
        flags=(-isystem "$CMSIS_NN/Include" -w -fbuiltin)
        mapfile -t others < <(ls "$CMSIS_NN"/Source/{Activation,BasicMath,Convolution,FullyConnected,NNSupport,Pooling,Softmax}Functions/*.c | grep -vE '_f16|_f32|_flt') ;;
    esac
    cc -O2 "${common[@]}" "${flags[@]}" -I$out/$form -o $out/$form.host "${sources[@]}" "${others[@]}" $board/host.c
    $out/$form.host > $out/$form.host.log
    "${arm[@]}" "${common[@]}" "${flags[@]}" -I$out/$form -o $out/$form.elf "${sources[@]}" "${others[@]}" $board/board.c -lgcc
    emulate $out/$form.elf > $out/$form.log
    for log in $form.host $form; do
        grep -q '^stack' $out/$log.log || fail "$log did not end: $(cat $out/$log.log)"
        cmp <(grep -E '^(scores|right|wrong)' $out/$log.log) <(grep -E '^(scores|right|wrong)' $out/$like.host.log) || fail "$log: other scores"
    done
}
for form in "${forms[@]}"; do run $form; done
echo "scores of $(grep -c '^scores' $out/hand.log) clips: the same bits on host and device, in int8 in all forms; said and heard:"
awk '/^(right|wrong)/ {printf "%s %s%s", n++ ? "," : " ", $2, $1 == "right" ? "" : " (" $3 ")"} END {print ""}' $out/hand.log

for form in "${forms[@]}"; do
    planned=$(awk '$2 ~ /^NET_STORED_.*_BYTES$/ {sum += $3} END {print sum}' $out/$form/net.h)
    counted=$(arm-none-eabi-nm -S $out/$form.elf | awk '$4 == "net_weights" {print $2}')
    [ $((16#$counted)) = "$planned" ] || fail "$form: constants take $((16#$counted)) bytes, planned are $planned"
    arm-none-eabi-size -A $out/$form.elf | awk -v form=$form -v count=$((16#$(sed -n 's/^instructions //p' $out/$form.log))) \
        -v stack=$((16#$(sed -n 's/^stack //p' $out/$form.log))) -v constants="$planned" -v clips="$(stat -c %s $model.clips)" \
        -v tables="$(sed -n 's/.*: \([0-9]*\) bytes of constant tables.*/\1/p' $out/$form.txt)" \
        -v arena="$(sed -n 's/^#define NET_BANK_0_BYTES //p' $out/$form/net.h)" -v heard="$(grep -c '^right' $out/$form.log)" '
        $1 == ".text" || $1 == ".data" {flash += $2}
        $1 == ".data" || $1 == ".bss" {ram += $2}
        END {print form, arena, ram, stack, constants, form == "hand" ? "-" : tables, flash - constants - clips, count, heard}'
done | awk -v clips="$(grep -c '^scores' $out/hand.log)" '
    BEGIN {names["hand"] = "int8, by hand"; names["whole"] = "whole tensors"; names["rows"] = "regions of rows"; names["cmsis"] = "CMSIS-NN"; names["floats"] = "floats"
           printf "%-16s %8s %8s %8s %10s %8s %8s %13s %8s %7s\n", "a clip", "arena", "RAM", "stack", "constants", "tables", "flash", "instructions", "ratio", "heard"}
    NR == 1 {count = $8; ram = $3 - $2}
    {printf "%-16s %8d %8d %8d %10d %8s %8d %13d %8.5f %4d/%d\n", names[$1], $2, $3, $4, $5, $6, $7, $8, $8 / count, $9, clips}
    $1 == "whole" && ($8 > 1.01 * count || $3 - $2 > ram) {bad = 1}
    $1 == "rows" && $3 - $2 > ram + 64 {bad = 1}
    {if ($4 > 2048) deep = 1; if ($9 < clips - 2) deaf = 1}
    END {print "bytes; RAM: arena and data; flash: beside constants and clips"
         if (bad) print "run-device: generated code takes more RAM than its arena, or 1 % of instructions" > "/dev/stderr"
         if (deep) print "run-device: the stack is deeper than 2048 bytes" > "/dev/stderr"
         if (deaf) print "run-device: more than two of the clips are heard wrong" > "/dev/stderr"
         exit bad || deep || deaf}'
