"""A submission is one thing: one line of a list, one explanation, one word for the newest, whatever it has of tasks."""

import itertools
import json
import os
import pwd
import re
import shlex
import subprocess

import pytest
from engine_at_home import EngineAtHome, wait_until


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


@pytest.fixture(scope="module")
def sweep(shared):
    """(id, items) of 300 tasks of which those whose item ends with 7 fail, and one with 9 by a signal."""
    items = [f"part {i}.bam" for i in range(1, 301)]
    script = 'case "$1" in *7.bam) echo "cannot read $1" >&2; exit 3;; "part 9.bam") kill -9 $$;; esac'
    task = shared.submit(
        "--name", "sweep", "--each", "-", "--", "sh", "-c", script, "fit", "{}", stdin="\n".join(items) + "\n"
    )
    assert shared.wait(task) == 1
    return task, items


def line_of(shared, task, *words):
    return next(line for line in shared.json("list", *words) if line["id"] == task)


def test_a_list_has_a_line_for_each_submission(shared, sweep):
    task, _ = sweep
    line = line_of(shared, task)
    assert (line["name"], line["state"], line["total"]) == ("sweep", "failed", 300)
    assert line["counts"] == {"waiting": 0, "held": 0, "running": 0, "done": 269, "failed": 31, "cancelled": 0}
    assert line["submitted_at"] <= line["started_at"] <= line["ended_at"] and line["command"][0] == "sh"
    shown = next(row for row in shared.ok("list").splitlines() if row.startswith(f"{task} "))
    assert re.search(r"failed +\[#+x\] +269/300 +31 .*sweep: sh -c", shown), shown


def test_a_list_chooses_submissions(shared, sweep):
    task, _ = sweep
    held = shared.submit("--hold", "--name", "sweep-2", "--array", "1-5", "--", "true")
    plain = shared.submit("--", "true")
    assert shared.wait(plain) == 0
    ids = lambda *words: {line["id"] for line in shared.json("list", "--all", *words)}
    assert task in ids("--state", "failed") and not {held, plain} & ids("--state", "failed")
    assert {task, plain} <= ids("--state", "done") and held not in ids("--state", "done")
    assert held in ids("--state", "held") and not {task, plain} & ids("--state", "held")
    assert ids("--name", "sweep") == {task} and ids("--name", "sweep*") == {task, held}
    assert task in ids("--failure", "tool_signal") and plain not in ids("--failure", "tool_failed")
    [site] = [site["name"] for site in shared.json("sites")]
    assert {task, plain} <= ids("--site", site) and held not in ids("--site", site) and not ids("--site", "there")
    assert {task, held, plain} <= ids("--since", "1h") and not ids("--client", "nobody")
    assert [line["id"] for line in shared.json("list", "-n", "2")] == [plain, held]
    shared.ok("cancel", held)


def test_the_tasks_of_one_are_listed_by_its_id(shared, sweep):
    task, _ = sweep
    failed = shared.json("list", task, "--state", "failed")
    assert {line["id"] for line in failed} == {f"{task}.{i}" for i in range(7, 301, 10)} | {f"{task}.9"}
    refused = shared.verb("list", "999999")
    assert refused.code == 2 and "there is no task 999999" in refused.err


def test_one_is_explained_as_a_whole(shared, sweep):
    task, items = sweep
    why = shared.json("explain", task)[0]
    assert why["state"] == "failed" and why["text"] == "of 300 tasks 269 done, 31 failed"
    first, second = why["failures"]
    assert (first["failure"], first["exit_code"], first["tasks"], first["first"]) == ("tool_failed", 3, 30, f"{task}.7")
    assert first["item"] == items[6] and first["node"]
    assert (second["failure"], second["signal"], second["tasks"], second["first"]) == ("tool_signal", 9, 1, f"{task}.9")
    listed = shared.json("list", task, "--state", "failed", "--all")
    assert {one["item"] for one in listed} == {item for n, item in enumerate(items, 1) if n % 10 == 7 or n == 9}
    assert "  part 7.bam  " in shared.ok("list", task, "--state", "failed", "--all")
    told = shared.ok("explain", task)
    assert re.search(
        r"^  the first started \S+ after the submit, half of those that ran had started after \S+; the last ended \S+ later.*: \S+ at a time$",
        told,
        re.M,
    ), told
    assert f"30 exit code 3: first {task}.7 (item part 7.bam) on " in told, told
    assert f"{task}.7 last printed:\n    cannot read part 7.bam\n" in told, told


