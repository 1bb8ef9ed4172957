"""Shapes of real batch jobs: two nodes, GPUs by kind, and walltimes that come to an end."""

import time

from engine_at_home import wait_until
from slurm_site import LONG, SMALL, SlurmSite

V100 = {"name": "v100", "partition": "gpu", "cpus": 2, "memory": "1G", "gpus": {"v100": 2}, "walltime": "30m"}
A100 = {"name": "a100", "partition": "gpu", "cpus": 1, "memory": "1G", "gpus": {"a100": 1}, "walltime": "30m"}
# SLURM counts minutes; a pilot knows its own end to the second, and keeps a tenth of its walltime for ending.
SHORT = SMALL | {"name": "short", "cpus": 1, "walltime": "1m" if LONG else "20s"}
WHOLE = 54 if LONG else 18


def test_a_shape_of_two_nodes_has_a_pilot_on_each(slurm):
    with SlurmSite(slurm, SMALL | {"name": "pair", "nodes": 2}, max_queued=1, max_running=1) as site:
        command = f"echo $HPCBATCH_PILOT >> {site.said}; while [ ! -e {site.directory}/go ]; do sleep 0.1; done"
        array = site.submit("--array", "1-4", "--", "sh", "-c", command)
        site.wait_for_lines(4)
        (job,) = site.living_jobs()
        assert sorted(site.lines()) == [f"{job.name}.0"] * 2 + [f"{job.name}.1"] * 2
        assert job.nodes == "n[1-2]"
        (site.directory / "go").touch()
        assert site.wait(array) == 0
        wait_until(lambda: site.batch_jobs()[0].state == "COMPLETED", 30, "the end of the batch job by itself")
        assert site.write_what_slurm_saw() == 3, "created, running, ended: what the checker of histories is told of it"


def test_gpus_are_told_to_the_tasks_by_kind(slurm):
    with SlurmSite(slurm, V100, A100) as site:
        say = ("--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $HPCBATCH_PILOT; sleep 0.5")
        pair = site.submit("--gpus", "v100:1", "--array", "1-2", *say)
        both = site.submit("--gpus", "v100:2", *say)
        other = site.submit("--gpus", "a100:1", *say)
        assert site.wait(pair, both, other) == 0
        devices = [site.ok("log", task).split()[0] for task in (f"{pair}.1", f"{pair}.2", both, other)]
        assert sorted(devices[:2]) == ["0", "1"]
        assert devices[2:] == ["0,1", "0"]
        shapes = {allocation["name"]: allocation["shape"] for allocation in site.json("allocations")}
        assert [shapes[site.show(task)["allocation"]] for task in (f"{pair}.1", both, other)] == [
            "v100",
            "v100",
            "a100",
        ]


def test_more_gpus_than_any_shape_has_are_refused_at_once(slurm):
    with SlurmSite(slurm, V100, A100) as site:
        refused = site.verb("submit", "--gpus", "v100:3", "--", "true")
        assert refused.code == 2 and "never_fits" in refused.err and "v100 of cluster" in refused.err, refused
        assert site.batch_jobs() == []


def test_tasks_are_not_started_where_the_walltime_is_too_short_for_them(slurm):
    with SlurmSite(slurm, SHORT, max_queued=1, max_running=1, idle_after="10m") as site:
        first = site.submit("--time", f"{WHOLE - 2}s", *site.say())
        assert site.wait(first) == 0
        wait_until(lambda: time.time() > site.show(first)["started_at"] + 4, 10, "too little time left")
        second = site.submit("--time", f"{WHOLE - 2}s", *site.say())
        site.explained(second, "too little time left")
        assert site.verb("submit", "--time", f"{WHOLE + 1}s", "--", "true").code == 2
        assert site.wait(second) == 0
        pilots = [site.show(task)["pilot"] for task in (first, second)]
        assert pilots[0] != pilots[1]
        # The pilot went before SLURM made it go.
        states = {job.name: job.state for job in site.batch_jobs()}
        assert states[pilots[0].partition(".")[0]] == "COMPLETED", states


def test_a_task_that_a_pilots_end_cut_runs_again_where_more_time_is_left(slurm):
    """Cut late in a pilot's time it is tried again for nothing; over a whole pilot's time it has failed."""
    with SlurmSite(slurm, SHORT, max_queued=1, max_running=1, idle_after="10m") as site:
        early = site.submit("--", "sleep", WHOLE / 3)
        late = site.submit("--after", early, "--", "sleep", WHOLE * 3 / 4)
        endless = site.submit("--after", late, "--retries", "0", "--", "sleep", "3000")
        assert site.wait(late, timeout=240) == 0
        shown = site.show(late)
        assert shown["attempt"] == 2 and site.attempts(late)[0]["failure"] == "pilot_walltime", shown
        assert site.wait(endless, timeout=240) == 1
        assert site.show(endless)["failure"] == "pilot_walltime"
        assert "TIMEOUT" not in [job.state for job in site.batch_jobs()]
