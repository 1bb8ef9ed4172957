"""Galaxy's jobs as tasks of an engine.  Galaxy decides what runs and judges how it ended; the engine decides where and when.

    runners:
      hpcbatch: {load: hpcbatch_galaxy.runner:HpcbatchJobRunner, workers: 4}
"""

import contextlib
import logging
import os
import queue
import sys
import tarfile
import threading
import time

from galaxy import model
from galaxy.jobs.runners import AsynchronousJobRunner, AsynchronousJobState
from sqlalchemy import select

from . import destination, jobs, metadata, metrics, patience, staged_files, staged_job
from .bursts import Bursts
from .cancels import Cancels
from hpcbatch import client as engine
from hpcbatch import surroundings
from hpcbatch.feed import Feed
from .remarks import remark
from .verdict import not_put_back, used, verdict_of, why_it_waits
from .words import Refusal

log = logging.getLogger(__name__)

__all__ = ("HpcbatchJobRunner",)

_STOPPED = (model.Job.states.STOPPED, model.Job.states.STOPPING)
_GONE = (*model.Job.terminal_states, model.Job.states.DELETING)
_UNWANTED = (*_GONE, *_STOPPED)
# Which of the waiting jobs run is one question for all; not more often than this.
_LOOK_S = 1.0
# Users are told why a job waits after so long, and again as often; so many of them at a look.
_EXPLAIN_S = 30.0
_EXPLAINED = 5
# Tasks, or jobs, of one question to the engine or the database.
_PAGE = 500
# For one question on a thread that others wait for; later it is asked again.
_PATIENCE_S = 1.0


class _Tasks:
    """Of one job: the ids of its tasks, the script's first, what they ask for, how they ended."""

    def __init__(self, ids, asked):
        self.ids = ids
        self.asked = asked
        self.submitted_at = time.time()
        self.ends = {}
        self.is_over = False
        # Held while Galaxy is told of the job's state: what is said late must not undo its end.
        self.telling = threading.Lock()
        self.is_ending = False
        self.can_be_entered = False
        self.explained_at = time.monotonic()
        self.explained = None

    @property
    def waiting(self):
        """The task that the job waits for; None: all have ended."""
        return next((number for number in self.ids if number not in self.ends), None)


def _resubmissions_of(job):
    return sum(1 for state in job.state_history if state.state == model.Job.states.RESUBMITTED)


