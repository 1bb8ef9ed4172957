"""GPUs of one machine, emulated: shared by parts, checked before the first task, set aside where they break."""

import collections
import json
import pathlib

from engine_at_home import EngineAtHome, wait_until
from fake_gpus import FakeGpus


class GpuSite(EngineAtHome):
    """A local site with four of one kind."""

    def __init__(self, kinds=("a100:4:16384",), **keys):
        super().__init__()
        self.gpus = FakeGpus(self.directory / "gpus", node=kinds)
        shape = {"name": "gpu", "cpus": 32, "memory": "4G", "gpus": {"a100": 4}}
        site = {
            "name": "here",
            "scheduler": "local",
            "workspace": str(self.directory / "w"),
            "setup": self.gpus.setup,
            "shapes": [shape],
        } | keys
        self.configure(json.dumps({"sites": [site]}))

    def work(self, *words, gpus="1", cpus="0.25", more=()):
        """Submits emulated work, which prints the device that it sees; returns the id."""
        return self.submit("--gpus", gpus, "--cpus", cpus, *more, "--", "sh", "-c", self.gpus.command(), "sh", *words)

    def report(self):
        return json.loads(self.ok("report", "--json"))

    def devices(self):
        pilots = self.json("pilots")
        return pilots[0].get("devices", []) if pilots else []


def test_parts_of_gpus_are_shared_and_never_by_too_many():
    with GpuSite() as site:
        said = site.directory / "said"
        command = 'echo "+ $CUDA_VISIBLE_DEVICES" >> {0}; sleep 0.05; echo "- $CUDA_VISIBLE_DEVICES" >> {0}'.format(
            said
        )
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
        assert [bool(trouble) for trouble in troubles] == [False, False, True, False] and "computes wrong" in troubles[
            2
        ], troubles
        (pilot,) = site.json("pilots")
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
        (pilot,) = site.json("pilots")
        assert pilot["gpus"] == {"a100": 3} and "Xid 79: it has fallen off the bus" in pilot["message"], pilot


def test_a_program_that_fails_with_its_gpu_costs_the_user_nothing():
    """It ends at once, before anybody else has looked."""
    with GpuSite() as site:
        array = site.work("--seconds", "3", more=("--array", "1-4", "--retries", "0"))
        wait_until(lambda: len(list((site.directory / "gpus/node/use").glob("*"))) == 4, what="four to work")
        site.gpus.fault(1, "lost")
        assert site.wait(array) == 0
        failed = [attempt["failure"] for n in range(1, 5) for attempt in site.show(f"{array}.{n}").get("attempts", [])]
        assert failed == ["gpu_error"], failed
        own = site.submit("--gpus", "1", "--cpus", "0.25", "--retries", "0", "--", "sh", "-c", "exit 3")
        assert site.wait(own) == 1 and site.show(own)["failure"] == "tool_failed" and site.show(own)["exit_code"] == 3
        assert site.show(own)["run_s"] < 0.5, "the look at its GPU is no time of its own"


def test_a_retry_may_have_other_gpus():
    with GpuSite() as site:
        two = 'test "$HPCBATCH_GPUS" != "${HPCBATCH_GPUS#*,}"'
        one = site.submit("--gpus", "1", "--cpus", "0.25", "--retries", "0", "--", "sh", "-c", two)
        assert site.wait(one) == 1
        for gpus, refusal in ("h100", "no shape has a GPU of kind 'h100'"), ("0", "not none"), ("2.5", "--gpus"):
            refused = site.verb("retry", one, "--gpus", gpus)
            assert refused.code != 0 and refusal in refused.err, (gpus, refused)
        assert "1 task queued again" in site.ok("retry", one, "--gpus", "a100:2")
        assert site.wait(one) == 0
        assert site.show(one)["needs"]["gpus"] == {"a100": 2}


def test_kinds_of_one_node_are_told_apart():
    shapes = [{"name": "gpu", "cpus": 8, "memory": "4G", "gpus": {"a100": 2, "v100": 2}}]
    with GpuSite(kinds=("v100:2:16384:7.0", "a100:2:40960:8.0"), shapes=shapes) as site:
        for kind, numbers in ("a100", {"2", "3"}), ("v100", {"0", "1"}):
            array = site.submit(
                "--gpus", kind, "--cpus", "0.25", "--array", "1-6", "--", "sh", "-c", "echo $HPCBATCH_GPUS; sleep 0.2"
            )
            assert site.wait(array) == 0
            assert {site.ok("log", f"{array}.{n}").strip() for n in range(1, 7)} == numbers, kind
        checked = json.loads(site.ok("sites", "check", "here", "--gpu", "--json"))
        assert len(checked["checks"]) == 4, checked


