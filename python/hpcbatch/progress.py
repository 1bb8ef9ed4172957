"""A bar while somebody waits: in a notebook, or on a terminal's standard error."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

# Nobody needs a bar for what is over by then.
_FIRST_S = 0.5
_STEP_S = 1.0


def bar_html(name: str, ended: int, total: int, words: str) -> str:
    return (
        f'<b>{html.escape(name)}</b> <progress value="{ended}" max="{max(total, 1)}"></progress> {html.escape(words)}'
    )


def _notebook() -> Any:
    """What shows things in the notebook that this process serves, or None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython import display  # type: ignore[import-not-found,unused-ignore]

    return display


class Bar:
    """`progress`: never where False; on a terminal only where True. One thread at a time."""

    def __init__(self, name: str, progress: bool | None) -> None:
        self._name = name
        self._display = None if progress is False else _notebook()
        self._terminal = sys.stderr if progress and self._display is None and sys.stderr.isatty() else None
        self._handle: Any = None
        self._since = time.monotonic()
        self._width = 0

    def patience(self, longest: float) -> float:
        """Seconds until it wants to be shown again; `longest` where nobody sees it."""
        if self._display is None and self._terminal is None:
            return longest
        return _STEP_S if time.monotonic() - self._since >= _FIRST_S else _FIRST_S

    def show(self, ended: int, total: int, words: str, is_over: bool) -> None:
        if is_over and self._handle is None and self._width == 0:
            return
        if self._display is not None:
            shown = self._display.HTML(bar_html(self._name, ended, total, words))
            if self._handle is None:
                self._handle = self._display.display(shown, display_id=True)
            else:
                self._handle.update(shown)
        elif self._terminal is not None:
            line = f"{self._name}: {words}"
            self._terminal.write("\r" + line.ljust(self._width))
            self._terminal.flush()
            self._width = len(line)

    def close(self) -> None:
        if self._width and self._terminal is not None:
            self._terminal.write("\n")
            self._terminal.flush()
