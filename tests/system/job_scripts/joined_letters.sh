#!/bin/bash
#SBATCH -Jjoined -c2 -oout.txt
echo $SLURM_JOB_NAME $SLURM_CPUS_PER_TASK
