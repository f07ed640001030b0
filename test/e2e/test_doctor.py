# SPDX-License-Identifier: Apache-2.0
"""`ncclshim doctor` on made-up machines (a folder with /proc, /sys, libraries), and on real processes."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

import logmaker

PID = 4711
ACS_ON, ACS_OFF = 0x1d, 0x11


class Machine:
    """A root folder with what the doctor reads. Its processes have this machine's root as theirs."""

    def __init__(self, box):
        self.box = box
        self.root = box.dir / "machine"
        for d in ("proc/self", "sys/bus/pci/devices", "sys/kernel/iommu_groups", "dev/shm", "etc", "usr/lib",
                  "usr/bin", "home/me"):
            (self.root / d).mkdir(parents=True)
        self.write("proc/cpuinfo", "processor : 0\nvendor_id\t: AuthenticAMD\n")
        self.write("proc/cmdline", "quiet amd_iommu=on iommu=pt\n")
        self.of_process("self")

    def write(self, path, content):
        full = self.root / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content if isinstance(content, bytes) else content.encode())
        return full

    def of_process(self, pid):
        self.write("proc/%s/limits" % pid, "Limit  Soft Limit  Hard Limit  Units\n"
                   "Max locked memory         8388608              8388608              bytes\n")
        self.write("proc/%s/cgroup" % pid, "0::/user.slice\n")
        self.write("proc/%s/uid_map" % pid, "         0          0 4294967295\n")
        link = self.root / "proc" / str(pid) / "root"
        if not link.is_symlink():
            link.symlink_to(self.root)

    def process(self, pid=PID, parent=1, name="python3", maps=(), env=None, exe="/bin/true", secure=0):
        base = "proc/%d/" % pid
        self.write(base + "status", "Name:\t%s\nPPid:\t%d\nUid:\t%d\t0\n" % (name, parent, os.geteuid()))
        self.write(base + "stat", "%d (%s) S %d 1 1" % (pid, name, parent))
        self.write(base + "comm", name + "\n")
        self.write(base + "maps", "".join("7f00-7f01 r-xp 00000000 fd:01 12 %s%s\n" % (" " * 20, m) for m in maps))
        self.write(base + "environ", "".join("%s=%s\0" % i for i in (env or {}).items()))
        self.write(base + "auxv", struct.pack("<QQQQ", 23, secure, 0, 0))
        link = self.root / base / "exe"
        if not link.is_symlink():
            link.symlink_to(exe)
        self.of_process(pid)

    def bridge_and_gpu(self, acs=ACS_OFF, iommu="identity", readable=True):
        bridge = "sys/devices/pci0000:00/0000:00:01.0/"
        gpu = bridge + "0000:01:00.0/"
        config = bytearray(4096 if readable else 64)
        if readable:
            config[0x100:0x104] = struct.pack("<I", 0x0001 | 1 << 16 | 0x148 << 20)  # AER first
            config[0x148:0x150] = struct.pack("<HHHH", 0x000d, 1, 0x5f, acs)
        self.write(bridge + "config", bytes(config))
        self.write(gpu + "vendor", "0x10de\n")
        self.write(gpu + "class", "0x030000\n")
        self.write(gpu + "iommu_group/type", iommu + "\n")
        self.write("sys/kernel/iommu_groups/7/type", iommu + "\n")
        for name, target in (("0000:00:01.0", bridge), ("0000:01:00.0", gpu)):
            link = self.root / "sys/bus/pci/devices" / name
            if not link.is_symlink():
                link.symlink_to(self.root / target)

    def nccl(self, path, version="2.28.9"):
        return self.write(path, b"\x7fELF" + b"x" * 5000 + b"NCCL version %s+cuda13.0\0" % version.encode())

    def doctor(self, *args, env=None):
        merged = {"NCCLSHIM_DOCTOR_ROOT": self.root, "HOME": "/home/me", "PATH": "/usr/bin", "LD_LIBRARY_PATH": None,
                  "COLUMNS": "200", "VIRTUAL_ENV": None, "CONDA_PREFIX": None, "NCCL_HOME": None, **(env or {})}
        return self.box.cli("doctor", *args, env=merged)

    def findings(self, *args, code=None, env=None):
        done = self.doctor("--json", *args, env=env)
        assert done.code in ((0, 1) if code is None else (code,)), done
        return Findings(json.loads(done.out))


