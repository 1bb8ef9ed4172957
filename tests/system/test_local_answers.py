"""Services that answer: a worker is loaded once, and each of its tasks is a task like any other."""

import os
import signal
import sys
import time

import pytest
from engine_at_home import ROOT, EngineAtHome, name_of, processes_with, wait_until

sys.path.insert(0, str(ROOT / "python"))
from hpcbatch.client import Client  # noqa: E402

PYTHON = "/usr/bin/python3"
SITE = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: four, cpus: 4, memory: 4G}]}
"""
# Each request names what it is to do; the count of loads is the number of lines in `loads`.
WORKER = """
import os, sys, time
from hpcbatch.answer_service import serve

def load():
    with open(os.environ["LOADS"], "a") as loads:
        loads.write("%d\\n" % os.getpid())
    if os.path.exists(os.environ["LOADS"] + ".broken"):
        sys.exit("no model here")
    return {"served": 0}

def answer(model, request):
    model["served"] += 1
    what = request.argv[1]
    if what == "say":
        print("pid", os.getpid(), "served", model["served"], "in", os.getcwd(), request.env["HPCBATCH_TASK_ID"], *request.argv[2:])
        print("to stderr", file=sys.stderr)
    elif what == "fail":
        sys.exit(int(request.argv[2]))
    elif what == "raise":
        raise ValueError("why not")
    elif what == "die":
        os.kill(os.getpid(), 9)
    elif what == "die once":
        if not os.path.exists(request.argv[2]):
            open(request.argv[2], "w").close()
            os._exit(3)
        print("after all")
    elif what == "hang":
        open(request.argv[2], "w").close()
        time.sleep(1000)
    elif what == "burn":
        end = time.process_time() + float(request.argv[2])
        while time.process_time() < end:
            pass
    elif what == "eat":
        model["eaten"] = bytearray(int(request.argv[2]) << 20)
        time.sleep(5)
    elif what == "flood":
        for _ in range(int(request.argv[2])):
            print("x" * 1000)
    elif what == "write":
        open("out", "w").write(str(os.getpid()))
    return 0

serve(load, answer)
"""
TOGETHER = """
import os
import time
from hpcbatch.answer_service import serve

def answer(model, batch):
    with open(os.environ["LOADS"], "a") as batches:
        batches.write("%d\\n" % len(batch))
    time.sleep(0.1)  # a model's work, during which others come
    return [int(request.argv[1]) for request in batch]

