"""What the plugins decide without Snakemake: resources, messages, which jobs to select, how the client speaks."""

import importlib
import importlib.util
import pathlib
import re
import sys
import types

import pytest

pytestmark = pytest.mark.pure

ROOT = pathlib.Path(__file__).parents[2]


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# A package of its modules alone: its own __init__ needs Snakemake.
plugin = types.ModuleType("plugin_without_snakemake")
plugin.__path__ = [str(ROOT / "snakemake/snakemake_executor_plugin_hpcbatch")]
sys.modules[plugin.__name__] = plugin
resources, messages, telling, waiting = (
    importlib.import_module(f"{plugin.__name__}.{name}") for name in ("resources", "messages", "telling", "waiting")
)

LAPTOP = resources.Offer(
    [{"name": "local", "scheduler": "local", "shapes": [{"name": "all", "cpus": 4, "memory": 8 << 30}]}]
)
BIG = {
    "name": "big",
    "scheduler": "slurm",
    "options": ["--account=abc", "-q normal", "--exclusive"],
    "shapes": [
        {
            "name": "cpu",
            "partition": "short",
            "tags": ["constraint=ib", "partition=short"],
            "cpus": 16,
            "memory": 64 << 30,
            "walltime": 3600,
        },
        {
            "name": "gpu",
            "partition": "gpu",
            "tags": ["partition=gpu"],
            "cpus": 4,
            "memory": 64 << 30,
            "gpus": {"a100": 2},
        },
    ],
}
OTHER = {
    "name": "other",
    "scheduler": "slurm",
    "options": ["--account", "def"],
    "shapes": [{"name": "cpu", "cpus": 16}],
}
OPEN = {
    "name": "open",
    "scheduler": "slurm",
    "choices": {"account": "any", "qos": ["long", "short"], "constraint": "any", "licenses": "any"},
    "shapes": [{"name": "cpu", "tags": ["account=old"], "cpus": 8}],
}
CLUSTER = resources.Offer([BIG])
TWO = resources.Offer([BIG, OTHER])


def needs(threads=1, offer=LAPTOP, default=None, **said):
    return resources.needs_of(said, threads, offer, default)[0]


