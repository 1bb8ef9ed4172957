"""An executor of submitit whose jobs are tasks.

    import submitit

    executor = submitit.AutoExecutor(folder="logs", cluster="hpcbatch")
    executor.update_parameters(timeout_min=60, cpus_per_task=4, mem_gb=8, hpcbatch_site="cluster")
    jobs = executor.map_array(fit, samples)
    results = [job.result() for job in jobs]

Nodes must see the folder, as with SLURM. What is handed in together is one array; nothing is waited for between submits. A callable with
a `checkpoint` method is stopped a minute and a half before its time is up, or when its pilot is told to end, and goes on from there.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from submitit.core import core, job_environment, utils

from .call_folder import check_folder
from .client import Error, as_it_stands
from .work import Client

__all__ = ["HpcbatchExecutor", "HpcbatchJob", "HpcbatchJobEnvironment"]

_BEFORE_THE_END_S = 90
_RETRIES = "SUBMITIT_HPCBATCH_RETRIES"
_STATES = {
    "waiting": "PENDING",
    "held": "PENDING",
    "running": "RUNNING",
    "finishing": "RUNNING",
    "unknown": "RUNNING",
    "done": "COMPLETED",
    "cancelled": "CANCELLED",
}
_parameters = frozenset(
    {
        "name",
        "timeout_min",
        "mem_gb",
        "cpus_per_task",
        "gpus_per_node",
        "nodes",
        "tasks_per_node",
        "stderr_to_stdout",
        "site",
        "tags",
        "setup",
    }
)


class HpcbatchInfoWatcher(core.InfoWatcher):
    """Asks the user's engine."""

    engine: Client | None = None

    def client(self) -> Client:
        if self.engine is None:
            self.engine = Client(name="submitit")
        return self.engine

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        return str(self.get_info(job_id, mode).get("State", "UNKNOWN"))

    def update(self) -> None:
        self._num_calls += 1
        for number in self._registered - self._finished:
            try:
                task = self.client().task(number)
            except Error as error:
                # One that is not known any more ended long ago: its results are in its folder, or nowhere.
                state = "MISSING" if getattr(error, "status", None) == 404 else "UNKNOWN"
                self._info_dict[number] = {"JobID": number, "State": state, "Message": str(error)}
            else:
                state = _STATES.get(task.state) or ("TIMEOUT" if task.failure == "time_task" else "FAILED")
                self._info_dict[number] = {
                    "JobID": number,
                    "State": state,
                    "NodeList": str(task.facts.get("node", "")),
                    "Message": task.message or "",
                }
            if self.is_done(number, mode="cache"):
                self._finished.add(number)
        self._last_status_check = time.time()


class HpcbatchJob(core.Job[core.R]):
    """A task, or one of an array: `job_id` is like 12 or 12.3."""

    watcher: HpcbatchInfoWatcher = HpcbatchInfoWatcher()

    def cancel(self, check: bool = True) -> None:
        try:
            self.watcher.client().cancel(self.job_id)
        except Error:
            if check:
                raise

    def _interrupt(self, timeout: bool = False) -> None:
        """As if its time were over, or else as if its pilot went: it saves its state, where it has a checkpoint, and runs again."""
        name = signal.Signals(HpcbatchJobEnvironment._usr_sig()).name
        verb, more = ("signal", {"signal": name}) if timeout else ("requeue", {})
        if self.watcher.client()._change(verb, self.job_id, **more) == 0:
            raise Error(f"the task {self.job_id} does not run; only what runs can be interrupted")


class HpcbatchJobEnvironment(job_environment.JobEnvironment):
    """Within a task."""

    # What nobody sets is what one process has.
    _env = {"job_id": "HPCBATCH_TASK_ID"} | {
        name: f"SUBMITIT_HPCBATCH_{name.upper()}"
        for name in ("num_tasks", "num_nodes", "node", "global_rank", "local_rank")
    }

    def _handle_signals(self, paths: utils.JobPaths, submission: utils.DelayedSubmission) -> None:
        self._end_if_over(paths)
        for pickle in (paths.submitted_pickle, paths.result_pickle):
            # What was cut off while it was written, which submitit takes for another process at work.
            pickle.with_suffix(pickle.suffix + ".save_tmp").unlink(missing_ok=True)
        if not hasattr(submission.function, "checkpoint"):
            return  # it ends as any task does, and is tried again where that was its pilot's fault
        handler = job_environment.SignalHandler(self, paths, submission)
        signal.signal(self._usr_sig(), handler.checkpoint_and_try_requeue)

        def told_to_end(number: int, _: Any) -> None:
            # Its pilot goes, or its user cancels it: no time of its own was up.
            job_environment._checkpoint(submission, paths.submitted_pickle, submission._timeout_countdown)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, told_to_end)
        limit = submission._timeout_min * 60
        last = threading.Timer(max(limit / 2, limit - _BEFORE_THE_END_S), os.kill, (os.getpid(), self._usr_sig()))
        last.daemon = True
        last.start()

    @staticmethod
    def _end_if_over(paths: utils.JobPaths) -> None:
        """Where an attempt before has left a result: its pilot was lost before it could tell, or what may go on has failed."""
        try:
            outcome, _ = utils.pickle_load(paths.result_pickle)
        except FileNotFoundError:
            return
        except Exception:
            outcome = "unreadable"
        if outcome == "success":
            sys.exit(0)
        # What may go on is tried again whatever it ended by; beyond that it is retried by hand.
        spared = paths.result_pickle.with_suffix(".spared")
        if outcome == "error" and (spared.stat().st_size if spared.exists() else 0) < int(
            os.environ.get(_RETRIES, "0")
        ):
            with open(spared, "a") as file:
                file.write(".")
            sys.exit(1)
        spared.unlink(missing_ok=True)
        paths.result_pickle.unlink()


