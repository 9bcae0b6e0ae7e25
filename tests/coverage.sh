#!/usr/bin/env bash
# Line coverage of both headers, merged over all test programs, and the lines that no test runs.
# Fails under COVERAGE_MIN percent (95). tests/uncovered.txt holds a reason per uncovered line, as
#   <the line's text> => <reason>
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/coverage
rm -rf $dir
SAMPLE=${SAMPLE:-7} make -s -j"$(nproc 2>/dev/null || echo 2)" test B=$dir CC=gcc WERROR=-Werror CFLAGS="-O1 -g1 --coverage" UNUSED= >$dir.log 2>&1 || { cat $dir.log; exit 1; }

# The lines of one header that no test runs, with the reasons why, and a percentage:  measure HEADER PERCENT
measure() {
    local data reasons=/dev/null
    for data in $dir/*.gcda $dir/inside/*.gcda; do
        gcov --stdout "$data" 2>/dev/null |
            awk -v header="$1" '/^ *-: *0:Source:/ {n = split($0, parts, /[:\/]/); on = parts[n] == header} on'
    done | awk -F: '
        {number = $2 + 0; count = $1; gsub(/[ *]/, "", count)}
        number == 0 || count == "-" {next}
        {seen[number] = 1; text = $0; sub(/^[^:]*:[^:]*:/, "", text); source[number] = text; if (number > last) last = number}
        count !~ /^[#=]/ {run[number] = 1}
        END {
            for (n = 1; n <= last; n++) if (n in seen) {total++; if (n in run) covered++; else printf "%d:%s\n", n, source[n]}
            printf "%d %d\n", covered, total > "/dev/stderr"
        }' >$dir/uncovered 2>$dir/numbers
    [ ! -f tests/uncovered.txt ] || reasons=tests/uncovered.txt
    awk -v reasons=$reasons '
        BEGIN {
            while ((getline line < reasons) > 0) {
                at = index(line, " => ")
                if (at) reason[substr(line, 1, at - 1)] = "    -- " substr(line, at + 4)
            }
        }
        {text = $0; sub(/^[0-9]*: */, "", text); print $0 reason[text]}' $dir/uncovered
    awk -v header="$1" -v min="$2" '{
        percent = $2 ? 100 * $1 / $2 : 0
        printf "%d of %d lines of %s run: %.2f %% (at least %s)\n", $1, $2, header, percent, min
        exit percent < min}' $dir/numbers
}

measure tl_strategy.h "${COVERAGE_MIN:-95}"
measure tl_vk_backend.h "${COVERAGE_MIN:-95}"
