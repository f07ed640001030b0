# SPDX-License-Identifier: Apache-2.0
"""One cell of the table "NCCL version x way in": runs a client under the shim and checks what it saw.

real(...)       the real library, without a GPU: the wrapper was called (its address lies in the shim), and its
                answers are the library's own
simulated(...)  two ranks with communicators and all-reduces: right sums, and the log has every call

Both raise AssertionError with the reason.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
import logmaker  # noqa: E402

VERSIONS = ["2.14.3", "2.18.3", "2.21.5", "2.23.4", "2.26.5", "2.27.7", "2.28.9", "2.29.7", "2.30.7", "2.32.3"]
WAYS = ["linked", "ctypes name", "ctypes path", "dlsym handle", "RTLD_DEFAULT", "RTLD_NEXT", "RTLD_LOCAL", "two copies"]
ROUNDS = 5
FUNCTIONS = 10  # in struct calls
LIMIT_S = 60
MISSED_SINCE = 22803  # NCCL tells of every call from here on
COUNTED, TIMED = 64, 2


def code(version):
    major, minor, patch = map(int, version.split("."))
    return major * 10000 + minor * 100 + patch


def fake_folder(build, version):
    return Path(build) / "fake" / ("nccl-%d" % code(version))


def other(version):
    """Another version, for the second copy."""
    at = VERSIONS.index(version)
    return VERSIONS[at + 1 if at + 1 < len(VERSIONS) else at - 1]


def command(build, way, folder, second):
    compat = Path(build) / "compat"
    library = folder / "libnccl.so.2"
    python = [sys.executable, "-B", ROOT / "test" / "compat" / "by_ctypes.py"]
    return {
        "linked": [compat / "linked"],
        "ctypes name": python + ["libnccl.so.2", compat / "libcompat.so"],
        "ctypes path": python + [library, compat / "libcompat.so"],
        "dlsym handle": [compat / "way", "handle", library],
        "RTLD_DEFAULT": [compat / "way", "default", library],
        "RTLD_NEXT": [compat / "way", "next", compat / "plugin.so"],
        "RTLD_LOCAL": [compat / "way", "plugin", compat / "plugin.so"],
        "two copies": [compat / "way", "two", library, second / "libnccl.so.2"],
        # not in the table
        "through": [compat / "way", "through", compat / "plugin.so"],
        "deep": [compat / "way", "deep", compat / "plugin.so"],
        "strong": [compat / "way", "strong", library],
        "reopen": [compat / "way", "reopen", library],
        "closed first": [compat / "way", "closed-first", library],
    }[way]


def exports(library):
    """Names that a library defines for others."""
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line}


def table():
    """{name: first version code} of the shim's table of NCCL's functions."""
    text = (ROOT / "shim" / "preload" / "nccl_api.h").read_text()
    text = text[text.index("#define NCCLSHIM_API_OWN("):text.index("enum nccl_fn")]
    return {"nccl" + m[0]: int(m[1]) for m in re.findall(r"\b(?:OWN0?|PASS|PASS_TEXT|LEAVE)\(\s*(\w+),\s*(\d{5})", text)}


def absent(build, library):
    """What the shim exports and this library does not have."""
    have = exports(library)
    return sorted(n for n in exports(Path(build) / "libncclshim.so") if n.startswith("nccl") and n not in have)


def run(build, way, folder, second, logs, env, preload=True):
    full = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL", "LD_", "CUDA", "COMPAT"))}
    path = [str(folder)] + ([str(Path(build) / "fake")] if env.get("COMPAT_ROUNDS") else [])
    full.update(LD_LIBRARY_PATH=":".join(path), NCCLSHIM_LOG_DIR=str(logs), HOME=str(logs),
                COMPAT_ABSENT=",".join(absent(build, folder / "libnccl.so.2")), **env)
    if preload:
        full["LD_PRELOAD"] = str(Path(build) / "libncclshim.so")
    args = [str(a) for a in command(build, way, folder, second)]
    done = subprocess.run(args, env=full, capture_output=True, text=True, timeout=LIMIT_S, cwd=str(logs),
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, "exit code %d: %s %s" % (done.returncode, done.stdout[-500:], done.stderr[-800:])
    assert not done.stderr, "stderr: " + done.stderr[-800:]
    return done.stdout.splitlines()


class Folder:
    """A log folder on tmpfs that goes away."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="ncclshim-compat-", dir="/dev/shm")
        return Path(self.path)

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)


