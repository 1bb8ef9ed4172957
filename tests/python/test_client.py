"""The client of the engine's socket beside an engine that says no before it has heard all."""

import json
import pathlib
import socket
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from hpcbatch import client  # noqa: E402


def test_who_is_rejected_by_the_listener_reads_why(tmp_path):
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(tmp_path / "socket"))
    door.listen()
    closed = threading.Event()

    def turn_away():
        visitor, _ = door.accept()
        body = json.dumps({"error": "the engine serves 3 clients just now"})
        visitor.sendall(f"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        visitor.close()
        closed.set()

    class LateConnection(client.UnixConnection):
        def connect(self):
            super().connect()
            closed.wait()

    engine = threading.Thread(target=turn_away)
    engine.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "UnixConnection", LateConnection)
        with pytest.raises(client.Refused, match="serves 3 clients") as refused:
            client.Client(str(tmp_path / "socket")).get("/v1/engine")
    engine.join()
    door.close()
    assert refused.value.status == 503
