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


# By Debian's name of the source: SPDX, of what of it is linked. docs of SPDX: https://spdx.org/licenses/
LICENCES = {
    "boost1.81": "BSL-1.0",
    "cli11": "BSD-3-Clause",
    "dmlc-core": "Apache-2.0",
    "ffmpeg": "LGPL-2.1-or-later",
    "fmtlib": "MIT",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "googletest": "BSD-3-Clause",
    "libarchive": "BSD-2-Clause",
    "libsodium": "ISC",
    "libssh": "LGPL-2.1-or-later",
    "libzstd": "BSD-3-Clause",
    "mimalloc": "MIT",
    "muparser": "BSD-2-Clause",
    "onetbb": "Apache-2.0",
    "openssl": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "spdlog": "MIT",
    "sqlite3": "blessing",
    "tomlplusplus": "MIT",
    "xgboost": "Apache-2.0",
    "yaml-cpp": "MIT",
    "zlib": "Zlib",
}
OURS = "Apache-2.0"


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


def component(source, number):
    if source not in LICENCES:
        sys.exit(f"packaging/notices.py: what licence has {source}? Look at its copyright file, and add it to LICENCES")
    return {
        "type": "library",
        "name": source,
        "version": number,
        "licenses": [{"expression": LICENCES[source]}],
        "purl": f"pkg:deb/debian/{source}@{number}?arch=source&distro=bookworm",
    }


def all_licences(sbom):
    """One SPDX expression of what the list's application and its components have; each licence once."""
    others = {one["licenses"][0]["expression"] for one in sbom["components"]}
    return " AND ".join([OURS, *sorted(others - {OURS})])


def write_notices(found, folder):
    """`found`: source, version and file of licences; a source of which several packages are inside comes several times."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    by_source = {(source, number): licences for source, number, licences in sorted(found, reverse=True)}
    for (source, _), licences in by_source.items():
        shutil.copyfile(licences, folder / f"{source}.txt")
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
                "licenses": [{"license": {"id": OURS}}],
            },
        },
        "components": [component(source, number) for source, number in sorted(by_source)],
    }
    (folder / "sbom.cdx.json").write_text(json.dumps(sbom, indent=1) + "\n")


def main():
    work, folder = map(Path, sys.argv[1:])
    write_notices(parts(work), folder)


if __name__ == "__main__":
    main()
