"""PBS's commands as links of ours: what programs that know nothing of hpcbatch find behind them."""

import json
import os
import pathlib

import pytest
from engine_at_home import wait_until
from slurm_commands import PbsCommands


@pytest.fixture
def commands(home):
    return PbsCommands(home)


def test_scripts_and_their_options(commands):
    where = commands.home.directory
    file = where / "job.sh"
    file.write_text(
        "#PBS -N of-script -l walltime=5:00\n#PBS -o logs/ -l select=1:ncpus=1:mem=200mb\n#PBS -j oe\n"
        'echo "$PBS_JOBID $PBS_JOBNAME $PBS_O_WORKDIR $WORD"; pwd\n'
    )
    (where / "logs").mkdir()
    job = commands.submit("-N", "mine", "-v", "WORD=x", file)
    assert job.endswith(".hpcbatch") and int(job.split(".")[0]) > 2_000_000_000
    commands.wait(job)
    number = job.split(".")[0]
    told = (where / f"logs/mine.o{number}").read_text().splitlines()
    assert told == [f"{job} mine {where} x", commands.env.get("HOME", os.environ["HOME"])]
    seen = commands.attributes(job)
    assert (seen["Exit_status"], seen["Resource_List.walltime"], seen["Resource_List.mem"]) == (
        "0",
        "00:05:00",
        "204800kb",
    )
    piped = commands.submit("-koed", stdin="echo out; echo err >&2; exit 7\n")
    commands.wait(piped)
    number = piped.split(".")[0]
    assert [(where / f"STDIN.{stream}{number}").read_text() for stream in "oe"] == ["out\n", "err\n"]
    assert commands.attributes(piped)["Exit_status"] == "7"
    command = commands.submit(
        "-N", "said", "-o", "$PBS_O_WORKDIR/${PBS_JOBNAME}.${PBS_JOBID}", "--", "/bin/echo", "-n", "a b", "$x"
    )
    commands.wait(command)
    assert (where / f"said.{command}").read_text() == "a b $x"
    assert commands.call("qsub", "-W", "block=true", "--", "/bin/sh", "-c", "exit 6").code == 6
    assert commands.ok("qsub", "-z", "--", "/bin/true") == ""
    for words, text in (
        (("-Z", file), "qsub: invalid option -- 'Z'"),
        (("-l", "select=1:ncpus=1+1:ncpus=2", file), "all nodes of a task are alike"),
        (("-l", "select=2:ncpus=1", file), "the task asks for 2 nodes at once"),
        (("nowhere.sh",), "qsub: script file:: No such file or directory"),
        ((file, "more"), "a script takes no arguments"),
        (("-I", file), "'-I': a task has no terminal"),
        (("-N", "", "-h", file), "qsub: '-N': its value is empty"),
        (("-A", "", "-V", file), "qsub: '-A': its value is empty"),
        (("-l", "select=1:ncpus=4000", file), "qsub: Job violates queue and/or server resource limits"),
    ):
        result = commands.call("qsub", *words)
        assert result.code != 0 and not result.out and text in result.err, result


def test_order_and_arrays(commands):
    where = commands.home.directory
    first = commands.submit("--", "/bin/sh", "-c", f"echo first >> {where}/order")
    array = commands.submit(
        "-J",
        "0-3",
        "-W",
        f"depend=afterok:{first}",
        stdin=f"echo $PBS_ARRAY_INDEX >> {where}/order; [ $PBS_ARRAY_INDEX != 2 ]\n",
    )
    last = commands.submit("-Wdepend=afterany:" + array, "--", "/bin/sh", "-c", f"echo last >> {where}/order")
    never = commands.submit("-W", f"depend=afterok:{array}", "--", "/bin/true")
    assert array.endswith("[].hpcbatch")
    commands.wait(last, never, array)
    order = (where / "order").read_text().split()
    assert order[0] == "first" and sorted(order[1:5]) == ["0", "1", "2", "3"] and order[5] == "last"
    assert "Exit_status" not in commands.attributes(never)
    whole = commands.attributes(array)
    assert (whole["job_state"], whole["Exit_status"], whole["array_indices_submitted"]) == ("F", "1", "0-3")
    told = json.loads(commands.ok("qstat", "-x", "-t", "-f", "-F", "json", array))["Jobs"]
    number = array.split("[")[0]
    assert list(told) == [array, *(f"{number}[{index}].hpcbatch" for index in range(4))]
    assert [told[f"{number}[{index}].hpcbatch"]["Exit_status"] for index in range(4)] == [0, 0, 1, 0]
    assert (where / f"STDIN.o{number}.2").exists()


