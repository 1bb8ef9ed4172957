#!/bin/bash
#SBATCH --array=8-10
#SBATCH --output=o.%4a.txt
printf 'part %03d\n' $SLURM_ARRAY_TASK_ID
