"""Slurm's commands as links of ours: what programs that know nothing of hpcbatch find behind them."""

import json
import os
import subprocess
import time

import pytest
from engine_at_home import wait_until
from slurm_commands import Commands
from slurm_site import SlurmSite


@pytest.fixture
def commands(home):
    return Commands(home)


def test_a_loop_of_a_shell_with_dependencies(commands):
    said = commands.ok("sbatch", "-o", "", "--wrap", "echo first >> order")
    assert said.startswith("Submitted batch job 2000000"), said
    first = said.split()[-1]
    others = [
        commands.submit(f"--dependency=afterok:{first}", "-J", f"part{n}", "--wrap", f"echo part >> order; exit {n}")
        for n in range(3)
    ]
    last = commands.submit("-d", "afterany:" + ":".join(others), "--wrap", "echo last >> order")
    never = commands.submit("-d", f"afterok:{others[1]}", "--wrap", "echo never >> order")
    commands.wait(last, never)
    order = (commands.home.directory / "order").read_text().split()
    assert order == ["first", "part", "part", "part", "last"]
    assert [commands.state(job) for job in others] == ["COMPLETED", "FAILED", "FAILED"]
    assert commands.state(never).startswith("CANCELLED")
    table = commands.ok("sacct", "-P", "-n", "-o", "JobID,JobName,ExitCode,User", "-j", others[2])
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert table.splitlines() == [
        f"{others[2]}|part2|2:0|{user}",
        f"{others[2]}.batch|batch|2:0|",
        f"{others[2]}.extern|extern|0:0|",
    ]
    assert (commands.home.directory / f"slurm-{first}.out").exists()


def test_scripts_and_their_options(commands):
    file = commands.home.directory / "job.sh"
    file.write_text(
        '#!/bin/bash\n#SBATCH -J of-script -o of-script.%j\n#SBATCH --array=1-3\necho "$1 $SLURM_JOB_ID $SLURM_JOB_NAME"\n'
    )
    job = commands.submit("--array", "5", "-o", "mine.%A.%a", file, "a b", SBATCH_JOB_NAME="of-env")
    commands.wait(job)
    assert (commands.home.directory / f"mine.{job}.5").read_text() == f"a b {job} of-env\n"
    piped = commands.submit("-c1", "-opiped", stdin="#!/bin/sh\necho $0\n")
    commands.wait(piped)
    assert (commands.home.directory / "piped").read_text().strip().endswith("slurm_script")
    text = "#!/usr/bin/python3\n# coding: utf-8\n#SBATCH -J other --signal=USR1@60 --time=1:00 -o %x\nassert 0, 'no'\n"
    python = commands.submit("-J", "third", stdin=text, SBATCH_REQUEUE="1")
    commands.wait(python)
    told = (commands.home.directory / "third").read_text()
    assert "line 4" in told and "AssertionError: no" in told, "a script of any language runs as it stands"
    assert commands.ok("sacct", "-XnP", "-o", "Timelimit", "-j", python).strip() == "00:01:00"
    for words, text in (
        (("--nonsense", file), "unrecognized option '--nonsense'"),
        (("-N2", file), "sbatch: error: "),
        (("nowhere.sh",), "sbatch: error: Unable to open file nowhere.sh"),
        (("--wrap", "true", "x"), "Script arguments not permitted with --wrap option"),
    ):
        result = commands.call("sbatch", *words)
        assert result.code in (1, 255) and not result.out and text in result.err, result
    plain = commands.home.directory / "plain"
    plain.write_text("echo\n")
    assert "must start with #! followed by" in commands.call("sbatch", plain).err
    assert "to start at" in commands.call("sbatch", "--test-only", file).err
    assert commands.call("sbatch", "--wait", "--wrap", "exit 7").code == 7
    unlimited = commands.call("sbatch", "--wait", "--signal=B:USR2@30", "--wrap", "exit 5")
    assert unlimited.code == 5, "without a limit there is nothing that the signal comes before"
    asks = commands.call("sbatch", stdin="#!/bin/sh\n#SBATCH --test-only\n:\n")
    assert "to start at" in asks.err and not asks.out
    assert commands.call("sbatch", stdin="#!/bin/sh\n#SBATCH --wait\nexit 6\n").code == 6


