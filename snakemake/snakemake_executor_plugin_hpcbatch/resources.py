"""What a job asks for, in Snakemake's words and those of its SLURM plugin, as an engine's task asks for it.

Pure: resources in, a task's keys and what there is to say about them out.
"""

import math
import shlex

from hpcbatch import durations, ways

# Of the batch job, not of the task: a task may choose it where its site lets it, else pilots have what the options of their site say.
# By resource: the key of the choice, and how sbatch and qsub write it.
_OF_BATCH_JOBS = {
    "slurm_account": ("account", ("--account", "-A")),
    "qos": ("qos", ("--qos", "-q")),
    "reservation": ("reservation", ("--reservation", None)),
}
# sbatch(1).
_LONG = {"-A": "account", "-C": "constraint", "-L": "licenses", "-q": "qos", "-w": "nodelist"}
# What a machine without a batch system gives to everybody.
_EVERYWHERE_LOCAL = ("slurm_account", "qos")
# Options of sbatch that change nothing about how a job runs, or that are about files of the batch job.
_CHANGES_NOTHING = {
    "--mail-type",
    "--mail-user",
    "--nice",
    "--comment",
    "--job-name",
    "-J",
    "--output",
    "-o",
    "--error",
    "-e",
    "--open-mode",
    "--requeue",
    "--no-requeue",
    "--quiet",
    "-Q",
    "--verbose",
    "-v",
    "--parsable",
}
# What other executors and people's profiles call it, and what it is called here.
_OTHER_NAMES = {
    "nvidia_gpu": "gpu",
    "amd_gpu": "gpu",
    "gpu_type": "gpu_model",
    "cpus": "cpus_per_task",
    "ncpus": "cpus_per_task",
    "ntasks": "tasks",
    "mem_gb": "mem_mb",
    "mem_gib": "mem_mb",
    "time": "runtime",
    "walltime": "runtime",
    "time_min": "runtime",
    "partition": "slurm_partition",
    "queue": "slurm_partition",
    "account": "slurm_account",
}
# Of those that may have a default (Snakemake's own of memory, a profile's) beside what a rule says: the larger counts.
_THE_LARGER = ("mem_mb", "runtime", "cpus_per_task")
# Options of sbatch that are written as resources of their own.
_AS_OPTIONS = ("licenses", "nodelist", "exclude", "exclusive")
_KNOWN = {
    *("cpus_per_task", "cpus_per_gpu", "mem_mb", "mem_mib", "mem", "mem_mb_per_cpu", "runtime", "threads", "mpi"),
    *("gpu", "gpus", "gres", "gpu_model", "gpu_memory", "gpu_capability", "one_of"),
    *("slurm_partition", "constraint", "cluster", "clusters", "slurm_cluster", "not_clusters"),
    *("slurm_account", "qos", "reservation", "slurm_extra", "slurm_requeue"),
    *("nodes", "tasks", "tasks_per_node", "tasks_per_gpu"),
    *("disk_mb", "disk_mib", "disk", "tmpdir", "shell_exec"),
    *_OTHER_NAMES,
    *_AS_OPTIONS,
}


class Refusal(Exception):
    """One sentence: what the job asks for, and why it cannot have it."""


class Offer:
    """What the engine's sites offer: read once per run from `/v1/sites`.  `ignored`: resources that jobs are to run without."""

    def __init__(self, sites, ignored=()):
        self.ignored = frozenset(ignored)
        self.sites = {site["name"] for site in sites}
        shapes = [shape for site in sites for shape in site.get("shapes", ())]
        self.partitions = {shape["partition"] for shape in shapes if shape.get("partition")}
        self.tags = {tag for shape in shapes for tag in shape.get("tags", ())}
        self.local = {site["name"] for site in sites if site.get("scheduler") == "local"}
        self.options = {site["name"]: _options(site.get("options", ())) for site in sites}
        self._choices = {site["name"]: site.get("choices", {}) for site in sites}
        # Of this machine; 0 where there is anything else.
        self.local_cpus = (
            int(max((shape.get("cpus", 0) for shape in shapes), default=0)) if self.sites == self.local else 0
        )

    def letting_choose(self, key, value, sites):
        """Those of the sites that let tasks choose that of their batch jobs: `value` as a text."""
        if not value or len(key) + 1 + len(value) > 200 or any(c == "+" or c.isspace() for c in value):
            return set()
        allowed = ((site, self._choices[site].get(key)) for site in sites)
        return {site for site, values in allowed if values == "any" or (values and value in values)}


