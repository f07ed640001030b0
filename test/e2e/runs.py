# SPDX-License-Identifier: Apache-2.0
"""Runs made by logmaker, the same on every machine: what report, compare and export are tested on.

`MADE` holds one maker for each kind of run; `make(name, folder)` writes it. Golden texts in
test/golden are of these; NCCLSHIM_GOLDEN=update writes them anew (look at the difference before you
keep it).
"""
import json
import math
import os
import random
import struct
from pathlib import Path

import logmaker
from logmaker import Log

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
T0 = 1_700_000_000_000_000_000
BOOT = "00000000-1111-2222-3333-444444444444"
COMMON = dict(host="testhost", boot=BOOT, ns=1, created_ns=T0)
SIMPLE, LL, RING = 2, 0, 1


def gpu(log, number, name="NVIDIA H200", floor_ns=850, sm=90, stamp=2, ring=0):
    """A GPU of its own: distinct PCI address and uuid."""
    body = struct.pack("<IIIIII16s16sQ", number, sm, stamp, 32, floor_ns, floor_ns + 300,
                       b"0000:%02x:00.0" % (0x1b + number), bytes([number + 1] * 16), 80 << 30)
    log.note(logmaker.NOTE_GPU, a=ring, body=body, text=name)


def anchor(log, gpu_ns, host_ns, error_ns=2000, ring=0):
    log.note(logmaker.NOTE_ANCHOR, a=ring,
             body=struct.pack("<QQQQ", gpu_ns, host_ns - error_ns, host_ns + error_ns, 0))


def setting(log, name, value, origin=0, lost=0):
    log.note(logmaker.NOTE_SETTING, a=origin, b=lost,
             text=name.encode() + b"\0" + value.encode() + b"\0")


def asked(log, name, value=None):
    log.note(logmaker.NOTE_ASKED, b=1 if value is not None else 0,
             text=name.encode() + b"\0" + (value or "").encode() + b"\0")


def profile(log, name, path=""):
    log.note(logmaker.NOTE_PROFILE, text=name.encode() + b"\0" + path.encode() + b"\0")


def library(log, version=22809, path="/opt/nccl/lib/libnccl.so.2", number=0):
    log.note(logmaker.NOTE_LIBRARY, a=number, value=version, text=path)


def digest(log, value):
    struct.pack_into("<Q", log.m, 216, value)


def run_json(folder, **keys):
    keys = dict(dict(version=1, command=["python3", "serve.py", "--tp", "8"], profile="none",
                     profile_path="", started_ns=T0, ended_ns=T0 + 60 * 10**9, exit_code=0,
                     simulated=False, processes=[]), **keys)
    Path(folder, "run.json").write_text(json.dumps(keys))


class Server:
    """Ranks of one communicator on one host, each with a GPU whose clock is off by some amount."""

    def __init__(self, folder, ranks, calls=6, capacity=4096, seed=1, name="tp", op=0, bytes=43008,
                 gpu_name="NVIDIA H200", offsets=True, eager_bytes=4 << 20, timed=True, **kw):
        self.rng = random.Random(seed)
        self.ranks, self.calls, self.t = ranks, calls, T0
        self.logs, self.offset = [], []
        for r in range(ranks):
            log = Log(folder, pid=4000 + r, start_ticks=77 + r, capacity=capacity, **dict(COMMON, **kw))
            gpu(log, r, gpu_name)
            self.offset.append((r * 1_234_567 - 2_000_000) if offsets else 0)
            for host in (T0 - 10**6, T0 + 3600 * 10**9):
                anchor(log, host - self.offset[r], host)
            library(log)
            log.comm(ranks=ranks, rank=r, hash=0xBEEF, name=name, device=r)
            log.eager = log.site(op=op, bytes=eager_bytes, proto=SIMPLE, channels=8)
            log.graph = [log.site(op=op, bytes=bytes, capture=1, index=i) for i in range(calls)]
            self.logs.append(log)

    def call(self, site_of, base_ns, late=(), gap_ns=15_000):
        arrive = [self.t + self.rng.randrange(1500) + dict(late).get(r, 0) for r in range(self.ranks)]
        done = max(arrive) + int(base_ns * self.rng.uniform(0.95, 1.08))
        for r, log in enumerate(self.logs):
            off = self.offset[r]
            log.record(site_of(log), arrive[r] - off, done + self.rng.randrange(300) - off)
        self.t = done + gap_ns

    def eager(self, base_ns=400_000, **kw):
        for log in self.logs:
            log.issue(log.eager)
        self.call(lambda log: log.eager, base_ns, **kw)

    def replay(self, base_ns=50_000, **kw):
        for i in range(self.calls):
            self.call(lambda log, i=i: log.graph[i], base_ns, **kw)
        self.t += 500_000

    def counts(self, missed=0):
        """Every call is known of, and so many were not intercepted."""
        for log in self.logs:
            issued = self.calls + struct.unpack_from("<Q", log.m, log.sections[(3, 0)][1] + 48)[0]
            at = log.sections[(logmaker.COMMS, 0)][1]
            struct.pack_into("<QQ", log.m, at + 96, issued, missed)
            flags, = struct.unpack_from("<I", log.m, at + 4)
            struct.pack_into("<I", log.m, at + 4, flags | 64)

    def close(self):
        for log in self.logs:
            log.close()


