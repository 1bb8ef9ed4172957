"""The client of the engine's socket beside an engine that says no before it has heard all."""

import json
import pathlib
import socket
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from hpcbatch import client  # noqa: E402

pytestmark = pytest.mark.pure


def test_the_engine_is_looked_for_where_it_may_listen(tmp_path):
    places = {"XDG_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": str(tmp_path / "state")}
    in_run, in_home = tmp_path / "run/hpcbatch/socket", tmp_path / "state/hpcbatch/socket"
    assert client.socket_paths(places) == [str(in_run), str(in_home)]
    assert client.socket_paths({"XDG_STATE_HOME": str(tmp_path / "state")}) == [str(in_home)]
    assert client.socket_paths(places | {"HPCBATCH_HOME": "/mine"}) == ["/mine/socket"]


@pytest.mark.parametrize("left", ["nothing", "a socket that nobody listens at"])
def test_the_engine_is_found_where_it_listens(tmp_path, monkeypatch, left):
    monkeypatch.delenv("HPCBATCH_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    in_run, in_home = tmp_path / "run/hpcbatch/socket", tmp_path / "state/hpcbatch/socket"
    for path in (in_home, in_run):
        path.parent.mkdir(parents=True)
    if left != "nothing":
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(in_run))  # as an engine that was killed leaves it
    with pytest.raises(client.EngineAway, match=f"cannot reach the engine at {in_run}"):
        client.Client().get("/v1/engine")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(in_home))
        door.listen()
        thread = threading.Thread(target=answering, args=(door, [(200, {"version": "1"})]), daemon=True)
        thread.start()
        assert client.Client().get("/v1/engine") == {"version": "1"}
        thread.join()


def test_a_number_that_json_cannot_say_is_refused_with_a_sentence():
    for number in (float("nan"), float("inf")):
        with pytest.raises(client.Refused, match="nan or infinite"):
            client._encoded({"tasks": [{"command": ["true"], "cpus": number}]})


def test_who_is_rejected_by_the_listener_reads_why(tmp_path):
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(tmp_path / "socket"))
    door.listen()
    closed = threading.Event()

    def turn_away():
        visitor, _ = door.accept()
        body = json.dumps({"error": "the engine serves 3 clients just now"})
        visitor.sendall(
            f"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
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


def answering(door, answers, heard=None):
    """An engine that gives one answer a connection, in turn, and closes. `heard`: gets the requests."""
    for status, value in answers:
        visitor, _ = door.accept()
        request = b""
        while b"\r\n\r\n" not in request or (b"Content-Length" in request and not request.endswith(b"}")):
            request += visitor.recv(65536)
        if heard is not None:
            heard.append(request)
        body = json.dumps(value)
        visitor.sendall(
            f"HTTP/1.1 {status} Any\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        visitor.close()


@pytest.mark.parametrize("engine, is_older", [("0.9.4", True), ("1.2.0", False), ("1.3.1", False)])
def test_an_older_engine_that_refuses_is_named(tmp_path, monkeypatch, engine, is_older):
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(tmp_path / "socket"))
    door.listen()
    refusal = (400, {"error": "unknown key 'colour'"})
    thread = threading.Thread(target=answering, args=(door, [refusal, (200, {"version": engine}), refusal]))
    thread.start()
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.2.7")
    asking = client.Client(str(tmp_path / "socket"))
    for _ in range(2):  # it is asked for its version once
        with pytest.raises(client.Refused) as refused:
            asking.post("/v1/tasks", {})
        assert str(refused.value).startswith("unknown key 'colour'")
        assert (
            f"hpcbatch {engine}" in str(refused.value) and "`hpcbatch engine stop`" in str(refused.value)
        ) == is_older
    thread.join()
    door.close()


def test_an_older_engine_that_knows_no_within_is_given_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("HPCBATCH_TASK_ID", "7")
    monkeypatch.setenv("HPCBATCH_PILOT", "hb1.0")
    refused = (400, {"error": "'within' is no key of a submit; docs/api.md lists them"})
    heard = []
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "socket"))
        door.listen()
        answers = [refused, (200, {"ids": ["8"]})]
        thread = threading.Thread(target=answering, args=(door, answers, heard), daemon=True)
        thread.start()
        assert client.Client(str(tmp_path / "socket")).submit("me", [{"command": ["true"]}], "key") == ["8"]
        thread.join()
    assert [b'"within"' in request for request in heard] == [True, False]


def test_an_older_engine_that_knows_no_reader_is_to_be_reloaded(tmp_path):
    refused = (400, {"error": "'reader' is no key of a submit; docs/api.md lists them"})
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "socket"))
        door.listen()
        thread = threading.Thread(target=answering, args=(door, [refused]), daemon=True)
        thread.start()
        body = client.submit_of("me", [], "key", read_by=("one", 60.0))
        with pytest.raises(client.Refused, match="`hpcbatch engine restart`"):
            client.Client(str(tmp_path / "socket")).post("/v1/tasks", body)
        thread.join()
