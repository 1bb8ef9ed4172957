"""Runs a real Snakemake with our executor."""

import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))
from own_python import own_python  # noqa: E402

PACKAGES = ["python", "snakemake", "snakemake/scheduler"]
TWO_CPUS = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: two, cpus: 2, memory: 4G}]}
"""


def requirements():
    """What is installed: a file of pip's. HPCBATCH_SNAKEMAKE names another version of Snakemake for a run by hand."""
    usual = HERE / "requirements.txt"
    if not (version := os.environ.get("HPCBATCH_SNAKEMAKE")):
        return usual
    other = ROOT / f"build/snakemake-{version}.txt"
    other.write_text(re.sub(r"(?m)^snakemake==.*", f"snakemake=={version}", usual.read_text()))
    return other


def installed(plugin=None):
    """The Python in which Snakemake and both our plugins are installed; and `plugin`, as pip names it, because each plugin that is
    there costs every Snakemake its imports."""
    file = requirements()
    if plugin:
        with_it = ROOT / f"build/{file.stem}-and-{plugin.partition('=')[0]}.txt"
        with_it.write_text(f"{file.read_text()}{plugin}\n")
        file = with_it
    return own_python(file.stem.replace("requirements", "snakemake"), file, PACKAGES)


def compared(python, folder, *words, timeout=300):
    """What each shell: job ran with Snakemake's local executor and would have run as a task, and all that was printed."""
    found = folder / "commands.jsonl"
    done = subprocess.run(
        [python, HERE / "compare_commands.py", found, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    jobs = [json.loads(line) for line in found.read_text().splitlines()] if found.exists() else []
    return jobs, done.stdout


class Bed:
    """`engine` is an EngineAtHome; `folder` is where Snakemake runs."""

    def __init__(self, engine, python):
        self.engine = engine
        self.python = python
        self.folder = engine.directory / "work"
        self.folder.mkdir()
        kept = {name: value for name, value in engine.env.items() if name not in ("PYTHONPATH", "HOME")}
        self.env = kept | {
            "HOME": str(engine.directory),
            "HPCBATCH_PROGRAM": engine.program,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{python.parent}:{kept['PATH']}",
            "HPCBATCH_TEST_SECRET": "hush",
        }

    def write(self, text, name="Snakefile"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def command(self, *words, executor="hpcbatch", jobs=1000):
        local = ["--cores", "2"] if executor == "local" else ["--executor", executor, "--jobs", str(jobs)]
        return [str(self.python), "-m", "snakemake", *local, "--latency-wait", "5", *map(str, words)]

    def run(self, *words, folder=None, timeout=300, env=None, **options):
        """(exit code, all that Snakemake printed)."""
        done = subprocess.run(
            self.command(*words, **options),
            cwd=folder or self.folder,
            env=self.env | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return done.returncode, done.stdout

    def ok(self, *words, **options):
        code, text = self.run(*words, **options)
        assert code == 0, text + self.engine.log_end()
        return text

    def begin(self, *words, log="snakemake.log", **options):
        """Starts Snakemake; what it prints goes to a file of its folder."""
        with open(self.folder / log, "w") as out:
            return subprocess.Popen(
                self.command(*words, **options),
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def tasks(self):
        return self.engine.json("list", "--tasks", "--all")

    def modes(self):
        """{name of a task: "direct", "warm" or "relaunch"}."""
        modes = {}
        for line in self.tasks():
            task = self.engine.show(line["id"])
            is_snakemake = "--mode" in task["command"]
            modes[task["name"]] = "warm" if "service" in task else "relaunch" if is_snakemake else "direct"
        return modes


def tree(folder):
    """{path: (mode, content)} of all that a workflow has left, but not of what says when or how long."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] in (".snakemake", "bench") or name.name == "snakemake.log" or not path.is_file():
            continue
        found[os.fspath(name)] = (oct(path.stat().st_mode), path.read_bytes())
    return found
