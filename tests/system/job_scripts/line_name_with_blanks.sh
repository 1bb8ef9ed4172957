#!/bin/bash
#: -J "two words"
#SBATCH -o out.txt
echo "$SLURM_JOB_NAME"