def test_arrays_are_shown_as_slurm_shows_them(commands):
    array = commands.submit(
        "--array=0-9%2",
        "-J",
        "sweep",
        "--wrap",
        "while [ ! -e go ]; do sleep 0.05; done; [ $SLURM_ARRAY_TASK_ID != 3 ]",
    )
    wait_until(lambda: commands.ok("squeue", "-h", "-t", "R").count("\n") == 2, 60, "two that run")
    lines = commands.ok("squeue", "-h", "-S", "i", "-o", "%i %t %r", "-u", os.environ.get("USER", str(os.getuid())))
    lines = commands.ok("squeue", "--me", "-h", "-o", "%i %t %r").splitlines()
    assert sorted(lines) == sorted([f"{array}_0 R None", f"{array}_1 R None", f"{array}_[2-9%2] PD JobArrayTaskLimit"])
    assert len(commands.ok("squeue", "-h", "-r", "-j", array).splitlines()) == 10
    header = commands.ok("squeue").splitlines()[0]
    assert header == "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    seen = json.loads(commands.ok("squeue", "--json"))["jobs"]
    assert {job["job_state"][0] for job in seen} == {"RUNNING", "PENDING"} and seen[0]["name"] == "sweep"
    commands.ok("scancel", f"{array}_[8-9]", f"{array}_5")
    (commands.home.directory / "go").touch()
    commands.wait(array)
    states = dict(
        line.split("|")
        for line in commands.ok("sacct", "-X", "-n", "-P", "-o", "JobID,State", "-j", array).splitlines()
    )
    assert states.pop(f"{array}_3") == "FAILED"
    ended = {index for index in (5, 8, 9) if states.pop(f"{array}_{index}").startswith("CANCELLED")}
    assert ended == {5, 8, 9} and set(states.values()) == {"COMPLETED"} and len(states) == 6
    raw = commands.ok("sacct", "-X", "-n", "-P", "-o", "JobIDRaw", "-j", f"{array}_3").strip()
    assert int(raw) == int(array) + 3, "a number for each"


def test_ends_that_the_task_did_not_choose(commands):
    slow = commands.submit("--wrap", "sleep 1000")
    late = commands.submit(stdin="#!/bin/sh\n#HPCBATCH --time 1s\nsleep 1000\n")
    killed = commands.submit("--wrap", "kill -9 $$")
    held = commands.submit("-H", "--wrap", "true")
    assert commands.ok("squeue", "-h", "-o", "%t %r", "-j", held).strip() == "PD JobHeldUser"
    wait_until(lambda: commands.state(slow) == "RUNNING", 60, "the slow one")
    waiting = commands.submit("-H", "--array=1-9", "--wrap", "true")
    commands.ok("scontrol", "release", f"{waiting}_3")
    commands.ok("scontrol", "release", str(int(waiting) + 4))
    commands.wait(f"{waiting}_3", f"{waiting}_5")
    assert commands.ok("squeue", "-h", "-o", "%K %r", "-t", "PD", "-j", waiting).strip() == "1-2,4,6-9 JobHeldUser"
    commands.ok("scancel", waiting)
    detail = commands.ok("scontrol", "-o", "show", "job", slow)
    assert f"JobId={slow} " in detail and "JobState=RUNNING" in detail
    commands.ok("scancel", slow)
    commands.wait(slow, late, killed)
    assert commands.state(slow).startswith("CANCELLED by ")
    assert commands.state(late) == "TIMEOUT"
    assert commands.ok("sacct", "-Xn", "-P", "-o", "State,ExitCode", "-j", killed).strip() == "FAILED|0:9"
    assert commands.ok("squeue", "-h", "-t", "all", "-o", "%t", "-j", killed).strip() == "F"
    commands.ok("scontrol", "release", held)
    commands.wait(held)
    for words in ([], ["-t", "CD"]):
        shown = json.loads(commands.ok("squeue", "--json", "-j", held, *words))["jobs"]
        assert [(one["job_id"], one["job_state"]) for one in shown] == [(int(held), ["COMPLETED"])], "as it has ended"
    commands.ok("scontrol", "requeue", held)
    commands.wait(held)
    assert commands.state(held) == "COMPLETED"
    for words in (("squeue", "-j", "2000009999"), ("scontrol", "show", "job", "2000009999")):
        result = commands.call(*words)
        assert (result.code, result.err) == (1, "slurm_load_jobs error: Invalid job id specified\n"), result
    for verb in ("hold", "release", "requeue"):
        for word in ("", "JobId=", ","):
            result = commands.call("scontrol", verb, word)
            assert (result.code, result.err) == (1, "Invalid job id specified\n"), result
    assert "Invalid job id specified" in commands.call("scancel", "2000009999").err
    assert commands.call("scontrol", "update", f"jobid={held}", "priority=1").code == 1


def test_steps_within_a_task(commands):
    file = commands.home.directory / "steps.sh"
    file.write_text(
        "#!/bin/sh\n#SBATCH -n2 -o steps.out\nsrun -n1 hostname >/dev/null || echo bad\nsrun -O -n3 -l sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'\n"
        "srun -o step.%j.%t -n 2 sh -c 'echo $SLURM_PROCID'\nsrun -n1 sh -c 'exit 5' 2>/dev/null; echo $?\nsrun -N2 true || echo refused\n"
        "sbatch --parsable --wrap true > nested\n"
    )
    job = commands.submit(file)
    commands.wait(job)
    lines = (commands.home.directory / "steps.out").read_text().splitlines()
    assert sorted(lines[:3]) == ["0: 0 of 3", "1: 1 of 3", "2: 2 of 3"], lines
    assert lines[3] == "5" and "Only allocated 1 nodes asked for 2" in lines[4] and lines[6] == "refused", lines
    assert [(commands.home.directory / f"step.{job}.{rank}").read_text() for rank in (0, 1)] == ["0\n", "1\n"]
    nested = (commands.home.directory / "nested").read_text().strip()
    assert int(nested) > 2_000_000_000, "within a task they are ours, too"
    commands.wait(nested)
    assert commands.state(nested) == "COMPLETED"
    assert "srun for steps within a task alone" in commands.call("srun", "true").err
    assert commands.call("salloc").code == 1


