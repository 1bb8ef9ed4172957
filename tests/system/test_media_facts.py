"""What recordings are decides what their tasks ask for: the plugin `media`, through the whole system."""

import json
import subprocess

import pytest

PLAY = """tool: play
plugin: media
inputs:
  sound: {}
  more: {type: files, optional: true}
outputs:
  copy: {file: copy}
resources:
  cpus: sound.channels
  memory: 100M + sound.sample_rate * 1K
  time: 1m + sound.seconds * 2s + more.seconds * 1s
command: [cp, "{sound}", "{copy}"]
"""


def make(folder, name, *words):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *words, str(folder / name)], check=True)
    return folder / name


@pytest.fixture
def with_tool(home):
    folder = home.directory / "tools"
    folder.mkdir()
    (folder / "play.yaml").write_text(PLAY)
    home.configure(f"tool_path: [{folder}]\n")
    return home


def test_a_task_asks_for_what_its_recording_needs(with_tool):
    folder = with_tool.directory
    sound = make(folder, "-odd name 1.wav", "-f", "lavfi", "-i", "sine=duration=30:sample_rate=16000")
    more = make(folder, "b.flac", "-f", "lavfi", "-i", "sine=duration=10")
    task = with_tool.submit(
        "--tool",
        "play",
        "--input",
        f"sound={sound}",
        "--input",
        f"more={more}",
        "--input",
        f"more={sound}",
        "--output",
        f"copy={folder}/out",
    )
    assert with_tool.wait(task) == 0, with_tool.show(task)
    needs = with_tool.show(task)["needs"]
    assert needs["time"] == 60 + 60 + 40 and needs["cpus"] == 1, needs
    assert (folder / "out").read_bytes() == sound.read_bytes()


@pytest.mark.parametrize("seconds, least, most", [(120, 125, 240), (7200, 1200, 3 * 3600)])
def test_a_tape_holds_a_long_slot_and_a_clip_does_not(home, seconds, least, most):
    tape = make(
        home.directory,
        "tape.wav",
        "-f",
        "lavfi",
        "-i",
        f"anullsrc=sample_rate=8000:channel_layout=mono:duration={seconds}",
    )
    task = home.submit(
        "--tool",
        "ina_speech_segmenter",
        "--param",
        "python=true",
        "--input",
        f"input={tape}",
        "--output",
        f"segments={home.directory}/out.tsv",
    )
    assert least <= home.show(task)["needs"]["time"] <= most
    assert home.wait(task) == 1 and home.show(task)["failure"] == "output_missing"


def test_what_is_no_recording_is_refused_in_one_sentence(with_tool):
    folder = with_tool.directory
    (folder / "letter.wav").write_text("Dear reader,\n" * 1000)
    (folder / "empty.wav").write_text("")
    whole = make(folder, "whole.m4a", "-f", "lavfi", "-i", "sine=duration=30").read_bytes()
    (folder / "cut.m4a").write_bytes(whole[: len(whole) // 2])
    for name, said in [
        ("letter.wav", "knows no such kind of file"),
        ("empty.wav", "it is empty"),
        ("cut.m4a", "cut off or damaged"),
    ]:
        refused = with_tool.verb(
            "submit", "--tool", "play", "--input", f"sound={folder}/{name}", "--output", f"copy={folder}/out"
        )
        assert refused.code == 2 and said in refused.err and f"{folder}/{name}" in refused.err, refused
        assert len(refused.err.splitlines()) == 1, refused


def test_a_fact_that_is_not_known_is_told_with_its_line(with_tool):
    file = with_tool.directory / "tools/play.yaml"
    file.write_text(PLAY.replace("sound.channels", "sound.chanels"))
    with_tool.ok("engine", "start")
    check = with_tool.verb("tools", "check", "play", "--json")
    text = json.dumps(check.out)
    assert check.code == 1 and f"{file}:9" in text and "did you mean 'channels'" in text, check
    refused = with_tool.verb("submit", "--tool", "play", "--input", f"sound={file}", "--output", f"copy={file}.out")
    assert refused.code == 2 and "did you mean 'channels'" in refused.err, refused
    file.write_text(PLAY.replace("cpus:", "cpsu:"))
    assert "cpsu" in with_tool.verb("tools", "check", "play").out
    file.write_text(PLAY.replace("outputs:", "output:"))
    assert "output" in with_tool.verb("tools", "check", "play").out
