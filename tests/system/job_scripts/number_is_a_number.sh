#!/bin/bash
#SBATCH -o out.txt
[[ $SLURM_JOB_ID =~ ^[0-9]+$ && $SLURM_JOB_ID = $SLURM_JOBID ]] && echo a number; echo $((SLURM_JOB_ID % 1))
