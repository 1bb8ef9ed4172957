#!/bin/bash
#SBATCH --array=1-3
#SBATCH --output=out_%a.txt
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
