"""Snakemake's own standard tests of an executor, on this machine and through a real SLURM."""

import subprocess

import pytest
from snakemake_bed import HERE


def run_harness(bed, mode):
    done = subprocess.run(
        [
            str(bed.python),
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-q",
            str(HERE / "harness.py"),
            "--rootdir",
            str(HERE),
            "--noconftest",
        ],
        cwd=bed.folder,
        env=bed.env | {"HARNESS_MODE": mode},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr + bed.engine.log_end()
    assert "passed" in done.stdout and "failed" not in done.stdout and "skipped" not in done.stdout, done.stdout


@pytest.mark.parametrize("mode", ["", "warm", "relaunch"])
def test_the_standard_harness_on_this_machine(bed, mode):
    run_harness(bed, mode)


def test_the_standard_harness_on_slurm(slurm_bed):
    run_harness(slurm_bed, "")
    assert slurm_bed.engine.batch_jobs()
