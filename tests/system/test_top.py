"""`hpcbatch top` on a real terminal (tmux), with a real engine: what is drawn, what keys do, and how it ends."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import pytest
from engine_at_home import PREFIX, EngineAtHome, wait_until


class Terminal:
    """A tmux of its own with one shell, which says `ended CODE` when the command is over."""

    def __init__(self, engine, columns, rows, **env):
        self.directory = tempfile.mkdtemp(prefix="hb-top-")
        self.socket = f"{self.directory}/tmux"
        variables = {"HPCBATCH_HOME": str(engine.home), "LC_ALL": "C.UTF-8"} | env
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        command = f"env {words} {PREFIX}/bin/hpcbatch top; code=$?; stty -a; echo ended $code; sleep 1000"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "a", "-x", str(columns), "-y", str(rows), command)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout

    def text(self):
        return self.tmux("capture-pane", "-p", "-t", "a")

    def wait_for(self, text):
        wait_until(lambda: text in self.text(), 20, what=f"{text!r} on the screen, which shows\n{self.text()}")

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "a", *keys)

    def pid(self):
        """Of `top` itself."""
        shell = self.tmux("list-panes", "-t", "a", "-F", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell, "-x", "hpcbatch"], stdout=subprocess.PIPE, text=True, check=False)
        return int(found.stdout)

    def close(self):
        self.tmux("kill-server")
        shutil.rmtree(self.directory)


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        engine.ok("submit", "--name", "sweep", "--hold", "--array", "1-250", "--", "true")
        engine.ok("submit", "--hold", "--name", "evil\x1b[2Jname 漢字", "--", "true")
        fails = engine.submit("--name", "fails", "--", "sh", "-c", "echo one; echo oh dear >&2; exit 3")
        assert engine.wait(fails) == 1
        yield engine


@pytest.fixture
def terminal(shared):
    opened = []

    def opening(columns, rows, engine=shared, **env):
        opened.append(Terminal(engine, columns, rows, **env))
        return opened[-1]

    yield opening
    for one in opened:
        one.close()


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
def test_every_size_shows_the_work(terminal, size):
    view = terminal(*size)
    view.wait_for("250")
    text = view.text()
    assert "fails" in text and "0/250" in text and "? help" in text
    assert "evil\\x1" in text and "running" in text
    view.keys("2")
    view.wait_for("1.1-250")
    view.keys("?")
    view.wait_for("Help")
    view.keys("Enter")
    view.wait_for("1.1-250")
    view.keys("q")
    view.wait_for("ended 0")


def test_a_look_into_a_task_and_its_output(terminal):
    view = terminal(80, 24)
    view.wait_for("fails")
    # Other tests submit to this engine too.
    view.keys("/")
    view.keys("name:fails")
    view.keys("Enter")
    view.wait_for("filter 'name:fails'")
    view.wait_for("sh -c")
    view.keys("Enter")
    view.wait_for("tool_failed with exit code 3")
    view.keys("Tab")
    view.wait_for("one")
    view.keys("e")
    view.wait_for("oh dear")
    view.keys("q")
    view.wait_for("filter 'name:fails'")


def test_a_filter_is_applied_by_the_engine(terminal):
    view = terminal(80, 24)
    view.wait_for("sweep")
    view.keys("2", "/")
    view.keys("failed")
    view.keys("Enter")
    view.wait_for("tool_failed")
    assert "sweep" not in view.text()
    view.keys("Escape")
    view.wait_for("sweep")


def test_a_change_is_asked_about_first(terminal, shared):
    array = shared.submit("--name", "unwanted", "--hold", "--array", "1-3", "--", "true")
    view = terminal(80, 24)
    view.wait_for("unwanted")
    view.keys("c")
    view.wait_for(f"cancel {array} (unwanted), 3 tasks? y/n")
    view.keys("n")
    view.wait_for("? help")
    view.keys("c", "y")
    view.wait_for("3 tasks cancelled")
    assert shared.show(array)["counts"]["cancelled"] == 3


def test_a_terminal_that_changes_its_size(terminal):
    view = terminal(120, 40)
    view.wait_for("sweep")
    view.tmux("resize-window", "-t", "a", "-x", "40", "-y", "12")
    view.wait_for("1 Subs")
    wait_until(lambda: len(view.text().rstrip("\n").split("\n")) == 12)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_gives_the_terminal_back(terminal, number):
    view = terminal(80, 24)
    view.wait_for("sweep")
    os.kill(view.pid(), number)
    view.wait_for(f"ended {128 + number}")
    assert re.search(r"(?<!-)\bicanon\b", view.text()) and re.search(r"(?<!-)\becho\b", view.text())


def test_ctrl_c_ends_it(terminal):
    view = terminal(80, 24)
    view.wait_for("sweep")
    view.keys("C-c")
    view.wait_for("ended 0")


def test_without_colours_and_without_utf8(terminal):
    view = terminal(80, 24, NO_COLOR="1", LC_ALL="C")
    view.wait_for("fails")
    assert "name ? ?" in view.text()
    colours = view.tmux("capture-pane", "-e", "-p", "-t", "a")
    assert not re.search(r"\x1b\[(\d+;)*[39][0-7]m", colours)


def test_an_engine_that_is_lost_comes_back(terminal):
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        engine.ok("submit", "--hold", "--name", "kept", "--", "true")
        view = terminal(80, 24, engine)
        view.wait_for("kept")
        engine.kill_engine()
        view.wait_for("no engine for")
        assert "kept" in view.text()
        engine.ok("engine", "start")
        wait_until(lambda: "no engine for" not in view.text(), what="the engine to be seen again")
        view.tmux("kill-server")


def test_what_has_no_terminal_gets_one_picture(shared):
    text = shared.ok("top")
    assert "sweep" in text and "\x1b" not in text
    assert shared.json("top")[0]["engine"]["state"] == "running"
