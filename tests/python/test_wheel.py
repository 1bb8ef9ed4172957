"""The wheel: what it says of itself and of what is inside, and that pip installs a working program from it."""

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build/release"
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "tests/system")]

import archive  # noqa: E402
import notices  # noqa: E402
from engine_at_home import EngineAtHome  # noqa: E402

PROGRAM = "bin/hpcbatch"
INSTALLED = {
    PROGRAM: "#!/bin/sh\necho ours\n",
    "lib/hpcbatch/schedulers/local.so": "a plugin\n",
    "lib/cmake/hpcbatch/hpcbatchConfig.cmake": "# CMake\n",
    "share/hpcbatch/tools/any.yaml": "name: any\n",
}


def wheel_of(installed, folder):
    """Of what lies in `installed`, and of two libraries, one in two packages."""
    copyrights = [folder / "of-ssh", folder / "of-avcodec", folder / "of-avformat"]
    for path in copyrights:
        path.write_text(f"{path.name}\n")
    found = zip(("libssh", "ffmpeg", "ffmpeg"), ("0.10.6-1", "7:5.1.9-1", "7:5.1.9-1"), copyrights)
    notices.write_notices(found, folder / "notices")
    made = subprocess.run(
        [sys.executable, ROOT / "packaging/wheel.py", installed, folder / "notices", folder],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.strip())


def in_target(wheel, folder):
    """What `pip install --target` makes of it, and the Python that did."""
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    python = folder / "venv/bin/python"
    words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--target", folder / "target"]
    done = subprocess.run([python, *words, wheel], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return python, folder / "target"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    for name, text in INSTALLED.items():
        path = folder / "installed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name == PROGRAM else 0o644)
    return wheel_of(folder / "installed", folder)


def test_a_wheel_says_what_it_is(small):
    said = importlib.metadata.PathDistribution(zipfile.Path(small, f"hpcbatch-{archive.version()}.dist-info/")).metadata
    assert (said["Name"], said["Version"], said["Requires-Python"]) == ("hpcbatch", archive.version(), ">=3.9")
    assert said["License-Expression"] == "Apache-2.0 AND LGPL-2.1-or-later"
    assert said["License"] is None, "it goes with no expression"
    assert set(said.get_all("License-File")) == {"LICENSE", "ffmpeg.txt", "libssh.txt"}
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload() == (ROOT / "python/README.md").read_text()
    assert "Programming Language :: Python :: 3.13" in said.get_all("Classifier")
    with zipfile.ZipFile(small) as wheel:
        inside = {name.partition("/licenses/")[2] for name in wheel.namelist()}
    assert {*said.get_all("License-File"), "sbom.cdx.json"} <= inside


def test_each_library_is_listed_once_with_version_and_licence(small):
    with zipfile.ZipFile(small) as wheel:
        sbom = json.loads(wheel.read(f"hpcbatch-{archive.version()}.dist-info/licenses/sbom.cdx.json"))
    listed = [(one["name"], one["version"], one["licenses"]) for one in sbom["components"]]
    lgpl = [{"expression": "LGPL-2.1-or-later"}]
    assert listed == [("ffmpeg", "7:5.1.9-1", lgpl), ("libssh", "0.10.6-1", lgpl)]


def test_a_library_whose_licence_nobody_has_named_is_refused(tmp_path):
    (tmp_path / "copyright").write_text("all rights\n")
    with pytest.raises(SystemExit, match="what licence has newlib"):
        notices.write_notices([("newlib", "1", tmp_path / "copyright")], tmp_path / "notices")


def test_licences_are_named_of_all_that_is_built_for_packages():
    built = re.search(r"^for name in (.*); do$", (ROOT / "packaging/libraries").read_text(), re.M)[1].split()
    assert set(built) <= notices.LICENCES.keys()


def test_all_of_it_is_there_after_an_install_into_a_folder(small, tmp_path):
    python, target = in_target(small, tmp_path)
    there = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert {
        PROGRAM,
        "libexec/hpcbatch/schedulers/local.so",
        "share/cmake/hpcbatch/hpcbatchConfig.cmake",
        "share/hpcbatch/tools/any.yaml",
        "hpcbatch/client.py",
        "hpcbatch_dropbox.py",
        "hpcbatch_dropbox-stubs/__init__.pyi",
    } <= there
    done = subprocess.run(
        [python, "-m", "hpcbatch"], env=os.environ | {"PYTHONPATH": str(target)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "ours\n"), done.stderr


def test_a_program_that_was_installed_into_a_folder_runs_tasks(tmp_path):
    words = ["cmake", "--install", RELEASE, "--prefix", tmp_path / "installed"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    python, target = in_target(wheel_of(tmp_path / "installed", tmp_path), tmp_path)
    with EngineAtHome(prefix=target) as at:
        assert at.ok("run", "--", "echo", "hi") == "hi\n"
        assert "libexec/hpcbatch" in at.ok("doctor")
        done = subprocess.run(
            [python, "-m", "hpcbatch", "run", "--", "echo", "hi"],
            env=at.env | {"PYTHONPATH": str(target)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
