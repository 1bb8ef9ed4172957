"""The engine stopped or killed at any point of a run: every task is started once and has one result, and pilots that
ran are used on."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest
from drawn import drawn
from engine_at_home import ROOT, EngineAtHome, is_alive, wait_until

sys.path.insert(0, str(ROOT / "python"))
import hpcbatch.client  # noqa: E402

LABELS = sorted(
    {
        label
        for file in (ROOT / "core").rglob("*.cpp")
        for label in re.findall(r'crash_point\("([a-z-]+)"\)', file.read_text())
    }
)


def numbered(home, count, pause=""):
    """An array whose tasks each append their index to the file `started`."""
    return ["--array", f"1-{count}", "--", "sh", "-c", f"echo $HPCBATCH_TASK_INDEX >> {home.directory}/started{pause}"]


def starts(home):
    file = home.directory / "started"
    return file.read_text().split() if file.exists() else []


def check_once(home, array, count, cut=()):
    """Every task was started once and has one result; those of `cut`, which ran when their pilot ended, may have begun twice."""
    assert home.wait(array) == 0, home.log_end()
    counts = collections.Counter(starts(home))
    assert {index: n for index, n in counts.items() if n != 1 and not (n == 2 and index in cut)} == {}
    assert len(counts) == count
    shown = home.show(array)
    assert (shown["counts"]["done"], shown["ended"]) == (count, True)
    lines = home.json("list", array, "--all")
    assert sum(line.get("tasks", 1) for line in lines) == count and len({line["id"] for line in lines}) == len(lines)
    assert {line["state"] for line in lines} == {"done"}


def test_a_killed_engine_starts_nothing_twice_and_its_pilot_works_on(home):
    array = home.submit(*numbered(home, 500, "; sleep 0.01"))
    wait_until(lambda: len(starts(home)) > 100, 30, "the hundredth start")
    pilots = home.pilot_pids()
    assert pilots
    home.kill_engine()
    seen = len(starts(home))
    wait_until(lambda: len(starts(home)) > seen or len(starts(home)) == 500, 20, "work of the pilot without its engine")
    home.ok("engine", "start")
    check_once(home, array, 500)
    assert home.pilot_pids() == pilots
    assert len(home.json("allocations")) == 1


def test_input_goes_on_over_a_restart_of_the_engine(home):
    run = home.begin("run", "--", "cat")
    for number in range(4):
        line = f"line {number}\n"
        run.stdin.write(line)
        run.stdin.flush()
        assert run.stdout.readline() == line
        if number % 2 == 0:
            home.kill_engine()
            home.ok("engine", "start")
    home.kill_engine()
    run.stdin.close()
    home.ok("engine", "start")
    assert run.wait(60) == 0, run.stderr.read() + home.log_end()
    assert run.stdout.read() == ""


def test_labels_were_found():
    assert len(LABELS) >= 10


# Passed only where a pilot left results in its outbox, or where outputs are published: each has a test of its own.
OWN_TESTS = {"outbox-read", "publish-permitted"}


def begin_to_die(home, label):
    """An engine that dies where it passes the label; what it says goes to its log."""
    home.home.mkdir(mode=0o700, exist_ok=True)
    with open(home.home / "engine.log", "a") as log:
        process = subprocess.Popen(
            [home.program, "engine", "run"],
            env=home.env | {"HPCBATCH_CRASH_AT": label},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return process


def wait_for_death(home, process, label):
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail(f"{label} was never passed\n{home.log_end()}")
    assert process.returncode == -signal.SIGKILL, home.log_end()


@pytest.mark.parametrize("label", drawn(label for label in LABELS if label not in OWN_TESTS))
def test_killed_at(home, label):
    """The engine dies when it passes the label; a client hands the same submission in again, as one that got no answer
    does; and nothing is started twice."""
    often = label.startswith(("lease-", "result-"))
    engine = begin_to_die(home, f"{label}:2" if often else label)
    wait_until(lambda: home.verb("engine", "status").code == 0, 20, "the start of the engine")
    words = ["--key", "one-run", *numbered(home, 300, "; sleep 0.005")]
    first = home.begin("submit", *words)
    wait_for_death(home, engine, label)
    home.ok("engine", "start")
    first.communicate(timeout=60)
    array = home.submit(*words)
    check_once(home, array, 300)
    # What a submit command had begun may die with its engine: the allocation has then ended before it was one.
    cut = [one for one in home.json("allocations") if "its process is gone" in one.get("message", "")]
    assert len(home.json("allocations")) - len(cut) == 1
    assert not cut or label == "submit-command-started"


def test_killed_at_reading_what_a_pilot_left(home):
    array = home.submit(*numbered(home, 100, "; sleep 0.05"))
    wait_until(lambda: len(starts(home)) > 10, 30, "the tenth start")
    home.kill_engine()
    pilots = home.pilot_pids()
    os.kill(max(pilots), signal.SIGTERM)
    wait_until(lambda: not any(map(is_alive, pilots)), 30, "the end of the pilot")
    wait_for_death(home, begin_to_die(home, "outbox-read"), "outbox-read")
    home.ok("engine", "start")
    assert home.wait(array) == 0
    # A pilot that is told to end does not wait for what runs.
    tries = {str(n): home.show(f"{array}.{n}").get("attempts", []) for n in range(1, 101)}
    cut = [
        index
        for index, each in tries.items()
        if any("started_at" in one and one["failure"] == "pilot_killed" for one in each)
    ]
    assert len(cut) <= len(os.sched_getaffinity(0))
    check_once(home, array, 100, cut)


def test_a_workspace_that_is_away_is_waited_for(home):
    """What a dead pilot left is not called lost because nobody can see it now."""
    array = home.submit(*numbered(home, 100, "; sleep 0.05"))
    wait_until(lambda: len(starts(home)) > 10, 30, "the tenth start")
    engine, pilots = home.engine_pid(), home.pilot_pids()
    os.kill(engine, signal.SIGSTOP)
    os.kill(max(pilots), signal.SIGTERM)
    wait_until(lambda: not any(map(is_alive, pilots)), 30, "the end of the pilot")
    workspace = home.home / "workspace"
    assert list((workspace / "outbox").iterdir())
    # As a place shows itself where nothing is mounted.
    away = workspace.rename(home.home / "away")
    workspace.mkdir(0o700)
    os.kill(engine, signal.SIGCONT)
    wait_until(lambda: "mounted?" in home.log_end(), 60, "the engine to miss the outbox")
    workspace.rename(home.home / "empty")
    away.rename(workspace)
    assert home.wait(array) == 0
    tries = {str(n): home.show(f"{array}.{n}").get("attempts", []) for n in range(1, 101)}
    cut = [
        index
        for index, each in tries.items()
        if any("started_at" in one and one["failure"] == "pilot_killed" for one in each)
    ]
    assert len(cut) <= len(os.sched_getaffinity(0))
    check_once(home, array, 100, cut)


def test_killed_at_publishing_outputs(home):
    (home.directory / "tools").mkdir()
    (home.directory / "tools/write.yaml").write_text(
        "tool: write\nversion: 1.0.0\nsummary: Writes a file\nplugin: command\noutputs:\n  out: {file: out}\n"
        f"command: [sh, -c, 'echo x >> {home.directory}/started; echo written > \"$1\"', sh, '{{out}}']\n"
    )
    home.configure(f"tool_path: [{home.directory}/tools]\n")
    engine = begin_to_die(home, "publish-permitted:3")
    wait_until(lambda: home.verb("engine", "status").code == 0, 20, "the start of the engine")
    tasks = [
        home.submit("--key", f"task-{n}", "--tool", "write", "--output", f"out={home.directory}/out{n}")
        for n in range(10)
    ]
    wait_for_death(home, engine, "publish-permitted")
    home.ok("engine", "start")
    assert home.wait(*tasks) == 0
    assert [(home.directory / f"out{n}").read_text() for n in range(10)] == ["written\n"] * 10
    assert starts(home) == ["x"] * 10


def test_stop_leaves_pilots_and_tasks_which_are_found_again(home):
    array = home.submit(*numbered(home, 100, "; sleep 0.02"))
    wait_until(lambda: len(starts(home)) > 10, 30, "the tenth start")
    engine, pilots = home.engine_pid(), home.pilot_pids()
    home.ok("engine", "stop")
    wait_until(lambda: not is_alive(engine), 10, "the engine's end")
    assert all(map(is_alive, pilots))
    home.ok("engine", "start")
    check_once(home, array, 100)
    assert home.pilot_pids() == pilots


def test_stop_with_drain_waits_for_what_runs(home):
    running = home.submit(
        "--", "sh", "-c", f"echo begun > {home.directory}/begun; sleep 1; echo end > {home.directory}/end"
    )
    wait_until((home.directory / "begun").exists, 20, "the task's start")
    engine = home.engine_pid()
    home.ok("engine", "stop", "--drain")
    wait_until(lambda: not is_alive(engine), 20, "the engine's end")
    assert (home.directory / "end").exists()
    wait_until(lambda: not home.pilot_pids(), 20, "the pilots' end")
    home.ok("engine", "start")
    assert home.show(running)["state"] == "done"


def test_stop_now_cancels_all(home):
    pid = home.directory / "pid"
    running = home.submit("--", "sh", "-c", f"echo $$ > {pid}; exec sleep 600")
    waiting = home.submit("--after", running, "--", "true")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 20, "the task's start")
    engine = home.engine_pid()
    home.ok("engine", "stop", "--now")
    wait_until(lambda: not is_alive(engine), 10, "the engine's end")
    wait_until(lambda: not home.pilot_pids() and not is_alive(int(pid.read_text())), 20, "the end of pilots and task")
    home.ok("engine", "start")
    assert [home.show(task)["state"] for task in (running, waiting)] == ["cancelled", "cancelled"]


def test_stop_now_also_ends_what_a_stopped_engine_left_running(home):
    pid = home.directory / "pid"
    running = home.submit("--", "sh", "-c", f"echo $$ > {pid}; exec sleep 600")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 20, "the task's start")
    home.ok("engine", "stop")
    assert home.ok("engine", "stop") == "no engine runs\n" and is_alive(int(pid.read_text()))
    home.ok("engine", "stop", "--now")
    wait_until(lambda: not home.pilot_pids() and not is_alive(int(pid.read_text())), 20, "the end of pilots and task")
    home.ok("engine", "start")
    assert home.show(running)["state"] == "cancelled"


def test_stop_now_is_not_lost_in_an_engine_that_ends_already(home):
    pid = home.directory / "pid"
    running = home.submit("--", "sh", "-c", f"echo $$ > {pid}; exec sleep 600")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 20, "the task's start")
    for _ in range(5):
        hpcbatch.client.Client(str(home.home / "socket")).post("/v1/engine/stop", {"mode": "leave"})
        late = home.verb("engine", "stop", "--drain")
        assert late.code == 0 or "--now' ends that" in late.err, late
        home.ok("engine", "start")
    hpcbatch.client.Client(str(home.home / "socket")).post("/v1/engine/stop", {"mode": "leave"})
    home.ok("engine", "stop", "--now")
    wait_until(lambda: not home.pilot_pids() and not is_alive(int(pid.read_text())), 20, "the end of pilots and task")
    home.ok("engine", "start")
    assert home.show(running)["state"] == "cancelled"


def test_who_drains_is_told_that_somebody_else_ended_the_engine_first(home):
    pid = home.directory / "pid"
    home.submit("--", "sh", "-c", f"echo $$ > {pid}; exec sleep 600")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), 20, "the task's start")
    with home.begin("engine", "stop", "--drain") as drain:
        wait_until(lambda: "drain" in home.ok("engine", "status"), 20, "the draining")
        home.ok("engine", "stop")
        _, said = drain.communicate(timeout=30)
        assert drain.returncode != 0 and "what it ran runs on" in said
    assert is_alive(int(pid.read_text()))
    home.ok("engine", "stop", "--now")
    wait_until(lambda: not home.pilot_pids() and not is_alive(int(pid.read_text())), 20, "the end of pilots and task")


def test_a_killed_pilot_costs_no_retry_and_its_tasks_run_again(home):
    mark = home.directory / "tries"
    task = home.submit("--", "sh", "-c", f"echo x >> {mark}; test $(wc -l < {mark}) = 2 || sleep 600")
    wait_until(mark.exists, 20, "the task's start")
    # The younger of the two processes is the pilot; the other, its keeper, ends what it leaves.
    os.kill(max(home.pilot_pids()), signal.SIGKILL)
    assert home.wait(task, timeout=60) == 0
    shown = home.show(task)
    assert shown["attempt"] == 2 and shown["attempts"][0]["failure"] in ("pilot_killed", "node_lost"), shown
    assert shown["attempts"][0]["failure"] in home.ok("explain", task)


def test_what_a_killed_pilot_leaves_in_the_workspace_is_removed(home):
    work = home.home / "workspace/work"
    task = home.submit("--tool", "command", "--param", "line=touch made; sleep 600")
    wait_until(lambda: list(work.glob("*/*/made")), 20, "a file of the task")
    left = list(work.iterdir())
    os.kill(max(home.pilot_pids()), signal.SIGKILL)
    wait_until(lambda: not any(path.exists() for path in left), 60, "the removal of what it made")
    home.ok("cancel", task)


def test_a_second_engine_for_the_same_home_is_refused_and_the_owner_named(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    second = home.verb("engine", "run", timeout=20)
    assert second.code not in (0, -signal.SIGKILL) and str(pid) in second.err, second
    assert home.engine_pid() == pid


@pytest.fixture
def at_login():
    with EngineAtHome() as engine:
        engine.move_to_login()
        yield engine


def test_a_socket_that_was_removed_is_made_again(home):
    held = home.submit("--hold", "--", "true")
    pid = home.engine_pid()
    (home.home / "socket").unlink()
    assert held in home.ok("list")
    assert home.engine_pid() == pid
    assert "listening again" in home.log_end()


def test_who_waits_does_not_miss_a_socket_that_was_removed(home):
    task = home.submit("--hold", "--", "true")
    waiting = home.begin("wait", task)
    home.engine_pid()
    (home.home / "socket").unlink()
    home.ok("release", task)
    assert waiting.wait(60) == 0


def test_after_a_log_out_the_engine_is_found_again(at_login):
    held = at_login.submit("--hold", "--", "true")
    pid = at_login.engine_pid()
    shutil.rmtree(at_login.directory / "run")
    assert held in at_login.ok("list")
    assert at_login.engine_pid() == pid
    assert stat.S_IMODE((at_login.directory / "run/hpcbatch").stat().st_mode) == 0o700


def test_where_no_socket_can_be_made_at_its_place_the_engine_listens_in_its_home(at_login):
    held = at_login.submit("--hold", "--", "true")
    pid = at_login.engine_pid()
    run = at_login.directory / "run"
    shutil.rmtree(run)
    run.write_text("")  # as /run/user, in which only root makes a directory
    assert held in at_login.ok("list")
    assert at_login.status()["pid"] == pid
    assert at_login.status()["socket"] == str(at_login.home / "socket")
    run.unlink()
    run.mkdir(mode=0o700)  # the next log-in
    assert held in at_login.ok("list")
    assert at_login.engine_pid() == pid
    at_login.ok("engine", "stop")
    assert held in at_login.ok("list")
    assert at_login.status()["socket"] == str(run / "hpcbatch/socket")


def test_a_folder_of_the_socket_that_others_could_replace_is_not_used_again(at_login):
    held = at_login.submit("--hold", "--", "true")
    run = at_login.directory / "run"
    run.chmod(0o777)
    shutil.rmtree(run / "hpcbatch")
    assert held in at_login.ok("list")
    assert at_login.status()["socket"] == str(at_login.home / "socket")
    assert f"cannot use the folder of the socket {run}/hpcbatch" in at_login.log_end()


def test_a_home_in_which_no_link_can_be_made_is_named_once(at_login):
    at_login.ok("engine", "start")
    link = at_login.home / "socket"
    link.unlink()
    (link / "full").mkdir(parents=True)

    def said():
        return [line for line in at_login.log_end().splitlines() if f"cannot link {link}" in line]

    wait_until(said, 20, "the word for it")
    (at_login.directory / "run/hpcbatch/socket").unlink()
    wait_until(lambda: "listening again" in at_login.log_end(), 20, "another look")
    at_login.ok("engine", "stop")  # waits until a look that goes on has ended
    assert len(said()) == 1, at_login.log_end()


def test_an_engine_answers_on_where_its_lock_became_a_fifo(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    lock = home.home / "engine.lock"
    lock.unlink()
    os.mkfifo(lock)
    wait_until(lambda: f"{lock}: it is no regular file" in home.log_end(), 20, "the word for it")
    assert home.engine_pid() == pid
    (home.home / "socket").unlink()
    stuck = home.verb("list")
    assert stuck.code == 3 and f"{lock}: it is no regular file" in stuck.err, stuck
    lock.unlink()
    wait_until((home.home / "socket").exists, 20, "the socket")
    assert home.engine_pid() == pid
    assert f"process {pid}\n" in lock.read_text()


def test_a_start_finds_a_living_engine_that_has_lost_lock_and_socket(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    for name in ("engine.lock", "socket"):
        (home.home / name).unlink()
    again = home.verb("engine", "start")
    assert again.code == 0 and f"runs already: process {pid}" in again.out, again
    assert f"process {pid}\n" in (home.home / "engine.lock").read_text()


def test_a_stopped_engine_that_cannot_make_its_socket_is_named(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        (home.home / "socket").unlink()
        told = home.verb("doctor", "--json")
        assert told.code == 1 and "waits for the engine" in told.err, told
        (engine,) = (row for row in map(json.loads, told.out.splitlines()) if row["check"] == "engine")
        assert not engine["ok"] and f"`kill {pid}`" in engine["text"], engine
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: (home.home / "socket").exists(), what="the socket")


@pytest.mark.parametrize("verb", ["wait", "run"])
def test_who_waits_starts_an_engine_that_has_died(home, verb):
    command = ["--", "sh", "-c", f"while [ ! -e {home.directory}/go ]; do sleep 0.05; done; echo done"]
    home.ok("engine", "start")
    waiting = home.begin("wait", home.submit(*command)) if verb == "wait" else home.begin("run", *command)
    wait_until(lambda: len(home.json("list", "--tasks", "--state", "running")) == 1, what="the task to run")
    home.kill_engine()
    (home.directory / "go").touch()
    out, err = waiting.communicate(timeout=100)
    assert waiting.returncode == 0 and "the engine had died and was started again" in err, (out, err)
    assert verb == "wait" or out == "done\n"


def test_the_next_engine_runs_as_the_one_that_died(home):
    config = home.directory / "other sites.yaml"
    config.write_text(
        (home.directory / "config.yaml").read_text()
        if (home.directory / "config.yaml").exists()
        else f"sites: [{{name: mine, scheduler: local, workspace: {home.directory}/mine, shapes: [{{name: one, cpus: 1, memory: 1G}}]}}]\n"
    )
    home.env.pop("HPCBATCH_CONFIG", None)
    home.ok("engine", "start", "--config", config)
    before = home.status()
    home.kill_engine()
    home.ok("list")
    after = home.status()
    assert (
        (after["config"], after["ends_when_idle"])
        == (str(config), False)
        == (before["config"], before["ends_when_idle"])
    )


def test_an_engine_that_dies_before_it_answers_is_asked_again(home):
    array = home.submit("--hold", "--", "true")
    pid = home.engine_pid()
    os.kill(pid, signal.SIGSTOP)

    def connections():
        return pathlib.Path("/proc/net/unix").read_text().split().count(f"{home.home}/socket")

    before = connections()
    asking = home.begin("list", array)
    wait_until(lambda: connections() > before, what="the question")
    os.kill(pid, signal.SIGKILL)
    out, err = asking.communicate(timeout=60)
    assert asking.returncode == 0 and array in out, (out, err)
    assert "one was started" in err


def test_who_waits_does_not_start_an_engine_that_was_stopped(home):
    waiting = home.begin("wait", home.submit("--hold", "--", "true"), "--timeout", "8s")
    wait_until(lambda: home.verb("engine", "status", "--json").code == 0, what="the engine")
    home.ok("engine", "stop")
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode != 0 and "started" not in err, (out, err)
    assert home.verb("engine", "status").code != 0


def test_work_that_waits_when_the_engine_dies_is_there_again(home):
    held = home.submit("--hold", "--priority", "3", "--array", "1-4", "--", "true")
    after = home.submit("--after", held, "--", "true")
    home.kill_engine()
    home.ok("engine", "start")
    assert home.show(held)["counts"]["held"] == 4
    home.ok("release", held)
    assert home.wait(held, after) == 0


def resident_megabytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def test_a_large_array_in_little_memory(home):
    count = 100_000 if os.environ.get("HPCBATCH_LONG") else 10_000
    array = home.submit("--array", f"1-{count}", "--", "true")
    most = 0
    waiter = home.begin("wait", array)
    pid = home.engine_pid()

    def has_ended():
        nonlocal most
        most = max(most, resident_megabytes(pid))
        return waiter.poll() is not None

    wait_until(has_ended, 300, "the end of the array")
    assert waiter.communicate()[1] is not None and waiter.returncode == 0
    print(f"{count} tasks, engine at most {most:.0f} MB")
    assert most < 60
    assert home.show(array)["counts"]["done"] == count
    assert len(home.json("allocations")) == 1


def test_a_home_may_have_a_long_path():
    """Longer than a socket address holds, for the engine's own socket and for that of its pilots."""
    with EngineAtHome() as home:
        home.home = home.directory / ("h" * 120)
        home.env["HPCBATCH_HOME"] = str(home.home)
        assert home.ok("run", "--", "echo", "there") == "there\n"
        assert not list(pathlib.Path("/tmp").glob("hpcbatch-??????")), "its sockets lie in its home"
        home.ok("engine", "stop", "--now")


def test_an_idle_pilot_ends_with_the_folder_of_its_engine(home):
    home.configure(
        "sites: [{name: here, scheduler: local, idle_after: 1h, shapes: [{name: day, cpus: 1, walltime: 24h}]}]"
    )
    home.ok("run", "--", "true")
    assert home.pilot_pids()
    home.kill_engine()
    shutil.rmtree(home.home)
    wait_until(lambda: not home.pilot_pids(), 40, "the end of a pilot whose workspace is gone")


def test_an_idle_pilot_ends_after_its_idle_time_though_nobody_answers(home):
    home.configure(
        "sites: [{name: here, scheduler: local, idle_after: 3s, shapes: [{name: day, cpus: 1, walltime: 24h}]}]"
    )
    home.ok("run", "--", "true")
    assert home.pilot_pids()
    home.kill_engine()
    wait_until(lambda: not home.pilot_pids(), 30, "the end of a pilot without an engine")
