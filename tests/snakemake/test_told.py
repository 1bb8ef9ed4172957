"""What Snakemake's log says: once, and what the user can use."""

import json
import os
import re
import signal

import pytest
from engine_at_home import EngineAtHome, wait_until
from slurm_site import SlurmSite
from snakemake_bed import Bed

PIPE = """
rule all:
    input: "b.txt"
rule a:
    output: pipe("a.fifo")
    shell: "echo > {output}"
rule b:
    input: "a.fifo"
    output: "b.txt"
    shell: "cat {input} > {output}; %s"
"""


@pytest.fixture
def bare_bed(python):
    """With an engine that has no configuration."""
    with EngineAtHome() as engine:
        yield Bed(engine, python)


def ran(bed):
    return (bed.folder / "ran").exists()


def test_a_group_may_have_a_number_for_its_name(bed):
    bed.write(
        """
rule all:
    input: "b.txt"
rule a:
    output: "a.txt"
    group: 0
    shell: "echo > {output}"
rule b:
    input: "a.txt"
    output: "b.txt"
    group: 0
    shell: "cat {input} > {output}"
"""
    )
    text = bed.ok()
    assert "could not be made" not in text
    assert any(line.split()[:3] == ["0", "1", "0"] for line in text.splitlines()), text


def test_a_group_that_is_refused_says_why_once(bed):
    bed.write(
        """
rule all:
    input: "b.txt"
rule a:
    output: "a.txt"
    group: "g"
    resources: mem_mb=lambda wildcards, attempt: 10**9
    shell: "echo > {output}"
rule b:
    input: "a.txt"
    output: "b.txt"
    group: "g"
    shell: "cat {input} > {output}"
"""
    )
    code, text = bed.run("--keep-going")
    assert code == 1 and text.count("hpcbatch cannot take this job: never_fits") == 1, text
    assert "non-zero exit code" not in text


def test_a_warm_job_that_fails_shows_its_rules_own_error_alone(bed):
    bed.write(
        """
rule a:
    output: "a.txt"
    run:
        print("said before")
        raise ValueError("what is wrong with it")
"""
    )
    code, text = bed.run()
    shown = text[text.index("The last lines that it printed") : text.index("More: hpcbatch explain")]
    assert code == 1 and "ValueError" in shown and "what is wrong with it" in shown and "said before" in shown
    assert len(shown.splitlines()) < 9, shown


def test_of_a_group_that_fails_it_is_said_which_rule_and_what_it_printed(bed):
    bed.write(PIPE % "echo this is wrong >&2; false")
    code, text = bed.run()
    assert code == 1 and text.count("this is wrong\n") == 1 and text.count("rule b failed") == 1, text
    assert "Error in group a+b: Task" in text
    assert "jobid:" not in text[text.index("The last lines") : text.index("More: hpcbatch explain")], text


def test_groups_that_snakemake_makes_up_are_called_by_their_rules(bed):
    bed.write(PIPE % "true")
    text = bed.ok()
    assert any(line.split()[:2] == ["a+b", "1"] for line in text.splitlines()), text
    assert bed.modes() == {"group a+b": "warm"}


def test_the_first_interrupt_says_one_line(bed):
    bed.write(
        """
rule all:
    input: expand("{i}.txt", i=range(40))
rule held:
    output: "{i}.txt"
    shell: "echo >> started; sleep 600"
"""
    )
    snakemake = bed.begin()
    log = bed.folder / "snakemake.log"
    wait_until(lambda: (bed.folder / "started").exists(), 60, "a job's start")
    os.killpg(snakemake.pid, signal.SIGINT)
    assert snakemake.wait(timeout=60) != 0
    text = log.read_text()
    told = text[text.index("Terminating processes on user request") :]
    assert "Error in" not in told and told.count("40 jobs were cancelled") == 1, told
    assert len(told.splitlines()) < 12, told


def test_the_external_jobid_is_what_explain_takes(bed):
    bed.write('rule a:\n    output: "a.txt"\n    shell: "false"\n')
    _, text = bed.run()
    number = re.search(r"external_jobid: (\S+)", text)[1]
    assert "exit code 1" in bed.engine.ok("explain", number)
    assert [row["key"] for row in json.loads(bed.engine.ok("report", "--json"))["rows"]] == [
        "a"
    ], "its kind is the rule"


def test_what_waits_says_why_once(python):
    with EngineAtHome() as engine:
        engine.configure(
            """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, setup: [exit 3], shapes: [{name: two, cpus: 2, memory: 4G}]}
"""
            % (engine.directory / "space")
        )
        bed = Bed(engine, python)
        bed.write(
            """
rule all:
    input: expand("{i}.txt", i=range(5))
rule waits:
    output: "{i}.txt"
    shell: "echo > {output}"
"""
        )
        snakemake = bed.begin()
        log = bed.folder / "snakemake.log"
        try:
            wait_until(lambda: "waits: " in log.read_text(), 90, "the reason")
            [line] = [line for line in log.read_text().splitlines() if "waits: " in line]
            assert line.startswith("hpcbatch: waits i=") and "shape two of here is not asked for" in line, line
        finally:
            os.killpg(snakemake.pid, signal.SIGINT)
            snakemake.wait(timeout=60)


