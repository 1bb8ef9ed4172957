"""Calls of Python functions as tasks: an executor like those of `concurrent.futures`.

    from hpcbatch import Executor

    with Executor(cpus=2, memory="4G", time="10m") as executor:
        futures = [executor.submit(fit, sample) for sample in samples]
        table = list(executor.map(score, rows, chunksize=100))

A call is a task, or shares one with others as quick: it waits for a pilot, has its needs and limits, is shown by `hpcbatch list`,
and goes on while the engine is restarted. Calls run in workers that are this program's alone and keep what they have imported, as
those of ProcessPoolExecutor do. What is pickled must be found where it runs; with `cloudpickle` installed lambdas,
closures and what `__main__` defines go along by value. A call whose worker dies is tried again: it should bear to run twice.
"""

from __future__ import annotations

import atexit
import base64
import concurrent.futures
import contextlib
import dataclasses
import datetime
import functools
import hashlib
import importlib
import itertools
import multiprocessing.process
import os
import pickle
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast

from . import call_seal
from . import client as _client
from . import surroundings as _surroundings
from . import values as _values
from .call_folder import CallFolder
from .calls import Call, CallFailed, CallFuture, Calls, QueuedFuture
from .durations import seconds
from .values import ListOf

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    _P = ParamSpec("_P")

__all__ = ["CallFailed", "CallFuture", "Executor", "Options"]

_T = TypeVar("_T")

# What is longer goes along as a file: the kernel bounds a variable (execve(2), MAX_ARG_STRLEN).
_LONGEST_WORD = 64 << 10
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "call_worker.py")


class _Program:
    """This process: another one, be it of the same script, has workers of its own."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.token = uuid.uuid4().hex


_program = _Program()
os.register_at_fork(after_in_child=_program.renew)


def value_pickler() -> Any:
    """What pickles functions that a worker cannot import, or None."""
    try:
        import cloudpickle  # type: ignore[import,unused-ignore]  # it has no types
    except ImportError:
        return None
    return cloudpickle


def _main_as_spawn_names_it() -> dict[str, Any] | None:
    """What a process that has this one's `__main__` is to import; multiprocessing's documentation, "The spawn and forkserver
    start methods"."""
    # From then on this process knows the name by which such a process knows its __main__.
    importlib.import_module("multiprocessing")
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name:
        return {"init_main_from_name": name}
    path = getattr(main, "__file__", None)
    # There is none of what is typed, or read from standard input.
    return {"init_main_from_path": os.path.abspath(path)} if path and os.path.exists(path) else None


class _Chunk(Generic[_T]):
    """Several calls of one function in one task."""

    def __init__(self, function: Callable[..., _T]) -> None:
        self.function = function

    def __call__(self, rows: Sequence[tuple[Any, ...]]) -> list[_T]:
        return [self.function(*row) for row in rows]


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, (functools.partial, _Chunk)):
        function = function.func if isinstance(function, functools.partial) else function.function
    return function


def _each(chunks: Iterator[list[_T]]) -> Iterator[_T]:
    closes: Any = chunks  # it is a generator
    with contextlib.closing(closes):
        for chunk in chunks:
            yield from chunk


@dataclasses.dataclass
class _Recipe:
    """The task of some calls. `variables`: of each task, those of call_seal among them."""

    needs: dict[str, Any]
    time: str | float | None
    variables: dict[str, str]
    key: str
    folder: CallFolder

    def __call__(self, calls: list[Call], number: str) -> dict[str, Any]:
        task = {
            **self.needs,
            "name": calls[0].name,
            "outputs": {"results": self.folder.path_of(f"{number}.results")},
            "command": [sys.executable, _WORKER, "results"],
        }
        # Of calls that share a task because they are quick, one that is not may take its whole time: where that is not enough
        # for all of them, they run again on their own. A chunk has its calls' times together.
        longest = max(call.count for call in calls)
        if self.time is not None:
            # None of what only the engine may judge.
            limit = self.time if isinstance(self.time, (int, float)) else seconds(self.time, 1)
            task["time"] = self.time if limit is None else limit * longest
        pickled = pickle.dumps([call.pickled for call in calls], protocol=pickle.HIGHEST_PROTOCOL)
        sealed = call_seal.sealed(self.key, f"calls {number}", pickled)
        word = base64.b64encode(sealed).decode()
        if len(word) > _LONGEST_WORD:
            self.folder.write(f"{number}.calls", sealed)
            task["inputs"] = {"calls": self.folder.path_of(f"{number}.calls")}
            word = ""
        task["env"] = {**self.variables, call_seal.CALLS: f"{number} {word}".rstrip()}
        return _client.with_names_as_they_stand(task)


