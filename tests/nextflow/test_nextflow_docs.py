"""What docs/nextflow.md tells people to type does what it says."""

import shutil
import subprocess

from engine_at_home import ROOT, EngineAtHome
from nextflow_bed import TWO_CPUS, Bed, plugin
from programs_of_docs import blocks_of


def test_blocks_of_the_page_on_nextflow_run_as_they_stand():
    with EngineAtHome() as engine:
        engine.configure(TWO_CPUS % (engine.directory / "w"))
        bed = Bed(engine, "slurm")
        del bed.env["NXF_HOME"]
        out = bed.folder / "build/package/out"
        out.mkdir(parents=True)
        shutil.copy(plugin(), out)
        blocks = blocks_of((ROOT / "docs/nextflow.md").read_text())
        assert len(blocks) == 5
        for block in blocks:
            script = f"set -euo pipefail\n{block}"
            done = subprocess.run(
                ["bash", "-c", script], cwd=bed.folder, env=bed.env, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
            if "nextflow run" in block:
                assert "hello b" in done.stdout, done.stdout
        names = [task["name"] for task in bed.tasks()]
        assert len(names) == 6 and names.count("HELLO (2)") == 1 and "nf-HELLO_(2)" in names, names
