"""Python's side of hpcbatch: the standard library only (but for the shims of others), so that it installs into anybody's environment.

    work          `submit(...)`, `Client().submit(...)`: what people write
    executor      `Executor().submit(...)`: calls of functions, as concurrent.futures has them
    functions     `@task`: functions whose calls are tasks
    joblib, dask, parsl, submitit  what plugs into each of them, where it is installed
    client        speaks to the engine's socket
    fork_service  a service that has its imports done and forks a process per task
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is for who asks for a module that needs it
if TYPE_CHECKING:
    from .executor import CallFailed, CallFuture, Executor, Options
    from .functions import Function, gather, task
    from .work import Client, Counts, EngineAway, Error, Failed, Refused, Submission, Task, submit, wait

    __version__: str

__all__ = [
    "CallFailed",
    "CallFuture",
    "Client",
    "Counts",
    "EngineAway",
    "Error",
    "Executor",
    "Failed",
    "Function",
    "Options",
    "Refused",
    "Submission",
    "Task",
    "gather",
    "submit",
    "task",
    "wait",
]

_OF_EXECUTOR = ("CallFailed", "CallFuture", "Executor", "Options")
_OF_FUNCTIONS = ("Function", "gather", "task")


def _lazily(name: str) -> object:
    """Not before somebody asks: who only needs a module of ours does not pay for the others."""
    if name in __all__:
        import importlib

        module = "executor" if name in _OF_EXECUTOR else "functions" if name in _OF_FUNCTIONS else "work"
        found: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return found
    if name == "__version__":
        from importlib import metadata

        return metadata.version("hpcbatch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


if not TYPE_CHECKING:  # whose names are those above, and no others
    __getattr__ = _lazily
