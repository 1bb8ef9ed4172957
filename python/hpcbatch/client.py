"""Speaks to the user's engine: HTTP with JSON on its Unix socket (docs/api.md).

One `Client` may be used by several threads; each has a connection of its own.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import surroundings

# Tasks of one answer: the most that the engine lists.
_PAGE = 10_000
# Said whatever its version: builds between two releases differ, too.
_OLDER = (
    " (the engine that runs is older than this package: `hpcbatch engine restart` starts the newer one;"
    " queued work stays, and pilots go on)"
)
_CREDENTIALS = struct.calcsize("iII")  # pid, uid, gid: unix(7), SO_PEERCRED


class Error(Exception):
    """What we tried, what happened, what to do, in one sentence."""


class EngineAway(Error):
    """No engine answers, or the one that does takes nothing now: the same again later may go well."""


def _encoded(body: object) -> bytes:
    """As bytes.  Names of files that are no UTF-8 are texts with surrogates in Python (PEP 383), and go as they are."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        wrong = error.object[error.start]
        raise Refused(
            400,
            f"a text of the request holds U+{ord(wrong):04X}, half of a character of UTF-16, which is no text alone",
        ) from None
    except ValueError:
        raise Refused(
            400, "a number of the request is nan or infinite, which JSON cannot say; write a number, or a text"
        ) from None


class Refused(Error):
    """The engine refused the request; nothing was done.  `status`: 400, 404, 409 or 503."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.status, str(self))


def warn(line: str) -> None:
    """Tells the user."""
    print(f"hpcbatch: {line}", file=sys.stderr)


def socket_paths(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Where the user's engine may listen, in the order in which to try: it is in its home where logging out removed
    $XDG_RUNTIME_DIR, or where cron started it."""
    home = environment.get("HPCBATCH_HOME")
    if home:
        return [os.path.join(home, "socket")]
    state = environment.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    in_home = os.path.join(state, "hpcbatch", "socket")
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if not runtime.startswith("/"):
        return [in_home]
    return [os.path.join(runtime, "hpcbatch", "socket"), in_home]


def socket_path(environment: Mapping[str, str] = os.environ) -> str:
    """Where the user's engine listens as a rule."""
    return socket_paths(environment)[0]


def _installed_beside() -> str | None:
    """Of the version of this package: a notebook's Python is often none whose folder of programs is on PATH."""
    import sysconfig

    # Where pip puts programs with --target; else as it does for this Python.
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    for folder in (beside, sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "posix_user")):
        path = os.path.join(folder, "hpcbatch")
        if os.access(path, os.X_OK):
            return path
    return None


def find_program(named: str | None = None) -> str:
    """The program `hpcbatch`: `named`, else HPCBATCH_PROGRAM, else installed with this package, else on PATH.  Raises Error."""
    program = named or os.environ.get("HPCBATCH_PROGRAM") or _installed_beside() or "hpcbatch"
    path = shutil.which(program)
    if path is None:
        raise Error(f"cannot find the program {program}: put hpcbatch on PATH, or name it in HPCBATCH_PROGRAM")
    return path


def _ids_or_error(answer: Mapping[str, Any]) -> list[str] | Error:
    if "ids" in answer:
        ids: list[str] = answer["ids"]
        return ids
    return EngineAway(answer["error"]) if answer["status"] == 503 else Refused(answer["status"], answer["error"])


def _release(version: str) -> tuple[int, ...]:
    """Its first two numbers, to compare."""
    return tuple(int(number) for number in version.split(".")[:2] if number.isdigit())


_NAMES = frozenset(("name", "directory", "stdin", "stdout", "stderr", "inputs", "outputs"))


def as_it_stands(name: Any) -> Any:
    """A name, or a list or a mapping of them, in which nothing is replaced: its braces doubled."""
    if isinstance(name, str):
        return name.replace("{", "{{").replace("}", "}}")
    if isinstance(name, Mapping):
        return {key: as_it_stands(value) for key, value in name.items()}
    return [as_it_stands(one) for one in name]


