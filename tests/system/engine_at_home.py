"""An engine of one test's own: its home is a short path below /tmp, and at the test's end nothing of it is left."""

import atexit
import collections
import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile

import pytest

from patience import SLOWNESS, patience, wait_until

ROOT = pathlib.Path(__file__).parents[2]
# Where bin/hpcbatch and its plugins lie: the build, or any prefix that it was installed to.
PREFIX = pathlib.Path(os.environ.get("HPCBATCH_TEST_PREFIX", ROOT / "build/release"))
CHECKER = ROOT / "build/release/bin/hpcbatch-check-history"

Result = collections.namedtuple("Result", "code out err")


def is_alive(pid):
    """Whether the process runs; a zombie does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid):
    """0 where there is none, or no such process."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def name_of(pid):
    """Empty where there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:
        return ""


def processes_with(text):
    """The processes, as {pid: command line}, whose command line or environment holds the text; this one is none."""
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            surroundings = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if pid != os.getpid() and text.encode() in line + surroundings and is_alive(pid):
            found[pid] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


@functools.lru_cache(maxsize=None)
def prefix_for_all():
    """PREFIX, or where that lies in a home that is its owner's alone, a copy that every user can run."""
    if all(folder.stat().st_mode & stat.S_IXOTH for folder in (PREFIX, *PREFIX.parents)):
        return PREFIX
    copy = pathlib.Path(tempfile.mkdtemp(prefix="hb-prefix-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    for part in ("bin", "lib", "share"):
        if (PREFIX / part).exists():
            shutil.copytree(PREFIX / part, copy / part, symlinks=True)
    return copy


class EngineAtHome:
    """Runs verbs of hpcbatch with a home of its own. `directory` is there for files of the test, `home` is the
    engine's; `env` is what the verbs get. Use it as a context, or take the fixture `home`."""

    def __init__(self, config=None, prefix=None, user=0, **env):
        """user: whose the home is and who runs the verbs, by number; another than root's has a group of its own number."""
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hb-", dir="/tmp"))
        self.rights = {"user": user, "group": user, "extra_groups": []} if user else {}
        self.home = self.directory / "home"
        self.history = self.directory / "history"
        self.history.mkdir()
        if user:
            for folder in (self.directory, self.history):
                os.chown(folder, user, user)
        self.program = str(pathlib.Path(prefix or (prefix_for_all() if user else PREFIX)) / "bin/hpcbatch")
        assert os.access(self.program, os.X_OK), f"{self.program} is not built"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HPCBATCH_", "XDG_", "SLURM_", "PBS_"))
        }
        self.env = (
            kept
            | {"HOME": str(self.directory), "HPCBATCH_HOME": str(self.home), "HPCBATCH_HISTORY": str(self.history)}
            | env
        )
        if config is not None:
            self.configure(config)

    def configure(self, text):
        """Writes the configuration (YAML); an engine that runs keeps the one that it began with."""
        file = self.directory / "config.yaml"
        file.write_text(text)
        self.env["HPCBATCH_CONFIG"] = str(file)
        return file

    def verb(self, *words, stdin=None, timeout=120, cwd=None, **env):
        """Runs `hpcbatch WORDS...`; stdin is text. Returns its Result."""
        words = [str(word) for word in words]
        done = subprocess.run(
            [self.program, *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=patience(timeout),
            cwd=cwd or self.directory,
            env=self.env | env,
            encoding="utf-8",
            errors="surrogateescape",
            **self.rights,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *words, **options):
        """The same for a verb that must exit 0; returns what it printed."""
        result = self.verb(*words, **options)
        assert (
            result.code == 0
        ), f"hpcbatch {' '.join(map(str, words))} exited {result.code}:\n{result.out}{result.err}\n{self.log_end()}"
        return result.out

    def begin(self, *words, **env):
        """Starts a verb and returns its Popen, with pipes; the test ends it, else the end of this context does."""
        return subprocess.Popen(
            [self.program, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.directory,
            env=self.env | env,
            text=True,
            **self.rights,
        )

    def submit(self, *words, **options):
        """The id that `submit` prints."""
        ids = self.ok("submit", *words, **options).split()
        assert len(ids) == 1, ids
        return ids[0]

    def wait(self, *ids, timeout=120):
        """Waits for the end of the tasks; returns the exit code: 0 all succeeded, 1 not."""
        result = self.verb("wait", *ids, timeout=timeout)
        assert result.code in (0, 1), result.err + self.log_end()
        return result.code

    def json(self, *words, **options):
        """What a verb prints with --json, as a list of objects."""
        return [json.loads(line) for line in self.ok(*words, "--json", **options).splitlines()]

    def show(self, task):
        """One task or array in full."""
        return self.json("show", task)[0]

    def status(self):
        return self.json("engine", "status")[0]

    def engine_pid(self):
        return self.status()["pid"]

    def pilot_pids(self):
        """The processes of this home's pilots (a pilot and its keeper)."""
        named = {
            pid
            for pid, line in processes_with(str(self.directory)).items()
            if line.split() and "/bin/hpcbatch-pilot-" in line.split()[0]
        }
        # What a pilot starts bears its name until it becomes the task, or is gone by now; a pilot is the child of its keeper.
        parents = {pid: parent_of(pid) for pid in named}
        return {pid for pid, parent in parents.items() if parent != 0 and parent_of(parent) not in named}

    def service_pids(self, name):
        """The processes of services of that name: not those that they have forked, which are in their service's group until
        they have names of their own."""
        found = set()
        for pid in processes_with(f"HPCBATCH_SERVICE={name}"):
            process = pathlib.Path(f"/proc/{pid}")
            try:
                # In this order: a fork that leads a group has its name, and one that is executed has another command line.
                leads = os.getpgid(pid) == pid
                named = (process / "comm").read_text().startswith("task ")
                ours = os.fsencode(self.home) in (process / "environ").read_bytes()
                if leads and not named and ours and b"fork_service" in (process / "cmdline").read_bytes():
                    found.add(pid)
            except OSError:
                pass  # it has ended
        return found

    def kill_engine(self):
        """Kills the engine with KILL and returns when it is gone."""
        pid = self.engine_pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), 10, "the end of the killed engine")

    def log_end(self):
        """The end of the engine's log, for messages."""
        log = self.home / "engine.log"
        return "engine.log:\n" + "".join(log.read_text(errors="replace").splitlines(True)[-30:]) if log.exists() else ""

    def move_to_login(self):
        """A home as a login has it: the socket lies in $XDG_RUNTIME_DIR."""
        self.home = self.directory / "state/hpcbatch"
        self.env.pop("HPCBATCH_HOME")
        self.env["XDG_STATE_HOME"] = str(self.directory / "state")
        self.env["XDG_RUNTIME_DIR"] = str(self.directory / "run")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Stops engine and pilots; what does not go within a minute is killed, and fails the test."""
        if kind is not None and (self.home / "socket").exists():
            self.tell_how_it_stands()
        if (self.home / "socket").exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.verb("engine", "stop", "--now", timeout=60 * SLOWNESS)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not processes_with(str(self.directory)), every=0.05)
        for pid in (left := processes_with(str(self.directory))):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        log = self.log_end()
        broken = self.broken_promises()
        names = [file.stem for file in self.directory.glob("**/allocations/*.sh")]
        scratch = [
            path.name
            for path in pathlib.Path("/tmp").glob("hpcbatch-pilot-*")
            if any(name in path.name for name in names)
        ]
        shutil.rmtree(self.directory, ignore_errors=True)
        if kind is None:
            assert not left, f"these were left after `engine stop --now`: {left}\n{log}"
            assert not scratch, f"pilots left their scratch: {scratch}\n{log}"
            assert not broken, f"{broken}\n{log}"

    def tell_how_it_stands(self):
        """For whoever reads of the test's failure."""
        for verb in ("sites", "allocations", "pilots"):
            try:
                print(verb, *self.verb(verb, timeout=20), sep="\n")
            except subprocess.TimeoutExpired:
                print(verb, "did not answer")
        for log in self.home.glob("engine.log"):
            print(log.read_text(errors="replace")[-20000:])

    def broken_promises(self):
        """What the checker finds in the history that engine and pilots wrote; empty: nothing."""
        if not list(self.history.glob("*.history")):
            return ""
        done = subprocess.run([CHECKER, self.history], capture_output=True, text=True, timeout=120)
        return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture
def home():
    """An engine's home without a configuration: one local site, as a laptop has it."""
    with EngineAtHome() as engine:
        yield engine
