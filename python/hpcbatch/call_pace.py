"""Which calls share a task: one costs some milliseconds, and many calls less."""

from __future__ import annotations

# Quick calls share a task for so long together, at most so many, and never so that fewer than so many tasks are made of those that wait.
_TOGETHER_S, _MOST_TOGETHER, _LEAST_TASKS = 0.2, 256, 16
# While nothing is known of a function no more than so many calls of it are handed in, for so long.
_FIRST_CALLS, _FIRST_S = 32, 0.25
_FADES = 0.9


class Pace:
    """How many waiting calls of a function share a task: pure, times in seconds of any clock. One thread."""

    def __init__(self) -> None:
        self._longest: dict[str, float] = {}
        self._first: dict[str, tuple[float, int]] = {}

    def ended(self, name: str, seconds: float) -> None:
        self._longest[name] = max(seconds, _FADES * self._longest.get(name, 0.0))

    def together(self, name: str, waiting: int, now: float) -> int:
        """0: none is handed in yet."""
        longest = self._longest.get(name)
        if longest is not None:
            fit = int(_TOGETHER_S / max(longest, _TOGETHER_S / _MOST_TOGETHER))
            return max(1, min(fit, waiting // _LEAST_TASKS))
        since, handed_in = self._first.setdefault(name, (now, 0))
        if handed_in >= _FIRST_CALLS and now - since < _FIRST_S:
            return 0
        self._first[name] = (since, handed_in + 1)
        return 1
