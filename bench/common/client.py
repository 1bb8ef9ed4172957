"""A client of the engine's socket that costs little: one connection, kept."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from hpcbatch.client import UnixConnection  # noqa: E402


class Refused(Exception):
    pass


class Client:
    def __init__(self, path, timeout=600):
        self._connection = UnixConnection(str(path), timeout)

    def get(self, path):
        return self._ask("GET", path, None)

    def post(self, path, content):
        return self.post_text(path, json.dumps(content))

    def post_text(self, path, text):
        """The same with JSON that is ready: what is timed is the engine, not Python."""
        return self._ask("POST", path, text)

    def _ask(self, verb, path, text):
        self._connection.request(verb, path, text, {"Content-Type": "application/json"} if text else {})
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        if answer.status != 200:
            raise Refused(f"{verb} {path}: {answer.status} {body}")
        return body

    def submit(self, *tasks, **shared):
        """The ids of new tasks, once they are on disk."""
        return self.post("/v1/tasks", {"client": "bench", "tasks": list(tasks), **shared})["ids"]

    def wait(self, ids, must_succeed=True):
        """Until all have ended; returns the counts."""
        while True:
            counts = self.post("/v1/tasks/wait", {"ids": ids, "timeout": 60})
            if counts["done"]:
                break
        if must_succeed and counts["ok"] != counts["total"]:
            raise RuntimeError(f"tasks {ids[:3]} did not all succeed: {counts}")
        return counts
