"""A cluster that nothing but an ssh login leads to: the work ends whatever becomes of the way there."""

import json
import os
import signal

import pytest
from engine_at_home import wait_until
from far_cluster import FarCluster, FarSite
from slurm_site import SMALL, SlurmSite

FOUR = SMALL | {"cpus": 4, "memory": "2G"}
MANY = 5000 if os.environ.get("HPCBATCH_LONG") else 1000
# What the engine logs once it has noticed.
MISSED = {"relay": "nothing was heard of the relay", "spool": "warning the spool of cluster:"}


@pytest.fixture(scope="module")
def far():
    with FarCluster("--fast") as cluster:
        yield cluster


def link_of(site):
    return site.json("pilots")[0]["link"]


@pytest.mark.parametrize("plugin", ["ssh", "openssh"])
@pytest.mark.parametrize("way", ["relay", "spool"])
def test_thousands_of_tasks_by_an_ssh_login(far, plugin, way):
    with FarSite(far, FOUR, plugin=plugin, link=way) as site:
        assert site.ok("run", "--", "sh", "-c", "echo out; echo err >&2").strip() == "out"
        array = site.submit("--array", f"1-{MANY}", *site.say())
        assert site.wait(array, timeout=300) == 0
        assert link_of(site).startswith(way)
        site.must_have_said(array, MANY)
        site.must_be_single()
        assert len(far.connections()) <= 3, "logins"


def test_a_pilot_finds_the_relay_by_itself(far):
    with FarSite(far, FOUR, link="auto") as site:
        array = site.submit("--array", "1-100", *site.say())
        assert site.wait(array) == 0
        assert link_of(site).startswith("relay tcp 10.")
        site.must_have_said(array, 100)


def slow_tasks(site, count=400):
    return site.submit(
        "--array", f"1-{count}", "--retries", "0", "--", "sh", "-c", f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep 0.2"
    )


def all_ended(site, array, count=400):
    assert site.wait(array, timeout=300) == 0
    site.must_have_said(array, count)
    site.must_be_single()


@pytest.mark.parametrize("way", ["relay", "spool"])
def test_the_login_nodes_sshd_is_killed(far, way):
    with FarSite(far, FOUR, link=way) as site:
        array = slow_tasks(site)
        site.wait_for_lines(20)
        far.stop_sshd()
        far.start_sshd()
        all_ended(site, array)


def test_the_relay_is_killed(far):
    with FarSite(far, FOUR, link="relay") as site:
        array = slow_tasks(site)
        site.wait_for_lines(20)
        for relay in site.relays():
            os.kill(relay, signal.SIGKILL)
        all_ended(site, array)


@pytest.mark.parametrize("way", ["relay", "spool"])
def test_the_line_is_cut_for_a_while(far, way):
    with FarSite(far, FOUR, link=way) as site:
        array = slow_tasks(site)
        site.wait_for_lines(20)
        with far.cut():
            wait_until(
                lambda: any(MISSED[way] in log.read_text() for log in site.home.glob("engine.log")),
                200,
                "the engine to miss it",
            )
        all_ended(site, array)


def test_a_login_that_hangs_is_given_up(far):
    """Half open: the other end is there and says nothing."""
    with FarSite(far, FOUR, link="relay") as site:
        array = slow_tasks(site)
        site.wait_for_lines(20)
        hanging = far.connections()
        for pid in hanging:
            os.kill(pid, signal.SIGSTOP)
        try:
            all_ended(site, array)
        finally:
            for pid in hanging:
                os.kill(pid, signal.SIGKILL)


def test_a_host_key_that_changed_stops_that_site_and_says_why(far):
    with FarSite(far, FOUR, link="relay") as site:
        known = far.keys / "known_hosts"
        before = known.read_text()
        kind, key, *_ = (far.keys / "user.pub").read_text().split()
        known.write_text(f"{far.host} {kind} {key}\n")
        try:
            array = site.submit("--array", "1-4", *site.say())
            wait_until(lambda: "HOST KEY HAS CHANGED" in site.ok("explain", f"{array}.1"), 60, "the reason")
            assert str(known) in site.ok("explain", f"{array}.1")
            assert site.batch_jobs() == []
        finally:
            known.write_text(before)
        assert site.wait(array, timeout=200) == 0


class InsideSite(SlurmSite):
    """An engine in there, on a machine from which no route leads to the world."""

    def __init__(self, far, *shapes, **keys):
        super().__init__(far, *shapes, **{"interface": ""} | keys)
        inside = self.directory / "inside"
        inside.write_text(f'#!/bin/sh\nexec nsenter --net=/run/netns/{far.namespace} {self.program} "$@"\n')
        inside.chmod(0o755)
        self.program = str(inside)

    def configure(self, text):
        site = json.loads(text)
        for one in site["sites"]:
            if not one["interface"]:
                del one["interface"]
        return super().configure(json.dumps(site))


def test_pilots_of_a_machine_without_a_route_to_the_world_are_told_its_addresses(far):
    with InsideSite(far, FOUR) as site:
        array = site.submit("--array", "1-100", *site.say())
        assert site.wait(array) == 0
        assert link_of(site).startswith(f"tcp {far.host} "), site.json("pilots")
        (answer,) = site.json("sites", "check", "cluster")
        checks = {check["check"]: check for check in answer["checks"]}
        assert answer["ok"] and checks["link direct"]["text"] == f"needs a route from the nodes to {far.host}", checks


def test_connections_that_openssh_keeps_end_with_the_engine_that_ends_all(far):
    with FarSite(far, FOUR, plugin="openssh", transport=far.transport("openssh", persist=600)) as site:
        for words, are_there in ((["--now"], False), ([], True), (["--now"], False)):
            assert site.ok("run", "--", "echo", "there").strip() == "there"
            assert far.connections()
            site.ok("engine", "stop", *words)
            wait_until(lambda: bool(far.connections()) is are_there, 30, f"connections after {words}")


def test_what_a_check_cannot_ask_is_not_called_ok(far):
    known = far.keys / "known_hosts"
    before = known.read_text()
    with FarSite(far, FOUR, link="relay") as site:
        known.write_text("")
        try:
            site.ok("engine", "start")
            refused = site.verb("sites", "check", "cluster")
            assert refused.code == 1 and "is not known" in refused.out, refused
            lines = [line.split()[:2] for line in refused.out.splitlines()]
            assert ["BAD", "modules"] in lines and not [line for line in lines if line and line[0] == "ok"], refused.out
        finally:
            known.write_text(before)


@pytest.mark.parametrize("plugin", ["ssh", "openssh"])
def test_a_check_runs_a_relay_in_there_for_a_moment(far, plugin):
    with FarSite(far, FOUR, plugin=plugin) as site:
        site.ok("engine", "start")
        (answer,) = site.json("sites", "check", "cluster")
        checks = {check["check"]: check for check in answer["checks"]}
        assert answer["ok"], checks
        assert "needs a route from the nodes to 127.0.0.1" in checks["link direct"]["text"], checks
        assert (
            "a relay can listen there" in checks["link relay"]["text"] and " port " in checks["link relay"]["text"]
        ), checks
        assert "an exchange by files works" in checks["link spool"]["text"], checks
        assert (
            f"transport: {{plugin: {plugin}, " in answer["proposal"] and "name: gpu-a100" in answer["proposal"]
        ), answer
        assert site.relays() == []
        assert not (site.directory / "w/check").exists()
