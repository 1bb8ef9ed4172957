"""Says why jobs wait, each reason once: what `hpcbatch explain` has of tasks that have waited for a while."""

import re
import time

# Until the first look, and at most between two.
_FIRST_S, _LONGEST_S = 10.0, 60.0
# How many of a look are asked for, each of another rule.
_RULES = 4
# What is so of every task that waits its turn.
_USUAL = re.compile(
    r"ready, |runs at |done at |waits at pilot |waits for other tasks|\d+ earlier attempts?|\d+ pilots? could run it|"
    r"\d+ tasks? of its array (?:is|are) with pilots|\d+ tasks? (?:in other places of the queue|with other needs)"
    r"|expected to start in (?!.*with 90 %)|room is being kept"
)


def kind_of(reason):
    """The same for reasons that differ in times, names and numbers alone."""
    return re.sub(r"\S*\d\S*", "#", reason)


class Waiting:
    """`say` takes a line for the user.  One thread calls it."""

    def __init__(self, client, name, error, say, clock=time.monotonic):
        self._client = client
        self._name = name
        self._error = error
        self._say = say
        self._clock = clock
        self._said = set()
        self._pause = _FIRST_S
        self._next = clock() + self._pause

    def due_in(self):
        """Seconds until there is to be looked again."""
        return max(0.1, self._next - self._clock())

    def look(self):
        """Where it is time to."""
        if self._clock() < self._next:
            return
        self._pause = min(_LONGEST_S, 2 * self._pause)
        self._next = self._clock() + self._pause
        try:
            for task in self._some():
                self._tell(task, self._client.get(f"/v1/tasks/{task['id']}/explain"))
        except self._error:
            pass  # who waits for ends says so

    def _some(self):
        """The first of each of a few rules."""
        lines = self._client.get("/v1/tasks", state="waiting", client=self._name, limit=200)["tasks"]
        by_rule = {}
        for line in lines:  # the newest come first
            by_rule[(line.get("name") or "").split(" ")[0]] = line
        return list(by_rule.values())[-_RULES:]

    def _tell(self, task, why):
        fresh = []
        for reason in (why.get("text", ""), *why.get("details", ())):
            if reason and not _USUAL.match(reason) and kind_of(reason) not in self._said:
                self._said.add(kind_of(reason))
                fresh.append(reason)
        if fresh:
            self._say(f"{task.get('name') or 'a job'} (task {task['id']}) waits: {'; '.join(fresh)}.")
