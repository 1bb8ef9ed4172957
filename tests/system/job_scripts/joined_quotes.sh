#!/bin/bash
#SBATCH -J "a b"c'd e' -o out.txt
echo "$SLURM_JOB_NAME"
