"""What becomes of a job script: who has the last word, signals, files that are added to, scripts of any size, and how it ends."""

import pytest
from slurm_commands import Commands, PbsCommands


@pytest.fixture
def commands(home):
    return Commands(home)


def script(commands, text, name="job.sh"):
    path = commands.home.directory / name
    path.write_text(text)
    return path


def test_the_command_line_has_the_last_word(commands):
    place = commands.home.directory
    script(
        commands,
        "#!/bin/sh\n#SBATCH -N 9 -t soon -o of-script --begin=whenever\n#HPCBATCH --cpus 999 --name ours --stdout of-ours\n"
        "echo $SLURM_JOB_NAME $SLURM_JOB_CPUS_PER_NODE\n",
    )
    job = commands.submit(
        "-N1", "-t", "1", "-n1", "-J", "line", "--begin=now", "job.sh", SBATCH_OUTPUT="of-env", SBATCH_JOB_NAME="env"
    )
    commands.wait(job)
    assert (place / "of-env").read_text() == "line 1\n"
    assert not (place / "of-script").exists() and not (place / "of-ours").exists()
    home = commands.home
    script(commands, "#!/bin/sh\n#SBATCH --mem=lots -o of-script\n#SBATCH -t soon\n:\n")
    refused = home.verb("submit", "job.sh")
    assert refused.code == 2 and "job.sh:2: '#SBATCH --mem=lots'" in refused.err, refused
    home.ok("submit", "--wait", "--mem", "100M", "--time", "1m", "job.sh")
    assert (place / "of-script").exists()


def test_files_that_are_added_to(commands):
    place, home = commands.home.directory, commands.home
    (place / "log").write_text("before\n")
    for words in (["--open-mode", "append"], [], ["--open-mode=truncate"]):
        home.ok("submit", "--wait", "--stdout", "log", *words, "--", "echo", "now")
        if words == ["--open-mode", "append"]:
            assert (place / "log").read_text() == "before\nnow\n"
        else:
            assert (place / "log").read_text() == "now\n"
    home.ok(
        "submit",
        "--wait",
        "--open-mode",
        "append",
        "--array",
        "1-20",
        "--stdout",
        "log",
        "--stderr",
        "log",
        "--",
        "echo",
        "one",
    )
    assert (place / "log").read_text() == "now\n" + "one\n" * 20
    (place / "tasks.yaml").write_text("- command: [echo, file]\n  stdout: log\n  open_mode: append\n")
    home.ok("submit", "--wait", "--file", "tasks.yaml")
    assert (place / "log").read_text().endswith("one\nfile\n")
    # Again after a failure, and by Slurm's own request.
    home.verb(
        "submit",
        "--wait",
        "--open-mode",
        "append",
        "--retries",
        "2",
        "--stdout",
        "tries",
        "--",
        "sh",
        "-c",
        "echo try; exit 1",
    )
    assert (place / "tries").read_text() == "try\n" * 3


def test_a_signal_for_steps_goes_to_them_alone(commands):
    place = commands.home.directory
    script(
        commands,
        "#!/bin/bash\n#SBATCH --signal=USR2@58 -t 1 -n 2 -o out\n"
        "trap 'echo never' USR2\n"
        "srun bash -c 'trap \"echo step; exit 3\" USR2; while :; do sleep 0.1; done'\n"
        "echo code $?\n",
    )
    assert commands.call("sbatch", "--wait", "job.sh").code == 0
    lines = (place / "out").read_text().splitlines()
    assert lines.count("step") == 2 and lines[-1] == "code 3" and "never" not in lines, lines


@pytest.mark.parametrize("first", ["#!/bin/bash", "#!/usr/bin/env python3"])
def test_a_script_of_any_size_runs_from_its_copy(commands, first):
    place = commands.home.directory
    lines = "".join(f"# line {number} ä\n" for number in range(60_000))
    text = f"{first}\n#SBATCH -o out\n{lines}" + ("echo end" if "bash" in first else "print('end')")
    assert len(text) > 880_000
    script(commands, text)
    job = commands.submit("job.sh")
    script(commands, "#!/bin/sh\nexit 1\n")
    commands.wait(job)
    assert (place / "out").read_text() == "end\n" and commands.state(job) == "COMPLETED"
    script(commands, text.replace("#SBATCH", "#"))
    assert commands.home.ok("submit", "--wait", "job.sh")
    script(commands, text + "#" * 2_000_000)
    refused = commands.call("sbatch", "job.sh")
    assert refused.code == 1 and "a script may have 1 MB" in refused.err, refused


