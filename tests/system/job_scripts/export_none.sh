#!/bin/bash
#SBATCH --export=NONE -o out.txt
echo ${A_VARIABLE-unset} ${SLURM_JOB_NAME}
