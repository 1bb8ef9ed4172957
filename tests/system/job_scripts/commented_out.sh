#!/bin/bash
##SBATCH --array=1-5
# SBATCH -J other
#SBATCH -J mine -o out.txt
echo $SLURM_JOB_NAME ${SLURM_ARRAY_TASK_ID-none}
