"""Functions whose calls are tasks, and calls that wait for each other.

    @hpcbatch.task(cpus=4, memory="8G", time="1h")
    def fit(path):
        ...

    fits = [fit(path) for path in paths]        # futures: nothing waits here
    best = choose(*fits)                        # begins when all of them have ended
    hpcbatch.gather(*fits)                      # their results, in this order
    await best                                  # where code is asynchronous, as in a notebook

The options are those of `hpcbatch.Executor`. Results of calls that others are handed pass through this process.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import inspect
import os
import threading
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, overload

from .calls import CallFuture
from .executor import Executor, Options, value_pickler
from .progress import Bar

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Unpack

    _P = ParamSpec("_P")
    _Q = ParamSpec("_Q")
    # What stands for its results where a function is called.
    _Awaited = Union[
        concurrent.futures.Future[Any],
        Sequence[concurrent.futures.Future[Any]],
        Mapping[Any, concurrent.futures.Future[Any]],
    ]
else:
    # Python 3.9 has none; Generic takes any variable.
    _P = getattr(typing, "ParamSpec", TypeVar)("_P")

__all__ = ["Function", "gather", "task"]

_T = TypeVar("_T")

_LONGEST_LOOK_S = 3600.0
_executors: dict[str, Executor] = {}
_making = threading.Lock()


def _forked() -> None:
    """Another thread may have held it."""
    global _making
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _executor(options: Options) -> Executor:
    """One for all functions of this process with the same options: they share workers."""
    with _making:
        key = f"{os.getpid()} {sorted(options.items())!r}"
        if key not in _executors:
            _executors[key] = Executor(**options)
        return _executors[key]


class _Later(CallFuture[_T]):
    """Of a call that waits for others: handed in as soon as they have ended."""

    def __init__(self) -> None:
        super().__init__()
        self._handed_in: CallFuture[_T] | None = None
        self._beginning = threading.Lock()
        self._has_begun = False

    def follow(self, future: CallFuture[_T]) -> None:
        self._handed_in = future
        if self.cancelled():
            future.cancel()
        future.add_done_callback(self._take)

    def fail(self, error: BaseException) -> None:
        if self._begin():
            self.set_exception(error)

    def cancel(self) -> bool:
        if self._handed_in is not None:
            return self._handed_in.cancel()
        is_cancelled = super().cancel()
        if is_cancelled:
            # Whoever waits by concurrent.futures.wait hears of it only then.
            self._begin()
        return is_cancelled

    def running(self) -> bool:
        return self._handed_in is not None and self._handed_in.running()

    @property
    def task(self) -> str | None:
        return None if self._handed_in is None else self._handed_in.task

    def log(self, stream: str = "stdout") -> str:
        return "" if self._handed_in is None else self._handed_in.log(stream)

    def _begin(self) -> bool:
        """`set_running_or_notify_cancel`, of which a second call would be an error."""
        with self._beginning:
            if self._has_begun:
                return False
            self._has_begun = True
        return self.set_running_or_notify_cancel()

    def _take(self, future: concurrent.futures.Future[_T]) -> None:
        if future.cancelled():
            super().cancel()
        if not self._begin():
            return
        if (error := future.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(future.result())


# What waits, and for what.
_open: dict[_Later[Any], list[concurrent.futures.Future[Any]]] = {}
_turns = threading.local()


def _in_turn(act: Callable[[], None]) -> None:
    """Now, or after what this thread is about: where one of a long chain fails, the next would be told from within its end."""
    waiting = getattr(_turns, "waiting", None)
    if waiting is not None:
        waiting.append(act)
        return
    _turns.waiting = waiting = [act]
    try:
        while waiting:
            waiting.pop(0)()
    finally:
        _turns.waiting = None


def _hand_in_all() -> None:
    """At the end of the program, before executors are closed: what waits for calls of ours is handed in yet."""
    while True:
        with _making:
            ours = [
                later
                for later, awaited in _open.items()
                if all(one.done() or isinstance(one, CallFuture) for one in awaited)
            ]
        if not ours:
            return
        concurrent.futures.wait(ours, timeout=_LONGEST_LOOK_S)


# Later than the executors' own, and so before it: they are called in reverse.
getattr(threading, "_register_atexit", atexit.register)(_hand_in_all)


def _futures_in(value: Any) -> list[concurrent.futures.Future[Any]]:
    """`value` itself, or what a list, a tuple or a dictionary has."""
    if isinstance(value, concurrent.futures.Future):
        return [value]
    if type(value) in (list, tuple):
        return [one for one in value if isinstance(one, concurrent.futures.Future)]
    if type(value) is dict:
        return [one for one in value.values() if isinstance(one, concurrent.futures.Future)]
    return []


def _with_results(value: Any) -> Any:
    def result(one: Any) -> Any:
        return one.result() if isinstance(one, concurrent.futures.Future) else one

    if type(value) in (list, tuple):
        return type(value)(result(one) for one in value)
    if type(value) is dict:
        return {key: result(one) for key, one in value.items()}
    return result(value)


class _Queued(Generic[_P, _T]):
    """What queues a call where it is called."""

    def _queue(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallFuture[_T]:
        raise NotImplementedError

    # Type checkers know futures in place of values in the first four positions.
    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> CallFuture[_T]:
        ...

    @overload
    def __call__(self, a: _Awaited, /, *args: Any, **kwargs: Any) -> CallFuture[_T]:
        ...

    @overload
    def __call__(self, a: Any, b: _Awaited, /, *args: Any, **kwargs: Any) -> CallFuture[_T]:
        ...

    @overload
    def __call__(self, a: Any, b: Any, c: _Awaited, /, *args: Any, **kwargs: Any) -> CallFuture[_T]:
        ...

    @overload
    def __call__(self, a: Any, b: Any, c: Any, d: _Awaited, /, *args: Any, **kwargs: Any) -> CallFuture[_T]:
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> CallFuture[_T]:
        """A future of the call. Futures among the arguments, or in a list, tuple or dictionary that is one, are waited for and
        stand for their results; where one fails, this call fails as it did and does not run."""
        return self._queue(args, kwargs)


class Function(_Queued[_P, _T]):
    """What `task` makes of a function: calling it queues a call and gives its future. `here(...)` calls the function itself."""

    here: Callable[_P, _T]

    def __init__(self, function: Callable[_P, _T], options: Options) -> None:
        functools.update_wrapper(self, function)
        self.here = function
        self._options = options

    def options(self, **options: Unpack[Options]) -> Function[_P, _T]:
        """The same function with other options besides: `fit.options(cpus=8)(path)`."""
        both: Options = {**self._options, **options}
        return task(**both)(self.here)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Function[_P, _T]:
        ...

    @overload
    def __get__(
        self: Function[Concatenate[Any, _Q], _T], instance: object, owner: type | None = None
    ) -> _Bound[_Q, _T]:
        ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else _Bound(self, instance)

    def __reduce__(self) -> Any:
        # A worker imports the module and finds this object under the name of the function; what it cannot import goes by value.
        if value_pickler() and (self.here.__module__ == "__main__" or "<locals>" in self.here.__qualname__):
            return Function, (self.here, self._options)
        return self.here.__qualname__

    def _queue(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallFuture[_T]:
        executor = _executor(self._options)
        awaited = [future for value in (*args, *kwargs.values()) for future in _futures_in(value)]
        if not awaited:
            return executor.submit(_Run(self), *args, **kwargs)
        later: _Later[_T] = _Later()
        left = len(awaited)
        counting = threading.Lock()

        def ended(_: concurrent.futures.Future[Any]) -> None:
            nonlocal left
            with counting:
                left -= 1
                if left:
                    return
            _in_turn(begin)

        def begin() -> None:
            if later.cancelled():
                return
            try:
                named = {key: _with_results(value) for key, value in kwargs.items()}
                later.follow(executor.submit(_Run(self), *map(_with_results, args), **named))
            except BaseException as error:  # of a call that it waits for, or that cannot be handed in
                later.fail(error)

        with _making:
            _open[later] = awaited
        later.add_done_callback(lambda _: _open.pop(later, None))
        for future in awaited:
            future.add_done_callback(ended)
        return later


class _Bound(_Queued[_P, _T]):
    """A method: its object goes along."""

    here: Callable[_P, _T]

    def __init__(self, function: Function[Any, _T], instance: object) -> None:
        functools.update_wrapper(self, function.here)
        self._function, self._instance = function, instance
        self.here = functools.partial(function.here, instance)

    def _queue(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallFuture[_T]:
        return self._function._queue((self._instance, *args), kwargs)


class _Run(Generic[_T]):
    """In a worker: the function itself. Its task has the function's name."""

    def __init__(self, function: Function[Any, _T]) -> None:
        self.function = function
        self.__qualname__ = function.here.__qualname__

    def __call__(self, *args: Any, **kwargs: Any) -> _T:
        return self.function.here(*args, **kwargs)


