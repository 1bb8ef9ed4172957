"""Runs calls of Python functions for `hpcbatch.Executor`, in a worker of a pilot or in a process for one task.

    python call_worker.py --serve PREPARATION          a worker: docs/formats.md, "Services that answer"
    python call_worker.py PREPARATION CALLS RESULTS    the calls of one task; CALLS is base64, or @FILE

PREPARATION is the base64 of a pickled dict: `path` (sys.path), `directory`, `main` (as multiprocessing's spawn names it, or
None), `by_value` (cloudpickle), `initializer` (pickled, or None), `argv` (sys.argv), `umask`.  CALLS are a pickled list of pickled (function, args, kwargs),
RESULTS the file for a pickled list of (seconds, pickled (is_good, value, traceback)), in the same order.  Exit: 0 whatever the
calls did, 1 where they could not be made or told.
"""

import base64
import contextlib
import functools
import os
import pickle
import sys
import time
import traceback


def bytes_of(calls):
    if calls.startswith("@"):
        with open(calls[1:], "rb") as file:
            return file.read()
    return base64.b64decode(calls)


@functools.lru_cache(maxsize=None)
def prepare(preparation):
    """Makes this process one that can take the calls of who made the preparation: what pickles their results, and where they run."""
    said = pickle.loads(base64.b64decode(preparation))
    sys.path[:] = said["path"]
    sys.argv[:] = said["argv"]
    if said["umask"] is not None:
        os.umask(said["umask"])
    if said["main"]:
        from multiprocessing import process, spawn

        # So that what __main__ does when it is imported is no executor again: it would wait for workers that wait for it.
        process.current_process()._inheriting = True
        spawn.prepare(said["main"])
        process.current_process()._inheriting = False
    dumps = pickle.dumps
    if said["by_value"]:
        import cloudpickle

        dumps = cloudpickle.dumps
    with contextlib.suppress(FileNotFoundError):  # a site may not see it
        os.chdir(said["directory"])
    if said["initializer"]:
        function, args = pickle.loads(said["initializer"])
        function(*args)
    return dumps, said["directory"]


def read_back(pickled, answer):
    """An exception that is made from other arguments than it is given cannot be read where it goes: then its text goes instead."""
    try:
        if isinstance(pickle.loads(pickled)[1], BaseException):
            return pickled
        why = "it comes back as something else"
    except BaseException as error:
        why = error
    raised = answer[1]
    text = f"a call raised {type(raised).__qualname__}: {raised} (the exception itself cannot be read back: {why})"
    return pickle.dumps((False, pickle.UnpicklingError(text), answer[2]), protocol=pickle.HIGHEST_PROTOCOL)


def result_of(call, dumps):
    """Pickled, whatever happens."""
    try:
        try:
            function, args, kwargs = pickle.loads(call)
        except (AttributeError, ImportError) as error:
            raise pickle.UnpicklingError(
                f"what is called is not to be found where it runs ({error}); with cloudpickle installed, what __main__ defines goes along"
            ) from error
        answer = (True, function(*args, **kwargs), None)
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


def run(preparation, calls, results):
    dumps, directory = prepare(preparation)
    answers = []
    for call in pickle.loads(bytes_of(calls)):
        with contextlib.suppress(FileNotFoundError):  # a site may not see it
            os.chdir(directory)
        begin = time.perf_counter()
        answer = result_of(call, dumps)
        answers.append((time.perf_counter() - begin, answer))
    with open(results, "wb") as file:
        pickle.dump(answers, file, protocol=pickle.HIGHEST_PROTOCOL)


def answer(_, request):
    own = {name: os.environ.get(name) for name in request.env}
    os.environ.update(request.env)
    try:
        preparation, calls, results = request.argv[-3:]
        if calls.startswith("@"):
            calls = "@" + os.path.join(request.directory, calls[1:])
        run(preparation, calls, os.path.join(request.directory, results))
    finally:
        for name, value in own.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "--serve":
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import answer_service

        return answer_service.serve(lambda: prepare(words[1]), answer)
    if len(words) != 3:
        sys.exit("call_worker.py: it is started by hpcbatch.Executor")
    calls, results = words[1], os.path.abspath(words[2])
    if calls.startswith("@"):
        calls = "@" + os.path.abspath(calls[1:])
    run(words[0], calls, results)


if __name__ == "__main__":
    main()
