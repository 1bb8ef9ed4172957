"""Snakemake interrupted, killed, started again; the engine killed in the midst of it: each job runs once and ends right."""

import contextlib
import os
import signal

from engine_at_home import is_alive, wait_until

# Each job says when it starts, waits to be let go, and then writes its output.
HELD = """
rule all:
    input: expand("out/{i}.txt", i=range(6))
rule held:
    output: "out/{i}.txt"
    shell: "echo {wildcards.i} >> started; while [ ! -e go ]; do sleep 0.05; done; echo {wildcards.i} > {output}"
"""
SHORT = """
rule all:
    input: expand("out/{i}.txt", i=range(400))
rule short:
    output: "out/{i}.txt"
    shell: "echo {wildcards.i} >> started; echo {wildcards.i} > {output}"
"""


def started(bed):
    path = bed.folder / "started"
    return path.read_text().split() if path.exists() else []


def state(bed):
    return [bed.engine.show(line["id"])["state"] for line in bed.tasks() if line.get("tasks", 1) == 1]


def test_an_interrupt_cancels_what_runs_and_returns_at_once(bed):
    bed.write(HELD)
    snakemake = bed.begin()
    wait_until(lambda: len(started(bed)) == 2, what="two jobs' start")
    os.killpg(snakemake.pid, signal.SIGINT)
    # Its jobs wait for a file that is not there yet.
    assert snakemake.wait(timeout=60) != 0
    wait_until(lambda: set(state(bed)) == {"cancelled"}, 10, "the end of all jobs")
    text = (bed.folder / "snakemake.log").read_text()
    assert "6 jobs were cancelled" in text and "Traceback" not in text
    # Nothing stands in the way of the next run.
    (bed.folder / "go").touch()
    bed.ok("--rerun-incomplete")


def test_a_killed_snakemake_takes_up_what_runs(bed):
    bed.write(HELD)
    snakemake = bed.begin()
    wait_until(lambda: len(started(bed)) == 2, what="two jobs' start")
    wait_until(lambda: len(list((bed.folder / ".snakemake/incomplete").glob("*"))) == 6, what="the marks of all jobs")
    os.killpg(snakemake.pid, signal.SIGKILL)
    snakemake.wait()
    wait_until(
        lambda: sorted(state(bed)) == ["running", "running", "waiting", "waiting", "waiting", "waiting"],
        what="two jobs to run",
    )
    bed.ok("--unlock")
    second = bed.begin(log="second.log")
    wait_until(lambda: (bed.folder / "second.log").read_text().count("is taken up") == 6, what="their being taken up")
    (bed.folder / "go").touch()
    assert second.wait(timeout=60) == 0, (bed.folder / "second.log").read_text()
    assert sorted(started(bed)) == sorted(map(str, range(6)))
    assert len(bed.tasks()) == 6


def test_a_snakemake_killed_in_the_midst_of_its_submit_starts_nothing_twice(bed):
    bed.write(SHORT)
    # It dies when the engine has its jobs and before one of them is marked.
    (bed.folder / "sitecustomize.py").write_text(
        "import os\n"
        "if os.environ.get('DIE_AFTER_SUBMIT'):\n"
        "    import http.client\n"
        "    read = http.client.HTTPResponse.read\n"
        "    def dying(self, *rest):\n"
        "        text = read(self, *rest)\n"
        "        if b'\"ids\"' in text: os.kill(os.getpid(), 9)\n"
        "        return text\n"
        "    http.client.HTTPResponse.read = dying\n"
    )
    bed.env["PYTHONPATH"] = str(bed.folder)
    bed.env["DIE_AFTER_SUBMIT"] = "yes"
    code, _ = bed.run("--scheduler", "hpcbatch")
    assert code == -9
    del bed.env["DIE_AFTER_SUBMIT"]
    bed.ok("--unlock")
    # Some have ended by now, and Snakemake wants to be told what to do with files that are marked.
    bed.ok("--scheduler", "hpcbatch", "--rerun-incomplete")
    assert sorted(started(bed), key=int) == [str(i) for i in range(400)]
    assert len(bed.tasks()) == 400
    assert not list((bed.folder / ".snakemake/incomplete").glob("*"))


def test_jobs_that_are_to_go_on_are_taken_up_after_an_interrupt(bed):
    bed.write(HELD)
    snakemake = bed.begin("--hpcbatch-on-exit", "keep")
    wait_until(lambda: len(started(bed)) == 2, what="two jobs' start")
    os.killpg(snakemake.pid, signal.SIGINT)
    snakemake.wait(timeout=30)
    (bed.folder / "go").touch()
    bed.ok("--rerun-incomplete")
    assert sorted(started(bed)) == sorted(map(str, range(6)))


