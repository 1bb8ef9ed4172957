"""Cancelling, apart from who asks for it: Galaxy asks while it holds its database, and again never."""

import logging
import threading

from hpcbatch import client as engine

log = logging.getLogger(__name__)

_PAUSE_S = 0.5


class Cancels:
    """`run` is one thread's; any may ask.

    `left_over`: asked once, when the engine answers: ids of tasks that nobody wants since before this process."""

    def __init__(self, client, name, left_over):
        self._client = client
        self._name = name
        self._left_over = left_over
        self._asked = threading.Condition()
        self._ids = set()
        self._keys = set()

    def ids(self, ids):
        with self._asked:
            self._ids.update(ids)
            self._asked.notify()

    def key(self, key):
        """Whatever was submitted by that key, where anything was."""
        with self._asked:
            self._keys.add(key)
            self._asked.notify()

    def run(self, should_stop):
        while not should_stop():
            with self._asked:
                if not self._ids and not self._keys and not self._left_over and not self._asked.wait(1.0):
                    continue
                ids, self._ids = self._ids, set()
                keys, self._keys = self._keys, set()
            try:
                if self._left_over:
                    ids.update(self._left_over())
                    self._left_over = None
                for key in sorted(keys):
                    ids.update(self._client.ids_of_key(self._name, key, 0.0))
                    keys.discard(key)
                self._cancel(sorted(ids))
            except engine.EngineAway:
                with self._asked:
                    self._ids |= ids
                    self._keys |= keys
                    self._asked.wait(_PAUSE_S)
            except Exception:
                self._left_over = None
                log.exception("cannot cancel tasks %s", " ".join(sorted(ids)))

    def _cancel(self, ids):
        try:
            self._client.cancel(ids, patience=0.0)
        except engine.Refused as refusal:
            # One that is unknown by now stops the others.
            if len(ids) > 1:
                for number in ids:
                    self._cancel([number])
            else:
                log.info("task %s is not cancelled: %s", ids[0], refusal)
