"""A real engine with real pilots in a directory of its own, which is removed with all of them at the end."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from common import processes
from common.client import Client

ROOT = pathlib.Path(__file__).parents[2]
PREFIX = pathlib.Path(os.environ.get("HPCBATCH_BENCH_PREFIX", ROOT / "build/release"))

# A pilot whose workspace this names rehearses: each task ends well as soon as it starts.
RUNS_NOTHING = "export HPCBATCH_PILOT_RUNS_NOTHING={directory}/workspace"


def one_pilot(cpus, setup=(), pilots=1, memory="64G", walltime="12h"):
    """A configuration with so many pilots of this machine, of so many cpus each (which need not be there)."""
    lines = "".join(f"\n      - {line}" for line in setup)
    return f"""sites:
  - name: here
    scheduler: local
    transport: shared_fs
    workspace: {{directory}}/workspace
    max_queued: {pilots}
    max_running: {pilots}
    setup:{lines or ' []'}
    shapes:
      - {{{{name: all, cpus: {cpus}, memory: {memory}, walltime: {walltime}}}}}
"""


class PrivateEngine:
    """Use it as a context. `configuration` is YAML in which `{directory}` stands for the private directory; None: the
    engine's own choice, a pilot as large as this machine."""

    def __init__(self, configuration=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hbb-", dir=os.environ.get("HPCBATCH_BENCH_DIR", "/tmp")))
        self.home = self.directory / "home"
        self.program = PREFIX / "bin/hpcbatch"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HPCBATCH_", "XDG_", "SLURM_"))
        }
        self.environment = kept | {"HOME": str(self.directory), "HPCBATCH_HOME": str(self.home)}
        if configuration is not None:
            file = self.directory / "config.yaml"
            file.write_text(configuration.format(directory=self.directory))
            self.environment["HPCBATCH_CONFIG"] = str(file)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        try:
            self.verb("engine", "stop", "--now", check=False)
            self._until(lambda: not self._left(), 30, "the end of all that was started")
        finally:
            for pid in self._left():
                os.kill(pid, 9)
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        self.verb("engine", "start")
        self.client = Client(self.home / "socket")
        self.pid = self.client.get("/v1/engine")["pid"]

    def kill(self):
        os.kill(self.pid, 9)
        self._until(lambda: processes.program_of(self.pid) == "", 10, "the end of the engine")

    def verb(self, *words, check=True, **options):
        done = subprocess.run(
            [self.program, *map(str, words)],
            env=self.environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **options,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"hpcbatch {words[:4]} exited {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def warm_up(self):
        """Until a pilot is there and has run something; the figures are those of a system at work. Its process id, in a list."""
        self.run({"command": ["true"], "array": "1-50"})
        return self.pilots()

    def gather_pilots(self, pilots, cpus):
        """Until so many rehearsing pilots are there: so many tasks, of which none leaves room for another in one pilot of 12 h."""
        array = self.client.submit({"command": ["sleep", "3000"], "cpus": cpus, "array": f"1-{pilots}", "time": "11h"})
        self._until(
            lambda: self.client.get(f"/v1/arrays/{array[0]}")["counts"]["running"] == pilots,
            120,
            f"{pilots} pilots at work",
        )
        self.client.post("/v1/tasks/cancel", {"ids": array})
        self.client.wait(array, must_succeed=False)

    def pilots(self):
        """Process ids of the pilots themselves, not of those who keep them."""
        found = [pid for pid in self._left() if processes.program_of(pid).startswith("hpcbatch-pilot")]
        parents = {processes.parent_of(pid) for pid in found}
        return [pid for pid in found if pid not in parents]

    def run(self, *tasks):
        """Seconds from handing tasks in until the last has ended, all of them well."""
        begin = time.perf_counter()
        self.client.wait(self.client.submit(*tasks))
        return time.perf_counter() - begin

    def cpu_per_task(self, count, work):
        """Microseconds of the engine's CPU for each of so many tasks that `work` does."""
        before = processes.cpu_seconds(self.pid)
        work()
        return (processes.cpu_seconds(self.pid) - before) / count * 1e6

    def wait_of_one(self):
        """Milliseconds from a submit to the start of its task, by the clock that client and pilot share here."""
        submitted = time.time()
        (id,) = self.client.submit({"command": ["true"], "directory": "/"})
        self.client.wait([id])
        return (self.client.get(f"/v1/tasks/{id}")["started_at"] - submitted) * 1e3

    def _left(self):
        """What runs with our home in its environment."""
        mark = f"HPCBATCH_HOME={self.home}\0".encode()
        return [
            pid
            for pid in processes.all_of_ours()
            if mark in processes.surroundings_of(pid) or str(self.directory).encode() in processes.command_of(pid)
        ]

    @staticmethod
    def _until(condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not come within {seconds} s")
            time.sleep(0.02)
