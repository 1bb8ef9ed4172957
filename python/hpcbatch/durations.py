"""Times as people and batch systems write them."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|[smhd])\s*")
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def seconds(text: str, bare_s: float) -> float | None:
    """Seconds of `90`, each of which counts `bare_s`; of `1d12h`, `1.5h`, `90s`; of `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`
    (sbatch(1), --time). None of what is no time."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text) * bare_s
    if clock := _CLOCK.fullmatch(text):
        days, *numbers = (int(part) if part is not None else None for part in clock.groups())
        first, second, third = numbers[0] or 0, numbers[1] or 0, numbers[2]
        if days is None and third is None:
            return float(first * 60 + second)
        return float(((days or 0) * 24 + first) * 3600 + second * 60 + (third or 0))
    pieces = _PIECE.findall(text)
    if not pieces or _PIECE.sub("", text):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in pieces)


def walltime_s(walltime: str) -> float:
    """Seconds of "01:30:00", "1-00:00" or "90:00", which is MINUTES:SECONDS. Raises ValueError."""
    found = seconds(walltime, 0) if ":" in walltime else None
    if found is None:
        raise ValueError(f"walltime {walltime!r} is no duration: write 01:30:00")
    return found
