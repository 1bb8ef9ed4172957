#!/bin/bash
#SBATCH --array=0-2
#SBATCH -o o.%a
params=(0.1 0.2 0.3)
echo ${params[$SLURM_ARRAY_TASK_ID]}
