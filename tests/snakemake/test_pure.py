"""What the plugins decide without Snakemake: resources, messages, which jobs to select, how the client speaks."""

import importlib.util
import pathlib
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


resources = load("snakemake/snakemake_executor_plugin_hpcbatch/resources.py", "hpcbatch_resources")
messages = load("snakemake/snakemake_executor_plugin_hpcbatch/messages.py", "hpcbatch_messages")

LAPTOP = resources.Offer([{"name": "local", "scheduler": "local", "shapes": [{"name": "all"}]}])
CLUSTER = resources.Offer([{"name": "big", "scheduler": "slurm", "shapes": [
    {"name": "cpu", "partition": "short", "tags": ["constraint=ib", "partition=short"]},
    {"name": "gpu", "partition": "gpu", "tags": ["partition=gpu"]}]}])


def needs(threads=1, offer=LAPTOP, default=None, **said):
    return resources.needs_of(said, threads, offer, default)[0]


@pytest.mark.parametrize("said, wanted", [
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
    ({"nodes": 1, "tasks": 1}, {"cpus": 1}),
])
def test_resources_as_the_slurm_plugin_has_them(said, wanted):
    assert needs(**said) == wanted


def test_threads_are_cpus_and_a_default_of_memory_is_one():
    assert needs(threads=8, default=2000) == {"cpus": 8, "memory": 2000 << 20}


@pytest.mark.parametrize("text, minutes", [
    (30, 30), (0.5, 0.5), ("45", 45), ("2h", 120), ("1d12h", 2160), ("90s", 1.5), ("1h 30m", 90), ("1:30:00", 90), ("10:30", 10.5),
    ("2-12", 3600), ("2-12:30", 3630), ("1-0:0:30", 1440.5), ("5min", 5),
])
def test_times(text, minutes):
    assert resources.minutes(text) == pytest.approx(minutes)


@pytest.mark.parametrize("said, words", [
    ({"runtime": "soon"}, "is no time"), ({"runtime": "1h later"}, "is no time"), ({"mem_mb": -4}, "no number"), ({"mem_mb": True}, "no number"),
    ({"mpi": "srun"}, "mpi"), ({"nodes": 2}, "only 1"), ({"tasks": 4}, "only 1"), ({"gres": "fpga:1"}, "only GPUs"), ({"gpus": "a100:x"}, "write a number"),
    ({"gpu": 1, "gres": "gpu:a100:2"}, "disagree"), ({"cluster": "other"}, "no site"), ({"not_clusters": "other"}, "no site"),
])
def test_what_cannot_be_had_is_refused(said, words):
    with pytest.raises(resources.Refusal, match=words):
        needs(**said)


def test_where_a_job_may_run():
    assert needs(offer=CLUSTER, slurm_partition="short,long")["tags"] == ["partition=short"]
    assert needs(offer=CLUSTER, slurm_partition="gpu", constraint="ib")["tags"] == ["partition=gpu", "constraint=ib"]
    assert needs(offer=CLUSTER, clusters="big")["site"] == "big"
    assert needs(offer=CLUSTER, not_clusters="big, big")["not_sites"] == ["big"]
    with pytest.raises(resources.Refusal, match="there are gpu, short"):
        needs(offer=CLUSTER, slurm_partition="long")
    with pytest.raises(resources.Refusal, match="give it the tag constraint=avx"):
        needs(offer=CLUSTER, constraint="avx")
    task, notices = resources.needs_of({"slurm_partition": "long", "constraint": "avx", "slurm_account": "abc"}, 1, LAPTOP)
    assert task == {"cpus": 1} and len(notices) == 3


def test_the_message_of_a_failure_has_all_that_is_known():
    event = {"failure": "oom_task", "message": "it used more memory than it may", "node": "n1", "started_at": 100.0, "ended_at": 175.2,
             "cpu_s": 70.0, "peak_memory": 3 << 30}
    text = messages.failure("12", event, "line\n" * 30, {"memory": 2 << 30})
    for words in ("Task 12 failed (oom_task)", "ran 1:15 min on node n1", "used 1:10 min of cpu", "3.0 GiB of 2.0 GiB", "hpcbatch explain 12"):
        assert words in text
    assert text.count("    line") == 20
    assert messages.failure("3", {"failure": "node_lost"}, "", {}) == \
        "Task 3 failed (node_lost): its node was lost.\nMore: hpcbatch explain 3; hpcbatch log 3"


def test_the_report_sums_by_rule():
    report = messages.Report()
    assert report.lines() == []
    done = {"state": "done", "started_at": 10.0, "ended_at": 20.0, "cpu_s": 5.0, "peak_memory": 512 << 20, "pilot": "abc.0"}
    report.add("a", done, {"cpus": 2, "memory": 1 << 30}, 4.0)
    report.add("a", done | {"state": "failed", "pilot": "abc.1"}, {"cpus": 2, "memory": 1 << 30}, 6.0)
    report.add("b", {"state": "cancelled"}, {}, None)
    lines = report.lines()
    assert lines[1].split() == ["a", "2", "1", "5.0", "s", "10.0", "s", "10.0", "s", "25", "%", "512.0", "MiB", "50", "%"]
    assert lines[2].split()[:3] == ["b", "1", "1"] and lines[-1] == "They ran in 1 batch job of hpcbatch."


# --- the scheduler plugin ---

class File(str):
    def is_flagged(self, name):
        return name == "temp" and self.startswith("temp")


def job(name, priority=0, files=(), **wanted):
    return types.SimpleNamespace(name=name, priority=priority, input=[File(file) for file in files], scheduler_resources=wanted)


@pytest.fixture(scope="module")
def select():
    base = types.ModuleType("snakemake_interface_scheduler_plugins.base")
    base.SchedulerBase = object
    settings = types.ModuleType("snakemake_interface_scheduler_plugins.settings")
    settings.SchedulerSettingsBase = object
    stand_ins = {base.__name__: base, settings.__name__: settings,
                 "snakemake_interface_scheduler_plugins": types.ModuleType("snakemake_interface_scheduler_plugins")}
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
    jobs = [job("small", files=["x"], _cores=1), job("large", files=["y"], _cores=1), job("temp", files=["temp"], _cores=1),
            job("urgent", priority=1, _cores=1), job("wide", priority=2, _cores=9)]
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
    from hpcbatch import client

    assert client.socket_path({"HPCBATCH_HOME": "/x"}) == "/x/socket"
    assert client.socket_path({"XDG_RUNTIME_DIR": "/run/u"}) == "/run/u/hpcbatch/socket"
    assert client.socket_path({"XDG_STATE_HOME": "/s"}) == "/s/hpcbatch/socket"
    kept = client.handed_on({"A": "1", "TMPDIR": "/t", "SLURM_JOB_ID": "4", "SLURM_CONF": "/c", "OMP_NUM_THREADS": "2", "BAD": "\udcff"})
    assert kept == {"A": "1", "SLURM_CONF": "/c", "OMP_NUM_THREADS": "2"}
    assert "OMP_NUM_THREADS" not in client.handed_on({"HPCBATCH_TASK_ID": "1", "OMP_NUM_THREADS": "2"})