def test_those_that_failed_in_one_way_are_listed(shared, sweep):
    task, _ = sweep
    assert [line["id"] for line in shared.json("list", task, "--failure", "tool_signal")] == [f"{task}.9"]
    assert len(shared.json("list", task, "--failure", "tool_failed", "-n", "100")) == 30


def test_new_needs_are_not_said_of_what_ended_with_the_old(shared):
    task = shared.submit("--array", "1-2", "--", "sh", "-c", "test $HPCBATCH_TASK_INDEX = 1")
    assert shared.wait(task) == 1
    shared.ok("retry", task, "--failed", "--mem", "100M")
    assert shared.wait(task) == 1
    assert "memory" not in shared.show(f"{task}.1")["needs"]
    assert shared.show(f"{task}.2")["needs"]["memory"] == 100 << 20


def test_what_waits_is_not_given_less_by_a_retry_of_others(shared):
    held = shared.submit("--hold", "--array", "1-2", "--", "true")
    shared.ok("cancel", f"{held}.1")
    refused = shared.verb("retry", f"{held}.1", "--time", "1s")
    assert refused.code != 0 and f"1 task of {held} still waiting would get less than asked for" in refused.err, refused
    shared.ok("retry", f"{held}.1")
    shared.ok("cancel", held)


def test_an_item_that_nothing_uses_is_told(shared):
    told = shared.verb("run", "--items", "a", "b", "--", "true")
    assert told.code == 0 and "the command has no {}: each task has its item in $HPCBATCH_ITEM alone" in told.err, told
    assert shared.verb("run", "--items", "a", "b", "--", "true", "{}").err == ""


