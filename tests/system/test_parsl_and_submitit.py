"""Parsl and submitit with hpcbatch below them."""

import json

from python_users import python, script  # noqa: F401 (python is a fixture)


def test_blocks_of_parsl_are_tasks(home, python):
    said = script(
        home,
        python,
        """
        import os, pathlib, sys, parsl
        from parsl.executors import HighThroughputExecutor
        from parsl.jobs.states import JobState
        from hpcbatch.parsl import Provider

        def where(number):
            import os
            return number * number, os.environ["HPCBATCH_TASK_ID"], os.environ["PARSL_CORES"]

        if __name__ == "__main__":
            os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
            provider = Provider(cores_per_node=2, mem_per_node=1, walltime="00:10:00", max_blocks=1)
            executor = HighThroughputExecutor(address="127.0.0.1", cores_per_worker=1, provider=provider)
            with parsl.load(parsl.Config(executors=[executor], run_dir="runs", usage_tracking=0)):
                found = [future.result() for future in [parsl.python_app(where)(number) for number in range(20)]]
                [block] = {task for _, task, _ in found}
                print([square for square, _, _ in found] == [n * n for n in range(20)], {cores for _, _, cores in found})
                print(provider.status([block])[0].state.name, provider.status(["999"])[0].state.name)
            # It ends what it has started.
            again = Provider(walltime="00:00:02")
            for command in ("exit 3", "exit 0", "sleep 100", "sleep 200"):
                block = again.submit(command, 1, "block{}")
                if command == "sleep 200":
                    print(again.cancel([block]), end=" ")
                again._client().wait(block)
                status = again.status([block])[0]
                print(status.state.name, "" if command == "sleep 200" else status.exit_code)
            try:
                Provider(cores_per_node=9999).submit("true", 1)
            except Exception as error:
                print(type(error).__name__, "never_fits" in str(error.message))
        """,
    )
    assert said.splitlines() == [
        "True {'2'}",
        "RUNNING MISSING",
        "FAILED 3",
        "COMPLETED 0",
        "TIMEOUT 143",
        "[True] CANCELLED ",
        "SubmitException True",
    ], said
    states = {json.loads(line)["state"] for line in home.ok("list", "--tasks", "--all", "--json").splitlines()}
    assert "running" not in states and "waiting" not in states, "parsl leaves no block behind"


def test_jobs_of_submitit_are_tasks(home, python):
    said = script(
        home,
        python,
        """
        import os, submitit

        def square(number):
            print("squaring", number)
            if number == 7:
                raise ValueError("seven")
            return number * number, submitit.JobEnvironment().job_id

        if __name__ == "__main__":
            executor = submitit.AutoExecutor(folder="logs", cluster="hpcbatch")
            executor.update_parameters(timeout_min=2, mem_gb=0.2, cpus_per_task=1, name="squares", hpcbatch_setup=["export MINE=1"])
            jobs = executor.map_array(square, range(9))
            print([job.exception() is None for job in jobs].index(False), "ValueError: seven" in str(jobs[7].exception()))
            print([job.result() for job in jobs if job is not jobs[7]] == [(n * n, jobs[n].job_id) for n in range(9) if n != 7])
            jobs[0].watcher.client().wait(job.job_id for job in jobs)
            print("squaring 3" in jobs[3].stdout(), jobs[3].get_info()["State"], jobs[7].get_info()["State"])
            one = executor.submit(os.getenv, "MINE")
            print(one.result(), executor.submit(os.kill, 0, 0).result())
            dies = executor.submit(os._exit, 9)
            print(type(dies.exception()).__name__, dies.get_info()["State"])
            with executor.batch():
                batch = [executor.submit(len, "x" * n) for n in range(4)]
            print([job.result() for job in batch], batch[0].job_id.split(".")[0] == batch[3].job_id.split(".")[0])
            slow = executor.submit(__import__("time").sleep, 1000)
            slow.cancel()
            slow.wait()
            print(slow.state)
            for wrong in ({"nodes": 2}, {"hpcbatch_colour": 1}):
                try:
                    executor.update_parameters(**wrong)
                except (ValueError, NameError) as error:
                    print(str(error).splitlines()[0])
        """,
    )
    lines = said.splitlines()
    assert lines[:7] == [
        "7 True",
        "True",
        "True COMPLETED FAILED",
        "1 None",
        "UncompletedJobError FAILED",
        "[0, 1, 2, 3] True",
        "CANCELLED",
    ], said
    assert lines[7] == "nodes=2: a task is one process on one node" and "colour" in lines[8]


