"""Tasks over several nodes of a real SLURM: what their commands see and start, MPI, and all that ends them."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from bed import Slurm
from engine_at_home import PREFIX, ROOT, processes_with, wait_until
from slurm_commands import Commands
from slurm_site import SlurmSite

WIDE = {"name": "wide", "partition": "cpu", "nodes": 4, "cpus": 4, "memory": "2G", "walltime": "30m"}
HPCBATCH = str(PREFIX / "bin/hpcbatch")


@pytest.fixture(scope="module")
def cluster():
    with Slurm("--fast", "--nodes", "8", "--gpus", "v100:1") as slurm:
        yield slurm


@pytest.fixture
def wide(cluster):
    with SlurmSite(cluster, WIDE, idle_after="30s", lost_after="20s") as site:
        yield site
        must_have_left_nothing(site)


def must_have_left_nothing(site):
    """No process of a task and none of its files, on any node."""

    def left():
        alive = {pid: line for pid, line in processes_with(str(site.directory)).items() if "node-agent" in line}
        return alive or list((site.directory / "w" / "work").glob("*.nodes-*"))

    wait_until(lambda: not left(), 15, "the end of what tasks had on their nodes")


def run(site, *words, **options):
    return site.verb("run", *words, **options)


def test_a_command_is_told_of_its_nodes_and_starts_on_each(wide):
    seen = run(wide, "--nodes", "3", "--cpus", "2", "--", "sh", "-c", "env; cat $PBS_NODEFILE")
    assert seen.code == 0, seen.err
    told = dict(line.split("=", 1) for line in seen.out.splitlines() if "=" in line)
    names = told["HPCBATCH_NODES"].split(",")
    assert len(set(names)) == 3 and set(names) <= {"n1", "n2", "n3", "n4"}
    assert told["SLURM_JOB_NODELIST"] == told["HPCBATCH_NODES"] and told["SLURM_NNODES"] == "3"
    assert told["SLURM_TASKS_PER_NODE"] == "2(x3)" and told["SLURM_NTASKS"] == "6"
    assert seen.out.splitlines()[-6:] == [name for name in names for _ in range(2)]

    each = run(wide, "--nodes", "3", "--", HPCBATCH, "node-run", "sh", "-c", "echo $HPCBATCH_RANK $HPCBATCH_PILOT")
    assert each.code == 0, each.err
    ranks = dict(line.split() for line in each.out.splitlines())
    assert sorted(ranks) == ["0", "1", "2"] and len(set(ranks.values())) == 3

    four = "$HPCBATCH_NODE_RUN -n 4 sh -c 'echo $HPCBATCH_NODE_INDEX; exit $HPCBATCH_RANK'"
    some = run(wide, "--nodes", "2", "--ntasks-per-node", "2", "--", "sh", "-c", four)
    assert some.code == 3 and sorted(some.out.split()) == ["0", "0", "1", "1"]
    shared = run(wide, "--nodes", "2", "--ntasks", "3", "--cpus", "4", "--", "sh", "-c", "echo $OMP_NUM_THREADS")
    assert shared.out == "2\n", "eight cpus for three processes"

    # Input goes to the first rank; streams and exit codes come from the right places.
    second = "$HPCBATCH_NODE_RUN -w ${HPCBATCH_NODES#*,} sh -c 'cat; echo bad >&2; exit 7'"
    relayed = run(wide, "--nodes", "2", "--", "sh", "-c", f"echo given | {second}")
    assert (relayed.code, relayed.out) == (7, "given\n") and "bad" in relayed.err
    many = run(wide, "--nodes", "2", "--", "sh", "-c", "$HPCBATCH_NODE_RUN -w ${HPCBATCH_NODES#*,} seq 300000 | md5sum")
    here = subprocess.run("seq 300000 | md5sum", shell=True, capture_output=True, text=True, check=True)
    assert many.out == here.stdout
    missing = run(wide, "--nodes", "2", "--", HPCBATCH, "node-run", "/no/such/program")
    assert missing.code == 127 and "/no/such/program" in missing.err

    assert wide.verb("submit", "--nodes", "5", "--", "true").code == 2
    assert "5 nodes at once where its batch jobs have 4" in wide.verb("submit", "--nodes", "5", "--", "true").err
    outside = wide.verb("node-run", "true")
    assert outside.code == 2 and "this is no task" in outside.err


def test_one_node_is_a_number_of_nodes_too(wide):
    two = run(
        wide,
        "--nodes",
        "1",
        "--ntasks",
        "2",
        "--",
        HPCBATCH,
        "node-run",
        "sh",
        "-c",
        "echo $HPCBATCH_RANK of $HPCBATCH_RANKS",
    )
    assert two.code == 0 and sorted(two.out.splitlines()) == ["0 of 2", "1 of 2"], two.err
    once = run(wide, "--nodes", "1", "--", HPCBATCH, "node-run", "sh", "-c", "echo $HPCBATCH_NODE_INDEX; exit 3")
    assert (once.code, once.out) == (3, "0\n"), once.err
    assert run(wide, "--", HPCBATCH, "node-run", "-N", "2", "true").code == 2


def test_what_a_task_submits_does_not_find_its_nodes(wide):
    inner = f"env | grep -E '^(HPCBATCH_N|HPCBATCH_RANK|SLURM_N|PBS_|OMPI_|PRTE_|HYDRA_)'; {HPCBATCH} node-run -n 2 echo here"
    seen = run(wide, "--nodes", "2", "--", HPCBATCH, "node-run", HPCBATCH, "run", "--", "sh", "-c", inner)
    assert seen.code == 0 and seen.out.split() == ["here"] * 4, seen.out + seen.err


def test_a_job_script_has_its_nodes_and_steps_on_them(wide):
    script = wide.directory / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=2 -o job.out\n"
        "echo $SLURM_NNODES $SLURM_NTASKS $SLURM_CPUS_ON_NODE $SLURM_JOB_NODELIST\n"
        "srun -l sh -c 'echo $SLURMD_NODENAME $HPCBATCH_NODE_INDEX.$SLURM_LOCALID of $SLURM_NTASKS'\n"
        "srun -n 2 -o step.%t.%N sh -c 'echo $SLURM_PROCID'\n"
        "srun -n 1 -w ${SLURM_JOB_NODELIST#*,} sh -c 'echo $HPCBATCH_PILOT; exit 4'; echo code $?\n"
        "for i in 1 2; do srun -N 1 -n 2 --exact sh -c 'echo farm $SLURMD_NODENAME; sleep 1' & done; wait\n"
        "srun -N 3 true || echo refused\n"
    )
    commands = Commands(wide)
    job = commands.submit(script)
    commands.wait(job)
    lines = (wide.directory / "job.out").read_text().splitlines()
    count, ranks, cpus, names = lines[0].split()
    first, second = names.split(",")
    assert (count, ranks, cpus) == ("2", "4", "2")
    places = [f"{first} 0.0", f"{first} 0.1", f"{second} 1.0", f"{second} 1.1"]
    assert sorted(lines[1:5]) == [f"{rank}: {place} of 4" for rank, place in enumerate(places)]
    assert [(wide.directory / f"step.{r}.{n}").read_text() for r, n in ((0, first), (1, second))] == ["0\n", "1\n"]
    assert "code 4" in lines and lines[-1] == "refused"
    assert sorted(line for line in lines if line.startswith("farm")) == sorted(2 * [f"farm {first}", f"farm {second}"])


CALLS = """
import os, subprocess
from hpcbatch import Executor
def each(word):
    told = subprocess.run([os.environ["HPCBATCH_NODE_RUN"], "echo", word], capture_output=True, text=True, check=True)
    return os.environ["HPCBATCH_NODES"].count(","), told.stdout.split()
