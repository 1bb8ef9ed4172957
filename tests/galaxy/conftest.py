"""A Python with Galaxy of its own, below build/, and engines for it to run on."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "python")]
from engine_at_home import EngineAtHome  # noqa: E402
from galaxy_bed import ENVIRONMENTS, TWO_CPUS, Galaxy, installed  # noqa: E402
from slurm_site import slurm  # noqa: E402, F401 (a fixture)


@pytest.fixture(scope="session")
def galaxy_python():
    return installed()


@pytest.fixture(scope="module")
def galaxy(galaxy_python):
    """A Galaxy whose jobs run on this machine. It ends with its module: an idle one takes a fifth of a processor."""
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        with Galaxy(engine, galaxy_python, ENVIRONMENTS, tools={"hb_probe": "two", "hb_greedy": "small"}) as server:
            yield server
