#!/bin/bash
#SBATCH -o out.txt
echo first
#SBATCH -J late
echo $SLURM_JOB_NAME
