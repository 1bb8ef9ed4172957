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


@pytest.mark.parametrize(
    "tool, task", [("other", {"cpus": 2, "memory": 4 << 30}), ("sees", {"cpus": 2, "memory": 16 << 30, "gpus": 1})]
)
def test_the_documented_line_asks_for_what_a_tool_asks_for(galaxy_python, tmp_path, tool, task):
    (line,) = re.findall(r"With TPV: `(params: \{.*?\})`", (ROOT / "docs/galaxy.md").read_text())
    (tmp_path / "rules.yml").write_text(RULES % line)
    (tmp_path / "job_conf.yml").write_text(json.dumps(JOB_CONF))
    said = subprocess.run(
        [galaxy_python.with_name("tpv"), "dry-run", "--job-conf", "job_conf.yml", "--tool", tool, "rules.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    (params,) = re.findall(r"^params: \{(.*)\}$", said.stdout, re.M)
    read = destination.read(dict(re.findall(r"(\w+): '([^']*)'", params)))
    assert read.task == task
