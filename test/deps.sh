#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: test/deps.sh run|test
# Installs the system packages that building (`run`) or building and testing (`test`) need, as root on a
# Debian-like machine; otherwise says which command would. Quiet when nothing is missing.
set -u
what=${1:-run}
cc=${CC:-cc}
python=${PYTHON:-/usr/bin/python3}
missing=

# Tools whose tests are skipped by name where they can't be had: never a reason to stop.
wanted=

has_header() {
    printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <%s>\n' "$1" |
        $cc ${CPPFLAGS:-} ${INIH_HOME:+-I"$INIH_HOME/include"} -E -x c - >/dev/null 2>&1
}

need() { # PACKAGE, then a command that succeeds when it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

want() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || wanted="$wanted $package"
}

has_fuzzer() {
    printf 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return p == 0 && n; }\n' |
        clang -fsanitize=fuzzer,address -x c - -o /dev/null
}

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Behind the others, when the list of packages is up to date.
install_wanted() {
    [ "$what" = test ] && [ "$(id -u)" = 0 ] && command -v apt-get || return 0
    # One that can't be had must not keep the others away.
    [ -z "$wanted" ] || install $wanted || { apt-get update; for package in $wanted; do install "$package"; done; }
    # libFuzzer lies in a package of its own, called after clang's version.
    if command -v clang && ! has_fuzzer; then
        version=$(clang -dumpversion)
        install "libclang-rt-${version%%.*}-dev"
    fi
    return 0
} >/dev/null 2>&1

need gcc $cc --version
need libinih-dev has_header ini.h
need libjansson-dev has_header jansson.h
need libncurses-dev has_header curses.h
need libzstd-dev has_header zstd.h
if [ "$what" = test ]; then
    need libcmocka-dev has_header cmocka.h
    need python3-pytest "$python" -c 'import pytest'
    need python3-pytest-xdist "$python" -c 'import xdist'
    want valgrind valgrind --version
    want clang clang --version
    want clang-tidy clang-tidy --version
    want cppcheck cppcheck --version
    want openmpi-bin mpirun --version
    want iproute2 ip -V
fi
[ -n "$missing" ] || { install_wanted; exit 0; }

command="apt-get update && apt-get install -y$missing"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "ncclshim: packages are missing; as root: $command" >&2
    exit 1
fi
echo "ncclshim: installing$missing"
log=$(mktemp)
# An old list is often good enough, and a mirror that does not answer need not stop us.
if install $missing >"$log" 2>&1 || { apt-get update >"$log" 2>&1 && install $missing >>"$log" 2>&1; }; then
    install_wanted
    rm -f "$log"
    exit 0
fi
tail -n 20 "$log" >&2
echo "ncclshim: could not install$missing (whole output in $log)" >&2
exit 1
