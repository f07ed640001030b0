#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make test-compat: every NCCL version by every way in, each with the real library as far as it goes without a
GPU, and with the simulated one of that version for the rest. Prints the table, then what went wrong. Then the
NCCL wrappers of vLLM and SGLang.

BUILD names the build folder, NCCLSHIM_WHEELS where the real libraries are kept. Arguments: versions (all).
"""
import concurrent.futures
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cells  # noqa: E402
import servers  # noqa: E402
import wheels  # noqa: E402
from harness import build as builds  # noqa: E402
from harness.results import Results  # noqa: E402

EXPORTS = "exports"


def check_exports(version, folder):
    """The library exports what the table says this version has, and nothing that the table does not know."""
    table, have = cells.table(), cells.exports(folder / "lib" / "libnccl.so.2")
    names = {n for n in have if n.startswith("nccl") and not n.startswith("ncclResetDebugInit")}
    unknown = sorted(n for n in names if n not in table)
    # A helper may be exported before a header declares it; what the shim wraps must not be.
    ours = {n for n in cells.exports(os.path.join(BUILD, "libncclshim.so")) if n in table}
    early = sorted(n for n in names & ours if table[n] > cells.code(version))
    assert not unknown, "not in the table: " + " ".join(unknown)
    assert not early, "there before the table says: " + " ".join(early)
    missing = sorted(n for n in ours if table[n] <= cells.code(version) and n not in have)
    assert not missing, "the table says it has, and it lacks: " + " ".join(missing)


def one(kind, version, way, real):
    try:
        if kind == "real" and not real.get(version):
            return "none", "no real library"
        if way == EXPORTS:
            check_exports(version, real[version])
        elif kind == "real":
            second = real.get(cells.other(version))
            if way == "two copies" and not second:
                return "n/a", "no second real library"
            cells.real(BUILD, way, version, real[version] / "lib", second / "lib" if second else None)
        else:
            cells.simulated(BUILD, way, version)
        return "ok", ""
    except (AssertionError, OSError, subprocess.SubprocessError, ValueError, KeyError) as fault:
        return "FAIL", "%s: %s" % (type(fault).__name__, fault)


def show(versions, done):
    ways = cells.WAYS + [EXPORTS]
    print("\nNCCL by way in: real library / simulated one\n")
    print("%-8s" % "NCCL" + "".join("%-14s" % w for w in ways))
    for v in versions:
        row = []
        for w in ways:
            row.append(" / ".join(done[key][0] for key in (("real", v, w), ("simulated", v, w)) if key in done))
        print("%-8s" % v + "".join("%-14s" % text for text in row))
    print()


def main():
    versions = sys.argv[1:] or cells.VERSIONS
    results = Results()
    made = builds.Build(BUILD)
    fakes = {v for w in versions for v in (w, cells.other(w))}
    code, output = made.make(["all"] + [str(cells.fake_folder(BUILD, v) / "libnccl.so.2") for v in sorted(fakes)])
    if code != 0:
        results.fail("build", "make", output)
        return results.close()
    real, why = {}, {}
    for v in sorted(fakes):
        real[v], why[v] = wheels.get(v)
    keys = [(kind, v, w) for v in versions for w in cells.WAYS for kind in ("real", "simulated")]
    keys += [("real", v, EXPORTS) for v in versions]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda key: one(*key, real), keys))
    done = dict(zip(keys, answers))
    show(versions, done)
    for key, (state, text) in done.items():
        name = "%s %s, %s" % key
        if state == "ok":
            results.passed += 1
        elif state == "FAIL":
            results.fail(name, text.splitlines()[0][:600] if text else "failed")
        else:
            results.skip(name, why.get(key[1]) or text)
    if not sys.argv[1:]:
        servers.run(BUILD, results, real)
    return results.close()


if __name__ == "__main__":
    os.chdir(cells.ROOT)
    BUILD = os.environ.get("BUILD", "build")
    sys.exit(main())
