"""Services: one process has its imports done, and a process forked from it is a task like any other."""

import os
import signal
import sys

import pytest
from engine_at_home import ROOT, EngineAtHome, name_of, processes_with, wait_until

sys.path.insert(0, str(ROOT / "python"))
from hpcbatch.client import Client  # noqa: E402

PYTHON = "/usr/bin/python3"
ONE_SITE = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: two, cpus: 2, memory: 4G}]}
"""
TWO_PILOTS = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, max_queued: 2, max_running: 2,
     shapes: [{name: one, cpus: 1, memory: 1G, tags: [one]}, {name: other, cpus: 1, memory: 1G, tags: [other]}]}
"""


class Home(EngineAtHome):
    def __init__(self, site=ONE_SITE):
        super().__init__(PYTHONPATH=str(ROOT / "python"))
        self.configure(site % (self.directory / "space"))
        self.ok("engine", "start")
        self.client = Client(str(self.home / "socket"))
        self.submits = 0

    def services(self):
        return self.service_pids("warm")

    def tasks(self, commands, service, **more):
        self.submits += 1
        tasks = [{"command": command, "service": service} | more for command in commands]
        return self.client.submit(
            "tests",
            tasks,
            f"key {self.submits}",
            str(self.directory),
            {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{ROOT / 'python'}:{self.directory}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "HPCBATCH_HOME": str(self.home),
            },
        )

    def forked(self, code, modules=("json",), **service):
        """The id of one task that is this Python text."""
        return self.tasks([[PYTHON, "-c", code]], fork(*modules, **service))[0]

    def log(self, task, stream="stdout"):
        return self.client.log_end(task, stream)


def fork(*modules, **more):
    return {"name": "warm", "command": [PYTHON, "-m", "hpcbatch.fork_service", *modules]} | more


@pytest.fixture
def home():
    with Home() as engine:
        yield engine


def test_a_forked_task_is_a_task_like_any_other(home):
    (home.directory / "script.py").write_text(
        "import os, sys\nprint(__name__, __file__, sys.argv[1:], sys.path[0])\n"
        "def f(x: 1 + 1): pass\nprint(f.__annotations__)\nsys.exit('no')\n"
    )
    (home.directory / "module.py").write_text(
        "import sys\nprint(__name__, __spec__.name, sys.argv[1:])\nraise ValueError('why not')\n"
    )
    code = (
        "import os, sys, tempfile, json; print(json.dumps({'pid': os.getpid(), 'group': os.getpgid(0), 'parent': os.getppid(),"
        " 'session': os.getsid(0), 'task': os.environ['HPCBATCH_TASK_ID'], 'tmp': tempfile.gettempdir(), 'cwd': os.getcwd(),"
        " 'service': os.environ.get('HPCBATCH_SERVICE'), 'argv': sys.argv,"
        " 'name': open('/proc/self/comm').read(), 'stdin': sys.stdin.read(), 'fds': sorted(map(int, os.listdir('/proc/self/fd')))}))"
    )
    one, two, three, four, five = home.tasks(
        [
            [PYTHON, "-c", code, "a b"],
            [PYTHON, "script.py", "x"],
            ["python3", "-m", "module", "y"],
            ["sh", "-c", "echo plain; exit 4"],
            ["/no/such/program"],
        ],
        fork("json"),
    )
    assert home.wait(one, two, three, four, five) == 1
    import json

    said = json.loads(home.log(one))
    assert (
        said["pid"] == said["group"] and said["task"] == one and said["argv"] == ["-c", "a b"] and said["stdin"] == ""
    )
    assert said["name"] == f"task {one}\n", "it was not forked"
    assert (
        said["tmp"].startswith("/tmp/hpcbatch-pilot-")
        and said["cwd"] == str(home.directory)
        and said["service"] is None
    )
    assert said["parent"] in home.pilot_pids()
    assert said["fds"][:3] == [0, 1, 2] and len(said["fds"]) == 4, "a descriptor of the service was left open"
    assert home.log(two) == f"__main__ {home.directory}/script.py ['x'] {home.directory}\n{{'x': 2}}\n"
    assert home.log(two, "stderr") == "no\n" and home.show(two)["exit_code"] == 1
    assert home.log(three).startswith("__main__ module ['y']")
    assert home.log(three, "stderr").rstrip().endswith("ValueError: why not")
    assert "fork_service" not in home.log(three, "stderr")
    assert home.log(four) == "plain\n" and home.show(four)["exit_code"] == 4
    assert home.show(five)["exit_code"] == 127
    assert len(home.services()) == 1


