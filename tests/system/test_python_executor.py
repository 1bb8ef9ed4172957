"""`hpcbatch.Executor`: calls of Python functions as tasks, as concurrent.futures has them."""

import base64
import concurrent.futures
import contextlib
import functools
import gc
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import unittest
import uuid
import weakref

import pytest
from engine_at_home import EngineAtHome, wait_until
from test import test_concurrent_futures as theirs  # Debian's libpython3.11-testsuite

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path.insert(0, str(PYTHON))
import hpcbatch  # noqa: E402
import hpcbatch.reader  # noqa: E402
from hpcbatch.call_pace import Pace  # noqa: E402


@pytest.fixture
def home(monkeypatch):
    with EngineAtHome() as home:
        for name, value in home.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HPCBATCH_PROGRAM", str(home.program))
        monkeypatch.chdir(home.directory)
        yield home


@pytest.fixture
def executor(home):
    with hpcbatch.Executor(cpus=0.5, memory="200M") as executor:
        yield executor


def script(home, text, python=sys.executable, **options):
    """A user's own file with what `__main__` defines; the hpcbatch that it imports is ours."""
    file = home.directory / "script.py"
    file.write_text(textwrap.dedent(text))
    return subprocess.run(
        [python, file],
        env={**os.environ, "PYTHONPATH": str(PYTHON), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_results_exceptions_and_what_is_printed(executor, home, capfd):
    assert executor.submit(divmod, 17, 5).result() == (3, 2)
    assert list(executor.map(pow, [2, 3], [5, 2])) == [32, 9]
    assert list(executor.map(str, range(1000), chunksize=30)) == [str(number) for number in range(1000)]
    with pytest.raises(ZeroDivisionError) as raised:
        executor.submit(divmod, 1, 0).result()
    assert "call_worker.py" in str(raised.value.__cause__) and "ZeroDivisionError" in str(raised.value.__cause__)
    spoken = executor.submit(functools.partial(print, "said", end="!"))
    assert spoken.result() is None and home.ok("log", spoken.task) == "said!"
    assert executor.submit(os.getcwd).result() == os.getcwd()
    assert isinstance(executor.submit(threading.Lock).exception(), Exception), "a lock cannot come back"
    assert isinstance(executor.submit(len, threading.Lock()).exception(), TypeError), "nor go there"
    assert executor.submit(len, [1, 2]).result() == 2, "and the worker goes on"


def test_calls_and_results_of_any_size(executor):
    data = os.urandom(3_000_000)
    assert executor.submit(bytes.__len__, data).result() == len(data)
    assert executor.submit(bytes, 20_000_000).result() == bytes(20_000_000)


def test_what_main_defines_goes_along(home):
    text = """
        import dataclasses, hpcbatch
        @dataclasses.dataclass
        class Point:
            x: int
        class Odd(Exception):
            pass
        def twice(point, by=2):
            if point.x % 2:
                raise Odd(point.x)
            return Point(point.x * by)
        if __name__ == "__main__":
            with hpcbatch.Executor(memory="200M") as executor:
                assert executor.submit(twice, Point(4), by=3).result() == Point(12)
                assert type(executor.submit(twice, Point(3)).exception()) is Odd
                MORE
                print("good")
    """
    with_it = script(
        home, text.replace("MORE", "k = 5; assert executor.submit(lambda: twice(Point(2)).x + k).result() == 9")
    )
    assert with_it.stdout == "good\n", with_it.stderr
    (home.directory / "cloudpickle.py").write_text("raise ImportError('not here')\n")
    without = script(home, text.replace("MORE", "assert 'lambda' in str(executor.submit(lambda: 1).exception())"))
    assert without.stdout == "good\n", without.stderr


def test_a_main_that_cannot_be_imported_is_said(home):
    (home.directory / "cloudpickle.py").write_text("raise ImportError('not here')\n")
    text = """
        import hpcbatch
        def square(n):
            return n * n
        with hpcbatch.Executor(memory="200M") as executor:
            print(executor.submit(square, 3).result())
    """
    done = script(home, text)
    assert done.returncode == 1 and "if __name__ == '__main__':" in done.stderr, done.stderr
    assert (
        script(
            home,
            text.replace("        with", "        if __name__ == '__main__':\n         with").replace(
                "            print", "          print"
            ),
        ).stdout
        == "9\n"
    )


def test_a_module_that_changes_is_never_used_as_it_was(home):
    for number in range(5):
        # As long and, often, as old as the one before, but for fractions of a second.
        (home.directory / "helper.py").write_text(f"def answer():\n    return {number}\n")
        found = script(
            home,
            "import helper, hpcbatch\nwith hpcbatch.Executor(memory='100M') as executor:\n    print(executor.submit(helper.answer).result())\n",
        )
        assert found.stdout == f"{number}\n", found.stderr


def test_a_call_that_dies_is_its_own_end_alone(executor, home):
    died = executor.submit(os._exit, 3)
    others = [executor.submit(abs, -number) for number in range(50)]
    with pytest.raises(hpcbatch.CallFailed, match="hpcbatch explain") as failed:
        died.result()
    assert failed.value.task == died.task and failed.value.failure == "tool_failed"
    assert [other.result() for other in others] == list(range(50))
    # Where quick ones share a task, those beside it are made up for.
    list(executor.map(abs, range(500)))
    shared = [executor.submit(one, value) for one, value in [(abs, -1)] * 200 + [(os._exit, 3)] + [(abs, -1)] * 200]
    assert [one.exception() is None for one in shared] == [True] * 200 + [False] + [True] * 200


def test_limits_are_each_calls(home):
    with hpcbatch.Executor(memory="100M", time="1s") as executor:
        late = executor.submit(time.sleep, 600)
        assert late.exception().failure == "time_task", late.exception()
        assert executor.submit(abs, -1).result() == 1
    with hpcbatch.Executor(memory="100M") as executor:
        large = executor.submit(bytearray, 1 << 30)
        assert large.exception().failure in ("oom_task", "tool_failed"), large.exception()
        assert executor.submit(abs, -1).result() == 1


def test_what_waits_can_be_cancelled_and_what_runs_not(home):
    with hpcbatch.Executor(cpus=os.cpu_count(), memory="100M") as executor:
        gate = home.directory / "gate"
        running = executor.submit(os.system, f"until [ -e {gate} ] || [ ! -e {home.directory} ]; do sleep 0.05; done")
        wait_until(running.running)
        waiting = executor.submit(abs, -1)
        wait_until(lambda: waiting.task)
        assert not running.cancel() and waiting.cancel() and waiting.cancelled() and not waiting.running()
        assert concurrent.futures.wait([waiting], timeout=60).done == {waiting}
        # Those that were not even handed in, and those that share a task with others.
        many = [executor.submit(abs, number) for number in range(200)]
        assert many[199].cancel() and many[3].cancel()
        assert concurrent.futures.wait([many[3], many[199]], timeout=60).done == {many[3], many[199]}
        gate.touch()
        assert running.result() == 0
        assert [one.result() for one in many if not one.cancelled()] == [
            number for number in range(200) if number not in (3, 199)
        ]
        for _ in range(5):
            with hpcbatch.Executor(cpus=os.cpu_count(), memory="100M") as another:
                list(another.map(abs, range(40)))  # from here on they share tasks
                another.submit(os.system, "sleep 0.1")
                rest = [another.submit(abs, number) for number in range(300)]
                another.shutdown(cancel_futures=True)
            assert all(one.done() for one in rest) and any(one.cancelled() for one in rest)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, 1)


def test_the_engine_is_killed_meanwhile(home, executor):
    gate = home.directory / "gate"
    results = [
        executor.submit(os.system, f"until [ -e {gate} ]; do sleep 0.05; done; exit {number}") for number in range(3)
    ]
    wait_until(lambda: all(one.task for one in results))
    home.kill_engine()
    later = executor.submit(abs, -7)
    gate.touch()
    assert [os.waitstatus_to_exitcode(one.result(timeout=120)) for one in results] == [0, 1, 2]
    assert later.result(timeout=120) == 7


def test_a_script_ends_when_its_calls_have_and_leaves_nothing(home):
    done = script(
        home,
        """
        import hpcbatch, time
        executor = hpcbatch.Executor(memory="100M", initializer=print, initargs=("begins",))
        executor.submit(time.sleep, 0.3).add_done_callback(lambda future: print("ended", future.result()))
    """,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended None\n", "", 0)
    assert os.listdir(home.directory / "home" / "calls") == []


def test_what_a_killed_client_left_is_removed_by_the_next(home):
    killed = script(
        home,
        """
        import hpcbatch, os, signal
        executor = hpcbatch.Executor(memory="100M")
        executor.submit(abs, -1).result()
        os.kill(os.getpid(), signal.SIGKILL)
    """,
    )
    calls = home.directory / "home" / "calls"
    assert killed.returncode == -9
    left = set(os.listdir(calls))
    with hpcbatch.Executor(memory="100M") as executor, hpcbatch.Executor(memory="100M") as other:
        assert len(left) == 1 and left.isdisjoint(os.listdir(calls))
        assert executor.submit(abs, -1).result() == other.submit(abs, -1).result() == 1


def test_calls_end_with_the_client_that_was_killed(home):
    killed = script(
        home,
        """
        import hpcbatch, hpcbatch.reader, os, signal, time
        hpcbatch.reader.LEASE_S = 2
        one = hpcbatch.Executor(memory="100M", warm=False)
        other = hpcbatch.Executor(memory="100M", warm=False, detached=True)
        calls = [one.submit(time.sleep, 600) for _ in range(20)]
        detached = [other.submit(abs, -number) for number in range(2)]
        while not all(call.task for call in [*calls, *detached]):
            time.sleep(0.01)
        for some in (calls, detached):
            print(*[call.task for call in some], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """,
    )
    assert killed.returncode == -9, killed.stderr
    calls, detached = (line.split() for line in killed.stdout.splitlines())
    with hpcbatch.Executor(memory="100M") as executor:
        assert executor.submit(abs, -1).result() == 1, "others' calls run when they have made room"
    assert home.wait(*calls, timeout=60) == 1
    assert {home.show(call)["state"] for call in calls} == {"cancelled"}
    for call in (calls[0], calls[-1]):
        assert "away for 2 s" in home.ok("explain", call) and "detached=True" in home.ok("explain", call)
    assert home.wait(*detached) == 0


def test_calls_go_on_while_their_client_computes(home):
    done = script(
        home,
        """
        import ctypes, hpcbatch, hpcbatch.reader, os, time
        hpcbatch.reader.LEASE_S = 1
        with hpcbatch.Executor(memory="100M") as executor:
            call = executor.submit(time.sleep, 6)
            while not call.running():
                time.sleep(0.01)
            forked = os.fork()
            if forked == 0:
                time.sleep(600)
            ctypes.PyDLL(None).sleep(4)  # and no other thread of this process runs
            print(call.result())
            os.kill(forked, 9)
    """,
    )
    assert (done.stdout, done.returncode) == ("None\n", 0), done.stderr


def test_calls_go_on_where_the_engine_moves_its_socket(home, monkeypatch):
    home.move_to_login()
    monkeypatch.delenv("HPCBATCH_HOME")
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, home.env[name])
    monkeypatch.setattr(hpcbatch.reader, "LEASE_S", 2)
    with hpcbatch.Executor(memory="100M") as executor:
        call = executor.submit(time.sleep, 8)
        wait_until(call.running)
        run = home.directory / "run"
        shutil.rmtree(run)
        run.write_text("")  # as after a log-out: only root makes a directory there
        home.kill_engine()
        home.env.pop("XDG_RUNTIME_DIR")  # the next one is started by cron
        home.ok("list")
        assert home.status()["socket"] == str(home.home / "socket")
        assert call.result() is None


def test_what_a_killed_client_has_forked_is_not_taken_for_it(home):
    killed = script(
        home,
        """
        import hpcbatch, hpcbatch.reader, os, signal, time
        hpcbatch.reader.LEASE_S = 1
        call = hpcbatch.Executor(memory="100M").submit(time.sleep, 600)
        while not call.running():
            time.sleep(0.01)
        forked = os.fork()
        if forked == 0:
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            time.sleep(600)
        print(call.task, forked, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """,
    )
    call, forked = killed.stdout.split()
    try:
        assert home.wait(call, timeout=60) == 1
    finally:
        os.kill(int(forked), 9)
    assert home.show(call)["state"] == "cancelled"


@pytest.fixture
def without_collector():
    gc.disable()
    yield
    gc.enable()


def test_one_that_is_forgotten_ends(home, without_collector):
    executor = hpcbatch.Executor(memory="100M")
    future = executor.submit(abs, -1)
    gone = weakref.ref(executor)
    del executor
    # An error that who raised it keeps, say, leads back to itself and to all that called.
    assert gone() is None and future.result() == 1
    wait_until(lambda: os.listdir(home.directory / "home" / "calls") == [])


def test_each_in_a_process_of_its_own(home):
    with hpcbatch.Executor(memory="100M", warm=False) as executor:
        ids = list(executor.map(lambda _: os.getpid(), range(4)))
        assert len(set(ids)) == 4


def test_an_initializer_that_fails_fails_the_calls(home):
    with hpcbatch.Executor(memory="100M", initializer=divmod, initargs=(1, 0)) as executor:
        assert "ZeroDivisionError" in str(executor.submit(abs, 1).exception())


def test_no_limit_is_set_that_nobody_asked_for(home):
    with hpcbatch.Executor() as executor:
        future = executor.submit(abs, -1)
        assert future.result() == 1
        needs = home.show(future.task)["needs"]
        assert "time" not in needs and needs == home.show(home.submit("--", "true"))["needs"]


def closes_all(first, forks=False):
    """`forks`: with a child that keeps them open."""
    if forks and os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os.closerange(first, 256)
    return first


@pytest.mark.parametrize("warm", [True, False])
def test_a_call_that_closes_all_descriptors_ends(home, warm):
    with hpcbatch.Executor(cpus=0.5, memory="200M", warm=warm) as executor:
        for args in [(3,), (0,), (3, True)]:
            try:
                assert executor.submit(closes_all, *args).result(timeout=60) == args[0]
            except hpcbatch.CallFailed as error:
                assert warm and "its service died" in str(error)
        assert executor.submit(abs, -1).result(timeout=60) == 1


def add_to(shared, key):
    shared[key] = os.getpid()
    return len(shared)


def test_objects_of_a_manager_can_be_used(home):
    with multiprocessing.Manager() as manager, hpcbatch.Executor(cpus=0.5, memory="200M") as executor:
        shared = manager.dict()
        assert [executor.submit(add_to, shared, key).result(timeout=60) for key in range(3)] == [1, 2, 3]
        assert sorted(shared) == [0, 1, 2]


def say(number):
    print("call", number, "\u00fc" * number)
    sys.stderr.write(f"wrong {number}\n")


def test_each_call_has_a_log_of_its_own(executor):
    for _ in range(40):  # quick calls share a task once they are known to be
        assert executor.submit(say, 0).result() is None
    futures = [executor.submit(say, number) for number in range(300)]
    concurrent.futures.wait(futures, timeout=120)
    assert len({future.task for future in futures}) < 300, "some share a task"
    assert [future.log() for future in futures] == [f"call {i} {chr(252) * i}\n" for i in range(300)]
    assert futures[7].log("stderr") == "wrong 7\n"


def test_what_waits_is_cancelled_by_one_request_at_the_end(home, monkeypatch):
    asked = []
    request = hpcbatch.client.Client.request

    def counted(self, method, target, *args, **options):
        asked.append(target)
        return request(self, method, target, *args, **options)

    gate = home.directory / "gate"
    executor = hpcbatch.Executor(cpus=os.cpu_count(), memory="100M")
    running = executor.submit(os.system, f"until [ -e {gate} ] || [ ! -e {home.directory} ]; do sleep 0.05; done")
    wait_until(running.running)
    futures = [executor.submit(abs, -1) for _ in range(2000)]
    monkeypatch.setattr(hpcbatch.client.Client, "request", counted)
    executor.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in futures) and asked.count("/v1/tasks/cancel") == 1, asked
    gate.touch()
    assert running.result(timeout=60) == 0


