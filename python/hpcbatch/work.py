"""Work for hpcbatch from Python, with the options of its command line as keyword arguments.

    from hpcbatch import Client

    client = Client()
    sweep = client.submit(["fit", "{sample}", "{lambda}"], items=[{"sample": "a", "lambda": 0.1}, {"sample": "b", "lambda": 0.2}],
                          cpus=2, memory="2G", time="1h", retries=1)
    counts = sweep.wait()
    for task in sweep.tasks():
        print(task.id, task.item, task.state, sweep.log(task.index))

An engine is started where none runs, as `hpcbatch submit` does it. What goes wrong is an exception whose text is the
sentence that the command line would print: `Refused` where the request is wrong, `EngineAway` where no engine answers.
A `Client` may be used by several threads.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime
import functools
import html
import inspect
import os
import time as _time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Union

from . import client as _client
from . import surroundings as _surroundings
from . import values as _values
from .client import EngineAway, Error, Refused
from .progress import Bar, bar_html
from .reader import Reader
from .task_options import API_NAMES, KINDS, Path, TaskOptions
from .values import ListOf, row_of, word_of

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Unpack

    _P = ParamSpec("_P")

__all__ = ["Client", "Counts", "EngineAway", "Error", "Failed", "Refused", "Submission", "Task", "submit", "wait"]

Item = Union[str, int, float, "os.PathLike[str]", Sequence[object], Mapping[str, object]]
_T = TypeVar("_T")
#: Seconds that one question to the engine may wait.
_LONGEST_WAIT = 30.0
#: The same on a thread of asyncio's, of which there are few.
_ASYNC_STEP = 1.0
#: Seconds for which one that was stopped is waited for, and between looks for it.
_LONGEST_ABSENCE, _AWAY_STEP = 600.0, 0.2
_PAGE = 10_000


@dataclasses.dataclass(frozen=True)
class Counts:
    """How the tasks of submissions stand."""

    total: int
    done: int
    failed: int
    cancelled: int
    running: int
    waiting: int
    held: int = 0

    @property
    def all_done(self) -> bool:
        """Whether all have ended well."""
        return self.done == self.total

    @property
    def ended(self) -> int:
        return self.done + self.failed + self.cancelled

    def words(self) -> str:
        """`8 done, 1 failed, 3 waiting of 12`"""
        said = {
            "done": self.done,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "running": self.running,
            "waiting": self.waiting,
            "held": self.held,
        }
        return ", ".join(f"{number:,} {word}" for word, number in said.items() if number) + f" of {self.total:,}"


@dataclasses.dataclass(frozen=True)
class Task:
    """One task; `facts` is all that the engine says of it (docs/api.md), times in seconds since 1970, memory in bytes."""

    id: str
    state: str
    item: str | None
    exit_code: int | None
    failure: str | None
    message: str | None
    facts: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def index(self) -> int | None:
        """Of an array, from 1."""
        return int(self.id.split(".")[1]) if "." in self.id else None


class Failed(Error):
    """`check`: some tasks have not ended well. `counts`: how many."""

    def __init__(self, text: str, counts: Counts) -> None:
        super().__init__(text)
        self.counts = counts

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.counts)


class Needs(TypedDict, total=False):
    """What `retry` may change, as `submit` takes it."""

    cpus: float
    memory: str | int
    mem: str | int
    disk: str | int
    gpus: float | str | Mapping[str, Any]
    time: str | float | datetime.timedelta


def _given(**options: object) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _texts(word: str, values: Iterable[str] | None) -> list[str] | None:
    try:
        return None if values is None else _values.texts(word, values)
    except TypeError as error:
        raise Error(str(error)) from None


def _range_of(array: str | range | None) -> str | None:
    """range(1, 8, 3) as `1-7:3`."""
    if not isinstance(array, range):
        return array
    if not array or array.step < 0:
        raise Error(f"array={array!r} has no index, or counts down")
    return f"{array[0]}-{array[-1]}:{array.step}"


def _item_of(facts: Mapping[str, Any]) -> str | None:
    """As Python has names of files: what is no UTF-8 stands in surrogates (PEP 383)."""
    exact = facts.get("item_base64")
    return facts.get("item") if exact is None else base64.b64decode(exact).decode("utf-8", "surrogateescape")


def _ids(ids: str | int | Submission | Iterable[str | Submission] | None) -> list[str]:
    if ids is None:
        return []
    return [str(ids)] if isinstance(ids, (str, int, Submission)) else [str(one) for one in ids]


def _absolute(path: Path, directory: str, items_are_paths: bool = False) -> str:
    text = os.fspath(path)
    is_items = items_are_paths and text.startswith("{") and not text.startswith(("{{", "{#}", "{/}", "{/.}"))
    return text if text == "none" or is_items else os.path.join(directory, text)


_KINDS = {word: kind for kind, words in KINDS.items() for word in words}


def _said(options: Mapping[str, Any], directory: str, own: bool) -> dict[str, Any]:
    """As a request has them. The engine reads what is text. `own`: whether items are paths themselves."""
    cwd = options.get("cwd")
    base = directory if cwd is None else _absolute(cwd, directory, own)
    said: dict[str, Any] = {}
    for word, value in options.items():
        key, kind = API_NAMES.get(word, word), _KINDS.get(word)
        if value is None:
            continue
        if kind == "Folder":
            said[key] = base
        elif kind in ("File", "Stream"):
            said[key] = _absolute(value, base, own)
        elif kind == "Files":
            said[key] = {name: _absolute(path, directory, own) for name, path in value.items()}
        elif kind == "WordList":
            said[key] = _texts(word, value)
        elif kind == "Ids":
            said[key] = _ids(value) or None
        elif kind == "Moment" and isinstance(value, datetime.datetime):
            said[key] = value.timestamp()
        elif kind == "TimeSpan":
            said[key] = _values.seconds_or_text(value)
        elif kind == "Capability":
            said[key] = str(value)
        elif kind == "Ways":
            said[key] = value if isinstance(value, str) else [_plain(way) for way in value]
        else:
            said[key] = _plain(value)
    return said


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _has_paths(items: Iterable[Any]) -> bool:
    """Whether an item, or a column of one, is an absolute path."""
    for item in items:
        values = [item] if isinstance(item, str) else item.values() if isinstance(item, dict) else item
        if any(str(value).startswith("/") for value in values):
            return True
    return False


def _opened(program: str | None, name: str, number: str) -> Submission:
    return Submission(functools.partial(Client, program, name), number)


class Submission:
    """What one `submit` has queued: one task, or an array of them. It can be pickled; where it is read back it speaks to the engine of
    who does so."""

    def __init__(self, client: Client | Callable[[], Client], number: str) -> None:
        self._of_client = client
        self.id = number

    @property
    def _client(self) -> Client:
        if not isinstance(self._of_client, Client):
            self._of_client = self._of_client()
        return self._of_client

    def __reduce__(self) -> Any:
        return _opened, (self._client.program, self._client.name, self.id)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"Submission({self.id!r})"

    def wait(
        self, timeout: float | datetime.timedelta | None = None, check: bool = False, progress: bool | None = None
    ) -> Counts:
        """Waits until all its tasks have ended (`Client.wait`)."""
        return self._client.wait(self, timeout=timeout, check=check, progress=progress)

    def __await__(self) -> Generator[Any, None, Counts]:
        """`await submission` is `wait()`, where code is asynchronous; without a bar, which belongs to the notebook's own thread."""
        return self._until_ended().__await__()

    async def _until_ended(self) -> Counts:
        loop, waiting = asyncio.get_running_loop(), _Waiting(self._client, [self.id], None)
        while True:
            # A thread that nobody waits for any more ends after its step.
            counts = await loop.run_in_executor(None, waiting.step, _ASYNC_STEP)
            if waiting.is_over:
                return counts

    def _repr_html_(self) -> str:
        """How it stands, for a notebook."""
        try:
            counts = self._client.counts(self)
        except Error as error:
            return f"<b>{self.id}</b> {html.escape(str(error))}"
        return bar_html(self.id, counts.ended, counts.total, counts.words())

    def tasks(self) -> Iterator[Task]:
        """Its tasks in the order of their indices."""
        return self._client.tasks(self)

    def log(self, index: int | None = None, stream: str = "stdout") -> str:
        """What it, or one task of it, has printed."""
        return self._client.log(self.id if index is None else f"{self.id}.{index}", stream)

    def explain(self) -> str:
        """Why it waits, or how it failed, in a few lines."""
        return self._client.explain(self.id)

    def cancel(self) -> int:
        """Ends its tasks; how many that were."""
        return self._client.cancel(self)

    def hold(self) -> int:
        """Keeps back what has not started; how many tasks that were."""
        return self._client.hold(self)

    def release(self) -> int:
        """Lets go what was held; how many tasks that were."""
        return self._client.release(self)

    def retry(self, failed_only: bool = False, failures: Iterable[str] = (), **needs: Unpack[Needs]) -> int:
        """Runs again what did not end well, or what failed so (`oom_task`, `exit:3`); `cpus`, `memory`, `disk`, `time`, `gpus`: with
        these needs from now on."""
        return self._client.retry(self, failed_only=failed_only, failures=failures, **needs)


