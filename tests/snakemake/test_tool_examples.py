"""The examples that are made of the tools: rules that Snakemake runs, tools that Galaxy can read."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from engine_at_home import PREFIX, ROOT, EngineAtHome

GALAXY = ROOT / "build/galaxy/bin/python"
LINT = """
import sys
from galaxy.tool_util.lint import LintContext, lint_tool_source_with
from galaxy.tool_util.parser import get_tool_source
for path in sys.argv[1:]:
    context = LintContext("all", skip_types=["TestsMissing", "CitationsMissing"])
    lint_tool_source_with(context, get_tool_source(path))
    for message in context.error_messages:
        print(path, message)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    with EngineAtHome() as home:
        env = home.env | {"PATH": f"{PREFIX}/bin:{os.environ['PATH']}"}
        subprocess.run([sys.executable, ROOT / "tool-templates/examples/generate.py", folder], env=env, check=True)
        yield home, env, folder


def test_each_tool_has_its_examples(made):
    home, _, folder = made
    names = {tool["name"] for tool in home.json("tools") if tool["inputs"]}
    assert len(names) > 15
    # What takes lists has no rule: hpcbatch makes these tasks itself.
    lists = {
        name
        for name in names
        if any(one["type"] == "files" for one in home.json("tools", "show", name)[0]["inputs"].values())
    }
    assert lists == {"ina_speech_segmenter_merge", "speech_to_text_merge"}
    assert {path.stem for path in (folder / "snakemake").iterdir()} == names - lists
    assert {path.stem for path in (folder / "galaxy").iterdir()} == {f"hpcbatch_{name}" for name in names}
    for path in (folder / "galaxy").iterdir():
        root = ET.parse(path).getroot()
        said = {one.get("name") for section in ("inputs", "outputs") for one in root.find(section)}
        tool = home.json("tools", "show", path.stem.removeprefix("hpcbatch_"))[0]
        assert said == set(tool["inputs"]) | set(tool["outputs"]) | set(tool["parameters"])


def test_galaxy_finds_no_fault_in_them(made):
    if not GALAXY.exists():
        pytest.skip("build/galaxy is not there; tests/galaxy makes it")
    done = subprocess.run(
        [GALAXY, "-c", LINT, *sorted((made[2] / "galaxy").iterdir())], capture_output=True, text=True, check=False
    )
    told = [line for line in done.stdout.splitlines() if not line.startswith((".. INFO", ".. CHECK"))]
    assert (done.returncode, told) == (0, []), done.stderr
    assert done.stdout.count("contains a command") == len(list((made[2] / "galaxy").iterdir()))


def test_snakemake_runs_them(python, made, tmp_path):
    _, env, folder = made
    (tmp_path / "input").mkdir()
    for name, seconds in (("long talk", 4), ("short", 2)):
        subprocess.run(
            [
                "ffmpeg",
                "-v",
                "error",
                "-f",
                "lavfi",
                "-i",
                f"sine=duration={seconds}",
                "-f",
                "wav",
                tmp_path / "input" / name,
            ],
            check=True,
        )
    (tmp_path / "Snakefile").write_text(
        f"include: {str(folder / 'snakemake/extract_audio.smk')!r}\ninclude: {str(folder / 'snakemake/media_probe.smk')!r}\n"
    )
    wanted = ["extract_audio/long talk.audio.wav", "extract_audio/short.audio.wav", "media_probe/short.facts.json"]
    program = pathlib.Path(python).parent / "snakemake"
    done = subprocess.run(
        [program, "--cores", "2", *wanted], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / wanted[0]).stat().st_size > 4 * 44100 * 2 > (tmp_path / wanted[1]).stat().st_size
    assert float(json.loads((tmp_path / wanted[2]).read_text())["format"]["duration"]) == pytest.approx(2, abs=0.01)


def test_every_rule_can_be_planned(python, made, tmp_path):
    _, env, folder = made
    for name in ("input", "text", "recording"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one").write_text("x")
    rules = sorted((folder / "snakemake").iterdir())
    wanted = ", ".join(f'expand(rules.{path.stem}.output, sample=["one"])' for path in rules)
    (tmp_path / "Snakefile").write_text(
        "".join(path.read_text() + "\n" for path in rules)
        + f"rule all:\n    default_target: True\n    input: {wanted}\n"
    )
    program = pathlib.Path(python).parent / "snakemake"
    done = subprocess.run(
        [program, "--cores", "1", "-n", "-p"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    planned = done.stdout + done.stderr
    for path in rules:
        assert f"hpcbatch run --tool {path.stem} --input " in planned, path
