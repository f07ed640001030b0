# SPDX-License-Identifier: Apache-2.0
"""Real NCCL libraries, from NVIDIA's Python packages: fetched once by pip, kept in a cache folder.

The cache (NCCLSHIM_WHEELS, else ~/.cache/ncclshim/wheels) holds one folder a version, with lib/libnccl.so.2 and
include/. A folder that is there is used as it is.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGES = {  # version: package
    "2.14.3": "nvidia-nccl-cu11", "2.18.3": "nvidia-nccl-cu12", "2.21.5": "nvidia-nccl-cu12",
    "2.23.4": "nvidia-nccl-cu12", "2.26.5": "nvidia-nccl-cu12", "2.27.7": "nvidia-nccl-cu12",
    "2.28.9": "nvidia-nccl-cu13", "2.29.7": "nvidia-nccl-cu13", "2.30.7": "nvidia-nccl-cu13",
    "2.32.3": "nvidia-nccl-cu13",
}
FETCH_LIMIT_S = 300


def folder():
    return Path(os.environ.get("NCCLSHIM_WHEELS") or Path.home() / ".cache" / "ncclshim" / "wheels")


def have(version):
    """The folder of a version that is in the cache, or None."""
    path = folder() / version
    return path if (path / "lib" / "libnccl.so.2").exists() else None


def get(version):
    """(folder, None), or (None, why there is none)."""
    path = have(version)
    if path:
        return path, None
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder()) as work:
            return fetch(version, Path(work)), None
    except (OSError, subprocess.SubprocessError, ValueError) as fault:
        return None, "%s==%s could not be fetched: %s" % (PACKAGES[version], version, str(fault).splitlines()[-1])


def download(requirement, work, *more):
    """The one wheel or source archive of a package, without what it depends on."""
    args = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check",
            "--dest", str(work), *more, requirement]
    done = subprocess.run(args, capture_output=True, text=True, timeout=FETCH_LIMIT_S)
    if done.returncode:
        raise ValueError(done.stderr.strip() or "pip: exit code %d" % done.returncode)
    return next(p for p in work.iterdir() if p.suffix in (".whl", ".gz", ".zip"))


def member(requirement, name):
    """One file of a package, fetched once: its path in the cache."""
    path = folder() / "files" / requirement.replace("==", "-") / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder()) as work:
            wheel = download(requirement, Path(work), "--only-binary=:all:")
            with zipfile.ZipFile(wheel) as archive:
                path.write_bytes(archive.read(name))
    return path


def fetch(version, work):
    wheel = download("%s==%s" % (PACKAGES[version], version), work, "--only-binary=:all:")
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if n.startswith(("nvidia/nccl/lib/", "nvidia/nccl/include/"))]
        archive.extractall(work, names)
    made = folder() / version
    shutil.move(str(work / "nvidia" / "nccl"), str(made))
    return made
