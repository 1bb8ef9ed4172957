#!/bin/sh
#SBATCH -o out.txt
echo plain $SLURM_JOB_NAME
