"""What a job asks for, in Snakemake's words and those of its SLURM plugin, as an engine's task asks for it.

Pure: resources in, a task's keys and what there is to say about them out.
"""

import re

# Of the batch job, not of the task: pilots are submitted with the options of their site.
_PILOTS = ("slurm_account", "qos", "reservation", "slurm_extra", "slurm_requeue")
_ONE_NODE = ("nodes", "tasks", "tasks_per_node")
_GRES = re.compile(r"^gpu(?::(?P<kind>[A-Za-z_][\w.\-]*))?(?::(?P<count>\d+))?$")
_KIND = re.compile(r"^(?P<kind>[A-Za-z_][\w.\-]*)(?::(?P<count>\d+))?$")
_UNITS = {"d": 1440.0, "h": 60.0, "m": 1.0, "min": 1.0, "s": 1 / 60}


class Refusal(Exception):
    """One sentence: what the job asks for, and why it cannot have it."""


class Offer:
    """What the engine's sites offer: read once per run from `/v1/sites`."""

    def __init__(self, sites):
        self.sites = {site["name"] for site in sites}
        self.partitions = {
            shape["partition"] for site in sites for shape in site.get("shapes", ()) if shape.get("partition")
        }
        self.tags = {tag for site in sites for shape in site.get("shapes", ()) for tag in shape.get("tags", ())}
        self.has_batch_system = any(site.get("scheduler") != "local" for site in sites)


def _number(name, value, least):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
        raise Refusal(f"{name}={value} is no number from {least} up")
    return value


def minutes(value):
    """A `runtime`: minutes as a number, or a text such as 2h, 1d12h, 90s, 1:30:00 or 2-12 (sbatch's forms)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if found := re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text):
        days, first, second, third = (int(part) if part is not None else None for part in found.groups())
        if days is not None:
            return days * 1440 + first * 60 + (second or 0) + (third or 0) / 60
        if third is not None:
            return first * 60 + second + third / 60
        return first + (second or 0) / 60
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s)", text)
    if parts and re.fullmatch(r"(?:\d+(?:\.\d+)?\s*(?:d|h|min|m|s)\s*)+", text):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    raise Refusal(f"runtime={value} is no time; write minutes, or for example 2h or 1d12h")


def _gpus(resources):
    """A number, a map of kinds to numbers, or None."""
    wanted = []
    if gres := resources.get("gres"):
        for part in str(gres).split(","):
            found = _GRES.match(part.strip())
            if not found:
                raise Refusal(f"gres={gres}: only GPUs are known, written gpu:2 or gpu:a100:2")
            wanted.append((found["kind"], int(found["count"] or 1)))
    if gpus := resources.get("gpus"):
        if isinstance(gpus, int):
            wanted.append((None, gpus))
        else:
            for part in str(gpus).split(","):
                found = _KIND.match(part.strip())
                if part.strip().isdigit():
                    wanted.append((None, int(part)))
                elif found:
                    wanted.append((found["kind"], int(found["count"] or 1)))
                else:
                    raise Refusal(f"gpus={gpus}: write a number or for example a100:2")
    if gpu := resources.get("gpu"):
        wanted.append((resources.get("gpu_model") or None, int(_number("gpu", gpu, 0))))
    wanted = [(kind, count) for kind, count in wanted if count > 0]
    if not wanted:
        return None
    by_kind = dict(wanted)
    if any(by_kind[kind] != count for kind, count in wanted) or (None in by_kind and len(by_kind) > 1):
        raise Refusal("GPUs are asked for in more than one way, and they disagree: use one of gpu, gpus and gres")
    return by_kind.get(None) or by_kind


def _where(resources, offer, task, notices):
    tags = []
    cluster = resources.get("cluster") or resources.get("clusters") or resources.get("slurm_cluster")
    if cluster:
        if cluster not in offer.sites:
            raise Refusal(
                f"cluster={cluster} is no site of this engine; there {'are' if len(offer.sites) > 1 else 'is'} "
                f"{', '.join(sorted(offer.sites)) or 'none'}"
            )
        task["site"] = cluster
    if not_clusters := resources.get("not_clusters"):
        names = sorted({name.strip() for name in str(not_clusters).split(",")} - {""})
        if unknown := [name for name in names if name not in offer.sites]:
            raise Refusal(
                f"not_clusters={not_clusters}: {unknown[0]} is no site of this engine; there "
                f"{'are' if len(offer.sites) > 1 else 'is'} {', '.join(sorted(offer.sites)) or 'none'}"
            )
        task["not_sites"] = names
    if partition := resources.get("slurm_partition"):
        names = [name for name in str(partition).split(",") if name in offer.partitions]
        if names:
            tags.append("partition=" + names[0])
        elif offer.has_batch_system and offer.partitions:
            raise Refusal(
                f"slurm_partition={partition}: no site has a shape in such a partition; there are "
                f"{', '.join(sorted(offer.partitions))}"
            )
        else:
            notices.append(f"slurm_partition={partition} is not looked at: no site of this engine names its partitions")
    if constraint := resources.get("constraint"):
        tag = f"constraint={constraint}"
        if tag in offer.tags:
            tags.append(tag)
        elif offer.has_batch_system:
            raise Refusal(
                f"constraint={constraint}: no shape says that it has this; where one does, give it the tag {tag} in the "
                "engine's configuration"
            )
        else:
            notices.append(f"constraint={constraint} is not looked at: the engine has no batch system")
    if tags:
        task["tags"] = tags
    for name in _PILOTS:
        if resources.get(name):
            notices.append(
                f"{name}={resources[name]} is not looked at: batch jobs are submitted with the options of their site "
                "(options: in the engine's configuration)"
            )


def needs_of(resources, threads, offer, default_memory_mb=None):
    """`(keys of a task, notices)` for a job's resources.  Raises Refusal.

    `mem_mb` and `mem_mb_per_cpu` are read as sbatch reads them, in MiB, so that a job never gets less than there."""
    task, notices = {}, []
    if resources.get("mpi"):
        raise Refusal("mpi jobs cannot run in pilots yet; give the rule to another executor")
    for name in _ONE_NODE:
        value = resources.get(name)
        if value is not None and str(value) != "1":
            raise Refusal(f"{name}={value}: a job runs as one process tree on one node here; only 1 is possible")
    cpus = resources.get("cpus_per_task")
    cpus = threads if cpus is None or (isinstance(cpus, int) and cpus < 0) else _number("cpus_per_task", cpus, 1)
    task["gpus"] = _gpus(resources)
    if resources.get("cpus_per_gpu") and task["gpus"]:
        count = task["gpus"] if isinstance(task["gpus"], int) else sum(task["gpus"].values())
        cpus = max(cpus, int(_number("cpus_per_gpu", resources["cpus_per_gpu"], 1)) * count)
    task["cpus"] = max(1, cpus)
    if resources.get("mem_mb_per_cpu"):
        memory = _number("mem_mb_per_cpu", resources["mem_mb_per_cpu"], 1) * task["cpus"]
    elif resources.get("mem_mb"):
        memory = _number("mem_mb", resources["mem_mb"], 1)
    elif resources.get("mem_mib"):
        memory = _number("mem_mib", resources["mem_mib"], 1)
    else:
        memory = default_memory_mb
    if memory:
        task["memory"] = int(memory) << 20
    if resources.get("runtime"):
        time = minutes(resources["runtime"])
        if time <= 0:
            raise Refusal(f"runtime={resources['runtime']} is no time above 0")
        task["time"] = time * 60
    _where(resources, offer, task, notices)
    return {name: value for name, value in task.items() if value is not None}, notices
