#!/bin/bash
#SBATCH -o %x.out
echo "$SLURM_JOB_NAME"
