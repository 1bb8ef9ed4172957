"""What ./dev shows of commands that take long: their end, and the time left as ninja or apt let guess it."""

import os
import pathlib
import pty
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def functions():
    """`dev` runs what it is told; these are the two functions alone."""
    text = (ROOT / "dev").read_text()
    return "".join(re.search(rf"^{name}\(\) {{\n.*?^}}\n", text, re.M | re.S)[0] for name in ("share_of", "ticking"))


@pytest.mark.parametrize(
    "log, share",
    [
        ("[1/8] one\n[2/8] two\r[3/8] three", "3 8"),
        (
            "Get:1 lists\n0 upgraded, 2 newly installed, 0 to remove and 1 not upgraded.\nGet:1 a\nGet:2 b\n"
            "Unpacking a (1) ...\nSetting up a (1) ...\n",
            "4 6",
        ),
        ("something else\n", ""),
        ("", ""),
    ],
)
def test_how_much_is_done_is_read_from_the_log(functions, tmp_path, log, share):
    (tmp_path / "log").write_text(log)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", functions + "share_of log"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == share


SLOW = "ticking log bash -c 'for i in $(seq 1 STEPS); do echo \"[$i/12] step\"; sleep 1; done; exit 3'"


def test_a_terminal_has_one_line_with_the_time_left(functions, tmp_path):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", functions + SLOW.replace("STEPS", "3")],
        cwd=tmp_path,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    ) as running:
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert running.returncode == 3
    text = said.decode()
    assert "\n" not in text and text.endswith("\r\x1b[K")
    assert re.search(r"0:0\d, about 0:0\d left  \[\d/12\] step", text)


def test_a_pipe_gets_whole_lines_each_five_seconds(functions, tmp_path):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", functions + SLOW.replace("STEPS", "6")],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert re.fullmatch(r"    0:0\d(, about 0:0\d left)?  \[\d/12\] step\n", done.stderr)
