#!/bin/bash
#: --export=NIL
#SBATCH -o out.txt
echo ${A_VARIABLE-unset} $SLURM_EXPORT_ENV
