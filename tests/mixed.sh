#!/usr/bin/env bash
# Mixed training of examples/01_train_text.c: 200 steps with activations in 16 bits end within 2 % of the loss of f32, in
# bf16, and in f16 from a loss scale at which the first steps overflow; beside weights and moments a step takes about half
# the bytes. The program itself holds measured peaks against planned ones, and the weights and moments of every plan against
# keep all (exit code 3).
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
make -s build/01_train_text WERROR=-Werror
out=build/check/mixed
mkdir -p $out
train() { timeout 300 build/01_train_text --out $out "$@"; }

# NAME LEAST_SKIPPED: what the program says about 200 steps in this precision
judge() {
    awk -v name="$1" -v least="$2" '
        $1 == "states" { states = $2 }
        $1 == name ":" { gsub(/[%;,]/, " "); seen++; loss = $3; wide = $6 + 0; bytes = $9; wide_bytes = $13 + 0 }
        /^loss scale/  { skipped = $5; scale = $3 }
        END {
            if (!seen || wide <= 1 || bytes <= 0) { print "no result of " name; exit 1 }
            if (loss > 1.02 * wide || loss < 0.98 * wide) { print name ": loss " loss " is not within 2 % of " wide; exit 1 }
            if (!states || bytes - states > 0.55 * (wide_bytes - states)) { print name ": peak " bytes " is not about half of " wide_bytes; exit 1 }
            if (skipped < least || (least && scale < 1024)) { print name ": " skipped " steps skipped, scale " scale; exit 1 }
        }' "$out/$1.txt" || { tail -n 5 "$out/$1.txt"; exit 1; }
    grep -A2 "^$1:" "$out/$1.txt" | grep -v '^wrote'
}
long="--steps 200 --plan none --estimate --sample 0"
# shellcheck disable=SC2086  # arguments are words
{
    train $long --precision bf16 > $out/bf16.txt 2> $out/bf16.err & bf16=$!
    train $long --precision f16 --loss-scale 16777216 > $out/f16.txt 2> $out/f16.err & f16=$!
}
wait $bf16 || fail "bf16: exit $?: $(cat $out/bf16.err)"
wait $f16 || fail "f16: exit $?: $(cat $out/f16.err)"
judge bf16 0
judge f16 1

# With plans, within a budget, and with several micro-batches; kernels get no byte that is not theirs.
train --quick --checked --estimate --precision bf16 --micro-batches 2 --loss-scale 1024 > $out/plans.txt 2> $out/plans.err ||
    fail "plans: exit $?: $(cat $out/plans.err)"
[ "$(grep -c ' yes *bf16 ' $out/plans.txt)" -ge 3 ] || fail "plans: $(cat $out/plans.txt)"
train --quick --checked --estimate --precision f16 --budget 95% > $out/budget.txt 2> $out/budget.err ||
    fail "budget: exit $?: $(cat $out/budget.err)"

# Weights and moments are those of updates at the end, whatever the plan, also where a training was saved and loaded, and
# in regions of rows, within less than plans without them take.
same() {        # NAME ARGUMENTS...
    train --quick --estimate --sample 0 --steps 8 --save "$out/$1" "${@:2}" > "$out/$1.txt" 2> "$out/$1.err" ||
        fail "$1: exit $?: $(cat "$out/$1.err")"
    cmp "$out/end.weights" "$out/$1" || fail "$1: weights or moments are not those of updates at the end"
}
for batches in 1 2; do
    train --quick --estimate --sample 0 --steps 8 --plan none --updates end --micro-batches $batches --save $out/end.weights > $out/end.txt
    same fused.weights --micro-batches $batches --updates fused --plan graph
    same outside.weights --micro-batches $batches --updates outside --plan graph
    same budget.weights --micro-batches $batches --budget 75%
    same rows.weights --micro-batches $batches --budget $((52 + 6 * batches))% --checked
    awk '$1 == "budget" { blocks = $10 } END { exit blocks < 2 }' $out/rows.weights.txt || fail "rows: $(cat $out/rows.weights.txt)"
    code=0
    train --quick --estimate --micro-batches $batches --budget $((52 + 6 * batches))% --plan graph > $out/whole.txt 2>&1 || code=$?
    [ $code = 2 ] || fail "without regions of rows: exit $code: $(cat $out/whole.txt)"
    train --quick --estimate --sample 0 --steps 3 --micro-batches $batches --budget 75% --save $out/half.weights > $out/half.txt
    same loaded.weights --micro-batches $batches --plan none --updates end --load $out/half.weights --steps 5
