#!/usr/bin/env bash
# The pages cannot lie. In every *.md: each ```c block is compiled as C99 and read as C++11, those with a main are run, and what
# a comment `// prints: TEXT` says is in their output; each ```cpp block stands in tests/vma/vma_hooks.cpp, which
# `make test VMA=` compiles and runs; each `make` line of a ```sh block names a target that exists; each ```text block
# that begins with `$ COMMAND` is what its commands print (but for seconds); what a ```sh block plans and compiles for a device with
# arm-none-eabi-gcc compiles, for a small network; links to files of the project lead somewhere.
# README.md has at most 300 lines.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/readme
fail() { echo "$*" >&2; exit 1; }
rm -rf $dir
mkdir -p $dir
for page in *.md; do
    awk -v dir="$dir/$(basename "$page" .md)" '
        /^```/ && on               {on = 0; close(file); next}
        /^```(c|cpp|sh|text)( |$)/ {on = 1; lang = substr($1, 4); n++
                                    file = sprintf("%s-%02d.%s", dir, n, lang == "c" ? "part" : lang); printf "" > file
                                    print NR + 1 > (file ".line"); close(file ".line"); next}
        /^```/                     {on = 1; file = "/dev/null"; next}
        on                         {print > file}' "$page"
done
page_of() { local name=${1##*/}; echo "${name%-*}.md:$(cat "$1.line")"; }

flags="-Wall -Wextra -Wpedantic -Wno-misleading-indentation -Wno-unused-variable -Wno-unused-function -Wno-unused-but-set-variable -Werror -I. -Iexamples"

# Compile a block, and run it if it has a main. One without is read with the header's declarations alone. Programs of README hold
# the whole header, those of other pages are linked with the parts, which takes a tenth of the time.
check_block() {
    local part=$1 source=${1%.part}.c where line program text what=-fsyntax-only
    where=$(page_of "$part") line=$(cat "$part.line")
    if grep -q '\bmain(' "$part"; then
        { echo "#line $line \"${where%:*}\""; cat "$part"; } > "$source"
        what="-lm -lpthread -ldl"
        case $where in README.md:*) ;; *) grep -q TL_VK_ "$part" || what="$(system_macros "$part") $linked $what" ;; esac
    else
        {
            printf '#include "tl_strategy.h"\n#include <stdio.h>\n#include <string.h>\n'
            grep -E '^ *#' "$part" | grep -vE 'IMPLEMENTATION|"tl_strategy.h"' || true
            printf 'void readme_block(void);\nvoid readme_block(void) {\n#line %d "%s"\n' "$line" "${where%:*}"
            sed -E 's/^ *#.*//' "$part"
            printf '}\n'
        } > "$source"
    fi
    gcc -std=c99 -ffp-contract=off $flags -o "${source%.c}" "$source" $what || fail "$where: not C99"
    g++ -x c++ -std=c++11 $flags -fsyntax-only "$source" || fail "$where: not C++11"
    grep -q '\bmain(' "$part" || return 0
    program=${source%.c}
    (cd $dir && timeout 120 "../../$program" >"../../$program.out" 2>&1 </dev/null) ||
        { cat "$program.out"; fail "$where: the program fails"; }
    sed -n 's|.*// prints: ||p' "$part" | while IFS= read -r text; do
        grep -qF -- "$text" "$program.out" || { cat "$program.out"; fail "$where: does not print: $text"; }
    done
}
system_macros() { sed -n 's/^#define \(_[A-Z_]*\) *\([0-9L]*\).*/-D\1=\2/p' "$1" | paste -sd' '; }
export -f check_block page_of fail system_macros
export dir flags
export linked="-include build/parts/public/tl_strategy.h -Lbuild/parts -Wl,-rpath,$PWD/build/parts -ltl_strategy"
make -s build/parts/libtl_strategy.so
blocks=$(find $dir -name '*.part' | wc -l)
[ $blocks -gt 0 ] || fail 'no page has a ```c block'
find $dir -name '*.part' -print0 | xargs -0 -n 1 -P "$(nproc 2>/dev/null || echo 2)" bash -euo pipefail -c 'check_block "$0"'

