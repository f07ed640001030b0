# SPDX-License-Identifier: Apache-2.0
"""Good neighbours: other preloaded libraries in either order, other kinds of children, and processes that never
touch NCCL, which must not notice the shim."""
import glob
import os
import re
import shutil
import stat
import subprocess

import pytest

import logmaker

ROUNDS, RANKS = 3, 2
PYTHON = "/usr/bin/python3"


def find(name):
    """A library of this machine by its file name, or None."""
    for folder in ("/usr/lib/*-linux-gnu", "/usr/lib/*-linux-gnu/faketime", "/usr/lib64", "/usr/lib", "/usr/local/lib"):
        found = sorted(glob.glob("%s/%s*" % (folder, name)))
        if found:
            return found[0]
    return None


def preload_list(box, order, **others):
    names = {"shim": str(box.shim), **others}
    return ":".join(names[n] for n in order.split(":"))


def logs_of(box):
    return [logmaker.parse(p) for p in sorted(glob.glob(str(box.logs / "*.ncclshim")))]


def wrapped(box):
    return [c["wrapped_calls"] for log in logs_of(box) for c in log.comms]


# ---- P05: allocators, sanitizers, time ------------------------------------------------------------------------

ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
ALLOCATES_AT_ONCE = "x = [bytes(i) for i in range(5000)]; import ctypes; print(len(x))"


def both_work(box, env):
    """A program that allocates in its first instruction, and one that makes collectives."""
    done = box.run(PYTHON, "-c", ALLOCATES_AT_ONCE, env=env)
    assert done.code == 0 and done.out == "5000\n" and done.err == "", done
    done = box.run(box.build / "compat" / "way", "handle", box.fake / "libnccl.so.2", env=env)
    assert done.code == 0 and "shim 10" in done.out and "sums good" in done.out and done.err == "", done
    assert wrapped(box) == [ROUNDS] * RANKS


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("order", ["shim:other", "other:shim"])
def test_p05_allocators_in_either_order(box, allocator, order):
    library = find(ALLOCATORS[allocator])
    if not library:
        pytest.skip("no %s on this machine" % ALLOCATORS[allocator])
    env = {"LD_PRELOAD": preload_list(box, order, other=library), "COMPAT_ROUNDS": ROUNDS}
    both_work(box, env)


def asan_runtime():
    path = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return os.path.realpath(path) if os.path.isabs(path) else None


def test_p05_the_address_sanitizers_runtime_before_the_shim(box):
    library = asan_runtime() if shutil.which("gcc") else None
    if not library:
        pytest.skip("no runtime of AddressSanitizer here")
    env = {"LD_PRELOAD": preload_list(box, "other:shim", other=library), "COMPAT_ROUNDS": ROUNDS,
           "ASAN_OPTIONS": "detect_leaks=0"}
    both_work(box, env)


