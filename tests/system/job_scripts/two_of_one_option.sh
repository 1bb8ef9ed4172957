#!/bin/bash
#SBATCH -J first
#SBATCH -J second -o out.txt
echo $SLURM_JOB_NAME