def test_a_forked_task_ends_as_any_python_does(home):
    kept = (
        "import atexit, sys, threading, time; print(open('/proc/self/comm').read(), end=''); kept = open('kept', 'w'); kept.write('flushed at the end');"
        " atexit.register(print, 'at exit'); threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    )
    closed = "import sys; print('said'); sys.stdout.flush(); sys.stdout.close()"
    signals = "import subprocess, sys; sys.exit(subprocess.call(['sh', '-c', 'grep SigIgn /proc/self/status']))"
    ids = home.tasks(
        [
            [PYTHON, "-c", kept],
            [PYTHON, "-c", closed],
            [PYTHON, "-c", "import sys; sys.exit(300)"],
            [PYTHON, "-c", signals],
            ["sh", "-c", "grep SigIgn /proc/self/status"],
            [PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"],
        ],
        fork("json"),
    )
    home.wait(*ids)
    shown = [home.show(task) for task in ids]
    assert (home.directory / "kept").read_text() == "flushed at the end"
    assert home.log(ids[0]) == f"task {ids[0]}\nthread\nat exit\n"
    assert [task.get("exit_code") for task in shown] == [0, 0, 300 & 0xFF, 0, 0, 137]
    assert home.log(ids[1]) == "said\n"
    for task in ids[3:5]:
        assert int(home.log(task).split()[1], 16) & (1 << 12 | 1 << 24) == 0, "SIGPIPE or SIGXFSZ is ignored"
    assert shown[5]["failure"] == "tool_signal"


def test_what_imported_modules_do_at_the_end_is_done_at_the_end_of_each_task(home):
    """Libraries of C crash where it is not; but what the service holds for all is not given up by one."""
    (home.directory / "wants.py").write_text(
        "import atexit, shutil, tempfile\n"
        "atexit.register(lambda: print('given back', flush=True))\n"
        "def not_any_more(): print('wrong')\n"
        "atexit.register(not_any_more)\n"
        "atexit.unregister(not_any_more)\n"
        "shared = tempfile.mkdtemp(dir='.')\n"
        "atexit.register(shutil.rmtree, shared)\n"
        "kept = tempfile.TemporaryDirectory(dir='.')\n"
    )
    code = "import wants, os; print(os.listdir(wants.shared), os.listdir(wants.kept.name))"
    service = fork("wants", env={"PYTHONPATH": f"{ROOT / 'python'}:{home.directory}"})
    tasks = [home.tasks([[PYTHON, "-c", f"import os; os.chdir('/'); {code}"]], service)[0] for _ in range(3)]
    assert home.wait(*tasks) == 0
    assert [home.log(task) for task in tasks] == ["[] []\ngiven back\n"] * 3


def test_a_task_with_other_settings_of_python_gets_a_python_of_its_own(home):
    (home.directory / "lib").mkdir()
    (home.directory / "lib/mine.py").write_text("word = 'mine'\n")
    ids = home.tasks(
        [[PYTHON, "-c", "import mine; print(mine.word)"]], fork("json"), env={"PYTHONPATH": str(home.directory / "lib")}
    )
    ids += home.tasks(
        [[PYTHON, "-u", "-c", "import sys; print(sys.stdout.line_buffering, sys.stdout.write_through)"]], fork("json")
    )
    assert home.wait(*ids) == 0
    assert home.log(ids[0]) == "mine\n"
    assert home.log(ids[1]) == "False True\n"


def test_a_service_that_talks_without_pause_stops_nobody(home):
    loud = {"name": "warm", "command": ["sh", "-c", "yes & exec cat"]}
    task = home.tasks([["echo", "loud"]], loud)[0]
    other = home.submit("--", "echo", "other")
    assert home.wait(other) == 0
    home.ok("cancel", task)
    assert home.wait(task) == 1 and home.show(task)["state"] == "cancelled"


def test_a_fork_that_leaves_its_session_is_ended_with_its_task(home):
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork() and os._exit(0)\n    time.sleep(6003)\ntime.sleep(0.5)"
    other = home.tasks([[PYTHON, "-c", "import time; time.sleep(600)"]], fork("json"))[0]
    wait_until(lambda: home.show(other)["state"] == "running", what="its start")
    task = home.forked(code)
    assert home.wait(task) == 0

    def named():
        return [pid for pid in processes_with("HPCBATCH_SERVICE=warm") if name_of(pid) == f"task {task}"]

    wait_until(lambda: not named(), 10, "the end of what it had left behind")
    assert home.show(other)["state"] == "running"


def test_tasks_share_one_service_and_do_not_see_each_other(home):
    code = "import json; json.seen = getattr(json, 'seen', 0) + 1; print(json.seen, hasattr(json, 'dumps'))"
    ids = home.tasks([[PYTHON, "-c", code]] * 200, fork("json"))
    assert home.wait(*ids) == 0
    assert {home.log(task) for task in ids[:5] + ids[-5:]} == {"1 True\n"}
    assert len(home.services()) == 1


def test_limits_and_cancelling_hold_for_forked_tasks(home):
    slow = home.tasks([[PYTHON, "-c", "import time; time.sleep(600)"]], fork("json"), time="1s")[0]
    assert home.wait(slow) == 1
    assert home.show(slow)["failure"] == "time_task"
    fat = home.tasks(
        [[PYTHON, "-c", "import time; x = bytearray(400 << 20); time.sleep(600)"]], fork("json"), memory="100M"
    )[0]
    assert home.wait(fat) == 1
    assert home.show(fat)["failure"] == "oom_task"
    children = "import os, subprocess, time; subprocess.Popen(['sleep', '6001']); os.fork() or time.sleep(6001); time.sleep(6001)"
    gone = home.tasks([[PYTHON, "-c", children]], fork("json"))[0]
    wait_until(lambda: home.show(gone)["state"] == "running" and processes_with("sleep\0006001"), what="its start")
    home.ok("cancel", gone)
    assert home.wait(gone) == 1
    assert home.show(gone)["state"] == "cancelled"
    wait_until(lambda: not processes_with("sleep\0006001"), 10, "the end of what it had started")
    assert len(home.services()) == 1


def test_a_service_that_is_killed_costs_no_task_its_end(home):
    ids = home.tasks([[PYTHON, "-c", "import time; time.sleep(0.02)"]] * 150, fork("json"))
    killed = 0
    while not (state := home.client.post("/v1/tasks/wait", {"ids": ids, "timeout": 0}))["done"]:
        if state["ok"] < 20 * (killed + 1):
            continue
        for pid in home.services():
            os.kill(pid, signal.SIGKILL)
        killed += 1
    assert home.wait(*ids) == 0
    assert killed >= 3
    # Those that went without it say so.
    plain = [task for task in ids if "ran without its service warm" in home.show(task).get("message", "")]
    assert len(plain) < len(ids)


def test_a_stopped_service_is_replaced_and_its_tasks_end(home):
    first = home.forked("print(1)")
    assert home.wait(first) == 0
    (pid,) = home.services()
    os.kill(pid, signal.SIGSTOP)
    second = home.forked("print(2)")
    assert home.wait(second) == 0
    assert home.log(second) == "2\n"
    wait_until(lambda: home.services() and pid not in home.services(), 10, "the end of the stopped service")


def test_a_service_that_cannot_start_makes_its_tasks_run_plainly(home):
    one = home.forked("print('still')", modules=["there_is_no_such_module"])
    two = home.tasks([["echo", "two"]], {"name": "warm", "command": ["/no/such/service"]})[0]
    assert home.wait(one, two) == 0
    assert home.log(one) == "still\n" and home.log(two) == "two\n"
    text = home.ok("explain", one)
    assert "ran without its service warm" in text and "No module named 'there_is_no_such_module'" in text
    assert "cannot run /no/such/service" in home.ok("explain", two)


def _slow(home):
    """A module that is there when the test says so; it imports others meanwhile."""
    (home.directory / "slow.py").write_text(
        "import os, time, importlib\n"
        f"open({str(home.directory / 'begins')!r}, 'a').write('x')\n"
        f"while not os.path.exists({str(home.directory / 'gate')!r}):\n"
        "    try:\n        importlib.import_module('there_is_no_such_module')\n    except ImportError:\n        pass\n"
        "    time.sleep(0.1)\n"
    )
    return fork("slow")


def test_a_service_that_takes_long_to_start_holds_no_cpu_up(home):
    waiting = home.tasks([[PYTHON, "-c", "print('served')"]] * 3, _slow(home))
    wait_until(
        lambda: "its service warm is starting on pilot" in home.ok("explain", waiting[0]),
        30,
        "the tasks to wait without a lease",
    )
    # Both of its cpus are others' meanwhile.
    others = [
        home.submit("--", "sh", "-c", "while [ ! -e others ]; do sleep 0.02; done", cwd=home.directory)
        for _ in range(2)
    ]
    wait_until(lambda: {home.show(task)["state"] for task in others} == {"running"}, 30, "others to have the room")
    assert {home.show(task)["state"] for task in waiting} == {"waiting"}
    (home.directory / "others").touch()
    assert home.wait(*others) == 0
    (home.directory / "gate").touch()
    assert home.wait(*waiting) == 0
    for task in waiting:
        found = home.show(task)
        assert home.log(task) == "served\n" and "message" not in found and found["attempt"] == 1
    assert (home.directory / "begins").read_text() == "x", "it was imported more than once"


def test_a_start_that_says_nothing_for_too_long_is_given_up(home):
    silent = {"name": "warm", "command": ["sh", "-c", "exec cat"], "start": "3s"}
    task = home.tasks([["echo", "still"]], silent)[0]
    assert home.wait(task) == 0 and home.log(task) == "still\n"
    assert "ran without its service warm: it was not ready after 3 s" in home.ok("explain", task)


def test_a_task_that_waits_for_its_service_is_cancelled_at_once(home):
    task = home.tasks([[PYTHON, "-c", "print('served')"]], _slow(home))[0]
    wait_until(lambda: "its service warm is starting" in home.ok("explain", task), 30, "its wait")
    home.ok("cancel", task)
    assert home.wait(task) == 1 and home.show(task)["state"] == "cancelled"


def test_a_service_is_started_while_what_goes_before_its_task_runs(home):
    service = fork("json")
    gate = home.directory / "gate"
    first = [["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.02; done"], [PYTHON, "-c", "print('served')"]]
    home.submits += 1
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "python"), "HPCBATCH_HOME": str(home.home)}
    ids = home.client.submit(
        "tests",
        [
            {"command": first[0]},
            {
                "command": first[1],
                "service": service,
                "after_any": ["#1"],
                "environment": {**environment, "OWN": "of the service alone"},
            },
        ],
        f"key {home.submits}",
        str(home.directory),
        environment,
    )
    (pid,) = wait_until(home.services, 30, "the service")
    gate.touch()
    assert home.wait(*ids) == 0
    assert home.log(ids[1]) == "served\n" and home.services() == {pid}, "it was not the one that was started before"