@pytest.mark.parametrize(
    "said, wanted",
    [
        ({}, {"cpus": 1}),
        ({"mem_mb": 100}, {"cpus": 1, "memory": 100 << 20}),
        ({"mem_mib": 100}, {"cpus": 1, "memory": 100 << 20}),
        ({"mem_mb": 50, "mem_mb_per_cpu": 10, "cpus_per_task": 4}, {"cpus": 4, "memory": 40 << 20}),
        ({"cpus_per_task": -1}, {"cpus": 1}),
        ({"runtime": 90}, {"cpus": 1, "time": 5400}),
        ({"gpu": 2}, {"cpus": 1, "gpus": 2}),
        ({"gpu": 1, "gpu_model": "a100"}, {"cpus": 1, "gpus": {"a100": 1}}),
        ({"gres": "gpu:a100:2"}, {"cpus": 1, "gpus": {"a100": 2}}),
        ({"gres": "gpu:3"}, {"cpus": 1, "gpus": 3}),
        ({"gres": "gpu"}, {"cpus": 1, "gpus": 1}),
        ({"gpus": "a100:2,v100:1"}, {"cpus": 1, "gpus": {"a100": 2, "v100": 1}}),
        ({"gpus": 4, "cpus_per_gpu": 3}, {"cpus": 12, "gpus": 4}),
        ({"gpu": 0}, {"cpus": 1}),
        ({"gpus": "0.25"}, {"cpus": 1, "gpus": 0.25}),
        ({"gres": "gpu", "cpus_per_gpu": 3}, {"cpus": 3, "gpus": 1}),
        ({"gpus": "a100|v100:2"}, {"cpus": 1, "gpus": {"a100|v100": 2}}),
        ({"gpus": 1, "gpu_memory": "40G"}, {"cpus": 1, "gpus": 1, "gpu_memory": "40G"}),
        ({"gpu_capability": "8.0"}, {"cpus": 1, "gpu_capability": "8.0"}),
        ({"gpus": "a100:2", "gpu_memory": "40G"}, {"cpus": 1, "gpus": {"a100": 2}, "gpu_memory": "40G"}),
        ({"one_of": "gpus=1; cpus=16,mem=4G"}, {"one_of": [{"cpus": 1, "gpus": 1}, {"cpus": 16, "memory": "4G"}]}),
        ({"nodes": 1, "tasks": 1}, {"cpus": 1}),
        ({"nvidia_gpu": 2, "gpu_type": "a100"}, {"cpus": 1, "gpus": {"a100": 2}}),
        ({"mem_mb": 1000, "mem_gb": 8}, {"cpus": 1, "memory": 8 << 30}),
        ({"mem_mb": 9000, "mem_gb": 8}, {"cpus": 1, "memory": 9000 << 20}),
        ({"mem_gb": 0.5}, {"cpus": 1, "memory": 512 << 20}),
        ({"time": "01:00:00"}, {"cpus": 1, "time": 3600}),
        ({"walltime": "2h", "runtime": 30}, {"cpus": 1, "time": 7200}),
        ({"time_min": 90}, {"cpus": 1, "time": 5400}),
        ({"cpus": 4}, {"cpus": 4}),
        ({"ntasks": 1}, {"cpus": 1}),
        ({"mpi": "mpirun", "tasks": 4}, {"cpus": 4, "ntasks": 4}),
        ({"nodes": 2, "tasks": 5, "cpus_per_task": 2}, {"nodes": 2, "ntasks": 5, "cpus": 6}),
        ({"nodes": 2}, {"nodes": 2, "ntasks": 2, "cpus": 1}),
        ({"nodes": 2, "gpu": 4, "gpu_model": "a100"}, {"nodes": 2, "ntasks": 2, "cpus": 1, "gpus": {"a100": 2}}),
        ({"nodes": 2, "gres": "gpu:2"}, {"nodes": 2, "ntasks": 2, "cpus": 1, "gpus": 2}),
        ({"nodes": 2, "tasks": 3, "gpus": 2, "cpus_per_gpu": 4}, {"nodes": 2, "ntasks": 3, "cpus": 8, "gpus": 1}),
        ({"nodes": "2", "tasks_per_node": 3, "mem_mb": 100}, {"nodes": 2, "ntasks": 6, "cpus": 3, "memory": 100 << 20}),
    ],
)
def test_resources_as_the_slurm_plugin_has_them(said, wanted):
    assert needs(**said) == wanted


def test_threads_are_cpus_and_a_default_of_memory_is_one():
    assert needs(threads=8, default=2000) == {"cpus": 8, "memory": 2000 << 20}


@pytest.mark.parametrize(
    "text, minutes",
    [
        (30, 30),
        (0.5, 0.5),
        ("45", 45),
        ("2h", 120),
        ("1d12h", 2160),
        ("90s", 1.5),
        ("1h 30m", 90),
        ("1:30:00", 90),
        ("10:30", 10.5),
        ("2-12", 3600),
        ("2-12:30", 3630),
        ("1-0:0:30", 1440.5),
        ("5min", 5),
    ],
)
def test_times(text, minutes):
    assert resources.minutes(text) == pytest.approx(minutes)


