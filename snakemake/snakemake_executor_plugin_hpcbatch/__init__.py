"""Runs Snakemake's jobs as tasks of hpcbatch.

A job takes the first of three modes that can run it as Snakemake would:

    direct    a plain `shell:` job is a task by itself
    warm      Snakemake for this job, forked by a service that has it imported already (40 ms instead of 2 s)
    relaunch  Snakemake for this job, started anew, as every other executor does it

Decides nothing that the engine can decide, and imports little: every Snakemake start imports this.
"""

import asyncio
import os
import shlex
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Optional

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

_MODES = ("direct", "warm", "relaunch")
# How long the engine may hold an answer that has nothing to tell.
_FEED_WAIT_S = 20.0
# So long without an engine, and one is started.
_AWAY_S = 3.0
# What a job's own Snakemake takes, beside what the job asks for.
_SNAKEMAKE_BYTES = 128 << 20


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    mode: Optional[str] = field(
        default=None,
        metadata={
            "help": "Take this mode for every job that can run so, and the next safer one for the others, instead of the "
            "fastest: direct, warm or relaunch.",
            "choices": list(_MODES),
        },
    )
    default_mem_mb: Optional[int] = field(
        default=None,
        metadata={"help": "Memory of a job that asks for none, in MB. Without it such a job counts for its cpus' share of the node."},
    )
    program: Optional[str] = field(
        default=None,
        metadata={"help": "The program hpcbatch, by which an engine is started where none runs; else HPCBATCH_PROGRAM, else the one on PATH."},
    )
    on_exit: Optional[str] = field(
        default=None,
        metadata={
            "help": "What happens to jobs that run when Snakemake is interrupted: they are cancelled (cancel, the default), or "
            "go on and are taken up by the next Snakemake in this folder (keep).",
            "choices": ["cancel", "keep"],
        },
    )


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    # Secrets go into the task's environment, where no list of processes shows them.
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)


class _Open:
    """A job that is a task."""

    __slots__ = ("info", "asked", "submitted_at", "is_direct")

    def __init__(self, info, asked, submitted_at, is_direct):
        self.info = info
        self.asked = asked
        self.submitted_at = submitted_at
        self.is_direct = is_direct


def _rule_of(job):
    return job.groupid if job.is_group() else job.rule.name


