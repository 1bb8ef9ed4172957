#!/usr/bin/env python3
"""Gathers what goes with the libraries that are inside of what we hand out: their licences, and a list of them all.

    notices.py WORK FOLDER      FOLDER has one file of licences for each source, and sbom.cdx.json (CycloneDX 1.5)
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from archive import commit_time, version

# In headers alone: no linker sees them.
HEADERS = ["libboost1.81-dev", "libcli11-dev"]


def told(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def of_package(package):
    """Source, version and licences of a package of Debian's."""
    source, number = (
        told("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n", package).splitlines()[0].split()
    )
    return source, number, Path("/usr/share/doc") / package.split(":")[0] / "copyright"


def of_source(folder):
    first = (folder / "debian" / "changelog").read_text().splitlines()[0]
    source, number = re.match(r"(\S+) \(([^)]+)\)", first).groups()
    return source, number, folder / "debian" / "copyright"


def parts(work):
    archives = {line for listed in (work / "linked").iterdir() for line in listed.read_text().splitlines()}
    built = work / "libraries" / "lib"
    yield from (of_package(package) for package in HEADERS)
    if any(Path(archive).is_relative_to(built) for archive in archives):
        yield from (
            of_source(source.parent.parent) for source in (work / "libraries" / "sources").glob("*/debian/changelog")
        )
    for archive in archives:
        if not Path(archive).is_relative_to(work):
            yield of_package(told("dpkg", "-S", str(Path(archive).resolve())).split(": ")[0])


def main():
    work, folder = map(Path, sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    components = []
    for source, number, licences in sorted(set(parts(work))):
        shutil.copyfile(licences, folder / f"{source}.txt")
        components.append(
            {
                "type": "library",
                "name": source,
                "version": number,
                "purl": f"pkg:deb/debian/{source}@{number}?arch=source&distro=bookworm",
            }
        )
    sbom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": told("date", "-u", "-d", f"@{commit_time()}", "+%FT%TZ").strip(),
            "component": {
                "type": "application",
                "name": "hpcbatch",
                "version": version(),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
    }
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom, indent=1) + "\n")


if __name__ == "__main__":
    main()
