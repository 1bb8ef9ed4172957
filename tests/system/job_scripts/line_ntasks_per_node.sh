#!/bin/bash
#: --ntasks-per-node=2
#SBATCH -o out.txt
echo $SLURM_NTASKS $SLURM_NTASKS_PER_NODE