@pytest.mark.parametrize(
    "said, words",
    [
        ({"runtime": "soon"}, "is no time"),
        ({"runtime": "1h later"}, "is no time"),
        ({"mem_mb": -4}, "no number"),
        ({"mem_mb": True}, "no number"),
        ({"mpi": "srun"}, "srun starts no processes of MPI here; say mpi='mpirun'"),
        ({"nodes": 4, "tasks": 2}, "nodes=4 are more than tasks=2"),
        ({"nodes": 2, "tasks": 5, "tasks_per_node": 2}, "tasks=5 are more than tasks_per_node=2 on nodes=2"),
        ({"nodes": 2, "gpu": 3}, "3 GPUs on nodes=2"),
        ({"nodes": 1.5}, "nodes=1.5 is no whole number"),
        ({"tasks": "many"}, "tasks=many is no number"),
        ({"tasks_per_gpu": 4}, "only 1"),
        ({"time": "soon"}, "time=soon is no time"),
        ({"mem_gb": "much"}, "mem_gb=much is no number"),
        ({"nvidia_gpu": 1, "gpu": 2}, "disagree"),
        ({"exclusive": True}, "slurm_extra=--exclusive"),
        ({"nodelist": "n1"}, "slurm_extra=--nodelist=n1"),
        ({"gres": "fpga:1"}, "only GPUs"),
        ({"gpus": "a100:x"}, "no number of GPUs"),
        ({"one_of": "gpus=1"}, "no choice"),
        ({"one_of": "gpus=1; cups=4"}, "'cups' is none of"),
        ({"gpus": 1, "one_of": "gpus=1; cpus=4"}, "not beside it"),
        ({"gpu": 1, "gres": "gpu:a100:2"}, "disagree"),
        ({"cluster": "other"}, "no site"),
        ({"not_clusters": "other"}, "no site"),
    ],
)
def test_what_cannot_be_had_is_refused(said, words):
    with pytest.raises(resources.Refusal, match=words):
        needs(**said)


def test_where_a_job_may_run():
    assert needs(offer=CLUSTER, slurm_partition="short,long")["tags"] == ["partition=short"]
    assert needs(offer=CLUSTER, slurm_partition="short,gpu")["tags"] == ["partition=short,gpu"]
    assert needs(offer=CLUSTER, slurm_partition="gpu", constraint="ib")["tags"] == ["constraint=ib", "partition=gpu"]
    assert needs(offer=CLUSTER, clusters="big")["site"] == "big"
    assert needs(offer=CLUSTER, not_clusters="big, big")["not_sites"] == ["big"]
    with pytest.raises(resources.Refusal, match="there are gpu, short; give one"):
        needs(offer=CLUSTER, slurm_partition="long")
    with pytest.raises(resources.Refusal, match="give it the tag constraint=avx"):
        needs(offer=CLUSTER, constraint="avx")


@pytest.mark.parametrize(
    "offer, said, wanted",
    [
        (CLUSTER, {"slurm_account": "abc"}, {}),
        (CLUSTER, {"qos": "normal", "slurm_extra": "--exclusive"}, {}),
        (TWO, {"slurm_account": "abc"}, {"not_sites": ["other"]}),
        (TWO, {"slurm_account": "def"}, {"not_sites": ["big"]}),
        (TWO, {"slurm_extra": "'--account=def'", "not_clusters": "big"}, {"not_sites": ["big"]}),
        (TWO, {"slurm_account": "def", "clusters": "other"}, {"site": "other"}),
        (LAPTOP, {"slurm_account": "abc", "qos": "normal"}, {}),
        (LAPTOP, {"slurm_extra": " "}, {}),
    ],
)
def test_options_of_batch_jobs_are_those_of_the_site(offer, said, wanted):
    assert needs(offer=offer, **said) == {"cpus": 1} | wanted


