#!/usr/bin/env bash
# Generated C under the MISRA C:2012 addon of cppcheck: it reports no rule that the table of GUIDE.md, chapter 15, has not with a
# reason, in the code that tl_plan writes (NAME*.c, NAME.h), and each rule of the table somewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${B:-build}/misra
plan=${B:-build}/tl_plan
model=tests/data/tiny/kws
how=(--inference --precision "loss=1e9,objective=bytes,schemes=i8,inputs=i8,sensitive,unknown,any-result" --weights $model.safetensors
     --ranges $model.ranges --kernels own)
write() {
    mkdir -p "$out/$1"
    "$plan" $model.tlg "${how[@]}" "${@:2}" -o "$out/$1" > "$out/$1.txt"
    echo '#include "net_scales.h"' > "$out/$1/uses_scales.c"
    cppcheck --addon=misra --std=c99 --enable=style -q -Iexamples -I"$out/$1" "$out/$1"/*.c > "$out/$1.log" 2>&1
    grep -E "^$out/$1/" "$out/$1.log" | grep -oE 'misra-c2012-[0-9]+\.[0-9]+' | sed 's/.*-//'
}
reported=$({ write calls --c-code=calls net; write table --c-code=table net; write rows --c-code=calls net --rows; } | sort -u)
[ -n "$reported" ] || { echo "misra: cppcheck reports nothing: is its addon there?" >&2; exit 1; }
reasons=$(awk '/^#### MISRA/ {on = 1} /^##+ [^M]/ {on = 0} on && /^\| [0-9]+\.[0-9]+ \|/ {print $2}' GUIDE.md | sort -u)
new=$(comm -23 <(echo "$reported") <(echo "$reasons"))
gone=$(comm -13 <(echo "$reported") <(echo "$reasons"))
for rule in $new; do
    echo "misra: rule $rule has no reason in GUIDE.md: $(grep -hE "^$out/.*misra-c2012-$rule\]" "$out"/*.log | head -n 1)" >&2
done
for rule in $gone; do echo "misra: rule $rule is kept, and GUIDE.md says why not" >&2; done
[ -z "$new$gone" ] || exit 1
echo "misra: $(echo "$reported" | wc -l) rules are not kept, with a reason each"
