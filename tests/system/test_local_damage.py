"""A store that was damaged while no engine ran: all that was acknowledged is there, or the engine says that it is not and
does not start; and what is left can be looked at, salvaged, and put back from a copy."""

import json
import os
import random
import shutil
import signal

import pytest

from patience import wait_until

LONG = bool(os.environ.get("HPCBATCH_LONG"))
PARTS = ("store.db", "store.db-wal", "store.db-mark")


@pytest.fixture
def arrays(home):
    """Held arrays that were acknowledged before the engine was killed, by id, with the word that each prints."""
    words = {}
    for number in range(12):
        word = f"word-{number}-{'x' * 40}"
        words[home.submit("--hold", "--array", "1-3", "--name", word, "--", "echo", word)] = word
    home.kill_engine()
    return words


def keep(home):
    """What lies there now, to be put back."""
    kept = home.directory / "kept"
    kept.mkdir(exist_ok=True)
    for part in PARTS:
        if (home.home / part).exists():
            shutil.copy2(home.home / part, kept / part)
    return kept


def put_back(home, kept):
    for part in PARTS:
        (home.home / part).unlink(missing_ok=True)
        if (kept / part).exists():
            shutil.copy2(kept / part, home.home / part)


def flip(file, at, bit):
    whole = bytearray(file.read_bytes())
    whole[at] ^= 1 << bit
    file.write_bytes(whole)


def are_there(home, arrays):
    """Every array with what it would run."""
    for array, word in arrays.items():
        shown = home.show(f"{array}.1")
        assert (shown["command"], shown["state"], shown["name"]) == (["echo", word], "held", word)
        assert home.show(array)["total"] == 3


def check_start(home, arrays):
    """True where the engine started with all; false where it said why not."""
    started = home.verb("engine", "start")
    if started.code == 0:
        are_there(home, arrays)
        home.kill_engine()
        return True
    assert started.code == 3 and "hpcbatch fsck" in started.err and "nothing was changed" in started.err, started
    return False


@pytest.mark.parametrize("part", ["store.db-wal", "store.db"])
def test_a_flipped_bit_loses_nothing_in_silence(home, arrays, part):
    kept = keep(home)
    size = (kept / part).stat().st_size
    draw = random.Random(9)
    refused = 0
    for _ in range(300 if LONG else 8):
        put_back(home, kept)
        flip(home.home / part, draw.randrange(size), draw.randrange(8))
        before = {name: (home.home / name).read_bytes() for name in PARTS}
        if not check_start(home, arrays):
            refused += 1
            assert {name: (home.home / name).read_bytes() for name in PARTS} == before
    assert refused or part == "store.db"
    put_back(home, kept)
    assert check_start(home, arrays)


@pytest.mark.parametrize("part", ["store.db-wal", "store.db", "store.db-mark"])
def test_a_file_that_is_gone_is_missed(home, arrays, part):
    kept = keep(home)
    (home.home / part).unlink()
    assert not check_start(home, arrays)
    assert not (home.home / part).exists()
    put_back(home, kept)
    assert check_start(home, arrays)


def test_the_last_block_of_the_log_is_missed_too(home, arrays):
    log = home.home / "store.db-wal"
    os.truncate(log, log.stat().st_size - 4120)
    assert not check_start(home, arrays)


