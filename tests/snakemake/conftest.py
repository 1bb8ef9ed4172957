"""A Python with Snakemake of its own, below build/, and engines for it to run on."""

import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "system"), str(pathlib.Path(__file__).parents[2] / "python")]
from engine_at_home import EngineAtHome  # noqa: E402
from slurm_site import SlurmSite, slurm  # noqa: E402, F401 (a fixture)
from snakemake_bed import TWO_CPUS, Bed, installed  # noqa: E402


@pytest.fixture(scope="session")
def python():
    """The Python in which Snakemake, its SLURM executor and both our plugins are installed."""
    return installed()


@pytest.fixture
def bed(python):
    """Snakemake in a folder of the test's own, with an engine that has one local site of two cpus."""
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "space"))
        yield Bed(engine, python)


@pytest.fixture
def slurm_bed(python, slurm):  # noqa: F811
    with SlurmSite(slurm) as engine:
        yield Bed(engine, python)
