"""Which jobs need no second Snakemake at all.

A plain `shell:` job is a command, a directory and a few variables; the main process checks, moves and records its outputs
for every executor alike.  What is used of Snakemake here goes beyond the plugins' interface, so whatever is not as known
makes a job ineligible, never wrong.
"""

import tempfile

_FOREIGN_FLAGS = ("pipe", "service", "nodelocal")


class Ineligible(Exception):
    """Why a job takes the next safer mode."""


def check(job, workflow, has_container=False):
    """Raises Ineligible where the job cannot do without a Snakemake of its own. `has_container`: it gets one of ours."""
    if job.is_group():
        raise Ineligible("group jobs are run by Snakemake itself")
    rule = job.rule
    if not job.is_shell or not rule.shellcmd:
        raise Ineligible("only shell: is a command by itself")
    if rule.module_globals is not rule.workflow.globals:
        raise Ineligible("a rule of a module has names of its own")
    if getattr(rule, "is_handover", False):
        raise Ineligible("a handover rule manages its own jobs")
    deployed = deployment(workflow)
    if "conda" in deployed and job.conda_env_spec:
        raise Ineligible("its conda environment has to be activated")
    if has_container and getattr(rule, "is_containerized", False):
        raise Ineligible("its conda environment is in its image, and has to be activated there")
    if not has_container and "apptainer" in deployed and job.container_img_url:
        raise Ineligible("it runs in a container")
    if "env-modules" in deployed and job.env_modules:
        raise Ineligible("its environment modules have to be loaded")
    if workflow.workflow_settings.cache is not None and _is_cached(rule):
        raise Ineligible("its outputs may come from the cache between workflows")
    if job.benchmark is not None and (job.benchmark_repeats or 1) > 1:
        raise Ineligible("it is to be run several times for its benchmark")
    if not {"input-output", "persistence", "sources"} <= shared_usage(workflow):
        raise Ineligible("its files are not on a shared file system")
    for file in (*job.input, *job.output, *job.log):
        if getattr(file, "is_storage", False):
            raise Ineligible("its files come from a storage provider")
        flags = getattr(file, "flags", None) or {}
        if any(flags.get(name) for name in _FOREIGN_FLAGS):
            raise Ineligible("its files are pipes, services or local to a node")
        if flags.get("update"):
            raise Ineligible("it changes a file that is there, which is put back where it fails")
    if not _is_usual_tmpdir(job):
        raise Ineligible("it has a tmpdir of its own")
    if any(callable(value) and _looks_at_tmpdir(value) for value in _all_of(rule.params)):
        raise Ineligible("its parameters look at its tmpdir")


def _is_cached(rule):
    """Snakemake 8 keeps elsewhere which rules are."""
    cache = getattr(rule, "cache", True)
    return bool(getattr(cache, "output", cache))


def _all_of(params):
    """Of a rule's params: those by place and those by name."""
    return [*params, *(value for _, value in params.items())]


def shared_usage(workflow):
    """The names of what Snakemake takes for shared with where its jobs run."""
    return {choice.item_to_choice() for choice in workflow.storage_settings.shared_fs_usage}


def deployment(workflow):
    """The names of Snakemake's ways to deploy software that are in use."""
    # A set of texts from version 10 of the interface on.
    settings = workflow.deployment_settings
    methods = getattr(settings, "deployment_methods", None) or getattr(settings, "deployment_method", None) or ()
    return {method if isinstance(method, str) else method.item_to_choice() for method in methods}


def _is_usual_tmpdir(job):
    """The rule's `tmpdir` is the one that Snakemake gives to all; a task finds its slot's in its place."""
    try:
        said = job.rule.resources["tmpdir"]
    except (KeyError, TypeError):
        return True
    raw = getattr(said, "raw", None)
    if isinstance(raw, str):
        return raw in ("system_tmpdir", tempfile.gettempdir())
    if isinstance(said, str):
        return said == tempfile.gettempdir()
    if raw is None and callable(said):
        # Snakemake 8 has expressions as functions.
        try:
            return said(None, input=job.input, attempt=1, threads=1, rulename=job.rule.name) == tempfile.gettempdir()
        except Exception:
            return False
    return False


def _looks_at_tmpdir(function):
    """A function of the rule that may ask for what is known only where the job runs."""
    code = getattr(function, "__code__", None)
    return code is None or "tmpdir" in code.co_names or "tmpdir" in code.co_consts


def write_benchmark(job, event, extended):
    """The job's benchmark file, from what its pilot has measured; memory in MB, time in seconds."""
    from snakemake.benchmark import BenchmarkRecord, write_benchmark_records

    seconds = max(0.0, event.get("ended_at", 0) - event.get("started_at", 0))
    record = BenchmarkRecord(
        jobid=job.jobid,
        rule_name=job.rule.name,
        wildcards=job.wildcards,
        params=job.params,
        resources=job.resources,
        threads=job.threads,
        input=job.input,
        running_time=seconds or 1e-6,
        max_rss=event.get("peak_memory", 0) / 1024 / 1024,
        cpu_time=event.get("cpu_s", 0.0),
    )
    # So that Snakemake gives what is known here as known.
    record.cpu_usage = event.get("cpu_s", 0.0) * 100
    record.data_collected = True
    write_benchmark_records([record], str(job.benchmark), extended)
