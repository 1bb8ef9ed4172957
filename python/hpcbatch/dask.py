"""A cluster of dask.distributed whose workers are tasks.

    from dask.distributed import Client
    from hpcbatch.dask import Cluster

    cluster = Cluster(cores=4, memory="8GB", walltime="01:00:00")
    cluster.adapt(minimum=0, maximum=20)
    client = Client(cluster)

The arguments have the names of dask-jobqueue's, so that moving over is one import, and its `jobqueue.yaml` gives those that
were not said. What those say of the batch system (queue, account, directives) is said once, of a site, in hpcbatch's own
configuration; a warning names what was not used.
The scheduler runs in the process that makes the cluster; nodes have to reach it, by `interface` or `host`.

A worker that is scaled down hands its results to others before it ends, one whose time is up as well. One that is lost with
its pilot is started anew, and dask computes again what only it had.
"""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import dask.utils
from dask import config
from distributed.core import Status
from distributed.deploy.utils import nprocesses_nthreads
from distributed.deploy.spec import ProcessInterface, SpecCluster
from distributed.scheduler import Scheduler

from .client import Error
from .durations import walltime_s
from .values import ListOf
from .work import Client, Submission

__all__ = ["Cluster"]

# A worker's nanny, and what Python itself takes.
_BESIDE_THE_DATA = 128 << 20
# Between a worker's end and its task's: to hand over what it has.
_TO_HAND_OVER_S = 60.0
_OF_THE_SITE = frozenset(
    "queue project account job_extra job_extra_directives job_directives_skip header_skip job_cpu job_mem job_name resource_spec"
    " shebang submit_command_extra cancel_command_extra log_directory memory_per_core_property_name cancel_command_extra disk".split()
)
# With what each is where neither the call nor jobqueue.yaml says it.
_OF_A_WORKER: dict[str, Any] = {
    "cores": None,
    "memory": None,
    "processes": None,
    "walltime": "01:00:00",
    "name": None,
    "python": None,
    "interface": None,
    "death_timeout": 60,
    "local_directory": None,
    "shared_temp_directory": None,
    "worker_command": "distributed.cli.dask_worker",
    "worker_extra_args": (),
    "job_script_prologue": (),
    "env_extra": (),
    "extra": (),
    "scheduler_options": {},
}


def _section(name: str | None) -> tuple[str, Mapping[str, Any]]:
    """What jobqueue.yaml says, with its own name: the section `name`, else the one that it has."""
    sections = config.get("jobqueue", None) or {}
    if name is None and len(sections) > 1:
        raise ValueError(
            f"dask's configuration has jobqueue.{', jobqueue.'.join(sorted(sections))}: say which by config_name="
        )
    if name is not None and name not in sections:
        raise ValueError(f"config_name={name!r}: dask's configuration has no jobqueue.{name}")
    name = name or next(iter(sections), "")
    return f"jobqueue.{name}", {key.replace("-", "_"): value for key, value in (sections.get(name) or {}).items()}


