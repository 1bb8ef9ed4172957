"""Each attempt of a job begins from the same ground, and nothing counts as done that has not run."""

import os
import signal

import pytest
from engine_at_home import wait_until

# Each attempt leaves a line, says so, and ends when it may.
LEAVES = """
rule all:
    input: "out/a.txt"
rule leaves:
    output: "out/a.txt", directory("out/folder")
    log: "logs/a.log"
    shell: "mkdir out/folder; echo line >> {output[0]}; echo line >> {log}; touch out/folder/$HPCBATCH_ATTEMPT; "
           "echo $HPCBATCH_ATTEMPT >> started; while [ ! -e go ]; do sleep 0.05; done"
"""
SHADOWED = """
rule all:
    input: "out/a.txt"
rule leaves:
    input: "in.txt"
    output: "out/a.txt"
    shadow: "%s"
    shell: "cat in.txt >> {output}; echo changed >> other.txt; wc -l < other.txt >> {output}; rm -f in.txt; echo mine > in.txt; mkdir made; "
           "here=$PWD; cd %s; echo $HPCBATCH_ATTEMPT >> started; while [ ! -e go ]; do sleep 0.05; done; cd $here"
"""
UPDATES = """
rule all:
    input: "done"
rule updates:
    output: changed=update("sum.txt"), done=touch("done")
    shell: "echo line >> {output.changed}; echo $HPCBATCH_ATTEMPT >> started; while [ ! -e go ]; do sleep 0.05; done"
"""


def attempts(bed):
    path = bed.folder / "started"
    return len(path.read_text().split()) if path.exists() else 0


def kill_pilots(bed):
    for pid in bed.engine.pilot_pids():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run_with_two_attempts(bed, *words):
    """A run whose first attempt dies with its pilot when it has left what it leaves."""
    snakemake = bed.begin(*words)
    wait_until(lambda: attempts(bed) == 1, what="the first attempt")
    kill_pilots(bed)
    wait_until(lambda: attempts(bed) == 2, 120, "the second attempt")
    (bed.folder / "go").touch()
    assert snakemake.wait(timeout=120) == 0, (bed.folder / "snakemake.log").read_text()


@pytest.mark.parametrize("mode", ["direct", "warm"])
def test_a_second_attempt_finds_nothing_of_the_first(bed, mode):
    bed.write(LEAVES)
    run_with_two_attempts(bed, "--hpcbatch-mode", mode)
    assert (bed.folder / "out/a.txt").read_text() == "line\n"
    assert (bed.folder / "logs/a.log").read_text() == "line\n"
    assert not (bed.folder / "out/folder/1").exists() and (bed.folder / "out/folder/2").exists()
    assert set(bed.modes().values()) == {mode}


@pytest.mark.parametrize("shadow", ["minimal", "copy-minimal", "shallow", "full"])
def test_a_second_attempt_gets_its_shadow_anew(bed, shadow):
    (bed.folder / "in.txt").write_text("input\n")
    bed.write(SHADOWED % (shadow, bed.folder))
    run_with_two_attempts(bed)
    assert (bed.folder / "out/a.txt").read_text() == "input\n1\n"
    assert (bed.folder / "in.txt").read_text() == "input\n"
    assert set(bed.modes().values()) == {"direct"}


def test_a_shell_that_is_none_of_posix_finds_its_ground_too(bed):
    bed.write(
        'shell.executable("fish")\nshell.prefix("")\n'
        + LEAVES.replace("while [ ! -e go ]; do sleep 0.05; done", "while not test -e go; sleep 0.05; end")
    )
    run_with_two_attempts(bed)
    assert (bed.folder / "out/a.txt").read_text() == "line\n"


def test_many_outputs_are_removed_by_a_list(bed):
    names = [f"a long name of an output with spaces and a number {i:04d}.txt" for i in range(200)]
    bed.write(
        f"NAMES = {names!r}\n"
        "rule all:\n    input: NAMES\n"
        "rule many:\n    output: NAMES\n"
        '    shell: "for i in {output:q}; do echo line >> \\"$i\\"; done; echo x >> started; while [ ! -e go ]; do sleep 0.05; done"\n'
    )
    run_with_two_attempts(bed)
    assert {(bed.folder / name).read_text() for name in names} == {"line\n"}
    assert set(bed.modes().values()) == {"direct"}
    assert not (bed.folder / ".snakemake/hpcbatch/kept").exists()


def test_a_file_that_is_updated_is_as_it_was_before(bed):
    (bed.folder / "sum.txt").write_text("before\n")
    bed.write(UPDATES)
    run_with_two_attempts(bed)
    assert (bed.folder / "sum.txt").read_text() == "before\nline\n"


