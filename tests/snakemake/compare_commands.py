"""Runs Snakemake with its local executor and writes down, for each job, what it ran and what the job's task would have been.

    compare_commands.py FILE SNAKEMAKE'S ARGUMENTS...

FILE gets a line of JSON for each shell: job: {"job", "direct": whether it could do without Snakemake, "why" where it could not,
"ours", "theirs"}.  To be run by the Python in which Snakemake and the plugin are installed.
"""

import atexit
import inspect
import json
import sys
import threading
import types

import snakemake.executors.local as local
import snakemake.shell  # noqa: F401
from snakemake.cli import main
from snakemake_executor_plugin_hpcbatch.command import command_of
from snakemake_executor_plugin_hpcbatch.direct import Ineligible, check

TEMPORARY = 'export TMP="$TMPDIR" TEMP="$TMPDIR" TEMPDIR="$TMPDIR"; '
# Of that name is the class, too.
shell_module = sys.modules["snakemake.shell"]
jobs = {}
seen = []
# Jobs with a shadow run by themselves, in this process too: for who runs one at a time.
shadows_here = False
of_thread = threading.local()


def look_at(job, workflow):
    found = {"job": str(job), "direct": False, "theirs": []}
    try:
        check(job, workflow)
        command = command_of(job, workflow)
    except Ineligible as why:
        return found | {"why": str(why)}
    return found | {"direct": True, "ours": [command.argv[0], command.argv[2].removeprefix(TEMPORARY)]}


def listen():
    run_single_job, run_wrapper, popen = local.Executor.run_single_job, local.run_wrapper, shell_module.sp.Popen
    names = inspect.signature(run_wrapper)

    def single(self, job):
        jobs.pop(job.jobid, None)
        if job.is_shell:
            jobs[job.jobid] = look_at(job, self.workflow)
            seen.append(jobs[job.jobid])
        self.use_threads = self.use_threads or shadows_here
        return run_single_job(self, job)

    def wrapper(*args, **kwargs):
        of_thread.job = names.bind(*args, **kwargs).arguments["jobid"]
        try:
            return run_wrapper(*args, **kwargs)
        finally:
            of_thread.job = None

    def start(command, *args, **kwargs):
        found = jobs.get(getattr(of_thread, "job", None))
        if found is not None:
            found["theirs"].append([kwargs.get("executable"), command])
        return popen(command, *args, **kwargs)

    local.Executor.run_single_job = single
    local.run_wrapper = wrapper
    own = types.SimpleNamespace(**{name: getattr(shell_module.sp, name) for name in shell_module.sp.__all__})
    own.Popen = start
    shell_module.sp = own


def write(path, **more):
    """What has been seen since the last time."""
    with open(path, "a") as out:
        for found in seen:
            print(json.dumps(found | more), file=out)
    seen.clear()


if __name__ == "__main__":
    listen()
    atexit.register(write, sys.argv[1])
    main([*sys.argv[2:], "--force-use-threads"])
