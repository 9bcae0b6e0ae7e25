#!/usr/bin/env bash
# Train the network of net.tlg on a Cortex-M4 (qemu-system-arm, mps2-an386) and on the host: from generated code, by hand,
# and by the executor with tables, taken on trust or checked. Losses and weights must be the same bits everywhere; flash, RAM,
# stack and instructions are printed as a table. Generated code must stay beside the version by hand, and the executor within
# 24 KiB of flash, kernels and tables included, and 1 KiB of RAM.   (make run-device)
#
# Then the whole step in one plan: weights and momentum lie in the banks, too, and each weight is updated as soon as its gradient is
# complete. It is compared with the version by hand on one image a step, whose optimizer follows: the same bits in fewer bytes.
# At last gradients in pieces: of the larger weights no gradient is there whole, in generated code and in the executor.
#
# All images: hard float, -Os, no C library, no libm. Instructions are those of one training step: qemu -icount shift=0 runs one a
# nanosecond, and the board's SysTick timer counts 40 ns.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=examples/04_device
out=${B:-build}/device
plan=${B:-build}/tl_plan
who=run-device
source $here/board.sh
mkdir -p $out/calls $out/table $out/single $out/whole $out/kept $out/pieces

how=(--budget 24KiB --bank 20KiB --bank 4KiB --align 8 --states 1 --micro-batches 4)
"$plan" $here/net.tlg "${how[@]}" --c-code=calls net -o $out/calls --c-table $out/calls/table.h --name table --compact --no-names > $out/plan.txt
"$plan" $here/net.tlg "${how[@]}" --c-code=table net -o $out/table > /dev/null
cmp $out/calls/net.h $out/table/net.h
"$plan" $here/net.tlg "${how[@]::10}" --c-code=calls net -o $out/single > /dev/null      # net.h for the version by hand
whole=($here/net.tlg --align 8 --optimizer momentum --c-code=calls net)
"$plan" "${whole[@]}" --bank 20KiB --bank 15KiB -o $out/whole > $out/whole.txt
"$plan" "${whole[@]}" --bank 20KiB --bank 19KiB -o $out/kept > /dev/null

"$plan" "${whole[@]}" --bank 20KiB --bank 14KiB --pieces 384B -o $out/pieces --c-table $out/pieces/table.h --name table \
    --compact --no-names > $out/pieces.txt

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror)
common=(-std=c99 -ffp-contract=off -DNET_LOSS_GRADIENT=0.25f "${warnings[@]}")
arm=(arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -Os -ffunction-sections -fdata-sections
     -ffreestanding -fno-tree-loop-distribute-patterns -I$here/freestanding '-DNET_BANK_1_PLACE=__attribute__((section(".bank1")))' -nostartfiles -nostdlib -T $here/board.ld -Wl,--gc-sections)
parts() {   # the sources of a form
    case $1 in
    calls|table|whole|kept|pieces) echo $out/$1/net.c $here/kernels.c $here/layers.c ;;
    hand|single) echo $here/hand.c $here/layers.c ;;
    executor|checked|executed|executed_checked) echo $here/executor.c $here/kernels.c $here/layers.c ;;
    esac
}
flags() {
    [[ $1 != *checked ]] || echo -DEXECUTOR_CHECKS
    case $1 in      # where net.h and table.h are
    pieces|executed*) echo "-DNET_PIECES -I$out/pieces" ;;
    *) [ -e "$out/$1/net.h" ] && echo "-I$out/$1" || echo "-I$out/calls" ;;
    esac
    echo "-I$here"
}

# Build a form for host and device, run both; losses and weights are those of another form.  run FORM OTHER
run() {
    local form=$1 text
    cc -O2 "${common[@]}" -Wno-unused-function $(flags $form) -o $out/$form.host $here/main.c $here/host.c $(parts $form)
    $out/$form.host > $out/$form.host.txt
    "${arm[@]}" "${common[@]}" -Wno-unused-function $(flags $form) -Wl,-Map=$out/$form.map -o $out/$form.elf $here/main.c $here/board.c $(parts $form) \
        -lgcc
    emulate $out/$form.elf > $out/$form.txt  # semihosting writes to standard error
    for text in $form.host $form; do
        grep -q '^weights' $out/$text.txt || fail "$text did not end: $(cat $out/$text.txt)"
        cmp <(grep -E '^(loss|weights)' $out/$text.txt) <(grep -E '^(loss|weights)' $out/$2.host.txt) || fail "$text: other losses or weights"
    done
}
for form in calls table hand executor checked; do run $form calls; done
for form in single whole kept pieces executed executed_checked; do run $form single; done

