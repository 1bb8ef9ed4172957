"""Rules with `container:` as tasks with a container of hpcbatch's: whichever of Apptainer, Podman and Charliecloud their node has.

Only where it is asked for (--hpcbatch-containers): without, Snakemake runs `container:` itself, by Apptainer, with --sdm apptainer.
"""

import os

from .direct import deployment


def image_of(job):
    """The image that the job, or one of its group, is to run in; None: none."""
    if job.is_group():
        return next((image for one in job.jobs if (image := image_of(one))), None)
    return getattr(job, "container_img_url", None) or None


def is_left_to_snakemake(workflow):
    """What cannot be a command by itself runs in its container all the same."""
    return "apptainer" in deployment(workflow)


def container_of(job, image):
    """The `container` of its task: the image, and what of the job's files lies where a task's container shows nothing."""
    inside = os.path.join(os.path.realpath(os.getcwd()), "")
    folders = set()
    for file in (*job.input, *job.output, *job.log):
        folder = os.path.dirname(os.path.realpath(str(file)))
        if not os.path.join(folder, "").startswith(inside):
            folders.add(folder)
    container = {"image": image[len("file://"):] if image.startswith("file://") else image}
    # One below another is shown by that.
    outer = sorted(folder for folder in folders if not any(folder.startswith(os.path.join(other, "")) for other in folders))
    if outer:
        container["binds"] = outer
    return container


def local_rules_with(workflow):
    """Rules that Snakemake runs in its own process, which would go without their container."""
    jobs = [job for job in workflow.dag.needrun_jobs() if job.is_local and image_of(job)]
    return sorted({job.rule.name for job in jobs})
