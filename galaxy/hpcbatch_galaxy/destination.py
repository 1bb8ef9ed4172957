"""A destination's parameters as an engine's task asks for them.  Pure."""

import difflib
import fnmatch

from . import native
from .words import Refusal, number, seconds, size, whole

# A Galaxy that is kept warm by the pilot; the job script; a process of its own beside the server, or Celery, as Galaxy is configured;
# the server itself.
METADATA = ("warm", "job", "external", "server")
# Galaxy's directories are on the site's file system; or a job's files are brought there and back.
STAGE = ("shared", "copy")
# name: what it is, for the documentation and for hints.
PARAMETERS = {
    "cores": "cpus of the job, also a part of one",
    "mem": "memory; a bare number counts in GB",
    "nodes": "nodes that the job gets at once; cores, mem and gpus are those of each",
    "ntasks": "processes that the job starts on all nodes together (MPI); without cores each has a cpu",
    "ntasks_per_node": "the same, of each node",
    "gpus": "GPUs: a number, or for example a100:2",
    "gpu_type": "the kind of these GPUs, or of several: a100|h100",
    "gpu_memory": "only kinds of GPU with so much memory, as 40G",
    "gpu_capability": "only kinds of GPU with CUDA's compute capability, as 8.0, or a newer one",
    "one_of": "ways that would all do, the best first, in place of cores and gpus: gpus=1,cpus=4; cpus=16",
    "walltime": "limit of the job's time",
    "site": "the one site of the engine that may run it",
    "not_sites": "sites of the engine that may not run it, with commas",
    "partition": "the partition (queue) of the pilots that may run it",
    "constraint": "a feature that the node must have",
    "pilot_tags": "tags that the site's shape must have, with commas",
    "priority": "goes before jobs of lower numbers",
    "max_retries": "tries again after failures of its own, besides those that are not its fault",
    "native_specification": "options of sbatch",
    "metadata": "who sets the metadata: " + ", ".join(METADATA),
    "embed_metadata_in_job": "false: metadata is 'external'",
    "stage": "'shared': Galaxy's directories are on the site's file system; 'copy': a job's files go there and come back",
}
# As other runners call the same.
_ALIASES = {
    "native_specification": (
        "nativeSpecification",
        "submit_native_specification",
        "submit_nativeSpecification",
        "job_native_specification",
    ),
    "cores": ("request_cpus", "job_cpus_per_task", "submit_request_cpus", "local_slots"),
    "mem": ("request_memory", "job_mem", "submit_request_memory"),
    "walltime": ("job_time", "submit_walltime"),
    "partition": ("job_partition", "queue", "submit_queue"),
    "gpus": ("request_gpus", "submit_request_gpus"),
    # Below `params:` alone: Galaxy has tags of its own for an environment.
    "pilot_tags": ("tags",),
}
# A bare number is in these units where it is not in GB.
_UNITS = {"request_memory": "M", "submit_request_memory": "M", "job_mem": "M"}
# Read by Galaxy itself, whatever the runner.
_GALAXYS = (
    "singularity_*",
    "docker_*",
    "container",
    "container_override",
    "container_resolvers",
    "container_resolvers_config_file",
    "container_monitor*",
    "require_container",
    "tmp_dir",
    "shared_home_dir",
    "cleanup_job",
    "metadata_strategy",
    "outputs_to_working_directory",
    "object_store_id",
    "galaxy_infrastructure_url",
    "retry_metadata_internally",
    "retry_interactivetool_metadata_internally",
    "tool_evaluation_strategy",
    "use_metadata_binary",
    "check_job_script_integrity*",
    "enabled",
    "id",
    "tpv_*",
    "resubmit",
    "env",
    "metrics",
    "job_script_*",
    "__*",
)
# Galaxy's own, by the values that cannot be had with `stage: copy`.
_NOT_COPIED = {
    "outputs_to_working_directory": (
        "false",
        "what comes back is put into the job's directory, from where Galaxy takes it: leave it out",
    ),
    "docker_enabled": ("true", "Docker does not see where the site keeps the inputs: use Singularity"),
}


