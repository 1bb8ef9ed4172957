"""`hpcbatch run` on a machine with nothing set up: output, input, surroundings, and how it exits."""

import os
import signal
import subprocess
import sys
import time

import pytest
from engine_at_home import EngineAtHome, wait_until


def test_the_first_run_needs_nothing_and_exits_as_its_task(home):
    for which in ("first", "second"):
        begin = time.monotonic()
        result = home.verb("run", "--", "sh", "-c", "echo hi; exit 3")
        print(f"the {which} run took {(time.monotonic() - begin) * 1000:.0f} ms")
        assert result == (3, "hi\n", "")


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        yield engine


@pytest.mark.parametrize(
    "words, code",
    [
        (["--", "true"], 0),
        (["--", "sh", "-c", "exit 7"], 7),
        (["--", "sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["--", "sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
        (["--", "/no/such/program"], 127),
    ],
)
def test_run_exits_as_the_task(shared, words, code):
    result = shared.verb("run", *words)
    assert result.code == code, result


def test_a_task_that_could_not_start_is_a_failure_of_ours(shared):
    result = shared.verb("run", "--cwd", "/no/such/directory", "--", "true")
    assert result.code == 125
    assert "/no/such/directory" in result.err


def test_a_command_that_cannot_be_run_is_told(shared):
    result = shared.verb("run", "--", "nosuchprogram")
    assert result.code == 127 and "cannot run 'nosuchprogram': No such file" in result.err
    assert shared.verb("run", "--", "sh", "-c", "exit 7").err == ""


@pytest.mark.parametrize(
    "words, named",
    [
        (["--mem", "1024", "--", "true"], "write for example 512M"),
        (["--cpus", "many", "--", "true"], "many"),
        (["--no-such-option", "--", "true"], "--no-such-option"),
        (["--cpus", "5000", "--", "true"], "5000"),
        (["--nodes", "2", "--", "true"], "nodes"),
        ([], "command"),
    ],
)
def test_what_cannot_be_run_is_refused(shared, words, named):
    result = shared.verb("run", *words)
    assert result.code in (2, 125)
    assert named in result.err
    assert result.out == ""


@pytest.mark.parametrize("has_died", [False, True])
def test_what_the_caller_who_starts_an_engine_has_lowered_holds_for_no_other(home, has_died):
    words = ["run", "--cpus", len(os.sched_getaffinity(0)), "--"]
    words += ["bash", "-c", "umask; ulimit -n; ulimit -Hn; nice; nproc"]
    with EngineAtHome() as plain:
        seen = plain.ok(*words)
    if has_died:  # an engine that was to stay is started again as such
        home.ok("engine", "start")
        home.kill_engine()
    lowered = f"ulimit -Sn 128; umask 077; exec nice -n 10 taskset -c 0 {home.program} run -- true"
    subprocess.run(["bash", "-c", lowered], env=home.env, cwd=home.directory, check=True)
    assert home.ok(*words) == seen


def test_a_task_sees_the_path_by_which_its_user_came(home):
    folder, link = home.directory / "folder", home.directory / "link"
    folder.mkdir()
    link.symlink_to(folder)
    words = ["run", "--", "sh", "-c", "echo $PWD; pwd -P"]
    assert home.ok(*words, cwd=link, PWD=str(link)) == f"{link}\n{folder}\n"
    assert (
        home.ok(*words, cwd=folder, PWD=str(home.directory)) == f"{folder}\n{folder}\n"
    ), "what is wrong is not believed"
    elsewhere = ["run", "--cwd", home.directory, "--", "sh", "-c", "echo $PWD; pwd -P"]
    assert home.ok(*elsewhere, cwd=link, PWD=str(link)) == f"{home.directory}\n" * 2


def test_an_engine_under_nohup_stays_when_the_terminal_goes(home):
    command = ["sh", "-c", f"trap '' HUP INT; exec {home.program} engine run"]
    engine = subprocess.Popen(
        command, env=home.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until((home.home / "socket").exists, 30, "the engine's socket")
    for number in (signal.SIGHUP, signal.SIGINT):
        engine.send_signal(number)
    assert home.verb("run", "--", "echo", "there").out == "there\n"
    assert home.engine_pid() == engine.pid
    home.ok("engine", "stop", "--now")
    assert engine.wait(30) == 0


def test_closed_streams_do_no_harm(home):
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{home.program} run -- sh -c 'echo out; exit 7' {closed}"],
            env=home.env,
            cwd=home.directory,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 7, done
        assert done.stdout == ("" if ">&-" in closed.replace("2>&-", "") else "out\n")


def test_a_look_without_an_engine_starts_one_but_for_its_status(home):
    assert home.verb("engine", "status").code == 3
    assert home.verb("engine", "reload").code == 3
    first = home.verb("list")
    assert (first.code, first.out) == (0, "") and "no engine ran; one was started" in first.err, first
    assert home.verb("engine", "status").code == 0
    for words in (["show", "1"], ["wait", "1"]):
        result = home.verb(*words)
        assert result.code == 2 and "there is no task 1" in result.err, (words, result)


def test_stdin_comes_from_a_pipe_or_a_file(shared):
    text = "".join(f"line {n}\n" for n in range(20_000))
    assert shared.verb("run", "--", "cat", stdin=text) == (0, text, "")
    file = shared.directory / "input"
    file.write_text("from a file\n")
    assert shared.ok("run", "--stdin", file, "--", "cat") == "from a file\n"
    assert shared.ok("run", "--", "cat") == ""


def test_a_pipe_that_stays_open_is_passed_on_line_by_line(shared):
    process = shared.begin("run", "--", "cat")
    for line in ("one\n", "two\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == line
    process.stdin.close()
    assert process.wait(30) == 0


def test_bytes_pass_unchanged(shared):
    data = bytes(range(256)) * 4096
    done = subprocess.run(
        [shared.program, "run", "--", "cat"], input=data, capture_output=True, env=shared.env, timeout=60
    )
    assert done.returncode == 0 and done.stdout == data


def test_surroundings_are_the_callers(shared):
    folder = shared.directory / "a folder"
    folder.mkdir(exist_ok=True)
    assert shared.ok("run", "--", "pwd", cwd=folder) == f"{folder}\n"
    assert shared.ok("run", "--cwd", "/usr", "--", "pwd") == "/usr\n"
    assert shared.ok("run", "--", "printenv", "FROM_CALLER", FROM_CALLER="a b") == "a b\n"
    assert shared.ok("run", "--env", "ADDED=x=y", "--", "printenv", "ADDED") == "x=y\n"
    assert shared.ok("run", "--env", "FROM_CALLER=mine", "--", "printenv", "FROM_CALLER", FROM_CALLER="a") == "mine\n"


def test_files_get_the_callers_umask(shared):
    before = os.umask(0o027)
    try:
        assert shared.ok("run", "--", "sh", "-c", f"umask; touch {shared.directory}/made") == "0027\n"
        shared.ok("run", "--stdout", "named", "--", "true")
    finally:
        os.umask(before)
    for name in ("made", "named"):
        assert (shared.directory / name).stat().st_mode & 0o777 == 0o640


def environment_of(shared, *words, **env):
    lines = shared.ok("run", *words, "--", "env", "-0", **env).split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def test_a_task_finds_what_it_is_and_nothing_of_a_batch_job(shared):
    found = environment_of(shared, "--cpus", "1", "--mem", "300M", SLURM_JOB_ID="77", PBS_JOBID="78")
    assert found["HPCBATCH_TASK_ID"].isdigit()
    assert (found["HPCBATCH_ATTEMPT"], found["HPCBATCH_CPUS"], found["HPCBATCH_MEM_MB"]) == ("1", "1", "300")
    assert (found["HPCBATCH_SITE"], found["HPCBATCH_GPUS"], found["OMP_NUM_THREADS"]) == ("local", "", "1")
    assert found["HPCBATCH_PILOT"].endswith(".0")
    assert "HPCBATCH_TASK_INDEX" not in found
    assert found["TMPDIR"] != os.environ.get("TMPDIR", "/tmp")
    assert not [name for name in found if name.startswith(("SLURM_", "PBS_"))]


def test_the_folder_for_temporary_files_is_emptied_between_tasks(shared):
    for _ in range(2):
        assert shared.ok("run", "--", "sh", "-c", 'ls -A "$TMPDIR"; touch "$TMPDIR/mine"') == ""


def test_a_task_is_bound_to_its_cpus(shared):
    assert shared.ok("run", "--cpus", "1", "--", "nproc") == "1\n"
    if len(os.sched_getaffinity(0)) > 1:
        assert shared.ok("run", "--cpus", "2", "--", "nproc") == "2\n"


def test_what_never_ran_has_no_exit_code(shared):
    refused = shared.verb("run", "--stdout", "/nowhere/out", "--", "true")
    assert refused.code == 125 and "cannot open /nowhere/out" in refused.err, refused
    [task] = shared.json("list", "last", "-n", "1")
    assert task["failure"] == "stage_out_failed" and "exit_code" not in task, task


def test_an_output_that_cannot_be_written_is_told(shared):
    shared.ok("run", "--", "true")
    for words in (
        ["list"],
        ["list", "-n", "1"],
        ["list", "last", "--all"],
        ["completion", "bash"],
        ["manual"],
        ["top", "--once"],
        ["submit", "--wait", "--", "true"],
        ["show", "last"],
        ["run", "--", "echo", "hi"],
        ["run", "--items", "a", "b", "--", "echo", "{}"],
    ):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [shared.program, *words],
                env=shared.env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
        assert done.returncode == (125 if words[0] == "run" else 2) and "cannot write" in done.stderr, (words, done)


def test_a_peak_of_memory_is_the_tasks_own(home):
    """A task is told to have had what its pilot had when it started."""
    home.ok("run", "--", "sh", "-c", "test $# = 100000", "sh", *map(str, range(100_000)))
    home.ok("run", "--", "true")  # the first behind it may still not be known
    small = home.submit("--mem", "1M", "--", "true")
    large = home.submit("--", sys.executable, "-c", "x = bytes(range(256)) * (40 << 12); import time; time.sleep(0.1)")
    assert home.wait(small) == 0 and home.wait(large) == 0
    assert home.show(small).get("peak_memory", 0) < 9 << 20
    assert 40 << 20 <= home.show(large)["peak_memory"] < 90 << 20


def test_ctrl_c_cancels_the_task(shared):
    mark = shared.directory / "started"
    process = shared.begin("run", "--", "sh", "-c", f"touch {mark}; sleep 600")
    wait_until(mark.exists, 20, "the start of the task")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    newest = shared.json("list")[0]
    wait_until(lambda: shared.show(newest["id"])["state"] == "cancelled", 20, "the task's cancelling")
