"""A folder for the files of one executor's calls, which others find out to be forgotten when its process is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile

_PREFIX = "calls-"
_LOCK = "lock"


class CallFolder:
    """Below `parent`, which is made.  Folders there that nobody has any more are removed.  Raises OSError."""

    def __init__(self, parent: str) -> None:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _remove_forgotten(parent)
        # Nobody sees it before it is locked.
        made = tempfile.mkdtemp(prefix=".", dir=parent)
        self._lock = os.open(os.path.join(made, _LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = os.path.join(parent, _PREFIX + os.path.basename(made)[1:])
        os.rename(made, self.path)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_forgotten(parent: str) -> None:
    for name in os.listdir(parent):
        if not name.startswith(_PREFIX):
            continue
        # Another user's, on a file system without locks, or gone by now: it is left as it is.
        with contextlib.suppress(OSError):
            lock = os.open(os.path.join(parent, name, _LOCK), os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
            finally:
                os.close(lock)
