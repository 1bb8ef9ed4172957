"""The least that a runner for Galaxy can be: jobs are processes of this machine, so many at a time.  What ours is measured against."""

import os
import subprocess

from galaxy import model
from galaxy.jobs.runners import AsynchronousJobRunner, AsynchronousJobState


class ProcessRunner(AsynchronousJobRunner):
    runner_name = "ProcessRunner"

    def __init__(self, app, nworkers, **kwargs):
        kwargs.setdefault("runner_param_specs", {})["at_once"] = {"map": int, "default": 2}
        super().__init__(app, nworkers, **kwargs)

    def queue_job(self, job_wrapper):
        within = job_wrapper.job_destination.params.get("metadata", "job") == "job"
        if not self.prepare_job(job_wrapper, include_metadata=within):
            return
        state = AsynchronousJobState(
            job_wrapper=job_wrapper,
            job_destination=job_wrapper.job_destination,
            files_dir=job_wrapper.working_directory,
            job_id=job_wrapper.get_id_tag(),
        )
        text = self.get_job_file(
            job_wrapper,
            exit_code_path=state.exit_code_file,
            shell=job_wrapper.shell,
            slots_statement='export GALAXY_SLOTS="1"',
            memory_statement="",
        )
        self.write_executable_script(state.job_file, text, job_io=job_wrapper.job_io)
        state.process = None
        job_wrapper.set_external_id(state.job_id)
        self.monitor_job(state)

    def check_watched_items(self):
        running = 0
        kept = []
        for state in self.watched:
            if state.process is not None and state.process.poll() is not None:
                self.mark_as_finished(state)
                continue
            running += state.process is not None
            kept.append(state)
        for state in kept:
            if state.process is None and running < self.runner_params.at_once:
                with open(state.output_file, "wb") as out, open(state.error_file, "wb") as err:
                    state.process = subprocess.Popen(
                        [state.job_file],
                        cwd=os.path.abspath(state.job_wrapper.working_directory),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                    )
                state.job_wrapper.change_state(model.Job.states.RUNNING)
                running += 1
        self.watched = kept

    def stop_job(self, job_wrapper):
        pass

    def recover(self, job, job_wrapper):
        self.put(job_wrapper)
