"""Selects ready jobs in the order of their priorities for as long as resources last.

For executors that take all that is ready: which job starts where and when is decided by whoever runs them.  Where resources
are scarce, jobs are taken first that have the higher priority, then the larger temporary inputs, then the larger inputs, as
Snakemake's greedy scheduler does, and one that does not fit is passed over for others that do.  The time grows with the number of ready jobs, not its square.
"""

from dataclasses import dataclass
from typing import Mapping, Optional, Sequence, Union

from snakemake_interface_scheduler_plugins.base import SchedulerBase
from snakemake_interface_scheduler_plugins.settings import SchedulerSettingsBase


@dataclass
class SchedulerSettings(SchedulerSettingsBase):
    pass


def select(jobs, available, input_sizes):
    """The jobs to start, or None where a resource is said in words, which only Snakemake's own scheduler weighs.

    `jobs`: each with `priority` and `scheduler_resources`; `available`: what is left of each resource, numbers."""
    left = {name: amount for name, amount in available.items() if not isinstance(amount, str)}
    needs = [(job, job.scheduler_resources) for job in jobs]
    for _, wanted in needs:
        if any(isinstance(amount, str) and name in available for name, amount in wanted.items()):
            return None
    if all(amount <= 0 or amount <= left[name] for name, amount in _together(needs, left).items()):
        return [job for job, _ in needs]

    def turn(entry):
        job, _ = entry
        temporary = size = 0
        for file in _inputs_of(job):
            bytes_of_it = input_sizes.get(file) or 0
            size += bytes_of_it
            if file.is_flagged("temp"):
                temporary += bytes_of_it
        return (-job.priority, -temporary, -size)

    selected = []
    for job, wanted in sorted(needs, key=turn):
        taken = [(name, wanted[name]) for name in left if wanted.get(name, 0) > 0]
        if all(amount <= left[name] for name, amount in taken):
            for name, amount in taken:
                left[name] -= amount
            selected.append(job)
    return selected


def _together(needs, left):
    sums = dict.fromkeys(left, 0)
    for _, wanted in needs:
        for name, amount in wanted.items():
            if name in sums and amount > 0:
                sums[name] += amount
    return sums


def _inputs_of(job):
    return job.input if hasattr(job, "input") else (file for member in job.jobs() for file in member.input)


class Scheduler(SchedulerBase):
    def select_jobs(
        self,
        selectable_jobs: Sequence,
        remaining_jobs: Sequence,
        available_resources: Mapping[str, Union[int, str]],
        input_sizes: Mapping,
    ) -> Optional[Sequence]:
        del remaining_jobs
        return select(list(selectable_jobs), available_resources, input_sizes)
