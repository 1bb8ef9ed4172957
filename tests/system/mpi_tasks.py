"""Programs of MPI for tests, and the ledger in which processes of tasks say where they are, with which cpus and when."""

import collections
import os
import pathlib
import signal
import subprocess

HERE = pathlib.Path(__file__).parent
# The nodes of this cluster are one machine: what OpenMPI shares within a node would be shared by all of them. MPI
# takes every interface of a machine, and waits for ever for an address that is removed; other tests' networks come and go.
MPI_HERE = (
    "OMPI_MCA_btl=self,tcp",
    "OMPI_MCA_btl_tcp_if_include=lo",
    "OMPI_MCA_oob_tcp_if_include=lo",
    "OMPI_MCA_mpi_yield_when_idle=1",
    "UCX_NET_DEVICES=lo",
    "HYDRA_IFACE=lo",
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
)
MPI_HERE = tuple(word for variable in MPI_HERE for word in ("--env", variable))

# A process that holds cpus; rank -1: the command of a task. `cpus` are granted on its node, `mask` are those it may
# use, as bits. `end` is when it was seen last; state: d done, f failed, r neither.
Row = collections.namedtuple("Row", "kind task attempt pilot rank pid cpus mask begin end state")


class Programs:
    """`mpi` has by library its launcher and a program; `small` sleeps or runs a command, with a line in the ledger."""

    def __init__(self, folder):
        self.small = str(folder / "ledger")
        subprocess.run(["cc", "-o", self.small, HERE / "ledger.c"], check=True)
        self.mpi = {}
        for library, launcher in ("openmpi", "mpirun.openmpi"), ("mpich", "mpiexec.mpich"):
            self.mpi[library] = launcher, str(folder / library)
            subprocess.run([f"mpicc.{library}", "-o", self.mpi[library][1], HERE / "mpi_sum.c"], check=True)

    def command(self, number, seconds):
        """One MPI program or the other, with rows for itself and for its ranks."""
        return self.small, *self.mpi[("openmpi", "mpich")[number % 2]], str(seconds)


def rows_of(file):
    rows = []
    for line in file.read_text().splitlines():
        kind, task, attempt, pilot, rank, pid, cpus, mask, begin, end, state = line.split()
        facts = int(attempt), pilot, int(rank), int(pid), float(cpus), int(mask, 16), float(begin), float(end), state
        rows.append(Row(kind, task, *facts))
    return rows


def cpus_used_twice(rows, capacity):
    """Where more cpus of a pilot are in use than it has, or tasks that are bound to cpus share one; empty: nowhere.

    What a task has at a pilot is in use from the begin of the first of its processes there to the end of the last.
    """
    here = collections.defaultdict(list)
    for row in rows:
        here[row.pilot, row.task, row.attempt].append(row)
    stays = collections.defaultdict(list)
    for (pilot, *task), group in here.items():
        mask = 0
        for row in group:
            mask |= row.mask
        span = min(row.begin for row in group), max(row.end for row in group)
        stays[pilot].append((*span, group[0].cpus, mask, task))
    faults = []
    for pilot, all_there in stays.items():
        running = []
        for stay in sorted(all_there):
            running = [other for other in running if other[1] > stay[0]] + [stay]
            if sum(other[2] for other in running) > capacity:
                faults.append((pilot, running))
            if bin(stay[3]).count("1") <= stay[2] < os.cpu_count() and any(o[3] & stay[3] for o in running[:-1]):
                faults.append((pilot, "a cpu is shared", running))
    return faults


def cpu_seconds(rows, nodes_of):
    """What commands have used, each on as many nodes as its task has."""
    return sum((row.end - row.begin) * row.cpus * nodes_of(row.task) for row in rows if row.kind == "task")


def kill(row, number=signal.SIGKILL):
    """Kills the process if it is still that one; whether it did."""
    try:
        words = pathlib.Path(f"/proc/{row.pid}/environ").read_bytes().split(b"\0")
        if f"HPCBATCH_TASK_ID={row.task}".encode() not in words:
            return False
        os.kill(row.pid, number)
    except OSError:
        return False
    return True
