#!/bin/bash
#SBATCH -J name#x -o out.txt
#SBATCH -o out.txt#y
echo $SLURM_JOB_NAME
