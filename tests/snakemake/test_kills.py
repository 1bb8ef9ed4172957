"""Snakemake or its pilots ended at drawn moments: in the end there are the files of a run that nobody disturbed, byte for byte.

Every job adds to what it finds: one that ran on another's leftovers, or twice, has a line too many; one that counts as done
without having run leaves what an earlier run left.
"""

import os
import random
import shutil
import signal

import pytest
from container_images import EngineWithContainers, folder, make_tree, needs_containers  # noqa: F401 (a fixture)
from drawn import drawn
from engine_at_home import EngineAtHome, is_alive, wait_until
from snakemake_bed import TWO_CPUS, Bed, tree

JOBS = 16
KILLS = 30 if os.environ.get("HPCBATCH_LONG") else 3
# "here" says that a job has begun, where nothing is compared; an input's time is later than all that an earlier run left.
FEW = """
N = range(%d)
rule all:
    input: expand("out/last.{i}.txt", i=N), "out/all.txt", "out/shadow.txt"
rule first:
    input: "in/{i}.txt"
    output: "out/first.{i}.txt", directory("out/first.{i}.d")
    log: "log/first.{i}.txt"
    benchmark: "bench/{i}.txt"
    shell: "echo {wildcards.i} >> %s/here; mkdir {output[1]}; cat {input} >> {output[0]}; sleep 0.1; echo said >> {log}; "
           "sleep 0.1; date +%%Y > {output[1]}/year; echo end >> {output[0]}"
rule last:
    input: "out/first.{i}.txt", "out/first.{i}.d"
    output: "out/last.{i}.txt"
    group: lambda wildcards: "pair" if wildcards.i in ("3", "4") else wildcards.i
    shell: "echo last {wildcards.i} >> %s/here; cat {input[0]} {input[1]}/year >> {output}; sleep 0.1; echo end >> {output}"
rule shadowed:
    input: "in/0.txt"
    output: "out/shadow.txt"
    shadow: "copy-minimal"
    shell: "echo shadow >> %s/here; echo more >> {input}; sleep 0.2; cat {input} >> {output}"
rule together:
    input: expand("out/last.{i}.txt", i=N)
    output: "out/all.txt"
    shell: "echo all >> %s/here; for i in {input}; do cat $i >> {output}; done"
"""
SH = "shell.executable('sh')\n"
LONG = """
rule all:
    input: expand("out/{i}.txt", i=range(%d))
%s
rule piece:
    %s
    output: "out/{i}.txt", directory("out/{i}.d")
    log: "log/{i}.txt"
    %s
    shell: "echo {wildcards.i} >> %s/here; mkdir {output[1]}; echo begin {wildcards.i} >> {output[0]}; sleep 0.2; "
           "echo said >> {log}; echo part > {output[1]}/part; sleep 0.2; echo end >> {output[0]}"
"""
SERVICE = """
rule served:
    output: service("work/{i}.here")
    shell: "echo served > {output}.new; mv {output}.new {output}; sleep 1000"
"""


def begun(bed):
    path = bed.folder / "here"
    return path.read_text().count("\n") if path.exists() else 0


def lay_out(bed):
    """The inputs, and old outputs as an earlier run left them: they are to be made anew, and never to count."""
    for name in ("in", "out", "log"):
        (bed.folder / name).mkdir()
    for i in range(JOBS):
        for name in ("first", "last"):
            old = bed.folder / f"out/{name}.{i}.txt"
            old.write_text("old\n")
            os.utime(old, (1, 1))
        (bed.folder / f"in/{i}.txt").write_text(f"input {i}\n")
    bed.write(FEW % (JOBS, *[bed.folder] * 4))


