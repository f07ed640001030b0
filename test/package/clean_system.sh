#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: clean_system.sh PACKAGE.deb
# As root: a new system of Debian's most necessary packages (mmdebstrap); the package is installed there, an
# ordinary user runs the example server on the simulator and reads its report, the package is purged. What is
# on the disk then must be what was there before, but for dpkg's own books.
#
#   SUITE=bookworm   Debian's release
#   ROOT_TAR=FILE    a system made before (mmdebstrap --variant=minbase SUITE FILE); no network is needed where it
#                    has the libraries that the package depends on
set -eu
deb=$(realpath "$1")
work=$(mktemp -d)
root=$work/root

finish() {
    code=$?
    rm -rf "$work"
    [ $code = 0 ] && echo "test-package: passed" || echo "test-package: FAILED" >&2
    exit $code
}
trap finish EXIT
trap 'exit 1' INT TERM

say() { echo "test-package: $*"; }

# In process numbers and mounts of its own, which go away with it.
inside() {
    unshare --mount --pid --fork sh -c '
        mount -t proc proc "$0/proc" && mount -t tmpfs -o mode=1777 shm "$0/dev/shm" &&
        for d in null urandom; do : >>"$0/dev/$d" && mount --bind /dev/$d "$0/dev/$d" || exit 1; done
        chroot "$0" "$@"; code=$?
        left=$(find "$0/dev/shm" -type f)
        [ -z "$left" ] || { echo "left in shared memory: $left"; exit 1; }
        exit $code' "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# Every file with its mode, owner and contents, but for the books of dpkg and apt.
files() {
    cd "$root"
    set -- . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
        -o -path ./proc -o -path ./dev \) -prune -o
    find "$@" -printf '%p %M %u %l\n' | sort
    find "$@" -type f -exec md5sum {} + | sort -k 2
    cd "$OLDPWD"
}

say "a new system"
if [ -z "${ROOT_TAR:-}" ]; then
    ROOT_TAR=$work/root.tar
    mmdebstrap --quiet --variant=minbase "${SUITE:-bookworm}" "$ROOT_TAR"
fi
mkdir "$root"
tar -xf "$ROOT_TAR" -C "$root" --exclude='./dev/*'
mkdir -p "$root/dev/shm"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$deb" "$root/tmp/ncclshim.deb"
cp "$(dirname "$0")/as_user.sh" "$root/tmp/as_user.sh"

say "what it depends on"
needs=$(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g; s/,//g')
# shellcheck disable=SC2086 # words on purpose
inside dpkg-query -W $needs >/dev/null 2>&1 || {
    inside apt-get -qq update
    inside apt-get -qq install -y --no-install-recommends $needs >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
inside useradd --create-home tester
files >"$work/before"

say "installed"
inside dpkg -i /tmp/ncclshim.deb >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
say "an ordinary user"
inside su tester -c 'sh /tmp/as_user.sh'
say "purged"
inside dpkg --purge ncclshim >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
files >"$work/after"
diff "$work/before" "$work/after" || { say "the lines above came (>) or went (<)"; exit 1; }
