#!/bin/bash
#SBATCH -a 1-2
#SBATCH -o /dev/null
mkdir run_$SLURM_ARRAY_TASK_ID && cd run_$SLURM_ARRAY_TASK_ID && pwd > where
