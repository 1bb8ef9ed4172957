#!/bin/bash
#SBATCH -o out.txt
echo ${SLURM_CPUS_PER_TASK:-1}
