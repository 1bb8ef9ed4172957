with open(snakemake.input[0]) as source, open(snakemake.output[0], "w") as target:
    target.write(f"{snakemake.rule} {snakemake.params.word} {snakemake.threads}\n{source.read()}")
