"""Pilots that have emulated GPUs (plugin-kit/fakegpu), of a site of this machine for each kind or of one real SLURM with them all, and
tasks that use them."""

import random
import subprocess
import time

from common.private_engine import PREFIX

PROGRAM = PREFIX / "bin/hpcbatch-fakegpu"
# By kind the compute capability; the batch system and its queue are what `local` is.
CAPABILITIES = {"k80": "3.7", "p100": "6.0", "v100": "7.0"}
MEBIBYTES = 16384


def configuration(kinds, gpus):
    """YAML of sites that are called as their kinds."""
    libraries = subprocess.run([PROGRAM, "libraries"], check=True, capture_output=True, text=True).stdout.strip()
    return "sites:\n" + "".join(
        f"""  - name: {kind}
    scheduler: local
    transport: shared_fs
    workspace: {{directory}}/workspace-{kind}
    max_queued: 1
    max_running: 1
    idle_after: 10m
    setup:
      - export HPCBATCH_FAKEGPU={{directory}}/gpus/{kind} LD_LIBRARY_PATH='{libraries}'
    shapes:
      - {{{{name: gpu, cpus: {8 * gpus}, memory: {8 * gpus}G, gpus: {{{{{kind}: {gpus}}}}}, walltime: 12h}}}}
"""
        for kind in kinds
    )


def slurm_options(kinds, gpus):
    """Of a cluster (tests/slurm/cluster) with a node of each kind."""
    return [
        "--fast",
        "--nodes",
        str(2 * len(kinds)),
        "--cpus",
        str(8 * gpus),
        "--gpus",
        ",".join(f"{kind}:{gpus}" for kind in kinds),
    ]


def configuration_of_slurm(slurm, kinds, gpus):
    """YAML of one site with a shape of each kind."""
    libraries = subprocess.run([PROGRAM, "libraries"], check=True, capture_output=True, text=True).stdout.strip()
    by_node = " ".join(f"n{len(kinds) + place}) kind={kind} ;;" for place, kind in enumerate(kinds, 1))
    return f"""sites:
  - name: cluster
    scheduler: slurm
    transport: {{{{plugin: shared_fs, environment: {{{{SLURM_CONF: {slurm.conf}}}}}}}}}
    workspace: {{directory}}/workspace
    interface: 127.0.0.1
    max_queued: {len(kinds)}
    max_running: {len(kinds)}
    idle_after: 10m
    poll_every: 1s
    setup:
      - case $SLURMD_NODENAME in {by_node} esac
      - export HPCBATCH_FAKEGPU={{directory}}/gpus/$kind LD_LIBRARY_PATH='{libraries}'
    shapes:
""" + "".join(
        f"""      - {{{{name: {kind}, partition: gpu, cpus: {8 * gpus}, memory: 4G, gpus: {{{{{kind}: {gpus}}}}}, walltime: 12h}}}}
"""
        for kind in kinds
    )


def prepare(engine, kinds, gpus, costs):
    """Makes the GPUs, and pilots that have them. `costs`: lines CLASS KIND SECONDS MIB BUSY-PERCENT."""
    for kind in kinds:
        subprocess.run(
            [PROGRAM, "new", engine.directory / "gpus" / kind, f"{kind}:{gpus}:{MEBIBYTES}:{CAPABILITIES[kind]}"],
            check=True,
        )
    (engine.directory / "table").write_text("".join(line + "\n" for line in costs))
    for kind in kinds:
        engine.verb("run", "--gpus", kind, "--", "true")


def name_of(number):
    """Letters: numbers in names make no kinds."""
    return "train" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def makespan(engine, classes, tasks, kind_of=lambda name, number: name, **more):
    """Seconds until so many tasks of each class are done, in an order drawn by chance; and their ids."""
    work = f'HPCBATCH_FAKEGPU={engine.directory}/gpus/$HPCBATCH_GPU_KIND exec {PROGRAM} work --class "$1" --table {engine.directory}/table'
    order = [(name, number) for name in classes for number in range(tasks)]
    random.Random(5).shuffle(order)
    begun = time.monotonic()
    ids = engine.client.submit(
        *[
            {
                "command": ["sh", "-c", work, "sh", name],
                "gpus": 1,
                "cpus": 1,
                "memory": "100M",
                "kind": kind_of(name, number),
            }
            | more
            for name, number in order
        ]
    )
    engine.client.wait(ids)
    seconds = time.monotonic() - begun
    failed = [id for id in ids if engine.client.get(f"/v1/tasks/{id}")["state"] != "done"]
    assert not failed, f"{len(failed)} failed, the first is {failed[0]}"
    return seconds, ids
