"""Large arrays of numpy's among what calls are handed: written once, and mapped where they are used, as joblib's own backends do it.

The files are numpy's own (`.npy`) and hold numbers alone: reading one runs nothing. Any thread may call any method.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import io
import os
import pickle
import threading
import uuid
import weakref
from collections import ChainMap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
else:
    try:
        import numpy
    except ImportError:  # then there are no arrays
        numpy = None

from joblib._memmapping_reducer import (  # type: ignore[import,unused-ignore]  # it has no types
    _get_backing_memmap,
    _reduce_memmap_backed,
)

from .executor import value_pickler


class Unseen(Exception):
    """Where a call runs the folder of its arrays is not seen: the call has not begun."""


def mapped(path: str, mode: Any) -> Any:
    """On a worker. Raises Unseen."""
    try:
        return numpy.load(path, mmap_mode=mode, allow_pickle=False)
    except FileNotFoundError as error:
        raise Unseen(path) from error


def _pickled(value: Any, reducers: dict[type, Callable[[Any], Any]]) -> bytes:
    by_value = value_pickler()
    base = pickle.Pickler if by_value is None else by_value.CloudPickler
    table = ChainMap(reducers, getattr(base, "dispatch_table", copyreg.dispatch_table))
    # The pickler written in C reads the table of its class, and that once.
    pickler, text = type("Pickler", (base,), {"dispatch_table": table}), io.BytesIO()
    pickler(text, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return text.getvalue()


class Arrays:
    """`folder`: where they are written, which is made, the user's alone. `at_least`: bytes of those that are; None: of none. `mode`:
    'r', 'r+' or 'c', as numpy.memmap has them."""

    def __init__(self, folder: str, at_least: int | None, mode: str | None) -> None:
        self._folder = folder
        self._at_least = at_least if mode else None
        # What is there already is not to be zeroed.
        self._mode = "r+" if mode == "w+" else mode or "r"
        self._lock = threading.Lock()
        self._paths: dict[int, str] = {}  # of arrays that are alive, by their id
        self._users: dict[str, int] = {}  # batches that have not ended

    def pickled(self, value: Any, by_value: bool = False) -> tuple[bytes, list[str]]:
        """And the files that it needs: `done` is to be called with them. Raises OSError."""
        needed: list[str] = []
        reducers: dict[type, Callable[[Any], Any]] = {}
        if numpy is not None and not by_value and self._at_least is not None:
            reduced = functools.partial(self._reduced, needed=needed)
            reducers = {numpy.ndarray: reduced, numpy.memmap: reduced}
        try:
            return _pickled(value, reducers), needed
        except BaseException:
            self.done(needed)
            raise

    def _reduced(self, array: Any, needed: list[str]) -> Any:
        backing = _get_backing_memmap(array)
        if isinstance(backing, numpy.memmap) and backing.filename is not None:
            return _reduce_memmap_backed(array, backing)
        if array.dtype.hasobject or array.nbytes < (self._at_least or 0):
            return array.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        path = self._path_of(array)
        needed.append(path)
        return mapped, (path, self._mode)

    def _path_of(self, array: Any) -> str:
        with self._lock:
            path = self._paths.get(id(array))
            if path is None:
                os.makedirs(self._folder, mode=0o700, exist_ok=True)
                path = os.path.join(self._folder, f"{uuid.uuid4().hex}.npy")
                numpy.save(path, array, allow_pickle=False)
                self._paths[id(array)] = path
                weakref.finalize(array, self._died, id(array), path).atexit = False
            self._users[path] = self._users.get(path, 0) + 1
            return path

    def _died(self, number: int, path: str) -> None:
        # Another one may have its number as soon as it is gone, not before.
        self._paths.pop(number, None)
        if path not in self._users:
            _remove(path)

    def done(self, needed: list[str]) -> None:
        """A batch has ended."""
        with self._lock:
            alive = set(self._paths.values())
            for path in needed:
                self._users[path] -= 1
                if self._users[path] == 0:
                    del self._users[path]
                    if path not in alive:
                        _remove(path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