class Executor(RemoteExecutor):
    # The wait thread looks at these before __post_init__ has run.
    _is_set_up = False
    _stopping = False

    def __post_init__(self):
        from . import hpcbatch
        from .hpcbatch import client as engine
        from .messages import Report
        from .resources import Offer
        from .run_state import client_of

        del hpcbatch
        self._engine_errors = engine
        settings = self.workflow.executor_settings or ExecutorSettings()
        self._settings = settings
        self._mode = settings.mode or "direct"
        self._job_cores = None
        self._open = {}
        self._open_lock = threading.Lock()
        self._said = set()
        self._offers = None
        self._offer_type = Offer
        self._report = Report()
        self._client_name = client_of(str(self.workflow.persistence.path))
        self._run = uuid.uuid4().hex[:12]
        self._number = 0
        self._environment = None
        self._sent_before = {}
        try:
            self._engine = engine.connect(settings.program)
            self._cursor = self._engine.get("/v1/events", after="now")["cursor"]
        except engine.Error as error:
            self._stopping = True
            raise WorkflowError(f"hpcbatch: {error}") from None
        # Submits cost the batch system nothing here: Snakemake's own bound (the one that nobody set) is for those who
        # call it once a job.
        limit = getattr(self.workflow.scheduling_settings, "max_jobs_per_timespan", None)
        if limit is not None and (limit.max_jobs, limit.timespan) == (100, 1):
            limit.max_jobs, limit.timespan = 10**9, 0.1
        self._is_set_up = True

    # --- submitting ---------------------------------------------------------------------------------------------------

    def run_jobs(self, jobs):
        for job in jobs:
            self.run_job_pre(job)
        new, adopted = [], []
        for job in jobs:
            task = self._task_that_runs(job)
            if task is None:
                new.append(job)
            else:
                adopted.append((job, task))
        for job, task in adopted:
            self._adopt(job, task)
        prepared = self._prepare(new)
        if prepared:
            self._submit(prepared)

    def run_job(self, job):
        self.run_jobs([job])

    def _prepare(self, jobs):
        """`[(job, keys of its task, whether it is direct)]`; a job that is refused is told so."""
        from .direct import Ineligible, check, command_of
        from .resources import Refusal

        eligible = []
        if self._mode == "direct":
            for job in jobs:
                try:
                    check(job, self.workflow)
                    eligible.append(job)
                except Ineligible as why:
                    self._say_once(job, f"runs warm, not direct: {why}")
                except (AttributeError, TypeError) as why:
                    # Another Snakemake than those that are known: the safe way.
                    self._say_once(job, f"runs warm, not direct: this Snakemake is not known well enough ({why})")
        commands = {}
        for job in eligible:
            try:
                self.workflow.async_run(job.prepare())
                commands[job] = command_of(job)
            except Ineligible as why:
                self._say_once(job, f"runs warm, not direct: {why}")
        prepared = []
        for job in jobs:
            try:
                task = self._needs_of(job)
            except Refusal as why:
                self._refuse(job, str(why))
                continue
            task["name"] = self._name_of(job)
            command = commands.get(job)
            if command is not None:
                task["command"] = command.argv
                task["env"] = command.env
                if command.directory:
                    task["directory"] = os.path.abspath(command.directory)
            else:
                self._put_snakemake(job, task)
            prepared.append((job, task, command is not None))
        return prepared

    def _needs_of(self, job):
        from .resources import needs_of

        if self._offers is None:
            sites = self._engine.get("/v1/sites")["sites"]
            self._offers = self._offer_type(sites)
        task, notices = needs_of(job.resources, job.threads, self._offers, self._settings.default_mem_mb)
        for notice in notices:
            if notice not in self._said:
                self._said.add(notice)
                self.logger.warning(f"hpcbatch: {notice}.")
        priority = getattr(job, "priority", 0)
        if isinstance(priority, int) and priority > 0:
            task["priority"] = min(priority, 1_000_000)
        return task

    def _put_snakemake(self, job, task):
        """The command that starts Snakemake for this job, and the service that forks it instead where there may be one."""
        if "memory" in task:
            task["memory"] += _SNAKEMAKE_BYTES
        self._job_cores = max(1, int(task["cpus"]))
        try:
            line = self.format_job_exec(job)
        finally:
            self._job_cores = None
        task["env"] = {name: str(value) for name, value in self.envvars().items()}
        words = shlex.split(line)
        python = self.get_python_executable()
        plain = words[:3] == [python, "-m", "snakemake"] and "&&" not in words
        if not plain or python != sys.executable:
            # It deploys something first, or runs where this Python is not.
            if self._mode != "relaunch":
                self._say_once(job, "runs relaunched, not warm: its node has to be prepared by commands of Snakemake's")
            task["command"] = ["sh", "-c", line]
            return
        task["command"] = [python, "-m", __name__ + ".child", *words[3:]]
        if self._mode != "relaunch":
            task["service"] = {
                "name": "snakemake",
                "command": [python, "-m", __name__ + ".hpcbatch.fork_service", __name__ + ".warm"],
            }

    def _submit(self, prepared):
        from .run_state import external_id

        self._number += 1
        key = f"{self._run}-{self._number}"
        infos = []
        for place, (job, _, _) in enumerate(prepared):
            infos.append(SubmittedJobInfo(job, external_jobid=external_id(self._client_name, key, place)))
            # Not RemoteExecutor's: what is active is kept here, by task.
            RealExecutor.report_job_submission(self, infos[-1])
        try:
            ids = self._send(key, [task for _, task, _ in prepared])
        except self._engine_errors.Refused as refusal:
            if len(prepared) == 1:
                self._refuse(prepared[0][0], str(refusal))
                return
            # Whose fault it is shows where they come in halves.
            half = len(prepared) // 2
            self._submit(prepared[:half])
            self._submit(prepared[half:])
            return
        except self._engine_errors.Error as error:
            for job, _, _ in prepared:
                self.workflow.persistence.cleanup(job)
            raise WorkflowError(f"hpcbatch: {error}") from None
        now = time.time()
        for info, (_, task, is_direct), number in zip(infos, prepared, ids):
            self._watch(number, _Open(info, task, now, is_direct))

    def _send(self, key, tasks):
        from .hpcbatch.client import handed_on

        if self._environment is None:
            self._environment = handed_on()
            mask = os.umask(0o077)
            os.umask(mask)
            self._umask = mask
        # What ends before its job is known is looked at when this lock is free again.
        with self._open_lock:
            ids = self._engine.submit(
                self._client_name, tasks, key, os.getcwd(), self._environment, self._umask
            )
            for number in ids:
                self._open[number] = None
        return ids

    def _watch(self, number, entry):
        with self._open_lock:
            early = self._open.get(number)
            self._open[number] = entry
        if early is not None:
            self._ended(number, early)

    def _refuse(self, job, why):
        info = SubmittedJobInfo(job)
        self.report_job_error(info, msg=f"hpcbatch cannot take this job: {why}. ")

    def _name_of(self, job):
        if job.is_group():
            return f"group {job.groupid}"
        wildcards = getattr(job, "wildcards_dict", None) or {}
        return " ".join([job.rule.name, *(f"{name}={value}" for name, value in wildcards.items())])[:200]

    def _say_once(self, job, what):
        line = f"hpcbatch: {'group' if job.is_group() else 'rule'} {_rule_of(job)} {what}."
        if line not in self._said:
            self._said.add(line)
            self.logger.info(line)

    @property
    def cores(self):
        # A job's own, not all that the node has: others run beside it.
        return self._job_cores if self._job_cores is not None else super().cores

    # --- taking up what an earlier Snakemake left ---------------------------------------------------------------------

    def _task_that_runs(self, job):
        """The task of an earlier Snakemake that does this job, where there is one and it has not failed."""
        from .run_state import place_of

        try:
            # Not `dag.incomplete_external_jobid`, which says nothing where incomplete files are to be made again: what
            # still makes them must not run twice at a time.
            marks = {place_of(mark, self._client_name) for mark in self.workflow.persistence.external_jobids(job)} - {None}
        except AttributeError:
            marks = {place_of(self.dag.incomplete_external_jobid(job), self._client_name)} - {None}
        if len(marks) != 1:
            return None
        key, place = marks.pop()
        try:
            if key not in self._sent_before:
                self._sent_before[key] = self._engine.get("/v1/keys", client=self._client_name, key=key)["ids"]
        except self._engine_errors.Refused:
            self._sent_before[key] = ()
        except self._engine_errors.Error as error:
            raise WorkflowError(f"hpcbatch: {error}") from None
        if place >= len(self._sent_before[key]):
            return None
        number = self._sent_before[key][place]
        with self._open_lock:
            self._open[number] = None  # from here on its end is not missed
        task = self._task(number)
        if task is None or task["state"] in ("failed", "cancelled") or not self._is_of_use(job, task):
            with self._open_lock:
                del self._open[number]
            return None
        return task

    def _task(self, number):
        """None where its history is gone."""
        try:
            return self._engine.get(f"/v1/tasks/{number}")
        except self._engine_errors.Refused:
            return None
        except self._engine_errors.Error as error:
            raise WorkflowError(f"hpcbatch: {error}") from None

    def _is_of_use(self, job, task):
        """Whether what the task does, or has done, is still what the job is.  One that is not is cancelled."""
        from .direct import command_text

        text = command_text(job) if "--mode" not in task["command"] else None
        if text is not None and task["command"][-1] != text:
            self.logger.info(f"hpcbatch: task {task['id']} of an earlier run is not what job {job.jobid} is now; it is cancelled.")
            self._cancel_and_wait(task["id"])
            return False
        if task["state"] != "done":
            return True
        try:
            newest = max((os.stat(file).st_mtime for file in job.input), default=0)
            return newest <= task["started_at"] and all(os.path.exists(file) for file in job.output)
        except OSError:
            return False

    def _cancel_and_wait(self, number):
        try:
            self._engine.cancel([number])
            while not self._engine.request("POST", "/v1/tasks/wait", {"ids": [number], "timeout": 10}, waits=10)["done"]:
                pass
        except self._engine_errors.Error as error:
            raise WorkflowError(f"hpcbatch: {error}") from None

    def _adopt(self, job, task):
        number = task["id"]
        self.logger.info(f"hpcbatch: job {job.jobid} is taken up: task {number} ({task['state']}).")
        needs = task.get("needs", {})
        entry = _Open(
            SubmittedJobInfo(job, external_jobid=next(iter(self.workflow.persistence.external_jobids(job)), None)),
            {"cpus": needs.get("cpus", 1), "memory": needs.get("memory", 0)},
            task.get("submitted_at"),
            "--mode" not in task["command"],
        )
        RealExecutor.report_job_submission(self, entry.info)
        self._watch(number, entry)
        # It may have ended before the feed was looked at, or between that and now.
        if task["state"] == "done":
            self._ended(number, task)

    # --- what ends ----------------------------------------------------------------------------------------------------

    async def check_active_jobs(self, active_jobs):
        for info in active_jobs:  # there are none: see _register
            yield info
        if not self._is_set_up:
            time.sleep(0.02)
            return
        try:
            events, cursor, _ = self._engine.events(self._client_name, self._cursor, _FEED_WAIT_S)
        except self._engine_errors.Error:
            if not self._stopping:
                self._wait_for_engine()
            return
        self._cursor = cursor
        with self._open_lock:
            mine = []
            for event in events:
                number = event["id"]
                if number not in self._open:
                    continue
                if self._open[number] is None:
                    self._open[number] = event  # its job is being registered
                else:
                    mine.append((number, event))
        for number, event in mine:
            self._ended(number, event)

    async def sleep(self):
        """The feed is waited for, not asked again after a while."""
        await asyncio.sleep(0)

    def _wait_for_engine(self):
        """It restarts, or was ended: then it is started again.  Tasks and results are on disk."""
        since = time.monotonic()
        while not self._stopping:
            try:
                self._engine.get("/v1/engine")
                return
            except self._engine_errors.Error:
                pass
            if time.monotonic() - since > _AWAY_S:
                try:
                    self._engine_errors.connect(self._settings.program)
                    return
                except self._engine_errors.Error as error:
                    self._say_away(error)
                    since = time.monotonic()
            time.sleep(0.1)

    def _say_away(self, error):
        line = f"hpcbatch: waiting for the engine: {error}."
        if line not in self._said:
            self._said.add(line)
            self.logger.warning(line)

    def _ended(self, number, event):
        with self._open_lock:
            entry = self._open.pop(number, None)
        if not isinstance(entry, _Open):
            return
        job = entry.info.job
        self._report.add(_rule_of(job), event, entry.asked, entry.submitted_at)
        if event["state"] == "done":
            if event.get("message"):
                self._say_once(job, event["message"])
            if entry.is_direct and job.benchmark is not None:
                self._write_benchmark(job, event)
            self.report_job_success(entry.info)
            return
        from .messages import failure

        self.report_job_error(entry.info, msg=failure(number, event, self._last_words(number), entry.asked))

    def _last_words(self, number):
        words = []
        for stream in ("stdout", "stderr"):
            try:
                words.append(self._engine.log_end(number, stream).strip("\n"))
            except self._engine_errors.Error as error:
                words.append(f"(its {stream} cannot be read: {error})")
        return "\n".join(text for text in words if text)

    def _write_benchmark(self, job, event):
        from .direct import write_benchmark

        try:
            write_benchmark(job, event, self.workflow.output_settings.benchmark_extended)
        except OSError as error:
            self.logger.error(f"hpcbatch: cannot write the benchmark file {job.benchmark}: {error}")

    def print_job_error(self, job_info, msg=None, **kwargs):
        # The message says where to look; there is no other log.
        if job_info.external_jobid is not None:
            kwargs["external_jobid"] = job_info.external_jobid
        super(RemoteExecutor, self).print_job_error(job_info, msg=msg, **kwargs)

    # --- the end ------------------------------------------------------------------------------------------------------

    def cancel(self):
        if self._is_set_up:
            with self._open_lock:
                numbers = list(self._open)
            if numbers and self._settings.on_exit == "keep":
                # Snakemake would remove the folders that are still empty.
                self.dag.cleanup_workdir = lambda: None
                self.logger.info(f"hpcbatch: {len(numbers)} jobs go on; start Snakemake here again to take them up.")
            elif numbers:
                try:
                    self._engine.cancel(numbers)
                    self.logger.info(f"hpcbatch: {len(numbers)} jobs were cancelled.")
                except self._engine_errors.Error as error:
                    self.logger.error(f"hpcbatch: cannot cancel {len(numbers)} jobs: {error}")
        self.shutdown()

    def cancel_jobs(self, active_jobs):
        """Never called: `cancel` knows what is active."""

    def shutdown(self):
        self._stopping = True
        if self._is_set_up:
            self._engine.interrupt()
            for line in self._report.lines():
                self.logger.info(line)
        super().shutdown()
