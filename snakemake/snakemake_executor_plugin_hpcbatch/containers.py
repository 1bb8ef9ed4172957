"""Rules with `container:` as tasks with a container of hpcbatch's: whichever of Apptainer, Podman and Charliecloud their node has.

Only where it is asked for (--hpcbatch-containers): without, Snakemake runs `container:` itself, by Apptainer, with --sdm apptainer.
"""

import os
import urllib.parse

from .direct import Ineligible, deployment


def image_of(job):
    """The image that the job, or one of its group, is to run in; None: none."""
    if job.is_group():
        return next((image for one in job.jobs if (image := image_of(one))), None)
    return job.container_img_url if _has_container(job.rule) else None


def check_image(image):
    """Raises Ineligible where only Snakemake's own way can have it."""
    if urllib.parse.urlsplit(image).scheme in ("http", "https"):
        raise Ineligible(f"{image} has to be fetched first")


def is_left_to_snakemake(workflow):
    """What cannot be a command by itself runs in its container all the same."""
    return "apptainer" in deployment(workflow)


def container_of(job, image):
    """The `container` of its task: the image, and what of the job's files lies where a task's container shows nothing."""
    # What has no scheme is a path for Snakemake, and may be a registry's name for others.
    if urllib.parse.urlsplit(image).scheme in ("", "file"):
        image = os.path.abspath(image[len("file://") :] if image.startswith("file://") else image)
    container = {"image": image}
    if binds := _shown(job):
        container["binds"] = binds
    return container


def _shown(job):
    """Folders, one of which may not be below another: that one shows it."""
    shown = os.path.join(os.path.abspath(job.shadow_dir) if job.shadow_dir else os.getcwd(), "")
    # Links of a shadow lead there.
    paths = {os.getcwd()} if job.shadow_dir else set()
    for file in (*job.input, *job.output, *job.log):
        # By the name that the command uses, and where that leads to.
        for path in (os.path.abspath(str(file)), os.path.realpath(str(file))):
            folder = os.path.dirname(path)
            paths.add(path if folder == "/" else folder)
    paths = {path for path in paths if not os.path.join(path, "").startswith(shown)}
    return sorted(
        path for path in paths if not any(path.startswith(os.path.join(other, "")) for other in paths - {path})
    )


def local_rules_with(workflow):
    """Rules that Snakemake would run in its own process, and so without their container."""
    rules = {job.rule for job in workflow.dag.needrun_jobs()}
    # What comes after a checkpoint is known only then, when nobody asks us.
    if any(getattr(rule, "is_checkpoint", False) for rule in rules):
        rules |= set(workflow.rules)
    return sorted(rule.name for rule in rules if _has_container(rule) and workflow.is_local(rule))


def _has_container(rule):
    """But where nothing runs, or a template is filled in: Snakemake does that outside of containers too."""
    return bool(rule.container_img) and not rule.norun and not getattr(rule, "is_template_engine", False)
