#!/usr/bin/env bash
# A training program in plain C (net.c), made to run inside a budget (net_budget.c), and once more with its optimizer in the
# plan (net_states.c): the lines added, and whether losses and weights are the same to the bit at every budget.
#
#   tests/client/run.sh [STEPS]      20 steps where none are given
set -euo pipefail
cd "$(dirname "$0")/../.."
steps=${1:-20} out=build/client limit=60
mkdir -p $out
flags=(-std=gnu99 -O2 -ffp-contract=off -Wall -Wextra -I.)
added=$(diff tests/client/net.c tests/client/net_budget.c | grep -c '^>' || true)
echo "$added lines added, $limit allowed"
[ "$added" -le $limit ]
${CC:-gcc} "${flags[@]}" -o $out/net tests/client/net.c -lm
${CC:-gcc} "${flags[@]}" -DTL_STRATEGY_STATIC -Wno-unused-function -o $out/net_budget tests/client/net_budget.c -lm
$out/net "$steps" > $out/plain.txt
least=$($out/net_budget 0 1 2>&1 >/dev/null | sed 's/.*least \([0-9]*\).*/\1/')
for budget in 1 0.75 0.5 0.3 0.15 "$least"; do
    $out/net_budget "$steps" "$budget" > $out/budget.txt
    cmp $out/plain.txt $out/budget.txt
done
added=$(diff tests/client/net.c tests/client/net_states.c | grep -c '^>' || true)
echo "$added lines added with optimizer and statistics in the plan, 90 allowed"
[ "$added" -le 90 ]
${CC:-gcc} "${flags[@]}" -DTL_STRATEGY_STATIC -Wno-unused-function -o $out/net_states tests/client/net_states.c -lm
least=$($out/net_states 0 1 2>&1 >/dev/null | sed 's/.*least \([0-9]*\).*/\1/')
for budget in 1 0.5 "$least"; do
    $out/net_states "$steps" "$budget" > $out/budget.txt
    cmp $out/plain.txt $out/budget.txt
done
$out/net_states 1 1 check 2>&1 > /dev/null | sed '$d' | grep . && exit 1
$out/net_budget 1 1 check > $out/check.txt 2> $out/findings.txt
[ "$(wc -l < $out/findings.txt)" = 1 ] || { cat $out/findings.txt; exit 1; }
echo "the same bits at every budget; a rehearsal finds nothing"