def _has_constraint(tags, value):
    """As the engine reads it: of features joined by & all are wanted."""
    parts = [value] if set(value) & set("|[](*") else value.split("&")
    return f"constraint={value}" in tags or all(f"constraint={feature}" in tags for feature in parts)


def _options(words):
    """Options of a batch system, each with its value: {"--account": {"abc"}, "--exclusive": {""}}."""
    found, last = {}, None
    for word in (piece for text in words for piece in _split(text)):
        if word.startswith("--"):
            last, _, value = word.partition("=")
        elif word.startswith("-"):
            last, value = word[:2], word[2:].strip()
        elif last is not None:  # the value of the one before
            found[last].discard("")
            found[last].add(word)
            last = None
            continue
        else:
            continue
        found.setdefault(last, set()).add(value)
    return found


def _split(text):
    try:
        return shlex.split(str(text))
    except ValueError:
        return str(text).split()


def _unquoted(text):
    """A text that is in quotes of its own, as it has to be on a command line."""
    words = _split(text)
    return words[0] if len(words) == 1 else str(text)


def _number(name, value, least):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
        raise Refusal(f"{name}={value} is no number from {least} up")
    return value


def _whole(name, value):
    if int(_number(name, int(value) if str(value).isdigit() else value, 1)) != float(value):
        raise Refusal(f"{name}={value} is no whole number")
    return int(value)