class Findings:
    def __init__(self, parsed):
        self.all = parsed["findings"]
        self.parsed = parsed

    def of(self, topic):
        found = [f for f in self.all if f["topic"] == topic]
        assert len(found) == 1, (topic, self.all)
        return found[0]

    def about(self, pid):
        found = [f for f in self.all if f["topic"] == "process" and f["facts"] and f["facts"]["pid"] == pid]
        assert len(found) == 1, (pid, self.all)
        return found[0]

    def level(self, topic):
        return self.of(topic)["level"]


@pytest.fixture
def machine(box):
    return Machine(box)


NVML = r"""
#include <string.h>
typedef void *device;
static long gpu[4];
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int e) { (void)e; return "made up"; }
int nvmlSystemGetDriverVersion(char *b, unsigned n) { (void)n; strcpy(b, "580.65.06"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 4; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d) { gpu[i] = i; *d = &gpu[i]; return 0; }
int nvmlDeviceGetName(device d, char *b, unsigned n) { (void)d; (void)n; strcpy(b, "NVIDIA RTX PRO 6000\033[31m"); return 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(device d, unsigned *n) { (void)d; *n = 1; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(device d, unsigned *n) { (void)d; *n = 5; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(device d, unsigned *n) { *n = *(long *)d == WIDE_BUT ? 8 : 16; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(device d, unsigned *n) { (void)d; *n = 16; return 0; }
int nvmlDeviceGetPerformanceState(device d, unsigned *n) { (void)d; *n = 8; return 0; }
int nvmlDeviceGetMigMode(device d, unsigned *a, unsigned *b) { (void)d; (void)a; (void)b; return 3; }
struct process { unsigned pid; unsigned long long memory; unsigned a, b; };
int nvmlDeviceGetComputeRunningProcesses_v2(device d, unsigned *n, struct process *p)
{
    *n = *(long *)d == 0;
    if (*n) p[0].pid = 4711;
    return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(device a, device b, unsigned *n)
{
    *n = *(long *)a / 2 == *(long *)b / 2 ? 10 : 50;
    return 0;
}
int nvmlDeviceGetP2PStatus(device a, device b, int what, int *s)
{
    (void)a; (void)b;
    *s = what == 2 ? 5 : P2P;
    return 0;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(device d, struct pci *p) { memset(p, 0, sizeof(*p)); strcpy(p->bus_id, "00000000:01:00.0");
    p->bus_id[10] += (char)*(long *)d; return 0; }
"""


def build_nvml(machine, wide_but=-1, p2p=0):
    source = machine.box.dir / "nvml.c"
    source.write_text(NVML.replace("WIDE_BUT", str(wide_but)))
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-DP2P=%d" % p2p, "-o",
                    machine.root / "usr/lib/libnvidia-ml.so.1", source], check=True, timeout=60)


SOUND = """\
ok      4 x NVIDIA RTX PRO 6000\\x1b[31m, driver 580.65.06
ok      peer access works between all 4 GPUs (6 of 6 pairs)
ok      6 pairs of GPUs: 2 through one PCIe switch, 4 between CPUs; no NVLink
ok      PCIe 5.0 x16 on every GPU
ok      NCCL_P2P_LEVEL is unset: NCCL uses peer access between all pairs
ok      processes compute on the GPUs: 4711 on GPU 0
ok      no bridge above the GPUs redirects peer traffic (ACS, 1 looked at)
ok      the IOMMU passes the GPUs' traffic through (identity)
ok      /dev/shm SIZE, SIZE free, 0 B of it ncclshim's logs
ok      locked memory is limited to 8 MiB; without RDMA nothing here needs more
ok      no container
ok      one NCCL on this machine: 2.28.9 /usr/local/cuda-13/lib64/libnccl.so.2 (CUDA)
ok      no configuration file of NCCL stands behind a profile
ok      no plugin of NCCL is named or found
ok      no process that has NCCL runs now
"""


