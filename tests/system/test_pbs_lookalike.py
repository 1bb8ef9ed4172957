"""The scheduler `pbs` alive: against SLURM's qsub, qstat and qdel, which look like Torque's, on a real SLURM."""

import json

import pytest

from engine_at_home import wait_until
from slurm_site import SMALL, SlurmSite

V100 = {"name": "v100", "partition": "gpu", "cpus": 2, "memory": "1G", "gpus": {"v100": 2}, "walltime": "30m"}


class PbsSite(SlurmSite):
    def __init__(self, slurm, *shapes, **keys):
        super().__init__(slurm, *shapes, **{"scheduler": "pbs"} | keys)

    def qstat(self):
        """The batch jobs of this site as the look-alike tells them: {name: letter}."""
        states, name = {}, ""
        for line in self.slurm.ask("qstat", "-f").splitlines():
            key, _, value = line.strip().partition(" = ")
            name = value if key == "Job_Name" else name
            states |= {name: value} if key == "job_state" else {}
        return {job.name: states.get(job.name) for job in self.batch_jobs()}


def test_fifty_tasks_end_well_and_their_batch_jobs_too(slurm):
    with PbsSite(slurm, max_queued=2, max_running=3) as site:
        array = site.submit("--array", "1-50", *site.say())
        assert site.wait(array) == 0
        site.must_have_said(array, 50)
        assert 1 <= site.must_be_single() <= 3
        wait_until(lambda: set(site.qstat().values()) == {"C"}, 30, "the end of all batch jobs by themselves")
        wait_until(
            lambda: {a["state"] for a in site.json("allocations")} == {"ended"}, 30, "the engine's seeing their ends"
        )
        assert all("it ended" in a["message"] for a in site.json("allocations"))
        logs = list((site.directory / "w/allocations").glob("*.out"))
        assert len(logs) == len(site.batch_jobs()), "each has its log in the workspace"


@pytest.mark.parametrize("shape", [SMALL | {"nodes": 2}, V100], ids=["two_nodes", "gpus"])
def test_shapes(slurm, shape):
    with PbsSite(
        slurm, shape, max_queued=1, max_running=1, scheduler={"plugin": "pbs", "dialect": "slurm-torque"}
    ) as site:
        gpus = ("--gpus", "v100:2") if "gpus" in shape else ()
        command = f'echo "$HPCBATCH_PILOT $CUDA_VISIBLE_DEVICES" >> {site.said}; while [ ! -e {site.directory}/go ]; do sleep 0.1; done'
        array = site.submit(*gpus, "--array", "1" if gpus else "1-4", "--", "sh", "-c", command)
        site.wait_for_lines(1 if gpus else 4)
        (job,) = site.living_jobs()
        ranks = ["0 0,1"] if gpus else ["0 ", "0 ", "1 ", "1 "]
        assert sorted(site.lines()) == [f"{job.name}.{rank}" for rank in ranks]
        (site.directory / "go").touch()
        assert site.wait(array) == 0


def test_an_allocation_deleted_by_somebody_else_is_noticed(slurm):
    with PbsSite(slurm, SMALL | {"cpus": 4}, max_queued=1) as site:
        stop = site.directory / "stop"
        array = site.submit(
            "--array",
            "1-4",
            "--",
            "sh",
            "-c",
            f"echo $HPCBATCH_TASK_ID >> {site.said}; [ -e {stop} ] || exec sleep 600",
        )
        site.wait_for_lines(4)
        stop.touch()
        (job,) = site.living_jobs()
        slurm.ask("qdel", job.number)
        wait_until(lambda: site.json("allocations")[0]["state"] == "ended", 60, "the engine's seeing it")
        # SLURM's qstat says only that it ended; its pilot had said why.
        assert "cancelled, and not by us" in site.json("allocations")[0]["message"], site.json("allocations")
        assert site.wait(array) == 0
        assert site.attempts(f"{array}.1")[0]["failure"] == "pilot_killed"


