# SPDX-License-Identifier: Apache-2.0
"""examples/deploy, and the commands that documents tell to type: what can be checked of them without a cluster."""
import re
import shutil
import subprocess

import pytest

from test_man import help_of, options_of, verbs


def commands(text):
    """[(verb, options)] of each call of ncclshim in a text, up to the `--` of the command behind it."""
    text = re.sub(r"\\\n", " ", text)
    for line in text.splitlines():
        if re.search(r"\bncclshim,", line):  # a list in YAML
            line = " ".join(re.sub(r"[\[\],\"]", " ", line).split())
        for call in re.findall(r"(?:^|[\s/`])ncclshim ((?:[a-z]+\b)[^`|;&)]*)", line):
            words = re.split(r"\s--(?:\s|$)|\s#|\s{3,}", call)[0].split()
            yield words[0], [w.split("=")[0] for w in words[1:] if re.match(r"--?[a-z]", w)]


def test_every_command_in_a_document_or_an_example_has_verbs_and_options_that_there_are(box):
    known = {v: options_of(help_of(box, v)) | set(re.findall(r"(?<![\w-])-\w\b", help_of(box, v))) for v in verbs(box)}
    wrong, seen = [], 0
    files = [box.root / "README.md", *(box.root / "docs").rglob("*.md"), *(box.root / "examples/deploy").iterdir()]
    for path in files:
        for verb, options in commands(path.read_text()):
            if verb not in known:
                continue  # a sentence about ncclshim
            seen += 1
            wrong += ["%s: %s %s" % (path.name, verb, o) for o in options if o not in known[verb] | {"--help"}]
    assert wrong == [] and seen > 100


def test_a_wrong_option_in_an_example_would_be_found():
    assert list(commands("command: [ncclshim, collect, --log-dri, /x, -o, /runs]")) == [("collect", ["--log-dri", "-o"])]
    assert list(commands("ExecStart=/usr/bin/ncclshim run -p none -- server --tp 8")) == [("run", ["-p"])]


def test_systemd_finds_no_fault_in_the_unit(box):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    root = box.dir / "root"
    for folder in ("usr/bin", "etc/systemd/system"):
        (root / folder).mkdir(parents=True)
    shutil.copy(box.command, root / "usr/bin/ncclshim")
    shutil.copy(box.root / "examples/deploy/ncclshim-collect@.service", root / "etc/systemd/system/ncclshim-collect@me.service")
    # Targets that are part of systemd, not of this root.
    for target in ("sysinit", "basic", "shutdown", "multi-user"):
        (root / "etc/systemd/system" / (target + ".target")).write_text("[Unit]\nDescription=%s\n" % target)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--root=" + str(root), "ncclshim-collect@me.service"],
                          capture_output=True, text=True, timeout=60, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze takes no --root")
    assert done.returncode == 0 and done.stderr == "", done


def test_the_pod_hangs_together(box):
    yaml = pytest.importorskip("yaml", reason="no PyYAML here")
    pod = yaml.safe_load((box.root / "examples/deploy/kubernetes.yaml").read_text())["spec"]
    shim, collect = pod["initContainers"]
    server = pod["containers"][0]
    volumes = {v["name"] for v in pod["volumes"]}
    for container in (shim, collect, server):
        assert {m["name"] for m in container["volumeMounts"]} <= volumes
    env = {e["name"]: e["value"] for e in server["env"]}
    at = {m["name"]: m["mountPath"] for m in server["volumeMounts"]}
    # Where install puts the object below the prefix that the image has, and where the server looks for it.
    containerfile = (box.root / "examples/deploy/Containerfile").read_text()
    prefix = re.search(r"PREFIX=(\S+)", containerfile).group(1)
    assert env["LD_PRELOAD"] == prefix + "/lib/ncclshim/libncclshim.so" and at["shim"] == prefix
    assert "%s/. %s/" % (prefix, {m["name"]: m["mountPath"] for m in shim["volumeMounts"]}["shim"]) in shim["command"][2]
    # The server writes where the collector reads, into memory, in a folder that the first container made.
    logs = env["NCCLSHIM_LOG_DIR"]
    assert logs == collect["command"][collect["command"].index("--log-dir") + 1] and logs in shim["command"][2]
    assert {m["mountPath"] for c in (shim, collect, server) for m in c["volumeMounts"] if m["name"] == "shm"} == {"/dev/shm"}
    assert next(v for v in pod["volumes"] if v["name"] == "shm")["emptyDir"]["medium"] == "Memory"