def test_what_makes_no_sense_is_refused(home):
    with pytest.raises(TypeError):
        hpcbatch.Executor(initializer=3)
    with hpcbatch.Executor(cpus=100_000) as executor:
        assert "never_fits" in str(executor.submit(abs, 1).exception())
        with pytest.raises(ValueError):
            executor.map(abs, [1], chunksize=0)


@pytest.mark.parametrize("base", [theirs.WaitTests, theirs.AsCompletedTests, theirs.ExecutorTest])
def test_pythons_own_tests_of_executors(home, base):
    """As far as they are of all executors (Lib/test/test_concurrent_futures.py)."""

    class Ours(hpcbatch.Executor):
        def __init__(self, max_workers=None, **more):
            super().__init__(cpus=0.25, memory="200M", **more)

    class Mixin(theirs.ExecutorMixin):
        executor_type = Ours
        test_max_workers_negative = None  # there are as many as pilots have room for

    class Case(theirs.BaseTestCase):
        def tearDown(self):
            gc.collect()  # theirs looks a hundred times for what of our threads waits for it
            super().tearDown()

    made = type(base.__name__, (Mixin, base, Case), {})
    names = [name for name in unittest.TestLoader().getTestCaseNames(made) if getattr(made, name)]
    found = unittest.TextTestRunner(stream=open(os.devnull, "w")).run(unittest.TestSuite(map(made, names)))
    assert found.testsRun == len(names) >= 5 and not found.failures + found.errors, [
        text for _, text in found.failures + found.errors
    ]


