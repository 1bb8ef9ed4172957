"""Rules with `container:` in containers of hpcbatch's, by Podman and Charliecloud."""

import pytest
from container_images import (
    EngineWithContainers,
    folder,
    make_tree,
    needs_containers,
)  # noqa: F401 (folder is a fixture)
from engine_at_home import wait_until
from snakemake_bed import Bed

pytestmark = needs_containers("podman", "charliecloud")


@pytest.fixture(scope="module")
def tree(folder):  # noqa: F811
    return make_tree(folder / "tree")


@pytest.fixture(params=("podman", "charliecloud"))
def bed(python, request):
    with EngineWithContainers(request.param) as engine:
        yield Bed(engine, python)


WORKFLOW = """
rule all:
    input: expand("out/{{n}}.txt", n=range(3)), "plain.txt", "{elsewhere}/far.txt"
rule inside:
    output: "out/{{n}}.txt"
    container: "{tree}"
    shell: "cat /etc/mark > {{output}}; echo $OMP_NUM_THREADS {{wildcards.n}} >> {{output}}; [ ! -e /etc/debian_version ]"
rule outside:
    output: "plain.txt"
    shell: "cat /etc/debian_version > {{output}}"
rule elsewhere:
    input: "out/1.txt"
    output: "{elsewhere}/far.txt"
    container: "{tree}"
    shell: "cat {{input}} > {{output}}"
"""


def test_a_shell_rule_runs_in_its_image(bed, tree):
    elsewhere = bed.engine.directory / "elsewhere"
    elsewhere.mkdir()
    bed.write("shell.executable('sh')\n" + WORKFLOW.format(tree=tree, elsewhere=elsewhere))
    bed.ok("--hpcbatch-containers")
    for n in range(3):
        assert (bed.folder / f"out/{n}.txt").read_text() == f"in the image\n1 {n}\n"
    assert (elsewhere / "far.txt").read_text() == "in the image\n1 1\n"
    assert "in the image" not in (bed.folder / "plain.txt").read_text()
    # Without the option Snakemake has its own way: none without --sdm.
    code, said = bed.run("--forcerun", "inside", "--", "out/0.txt")
    assert code != 0 and "No such file" in said + bed.engine.ok("log", bed.tasks()[0]["id"], "--stderr"), said


def test_an_image_that_is_not_there_fails_the_job(bed):
    bed.write('rule all:\n    output: "a"\n    container: "/nowhere/at/all"\n    shell: "touch {output}"\n')
    code, said = bed.run("--hpcbatch-containers")
    assert code != 0 and "/nowhere/at/all" in said and "container" in said, said
    assert not (bed.folder / "a").exists()


def test_what_would_run_without_its_container_is_refused(bed, tree):
    bed.write(f'rule all:\n    output: "a"\n    container: "{tree}"\n    run: open(output[0], "w")\n')
    code, said = bed.run("--hpcbatch-containers")
    assert (
        code != 0
        and "only a plain command does so by --hpcbatch-containers" in said
        and not (bed.folder / "a").exists()
    ), said
    bed.write(f'localrules: all\nrule all:\n    output: "a"\n    container: "{tree}"\n    shell: "touch {{output}}"\n')
    code, said = bed.run("--hpcbatch-containers")
    assert code != 0 and "all would run here, without its container:" in said and not (bed.folder / "a").exists(), said
    bed.write(
        f"""
rule all:
    input: "b"
checkpoint first:
    output: "first"
    shell: "touch {{output}}"
def later(wildcards):
    checkpoints.first.get()
    return "a"
rule late:
    input: later
    output: "b"
    shell: "touch {{output}}"
rule here:
    output: "a"
    localrule: True
    container: "{tree}"
    shell: "touch {{output}}"
"""
    )
    code, said = bed.run("--hpcbatch-containers")
    assert (
        code != 0 and "here would run here, without its container:" in said and not (bed.folder / "first").exists()
    ), said


def test_an_image_for_all_and_files_by_links_and_in_shadows(bed, tree):
    (bed.engine.directory / "far").mkdir()
    (bed.engine.directory / "far/in").write_text("from afar\n")
    (bed.engine.directory / "near").symlink_to("far")
    (bed.folder / "image").symlink_to(tree)
    bed.write(
        f"""
container: "image"
rule all:
    input: "a", "b"
rule linked:
    input: "{bed.engine.directory}/near/in"
    output: "a"
    shell: "cat {{input}} /etc/mark > {{output}}"
rule shadowed:
    input: "a"
    output: "b"
    shadow: "shallow"
    shell: "cat {{input}} > {{output}}; touch left-over"
"""
    )
    bed.write("shell.executable('sh')\n" + (bed.folder / "Snakefile").read_text())
    bed.ok("--hpcbatch-containers")
    assert (bed.folder / "b").read_text() == "from afar\nin the image\n" and not (bed.folder / "left-over").exists()


def test_what_ran_without_its_image_is_not_taken_up(bed, tree):
    go = bed.folder / "go"
    bed.write(
        f"""
shell.executable("sh")
rule all:
    output: "a"
    container: "{tree}"
    shell: "while [ ! -e go ]; do sleep 0.1; done; cat /etc/mark > {{output}} || echo outside > {{output}}"
"""
    )
    first = bed.begin()
    wait_until(lambda: any(task["state"] == "running" for task in bed.tasks()), what="the job to run")
    first.kill()
    first.wait()
    bed.ok("--unlock")
    second = bed.begin("--hpcbatch-containers", "--rerun-incomplete", log="second.log")
    wait_until(lambda: len(bed.tasks()) == 2, what="another task")
    go.touch()
    assert second.wait(120) == 0, (bed.folder / "second.log").read_text()
    assert (bed.folder / "a").read_text() == "in the image\n"
