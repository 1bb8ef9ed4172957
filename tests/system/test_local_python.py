"""The package `hpcbatch` for Python does from a script what the command line does."""

import pathlib
import re
import sys
import threading

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


def test_an_engine_that_has_ended_meanwhile_is_started_again(client):
    work = client.submit(["true"])
    work.wait(check=True)
    client._engine.post("/v1/engine/stop", {"mode": "leave"})
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
