"""Another user of the machine, without a right to anything: tries what he can, and says what he was let do."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys

# Nobody's number: rights are asked by number, so that no account is needed.
NUMBER = 54321

# Tries each path in all ways. What is refused is not told: EACCES, or EPERM in a folder where all may write and only
# owners may rename.
TRY_ALL = r"""
import errno, json, os, socket, stat, sys

def attempt(path, what, does):
    try:
        does()
    except OSError as refused:
        if refused.errno in (errno.EACCES, errno.EPERM):
            return
        outcome = errno.errorcode.get(refused.errno, str(refused))
    else:
        outcome = "done"
    let.append([path, what, outcome])

def opened(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK, 0o600))

def connected(path):
    with socket.socket(socket.AF_UNIX) as one:
        # By a short name, where the folder may be entered at all: addresses are short.
        os.chdir(os.path.dirname(path))
        try:
            one.connect(os.path.basename(path))
        finally:
            os.chdir("/")

let = []
for path, kind in json.load(sys.stdin):
    if kind == "folder":
        attempt(path, "list", lambda: os.listdir(path))
        attempt(path, "put a file", lambda: opened(path + "/of-another", os.O_WRONLY | os.O_CREAT))
        attempt(path, "make a folder", lambda: os.mkdir(path + "/of-another-user"))
    elif kind == "socket":
        attempt(path, "connect", lambda: connected(path))
    else:
        attempt(path, "read", lambda: opened(path, os.O_RDONLY))
        attempt(path, "write", lambda: opened(path, os.O_WRONLY))
    attempt(path, "rename", lambda: os.rename(path, path + ".taken"))
json.dump(let, sys.stdout)
"""

READ_ALL = r"""
import base64, json, sys
read = {}
for path in json.load(sys.stdin):
    try:
        with open(path, "rb") as file:
            read[path] = base64.b64encode(file.read()).decode()
    except OSError:
        pass
json.dump(read, sys.stdout)
"""

# Says the pieces, each but the first once something has come, and returns all that came until the other end closed.
SEND = r"""
import base64, json, socket, sys
port, pieces = json.load(sys.stdin)
heard = b""
with socket.create_connection(("127.0.0.1", port), 60) as one:
    for turn, piece in enumerate(pieces):
        if turn:
            heard += one.recv(65536)
        one.sendall(base64.b64decode(piece))
    try:
        while more := one.recv(65536):
            heard += more
    except ConnectionResetError:
        pass  # it closed with something of ours unread
json.dump(base64.b64encode(heard).decode(), sys.stdout)
"""


def as_user(number, program, given, group=None):
    """What a Python program printed that a user of that number ran: JSON both ways. His one group is `group`, else his number."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={},
        user=number,
        group=number if group is None else group,
        extra_groups=[],
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _as_second_user(program, given):
    return as_user(NUMBER, program, given)


def everything_below(*roots):
    """Each path as [path, kind], the roots too; what goes while we look is left out."""
    found = []
    for root in map(str, roots):
        found.append([root, "folder"])
        for folder, folders, files in os.walk(root):
            for name in folders + files:
                path = pathlib.Path(folder, name)
                if path.is_symlink():
                    continue  # it has no rights of its own; where it leads is among the roots
                kind = (
                    "folder"
                    if path.is_dir()
                    else "socket"
                    if path.is_socket()
                    else "file"
                    if path.is_file()
                    else "pipe"
                )
                if os.path.lexists(path):
                    found.append([str(path), kind])
    return found


def let_do(paths):
    """What the second user was let do with these [path, kind], as [path, what, outcome]."""
    return _as_second_user(TRY_ALL, paths)


def read_by_second_user(paths):
    """{path: bytes} of the files that he could read."""
    return {
        path: base64.b64decode(text) for path, text in _as_second_user(READ_ALL, [str(path) for path in paths]).items()
    }


def send_as_second_user(port, *pieces):
    """What the other end of a port of this machine answered before it closed."""
    return base64.b64decode(_as_second_user(SEND, [port, [base64.b64encode(piece).decode() for piece in pieces]]))


def keys_below(*workspaces):
    """The keys in the pilot files, with all that they may be written as."""
    keys = set()
    for workspace in workspaces:
        for file in pathlib.Path(workspace).glob("allocations/*.pilot"):
            keys |= set(re.findall(r"^key ([0-9a-f]{64})$", file.read_text(), re.MULTILINE))
    return {
        form
        for key in keys
        for form in (key.encode(), key.upper().encode(), bytes.fromhex(key), base64.b64encode(bytes.fromhex(key)))
    }