class Wanted:
    """What a destination says: `task` are keys of an engine's task, `left_out` options that only the site can say."""

    def __init__(self):
        self.task = {}
        self.memory_per_cpu = None  # bytes, until the cpus are known
        self.says_gpus = False
        self.unknown = []
        self.metadata = METADATA[0]
        self.stage = STAGE[0]
        self.left_out = []

    @property
    def leaves_cpus_to_engine(self):
        """By the way that it takes of several, or by the processes of MPI."""
        processes = "ntasks" in self.task or "ntasks_per_node" in self.task
        return "one_of" in self.task or (processes and "cpus" not in self.task)

    @property
    def slots(self):
        """GALAXY_SLOTS, as a shell reads it; what it was given where the engine finds how many."""
        if self.leaves_cpus_to_engine:
            return "${HPCBATCH_CPUS%.*}"
        return max(1, int(self.task.get("cpus", 1)))


def _truth(name, value):
    text = str(value).strip().lower()
    if text in ("true", "yes", "on", "1"):
        return True
    if text in ("false", "no", "off", "0"):
        return False
    raise Refusal(f"{name}: {value!r} is neither true nor false")


def _is_galaxys(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _GALAXYS)


def containers_of(params):
    """Those of the kinds of containers that are switched on, as Galaxy reads them: `singularity_enabled`."""
    return sorted(
        name
        for name, value in params.items()
        if name in ("docker_enabled", "singularity_enabled")
        and str(value).strip().lower() in ("true", "yes", "on", "1", "t", "y")
    )


def canonical(name):
    """Our own name of a parameter; None for one of Galaxy's.  Raises Refusal where it is unknown, with what was meant."""
    if name in PARAMETERS:
        return name
    for own, others in _ALIASES.items():
        if name in others:
            return own
    if _is_galaxys(name):
        return None
    known = [
        *PARAMETERS,
        *(alias for others in _ALIASES.values() for alias in others),
        *(pattern for pattern in _GALAXYS if "*" not in pattern),
    ]
    meant = difflib.get_close_matches(name, known, 1, 0.6)
    hint = f"did you mean {meant[0]!r}?" if meant else "known are " + ", ".join(sorted(PARAMETERS))
    raise Refusal(f"{name!r} is no parameter of a destination of hpcbatch: {hint}")


