"""Galaxy in front of a real SLURM, driven as its users' scripts do, by bioblend."""

import json
import pathlib
import subprocess
import wave

import pytest
from engine_at_home import ROOT, wait_until
from galaxy_bed import Galaxy
from slurm_site import SlurmSite


@pytest.fixture(scope="module")
def media():
    """The Python that the media tools run with."""
    done = subprocess.run([ROOT / "tests/media/install"], stdout=subprocess.PIPE, text=True, timeout=1200, check=True)
    return pathlib.Path(done.stdout.strip()) / "bin/python"


@pytest.fixture(scope="module")
def galaxy(galaxy_python, slurm, media):
    environments = {
        "cluster": {"runner": "hpcbatch", "cores": 1, "mem": "300M"},
        "media": {
            "runner": "hpcbatch",
            "cores": 1,
            "mem": "2G",
            "env": [{"name": "HPCBATCH_MEDIA_PYTHON", "value": str(media)}],
        },
    }
    with SlurmSite(
        slurm,
        {"name": "wide", "partition": "cpu", "cpus": 2, "memory": "3G", "walltime": "30m"},
        max_queued=2,
        max_running=2,
    ) as engine:
        with Galaxy(
            engine, galaxy_python, environments, tools={"ina_speech_segmenter": "media", "speech_to_text": "media"}
        ) as server:
            yield server


