"""A folder for the files of one executor's calls, which others find out to be forgotten when its process is gone."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import tempfile
import time
import warnings

from . import trusted_path
from .client import Error
from .regular_file import open_regular

_PREFIX = "calls-"
# Of calls that go on without the process whose they are.
_DETACHED = "detached-"
_KEPT_S = 30 * 24 * 3600
_LOCK = "lock"


def check_folder(path: str) -> None:
    """Of pickles: raises Error where others than the user can put files there, and warns where a group can. `path`: absolute."""
    try:
        said = trusted_path.check(path)
    except trusted_path.Untrusted as error:
        raise Error(f"calls and their results cannot pass through {path}: {error}") from None
    if said is not None:
        warnings.warn(f"calls and their results pass through {path}: {said}", stacklevel=4)


class CallFolder:
    """Below `parent`, an absolute path, which is made. Folders there that nobody has any more are removed; `detached` ones are kept for
    a month.

    What is pickled passes here, and reading a pickle is running a program: raises Error where others than the user can put files
    there, and OSError. Files are reached by the open folder, whatever is put at its path later."""

    def __init__(self, parent: str, detached: bool = False) -> None:
        if not os.path.isdir(parent):
            check_folder(parent)
            os.makedirs(parent, mode=0o700, exist_ok=True)
        check_folder(parent)
        _remove_forgotten(parent)
        # Nobody sees it before it is locked.
        made = tempfile.mkdtemp(prefix=".", dir=parent)
        self._folder = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if os.fstat(self._folder).st_uid != os.geteuid():
            os.close(self._folder)
            raise Error(f"calls and their results cannot pass through {parent}: {made} was replaced while it was made")
        self._lock = os.open(_LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path: str = os.path.join(parent, (_DETACHED if detached else _PREFIX) + os.path.basename(made)[1:])
        os.rename(made, self.path)

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def write(self, name: str, data: bytes) -> None:
        """A new file. Raises OSError."""
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        with os.fdopen(made, "wb") as file:
            file.write(data)

    def open(self, name: str) -> io.BufferedReader:
        """For reading; raises OSError, also for what is no regular file."""
        return open_regular(name, dir_fd=self._folder)

    def forget(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._folder)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._folder)
        os.close(self._lock)


def _remove_forgotten(parent: str) -> None:
    for name in os.listdir(parent):
        if not name.startswith((_PREFIX, _DETACHED)):
            continue
        # Another user's, on a file system without locks, or gone by now: it is left as it is.
        with contextlib.suppress(OSError):
            if name.startswith(_DETACHED) and time.time() < os.stat(os.path.join(parent, name)).st_mtime + _KEPT_S:
                continue
            with open_regular(os.path.join(parent, name, _LOCK)) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