def with_names_as_they_stand(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task whose names of files, folders and itself are all meant as they stand."""
    return {key: as_it_stands(value) if key in _NAMES else value for key, value in task.items()}


def submit_of(
    client: str,
    tasks: Sequence[Mapping[str, Any]],
    key: str,
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
    umask: int | None = None,
    read_by: tuple[str, float] | None = None,
) -> dict[str, Any]:
    """A submit as the engine reads it (docs/api.md, "A submit"). `read_by`: who waits for it, and for how many seconds it may be away
    before the engine cancels the tasks."""
    body: dict[str, Any] = {"client": client, "key": key, "tasks": tasks}
    if directory is not None:
        body["directory"] = directory
    if environment is not None:
        body["environment"] = environment
    if umask is not None:
        body["umask"] = f"{umask:04o}"
    if within := surroundings.own_task():
        body["within"] = within
    if read_by is not None:
        body["reader"], body["lease_s"] = read_by
    return body


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket, whose path may be longer than an address holds; None: the first of the user's engine's that somebody
    listens at. `connect` raises OSError, and Error where another user listens."""

    def __init__(self, path: str | None, timeout: float) -> None:
        super().__init__("engine", timeout=timeout)
        self._paths = socket_paths() if path is None else [path]

    def connect(self) -> None:
        first: OSError | None = None
        for path in self._paths:
            try:
                return self._connect(path)
            except OSError as error:
                self.close()
                first = first or error
        if first is not None:
            try:
                raise first
            finally:
                first = None  # else it leads to itself, and keeps all that called alive until the collector comes by

    def _connect(self, named: str) -> None:
        self.sock: socket.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        path = named
        folder = -1
        try:
            if len(os.fsencode(path)) >= 108:
                folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
                path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
            self.sock.connect(path)
        finally:
            if folder >= 0:
                os.close(folder)
        _, uid, _ = struct.unpack("iII", self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS))
        if uid != os.geteuid():
            # It would be handed what the user's tasks are, and could answer anything.
            self.close()
            raise Error(f"cannot use the socket {named}: another user's process (uid {uid}) listens there")


def shut(connection: UnixConnection) -> None:
    """From any thread: ends what waits there for an answer."""
    try:
        connection.sock.shutdown(socket.SHUT_RDWR)
    except (OSError, AttributeError):
        pass  # it was not connected


