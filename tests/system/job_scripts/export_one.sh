#!/bin/bash
#SBATCH --export=A_VARIABLE -o out.txt
echo ${A_VARIABLE-unset} ${C_VARIABLE-unset}