def minutes(value, name="runtime"):
    """A time, the resource `name`: minutes as a number, or a text such as 2h, 1d12h, 90s, 1:30:00 or 2-12 (sbatch's forms)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    found = durations.seconds(str(value), 60)
    if found is None:
        raise Refusal(f"{name}={value} is no time; write minutes, or for example 2h or 1d12h")
    return found / 60


def _gpus(resources):
    """A number, a map of kinds to numbers, or None."""
    wanted = []
    for name, read in (("gres", ways.gres), ("gpus", ways.gpus)):
        for part in str(resources.get(name) or "").split(","):
            try:
                wanted += [read(part)] if part.strip() else []
            except ValueError as error:
                raise Refusal(f"{name}={resources[name]}: {error}") from None
    if gpu := resources.get("gpu"):
        count = int(_number("gpu", gpu, 0))
        wanted.append({resources["gpu_model"]: count} if resources.get("gpu_model") else count)
    pairs = [
        pair for one in wanted for pair in (one.items() if isinstance(one, dict) else [(None, one)]) if pair[1] > 0
    ]
    if not pairs:
        return None
    by_kind = dict(pairs)
    if any(by_kind[kind] != count for kind, count in pairs) or (None in by_kind and len(by_kind) > 1):
        raise Refusal("GPUs are asked for in more than one way, and they disagree: use one of gpu, gpus and gres")
    return by_kind.get(None) or by_kind


def _open_device(resources, task):
    """What leaves open on which device a job runs: kinds of GPU by what they have, and ways that would all do."""
    for name in ("gpu_memory", "gpu_capability"):
        if resources.get(name):
            task[name] = str(resources[name])
    one_of = resources.get("one_of")
    if not one_of:
        return
    if task["gpus"] is not None or "gpu_memory" in task or "gpu_capability" in task:
        raise Refusal("say GPUs in each way of one_of, not beside it")
    try:
        # Its threads are what its commands were made with.
        task["one_of"] = [{"cpus": task["cpus"], **way} for way in ways.ways(str(one_of))]
    except ValueError as error:
        raise Refusal(str(error)) from None
    del task["cpus"]


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
        if not names:
            there = (
                f"there are {', '.join(sorted(offer.partitions))}"
                if offer.partitions
                else "no site names its partitions"
            )
            raise Refusal(
                f"slurm_partition={partition}: no site has a shape in such a partition, {there}; give one 'partition: {partition}' in the "
                f"engine's configuration{_or_ignore('slurm_partition')}"
            )
        tags.append("partition=" + ",".join(names))
    if constraint := resources.get("constraint"):
        tag = f"constraint={constraint}"
        if not _has_constraint(offer.tags, str(constraint)) and not offer.letting_choose(
            "constraint", str(constraint), _left(task, offer)
        ):
            raise Refusal(
                f"constraint={constraint}: no shape says that it has this, and no site lets tasks choose it; where a shape has it, give it the "
                f"tag {tag} in the engine's configuration{_or_ignore('constraint')}"
            )
        tags.append(tag)
    tags += _of_batch_jobs(resources, offer, task, notices)
    if tags:
        task["tags"] = sorted(set(tags))


def _or_ignore(name):
    return f", or let jobs run without it: --hpcbatch-ignore {name}"


def _left(task, offer):
    """The sites that may run it."""
    return {task["site"]} if "site" in task else offer.sites - set(task.get("not_sites", ()))


def _of_batch_jobs(resources, offer, task, notices):
    """Tags for what the job chooses of its batch job; else leaves the sites whose batch jobs have it by their options."""
    left, tags = _left(task, offer), []
    for name, (key, spelled) in _OF_BATCH_JOBS.items():
        value = str(resources.get(name) or "")
        if not value:
            continue
        having = {site for site in left if any(value in offer.options[site].get(option, ()) for option in spelled)}
        choosing = offer.letting_choose(key, value, left)
        if choosing - having:
            tags.append(f"{key}={value}")
            having |= choosing
        elif name in _EVERYWHERE_LOCAL and left and left <= offer.local:
            notices.append(f"{name}={value} means nothing on this machine: it has no batch system")
            having = left
        if not having:
            raise Refusal(
                f"{name}={value}: none of {', '.join(sorted(left))} lets tasks choose this (`choices:` in the engine's configuration), and none "
                f"has '{spelled[0]}={value}' among its options{_or_ignore(name)}"
            )
        left = having
    if extra := str(resources.get("slurm_extra") or "").strip():
        more, left = _extra(extra, offer, left, notices)
        tags += more
    if "site" not in task and left != _left(task, offer):
        task["not_sites"] = sorted(offer.sites - left)
    if resources.get("slurm_requeue"):
        notices.append("slurm_requeue is not looked at: what a lost node cut runs again by itself")
    return tags


def _extra(extra, offer, left, notices):
    """`(tags, sites that are left)` for options of sbatch."""
    tags = []
    asked = _options([_unquoted(extra)])
    if not asked:
        raise _no_extra(extra, left)
    of_no_use = sorted(asked.keys() & _CHANGES_NOTHING)
    if of_no_use:
        notices.append(
            f"{', '.join(of_no_use)} of slurm_extra {'is' if len(of_no_use) == 1 else 'are'} left out: a pilot's batch job runs many jobs"
        )
    asked = {option: values for option, values in asked.items() if option not in _CHANGES_NOTHING}
    for option, values in asked.items():
        key, value = _LONG.get(option, option[2:]), next(iter(values))
        having = {site for site in left if values <= offer.options[site].get(option, set())}
        choosing = offer.letting_choose(key, value, left) if len(values) == 1 else set()
        if choosing - having:
            tags.append(f"{key}={value}")
        if not choosing and not having:
            raise _no_extra(extra, left)
        left = having | choosing
    return tags, left


def _no_extra(extra, sites):
    return Refusal(
        f"slurm_extra={extra}: none of {', '.join(sorted(sites))} lets tasks choose these or has them among its options; add them to its "
        f"options: in the engine's configuration{_or_ignore('slurm_extra')}"
    )


def unknown(resources, limited, ignored=()):
    """Names of resources that mean nothing here nor, as `limited` (--resources) are, to Snakemake's own scheduler."""
    return sorted(
        name
        for name, value in resources.items()
        if value is not None and not name.startswith("_") and name not in _KNOWN | set(limited) | set(ignored)
    )


