#!/bin/bash
#SBATCH -J 'a{item}' -o "out_{id}_{index}.%x.txt"
echo $SLURM_JOB_NAME
