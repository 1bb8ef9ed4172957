#!/bin/bash
#SBATCH -J a/b -o out.txt
echo $SLURM_JOB_NAME