def test_a_sound_machine_reads_as_in_the_golden_text(machine):
    build_nvml(machine)
    machine.bridge_and_gpu()
    machine.nccl("/usr/local/cuda-13/lib64/libnccl.so.2")
    done = machine.doctor()
    text = re.sub(r"/dev/shm \S+ \S+, \S+ \S+ free", "/dev/shm SIZE, SIZE free", done.out)
    assert text == SOUND
    assert done.code == 0 and done.err == ""


def test_a_bad_box_is_told_with_what_to_do(machine):
    build_nvml(machine, wide_but=2, p2p=1)
    machine.bridge_and_gpu(acs=ACS_ON, iommu="DMA-FQ")
    found = machine.findings(code=0)
    assert found.of("p2p")["text"] == ("peer access works between 0 of 6 pairs of GPUs: "
                                       "the chipset does not support it")
    assert found.of("pcie")["text"] == "PCIe: GPU 2 (00000000:03:00.0) has x8 of x16 lanes"
    assert found.of("acs")["facts"] == {"bridges": 1, "readable": 1, "redirecting": 1}
    assert "0000:00:01.0" in found.of("acs")["text"] and "BIOS" in found.of("acs")["advice"]
    assert found.level("iommu") == "warn" and "iommu=pt" in found.of("iommu")["advice"]
    assert found.of("iommu")["facts"]["kernel_command_line"] == "amd_iommu=on iommu=pt"
    assert found.level("nccl") == "unknown"


def test_what_only_root_may_read_is_unknown(machine):
    machine.bridge_and_gpu(readable=False, iommu="")
    found = machine.findings(code=0)
    assert found.level("gpus") == found.level("acs") == found.level("iommu") == "unknown"
    assert found.of("acs")["advice"] == "sudo ncclshim doctor"


def test_a_driver_without_nvml_is_a_container_that_lacks_a_part(machine):
    machine.write("sys/module/nvidia/version", "580.65.06\n")
    assert machine.findings(code=0).level("driver") == "warn"
    build_nvml(machine)
    machine.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64\n")
    machine.write("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n")
    found = machine.findings(code=0).of("driver")
    assert found["text"] == "kernel driver 580.65.06, open modules, uvm_disable_hmm is set"
    assert found["facts"] == {"version": "580.65.06", "open": True, "hmm_disabled": True}


def test_a_circle_in_a_configuration_space_ends(machine):
    machine.bridge_and_gpu()
    config = bytearray(4096)
    config[0x100:0x104] = struct.pack("<I", 0x0001 | 1 << 16 | 0x100 << 20)
    machine.write("sys/devices/pci0000:00/0000:00:01.0/config", bytes(config))
    assert machine.findings(code=0).level("acs") == "ok"


# ---- libraries, files, plugins ------------------------------------------------------------------


