"""Between Snakemake and the engine: jobs become tasks, and what has become of tasks is told to Snakemake.

Snakemake calls everything here on its main thread, but `check_active_jobs`, which waits for what ends on one of its own.
"""

import asyncio
import os
import shlex
import signal
import sys
import threading
import time
import uuid

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

_PACKAGE = __name__.rpartition(".")[0]
# Jobs are sent when all are ready to be sent, or so long after the last that were.
_FLUSH_S = 0.4
# More files than these are listed in a file.
_MOST_WAITED_FOR = 20
# What a job's own Snakemake takes, beside what the job asks for.
_SNAKEMAKE_BYTES = 128 << 20


class _Entry:
    """A job that is a task."""

    __slots__ = ("info", "asked", "submitted_at", "is_direct")

    def __init__(self, info, asked, submitted_at, is_direct):
        self.info = info
        self.asked = asked  # the keys of its task
        self.submitted_at = submitted_at
        self.is_direct = is_direct


class Executor(RemoteExecutor):
    # The wait thread looks at these before __post_init__ has run.
    _feed = None
    _job_cores = None

    def __post_init__(self):
        from hpcbatch import client as engine
        from hpcbatch.feed import Feed
        from .kept_files import KeptFiles
        from .run_state import client_of
        from .takeover import Takeover
        from .telling import Telling
        from .waiting import Waiting

        self._settings = self.workflow.executor_settings
        self._mode = getattr(self._settings, "mode", None) or "direct"
        self._telling = Telling(self.logger)
        self._is_leaving = False
        self._has_begun = False
        self._run = uuid.uuid4().hex[:12]
        self._submits = 0
        self._sending = None
        # Jobs whose tasks are done and whose files Snakemake has not looked at yet.
        self._unchecked = {}
        self._folder = os.getcwd()
        self._error = engine.Error
        self._refused = engine.Refused
        try:
            if self.workflow.remote_execution_settings.immediate_submit:
                raise engine.Error(
                    "--immediate-submit is not for this executor: leave it out, jobs are submitted when they are ready"
                )
            program = getattr(self._settings, "program", None)
            self._engine = engine.connect(program)
            persistence = str(self.workflow.persistence.path)
            self._name = client_of(persistence)
            self._kept = KeptFiles(persistence, self._run, self._engine, self._name)
            self._takeover = Takeover(self._engine, self._name, self.workflow, self._telling.say, self._image_of)
            self._waiting = Waiting(self._engine, self._name, engine.Error, self._telling.say)
            feed = Feed(self._engine, self._name, self._ended, self._telling.warn_once, lambda: engine.connect(program))
            feed.begin()
            self._look_ahead()
        except (engine.Error, OSError) as error:
            self._end_wait_thread()
            raise WorkflowError(f"hpcbatch: {error}") from None
        except WorkflowError:
            self._end_wait_thread()
            raise
        # From here on the wait thread has it.
        self._feed = feed
        # Submits cost the batch system nothing here: Snakemake's own bound (the one that nobody set) is for those who
        # call it once a job.
        limit = getattr(self.workflow.scheduling_settings, "max_jobs_per_timespan", None)
        self._lifts_limit = limit is not None and (limit.max_jobs, limit.timespan) == (100, 1)
        if self._lifts_limit:
            limit.max_jobs = 10**9

    def _end_wait_thread(self):
        """Left alone it would look once more while Python ends, and say that it could not."""
        self.wait = False
        self.wait_thread.join()

    def _look_ahead(self):
        """What the engine has, and what of the workflow can never run on it."""
        from .before import cap_threads, refuse_hopeless, refuse_local_containers
        from .resources import Offer

        ignored = (getattr(self._settings, "ignore", None) or "").replace(",", " ").split()
        self._offer = Offer(self._engine.patiently("GET", "/v1/sites")["sites"], ignored)
        cap_threads(self.workflow, self._offer, self._telling)
        if getattr(self._settings, "containers", False):
            refuse_local_containers(self.workflow)
        default = getattr(self._settings, "default_mem_mb", None)
        refuse_hopeless(self.workflow, self._offer, default, self._telling, self._refusal_of)

    def _refusal_of(self, task):
        """Why the engine would never run it, or None."""
        submit = {"client": self._name, "tasks": [{**task, "command": ["true"]}]}
        try:
            return self._engine.patiently("POST", "/v1/tasks/try", submit)["tasks"][0].get("refusal")
        except self._refused as refusal:
            if refusal.status != 400:
                raise
            return str(refusal)

    def _end_beside(self):
        """Snakemake's handler of TERM takes a lock that the thread which it interrupts may hold, while it selects jobs: it waited
        for itself for ever."""
        graceful = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is threading.main_thread() and graceful == getattr(
            self.workflow.scheduler, "exit_gracefully", None
        ):
            signal.signal(signal.SIGTERM, lambda *args: threading.Thread(target=graceful, args=args).start())

    def _lift_limit(self):
        """Else each round of Snakemake's scheduler is followed by another a second later, its end too."""
        scheduler = self.workflow.scheduler
        if getattr(scheduler, "job_rate_limiter", None) is not None and "_job_count" in getattr(
            scheduler, "resources", {}
        ):
            scheduler.job_rate_limiter = None
            scheduler.resources["_job_count"] = sys.maxsize

    # --- submitting ---------------------------------------------------------------------------------------------------

    def run_jobs(self, jobs):
        if not self._has_begun:
            self._has_begun = True
            self._end_beside()
            if self._lifts_limit:
                self._lift_limit()
        prepared, flushed = [], time.monotonic()
        for job in jobs:
            self.run_job_pre(job)
            if not self._take_up(job) and (one := self._prepare(job)) is not None:
                prepared.append(one)
            # Ten thousand take a while: the first of them run by then.
            if prepared and time.monotonic() - flushed >= _FLUSH_S:
                self._submit(prepared)
                prepared, flushed = [], time.monotonic()
        if prepared:
            self._submit(prepared)

    def run_job(self, job):
        self.run_jobs([job])

    def _prepare(self, job):
        """`(job, keys of its task, whether it is direct)`; None where it was refused, which it is told."""
        from .ground import ground_of, on_its_ground
        from .resources import Refusal
        from .telling import name_of, rule_of

        try:
            image = self._image_of(job)
            command = self._direct_command(job, image) if self._mode == "direct" or image else None
            task = self._needs_of(job)
        except Refusal as why:
            self._refuse(job, str(why))
            return None
        task["name"] = name_of(job)
        task["kind"] = rule_of(job)
        # All its paths begin there.
        task["shared"] = [os.getcwd()]
        if command is None:
            self._put_snakemake(job, task)
        else:
            if job.is_shadow:
                from .shadows import keep_out_of_shadows

                keep_out_of_shadows()
            self._run_async(job.prepare())
            task["command"] = on_its_ground(command.argv, ground_of(job), self._kept.file, command.is_posix)
            task["env"] = command.env
            if image:
                from .containers import container_of

                task["container"] = container_of(job, image)
            if job.shadow_dir:
                task["directory"] = os.path.abspath(job.shadow_dir)
        return job, task, command is not None

    def _run_async(self, coroutine):
        run = getattr(self.workflow, "async_run", None)
        if run is None:  # Snakemake 8
            from snakemake.common import async_run as run
        run(coroutine)

    def _image_of(self, job):
        if not getattr(self._settings, "containers", False):
            return None
        from .containers import image_of

        return image_of(job)

    def _direct_command(self, job, image):
        from .command import command_of
        from .direct import Ineligible, check

        try:
            if image:
                from .containers import check_image

                check_image(image)
            check(job, self.workflow, bool(image))
            return command_of(job, self.workflow, bool(image))
        except Ineligible as error:
            why = str(error)
        except (AttributeError, TypeError) as error:
            # Another Snakemake than those that are known: the safe way.
            why = f"this Snakemake is not known well enough ({error})"
        if image:
            from .containers import is_left_to_snakemake
            from .resources import Refusal

            if not is_left_to_snakemake(self.workflow):
                raise Refusal(
                    f"it is to run in {image}, and only a plain command does so by --hpcbatch-containers: {why}; "
                    "with --sdm apptainer Snakemake runs it there itself"
                )
        self._telling.say_once(job, f"runs warm, not direct: {why}")
        return None

    def _needs_of(self, job):
        from .resources import needs_of, unknown

        if names := unknown(job.resources, self.workflow.global_resources, self._offer.ignored):
            self._telling.say_once(
                job,
                f"asks for {', '.join(names)}, which hpcbatch does not know: its jobs run without (--resources limits how many do at a "
                "time)",
            )
        default = getattr(self._settings, "default_mem_mb", None)
        task, notices = needs_of(job.resources, job.threads, self._offer, default)
        for notice in notices:
            self._telling.warn_once(notice)
        priority = getattr(job, "priority", 0)
        if isinstance(priority, int) and priority > 0:
            task["priority"] = min(priority, 1_000_000)
        return task

    def _put_snakemake(self, job, task):
        """The command that starts Snakemake for this job, and the service that forks it instead where there may be one."""
        if "memory" in task:
            task["memory"] += _SNAKEMAKE_BYTES
        from .kept_files import keep_sources

        keep_sources(self.workflow.sourcecache, self._kept)
        self._job_cores = max(1, int(task.get("cpus") or max(way["cpus"] for way in task["one_of"])))
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
                self._telling.say_once(
                    job, "runs relaunched, not warm: its node has to be prepared by commands of Snakemake's"
                )
            task["command"] = ["sh", "-c", line]
            return
        task["command"] = [python, "-m", _PACKAGE + ".child", *words[3:]]
        # A task over several nodes runs in no service.
        if self._mode != "relaunch" and "nodes" not in task:
            task["service"] = {
                "name": "snakemake",
                "command": [python, "-m", "hpcbatch.fork_service", _PACKAGE + ".warm"],
            }

    def get_job_args(self, job, **options):
        """RemoteExecutor's, which waits for its folder of temporary files too, and may have the list of all in there: it is gone when
        this Snakemake has left."""
        from snakemake_interface_executor_plugins.utils import format_cli_arg

        from .direct import shared_usage

        args = RealExecutor.get_job_args(self, job, **options)
        files = (
            [str(path) for path in job.get_wait_for_files()] if "input-output" in shared_usage(self.workflow) else ()
        )
        if len(files) > _MOST_WAITED_FOR:
            listed = self._kept.file("".join(path + "\n" for path in files))
            return f"{args} {format_cli_arg('--wait-for-files-file', listed)}"
        return f"{args} {format_cli_arg('--wait-for-files', files)}" if files else args

    def additional_general_args(self):
        # `--cache` without names of rules is not handed on by Snakemake, which takes "all" for "none" there.
        return "--cache" if self.workflow.workflow_settings.cache in ([], (), set(), frozenset()) else ""

    def _submit(self, prepared):
        from .run_state import Mark, fingerprint_of

        self._submits += 1
        key = f"{self._run}-{self._submits}"
        infos = []
        for place, (job, _, is_direct) in enumerate(prepared):
            mark = Mark(
                key,
                place,
                len(prepared),
                is_direct,
                fingerprint_of(job, self.workflow.persistence, self._image_of(job)),
            )
            infos.append(SubmittedJobInfo(job, external_jobid=mark.text(self._name)))
            # Not RemoteExecutor's: what is active is known to the feed.
            RealExecutor.report_job_submission(self, infos[-1])
        with self._feed:
            try:
                ids = self._send(key, [task for _, task, _ in prepared])
            except self._refused as refusal:
                if refusal.status not in (400, 413):
                    raise WorkflowError(f"hpcbatch: {refusal}") from None
                if len(prepared) == 1:
                    self._refuse(prepared[0][0], str(refusal))
                    return
                # Whose fault it is shows where they come in halves.
                half = len(prepared) // 2
                self._submit(prepared[:half])
                self._submit(prepared[half:])
                return
            except self._error as error:
                # It may have been taken: the marks stay, for the next Snakemake to find out.
                raise WorkflowError(f"hpcbatch: {error}") from None
            now = time.time()
            for info, (_, task, is_direct), number in zip(infos, prepared, ids):
                # What Snakemake shows; what it keeps is the mark.
                info.external_jobid = number
                self._feed.watch(number, _Entry(info, task, now, is_direct))

    def _send(self, key, tasks):
        from hpcbatch.client import with_names_as_they_stand
        from hpcbatch.surroundings import handed_on, own_umask

        self._sending = key
        tasks = [with_names_as_they_stand(task) for task in tasks]
        ids = self._engine.submit(self._name, tasks, key, self._folder, handed_on(), own_umask())
        self._sending = None
        return ids

    def _take_up(self, job):
        """Whether an earlier Snakemake has sent this job."""
        with self._feed:
            try:
                taken = self._takeover.task_of(job)
            except self._error as error:
                raise WorkflowError(f"hpcbatch: {error}") from None
            if taken is None:
                return False
            task, mark = taken
            number = task["id"]
            self._telling.say(f"job {job.jobid} is taken up: task {number} ({task['state']}).")
            needs = task.get("needs", {})
            asked = {"cpus": needs.get("cpus", 1), "memory": needs.get("memory", 0)}
            info = SubmittedJobInfo(job, external_jobid=mark.text(self._name))
            RealExecutor.report_job_submission(self, info)
            info.external_jobid = number
            self._feed.watch(number, _Entry(info, asked, task.get("submitted_at"), mark.is_direct))
            if task["state"] == "done":
                self._feed.tell(number, task)
        return True

    def _refuse(self, job, why):
        self._fail(SubmittedJobInfo(job), f"hpcbatch cannot take this job: {why}.", has_run=False)

    @property
    def cores(self):
        # A job's own, not all that the node has: others run beside it.
        return self._job_cores if self._job_cores is not None else super().cores

    # --- what ends ----------------------------------------------------------------------------------------------------

    async def check_active_jobs(self, active_jobs):
        for info in active_jobs:  # there are none: the feed has them
            yield info
        if self._feed is None or self.workflow.scheduler is None:  # who is told of ends, and of errors here
            time.sleep(0.02)
        else:
            self._feed.wait(self._waiting.due_in())
            self._waiting.look()

    async def sleep(self):
        """The feed is waited for, not asked again after a while."""
        await asyncio.sleep(0)

    def _ended(self, entry, number, event):
        job = entry.info.job
        self._telling.add(job, event, entry.asked, entry.submitted_at)
        if event["state"] == "done":
            if event.get("message"):
                self._telling.say_once(job, event["message"])
            if entry.is_direct and job.benchmark is not None:
                self._write_benchmark(job, event)
            self._unchecked[job] = (entry, number, event)
            self.report_job_success(entry.info)
        elif not self._is_leaving:  # then all are cancelled, which is said once
            self._fail(entry.info, self._why_failed(entry, number, event), "started_at" in event)

    def handle_job_success(self, job):
        self._unchecked.pop(job, None)
        super().handle_job_success(job)

    def handle_job_error(self, job):
        """Of a job that ran well too, whose files are missing or not as its rule has them."""
        if (unchecked := self._unchecked.pop(job, None)) is not None:
            entry, number, event = unchecked
            self._telling.failed(job, self._why_failed(entry, number, event), number, has_run=True)
            self._telling.count_as_failed(job)
        super().handle_job_error(job)

    def _fail(self, info, message, has_run):
        self._telling.failed(info.job, message, info.external_jobid, has_run)
        self.workflow.scheduler.error_callback(info.job)

    def _why_failed(self, entry, number, event):
        from .messages import failure

        try:
            return failure(number, event, self._last_words(number), entry.asked)
        except Exception as error:
            self._telling.cannot_tell(error)
            return f"Task {number} failed. More: hpcbatch explain {number}; hpcbatch log {number}"

    def _last_words(self, number):
        words = []
        for stream in ("stdout", "stderr"):
            try:
                words.append(self._engine.log_end(number, stream).strip("\n"))
            except self._error as error:
                words.append(f"(its {stream} cannot be read: {error})")
        return "\n".join(text for text in words if text)

    def _write_benchmark(self, job, event):
        from .direct import write_benchmark

        try:
            write_benchmark(job, event, self.workflow.output_settings.benchmark_extended)
        except Exception as error:  # of Snakemake's own code, on a thread that must not end
            self._telling.error(f"cannot write the benchmark file {job.benchmark}: {error}")

    # --- the end ------------------------------------------------------------------------------------------------------

    def cancel(self):
        if self._feed is not None:
            self._cancel_or_keep()
        self.shutdown()

    def _cancel_or_keep(self):
        self._is_leaving = True
        numbers = self._feed.numbers()
        if getattr(self._settings, "on_exit", None) == "keep":
            if numbers:
                # Snakemake would remove the folders that are still empty.
                self.dag.cleanup_workdir = lambda: None
                self._telling.say(f"{len(numbers)} jobs go on; start Snakemake here again to take them up.")
            return
        try:
            if self._sending is not None:  # it was interrupted while the engine took it
                numbers += self._engine.ids_of_key(self._name, self._sending)
            if numbers:
                self._engine.cancel(numbers)
                self._telling.say(f"{len(numbers)} jobs were cancelled.")
        except self._error as error:
            self._telling.error(f"cannot cancel {len(numbers)} jobs: {error}; they are: {' '.join(numbers)}")

    def cancel_jobs(self, active_jobs):
        """Never called: `cancel` knows what is active."""

    def shutdown(self):
        if self._feed is not None:
            if not self._is_leaving:
                self._cancel_or_keep()  # after an error on the wait thread jobs may be left
            self._feed.stop()
            self._telling.report()
            try:
                self._kept.remove()
            except self._error as error:
                self._telling.warn_once(f"what jobs were to read is left below .snakemake/hpcbatch/kept: {error}")
        super().shutdown()
