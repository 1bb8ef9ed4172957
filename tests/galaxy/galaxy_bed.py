"""Runs a real Galaxy with our runner: one process, SQLite, no browser client."""

import json
import os
import pathlib
import signal
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from xml.etree import ElementTree

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))
import preloaded  # noqa: E402
from engine_at_home import is_alive, wait_until  # noqa: E402
from own_python import own_python  # noqa: E402

ADMIN = "hb-admin-key"
START_SECONDS = 240
TWO_CPUS = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: two, cpus: 2, memory: 4G}]}
"""
ENVIRONMENTS = {
    "here": {"runner": "hpcbatch", "cores": 1, "mem": 0.5},
    "two": {"runner": "hpcbatch", "cores": 2, "mem": "1G"},
    "asked_by_tool": {"runner": "hpcbatch", "metrics": [{"type": "core"}]},
    "in_script": {"runner": "hpcbatch", "cores": 1, "metadata": "job"},
    "by_server": {"runner": "hpcbatch", "cores": 1, "embed_metadata_in_job": False},
    "in_server": {"runner": "hpcbatch", "cores": 1, "metadata": "server"},
    "with_shell": {
        "runner": "hpcbatch",
        "cores": 1,
        "mem": "1G",
        "env": [{"name": "HB_OF_HOME", "value": "$HOME/x"}, {"execute": "export HB_EXECUTED=yes"}],
    },
    "misspelt": {"runner": "hpcbatch", "coers": 2},
    "small": {
        "runner": "hpcbatch",
        "mem": "200M",
        "cores": 1,
        "resubmit": [{"condition": "memory_limit_reached", "environment": "large"}],
    },
    "large": {"runner": "hpcbatch", "mem": "2G", "cores": 1},
    "no_more": {"runner": "hpcbatch", "mem": "200M", "cores": 1},
    "short": {"runner": "hpcbatch", "walltime": "0:00:02", "mem": "1G", "cores": 1},
}
# What a server is started with that is nothing to its tools.
SECRETS = {
    "HB_DATABASE": "postgresql://galaxy:hb-secret@db/galaxy",
    "HB_API_TOKEN": "hb-secret",
    "GALAXY_CONFIG_BRAND": "hb-secret",
}
ENDED = ("ok", "error", "deleted", "paused", "stopped")


def installed():
    """The Python in which Galaxy and our runner are installed."""
    return own_python("galaxy", HERE / "requirements.txt", ["python", "galaxy"], HERE / "constraints.txt")


class Refused(Exception):
    pass


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _as_xml(jobs):
    """The older form of the same job_conf."""
    root = ElementTree.Element("job_conf")

    def add(parent, kind, name, said, **attributes):
        own = ElementTree.SubElement(parent, kind, id=name, **attributes)
        for key, value in said.items():
            ElementTree.SubElement(own, "param", id=key).text = str(value)

    plugins = ElementTree.SubElement(root, "plugins")
    for name, said in jobs["runners"].items():
        rest = {key: value for key, value in said.items() if key not in ("load", "workers")}
        add(plugins, "plugin", name, rest, type="runner", load=said["load"], workers=str(said["workers"]))
    destinations = ElementTree.SubElement(root, "destinations", default=jobs["execution"]["default"])
    for name, said in jobs["execution"]["environments"].items():
        add(
            destinations,
            "destination",
            name,
            {key: value for key, value in said.items() if key != "runner"},
            runner=said["runner"],
        )
    tools = ElementTree.SubElement(root, "tools")
    for said in jobs["tools"]:
        ElementTree.SubElement(tools, "tool", {"class": said["class"], "destination": said["environment"]})
    return ElementTree.tostring(root, encoding="unicode")


class Galaxy:
    """A server below `engine`'s directory.  `environments` are those of job_conf beside `local`; the first is the default.
    `form` is that of job_conf: yml or xml."""

    def __init__(self, engine, python, environments, runner=None, runners=None, options=None, tools=None, form="yml"):
        self.engine = engine
        self.python = python
        self.folder = engine.directory / "gx"
        self.folder.mkdir()
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.key = ADMIN
        self.history = None
        self._pasted = {}
        self._pid = None
        self._write(environments, runner or {}, runners or {}, options or {}, tools or {}, form)

    def _write(self, environments, runner, runners, options, tools, form):
        galaxy = {
            "data_dir": "data",
            "database_connection": "sqlite:///./data/universe.sqlite?isolation_level=IMMEDIATE",
            "job_config_file": f"job_conf.{form}",
            "tool_config_file": "tool_conf.xml,upload_conf.xml",
            "tool_data_table_config_path": "tool_data_table_conf.xml",
            "container_resolvers_config_file": "container_resolvers.yml",
            "bootstrap_admin_api_key": ADMIN,
            "admin_users": "admin@example.org",
            "conda_auto_init": False,
            "involucro_auto_init": False,
            "enable_celery_tasks": False,
            "cleanup_job": "onsuccess",
            "retry_job_output_collection": 3,
            "job_handler_monitor_sleep": 0.2,
            "job_runner_monitor_sleep": 0.2,
            "monitor_thread_join_timeout": 5,
            **options,
        }
        ours = {
            "load": "hpcbatch_galaxy.runner:HpcbatchJobRunner",
            "workers": 2,
            "program": self.engine.program,
            **runner,
        }
        jobs = {
            "runners": {
                "local": {"load": "galaxy.jobs.runners.local:LocalJobRunner", "workers": 2},
                "hpcbatch": ours,
                **runners,
            },
            "execution": {
                "default": "chosen",
                "environments": {
                    "local": {"runner": "local"},
                    "chosen": {"runner": "dynamic", "type": "python", "rules_module": "hb_rules", "function": "choose"},
                    **environments,
                },
            },
            "tools": [{"class": "local", "environment": "local"}],
        }
        self._choices = {"": next(iter(environments)), **tools}
        self.send("hb_map", self._choices[""])
        listed = "".join(f'<tool file="{path.name}"/>' for path in sorted((HERE / "tools").glob("*.xml")))
        ours_too = "".join(f'<tool file="{path}"/>' for path in sorted((ROOT / "galaxy/tools").glob("*.xml")))
        for name, text in {
            "galaxy.yml": json.dumps({"galaxy": galaxy}),
            f"job_conf.{form}": json.dumps(jobs) if form == "yml" else _as_xml(jobs),
            "tool_conf.xml": f'<toolbox tool_path="{HERE / "tools"}">{listed}{ours_too}</toolbox>',
            "upload_conf.xml": '<toolbox><tool file="data_source/upload.xml"/></toolbox>',
            "tool_data_table_conf.xml": "<tables/>",
            "container_resolvers.yml": "[]",
        }.items():
            (self.folder / name).write_text(text)

    # --- the server ---------------------------------------------------------------------------------------------------

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill(signal.SIGTERM)

    def start(self):
        kept = {name: value for name, value in self.engine.env.items() if name not in ("PYTHONPATH", "HOME")}
        venv = self.python.parent.parent
        environment = (
            kept
            | SECRETS
            | {
                "HOME": str(self.engine.directory),
                "GALAXY_CONFIG_FILE": str(self.folder / "galaxy.yml"),
                "VIRTUAL_ENV": str(venv),
                "PYTHONPATH": str(HERE),
                "PATH": f"{venv / 'bin'}:{kept['PATH']}",
                "HPCBATCH_PROGRAM": self.engine.program,
                "PYTHONDONTWRITEBYTECODE": "1",
            }
        )
        arguments = [
            "--factory",
            "galaxy.webapps.galaxy.fast_factory:factory",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        self._pid = preloaded.start(self.python, arguments, self.folder, environment, self.folder / "galaxy.log")
        wait_until(self._answers, START_SECONDS, "Galaxy to answer")
        if self.history is None:
            user = self.post(
                "users", {"username": "ann", "email": "admin@example.org", "password": "a-long-password"}, key=ADMIN
            )
            self.key = self.post(f"users/{user['id']}/api_key", {}, key=ADMIN)
            self.history = self.post("histories", {"name": "tests"})["id"]

    def _answers(self):
        assert is_alive(self._pid), "Galaxy ended:\n" + self.log()[-4000:]
        try:
            self.call("GET", "version")
            return True
        except (OSError, Refused):
            return False

    def kill(self, number=signal.SIGKILL):
        if self._pid is not None and is_alive(self._pid):
            os.killpg(self._pid, number)
            end = time.monotonic() + 20
            while is_alive(self._pid):
                if time.monotonic() > end:
                    os.killpg(self._pid, signal.SIGKILL)
                time.sleep(0.02)
        self._pid = None

    def has_ended(self):
        return not is_alive(self._pid)

    def log(self):
        return (self.folder / "galaxy.log").read_text(errors="replace")

    # --- its API ------------------------------------------------------------------------------------------------------

    def call(self, method, target, body=None, key=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/api/{target}",
            data,
            method=method,
            headers={"x-api-key": key or self.key, "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(f"{method} {target}: {error.code} {error.read()[:500]!r}") from None
        try:
            return json.loads(text)
        except ValueError:
            return text.decode(errors="replace")

    def get(self, target, key=None):
        return self.call("GET", target, key=key)

    def post(self, target, body, key=None):
        return self.call("POST", target, body, key)

    def paste(self, text="1 2 3\n"):
        """The id of a dataset that is there; no test changes it, so that one text is made once. It comes from a tool: an upload
        imports all of Galaxy twice."""
        if text not in self._pasted:
            (job,) = self.run("hb_text", text=text)
            self.ok(job)
            self._pasted[text] = self.outputs(job)["out1"]["id"]
        return self._pasted[text]

    def paste_list(self, count):
        """The id of a list of so many datasets."""
        elements = [
            {"src": "pasted", "paste_content": f"element {i}\n", "ext": "txt", "name": f"e{i}"} for i in range(count)
        ]
        target = {"destination": {"type": "hdca"}, "collection_type": "list", "name": "many", "elements": elements}
        done = self.post("tools/fetch", {"history_id": self.history, "targets": [target]})
        self.ok(done["jobs"][0]["id"], 600)
        return done["output_collections"][0]["id"]

    def send(self, tool, environment):
        """From now on the tool's jobs go to that environment."""
        self._choices[tool] = environment
        path = self.folder / "choices.json"
        path.with_suffix(".new").write_text(json.dumps(self._choices))
        path.with_suffix(".new").replace(path)

    def run(self, tool, **inputs):
        """The jobs that it became."""
        body = {"tool_id": tool, "history_id": self.history, "inputs": inputs}
        return [job["id"] for job in self.post("tools", body)["jobs"]]

    def job(self, job):
        return self.get(f"jobs/{job}?full=true", ADMIN)

    def states(self, jobs):
        """{id: state} of jobs of this history."""
        found = self.get(f"jobs?history_id={self.history}&limit=5000", ADMIN)
        return {job["id"]: job["state"] for job in found if job["id"] in jobs}

    def ended(self, job, seconds=120):
        return wait_until(lambda: (found := self.job(job))["state"] in ENDED and found, seconds, f"job {job} to end")

    def ok(self, job, seconds=120):
        found = self.ended(job, seconds)
        assert found["state"] == "ok", f"{found}\n{self.log()[-6000:]}\n{self.engine.log_end()}"
        return found

    def until_running(self, job, seconds=60):
        wait_until(lambda: self.job(job)["state"] == "running", seconds, f"job {job} to run")

    def outputs(self, job):
        """{name of an output: the dataset}."""
        return {name: self.get(f"datasets/{one['id']}") for name, one in self.job(job)["outputs"].items()}

    def text(self, dataset):
        return self.get(f"datasets/{dataset}/display")

    def metrics(self, job):
        """{name: raw value}."""
        return {one["name"]: one["raw_value"] for one in self.get(f"jobs/{job}/metrics", ADMIN)}