@pytest.mark.parametrize(
    "sites, said, wanted",
    [
        ([OPEN], {"slurm_account": "mine", "qos": "long"}, {"tags": ["account=mine", "qos=long"]}),
        (
            [OPEN],
            {"constraint": "avx&ssd", "slurm_extra": "'-L matlab:2'"},
            {"tags": ["constraint=avx&ssd", "licenses=matlab:2"]},
        ),
        ([OPEN], {"account": "mine", "licenses": "matlab:2"}, {"tags": ["account=mine", "licenses=matlab:2"]}),
        ([BIG], {"exclusive": 1}, {}),
        ([OPEN, BIG], {"slurm_account": "abc"}, {"tags": ["account=abc"]}),
        ([OPEN, BIG], {"qos": "normal"}, {"not_sites": ["open"]}),
        ([OPEN, OTHER], {"slurm_account": "def", "clusters": "other"}, {"site": "other"}),
    ],
)
def test_a_task_chooses_where_a_site_lets_it(sites, said, wanted):
    assert needs(offer=resources.Offer(sites), **said) == {"cpus": 1} | wanted


@pytest.mark.parametrize(
    "offer, said, words",
    [
        (resources.Offer([OPEN]), {"qos": "higher"}, "qos=higher: none of open lets tasks choose this"),
        (resources.Offer([OPEN]), {"slurm_extra": "--array=1-4"}, "slurm_extra=--array=1-4: none of open"),
        (
            CLUSTER,
            {"slurm_account": "def"},
            "slurm_account=def: none of big lets tasks choose this .*'--account=def' among its options, or let .*--hpcbatch-ignore",
        ),
        (CLUSTER, {"qos": "long"}, "'--qos=long' among its options"),
        (CLUSTER, {"reservation": "course"}, "'--reservation=course' among its options"),
        (CLUSTER, {"slurm_extra": "--gres=gpu:1"}, "slurm_extra=--gres=gpu:1: none of big"),
        (CLUSTER, {"slurm_extra": "--exclusive --licenses=x"}, "slurm_extra"),
        (TWO, {"slurm_account": "abc", "clusters": "other"}, "none of other lets tasks choose this"),
        (TWO, {"slurm_account": "def", "qos": "normal"}, "qos=normal: none of other"),
        (LAPTOP, {"slurm_extra": "--gres=gpu:1"}, "slurm_extra"),
        (LAPTOP, {"constraint": "avx"}, "constraint=avx"),
        (LAPTOP, {"slurm_partition": "gpu"}, "slurm_partition=gpu: .*no site names its partitions"),
        (LAPTOP, {"reservation": "course"}, "reservation"),
        (LAPTOP, {"tasks_per_gpu": 2}, "only 1 is possible"),
    ],
)
def test_what_batch_jobs_do_not_have_is_refused(offer, said, words):
    with pytest.raises(resources.Refusal, match=words):
        needs(offer=offer, **said)


def test_what_the_user_wants_ignored_is():
    offer = resources.Offer([BIG], ["slurm_extra", "constraint"])
    assert resources.needs_of({"slurm_extra": "--gres=gpu:1", "constraint": "avx"}, 1, offer) == ({"cpus": 1}, [])


def test_what_is_not_known_has_a_name():
    said = {"mem_mb": 1, "time": 1, "sockets": 2, "db": 1, "_cores": 1, "tmpdir": "/tmp", "fpga": None}
    assert resources.unknown(said, {"db": 3}) == ["sockets"]
    assert resources.unknown(said, {}, ["sockets"]) == ["db"]


def test_options_that_change_nothing_are_left_out_with_a_line():
    extra = "'--mail-type=END --mail-user me@example.org -J name --exclusive'"
    task, notices = resources.needs_of({"slurm_extra": extra}, 1, CLUSTER)
    assert task == {"cpus": 1}
    assert notices == ["--mail-type, --mail-user, -J of slurm_extra are left out: a pilot's batch job runs many jobs"]


def test_only_a_machine_by_itself_caps_threads():
    assert (LAPTOP.local_cpus, CLUSTER.local_cpus, resources.Offer([]).local_cpus) == (4, 0, 0)


class Job:
    def __init__(self, group=None, rules=("a",)):
        self.groupid = group
        self.rule = types.SimpleNamespace(name=rules[0])
        self.jobs = [types.SimpleNamespace(rule=types.SimpleNamespace(name=name)) for name in rules]

    def is_group(self):
        return self.groupid is not None


