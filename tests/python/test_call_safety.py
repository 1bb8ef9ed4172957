"""What others may put between an executor and its workers: nothing of it is unpickled, and it costs one future at most."""

import base64
import io
import os
import pathlib
import pickle
import random
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from hpcbatch import call_seal, client  # noqa: E402
from hpcbatch.call_folder import CallFolder  # noqa: E402
from hpcbatch.call_pace import Pace  # noqa: E402
from hpcbatch.calls import Call, CallFailed, Calls, QueuedFuture  # noqa: E402
from hpcbatch.regular_file import open_regular, read_regular  # noqa: E402

pytestmark = pytest.mark.pure

KEY = call_seal.new_key()
WORKER = ROOT / "python/hpcbatch/call_worker.py"
NOBODY = 65534


class Trap:
    """Unpickled it leaves a mark: what a stranger's pickle would do is done."""

    mark: pathlib.Path

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def trap(tmp_path):
    Trap.mark = tmp_path / "sprung"
    yield Trap()
    assert not Trap.mark.exists()


@pytest.fixture
def folder(tmp_path):
    folder = CallFolder(str(tmp_path / "calls"))
    yield folder
    folder.remove()


def opened(data, key=KEY, what="results 7"):
    return call_seal.opened(key, what, io.BytesIO(data))


def test_only_who_knows_the_key_can_have_written_it():
    data = call_seal.sealed(KEY, "results 7", b"payload")
    assert opened(data) == b"payload"
    assert opened(call_seal.sealed(KEY, "results 7", b"")) == b""
    with pytest.raises(call_seal.Broken, match="written by somebody else, or for other calls"):
        opened(data, key=call_seal.new_key())
    for other in ("results 8", "calls 7"):
        with pytest.raises(call_seal.Broken, match="for other calls"):
            opened(data, what=other)
    for at in range(len(data)):
        with pytest.raises(call_seal.Broken):
            opened(data[:at])
        with pytest.raises(call_seal.Broken):
            opened(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(call_seal.Broken, match="more than was written"):
        opened(data + b"x")


def test_of_what_others_made_large_only_the_head_is_read(tmp_path):
    path = tmp_path / "results"
    forged = bytearray(call_seal.sealed(KEY, "results 7", b"payload"))
    forged[8:16] = (1 << 40).to_bytes(8, "big")
    path.write_bytes(forged)
    os.truncate(path, 1 << 40)
    with open_regular(path) as file, pytest.raises(call_seal.Broken):
        call_seal.opened(KEY, "results 7", file)


def put_fifo(path):
    os.mkfifo(path)


def put_huge(path):
    path.touch()
    os.truncate(path, 1 << 40)


def put_link(path):
    path.symlink_to("/dev/zero")


def put_socket(path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))


PUT = [put_fifo, put_huge, put_link, put_socket, pathlib.Path.mkdir]


@pytest.mark.parametrize("put", PUT, ids=lambda put: put.__name__)
def test_a_regular_file_alone_is_read(tmp_path, put):
    put(tmp_path / "odd")
    with pytest.raises(OSError, match="no regular file|not followed|more than"):
        read_regular(tmp_path / "odd", 1000)
    if put is put_link:
        with pytest.raises(OSError, match="no regular file"):
            read_regular(tmp_path / "odd", 1000, follow=True)


def reader(folder):
    """Calls without an engine: only what reads results."""
    calls = object.__new__(Calls)
    calls._folder, calls._key, calls._pace = folder, KEY, Pace()
    calls._changed, calls._open = threading.Condition(), set()
    return calls


def futures_of(calls, number, count):
    group = [Call(QueuedFuture(calls), b"", "f", 1) for _ in range(count)]
    calls._tell(group, calls._read(number, count), number, "12")
    assert all(call.future.done() for call in group)
    return [call.future for call in group]


GOOD = (0.1, pickle.dumps((True, 42, None)), {})


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        (0.1,),
        GOOD[:2],
        (*GOOD[:2], 3),
        (*GOOD[:2], {"stdout": 3}),
        (0.1, b"", {}),
        ("long", *GOOD[1:]),
        (float("nan"), *GOOD[1:]),
        (float("inf"), *GOOD[1:]),
        (-1.0, *GOOD[1:]),
        (0.1, "text", {}),
        (0.1, b"no pickle", {}),
        (0.1, pickle.dumps(7), {}),
        (0.1, pickle.dumps((True, 42)), {}),
        (0.1, pickle.dumps((False, "no exception", "text")), {}),
        (0.1, pickle.dumps((False, ValueError, "text")), {}),
    ],
    ids=str,
)
def test_a_result_of_a_wrong_shape_fails_its_future_alone(folder, odd):
    folder.write("1.results", call_seal.sealed(KEY, "results 1", pickle.dumps([GOOD, odd, GOOD])))
    first, second, third = futures_of(reader(folder), "1", 3)
    assert first.result() == third.result() == 42
    assert isinstance(second.exception(), CallFailed) and "cannot be read from" in str(second.exception())


