#!/bin/bash
#: SBATCH_JOB_NAME=of-variable SBATCH_OUTPUT=%x.txt -J of-line
#SBATCH -J of-script
echo $SLURM_JOB_NAME