for part in $dir/*.cpp; do
    [ -e "$part" ] || continue
    grep -v '^//' "$part" | grep . | while IFS= read -r line; do
        grep -qxF -- "$line" tests/vma/vma_hooks.cpp || fail "$(page_of "$part"): not in tests/vma/vma_hooks.cpp: $line"
    done
done

# Words after make, up to a comment; NAME=value is a setting.
targets=$(cat $dir/*.sh | sed 's/ *#.*//' | tr ';&' '\n\n' |
    awk '$1 == "make" {for (i = 2; i <= NF; i++) if ($i !~ /=|^-|^build\//) print $i}' | sort -u)
for t in $targets; do grep -qE "^$t:" Makefile || fail "make $t: no such target"; done

# Transcripts: the seconds that a program took are no part of what it prints.
shown=0
plain() { sed -E 's/[0-9.]+ s$/TIME s/; s/[[:space:]]+$//'; }
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import torch' 2>/dev/null && echo "$p" && break; done || true)
for part in $dir/*.text; do
    head -n 1 "$part" | grep -q '^\$ ' || continue
    if grep -q '^\$ python3' "$part" && [ -z "$python" ]; then echo "SKIPPED $(page_of "$part"): no PyTorch (Debian: python3-torch)"; continue; fi
    make -s build/tl_plan WERROR=-Werror
    sed -n 's/^\$ //p' "$part" | sed "s|^python3|${python:-python3}|" > "$part.commands"
    bash -euo pipefail "$part.commands" 2>&1 | plain > "$part.printed" || { cat "$part.printed"; fail "$(page_of "$part"): the commands fail"; }
    grep -v '^\$ ' "$part" | plain | diff - "$part.printed" || fail "$(page_of "$part"): its commands (>) print something else"
    shown=$((shown + 1))
done

# Lines for a device: where a block calls its compiler, what plans and compiles, as it stands there, for a small trained network.
device=$dir/device
for part in $(grep -l arm-none-eabi-gcc $dir/*.sh); do
    if ! command -v arm-none-eabi-gcc > /dev/null; then echo "SKIPPED $(page_of "$part"): no arm-none-eabi-gcc (make deps)"; continue; fi
    make -s build/tl_plan WERROR=-Werror
    rm -rf $device
    mkdir -p $device/build
    ln -s "$PWD/examples" $device/examples
    ln -s "$PWD/build/tl_plan" $device/build/tl_plan
    for end in tlg safetensors ranges; do cp tests/data/tiny/kws.$end $device/build/net.$end; done
    printf '#include "net.h"\nvoid net_load(int32_t batch) { (void)batch; }\nint main(void) { net_run(); return 0; }\n' > $device/main.c
    sed -e :a -e '/\\$/{N;s/\\\n//;ba}' "$part" | grep -E 'arm-none-eabi-gcc|build/tl_plan build/net\.tlg|^mkdir' > $device/commands
    (cd $device && bash -euo pipefail commands > printed 2>&1) || { cat $device/printed; fail "$(page_of "$part"): its lines for a device fail"; }
    grep -q nn_tiny_f32.h $device/build/code/net_kernels.c || fail "$(page_of "$part"): no kernel in f32, which these lines are to compile"
    compiled=$((${compiled:-0} + 1))
done

for page in *.md; do
    { grep -oE '\]\([^)#: ]+' "$page" || true; } | sed 's/^](//' | sort -u | while IFS= read -r file; do
        [ -e "$file" ] || fail "$page: $file is not there"
    done
done
lines=$(wc -l < README.md)
[ "$lines" -le 300 ] || fail "README.md has $lines lines, more than 300"
echo "$blocks blocks compiled as C99, read as C++11, $shown transcripts, ${compiled:-0} blocks for a device; README.md: $lines lines; make targets named: $(echo $targets)"
