#!/bin/bash
#SBATCH -o out.txt
set -eu
echo ${SLURM_NTASKS:-none} ${SLURM_NTASKS_PER_NODE:-none} ${SLURM_CPUS_PER_TASK:-none} ${SLURM_GPUS:-none} ${SLURM_JOB_DEPENDENCY:-none}
