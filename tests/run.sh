#!/usr/bin/env bash
# Run test programs side by side and sum up. Called by `make test`:  tests/run.sh PROGRAM...
#
#   F=name       only tests with this in their name, or all of a program with it in its name
#   RUNNER=...   put before each program: an emulator, for example
#   TIMEOUT=1800 seconds per program, on a machine that does other things, too
#   STRICT=1     a skipped test is a failure, unless all it lacks is the reference data
#
# Each program's output stays in PROGRAM.log. Reference data is read from $TL_SHARED, else from ../shared.
set -uo pipefail
[ $# -gt 0 ] || { echo "no tests"; exit 1; }

run_one() {
    local program=$1 start=$EPOCHREALTIME rc count verdict=ok pattern=${F:+*$F*}
    [[ -z $pattern || ${program##*/} != $pattern ]] || pattern=
    # shellcheck disable=SC2086  # RUNNER is a command line
    timeout -k 10 "${TIMEOUT:-1800}" $RUNNER "$program" ${pattern:+"$pattern"} >"$program.log" 2>&1 </dev/null
    rc=$?
    count=$(sed -n 's/^\[==========\] \([0-9]*\) test(s) run\..*/\1/p' "$program.log" | awk '{n += $1} END {print n + 0}')
    [ "$rc" = 0 ] || verdict=FAIL
    [ "$rc" = 0 ] && [ "$count" = 0 ] && [ -z "$pattern" ] && verdict=FAIL && echo "ran no test" >>"$program.log"
    [ "$rc" = 124 ] && echo "ran longer than ${TIMEOUT:-1800} s" >>"$program.log"
    awk -v v="$verdict" -v p="${program##*/}" -v n="$count" -v a="$start" -v b="$EPOCHREALTIME" -v rc="$rc" 'BEGIN {
        printf "%-5s %-24s %4d tests %8.2f s%s\n", v, p, n, b - a, rc ? "   exit " rc : ""}'
    echo "$verdict $count" >"$program.result"
    [ $verdict = ok ] || grep -vE '^\[ +(RUN|OK) +\]' "$program.log" | tail -n 60 | sed 's/^/      /'
}
export -f run_one
export F=${F:-} RUNNER=${RUNNER:-} TIMEOUT=${TIMEOUT:-1800}
for p; do rm -f "$p.result" "$p.log"; done
printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-$(nproc 2>/dev/null || echo 2)}" bash -c 'run_one "$0"'

results=()
for p; do results+=("$p.result"); done
failed=$(($# - $(cat "${results[@]}" | grep -c '^ok')))
tests=$(awk '{n += $2} END {print n + 0}' "${results[@]}")

# A skipped test prints "SKIPPED name: reason"; one that gives no reason is shown by cmocka's own line.
skips=$(for p; do
    reasons=$(grep -E '^SKIPPED' "$p.log")
    names=$(grep -E '^\[ +SKIPPED +\] [^ ]+$' "$p.log" | sort -u)
    [ "$(grep -c . <<<"$reasons")" -ge "$(grep -c . <<<"$names")" ] || reasons+=$'\n'$(sed "s|\$| (${p##*/}, a reason is missing)|" <<<"$names")
    echo "$reasons"
done | grep .)
echo "$# programs, $tests tests, $failed programs failed, $(grep -c . <<<"$skips") tests skipped"
[ -z "$skips" ] || sed 's/^/      /' <<<"$skips"

[ "$failed" = 0 ] || exit 1
[ "$tests" -gt 0 ] || { echo "no test matches F=${F:-}"; exit 1; }
[ -n "$skips" ] && [ "${STRICT:-0}" = 1 ] || exit 0
if [ -z "${TL_SHARED:-}" ] && [ ! -d ../shared ]; then
    skips=$(grep -vE '^SKIPPED[^:]*:.*(reference data|shared)' <<<"$skips")
    [ -n "$skips" ] || { echo "NOTICE: no reference data here (../shared, or TL_SHARED): its tests did not run"; exit 0; }
fi
echo "a skip is a failure here:"
sed 's/^/      /' <<<"$skips"
exit 1
