"""What Linux says of a process: its CPU time, memory and wake-ups (proc(5))."""

import ctypes
import os
import pathlib
import re


def _threads(pid):
    return pathlib.Path(f"/proc/{pid}/task").iterdir()


def cpu_seconds(pid):
    """On a CPU so far, all threads that still live, in nanosecond steps (Documentation/scheduler/sched-stats.rst)."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in _threads(pid)) / 1e9


def keep_orphans():
    """What is started from here stays below this process, whoever started it and is gone (prctl(2))."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def cpu_seconds_below():
    """Of all that this process has started, and what that has started in its turn, those that have ended too; in clock ticks."""
    stats = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    _, _, ticks = stats[os.getpid()]
    parents = [os.getpid()]
    while parents:
        parent = parents.pop()
        for pid, (its_parent, own, ended_children) in stats.items():
            if its_parent == parent:
                parents.append(pid)
                ticks += own + ended_children
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid):
    """Its parent, its own ticks, and those of its children that were waited for; zeros where it has gone."""
    words = _bytes(pid, "stat").rpartition(b")")[2].split()
    if not words:
        return 0, 0, 0
    user, system, children_user, children_system = map(int, words[11:15])
    return int(words[1]), user + system, children_user + children_system


def resident_bytes(pid):
    """Private and shared pages in memory now."""
    return _status_kib(pid, "VmRSS") * 1024


def wake_ups(pid):
    """How often its threads have begun to run of their own accord."""
    return sum(
        int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.M)[1])
        for thread in _threads(pid)
    )


def _status_kib(pid, key):
    return int(re.search(rf"^{key}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def program_of(pid):
    """The file name of what it was started as; empty where it has gone.  (Where it points to is hidden for a pilot.)"""
    return os.path.basename(command_of(pid).split(b"\0")[0].decode(errors="replace"))


def parent_of(pid):
    """0 where it has gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def all_of_ours():
    """Processes of this user that are no zombies."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and command_of(int(name))]


def command_of(pid):
    """Its words, each ended by a zero byte; empty where it has gone or is another user's."""
    return _bytes(pid, "cmdline")


def surroundings_of(pid):
    """Its environment, as NAME=VALUE, each ended by a zero byte."""
    return _bytes(pid, "environ")


def _bytes(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
