"""The Python packages install from a copy of their folder, and from a source distribution of it: nothing in them leads out."""

import re
import shutil
import subprocess

import pytest
from snakemake_bed import ROOT

PACKAGES = {
    "python": "hpcbatch",
    "snakemake": "snakemake_executor_plugin_hpcbatch",
    "snakemake/scheduler": "snakemake_scheduler_plugin_hpcbatch",
    "galaxy": "hpcbatch_galaxy",
}


def test_what_is_installed_together_has_one_version():
    version = re.search(r"project\(hpcbatch VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for folder in PACKAGES:
        said = (ROOT / folder / "pyproject.toml").read_text()
        assert f'\nversion = "{version}"\n' in said, f"{folder}: ./dev fmt renews it"
        assert folder == "python" or f'"hpcbatch=={version}"' in said, f"{folder}: ./dev fmt renews it"


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_link_leads_out_of_a_package(folder):
    found = [*(ROOT / folder).glob("*"), *(ROOT / folder / PACKAGES[folder]).rglob("*")]
    assert [path for path in found if path.is_symlink()] == []


def modules_of(folder, package):
    """What Python and type checkers read: the package, and what lies beside it under a name that begins like its own."""
    return {
        path.relative_to(folder)
        for path in [*folder.glob(f"{package}_*.py"), *folder.glob(f"{package}*/**/*")]
        if path.suffix in (".py", ".pyi") or path.name == "py.typed"
    }


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_package_installs_from_a_copy_and_from_its_source_distribution(python, folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(
        ROOT / folder, copy, symlinks=True, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    )
    made = subprocess.run(
        [python, "-c", "import setuptools.build_meta as backend; print(backend.build_sdist('dist'))"],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sdist = copy / "dist" / made.stdout.split()[-1]
    wanted = modules_of(ROOT / folder, PACKAGES[folder])
    for what in (copy, sdist):
        into = tmp_path / ("site-of-" + what.name)
        done = subprocess.run(
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--target",
                into / "site",
                what,
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert modules_of(into / "site", PACKAGES[folder]) == wanted
