# SPDX-License-Identifier: Apache-2.0
"""A small writer and parser of log files, made from docs/log-format.md alone.

It shares no code with the shim or the command, so that tests which use it prove the document, not
one program by itself. Two uses:

    log = Log(dir, pid=..., start_ticks=...)      # a log of one process, being written
    log.comm(ranks=8, rank=0, hash=7); log.site(op=0, bytes=43008, capture=1, index=0)
    log.record(site, start_ns, end_ns, run)       # as the GPU would
    log.close()

    parse(path) -> Parsed                          # header, notes, comms, sites, rings with records

`decode_run` writes the logs of a whole server: N ranks, a captured graph and eager calls. Run as a
program (`logmaker.py serve ...`), it stands in for a server under the shim: see serve().
"""
import json
import mmap
import os
import random
import struct
import sys
import time

HEADER = 4096
PAGE = 4096
SECTIONS = 48
NOTES, COMMS, SITES, RING = 1, 2, 3, 4
OPEN, CLOSED = 1, 2
CAPTURED, TIMED, PART, IN_PLACE, CHAINED, FILTERED = 1, 2, 4, 8, 16, 32
UNDEF = -2**31

NOTE_COMMAND, NOTE_PROFILE, NOTE_SETTING, NOTE_LIBRARY, NOTE_GPU, NOTE_ANCHOR = 2, 3, 4, 5, 6, 7
NOTE_WARNING, NOTE_RULE, NOTE_ASKED, NOTE_COMM_TEXT, NOTE_MISSED = 8, 9, 10, 11, 12

HEAD_FORMAT = "<8sIIIIQIIQQ40s64s16sQQQQQQ12Q"          # 320 bytes, then the sections
SECTION_FORMAT = "<IIQQQ"                               # 32 bytes
NOTE_FORMAT = "<IIIIQQ"                                 # 32 bytes
COMM_FORMAT = "<IIIiiiiiiiiiiiQQQQQQQQ64sQ8Q"           # 256 bytes
SITE_FORMAT = "<IIBBBBBBBBQQIIIiQQ"                     # 64 bytes
RECORD_FORMAT = "<QIIQII"                               # 32 bytes
assert struct.calcsize(HEAD_FORMAT) == 320 and struct.calcsize(SECTION_FORMAT) == 32
assert struct.calcsize(COMM_FORMAT) == 256 and struct.calcsize(SITE_FORMAT) == 64
assert struct.calcsize(RECORD_FORMAT) == 32

HEAD_NAMES = ("magic version byte_order header_bytes state file_bytes pid uid start_ticks pid_ns "
              "boot_id host shim_version created_ns closed_ns notes_lost comms_lost sites_lost "
              "settings_digest").split()
COMM_NAMES = ("state flags library parent rank ranks nodes device ring asked_min_ctas "
              "asked_max_ctas given_min_ctas given_max_ctas channels hash id_digest created_ns "
              "ready_ns ended_ns wrapped_calls missed_calls failed_calls name settings_digest").split()
SITE_NAMES = ("state comm op dtype redop flags algo proto channels warps count bytes capture index "
              "group root issued stamped").split()

OFF_STATE = 20
OFF_CLOSED = 184
OFF_NOTES_LOST = 192


def start_ticks_of(pid="self"):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[19])


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as f:
        return f.read().strip()


def pid_ns():
    return os.stat("/proc/self/ns/pid").st_ino


def log_name(host, pid, start, attempt=0):
    return f"{host}-{pid}-{start}" + (f"-{attempt}" if attempt else "") + ".ncclshim"


def page_up(n):
    return (n + PAGE - 1) // PAGE * PAGE