serve(lambda: None, answer, together=True)
"""
# What a task does where its service cannot: it says so.
PLAIN = "import sys; print('plain', sys.argv[1:]); sys.exit(9)"


class Home(EngineAtHome):
    def __init__(self):
        super().__init__(PYTHONPATH=str(ROOT / "python"))
        self.configure(SITE % (self.directory / "space"))
        self.ok("engine", "start")
        self.client = Client(str(self.home / "socket"))
        self.submits = 0
        self.worker = self.directory / "worker.py"
        self.worker.write_text(WORKER)
        self.loads = self.directory / "loads"
        self.loads.touch()
        (self.directory / "plain.py").write_text(PLAIN)

    def service(self, **more):
        return {
            "name": "warm",
            "kind": "answer",
            "command": [PYTHON, str(self.worker)],
            "env": {"LOADS": str(self.loads)},
        } | more

    def tasks(self, commands, service=None, **more):
        self.submits += 1
        tasks = [
            {"command": [PYTHON, *map(str, command)], "service": service or self.service()} | more
            for command in commands
        ]
        return self.client.submit(
            "tests",
            tasks,
            f"key {self.submits}",
            str(self.directory),
            {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def log(self, task, stream="stdout"):
        return self.client.log_end(task, stream)

    def loaded(self):
        return self.loads.read_text().split()

    def one(self, *command, code=0, **more):
        (task,) = self.tasks([command], **more)
        assert self.wait(task) == (1 if code else 0)
        seen = self.show(task)
        assert seen["exit_code"] == code, (seen, self.log(task, "stderr"))
        return task, seen


@pytest.fixture
def home():
    with Home() as engine:
        yield engine


def test_its_tasks_are_tasks_like_any_other_and_it_is_loaded_once(home):
    task, seen = home.one("say", "a b", "ü")
    words = home.log(task).split()
    assert words[:2] == ["pid", home.loaded()[0]] and words[3] == "1" and words[5] == str(home.directory)
    assert words[6:] == [task, "a", "b", "ü"] and home.log(task, "stderr") == "to stderr\n"
    task, _ = home.one("say")
    assert home.log(task).split()[3] == "2" and len(home.loaded()) == 1
    _, seen = home.one("fail", 7, code=7)
    assert seen["failure"] == "tool_failed"
    task, _ = home.one("raise", code=1)
    assert "ValueError: why not" in home.log(task, "stderr")
    _, seen = home.one("burn", 0.6)
    assert 0.5 < seen["cpu_s"] < 3 and seen["peak_memory"] > 4 << 20
    assert len(home.loaded()) == 1
    out = home.directory / "kept"
    (task,) = home.tasks([["write"]], outputs={"out": str(out)})
    assert home.wait(task) == 0 and out.read_text() == home.loaded()[0]


def test_several_run_side_by_side_each_with_a_worker(home):
    service = home.service(instances=2)
    tasks = home.tasks([["burn", 0.3]] * 8, service)
    assert home.wait(*tasks) == 0
    assert 1 <= len(home.loaded()) <= 2


def test_requests_are_handed_over_together(home):
    home.worker.write_text(TOGETHER)
    service = home.service(batch=8, instances=1)
    codes = [0, 1, 2, 3] * 10
    tasks = home.tasks([[code] for code in codes], service, cpus=0.25)
    home.wait(*tasks)
    assert [home.show(task)["exit_code"] for task in tasks] == codes
    batches = [int(size) for size in home.loaded()]
    assert sum(batches) == 40 and max(batches) <= 8 and len(batches) < 40, batches


def test_one_that_dies_costs_another_try_and_one_that_always_kills_it_fails(home):
    task, seen = home.one("die once", home.directory / "flag")
    assert home.log(task) == "after all\n" and seen["attempt"] == 1
    assert "it is tried again" in home.log(task, "stderr") and "exit code 3" in home.log(task, "stderr")
    bad, good = home.tasks([["die"], ["say"]], home.service(instances=1))
    home.wait(bad, good)
    assert home.show(good)["state"] == "done"
    seen = home.show(bad)
    assert (seen["state"], seen["exit_code"]) == ("failed", 70)
    assert "died over it 3 times: it was ended by SIGKILL" in home.log(bad, "stderr")


def test_where_it_cannot_start_tasks_run_without_it(home):
    (home.directory / "loads.broken").touch()
    task, _ = home.one("plain.py", "x", code=9)
    assert home.log(task) == "plain ['x']\n"
    assert "no model here" in home.show(task)["message"]


def test_limits_and_kills_are_the_requests(home):
    begun = home.directory / "begun"
    service = home.service(instances=1)
    (task,) = home.tasks([["hang", begun]], service)
    wait_until(begun.exists)
    worker = home.loaded()[0]
    home.ok("cancel", task)
    home.wait(task)
    assert home.show(task)["state"] == "cancelled"
    # It does not stop by itself: a new worker answers.
    after, _ = home.one("say", service=service)
    assert home.log(after).split()[1] != worker and not os.path.exists(f"/proc/{worker}")
    (late,) = home.tasks([["hang", begun]], service, time="2s")
    home.wait(late)
    assert home.show(late)["failure"] == "time_task"
    (eater,) = home.tasks([["eat", 900]], home.service(memory="400M"), memory="300M")
    home.wait(eater)
    assert home.show(eater)["exit_code"] == 70 and "more than the 400.0 MiB" in home.log(eater, "stderr")


def test_much_output_waits_for_its_reader_and_arrives(home):
    task, _ = home.one("flood", 20_000)
    assert home.show(task)["state"] == "done"
    end = home.log(task)
    assert end.endswith("x" * 1000 + "\n")


def test_a_changed_program_is_loaded_anew(home):
    home.one("say")
    home.worker.write_text(WORKER.replace('"served", model["served"]', '"anew", model["served"]'))
    task, _ = home.one("say")
    assert home.log(task).split()[2:4] == ["anew", "1"]


def test_nothing_is_left_when_the_engine_stops(home):
    home.one("say")
    pids = home.loaded()
    assert os.path.exists(f"/proc/{pids[0]}")
    home.ok("engine", "stop", "--now")
    wait_until(lambda: not os.path.exists(f"/proc/{pids[0]}"))
    assert not processes_with(str(home.worker))


def test_a_service_that_is_killed_leaves_its_tasks_to_themselves(home):
    begun = home.directory / "begun"
    (task,) = home.tasks([["hang", begun]])
    wait_until(begun.exists)
    # The task's own process is its fork, by another name.
    (broker,) = [
        pid
        for pid in processes_with(str(home.worker))
        if b"answering" in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        and not name_of(pid).startswith("task ")
    ]
    os.kill(broker, signal.SIGKILL)
    assert home.wait(task) == 1
    # Its command is `python hang ...`, which no file is.
    assert home.show(task)["exit_code"] == 2 and "runs without its service" in home.log(task, "stderr")
