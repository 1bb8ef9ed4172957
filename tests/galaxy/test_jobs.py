"""What a user of Galaxy sees of jobs that run in pilots."""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import time

import pytest
from engine_at_home import wait_until


def _input(dataset):
    return {"src": "hda", "id": dataset}


def test_a_job_runs_in_a_pilot(galaxy, tmp_path):
    ledger = tmp_path / "ledger"
    (job,) = galaxy.run("hb_probe", input1=_input(galaxy.paste("one\n")), note="two", ledger=str(ledger))
    found = galaxy.ok(job)
    script, metadata = found["external_id"].split("+")
    task = galaxy.engine.show(script)
    assert task["state"] == "done" and task["needs"]["cpus"] == 2 and task["needs"]["memory"] == 1 << 30
    step = galaxy.engine.show(metadata)
    assert step["state"] == "done" and step["service"] == "galaxy-metadata" and "message" not in step
    outputs = galaxy.outputs(job)
    # The slots are the task's own, not the pilot's.
    assert galaxy.text(outputs["out1"]["id"]) == "one\ntwo\nslots=2 mem=1024\n"
    assert outputs["out1"]["metadata_data_lines"] == 3 and outputs["out1"]["misc_blurb"] == "3 lines"
    environment = dict(line.partition("=")[::2] for line in galaxy.text(outputs["envfile"]["id"]).splitlines())
    assert environment["HPCBATCH_TASK_ID"] == script and "PYTHONPATH" not in environment
    # What the server alone is to know stays there.
    assert not [name for name in environment if name.startswith("GALAXY_CONFIG")] and "hb-secret" not in str(
        environment
    )
    assert not [path for path in galaxy.engine.home.glob("store.db*") if b"hb-secret" in path.read_bytes()]
    assert "jobs do not get GALAXY_CONFIG_BRAND, GALAXY_CONFIG_FILE, HB_API_TOKEN, HB_DATABASE;" in galaxy.log()
    # What the tool alone is to know stays out of the step that sets metadata.
    assert environment["HB_CREDENTIAL"] == "known-to-the-tool"
    assert not [path for path in galaxy.engine.home.glob("store.db*") if b"known-to-the-tool" in path.read_bytes()]
    assert found["exit_code"] == 0 and found["tool_stdout"] == "on stdout\n" and found["tool_stderr"] == "on stderr\n"
    assert found["job_stdout"] == found["job_stderr"] == ""
    assert ledger.read_text() == "run\n"
    metrics = galaxy.metrics(job)
    assert metrics["galaxy_slots"].startswith("2") and float(metrics["cpu_s"]) > 0 and metrics["pilot"] == task["pilot"]
    assert float(metrics["peak_memory"]) > 0 and float(metrics["waited_s"]) >= 0 and metrics["task"].startswith(script)
    kinds = [row["key"] for row in json.loads(galaxy.engine.ok("report", "--json"))["rows"]]
    assert [kind for kind in kinds if kind.startswith("hb_probe ")], f"a tool and its version: {kinds}"


def test_what_the_tool_asks_for_counts_where_the_destination_says_nothing(galaxy):
    galaxy.send("hb_probe", "asked_by_tool")
    (job,) = galaxy.run("hb_probe", input1=_input(galaxy.paste()))
    task = galaxy.engine.show(galaxy.ok(job)["external_id"].split("+")[0])
    assert task["needs"]["cpus"] == 2 and "slots=2" in galaxy.text(galaxy.outputs(job)["out1"]["id"])
    galaxy.send("hb_probe", "two")


@pytest.mark.parametrize("environment", ["in_script", "by_server", "in_server", "here"])
def test_metadata_is_the_same_wherever_it_is_set(galaxy, environment):
    galaxy.send("hb_map", environment)
    (job,) = galaxy.run("hb_map", input1=_input(galaxy.paste("a\nb\nc\nd\n")))
    found = galaxy.ok(job)
    assert len(found["external_id"].split("+")) == (2 if environment == "here" else 1)
    out = galaxy.outputs(job)["out1"]
    assert out["metadata_data_lines"] == 4 and out["misc_blurb"] == "4 lines" and out["peek"].count("<tr>") == 4
    assert out["file_ext"] == "txt" and out["file_size"] == 8


def test_a_tool_that_fails_says_how(galaxy):
    (job,) = galaxy.run("hb_fail", code=3)
    found = galaxy.ended(job)
    assert found["state"] == "error" and found["exit_code"] == 3
    assert found["tool_stdout"] == "before\n" and found["tool_stderr"] == "what went wrong\n"
    assert [message["desc"] for message in found["job_messages"]] == ["Fatal error: Exit code 3 ()"]
    (job,) = galaxy.run("hb_fail", code=42)
    assert "Out of memory" in galaxy.ended(job)["job_messages"][0]["desc"]


