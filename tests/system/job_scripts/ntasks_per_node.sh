#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=2 -o out.txt
echo $SLURM_NTASKS_PER_NODE $SLURM_TASKS_PER_NODE