_living: weakref.WeakSet[Executor] = weakref.WeakSet()


def _wait_for_all() -> None:
    for executor in list(_living):
        executor.shutdown(wait=True)


# As the pools of concurrent.futures: before threads are taken down, where this Python has a word for that.
getattr(threading, "_register_atexit", atexit.register)(_wait_for_all)


class Options(TypedDict, total=False):
    """What `Executor` takes, as `task` and others hand it on."""

    cpus: float
    memory: str | int | None
    time: str | float | datetime.timedelta | None
    site: str | None
    warm: bool
    gpus: float | str | Mapping[str, float] | None
    nodes: int | None
    tags: ListOf[str] | AbstractSet[str] | None
    retries: int | None
    env: Mapping[str, str] | None
    initializer: Callable[..., object] | None
    initargs: tuple[Any, ...]
    directory: str | os.PathLike[str] | None
    name: str | None
    program: str | None
    mem: str | int | None
    detached: bool


class Executor(concurrent.futures.Executor):
    """`concurrent.futures.Executor` whose calls are tasks of the user's engine, which is started where none runs. Where cloudpickle is
    not installed, functions must be importable, and a script's work stand behind `if __name__ == "__main__":`.

    `cpus`, `memory`, `time`, `gpus`, `site`, `tags`, `retries`: of each call, as options of `hpcbatch submit`, and where
    they are not said as there: no limit of time but the site's, and the cpus' share of memory (`mem` is `memory`); with `nodes` above 1 each
    call runs on the first of so many nodes, not warm, and starts what it likes on the others (`mpirun`); a chunk of `map` has the
    times of its calls together. `warm`: calls run in workers that stay (else each in a process of its own);
    `initializer(*initargs)` runs first in each. `env`: variables besides the caller's own. `directory`: where calls that are large,
    and results, pass; others must not be able to write there (Error); nodes must see it, or the site's transport moves them (default:
    below the engine's own state). `name`: who submits. `detached`: calls run on when this process has
    ended; others the engine cancels a minute later. Methods may be called by any thread."""

    def __init__(
        self,
        cpus: float = 1,
        memory: str | int | None = None,
        time: str | float | datetime.timedelta | None = None,
        site: str | None = None,
        warm: bool = True,
        *,
        gpus: float | str | Mapping[str, float] | None = None,
        nodes: int | None = None,
        tags: ListOf[str] | AbstractSet[str] | None = None,
        retries: int | None = None,
        env: Mapping[str, str] | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        directory: str | os.PathLike[str] | None = None,
        name: str | None = None,
        program: str | None = None,
        mem: str | int | None = None,
        detached: bool = False,
    ) -> None:
        if memory is not None and mem is not None:
            raise TypeError("memory and mem are the same: say one of them")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if getattr(multiprocessing.process.current_process(), "_inheriting", False):
            raise RuntimeError(
                "an Executor is made while a worker imports the main module: put what starts the work behind"
                " `if __name__ == '__main__':`, or install cloudpickle, with which nothing is imported"
            )
        # A task over several nodes has no worker: its call may start what lies there.
        warm = warm and (nodes or 1) == 1
        self._is_warm = warm
        self._pickler = value_pickler() or pickle
        preparation = self._preparation(initializer, initargs)
        asked = {
            "cpus": (cpus, _values.number_or_text),
            "memory": (mem if memory is None else memory, _values.number_or_text),
            "site": (site, _values.text),
            "gpus": (gpus, _values.gpus),
            "nodes": (nodes, _values.number),
            "retries": (retries, _values.number),
            "tags": (tags, _values.texts),
            "env": (env, _values.environment),
        }
        needs = {word: read(word, value) for word, (value, read) in asked.items() if value is not None}
        memory, env, limit = needs.get("memory"), needs.get("env"), _values.seconds_or_text(time)
        if warm:
            # What prepares the same in this program uses the same workers; what an initializer reads may be other than before.
            whose = _program.token if initializer is None else uuid.uuid4().hex
            own = hashlib.sha256(
                f"{whose}\0{preparation}\0{memory}\0{sorted((env or {}).items())}".encode()
            ).hexdigest()[:12]
            needs["service"] = {
                "name": f"python-{own}",
                "kind": "answer",
                "command": [sys.executable, _WORKER, "--serve"],
                "env": {**(env or {}), call_seal.PREPARATION: preparation},
            }
            if memory is not None:
                needs["service"]["memory"] = memory
        engine = _client.connect(program)
        parent = os.path.join(engine.get("/v1/engine")["home"], "calls") if directory is None else os.fspath(directory)
        folder = CallFolder(os.path.abspath(parent), detached)
        key = call_seal.new_key()
        variables = {**(env or {}), call_seal.PREPARATION: preparation, call_seal.KEY: key}
        recipe = _Recipe(needs, limit, variables, key, folder)
        self._calls = Calls(
            engine,
            program,
            name or f"python:{_surroundings.user_name()}-{uuid.uuid4().hex[:8]}",
            folder,
            key,
            recipe,
            detached,
        )
        self._closing = threading.Lock()
        self._is_closed = False
        self._process = os.getpid()
        self._on_death = weakref.finalize(self, self._calls.close)
        self._on_death.atexit = False
        _living.add(self)

    def _preparation(self, initializer: Callable[..., object] | None, initargs: tuple[Any, ...]) -> str:
        by_value = self._pickler is not pickle
        said = {
            "path": [os.getcwd() if path == "" else path for path in sys.path],
            "directory": os.getcwd(),
            "main": None if by_value else _main_as_spawn_names_it(),
            "by_value": by_value,
            "argv": [str(word) for word in sys.argv],
            "umask": _surroundings.own_umask(),
            # What a multiprocessing.Manager of this program asks of who uses its objects.
            "authkey": bytes(multiprocessing.process.current_process().authkey),
            "initializer": None if initializer is None else self._pickler.dumps((initializer, initargs)),
        }
        return base64.b64encode(pickle.dumps(said)).decode()

    def folder_of(self, name: str) -> str:
        """For files that go when it does: below its `directory`; nobody has made it yet."""
        return self._calls.path_of(name)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> CallFuture[_T]:
        """Queues `fn(*args, **kwargs)`. What cannot be pickled is the future's exception."""
        if self._process != os.getpid():
            raise RuntimeError("an Executor does not go along when a process is forked: make one in the child")
        with self._closing:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future: QueuedFuture[_T] = QueuedFuture(self._calls)
            try:
                pickled = self._pickler.dumps((fn, args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)
            except Exception as error:
                if self._pickler is pickle and isinstance(error, (pickle.PicklingError, AttributeError)):
                    error = pickle.PicklingError(
                        f"{error}; with cloudpickle installed, lambdas and what functions define within themselves go along"
                    )
                future.set_exception(error)
                return future
            inner = _innermost(fn)
            name = str(getattr(inner, "__qualname__", type(inner).__qualname__))
            count = len(cast("Sequence[object]", args[0])) if isinstance(fn, _Chunk) else 1
            self._calls.add(Call(future, pickled, name, count, not self._is_warm))
            return future

    def map(
        self,
        fn: Callable[..., _T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[_T]:
        """As ProcessPoolExecutor.map: `chunksize` calls are one task. `buffersize` is of Python 3.14."""
        more: dict[str, Any] = {} if buffersize is None else {"buffersize": buffersize}
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **more)
        rows = zip(*iterables)
        chunks = iter(lambda: list(itertools.islice(rows, chunksize)), [])
        return _each(super().map(_Chunk(fn), chunks, timeout=timeout, **more))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more calls; with `cancel_futures` those that do not run yet are cancelled. Waits for the others."""
        with self._closing:
            self._is_closed = True
        self._calls.close(cancel_futures)
        if wait:
            self._calls.join()
