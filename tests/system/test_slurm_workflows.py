"""Workflow programs that hand their jobs to Slurm, with nothing changed but PATH."""

import os
import subprocess
import textwrap

from engine_at_home import wait_until
from programs_of_clients import python  # noqa: F401 (a fixture)
from python_users import script
from slurm_commands import Commands


def commands_with(home, python):
    commands = Commands(home)
    # What starts workers looks for its own programs.
    home.env["PATH"] += f":{os.path.dirname(python)}"
    return commands


TOIL = """
    import os, sys
    from toil.common import Toil
    from toil.exceptions import FailedJobsException
    from toil.job import Job

    def square(job, number):
        return number * number, os.environ["SLURM_JOB_ID"]

    def flaky(job, mark):
        if not os.path.exists(mark):
            open(mark, "w").close()
            raise RuntimeError("not at once")
        return "at the second try"

    def hungry(job):
        kept = bytearray(1_000_000_000)
        for at in range(0, len(kept), 4096):
            kept[at] = 1
        import time
        time.sleep(600)

    def killed(job):
        import signal
        os.kill(os.getpid(), signal.SIGKILL)

    def gather(job, mark):
        found = [job.addChildJobFn(square, number, memory="300M", cores=1, disk="10M").rv() for number in range(5)]
        return found + [job.addChildJobFn(flaky, mark, memory="300M", cores=1, disk="10M").rv()]

    def options(store):
        chosen = Job.Runner.getDefaultOptions(store)
        chosen.batchSystem = "slurm"
        chosen.retryCount = 1
        chosen.defaultMemory = 300 << 20  # what ran out of memory gets at least that
        chosen.statePollingWait = 1
        chosen.clean = "always"
        chosen.logLevel = "INFO"
        chosen.disableProgress = True
        chosen.maxMemory = chosen.maxCores = chosen.maxDisk = 10**15
        return chosen

    def run(store, function, *words):
        with Toil(options(store)) as toil:
            return toil.start(Job.wrapJobFn(function, *words, memory="300M", cores=1, disk="10M"))

    if __name__ == "__main__":
        here = os.getcwd()
        *squares, flaked = run(here + "/store", gather, here + "/mark")
        print([square for square, _ in squares], len({job for _, job in squares}) > 0, flaked)
        for function in (hungry, killed):
            try:
                run(here + "/store-" + function.__name__, function)
                print("no failure")
            except FailedJobsException as error:
                print(function.__name__, error.numberOfFailedJobs)
"""


def test_toil(home, python):
    commands_with(home, python)
    said = script(home, python, TOIL, 400)
    lines = said.splitlines()
    assert lines == ["[0, 1, 4, 9, 16] True at the second try", "hungry 1", "killed 1"], said


def test_psij(home, python):
    commands_with(home, python)
    said = script(
        home,
        python,
        """
        import pathlib, psij
        from datetime import timedelta

        executor = psij.JobExecutor.get_instance("slurm")
        executor.config.queue_polling_interval = executor.config.initial_queue_polling_delay = 1

        def job(text, seconds=600):
            spec = psij.JobSpec(executable="/bin/sh", arguments=["-c", text], directory=pathlib.Path.cwd(), name="of-psij")
            spec.resources = psij.ResourceSpecV1(process_count=1)
            spec.stdout_path = pathlib.Path("out-of-" + text.split()[0])
            spec.attributes = psij.JobAttributes(duration=timedelta(seconds=seconds))
            one = psij.Job(spec)
            executor.submit(one)
            return one

        good, bad, slow = job("echo hi"), job("exit 3"), job("sleep 1000")
        slow.wait(target_states=[psij.JobState.ACTIVE])
        slow.cancel()
        for one in (good, bad, slow):
            status = one.wait()
            print(status.state.name, status.exit_code)
        print(open("out-of-echo").read().strip())
        """,
    )
    assert said.splitlines() == ["COMPLETED 0", "FAILED 3", "CANCELED None", "hi"], said


