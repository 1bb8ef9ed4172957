"""What sbatch's options come to: each by the real sbatch and by ours, both held, and `scontrol show job` says the same of both. An
option may stand in the script, in a variable and on the command line, and twice in each."""

import os
import re
import shlex
import subprocess

import pytest
from drawn import drawn
from drawn_calls import submits
from engine_at_home import EngineAtHome
from slurm_commands import Commands

SHOWN = """ArrayTaskId ArrayTaskThrottle JobName Nice Dependency Requeue TimeLimit TimeMin EligibleTime StartTime Deadline NumCPUs NumTasks
CPUs/Task MinMemoryNode MinMemoryCPU Comment Command WorkDir StdErr StdIn StdOut""".split()
# Where nothing is said, the bed gives an hour and 500 MB a cpu, and we no limit and the cpus' share.
USUAL = {("TimeLimit", "UNLIMITED", "01:00:00"), ("MinMemoryNode", "0", ""), ("MinMemoryCPU", "", "500M")}

# Words of the command line, lines of the script and variables; {0} to {2} are jobs that wait, {3} is an array of 0-5.
CASES = [
    ("-J a --job-name=b -n1 -n 2", "", {}),
    ("-J b", "-J a", {"SBATCH_JOB_NAME": "c"}),
    ("", "-J a", {"SBATCH_JOB_NAME": "c"}),
    ("-t 7", "-t 5", {"SBATCH_TIMELIMIT": "6"}),
    ("", "-t 5", {"SBATCH_TIMELIMIT": "6"}),
    ("", "-t 5\n--time=1-2", {}),
    ("-t UNLIMITED", "-t 5", {}),
    ("-t infinite", "-t 5", {}),
    ("-t -1", "-t 5", {}),
    ("--mem=100M", "--mem=200M", {}),
    ("--mem 1G", "", {"SBATCH_MEM_PER_NODE": "200"}),
    ("-c2", "-c 1 -n 1", {}),
    ("-c2", "-c1 --mem-per-cpu=200", {}),
    ("-n 2", "-c1 --mem-per-cpu=200", {}),
    ("--mem-per-cpu=50 -n 2", "-c 1", {}),
    ("", "-c 2", {"SBATCH_MEM_PER_CPU": "200"}),
    ("", "--mem=300", {"SBATCH_MEM_PER_CPU": "100"}),
    ("", "--mem-per-cpu=300", {"SBATCH_MEM_PER_NODE": "100"}),
    ("--mem=300", "", {"SBATCH_MEM_PER_CPU": "100"}),
    ("--mem-per-cpu=100", "--mem-per-cpu=200", {"SBATCH_MEM_PER_CPU": "300"}),
    ("-t 0:30", "-t 5", {}),
    ("-t 10", "--time-min=7", {}),
    ("--time-min=0:90 -t 10", "--time-min=7", {}),
    ("", "-t 0-0:1:1", {}),
    ("-t 0:0", "-t 5", {}),
    ("-J '' --comment='why not'", "-J a", {}),
    ("-A '' -q '' -C '' -x '' -L '' -d ''", "-d afterok:{0}", {}),
    ("--export=ALL,,A=1", "", {}),
    ("--nice", "", {}),
    ("--nice=5", "--nice=-7", {}),
    ("--requeue", "--no-requeue", {}),
    ("--no-requeue", "--requeue", {}),
    ("", "--no-requeue\n--requeue", {}),
    ("", "--requeue\n--no-requeue", {}),
    ("--requeue --no-requeue", "", {}),
    ("", "--requeue", {"SBATCH_NO_REQUEUE": "1"}),
    ("", "--no-requeue", {"SBATCH_REQUEUE": "1"}),
    ("-o out", "-o line -e err", {"SBATCH_OUTPUT": "variable"}),
    ("", "-o line", {"SBATCH_OUTPUT": "variable", "SBATCH_ERROR": "errors"}),
    ("-o %x.%u.%A -J name", "", {}),
    ("-o none -e err", "", {}),
    ("-i none", "-i input", {}),
    ("-i input -i /dev/null", "", {}),
    ("-D sub -o out", "", {}),
    ("-o {{id}} -J x{{y}}", "", {}),
    ("", "-D /tmp", {}),
    ("-a 1-3", "-a 7-9%1", {}),
    ("-a 1-3 -a 5,6", "", {}),
    ("", "-a 7-9%1", {"SBATCH_ARRAY_INX": "5-6"}),
    ("-a 1-10:3%2 -o x", "--open-mode=append", {}),
    ("-a 1-10%0 -o x", "--open-mode=append", {}),
    ("-a 5,3,1,1 -o x", "--open-mode=append", {}),
    ("-a 0-9%100 -o x", "--open-mode=append", {}),
    ("-a [1-3]%2 -o x_%a", "", {}),
    ("-a 0-9:3 -o w.%A_%a -e w.%a", "", {}),
    ("-a 7", "", {}),
    ("-d afterok:{0}", "", {}),
    ("-d afterok:{0}:{1}:{2}", "", {}),
    ("-d afterok:{0},afterany:{1}", "", {}),
    ("-d afterok:{0}?afterany:{1}", "", {}),
    ("-d after:{0},afternotok:{1}", "", {}),
    ("-d AfterOk:{0}", "", {}),
    ("-d singleton", "", {}),
    ("-d Singleton,afterok:{0}:{0}", "", {}),
    ("-d afterok:{3}_2", "", {}),
    ("-d afterok:{3}_0:{0},after:{1}+10", "", {}),
    ("-d afterany:{3}_*", "", {}),
    ("-d afterok:{3},afternotok:{3}_[1,3-4]", "", {}),
    ("-d aftercorr:{3} -a 0-5 -o none", "", {}),
    ("-d after:{0}+5", "", {}),
    ("-d after:{3}_[1-2]", "", {}),
    ("-d 0", "-d afterok:{0}", {}),
    ("-d afterok:{0} -d afterok:{1}", "", {}),
    ("-d afterok:{1}", "-d afterok:{0}", {}),
    ("-d afterany:{1}", "-d afterok:{0}", {}),
    ("-d singleton", "-d afterok:{0}", {}),
    ("--dependency=", "-d afterok:{0}", {}),
    ("", "-d afterok:{0}\n-d afterany:{1}", {}),
    ("--depend afterany:{1}", "-d afterok:{0} -J x", {}),
    ("-b 2040-01-31T12:00", "-b 2041-01-01", {}),
    ("-b 01/31/40", "", {}),
    ("-b Midnight", "", {}),
    ("-b 'tomorrow 10:00'", "", {}),
    ("-b '10:00 tomorrow'", "", {}),
    ("-b '2040-01-31 12:00'", "", {}),
    ("-b 01/31/40-10:00", "", {}),
    ("-b 2040-01-31 --deadline=2040-03-01 -t 5", "--deadline=2050-01-01", {}),
    ("--exclusive -s", "", {}),
    ("-s", "--exclusive", {}),
    ("--signal=usr1@60 -t 5", "", {}),
]


