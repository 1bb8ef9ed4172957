"""`hpcbatch split`: a data set as tasks of some files each, and one result."""

import json
import os
import shutil
import signal

import pytest
from engine_at_home import EngineAtHome, wait_until

SITE = """
sites:
  - {name: here, scheduler: local, transport: shared_fs, workspace: %s, shapes: [{name: four, cpus: 4, memory: 4G}]}
"""
COPY = ["sh", "-c", 'out=$1; shift; cat "$@" > "$out"', "sh", "{out}", "{files}"]


class Home(EngineAtHome):
    def __init__(self):
        super().__init__()
        self.configure(SITE % (self.directory / "space"))
        self.result = self.directory / "result"

    def data_set(self, count, folder="data"):
        """Files with a line each, two of which have the same name in two folders, and blanks and a dash in others."""
        paths = []
        for number in range(count):
            path = self.directory / folder / f"{number // 2}" / ["-a b.txt", "it's {}.txt"][number % 2]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"line {number}\n")
            paths.append(path)
        (self.directory / f"{folder}.list").write_text("".join(f"{path}\n" for path in paths))
        return paths

    def split(self, *words, code=0):
        done = self.verb("split", "--inputs", str(self.directory / "data.list"), "--result", str(self.result), *words)
        assert done.code == code, (done.code, done.out, done.err)
        return done

    def tasks(self):
        return [one["id"] for one in self.json("list", "--all")]


@pytest.fixture
def home():
    with Home() as engine:
        yield engine


def lines(count):
    return "".join(f"line {number}\n" for number in range(count))


def test_parts_are_merged_in_order_and_nothing_else_is_left(home):
    home.data_set(25)
    done = home.split("--files-per-task", "2", "--merge", "cat {parts} > {out}", "--", *COPY)
    assert home.result.read_text() == lines(25) and done.out.strip() == str(home.result)
    assert not (home.directory / "result.parts").exists()
    assert len(home.tasks()) == 13 + 1


def test_thousands_are_merged_as_a_tree(home):
    home.data_set(120)
    done = home.split("--merge-at-once", "5", "--merge", "cat {parts} > {out}", "--json", "--", *COPY)
    assert home.result.read_text() == lines(120)
    # 120 -> 24 -> 5 -> 1
    assert json.loads(done.out) == {
        "result": str(home.result),
        "parts": 120,
        "cut_in_two": 0,
        "merges": 24 + 5 + 1,
        "failed": [],
    }


def test_bytes_and_lists_and_what_every_part_gets(home):
    paths = home.data_set(10)
    (home.directory / "more.list").write_text(f"{paths[0]}\n")
    size = len("line 0\n")
    home.split(
        "--files-per-task",
        "100",
        "--bytes-per-task",
        str(3 * size),
        "--reuse",
        str(home.directory / "more.list"),
        "--keep-parts",
        "--merge",
        "cat {parts} > {out}",
        "--",
        "sh",
        "-c",
        'while IFS= read -r f; do cat "$f"; done < {list} > {out}; cat "$@" >> {out}',
        "sh",
        "{reuse}",
    )
    assert home.result.read_text() == "".join(
        lines(10)[at * size : (at + 3) * size] + "line 0\n" for at in range(0, 10, 3)
    )
    assert sorted(path.name for path in (home.directory / "result.parts").iterdir() if path.suffix != ".list") == [
        "000001",
        "000002",
        "000003",
        "000004",
        "split.json",
    ]


def test_what_is_too_large_is_cut_in_two(home):
    home.data_set(8)
    # More than two files take too long.
    greedy = ["sh", "-c", 'out=$1; shift; [ $# -gt 2 ] && sleep 100; cat "$@" > "$out"', "sh", "{out}", "{files}"]
    done = home.split(
        "--files-per-task",
        "8",
        "--time",
        "1s",
        "--retries",
        "0",
        "--merge",
        "cat {parts} > {out}",
        "--json",
        "--",
        *greedy,
    )
    assert home.result.read_text() == lines(8)
    assert json.loads(done.out)["cut_in_two"] == 3 and "it is cut in two" in done.err


def test_a_part_that_fails_keeps_all_back_and_is_gone_on_with(home):
    paths = home.data_set(6)
    flag = home.directory / "flag"
    moody = [
        "sh",
        "-c",
        f'out=$1; shift; grep -q "line 3" "$@" && [ ! -e {flag} ] && exit 7; cat "$@" > "$out"',
        "sh",
        "{out}",
        "{files}",
    ]
    words = ("--files-per-task", "2", "--retries", "0", "--merge", "cat {parts} > {out}", "--", *moody)
    done = home.split(*words, code=1)
    assert (
        not home.result.exists() and "1 of 3 parts failed, and nothing is merged" in done.err and "exit 7" in done.err
    )
    flag.touch()
    before = home.tasks()
    home.ok("retry", *[word for word in done.err.split("`hpcbatch retry ")[1].split("`")[0].split()])
    home.split(*words)
    assert home.result.read_text() == lines(6) and len(home.tasks()) == len(before) + 1
    # The next one is another.
    paths[0].write_text("other\n")
    home.split(*words)
    assert home.result.read_text() == "other\n" + lines(6).split("\n", 1)[1]


