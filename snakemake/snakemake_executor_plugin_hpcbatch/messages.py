"""What a user reads: why a job failed, and what the whole run took.  Pure text."""

import collections

_WORDS = {
    "tool_failed": "its command failed",
    "tool_signal": "a signal ended its command",
    "oom_task": "it used more memory than it may",
    "time_task": "it ran longer than it may",
    "disk_task": "its disk was full",
    "workspace_lost": "what it left could not be written to the workspace of its site",
    "node_lost": "its node was lost",
    "gpu_error": "its GPU failed",
    "oom_gpu": "it took more than its part of a GPU's memory",
    "cancelled": "it was cancelled",
    "never_fits": "no site could ever run it",
    "input_missing": "an input was missing",
    "stage_in_failed": "its directory could not be reached",
}


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit in ("B", "KiB") else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def seconds(count):
    count = max(0.0, count)
    if count < 60:
        return f"{count:.1f} s"
    minutes, rest = divmod(int(count + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02} min"


def member_failed(rule, output):
    """A line of a group's own Snakemake, by which the one that sent the group knows whose job failed."""
    return f"rule {rule} failed: {' '.join(map(str, output))[:200]}".strip()


def failure(task, event, log, asked):
    """Of a job that failed.  `log`: the last of what it printed; `asked`: the keys of its task."""
    word = event.get("failure", "")
    if event.get("state") == "done":
        lines = [f"Task {task} ended with exit code 0, but what it left is not what its rule says: see above."]
    else:
        lines = [f"Task {task} failed ({word}): {event.get('message') or _WORDS.get(word, 'see below')}."]
    if "started_at" in event and "ended_at" in event:
        took = [f"It ran {seconds(event['ended_at'] - event['started_at'])}"]
        if event.get("node"):
            took[0] += f" on node {event['node']}"
        if event.get("cpu_s"):
            took.append(f"used {seconds(event['cpu_s'])} of cpu")
        if event.get("peak_memory"):
            limit = f" of {size(asked['memory'])}" if asked.get("memory") else ""
            took.append(f"{size(event['peak_memory'])}{limit} of memory at its peak")
        lines.append(", ".join(took) + ".")
    log = log.rstrip("\n")
    if log:
        lines.append("The last lines that it printed:")
        lines.extend("    " + line for line in log.splitlines()[-20:])
    lines.append(f"More: hpcbatch explain {task}; hpcbatch log {task}")
    return "\n".join(lines)


class Report:
    """Sums by rule."""

    def __init__(self):
        self._rules = collections.OrderedDict()
        self._pilots = set()

    def add(self, rule, event, asked, submitted_at):
        line = self._rules.setdefault(
            rule, {"jobs": 0, "failed": 0, "waited": 0.0, "ran": 0.0, "held": 0.0, "cpu": 0.0, "memory": 0, "peak": 0}
        )
        line["jobs"] += 1
        line["failed"] += event.get("state") != "done"
        if event.get("pilot"):
            self._pilots.add(event["pilot"].rpartition(".")[0])
        line["memory"] = max(line["memory"], asked.get("memory", 0))
        line["peak"] = max(line["peak"], event.get("peak_memory", 0))
        line["cpu"] += event.get("cpu_s", 0.0)
        if "started_at" in event and "ended_at" in event:
            ran = max(0.0, event["ended_at"] - event["started_at"])
            line["ran"] += ran
            line["held"] += ran * asked.get("cpus", 1)
            if submitted_at is not None:
                line["waited"] += max(0.0, event["started_at"] - submitted_at)

    def count_as_failed(self, rule):
        """A job that was added as done."""
        self._rules[rule]["failed"] += 1

    def lines(self):
        """A table; empty where nothing ran."""
        if not self._rules:
            return []
        rows = [("rule", "jobs", "failed", "mean wait", "mean run", "cpu used", "of asked", "memory peak", "of asked")]
        for rule, line in self._rules.items():
            jobs = line["jobs"]
            rows.append(
                (
                    rule,
                    str(jobs),
                    str(line["failed"]),
                    seconds(line["waited"] / jobs),
                    seconds(line["ran"] / jobs),
                    seconds(line["cpu"]),
                    f"{100 * line['cpu'] / line['held']:.0f} %" if line["held"] > 0 else "",
                    size(line["peak"]) if line["peak"] else "",
                    f"{100 * line['peak'] / line['memory']:.0f} %" if line["memory"] and line["peak"] else "",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        text = [
            "  ".join(
                cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))
            )
            for row in rows
        ]
        count = len(self._pilots)
        text.append(f"They ran in {count} batch job{'' if count == 1 else 's'} of hpcbatch.")
        return text
