"""Runs the workflows of Snakemake's own tests by an executor of our choice; a plugin of pytest, in Snakemake's own Python.

    OWN_SUITE_EXECUTOR    local, or hpcbatch: what starts the jobs of every test that runs a workflow by Snakemake's interface
    OWN_SUITE_COMMANDS    with local: a file for what compare_commands.py writes, a line for each shell: job
    OWN_SUITE_SECONDS     what a test may take; then it fails, and says where it stood

To be run in the folder of Snakemake's source distribution.  What starts no jobs, says its executor itself or runs Snakemake's
program is skipped: it tells nothing about an executor.
"""

import functools
import inspect
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
EXECUTOR = os.environ.get("OWN_SUITE_EXECUTOR", "local")
COMMANDS = os.environ.get("OWN_SUITE_COMMANDS")
SECONDS = int(os.environ.get("OWN_SUITE_SECONDS", "180"))
# What makes `run` do something else than run a workflow.
OTHERWISE = (
    "shellcmd",
    "cluster",
    "report",
    "conda_create_envs",
    "conda_list_envs",
    "archive",
    "generate_unit_tests",
    "containerize",
    "cleanup_metadata",
    "sigint_after",
)


def one_by_one(said):
    """Of a workflow with shadows, whose jobs change their process' folder: so that what they run is seen."""
    if not COMMANDS:
        return {}
    import compare_commands

    snakefile = pathlib.Path(said["path"], said.get("snakefile", "Snakefile"))
    compare_commands.shadows_here = "shadow:" in snakefile.read_text()
    return {"cores": 1} if compare_commands.shadows_here else {}


def by_our_executor(run):
    names = inspect.signature(run)

    @functools.wraps(run)
    def ours(*args, **kwargs):
        said = names.bind(*args, **kwargs).arguments
        if said.get("executor", "local") != "local" or any(said.get(name) for name in OTHERWISE):
            pytest.skip("it runs no jobs of its own")
        if EXECUTOR == "local":
            return run(*args, **kwargs | one_by_one(said))
        from snakemake_executor_plugin_hpcbatch import ExecutorSettings

        os.environ.pop(
            "PYTEST_CURRENT_TEST", None
        )  # jobs of another environment are warmed by a Snakemake of their own
        return run(*args, **kwargs | {"executor": EXECUTOR, "executor_settings": ExecutorSettings(), "nodes": 1000})

    return ours


def pytest_configure():
    from tests import common

    common.run = by_our_executor(common.run)
    if COMMANDS:
        import compare_commands

        compare_commands.listen()


class TooLong(BaseException):
    pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    def end(*_):
        raise TooLong(f"{item.name} took longer than {SECONDS} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


def pytest_runtest_teardown(item):
    if COMMANDS:
        import compare_commands

        compare_commands.write(COMMANDS, of=item.name)
