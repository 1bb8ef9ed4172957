"""A Python below build/ with what a test needs, made once and kept until what it needs changes."""

import fcntl
import fnmatch
import hashlib
import os
import pathlib
import shutil
import subprocess
import venv

ROOT = pathlib.Path(__file__).parents[2]
UV = "uv==0.13.9"
LEFT_OUT = ("__pycache__", "build", "*.egg-info")


def own_python(name, requirements, packages, constraints=None, alone=False):
    """The interpreter of build/NAME: `requirements` and `constraints` are pip's files; `packages` are folders of this repository,
    installed as users do it; `alone`: without what the requirements need themselves."""
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
            more = (["-c", constraints] if constraints else []) + (["--no-deps"] if alone else [])
            _pip(python, "-r", requirements, *more)
            mark.write_text(wanted)
        # Installed again only where they have changed: tests beside this one may be running out of them.
        installed = folder / "packages"
        content = _content_of([ROOT / package for package in packages])
        if packages and (not installed.exists() or installed.read_text() != content):
            # A copy, because a build leaves files beside what it builds.
            sources = folder / "sources"
            shutil.rmtree(sources, ignore_errors=True)
            copies = []
            for package in packages:
                copies.append(sources / package.replace("/", "-"))
                shutil.copytree(ROOT / package, copies[-1], ignore=shutil.ignore_patterns(*LEFT_OUT))
            _pip(python, "--force-reinstall", "--no-deps", *copies)
            installed.write_text(content)
    return python


def _content_of(folders):
    """A sum of all files that would be copied, with their paths and modes; links count as what they lead to."""
    found = hashlib.sha256()
    for folder in folders:
        for where, inner, files in os.walk(folder, followlinks=True):
            inner[:] = sorted(name for name in inner if not any(fnmatch.fnmatch(name, left) for left in LEFT_OUT))
            for name in sorted(files):
                path = pathlib.Path(where, name)
                found.update(
                    f"{path.relative_to(ROOT)} {path.stat().st_mode} ".encode()
                    + hashlib.sha256(path.read_bytes()).digest()
                )
    return found.hexdigest()


def _pip(python, *words):
    """Installs by uv, which takes a quarter of pip's time, and by pip where that is not to be had."""
    words = [str(word) for word in words]
    ways = [[str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]]
    if uv := _uv():
        ways.insert(0, [str(uv), "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *words])
    for command in ways:
        # What is installed is compiled once: the processes of tests leave no compiled files.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500, check=False)
        if done.returncode == 0:
            return
    raise AssertionError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


def _uv():
    """None where it cannot be installed."""
    folder = ROOT / "build/uv"
    program = folder / "bin/uv"
    with open(folder.with_name("uv.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            venv.create(folder, with_pip=True, symlinks=True)
            words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]
            subprocess.run([folder / "bin/python", *words], capture_output=True, timeout=300, check=False)
    return program if program.exists() else None
