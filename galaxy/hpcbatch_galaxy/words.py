"""Amounts as Galaxy's administrators write them.  Pure."""

import re

from hpcbatch import durations

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Refusal(Exception):
    """One sentence: what was asked for, and what to write instead."""


def number(name, value, least=0.0):
    """A number from `least` up; XML and TPV give texts."""
    try:
        found = float(str(value).strip())
    except ValueError:
        found = float("nan")
    if isinstance(value, bool) or not found >= least or found == float("inf"):
        raise Refusal(f"{name}: {value!r} is no number from {least:g} up")
    return found


def whole(name, value, least=0):
    found = number(name, value, least)
    if found != int(found):
        raise Refusal(f"{name}: {value!r} is no whole number")
    return int(found)


def size(name, value, unit):
    """Bytes.  A bare number counts in `unit` (one of K, M, G, T)."""
    match = _SIZE.fullmatch(str(value).strip())
    if not match or isinstance(value, bool):
        raise Refusal(f"{name}: {value!r} is no size; write for example 4G or 4096M")
    count = float(match[1]) * 1024 ** _POWERS[(match[2] or unit).upper()]
    if count < 1:
        raise Refusal(f"{name}: {value!r} is no size above 0")
    return int(count)


def seconds(name, value):
    """Of a time, whose bare numbers are minutes, as sbatch's."""
    found = durations.seconds(str(value), 60)
    if not found:
        raise Refusal(f"{name}: {value!r} is no time; write minutes, H:MM:SS, D-HH:MM:SS, or for example 2h")
    return found