def test_snakemake(home, python):
    commands = commands_with(home, python)
    where = home.directory
    (where / "Snakefile").write_text(
        'rule all:\n    input: expand("out/{i}", i=range(4))\n'
        'rule one:\n    output: "out/{i}"\n    resources: mem_mb=200, runtime=5\n    shell: "echo $SLURM_JOB_ID > {output}"\n'
        'rule fails:\n    output: "never"\n    shell: "exit 3"\n'
        'rule hungry:\n    output: "full"\n    resources: mem_mb=100\n'
        "    shell: \"/usr/bin/python3 -c 'kept = bytearray(400_000_000); kept[::4096] = bytes([1]) * len(kept[::4096]); input()'\"\n"
    )
    flags = "--executor slurm --slurm-no-account --jobs 8 --latency-wait 5 --slurm-init-seconds-before-status-checks 1"
    flags += " --default-resources slurm_partition=hpcbatch mem_mb=200"
    snakemake = f"{python} -m snakemake"
    done = commands.call("sh", "-c", f"{snakemake} {flags}")
    assert done.code == 0, done.out + done.err
    jobs = {(where / f"out/{i}").read_text().strip() for i in range(4)}
    assert len(jobs) == 4 and all(int(job) > 2_000_000_000 for job in jobs)
    for target, state in (("never", "FAILED"), ("full", "OUT_OF_MEMORY")):
        failed = commands.call("sh", "-c", f"{snakemake} {target} {flags}")
        assert failed.code == 1 and f"SLURM status is: '{state}'" in failed.err, failed.err


SQUARES = """
    import submitit, time

    def square(number):
        time.sleep(0.5)
        return number * number

    if __name__ == "__main__":
        executor = submitit.SlurmExecutor(folder="logs")
        executor.update_parameters(time=10, mem="200MB", cpus_per_task=1, array_parallelism=10)
        print([job.result() for job in executor.map_array(square, range(10))])
"""
HELLOS = """
    import pathlib, psij

    executor = psij.JobExecutor.get_instance("slurm")
    executor.config.queue_polling_interval = executor.config.initial_queue_polling_delay = 1
    jobs = [psij.Job(psij.JobSpec(executable="/bin/sleep", arguments=["1"])) for _ in range(10)]
    for job in jobs:
        executor.submit(job)
    print({job.wait().state.name for job in jobs})
"""


def test_they_go_on_when_the_engine_is_killed(home, python):
    commands = commands_with(home, python)
    snakefile = 'rule all:\n    input: expand("out/{i}", i=range(10))\nrule one:\n    output: "out/{i}"\n    shell: "sleep 1; touch {output}"\n'
    (home.directory / "Snakefile").write_text(snakefile)
    for name, text in {"toil": TOIL, "submitit": SQUARES, "psij": HELLOS}.items():
        text = textwrap.dedent(text).replace("for function in (hungry, killed)", "for function in ()")
        (home.directory / f"of_{name}.py").write_text(text)
    flags = "--executor slurm --slurm-no-account --jobs 20 --slurm-init-seconds-before-status-checks 1"
    needs = "--default-resources slurm_partition=hpcbatch mem_mb=400"
    calls = {name: [python, f"of_{name}.py"] for name in ("toil", "submitit", "psij")}
    calls["snakemake"] = [python, "-m", "snakemake", *flags.split(), *needs.split()]
    started = {
        name: subprocess.Popen(
            words,
            cwd=home.directory,
            env=os.environ | commands.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, words in calls.items()
    }
    for count in (5, 20):
        done = lambda: sum(task["state"] == "done" for task in home.json("list", "--tasks", "--all"))  # noqa: E731
        wait_until(lambda: done() >= count, 200, f"{count} tasks")
        home.kill_engine()
    said = {name: process.communicate(timeout=400)[0] for name, process in started.items()}
    for name, process in started.items():
        assert process.returncode == 0, f"{name}:\n" + said[name]
    assert said["submitit"].splitlines()[-1] == "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]"
    assert said["psij"].splitlines()[-1] == "{'COMPLETED'}" and "at the second try" in said["toil"]
    assert len(os.listdir(home.directory / "out")) == 10
