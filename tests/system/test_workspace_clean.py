"""A workspace keeps what allocations and results need, and nothing else for ever."""

import os
import time

from engine_at_home import wait_until

DAY = 24 * 3600


def aged(path, days, text="old"):
    if not path.exists():
        path.write_text(text)
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def test_old_files_go_and_what_results_need_stays(home):
    task = home.submit("--", "sh", "-c", "echo kept; sleep 0.1")
    assert home.wait(task) == 0
    (allocation,) = home.json("allocations")
    ours = allocation["name"][:6]
    work = home.home / "workspace"
    (log,) = (work / "logs").glob("*.log")
    aged(log, 90)
    old = [
        aged(work / f"logs/{ours}Gone00001.0.0000000000000001.log", 40),
        aged(work / f"allocations/{ours}Gone00001.out", 31),
        aged(work / f"allocations/{ours}Gone00001.sh", 31),
    ]
    stays = [
        log,
        aged(work / f"logs/{ours}Young0001.0.0000000000000001.log", 29),
        aged(work / "logs/hOther123456789.0.1.log", 90),
        aged(work / "allocations/notes.txt", 90),
    ]
    (tried,) = home.json("sites", "clean", "local", "--dry-run")
    assert tried["dry_run"] and {file["path"] for file in tried["removed"]} == {
        str(path.relative_to(work)) for path in old
    }, tried
    assert all(path.exists() for path in old)
    said = home.ok("sites", "clean", "local", "--dry-run")
    assert str(old[0].relative_to(work)) in said and "would remove 3 files" in said, said
    assert home.ok("sites", "clean", "local").startswith("removed 3 files, "), "as it was said before"
    assert not any(path.exists() for path in old) and all(path.exists() for path in stays)
    assert home.ok("log", task) == "kept\n"
    (done,) = home.json("sites", "clean", "local")
    assert done["removed"] == [] and done["kept_files"] >= 2, done
    refused = home.verb("sites", "clean", "nowhere")
    assert refused.code != 0 and "no site 'nowhere'" in refused.err, refused


def test_the_configuration_says_how_much_stays_and_the_engine_looks_by_itself(home):
    home.configure("sites:\n  - {name: here, scheduler: local, keep_for: 2h, keep_limit: 1M}\n")
    task = home.submit("--", "true")
    assert home.wait(task) == 0
    ours = home.json("allocations")[0]["name"][:6]
    home.ok("engine", "stop", "--now")
    logs = home.home / "workspace/logs"
    old = aged(logs / f"{ours}Gone00001.0.0000000000000001.log", 3 / 24)
    large = aged(logs / f"{ours}Gone00002.0.0000000000000001.log", 1.5 / 24, "x" * 2_000_000)
    small = aged(logs / f"{ours}Gone00003.0.0000000000000001.log", 1.4 / 24)
    home.ok("engine", "start")
    wait_until(lambda: not old.exists() and not large.exists(), 30, "the engine's cleaning")
    assert small.exists()
