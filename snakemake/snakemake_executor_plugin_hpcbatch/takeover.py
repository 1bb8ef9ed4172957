"""Takes up what an earlier Snakemake in this folder, which was killed, has running."""

import os

from .run_state import fingerprint_of, read_mark


class Takeover:
    """`say` takes a line for the user; `image_of` says in which image a job is to run.  Errors of the engine are its client's."""

    def __init__(self, client, name, workflow, say, image_of):
        self._client = client
        self._name = name
        self._workflow = workflow
        self._say = say
        self._image_of = image_of
        self._ids = {}

    def task_of(self, job):
        """`(task, mark)` that does this job, running, waiting, or done since; None where there is none.

        What was sent for this job and is of no use any more is cancelled, and has ended when this returns."""
        marks = self._marks_of(job)
        live = [(mark, task) for mark in set(marks) - {None} if (task := self._task(mark)) is not None]
        if not live:
            return None
        mark, task = live[0]
        if len(set(marks)) == 1 and task["state"] not in ("failed", "cancelled") and self._is_of_use(job, mark, task):
            return task, mark
        for _, task in live:
            if task["state"] not in ("done", "failed", "cancelled"):
                self._say(f"task {task['id']} of an earlier run is not what job {job.jobid} is now; it is cancelled.")
                self._cancel(task["id"])
        return None

    def _marks_of(self, job):
        """Of each of its members: the mark, or None."""
        persistence = self._workflow.persistence
        marks = []
        for one in job.jobs if job.is_group() else (job,):
            texts = persistence.external_jobids(one)
            if texts and not self._is_marked_incomplete(one):
                texts = ()
            marks.extend({read_mark(text, self._name) for text in texts} or {None})
        return marks

    def _is_marked_incomplete(self, job):
        """In a data base the name of what made a file is kept when it is complete."""
        persistence = self._workflow.persistence
        look = getattr(persistence, "_filter_incomplete_keys", None)
        return look is None or bool(look([persistence._get_key(file) for file in job.output]))

    def _task(self, mark):
        if mark.key not in self._ids:
            self._ids[mark.key] = self._client.ids_of_key(self._name, mark.key)
        ids = self._ids[mark.key]
        # Of a submit whose history is partly gone no place is known any more.
        return self._client.task(ids[mark.place]) if len(ids) == mark.count else None

    def _is_of_use(self, job, mark, task):
        if mark.fingerprint != fingerprint_of(job, self._workflow.persistence, self._image_of(job)):
            return False
        # Its folder is known only to the Snakemake that made it.
        if mark.is_direct and job.is_shadow:
            return False
        if task["state"] != "done":
            return True
        try:
            newest = max((os.stat(file).st_mtime for file in job.input), default=0)
            # When a file was put there nobody can set back, as `cp -p` does its time; file systems may count in seconds.
            oldest = min((os.lstat(file).st_ctime for file in job.output), default=task["started_at"])
        except OSError:
            return False
        return newest <= task["started_at"] <= oldest + 1

    def _cancel(self, number):
        self._client.cancel([number])
        while not self._client.request("POST", "/v1/tasks/wait", {"ids": [number], "timeout": 10}, waits=10)["done"]:
            pass
