"""The line of docs/galaxy.md for TPV, as TPV itself reads it."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "galaxy"))
from hpcbatch_galaxy import destination  # noqa: E402

RULES = """
global: {default_inherits: default}
tools:
  default: {cores: 2, mem: 4}
  sees: {gpus: 1, mem: cores * 8}
destinations:
  hb: {runner: hpcbatch, max_accepted_cores: 8, max_accepted_mem: 64, max_accepted_gpus: 2, %s}
"""
JOB_CONF = {
    "runners": {"hpcbatch": {"load": "hpcbatch_galaxy.runner:HpcbatchJobRunner"}},
    "execution": {
        "default": "tpv",
        "environments": {
            "tpv": {"runner": "dynamic", "type": "python", "function": "map_tool_to_destination"},
            "hb": {"runner": "hpcbatch"},
        },
    },
}
WANTED = {"other": {"cpus": 2, "memory": 4 << 30}, "sees": {"cpus": 2, "memory": 16 << 30, "gpus": 1}}
# `tpv dry-run` of each, in one process: it imports Galaxy for half a minute.
DRY_RUNS = """
import sys
from tpv.commands.shell import main
for tool in sys.argv[1:]:
    sys.argv = ["tpv", "dry-run", "--job-conf", "job_conf.yml", "--tool", tool, "rules.yml"]
    main()
    print("end of", tool, flush=True)
"""


@pytest.fixture(scope="module")
def said(galaxy_python, tmp_path_factory):
    """{tool: what TPV prints of its destination}."""
    folder = tmp_path_factory.mktemp("tpv")
    (line,) = re.findall(r"With TPV: `(params: \{.*?\})`", (ROOT / "docs/galaxy.md").read_text())
    (folder / "rules.yml").write_text(RULES % line)
    (folder / "job_conf.yml").write_text(json.dumps(JOB_CONF))
    done = subprocess.run(
        [galaxy_python, "-c", DRY_RUNS, *WANTED], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return {tool: text for text, tool in re.findall(r"(.*?)^end of (\w+)$", done.stdout, re.M | re.S)}


@pytest.mark.parametrize("tool", WANTED)
def test_the_documented_line_asks_for_what_a_tool_asks_for(said, tool):
    (params,) = re.findall(r"^params: \{(.*)\}$", said[tool], re.M)
    read = destination.read(dict(re.findall(r"(\w+): '([^']*)'", params)))
    assert read.task == WANTED[tool]
