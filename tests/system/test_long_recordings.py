"""A long recording cut into pieces that run side by side: the same segments and the same words as in one go."""

import json
import os
import pathlib
import signal
import subprocess

import pytest
from engine_at_home import ROOT, EngineAtHome, wait_until

CONFIGURATION = """
sites:
  - {{name: here, scheduler: local, transport: shared_fs, workspace: {directory}/space, shapes: [{{name: two, cpus: 2, memory: 9G}}]}}
tools:
  ina_speech_segmenter: {{parameters: {{python: {python}}}}}
  ina_speech_segmenter_cut: {{parameters: {{python: {python}}}}}
  speech_to_text: {{parameters: {{python: {python}}}}}
"""


@pytest.fixture(scope="module")
def python():
    done = subprocess.run([ROOT / "tests/media/install"], stdout=subprocess.PIPE, text=True, timeout=1200, check=True)
    return pathlib.Path(done.stdout.strip()) / "bin/python"


@pytest.fixture(scope="module")
def tape(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tape")
    subprocess.run([ROOT / "tests/media/make_clips", folder / "clips", "8"], stdout=subprocess.DEVNULL, check=True)
    tape = folder / "a tape.wav"
    subprocess.run(["sox", *sorted((folder / "clips").glob("*.wav")), tape], check=True)
    return tape


@pytest.fixture
def home(python):
    with EngineAtHome() as engine:
        engine.configure(CONFIGURATION.format(directory=engine.directory, python=python))
        yield engine


def worker_of(home):
    """A worker of the segmenter that this engine's pilot has started."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().split(b"\0")[2:3] == [b"--serve"] and str(
                home.directory
            ).encode() in (process / "environ").read_bytes():
                return int(process.name)
        except OSError:
            continue
    return None


def test_segments_of_pieces_are_those_of_the_whole_and_a_killed_piece_costs_itself_alone(home, tape):
    whole, merged = home.directory / "whole.tsv", home.directory / "merged.tsv"
    home.ok("run", "--tool", "ina_speech_segmenter", "--input", f"input={tape}", "--output", f"segments={whole}")
    begun = home.begin(
        "split",
        "--tool",
        "ina_speech_segmenter",
        "--recording",
        str(tape),
        "--pieces",
        "4",
        "--retries",
        "1",
        "--json",
        "--result",
        str(merged),
    )

    pieces = wait_until(lambda: [task["id"] for task in home.json("list") if " part " in task.get("name", "")], 300)
    wait_until(lambda: any(home.json("show", piece)[0]["state"] == "running" for piece in pieces), 300)
    os.kill(wait_until(lambda: worker_of(home), 300), signal.SIGKILL)
    out, err = begun.communicate(timeout=600)
    assert begun.returncode == 0, err
    assert json.loads(out)["parts"] == 4 and json.loads(out)["failed"] == []
    assert merged.read_text() == whole.read_text() and len(whole.read_text().splitlines()) > 8
    again = [
        task["id"]
        for task in home.json("list", "--all")
        if len(home.json("show", task["id"])[0].get("attempts", [])) > 1
    ]
    assert set(again) <= set(pieces) and len(again) <= 1, again


def test_words_of_pieces_are_those_of_the_whole(home, tape):
    whole, merged = home.directory / "whole.json", home.directory / "merged.json"
    home.ok("run", "--tool", "speech_to_text", "--input", f"input={tape}", "--output", f"transcript={whole}")
    home.ok("split", "--tool", "speech_to_text", "--recording", tape, "--piece-length", "20s", "--result", merged)
    assert merged.read_text() == whole.read_text() and json.loads(whole.read_text())["text"]


@pytest.mark.parametrize(
    "tool, name, texts",
    [
        ("ina_speech_segmenter_merge", "tsv", ["label\tstart\tstop\nmusic\t0.00\t8.00\n"] * 2),
        (
            "speech_to_text_merge",
            "json",
            [
                json.dumps({"text": "a", "phrases": [{"text": "a", "start": 3.0, "stop": 4.0}]}),
                json.dumps({"text": "b", "phrases": [{"text": "b", "start": 2.0, "stop": 2.5}]}),
            ],
        ),
    ],
)
def test_what_is_of_two_recordings_is_not_merged(home, tool, name, texts):
    parts = [home.directory / f"{number}.{name}" for number in range(2)]
    for part, text in zip(parts, texts):
        part.write_text(text)
    merged = home.directory / "merged"
    done = home.verb(
        "run",
        "--tool",
        tool,
        *(word for part in parts for word in ("--input", f"parts={part}")),
        "--output",
        f"merged={merged}",
    )
    assert done.code == 2 and "no pieces of one recording" in done.err and str(parts[1]) in done.err, done
    assert not merged.exists()
