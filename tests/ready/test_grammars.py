"""Sizes, times and GPUs as people write them are read in one place each: doors hand texts on. What stands here beside it reads the
words of another system."""

import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.pure

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a reader of such texts cannot do without, and the files that may.
GRAMMARS = {
    "sizes": (
        r"KMGT|[\"']G[\"']: (?:3|30|1 ?<<|1024)",
        {
            "core/model/quantities.cpp",
            "plugins/schedulers/slurm/answer_lines.cpp",  # what sinfo and squeue print; a plugin knows the sdk alone
            "galaxy/hpcbatch_galaxy/words.py",  # Galaxy's own, whose bare numbers count GB
        },
    ),
    "times": (
        r"== \"ms\"|\"ms\": 0\.001",
        {
            "core/model/quantities.cpp",
            "python/hpcbatch/durations.py",  # sbatch's, whose bare numbers count minutes
        },
    ),
    "clocks of batch systems": (
        r"numbers\.at\(i\) \* |\* 24 \+ \w+\) \* 3600",
        {"core/sdk/include/hpcbatch/batch_time.hpp", "python/hpcbatch/durations.py"},
    ),
    "numbers and kinds of GPUs": (
        r"is not a number of GPUs|is no number of GPUs",
        {"core/hardware/gpu_kind.cpp", "python/hpcbatch/ways.py"},
    ),
    "ways to run a task": (
        r"does not say what is needed",
        {"core/documents/task_values.cpp", "python/hpcbatch/ways.py"},
    ),
}


def sources():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cpp", "*.hpp", "*.py"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for name in listed.stdout.split():
        if not name.startswith(("tests/", "bench/", "packaging/")) and (ROOT / name).exists():
            yield name, (ROOT / name).read_text()


@pytest.mark.parametrize("what", GRAMMARS)
def test_each_grammar_stands_in_one_place(what):
    mark, known = GRAMMARS[what]
    assert {name for name, text in sources() if re.search(mark, text)} == known


def test_what_is_made_from_the_table_of_keys_is_up_to_date():
    done = subprocess.run([ROOT / "tests/ready/task_docs"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
