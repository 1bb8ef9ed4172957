#!/bin/bash
#SBATCH -J=x -o=out
echo $SLURM_JOB_NAME
