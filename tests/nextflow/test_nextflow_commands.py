"""Nextflow's executor `slurm`, with nothing changed but PATH."""

import os
import signal

import flows
import pytest
from engine_at_home import EngineAtHome, wait_until
from nextflow_bed import TWO_CPUS, Bed
from slurm_commands import Commands
from slurm_site import SlurmSite


@pytest.fixture
def bed():
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "w"))
        yield Bed(engine, "slurm", Commands(engine).folder)


def test_ends_of_all_kinds(bed):
    flows.must_end_as_users_know(bed)


def test_no_more_at_once_than_max_forks(bed):
    flows.must_hold_max_forks(bed)


def test_a_failure_ends_the_run(bed):
    flows.must_tell_of_a_failure(bed)


def test_an_interrupt_cancels_all(bed):
    bed.write(flows.ENDLESS)
    process = bed.begin()
    wait_until(lambda: sum(task["state"] == "running" for task in bed.tasks()) == 2, 60, "two that run")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 1
    assert "Killing running tasks (3)" in bed.printed()
    wait_until(lambda: {task["state"] for task in bed.tasks()} == {"cancelled"}, 30, "their end")


def test_it_goes_on_when_the_engine_is_killed(slurm):
    with SlurmSite(slurm, idle_after="10m", max_running=2) as site:
        bed = Bed(site, "slurm", Commands(site).folder)
        bed.write(flows.MANY)
        process = bed.begin("-with-trace", "trace.txt")
        wait_until(lambda: sum(task["state"] == "done" for task in bed.tasks()) > 20, 120, "some to be done")
        site.kill_engine()
        code = process.wait(300)
        assert code == 0, bed.printed() + bed.log()[-3000:]
        flows.many_must_be_there(bed)
        assert site.must_be_single() <= 2
