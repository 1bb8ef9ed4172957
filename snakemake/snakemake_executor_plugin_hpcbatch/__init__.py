"""Runs Snakemake's jobs as tasks of hpcbatch.

A job takes the first of three modes that can run it as Snakemake would:

    direct    a plain `shell:` job is a task by itself
    warm      Snakemake for this job, forked by a service that has it imported already (40 ms instead of 2 s)
    relaunch  Snakemake for this job, started anew, as every other executor does it

Decides nothing that the engine can decide, and imports little: every Snakemake start imports this.
"""

from dataclasses import dataclass, field
from typing import Optional

from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

from .executor import Executor

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

_MODES = ("direct", "warm", "relaunch")


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    mode: Optional[str] = field(
        default=None,
        metadata={
            "help": "Take this mode for every job that can run so, and the next safer one for the others, instead of the "
            "fastest: direct, warm or relaunch.",
            "choices": list(_MODES),
        },
    )
    default_mem_mb: Optional[int] = field(
        default=None,
        metadata={
            "help": "Memory of a job that asks for none, in MB. Without it such a job counts for its cpus' share of the node."
        },
    )
    ignore: Optional[str] = field(
        default=None,
        metadata={
            "help": "Resources that jobs run without although they ask for them, with commas: for example "
            "slurm_account,slurm_extra of a profile that was written for another executor."
        },
    )
    program: Optional[str] = field(
        default=None,
        metadata={
            "help": "The program hpcbatch, by which an engine is started where none runs; else HPCBATCH_PROGRAM, else the one on PATH."
        },
    )
    containers: bool = field(
        default=False,
        metadata={
            "help": "Run shell: rules with container: in containers of hpcbatch's, by Apptainer, Podman or Charliecloud, whichever "
            "their node has; images are pulled once per site. Other rules with container: are refused, but for --sdm apptainer."
        },
    )
    on_exit: Optional[str] = field(
        default=None,
        metadata={
            "help": "What happens to jobs that run when Snakemake is interrupted: they are cancelled (cancel, the default), or "
            "go on and are taken up by the next Snakemake in this folder (keep).",
            "choices": ["cancel", "keep"],
        },
    )


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    # Secrets go into the task's environment, where no list of processes shows them.
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)
