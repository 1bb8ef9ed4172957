"""Three batch systems as one engine's room: two SLURMs and one behind Torque's commands. One of them fails in the middle."""

import collections
import json
import os
import signal

import pytest

from engine_at_home import processes_with, wait_until
from slurm_site import SMALL, SlurmSite
from bed import Slurm

TASKS, PICKY = 2000, 300
AT_FIRST = 1000  # those of the array above it run when the test says so


class ThreeSites(SlurmSite):
    """`doomed` is the cluster of the site of that name; `cluster` and `torque` are on the one that stays."""

    def __init__(self, slurm, doomed):
        super().__init__(slurm)
        self.doomed = doomed
        self.go, self.go_on = self.directory / "go", self.directory / "go-on"
        sites = [
            {
                "name": name,
                "scheduler": scheduler,
                "transport": {"plugin": "shared_fs", "environment": {"SLURM_CONF": bed.conf}},
                "workspace": str(self.directory / name),
                "interface": "127.0.0.1",
                "idle_after": "2s",
                "poll_every": "500ms",
                "settle_after": "4s",
                "lost_after": "5s",
                "max_queued": 1,
                "max_running": 1,
                "shapes": [SMALL],
            }
            for name, scheduler, bed in (
                ("doomed", "slurm", doomed),
                ("cluster", "slurm", slurm),
                ("torque", "pbs", slurm),
            )
        ]
        self.configure(json.dumps({"sites": sites}, indent=1))

    def submit_gated(self, count, *words):
        """Tasks that say who ran them where, once the test lets them; those of larger numbers once it lets them go on."""
        command = (
            f'gate={self.go}; [ "$HPCBATCH_TASK_INDEX" -le {AT_FIRST} ] || gate={self.go_on}; '
            f"while [ ! -e $gate ]; do sleep 0.1; done; echo $HPCBATCH_TASK_ID $HPCBATCH_PILOT >> {self.said}"
        )
        return self.submit("--array", f"1-{count}", "--retries", "0", *words, "--", "sh", "-c", command)

    def sites_at_work(self):
        return {pilot["site"] for pilot in self.json("pilots") if pilot["state"] == "running"}

    def ran(self):
        """Where each task ran: {task: [site, ...]}."""
        site_of = {allocation["name"]: allocation["site"] for allocation in self.json("allocations")}
        where = collections.defaultdict(list)
        for line in self.lines():
            task, pilot = line.split()
            where[task].append(site_of[pilot.rpartition(".")[0]])
        return where

    def pilot_pids_of(self, site):
        workspace = str(self.directory / site)
        pilots = self.pilot_pids()
        return {pid for pid, line in processes_with(workspace).items() if pid in pilots and workspace in line}

    def kill_pilots_of(self, site):
        pids = self.pilot_pids_of(site)
        assert pids
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                os.kill(pid, number)

    def sites_with_allocations(self):
        return {allocation["site"] for allocation in self.json("allocations") if allocation["state"] != "ended"}

    def must_have_ended_well(self, *arrays):
        for array in arrays:
            counts = self.show(array)["counts"]
            assert counts["done"] == sum(counts.values()), counts


@pytest.fixture
def doomed():
    with Slurm("--fast", "--nodes", "2", "--set", "MinJobAge=3600") as bed:
        yield bed


@pytest.fixture
def sites(slurm, doomed):
    with ThreeSites(slurm, doomed) as engine:
        yield engine


def begin(sites):
    """All three sites are at work on far more than they have done."""
    picky = sites.submit_gated(PICKY, "--not-site", "doomed")
    array = sites.submit_gated(TASKS)
    wait_until(lambda: sites.sites_at_work() == {"doomed", "cluster", "torque"}, 90, "all three sites' being at work")
    sites.go.touch()
    sites.wait_for_lines(50)
    return array, picky


def must_have_kept_away(sites, picky):
    where = sites.ran()
    assert not [task for task, there in where.items() if task.startswith(f"{picky}.") and "doomed" in there]
    return where


def test_the_work_of_a_site_that_is_lost_ends_on_the_others(sites, doomed):
    """Its controller and its pilots are gone. Only what its pilots held waits for what it will say; each task has one good end."""
    array, picky = begin(sites)
    doomed.cluster("controller-kill")
    try:
        sites.kill_pilots_of("doomed")
        sites.go_on.touch()

        wait_until(lambda: sites.sites_with_allocations() == {"doomed"}, 120, "the end of the work of the others")
        tasks = sites.status()["tasks"]
        held = tasks["unknown"] + tasks["waiting"]
        assert 0 < held < TASKS / 2 and not tasks["running"], tasks
        unknown = sites.json("list", "--tasks", "--state", "unknown", "--limit", "1")[0]["id"]
        assert "has been silent" in sites.ok("explain", unknown)
        assert sites.wait(picky) == 0
        queued = [a for a in sites.json("allocations") if a["site"] == "doomed" and a["state"] != "ended"]
        assert len(queued) <= 1, "a site that does not answer was asked again"
    finally:
        doomed.cluster("controller-start")
    assert sites.wait(array) == 0
    sites.must_have_ended_well(array, picky)
    where = must_have_kept_away(sites, picky)
    twice = {task for task, there in where.items() if len(there) != 1}
    assert len(where) == TASKS + PICKY and len(twice) <= held
    assert not [task for task in twice if where[task][0] != "doomed"], "only what the lost pilots held ran again"


def test_pilots_of_a_site_whose_controller_is_lost_work_on(sites, doomed):
    array, picky = begin(sites)
    doomed.cluster("controller-kill")
    sites.go_on.touch()
    try:
        assert sites.wait(array, picky) == 0
    finally:
        doomed.cluster("controller-start")
    sites.must_have_ended_well(array, picky)
    where = must_have_kept_away(sites, picky)
    assert len(where) == TASKS + PICKY and not [task for task, there in where.items() if len(there) != 1]
    assert {site for there in where.values() for site in there} == {"doomed", "cluster", "torque"}
