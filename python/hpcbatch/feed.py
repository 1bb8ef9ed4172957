"""What has become of tasks: told by the engine as it happens.

An engine that is away is waited for; what ended meanwhile is on its disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from . import client as engine

_Entry = TypeVar("_Entry")

# How long the engine may hold an answer that has nothing to tell.
_WAIT_S = 20.0
# After so long without an end it is asked whether there was none.
_DOUBT_S = 60.0
# For one question; who asks later tries again.
_PATIENCE_S = 1.0
# So long without an engine, and somebody is asked to start one.
_AWAY_S = 3.0


class Feed(Generic[_Entry]):
    """Of the tasks of one client name.  `ended(entry, number, event)` is called on the thread that calls `wait`, or on that of
    `watch` or `look` where a task ended before; once for each task.  `warn` takes a line for the user.  `revive` is called while
    no engine answers and nobody has stopped it, and may raise client.Error.

    Any thread may call any method, but `wait` is one thread's."""

    def __init__(
        self,
        client: engine.Client,
        name: str,
        ended: Callable[[_Entry, str, Mapping[str, Any]], object],
        warn: Callable[[str], object],
        revive: Callable[[], object],
    ) -> None:
        self._client = client
        self._name = name
        self._ended = ended
        self._warn = warn
        self._revive = revive
        self._lock = threading.Lock()
        self._open: dict[str, _Entry] = {}
        self._early: dict[str, Mapping[str, Any]] = {}  # ends of tasks that nobody watches yet
        self._keeps_early = 0
        self._stopping = False
        self._has_to_look = True
        self._cursor: str | int | None = None
        self._gaps = 0
        self._heard = time.monotonic()
        self._said: str | None = None  # the last warning, until all is well again
        self._here = threading.local()

    def begin(self) -> None:
        """From now on; for who has nothing to watch yet.  Raises client.Error; without it the first `wait` begins."""
        cursor = self._client.get("/v1/events", after="now")["cursor"]
        with self._lock:
            self._cursor = cursor
            self._has_to_look = False

    def __enter__(self) -> None:
        """While tasks are being submitted, by this thread: what ends before it is watched is kept."""
        with self._lock:
            self._keeps_early += 1
            self._here.gaps = self._gaps

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._keeps_early -= 1
            if self._keeps_early == 0:
                self._early.clear()

    def watch(self, number: str, entry: _Entry) -> None:
        with self._lock:
            event = self._early.pop(number, None)
            if event is None:
                self._open[number] = entry
                # What fell into a gap while it was not watched nobody has told.
                self._has_to_look = self._has_to_look or getattr(self._here, "gaps", self._gaps) != self._gaps
                return
        self._ended(entry, number, event)

    def numbers(self) -> list[str]:
        with self._lock:
            return list(self._open)

    def stop(self) -> None:
        """`wait` returns at once, now and from now on."""
        self._stopping = True
        self._client.interrupt()

    def wait(self, most: float = _WAIT_S) -> None:
        """For the next ends, or `most` seconds."""
        if self._stopping:
            return
        try:
            if self._has_to_look:
                self._look_at_all()
            elif time.monotonic() - self._heard > _DOUBT_S:
                self._doubt()
            events, cursor, pruned = self._client.events(self._name, self._cursor, min(most, _WAIT_S))
        except engine.EngineAway:
            self._wait_for_engine()
            return
        except engine.Error as error:
            self._warn_once(f"the engine does not say what has ended: {error}")
            self._pause(1.0)
            return
        self._said = None
        if pruned:
            # Never false here: another thread may have found a reason to look meanwhile.
            self._has_to_look = True
        for event in events:
            self.tell(event["id"], event)
        self._cursor = cursor
        if events:
            self._heard = time.monotonic()

    def _doubt(self) -> None:
        """What has ended and was not told, for whatever reason, is looked for: else it would be waited for for ever."""
        self._heard = time.monotonic()
        numbers = self.numbers()
        if not numbers:
            return
        try:
            counts = self._client.post("/v1/tasks/wait", {"ids": numbers, "timeout": 0})
            if counts["ok"] + counts["failed"] + counts["cancelled"] == 0:
                return
        except engine.Refused as refusal:
            if refusal.status != 404:  # one of them is so long ended that it is forgotten
                raise
        self._look_at_all()

    def tell(self, number: str, event: Mapping[str, Any]) -> None:
        """A task has ended."""
        with self._lock:
            entry = self._open.pop(number, None)
            if entry is None:
                if self._keeps_early:
                    self._early[number] = event
                return
        self._ended(entry, number, event)

    def look(self, number: str) -> None:
        """Whether a task that is watched has ended already: for one that was submitted long ago.  Raises client.Error."""
        task = self._client.task(number, _PATIENCE_S)
        if task is None or task.get("client") != self._name:
            self.tell(
                number,
                {
                    "id": number,
                    "state": "failed",
                    "failure": "engine_error",
                    "message": "the engine knows nothing of it any more",
                },
            )
        elif task["state"] in ("done", "failed", "cancelled"):
            self.tell(number, task)

    def _look_at_all(self) -> None:
        """Where the feed has a gap: what it told nobody is asked for, one by one."""
        cursor = self._client.get("/v1/events", after="now")["cursor"]
        with self._lock:
            self._gaps += 1
            self._has_to_look = False
        try:
            for number in self.numbers():
                if self._stopping:
                    return
                self.look(number)
        except BaseException:
            self._has_to_look = True
            raise
        self._cursor = cursor

    def _wait_for_engine(self) -> None:
        since = time.monotonic()
        while not self._stopping:
            try:
                self._client.get("/v1/engine")
                break
            except engine.Error:
                pass
            if time.monotonic() - since > _AWAY_S:
                try:
                    if self._was_stopped():
                        raise engine.Error("it was stopped; hpcbatch engine start starts it again")
                    self._revive()
                    break
                except engine.Error as error:
                    self._warn_once(f"waiting for the engine: {error}")
                    since = time.monotonic()
            self._pause(0.1)
        self._has_to_look = True

    def _was_stopped(self) -> bool:
        """By somebody: one that ends by itself has nothing left that anybody watches."""
        home = self._client.home
        return home is not None and bool(self.numbers()) and not engine.has_died(home)

    def _warn_once(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._warn(line)

    def _pause(self, seconds: float) -> None:
        if not self._stopping:
            time.sleep(seconds)
