#!/bin/bash
#SBATCH --array=0-0 -o out.%a
echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT
