"""Programs that know Slurm alone, with nothing changed but PATH."""

import os

from python_users import python, script  # noqa: F401 (python is a fixture)
from slurm_commands import Commands


def run(home, python, text, timeout=240):
    Commands(home)
    # What starts workers looks for its own programs.
    home.env["PATH"] += f":{os.path.dirname(python)}"
    return script(home, python, text, timeout)


def test_submitit(home, python):
    said = run(
        home,
        python,
        """
        import os, submitit, time

        def square(number):
            print("squaring", number)
            if number == 3:
                raise ValueError("three")
            return number * number

        if __name__ == "__main__":
            executor = submitit.SlurmExecutor(folder="logs", max_num_timeout=0)
            executor.update_parameters(time=5, mem="200MB", cpus_per_task=1, job_name="squares", array_parallelism=4)
            jobs = executor.map_array(square, range(5))
            print([job.exception() is None for job in jobs], [job.result() for job in jobs if job is not jobs[3]])
            print("ValueError: three" in str(jobs[3].exception()), "squaring 2" in jobs[2].stdout())
            for job in jobs:
                job.wait()
            time.sleep(1)
            print(jobs[2].watcher.get_state(jobs[2].job_id, mode="force"), jobs[2].job_id.split("_")[1])
            dies = executor.submit(os._exit, 9)
            print(type(dies.exception()).__name__)
            slow = executor.submit(time.sleep, 1000)
            slow.cancel()
            while not slow.done(force_check=True):
                time.sleep(0.2)
            print(slow.state.split()[0])
        """,
    )
    assert said.splitlines() == [
        "[True, True, True, False, True] [0, 1, 4, 16]",
        "True True",
        "COMPLETED 2",
        "UncompletedJobError",
        "CANCELLED",
    ], said


def test_parsl(home, python):
    said = run(
        home,
        python,
        """
        import parsl
        from parsl.executors import HighThroughputExecutor
        from parsl.launchers import SrunLauncher
        from parsl.providers import SlurmProvider

        def where(number):
            import os
            return number * number, os.environ["HPCBATCH_TASK_ID"]

        if __name__ == "__main__":
            provider = SlurmProvider(
                cores_per_node=1, mem_per_node=1, walltime="00:10:00", max_blocks=1, exclusive=False, launcher=SrunLauncher()
            )
            executor = HighThroughputExecutor(address="127.0.0.1", cores_per_worker=1, provider=provider)
            with parsl.load(parsl.Config(executors=[executor], run_dir="runs", usage_tracking=0)):
                found = [future.result() for future in [parsl.python_app(where)(number) for number in range(20)]]
                print([square for square, _ in found] == [n * n for n in range(20)], len({task for _, task in found}))
            again = SlurmProvider(walltime="00:10:00", exclusive=False)
            again.script_dir = "."
            import time
            for command in ("exit 3", "exit 0", "sleep 100"):
                block = again.submit(command, 1, "block")
                if command == "sleep 100":
                    again.cancel([block])
                while not again.status([block])[0].terminal:
                    time.sleep(0.2)
                print(again.status([block])[0].state.name)
        """,
    )
    assert said.splitlines() == ["True 1", "FAILED", "COMPLETED", "CANCELLED"], said


def test_dask_jobqueue(home, python):
    said = run(
        home,
        python,
        """
        from dask.distributed import Client
        from dask_jobqueue import SLURMCluster

        def where(number):
            import os
            return number * number, os.environ["HPCBATCH_TASK_ID"]

        if __name__ == "__main__":
            with SLURMCluster(cores=1, memory="500MB", walltime="00:30:00", interface="lo") as cluster, Client(cluster) as client:
                cluster.scale(2)
                client.wait_for_workers(2, timeout=120)
                found = client.gather(client.map(where, range(50)))
                print([square for square, _ in found] == [n * n for n in range(50)], len({task for _, task in found}) <= 2)
        """,
    )
    assert said.splitlines() == ["True True"], said