def test_a_file_whose_update_fails_is_as_it_was_before(bed):
    (bed.folder / "sum.txt").write_text("before\n")
    (bed.folder / "sums").mkdir()
    (bed.folder / "sums/a").write_text("before\n")
    bed.write(
        "rule all:\n    output: update('sum.txt'), update(directory('sums')), update('new.txt')\n"
        "    shell: 'echo x >> sum.txt; echo x >> sums/a; echo x > sums/b; echo x > new.txt; false'\n"
    )
    for words in ([], ["--retries", "1"], ["--rerun-incomplete"]):
        code, text = bed.run(*words)
        assert code == 1 and "Traceback" not in text, text
        assert (bed.folder / "sum.txt").read_text() == (bed.folder / "sums/a").read_text() == "before\n"
        assert not (bed.folder / "sums/b").exists() and not (bed.folder / "new.txt").exists()


def test_retries_take_the_parameters_of_their_attempt(bed):
    bed.write(
        "rule all:\n    input: 'a.txt'\n"
        "rule grows:\n    output: 'a.txt'\n    retries: 2\n"
        "    resources: mem_mb=lambda wildcards, attempt: 100 * attempt\n"
        "    params: mem=lambda wildcards, resources: resources.mem_mb\n"
        "    shell: 'echo {params.mem} {resources.mem_mb} >> ../tried; test {params.mem} -ge 300 && touch {output}'\n"
    )
    bed.ok()
    assert (bed.engine.directory / "tried").read_text().splitlines() == ["100 100", "200 200", "300 300"]
    assert set(bed.modes().values()) == {"direct"}


# Warm for its function, and so long that its list of inputs is kept in a file.
KEPT = """
rule all:
    input: expand("out/{i}.txt", i=range(6))
rule held:
    input: expand("in/{j}.txt", j=range(30))
    output: "out/{i}.txt"
    run:
        import pathlib, time
        with open("started", "a") as file: print(wildcards.i, file=file)
        while not os.path.exists("go"): time.sleep(0.05)
        pathlib.Path(output[0]).write_text(f"new {wildcards.i}\\n")
"""


def test_warm_jobs_that_go_on_without_their_snakemake_run(bed):
    for name in ("in", "out"):
        (bed.folder / name).mkdir()
    for j in range(30):
        (bed.folder / f"in/{j}.txt").touch()
    for i in range(6):  # of an earlier run
        (bed.folder / f"out/{i}.txt").write_text(f"old {i}\n")
    bed.write(KEPT)
    snakemake = bed.begin("--hpcbatch-on-exit", "keep", "--forceall")
    wait_until(lambda: attempts(bed) == 2, what="two jobs' start")
    os.killpg(snakemake.pid, signal.SIGINT)
    snakemake.wait(timeout=60)
    (bed.folder / "go").touch()
    wait_until(
        lambda: all(bed.engine.show(line["id"])["state"] == "done" for line in bed.tasks()), 120, "the end of all jobs"
    )
    assert sorted((bed.folder / "started").read_text().split()) == [str(i) for i in range(6)]
    bed.ok("--rerun-incomplete")
    assert [(bed.folder / f"out/{i}.txt").read_text() for i in range(6)] == [f"new {i}\n" for i in range(6)]
    assert sorted((bed.folder / "started").read_text().split()) == [str(i) for i in range(6)]
    # With nothing left to do there is no executor; the next one tidies up.
    (bed.folder / "out/0.txt").unlink()
    bed.ok()
    assert not (bed.folder / ".snakemake/hpcbatch/kept").exists()


def test_a_job_whose_own_snakemake_finds_an_input_missing_has_failed(bed):
    (bed.folder / "in.txt").touch()
    (bed.folder / "a.txt").write_text("old\n")
    bed.write(
        "rule all:\n    input: 'a.txt'\n"
        "rule blocks:\n    output: 'block.txt'\n    priority: 9\n    threads: 2\n"
        "    shell: 'while [ ! -e go ]; do sleep 0.05; done; touch {output}'\n"
        "rule warm:\n    input: 'in.txt'\n    output: 'a.txt'\n    threads: 2\n    run: open(output[0], 'w').write('new')\n"
    )
    # The first has both cpus, so that the input of the second is gone by the time that it begins.
    snakemake = bed.begin("--forceall", "--latency-wait", "1", "a.txt", "block.txt")
    wait_until(lambda: len(bed.tasks()) == 2, what="both jobs")
    (bed.folder / "in.txt").unlink()
    (bed.folder / "go").touch()
    assert snakemake.wait(timeout=120) == 1, (bed.folder / "snakemake.log").read_text()
    states = {task["name"]: task["state"] for task in map(lambda line: bed.engine.show(line["id"]), bed.tasks())}
    assert states == {"blocks": "done", "warm": "failed"}