def test_groups_have_names():
    assert telling.rule_of(Job(0)) == "0" and telling.rule_of(Job("mine")) == "mine" and telling.rule_of(Job()) == "a"
    assert telling.rule_of(Job("6a43417d-4f4e-46d5-aca9-022b44e5de4d", ("b", "a", "b"))) == "a+b"


class Log:
    """As a logger; of each level what was said."""

    def __init__(self):
        self.info, self.warning, self.error = [], [], []

    def as_logger(self):
        return types.SimpleNamespace(
            **{
                name: lambda text, name=name, **more: getattr(self, name).append(text)
                for name in ("info", "warning", "error")
            }
        )


def test_no_line_fails_a_run():
    log = Log()
    tell = telling.Telling(log.as_logger())
    tell.add(Job(0), {"state": "done", "peak_memory": "much"}, None, "never")
    tell.add(Job(0), {}, {}, None)
    tell.say_once(None, "x")
    tell.say_once(None, "x")
    tell.failed(Job(0), "it was wrong", "3", has_run=True)
    tell.report()
    assert len(log.warning) == 2 and all("could not be made" in line for line in log.warning)
    assert log.error == ["hpcbatch: group 0 failed: it was wrong"]
    assert any(line.split()[:2] == ["0", "2"] for line in log.info), log.info


def test_why_jobs_wait_is_said_once_for_each_reason():
    now, said = [0.0], []
    waits = {
        "1": ["shape cpu of big is not asked for during the next 5m: a pilot found its node unfit: no python3 on n12"],
        "2": ["shape cpu of big is not asked for during the next 4m: a pilot found its node unfit: no python3 on n7"],
    }

    class Client:
        def get(self, target, **query):
            if target == "/v1/tasks":
                assert query["state"] == "waiting" and query["client"] == "me"
                return {"tasks": [{"id": "2", "name": "b"}, {"id": "1", "name": "a x=1"}]}
            return {
                "text": "ready, 3 tasks with the same needs ahead; no pilot has room",
                "details": waits[target.split("/")[3]]
                + [
                    "2 pilots could run it once there is room",
                    "1 pilot could run it once there is room",
                    "1 earlier attempt",
                    "5 tasks of its array are with pilots, and no more may be",
                ],
            }

    look = waiting.Waiting(Client(), "me", KeyError, said.append, lambda: now[0])
    look.look()
    assert said == []
    now[0] = 10.0
    look.look()
    assert len(said) == 1 and "waits: shape cpu of big" in said[0] and "unfit" in said[0] and "ready" not in said[0]
    now[0] = 1000.0
    look.look()
    assert len(said) == 1
    waits["1"] = ["the engine is being stopped"]
    now[0] = 2000.0
    look.look()
    assert said[1:] == ["a x=1 (task 1) waits: the engine is being stopped."]
    # A guess alone is nothing to write of; a start with a bound is, once.
    waits["1"] = [
        "expected to start in about 20m on here",
        "128 tasks in other places of the queue, which may be served first",
    ]
    now[0] = 3000.0
    look.look()
    assert len(said) == 2
    for minutes in (20, 19):
        waits["1"] = [
            f"expected to start in about {minutes}m on here, with 90 % in 3h at most, from 31 waits before it"
        ]
        now[0] += 1000.0
        look.look()
    assert len(said) == 3 and "waits: expected to start in about 20m on here, with 90 % in 3h" in said[2]


