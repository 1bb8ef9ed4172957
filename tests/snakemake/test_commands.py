"""What a direct task runs is byte for byte what Snakemake's own executor runs, whatever a workflow calls its variables."""

import pytest
from engine_at_home import EngineAtHome
from snakemake_bed import TWO_CPUS, Bed, compared

WORKFLOWS = {
    "variables_named_as_the_jobs_are": (
        """
name, rulename, job, bench, config_name = "X", "Y", "Z", "B", "C"
rule all:
    input: "a.txt", "b.txt"
rule a:
    output: "a.txt"
    shell: "echo {name} {rulename} {job} {rule} {bench} {jobid} > {output}"
use rule a as b with:
    output: "b.txt"
""",
        2,
    ),
    "a_name_that_only_messages_know": (
        """
rule a:
    output: "a.txt"
    shell: "echo {rulename} > {output}"
""",
        0,
    ),
    "variables_named_as_what_rules_have": (
        """
threads, log, wildcards, conda_env, shadow_dir, edit_notebook = "t", "l", "w", "c", "s", "e"
rule a:
    output: "{x}.txt"
    threads: 2
    shell: "echo {threads} {log} {wildcards.x} {conda_env} {shadow_dir} {bench_iteration} {edit_notebook} > {output}"
rule all:
    default_target: True
    input: "a.txt"
""",
        1,
    ),
    "made_up_in_a_loop": (
        """
rule all:
    input: "0.txt", "1.txt"
for i in range(2):
    rule:
        name: f"r{i}"
        output: f"{i}.txt"
        shell: f"echo {i} > {{output}}"
""",
        2,
    ),
    "quotes_braces_and_formats": (
        """
files = ["a b", "c'd"]
class Thing:
    def __str__(self): return "a thing"
thing = Thing()
rule a:
    output: "a b.txt"
    params: list=["x y", 3], none=None, text="$HOME 'q'"
    shell: r'''printf '%s\\n' {files:q} {files} {params.list:q} {params.none} {params.text:q} {thing} {{x,y}} {output:q} > {output:q}'''
rule all:
    default_target: True
    input: "a b.txt"
""",
        1,
    ),
    "prefix_and_suffix": (
        """
shell.prefix("set -u; ")
shell.suffix("; true")
rule a:
    output: "a.txt"
    benchmark: "a.tsv"
    shell: "echo {bench_iteration} > {output}"
""",
        1,
    ),
    "a_shell_of_its_own": (
        """
from snakemake.shell import shell as real
def shell(command, **names):
    real("echo mine > a.txt")
rule a:
    output: "a.txt"
    shell: "echo theirs > {output}"
""",
        0,
    ),
    "in_the_shadow": (
        """
import os
rule all:
    input: "a.txt", "b.txt"
rule a:
    output: "a.txt"
    shadow: "minimal"
    shell: "echo " + os.getcwd() + " > {output}"
rule b:
    output: "b.txt"
    shadow: "minimal"
    shell: "pwd; echo b > {output}"
""",
        1,
    ),
}


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_text_is_snakemakes(python, tmp_path, workflow):
    text, direct = WORKFLOWS[workflow]
    (tmp_path / "Snakefile").write_text(text)
    jobs, printed = compared(python, tmp_path, "--cores", "2")
    assert [job for job in jobs if job["direct"] and job["theirs"] != [job["ours"]]] == []
    assert sum(job["direct"] for job in jobs) == direct, printed


def test_a_workflow_that_calls_a_variable_name_gets_what_it_says(python):
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        bed = Bed(engine, python)
        bed.write('name = "X"\nrule a:\n    output: "a.txt"\n    shell: "echo {name} > {output}"\n')
        bed.ok()
        assert (bed.folder / "a.txt").read_text() == "X\n"
        assert set(bed.modes().values()) == {"direct"}
