"""Which calls share a task: one costs some milliseconds, and many calls less."""

from __future__ import annotations

import collections

# Quick calls share a task for so long together, at most so many, and never so that fewer than so many tasks are made of those that
# wait: the last of them are to end together, wherever they run.
_TOGETHER_S, _MOST_TOGETHER, _LEAST_TASKS = 0.2, 256, 16
# That is, as soon as it is known how many run side by side, so many for each, within bounds.
_TASKS_EACH, _FEWEST_TASKS, _MOST_TASKS, _KNOWN_BY = 3, 4, 64, 8
# While nothing is known of a function no more than so many calls of it are handed in, for so long.
_FIRST_CALLS, _FIRST_S = 32, 0.25
# What nine in ten of the last so many calls took at most: one that was disturbed says nothing of the others, one in ten does.
_LAST_CALLS, _MOST_OF_THEM = 64, 0.9


class Pace:
    """How many waiting calls of a function share a task: pure, times in seconds of any clock. One thread."""

    def __init__(self) -> None:
        self._took: dict[str, collections.deque[float]] = {}
        self._long: dict[str, float] = {}
        self._first: dict[str, tuple[float, int]] = {}
        self._ran: collections.deque[tuple[float, float]] = collections.deque(maxlen=64)

    def ran(self, started: float, ended: float) -> None:
        """When a task of calls did, by any clock."""
        self._ran.append((started, ended))

    def _least_tasks(self) -> int:
        if len(self._ran) < _KNOWN_BY:
            return _LEAST_TASKS
        span = max(ended for _, ended in self._ran) - min(started for started, _ in self._ran)
        side_by_side = sum(ended - started for started, ended in self._ran) / max(span, 1e-6)
        return int(min(_MOST_TASKS, max(_FEWEST_TASKS, round(_TASKS_EACH * side_by_side))))

    def ended(self, name: str, seconds: float) -> None:
        self._took.setdefault(name, collections.deque(maxlen=_LAST_CALLS)).append(seconds)
        self._long.pop(name, None)

    def _long_of(self, name: str) -> float | None:
        if name not in self._long and name in self._took:
            took = sorted(self._took[name])
            self._long[name] = took[int(_MOST_OF_THEM * len(took))]
        return self._long.get(name)

    def together(self, name: str, waiting: int, now: float) -> int:
        """0: none is handed in yet."""
        long = self._long_of(name)
        if long is not None:
            fit = int(_TOGETHER_S / max(long, _TOGETHER_S / _MOST_TOGETHER))
            return max(1, min(fit, waiting // self._least_tasks()))
        since, handed_in = self._first.setdefault(name, (now, 0))
        if handed_in >= _FIRST_CALLS and now - since < _FIRST_S:
            return 0
        self._first[name] = (since, handed_in + 1)
        return 1