def test_it_can_be_interrupted(home, python):
    said = script(
        home,
        python,
        """
        import hpcbatch, pathlib, time, submitit
        from hpcbatch.submitit import HpcbatchExecutor

        class Count:
            def __init__(self):
                self.starts = 0
            def __call__(self, file):
                self.starts += 1
                pathlib.Path(f"{file}.{self.starts}").touch()
                while self.starts < 2:
                    time.sleep(0.1)
                return self.starts
            def checkpoint(self, file):
                return submitit.helpers.DelayedSubmission(self, file)

        if __name__ == "__main__":
            executor = HpcbatchExecutor("logs")
            executor.update_parameters(timeout_min=60, mem_gb=0.2)
            for file in ("timed", "lost"):
                job = executor.submit(Count(), file)
                while not pathlib.Path(f"{file}.1").exists():
                    time.sleep(0.1)
                job._interrupt(timeout=file == "timed")
                print(file, job.result())
            for timeout in (True, False):
                try:
                    job._interrupt(timeout)
                except hpcbatch.Error as error:
                    print("refused:", error)
        """,
    )
    lines = said.splitlines()
    assert lines[:2] == ["timed 2", "lost 2"] and len(lines) == 4 and "does not run" in lines[2], said


def test_what_can_go_on_goes_on(home, python):
    """A checkpoint as submitit's documentation has them; the time is up in the middle."""
    said = script(
        home,
        python,
        """
        import time, submitit
        from hpcbatch.submitit import HpcbatchExecutor

        class Count:
            def __init__(self):
                self.at = 0
            def __call__(self, until):
                starts = getattr(self, "starts", 0) + 1
                self.starts = starts
                while self.at < until:
                    time.sleep(0.1)
                    self.at += 1
                return self.at, starts
            def checkpoint(self, until):
                return submitit.helpers.DelayedSubmission(self, until)

        class Fails(Count):
            def __call__(self, until):
                open("failed", "a").write("x")
                raise ValueError(until)

        if __name__ == "__main__":
            executor = HpcbatchExecutor("logs")
            executor.update_parameters(timeout_min=0.05, mem_gb=0.2)
            print(executor.submit(Count(), 40).result())
            executor.update_parameters(timeout_min=10)
            fails = executor.submit(Fails(), 1)
            fails.exception()
            fails.watcher.client().wait(fails.job_id)
            print(type(fails.exception()).__name__, open("failed").read())
            # By hand it runs again, what has succeeded does not.
            for job in (fails, executor.submit(print, "once")):
                job.exception()
                client = job.watcher.client()
                client.wait(job.job_id)
                client.retry(job.job_id)
                client.wait(job.job_id)
            print(open("failed").read())
            plain = executor.submit(exec, "open('plain', 'a').write('x'); import time; time.sleep(1); "
                "open('plain', 'a').write('y'); 1 / (len(open('plain').read()) - 2)")
            print("ZeroDivisionError" in str(plain.exception()), open("plain").read())
            client.wait(plain.job_id)
            client.retry(plain.job_id)
            client.wait(plain.job_id)
            print(plain.result(), open("plain").read())
        """,
    )
    lines = said.splitlines()
    assert lines[2:] == ["xx", "True xy", "None xyxy"], said
    assert lines[0].startswith("(40, ") and 2 <= int(lines[0][5:-1]) <= 4 and lines[1] == "FailedJobError x", said
