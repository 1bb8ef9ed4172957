"""Runs calls of Python functions for `hpcbatch.Executor`, in a worker of a pilot or in a process for one task.

    python call_worker.py --serve      a worker: docs/formats.md, "Services that answer"
    python call_worker.py RESULTS      the calls of one task

No argument says what is called, and with what: all users of a node can read arguments. The variables of call_seal.py do. The
preparation is the base64 of a pickled dict: `path` (sys.path), `directory`, `main` (as multiprocessing's spawn names it, or
None), `by_value` (cloudpickle), `initializer` (pickled, or None), `argv` (sys.argv), `umask`, `authkey` (multiprocessing's).  Calls are "NUMBER " and the base64 of a
sealed pickled list of pickled (function, args, kwargs), or "NUMBER" alone where they are in the input `calls`; RESULTS is the file
for a sealed pickled list of (seconds, pickled (is_good, value, traceback), {stream: (begin, end) of what it printed}), in the same order.  Exit: 0 whatever the calls did, 1
where they could not be made or told.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import os
import pickle
import sys
import tempfile
import time
import traceback
from multiprocessing import process

TYPE_CHECKING = False  # a worker does not wait for `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .answer_service import Request
    from .call_seal import CALLS, KEY, PREPARATION, opened, sealed
    from .regular_file import open_regular
else:
    # Beside this file; what is called may have modules of these names.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from call_seal import CALLS, KEY, PREPARATION, opened, sealed
    from regular_file import open_regular

    sys.path.pop(0)

# None of what is called is to hand them on.
given: dict[str, str] = {name: os.environ.pop(name, "") for name in (KEY, CALLS, PREPARATION)}


def calls_in(key: str, number: str, word: str, directory: str) -> list[bytes]:
    # What is staged in is a link.
    file = io.BytesIO(base64.b64decode(word)) if word else open_regular(os.path.join(directory, "calls"), follow=True)
    with file:
        calls: list[bytes] = pickle.loads(opened(key, f"calls {number}", file))
        return calls


def write_results(path: str, data: bytes) -> None:
    """In place of what a call may have put there."""
    made, name = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(made, "wb") as file:
        file.write(data)
    os.replace(name, path)


@functools.lru_cache(maxsize=None)
def prepare(preparation: str) -> tuple[Callable[..., bytes], str]:
    """Makes this process one that can take the calls of who made the preparation: what pickles their results, and where they run."""
    said = pickle.loads(base64.b64decode(preparation))
    sys.path[:] = said["path"]
    process.current_process().authkey = said["authkey"]
    sys.argv[:] = said["argv"]
    if said["umask"] is not None:
        os.umask(said["umask"])
    if said["main"]:
        from multiprocessing import spawn

        # So that what __main__ does when it is imported is no executor again: it would wait for workers that wait for it.
        setattr(process.current_process(), "_inheriting", True)
        spawn.prepare(said["main"])
        setattr(process.current_process(), "_inheriting", False)
    dumps: Callable[..., bytes] = pickle.dumps
    if said["by_value"]:
        import cloudpickle  # type: ignore[import,unused-ignore]  # it has no types

        dumps = cloudpickle.dumps
    with contextlib.suppress(FileNotFoundError):  # a site may not see it
        os.chdir(said["directory"])
    if said["initializer"]:
        function, args = pickle.loads(said["initializer"])
        function(*args)
    return dumps, said["directory"]


def read_back(pickled: bytes, answer: tuple[bool, Any, str | None]) -> bytes:
    """An exception that is made from other arguments than it is given cannot be read where it goes: then its text goes instead."""
    try:
        if isinstance(pickle.loads(pickled)[1], BaseException):
            return pickled
        why: object = "it comes back as something else"
    except BaseException as error:
        why = error
    raised = answer[1]
    text = f"a call raised {type(raised).__qualname__}: {raised} (the exception itself cannot be read back: {why})"
    return pickle.dumps((False, pickle.UnpicklingError(text), answer[2]), protocol=pickle.HIGHEST_PROTOCOL)


def result_of(call: bytes, dumps: Callable[..., bytes]) -> bytes:
    """Pickled, whatever happens."""
    try:
        try:
            function, args, kwargs = pickle.loads(call)
        except (AttributeError, ImportError) as error:
            raise pickle.UnpicklingError(
                f"what is called is not to be found where it runs ({error}); with cloudpickle installed, what __main__ defines goes along"
            ) from error
        answer: tuple[bool, Any, str | None] = (True, function(*args, **kwargs), None)
    except BaseException as error:
        text = traceback.format_exc()
        error.__traceback__ = None
        answer = (False, error, text)
    try:
        pickled = dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
        return pickled if answer[0] else read_back(pickled, answer)
    except Exception as error:
        what = "its result" if answer[0] else f"what it raised ({answer[1]!r})"
        refusal = pickle.PicklingError(f"{what} cannot be pickled: {error}")
        return pickle.dumps((False, refusal, answer[2] or traceback.format_exc()), protocol=pickle.HIGHEST_PROTOCOL)


def told() -> dict[str, int]:
    """Bytes that the request has printed so far, by stream; nothing where the task has this process to itself."""
    streams = {"stdout": sys.stdout, "stderr": sys.stderr}
    return {name: getattr(stream, "told") for name, stream in streams.items() if hasattr(stream, "told")}


def run(variables: Mapping[str, str], own_directory: str, results: str) -> None:
    dumps, directory = prepare(variables[PREPARATION])
    key = variables[KEY]
    number, _, word = variables[CALLS].partition(" ")
    answers = []
    for call in calls_in(key, number, word, own_directory):
        with contextlib.suppress(FileNotFoundError):  # a site may not see it
            os.chdir(directory)
        begin, before = time.perf_counter(), told()
        answer = result_of(call, dumps)
        printed = {name: (before[name], end) for name, end in told().items() if name in before}
        answers.append((time.perf_counter() - begin, answer, printed))
    data = pickle.dumps(answers, protocol=pickle.HIGHEST_PROTOCOL)
    write_results(os.path.join(own_directory, results), sealed(key, f"results {number}", data))


def answer(_: object, request: Request) -> None:
    variables = {**given, **{name: request.env.pop(name) for name in given if name in request.env}}
    own = {name: os.environ.get(name) for name in request.env}
    os.environ.update(request.env)
    try:
        run(variables, request.directory, request.argv[-1])
    finally:
        for name, value in own.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main() -> None:
    if len(sys.argv) != 2 or not given[PREPARATION]:
        sys.exit("call_worker.py: it is started by hpcbatch.Executor")
    if sys.argv[1] == "--serve":
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        if not TYPE_CHECKING:
            import answer_service
        else:
            from . import answer_service

        answer_service.serve(lambda: prepare(given[PREPARATION]), answer)
        return
    run(given, os.getcwd(), sys.argv[1])


if __name__ == "__main__":
    main()
