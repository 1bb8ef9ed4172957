"""Calls of a function through one executor; run by bench/python in a Python that has dask.

    calls.py EXECUTOR ROUNDS [WORD...]      prints one JSON object: {"first": s, "0": [calls/s, ...], "1": ..., "10": ...}

EXECUTOR: hpcbatch, pool (of two processes) or dask (a cluster of two processes).
"""

import concurrent.futures
import contextlib
import json
import sys
import time

# Of so many milliseconds, so many calls: a few seconds each on two cores.
COUNTS = {0: 10_000, 1: 4_000, 10: 600}


def work(milliseconds, number):
    """Busy, as a real call is, for so long."""
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
def dask_calls():
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield lambda ms, count: client.gather(client.map(work, [ms] * count, range(count), pure=False))


def main():
    name, rounds = sys.argv[1], int(sys.argv[2])
    began = time.monotonic()
    with {"hpcbatch": hpcbatch_calls, "pool": pool_calls, "dask": dask_calls}[name]() as calls:
        assert calls(0, 1) == [0]
        found = {"first": time.monotonic() - began}
        calls(0, 200)
        for milliseconds, count in COUNTS.items():
            rates = []
            for _ in range(rounds):
                began = time.monotonic()
                assert calls(milliseconds, count) == list(range(count))
                rates.append(count / (time.monotonic() - began))
            found[str(milliseconds)] = rates
    print(json.dumps(found))


if __name__ == "__main__":
    main()
