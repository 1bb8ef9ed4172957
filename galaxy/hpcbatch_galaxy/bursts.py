"""Submits of many threads in few messages: what comes while one message is under way goes together with the next."""

import threading


class Bursts:
    """`send` takes a list of submits and gives for each its ids or the error that it met, in their order."""

    def __init__(self, send):
        self._send = send
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = []
        self._is_sending = False

    def submit(self, submit):
        """The ids.  Raises what `send` raises, or the error that it gave for this submit."""
        mine = {"submit": submit}
        with self._changed:
            self._waiting.append(mine)
            while self._is_sending and "answer" not in mine:
                self._changed.wait()
            if "answer" not in mine:
                burst, self._waiting, self._is_sending = self._waiting, [], True
        if "answer" not in mine:
            self._deliver(burst)
        if isinstance(mine["answer"], BaseException):
            raise mine["answer"]
        return mine["answer"]

    def _deliver(self, burst):
        try:
            answers = self._send([one["submit"] for one in burst])
            if len(answers) != len(burst):
                raise RuntimeError(f"{len(burst)} submits were sent and {len(answers)} were answered")
        except Exception as error:
            answers = [error] * len(burst)
        with self._changed:
            for one, answer in zip(burst, answers):
                one["answer"] = answer
            self._is_sending = False
            self._changed.notify_all()
