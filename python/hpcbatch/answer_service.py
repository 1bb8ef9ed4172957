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
import functools
import io
import json
import os
import socket
import sys
import time


# A file system's clock may be so far behind.
_CLOCKS_APART_NS = 50_000_000
# What is loaded may give itself other arguments.
_PROGRAM = sys.argv[0]


class Request:
    def __init__(self, worker, words):
        self.id, self.argv, self.directory, self.env = (words[key] for key in ("id", "argv", "directory", "env"))
        self.stdout, self.stderr = _Stream(worker, self.id, "stdout"), _Stream(worker, self.id, "stderr")


class _Stream(io.TextIOBase):
    """Says what is written as a request's own, while there is one."""

    encoding, errors = "utf-8", "surrogateescape"

    def __init__(self, worker, id, name):
        super().__init__()
        self._worker, self._name = worker, name
        self.begin(id)
        self.buffer = _Bytes(self)

    def begin(self, id):
        """With a request, or None. `told`: how many bytes of it have been said."""
        self.id, self.told = id, 0

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text and self.id is not None:
            self._worker.say(id=self.id, **{self._name: text})
            self.told += len(text.encode("utf-8", "surrogateescape"))
        elif text:
            sys.__stderr__.write(text)
        return len(text)

    def flush(self):
        sys.__stderr__.flush()

    def reconfigure(self, **_):
        pass

    def close(self):
        pass  # others print yet


class _Bytes(io.RawIOBase):
    def __init__(self, text):
        super().__init__()
        self._text = text

    def writable(self):
        return True

    def write(self, some):
        self._text.write(bytes(some).decode("utf-8", "surrogateescape"))
        return len(some)

    def close(self):
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
    for name in [_PROGRAM] + [getattr(module, "__file__", None) for module in list(sys.modules.values())]:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            if installed_too or not (name.startswith(library) or "-packages/" in name):
                facts[name] = None
                info = os.stat(name)
                facts[name] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return facts


def _one_by_one(model, answer, streams, batch):
    for request in batch:
        # The same all along: who keeps one, as a handler of `logging`, goes on with the requests that come.
        for stream in streams:
            stream.begin(request.id)
        try:
            os.chdir(request.directory)
            code = answer(model, request) or 0
        except SystemExit as end:
            is_text = end.code is not None and not isinstance(end.code, int)
            code = (print(end.code, file=sys.stderr) or 1) if is_text else end.code or 0
        except Exception:
            sys.excepthook(*sys.exc_info())
            code = 1
        for stream in streams:
            stream.begin(None)
        yield request, code


def serve(load, answer, together=False):
    worker = _Worker()
    worker.say(starting="loading")
    if not together:
        streams = sys.stdout, sys.stderr = _Stream(worker, None, "stdout"), _Stream(worker, None, "stderr")
    model = load()
    worker.say(ready=True)
    if together:
        answer_all = lambda batch: zip(batch, answer(model, batch))  # noqa: E731
    else:
        answer_all = functools.partial(_one_by_one, model, answer, streams)
    loaded, looked, modules = _loaded_files(True), time.monotonic(), len(sys.modules)
    for batch in worker.batches():
        is_due = time.monotonic() - looked > 1
        if any(loaded.get(name, facts) != facts for name, facts in _loaded_files(is_due).items()):
            worker.say(renew=True)
            continue
        looked = time.monotonic() if is_due else looked
        began = time.time_ns() - _CLOCKS_APART_NS
        for request, code in answer_all(batch):
            worker.say(id=request.id, exit=int(code or 0) & 255)
        if len(sys.modules) != modules:
            # What was written meanwhile may have been loaded before it was.
            new = {name: facts if facts and facts[0] < began else None for name, facts in _loaded_files(True).items()}
            loaded, modules = {**new, **loaded}, len(sys.modules)