class HpcbatchJobRunner(AsynchronousJobRunner):
    runner_name = "HpcbatchRunner"
    start_methods = [*AsynchronousJobRunner.start_methods, "_init_own_threads"]

    def __init__(self, app, nworkers, **kwargs):
        kwargs.setdefault("runner_param_specs", {}).update(
            # Where the engine listens; the engine of Galaxy's own user where it is left out.
            engine={"map": str, "default": ""},
            # The program `hpcbatch`, which starts an engine where none runs; PATH where it is left out.
            program={"map": str, "default": ""},
            # Tells several Galaxy servers of one engine apart.
            instance={"map": str, "default": "galaxy"},
            # How long the service that sets metadata may say nothing while it starts.
            metadata_start={"map": str, "default": ""},
            # How long it stays without work, as long as its pilot does.
            metadata_idle={"map": str, "default": ""},
        )
        super().__init__(app, nworkers, **kwargs)
        self._name = f"galaxy:{self.runner_params.instance}"
        self._client = engine.Client(self.runner_params.engine or None)
        self._bursts = Bursts(self._client.submit_many)
        self._feed = Feed(self._client, self._name, self._task_ended, log.warning, self._revive)
        self._lock = threading.Lock()
        self._parked = []  # (method, argument): again once the engine is back
        self._long_ends = queue.Queue()  # states of jobs
        self._cancels = Cancels(self._client, self._name, self._unwanted_tasks)
        self._look_next = 0.0
        self._metrics = metrics.make_known(app.job_metrics)
        self._said = set()  # once is enough
        log.info("jobs go to the engine at %s, as those of %s", self._client.path, self._name)
        patience.wait_for_locks(app.model.engine, lambda thread: thread.name.startswith(f"{self.runner_name}."))
        self._service_terms = self._read_service_terms()
        self._say_what_does_not_reach_jobs()
        self._check_destinations()

    # --- what administrators wrote ------------------------------------------------------------------------------------

    def _read_service_terms(self):
        try:
            return metadata.terms_of(self.runner_params.metadata_start, self.runner_params.metadata_idle)
        except Refusal as why:
            log.error("job_conf: runner: %s: not looked at", why)
            return metadata.terms_of("", "")

    def _say_what_does_not_reach_jobs(self):
        if self.app.config.external_chown_script:
            log.warning(
                "galaxy.yml: external_chown_script is not heeded: all jobs of this runner run as the user that Galaxy runs as"
            )
        if kept_back := jobs.kept_back(surroundings.handed_on()):
            log.info(
                "of the server's environment jobs do not get %s; what tools need, an environment's env: gives them",
                ", ".join(kept_back),
            )

    def _say_what_the_step_lacks(self, name, variables):
        left = metadata.left_to_the_tool(variables)
        if left and ("env", name, *left) not in self._said:
            self._said.add(("env", name, *left))
            log.warning(
                "job_conf: environment %r: env: %s: made by a shell for tools alone; the step that sets metadata does without "
                "(metadata: job has it in the job script, within the tool's memory)",
                name,
                ", ".join(left),
            )

    def _check_destinations(self):
        """Says of each of our destinations what is wrong with it; the others work."""
        config = self.app.job_config
        ours = {plugin["id"] for plugin in config.runner_plugins if plugin["load"].startswith(__name__)}
        for name, destinations in config.destinations.items():
            for one in destinations if isinstance(destinations, (list, tuple)) else [destinations]:
                if one.runner not in ours or one.id != name:
                    continue
                try:
                    wanted = destination.read(one.params)
                except Refusal as why:
                    log.error("job_conf: environment %r cannot be used, its jobs will fail: %s", name, why)
                    continue
                except Exception:
                    log.exception("job_conf: environment %r cannot be read", name)
                    continue
                self._say_what_the_engine_refuses(name, wanted)
                self._say_what_is_left_out(name, wanted)
                if wanted.metadata == "warm":
                    self._say_what_the_step_lacks(name, one.env)

    def _say_what_the_engine_refuses(self, name, wanted):
        """Of what only the engine reads: GPUs, and ways that would all do."""
        task = {**wanted.task, "command": ["true"]}
        submit = engine.submit_of(self._name, [task], f"check of {name}", "/", {}, surroundings.own_umask())
        try:
            self._client.request("POST", "/v1/tasks/try", submit)
        except engine.EngineAway:
            pass  # a job will be told
        except engine.Refused as refusal:
            if refusal.status == 400:
                log.error("job_conf: environment %r cannot be used, its jobs will fail: %s", name, refusal)

    def _say_what_is_left_out(self, name, wanted):
        if wanted.left_out and (name, *wanted.left_out) not in self._said:
            self._said.add((name, *wanted.left_out))
            log.warning(
                "job_conf: environment %r: %s: not looked at; batch jobs are submitted with the options of their site "
                "(options: in the engine's configuration)",
                name,
                ", ".join(wanted.left_out),
            )

    # --- submitting ---------------------------------------------------------------------------------------------------

    def queue_job(self, job_wrapper):
        if job_wrapper.get_state() == model.Job.states.PAUSED:
            return  # over its quota: before 25.1 Galaxy hands it on nevertheless
        resubmissions = _resubmissions_of(job_wrapper.get_job())
        if resubmissions and not job_wrapper.job_destination.env:
            self._restore_variables(job_wrapper.job_destination)
        try:
            wanted = destination.read(job_wrapper.job_destination.params, is_strict=resubmissions == 0)
        except Refusal as why:
            log.error("(%s) environment %r: %s", job_wrapper.get_id_tag(), job_wrapper.job_destination.id, why)
            job_wrapper.fail(f"This job's destination is misconfigured: {why}")
            return
        self._say_what_is_left_out(job_wrapper.job_destination.id, wanted)
        requirements = [
            (found.resource_type, found.value_or_expression)
            for found in getattr(job_wrapper.tool, "resource_requirements", None) or ()
        ]
        destination.with_tool(wanted, requirements)
        if wanted.unknown:
            log.info(
                "(%s) of its old environment, not looked at: %s", job_wrapper.get_id_tag(), ", ".join(wanted.unknown)
            )
        key = self._key_of(job_wrapper)
        if wanted.stage == "copy":
            staged_job.set_parameters(job_wrapper)
        try:
            # Submitted before a crash: its script runs, or has run, and must not be written anew.
            ids = self._client.ids_of_key(self._name, key, _PATIENCE_S)
        except engine.EngineAway as away:
            log.warning("(%s) waits for the engine: %s", job_wrapper.get_id_tag(), away)
            self._park(self.queue_job, job_wrapper)
            return
        if ids:
            state = self._state_of(job_wrapper)
            self._watch(state, ids, wanted.task)
            self.look_at_tasks(state)
            return
        who = self._who_sets_metadata(job_wrapper, wanted)
        try:
            if wanted.stage == "copy":
                staged_job.begin(job_wrapper)
        except Refusal as why:
            job_wrapper.fail(str(why))
            return
        if not self.prepare_job(job_wrapper, include_metadata=who == "job"):
            return
        state = self._state_of(job_wrapper)
        try:
            state.submit = self._submit_of(state, wanted, who == "warm", key)
        except Refusal as why:
            job_wrapper.fail(str(why))
            return
        except Exception:
            log.exception("(%s) could not write the job script", job_wrapper.get_id_tag())
            job_wrapper.fail("Could not write the job script", exception=True)
            return
        state.asked = wanted.task
        self.submit(state)

    def _restore_variables(self, there):
        """Galaxy 24.2 forgets `env:` of the environment that it sends a job to again."""
        with contextlib.suppress(KeyError):
            configured = self.app.job_config.get_destination(there.id)
            if configured.runner == there.runner:
                there.env = configured.env

    def _key_of(self, job_wrapper):
        job = job_wrapper.get_job()
        return jobs.key_of(job_wrapper.get_id_tag(), job.create_time, _resubmissions_of(job))

    def _state_of(self, job_wrapper, external=None):
        return AsynchronousJobState(
            job_wrapper=job_wrapper,
            job_destination=job_wrapper.job_destination,
            files_dir=job_wrapper.working_directory,
            job_id=external,
        )

    def _who_sets_metadata(self, job_wrapper, wanted):
        """One of destination.METADATA."""
        if wanted.metadata in ("warm", "job") and "celery" in job_wrapper.metadata_strategy:
            return "external"
        if wanted.metadata == "warm" and not metadata.can_be_warm(job_wrapper):
            return "job"
        return wanted.metadata

    def _submit_of(self, state, wanted, metadata_apart, key):
        job_wrapper = state.job_wrapper
        places = staged_job.places_of(job_wrapper)
        # Galaxy adds what the tool alone is to know, credentials among it.
        variables = list(job_wrapper.job_destination.env)
        text = self.get_job_file(
            job_wrapper,
            exit_code_path=state.exit_code_file,
            shell=job_wrapper.shell,
            slots_statement=jobs.slots_statement(wanted.slots),
            memory_statement=jobs.memory_statement(wanted.slots),
            **(staged_job.SCRIPT_OPTIONS if places else {}),
        )
        self.write_executable_script(state.job_file, text, job_io=job_wrapper.job_io)
        directory = os.path.abspath(job_wrapper.working_directory)
        environment = jobs.environment_of(surroundings.handed_on())
        needs = {**wanted.task, **jobs.kind_of(job_wrapper.tool)}
        if places:
            task = staged_job.task_of(state, needs, places)
            task = engine.with_names_as_they_stand(task)
            return engine.submit_of(self._name, [task], key, directory, environment, surroundings.own_umask())
        script = jobs.script_task(
            needs,
            os.path.abspath(state.job_file),
            directory,
            os.path.abspath(state.output_file),
            os.path.abspath(state.error_file),
            state.job_name,
        )
        step = None
        if metadata_apart and (command := metadata.command_of(job_wrapper)):
            # Before 26.1 Galaxy looks at VIRTUAL_ENV alone.
            own = sys.prefix if sys.prefix != sys.base_prefix else None
            galaxys = metadata.environment_of(
                job_wrapper.galaxy_lib_dir, job_wrapper.galaxy_virtual_env or own, environment, variables
            )
            self._say_what_the_step_lacks(job_wrapper.job_destination.id, variables)
            step = metadata.task_of(command, directory, galaxys, wanted.task, self._service_terms)
        tasks = [engine.with_names_as_they_stand(task) for task in jobs.tasks_of(script, step)]
        return engine.submit_of(self._name, tasks, key, directory, environment, surroundings.own_umask())

    def _find_container(self, job_wrapper, **where):
        places = staged_job.places_of(job_wrapper)
        if places is None:
            found = super()._find_container(job_wrapper, **where)
        else:
            found = staged_job.bound(
                super()._find_container(job_wrapper, **staged_job.where_for_container(job_wrapper, places))
            )
        if not found:
            self._say_that_there_is_no_container(job_wrapper)
        return found

    def _say_that_there_is_no_container(self, job_wrapper):
        there, tool = job_wrapper.job_destination, job_wrapper.tool
        enabled = destination.containers_of(there.params)
        if enabled and ("container", there.id, tool.id) not in self._said:
            self._said.add(("container", there.id, tool.id))
            log.warning(
                "(%s) environment %r has %s, and no container was found for the tool %s: its jobs run without one "
                "(require_container: true fails them instead)",
                job_wrapper.get_id_tag(),
                there.id,
                " and ".join(enabled),
                tool.id,
            )

    def submit(self, state):
        tag = state.job_wrapper.get_id_tag()
        if state.job_wrapper.get_state() in _UNWANTED:
            log.info("(%s) was deleted or stopped before it was submitted", tag)
            self._clean_up_deleted(state.job_wrapper)
            return
        with self._feed:  # a short task has ended before it is watched
            try:
                ids = self._bursts.submit(state.submit)
            except engine.EngineAway as away:
                log.warning("(%s) waits for the engine: %s", tag, away)
                self._park(self.submit, state)
                return
            except engine.Refused as refusal:
                if refusal.status == 409:
                    # Taken before a crash, and what is asked for has changed since: it is the same job.
                    self._park(self.queue_job, state.job_wrapper)
                    return
                log.error("(%s) the engine refused it: %s", tag, refusal)
                state.job_wrapper.fail(f"The job could not be submitted: {refusal}")
                return
            state.submit = None
            self._watch(state, ids, state.asked)

    def _watch(self, state, ids, asked):
        external = jobs.external_id(ids)
        try:
            state.job_wrapper.set_external_id(external)
            is_unwanted = state.job_wrapper.get_state() in _UNWANTED
        except Exception:
            self._cancels.ids(ids)  # nobody would know of them
            raise
        state.job_id = external
        if is_unwanted:
            # Deleted or stopped while it was being submitted: nobody stops it any more.
            self._cancels.ids(ids)
        state.tasks = _Tasks(ids, asked)
        self._follow_tasks(state)
        log.info("(%s/%s) is with the engine", state.job_wrapper.get_id_tag(), external)

    def _follow_tasks(self, state):
        self.monitor_job(state)
        for number in state.tasks.ids:
            self._feed.watch(number, state)

    def look_at_tasks(self, state):
        """On a worker: whether they have ended already."""
        try:
            for number in state.tasks.ids:
                self._feed.look(number)
        except engine.EngineAway:
            self._park(self.look_at_tasks, state)

    # --- watching -----------------------------------------------------------------------------------------------------

    def _init_own_threads(self):
        threading.Thread(name=f"{self.runner_name}.feed", target=self._follow, daemon=True).start()
        threading.Thread(
            name=f"{self.runner_name}.cancels", target=self._cancels.run, args=(lambda: self._should_stop,), daemon=True
        ).start()
        for number in range(self.nworkers):
            threading.Thread(name=f"{self.runner_name}.ends-{number}", target=self._take_long_ends, daemon=True).start()

    def _follow(self):
        while not self._should_stop:
            try:
                self._feed.wait()
                self._catch_up()
            except Exception:
                log.exception("the feed of the engine")
                time.sleep(1)

    def _revive(self):
        if self.runner_params.engine:
            raise engine.Error(f"no engine answers at {self.runner_params.engine}")
        engine.connect(self.runner_params.program or None)

    def _park(self, method, argument):
        with self._lock:
            self._parked.append((method, argument))

    def _catch_up(self):
        """What waited for the engine."""
        with self._lock:
            parked, self._parked = self._parked, []
        for item in parked:
            self.work_queue.put(item)

    def _task_ended(self, state, number, event):
        """On the feed's thread, or one that looked."""
        tasks = state.tasks
        with self._lock:
            tasks.ends[number] = event
            if tasks.is_over:
                return
            is_over = tasks.is_over = len(tasks.ends) == len(tasks.ids)
        log.debug("(%s) task %s has ended", state.job_id, number)
        self.work_queue.put((self.job_ended if is_over else self.script_ended, state))

    def script_ended(self, state):
        """On a worker: its outputs are still to be looked at, where it is worth that."""
        tasks = state.tasks
        if tasks.ids[0] not in tasks.ends or tasks.is_over:
            return
        # Whatever its exit code, which may be seen here later than there.
        if verdict_of(tasks.ends[tasks.ids[0]], tasks.asked, has_exit_code=True) is not None:
            self._cancels.ids(tasks.ids[1:])  # what is left of it is not to be looked at
            return
        self._tell_running(state)

    def _tell_running(self, state):
        tasks = state.tasks
        with tasks.telling:
            if state.running or tasks.is_ending:
                return
            state.running = True
            tasks.explained, tasks.explained_at = None, time.monotonic()
            if state.job_wrapper.get_state() == model.Job.states.QUEUED:
                state.job_wrapper.change_state(model.Job.states.RUNNING)  # takes the remark away

    def job_ended(self, state):
        """On a worker: all tasks of a job have ended."""
        job_wrapper, tasks = state.job_wrapper, state.tasks
        with tasks.telling:
            tasks.is_ending = True
        if job_wrapper.get_state() in _GONE:
            self._clean_up_deleted(job_wrapper)
            return  # Galaxy has made an end of it
        event = tasks.ends[tasks.ids[0]]
        try:
            self._metrics.keep(job_wrapper.working_directory, used(event, tasks.submitted_at))
        except OSError as error:
            log.warning("(%s/%s) cannot keep what it used: %s", job_wrapper.get_id_tag(), state.job_id, error)
        wanted = destination.read(state.job_destination.params, is_strict=False)
        if wanted.stage == "copy" or self._looks_here(job_wrapper, wanted):
            self._long_ends.put(state)
        else:
            self._take_end(state, wanted, lambda method, state: method(state))

    def _take_long_ends(self):
        """What takes long here, files that come back and metadata that is set beside the server, keeps no job from being submitted."""
        while not self._should_stop:
            try:
                state = self._long_ends.get(timeout=1)
            except queue.Empty:
                continue
            with self.app.model.session():
                try:
                    self._ensure_db_session(state)
                    wanted = destination.read(state.job_destination.params, is_strict=False)
                    self._take_end(state, wanted, lambda method, state: self.work_queue.put((method, state)))
                except Exception:
                    log.exception("(%s/%s) its end", state.job_wrapper.get_id_tag(), state.job_id)
                    self.work_queue.put((self.fail_job, state))

    def _looks_here(self, job_wrapper, wanted):
        """Whether its outputs are looked at beside the server."""
        return bool(
            job_wrapper.requires_setting_metadata and self._who_sets_metadata(job_wrapper, wanted) == "external"
        )

    def _take_end(self, state, wanted, then):
        """`then(method, state)`: what a worker does next."""
        job_wrapper, tasks = state.job_wrapper, state.tasks
        is_stopped = job_wrapper.get_state() in _STOPPED
        event, verdict = tasks.ends[tasks.ids[0]], None
        if wanted.stage == "copy":
            event = self._with_words(event)
            verdict = self._put_back(state)
        verdict = verdict or verdict_of(event, tasks.asked, os.path.exists(state.exit_code_file))
        if tasks.explained is not None:
            remark(job_wrapper, None)  # nothing waits any more
        if verdict is not None and not is_stopped:
            state.runner_state = getattr(state.runner_states, verdict.runner_state)
            state.fail_message = verdict.message
            state.stop_job = False
            then(self.fail_job, state)
            return
        for path in self._streams_of(state, wanted, is_stopped):
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "ab").close()  # it never started: there is nothing that it said
        if self._looks_here(job_wrapper, wanted):
            self._handle_metadata_externally(job_wrapper, resolve_requirements=True)
        then(self.finish_job, state)

    def _finish_or_resubmit_job(self, job_state, job_stdout, job_stderr, **ids):
        """Galaxy's, again where its database was busy."""
        job_wrapper = job_state.job_wrapper
        if getattr(job_wrapper, "is_task", False):
            super()._finish_or_resubmit_job(job_state, job_stdout, job_stderr, **ids)
            return
        outputs = [
            (path.false_path, path.real_path) for path in job_wrapper.job_io.get_output_fnames() if path.false_path
        ]
        working = job_wrapper.tool_working_directory
        left = patience.Left(working if staged_job.may_have_more_outputs(job_wrapper.tool, working) else None, outputs)
        for pause in patience.PAUSES:
            try:
                with patience.raising(job_state):
                    super()._finish_or_resubmit_job(job_state, job_stdout, job_stderr, **ids)
                return
            except patience.Busy as busy:
                self.sa_session.rollback()
                if not left.is_still_there():
                    log.exception("(%s) was half finished when the database was busy", job_state.job_id)
                    job_wrapper.fail("Unable to finish job: the database was busy while its outputs were collected")
                    return
                if pause == patience.PAUSES[0]:
                    log.warning(
                        "(%s) is finished again, for up to %d minutes: the database is busy: %s",
                        job_state.job_id,
                        sum(patience.PAUSES) // 60,
                        busy,
                    )
            time.sleep(pause)
            if self._should_stop:
                return  # it is taken up at the next start
        super()._finish_or_resubmit_job(job_state, job_stdout, job_stderr, **ids)

    def _with_words(self, event):
        """Why the command of a staged job gave up stands in what it printed, and nowhere else."""
        if event.get("failure") != "tool_failed":
            return event
        try:
            said = self._client.log_end(event["id"], most=500).strip()
        except engine.Error:
            said = ""
        return {**event, "message": said} if said else event

    def _put_back(self, state):
        """A verdict where what a staged job has left cannot be had."""
        try:
            staged_files.put_back(os.path.abspath(state.job_wrapper.working_directory), staged_job.kept_of(state))
        except (OSError, tarfile.TarError, staged_files.Unsafe) as error:
            log.exception("(%s/%s) what it has left", state.job_wrapper.get_id_tag(), state.job_id)
            return not_put_back(error)
        return None

    def _clean_up_deleted(self, job_wrapper):
        """Nobody else does, once its directory is ours."""
        if job_wrapper.get_state() == model.Job.states.DELETED and job_wrapper.cleanup_job in ("always", "onsuccess"):
            job_wrapper.cleanup()

    def _streams_of(self, state, wanted, is_stopped):
        streams = [state.output_file, state.error_file]
        if wanted.stage == "copy" or is_stopped:  # nothing came back, or it was stopped while it waited
            streams += [
                os.path.join(state.job_wrapper.working_directory, "outputs", name)
                for name in ("tool_stdout", "tool_stderr")
            ]
        return streams

    def check_watched_items(self):
        self.watched = [state for state in self.watched if not state.tasks.is_over]
        for state in self.watched:
            if state.check_limits():
                with self._lock:
                    has_ended, state.tasks.is_over = state.tasks.is_over, True
                if not has_ended:
                    self.mark_as_failed(state)
            if (
                state.running
                and getattr(state.job_wrapper.tool, "produces_entry_points", False)
                and not state.tasks.can_be_entered
            ):
                state.tasks.can_be_entered = bool(state.job_wrapper.check_for_entry_points())
        now = time.monotonic()
        if now < self._look_next or not (self._parked or self.watched):
            return
        self._look_next = now + _LOOK_S
        try:
            if self._parked:
                self._client.get("/v1/engine")
                self._catch_up()
            if any(not state.running for state in self.watched):
                self._mark_running()
            self._explain_the_oldest()
        except engine.EngineAway:
            return  # it will be back

    def _mark_running(self):
        found = self._client.get("/v1/tasks", state="running", client=self._name, limit=10_000)["tasks"]
        running = {task["id"] for task in found}
        for state in self.watched:
            if not state.running and not running.isdisjoint(state.tasks.ids):
                self._tell_running(state)

    def _explain_the_oldest(self):
        """Of jobs whose script or whose last step waits: of that task."""
        now = time.monotonic()
        waiting = [
            state
            for state in self.watched
            if now - state.tasks.explained_at >= _EXPLAIN_S
            and not (state.running and state.tasks.waiting == state.tasks.ids[0])
        ]
        for state in waiting[:_EXPLAINED]:
            tasks = state.tasks
            tasks.explained_at, number = now, tasks.waiting
            if number is None:
                continue
            try:
                found = self._client.get(f"/v1/tasks/{number}/explain")
            except engine.Refused:
                continue  # it has ended just now
            why = why_it_waits(found)
            with tasks.telling:
                if tasks.is_ending or tasks.waiting != number or why == tasks.explained:
                    continue
                if state.job_wrapper.get_state() in (model.Job.states.QUEUED, model.Job.states.RUNNING):
                    tasks.explained = why
                    remark(state.job_wrapper, why)

    # --- ending and taking up -----------------------------------------------------------------------------------------

    def stop_job(self, job_wrapper):
        ids = jobs.ids_of(job_wrapper.get_job().job_runner_external_id)
        if ids:
            self._cancels.ids(ids)
        else:
            # A crash before its ids were written down, or one that is being submitted.
            self._cancels.key(self._key_of(job_wrapper))

    def _unwanted_tasks(self):
        """Of jobs that Galaxy made an end of while the engine was away, before it was killed itself."""
        left = []
        for state in ("waiting", "held", "running", "unknown"):
            page = {"before": None}
            while page is not None:
                found = self._client.get("/v1/tasks", state=state, client=self._name, limit=_PAGE, **page)["tasks"]
                left += [task["id"] for task in found]
                page = {"before": left[-1]} if len(found) == _PAGE else None
        possible = sorted(jobs.possible_external_ids(left))
        unwanted = set()
        with self.app.model.new_session() as session:
            for at in range(0, len(possible), _PAGE):
                ended = select(model.Job).where(
                    model.Job.job_runner_external_id.in_(possible[at : at + _PAGE]),
                    model.Job.state.in_((*model.Job.terminal_states, model.Job.states.STOPPED)),
                )
                for job in session.scalars(ended):
                    # By its key: an engine that began anew has given the same numbers to other jobs.
                    key = jobs.key_of(job.get_id_tag(), job.create_time, _resubmissions_of(job))
                    unwanted.update(self._client.ids_of_key(self._name, key, 0.0))
        unwanted.intersection_update(left)
        if unwanted:
            log.info("%d tasks of jobs that ended before this start are cancelled", len(unwanted))
        return unwanted

    def recover(self, job, job_wrapper):
        ids = jobs.ids_of(job.job_runner_external_id)
        if not ids:
            self.put(job_wrapper)
            return
        state = self._state_of(job_wrapper, job.job_runner_external_id)
        if job.state == model.Job.states.RUNNING:
            state.running = True  # any assignment begins its walltime
        try:
            wanted = destination.read(job_wrapper.job_destination.params, is_strict=False)
            asked = wanted.task
            if wanted.stage == "copy":
                staged_job.set_parameters(job_wrapper)
        except Refusal:
            asked = {}
        state.tasks = _Tasks(ids, asked)
        state.tasks.submitted_at = None
        state.tasks.explained = ""  # perhaps, before this start
        self._follow_tasks(state)
        self.work_queue.put((self.look_at_tasks, state))
