"""What holds for every test, how tests are spread over the workers of one run, and how the run hears what became of them."""

import json
import os
import pathlib
import signal
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "runner"))
import outcomes  # noqa: E402

# Modules whose tests share a bed that is dear to start: one worker has them all.
ONE_BED = {
    "galaxy/test_cli.py",
    "galaxy/test_containers.py",
    "galaxy/test_far.py",
    "galaxy/test_jobs.py",
    "galaxy/test_restart.py",
    "galaxy/test_slurm.py",
    "galaxy/test_tpv.py",
    "snakemake/test_matrix.py",
    "snakemake/test_pure.py",
    "system/test_sbatch_beside_slurm.py",
    "system/test_slurm_choices.py",
    "system/test_slurm_job_scripts.py",
    "system/test_slurm_mpi_campaign.py",
    "system/test_slurm_nodes.py",
    "system/test_slurm_steps.py",
    "system/test_slurm_words.py",
}


def pytest_addoption(parser):
    parser.addoption(
        "--outcomes", metavar="FILE", help="write what became of each test to the end of FILE, as JSON lines"
    )
    parser.addoption("--seconds", metavar="FILE", help="begin with what takes longest by FILE: {test: seconds} as JSON")


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: its result is a time, so nothing may run beside it")
    config.addinivalue_line(
        "markers", "pure: needs nothing that is built, and seconds for its file: `./dev ready` runs it"
    )
    config.addinivalue_line("markers", "xdist_group(name): tests that one worker has")
    # Who is started in the background inherits an interrupt that means nothing, and so would every process of a test.
    # Workers inherit it from who starts them.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    file = config.getoption("--outcomes")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(file))


class Reporter:
    def __init__(self, file):
        self._file = open(file, "a")

    def pytest_runtest_logreport(self, report):
        # xdist writes a test's group behind its name.
        name, _, group = report.nodeid.rpartition("@")
        self._file.write(outcomes.line_of(report, name if group in ONE_BED else report.nodeid) + "\n")
        self._file.flush()


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in its own
def pytest_collection_modifyitems(config, items):
    file = config.getoption("--seconds")
    known = json.loads(pathlib.Path(file).read_text()) if file and pathlib.Path(file).exists() else {}
    cost = {}
    for item in items:
        if _unit(item) != item.nodeid:
            item.add_marker(pytest.mark.xdist_group(_unit(item)))
        cost[_unit(item)] = cost.get(_unit(item), 0) + known.get(item.nodeid, 0)
    # What nobody has measured yet: shared beds first, which are dear.
    items.sort(key=lambda item: (cost[_unit(item)], _unit(item) != item.nodeid), reverse=True)


def _unit(item):
    """What one worker has as a whole: a module with a shared bed, else the test."""
    module = pathlib.Path(os.path.relpath(item.path, HERE)).as_posix()
    return module if module in ONE_BED else item.nodeid
