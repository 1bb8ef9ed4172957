"""What a user reads when something is wrong: one clear message, no traceback, and Snakemake's own state left clean."""

import os
import pathlib
import re

import pytest

ONE = """
rule one:
    output: "one.txt"
    threads: %s
    resources: %s
    shell: "%s"
"""


def one(threads=1, resources="mem_mb=100", shell="echo 1 > {output}"):
    return ONE % (threads, resources, shell)


def clean(bed):
    return not list((bed.folder / ".snakemake/incomplete").glob("*")) and not list(
        (bed.folder / ".snakemake/locks").glob("*")
    )


def report_of(text):
    """{rule: [jobs, failed]} of the table at the end."""
    lines = text.splitlines()
    head = next(at for at, line in enumerate(lines) if line.split()[:3] == ["rule", "jobs", "failed"])
    end = next(at for at, line in enumerate(lines) if line.startswith("They ran in "))
    return {line.split()[0]: line.split()[1:3] for line in lines[head + 1 : end]}


def test_a_failed_job_says_why_where_and_what_it_printed(bed):
    bed.write(one(shell="echo some output; echo what is wrong >&2; exit 3"))
    code, text = bed.run()
    assert code == 1
    assert "failed (tool_failed): exit 3" in text
    assert "what is wrong" in text and "some output" in text
    assert f"on node {os.uname().nodename}" in text and "hpcbatch explain " in text
    assert clean(bed)


def test_a_job_over_its_memory_says_so(bed):
    bed.write(one(resources="mem_mb=60", shell="python3 -c 'x = bytearray(300 << 20); import time; time.sleep(60)'"))
    code, text = bed.run()
    assert code == 1 and "(oom_task)" in text and "60.0 MiB" in text


def test_retries_with_growing_resources(bed):
    bed.write(
        one(
            resources="mem_mb=lambda w, attempt: 60 if attempt == 1 else 1000",
            shell="python3 -c 'x = bytearray(300 << 20)'; echo {resources.mem_mb} > {output}",
        )
    )
    text = bed.ok("--retries", "1")
    assert "(oom_task)" in text and (bed.folder / "one.txt").read_text() == "1000\n"


def test_keep_going_does_what_can_be_done(bed):
    bed.write(
        """
rule all:
    input: "bad.txt", expand("good{i}.txt", i=range(5))
rule bad:
    output: "bad.txt"
    shell: "false"
rule good:
    output: "good{i}.txt"
    shell: "echo > {output}"
"""
    )
    code, text = bed.run("--keep-going")
    assert code == 1 and len(list(bed.folder.glob("good*.txt"))) == 5
    assert report_of(text) == {"bad": ["1", "1"], "good": ["5", "0"]}


def test_the_report_at_the_end_counts_by_rule(bed):
    bed.write(
        """
rule all:
    input: expand("a{i}.txt", i=range(7)), "b.txt"
rule a:
    output: "a{i}.txt"
    resources: mem_mb=200
    shell: "echo > {output}"
rule b:
    output: "b.txt"
    shell: "echo > {output}"
"""
    )
    text = bed.ok()
    assert report_of(text) == {"a": ["7", "0"], "b": ["1", "0"]}
    assert "They ran in 1 batch job of hpcbatch." in text


@pytest.mark.parametrize(
    "resources, words",
    [
        ("mem_mb=10**9", "memory where it has 3.9G memory; ask for less"),
        ("gpu=2", "asks for 2 gpus of any kind where it has nothing"),
        ("mpi='srun', tasks=4", "srun starts no processes of MPI here"),
        ("nodes=2", "nodes at once where its batch jobs have 1"),
        ("gres='fpga:1'", "only GPUs are known"),
        ("clusters='elsewhere'", "is no site of this engine"),
    ],
)
def test_a_resource_that_cannot_be_had_is_refused_in_a_sentence(bed, resources, words):
    bed.write(one(resources=resources))
    code, text = bed.run()
    assert code == 1 and words in text, text
    assert clean(bed)


def test_one_job_that_is_refused_does_not_keep_the_others(bed):
    bed.write(
        """
rule all:
    input: expand("o{i}.txt", i=range(9))
rule o:
    output: "o{i}.txt"
    resources: mem_mb=lambda wildcards: 10**9 if wildcards.i == "4" else 50
    shell: "echo > {output}"
"""
    )
    code, text = bed.run("--keep-going")
    assert code == 1 and text.count("never_fits") >= 1
    assert sorted(path.name for path in bed.folder.glob("o*.txt")) == [f"o{i}.txt" for i in range(9) if i != 4]


def test_words_of_the_slurm_plugin_mean_here_what_they_mean_there(bed):
    bed.write(
        """
rule all:
    input: expand("o{i}.txt", i=range(3))
rule o:
    output: "o{i}.txt"
    resources: slurm_account="abc", qos="normal", runtime="1h", mem_mb_per_cpu=50
    shell: "echo > {output}"
"""
    )
    text = bed.ok()
    for words in ("slurm_account=abc means nothing on this machine", "qos=normal means nothing on this machine"):
        assert text.count(words) == 1, text
    task = bed.engine.show(bed.tasks()[0]["id"])
    assert task["needs"]["time"] == 3600 and task["needs"]["memory"] == 50 << 20