def test_the_message_of_a_failure_has_all_that_is_known():
    event = {
        "failure": "oom_task",
        "message": "it used more memory than it may",
        "node": "n1",
        "started_at": 100.0,
        "ended_at": 175.2,
        "cpu_s": 70.0,
        "peak_memory": 3 << 30,
    }
    text = messages.failure("12", event, "line\n" * 30, {"memory": 2 << 30})
    for words in (
        "Task 12 failed (oom_task)",
        "ran 1:15 min on node n1",
        "used 1:10 min of cpu",
        "3.0 GiB of 2.0 GiB",
        "hpcbatch explain 12",
    ):
        assert words in text
    assert text.count("    line") == 20
    assert (
        messages.failure("3", {"failure": "node_lost"}, "", {})
        == "Task 3 failed (node_lost): its node was lost.\nMore: hpcbatch explain 3; hpcbatch log 3"
    )


def test_the_report_sums_by_rule():
    report = messages.Report()
    assert report.lines() == []
    done = {
        "state": "done",
        "started_at": 10.0,
        "ended_at": 20.0,
        "cpu_s": 5.0,
        "peak_memory": 512 << 20,
        "pilot": "abc.0",
    }
    report.add("a", done, {"cpus": 2, "memory": 1 << 30}, 4.0)
    report.add("a", done | {"state": "failed", "pilot": "abc.1"}, {"cpus": 2, "memory": 1 << 30}, 6.0)
    report.add("b", {"state": "cancelled"}, {}, None)
    lines = report.lines()
    assert lines[1].split() == [
        "a",
        "2",
        "1",
        "5.0",
        "s",
        "10.0",
        "s",
        "10.0",
        "s",
        "25",
        "%",
        "512.0",
        "MiB",
        "50",
        "%",
    ]
    assert lines[2].split()[:3] == ["b", "1", "1"] and lines[-1] == "They ran in 1 batch job of hpcbatch."


# --- the scheduler plugin ---


class File(str):
    def is_flagged(self, name):
        return name == "temp" and self.startswith("temp")


def job(name, priority=0, files=(), **wanted):
    return types.SimpleNamespace(
        name=name, priority=priority, input=[File(file) for file in files], scheduler_resources=wanted
    )


@pytest.fixture(scope="module")
def select():
    base = types.ModuleType("snakemake_interface_scheduler_plugins.base")
    base.SchedulerBase = object
    settings = types.ModuleType("snakemake_interface_scheduler_plugins.settings")
    settings.SchedulerSettingsBase = object
    stand_ins = {
        base.__name__: base,
        settings.__name__: settings,
        "snakemake_interface_scheduler_plugins": types.ModuleType("snakemake_interface_scheduler_plugins"),
    }
    sys.modules.update(stand_ins)
    yield load("snakemake/scheduler/snakemake_scheduler_plugin_hpcbatch/__init__.py", "hpcbatch_scheduler").select
    for name in stand_ins:
        del sys.modules[name]


def names(jobs):
    return [one.name for one in jobs]


def test_all_that_fits_together_is_taken(select):
    jobs = [job("a", _cores=1), job("b", _cores=2), job("c", _nodes=1)]
    assert names(select(jobs, {"_cores": 3, "_nodes": 1, "_job_count": 100}, {})) == ["a", "b", "c"]


def test_scarce_resources_go_by_priority_temporary_files_and_size(select):
    jobs = [
        job("small", files=["x"], _cores=1),
        job("large", files=["y"], _cores=1),
        job("temp", files=["temp"], _cores=1),
        job("urgent", priority=1, _cores=1),
        job("wide", priority=2, _cores=9),
    ]
    sizes = {"x": 1, "y": 5, "temp": 2}
    assert names(select(jobs, {"_cores": 3}, sizes)) == ["urgent", "temp", "large"]
    assert names(select(jobs, {"_cores": 12}, sizes)) == ["wide", "urgent", "temp", "large"]
    assert select(jobs, {"_cores": 0}, sizes) == []


def test_resources_in_words_are_left_to_snakemake(select):
    assert select([job("a", place="here")], {"place": 1}, {}) is None
    assert names(select([job("a", note="text")], {"_cores": 1}, {})) == ["a"]


