"""Galaxy, the engine, or both are killed: every job ends right and none runs twice, as a file shows that each run adds a line to."""

import os

import pytest
from engine_at_home import EngineAtHome, wait_until
from galaxy_bed import ENVIRONMENTS, TWO_CPUS, Galaxy

ROUNDS = 20 if os.environ.get("HPCBATCH_LONG") else 1


@pytest.fixture(scope="module")
def galaxy(galaxy_python):
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        with Galaxy(
            engine,
            galaxy_python,
            ENVIRONMENTS,
            runner={"metadata_start": "soon"},
            options={"external_chown_script": "/bin/true"},
        ) as server:
            yield server


def test_what_is_not_heeded_is_said_at_the_start(galaxy):
    log = galaxy.log()
    assert (
        "galaxy.yml: external_chown_script is not heeded: all jobs of this runner run as the user that Galaxy runs as"
        in log
    )
    assert "job_conf: runner: metadata_start: 'soon' is no time" in log


class Work:
    """Three jobs: one runs and ends while nobody looks, one runs on, one waits for room."""

    def __init__(self, galaxy, folder):
        self.galaxy = galaxy
        self.folder = folder
        self.jobs = {}
        for name in ("ends", "runs", "waits"):
            (self.jobs[name],) = galaxy.run(
                "hb_wait", gate=str(folder / f"gate.{name}"), ledger=str(folder / f"ledger.{name}")
            )
            if name != "waits":
                galaxy.until_running(self.jobs[name])
        wait_until(lambda: galaxy.job(self.jobs["waits"])["external_id"], 30, "the last job to be submitted")

    def open(self, *names):
        for name in names:
            (self.folder / f"gate.{name}").touch()

    def script_has_ended(self, name):
        task = self.galaxy.job(self.jobs[name])["external_id"].split("+")[0]
        return lambda: self.galaxy.engine.show(task)["state"] == "done"

    def check(self):
        for name, job in self.jobs.items():
            self.galaxy.ok(job)
            assert self.galaxy.text(self.galaxy.outputs(job)["out1"]["id"]) == "through the gate\n"
            assert (self.folder / f"ledger.{name}").read_text() == "run\n", name


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_galaxy_is_killed(galaxy, tmp_path, round_):
    work = Work(galaxy, tmp_path)
    has_ended = work.script_has_ended("ends")
    galaxy.kill()
    work.open("ends")
    wait_until(has_ended, 20, "a script to end while Galaxy is down")
    galaxy.start()
    work.open("runs", "waits")
    work.check()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_the_engine_is_killed(galaxy, tmp_path, round_):
    work = Work(galaxy, tmp_path)
    galaxy.engine.kill_engine()
    work.open("ends")
    # Submitted while no engine is there: Galaxy's runner starts one, or waits for it.
    (late,) = galaxy.run("hb_tiny", n=5)
    galaxy.ok(work.jobs["ends"])
    work.open("runs", "waits")
    work.check()
    galaxy.ok(late)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_both_are_killed(galaxy, tmp_path, round_):
    work = Work(galaxy, tmp_path)
    galaxy.engine.kill_engine()
    galaxy.kill()
    work.open("ends")
    galaxy.start()
    work.open("runs", "waits")
    work.check()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_galaxy_dies_between_the_submit_and_writing_down_its_id(galaxy, tmp_path, round_):
    (galaxy.folder / "die_before_writing_down").touch()
    ledger = tmp_path / "ledger"
    galaxy.send("hb_wait", "two")
    (job,) = galaxy.run("hb_wait", gate=str(tmp_path / "gate"), ledger=str(ledger))
    wait_until(galaxy.has_ended, 60, "Galaxy to die")
    wait_until(ledger.exists, 20, "the task to run all the same")
    galaxy.start()
    wait_until(lambda: galaxy.job(job)["external_id"], 60, "the job to be taken up")
    (tmp_path / "gate").touch()
    galaxy.ok(job)
    assert ledger.read_text() == "run\n"


def test_a_job_that_is_deleted_while_the_engine_is_away_is_cancelled(galaxy, tmp_path):
    (job,) = galaxy.run("hb_wait", gate=str(tmp_path / "never"))
    galaxy.until_running(job)
    task = galaxy.job(job)["external_id"].split("+")[0]
    galaxy.engine.kill_engine()
    galaxy.call("DELETE", f"jobs/{job}")
    wait_until(lambda: galaxy.engine.verb("engine", "status").code == 0, 60, "an engine to be started")
    wait_until(lambda: galaxy.engine.show(task)["state"] == "cancelled", 30, "the task to be cancelled")


def test_a_job_that_was_deleted_before_both_were_killed_is_cancelled(galaxy, tmp_path):
    gate = tmp_path / "gate"
    galaxy.send("hb_wait", "here")
    pair = [galaxy.run("hb_wait", gate=str(gate))[0] for _ in range(2)]
    for job in pair:
        galaxy.until_running(job)
    unwanted, wanted = (galaxy.job(job)["external_id"].split("+")[0] for job in pair)
    galaxy.engine.kill_engine()
    (galaxy.folder / "starts_no_engine").touch()
    galaxy.call("DELETE", f"jobs/{pair[0]}")
    wait_until(lambda: galaxy.job(pair[0])["state"] == "deleted", 60, "Galaxy to make an end of the job")
    galaxy.kill()
    (galaxy.folder / "starts_no_engine").unlink()
    galaxy.start()
    wait_until(lambda: galaxy.engine.verb("engine", "status").code == 0, 60, "an engine to be started")
    wait_until(lambda: galaxy.engine.show(unwanted)["state"] == "cancelled", 30, "the task to be cancelled")
    wait_until(lambda: galaxy.engine.show(wanted)["state"] == "running", 30, "the pilot to tell of the other")
    gate.touch()
    galaxy.ok(pair[1])
