"""What README and docs tell people to type does what they say."""

import pathlib
import re
import shutil
import subprocess

import pytest
from engine_at_home import EngineAtHome
from programs_of_docs import blocks_of

HERE = pathlib.Path(__file__).resolve().parent.parent.parent
# The codes with which hpcbatch says that it was not understood, and a shell that there is no such program.
NOT_UNDERSTOOD = {2, 125, 126, 127}


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        yield engine


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "list").write_text("a\nb\n")
    (tmp_path / "t.csv").write_text("name,size\nx,1\ny,2\n")
    (tmp_path / "runs.jsonl").write_text('{"sample": "a"}\n{"sample": "b"}\n')
    (tmp_path / "job.sh").write_text("#!/bin/sh\necho $HPCBATCH_TASK_INDEX\n")
    (tmp_path / "tasks.toml").write_text('[[tasks]]\ncommand = ["echo", "hi"]\n')
    (tmp_path / "a.wav").touch()
    return tmp_path


def bash(shared, script, folder):
    program = pathlib.Path(shared.program).parent
    env = shared.env | {
        "PATH": f"{program}:{shared.env.get('PATH', '/usr/bin:/bin')}",
        "PYTHONPATH": str(HERE / "python"),
    }
    return subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("page, least", [("tasks", 10), ("python", 3)])
def test_blocks_of_the_pages_on_tasks_run_as_they_stand(shared, folder, page, least):
    blocks = blocks_of((HERE / f"docs/{page}.md").read_text())
    # What installs, and what is a line of a larger program, is no script.
    blocks = [block for block in blocks if not block.lstrip().startswith(("pip ", "with ", "HighThroughputExecutor"))]
    assert len(blocks) >= least
    for block in blocks:
        done = bash(shared, f"set -euo pipefail\n{block}", folder)
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"


def test_first_steps_of_the_readme_are_understood(shared, folder):
    text = re.search(r"^## First steps\n(.*?)^## ", (HERE / "README.md").read_text(), flags=re.M | re.S).group(1)
    blocks = [block for block in blocks_of(text) if "./dev" not in block]
    assert len(blocks) >= 3
    for block in blocks:
        # All in one shell, as a reader would type them; a task may well fail.
        done = bash(shared, f"trap 'echo \"$? $BASH_COMMAND\" >>wrong' ERR\n{block}", folder)
        wrong = (folder / "wrong").read_text().splitlines() if (folder / "wrong").exists() else []
        assert not [
            line for line in wrong if int(line.split()[0]) in NOT_UNDERSTOOD
        ], f"{block}\n{wrong}\n{done.stderr}"
    assert "part 7\n" in bash(shared, blocks[1], folder).stdout


def rows_of(heading):
    """(what, theirs, ours) of a table of the page for those who come from elsewhere; None where a cell is no command."""
    text = re.search(
        rf"^## From {heading}\n(.*?)(?=^## |\Z)", (HERE / "docs/coming-from.md").read_text(), flags=re.M | re.S
    ).group(1)
    rows = []
    for line in re.findall(r"^\| (.*) \|$", text, flags=re.M)[1:]:
        cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)]
        if set(cells[0]) != {"-"}:
            rows.append([cells[0], *(cell[1:-1] if re.fullmatch("`[^`]*`", cell) else None for cell in cells[1:])])
    return rows


def is_typed(command):
    return (
        command is not None and "..." not in command and (command.startswith("hpcbatch ") or "| hpcbatch " in command)
    )


@pytest.mark.parametrize("row", rows_of("GNU parallel"), ids=lambda row: row[0].replace(" ", "-"))
def test_lines_for_those_who_know_parallel(shared, folder, row):
    _, theirs, ours = row
    done = bash(shared, ours, folder)
    assert done.returncode == 0, f"{ours}\n{done.stdout}{done.stderr}"
    # Debian has another program of that name in moreutils.
    is_gnu = (
        shutil.which("parallel")
        and "GNU" in subprocess.run(["parallel", "--version"], capture_output=True, text=True).stdout
    )
    if is_gnu and "header" not in theirs:
        said = bash(shared, theirs, folder)
        assert sorted(said.stdout.split()) == sorted(done.stdout.split()), (theirs, said, done)


@pytest.mark.parametrize("heading", ["HyperQueue", "Slurm arrays"])
def test_lines_for_those_who_know_other_systems(shared, folder, heading):
    array = shared.submit("--array", "1-12", "--", "true")
    shared.wait(array)
    lines = [row[2] for row in rows_of(heading) if is_typed(row[2])]
    assert len(lines) >= 5
    for line in lines:
        done = bash(shared, re.sub(r"\b12(?=\.7|$)", array, line), folder)
        assert done.returncode in (0, 1), f"{line}\n{done.stdout}{done.stderr}"


def test_the_example_of_a_configuration_is_a_good_one(shared, folder):
    (example,) = blocks_of((HERE / "docs/configuration.md").read_text())
    (folder / "c.yaml").write_text(example)
    done = bash(shared, "hpcbatch engine run --check-config --config c.yaml", folder)
    assert done.returncode == 0, done.stderr
