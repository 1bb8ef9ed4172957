"""Hands a job to a drop box of hpcbatch (or of AMP's hpc_batch) and waits for its result.

    from hpcbatch_dropbox import submit_and_wait
    result = submit_and_wait("/srv/dropbox", {
        "script": "ina_speech_segmenter",
        "input_map": {"input": "/data/talk.wav"},
        "output_map": {"segments": "/data/talk.tsv"}})
    if result["status"] != "ok": ...

One file of the standard library alone, to be copied into whatever environment the caller has. From a shell:

    hpcbatch_dropbox.py DROPBOX SCRIPT [--arg KEY=VALUE] [--input KEY=PATH] [--output KEY=PATH]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import uuid
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Seconds after which a job that nobody has taken is worth a word; a drop box looks every few seconds.
TOLD_AFTER: float = 60.0


class JobError(Exception):
    """The drop box, or what it holds, is not as it must be."""


def submit_and_wait(
    dropbox: str | os.PathLike[str], job: Mapping[str, Any], period: float = 10, timeout: float | None = None
) -> dict[str, Any]:
    """Drops the job, waits for its end and returns what the result says of it: a dict of status (ok or error),
    message, rc, stdout, stderr, start, end; reason, where message does not say it all.

    job: a dict of script, args (may be missing), input_map, output_map; paths are absolute.
    period: seconds between two looks, at most; short jobs are seen sooner.
    timeout: seconds; then TimeoutError is raised, and the job runs on.
    """
    return wait(submit(dropbox, job), period, timeout)


def submit(dropbox: str | os.PathLike[str], job: Mapping[str, Any]) -> str:
    """Drops the job and returns the path of its file, for wait() and cancel()."""
    for key in ("script", "input_map", "output_map"):
        if key not in job:
            raise JobError(f"the job has no '{key}'")
    name = f"job-{uuid.uuid4().hex}"
    path = os.path.join(dropbox, name + ".job")
    aside = os.path.join(dropbox, f".{name}.part")
    # JSON is YAML. A file that is renamed to its name is whole when it is seen.
    text = json.dumps(job, ensure_ascii=False, indent=1, default=str) + "\n"
    # What others can write is not its owner's word.
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
    return path


def wait(path: str, period: float = 10, timeout: float | None = None) -> dict[str, Any]:
    """Waits for the end of the job that submit() dropped; its result is removed from the drop box, where that is the
    caller's to do (in a shared folder results may be the engine's user's)."""
    finished = path + ".finished"
    until = None if timeout is None else time.monotonic() + timeout
    begin = time.monotonic()
    is_told = False
    pause = min(0.05, period)
    while not os.path.exists(finished):
        if not is_told and time.monotonic() - begin >= TOLD_AFTER and os.path.exists(path):
            is_told = True
            warnings.warn(
                f"nobody has taken {path} for {TOLD_AFTER:g} s: does an engine watch the folder? `hpcbatch dropbox` lists those"
                " that are watched",
                RuntimeWarning,
                stacklevel=2,
            )
        if until is not None and time.monotonic() >= until:
            raise TimeoutError(f"{path} has not ended within {timeout} s")
        time.sleep(pause)
        pause = min(period, pause * 1.5)
    with open(finished, encoding="utf-8") as file:
        result = read_yaml(file.read()).get("job")
    if not isinstance(result, dict):
        raise JobError(f"{finished} holds no result")
    try:
        os.unlink(finished)
    except PermissionError:
        pass
    return result


def cancel(path: str) -> bool:
    """Asks for the end of a job that was dropped. Returns whether there will be a result, which then says that it was
    cancelled: there is none of a job that the drop box had not taken yet."""
    for ending in ("", ".submitted"):
        try:
            os.unlink(path + ending)
            return ending != ""
        except FileNotFoundError:
            pass
        except PermissionError:
            raise JobError(
                f"{path}{ending} is not yours to remove in this folder; ask the engine's user to cancel the task"
            ) from None
    return True


# --- The YAML in which results are written: block style, a scalar on one line. ---

_WORDS: dict[str, bool | None] = {
    "null": None,
    "~": None,
    "": None,
    "true": True,
    "false": False,
    "yes": True,
    "no": False,
}
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.S)
_KEY = re.compile(r"""((?:"(?:[^"\\]|\\.)*")|(?:'(?:[^']|'')*')|(?:[^\s#][^#]*?))\s*:(?:\s+(.*))?$""", re.S)


