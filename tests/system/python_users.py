"""A Python as users have it, with hpcbatch, dask, joblib and notebooks in it, and files of theirs to run there."""

import os
import pathlib
import subprocess
import textwrap

import pytest
from own_python import own_python


def users_python():
    """Its interpreter."""
    return own_python("python-users", pathlib.Path(__file__).with_name("python_requirements.txt"), ["python"])


@pytest.fixture(scope="module")
def python():
    return users_python()


def script(home, python, text, timeout=240):
    """What a user's file prints; other Pythons than ours have no hpcbatch on PATH."""
    file = home.directory / "script.py"
    file.write_text(textwrap.dedent(text))
    env = {**os.environ, **home.env, "HPCBATCH_PROGRAM": str(home.program), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, file], env=env, capture_output=True, text=True, timeout=timeout, check=False, cwd=home.directory
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
