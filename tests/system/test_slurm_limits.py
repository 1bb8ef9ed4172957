"""How much of a cluster is asked for: limits, what nobody needs any more, and refusals."""

import json
import time

import pytest
from engine_at_home import wait_until
from slurm_site import LONG, SMALL, Slurm, SlurmSite


def resident_memory(pid):
    """Bytes."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def test_many_short_tasks_need_few_batch_jobs_and_little_memory(slurm):
    count = 100_000 if LONG else 10_000
    with SlurmSite(slurm, SMALL | {"cpus": 4}, max_queued=2, max_running=2) as site:
        begin = time.monotonic()
        array = site.submit("--array", f"1-{count}", "--", "true")
        engine, most, jobs = site.engine_pid(), 0, 0
        while site.show(array)["counts"]["done"] < count:
            assert time.monotonic() - begin < 600, site.show(array)
            most = max(most, resident_memory(engine))
            jobs = max(jobs, len(site.living_jobs()))
        print(
            f"{count} tasks in {time.monotonic() - begin:.1f} s, engine {most / 1e6:.1f} MB, {site.must_be_single()} batch jobs"
        )
        assert site.wait(array) == 0
        assert most < 60e6
        assert jobs <= 2


def test_pilots_that_nobody_needs_end_by_themselves(slurm):
    with SlurmSite(slurm) as site:
        assert site.ok("run", "--", "echo", "hi") == "hi\n"
        wait_until(lambda: [job.state for job in site.batch_jobs()] == ["COMPLETED"], 20, "the idle pilot's end")
        wait_until(lambda: not site.json("pilots"), 20, "the pilot's goodbye")
        wait_until(lambda: site.json("allocations")[0]["state"] == "ended", 20, "the engine's seeing it")


def test_stop_now_leaves_no_batch_job(slurm):
    with SlurmSite(slurm, max_queued=2, max_running=4) as site:
        site.submit("--array", "1-40", "--cpus", "2", "--time", "20m", "--", "sleep", "1000")
        wait_until(lambda: len(site.living_jobs()) >= 3, 60, "several batch jobs")
        site.ok("engine", "stop", "--now")
        wait_until(lambda: not site.living_jobs(), 20, "the end of all batch jobs")


@pytest.mark.parametrize(
    "shape, words",
    [
        (SMALL | {"partition": "nowhere"}, "invalid partition name"),
        (SMALL | {"cpus": 64}, "partitionconfig"),  # accepted, and never started: cancelled
        (SMALL | {"partition": "gpu", "gpus": {"h900": 1}}, "configuration is not available"),
    ],
)
def test_an_impossible_shape_is_asked_for_once_and_its_refusal_shown(slurm, shape, words):
    with SlurmSite(slurm, shape) as site:
        task = site.submit("--", "true")
        assert "not asked for" in site.explained(task, words)
        shown = site.json("sites", "show", "cluster")[0]
        assert words in json.dumps(shown).lower(), shown
        wait_until(lambda: site.status()["uptime_s"] > 5, 10)
        assert [a["state"] for a in site.json("allocations")] in ([], ["ended"]), "it was asked for again"
        assert site.living_jobs() == [] and len(site.batch_jobs()) <= 1
        assert site.show(task)["state"] == "waiting"


@pytest.mark.parametrize(
    "keys, words",
    [
        ({"workspace": "w"}, "workspace"),
        ({"polls_every": "1s"}, "polls_every"),
        ({"scheduler": "slurmy"}, "slurmy"),
        ({"scheduler": {"plugin": "slurm", "sbatch": "/bin/true"}}, "takes no configuration"),
        ({"shapes": [{"name": "a", "partition": "cpu", "cpus": 1, "memory": "1G"}]}, "walltime"),
    ],
)
def test_a_bad_site_is_refused_with_file_and_line(slurm, keys, words):
    with SlurmSite(slurm, **keys) as site:
        refused = site.verb("engine", "start")
        assert refused.code == 2 and words in refused.err and "config.yaml:" in refused.err, refused
        assert len(refused.err.splitlines()) == 1, refused.err
        assert not (site.home / "socket").exists()


def test_a_limit_of_the_account_is_not_run_against(tmp_path):
    """One batch job may be submitted at a time: the second is refused, which ends the asking and not the work."""
    with Slurm("--set", "AccountingStorageEnforce=associations,limits", "--set", "MinJobAge=3600") as slurm:
        slurm.ask("sacctmgr", "-iQ", "modify", "user", "root", "set", "MaxSubmitJobs=1")
        wait_until(
            lambda: "1" in slurm.ask("scontrol", "show", "assoc_mgr", "flags=assoc").partition("MaxSubmitJobs=")[2][:2]
            or "MaxSubmitJobs=1" in slurm.ask("scontrol", "show", "assoc_mgr"),
            20,
            "the controller's knowing it",
        )
        with SlurmSite(slurm, SMALL | {"cpus": 1}, max_queued=4, max_running=8) as site:
            array = site.submit(
                "--array", "1-40", "--time", "5m", "--", "sh", "-c", f"sleep 0.5; echo $HPCBATCH_TASK_ID >> {site.said}"
            )
            assert "not asked for" in site.explained(f"{array}.40", "limit of the batch system")
            assert site.wait(array) == 0
            site.must_have_said(array, 40)
            refused = [a for a in site.json("allocations") if "refused" in a.get("message", "")]
            assert len(refused) <= 4, refused
