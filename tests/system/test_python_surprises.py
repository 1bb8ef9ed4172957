"""What a program may do around its calls: fork, be edited, keep state, end early, ask oddly. Nothing is wrong without a word."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from engine_at_home import EngineAtHome, wait_until

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
SMALL = 'cpus=0.5, memory="200M"'


@pytest.fixture
def home():
    with EngineAtHome() as home:
        yield home


def begin(home, text, *words):
    """A user's own file; the hpcbatch that it imports is ours."""
    file = home.directory / "script.py"
    file.write_text(textwrap.dedent(text))
    env = home.env | {"PYTHONPATH": str(PYTHON), "PYTHONDONTWRITEBYTECODE": "1", "HPCBATCH_PROGRAM": str(home.program)}
    return subprocess.Popen(
        [sys.executable, file, *words],
        env=env,
        cwd=home.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(home, text, *words):
    with begin(home, text, *words) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.split("\n")[:-1]


def module(home, name, text):
    (home.directory / f"{name}.py").write_text(textwrap.dedent(text))


USES = f"""
    import hpcbatch, sys, mine
    if __name__ == "__main__":
        with hpcbatch.Executor({SMALL}) as executor:
            print(executor.submit(mine.work, *sys.argv[1:]).result())
"""


def test_a_module_that_is_edited_while_a_call_runs_is_new_in_the_next_program(home):
    text = """
        import pathlib, time
        VALUE = "{}"
        def work(*words):
            if words:
                pathlib.Path("begun").touch()
                while not pathlib.Path("edited").exists():
                    time.sleep(0.01)
            return VALUE
    """
    module(home, "mine", text.format("old"))
    with begin(home, USES, "wait") as first:
        wait_until((home.directory / "begun").exists, what="the call")
        module(home, "mine", text.format("new"))
        (home.directory / "edited").touch()
        assert first.communicate(timeout=60)[0] == "old\n"
    assert said(home, USES) == ["new"]


def test_the_same_program_hears_of_the_edit_in_its_next_call(home):
    module(
        home,
        "mine",
        'import time\nVALUE = "old"\ndef work():\n    open("mine.py", "a").write("VALUE = \'new\'\\n")\n    return VALUE\n',
    )
    text = f"""
        import hpcbatch, mine
        if __name__ == "__main__":
            with hpcbatch.Executor({SMALL}) as executor:
                print(executor.submit(mine.work).result(), executor.submit(mine.work).result())
    """
    assert said(home, text) == ["old new"]


def test_programs_share_no_state_and_an_initializer_runs_for_each_executor(home):
    module(
        home,
        "mine",
        """
        import os
        seen = []
        def work():
            seen.append(1)
            os.environ["LEFT"] = "over"
            return len(seen)
        def left():
            return len(seen), os.environ.get("LEFT")
        data = None
        def load(path):
            global data
            data = open(path).read()
        def loaded():
            return data
    """,
    )
    assert said(home, USES) == ["1"]
    assert said(home, USES) == ["1"]
    text = f"""
        import hpcbatch, mine
        if __name__ == "__main__":
            with hpcbatch.Executor({SMALL}) as executor:
                print(executor.submit(mine.left).result())
            for text in "one", "two":
                open("data", "w").write(text)
                with hpcbatch.Executor({SMALL}, initializer=mine.load, initargs=("data",)) as executor:
                    print(executor.submit(mine.loaded).result())
    """
    assert said(home, text) == ["(0, None)", "one", "two"]


def test_many_programs_one_after_another_do_not_wait_for_each_others_workers(home):
    module(home, "mine", "def work():\n    return 1\n")
    text = USES.replace("200M", "1G")
    for _ in range(12):
        assert said(home, text) == ["1"]


def test_a_call_sees_the_programs_words_and_umask(home):
    module(
        home,
        "mine",
        """
        import os, sys
        MODE = sys.argv[1] if len(sys.argv) > 1 else "none"
        def work(*_):
            open("made", "w").close()
            return MODE, oct(os.stat("made").st_mode & 0o777)
    """,
    )
    text = "import os\nos.umask(0o027)\n" + textwrap.dedent(USES)
    assert said(home, text, "fast") == ["('fast', '0o640')"]


def test_what_is_forked_has_a_connection_of_its_own(home):
    text = """
        import hpcbatch, multiprocessing, os
        client = hpcbatch.Client()
        logs = [client.submit(["echo", f"out-{n}"]) for n in range(4)]
        for one in logs:
            one.wait()
        def look(n):
            return [client.log(str(logs[n])).strip() for _ in range(100)].count(f"out-{n}")
        @hpcbatch.task(cpus=0.5, memory="200M")
        def double(n):
            return 2 * n
        def call(n):
            return double(n).result(timeout=60)
        if __name__ == "__main__":
            print(double(4).result())
            with multiprocessing.get_context("fork").Pool(4) as pool:
                print(pool.map(look, range(4)))
                print(pool.map(call, range(4)), flush=True)
            with hpcbatch.Executor(cpus=0.5, memory="200M") as executor:
                if os.fork() == 0:
                    try:
                        executor.submit(abs, -1)
                    except RuntimeError as error:
                        print(error, flush=True)
                    os._exit(0)
                os.wait()
    """
    assert said(home, text) == [
        "8",
        "[100, 100, 100, 100]",
        "[0, 2, 4, 6]",
        "an Executor does not go along when a process is forked: make one in the child",
    ]


def test_calls_that_wait_for_calls_run_before_a_program_ends(home):
    text = """
        import hpcbatch, time
        @hpcbatch.task(cpus=0.5, memory="200M")
        def slow(n):
            time.sleep(0.3)
            return n
        @hpcbatch.task(cpus=0.5, memory="200M")
        def save(n):
            open("saved", "a").write(f"{n}\\n")
            return n
        if __name__ == "__main__":
            save(save(slow(1)))
            save([slow(2)])
    """
    assert said(home, text) == []
    assert sorted((home.directory / "saved").read_text().split("\n")) == ["", "1", "1", "[2]"]


def test_methods_have_their_object_and_a_long_chain_its_first_error(home):
    text = """
        import hpcbatch
        class Model:
            def __init__(self, by):
                self.by = by
            @hpcbatch.task(cpus=0.5, memory="200M")
            def predict(self, x=1.0, scale=1.0):
                return self.by * x * scale
        @hpcbatch.task(cpus=0.5, memory="200M")
        def more(n):
            return n + 1
        if __name__ == "__main__":
            model = Model(2)
            print(model.predict(10, 3).result(), model.predict(x=5).result(), Model.predict(model, 7).result(), model.predict.here(4))
            chain = more("a")
            for _ in range(600):
                chain = more(chain)
            try:
                chain.result(timeout=60)
            except TypeError as error:
                print("TypeError")
    """
    assert said(home, text) == ["60 10.0 14.0 8.0", "TypeError"]


def test_an_odd_exception_or_result_ends_its_own_call_alone(home):
    module(
        home,
        "mine",
        """
        class Two(Exception):
            def __init__(self, a, b):
                super().__init__(f"{a} and {b}")
        class Odd(Exception):
            def __reduce__(self):
                return str, ("odd",)
        class Ends:
            def __reduce__(self):
                return exit, (3,)
        def two():
            raise Two("one", "another")
        def odd():
            raise Odd()
        def ends():
            return Ends()
    """,
    )
    text = f"""
        import hpcbatch, mine
        if __name__ == "__main__":
            with hpcbatch.Executor({SMALL}) as executor:
                for one in mine.two, mine.odd, mine.ends:
                    error = executor.submit(one).exception(timeout=60)
                    print(type(error).__name__, error, "raise Two" in str(error.__cause__))
                print(executor.submit(abs, -1).result(timeout=60))
    """
    lines = said(home, text)
    assert lines[0].startswith("UnpicklingError a call raised Two: one and another (") and lines[0].endswith(
        "True"
    ), lines
    assert lines[1].startswith("UnpicklingError a call raised Odd: "), lines
    assert lines[2].startswith("CallFailed the result of task "), lines
    assert lines[3] == "1"


def test_options_are_numbers_and_texts_or_refused_at_once(home):
    text = """
        import datetime, hpcbatch
        class Whole:
            def __index__(self):
                return 1
        for wrong in ({"cpus": True}, {"cpus": float("nan")}, {"site": b"x"}, {"tags": "a=b"}, {"env": {"A": 1}}, {"time": []}):
            try:
                hpcbatch.Executor(**wrong)
            except (TypeError, ValueError) as error:
                print(error)
        with hpcbatch.Executor(cpus=Whole(), memory="200M", retries=Whole(), time=datetime.timedelta(minutes=1), env={"A": __import__("pathlib").Path("/x")}) as executor:
            print(executor.submit(abs, -1).result(timeout=60))
        for time in "00:00:20", "20", 20:
            with hpcbatch.Executor(cpus=0.5, memory="200M", time=time) as executor:
                first = next(iter(executor.map(abs, range(8), chunksize=8)))
                print(first)
    """
    lines = said(home, text)
    assert len(lines) == 6 + 1 + 3 and lines[6:] == ["1", "0", "0", "0"], lines
    times = [home.show(task["id"])["needs"]["time"] for task in home.json("list", "--tasks", "--all")]
    assert sorted(times) == [60, 160, 160, 160], times


def test_items_are_what_was_given(home):
    text = """
        import hpcbatch, pathlib
        client = hpcbatch.Client()
        def printed(items):
            array = client.submit(["printf", "%s", "{n}" if isinstance(items[0], dict) else "{}"], items=items)
            array.wait()
            return [client.log(task.id) for task in array.tasks()]
        print(printed([b"/a", pathlib.Path("/b"), 1.0, 2**70]))
        print(printed([{"n": 2**64 + 1}, {"n": 1.0}, {"n": 3}]))
        print(client.log(str(client.submit(["echo", 3, b"x"]).wait() and client.submissions(1)[0]["id"])))
        for wrong in "a.t", b"a", [None]:
            try:
                client.submit(["true"], items=wrong)
            except hpcbatch.Error as error:
                print(error)
    """
    lines = said(home, text)
    assert (
        lines[0] == "['/a', '/b', '1.0', '1180591620717411303424']"
        and lines[1] == "['18446744073709551617', '1.0', '3']"
    ), lines
    assert lines[2] == "3 x" and len(lines) == 7, lines


def test_what_keeps_a_stream_goes_on_printing(home):
    module(
        home,
        "mine",
        """
        import logging, sys
        def work(n):
            logging.basicConfig(level="INFO", format="%(message)s")
            logging.info(f"logged {n}")
            sys.stdout.buffer.write(b"bytes\\n")
            return sys.stdout.isatty(), sys.stdout.encoding
    """,
    )
    text = f"""
        import hpcbatch, mine
        if __name__ == "__main__":
            with hpcbatch.Executor({SMALL}) as executor:
                for n in 1, 2:
                    future = executor.submit(mine.work, n)
                    print(future.result(), future.task)
    """
    for n, line in enumerate(said(home, text), 1):
        assert line.startswith("(False, 'utf-8')"), line
        task = line.split()[-1]
        assert home.ok("log", task, "--stderr") == f"logged {n}\n" and home.ok("log", task) == "bytes\n"
