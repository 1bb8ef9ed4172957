"""The disk of the engine's home is full: whoever looks is answered and told, nothing new is taken, and all goes on when
there is room again. And clients that go away, or are too many, are in nobody's way."""

import json
import os
import resource
import socket
import subprocess

import pytest
from engine_at_home import EngineAtHome, wait_until


@pytest.fixture
def small():
    """A home on a file system of 8 MiB; the work is done elsewhere."""
    with EngineAtHome() as engine:
        engine.configure(f"sites: [{{name: here, scheduler: local, workspace: {engine.directory}/work}}]\n")
        engine.home.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", engine.home], check=True)
        try:
            yield engine
        finally:
            (engine.home / "ballast").unlink(missing_ok=True)
            wait_until(lambda: engine.verb("engine", "stop", "--now").code == 0, what="the engine's end")
            subprocess.run(["umount", "-l", engine.home], check=True)


def fill(home):
    ballast = home.home / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return ballast


def test_a_full_disk_is_told_and_outlived(small):
    running = small.submit("--", "sh", "-c", f"while [ ! -e {small.directory}/go ]; do sleep 0.05; done")
    wait_until(lambda: small.show(running)["state"] == "running", what="the task's start")
    held = small.submit("--hold", "--array", "1-1000", "--", "true")
    ballast = fill(small)
    # The result of the task is what the store cannot take first; nobody has submitted anything.
    (small.directory / "go").touch()
    status = wait_until(lambda: (now := small.status())["state"] == "trouble" and now, what="the engine's trouble")
    place = f"{small.home}/store.db"
    assert place in status["message"] and "full" in status["message"] and "KiB are free" in status["message"]
    for words in (
        ["list"],
        ["show", running],
        ["show", held],
        ["explain", running],
        ["list", "--json"],
        ["allocations"],
        ["sites"],
    ):
        told = small.verb(*words, timeout=20)
        assert told.code == 0 and told.out and place in told.err and told.err.count("\n") == 1, (words, told)
    report = small.verb("report", timeout=20)
    assert report.code == 1 and place in report.err, report
    for array in small.json("list"):
        assert sum(array["counts"].values()) == array["total"] and array["state"] != "done", array
    assert place in small.verb("explain", f"{held}.1").out
    assert place in small.verb("top", "--once").out
    doctor = small.verb("doctor")
    assert doctor.code == 1 and place in doctor.out
    refused = small.verb("submit", "--", "true", timeout=110)
    assert refused.code == 3 and place in refused.err and "nothing was submitted" in refused.err
    refused = small.verb("cancel", held)
    assert refused.code == 3 and place in refused.err and "nothing was changed" in refused.err
    refused = small.verb("engine", "stop", "--now")
    assert refused.code == 3 and place in refused.err and "pilots then go on" in refused.err
    log = small.verb("log", running)
    assert log.code == 0 or place in log.err
    ballast.unlink()
    wait_until(lambda: small.status()["state"] == "running", what="the end of the trouble")
    assert small.wait(running) == 0
    assert small.show(held)["counts"]["held"] == 1000
    assert small.wait(small.submit("--", "true")) == 0
    assert small.verb("list").err == ""


def connections_of(pid):
    """How many descriptors of the process are sockets."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        except OSError:
            pass
    return count


def long_poll(home, what):
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(home.home / "socket"))
    body = json.dumps({"ids": [what], "timeout": 300})
    try:
        client.sendall(f"POST /v1/tasks/wait HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    except BrokenPipeError:
        pass  # it has been told that it is one too many
    return client


def test_clients_that_went_away_keep_nothing(home):
    held = home.submit("--hold", "--", "true")
    pid = home.engine_pid()
    before = connections_of(pid)
    waits = [long_poll(home, held) for _ in range(400)]
    for path in (f"/v1/tasks/{held}/log?follow=1", "/v1/events?after=now&wait=300", "/v1/events?wait=300"):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(home.home / "socket"))
        client.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        waits.append(client)
    wait_until(lambda: connections_of(pid) >= before + 401, what="the waits")
    for client in waits:
        client.close()
    wait_until(lambda: connections_of(pid) <= before + 2, what="the end of what was abandoned")
    assert home.status()["state"] == "running"


def test_one_client_too_many_is_told_so(home):
    # Few descriptors, which the engine cannot raise.
    home.home.mkdir(mode=0o700)
    engine = subprocess.Popen(
        [home.program, "engine", "run"],
        env=home.env,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
    )
    wait_until(lambda: home.verb("engine", "status").code == 0, what="the engine")
    held = home.submit("--hold", "--", "true")
    waits = [long_poll(home, held) for _ in range(150)]
    refused = wait_until(lambda: (r := home.verb("list")).code == 3 and r, what="the refusal")
    assert "ulimit -n" in refused.err and refused.err.count("\n") == 1
    for client in waits:
        client.close()
    wait_until(lambda: home.verb("list").code == 0, what="room for a client")
    # Work goes on beside those who wait.
    waits = [long_poll(home, held) for _ in range(150)]
    for client in waits[20:]:
        client.close()
    task = wait_until(lambda: (r := home.verb("submit", "--", "true")).code == 0 and r.out.strip(), what="a submit")
    assert home.wait(task) == 0
    for client in waits:
        client.close()
    home.ok("engine", "stop", "--now")
    engine.wait(60)


def test_commands_have_the_limit_that_the_engine_was_started_with(home):
    engine = subprocess.Popen(
        [home.program, "engine", "run"],
        env=home.env,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 4096)),
    )
    home.home.mkdir(mode=0o700, exist_ok=True)
    wait_until(lambda: home.verb("engine", "status").code == 0, what="the engine")
    limits = open(f"/proc/{engine.pid}/limits").read()
    assert [line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files")] == [
        ["4096", "4096"]
    ]
    task = home.submit("--", "sh", "-c", "ulimit -n")
    assert home.wait(task) == 0
    assert home.ok("log", "--stdout", task) == "512\n"
    home.ok("engine", "stop", "--now")
    engine.wait(60)