class _Waiting:
    """One wait for submissions, `timeout` seconds long at most; one thread's at a time."""

    def __init__(self, client: Client, named: list[str], timeout: float | datetime.timedelta | None) -> None:
        self._client = client
        self._named = named
        self._timeout = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
        self._until = None if self._timeout is None else _time.monotonic() + self._timeout
        self._away_since: float | None = None
        self.is_over = False

    def step(self, most: float) -> Counts:
        """How they stand after `most` seconds, or once all have ended. Raises TimeoutError."""
        until = _time.monotonic() + most
        while True:
            left = max(0.0, min(until, self._until or until) - _time.monotonic())
            try:
                counts, self.is_over = self._client._heard(self._named, left)
            except EngineAway:
                self._bear_absence()
                continue
            self._away_since = None
            if not self.is_over and self._until is not None and _time.monotonic() >= self._until:
                raise TimeoutError(
                    f"{counts.total - counts.ended} of {counts.total} had not ended within {self._timeout} s"
                )
            return counts

    def _bear_absence(self) -> None:
        """Of the engine: one that died is started again, one that was stopped is waited for."""
        if self._client._start_if_dead():
            return
        now = _time.monotonic()
        self._away_since = now if self._away_since is None else self._away_since
        if self._until is not None and now >= self._until:
            raise TimeoutError("the engine is away, and was not back in time; the work is safe")
        if now - self._away_since >= _LONGEST_ABSENCE:
            raise EngineAway("the engine was stopped; once it is started again, so is the work")
        _time.sleep(_AWAY_STEP)


