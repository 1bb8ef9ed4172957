"""`report` on a real engine, beside a ledger that the tasks write themselves."""

import csv
import io
import json
import os
import pathlib
import signal

import pytest
from engine_at_home import EngineAtHome

SPIN = (
    "import os, resource, sys, time\n"
    "begin, kept = time.time(), bytearray(int(sys.argv[1]) << 20)\n"
    "while resource.getrusage(resource.RUSAGE_SELF).ru_utime < 0.4: pass\n"
    "time.sleep(0.6)\n"
    "used = resource.getrusage(resource.RUSAGE_SELF)\n"
    "with open(sys.argv[2], 'a') as ledger:\n"
    "    os.write(ledger.fileno(), f'{time.time() - begin} {used.ru_utime + used.ru_stime}\\n'.encode())\n"
    "sys.exit(int(sys.argv[1]) == 3)\n"
)


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


def report(home, *options):
    return json.loads(home.ok("report", "--json", *options))


def row(told, key):
    return next(one for one in told["rows"] if one["key"] == key)


def test_its_figures_are_those_of_a_ledger(shared, tmp_path):
    ledger = tmp_path / "ledger"
    task = shared.submit(
        "--each",
        "-",
        "--name",
        "ledger",
        "--cpus",
        "1",
        "--mem",
        "200M",
        "--time",
        "10m",
        "--",
        "/usr/bin/python3",
        "-c",
        SPIN,
        "{}",
        str(ledger),
        stdin="1\n2\n3\n40\n5\n6\n7\n8\n9\n10\n",
    )
    assert shared.wait(task) == 1
    kept = [[float(word) for word in line.split()] for line in ledger.read_text().splitlines()]
    one = row(report(shared), "ledger")
    assert (one["runs"], one["done"], one["failed"]) == (10, 9, 1)
    # What starts the program, and ends it, the ledger does not see.
    started = 0.06 * len(kept)
    ran, used = (sum(column) for column in zip(*kept))
    assert ran <= one["run_h"] * 3600 * 1.001 <= ran * 1.02 + started
    assert used * 0.98 <= one["cpu_h"] * 3600 <= used * 1.02 + started
    assert abs(one["cpu_asked_h"] - one["run_h"]) < 1e-9
    assert abs(one["memory_asked_gb_h"] - one["run_h"] * 200 / 1024) < 1e-6
    assert one["time_asked_h"] * 6 > 9.99
    assert one["took"]["seen"] == 9 and 40 << 20 < one["took"]["memory_95"] < 80 << 20


def test_it_is_put_together_in_several_ways(shared):
    task = shared.submit("--array", "1-20", "--name", "many ways", "--", "true")
    assert shared.wait(task) == 0
    total = report(shared)["total"]
    for by in ("kind", "site", "client", "day"):
        rows = report(shared, "--by", by)["rows"]
        assert sum(one["runs"] for one in rows) == total["runs"], by
        assert row(report(shared, "--by", by), rows[0]["key"])["runs"] == rows[0]["runs"]
    table = list(csv.DictReader(io.StringIO(shared.ok("report", "--csv"))))
    assert next(one for one in table if one["kind"] == "many ways")["runs"] == "20"
    text = shared.ok("report")
    assert "many ways" in text and "one by one it would have been" in text
    # All of one cpu each, in pilots that were there for longer than all of them.
    assert report(shared)["held_cpu_h"] >= report(shared)["total"]["cpu_asked_h"] > 0
    assert "of which tasks that have ended had" in " ".join(text.split())
    assert all(len(line) <= 80 for line in text.splitlines() if "--mem" not in line and "--cpus" not in line), text
    assert shared.verb("report", "--by", "user").code == 2


def test_nothing_counts_twice_and_nothing_is_lost_by_a_kill(home):
    first = home.submit("--array", "1-40", "--name", "killed", "--", "sh", "-c", "sleep 0.05")
    while home.show(first)["counts"]["done"] < 10:
        pass
    report(home)
    os.kill(json.loads(home.ok("engine", "status", "--json"))["pid"], signal.SIGKILL)
    assert home.wait(first) == 0
    assert row(report(home), "killed")["runs"] == 40
    failing = home.submit("--array", "1-3", "--name", "retried", "--", "false")
    assert home.wait(failing) == 1
    home.ok("retry", f"{failing}.2")
    assert home.wait(failing) == 1
    assert row(report(home), "retried")["runs"] == 4, "a retry by hand is one more"


def test_a_kind_is_what_the_submit_says(shared):
    task = json.dumps({"command": ["true"], "name": "a-b", "kind": "rule_of_mine"})
    assert shared.wait(shared.submit("--file", "-", stdin=task)) == 0
    assert row(report(shared), "rule_of_mine")["runs"] == 1


def test_a_page_replaces_a_file_or_nothing(shared, tmp_path):
    page = tmp_path / "real.html"
    page.write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "real.html.part").write_text("mine")
    shared.ok("report", "--html", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and page.read_text().startswith("<!")
    assert page.stat().st_mode & 0o777 == 0o666 & ~own_umask()
    for no_file in (tmp_path / "fifo", tmp_path, "/dev/full"):
        refused = shared.verb("report", "--html", no_file)
        assert refused.code == 2 and "it is no file; a page replaces a file, or nothing" in refused.err, refused
    assert (tmp_path / "fifo").is_fifo() and pathlib.Path("/dev/full").is_char_device()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link.html", "real.html", "real.html.part"]
    assert (tmp_path / "real.html.part").read_text() == "mine"


def own_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
