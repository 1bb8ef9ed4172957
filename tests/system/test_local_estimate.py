"""Needs that are guessed from what runs of a kind used before."""

import json

import pytest
from engine_at_home import EngineAtHome

# Keeps so many megabytes, and says how many of its kind are there at the same time.
HOLD = (
    "import os, sys, time\n"
    "mine = os.path.join(sys.argv[2], str(os.getpid()))\n"
    "open(mine, 'w').close()\n"
    "kept = bytearray(os.urandom(1 << 20)) * int(sys.argv[1])\n"
    "most, end = 1, time.monotonic() + 1.5\n"
    "while time.monotonic() < end:\n"
    "    most = max(most, len(os.listdir(sys.argv[2])))\n"
    "    time.sleep(0.05)\n"
    "print(most)\n"
    "os.remove(mine)\n"
)
SITE = {
    "sites": [
        {
            "name": "here",
            "scheduler": "local",
            "transport": "shared_fs",
            "idle_after": "60s",
            "shapes": [{"name": "all", "cpus": 4, "memory": "1200M", "walltime": "1h"}],
        }
    ]
}


@pytest.fixture(scope="module")
def home():
    with EngineAtHome() as engine:
        SITE["sites"][0]["workspace"] = str(engine.directory / "w")
        engine.configure(json.dumps(SITE))
        engine.ok("engine", "start")
        yield engine


def hold(home, megabytes, count, folder, *options):
    folder.mkdir()
    task = home.submit(
        "--array",
        f"1-{count}",
        "--kind",
        "holder",
        "--mem",
        "900M",
        *options,
        "--",
        "/usr/bin/python3",
        "-c",
        HOLD,
        megabytes,
        folder,
    )
    assert home.wait(task) == 0, home.ok("explain", task)
    return task, max(int(word) for word in home.ok("log", task).split())


def test_what_asks_for_much_more_than_is_used_is_packed_by_use(home, tmp_path):
    _, most = hold(home, 20, 10, tmp_path / "a")
    assert most == 1, "two of 900M do not fit"
    home.ok("report")  # all that has ended is learned
    told = home.verb("submit", "--kind", "holder", "--mem", "900M", "--estimate", "advise", "--", "true")
    assert told.code == 0
    tries = 40
    # What is known is looked at a few seconds after somebody first wants it.
    while "runs of holder that are known" not in told.err and tries:
        tries -= 1
        told = home.verb("submit", "--kind", "holder", "--mem", "900M", "--estimate", "advise", "--", "true")
    assert tries, told.err
    task, most = hold(home, 20, 8, tmp_path / "b", "--estimate", "use")
    assert most >= 3
    needs = home.show(f"{task}.1")["needs"]
    assert needs["guess"]["memory"] == 900 << 20 and needs["memory"] < 200 << 20


def test_a_guess_that_was_too_small_costs_nobody_a_failure(home, tmp_path):
    task, _ = hold(home, 600, 3, tmp_path / "c", "--estimate", "use", "--retries", "0")
    assert home.show(task)["counts"]["done"] == 3


def test_what_is_wrong_is_said(home):
    told = home.verb("submit", "--estimate", "us", "--", "true")
    assert told.code == 2 and "none of off, advise, use" in told.err
