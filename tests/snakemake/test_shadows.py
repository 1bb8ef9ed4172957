"""Jobs with shadows beside each other: none is lost in another's links."""

import pytest
from engine_at_home import EngineAtHome
from snakemake_bed import TWO_CPUS, Bed

WORKFLOW = """
rule all:
    input: "full.txt", expand("shallow{i}.txt", i=range(3))
rule shallow:
    input: "in.txt"
    output: "shallow{i}.txt"
    priority: 10
    params: here=os.getcwd()
    shadow: "shallow"
    shell: "echo > {params.here}/started{wildcards.i}; while [ ! -e {params.here}/done ]; do sleep 0.05; done; cat {input} > {output}"
rule full:
    input: "in.txt"
    output: "full.txt"
    params: here=os.getcwd()
    shadow: "full"
    shell: "while [ ! -e {params.here}/started2 ]; do sleep 0.05; done; cat sub/folder/file {input} > {output}; echo > {params.here}/done"
"""


@pytest.mark.parametrize("mode", ["direct", "warm"])
def test_a_full_shadow_beside_shallow_ones_is_made(python, mode):
    with EngineAtHome() as engine:
        engine.configure((TWO_CPUS % (engine.directory / "space")).replace("cpus: 2", "cpus: 4"))
        bed = Bed(engine, python)
        bed.write(WORKFLOW)
        bed.write("input\n", "in.txt")
        bed.write("deep\n", "sub/folder/file")
        # Each of the jobs waits for the others.
        bed.ok("--hpcbatch-mode", mode, timeout=120)
        assert (bed.folder / "full.txt").read_text() == "deep\ninput\n"
        assert all((bed.folder / f"shallow{i}.txt").read_text() == "input\n" for i in range(3))
