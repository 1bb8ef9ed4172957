"""Parsl and submitit on a real SLURM: few batch jobs, and right results where one of those is cut off in the middle."""

from python_users import python, script  # noqa: F401 (python is a fixture)
from slurm_site import SlurmSite

TWO = {"name": "two", "partition": "cpu", "cpus": 2, "memory": "2G", "walltime": "5m"}
CUT_OFF = """
        def cut_off():
            # As an administrator would, or a wall time.
            while not (running := subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i"], capture_output=True, text=True, check=True).stdout.split()):
                time.sleep(0.2)
            subprocess.run(["scancel", running[0]], check=True)
"""


def test_parsl_goes_on_where_a_batch_job_is_cut_off(slurm, python):
    with SlurmSite(slurm, TWO, max_queued=2, max_running=2, idle_after="5s") as site:
        said = script(
            site,
            python,
            """
        import os, pathlib, subprocess, sys, time, parsl
        from parsl.executors import HighThroughputExecutor
        from hpcbatch.parsl import Provider
        """
            + CUT_OFF
            + """
        def slow(number):
            import time
            time.sleep(0.3)
            return number * number

        if __name__ == "__main__":
            os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
            provider = Provider(cores_per_node=2, mem_per_node=0.5, walltime="00:03:00", init_blocks=2, max_blocks=2)
            executor = HighThroughputExecutor(address="127.0.0.1", cores_per_worker=1, provider=provider,
                                              heartbeat_period=2, heartbeat_threshold=20)
            with parsl.load(parsl.Config(executors=[executor], run_dir="runs", usage_tracking=0, retries=3)):
                calls = [parsl.python_app(slow)(number) for number in range(200)]
                while sum(call.done() for call in calls) < 40:
                    time.sleep(0.1)
                cut_off()
                print([call.result() for call in calls] == [n * n for n in range(200)])
        """,
            timeout=400,
        )
        assert said == "True\n", said
        assert 2 <= site.must_be_single() <= 5, site.batch_jobs()
        states = {task["state"] for task in site.json("list", "--tasks", "--all")}
        assert not states & {"running", "waiting"}, "parsl leaves no block behind"


def test_jobs_of_submitit_share_batch_jobs_and_survive_one(slurm, python):
    with SlurmSite(slurm, TWO, max_queued=2, max_running=2, idle_after="5s") as site:
        said = script(
            site,
            python,
            """
        import os, subprocess, time, submitit
        """
            + CUT_OFF
            + """
        def slow(number):
            time.sleep(0.5)
            return number * number

        if __name__ == "__main__":
            executor = submitit.AutoExecutor(folder="logs", cluster="hpcbatch")
            executor.update_parameters(timeout_min=2, mem_gb=0.3, cpus_per_task=1, name="squares")
            jobs = executor.map_array(slow, range(40))
            while sum(job.done() for job in jobs) < 8:
                time.sleep(0.1)
            cut_off()
            found = [job.result() for job in jobs]
            print(found == [n * n for n in range(40)])
        """,
            timeout=400,
        )
        assert said == "True\n", said
        assert 2 <= site.must_be_single() <= 4, site.batch_jobs()
