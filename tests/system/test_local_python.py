"""The package `hpcbatch` for Python does from a script what the command line does."""

import asyncio
import datetime
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import time

import pytest
from engine_at_home import EngineAtHome, wait_until

HERE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(HERE / "python"))
import hpcbatch  # noqa: E402


@pytest.fixture
def client(monkeypatch):
    with EngineAtHome() as home:
        for name, value in home.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(home.directory)
        yield hpcbatch.Client(home.program)


def test_an_engine_is_started_and_a_command_runs(client):
    work = client.submit(
        ["sh", "-c", 'echo "hi $A"; echo oops >&2; exit 3'], cpus=0.5, mem="100M", env={"A": "b c"}, name="mine"
    )
    counts = work.wait()
    assert (counts.total, counts.failed, counts.all_done) == (1, 1, False)
    task = client.task(work.id)
    assert (task.state, task.exit_code, task.failure, task.index, task.facts["name"]) == (
        "failed",
        3,
        "tool_failed",
        None,
        "mine",
    )
    assert (work.log(), work.log(stream="stderr")) == ("hi b c\n", "oops\n")
    assert "exit code 3" in work.explain()
    with pytest.raises(hpcbatch.Failed, match="1 of 1 failed") as failed:
        work.wait(check=True)
    assert failed.value.counts.failed == 1


def test_items_fill_commands_and_paths(client, tmp_path):
    work = client.submit(
        ["echo", "{sample}", "{lambda}"],
        items=[{"sample": "a b", "lambda": 0.1}, {"sample": "$(id)", "lambda": 2}],
        stdout="{#}.txt",
        cwd=tmp_path,
    )
    assert work.wait(check=True).done == 2
    assert [(tmp_path / f"{i}.txt").read_text() for i in (1, 2)] == ["a b 0.1\n", "$(id) 2\n"]
    numbers = client.submit(["echo", "{}"], items=[1, 0.5, tmp_path])
    numbers.wait()
    assert [task.item for task in numbers.tasks()] == ["1", "0.5", str(tmp_path)]
    rows = client.submit(["echo", "{y}{1}"], items=[("a", 1), ("b", 2)], columns=["x", "y"])
    rows.wait(check=True)
    assert rows.log() == "1a\n2b\n" and rows.log(2) == "2b\n"
    assert [(task.index, task.item) for task in rows.tasks()] == [(1, "a 1"), (2, "b 2")]
    first = client.submit(["true"], array="1-9:4")
    after = client.submit(["true"], array="1-9:4", after_each=first)
    assert [task.id for task in after.tasks()] == [f"{after}.{i}" for i in (1, 5, 9)]
    after.wait(check=True)


def test_what_is_submitted_can_be_pickled_and_found_again(client):
    work = client.submit(
        ["sh", "-c", "echo $HPCBATCH_TASK_INDEX"],
        array=range(1, 9, 3),
        memory="100M",
        time=datetime.timedelta(minutes=2),
    )
    assert client.task(f"{work}.1").facts["needs"]["time"] == 120
    again = pickle.loads(pickle.dumps(work))
    assert again.id == work.id and again.wait(timeout=datetime.timedelta(seconds=60)).done == 3
    assert client.submission(int(work.id)).log(7) == "7\n" and again.log() == "1\n4\n7\n"
    with pytest.raises(hpcbatch.Refused, match="no task 9999"):
        client.submission(9999)
    work.retry(memory="120M", time=datetime.timedelta(minutes=3))


