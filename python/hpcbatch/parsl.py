"""A provider of Parsl whose blocks are tasks.

    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from hpcbatch.parsl import Provider

    provider = Provider(cores_per_node=4, mem_per_node=8, walltime="01:00:00", max_blocks=10)
    config = Config(executors=[HighThroughputExecutor(provider=provider)])

The arguments have the names of Parsl's SlurmProvider; `site` and `tags` are those of `hpcbatch.Client.submit`. What is said there of a
batch system (partition, account, scheduler_options) is said of a site in hpcbatch's configuration. A block is on one node.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from parsl.jobs.states import JobState, JobStatus
from parsl.launchers import SingleNodeLauncher
from parsl.providers.base import ExecutionProvider
from parsl.providers.errors import SubmitException
from parsl.utils import RepresentationMixin

from .client import Error, Refused, as_it_stands
from .durations import walltime_s
from .values import ListOf
from .work import Client

__all__ = ["Provider"]

_STATES = {
    "waiting": JobState.PENDING,
    "held": JobState.HELD,
    "running": JobState.RUNNING,
    "finishing": JobState.RUNNING,
    "unknown": JobState.RUNNING,
    "done": JobState.COMPLETED,
    "cancelled": JobState.CANCELLED,
}


class Provider(ExecutionProvider, RepresentationMixin):
    """`mem_per_node` in GB, `walltime` as HH:MM:SS. Starts an engine where none runs, at the first block."""

    nodes_per_block = 1

    def __init__(
        self,
        cores_per_node: int = 1,
        mem_per_node: float | None = None,
        gpus_per_node: int | None = None,
        init_blocks: int = 1,
        min_blocks: int = 0,
        max_blocks: int = 1,
        parallelism: float = 1,
        walltime: str = "00:10:00",
        worker_init: str = "",
        site: str | None = None,
        tags: ListOf[str] | None = None,
        launcher: Any = None,
        program: str | None = None,
    ) -> None:
        self.cores_per_node: int | None = cores_per_node
        self.mem_per_node: float | None = mem_per_node
        self.gpus_per_node = gpus_per_node
        self.init_blocks = init_blocks
        self.min_blocks = min_blocks
        self.max_blocks = max_blocks
        self.parallelism = parallelism
        self.walltime = walltime
        self.worker_init = worker_init
        self.site = site
        self.tags = tags
        self.launcher: Any = launcher or SingleNodeLauncher()
        self.program = program
        self.script_dir: str | None = None
        self.resources: dict[object, Any] = {}
        self._time = walltime_s(walltime)
        self._engine: Client | None = None

    @property
    def label(self) -> str:
        return "hpcbatch"

    @property
    def status_polling_interval(self) -> int:
        return 2

    def _client(self) -> Client:
        if self._engine is None:
            self._engine = Client(program=self.program, name="parsl")
            self._engine._ends_with_this_process()
        return self._engine

    def submit(self, command: str, tasks_per_node: int, job_name: str = "parsl.auto") -> object:
        """Queues a block; its task's id. Raises SubmitException."""
        lines = [self.worker_init, f"export PARSL_CORES={self.cores_per_node}"]
        if self.mem_per_node:
            lines.append(f"export PARSL_MEMORY_GB={self.mem_per_node}")
        lines.append(self.launcher(command, tasks_per_node, self.nodes_per_block))
        paths: dict[str, Any] = {}
        base = ""
        if self.script_dir:
            os.makedirs(self.script_dir, exist_ok=True)
            base = os.path.join(os.path.abspath(self.script_dir), job_name.replace("/", "_"))
            paths = {stream: f"{as_it_stands(base)}.{{id}}.{stream}" for stream in ("stdout", "stderr")}
        try:
            task = self._client().submit(
                ["/bin/bash", "-c", "\n".join(lines)],
                cpus=self.cores_per_node,
                mem=None if self.mem_per_node is None else int(self.mem_per_node * 2**30),
                gpus=self.gpus_per_node,
                time=self._time,
                site=self.site,
                tags=self.tags,
                name=as_it_stands(job_name),
                kind="parsl-block",
                retries=0,
                **paths,
            )
        except Error as error:
            raise SubmitException(job_name, str(error)) from error  # type: ignore[no-untyped-call]  # of parsl
        self.resources[task.id] = {stream: f"{base}.{task.id}.{stream}" for stream in paths}
        return task.id

    def status(self, job_ids: Sequence[object]) -> list[JobStatus]:
        """Of each block, in their order; where no engine answers, what was last known is not known to hold."""
        return [self._status_of(str(number)) for number in job_ids]

    def _status_of(self, number: str) -> JobStatus:
        try:
            task = self._client().task(number)
        except Error as error:
            # Whatever else is wrong may pass, and a block that Parsl takes for lost is counted against the site.
            is_gone = isinstance(error, Refused) and error.status == 404
            return JobStatus(JobState.MISSING if is_gone else JobState.UNKNOWN, str(error))
        state = _STATES.get(task.state)
        if state is None:
            state = JobState.TIMEOUT if task.failure == "time_task" else JobState.FAILED
        paths = self.resources.get(number, {})
        return JobStatus(state, task.message, task.exit_code, paths.get("stdout"), paths.get("stderr"))

    def cancel(self, job_ids: Sequence[object]) -> list[bool]:
        """Ends blocks; of each whether it was told so."""
        return [self._cancelled(str(number)) for number in job_ids]

    def _cancelled(self, number: str) -> bool:
        try:
            self._client().cancel(number)
        except Error:
            return False
        return True
