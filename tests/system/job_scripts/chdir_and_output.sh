#!/bin/bash
#: -D folder
#SBATCH -o out.txt
echo ${PWD##*/} ${SLURM_SUBMIT_DIR##*/}
