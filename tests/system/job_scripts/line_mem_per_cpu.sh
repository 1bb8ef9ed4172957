#!/bin/bash
#: --mem-per-cpu=100M --cpus-per-task=2
#SBATCH -o out.txt
echo $SLURM_MEM_PER_CPU ${SLURM_MEM_PER_NODE-unset}