def test_a_job_over_its_memory_is_told_so(galaxy):
    galaxy.send("hb_greedy", "no_more")
    (job,) = galaxy.run("hb_greedy", megabytes=400, seconds=20)
    assert galaxy.ended(job)["state"] == "error"
    said = galaxy.outputs(job)["out1"]["misc_info"]
    assert said.startswith("The job needed more memory than its 0.195 GB") and "hpcbatch explain" in said


@contextlib.contextmanager
def _stopped_service(galaxy):
    """A step that looks at outputs waits there."""
    galaxy.ok(galaxy.run("hb_tiny", n=1)[0])
    pids = galaxy.engine.service_pids("galaxy-metadata")
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_a_job_whose_outputs_are_still_looked_at_is_shown_running(galaxy):
    galaxy.send("hb_tiny", "here")
    with _stopped_service(galaxy):
        (job,) = galaxy.run("hb_tiny", n=1)
        galaxy.until_running(job)
        script, step = galaxy.job(job)["external_id"].split("+")
        assert galaxy.engine.show(script)["state"] == "done" and galaxy.engine.show(step)["state"] == "waiting"
    galaxy.ok(job)
    assert not galaxy.outputs(job)["out1"]["misc_info"]


def test_metadata_set_beside_the_server_keeps_no_job_from_being_submitted(galaxy):
    held = galaxy.folder / "hold_metadata"
    held.touch()
    try:
        galaxy.send("hb_tiny", "by_server")
        slow = [galaxy.run("hb_tiny", n=number)[0] for number in range(3)]  # more than there are workers
        for job in slow:
            task = wait_until(lambda job=job: galaxy.job(job)["external_id"], 60, "its task")
            wait_until(lambda task=task: galaxy.engine.show(task)["state"] == "done", 60, "its end")
        wait_until(lambda: len(list(galaxy.folder.glob("held_metadata.*"))) == 2, 60, "two to be looked at")
        galaxy.send("hb_tiny", "here")
        galaxy.ok(galaxy.run("hb_tiny", n=9)[0])
    finally:
        held.unlink()
    for job in slow:
        galaxy.ok(job)
        assert galaxy.outputs(job)["out1"]["metadata_data_lines"] == 1


def test_what_a_job_over_its_memory_has_left_is_not_looked_at(galaxy):
    galaxy.send("hb_greedy", "no_more")
    galaxy.send("hb_tiny", "here")
    with _stopped_service(galaxy):
        (job,) = galaxy.run("hb_greedy", megabytes=400, seconds=20)
        script, step = wait_until(lambda: galaxy.job(job)["external_id"], 60, "its tasks").split("+")
        wait_until(lambda: galaxy.engine.show(step)["state"] == "cancelled", 60, "the step to be cancelled")
        assert galaxy.engine.show(script)["failure"] == "oom_task"
    assert galaxy.ended(job)["state"] == "error"
    assert galaxy.outputs(job)["out1"]["misc_info"].startswith("The job needed more memory")
    galaxy.send("hb_greedy", "small")


def test_variables_that_a_shell_makes_reach_the_tool_and_leave_the_step_apart(galaxy):
    galaxy.send("hb_probe", "with_shell")
    for _ in range(2):
        (job,) = galaxy.run("hb_probe", input1=_input(galaxy.paste()))
        script, step = galaxy.ok(job)["external_id"].split("+")
        assert (
            galaxy.engine.show(step)["service"] == "galaxy-metadata"
            and "memory" not in galaxy.engine.show(step)["needs"]
        )
    found = galaxy.text(galaxy.outputs(job)["envfile"]["id"])
    assert "HB_EXECUTED=yes" in found and "HB_OF_HOME=/" in found
    assert (
        galaxy.log().count(
            "environment 'with_shell': env: HB_OF_HOME, export HB_EXECUTED=yes: made by a shell for tools alone"
        )
        == 1
    )
    galaxy.send("hb_probe", "two")


@pytest.mark.parametrize(
    "tool, inputs, state, exit_code", [("hb_tiny", {"n": 1}, "ok", 0), ("hb_fail", {"code": 3}, "error", 3)]
)
def test_a_job_is_finished_again_where_the_database_was_busy(galaxy, tool, inputs, state, exit_code):
    galaxy.send("hb_tiny", "here")
    (galaxy.folder / "busy_database").write_text("2")
    (job,) = galaxy.run(tool, **inputs)
    found = galaxy.ended(job)
    assert (galaxy.folder / "busy_database").read_text() == "0"
    assert found["state"] == state and found["exit_code"] == exit_code
    if state == "error":
        assert [message["desc"] for message in found["job_messages"]] == ["Fatal error: Exit code 3 ()"]
    else:
        assert galaxy.outputs(job)["out1"]["metadata_data_lines"] == 1


