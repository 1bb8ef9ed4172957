"""What is said of GPUs, and of several ways to run a task, in one text, for who has to know numbers before the engine reads it:
Snakemake's executor, whose commands are made with their threads."""

from __future__ import annotations

import re
from typing import Any

_KIND = re.compile(r"([A-Za-z_][\w.\-|]*)(?::(\d+(?:\.\d+)?))?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_KEYS = {
    **{key: key.replace("-", "_") for key in ("cpus", "memory", "disk", "gpus", "gpu-memory", "gpu-capability")},
    **{"mem": "memory", "gpu_memory": "gpu_memory", "gpu_capability": "gpu_capability"},
}


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value == int(value) else value


def gpus(text: str) -> float | dict[str, float]:
    """`2`, `0.25`, `a100`, `a100:2`, `a100|h100:2`. Raises ValueError with a sentence."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return _number(text)
    found = _KIND.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no number of GPUs; write 1, a100, a100:2 or a100|h100:2")
    return {found[1]: _number(found[2] or "1")}


def gres(text: str) -> float | dict[str, float]:
    """The same of `gpu`, `gpu:2`, `gpu:a100`, `gpu:a100:2` (sbatch(1), --gres). Raises ValueError with a sentence."""
    name, _, which = text.strip().partition(":")
    if name != "gpu":
        raise ValueError(f"of --gres only GPUs are known, written gpu:2 or gpu:a100:2, not {text.strip()!r}")
    return gpus(which or "1")


def _way(text: str) -> dict[str, Any]:
    way: dict[str, Any] = {}
    for word in text.split(","):
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not value:
            raise ValueError(f"{word.strip()!r} does not say what is needed; write it as gpus=1,cpus=4")
        if key not in _KEYS:
            raise ValueError(f"{key!r} is none of cpus, mem, disk, gpus, gpu-memory, gpu-capability")
        if key == "gpus":
            way[key] = gpus(value)
        else:
            way[_KEYS[key]] = _number(value) if key == "cpus" and _NUMBER.fullmatch(value) else value
    return way


def ways(text: str) -> list[dict[str, Any]]:
    """`gpus=1,cpus=4; cpus=16` as `one_of` of a task: ways that would all do, the best first. Raises ValueError with a sentence."""
    all_of_them = [_way(part) for part in text.split(";") if part.strip()]
    if len(all_of_them) < 2:
        raise ValueError(f"{text!r} leaves no choice; write two ways or more, as gpus=1,cpus=4; cpus=16")
    return all_of_them
