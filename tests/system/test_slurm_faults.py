"""What breaks on a cluster costs the user no retry: pilots killed, batch jobs cancelled, nodes lost, the controller away."""

import os
import signal
import time

from engine_at_home import is_alive, parent_of, wait_until
from slurm_site import LONG, SMALL, SlurmSite


def long_tasks(site, count=4):
    """Tasks that the test lets end, and that note each start; returns their array."""
    command = f"echo $HPCBATCH_TASK_ID >> {site.said}; while [ ! -e {site.directory}/go ]; do sleep 0.1; done"
    return site.submit("--array", f"1-{count}", "--retries", "0", "--", "sh", "-c", command)


def let_them_end(site):
    (site.directory / "go").touch()


def must_end_elsewhere(site, array, failure, words, count=4, seconds=300):  # suspects run one after another
    """All tasks of the array ran a second time and succeeded; what became of their first attempts is shown."""
    wait_until(lambda: len(site.lines()) >= 2 * count, seconds, "the second start of all tasks")
    let_them_end(site)
    assert site.wait(array) == 0
    assert len(site.lines()) == 2 * count
    for index in range(1, count + 1):
        task = f"{array}.{index}"
        attempts = site.attempts(task)
        assert [a["failure"] for a in attempts][:1] == [failure], attempts
        assert words in attempts[0]["message"], attempts
        assert words in site.ok("explain", task) + site.ok("show", task)
        shown = site.show(task)
        assert shown["state"] == "done" and shown["attempt"] == 2, shown
    site.must_be_single()


def test_a_pilot_killed(slurm):
    with SlurmSite(slurm, SMALL | {"cpus": 4}) as site:
        array = long_tasks(site)
        site.wait_for_lines(4)
        site.kill_pilots()
        must_end_elsewhere(site, array, "pilot_killed", "it failed")


def test_a_batch_job_cancelled_by_somebody_else(slurm):
    with SlurmSite(slurm, SMALL | {"cpus": 4}) as site:
        array = long_tasks(site)
        site.wait_for_lines(4)
        (job,) = site.living_jobs()
        slurm.ask("scancel", job.number)
        wait_until(lambda: "cancelled" in site.json("allocations")[0].get("message", ""), 30, "the engine's seeing it")
        # Whoever cancelled it is respected: the shape is left alone for half a minute, and that is said.
        assert "cancelled" in site.explained(f"{array}.1", "not asked for")
        must_end_elsewhere(site, array, "pilot_killed", "the batch system or a person ended the pilot")


def test_a_batch_job_that_ends_without_a_pilot_says_why_by_its_output(slurm):
    with SlurmSite(slurm, setup=["echo some words", "echo 'no such module: python/9' >&2", "exit 7"]) as site:
        task = site.submit("--", "true")
        said = site.explained(task, "its output ends with: no such module: python/9")
        assert "its pilot never registered" in said, said
        assert "no such module" in site.json("allocations")[0]["message"]


def test_a_node_lost(slurm):
    """A node's daemon, its batch job's step and pilot are gone: SLURM calls the node lost after SlurmdTimeout."""
    with SlurmSite(slurm, SMALL | {"cpus": 4}) as site:
        array = long_tasks(site)
        site.wait_for_lines(4)
        (job,) = site.living_jobs()
        slurm.cluster("node-kill", job.nodes)
        try:
            for step in {parent_of(pid) for pid in site.pilot_pids()} - site.pilot_pids():
                os.kill(step, signal.SIGKILL)
            site.kill_pilots()
            wait_until(lambda: site.show(f"{array}.1")["state"] in ("unknown", "waiting"), 30, "the pilot's silence")
            assert job.name in site.ok("explain", f"{array}.1")
            must_end_elsewhere(site, array, "node_lost", "node failed", seconds=150)
        finally:
            slurm.cluster("node-start", job.nodes)


