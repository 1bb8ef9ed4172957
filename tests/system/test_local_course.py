"""When tasks start and when they must end: dependencies of all kinds, moments, names, signals, and what runs again."""

import os
import signal
import time

import pytest
from engine_at_home import EngineAtHome, wait_until


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


@pytest.fixture
def folder(shared, request):
    path = shared.directory / request.node.name
    path.mkdir()
    return path


def explained(shared, task):
    return shared.ok("explain", task)


# --- What a task waits for ---


def test_after_a_failure(shared):
    bad, good = shared.submit("--", "false"), shared.submit("--", "true")
    after_bad = shared.submit("--after-failed", bad, "--", "true")
    after_good = shared.submit("--after-failed", good, "--", "true")
    assert shared.wait(after_bad) == 0
    assert shared.wait(after_good) == 1
    ended = shared.show(after_good)
    assert (ended["failure"], ended["state"]) == ("dependency_failed", "failed")
    assert f"{good}, which was to fail and succeeded" in ended["message"]


def test_after_a_start_and_some_time(shared):
    first = shared.submit("--hold", "--", "sleep", "600")
    soon = shared.submit("--after-start", first, "--", "true")
    later = shared.submit("--after-start", f"{first}+3s", "--", "date", "+%s.%N")
    assert "the start of" in explained(shared, soon)
    shared.ok("release", first)
    assert shared.wait(soon) == 0
    assert shared.wait(later) == 0
    began = shared.show(first)["started_at"]
    assert shared.show(soon)["started_at"] >= began
    assert float(shared.ok("log", later)) - began >= 2.5
    shared.ok("cancel", first)


def test_one_of_several_is_enough(shared):
    bad = shared.submit("--", "false")
    held = shared.submit("--hold", "--", "true")
    good = shared.submit("--", "true")
    assert (
        shared.wait(shared.submit("--after", bad, "--after", good, "--after", held, "--after-one", "--", "true")) == 0
    )
    other = shared.submit("--after", bad, "--after-failed", good, "--after-one", "--", "true")
    assert shared.wait(other) == 1
    shared.ok("cancel", held)


def test_an_index_as_its_user_counts(shared, folder):
    array = shared.submit(
        "--array", "0-2", "--", "sh", "-c", f"test $HPCBATCH_TASK_INDEX != 1 && touch {folder}/$HPCBATCH_TASK_INDEX"
    )
    assert shared.wait(shared.submit("--after", f"{array}_0", "--", "test", "-e", folder / "0")) == 0
    assert shared.wait(shared.submit("--after", f"{array}_1", "--", "true")) == 1


def test_tasks_of_one_name_run_one_after_the_other(shared, folder):
    script = f"mkdir {folder}/one || touch {folder}/wrong; sleep 0.1; rmdir {folder}/one"
    shared.submit("--name", "alone", "--", "sh", "-c", script)
    ids = [shared.submit("--name", "alone", "--singleton", "--", "sh", "-c", script) for _ in range(3)]
    ids.append(shared.submit("--name", "alone", "--singleton", "--array", "1-3", "--", "sh", "-c", script))
    assert shared.wait(*ids) == 0
    assert not (folder / "wrong").exists()


# --- Moments ---


def test_begins_when_its_time_has_come(shared):
    task = shared.submit("--begin", "now+3seconds", "--", "date", "+%s.%N")
    assert "begins in" in explained(shared, task)
    submitted = shared.show(task)["submitted_at"]
    assert shared.wait(task) == 0
    assert float(shared.ok("log", task)) - submitted >= 1.9


def test_cannot_end_before_its_deadline(shared):
    task = shared.submit("--hold", "--deadline", "now+1hour", "--time", "2h", "--", "true")
    assert shared.wait(task) == 1
    ended = shared.show(task)
    assert ended["failure"] == "deadline" and "could not end before its deadline" in ended["message"]


def test_runs_at_its_deadline(shared):
    task = shared.submit("--deadline", "now+2seconds", "--", "sleep", "600")
    assert shared.wait(task) == 1
    assert shared.show(task)["failure"] == "deadline"


@pytest.mark.parametrize(
    "words",
    [
        ("--begin", "soon"),
        ("--signal", "FOO@2m"),
        ("--requeue-exit", "0"),
        ("--singleton",),
        ("--singleton", "--name", "two\nlines"),
    ],
)
def test_what_makes_no_sense_is_refused(shared, words):
    result = shared.verb("submit", *words, "--", "true")
    assert result.code == 2 and len(result.err.strip().splitlines()) == 1, result.err


# --- Time that is known inside ---