class HpcbatchExecutor(core.Executor):
    """`python`: the command that is Python on the nodes. Parameters are submitit's own, with `hpcbatch_site`, `hpcbatch_tags` and
    `hpcbatch_setup` (lines for a shell to run first). `max_num_timeout`: how often one with a `checkpoint` goes on."""

    job_class: type[core.Job[Any]] = HpcbatchJob

    def __init__(
        self, folder: Path | str, max_num_timeout: int = 3, max_pickle_size_gb: float = 1.0, python: str | None = None
    ) -> None:
        super().__init__(folder)
        # What is pickled passes there.
        check_folder(str(utils.JobPaths.get_first_id_independent_folder(self.folder).absolute()))
        self.max_num_timeout = max_num_timeout
        self.max_pickle_size_gb = max_pickle_size_gb
        self._python = [sys.executable] if python is None else shlex.split(python)

    @classmethod
    def affinity(cls) -> int:
        return 0  # by name only

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {"site", "tags", "setup"}

    def _internal_update_parameters(self, **parameters: Any) -> None:
        for word in sorted(parameters.keys() - _parameters):
            raise ValueError(f"hpcbatch has no parameter '{word}': there are {', '.join(sorted(_parameters))}")
        for word in ("nodes", "tasks_per_node"):
            if parameters.get(word, 1) not in (0, 1):
                raise ValueError(f"{word}={parameters[word]}: a task is one process on one node")
        super()._internal_update_parameters(**parameters)

    def _internal_process_submissions(
        self, delayed_submissions: Sequence[utils.DelayedSubmission]
    ) -> list[core.Job[Any]]:
        folder = utils.JobPaths.get_first_id_independent_folder(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        pickles = []
        for delayed in delayed_submissions:
            delayed.set_timeout(self.parameters.get("timeout_min", 5), self.max_num_timeout)
            pickles.append(folder / f"{uuid.uuid4().hex}.pkl")
            delayed.dump(pickles[-1])
            if (
                len(pickles) == 1
                and (size := pickles[0].stat().st_size / 2**30 * len(delayed_submissions)) > self.max_pickle_size_gb
            ):
                pickles[0].unlink()
                raise RuntimeError(
                    f"functions and arguments come to some {size:.2f} GB: max_pickle_size_gb is {self.max_pickle_size_gb}"
                )
        can_go_on = any(hasattr(delayed.function, "checkpoint") for delayed in delayed_submissions)
        engine = HpcbatchJob.watcher.client()
        whole = None
        try:
            whole = engine.submit(**self._task(can_go_on), array=f"1-{len(pickles)}" if len(pickles) > 1 else None)
            numbers = (
                [whole.id] if len(pickles) == 1 else [f"{whole.id}.{index}" for index in range(1, len(pickles) + 1)]
            )
            jobs: list[core.Job[Any]] = []
            for number, pickle in zip(numbers, pickles):
                jobs.append(HpcbatchJob(folder=self.folder, job_id=number))
                jobs[-1].paths.move_temporary_file(pickle, "submitted_pickle")
            engine.release(whole)
        except BaseException:
            # Nothing of it may stay held, or lie about.
            if whole is not None:
                with contextlib.suppress(Error):
                    engine.cancel(whole)
            for pickle in pickles:
                pickle.unlink(missing_ok=True)
            raise
        return jobs

    def _task(self, can_go_on: bool) -> dict[str, Any]:
        asked = self.parameters
        folder = as_it_stands(str(self.folder))
        log = folder.replace("%j", "{id}").replace("%A", "{id}").replace("%t", "0") + "/{id}_0_log"
        words = [*self._python, "-u", "-m", "submitit.core._submit", str(self.folder)]
        both = bool(asked.get("stderr_to_stdout"))
        if asked.get("setup") or both:
            words = [
                "/bin/bash",
                "-c",
                "\n".join([*asked.get("setup", ()), 'exec "$@"' + (" 2>&1" if both else "")]),
                "bash",
                *words,
            ]
        task = {
            "command": words,
            "name": asked.get("name", "submitit"),
            "cpus": asked.get("cpus_per_task"),
            "mem": int(asked["mem_gb"] * 2**30) if "mem_gb" in asked else None,
            "gpus": asked.get("gpus_per_node") or None,
            "time": asked.get("timeout_min", 5) * 60,
            "site": asked.get("site"),
            "tags": asked.get("tags"),
            "env": {"SUBMITIT_EXECUTOR": self.name(), _RETRIES: str(self.max_num_timeout if can_go_on else 0)},
            "stdout": log + ".out",
            "stderr": None if both else log + ".err",
            "retries": self.max_num_timeout if can_go_on else 0,
            # Until their pickles have the names that the tasks look for.
            "hold": True,
        }
        return {name: value for name, value in task.items() if value is not None}
