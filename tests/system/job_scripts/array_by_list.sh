#!/bin/bash
#SBATCH -a 2,5,9
#SBATCH -o logs.%a
files=(a b c d e f g h i j)
echo ${files[$SLURM_ARRAY_TASK_ID]} > out.$SLURM_ARRAY_TASK_ID
