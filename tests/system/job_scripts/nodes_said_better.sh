#!/bin/bash
#: -N 1
#SBATCH -N 77 -o out.txt
echo $SLURM_NNODES
