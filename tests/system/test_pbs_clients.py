"""Programs that know PBS alone, with nothing changed but PATH."""

import os

from programs_of_clients import python  # noqa: F401 (a fixture)
from python_users import script
from slurm_commands import PbsCommands


def run(home, python, text, timeout=240):
    PbsCommands(home)
    # What starts workers looks for its own programs.
    home.env["PATH"] += f":{os.path.dirname(python)}"
    return script(home, python, text, timeout)


def test_parsl(home, python):
    said = run(
        home,
        python,
        """
        import os, parsl, time
        from parsl.executors import HighThroughputExecutor
        from parsl.providers import PBSProProvider
        from parsl.providers.errors import SubmitException

        def where(number):
            import os
            return number * number, os.environ["PBS_JOBID"]

        if __name__ == "__main__":
            init = "cd $PBS_O_WORKDIR"
            provider = PBSProProvider(walltime="00:10:00", max_blocks=1, worker_init=init, select_options="mem=500mb")
            executor = HighThroughputExecutor(address="127.0.0.1", cores_per_worker=1, provider=provider)
            with parsl.load(parsl.Config(executors=[executor], run_dir="runs", usage_tracking=0)):
                found = [future.result() for future in [parsl.python_app(where)(number) for number in range(20)]]
                print([square for square, _ in found] == [n * n for n in range(20)], len({job for _, job in found}))
            again = PBSProProvider(walltime="00:10:00", worker_init=init)
            again.script_dir = os.getcwd()
            for command in ("exit 3", "exit 0", "sleep 100"):
                block = again.submit(command, 1, "block")
                if command == "sleep 100":
                    print(again.cancel([block]))
                while not again.status([block])[0].terminal:
                    time.sleep(0.2)
                print(again.status([block])[0].state.name)
            large = PBSProProvider(cpus_per_node=4000)
            large.script_dir = os.getcwd()
            try:
                large.submit("true", 1, "block")
            except SubmitException as error:
                print("Job violates queue and/or server resource limits" in error.stderr)
        """,
    )
    assert said.splitlines() == ["True 1", "COMPLETED", "COMPLETED", "[True]", "COMPLETED", "True"], said


def test_dask_jobqueue(home, python):
    said = run(
        home,
        python,
        """
        from dask.distributed import Client
        from dask_jobqueue import PBSCluster

        def where(number):
            import os
            return number * number, os.environ["PBS_JOBID"]

        if __name__ == "__main__":
            options = dict(cores=1, memory="500MB", walltime="00:30:00", interface="lo", log_directory="logs")
            with PBSCluster(**options) as cluster, Client(cluster) as client:
                cluster.scale(2)
                client.wait_for_workers(2, timeout=120)
                found = client.gather(client.map(where, range(50)))
                print([square for square, _ in found] == [n * n for n in range(50)], len({job for _, job in found}) <= 2)
        """,
    )
    assert said.splitlines() == ["True True"], said
    assert any(".e20000000" in name for name in os.listdir(home.directory / "logs"))


def test_psij(home, python):
    said = run(
        home,
        python,
        """
        import pathlib, psij
        from datetime import timedelta

        executor = psij.JobExecutor.get_instance("pbs", config=psij.JobExecutorConfig.DEFAULT)
        executor.config.queue_polling_interval = 1
        executor.config.initial_queue_polling_delay = 1

        def job(text, seconds=600):
            resources = psij.ResourceSpecV1(process_count=1)
            spec = psij.JobSpec(executable="/bin/sh", arguments=["-c", text], resources=resources, name="of-psij")
            spec.directory = pathlib.Path.cwd()
            spec.stdout_path = pathlib.Path("out-of-" + text.split()[0])
            spec.attributes = psij.JobAttributes(duration=timedelta(seconds=seconds))
            one = psij.Job(spec)
            executor.submit(one)
            return one

        good, bad, late, slow = job("echo hi"), job("exit 3"), job("sleep 1000", 2), job("sleep 1000")
        slow.wait(target_states=[psij.JobState.ACTIVE])
        slow.cancel()
        for one in (good, bad, late, slow):
            status = one.wait()
            print(status.state.name, status.exit_code)
        print(open("out-of-echo").read().strip())
        """,
    )
    lines = said.splitlines()
    assert lines[:2] == ["COMPLETED 0", "FAILED 3"] and lines[-1] == "hi", said
    assert lines[2].startswith("FAILED") and lines[3].split()[0] in ("FAILED", "CANCELED"), said


def test_snakemake_with_qsub(home, python):
    """Its generic plugin, with the command that its own manual names."""
    commands = PbsCommands(home)
    home.env["PATH"] += f":{os.path.dirname(python)}"
    where = home.directory
    (where / "Snakefile").write_text(
        'rule all:\n    input: expand("out/{i}", i=range(4))\n'
        'rule one:\n    output: "out/{i}"\n    threads: 1\n    shell: "echo $PBS_JOBID > {output}"\n'
        'rule fails:\n    output: "never"\n    shell: "exit 3"\n'
    )
    words = f"{python} -m snakemake --executor cluster-generic --cluster-generic-submit-cmd"
    flags = "--jobs 4 --nolock --latency-wait 5"
    done = commands.call("sh", "-c", f"{words} 'qsub -l select=1:ncpus={{threads}} -o logs/ -e logs/' {flags}")
    assert done.code == 0, done.out + done.err
    jobs = {(where / f"out/{i}").read_text().strip() for i in range(4)}
    assert len(jobs) == 4 and all(job.endswith(".hpcbatch") for job in jobs)
    failed = commands.call("sh", "-c", f"{words} 'qsub -o logs/ -e logs/' {flags} never")
    assert failed.code == 1 and "Error in rule fails" in failed.err, failed