def test_states_and_ends(commands):
    held = commands.submit("-h", "-N", "held", "--", "/bin/true")
    slow = commands.submit("-N", "slow", "--", "/bin/sleep", "1000")
    late = commands.submit("-l", "walltime=1", "--", "/bin/sleep", "1000")
    killed = commands.submit("--", "/bin/sh", "-c", "kill -9 $$")
    array = commands.submit("-J", "1-9%1", "-N", "sweep", "--", "/bin/sleep", "1000")
    number = array.split("[")[0]
    wait_until(lambda: commands.state(slow) == "R" and commands.state(array) == "B", 60, "the slow ones")
    lines = {line.split()[0]: line.split()[4] for line in commands.ok("qstat").splitlines()[2:]}
    assert (lines[held], lines[slow], lines[array]) == ("H", "R", "B")
    told = commands.ok("qstat", "-t", array)
    assert told.splitlines()[3].startswith(f"{number}[1].hpcbatch ") and len(told.splitlines()) == 12
    assert "Server " in commands.ok("qstat", "-B") and "hpcbatch" in commands.ok("qstat", "-Q")
    full = commands.ok("qstat", "-f", "@hpcbatch")
    assert f"Job Id: {slow}\n" in full and "    job_state = R\n" in full and f"{number}[1]" not in full
    assert "held" in commands.ok("qstat", "-u", str(os.getuid())) and commands.ok("qstat", "-u", "nobody") == ""
    commands.ok("qdel", f"{number}[3-4]", f"{number}[2].hpcbatch")
    assert json.loads(commands.ok("qstat", "-f", "-F", "json", array))["Jobs"][array]["array_state_count"].endswith(
        "Expired:3"
    )
    commands.ok("qdel", "-W", "force", array, slow)
    commands.ok("qrls", held)
    commands.wait(array, slow, held, late, killed)
    assert [commands.attributes(job)["Exit_status"] for job in (slow, late, killed, held)] == ["271", "-29", "265", "0"]
    result = commands.call("qstat", slow)
    assert (
        result.code == 35
        and result.err == f"qstat: {slow} Job has finished, use -x or -H to obtain historical job information\n"
    )
    for name in ("qstat", "qdel", "qrls"):
        result = commands.call(name, "2000009999")
        assert (result.code, result.err) == (153, f"{name}: Unknown Job Id 2000009999.hpcbatch\n"), result
        for word in ("", "@hpcbatch"):
            result = commands.call(name, word)
            wanted = (0, "") if name == "qstat" else (1, f"{name}: illegally formed job identifier: {word}\n")
            assert (result.code, result.err) == wanted, result
    assert commands.call("qdel", held).code == 35 and commands.call("qdel", slow).code == 0
    assert commands.call("qsig").code == 2 and "suspends no job" in commands.call("qsig", "-s", "suspend", held).err
    result = commands.call("qsig", "-s", "NONE", held)
    assert (result.code, result.err) == (167, "qsig: Unknown/illegal signal name\n")


def test_signals_go_to_what_runs(commands):
    held = commands.submit("-h", "--", "/bin/true")
    result = commands.call("qsig", held)
    assert (result.code, result.err) == (170, f"qsig: Request invalid for state of job {held}\n")
    saved = commands.home.directory / "saved"
    lines = f"trap 'touch {saved}; exit 3' USR1; touch {saved}.ready; while :; do sleep 0.1; done"
    slow = commands.submit("--", "/bin/sh", "-c", lines)
    wait_until(lambda: pathlib.Path(f"{saved}.ready").exists(), 60, "its trap")
    commands.ok("qsig", "-s", "SIGUSR1", slow)
    commands.wait(slow)
    assert saved.exists() and commands.attributes(slow)["Exit_status"] == "3"
    commands.ok("qdel", held)
    array = commands.submit("-J", "1-3%1", "-r", "y", "--", "/bin/sh", "-c", f"touch {saved}.array; exec sleep 1000")
    wait_until(lambda: pathlib.Path(f"{saved}.array").exists(), 60, "its first")
    commands.ok("qsig", "-s", "KILL", array)  # of the array what runs
    first = array.replace("[]", "[1]")
    wait_until(lambda: commands.attributes(first).get("Exit_status") == "265", 60, "its end")
    commands.ok("qdel", array)


def test_what_runs_is_run_again(commands):
    said = commands.home.directory / "runs"
    slow, once = (
        commands.submit("-r", rerunnable, "--", "/bin/sh", "-c", f"echo x >> {said}.{rerunnable}; exec sleep 1000")
        for rerunnable in "yn"
    )
    held = commands.submit("-h", "--", "/bin/true")
    runs = {name: pathlib.Path(f"{said}.{name}") for name in "yn"}
    wait_until(lambda: all(file.exists() for file in runs.values()), 60, "their starts")
    commands.ok("qrerun", "-W", "force", slow)
    wait_until(lambda: runs["y"].read_text() == "x\nx\n", 60, "its second run")
    for job, code, text in ((once, 192, "Job is not rerunnable"), (held, 170, "Request invalid for state of job")):
        result = commands.call("qrerun", job)
        assert (result.code, result.err) == (code, f"qrerun: {text} {job}\n")
    assert runs["n"].read_text() == "x\n"
    assert "moves no job" in commands.call("qmove", "other", held).err
    commands.ok("qdel", slow, once, held)


def test_nodes_are_not_ours(commands):
    assert "PBSPro" in commands.ok("pbsnodes", "--version")


def test_the_real_ones_behind_them(commands):
    real = commands.home.directory / "real"
    real.mkdir()
    for name in ("qsub", "qstat", "qdel"):
        (real / name).write_text(f'#!/bin/sh\necho real {name} "$@"\n')
        (real / name).chmod(0o755)
    env = {"PATH": f"{commands.folder}:{real}:{os.environ['PATH']}"}
    assert commands.ok("qsub", "-V", "x", HPCBATCH_PBS_REAL="1", **env) == "real qsub -V x\n"
    assert commands.ok("qsub", "--real", "x", **env) == "real qsub x\n"
    assert commands.ok("qdel", "4711.pbs", **env) == "real qdel 4711.pbs\n"
    assert commands.ok("qstat", "-f", HPCBATCH_PBS_REAL="show", **env) == "real qstat -f\n"
    assert commands.call("qdel", "4711", PATH=str(commands.folder)).code == 153


def test_an_engine_that_cannot_be_reached(commands):
    result = commands.call("qstat", HPCBATCH_HOME="/proc/nowhere")
    assert result.code == 111, result
    assert result.err.startswith("Connection refused\nqstat: cannot connect to server hpcbatch (errno=111)\n"), result
