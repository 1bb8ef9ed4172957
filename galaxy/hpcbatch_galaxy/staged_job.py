"""Galaxy's side of a staged job: what its wrapper is told before it is made, and what it has become, as a task."""

import os

from . import staged_files, staging
from .staged_environment import StagedEnvironment

# No Galaxy is there, and none of its Pythons.
SCRIPT_OPTIONS = {"galaxy_lib": None, "galaxy_virtual_env": None}


def set_parameters(job_wrapper):
    """Outputs lie in the job's directory until Galaxy takes them at the job's end; asked for anew after each start of Galaxy."""
    job_wrapper.job_destination.params["outputs_to_working_directory"] = True


def begin(job_wrapper):
    """Before Galaxy makes the job.  Raises Refusal."""
    tool = job_wrapper.tool
    staging.check_job(
        {
            fact
            for fact, holds in {
                # Galaxy 25.1 believes it of users' own tools, which are always in containers.
                "galaxy_python": tool.requires_galaxy_python_environment and tool.tool_type != "user_defined",
                "interactive": getattr(tool, "produces_entry_points", False),
                "cwl": job_wrapper.is_cwl_job,
                "remote_evaluation": job_wrapper.remote_command_line,
                "split": getattr(job_wrapper, "is_task", False),
            }.items()
            if holds
        }
    )
    places = staging.Places(os.path.abspath(job_wrapper.working_directory), job_wrapper.tool_directory())
    # Galaxy's runners make a job with what the wrapper says by itself; only Pulsar's says something else.
    job_wrapper.default_compute_environment = lambda job=None: StagedEnvironment(
        job_wrapper.job_io, job or job_wrapper.get_job(), places
    )
    job_wrapper.staged_places = places


def places_of(job_wrapper):
    """None for a job that is not staged."""
    return getattr(job_wrapper, "staged_places", None)


def where_for_container(job_wrapper, places):
    """What Galaxy's container finder is to take for the job's place."""
    return {
        "compute_working_directory": os.path.join(places.job_directory, "working"),
        "compute_job_directory": places.job_directory,
        "compute_tool_directory": places.tool,
    }


def bound(container):
    """Galaxy's default binds folders of this machine besides."""
    if container is not None and "singularity_volumes" not in container.destination_info:
        container.destination_info = {**container.destination_info, "singularity_volumes": staging.CONTAINER_VOLUMES}
    return container


def kept_of(state):
    return [os.path.basename(path) for path in (state.exit_code_file, state.output_file, state.error_file)]


def _looks_through_working(tool):
    return any(
        output.collection or getattr(output, "dataset_collector_descriptions", None) for output in tool.outputs.values()
    )


def may_have_more_outputs(tool, working):
    """Whether Galaxy may find outputs in a job's working directory that it did not know of before."""
    return _looks_through_working(tool) or os.path.exists(os.path.join(working, tool.provided_metadata_file))


def task_of(state, needs, places):
    """Packs the job, whose script is written.  Raises Refusal or OSError."""
    tool = state.job_wrapper.tool
    staged_files.name_files_of_folders(places)
    marked_files = staged_files.pack_job(places)
    if places.tool_directory and staged_files.names_tool(places):
        named = tool.required_files and tool.required_files.find_required_files(places.tool_directory)
        staged_files.pack_tool(places, named)
    return staging.task_of(
        needs,
        places,
        os.path.basename(state.job_file),
        kept_of(state),
        marked_files,
        _looks_through_working(tool),
        tool.provided_metadata_file,
        state.job_name,
    )