def by_one_name(resources):
    """The resources with the names that are read here.  Raises Refusal."""
    found = dict(resources)
    for name, ours in _OTHER_NAMES.items():
        value = found.pop(name, None)
        if value is None or value == "":
            continue
        if name in ("mem_gb", "mem_gib"):
            value = int(_number(name, value, 0) * 1024)
        elif ours == "runtime":
            value = minutes(value, name)
        there = found.get(ours)
        if ours in _THE_LARGER and there is not None:
            there = minutes(there) if ours == "runtime" else there
            value = max(value, _number(ours, there, -1))
        elif there not in (None, value):
            raise Refusal(f"{name}={value} and {ours}={there} disagree: use one of them")
        found[ours] = value
    if options := [_as_option(name, found.pop(name)) for name in _AS_OPTIONS if found.get(name)]:
        found["slurm_extra"] = " ".join([_unquoted(found.get("slurm_extra") or ""), *options]).strip()
    return found


def _as_option(name, value):
    return f"--{name}" if name == "exclusive" and str(value) in ("True", "1") else shlex.quote(f"--{name}={value}")


def _gpus_of_node(resources, nodes):
    """Of all nodes are `gpu` and `gpus`, as sbatch's --gpus; of each is `gres`."""
    gpus = _gpus(resources)
    if nodes == 1 or not gpus or resources.get("gres"):
        return gpus
    by_kind = gpus if isinstance(gpus, dict) else {None: gpus}
    if any(count % nodes for count in by_kind.values()):
        raise Refusal(f"{sum(by_kind.values())} GPUs on nodes={nodes}: each node has as many; say how many with gres")
    by_kind = {kind: count // nodes for kind, count in by_kind.items()}
    return by_kind.get(None) or by_kind


def _put_nodes(resources, task):
    """How many nodes, and processes of MPI on all of them; returns the most of these on one node."""
    nodes, per_node = (_whole(name, resources.get(name) or 1) for name in ("nodes", "tasks_per_node"))
    tasks = _whole("tasks", resources.get("tasks") or nodes * per_node)
    if tasks < nodes:
        raise Refusal(f"nodes={nodes} are more than tasks={tasks}: each node gets one at least")
    if resources.get("tasks_per_node") and tasks > nodes * per_node:
        raise Refusal(f"tasks={tasks} are more than tasks_per_node={per_node} on nodes={nodes}: ask for more nodes")
    if nodes > 1:
        task["nodes"] = nodes
    if tasks > 1:
        task["ntasks"] = tasks
    return math.ceil(tasks / nodes)


def needs_of(resources, threads, offer, default_memory_mb=None):
    """`(keys of a task, notices)` for a job's resources.  Raises Refusal.

    `mem_mb` and `mem_mb_per_cpu` are read as sbatch reads them, in MiB, so that a job never gets less than there."""
    task, notices = {}, []
    resources = by_one_name({name: value for name, value in resources.items() if name not in offer.ignored})
    if "srun" in str(resources.get("mpi") or ""):
        raise Refusal(
            f"mpi={resources['mpi']}: srun starts no processes of MPI here; say mpi='mpirun' or mpi='mpiexec' for the rule (--set-resources)"
        )
    if str(resources.get("tasks_per_gpu") or 1) != "1":
        raise Refusal(f"tasks_per_gpu={resources['tasks_per_gpu']}: only 1 is possible; say tasks")
    of_node = _put_nodes(resources, task)
    cpus = resources.get("cpus_per_task")
    cpus = threads if cpus is None or (isinstance(cpus, int) and cpus < 0) else _number("cpus_per_task", cpus, 1)
    task["gpus"] = _gpus_of_node(resources, task.get("nodes", 1))
    if resources.get("cpus_per_gpu") and task["gpus"]:
        count = sum(task["gpus"].values()) if isinstance(task["gpus"], dict) else task["gpus"]
        cpus = max(cpus, math.ceil(_number("cpus_per_gpu", resources["cpus_per_gpu"], 1) * count))
    task["cpus"] = max(1, cpus) * of_node
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
    _open_device(resources, task)
    if resources.get("runtime"):
        time = minutes(resources["runtime"])
        if time <= 0:
            raise Refusal(f"runtime={resources['runtime']} is no time above 0")
        task["time"] = time * 60
    _where(resources, offer, task, notices)
    return {name: value for name, value in task.items() if value is not None}, notices
