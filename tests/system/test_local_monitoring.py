"""Metrics for Prometheus, by socket and by loopback; the dashboard that shows them; the log as JSON lines."""

import json
import pathlib
import re
import socket
import subprocess
import time

import pytest
from engine_at_home import ROOT, EngineAtHome
from own_python import own_python
from patience import wait_until
from test_web import Page

TOKEN = "0123456789abcdef-Token"
# Prints [name, type, [[sample, labels, value], ...]] for each family; fails where the text is wrong.
PARSE = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    print(json.dumps([family.name, family.type, [[s.name, s.labels, s.value] for s in family.samples]]))
"""


@pytest.fixture(scope="module")
def parser():
    return own_python("metrics-python", pathlib.Path(__file__).with_name("metrics_requirements.txt"), [])


@pytest.fixture(scope="module")
def engine():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


def families(parser, text):
    done = subprocess.run([parser, "-c", PARSE], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: (kind, samples) for name, kind, samples in map(json.loads, done.stdout.splitlines())}


def value(all_families, family, sample=None, **labels):
    found = [
        number
        for name, its, number in all_families[family][1]
        if name == (sample or name) and labels.items() <= its.items()
    ]
    assert found, (family, sample, labels)
    return sum(found)


def test_what_has_happened_is_counted(parser):
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        see_what_is_counted(engine, parser)


def see_what_is_counted(engine, parser):
    good = engine.submit("--array", "1-3", "--", "true")
    bad = engine.submit("--retries", "0", "--", "sh", "-c", "exit 3")
    engine.wait(good, bad)

    def counted():
        now = families(parser, engine.ok("metrics"))
        return now if value(now, "hpcbatch_task_run_seconds", "hpcbatch_task_run_seconds_count") >= 3 else None

    now = wait_until(counted, 60, "the runs to be counted")
    assert value(now, "hpcbatch_tasks_ended", result="ok") == 3
    assert value(now, "hpcbatch_tasks_ended", result="tool_failed") == 1
    assert value(now, "hpcbatch_tasks", state="waiting") == 0
    assert value(now, "hpcbatch_task_wait_seconds", "hpcbatch_task_wait_seconds_bucket", le="+Inf") == 4
    assert value(now, "hpcbatch_queue_wait_seconds", "hpcbatch_queue_wait_seconds_count", site="local") == 1
    assert value(now, "hpcbatch_store_commit_seconds", "hpcbatch_store_commit_seconds_count") > 3
    assert value(now, "hpcbatch_site_up", site="local") == value(now, "hpcbatch_store_up") == 1
    assert value(now, "hpcbatch_pilot_cpus", site="local") >= 1
    assert value(now, "process_resident_memory_bytes") > 2**20
    assert abs(value(now, "process_start_time_seconds") - time.time()) < 600
    # A retry takes a failed task off the lists, and no counter ever falls.
    engine.ok("retry", bad)
    engine.wait(bad)
    now = families(parser, engine.ok("metrics"))
    assert value(now, "hpcbatch_tasks_ended", result="tool_failed") == 2


def test_names_follow_the_conventions(engine, parser):
    text = engine.ok("metrics")
    for name, (kind, samples) in families(parser, text).items():
        assert name.startswith(("hpcbatch_", "process_")) and kind in ("gauge", "counter", "histogram"), name
        assert re.fullmatch("[a-z_]+", name), name
        assert all(
            set(labels) <= {"site", "state", "result", "reason", "by", "le", "version"} for _, labels, _ in samples
        )
    for kind, name in re.findall(r"# TYPE (?P<name>\S+) (?P<kind>\S+)", text):
        assert (name == "counter") == kind.endswith("_total"), kind
    assert len(re.findall("^# HELP", text, re.M)) == len(re.findall("^# TYPE", text, re.M))


def test_what_users_name_makes_no_series(engine):
    before = len(engine.ok("metrics").splitlines())
    ids = [engine.submit("--name", f'n{i}"\n', "--kind", f"kind{i}", "--", "true") for i in range(20)]
    engine.wait(*ids)
    assert len(engine.ok("metrics").splitlines()) <= before + 2


def test_many_sites_are_told_at_once(parser):
    # Of a batch system that nobody asks anything.
    sites = "".join(
        f"  - {{name: site{i}, scheduler: local, max_running: 1, shapes: [{{name: a, cpus: 1, memory: 1G}}]}}\n"
        for i in range(300)
    )
    with EngineAtHome(config="sites:\n" + sites) as many:
        many.ok("engine", "start")
        begin = time.monotonic()
        now = families(parser, many.ok("metrics"))
        assert time.monotonic() - begin < 20
        assert value(now, "hpcbatch_site_up") == 300


def test_prometheus_paths_are_known_on_the_socket(engine):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(engine.home / "socket"))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 200") and "Content-Type: text/plain; version=0.0.4" in answer


def token_file(engine, text=TOKEN + "\n", mode=0o600):
    file = engine.directory / "token"
    file.unlink(missing_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_by_loopback_a_token_shows_metrics_alone(engine, parser):
    with Page(engine, "--metrics-token", token_file(engine)) as page:
        bearer = {"Authorization": "Bearer " + TOKEN}
        for _ in range(2):
            status, text, headers = page.ask("GET", "/metrics", **bearer)
            assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "hpcbatch_tasks" in families(parser, text)
        assert page.ask("GET", "/metrics")[0] == 403
        assert page.ask("GET", "/metrics", Authorization="Bearer " + TOKEN[:-1])[0] == 401
        assert page.ask("GET", "/metrics", Authorization="Bearer")[0] == 403
        assert page.ask("GET", "/metrics", Host="evil.example", **bearer)[0] == 421
        for target in ("/", "/api/engine", "/live", "/metrics/", "/metrics?site=a"):
            assert page.ask("GET", target, **bearer)[0] == 403, target
        assert page.ask("POST", "/metrics", "", **bearer)[0] == 403


def test_a_slow_reader_holds_nobody_up(engine):
    with Page(engine, "--metrics-token", token_file(engine)) as page:
        slow = []
        for _ in range(20):
            client = socket.create_connection(("127.0.0.1", page.port))
            client.sendall(
                f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            slow.append(client)
        begin = time.monotonic()
        assert page.ask("GET", "/metrics", Authorization="Bearer " + TOKEN)[0] == 200
        assert "hpcbatch_tasks" in engine.ok("metrics")
        assert time.monotonic() - begin < 20
        for client in slow:
            client.close()


@pytest.mark.parametrize(
    "text, mode, why",
    [
        (TOKEN, 0o640, "chmod 600"),
        ("short", 0o600, "16 characters"),
        (TOKEN + "\nb", 0o600, "one line"),
        ("", 0o600, "16"),
    ],
)
def test_a_token_that_others_could_know_or_guess_is_refused(engine, text, mode, why):
    result = engine.verb("web", "--metrics-token", token_file(engine, text, mode))
    assert result.code == 2 and why in result.err, result


def test_the_dashboard_asks_for_what_there_is(engine):
    there = engine.ok("metrics")
    dashboard = json.loads((ROOT / "monitoring/grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable]
    assert len(asked) > 20
    types = dict(re.findall(r"# TYPE (\S+) (\S+)", there))
    names = set(types) | {
        f"{name}_{part}" for name, kind in types.items() if kind == "histogram" for part in ("bucket", "sum", "count")
    }
    for query in asked:
        found = re.findall(r"\b(?:hpcbatch|process)_\w+", query)
        assert found and set(found) <= names, query
        # What only grows is asked how fast it does, and nothing else is.
        for function, name in re.findall(r"(\w+)\((\w+)[{\[]", query):
            grows = types.get(name) == "counter" or name not in types
            assert name not in names or (function in ("rate", "increase")) == grows, query
        for label in re.findall(r"(\w+)(?:=~|!~|=|!=)\"", query):
            assert label in ("instance", "job") or f"{label}=" in there, query


def test_the_log_is_json_where_the_configuration_or_an_option_says_so():
    with EngineAtHome(config="log: json\n") as home:
        home.ok("engine", "start")
        home.wait(home.submit("--name", 'a"\x1b[31m\nb', "--", "true"))
        home.ok("engine", "stop")
        lines = [json.loads(line) for line in (home.home / "engine.log").read_text().splitlines()]
        assert any(line["message"].startswith("listening on ") for line in lines)
        assert all(set(line) == {"time", "level", "message"} and line["time"].endswith("Z") for line in lines)
        engine = home.begin("engine", "run", "--log", "text")
        wait_until(lambda: (home.home / "socket").exists(), 30, "the engine")
        home.ok("engine", "stop")
        said = "".join(engine.communicate(timeout=60))
        assert " info listening on " in said and "{" not in said
        assert home.verb("engine", "run", "--log", "xml").code == 2
        home.ok("engine", "start")  # its end takes the pilot along


def test_what_has_ended_is_told_as_traces(engine, tmp_path):
    good = engine.submit("--name", 'x"\n', "--array", "1-2", "--", "true")
    bad = engine.submit("--retries", "1", "--", "false")
    engine.wait(good, bad)
    file = tmp_path / "traces.json"
    engine.ok("report", "--otlp", file)
    spans = [
        span
        for line in file.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    by_task = {}
    for span in spans:
        for attribute in span["attributes"]:
            if attribute["key"] == "hpcbatch.task":
                by_task[attribute["value"]["stringValue"]] = span
    assert {f"{good}.1", f"{good}.2", bad} <= set(by_task)
    assert by_task[f"{good}.1"]["name"] == 'x"\n' and by_task[bad]["status"]["code"] == 2
    children = [span["name"] for span in spans if span.get("parentSpanId") == by_task[bad]["spanId"]]
    assert children == ["wait", "attempt 1", "wait", "attempt 2"]
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans)
    assert len({span["spanId"] for span in spans}) == len(spans)
