"""`run` of many tasks does what people know of GNU parallel: output as tasks end, order, halting, a log, going on later."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest
from engine_at_home import EngineAtHome, wait_until


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


def run(shared, *words, **options):
    return shared.verb("run", *words, **options)


def reads_signals(pid):
    """Whether it has a signalfd: until then an interrupt ends it as it ends any program."""
    for entry in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            if "sigmask" in entry.read_text():
                return True
        except FileNotFoundError:
            pass  # it closes files, too
    return False


def test_all_that_tasks_print_comes_once_each_in_one_piece(shared):
    names = [f"item {i}" for i in range(200)]
    done = run(
        shared,
        "--each",
        "-",
        "--",
        "sh",
        "-c",
        'echo "$1 a"; echo "$1 b"; echo "$1 e" >&2',
        "sh",
        "{}",
        stdin="\n".join(names),
    )
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert sorted(lines) == sorted([f"{name} a" for name in names] + [f"{name} b" for name in names])
    assert all(one[:-1] == two[:-1] for one, two in zip(lines[::2], lines[1::2])), "a task's lines stand together"
    assert sorted(done.err.splitlines()) == sorted(f"{name} e" for name in names)


def test_the_order_of_the_items_is_kept_where_that_is_wanted(shared):
    done = run(
        shared,
        "--keep-order",
        "--items",
        "0.5",
        "0",
        "0.2",
        "0",
        "--",
        "sh",
        "-c",
        'sleep "$1"; echo "$1 $2"',
        "sh",
        "{}",
        "{#}",
    )
    assert (done.code, done.out) == (0, "0.5 1\n0 2\n0.2 3\n0 4\n"), done


def test_words_lists_and_columns_are_items(shared, tmp_path):
    (tmp_path / "t.csv").write_text('sample,lambda\n"a,b",0.1\nc,0.2\n')
    done = run(
        shared,
        "--keep-order",
        "--each",
        tmp_path / "t.csv",
        "--columns",
        ",",
        "--header",
        "--",
        "echo",
        "{sample}={2}",
        "{#}",
    )
    assert (done.code, done.out) == (0, "a,b=0.1 1\nc=0.2 2\n"), done
    done = run(shared, "--keep-order", "--items", "x", "y", "--items", "1", "2", "--", "echo", "{2}{1}", "{}")
    assert (done.code, done.out) == (0, "1x x 1\n2x x 2\n1y y 1\n2y y 2\n"), done
    done = run(shared, "--keep-order", "--link", "--items", "x", "y", "--items", "1", "2", "--", "echo", "{2}{1}")
    assert (done.code, done.out) == (0, "1x\n2y\n"), done
    (tmp_path / "t.jsonl").write_text('{"sample": "a b", "n": 4, "f": 0.1}\n{"sample": "$(id)", "n": 5, "f": 2e0}\n')
    done = run(shared, "--keep-order", "--each", tmp_path / "t.jsonl", "--", "echo", "{sample}", "{n}", "{f}")
    assert (done.code, done.out) == (0, "a b 4 0.1\n$(id) 5 2e0\n"), done


def test_a_column_that_is_not_there_is_refused(shared, tmp_path):
    (tmp_path / "t.csv").write_text("sample,lambda\na,0.1\n")
    table = ["--each", tmp_path / "t.csv", "--columns", ",", "--header", "--"]
    refused = run(shared, *table, "echo", "{smaple}")
    assert refused.code == 125 and "did you mean '{sample}'?" in refused.err, refused
    refused = run(shared, *table, "echo", "{3}")
    assert refused.code == 125 and "'{3}' stands for a column, and the items have 2" in refused.err, refused
    refused = run(shared, *table, "sh", "-c", "echo {sample}")
    assert refused.code == 125 and "'{sample}' stands in the program of a shell" in refused.err, refused
    # A shell's own variable is none.
    assert run(shared, *table, "sh", "-c", "x=1; echo ${x}$1", "sh", "{sample}").out == "1a\n"


def test_columns_stand_in_paths_and_names(shared, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "t").write_text(f"{tmp_path}/a x\n{tmp_path}/b y\n")
    task = shared.submit(
        "--each",
        tmp_path / "t",
        "--columns",
        "space",
        "--cwd",
        "{1}",
        "--name",
        "fit-{2}",
        "--stdout",
        "{2}.out",
        "--stderr",
        "none",
        "--",
        "sh",
        "-c",
        'pwd; echo "$1"; echo lost >&2',
        "sh",
        "{2}",
    )
    assert shared.wait(task) == 0, shared.ok("explain", task)
    for name, item in (("a", "x"), ("b", "y")):
        assert (tmp_path / name / f"{item}.out").read_text() == f"{tmp_path}/{name}\n{item}\n"
    shown = shared.show(f"{task}.2")
    assert (shown["name"], shown["item"], shown["command"][-1]) == ("fit-y", f"{tmp_path}/b y", "y")


def test_some_failures_are_one_and_say_what_to_type_next(shared):
    done = run(shared, "--items", "0", "3", "0", "--", "sh", "-c", 'echo "out $1"; exit "$1"', "sh", "{}")
    assert done.code == 1 and sorted(done.out.splitlines()) == ["out 0", "out 0", "out 3"], done
    assert re.search(r"2 of 3 done, 1 failed, .* waited\n`hpcbatch explain \d+` says why", done.err), done
    done = run(shared, "--items", "a", "--", "no-such-program", "{}")
    assert done.code == 1 and "no-such-program" in done.err, done


def test_after_too_many_failures_no_more_is_begun(shared):
    words = ["--max-running", "1", "--halt", "soon,fail=2", "--items", *map(str, range(1, 41)), "--"]
    done = run(shared, *words, "sh", "-c", 'echo "$1"; test "$1" -ne 2 -a "$1" -ne 4', "sh", "{}")
    assert done.code == 1, done
    assert "may" in done.err and "cancelled" in done.err, done
    printed = {int(line) for line in done.out.split()}
    assert {1, 2, 3, 4} <= printed and len(printed) <= 8, "one at a time: only what a pilot had begun meanwhile"
    task = shared.submit("--max-fails", "0", "--hold", "--array", "1-50", "--", "false")
    shared.ok("release", f"{task}.1")
    wait_until(lambda: shared.show(task)["state"] == "failed", what="the end of all")
    assert shared.show(task)["counts"] == {
        "waiting": 0,
        "held": 0,
        "running": 0,
        "done": 0,
        "failed": 1,
        "cancelled": 49,
    }
    assert "at most 0 may" in shared.ok("show", f"{task}.2")


def test_what_runs_is_ended_where_that_is_wanted(shared):
    done = run(
        shared,
        "--halt",
        "now,fail=1",
        "--items",
        "0",
        "600",
        "600",
        "--",
        "sh",
        "-c",
        'sleep "$1"; exit 3',
        "sh",
        "{}",
        timeout=100,
    )
    assert done.code == 1 and "1 failed, 2 cancelled" in done.err, done


def test_the_joblog_has_a_line_for_each(shared, tmp_path):
    log = tmp_path / "log"
    run(shared, "--joblog", log, "--items", "0", "3", "--", "sh", "-c", 'exit "$1"', "sh", "{}")
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert lines[0] == ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"]
    by_number = {line[0]: line for line in lines[1:]}
    assert set(by_number) == {"1", "2"}
    assert by_number["2"][6:] == ["3", "0", "sh -c 'exit \"$1\"' sh 3"]
    assert float(by_number["2"][2]) > 1e9 and float(by_number["2"][3]) >= 0
    refused = run(shared, "--joblog", tmp_path / "no" / "log", "--items", "0", "--", "true")
    assert refused.code != 0 and "cannot write the joblog" in refused.err, refused


def test_a_joblog_hears_of_what_has_ended_well_since(shared, tmp_path):
    words = [
        "--key",
        "mended",
        "--joblog",
        tmp_path / "log",
        "--cwd",
        tmp_path,
        "--items",
        "1",
        "2",
        "--",
        "sh",
        "-c",
        'test "$1" -ne 2 -o -e mended',
        "sh",
        "{}",
    ]
    assert run(shared, *words).code == 1
    (tmp_path / "mended").touch()
    assert shared.ok("retry", "last") == "1 task queued again\n" and shared.verb("wait", "last").code == 0
    assert run(shared, "--resume", *words).code == 0
    lines = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()[1:]]
    assert [(line[0], line[6]) for line in lines if line[0] == "2"] == [("2", "1"), ("2", "0")]


def test_what_is_quick_is_printed_by_the_first_run_with_a_key(shared):
    """It may have ended before the command line looks whether something has ended under that key."""
    for n in range(10):
        done = run(shared, "--key", f"quick{n}", "--resume", "--keep-order", "--items", "a", "b", "--", "echo", "{}")
        assert (done.code, done.out, done.err) == (0, "a\nb\n", ""), n


def test_work_that_was_broken_off_goes_on_under_its_key(shared, tmp_path):
    words = ["run", "--key", "sweep", "--max-running", "1", "--items", "a", "b", "c", "--"]
    command = ["sh", "-c", 'echo "$1" >>ran; test "$1" = a || test -e go || sleep 600; echo "did $1"', "sh", "{}"]
    first = shared.begin(*words[:1], "--cwd", tmp_path, *words[1:], *command)
    assert first.stdout.readline() == "did a\n"
    wait_until(lambda: (tmp_path / "ran").read_text().split() == ["a", "b"], what="the start of b")
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130 and "cancelled by user" in err, err
    (tmp_path / "go").touch()
    again = run(shared, "--cwd", tmp_path, "--resume", *words[1:], *command)
    assert again.code == 0 and sorted(again.out.splitlines()) == ["did b", "did c"], again
    assert "1 of" in again.err and "ended well before" in again.err, again
    assert (tmp_path / "ran").read_text().split() == ["a", "b", "b", "c"]
    other = run(shared, "--cwd", tmp_path, "--resume", *words[1:], "true", "{}")
    assert other.code == 125 and "other content" in other.err, other


def test_of_items_those_of_some_numbers(shared):
    done = run(shared, "--keep-order", "--array", "2-3", "--items", "a", "b", "c", "d", "--", "echo", "{} {#}")
    assert done.out == "b 2\nc 3\n", done
    refused = run(shared, "--array", "2-5,9", "--items", "a", "b", "--", "echo", "{}")
    assert refused.code == 125 and "1 to 2, and has 3-5,9" in refused.err, refused
    plan = json.loads(
        shared.ok("submit", "--dry-run", "--json", "--array", "2", "--items", "a", "b", "--", "echo", "{}")
    )
    assert (plan["item"], plan["command"], plan["tasks"]) == ("b", ["echo", "b"], 1), plan


def test_a_mended_list_runs_what_is_not_done(shared, tmp_path):
    """As numbers in the names of files would be: those that are left keep theirs."""
    items = tmp_path / "items"
    command = [
        "--each",
        items,
        "--stdout",
        tmp_path / "out.{#}",
        "--",
        "sh",
        "-c",
        'test "$1" != typo && echo "$1 $2"',
        "sh",
        "{}",
        "{#}",
    ]
    items.write_text("a\ntypo\nc\nc\n")
    first = shared.submit(*command)
    assert shared.wait(first) == 1
    listed = {task["index"]: (task["item"], task["state"]) for task in shared.json("list", first)}
    assert listed == {1: ("a", "done"), 2: ("typo", "failed"), 3: ("c", "done"), 4: ("c", "done")}
    items.write_text("a\nb\nc\nc\nd\nc\n")
    second = shared.verb("submit", "--skip-done", first, *command)
    assert second.code == 0 and f"3 of 6 items ended well in {first} and are left out" in second.err, second
    assert shared.wait("last") == 0
    assert {task["index"]: task["item"] for task in shared.json("list", "last")} == {2: "b", 5: "d", 6: "c"}
    assert {path.name: path.read_text() for path in tmp_path.glob("out.*")} == {
        "out.1": "a 1\n",
        "out.2": "b 2\n",
        "out.3": "c 3\n",
        "out.4": "c 4\n",
        "out.5": "d 5\n",
        "out.6": "c 6\n",
    }
    nothing = run(shared, "--skip-done", first, "--skip-done", "last", *command)
    assert nothing.code == 0 and "nothing is left to run" in nothing.err, nothing
    other = run(shared, "--skip-done", shared.submit("--", "true"), *command)
    assert other.code == 125 and "have no items that a list could be compared with" in other.err, other


@pytest.mark.parametrize("words", [["--columns", ",", "--header"], []])
def test_rows_and_json_lines_are_compared_whole(shared, tmp_path, words):
    row = "s{0},{0}" if words else '{{"name": "s{0}", "n": {0}}}'
    items = tmp_path / "items"
    lines = [row.format(n) for n in (1, 2, 3)]
    items.write_text("\n".join(["name,n"] * bool(words) + lines) + "\n")
    command = [
        "--each",
        items,
        *words,
        "--keep-order",
        "--",
        "sh",
        "-c",
        'test "$2" != 2 && echo "$1"',
        "sh",
        "{name}",
        "{n}",
    ]
    assert run(shared, *command).code == 1
    lines[1] = row.format(4)
    items.write_text("\n".join(["name,n"] * bool(words) + lines) + "\n")
    again = run(shared, "--skip-done", "last", *command)
    assert (again.code, again.out) == (0, "s4\n") and "2 of 3 items" in again.err, again


def test_what_a_killed_run_did_not_tell_is_said_and_logged(shared, tmp_path):
    words = [
        "--key",
        "killed",
        "--joblog",
        tmp_path / "log",
        "--max-running",
        "1",
        "--items",
        "a",
        "b",
        "--",
        "sh",
        "-c",
        'echo "did $1"; test "$1" = a || sleep 0.5',
        "sh",
        "{}",
    ]
    first = shared.begin("run", *words)
    assert first.stdout.readline() == "did a\n"
    first.kill()
    first.communicate()
    wait_until(lambda: shared.json("list", "-n", "1")[0]["state"] == "done", what="the end of both")
    again = run(shared, "--resume", *words)
    assert (again.code, again.out) == (0, "") and "2 of" in again.err and "has what they printed" in again.err, again
    assert sorted(line.split("\t")[0] for line in (tmp_path / "log").read_text().splitlines()) == ["1", "2", "Seq"]


def test_a_disk_that_is_full_ends_it_and_says_so(shared):
    with open("/dev/full", "w") as full:
        try:
            done = subprocess.run(
                [shared.program, "run", "--items", "0", "600", "--", "sh", "-c", 'echo x; sleep "$1"', "sh", "{}"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                env=shared.env,
                cwd=shared.directory,
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            shared.tell_how_it_stands()
            raise
    assert done.returncode == 125 and "No space left" in done.stderr, done
    wait_until(lambda: shared.json("list", "-n", "1")[0]["state"] == "cancelled", what="the end of the other")


def test_a_refused_command_leaves_the_joblog_as_it_was(shared, tmp_path):
    (tmp_path / "log").write_text("precious\n")
    assert (
        run(shared, "--joblog", tmp_path / "log", "--items", "a", "--columns", ",", "--", "echo", "{nope}").code == 125
    )
    assert (tmp_path / "log").read_text() == "precious\n"


def test_ctrl_c_ends_it_though_the_engine_is_away_or_a_list_does_not_come(shared, tmp_path):
    os.mkfifo(tmp_path / "list")
    going = shared.begin("run", "--each", tmp_path / "list", "--", "echo", "{}")
    wait_until(lambda: reads_signals(going.pid), what="a look at signals")
    going.send_signal(signal.SIGINT)
    assert going.wait(timeout=60) == 130
    going = shared.begin("run", "--items", "0", "600", "--", "sh", "-c", 'echo "$1"; sleep "$1"', "sh", "{}")
    assert going.stdout.readline() == "0\n" or going.stdout.readline()
    task = shared.json("list", "-n", "1")[0]["id"]
    shared.ok("engine", "stop")
    going.send_signal(signal.SIGINT)
    _, err = going.communicate(timeout=60)
    assert going.returncode == 130 and "goes on" in err, err
    shared.ok("engine", "start")
    shared.ok("cancel", task)


def test_a_scripts_braces_are_its_own(shared, tmp_path):
    (tmp_path / "job.sh").write_text(
        '#!/bin/bash\nset -u\na=(1 2 3); echo "${#a[@]} ${#} {} {#} $1"; find . -maxdepth 0 -exec echo {} \\;\n'
    )
    task = shared.submit("--items", "x", "--cwd", tmp_path, tmp_path / "job.sh", "--", "{}")
    assert shared.wait(task) == 0 and shared.ok("log", task) == "3 1 {} {#} x\n.\n"


def test_the_engine_may_go_and_come_back_meanwhile(shared):
    going = shared.begin(
        "run",
        "--items",
        "a",
        "b",
        "--",
        "sh",
        "-c",
        'echo "$1"; while ! test -e "/proc/self/cwd/$1"; do sleep 0.05; done',
        "sh",
        "{}",
    )
    wait_until(
        lambda: [one["counts"]["running"] for one in shared.json("list", "-n", "1")] == [2], what="two tasks that run"
    )
    shared.ok("engine", "stop")
    shared.ok("engine", "start")
    for name in "ab":
        (shared.directory / name).touch()
    out, err = going.communicate(timeout=120)
    for name in "ab":
        (shared.directory / name).unlink()
    assert going.returncode == 0 and sorted(out.split()) == ["a", "b"], err


def test_who_reads_no_more_ends_it(shared):
    going = shared.begin("run", "--items", *map(str, range(300)), "--", "sh", "-c", 'echo "$1"; sleep 0.2', "sh", "{}")
    assert going.stdout.readline()
    going.stdout.close()
    assert going.wait(timeout=60) == 141
    newest = shared.json("list", "-n", "1")[0]
    wait_until(lambda: shared.json("list", "-n", "1")[0]["state"] == "cancelled", what=f"the end of {newest}")


def test_options_of_many_tasks_belong_to_many(shared):
    for words, sentence in (
        (["--keep-order"], "belong to --each, --items or --array"),
        (["--max-fails", "3"], "belong to --each"),
        (["--resume", "--items", "a"], "say --key KEY"),
        (["--halt", "soon,success=1", "--items", "a"], "failures alone"),
        (["--columns", ","], "belong to --each FILE"),
        (["--link", "--items", "a"], "pairs the items of several"),
        (["--each", "-", "--each", "-"], "can be read once"),
        (["--skip-done", "1", "--array", "1-3"], "belongs to --each or --items"),
    ):
        refused = run(shared, *words, "--", "true")
        assert refused.code == 125 and sentence in refused.err, (words, refused)


def test_names_with_newlines_come_from_find(shared, tmp_path):
    for name in ("plain", "two words", "a\nb", "-n"):
        (tmp_path / name).write_text(name)
    found = subprocess.run(
        ["find", tmp_path, "-type", "f", "-print0"], capture_output=True, text=True, check=True
    ).stdout
    done = run(shared, "--each", "-", "-0", "--", "cat", "{}", stdin=found)
    assert done.code == 0 and sorted(done.out) == sorted("plain" "two words" "a\nb" "-n"), done
    refused = run(shared, "--each", "-", "--", "cat", "{}", stdin="a\nb\0c\n")
    assert refused.code == 125 and "line 2 of standard input holds a zero byte; --null takes" in refused.err, refused


def test_an_interrupted_wait_says_that_the_work_goes_on(shared):
    asking = shared.begin("submit", "--wait", "--", "sleep", "600")
    task = asking.stdout.readline().strip()
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=30)
    assert (asking.returncode, out) == (130, "") and f"the work goes on; `hpcbatch wait {task}`" in err, (out, err)
    shared.ok("cancel", task)


def test_wait_for_one_of_several_and_for_so_long(shared):
    slow, fast = shared.submit("--", "sleep", "600"), shared.submit("--", "true")
    assert shared.ok("wait", "--any", slow, fast) == f"{fast}\n"
    assert shared.json("wait", "--any", slow, fast)[0]["ended"] == [fast]
    assert shared.ok("wait", "--any", fast) == f"{fast}\n"
    late = shared.verb("wait", "--timeout", "1s", slow)
    assert late.code == 124 and "1 of 1 had not ended in time; the work goes on" in late.err, late
    assert json.loads(shared.verb("wait", "--timeout", "1s", slow, "--json").out)["running"] == 1
    shared.ok("cancel", slow)
    assert shared.wait(slow) == 1


def test_a_batch_script_says_what_it_needs(shared, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/bash\n#HPCBATCH --cpus 2 --name mine --array 1-2\necho "$0 $1 $HPCBATCH_TASK_INDEX"\n')
    task = shared.submit("--name", "other", "job.sh", "--", "word", cwd=tmp_path)
    script.write_text("#!/bin/bash\nexit 9\n")
    assert shared.wait(task) == 0, "it runs as it was"
    assert shared.ok("log", task) == f"{script} word 1\n{script} word 2\n"
    shown = shared.show(task)
    assert (shown["name"], shown["needs"]["cpus"], shown["total"]) == ("other", 2, 2)
    script.write_text(
        '#!/bin/sh\n#SBATCH -c 1 --mem=200 -a 3\n#SBATCH --mail-type=END\necho "$SLURM_ARRAY_TASK_ID $SLURM_CPUS_PER_TASK"\n'
    )
    done = shared.verb("submit", script)
    assert done.code == 0 and "-c 1 as --cpus 1" in done.err and ", --mail-type=END" in done.err, done
    task = done.out.strip()
    assert shared.wait(task) == 0 and shared.ok("log", f"{task}.3") == "3 1\n"
    script.write_text("#!/bin/sh\n#SBATCH -o theirs.txt\necho out; echo err >&2\n")
    for words, file in (([], "theirs.txt"), (["--stdout", "mine.txt"], "mine.txt")):
        assert shared.wait(shared.submit(*words, script, cwd=tmp_path)) == 0
        assert (tmp_path / file).read_text() == "out\nerr\n"
    for text, sentence in (
        ("#!/bin/sh\n#SBATCH -w n1\n:\n", "job.sh:2: '#SBATCH -w n1': tasks do not choose nodes"),
        ("#!/bin/sh\n#SBATCH -N 4\n:\n", "the task asks for 4 nodes at once"),
        ("#SBATCH -c 1\n:\n", "its first line does not begin with #!"),
        ("#HPCBATCH --cpsu 4\n:\n", "did you mean --cpus"),
        ("", "is empty"),
        ("a\0b", "is no script"),
        ("1 2 3\n", "its first line does not begin with #!"),
    ):
        script.write_text(text)
        refused = shared.verb("submit", script)
        assert refused.code == 2 and sentence in refused.err, refused
    refused = shared.verb("submit", "echo", "--", "true")
    assert (
        refused.code == 2
        and "if it is the command, write it behind the dashes: hpcbatch submit -- echo true" in refused.err
    ), refused


def test_a_dry_run_shows_what_would_run_and_queues_nothing(shared, tmp_path):
    (tmp_path / "t.yaml").write_text(
        """
