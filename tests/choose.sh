#!/usr/bin/env bash
# The names of the test programs that `make test F=... CHANGED=...` builds and runs.
#
#   F=name       those that have a test with this in its name, or have it in their own
#   CHANGED=1    those of what differs from the last commit: the tests of a part are in tests/map.txt, those of a public part
#                are those of its section, those of a file in tests/support are the ones that include it
set -euo pipefail
cd "$(dirname "$0")/.."

named() {
    grep -lE "\b\w*$1\w*\(void ?\*\*" tests/test_*.c || true
    printf '%s\n' tests/test_*.c | grep "/[^/]*$1[^/]*\.c$" || true
}

# Files of tests/support and examples that include one of these, directly or through others, and these.
with_includers() {
    local all=$1 more
    while more=$(grep -lE "include \"[^\"]*($(tr ' ' '|' <<<"$all"))\"" tests/*.c tests/support/* examples/*.[ch] 2>/dev/null |
                     sed 's|.*/||' | cat - <(tr ' ' '\n' <<<"$all") | sort -u | paste -sd' ') && [ "$more" != "$all" ]; do all=$more; done
    echo "$all"
}

tests_of() { awk -v parts="$1" '$1 ~ parts {for (i = 2; i <= NF; i++) print "tests/" $i ".c"}' tests/map.txt; }
changed() {
    local file
    { git diff --name-only HEAD; git ls-files -o --exclude-standard; } | while read -r file; do
        case $file in
        src/vk/*.h) tests_of '^vk/' ;;
        src/*/*.h) file=${file#src/}; tests_of "^${file%%/*}/" ;;
        src/*.c) awk -v part="${file#src/}" '$1 == part ":" {for (i = 2; i <= NF; i++) print "tests/" $i ".c"}' tests/map.txt ;;
        tests/test_*.c) echo "$file" ;;
        tests/support/* | examples/*.[ch])
            with_includers "$(basename "$file")" | tr ' ' '\n' | grep '^test_.*\.c$' | sed 's|^|tests/|' || true ;;
        esac
    done
}

if [ -n "${CHANGED:-}" ]; then changed; else named "$F"; fi | sort -u | while read -r file; do
    [ ! -e "$file" ] || basename "$file" .c
done
