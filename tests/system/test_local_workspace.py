"""A workspace that takes nothing for a while: what has ended well stays ended well, and everybody is told."""

import contextlib
import os
import subprocess

import pytest
from engine_at_home import wait_until

SITE = """sites:
  - name: here
    scheduler: local
    workspace: {workspace}
    shapes: [{{name: all, cpus: 2, memory: 1G, walltime: 1h}}]
"""


@contextlib.contextmanager
def workspace_on(home, kind, options):
    """On a file system of its own."""
    place = home.directory / "mount"
    place.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", kind, "-o", options, "hpcbatch-test", place], check=True)
    home.configure(SITE.format(workspace=place / "w"))
    yield place / "w"
    while os.path.ismount(place):
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def workspace(home):
    """Small enough to be filled."""
    with workspace_on(home, "tmpfs", "size=16m,mode=0700") as workspace:
        yield workspace


@pytest.fixture
def workspace_of_another_kind(home):
    """Than what lies below it: two file systems in memory cannot be told apart after a restart of the machine."""
    below = subprocess.run(
        ["stat", "-f", "-c", "%T", home.directory], capture_output=True, text=True, check=True
    ).stdout.strip()
    with workspace_on(home, "ramfs" if below == "tmpfs" else "tmpfs", "mode=0700") as workspace:
        yield workspace


def make_full(workspace):
    with contextlib.suppress(OSError), (workspace / "rest").open("wb", buffering=0) as rest:
        while rest.write(b"x" * 4096):
            pass


def make_room(workspace):
    subprocess.run(["mount", "-o", "remount,size=64m", workspace.parent], check=True)


def test_a_result_waits_for_a_workspace_that_takes_nothing(home, workspace):
    why = "No space left on device"
    home.ok("run", "--", "echo", "the log is there")
    begun, go = home.directory / "begun", home.directory / "go"
    task = home.submit("--", "sh", "-c", f"echo > {begun}; until [ -e {go} ]; do sleep 0.01; done; seq 3000")
    wait_until(begun.exists, 30, "its start")
    make_full(workspace)
    go.touch()
    wait_until(lambda: home.show(task)["state"] == "finishing", 30, "its end")
    later = home.submit("--", "true")
    said = home.ok("explain", task)
    assert "its result waits for the workspace" in said and why in said, said
    wait_until(lambda: "nothing starts at site here" in home.ok("explain", later), 30, "the wait to be explained")
    [site] = home.json("sites")
    assert site["state"] == "waiting" and why in site["message"], site
    assert [line["id"] for line in home.json("list", "--tasks", "--state", "finishing")] == [task]
    make_room(workspace)
    assert home.wait(task, later) == 0
    assert home.ok("log", task) == "".join(f"{n}\n" for n in range(1, 3001))
    assert [len(home.show(one).get("attempts", [])) for one in (task, later)] in ([1, 1], [0, 0])
    [site] = home.json("sites")
    assert site["state"] == "ok", site


def test_a_workspace_that_is_not_mounted_is_not_made_in_its_place(home, workspace_of_another_kind):
    workspace = workspace_of_another_kind
    home.ok("run", "--", "true")
    home.ok("engine", "stop", "--now")
    wait_until(lambda: not home.pilot_pids(), 30, "the end of the pilot")
    subprocess.run(["umount", "--lazy", workspace.parent], check=True)
    home.ok("engine", "start")
    task = home.submit("--", "true")
    wait_until(lambda: "is that not mounted?" in home.ok("explain", task), 60, "the wait to be explained")
    assert list(workspace.parent.iterdir()) == []
    (workspace / "outbox").mkdir(mode=0o700, parents=True)
    workspace.chmod(0o700)
    assert home.wait(task) == 0
