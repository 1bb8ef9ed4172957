"""A native specification, as administrators have it for the SLURM and DRMAA runners and for Pulsar.  Pure.

What concerns the job is taken over, and what a task may choose of the batch job that runs it; the rest is the site's to say.
"""

import math
import shlex

from .words import Refusal, seconds, size, whole

# sbatch(1).  Options that say what a task needs, by their long names.
_SHORT = {
    "c": "cpus-per-task",
    "n": "ntasks",
    "N": "nodes",
    "t": "time",
    "p": "partition",
    "C": "constraint",
    "G": "gpus",
    "A": "account",
    "q": "qos",
    "J": "job-name",
    "o": "output",
    "e": "error",
    "D": "chdir",
    "L": "licenses",
    "x": "exclude",
    "w": "nodelist",
    "M": "clusters",
    "b": "begin",
    "d": "dependency",
    "S": "core-spec",
    "s": "oversubscribe",
    "H": "hold",
    "i": "input",
    "Q": "quiet",
    "k": "no-kill",
}
_CHOICES = {"account", "licenses", "nodelist", "prefer", "qos", "reservation", "switches", "tmp", "wckey"}
_OF_THE_SITE = {
    "export",
    "mail-type",
    "mail-user",
    "signal",
    "requeue",
    "no-requeue",
    "exclude",
    "nice",
    "cluster",
    "clusters",
    "exclusive",
    "oversubscribe",
    "comment",
    "begin",
    "distribution",
    "hint",
    "mem-bind",
    "cpu-bind",
    "gres-flags",
    "immediate",
    "priority",
    "dependency",
    "core-spec",
    "hold",
    "no-kill",
}
# Their value, where they may have one, comes after "=".
_WITHOUT_VALUE = {
    "requeue",
    "no-requeue",
    "exclusive",
    "oversubscribe",
    "immediate",
    "nice",
    "hold",
    "quiet",
    "no-kill",
}
# The keys of a task that sbatch has too, and whose values on all nodes depend on each other.
NODES = ("nodes", "ntasks", "ntasks_per_node")
# The runner names these itself.
_OF_NO_USE = {"job-name", "output", "error", "chdir", "input", "quiet"}


def _gpus(name, value):
    """As the engine reads it: of --gres=gpu:a100:2 what stands behind the name."""
    if name == "gres" or value.startswith("gpu"):
        what, _, value = value.partition(":")
        if what != "gpu":
            raise Refusal(
                f"--{name}={what}: of --gres only GPUs are known, written gpu:2 or gpu:a100:2, not {what}:{value}"
            )
    value = value or "1"
    return int(value) if value.isdigit() else value


def _options(text):
    """Pairs of long name and value."""
    try:
        words = iter(shlex.split(str(text)))
    except ValueError as error:
        raise Refusal(f"{text!r} cannot be read as sbatch's options: {error}") from None
    for word in words:
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            if not has_value and name not in _WITHOUT_VALUE:
                value = next(words, None)
        elif len(word) > 1 and word[0] == "-" and word[1] in _SHORT:
            name, value = _SHORT[word[1]], word[2:]
            if not value and name not in _WITHOUT_VALUE:
                value = next(words, None)
        else:
            raise Refusal(f"{word!r} is no option of sbatch that is known here")
        if value is None or value.startswith("--"):
            raise Refusal(f"--{name} has no value")
        yield name, value


def _least_nodes(value):
    """Of `2-4` the least is enough."""
    least, _, most = value.partition("-")
    least = whole("--nodes", least, 1)
    if most and whole("--nodes", most, 1) < least:
        raise Refusal(f"--nodes={value}: the most are fewer than the least")
    return least


def _spread(needs, gpus_of):
    """Puts what is of each process, or of all nodes, as of each node (sbatch(1), --ntasks and what refers to it)."""
    nodes, tasks, each = (needs.pop(name, 0) for name in NODES)
    nodes = max(1, nodes)
    tasks = tasks or each * nodes or nodes
    if each and nodes > 1:
        nodes = max(nodes, math.ceil(tasks / each))
    nodes = min(nodes, tasks)
    if nodes > 1:
        needs["nodes"] = nodes
    if tasks > 1:
        needs["ntasks"] = tasks
    of_node = math.ceil(tasks / nodes)
    if of_node > 1:
        # One process tree on each node: what sbatch would give to all of its tasks there.
        needs["cpus"] = needs.get("cpus", 1) * of_node
    for name, times, parts in (("gpus", 1, nodes), ("gpus-per-task", of_node, 1)):
        if name == gpus_of and times != parts:
            kind, _, count = str(needs["gpus"]).rpartition(":")
            if not count.isdigit():
                kind, count = count, 1
            count = int(count) * times
            if count % parts:
                raise Refusal(f"--{name}={needs['gpus']} on {nodes} nodes: each node has as many; say --gpus-per-node")
            needs["gpus"] = f"{kind}:{count // parts}" if kind else count // parts


def needs_of(text, said=None):
    """`(a task's keys, names of what the site has to say)`; `memory_per_cpu` is in bytes, `choices` are tags KEY=VALUE.  `said`: those
    of NODES that are known otherwise, and go before the text's.  Raises Refusal."""
    needs, left = {}, []
    gpus_of = None
    for name, value in _options(text):
        if name == "cpus-per-task":
            needs["cpus"] = whole("--cpus-per-task", value, 1)
        elif name == "nodes":
            needs["nodes"] = _least_nodes(value)
        elif name in ("ntasks", "ntasks-per-node"):
            needs[name.replace("-", "_")] = whole(f"--{name}", value, 1)
        elif name == "mem":
            needs["memory"] = size("--mem", value, "M")
        elif name == "mem-per-cpu":
            needs["memory_per_cpu"] = size("--mem-per-cpu", value, "M")
        elif name == "time":
            needs["time"] = seconds("--time", value)
        elif name == "partition":
            needs["partition"] = value
        elif name == "constraint":
            needs["constraint"] = value
        elif name in ("gpus", "gpus-per-node", "gpus-per-task", "gres"):
            needs["gpus"], gpus_of = _gpus(name, value), name
        elif name in _CHOICES:
            needs.setdefault("choices", []).append(f"{name}={value}")
        elif name in _OF_THE_SITE:
            left.append("--" + name)
        elif name not in _OF_NO_USE:
            raise Refusal(f"--{name} is no option of sbatch that is known here")
    needs.update(said or {})
    _spread(needs, gpus_of)
    return needs, left
