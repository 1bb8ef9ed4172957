"""A destination's parameters as an engine's task asks for them.  Pure."""

import difflib
import fnmatch

from . import native
from .words import Refusal, number, seconds, size, whole

# name: what it is, for the documentation and for hints.
PARAMETERS = {
    "cores": "cpus of the job, also a part of one",
    "mem": "memory; a bare number counts in GB",
    "gpus": "GPUs: a number, or for example a100:2",
    "gpu_type": "the kind of these GPUs",
    "walltime": "limit of the job's time",
    "site": "the one site of the engine that may run it",
    "partition": "the partition (queue) of the pilots that may run it",
    "constraint": "a feature that the node must have",
    "tags": "tags that the site's shape must have, with commas",
    "priority": "goes before jobs of lower numbers",
    "max_retries": "tries again after failures of its own, besides those that are not its fault",
    "native_specification": "options of sbatch",
    "warm_metadata": "whether a Galaxy that is kept warm sets the metadata, instead of the job script",
    "embed_metadata_in_job": "whether metadata is set where the job ran",
    "stage": "'shared': Galaxy's directories are on the site's file system",
}
# As other runners call the same.
_ALIASES = {
    "native_specification": ("nativeSpecification", "submit_native_specification", "submit_nativeSpecification",
                             "job_native_specification"),
    "cores": ("request_cpus", "requests_cpu", "job_cpus_per_task", "submit_request_cpus", "local_slots"),
    "mem": ("request_memory", "requests_memory", "job_mem", "submit_request_memory"),
    "walltime": ("job_time", "limits_walltime", "submit_walltime"),
    "partition": ("job_partition", "queue", "submit_queue"),
    "gpus": ("request_gpus", "requests_gpu", "requests_gpus", "submit_request_gpus"),
}
# A bare number is in these units where it is not in GB.
_UNITS = {"request_memory": "M", "submit_request_memory": "M", "job_mem": "M"}
# Read by Galaxy itself, whatever the runner.
_GALAXYS = (
    "singularity_*", "docker_*", "container", "container_override", "container_resolvers", "container_resolvers_config_file",
    "container_monitor*", "require_container", "tmp_dir", "shared_home_dir", "cleanup_job", "metadata_strategy",
    "outputs_to_working_directory", "object_store_id", "real_system_username", "external_chown_script", "galaxy_infrastructure_url",
    "retry_metadata_internally", "retry_interactivetool_metadata_internally", "tool_evaluation_strategy", "use_metadata_binary",
    "check_job_script_integrity*", "enabled", "id", "tpv_*", "resubmit", "env", "job_script_*", "require_*",
)


class Wanted:
    """What a destination says: `task` are keys of an engine's task, `left_out` options that only the site can say."""

    def __init__(self):
        self.task = {}
        self.warm_metadata = True
        self.embeds_metadata = True
        self.left_out = []

    @property
    def slots(self):
        """GALAXY_SLOTS."""
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


def canonical(name):
    """Our own name of a parameter; None for one of Galaxy's.  Raises Refusal where it is unknown, with what was meant."""
    if name in PARAMETERS:
        return name
    for own, others in _ALIASES.items():
        if name in others:
            return own
    if _is_galaxys(name):
        return None
    known = [*PARAMETERS, *(alias for others in _ALIASES.values() for alias in others),
             *(pattern for pattern in _GALAXYS if "*" not in pattern)]
    meant = difflib.get_close_matches(name, known, 1, 0.6)
    hint = f"did you mean {meant[0]!r}?" if meant else "known are " + ", ".join(sorted(PARAMETERS))
    raise Refusal(f"{name!r} is no parameter of a destination of hpcbatch: {hint}")


def _gpus(value, kind):
    text = str(value).strip()
    if text.replace(".", "", 1).isdigit():
        # TPV takes fractions; a GPU is given whole.
        count = int(-(-number("gpus", text) // 1))
        return {kind: count} if kind and count else count
    name, _, count = text.partition(":")
    return {name: whole("gpus", count or 1)}


def read(params):
    """`params`: of one destination, by name; values are texts or numbers.  Raises Refusal."""
    wanted = Wanted()
    said, units = {}, {}
    for name, value in params.items():
        own = canonical(name)
        if own is None or value is None or str(value).strip() in ("", "None"):
            continue
        if own in said and name != own:
            continue  # our own name goes before another's
        said[own] = value
        units[own] = _UNITS.get(name, "G") if own == "mem" else None
    task = wanted.task
    partition, constraint = said.get("partition"), said.get("constraint")
    if "native_specification" in said:
        needs, wanted.left_out = native.needs_of(said["native_specification"])
        partition = partition or needs.pop("partition", None)
        constraint = constraint or needs.pop("constraint", None)
        needs.pop("partition", None), needs.pop("constraint", None)
        task.update(needs)
    if "cores" in said:
        task["cpus"] = number("cores", said["cores"], 0.01)
    if "mem" in said:
        task["memory"] = size("mem", said["mem"], units["mem"])
    if "gpus" in said:
        task["gpus"] = _gpus(said["gpus"], said.get("gpu_type"))
    elif "gpu_type" in said:
        task["gpus"] = {str(said["gpu_type"]): 1}
    if not task.get("gpus", 1):
        del task["gpus"]
    if "walltime" in said:
        task["time"] = seconds("walltime", said["walltime"])
    if "site" in said:
        task["site"] = str(said["site"])
    tags = [tag.strip() for tag in str(said.get("tags", "")).split(",") if tag.strip()]
    if partition:
        tags.append(f"partition={partition}")
    if constraint:
        tags.append(f"constraint={constraint}")
    if tags:
        task["tags"] = sorted(set(tags))
    if "priority" in said:
        task["priority"] = int(number("priority", said["priority"], -1e6))
    if "max_retries" in said:
        task["retries"] = whole("max_retries", said["max_retries"])
    if "stage" in said and str(said["stage"]) != "shared":
        raise Refusal(f"stage: {said['stage']!r} is not possible yet: Galaxy's directories must be on the site's file system "
                      "(stage: shared)")
    for name, attribute in (("warm_metadata", "warm_metadata"), ("embed_metadata_in_job", "embeds_metadata")):
        if name in said:
            setattr(wanted, attribute, _truth(name, said[name]))
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
    if "cpus" not in task and asked.get("cores_min"):
        task["cpus"] = asked["cores_min"]
    if "memory" not in task and asked.get("ram_min"):
        task["memory"] = int(asked["ram_min"] * (1 << 20))  # MiB: galaxy.xsd, "resource"
    if "gpus" not in task and asked.get("cuda_device_count_min"):
        task["gpus"] = int(asked["cuda_device_count_min"])
    task.setdefault("cpus", 1)
    return wanted
