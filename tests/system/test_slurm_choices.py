"""What tasks choose of their batch jobs: account, QOS, features of nodes; on a real SLURM."""

import collections

import pytest
from engine_at_home import wait_until
from slurm_site import SMALL, Slurm, SlurmSite

GPU = {"name": "gpu", "partition": "gpu", "cpus": 1, "memory": "512M", "walltime": "30m"}


@pytest.fixture(scope="module")
def accounts():
    """A SLURM that knows accounts, and refuses those that a user has not."""
    with Slurm("--set", "AccountingStorageEnforce=associations", "--set", "MinJobAge=3600") as slurm:
        for account in ("lab", "course"):
            slurm.ask("sacctmgr", "-iQ", "add", "account", account, "cluster=hpcbatch")
            slurm.ask("sacctmgr", "-iQ", "add", "user", "root", f"account={account}")
        yield slurm


def charged(site):
    """The account of each batch job, by its name."""
    lines = site.slurm.ask("squeue", "-a", "-h", "-t", "all", "-o", "%j|%a|%o").splitlines()
    rows = (line.split("|") for line in lines)
    return {name: account for name, account, script in rows if script.startswith(str(site.directory))}


def test_tasks_run_in_batch_jobs_of_their_account_and_nobody_elses(accounts):
    with SlurmSite(accounts, SMALL | {"cpus": 1}, max_queued=4, max_running=4, idle_after="5m") as site:
        asked = {
            account: site.submit("--array", "1-5", *(("--account", account) if account != "root" else ()), *site.say())
            for account in ("lab", "course", "root")
        }
        assert site.wait(*asked.values()) == 0
        later = site.submit("--account", "lab", *site.say())
        assert site.wait(later) == 0
        paid = charged(site)
        for account, array in asked.items():
            for index in range(1, 6):
                assert paid[site.show(f"{array}.{index}")["allocation"]] == account
        assert paid[site.show(later)["allocation"]] == "lab"
        assert collections.Counter(paid.values()) == {
            "lab": 1,
            "course": 1,
            "root": 1,
        }, "pilots are shared by those that chose the same"


def test_a_restart_goes_on_with_what_was_chosen(accounts):
    with SlurmSite(accounts, SMALL | {"cpus": 1}, max_queued=1, max_running=1, idle_after="5m") as site:
        array = site.submit(
            "--account", "lab", "--array", "1-30", "--", "sh", "-c", f"echo $HPCBATCH_TASK_ID >> {site.said}; sleep 0.2"
        )
        site.wait_for_lines(3)
        site.kill_engine()
        site.ok("engine", "start")
        assert site.wait(array) == 0
        site.must_have_said(array, 30)
        assert set(charged(site).values()) == {"lab"}


def test_an_account_that_slurm_refuses_keeps_nobody_else_waiting(accounts):
    with SlurmSite(accounts, SMALL | {"cpus": 1}) as site:
        refused = site.submit("--account", "nobodys", "--", "true")
        assert site.wait(refused) == 1
        ended = site.show(refused)
        assert ended["failure"] == "never_fits" and "nvalid account" in ended["message"], ended
        assert site.ok("run", "--", "echo", "fine") == "fine\n"
        shown = next(
            shape for shape in site.json("sites", "show", "cluster")[0]["shapes"] if "nobodys" in shape["name"]
        )
        assert "account" in shown["message"].lower(), shown
        again = site.submit("--account", "nobodys", "--", "true")
        assert site.wait(again, timeout=20) == 1
        asked = [one for one in site.json("allocations") if "nobodys" in one["shape"]]
        assert len(asked) == 1, "it is not asked again at once"
        assert "asked for pilots again" in site.ok("sites", "resume", "cluster")
        assert "was not paused" in site.ok("sites", "resume", "cluster")
        accounts.ask("sacctmgr", "-iQ", "add", "account", "nobodys", "cluster=hpcbatch")
        accounts.ask("sacctmgr", "-iQ", "add", "user", "root", "account=nobodys")
        site.ok("retry", refused)
        assert site.wait(refused) == 0


@pytest.mark.parametrize("choice", [("--constraint", "nowhere"), ("--reservation", "none")])
def test_what_slurm_refuses_for_good_fails_with_its_words(accounts, choice):
    with SlurmSite(accounts, SMALL | {"cpus": 1}) as site:
        refused = site.submit("--array", "1-3", *choice, "--", "true")
        assert site.wait(refused) == 1
        ended = site.show(f"{refused}.3")
        assert ended["failure"] == "never_fits" and f"{choice[0][2:]}={choice[1]}" in ended["message"], ended


def test_only_what_the_configuration_allows_is_chosen(accounts):
    with SlurmSite(accounts, choices={"account": ["lab"]}) as site:
        refused = site.verb("submit", "--account", "course", "--", "true")
        assert refused.code == 2 and "account=course where tasks may choose lab" in refused.err, refused
        refused = site.verb("submit", "--qos", "normal", "--", "true")
        assert refused.code == 2 and "the tag qos=normal" in refused.err, refused
        assert site.wait(site.submit("--account", "lab", "--", "true")) == 0
        assert site.json("sites", "show", "cluster")[0]["choices"] == {"account": ["lab"]}


def test_a_choice_that_the_batch_system_has_no_word_for_is_told_at_the_start(accounts):
    with SlurmSite(accounts, choices={"colour": "any"}) as site:
        refused = site.verb("engine", "start")
        assert (
            refused.code != 0
            and "'choices' has 'colour', for which the scheduler slurm has no word; tasks can choose account, "
            in refused.err
        )


def test_of_several_partitions_one_is_taken(slurm):
    with SlurmSite(slurm, SMALL, GPU) as site:
        for partition in ("gpu", "nowhere,gpu"):
            task = site.submit("--partition", partition, "--", "true")
            assert site.wait(task) == 0
        wait_until(lambda: site.json("allocations"), 10, "allocations")
        assert {allocation["shape"] for allocation in site.json("allocations")} == {"gpu"}
        refused = site.verb("submit", "--partition", "nowhere", "--", "true")
        assert refused.code == 2 and "the tag partition=nowhere" in refused.err
