"""What `submit` takes beside a command, its items and its key. Written by tests/ready/task_docs from core/documents/task_keys.cpp."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypedDict, Union

from .values import ListOf

if TYPE_CHECKING:
    from .work import Submission

Path = Union[str, "os.PathLike[str]"]
Ids = Union[str, "Submission", "Iterable[str | Submission]"]


class TaskOptions(TypedDict, total=False):
    """As the options of `hpcbatch submit` (docs/tasks.md); None is as if nothing were said."""

    tool: str | None
    parameters: Mapping[str, object] | None
    name: str | None
    kind: str | None
    after: Ids | None
    after_any: Ids | None
    after_each: Ids | None
    after_start: Ids | None
    after_failed: Ids | None
    after_one: bool | None
    singleton: bool | None
    begin: str | float | datetime.datetime | None
    deadline: str | float | datetime.datetime | None
    requeue: bool | None
    requeue_exit: int | None
    retry_mem: float | str | None
    retry_time: float | str | None
    grace: str | float | datetime.timedelta | None
    signal: str | None
    notify: ListOf[str] | AbstractSet[str] | None
    columns: ListOf[str] | AbstractSet[str] | None
    cpus: float | str | None
    memory: str | int | None
    disk: str | int | None
    gpus: float | str | Mapping[str, Any] | ListOf[str] | None
    gpu_memory: str | int | None
    gpu_capability: str | float | None
    one_of: str | ListOf[str | Mapping[str, Any]] | None
    time: str | float | datetime.timedelta | None
    time_request: str | float | datetime.timedelta | None
    estimate: str | None
    cpu_bind: str | None
    threads_per_core: int | None
    nodes: int | None
    ntasks: int | None
    ntasks_per_node: int | None
    site: str | None
    not_sites: ListOf[str] | AbstractSet[str] | None
    tags: ListOf[str] | AbstractSet[str] | None
    cwd: Path | None
    env: Mapping[str, str] | None
    stdin: Path | None
    stdout: Path | None
    stderr: Path | None
    open_mode: str | None
    output_limit: str | int | None
    inputs: Mapping[str, Path] | None
    outputs: Mapping[str, Path] | None
    container: str | Mapping[str, Any] | None
    retries: int | None
    priority: int | None
    hold: bool | None
    max_running: int | None
    max_fails: int | None


#: Keywords that the API calls otherwise.
API_NAMES: dict[str, str] = {"cwd": "directory", "max_fails": "max_failures"}
#: What Python has in other forms, by type.
KINDS: dict[str, tuple[str, ...]] = {
    "WordList": ("notify", "columns", "not_sites", "tags"),
    "Ids": ("after", "after_any", "after_each", "after_start", "after_failed"),
    "TimeSpan": ("grace", "time", "time_request"),
    "Moment": ("begin", "deadline"),
    "Capability": ("gpu_capability",),
    "Ways": ("one_of",),
    "Folder": ("cwd",),
    "File": ("stdin",),
    "Stream": ("stdout", "stderr"),
    "Files": ("inputs", "outputs"),
}
