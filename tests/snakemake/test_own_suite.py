"""The workflows of Snakemake's own tests, with its local executor and with ours: the same ones pass, and what direct jobs run is
byte for byte what Snakemake runs.  Its source distribution is fetched for that; it takes half an hour."""

import json
import os
import re
import subprocess
import tarfile
import xml.etree.ElementTree

import pytest
from engine_at_home import EngineAtHome
from snakemake_bed import HERE, TWO_CPUS, Bed, requirements

pytestmark = pytest.mark.skipif(not os.environ.get("HPCBATCH_LONG"), reason="half an hour: ./dev test --long")
LARGE = TWO_CPUS.replace("cpus: 2, memory: 4G", "cpus: 32, memory: 64G")
# What passes with the local executor and is not to pass with ours.
DIFFER = {
    "test05": "its jobs ask for a GPU, which is none for the local executor",
    "test_groupid_expand_local": "a group has an id of its own where groups are run as such",
    "test_output_file_cache": "names in the cache come from the whole chain of jobs, of which a job's own Snakemake sees one",
    "test_default_resources_mebibytes": "Snakemake hands mebibytes on to a group's own Snakemake as megabytes",
}

# Its Snakefile makes outputs of its jobs each time that it is read; jobs' own Snakemakes read it beside them, and it is a matter of luck.
BY_LUCK = {"test_delete_output"}


class Suite:
    def __init__(self, python, folder):
        [wanted] = re.findall(r"^snakemake==\S+", requirements().read_text(), re.M)
        subprocess.run(
            [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "snakemake", "-d", folder, wanted],
            check=True,
            timeout=600,
        )
        [archive] = folder.glob("snakemake-*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder)  # the older ones of Python 3.11 know no filter
        self.python = python
        self.folder = archive.with_name(archive.name.removesuffix(".tar.gz"))

    def run(self, env, executor, **more):
        """{test: "passed", "failed" or "skipped"}"""
        found = self.folder.parent / f"{executor}.xml"
        with open(found.with_suffix(".log"), "w") as log:
            subprocess.run(
                [
                    self.python,
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "own_suite",
                    "tests/tests.py",
                    f"--junitxml={found}",
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env | {"PYTHONPATH": str(HERE), "OWN_SUITE_EXECUTOR": executor} | more,
                timeout=7200,
                check=False,
            )
        outcomes = {}
        for case in xml.etree.ElementTree.parse(found).iter("testcase"):
            kinds = {child.tag for child in case}
            outcomes[case.get("name")] = (
                "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            )
        return outcomes


@pytest.fixture(scope="module")
def runs(python, tmp_path_factory):
    """What became of each test by executor, and what was seen of each shell: job."""
    suite = Suite(python, tmp_path_factory.mktemp("suite"))
    commands = suite.folder.parent / "commands.jsonl"
    with EngineAtHome() as engine:
        engine.configure(LARGE % (engine.directory / "space"))
        env = Bed(engine, python).env
        # Snakemake's own executor leaves readers of pipes behind: they are not to look like this engine's.
        without = {name: value for name, value in env.items() if str(engine.directory) not in value}
        local = suite.run(without, "local", OWN_SUITE_COMMANDS=str(commands))
        ours = suite.run(env, "hpcbatch")
    yield local, ours, [json.loads(line) for line in commands.read_text().splitlines()]


def test_what_passes_with_the_local_executor_passes_with_ours(runs):
    local, ours, _ = runs
    compared = [name for name in ours if local[name] == "passed" and ours[name] != "skipped"]
    assert len(compared) > 200
    assert {name for name in compared if ours[name] != "passed"} - BY_LUCK == set(DIFFER)


def test_what_direct_jobs_run_is_what_snakemake_runs(runs):
    jobs = [job for job in runs[2] if job["theirs"]]
    direct = [job for job in jobs if job["direct"]]
    assert [job for job in direct if job["theirs"] != [job["ours"]]] == []
    assert len(direct) > 600
    assert all(job["why"] for job in jobs if not job["direct"])
