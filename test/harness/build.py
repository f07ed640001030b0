# SPDX-License-Identifier: Apache-2.0
"""One build folder: how `make` is called for it."""
import os
import shlex

from . import process

SANITIZE = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"


class Build:
    def __init__(self, folder, sanitize=False, options=()):
        self.dir = folder
        self.sanitize = sanitize
        self.options = list(options)
        self.jobs = os.cpu_count() or 2

    def make(self, targets, keep_going=False, timeout=600):
        args = shlex.split(os.environ.get("MAKE", "make")) + ["--no-print-directory", "-s", "-j%d" % self.jobs]
        args += ["BUILD=" + self.dir, "CC=" + os.environ.get("CC", "cc")]
        if os.environ.get("CI"):
            args += ["WERROR=-Werror"]
        args += self.options  # behind: a build may know of warnings that are none
        if self.sanitize:
            # _FORTIFY_SOURCE hides what ASan would see.
            args += ["OPT=" + SANITIZE, "HARDEN="]
        if keep_going:
            args += ["-k"]
        # The flags of the make that called us hold its job server and variables; this is a make of its own.
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
        return process.run(args + targets, timeout, env)

    def make_all(self, results):
        code, output = self.make(["all"])
        if code != 0:
            results.fail("build", "make all: " + process.describe(code, 600), output)
        return code == 0

    def check_warnings(self, results, name):
        """Everything through another compiler, where any warning is a fault."""
        code, output = self.make(["all", "units"], keep_going=True)
        if code == 0:
            results.ok(name)
        else:
            results.fail(name, process.describe(code, 600), output)

    def is_complete(self):
        return all(os.path.exists(os.path.join(self.dir, f))
                   for f in ("ncclshim", "libncclshim.so", "examples/decode_server"))

    def can_run(self):
        """Does the machine start programs of this build, which may be for another one?"""
        try:
            return process.run([os.path.join(self.dir, "ncclshim"), "--version"], 60)[0] == 0
        except OSError:
            return False

    def env(self):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("NCCL", "NCCLSHIM", "LD_", "MAKE", "MFLAGS"))}
        env["NCCLSHIM_BUILD"] = os.path.abspath(self.dir)
        if self.sanitize:
            env["ASAN_OPTIONS"] = "abort_on_error=0:exitcode=99:detect_leaks=1:verify_asan_link_order=0"
            env["UBSAN_OPTIONS"] = "print_stacktrace=1"
        return env
