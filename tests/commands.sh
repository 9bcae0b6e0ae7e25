#!/usr/bin/env bash
# The commands at the top of each example work as they stand in a fresh copy of this project, and leave nothing but
# build/ there. Compilers read `examples/X.c` without a warning and without any flag. The first example and those on Vulkan
# hold the whole header, the others are linked with the parts here, which takes a tenth of the time; step joined looks at
# optimized headers.
#
#   tests/commands.sh                every example, side by side
#   tests/commands.sh EXAMPLE        one of them
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
if [ $# = 0 ]; then
    make -s build/parts/libtl_strategy.so
    printf '%s\n' examples/*.c | xargs -P "$(nproc 2>/dev/null || echo 2)" -n 1 bash tests/commands.sh
    exit
fi
f=$1
parts=$PWD/build/parts
system=$(sed -n 's/^#define \(_[A-Z_]*\) *\([0-9L]*\).*/-D\1=\2/p' "$f" | paste -sd' ')
vulkan=$(echo '#include <vulkan/vulkan_core.h>' | gcc -x c -E - >/dev/null 2>&1 && echo yes || true)
if [ -z "$vulkan" ] && grep -q vulkan <<<"$f"; then echo "SKIPPED $f: no <vulkan/vulkan_core.h>"; exit; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/copy"
{ git ls-files -co --exclude-standard 2>/dev/null || find . -type f -not -path './build/*'; } |
    while IFS= read -r name; do [ ! -e "$name" ] || echo "$name"; done | xargs -d '\n' cp --parents -t "$work/copy"
cd "$work/copy"
find . -type f | sort > ../before

# The indented lines behind `// check:`, up to the first that is not indented.
awk '/^\/\/ check:/ {on = 1; next} on && /^\/\/     / {print substr($0, 8); seen = 1; next} on && seen {exit}' "$f" > ../commands
grep -q 'cc ' ../commands || fail "$f: no command in its first comment"
clang -fsyntax-only "$f" 2> ../warnings || { cat ../warnings; fail "clang -fsyntax-only $f"; }
[ ! -s ../warnings ] || { cat ../warnings; fail "clang -fsyntax-only $f: warnings"; }
mkdir ../bin
cat > ../bin/cc <<END
#!/bin/bash
if ! grep -qE 'vulkan|00_first' <<<"\$*"; then
    exec gcc -Werror $system -include "$parts/public/tl_strategy.h" -I"${parts%/build/parts}" "\$@" -L"$parts" -Wl,-rpath,"$parts" -ltl_strategy
fi
exec gcc -Werror "\${@/#-O[23]/-O0}"
END
chmod +x ../bin/cc
OMPI_CC=$work/bin/cc PATH=$work/bin:$PATH timeout 600 bash -euo pipefail ../commands > ../log 2>&1 < /dev/null || { tail -n 20 ../log; fail "the commands of $f fail"; }
find . -type f -not -path './build/*' | sort | diff ../before - || fail "the commands of $f leave files beside build/"
echo "$f: $(grep -c . ../commands) commands; gcc and clang read it"
