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
import threading
import time
import types

_LOOK_EVERY_S = 5.0
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
# Libraries that fix their number of threads when they are loaded: one, so that the service stays a single thread.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Request:
    """What a process is to be.  `environment` is in bytes; `umask`, `open_files` None and `cpus` empty: as the service."""

    def __init__(self, data):
        fields = data.split(b"\0")
        if fields[0] != b"hpcbatch-request 1":
            raise ValueError("a request of another version")
        self.directory = fields[1]
        self.umask = int(fields[2], 8) if fields[2] else None
        self.cpus = {int(cpu) for cpu in fields[3].split(b",")} if fields[3] else set()
        self.open_files = tuple(int(limit) for limit in fields[4].split()) if fields[4] else None
        count = int(fields[5])
        self.argv = [os.fsdecode(word) for word in fields[6 : 6 + count]]
        lines = (line.partition(b"=") for line in fields[6 + count : -1])
        self.environment = {name: value for name, _, value in lines}
        threads = self.environment.get(b"OMP_NUM_THREADS", b"1")
        self.threads = int(threads) if threads.isdigit() else 1


def _loaded_files():
    """Files and folders that decide what an import gives, each with what tells that it has changed."""
    paths = set(path for path in sys.path if path)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path:
            paths.add(path)
    facts = {}
    for path in paths:
        try:
            info = os.stat(path)
        except (OSError, ValueError):
            facts[path] = None
        else:
            facts[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return facts


def _receive(control):
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


def _read_all(descriptor):
    pieces = []
    while True:
        piece = os.read(descriptor, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def _set_threads(count):
    """Tells libraries that are loaded already how many threads they may use."""
    names = {}
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
                prefix + "openblas_set_num_threads" + suffix for prefix in ("", "scipy_") for suffix in ("", "64_", "_64_")
            ]
        else:
            candidates = ["MKL_Set_Num_Threads" if kind == "libmkl_rt" else "omp_set_num_threads"]
        for name in candidates:
            setter = getattr(library, name, None)
            if setter is not None:
                setter(ctypes.c_int(count))
                break


def _forget_the_service(threads):
    """What modules remember of the process that imported them, and each process must have for itself."""
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    if hasattr(time, "tzset"):
        time.tzset()
    if threads > 1:
        _set_threads(threads)


def _is_this_python(program, search):
    path = program if os.path.sep in program else shutil.which(program, path=search)
    if not path:
        return False
    if path == sys.executable:
        return True
    # A virtual environment's python is a link to another's: the folder makes the difference.
    return os.path.dirname(path) == os.path.dirname(sys.executable) and os.path.realpath(path) == os.path.realpath(
        sys.executable
    )


def _main_module(file):
    module = types.ModuleType("__main__")
    module.__builtins__ = sys.modules["builtins"]
    if file:
        module.__file__ = file
    sys.modules["__main__"] = module
    return module.__dict__


def _search_here_first(folder):
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _run(argv):
    """Does what `python ARGV[1:]` does.  False where that is not known here."""
    words = argv[1:]
    while words and words[0] in ("-B", "-s"):
        words = words[1:]
    if not words:
        return False
    if words[0] == "-c" and len(words) > 1:
        sys.argv = ["-c"] + words[2:]
        _search_here_first("")
        exec(compile(words[1], "<string>", "exec"), _main_module(None))
    elif words[0] == "-m" and len(words) > 1:
        sys.argv = ["-m"] + words[2:]
        _search_here_first(os.getcwd())
        _main_module(None)
        runpy._run_module_as_main(words[1])
    elif not words[0].startswith("-") and os.path.isfile(words[0]) and not words[0].endswith(".pyc"):
        sys.argv = words
        _search_here_first(os.path.dirname(os.path.realpath(words[0])))
        with open(words[0], "rb") as file:
            code = compile(file.read(), words[0], "exec")
        exec(code, _main_module(words[0]))
    else:
        return False
    return True


def _leave(code):
    """The end of a Python process: threads, exit handlers, streams."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                code = code or 120
    finally:
        os._exit(code)


def _become(request):
    """The process of a task that was let go.  Does not return."""
    code = 0
    try:
        if not _is_this_python(request.argv[0], os.fsdecode(request.environment.get(b"PATH", b""))):
            os.execvp(request.argv[0], request.argv)
        try:
            if not _run(request.argv):
                os.execvp(request.argv[0], request.argv)
        except SystemExit as end:
            if end.code is None:
                code = 0
            elif isinstance(end.code, int):
                code = end.code & 0xFF
            else:
                print(end.code, file=sys.stderr)
                code = 1
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        except BaseException:
            kind, value, trace = sys.exc_info()
            # Without the frames of this file.
            while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
                trace = trace.tb_next
            sys.excepthook(kind, value, trace)
            code = 1
    except OSError as error:
        print("cannot run %r: %s" % (request.argv[0], error.strerror), file=sys.stderr)
        code = 127 if isinstance(error, FileNotFoundError) else 126
    _leave(code)


class Service:
    def __init__(self, control, libc):
        self._control = control
        self._libc = libc
        self._loaded = _loaded_files()
        self._looked = time.monotonic()

    def serve(self):
        """Until the pilot wants it no more."""
        while True:
            select.select([self._control], [], [])
            if self._is_stale():
                return "stale"
            descriptors = _receive(self._control)
            if descriptors is None:
                return "end"
            self._fork(descriptors)
            for descriptor in descriptors:
                os.close(descriptor)

    def _is_stale(self):
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_S:
            return False
        self._looked = now
        return _loaded_files() != self._loaded

    def _fork(self, descriptors):
        """Two forks: what the first leaves behind when it ends becomes the pilot's."""
        reply = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=os.dup(descriptors[1]))
        try:
            request = Request(_read_all(descriptors[0]))
            handed_over, hand_over = os.pipe()
            try:
                first = os.fork()
                if first == 0:
                    try:
                        if os.fork() != 0:
                            os._exit(0)
                        os.close(hand_over)
                        self._be_handed_over(reply, handed_over)
                        self._dress(request, reply, descriptors)
                        self._take_a_name(request)
                        self._wait_to_be_let_go(reply)
                        _forget_the_service(request.threads)
                        _become(request)
                    finally:
                        os._exit(1)
                os.waitpid(first, 0)
            finally:
                # Its end tells the process that it has its new parent.
                os.close(hand_over)
                os.close(handed_over)
        except (OSError, ValueError) as error:
            try:
                reply.send(("it cannot fork: %s" % error).encode())
            except OSError:
                pass
        finally:
            reply.close()

    def _be_handed_over(self, reply, handed_over):
        os.read(handed_over, 1)
        os.close(handed_over)
        self._control.close()
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _dress(self, request, reply, descriptors):
        """Gives this process what the request says."""
        try:
            if len(descriptors) > 5:
                os.write(descriptors[5], b"0")
            try:
                os.chdir(request.directory)
            except OSError as error:
                reply.send(b"cannot enter %d" % error.errno)
                os._exit(0)
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
        except (OSError, ValueError) as error:
            reply.send(("the process that it forked cannot be made the task's: %s" % error).encode())
            os._exit(0)

    def _wait_to_be_let_go(self, reply):
        reply.send(b"here")
        if reply.recv(16) != b"go":
            os._exit(0)
        reply.close()

    def _take_a_name(self, request):
        """By which `ps` and `top` tell it from its service, whose command line it has."""
        if self._libc is not None:
            task = request.environment.get(b"HPCBATCH_TASK_ID", b"")
            self._libc.prctl(_PR_SET_NAME, ctypes.c_char_p(b"task " + task), 0, 0, 0)


def _main():
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=os.dup(0))
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Nothing is imported from where the service happens to run.
    if not getattr(sys.flags, "safe_path", False):
        sys.path.pop(0)
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update({name: "1" for name in _THREAD_VARIABLES})
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    if threading.active_count() > 1:
        sys.exit("it cannot fork: what it imported has started threads")
    try:
        libc = ctypes.CDLL(None)
    except OSError:
        libc = None
    gc.collect()
    gc.freeze()
    service = Service(control, libc)
    control.send(b"ready")
    if service.serve() == "stale":
        control.send(b"renewing")
        os.dup2(control.fileno(), 0)
        os.execv(sys.executable, sys.orig_argv if hasattr(sys, "orig_argv") else [sys.executable, "-m", __spec__.name] + sys.argv[1:])


if __name__ == "__main__":
    _main()
