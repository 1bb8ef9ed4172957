"""How Python's values are said to the engine: as JSON has them, as a command does, or refused."""

from __future__ import annotations

import datetime
import math
import operator
import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

from .client import Error


_T_co = TypeVar("_T_co", covariant=True)


class ListOf(Protocol[_T_co]):
    """For type checkers: a list, a tuple, a range; a text is none, although it is a sequence of texts, nor is a mapping."""

    def __len__(self) -> int:
        ...

    def __iter__(self) -> Iterator[_T_co]:
        ...

    def __contains__(self, value: object, /) -> bool:
        ...

    def __getitem__(self, index: int, /) -> _T_co:
        ...

    def index(self, value: Any, /) -> int:
        ...

    def count(self, value: Any, /) -> int:
        ...


# `word` is what the option is called, for whoever gave it wrongly: TypeError and ValueError name it.
def number(word: str, value: Any) -> Any:
    """As JSON has them; numpy's are numbers too."""
    if not isinstance(value, (bool, str, bytes)):
        if hasattr(value, "__index__"):
            return operator.index(value)
        if hasattr(value, "__float__"):
            if not math.isfinite(real := float(value)):
                raise ValueError(f"{word} cannot be {real}")
            return real
    raise TypeError(f"{word} is a number, not {value!r}")


def number_or_text(word: str, value: Any) -> Any:
    return str(value) if isinstance(value, str) else number(word, value)


def text(word: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{word} is a text, not {value!r}")
    return value


def texts(word: str, values: Any) -> list[str]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{word} is a list of texts: [{values!r}]")
    return [text(word, value) for value in values]


def gpus(word: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {text(word, kind): number_or_text(word, count) for kind, count in value.items()}
    return number_or_text(word, value)


def environment(word: str, value: Any) -> dict[str, str]:
    return {text(word, name): os.fsdecode(said) for name, said in dict(value).items()}


def seconds_or_text(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return value if value is None or isinstance(value, str) else number("time", value)


def word_of(value: object) -> str:
    """As a command has it: of a path or bytes what the file system would be given."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    if value is None:
        raise Error("None is no word of a command, nor an item; leave it out, or write it as a text")
    return str(value)


def cell_of(value: object) -> object:
    """Of a mapping. What JSON would round, or has not, goes as a text."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    return value if isinstance(value, (dict, list, tuple)) else word_of(value)


def row_of(item: Any) -> str | list[str] | dict[str, object]:
    if isinstance(item, Mapping):
        return {str(name): cell_of(value) for name, value in item.items()}
    if item is None or isinstance(item, (str, bytes, int, float, os.PathLike)):
        return word_of(item)
    return [word_of(value) for value in item]