echo "losses of $(grep -c '^loss' $out/calls.txt) training steps and the weights behind them: the same bits on host and device, in all forms"
sed -n 's/^loss //p' $out/calls.txt | while read -r word; do python3 -c "import struct; print('  %.6f' % (struct.unpack('>f', bytes.fromhex('$word'))[0] / 4), end='')"; done
echo
# Of an image: flash is code, constants and initial data; RAM is data, bss and bank 1, less bytes that are given.  measure FORM BYTES
measure() {
    local form=$1
    arm-none-eabi-size -A $out/$form.elf | awk -v form=$form -v arrays="$2" \
        -v count=$((16#$(sed -n 's/^instructions //p' $out/$form.txt))) -v stack=$((16#$(sed -n 's/^stack //p' $out/$form.txt))) '
        $1 == ".text" || $1 == ".data" {flash += $2}
        $1 == ".data" || $1 == ".bss" || $1 == ".bank1" {ram += $2}
        END {print form, flash, ram - arrays, stack, count}'
}
arrays=$(awk '$2 ~ /^NET_(BANK_.|WEIGHTS|GRADIENTS|STATE)_BYTES$/ {sum += $3} END {print sum}' $out/calls/net.h)
for form in hand calls table executor checked; do measure $form "$arrays"; done | awk '
    NR == 1 {flash = $2; ram = $3; stack = $4; count = $5
             printf "%-9s %8s %8s %8s %8s %8s %8s %14s %8s\n", "", "flash", "+", "RAM", "+", "stack", "+", "instructions", "ratio"}
    {printf "%-9s %8d %+8d %8d %+8d %8d %+8d %14d %8.5f\n", $1, $2, $2 - flash, $3, $3 - ram, $4, $4 - stack, $5, $5 / count}
    ($1 == "calls" || $1 == "table") && ($2 > flash + 512 || $5 > 1.01 * count || $3 - ram > ($1 == "table" ? 64 : 0)) {bad = 1}
    $1 == "executor" && ($2 > 24576 || $3 > 1024) {large = 1}
    END {print "bytes; + beside the version by hand. RAM: beside the " '"$arrays"' " bytes of banks, weights, gradients and momentum"
         if (large) print "run-device: the executor takes more than 24 KiB of flash or 1 KiB of RAM" > "/dev/stderr"
         if (bad) print "run-device: generated code takes more than 512 bytes of flash, or RAM, or 1 % of instructions" > "/dev/stderr"
         exit bad || large}'

# The whole step in one plan: what the image takes beside the banks is what it takes by hand beside its arrays.
planned() { awk '$2 ~ /^NET_BANK_._BYTES$/ {sum += $3} END {print sum}' $out/$1/net.h; }
for form in single whole kept pieces executed; do measure $form 0; done | awk -v planned="$(planned whole)" -v arrays="$arrays" \
    -v pieces="$(planned pieces)" '
    BEGIN {names["single"] = "by hand, optimizer behind"; names["whole"] = "all in one plan"; names["kept"] = "the same, nothing run twice"
           names["pieces"] = "gradients in pieces"; names["executed"] = "the executor, in pieces"
           printf "\n%-27s %8s %8s %8s %14s %8s\n", "one image a step", "flash", "RAM", "stack", "instructions", "ratio"}
    {name = names[$1]
     if ($1 == "single") {ram = $3; count = $5}
     printf "%-27s %8d %8d %8d %14d %8.5f\n", name, $2, $3, $4, $5, $5 / count}
    $1 == "whole" {bad = $3 - planned > ram - arrays || $5 > 1.01 * count}
    $1 == "kept" {bad = bad || $5 >= count}
    $1 == "pieces" {cut = pieces > planned - 768 || $3 - pieces > ram - arrays || $5 > 1.2 * count}
    $1 == "executed" {cut = cut || $3 - pieces > 2048 || $5 > 1.4 * count}
    END {if (bad) print "run-device: the whole step takes more RAM than its plan, or more instructions than by hand" > "/dev/stderr"
         if (cut) print "run-device: pieces save less than 768 bytes, or take more RAM than planned, or too many instructions" > "/dev/stderr"
         exit bad || cut}'
