#!/bin/bash
#SBATCH -J strict -o out.txt
set -eu
echo $SLURM_JOB_ID > number; echo $SLURM_SUBMIT_DIR > dir; rm number dir; echo fine
