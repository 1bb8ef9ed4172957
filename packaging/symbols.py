#!/usr/bin/env python3
"""Says what the programs and plugins below a folder ask of a machine, and exits 1 if that is more than glibc 2.28.

    symbols.py FOLDER
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from archive import files_below

OLDEST = (2, 28)
MAY_NEED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


def told(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


def main():
    wrong, newest, count = [], defaultdict(list), 0
    for path, name in files_below(Path(sys.argv[1])):
        if path.read_bytes()[:4] != b"\x7fELF":
            continue
        count += 1
        headers = told("objdump", "-p", path)
        for needed in re.findall(r"NEEDED\s+(\S+)", headers):
            if needed not in MAY_NEED:
                wrong.append(f"{name} needs {needed}, which is not of glibc")
        if "Dynamic Section" not in headers:
            continue  # static
        for line in told("objdump", "-T", path).splitlines():
            asked = re.search(r"\*UND\*.*\(?\b([A-Z]+)_([\d.]+)\)?\s+(\S+)$", line)
            if not asked:
                continue
            if asked[1] != "GLIBC" or number(asked[2]) > OLDEST:
                wrong.append(f"{name} asks for {asked[3]} of {asked[1]} {asked[2]}")
            else:
                newest[number(asked[2])].append(asked[3])
    if not count:
        wrong.append("there is no program in it")
    for line in wrong:
        print(f"symbols.py: {line}", file=sys.stderr)
    if newest:
        most = max(newest)
        print(
            f"{count} programs and plugins; the newest glibc that they ask for is {'.'.join(map(str, most))}"
            f" ({', '.join(sorted(set(newest[most]))[:5])})"
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