class _OfThread(threading.local):
    """A thread's connection. A process that was forked has its own: on one they would hear each other's answers."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._connection: UnixConnection | None = None

    @property
    def connection(self) -> UnixConnection | None:
        if self._owner != os.getpid():
            self.connection = None
        return self._connection

    @connection.setter
    def connection(self, connection: UnixConnection | None) -> None:
        self._owner, self._connection = os.getpid(), connection


class Client:
    """`timeout`: seconds for an answer to a request that does not wait for anything by itself."""

    def __init__(self, path: str | None = None, timeout: float = 60.0) -> None:
        self.named_path = path
        self._timeout = timeout
        self._local = _OfThread()
        self._waiting: set[UnixConnection] = set()  # connections that wait for an answer
        self.home: str | None = None  # the engine's state directory, once it has said so
        self._of_age: str | None = None  # what is said of an engine that is older than this package
        self._interrupted = False

    @property
    def path(self) -> str:
        """Where the engine is looked for first."""
        return self.named_path or socket_path()

    def interrupt(self) -> None:
        """From any thread: ends all requests that wait for something, now and from now on, by EngineAway."""
        self._interrupted = True
        for connection in list(self._waiting):
            shut(connection)

    def request(self, method: str, target: str, body: object = None, waits: float = 0.0) -> dict[str, Any]:
        """The answer as a dict.  `waits`: seconds that the engine may take its time.  Raises EngineAway or Refused.

        A connection that was idle and is gone is made anew once; whatever is sent twice by that must bear it: a submit
        does by its key."""
        data = None if body is None else _encoded(body)
        headers = {} if data is None else {"Content-Type": "application/json"}
        is_last = False
        while True:
            kept = self._local.connection
            is_new = kept is None
            connection = UnixConnection(self.named_path, self._timeout) if kept is None else kept
            try:
                if is_new:
                    connection.connect()
                connection.sock.settimeout(self._timeout + waits)
                if waits > 0:
                    self._waiting.add(connection)
                    if self._interrupted:
                        raise EngineAway("it was interrupted")
                try:
                    connection.request(method, target, data, headers)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # an engine that refuses a client before it has heard all of him says why and closes
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self._local.connection = None
                if is_new or is_last or (waits > 0 and self._interrupted):
                    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                    raise EngineAway(f"cannot reach the engine at {self.path}: {why}") from error
                is_last = True
                continue
            except BaseException:
                # Interrupted: what is left of the answer must not be read as another's.
                connection.close()
                self._local.connection = None
                raise
            finally:
                self._waiting.discard(connection)
            self._local.connection = None if answer.will_close else connection
            try:
                value: dict[str, Any] = json.loads(text)
            except ValueError:
                value = {"error": f"the engine at {self.path} gave an answer that is no JSON"}
            if answer.status != 200:
                said = str(value.get("error", f"status {answer.status}"))
                if isinstance(body, Mapping) and "within" in body and said.startswith("'within' is no key"):
                    # An older engine; only `explain` uses it.
                    rest = {name: part for name, part in body.items() if name != "within"}
                    return self.request(method, target, rest, waits)
                if said.startswith("'reader' is no key"):
                    raise Refused(answer.status, said + _OLDER)
                raise Refused(answer.status, said + (self._said_of_age() if answer.status in (400, 404) else ""))
            return value

    def _said_of_age(self) -> str:
        """What an engine does not know may be newer than it is."""
        if self._of_age is None:
            self._of_age = ""
            from importlib import metadata

            try:
                engine, own = self.get("/v1/engine")["version"], metadata.version("hpcbatch")
            except (metadata.PackageNotFoundError, KeyError, Error):
                return ""
            if _release(engine) < _release(own):
                self._of_age = (
                    f" (the engine that runs is hpcbatch {engine}, and this is {own}'s package: `hpcbatch engine stop`, and the next"
                    " start takes the newer one; queued work stays)"
                )
        return self._of_age

    def get(self, target: str, waits: float = 0.0, **query: str | float | None) -> dict[str, Any]:
        said = {name: value for name, value in query.items() if value is not None}
        return self.request("GET", target + ("?" + urllib.parse.urlencode(said) if said else ""), waits=waits)

    def post(self, target: str, body: object) -> dict[str, Any]:
        return self.request("POST", target, body)

    def submit(
        self,
        client: str,
        tasks: Sequence[Mapping[str, Any]],
        key: str,
        directory: str | None = None,
        environment: Mapping[str, str] | None = None,
        umask: int | None = None,
    ) -> list[str]:
        """Queues `tasks` (docs/api.md, "A submit") and gives their ids, once they are on disk.

        The same key with the same tasks again gives the same ids, so that a submit whose answer was lost is sent again
        here, for as long as a restart of the engine takes."""
        body = submit_of(client, tasks, key, directory, environment, umask)
        ids: list[str] = self.patiently("POST", "/v1/tasks", body)["ids"]
        return ids

    def submit_many(self, submits: Sequence[Mapping[str, Any]]) -> list[list[str] | Error]:
        """Queues many submits (`submit_of`) in one message.  For each, in their order: its ids, or the error that it met."""
        answers = self.patiently("POST", "/v1/submits", {"submits": submits})["answers"]
        return [_ids_or_error(answer) for answer in answers]

    def patiently(self, method: str, target: str, body: object = None, patience: float = 60.0) -> dict[str, Any]:
        """A request that may be sent twice, again while the engine is away or says "not now"; for so many seconds."""
        until = time.monotonic() + patience
        pause = 0.02
        while True:
            try:
                return self.request(method, target, body)
            except EngineAway:
                if time.monotonic() >= until:
                    raise
            except Refused as refusal:
                if refusal.status != 503:
                    raise
                if time.monotonic() >= until:
                    raise EngineAway(str(refusal)) from refusal
            time.sleep(pause)
            pause = min(1.0, pause * 2)

    def cancel(self, ids: Iterable[str], patience: float = 5.0) -> int:
        """How many tasks it changed."""
        named = list(ids)
        return int(self.patiently("POST", "/v1/tasks/cancel", {"ids": named}, patience)["tasks"]) if named else 0

    def waiting(self, client: str) -> list[str]:
        """Ids of that client's tasks that have not started."""
        found: list[str] = []
        for state in ("waiting", "held"):
            page: list[str] | None = None
            before: str | None = None
            while page is None or len(page) == _PAGE:
                page = [
                    task["id"]
                    for task in self.get("/v1/tasks", state=state, client=client, limit=_PAGE, before=before)["tasks"]
                ]
                found += page
                before = page[-1] if page else None
        return found

    def ids_of_key(self, client: str, key: str, patience: float = 60.0) -> list[str]:
        """What a submit with that key was given; empty where none was taken."""
        try:
            query = urllib.parse.urlencode({"client": client, "key": key})
            ids: list[str] = self.patiently("GET", "/v1/keys?" + query, None, patience)["ids"]
            return ids
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return []

    def task(self, number: str, patience: float = 60.0) -> dict[str, Any] | None:
        """One task in full; None for one that is unknown."""
        try:
            return self.patiently("GET", f"/v1/tasks/{number}", None, patience)
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return None

    def events(self, client: str, after: str | int | None, wait: float) -> tuple[list[dict[str, Any]], str | int, bool]:
        """`(events, cursor, pruned)`: what ended after the cursor; waits up to `wait` seconds for the first.

        `pruned`: the history does not reach back to the cursor."""
        answer = self.get("/v1/events", waits=wait, client=client, after=after, wait=wait)
        return answer["events"], answer["cursor"], answer["pruned"]

    def log(self, task: str, stream: str = "stdout", begin: int = 0, end: int | None = None) -> bytes:
        """What a task has printed so far, as bytes, or those from `begin` up to `end` of it."""
        pieces: list[bytes] = []
        while end is None or begin < end:
            piece = self.patiently("GET", f"/v1/tasks/{task}/log?stream={stream}&offset={begin}")
            text = piece["text"].encode() if "text" in piece else base64.b64decode(piece["base64"])
            pieces.append(text if end is None else text[: end - begin])
            if piece["end"] or piece["next"] == begin:
                break
            begin = piece["next"]
        return b"".join(pieces)

    def log_end(self, task: str, stream: str = "stderr", most: int = 2000) -> str:
        """The last bytes of what an ended task printed, as text."""
        shown = self.get(f"/v1/tasks/{task}/log", stream=stream, tail=most)
        if "text" in shown:
            return str(shown["text"])
        return base64.b64decode(shown.get("base64", "")).decode(errors="replace")


def has_died(home: str) -> bool:
    """Whether the engine of that state directory ended without a word: one that was stopped has emptied its lock file."""
    try:
        with open(os.path.join(home, "engine.lock"), encoding="utf-8", errors="replace") as lock:
            said = dict(line.split(" ", 1) for line in lock.read().splitlines() if " " in line)
    except OSError:
        return False
    if not said or said.get("host") != socket.gethostname():
        return False
    try:
        with open(f"/proc/{said['process']}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except (OSError, KeyError):
        return True
    return fields[0] in "ZX" or fields[19] != said.get("start")


def connect(program: str | None = None, start: bool = True) -> Client:
    """A client of the user's engine, which is started where none runs.  Raises Error with the one sentence to show."""
    client = Client()
    try:
        client.home = client.get("/v1/engine").get("home")
        return client
    except EngineAway:
        if not start:
            raise
    command = [find_program(program), "engine", "start", "--until-idle"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Error(f"cannot start the engine by {' '.join(command)}: {error}") from error
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise Error(
            words[-1].removeprefix("hpcbatch: ") if words else f"cannot start the engine: exit {done.returncode}"
        )
    client.home = client.get("/v1/engine").get("home")
    return client
