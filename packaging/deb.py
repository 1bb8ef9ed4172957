#!/usr/bin/env python3
"""Makes Debian packages: `hpcbatch`, and `hpcbatch-dev` for those who write plugins.

    deb.py INSTALLED NOTICES FOLDER       prints their paths, in FOLDER

They need no library of the release they are installed on, so that one serves Debian 10, Ubuntu 20.04 and all newer.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from archive import PROJECT, files_below, mode_of, python_files, version

ABOUT = {
    "hpcbatch": {
        "Section": "science",
        "Depends": "libc6 (>= 2.28)",
        "Recommends": "python3 (>= 3.9)",
        "Description": "runs many small tasks inside few batch jobs\n"
        " hpcbatch keeps the right number of pilots in the queue of a batch system (SLURM, PBS,\n"
        " or just this machine); a pilot that gets its allocation runs tasks back to back until\n"
        " time or work is used up.",
    },
    "hpcbatch-dev": {
        "Section": "libdevel",
        "Depends": f"hpcbatch (= {version()})",
        "Recommends": "cmake, g++",
        "Description": "headers for plugins of hpcbatch\n"
        " Schedulers, transports, tools and estimators for hpcbatch are written with these headers\n"
        " and find_package(hpcbatch) of CMake.",
    },
}
OF_DEV = ("include/", "lib/cmake/", "share/hpcbatch/plugin-kit/")
UNIT = """[Unit]
Description=The engine of hpcbatch
Documentation=man:hpcbatch(1)

[Service]
ExecStart=/usr/bin/hpcbatch engine run
ExecStop=/usr/bin/hpcbatch engine stop
Restart=on-failure
# Tasks outlive an engine: a new one takes them up.
KillMode=process

[Install]
WantedBy=default.target
"""


def put(root, name, content, mode=0o644):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def fill(root, package, installed, notices):
    for path, name in files_below(installed):
        if name.startswith(OF_DEV) == (package == "hpcbatch-dev"):
            put(root, f"usr/{name}", path.read_bytes(), mode_of(path))
    put(root, f"usr/share/doc/{package}/copyright", (PROJECT / "LICENSE").read_bytes())
    if package == "hpcbatch":
        put(root, "usr/lib/systemd/user/hpcbatch.service", UNIT.encode())
        for path, name in python_files():
            put(root, f"usr/lib/python3/dist-packages/{name}", path.read_bytes())
        for path, name in files_below(notices):
            put(root, f"usr/share/doc/hpcbatch/{name}", path.read_bytes())


def control(root, package):
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    lines = [
        f"Package: {package}",
        f"Version: {version()}",
        "Architecture: amd64",
        "Priority: optional",
        "Maintainer: hpcbatch developers <hpcbatch@localhost>",
        f"Installed-Size: {size}",
    ]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in ABOUT[package].items())]) + "\n"


def main():
    installed, notices, folder = map(Path, sys.argv[1:])
    for package in ABOUT:
        with tempfile.TemporaryDirectory() as work:
            root = Path(work) / package
            fill(root, package, installed, notices)
            put(root, "DEBIAN/control", control(root, package).encode())
            for path in [root, *root.rglob("*")]:
                if path.is_dir():
                    path.chmod(0o755)
            built = folder / f"{package}_{version()}_amd64.deb"
            subprocess.run(
                ["dpkg-deb", "-Zxz", "--root-owner-group", "--build", root, built],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            print(built)


if __name__ == "__main__":
    main()
