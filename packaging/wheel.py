#!/usr/bin/env python3
"""Makes the wheel `hpcbatch` of what was installed into a folder and of python/.

    wheel.py INSTALLED NOTICES FOLDER       prints the path of the wheel, in FOLDER

Programs go where pip puts scripts, all else below its prefix: bin, lib/hpcbatch and share/hpcbatch lie as after any other
install, so that the engine finds its plugins, and `hpcbatch` is no program of Python's that starts another.
"""

import base64
import hashlib
import sys
import time
import tomllib
import zipfile
from pathlib import Path

from archive import PROJECT, commit_time, files_below, mode_of, python_files, version

TAG = "py3-none-manylinux_2_28_x86_64"
METADATA = """Metadata-Version: 2.1
Name: hpcbatch
Version: {version}
Summary: Runs many small tasks inside few batch jobs of SLURM and PBS
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: System :: Distributed Computing
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{description}"""
WHEEL = f"""Wheel-Version: 1.0
Generator: hpcbatch
Root-Is-Purelib: false
Tag: {TAG}
"""


def contents(installed, notices):
    """The name in the wheel, the bytes and the mode of each file (packaging.python.org, binary distribution format)."""
    info = f"hpcbatch-{version()}.dist-info"
    data = f"hpcbatch-{version()}.data"
    for path, name in python_files():
        yield name, path.read_bytes(), 0o644
    for path, name in files_below(installed):
        place = name[len("bin/") :] if name.startswith("bin/") else None
        yield f"{data}/scripts/{place}" if place else f"{data}/data/{name}", path.read_bytes(), mode_of(path)
    for path, name in files_below(notices):
        yield f"{info}/licenses/{name}", path.read_bytes(), 0o644
    yield f"{info}/licenses/LICENSE", (PROJECT / "LICENSE").read_bytes(), 0o644
    description = (PROJECT / "packaging" / "wheel.md").read_text()
    yield f"{info}/METADATA", METADATA.format(version=version(), description=description).encode(), 0o644
    yield f"{info}/entry_points.txt", entry_points().encode(), 0o644
    yield f"{info}/WHEEL", WHEEL.encode(), 0o644


def entry_points():
    """By what other packages find ours (packaging.python.org, entry points specification)."""
    groups = tomllib.loads((PROJECT / "python" / "pyproject.toml").read_text())["project"]["entry-points"]
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {what}\n" for name, what in points.items())
        for group, points in groups.items()
    )


def add_to_zip(archive, name, content, mode, when):
    info = zipfile.ZipInfo(name, when)
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content, compresslevel=9)


def main():
    installed, notices, folder = map(Path, sys.argv[1:])
    when = time.gmtime(commit_time())[:6]
    path = folder / f"hpcbatch-{version()}-{TAG}.whl"
    record = f"hpcbatch-{version()}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content, mode in contents(installed, notices):
            add_to_zip(wheel, name, content, mode, when)
            checksum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={checksum},{len(content)}\n")
        lines.append(f"{record},,\n")
        add_to_zip(wheel, record, "".join(lines), 0o644, when)
    print(path)


if __name__ == "__main__":
    main()
