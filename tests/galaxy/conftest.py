"""A Python with Galaxy of its own, below build/, and engines for it to run on."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))
from engine_at_home import EngineAtHome  # noqa: E402
from galaxy_bed import Galaxy, installed  # noqa: E402
from slurm_site import SlurmSite, slurm  # noqa: E402, F401 (a fixture)


@pytest.fixture(scope="session")
def galaxy_python():
    return installed()

TWO_CPUS = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: two, cpus: 2, memory: 4G}]}
"""
ENVIRONMENTS = {
    "here": {"runner": "hpcbatch", "cores": 1, "mem": 0.5},
    "two": {"runner": "hpcbatch", "cores": 2, "mem": "1G"},
    "asked_by_tool": {"runner": "hpcbatch"},
    "in_script": {"runner": "hpcbatch", "cores": 1, "metadata": "job"},
    "by_server": {"runner": "hpcbatch", "cores": 1, "embed_metadata_in_job": False},
    "in_server": {"runner": "hpcbatch", "cores": 1, "metadata": "server"},
    "misspelt": {"runner": "hpcbatch", "coers": 2},
    "small": {"runner": "hpcbatch", "mem": "200M", "cores": 1,
              "resubmit": [{"condition": "memory_limit_reached", "environment": "large"}]},
    "large": {"runner": "hpcbatch", "mem": "2G", "cores": 1},
    "no_more": {"runner": "hpcbatch", "mem": "200M", "cores": 1},
    "short": {"runner": "hpcbatch", "walltime": "0:00:02", "mem": "1G", "cores": 1},
}


@pytest.fixture(scope="session")
def galaxy(galaxy_python):
    """A Galaxy whose jobs run on this machine."""
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        with Galaxy(engine, galaxy_python, ENVIRONMENTS, tools={
            "hb_probe": "two", "hb_greedy": "small"}) as server:
            yield server
