"""Runs a real Nextflow, fetched by Maven into build/nextflow at the first run and kept until its version changes."""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))

PLUGIN = ROOT / "nextflow"
FOLDER = ROOT / "build/nextflow"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# What Nextflow reaches within Java's own modules since these are closed to others.
OPENED = (
    "java.lang java.io java.nio java.net java.util java.util.concurrent.locks java.util.concurrent.atomic java.util.regex"
    " sun.nio.ch sun.nio.fs sun.net.www.protocol.http sun.net.www.protocol.https sun.net.www.protocol.ftp"
    " sun.net.www.protocol.file jdk.internal.misc jdk.internal.vm"
).split()


def maven(*words, timeout=1200):
    """Runs it for the plugin's project; what it built lies in build/nextflow."""
    command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "-f", str(PLUGIN / "pom.xml"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"


def _sum_of(*files):
    return hashlib.sha256(b"".join(f"{file} ".encode() + file.read_bytes() for file in sorted(files))).hexdigest()


def _once(name, content, make):
    """Runs `make` where it has not been run of this content yet; one process at a time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = FOLDER / f"{name}.made"
        if not mark.exists() or mark.read_text() != content:
            make()
            mark.write_text(content)


def nextflow():
    """The program: a script that starts Nextflow with the jars beside it."""
    program = FOLDER / "bin/nextflow"

    def make():
        shutil.rmtree(FOLDER / "lib", ignore_errors=True)
        maven(COPY, "-DincludeScope=provided", f"-DoutputDirectory={FOLDER / 'lib'}")
        opened = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED)
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            "#!/bin/sh\n"
            'export NXF_HOME="${NXF_HOME:-$HOME/.nextflow}"\n'
            "export NXF_OFFLINE=true NXF_DISABLE_CHECK_LATEST=true NXF_ANSI_LOG=false\n"
            f"exec java -XX:TieredStopAtLevel=1 {opened} -cp '{FOLDER}/lib/*' nextflow.cli.Launcher \"$@\"\n"
        )
        program.chmod(0o755)

    _once("nextflow", _sum_of(PLUGIN / "pom.xml", pathlib.Path(__file__)), make)
    return program


def plugin():
    """The plugin as users get it: a zip to be unpacked below $NXF_HOME/plugins."""

    def make():
        for old in (FOLDER / "maven").glob("*.zip"):
            old.unlink()
        maven("package", "-DskipTests")

    sources = [path for path in PLUGIN.rglob("*") if path.is_file()]
    _once("plugin", _sum_of(*sources), make)
    (found,) = (FOLDER / "maven").glob("*.zip")
    return found


TWO_CPUS = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: two, cpus: 2, memory: 4G}]}
"""
# Waits for its batch system that suit a test; users have a minute where this says a second.
QUICK = "executor { queueStatInterval = '1 sec'; pollInterval = '200 ms'; exitReadTimeout = '5 sec' }\n"


class Bed:
    """`engine` is an EngineAtHome; `folder` is where Nextflow runs, `executor` what its processes name.

    `commands`: the folder that `hpcbatch slurm-commands` has made, for an executor of Nextflow's own."""

    def __init__(self, engine, executor="hpcbatch", commands=None):
        self.engine = engine
        self.executor = executor
        self.folder = engine.directory / "flow"
        self.folder.mkdir()
        path = [str(nextflow().parent), str(pathlib.Path(engine.program).parent), engine.env["PATH"]]
        if commands:
            path.insert(0, str(commands))
        self.env = engine.env | {
            "HOME": str(engine.directory),
            "NXF_HOME": str(engine.directory / "nxf"),
            "PATH": ":".join(path),
        }
        self.plugins = ""
        if executor == "hpcbatch":
            zipped = plugin()
            self.plugins = f"plugins {{ id '{zipped.stem.replace('hpcbatch-', 'hpcbatch@')}' }}\n"
            shutil.unpack_archive(zipped, engine.directory / "nxf/plugins")

    def write(self, text, config="", name="main.nf"):
        (self.folder / name).write_text(textwrap.dedent(text))
        config = textwrap.dedent(config)
        (self.folder / "nextflow.config").write_text(
            f"{self.plugins}process.executor = '{self.executor}'\n{QUICK}{config}"
        )

    def begin(self, *words, log="printed", name="main.nf", **env):
        """Starts it; what it prints goes to a file of its folder."""
        with open(self.folder / log, "w") as out:
            return subprocess.Popen(
                ["nextflow", "run", name, *map(str, words)],
                cwd=self.folder,
                env=self.env | env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, *words, timeout=300, **options):
        """(exit code, all that Nextflow printed)."""
        process = self.begin(*words, **options)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(self.printed() + self.engine.log_end()) from None
        return code, self.printed(options.get("log", "printed"))

    def ok(self, *words, **options):
        code, text = self.run(*words, **options)
        assert code == 0, f"{text}{self.engine.log_end()}\n{self.log()[-6000:]}"
        return text

    def printed(self, log="printed"):
        return (self.folder / log).read_text()

    def log(self):
        """Nextflow's own, of its last run."""
        return (self.folder / ".nextflow.log").read_text(errors="replace")

    def trace(self, file="trace.txt"):
        """The rows of a run with -with-trace, as dicts."""
        head, *rows = [line.split("\t") for line in (self.folder / file).read_text().splitlines()]
        return [dict(zip(head, row)) for row in rows]

    def tasks(self):
        return self.engine.json("list", "--tasks", "--all")
