"""The engine's page inside of Jupyter: what jupyter-server-proxy is told (its entry point `jupyter_serverproxy_servers`)."""

from typing import Any, Dict

from .client import find_program


def page() -> Dict[str, Any]:
    """A launcher called hpcbatch. The page listens on a Unix socket that only its user can open; Jupyter knows who asks."""
    return {
        "command": [find_program(), "web", "--socket", "{unix_socket}"],
        "unix_socket": True,
        "timeout": 30,
        "launcher_entry": {"title": "hpcbatch"},
    }
