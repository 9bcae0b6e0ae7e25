#!/usr/bin/env bash
# Install everything that `make check` needs, on Debian 12. Does nothing where all of it is there already.
set -euo pipefail

packages=(
    gcc g++ make python3-minimal            # the tests, and the schedule checker they call
    libcmocka-dev                           # test harness
    clang libclang-rt-14-dev llvm           # second compiler, sanitizers, libFuzzer, coverage
    clang-tidy clang-format cppcheck        # linters
    cmake pkg-config                        # a foreign project that uses this one
    lib32gcc-12-dev libc6-dev-i386          # -m32 (gcc-multilib itself excludes the cross compilers)
    gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user     # big endian
    gcc-mingw-w64-x86-64                    # Windows
    gcc-arm-none-eabi                       # code size on Cortex-M
    qemu-system-arm                         # make run-device: a board with a Cortex-M4
    libvulkan-dev mesa-vulkan-drivers       # headers, loader, and a driver that computes on the host
    vulkan-validationlayers                 # every message of theirs fails a test
    glslang-tools spirv-tools               # make shaders
    libvulkan-volk-dev                      # the loader of many engines, beside which the backend must work
    openmpi-bin libopenmpi-dev              # make run-mpi: ranks that are processes
    python3-torch                           # the exporter's tests: 148 MB to fetch, 637 MB on disk
    espeak-ng                               # words for make tiny-check
)
# cmocka for the two foreign machines is unpacked beside the system, not installed: a foreign libc6 is installable only
# while its version equals the native one, which ends for s390x with the first security update.
cross=${CMOCKA_CROSS:-/usr/local/lib/cmocka}
foreign=(i386 s390x)

if ! command -v apt-get >/dev/null; then
    echo "make deps: no apt-get here; install by hand: ${packages[*]}" >&2
    exit 1
fi
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Use-Pty=0 "$@"
}
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for p in "${packages[@]}"; do installed "$p" || missing+=("$p"); done
unpack=()
for a in "${foreign[@]}"; do
    [ -e "$cross/$a/usr/include/cmocka.h" ] && compgen -G "$cross/$a/usr/lib/*/libcmocka.so.0" >/dev/null || unpack+=("$a")
done
if [ ${#missing[@]} -gt 0 ] || [ ${#unpack[@]} -gt 0 ]; then
    # An index that fails is no harm by itself: what cannot be fetched because of it fails below.
    apt update -o APT::Architectures="$(IFS=,; echo "$(dpkg --print-architecture),${foreign[*]}")" ||
        echo "make deps: apt-get update was incomplete, trying on" >&2
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]}"
    apt install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
for a in ${unpack[@]+"${unpack[@]}"}; do
    echo "unpacking cmocka for $a into $cross/$a"
    temp=$(mktemp -d)
    (cd "$temp" && apt-get -qq -o APT::Architectures="$(dpkg --print-architecture),$a" -o APT::Sandbox::User=root \
        -o Acquire::Retries=3 download "libcmocka0:$a" "libcmocka-dev:$a")
    as_root mkdir -p "$cross/$a"
    for d in "$temp"/*.deb; do as_root dpkg-deb -x "$d" "$cross/$a"; done
    rm -rf "$temp"
done
echo "make deps: all there"
