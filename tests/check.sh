#!/usr/bin/env bash
# The whole bar, step by step; stops at the first failure.
#
#   tests/check.sh                every step            (make check)
#   tests/check.sh NAME...        only these
#   tests/check.sh --list         their names
#
# tests/build/*.c say in their first comment how they are compiled:
#   // flags: -ffreestanding      added to the command; may name further source files
#   // lang: c                    c, c++ or both (default)
# One with a main() is linked and run, the others are compiled. examples/*.c say `// check: <arguments>`. Those with vk_
# or vulkan in their name need Vulkan's headers: they are skipped without, and STRICT=1 makes a skip a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc 2>/dev/null || echo 2)
out=build/check
cross=${CMOCKA_CROSS:-/usr/local/lib/cmocka}
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wswitch-enum -Wundef -Wno-misleading-indentation -Werror)  # see Makefile
allowed='^(memcpy|memset|memmove|memcmp)$'
mkdir -p $out
unset F     # a filter is no bar
export LINKED=1     # programs are linked with the parts, where the step is not about compiling the header

steps=(parts names contents surface test joined asan tsan reduced m32 s390x plans headers options freestanding examples commands fuzz)
# Most of these run one process at a time: two of them run side by side.
beside=(size tl_plan importers mpi tidy readme client device install differential mixed torch cppcheck calls shaders mingw)

fail() { echo "$*" >&2; exit 1; }
skip() { echo "SKIPPED $*"; [ "${STRICT:-0}" != 1 ] || fail "a skip is a failure here"; }
parallel() { xargs -d '\n' -r -P "$jobs" -n 1 bash -c; }      # one command a line, each run by bash
header_line() { sed -n "1,20s|^// $2: *||p" "$1" | head -n 1; }

# An object of a whole header, for the steps that look at its symbols:  implementation HEADER OUT COMPILER FLAGS...
implementation() {
    implementation_source "$1"
    "${@:3}" -I. -c -o "$2" $whole
}
whole=$out/implementation_${2:-}.c      # of this step, which may not be the only one that runs
implementation_source() {
    printf '#define %s\n' TL_STRATEGY_IMPLEMENTATION TL_VK_BACKEND_IMPLEMENTATION > $whole
    echo "#include \"$1\"" >> $whole
}