def test_an_engine_that_cannot_be_had_is_said_in_one_sentence(bed):
    bed.write(one())
    bed.engine.configure(
        f"sites: [{{name: x, scheduler: no_such, transport: shared_fs, workspace: {bed.folder}/w, shapes: [{{name: a, cpus: 1, memory: 1G, walltime: 1h}}]}}]"
    )
    code, text = bed.run()
    assert code == 1 and "hpcbatch: " in text and "no_such" in text
    bed.env["HPCBATCH_PROGRAM"] = "/no/such/hpcbatch"
    code, text = bed.run()
    assert code == 1 and "cannot find the program /no/such/hpcbatch" in text
    assert clean(bed)


def test_a_second_engine_is_not_started_for_each_snakemake(bed):
    bed.write(one())
    bed.ok()
    first = bed.engine.engine_pid()
    (bed.folder / "one.txt").unlink()
    bed.ok()
    assert bed.engine.engine_pid() == first


def test_secrets_are_in_no_list_of_processes(bed):
    bed.write(
        'envvars: "HPCBATCH_TEST_SECRET"\n'
        + one(shell="cat /proc/$PPID/cmdline > {output}; echo $HPCBATCH_TEST_SECRET >> {output}")
    )
    bed.ok("--hpcbatch-mode", "relaunch")
    said = pathlib.Path(bed.folder / "one.txt").read_bytes()
    assert b"hush\n" in said and b"HPCBATCH_TEST_SECRET" not in said.replace(b"hush", b"")[: said.rfind(b"\n")]


def test_storage_providers_run_through_a_snakemake_of_their_own(bed):
    (bed.folder / "store").mkdir()
    (bed.folder / "store/in.txt").write_text("stored\n")
    bed.write(
        """
storage kept:
    provider="fs"
rule all:
    input: storage.kept("store/out.txt")
rule copy:
    input: storage.kept("store/in.txt")
    output: storage.kept("store/out.txt")
    shell: "cat {input} > {output}"
"""
    )
    text = bed.ok()
    assert (bed.folder / "store/out.txt").read_text() == "stored\n", text
    assert "its files come from a storage provider" in text


LAST = """
rule all:
    input: "last.txt"
rule last:
    input: "one.txt"
    output: "last.txt"
    shell: "cat {input} > {output}"
rule one:
    %s
    log: "one.log"
    shell: "echo words > {log}; %s"
rule zero:
    %s
    shell: "echo zero > {output}"
"""
ONE_OUTPUT = 'output: "one.txt"'
NO_ZERO = 'output: "zero.txt"'
OF_A_GROUP = 'group: "g"\n    input: "zero.txt"\n    output: "one.txt"'


@pytest.mark.parametrize("mode", ["direct", "warm"])
@pytest.mark.parametrize(
    "one_says, does, zero_says, is_over, words",
    [
        (ONE_OUTPUT, "true", NO_ZERO, False, "output files are missing"),
        (ONE_OUTPUT, "mkdir {output}", NO_ZERO, False, "output files are missing|directory"),
        ('output: ensure("one.txt", non_empty=True)', "touch {output}", NO_ZERO, False, "empty output files"),
        ('output: ensure("one.txt", sha256="0" * 64)', "echo > {output}", NO_ZERO, False, "checksum"),
        (OF_A_GROUP, "exit 3", 'group: "g"\n    output: "zero.txt"', True, "exit status 3"),
        (OF_A_GROUP, "true", 'group: "g"\n    output: "zero.txt"', True, "output files are missing"),
        ('input: "zero.txt"\n    output: "one.txt"', "exit 3", 'output: pipe("zero.txt")', False, "exit status 3"),
    ],
    ids=["missing", "directory", "empty", "checksum", "group", "group-missing", "pipe"],
)
def test_a_job_that_ran_and_failed_has_snakemakes_own_block(bed, mode, one_says, does, zero_says, is_over, words):
    """`is_over`: of a group, it is known that the other member did not fail."""
    bed.write(LAST % (one_says, does, zero_says))
    code, text = bed.run("--hpcbatch-mode", mode)
    assert code == 1 and re.search(words, text) and report_of(text).popitem()[1] == ["1", "1"], text
    block = text[text.index("Error in rule one:") :]
    assert text.count("Error in rule one:") == 1 and ("Error in rule zero:" in text) <= (not is_over), text
    assert "output: one.txt" in block and "log: one.log (check log file(s) for error details)" in block, text
    assert re.search("external_jobid: 1$", block, re.M) and clean(bed), text


def test_refusals_are_the_last_that_is_said(bed):
    """The thread that waits for jobs ends before Python does."""
    bed.write(one(resources="gpu=2"))
    for _ in range(5):
        code, text = bed.run()
        assert code == 1 and "cannot schedule" not in text and text.count("hpcbatch: nothing was started") == 1, text
