"""Functions whose calls are tasks, and what dask, joblib and a notebook make of hpcbatch."""

import json

from engine_at_home import wait_until
from python_users import python, script  # noqa: F401 (python is a fixture)


def test_calls_wait_for_calls(home, python):
    said = script(
        home,
        python,
        """
        import asyncio, concurrent.futures, hpcbatch

        @hpcbatch.task(cpus=0.5, memory="150M", time="2m")
        def add(*numbers, more=()):
            return sum(numbers) + sum(more)

        @hpcbatch.task(cpus=0.5, memory="150M", time="2m")
        def fails(number):
            raise KeyError(number)

        async def in_async_code():
            return await add(1, 2), await add(add(1, 2), 3), await asyncio.gather(*(add(n) for n in range(5)))

        if __name__ == "__main__":
            first = [add(n, n) for n in range(10)]
            print(add(*first, more=[first[1], 100]).result(), hpcbatch.gather(*first[:3]), add.here(1, 2))
            late = add(fails(7), 1)
            print(repr(late.exception()), add(late).exception() is not None)
            print(asyncio.run(in_async_code()))
            waiting = concurrent.futures.Future()
            given_up = add(waiting, 1)
            print(given_up.cancel(), given_up.cancelled(), len(concurrent.futures.wait([given_up], timeout=60).done))
            try:
                hpcbatch.gather(first[0], given_up)
            except concurrent.futures.CancelledError:
                print("gathered")
            waiting.set_result(1)
            print(add(1, 1).task is not None or True)
        """,
    )
    assert said.splitlines()[:4] == ["192 [0, 2, 4] 3", "KeyError(7) True", "(3, 6, [0, 1, 2, 3, 4])", "True True 1"]
    assert said.splitlines()[4] == "gathered"
    assert "add" in home.ok("list"), "a task has the name of its function"


def test_functions_of_a_module_are_imported_there(home, python):
    (home.directory / "mine.py").write_text(
        "import hpcbatch\n\n@hpcbatch.task(memory='150M')\ndef twice(n):\n    return n * 2 if n < 9 else twice.here(n - 9)\n"
    )
    assert (
        script(home, python, "import mine, hpcbatch\nprint(hpcbatch.gather(mine.twice(4), mine.twice(10)))\n")
        == "[8, 2]\n"
    )


def test_joblib(home, python):
    said = script(
        home,
        python,
        """
        import joblib, math, hpcbatch.joblib
        def square(n):
            return n * n
        def fails(n):
            if n == 30:
                raise ValueError("thirty")
            return n
        if __name__ == "__main__":
            with joblib.parallel_config(backend="hpcbatch", n_jobs=-1, cpus=0.5, memory="200M", time="2m"):
                print(sum(joblib.Parallel()(joblib.delayed(square)(n) for n in range(500))))
                print(list(joblib.Parallel(return_as="generator")(joblib.delayed(math.sqrt)(n * n) for n in range(4))))
                try:
                    joblib.Parallel()(joblib.delayed(fails)(n) for n in range(60))
                except ValueError as error:
                    print(error)
                print(sum(joblib.Parallel(n_jobs=2, batch_size=10)(joblib.delayed(square)(n) for n in range(50))))
        """,
    )
    assert said.splitlines() == [
        str(sum(n * n for n in range(500))),
        "[0.0, 1.0, 2.0, 3.0]",
        "thirty",
        str(sum(n * n for n in range(50))),
    ]


def test_joblib_writes_large_arrays_once_and_maps_them(home, python):
    said = script(
        home,
        python,
        """
        import glob, numpy, joblib, hpcbatch.arrays, hpcbatch.joblib
        def total(array, row):
            return float(array[row].sum()), type(array).__name__, array.flags.writeable
        def of(calls):
            return joblib.Parallel()(joblib.delayed(total)(array, row) for array, row in calls)
        if __name__ == "__main__":
            whole = numpy.random.default_rng(1).random((200, 20_000))
            file = numpy.memmap("numbers", dtype="f8", mode="w+", shape=(100, 1000))
            file[:] = numpy.arange(100_000).reshape(100, 1000)
            expected = [float(row.sum()) for row in whole]
            with joblib.parallel_config(backend="hpcbatch", n_jobs=-1, cpus=0.5, memory="200M"):
                seen = of((whole, row) for row in range(200))
                print([one[0] for one in seen] == expected, seen[0][1:])
                # Slices that are gone before they are used, and of a file.
                print([one[0] for one in of((whole[row : row + 10] * 2, 0) for row in range(50))] == [2 * one for one in expected[:50]])
                print([one[0] for one in of((file[row : row + 40 : 2], 1) for row in range(50))] == [float(file[row + 2].sum()) for row in range(50)])
                with joblib.parallel_config(backend="hpcbatch", n_jobs=-1, cpus=0.5, memory="200M", max_nbytes=None):
                    print(of([(whole[:10], 3)])[0][1:])
                # A site that does not see the files.
                hpcbatch.arrays.numpy.save = lambda *args, **options: None
                print(of([(whole.copy(), 5)])[0] == (expected[5], "ndarray", True))
            print(glob.glob("home/calls/*"))
        """,
    )
    assert said.splitlines() == ["True ('memmap', False)", "True", "True", "('ndarray', True)", "True", "[]"]


