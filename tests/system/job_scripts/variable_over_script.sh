#!/bin/bash
#: SBATCH_JOB_NAME=of-variable SBATCH_OPEN_MODE=append
#SBATCH -J of-script -o %x.txt
echo $SLURM_JOB_NAME $SLURM_OPEN_MODE