def check_answers(lines, versions):
    """Every function through the shim; the answers are those of these versions, one of each copy."""
    bad = [line for line in lines if line.startswith(("elsewhere", "found"))]
    assert not bad, "; ".join(bad[:4])
    assert lines.count("shim %d" % FUNCTIONS) == len(versions), lines
    assert [line for line in lines if line.startswith("version")] == ["version %d" % code(v) for v in versions], lines
    assert lines.count("id good") == lines.count("group good") == len(versions), lines
    texts = [line for line in lines if line.startswith("error ")]
    assert len(texts) == len(versions) and all("nvalid argument" in t for t in texts), texts


def real(build, way, version, folder, second=None):
    """`folder` holds this version's real library, `second` that of other(version)."""
    with Folder() as logs:
        lines = run(build, way, folder, second, logs, {})
        check_answers(lines, [version] + ([other(version)] if way == "two copies" else []))
        left = glob.glob(str(logs / "*.ncclshim"))
        # No communicator: nothing to write down. (NCCL that loads our plugins for a mere id may tell of itself.)
        for path in left:
            assert not logmaker.parse(path).comms, path
    if way == "ctypes name":
        assert any(line.startswith("ctypes %d invalid usage" % code(version)) for line in lines), lines


def check_log(path, build, versions):
    log = logmaker.parse(path)
    libraries = {n["a"]: (n["value"], n["body"].split(b"\0")[0].decode()) for n in log.notes
                 if n["type"] == logmaker.NOTE_LIBRARY}
    assert sorted(v for v, _ in libraries.values()) == sorted(code(v) for v in versions), libraries
    for value, text in libraries.values():
        assert os.path.realpath(text).startswith(os.path.realpath(str(Path(build) / "fake" / ("nccl-%d" % value)))), text
    assert len(log.comms) == 2 * len(versions), "%d communicators" % len(log.comms)
    for c in log.comms:
        assert (c["wrapped_calls"], c["missed_calls"], c["failed_calls"]) == (ROUNDS, 0, 0), c
        assert c["ranks"] == 2 and c["state"] == 4, c
        counted = bool(c["flags"] & COUNTED)
        # Each copy has plugins of its own; a second copy's doors may lead to the communicators of the first.
        assert counted == (libraries[c["library"]][0] >= MISSED_SINCE), (c, libraries)
    per_library = {k: sum(c["library"] == k for c in log.comms) for k in libraries}
    assert set(per_library.values()) == {2}, per_library
    count = {}
    for ring in log.rings.values():
        for site, start, end, _ in ring["records"].values():
            assert start < end and log.sites[site]["flags"] & TIMED
            count[log.sites[site]["comm"]] = count.get(log.sites[site]["comm"], 0) + 1
    assert count == {n: ROUNDS for n in range(len(log.comms))}, count


def simulated(build, way, version, second=None):
    folder, second = fake_folder(build, version), second or other(version)
    with Folder() as logs:
        lines = run(build, way, folder, fake_folder(build, second), logs, {"COMPAT_ROUNDS": str(ROUNDS)})
        versions = [version] + ([second] if way == "two copies" else [])
        check_answers(lines, versions)
        assert "sums good" in lines, lines
        found = glob.glob(str(logs / "*.ncclshim"))
        assert len(found) == 1, "%d logs" % len(found)
        check_log(found[0], build, versions)
