#!/bin/bash
#SBATCH --mem=1G -o out.txt
echo $SLURM_MEM_PER_NODE