@pytest.fixture(scope="module")
def bioblend(galaxy, galaxy_python):
    """Runs a script with `gi`, bioblend's door to the server, and `history`; what it prints last is given back."""

    def run(script, timeout=600):
        text = (
            f"import json, sys\nfrom bioblend.galaxy import GalaxyInstance\ngi = GalaxyInstance({galaxy.url!r}, {galaxy.key!r})\n"
            f"history = {galaxy.history!r}\n" + script
        )
        done = subprocess.run(
            [str(galaxy_python), "-c", text],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr + galaxy.log()[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    subprocess.run([ROOT / "tests/media/make_clips", folder, "1"], stdout=subprocess.DEVNULL, check=True)
    return folder / "clip-001.wav"


def test_a_recording_is_segmented_and_transcribed(bioblend, clip):
    segments, words = bioblend(
        f"""
clip = gi.tools.upload_file({str(clip)!r}, history, file_type="wav")
clip = clip["outputs"][0]["id"]
gi.datasets.wait_for_dataset(clip, maxwait=120, interval=0.2)
jobs = [gi.tools.run_tool(history, tool, {{"input_audio": {{"src": "hda", "id": clip}}}}) for tool in ("ina_speech_segmenter", "speech_to_text")]
for job in jobs:
    gi.jobs.wait_for_job(job["jobs"][0]["id"], maxwait=300, interval=0.2)
print(json.dumps([gi.datasets.download_dataset(job["outputs"][0]["id"]).decode() for job in jobs]))
"""
    )
    lines = [line.split("\t") for line in segments.splitlines()]
    assert lines[0] == ["label", "start", "stop"]
    with wave.open(str(clip)) as sound:
        seconds = sound.getnframes() / sound.getframerate()
    assert float(lines[1][1]) == 0
    assert abs(float(lines[-1][2]) - seconds) < 0.1 and {line[0] for line in lines[1:]} & {"male", "female"}
    assert len(json.loads(words)["text"].split()) > 2


WORKFLOW = {
    "a_galaxy_workflow": "true",
    "format-version": "0.1",
    "name": "two steps",
    "annotation": "",
    "tags": [],
    "uuid": None,
    "steps": {
        "0": {
            "id": 0,
            "type": "data_collection_input",
            "name": "Input dataset collection",
            "label": "many",
            "annotation": "",
            "inputs": [{"name": "many", "description": ""}],
            "outputs": [],
            "input_connections": {},
            "tool_id": None,
            "tool_state": json.dumps({"optional": False, "collection_type": "list"}),
            "position": {"left": 0, "top": 0},
        },
        "1": {
            "id": 1,
            "type": "tool",
            "tool_id": "hb_map",
            "name": "first",
            "tool_version": "1.0",
            "annotation": "",
            "inputs": [],
            "outputs": [{"name": "out1", "type": "txt"}],
            "input_connections": {"input1": {"id": 0, "output_name": "output"}},
            "tool_state": json.dumps({"input1": {"__class__": "ConnectedValue"}}),
            "position": {"left": 200, "top": 0},
        },
        "2": {
            "id": 2,
            "type": "tool",
            "tool_id": "hb_map",
            "name": "second",
            "tool_version": "1.0",
            "annotation": "",
            "inputs": [],
            "outputs": [{"name": "out1", "type": "txt"}],
            "input_connections": {"input1": {"id": 1, "output_name": "out1"}},
            "tool_state": json.dumps({"input1": {"__class__": "ConnectedValue"}}),
            "position": {"left": 400, "top": 0},
        },
    },
}


def test_a_workflow_over_a_list_takes_few_batch_jobs(galaxy, bioblend):
    many = galaxy.paste_list(50)
    states = bioblend(
        f"""
workflow = gi.workflows.import_workflow_dict(json.loads({json.dumps(json.dumps(WORKFLOW))}))
run = gi.workflows.invoke_workflow(workflow["id"], {{"0": {{"src": "hdca", "id": {many!r}}}}}, history_id=history)
import time
for _ in range(2000):
    jobs = gi.invocations.get_invocation_summary(run["id"])["states"]
    if sum(jobs.values()) == 100 and set(jobs) == {{"ok"}}:
        break
    if set(jobs) & {{"error", "failed"}}:
        break
    time.sleep(0.2)
print(json.dumps(jobs))
"""
    )
    assert states == {"ok": 100}
    assert len(galaxy.engine.json("allocations")) <= 4


def test_a_tool_that_fails_and_one_over_its_memory(galaxy):
    (failed,) = galaxy.run("hb_fail", code=7)
    (greedy,) = galaxy.run("hb_greedy", megabytes=600, seconds=60)
    found = galaxy.ended(failed)
    assert (found["state"], found["exit_code"], found["tool_stderr"]) == ("error", 7, "what went wrong\n")
    assert galaxy.ended(greedy)["state"] == "error"
    assert "needed more memory than its 0.293 GB" in galaxy.outputs(greedy)["out1"]["misc_info"]


def test_a_deleted_job_and_a_deleted_workflow(galaxy, bioblend, tmp_path):
    gate = str(tmp_path / "never")
    (job,) = galaxy.run("hb_wait", gate=gate)
    galaxy.until_running(job)
    task = galaxy.job(job)["external_id"].split("+")[0]
    galaxy.call("DELETE", f"jobs/{job}")
    wait_until(lambda: galaxy.engine.show(task)["state"] == "cancelled", 10, "the task to be cancelled")
    waits = dict(
        WORKFLOW,
        name="waits",
        steps={
            "0": {
                "id": 0,
                "type": "tool",
                "tool_id": "hb_wait",
                "name": "waits",
                "tool_version": "1.0",
                "annotation": "",
                "inputs": [],
                "outputs": [{"name": "out1", "type": "txt"}],
                "input_connections": {},
                "position": {"left": 0, "top": 0},
                "tool_state": json.dumps({"gate": gate, "ledger": "/dev/null"}),
            }
        },
    )
    run = bioblend(
        f"""
workflow = gi.workflows.import_workflow_dict(json.loads({json.dumps(json.dumps(waits))}))
print(json.dumps(gi.workflows.invoke_workflow(workflow["id"], history_id=history)["id"]))
"""
    )
    jobs = wait_until(
        lambda: [step["job_id"] for step in galaxy.get(f"invocations/{run}")["steps"] if step.get("job_id")],
        60,
        "its job",
    )
    galaxy.until_running(jobs[0])
    task = galaxy.job(jobs[0])["external_id"].split("+")[0]
    galaxy.call("DELETE", f"invocations/{run}?cancel_jobs=true")
    galaxy.call("DELETE", f"jobs/{jobs[0]}")
    wait_until(lambda: galaxy.engine.show(task)["state"] == "cancelled", 10, "the workflow's task to be cancelled")