if __name__ == "__main__":
    with Executor(nodes=3, name="calls") as executor:
        assert list(executor.map(each, ["a", "b"])) == [(2, ["a"] * 3), (2, ["b"] * 3)]
"""


def test_calls_of_python_have_several_nodes(wide):
    file = wide.directory / "calls.py"
    file.write_text(CALLS)
    environment = wide.env | {"PYTHONPATH": str(ROOT / "python"), "HPCBATCH_PROGRAM": HPCBATCH}
    done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# The sleeping processes of a task, known by a number that no other has.
def sleepers(seconds):
    return [pid for pid, line in processes_with(f"sleep\0{seconds}").items() if line == f"sleep {seconds}"]


def pilot_of_node(site, name):
    """The pilot there and its keeper."""
    found = []
    for pid in site.pilot_pids():
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        if f"SLURMD_NODENAME={name}\0".encode() in environment:
            found.append(pid)
    return found


def submit_sleepers(site, seconds, *words):
    """A task that sleeps on two nodes; the number is its own."""
    task = site.submit("--nodes", "2", "--cpus", "4", *words, "--", HPCBATCH, "node-run", "sleep", str(seconds))
    wait_until(lambda: len(sleepers(seconds)) == 2, 60, "both of its processes")
    return task


def test_cancel_and_limits_end_all_of_it(wide):
    task = submit_sleepers(wide, 3117)
    wide.ok("cancel", task)
    assert wide.wait(task) == 1
    wait_until(lambda: not sleepers(3117), 15, "the end of its processes")
    assert wide.show(task)["state"] == "cancelled"

    task = submit_sleepers(wide, 3118, "--time", "3s")
    assert wide.wait(task, timeout=60) == 1
    wait_until(lambda: not sleepers(3118), 15, "the end of its processes")
    assert "time_task" in wide.ok("explain", task)

    # On the node that is not its head.
    hog = "import time; held = bytearray(600 << 20); time.sleep(60)"
    greedy = f'$HPCBATCH_NODE_RUN -w ${{HPCBATCH_NODES#*,}} python3 -c "{hog}"'
    task = wide.submit("--nodes", "2", "--mem", "200M", "--", "sh", "-c", greedy)
    assert wide.wait(task, timeout=60) == 1
    assert re.search("oom_task.*node n[1-4] of it was lost", wide.ok("explain", task), re.S), wide.ok("explain", task)


def test_a_killed_pilot_ends_it_as_node_lost_and_it_runs_again(wide):
    flag = wide.directory / "flag"
    again = f"$HPCBATCH_NODE_RUN sh -c 'test -e {flag} || sleep 3119; echo done'"
    task = wide.submit("--nodes", "2", "--cpus", "4", "--", "sh", "-c", f"echo $HPCBATCH_NODES; {again}")
    wait_until(lambda: len(sleepers(3119)) == 2, 60, "both of its processes")
    [first] = [line for line in wide.ok("log", task).splitlines() if "," in line]
    flag.touch()
    for pid in pilot_of_node(wide, first.split(",")[1]):
        os.kill(pid, signal.SIGKILL)
    assert wide.wait(task, timeout=90) == 0, wide.log_end()
    attempts = wide.ok("explain", task) + wide.ok("show", task)
    assert "node_lost" in attempts, attempts
    wait_until(lambda: not sleepers(3119), 15, "the end of the first attempt")
    assert wide.ok("log", task).splitlines()[-2:] == ["done", "done"]


def test_an_engine_that_dies_loses_none(wide):
    task = submit_sleepers(wide, 7)
    wide.kill_engine()
    wide.ok("engine", "start")
    assert wide.wait(task, timeout=60) == 0
    assert "attempt 2" not in wide.ok("show", task)