done
echo "fused, at the end, within budgets, in regions of rows, saved and loaded: the same weights and moments"

# Gradients in pieces, where these set the peak: fewer bytes, the same bits, of several sizes of pieces and in 16 bits. Not where
# several batches add to a gradient, or updates wait.
pieces() {      # NAME ARGUMENTS...: what a table of plans of the graph has in its least row: bytes and pieces
    train --quick --checked --estimate --sample 0 --plan graph --batch 1 --context 4 "${@:2}" > "$out/$1.txt" 2> "$out/$1.err" ||
        fail "$1: exit $?: $(cat "$out/$1.err")"
    awk '$1 == "least" {print $3, $10; seen++} / NO /{bad = 1} END {exit seen != 1 || bad}' "$out/$1.txt" || fail "$1: $(cat "$out/$1.txt")"
}
read -r whole none <<< "$(pieces whole --whole-gradients)"
read -r cut some <<< "$(pieces cut)"
[ "$none" = 0 ] && [ "$some" -gt 0 ] && [ "$cut" -lt "$whole" ] || fail "least: $whole bytes, with $some pieces $cut"
for how in "--micro-batches 2" "--updates end" "--updates outside" "--precision f16"; do
    # shellcheck disable=SC2086  # an option and its value
    read -r bytes none <<< "$(pieces uncut $how)"
    [ "$none" = 0 ] && ! grep '^pieces' $out/uncut.txt || fail "$how: $none pieces"
done
read -r bytes some <<< "$(pieces narrow --precision bf16)"
[ "$some" -gt 0 ] || fail "bf16: no pieces"
small="--batch 1 --context 4 --plan graph"
# shellcheck disable=SC2086  # arguments are words
{
    train --quick --estimate --sample 0 --steps 8 $small --whole-gradients --updates end --save $out/end.weights > $out/end.txt
    for budget in $cut $(((cut + whole) / 2)) "$whole"; do same pieces.weights $small --checked --budget "$budget"; done
    train --quick --sample 0 $small --budget "$cut" > $out/rehearsed.txt 2> $out/rehearsed.err || fail "rehearsed: exit $?: $(cat $out/rehearsed.err)"
}
awk '$1 == "budget" && $9 > 0 {seen++} END {exit seen != 1}' $out/rehearsed.txt || fail "rehearsed: $(cat $out/rehearsed.txt)"
echo "gradients in pieces: $cut bytes for $whole, the same weights and moments"

# Bad input.
refuse() {      # SENTENCE ARGUMENTS...
    local code=0
    train --quick "${@:2}" > $out/bad.txt 2> $out/bad.err || code=$?
    [ $code = 1 ] && grep -qF -- "$1" $out/bad.err || fail "${*:2}: exit $code: $(cat $out/bad.err)"
}
refuse '--precision i8: must be f32, bf16 or f16' --precision i8
refuse '--precision half: must be f32, bf16 or f16' --precision half
refuse '--loss-scale: goes with --precision bf16 or f16' --loss-scale 2
refuse '--loss-scale: goes with --precision bf16 or f16' --loss-scale 2 --precision f32
refuse '--loss-scale 0: must be a whole number' --loss-scale 0 --precision f16
refuse '--updates late: must be fused, end or outside' --updates late
refuse '--updates outside: with a loss scale' --updates outside --precision f16
refuse '--updates fused: with a loss scale' --updates fused --precision f16
refuse '--plan some: must be layers, graph, rows, all or none' --plan some
