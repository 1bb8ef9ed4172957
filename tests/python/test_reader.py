"""What tells the engine that this process still waits: against a socket that only listens."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path.insert(0, str(PYTHON))

from hpcbatch.reader import Reader  # noqa: E402

pytestmark = pytest.mark.pure


def test_it_waits_for_as_long_as_it_takes(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        listening.settimeout(30)
        reader = Reader(str(tmp_path / "socket"), print)
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(30)
            asked = connection.recv(4096).split(b"\r\n")[0]
            assert asked == f"GET /v1/readers?reader={reader.name} HTTP/1.1".encode(), "with no limit of time"
            assert reader._connection.sock.gettimeout() is None
            reader.end()
            assert connection.recv(4096) == b""


def test_an_engine_that_has_no_room_is_asked_again_and_the_user_told_once(tmp_path):
    said = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        listening.settimeout(30)
        reader = Reader(str(tmp_path / "socket"), said.append)
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(30)
                connection.recv(4096)
                body = b'{"error": "the engine serves 3 clients just now"}'
                connection.sendall(b"HTTP/1.1 503 Any\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        connection, _ = listening.accept()
        with connection:
            reader.end()
    (line,) = said
    assert "the engine serves 3 clients just now" in line and "60 s" in line, line


def test_its_connection_ends_with_its_process_and_not_with_what_that_has_forked(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(30)
        program = """
            import os, sys, time
            from hpcbatch.reader import Reader
            reader = Reader(sys.argv[1], print)
            print(reader.name, flush=True)
            sys.stdin.readline()  # the request is there
            forked = os.fork()
            if forked == 0:
                print(os.getpid(), flush=True)
            time.sleep(600)
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), path],
            env={**os.environ, "PYTHONPATH": str(PYTHON)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(30)
            asked = connection.recv(4096)
            assert asked.startswith(b"GET /v1/readers?reader=" + process.stdout.readline().strip().encode() + b" ")
            process.stdin.write("\n")
            process.stdin.flush()
            forked = int(process.stdout.readline())
            try:
                process.kill()
                assert connection.recv(4096) == b"", "though the child lives"
                os.kill(forked, 0)
            finally:
                os.kill(forked, signal.SIGKILL)
                process.wait()
                process.stdin.close()
                process.stdout.close()
