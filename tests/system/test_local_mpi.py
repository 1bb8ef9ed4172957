"""Programs of MPI on one node: launchers start as many processes as the task says, and nothing runs as several of one."""

import pytest
from mpi_tasks import MPI_HERE, Programs
from slurm_commands import Commands

# As a shell script sets what tests of MPI need here.
SET_HERE = "".join(f"export {word}\n" for word in MPI_HERE if word != "--env")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("mpi"))


def run_script(home, lines, *command):
    script = home.directory / "job.sh"
    script.write_text(f"#!/bin/sh\n{lines}\n{SET_HERE}{' '.join(command)}\n")
    home.ok("submit", "--wait", "--stdout", "job.out", script, timeout=60)
    return (home.directory / "job.out").read_text().split()[:2]


def sum_over(ranks):
    return [str(ranks * (ranks + 1) // 2), str(ranks)]


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_launcher_starts_what_ntasks_says(home, programs, library):
    command = programs.mpi[library]
    # More than this machine has cpus.
    said = home.ok("run", "--ntasks", "3", "--cpus", "1", *MPI_HERE, "--", *command)
    assert said.split()[:2] == sum_over(3)
    # Others beside it are not told of its processes.
    inner = home.program, "run", "--", "sh", "-c", "echo ${SLURM_NTASKS-none} ${HYDRA_HOST_FILE-none}"
    assert home.ok("run", "--ntasks", "2", "--cpus", "1", "--", *inner).split() == ["none", "none"]


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
@pytest.mark.parametrize("lines", ["#SBATCH -n 2", "#PBS -l select=1:ncpus=1:mpiprocs=3"], ids=["slurm", "pbs"])
def test_a_launcher_starts_what_a_script_says(home, programs, lines, library):
    assert run_script(home, lines, *programs.mpi[library]) == sum_over(int(lines[-1]))


def test_a_script_of_slurm_that_says_no_tasks_starts_some_by_itself(home, programs):
    launcher, program = programs.mpi["mpich"]
    assert run_script(home, "#SBATCH -c 2", launcher, "-n", "2", program) == sum_over(2)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_what_starts_no_mpi_says_so(home, programs, library):
    program = programs.mpi[library][1]
    for words in ("srun", "-n", "2"), (home.program, "node-run"):
        env = Commands(home).env
        done = home.verb("run", "--ntasks", "2", *MPI_HERE, "--", *words, program, **env)
        assert done.code != 0 and done.out == "", (words, done)
        assert "mpirun" in done.err or "direct launched" in done.err, (words, done.err)
    if library == "mpich":
        alone = home.ok("run", "--ntasks", "2", *MPI_HERE, "--", "srun", "--mpi=none", program)
        assert alone.split()[:2] == sum_over(1)
