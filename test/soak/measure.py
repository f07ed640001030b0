# SPDX-License-Identifier: Apache-2.0
"""What a process holds, by /proc, from time to time: memory of its own, descriptors, mappings, children."""
import os
import re
import threading
import time


class Held:
    """Of one process at one moment."""

    def __init__(self, pid):
        status = read("/proc/%d/status" % pid)
        self.rss_kib = field(status, "VmRSS")
        self.own_kib = field(status, "RssAnon")  # without pages of files: the log, libraries
        self.descriptors = len(os.listdir("/proc/%d/fd" % pid))
        self.mappings = read("/proc/%d/maps" % pid).count("\n")
        if not self.mappings:
            raise ProcessLookupError("maps")  # its memory goes before its number
        self.zombies = sum(is_zombie(child) for child in children(pid))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def field(status, name):
    found = re.search(r"^%s:\s+(\d+)" % name, status, re.M)
    if not found:
        raise ProcessLookupError(name)  # a zombie has none
    return int(found.group(1))


def children(pid):
    try:
        return [int(word) for word in read("/proc/%d/task/%d/children" % (pid, pid)).split()]
    except OSError:
        return []


def is_zombie(pid):
    try:
        return read("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return False


def held(pid):
    """None once it is gone."""
    try:
        return Held(pid)
    except (OSError, ProcessLookupError):
        return None


def started_with(variable):
    """Processes in whose environment that stands, by its beginning: numbers are given anew too soon to tell."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/environ" % name, "rb") as f:
                    if b"\0" + variable.encode() in b"\0" + f.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


class Sampler(threading.Thread):
    """Samples a process until it ends, or `stop`."""

    def __init__(self, pid, interval_s):
        super().__init__(daemon=True)
        self.pid, self.interval_s = pid, interval_s
        self.samples = []
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            now = held(self.pid)
            if not now:
                return
            self.samples.append(now)
            self.over.wait(self.interval_s)

    def stop(self):
        self.over.set()
        self.join()


class Growth:
    """From when a process had found its place to its end. What it holds goes up and down by the way (a thread's
    stack, a file just being written), so each stretch counts with the least that it came down to."""

    def __init__(self, samples, settled):
        first = samples[int(len(samples) * settled):-2]  # the last ones may have seen it going
        self.enough = len(first) >= 8
        part = max(1, len(first) // 4)
        self.early, self.late = first[:part], first[-part:]

    def of(self, name):
        return tuple(min((getattr(s, name) for s in part), default=0) for part in (self.early, self.late))

    def text(self):
        own, rss = self.of("own_kib"), self.of("rss_kib")
        return ("%.2f -> %.2f MiB of its own, %.1f -> %.1f MiB resident, %d -> %d descriptors, %d -> %d mappings"
                % (own[0] / 1024, own[1] / 1024, rss[0] / 1024, rss[1] / 1024, *self.of("descriptors"),
                   *self.of("mappings")))

    def wrong(self, own_kib, descriptors_more=0, mappings=2):
        """Why it is too much, or ""."""
        own, descriptors, maps = self.of("own_kib"), self.of("descriptors"), self.of("mappings")
        if not self.enough:
            return "it ended too soon to be measured"
        if own[1] - own[0] > own_kib:
            return "memory grew by %d KiB, %d are allowed" % (own[1] - own[0], own_kib)
        if descriptors[1] - descriptors[0] > descriptors_more:
            return "descriptors grew"
        if maps[1] - maps[0] > mappings:
            return "mappings grew"
        return "children were left as zombies" if self.of("zombies")[1] else ""


def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise TimeoutError("waited %d s in vain" % seconds)
