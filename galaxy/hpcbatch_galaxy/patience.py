"""A database that is busy.  Galaxy takes any error of it for the job's end; what may be done again is done again, later."""

import contextlib
import os
import threading

_BUSY = (
    "database is locked",
    "database table is locked",
    "deadlock detected",
    "could not serialize access",
    "lock timeout",
    "lock wait timeout",
    "server closed the connection",
    "connection refused",
    "could not connect",
    "connection timed out",
    "the database system is",
)
# Seconds between tries: five minutes in all.
PAUSES = (0.5, 1, 2, 4, 8, 15, 30, 60, 60, 60, 60)
# SQLite waits by itself for so long, on threads that nobody watches.
_LOCK_WAIT_MS = 30_000


class Busy(Exception):
    """Instead of the end of a job."""


def is_busy(error):
    """Whether that error, or what it came of, is one of a database that will have time again."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if type(error).__name__ in ("OperationalError", "DBAPIError", "InternalError", "PendingRollbackError"):
            text = str(error).lower()
            if any(phrase in text for phrase in _BUSY):
                return True
        error = error.__cause__ or error.__context__
    return False


def wait_for_locks(engine, is_ours):
    """From now on SQLite lets threads that `is_ours` says yes to wait longer for another's transaction."""
    if engine.dialect.name != "sqlite":
        return
    from sqlalchemy import event

    @event.listens_for(engine, "checkout")
    def checked_out(connection, record, _):
        usual = record.info.get("hpcbatch_usual_wait")
        ours = is_ours(threading.current_thread())
        if ours and usual is None:
            usual = record.info["hpcbatch_usual_wait"] = connection.execute("PRAGMA busy_timeout").fetchone()[0]
            connection.execute(f"PRAGMA busy_timeout = {max(usual, _LOCK_WAIT_MS)}")
        elif not ours and usual is not None:
            del record.info["hpcbatch_usual_wait"]
            connection.execute(f"PRAGMA busy_timeout = {usual}")


@contextlib.contextmanager
def raising(state):
    """Within it Galaxy's end of a job for a busy database is raised as `Busy`, and the job's files stay until it has gone well."""
    import sys

    job_wrapper, cleanups = state.job_wrapper, []

    def fail(*args, **kwargs):
        error = sys.exc_info()[1]
        if is_busy(error):
            raise Busy(str(error).splitlines()[0]) from error
        return type(job_wrapper).fail(job_wrapper, *args, **kwargs)

    job_wrapper.fail = fail
    state.cleanup = lambda: cleanups.append(True)
    try:
        yield
    finally:
        del job_wrapper.fail, state.cleanup
    if cleanups and os.path.exists(state.exit_code_file):  # else they are gone with the job's directory
        state.cleanup()


class Left:
    """What a job has left, so far as finishing it takes that away: seen again before it is finished again.

    `folder`: that Galaxy looks through for outputs, None where it does not; `outputs`: pairs of the path where the job wrote an
    output and that where Galaxy keeps it, where these differ."""

    def __init__(self, folder, outputs):
        self._folder = folder
        self._outputs = outputs
        self._names = self._listed()

    def _listed(self):
        if self._folder is None:
            return None
        return {os.path.join(where, name) for where, _, names in os.walk(self._folder) for name in names}

    def is_still_there(self):
        """False where finishing it again would miss files that are Galaxy's own by now, under names that it does not remember."""
        if self._listed() != self._names:
            return False
        for written, kept in self._outputs:
            # Galaxy believes that it has moved an output only where that has something in it.
            if not os.path.exists(written) and os.path.exists(kept) and os.path.getsize(kept) == 0:
                open(written, "ab").close()
        return True
