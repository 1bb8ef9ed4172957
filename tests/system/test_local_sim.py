"""`hpcbatch sim`: a trace in, a table out, without an engine."""

import gzip
import json
import random

import pytest
from engine_at_home import EngineAtHome

TITLES = "JobID|JobName|User|Submit|Start|End|Timelimit|NNodes|Partition|Priority"


def stamp(seconds):
    day, rest = divmod(seconds, 86_400)
    return f"2026-{1 + day // 28:02}-{1 + day % 28:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def trace(days, partition="gpu", seed=1):
    """Jobs on sixteen nodes, first come, first served."""
    chance, free, rows, now = random.Random(seed), [0] * 16, [], 0
    while now < days * 86_400:
        now += chance.randrange(1, 2400)
        nodes, limit = chance.randrange(1, 5), chance.randrange(1, 12) * 3600
        runs = limit // chance.choice((1, 2, 4))
        free.sort()
        start = max(now, free[nodes - 1])
        free[:nodes] = [start + runs] * nodes
        hours, minutes = divmod(limit // 60, 60)
        rows.append(
            f"{len(rows)}|run{len(rows)}|user{chance.randrange(9)}|{stamp(now)}|{stamp(start)}|"
            f"{stamp(start + runs)}|{hours:02}:{minutes:02}:00|{nodes}|{partition}|{1000 - len(rows) // 100}"
        )
    return "\n".join([TITLES, *rows]) + "\n"


@pytest.fixture(scope="module")
def cli():
    with EngineAtHome() as home:  # never started
        yield home


def test_a_trace_is_played(cli, tmp_path):
    (tmp_path / "jobs.gz").write_bytes(gzip.compress(trace(28).encode()))
    text = cli.ok("sim", tmp_path / "jobs.gz")
    assert max(map(len, text.splitlines())) <= 80
    assert "16 nodes at most in use" in text and "nodes as they were in use" in text
    found = json.loads(cli.ok("sim", tmp_path / "jobs.gz", "--json"))
    assert found["nodes"] == 16 and found["skipped"] == 0
    waits = found["whole"]
    assert waits["real"]["mean_h"] > 0 and waits["played"]["mean_h"] > 0 and -1 <= waits["log_correlation"] <= 1
    fewer = json.loads(cli.ok("sim", tmp_path / "jobs.gz", "--nodes", "12", "--backfill", "easy", "--json"))
    assert fewer["whole"]["played"]["mean_h"] > waits["played"]["mean_h"]


def test_a_trace_comes_through_a_pipe(cli):
    answer = cli.verb("sim", "-", "--json", stdin=trace(10))
    assert answer.code == 0 and json.loads(answer.out)["whole"]["jobs"] > 0
    answer = cli.verb("sim", "-", "--json", stdin=trace(3))
    assert answer.code == 2 and "seven days" in answer.err  # all of it is warm-up


def test_what_is_no_trace_is_one_sentence(cli, tmp_path):
    def refused(*words, **more):
        answer = cli.verb("sim", *words, **more)
        assert answer.code == 2 and answer.out == "" and len(answer.err.splitlines()) <= 3, answer
        return " ".join(answer.err.split())

    assert "cannot read /nowhere: No such file" in refused("/nowhere")
    assert "standard input: this is no trace" in refused("-", stdin="hello\n")
    assert "several partitions (cpu, gpu)" in refused("-", stdin=trace(2) + trace(2, "cpu").split("\n", 1)[1])
    assert "the trace is too short" in refused("-", stdin=trace(3))
    assert "did you mean 'easy'" in refused("-", "--backfill", "eazy", stdin="")
    whole = gzip.compress(trace(3).encode())
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    assert "cut.gz" in refused(tmp_path / "cut.gz")
