"""Snakemake's cache between workflows: what one workflow made another takes, as with the local executor."""

import pytest

WORKFLOW = """
rule all:
    input: "kept.txt", "other.txt"
rule kept:
    output: "kept.txt"
    cache: True
    shell: "echo >> %s; echo kept > {output}"
rule other:
    input: "kept.txt"
    output: "other.txt"
    shell: "cat {input} > {output}"
"""


@pytest.mark.parametrize("executor", ["local", "hpcbatch"])
def test_what_one_workflow_made_another_takes(bed, executor):
    cache, runs = bed.folder / "cache", bed.folder / "runs"
    cache.mkdir()
    for name in ("one", "two"):
        bed.write(WORKFLOW % runs, f"{name}/Snakefile")
        bed.ok("--cache", folder=bed.folder / name, env={"SNAKEMAKE_OUTPUT_CACHE": str(cache)}, executor=executor)
        assert (bed.folder / name / "other.txt").read_text() == "kept\n"
    assert runs.read_text() == "\n"
    if executor == "hpcbatch":
        assert bed.modes() == {"kept": "warm", "other": "direct"}
