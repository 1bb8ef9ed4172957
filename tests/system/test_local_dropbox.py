"""The drop box with the whole system behind it: a client like AMP's, ours, templates, tools, faults, a restart."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest
import yaml
from engine_at_home import ROOT, processes_with, wait_until

sys.path.insert(0, str(ROOT / "python"))
import hpcbatch_dropbox  # noqa: E402

COPY = """#!/bin/sh
echo "level <<level>>"
echo warned >&2
cat <<workspace>>/input/* > <<workspace>>/output/<<result>>
exit <<code>>
"""


class Box:
    def __init__(self, home):
        self.home = home
        self.path, self.data, self.templates = (home.directory / name for name in ("box", "data", "templates"))
        for folder in (self.path, self.data, self.templates):
            folder.mkdir(mode=0o755)
        (self.templates / "copy.template").write_text(COPY)
        (self.data / "in.wav").write_bytes(b"sound\0\xff")
        home.configure(
            f"dropboxes:\n  - directory: {self.path}\n    templates: [{self.templates}]\n    variables: {{level: 7}}\n"
            f"    allow: [{home.directory}/allowed]\n"
        )
        home.ok("engine", "start")

    def job(self, **changes):
        return {
            "script": "copy",
            "args": {"code": 0, **changes.pop("args", {})},
            "input_map": {"input": str(self.data / "in.wav")},
            "output_map": {"result": str(self.data / "out.wav")},
        } | changes

    def run(self, job):
        return hpcbatch_dropbox.submit_and_wait(str(self.path), job, 0.1, timeout=60)

    def process(self):
        """The process that serves it, once there is one."""
        found = []

        def is_one():
            found[:] = processes_with(f"serve-dropbox\0{self.path}")
            return len(found) == 1

        wait_until(is_one, 60, "a process of the drop box")
        return found[0]

    def kill_process(self):
        with contextlib.suppress(ProcessLookupError):  # one that was killed may be on its way
            os.kill(self.process(), signal.SIGKILL)


@pytest.fixture
def box(home):
    return Box(home)


def test_a_client_like_amps(box):
    """It makes a file of the final name first and fills it then."""
    with tempfile.NamedTemporaryFile(dir=box.path, suffix=".job", delete=False) as file:
        name = file.name
    with open(name, "w") as file:
        yaml.dump(box.job(args={"level": 6}), file)
    wait_until(lambda: os.path.exists(name + ".finished"), 60, "the result")
    with open(name + ".finished") as file:
        result = yaml.safe_load(file)["job"]
    os.unlink(name + ".finished")
    assert (result["status"], result["message"], result["rc"]) == ("ok", "Successful", 0)
    assert (result["stdout"], result["stderr"]) == ("level 6\n", "warned\n")
    assert (box.data / "out.wav").read_bytes() == b"sound\0\xff"
    assert list(box.path.glob("*.job*")) == []


def test_our_client_and_a_variable_of_the_drop_box(box):
    result = box.run(box.job())
    assert (result["status"], result["stdout"]) == ("ok", "level 7\n")
    before = os.umask(0o077)
    os.umask(before)
    assert (box.data / "out.wav").stat().st_mode & 0o777 == 0o666 & ~before


def test_a_job_that_fails(box):
    result = box.run(box.job(args={"code": 3}))
    assert (result["status"], result["message"], result["rc"]) == ("error", "Remote process failed with RC 3", 3)
    assert not (box.data / "out.wav").exists()


def test_a_job_of_a_tool(box):
    result = box.run({"script": "command", "args": {"line": "echo from a tool"}, "input_map": {}, "output_map": {}})
    assert (result["status"], result["stdout"]) == ("ok", "from a tool\n")


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"script": "no_such"}, "no_such"),
        ({"input_map": {"input": "/no/such/input"}}, "/no/such/input"),
        ({"output_map": {"result": "/no/such/folder/out"}}, "/no/such/folder"),
    ],
)
def test_what_cannot_be_sent_gets_an_error_at_once(box, changes, named):
    result = box.run(box.job(**changes))
    assert result["status"] == "error" and named in result["message"]


def test_inputs_of_one_base_name_do_not_meet(box):
    maps = {}
    for name in ("one", "two"):
        (box.data / name).mkdir(mode=0o755)
        (box.data / name / "same.wav").write_text(name)
        maps[name] = str(box.data / name / "same.wav")
    result = box.run(box.job(input_map=maps))
    assert result["status"] == "ok", result
    assert sorted(((box.data / "out.wav").read_text()[:3], (box.data / "out.wav").read_text()[3:])) == ["one", "two"]


def test_a_destination_that_others_can_write_needs_allow(box):
    for name, status in (("refused", "error"), ("allowed", "ok")):
        folder = box.home.directory / name
        folder.mkdir()
        folder.chmod(0o777)
        result = box.run(box.job(output_map={"result": str(folder / "out")}))
        assert result["status"] == status, result
        assert (folder / "out").exists() == (status == "ok")
        assert status == "ok" or str(folder) in result["message"]


def test_a_drop_box_named_to_the_running_engine_is_remembered(box):
    second = box.home.directory / "second"
    second.mkdir(mode=0o755)
    box.home.ok("dropbox", second, "--templates", box.templates, "--var", "level=8")
    assert {line["directory"] for line in box.home.json("dropbox")} == {str(box.path), str(second)}
    for _ in range(2):
        assert hpcbatch_dropbox.submit_and_wait(str(second), box.job(), 0.1, timeout=60)["stdout"] == "level 8\n"
        box.home.kill_engine()
        box.home.ok("engine", "start")


def test_a_drop_box_can_be_changed_and_removed(box):
    home, second = box.home, box.home.directory / "second"
    second.mkdir(mode=0o755)
    run = lambda: hpcbatch_dropbox.submit_and_wait(str(second), box.job(), 0.1, timeout=60)["stdout"]  # noqa: E731
    for level in (8, 9):
        home.ok("dropbox", second, "--templates", box.templates, "--var", f"level={level}")
        assert run() == f"level {level}\n"
    home.kill_engine()
    home.ok("engine", "start")
    assert run() == "level 9\n"
    gate = home.directory / "go"
    (box.templates / "gate.template").write_text(
        f"#!/bin/sh\ntouch {home.directory}/began\n"
        f"while [ ! -e {gate} ]; do sleep 0.02; done\ncp <<workspace>>/input/<<input>> <<workspace>>/output/<<result>>\n"
    )
    path = hpcbatch_dropbox.submit(str(second), box.job(script="gate"))
    wait_until((home.directory / "began").exists, 30, "the start of the job")
    home.ok("dropbox", second, "--remove")
    assert [line["directory"] for line in home.json("dropbox")] == [str(box.path)]
    gate.touch()
    home.ok("dropbox", second, "--templates", box.templates, "--var", "level=9")
    assert hpcbatch_dropbox.wait(path, 0.1, timeout=60)["status"] == "ok"
    home.ok("dropbox", second, "--remove")
    home.kill_engine()
    home.ok("engine", "start")
    assert [line["directory"] for line in home.json("dropbox")] == [str(box.path)]


def test_a_drop_box_of_the_configuration_is_changed_there(box):
    for words in (["--remove"], ["--var", "level=1"]):
        refused = box.home.verb("dropbox", box.path, *words)
        assert refused.code == 2 and "configuration" in refused.err, refused
    assert not (box.home.home / "dropboxes.json").exists()


def test_a_remembered_drop_box_that_is_away_is_watched_when_it_is_back(box):
    home, second = box.home, box.home.directory / "second"
    second.mkdir(mode=0o755)
    home.ok("dropbox", second, "--templates", box.templates, "--var", "level=8")
    home.kill_engine()
    remembered = home.home / "dropboxes.json"
    remembered.write_text(remembered.read_text().rstrip().removesuffix("]") + ', {"directory": 7}]')
    second.rename(home.directory / "away")
    home.ok("engine", "start")
    away = next(line for line in home.json("dropbox") if line["directory"] == str(second))
    assert not away["watched"] and "No such file" in away["message"]
    assert "an entry of" in home.log_end()
    (home.directory / "away").rename(second)
    assert hpcbatch_dropbox.submit_and_wait(str(second), box.job(), 0.1, timeout=60)["stdout"] == "level 8\n"
    assert str(second) in remembered.read_text()


def test_jobs_survive_the_end_of_the_engine(box):
    gate = box.home.directory / "go"
    (box.templates / "slow.template").write_text(
        f"#!/bin/sh\necho x >> {box.home.directory}/started\n"
        f"while [ ! -e {gate} ]; do sleep 0.02; done\ncp <<workspace>>/input/<<input>> <<workspace>>/output/<<result>>\n"
    )
    results = {}

    def one(number):
        job = box.job(script="slow", output_map={"result": str(box.data / f"out{number}")})
        results[number] = box.run(job)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(list(box.path.glob("*.job.submitted"))) == 4, 30, "the taking of all jobs")
    wait_until((box.home.directory / "started").exists, 30, "the first start")
    box.home.kill_engine()
    late = hpcbatch_dropbox.submit(str(box.path), box.job())
    gate.touch()
    box.home.ok("engine", "start")
    for thread in threads:
        thread.join(60)
    assert [results[number]["status"] for number in range(4)] == ["ok"] * 4
    assert all((box.data / f"out{number}").exists() for number in range(4))
    assert (box.home.directory / "started").read_text() == "x\n" * 4
    assert hpcbatch_dropbox.wait(late, 0.1, timeout=60)["status"] == "ok"


def slow_jobs(box, count):
    """So many that wait for a file `go` and note that they have begun, and what they came to."""
    (box.templates / "slow.template").write_text(
        f"#!/bin/sh\necho <<result>> >> {box.home.directory}/started\n"
        f"while [ ! -e {box.home.directory}/go ]; do sleep 0.02; done\n"
        "cp <<workspace>>/input/<<input>> <<workspace>>/output/<<result>>\n"
    )
    return [
        hpcbatch_dropbox.submit(
            str(box.path), box.job(script="slow", output_map={"result": str(box.data / f"out{number}")})
        )
        for number in range(count)
    ]


def test_each_job_runs_once_whatever_is_killed(box):
    """The process of the drop box and the engine in turns, at moments that are not chosen."""
    paths = slow_jobs(box, 12)
    for turn in range(4):
        if turn % 2 == 0:
            box.kill_process()
        else:
            box.home.kill_engine()
            wait_until(lambda: not processes_with(f"serve-dropbox\0{box.path}"), 30, "the end of its process, too")
            box.home.ok("engine", "start")
    (box.home.directory / "go").touch()
    box.kill_process()
    assert [hpcbatch_dropbox.wait(path, 0.1, timeout=120)["status"] for path in paths] == ["ok"] * 12
    begun = (box.home.directory / "started").read_text().split()
    assert len(begun) == len(set(begun)) == 12
    assert all((box.data / f"out{number}").exists() for number in range(12))


def test_a_process_whose_engine_is_gone_touches_nothing(home):
    """Killed before the process could ask for a signal at its end: the next engine finds the lock free."""
    folder = home.directory / "orphaned"
    folder.mkdir(mode=0o755)
    (folder / "a.job").write_text("{}")
    settings = {
        "directory": str(folder),
        "workspace": str(home.directory / "orphaned-work"),
        "allow": [],
        "templates": [],
        "variables": {},
        "trust_group": "",
        "most_active_of_one": 4,
        "input_limit": 1 << 20,
        "lock": str(home.directory / "orphaned.lock"),
    }
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(json.dumps({"open": settings}).encode() + b"\n")
        ours.close()
        words = ["bash", "-c", f'exec "$0" serve-dropbox "$1" 3<&{theirs.fileno()}', home.program, folder]
        subprocess.run(words, pass_fds=[theirs.fileno()], env=home.env, timeout=60, check=True)
    assert os.listdir(folder) == ["a.job"]
    assert not (home.directory / "orphaned-work").exists()


def test_a_drop_box_that_hangs_holds_up_neither_engine_nor_others(box):
    home, second = box.home, box.home.directory / "second"
    second.mkdir(mode=0o755)
    process = box.process()
    os.kill(process, signal.SIGSTOP)
    home.ok("dropbox", second, "--templates", box.templates, "--var", "level=8")
    assert hpcbatch_dropbox.submit_and_wait(str(second), box.job(), 0.1, timeout=60)["stdout"] == "level 8\n"
    late = hpcbatch_dropbox.submit(str(box.path), box.job())
    os.kill(process, signal.SIGCONT)
    assert hpcbatch_dropbox.wait(late, 0.1, timeout=60)["status"] == "ok"


def test_a_drop_box_that_cannot_be_opened_yet_keeps_no_engine_from_starting(box):
    box.home.kill_engine()
    with open(box.home.home / "dropboxes.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a process of the engine before that hangs in a file system
        box.home.ok("engine", "start")
        assert box.home.wait(box.home.submit("--", "true")) == 0
        late = hpcbatch_dropbox.submit(str(box.path), box.job())
        assert "still at work" in (box.home.home / "engine.log").read_text()
    assert hpcbatch_dropbox.wait(late, 0.1, timeout=60)["status"] == "ok"


def test_the_engine_has_no_file_of_a_drop_box_open(box):
    assert box.run(box.job())["status"] == "ok"
    pid = box.home.engine_pid()
    links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    assert not [link for link in links if link.startswith((str(box.path), str(box.data), str(box.templates)))]
    links = [os.readlink(f"/proc/{box.process()}/fd/{name}") for name in os.listdir(f"/proc/{box.process()}/fd")]
    assert str(box.path) in links
    assert not [link for link in links if link.endswith(("store.db", "engine.lock"))]


def test_a_job_file_that_is_removed_is_cancelled(box):
    (box.templates / "long.template").write_text(f"#!/bin/sh\ntouch {box.home.directory}/began\nexec sleep 600\n")
    path = hpcbatch_dropbox.submit(str(box.path), box.job(script="long"))
    wait_until((box.home.directory / "began").exists, 30, "the start of the job")
    hpcbatch_dropbox.cancel(path)
    result = hpcbatch_dropbox.wait(path, 0.1, timeout=60)
    assert result["status"] == "error" and "ancelled" in result["message"]


def test_our_client_from_a_shell(box):
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "python/hpcbatch_dropbox.py",
            box.path,
            "copy",
            "--arg",
            "code=0",
            "--arg",
            "level=5",
            "--input",
            f"input={box.data}/in.wav",
            "--output",
            f"result={box.data}/out.wav",
            "--period",
            "0.1",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "level 5\n", "warned\n")
