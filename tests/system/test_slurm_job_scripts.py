"""Job scripts as people write them: each by sbatch and by us, and both leave the same. What stands behind `#:` are words for sbatch:
variables, options, `<` for a script on standard input, `@` for its place among them."""

import pathlib
import re
import shlex
import socket
import subprocess

import pytest
from engine_at_home import EngineAtHome, wait_until
from slurm_commands import Commands

FOLDER = pathlib.Path(__file__).parent / "job_scripts"
NAMES = sorted(script.stem for script in FOLDER.glob("*.sh"))
OURS = r"2000000\d{3}"
# What is the same for both, or is there for neither.
COMPARED = """ARRAY_TASK_COUNT ARRAY_TASK_ID ARRAY_TASK_MAX ARRAY_TASK_MIN ARRAY_TASK_STEP CPUS_ON_NODE CPUS_PER_GPU CPUS_PER_TASK
DISTRIBUTION EXPORT_ENV GET_USER_ENV GPUS GPUS_ON_NODE GTIDS HINT JOB_CPUS_PER_NODE JOB_DEPENDENCY JOB_GID JOB_NAME JOB_NUM_NODES
JOB_UID JOB_USER LOCALID MEM_PER_CPU MEM_PER_GPU MEM_PER_NODE NNODES NODEID NPROCS NTASKS NTASKS_PER_NODE OPEN_MODE OVERCOMMIT
PROCID RESTART_COUNT SUBMIT_DIR TASKS_PER_NODE THREADS_PER_CORE""".split()
VARIABLES = {"A_VARIABLE": "one", "C_VARIABLE": "three"}
SAY = "env | grep '^SLURM_' | sort > \"$SLURM_SUBMIT_DIR/vars.${SLURM_ARRAY_TASK_ID:-x}\"\n"


