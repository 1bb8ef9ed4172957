#!/bin/bash
#SBATCH --mem=300
#SBATCH -o out.txt
echo $SLURM_MEM_PER_NODE
