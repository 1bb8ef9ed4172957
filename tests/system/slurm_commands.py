"""The commands that `hpcbatch slurm-commands` makes, first in the PATH of a test's engine."""

import subprocess

from engine_at_home import Result, wait_until


class Commands:
    """A folder of them, first in PATH of whoever takes `env`."""

    def __init__(self, home):
        self.home = home
        self.folder = home.directory / "slurm"
        home.ok("slurm-commands", self.folder)
        home.env["PATH"] = f"{self.folder}:{home.env['PATH']}"
        self.env = home.env

    def call(self, *words, stdin=None, **env):
        done = subprocess.run(
            [str(word) for word in words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.home.directory,
            env=self.env | env,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *words, **options):
        result = self.call(*words, **options)
        assert result.code == 0, f"{words} exited {result.code}:\n{result.out}{result.err}"
        return result.out

    def submit(self, *words, **options):
        return self.ok("sbatch", "--parsable", *words, **options).strip()

    def state(self, job):
        return self.ok("sacct", "-X", "-n", "-P", "-o", "State", "-j", job).strip()

    def wait(self, *jobs):
        def is_over():
            return all(word not in self.state(job) for job in jobs for word in ("PENDING", "RUNNING", "COMPLETING"))

        wait_until(is_over, 60, f"the end of {jobs}")
