"""Steps of srun within a job: by SLURM's own and by ours, and both do and say the same."""

import re

import pytest
from engine_at_home import EngineAtHome, wait_until
from slurm_commands import Commands

# Each is run in a job of two cpus, on one node, in an empty folder. None where SLURM leaves a step behind that never
# ends, as it does of one whose file cannot be opened.
STEPS = {
    "a_program_that_is_not_there": "srun nosuchprogram; echo $?",
    "more_than_the_job_has": "srun -n5 hostname; echo $?; srun -n1 -c9 true; echo $?",
    "one_is_killed": "srun -n2 bash -c '[ $SLURM_PROCID = 1 ] && kill -9 $$; sleep 1'; echo $?",
    "the_highest_code": "srun -n2 bash -c 'sleep $SLURM_PROCID; exit $((SLURM_PROCID+3))'; echo $?",
    "both_the_same_code": "srun -n2 bash -c 'exit 3'; echo $?; srun -Q -n2 bash -c 'exit 3'",
    "ended_with_the_first_bad_one": "srun -K -n2 bash -c '[ $SLURM_PROCID = 1 ] && exit 3; sleep 9'; echo $?",
    "not_ended_with_it": "srun -K0 -n2 bash -c '[ $SLURM_PROCID = 1 ] && exit 3; sleep 1'; echo $?",
    "all_terminated": "srun -n2 bash -c 'kill $$'; echo $?",
    "a_segmentation_fault": "srun -n2 bash -c '[ $SLURM_PROCID = 1 ] && kill -11 $$; exit 0'; echo $?",
    "waits_for_others_so_long": "srun -W1 -n2 bash -c '[ $SLURM_PROCID = 0 ] && exit 0; sleep 9' 2> err; echo $?; grep First err",
    "its_variables": "srun -l bash -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_NPROCS $SLURM_STEP_NUM_TASKS"
    " $SLURM_GTIDS $SLURM_NODEID $SLURM_STEP_NUM_NODES $SLURM_TASKS_PER_NODE $SLURM_LABELIO $SLURM_UMASK $SLURM_DISTRIBUTION"
    "; [ $SLURM_TASK_PID = $$ ]; echo $?' | sort",
    "of_one_rank": "srun -n1 bash -c 'echo $SLURM_PROCID $SLURM_NTASKS $SLURM_DISTRIBUTION $SLURM_GTIDS'",
    "steps_count": "for i in 1 2; do srun -n1 bash -c 'echo $SLURM_STEP_ID $SLURM_STEPID'; done | awk '{print $1 - last, $2 - $1; last = $1}' | tail -1",
    "cpus_of_each": "srun -n1 -c2 bash -c 'echo $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE'",
    "export_all_and_one": "export FOO=1; srun -n1 --export=ALL,BAR=2 bash -c 'echo $FOO $BAR'",
    "export_some": "export FOO=1 QUX=3; srun -n1 --export=FOO,BAR=2 /bin/bash -c 'echo $FOO $BAR $QUX ${HOME-none}'",
    "export_none": "export FOO=1; srun -n1 --export=NONE /bin/bash -c 'echo ${FOO-none} ${SLURM_JOB_NAME}'; srun -n1 --export=NONE env; echo $?",
    "export_of_the_environment": "export FOO=1; SLURM_EXPORT_ENV=NONE srun -n1 /bin/bash -c 'echo ${FOO-none}'",
    "input_none": "echo hello | srun -i none -n2 -l cat; echo $?",
    "input_for_all": "echo hello | srun -n2 -l cat | sort",
    "input_for_one": "echo hello | srun -n2 -i 1 -l cat",
    "much_input": "seq 30000 | srun -n2 -l tail -n1 | sort",
    "names_of_files": "srun -n2 -o 'o.%t.%n.%x.%a.%%.%2t.%u' echo hi; ls o.*; rm o.*",
    "names_with_the_job": "srun -n1 -o 'o.%j.%A' echo hi; [ -f o.$SLURM_JOB_ID.$SLURM_JOB_ID ]; echo $?",
    "output_none": "srun -n2 -o none bash -c 'echo hi; echo err >&2'; ls none",
    "output_of_one": "srun -n2 -o 1 bash -c 'echo hi $SLURM_PROCID; echo err $SLURM_PROCID >&2'",
    "error_apart": "srun -n1 -e e.txt bash -c 'echo out; echo err >&2'; cat e.txt",
    "output_takes_errors_along": "srun -n2 -o o.txt bash -c 'echo out; echo err >&2'; sort o.txt",
    "labels_in_a_file": "srun -l -n2 -o l.txt bash -c 'echo out; echo err >&2'; sort l.txt",
    "labels_are_wide": "srun -l -n12 -O echo out | sort | head -3",
    "a_line_without_an_end": "srun -l printf 'a\\nb' | sort; srun -n1 printf a; echo .",
    "no_number": "srun -n 0 true; echo $?; srun -n x true; echo $?",
    "no_command": "srun; echo $?",
    "no_option": "srun --nosuch true; echo $?",
    "no_time": "srun -n1 -t 1:x true; echo $?; srun --signal=XX true; echo $?",
    "another_job": "srun -n1 --jobid=1999999999 true; echo $?",
    "another_node": "srun -w n77 -n1 true; echo $?",
    "a_folder": "srun -n1 /etc; echo $?",
    "too_much_memory": "srun -n1 --mem=1000G true; echo $?",
    "gpus_of_a_job_without": "srun -n1 --gres=gpu:1 true; echo $?; srun -n1 --gpus=1 true; echo $?",
    "steps_one_after_another": "srun -n2 sleep 2 & sleep 0.7; srun -n1 echo second; wait",
    "exact_steps_side_by_side": "srun -n1 --exact bash -c 'sleep 2; echo first' & sleep 0.7; srun -n1 --exact echo second; wait",
    "the_third_exact_one_waits": "srun -n1 --exact sleep 2 & sleep 0.7; srun -n1 --exact sleep 3 & sleep 0.7; srun -n1 --exact echo third; wait",
    "immediately_or_not": "srun -n2 sleep 2 & sleep 0.7; srun -I -n1 true; echo $?; wait",
    "programs_by_rank": "printf '0 echo zero %%t %%o\\n* bash -c exit\\n' > m; srun -l --multi-prog m; echo $?",
    "quoted_programs": 'printf "0-1 bash -c \'echo \\$SLURM_PROCID \\"q r\\"\'\\n" > m; srun -l --multi-prog m | sort',
    "two_for_a_rank": "printf '0 echo a\\n0-1 echo b\\n' > m; srun --multi-prog m; echo $?",
    "none_for_a_rank": "printf '0 echo a\\n' > m; srun --multi-prog m; echo $?",
    "no_programs": "srun --multi-prog nowhere; echo $?",
}
# Builtins alone: what a signal ends would be told by the shell.
PAUSE = "read -t 0.1 -u 9"
SIGNALLED = f"""exec 9<> <(:); trap 'touch shell' USR1
srun -n2 bash -c 'exec 9<> <(:); trap "touch step.$SLURM_PROCID" USR1; touch ready.$SLURM_PROCID; while [ ! -e go ]; do {PAUSE}; done; exit 0' &
until [ -e ready.0 -a -e ready.1 ]; do {PAUSE}; done
scancel -s USR1 {{}} $SLURM_JOB_ID; echo $?
for i in 1 2 3 4 5 6 7 8 9 10; do {PAUSE}; done; touch go; wait; wait; trap - USR1; exec 9<&-; ls"""
STEPS |= {f"signals{words.replace(' -', '_')}": SIGNALLED.format(words) for words in ("", " --batch")}
# SLURM's controller hears of the end of a step some time after it: any of them may have to wait there.
WAITING = {"steps_one_after_another", "the_third_exact_one_waits"}
WAIT = re.compile("srun: (job NUMBER step creation|Step created for)")


