"""Which processes belong to a cluster, also when their parents, records or directory are gone."""

import os
import re

DAEMON = re.compile(r"(munged|mariadbd|slurmdbd|slurmctld|slurmd|slurmstepd)(-wlm)?")  # Debian names some so


def started(pid):
    """The start time of a living process, which with its number is its identity; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def alive(identity):
    return identity is not None and started(identity[0]) == identity[1]


def send(identity, sig):
    if alive(identity):
        try:
            os.kill(identity[0], sig)
        except ProcessLookupError:
            pass


def read_bytes(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def has_open_below(pid, directory):
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(directory + "/"):
                return True
    except OSError:
        pass
    return False


def processes_of(directory):
    """All processes of the cluster in `directory`: its daemons, known by what they hold open there, every process
    below them, and what a killed step left behind, known by its environment."""
    conf = f"SLURM_CONF={directory}/etc/slurm.conf".encode()
    children, ours = {}, set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        pid = int(entry)
        try:
            with open(f"/proc/{pid}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
        except OSError:
            continue
        children.setdefault(parent, []).append(pid)
        if DAEMON.fullmatch(program):
            if has_open_below(pid, directory):
                ours.add(pid)
            continue
        environment = read_bytes(f"/proc/{pid}/environ").split(b"\0")
        if conf in environment and any(v.startswith(b"SLURM_JOB_ID=") for v in environment):
            ours.add(pid)
    todo = list(ours)
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in ours:
                ours.add(child)
                todo.append(child)
    ours.discard(os.getpid())
    return [(pid, start) for pid in ours if (start := started(pid)) is not None]
