"""Calls of Slurm's commands, drawn by a number: what the real ones answer is the measure of ours."""

import random

# Neither what lasts nor numbers of elements, which are another for each.
LETTERS = "bBcCdDEfFgGhHIjJkKlmnNoOPqrRStTuUvVwWxXyYzZ"
SPANS = "cCDgGhjlqtTuU"
NAMES = """arraytaskid batchflag batchhost boardspernode burstbuffer clusterfeature command comment contiguous container
cores corespec cpus-per-task cpus-per-tres deadline delayboot dependency derivedec eligibletime exit_code feature groupid groupname
hetjobid licenses maxcpus maxnodes mcslabel mem-per-tres mincpus minmemory mintime mintmpdisk name network nice nodelist ntperboard
ntpercore ntpernode numcpus numnodes numtasks origin originraw oversubscribe partition preempttime prefer profile qos reasonlist
reboot reqnodes reqswitch requeue reservation resizetime restartcnt schednodes sct siblingsactive siblingsactiveraw siblingsviable
siblingsviableraw sockets sperboard starttime state statecompact stdin submittime system_comment threads timelimit tres-alloc
tres-bind tres-freq tres-per-job tres-per-node tres-per-task userid username wait4switch wckey workdir""".split()
FIELDS = """AdminComment AllocCPUS AllocNodes AllocTRES BlockID Constraints Container DerivedExitCode ExitCode GID Group JobName
Layout McsLabel NCPUS NNodes NodeList NTasks Partition QOS QOSRAW Reason ReqCPUS ReqMem ReqTRES Reservation State Submit Suspended
SystemComment Timelimit TimelimitRaw UID User WCKey WorkDir""".split()
STATES = "PD R CD F TO OOM NF PR DL S pending running completed failed timeout Completed SUSPENDED".split()
ARRAYS = {"waiting": range(1, 7), "steps": range(0, 10, 3), "one": [7]}


class Calls:
    def __init__(self, number, jobs):
        self.random, self.jobs = random.Random(number), list(jobs)

    def some(self, of, most):
        return self.random.sample(list(of), self.random.randint(1, most))

    def often(self, share):
        return self.random.random() < share

    def named(self, has_elements):
        names = []
        for name in self.some(self.jobs, 5):
            element = has_elements and name in ARRAYS and self.often(0.5)
            names.append(f"{{{name}}}" + (f"_{self.random.choice([*ARRAYS[name], 8])}" if element else ""))
        return ",".join(names)

    def squeue(self):
        words = ["squeue -h", "-t " + ",".join(self.some(STATES, 3)) if self.often(0.6) else "-t all"]
        words += ["-j " + self.named(True)] if self.often(0.6) else []
        words += ["-n " + ",".join(self.some(self.jobs, 4))] if self.often(0.25) else []
        words += [self.random.choice(["-u $(id -un)", "--me", "-u daemon", "-q normal"])] if self.often(0.3) else []
        words += ["-r"] if self.often(0.3) else []
        if self.often(0.5):
            signs = "|".join(
                "%" + (self.random.choice(["", "8", ".8"]) if sign in SPANS else "") + sign
                for sign in self.some(LETTERS, 6)
            )
            return " ".join([*words, f"-o '%i|{signs}'"])
        return " ".join(
            [*words, "-O '" + ",".join(f"{name}:120" for name in ["jobarrayid", *self.some(NAMES, 6)]) + "'"]
        )

    def sacct(self):
        words = ["sacct -n -X", self.random.choice(["-P", "-p", ""]), "-j " + self.named(False)]
        words += ["-s " + ",".join(self.some(STATES, 3))] if self.often(0.3) else []
        words += ["--name=" + ",".join(self.some(self.jobs, 4))] if self.often(0.2) else []
        words += ["--units=" + self.random.choice("KMG")] if self.often(0.2) else []
        return " ".join([*words, "-o jobid%40," + ",".join(field + "%40" for field in self.some(FIELDS, 6))])

    def question(self):
        return self.squeue() if self.often(0.6) else self.sacct()

    def target(self):
        name = self.random.choice(self.jobs)
        return f"{{{name}}}" + self.random.choice(["", "", "", "_1", "_2", "_9"])

    def targets(self):
        return self.random.choice([" ", ","]).join(self.target() for _ in range(self.random.randint(1, 3)))

    def change(self):
        kind = self.random.random()
        if kind < 0.5:
            return f"scontrol {self.random.choice(['hold', 'release'])} {self.targets()}"
        if kind < 0.7:
            what = self.random.choice(
                "TimeLimit=7 TimeLimit=0:90 TimeLimit=+5 TimeLimit=-3 JobName=X TimeLimit=1-0 "
                "MinMemoryNode=20 Bogus=1 TimeLimit=x Requeue=0".split()
            )
            return f"scontrol update JobId={{h}} {what}"
        words = ["scancel", f"{{{self.random.choice(self.jobs)}}}"] if self.often(0.5) else ["scancel"]
        words += ["-n " + self.random.choice([*self.jobs, "X"])] if self.often(0.4) or len(words) == 1 else []
        words += ["-t " + self.random.choice(["PD", "R", "PENDING", "running", "S"])] if self.often(0.4) else []
        words += [self.random.choice(["--me", "-u daemon"])] if self.often(0.3) else []
        return " ".join(words)


