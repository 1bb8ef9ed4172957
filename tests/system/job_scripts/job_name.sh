#!/bin/bash
#SBATCH --job-name="a name"
#SBATCH -o out.txt
echo "$SLURM_JOB_NAME"
