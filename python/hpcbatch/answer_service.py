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

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
import time

TYPE_CHECKING = False  # a worker does not wait for `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal, Optional, TypeVar, overload

    Model = TypeVar("Model")
    Fact = Optional[tuple[int, int, int]]

# A file system's clock may be so far behind.
_CLOCKS_APART_NS = 50_000_000
# What is loaded may give itself other arguments.
_PROGRAM = sys.argv[0]


class Request:
    """What is asked: `argv`, `directory` and `env` of the task; `stdout` and `stderr` are its own."""

    def __init__(self, worker: _Worker, words: dict[str, Any]) -> None:
        self.id: Any = words["id"]
        self.argv: list[str] = words["argv"]
        self.directory: str = words["directory"]
        self.env: dict[str, str] = words["env"]
        self.stdout: io.TextIOBase = _Stream(worker, self.id, "stdout")
        self.stderr: io.TextIOBase = _Stream(worker, self.id, "stderr")


class _Stream(io.TextIOBase):
    """Says what is written as a request's own, while there is one."""

    encoding, errors = "utf-8", "surrogateescape"

    def __init__(self, worker: _Worker, id: Any, name: str) -> None:
        super().__init__()
        self._worker, self._name = worker, name
        self._own = sys.__stderr__ or open(os.devnull, "w")  # of the worker: its log
        self.begin(id)
        self.buffer = _Bytes(self)

    def begin(self, id: Any) -> None:
        """With a request, or None. `told`: how many bytes of it have been said."""
        self.id: Any = id
        self.told = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text and self.id is not None:
            self._worker.say(id=self.id, **{self._name: text})
            self.told += len(text.encode("utf-8", "surrogateescape"))
        elif text:
            self._own.write(text)
        return len(text)

    def flush(self) -> None:
        self._own.flush()

    def reconfigure(self, **_: object) -> None:
        pass

    def close(self) -> None:
        pass  # others print yet


class _Bytes(io.RawIOBase):
    def __init__(self, text: _Stream) -> None:
        super().__init__()
        self._text = text

    def writable(self) -> bool:
        return True

    def write(self, some: Any) -> int:
        self._text.write(bytes(some).decode("utf-8", "surrogateescape"))
        return len(some)

    def close(self) -> None:
        pass


class _Worker:
    def __init__(self) -> None:
        self._socket = socket.socket(fileno=os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self._lines = self._socket.makefile("r", encoding="utf-8", errors="surrogateescape", newline="\n")

    def say(self, **words: object) -> None:
        self._socket.sendall((json.dumps(words, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape"))

    def batches(self) -> Iterator[list[Request]]:
        for line in self._lines:
            if requests := json.loads(line).get("requests"):  # all else tells of some that nobody waits for any more
                yield [Request(self, one) for one in requests]


def _loaded_files(installed_too: bool) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    library = os.path.dirname(os.__file__) + os.sep
    for name in [_PROGRAM] + [getattr(module, "__file__", None) for module in list(sys.modules.values())]:
        with contextlib.suppress(OSError, ValueError):
            if isinstance(name, str) and (installed_too or not (name.startswith(library) or "-packages/" in name)):
                facts[name] = None
                info = os.stat(name)
                facts[name] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return facts


def _one_by_one(
    model: Model, answer: Callable[[Model, Request], int | None], streams: Iterable[_Stream], batch: list[Request]
) -> Iterator[tuple[Request, int]]:
    for request in batch:
        # The same all along: who keeps one, as a handler of `logging`, goes on with the requests that come.
        for stream in streams:
            stream.begin(request.id)
        try:
            os.chdir(request.directory)
            code = answer(model, request) or 0
        except SystemExit as end:
            is_text = end.code is not None and not isinstance(end.code, int)
            code = 1 if is_text else int(end.code or 0)
            if is_text:
                print(end.code, file=sys.stderr)
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            code = 1
        for stream in streams:
            stream.begin(None)
        yield request, code


if TYPE_CHECKING:

    @overload
    def serve(
        load: Callable[[], Model], answer: Callable[[Model, Request], int | None], together: Literal[False] = False
    ) -> None:
        ...

    @overload
    def serve(
        load: Callable[[], Model],
        answer: Callable[[Model, list[Request]], Iterable[int | None]],
        together: Literal[True],
    ) -> None:
        ...


def serve(load: Callable[[], Any], answer: Callable[[Any, Any], Any], together: bool = False) -> None:
    """Answers until the pilot wants this worker no more."""
    worker = _Worker()
    worker.say(starting="loading")
    streams = _Stream(worker, None, "stdout"), _Stream(worker, None, "stderr")
    if not together:
        sys.stdout, sys.stderr = streams
    model = load()
    worker.say(ready=True)

    def answer_all(batch: list[Request]) -> Iterable[tuple[Request, int | None]]:
        return zip(batch, answer(model, batch)) if together else _one_by_one(model, answer, streams, batch)

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
