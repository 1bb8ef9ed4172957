"""The calls of an executor on their way to tasks and back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import math
import os
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

from . import call_seal
from . import client as _client
from . import surroundings as _surroundings
from .call_folder import CallFolder
from .call_pace import Pace
from .client import Error
from .feed import Feed
from .reader import Reader

_T = TypeVar("_T")

# So many tasks are handed over in one message.
_AT_ONCE = 500
_WAIT_S = 1.0
# So long at most a cancel waits for the engine to have taken the call.
_HANDED_IN_S = 5.0
# Where nothing may be handed in yet it is looked again so soon.
_LOOK_AGAIN_S = 0.05


class CallFailed(Error):
    """A call that gave neither a result nor an exception: its task was killed, ran out of memory or time, or was cancelled by
    somebody. `task`: its id; `failure`: in the engine's words (`oom_task`)."""

    def __init__(self, text: str, task: str, failure: str) -> None:
        super().__init__(text)
        self.task = task
        self.failure = failure

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.task, self.failure)


@dataclasses.dataclass
class _Answer:
    """What a worker says of one call. `printed`: by stream, from which byte of its task's to which."""

    seconds: float
    is_good: bool
    value: Any
    traceback: str
    printed: dict[str, tuple[int, int]]


def _answer_in(result: Any) -> _Answer:
    """A program that was called may have put anything there. Raises."""
    seconds, answer, printed = result
    if not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds < 0:
        raise TypeError("it does not say how long the call took")
    is_good, value, text = pickle.loads(answer)
    if not is_good and not isinstance(value, BaseException):
        raise TypeError(f"what it raised came back as {value!r}, which is no exception")
    spans = {str(name): (int(begin), int(end)) for name, (begin, end) in printed.items()}
    return _Answer(float(seconds), bool(is_good), value, str(text), spans)


class _RemoteTraceback(Exception):
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class CallFuture(concurrent.futures.Future[_T]):
    """Of a call; `await` gives its result too."""

    @property
    def task(self) -> str | None:
        """The id of its task, as soon as it has one; quick calls share one."""
        raise NotImplementedError

    def log(self, stream: str = "stdout") -> str:
        """What it has printed so far; of a call that shares its task once it has ended. What programs printed that it started in a
        worker is not kept."""
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, _T]:
        return asyncio.wrap_future(self).__await__()


