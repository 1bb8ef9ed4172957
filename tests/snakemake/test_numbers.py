"""Many tasks that share a Python with numpy and scipy loaded, while things happen to that Python."""

import os
import signal
import sys

import pytest
from engine_at_home import ROOT, wait_until

sys.path.insert(0, str(ROOT / "python"))
from hpcbatch.client import Client  # noqa: E402

COUNT = 500 if os.environ.get("HPCBATCH_LONG") else 200
CODE = (
    "import os, numpy, scipy.linalg; n = int(os.environ['N']); print(n, round(scipy.linalg.det(numpy.diag([n, 2.0]))))"
)
# Each process that it forks leaves a little more behind in the service.
LEAK = "import os\nkept = []\nos.register_at_fork(before=lambda: kept.append(bytearray(8 << 20)))\n"


class Numbers:
    def __init__(self, bed):
        self.engine = bed.engine
        self.python = str(bed.python)
        self.folder = bed.folder
        self.engine.ok("engine", "start")
        self.client = Client(str(self.engine.home / "socket"))

    def submit(self, *modules, count=COUNT, **service):
        package = "hpcbatch.fork_service"
        service = {
            "name": "numbers",
            "command": [self.python, "-m", package, "numpy", "scipy.linalg", *modules],
            **service,
        }
        tasks = [
            {"command": [self.python, "-c", CODE], "env": {"N": str(n)}, "service": service}
            for n in range(1, count + 1)
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HPCBATCH_HOME": str(self.engine.home),
        }  # by which the service is known for this engine's
        return self.client.submit("numbers", tasks, f"{modules} {service}", str(self.folder), environment)

    def service(self):
        return min(wait_until(lambda: self.engine.service_pids("numbers"), 60, "the service to live"))

    def done(self):
        return self.engine.status()["tasks"]["done"]

    def check(self, ids):
        """What each said about itself besides."""
        assert self.engine.wait(*ids, timeout=600) == 0
        shown = [self.client.task(task) for task in ids]
        for n, task in enumerate(shown, 1):
            assert self.client.log_end(task["id"], "stdout") == f"{n} {2 * n}\n", task
            assert [one.get("failure", "ok") for one in task.get("attempts", [])][
                :-1
            ] == [], "an attempt was charged to the task"
        return [task["message"] for task in shown if task.get("message")]


@pytest.fixture
def numbers(bed):
    return Numbers(bed)


def test_the_service_is_killed_and_stopped_among_many_tasks(numbers):
    ids = numbers.submit()
    for number, part in ((signal.SIGKILL, 0.04), (signal.SIGKILL, 0.25), (signal.SIGSTOP, 0.5), (signal.SIGKILL, 0.8)):
        wait_until(lambda part=part: numbers.done() >= part * COUNT, 120, f"{part:.0%} of the tasks to be done")
        os.kill(numbers.service(), number)
    assert numbers.check(ids) == []


def test_a_service_that_leaks_is_renewed_among_many_tasks(numbers):
    (numbers.folder / "leak.py").write_text(LEAK)
    ids = numbers.submit("leak", memory="600M")
    first = numbers.service()
    seen = {first}
    wait_until(
        lambda: seen.update(numbers.engine.service_pids("numbers")) or numbers.done() >= COUNT - 20,
        200,
        "most tasks to be done",
    )
    assert len(seen) > 1, "it was never renewed"
    assert numbers.check(ids) == []


def test_a_service_that_cannot_start_is_done_without(numbers):
    ids = numbers.submit("there_is_no_such_module", count=40)
    said = numbers.check(ids)
    assert len(said) == 40 and all(
        "ran without its service numbers" in text and "there_is_no_such_module" in text for text in said
    )
