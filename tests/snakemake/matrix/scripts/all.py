import os
import sys

with open(snakemake.log[0], "w") as log:
    log.write("said\n")
with open(snakemake.output[0], "w") as out:
    print(
        list(snakemake.input),
        snakemake.input.named,
        dict(snakemake.params.items()),
        snakemake.resources.mem_mb,
        file=out,
    )
    print(snakemake.config["nested"]["deep"], __name__, os.path.basename(sys.argv[0]) != "", file=out)