def test_a_snakemake_that_is_told_to_end_while_it_selects_jobs_ends(bed):
    bed.write(
        "rule all:\n    input: expand('b{i}', i=range(3))\n"
        "rule a:\n    output: 'a{i}'\n    shell: 'touch {output}'\n"
        "rule b:\n    input: 'a{i}'\n    output: 'b{i}'\n    shell: 'touch {output}'\n"
    )
    # It selects by a program that it waits for.
    (bed.folder / "sitecustomize.py").write_text(
        "import os, signal, subprocess\n"
        "wait = subprocess.Popen.wait\n"
        "def told(self, *rest, **more):\n"
        "    if 'cbc' in str(self.args) and os.path.exists('a0') and not os.path.exists('told'):\n"
        "        open('told', 'w'); os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return wait(self, *rest, **more)\n"
        "subprocess.Popen.wait = told\n"
    )
    bed.env["PYTHONPATH"] = str(bed.folder)
    code, text = bed.run("--jobs", "1", timeout=120)
    assert (bed.folder / "told").exists() and code == 1 and "Will exit after finishing" in text, text


def test_an_engine_that_is_killed_goes_unnoticed(bed):
    bed.write(HELD)
    snakemake = bed.begin()
    wait_until(lambda: len(started(bed)) == 2, what="two jobs' start")
    bed.engine.kill_engine()
    (bed.folder / "go").touch()
    # Nobody but Snakemake starts another.
    assert snakemake.wait(timeout=60) == 0, (bed.folder / "snakemake.log").read_text()
    assert sorted(started(bed)) == sorted(map(str, range(6)))


def test_a_killed_engine_loses_nothing_of_many_short_jobs(bed):
    bed.write(SHORT)
    snakemake = bed.begin("--scheduler", "hpcbatch")
    for part in (50, 150, 250):
        wait_until(lambda: len(started(bed)) >= part or not is_alive(snakemake.pid), what=f"{part} jobs' start")
        if is_alive(snakemake.pid):
            bed.engine.kill_engine()
            bed.engine.ok("engine", "start")
    assert snakemake.wait(timeout=120) == 0, (bed.folder / "snakemake.log").read_text()
    assert sorted(started(bed), key=int) == [str(i) for i in range(400)]


def test_a_service_that_dies_in_the_midst_of_a_run_is_not_noticed(bed):
    bed.write(SHORT.replace("400", "60"))
    snakemake = bed.begin("--hpcbatch-mode", "warm")
    for part in (5, 20, 40):
        wait_until(lambda: len(started(bed)) >= part or not is_alive(snakemake.pid), what=f"{part} jobs' start")
        for pid in bed.engine.service_pids("snakemake"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert snakemake.wait(timeout=120) == 0, (bed.folder / "snakemake.log").read_text()
    assert sorted(started(bed), key=int) == [str(i) for i in range(60)]


def test_what_a_job_no_longer_is_is_cancelled_and_run_anew(bed):
    bed.write(HELD)
    snakemake = bed.begin()
    wait_until(lambda: len(started(bed)) == 2, what="two jobs' start")
    os.killpg(snakemake.pid, signal.SIGKILL)
    snakemake.wait()
    bed.write(HELD.replace("echo {wildcards.i} > {output}", "echo new {wildcards.i} > {output}"))
    (bed.folder / "go").touch()
    bed.ok("--unlock")
    text = bed.ok("--rerun-incomplete")
    assert [(bed.folder / f"out/{i}.txt").read_text() for i in range(6)] == [f"new {i}\n" for i in range(6)], text
    assert len(bed.tasks()) == 12


def test_a_run_that_breaks_off_leaves_no_job_behind(bed):
    bed.write(HELD)
    # What waits for ends meets something that nobody has thought of.
    (bed.folder / "sitecustomize.py").write_text(
        "import http.client, os, threading\n"
        "read = http.client.HTTPResponse.read\n"
        "def breaking(self, *rest):\n"
        "    if os.path.exists('break') and threading.current_thread() is not threading.main_thread(): raise RuntimeError('broken')\n"
        "    return read(self, *rest)\n"
        "http.client.HTTPResponse.read = breaking\n"
    )
    bed.env["PYTHONPATH"] = str(bed.folder)
    snakemake = bed.begin()
    wait_until(lambda: len(started(bed)) == 2, what="two jobs' start")
    (bed.folder / "break").touch()
    assert snakemake.wait(timeout=60) != 0
    wait_until(lambda: set(state(bed)) == {"cancelled"}, 10, "the end of all jobs")
    assert "6 jobs were cancelled" in (bed.folder / "snakemake.log").read_text()
