"""Emulated GPUs in batch jobs of a real SLURM with typed GRES: checked, broken, slow; the others go on and no retry is used up."""

import collections
import json

import pytest

from engine_at_home import wait_until
from fake_gpus import QUOTED, FakeGpus
from slurm_site import SlurmSite

V100 = {"name": "v100", "partition": "gpu", "cpus": 2, "memory": "1G", "gpus": {"v100": 2}, "walltime": "30m"}


class GpuCluster(SlurmSite):
    """The node n3 of the tests' cluster has two V100; each batch job gets the helper's view of its own node."""

    def __init__(self, slurm, *shapes, **keys):
        super().__init__(slurm, *(shapes or (V100,)), **keys)
        self.gpus = FakeGpus(self.directory / "gpus", n3=("v100:2:16384:7.0",), n4=("a100:1:40960:8.0",))
        file = self.directory / "config.yaml"
        configuration = json.loads(file.read_text())
        configuration["sites"][0]["setup"] = self.gpus.setup
        file.write_text(json.dumps(configuration))

    def work(self, *words, more=()):
        return self.submit(
            "--gpus", "v100:1", "--retries", "0", *more, "--", "sh", "-c", self.gpus.command("n3"), "sh", *words
        )


@pytest.fixture
def cluster(slurm):
    with GpuCluster(slurm) as site:
        yield site


def test_one_that_fails_its_check_is_not_used(cluster):
    cluster.gpus.fault(0, "wrong", node="n3")
    array = cluster.work("--seconds", "0.5", more=("--array", "1-4"))
    assert cluster.wait(array) == 0
    assert {cluster.ok("log", f"{array}.{n}").strip() for n in range(1, 5)} == {"1"}
    (pilot,) = cluster.json("pilots")
    assert "computes wrong" in pilot["message"] and pilot["gpus"] == {"v100": 1}, pilot


def test_one_that_breaks_under_a_task_costs_no_retry(cluster):
    array = cluster.work("--seconds", "6", more=("--array", "1-2"))
    wait_until(lambda: len(list((cluster.gpus.folder / "n3/use").glob("*"))) == 2, what="both to work")
    cluster.gpus.error(1, 79, node="n3")
    assert cluster.wait(array) == 0
    failures = [attempt["failure"] for n in (1, 2) for attempt in cluster.show(f"{array}.{n}").get("attempts", [])]
    assert failures == ["gpu_error"], failures
    assert cluster.must_be_single() == 1


def test_one_that_is_hot_for_a_minute_is_set_aside(cluster):
    array = cluster.work("--seconds", "75", more=("--array", "1-2"))
    wait_until(lambda: len(list((cluster.gpus.folder / "n3/use").glob("*"))) == 2, what="both to work")
    cluster.gpus.fault(0, "hot", node="n3")
    wait_until(
        lambda: "slowed down by its heat" in cluster.json("pilots")[0].get("message", ""), 120, what="its trouble"
    )
    cluster.ok("cancel", array)
    assert [bool(device.get("trouble")) for device in cluster.json("pilots")[0]["devices"]] == [True, False]


def test_each_kind_of_work_goes_to_the_gpus_that_serve_it_most(slurm):
    a100 = V100 | {"name": "a100", "gpus": {"a100": 1}}
    with GpuCluster(slurm, V100, a100, max_queued=2, idle_after="5m") as site:
        (site.gpus.folder / "v100").symlink_to("n3")
        (site.gpus.folder / "a100").symlink_to("n4")
        # Three times as fast there, and as fast anywhere.
        (site.directory / "table").write_text(
            "net a100 0.5 100 90\nnet v100 1.5 100 90\ntiny a100 0.5 100 90\ntiny v100 0.5 100 90\n"
        )
        work = f"echo $HPCBATCH_GPU_KIND; HPCBATCH_FAKEGPU={site.gpus.folder}/$HPCBATCH_GPU_KIND exec {QUOTED} work --class $0 --table {site.directory}/table"

        def ran(count):
            ids = [
                site.submit("--gpus", "1", "--name", name, "--array", f"1-{count}", "--", "sh", "-c", work, name)
                for name in ("net", "tiny")
            ]
            assert site.wait(*ids, timeout=200) == 0
            return [
                collections.Counter(site.show(f"{number}.{n}")["device"] for n in range(1, count + 1)) for number in ids
            ]

        for kind in ("a100", "v100"):  # so little work is not worth another batch job
            site.ok("run", "--gpus", kind, "--", "true")
        ran(24)
        nets, tiny = ran(24)
        # All are done soonest where the V100s help with five nets once the tiny ones are done.
        assert nets["gpus/a100"] >= 16 and tiny["gpus/v100"] >= 22, (nets, tiny)
        assert {job.state for job in site.batch_jobs()} == {"RUNNING"} and len(site.batch_jobs()) == 2
