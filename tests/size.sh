#!/usr/bin/env bash
# Code size.
#
#   tests/size.sh           on a Cortex-M4, per symbol; fails where it grows
#   tests/size.sh --table   before that each option alone and all, on x86-64 and on a Cortex-M4   (make size)
#
# tests/size.c is a program that uses the manager and the executor, planned and online, with error texts. Linked with unused
# sections dropped, its size on the Cortex-M4 (Thumb-2, -Os, freestanding) has a limit. tests/size_tables.c runs a const table, and
# its memory beside the arena has a limit, too.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=112640  # 110 KiB
tables_limit=13824 tables_memory=1024
out=build/size
prefix=arm-none-eabi-
arm=(${prefix}gcc -mcpu=cortex-m4 -mthumb -ffreestanding)
intel=(gcc -fno-asynchronous-unwind-tables -no-pie)
common=(-std=c99 -Os -ffunction-sections -fdata-sections)
# What a program needs from elsewhere is not counted: memcpy, files, an allocator.
link=(-nostdlib -static -Wl,-e,main,--unresolved-symbols=ignore-all)
mkdir -p $out

check_limit() {
    local image=$out/size.elf
    "${arm[@]}" "${common[@]}" -Wall -Wextra "${link[@]}" -Wl,--gc-sections -o $image tests/size.c -lgcc
    ${prefix}nm -S --size-sort --reverse-sort -t d $image | awk '$3 ~ /[tTrRdDbB]/ {printf "%7d  %s  %s\n", $2, $3, $4}' > $out/symbols.txt
    head -n "${SIZE_LINES:-40}" $out/symbols.txt
    echo "(all: $out/symbols.txt; t code, r constants, d and b data)"
    ${prefix}size $image | awk -v limit=$limit -v image=$image 'NR == 2 {
        printf "%s: %d bytes of code and constants, %d of data; limit %d\n", image, $1, $2 + $3, limit
        exit $1 + $2 > limit}'
}

check_tables() {
    local image=$out/size_tables.elf
    "${arm[@]}" "${common[@]}" -Wall -Wextra "${link[@]}" -Wl,--gc-sections -o $image tests/size_tables.c -lgcc
    ${prefix}size $image | awk -v limit=$tables_limit -v memory=$tables_memory -v image=$image 'NR == 2 {
        printf "%s: %d bytes of code and constants, limit %d; %d of data, limit %d\n", image, $1, limit, $2 + $3, memory
        exit $1 + $2 > limit || $2 + $3 > memory}'
}

# Bytes of code, constants and initialised data of tests/size.c, without and with unused sections:
#   measure NAME FLAGS...   writes NAME.row
measure() {
    local name=$1 machine compiler size bytes=()
    for machine in intel arm; do
        if [ $machine = intel ]; then compiler=("${intel[@]}") size=size; else compiler=("${arm[@]}" -DTL_NO_STDIO) size=${prefix}size; fi
        "${compiler[@]}" "${common[@]}" -DSIZE_OPTIONS "${@:2}" -c -o "$out/$name.$machine.o" tests/size.c
        for sections in --gc-sections --no-gc-sections; do
            "${compiler[@]}" "${link[@]}" -Wl,$sections -o "$out/$name.$machine" "$out/$name.$machine.o" -lgcc
            bytes+=("$($size "$out/$name.$machine" | awk 'NR == 2 {print $1 + $2}')")
        done
    done
    printf '%-24s %10d %10d %10d %10d\n' "$name" "${bytes[@]}" > "$out/$name.row"
}

print_table() {
    local option all flags=()
    mapfile -t all < <(grep -E '^ *# *(if|elif)' tl_strategy.h | grep -oE '\bTL_NO_[A-Z_]+' | sort -u)
    for option in "${all[@]}"; do flags+=("-D$option"); done
    {
        echo none
        for option in "${all[@]}"; do echo "$option -D$option"; done
        echo "all ${flags[*]}"
    } | xargs -P "$(nproc 2>/dev/null || echo 2)" -d '\n' -n 1 "$BASH" -c 'bash tests/size.sh --measure $0'
    echo "bytes of code and constants at -Os    x86-64            Cortex-M4 (which has no files)"
    printf '%-24s %10s %10s %10s %10s\n' option used whole used whole
    for option in none "${all[@]}" all; do cat "$out/$option.row"; done
    echo "used: what tests/size.c uses, unused sections dropped; whole: the whole implementation"
}

case ${1:-} in
--measure) measure "${@:2}" ;;
--table) print_table; check_limit; check_tables ;;
*) check_limit; check_tables ;;
esac