def test_a_node_daemon_lost_while_the_pilot_lives(slurm):
    """SLURM ends the batch job, its pilot works on: it is fenced, its tasks are killed and run elsewhere."""
    with SlurmSite(slurm, SMALL | {"cpus": 4}) as site:
        array = long_tasks(site)
        site.wait_for_lines(4)
        (job,) = site.living_jobs()
        old = site.pilot_pids()
        slurm.cluster("node-kill", job.nodes)
        try:
            must_end_elsewhere(site, array, "node_lost", "node failed", seconds=150)
            wait_until(lambda: not any(map(is_alive, old)), 30, "the end of the old pilot")
        finally:
            slurm.cluster("node-start", job.nodes)


def test_the_controller_away_in_the_middle_of_a_run(slurm):
    """Pilots work on, the site says what is wrong, and no allocation is asked for twice."""
    away = 60 if LONG else 15
    with SlurmSite(slurm, SMALL | {"cpus": 4}, idle_after="30s") as site:
        slow = f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep 0.2"
        count = 20 * away
        array = site.submit("--array", f"1-{count}", "--", "sh", "-c", slow)
        site.wait_for_lines(8)
        slurm.cluster("controller-pause")
        try:
            seen = len(site.lines())
            wait_until(lambda: site.json("sites")[0].get("message"), away, "the site's trouble")
            site.wait_for_lines(seen + 10 * away)
        finally:
            slurm.cluster("controller-resume")
        assert site.wait(array) == 0
        site.must_have_said(array, count)
        site.must_be_single()


def test_the_answer_to_a_submit_lost(slurm):
    """sbatch gives up on a paused controller, which has the batch job nonetheless once it goes on."""
    away = 60 if LONG else 20
    with SlurmSite(slurm, SMALL | {"cpus": 4}, max_queued=1, settle_after="10s") as site:
        site.ok("engine", "start")
        slurm.cluster("controller-pause")
        try:
            begin = time.monotonic()
            array = site.submit("--array", "1-100", *site.say())
            wait_until(lambda: site.json("allocations")[0]["state"] == "unclear", 30, "sbatch's giving up")
            assert "lost" in site.ok("explain", f"{array}.1")
            wait_until(lambda: time.monotonic() - begin > away, 2 * away)
        finally:
            slurm.cluster("controller-resume")
        assert site.wait(array) == 0
        site.must_have_said(array, 100)
        assert site.must_be_single() == 1


def test_a_node_on_which_every_command_fails(slurm):
    """The first pilot's node has lost a program: few of the tasks meet it, and `sites` and `explain` say so."""
    with SlurmSite(slurm, SMALL | {"cpus": 4}, max_running=2) as site:
        first = site.directory / "first"
        command = (
            f'ln -s "$HPCBATCH_PILOT" {first} 2>/dev/null; [ "$(readlink {first})" = "$HPCBATCH_PILOT" ] && exit 127; '
            f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep 0.3"
        )
        array = site.submit("--array", "1-100", "--retries", "0", "--", "sh", "-c", command)
        wait_until(lambda: site.json("sites")[0].get("nodes"), 60, "a node in doubt")
        node = site.json("sites")[0]["nodes"][0]
        assert node["state"] in ("doubted", "avoided") and "exit 127" in node["message"], node
        assert node["name"] in site.ok("sites")
        site.wait(array)
        assert len(site.lines()) >= 97, "most tasks went elsewhere"
        assert len(set(site.lines())) == len(site.lines())


def test_a_task_that_kills_its_pilot(slurm):
    """It is set aside after three pilots, with the evidence; whoever was beside it or behind it ends well."""
    with SlurmSite(slurm, SMALL | {"cpus": 4}) as site:
        killer = site.submit("--", "sh", "-c", "kill -9 $PPID")
        others = site.submit("--array", "1-20", *site.say())
        assert site.wait(others) == 0
        assert site.show(others)["counts"]["done"] == 20
        assert site.wait(killer) == 1
        shown = site.show(killer)
        assert shown["failure"] == "set_aside" and "3 pilots" in shown["message"], shown
