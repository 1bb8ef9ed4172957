#!/bin/bash
#SBATCH --job=short --outp=out.txt
echo $SLURM_JOB_NAME