def test_the_real_ones_behind_them(commands):
    real = commands.home.directory / "real"
    real.mkdir()
    for name in ("sbatch", "squeue", "scancel", "sinfo", "sacct"):
        (real / name).write_text(f'#!/bin/sh\necho real {name} "$@"\n')
        (real / name).chmod(0o755)
    env = {"PATH": f"{commands.folder}:{commands.folder}:{real}:{os.environ['PATH']}"}
    assert commands.ok("sbatch", "-n", "4", HPCBATCH_SLURM_REAL="1", **env) == "real sbatch -n 4\n"
    assert commands.ok("sbatch", "--real", "x", **env) == "real sbatch x\n"
    assert commands.ok("scancel", "4711", **env) == "real scancel 4711\n"
    assert commands.ok("squeue", "-h", "-j", "4711", **env) == "real squeue -h --jobs=4711\n"
    assert commands.ok("squeue", "-h", HPCBATCH_SLURM_REAL="show", **env) == "real squeue -h\n"
    result = commands.call("sinfo", HPCBATCH_SLURM_REAL="1", PATH=f"{commands.folder}:{commands.folder}")
    assert result.code == 127 and "there is no other sinfo in PATH" in result.err, "nobody calls himself"
    # What calls by name comes back here: it ends.
    (real / "sbatch").write_text('#!/bin/sh\nexec sbatch "$@"\n')
    result = commands.call("sbatch", HPCBATCH_SLURM_REAL="1", **env)
    assert result.code == 127 and "call each other" in result.err, result


def test_an_engine_never_takes_them_for_its_batch_systems(commands):
    """With the folder first in its own PATH, a site of SLURM asks nobody but the real commands."""
    home = commands.home
    home.configure(
        "sites:\n  - name: cluster\n    scheduler: slurm\n    transport: shared_fs\n"
        f"    workspace: {home.directory}/work\n    shapes: [{{name: cpu, cpus: 1, memory: 1G, walltime: 1h}}]\n"
    )
    home.env["PATH"] = f"{commands.folder}:/usr/bin:/bin"
    job = commands.submit("--wrap", "true")
    checked = home.verb("sites", "check", "cluster")
    text = checked.out + checked.err
    assert "23.11.0-hpcbatch" not in text and "2000000" not in text
    time.sleep(2)
    assert commands.ok("squeue", "-h", "-o", "%i").split() == [job], "its pilots did not become tasks"
    added = home.verb("sites", "add", "again", "--workspace", "/w", PATH=f"{commands.folder}:/nowhere")
    assert "neither sbatch nor qsub on PATH" in added.err, added


def test_an_engine_that_cannot_be_reached_is_a_passing_error(commands):
    reason = "Unable to contact slurm controller (connect failure)\n"
    for words, begin in (
        (["squeue"], "slurm_load_jobs error: "),
        (["sbatch", "--wrap", "true"], "sbatch: error: Batch job submission failed: "),
        (["sinfo"], "slurm_load_partitions: "),
    ):
        result = commands.call(*words, HPCBATCH_HOME="/dev/null/x")
        assert result.code == 1 and not result.out and result.err.startswith(begin + reason), result


def test_tasks_run_in_batch_jobs_of_the_real_one(slurm):
    """The engine is started by our sbatch, with our folder first in its PATH."""
    with SlurmSite(slurm) as site:
        commands = Commands(site)
        job = commands.submit("-c1", "-p", "cpu", "--wrap", "command -v sbatch; echo $HPCBATCH_SLURM_REAL.")
        commands.wait(job)
        assert commands.state(job) == "COMPLETED"
        printed = (site.directory / f"slurm-{job}.out").read_text().splitlines()
        assert printed == [f"{commands.folder}/sbatch", "."], "tasks have ours, and only pilots the real ones"
        assert site.batch_jobs(), "the pilot's batch job is SLURM's"
        assert commands.ok("squeue", "-h", "-t", "all", "-o", "%i").split() == [job]
        seen = commands.ok("squeue", "--real", "-h", "-t", "all", "-o", "%i").split()
        assert job in seen and set(seen) & {one.number for one in site.batch_jobs()}, seen
        number = site.batch_jobs()[0].number
        assert commands.ok("squeue", "-h", "-t", "all", "-o", "%i", "-j", number).split() == [number]
        assert "cpu" in commands.ok("sinfo", "-h", "-o", "%P")