def straggler(folder):
    """Eight ranks, simulated; rank 5 comes 30 us late to each captured call."""
    s = Server(folder, 8, gpu_name="Simulated GPU")
    for log in s.logs:
        profile(log, "fewer-channels", "/etc/ncclshim/profiles/fewer-channels.ini")
        setting(log, "NCCL_PROTO", "LL", 1)
        setting(log, "NCCL_MAX_NCHANNELS", "2", 1)
        setting(log, "NCCL_DEBUG", "WARN", 0)
        asked(log, "NCCL_PROTO", "LL")
        asked(log, "NCCL_MAX_NCHANNELS", "2")
        digest(log, 0xD16E57)
    for _ in range(4):
        s.eager()
        for _ in range(25):
            s.replay(late=[(5, 30_000)])
    s.counts()
    s.close()
    run_json(folder, simulated=True, profile="fewer-channels",
             profile_path="/etc/ncclshim/profiles/fewer-channels.ini")


def killed(folder):
    """Two ranks, killed in the middle of a replay: a torn record, calls without an end."""
    s = Server(folder, 2)
    for log in s.logs:
        profile(log, "none")
    for _ in range(30):
        s.replay()
    s.eager()
    for log, off in zip(s.logs, s.offset):
        log.issue(log.eager)                                  # queued, never ended
        log.record(log.graph[0], s.t - off, s.t - off + 50_000)
        log.record(log.graph[1], s.t - off + 60_000, s.t - off + 110_000, torn=1)
    run_json(folder, ended_ns=None, exit_code=None, signal=9)


def wrapped(folder):
    """Two ranks whose rings of 256 records were overwritten many times, without a collector."""
    s = Server(folder, 2, capacity=256)
    s.eager()
    for _ in range(200):
        s.replay()
    s.close()


