"""What the page on other programs tells people to type, run by these programs."""

import os
import pathlib
import subprocess

import pytest
from engine_at_home import EngineAtHome
from programs_of_clients import clients_python
from programs_of_docs import ROOT, blocks_of

TEXT = (ROOT / "docs/clients.md").read_text()
FIRST = blocks_of(TEXT)[0]
SECTIONS = {part.splitlines()[0]: part for part in TEXT.split("\n## ")[1:]}
# Galaxy's block is no script: tests/galaxy runs it.
RUN = [name for name in SECTIONS if name not in ("Galaxy", "When something goes wrong")]
SAYS = {
    "A shell loop": "",
    "submitit": "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]",
    "Parsl": "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]",
    "dask-jobqueue": "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]",
    "psij-python": "COMPLETED",
    "Toil": "[0, 1, 4, 9, 16]",
    "Snakemake": "",
}


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        yield engine


@pytest.mark.parametrize("name", RUN)
def test_each_section_does_what_it_says(shared, name):
    folder = shared.directory / name.replace(" ", "-")
    folder.mkdir()
    script = "set -euo pipefail\n" + FIRST + "".join(blocks_of(SECTIONS[name]))
    path = [pathlib.Path(shared.program).parent, clients_python().parent, os.environ["PATH"]]
    env = shared.env | {"HOME": str(shared.directory), "PATH": ":".join(map(str, path))}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr + shared.log_end()
    assert SAYS[name] in done.stdout, done.stdout
    written = {"A shell loop": "part 1\npart 2\npart 3\n", "psij-python": "hello\n"}.get(name)
    if written:
        found = (folder / ("all" if name == "A shell loop" else "hello.txt")).read_text()
        assert found == written
    if name == "Snakemake":
        assert (folder / "out/3").read_text() == "3\n" and list((folder / "logs").glob("*.o20000*"))
