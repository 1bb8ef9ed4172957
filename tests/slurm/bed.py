"""A real SLURM for one test or one module of tests: starts tests/slurm/cluster, asks it, stops it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

from patience import wait_until  # noqa: E402,F401

CLUSTER = pathlib.Path(__file__).with_name("cluster")


class Slurm:
    """Use it as a context: `with Slurm("--fast") as slurm`. It lies in a short path of its own below /tmp."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="hb-slurm-", dir="/tmp")
        try:
            self.cluster("start", "--owner", str(os.getpid()), *self.options)
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise
        self.conf = f"{self.dir}/etc/slurm.conf"
        self.env = dict(os.environ, SLURM_CONF=self.conf)
        return self

    def __exit__(self, *_):
        self.cluster("stop")
        shutil.rmtree(self.dir)

    def cluster(self, verb, *arguments):
        """One verb of tests/slurm/cluster, such as ("node-kill", "n1")."""
        done = subprocess.run(
            [CLUSTER, verb, self.dir, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, f"cluster {verb} exited {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *argv, **options):
        """What a SLURM client prints."""
        done = subprocess.run(
            argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **options
        )
        assert done.returncode == 0, f"{' '.join(argv)} exited {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def submit(self, script, *options):
        """Submits the lines of a shell script; returns the number of the batch job."""
        done = subprocess.run(
            ["sbatch", "--parsable", *options],
            input="#!/bin/sh\n" + script,
            env=self.env,
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
