"""The same jobs by SLURM's own sbatch and by ours, and what squeue, sacct, scontrol and scancel say of them."""

import re
import subprocess

import pytest
from drawn import drawn
from drawn_calls import questions
from engine_at_home import EngineAtHome, wait_until
from slurm_commands import Commands
from slurm_site import Slurm

# Submitted in this order; {name} is the number of an earlier one.
JOBS = {
    "good": "-n1 -t5 --mem=30M -o good.%j.out ok.sh",
    "bad": "-n1 -t 1:30:00 --mem=100M -o bad.out -e bad.err -i ok.sh ok.sh 3",
    "killed": "-c1 -t2 -o k.out --mem=50M --wrap 'kill -9 $$'",
    "array": "-c1 --mem=10M --array=1-2 -t10 -o a.%A_%a.out --wrap 'exit $((SLURM_ARRAY_TASK_ID-1))'",
    "held": "-H -c1 -t2-3 --mem=20M --wrap true",
    "waiting": "-H -c1 --array=1-6%2 --mem=10M -t 10 -o w.%A_%a.out --wrap true",
    "after": "-d afterok:{held} -c1 -t10 --mem=10M --nice=100 --wrap true",
    "cancelled": "-H -c1 -t10 --mem=10M --wrap true",
    "segv": "-c1 -t2 --mem=50M -o s.out --wrap 'kill -11 $$'",
    "one": "-H -c1 --array=7 --mem=10M -t 10 --wrap true",
    "steps": "-H -c1 --array=0-9:3 --mem=10M -t 10 --wrap true",
    "afterelement": "-d afterok:{waiting}_2,afterany:{steps}_3 -c1 -t10 --mem=10M --wrap true",
    "afterarray": "-d afterany:{steps} -c1 -t10 --mem=10M --wrap true",
    "later": "-d after:{held}+5 -c1 -t10 --mem=10M --wrap true",
    "begin": "-b 2040-01-01T10:00 -c1 -t10 --mem=10M --wrap true",
    "deadline": "-H --deadline=2040-01-01T10:00 -c1 -t10 --mem=10M --wrap true",
    "percpu": "-H -n2 --mem-per-cpu=50 -t 0:30 --wrap true",
}
ENDED = ("good", "bad", "killed", "array", "segv")
LETTERS = "bcCdDEfFgGhHIjJkKlmoOqrtTvwWXyzYZ"
TITLES = "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRStTuUvVwWxXyYzZ"
NAMES = """accruetime arrayjobid arraytaskid batchflag boardspernode burstbuffer clusterfeature contiguous container corespec
cpus-per-task cpus-per-tres deadline delayboot dependency derivedec eligibletime feature gres hetjobid jobarrayid lastschedeval
licenses maxcpus maxnodes mcslabel mem-per-tres mincpus minmemory mintime mintmpdisk name nice ntpercore numcpus numnodes
numtasks origin pendingtime prefer profile reasonlist reboot requeue resizetime restartcnt schednodes sct sockets starttime state
statecompact stderr stdin stdout submittime threads timeleft timelimit timeused tres-alloc tres-bind tres-per-job tres-per-node
tres-per-task userid username wait4switch wckey workdir""".split()
FIELDS = """JobID JobName AllocNodes Constraints DerivedExitCode ExitCode NNodes NTasks ReqCPUS ReqMem ReqNodes
ReqTRES Reservation State Timelimit TimelimitRaw WCKey Suspended User UID Group GID""".split()

