"""MPI tasks over 2 to 4 nodes beside small ones on a real SLURM: each cpu used once and most of them, whatever is killed."""

import collections
import os
import pathlib
import random
import signal
import time

import pytest
from bed import Slurm
from engine_at_home import processes_with, wait_until
from mpi_tasks import MPI_HERE, Programs, cpu_seconds, cpus_used_twice, kill, rows_of
from slurm_site import LONG, SlurmSite

MPI_TASKS, SMALL_TASKS = (200, 2000) if LONG else (12, 120)
BATCHES = 20 if LONG else 3
FAULTS = 20 if LONG else 2
# A result may be lost with its pilot; then its task runs again.
LOST = "node_lost", "pilot_killed"
# Two cpus are as many as this machine has: then pilots bind their tasks to them.
WIDE = {"name": "wide", "partition": "cpu", "nodes": 4, "cpus": 2, "memory": "2G", "walltime": "30m"}

Wanted = collections.namedtuple("Wanted", "nodes each")


@pytest.fixture(scope="module")
def cluster():
    with Slurm("--fast", "--nodes", "8", "--gpus", "v100:1") as slurm:
        yield slurm


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("mpi"))


class Campaign:
    """Tasks of both kinds in turns at one site, and the ledger of their processes."""

    def __init__(self, site, programs, seed):
        self.site, self.programs, self.draw = site, programs, random.Random(seed)
        self.ledger = site.directory / "ledger"
        self.ledger.touch()
        self.mpi, self.arrays = {}, {}

    def submit_mpi(self, nodes, each, seconds, limit="60s", retries=5):
        words = "--nodes", nodes, "--ntasks-per-node", each, "--name", "mpi", *self.words(limit, retries)
        task = self.site.submit(*words, "--", *self.programs.command(len(self.mpi), seconds))
        self.mpi[task] = Wanted(nodes, each)
        return task

    def submit_small(self, count, seconds):
        small = "--array", f"1-{count}", *self.words()
        self.arrays[self.site.submit(*small, "--", self.programs.small, seconds)] = count

    def words(self, limit="60s", retries=5):
        return "--time", limit, "--retries", retries, *MPI_HERE, "--env", f"LEDGER={self.ledger}"

    def submit_all(self, most_each, seconds):
        """In turns; each small array has a length of its own, up to that of the MPI tasks."""
        for batch in range(BATCHES):
            for _ in range(MPI_TASKS // BATCHES):
                self.submit_mpi(2 + len(self.mpi) % 3, self.draw.randint(1, most_each), seconds)
            self.submit_small(SMALL_TASKS // BATCHES, round(seconds * self.draw.uniform(0.3, 1), 1))

    def nodes_of(self, task):
        return self.mpi[task].nodes if task in self.mpi else 1

    def rows(self):
        return rows_of(self.ledger)

    def running(self, kind):
        return [row for row in self.rows() if row.state == "r" and row.kind == kind and time.time() - row.end < 1]

    def must_have_result(self, task):
        """One, of all ranks, which ran where the ledger says: as many on each of the task's nodes."""
        nodes, each = self.mpi[task]
        ranks = nodes * each
        total, count, *pilots = self.site.ok("log", task).split()
        assert (int(total), int(count)) == (ranks * (ranks + 1) // 2, ranks), task
        assert sorted(collections.Counter(pilots).values()) == [each] * nodes, (task, pilots)
        attempt = self.site.show(task)["attempt"]
        said = {
            row.rank: row.pilot for row in self.rows() if (row.task, row.attempt, row.kind) == (task, attempt, "rank")
        }
        assert [said[rank] for rank in range(ranks)] == pilots, (task, said)

    def must_have_used_each_cpu_once(self, capacity):
        rows = self.rows()
        assert not cpus_used_twice(rows, capacity)
        starts = collections.Counter((row.task, row.attempt, row.rank) for row in rows)
        assert not [start for start, times in starts.items() if times > 1]

    def used_over_held(self, capacity):
        """Cpu-hours that commands have used, over those of the batch jobs until their work was done."""
        held = sum(one["ended_at"] - one["started_at"] for one in self.site.json("allocations"))
        return cpu_seconds(self.rows(), self.nodes_of) / (held * capacity)

    def must_have_left_nothing(self):
        def left():
            return processes_with(f"LEDGER={self.ledger}") or list((self.site.directory / "w/work").glob("*.nodes-*"))

        wait_until(lambda: not left(), 30, "the end of what tasks had on their nodes")


class Faults:
    """So many of each kind, one at a time, while a campaign goes on; who was cancelled."""

    def __init__(self, campaign, counts):
        self.campaign, self.draw = campaign, campaign.draw
        self.due = [kind for kind, count in counts.items() for _ in range(count)]
        self.draw.shuffle(self.due)
        self.cancelled = set()

    def next(self):
        """Whether there was somebody to do it to."""
        if self.due and getattr(self, self.due[-1])():
            self.due.pop()

    def kill_a_rank(self):
        ranks = self.campaign.running("rank")
        return bool(ranks) and kill(self.draw.choice(ranks))

    def kill_a_pilot(self):
        rows = self.campaign.running("rank")
        if not rows:
            return False
        name = self.draw.choice(rows).pilot
        # It and its keeper, neither of which sees the other go.
        pids = [pid for pid in self.campaign.site.pilot_pids() if self.is_pilot(pid, name)]
        for number in signal.SIGSTOP, signal.SIGKILL:
            for pid in pids:
                os.kill(pid, number)
        return bool(pids)

    def is_pilot(self, pid, name):
        allocation, rank = name.split(".")
        process = pathlib.Path(f"/proc/{pid}")
        try:
            words = process.joinpath("cmdline").read_bytes() + process.joinpath("environ").read_bytes()
        except OSError:  # it has ended
            return False
        return allocation.encode() in words and f"SLURM_PROCID={rank}\0".encode() in words

    def cancel_one(self):
        tasks = [row.task for row in self.campaign.running("task")]
        waiting = [task for task in self.campaign.mpi if task not in tasks]
        self.cancelled.add(task := self.draw.choice(tasks + waiting[-1:]))
        return self.campaign.site.verb("cancel", task).code == 0


def test_each_cpu_is_used_once_and_most_of_the_time(cluster, programs):
    capacity = 4
    with SlurmSite(cluster, WIDE | {"cpus": capacity}) as site:
        campaign = Campaign(site, programs, 1)
        campaign.submit_all(capacity, 2)
        assert site.wait(*campaign.mpi, *campaign.arrays, timeout=850 if LONG else 200) == 0, site.log_end()
        for task in campaign.mpi:
            campaign.must_have_result(task)
        for array, count in campaign.arrays.items():
            assert site.show(array)["counts"]["done"] == count
        campaign.must_have_used_each_cpu_once(capacity)
        wait_until(lambda: not site.living_jobs(), 60, "the end of the batch jobs")
        wait_until(lambda: all(one.get("ended_at") for one in site.json("allocations")), 30, "the engine's seeing it")
        used = campaign.used_over_held(4 * capacity)
        print(f"cpu-hours used over held: {used:.3f}")
        assert used >= (0.85 if LONG else 0.5), (used, site.json("allocations"))


def test_nothing_is_lost_or_left_whatever_is_killed(cluster, programs):
    """Killed ranks cost a retry, lost pilots none; what is over its limit or cancelled ends everywhere."""
    with SlurmSite(cluster, WIDE, idle_after="10s", lost_after="20s") as site:
        campaign = Campaign(site, programs, 2)
        campaign.submit_all(WIDE["cpus"], 2)
        late = [campaign.submit_mpi(2, 1, 300, limit="4s", retries=0) for _ in range(10 if LONG else 2)]
        faults = Faults(campaign, {"kill_a_rank": FAULTS, "kill_a_pilot": FAULTS // 2, "cancel_one": FAULTS})
        waiting = site.begin("wait", *campaign.mpi, *campaign.arrays)
        try:
            while waiting.poll() is None:
                faults.next()
                time.sleep(1)
        finally:
            waiting.kill()
            waiting.communicate()
        campaign.must_have_left_nothing()
        assert not faults.due, "all was done before all had happened"
        for task in campaign.mpi:
            shown = site.show(task)
            expected = {"failed" if task in late else "done"} | ({"cancelled"} if task in faults.cancelled else set())
            assert shown["state"] in expected, (shown, site.ok("explain", task))
            if shown["state"] == "done":
                campaign.must_have_result(task)
            elif shown["state"] == "failed":
                assert shown["failure"] == "time_task", shown
        for array, count in campaign.arrays.items():
            counts = site.show(array)["counts"]
            cancelled = sum(task.startswith(f"{array}.") for task in faults.cancelled)
            assert counts["done"] + counts["cancelled"] == count and counts["cancelled"] <= cancelled, counts
        campaign.must_have_used_each_cpu_once(WIDE["cpus"])
        done = collections.Counter(row.task for row in campaign.rows() if row.kind == "task" and row.state == "d")
        for task in (task for task, times in done.items() if times > 1):
            assert any(one["failure"] in LOST for one in site.show(task)["attempts"]), f"{task} was done twice"
