#!/bin/bash
#SBATCH --array=7
#SBATCH -o o.%a
echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT
