#!/usr/bin/env bash
# Break the header on purpose, one line at a time, and see a test turn red each time.
# tests/mutations.txt holds one mutation a line: <test> <tab> <sed flag, -E or -e> <tab> <sed expression>. A mutation that changes nothing, does
# not compile or survives its test fails this script. MUTATE=regex picks some; JOBS sets how many run side by side.
set -u
cd "$(dirname "$0")/.."
out=build/mutate
flags=(-std=c99 -ffp-contract=off -O1 -w -DTL_STRATEGY_STATIC -Iexamples)
rm -rf $out && mkdir -p $out

one() {  # number, test, flag, expression -> a line in $out/<number>.txt
    local dir=$out/$1 verdict beside=()
    mkdir -p "$dir/tests"
    cp -r tests/support tests/"$2".[cp]* "$dir/tests/"
    sed "$3" "$4" tl_strategy.h > "$dir/tl_strategy.h"
    [ "$2" != test_12_tables ] || beside=("$dir/tests/support/tables_run.c" "$dir/tests/support/small_run.c")
    if [ -f "tests/$2.py" ]; then run_program "$@"; return 0; fi
    if cmp -s tl_strategy.h "$dir/tl_strategy.h"; then verdict="UNCHANGED"
    elif ! ${CC:-cc} "${flags[@]}" -o "$dir/run" "$dir/tests/$2.c" "${beside[@]}" -lcmocka -lm -lpthread 2> "$dir/log"; then
        verdict="NO BUILD"
    elif TL_SHARED=/nonexistent timeout 120 "$dir/run" > "$dir/log" 2>&1; then verdict="SURVIVED"
    else verdict="red"; fi
    report "$dir" "$verdict" "$@"
}

report() {  # directory, verdict, the arguments of one
    printf '%-9s  %-18s  %s\n' "$2" "$4" "$6" > "$out/$3.txt"
    [ "$2" = red ] && rm -rf "$1"
    return 0
}

# A test in Python runs tl_plan.
run_program() {  # the arguments of one
    local dir=$out/$1 verdict
    mkdir -p "$dir/examples"
    cp examples/tl_plan.c "$dir/examples/"
    if cmp -s tl_strategy.h "$dir/tl_strategy.h"; then verdict="UNCHANGED"
    elif ! ${CC:-cc} "${flags[@]}" -o "$dir/run" "$dir/examples/tl_plan.c" -lm -lpthread 2> "$dir/log"; then verdict="NO BUILD"
    elif TL_SHARED=/nonexistent timeout 120 python3 "tests/$2.py" "$dir/run" > "$dir/log" 2>&1; then verdict="SURVIVED"
    else verdict="red"; fi
    report "$dir" "$verdict" "$@"
}

count=0
while IFS=$'\t' read -r test flag expression; do
    case "$test" in ''|'#'*) continue ;; esac
    [[ "$test $expression" =~ ${MUTATE:-.} ]] || continue
    count=$((count + 1))
    one "$(printf %03d $count)" "$test" "$flag" "$expression" &
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n; done
done < tests/mutations.txt
wait
cat $out/*.txt
bad=$(grep -L '^red' $out/*.txt | wc -l)
echo "$count mutations, $((count - bad)) red, $bad not"
[ "$bad" -eq 0 ] && [ "$count" -ge 30 ]