class Log:
    """A log of one process, in a shared mapping, written as the shim and the GPU would."""

    def __init__(self, folder, host="testhost", pid=None, start_ticks=None, boot=None, ns=None,
                 uid=None, capacity=1024, rings=(0,), notes_bytes=65536, comms=64, sites=4096,
                 command=("server", "--model", "x"), name=None, created_ns=None):
        self.pid = os.getpid() if pid is None else pid
        self.start_ticks = start_ticks_of() if start_ticks is None else start_ticks
        self.path = os.path.join(str(folder), name or log_name(host, self.pid, self.start_ticks))
        self.sections = {}
        self.capacity = capacity
        layout, offset = [], HEADER
        for kind, number, size in ([(NOTES, 0, notes_bytes), (COMMS, 0, comms * 256),
                                    (SITES, 0, sites * 64)]
                                   + [(RING, r, 4096 + 32 * capacity) for r in rings]):
            layout.append((kind, number, offset, size))
            offset += page_up(size)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.posix_fallocate(fd, 0, offset)
        self.m = mmap.mmap(fd, offset)
        os.close(fd)
        head = struct.pack(HEAD_FORMAT, b"NCCLSHIM", 1, 0x01020304, HEADER, OPEN, offset, self.pid,
                           os.getuid() if uid is None else uid, self.start_ticks,
                           pid_ns() if ns is None else ns, (boot or boot_id()).encode(),
                           host.encode(), b"0.1.0", created_ns or time.time_ns(), 0, 0, 0, 0, 0,
                           *[0] * 12)
        self.m[:320] = head
        for i, (kind, number, at, size) in enumerate(layout):
            struct.pack_into(SECTION_FORMAT, self.m, 320 + 32 * i, kind, number, at, size, 0)
            self.sections[(kind, number)] = (i, at, size)
        for r in rings:
            at = self.sections[(RING, r)][1]
            struct.pack_into("<IIiIQ", self.m, at, capacity, 32, r, 0, 0)
        self.counts = {r: 0 for r in rings}
        self.runs = {}
        self.issued = {}
        if command:
            self.note(NOTE_COMMAND, text=b"".join(a.encode() + b"\0" for a in command))

    # -- tables ------------------------------------------------------------------------------
    def _take(self, kind, amount):
        i, at, size = self.sections[(kind, 0)]
        where = 320 + 32 * i + 24
        used, = struct.unpack_from("<Q", self.m, where)
        struct.pack_into("<Q", self.m, where, used + amount)
        return used, at, size

    def note(self, kind, a=0, b=0, value=0, body=b"", text=b""):
        if isinstance(text, str):
            text = text.encode() + b"\0"
        bytes_ = 32 + len(body) + len(text)
        used, at, size = self._take(NOTES, (bytes_ + 63) // 64 * 64)
        if used + bytes_ > size:
            self.bump(OFF_NOTES_LOST)
            return None
        struct.pack_into("<I", self.m, at + used + 4, bytes_)
        struct.pack_into("<IIQQ", self.m, at + used + 8, a, b, value, time.time_ns())
        self.m[at + used + 32:at + used + bytes_] = body + text
        struct.pack_into("<I", self.m, at + used, kind)
        return at + used

    def gpu(self, ring=0, name="Simulated GPU", stamp=2, floor_ns=900, step_ns=32, device=0):
        body = struct.pack("<IIIIII16s16sQ", device, 90, stamp, step_ns, floor_ns, floor_ns + 300,
                           b"0000:1b:00.0", bytes(range(16)), 80 << 30)
        return self.note(NOTE_GPU, a=ring, body=body, text=name)

    def bump(self, offset, by=1):
        old, = struct.unpack_from("<Q", self.m, offset)
        struct.pack_into("<Q", self.m, offset, old + by)

    def comm(self, ranks=1, rank=0, ring=0, hash=0, id_digest=0, name="", state=2, flags=0,
             device=0, parent=-1, wrapped_calls=0, missed_calls=0, nodes=1, channels=-1, library=0):
        n, at, _ = self._take(COMMS, 1)
        now = time.time_ns()
        struct.pack_into(COMM_FORMAT, self.m, at + 256 * n, 0, flags, library, parent, rank, ranks,
                         nodes, device, ring, UNDEF, UNDEF, UNDEF, UNDEF, channels, hash, id_digest,
                         now, now, 0, wrapped_calls, missed_calls, 0, name.encode()[:63], 0, *[0] * 8)
        struct.pack_into("<I", self.m, at + 256 * n, state)
        return n

    def comm_calls(self, comm, wrapped, by_nccl=None):
        at = self.sections[(COMMS, 0)][1] + 256 * comm
        struct.pack_into("<QQ", self.m, at + 96, wrapped, by_nccl if by_nccl is not None else 0)
        if by_nccl is not None:
            flags, = struct.unpack_from("<I", self.m, at + 4)
            struct.pack_into("<I", self.m, at + 4, flags | 64)

    def site(self, comm=0, op=0, bytes=43008, dtype=9, redop=0, count=None, capture=0, index=0,
             timed=True, algo=1, proto=0, channels=2, group=0, root=-1, flags=0, warps=0):
        n, at, _ = self._take(SITES, 1)
        flags |= (CAPTURED if capture else 0) | (TIMED if timed else 0)
        struct.pack_into(SITE_FORMAT, self.m, at + 64 * n, 0, comm, op, dtype, redop, flags, algo,
                         proto, channels, warps, count if count is not None else bytes // 2, bytes,
                         capture, index, group, root, 1 if capture else 0,
                         1 if capture and timed else 0)
        struct.pack_into("<I", self.m, at + 64 * n, 1)
        return n

    def issue(self, site, times=1, stamped=None):
        at = self.sections[(SITES, 0)][1] + 64 * site
        issued, was = struct.unpack_from("<QQ", self.m, at + 48)
        struct.pack_into("<QQ", self.m, at + 48, issued + times,
                         was + (times if stamped is None else stamped))

    # -- records -----------------------------------------------------------------------------
    def record(self, site, start_ns, end_ns, run=None, ring=0, torn=None):
        """One record. torn = 1 or 2: only that half is written; 'none': a slot taken, not filled."""
        n = self.counts[ring]
        self.counts[ring] = n + 1
        if run is None:
            run = self.runs.get(site, 0)
        self.runs[site] = run + 1
        base = self.sections[(RING, ring)][1]
        at = base + 4096 + 32 * (n % self.capacity)
        sequence = (n + 1) & 0xffffffff
        if n % self.capacity == 0:
            struct.pack_into("<Q", self.m, base + 16, n)
        if torn in (None, 1):
            self.m[at:at + 16] = struct.pack("<QII", start_ns, site, sequence)
        if torn in (None, 2):
            self.m[at + 16:at + 32] = struct.pack("<QII", end_ns, run & 0xffffffff, sequence)
        return n

    def close(self):
        struct.pack_into("<Q", self.m, OFF_CLOSED, time.time_ns())
        struct.pack_into("<I", self.m, OFF_STATE, CLOSED)
        self.m.flush()

    def drop(self):
        self.m.close()


class Parsed:
    pass


def text_of(b):
    return b.split(b"\0", 1)[0].decode("utf-8", "replace")


def parse(path):
    """Read a log by the document. Raises ValueError for what is none."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < HEADER or data[:8] != b"NCCLSHIM":
        raise ValueError("not a log")
    p = Parsed()
    p.head = dict(zip(HEAD_NAMES, struct.unpack_from(HEAD_FORMAT, data, 0)))
    if p.head["version"] != 1 or p.head["byte_order"] != 0x01020304:
        raise ValueError("another version or byte order")
    if len(data) < p.head["file_bytes"]:
        raise ValueError("cut")
    for key in ("boot_id", "host", "shim_version"):
        p.head[key] = text_of(p.head[key])
    p.notes, p.comms, p.sites, p.rings = [], [], [], {}
    sections = [struct.unpack_from(SECTION_FORMAT, data, 320 + 32 * i) for i in range(SECTIONS)]
    sections = [s for s in sections if s[0]]
    for i, (kind, number, at, size, used) in enumerate(sections):
        last = all(s[0] != kind for s in sections[i + 1:])
        if kind == NOTES:
            p.notes += parse_notes(data, at, min(used, size))
        elif kind == COMMS:
            n = min(used, size // 256) if last else size // 256
            for k in range(n):
                c = dict(zip(COMM_NAMES, struct.unpack_from(COMM_FORMAT, data, at + 256 * k)))
                c["name"] = text_of(c["name"])
                p.comms.append(c)
        elif kind == SITES:
            n = min(used, size // 64) if last else size // 64
            for k in range(n):
                p.sites.append(dict(zip(SITE_NAMES,
                                        struct.unpack_from(SITE_FORMAT, data, at + 64 * k))))
        elif kind == RING:
            p.rings[number] = parse_ring(data, at)
    return p


def parse_notes(data, at, used):
    notes, here = [], 0
    while here + 32 <= used:
        kind, size, a, b, value, when = struct.unpack_from(NOTE_FORMAT, data, at + here)
        if kind == 0 and size == 0:
            here += 64
            continue
        if size < 32 or here + size > used + 64:
            raise ValueError("a note of %d bytes" % size)
        if kind > 1:
            notes.append(dict(type=kind, a=a, b=b, value=value, time_ns=when,
                              body=data[at + here + 32:at + here + size]))
        here += (size + 63) // 64 * 64
    return notes


def parse_ring(data, at):
    capacity, record_bytes, device, _, lap = struct.unpack_from("<IIiIQ", data, at)
    found, half = {}, 0
    for slot in range(capacity):
        start, site, s1, end, run, s2 = struct.unpack_from(RECORD_FORMAT, data,
                                                           at + 4096 + 32 * slot)
        for low in (lap + slot, lap - capacity + slot, lap + capacity + slot):
            if low >= 0 and s1 == s2 == (low + 1) & 0xffffffff:
                found[low] = (site, start, end, run)
                break
        else:
            half += s1 != s2
    return dict(capacity=capacity, record_bytes=record_bytes, device=device, lap=lap,
                records=dict(sorted(found.items())), half=half)


def decode_run(folder, ranks=8, calls=122, replays=20, eager=5, capacity=4096, straggler=None,
               late_ns=200_000, base_ns=200_000, gap_ns=15_000, simulated=True, seed=1,
               start_ns=None, close=True, pids=None, bytes=43008, hash=0xC0FFEE, comm_name="tp",
               host="testhost", settings=(), **kw):
    """Logs of `ranks` processes of one server on one host; returns the list of Log.

    Rank `straggler` comes `late_ns` late to each call: all others wait for it, so that their calls
    take longer and its own do not.
    """
    rng = random.Random(seed)
    now = start_ns or time.time_ns()
    logs = []
    for r in range(ranks):
        pid = pids[r] if pids else 100000 + r
        log = Log(folder, host=host, pid=pid, start_ticks=1000 + r if not pids else None,
                  capacity=capacity, **kw)
        log.gpu(name="Simulated GPU" if simulated else "NVIDIA H200")
        log.note(NOTE_PROFILE, text=b"none\0\0")
        log.note(NOTE_LIBRARY, a=0, value=22809, text="/opt/nccl/libnccl.so.2")
        for name, value in settings:
            log.note(NOTE_SETTING, text=name.encode() + b"\0" + value.encode() + b"\0")
        log.comm(ranks=ranks, rank=r, hash=hash, id_digest=hash ^ 0xFFFF, name=comm_name,
                 wrapped_calls=calls + eager, channels=2, device=0)
        log.comm_calls(0, calls + eager, calls + eager)
        log.eager = log.site(bytes=4 << 20, proto=2)
        log.graph = [log.site(capture=1, index=i, bytes=bytes) for i in range(calls)]
        log.issue(log.eager, eager)
        logs.append(log)
    t = now

    def call(site_of, base):
        nonlocal t
        arrive = [t + rng.randrange(2000) + (late_ns if r == straggler else 0)
                  for r in range(ranks)]
        done = max(arrive) + int(base * rng.uniform(0.97, 1.05))
        for r, log in enumerate(logs):
            log.record(site_of(log), arrive[r], done + rng.randrange(300))
        t = done + gap_ns

    for _ in range(eager):
        call(lambda log: log.eager, 6 * base_ns)
    for _ in range(replays):
        for i in range(calls):
            call(lambda log, i=i: log.graph[i], base_ns)
        t += 1_000_000
    if close:
        for log in logs:
            log.close()
    return logs


def serve(argv):
    """Stand in for a server under the shim: write a log into $NCCLSHIM_LOG_DIR and act.

    arguments: --records N --rate R (a second; 0 = at once, then "ready" is said behind the last) --capacity C --calls K --exit CODE
    --kill SIGNAL (of itself) --linger SECONDS --graceful SECONDS (on SIGINT/SIGTERM: so much longer,
    then exit 0; each signal is told on stdout, all of them at the end) --no-close
    """
    import argparse
    import signal
    ap = argparse.ArgumentParser()
    for name, kind, default in (("records", int, 1000), ("rate", float, 0.0), ("capacity", int, 65536),
                                ("calls", int, 10), ("exit", int, 0), ("kill", int, 0),
                                ("linger", float, 0.0), ("graceful", float, -1.0),
                                ("wait", float, 0.0)):
        ap.add_argument("--" + name, type=kind, default=default)
    ap.add_argument("--no-close", action="store_true")
    ap.add_argument("--real-gpu", action="store_true")
    o = ap.parse_args(argv)
    log = Log(os.environ["NCCLSHIM_LOG_DIR"], host=os.uname().nodename, capacity=o.capacity)
    log.gpu(name="NVIDIA H200" if o.real_gpu else "Simulated GPU")
    log.comm(ranks=1, rank=0, hash=0xABC, wrapped_calls=o.calls)
    sites = [log.site(capture=1, index=i) for i in range(o.calls)]
    if o.graceful >= 0:
        # One byte for each signal, also for two so close that Python calls a handler once.
        count_out, count_in = os.pipe2(os.O_NONBLOCK)
        signal.set_wakeup_fd(count_in)

        def on_signal(number, frame):
            print(f"signal {number}", flush=True)
            if o.graceful > 0:
                time.sleep(o.graceful)
            log.close()
            print("received", *os.read(count_out, 100), flush=True)
            os._exit(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, on_signal)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda n, f: print(f"signal {n}", flush=True))
    if o.rate:
        print("ready", flush=True)
    begin = time.monotonic()
    t = time.time_ns()
    for n in range(o.records):
        log.record(sites[n % o.calls], t, t + 200_000)
        t += 215_000
        if o.rate and n % 16 == 0:
            ahead = begin + n / o.rate - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
    if not o.rate:
        print("ready", flush=True)
    end = time.monotonic() + o.linger
    while time.monotonic() < end:
        time.sleep(min(0.05, max(0.0, end - time.monotonic())))
    if o.kill:
        os.kill(os.getpid(), o.kill)
    if not o.no_close:
        log.close()
    sys.stdout.flush()
    os._exit(o.exit)


def dump(path):
    p = parse(path)
    print(json.dumps(dict(pid=p.head["pid"], state=p.head["state"], comms=len(p.comms),
                          sites=len(p.sites),
                          rings={k: len(r["records"]) for k, r in p.rings.items()})))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "serve":
        serve(sys.argv[2:])
    elif len(sys.argv) > 2 and sys.argv[1] == "dump":
        dump(sys.argv[2])
    else:
        sys.exit("usage: logmaker.py serve OPTION... | dump LOG")