def questions(number, jobs, count=12):
    """Of squeue and sacct, with {name} for the number of a job."""
    calls = Calls(number, jobs)
    return [calls.question() for _ in range(count)]


def changes(number, jobs, count=6):
    """By hold, release, update and scancel."""
    calls = Calls(number, jobs)
    return [calls.change() for _ in range(count)]


OPTIONS = {
    "-J": ["a", "x%j", "-q", "a/b"],
    "-t": ["5", "0:30", "1:00", "2-1", "UNLIMITED", "0", "1:2:3", "61", "-1", "x", "0-0:1"],
    "--mem": ["100", "1G", "102400K", "2048M", "x"],
    "--mem-per-cpu": ["50", "100M", "1G"],
    "-c": ["1", "2", "0", "x"],
    "-n": ["1", "2", "0"],
    "-N": ["1", "1-1", "1-2"],
    "-o": ["out_%a", "o.%j_%a", "o.%A_%a", "%x.%u_%a", "/dev/null", "none"],
    "-e": ["e.%j_%a", "none"],
    "-i": ["input", "/dev/null", "none"],
    "-D": ["sub", "/tmp", "nowhere"],
    "-a": ["1-3", "0-2%1", "5", "1,3", "[1-2]", "0-6:3", "x", "3-1", "1-2:0", "0-1%0", "1-3,2", "00-02"],
    "--nice": ["5", "-3", "0"],
    "--requeue": [""],
    "--no-requeue": [""],
    "-d": [
        "singleton",
        "afterok:{0}",
        "afterany:{0}:{1}",
        "after:{0}+7",
        "afterok:{3}_1",
        "afterok:{0}?afterany:{1}",
        "x",
    ],
    "-b": ["2040-01-01", "2040-01-01T10:00", "tomorrow", "midnight", "x"],
    "--deadline": ["2040-06-01", "2041-01-01T10:00", "2020-01-01"],
    "--comment": ["why"],
    "--export": ["ALL", "NONE", "A=1,B=2", "ALL,A=1"],
    "--signal": ["USR1@30", "B:TERM@10", "INT", "x@5", "9"],
    "--open-mode": ["append", "truncate", "a", "x"],
    "--mail-type": ["END", "FAIL,BEGIN", "x", "NONE"],
    "--hint": ["nomultithread"],
    "-k": [""],
    "-s": [""],
    "-m": ["block"],
}
VARIABLES = {
    "SBATCH_JOB_NAME": "e",
    "SBATCH_TIMELIMIT": "6",
    "SBATCH_MEM_PER_NODE": "60",
    "SBATCH_OUTPUT": "v_%a",
    "SBATCH_ERROR": "w_%a",
    "SBATCH_REQUEUE": "1",
    "SBATCH_NO_REQUEUE": "1",
    "SBATCH_OPEN_MODE": "a",
    "SBATCH_SIGNAL": "USR2@9",
    "SBATCH_INPUT": "input",
    "SBATCH_EXPORT": "NONE",
}


def submits(number, count=8):
    """Words of a command line, lines of its script and variables, as (words, lines, variables)."""
    drawn, calls = random.Random(number), []
    for _ in range(count):
        said = ([], [])
        for option in drawn.sample(list(OPTIONS), drawn.randint(1, 5)):
            value = drawn.choice(OPTIONS[option])
            sign = "=" if option.startswith("--") and value else " "
            drawn.choice(said).append((option + sign + value).strip())
        chosen = drawn.sample(list(VARIABLES), drawn.choice([0, 0, 0, 1, 2]))
        words, lines = said
        calls.append((" ".join(words), "\n".join(lines), {name: VARIABLES[name] for name in chosen}))
    return calls
