#!/usr/bin/env bash
# The README cannot lie: every ```c block is compiled as C99 and as C++11, those with a main are run; every ```cpp block
# must stand in tests/vma/vma_hooks.cpp, which `make test VMA=` compiles and runs; every `make` line of a ```sh block must
# name a target that exists.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/readme
rm -rf $dir
mkdir -p $dir
awk -v dir=$dir '
    /^```/ && on          {on = 0; close(file); next}
    /^```(c|cpp|sh)( |$)/ {on = 1; lang = substr($1, 4); n++; file = sprintf("%s/%02d.%s", dir, n, lang == "c" ? "part" : lang); printf "" > file
                           if (lang == "c") print NR + 1 > (file ".line"); next}
    /^```/                {on = 1; file = "/dev/null"; next}
    on                    {print > file}' README.md

flags="-Wall -Wextra -Wpedantic -Wno-unused-variable -Wno-unused-function -Wno-unused-but-set-variable -Werror -I. -Iexamples"
blocks=0
for part in $dir/*.part; do
    [ -e "$part" ] || continue
    blocks=$((blocks + 1))
    line=$(cat "$part.line")
    source=${part%.part}.c
    if grep -q '\bmain(' "$part"; then
        { echo "#line $line \"README.md\""; cat "$part"; } > "$source"
    else
        {
            printf '#define TL_STRATEGY_IMPLEMENTATION\n#include "tl_strategy.h"\n#include <stdio.h>\n#include <string.h>\n'
            grep -E '^ *#' "$part" | grep -vE 'TL_STRATEGY_IMPLEMENTATION|"tl_strategy.h"' || true
            printf 'void readme_block(void);\nvoid readme_block(void) {\n#line %d "README.md"\n' "$line"
            sed -E 's/^ *#.*//' "$part"
            printf '}\nint main(void) { return 0; }\n'
        } > "$source"
    fi
    gcc -std=c99 -ffp-contract=off $flags -o "${source%.c}" "$source" -lm -lpthread -ldl || { echo "README.md:$line: not C99" >&2; exit 1; }
    g++ -x c++ -std=c++11 -ffp-contract=off $flags -o "${source%.c}_cpp" "$source" -lm -lpthread -ldl ||
        { echo "README.md:$line: not C++11" >&2; exit 1; }
    if grep -q '\bmain(' "$part"; then
        for program in "${source%.c}" "${source%.c}_cpp"; do
            (cd $dir && timeout 120 "../../$program" >"../../$program.out" 2>&1 </dev/null) ||
                { cat "$program.out"; echo "README.md:$line: the program fails" >&2; exit 1; }
        done
    fi
done
[ $blocks -gt 0 ] || { echo "README.md has no \`\`\`c block" >&2; exit 1; }

for part in $dir/*.cpp; do
    grep -v '^//' "$part" | grep . | while IFS= read -r line; do
        grep -qxF -- "$line" tests/vma/vma_hooks.cpp ||
            { echo "README.md: not in tests/vma/vma_hooks.cpp: $line" >&2; exit 1; }
    done
done

# Words after make, up to a comment; NAME=value is a setting.
targets=$(cat $dir/*.sh 2>/dev/null | sed 's/ *#.*//' | tr ';&' '\n\n' | awk '$1 == "make" {for (i = 2; i <= NF; i++) if ($i !~ /=|^-/) print $i}' | sort -u)
for t in $targets; do
    grep -qE "^$t:" Makefile || { echo "README.md: make $t: no such target" >&2; exit 1; }
done
echo "$blocks blocks compiled as C99 and C++11; make targets named: $(echo $targets)"
