#!/bin/bash
#SBATCH -m block -O -o out.txt
echo $SLURM_DISTRIBUTION $SLURM_OVERCOMMIT
