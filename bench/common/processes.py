"""What Linux says of a process: its CPU time, memory and wake-ups (proc(5))."""

import os
import pathlib
import re


def _threads(pid):
    return pathlib.Path(f"/proc/{pid}/task").iterdir()


def cpu_seconds(pid):
    """On a CPU so far, all threads that still live, in nanosecond steps (Documentation/scheduler/sched-stats.rst)."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in _threads(pid)) / 1e9


def resident_bytes(pid):
    """Private and shared pages in memory now."""
    return _status_kib(pid, "VmRSS") * 1024


def wake_ups(pid):
    """How often its threads have begun to run of their own accord."""
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.M)[1])
               for thread in _threads(pid))


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
