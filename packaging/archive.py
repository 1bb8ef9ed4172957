"""What all packages have in common: the version, the time of the commit, and which files there are, in one order."""

import os
import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def version():
    found = re.search(r"project\(hpcbatch VERSION ([\d.]+)", (PROJECT / "CMakeLists.txt").read_text())
    return found[1]


def commit_time():
    """Seconds since 1970, of the commit that is built (https://reproducible-builds.org/specs/source-date-epoch/)."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    told = subprocess.run(
        ["git", "-C", PROJECT, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True
    )
    return int(told.stdout)


def mode_of(path):
    """Not what the umask of whoever builds left."""
    return 0o755 if os.access(path, os.X_OK) else 0o644


def files_below(folder):
    """Each file below the folder and its name there, in one order; what Python left while it ran is none of ours."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, path.relative_to(folder).as_posix()


def python_files():
    """What of python/ is installed: each file, and its name below site-packages."""
    for path, name in files_below(PROJECT / "python"):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield path, name
