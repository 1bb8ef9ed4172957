"""Galaxy's own runner `cli`, which calls sbatch or qsub, with nothing changed but PATH."""

import pytest
from engine_at_home import EngineAtHome, wait_until
from galaxy_bed import ADMIN, TWO_CPUS, Galaxy
from slurm_commands import Commands, PbsCommands

CLI = {"runner": "cli", "shell_plugin": "LocalShell", "embed_metadata_in_job": False}
SLURM = CLI | {"job_plugin": "Slurm", "job_ncpus": 1, "job_--mem": 500, "job_time": "00:10:00"}
PBS = {"job_-l": "select=1:ncpus=1:mem=500mb"}
ENVIRONMENTS = {
    "slurm": SLURM,
    "little_memory": SLURM | {"job_--mem": 100},
    "pbs": CLI | {"job_plugin": "OpenPBS"} | PBS,
    "torque": CLI | {"job_plugin": "Torque"} | PBS,
}


@pytest.fixture(scope="module")
def server(galaxy_python):
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        Commands(engine)
        PbsCommands(engine)
        # One worker: of two one may end a job, and remove its folder, while the other one still sets metadata there.
        runners = {"cli": {"load": "galaxy.jobs.runners.cli:ShellJobRunner", "workers": 1}}
        with Galaxy(engine, galaxy_python, ENVIRONMENTS, runners=runners) as galaxy:
            yield galaxy


def run(server, environment, tool, **inputs):
    server.send(tool, environment)
    (job,) = server.run(tool, **inputs)
    # The next one's choice of an environment must not be this one's.
    wait_until(lambda: server.job(job)["external_id"], 120, f"{job} to be submitted")
    return job


def test_what_ends_well_and_what_fails(server):
    good = {name: run(server, name, "hb_tiny", n=5) for name in ("slurm", "pbs", "torque")}
    bad = {name: run(server, name, "hb_fail", code=3) for name in ("slurm", "pbs")}
    for name, job in good.items():
        number = server.ok(job, 240)["external_id"]
        assert int(number.removesuffix(".hpcbatch")) > 2_000_000_000 and number.endswith(".hpcbatch") == (
            name != "slurm"
        )
        assert server.text(server.outputs(job)["out1"]["id"]) == 5
    for job in bad.values():
        failed = server.ended(job, 240)
        found = failed["state"], failed["exit_code"], failed["tool_stderr"]
        assert found == ("error", 3, "what went wrong\n"), failed


def test_a_job_that_ran_out_of_memory_fails(server):
    greedy = run(server, "little_memory", "hb_greedy", megabytes=400, seconds=60)
    assert server.ended(greedy, 240)["state"] == "error"


@pytest.mark.parametrize("environment", ["slurm", "pbs"])
def test_a_deleted_job_ends(server, environment, tmp_path):
    job = run(server, environment, "hb_wait", gate=str(tmp_path / "never"))
    server.until_running(job, 240)
    number = server.job(job)["external_id"].removesuffix(".hpcbatch")
    server.call("DELETE", f"jobs/{job}", key=ADMIN)
    task = str(int(number) - 2_000_000_000)
    wait_until(lambda: server.engine.show(task)["state"] == "cancelled", 60, "its task's end")


def test_it_goes_on_when_the_engine_is_killed(server, tmp_path):
    jobs = [run(server, environment, "hb_wait", gate=str(tmp_path / "gate")) for environment in ("slurm", "pbs")]
    for job in jobs:
        server.until_running(job, 240)
    server.engine.kill_engine()
    (tmp_path / "gate").touch()
    for job in jobs:
        server.ok(job, 240)
