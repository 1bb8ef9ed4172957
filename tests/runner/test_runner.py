"""How a run of the tests of the whole system treats what fails, and what it says at its end."""

import datetime
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import outcomes
import pytest
import unsteady

TESTS = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "system"))
import drawn  # noqa: E402

TODAY = datetime.date(2026, 11, 28)

UNLUCKY = """
import pathlib
def test_of_bad_luck():
    mark = pathlib.Path(__file__).with_name("{mark}")
    was_there = mark.exists()
    mark.touch()
    assert was_there, "{words}"
"""
GOOD = "def test_good(): pass\n"
BAD = "def test_bad(): assert False, 'wrong as ever'\n"


@pytest.fixture
def run(tmp_path):
    """Runs run_system over files of tests, {name: text}; returns its exit status and what it printed."""

    def run(**files):
        for name, text in files.items():
            (folder / f"test_{name}.py").write_text(text)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment |= {"PYTEST_PLUGINS": "conftest", "PYTHONPATH": str(TESTS), "XDG_CACHE_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, TESTS / "run_system", "--workers", "0", "--folder", tmp_path / "run", folder],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout

    # A test is named by its place in this checkout.
    (TESTS.parent / "build").mkdir(exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="runner-", dir=TESTS.parent / "build"))
    yield run
    shutil.rmtree(folder)


def test_a_test_that_passes_when_it_runs_again_is_named_and_fails_nothing(run):
    status, said = run(unlucky=UNLUCKY.format(mark="mark", words="not within 5 s"), good=GOOD)
    assert status == 0, said
    last = said.splitlines()[-2:]
    assert last[0].startswith("unsteady: ") and "test_of_bad_luck" in last[0], said
    assert last[1] == "2 passed, 0 failed, 0 skipped"


def test_a_test_that_fails_again_fails_the_run(run):
    status, said = run(bad=BAD, good=GOOD)
    assert status == 1 and said.splitlines()[-1] == "1 passed, 1 failed, 0 skipped", said
    assert "unsteady" not in said


def test_what_says_that_work_was_lost_or_done_twice_gets_no_second_chance(run):
    status, said = run(unlucky=UNLUCKY.format(mark="mark", words="a result is lost"), good=GOOD)
    assert status == 1 and said.splitlines()[-1] == "1 passed, 1 failed, 0 skipped", said


def test_a_run_without_tests_says_so(run):
    status, said = run()
    assert status == 5, said


def test_a_file_that_cannot_be_read_is_no_bad_luck(run):
    status, said = run(wrong="import nothing_of_that_name\n", good=GOOD)
    assert status not in (0, 5), said


def report(test, outcome, seconds=1.0, words=""):
    return outcomes.Test(test, outcome, seconds, words)


def test_names_that_promise_something_get_no_second_chance_and_hold_up_the_others():
    promise = report("tests/system/test_x.py::test_nothing_is_lost_by_a_kill", "failed")
    assert outcomes.to_run_again([promise, report("a", "failed")]) == []
    assert outcomes.to_run_again([report("a", "failed"), report("b", "passed")]) == [report("a", "failed")]
    many = [report(f"t{i}", "failed") for i in range(outcomes.MOST_UNLUCKY + 1)]
    assert outcomes.to_run_again(many) == [] and len(outcomes.to_run_again(many[1:])) == outcomes.MOST_UNLUCKY


def test_only_the_first_line_of_what_failed_counts_as_its_words():
    assert not outcomes.says_broken(report("a", "failed", words="not within 60 s\nengine.log: node lost"))
    for words in ("started more than once: 7", "a result is lost", "Corrupt row", "\nattempt 2 ran twice\n"):
        assert outcomes.says_broken(report("a", "failed", words=words))
    assert not outcomes.says_broken(report("test_frost_in_a_lostness", "failed", words="corner"))


def test_minutes_are_told_by_bed():
    tests = [
        report("tests/system/test_local_run.py::test_a", "passed", 2),
        report("tests/system/test_slurm_keep.py::test_a[x/y]", "passed", 9),
        report("tests/system/test_local_work.py::test_b", "failed", 3),
        report("tests/galaxy/test_far.py::test_b", "passed", 4),
    ]
    assert outcomes.seconds_by_bed(tests) == [("system/slurm", 9, 1), ("system/local", 5, 2), ("galaxy", 4, 1)]
    assert [test.seconds for test in outcomes.slowest(tests, 2)] == [9, 4]


PAGE = """# Unsteady tests

| test | what was seen | commit | date |
|---|---|---|---|
| `tests/system/test_a.py::test_x[a-b]` | late | abc | 2026-11-21 |
| b | late | abc | 2026-11-20 |
"""


def test_a_row_is_bearable_for_a_week():
    rows = unsteady.rows_of(PAGE)
    assert [row.test for row in rows] == ["tests/system/test_a.py::test_x[a-b]", "b"]
    (said,) = unsteady.complaints(rows, TODAY)
    assert said.startswith("b has been unsteady for 8 days")
    assert unsteady.complaints(rows[:1] * 5, TODAY) == []
    assert unsteady.complaints(rows[:1] * 6, TODAY)[0].startswith("6 tests are unsteady")


def test_a_row_without_a_date_is_wrong():
    with pytest.raises(ValueError, match="soon"):
        unsteady.rows_of("| a | b | c | soon |\n")


def test_the_page_itself_can_be_read():
    unsteady.rows_of(unsteady.PAGE.read_text())


def test_a_commit_draws_the_same_cases_each_time_and_another_others(monkeypatch):
    monkeypatch.delenv("HPCBATCH_LONG", raising=False)
    cases = [f"point-{number}" for number in range(30)]
    seen = set()
    for commit in range(40):
        monkeypatch.setenv("HPCBATCH_TEST_COMMIT", f"commit {commit}")
        chosen = drawn.drawn(cases)
        assert len(chosen) == 5 and chosen == sorted(chosen, key=cases.index) == drawn.drawn(cases)
        seen |= set(chosen)
    assert seen == set(cases)
    monkeypatch.setenv("HPCBATCH_LONG", "1")
    assert drawn.drawn(cases) == cases


def test_what_is_no_tests_failure_is_not_outrun_by_one():
    loader = importlib.machinery.SourceFileLoader("run_system", str(TESTS / "run_system"))
    program = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_system", loader))
    loader.exec_module(program)
    for statuses, whole in [((1, 2), 2), ((3, 1), 3), ((0, 1), 1), ((5, 0), 0), ((0, 5), 0), ((5, 5), 5), ((1, 5), 1)]:
        assert program.together(*statuses) == whole, statuses
