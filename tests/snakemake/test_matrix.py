"""What Snakemake can do gives the same files in every mode as it does without us, and then there is nothing left to do.

matrix/Snakefile has the rows.  It runs once with Snakemake's local executor and once in each mode; each row of the matrix is
then a test of its own.
"""

import pathlib
import re
import shutil

import pytest
from drawn import drawn
from engine_at_home import EngineAtHome
from snakemake_bed import HERE, TWO_CPUS, Bed, tree

SNAKEFILE = (HERE / "matrix/Snakefile").read_text()
ROWS = re.search(r'ROWS = .*?"""(.*?)"""', SNAKEFILE, re.S)[1].split()
MODES = "direct", "warm", "relaunch"
# A Snakemake for each job, as other executors start it, takes minutes for all rows.
RELAUNCHED = sorted({*drawn(ROWS, 12), "benchmark"}, key=ROWS.index)
# Rows that need a Snakemake of their own wherever they run; the rest must be able to run direct.
NEVER_DIRECT = {
    "update_flag",
    "script",
    "script_bash",
    "run",
    "template",
    "script_params",
    "long_command",
    "tmpdir",
    "group",
    "pipe",
    "local",
    "module",
    "module_name",
    "shadow_tmpdir",
    "own_tmpdir",
    "params_tmpdir",
    "service",
    "jinja",
    "benchmark_repeats",
    "localrule",
    "handover",
    "group_levels",
    "group_number",
    "run_many",
    "source_path",
}


@pytest.fixture(scope="module")
def runs(python):
    """{mode: (folder, what was printed, what the second run printed, {name of a task: its mode})}"""
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        bed = Bed(engine, python)
        done = {}
        for mode in ("local", *MODES):
            folder = bed.folder / mode
            shutil.copytree(HERE / "matrix", folder)
            words = (
                ["--keep-going"]
                if mode == "local"
                else ["--keep-going", "--scheduler", "hpcbatch", "--hpcbatch-mode", mode]
            )
            executor = "local" if mode == "local" else "hpcbatch"
            rows = {"HB_ROWS": " ".join(RELAUNCHED)} if mode == "relaunch" else {}
            code, text = bed.run(*words, folder=folder, executor=executor, env=rows, timeout=600)
            assert code == 0, text
            modes = bed.modes() if mode == "direct" else {}
            again = bed.run(*words, folder=folder, executor=executor, env=rows)[1]
            done[mode] = folder, text, again, modes
        yield done


def files_of(row, folder):
    # A log may be called as its row begins, and so may another row.
    others = tuple(f"logs/{other}" for other in ROWS if other != row and other.startswith(row))
    return {
        path: facts
        for path, facts in tree(folder).items()
        if re.match(rf"(out|logs|work)/{row}([ .-]|$)", path)
        or (path.startswith(f"logs/{row}") and not path.startswith(others or "\0"))
    }


@pytest.mark.parametrize(
    "row, mode", [(row, mode) for row in ROWS for mode in MODES if mode != "relaunch" or row in RELAUNCHED]
)
def test_a_row_gives_the_same_files(runs, row, mode):
    expected = files_of(row, runs["local"][0])
    assert expected, "the row left nothing to compare"
    assert files_of(row, runs[mode][0]) == expected


@pytest.mark.parametrize("mode", MODES)
def test_nothing_else_is_left_and_nothing_is_left_to_do(runs, mode):
    local, other = tree(runs["local"][0]), tree(runs[mode][0])
    if mode == "relaunch" and len(RELAUNCHED) < len(ROWS):
        assert other.items() <= local.items()
    else:
        assert other.keys() == local.keys()
        assert other == local
    assert "Nothing to be done" in runs[mode][2]
    assert not list((runs[mode][0] / ".snakemake/incomplete").glob("*"))


def test_what_can_run_direct_does(runs):
    modes = runs["direct"][3]
    wrong = {row: modes[row] for row in ROWS if row in modes and (modes[row] == "direct") == (row in NEVER_DIRECT)}
    assert not wrong
    assert sum(kind == "direct" for kind in modes.values()) > 50
    # And why not is said once for a rule.
    text = runs["direct"][1]
    assert text.count("rule script runs warm, not direct: only shell: is a command by itself") == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_benchmark_file_is_snakemakes(runs, mode):
    header, line = (pathlib.Path(runs[mode][0]) / "bench/benchmark.tsv").read_text().splitlines()
    assert header == (pathlib.Path(runs["local"][0]) / "bench/benchmark.tsv").read_text().splitlines()[0]
    values = dict(zip(header.split("\t"), line.split("\t")))
    assert float(values["s"]) >= 0 and re.fullmatch(r"\d+:\d\d:\d\d", values["h:m:s"])
    if mode == "direct":
        assert float(values["max_rss"]) > 0.5
