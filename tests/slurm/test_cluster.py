"""The bed itself: what the other tests take for granted about the SLURM that they run on."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from bed import CLUSTER, Slurm, wait_until  # noqa: E402


@pytest.fixture(scope="module")
def slurm():
    with Slurm() as bed:
        yield bed


@pytest.fixture
def small():
    with Slurm("--fast") as bed:
        yield bed


def processes_that_name(text):
    """The living processes whose command line or environment has `text` in it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if text.encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def links_in(folder):
    """What the links there lead to; processes end meanwhile, and close."""
    found = []
    try:
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"{folder}/{name}"))
    except OSError:
        pass
    return found


def living(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def output_of(slurm, script, *options):
    output = f"{slurm.dir}/output"
    slurm.submit(script, "--wait", "-o", output, *options)
    return pathlib.Path(output).read_text().split("\n")[:-1]


def test_all_nodes_are_idle_and_cpu_is_the_default_partition(slurm):
    nodes = slurm.ask("sinfo", "-h", "-N", "-o", "%N %P %t %G").split("\n")[:-1]
    assert nodes == ["n1 cpu* idle (null)", "n2 cpu* idle (null)", "n3 gpu idle gpu:v100:2", "n4 gpu idle gpu:a100:1"]


def test_a_batch_job_over_two_nodes_starts_its_steps_with_srun(slurm):
    lines = output_of(slurm, "srun sh -c 'echo $SLURMD_NODENAME'", "-N2", "-p", "cpu")
    assert sorted(lines) == ["n1", "n2"]


def test_gpus_are_given_by_kind(slurm):
    say = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
    assert output_of(slurm, say, "-p", "gpu", "--gres=gpu:v100:1") == ["n3 0"]
    assert output_of(slurm, say, "-p", "gpu", "--gres=gpu:v100:2") == ["n3 0,1"]
    assert output_of(slurm, say, "-p", "gpu", "--gres=gpu:a100:1") == ["n4 0"]


def test_accounting_knows_finished_batch_jobs(slurm):
    number = slurm.submit("exit 3", "-o", "/dev/null")
    wait_until(
        lambda: slurm.ask("sacct", "-nXP", "-j", number, "-o", "state,exitcode").strip() == "FAILED|3:0",
        what="sacct's FAILED",
    )


def test_everything_listens_on_loopback(slurm):
    listening = {}  # inode of the socket -> address
    for line in pathlib.Path("/proc/net/tcp").read_text().split("\n")[1:-1]:
        fields = line.split()
        if fields[3] == "0A":
            listening[f"socket:[{fields[9]}]"] = fields[1]
    addresses = []
    for pid in processes_that_name(slurm.dir):
        for target in links_in(f"/proc/{pid}/fd"):
            addresses += [listening[target]] if target in listening else []
    assert len(addresses) >= 6
    assert all(address.split(":")[0].endswith("7F") for address in addresses)


def test_a_paused_controller_answers_again_after_resume(small):
    small.cluster("controller-pause")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["sinfo"], env=small.env, capture_output=True, timeout=2)
    small.cluster("controller-resume")
    assert "n1" in small.ask("sinfo", "-N")


def test_a_killed_controller_comes_back_with_its_batch_jobs(small):
    number = small.submit("sleep 1000", "-o", "/dev/null")
    wait_until(lambda: small.ask("squeue", "-h", "-j", number, "-o", "%t").strip() == "R", what="the batch job's start")
    seen, state = time.time(), pathlib.Path(f"{small.dir}/state/job_state")

    def saved():
        small.ask("scontrol", "update", f"jobid={number}", "comment=seen")  # each change makes it think of saving
        return state.stat().st_mtime > seen

    wait_until(saved, what="the controller's saved state")
    small.cluster("controller-kill")
    assert subprocess.run([CLUSTER, "status", small.dir], stdout=subprocess.DEVNULL).returncode == 1
    small.cluster("controller-start")
    assert small.ask("squeue", "-h", "-j", number, "-o", "%t").strip() == "R"


def test_killing_a_node_kills_its_daemon_only(small):
    number = small.submit(f"echo $$ > {small.dir}/pid; exec sleep 1000", "-o", "/dev/null", "-w", "n1")
    pid = int(
        wait_until(
            lambda: os.path.exists(f"{small.dir}/pid") and pathlib.Path(f"{small.dir}/pid").read_text(),
            what="the payload's start",
        )
    )
    small.cluster("node-kill", "n1")
    assert "slurmd-n1 gone" in subprocess.run([CLUSTER, "status", small.dir], capture_output=True, text=True).stdout
    assert living(pid)
    small.cluster("node-start", "n1")
    assert small.ask("squeue", "-h", "-j", number, "-o", "%t").strip() == "R"
    assert living(pid)


def test_stop_leaves_nothing_even_when_half_of_it_is_dead():
    with Slurm("--fast") as slurm:
        # One payload in a session of its own and without environment, one whose step has been killed.
        slurm.submit(
            f"setsid env -i sh -c 'echo $$ > {slurm.dir}/lost; exec sleep 1000' & sleep 1000",
            "-o",
            "/dev/null",
            "-w",
            "n1",
        )
        slurm.submit(f"echo $PPID $$ > {slurm.dir}/orphan; exec sleep 1000", "-o", "/dev/null", "-w", "n2")

        def written(name):
            path = pathlib.Path(f"{slurm.dir}/{name}")
            return wait_until(lambda: path.exists() and path.read_text().split(), what=name)

        payloads = [int(p) for p in written("lost") + written("orphan")]
        os.kill(payloads[1], signal.SIGKILL)
        slurm.cluster("controller-kill")
        slurm.cluster("node-kill", "n1")
        slurm.cluster("stop")
        assert not [pid for pid in payloads if living(pid)]
        assert not [pid for pid in processes_that_name(f"{slurm.dir}/") if living(pid)]


def test_a_start_cleans_what_an_owner_left_behind():
    owner = subprocess.Popen(["sleep", "1000"])
    with Slurm("--fast", "--owner", str(owner.pid)) as abandoned:
        owner.kill()
        owner.wait()
        with Slurm("--fast") as other:
            wait_until(
                lambda: not [p for p in processes_that_name(f"{abandoned.dir}/") if living(p)],
                what="the end of the abandoned cluster",
            )
            assert "idle" in other.ask("sinfo", "-h", "-o", "%t")


def test_a_directory_with_leftovers_is_started_again():
    with Slurm("--fast") as slurm:
        slurm.cluster("controller-kill")
        slurm.cluster("start", "--fast", "--owner", str(os.getpid()))
        assert "idle" in slurm.ask("sinfo", "-h", "-o", "%t")


def test_a_failed_start_names_the_daemon_and_shows_its_log():
    with pytest.raises(AssertionError) as failure:
        Slurm("--fast", "--set", "SelectType=select/of_another_world").__enter__()
    assert "slurmctld ended" in str(failure.value)
    assert "of_another_world" in str(failure.value)
    assert not processes_that_name("of_another_world")


def test_a_directory_with_other_content_is_refused():
    # Not pytest's own: its path may be longer than a cluster's may be.
    with tempfile.TemporaryDirectory(prefix="hb-slurm-", dir="/tmp") as directory:
        precious = pathlib.Path(directory) / "precious"
        precious.write_text("mine")
        done = subprocess.run([CLUSTER, "start", directory, "--fast"], capture_output=True, text=True)
        assert done.returncode == 1 and "holds something else" in done.stderr
        assert precious.read_text() == "mine"
