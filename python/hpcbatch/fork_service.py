"""A service that has its imports done and forks a process for each task.

    python -m hpcbatch.fork_service MODULE...

imports the modules, says that it is ready, and forks for each request a process that does what the task's command says:
`python FILE`, `python -m MODULE` and `python -c TEXT` of this same interpreter run here, with all that is imported already;
any other command is executed.  Either way the process has the task's directory, environment, streams, cpus, limits and
control group, a process group of its own, and is the pilot's child, not the service's.  docs/formats.md ("Services") has
what is said on the socket, which is the service's standard input.

What was loaded is looked at again from time to time; where a file of it has changed, the service starts itself anew.

One thread only.  Python 3.8 or later.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import gc
import importlib
import os
import resource
import runpy
import select
import shutil
import signal
import socket
import sys
import time
import types
import weakref

TYPE_CHECKING = False  # a service does not wait for `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, Optional

    Facts = dict[str, Optional[tuple[int, int, int]]]

_LOOK_EVERY_S = 5.0
_SIGN_EVERY_S = 1.0
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
# Libraries that fix their number of threads when they are loaded: one, so that the service stays a single thread.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class _CannotEnter(Exception):
    """The task's directory; the number of the error."""


class Request:
    """What a process is to be.  `environment` is in bytes; `umask`, `open_files` None and `cpus` empty: as the service."""

    def __init__(self, data: bytes) -> None:
        fields = data.split(b"\0")
        if fields[0] != b"hpcbatch-request 1":
            raise ValueError("a request of another version")
        self.directory: bytes = fields[1]
        self.umask: int | None = int(fields[2], 8) if fields[2] else None
        self.cpus: set[int] = {int(cpu) for cpu in fields[3].split(b",")} if fields[3] else set()
        limits = [int(limit) for limit in fields[4].split()]
        self.open_files: tuple[int, int] | None = (limits[0], limits[1]) if limits else None
        count = int(fields[5])
        self.argv: list[str] = [os.fsdecode(word) for word in fields[6 : 6 + count]]
        lines = (line.partition(b"=") for line in fields[6 + count : -1])
        self.environment: dict[bytes, bytes] = {name: value for name, _, value in lines}
        threads = self.environment.get(b"OMP_NUM_THREADS", b"1")
        self.threads: int = int(threads) if threads.isdigit() else 1


