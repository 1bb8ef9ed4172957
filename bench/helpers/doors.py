"""Many small jobs through one program that hands them to Slurm; run by bench/doors in a Python that has these programs.

    doors.py CLIENT COUNT      ends when all have ended well; partition cpu, one cpu and 200 MB each, files below the folder it runs in
"""

import os
import pathlib
import shlex
import subprocess
import sys
import time


def nothing(number):
    return number


def loop(count):
    """A script of one's own: a job for each, and a look at the queue each second until it is empty."""
    submit = "sbatch -p cpu -c 1 --mem=200M -o /dev/null -J loop --wrap true"
    script = f"for i in $(seq {count}); do {submit} >/dev/null || exit 1; done; while squeue -h --me -n loop | grep -q .; do sleep 1; done"
    subprocess.run(["bash", "-c", script], check=True)


def submitit(count):
    import submitit as library

    executor = library.SlurmExecutor(folder="logs")
    executor.update_parameters(
        time=10, mem="200MB", cpus_per_task=1, partition="cpu", array_parallelism=count, stderr_to_stdout=True
    )
    jobs = executor.map_array(nothing, range(count))
    assert [job.result() for job in jobs] == list(range(count))


def dask(count):
    from dask.distributed import Client
    from dask_jobqueue import SLURMCluster

    options = {
        "queue": "cpu",
        "walltime": "00:20:00",
        "interface": "lo",
        "scheduler_options": {"dashboard_address": None},
    }
    with SLURMCluster(cores=1, memory="400MB", **options) as cluster, Client(cluster) as client:
        cluster.scale(jobs=4)
        assert client.gather(client.map(nothing, range(count), pure=False)) == list(range(count))


def parsl(count):
    import parsl as library
    from parsl.executors import HighThroughputExecutor
    from parsl.launchers import SimpleLauncher
    from parsl.providers import SlurmProvider

    words = {"init_blocks": 4, "min_blocks": 4, "max_blocks": 4, "cores_per_node": 1, "mem_per_node": 1}
    here = f"export PATH={pathlib.Path(sys.executable).parent}:$PATH PYTHONPATH={pathlib.Path(__file__).parent}"
    provider = SlurmProvider(
        "cpu", walltime="00:20:00", exclusive=False, launcher=SimpleLauncher(), worker_init=here, **words
    )
    executor = HighThroughputExecutor(
        address="127.0.0.1", cores_per_worker=1, max_workers_per_node=1, provider=provider
    )
    with library.load(library.Config(executors=[executor], run_dir="runs", strategy="none", usage_tracking=0)):
        app = library.python_app(nothing)
        assert [future.result() for future in [app(number) for number in range(count)]] == list(range(count))


def psij(count):
    import psij as library

    executor = library.JobExecutor.get_instance("slurm")
    executor.config.queue_polling_interval = executor.config.initial_queue_polling_delay = 1
    jobs = []
    for _ in range(count):
        spec = library.JobSpec(executable="/bin/true", directory=pathlib.Path.cwd(), name="of-psij")
        spec.resources = library.ResourceSpecV1(process_count=1, memory=200 << 20)
        spec.attributes = library.JobAttributes(queue_name="cpu")
        jobs.append(library.Job(spec))
        executor.submit(jobs[-1])
    assert all(job.wait().state == library.JobState.COMPLETED for job in jobs)


def _square(job, number):
    return number


def _squares(job, count):
    return [job.addChildJobFn(_square, number, memory="200M", cores=1, disk="1M").rv() for number in range(count)]


def toil(count):
    from toil.common import Toil
    from toil.job import Job

    chosen = Job.Runner.getDefaultOptions(os.path.abspath("store"))
    chosen.batchSystem, chosen.statePollingWait, chosen.clean = "slurm", 1, "always"
    chosen.logLevel, chosen.disableProgress = "ERROR", True
    chosen.maxMemory = chosen.maxCores = chosen.maxDisk = 10**15
    with Toil(chosen) as leader:
        found = leader.start(Job.wrapJobFn(_squares, count, memory="200M", cores=1, disk="1M"))
    assert found == list(range(count))


SNAKEFILE = """
rule all:
    input: expand("out/{{i}}", i=range({count}))
rule one:
    output: "out/{{i}}"
    shell: "echo {{wildcards.i}} > {{output}}"
"""


def snakemake(count):
    pathlib.Path("Snakefile").write_text(SNAKEFILE.format(count=count))
    words = "--executor slurm --slurm-no-account --jobs 100000 --quiet all --slurm-init-seconds-before-status-checks 1"
    needs = "--default-resources slurm_partition=cpu mem_mb=200 runtime=10 --max-jobs-per-second 1000"
    command = [sys.executable, "-m", "snakemake", *shlex.split(f"{words} {needs}")]
    subprocess.run(command, check=True)
    assert len(os.listdir("out")) == count


def main():
    name, count = sys.argv[1], int(sys.argv[2])
    began = time.monotonic()
    globals()[name](count)
    print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    main()
