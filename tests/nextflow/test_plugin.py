"""Nextflow's processes as tasks, by the plugin nf-hpcbatch."""

import os
import signal

import flows
import pytest
from engine_at_home import EngineAtHome, wait_until
from nextflow_bed import TWO_CPUS, Bed, maven
from slurm_site import SlurmSite


@pytest.fixture
def bed():
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "w"))
        yield Bed(engine)


def test_its_unit_tests():
    maven("test")


def test_ends_of_all_kinds(bed):
    flows.must_end_as_users_know(bed)
    arrays = [line for line in bed.engine.json("list") if line["total"] == 3]
    assert [line["name"] for line in arrays] == ["WORK", "WORK"]
    kinds = {bed.engine.show(task["id"])["name"] for task in bed.tasks() if "." not in task["id"]}
    assert "WORK (partac)" in kinds and "GREEDY" in kinds, kinds


def test_no_more_at_once_than_max_forks(bed):
    flows.must_hold_max_forks(bed)


def test_a_failure_ends_the_run(bed):
    flows.must_tell_of_a_failure(bed)


def test_an_end_that_was_not_its_own_is_told(bed):
    bed.write(
        """
        process GREEDY { memory '60 MB'
            script: "python3 -c 'x = bytearray(200_000_000)'" }
        workflow { GREEDY() }
        """
    )
    code, printed = bed.run()
    assert code == 1, printed
    assert "Process `GREEDY` was ended: it was out of memory: " in printed and "60.0 MiB" in printed, printed
    assert "Command exit status:\n  137" in printed, printed


NEEDS = """
process PLAIN {
    cpus 2; memory '300 MB'; time '90 s'; disk '1 MB'; tag 'of all kinds'
    clusterOptions '--nice=20 --mem=200M'
    ext hpcbatch: [priority: -7, kind: 'measured']
    script: "echo $HPCBATCH_CPUS; echo $MINE"
}
process PLACED { queue 'here'
    script: "true" }
process NOWHERE { queue 'nowhere'; errorStrategy 'ignore'
    script: "true" }
process WRONG { clusterOptions '--nodelist=n1'; errorStrategy 'ignore'
    script: "true" }
process GPU { accelerator 2, type: 'a100'; errorStrategy 'ignore'
    script: "true" }
workflow { PLAIN(); PLACED(); NOWHERE(); WRONG(); GPU() }
"""


def test_what_a_process_needs(bed):
    config = bed.engine.directory / "config.yaml"
    config.write_text(config.read_text().replace("memory: 4G", "memory: 4G, disk: 1G"))
    bed.write(NEEDS.replace("$HPCBATCH_CPUS; echo $MINE", "\\$HPCBATCH_CPUS \\$MINE > said; cp said ../../../said"))
    printed = bed.ok(MINE="from the shell")
    tasks = {task["name"]: bed.engine.show(task["id"]) for task in bed.tasks()}
    plain = tasks["PLAIN (of all kinds)"]
    assert plain["needs"]["cpus"] == 2 and plain["needs"]["memory"] == 200 << 20, plain["needs"]
    assert plain["needs"]["time"] == 90, plain["needs"]
    assert (bed.folder / "said").read_text() == "2 from the shell\n"
    assert tasks["PLACED"]["state"] == "done"
    assert "--nodelist" in printed and "WRONG" in printed, printed
    for name, words in (("NOWHERE", "partition"), ("GPU", "a100")):
        assert name not in tasks and name in printed, printed
        assert words in bed.log(), printed


def test_an_interrupt_cancels_all(bed):
    bed.write(flows.ENDLESS)
    process = bed.begin()
    wait_until(lambda: sum(task["state"] == "running" for task in bed.tasks()) == 2, 60, "two that run")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 1
    wait_until(lambda: {task["state"] for task in bed.tasks()} == {"cancelled"}, 30, "their end")


RESUMED = """
process ONE {
    input: val x
    output: path 'out'
    script: "echo $x >> ../../../ran; while [ ! -e ../../../go ]; do sleep 0.1; done; echo $x > out"
}
process MANY {
    array 2
    input: val x
    output: path 'out'
    script: "echo $x >> ../../../ran; while [ ! -e ../../../go ]; do sleep 0.1; done; echo $x > out"
}
process AGAIN {
    errorStrategy 'retry'
    input: val x
    output: path 'out'
    script: "echo $x${task.attempt} >> ../../../ran; [ $task.attempt = 2 ] || exit 1; while [ ! -e ../../../go ]; do sleep 0.1; done; echo $x > out"
}
workflow {
    all = ONE(channel.of('a')).mix(MANY(channel.of('b', 'c')), AGAIN(channel.of('d')))
    all.collectFile(name: 'all', storeDir: '.')
}
"""


def test_a_run_that_was_killed_goes_on(bed):
    """Twice: nothing of it runs again, whether it waited, ran or had ended when Nextflow was resumed."""
    config = bed.engine.directory / "config.yaml"
    config.write_text(config.read_text().replace("cpus: 2,", "cpus: 8,"))
    bed.write(RESUMED, config="process.memory = '50 MB'\n")
    ran = bed.folder / "ran"
    for words in ((), ("-resume",)):
        process = bed.begin(*words)
        wait_until(lambda: ran.exists() and len(ran.read_text().split()) == 5, 90, "all to run")
        wait_until(
            lambda: bed.printed().count("ubmitted process >") + bed.printed().count("Goes on >") >= 4,
            60,
            "this run's word of them",
        )
        process.kill()
        process.wait()
    (bed.folder / "go").touch()
    wait_until(lambda: all(task["state"] != "running" for task in bed.tasks()), 30, "their end")
    printed = bed.ok("-resume")
    assert printed.count("Goes on >") == 4, printed
    assert sorted(ran.read_text().split()) == ["a", "b", "c", "d1", "d2"]
    assert sorted((bed.folder / "all").read_text().split()) == ["a", "b", "c", "d"]
    assert "Cached process" in bed.ok("-resume")
    assert sorted(ran.read_text().split()) == ["a", "b", "c", "d1", "d2"]


def test_it_goes_on_when_the_engine_is_killed(slurm):
    with SlurmSite(slurm, idle_after="10m", max_running=2) as site:
        bed = Bed(site)
        bed.write(flows.MANY)
        process = bed.begin("-with-trace", "trace.txt")
        wait_until(lambda: sum(task["state"] == "done" for task in bed.tasks()) > 20, 120, "some to be done")
        site.kill_engine()
        code = process.wait(300)
        assert code == 0, bed.printed() + bed.log()[-3000:]
        flows.many_must_be_there(bed)
        assert site.must_be_single() <= 2
        # What failed once ran once more, and nothing else did.
        attempts = sum(line["total"] for line in site.json("list", "--all"))
        assert attempts == 200 + flows.MANY_FAIL_ONCE