def test_pilots_of_one_node_import_one_after_another():
    with Home(TWO_PILOTS) as home:
        busy = {
            tag: home.submit(
                "--tag", tag, "--", "sh", "-c", "while [ ! -e end ]; do sleep 0.02; done", cwd=home.directory
            )
            for tag in ("one", "other")
        }
        wait_until(lambda: home.status()["tasks"]["running"] == 2, 60, "two pilots")
        slow = _slow(home)
        waiting = [home.tasks([[PYTHON, "-c", "print('served')"]], slow, tags=[tag])[0] for tag in busy]
        (home.directory / "end").touch()
        assert home.wait(*busy.values()) == 0
        for task in waiting:
            wait_until(lambda task=task: "its service warm is starting" in home.ok("explain", task), 30, "its wait")
        wait_until((home.directory / "begins").exists, 60, "the first import")
        assert (home.directory / "begins").read_text() == "x"
        (home.directory / "gate").touch()
        assert home.wait(*waiting) == 0
        assert (home.directory / "begins").read_text() == "xx"


def test_a_service_that_leaks_is_renewed(home):
    # It grows with each request: what its module registers runs in the service before each fork.
    (home.directory / "leaky.py").write_text(
        "import os\nkept = []\nos.register_at_fork(before=lambda: kept.append(bytearray(8 << 20)))\n"
    )
    service = fork("leaky", memory="150M")
    ids = home.tasks([[PYTHON, "-c", "import time; time.sleep(0.05)"]] * 100, service)
    seen = set()
    while home.client.post("/v1/tasks/wait", {"ids": ids, "timeout": 0})["done"] is False:
        seen |= home.services()
    assert home.wait(*ids) == 0
    assert len(seen) > 1


