"""Times as batch systems write them."""

from __future__ import annotations

import re


def walltime_s(walltime: str) -> float:
    """Seconds of "01:30:00", "1-00:00" or "90:00", which is MINUTES:SECONDS (sbatch(1)). Raises ValueError."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+)(?::(\d+))?", walltime.strip())
    if found is None:
        raise ValueError(f"walltime {walltime!r} is no duration: write 01:30:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if found[4] is None and found[1] is None:
        hours, minutes, seconds = 0, hours, minutes
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
