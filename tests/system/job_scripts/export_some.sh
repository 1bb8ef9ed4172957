#!/bin/bash
#SBATCH --export=ALL,B_VARIABLE=two -o out.txt
echo ${A_VARIABLE-unset} ${B_VARIABLE-unset}