def cache(entries):
    """A loader's cache as ldconfig writes it."""
    strings, table = b"", b""
    at = 48 + 24 * len(entries)
    for name, path, flags in entries:
        table += struct.pack("<iIIIQ", flags, at + len(strings), at + len(strings) + len(name) + 1, 0, 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    return b"glibc-ld.so.cache1.1" + struct.pack("<II4x4x12x", len(entries), len(strings)) + table + strings


def test_every_place_that_a_library_may_come_from_is_looked_at(machine):
    wheel = "/opt/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
    machine.nccl(wheel, "2.27.3")
    machine.nccl("/usr/lib/libnccl.so.2.28.9", "2.28.9")
    (machine.root / "usr/lib/libnccl.so.2").symlink_to("libnccl.so.2.28.9")
    machine.nccl("/usr/lib32/libnccl.so.2")
    machine.nccl("/opt/a/libnccl.so.2", "2.30.7")
    machine.write("/opt/b/libnccl.so.2", b"no version in here")
    machine.write("/opt/venv/bin/python3", "")
    machine.write("/etc/ld.so.cache", cache([("libnccl.so.2", "/usr/lib/libnccl.so.2", 0x303),
                                             ("libnccl.so.2", "/usr/lib/libnccl.so.2.28.9", 0x303),
                                             ("libnccl.so.2", "/usr/lib32/libnccl.so.2", 0x003),
                                             ("libnccl-net.so", "/usr/lib/libnccl-net.so", 0x303)]))
    machine.write("/usr/lib/libnccl-net.so", "")
    found = machine.findings(code=0, env={"LD_LIBRARY_PATH": "/opt/a:/none:/opt/b", "PATH": "/none:/opt/venv/bin"})
    got = found.of("nccl")["facts"]["libraries"]
    assert [(b["path"].replace("/opt/venv/bin/../", "/opt/venv/"), b["version"], b["found_by"]) for b in got] == [
        ("/opt/a/libnccl.so.2", "2.30.7", "LD_LIBRARY_PATH"), ("/opt/b/libnccl.so.2", None, "LD_LIBRARY_PATH"),
        ("/usr/lib/libnccl.so.2", "2.28.9", "ld.so.cache"), (wheel, "2.27.3", "Python")]
    assert found.level("nccl") == "warn"
    assert found.of("plugins")["facts"]["plugins"] == ["/usr/lib/libnccl-net.so"]


@pytest.mark.parametrize("cut", [3, 20, 40, 50, 80, 100])
def test_a_broken_cache_of_the_loader_is_survived(machine, cut):
    whole = cache([("libnccl.so.2", "/usr/lib/libnccl.so.2", 0x303)])
    machine.write("/etc/ld.so.cache", whole[:cut])
    assert machine.findings(code=0).level("nccl") == "unknown"
    machine.write("/etc/ld.so.cache", whole[:20] + b"\xff" * (len(whole) - 20))
    assert machine.findings(code=0).level("nccl") == "unknown"
    for key, value in ((60_000_000, 60_000_001), (72, 60_000_000), (72, len(whole) - 1)):
        entry = struct.pack("<iII", 0x303, key, value)
        machine.write("/etc/ld.so.cache", whole[:48] + entry + whole[60:-1])
        assert machine.findings(code=0).level("nccl") == "unknown"


@pytest.mark.parametrize("before", range(31))
def test_a_version_across_two_blocks_of_the_file_is_found(machine, before):
    text = b"NCCL version 2.28.9+cuda13.0\0"
    machine.write("/opt/a/libnccl.so.2", b"x" * ((1 << 20) - before) + text + b"y" * 100)
    found = machine.findings(code=0, env={"LD_LIBRARY_PATH": "/opt/a"})
    assert found.of("nccl")["facts"]["libraries"][0]["version"] == "2.28.9"


def test_files_of_nccl_itself_are_told_with_lines_that_do_nothing(machine):
    machine.write("/home/me/.nccl.conf", "# mine\nNCCL_PROTO=LL\nNCCL_ALGO = Ring\n")
    machine.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    found = machine.findings(code=0)
    conf = [f for f in found.all if f["topic"] == "conf"]
    assert [f["text"] for f in conf] == [
        "/home/me/.nccl.conf sets, where neither the shell nor a profile does: NCCL_PROTO=LL",
        "/etc/nccl.conf sets, where neither the shell nor a profile does: NCCL_DEBUG=WARN"]
    assert found.of("conf-blank")["text"].startswith("/home/me/.nccl.conf, line 3:")


def test_a_small_shared_memory_and_rdma_without_locked_memory_are_told(machine):
    machine.write("sys/class/infiniband/mlx5_0/node_type", "1")
    assert machine.findings().level("memlock") == "warn"
    machine.write("proc/self/limits", "Max locked memory  unlimited unlimited bytes\n")
    assert machine.findings().level("memlock") == "ok"
    shutil.rmtree(machine.root / "dev/shm")
    assert machine.findings(code=1).level("shm") == "bad"


@pytest.mark.parametrize("cgroup,name", [("0::/kubepods.slice/x", "Kubernetes"), ("1:cpu:/docker/abc", "Docker"),
                                         ("0::/user.slice", None), ("0::/slurm/uid_0/job_1", "Slurm")])
def test_containers_show_by_their_cgroup(machine, cgroup, name):
    machine.write("proc/self/cgroup", cgroup + "\n")
    assert machine.findings(code=0).of("container")["facts"] == {"name": name, "user_namespace": False}


def test_a_user_namespace_is_told(machine):
    machine.write("proc/self/uid_map", "0 1000 1\n")
    assert machine.findings(code=0).of("container")["facts"]["user_namespace"] is True


# ---- processes: why the shim is not there -------------------------------------------------------

NCCL = "/opt/nccl/libnccl.so.2"
SHIM = "/opt/ncclshim/libncclshim.so"


def test_each_reason_for_a_missing_shim_is_named(machine):
    preload = {"LD_PRELOAD": SHIM}
    for why, process in [
            ("it was not started under the shim", {}),
            ("it was taken out on the way, or never there", {"env": {"NCCLSHIM_PROFILE": "x"}}),
            ("torch_memory_saver put itself", {"env": {"LD_PRELOAD": "/x/torch_memory_saver_hook_mode_preload.abi3.so"}}),
            ("is not there for this process", {"env": preload}),
            ("more privileges than its parent", {"env": preload, "secure": 1}),
            ("runs on musl", {"env": preload, "maps": [NCCL, "/lib/ld-musl-x86_64.so.1"]})]:
        shutil.rmtree(machine.root / "proc" / str(PID), ignore_errors=True)
        machine.process(**{"maps": [NCCL], **process})
        found = machine.findings("--pid", PID, code=1).about(PID)
        assert found["level"] == "bad" and why in found["text"], (why, found)
        assert found["facts"]["nccl"] == [NCCL] and found["facts"]["shim"] is False


def test_a_setuid_a_static_and_a_32_bit_program_are_told(machine, box):
    source = box.dir / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    program = box.dir / "program"
    cc = os.environ.get("CC", "cc")
    subprocess.run([cc, "-o", program, source], check=True, timeout=60)
    program.chmod(0o4755)
    machine.process(maps=[NCCL], exe=program, env={"LD_PRELOAD": SHIM})
    assert "set-user-id" in machine.findings("--pid", PID, code=1).about(PID)["text"]
    program.chmod(0o755)
    data = bytearray(program.read_bytes())
    data[4] = 1  # ELFCLASS32
    program.write_bytes(bytes(data))
    assert "32 bits" in machine.findings("--pid", PID, code=1).about(PID)["text"]
    program.unlink()
    if subprocess.run([cc, "-static", "-o", program, source], timeout=60, capture_output=True).returncode:
        pytest.skip("no static libc here")
    assert "linked statically" in machine.findings("--pid", PID, code=1).about(PID)["text"]


def test_children_have_a_line_each_and_strangers_none(machine):
    machine.process(100, maps=[SHIM])
    machine.process(101, parent=100, maps=[NCCL], name="worker 0)")
    machine.process(102, parent=101, maps=[])
    machine.process(200, maps=[NCCL])
    found = machine.findings("--pid", 100, code=1)
    assert [f["facts"]["pid"] for f in found.all if f["topic"] == "process"] == [100, 101, 102]
    assert found.about(100)["text"] == "process 100 python3: the shim is in it, NCCL is not"
    assert found.about(101)["text"].startswith("process 101 worker 0): has NCCL, and the shim is not in it")
    assert found.about(102)["text"] == "process 102 python3: uses neither NCCL nor a GPU"


@pytest.mark.parametrize("args, name", [
    (["/usr/bin/python3", "-m", "sglang.launch_server", "--tp", "8"], "python3 -m sglang.launch_server"),
    (["python3", "/srv/app/serve.py", "--port", "1"], "python3 serve.py"), (["python3", "-c", "import x"], "python3"),
    (["python3"], "python3"), (["VLLM::Worker_TP0"], "VLLM::Worker_TP0"), (["./build/decode_server", "-m", "x"], "decode_server"),
    (["sglang::scheduler_TP0 a/b"], "sglang::scheduler_TP0 a/b"), (["x" * 300], "x" * 63), ([], "python3"), (["", "y"], "python3")])
def test_a_process_has_the_name_that_its_user_knows(machine, args, name):
    machine.process(100, maps=[SHIM])
    machine.write("/proc/100/cmdline", "".join(a + "\0" for a in args))
    assert machine.findings("--pid", 100).about(100)["text"].startswith("process 100 %s: the shim" % name)


def test_without_a_pid_it_searches_for_those_that_should_have_a_log(machine):
    machine.process(100, maps=[NCCL])
    machine.process(101, maps=[NCCL], env={"LD_PRELOAD": SHIM})
    machine.process(102, maps=["/lib/libc.so.6"])
    found = machine.findings(code=1)
    assert [f["facts"]["pid"] for f in found.all if f["topic"] == "process"] == [100, 101]
    assert found.about(100)["level"] == "warn" and found.about(101)["level"] == "bad"


def test_several_copies_of_nccl_in_a_process_are_told(machine):
    machine.process(maps=[SHIM, NCCL, "/usr/lib/libnccl-net.so", NCCL, "/x/libnccl-pr2127.so.2.30.3 (deleted)"])
    found = machine.findings("--pid", PID)
    assert found.of("nccl-copies")["text"] == ("process %d has 2 copies of NCCL: %s, /x/libnccl-pr2127.so.2.30.3"
                                               % (PID, NCCL))


def test_nccl_inside_libtorch_is_found_by_its_strings(machine):
    machine.nccl("/x/torch/lib/libtorch_cuda.so", "2.21.5")
    machine.process(maps=[SHIM, "/x/torch/lib/libtorch_cuda.so"])
    assert "static" in machine.findings("--pid", PID).of("nccl-copies")["text"]


def test_the_environment_of_the_process_counts_and_not_ours(machine):
    machine.write("/srv/nccl.conf", "NCCL_PROTO=LL\n")
    machine.process(maps=[SHIM], env={"NCCL_CONF_FILE": "/srv/nccl.conf", "NCCL_TUNER_PLUGIN": "mine",
                                      "NCCL_PROFILER_PLUGIN": "libncclshim.so"})
    found = machine.findings("--pid", PID, env={"NCCL_NET_PLUGIN": "ours"})
    assert found.of("conf")["facts"]["file"] == "/srv/nccl.conf"
    assert found.of("plugins")["text"] == ("plugins of NCCL: NCCL_TUNER_PLUGIN=mine; "
                                           "the shim loads them behind itself")


def test_names_can_not_send_escapes_to_the_terminal(machine):
    machine.process(maps=[NCCL + "\x1b[2J"], name="a\x1b[31mb")
    done = machine.doctor("--pid", PID)
    assert "\x1b" not in done.out and "\\x1b[31m" in done.out
    assert "\x1b" not in machine.doctor("--pid", PID, "--json").out


# ---- is it being timed? -------------------------------------------------------------------------


def with_log(machine, **comm):
    folder = machine.root / "dev/shm/ncclshim-0"
    folder.mkdir()
    log = logmaker.Log(str(folder), pid=PID)
    log.gpu()
    log.comm(ranks=2, **comm)
    site = log.site()
    for i in range(5):
        log.record(site, 1000 * i + 1, 1000 * i + 900)
    path = "/dev/shm/ncclshim-0/" + next(p.name for p in folder.iterdir())
    machine.process(maps=[SHIM, NCCL, path])
    return log, site


def test_a_process_that_rests_is_ok_and_its_calls_are_counted(machine):
    with_log(machine)
    found = machine.findings("--pid", PID, code=0).about(PID)
    assert found["text"] == "process %d python3: rests: no collective in 500 ms, 5 so far" % PID
    assert found["facts"]["timed"] == 5 and found["facts"]["timed_in_moment"] == 0


def test_calls_that_nccl_told_of_and_no_wrapper_saw_are_told(machine):
    log, _ = with_log(machine)
    log.comm_calls(0, 5, by_nccl=7)
    found = machine.findings("--pid", PID, code=0).about(PID)
    assert found["level"] == "warn" and "7 calls were not intercepted" in found["text"]
    log.note(logmaker.NOTE_MISSED, text=NCCL.encode() + b"\0")
    found = machine.findings("--pid", PID, code=1).about(PID)
    assert found["level"] == "bad" and "no call comes through the shim" in found["text"]


def test_a_log_that_is_no_log_is_unknown(machine):
    with_log(machine)
    for p in (machine.root / "dev/shm/ncclshim-0").iterdir():
        p.write_bytes(b"not a log")
    assert machine.findings("--pid", PID, code=0).about(PID)["level"] == "unknown"


def test_a_server_under_the_shim_is_seen_being_timed_with_all_its_workers(box):
    server = box.start(box.command, "run", "-p", "none", "-o", "run", "--", box.server, "--hold", "--ranks", "2",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(60):
            done = box.cli("doctor", "--pid", server.pid, "--json")
            timed = [f for f in json.loads(done.out)["findings"] if "is being timed" in f["text"]]
            if len(timed) == 2:
                break
            time.sleep(0.5)
        assert len(timed) == 2 and done.code == 0, done
        assert all(f["facts"]["timed_in_moment"] > 0 and f["facts"]["shim"] for f in timed)
        assert "made no call" in done.out  # the server's first process
    finally:
        server.terminate()
        server.wait(30)


def test_a_server_in_a_container_is_seen_being_timed_from_the_host(box):
    script = ("mount -t tmpfs -o size=64m tmpfs /dev/shm && LD_PRELOAD=%s exec %s --ranks 2 --hold --limit 60"
              % (box.shim, box.server))
    inside = ["unshare", "-m", "--pid", "--fork", "--mount-proc"]
    if box.run(*inside, "true").code:
        pytest.skip("no namespaces here")
    outer = box.start(*inside, "sh", "-c", script, env={"NCCLSHIM_LOG_DIR": None}, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
    try:
        for _ in range(40):
            done = box.cli("doctor", "--pid", outer.pid)
            if done.out.count("is being timed") == 2:
                break
            time.sleep(0.5)
        assert done.out.count("is being timed") == 2 and done.code == 0, done
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.wait(30)


def test_a_real_server_without_the_shim_is_bad_when_it_is_asked_about(box):
    server = box.start(box.server, "--hold", "--ranks", "1", env={"NCCLSHIM_LOG_DIR": None},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        done = box.cli("doctor", "--pid", server.pid)
        assert done.code == 1 and "it was not started under the shim" in re.sub(r"\s+", " ", done.out)
    finally:
        server.terminate()
        server.wait(30)


# ---- the verb -----------------------------------------------------------------------------------


def test_a_server_log_is_read_beside_everything_else(machine, box):
    log = box.dir / "server.log"
    log.write_text("Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0'\n" * 2)
    found = machine.findings("--server-log", log, code=0)
    assert found.of("server-bypass") == {
        "level": "warn", "topic": "server-bypass",
        "text": "CUSTOM takes all-reduces of group tp:0 away from NCCL: they are neither timed nor tuned",
        "advice": "off: --disable-custom-all-reduce",
        "facts": {"subject": "CUSTOM", "group": "tp:0", "lines": 2}}


@pytest.mark.parametrize("args,word", [
    (["--pid", "999999"], "no process 999999"), (["--pid", "0"], "--pid: '0' is no number from 1"),
    (["--pid", "12x"], "--pid: '12x' is no number from 1"), (["--server-log", "/nonexistent"], "can't be opened"),
    (["--server-log", "/tmp"], "is a folder"), (["--sever-log", "x"], "--server-log"), (["x"], "'x' is no option; a process is named with --pid"),
    (["--pid"], "needs a value")])
def test_what_can_not_be_done_ends_with_code_2_and_one_line(machine, args, word):
    done = machine.doctor(*args)
    assert done.code == 2 and word in done.err and done.err.count("\n") == 1 and done.out == "", done


def test_the_json_counts_its_levels(machine):
    parsed = machine.findings(code=0).parsed
    assert set(parsed) == {"ok", "unknown", "warn", "bad", "findings"}
    for level in ("ok", "unknown", "warn", "bad"):
        assert parsed[level] == sum(f["level"] == level for f in parsed["findings"])
    assert all(set(f) == {"level", "topic", "text", "advice", "facts"} for f in parsed["findings"])


def test_every_topic_stands_in_the_documentation(box):
    import glob
    text = (box.root / "docs" / "doctor.md").read_text()
    source = "".join(open(p).read() for p in glob.glob(str(box.root / "shim/prove/doctor/doctor_*.c")))
    topics = set(re.findall(r'DOCTOR_(?:OK|UNKNOWN|WARN|BAD),\s*"([a-z0-9-]+)"', source))
    topics |= set(re.findall(r'"(server-[a-z-]+)"', source))
    assert len(topics) >= 20
    assert [t for t in sorted(topics) if "`%s`" % t not in text] == []