class QueuedFuture(CallFuture[_T]):
    """Of a call that is one of an executor's."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.number: str | None = None
        self.is_given_up: bool = False
        self.is_told_of = False  # that it was cancelled
        self.printed: dict[str, tuple[int, int]] = {}  # where, of what its task has

    @property
    def task(self) -> str | None:
        return self.number

    def log(self, stream: str = "stdout") -> str:
        if self.number is None:
            return ""
        return self._calls.log(self.number, stream, *self.printed.get(stream, (0, None)))

    def running(self) -> bool:
        return super().running() or (not self.done() and self._calls.state(self) == "running")

    def cancel(self) -> bool:
        """Whether it does not run, and never will; one that runs is left alone."""
        if self.done():
            return self.cancelled()
        self.is_given_up = True
        self.is_given_up = self._calls.give_up(self)
        # Its end may have been heard of by now, and then it is cancelled already.
        return (self.is_given_up and self._calls.cancelled(self)) or self.cancelled()


@dataclasses.dataclass(eq=False)
class Call:
    """`pickled`: (function, args, kwargs). `name`: of the function. `count`: how many calls it is, where it is a chunk. `alone`: it
    shares no task."""

    future: QueuedFuture[Any]
    pickled: bytes
    name: str
    count: int
    alone: bool = False


class Calls:
    """Of one executor: a thread hands them in, another one hears of their ends. `task_of(calls, number)` is the task of calls
    whose files are called NUMBER in `folder`; `key`: that of the results' sums. `detached`: they run on when this process has ended.
    """

    def __init__(
        self,
        engine: _client.Client,
        program: str | None,
        name: str,
        folder: CallFolder,
        key: str,
        task_of: Callable[[list[Call], str], dict[str, Any]],
        detached: bool,
    ) -> None:
        self._engine = engine
        self._program = program
        self._name = name
        self._folder = folder
        self._key = key
        self._task_of = task_of
        self._directory = os.getcwd()
        self._environment = _surroundings.handed_on()
        self._umask = _surroundings.own_umask()
        self._changed = threading.Condition()
        self._waiting: deque[Call] = deque()
        self._open: set[QueuedFuture[Any]] = set()
        self._pace = Pace()
        self._number = 0
        self._closing = False
        self._feed: Feed[tuple[str, list[Call]]] = Feed(
            _client.Client(engine.named_path), name, self._ended, _client.warn, self._revive
        )
        self._feed.begin()
        self._reader = None if detached else Reader(engine.named_path, _client.warn)
        self._threads = [
            threading.Thread(target=run, name="hpcbatch", daemon=True) for run in (self._hand_in, self._hear)
        ]
        for thread in self._threads:
            thread.start()

    def add(self, call: Call) -> None:
        with self._changed:
            self._waiting.append(call)
            self._open.add(call.future)
            self._changed.notify_all()

    def path_of(self, name: str) -> str:
        return self._folder.path_of(name)

    def state(self, future: QueuedFuture[Any]) -> str:
        if future.number is None:
            return "waiting"
        try:
            said = self._engine.task(future.number, 1.0)
        except Error:
            return "unknown"
        return str(said["state"]) if said else "unknown"

    def log(self, task: str, stream: str, begin: int, end: int | None) -> str:
        return self._engine.log(task, stream, begin, end).decode(errors="replace")

    def give_up(self, future: QueuedFuture[Any]) -> bool:
        """Whether it can be said to be cancelled."""
        with self._changed:
            for call in self._waiting:
                if call.future is future:
                    self._waiting.remove(call)
                    return True
            # It is being handed in.
            self._changed.wait_for(lambda: future.number is not None or future.done(), _HANDED_IN_S)
        if future.number is None or self.state(future) not in ("waiting", "held"):
            return False
        try:
            return self._engine.cancel([future.number]) > 0
        except Error:
            return False

    def close(self, cancel: bool = False) -> None:
        """No more come; the threads end when all are over."""
        with self._changed:
            self._closing = True
            waiting = [call.future for call in self._waiting] if cancel else []
            if cancel:
                self._waiting.clear()
            self._changed.notify_all()
        for future in waiting:
            self.cancelled(future)
        if cancel:
            self._give_up_all()

    def _give_up_all(self) -> None:
        """What does not run, in one request however many they are."""
        with self._changed:
            # Some are being handed in.
            self._changed.wait_for(lambda: all(one.number is not None for one in self._open), _HANDED_IN_S)
            by_task: dict[str, list[QueuedFuture[Any]]] = {}
            for future in self._open:
                if future.number is not None:
                    by_task.setdefault(future.number, []).append(future)
        try:
            given_up = [number for number in self._engine.waiting(self._name) if number in by_task]
            for future in (future for number in given_up for future in by_task[number]):
                future.is_given_up = True
            self._engine.cancel(given_up)
        except Error as error:
            _client.warn(f"calls that wait cannot be cancelled: {error}")
            return
        for future in (future for number in given_up for future in by_task[number]):
            self.cancelled(future)

    def cancelled(self, future: QueuedFuture[Any]) -> bool:
        """It is from now on, where it is not over; who waits for it is told."""
        if not concurrent.futures.Future.cancel(future):
            return False
        with self._changed:
            is_first, future.is_told_of = not future.is_told_of, True
        if is_first:
            future.set_running_or_notify_cancel()
        self._over(future)
        return True

    def _over(self, future: QueuedFuture[Any]) -> None:
        with self._changed:
            self._open.discard(future)
            self._changed.notify_all()

    def join(self) -> None:
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _revive(self) -> None:
        _client.connect(self._program)

    def _take(self) -> list[list[Call]]:
        """What is handed in next, by task; none: nothing may be yet."""
        groups: list[list[Call]] = []
        while self._waiting and len(groups) < _AT_ONCE:
            first = self._waiting[0]
            count = 1 if first.alone else self._pace.together(first.name, len(self._waiting), time.monotonic())
            if count == 0:
                break
            group: list[Call] = []
            while (
                self._waiting
                and len(group) < count
                and (not group or self._waiting[0].name == first.name and not self._waiting[0].alone)
            ):
                group.append(self._waiting.popleft())
            groups.append(group)
        return groups

    def _hand_in(self) -> None:
        """Until all are over: what was handed in together may have to be handed in again, one by one."""
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closing and not self._open:
                        return
                    self._changed.wait()
                groups = self._take()
                if not groups:
                    self._changed.wait(_LOOK_AGAIN_S)
                    continue
            self._submit(groups)
            del groups  # and with them what they come to

    def _submit(self, groups: list[list[Call]]) -> None:
        numbers = [str(self._number + i) for i in range(len(groups))]
        self._number += len(groups)
        try:
            tasks = [self._task_of(group, number) for group, number in zip(groups, numbers)]
        except Exception as error:
            # What was half written would be taken for the calls of those that come next.
            for number in numbers:
                self._forget_files(number)
            return self._refused(groups, error)
        body = _client.submit_of(
            self._name,
            tasks,
            f"calls-{uuid.uuid4().hex}",
            self._directory,
            self._environment,
            self._umask,
            None if self._reader is None else self._reader.read_by,
        )
        with self._feed:
            try:
                try:
                    ids: list[str] = self._engine.patiently("POST", "/v1/tasks", body)["ids"]
                except _client.EngineAway:
                    self._revive()
                    ids = self._engine.patiently("POST", "/v1/tasks", body)["ids"]
            except Exception as error:
                return self._refused(groups, error)
            for group, number, task in zip(groups, numbers, ids):
                for call in group:
                    call.future.number = task
                self._feed.watch(task, (number, group))
        with self._changed:
            self._changed.notify_all()

    def _refused(self, groups: list[list[Call]], error: Exception) -> None:
        for group in groups:
            for call in group:
                self._settle(call.future, error=error)

    def _hear(self) -> None:
        while True:
            with self._changed:
                if not self._open:
                    if self._closing:
                        break
                    self._changed.wait()
                    continue
            self._feed.wait(_WAIT_S)
        self._threads[0].join()
        if self._reader is not None:
            self._reader.end()
        self._folder.remove()

    def _settle(self, future: QueuedFuture[Any], value: Any = None, error: BaseException | None = None) -> None:
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # it was cancelled meanwhile
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)
        self._over(future)

    def _ended(self, entry: tuple[str, list[Call]], task: str, event: Mapping[str, Any]) -> None:
        number, group = entry
        if "started_at" in event and "ended_at" in event:
            with self._changed:
                self._pace.ran(event["started_at"], event["ended_at"])
        results = self._read(number, len(group)) if event["state"] == "done" else None
        # Before anybody is told: else results would be held here, beside those who have them, until the disk has answered.
        self._forget_files(number)
        if results is not None:
            self._tell(group, results, number, task)
        elif event["state"] == "cancelled" and any(call.future.is_given_up for call in group):
            self._cancelled(group)
        elif len(group) > 1:
            self._again(group)
        else:
            self._settle(group[0].future, error=self._failure(task, event))

    def _forget_files(self, number: str) -> None:
        for kind in ("calls", "results"):
            self._folder.forget(f"{number}.{kind}")

    def _read(self, number: str, count: int) -> list[Any]:
        try:
            return self._results(number, count)
        except BaseException as error:
            return [error] * count

    def _tell(self, group: list[Call], results: list[Any], number: str, task: str) -> None:
        path = self._folder.path_of(f"{number}.results")
        for call, result in zip(group, results):
            try:
                if isinstance(result, BaseException):
                    raise result
                answer = _answer_in(result)
                with self._changed:
                    self._pace.ended(call.name, answer.seconds)
                if not answer.is_good:
                    answer.value.__cause__ = _RemoteTraceback(answer.traceback)
            except BaseException as error:  # also a SystemExit of what it unpickles: others are waited for
                broken = CallFailed(f"the result of task {task} cannot be read from {path}: {error}", task, "result")
                broken.__cause__ = error
                self._settle(call.future, error=broken)
                continue
            call.future.printed = answer.printed
            if answer.is_good:
                self._settle(call.future, answer.value)
            else:
                self._settle(call.future, error=answer.value)

    def _results(self, number: str, count: int) -> list[Any]:
        with self._folder.open(f"{number}.results") as file:
            results = pickle.loads(call_seal.opened(self._key, f"results {number}", file))
        if not isinstance(results, list) or len(results) != count:
            raise TypeError(f"there should be a list of {count} results in it")
        return results

    def _cancelled(self, group: list[Call]) -> None:
        for call in [call for call in group if call.future.is_given_up]:
            self.cancelled(call.future)
        self._again([call for call in group if not call.future.is_given_up])

    def _again(self, group: list[Call]) -> None:
        """One by one: which of them it was is not known."""
        for call in group:
            call.future.number = None
            call.alone = True
        with self._changed:
            self._waiting.extendleft(reversed(group))
            self._changed.notify_all()

    def _failure(self, task: str, event: Mapping[str, Any]) -> CallFailed:
        failure = str(event.get("failure") or event["state"])
        text = event.get("message") or ""
        if "exit_code" in event and not text:
            text = f"exit code {event['exit_code']}"
        try:
            last = self._engine.log_end(task).strip().splitlines()[-1:]
        except Error:
            last = []
        why = "; ".join([f"{failure}: {text}" if text else failure, *last])
        return CallFailed(
            f"task {task} of a call gave no result ({why}); `hpcbatch explain {task}` says more", task, failure
        )