def fields_of(text):
    """Of `scontrol show job -o`."""
    line = text.splitlines()[0]
    keys = list(re.finditer(r"(?:(?<= )|^)([A-Z][A-Za-z/:]*)=", line))
    ends = [key.start() for key in keys[1:]] + [len(line)]
    return {key[1]: line[key.end() : end].strip() for key, end in zip(keys, ends)}


class Side:
    """One sbatch, and the jobs that others of it wait for."""

    def __init__(self, env, place):
        self.env, self.place = env, place
        self.jobs = [self.submit("-H", "-J", "before", "--wrap", "true") for _ in range(3)]
        self.jobs.append(self.submit("-H", "-J", "before", "-a", "0-5", "-o", "none", "--wrap", "true"))

    def call(self, *words, **env):
        return subprocess.run(
            words,
            cwd=self.place,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def submit(self, *words, **env):
        done = self.call("sbatch", "--parsable", *words, **env)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def shown(self, words, lines, variables):
        text = "".join(f"#SBATCH {line}\n" for line in lines.format(*self.jobs).splitlines())
        (self.place / "job.sh").write_text(f"#!/bin/sh\n{text}true\n")
        job = self.submit("-H", *shlex.split(words.format(*self.jobs)), "job.sh", **variables)
        fields = fields_of(self.call("scontrol", "show", "job", "-o", job).stdout)
        self.call("scancel", job)
        for name in ("Dependency", "StdErr", "StdOut", "StdIn"):
            folder, slash, last = fields[name].rpartition("/")
            for place, one in enumerate([*self.jobs, job]):
                last = re.sub(rf"(?<![\d_+]){one}(?!\d)", f"<{place}>", last)
            fields[name] = folder + slash + last
        fields["Dependency"] = sorted(re.split("[,?]", fields["Dependency"])), "?" in fields["Dependency"]
        # With a folder of its own 22.05 shows the script as it was said.
        fields["Command"] = fields["Command"].rpartition("/")[2]
        return {name: fields.get(name, "") for name in SHOWN}


@pytest.fixture(scope="module")
def both(slurm, tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    (place / "sub").mkdir()
    with EngineAtHome() as home:
        commands = Commands(home)
        known = {
            name: value for name, value in slurm.env.items() if name == "SLURM_CONF" or not name.startswith("SLURM_")
        }
        real = Side(known | {"PATH": os.environ["PATH"]}, place)
        yield Side(commands.env | {"HOME": known["HOME"]}, place), real
        real.call("scancel", "--me", "--state=PENDING")  # the next file has the same bed


def differences(ours, theirs):
    return {
        name: (ours[name], theirs[name])
        for name in ours
        if ours[name] != theirs[name] and (name, str(ours[name]), str(theirs[name])) not in USUAL
    }


@pytest.mark.parametrize("words, lines, variables", CASES)
def test_it_is_told_what_sbatch_is_told(both, words, lines, variables):
    ours, theirs = (side.shown(words, lines, variables) for side in both)
    if "-s" in words:  # where a job shares its node says nothing of ours
        ours.pop("MinMemoryNode"), theirs.pop("MinMemoryNode")
    if "aftercorr" in words:  # each element may be a job of its own by now
        ours.pop("ArrayTaskId"), theirs.pop("ArrayTaskId")
    assert not differences(ours, theirs)


@pytest.mark.parametrize("number", drawn(range(40), 3))
def test_what_is_drawn_is_taken_as_by_sbatch(both, number):
    for words, lines, variables in submits(number):
        told = []
        for side in both:
            try:
                told.append(side.shown(words, lines, variables))
            except AssertionError:  # it is refused
                told.append(None)
        ours, theirs = told
        # What is said again elsewhere need make no sense to us.
        if theirs:
            assert ours, ("refused", words, lines, variables)
            assert not differences(ours, theirs), (words, lines, variables)


def test_what_it_refuses_we_refuse(both):
    for words in (
        "--signal=BOGUS@60",
        "--begin=soon",
        "-b 2040-02-01 --deadline=2040-01-01 -t 5",
        "-c 2 -G 1 --cpus-per-gpu=2",
        "-d afterok:0",
        "--open-mode=x",
        "-a 5-1",
        "-t soon",
        "-t 10 --time-min=20",
        "-d afterok:",
        "--mem=1G --mem-per-cpu=200",
        "--mem-per-gpu=200 --mem=1G",
    ):
        for side in both:
            assert side.call("sbatch", "-H", *shlex.split(words), "--wrap", "true").returncode != 0, words


def test_memory_that_is_said_in_two_ways_is_refused(both):
    for lines in (["--mem=1G", "--mem-per-cpu=200"], ["--mem-per-cpu=200"]):
        for side in both:
            (side.place / "job.sh").write_text(
                "#!/bin/sh\n" + "".join(f"#SBATCH {line}\n" for line in lines) + "true\n"
            )
            words = ["--mem=1G"] if len(lines) == 1 else []
            done = side.call("sbatch", "-H", *words, "job.sh")
            assert done.returncode != 0 and "--mem, --mem-per-cpu" in done.stderr, (words, lines, done.stderr)
    variables = {"SBATCH_MEM_PER_CPU": "200", "SBATCH_MEM_PER_NODE": "300"}
    assert all(side.call("sbatch", "-H", "--wrap", "true", **variables).returncode != 0 for side in both)


def test_a_deadline_that_is_over_is_refused_in_the_same_words(both):
    told = [side.call("sbatch", "-H", "--deadline=2020-01-01", "--wrap", "true") for side in both]
    assert told[0].stderr == told[1].stderr and "time limit is invalid" in told[0].stderr
    assert told[0].returncode == told[1].returncode


def test_what_is_printed_is_said_in_lines_too(both):
    ours, theirs = both
    for line in ("--parsable", "--quiet", "--parsable --quiet"):
        (ours.place / "job.sh").write_text(f"#!/bin/sh\n#SBATCH -H {line}\ntrue\n")
        for words in ([], ["-Q"], ["--parsable"]):
            told = [re.sub(r"\d+", "N", side.call("sbatch", *words, "job.sh").stdout) for side in both]
            assert told[0] == told[1], (line, words)
