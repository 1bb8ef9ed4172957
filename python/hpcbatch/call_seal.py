"""The sum that calls and results have on their way, by a key that only an executor and its workers know.

What has no such sum is not unpickled: reading a pickle is running a program. The key travels as a variable of the task, which
`/proc` shows to its user alone.  Python 3.8 or later; beside call_worker.py.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct

TYPE_CHECKING = False  # a worker does not wait for `typing`
if TYPE_CHECKING:
    from typing import BinaryIO

# The variables of a task: the executor's key, its calls (their number, and base64 or nothing: then they are in the input
# `calls`), and what each worker is to be prepared for.
KEY, CALLS, PREPARATION = "HPCBATCH_CALLS_KEY", "HPCBATCH_CALLS", "HPCBATCH_CALLS_PREPARATION"

_SUM = hashlib.sha256().digest_size
_SIZE = struct.Struct(">8sQ")
_MARK = b"HBcalls1"
HEAD = _SIZE.size + 2 * _SUM


class Broken(Exception):
    """It is not what who knows the key has written."""


def new_key() -> str:
    return os.urandom(32).hex()


def _sum(key: str, what: str, data: bytes) -> bytes:
    return hmac.new(bytes.fromhex(key), what.encode() + b"\0" + data, hashlib.sha256).digest()


def sealed(key: str, what: str, data: bytes) -> bytes:
    """`data` with its sums before it. `what`: of what it is; another's place it cannot take."""
    size = _SIZE.pack(_MARK, len(data))
    return size + _sum(key, "size of " + what, size) + _sum(key, what, data) + data


def opened(key: str, what: str, file: BinaryIO) -> bytes:
    """The data; `file`: open, in binary. Of one that others have made large no more is read than its head. Raises Broken or OSError."""
    head = file.read(HEAD)
    if len(head) < HEAD:
        raise Broken("it is cut off")
    size, sums = head[: _SIZE.size], head[_SIZE.size :]
    mark, count = _SIZE.unpack(size)
    if mark != _MARK or not hmac.compare_digest(sums[:_SUM], _sum(key, "size of " + what, size)):
        raise Broken("its sum is not by the key of this executor: it was written by somebody else, or for other calls")
    data = file.read(count)
    if len(data) < count or file.read(1):
        raise Broken("it is cut off, or has more than was written")
    if not hmac.compare_digest(sums[_SUM:], _sum(key, what, data)):
        raise Broken("its sum is not by the key of this executor: it was changed on its way")
    return data