class Client:
    """The user's engine. `program`: hpcbatch, where it is not on PATH; `name`: who submits (`shell:NAME`, as the command line)."""

    def __init__(self, program: str | None = None, name: str | None = None) -> None:
        self.program = program
        self.name: str = name or f"shell:{_surroundings.user_name()}"
        self._engine = _client.connect(program)
        self._reader: Reader | None = None

    def _ends_with_this_process(self) -> None:
        """What it submits from now on without a key is cancelled a minute after this process has ended."""
        self._reader = self._reader or Reader(self._engine.named_path, _client.warn)

    def _with_engine(self, act: Callable[[_client.Client], _T]) -> _T:
        try:
            return act(self._engine)
        except EngineAway:
            # One that had no work may have ended itself.
            self._engine = _client.connect(self.program)
            return act(self._engine)

    def _ask(self, method: str, target: str, body: object = None) -> dict[str, Any]:
        try:
            return self._engine.request(method, target, body)
        except EngineAway:
            self._engine = _client.connect(self.program)
            return self._engine.patiently(method, target, body)

    def submit(
        self,
        command: ListOf[str | Path | float] | None = None,
        *,
        items: ListOf[Item] | Iterator[Item] | AbstractSet[Item] | ValuesView[Item] | None = None,
        array: str | range | None = None,
        key: str | None = None,
        mem: str | int | None = None,
        **options: Unpack[TaskOptions],
    ) -> Submission:
        """Queues a command (or a tool), once or as an array, and returns when that is on disk.

        The other arguments are the options of `hpcbatch submit` with their defaults (`TaskOptions` lists them): sizes in bytes or as
        "8G", times in seconds or as "1h30m" or a timedelta, `array` as "1-100:5" or range(1, 101, 5); `mem` is `memory`. Items are
        texts, rows of `columns`, or mappings, and fill `{}`, `{2}` and `{name}`. The same `key` again gives the same submission.
        Raises Refused."""
        if unknown := sorted(options.keys() - TaskOptions.__annotations__.keys()):
            raise TypeError(f"submit() has no argument {unknown[0]!r}")
        if isinstance(command, (str, bytes)):
            raise Error(f"a command is a list of words: ['sh', '-c', {command!r}] where a shell is meant")
        if command is not None and not isinstance(command, Sequence):
            raise Error(f"a command is a list of words, in their order, not {command!r}")
        directory = os.getcwd()
        if isinstance(items, (str, bytes, Mapping)):
            raise Error(f"items is a list of them: [{items!r}] where one is meant")
        if mem is not None:
            if options.get("memory") is not None:
                raise Error("memory and mem are the same: say one of them")
            options["memory"] = mem
        rows = None if items is None else [row_of(one) for one in items]
        own = _has_paths(rows or [])
        task = _given(
            command=None if command is None else [word_of(word) for word in command],
            items=rows,
            array=_range_of(array),
            **_said(options, _client.as_it_stands(directory), own),
        )
        reader = None if key else self._reader
        body = _client.submit_of(
            self.name,
            [task],
            key or f"once-{uuid.uuid4().hex}",
            directory,
            _surroundings.handed_on(),
            _surroundings.own_umask(),
            None if reader is None else reader.read_by,
        )
        return Submission(self, self._ask("POST", "/v1/tasks", body)["ids"][0])

    def counts(self, ids: str | Submission | Iterable[str | Submission]) -> Counts:
        """How they stand now."""
        return self._heard(_ids(ids), 0.0)[0]

    def _heard(self, ids: list[str], wait: float) -> tuple[Counts, bool]:
        """How they stand after `wait` seconds, or as soon as all have ended; and whether they have."""
        said = self._engine.request("POST", "/v1/tasks/wait", {"ids": ids, "timeout": wait}, waits=wait)
        counts = Counts(
            said["total"],
            said["ok"],
            said["failed"],
            said["cancelled"],
            said["running"],
            said["waiting"],
            said.get("held", 0),
        )
        return counts, said["done"]

    def _start_if_dead(self) -> bool:
        if self._engine.home is None or not _client.has_died(self._engine.home):
            return False
        self._engine = _client.connect(self.program)
        return True

    def submission(self, number: str | int) -> Submission:
        """One that was made before, by whomever of this user. Raises Refused for an unknown one."""
        self._ask("GET", f"/v1/arrays/{number}")
        return Submission(self, str(number))

    def wait(
        self,
        ids: str | Submission | Iterable[str | Submission],
        *,
        timeout: float | datetime.timedelta | None = None,
        check: bool = False,
        progress: bool | None = None,
    ) -> Counts:
        """Waits until all have ended. Raises TimeoutError after `timeout` seconds (the work goes on), with `check` Failed
        where not all ended well. `progress`: shows how they stand, in a notebook unless it is False, on a terminal where
        it is True."""
        named = _ids(ids)
        waiting = _Waiting(self, named, timeout)
        bar = Bar(", ".join(named[:3]) + (", ..." if len(named) > 3 else ""), progress)
        try:
            while True:
                counts = waiting.step(bar.patience(_LONGEST_WAIT))
                bar.show(counts.ended, counts.total, counts.words(), waiting.is_over)
                if waiting.is_over:
                    break
        finally:
            bar.close()
        if check and not counts.all_done:
            raise Failed(
                f"{counts.failed} of {counts.total} failed, {counts.cancelled} cancelled; `hpcbatch explain {named[0]}` says why",
                counts,
            )
        return counts

    def task(self, number: str) -> Task:
        """One task, like 12 or 12.3. Raises Refused for an unknown one."""
        facts = self._ask("GET", f"/v1/tasks/{number}")
        return Task(
            facts["id"],
            facts["state"],
            _item_of(facts),
            facts.get("exit_code"),
            facts.get("failure"),
            facts.get("message"),
            facts,
        )

    def tasks(self, submission: str | Submission) -> Iterator[Task]:
        """Its tasks in the order of their indices, each asked for as it is reached."""
        whole = self._ask("GET", f"/v1/arrays/{submission}")
        if whole["indices"] == "0":
            yield self.task(str(submission))
            return
        for index in _indices(whole["indices"]):
            yield self.task(f"{submission}.{index}")

    def log(self, task: str, stream: str = "stdout") -> str:
        """All that it has printed so far, as text; of an array, its tasks' in their order."""
        if "." not in task:
            whole = self._ask("GET", f"/v1/arrays/{task}")
            if whole["indices"] != "0":
                return "".join(self.log(f"{task}.{index}", stream) for index in _indices(whole["indices"]))
        return self._with_engine(lambda engine: engine.log(task, stream)).decode(errors="replace")

    def explain(self, number: str) -> str:
        """Why it waits, or how it failed, in a few lines."""
        said = self._ask("GET", f"/v1/tasks/{number}/explain")
        return "\n".join([said["text"], *said.get("details", [])])

    def _change(self, verb: str, ids: str | Submission | Iterable[str | Submission], **more: object) -> int:
        return int(self._ask("POST", f"/v1/tasks/{verb}", {"ids": _ids(ids), **more})["tasks"])

    def cancel(self, ids: str | Submission | Iterable[str | Submission]) -> int:
        """Ends them; how many that were."""
        return self._change("cancel", ids)

    def hold(self, ids: str | Submission | Iterable[str | Submission]) -> int:
        """Keeps back what has not started; how many tasks that were."""
        return self._change("hold", ids)

    def release(self, ids: str | Submission | Iterable[str | Submission]) -> int:
        """Lets go what was held; how many tasks that were."""
        return self._change("release", ids)

    def retry(
        self,
        ids: str | Submission | Iterable[str | Submission],
        *,
        failed_only: bool = False,
        failures: Iterable[str] = (),
        **needs: Unpack[Needs],
    ) -> int:
        """Runs again what did not end well, or what failed so (`oom_task`, `exit:3`); `cpus`, `memory`, `disk`, `time`, `gpus`: with
        these needs from now on."""
        said = {"memory" if name == "mem" else name: value for name, value in needs.items()}
        if "time" in said:
            said["time"] = _values.seconds_or_text(said["time"])
        more = {"failed_only": failed_only, "failures": list(failures), "needs": said}
        return self._change("retry", ids, **{name: value for name, value in more.items() if value})

    def submissions(self, limit: int = 20) -> list[dict[str, Any]]:
        """The newest of all clients, as the engine shows them (docs/api.md)."""
        newest: list[dict[str, Any]] = self._ask("GET", f"/v1/arrays?limit={min(limit, _PAGE)}")["arrays"]
        return newest


