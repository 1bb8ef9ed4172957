"""Snakemake for one job, as the executor starts it: warm, forked by a service, or anew.

    python -m snakemake_executor_plugin_hpcbatch.child ARGUMENTS OF SNAKEMAKE

It ends when Snakemake has ended.  Snakemake's own program waits for a timer as well, which paces the start of jobs and
here has nothing left to pace: a second for every job.
"""

import atexit
import functools
import logging
import os
import pathlib
import sys

from .messages import member_failed
from .shadows import keep_out_of_shadows

# What Snakemake says of its own beginning and end, which here are those of one job among many.
_ITS_FRAME = (
    "Building DAG of jobs",
    "Using shell:",
    "Provided cores:",
    "Rules claiming more threads",
    "Select jobs to execute",
    "Execute ",
    "Shutting down, this might take some time",
    "Exiting because a job execution failed",
    "Removing output files of failed job",
    "Storing output in storage",
    "Elapsed time:",
)
_THE_END = "At least one job did not complete successfully"
# What the main Snakemake says of the job as well.
_SAID_THERE = {"WORKFLOW_STARTED", "JOB_INFO", "SHELLCMD", "GROUP_INFO", "GROUP_ERROR", "JOB_ERROR"}


def _is_of_the_job(record):
    if getattr(getattr(record, "event", None), "name", None) in _SAID_THERE:
        return False
    text = record.getMessage()
    return not text.startswith(_ITS_FRAME) and _THE_END not in text


def _say_only_what_is_the_jobs(arguments):
    """So that the last lines of a job that fails are its own."""
    from snakemake.logging import logger

    if isinstance(logger, logging.Logger) and "--verbose" not in arguments:
        logger.addFilter(_is_of_the_job)


def _name_failed_members(workflow):
    """The Snakemake that sent a group cannot know which of its jobs failed."""
    for job in getattr(workflow.scheduler, "failed", ()):
        for one in getattr(job, "jobs", (job,)):
            print(member_failed(one.rule.name, one.output), file=sys.stderr)


class _Proof:
    """That the job has run: Snakemake's program ends with 0 as well where files that it waits for are missing."""

    def __init__(self):
        self.is_there = False

    def watch(self):
        """All that this process' Snakemake executes from now on."""
        from snakemake.workflow import Workflow

        execute = Workflow.execute

        @functools.wraps(execute)
        def watched(workflow, *args, **options):
            try:
                success = execute(workflow, *args, **options)
            finally:
                if "--local-groupid" in sys.argv:
                    _name_failed_members(workflow)
            ended = any(True for _ in workflow.dag.finished_jobs) if success is not False else False
            self.is_there = self.is_there or ended
            return success

        Workflow.execute = watched


def _share_backups(attempt):
    """With the main process, which looks for the backup of a file that a failed job has updated, and removes the file where there is
    none; and with the attempts before this one, whose backup is of the file before the first."""
    from snakemake.jobs import Job

    prepare = Job.prepare

    @functools.wraps(prepare)
    async def from_the_same_ground(job):
        persistence = job.rule.workflow.persistence
        restore_output = type(persistence).restore_output

        def and_leave_it(path):
            restored = restore_output(persistence, path)
            if restored:
                persistence.backup_output(path)
            return restored

        for file in job.output:
            if not (getattr(file, "flags", None) or {}).get("update"):
                continue
            persistence.restore_output = and_leave_it
            path = pathlib.Path(file)
            if attempt == 1:
                persistence.cleanup_backup(path)  # of a run whose end nobody saw
            elif persistence._get_backup_path(path).exists():
                restore_output(persistence, path)
        await prepare(job)

    Job.prepare = from_the_same_ground


def main():
    from snakemake.cli import main as snakemake

    keep_out_of_shadows()
    _say_only_what_is_the_jobs(sys.argv[1:])
    _share_backups(int(os.environ.get("HPCBATCH_ATTEMPT") or 1))
    proof = _Proof()
    proof.watch()
    code = 0
    try:
        snakemake(sys.argv[1:])
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
    if code == 0 and not proof.is_there:
        print(
            "Snakemake has not run this job: what it waited for is not there, or it found nothing to do.",
            file=sys.stderr,
        )
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
