"""The engine killed with -9 at each labelled point of a run on SLURM and started again: nothing starts twice."""

import re

import pytest
from drawn import drawn
from engine_at_home import ROOT, is_alive, wait_until
from slurm_site import SMALL, SlurmSite

# Where the engine kills itself, and at which pass. One allocation may be asked for, so a run whose pilot was not used on
# would need a second batch job.
POINTS = [
    "submit-received",
    "submit-decided",
    "submit-durable",
    "intent-durable",
    "submit-command-started",
    "submit-command-answered",
    "allocation-accepted",
    "poll-answered",
    "pilot-registered",
    "lease-decided:2",
    "lease-written:2",
    "lease-sent",
    "lease-sent:3",
    "result-received:2",
    "result-durable",
    "result-durable:10",
]
# More than a pilot holds at once, so that every point is passed often enough.
COUNT = 2000


def all_labels():
    text = "".join(path.read_text() for path in (ROOT / "core").rglob("*.cpp"))
    return set(re.findall(r'crash_point\("([a-z-]+)"\)', text))


def start_to_die_at(site, point):
    """An engine that will kill itself at the point; returns its process id."""
    site.ok("engine", "start", HPCBATCH_CRASH_AT=point)
    return site.engine_pid()


def test_every_label_is_tried_here():
    tried = {point.partition(":")[0] for point in POINTS} | {"outbox-read", "publish-permitted"}
    assert all_labels() == tried


@pytest.mark.parametrize("point", drawn(POINTS))
def test_a_run_goes_on_after_a_kill_at(slurm, point):
    with SlurmSite(slurm, SMALL | {"cpus": 4}, max_queued=1, max_running=1, idle_after="5s") as site:
        engine = start_to_die_at(site, point)
        words = ("submit", "--array", f"1-{COUNT}", "--key", "once", *site.say())
        site.verb(*words)  # at the first points its answer is lost with the engine
        wait_until(lambda: not is_alive(engine), 60, f"the engine's end at {point}")
        site.ok("engine", "start")
        array = site.ok(*words).strip()
        assert site.wait(array) == 0, site.json("show", array)
        site.must_have_said(array, COUNT)
        assert site.must_be_single() == 1, "the pilot was not used on"


WRITER = """tool: writer
version: 1.0.0
summary: Notes that it ran, and writes a line
plugin: command
outputs:
  line: {{file: line.txt, description: The line}}
command: [sh, -c, "echo $HPCBATCH_TASK_ID >> {said}; echo written > {{line}}"]
"""


def test_a_kill_while_outputs_are_put_in_place(slurm):
    with SlurmSite(slurm, max_queued=1, max_running=1) as site:
        (site.tools / "writer.yaml").write_text(WRITER.format(said=site.said))
        engine = start_to_die_at(site, "publish-permitted:2")
        outputs = [site.directory / f"output-{n}" for n in range(6)]
        tasks = [site.submit("--tool", "writer", "--output", f"line={output}") for output in outputs]
        wait_until(lambda: not is_alive(engine), 60, "the engine's end")
        site.ok("engine", "start")
        assert site.wait(*tasks) == 0
        assert sorted(site.lines()) == sorted(tasks)
        assert [output.read_text() for output in outputs] == ["written\n"] * 6
        assert site.must_be_single() == 1


def test_a_kill_while_the_results_of_a_dead_pilot_are_read(slurm):
    """What it held unfinished runs again; what had ended does not."""
    with SlurmSite(slurm, SMALL | {"cpus": 4}, max_queued=1, max_running=1) as site:
        engine = start_to_die_at(site, "outbox-read")
        ended = site.submit("--array", "1-50", *site.say())
        assert site.wait(ended) == 0
        cut = site.submit(
            "--array",
            "1-4",
            "--",
            "sh",
            "-c",
            f"echo $HPCBATCH_TASK_ID >> {site.said}; while [ ! -e {site.directory}/go ]; do sleep 0.1; done",
        )
        site.wait_for_lines(54)
        site.kill_pilots()
        wait_until(lambda: not is_alive(engine), 60, "the engine's end")
        (site.directory / "go").touch()
        site.ok("engine", "start")
        assert site.wait(cut) == 0
        site.must_have_said(ended, 50)
        assert len([line for line in site.lines() if line.startswith(f"{cut}.")]) == 8
        assert site.show(cut)["counts"]["done"] == 4
        assert site.must_be_single() == 2
