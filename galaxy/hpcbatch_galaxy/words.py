"""Amounts as Galaxy's administrators write them.  Pure."""

import re

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
    """sbatch's forms: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S; or a text such as 90s, 2h, 1d12h."""
    text = str(value).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        found = float(text) * 60
    elif match := re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text):
        days, first, second, third = (int(part) if part is not None else None for part in match.groups())
        if days is not None:
            found = days * 86400 + first * 3600 + (second or 0) * 60 + (third or 0)
        elif third is not None:
            found = first * 3600 + second * 60 + third
        else:
            found = first * 60 + (second or 0)
    elif re.fullmatch(r"(?:\d+(?:\.\d+)?\s*[dhms]\s*)+", text):
        found = sum(
            float(count) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[unit]
            for count, unit in re.findall(r"(\d+(?:\.\d+)?)\s*([dhms])", text)
        )
    else:
        found = 0
    if not found > 0:
        raise Refusal(f"{name}: {value!r} is no time; write minutes, H:MM:SS, D-HH:MM:SS, or for example 2h")
    return found
