#!/bin/bash
#SBATCH --get-user-env -o out.txt
echo $SLURM_GET_USER_ENV $A_VARIABLE
