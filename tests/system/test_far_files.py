"""A cluster that sees none of this machine's files: they go there and come back, once each and whole."""

import json
import os
import shutil
import signal

import pytest
from engine_at_home import wait_until
from far_cluster import FarCluster, FarSite
from slurm_site import SMALL

FOUR = SMALL | {"cpus": 4, "memory": "2G"}
MANY = 5000 if os.environ.get("HPCBATCH_LONG") else 1000


@pytest.fixture(scope="module")
def far():
    with FarCluster("--fast") as cluster:
        yield cluster


@pytest.fixture
def here(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    return tmp_path


def files_of(site):
    return site.json("sites")[0]["files"]


def one_task(here, *command, inputs=(), outputs=(), more=()):
    words = [word for name, path in inputs for word in ("--input", f"{name}={path}")]
    words += [word for name, path in outputs for word in ("--output", f"{name}={path}")]
    return [*words, *more, "--", *command]


def test_a_command_finds_its_input_and_leaves_its_output(far, here):
    (here / "in" / "words.txt").write_text("far away\n")
    with FarSite(far, FOUR, link="relay") as site:
        assert site.ok(
            "run",
            *one_task(
                here,
                "sh",
                "-c",
                "tr a-z A-Z < words.txt > loud.txt; pwd; id -un; env",
                inputs=[("words.txt", here / "in/words.txt")],
                outputs=[("loud.txt", here / "out/loud.txt")],
            ),
            HOME_ALONE="yes",
        )
        assert (here / "out" / "loud.txt").read_text() == "FAR AWAY\n"
        assert [path.name for path in (here / "out").iterdir()] == ["loud.txt"]


@pytest.mark.parametrize("way", ["relay", "spool"])
def test_names_that_are_no_utf8(far, here, way):
    names = [os.fsdecode(name) for name in (b"caf\xe9 1", b"caf\xe8 1", "gr\u00fcn".encode())]
    for name in names:
        (here / "in" / name).write_bytes(os.fsencode(name))
    with FarSite(far, FOUR, link=way) as site:
        done = site.verb(
            "run",
            "--each",
            "-",
            *one_task(
                here, "cp", "in", "out", inputs=[("in", f"{here}/in/{{}}")], outputs=[("out", f"{here}/out/{{}}")]
            ),
            stdin="".join(name + "\n" for name in names),
        )
        assert done.code == 0, done
    assert {name: (here / "out" / name).read_bytes() for name in names} == {name: os.fsencode(name) for name in names}


@pytest.mark.parametrize("way", ["relay", "spool"])
def test_thousands_with_files_of_their_own_and_one_for_all(far, here, way):
    """Each shared file goes over once, each own one once."""
    common = here / "common.bin"
    common.write_bytes(os.urandom(3_000_000))
    for i in range(MANY):
        (here / "in" / str(i)).write_text(f"input {i}\n")
    (here / "items").write_text("".join(f"{i}\n" for i in range(MANY)))
    with FarSite(far, FOUR, link=way) as site:
        array = site.submit(
            "--each",
            here / "items",
            *one_task(
                here,
                "sh",
                "-c",
                "cat in.txt > out.txt; wc -c < common.bin >> out.txt",
                inputs=[("in.txt", f"{here}/in/{{}}"), ("common.bin", common)],
                outputs=[("out.txt", f"{here}/out/{{}}")],
            ),
        )
        assert site.wait(array, timeout=400) == 0
        for i in range(MANY):
            assert (here / "out" / str(i)).read_text() == f"input {i}\n3000000\n"
        site.must_be_single()
        files = files_of(site)
        assert files["files_sent"] == MANY + 1
        own = sum(len(f"input {i}\n") for i in range(MANY))
        assert files["bytes_sent"] == own + 3_000_000
        assert len(list((here / "out").iterdir())) == MANY
        task = site.show(f"{array}.{MANY // 2}")
        assert task["staged_in_s"] > 0 and task["staged_out_s"] > 0, task
        wait_until(lambda: json.loads(site.ok("report", "--json"))["rows"][0]["runs"] == MANY, what="all to be counted")
        row = json.loads(site.ok("report", "--json"))["rows"][0]
        assert 0 < row["staged_in_h"] <= row["wait_h"] and row["took"]["staged_out_95_s"] > 0, row


def copies(site, here, count=200, seconds=0.1):
    """Tasks that take a while, each with files of its own, and one line each where they run."""
    for i in range(count):
        (here / "in" / str(i)).write_text(f"input {i}\n")
    (here / "items").write_text("".join(f"{i}\n" for i in range(count)))
    return site.submit(
        "--each",
        here / "items",
        *one_task(
            here,
            "sh",
            "-c",
            f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep {seconds}; cp in out",
            inputs=[("in", f"{here}/in/{{}}")],
            outputs=[("out", f"{here}/out/{{}}")],
        ),
    )


def all_copied(site, here, array, count=200):
    assert site.wait(array, timeout=300) == 0
    for i in range(count):
        assert (here / "out" / str(i)).read_text() == f"input {i}\n"
    assert len(list((here / "out").iterdir())) == count
    site.must_be_single()


def some_are_out(here, count=20):
    wait_until(lambda: len(os.listdir(here / "out")) >= count, 60, "some outputs")


def test_the_login_node_dies_in_the_middle(far, here):
    with FarSite(far, FOUR, link="relay") as site:
        array = copies(site, here)
        some_are_out(here)
        far.stop_sshd()
        far.start_sshd()
        all_copied(site, here, array)


def test_the_relay_is_killed_in_the_middle(far, here):
    with FarSite(far, FOUR, link="relay") as site:
        array = copies(site, here)
        some_are_out(here)
        for relay in site.relays():
            os.kill(relay, signal.SIGKILL)
        all_copied(site, here, array)
        site.must_have_said(array, 200)


def test_the_engine_is_killed_in_the_middle(far, here):
    with FarSite(far, FOUR, link="relay") as site:
        array = copies(site, here)
        for count in 20, 60, 100:
            some_are_out(here, count)
            site.kill_engine()
            site.ok("engine", "start")
        all_copied(site, here, array)
        site.must_have_said(array, 200)


def test_pilots_are_killed_in_the_middle(far, here):
    with FarSite(far, FOUR, link="relay") as site:
        array = copies(site, here)
        some_are_out(here)
        site.kill_pilots()
        all_copied(site, here, array)


def test_what_cannot_be_had_is_said_and_keeps_nobody(far, here):
    (here / "in" / "0").write_text("here\n")
    with FarSite(far, FOUR, link="relay") as site:
        first = site.submit("--", "sleep", "1")
        late = site.submit(
            "--after",
            first,
            *one_task(here, "cp", "in", "out", inputs=[("in", here / "gone")], outputs=[("out", here / "out/gone")]),
        )
        good = site.submit(
            *one_task(here, "cp", "in", "out", inputs=[("in", here / "in/0")], outputs=[("out", here / "out/good")])
        )
        unmade = site.submit(
            *one_task(
                here,
                "cp",
                "in",
                "one",
                inputs=[("in", here / "in/0")],
                outputs=[("one", here / "out/one"), ("two", here / "out/two")],
            )
        )
        nowhere = site.submit(
            *one_task(
                here,
                "sh",
                "-c",
                "cp in one; cp in two",
                inputs=[("in", here / "in/0")],
                outputs=[("one", here / "out/three"), ("two", here / "none/four")],
            )
        )
        failed = site.submit(
            *one_task(
                here,
                "sh",
                "-c",
                "cp in out; exit 3",
                inputs=[("in", here / "in/0")],
                outputs=[("out", here / "out/failed")],
            )
        )
        assert site.wait(late, good, unmade, nowhere, failed) == 1
        assert site.show(late)["failure"] == "input_missing" and str(here / "gone") in site.show(late)["message"]
        assert site.show(good)["state"] == "done"
        assert site.show(unmade)["failure"] == "output_missing" and "two" in site.show(unmade)["message"]
        assert (
            site.show(nowhere)["failure"] == "stage_out_failed"
            and str(here / "none/four") in site.show(nowhere)["message"]
        )
        assert site.show(failed)["failure"] == "tool_failed"
        assert sorted(os.listdir(here / "out")) == ["good"]


def test_streams_and_large_files(far, here):
    large = os.urandom(20_000_000)
    (here / "in" / "large").write_bytes(large)
    (here / "in" / "words").write_text("so it is\n")
    with FarSite(far, FOUR, link="relay") as site:
        task = site.submit(
            "--stdin",
            here / "in/words",
            *one_task(
                here,
                "sh",
                "-c",
                "cat large large > twice; cat",
                inputs=[("large", here / "in/large")],
                outputs=[("twice", here / "out/twice")],
                more=["--stdout", here / "out/said", "--stderr", here / "out/complained"],
            ),
        )
        assert site.wait(task) == 0
        assert (here / "out" / "twice").read_bytes() == large + large
        assert (here / "out" / "said").read_text() == "so it is\n"
        assert (here / "out" / "complained").read_text() == ""


def test_what_a_failed_task_said_comes_back_and_its_outputs_do_not(far, here):
    (here / "in" / "0").write_text("here\n")
    with FarSite(far, FOUR, link="relay") as site:
        failed, late = (
            site.submit(
                *words,
                *one_task(
                    here,
                    "sh",
                    "-c",
                    f"cp in out; echo so far; echo 'no such luck' >&2; {end}",
                    inputs=[("in", here / "in/0")],
                    outputs=[("out", here / f"out/{name}")],
                    more=["--stdout", here / f"out/{name}.said", "--stderr", here / f"out/{name}.complained"],
                ),
            )
            for name, words, end in (("failed", (), "exit 3"), ("late", ("--time", "2s"), "sleep 60"))
        )
        assert site.wait(failed, late) == 1
        assert site.show(failed)["failure"] == "tool_failed" and site.show(failed)["exit_code"] == 3
        assert site.show(late)["failure"] == "time_task"
        for name in ("failed", "late"):
            assert (here / "out" / f"{name}.said").read_text() == "so far\n"
            assert (here / "out" / f"{name}.complained").read_text() == "no such luck\n"
        assert sorted(os.listdir(here / "out")) == ["failed.complained", "failed.said", "late.complained", "late.said"]


def test_folders_that_both_see_are_used_in_place(far, here):
    (here / "in" / "0").write_text("in place\n")
    with FarSite(far, FOUR, link="relay", path_map={str(here): str(here)}) as site:
        task = site.submit(
            *one_task(
                here,
                "sh",
                "-c",
                "readlink -f in > out",
                inputs=[("in", here / "in/0")],
                outputs=[("out", here / "out/0")],
            )
        )
        assert site.wait(task) == 0
        assert (here / "out" / "0").read_text() == f"{here}/in/0\n"
        assert files_of(site)["files_sent"] == 0 and files_of(site)["files_taken"] == 0
        assert site.ok("run", "--cwd", here, "--", "pwd").strip() == str(here)


def test_a_tool_and_its_own_files_go_along(far, here):
    (here / "in" / "words.txt").write_text("one two\nthree\n")
    with FarSite(far, FOUR, link="relay") as site:
        (site.tools / "count.sh").write_text("wc -w < $1 > $2; echo $0 >&2\n")
        (site.tools / "count_words.yaml").write_text(
            """\
tool: count_words
version: 1.0.0
summary: Counts words
plugin: command
inputs:
  text: {description: A text}
outputs:
  count: {file: count.txt, description: How many}
command: [sh, "{tool_dir}/count.sh", "{text}", "{count}"]
"""
        )
        task = site.submit(
            "--tool", "count_words", "--input", f"text={here}/in/words.txt", "--output", f"count={here}/out/count"
        )
        assert site.wait(task) == 0
        assert (here / "out" / "count").read_text().strip() == "3"
        assert "/files/" in site.ok("log", task, "--stderr") + site.verb("log", task, "--stderr").err


def test_a_site_that_cleans_its_file_system_is_sent_the_files_again(far, here):
    (here / "in" / "0").write_text("still here\n")
    with FarSite(far, FOUR, link="relay", idle_after="60s") as site:

        def copy(name):
            return site.submit(
                *one_task(
                    here, "cp", "in", "out", inputs=[("in", here / "in/0")], outputs=[("out", here / "out" / name)]
                )
            )

        assert site.wait(copy("1")) == 0
        for folder in (site.directory / "w" / "files").iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
        again = copy("2")
        assert site.wait(again) == 0
        assert (here / "out" / "2").read_text() == "still here\n"
