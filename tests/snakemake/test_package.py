"""The Python packages install from a copy of their folder, and from a source distribution of it: nothing in them leads out."""

import filecmp
import shutil
import subprocess

import pytest
from snakemake_bed import ROOT

# What the shims use of the package.
OF_THE_PACKAGE = ["__init__.py", "client.py", "feed.py", "fork_service.py"]
CARRIED = {"snakemake": "snakemake_executor_plugin_hpcbatch", "galaxy": "hpcbatch_galaxy"}
PACKAGES = CARRIED | {"snakemake/scheduler": "snakemake_scheduler_plugin_hpcbatch", "python": "hpcbatch"}


@pytest.mark.parametrize("folder", CARRIED)
def test_what_a_package_carries_is_what_it_is_a_copy_of(folder):
    source, copy = ROOT / "python/hpcbatch", ROOT / folder / CARRIED[folder] / "hpcbatch"
    assert sorted(path.name for path in copy.glob("*.py")) == OF_THE_PACKAGE
    assert filecmp.cmpfiles(source, copy, OF_THE_PACKAGE, shallow=False)[1:] == ([], []), "./dev fmt renews it"


@pytest.mark.parametrize("folder", PACKAGES)
def test_no_link_leads_out_of_a_package(folder):
    found = [*(ROOT / folder).glob("*"), *(ROOT / folder / PACKAGES[folder]).rglob("*")]
    assert [path for path in found if path.is_symlink()] == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_package_installs_from_a_copy_and_from_its_source_distribution(python, folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / folder, copy, symlinks=True, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    made = subprocess.run([python, "-c", "import setuptools.build_meta as backend; print(backend.build_sdist('dist'))"], cwd=copy,
                          capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    sdist = copy / "dist" / made.stdout.split()[-1]
    wanted = {path.relative_to(ROOT / folder) for path in (ROOT / folder / PACKAGES[folder]).rglob("*.py")}
    for what in (copy, sdist):
        into = tmp_path / ("site-of-" + what.name)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target",
                               into / "site", what], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert {path.relative_to(into / "site") for path in (into / "site" / PACKAGES[folder]).rglob("*.py")} == wanted