@pytest.mark.parametrize("all_of_it", [None, 7, {}, "text", [GOOD], [GOOD] * 3], ids=str)
def test_results_of_a_wrong_shape_fail_their_futures_alone(folder, all_of_it):
    folder.write("1.results", call_seal.sealed(KEY, "results 1", pickle.dumps(all_of_it)))
    assert all(isinstance(one.exception(), CallFailed) for one in futures_of(reader(folder), "1", 2))


def test_what_somebody_else_wrote_is_not_unpickled(folder, trap):
    calls = reader(folder)
    forged = pickle.dumps([(0.1, pickle.dumps((True, trap, None)), {})])
    folder.write("1.results", forged)
    folder.write("2.results", call_seal.sealed(call_seal.new_key(), "results 2", pickle.dumps(trap)))
    for number in ("1", "2"):
        (failed,) = futures_of(calls, number, 1)
        assert "somebody else" in str(failed.exception()) or "cut off" in str(failed.exception())


def test_another_result_of_ours_does_not_take_its_place(folder):
    folder.write("1.results", call_seal.sealed(KEY, "results 2", pickle.dumps([GOOD])))
    (failed,) = futures_of(reader(folder), "1", 1)
    assert "for other calls" in str(failed.exception())


TRIES = 20_000 if os.environ.get("HPCBATCH_LONG") else 500


