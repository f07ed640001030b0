# SPDX-License-Identifier: Apache-2.0
"""A sample of the points of `make test-faults` (test/faults/points.py): calls of the shim's, failing one at a time."""
import random

import pytest

from faults.points import Faults, Point

SAMPLE = 25
# Faults that this harness found once: each must stay mended.
FOUND = [
    ("server", "calloc", "8", "ENOMEM"),            # a rank without [tune] rules, the other with them
    ("server", "calloc", "1+", "ENOMEM"),           # not even the empty profile could be made
    ("untuned", "strdup", "1+", "ENOMEM"),
    ("untuned", "posix_fallocate", "1+", "EINTR"),  # waited for ever for a signal-free moment
    ("server", "read", "1+", "EINTR"),
    ("untuned", "dlopen", "1+", "ENOMEM"),          # NCCL was loaded, and not found
    ("groups", "dladdr1", "13", "ENOMEM"),          # took itself for NCCL
    ("untuned", "write", "1", "short"),
]


@pytest.fixture
def faults(build):
    with Faults(build) as made:
        yield made


def test_a_call_of_the_shim_that_fails_changes_nothing_for_the_server(faults):
    points = faults.all_points(6)
    assert len(points) > 400
    tried = random.Random(8).sample(points, SAMPLE)  # the same ones every time
    wrong = ["%s\n%s" % (p, fault) for p in tried for fault in [faults.trial(p)] if fault]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("point", FOUND, ids=lambda p: "-".join(p))
def test_a_fault_found_once_stays_mended(faults, point):
    faults.functions(point[0])
    assert faults.trial(Point(*point)) is None
