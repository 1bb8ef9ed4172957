"""What hangs, breaks or may not be written is named where people look: engine.log, `sites`, `doctor`, and the verb itself."""

import json
import os
import resource
import signal
import subprocess

import pytest

from engine_at_home import EngineAtHome, is_alive, processes_with, wait_until


def doctors_word(home, check, **options):
    """(whether that check is good, its text, what was said on standard error)"""
    told = home.verb("doctor", "--json", **options)
    rows = {row["check"]: row for row in map(json.loads, told.out.splitlines())}
    return rows[check]["ok"], rows[check]["text"], told.err


def test_a_limit_on_the_size_of_files_is_named_and_outlived(home):
    home.home.mkdir(mode=0o700)
    with open(home.home / "engine.log", "ab") as log:
        engine = subprocess.Popen(
            [home.program, "engine", "run"],
            env=home.env,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, resource.RLIM_INFINITY)),
        )
    wait_until(lambda: home.verb("engine", "status").code == 0, what="the engine")
    assert "(ulimit -f)" in home.log_end()
    large = ["--env", f"LARGE={'x' * 60_000}", "--", "true"]

    def submits_until_it_cannot():
        """The submit that the engine cannot acknowledge."""
        for number in range(100):
            asking = home.begin("submit", "--hold", "--name", f"large-{number}", *large)
            wait_until(lambda: asking.poll() is not None or home.status()["state"] == "trouble", what="an answer")
            if asking.poll() is None:
                return asking
            assert asking.communicate()[1] == "" and asking.returncode == 0
        raise AssertionError("the limit was never met")

    waiting = submits_until_it_cannot()
    limit = "no file larger than 512 KiB (ulimit -f)"
    said = waiting.stderr.readline()
    assert "waits for the engine" in said and limit in said, said
    refused = home.verb("submit", "--hold", "--", "true")
    assert refused.code == 3 and limit in refused.err, refused
    assert limit in doctors_word(home, "store")[1]
    good, text, _ = doctors_word(home, "file size")
    assert not good and "no file larger than 512K (ulimit -f)" in text, text
    assert engine.poll() is None
    resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert waiting.wait(60) == 0
    home.submit("--hold", "--", "true")
    home.ok("engine", "stop", "--now")
    engine.wait(60)


def test_a_start_under_such_a_limit_does_not_call_the_store_damaged(home):
    home.submit("--hold", "--", "true")
    home.ok("engine", "stop")
    told = subprocess.run(
        [home.program, "engine", "run"],
        env=home.env,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, resource.RLIM_INFINITY)),
    )
    assert told.returncode == 1 and "(ulimit -f)" in told.stderr, told
    assert "fsck" not in told.stderr, told
    assert len(home.json("list")) == 1


@pytest.fixture
def hanging():
    """A home whose one site is a SLURM whose commands answer at once, but for sbatch, which hangs."""
    with EngineAtHome() as engine:
        programs = engine.directory / "bin"
        programs.mkdir()
        for name in ("squeue", "sinfo", "sacct", "scontrol", "scancel", "sbatch"):
            (programs / name).write_text(f"#!/bin/sh\n{'exec sleep 1000' if name == 'sbatch' else ''}\n")
            (programs / name).chmod(0o755)
        engine.env["PATH"] = f"{programs}:{engine.env['PATH']}"
        engine.configure(
            f"sites:\n  - {{name: far, scheduler: slurm, transport: shared_fs, workspace: {engine.directory}/w, "
            "shapes: [{name: all, cpus: 1, memory: 512M, walltime: 10m}]}\n"
        )
        yield engine
        # An engine that is stopped waits for what it may just have submitted.
        (programs / "sbatch").write_text("#!/bin/sh\nexit 1\n")
        for pid, line in processes_with(str(engine.directory)).items():
            if line == "sleep 1000":
                os.kill(pid, signal.SIGKILL)


def test_a_command_of_the_batch_system_that_hangs_is_named(hanging):
    hanging.submit("--", "true")

    def site():
        return hanging.json("sites")[0]

    wait_until(lambda: "waits_for" in site(), 60, "the word for it")
    assert "while submitting a batch job (scheduler slurm" in site()["waits_for"]
    assert site()["message"].startswith("no answer for ")
    good, text, _ = doctors_word(hanging, "site far")
    assert not good and "while submitting a batch job (scheduler slurm" in text, text
    assert "site far: no answer for 10 s while submitting a batch job" in hanging.log_end()


def test_a_verb_says_what_it_waits_for(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        asking = home.begin("list")
        said = asking.stderr.readline()
        assert f"waits for the engine (process {pid}), which has not answered GET /v1/arrays" in said, said
    finally:
        os.kill(pid, signal.SIGCONT)
    out, err = asking.communicate(timeout=60)
    assert asking.returncode == 0 and err == "", (out, err)


def test_an_engine_that_ends_by_a_fault_is_named(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    os.kill(pid, signal.SIGABRT)
    wait_until(lambda: not is_alive(pid), what="its end")
    assert "this process ends by SIGABRT" in home.log_end()
    good, text, _ = doctors_word(home, "engine")
    assert not good and "its log says: this process ends by SIGABRT" in text, text
    assert "one was started" in home.verb("list").err
    assert doctors_word(home, "engine")[0]
    home.kill_engine()
    good, text, _ = doctors_word(home, "engine")
    assert not good and "SIGABRT" not in text, "that was another engine's end"