- {name: fit, after: [prepare], command: [fit, "{1}"], items: [[a b, c], [d, e]], cpus: 1, memory: 100M, time: 10m}
- {name: prepare, command: [make, data]}
- {command: [big], cpus: 5000}
"""
    )
    newest = [one["id"] for one in shared.json("list", "-n", "1")]
    told = shared.verb("submit", "--dry-run", "--file", tmp_path / "t.yaml")
    assert told.code == 2 and "task 1 (prepare): make data\n" in told.out, told
    assert (
        "task 2 (fit), 2 of them: fit 'a b'\n  the first of its items: a b c\n  needs 1 cpu, 100M memory, 10m\n  fits local/"
        in told.out
    ), told
    assert "never_fits" in told.out
    trial = json.loads(shared.ok("submit", "--dry-run", "--json", "--", "true"))
    assert trial["fits"] and trial["command"] == ["true"] and trial["tasks"] == 1
    assert [one["id"] for one in shared.json("list", "-n", "1")] == newest


def test_what_was_left_out_before_counts_as_done_and_what_runs_is_waited_for(shared, tmp_path):
    items, gate = tmp_path / "items", tmp_path / "gate"

    def command(more=""):
        return ["--each", items, "--", "sh", "-c", f'case "$1" in bad*) exit 1;; esac; echo "ran $1"{more}', "sh", "{}"]

    items.write_text("a\nbad1\nbad2\nc\n")
    assert run(shared, *command()).code == 1
    items.write_text("a\nd\nbad2\nc\n")
    second = run(shared, "--skip-done", "last", *command())
    assert second.code == 1 and second.out == "ran d\n", second
    items.write_text("a\nd\ne\nc\n")
    third = run(shared, "--skip-done", "last", *command())
    assert third.code == 0 and third.out == "ran e\n", third
    last = shared.json("list", "-n", "1")[0]["id"]
    fourth = run(shared, "--skip-done", "last", *command("; true"))
    assert fourth.code == 0 and not fourth.out and "nothing is left to run" in fourth.err, fourth
    assert f"{last} ran another command" in " ".join(fourth.err.split()), fourth
    held = shared.submit("--hold", *command())
    twice = run(shared, "--skip-done", held, *command())
    assert twice.code == 125 and f"of {held} 4 have not ended yet, and would run twice" in " ".join(
        twice.err.split()
    ), twice
    shared.ok("cancel", held)


def test_what_would_run_as_nobody_means_it_is_refused(shared, tmp_path):
    (tmp_path / "t.tsv").write_text("s1\t9\ns2\t3\n")
    column = run(shared, "--each", tmp_path / "t.tsv", "--", "echo", "{1}", "{2}")
    assert column.code == 125 and "say --columns tab" in column.err and not column.out, column
    stays = run(shared, "--items", "a", "--", "echo", "{}", "x{2}")
    assert stays.out == "a x{2}\n" and "{2} stays as it is" in stays.err, stays
    (tmp_path / "commands").write_text("echo hi | tr a-z A-Z\n")
    program = run(shared, "--each", tmp_path / "commands", "--", "{}")
    assert program.code == 125 and "eval" in program.err, program
    task = shared.submit("--array", "1-2", "--", "true")
    assert shared.verb("explain", f"{task}.0").code == 2
    shown = shared.verb("submit", "--dry-run", "--one-of", "gpus=1,cpus=4", "--one-of", "cpus=1", "--", "true")
    assert "needs 4 cpus, GPUs: 1 of any kind; or 1 cpu" in shown.out, shown
