#!/usr/bin/env bash
# Prove the README's commands on a bare Debian 12:  tests/chroot.sh [DIRECTORY]     (root; needs debootstrap)
#
#   DIRECTORY/bare   only git, make and gcc:  git clone, the two commands of a first plan, make run
#   DIRECTORY/full   a copy of it, with apt:  git clone, make deps test, make run-vulkan
#   DIRECTORY/ci     a copy of it, with apt:  git clone, .ci/run
#
# The commit checked out now is cloned; `bare` is kept, so the next time is quick. DIRECTORY is /var/tmp/tl_strategy_chroot
# unless given; MIRROR=... names a Debian mirror, without it that of this machine's apt is taken. STEPS="bare full ci"
# chooses; without it the first two.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-/var/tmp/tl_strategy_chroot}
steps=${STEPS:-bare full}
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 == "bookworm" && !n++ {print $1}' || true)}
[ -n "$mirror" ] || { echo "tests/chroot.sh: MIRROR=<URL of a Debian mirror> is needed, apt names none of bookworm" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "tests/chroot.sh: needs root" >&2; exit 1; }
[ -z "$(git -C "$repository" status --porcelain)" ] || echo "NOTICE: uncommitted changes are not in the clone"

unmount() {
    local root
    for root in "$dir/bare" "$dir/full" "$dir/ci"; do
        umount -q "$root/source" "$root/dev" "$root/proc" 2>/dev/null || true
    done
}
trap unmount EXIT
enter() {   # enter ROOT COMMAND...
    local root=$1
    mkdir -p "$root/source"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount --bind "$repository" "$root/source"
    mount -o remount,bind,ro "$root/source"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" bash -euo pipefail -c "$2"
    umount "$root/source" "$root/dev" "$root/proc"
}
clone='git config --global --replace-all safe.directory "*"; rm -rf /root/project; git clone -q /source /root/project; cd /root/project'

mkdir -p "$dir"
if [ ! -e "$dir/bare/.complete" ]; then
    rm -rf --one-file-system "$dir/bare"
    debootstrap --variant=minbase --include=git,make,gcc,libc6-dev bookworm "$dir/bare" "$mirror"
    touch "$dir/bare/.complete"
fi

for step in $steps; do
    SECONDS=0
    case $step in
    bare)
        echo "== git, make, gcc only: a first plan, make run"
        enter "$dir/bare" "$clone"'; for x in clang python3 g++; do ! command -v $x || exit 1; done
            make build/tl_plan; build/tl_plan examples/residual.tlg --budget 20MB; make run; ls -l build/memory.svg build/trace.json; git status --short'
        ;;
    full)
        echo "== with apt: make deps test, make run-vulkan"
        rm -rf --one-file-system "$dir/full"
        cp -a "$dir/bare" "$dir/full"
        enter "$dir/full" "$clone"'; make deps test; make run-vulkan; git status --short'
        ;;
    ci)
        echo "== with apt: .ci/run"
        rm -rf --one-file-system "$dir/ci"
        cp -a "$dir/bare" "$dir/ci"
        enter "$dir/ci" "$clone"'; .ci/run; git status --short'
        ;;
    *) echo "unknown step $step" >&2; exit 1 ;;
    esac
    echo "   $step: $SECONDS s"
done
echo "the commands hold"
