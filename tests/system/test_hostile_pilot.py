"""Who has the key of one allocation harms that one's tasks, and no other's; who says more is put out and told of."""

import time

import pytest
from engine_at_home import wait_until
from hostile_pilot import HostilePilot, attempt, message, registration

# Pilots of `silent` never come: the test comes in their place.
SITES = """sites:
  - name: honest
    scheduler: local
    workspace: {home}/honest
    shapes: [{{name: one, cpus: 1, memory: 1G, walltime: 1h}}]
  - name: silent
    scheduler: local
    workspace: {home}/silent
    setup: [sleep 1000]
    shapes: [{{name: one, cpus: 1, memory: 1G, walltime: 1h}}]
"""


@pytest.fixture
def victim(home):
    """A task that runs at the honest site until `go` is there; of the silent site the file that says its pilot's key."""
    home.configure(SITES.format(home=home.directory))
    go = home.directory / "go"
    task = home.submit("--site", "honest", "--", "sh", "-c", f"echo true word; until [ -e {go} ]; do sleep 0.05; done")
    bait = home.submit("--site", "silent", "--", "true")
    files = home.directory / "silent/allocations"
    wait_until(lambda: list(files.glob("*.pilot")), 60, "the pilot file of the silent site")
    wait_until(lambda: home.show(task)["state"] == "running", 60, "the start of the task")
    yield home, int(task), go, next(files.glob("*.pilot")), bait
    home.verb("cancel", bait)


def epoch_of(home, task):
    """As the engine's own record of leases has it: an attacker could not know it."""
    for file in home.history.glob("engine*"):
        for line in file.read_text().splitlines():
            if " leased " in line and f" task={task} " in line:
                return int(dict(fact.split("=", 1) for fact in line.split()[3:])["epoch"])
    raise AssertionError("no lease was recorded")


def rejected(home):
    return home.status()["rejected_peers"]["overstepped"]


FORGERIES = {
    "started": lambda it: message((2, it)),
    "results": lambda it: message((3, message((1, it), (2, "ok"), (5, 1), (6, 2)))),
    "returned": lambda it: message((4, it)),
    "chunks": lambda it: message((5, message((1, it), (2, 1), (3, "forged")))),
    "input_wanted": lambda it: message((6, message((1, it), (3, 1)))),
    "workspace": lambda it: message((11, message((2, it)))),
}


def test_what_is_said_of_anothers_task_comes_to_nothing(victim):
    home, task, go, file, _ = victim
    epoch = epoch_of(home, task)
    # Held, by one that comes; all others by one that is welcome.
    forgeries = {"held": registration(held=[message((1, attempt(task, epoch)), (2, 2))])}
    before = rejected(home)
    with HostilePilot(file) as pilot:
        pilot.say(forgeries["held"])
        assert pilot.is_put_out()
    assert rejected(home) == before + 1
    assert home.show(task)["state"] == "running"
    # The key has done its last: the engine cancels what it belongs to.
    with HostilePilot(file) as pilot:
        pilot.say(registration(incarnation=2))
        assert pilot.is_put_out()
    told = home.verb("sites").out + home.ok("allocations") + (home.home / "engine.log").read_text()
    assert "said what it may not" in told and f"task {task}" in told
    go.touch()
    assert home.wait(task) == 0
    assert home.ok("log", task) == "true word\n"


@pytest.mark.parametrize("kind", FORGERIES)
@pytest.mark.parametrize("off", [0, 1])
def test_each_kind_of_word(victim, kind, off):
    home, task, go, file, _ = victim
    forged = FORGERIES[kind](attempt(task, epoch_of(home, task) + off))
    with HostilePilot(file) as pilot:
        pilot.say(registration(), forged)
        assert pilot.is_put_out()
    assert rejected(home) == 1
    assert home.show(task)["state"] == "running" and len(home.show(task).get("attempts", [])) <= 1
    go.touch()
    assert home.wait(task) == 0
    assert home.ok("log", task) == "true word\n"


@pytest.mark.parametrize(
    "rank, word",
    [
        (7, registration),
        (0, lambda: registration(capacity=[("cpus", 100_000)])),
        (0, lambda: registration(capacity=[(f"n{i}", 1) for i in range(200_000)])),
        (0, lambda: registration(node="n\n2026-01-01T00:00:00.000 info forged\x1b[2J\u202e" + "x" * 300)),
    ],
    ids=["rank", "cpus", "many names", "long name"],
)
def test_more_than_was_asked_for_is_put_out_at_once(victim, rank, word):
    home, task, go, file, _ = victim
    begun = time.monotonic()
    with HostilePilot(file, rank) as pilot:
        pilot.say(word())
        assert pilot.is_put_out()
    assert rejected(home) == 1
    # 200,000 names made it mute for 164 s.
    assert time.monotonic() - begun < 30
    go.touch()
    assert home.wait(task) == 0


def test_its_name_is_shown_and_not_obeyed(victim):
    home, _, go, file, _ = victim
    with HostilePilot(file) as pilot:
        pilot.say(registration(node="n\n2026-01-01T00:00:00.000 info forged\x1b[2J\u202e"))
        wait_until(lambda: "forged" in (home.home / "engine.log").read_text(), 30, "the line in the log")
        log = (home.home / "engine.log").read_text()
        assert "n\\n2026-01-01T00:00:00.000 info forged\\x1b[2J\\u202e" in log
        assert not any(line.startswith("2026-01-01T00:00:00.000 info forged") for line in log.splitlines())
        shown = home.ok("pilots")
        assert "\x1b" not in shown and "\u202e" not in shown
    go.touch()