def with_variables(text):
    """The script, which writes its variables before its first command; one of another language as it is."""
    lines = text.splitlines(keepends=True)
    if not re.match(r"#!.*sh\b", lines[0]):
        return text
    at = next(i for i, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    return "".join(lines[:at]) + SAY + "".join(lines[at:])


def put(folder, name):
    place = folder / name
    place.mkdir(parents=True)
    (place / f"{name}.sh").write_text(with_variables((FOLDER / f"{name}.sh").read_text()))
    (place / "input.txt").write_text("letters\n")
    (place / "folder").mkdir()
    (place / "link").symlink_to("folder")
    return place


def words_of(name):
    """Variables, words of sbatch, and its standard input; nothing where the script has none."""
    said = re.search("^#: (.*)$", (FOLDER / f"{name}.sh").read_text(), re.MULTILINE)
    if said is None:
        return None
    words = shlex.split(said[1])
    variables = {}
    while words and re.match("[A-Z_]+=", words[0]):
        variable, value = words.pop(0).split("=", 1)
        variables[variable] = value
    if words == ["<"]:
        return variables, [], True
    return (
        variables,
        [f"{name}.sh" if word == "@" else word for word in (words if "@" in words else [*words, "@"])],
        False,
    )


def sbatch(name, place, env):
    variables, words, is_piped = words_of(name) or ({}, [f"{name}.sh"], False)
    text = (place / f"{name}.sh").read_text() if is_piped else None
    done = subprocess.run(
        ["sbatch", "--parsable", *words],
        cwd=place,
        env=env | variables,
        input=text,
        stdin=None if is_piped else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (name, done.stderr)
    return done.stdout.strip()


def left_in(place, numbers):
    """What lies there after the job, numbers and hosts apart."""
    found = {}
    script = (place / f"{place.name}.sh").read_text()
    for file in sorted(place.rglob("*")):
        name = str(file.relative_to(place))
        if file.is_dir() or name.startswith("slurm-") or name == f"{place.name}.sh":
            continue
        text = file.read_text()
        for what in (str(place.resolve()), str(place)):
            text = text.replace(what, "PLACE")
        if re.search("%[Aj]", script):
            name = re.sub(rf"(?<!\d){numbers}(?!\d)", "NUMBER", name)
        if name.startswith("vars."):
            pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
            text = {one: pairs.get(f"SLURM_{one}") for one in COMPARED}
            # The bed gives each job 500 MB a cpu where it says nothing; we give its cpus' share.
            if "--mem" not in script:
                del text["MEM_PER_CPU"], text["MEM_PER_NODE"]
        found[name] = text
    return found


@pytest.fixture(scope="module")
def theirs(slurm, tmp_path_factory):
    """What sbatch left of each script, and whether it ended well."""
    folder = tmp_path_factory.mktemp("theirs")
    kept = {name: value for name, value in slurm.env.items() if name == "SLURM_CONF" or not name.startswith("SLURM_")}
    numbers = {}
    for name in NAMES:
        place = put(folder, name)
        numbers[name] = sbatch(name, place, kept | VARIABLES)
    ended = {}

    def look():
        """Whether all jobs of each array ended well, by its number; none while one has not ended."""
        ended.clear()
        asked = "squeue", "-a", "-h", "-r", "-t", "all", "-j", ",".join(numbers.values()), "-o", "%F|%T"
        for line in slurm.ask(*asked).splitlines():
            number, state = line.split("|")
            if state in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                return False
            ended[number] = ended.get(number, True) and state == "COMPLETED"
        return True

    wait_until(look, 240, "all jobs' end")
    return {name: (left_in(folder / name, number), ended[number]) for name, number in numbers.items()}


@pytest.fixture(scope="module")
def engine():
    with EngineAtHome(**VARIABLES) as home:
        yield home


@pytest.fixture(scope="module")
def ours(engine, tmp_path_factory):
    """The same by hpcbatch submit, all at once; by our sbatch where there are words for it."""
    folder = tmp_path_factory.mktemp("ours")
    tasks = {}
    commands = Commands(engine)
    for name in NAMES:
        place = put(folder, name)
        if words_of(name) is not None:
            tasks[name] = str(int(sbatch(name, place, commands.env)) - 2_000_000_000)
            continue
        done = engine.verb("submit", f"{name}.sh", cwd=place)
        assert done.code == 0, (name, done.err)
        tasks[name] = done.out.strip()
    ended = {name: engine.wait(task) == 0 for name, task in tasks.items()}
    return {name: (left_in(folder / name, OURS), ended[name]) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_script_leaves_what_it_leaves_under_slurm(name, theirs, ours):
    assert ours[name] == theirs[name]


def test_hosts_and_numbers_are_there(engine, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH -a 0-1 -o %N.%a\n#SBATCH -c 1\n"
        "echo $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURMD_NODENAME; [ -d $SLURM_TMPDIR ] && touch $TMPDIR/x\n"
    )
    task = engine.verb("submit", "job.sh", cwd=tmp_path).out.strip()
    assert engine.wait(task) == 0
    host, first = socket.gethostname().split(".")[0], 2_000_000_000 + int(task)
    for index in (0, 1):
        assert (tmp_path / f"{host}.{index}").read_text() == f"{first + index} {first} {host}\n"
    after = engine.verb("submit", "--", "true").out.strip()
    assert int(after) == int(task) + 2, "an array takes as many ids as it has tasks"


def test_a_job_of_pbs_begins_at_home(engine, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\n#PBS -N fit\n#PBS -l select=1:ncpus=2:mem=100mb\n#PBS -j oe -o out.txt\n"
        'echo "$PWD $NCPUS $PBS_JOBNAME $PBS_ENVIRONMENT $(wc -l < $PBS_NODEFILE)"; cd $PBS_O_WORKDIR && echo $PBS_JOBID > id\n'
    )
    done = engine.verb("submit", "job.sh", cwd=tmp_path)
    assert engine.wait(done.out.strip()) == 0, done
    assert (tmp_path / "out.txt").read_text() == f"{engine.env['HOME']} 2 fit PBS_BATCH 1\n"
    assert (tmp_path / "id").read_text() == f"{2_000_000_000 + int(done.out)}.hpcbatch\n"


def test_a_signal_comes_before_the_end_of_its_time(engine, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH -t 1 --signal=B:USR1@57 -o out.txt\ntrap 'echo saved; exit 0' USR1\nwhile :; do sleep 0.1; done\n"
    )
    assert engine.wait(engine.verb("submit", "job.sh", cwd=tmp_path).out.strip()) == 0
    assert (tmp_path / "out.txt").read_text() == "saved\n"