def test_a_service_is_renewed_after_its_requests_and_ends_when_idle(home):
    service = fork("json", requests=10, idle="1s")
    ids = home.tasks(
        [[PYTHON, "-c", "import os; print(open(f'/proc/{os.getpid()}/stat').read().split()[0])"]] * 35, service
    )
    seen = set()
    while home.client.post("/v1/tasks/wait", {"ids": ids, "timeout": 0})["done"] is False:
        seen |= home.services()
    assert home.wait(*ids) == 0
    assert len(seen) >= 2
    wait_until(lambda: not home.services(), 20, "the end of the idle service")


def test_a_service_starts_itself_anew_when_what_it_has_loaded_changes(home):
    module = home.directory / "version.py"
    module.write_text("number = 1\n")
    service = fork("version")
    show = [PYTHON, "-c", "import version; print(version.number)"]
    first = home.tasks([show], service)[0]
    assert home.wait(first) == 0
    module.write_text("number = 22\n")

    def is_seen():
        task = home.tasks([show], service)[0]
        assert home.wait(task) == 0
        return home.log(task) == "22\n"

    wait_until(is_seen, 30, "the new module")


def test_a_pilot_that_has_the_service_is_asked_first():
    with Home(TWO_PILOTS) as home:
        busy = {
            tag: home.submit(
                "--tag", tag, "--", "sh", "-c", f"while [ ! -e end.{tag} ]; do sleep 0.02; done", cwd=home.directory
            )
            for tag in ("one", "other")
        }
        wait_until(lambda: home.status()["tasks"]["running"] == 2, 60, "two pilots")
        pilot = {tag: home.show(task)["pilot"] for tag, task in busy.items()}
        later, earlier = sorted(pilot, key=pilot.get, reverse=True)
        (home.directory / f"end.{later}").touch()
        first = home.forked("print('served')")
        assert home.wait(first) == 0 and home.show(first)["pilot"] == pilot[later]
        (home.directory / f"end.{earlier}").touch()
        assert home.wait(*busy.values()) == 0
        # What needs no service goes to the pilot of the lower name.
        plain = home.submit("--", "true")
        assert home.wait(plain) == 0 and home.show(plain)["pilot"] == pilot[earlier]
        for _ in range(5):
            task = home.forked("print('served')")
            assert home.wait(task) == 0 and home.show(task)["pilot"] == pilot[later]
        # Where it has no room the other one starts the service.
        held = home.forked("import time; time.sleep(600)")
        wait_until(lambda: home.show(held)["state"] == "running", 20, "the pilot that has the service to be full")
        task = home.forked("print('served')")
        assert home.wait(task) == 0 and home.show(task)["pilot"] == pilot[earlier]
        home.ok("cancel", held)


def test_wrong_services_are_refused(home):
    for service, words in (
        ({"name": "x"}, "command is missing"),
        ({"command": ["y"]}, "name is missing"),
        ({"name": "a b", "command": ["y"]}, "without blanks"),
        ({"name": "x", "command": ["y"], "kind": "other"}, "must be 'fork' or"),
        ({"name": "x", "command": ["y"], "batch": 2}, "'kind': 'answer'"),
        ({"name": "x", "command": ["y"], "colour": "red"}, "no key of a service"),
        ("x", "must be an object"),
    ):
        with pytest.raises(Exception, match=words):
            home.tasks([["true"]], service)
    with pytest.raises(Exception, match="without a 'container'"):
        home.tasks([["true"]], fork("json"), container="/x.sif")
