#!/bin/bash
#: -n 2
#SBATCH -o out.txt
echo $SLURM_NTASKS $SLURM_NPROCS $SLURM_TASKS_PER_NODE