def disturbed(bed, draw, mode):
    """One run that is ended up to three times, twice on the average, and begun again each time."""
    words = ["--hpcbatch-mode", mode] if mode == "warm" else []
    for turn in range(draw.randint(1, 3)):
        keep = ["--hpcbatch-on-exit", draw.choice(["keep", "cancel"])]
        how = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        until = begun(bed) + draw.choice([0, 0, 1, 2, draw.randint(3, JOBS), draw.randint(3, 2 * JOBS)])
        log = f"snakemake.{turn}.log"
        snakemake = bed.begin("--rerun-incomplete", *keep, *words, log=log)
        wait_until(lambda: begun(bed) >= until or not is_alive(snakemake.pid), 120, f"{until} jobs' start")
        draw_until = draw.random()
        try:
            snakemake.wait(timeout=draw_until)
        except Exception:  # it runs on
            os.killpg(snakemake.pid, how)
        wait_until(
            lambda: not is_alive(snakemake.pid),
            what=f"the end of Snakemake by {how!r}, which says: {(bed.folder / log).read_text()}",
        )
        snakemake.wait()
        shutil.rmtree(bed.folder / ".snakemake/locks", ignore_errors=True)  # as --unlock does
    bed.ok("--rerun-incomplete", *words)


def left(bed):
    return {name: what for name, what in tree(bed.folder).items() if not name.startswith(("snakemake.", "in/", "here"))}


@pytest.fixture(scope="module")
def undisturbed(python):
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        bed = Bed(engine, python)
        lay_out(bed)
        bed.ok(executor="local")
        where = str(bed.folder)
        found = left(bed)
        found["Snakefile"] = (found["Snakefile"][0], found["Snakefile"][1].replace(where.encode(), b"HERE"))
        yield found


@pytest.mark.parametrize("seed", drawn(range(15), 2))
@pytest.mark.parametrize("mode", ["direct", "warm"])
def test_a_run_that_is_ended_and_taken_up_leaves_what_an_undisturbed_one_leaves(bed, undisturbed, mode, seed):
    lay_out(bed)
    disturbed(bed, random.Random(f"{mode} {seed}"), mode)
    found = left(bed)
    found["Snakefile"] = (
        found["Snakefile"][0],
        found["Snakefile"][1].replace(str(bed.folder).encode(), b"HERE"),
    )
    assert found == undisturbed


@pytest.fixture
def contained(python):
    with EngineWithContainers("podman") as engine:
        yield Bed(engine, python)


@pytest.fixture(scope="module")
def image(folder):  # noqa: F811
    return make_tree(folder / "tree")


def run_under_kills(bed, words=(), rules="", needs="threads: 1", place="priority: 1"):
    """A run whose pilot is killed again and again, each time that a few more jobs have begun."""
    draw = random.Random(f"{rules} {place} {words}")
    jobs = KILLS * 5
    bed.write(SH + LONG % (jobs, rules, needs, place, bed.folder))
    snakemake = bed.begin(*words)
    for kill in range(KILLS):
        more = begun(bed) + draw.randint(4, 6)
        wait_until(lambda: begun(bed) >= more or not is_alive(snakemake.pid), 180, f"{more} jobs' start")
        for pid in bed.engine.pilot_pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert snakemake.wait(timeout=300) == 0, (bed.folder / "snakemake.log").read_text()
    assert begun(bed) > jobs, "no kill met a job"
    for i in range(jobs):
        assert (bed.folder / f"out/{i}.txt").read_text() == f"begin {i}\nend\n"
        assert (bed.folder / f"log/{i}.txt").read_text() == "said\n"
        assert [path.name for path in (bed.folder / f"out/{i}.d").iterdir() if path.name[0] != "."] == ["part"]


@pytest.mark.parametrize("mode", ["direct", "warm"])
def test_pilots_that_are_killed_leave_nothing_twice(bed, mode):
    run_under_kills(bed, ["--hpcbatch-mode", mode] if mode == "warm" else [])
    assert set(bed.modes().values()) == {mode}


def test_pilots_that_are_killed_beside_a_service_leave_nothing_twice(bed):
    run_under_kills(bed, rules=SERVICE, needs='input: "work/{i}.here"')


@needs_containers("podman")
def test_pilots_that_are_killed_leave_nothing_twice_of_containers(contained, image):
    run_under_kills(contained, ["--hpcbatch-containers"], place=f'container: "{image}"')