# The folder that holds Vulkan's headers; nothing where there is none.
vulkan_include() {
    echo '#include <vulkan/vulkan_core.h>' | gcc -x c -M - 2>/dev/null | grep -o '[^ ]*/vulkan/vulkan_core\.h' |
        sed 's|/vulkan/[^/]*$||' || true
}
no_vulkan="no <vulkan/vulkan_core.h> (Debian: libvulkan-dev)"
with_vulkan() { if [ -n "$(vulkan_include)" ]; then cat; else grep -vE '[/_]vk_|vulkan'; fi; }
build_tests() { printf '%s\n' tests/build/*.c | with_vulkan; }
examples() { printf '%s\n' examples/*.c | with_vulkan; }
headers() { echo tl_strategy.h; [ -z "$(vulkan_include)" ] || echo tl_vk_backend.h; }

# The TL_NO_* options that the preprocessor asks for in a header; and those that set others.
options() { grep -E '^ *# *(if|elif)' "$1" | grep -oE '\bTL_NO_[A-Z_]+' | sort -u; }
table_options=(TL_ONLY_TABLES TL_SMALL_SIZES)

# Sanitizers of these compilers do not cope with all layouts of newer kernels: fixed addresses where that is allowed.
fixed_addresses() { if setarch -R true 2>/dev/null; then echo setarch -R; fi; }

tests_with() { STRICT=1 make -s -j"$jobs" test WERROR=-Werror "$@"; }

# The test programs whose names match, built into a directory:  programs DIRECTORY PATTERN
programs() { printf '%s\n' tests/test_*.c | grep -E "$2" | sed "s|tests/\(.*\)\.c|$1/\1|" | paste -sd' '; }

# Both headers are what their parts say, and every part is listed once.
step_parts() {
    local folder header
    while read -r folder header; do
        awk -v f=$folder '{print f "/" $1}' $folder/ORDER | xargs cat | cmp - "$header" || fail "$header is not what $folder says: run make header"
        diff <(awk '{print $1}' $folder/ORDER | sort) <(cd $folder && find . -path ./vk -prune -o -name '*.[ch]' -printf '%P\n' | sort) ||
            fail "$folder/ORDER (<) and the parts in $folder (>) differ"
        echo "$header: $(wc -l < $folder/ORDER) parts"
    done <<< "src tl_strategy.h
src/vk tl_vk_backend.h"
    bash tests/compile_commands.sh --check
    ! grep -L cmocka_set_test_filter tests/test_*.c | grep . || fail "these ignore F=name (CONTRIBUTING, section 13)"
}

# Every step below is there for what the others do not see, and runs the programs in which that can show. All of them run
# once by gcc, counting lines. -O1 builds in half the time of -O2.
step_test()       { STRICT=1 bash tests/coverage.sh; }

# The joined header, in which private functions are static and compilers see all of it at once: as users have it, with all
# warnings that need data flow, and the one that takes gcc long. Of the programs that name nothing private some run with it:
# what compilers do to it shows in plans, runs and kernels, not in walks of one rule.
joined='_[123]_|_4_layout|_5_blocks|_6_(c|d|p|s)|_[78]_|_9_n|_10_|_12_(fu|g|i|n|o|p|ranks|s)|_13_|_nn|_quantize'
joined_object() { implementation tl_strategy.h $out/joined.o gcc -std=c99 -O3 -ffp-contract=off "${strict[@]}" -Wmisleading-indentation; }
step_joined() {
    local inside warnings
    joined_object &
    warnings=$!
    inside=$(make -s inside)
    SAMPLE=25 tests_with JOINED=1 VULKAN=no B=$out/joined CC=gcc CFLAGS="-O2" \
        TESTS="$(programs $out/joined "$joined" | tr ' ' '\n' | grep -vE "/(${inside// /|}|test_1_core)$" | paste -sd' ')"
    wait $warnings
}

# Sanitizers, with invariants, and with the counts of branches that guide fuzzers. Comparisons, which make fuzz traces as well,
# take planners five times as long. SAMPLE thins walks that `make test` does in full, and `make soak` many times. Leaks of
# drivers that are unloaded cannot be told from others.
asan="-O1 -g1 -DTLI_INVARIANTS -fno-omit-frame-pointer -fsanitize-coverage=inline-8bit-counters,pc-table \
    -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
step_asan() {
    local options="B=$out/asan CC=clang"
    SAMPLE=25 tests_with TESTS="$(programs $out/asan . | tr ' ' '\n' | grep -vE '_vk_(shim|overlap)' | paste -sd' ')" $options \
        RUNNER="$(fixed_addresses)" CFLAGS="$asan"
    SAMPLE=25 ASAN_OPTIONS=detect_leaks=0 tests_with TESTS="$(programs $out/asan '_vk_(shim|overlap)')" $options RUNNER="$(fixed_addresses)" CFLAGS="$asan"
}
step_tsan() {   # the programs that have threads
    local threaded
    threaded=$(grep -l pthread_create tests/test_*.c | grep -v _vk_ | paste -sd'|')
    [ -n "$threaded" ] || fail "no test has a thread"
    SAMPLE=25 TSAN_OPTIONS=halt_on_error=1 tests_with TESTS="$(programs $out/tsan "$threaded")" VULKAN=no B=$out/tsan CC=clang \
        RUNNER="$(fixed_addresses)" CFLAGS="-O1 -g -fsanitize=thread"
}

# The programs that need nothing of what an option drops, where its absence can show.
step_reduced() {
    local option pattern dir
    while read -r option pattern; do
        echo "$option"
        dir=$out/${option//,/-}
        SAMPLE=25 tests_with TESTS="$(programs $dir "$pattern")" VULKAN=no B=$dir CC=gcc CFLAGS="-O0 -D${option//,/ -D}"
    done <<< "TL_NO_PRECISION _5_plan|_10_|_11_|_12_graph|_12_run|_13_plan|_13_trace|_nn\.
TL_NO_OFFLOAD,TL_NO_ACCOUNTS _11_|_12_run|_nn\.
TL_NO_CODECS,TL_NO_ONLINE _5_plan|_12_graph|_13_plan|_nn\."
    echo "TL_ONLY_TABLES, TL_SMALL_SIZES"     # beside the full library, in files of their own; as for a device
    SAMPLE=25 tests_with TESTS="$(programs $out/tables _12_tables)" VULKAN=no B=$out/tables CC=gcc CFLAGS="-Os -fshort-enums"
}

# What depends on the machine beside decisions of planners, which step plans holds: on the width of words, and on the
# order of bytes, which shows in texts, keys, formats of numbers, codecs and kernels (test_5_code runs programs of the host).
portable='_[1235]_|_7_[aopq]|_1[0-3]_|_nn|_quantize'
bytewise='_[123]_|_5_(b|plan|r|s|t)|_7_[aopq]|_10_|_12_mixed|_13_|_nn'

# 32 bit with SSE: x87 would round intermediate results differently. Enums take a byte, as on many devices.
m32_build="-O1 -fshort-enums -m32 -msse2 -mfpmath=sse -idirafter /usr/include/x86_64-linux-gnu -I$cross/i386/usr/include"
step_m32() {
    local lib=$cross/i386/usr/lib/i386-linux-gnu
    SAMPLE=25 tests_with TESTS="$(programs $out/m32 "$portable")" B=$out/m32 VULKAN=no CC=gcc LDFLAGS="-L$lib -Wl,-rpath,$lib" \
        CFLAGS="$m32_build"
}
# Big endian, and char is unsigned. gcc computes floats as doubles here under -std=c99, -fexcess-precision=fast as floats.
s390x_cc=s390x-linux-gnu-gcc
s390x_build="-O1 -fexcess-precision=fast -I$cross/s390x/usr/include"
s390x_runner="qemu-s390x -L /usr/s390x-linux-gnu"
step_s390x() {
    local lib=$cross/s390x/usr/lib/s390x-linux-gnu
    TIMEOUT=900 SAMPLE=50 tests_with TESTS="$(programs $out/s390x "$bytewise")" B=$out/s390x VULKAN=no CC=$s390x_cc LDFLAGS="-L$lib -Wl,-rpath,$lib" \
        CFLAGS="$s390x_build" RUNNER="$s390x_runner"
}

# The same plans, to the last step, from every compiler, optimisation, word size and byte order: from the libraries of the
# steps above, and from clang -O3.
step_plans() {
    local name runner cc library build all=()
    make -s -j"$jobs" build/parts/libtl_strategy.so
    implementation_source tl_strategy.h
    make -s -j"$jobs" $out/m32/parts/libtl_strategy.so B=$out/m32 CC=gcc CFLAGS="$m32_build"
    make -s -j"$jobs" $out/s390x/parts/libtl_strategy.so B=$out/s390x CC=$s390x_cc CFLAGS="$s390x_build"
    [ -e $out/joined.o ] || joined_object
    while IFS='|' read -r name runner library cc; do
        all+=("$name")
        build=
        [ "$name" != clang-O3 ] || build="$cc -std=c99 -ffp-contract=off -I. -c -o $library $whole && "     # beside the slowest
        [[ $library = *.o ]] || library="-L$library -Wl,-rpath,$PWD/$library -ltl_strategy"
        echo "$build$cc -std=c99 -ffp-contract=off ${strict[*]} -o $out/plans-$name tests/plan_hash.c $library -lm -lpthread && $runner $out/plans-$name > $out/plans-$name.txt"
    done > $out/plans.list <<< "s390x|$s390x_runner|$out/s390x/parts|$s390x_cc $s390x_build
clang-O3||$out/plans-clang-O3.o|clang -O3
gcc-O2||build/parts|gcc -O2
m32||$out/m32/parts|gcc $m32_build
gcc-O3||$out/joined.o|gcc -O3"
    parallel < $out/plans.list
    for name in "${all[@]}"; do
        cmp $out/plans-gcc-O2.txt "$out/plans-$name.txt" || {
            diff $out/plans-gcc-O2.txt "$out/plans-$name.txt" | head
            fail "gcc -O2 (<) and $name (>) plan differently"
        }
    done
    [ -s $out/plans-gcc-O2.txt ] || fail "tests/plan_hash.c planned nothing"
    echo "$(wc -l < $out/plans-gcc-O2.txt) plans, the same from ${all[*]}"
}

# Print the command that compiles (and runs) one tests/build/*.c:  build_command FILE c|c++ COMPILER STANDARD FLAGS...
build_command() {
    local file=$1 lang=$2 cc=$3 std=$4 object
    object=$out/$(basename "$file" .c)-$cc-$std
    if grep -q '\bmain(' "$file"; then
        echo "$cc -x $lang -std=$std ${strict[*]} ${*:5} $file $(header_line "$file" flags) -o $object && $object >/dev/null"
    else
        echo "$cc -x $lang -std=$std ${strict[*]} ${*:5} $file $(header_line "$file" flags) -c -o $object.o"
    fi
}
# The same for a standard between others: it is read, and no code is made.
read_command() { echo "$3 -x $2 -std=$4 ${strict[*]} $1 $(header_line "$1" flags | sed 's/[^ ]*\.c\b//g; s/-l[a-z]*//g') -fsyntax-only"; }
step_headers() {
    local f lang std
    for f in $(build_tests); do
        lang=$(header_line "$f" lang)
        case $f in      # the others are about options, loaders and link orders: languages are held by these four
            */only_header.c | */static_impl.c | */vk_impl.c | */vk_only_header.c)
                build_command "$f" c gcc c99
                build_command "$f" c clang c17
                build_command "$f" c++ g++ c++11
                build_command "$f" c++ clang++ c++20
                for std in c11 c17; do read_command "$f" c gcc $std; done
                for std in c99 c11; do read_command "$f" c clang $std; done
                for std in 14 17 20; do read_command "$f" c++ g++ c++$std; done
                for std in 11 14 17; do read_command "$f" c++ clang++ c++$std; done ;;
            *)
                [ "$lang" = c++ ] || read_command "$f" c gcc c99
                [ "$lang" = c++ ] || build_command "$f" c clang c99      # in half of gcc's time
                [ "$lang" != c++ ] || build_command "$f" c++ clang++ c++20
                [ -n "$lang" ] && [ "$lang" != both ] || read_command "$f" c++ clang++ c++20 ;;
        esac
    done > $out/headers.list
    parallel < $out/headers.list 2> >(tee $out/headers.err >&2)
    echo "$(wc -l < $out/headers.list) builds without a warning"
    [ -n "$(vulkan_include)" ] || skip "tests/build/vk_*.c: $no_vulkan"
    ! grep -q '^SKIPPED' $out/headers.err || skip "runs of tests/build/vk_*.c: no Vulkan driver"
}

