#!/bin/bash
#SBATCH -a 3-4
#SBATCH -o %A_%a.log
[ $SLURM_ARRAY_JOB_ID -le $SLURM_JOB_ID ] && echo numbers rise
