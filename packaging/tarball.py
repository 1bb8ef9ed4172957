#!/usr/bin/env python3
"""Makes the archive that is unpacked anywhere and works from there.

    tarball.py INSTALLED NOTICES FOLDER       prints its path, in FOLDER
"""

import gzip
import io
import sys
import tarfile
from pathlib import Path

from archive import PROJECT, commit_time, files_below, mode_of, python_files, version


def contents(installed, notices):
    yield from ((path, name, mode_of(path)) for path, name in files_below(installed))
    yield from ((path, f"lib/python/{name}", 0o644) for path, name in python_files())
    yield from ((path, f"share/doc/hpcbatch/{name}", 0o644) for path, name in files_below(notices))
    yield PROJECT / "LICENSE", "share/doc/hpcbatch/LICENSE", 0o644


def main():
    installed, notices, folder = map(Path, sys.argv[1:])
    top = f"hpcbatch-{version()}"
    path = folder / f"{top}-linux-x86_64.tar.gz"
    with gzip.GzipFile(path, "wb", 9, mtime=commit_time()) as file, tarfile.open(
        fileobj=file, mode="w", format=tarfile.PAX_FORMAT
    ) as archive:
        for source, name, mode in contents(installed, notices):
            content = source.read_bytes()
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), commit_time(), mode
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(content))
    print(path)


if __name__ == "__main__":
    main()