def test_a_folder_that_is_not_there_is_a_failure(commands):
    job = commands.submit("-D", "/nonexistent/folder", "--wrap", "echo never")
    commands.wait(job)
    fields = commands.ok("sacct", "-X", "-n", "-P", "-o", "State,ExitCode", "-j", job).strip()
    assert fields == "FAILED|1:0"
    assert "ExitCode=1:0" in commands.ok("scontrol", "show", "job", job)
    assert "/nonexistent/folder" in commands.home.ok("explain", str(int(job) - 2_000_000_000))


def test_waiting_ends_with_the_scripts_own_code(commands):
    home = commands.home
    for lines, code in (("#SBATCH -c 1\nexit 7", 7), ("exit 6", 6), ("kill -9 $$", 137), ("#PBS -N x\nexit 5", 5)):
        script(commands, f"#!/bin/sh\n{lines}\n")
        assert home.verb("submit", "--wait", "job.sh").code == code, lines
    script(commands, "#!/bin/sh\n#SBATCH -a 1-5 -o none\nexit $SLURM_ARRAY_TASK_ID\n")
    assert home.verb("submit", "--wait", "job.sh").code == 5
    assert commands.call("sbatch", "--wait", "job.sh").code == 5
    assert home.verb("submit", "--wait", "--", "sh", "-c", "exit 7").code == 1


def test_what_the_engine_refuses_of_a_file_is_named_by_its_line(commands):
    home, place = commands.home, commands.home.directory
    (place / "t.yaml").write_text(
        "tasks:\n- command: [a]\n- command: [b]\n  after: [last]\n  name: second\n"
        "  stdin: 'x{index}'\n- command: [c]\n  name: last\n  memory: 1\n"
    )
    refused = home.verb("submit", "--file", "t.yaml")
    assert refused.code == 2 and "t.yaml:9: task " in refused.err and ".memory" in refused.err, refused
    (place / "t.jsonl").write_text('{"command": ["a"]}\n\n{"command": ["b"], "memory": 1}\n')
    refused = home.verb("submit", "--file", "t.jsonl")
    assert refused.code == 2 and "t.jsonl:3: task 2.memory" in refused.err, refused


def test_one_of_takes_all_ways_in_one_word(home):
    home.ok("submit", "--wait", "--one-of", "gpus=1; cpus=1", "--", "true")
    refused = home.verb("submit", "--one-of", "cpus=1", "--", "true")
    assert refused.code == 2 and "leaves no choice" in refused.err


def test_each_of_several_is_waited_for(commands):
    """A list's last one alone was waited for, so that the job began beside the others."""
    home = commands.home
    numbers = [commands.submit("--hold", "--wrap", ":") for _ in range(3)]
    ids = [str(int(number) - 2000000000) for number in numbers]
    listed = ":".join(numbers)
    script(commands, f"#!/bin/sh\n#SBATCH -d afterok:{listed}\n:\n", "line.sh")
    script(commands, f"#!/bin/sh\n#PBS -W depend=afterok:{listed}\n:\n", "pbs.sh")
    script(commands, "#!/bin/sh\n" + "".join(f"#HPCBATCH --after {task}\n" for task in ids) + ":\n", "ours.sh")
    jobs = [
        commands.submit("-d", f"afterok:{listed}", "--wrap", ":"),
        commands.submit("-d", f"afterok:{numbers[0]},afterok:{numbers[1]}:{numbers[2]}", "--wrap", ":"),
        commands.submit("-d", f"afterok:{numbers[0]}?afterok:{numbers[1]}:{numbers[2]}", "--wrap", ":"),
        commands.submit("line.sh"),
        *(str(2000000000 + int(home.ok("submit", name).strip())) for name in ("line.sh", "pbs.sh", "ours.sh")),
    ]
    for job in jobs:
        assert home.show(str(int(job) - 2000000000))["after"] == ids, job
        told = commands.ok("squeue", "-h", "-o", "%E", "-j", job)
        assert all(number in told for number in numbers), told
    # What the command line says holds over the line.
    alone = commands.submit("-d", f"afterok:{numbers[1]}", "line.sh")
    assert home.show(str(int(alone) - 2000000000))["after"] == [ids[1]]


