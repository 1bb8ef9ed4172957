"""Galaxy in front of a cluster that sees none of its directories: jobs go there with their files and come back with their outputs."""

import shutil
import subprocess

import pytest
from engine_at_home import ROOT, wait_until
from far_cluster import FarCluster, FarSite
from galaxy_bed import HERE, Galaxy
from test_restart import Work

FOUR = {"name": "four", "partition": "cpu", "cpus": 4, "memory": "2G", "walltime": "30m"}
FAR = {"runner": "hpcbatch", "stage": "copy", "cores": 2, "mem": "400M"}
ENVIRONMENTS = {
    "far": {**FAR, "metadata": "server"},
    "far_external": FAR,
    "far_warm": {**FAR, "metadata": "warm"},
    # Of uploads.
    "local": {"runner": "local", "embed_metadata_in_job": False},
}


class BlindCluster(FarCluster):
    """Folders can be taken out of its sight."""

    def __enter__(self):
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout.readline() == "ready\n"
        try:
            return super().__enter__()
        except BaseException:
            self._let_go()
            raise

    def __exit__(self, *_):
        super().__exit__()
        self._let_go()

    def _let_go(self):
        self._holder.stdin.close()
        self._holder.stdout.close()
        self._holder.wait(20)

    def _enter(self):
        # By itself a namespace of mounts has the whole machine's root, not that of whoever lives in one of his own.
        there = f"/proc/{self._holder.pid}"
        return [*super()._enter(), f"--mount={there}/ns/mnt", f"--root={there}/root", f"--wd={there}/root"]

    def hide(self, folder):
        self.within("mount", "-t", "tmpfs", "none", folder)


@pytest.fixture(scope="module")
def galaxy(galaxy_python):
    with BlindCluster("--fast") as far, FarSite(far, FOUR, link="relay", idle_after="5m") as engine:
        shutil.copy(HERE / "singularity", engine.directory)
        contained = {
            **FAR,
            "metadata": "server",
            "singularity_enabled": True,
            "singularity_cmd": str(engine.directory / "singularity"),
            "singularity_container_id_override": str(engine.directory / "tool.sif"),
        }
        server = Galaxy(
            engine, galaxy_python, {**ENVIRONMENTS, "far_contained": contained}, tools={"hb_map": "far_external"}
        )
        galaxys = server.folder, HERE, ROOT / "galaxy", ROOT / "build/galaxy"
        for folder in galaxys:
            far.hide(folder)
        assert far.within("find", *galaxys, "-mindepth", "1") == ""
        with server:
            yield server


MAKE_BAM = """
import base64, pysam, sys
header = {"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": "one", "LN": 1000}]}
with pysam.AlignmentFile(sys.argv[1], "wb", header=header) as bam:
    read = pysam.AlignedSegment(bam.header)
    read.query_name, read.query_sequence, read.reference_id, read.reference_start, read.cigarstring = "read", "ACGT", 0, 10, "4M"
    bam.write(read)
print(base64.b64encode(open(sys.argv[1], "rb").read()).decode())
"""


