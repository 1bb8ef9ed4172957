"""The standard tests of Snakemake's executors; run by Snakemake's own Python (test_harness.py)."""

import os
from typing import Optional

import snakemake.common.tests
from snakemake_executor_plugin_hpcbatch import ExecutorSettings
from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase


class TestWorkflows(snakemake.common.tests.TestWorkflowsLocalStorageBase):
    __test__ = True

    def get_executor(self) -> str:
        return "hpcbatch"

    def get_executor_settings(self) -> Optional[ExecutorSettingsBase]:
        return ExecutorSettings(mode=os.environ.get("HARNESS_MODE") or None)