def test_it_goes_on_where_it_was_interrupted_and_not_with_other_files(home):
    paths = home.data_set(4)
    gate = home.directory / "gate"
    patient = [
        "sh",
        "-c",
        f'out=$1; shift; until [ -e {gate} ]; do sleep 0.05; done; cat "$@" > "$out"',
        "sh",
        "{out}",
        "{files}",
    ]
    words = (
        "split",
        "--inputs",
        str(home.directory / "data.list"),
        "--result",
        str(home.result),
        "--merge",
        "cat {parts} > {out}",
        "--",
        *patient,
    )
    begun = home.begin(*words)
    wait_until(lambda: (home.directory / "result.parts/split.json").exists() and len(home.tasks()) == 4)
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=60)
    assert "the same command takes it up again" in said
    paths[1].write_text("changed\n")
    refused = home.verb(*words)
    assert refused.code == 2 and "belongs to another split" in refused.err
    shutil.rmtree(home.directory / "result.parts")
    gate.touch()
    assert home.verb(*words).code == 0
    assert home.result.read_text() == lines(4).replace("line 1", "changed")


def test_the_engine_may_go_away_meanwhile(home):
    home.data_set(4)
    gate = home.directory / "gate"
    patient = [
        "sh",
        "-c",
        f'out=$1; shift; until [ -e {gate} ]; do sleep 0.05; done; cat "$@" > "$out"',
        "sh",
        "{out}",
        "{files}",
    ]
    home.ok("engine", "start")
    begun = home.begin(
        "split",
        "--inputs",
        str(home.directory / "data.list"),
        "--result",
        str(home.result),
        "--merge",
        "cat {parts} > {out}",
        "--",
        *patient,
    )
    wait_until(lambda: len(home.tasks()) == 4)
    home.kill_engine()
    home.ok("engine", "start")
    gate.touch()
    out, err = begun.communicate(timeout=300)
    assert begun.returncode == 0, err
    assert home.result.read_text() == lines(4)


def test_what_makes_no_sense_is_refused_and_nothing_is_begun(home):
    home.data_set(2)
    (home.directory / "empty.list").touch()
    data, result = str(home.directory / "data.list"), str(home.result)
    full = home.directory / "full"
    full.mkdir()
    (full / "precious").touch()
    for words, said in (
        (["--result", result, "--", "true"], "say what is split"),
        (["--inputs", data, "--result", result, "--", "cat", "{files}"], "no {out}"),
        (["--inputs", data, "--result", result, "--", "cat", "{out}"], "names no part"),
        (["--inputs", data, "--result", result, "--merge", "cat {parts}", "--", *COPY], "--merge needs"),
        (["--inputs", str(home.directory / "empty.list"), "--result", result, "--", *COPY], "has no items"),
        (["--inputs", "/no/such", "--result", result, "--", *COPY], "/no/such"),
        (["--inputs", data, "--result", result, "--files-per-task", "0", "--", *COPY], "files-per-task"),
        (["--inputs", data, "--result", result, "--parts", str(full), "--", *COPY], "no split's folder"),
        (["--inputs", data, "--result", result, "--pieces", "4", "--", *COPY], "belong to --recording"),
        (["--inputs", data, "--result", result, "--tool", "command"], "does not say how it is split"),
        (["--recording", data, "--pieces", "2", "--result", result, "--", *COPY], "say --tool NAME"),
    ):
        done = home.verb("split", *words)
        assert done.code == 2 and said in done.err, (words, done.err)
    (home.directory / "data.list").write_text(f"{home.directory}/gone\n")
    assert "gone" in home.verb("split", "--inputs", data, "--result", result, "--", *COPY).err
    assert (full / "precious").exists() and not os.path.exists(result) and home.json("list", "--all") == []


# What a tool says of itself: it cuts a text by its lines, and its parts are put together by another.
TOOLS = {
    "cutter": """
parameters: {pieces: {type: integer}, seconds: {type: number}}
inputs: {recording: {description: Text}}
outputs: {table: {file: table}}
command:
  - sh
  - -c
  - 'n=$(wc -l < "$0"); k=$1; [ "$k" != 0 ] || k=$((n / $(printf %.0f "$2"))); printf "first\\tlast\\n" > "$3"; for i in $(seq "$k"); do
     printf "%d\\t%d\\n" $(((i - 1) * n / k + 1)) $((i * n / k)) >> "$3"; done'
  - "{recording}"
  - "{pieces}"
  - "{seconds}"
  - "{table}"
""",
    "upper": """
parameters: {first: {type: integer, default: 1}, last: {type: string, default: $}}
inputs: {text: {type: files, description: Text}}
outputs: {big: {file: big}}
split: {input: text, output: big, cut: cutter, merge: joiner}
command: [sh, -c, 'from=$0; to=$1; out=$2; shift 2; cat "$@" | sed -n "$from,$to"p | tr a-z A-Z > "$out"', "{first}", "{last}", "{big}", "{text}"]
""",
    "joiner": """
inputs: {parts: {type: files, description: Parts}}
outputs: {merged: {file: merged}}
command: [sh, -c, 'cat "$@" > "$0"', "{merged}", "{parts}"]
""",
}


def test_a_tool_says_how_it_is_split(home):
    folder = home.directory / "tools"
    folder.mkdir()
    for name, text in TOOLS.items():
        (folder / f"{name}.yaml").write_text(f"tool: {name}{text}")
    home.configure(SITE % (home.directory / "space") + f"tool_path: [{folder}]\n")
    home.data_set(7)
    home.split("--tool", "upper", "--files-per-task", "2")
    assert home.result.read_text() == lines(7).upper()
    tape = home.directory / "a tape"
    tape.write_text(lines(100))
    for words in (("--pieces", "7"), ("--piece-length", "20s")):
        home.result.unlink()
        home.ok("split", "--tool", "upper", "--recording", tape, *words, "--result", home.result)
        assert home.result.read_text() == lines(100).upper(), words
    # One recording is one file, and a tool that says nothing is asked for it.
    assert (
        "has no parameter"
        in home.verb(
            "split", "--tool", "upper", "--param", "x=1", "--recording", tape, "--pieces", "2", "--result", home.result
        ).err
    )
