"""A Python with the programs in it that hand jobs to batch systems: Toil, psij, Parsl, dask-jobqueue, Snakemake and its plugins."""

import pathlib

import pytest
from own_python import own_python


def clients_python():
    """Its interpreter."""
    return own_python("python-clients", pathlib.Path(__file__).with_name("clients_requirements.txt"), ["python"])


@pytest.fixture(scope="module")
def python():
    return clients_python()