def test_a_machine_is_had_by_one_pilot():
    with GpuSite() as site:
        site.gpus.fault(0, "wrong")
        site.ok("run", "--gpus", "1", "--cpus", "0.1", "--", "true")
        four = site.submit("--gpus", "4", "--cpus", "0.1", "--", "true")
        three = site.submit("--gpus", "1", "--cpus", "0.1", "--array", "1-6", "--", "sleep", "0.3")
        assert site.wait(three) == 0
        assert len(site.json("pilots")) == 1 and site.show(four)["state"] == "waiting", site.ok("pilots")
        site.ok("cancel", four)


def test_of_several_ways_the_first_is_the_best_until_more_is_known():
    with GpuSite() as site:
        for ways, device in ((("gpus=1,cpus=1", "cpus=2"), "gpus/a100"), (("cpus=32", "gpus=1,cpus=4"), "cpus")):
            words = [word for way in ways for word in ("--one-of", way)]
            done = site.submit("--name", f"new {device}", *words, "--", "true")
            assert site.wait(done) == 0 and site.show(done)["device"] == device, site.show(done)


def test_half_of_a_busy_gpu_is_not_too_much():
    with GpuSite() as site:
        array = site.work("--seconds", "1.5", "--busy", "100", gpus="0.5", more=("--array", "1-16", "--name", "halves"))
        assert site.wait(array) == 0
        wait_until(lambda: site.report()["rows"][0]["runs"] == 16, what="the report of all")
        report = site.report()
        assert 0.6 <= report["total"]["gpu_used_h"] / report["total"]["gpu_watched_h"] <= 1.05, report["total"]
        assert not [one for one in report["advice"] if one["option"] == "--gpus"], report["advice"]


def test_words_for_gpus_that_say_nothing_are_refused():
    with GpuSite() as site:
        for words, said in (
            (("--gpus", "A100"), "no shape has a GPU of kind 'A100'; there are a100"),
            (("--gpus", "25%"), "a part of one is 0.25"),
            (("--gpus", "a100|"), "between and around |"),
            (("--gpus", "1.5"), "whole ones, or a part of one"),
            (("--gpus", "5"), "5 gpus of any kind where it has 4 a100"),
            (("--gpu-memory", "40"), "no GPU has 40 bytes"),
            (("--one-of", "gpus=1,gpus=2", "--one-of", "cpus=1"), "says gpus twice"),
        ):
            refused = site.verb("submit", *words, "--", "true")
            assert refused.code == 2 and said in refused.err, refused
        for text in ("any", "any:2", "a100", "2"):
            assert site.wait(site.submit("--gpus", text, "--cpus", "1", "--", "true")) == 0
        tasks = site.directory / "t.yaml"
        for text, needs in (
            ("a100:2", {"a100": 2}),
            ("any:2", {"any": 2}),
            ("{any: 1}", {"any": 1}),
            ("2", {"any": 2}),
        ):
            tasks.write_text(
                f"- {{command: [true], gpus: {text}}}\n"
                if text[0] == "{"
                else f'- {{command: [true], gpus: "{text}"}}\n'
            )
            assert site.show(site.submit("--file", tasks))["needs"]["gpus"] == needs
        tasks.write_text("- {command: [true], gpus: {count: 1, kind: a100, mem: 3G}}\n")
        refused = site.verb("submit", "--file", tasks)
        assert (
            refused.code == 2 and "t.yaml:1: 'mem' of gpus is unknown; did you mean 'memory'?" in refused.err
        ), refused


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
        either = site.submit("--gpus", "h100|v100", "--", "sh", "-c", "echo $HPCBATCH_GPU_KIND $HPCBATCH_GPUS")
        assert site.wait(either) == 0 and site.ok("log", either).strip() in ("v100 2", "v100 3")
        both = site.submit("--gpu-capability", "7.0", "--", "true")
        assert site.show(both)["needs"]["gpus"] == {"a100|v100": 1}
        refused = site.verb("submit", "--gpu-memory", "80G", "--", "true")
        assert (
            refused.code == 2
            and "no kind of GPU has 80G of memory; there are a100 (40G, 8.0), v100 (16G, 7.0)" in refused.err
        ), refused
        (site.directory / "t.yaml").write_text("tasks: [{command: [true], gpus: {memory: 40G, capability: 8.0}}]")
        assert site.show(site.submit("--file", site.directory / "t.yaml"))["needs"]["gpus"] == {"a100": 1}
        assert site.wait(large, both) == 0


