"""A worker of a service that answers: what is dear to load is loaded once, and each request is one call.

    from hpcbatch.answer_service import serve

    def answer(model, request):            # request.argv, .directory, .env
        print(model.run(request.argv[1]))  # goes where the task's own output would
        return 0                           # its exit code; None is 0, an exception is 1

    serve(Model, answer)                   # or serve(Model, answer_all, together=True): a list in, a list of codes out

Started by a pilot alone; docs/formats.md ("Services that answer") has what is said.  One thread.  The request's directory
is the current one meanwhile.  Where a file that was loaded has changed the worker is started anew, where it is of an
installed package within a second.  Python 3.8 or later.
"""

import contextlib
import json
import os
import socket
import sys
import time


class Request:
    def __init__(self, worker, words):
        self.id, self.argv, self.directory, self.env = (words[key] for key in ("id", "argv", "directory", "env"))
        self.stdout, self.stderr = _Stream(worker, self.id, "stdout"), _Stream(worker, self.id, "stderr")


class _Stream:
    def __init__(self, worker, id, name):
        self._worker, self._id, self._name = worker, id, name

    def write(self, text):
        if text:
            self._worker.say(id=self._id, **{self._name: text})
        return len(text)

    def flush(self):
        pass


class _Worker:
    def __init__(self):
        self._socket = socket.socket(fileno=os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self._lines = self._socket.makefile("r", encoding="utf-8", errors="surrogateescape", newline="\n")

    def say(self, **words):
        self._socket.sendall((json.dumps(words, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape"))

    def batches(self):
        for line in self._lines:
            if requests := json.loads(line).get("requests"):  # all else tells of some that nobody waits for any more
                yield [Request(self, one) for one in requests]


def _loaded_files(installed_too):
    facts, library = {}, os.path.dirname(os.__file__) + os.sep
    for name in [sys.argv[0]] + [getattr(module, "__file__", None) for module in list(sys.modules.values())]:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            if installed_too or not (name.startswith(library) or "-packages/" in name):
                facts[name] = None
                info = os.stat(name)
                facts[name] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return facts


def _one_by_one(model, answer, batch):
    for request in batch:
        with contextlib.redirect_stdout(request.stdout), contextlib.redirect_stderr(request.stderr):
            try:
                os.chdir(request.directory)
                yield request, answer(model, request) or 0
            except SystemExit as end:
                is_text = end.code is not None and not isinstance(end.code, int)
                yield request, (print(end.code, file=sys.stderr) or 1) if is_text else end.code or 0
            except Exception:
                sys.excepthook(*sys.exc_info())
                yield request, 1


def serve(load, answer, together=False):
    worker = _Worker()
    worker.say(starting="loading")
    model = load()
    worker.say(ready=True)
    loaded, looked, modules = _loaded_files(True), time.monotonic(), len(sys.modules)
    for batch in worker.batches():
        is_due = time.monotonic() - looked > 1
        if any(loaded.get(name, facts) != facts for name, facts in _loaded_files(is_due).items()):
            worker.say(renew=True)
            continue
        looked = time.monotonic() if is_due else looked
        for request, code in zip(batch, answer(model, batch)) if together else _one_by_one(model, answer, batch):
            worker.say(id=request.id, exit=int(code or 0) & 255)
        if len(sys.modules) != modules:
            loaded, modules = {**_loaded_files(True), **loaded}, len(sys.modules)