def test_a_database_that_somebody_locks_for_a_while_is_waited_for(galaxy, tmp_path):
    gate = tmp_path / "gate"
    (job,) = galaxy.run("hb_wait", gate=str(gate))
    galaxy.until_running(job)
    step = galaxy.job(job)["external_id"].split("+")[1]
    other = sqlite3.connect(galaxy.folder / "data/universe.sqlite", isolation_level=None, timeout=60)
    with contextlib.closing(other):
        other.execute("BEGIN IMMEDIATE")
        gate.touch()
        wait_until(lambda: galaxy.engine.show(step)["state"] == "done", 60, "the job's end")
        time.sleep(8)  # longer than SQLite waits where nothing is said
        other.execute("ROLLBACK")
    galaxy.ok(job)


def test_a_job_over_its_memory_goes_where_there_is_more(galaxy):
    galaxy.send("hb_greedy", "small")
    (job,) = galaxy.run("hb_greedy", megabytes=400, seconds=3)
    found = galaxy.ok(job)
    assert galaxy.engine.show(found["external_id"].split("+")[0])["needs"]["memory"] == 2 << 30
    assert galaxy.text(galaxy.outputs(job)["out1"]["id"]) == "held 400\n"


def test_a_job_over_its_time_is_told_so(galaxy):
    galaxy.send("hb_greedy", "short")
    (job,) = galaxy.run("hb_greedy", megabytes=1, seconds=60)
    assert galaxy.ended(job)["state"] == "error"
    assert "reached its time limit of 0.0333333 minutes" in galaxy.outputs(job)["out1"]["misc_info"]


def test_a_deleted_job_is_cancelled(galaxy, tmp_path):
    (job,) = galaxy.run("hb_wait", gate=str(tmp_path / "never"))
    galaxy.until_running(job)
    task = galaxy.job(job)["external_id"].split("+")[0]
    galaxy.call("DELETE", f"jobs/{job}")
    wait_until(lambda: galaxy.engine.show(task)["state"] == "cancelled", 10, "the task to be cancelled")
    assert galaxy.job(job)["state"] in ("deleted", "deleting")


def test_the_directory_of_a_deleted_job_is_removed(galaxy, tmp_path):
    (job,) = galaxy.run("hb_wait", gate=str(tmp_path / "never"))
    galaxy.until_running(job)
    directory = pathlib.Path(galaxy.engine.show(galaxy.job(job)["external_id"].split("+")[0])["directory"])
    assert directory.is_relative_to(galaxy.folder) and directory.exists()
    galaxy.call("DELETE", f"jobs/{job}")
    wait_until(lambda: not directory.exists(), 60, "the removal")


def test_why_a_job_waits_is_said_at_its_dataset_until_it_runs(galaxy, tmp_path):
    gate = tmp_path / "gate"
    jobs = [galaxy.run("hb_wait", gate=str(gate))[0] for _ in range(3)]
    for job in jobs[:2]:
        galaxy.until_running(job)
    said = wait_until(lambda: galaxy.outputs(jobs[2])["out1"]["misc_info"], 120, "a reason")
    gate.touch()
    assert "room" in said, said
    for job in jobs:
        galaxy.ok(job)
        assert not galaxy.outputs(job)["out1"]["misc_info"]


def test_a_misspelt_parameter_is_named_and_the_others_work(galaxy):
    assert (
        "environment 'misspelt' cannot be used, its jobs will fail: 'coers' is no parameter of a destination of hpcbatch: "
        "did you mean 'cores'?" in galaxy.log()
    )
    galaxy.send("hb_tiny", "misspelt")
    (job,) = galaxy.run("hb_tiny", n=1)
    assert galaxy.ended(job)["state"] == "error"
    assert "did you mean 'cores'?" in galaxy.outputs(job)["out1"]["misc_info"]
    galaxy.send("hb_tiny", "here")
    galaxy.ok(galaxy.run("hb_tiny", n=1)[0])


def test_a_mapped_tool_runs_for_each_element(galaxy):
    many = galaxy.paste_list(12)
    ids = galaxy.run("hb_map", input1={"batch": True, "values": [{"src": "hdca", "id": many}]})
    assert len(ids) == 12
    texts = sorted(galaxy.text(galaxy.ok(job) and galaxy.outputs(job)["out1"]["id"]) for job in ids)
    assert texts == sorted(f"element {i}\n" for i in range(12))