def test_jobs_larger_than_this_machine_get_what_it_has(bare_bed):
    bare_bed.write(
        """
rule all:
    input: "a.txt", "b.txt", "c.txt"
rule a:
    output: "a.txt"
    threads: 1000
    shell: "echo {threads} $OMP_NUM_THREADS > {output}"
rule b:
    output: "b.txt"
    threads: 1000
    group: "g"
    shell: "echo {threads} > {output}"
rule c:
    output: "c.txt"
    threads: 1000
    group: "g"
    shell: "echo {threads} > {output}"
"""
    )
    text = bare_bed.ok()
    [count] = re.findall(r"rules that claim more than (\d+) threads get \1\.", text)
    assert 0 < int(count) < 1000
    assert (bare_bed.folder / "a.txt").read_text() == f"{count} {count}\n"
    assert (bare_bed.folder / "b.txt").read_text() == (bare_bed.folder / "c.txt").read_text() == f"{count}\n"


HOPELESS = """
rule all:
    input: "fine.txt", expand("{i}.txt", i=range(3))
rule fine:
    output: "fine.txt"
    shell: "touch ran {output}"
rule hopeless:
    output: "{i}.txt"
    resources: %s
    shell: "touch ran {output}"
"""


@pytest.mark.parametrize(
    "resources, words",
    [
        (
            "mem_mb=10**8",
            r"rule hopeless: never_fits: no site can ever run a task that needs .* but the task asks for 95\.\d*T memory where it has .*; ask for less \(--set-threads, --set-resources\)",
        ),
        (
            "slurm_extra='--gres=gpu:1'",
            "rule hopeless: slurm_extra=--gres=gpu:1: none of local lets tasks choose these or has them among its options; add them",
        ),
        ("constraint='avx512'", "rule hopeless: constraint=avx512: no shape says that it has this"),
        ("slurm_partition='gpu'", "rule hopeless: slurm_partition=gpu: no site has a shape in such a partition"),
        ("gpu=40", "rule hopeless: never_fits: .* but the task asks for 40 gpus of any kind where it has nothing"),
    ],
)
def test_what_can_never_run_is_refused_once_before_anything_runs(bare_bed, resources, words):
    bare_bed.write(HOPELESS % resources)
    code, text = bare_bed.run()
    assert code == 1 and len(re.findall(words, text)) == 1 and text.count("nothing was started") == 1, text
    assert not ran(bare_bed) and bare_bed.tasks() == []


def test_with_keep_going_the_others_run(bare_bed):
    bare_bed.write(HOPELESS % "gres='gpu:a100:40'")
    code, text = bare_bed.run("--keep-going")
    assert code == 1 and (bare_bed.folder / "fine.txt").exists() and not (bare_bed.folder / "1.txt").exists()
    assert text.count("what can never run here: rule hopeless: never_fits: ") == 1, text
    assert text.count("the task asks for 40 a100 where it has nothing; ask for less") == 1, text


def test_what_the_user_wants_ignored_is_run_without(bare_bed):
    bare_bed.write(HOPELESS % "slurm_extra='--gres=gpu:1', constraint='avx512', slurm_account='abc'")
    text = bare_bed.ok("--hpcbatch-ignore", "slurm_extra,constraint")
    assert len(list(bare_bed.folder.glob("*.txt"))) == 4
    assert text.count("slurm_account=abc means nothing on this machine") == 1


def test_options_that_the_sites_batch_jobs_have_are_honoured(python, slurm):
    with SlurmSite(slurm, options=["--comment=mine"]) as engine:
        bed = Bed(engine, python)
        bed.write(HOPELESS % "slurm_extra='--comment=mine', runtime=1")
        bed.ok()
        assert len(list(bed.folder.glob("*.txt"))) == 4
        bed.write(HOPELESS % "slurm_account='mine', slurm_extra='--nice=7', runtime=1")
        text = bed.ok("--forceall")
        assert text.count("--nice of slurm_extra is left out") == 1, text
        jobs = slurm.ask("squeue", "-a", "-h", "-t", "all", "-O", "Account:40,Nice:10,WorkDir:200").splitlines()
        found = {tuple(line.split()[:2]) for line in jobs if str(engine.directory) in line}
        assert ("mine", "0") in found and {nice for _, nice in found} == {"0"}, jobs
    with SlurmSite(slurm, choices={}) as engine:
        bed = Bed(engine, python)
        bed.write(HOPELESS % "slurm_account='theirs'")
        code, text = bed.run("--forceall")
        assert (
            code == 1 and text.count("slurm_account=theirs: ") == 1 and "'--account=theirs' among its options" in text
        ), text


def test_resources_that_nobody_knows_are_said_once_for_each_rule(bed):
    bed.write(
        """
rule all:
    input: expand("{i}.txt", i=range(3))
rule odd:
    output: "{i}.txt"
    resources: sockets=2, db=1, mem_gb=1, slurm_extra="--mail-type=END"
    shell: "echo $HPCBATCH_MEM_MB > {output}"
"""
    )
    text = bed.ok("--resources", "db=2")
    assert text.count("rule odd asks for sockets, which hpcbatch does not know") == 1, text
    assert text.count("--mail-type of slurm_extra is left out") == 1, text
    assert {(bed.folder / f"{i}.txt").read_text() for i in range(3)} == {"1024\n"}