def _settings(given: Mapping[str, Any], config_name: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """`(what workers are made by, names of what sites say)`: of the call, else of jobqueue.yaml. Raises ValueError or TypeError."""
    where, said = _section(config_name)
    for word in sorted(given.keys() - _OF_THE_SITE - _OF_A_WORKER.keys()):
        raise TypeError(f"Cluster has no argument '{word}'")
    for word in sorted(said.keys() - _OF_THE_SITE - _OF_A_WORKER.keys()):
        raise ValueError(
            f"{where}.{word.replace('_', '-')} in dask's configuration is nothing that is known here; take it out"
        )
    found = {word: given.get(word) for word in _OF_A_WORKER}
    for word, default in _OF_A_WORKER.items():
        if found[word] is None:
            found[word] = default if said.get(word) is None else said[word]
    if found["cores"] is None or found["memory"] is None:
        raise ValueError(
            f"say how many cores and how much memory a task of workers has: Cluster(cores={found['cores'] or 8}, "
            f"memory={found['memory'] or '24GB'!r})"
        )
    unused = [word for word in _OF_THE_SITE if given.get(word) not in (None, [], "")]
    # Its own first line is what every section has.
    unused += [f"{where}.{word}" for word in _OF_THE_SITE - {"shebang"} if said.get(word) not in (None, [], "")]
    return found, sorted(unused)


def _shared_out(cores: Any, memory: Any, processes: Any) -> tuple[int, int, int, int]:
    """`(cores, bytes, processes, bytes that the data of each may have)`; as many processes as threads in each, where nobody says how
    many, as dask-jobqueue does it."""
    if not isinstance(cores, int) or cores < 1:
        raise ValueError(f"cores={cores!r} is no whole number from 1 up")
    processes = nprocesses_nthreads(cores)[0] if processes is None else processes  # type: ignore[no-untyped-call]
    if not isinstance(processes, int) or processes < 1 or processes > cores:
        raise ValueError(f"{processes} processes cannot share {cores} cores: each needs one")
    whole = memory if isinstance(memory, int) else dask.utils.parse_bytes(memory)
    limit = (whole - _BESIDE_THE_DATA * processes) // processes
    if limit < _BESIDE_THE_DATA:
        raise ValueError(
            f"{memory} is too little for {processes} workers: each needs 256 MiB (processes= says how many there are)"
        )
    return cores, whole, processes, limit


def _seconds(walltime: str | float) -> float:
    """Of "01:30:00", "1-00:00", as batch systems have it, or "90m", as dask."""
    if isinstance(walltime, (int, float)):
        return float(walltime)
    if ":" in walltime:
        return walltime_s(walltime)
    try:
        return float(dask.utils.parse_timedelta(walltime))
    except (ValueError, KeyError) as error:
        raise ValueError(f"walltime {walltime!r} is no duration: write 01:30:00, 90m or seconds") from error


class _Worker(ProcessInterface):
    """A task that is a worker, or several."""

    name: object

    def __init__(
        self, scheduler: str, name: object, engine: Client, task: Mapping[str, Any], words: Sequence[str], prologue: str
    ) -> None:
        super().__init__(scheduler=scheduler, name=name)  # type: ignore[no-untyped-call]
        self._engine = engine
        command = [*words[:3], scheduler, "--name", str(name), *words[3:]]
        if prologue:
            command = ["/bin/bash", "-c", f"{prologue}\nexec {shlex.join(command)}"]
        self._submit = {**task, "command": command, "name": f"dask-worker-{name}"}
        self._task: Submission | None = None

    async def start(self) -> None:
        self._task = await asyncio.to_thread(lambda: self._engine.submit(**self._submit))
        await super().start()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            try:
                await asyncio.to_thread(task.cancel)
            except Error as error:
                warnings.warn(f"worker {self.name} is task {task} and could not be cancelled: {error}", stacklevel=2)
        await super().close()  # type: ignore[no-untyped-call]


class Cluster(SpecCluster):
    """`cores`, `memory` and `processes` are of one task: its workers share them; without `processes` there are about as many as
    threads in each. `walltime` is the longest that it runs; a worker that ends by it is replaced. `site`, `tags` and `gpus` as for
    `hpcbatch.Client.submit`; `env` goes to the workers. `config_name` is a section of jobqueue.yaml, which says what is not said here.
    Raises ValueError for what no worker can have, and hpcbatch.Error where no engine can be had."""

    def __init__(
        self,
        n_workers: int = 0,
        *,
        cores: int | None = None,
        memory: str | int | None = None,
        processes: int | None = None,
        walltime: str | float | None = None,
        site: str | None = None,
        tags: ListOf[str] | None = None,
        gpus: float | Mapping[str, float] | None = None,
        env: Mapping[str, str] | None = None,
        nanny: bool = True,
        host: str | None = None,
        protocol: str | None = None,
        dashboard_address: str | None = ":8787",
        security: Any = None,
        scheduler_cls: Any = Scheduler,
        program: str | None = None,
        config_name: str | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        silence_logs: Any = "error",
        **as_in_jobqueue: Any,
    ) -> None:
        given = {"cores": cores, "memory": memory, "processes": processes, "walltime": walltime, **as_in_jobqueue}
        settings, unused = _settings(given, config_name)
        if unused:
            warnings.warn(
                f"not used: {', '.join(unused)}. Queues, accounts and directives are said of a site in hpcbatch's configuration",
                stacklevel=2,
            )
        self._cores, self._memory, self._processes, limit = _shared_out(
            *map(settings.get, ("cores", "memory", "processes"))
        )
        time = _seconds(settings["walltime"])
        # None ends before it could do anything.
        lifetime = max(time - _TO_HAND_OVER_S, time / 2)
        self._certificates: list[Any] = []
        words = [settings["python"] or sys.executable, "-m", settings["worker_command"]]
        words += ["--nthreads", str(self._cores // self._processes), "--nworkers", str(self._processes)]
        words += ["--memory-limit", str(limit)]
        words += ["--nanny" if nanny else "--no-nanny", "--death-timeout", str(settings["death_timeout"])]
        words += ["--lifetime", f"{lifetime:.0f}s", "--lifetime-stagger", f"{min(30.0, lifetime / 10):.0f}s"]
        if settings["local_directory"]:
            words += ["--local-directory", settings["local_directory"]]
        if protocol:
            words += ["--protocol", protocol]
        if security is True:
            from distributed.security import Security

            security = Security.temporary()  # type: ignore[no-untyped-call]
        words += self._of_security(security, settings["shared_temp_directory"])
        words += map(str, [*settings["worker_extra_args"], *settings["extra"]])
        task = {
            "cpus": self._cores,
            "mem": self._memory,
            "time": time,
            "kind": "dask-worker",
            "site": site,
            "tags": tags,
            "gpus": gpus,
            "env": dict(env) if env else None,
            "retries": 0,
        }
        self._task = {key: value for key, value in task.items() if value is not None}
        self._words = words
        self._prologue = "\n".join([*settings["job_script_prologue"], *settings["env_extra"]])
        self._engine = Client(program=program, name="dask")
        self._engine._ends_with_this_process()
        options: dict[str, Any] = {
            "protocol": protocol,
            "dashboard_address": dashboard_address,
            "security": security,
            **settings["scheduler_options"],
        }
        if settings["interface"]:
            options["interface"] = settings["interface"]
        if host:
            options["host"] = host
        super().__init__(  # type: ignore[no-untyped-call]
            scheduler={"cls": scheduler_cls, "options": options},
            asynchronous=asynchronous,
            loop=loop,
            silence_logs=silence_logs,
            security=security,
            name=settings["name"],
        )
        if n_workers:
            self.scale(n_workers)

    def _of_security(self, security: Any, folder: str | None) -> list[str]:
        """Certificates that are in memory are put into `folder`, where the user alone may read them."""
        if not security:
            return []
        told = security.get_tls_config_for_role("worker")
        words = []
        for option, key in (("--tls-ca-file", "ca_file"), ("--tls-cert", "cert"), ("--tls-key", "key")):
            path = told.get(key) or told.get(f"tls_{key}")
            if path is not None and "\n" in path and folder:
                file = tempfile.NamedTemporaryFile(
                    "w", dir=folder, prefix="hpcbatch-dask-", suffix=".pem"
                )  # noqa: SIM115
                self._certificates.append(file)  # gone with the cluster
                file.write(path)
                file.flush()
                path = file.name
            if path is None or "\n" in path:
                raise ValueError(
                    "workers elsewhere read certificates from files: give Security(tls_ca_file=..., tls_worker_cert=..., ...), or "
                    "shared_temp_directory=, a folder that nodes see"
                )
            words += [option, os.path.abspath(path)]
        return words

    def _new_worker_name(self, worker_number: int) -> str:
        return f"{self.name}-{worker_number}"

    def new_worker_spec(self) -> dict[str, dict[str, Any]]:
        """How one more task is started; dask calls it as it scales up."""
        spec: dict[str, Any] = {
            "cls": _Worker,
            "options": {"engine": self._engine, "task": self._task, "words": self._words, "prologue": self._prologue},
        }
        if self._processes > 1:
            spec["group"] = [f"-{number}" for number in range(self._processes)]
        name = self._new_worker_name(self._i)
        while name in self.worker_spec:
            self._i += 1
            name = self._new_worker_name(self._i)
        self._i += 1
        return {name: spec}

    def _threads_per_worker(self) -> int:
        return self._cores // self._processes

    def _memory_per_worker(self) -> int:
        return self._memory // self._processes

    # As dask-jobqueue has it.
    def scale(  # type: ignore[override]
        self, n: int | None = None, jobs: int = 0, memory: Any = None, cores: int | None = None
    ) -> Any:
        """To `n` workers, or to `jobs` tasks, or to as many as have so much memory or so many cores together."""
        if n is None:
            n = jobs * self._processes
        return super().scale(n, memory=memory, cores=cores)  # type: ignore[no-untyped-call]

    def adapt(self, *args: Any, minimum_jobs: int | None = None, maximum_jobs: int | None = None, **more: Any) -> Any:
        """As `distributed`'s, with bounds in workers or (`minimum_jobs`, `maximum_jobs`) in tasks."""
        if minimum_jobs is not None:
            more["minimum"] = minimum_jobs * self._processes
        if maximum_jobs is not None:
            more["maximum"] = maximum_jobs * self._processes
        return super().adapt(*args, **more)

    def job_script(self) -> str:
        """What a worker's task runs, to look at."""
        lines = [f"# {key}: {value}" for key, value in self._task.items()]
        command = shlex.join([*self._words[:3], self.scheduler_address, "--name", "NAME", *self._words[3:]])
        return "\n".join([*lines, *filter(None, [self._prologue]), command]) + "\n"

    def _update_worker_status(self, op: str, msg: Any) -> None:
        name = self.scheduler_info["workers"][msg]["name"] if op == "remove" else None
        super()._update_worker_status(op, msg)  # type: ignore[no-untyped-call]
        if name is not None:
            # dask forgets a worker that was lost some seconds later, and asks for no other one.
            delay = dask.utils.parse_timedelta(config.get("distributed.deploy.lost-worker-timeout"))
            asyncio.get_running_loop().call_later(math.ceil(delay) + 1, self._replace_lost, str(name))

    def _replace_lost(self, worker: str) -> None:
        """In place of a task all of whose workers are gone comes another, if it is still wanted."""
        name = worker.rpartition("-")[0] if self._processes > 1 else worker
        there = {str(told["name"]) for told in self.scheduler_info["workers"].values()}
        if self.status != Status.running or there & {name, *(f"{name}-{number}" for number in range(self._processes))}:
            return
        lost = self.workers.pop(name, None)
        if lost is not None:
            self._futures.add(asyncio.ensure_future(lost.close()))
        if name in self.worker_spec:
            self._correct_state()  # type: ignore[no-untyped-call]
