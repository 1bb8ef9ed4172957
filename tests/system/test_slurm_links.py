"""How pilots reach their engine where they cannot connect to it: by a relay on the login node, or by files."""

import os
import signal

import pytest
from engine_at_home import processes_with, wait_until
from slurm_site import SMALL, SlurmSite

TASKS = 200


def relays(site):
    return [pid for pid, line in processes_with(str(site.directory)).items() if " relay " in line]


def link_of(site):
    return site.json("pilots")[0]["link"]


@pytest.mark.parametrize("way", ["relay", "spool"])
def test_tasks_run_and_their_output_comes_back(slurm, way):
    with SlurmSite(slurm, SMALL, link=way, relay_interface="127.0.0.1") as site:
        assert site.ok("run", "--", "sh", "-c", "echo out; echo err >&2").strip() == "out"
        array = site.submit("--array", f"1-{TASKS}", *site.say())
        assert link_of(site).startswith(way)
        assert site.wait(array) == 0
        site.must_have_said(array, TASKS)
        site.must_be_single()


@pytest.mark.parametrize("way", ["relay", "spool"])
def test_an_engine_that_is_killed_finds_its_pilots_again(slurm, way):
    with SlurmSite(slurm, SMALL, link=way, relay_interface="127.0.0.1") as site:
        command = f"echo $HPCBATCH_TASK_ID >> {site.said}; while [ ! -e {site.directory}/go ]; do sleep 0.1; done"
        array = site.submit("--array", "1-40", "--", "sh", "-c", command)
        site.wait_for_lines(2)
        site.kill_engine()
        (site.directory / "go").touch()
        site.ok("engine", "start")
        assert site.wait(array) == 0
        site.must_have_said(array, 40)
        site.must_be_single()


def test_a_relay_that_is_killed_is_started_again_and_found(slurm):
    with SlurmSite(slurm, SMALL, link="relay", relay_interface="127.0.0.1") as site:
        array = site.submit(
            "--array", f"1-{TASKS}", "--", "sh", "-c", f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep 0.05"
        )
        site.wait_for_lines(20)
        (first,) = relays(site)
        os.kill(first, signal.SIGKILL)
        assert site.wait(array) == 0
        site.must_have_said(array, TASKS)
        assert relays(site) != [first]
        site.must_be_single()


def test_a_relay_goes_when_there_are_no_pilots(slurm):
    with SlurmSite(slurm, SMALL, link="relay", relay_interface="127.0.0.1") as site:
        site.ok("run", "--", "true")
        assert relays(site)
        wait_until(lambda: not relays(site), 60, "the end of the relay behind the last pilot")
        assert not (site.directory / "w/relay").exists()


# The batch script begins anew where there is no network, not even loopback.
NO_NETWORK = '[ -n "$HB_NO_NETWORK" ] || exec env HB_NO_NETWORK=yes unshare --net sh "$0"'


def test_where_nothing_may_connect_a_pilot_finds_the_files(slurm):
    with SlurmSite(slurm, SMALL, link="auto", setup=[NO_NETWORK]) as site:
        array = site.submit("--array", "1-40", *site.say())
        assert site.wait(array) == 0
        assert link_of(site).startswith("spool ")
        site.must_have_said(array, 40)
        assert "Network is unreachable" in "".join(
            log.read_text() for log in (site.directory / "w/allocations").glob("*.out")
        )


def test_a_quiet_pilot_is_found_again_by_files(slurm):
    with SlurmSite(slurm, SMALL, link="auto", setup=[NO_NETWORK]) as site:
        task = site.submit("--", "sh", "-c", f"while [ ! -e {site.directory}/go ]; do sleep 0.1; done")
        wait_until(lambda: site.show(task)["state"] == "running", 60, "the task to run")
        assert link_of(site).startswith("spool ")
        site.kill_engine()
        site.ok("engine", "start")
        # Its next word by itself is due after 90 s.
        wait_until(lambda: site.show(task)["state"] == "running", 40, "the engine to know that it runs")
        (site.directory / "go").touch()
        assert site.wait(task) == 0


def test_pilots_hear_by_files_that_the_engine_is_stopped(slurm):
    with SlurmSite(slurm, SMALL, link="spool") as site:
        site.ok("run", "--", "true")
        assert site.pilot_pids()
        site.ok("engine", "stop", "--now")
        wait_until(lambda: not site.pilot_pids(), 10, "the pilots' end")


def test_nothing_of_the_spool_stays(slurm):
    with SlurmSite(slurm, SMALL, link="spool") as site:
        site.ok("run", "--", "true")
        wait_until(lambda: not site.living_jobs(), 60, "the end of the batch job")
        wait_until(lambda: not os.listdir(site.directory / "w/spool"), 60, "the end of what the pilots' links were")
