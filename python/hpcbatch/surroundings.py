"""What a submit says of who sends it: user, environment, umask, and the task in which that runs; as the command line says it."""

from __future__ import annotations

import os
from collections.abc import Mapping

# Of a shell, or given to each task by its pilot: without them a user's submits share one stored environment.
_NOT_HANDED_ON = frozenset(
    "_ SHLVL OLDPWD PWD TMPDIR HPCBATCH_TASK_ID HPCBATCH_TASK_INDEX HPCBATCH_ATTEMPT HPCBATCH_CPUS HPCBATCH_MEM_MB"
    " HPCBATCH_GPUS HPCBATCH_GPU_KIND HPCBATCH_METRICS HPCBATCH_PILOT HPCBATCH_SITE HPCBATCH_SERVICE"
    " HPCBATCH_SCRIPT HPCBATCH_BATCH_NUMBER HPCBATCH_DEADLINE HPCBATCH_NODES HPCBATCH_NODE_RUN HPCBATCH_NODES_FOLDER"
    " HPCBATCH_NODE_INDEX HPCBATCH_NTASKS HPCBATCH_RANK HPCBATCH_RANKS".split()
)
# Only where the caller itself is a task; else they are the user's own settings.
_NOT_HANDED_ON_BY_TASKS = frozenset(
    "OMP_NUM_THREADS CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK".split()
)
# What begins so is told to a task over several nodes, or to its ranks by what has started them.
_OF_NODES = tuple(
    "SLURM_ PBS_NODEFILE OMPI_MCA_plm OMPI_MCA_ras OMPI_MCA_orte_ OMPI_MCA_hwloc_base_binding_policy OMPI_COMM_WORLD_ PRTE_MCA_ "
    "HYDRA_ I_MPI_HYDRA_ I_MPI_PIN PMI_ PMIX_".split()
)


def user_name() -> str:
    """As the command line calls who submits: by the uid, as cron sets no USER; of one who is in no list of users by that."""
    import pwd

    try:
        listed = pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, OSError):
        listed = ""
    return listed or os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())


def _path_here(environment: Mapping[str, str]) -> str | None:
    """The path by which the user came here, where the kernel calls the folder otherwise."""
    path = environment.get("PWD", "")
    try:
        return path if path.startswith("/") and path != os.getcwd() and os.path.samefile(path, ".") else None
    except OSError:
        return None


def handed_on(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The caller's environment as tasks are to have it."""
    is_task = "HPCBATCH_TASK_ID" in environment
    in_slurm = "SLURM_JOB_ID" in environment
    in_pbs = "PBS_JOBID" in environment
    on_nodes = "HPCBATCH_NODES_FOLDER" in environment
    kept = {}
    for name, value in environment.items():
        if name in _NOT_HANDED_ON or (is_task and name in _NOT_HANDED_ON_BY_TASKS):
            continue
        if on_nodes and name.startswith(_OF_NODES) and name != "SLURM_CONF":
            continue
        if in_slurm and name.startswith(("SLURM_", "SLURMD_")) and name != "SLURM_CONF":
            continue
        if (in_slurm or in_pbs) and name == "ENVIRONMENT" and value == "BATCH":
            continue
        if in_pbs and (name.startswith("PBS_") or name == "NCPUS"):
            continue
        # What starts a parallel program sets these for each of its processes.
        if (in_pbs or "SLURM_STEP_ID" in environment) and name.startswith(("PMI_", "PMIX_", "PALS_")):
            continue
        kept[name] = value
    if (path := _path_here(environment)) is not None:
        kept["PWD"] = path
    return kept


def own_task(environment: Mapping[str, str] = os.environ) -> dict[str, str] | None:
    """The task in which this process runs, as a submit names it; None outside of one."""
    task, pilot = environment.get("HPCBATCH_TASK_ID"), environment.get("HPCBATCH_PILOT")
    return {"task": task, "pilot": pilot} if task and pilot else None


def own_umask() -> int | None:
    """As tasks are to have it; None where the kernel does not say.  Read, not set and set back: other threads make files."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return None
