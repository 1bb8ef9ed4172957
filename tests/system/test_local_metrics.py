"""What tasks write to $HPCBATCH_METRICS is kept with their results."""

import json

import pytest
from engine_at_home import EngineAtHome


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


def task(home, script, *options):
    return home.submit(*options, "--", "sh", "-c", script)


def test_one_object_is_shown_and_told_by_the_report(shared):
    one = task(
        shared, """printf '\\n {"accuracy": 0.93, "steps": [1, 2], "of": {"gpu": "a100"}}\\n' > $HPCBATCH_METRICS"""
    )
    assert shared.wait(one) == 0
    assert shared.show(one)["metrics"] == {"accuracy": 0.93, "steps": [1, 2], "of": {"gpu": "a100"}}
    assert "accuracy 0.93" in shared.ok("show", one)
    told = {each["id"]: each["metrics"] for each in json.loads(shared.ok("report", "--json"))["metrics"]}
    assert told[one]["accuracy"] == 0.93
    assert "accuracy" not in shared.ok("report")


def test_each_task_of_an_array_has_its_own_and_others_none(shared):
    array = task(
        shared,
        '[ $HPCBATCH_TASK_INDEX = 7 ] || echo "{\\"n\\": $HPCBATCH_TASK_INDEX}" > $HPCBATCH_METRICS',
        "--array",
        "1-300",
    )
    assert shared.wait(array) == 0
    for index in (1, 2, 150, 300):
        assert shared.show(f"{array}.{index}")["metrics"] == {"n": index}
    assert "metrics" not in shared.show(f"{array}.7")
    told = [each for each in json.loads(shared.ok("report", "--json"))["metrics"] if each["id"].startswith(f"{array}.")]
    assert sorted(each["metrics"]["n"] for each in told) == [n for n in range(1, 301) if n != 7]


def test_that_of_the_last_attempt_counts(shared, tmp_path):
    one = task(
        shared,
        f"if [ -e {tmp_path}/once ]; then exit 0; fi; touch {tmp_path}/once; echo '{{\"try\": 1}}' > $HPCBATCH_METRICS; exit 3",
    )
    assert shared.wait(one) == 1 and shared.show(one)["metrics"] == {"try": 1}
    shared.ok("retry", one)
    assert shared.wait(one) == 0 and "metrics" not in shared.show(one)
    assert one not in [each["id"] for each in json.loads(shared.ok("report", "--json"))["metrics"]]


def test_what_is_none_is_left_out_and_said(shared, tmp_path):
    def message(script):
        one = task(shared, script)
        assert shared.wait(one) == 0
        shown = shared.show(one)
        assert "metrics" not in shown
        return shown.get("message", "") + shown.get("metrics_error", "")

    assert "more than 64 KB" in message("head -c 70000 /dev/zero | tr '\\0' x > $HPCBATCH_METRICS")
    assert "no JSON object" in message("echo 0.93 > $HPCBATCH_METRICS")
    assert "no JSON object" in message("echo '{\"a\": }' > $HPCBATCH_METRICS")
    assert "left out" in message("mkfifo $HPCBATCH_METRICS")
    (tmp_path / "secret").write_text('{"secret": 1}')
    assert "left out" in message(f"ln -s {tmp_path}/secret $HPCBATCH_METRICS")
    assert message(": > $HPCBATCH_METRICS") == ""
    largest = '{"a": "' + "x" * (64 * 1024 - 9) + '"}'
    (tmp_path / "largest").write_text(largest)
    one = task(shared, f"cat {tmp_path}/largest > $HPCBATCH_METRICS")
    assert shared.wait(one) == 0 and len(shared.show(one)["metrics"]["a"]) == 64 * 1024 - 9


def test_it_outlives_the_engine(shared):
    one = task(shared, "echo '{\"kept\": true}' > $HPCBATCH_METRICS")
    assert shared.wait(one) == 0
    shared.ok("engine", "stop")
    shared.ok("engine", "start")
    assert shared.show(one)["metrics"] == {"kept": True}
