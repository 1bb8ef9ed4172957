#!/bin/bash
#SBATCH --hint=nomultithread -o out.txt
echo $SLURM_HINT $SLURM_THREADS_PER_CORE
