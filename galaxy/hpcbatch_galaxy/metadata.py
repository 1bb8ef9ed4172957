"""The step that looks at a job's outputs, taken out of the job script: a Galaxy that is kept warm by the pilot does it.

Galaxy's own script starts a Python for it that imports for seconds; the files that it writes are the same.
"""

import os
import sys

from . import jobs
from .words import seconds

# What Galaxy writes where nothing but its Python is needed for the step.
_PLAIN = "python metadata/set.py"
_SERVICE = "galaxy-metadata"
# A Python that has to be started after all takes a while, on a file system that is busy.
_LEAST_S = 300.0
# Of the service itself: all datatypes' libraries.
_SERVICE_MEMORY = "2G"


def terms_of(start, idle):
    """Of the service: how long it may be silent while it starts, and stays without work, as administrators write times; empty: as
    is usual.  Raises Refusal."""
    # Longer than a coffee break; where its pilot ends before, so does it.
    terms = {"idle": seconds("metadata_idle", idle) if idle else 45 * 60.0}
    if start:
        terms["start"] = seconds("metadata_start", start)
    return terms


def can_be_warm(job_wrapper):
    """Whether the step can be a task of its own: it needs nothing but Galaxy's Python."""
    return bool(
        job_wrapper.requires_setting_metadata and not job_wrapper.is_cwl_job and not job_wrapper.use_metadata_binary
    )


def _is_plain(variable):
    return bool(
        variable.get("name")
        and not any(variable.get(key) for key in ("raw", "file", "execute"))
        and not set(str(variable["value"])) & set("$`\\")
    )


def left_to_the_tool(variables):
    """Names of what only a shell can make of an environment's `env:`; the step does without."""
    return [str(one.get("name") or one.get("file") or one.get("execute")) for one in variables if not _is_plain(one)]


def command_of(job_wrapper):
    """Writes the files that the step reads, as the command factory does where the step is part of the job script
    (galaxy.jobs.command_factory, "__handle_metadata"), and gives the shell command; empty where there is nothing to do.
    """
    from galaxy.model import Dataset

    command = job_wrapper.setup_external_metadata(
        exec_dir=os.path.abspath(os.getcwd()),
        tmp_dir=job_wrapper.working_directory,
        dataset_files_path=Dataset.file_path,
        output_fnames=job_wrapper.job_io.get_output_fnames(),
        set_extension=False,
        config_root=None,
        config_file=None,
        datatypes_config=None,
        compute_tmp_dir=None,
        compute_version_path=job_wrapper.job_io.version_path,
        resolve_metadata_dependencies=job_wrapper.commands_in_new_shell,
        use_bin=False,
        kwds={"overwrite": False},
    )
    return (command or "").strip()


def environment_of(galaxy_lib, virtual_env, inherited, variables):
    """Galaxy's Python, in what the job script has too: `variables` are the destination's, as Galaxy reads `env:`."""
    environment = dict(inherited)
    environment.update({one["name"]: str(one["value"]) for one in variables if _is_plain(one)})
    if virtual_env and virtual_env != "None":
        environment["VIRTUAL_ENV"] = virtual_env
        environment["PATH"] = os.path.join(virtual_env, "bin") + os.pathsep + environment.get("PATH", os.defpath)
    if galaxy_lib and galaxy_lib != "None":
        environment["PYTHONPATH"] = os.path.abspath(galaxy_lib)
    environment["PYTHONWARNINGS"] = "ignore"
    return environment


def task_of(command, directory, environment, needs, terms):
    """The step as a task; `needs` are the keys of the script's, `terms` more keys of the service."""
    package = __name__.rpartition(".")[0]
    python = sys.executable
    if environment.get("VIRTUAL_ENV"):
        python = os.path.join(environment["VIRTUAL_ENV"], "bin", "python")
    # So that the service finds this package where Galaxy has found it.
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []
    if os.path.basename(ours) != "site-packages":
        paths.append(ours)
    if paths:
        environment = {**environment, "PYTHONPATH": os.pathsep.join(paths)}
    task = {
        "directory": directory,
        "shared": [directory],
        "environment": environment,
        "cpus": 1,
        "name": "metadata",
        **jobs.where_of(needs),
    }
    if "time" in needs:
        task["time"] = max(needs["time"], _LEAST_S)
    if command != _PLAIN:
        return {**task, "command": ["/bin/bash", "-c", command]}
    service = {
        "name": _SERVICE,
        "memory": _SERVICE_MEMORY,
        "command": [python, "-m", "hpcbatch.fork_service", f"{package}.preload"],
        **terms,
    }
    return {**task, "command": [python, "metadata/set.py"], "service": service}