def test_what_is_no_longer_wanted_is_deleted_by_name_and_others_are_left_alone(slurm):
    with PbsSite(slurm) as site:
        script = site.directory / "hbForeign.sh"
        script.write_text("#!/bin/sh\nexec sleep 600\n")
        foreign = slurm.ask("qsub", "-N", "hbForeign", "-q", "cpu", "-o", "/dev/null", "-j", "oe", script).strip()
        try:
            task = site.submit("--", "sleep", "600")
            wait_until(lambda: site.show(task)["state"] == "running", 60, "the task's start")
            (ours,) = (job.name for job in site.living_jobs() if job.name != "hbForeign")
            site.ok("engine", "stop", "--now")
            wait_until(lambda: site.qstat()[ours] == "C", 30, "the end of ours")
            assert site.qstat()["hbForeign"] == "R"
        finally:
            slurm.ask("qdel", foreign)
            wait_until(lambda: site.qstat()["hbForeign"] == "C", 30, "the end of the other")


@pytest.mark.parametrize(
    "shape, words",
    [
        (SMALL | {"partition": "nowhere"}, "invalid partition"),
        (SMALL | {"partition": "gpu", "gpus": {"h900": 9}}, "configuration is not available"),
    ],
)
def test_a_refused_submit_is_shown_in_clear_words(slurm, shape, words):
    with PbsSite(slurm, shape) as site:
        task = site.submit("--", "true")
        said = site.explained(task, words)
        assert "The command was" not in said, said
        assert words in json.dumps(site.json("sites", "show", "cluster")[0]).lower()
        assert site.living_jobs() == []


def test_a_list_that_does_not_come_concludes_nothing(slurm):
    with PbsSite(slurm, max_queued=1, max_running=1, idle_after="30s") as site:
        command = f"echo $HPCBATCH_TASK_ID >> {site.said}; while [ ! -e {site.directory}/go ]; do sleep 0.1; done"
        array = site.submit("--array", "1-2", "--retries", "0", "--", "sh", "-c", command)
        site.wait_for_lines(2)
        slurm.cluster("controller-pause")
        try:
            wait_until(lambda: "PBS" in site.json("sites")[0].get("message", ""), 60, "the site's trouble")
        finally:
            slurm.cluster("controller-resume")
        assert {allocation["state"] for allocation in site.json("allocations")} == {"running"}
        (site.directory / "go").touch()
        assert site.wait(array) == 0
        site.must_have_said(array, 2)
        assert site.must_be_single() == 1


def test_the_answer_to_a_submit_lost(slurm):
    """qsub gives up on a paused controller, which has the batch job nonetheless once it goes on: its name finds it."""
    with PbsSite(slurm, SMALL | {"cpus": 4}, max_queued=1, settle_after="10s") as site:
        site.ok("engine", "start")
        slurm.cluster("controller-pause")
        try:
            array = site.submit("--array", "1-20", *site.say())
            wait_until(
                lambda: site.json("allocations") and site.json("allocations")[0]["state"] == "unclear",
                60,
                "qsub's giving up",
            )
        finally:
            slurm.cluster("controller-resume")
        assert site.wait(array) == 0
        site.must_have_said(array, 20)
        assert site.must_be_single() == 1


def test_the_site_is_checked(slurm):
    with PbsSite(slurm) as site:
        site.ok("engine", "start")
        (answer,) = site.json("sites", "check", "cluster")
        assert answer["ok"], answer
        assert "cpu" in json.dumps(answer["checks"]), answer
        assert "    - name: cpu\n      partition: cpu\n" in answer["proposal"], answer


def test_a_wrong_configuration_is_refused_with_its_line(slurm):
    with PbsSite(slurm, scheduler={"plugin": "pbs", "queue": "cpu"}) as site:
        refused = site.verb("engine", "start")
        assert refused.code == 2 and "known are: dialect, place, gpu_kinds" in refused.err, refused
        assert len(refused.err.splitlines()) == 1, refused.err