@pytest.fixture(scope="module")
def uploaded(galaxy, galaxy_python, tmp_path_factory):
    """Two texts and an alignment, of one upload."""
    bam = subprocess.run(
        [galaxy_python, "-c", MAKE_BAM, tmp_path_factory.mktemp("bam") / "reads.bam"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    items = [
        {"src": "pasted", "paste_content": "a one\nb two\n", "ext": "txt", "name": "first"},
        {"src": "pasted", "paste_content": "c three\n", "ext": "txt", "name": "second"},
        {"src": "url", "url": f"base64://{bam}", "ext": "bam", "name": "reads"},
    ]
    done = galaxy.post(
        "tools/fetch", {"history_id": galaxy.history, "targets": [{"destination": {"type": "hdas"}, "items": items}]}
    )
    galaxy.ok(done["jobs"][0]["id"], 240)
    return [{"src": "hda", "id": one["id"]} for one in done["outputs"]]


def test_inputs_settings_and_the_tools_script_go_there(galaxy, uploaded):
    (job,) = galaxy.run("hb_two", input1=uploaded[0], input2=uploaded[1])
    found = galaxy.ok(job)
    outputs = galaxy.outputs(job)
    assert (
        galaxy.text(outputs["out1"]["id"]) == "a one\nb two\nc three\n" and outputs["out1"]["metadata_data_lines"] == 3
    )
    assert (
        found["tool_stdout"] == "on stdout\n"
        and found["tool_stderr"] == found["job_stdout"] == found["job_stderr"] == ""
    )
    assert found["exit_code"] == 0
    where = galaxy.text(outputs["where"]["id"])
    assert str(galaxy.engine.directory / "w") in where and str(galaxy.folder) not in where and str(HERE) not in where
    assert "GALAXY_SLOTS=2\n" in where and "GALAXY_MEMORY_MB=400\n" in where
    assert galaxy.metrics(job)["galaxy_slots"].startswith("2")
    # Of a second job the inputs and the tool's files are there already.
    sent = galaxy.engine.json("sites")[0]["files"]["files_sent"]
    galaxy.ok(galaxy.run("hb_two", input1=uploaded[0], input2=uploaded[1])[0])
    assert galaxy.engine.json("sites")[0]["files"]["files_sent"] == sent + 1


def test_metadata_is_set_by_galaxy(galaxy, uploaded):
    (job,) = galaxy.run("hb_map", input1=uploaded[0])
    galaxy.ok(job)
    out = galaxy.outputs(job)["out1"]
    assert (
        galaxy.text(out["id"]) == "a one\nb two\n"
        and out["metadata_data_lines"] == 2
        and out["misc_blurb"] == "2 lines"
    )


def test_a_collection_is_discovered(galaxy, uploaded):
    (job,) = galaxy.run("hb_parts", input1=uploaded[0])
    galaxy.ok(job)
    ids = [one["id"] for one in galaxy.job(job)["output_collections"].values()]
    elements = galaxy.get(f"dataset_collections/{ids[0]}?instance_type=history")["elements"]
    assert {one["element_identifier"]: galaxy.text(one["object"]["id"]) for one in elements} == {
        "a": "one\n",
        "b": "two\n",
    }


def test_extra_files_go_there_and_come_back_as_do_files_of_the_working_directory(galaxy):
    (job,) = galaxy.run("hb_page")
    galaxy.ok(job)
    outputs = galaxy.outputs(job)
    assert galaxy.text(outputs["out1"]["id"]) == "in a directory\n"
    (reads,) = galaxy.run("hb_read_page", page={"src": "hda", "id": outputs["page"]["id"]})
    galaxy.ok(reads)
    assert galaxy.text(galaxy.outputs(reads)["out1"]["id"]) == "a page\nwithin\n"


def test_an_index_goes_along(galaxy, uploaded):
    (job,) = galaxy.run("hb_index", reads=uploaded[2])
    galaxy.ok(job)
    assert galaxy.text(galaxy.outputs(job)["out1"]["id"]) == "BAI"


def test_a_container_sees_the_job_and_its_inputs_alone(galaxy, uploaded):
    galaxy.send("hb_two", "far_contained")
    (job,) = galaxy.run("hb_two", input1=uploaded[0], input2=uploaded[1])
    galaxy.ok(job)
    galaxy.send("hb_two", "far")
    outputs = galaxy.outputs(job)
    assert galaxy.text(outputs["out1"]["id"]) == "a one\nb two\nc three\n"
    (call,) = (galaxy.engine.directory / "tool.calls").read_text().splitlines()
    words = call.split()
    workspace = galaxy.engine.directory / "w"
    shown = [words[at + 1].split(":")[0] for at, word in enumerate(words) if word == "-B"]
    task = galaxy.text(outputs["where"]["id"]).splitlines()[0].removesuffix("/working")
    assert shown == [task] and task.startswith(str(workspace))
    bound = (galaxy.engine.directory / "tool.binds").read_text().strip().split(",")
    assert all(folder.startswith(str(workspace)) for folder in bound)


def test_a_tool_that_fails_says_how(galaxy):
    (job,) = galaxy.run("hb_fail", code=3)
    found = galaxy.ended(job)
    assert (found["state"], found["exit_code"], found["tool_stdout"], found["tool_stderr"]) == (
        "error",
        3,
        "before\n",
        "what went wrong\n",
    )
    assert galaxy.engine.show(found["external_id"])["state"] == "done"
    assert galaxy.text(galaxy.outputs(job)["out1"]["id"]) == "partly\n"


def test_a_job_whose_script_dies_says_so(galaxy):
    (job,) = galaxy.run("hb_gone")
    assert galaxy.ended(job)["state"] == "error"
    assert (
        "The job did not run to its end: the job's script did not come to its end."
        in galaxy.outputs(job)["out1"]["misc_info"]
    )


def test_a_job_over_its_memory_is_told_so(galaxy):
    (job,) = galaxy.run("hb_greedy", megabytes=700, seconds=60)
    assert galaxy.ended(job)["state"] == "error"
    assert "needed more memory than its 0.391 GB" in galaxy.outputs(job)["out1"]["misc_info"]


def test_a_deleted_job_is_cancelled(galaxy, tmp_path):
    (job,) = galaxy.run("hb_wait", gate=str(tmp_path / "never"))
    galaxy.until_running(job)
    task = galaxy.job(job)["external_id"]
    galaxy.call("DELETE", f"jobs/{job}")
    wait_until(lambda: galaxy.engine.show(task)["state"] == "cancelled", 20, "the task to be cancelled")


def test_what_cannot_work_is_refused(galaxy):
    assert (
        "environment 'far_warm' cannot be used, its jobs will fail: metadata: 'warm' needs Galaxy at the site"
        in galaxy.log()
    )
    (job,) = galaxy.run("maf_stats1")
    assert galaxy.ended(job)["state"] == "error" and not galaxy.job(job)["external_id"]
    assert "this tool needs Galaxy's own Python" in galaxy.outputs(job)["out1"]["misc_info"]


def test_the_engine_is_killed(galaxy, tmp_path):
    work = Work(galaxy, tmp_path)
    galaxy.engine.kill_engine()
    work.open("ends", "runs", "waits")
    work.check()


def test_both_are_killed_and_galaxy_before_it_has_written_down_a_jobs_id(galaxy, tmp_path):
    work = Work(galaxy, tmp_path)
    has_ended = work.script_has_ended("ends")
    (galaxy.folder / "die_before_writing_down").touch()
    (work.jobs["late"],) = galaxy.run("hb_wait", gate=str(tmp_path / "gate.late"), ledger=str(tmp_path / "ledger.late"))
    wait_until(galaxy.has_ended, 60, "Galaxy to die")
    work.open("ends")
    wait_until(has_ended, 30, "a script to end while Galaxy is down")
    galaxy.engine.kill_engine()
    galaxy.start()
    work.open("runs", "waits", "late")
    work.check()
