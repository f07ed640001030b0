# SPDX-License-Identifier: Apache-2.0
"""The shim's dlsym: machine code, and look-ups of other libraries, which must not change by a byte."""
import os
import re
import shutil
import subprocess

import pytest

FLAGS = ["-D_GNU_SOURCE", "-Iinclude", "-I.", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fstack-protector-strong"]
COMPAT = "compat"


CROSS = "aarch64-linux-gnu-"


def instructions(path, tools=""):
    """[(mnemonic, operands)] of the function dlsym, relocations folded into the operands."""
    text = subprocess.run([tools + "objdump", "-dr", "--no-show-raw-insn", "--disassemble=dlsym", str(path)], check=True,
                          capture_output=True, text=True, env=dict(os.environ, LC_ALL="C")).stdout
    found, inside = [], False
    for line in text.splitlines():
        inside = inside or bool(re.match(r"[0-9a-f]+ <dlsym>:", line))
        match = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)", line)
        if not inside or not match:
            continue
        if match.group(2).startswith("R_"):
            found[-1] = (found[-1][0], found[-1][1], found[-1][2] + " " + match.group(3))
        elif match.group(2) not in ("nop", "nopw", "nopl", "xchg", "cs", "data16"):
            found.append((int(match.group(1), 16), match.group(2), match.group(3)))
    return found


def walk(code, taken):
    """Follow the code from its start, with every conditional jump taken or not as `taken` says; the path."""
    at = {address: i for i, (address, *_) in enumerate(code)}
    path, i, decisions = [], 0, list(taken)
    while True:
        _, op, args = code[i]
        path.append((op, args))
        target = re.search(r"([0-9a-f]+) <", args)
        if op in ("ret", "retq", "br"):
            return path
        if op in ("jmp", "jmpq", "b"):
            if args.startswith("*") or not target or int(target.group(1), 16) not in at or "ncclshim" in args:
                return path
            i = at[int(target.group(1), 16)]
            continue
        if (op.startswith(("j", "b.")) or op == "cbz") and decisions.pop(0):
            i = at[int(target.group(1), 16)]
            continue
        i += 1


def is_tail_jump(path, first_call):
    """The stack is as the caller left it when the path leaves, and it leaves by a jump."""
    depth = 0
    for op, args in path:
        if op.startswith("push"):
            depth += 8
        elif op.startswith("pop"):
            depth -= 8
        elif op.startswith("sub") and args.endswith("%rsp"):
            depth += int(args.split(",")[0].strip("$"), 16)
        elif op.startswith("add") and args.endswith("%rsp"):
            depth -= int(args.split(",")[0].strip("$"), 16)
        elif op.startswith("call"):
            assert first_call and "find_dlsym" in args, path
            assert depth % 16 == 8, "the stack is not aligned at the call: %r" % (path,)
    assert path[-1][0].startswith("jmp") and depth == 0, path


def is_tail_jump_of_aarch64(path, first_call):
    """Likewise; and the link register, where the caller's address is, is as it was."""
    depth, link = 0, "kept"
    for op, args in path:
        before, after = re.search(r"\[sp, #(-?\d+)\]!", args), re.search(r"\[sp\], #(-?\d+)", args)
        depth -= int((before or after).group(1)) if before or after else 0
        if op == "bl":
            assert first_call and "find_dlsym" in args and depth % 16 == 0, path
            link = "lost"
        elif op.startswith("ld") and args.startswith("x30,"):
            link = "kept"
    assert path[-1][0] in ("b", "br") and depth == 0 and link == "kept", path


def check(path, tools="", is_tail_jump=is_tail_jump, to_real="*%"):
    code = instructions(path, tools)
    assert code and not any(op.startswith("ret") for _, op, _ in code), code
    # Conditional jumps, in order: handle == 0, name == 0, not n, not c, not c, not l, then at the leaving: not found yet.
    for position in range(6):
        foreign = [False] * position + [True]
        left = walk(code, foreign + [False])
        is_tail_jump(left, first_call=False)
        assert left[-1][1].startswith(to_real), left  # to the real one, by its address
        is_tail_jump(walk(code, foreign + [True]), first_call=True)
    ours = walk(code, [False] * 6)
    is_tail_jump(ours, first_call=False)
    assert "ncclshim_dlsym_nccl" in ours[-1][1] or not ours[-1][1].startswith(to_real), ours


