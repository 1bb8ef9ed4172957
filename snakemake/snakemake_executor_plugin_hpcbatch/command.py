"""The command of a `shell:` job, byte for byte what Snakemake itself would run.

The rule's own function is called as Snakemake calls it, with a `shell` that formats as Snakemake's does and runs nothing.  So
names mean what they mean there: a workflow's own variable `name` is that variable, and nothing that only Snakemake's messages
know is a name at all.
"""

import inspect
import os
import types

from .direct import Ineligible, deployment

# Longer ones go through a script's file in Snakemake's own shell (its MAX_ARG_LEN), which is left to it.
_LONGEST_COMMAND = 16 * 4096 - 1
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
_OF_THREADS = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class Command:
    """`argv` is a shell, "-c" and its text, which `is_posix` says that it reads as sh does."""

    def __init__(self, argv, env, is_posix):
        self.argv = argv
        self.env = env
        self.is_posix = is_posix


def command_of(job, workflow, has_container=False):
    """Of a job that `direct.check` has let through. `has_container`: its shell is looked for by name, as Snakemake does it in one.
    Raises Ineligible."""
    from snakemake.shell import shell

    text = _formatted(job, workflow)
    if "<TBD>" in text:
        raise Ineligible("its command is known only where it runs")
    program = job.resources.get("shell_exec") or shell.get_executable()
    if not program:
        raise Ineligible("its shell is not known")
    if has_container:
        program = os.path.basename(program)
    prefix = shell._get_process_prefix(program)
    text = " ".join((prefix, text, shell._process_suffix)).strip()
    if len(text.replace("'", r"'\''")) + 2 > _LONGEST_COMMAND:
        raise Ineligible("its command is too long for one argument")
    is_posix = os.path.basename(program) in _SHELLS
    if is_posix:
        text = 'export TMP="$TMPDIR" TEMP="$TMPDIR" TEMPDIR="$TMPDIR"; ' + text
    return Command([str(program), "-c", text], dict.fromkeys(_OF_THREADS, str(job.threads)), is_posix)


# What Snakemake (9.27, executors/local.py, run_wrapper) gives to the function of a rule that needs nothing deployed.
_ARGUMENTS = {
    "input": lambda job, workflow: job.input._plainstrings(),
    "output": lambda job, workflow: job.output._plainstrings(),
    "params": lambda job, workflow: _params_of(job),
    "wildcards": lambda job, workflow: job.wildcards,
    "threads": lambda job, workflow: job.threads,
    "resources": lambda job, workflow: job.resources,
    "log": lambda job, workflow: job.log._plainstrings(),
    "rule": lambda job, workflow: job.rule.name,
    "conda_env": lambda job, workflow: None,
    "container_img": lambda job, workflow: None,
    "singularity_args": lambda job, workflow: workflow.deployment_settings.apptainer_args,
    "use_singularity": lambda job, workflow: "apptainer" in deployment(workflow),
    "env_modules": lambda job, workflow: None,
    "bench_record": lambda job, workflow: None,
    "jobid": lambda job, workflow: job.jobid,
    "is_shell": lambda job, workflow: True,
    "bench_iteration": lambda job, workflow: 0 if job.benchmark is not None else None,
    "cleanup_scripts": lambda job, workflow: workflow.execution_settings.cleanup_scripts,
    "shadow_dir": lambda job, workflow: None,
    "edit_notebook": lambda job, workflow: None,
    "conda_base_path": lambda job, workflow: workflow.conda_base_path,
    "basedir": lambda job, workflow: job.rule.basedir,
    "sourcecache_path": lambda job, workflow: workflow.sourcecache.cache_path,
    "runtime_sourcecache_path": lambda job, workflow: workflow.sourcecache.runtime_cache_path,
    "runtime_paths": lambda job, workflow: workflow.runtime_paths,
}


def _params_of(job):
    """Of this attempt: Snakemake keeps those of the first, and lets the Snakemake of a job make them anew."""
    if job.attempt > 1:
        return job.rule.expand_params(job.wildcards_dict, job.input, job.output, job)[0]
    return job.params


def _formatted(job, workflow):
    from snakemake.shell import shell
    from snakemake.utils import format

    run = job.rule.run_func
    if run.__globals__.get("shell") is not shell:
        raise Ineligible("its workflow has a `shell` of its own")
    if job.is_shadow and set(run.__code__.co_names) - {"shell"}:
        raise Ineligible("its command is made up in its shadow directory")
    commands = []

    def no_shell(command, *args, bench_record=None, **names):
        if args or names.keys() - {"bench_iteration"} or "{shell" in command or "{bench_record" in command:
            raise Ineligible("its shell: has more than a command")
        # As deep as in Snakemake's: the names are those of the rule's function.
        commands.append(format(command, stepout=2, **names))

    own = types.FunctionType(
        run.__code__, {**run.__globals__, "shell": no_shell}, run.__name__, run.__defaults__, run.__closure__
    )
    own.__kwdefaults__ = run.__kwdefaults__
    arguments = {}
    for name, parameter in inspect.signature(run).parameters.items():
        if parameter.default is not parameter.empty:
            continue
        if name not in _ARGUMENTS:
            raise Ineligible(f"this Snakemake gives its rules a {name!r}, which is not known")
        arguments[name] = _ARGUMENTS[name](job, workflow)
    try:
        own(**arguments)
    except Ineligible:
        raise
    except Exception as error:
        # Told by Snakemake, as it tells it of any rule.
        raise Ineligible(f"its command cannot be made here: {type(error).__name__}: {error}") from None
    if len(commands) != 1:
        raise Ineligible("its shell: is not one command")
    return commands[0]
