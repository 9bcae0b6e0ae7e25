#!/usr/bin/env bash
# Break the parts on purpose, one line at a time, and see a test turn red each time.
#
#   tests/mutate.sh                 every mutation of tests/mutations.txt
#   MUTATE=regex tests/mutate.sh    those with this in their test or expression; JOBS sets how many run side by side
#   CHANGED=1 tests/mutate.sh       those of parts that differ from the last commit
#
# tests/mutations.txt holds one mutation a line: <test> <tab> <sed flag, -E or -e> <tab> <sed expression>. The part that it
# changes is compiled and linked with the others as they are; where it changes declarations, the whole header is. Those of
# test_vk_image change examples/vk_image.h and its shaders, which are compiled anew (with Vulkan's headers, a driver, and what
# make shaders needs; SKIPPED without). One that changes nothing, does not compile or survives its test fails this script.
set -u
cd "$(dirname "$0")/.."
out=build/mutate
flags=(-std=c99 -ffp-contract=off -O1 -w)
rm -rf $out/*.txt $out/[0-9]* && mkdir -p $out

images=test_vk_image
tests=$(awk -F '\t' '!/^#/ && NF {print $1 " " $3}' tests/mutations.txt | grep -E "${MUTATE:-.}" | cut -d ' ' -f 1 | sort -u)
programs=$(for t in $tests; do [ "$t" = $images ] || [ ! -e "tests/$t.c" ] || echo "$out/$t"; done)
# shellcheck disable=SC2086  # a list of programs
make -s -j"${JOBS:-$(nproc)}" B=$out CFLAGS="-O1 -w" VULKAN=no $programs $out/parts/libtl_strategy.so || exit 1
# Why shaders cannot be compiled and run here; nothing where they can.
obstacle=
if grep -qx $images <<<"$tests"; then
    if ! echo '#include <vulkan/vulkan_core.h>' | ${CC:-cc} -x c -E - > /dev/null 2>&1; then obstacle="no <vulkan/vulkan_core.h>"
    elif ! command -v glslangValidator spirv-opt spirv-val spirv-dis > $out/log; then obstacle="no compiler of shaders"
    else make -s -j"${JOBS:-$(nproc)}" B=$out CFLAGS="-O1 -w" $out/$images || exit 1; fi
    [ -z "$obstacle" ] || { echo "SKIPPED mutations of $images: $obstacle"; [ "${STRICT:-0}" != 1 ] || exit 1; }
fi
parts=$(awk '{print $1}' src/ORDER)
kernels="nn_fixed.h nn_tiny.h nn_tiny_f32.h ranges.h tiny_model.h tiny_code.h"      # of examples/: test_nn_tiny, test_ranges, tiny_code
{
    for part in $parts; do echo "//@part $part"; cat "src/$part"; done
    for part in $kernels; do echo "//@part $part"; cat "examples/$part"; done
} > $out/joined
objects=$(for part in $parts; do [[ $part != *.c ]] || echo "$out/parts/${part%.c}.o"; done)
${CC:-cc} "${flags[@]}" -fPIC -DTL_STRATEGY_IMPLEMENTATION_DONE -I. \
    $(sed -n 's/^#define \(_[A-Z_]*\) *\([0-9L]*\).*/-D\1=\2/p' examples/tl_plan.c) -include build/parts/public/tl_strategy.h \
    -c -o $out/tl_plan.o examples/tl_plan.c || exit 1
changed=
[ -z "${CHANGED:-}" ] || changed=$(git diff --name-only HEAD -- src examples | sed 's|^src/||; s|^examples/||')