def test_a_task_knows_when_its_time_ends(shared):
    out = shared.ok(
        "run", "--time", "60", "--", "sh", "-c", f"echo $HPCBATCH_DEADLINE; {shared.program} time-left; date +%s"
    )
    deadline, left, now = map(int, out.split())
    assert 0 <= deadline - now <= 60 and abs(deadline - now - left) <= 2
    assert shared.verb("run", "--", shared.program, "time-left").code == 1
    assert "no task of hpcbatch" in shared.verb("time-left").err


def test_a_signal_comes_before_the_limit(shared):
    script = 'trap "echo saved; exit 0" USR1; sleep 60 & wait'
    assert shared.ok("run", "--time", "30", "--signal", "USR1@29s", "--", "bash", "-c", script) == "saved\n"


def test_its_own_grace(shared, folder):
    script = f'trap "sleep 2; touch {folder}/saved; exit 0" TERM; sleep 60 & wait'
    assert shared.verb("run", "--time", "1", "--grace", "1s", "--", "bash", "-c", script).code != 0
    assert not (folder / "saved").exists()
    assert shared.verb("run", "--time", "1", "--", "bash", "-c", script).code != 0
    assert (folder / "saved").exists()


def test_goes_on_from_what_it_has_saved(shared, folder):
    script = f"echo step >> {folder}/state; [ $(wc -l < {folder}/state) -ge 4 ] || exit 85"
    task = shared.submit("--requeue-exit", "85", "--", "sh", "-c", script)
    assert shared.wait(task) == 0
    assert [one["failure"] for one in shared.show(task)["attempts"]] == ["requeued"] * 3
    assert (folder / "state").read_text() == "step\n" * 4


def test_is_run_again_by_hand(shared, folder):
    script = f"[ -e {folder}/once ] && exit 0; touch {folder}/once; sleep 600"
    task = shared.submit("--no-requeue", "--", "sh", "-c", script)
    wait_until(lambda: (folder / "once").exists())
    assert shared.ok("requeue", task) == "1 task told to end and run again\n"
    assert shared.wait(task) == 0
    assert [one["failure"] for one in shared.show(task)["attempts"]] == ["requeued"]
    assert "none of these tasks runs" in shared.verb("requeue", task).err


# --- Other terms for what waits ---


def test_what_waits_is_told_other_terms(shared):
    ids = [shared.submit("--hold", "--", "true") for _ in range(2)]
    assert (
        shared.ok("update", *ids, "--priority", "7", "--mem", "100M", "--time", "5m", "--name", "new")
        == "2 tasks changed\n"
    )
    for task in ids:
        shown = shared.json("list", task)[0]
        assert shown["name"] == "new"
        assert shared.show(task)["needs"]["memory"] == 100 << 20
        assert shared.show(task)["needs"]["time"] == 300
    shared.ok("release", *ids)
    assert shared.wait(*ids) == 0


def test_all_are_changed_or_none(shared):
    held, over = shared.submit("--hold", "--", "true"), shared.submit("--", "true")
    assert shared.wait(over) == 0
    result = shared.verb("update", held, over, "--mem", "100M")
    assert result.code == 2 and f"{over} has ended" in result.err and "nothing was changed" in result.err
    assert "memory" not in shared.show(held)["needs"]
    assert "update" in shared.verb("alter", held).err
    shared.ok("cancel", held)


def test_waits_for_something_else(shared, folder):
    first = shared.submit("--hold", "--", "touch", folder / "first")
    task = shared.submit("--hold", "--", "test", "-e", folder / "first")
    shared.ok("update", task, "--after", first, "--begin", "now+1second")
    shared.ok("release", task)
    shared.ok("release", first)
    assert shared.wait(task) == 0
    assert "submitted before it" in shared.verb("update", shared.submit("--hold", "--", "true"), "--after", "9999").err


# --- Pilots that die, and engines ---


def test_what_runs_once_is_not_run_again():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        ran = engine.directory / "ran"
        once = engine.submit("--no-requeue", "--", "sh", "-c", f"echo once >> {ran}; sleep 600")
        wait_until(lambda: ran.exists())
        for pid in engine.pilot_pids():
            os.kill(pid, signal.SIGKILL)
        assert engine.wait(once) == 1
        assert engine.show(once)["failure"] in ("node_lost", "pilot_killed")
        assert ran.read_text() == "once\n"


def test_moments_and_waits_outlive_the_engine():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        first = engine.submit("--hold", "--", "false")
        task = engine.submit("--begin", "now+4seconds", "--name", "x", "--", "true")
        failed = engine.submit("--after-failed", first, "--", "true")
        alone = engine.submit("--singleton", "--name", "x", "--", "true")
        os.kill(engine.engine_pid(), signal.SIGKILL)
        time.sleep(0.2)
        assert "begins in" in engine.ok("explain", task)
        engine.ok("release", first)
        assert engine.wait(failed, alone) == 0
        assert engine.show(alone)["started_at"] >= engine.show(task)["ended_at"] - 0.1