def test_what_is_left_is_salvaged_and_a_copy_is_put_back(home, arrays):
    log = home.home / "store.db-wal"
    flip(log, log.stat().st_size // 2, 3)
    assert home.verb("fsck").code == 1
    report = home.verb("fsck", "--json")
    assert report.code == 1 and json.loads(report.out)["ok"] is False
    before = {name: (home.home / name).read_bytes() for name in PARTS}
    saved = home.directory / "saved.db"
    out = home.verb("fsck", "--salvage", saved)
    assert out.code == 0, out
    assert {name: (home.home / name).read_bytes() for name in PARTS} == before
    assert home.verb("fsck", saved).code == 0
    assert home.verb("fsck", "--salvage", saved).code == 2, "it is there already"
    for part in PARTS[:2]:
        (home.home / part).unlink()
    shutil.copy2(saved, home.home / "store.db")
    home.ok("engine", "start")
    are_there(home, arrays)
    again = home.submit("--hold", "--", "true")
    assert int(again) > max(map(int, arrays)), "ids are given once"


def test_a_backup_is_made_while_the_engine_runs(home, arrays):
    home.ok("engine", "start")
    copy = home.directory / "copy of it.db"
    home.ok("backup", copy)
    refused = home.verb("backup", copy)
    assert refused.code == 2 and "there already" in refused.err
    assert copy.stat().st_mode & 0o777 == 0o600
    later = home.submit("--hold", "--", "true")
    home.kill_engine()
    assert home.verb("fsck", copy).code == 0
    for part in PARTS[:2]:
        (home.home / part).unlink()
    shutil.copy2(copy, home.home / "store.db")
    home.ok("engine", "start")
    are_there(home, arrays)
    assert home.verb("show", later).code == 2
    assert int(home.submit("--hold", "--", "true")) > int(later), "an id means one task for ever"
    # A task that is submitted now runs: nothing of the engine's life after the copy stands in its way.
    assert home.wait(home.submit("--", "true")) == 0


def lose_block_with(file, text):
    """As a drive gives back a block that it cannot read."""
    whole = bytearray(file.read_bytes())
    at = whole.find(text) // 4096 * 4096
    assert at >= 0
    whole[at : at + 4096] = bytes(4096)
    file.write_bytes(whole)


def test_of_a_lost_block_nothing_runs_as_something_else(home):
    texts = home.directory / "texts"
    texts.write_text("".join(f"item-{i}-{'x' * 60}\n" for i in range(600)))
    each = home.submit("--hold", "--each", texts, "--", "echo", "{}")
    other = home.submit("--hold", "--", "echo", "it is all there")
    home.ok("engine", "stop")
    lose_block_with(home.home / "store.db", b"item-300-")
    refused = home.verb("engine", "start")
    assert refused.code == 3 and "hpcbatch fsck" in refused.err, refused
    saved = home.directory / "saved.db"
    out = home.ok("fsck", "--salvage", saved)
    assert f"left out, because the texts of their tasks cannot be read: {each};" in out, out
    assert "are held" in out, out
    (home.home / "store.db").unlink()
    shutil.copy2(saved, home.home / "store.db")
    home.ok("engine", "start")
    assert home.verb("show", each).code == 2
    home.ok("release", other)
    assert home.wait(other) == 0
    assert home.ok("log", other) == "it is all there\n"
    assert int(home.submit("--", "true")) > int(other)


def test_a_store_that_is_short_by_a_byte_is_salvaged(home, arrays):
    home.ok("engine", "start")
    home.ok("engine", "stop")
    file = home.home / "store.db"
    os.truncate(file, file.stat().st_size - 1)
    saved = home.directory / "saved.db"
    home.ok("fsck", "--salvage", saved)
    file.unlink()
    shutil.copy2(saved, file)
    home.ok("engine", "start")
    are_there(home, arrays)


@pytest.mark.parametrize("part", PARTS)
def test_a_file_that_goes_under_a_running_engine_is_said(home, arrays, part):
    home.ok("engine", "start")
    kept = home.directory / "aside"
    os.rename(home.home / part, kept)
    refused = wait_until(
        lambda: (said := home.verb("submit", "--hold", "--", "true")).code != 0 and said, 60, "it to refuse"
    )
    assert part in refused.err and "hpcbatch backup" in refused.err, refused
    saved = home.directory / "saved.db"
    home.ok("backup", saved)
    home.ok("engine", "stop")
    for name in PARTS:
        (home.home / name).unlink(missing_ok=True)
    shutil.copy2(saved, home.home / "store.db")
    home.ok("engine", "start")
    are_there(home, arrays)


def test_a_second_start_calls_a_living_store_in_use(home, arrays):
    home.ok("engine", "start")
    status = json.loads(home.ok("engine", "status", "--json"))
    for name in ("engine.lock", "socket"):
        (home.home / name).unlink(missing_ok=True)
    second = home.verb("engine", "run")
    assert second.code != 0 and f"process {status['pid']}" in second.err, second
    assert "cannot be used" not in second.err, second
    os.kill(status["pid"], signal.SIGKILL)  # nobody reaches it by its socket


def test_a_home_that_is_put_back_gives_no_id_again(home, tmp_path):
    home.configure(
        f"sites:\n  - {{name: here, scheduler: local, transport: shared_fs, workspace: {tmp_path}/workspace, "
        "shapes: [{name: all, cpus: 1, memory: 512M}]}\n"
    )
    first = home.submit("--hold", "--", "true")
    home.ok("engine", "stop")
    backup = home.directory / "backup"
    shutil.copytree(home.home, backup, ignore=shutil.ignore_patterns("pilots", "socket"))
    later = [home.submit("--hold", "--", "true") for _ in range(5)]
    (given,) = (tmp_path / "workspace").glob("given-*")
    wait_until(lambda: given.read_text().split()[1] == later[-1], 20, "the workspace to know of the last")
    home.kill_engine()
    shutil.rmtree(home.home)
    for file in home.history.iterdir():  # what was accepted since the backup is lost, as is said
        file.unlink()
    shutil.copytree(backup, home.home)
    next_one = home.submit("--hold", "--", "true")
    assert int(next_one) > max(map(int, later)) > int(first)
    assert "older than what its workspaces have seen" in (home.home / "engine.log").read_text()