def test_p05_the_launcher_puts_the_address_sanitizers_runtime_first(box):
    """Behind the shim it ends the process; run puts it in front whatever the order was."""
    library = asan_runtime() if shutil.which("gcc") else None
    if not library:
        pytest.skip("no runtime of AddressSanitizer here")
    wrong = preload_list(box, "shim:other", other=library)
    done = box.run(PYTHON, "-c", "pass", env={"LD_PRELOAD": wrong})
    assert done.code != 0 and "ASan runtime does not come first" in done.err, done
    done = box.cli("run", "-o", "r", "--", PYTHON, "-c", "import os; print(os.environ['LD_PRELOAD'])",
                   env={"LD_PRELOAD": wrong, "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})
    assert done.code == 0 and done.out.split(":")[0].strip() == library, done


@pytest.mark.parametrize("order", ["shim:other", "other:shim"])
def test_a_library_that_changes_the_time(box, order):
    library = find("libfaketime.so.1")
    if not library:
        pytest.skip("no libfaketime on this machine")
    env = {"LD_PRELOAD": preload_list(box, order, other=library), "FAKETIME": "-3d", "COMPAT_ROUNDS": ROUNDS}
    done = box.run(box.build / "compat" / "way", "handle", box.fake / "libnccl.so.2", env=env)
    assert done.code == 0 and "sums good" in done.out and done.err == "", done
    assert wrapped(box) == [ROUNDS] * RANKS
    assert all(start < end for log in logs_of(box) for r in log.rings.values() for _, start, end, _ in r["records"].values())


# ---- another interposer of NCCL ------------------------------------------------------------------------------------

@pytest.mark.parametrize("order", ["shim:other", "other:shim"])
@pytest.mark.parametrize("way", ["linked", "handle"])
def test_another_interposer_of_nccl_that_hands_out_its_own_handles(box, order, way):
    """NVIDIA's checkpoint shim is one. Linked callers pass both; those that ask a handle pass us, and what is behind."""
    folder = box.build / "compat"
    env = {"LD_PRELOAD": preload_list(box, order, other=str(folder / "interposer.so")), "COMPAT_ROUNDS": ROUNDS}
    args = [folder / "linked"] if way == "linked" else [folder / "way", "handle", box.fake / "libnccl.so.2"]
    done = box.run(*args, env=env)
    assert done.code == 0 and "sums good" in done.out and done.err == "", done
    both = way == "linked" or order == "shim:other"
    expected = "interposer %d %d" % ((RANKS, RANKS * ROUNDS) if both else (0, 0))
    assert expected in done.out, done
    assert wrapped(box) == [ROUNDS] * RANKS


# ---- P01: paths and children -----------------------------------------------------------------------------------

def test_p01_a_preload_path_that_is_missing_is_refused_before_anything_starts(box):
    """By the loader's way it is a line of noise for each process and a silent no-op."""
    copy = box.dir / "a bin"
    copy.mkdir()
    shutil.copy(box.command, copy / "ncclshim")
    done = box.run(copy / "ncclshim", "run", "-o", "r", "--", "/bin/echo", "started")
    assert done.code == 2 and "started" not in done.out and done.err.startswith("ncclshim"), done
    shutil.copy(box.shim, copy / "libncclshim.so")  # there now, but with a blank in the path
    done = box.run(copy / "ncclshim", "run", "-o", "r", "--", "/bin/echo", "started")
    assert done.code == 2 and "started" not in done.out and "blank" in done.err, done


def compile_c(box, name, *flags, code='#include <stdio.h>\nint main(void) { puts("child"); return 3; }\n'):
    if not shutil.which("gcc"):
        pytest.skip("no gcc here")
    source = box.dir / (name + ".c")
    source.write_text(code)
    done = subprocess.run(["gcc", "-o", str(box.dir / name), str(source), *flags], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("gcc %s builds nothing here: %s" % (" ".join(flags), done.stderr.strip().splitlines()[-1]))
    return box.dir / name


def test_p01_a_static_child_is_left_alone(box):
    child = compile_c(box, "static", "-static")
    done = box.preload("/bin/sh", "-c", "%s 2>&1; echo $?" % child)
    assert done.out == "child\n3\n" and done.err == "", done


def test_p01_a_32_bit_child_runs_and_only_the_loader_says_a_word(box):
    child = compile_c(box, "small", "-m32")
    done = box.preload(child)
    assert done.code == 3 and done.out == "child\n", done
    assert done.err.count("\n") == 1 and "cannot be preloaded" in done.err, done  # ld.so's own line; see docs/clients.md


def test_p01_a_set_user_id_child_is_left_alone(box):
    if os.getuid() != 0:
        pytest.skip("making a set-user-id program of another user needs root")
    child = compile_c(box, "raised", code="#include <stdio.h>\n#include <sys/auxv.h>\n"
                                          'int main(void) { printf("%lu\\n", getauxval(AT_SECURE)); return 0; }\n')
    os.chown(child, 65534, 65534)
    os.chmod(child, stat.S_ISUID | 0o755)
    done = box.preload(child)
    if done.out != "1\n":
        pytest.skip("this file system allows no set-user-id programs")
    assert done.code == 0 and done.err == "", done


def test_p01_text_captured_with_stderr_stays_clean(box):
    script = box.dir / "s.sh"
    script.write_text("#!/bin/sh\nx=$(%s -c 'print(42)' 2>&1; ls /dev/null 2>&1; /bin/true 2>&1)\n"
                      "[ \"$x\" = \"42\n/dev/null\" ] && echo same\n" % PYTHON)
    script.chmod(0o755)
    done = box.preload(script, env={"NCCLSHIM_PROFILE": "none"})
    assert done.out == "same\n" and done.err == "", done
    assert os.listdir(box.logs) == []


def system_calls(box, *preload):
    out = box.dir / "strace.out"
    done = box.run("strace", "-f", "-qq", "-o", out, "/bin/true", env={"LD_PRELOAD": ":".join(map(str, preload)) or None})
    if done.code:
        pytest.skip("strace does not work here: %s" % done.err.strip())
    return out.read_text().splitlines()


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace here")
def test_p01_a_process_without_nccl_costs_few_system_calls_and_writes_nothing(box):
    """Counted, not timed: what loading any small library costs, and little more."""
    empty = box.dir / "empty.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(empty)], check=True)
    base, ours = system_calls(box, empty), system_calls(box, box.shim)
    assert len(ours) - len(base) <= 4, "\n".join(ours)
    more = "\n".join(re.sub(r'"[^"]*"', '""', line) for line in ours)  # names of files may hold anything
    for word in ("clone", "fork", "sigaction", "O_WRONLY", "O_RDWR", "O_CREAT", "write(", "socket", "ioctl", "futex"):
        assert word not in more, "%s:\n%s" % (word, more)


def test_p01_no_thread_no_signal_handler_and_the_environment_as_the_profile_says(box):
    code = ("import os, re; s = open('/proc/self/status').read();"
            "print(re.findall(r'(?:Threads|SigCgt|SigIgn|SigBlk):\\s*(\\S+)', s), sorted(os.listdir('/proc/self/fd'))[3:]);"
            "print(sorted((k, v) for k, v in os.environ.items() if 'NCCL' in k and k[-4:] != 'PATH'))")
    plain = box.run(PYTHON, "-c", code)
    ours = box.preload(PYTHON, "-c", code)
    assert ours.code == 0 and ours.err == "" and ours.out.splitlines()[0] == plain.out.splitlines()[0], (plain, ours)
    names = re.findall(r"\('(\w+)'", ours.out.splitlines()[1])
    assert sorted(names) == ["NCCLSHIM_LOG_DIR", "NCCL_ENV_PLUGIN", "NCCL_PROFILER_PLUGIN"], ours
    off = box.preload(PYTHON, "-c", code, env={"NCCLSHIM_LOG": "off"})
    assert re.findall(r"\('(\w+)'", off.out.splitlines()[1]) == ["NCCLSHIM_LOG", "NCCLSHIM_LOG_DIR"], off
    profile = box.profile("p", "[env]\nNCCL_P2P_LEVEL = SYS\n")
    told = box.preload(PYTHON, "-c", "import os; print(os.environ['NCCL_P2P_LEVEL'])", env={"NCCLSHIM_PROFILE": profile})
    assert told.out == "SYS\n", told


# ---- P06: forks ------------------------------------------------------------------------------------------------

FORKED = """
import ctypes, multiprocessing, os, sys
nccl = ctypes.CDLL("libnccl.so.2")
version = ctypes.c_int()
nccl.ncclGetVersion(ctypes.byref(version))      # the parent has called NCCL, and made no communicator

def child():
    names = "GetVersion GetUniqueId GetErrorString GroupStart GroupEnd CommInitRank CommCount CommUserRank AllReduce CommDestroy"
    table = (ctypes.c_void_p * 10)(*[ctypes.cast(getattr(nccl, "nccl" + n), ctypes.c_void_p).value for n in names.split()])
    ctypes.CDLL(sys.argv[1]).calls_main((ctypes.c_void_p * 1)(ctypes.addressof(table)), 1)

if __name__ == "__main__":
    workers = [multiprocessing.get_context(sys.argv[2]).Process(target=child) for _ in range(3)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    sys.exit(any(w.exitcode for w in workers))
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_p06_pythons_start_methods(box, method):
    script = box.dir / "forked.py"
    script.write_text(FORKED)
    done = box.preload(PYTHON, script, box.build / "compat" / "libcompat.so", method, env={"COMPAT_ROUNDS": ROUNDS})
    assert done.code == 0 and done.out.count("sums good") == 3 and done.err == "", done
    logs = logs_of(box)
    assert len({log.head["pid"] for log in logs}) == 3
    assert wrapped(box) == [ROUNDS] * RANKS * 3
    # Forked children leave by os._exit, where no destructor runs; the parent's end must not close their logs.
    assert {log.head["state"] for log in logs} == {2 if method == "spawn" else 1}


SPAWNS = r"""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
    char *args[] = {"true", NULL};
    for (int i = 0; i < 50; i++) {
        int status = 1;
        pid_t pid;
        if (i % 2) {
            if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ))
                return 1;
        } else {
            pid = vfork();
            if (pid == 0) {
                execve("/bin/true", args, environ);
                _exit(1);
            }
        }
        if (waitpid(pid, &status, 0) != pid || status)
            return 1;
    }
    puts("spawned");
    return 0;
}
"""


def test_p06_vfork_and_posix_spawn(box):
    done = box.preload(compile_c(box, "spawns", code=SPAWNS))
    assert done.code == 0 and done.out == "spawned\n" and done.err == "", done
