"""A real SLURM for the whole session, and an engine of one test's own with one site on it."""

import collections
import contextlib
import json
import os
import pathlib
import signal
import sys

import pytest

from engine_at_home import EngineAtHome, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "slurm"))
from bed import Slurm  # noqa: E402

LONG = bool(os.environ.get("HPCBATCH_LONG"))
SMALL = {"name": "small", "partition": "cpu", "cpus": 2, "memory": "1G", "walltime": "30m"}
# Each task says that it ran; O_APPEND keeps the lines of two apart. The shell is what a task costs here.
SAY = "echo $HPCBATCH_TASK_ID >> {}"

BatchJob = collections.namedtuple("BatchJob", "number name state nodes")


class SlurmSite(EngineAtHome):
    """`keys` are those of the site in the configuration, over ones that suit a test."""

    def __init__(self, slurm, *shapes, user=0, **keys):
        self.slurm = slurm
        super().__init__(user=user, SLURM_CONF=slurm.conf)
        site = {
            "name": "cluster",
            "scheduler": "slurm",
            "transport": {"plugin": "shared_fs", "environment": {"SLURM_CONF": slurm.conf}},
            "workspace": str(self.directory / "w"),
            "interface": "127.0.0.1",
            "idle_after": "1s",
            "poll_every": "500ms",
            "settle_after": "4s",
            "shapes": list(shapes) or [SMALL],
        } | keys
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        self.configure(json.dumps({"sites": [site], "tool_path": [str(self.tools)]}, indent=1))
        self.said = self.directory / "said"

    def say(self):
        """The command of a task that notes its id."""
        return "--", "sh", "-c", SAY.format(self.said)

    def lines(self):
        return self.said.read_text().splitlines() if self.said.exists() else []

    def must_have_said(self, array, count):
        """Every task of the array was started exactly once and has one result, a good one."""
        starts = collections.Counter(line for line in self.lines() if line.startswith(f"{array}."))
        twice = {task: n for task, n in starts.items() if n != 1}
        assert not twice, f"started more than once: {twice}\n{self.log_end()}"
        assert len(starts) == count, f"{len(starts)} of {count} tasks were started\n{self.log_end()}"
        counts = self.show(array)["counts"]
        assert counts["done"] == count and sum(counts.values()) == count, counts

    def batch_jobs(self):
        """All batch jobs that this site ever asked for, the ended ones too."""
        lines = self.slurm.ask("squeue", "-a", "-h", "-t", "all", "-o", "%i|%T|%N|%o").splitlines()
        rows = [line.split("|") for line in lines]
        return [BatchJob(row[0], self.name_by(row[3]), row[1], row[2]) for row in rows if self.is_ours(row[3])]

    def is_ours(self, script):
        return script.startswith(str(self.directory))

    @staticmethod
    def name_by(script):
        """Our script has the name of its batch job; names themselves are not listed, for those of others may hold lines."""
        return pathlib.Path(script).stem

    def write_what_slurm_saw(self):
        """The batch jobs as records of an outside observer. SLURM tells seconds: of one second, ends come
        first; too coarse for the limits of the site, which is why they name another one."""
        order = {"job-ended": 0, "job-running": 1, "job-created": 2}
        records = []
        asked = "squeue", "-a", "-h", "-t", "all", "-o", "%i|%V|%S|%e|%T|%o"
        lines = self.slurm.ask("env", "SLURM_TIME_FORMAT=%s", *asked).splitlines()
        for number, created, running, ended, state, script in (line.split("|") for line in lines):
            if not self.is_ours(script):
                continue
            name = self.name_by(script)
            over = state not in ("PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED")
            for what, when in (
                ("job-created", created),
                ("job-running", running),
                ("job-ended", ended if over else ""),
            ):
                if when.isdigit() and not (what == "job-running" and state == "PENDING"):
                    records.append((int(when), order[what], f"outside {what} name={name} number={number} site=slurm"))
        lines = [f"{second * 1_000_000} {text}\n" for second, _, text in sorted(records)]
        (self.history / "outside.history").write_text("".join(lines))
        return len(lines)

    def broken_promises(self):
        self.write_what_slurm_saw()
        return super().broken_promises()

    def living_jobs(self):
        return [job for job in self.batch_jobs() if job.state in ("PENDING", "RUNNING", "CONFIGURING", "COMPLETING")]

    def must_be_single(self):
        """No allocation was asked for twice: no two batch jobs have one name. Returns how many there were."""
        names = [job.name for job in self.batch_jobs()]
        assert len(names) == len(set(names)), names
        known = {allocation["name"] for allocation in self.json("allocations")}
        assert set(names) <= known, "batch jobs that the engine does not know"
        return len(names)

    def wait_for_lines(self, count, seconds=60):
        try:
            wait_until(lambda: len(self.lines()) >= count, seconds, f"{count} tasks' start")
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.json('pilots')}; {self.batch_jobs()}\n{self.log_end()}") from None

    def kill_pilots(self):
        """Kills all pilots with KILL, and their keepers, none of them seeing the other go; their tasks end with them."""
        pids = self.pilot_pids()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def pilots(self, count=1, seconds=30):
        """The pilots, once at least `count` of them are connected."""
        return wait_until(lambda: (p := self.json("pilots")) and len(p) >= count and p, seconds, f"{count} pilots")

    def explained(self, task, words, seconds=30):
        """What `explain` says of the task, once these words are in it."""
        text = ""

        def says():
            nonlocal text
            text = self.ok("explain", task)
            return words.lower() in text.lower()

        wait_until(says, seconds, f"explain's saying '{words}'")
        return text

    def attempts(self, task):
        return self.show(task).get("attempts", [])


@pytest.fixture(scope="session")
def slurm():
    """The four nodes of tests/slurm/cluster; ended batch jobs stay in squeue, so that tests can count them."""
    with Slurm("--fast", "--set", "MinJobAge=3600") as bed:
        yield bed


@pytest.fixture
def site(slurm):
    with SlurmSite(slurm) as engine:
        yield engine