def test_quick_calls_share_a_task():
    pace = Pace()
    assert [pace.together("f", 1000, 0.0) for _ in range(33)] == [1] * 32 + [0], "until something is known of it"
    assert pace.together("f", 1000, 1.0) == 1, "but not for ever"
    pace.ended("f", 0.001)
    assert (
        pace.together("f", 10_000, 1.0) == 200
        and pace.together("f", 160, 1.0) == 10
        and pace.together("f", 3, 1.0) == 1
    )
    pace.ended("f", 1.0)
    assert pace.together("f", 10_000, 1.0) == 1 and pace.together("g", 10_000, 1.0) == 1


def test_one_disturbed_call_and_few_slots_change_little():
    pace = Pace()
    for n in range(64):
        pace.ended("f", 0.5 if n == 63 else 0.01)
    assert pace.together("f", 10_000, 1.0) == 20, "one was disturbed"
    for n in range(8):
        pace.ended("f", 0.5)
    assert pace.together("f", 10_000, 1.0) == 1, "one in ten takes long"
    pace = Pace()
    pace.ended("f", 0.001)
    for n in range(20):  # two side by side
        pace.ran(n // 2 * 0.1, n // 2 * 0.1 + 0.1)
    assert pace.together("f", 60, 1.0) == 10 and pace.together("f", 6, 1.0) == 1
    for n in range(64):  # a hundred
        pace.ran(100.0, 100.1)
    assert pace.together("f", 640, 1.0) == 10


def test_quick_calls_and_chunks_fit_where_a_single_one_does(home, monkeypatch):
    """Many quick calls share a task: that must not ask for the times of all of them together."""
    home.configure("sites: [{name: here, scheduler: local, shapes: [{name: hour, cpus: 2, memory: 2G, walltime: 1h}]}]")
    monkeypatch.setenv("HPCBATCH_CONFIG", home.env["HPCBATCH_CONFIG"])
    with hpcbatch.Executor(memory="100M") as executor:
        assert list(executor.map(abs, range(-3000, 0))) == list(range(3000, 0, -1))
        assert list(executor.map(abs, range(-200, 0), chunksize=100)) == list(range(200, 0, -1))


LOOK = """[
    __import__("pathlib").Path("/proc", entry, "cmdline").read_bytes()
    for entry in __import__("os").listdir("/proc") if entry.isdigit() and __import__("os").path.exists(f"/proc/{entry}/cmdline")
]"""


@pytest.mark.parametrize("warm", [True, False])
def test_nothing_of_a_call_stands_in_a_command_line(home, warm):
    """All users of a node read those."""
    secrets = [uuid.uuid4().hex for _ in range(2)]
    with hpcbatch.Executor(
        cpus=0.5, memory="200M", warm=warm, initializer=os.putenv, initargs=("INITIALIZED", secrets[0])
    ) as executor:
        lines = executor.submit(eval, LOOK, {"argument": secrets[1]}).result()
        secrets.append(executor._calls._key)
        own = executor.submit(eval, "[name for name in __import__('os').environ if 'HPCBATCH_CALLS' in name]").result()
    assert own == [], "nor are they handed on to what a call starts"
    words = [word for line in lines for word in line.split(b"\0")]
    assert any(b"call_worker.py" in word for word in words), "it was looked while it ran"
    for word in list(words):
        with contextlib.suppress(ValueError):
            words.append(base64.b64decode(word, validate=True))
    assert not [secret for secret in secrets if any(secret.encode() in word for word in words)]


def test_a_folder_in_which_others_can_rename_is_refused(home):
    shared = home.directory / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(hpcbatch.Error, match=f"{shared} .*mode 0777.*everybody.*chmod o-w"):
        hpcbatch.Executor(memory="100M", directory=shared / "calls")
    shared.chmod(0o1777)
    with hpcbatch.Executor(memory="100M", directory=shared / "calls") as executor:
        assert executor.submit(abs, -1).result() == 1
        # What another put in place of a result is not read, and costs that one call.
        (folder,) = (shared / "calls").iterdir()
        gate = home.directory / "gate"
        held = executor.submit(os.system, f"until [ -e {gate} ]; do sleep 0.05; done")
        wait_until(held.running)
        folder.rename(folder.with_name("aside"))
        folder.mkdir()
        gate.touch()
        assert "cannot be read from" in str(held.exception(timeout=60))
        folder.rename(folder.with_name("forged"))
        folder.with_name("aside").rename(folder)
        assert executor.submit(abs, -2).result() == 2
