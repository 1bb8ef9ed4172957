"""What accounting keeps teaches how long pilots wait: real accounting is read, a made one is learned from."""

import heapq
import os
import random
import signal
import time

from bed import Slurm
from engine_at_home import wait_until
from slurm_site import SlurmSite
from test_slurm_keep import full, shape_of


def busy_cluster(now, count):
    """Lines of sacct: 16 cpus in order of arrival, in busy spells and quiet ones."""
    lot = random.Random(3)
    ends, free, moment, line, lines = [], 16, now - count * 850, 0, []
    for at in range(count):
        moment += int(lot.expovariate(1 / 600) * (0.7 if at // 150 % 2 == 0 else 2))
        cpus = lot.randint(1, 4)
        start = max(line, moment)
        while ends and (ends[0][0] <= start or free < cpus):
            end, given = heapq.heappop(ends)
            start, free = max(start, end), free + given
        free, line = free - cpus, start
        end = start + 60 + int(lot.expovariate(1 / 3000))
        heapq.heappush(ends, (end, cpus))
        lines.append(f"COMPLETED|u{at % 5}|cpu|{cpus}|02:00:00|{moment}|{moment}|{start}|{end}|cpu={cpus}")
    return lines


def site_with_past(slurm, folder, lines):
    """Its sacct tells these."""
    tools = folder / "bin"
    tools.mkdir()
    (folder / "past").write_text("".join(line + "\n" for line in lines))
    (tools / "sacct").write_text(f"#!/bin/sh\necho asked >> {folder}/asked\ncat {folder}/past\n")
    (tools / "sacct").chmod(0o755)
    return SlurmSite(
        slurm,
        transport={
            "plugin": "shared_fs",
            "environment": {"SLURM_CONF": slurm.conf, "PATH": f"{tools}:{os.environ['PATH']}"},
        },
    )


def test_a_model_is_learned_and_used_without_a_restart(slurm, tmp_path):
    with full(slurm, 10), site_with_past(slurm, tmp_path, busy_cluster(int(time.time()), 2500)) as site:
        task = site.submit("--", "true")
        wait_until(lambda: shape_of(site).get("by") == "queue", 90, "a look at the queue")
        told = site.ok("waits", "train", "--site", "cluster")
        assert "2500 waits at cluster taught a model" in told, told
        assert "hpcbatch waits" in told and max(map(len, told.splitlines())) <= 100
        wait_until(lambda: shape_of(site).get("by") == "model", 150, "a look that the model is asked at")
        shape = shape_of(site)
        assert shape["from"] == 2500 and 0 <= shape["wait_50"] <= shape["wait_90"]
        assert "by a model of 2500 waits" in " ".join(site.ok("waits").split())
        assert "from a model of 2500 waits" in " ".join(site.ok("explain", task).split())
        [model] = (site.home / "models").iterdir()
        assert model.stat().st_mode & 0o077 == 0
        # One that is not worth using changes nothing.
        before = model.read_bytes()
        (tmp_path / "past").write_text("")
        refused = site.verb("waits", "train")
        assert refused.code == 2 and "accounting shows 0 batch jobs" in refused.err, refused
        assert model.read_bytes() == before
        site.ok("cancel", task)


def test_real_accounting_is_read():
    with Slurm("--set", "MinJobAge=3600") as slurm:
        for _ in range(3):
            slurm.submit("true\n", "--partition=cpu", "--time=5", "--output=/dev/null")
        # One that was never eligible has not waited.
        slurm.ask("scancel", slurm.submit("true\n", "--partition=cpu", "--time=5", "--hold", "--output=/dev/null"))
        with SlurmSite(slurm) as site:
            # The last reach the accounting some seconds late.
            wait_until(
                lambda: "accounting shows 3 batch jobs" in site.verb("waits", "train").err, 90, "three jobs told"
            )


def test_what_is_no_site_or_no_estimator_is_said(slurm):
    with SlurmSite(slurm) as site:
        for words, said in [
            (("--site", "clustr"), "there is no site 'clustr' (cluster)"),
            (("--estimator", "xgbost"), "there is no estimator plugin 'xgbost'"),
            (("--days", "0"), "--days"),
        ]:
            refused = site.verb("waits", "train", *words)
            assert refused.code == 2 and said in refused.err, refused
        assert "for `waits train`" in site.verb("waits", "--days", "3").err
        assert not (site.home / "models").exists()


def test_ctrl_c_ends_verbs_that_work_by_themselves(slurm, tmp_path):
    with site_with_past(slurm, tmp_path, []) as site:
        (tmp_path / "bin" / "sacct").write_text("#!/bin/sh\nexec sleep 30\n")
        site.ok("engine", "start")
        for program, words in (("hpcbatch", ["sim", "-"]), ("hpcbatch-estimate", ["waits", "train"])):
            process = site.begin(*words)
            wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith(program), 30, program)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) in (130, -signal.SIGINT)