CLUSTER = """
    import os, signal, time, warnings, dask
    from dask.distributed import Client, get_worker
    from hpcbatch.dask import Cluster
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"})
    def slow(n):
        time.sleep(0.1)
        return n * n
    if __name__ == "__main__":
"""


def test_dask_scales_up_and_down_and_loses_nothing(home, python):
    said = script(
        home,
        python,
        CLUSTER
        + """
        with Cluster(cores=1, memory="600MB", walltime="00:10:00", dashboard_address=None, host="127.0.0.1") as cluster, Client(cluster) as client:
            cluster.scale(2)
            client.wait_for_workers(2, timeout=100)
            futures = client.map(slow, range(40))
            print(sum(client.gather(futures)))
            had = client.has_what()
            cluster.scale(1)
            while len(client.scheduler_info()["workers"]) > 1:
                time.sleep(0.1)
            # Nothing is computed again: those that are left have it all.
            print(sum(client.gather(futures)), sum(map(len, client.has_what().values())), len(had))
            cluster.adapt(minimum=0, maximum=2, interval="200ms", wait_count=2)
            print(sum(client.gather(client.map(slow, range(100, 120)))))
            del futures
            while client.scheduler_info()["workers"]:
                time.sleep(0.1)
            print(client.submit(slow, 3).result())
        """,
    )
    squares = sum(n * n for n in range(40))
    assert said.splitlines() == [str(squares), f"{squares} 40 2", str(sum(n * n for n in range(100, 120))), "9"]

    def states():
        return {json.loads(line)["state"] for line in home.ok("list", "--tasks", "--all", "--json").splitlines()}

    wait_until(lambda: not states() & {"waiting", "running"}, what="that the workers that were scaled down end")


def test_dask_replaces_what_is_lost(home, python):
    said = script(
        home,
        python,
        CLUSTER
        + """
        with Cluster(cores=2, processes=2, memory="1GB", walltime="10m", dashboard_address=None, host="127.0.0.1") as cluster, Client(cluster) as client:
            cluster.scale(jobs=1)
            client.wait_for_workers(2, timeout=100)
            before = set(client.scheduler_info()["workers"])
            futures = client.map(slow, range(100))
            # The nannies too: nothing is left there that could start a worker again.
            for pid in set(client.run(os.getppid).values()):
                os.kill(pid, signal.SIGKILL)
            print(sum(client.gather(futures)))
            print(before.isdisjoint(client.scheduler_info()["workers"]))
        """,
    )
    assert said.splitlines() == [str(sum(n * n for n in range(100))), "True"]


def test_what_dask_cannot_have_is_refused_in_a_sentence(home, python):
    said = script(
        home,
        python,
        """
        import warnings
        from hpcbatch.dask import Cluster
        for wrong in ({"processes": 2}, {"memory": "100MB"}, {"walltime": "soon"}, {"memory": None}, {"colour": 1}):
            try:
                Cluster(**{"cores": 1, "memory": "1GB", **wrong})
            except (ValueError, TypeError) as error:
                print(error)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with Cluster(cores=1, memory="1GB", queue="short", account="abc", dashboard_address=None, host="127.0.0.1") as cluster:
                print("--nthreads 1" in cluster.job_script())
        print([str(one.message) for one in seen if "not used" in str(one.message)])
        """,
    )
    lines = said.splitlines()
    assert [
        word in line
        for word, line in zip(
            ["share 1 cores", "too little", "no duration", "how much memory", "'colour'", "True", "account, queue"],
            lines,
        )
    ] == [True] * 7, said


def test_a_notebook(home, python):
    """Six lines, as a person writes them."""
    said = script(
        home,
        python,
        """
        import nbclient, nbformat
        cells = ["import hpcbatch, pathlib, time",
                 "@hpcbatch.task(memory='150M')\\ndef twice(n):\\n    while not pathlib.Path('go').exists():\\n        time.sleep(0.1)\\n    return 2 * n",
                 "sweep = hpcbatch.submit(['sh', '-c', 'echo $((HPCBATCH_TASK_INDEX * 2))'], array='1-3', mem='50M')",
                 "(await sweep).all_done", "sweep", "sweep.log()",
                 "late = hpcbatch.submit(['sh', '-c', 'until [ -e go ]; do sleep 0.1; done'], mem='50M')",
                 "import threading; threading.Timer(2.5, pathlib.Path('go').touch).start()", "late.wait()", "hpcbatch.gather(*map(twice, [1, 2]))"]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        for cell in notebook.cells[3:]:
            for output in cell.outputs:
                print(output.data.get("text/html") or output.data["text/plain"])
        """,
    )
    lines = said.splitlines()
    assert (
        lines[0] == "True"
        and '<progress value="3" max="3"></progress> 3 done of 3' in lines[1]
        and lines[2] == r"'2\n4\n6\n'"
    )
    # While it waits, a bar that ends as it stands.
    assert (
        '<progress value="1" max="1"></progress> 1 done of 1' in lines[3]
        and lines[4].startswith("Counts(total=1, done=1")
        and lines[-1] == "[2, 4]"
    )