def test_the_sites_own_test_decides_about_each():
    with GpuSite(
        gpu_test='test "${CUDA_VISIBLE_DEVICES%%-fa1e*}" != GPU-00000001 || { echo "its library is old"; exit 3; }'
    ) as site:
        array = site.work("--seconds", "0.2", more=("--array", "1-4"))
        assert site.wait(array) == 0
        assert "1" not in {site.ok("log", f"{array}.{n}").strip() for n in range(1, 5)}
        assert [device.get("trouble", "") for device in site.devices()][
            1
        ] == "the site's test exits 3: its library is old"


def test_any_of_several_ways_will_do():
    with GpuSite() as site:
        command = ("sh", "-c", 'echo "$HPCBATCH_CPUS cpus, GPU ${HPCBATCH_GPUS:-none}"; sleep 3')
        array = site.submit("--one-of", "gpus=2,cpus=1", "--one-of", "cpus=10", "--array", "1-4", "--", *command)
        assert site.wait(array) == 0
        said = sorted(site.ok("log", f"{array}.{n}").strip() for n in range(1, 5))
        assert said[:2] == ["1 cpus, GPU 0,1", "1 cpus, GPU 2,3"] and said[2:] == ["10 cpus, GPU none"] * 2, said
        devices = sorted(site.show(f"{array}.{n}")["device"] for n in range(1, 5))
        assert devices == ["cpus", "cpus", "gpus/a100", "gpus/a100"]
        assert site.show(f"{array}.1")["needs"]["one_of"] == [{"cpus": 1, "gpus": {"any": 2}}, {"cpus": 10}]
        (site.directory / "t.yaml").write_text(
            "tasks: [{command: [true], one_of: [{gpus: {h100: 1}}, {cpus: 2, memory: 100M}]}]"
        )
        assert site.wait(site.submit("--file", site.directory / "t.yaml")) == 0
        refused = site.verb("submit", "--one-of", "gpus=9", "--one-of", "cpus=99", "--", "true")
        assert refused.code == 2 and "never_fits" in refused.err and "or 99 cpus" in refused.err, refused


def test_what_keeps_its_gpu_idle_is_packed_where_that_is_wanted():
    with GpuSite() as site:
        work = {"--seconds": "2.5", "--memory": "1000", "--busy": "20"}
        words = [word for pair in work.items() for word in pair]
        first = site.work(*words, more=("--name", "infer", "--array", "1-12"))
        assert site.wait(first) == 0
        seen = wait_until(
            lambda: site.report()["rows"][0].get("took", {}).get("gpu_busy_95") is not None, what="what was learned"
        )
        assert seen
        advice = [one["text"] for one in site.report()["advice"] if "--gpus" in one["option"]]
        packed = site.submit("--gpus", "1", "--cpus", "0.25", "--name", "infer", "--estimate", "use", "--", "true")
        needs = site.show(packed)["needs"]
        assert needs["gpus"]["any"] < 1 and needs["guess"]["gpus"] == 1, (needs, advice)
        assert advice and "is enough for infer, which asks for 1" in advice[0], advice
        assert site.wait(packed) == 0 and "*" in site.show(packed)["device"]


def test_which_kind_takes_how_long_is_learned_and_kept():
    with GpuSite(kinds=("a100:2", "v100:2")) as site:
        config = json.loads((site.directory / "config.yaml").read_text())
        config["sites"][0]["shapes"][0]["gpus"] = {"a100": 2, "v100": 2}
        site.configure(json.dumps(config))
        (site.directory / "table").write_text("net a100 0.3 100 90\nnet v100 1.2 100 90\n")
        words = ("--class", "net", "--table", str(site.directory / "table"))
        array = site.work(*words, more=("--name", "net", "--array", "1-30"))
        assert site.wait(array) == 0
        ran = collections.Counter(site.show(f"{array}.{n}")["device"] for n in range(1, 31))
        assert ran["gpus/a100"] > 2 * ran["gpus/v100"] >= 6, ran
        wait_until(lambda: len(site.report()["rows"][0]["took"].get("devices", {})) == 2, what="both")
        devices = site.report()["rows"][0]["took"]["devices"]
        assert devices["gpus/v100"]["run_s"] > 2 * devices["gpus/a100"]["run_s"], devices
        site.ok("engine", "stop", "--now")
        # A new engine knows it: of two that wait, both go where they end first.
        pair = site.work(*words, more=("--name", "net", "--array", "1-2"))
        assert site.wait(pair) == 0
        assert {site.show(f"{pair}.{n}")["device"] for n in (1, 2)} == {"gpus/a100"}


