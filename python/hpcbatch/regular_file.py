"""A file at whose name somebody else may have put anything: a FIFO, a device, a link, a terabyte. The twin of core/posix/regular_file.hpp.

Python 3.8 or later; may be read by other users' interpreters beside call_worker.py."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # a worker does not wait for `typing`
if TYPE_CHECKING:
    import io


def open_regular(path: str, *, dir_fd: int | None = None, follow: bool = False) -> io.BufferedReader:
    """Open for reading in binary: a regular file alone, at once, and through a link only where `follow` says so. Raises OSError."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "it is a link, which is not followed", path) from None
        if error.errno == errno.ENXIO:  # a socket
            raise OSError(errno.EINVAL, "it is no regular file", path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return os.fdopen(descriptor, "rb")


def read_regular(path: str, most: int, *, dir_fd: int | None = None, follow: bool = False) -> bytes:
    """Its bytes; raises OSError, also for one that has more than `most` of them."""
    with open_regular(path, dir_fd=dir_fd, follow=follow) as file:
        if os.fstat(file.fileno()).st_size <= most:
            data = file.read(most + 1)
            if len(data) <= most:
                return data
    raise OSError(errno.EFBIG, f"it has more than {most} bytes", path)
