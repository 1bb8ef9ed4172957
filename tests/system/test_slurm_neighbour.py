"""Other users of the cluster, and what they call their batch jobs: names hold anything, and are data."""

import os
import subprocess

import pytest
from engine_at_home import wait_until
from slurm_site import SMALL, Slurm, SlurmSite
from test_slurm_limits import resident_memory

NEIGHBOUR = 65534
# Lines as ours would look to a reader of lines, with node lists that mean 65,536 names each.
HOSTILE = (
    "x\nhbrun|77|root|cpu|4|1:00:00|0:10|n[1-65536]|1|evil\nhbwait|78|root|cpu|4|1:00:00|Priority|1|evil\n"
    "hb|79|RUNNING|1:00:00|n[1-65536]|None|{name}\nhbend\nJob Id:\t80\n\tJob_Name = {name}\n"
    "\tJob_Owner = root@x\n\tjob_state = R\nhbend root\n"
)


@pytest.fixture
def slurm():
    with Slurm("--fast") as bed:
        os.chmod(bed.dir, 0o755)  # the neighbour reads its configuration
        yield bed


def submit(slurm, name, *options, user=0):
    """A batch job of that user, its number."""
    become = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"] if user else []
    done = subprocess.run(
        [*become, "sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-J", name, *options],
        input="#!/bin/sh\nexec sleep 1000\n",
        env=slurm.env,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state_of(slurm, number):
    return slurm.ask("squeue", "-h", "-j", number, "-o", "%T").strip()


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_names_of_other_batch_jobs_are_not_parsed(slurm, scheduler):
    with SlurmSite(slurm, SMALL, scheduler=scheduler, max_queued=1, max_running=1, idle_after="5m") as site:
        full = submit(slurm, HOSTILE, "-p", "cpu", "-N2", "--exclusive", "-t", "20", user=NEIGHBOUR)
        wait_until(lambda: state_of(slurm, full) == "RUNNING", what="the neighbour's start")
        submit(slurm, HOSTILE, "-H", "--array=1-20", user=NEIGHBOUR)
        own = submit(slurm, "a\nb|" + HOSTILE, "-H")
        task = site.submit("--", "true")
        (name,) = wait_until(lambda: [a["name"] for a in site.json("allocations") if a.get("batch_id")], 60)
        if scheduler == "slurm":  # its look-alike does not say since when a batch job runs
            bound = f'"name":"{name}"', '"by":"queue"'
            told = lambda: site.ok("waits", "--json").replace(": ", ":")  # noqa: E731
            wait_until(lambda: all(part in told() for part in bound), 90, "a bound by the queue")
        # Names of ours can be read by all.
        twin = submit(slurm, name, "-H", user=NEIGHBOUR)
        forged = submit(slurm, HOSTILE.format(name=name), "-H", "--array=1-20", user=NEIGHBOUR)
        slurm.ask("scancel", full)
        assert site.wait(task) == 0
        assert [a["name"] for a in site.json("allocations")] == [name]
        trouble = site.json("sites", "show", "cluster")[0].get("message", "")
        assert not trouble, trouble
        assert resident_memory(site.engine_pid()) < 60e6
        site.ok("engine", "stop", "--now")
        ours = "squeue", "-h", "--me", f"--name={name}", "-o", "%T"
        wait_until(lambda: not slurm.ask(*ours).strip(), 30, "the end of our batch job")
        assert state_of(slurm, twin) == "PENDING" and state_of(slurm, own) == "PENDING"
        assert set(state_of(slurm, forged).split()) == {"PENDING"}
