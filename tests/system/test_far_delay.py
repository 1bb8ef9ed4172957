"""A cluster at the other end of the world, 300 ms away and back: its work ends, each task once, and its slots stay busy."""

import json

import pytest
from engine_at_home import wait_until
from far_cluster import DistantCluster, FarSite

FOUR = {"name": "four", "cpus": 4, "memory": "2G", "walltime": "30m"}
MANY_SLOTS = 64
MANY = FOUR | {"name": "many", "cpus": MANY_SLOTS}
# What the engine logs once it has noticed that nothing comes.
MISSED = {"relay": "nothing was heard of the relay", "direct": "the link to pilot"}


@pytest.fixture(scope="module")
def distant():
    with DistantCluster("--fast", "--nodes", "2", "--cpus", str(MANY_SLOTS), "--set", "MinJobAge=3600") as cluster:
        yield cluster


def site_of(cluster, way, shape=FOUR, kind=FarSite):
    # What a moment is, is another thing out here; and each batch job costs seconds to ask for, and to cancel.
    return kind(cluster, shape, link=way, interface=cluster.gate, idle_after="60s", max_queued=1, max_running=1)


def all_end(site, array, count):
    assert site.wait(array, timeout=300) == 0
    site.must_have_said(array, count)
    site.must_be_single()


def slow_tasks(site, count):
    return site.submit(
        "--array", f"1-{count}", "--retries", "0", "--", "sh", "-c", f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep 0.2"
    )


def test_thousands_of_tasks_over_a_long_line_which_then_loses_packets(distant):
    """5 % of them, on all that there is to a site: submits, polls, the link."""
    with site_of(distant, "relay") as by_relay, site_of(distant, "direct") as direct:
        # The pilot program is megabytes: how long those take over a line that loses packets is the kernel's affair alone.
        clean = [(site, site.submit("--array", "1-2000", *site.say())) for site in (by_relay, direct)]
        for site, array in clean:
            assert site.ok("run", "--", "sh", "-c", "echo out; echo err >&2").strip() == "out"
            all_end(site, array, 2000)
        assert by_relay.json("pilots")[0]["link"].startswith("relay")
        assert direct.json("pilots")[0]["link"].startswith("tcp")
        distant.line.lose(0.05)
        try:
            lossy = [(site, site.submit("--array", "1-2000", *site.say())) for site in (by_relay, direct)]
            for site, array in lossy:
                all_end(site, array, 2000)
        finally:
            distant.line.lose(0)


def test_the_line_is_half_open_for_a_while(distant):
    with site_of(distant, "relay") as by_relay, site_of(distant, "direct") as direct:
        sites = {"relay": by_relay, "direct": direct}
        arrays = {way: slow_tasks(site, 200) for way, site in sites.items()}
        for site in sites.values():
            site.wait_for_lines(20, 120)
        with distant.line.half_open():
            for way, site in sites.items():
                log = site.home / "engine.log"
                wait_until(lambda: MISSED[way] in log.read_text(), 200, f"the engine to miss the {way}")
        for way, site in sites.items():
            all_end(site, arrays[way], 200)


class FakeRunner(FarSite):
    """Its pilots run nothing: a task `sleep` takes its time and no more."""

    def configure(self, text):
        whole = json.loads(text)
        whole["sites"][0]["setup"] = [f"export HPCBATCH_PILOT_RUNS_NOTHING={self.directory}/w"]
        return super().configure(json.dumps(whole))

    def noted(self, what):
        """When it happened to each task, in seconds, as the pilots saw it."""
        lines = (
            line.split() for file in self.history.glob("pilot-*.history") for line in file.read_text().splitlines()
        )
        return {facts[0]: int(when) / 1e6 for when, _, happened, *facts in lines if happened == what}


@pytest.mark.alone
@pytest.mark.parametrize("way", ["relay", "direct"])
def test_a_distant_pilots_slots_are_busy(distant, way):
    count, takes = 20_000, 0.05
    with site_of(distant, way, MANY, FakeRunner) as site:
        array = site.submit("--array", f"1-{count}", "--", "sleep", str(takes))
        assert site.wait(array, timeout=120) == 0
        starts, ends = site.noted("attempt-started"), site.noted("attempt-ended")
        assert len(starts) == len(ends) == count
        slots = MANY_SLOTS * (max(ends.values()) - min(starts.values()))
        busy = sum(ends[task] - starts[task] for task in starts) / slots
        # A pilot that this machine's other work holds up looks late at its clock: its tasks then take longer, and are not waited for.
        print(f"{way}: {busy:.3f} of the slots were busy, {count * takes / slots:.3f} with what a task is to take")
        assert busy >= 0.9