# Every option alone is built in step headers, by its build test. Here clang, which names what nobody uses, reads all of them
# together, all but one, sets in which each three take all combinations of set and not set, and those that set others with
# every one. The companion: all sets of what it asks for.
step_options() {
    local o other all flags i vulkan=
    mapfile -t all < <(options tl_strategy.h)
    [ ${#all[@]} -gt 0 ] || fail "no TL_NO_* option found"
    for o in "${all[@]}" "${table_options[@]}"; do
        grep -lq "define $o\b" tests/build/*.c || fail "$o: no tests/build/*.c defines it"
    done
    implementation_source tl_strategy.h
    sed 's/tl_strategy/tl_vk_backend/' $whole > $out/implementation_vk.c
    python3 tests/option_sets.py "${all[@]}" > $out/options.sets
    for ((i = 0; i < ${#all[@]}; i++)); do
        other=("${all[@]:0:i}" "${all[@]:i+1}")
        echo "${other[*]}"
    done >> $out/options.sets
    echo "${all[*]}" >> $out/options.sets
    for o in "${table_options[@]}"; do
        for flags in "${all[@]}" "${all[*]}"; do echo "$o $flags"; done
    done >> $out/options.sets
    sed "s|^|$whole |" $out/options.sets > $out/options.list
    [ -z "$(vulkan_include)" ] || vulkan=$(options tl_vk_backend.h | paste -sd' ')
    [ -z "$vulkan" ] || python3 tests/option_sets.py $vulkan | sed "s|^|$out/implementation_vk.c |" >> $out/options.list
    sed "s/ \(TL_\)/ -D\1/g; s|^|clang -std=c99 ${strict[*]} -I. -fsyntax-only |" $out/options.list | parallel
    echo "${all[*]}: $(wc -l < $out/options.list) sets"
}

# Names of functions and sentences of errors, cut where a value or a name goes.
error_texts() {
    sed -n '/^#define TLI_[A-Z]*_RULES(X)\|^#define TLI_FUNCTIONS(X)/,/^$/p' src/01_core/error_functions.c src/01_core/error_rules.c | grep -oE '"([^"\\]|\\.)*"' |
        sed 's/^"//; s/"$//; s/%[s01]/\n/g' | grep -E '.{10}' | sed 's/^tl_[a-z0-9_]*$/"&"/' | sort -u
}

# With every option set: only <stddef.h> and <stdint.h>, no symbol but the four that compilers emit by themselves. Without
# the text of errors, none of it is among the strings.
step_freestanding() {
    local cc opt o other included
    error_texts > $out/error_texts
    [ "$(wc -l < $out/error_texts)" -gt 500 ] || fail "src/01_core/error_*.c: their lists are not found"
    implementation_source tl_strategy.h
    for cc in gcc clang; do     # of the text, -O0 removes least
        echo "$cc -std=c99 -O0 -I. -DNDEBUG -DTL_NO_ERROR_TEXT -S -o $out/no_error_text-$cc.s $whole"
        for opt in -O0 -Os -O2 -O3 "-Os -DTL_SMALL_SIZES"; do
            echo "$cc -std=c99 $opt ${strict[*]} -ffreestanding -fno-stack-protector -c -o '$out/freestanding-$cc${opt// /}.o' tests/build/freestanding.c"
        done
    done | parallel
    for o in $out/freestanding-*.o; do
        other=$(nm -u "$o" | awk '{print $2}' | grep -vE "$allowed" || true)
        [ -z "$other" ] || fail "$o needs other symbols:"$'\n'"$other"
    done
    for cc in gcc clang; do
        other=$(grep -E '^\s*\.(string|ascii|asciz)' $out/no_error_text-$cc.s | grep -Ff $out/error_texts || true)
        [ -z "$other" ] || fail "$cc: TL_NO_ERROR_TEXT leaves text of errors:"$'\n'"$other"
    done
    for o in $(options tl_strategy.h); do
        grep -q "define $o\b" tests/build/freestanding.c || fail "tests/build/freestanding.c does not set $o"
    done
    included=$(gcc -std=c99 -ffreestanding -M tests/build/freestanding.c | tr ' \\' '\n\n' | grep '\.h$' | xargs -n 1 basename |
        grep -vE '^(tl_strategy|stddef|stdint|stdint-gcc)\.h$' || true)
    [ -z "$included" ] || fail "includes more than <stddef.h> and <stdint.h>:"$'\n'"$included"
    included=$(gcc -std=c99 -M tests/build/no_stdio.c | grep -o '[^ ]*/stdio\.h' || true)
    [ -z "$included" ] || fail "TL_NO_STDIO still includes $included"
    echo "gcc and clang, -O0 to -O3: no symbol but memcpy memset memmove memcmp"
}

# No reserved identifiers, no global but tl_*, nothing global under TL_STRATEGY_STATIC, no state, no function of Vulkan
# that a linker would look for.
check_symbols() {
    local header=$1 object=$out/names.o bad
    implementation_source "$header"
    parallel <<< "clang++ -x c++ -std=c++11 -Wreserved-identifier -Werror -I. -fsyntax-only $whole
clang -std=c99 -Wreserved-identifier -Werror -I. -fsyntax-only $whole
gcc -std=c99 -fno-pie -I. -c -o $object $whole
gcc -std=c99 -DTL_STRATEGY_STATIC -I. -c -o $object.static $whole"
    bad=$(nm -g --defined-only $object | awk '$3 !~ /^tl_/' || true)
    [ -z "$bad" ] || fail "$header: global names that do not begin with tl_:"$'\n'"$bad"
    bad=$(nm $object | awk '$2 ~ /^[bBdDcC]$/' || true)
    [ -z "$bad" ] || fail "$header: writable data, so state outside the arguments:"$'\n'"$bad"
    bad=$(nm -u $object | grep ' vk' || true)
    [ -z "$bad" ] || fail "$header: needs functions of Vulkan when it is linked:"$'\n'"$bad"
    bad=$(nm -g --defined-only $object.static)
    [ -z "$bad" ] || fail "$header: TL_STRATEGY_STATIC leaves global names:"$'\n'"$bad"
}
check_text() {      # HEADER, and a pattern of the macros that it may define
    local bad
    bad=$(grep -nE '^ *# *define ' "$1" | grep -vE "define ($2)" || true)
    [ -z "$bad" ] || fail "$1: macros that do not begin with $2:"$'\n'"$bad"
    bad=$(LC_ALL=C grep -nP '[^\x00-\x7F]|\t| +$|.{113,}' "$1" | head || true)
    [ -z "$bad" ] || fail "$1: non-ASCII, tab, space at the end, or more than 112 columns:"$'\n'"$bad"
}
# What is called is ours, of the language or of its library: any other name may be a macro of the caller. A member or a variable that
# holds a function is called as (env->log)(...). And no variable is a word that Qt takes away.
check_calls() {
    local bad known
    known='ssize_t|S_ISREG|if|else|for|while|switch|return|sizeof|defined|offsetof|assert|X|void|int|u?int(8|16|32|64)_t|U?INT(32|64)_C|VkResult'
    known+='|malloc|free|mem(cpy|set|move|cmp)|str(len|cmp)|f(open|read|write|close|flush|error)|remove|rename|dl(open|close|sym)'
    known+='|FreeLibrary|LoadLibraryA|GetProcAddress|QueryPerformance(Counter|Frequency)|clock_gettime'
    bad=$(awk '/^\/\*/ {text = 1} !text; text {print ""} /\*\/$/ {text = 0}' "$1" |
        sed -E 's:"([^"\\]|\\.)*":"":g; s|//.*||; s|/\*.*\*/||; s|^ *#.*||' |
        grep -nP "(->|\.) *\w+ *\(|\b(?!(tl_|tli_|TL_|TLI_|_)|($known)\b)[A-Za-z]\w*\b *\(|\b(slots|signals|emit|foreach|forever)\b" || true)
    [ -z "$bad" ] || fail "$1: calls that a macro of the caller may take: write (x->name)(...)"$'\n'"$bad"
}
step_names() {
    local header
    for header in $(headers); do check_symbols "$header"; done
    for header in tl_*.h; do check_calls "$header"; done
    check_text tl_strategy.h 'TL_|TLI_|TLDEF\b|WIN32_LEAN_AND_MEAN$'
    # its synopsis, and what Windows and Vulkan are told before they are included
    check_text tl_vk_backend.h 'TL_VK_|TLI_VK_|TL_EXPERIMENTAL\b|TL_STRATEGY_IMPLEMENTATION\b|VK_NO_PROTOTYPES$|WIN32_LEAN_AND_MEAN$'
    echo "no reserved, foreign or stateful names"
    [ -n "$(vulkan_include)" ] || skip "symbols of tl_vk_backend.h: $no_vulkan"
}

# CONTENTS, public banners and implementation banners must be the same list; the first two say the same about a section.
# `grep -n '^// \[' tl_strategy.h` is the map of the header: it finds banners and nothing else.
step_contents() {
    local header contents public private other
    for header in tl_*.h; do
        other=$(grep -n '^// \[' "$header" | grep -vE '^[0-9]+:// \[[0-9]+\] [A-Z]+ (-- .+|\(implementation\))$' || true)
        [ -z "$other" ] || fail "$header: begins like a banner, and is none: $other"
        contents=$(awk '/^#ifndef TL_[A-Z_]*_H$/ {exit} /CONTENTS/ {on = 1} on' "$header" |
            sed -nE 's|^[ /*]*(\[[0-9]+\]) ([A-Z]+) +(-- )?(.*)|\1 \2 -- \4|p' | sed 's/ *$//')
        public=$(sed -nE 's|^// (\[[0-9]+\] [A-Z]+ -- .*)|\1|p' "$header")
        private=$(sed -nE 's|^// (\[[0-9]+\] [A-Z]+) \(implementation\)$|\1|p' "$header")
        [ -n "$contents" ] || fail "$header: no CONTENTS"
        diff <(echo "$contents") <(echo "$public") ||
            fail "$header: CONTENTS (<) and the banners of the public half (>) differ"
        diff <(sed 's/ -- .*//' <<<"$public") <(echo "$private") ||
            fail "$header: the banners of the public half (<) and of the implementation (>) differ"
        echo "$header: ${private//$'\n'/ }"
    done
}

# Parts use what stands above them, recursion is listed, functions fit on a screen. First the step is held to its own rules.
step_calls() {
    python3 tests/calls.py --self-test
    python3 tests/calls.py
}

# The words of compute shaders, in every file that has some, are those of their sources.
step_shaders() {
    local f
    for f in $(grep -lFx -- '// -- words: made by make shaders --' examples/*.[ch] tests/*.c tests/support/*.[ch] tests/bench/*.c || true); do
        make -pn | grep '^SHADERS ' | tr ' ' '\n' | grep -q "^${f#./}," || fail "$f: the Makefile's SHADERS lacks it"
    done
    make -s shaders MODE=check > $out/shaders.log 2>&1 || { cat $out/shaders.log; fail "make shaders"; }
    cat $out/shaders.log
    ! grep -q '^SKIPPED' $out/shaders.log || skip "words of shaders are not compared"
}

# What Windows has otherwise shows when it is read. Vulkan's headers in a folder of their own: what lies beside them is of
# another system.
step_mingw() {
    local f vulkan include=$out/vulkan_include
    vulkan=$(vulkan_include)
    rm -rf $include
    mkdir -p $include
    if [ -n "$vulkan" ]; then
        for f in vulkan vk_video volk.h volk.c; do ln -s "$vulkan/$f" $include/$f; done
    fi
    for f in $(build_tests); do
        [ "$(header_line "$f" lang)" != c++ ] || continue
        echo "x86_64-w64-mingw32-gcc -std=c99 -fsyntax-only ${strict[*]} -isystem $include $f $(header_line "$f" flags | sed 's/[^ ]*\.c\b//g')"
    done | parallel
    echo "no warning"
    [ -n "$vulkan" ] || skip "tests/build/vk_*.c with mingw: $no_vulkan"
}

step_cppcheck() {
    local examples
    mapfile -t examples < <(examples)
    implementation tl_strategy.h $out/cppcheck.o gcc -std=c99
    cppcheck --quiet --std=c99 --language=c --platform=unix64 --enable=warning,performance,portability --inline-suppr \
        --suppress=missingIncludeSystem --suppress=preprocessorErrorDirective --error-exitcode=1 -I. -j "$jobs" \
        -DNDEBUG -DTL_STRATEGY_IMPLEMENTATION $whole "${examples[@]}"
    echo "cppcheck found nothing"
    make -s build/tl_plan WERROR=-Werror
    bash tests/misra.sh
}

# The implementation by itself, and examples without it.
step_tidy() {
    local f flags
    implementation tl_strategy.h $out/tidy.o gcc -std=c99
    for f in $whole $(examples); do
        flags="-DTL_STRATEGY_IMPLEMENTATION_DONE -DTL_VK_BACKEND_IMPLEMENTATION_DONE"
        [ "$f" != $whole ] || flags=
        echo "clang-tidy --quiet --warnings-as-errors='*' $f -- -std=c99 -I. $flags 2>$out/tidy-$(basename "$f").err || { grep -v 'warnings generated' $out/tidy-$(basename "$f").err; exit 1; }"
    done | parallel
    echo "clang-tidy found nothing"
}

# All is explained, in the words of the glossary, and shown somewhere.
step_surface() { python3 tests/api.py --check; python3 tests/words.py; python3 tests/surface.py; }

step_readme() { bash tests/readme.sh; }

# No check runs benches, which are for quiet machines; they use examples and, some of them, private names: all are read.
read_benches() {
    local f log whole
    for f in $(printf '%s\n' tests/bench/*.c | with_vulkan); do
        whole="-DTL_STRATEGY_IMPLEMENTATION_DONE -DTL_VK_BACKEND_IMPLEMENTATION_DONE"
        grep -q 'examples/' "$f" && ! grep -qE 'tli_|support/' "$f" || whole=
        log=$out/$(basename "$f").err
        echo "gcc -std=c99 -Werror=implicit-function-declaration $whole -Iexamples -I. -fsyntax-only $f 2> $log || { cat $log; exit 1; }"
    done | parallel
}

# Run every example as its `// check:` line says; compare what it prints with tests/expected/NAME.txt where that exists.
step_examples() {
    local f name args code
    read_benches
    make -s -j"$jobs" examples WERROR=-Werror > $out/examples.log 2>&1 || { cat $out/examples.log; fail "make examples"; }
    for f in $(examples); do
        grep -q '^// check:' "$f" || fail "$f: no '// check: <arguments>' line in its first comment"
        name=$(basename "$f" .c)
        echo "code=0; timeout 300 build/$name $(header_line "$f" check) > $out/$name.out 2> $out/$name.err || code=\$?; echo \$code > $out/$name.code"
    done > $out/examples.list
    parallel < $out/examples.list
    for f in $(examples); do
        name=$(basename "$f" .c)
        args=$(header_line "$f" check)
        code=$(cat $out/"$name".code)
        [ "$code" = 0 ] || { tail -n 20 $out/"$name".out $out/"$name".err; fail "build/$name $args: exit $code"; }
        [ ! -e tests/expected/"$name".txt ] || diff -u tests/expected/"$name".txt $out/"$name".out ||
            fail "build/$name $args: output differs from tests/expected/$name.txt"
        echo "build/$name $args"
        ! grep -q '^SKIPPED' $out/"$name".out $out/"$name".err || skip "a part of $name: see $out/$name.out"
    done
    [ -n "$(vulkan_include)" ] || skip "examples on Vulkan: $no_vulkan"
}

# What the planner on the command line promises, and every 20th row of the reference (all of them: make soak).
step_tl_plan() {
    make -s build/tl_plan WERROR=-Werror
    python3 tests/tl_plan.py
    python3 tests/tiny_code.py
    python3 tests/replay_ranks.py --random 40
    make -s build/tl_pack WERROR=-Werror
    python3 tests/tl_pack.py
    python3 tests/reference.py --every 20
}

step_fuzz() {
    local end="-seed=1 -runs=${FUZZ_RUNS:-2000}"
    compgen -G 'tests/fuzz_*.c' >/dev/null || { echo "no fuzz targets"; return; }
    make -s -O -j"$jobs" fuzz FUZZ_END="$end" FUZZ_B=$out/asan FUZZ_FLAGS="$asan" WERROR=-Werror > $out/fuzz.log 2>&1 ||
        { grep -a -A 40 -E '^line |ERROR|: error:' $out/fuzz.log | head -n 100; fail "fuzzing"; }
    grep -E 'stat::number_of_executed_units' $out/fuzz.log
}

step_commands() { LINKED= bash tests/commands.sh; }
step_install()  { bash tests/install.sh; }
step_mixed()    { bash tests/mixed.sh; }
step_mpi()      { bash tests/mpi.sh; }
step_client()   { bash tests/client/run.sh 3; }
step_size()     { bash tests/size.sh; }
step_device() {
    make -s run-device run-rows
    B=$out bash tests/kernels/stack.sh
    B=$out bash tests/kernels/device.sh
}
step_torch() {      # the exporter, where some python3 has PyTorch, and the library on what it writes
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import torch' 2>/dev/null || continue
        "$python" tests/test_export_torch.py > $out/torch.log 2>&1 || { cat $out/torch.log; fail "the exporter's tests"; }
        grep -E '^(SKIPPED|Ran )' $out/torch.log
        gcc -std=c99 -O1 "${strict[@]}" -o $out/torch_plan tests/torch_plan.c -lm -lpthread
        make -s build/tl_plan WERROR=-Werror
        "$python" tests/torch_check.py $out/torch_plan build/tl_plan
        return
    done
    skip "tests/test_export_torch.py, tests/torch_check.py: no PyTorch (Debian: python3-torch)"
}
step_importers() {      # what needs a package of PyPI: make tiny-check
    make -s build/tl_plan build/tl_pack WERROR=-Werror
    python3 tests/test_importers.py > $out/importers.log 2>&1 || { cat $out/importers.log; fail "the importers' tests"; }
    grep -E '^Ran ' $out/importers.log
}
step_differential() {     # simulator and planner against independent ones; 10000 each, of states 100000: make soak
    python3 tests/differential_plan.py 3000
    python3 tests/replay_states.py 800
    python3 tests/differential_once.py 400
}

case ${1:-} in
--list) printf '%s\n' "${steps[@]}" "${beside[@]}"; exit ;;
--step) "step_$2"; exit ;;          # a process of its own, so that `set -e` holds in it
--beside)
    bash "$0" "$2" > $out/step_"$2".txt 2>&1 || { cat $out/step_"$2".txt >&2; exit 255; }    # which ends xargs
    sed '$d' $out/step_"$2".txt     # without the sum
    exit ;;
esac
SECONDS=0
# Processor seconds of all steps so far, in $processor.
processor=0
count_processor() {
    times > $out/times.$$       # not in a subshell, which has no children yet
    processor=$(tr 'ms' '  ' < $out/times.$$ | awk 'NR == 2 {print int($1 * 60 + $2 + $3 * 60 + $4)}')
    rm $out/times.$$
}
run_step() {
    local begin=$SECONDS used=$processor
    declare -F "step_$1" >/dev/null || fail "no step $1; tests/check.sh --list"
    printf '\n== %s\n' "$1"
    "$BASH" "$0" --step "$1" || fail $'\n'"FAILED in step $1; alone: tests/check.sh $1"
    count_processor
    echo "   $((SECONDS - begin)) s, $((processor - used)) of processors"
}
if [ $# != 0 ]; then steps=("$@") beside=(); fi
for s in "${steps[@]}"; do run_step "$s"; done
[ ${#beside[@]} = 0 ] || printf '%s\n' "${beside[@]}" | xargs -P 2 -n 1 "$BASH" "$0" --beside
count_processor
printf '\nall %d steps passed in %d s, %d of processors\n' $((${#steps[@]} + ${#beside[@]})) $SECONDS $processor
