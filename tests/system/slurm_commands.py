"""The commands that `hpcbatch slurm-commands` and `pbs-commands` make, first in the PATH of a test's engine."""

import subprocess

from engine_at_home import Result, wait_until


class Commands:
    """A folder of Slurm's, first in PATH of whoever takes `env`."""

    system = "slurm"

    def __init__(self, home):
        self.home = home
        self.folder = home.directory / self.system
        home.ok(f"{self.system}-commands", self.folder)
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


class PbsCommands(Commands):
    system = "pbs"

    def submit(self, *words, **options):
        return self.ok("qsub", *words, **options).strip()

    def attributes(self, job):
        """What `qstat -x -f` tells of it."""
        lines = self.ok("qstat", "-x", "-f", "-w", job).splitlines()
        return dict(line.strip().split(" = ", 1) for line in lines if " = " in line)

    def state(self, job):
        return self.attributes(job)["job_state"]

    def wait(self, *jobs):
        wait_until(lambda: all(self.state(job) in "FX" for job in jobs), 60, f"the end of {jobs}")
