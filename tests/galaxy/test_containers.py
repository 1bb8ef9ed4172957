"""Jobs in containers, as Galaxy's own job script starts them; and a job_conf in the older form, XML."""

import pathlib

import pytest
from engine_at_home import EngineAtHome
from galaxy_bed import Galaxy

SINGULARITY = pathlib.Path(__file__).with_name("singularity")
# A pilot that takes itself to have two GPUs, the node's fourth and seventh.
TWO_GPUS = """
sites:
  - name: here
    scheduler: local
    transport: shared_fs
    workspace: %s
    setup: ["export CUDA_VISIBLE_DEVICES=4,7"]
    shapes: [{name: two, cpus: 2, memory: 4G, gpus: {a100: 2}}]
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    found = tmp_path_factory.mktemp("images") / "tool.sif"
    found.touch()
    return found


@pytest.fixture(scope="module")
def galaxy(galaxy_python, image):
    contained = {
        "runner": "hpcbatch",
        "cores": 2,
        "mem": "512M",
        "gpus": 1,
        "singularity_enabled": True,
        "singularity_cmd": str(SINGULARITY),
        "singularity_container_id_override": str(image),
        "singularity_run_extra_arguments": "--nv",
    }
    with EngineAtHome() as engine:
        engine.configure(TWO_GPUS % (engine.directory / "space"))
        environments = {
            "contained": contained,
            "one_cpu": {**contained, "cores": 1},
            "plain": {"runner": "hpcbatch", "cores": 1},
            "misspelt": {"runner": "hpcbatch", "coers": 2},
            "unfound": {"runner": "hpcbatch", "cores": 1, "singularity_enabled": "true"},
        }
        with Galaxy(engine, galaxy_python, environments, tools={"hb_text": "plain"}, form="xml") as server:
            yield server


def test_a_container_is_told_of_the_tasks_slots_memory_and_gpu(galaxy, image):
    (job,) = galaxy.run("hb_probe", input1={"src": "hda", "id": galaxy.paste("one\n")})
    found = galaxy.ok(job)
    outputs = galaxy.outputs(job)
    assert galaxy.text(outputs["out1"]["id"]) == "one\nhello\nslots=2 mem=512\n"
    environment = dict(line.partition("=")[::2] for line in galaxy.text(outputs["envfile"]["id"]).splitlines())
    assert environment["CUDA_VISIBLE_DEVICES"] in ("4", "7")
    assert "HPCBATCH_TASK_ID" not in environment, "it is apart from the node's environment"
    # The step that looks at the outputs is no part of the container.
    assert outputs["out1"]["metadata_data_lines"] == 3 and len(found["external_id"].split("+")) == 2
    (call,) = image.with_suffix(".calls").read_text().splitlines()
    assert " --nv" in call


def test_two_jobs_beside_each_other_have_a_gpu_each(galaxy, tmp_path):
    galaxy.send("hb_gpu", "one_cpu")
    gate = tmp_path / "gate"
    pair = [galaxy.run("hb_gpu", gate=str(gate))[0] for _ in range(2)]
    for job in pair:
        galaxy.until_running(job)
    gate.touch()
    for job in pair:
        galaxy.ok(job)
    assert sorted(galaxy.text(galaxy.outputs(job)["out1"]["id"]) for job in pair) == ["gpu 4\n", "gpu 7\n"]


def test_a_job_without_the_container_that_is_switched_on_is_named(galaxy):
    galaxy.send("hb_tiny", "unfound")
    for _ in range(2):
        galaxy.ok(galaxy.run("hb_tiny", n=1)[0])
    words = "environment 'unfound' has singularity_enabled, and no container was found for the tool hb_tiny"
    assert galaxy.log().count(words) == 1


def test_a_misspelt_parameter_of_an_xml_destination_is_named(galaxy):
    assert (
        "environment 'misspelt' cannot be used" in galaxy.log()
        and "'coers'" in galaxy.log()
        and "'cores'" in galaxy.log()
    )