def _gpus(value, kind):
    """As the engine reads it; a number that is said beside its kind goes behind that."""
    text = str(value).strip()
    if isinstance(value, dict) or not text.replace(".", "", 1).isdigit():
        return value if isinstance(value, dict) else text
    # TPV takes fractions; a GPU is given whole.
    count = int(-(-number("gpus", text) // 1))
    return f"{kind}:{count}" if kind and count else count


def _read_open_device(said, wanted):
    """What leaves open on which device a job runs: kinds of GPU by what they have, and ways that would all do."""
    task = wanted.task
    for name in ("gpu_memory", "gpu_capability", "one_of"):
        if name in said:
            if name == "one_of" and ("cpus" in task or wanted.says_gpus):
                raise Refusal("one_of: say cores and GPUs in each way, not beside it")
            task[name] = str(said[name])
            wanted.says_gpus = True


def _tags_of(partition, constraint):
    """One of several partitions is enough (`a,b`), of features joined by & a shape has all."""
    said = (("partition", partition), ("constraint", constraint))
    return [f"{key}={''.join(str(value).split())}" for key, value in said if value]


def _check_copy(params, said):
    """What needs Galaxy where the job runs does not go with it."""
    if str(said.get("metadata")) in ("warm", "job"):
        raise Refusal(
            f"metadata: {str(said['metadata'])!r} needs Galaxy at the site, which stage: copy is there to do without: "
            "write external or server, or leave it out"
        )
    if _truth("embed_metadata_in_job", said.get("embed_metadata_in_job", False)):
        raise Refusal(
            "embed_metadata_in_job: true needs Galaxy at the site, which stage: copy is there to do without: leave it out"
        )
    for name, why in _NOT_COPIED.items():
        value = params.get(name)
        if value is not None and str(value).strip().lower() == why[0]:
            raise Refusal(f"{name}: {value!r} does not go with stage: copy: {why[1]}")


def read(params, is_strict=True):
    """`params`: of one destination, by name; values are texts or numbers.  Raises Refusal; for names that nobody knows only where
    `is_strict`: a job that Galaxy moves here brings those of its old destination along."""
    wanted = Wanted()
    said, units = {}, {}
    for name, value in params.items():
        try:
            own = canonical(name)
        except Refusal:
            if is_strict:
                raise
            wanted.unknown.append(name)
            continue
        if own is None or value is None or str(value).strip() in ("", "None"):
            continue
        if own in said and name != own:
            continue  # our own name goes before another's
        said[own] = value
        units[own] = _UNITS.get(name, "G") if own == "mem" else None
    task = wanted.task
    partition, constraint, choices = said.get("partition"), said.get("constraint"), []
    nodes = {name: whole(name, said[name], 1) for name in native.NODES if name in said}
    task.update(nodes)
    if "native_specification" in said:
        needs, wanted.left_out = native.needs_of(said["native_specification"], nodes)
        native_partition, native_constraint = needs.pop("partition", None), needs.pop("constraint", None)
        partition, constraint = partition or native_partition, constraint or native_constraint
        wanted.memory_per_cpu = needs.pop("memory_per_cpu", None)
        choices = needs.pop("choices", [])
        task.update(needs)
    if "cores" in said:
        task["cpus"] = number("cores", said["cores"], 0.01)
    if "mem" in said:
        task["memory"] = size("mem", said["mem"], units["mem"])
    wanted.says_gpus = "gpus" in said or "gpus" in task
    if "gpus" in said or "gpu_type" in said:
        task["gpus"] = _gpus(said.get("gpus", task.get("gpus", 1)), said.get("gpu_type"))
    if not task.get("gpus", 1):
        del task["gpus"]
    _read_open_device(said, wanted)
    if "walltime" in said:
        task["time"] = seconds("walltime", said["walltime"])
    if "site" in said:
        task["site"] = str(said["site"])
    if not_sites := sorted({site.strip() for site in str(said.get("not_sites", "")).split(",")} - {""}):
        task["not_sites"] = not_sites
    tags = [tag.strip() for tag in str(said.get("pilot_tags", "")).split(",") if tag.strip()]
    tags += choices + _tags_of(partition, constraint)
    if tags:
        task["tags"] = sorted(set(tags))
    if "priority" in said:
        task["priority"] = int(number("priority", said["priority"], -1e6))
        if task["priority"] > 1_000_000:
            raise Refusal(f"priority: {said['priority']!r} is above 1000000")
    if "max_retries" in said:
        task["retries"] = whole("max_retries", said["max_retries"])
    if "stage" in said:
        wanted.stage = str(said["stage"])
        if wanted.stage not in STAGE:
            raise Refusal(f"stage: {wanted.stage!r} is none of {', '.join(STAGE)}")
    if wanted.stage == "copy":
        _check_copy(params, said)
        wanted.metadata = "external"
    if "metadata" in said:
        wanted.metadata = str(said["metadata"])
        if wanted.metadata not in METADATA:
            raise Refusal(f"metadata: {wanted.metadata!r} is none of {', '.join(METADATA)}")
    elif not _truth("embed_metadata_in_job", said.get("embed_metadata_in_job", True)):
        wanted.metadata = "external"
    return wanted


def with_tool(wanted, requirements):
    """Adds what the destination leaves open and the tool asks for: `requirements` are pairs of a `<resource>` tag's type and value.

    An expression that is no number is Galaxy's or TPV's to evaluate, and left out."""
    task = wanted.task
    asked = {}
    for kind, value in requirements:
        try:
            asked[str(kind)] = number(str(kind), value)
        except Refusal:
            continue
    if "cpus" not in task and not wanted.leaves_cpus_to_engine and asked.get("cores_min"):
        task["cpus"] = asked["cores_min"]
    if "memory" not in task and wanted.memory_per_cpu:
        task["memory"] = int(wanted.memory_per_cpu * task.get("cpus", 1))
    if "memory" not in task and asked.get("ram_min"):
        task["memory"] = int(asked["ram_min"] * (1 << 20))  # MiB: galaxy.xsd, "resource"
    if not wanted.says_gpus and "gpus" not in task and asked.get("cuda_device_count_min"):
        task["gpus"] = int(asked["cuda_device_count_min"])
    if not wanted.leaves_cpus_to_engine:
        task.setdefault("cpus", 1)
    return wanted
