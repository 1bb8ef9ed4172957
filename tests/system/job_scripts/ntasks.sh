#!/bin/bash
#SBATCH -N 1 --ntasks=2 -o out.txt
echo $SLURM_NTASKS $SLURM_NPROCS ${SLURM_CPUS_PER_TASK-unset}
