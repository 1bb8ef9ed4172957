"""Names of files may be older than UTF-8: they go through as the bytes that they are."""

import os
import pathlib
import sys

import pytest
from engine_at_home import EngineAtHome

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import hpcbatch  # noqa: E402

NAMES = [b"caf\xe9 1", b"caf\xe8 1", b"\xff\xfe2", "gr\u00fcn".encode(), b"\xed\xa0\x80", b"\xef\xbf\xbd", b"a\nb"]


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


@pytest.fixture
def folder(tmp_path):
    there = tmp_path / os.fsdecode(b"d\xe9r")
    there.mkdir()
    for name in NAMES:
        (there / os.fsdecode(name)).write_bytes(name)
    return there


def files(folder):
    return "".join(f"{path}\0" for path in sorted(folder.iterdir(), key=os.fsencode))


def test_items_arguments_folders_and_outputs(shared, folder):
    done = shared.verb(
        "run",
        "--null",
        "--each",
        "-",
        "--stdout",
        "{}.out",
        "--",
        "sh",
        "-c",
        'cat "$1"; printf "|%s" "$HPCBATCH_ITEM"',
        "sh",
        "{}",
        stdin=files(folder),
        cwd=folder,
    )
    assert done.code == 0, done.err
    for name in NAMES:
        assert (folder / os.fsdecode(name + b".out")).read_bytes() == name + b"|" + os.fsencode(folder) + b"/" + name
    facts = shared.show(f"{shared.json('list', '-n', '1')[0]['id']}.1")
    assert facts["directory"] == str(folder.parent / "d\ufffdr")


def test_variables_are_handed_on(shared):
    done = shared.verb(
        "run", "--env", "B=" + os.fsdecode(b"\xfe"), "--", "sh", "-c", 'printf "%s%s" "$A" "$B"', A=os.fsdecode(b"\xe9")
    )
    assert (done.code, os.fsencode(done.out), done.err) == (0, b"\xe9\xfe", "")


def test_two_that_look_the_same_are_told_apart(shared, folder):
    words = ["--columns", "tab", "--each", "-", "--", "grep", "-q", os.fsdecode(b"\xe9"), "{2}"]
    rows = "".join(f"x\t{folder / os.fsdecode(name)}\n" for name in (b"caf\xe9 1", b"caf\xe8 1"))
    assert shared.verb("run", *words, stdin=rows).code == 1
    again = shared.verb("run", "--skip-done", "last", *words, stdin=rows)
    assert again.code == 1 and "1 of 2 items ended well" in again.err and "another command" not in again.err, again
    assert [task["index"] for task in shared.json("list", "last")] == [2]


def test_what_failed_is_told_in_good_json(shared, folder):
    submitted = shared.submit("--null", "--each", "-", "--", os.fsdecode(b"no\xe9"), "{}", stdin=files(folder))
    assert shared.wait(submitted) == 1
    shared.kill_engine()
    for words in (
        ["list"],
        ["list", submitted],
        ["show", f"{submitted}.1"],
        ["explain", submitted],
        ["explain", f"{submitted}.1"],
        ["report"],
        ["log", submitted],
    ):
        shared.ok(*words)
        shared.json(*words)
    assert "cannot run 'no\ufffd'" in shared.ok("explain", f"{submitted}.1")


def test_python_hands_on_and_gets_the_names_that_it_has(shared, folder, monkeypatch):
    for name, value in shared.env.items():
        monkeypatch.setenv(name, value)
    client = hpcbatch.Client(shared.program)
    names = sorted(os.listdir(folder), key=os.fsencode)
    submitted = client.submit(["cat", "{}"], items=names, cwd=str(folder))
    client.wait(submitted)
    tasks = list(client.tasks(submitted))
    assert [(task.item, task.state) for task in tasks] == [(name, "done") for name in names]
    assert client.log(tasks[1].id) == os.fsencode(names[1]).decode(errors="replace")
    with pytest.raises(hpcbatch.Refused, match="half of a character"):
        client.submit(["cat", "\ud812"])


def test_words_for_people_are_utf8(shared):
    for option in ("--name", "--kind", "--key"):
        refused = shared.verb("submit", option, os.fsdecode(b"n\xe9"), "--", "true")
        assert (
            refused.code == 2 and refused.err.count("\n") == 1 and "'n\\xe9' is not valid UTF-8" in refused.err
        ), refused


def test_an_input_that_is_missing_is_told_with_any_name(shared, folder):
    gone = folder / os.fsdecode(b"gone\xe9")
    for words in (["--stdin", gone], ["--input", f"x={gone}"]):
        gone.write_text("")
        held = shared.submit("--hold", *words, "--", "cat")
        gone.unlink()
        shared.ok("release", held)
        assert shared.wait(held, timeout=60) == 1
        assert "gone\ufffd" in shared.show(held)["message"], shared.show(held)
