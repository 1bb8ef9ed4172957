"""How a task's end is told to Galaxy.  Pure.

Galaxy judges the tool by the exit code that its script has written down: that the script ended is all that it wants to know, whatever
the script's own status.  What is told here is what kept the script from its end.
"""


class Verdict:
    """`runner_state`: the name of one of Galaxy's runner states.  `message`: for the job's user."""

    def __init__(self, runner_state, message):
        self.runner_state = runner_state
        self.message = message


def _gigabytes(count):
    return f"{count / (1 << 30):.3g} GB"


def verdict_of(event, asked, has_exit_code):
    """None where the script ended by itself, as it must have where it has written down an exit code and the engine knows
    nothing more.  `event` is the feed's, or the task itself; `asked` are the task's keys; `has_exit_code`:
    the script has written down how its tool ended."""
    failure = event.get("failure") or ("ok" if event.get("state") == "done" else "cancelled")
    if failure == "ok" or (failure in ("tool_failed", "engine_error") and has_exit_code):
        return None
    said = event.get("message") or ""
    number = event.get("id", "")
    more = f" (hpcbatch explain {number})" if number else ""
    if failure == "oom_task":
        had = f" its {_gigabytes(asked['memory'])}" if asked.get("memory") else " the memory that it was given"
        peak = f"; it used {_gigabytes(event['peak_memory'])}" if event.get("peak_memory") else ""
        return Verdict("MEMORY_LIMIT_REACHED", f"The job needed more memory than{had}{peak}.{more}")
    if failure == "time_task":
        limit = f" of {asked['time'] / 60:g} minutes" if asked.get("time") else ""
        return Verdict("WALLTIME_REACHED", f"The job reached its time limit{limit}.{more}")
    if failure == "cancelled":
        return Verdict("UNKNOWN_ERROR", f"The job was cancelled outside of Galaxy.{more}")
    return Verdict("UNKNOWN_ERROR", f"The job did not run to its end: {said or failure}.{more}")


def not_put_back(error):
    """Its result came, and could not be written where Galaxy looks for it."""
    return Verdict("UNKNOWN_ERROR", f"What the job has left could not be put into its directory: {error}.")


def used(event, submitted_at=None):
    """What the job's page shows of the task, by the names that the metrics plugin knows."""
    facts = {name: event[name] for name in ("cpu_s", "peak_memory", "node", "pilot") if event.get(name) is not None}
    if submitted_at and event.get("started_at"):
        facts["waited_s"] = max(0.0, event["started_at"] - submitted_at)
    if event.get("failure") and event["failure"] != "ok":
        facts["failure"] = event["failure"]
    facts["task"] = event.get("id")
    return facts


def why_it_waits(explained):
    """What a user reads at a job whose task waits, from the engine's explanation of it; None: it does not wait."""
    if explained["state"] in ("running", "done", "failed", "cancelled"):
        return None
    starts = next((line for line in explained.get("details", ()) if line.startswith("expected to start in")), None)
    return explained["text"] if starts is None else f"{explained['text']}; {starts}"
