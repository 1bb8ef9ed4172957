"""Calls of a function through one executor; run by bench/python and bench/python_slurm in a Python that has what is compared.

    calls.py EXECUTOR ROUNDS SECONDS      prints one JSON object: {"first": s, "0": [calls/s, ...], "1": ..., "10": ...}

EXECUTOR: hpcbatch, pool (of two processes), dask (a cluster of two processes); on SLURM also dask-jobqueue, parsl and
submitit, each with one batch job of two slots, submitit with two batch jobs at a time. A round makes as many calls as take
about SECONDS.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

ALL_AT_ONCE = 20_000


def work(milliseconds, number):
    """Busy, as a real call is, for so long."""
    import time  # some hand a function on without what is around it

    until = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < until:
        pass
    return number


@contextlib.contextmanager
def hpcbatch_calls():
    import hpcbatch

    with hpcbatch.Executor(cpus=1, memory="200M") as executor:
        yield lambda ms, count: list(executor.map(work, [ms] * count, range(count)))


@contextlib.contextmanager
def pool_calls():
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        yield lambda ms, count: list(executor.map(work, [ms] * count, range(count)))


@contextlib.contextmanager
def of_dask(cluster):
    from dask.distributed import Client

    with cluster, Client(cluster) as client:
        yield lambda ms, count: client.gather(client.map(work, [ms] * count, range(count), pure=False))


def dask_calls():
    from dask.distributed import LocalCluster

    return of_dask(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))


def jobqueue_calls():
    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(
        cores=2,
        processes=2,
        memory="1GB",
        queue="cpu",
        walltime="00:30:00",
        interface="lo",
        log_directory=os.environ["HPCBATCH_BENCH_SHARED"],
        scheduler_options={"dashboard_address": None},
    )
    cluster.scale(jobs=1)
    return of_dask(cluster)


@contextlib.contextmanager
def parsl_calls():
    import parsl
    from parsl.executors import HighThroughputExecutor
    from parsl.launchers import SimpleLauncher
    from parsl.providers import SlurmProvider

    provider = SlurmProvider(
        partition="cpu",
        nodes_per_block=1,
        init_blocks=1,
        min_blocks=1,
        max_blocks=1,
        walltime="00:30:00",
        cores_per_node=2,
        mem_per_node=1,
        exclusive=False,
        launcher=SimpleLauncher(),
        worker_init=f"export PATH={pathlib.Path(sys.executable).parent}:$PATH PYTHONPATH={pathlib.Path(__file__).parent}",
    )
    with tempfile.TemporaryDirectory() as folder:
        executor = HighThroughputExecutor(
            address="127.0.0.1", max_workers_per_node=2, cores_per_worker=1, provider=provider
        )
        with parsl.load(parsl.Config(executors=[executor], run_dir=folder, strategy="none", usage_tracking=0)):
            app = parsl.python_app(work)
            yield lambda ms, count: [future.result() for future in [app(ms, number) for number in range(count)]]


@contextlib.contextmanager
def submitit_calls():
    import submitit

    with tempfile.TemporaryDirectory(dir=os.environ.get("HPCBATCH_BENCH_SHARED")) as folder:
        executor = submitit.AutoExecutor(folder=folder, cluster="slurm")
        executor.update_parameters(
            timeout_min=30, slurm_partition="cpu", cpus_per_task=1, slurm_mem="300M", slurm_array_parallelism=2
        )
        yield lambda ms, count: [job.result() for job in executor.map_array(work, [ms] * count, range(count))]


def rate(calls, milliseconds, count):
    began = time.monotonic()
    assert calls(milliseconds, count) == list(range(count))
    return count / (time.monotonic() - began)


def main():
    name, rounds, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    executors = {
        "hpcbatch": hpcbatch_calls,
        "pool": pool_calls,
        "dask": dask_calls,
        "dask-jobqueue": jobqueue_calls,
        "parsl": parsl_calls,
        "submitit": submitit_calls,
    }
    began = time.monotonic()
    with executors[name]() as calls:
        assert calls(0, 1) == [0]
        found = {"first": time.monotonic() - began}
        # How many fit is tried out first: of one batch job each, few.
        fits = 10 if name == "submitit" else 400
        for milliseconds in (0, 1, 10):
            about = rate(calls, milliseconds, fits)
            count = int(min(max(about * seconds, fits), ALL_AT_ONCE))
            found[str(milliseconds)] = [rate(calls, milliseconds, count) for _ in range(rounds)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
