"""What a task took, on Galaxy's job page.  The runner leaves a file in the job's directory and makes this plugin known to Galaxy."""

import contextlib
import json
import os

from galaxy.job_metrics import formatting
from galaxy.job_metrics.instrumenters import InstrumentPlugin
from galaxy.job_metrics.safety import Safety

from hpcbatch.regular_file import read_regular

_LONGEST = 64 << 10

_TITLES = {
    "cpu_s": "CPU time",
    "peak_memory": "Memory (peak)",
    "waited_s": "Waited",
    "node": "Node",
    "pilot": "Pilot",
    "failure": "Failure class",
    "task": "Task",
}
# Names of machines are for administrators.
_SAFE = ("cpu_s", "peak_memory", "waited_s", "failure")


class _Formatter(formatting.JobMetricFormatter):
    def format(self, key, value):
        title = _TITLES.get(key, key)
        if key in ("cpu_s", "waited_s"):
            return formatting.FormattedMetric(title, f"{float(value):.1f} s")
        if key == "peak_memory":
            return formatting.FormattedMetric(title, f"{float(value) / (1 << 20):.1f} MB")
        return formatting.FormattedMetric(title, str(value))


class HpcbatchPlugin(InstrumentPlugin):
    plugin_type = "hpcbatch"
    formatter = _Formatter()

    def __init__(self, **kwargs):
        pass

    def safety(self, metric_name):
        return Safety.SAFE if metric_name in _SAFE else Safety.POTENTIALLY_SENSITVE

    def keep(self, job_directory, facts):
        path = self._instrument_file_path(job_directory, "used")
        # The job can write in its directory, and may have put anything there.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + ".new")
        with open(path + ".new", "x", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(path + ".new", path)

    def job_properties(self, job_id, job_directory):
        try:
            facts = json.loads(read_regular(self._instrument_file_path(job_directory, "used"), _LONGEST))
        except (OSError, ValueError):
            return {}  # of another runner, or not what was kept
        return facts if isinstance(facts, dict) else {}


def make_known(job_metrics):
    """To Galaxy, whose plugins come from its own package only.  `job_metrics`: galaxy.job_metrics.JobMetrics."""
    plugin = HpcbatchPlugin()
    job_metrics.plugin_classes[plugin.plugin_type] = HpcbatchPlugin
    for instrumenter in (job_metrics.default_job_instrumenter, *job_metrics.job_instrumenters.values()):
        plugins = getattr(instrumenter, "plugins", None)
        if plugins is not None and not any(known.plugin_type == plugin.plugin_type for known in plugins):
            plugins.append(plugin)
    return plugin
