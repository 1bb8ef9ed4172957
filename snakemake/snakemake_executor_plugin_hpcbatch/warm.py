"""Imported by the service that forks Snakemake: what each Snakemake would load and build by itself is there already.

Not all of it is there in every version of Snakemake: what is missing is left out, and then costs each job its time.
"""

import importlib

for _name in (
    "snakemake.cli",
    "snakemake.api",
    "snakemake.workflow",
    "snakemake.dag",
    "snakemake.parser",
    "snakemake.persistence",
    "snakemake.persistence.file",
    "snakemake.executors.local",
    "snakemake.scheduling.job_scheduler",
    "snakemake.scheduling.greedy",
    "snakemake.script",
    "snakemake.wrapper",
    "snakemake.storage",
    "snakemake.profiles",
    "snakemake.benchmark",
    "snakemake.deployment.conda",
    "snakemake.deployment.singularity",
    "snakemake.deployment.env_modules",
    # Loaded by Snakemake when they are first needed, which every job does.
    "smart_open",
    "argparse_dataclass",
    "platformdirs",
    "encodings.idna",
    "importlib.resources.readers",
    "concurrent.futures.thread",
    "asyncio.taskgroups",
    "psutil",
    "pickle",
    "base64",
    "graphlib",
):
    try:
        importlib.import_module(_name)
    except ImportError:
        pass


def _keep_parser():
    """Building Snakemake's command line from all its plugins takes as long as a small job's own work."""
    import snakemake.cli as cli

    build = cli.get_argument_parser
    parser = build()

    def get_argument_parser(profiles=None):
        return build(profiles) if profiles else parser

    cli.get_argument_parser = get_argument_parser


_keep_parser()
