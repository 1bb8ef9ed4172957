#!/bin/bash
#SBATCH --job-name 'my job'
#SBATCH --output="out file.txt"
echo "$SLURM_JOB_NAME"
