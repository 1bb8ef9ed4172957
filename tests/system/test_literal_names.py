"""Braces of names that nobody has written for hpcbatch stay what they are: of the caller's folder, and in words of batch systems."""

import subprocess
import sys

import pytest
from engine_at_home import ROOT
from slurm_commands import Commands

FOLDERS = ["d{id}", "{}", "a{{b}}", "{index}.{node}", "x}}"]


@pytest.fixture
def commands(home):
    return Commands(home)


@pytest.fixture(params=FOLDERS)
def folder(request, home):
    path = home.directory / request.param
    path.mkdir()
    return path


def in_folder(commands, folder, *words):
    done = subprocess.run(words, cwd=folder, env=commands.env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def test_of_the_callers_folder(commands, folder):
    home = commands.home
    (folder / "job.sh").write_text(
        '#!/bin/sh\n#SBATCH -o batch.txt\necho $SLURM_SUBMIT_DIR; pwd; [ $# -eq 0 ] || echo "$*"\n'
    )
    (folder / "tasks.yaml").write_text("tasks:\n- command: [sh, -c, 'echo file > file.txt']\n  stdout: of-file.txt\n")
    (folder / "in.txt").write_text("input\n")
    jobs = [
        in_folder(commands, folder, "sbatch", "--parsable", "job.sh"),
        in_folder(commands, folder, "sbatch", "--parsable", "-a", "0-1", "-o", "%N.%a", "--wrap", "pwd"),
        in_folder(commands, folder, "sbatch", "--parsable", "-a", "2", "-o", "words", "job.sh", "{id}", "{}"),
    ]
    home.ok("submit", "--wait", "--stdout", "out.txt", "--stdin", "in.txt", "--", "sh", "-c", "cat; pwd", cwd=folder)
    home.ok(
        "submit",
        "--wait",
        "--items",
        "a",
        "b",
        "--stdout",
        "out.{}",
        "--",
        "sh",
        "-c",
        'echo "$1"; pwd',
        "sh",
        "{}",
        cwd=folder,
    )
    home.ok(
        "submit",
        "--wait",
        "--array",
        "3",
        "--input",
        "i=in.txt",
        "--output",
        "o=out.{index}",
        "--",
        "cp",
        "i",
        "o",
        cwd=folder,
    )
    home.ok("run", "--input", "i=in.txt", "--output", "o=out.one", "--", "cp", "i", "o", cwd=folder)
    home.ok("submit", "--wait", "--file", "tasks.yaml", cwd=folder)
    home.ok("submit", "--wait", "--cwd", "sub", "--stdout", "s", "--", "pwd", cwd=folder) if (
        folder / "sub"
    ).mkdir() is None else None
    python = (
        "import hpcbatch\n"
        "hpcbatch.submit(['pwd'], stdout='python.txt').wait()\n"
        "hpcbatch.submit(['pwd'], items=['p'], stdout='python.{}').wait()\n"
        "from hpcbatch.executor import Executor\n"
        "with Executor() as executor:\n    assert executor.submit(abs, -1).result() == 1\n"
    )
    subprocess.run(
        [sys.executable, "-c", python],
        cwd=folder,
        env=home.env | {"PYTHONPATH": str(ROOT / "python")},
        check=True,
        timeout=60,
    )
    commands.wait(*jobs)
    node = in_folder(commands, folder, "uname", "-n").split(".")[0]
    left = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    del left["job.sh"], left["tasks.yaml"], left["in.txt"]
    here = f"{folder}\n"
    assert left == {
        "batch.txt": here * 2,
        "words": here * 2 + "{id} {}\n",
        f"{node}.0": here,
        f"{node}.1": here,
        "out.txt": "input\n" + here,
        "out.a": "a\n" + here,
        "out.b": "b\n" + here,
        "out.3": "input\n",
        "out.one": "input\n",
        "file.txt": "file\n",
        "of-file.txt": "",
        "sub/s": f"{folder}/sub\n",
        "python.txt": here,
        "python.p": here,
    }


def test_in_words_of_batch_systems(commands):
    home = commands.home
    place = home.directory
    (place / "w{id}").mkdir()
    (place / "job.sh").write_text(
        "#!/bin/sh\n#SBATCH -o out_{id}_{foo}.%x -J 'a{item}' -D w{id}\necho $SLURM_JOB_NAME\n"
    )
    (place / "pbs.sh").write_text("#!/bin/sh\n#PBS -N p{id} -J 1-2 -o 'p{id}_^array_index^.txt'\necho $PBS_JOBNAME\n")
    job = commands.submit("job.sh")
    array = commands.submit("-a", "1-2", "-o", "{number}_{%a}", "-J", "{index}", "--wrap", "echo $SLURM_JOB_NAME")
    pbs = home.ok("submit", "pbs.sh", cwd=place).strip()
    commands.wait(job, array)
    assert home.wait(pbs) == 0
    assert (place / "w{id}/out_{id}_{foo}.a{item}").read_text() == "a{item}\n"
    assert [(place / f"{{number}}_{{{n}}}").read_text() for n in (1, 2)] == ["{index}\n"] * 2
    assert [(place / f"p{{id}}_{n}.txt").read_text() for n in (1, 2)] == ["p{id}\n"] * 2
    names = commands.ok("sacct", "-X", "-n", "-P", "-o", "JobName", "-j", f"{job},{array}").split()
    assert names == ["a{item}", "{index}", "{index}"]


def test_a_doubled_brace_is_one(home):
    place = home.directory
    home.ok("submit", "--wait", "--stdout", "x{{id}}", "--name", "n{{id}}", "--", "echo", "hello")
    home.ok("submit", "--wait", "--items", "a", "--stdout", "{{{}}}", "--", "echo", "{{}}")
    found = {path.name: path.read_text() for path in place.iterdir() if path.name.startswith(("x", "{"))}
    assert found == {"x{id}": "hello\n", "{a}": "{a}\n"}
    done = home.verb("submit", "--stdout", "x{foo}", "--", "true")
    assert done.code == 2 and "doubled: {{ or }}" in done.err, done