def test_lines_that_say_one_of_a_list_each(commands):
    home = commands.home
    script(commands, "a\nb\n", "letters")
    script(commands, "1\n2\n3\n", "numbers")
    script(
        commands,
        "#!/bin/sh\n#HPCBATCH --one-of cpus=2\n#HPCBATCH --one-of cpus=1\n"
        "#HPCBATCH --each letters\n#HPCBATCH --each numbers\n:\n",
    )
    [seen] = home.json("submit", "--dry-run", "job.sh")
    assert seen["tasks"] == 6 and seen["needs"]["one_of"] == [{"cpus": 2}, {"cpus": 1}], seen
    [seen] = home.json("submit", "--dry-run", "--each", "letters", "--one-of", "cpus=1", "--one-of", "cpus=2", "job.sh")
    assert seen["tasks"] == 2 and seen["needs"]["one_of"] == [{"cpus": 1}, {"cpus": 2}], seen


def test_requeue_holds_as_it_was_said_last(commands):
    """What no node's end starts again was never started again, whatever the command line said."""
    home = commands.home
    PbsCommands(home)
    script(commands, "#!/bin/sh\n#SBATCH --no-requeue\n:\n", "no.sh")
    script(commands, "#!/bin/sh\n#SBATCH --requeue\n:\n", "yes.sh")
    script(commands, "#!/bin/sh\n#PBS -r n\n:\n", "pbs_no.sh")
    script(commands, "#!/bin/sh\n#SBATCH -n1\n#HPCBATCH --no-requeue\n:\n", "ours_no.sh")

    def is_requeued(*words):
        number = int(commands.ok(*words).split()[-1].split(".")[0])
        shown = home.show(str(number % 2_000_000_000))
        if number > 2_000_000_000:
            assert f"Requeue={int(shown.get('requeue', True))} " in commands.ok("scontrol", "show", "job", str(number))
        return shown.get("requeue", True)

    submit = home.program, "submit", "--hold"
    assert is_requeued("sbatch", "-H", "--requeue", "no.sh")
    assert not is_requeued("sbatch", "-H", "--no-requeue", "yes.sh")
    assert is_requeued("sbatch", "-H", "--requeue", "ours_no.sh")
    assert is_requeued(*submit, "--requeue=yes", "no.sh")
    assert is_requeued(*submit, "--requeue=yes", "ours_no.sh")
    assert not is_requeued(*submit, "--no-requeue", "yes.sh")
    assert is_requeued("qsub", "-h", "-r", "y", "pbs_no.sh")
    assert not is_requeued("qsub", "-h", "pbs_no.sh")
    refused = home.verb("submit", "--no-requeue", "--requeue=yes", "--", "true")
    assert refused.code == 2 and "exclude each other" in refused.err, refused


def test_the_callers_dependency_stands_in_the_place_of_the_scripts(commands):
    home = commands.home
    PbsCommands(home)
    first, second = (commands.submit("--hold", "--wrap", ":") for _ in range(2))
    ids = [str(int(number) - 2_000_000_000) for number in (first, second)]
    script(commands, f"#!/bin/sh\n#PBS -W depend=afterok:{first}\n:\n", "pbs.sh")
    script(commands, f"#!/bin/sh\n#SBATCH -n1\n#HPCBATCH --after {ids[0]}\n:\n", "ours.sh")
    for job in (
        commands.ok("qsub", "-W", f"depend=afterok:{second}", "pbs.sh").split(".")[0],
        commands.submit("-d", f"afterok:{second}", "ours.sh"),
    ):
        assert home.show(str(int(job) - 2_000_000_000))["after"] == [ids[1]]


def test_all_variables_go_along_in_any_case(commands):
    place = commands.home.directory
    commands.ok("sbatch", "--wait", "--export=all,B=2", "-o", "out", "--wrap", "echo $A_VALUE $B", A_VALUE="1")
    assert (place / "out").read_text() == "1 2\n"


def test_a_task_begins_before_its_deadline(commands):
    home = commands.home
    refused = home.verb("submit", "--begin", "now+2hours", "--deadline", "now+1hour", "--", "true")
    assert refused.code == 2 and "is not before its 'deadline'" in refused.err, refused