# The program of a mutation, in its directory; the reason where there is none.  build DIRECTORY TEST PARTS
build() {
    local dir=$1 test=$2 part new=() rest=$objects
    if [ "$test" = test_nn_tiny ]; then of_kernels "$dir"; return; fi
    if grep -qE '^(nn_tiny_f32|ranges|tiny_model|tiny_code)\.h$' <<<"$3"; then of_readers "$dir" "$test"; return; fi
    for part in $3; do
        awk -v part="$part" '/^\/\/@part / {on = $2 == part; next} on' "$dir/joined" > "$dir/part"
        awk -v declarations=1 -f tests/parts.awk "$dir/part" | cmp -s - "build/parts/$part.seen" || { whole "$dir" "$test"; return; }
        mkdir -p "$dir/$(dirname "$part")"
        { echo "#include \"build/parts/above/$part.h\""; awk -v part="src/$part" -f tests/parts.awk "$dir/part"; } > "$dir/$part"
        ${CC:-cc} "${flags[@]}" -fPIC -fno-semantic-interposition -Ibuild/parts/public -I. -DTL_STRATEGY_IMPLEMENTATION \
            $([ "$test" != test_1_core ] || echo -DTLI_NO_BUILTINS) -c -o "$dir/$part.o" "$dir/$part" 2> "$dir/log" || { echo "NO BUILD"; return; }
        new+=("$dir/$part.o")
        rest=$(grep -vxF "$out/parts/${part%.c}.o" <<<"$rest")
    done
    if [ "$test" = test_12_tables ] || [ "$test" = test_1_core ]; then whole "$dir" "$test"; return; fi
    # shellcheck disable=SC2086  # a list of objects
    ${CC:-cc} -shared -o "$dir/libtl_strategy.so" "${new[@]}" $rest -lm -lpthread || { echo "NO BUILD"; return; }
    if [ -e "tests/$test.py" ]; then
        ${CC:-cc} -o "$dir/run" $out/tl_plan.o -L"$dir" -Wl,-rpath,"$PWD/$dir" -ltl_strategy -lm -lpthread || echo "NO BUILD"
    else
        cp "$out/$test" "$dir/run"
    fi
}

mutated_examples() {    # directory
    local part
    mkdir -p "$1/examples"
    for part in $kernels; do
        awk -v part="$part" '/^\/\/@part / {on = $2 == part; next} on' "$1/joined" > "$1/examples/$part"
    done
}

# The program of examples' kernels, which sees no part.
of_kernels() {
    local dir=$1
    mutated_examples "$dir"
    ${CC:-cc} "${flags[@]}" -I"$dir/examples" -o "$dir/run" tests/test_nn_tiny.c -lcmocka -lm 2> "$dir/log" || echo "NO BUILD"
}

# tl_plan with what it reads and writes networks by, or the test of a reader: on the parts as they are.
of_readers() {
    local dir=$1 source=tests/$2.c
    mutated_examples "$dir"
    [ ! -e "tests/$2.py" ] || source=examples/tl_plan.c
    cp "$source" "$dir/examples/source.c"
    # shellcheck disable=SC2046  # flags
    ${CC:-cc} "${flags[@]}" -DTL_STRATEGY_IMPLEMENTATION_DONE $(sed -n 's/^#define \(_[A-Z_]*\) *\([0-9L]*\).*/-D\1=\2/p' "$source") \
        -include build/parts/public/tl_strategy.h -I"$dir/examples" -Iexamples -Itests -I. -o "$dir/run" "$dir/examples/source.c" \
        -L$out/parts -Wl,-rpath,"$PWD/$out/parts" -ltl_strategy -lcmocka -lm -lpthread 2> "$dir/log" || echo "NO BUILD"
}

# The same with the whole header: for what has declarations, options or builds of its own.
whole() {
    local dir=$1 test=$2 beside=()
    mkdir -p "$dir/tests" "$dir/examples"
    cp -r tests/support "$dir/tests/"
    cp tests/test_*.c "$dir/tests/"
    cp examples/*.[ch] "$dir/examples/"
    awk -v kernels="$kernels" '/^\/\/@part / {on = index(" " kernels " ", " " $2 " ") == 0; next} on' "$dir/joined" > "$dir/tl_strategy.h"
    [ "$test" != test_12_tables ] || beside=("$dir/tests/support/tables_run.c" "$dir/tests/support/small_run.c")
    local source=$dir/tests/$test.c
    [ ! -e "tests/$test.py" ] || source=$dir/examples/tl_plan.c
    ${CC:-cc} "${flags[@]}" -DTL_STRATEGY_STATIC -I"$dir/examples" -o "$dir/run" "$source" "${beside[@]}" -lcmocka -lm -lpthread \
        2> "$dir/log" || echo "NO BUILD"
}

has_changed_images() { [ -z "${CHANGED:-}" ] || [ -n "$(git diff --name-only HEAD -- examples/vk_image.h examples/shaders/image)" ]; }

# A mutation of vk_image.h or its shaders as a program in its directory; the reason where there is none.
build_images() {  # directory, flag, expression
    local dir=$1 file to changes=0
    mkdir -p "$dir/examples/image"
    for file in examples/vk_image.h examples/shaders/image/*; do
        to=$dir/${file/shaders\//}
        sed "$2" "$3" "$file" > "$to"
        cmp -s "$file" "$to" || changes=1
    done
    [ $changes = 1 ] || { echo UNCHANGED; return; }
    bash tests/shaders.sh write "$dir/examples/vk_image.h" "$PWD/$dir/examples/image" vk_image_ > "$dir/log" 2>&1 &&
        ${CC:-cc} "${flags[@]}" -include build/parts/public/tl_strategy.h -include build/parts/public/tl_vk_backend.h \
            -I"$dir/examples" -Ibuild/parts/public -I. -Iexamples -o "$dir/run" tests/$images.c -L$out/parts \
            -Wl,-rpath,"$PWD/$out/parts" -ltl_vk_backend -ltl_strategy -lcmocka -lm -ldl 2> "$dir/log" || echo "NO BUILD"
}

# The same of the parts.
build_parts() {  # directory, test, flag, expression
    local dir=$1 where
    sed "$3" "$4" $out/joined > "$dir/joined"
    where=$(awk -v new="$dir/joined" '/^\/\/@part / {part = $2} {getline other < new} $0 != other {print part}' $out/joined | sort -u)
    if [ -n "$changed" ] && ! grep -qxF -f <(tr ' ' '\n' <<<"$changed") <<<"$where"; then echo "NOT CHANGED HERE"; return; fi
    if [ -z "$where" ]; then echo UNCHANGED; else build "$dir" "$2" "$where"; fi
}

one() {  # number, test, flag, expression -> a line in $out/<number>.txt
    local dir=$out/$1 verdict run
    mkdir -p "$dir"
    if [ "$2" = $images ]; then verdict=$(build_images "$dir" "$3" "$4"); else verdict=$(build_parts "$dir" "$2" "$3" "$4"); fi
    [ "$verdict" != "NOT CHANGED HERE" ] || { rm -rf "$dir"; return 0; }
    if [ -z "$verdict" ]; then
        run=("$dir/run")
        [ ! -e "tests/$2.py" ] || run=(python3 "tests/$2.py" "$dir/run")
        [ ! -d "$dir/examples" ] || run=(env TINY_EXAMPLES="$PWD/$dir/examples" "${run[@]}")
        if LD_LIBRARY_PATH=$dir TL_SHARED=/nonexistent timeout 120 "${run[@]}" > "$dir/log" 2>&1; then verdict=SURVIVED; else verdict=red; fi
    fi
    printf '%-9s  %-18s  %s\n' "$verdict" "$2" "$4" > "$out/$1.txt"
    [ "$verdict" != red ] || rm -rf "$dir"
}

count=0
while IFS=$'\t' read -r test flag expression; do
    case "$test" in ''|'#'*) continue ;; esac
    [[ "$test $expression" =~ ${MUTATE:-.} ]] || continue
    [ "$test" != $images ] || { [ -z "$obstacle" ] && has_changed_images; } || continue
    count=$((count + 1))
    one "$(printf %03d $count)" "$test" "$flag" "$expression" &
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n; done
done < tests/mutations.txt
wait
shopt -s nullglob
results=($out/[0-9]*.txt)
[ ${#results[@]} -gt 0 ] || { echo "no mutation"; exit 1; }
cat "${results[@]}"
bad=$(grep -L '^red' "${results[@]}" | wc -l)
echo "${#results[@]} mutations, $((${#results[@]} - bad)) red, $bad not"
[ "$bad" -eq 0 ] && { [ -n "$changed${MUTATE:-}" ] || [ ${#results[@]} -ge 30 ]; }
