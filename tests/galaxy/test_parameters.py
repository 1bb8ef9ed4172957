"""What is decided without Galaxy: parameters, native specifications, names, verdicts, bursts."""

import datetime
import pathlib
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "galaxy"))
from hpcbatch_galaxy import destination, jobs, metadata, native, patience, verdict, words  # noqa: E402
from hpcbatch_galaxy.bursts import Bursts  # noqa: E402

pytestmark = pytest.mark.pure

GB = 1 << 30
MB = 1 << 20


@pytest.mark.parametrize(
    "params, task",
    [
        ({}, {}),
        ({"cores": 2}, {"cpus": 2.0}),
        ({"cores": "0.5", "mem": "1.5"}, {"cpus": 0.5, "memory": GB * 3 // 2}),
        ({"mem": 4}, {"memory": 4 * GB}),
        ({"mem": "4096M"}, {"memory": 4 * GB}),
        ({"mem": "4GB"}, {"memory": 4 * GB}),
        ({"request_memory": "2048"}, {"memory": 2 * GB}),
        ({"walltime": "0:30:00"}, {"time": 1800.0}),
        ({"walltime": "1-12"}, {"time": 36 * 3600.0}),
        ({"walltime": "1-00:30:10"}, {"time": 86400 + 1810.0}),
        ({"walltime": "90"}, {"time": 5400.0}),
        ({"walltime": "90:30"}, {"time": 5430.0}),
        ({"walltime": 2.5}, {"time": 150.0}),
        ({"walltime": "1d2h"}, {"time": 26 * 3600.0}),
        ({"gpus": 2}, {"gpus": 2}),
        ({"gpus": "0"}, {}),
        ({"gpus": "0.5"}, {"gpus": 1}),
        ({"gpus": 1, "gpu_type": "a100"}, {"gpus": "a100:1"}),
        ({"gpus": "a100:2"}, {"gpus": "a100:2"}),
        ({"gpu_type": "v100"}, {"gpus": "v100:1"}),
        (
            {"gpus": 2, "gpu_type": "a100|h100", "gpu_memory": "40G"},
            {"gpus": "a100|h100:2", "gpu_memory": "40G"},
        ),
        ({"gpu_capability": 8.0}, {"gpu_capability": "8.0"}),
        ({"one_of": "gpus=1,cpus=4; cpus=16"}, {"one_of": "gpus=1,cpus=4; cpus=16"}),
        ({"partition": "long", "tags": "ssd, fast"}, {"tags": ["fast", "partition=long", "ssd"]}),
        ({"not_sites": "there, far,there"}, {"not_sites": ["far", "there"]}),
        ({"site": "here", "priority": "-3", "max_retries": "2"}, {"site": "here", "priority": -3, "retries": 2}),
        ({"cores": "", "mem": None, "gpus": "None"}, {}),
        (
            {"native_specification": "--ntasks=1 --cpus-per-task=4 --mem=8G -t 1:00:00 -p short"},
            {"cpus": 4, "memory": 8 * GB, "time": 3600.0, "tags": ["partition=short"]},
        ),
        ({"native_specification": "--nice --mem=4G -x node7"}, {"memory": 4 * GB}),
        ({"native_specification": "--gpus=4", "gpu_type": "a100"}, {"gpus": "a100:4"}),
        ({"constraint": "avx2 & ssd"}, {"tags": ["constraint=avx2&ssd"]}),
        ({"partition": "a, b", "constraint": "a|b"}, {"tags": ["constraint=a|b", "partition=a,b"]}),
        (
            {"native_specification": "-A lab --qos=long --reservation course -p a,b", "pilot_tags": "ssd"},
            {"tags": ["account=lab", "partition=a,b", "qos=long", "reservation=course", "ssd"]},
        ),
        ({"__resubmit_delay_seconds": "5"}, {}),
        (
            {"submit_native_specification": "--gres=gpu:a100:2 --constraint avx2"},
            {"gpus": "a100:2", "tags": ["constraint=avx2"]},
        ),
        ({"native_specification": "-n 4"}, {"cpus": 4, "ntasks": 4}),
        ({"native_specification": "-n 4 -c 2 --gpus-per-task=a100:1"}, {"cpus": 8, "ntasks": 4, "gpus": "a100:4"}),
        ({"nodes": "2", "ntasks": 8.0}, {"nodes": 2, "ntasks": 8}),
        ({"nodes": 2, "ntasks_per_node": "4", "cores": 8}, {"nodes": 2, "ntasks_per_node": 4, "cpus": 8.0}),
        ({"native_specification": "--nodes=2"}, {"nodes": 2, "ntasks": 2}),
        ({"native_specification": "-N 2-4 -n 6 -c 3"}, {"nodes": 2, "ntasks": 6, "cpus": 9}),
        ({"native_specification": "-N2 --ntasks-per-node=4"}, {"nodes": 2, "ntasks": 8, "cpus": 4}),
        ({"native_specification": "-N2 -n 12 --ntasks-per-node=4"}, {"nodes": 3, "ntasks": 12, "cpus": 4}),
        ({"native_specification": "-N 4 -n 2 --gpus=2"}, {"nodes": 2, "ntasks": 2, "gpus": 1}),
        ({"native_specification": "-N 2 --gpus-per-node=2"}, {"nodes": 2, "ntasks": 2, "gpus": 2}),
        ({"native_specification": "-N 2 -n 4 --gpus-per-task=1"}, {"nodes": 2, "ntasks": 4, "cpus": 2, "gpus": 2}),
        ({"native_specification": "-c 2 -n 2", "nodes": 3, "ntasks": 6}, {"nodes": 3, "ntasks": 6, "cpus": 4}),
        ({"singularity_enabled": True, "docker_volumes": "$defaults", "tmp_dir": True, "require_container": True}, {}),
    ],
)
def test_parameters_become_needs(params, task):
    assert destination.read(params).task == task


@pytest.mark.parametrize(
    "params, says",
    [
        ({"coers": 1}, "did you mean 'cores'?"),
        ({"walltme": 1}, "did you mean 'walltime'?"),
        ({"quite_other_thing": 1}, "known are"),
        ({"cores": "many"}, "cores: 'many' is no number"),
        ({"cores": True}, "is no number"),
        ({"cores": 0}, "is no number from 0.01 up"),
        ({"cores": "nan"}, "is no number"),
        ({"mem": "a lot"}, "write for example 4G"),
        ({"mem": "0"}, "no size above 0"),
        ({"walltime": "soon"}, "H:MM:SS"),
        ({"walltime": "0"}, "is no time"),
        ({"one_of": "gpus=1; cpus=16", "cores": 2}, "not beside it"),
        ({"max_retries": "1.5"}, "is no whole number"),
        ({"stage": "rsync"}, "none of shared, copy"),
        ({"stage": "copy", "metadata": "warm"}, "needs Galaxy at the site"),
        ({"stage": "copy", "metadata": "job"}, "write external or server"),
        ({"stage": "copy", "embed_metadata_in_job": "true"}, "needs Galaxy at the site"),
        ({"stage": "copy", "outputs_to_working_directory": False}, "does not go with stage: copy"),
        ({"stage": "copy", "docker_enabled": "true"}, "use Singularity"),
        ({"embed_metadata_in_job": "maybe"}, "neither true nor false"),
        ({"metadata": "wram"}, "none of warm, job, external, server"),
        ({"nodes": 0}, "nodes: 0 is no number from 1 up"),
        ({"ntasks": "2.5"}, "is no whole number"),
        ({"node": 2}, "did you mean 'nodes'?"),
        ({"native_specification": "--nodes=4-2"}, "fewer than the least"),
        ({"native_specification": "-N 2 --gpus=a100:3"}, "say --gpus-per-node"),
        ({"native_specification": "--nodse=1"}, "no option of sbatch"),
        ({"native_specification": "--mem"}, "has no value"),
        ({"native_specification": "--mem --time=1"}, "--mem has no value"),
        ({"native_specification": "--comment='half"}, "cannot be read"),
        ({"priority": 10**7}, "above 1000000"),
        ({"native_specification": "lonely"}, "no option of sbatch"),
        ({"native_specification": "--gres=craynetwork:1"}, "only GPUs"),
    ],
)
def test_what_is_wrong_is_named(params, says):
    with pytest.raises(words.Refusal) as refusal:
        destination.read(params)
    assert says in str(refusal.value)


def test_what_a_task_chooses_of_its_batch_job_and_what_the_site_has_to_say():
    needs, left = native.needs_of("--account=lab --qos high --exclusive -c 2 --job-name x --requeue")
    assert needs == {"cpus": 2, "choices": ["account=lab", "qos=high"]} and left == ["--exclusive", "--requeue"]


def test_the_tool_fills_what_the_destination_leaves_open():
    asked = [("cores_min", "4"), ("ram_min", "2048"), ("cuda_device_count_min", 1), ("cores_max", "$x * 2")]
    assert destination.with_tool(destination.read({}), asked).task == {"cpus": 4.0, "memory": 2 * GB, "gpus": 1}
    assert "gpus" not in destination.with_tool(destination.read({"gpus": 0}), asked).task
    per_cpu = destination.read({"native_specification": "--mem-per-cpu=500", "cores": 3})
    assert destination.with_tool(per_cpu, asked).task["memory"] == 1500 * MB
    said = destination.with_tool(destination.read({"cores": 1, "mem": "1G"}), asked).task
    assert said["cpus"] == 1 and said["memory"] == GB
    assert destination.with_tool(destination.read({}), []).task == {"cpus": 1}
    assert destination.with_tool(destination.read({"cores": 0.5}), []).slots == 1
    # The engine gives each process of MPI a cpu, where none are said.
    over_nodes = destination.with_tool(destination.read({"nodes": 2, "ntasks": 8}), [("cores_min", "1")])
    assert over_nodes.task == {"nodes": 2, "ntasks": 8} and over_nodes.slots == "${HPCBATCH_CPUS%.*}"
    assert destination.with_tool(destination.read({"nodes": 2}), asked).task["cpus"] == 4
    shares = destination.read({"native_specification": "-N 2 -n 8 --mem-per-cpu=500"})
    assert destination.with_tool(shares, asked).task["memory"] == 2000 * MB


def test_what_another_runner_was_told_is_let_pass_where_galaxy_brings_it_along():
    wanted = destination.read({"k8s_pull_policy": "Default", "cores": 2}, is_strict=False)
    assert wanted.task == {"cpus": 2.0} and wanted.unknown == ["k8s_pull_policy"]


def test_metadata_is_apart_unless_said_otherwise():
    assert destination.read({}).metadata == "warm"
    assert destination.read({"metadata": "server"}).metadata == "server"
    assert destination.read({"embed_metadata_in_job": "True"}).metadata == "warm"
    assert destination.read({"embed_metadata_in_job": False}).metadata == "external"


def test_metadata_of_a_job_that_is_copied_is_galaxys():
    wanted = destination.read(
        {"stage": "copy", "cores": 2, "singularity_enabled": True, "embed_metadata_in_job": "false"}
    )
    assert wanted.stage == "copy" and wanted.metadata == "external" and wanted.task == {"cpus": 2.0}
    assert destination.read({"stage": "copy", "metadata": "server"}).metadata == "server"
    assert destination.read({}).stage == destination.read({"stage": "shared"}).stage == "shared"


def test_a_key_names_one_attempt_of_one_job():
    made = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)
    again = datetime.datetime(2026, 1, 3, 3, 4, 5, 678)
    keys = {jobs.key_of(7, made, 0), jobs.key_of(7, made, 1), jobs.key_of(8, made, 0), jobs.key_of(7, again, 0)}
    assert len(keys) == 4 and jobs.key_of(7, made, 0) in keys
    assert jobs.ids_of(jobs.external_id(["12", "13"])) == ["12", "13"] and jobs.ids_of(None) == []


def test_galaxys_own_python_is_not_the_tools():
    environment = jobs.environment_of(
        {"VIRTUAL_ENV": "/g/venv", "PATH": "/g/venv/bin:/usr/bin", "PYTHONPATH": "/x", "LANG": "C"}
    )
    assert environment == {"PATH": "/usr/bin", "LANG": "C"}


def test_only_what_kept_a_script_from_its_end_is_told():
    said = verdict.verdict_of
    assert said({"state": "done", "failure": "ok"}, {}, True) is None
    assert said({"state": "failed", "failure": "tool_failed", "exit_code": 3}, {}, True) is None
    died = said({"state": "failed", "failure": "tool_failed", "message": "exit code 1"}, {}, False)
    assert died.runner_state == "UNKNOWN_ERROR" and "exit code 1" in died.message
    full = said({"failure": "oom_task", "peak_memory": 3 * GB, "id": "9"}, {"memory": 2 * GB}, False)
    assert (
        full.runner_state == "MEMORY_LIMIT_REACHED"
        and "2 GB; it used 3 GB" in full.message
        and "explain 9" in full.message
    )
    late = said({"failure": "time_task"}, {"time": 90}, False)
    assert late.runner_state == "WALLTIME_REACHED" and "1.5 minutes" in late.message
    assert said({"state": "cancelled", "failure": "cancelled"}, {}, False).runner_state == "UNKNOWN_ERROR"
    assert "node" in said({"failure": "node_lost", "message": "its node is gone"}, {}, False).message


def test_submits_that_come_together_go_together():
    first_is_sent, go_on = threading.Event(), threading.Event()
    messages = []

    def send(submits):
        messages.append(list(submits))
        if len(messages) == 1:
            first_is_sent.set()
            assert go_on.wait(10)
        return [ValueError(one) if one == "bad" else [one + "!"] for one in submits]

    bursts, answers = Bursts(send), {}

    def submit(name):
        try:
            answers[name] = bursts.submit(name)
        except ValueError as error:
            answers[name] = str(error)

    threads = [threading.Thread(target=submit, args=("a",))]
    threads[0].start()
    assert first_is_sent.wait(10)
    for name in ("b", "bad", "c"):
        threads.append(threading.Thread(target=submit, args=(name,)))
        threads[-1].start()
    while len(bursts._waiting) < 3:
        pass
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert answers == {"a": ["a!"], "b": ["b!"], "c": ["c!"], "bad": "bad"}
    assert messages[0] == ["a"] and sorted(messages[1]) == ["b", "bad", "c"] and len(messages) == 2


def test_a_message_that_fails_fails_for_all_of_it():
    def send(_):
        raise OSError("away")

    bursts = Bursts(send)
    for _ in range(2):
        with pytest.raises(OSError):
            bursts.submit("a")


def test_a_task_may_be_its_jobs_only_first_or_second_one():
    assert jobs.possible_external_ids(["7"]) == {"7", "6+7", "7+8"}
    assert jobs.possible_external_ids(["7", "8", "9.1-4"]) == {"7", "8", "6+7", "7+8", "8+9"}


def test_what_is_the_servers_alone_stays_there():
    kept = {
        "PATH": "/usr/bin",
        "KEYBOARD": "us",
        "MONKEY": "1",
        "HTTPS_PROXY": "http://me:word@proxy:3128",
        "TOKENIZERS_PARALLELISM": "false",
        "R_LIBS": "/opt/r",
        "PWD": "/srv",
        "OLDPWD": "/",
        "SITE": "http://[::1]:80/a@b",
    }
    own = {
        "GALAXY_CONFIG_FILE": "/x",
        "GALAXY_CONFIG_OVERRIDE_ID_SECRET": "x",
        "PGPASSWORD": "x",
        "GITHUB_TOKEN": "x",
        "AWS_ACCESS_KEY_ID": "x",
        "DATABASE_URL": "x",
        "BROKER": "amqp://me:word@host/vhost",
        "SENTRY_DSN": "x",
        "CREDENTIALS_DIRECTORY": "/run",
        "token": "x",
        "SSH_AUTH_SOCK": "/tmp/x",
        "NOTIFY_SOCKET": "/run/x",
    }
    assert jobs.kept_back({**kept, **own}) == sorted(own)
    assert jobs.environment_of({**kept, **own}) == kept


def test_the_step_has_those_variables_that_need_no_shell():
    variables = [
        {"name": "A", "value": 1},
        {"name": "B", "value": "$HOME/b"},
        {"name": "C", "value": "x", "raw": True},
        {"name": None, "file": "/etc/profile"},
        {"name": None, "execute": "module load x"},
        {"name": "D", "value": "`date`"},
    ]
    assert metadata.left_to_the_tool(variables) == ["B", "C", "/etc/profile", "module load x", "D"]
    environment = metadata.environment_of("None", "/venv", {"PATH": "/usr/bin"}, variables)
    assert environment == {"A": "1", "PATH": "/venv/bin:/usr/bin", "VIRTUAL_ENV": "/venv", "PYTHONWARNINGS": "ignore"}


def test_terms_of_the_service_are_times():
    assert metadata.terms_of("", "") == {"idle": 2700.0}
    assert metadata.terms_of("10m", "1:00:00") == {"idle": 3600.0, "start": 600.0}
    with pytest.raises(words.Refusal, match="metadata_idle: 'long' is no time"):
        metadata.terms_of("", "long")


class OperationalError(Exception):
    pass


class _Wrapper:
    def __init__(self):
        self.failed = []

    def fail(self, message, exception=False):
        self.failed.append(message)


class _State:
    def __init__(self):
        self.job_wrapper = _Wrapper()
        self.exit_code_file = __file__
        self.cleaned = 0

    def cleanup(self):
        self.cleaned += 1


def _finish(state, error):
    """As Galaxy does it."""
    try:
        state.cleanup()
        if error:
            raise error
    except Exception:
        state.job_wrapper.fail("Unable to finish job", exception=True)


def test_the_end_of_a_job_for_a_busy_database_is_raised_and_leaves_its_files():
    state = _State()
    with pytest.raises(patience.Busy, match="database is locked"), patience.raising(state):
        _finish(state, OperationalError("(sqlite3.OperationalError) database is locked\n[SQL: UPDATE job]"))
    assert state.job_wrapper.failed == [] and state.cleaned == 0
    with patience.raising(state):
        _finish(state, OperationalError("no such column: x"))
    assert state.job_wrapper.failed == ["Unable to finish job"] and state.cleaned == 1
    with patience.raising(state):
        _finish(state, None)
    assert state.cleaned == 2


def test_a_database_may_be_busy_behind_another_error():
    try:
        try:
            raise OperationalError("deadlock detected")
        except OperationalError as busy:
            raise RuntimeError("cannot flush") from busy
    except RuntimeError as error:
        assert patience.is_busy(error)
    assert not patience.is_busy(ValueError("database is locked")) and not patience.is_busy(None)


def test_what_finishing_has_taken_away_is_noticed(tmp_path):
    working = tmp_path / "working"
    working.mkdir()
    (working / "found.txt").write_text("x")
    written, kept = tmp_path / "out", tmp_path / "dataset"
    written.write_text("")
    left = patience.Left(str(working), [(str(written), str(kept))])
    assert left.is_still_there()
    written.rename(kept)
    assert left.is_still_there() and written.exists(), "an empty output would be taken for one that is lost"
    (working / "found.txt").unlink()
    assert not left.is_still_there()
    assert patience.Left(None, []).is_still_there()


def test_a_warning_is_said_once_until_all_is_well(monkeypatch):
    from hpcbatch import client, feed

    said, revivals = [], []

    class Away:
        home = None
        is_here = False

        def events(self, *_):
            if self.is_here:
                return [], "cursor", False
            raise client.EngineAway("nobody answers")

        def get(self, *_, **__):
            if self.is_here:
                return {"cursor": "cursor"}
            raise client.EngineAway("nobody answers")

    engine = Away()

    def revive():
        revivals.append(1)
        if len(revivals) % 5 == 0:
            engine.is_here = True
            return
        raise client.Error("cannot start one")

    monkeypatch.setattr(feed, "_AWAY_S", -1.0)
    followed = feed.Feed(engine, "me", None, said.append, revive)
    monkeypatch.setattr(followed, "_pause", lambda seconds: None)
    followed.wait()
    followed.wait()
    assert len(revivals) == 5 and said == ["waiting for the engine: cannot start one"]
    engine.is_here = False
    followed.wait()
    assert len(revivals) == 10 and said == ["waiting for the engine: cannot start one"] * 2


def test_an_engine_that_was_stopped_is_waited_for_and_not_started(monkeypatch, tmp_path):
    from hpcbatch import client, feed

    said, revivals = [], []

    class Stopped:
        home = str(tmp_path)
        asked = 0

        def events(self, *_):
            raise client.EngineAway("nobody answers")

        def get(self, target, **_):
            if target == "/v1/engine":
                self.asked += 1
                if self.asked < 9:
                    raise client.EngineAway("nobody answers")
            return {"cursor": "cursor"}

    lock = tmp_path / "engine.lock"
    lock.write_text("")
    monkeypatch.setattr(feed, "_AWAY_S", -1.0)
    followed = feed.Feed(Stopped(), "me", None, said.append, lambda: revivals.append(1))
    monkeypatch.setattr(followed, "_pause", lambda seconds: None)
    followed.begin()
    followed.watch("7", "entry")
    followed.wait()
    assert not revivals and said == ["waiting for the engine: it was stopped; hpcbatch engine start starts it again"]
    # Of one that died the lock still speaks.
    lock.write_text(f"host {client.socket.gethostname()}\nprocess 999999999\nstart 1\n")
    followed._client.asked = 0
    followed._has_to_look = False
    followed.wait()
    assert revivals == [1]


def test_a_job_that_waits_says_when_it_is_expected_to_start():
    explained = {
        "state": "waiting",
        "text": "ready, 0 tasks with the same needs ahead; no pilot has room",
        "details": [
            "allocation x on cluster is queued since 5s",
            "expected to start in about 2h on cluster, with 90 % in 5h at most",
        ],
    }
    assert verdict.why_it_waits(explained).endswith(
        "no pilot has room; expected to start in about 2h on cluster, with 90 % in 5h at most"
    )
    explained["details"] = explained["details"][:1]
    assert verdict.why_it_waits(explained) == explained["text"]
    assert verdict.why_it_waits(explained | {"state": "running"}) is None
