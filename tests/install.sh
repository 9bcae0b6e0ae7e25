#!/usr/bin/env bash
# A project that is not this one builds against it in every way that README names: a path, what `make install` lays out,
# pkg-config, CMake. Each way makes a program that plans, and all of them print the same. Nothing is optimized here: how the
# header is compiled is what differs, and how fast is held elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in cmake pkg-config readelf; do command -v $tool >/dev/null || fail "tests/install.sh: no $tool, see make deps"; done

# Two foreign programs: one has the implementation in it, the other one links it.
mkdir -p "$work/app"
cat > "$work/app/linked.c" <<'END'
#include <tl_strategy.h>
#include <stdio.h>
int main(void) {
    tl_chain_desc chain = { 0 };
    tl_checkpoint_config every4 = tl_checkpoint_uniform(4);
    tl_graph graph;
    tl_plan plan;
    chain.layer_count = 16;
    chain.input_bytes = 1;
    if (tl_version() != TL_VERSION || tl_add_chain(NULL, &graph, &chain)) return 1;
    if (tl_plan_checkpoints(NULL, &graph, &every4, &plan)) return 1;
    printf("%d.%d.%d: peak %d\n", TL_VERSION_MAJOR, TL_VERSION_MINOR, TL_VERSION_PATCH, (int)plan.peak_bytes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    return 0;
}
END
{ echo '#define TL_STRATEGY_IMPLEMENTATION'; cat "$work/app/linked.c"; } > "$work/app/whole.c"

ways=0 wanted=
try() {     # WAY PROGRAM
    local got
    got=$("$2") || fail "$1: the program fails"
    [ -n "$wanted" ] || wanted=$got
    [ "$got" = "$wanted" ] || fail "$1: prints '$got', not '$wanted'"
    ways=$((ways + 1))
    echo "$1"
}
cc=${CC:-cc}
strict=(-std=c99 -Wall -Wextra -Wpedantic -Wno-misleading-indentation -Werror)     # see Makefile

$cc "${strict[@]}" -I"$source" -o "$work/plain" "$work/app/whole.c"
try "cc -I<here>" "$work/plain"

# Everything below is built outside of the source, which stays as it is.
make -s lib B="$work/build" PREFIX="$work/prefix" CFLAGS=-O0 WERROR=-Werror
version=$(sed -n 's/^#define TL_VERSION_[A-Z]* \([0-9]*\).*/\1/p' tl_strategy.h | paste -sd.)
soname=$(readelf -d "$work/build/libtl_strategy.so" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
[ "$soname" = libtl_strategy.so.${version%.*} ] || [ "$soname" = libtl_strategy.so.${version%%.*} ] || fail "soname is '$soname'"
other=$(nm -D --defined-only "$work/build/libtl_strategy.so" | awk '$3 !~ /^tl_/' || true)
[ -z "$other" ] || fail "libtl_strategy.so: names that do not begin with tl_:"$'\n'"$other"

# From Python, through what is made of the declarations.
python3 tests/api.py --ctypes
cat > "$work/ctypes" <<END
#!/usr/bin/env python3
import os, sys
sys.path.insert(0, '$source/build')
os.environ['TL_STRATEGY_LIBRARY'] = '$work/build/libtl_strategy.so'
from tl_strategy import *
chain, every4, graph, plan = tl_chain_desc(layer_count=16, input_bytes=1), tl_checkpoint_uniform(4), tl_graph(), tl_plan()
if tl_add_chain(None, graph, chain) or tl_plan_checkpoints(None, graph, every4, plan): sys.exit(1)
print('%d.%d.%d: peak %d' % (tl_version() // 10000, tl_version() // 100 % 100, tl_version() % 100, plan.peak_bytes))
tl_free_plan(None, plan)
tl_free_graph(None, graph)
END
chmod +x "$work/ctypes"
try "Python's ctypes" "$work/ctypes"

make -s install B="$work/build" PREFIX="$work/prefix" CFLAGS=-O0
make -s install B="$work/build" PREFIX=/opt/tl DESTDIR="$work/stage" CFLAGS=-O0
[ "$(cd "$work/prefix" && find . | sort)" = "$(cd "$work/stage/opt/tl" && find . | sort)" ] || fail "DESTDIR and PREFIX install different files"
grep -q "^prefix=/opt/tl$" "$work/stage/opt/tl/lib/pkgconfig/tl_strategy.pc" || fail "tl_strategy.pc names DESTDIR"
for f in include/tl_strategy.h include/tl_vk_backend.h share/doc/tl_strategy/LICENSE; do
    [ -f "$work/prefix/$f" ] || fail "make install: no $f"
done

$cc "${strict[@]}" -I"$work/prefix/include" -o "$work/installed" "$work/app/whole.c"
try "make install, the header alone" "$work/installed"
$cc "${strict[@]}" -I"$work/prefix/include" -o "$work/archive" "$work/app/linked.c" "$work/prefix/lib/libtl_strategy.a" -lm -lpthread
try "make install, libtl_strategy.a" "$work/archive"

# pkg-config ROOT ARGUMENTS...
ask() { PKG_CONFIG_SYSROOT_DIR=$1 PKG_CONFIG_LIBDIR=$2 pkg-config "${@:3}" tl_strategy; }
[ "$(ask "" "$work/prefix/lib/pkgconfig" --modversion)" = "$version" ] || fail "tl_strategy.pc: not version $version"
grep -q '^License: ' "$work/prefix/lib/pkgconfig/tl_strategy.pc" || fail "tl_strategy.pc: no license"
# shellcheck disable=SC2046  # flags are words
$cc "${strict[@]}" -o "$work/shared" "$work/app/linked.c" $(ask "" "$work/prefix/lib/pkgconfig" --cflags --libs)
LD_LIBRARY_PATH=$work/prefix/lib try "pkg-config --cflags --libs, libtl_strategy.so" "$work/shared"
readelf -d "$work/shared" | grep -q "NEEDED.*\[$soname\]" || fail "the program does not ask for $soname"
# shellcheck disable=SC2046
$cc "${strict[@]}" -o "$work/staged" "$work/app/linked.c" $(ask "$work/stage" "$work/stage/opt/tl/lib/pkgconfig" --cflags --libs)
LD_LIBRARY_PATH=$work/stage/opt/tl/lib try "pkg-config below DESTDIR" "$work/staged"

# CMake: this folder as a part of the project, and what is installed.
cat > "$work/app/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(app C)
if(TL_SOURCE)
    add_subdirectory(${TL_SOURCE} tl)
else()
    find_package(tl_strategy ${TL_VERSION} REQUIRED)
endif()
add_executable(whole whole.c)
target_link_libraries(whole tl_strategy::header)
add_executable(linked linked.c)
target_link_libraries(linked tl_strategy::tl_strategy)
END
configure() { cmake -S "$1" -B "$2" -DCMAKE_C_FLAGS=-O0 "${@:3}" > "$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "cmake $*"; }; }
compile() { cmake --build "$1" > "$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "cmake --build"; }; }
configure "$work/app" "$work/sub" -DTL_SOURCE="$source"
compile "$work/sub"
try "add_subdirectory, tl_strategy::header" "$work/sub/whole"
try "add_subdirectory, tl_strategy::tl_strategy" "$work/sub/linked"
configure "$source" "$work/own" -DCMAKE_INSTALL_PREFIX="$work/cmake"
compile "$work/own"
cmake --install "$work/own" > "$work/cmake.log" || { cat "$work/cmake.log"; fail "cmake --install"; }
configure "$work/app" "$work/found" -DCMAKE_PREFIX_PATH="$work/cmake" -DTL_VERSION="$version"
compile "$work/found"
try "find_package, tl_strategy::header" "$work/found/whole"
try "find_package, tl_strategy::tl_strategy" "$work/found/linked"
echo "$ways ways, each prints $wanted"