def changed(draw, data):
    """The bytes with one to four changes; they may come to nothing."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        piece = draw.choice(
            [b"", draw.randbytes(draw.randint(1, 9)), b"\0" * 8, b"\xff" * 8, data[: draw.randint(0, 80)]]
        )
        data = data[:at] + piece + data[at + draw.choice([0, len(piece), 1, 1000]) :]
    return data


def any_value(draw, depth=0):
    """Of those that a program which is called may leave in place of a result."""
    makers = [
        lambda: draw.choice(
            [None, True, False, -1, 2**70, 0.1, float("nan"), "", "text", b"", pickle.dumps(7), GOOD]
        ),
        lambda: [any_value(draw, depth + 1) for _ in range(draw.randint(0, 4))],
        lambda: tuple(any_value(draw, depth + 1) for _ in range(draw.randint(0, 4))),
        lambda: pickle.dumps(any_value(draw, depth + 1)),
        lambda: (0.1, pickle.dumps((draw.random() < 0.5, any_value(draw, depth + 1), any_value(draw, depth + 1))), {}),
        lambda: {draw.randint(0, 3): any_value(draw, depth + 1)},
        lambda: draw.choice([KeyError("x"), SystemExit(3), KeyboardInterrupt(), ValueError, StopIteration(7)]),
    ]
    return makers[0 if depth > 3 else draw.randrange(len(makers))]()


def test_results_that_were_changed_anywhere_fail_their_futures(folder, trap):
    for seed in range(TRIES):
        draw = random.Random(seed)
        whole = call_seal.sealed(KEY, f"results {seed}", pickle.dumps([GOOD, GOOD]))
        forged = whole + pickle.dumps([(0.1, pickle.dumps((True, trap, None)), {})])
        data = changed(draw, draw.choice([whole, forged]))
        folder.write(f"{seed}.results", data)
        for future in futures_of(reader(folder), str(seed), 2):
            if data == whole:
                assert future.result() == 42, seed
            else:
                assert isinstance(future.exception(), CallFailed), seed


def test_whatever_a_program_leaves_as_results_ends_each_future(folder):
    for seed in range(TRIES):
        draw = random.Random(seed)
        left = any_value(draw)
        if draw.random() < 0.7:
            left = [any_value(draw), GOOD]
        folder.write(f"{seed}.results", call_seal.sealed(KEY, f"results {seed}", pickle.dumps(left)))
        _, last = futures_of(reader(folder), str(seed), 2)
        if isinstance(left, list) and len(left) == 2 and left[1] is GOOD:
            assert last.result() == 42, seed


@pytest.mark.parametrize("put", PUT, ids=lambda put: put.__name__)
def test_what_is_no_file_holds_nobody_up(folder, put):
    put(pathlib.Path(folder.path_of("1.results")))
    (failed,) = futures_of(reader(folder), "1", 1)
    assert isinstance(failed.exception(), CallFailed)


def test_a_folder_that_is_put_in_place_of_ours_is_not_read(folder, trap):
    path = pathlib.Path(folder.path)
    path.rename(path.with_name("aside"))
    path.mkdir()
    (path / "1.results").write_bytes(pickle.dumps([(0.1, pickle.dumps((True, trap, None)), {})]))
    (failed,) = futures_of(reader(folder), "1", 1)
    assert isinstance(failed.exception().__cause__, FileNotFoundError)
    path.with_name("aside").rename(path.with_name("calls-aside"))


def test_a_folder_where_others_can_put_files_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for below in (shared, shared / "new", shared / "new/newer"):
        with pytest.raises(client.Error, match=rf"{shared} \(of user .*, mode 0777\): everybody .* chmod o-w"):
            CallFolder(str(below))
    assert not list(shared.iterdir())
    shared.chmod(0o755)
    made = CallFolder(str(shared / "new"))
    assert os.stat(made.path).st_mode & 0o777 == 0o700
    made.remove()


def preparation():
    said = {"path": sys.path, "directory": os.getcwd(), "main": None, "by_value": False}
    said |= {"argv": [""], "umask": None, "initializer": None, "authkey": b"key"}
    return base64.b64encode(pickle.dumps(said)).decode()


def work(tmp_path, calls, key=KEY):
    env = os.environ | {call_seal.PREPARATION: preparation(), call_seal.KEY: key, call_seal.CALLS: calls}
    return subprocess.run(
        [sys.executable, WORKER, "results"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_worker_makes_calls_and_seals_what_they_give(tmp_path):
    pickled = pickle.dumps([pickle.dumps((eval, ("open('/proc/self/cmdline').read()",), {}))])
    sealed = base64.b64encode(call_seal.sealed(KEY, "calls 7", pickled)).decode()
    done = work(tmp_path, f"7 {sealed}")
    assert done.returncode == 0, done.stderr
    with open_regular(tmp_path / "results") as file:
        ((_, answer, _),) = pickle.loads(call_seal.opened(KEY, "results 7", file))
    is_good, seen, _ = pickle.loads(answer)
    assert is_good and seen.split("\0")[1:-1] == [str(WORKER), "results"], "what is called stands in no argument"


def test_a_worker_makes_no_calls_that_somebody_else_wrote(tmp_path, trap):
    pickled = pickle.dumps(trap)
    for calls, beside in (
        (f"7 {base64.b64encode(pickled).decode()}", None),
        (f"7 {base64.b64encode(call_seal.sealed(call_seal.new_key(), 'calls 7', pickled)).decode()}", None),
        (f"7 {base64.b64encode(call_seal.sealed(KEY, 'results 7', pickled)).decode()}", None),
        ("7", call_seal.sealed(KEY, "calls 8", pickled)),
        ("7", pickled),
    ):
        if beside is not None:
            (tmp_path / "calls").write_bytes(beside)
        done = work(tmp_path, calls)
        assert done.returncode == 1 and "Broken" in done.stderr, done.stderr
    (tmp_path / "calls").unlink()
    os.mkfifo(tmp_path / "calls")
    assert "no regular file" in work(tmp_path, "7").stderr


def test_what_a_call_puts_in_place_of_its_results_is_replaced(tmp_path):
    pickled = pickle.dumps([pickle.dumps((os.mkfifo, (str(tmp_path / "results"),), {}))])
    sealed = base64.b64encode(call_seal.sealed(KEY, "calls 7", pickled)).decode()
    assert work(tmp_path, f"7 {sealed}").returncode == 0
    with open_regular(tmp_path / "results") as file:
        assert len(pickle.loads(call_seal.opened(KEY, "results 7", file))) == 1


@pytest.fixture
def open_folder():
    """Others reach it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)


def test_the_socket_of_another_user_is_not_used(open_folder):
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    path = open_folder / "socket"
    text = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen()
print("ready", flush=True)
visitor, _ = door.accept()
print(len(visitor.recv(1000)), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", text, path, str(NOBODY)], stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout.readline() == "ready\n"
        with pytest.raises(client.Error, match=f"{path}: another user's process .uid {NOBODY}. listens there"):
            client.Client(str(path)).post("/v1/tasks", {"secret": "secret"})
        assert engine.stdout.readline() == "0\n", "nothing was said to it"
