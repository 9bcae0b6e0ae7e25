#!/usr/bin/env bash
# The commands at the top of each example work as they stand in a fresh copy of this project, and leave nothing but
# build/ there. `cc examples/X.c` compiles without a warning and without any flag, -lm where the example has it.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
files() { if git rev-parse --git-dir >/dev/null 2>&1; then git ls-files -co --exclude-standard; else find . -type f -not -path './build/*'; fi; }
files | while IFS= read -r f; do [ ! -e "$f" ] || echo "$f"; done | xargs -d '\n' cp --parents -t "$copy"
cd "$copy"

# The indented lines behind `// check:`, up to the first that is not indented.
commands() { awk '/^\/\/ check:/ {on = 1; next} on && /^\/\/     / {print substr($0, 8); seen = 1; next} on && seen {exit}' "$1"; }
vulkan=$(echo '#include <vulkan/vulkan_core.h>' | gcc -x c -E - >/dev/null 2>&1 && echo yes || true)

find . -type f | sort > "$copy.before"
for f in examples/*.c; do
    name=$(basename "$f" .c)
    [ -n "$vulkan" ] || ! grep -q vulkan <<<"$name" || { echo "SKIPPED $f: no <vulkan/vulkan_core.h>"; continue; }
    commands "$f" > "$copy.commands"
    grep -q 'cc ' "$copy.commands" || fail "$f: no command in its first comment"
    lm=
    ! grep -qE 'cc .* -lm' "$copy.commands" || lm=-lm
    for cc in gcc clang; do
        $cc "$f" $lm -o "$copy.program" 2> "$copy.warnings" || { cat "$copy.warnings"; fail "$cc $f $lm"; }
        [ ! -s "$copy.warnings" ] || { cat "$copy.warnings"; fail "$cc $f $lm: warnings"; }
    done
    rm -rf build
    timeout 600 bash -euo pipefail "$copy.commands" > "$copy.log" 2>&1 < /dev/null || { tail -n 20 "$copy.log"; fail "the commands of $f: exit $?"; }
    find . -type f -not -path './build/*' | sort | diff "$copy.before" - || fail "the commands of $f leave files beside build/"
    echo "$name: $(grep -c . "$copy.commands") commands; cc $f $lm"
done
rm -f "$copy".*
