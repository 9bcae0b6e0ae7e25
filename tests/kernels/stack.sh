#!/usr/bin/env bash
# No kernel of examples/nn_tiny.h takes more than 1 KiB of stack with all that it calls (1.5 KiB where pointers have 64 bits), or
# needs a symbol but memcpy and memset: for a Cortex-M4, a Cortex-M0+ and this machine. Each kernel is listed in tests/build/nn_tiny.c.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${B:-build}/nn_tiny
mkdir -p "$out"
fail() { echo "tiny: $*" >&2; exit 1; }

listed() { grep -o 'nn_tiny_[a-z0-9_]*' tests/build/nn_tiny.c | grep -v '^nn_tiny_check' | sort -u; }
kernels() {
    sed -n 's/^static inline void \(nn_tiny_[a-z0-9_]*\)(.*/\1/p' examples/nn_tiny.h | grep -E '_(i8|i16|w4)(_rows)?$|upsample' | grep -vE '_(multiply|sum_block|conv_run|write|depthwise_four|softmax_row|multiply_row)_'
}
diff <(kernels | sort) <(listed | grep -E '_(i8|i16|w4)(_rows)?$|upsample') || fail "kernels (<) and what tests/build/nn_tiny.c lists (>) differ"

# The frames of the longest chain of calls, of gcc's call graph: bytes, and by whom.
longest() {
    awk '
        /^node:/ {split($0, part, "\""); name = part[2]; bytes = match($0, /[0-9]+ bytes/) ? substr($0, RSTART) + 0 : 0; frame[name] = bytes
                  if (/dynamic/ && !/bounded/) {print "a frame of no fixed size: " name; exit 1}}
        /^edge:/ {split($0, part, "\""); calls[part[2]] = calls[part[2]] SUBSEP part[4]}
        function depth(name,   list, i, n, most, d) {
            if (name in seen) return seen[name]
            n = split(calls[name], list, SUBSEP)
            for (i = 2; i <= n; i++) {d = depth(list[i]); if (d > most) most = d}
            return seen[name] = most + frame[name]
        }
        END {for (name in frame) {d = depth(name); if (d > worst) {worst = d; by = name}}; sub(/.*:/, "", by); print worst, by}' "$1"
}
check() {   # NAME COMPILER FLAGS...
    local name=$1 bytes by symbol limit=1024
    [[ $name != host* ]] || limit=1536      # pointers of 64 bits
    "${@:2}" -std=c99 -ffreestanding -fno-stack-protector -Wno-unused-function -Iexamples -fcallgraph-info=su -c -o "$out/$name.o" tests/build/nn_tiny.c
    read -r bytes by <<< "$(longest "$out/$name.ci")"
    [ "$bytes" -gt 500 ] && [ "$bytes" -le $limit ] || fail "$name: $by takes $bytes bytes of stack"
    symbol=$(nm -u "$out/$name.o" | awk '{print $2}' | grep -vxE 'memcpy|memset|__(aeabi|gnu)_[a-z0-9_]*|__clzsi2|_GLOBAL_OFFSET_TABLE_' || true)
    [ -z "$symbol" ] || fail "$name needs other symbols: $symbol"
    printf '%-12s %5d bytes of stack at most (%s), %6d of code\n' "$name" "$bytes" "$by" "$(size "$out/$name.o" | awk 'NR == 2 {print $1}')"
}
for level in -O2 -Os -O3; do
    check host$level gcc $level
    if command -v arm-none-eabi-gcc > /dev/null; then
        check m4$level arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard $level
        check m0$level arm-none-eabi-gcc -mcpu=cortex-m0plus -mthumb $level
    fi
done
