"""A Python below build/ with what a test needs, made once and kept until what it needs changes."""

import fcntl
import hashlib
import pathlib
import shutil
import subprocess
import venv

ROOT = pathlib.Path(__file__).parents[2]


def own_python(name, requirements, packages, constraints=None):
    """The interpreter of build/NAME: `requirements` and `constraints` are pip's files; `packages` are folders of this repository,
    installed anew each time, as users do it."""
    folder = ROOT / "build" / name
    folder.parent.mkdir(exist_ok=True)
    with open(folder.with_name(name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = folder / "installed"
        files = [requirements] + ([constraints] if constraints else [])
        wanted = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
        python = folder / "bin/python"
        if not mark.exists() or mark.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True, symlinks=True)
            _pip(python, "-r", requirements, *(["-c", constraints] if constraints else []))
            mark.write_text(wanted)
        # A copy, because a build leaves files beside what it builds.
        sources = folder / "sources"
        shutil.rmtree(sources, ignore_errors=True)
        copies = []
        for package in packages:
            copies.append(sources / package.replace("/", "-"))
            shutil.copytree(ROOT / package, copies[-1], ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
        _pip(python, "--force-reinstall", "--no-deps", *copies)
    return python


def _pip(python, *words):
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
