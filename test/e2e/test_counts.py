# SPDX-License-Identifier: Apache-2.0
"""What a call costs on the host, counted and not timed: every function that the shim calls, by libfaults.so."""
import shutil

import pytest

from faults.points import SERVER, Faults
from harness import instructions

RANKS = 2


@pytest.fixture
def counts(build):
    """counts(option=value, ...): {function: calls of the shim's} of the example server with these options"""
    with Faults(build) as faults:
        def count(program=None, profile="all", **options):
            words = list(SERVER)
            for name, value in options.items():
                words[words.index("--" + name.replace("_", "-")) + 1] = str(value)
            work = "work-%d" % len(faults.works)
            faults.works[work] = (program or [str(build / "examples/decode_server")] + words, profile)
            return {name: calls for name, (calls, _) in faults.functions(work).items()}
        yield count


def difference(many, few, by):
    """What was called more often, for each of `by` pieces of more work."""
    more = {k: many[k] - few.get(k, 0) for k in many}
    for name, n in more.items():
        # Two ranks may look for NCCL or the driver at the same moment, and each note has its time.
        if not name.startswith("cu") and abs(n) <= (5 * RANKS if name == "clock_gettime" else RANKS):
            more[name] = 0
    return {k: n / by for k, n in more.items() if n}


@pytest.mark.parametrize("times", [1, 10, 100])
def test_a_replay_calls_nothing(counts, times):
    assert difference(counts(steps=3 + 3 * times), counts(steps=3), times) == {}


@pytest.mark.parametrize("times", [1, 10, 100])
def test_an_eager_call_is_five_driver_calls_and_nothing_of_libc(counts, times):
    requests = 2
    more = difference(counts(prefill_calls=2 + times), counts(prefill_calls=2), RANKS * requests * times)
    assert more == {"cuCtxGetCurrent": 2, "cuStreamGetCaptureInfo_v3": 1, "cuLaunchKernelEx": 2}


@pytest.mark.parametrize("times", [1, 10, 100])
def test_a_captured_call_right_behind_another_is_five_driver_calls(counts, times):
    more = difference(counts(calls=4 + times), counts(calls=4), RANKS * times)
    assert more == {"cuCtxGetCurrent": 2, "cuStreamGetCaptureInfo_v3": 2, "cuLaunchKernelEx": 1}


def test_a_process_that_never_uses_nccl_makes_no_file_and_reads_its_profile_alone(counts):
    none = counts(program=["/bin/true"], profile=None)
    files = ("open", "openat", "fopen64", "mkdir", "mmap", "posix_fallocate", "write", "stat")
    assert not [f for f in files if none.get(f)], none
    # Allocations, setenv and what else the constructor calls. Raised on purpose, or not at all.
    assert sum(none.values()) <= 25, none
    tuned = counts(program=["/bin/true"], profile="all")
    assert tuned["open"] == 2 and not tuned.get("openat") and not tuned.get("write"), tuned  # it inherits another


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace here")
def test_start_up_without_a_profile_adds_few_system_calls(box):
    def calls(**env):
        done = box.run("strace", "-f", "-c", "-o", "count", "/bin/true", env=env)
        if done.code != 0:
            pytest.skip("strace may not trace here")
        return int((box.dir / "count").read_text().splitlines()[-1].split()[3])

    added = calls(LD_PRELOAD=box.shim) - calls()
    assert 0 < added <= 16, added  # 13: the loader's own for the object, and the heap's first growth


needs_valgrind = pytest.mark.skipif(not instructions.available(), reason="no valgrind here")


@needs_valgrind
def test_a_call_executes_few_instructions_of_the_shim_and_a_replay_none(build):
    """What they are is in docs/performance.md; the bounds leave room for another compiler."""
    costs = instructions.shim_costs(build)
    assert 50 < costs["a wrapped call, log off"] < 400, costs
    assert 500 < costs["an eager call with its stamps"] < 3000, costs
    assert 500 < costs["a captured call with its stamps"] < 3000, costs
    assert abs(costs["a replay"]) < 200, costs  # threads that wait for one another differ by some


@needs_valgrind
def test_start_up_without_nccl_executes_few_instructions(build):
    bare, shim = instructions.start_up(build)
    assert 0 < shim - bare < 250000, (bare, shim)
