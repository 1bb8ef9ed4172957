#!/bin/bash
#SBATCH -J "a\"b" -o out\\%j.txt
echo "$SLURM_JOB_NAME"