def check_aarch64(path):
    check(path, CROSS if shutil.which(CROSS + "objdump") else "", is_tail_jump_of_aarch64, "x16")


def machine_of(path):
    """e_machine: 62 is x86-64, 183 is AArch64."""
    with open(path, "rb") as f:
        return {62: "x86_64", 183: "aarch64"}[int.from_bytes(f.read(20)[18:20], "little")]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="compilers make x86-64 code here")
@pytest.mark.skipif(not shutil.which("objdump"), reason="no objdump here")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("optimisation", ["-O2", "-Og", "-O0"])
def test_foreign_names_leave_by_a_jump(tmp_path, box, compiler, optimisation):
    if not shutil.which(compiler):
        pytest.skip("no %s here" % compiler)
    made = tmp_path / "dlsym.o"
    subprocess.run([compiler, *FLAGS, optimisation, "-c", "-o", str(made), "shim/preload/dlsym.c"], check=True,
                   cwd=str(box.root), timeout=60)
    check(made)


@pytest.mark.skipif(not shutil.which(CROSS + "gcc"), reason="no cross compiler for AArch64 here")
@pytest.mark.parametrize("optimisation", ["-O2", "-Og", "-O0"])
def test_foreign_names_leave_by_a_jump_on_aarch64(tmp_path, box, optimisation):
    made = tmp_path / "dlsym.o"
    subprocess.run([CROSS + "gcc", *FLAGS, optimisation, "-c", "-o", str(made), "shim/preload/dlsym.c"], check=True,
                   cwd=str(box.root), timeout=60)
    check_aarch64(made)


@pytest.mark.skipif(not shutil.which("objdump"), reason="no objdump here")
def test_foreign_names_leave_by_a_jump_in_the_shared_object(box):
    (check_aarch64 if machine_of(box.shim) == "aarch64" else check)(box.shim)


def lookups(box, *preload, **env):
    folder = box.build / COMPAT
    names = {"shim": box.shim, "other": folder / "private" / "lookups_private.so"}
    value = ":".join(str(names[p]) for p in preload) or None
    done = box.run(folder / "lookups", folder / "lookups_lib.so", env={"LD_PRELOAD": value, **env})
    assert done.code == 0 and done.err == "", done
    return done.out


@pytest.mark.parametrize("order", [("shim", "other"), ("other", "shim")])
def test_look_ups_of_other_libraries_are_the_same_with_another_preloaded(box, order):
    without = lookups(box, "other")
    assert "program default malloc_usable_size: lookups_private.so+" in without
    assert "library opens lookups_private.so: found" in without and "no_such_name: +0" in without
    assert lookups(box, *order) == without


def test_look_ups_of_other_libraries_are_the_same(box):
    without = lookups(box)
    assert "library opens lookups_private.so: found" in without  # by its RUNPATH
    assert "program opens lookups_private.so: not found" in without
    assert lookups(box, "shim") == without
    assert lookups(box, "shim", NCCLSHIM_DLSYM="0") == without


def with_other_dlsym(box, order):
    folder = box.build / COMPAT
    preload = order.replace("shim", str(box.shim)).replace("other", str(folder / "other_dlsym.so"))
    done = box.run(folder / "way", "handle", box.fake / "libnccl.so.2", env={"LD_PRELOAD": preload, "COMPAT_ROUNDS": "3"})
    assert done.code == 0 and "sums good" in done.out and done.err == "", done
    assert "other dlsym was asked for cu names" in done.out, done
    return done


def test_another_library_behind_us_that_defines_dlsym_goes_on_seeing_its_names(box):
    """vGPU libraries do; /etc/ld.so.preload is behind LD_PRELOAD."""
    assert "shim 10" in with_other_dlsym(box, "shim:other").out


def test_another_library_before_us_that_goes_past_our_dlsym_is_told_of(box):
    """It asks for the C library's own version of dlsym, which is nobody else's. Then handles lead past us."""
    with_other_dlsym(box, "other:shim")
    assert "6 of 6 calls were not intercepted" in box.cli("report").out


def test_names_of_nccl_that_nobody_has_are_not_found(box):
    code = ("import ctypes\nn = ctypes.CDLL('libnccl.so.2')\n"
            "print([hasattr(n, x) for x in ('ncclNoSuch', 'nccl', 'ncclshim_is_loaded', 'pncclAllReduce', 'ncclAllReduce')])")
    done = box.preload("/usr/bin/python3", "-c", code)
    assert done.out == "[False, False, False, True, True]\n", done