def mixed(folder):
    """Two ranks that agree on little: NCCL versions, settings, and calls that nobody intercepted."""
    s = Server(folder, 2)
    for r, log in enumerate(s.logs):
        profile(log, "fast" if r == 0 else "none")
        setting(log, "NCCL_PROTO", "LL" if r == 0 else "Simple", 1 if r == 0 else 0, lost=r)
        setting(log, "NCCL_GRAPH_MIXING_SUPPORT", "0")
        digest(log, 10 + r)
    library(s.logs[1], 23007, "/venv/lib/libnccl.so.2", 1)
    s.logs[1].note(logmaker.NOTE_MISSED, text="/venv/lib/libnccl.so.2")
    s.logs[1].note(logmaker.NOTE_WARNING, text="stream \x1b[31mred\x07 can't be stamped")
    for log in s.logs:
        at = log.sections[(2, 0)][1]
        flags, = struct.unpack_from("<I", log.m, at + 4)
        struct.pack_into("<I", log.m, at + 4, flags | 4)      # used eagerly and under capture
        struct.pack_into("<iiii", log.m, at + 36, -2**31, 4, -2**31, 16)  # asked max_ctas 4, given 16
        untimed = log.site(bytes=1024, capture=1, index=6, timed=False)
        group = log.site(op=10, bytes=2048, capture=0, group=1, root=2, algo=255, proto=255, channels=0)
        part = log.site(bytes=1024, capture=0, timed=False, group=1, flags=4, algo=255, proto=255,
                        channels=0)
        log.issue(group, 3)
        log.issue(part, 6, stamped=0)
        log.group, log.untimed = group, untimed
    counted = s.logs[0].comm(ranks=2, rank=0, ring=-1, hash=0xC0, name="pp", flags=1)
    only = s.logs[0].site(op=8, comm=counted, bytes=512, timed=False)
    s.logs[0].issue(only, 40, stamped=0)
    for _ in range(20):
        s.replay()
    for _ in range(3):
        s.call(lambda log: log.group, 30_000)
    s.counts(missed=994)
    s.close()


def empty(folder):
    """A process that made a communicator and no call."""
    log = Log(folder, pid=4000, start_ticks=77, **COMMON)
    gpu(log, 0)
    log.comm(ranks=1, rank=0, hash=1)
    log.close()


def broken(folder):
    """A log that somebody cut."""
    empty(folder)
    path = next(Path(folder).glob("*.ncclshim"))
    os.truncate(path, 9000)


MADE = dict(straggler=straggler, killed=killed, wrapped=wrapped, mixed=mixed, empty=empty, broken=broken)


def make(name, folder):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    MADE[name](folder)
    return folder


def check_golden(name, text):
    path = GOLDEN / name
    if os.environ.get("NCCLSHIM_GOLDEN") == "update":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), "%s is missing: NCCLSHIM_GOLDEN=update writes it" % path
    assert text == path.read_text()


# ---- noise as real servers have it -----------------------------------------------------------

def noise(rng, n, base=50_000, scale=1.0, sd=0.04, ar=0.7, drift=0.007, tail=0.02):
    """n times: neighbours alike, a random walk, a slow wave, bursts, a Pareto tail, 32 ns steps."""
    x = walk = 0.0
    burst, out = 0, []
    phase, period, wave = rng.random() * 6.28, n * rng.uniform(0.2, 2), rng.uniform(0, 0.005)
    fresh, step = sd * math.sqrt(1 - ar * ar), drift / math.sqrt(n)
    gauss, rand = rng.gauss, rng.random
    for i in range(n):
        x = ar * x + gauss(0, fresh)
        walk += gauss(0, step)
        t = base * scale * math.exp(x + walk + wave * math.sin(phase + 6.28 * i / period))
        if burst:
            burst -= 1
            t *= 1.3
        elif rand() < 0.0005:
            burst = rng.randrange(10, 60)
        if rand() < tail:
            t *= 1 + 0.3 * rng.paretovariate(1.5)
        out.append(int(t) // 32 * 32)
    return out


def one_kind(folder, times, bytes=43008, gap_ns=10_000):
    """A run of one process that made one kind of call, so many nanoseconds each."""
    Path(folder).mkdir(exist_ok=True)
    n = len(times)
    log = Log(folder, pid=1, start_ticks=1, capacity=1 << (n - 1).bit_length(), **COMMON)
    gpu(log, 0)
    log.comm(ranks=8, rank=0, hash=7, name="tp")
    log.site(capture=1, index=0, bytes=bytes)
    at = log.sections[(logmaker.RING, 0)][1] + 4096
    t, pieces, pack = T0, [], struct.Struct(logmaker.RECORD_FORMAT).pack
    for i, ns in enumerate(times):
        pieces.append(pack(t, 0, i + 1, t + ns, i, i + 1))
        t += ns + gap_ns
    log.m[at:at + 32 * n] = b"".join(pieces)
    log.close()
    log.drop()
    return folder