def test_ten_thousand_scarce_jobs_are_no_square(select):
    jobs = [job(str(i), priority=i % 7, _cores=1, _job_count=1) for i in range(10_000)]
    assert len(select(jobs, {"_cores": 5000, "_job_count": 7000}, {})) == 5000


# --- the client ---


def test_the_client_imports_little():
    sys.path.insert(0, str(ROOT / "python"))
    from hpcbatch import client, surroundings

    assert client.socket_path({"HPCBATCH_HOME": "/x"}) == "/x/socket"
    assert client.socket_path({"XDG_RUNTIME_DIR": "/run/u"}) == "/run/u/hpcbatch/socket"
    assert client.socket_path({"XDG_STATE_HOME": "/s"}) == "/s/hpcbatch/socket"
    kept = surroundings.handed_on(
        {"A": "1", "TMPDIR": "/t", "SLURM_JOB_ID": "4", "SLURM_CONF": "/c", "OMP_NUM_THREADS": "2", "LATIN": "\udcff"}
    )
    assert kept == {"A": "1", "SLURM_CONF": "/c", "OMP_NUM_THREADS": "2", "LATIN": "\udcff"}
    assert surroundings.handed_on({"PBS_JOBID": "4", "NCPUS": "2", "ENVIRONMENT": "PBS_BATCH"}) == {
        "ENVIRONMENT": "PBS_BATCH"
    }
    assert surroundings.handed_on({"SLURM_JOB_ID": "4", "NCPUS": "2", "ENVIRONMENT": "BATCH"}) == {"NCPUS": "2"}
    assert surroundings.handed_on({"NCPUS": "2", "ENVIRONMENT": "BATCH"}) == {"NCPUS": "2", "ENVIRONMENT": "BATCH"}
    assert "OMP_NUM_THREADS" not in surroundings.handed_on({"HPCBATCH_TASK_ID": "1", "OMP_NUM_THREADS": "2"})
    on_nodes = {"HPCBATCH_NODES_FOLDER": "/w", "HPCBATCH_NTASKS": "4", "SLURM_NNODES": "2", "OMPI_MCA_ras": "x"}
    assert surroundings.handed_on(on_nodes | {"OMPI_MCA_btl": "self", "SLURM_CONF": "/c"}) == {
        "OMPI_MCA_btl": "self",
        "SLURM_CONF": "/c",
    }


def test_python_hands_on_what_the_command_line_hands_on():
    sys.path.insert(0, str(ROOT / "python"))
    from hpcbatch import surroundings

    source = (ROOT / "core/cli/process/process.cpp").read_text()

    def names(array):
        return set(re.findall(r'"(\w+)"', re.search(rf"{array}{{(.*?)}};", source, re.DOTALL)[1]))

    assert names("kShells") | names("kPilots") == set(surroundings._NOT_HANDED_ON)
    assert names("kPilotsIfTask") == set(surroundings._NOT_HANDED_ON_BY_TASKS)
    assert names("kOfNodes") == set(surroundings._OF_NODES)


def test_an_end_that_nobody_told_is_found(monkeypatch):
    sys.path.insert(0, str(ROOT / "python"))
    from hpcbatch import feed

    now, ended = [0.0], []
    monkeypatch.setattr(feed.time, "monotonic", lambda: now[0])

    class Client:
        def get(self, target, **query):
            return {"cursor": "1"}

        def events(self, name, cursor, wait):
            return [], "1", False

        def post(self, target, body):
            assert (target, body) == ("/v1/tasks/wait", {"ids": ["7"], "timeout": 0})
            return {"ok": 1, "failed": 0, "cancelled": 0}

        def task(self, number, patience):
            return {"id": number, "client": "me", "state": "done"}

    one = feed.Feed(
        Client(), "me", lambda entry, number, event: ended.append((entry, number, event["state"])), None, None
    )
    one.begin()
    one.watch("7", "entry")
    one.wait()
    assert ended == []
    now[0] = 61.0
    one.wait()
    assert ended == [("entry", "7", "done")]