def test_an_await_can_be_given_up(client):
    async def wait_a_little():
        await asyncio.wait_for(as_coroutine(client.submit(["sleep", "600"], memory="50M")), 0.5)

    async def as_coroutine(work):
        return await work

    begin = time.monotonic()
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(wait_a_little())
    assert time.monotonic() - begin < 30

    async def wait_for_many():
        works = [client.submit(["sleep", "1"], cpus=0.1, memory="20M") for _ in range(12)]
        return await asyncio.gather(*(as_coroutine(work) for work in works))

    assert all(counts.all_done for counts in asyncio.run(wait_for_many()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": {"a": 1}},
        {"command": {"true"}},
        {"items": {"a": 1}},
        {"tags": "gpu"},
        {"not_sites": "far"},
        {"columns": "ab", "items": [("a", "b")]},
        {"memory": "1G", "mem": "1G"},
        {"array": range(0)},
        {"array": range(9, 1, -1)},
    ],
)
def test_what_python_would_take_for_something_else_is_refused(client, wrong):
    with pytest.raises(hpcbatch.Error, match="|".join(wrong)):
        client.submit(**{"command": ["true"], **wrong})


def test_the_package_is_the_program_too(client):
    said = subprocess.run(
        [sys.executable, "-m", "hpcbatch", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HPCBATCH_PROGRAM": client.program, "PYTHONPATH": str(HERE / "python")},
    )
    assert said.stdout.startswith("hpcbatch ")


def test_what_goes_wrong_is_an_exception_with_its_sentence(client):
    with pytest.raises(hpcbatch.Refused, match="never_fits"):
        client.submit(["true"], cpus=100_000)
    with pytest.raises(hpcbatch.Refused, match="there is no task 999"):
        client.task("999")
    with pytest.raises(hpcbatch.Error, match="a list of words"):
        client.submit("echo hi")
    with pytest.raises(hpcbatch.Refused, match="either 'command' or 'tool'"):
        client.submit()
    slow = client.submit(["sleep", "600"])
    with pytest.raises(TimeoutError, match="1 of 1 had not ended"):
        slow.wait(timeout=0.2)
    assert slow.cancel() == 1 and slow.wait().cancelled == 1


def test_the_same_key_is_the_same_work_and_a_retry_may_need_more(client, tmp_path):
    command = ["sh", "-c", f"test -e {tmp_path}/go"]
    work = client.submit(command, key="k", max_fails=0)
    assert client.submit(command, key="k", max_fails=0).id == work.id
    assert work.wait().failed == 1
    (tmp_path / "go").touch()
    assert work.retry(failed_only=True, mem="200M") == 1
    assert work.wait(check=True).done == 1
    assert client.submissions()[0]["id"] == work.id


def is_away(engine):
    try:
        engine.get("/v1/engine")
    except hpcbatch.EngineAway:
        return True
    return False


def test_an_engine_that_has_ended_meanwhile_is_started_again(client):
    work = client.submit(["true"])
    work.wait(check=True)
    gone = hpcbatch.Client(client.program)._engine
    client._engine.post("/v1/engine/stop", {"mode": "leave"})
    wait_until(lambda: is_away(gone), what="the end of the engine")
    assert client.task(work.id).state == "done"
    assert client.submit(["echo", "again"]).wait(check=True).done == 1


def test_its_version_is_the_programs():
    program = re.search(r"project\(hpcbatch VERSION (\S+)", (HERE / "CMakeLists.txt").read_text()).group(1)
    assert f'version = "{program}"' in (HERE / "python/pyproject.toml").read_text()


def test_who_waits_leaves_a_stopped_engine_alone_and_starts_one_that_died(monkeypatch):
    with EngineAtHome() as home:
        for name, value in home.env.items():
            monkeypatch.setenv(name, value)
        client = hpcbatch.Client(home.program)
        held = client.submit(["true"], hold=True)
        heard = []
        waiting = threading.Thread(target=lambda: heard.append(held.wait(timeout=100)))
        waiting.start()
        home.ok("engine", "stop")
        with pytest.raises(TimeoutError, match="the engine is away"):
            client.wait(held, timeout=2)
        assert home.verb("engine", "status").code != 0, "nobody has started it"
        home.ok("engine", "start")
        home.kill_engine()
        wait_until(lambda: home.verb("engine", "status").code == 0, what="another engine")
        held.release()
        waiting.join()
        assert heard[0].all_done