def _with_options(signature: inspect.Signature) -> inspect.Signature:
    """For `help` and notebooks: each option by its name."""
    named = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    for word, kind in TaskOptions.__annotations__.items():
        text = getattr(kind, "__forward_arg__", kind)
        named.append(inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=text))
    return signature.replace(parameters=named)


setattr(Client.submit, "__signature__", _with_options(inspect.signature(Client.submit)))


@functools.lru_cache(maxsize=None)
def _own() -> Client:
    return Client()


def _with_parameters_of(
    method: Callable[Concatenate[Client, _P], _T],
) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """The function takes what the method does, for who reads it and for type checkers."""
    signature = inspect.signature(method)

    def same(function: Callable[..., _T]) -> Callable[_P, _T]:
        setattr(function, "__signature__", signature.replace(parameters=[*signature.parameters.values()][1:]))
        return function

    return same


@_with_parameters_of(Client.submit)
def submit(*command: Any, **options: Any) -> Submission:
    """`Client().submit`, with one client for all calls."""
    return _own().submit(*command, **options)


@_with_parameters_of(Client.wait)
def wait(*ids: Any, **options: Any) -> Counts:
    """`Client().wait`, with one client for all calls."""
    return _own().wait(*ids, **options)


def _indices(text: str) -> Iterator[int]:
    """`1-9:4,20` -> 1, 5, 9, 20."""
    for part in text.split(","):
        range_, _, step = part.partition(":")
        first, _, last = range_.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))
