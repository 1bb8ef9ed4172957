"""Imported by the service that forks Snakemake: what each Snakemake would load and build by itself is there already."""

from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from snakemake_interface_report_plugins.registry import ReportPluginRegistry
from snakemake_interface_scheduler_plugins.registry import SchedulerPluginRegistry
from snakemake_interface_storage_plugins.registry import StoragePluginRegistry

for _registry in (
    ExecutorPluginRegistry,
    StoragePluginRegistry,
    ReportPluginRegistry,
    LoggerPluginRegistry,
    SchedulerPluginRegistry,
):
    _registry()