# What each says of {jobs}, and of none that is there.
ASKED = {
    "titles by letters": "squeue -j {good} -t all -o "
    + "'"
    + "|".join("%" + letter for letter in TITLES)
    + "' | head -1",
    "titles by names": "squeue -h -j {held} -O "
    + "'"
    + ",".join(f"{name}:|" for name in NAMES if "time" not in name)
    + "'",
    "values of what waits": "squeue -h -j {held},{waiting},{after} -S i -o "
    + "'"
    + "|".join("%" + one for one in LETTERS)
    + "'",
    "values of what ended": "squeue -h -t all -j {good},{bad},{array} -S i -o "
    + "'"
    + "|".join("%" + one for one in LETTERS)
    + "'",
    "the usual table": "squeue -j {held}",
    "the long table": "squeue -h -l -j {after}",
    "elements apart": "squeue -h -r -j {waiting} -S i -o '%i %t %r'",
    "one element": "squeue -h -j {waiting}_5 -o '%i %t'",
    "states in any spelling": "squeue -h -t cd,Failed,pd -j {good},{bad},{held} -S i -o '%i %t'",
    "when they may start": "squeue --start -j {held}",
    "no such job": "squeue -j 2000009999",
    "several that are not there": "squeue -j 2000009999,2000009998",
    "no number": "squeue -j x",
    "no such partition": "squeue -p nowhere -o %i",
    "a state in words": "squeue -h -t SUSPENDED -o %i",
    "no element": "scontrol show job {array}_77",
    "no job to show": "scontrol show job 2000009999",
    "no number to show": "scontrol show job x",
    "more than one to show": "scontrol show job {good} {bad}",
    "nothing to show": "scontrol show",
    "nothing to hold": "scontrol hold",
    "none to hold": "scontrol hold 2000009999",
    "an ended one to hold": "scontrol hold {good}",
    "none to requeue": "scontrol requeue 2000009999",
    "one to requeue that waits": "scontrol requeue {held}",
    "hosts": "scontrol show hostlist n1,n2,n3,m01,m03",
    "hosts in their order": "scontrol show hostlistsorted n3,n1",
    "names of hosts": "scontrol show hostnames x[1-2],m07",
    "accounts of all": "sacct -n -P -X -j {good},{bad},{killed},{array},{held},{waiting},{cancelled} -o "
    + ",".join(FIELDS),
    "accounts of steps": "sacct -n -P -j {good},{bad},{killed},{array} -o JobID,State,ExitCode,NTasks,JobName,Partition,ReqMem",
    "accounts of one step": "sacct -n -P -j {bad}.batch -o State,ExitCode",
    "accounts in a unit": "sacct -n -P -X --units=K -j {bad} -o ReqMem,AllocTRES",
    "accounts cut to a width": "sacct -X -j {bad} -o jobname%-5,state%3,exitcode%12",
    "accounts with their own sign": "sacct -X -p --delimiter=';' -j {bad} -o jobname,state",
    "ended ones now": "sacct -n -X -s F -o jobid",
    "ended ones since": "sacct -n -X -S now-1hour -E now -s F --name=bad,good -o jobname",
    "no accounts": "sacct -n -j 2000009999",
    "accounts of no number": "sacct -j x",
    "no field": "sacct -o nonsense",
    "no time": "sacct -S nonsense",
    "nobody's accounts": "sacct -u nosuchuser",
    "nothing to cancel": "scancel",
    "an empty word to cancel": "scancel ''",
    "a word to cancel": "scancel x",
    "nobody's to cancel": "scancel -u nosuchuser",
    "an empty name to cancel": "scancel -u ''",
    "names that no job has": "scancel -n nowhere",
    "what does not fit": "scancel {after} -n other",
    "an option of none": "squeue --nosuch",
    "an option of none of sbatch": "sbatch --nosuch",
}
# What of `scontrol show job` is another for each, by nature.
APART = """JobId ArrayJobId Priority Account Partition AllocNode:Sid NodeList BatchHost SubmitTime EligibleTime AccrueTime StartTime
EndTime LastSchedEval Scheduler RunTime""".split()


def script(name, words):
    return f"echo {name}=$(sbatch --parsable -J {name} {words})\n"


def submitted(run, folder):
    """The numbers by their names."""
    (folder / "ok.sh").write_text("#!/bin/bash\nexit ${1:-0}\n")
    numbers = {}
    for name, words in JOBS.items():
        out = run(script(name, words.format(**numbers))).out
        numbers[name] = out.strip().split("=")[1]
    run(f"scancel {numbers['cancelled']}")
    return numbers