def script():
    parts = [f"mkdir {name}; cd {name}; echo '== {name}'\n{text}\nwait; cd ..\n" for name, text in STEPS.items()]
    return "#!/bin/bash\nexec 2>&1 < /dev/null\n" + "".join(parts)


def in_parts(text):
    """What each printed, with numbers, hosts and times apart."""
    for pattern, other in (
        (r"(StepId=|STEP )\d+\.\d+", r"\1STEP"),
        (r"(?i)\bjob \d+", "job NUMBER"),
        (r"slurmstepd-[\w-]+:", "slurmstepd-NODE:"),
        (r"(error: )[\w-]+(: tasks? [\d,-]+:)", r"\1NODE\2"),
        (r" ON \S+ CANCELLED AT \S+", " ON NODE CANCELLED AT TIME"),
    ):
        text = re.sub(pattern, other, text)
    parts = [part.split("\n", 1) for part in re.split(r"^== ", text, flags=re.M)[1:]]
    # Two processes print: which of their lines is the first is chance.
    return {
        name: sorted(line for line in lines.splitlines() if name in WAITING or not WAIT.match(line))
        for name, lines in parts
    }


@pytest.fixture(scope="module")
def theirs(slurm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    file = folder / "steps.sh"
    file.write_text(script())
    number = slurm.ask("sbatch", "--parsable", "-n2", "-t10", "-o", folder / "out", "-D", folder, file).strip()
    wait_until(
        lambda: slurm.ask("squeue", "-h", "-t", "all", "-o", "%t", "-j", number).strip() in ("CD", "F"), 240, "the end"
    )
    return in_parts((folder / "out").read_text())


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    file = folder / "steps.sh"
    file.write_text(script())
    with EngineAtHome() as home:
        commands = Commands(home)
        commands.ok("sbatch", "-W", "-n2", "-t10", "-o", folder / "out", "-D", folder, file)
        return in_parts((folder / "out").read_text())


@pytest.mark.parametrize("name", STEPS)
def test_a_step_does_and_says_what_it_does_under_slurm(name, theirs, ours):
    assert ours[name] == theirs[name]


def test_its_time_is_over(home):
    commands = Commands(home)
    text = (
        "#!/bin/bash\n#SBATCH -o out\ntime=$SECONDS; srun -t 0:01 sleep 60; echo $? $((SECONDS - time < 20))\n"
        "srun -t 1 --signal=USR1@59 bash -c 'trap \"echo asked; exit 0\" USR1; sleep 60 & wait'\n"
    )
    commands.ok("sbatch", "-W", stdin=text)
    lines = (home.directory / "out").read_text().splitlines()
    assert re.match(r".*\*\*\* STEP \d+\.0 ON \S+ CANCELLED AT \S+ DUE TO TIME LIMIT \*\*\*", lines[0]), lines
    assert "143 1" in lines and lines[-1] == "asked", lines


def test_signals_go_to_its_ranks(home):
    commands = Commands(home)
    text = (
        "#!/bin/bash\n#SBATCH -n2 -o out\nsrun -n2 bash -c 'trap \"exit 5\" USR1; touch set.$SLURM_PROCID; while :; do sleep 0.1; done' &\n"
        "while [ ! -f set.0 ] || [ ! -f set.1 ]; do sleep 0.1; done; kill -USR1 $!; wait $!; echo $?\n"
        "srun -n1 bash -c 'trap \"exit 6\" INT; touch set.2; while :; do sleep 0.1; done' &\n"
        "while [ ! -f set.2 ]; do sleep 0.1; done; kill -INT $!; sleep 0.2; kill -INT $!; wait $!; echo $?\n"
    )
    commands.ok("sbatch", "-W", stdin=text)
    lines = (home.directory / "out").read_text()
    assert re.search("tasks 0-1: Exited with exit code 5\n5\n", lines), lines
    assert "srun: interrupt (one more within 1 sec to abort)\n" in lines and lines.endswith("6\n"), lines


def test_ranks_end_with_their_job(home):
    """They are processes of the step's; TERM comes to them, as it comes to the script."""
    commands = Commands(home)
    text = (
        "#!/bin/bash\n#SBATCH -n2 -o out\ntrap 'wait; exit 1' TERM\n"
        "srun bash -c 'trap \"echo saved > saved.$SLURM_PROCID; exit 0\" TERM; touch begun.$SLURM_PROCID; sleep 60 & wait' & wait\n"
    )
    job = commands.submit(stdin=text)
    wait_until(lambda: (home.directory / "begun.1").exists() and (home.directory / "begun.0").exists(), 60, "its ranks")
    commands.ok("scancel", job)
    commands.wait(job)
    wait_until(lambda: all((home.directory / f"saved.{rank}").exists() for rank in (0, 1)), 20, "what they save")


def test_a_signal_for_all_of_a_job(home):
    commands = Commands(home)
    step = f'exec 9<> <(:); trap "touch step" USR1; touch ready; while [ ! -e step ]; do {PAUSE}; done; exit 0'
    job = commands.submit(
        "-o", "out", "-n1", stdin=f"#!/bin/bash\ntrap 'touch shell' USR1\nsrun bash -c '{step}' &\nwait; wait\n"
    )
    wait_until((home.directory / "ready").exists, 60, "the step's trap")
    commands.ok("scancel", "--full", "-s", "usr1", job)
    commands.wait(job)
    assert (home.directory / "shell").exists() and (home.directory / "step").exists()
    assert commands.state(job) == "COMPLETED"
    assert "Unknown job signal" in commands.call("scancel", "-s", "SOON", job).err


def test_a_signal_is_for_what_runs(home):
    """By our own command; a job that waits hears nothing of it, and that is no success."""
    waits = home.submit("--hold", "--", "true")
    assert home.verb("signal", waits, "--signal", "USR1").code == 1
    assert home.verb("signal", waits, "--signal", "USR9").code == 2
    runs = home.submit("--", "bash", "-c", "trap 'echo asked; exit 0' USR1; echo ready; while :; do sleep 0.1; done")
    wait_until(lambda: "ready" in home.verb("log", runs).out, 60, "its trap")
    assert home.ok("signal", runs, waits, "--signal", "USR1", "--to", "first").strip() == "1 task signalled"
    assert home.wait(runs) == 0 and "asked" in home.ok("log", runs)
    refused = home.verb("signal", runs, "--signal", "USR1", "--to", "nobody")
    assert refused.code == 2 and "all, first or steps" in refused.err