def _loaded_files() -> Facts:
    """Files that decide what an import gives, each with what tells that it has changed, and the folders into which packages
    are installed."""
    paths = {path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")}
    for module in list(sys.modules.values()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(path, str):
            paths.add(path)
    facts: Facts = {}
    for path in paths:
        try:
            info = os.stat(path)
        except (OSError, ValueError):
            facts[path] = None
        else:
            facts[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return facts


def _receive(control: socket.socket) -> list[int] | None:
    """One request's descriptors; None at the end."""
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(8 * descriptors.itemsize)
    text, ancillary, _, _ = control.recvmsg(64, room)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    if not text:
        return None
    return list(descriptors)


def _read_all(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        piece = os.read(descriptor, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def _set_threads(count: int) -> None:
    """Tells libraries that are loaded already how many threads they may use."""
    names: dict[str, str] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            base = os.path.basename(path)
            for kind in ("openblas", "libgomp", "libiomp", "libmkl_rt"):
                if kind in base:
                    names["/" + path] = kind
    for path, kind in names.items():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        if kind == "openblas":
            # Wheels rename what they bring along.
            candidates = [
                prefix + "openblas_set_num_threads" + suffix
                for prefix in ("", "scipy_")
                for suffix in ("", "64_", "_64_")
            ]
        else:
            candidates = ["MKL_Set_Num_Threads" if kind == "libmkl_rt" else "omp_set_num_threads"]
        for name in candidates:
            setter = getattr(library, name, None)
            if setter is not None:
                setter(ctypes.c_int(count))
                break


class _Signs:
    """Finds no module, but is asked before each import: so the pilot hears that a start that takes long goes on."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._next = time.monotonic() + _SIGN_EVERY_S

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SIGN_EVERY_S
            try:
                self._control.send(b"starting " + name.encode(errors="replace")[:200], socket.MSG_DONTWAIT)
            except OSError:
                pass
        return None


class _AtExit:
    """What imported modules want done at the end of a process.

    A task's process does what any Python does that has imported them: libraries crash at their end where that is left out.  It does
    not do what is tied to one object, such as a folder that the service has made for all: that is the service's."""

    def __init__(self) -> None:
        self._kept: list[Callable[..., object]] = []
        self._register: Callable[..., Any] = atexit.register
        self._unregister: Callable[..., object] = atexit.unregister
        self._put(self._note, self._drop)

    @staticmethod
    def _put(register: object, unregister: object) -> None:
        setattr(atexit, "register", register)
        setattr(atexit, "unregister", unregister)

    def _note(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> Any:
        owner = getattr(function, "__self__", None)
        is_tied = bool(args or kwargs or getattr(function, "__closure__", None))
        if not is_tied and isinstance(owner, (type(None), types.ModuleType)):
            self._kept.append(function)
        return self._register(function, *args, **kwargs)

    def _drop(self, function: Callable[..., object]) -> None:
        self._kept = [kept for kept in self._kept if kept != function]
        self._unregister(function)

    def imported(self) -> None:
        """No more is noted."""
        self._put(self._register, self._unregister)

    def begin_anew(self) -> None:
        """In a process that was forked."""
        atexit._clear()
        finalizers: Any = weakref.finalize  # of its inside, which typeshed does not show
        finalizers._registry.clear()
        finalizers._registered_with_atexit = False
        for function in self._kept:
            atexit.register(function)


def _forget_the_service(threads: int) -> None:
    """What modules remember of the process that imported them, and each process must have for itself."""
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        setattr(tempfile, "tempdir", None)
    seed = getattr(sys.modules.get("numpy.random"), "seed", None)
    if seed is not None:
        seed()
    time.tzset()
    if threads > 1:
        _set_threads(threads)
    # It was made while another file was standard input.
    sys.stdin = open(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False)


def _is_this_python(program: str, search: str) -> bool:
    path = program if os.path.sep in program else shutil.which(program, path=search)
    if not path:
        return False
    if path == sys.executable:
        return True
    # A virtual environment's python is a link to another's: the folder makes the difference.
    return os.path.dirname(path) == os.path.dirname(sys.executable) and os.path.realpath(path) == os.path.realpath(
        sys.executable
    )


def _main_module(file: str | None) -> dict[str, Any]:
    module = types.ModuleType("__main__")
    setattr(module, "__builtins__", sys.modules["builtins"])
    if file:
        module.__file__ = file
    sys.modules["__main__"] = module
    return module.__dict__


def _search_here_first(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _coerce_locale(environment: dict[bytes, bytes], own: Mapping[bytes, bytes]) -> None:
    """What Python does to its own environment where that names no locale (PEP 538)."""
    if own.get(b"LC_CTYPE", b"").lower() in (b"c.utf-8", b"c.utf8", b"utf-8"):
        said = environment.get(b"LC_CTYPE") or environment.get(b"LANG") or b"C"
        if not environment.get(b"LC_ALL") and said in (b"C", b"POSIX"):
            environment[b"LC_CTYPE"] = own[b"LC_CTYPE"]


def _same_settings(environment: Mapping[bytes, bytes], own: Mapping[bytes, bytes]) -> bool:
    """Python was started with the settings that the task's environment asks for."""
    names = {
        name
        for name in (*environment, *own)
        if name.startswith(b"PYTHON") or name.startswith(b"LC_") or name == b"LANG"
    }
    return all(environment.get(name) == own.get(name) for name in names)


def _run(argv: list[str]) -> bool:
    """Does what `python ARGV[1:]` does.  False where that is not known here."""
    words = argv[1:]
    if not words:
        return False
    if words[0] == "-c" and len(words) > 1:
        sys.argv = ["-c"] + words[2:]
        _search_here_first("")
        # A task's own `from __future__` counts, and not this file's.
        exec(compile(words[1], "<string>", "exec", dont_inherit=True), _main_module(None))
    elif words[0] == "-m" and len(words) > 1:
        sys.argv = ["-m"] + words[2:]
        _search_here_first(os.getcwd())
        _main_module(None)
        getattr(runpy, "_run_module_as_main")(words[1])
    elif not words[0].startswith("-") and words[0].endswith(".py") and os.path.isfile(words[0]):
        sys.argv = words
        _search_here_first(os.path.dirname(os.path.realpath(words[0])))
        file = os.path.abspath(words[0]) if sys.version_info >= (3, 9) else words[0]
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
        exec(code, _main_module(file))
    else:
        return False
    return True


def _execute(argv: list[str]) -> NoReturn:
    """As the pilot would have started it: without what Python has changed of its signals."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print("cannot run %r: %s" % (argv[0], error.strerror), file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _become(request: Request, own: Mapping[bytes, bytes]) -> None:
    """What the task's process does.  It ends as any Python does, by this function's return or SystemExit."""
    search = os.fsdecode(request.environment.get(b"PATH", b""))
    if not _is_this_python(request.argv[0], search):
        _execute(request.argv)
    _coerce_locale(request.environment, own)
    if not _same_settings(request.environment, own):
        _execute(request.argv)
    os.environb.update(request.environment)
    try:
        if not _run(request.argv):
            _execute(request.argv)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        kind, value, trace = sys.exc_info()
        assert kind is not None and value is not None
        # Without the frames of this file.
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(kind, value.with_traceback(trace), trace)
        del kind, value, trace
        sys.exit(1)


class Service:
    def __init__(
        self, control: socket.socket, libc: ctypes.CDLL | None, own: Mapping[bytes, bytes], at_exit: _AtExit
    ) -> None:
        self._control = control
        self._at_exit = at_exit
        self._libc = libc
        self._own = own
        self._loaded = _loaded_files()
        self._looked = time.monotonic()

    def serve(self) -> Request | str:
        """Until the pilot wants it no more ("end"), or it is to start itself anew ("stale"); in a process that it has forked and
        that was let go it returns as well, with the request."""
        while True:
            select.select([self._control], [], [])
            if self._is_stale():
                return "stale"
            descriptors = _receive(self._control)
            if descriptors is None:
                return "end"
            request = self._fork(descriptors)
            if request is not None:
                return request
            for descriptor in descriptors:
                os.close(descriptor)

    def _is_stale(self) -> bool:
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_S:
            return False
        self._looked = now
        return _loaded_files() != self._loaded

    def _fork(self, descriptors: list[int]) -> Request | None:
        """Two forks: what the first leaves behind when it ends becomes the pilot's.  None in the service."""
        reply = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=os.dup(descriptors[1]))
        try:
            request = Request(_read_all(descriptors[0]))
            handed_over, hand_over = os.pipe()
            first = -1
            try:
                first = os.fork()
                if first == 0:
                    if self._is_the_task(request, reply, descriptors, handed_over, hand_over):
                        return request
                    os._exit(0)
                os.waitpid(first, 0)
            finally:
                if first != 0:
                    # Its end tells the process that it has its new parent.
                    os.close(hand_over)
                    os.close(handed_over)
        except (OSError, ValueError) as error:
            try:
                reply.send(("it cannot fork: %s" % error).encode())
            except OSError:
                pass
        reply.close()
        return None

    def _is_the_task(
        self, request: Request, reply: socket.socket, descriptors: list[int], handed_over: int, hand_over: int
    ) -> bool:
        """In the first fork, and true in the second once that was let go."""
        try:
            if os.fork() != 0:
                return False
            os.close(hand_over)
            self._be_handed_over(handed_over)
            self._dress(request, descriptors)
            self._at_exit.begin_anew()
            _forget_the_service(request.threads)
            self._take_a_name(request)
        except _CannotEnter as error:
            reply.send(b"cannot enter %d" % error.args[0])
            return False
        except BaseException as error:
            reply.send(("the process that it forked cannot be made the task's: %r" % error).encode())
            return False
        reply.send(b"here")
        is_let_go = reply.recv(16) == b"go"
        reply.close()
        return is_let_go

    def _be_handed_over(self, handed_over: int) -> None:
        os.read(handed_over, 1)
        os.close(handed_over)
        self._control.close()
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _dress(self, request: Request, descriptors: list[int]) -> None:
        """Gives this process what the request says."""
        if len(descriptors) > 5:
            os.write(descriptors[5], b"0")
        try:
            os.chdir(request.directory)
        except OSError as error:
            raise _CannotEnter(error.errno) from None
        if request.umask is not None:
            os.umask(request.umask)
        if request.cpus:
            os.sched_setaffinity(0, request.cpus)
        if request.open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, request.open_files)
        os.environb.clear()
        os.environb.update(request.environment)
        for number, stream in enumerate(descriptors[2:5]):
            os.dup2(stream, number)
        for descriptor in descriptors:
            os.close(descriptor)

    def _take_a_name(self, request: Request) -> None:
        """By which `ps` and `top` tell it from its service, whose command line it has."""
        if self._libc is not None:
            task = request.environment.get(b"HPCBATCH_TASK_ID", b"")
            self._libc.prctl(_PR_SET_NAME, ctypes.c_char_p(b"task " + task), 0, 0, 0)


def _main() -> None:
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=os.dup(0))
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Nothing is imported from where the service happens to run.
    if not getattr(sys.flags, "safe_path", False):
        sys.path.pop(0)
    own = dict(os.environb)
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update({name: "1" for name in _THREAD_VARIABLES})
    at_exit = _AtExit()
    signs = _Signs(control)
    if os.environ.get("HPCBATCH_SERVICE_HEARS") == "starting":  # pilots of before know no such word
        sys.meta_path.insert(0, signs)
    for name in sys.argv[1:]:
        importlib.import_module(name)
    if signs in sys.meta_path:
        sys.meta_path.remove(signs)
    at_exit.imported()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    # Of libraries too: a fork has none of them, and would wait for ever for what they do.
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit("it cannot fork: what it imported has started threads")
    try:
        libc: ctypes.CDLL | None = ctypes.CDLL(None)
    except OSError:
        libc = None
    gc.collect()
    gc.freeze()
    service = Service(control, libc, own, at_exit)
    control.send(b"ready")
    told = service.serve()
    if told == "stale":
        control.send(b"renewing")
        os.dup2(control.fileno(), 0)
        os.execv(
            sys.executable, getattr(sys, "orig_argv", None) or [sys.executable, "-m", __spec__.name] + sys.argv[1:]
        )
    if isinstance(told, Request):
        del service, control
        _become(told, own)


if __name__ == "__main__":
    _main()
