"""Pilots that are kept on a real SLURM, and starts that are told from what its queue shows."""

import contextlib
import json
import os
import time

import pytest
from bed import Slurm
from engine_at_home import wait_until
from slurm_site import SMALL, SlurmSite

NOBODY = 65534


def waits(site):
    return json.loads(site.ok("waits", "--json"))


def shape_of(site):
    [shape] = waits(site)["shapes"]
    return shape


@contextlib.contextmanager
def full(slurm, minutes):
    """Another's batch jobs on all of partition cpu."""
    numbers = [
        slurm.submit(
            "sleep 3600\n",
            "--partition=cpu",
            "--exclusive",
            "--nodes=1",
            f"--time={minutes}",
            "--output=/dev/null",
            "--error=/dev/null",
        )
        for _ in range(2)
    ]
    try:
        wait_until(
            lambda: slurm.ask("squeue", "-h", "-j", ",".join(numbers), "-o", "%T").split() == ["RUNNING"] * 2,
            30,
            "a full partition",
        )
        yield
    finally:
        slurm.ask("scancel", *numbers)


def test_pilots_follow_each_other_without_work(slurm):
    with SlurmSite(slurm, SMALL | {"walltime": "1m"}, idle_after="1s") as site:
        began = time.time()
        site.ok("keep", "small", "--until", "1h")
        first = site.pilots()[0]["name"]
        wait_until(lambda: any(pilot["name"] != first for pilot in site.json("pilots")), 90, "the next pilot")
        [kept] = json.loads(site.ok("keep", "--json"))["keeps"]
        assert kept["missing"] < 20 and kept["beyond"] < 20 and kept["since"] >= began - 1
        assert "small" in site.ok("keep") and "1h" not in site.ok("keep")
        assert site.wait(site.submit("--", "true")) == 0
        site.ok("keep", "small", "--end")
        assert "no pilots are kept" in site.ok("keep")
        wait_until(lambda: not site.living_jobs(), 90, "the end of pilots that nobody wants")
        site.must_be_single()


def test_a_keep_outlives_its_engine(slurm):
    with SlurmSite(slurm, idle_after="1s") as site:
        site.ok("keep", "small", "--until", "1h")
        site.pilots()
        site.kill_engine()
        site.ok("engine", "start")
        assert json.loads(site.ok("keep", "--json"))["keeps"][0]["shape"] == "small"
        name = site.pilots()[0]["name"]
        time.sleep(3)  # longer than one without work stays
        assert [pilot["name"] for pilot in site.json("pilots")] == [name]
        assert site.verb("keep", "large", "--until", "1h").code == 2
        site.ok("engine", "stop", "--now")
        wait_until(lambda: not site.living_jobs(), 30, "the pilots' end")


def test_a_start_is_told_from_what_the_queue_shows(slurm):
    with full(slurm, 10), SlurmSite(slurm) as site:
        task = site.submit("--", "true")
        wait_until(lambda: shape_of(site).get("by") == "queue", 90, "a look at the queue")
        told = shape_of(site)
        # How long such jobs really run nobody has seen: no later than their limits.
        assert "wait_50" not in told and 300 < told["wait_90"] <= 600
        wait_until(
            lambda: any("start_90" in one for one in waits(site)["queued"]), 150, "a look that sees the allocation"
        )
        assert "as its queue looks" in " ".join(site.ok("waits").split())
        assert "as its queue looks" in " ".join(site.ok("explain", task).split())
        assert "expected_start_90" in json.dumps(site.json("allocations"))
        site.ok("cancel", task)


@contextlib.contextmanager
def all_memory_taken(slurm):
    """Another's batch jobs, which leave cpus on all of partition cpu and no memory."""
    numbers = [
        slurm.submit("sleep 3600\n", "--partition=cpu", "--mem=7500M", "--time=10", "--output=/dev/null")
        for _ in range(2)
    ]
    try:
        jobs = ",".join(numbers)
        wait_until(lambda: slurm.ask("squeue", "-hj", jobs, "-o", "%T").split() == ["RUNNING"] * 2, 30, "their starts")
        yield
    finally:
        slurm.ask("scancel", *numbers)


@contextlib.contextmanager
def all_reserved(slurm):
    words = (
        "reservationname=course",
        "starttime=now",
        "duration=10",
        "nodes=n1,n2",
        "users=nobody",
        "flags=ignore_jobs",
    )
    slurm.ask("scontrol", "create", "reservation", *words)
    try:
        yield
    finally:
        slurm.ask("scontrol", "delete", "reservationname=course")


@pytest.mark.parametrize("taken", [all_memory_taken, all_reserved])
def test_what_is_free_of_cpus_alone_is_not_told_to_start(taken):
    with Slurm("--fast", "--memory", "8000") as slurm, taken(slurm), SlurmSite(slurm) as site:
        task = site.submit("--", "true")
        wait_until(lambda: shape_of(site).get("by") == "queue", 90, "a look at the queue")
        assert 300 < shape_of(site)["wait_90"] <= 600, shape_of(site)
        site.ok("cancel", task)


def test_of_a_partition_that_is_down_no_start_is_told():
    with Slurm("--fast") as slurm:
        slurm.ask("scontrol", "update", "partitionname=cpu", "state=down")
        with SlurmSite(slurm) as site:
            task = site.submit("--", "true")
            wait_until(lambda: "partition cpu is down" in shape_of(site).get("message", ""), 90, "a look at the queue")
            assert "wait_90" not in shape_of(site)
            assert "partition cpu is down" in site.ok("explain", task)
            slurm.ask("scontrol", "update", "partitionname=cpu", "state=up")
            assert site.wait(task) == 0


def test_a_keep_says_that_it_pauses_until_it_is_resumed(slurm):
    with SlurmSite(slurm, SMALL, options=["--account=nobodys", "--constraint=nowhere"]) as site:
        site.ok("engine", "start")
        site.ok("keep", "small", "--until", "1h")
        wait_until(lambda: "asks for no pilots until" in site.ok("keep"), 60, "a refusal")
        assert "sites resume cluster" in site.ok("keep") and "feature" in site.ok("keep")
        assert "1 shape had a pause" in site.ok("sites", "resume", "cluster")


def test_a_hidden_queue_is_said_and_nothing_is_made_of_it():
    with Slurm("--fast", "--set", "PrivateData=jobs") as slurm, full(slurm, 10):
        os.chmod(slurm.dir, 0o755)
        with SlurmSite(slurm, user=NOBODY) as site:
            site.ok("engine", "start")
            task = site.submit("--", "true")
            wait_until(lambda: "hides others' jobs" in shape_of(site).get("message", ""), 90, "a look at the queue")
            assert "wait_50" not in shape_of(site)
            assert "expected to start" not in site.ok("explain", task)
            site.ok("cancel", task)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("small",), "say --until when"),
        (("--until", "1h"), "say which shape"),
        (("small", "--until", "yesterday"), "neither a duration"),
        (("small", "--until", "1h", "--count", "0"), "--count"),
        (("small", "--end"), "no pilots of cluster/small are kept"),
        (("small", "--until", "1h", "--count", "99"), "max_running of the site is"),
    ],
)
def test_what_is_wrong_is_said(site, words, says):
    refused = site.verb("keep", *words)
    assert refused.code == 2 and says in refused.err, refused