def on_a_terminal(shared, *words):
    """What a terminal of 80 columns is sent, standard error too."""
    done = subprocess.run(
        ["script", "-qec", shlex.join([shared.program, *words]), "/dev/null"],
        env=shared.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.replace("\r", "").splitlines()


def without_quotes(lines):
    """What tasks printed stays as they printed it."""
    return list(itertools.takewhile(lambda line: "last printed:" not in line, lines))


def test_a_terminal_cuts_no_word(shared, sweep):
    task, _ = sweep
    for words in (
        ("explain", task),
        ("list", "--state", "nonsense"),
        ("submit", "--file", "/nowhere/tasks.yaml", "--cpus", "none"),
    ):
        lines = without_quotes(on_a_terminal(shared, *words))
        assert lines and max(map(len, lines)) <= 80, lines
    told = without_quotes(shared.ok("explain", task).splitlines())
    shown = without_quotes(on_a_terminal(shared, "explain", task))
    assert " ".join(" ".join(shown).split()) == " ".join(" ".join(told).split())


def test_what_has_not_ended_is_explained_with_one_of_its_tasks(shared):
    held = shared.submit("--hold", "--array", "1-4", "--", "true")
    told = shared.ok("explain", held)
    assert f"{held} is held: of 4 tasks 4 held\n  {held}.1 is held: " in told, told
    shared.ok("cancel", held)


def test_an_item_stands_with_its_task(shared, sweep):
    task, items = sweep
    assert shared.show(f"{task}.7")["item"] == items[6]
    assert "item" not in shared.show(shared.submit("--", "true"))


def test_last_is_the_newest(shared):
    task = shared.submit("--array", "1-3", "--", "sh", "-c", "echo $HPCBATCH_TASK_INDEX")
    assert shared.wait("last") == 0
    assert shared.show("last.2")["id"] == f"{task}.2" and shared.json("explain", "last")[0]["id"] == task
    assert shared.ok("log", "last.3") == "3\n"
    assert shared.json("list", "last")[0]["id"].startswith(f"{task}.")
    later = shared.submit("--hold", "--", "true")
    assert shared.ok("cancel", "last") == "1 task cancelled\n" and shared.show(later)["state"] == "cancelled"


def test_a_name_means_all_of_that_name(shared):
    ids = [shared.submit("--hold", "--name", "to be ended", "--array", "1-2", "--", "true") for _ in range(2)]
    assert shared.ok("cancel", "--name", "to be*") == "4 tasks cancelled\n"
    assert all(shared.show(task)["counts"]["cancelled"] == 2 for task in ids)
    refused = shared.verb("cancel", "--name", "to be endde")
    assert refused.code == 2 and "is called 'to be endde'" in refused.err


def test_the_end_of_a_wait_says_what_to_type_next(shared, sweep):
    task, _ = sweep
    result = shared.verb("wait", task)
    assert (result.code, result.out) == (1, "")
    assert "269 of 300 done, 31 failed" in result.err and f"`hpcbatch explain {task}` says why" in result.err
    counts = json.loads(shared.verb("wait", "--json", task).out)
    assert (counts["ok"], counts["failed"]) == (269, 31)


def test_what_failed_is_retried_with_more(shared):
    fill = "import sys; kept = bytearray(150 << 20) if sys.argv[1] == 'large' else None; print(sys.argv[1])"
    task = shared.submit(
        "--mem", "100M", "--each", "-", "--", "/usr/bin/python3", "-c", fill, "{}", stdin="small\nlarge\nsmall\n"
    )
    assert shared.wait(task) == 1
    assert shared.json("explain", task)[0]["failures"][0]["failure"] == "oom_task"
    refused = shared.verb("retry", task, "--cpus", "100000")
    assert refused.code == 2 and "never_fits" in refused.err and "nothing was changed" in refused.err, refused
    assert shared.show(task)["counts"]["failed"] == 1
    assert shared.ok("retry", task, "--failed", "--mem", "400M", "--time", "10m") == "1 task queued again\n"
    assert shared.wait(task) == 0
    needs = shared.show(task)["needs"]
    assert (needs["memory"], needs["time"]) == (400 << 20, 600)
    assert shared.ok("log", f"{task}.2") == "large\n"


def test_of_many_ways_to_fail_one_is_retried_and_read(shared):
    task = shared.submit(
        "--array",
        "1-4",
        "--",
        "sh",
        "-c",
        'echo "did $HPCBATCH_TASK_INDEX"; test $HPCBATCH_TASK_INDEX = 4 || exit 3; kill -9 $$',
    )
    assert shared.wait(task) == 1
    assert shared.ok("log", task, "--failure", "tool_signal") == "did 4\n"
    assert shared.ok("log", task, "--failure", "oom_task") == ""
    assert shared.ok("retry", task, "--failure", "tool_signal") == "1 task queued again\n"
    assert shared.wait(task) == 1
    assert [shared.show(f"{task}.{i}")["attempt"] for i in range(1, 5)] == [1, 1, 1, 2]
    assert "of their last attempts the first started" in shared.ok("explain", task)
    assert shared.ok("explain", f"{task}.1", f"{task}.4").startswith("of 2 tasks: 2 failed\n")


def test_what_ended_with_one_exit_code_is_listed_read_and_retried(shared):
    task = shared.submit(
        "--array", "1-6", "--", "sh", "-c", 'echo "did $HPCBATCH_TASK_INDEX"; exit $((HPCBATCH_TASK_INDEX % 3))'
    )
    other = shared.submit("--", "sh", "-c", "exit 5")
    assert shared.wait(task) == 1 and shared.wait(other) == 1
    assert [line["id"] for line in shared.json("list", task, "--failure", "exit:2")] == [f"{task}.5", f"{task}.2"]
    ids = {line["id"] for line in shared.json("list", "--all", "--failure", "exit:2")}
    assert task in ids and other not in ids
    assert shared.ok("log", task, "--failure", "exit:1") == "did 1\ndid 4\n"
    assert shared.ok("retry", task, "--failure", "exit:2") == "2 tasks queued again\n"
    assert shared.wait(task) == 1
    assert [shared.show(f"{task}.{i}")["attempt"] for i in range(1, 7)] == [1, 2, 1, 1, 2, 1]
    for wrong, sentence in (
        ("exit 3", "did you mean 'exit:3'?"),
        ("exit:0", "is not a failure"),
        ("exit:300", "is not a failure"),
        ("exit code 3", "did you mean 'exit:3'?"),
    ):
        refused = shared.verb("list", task, "--failure", wrong)
        assert refused.code == 2 and sentence in refused.err, refused


def test_programs_get_all_lines_and_people_are_told_of_more(shared):
    task = shared.submit("--array", "1-120", "--", "sh", "-c", "exit $((HPCBATCH_TASK_INDEX % 2))")
    assert shared.wait(task) == 1
    assert len(shared.json("list", task)) == 120
    for words in (["list", task], ["list", task, "--json", "-n", "5"], ["list", "--tasks", "--json"]):
        some = shared.verb(*words)
        assert "there may be more" in some.err and len(some.out.splitlines()) < 60, some


def test_who_submits_does_not_depend_on_the_environment(shared):
    """A key that cron gives again is the same, and `last` is the same for a script and a shell."""
    env = dict(shared.env)
    ids = set()
    for user in ({"USER": "somebody"}, {"LOGNAME": "else", "USER": "else"}, {}):
        shared.env = {key: value for key, value in env.items() if key not in ("USER", "LOGNAME")} | user
        ids.add(shared.ok("submit", "--key", "by-cron", "--", "true"))
        ids.add(shared.show("last")["id"] + "\n")
    shared.env = env
    assert len(ids) == 1, ids
    assert shared.show("last")["client"] == f"shell:{pwd.getpwuid(os.getuid()).pw_name}"


def test_a_retry_tells_what_was_named_from_what_waits_for_it(shared, tmp_path):
    cause = shared.submit("--", "test", "-e", tmp_path / "there")
    waiting = shared.submit("--after", cause, "--array", "1-3", "--", "true")
    assert shared.wait(waiting) == 1
    (tmp_path / "there").touch()
    assert shared.ok("retry", cause) == "1 task queued again, and 3 that could not start without it\n"
    assert shared.wait(cause, waiting) == 0


def test_a_wait_ends_where_the_task_first_ran(shared):
    task = shared.submit("--", "false")
    assert shared.wait(task) == 1
    first = shared.show(task)
    shared.ok("retry", task)
    assert shared.wait(task) == 1
    again = shared.show(task)
    assert again["attempt"] == 2 and again["started_at"] > first["started_at"]
    assert abs(again["wait_s"] - first["wait_s"]) < 1e-6


def test_a_retry_of_what_could_not_start_again_is_refused(shared, tmp_path):
    cause = shared.submit(
        "--array", "1-2", "--", "sh", "-c", f"test -e {tmp_path}/there || test $HPCBATCH_TASK_INDEX = 1"
    )
    waiting = shared.submit("--after", cause, "--", "true")
    behind = shared.submit("--after", waiting, "--", "true")
    each = shared.submit("--after-each", cause, "--array", "1-2", "--", "true")
    assert shared.wait(waiting, each) == 1
    assert shared.wait(behind) == 1
    for task, on in ((waiting, cause), (each, cause), (f"{each}.2", cause), (behind, waiting)):
        refused = shared.verb("retry", task)
        assert (
            refused.code == 2
            and f"waits for {on}, which did not end well because of {cause}.2 (tool_failed)" in refused.err
        ), refused
    (tmp_path / "there").touch()
    assert shared.ok("retry", cause, waiting).startswith("2 tasks queued again, and 2 that")
    assert shared.wait(cause, waiting, each) == 0


def test_a_retry_with_more_says_whom_else_that_changes(shared):
    task = shared.submit(
        "--array", "1-40%1", "--mem", "50M", "--", "sh", "-c", "test $HPCBATCH_TASK_INDEX != 1 || exit 1; sleep 60"
    )
    wait_until(
        lambda: shared.show(task)["counts"]["running"] == 1 and shared.show(task)["counts"]["failed"] == 1,
        what="the failed one",
    )
    assert shared.ok("retry", task, "--failed", "--mem", "60M").startswith(
        "1 task queued again; 38 tasks of it that wait ask for that now, too"
    )
    shared.ok("cancel", task)
    ways = shared.submit("--mem", "50M", "--array", "1-3", "--", "sh", "-c", "exit $HPCBATCH_TASK_INDEX")
    assert shared.wait(ways) == 1
    assert (
        shared.ok("retry", ways, "--failure", "exit:3", "--mem", "60M")
        == "1 task queued again; 2 of the same submission that are not retried now would need it as well, once retried\n"
    )


def test_the_log_of_a_range_has_what_was_asked_for(shared):
    task = shared.submit(
        "--array", "1-6", "--", "sh", "-c", 'echo "did $HPCBATCH_TASK_INDEX"; test $HPCBATCH_TASK_INDEX -gt 3'
    )
    assert shared.wait(task) == 1
    assert shared.ok("log", f"{task}.2-5") == "did 2\ndid 3\ndid 4\ndid 5\n"
    assert shared.ok("log", f"{task}.2-5", "--failed") == "did 2\ndid 3\n"
    assert shared.ok("log", f"{task}.5", "--failed") == ""
    assert shared.ok("log", f"{task}.1", "--failure", "tool_failed") == "did 1\n"
    for missing in (f"{task}.7", f"{task}.5-9"):
        refused = shared.verb("log", missing)
        assert refused.code == 2 and "there is no task" in refused.err, refused
    assert shared.verb("log", task, "--failed", "--attempt", "1").code == 2
    assert shared.ok("retry", task, "--failure", "oom_task") == "nothing to do: none of these tasks has failed so\n"


def test_what_waits_has_no_log_and_is_told_by_its_neighbours(shared):
    task = shared.submit("--array", "1-300", "--hold", "--", "echo", "one")
    assert shared.ok("log", f"{task}.1-300") == "" and shared.ok("log", f"{task}.7") == ""
    shared.ok("cancel", f"{task}.100-199")
    lines = [line.split()[:3] for line in shared.ok("list", task).splitlines()[1:]]
    assert lines == [
        [f"{task}.200-300", "held", "101"],
        [f"{task}.100-199", "cancelled", "100"],
        [f"{task}.1-99", "held", "99"],
    ]
    unknown = shared.verb("list", task, "99999", "-n", "1")
    assert unknown.code == 2 and "there is no task 99999" in unknown.err
    cut = shared.verb("list", task, "-n", "1")
    assert len(cut.out.splitlines()) == 2 and "there may be more" in cut.err
    shared.ok("cancel", task)


def test_the_log_of_a_submission_has_what_ended_between_those_that_wait(shared):
    task = shared.submit("--hold", "--array", "1-3", "--", "sh", "-c", 'echo "did $HPCBATCH_TASK_INDEX"')
    shared.ok("release", f"{task}.2")
    assert shared.wait(f"{task}.2") == 0
    assert shared.ok("log", task) == "did 2\n"
    shared.ok("cancel", task)


def test_a_retry_of_what_failed_leaves_what_was_cancelled(shared):
    task = shared.submit("--array", "1-2", "--hold", "--", "false")
    shared.ok("cancel", f"{task}.2")
    shared.ok("release", task)
    assert shared.wait(task) == 1
    assert shared.ok("retry", "--failed", task) == "1 task queued again\n"
    assert shared.wait(task) == 1
    assert shared.show(f"{task}.2")["state"] == "cancelled"


def test_an_item_is_one_argument_whatever_it_holds(shared):
    items = ["a b", "$(touch /tmp/no)", "'; exit 9; '", "*", "-n", "{}", "ü"]
    each = ["submit", "--each", "-", "--"]
    text = "\n".join(items) + "\n"
    task = shared.submit(*each[1:], "printf", "%s|", "{}", stdin=text)
    assert shared.wait(task) == 0
    assert [shared.ok("log", f"{task}.{i + 1}") for i in range(len(items))] == [f"{item}|" for item in items]
    refused = shared.verb(*each, "bash", "-euc", "echo {}", stdin=text)
    assert (
        refused.code == 2 and "which would run what it holds" in refused.err and "$HPCBATCH_ITEM" in refused.err
    ), refused
    for right in (["sh", "-c", 'printf "%s|" "$1"', "sh", "{}"], ["sh", "-c", 'printf "%s|" "$HPCBATCH_ITEM"']):
        task = shared.submit(*each[1:], *right, stdin=text)
        assert shared.wait(task) == 0
        assert [shared.ok("log", f"{task}.{i + 1}") for i in range(len(items))] == [f"{item}|" for item in items]


def test_parts_of_an_item_stand_in_commands_and_paths(shared, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.wav", "b.c.wav"):
        (tmp_path / "in" / name).write_text(name)
    task = shared.submit(
        "--each",
        "-",
        "--stdout",
        f"{tmp_path}/{{/.}}.{{#}}.txt",
        "--",
        "echo",
        "{/}",
        "{.}",
        "{#}",
        stdin=f"{tmp_path}/in/a.wav\n{tmp_path}/in/b.c.wav\n",
    )
    assert shared.wait(task) == 0, shared.ok("explain", task)
    assert (tmp_path / "a.1.txt").read_text() == f"a.wav {tmp_path}/in/a 1\n"
    assert (tmp_path / "b.c.2.txt").read_text() == f"b.c.wav {tmp_path}/in/b.c 2\n"


def test_the_log_of_all_is_in_their_order(shared, sweep):
    task, items = sweep
    # One stream alone is what a pipe is to get.
    only = shared.ok("log", task, "--failed", "--prefix", "--stderr", "--tail", "1")
    assert only.splitlines() == [f"{task}.{i}: cannot read {items[i - 1]}" for i in range(7, 301, 10)]
    told = shared.verb("log", task, "--failed", "--prefix")
    assert not told.err and only.splitlines() == [one for one in told.out.splitlines() if ": cannot read " in one]
    lines = shared.submit("--array", "1-12", "--", "sh", "-c", "echo first $HPCBATCH_TASK_INDEX; printf 'last'")
    assert shared.wait(lines) == 0
    assert shared.ok("log", lines) == "".join(f"first {i}\nlast" for i in range(1, 13))
    assert (
        shared.ok("log", f"{lines}.3-4", "--prefix")
        == f"{lines}.3: first 3\n{lines}.3: last\n{lines}.4: first 4\n{lines}.4: last\n"
    )
    assert shared.ok("log", lines, "--tail", "1", "--prefix") == "".join(f"{lines}.{i}: last\n" for i in range(1, 13))
    pieces = [piece for piece in shared.json("log", lines, "--stdout")]
    assert [(piece["id"], piece["text"]) for piece in pieces] == [
        (f"{lines}.{i}", f"first {i}\nlast") for i in range(1, 13)
    ]
    long = shared.submit("--", "sh", "-c", "seq 100000")
    assert shared.wait(long) == 0
    assert shared.ok("log", long, "--tail", "3") == "99998\n99999\n100000\n"
    assert shared.ok("log", long, "--tail", "100000").startswith("1\n2\n")


def test_a_submit_that_waits_exits_as_a_wait(shared):
    result = shared.verb("submit", "--wait", "--array", "1-4", "--", "sh", "-c", "exit $((HPCBATCH_TASK_INDEX == 3))")
    task = result.out.strip()
    assert result.code == 1 and shared.show(task)["counts"]["failed"] == 1 and "3 of 4 done, 1 failed" in result.err
    done = shared.verb("submit", "--wait", "--json", "--", "true")
    first, last = (json.loads(line) for line in done.out.splitlines())
    assert done.code == 0 and first["id"] and last["ok"] == 1


def test_a_submission_is_followed_until_all_have_ended(shared, tmp_path):
    task = shared.submit(
        "--array",
        "1-6",
        "--",
        "sh",
        "-c",
        f'n=$HPCBATCH_TASK_INDEX; while test $n -gt 3 -a ! -e {tmp_path}/go; do sleep 0.05; done; echo "did $n"; test $n != 5',
    )
    follow = shared.begin("log", "-f", task)
    first = {follow.stdout.readline() for _ in range(3)}
    assert first == {"did 1\n", "did 2\n", "did 3\n"}
    (tmp_path / "go").touch()
    out, err = follow.communicate(timeout=60)
    assert follow.returncode == 0 and sorted(out.split("\n")) == ["", "did 4", "did 5", "did 6"], err
    assert shared.ok("log", "--follow", "--failed", task) == "did 5\n"


def test_what_is_named_twice_is_told_once(shared):
    pair = shared.submit("--array", "1-2", "--", "sh", "-c", "echo $HPCBATCH_TASK_INDEX")
    one = shared.submit("--", "echo", "one")
    assert shared.wait(pair, one) == 0
    for words in [
        (f"{pair}-{one}", pair),
        (pair, one, f"{pair}.2"),
        (one, f"{pair}.1-2", f"{pair}.2", f"{pair}.1", one),
    ]:
        assert sorted(shared.ok("log", *words).split()) == ["1", "2", "one"], words
        assert shared.json("wait", "--timeout", "0", *words)[0]["total"] == 3, words
        assert "3 done" in shared.ok("explain", *words), words
    assert [task["id"] for task in shared.json("show", f"{pair}.1-2")] == [f"{pair}.1", f"{pair}.2"]
    assert shared.verb("cancel", "18446744073709551614-18446744073709551615").code != 0


def test_a_range_is_cancelled_as_a_whole(shared, tmp_path):
    (tmp_path / "tasks.toml").write_text(
        '[[tasks]]\nname = "p"\nhold = true\nitems = ["a", "b"]\ncommand = ["echo", "{}"]\n'
        '[[tasks]]\nafter = ["p"]\ncommand = ["echo"]\n'
    )
    whole = shared.submit("--file", tmp_path / "tasks.toml")
    assert shared.ok("cancel", whole) == "3 tasks cancelled\n"
    assert {task["state"] for task in shared.json("list", whole)} == {"cancelled"}


def test_what_would_be_sent_is_printed_and_not_sent(home):
    script = home.directory / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --account=lab -p short -c 2\ntrue\n")
    request = json.loads(home.ok("submit", "--print-request", script, COLOUR="blue"))
    assert request["environment"]["COLOUR"] == "blue" and request["umask"]
    (task,) = request["tasks"]
    assert str(task["cpus"]) == "2" and task["tags"] == ["partition=short", "account=lab"], task
    assert not (home.home / "socket").exists(), "no engine was started for it"
