#!/bin/bash
#SBATCH -J Größe -o out.txt
echo "$SLURM_JOB_NAME äöü"
