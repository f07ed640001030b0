# SPDX-License-Identifier: Apache-2.0
"""Trouble that users of NCCL, of preloaded libraries and of INI readers met elsewhere, by number: each has tests with its
number in their names, and one of them at least must have run."""
import re

CASES = {
    "E01": "misspelt variable", "E02": "size with a unit", "E03": "odd buffer size or thread count",
    "E04": "an algorithm forced on all collectives", "E05": "grammar of values by version", "E06": "minimum above maximum",
    "E07": "who wins: shell, profile, NCCL's files", "E08": "ranks with different settings", "E09": "rules on masked entries",
    "I01": "long lines and names", "I02": "special characters in values", "I03": "BOM, CRLF, duplicates, broken syntax",
    "P01": "wrong preload path, other children", "P02": "NCCL opened by path", "P03": "NCCL with local scope",
    "P04": "an older NCCL", "P05": "allocators and sanitizers", "P06": "fork among threads",
    "T01": "captures of other threads", "T02": "replays", "T03": "a stuck collective", "T04": "groups",
    "T05": "immediate exit and SIGKILL", "T06": "a full file system",
    "C01": "a config of an older header", "C02": "the environment beats the config", "C03": "non-blocking communicators",
    "C04": "children, groups, functions without config",
}


def run(results):
    title = "every one of the %d known cases has a test by its number" % len(CASES)
    missing = [number for number in CASES
               if not any(re.search(r"(?<![0-9A-Za-z])%s(?![0-9])" % number, name.replace("_", " "), re.I) for name in results.judged)]
    if missing:
        results.fail(title, "none of %s ran" % ", ".join("%s (%s)" % (n, CASES[n]) for n in missing))
    else:
        results.ok(title)
