#!/bin/bash
#SBATCH -c 2
#SBATCH -o out.txt
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
echo $OMP_NUM_THREADS