FAKE_MPS = """#!/bin/sh
case "$1" in
-f) echo "$$ $CUDA_VISIBLE_DEVICES" > {said}; touch "$CUDA_MPS_PIPE_DIRECTORY/control"; exec sleep 1000 ;;
*) read word && sleep 0.3 && echo "$word" >> {said} ;;
esac
"""


def test_parts_are_shared_side_by_side_where_the_site_says_so():
    with GpuSite(gpu_sharing="mps") as site:
        said = site.directory / "said"
        tools = site.directory / "tools"
        tools.mkdir()
        (tools / "nvidia-cuda-mps-control").write_text(FAKE_MPS.format(said=said))
        (tools / "nvidia-cuda-mps-control").chmod(0o755)
        config = json.loads((site.directory / "config.yaml").read_text())
        config["sites"][0]["setup"] += [f"export PATH={tools}:$PATH"]
        site.configure(json.dumps(config))
        words = (
            'echo "$CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"; '
            'test -e "$CUDA_MPS_PIPE_DIRECTORY/control" && echo shared'
        )
        part = site.submit("--gpus", "0.25", "--", "sh", "-c", words)
        whole = site.submit("--gpus", "1", "--", "sh", "-c", words + "; true")
        assert site.wait(part, whole) == 0
        device, threads, memory, shared = site.ok("log", part).split()
        assert device.startswith("GPU-0000000") and (threads, memory, shared) == ("25", "0=4096M", "shared")
        assert site.ok("log", whole).split() == ["1"] or site.ok("log", whole).split() == ["0"], site.ok("log", whole)
        pid, devices = said.read_text().split()[:2]
        assert len(devices.split(",")) == 4
        site.ok("engine", "stop", "--now")
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), what="the service to end")
        assert "quit" in said.read_text()


def test_where_the_service_does_not_start_tasks_take_turns():
    with GpuSite(gpu_sharing="mps") as site:
        part = site.submit("--gpus", "0.5", "--", "sh", "-c", 'echo "${CUDA_MPS_PIPE_DIRECTORY:-none}"')
        assert site.wait(part) == 0 and site.ok("log", part) == "none\n"


def test_a_shape_that_promises_more_than_its_gpus_have_is_told():
    with GpuSite() as site:
        checked = site.verb("sites", "check", "here", "--gpu")
        assert checked.code == 1 and checked.out.count("the shape calls it 'a100', which has 40G") == 4, checked


def test_a_sites_gpus_are_checked_on_demand():
    with GpuSite(kinds=("a100:4:40960",)) as site:
        site.gpus.fault(2, "wrong")
        checked = site.verb("sites", "check", "here", "--gpu", "--json")
        assert checked.code == 1, checked
        answer = json.loads(checked.out)
        assert [check["ok"] for check in answer["checks"]] == [True, True, False, True], answer
        assert answer["checks"][0]["text"].startswith("NVIDIA a100, 40G, capability 8.0"), answer
        assert "computes wrong" in answer["checks"][2]["text"]
    with GpuSite() as site:
        for number in range(4):
            site.gpus.fault(number, "lost")
        checked = site.verb("sites", "check", "here", "--gpu")
        assert checked.code == 1 and "found its node unfit" in checked.out and "GPU is lost" in checked.out, checked
        assert site.json("list", "--tasks", "--state", "waiting") == []
    with EngineAtHome() as home:
        home.configure(
            json.dumps(
                {
                    "sites": [
                        {
                            "name": "here",
                            "scheduler": "local",
                            "workspace": str(home.directory / "w"),
                            "shapes": [{"name": "all", "cpus": 2, "memory": "1G"}],
                        }
                    ]
                }
            )
        )
        refused = home.verb("sites", "check", "here", "--gpu")
        assert refused.code == 2 and "no shape of here has GPUs" in refused.err, refused
