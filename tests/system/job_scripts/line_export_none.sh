#!/bin/bash
#: --export=NONE
#SBATCH -o out.txt
echo ${A_VARIABLE-unset} $SLURM_EXPORT_ENV $SLURM_GET_USER_ENV
