"""Keeps `shadow: "full"` out of the shadows of other jobs.

Snakemake (9.27, Job.prepare) follows all links below the working directory.  It skips what it finds in its own folder, but
goes through it: there the shadows of "shallow" jobs are, each with a link that leads back to that folder.  Of n such jobs at
the same time it is n ways to go on at each step, and the kernel ends them after forty: with one more than one it never comes
back.  Nothing that it finds there is used, so it does not go there.
"""

import os


class _Os:
    """The module `os`, as snakemake.jobs sees it."""

    def __getattr__(self, name):
        return getattr(os, name)

    @staticmethod
    def walk(top, topdown=True, onerror=None, followlinks=False):
        for folder, folders, files in os.walk(top, topdown, onerror, followlinks):
            yield folder, folders, files
            if topdown and ".snakemake" in folders and folder == top:
                folders.remove(".snakemake")


def keep_out_of_shadows():
    """For all jobs that this process prepares from now on."""
    try:
        import snakemake.jobs as jobs

        if jobs.os is os:
            jobs.os = _Os()
    except (ImportError, AttributeError):
        pass  # another Snakemake: as it does it
