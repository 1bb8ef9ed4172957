"""What a user is told in Snakemake's log.

Nothing of it fails a run: a line that cannot be made is left out, and that is said once.
"""

import functools
import re

from .messages import Report, member_failed

# Snakemake draws such names for groups that nobody has named: of pipes and of services.
_MADE_UP = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def rule_of(job):
    """Of a group its name, or where it has none the rules in it."""
    if not job.is_group():
        return job.rule.name
    name = str(job.groupid)
    return "+".join(sorted({one.rule.name for one in job.jobs}))[:100] if _MADE_UP.fullmatch(name) else name


def name_of(job):
    if job.is_group():
        return f"group {rule_of(job)}"
    wildcards = getattr(job, "wildcards_dict", None) or {}
    return " ".join([job.rule.name, *(f"{name}={value}" for name, value in wildcards.items())])[:200]


def harmless(told):
    """A method that only tells something."""

    @functools.wraps(told)
    def whatever_happens(self, *args, **kwargs):
        try:
            return told(self, *args, **kwargs)
        except Exception as error:
            return self.cannot_tell(error)

    return whatever_happens


class Telling:
    """Any thread may call any method."""

    def __init__(self, logger):
        self._logger = logger
        self._said = set()
        self._report = Report()

    def cannot_tell(self, error):
        line = f"hpcbatch: a line of this log could not be made ({type(error).__name__}: {error})."
        if line not in self._said:
            self._said.add(line)
            self._logger.warning(line)

    @harmless
    def say(self, line):
        self._logger.info(f"hpcbatch: {line}")

    @harmless
    def say_once(self, job, what):
        line = f"{'group' if job.is_group() else 'rule'} {rule_of(job)} {what}."
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    @harmless
    def warn_once(self, line):
        if line not in self._said:
            self._said.add(line)
            self._logger.warning(f"hpcbatch: {line}.")

    @harmless
    def error(self, line):
        self._logger.error(f"hpcbatch: {line}")

    @harmless
    def add(self, job, event, asked, submitted_at):
        """To the report at the end."""
        self._report.add(rule_of(job), event, asked, submitted_at)

    @harmless
    def count_as_failed(self, job):
        self._report.count_as_failed(rule_of(job))

    @harmless
    def report(self):
        for line in self._report.lines():
            self._logger.info(line)

    @harmless
    def failed(self, job, message, external_jobid, has_run):
        """Snakemake's own block about a job that failed, with the message in it once, a group's too."""
        more = {} if external_jobid is None else {"external_jobid": external_jobid}
        try:
            if job.is_group():
                self._group_failed(job, message, more, has_run)
            elif has_run:
                job.log_error(message, **more)
            else:
                # What its shell says of a command that has not run is not true.
                facts = job.get_log_error_info(message, **more) | {"shellcmd": None}
                self._logger.error(f"Error in rule {job.rule.name}, jobid: {job.jobid}", extra=facts)
        except Exception:  # another Snakemake
            self._logger.error(f"hpcbatch: {name_of(job)} failed: {message}")

    def _group_failed(self, job, message, more, has_run):
        from snakemake_interface_logger_plugins.common import LogEvent

        members = [one.get_log_error_info(indent=True, **more) for one in job.jobs]
        facts = {
            "event": LogEvent.GROUP_ERROR,
            "groupid": job.groupid,
            "aux_logs": [],
            "job_error_info": members,
            **more,
        }
        self._logger.error(f"Error in group {rule_of(job)}: {message}", extra=facts)
        if not has_run:  # a block of a member says how its command ended
            return
        said = {line.strip() for line in message.splitlines()}
        failed = [one for one in job.jobs if member_failed(one.rule.name, one.output) in said]
        for one in sorted(failed or job.jobs, key=lambda one: one.rule.name):
            one.log_error(f"see group {rule_of(job)} above", **more)
