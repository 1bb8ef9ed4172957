#!/bin/bash
#: --mem 200
#SBATCH --mem=300 -o out.txt
echo $SLURM_MEM_PER_NODE ${SLURM_MEM_PER_CPU-unset}
