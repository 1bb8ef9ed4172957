"""GPUs of one machine, emulated: shared by parts, checked before the first task, set aside where they break."""

import collections
import json

from engine_at_home import EngineAtHome, wait_until
from fake_gpus import FakeGpus


class GpuSite(EngineAtHome):
    """A local site with four of one kind."""

    def __init__(self, kinds=("a100:4:16384",), **keys):
        super().__init__()
        self.gpus = FakeGpus(self.directory / "gpus", node=kinds)
        shape = {"name": "gpu", "cpus": 32, "memory": "4G", "gpus": {"a100": 4}}
        site = {"name": "here", "scheduler": "local", "workspace": str(self.directory / "w"), "setup": self.gpus.setup, "shapes": [shape]} | keys
        self.configure(json.dumps({"sites": [site]}))

    def work(self, *words, gpus="1", cpus="0.25", more=()):
        """Submits emulated work, which prints the device that it sees; returns the id."""
        return self.submit("--gpus", gpus, "--cpus", cpus, *more, "--", "sh", "-c", self.gpus.command(), "sh", *words)

    def devices(self):
        pilots = self.json("pilots")
        return pilots[0].get("devices", []) if pilots else []


def test_parts_of_gpus_are_shared_and_never_by_too_many():
    with GpuSite() as site:
        said = site.directory / "said"
        command = 'echo "+ $CUDA_VISIBLE_DEVICES" >> {0}; sleep 0.05; echo "- $CUDA_VISIBLE_DEVICES" >> {0}'.format(said)
        array = site.submit("--gpus", "0.25", "--cpus", "0.5", "--array", "1-1000", "--", "sh", "-c", command)
        assert site.wait(array) == 0
        users, most = collections.Counter(), collections.Counter()
        for line in said.read_text().splitlines():
            sign, device = line.split()
            assert device in "0123" and len(device) == 1, line
            users[device] += 1 if sign == "+" else -1
            most[device] = max(most[device], users[device])
        assert set(most) == set("0123") and max(most.values()) == 4, most
        assert not any(users.values()), users


def test_who_takes_more_than_its_part_of_the_memory_ends_alone():
    with GpuSite() as site:
        good = site.work("--seconds", "6", "--memory", "3000", gpus="0.25", more=("--array", "1-3"))
        greedy = site.work("--seconds", "600", "--memory", "5000", gpus="0.25")
        assert site.wait(greedy) == 1
        shown = site.show(greedy)
        assert shown["failure"] == "oom_gpu", shown
        assert "5000 MiB of its GPU's memory, and its part of 16384 MiB is 4096 MiB" in shown["message"], shown
        assert site.wait(good) == 0
        used = site.show(f"{good}.1")
        assert used["gpu_memory"] == 3000 << 20 and 0 < used["gpu_busy"] <= 100, used


def test_one_that_fails_its_check_is_set_aside_alone():
    with GpuSite() as site:
        site.gpus.fault(2, "wrong")
        array = site.work("--seconds", "0.3", more=("--array", "1-6"))
        assert site.wait(array) == 0
        assert {site.ok("log", f"{array}.{n}").strip() for n in range(1, 7)} == {"0", "1", "3"}
        troubles = [device.get("trouble", "") for device in site.devices()]
        assert [bool(trouble) for trouble in troubles] == [False, False, True, False] and "computes wrong" in troubles[2], troubles
        pilot, = site.json("pilots")
        assert pilot["gpus"] == {"a100": 3} and "GPU 2 is set aside" in pilot["message"], pilot
        assert site.devices()[0]["name"] == "NVIDIA a100" and site.devices()[0]["memory"] == 16384 << 20


def test_where_all_fail_the_node_is_told_and_nothing_runs():
    with GpuSite() as site:
        for number in range(4):
            site.gpus.fault(number, "lost")
        task = site.work("--seconds", "0.1")
        wait_until(lambda: "GPU is lost" in site.ok("explain", task) + site.ok("sites"), what="the reason")
        for number in range(4):
            site.gpus.fault(number)
        assert site.wait(task, timeout=300) == 0


def test_one_that_breaks_under_a_task_costs_the_user_nothing():
    with GpuSite() as site:
        array = site.work("--seconds", "5", more=("--array", "1-4", "--retries", "0"))
        wait_until(lambda: site.show(array)["counts"].get("running") == 4, what="four to run")
        wait_until(lambda: len(list((site.directory / "gpus/node/use").iterdir())) == 4, what="four to work")
        site.gpus.error(1, 79)
        wait_until(lambda: site.show(array)["counts"].get("running") == 3, what="the end of one")
        assert site.wait(array) == 0
        failed = [attempt["failure"] for n in range(1, 5) for attempt in site.show(f"{array}.{n}").get("attempts", [])]
        assert failed == ["gpu_error"], failed
        pilot, = site.json("pilots")
        assert pilot["gpus"] == {"a100": 3} and "Xid 79: it has fallen off the bus" in pilot["message"], pilot


def test_an_error_of_a_program_sets_nothing_aside():
    with GpuSite() as site:
        task = site.work("--seconds", "3")
        wait_until(lambda: site.show(task)["state"] == "running", what="its start")
        site.gpus.error(0, 31)
        assert site.wait(task) == 0
        assert not any("trouble" in device for device in site.devices())


def test_a_task_says_what_its_gpu_must_have():
    with GpuSite(kinds=("a100:2", "v100:2")) as site:
        config = json.loads((site.directory / "config.yaml").read_text())
        config["sites"][0]["shapes"][0]["gpus"] = {"a100": 2, "v100": 2}
        site.configure(json.dumps(config))
        large = site.submit("--gpus", "1", "--gpu-memory", "40G", "--", "true")
        assert site.show(large)["needs"]["gpus"] == {"a100": 1}
        either = site.submit("--gpus", "h100|v100", "--", "sh", "-c", "echo $HPCBATCH_GPUS")
        assert site.wait(either) == 0 and site.ok("log", either).strip() in ("2", "3")
        both = site.submit("--gpu-capability", "7.0", "--", "true")
        assert site.show(both)["needs"]["gpus"] == {"a100|v100": 1}
        refused = site.verb("submit", "--gpu-memory", "80G", "--", "true")
        assert refused.code == 2 and "no kind of GPU has 80G of memory; there are a100 (40G, 8.0), v100 (16G, 7.0)" in refused.err, refused
        (site.directory / "t.yaml").write_text("tasks: [{command: [true], gpus: {memory: 40G, capability: 8.0}}]")
        assert site.show(site.submit("--file", site.directory / "t.yaml"))["needs"]["gpus"] == {"a100": 1}
        assert site.wait(large, both) == 0
