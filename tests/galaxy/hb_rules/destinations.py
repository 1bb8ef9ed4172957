"""The tests' dynamic destination: a file says which environment a tool's jobs go to, as rules of TPV would."""

import json
import os
import pathlib
import signal
import time

CHOICES = pathlib.Path(os.environ["GALAXY_CONFIG_FILE"]).with_name("choices.json")


def choose(tool_id):
    choices = json.loads(CHOICES.read_text())
    return choices.get(tool_id, choices[""])


def _dies_before_writing_down():
    """A crash at the worst moment: the engine has the job's tasks, and Galaxy has not written down their ids."""
    from hpcbatch_galaxy.runner import HpcbatchJobRunner

    watch = HpcbatchJobRunner._watch

    def die(self, state, ids, asked):
        mark = CHOICES.with_name("die_before_writing_down")
        if mark.exists():
            mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        watch(self, state, ids, asked)

    HpcbatchJobRunner._watch = die


def _starts_no_engine():
    """As long as a file is there, an engine that is away stays away."""
    from hpcbatch import client
    from hpcbatch_galaxy.runner import HpcbatchJobRunner

    revive = HpcbatchJobRunner._revive

    def refuse(self):
        if CHOICES.with_name("starts_no_engine").exists():
            raise client.Error("no engine is to be started")
        revive(self)

    HpcbatchJobRunner._revive = refuse


def _has_a_busy_database():
    """As often as a file says, a job cannot be finished for that."""
    import sqlite3

    from galaxy.jobs import JobWrapper
    from sqlalchemy.exc import OperationalError

    finish = JobWrapper.finish

    def busy(self, *args, **kwargs):
        mark = CHOICES.with_name("busy_database")
        left = int(mark.read_text()) if mark.exists() else 0
        if left:
            mark.write_text(str(left - 1))
            raise OperationalError("UPDATE job", {}, sqlite3.OperationalError("database is locked"))
        return finish(self, *args, **kwargs)

    JobWrapper.finish = busy


def _holds_metadata():
    """As long as a file is there, what looks at outputs beside the server waits."""
    from galaxy.jobs.runners import BaseJobRunner

    look = BaseJobRunner._handle_metadata_externally

    def wait(self, job_wrapper, **options):
        mark = CHOICES.with_name("hold_metadata")
        if mark.exists():
            CHOICES.with_name(f"held_metadata.{job_wrapper.job_id}").touch()
        while mark.exists():
            time.sleep(0.05)
        look(self, job_wrapper, **options)

    BaseJobRunner._handle_metadata_externally = wait


_holds_metadata()
_dies_before_writing_down()
_has_a_busy_database()
_starts_no_engine()
