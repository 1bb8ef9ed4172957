#!/bin/bash
#SBATCH -o out.txt
run() { local n=$1; echo "run $n in $SLURM_JOB_NAME"; }
for n in 1 2; do run $n; done
