"""Dask's workers in pilots on a real SLURM: scaled, adapted, killed, cut off; the results are right, the limits held."""

from python_users import python, script  # noqa: F401 (python is a fixture)
from slurm_site import SlurmSite

FOUR = {"name": "four", "partition": "cpu", "cpus": 4, "memory": "4G", "walltime": "3m"}
PROGRAM = """
    import os, signal, subprocess, threading, time, dask
    from dask.distributed import Client
    from hpcbatch.dask import Cluster as SLURMCluster
    dask.config.set({"distributed.deploy.lost-worker-timeout": "2s"})

    def slow(number, seconds=0.25):
        time.sleep(seconds)
        return number * number

    def workers(client):
        return client.scheduler_info(n_workers=-1)["workers"]

    def until_done(futures, count):
        while sum(future.done() for future in futures) < count:
            time.sleep(0.05)

    def cut_off():
        # As an administrator would, or a wall time: no word to the pilot's tasks.
        running = subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i"], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["scancel", running[0]], check=True)

    if __name__ == "__main__":
        # A worker's half minute is over in the middle of it all, more than once.
        cluster = SLURMCluster(cores=1, memory="500MB", walltime="00:01:00", queue="cpu", dashboard_address=None, host="127.0.0.1")
        with cluster, Client(cluster) as client:
            cluster.scale(4)
            client.wait_for_workers(4, timeout=200)
            chain = client.map(slow, range(300))
            total = client.submit(sum, chain)
            until_done(chain, 20)
            os.kill(list(client.run(os.getpid).values())[0], signal.SIGKILL)
            until_done(chain, 60)
            cut_off()
            print(total.result(timeout=300))
            del chain, total
            cluster.adapt(minimum=0, maximum=8, interval="500ms", wait_count=2, target_duration="5s")
            again = client.map(slow, range(1000, 1200))
            # Work enough until the further workers are there, however slowly they start.
            most, more = 0, list(again)
            while not all(future.done() for future in more):
                most = max(most, len(workers(client)))
                if most <= 4 and len(more) < 4000 and sum(not future.done() for future in more) < 60:
                    more += client.map(slow, range(1000 + len(more), 1100 + len(more)))
                time.sleep(0.2)
            print(sum(client.gather(again)), 4 < most <= 8)
            del again, more
            deadline = time.monotonic() + 120
            while workers(client) and time.monotonic() < deadline:
                time.sleep(0.2)
            print(len(workers(client)))
"""


def test_results_are_right_whatever_happens_to_workers(slurm, python):
    with SlurmSite(slurm, FOUR, max_queued=2, max_running=2, idle_after="5s") as site:
        said = script(site, python, PROGRAM, timeout=600)
        squares = sum(n * n for n in range(300))
        assert said.splitlines() == [str(squares), f"{sum(n * n for n in range(1000, 1200))} True", "0"], said
        assert site.must_be_single() <= 6, site.batch_jobs()
