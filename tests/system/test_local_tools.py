"""Tools: those that are shipped, one of the test's own, and a plugin of a third party, through the whole system."""

import os
import pathlib
import subprocess

import pytest
from engine_at_home import ROOT, EngineAtHome

DOUBLE = """tool: double
version: 2.1.0
summary: Writes its input twice
plugin: command
parameters:
  word: {default: none, description: said on the way}
  forget: {default: "no", description: the output to leave out}
inputs:
  input: {description: any file}
outputs:
  first: {file: first.txt}
  second: {file: second.txt}
resources:
  cpus: 1
  time: 1m + input.size * 1s
command:
  - sh
  - -c
  - 'echo "word $4"; cp "$1" "$2"; [ "$5" = second ] || cp "$1" "$3"; [ "$5" != all ] || exit 9'
  - sh
  - "{input}"
  - "{first}"
  - "{second}"
  - "{word}"
  - "{forget}"
"""


@pytest.fixture
def with_tool(home):
    folder = home.directory / "tools"
    folder.mkdir()
    (folder / "double.yaml").write_text(DOUBLE)
    home.configure(f"tool_path: [{folder}]\n")
    (home.directory / "in").write_text("12345")
    return home


def use(home, *words):
    folder = home.directory / "results"
    folder.mkdir(exist_ok=True)
    return (
        home.submit(
            "--tool",
            "double",
            "--input",
            f"input={home.directory}/in",
            "--output",
            f"first={folder}/a",
            "--output",
            f"second={folder}/b",
            *words,
        ),
        folder,
    )


def test_the_tools_that_are_shipped(home):
    home.ok("engine", "start")
    names = [tool["name"] for tool in home.json("tools")]
    for name in ("command", "ina_speech_segmenter", "ina_speech_segmenter_container", "speech_to_text"):
        assert name in names
        home.ok("tools", "check", name)
    assert "segments" in str(home.json("tools", "show", "ina_speech_segmenter")[0]["outputs"])
    for verb in ("show", "check"):
        unknown = home.verb("tools", verb, "speech_to_txt")
        assert unknown.code in (1, 2) and "did you mean 'speech_to_text'" in unknown.out + unknown.err, unknown
        unknown = home.verb("tools", verb, "xyz")
        assert unknown.code in (1, 2) and "known are applause_detection, command" in unknown.out + unknown.err, unknown


def test_a_tool_of_ones_own(with_tool):
    task, folder = use(with_tool, "--param", "word=hello")
    assert with_tool.wait(task) == 0
    assert (folder / "a").read_text() == (folder / "b").read_text() == "12345"
    assert with_tool.ok("log", task) == "word hello\n"
    shown = with_tool.show(task)
    assert shown["tool"] == "double" and shown["needs"]["time"] == 65


@pytest.mark.parametrize("forget, failure", [("second", "output_missing"), ("all", "tool_failed")])
def test_outputs_are_published_all_or_none(with_tool, forget, failure):
    task, folder = use(with_tool, "--param", f"forget={forget}")
    assert with_tool.wait(task) == 1
    shown = with_tool.show(task)
    assert shown["failure"] == failure
    assert list(folder.iterdir()) == []
    if failure == "output_missing":
        assert "second" in shown["message"]


@pytest.mark.parametrize("forget, made", [("second", ["a"]), ("none", ["a", "b"])])
def test_an_optional_output_may_be_left_out(with_tool, forget, made):
    text = DOUBLE.replace("{file: second.txt}", "{file: second.txt, optional: true}")
    (with_tool.directory / "tools/double.yaml").write_text(text)
    task, folder = use(with_tool, "--param", f"forget={forget}")
    assert with_tool.wait(task) == 0, with_tool.show(task)
    assert sorted(path.name for path in folder.iterdir()) == made


def test_what_a_tool_does_not_take_is_refused(with_tool):
    folder = with_tool.directory
    good = [
        "--tool",
        "double",
        "--input",
        f"input={folder}/in",
        "--output",
        f"first={folder}/a",
        "--output",
        f"second={folder}/b",
    ]
    for words, named in (
        (["--param", "wrod=x"], "wrod"),
        (["--input", f"other={folder}/in"], "other"),
        (["--output", f"third={folder}/c"], "third"),
    ):
        result = with_tool.verb("submit", *good, *words)
        assert result.code == 2 and named in result.err and result.out == "", result
    missing = with_tool.verb("submit", "--tool", "double", "--input", f"input={folder}/none", *good[4:])
    assert missing.code == 2 and f"{folder}/none" in missing.err, missing
    unknown = with_tool.verb("submit", "--tool", "duoble")
    assert unknown.code == 2 and "double" in unknown.err


def test_a_tool_is_checked_before_any_engine_runs(with_tool):
    assert "double" in with_tool.ok("tools", "check", "double")


def test_a_bad_tool_file_is_named_with_its_line(with_tool):
    file = with_tool.directory / "tools/double.yaml"
    file.write_text(DOUBLE.replace("plugin: command", "plugn: command"))
    with_tool.ok("engine", "start")
    check = with_tool.verb("tools", "check", "double")
    assert check.code == 1 and f"{file}:4" in check.out + check.err and "plugn" in check.out + check.err, check
    refused = with_tool.verb("submit", "--tool", "double")
    assert refused.code == 2 and f"{file}:4" in refused.err


def test_a_plugin_of_a_third_party(tmp_path):
    """Built against the installed package, dropped into its folder, and run: it asks for time by its input's size."""
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    for words in (
        ["--install", ROOT / "build/release", "--prefix", prefix],
        [
            "-S",
            ROOT / "tests/third_party/project",
            "-B",
            build,
            "-G",
            "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_INSTALL_PREFIX={prefix}",
        ],
        ["--build", build],
        ["--install", build],
    ):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    with EngineAtHome(prefix=prefix) as home:
        assert home.ok("run", "--", "echo", "installed") == "installed\n"
        for size, seconds in ((500, 60), (36_000_000, 420)):
            (home.directory / "in").write_bytes(b"x" * size)
            task = home.submit(
                "--tool",
                "copy_by_size",
                "--input",
                f"input={home.directory}/in",
                "--output",
                f"copy={home.directory}/out",
            )
            assert home.wait(task) == 0, home.show(task)
            assert home.show(task)["needs"]["time"] == seconds
            assert os.path.getsize(home.directory / "out") == size
        assert next(tool for tool in home.json("tools") if tool["name"] == "copy_by_size")["interpreter"] == "by_size"
