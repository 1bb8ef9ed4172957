#!/usr/bin/env python3
"""Makes the wheel `hpcbatch` of what was installed into a folder and of python/.

    wheel.py INSTALLED NOTICES FOLDER       prints the path of the wheel, in FOLDER

Programs go where pip puts scripts, all else below its prefix, and `hpcbatch` is no program of Python's that starts another.
What lies in lib goes elsewhere, because `pip install --target` leaves out a folder of that name: plugins to libexec, where the
engine finds them too, and what CMake looks for to share.
"""

import base64
import hashlib
import json
import sys
import time
import tomllib
import zipfile
from pathlib import Path

from archive import PROJECT, commit_time, files_below, mode_of, python_files, version
from notices import all_licences

TAG = "py3-none-manylinux_2_28_x86_64"
# The folders of pip's --target, by what is in lib.
IN_PLACE_OF_LIB = {"hpcbatch": "libexec", "cmake": "share"}
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
        yield f"{data}/{place_of(name)}", path.read_bytes(), mode_of(path)
    for path, name in files_below(notices):
        yield f"{info}/licenses/{name}", path.read_bytes(), 0o644
    yield f"{info}/licenses/LICENSE", (PROJECT / "LICENSE").read_bytes(), 0o644
    yield f"{info}/METADATA", metadata(notices).encode(), 0o644
    yield f"{info}/entry_points.txt", entry_points().encode(), 0o644
    yield f"{info}/WHEEL", WHEEL.encode(), 0o644


def place_of(name):
    """Where in the wheel's .data an installed file lies."""
    first, _, rest = name.partition("/")
    if first == "bin":
        return f"scripts/{rest}"
    if first != "lib":
        return f"data/{name}"
    return f"data/{IN_PLACE_OF_LIB[rest.split('/')[0]]}/{rest}"


def project():
    """What the Python package says of itself."""
    return tomllib.loads((PROJECT / "python" / "pyproject.toml").read_text())["project"]


def metadata(notices):
    """packaging.python.org, core metadata 2.4; the licences are those of all that is inside."""
    said = project()
    sbom = json.loads((notices / "sbom.cdx.json").read_text())
    files = ["LICENSE", *(name for _, name in files_below(notices) if name.endswith(".txt"))]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {said['name']}",
        f"Version: {version()}",
        f"Summary: {said['description']}",
        f"License-Expression: {all_licences(sbom)}",
        *(f"License-File: {name}" for name in files),
        f"Requires-Python: {said['requires-python']}",
        *(f"Project-URL: {name}, {url}" for name, url in said.get("urls", {}).items()),
        *(f"Classifier: {one}" for one in said["classifiers"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*lines, "", (PROJECT / "python" / said["readme"]).read_text()])


def entry_points():
    """By what other packages find ours (packaging.python.org, entry points specification)."""
    groups = project()["entry-points"]
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
