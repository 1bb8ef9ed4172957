"""Python's side of hpcbatch: the standard library only (but for the shims of others), so that it installs into anybody's environment.

    work          `submit(...)`, `Client().submit(...)`: what people write
    executor      `Executor().submit(...)`: calls of functions, as concurrent.futures has them
    functions     `@task`: functions whose calls are tasks
    joblib, dask, parsl, submitit  what plugs into each of them, where it is installed
    client        speaks to the engine's socket
    fork_service  a service that has its imports done and forks a process per task
"""

_OF_EXECUTOR = ("CallFailed", "Executor")
_OF_FUNCTIONS = ("Function", "gather", "task")
_OF_WORK = ("Client", "Counts", "EngineAway", "Error", "Failed", "Refused", "Submission", "Task", "submit", "wait")


def __getattr__(name):
    """Not before somebody asks: who only needs a module of ours does not pay for the others."""
    if name in _OF_WORK:
        from . import work

        return getattr(work, name)
    if name in _OF_EXECUTOR:
        from . import executor

        return getattr(executor, name)
    if name in _OF_FUNCTIONS:
        from . import functions

        return getattr(functions, name)
    if name == "__version__":
        from importlib import metadata

        return metadata.version("hpcbatch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_OF_EXECUTOR, *_OF_FUNCTIONS, *_OF_WORK, "__version__"])
