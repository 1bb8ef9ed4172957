"""The same work done by others, in turns with ours, so that the ratio holds on a noisy machine."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time

from common.private_engine import PREFIX


def spawn_loop(count, at_a_time, program="true"):
    """Processes per second of a bare posix_spawn loop."""
    done = subprocess.run(
        [PREFIX / "bench/helpers/spawn_loop", str(count), str(at_a_time), program],
        capture_output=True,
        text=True,
        check=True,
    )
    return count / float(done.stdout)


def xargs(count, at_a_time, program="true"):
    return _fed(["xargs", f"-P{at_a_time}", "-n1", program], count)


def gnu_parallel(count, at_a_time, program="true"):
    return _fed(["parallel", f"-j{at_a_time}", "-n1", program], count)


def has_gnu_parallel():
    return shutil.which("parallel") is not None


def spawn_loop_to_files(count, at_a_time, directory, words):
    """Processes per second of the same loop with a file for each stream of each process."""
    with tempfile.TemporaryDirectory(dir=directory) as files:
        done = subprocess.run(
            [PREFIX / "bench/helpers/spawn_loop", "--files", files, str(count), str(at_a_time), *words],
            capture_output=True,
            text=True,
            check=True,
        )
    return count / float(done.stdout)


def rows_per_second(directory, rows=200_000):
    """Small rows that SQLite takes in one commit, on the disk that the engine uses."""
    with _database(directory) as database:
        begin = time.perf_counter()
        database.execute("BEGIN")
        database.executemany("INSERT INTO t VALUES(?,?,?)", ((number, 1, 0) for number in range(rows)))
        database.execute("COMMIT")
        return rows / (time.perf_counter() - begin)


@contextlib.contextmanager
def _database(directory):
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        database = sqlite3.connect(f"{folder}/beside.db", isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE t(a INTEGER, b INTEGER, c INTEGER)")
        yield database
        database.close()


@contextlib.contextmanager
def single_commits(directory):
    """A function that makes one small commit on the disk that the engine uses, and returns the seconds that it took."""
    with _database(directory) as database:

        def commit():
            begin = time.perf_counter()
            database.execute("INSERT INTO t VALUES(1, 2, 3)")
            return time.perf_counter() - begin

        yield commit


def _fed(words, count):
    begin = time.perf_counter()
    subprocess.run(
        words,
        input="\n".join(map(str, range(count))),
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return count / (time.perf_counter() - begin)


class HyperQueue:
    """A private server with one worker, where an `hq` program is named by $HQ or on the PATH."""

    @staticmethod
    def program():
        return os.environ.get("HQ") or shutil.which("hq")

    def __init__(self, directory, cpus):
        self._words = [self.program(), "--server-dir", str(directory / "hq")]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._server = subprocess.Popen(
            [*self._words, "server", "start", "--host", "127.0.0.1", "--journal", str(directory / "hq.journal")],
            **quiet,
        )
        self._run("server", "wait", "--timeout", "30s")
        self._worker = subprocess.Popen(
            [*self._words, "worker", "start", "--detect-resources=none", f"--cpus={cpus}", "--hostname", "127.0.0.1"],
            **quiet,
        )
        self._run("worker", "wait", "1")

    def _run(self, *words):
        subprocess.run([*self._words, *words], check=True, stdout=subprocess.DEVNULL)

    def array(self, count, program="true"):
        """Tasks per second of an array."""
        begin = time.perf_counter()
        self._run("submit", "--array", f"1-{count}", "--stdout", "none", "--stderr", "none", "--wait", "--", program)
        return count / (time.perf_counter() - begin)

    def close(self):
        self._run("server", "stop")
        self._worker.wait(30)
        self._server.wait(30)
