#!/bin/bash
#SBATCH --mem-per-cpu=200 -c 2 -o out.txt
echo $SLURM_MEM_PER_CPU ${SLURM_MEM_PER_NODE-unset}
