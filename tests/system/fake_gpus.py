"""Nodes whose GPUs are emulated (plugin-kit/fakegpu), for sites of tests."""

import pathlib
import shlex
import subprocess

from engine_at_home import PREFIX

PROGRAM = pathlib.Path(PREFIX) / "bin/hpcbatch-fakegpu"
QUOTED = shlex.quote(str(PROGRAM))


class FakeGpus:
    """One folder for each node; `setup` are the lines that make a pilot of a node see its own."""

    def __init__(self, folder, **nodes):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        libraries = subprocess.run([PROGRAM, "libraries"], check=True, capture_output=True, text=True).stdout.strip()
        of_node = "${SLURMD_NODENAME:-node}"
        self.setup = [f"export HPCBATCH_FAKEGPU={self.folder}/{of_node} LD_LIBRARY_PATH='{libraries}'"]
        for name, kinds in nodes.items():
            self._run("new", self.folder / name, *kinds)

    def command(self, node="node"):
        """Text for a shell: prints the devices that the task sees, and does work as the arguments of `work` say."""
        return f'echo $CUDA_VISIBLE_DEVICES; HPCBATCH_FAKEGPU={self.folder}/{node} exec {QUOTED} work "$@" >/dev/null'

    @staticmethod
    def _run(*words):
        subprocess.run([PROGRAM, *map(str, words)], check=True)

    def fault(self, number, *faults, node="node"):
        self._run("fault", self.folder / node, number, *faults)

    def error(self, number, xid, node="node"):
        self._run("error", self.folder / node, number, xid)
