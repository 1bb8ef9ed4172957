"""A workflow of small processes, by each way to run Nextflow; its own settings are those that it comes with."""

import time

from nextflow_bed import Bed
from slurm_commands import Commands

FLOW = """
process SMALL {
    cpus 1
    memory '50 MB'
    time '5m'
    input: val x
    script: "true"
}
workflow { SMALL(channel.of(1..%d)) }
"""


def nextflow(site, count, executor, commands):
    """Jobs per second. `commands`: whether sbatch and the others are ours."""
    bed = Bed(site, executor, Commands(site).folder if commands else None)
    queue = "" if executor == "hpcbatch" else "process.queue = 'cpu'\n"
    bed.write(FLOW % count)
    (bed.folder / "nextflow.config").write_text(
        f"{bed.plugins}process.executor = '{executor}'\n{queue}trace {{ fields = 'status,submit'; raw = true }}\n"
    )
    printed = bed.ok("-with-trace", "trace.txt", timeout=1800)
    ended = time.time()
    rows = bed.trace()
    assert len(rows) == count and {row["status"] for row in rows} == {"COMPLETED"}, printed[-3000:]
    return count / (ended - min(int(row["submit"]) for row in rows) / 1000)
