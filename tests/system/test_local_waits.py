"""`hpcbatch waits` on a real engine whose allocations have waited."""

import json

import pytest
from engine_at_home import EngineAtHome, wait_until


@pytest.fixture(scope="module")
def shared():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


def waits(home, *words):
    return json.loads(home.ok("waits", "--json", *words))


def test_of_few_waits_nothing_is_said(shared):
    assert shared.wait(shared.submit("--", "true")) == 0
    [shape] = waits(shared)["shapes"]
    assert shape["waits"] <= 1 and "wait_50" not in shape
    assert "ten allocations must have waited" in " ".join(shared.ok("waits").split())
    assert "since the engine's start no allocation" in shared.ok("waits", "eval")


def test_a_bound_comes_from_ten_waits_and_outlives_the_engine(shared):
    # Each engine's end lets the pilot go; the next task asks for another.
    for _ in range(11):
        assert shared.wait(shared.submit("--", "true")) == 0
        shared.ok("engine", "stop", "--drain")
        wait_until(lambda: not shared.pilot_pids(), 20, "the pilot's end")
        shared.ok("engine", "start")
    [shape] = waits(shared)["shapes"]
    assert shape["from"] >= 10 and 0 <= shape["wait_50"] <= shape["wait_90"] < 20
    assert shape["start_90"] >= shape["start_50"] > 0
    text = shared.ok("waits", shape["shape"])
    assert "50 % BY" in text and max(map(len, text.splitlines())) <= 80
    assert shape["score"]["waits"] >= 1 and "no allocation has started" in shared.ok("waits", "eval")
    assert shared.wait(shared.submit("--", "true")) == 0  # of this one it was told when
    assert "MSE LOG10" in shared.ok("waits", "eval")


def test_a_shape_that_is_not_there(shared):
    refused = shared.verb("waits", "nowhere")
    assert refused.code == 2 and "there is no shape 'nowhere'" in refused.err and refused.out == ""
    mistyped = shared.verb("waits", "trian")
    assert mistyped.code == 2 and "did you mean 'train'?" in mistyped.err, mistyped
