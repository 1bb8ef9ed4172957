"""Tells the engine, for as long as this process lives, that somebody waits for what it has submitted.

A request is open all the time, and never answered. The kernel closes its connection when the process ends, however it ends. A
process that is stopped, or whose interpreter is busy for hours, has to do nothing. Without it the engine cancels the work after LEASE_S.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import urllib.parse
import uuid
import weakref
from collections.abc import Callable

from . import client as _client

# How long the engine lets work go on whose reader has gone: it may be the engine that was away.
LEASE_S = 60.0
_CONNECT_S = 60.0
_TRY_AGAIN_S = 0.5


class Reader:
    """Of the engine at `path`; None: the user's engine, looked for at each try. `warn` is called with a line for the user, in a
    thread of its own. `lease_s`: seconds. Any thread may call any method; a process that was forked has none of its parent's.
    """

    def __init__(self, path: str | None, warn: Callable[[str], None], lease_s: float | None = None) -> None:
        self.name: str = f"python-{uuid.uuid4().hex}"
        self.lease_s: float = LEASE_S if lease_s is None else lease_s
        self._path = path
        self._warn: Callable[[str], None] | None = warn
        self._ended = threading.Event()
        self._connection = self._to_engine()
        _living.add(self)
        threading.Thread(target=self._hold, name="hpcbatch reader", daemon=True).start()

    @property
    def read_by(self) -> tuple[str, float]:
        """As a submit says who waits for it."""
        return self.name, self.lease_s

    def end(self) -> None:
        """Nobody waits any more: what has not ended by then is cancelled after the lease."""
        self._ended.set()
        _client.shut(self._connection)

    def _to_engine(self) -> _client.UnixConnection:
        return _client.UnixConnection(self._path, _CONNECT_S)

    def _hold(self) -> None:
        query = urllib.parse.urlencode({"reader": self.name})
        while not self._ended.is_set():
            self._connection = self._to_engine()
            try:
                self._connection.connect()
                self._connection.sock.settimeout(None)
                self._connection.request("GET", f"/v1/readers?{query}")
                if not self._ended.is_set():
                    self._was_answered(self._connection.getresponse())
            except (OSError, http.client.HTTPException, _client.Error):
                pass
            finally:
                self._connection.close()
            self._ended.wait(_TRY_AGAIN_S)

    def _was_answered(self, answer: http.client.HTTPResponse) -> None:
        """An engine that knows of this reader never answers."""
        text = answer.read()
        if (warn := self._warn) is None:
            return
        self._warn = None
        try:
            said = str(json.loads(text)["error"])
        except (ValueError, KeyError, TypeError):
            said = f"status {answer.status}"
        warn(
            f"cannot tell the engine that this program waits for its work: {said}. It is asked again; if it goes on so for"
            f" {self.lease_s:g} s, the engine cancels what has not ended"
        )

    def _forked(self) -> None:
        """What a child has open of its parent's connection would keep it alive after the parent's end."""
        # Not by closing it: an answer that is being read in a thread that is no more has the socket, too.
        with contextlib.suppress(OSError, AttributeError):
            os.close(self._connection.sock.detach())


_living: weakref.WeakSet[Reader] = weakref.WeakSet()


def _forget_all() -> None:
    for reader in list(_living):
        reader._forked()
    _living.clear()


os.register_at_fork(after_in_child=_forget_all)