@overload
def task(function: Callable[_P, _T], /) -> Function[_P, _T]:
    ...


@overload
def task(**options: Unpack[Options]) -> Callable[[Callable[_P, _T]], Function[_P, _T]]:
    ...


def task(function: Callable[..., Any] | None = None, /, **options: Unpack[Options]) -> Any:
    """Makes calls of a function tasks, and their values futures: `@task`, or `@task(cpus=4, memory="8G", ...)` with the options of
    `Executor`. `function.here(...)` is the function itself."""
    inspect.signature(Executor).bind(
        **options
    )  # a word that it does not know is refused here, and not at the first call
    if function is None:
        return lambda one: Function(one, options)
    return Function(function, options)


@overload
def gather(*futures: concurrent.futures.Future[_T], progress: bool | None = None) -> list[_T]:
    ...


@overload
def gather(futures: Iterable[concurrent.futures.Future[_T]], /, *, progress: bool | None = None) -> list[_T]:
    ...


def gather(*futures: Any, progress: bool | None = None) -> list[Any]:
    """Their results in this order; raises what the first of them that failed has raised. `progress` as for `Client.wait`."""
    if len(futures) == 1 and not isinstance(futures[0], concurrent.futures.Future):
        futures = tuple(futures[0])
    bar = Bar("calls", progress)
    try:
        for future in futures:
            while (
                not future.done() and not concurrent.futures.wait([future], timeout=bar.patience(_LONGEST_LOOK_S)).done
            ):
                ended = sum(one.done() for one in futures)
                bar.show(ended, len(futures), f"{ended:,} of {len(futures):,} have ended", False)
            future.result()
        bar.show(len(futures), len(futures), f"{len(futures):,} have ended", True)
    finally:
        bar.close()
    return [future.result() for future in futures]
