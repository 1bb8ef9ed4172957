"""Small jobs through programs of Python that know Slurm, as bench/helpers/doors.py has them."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from programs_of_clients import clients_python
from slurm_commands import Commands

HELPER = pathlib.Path(__file__).parents[1] / "helpers/doors.py"
# Parsl and dask start workers, and hand out calls to them: few batch jobs anyhow.
PROGRAMS = ("loop", "submitit", "psij", "toil", "snakemake", "parsl", "dask")
LONGEST = 3600


def srun_of(slurm, folder):
    """A folder with an srun that finds the bed's Slurm: Snakemake's plugin hands no SLURM_CONF on to its jobs."""
    place = pathlib.Path(folder, "bin")
    place.mkdir()
    srun = place / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={slurm.conf} exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    return place


def python_program(name, site, count, commands):
    """Jobs per second, of the whole program from its start to its end."""
    python = clients_python()
    env = Commands(site).env if commands else site.slurm.env
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = f"{env.get('PATH', os.environ['PATH'])}:{pathlib.Path(python).parent}"
        if not commands:
            path = f"{srun_of(site.slurm, folder)}:{path}"
        done = subprocess.run(
            [python, HELPER, name, str(count)],
            cwd=folder,
            env=os.environ | env | {"PATH": path, "HOME": folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    assert done.returncode == 0, f"{name}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return count / float(done.stdout.split()[-1])
