#!/bin/bash
#: --threads-per-core=1
#SBATCH -o out.txt
echo $SLURM_THREADS_PER_CORE
