"""The clients of a drop box: ours, and one that behaves as AMP's does, against a real drop box."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "python" / "hpcbatch_dropbox.py"
RUNNER = ROOT / "build" / os.environ.get("HPCBATCH_PRESET", "release") / "tests" / "python" / "dropbox_runner"
sys.path.insert(0, str(MODULE.parent))

import hpcbatch_dropbox  # noqa: E402

COPY = """#!/bin/sh
echo "level <<level>>"
echo warned >&2
cp <<workspace>>/input/<<input>> <<workspace>>/output/<<result>>
exit <<code>>
"""


class Box:
    def __init__(self, folder):
        self.path = folder / "box"
        self.data = folder / "data"
        self.templates = folder / "templates"
        for directory in (self.path, self.data, self.templates):
            directory.mkdir(mode=0o755)
        (self.templates / "copy.template").write_text(COPY)
        (self.data / "in put.wav").write_bytes(b"sound\0\xff")
        self.process = subprocess.Popen(
            [RUNNER, self.path, folder / "work", self.templates],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def job(self, **changes):
        args = {"level": 6, "code": 0, **changes.pop("args", {})}
        return {
            "script": "copy",
            "args": args,
            "input_map": {"input": str(self.data / "in put.wav")},
            "output_map": {"result": str(self.data / "out put.wav")},
            **changes,
        }

    def close(self):
        self.process.communicate(timeout=20)


@pytest.fixture
def box(tmp_path):
    made = Box(tmp_path)
    yield made
    made.close()


def test_ctrl_c_before_the_job_is_taken_ends_the_client(tmp_path):
    """Nobody watches this folder: the job stays X.job."""
    client = subprocess.Popen(
        [sys.executable, MODULE, tmp_path, "copy", "--period", "0.1"], stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 20
    while not list(tmp_path.glob("*.job")):
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.2)
    client.send_signal(signal.SIGINT)
    _, err = client.communicate(timeout=20)
    assert client.returncode == 130 and "cancelled" in err
    assert list(tmp_path.iterdir()) == []


def like_amp(dropbox, job, period):
    """As AMP's client does it: a file of the final name is made first and filled then, by PyYAML; the result is
    polled for, read and removed."""
    with tempfile.NamedTemporaryFile(dir=dropbox, suffix=".job", delete=False) as file:
        name = file.name
    with open(name, "w") as file:
        yaml.dump(job, file)
    finished = name + ".finished"
    until = time.monotonic() + 60
    while not os.path.exists(finished):
        assert time.monotonic() < until
        time.sleep(period)
    with open(finished) as file:
        result = yaml.safe_load(file)
    os.unlink(finished)
    return result


def test_a_client_like_amps_works_unchanged(box):
    document = like_amp(box.path, box.job(), 0.05)
    result = document["job"]
    assert result["status"] == "ok" and result["rc"] == 0 and result["message"] == "Successful"
    assert result["stdout"] == "level 6\n" and result["stderr"] == "warned\n"
    for moment in (result["start"], result["end"]):
        assert time.strptime(moment, "%Y-%m-%d %H:%M:%S.%f") and len(moment) == 26
    assert set(document["hpc"]) >= {"workspace", "finished_file", "input_map", "output_map"}
    assert document["script"] == "copy" and document["args"]["level"] == 6
    assert (box.data / "out put.wav").read_bytes() == b"sound\0\xff"
    assert os.listdir(box.path) == []


def test_a_client_like_amps_is_told_of_failures(box):
    result = like_amp(box.path, box.job(args={"code": 3}), 0.05)["job"]
    assert (result["status"], result["rc"]) == ("error", 3)
    assert result["message"] == "Remote process failed with RC 3"
    assert not (box.data / "out put.wav").exists()
    result = like_amp(box.path, box.job(script="nosuch"), 0.05)["job"]
    assert result["status"] == "error" and "nosuch" in result["message"]
    result = like_amp(box.path, {"script": "copy"}, 0.05)["job"]
    assert result["status"] == "error" and "input_map" in result["message"]


def test_submit_and_wait(box):
    result = hpcbatch_dropbox.submit_and_wait(str(box.path), box.job(), 0.5)
    assert result["status"] == "ok" and result["rc"] == 0
    assert result["stdout"] == "level 6\n"
    assert os.listdir(box.path) == []


def test_many_at_once(box):
    results = []

    def one(number):
        job = box.job(args={"level": number}, output_map={"result": str(box.data / f"{number}.wav")})
        results.append(hpcbatch_dropbox.submit_and_wait(str(box.path), job, 0.5, timeout=60))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result["stdout"] for result in results) == sorted(f"level {n}\n" for n in range(20))


def test_from_a_shell(box):
    words = [
        sys.executable,
        MODULE,
        box.path,
        "copy",
        "--arg",
        "level=7",
        "--arg",
        "code=0",
        "--period",
        "0.2",
        "--input",
        f"input={box.data}/in put.wav",
        "--output",
        f"result={box.data}/copy",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "level 7\n", "warned\n")
    done = subprocess.run([*words, "--input", "other=/no/such/file"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "/no/such/file" in done.stderr
    done = subprocess.run(
        [sys.executable, MODULE, box.path / "missing", "copy"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "missing" in done.stderr


def test_a_job_without_its_keys_is_not_dropped(tmp_path):
    with pytest.raises(hpcbatch_dropbox.JobError, match="output_map"):
        hpcbatch_dropbox.submit(str(tmp_path), {"script": "a", "input_map": {}})
    assert os.listdir(tmp_path) == []


def test_a_job_that_nobody_takes_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(hpcbatch_dropbox, "TOLD_AFTER", 0.05)
    job = {"script": "copy", "input_map": {}, "output_map": {}}
    with pytest.warns(RuntimeWarning, match="nobody has taken .* does an engine watch the folder"), pytest.raises(
        TimeoutError
    ):
        hpcbatch_dropbox.submit_and_wait(tmp_path, job, period=0.05, timeout=0.5)


def test_waiting_ends_in_time(tmp_path):
    path = hpcbatch_dropbox.submit(str(tmp_path), {"script": "a", "input_map": {}, "output_map": {}})
    with pytest.raises(TimeoutError):
        hpcbatch_dropbox.wait(path, period=0.01, timeout=0.05)
    assert json.loads(pathlib.Path(path).read_text())["script"] == "a"
    hpcbatch_dropbox.cancel(path)
    assert os.listdir(tmp_path) == []


NASTY = [
    "",
    "a",
    "12",
    "1.5",
    "yes",
    "null",
    "~",
    "a: b",
    "a #b",
    "#a",
    "- a",
    "'",
    '"',
    "it's",
    'say "x"',
    "a\nb\n",
    " lead",
    "trail ",
    "é€😀",
    "\x85\u2028",
    "back\\slash",
    "tab\there",
    "{a}",
    "[a]",
    "x" * 500,
    "word " * 200,
    "'" * 7,
    "a:b",
    "?",
    "key:",
    "2024-01-01 10:00:00.000000",
    "\\n",
    "end\\",
    "a  b",
]


def test_reads_what_pyyaml_writes():
    document = {
        "job": {f"k{number}": text for number, text in enumerate(NASTY)},
        "rc": 0,
        "list": [1, "a", {"b": 2, "c": []}],
        "empty": {},
        "none": None,
        "deep": {"a": {"b": [["x"], {"y": {"z": True}}]}},
        "pi": 3.5,
    }
    # Folding of long and of multi-line texts is PyYAML's own; ours are on one line.
    text = yaml.dump(document, width=float("inf"), allow_unicode=False)
    read = hpcbatch_dropbox.read_yaml(text)
    for number, value in enumerate(NASTY):
        if "\n" not in value:
            assert read["job"][f"k{number}"] == value, value
    assert {key: read[key] for key in read if key != "job"} == {key: document[key] for key in document if key != "job"}


@pytest.mark.parametrize("text", NASTY + ["\n".join(NASTY), "".join(map(chr, range(256)))])
def test_reads_what_a_drop_box_writes(box, text):
    (box.templates / "print.template").write_text("cat <<workspace>>/input/<<input>> >&2")
    (box.data / "text").write_bytes(text.encode() + b"\xff\x00")
    path = hpcbatch_dropbox.submit(str(box.path), box.job(script="print", input_map={"input": str(box.data / "text")}))
    finished = path + ".finished"
    until = time.monotonic() + 60
    while not os.path.exists(finished):
        assert time.monotonic() < until
        time.sleep(0.01)
    document = pathlib.Path(finished).read_text(encoding="utf-8")
    assert hpcbatch_dropbox.read_yaml(document) == yaml.safe_load(document)
    stderr = hpcbatch_dropbox.wait(path)["stderr"]
    assert stderr.endswith("\ufffd\u2400")
    if text.isprintable():
        assert stderr.startswith(text)
