#!/bin/bash
#SBATCH -o out.txt
x=$((SLURM_JOB_ID * 0 + 4)); echo $x $((SLURM_JOB_NUM_NODES + 1))