def _scalar(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):

        def unescape(match: re.Match[str]) -> str:
            code = match.group(1) or match.group(2) or match.group(3)
            return chr(int(code, 16)) if code else _ESCAPES.get(match.group(4), match.group(4))

        return _ESCAPE.sub(unescape, text[1:-1])
    if text in ("{}", "[]"):
        return {} if text == "{}" else []
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _is_closed(text: str) -> bool:
    if text.startswith("'"):
        return len(text) > 1 and text.count("'") % 2 == 0
    if text.startswith('"'):
        return re.fullmatch(r'"(?:[^"\\]|\\.)*"', text, re.S) is not None
    return True


class _Reader:
    def __init__(self, text: str) -> None:
        # Only a line feed ends a line; what else Python takes for line ends may stand in texts.
        self.lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
        self.at = 0

    def indent(self) -> int:
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def value(self, rest: str, indent: int) -> Any:
        """What stands after a key or a dash: on its line, over the following ones (folded), or below it."""
        if rest:
            while not _is_closed(rest) and self.at < len(self.lines):
                piece = self.lines[self.at].strip()
                self.at += 1
                rest = rest[:-1] + piece.lstrip("\\") if rest.endswith("\\") else f"{rest} {piece}"
            return _scalar(rest)
        if self.at == len(self.lines):
            return None
        is_list = self.lines[self.at].lstrip().startswith("- ")
        deeper = self.indent() > indent or (is_list and self.indent() == indent)
        return self.block(self.indent()) if deeper else None

    def block(self, indent: int) -> Any:
        line = self.lines[self.at].strip()
        if line == "-" or line.startswith("- "):
            items: list[Any] = []
            while (
                self.at < len(self.lines) and self.indent() == indent and self.lines[self.at].strip()[:2] in ("-", "- ")
            ):
                items.append(self.item(indent))
            return items
        if not _KEY.match(line):
            self.at += 1
            return self.value(line, indent)
        fields: dict[Any, Any] = {}
        while self.at < len(self.lines) and self.indent() == indent:
            match = _KEY.match(self.lines[self.at].strip())
            if not match:
                raise JobError(f"this is no line of a result: {self.lines[self.at]!r}")
            self.at += 1
            fields[_scalar(match.group(1))] = self.value(match.group(2) or "", indent)
        return fields

    def item(self, indent: int) -> Any:
        """A map or a list may begin on the line of its dash: it is read as if the dash were a space."""
        line = self.lines[self.at]
        rest = line[indent + 1 :]
        if not rest.strip():
            self.at += 1
            return self.value("", indent)
        self.lines[self.at] = line[:indent] + " " + rest
        return self.block(self.indent())


def read_yaml(text: str) -> Any:
    """The documents that a drop box writes: hpcbatch's and PyYAML's block style. Not all of YAML."""
    reader = _Reader(text)
    return reader.block(reader.indent()) if reader.lines else {}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} must be KEY=VALUE")
    return key, value


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Drop a job and wait for its result.")
    parser.add_argument("dropbox")
    parser.add_argument("script", help="a template or a tool")
    parser.add_argument("--arg", type=_pair, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--input", type=_pair, action="append", default=[], metavar="KEY=PATH")
    parser.add_argument("--output", type=_pair, action="append", default=[], metavar="KEY=PATH")
    parser.add_argument("--period", type=float, default=10, metavar="SECONDS")
    given = parser.parse_args(words)
    job = {
        "script": given.script,
        "args": dict(given.arg),
        "input_map": {key: os.path.abspath(path) for key, path in given.input},
        "output_map": {key: os.path.abspath(path) for key, path in given.output},
    }
    try:
        path = submit(given.dropbox, job)
        try:
            result = wait(path, given.period)
        except KeyboardInterrupt:
            if not cancel(path):
                print("hpcbatch_dropbox: cancelled before the drop box took the job", file=sys.stderr)
                return 130
            result = wait(path, given.period)
    except KeyboardInterrupt:
        return 130
    except (OSError, JobError) as error:
        print(f"hpcbatch_dropbox: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(str(result["stdout"] or ""))
    sys.stderr.write(str(result["stderr"] or ""))
    if result["status"] != "ok":
        reason = f": {result['reason']}" if result.get("reason") else ""
        print(f"hpcbatch_dropbox: {result['message']}{reason}", file=sys.stderr)
    return 0 if result["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