class Said:
    """What each command printed, numbers, folders and hosts apart."""

    def __init__(self, run, numbers, folder, node):
        self.run, self.numbers, self.folder, self.node = run, numbers, folder, node

    def plain(self, text):
        text = text.replace(str(self.folder), "FOLDER")
        for name, number in sorted(self.numbers.items(), key=lambda pair: -len(pair[1])):
            text = re.sub(rf" *{number}", f"<{name}>", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        text = re.sub(rf"\b{self.node}\b", "NODE", text)
        return re.sub(r" *\b(cpu|hpcbatch)\b(?!=) *", " PARTITION ", text)

    def of(self, command):
        done = self.run(command.format(**self.numbers))
        lines = [line for line in self.plain(done.out).splitlines() if ".extern" not in line]
        if command.startswith("sacct -n"):
            lines.sort()  # elements have other numbers, and so another place
        return lines, self.plain(done.err).splitlines(), done.code

    def details(self, name):
        text = self.run(f"scontrol -o show job {self.numbers[name]}").out
        jobs = [re.findall(r"(\S+?)=(.*?)(?= \S+=|$)", line.strip()) for line in text.splitlines() if line.strip()]
        return sorted(jobs, key=lambda pairs: dict(pairs).get("ArrayTaskId"))


def runner(commands_env, folder):
    def run(line):
        done = subprocess.run(
            ["/bin/bash", "-c", line],
            cwd=folder,
            env=commands_env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return type("Result", (), {"out": done.stdout, "err": done.stderr, "code": done.returncode})

    return run


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    with Slurm("--set", "MinJobAge=3600", "--set", "FirstJobId=40000001") as slurm:
        folder = tmp_path_factory.mktemp("theirs")
        run = runner(slurm.env, folder)
        numbers = submitted(run, folder)

        def are_over():
            lines = run(f"sacct -n -P -X -o State -j {','.join(numbers[name] for name in ENDED)}").out.split()
            cancelled = run(f"sacct -n -P -X -o State -j {numbers['cancelled']}").out
            waiting = run(f"sacct -n -P -X -j {numbers['held']},{numbers['waiting']} -o State").out.split()
            states = {"COMPLETED", "FAILED"}
            return len(lines) == 6 and set(lines) <= states and "CANCELLED" in cancelled and len(waiting) == 2

        wait_until(are_over, 120, "the end of those that end")
        yield Said(run, numbers, folder, "n1")


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    with EngineAtHome() as home:
        commands = Commands(home)
        folder = tmp_path_factory.mktemp("ours")
        run = runner(commands.env | {"PATH": f"{commands.folder}:/usr/bin:/bin"}, folder)
        numbers = submitted(run, folder)
        commands.wait(*(numbers[name] for name in ENDED))
        yield Said(run, numbers, folder, run("hostname -s").out.strip())


@pytest.mark.parametrize("what", ASKED)
def test_a_command_says_what_slurms_own_says(what, theirs, ours):
    assert ours.of(ASKED[what]) == theirs.of(ASKED[what])


@pytest.mark.parametrize("number", drawn(range(40), 3))
def test_what_is_drawn_is_answered_as_by_slurms_own(number, theirs, ours):
    # Why it waited when it was cancelled is not kept.
    for question in questions(number, [name for name in JOBS if name not in ("array", "cancelled")]):
        told = []
        for side in (ours, theirs):
            lines, errors, code = side.of(question)
            lines = [re.sub(r"\bn\d\b", "NODE", re.sub(" +", " ", line)) for line in lines if "<cancelled>" not in line]
            told.append((sorted(lines), errors, code))
        assert told[0] == told[1], question


@pytest.mark.parametrize("name", [name for name in JOBS if name not in ("killed", "cancelled")])
def test_a_job_in_full_has_all_that_slurms_own_has(name, theirs, ours):
    mine, other = ours.details(name), theirs.details(name)
    assert [[key for key, _ in job] for job in mine] == [[key for key, _ in job] for job in other]
    for one, two in zip(mine, other, strict=True):
        said = {key: ours.plain(value) for key, value in one if key not in APART}
        assert said == {key: theirs.plain(value) for key, value in two if key not in APART}


def test_the_fields_of_accounts_are_known_and_as_wide(theirs, ours):
    names = theirs.run("sacct -e").out.split()
    assert set(names) <= set(ours.run("sacct -e").out.split())
    asked = f"sacct -X -j {{good}} -o {','.join(names)}"
    assert ours.of(asked)[0][:2] == theirs.of(asked)[0][:2]


def test_signals_and_questions_of_scancel(ours):
    held = ours.numbers["held"]
    for signal in ("USR1", "SOON"):
        assert ours.run(f"scancel -s {signal} {held}").code != 0
    said = ours.run(f"echo n | scancel -i {held}").out
    assert said.startswith(f"Cancel job_id={held} name=held partition=hpcbatch [y/n]? "), said
    assert ours.run(f"squeue -h -j {held} -o %t").out == "PD\n"
    ours.run("scancel -w nowhere -n held")
    assert ours.run(f"squeue -h -j {held} -o %t").out == "PD\n", "what is on no such node stays"
    assert ours.run("PATH=$(dirname $(command -v sbatch)) sacctmgr -n -s list user me format=account%256").code == 0
